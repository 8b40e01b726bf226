/* parse_names.c - words, types and names of PTX; see parse_internal.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/parse_internal.h"

/* --- words --- */

void ptx_skip_space(ptx_parser *p) {
  for (;;) {
    if (p->p[0] == '/' && p->p[1] == '/') {
      p->p += strcspn(p->p, "\n");
    } else if (isspace((unsigned char)*p->p)) {
      p->line += *p->p++ == '\n';
    } else {
      return;
    }
  }
}

static bool is_word_char(char c) { return isalnum((unsigned char)c) || strchr("_.$%", c); }

/* Returns the next word, or NULL if no word comes next. */
static const char *word(ptx_parser *p) {
  ptx_skip_space(p);
  size_t n = 0;
  while (p->p[n] && is_word_char(p->p[n])) {
    n++;
  }
  const char *w = n ? arena_strndup(p->arena, p->p, n) : NULL;
  p->p += n;
  return w;
}

bool ptx_take(ptx_parser *p, char c) {
  ptx_skip_space(p);
  bool is = *p->p == c;
  p->p += is;
  return is;
}

status ptx_need(ptx_parser *p, char c) {
  NEED(ptx_take(p, c), p, "'%c' is missing before '%.20s'", c, p->p);
  return NULL;
}

status ptx_need_word(ptx_parser *p, const char **out) {
  *out = word(p);
  NEED(*out, p, "a word is missing before '%.20s'", p->p);
  return NULL;
}

bool ptx_is_number(const char *w) { return isdigit((unsigned char)*w); }

/* Reads 12, 0x1f, 0f3F800000 (the bits of an f32) and 0d3FF0000000000000. */
uint64_t ptx_number_of(const char *w) {
  bool is_bits = w[0] == '0' && strchr("fFdD", w[1]) && w[1];
  return strtoull(is_bits ? w + 2 : w, NULL, is_bits ? 16 : strncmp(w, "0x", 2) == 0 ? 16 : 10);
}

status ptx_read_number(ptx_parser *p, uint64_t *out) {
  bool minus = ptx_take(p, '-');
  const char *w;
  TRY(ptx_need_word(p, &w));
  NEED(ptx_is_number(w), p, "'%s' is no number", w);
  *out = minus ? -ptx_number_of(w) : ptx_number_of(w);
  return NULL;
}

/* --- types --- */

bool ptx_find_type(const char *w, ptx_type *out) {
  static const struct {
    const char *name;
    ptx_type type;
  } rows[] = {{"b8", {PTX_BITS, 8}},       {"b16", {PTX_BITS, 16}},     {"b32", {PTX_BITS, 32}},
              {"b64", {PTX_BITS, 64}},     {"u8", {PTX_UNSIGNED, 8}},   {"u16", {PTX_UNSIGNED, 16}},
              {"u32", {PTX_UNSIGNED, 32}}, {"u64", {PTX_UNSIGNED, 64}}, {"s8", {PTX_SIGNED, 8}},
              {"s16", {PTX_SIGNED, 16}},   {"s32", {PTX_SIGNED, 32}},   {"s64", {PTX_SIGNED, 64}},
              {"f16", {PTX_FLOAT, 16}},    {"f32", {PTX_FLOAT, 32}},    {"f64", {PTX_FLOAT, 64}},
              {"bf16", {PTX_BFLOAT, 16}},  {"tf32", {PTX_TF32, 32}},    {"pred", {PTX_PRED, 1}}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    if (strcmp(w, rows[k].name) == 0) {
      *out = rows[k].type;
      return true;
    }
  }
  return false;
}

/* Reads ".align 8 .b8" or ".u64"; *bytes is the size of an element. */
status ptx_read_layout(ptx_parser *p, size_t *align, size_t *bytes) {
  *align = 1;
  for (;;) {
    const char *w;
    uint64_t n;
    ptx_type type;
    TRY(ptx_need_word(p, &w));
    if (strcmp(w, ".align") == 0) {
      TRY(ptx_read_number(p, &n));
      *align = n;
    } else {
      NEED(*w == '.' && ptx_find_type(w + 1, &type), p, "'%s' is no type", w);
      *bytes = type.bits < 8 ? 1 : (size_t)type.bits / 8;
      *align = *align < *bytes ? *bytes : *align;
      return NULL;
    }
  }
}

/* Reads "name", "name[]" or "name[8]"; *count is 1, 0 or the number in brackets. */
status ptx_read_name(ptx_parser *p, const char **name, uint64_t *count) {
  TRY(ptx_need_word(p, name));
  *count = 1;
  if (ptx_take(p, '[')) {
    *count = 0;
    if (!ptx_take(p, ']')) {
      TRY(ptx_read_number(p, count));
      return ptx_need(p, ']');
    }
  }
  return NULL;
}

/* --- names --- */

void ptx_define(ptx_parser *p, const char *name, ptx_place place, uint64_t value) {
  *ARENA_PUSH(p->arena, p->symbols, p->n_symbols, p->symbols_capacity) = (ptx_symbol){name, place, value};
}

const ptx_symbol *ptx_find_symbol(const ptx_parser *p, const char *name) {
  for (uint32_t k = p->n_symbols; k-- > 0;) { /* the last one of several that have the name */
    if (strcmp(p->symbols[k].name, name) == 0) {
      return &p->symbols[k];
    }
  }
  return NULL;
}

bool ptx_find_register(const ptx_parser *p, const char *name, uint32_t *out) {
  size_t n = strlen(name), digits = 0;
  while (digits < n && isdigit((unsigned char)name[n - 1 - digits])) {
    digits++;
  }
  for (uint32_t k = p->n_registers; k-- > 0;) {
    const ptx_registers *r = &p->registers[k];
    size_t length = strlen(r->name);
    bool whole = r->count == 0 && strcmp(r->name, name) == 0;
    bool of_many = r->count && digits && length == n - digits && strncmp(r->name, name, length) == 0;
    uint32_t number = of_many ? (uint32_t)atoi(name + length) : 0;
    if (whole || (of_many && number < r->count)) {
      *out = r->first + number;
      return true;
    }
  }
  return false;
}

bool ptx_find_special(const char *name, uint64_t *out) {
  static const struct {
    const char *name;
    ptx_special which;
  } rows[] = {{"%tid.x", PTX_TID},     {"%ntid.x", PTX_NTID}, {"%ctaid.x", PTX_CTAID}, {"%nctaid.x", PTX_NCTAID},
              {"%laneid", PTX_LANEID}, {"%tid.y", PTX_ZERO},  {"%tid.z", PTX_ZERO},    {"%ctaid.y", PTX_ZERO},
              {"%ctaid.z", PTX_ZERO},  {"%ntid.y", PTX_ONE},  {"%ntid.z", PTX_ONE},    {"%nctaid.y", PTX_ONE},
              {"%nctaid.z", PTX_ONE}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    if (strcmp(name, rows[k].name) == 0) {
      *out = rows[k].which;
      return true;
    }
  }
  return false;
}

/* Adds this many bytes to the memory of the function's frames, and returns their offset there. */
size_t ptx_extend_frame(ptx_function *f, size_t align, size_t bytes) {
  size_t at = (f->frame_bytes + align - 1) / align * align;
  f->frame_bytes = at + bytes;
  return at;
}
