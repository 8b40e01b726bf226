/* parse.c - reads PTX; see ptx.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/ptx_internal.h"

/* A name of the module or of a function, and where it leads to. */
typedef struct symbol {
  const char *name;
  ptx_place place;
  uint64_t value;
} symbol;

/* Registers `name`0 to `name`(count - 1), or the register `name` if count is 0. */
typedef struct registers {
  const char *name;
  uint32_t first, count;
} registers;

typedef struct label {
  const char *name;
  uint32_t at;
} label;

typedef struct parser {
  arena *arena;
  const char *p;
  int line;
  ptx_module *module;
  ptx_function *function; /* the one that is read */
  symbol *symbols;        /* those of the module, then those of the function */
  uint32_t n_symbols, symbols_capacity, module_symbols;
  registers *registers;
  uint32_t n_registers, registers_capacity;
  label *labels;
  uint32_t n_labels, labels_capacity;
} parser;

#define FAIL(p, ...) \
  return status_prefix(status_error(STATUS_INVALID_FILE, __VA_ARGS__), "line %d of the PTX", (p)->line)
#define NEED(condition, p, ...) \
  do {                          \
    if (!(condition)) {         \
      FAIL(p, __VA_ARGS__);     \
    }                           \
  } while (0)

/* --- words --- */

static void skip_space(parser *p) {
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

/* Returns the next word, or NULL before anything else. */
static const char *word(parser *p) {
  skip_space(p);
  size_t n = 0;
  while (p->p[n] && is_word_char(p->p[n])) {
    n++;
  }
  const char *w = n ? arena_strndup(p->arena, p->p, n) : NULL;
  p->p += n;
  return w;
}

static bool take(parser *p, char c) {
  skip_space(p);
  bool is = *p->p == c;
  p->p += is;
  return is;
}

static status need(parser *p, char c) {
  NEED(take(p, c), p, "'%c' is missing before '%.20s'", c, p->p);
  return NULL;
}

static status need_word(parser *p, const char **out) {
  *out = word(p);
  NEED(*out, p, "a word is missing before '%.20s'", p->p);
  return NULL;
}

static bool is_number(const char *w) { return isdigit((unsigned char)*w); }

/* Reads 12, 0x1f, 0f3F800000 (the bits of an f32) and 0d3FF0000000000000. */
static uint64_t number_of(const char *w) {
  bool is_bits = w[0] == '0' && strchr("fFdD", w[1]) && w[1];
  return strtoull(is_bits ? w + 2 : w, NULL, is_bits ? 16 : strncmp(w, "0x", 2) == 0 ? 16 : 10);
}

static status read_number(parser *p, uint64_t *out) {
  bool minus = take(p, '-');
  const char *w;
  TRY(need_word(p, &w));
  NEED(is_number(w), p, "'%s' is no number", w);
  *out = minus ? -number_of(w) : number_of(w);
  return NULL;
}

/* --- types --- */

static bool find_type(const char *w, ptx_type *out) {
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
static status read_layout(parser *p, size_t *align, size_t *bytes) {
  *align = 1;
  for (;;) {
    const char *w;
    uint64_t n;
    ptx_type type;
    TRY(need_word(p, &w));
    if (strcmp(w, ".align") == 0) {
      TRY(read_number(p, &n));
      *align = n;
    } else {
      NEED(*w == '.' && find_type(w + 1, &type), p, "'%s' is no type", w);
      *bytes = type.bits < 8 ? 1 : (size_t)type.bits / 8;
      *align = *align < *bytes ? *bytes : *align;
      return NULL;
    }
  }
}

/* Reads "name", "name[]" or "name[8]"; *count is 1, 0 or the number. */
static status read_name(parser *p, const char **name, uint64_t *count) {
  TRY(need_word(p, name));
  *count = 1;
  if (take(p, '[')) {
    *count = 0;
    if (!take(p, ']')) {
      TRY(read_number(p, count));
      return need(p, ']');
    }
  }
  return NULL;
}

/* --- names --- */

static void define(parser *p, const char *name, ptx_place place, uint64_t value) {
  *ARENA_PUSH(p->arena, p->symbols, p->n_symbols, p->symbols_capacity) = (symbol){name, place, value};
}

static const symbol *find_symbol(const parser *p, const char *name) {
  for (uint32_t k = p->n_symbols; k-- > 0;) { /* the last one of several that have the name */
    if (strcmp(p->symbols[k].name, name) == 0) {
      return &p->symbols[k];
    }
  }
  return NULL;
}

static bool find_register(const parser *p, const char *name, uint32_t *out) {
  size_t n = strlen(name), digits = 0;
  while (digits < n && isdigit((unsigned char)name[n - 1 - digits])) {
    digits++;
  }
  for (uint32_t k = p->n_registers; k-- > 0;) {
    const registers *r = &p->registers[k];
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

static bool find_special(const char *name, uint64_t *out) {
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

/* Returns the offset of new bytes in the frame's memory. */
static size_t extend_frame(ptx_function *f, size_t align, size_t bytes) {
  size_t at = (f->frame_bytes + align - 1) / align * align;
  f->frame_bytes = at + bytes;
  return at;
}

/* --- operands --- */

static status read_operand(parser *p, ptx_operand *o);

/* Reads what is between brackets: a register or a name, and what is added. */
static status read_address(parser *p, ptx_operand *o) {
  const char *w;
  *o = (ptx_operand){.kind = PTX_ADDRESS};
  TRY(need_word(p, &w));
  const symbol *s = find_symbol(p, w);
  if (find_register(p, w, &o->reg)) {
    o->has_register = true;
  } else if (s) {
    o->place = s->place;
    o->value = s->value;
  } else {
    NEED(is_number(w), p, "'%s' is unknown", w);
    o->value = number_of(w);
  }
  while (take(p, '+')) {
    uint64_t more;
    TRY(read_number(p, &more));
    o->value += more;
  }
  return NULL;
}

static status read_list(parser *p, char end, ptx_operand *o) {
  uint32_t capacity = 0;
  *o = (ptx_operand){.kind = PTX_LIST};
  while (!take(p, end)) {
    ptx_operand item;
    TRY(read_operand(p, &item));
    *ARENA_PUSH(p->arena, o->items, o->n, capacity) = item;
    (void)take(p, ',');
  }
  return NULL;
}

/* Reads a word: a register, a number, a name, or else a label or a function, which may come later. */
static status read_word_operand(parser *p, ptx_operand *o) {
  const char *w;
  TRY(need_word(p, &w));
  const symbol *s = find_symbol(p, w);
  *o = (ptx_operand){.kind = PTX_REGISTER, .name = w};
  if (strcmp(w, "_") == 0) {
    o->kind = PTX_NONE;
  } else if (find_register(p, w, &o->reg)) {
  } else if (find_special(w, &o->value)) {
    o->kind = PTX_SPECIAL;
  } else if (is_number(w)) {
    o->kind = PTX_NUMBER;
    o->value = number_of(w);
  } else if (s) {
    *o = (ptx_operand){.kind = PTX_ADDRESS, .place = s->place, .value = s->value};
    if (take(p, '+')) {
      uint64_t more;
      TRY(read_number(p, &more));
      o->value += more;
    }
  } else {
    NEED(*w != '%', p, "'%s' is unknown", w);
    o->kind = PTX_CODE;
  }
  return NULL;
}

static status read_operand(parser *p, ptx_operand *o) {
  if (take(p, '[')) {
    TRY(read_address(p, o));
    return need(p, ']');
  }
  if (take(p, '{')) {
    return read_list(p, '}', o);
  }
  if (take(p, '(')) {
    return read_list(p, ')', o);
  }
  if (take(p, '-')) {
    TRY(read_operand(p, o));
    NEED(o->kind == PTX_NUMBER, p, "'-' before what is no number");
    o->value = -o->value;
    return NULL;
  }
  bool negated = take(p, '!');
  TRY(read_word_operand(p, o));
  o->negated = negated;
  return NULL;
}

/* --- instructions --- */

static bool find_op(const char *name, ptx_op *out) {
  static const char *const names[] = {
#define PTX_OP(name) #name,
#define PTX_SCALAR(name) #name,
#include "tests/ptx/ptx_ops.def"
  };
  for (int k = 0; k < PTX_OPS; k++) {
    if (strcmp(names[k], name) == 0) {
      *out = (ptx_op)k;
      return true;
    }
  }
  return false;
}

static bool find_space(const char *w, ptx_space *out) {
  static const char *const names[] = {"", "global", "shared", "local", "param", "const"};
  for (int k = PTX_GLOBAL; k <= PTX_CONST; k++) {
    if (strcmp(names[k], w) == 0) {
      *out = (ptx_space)k;
      return true;
    }
  }
  return false;
}

bool ptx_has(const ptx_instr *i, const char *modifier) {
  for (int k = 0; k < i->n_modifiers; k++) {
    if (strcmp(i->modifiers[k], modifier) == 0) {
      return true;
    }
  }
  return false;
}

/* Divides "ld.global.nc.v2.u64". */
static status read_opcode(parser *p, const char *text, ptx_instr *i) {
  char *copy = arena_strdup(p->arena, text), *rest = NULL, *part = strtok_r(copy, ".", &rest);
  *i = (ptx_instr){.vector = 1, .guard = -1, .text = text, .line = p->line};
  NEED(part && find_op(part, &i->op), p, "the operation of '%s' is unknown", text);
  while ((part = strtok_r(NULL, ".", &rest)) != NULL) {
    ptx_type type;
    if (find_type(part, &type)) {
      NEED(i->n_types < 4, p, "'%s' has too many types", text);
      i->types[i->n_types++] = type;
    } else if (find_space(part, &i->space)) {
    } else if (part[0] == 'v' && isdigit((unsigned char)part[1]) && !part[2]) {
      i->vector = part[1] - '0';
    } else {
      NEED(i->n_modifiers < PTX_MOST_MODIFIERS, p, "'%s' has too many parts", text);
      i->modifiers[i->n_modifiers++] = part;
    }
  }
  return NULL;
}

static status read_operands(parser *p, ptx_instr *i) {
  while (!take(p, ';')) {
    NEED(i->n < PTX_MOST_OPERANDS, p, "'%s' has too many operands", i->text);
    TRY(read_operand(p, &i->operands[i->n++]));
    NEED(take(p, ',') || *p->p == ';', p, "',' or ';' is missing before '%.20s'", p->p);
  }
  return NULL;
}

/* Reads an instruction whose first word was read. */
static status read_instruction(parser *p, const char *first, int64_t guard, bool negated) {
  ptx_instr i;
  TRY(read_opcode(p, first, &i));
  i.guard = guard;
  i.guard_negated = negated;
  TRY(read_operands(p, &i));
  ptx_function *f = p->function;
  *ARENA_PUSH(p->arena, f->code, f->n, f->capacity) = i;
  return NULL;
}

static status read_guarded(parser *p) {
  const char *w;
  uint32_t reg;
  bool negated = take(p, '!');
  TRY(need_word(p, &w));
  NEED(find_register(p, w, &reg), p, "'%s' is unknown", w);
  TRY(need_word(p, &w));
  return read_instruction(p, w, reg, negated);
}

/* --- functions --- */

static status read_registers(parser *p) {
  const char *name;
  TRY(need_word(p, &name)); /* the type, which each instruction tells anew */
  do {
    uint64_t count = 0;
    TRY(need_word(p, &name));
    if (take(p, '<')) {
      TRY(read_number(p, &count));
      TRY(need(p, '>'));
    }
    *ARENA_PUSH(p->arena, p->registers, p->n_registers, p->registers_capacity) =
        (registers){name, p->function->n_registers, (uint32_t)count};
    p->function->n_registers += count ? (uint32_t)count : 1;
  } while (take(p, ','));
  return need(p, ';');
}

/* Reads a local array, or the argument of a call. */
static status read_local(parser *p) {
  size_t align, bytes;
  const char *name;
  uint64_t count;
  TRY(read_layout(p, &align, &bytes));
  TRY(read_name(p, &name, &count));
  define(p, name, PTX_IN_FRAME, extend_frame(p->function, align, bytes * count));
  return need(p, ';');
}

static status skip_to(parser *p, char c) {
  p->p = strchr(p->p, c);
  NEED(p->p, p, "'%c' is missing", c);
  p->p++;
  return NULL;
}

/* Reads what begins with a word in a function: a declaration, a label, an instruction. */
static status read_statement(parser *p, const char *w) {
  if (strcmp(w, ".reg") == 0) {
    return read_registers(p);
  }
  if (strcmp(w, ".local") == 0 || strcmp(w, ".param") == 0) {
    return read_local(p);
  }
  if (*w == '.') { /* .pragma, .loc */
    return skip_to(p, strcmp(w, ".loc") == 0 ? '\n' : ';');
  }
  if (take(p, ':')) {
    *ARENA_PUSH(p->arena, p->labels, p->n_labels, p->labels_capacity) = (label){w, p->function->n};
    return NULL;
  }
  return read_instruction(p, w, -1, false);
}

static ptx_function *find_function(const ptx_module *m, const char *name) {
  for (uint32_t k = 0; k < m->n; k++) {
    if (strcmp(m->functions[k]->name, name) == 0) {
      return m->functions[k];
    }
  }
  return NULL;
}

/* Finds the instructions of labels and the functions of calls. */
static status resolve(parser *p, ptx_instr *i) {
  for (int k = 0; k < i->n; k++) {
    ptx_operand *o = &i->operands[k];
    if (o->kind != PTX_CODE) {
      continue;
    }
    uint32_t j = 0;
    while (j < p->n_labels && strcmp(p->labels[j].name, o->name) != 0) {
      j++;
    }
    i->callee = i->op == PTX_call ? find_function(p->module, o->name) : NULL;
    NEED(j < p->n_labels || i->callee, p, "'%s' is unknown", o->name);
    o->value = j < p->n_labels ? p->labels[j].at : 0;
  }
  return NULL;
}

static status read_body(parser *p) {
  p->n_registers = p->n_labels = 0;
  for (int depth = 1; depth > 0;) {
    if (take(p, '}')) {
      depth--;
    } else if (take(p, '{')) {
      depth++;
    } else if (take(p, '@')) {
      TRY(read_guarded(p));
    } else {
      const char *w;
      TRY(need_word(p, &w));
      TRY(read_statement(p, w));
    }
  }
  for (uint32_t k = 0; k < p->function->n; k++) {
    TRY(resolve(p, &p->function->code[k]));
  }
  return NULL;
}

/* Reads "(.param .u64 name, ...)"; `returned`: what the function returns. */
static status read_parameters(parser *p, bool returned) {
  ptx_function *f = p->function;
  while (!take(p, ')')) {
    const char *w, *name;
    size_t align, bytes;
    uint64_t count;
    TRY(need_word(p, &w));
    NEED(strcmp(w, ".param") == 0, p, "'%s' in a list of parameters", w);
    TRY(read_layout(p, &align, &bytes));
    TRY(read_name(p, &name, &count));
    size_t at = extend_frame(f, align, bytes * count);
    define(p, name, PTX_IN_FRAME, at);
    if (returned) {
      f->returned = at;
      f->returned_bytes = bytes * count;
    } else {
      NEED(f->n_parameters < 64, p, "%s has more than 64 parameters", f->name);
      f->parameters[f->n_parameters] = at;
      f->parameter_bytes[f->n_parameters++] = bytes * count;
    }
    (void)take(p, ',');
  }
  return NULL;
}

/* Skips ".maxntid 256, 1, 1" and its like, which stand between the parameters and the body. */
static void skip_limits(parser *p) {
  skip_space(p);
  while (*p->p && *p->p != '{' && *p->p != ';') {
    p->p++;
  }
}

static status read_function(parser *p, bool is_entry) {
  ptx_function *f = p->function = ARENA_NEW(p->arena, ptx_function);
  p->n_symbols = p->module_symbols;
  *f = (ptx_function){.is_entry = is_entry, .module = p->module};
  if (take(p, '(')) {
    TRY(read_parameters(p, true));
  }
  TRY(need_word(p, &f->name));
  if (take(p, '(')) {
    TRY(read_parameters(p, false));
  }
  skip_limits(p);
  ptx_function *known = find_function(p->module, f->name);
  if (known) { /* it was declared */
    *known = *f;
    p->function = f = known;
  } else {
    *ARENA_PUSH(p->arena, p->module->functions, p->module->n, p->module->capacity) = f;
  }
  if (take(p, ';')) {
    return NULL;
  }
  TRY(need(p, '{'));
  return read_body(p);
}

/* --- the module --- */

/* Reads "= {1, 2}" or "= 1" into the elements of an array. */
static status read_values(parser *p, uint8_t *to, size_t bytes, uint64_t count) {
  bool many = take(p, '{');
  for (uint64_t k = 0; k < count; k++) {
    uint64_t value;
    TRY(read_number(p, &value));
    memcpy(to + k * bytes, &value, bytes);
    if (!take(p, ',')) {
      break;
    }
  }
  return many ? need(p, '}') : NULL;
}

static status read_variable(parser *p, bool is_shared) {
  size_t align, bytes;
  const char *name;
  uint64_t count;
  TRY(read_layout(p, &align, &bytes));
  TRY(read_name(p, &name, &count));
  if (is_shared) {
    ptx_module *m = p->module;
    size_t at = (m->shared_bytes + align - 1) / align * align;
    define(p, name, PTX_IN_SHARED, at);
    m->shared_bytes = at + bytes * count;
  } else {
    uint8_t *data = arena_alloc_aligned(p->arena, bytes * (count ? count : 1), align < 16 ? 16 : align);
    memset(data, 0, bytes * (count ? count : 1));
    define(p, name, PTX_IN_MODULE, (uint64_t)(uintptr_t)data);
    if (take(p, '=')) {
      TRY(read_values(p, data, bytes, count));
    }
  }
  p->module_symbols = p->n_symbols;
  return need(p, ';');
}

static status read_directive(parser *p, const char *w) {
  if (strcmp(w, ".entry") == 0 || strcmp(w, ".func") == 0) {
    return read_function(p, strcmp(w, ".entry") == 0);
  }
  if (strcmp(w, ".shared") == 0 || strcmp(w, ".global") == 0 || strcmp(w, ".const") == 0) {
    p->n_symbols = p->module_symbols;
    return read_variable(p, strcmp(w, ".shared") == 0);
  }
  if (strcmp(w, ".version") == 0 || strcmp(w, ".target") == 0 || strcmp(w, ".address_size") == 0) {
    return skip_to(p, '\n');
  }
  NEED(strcmp(w, ".visible") == 0 || strcmp(w, ".extern") == 0 || strcmp(w, ".weak") == 0, p, "what is '%s'?", w);
  return NULL;
}

status ptx_parse(arena *a, const char *text, ptx_module **out) {
  parser p = {.arena = a, .p = text, .line = 1, .module = ARENA_NEW(a, ptx_module)};
  *p.module = (ptx_module){0};
  for (skip_space(&p); *p.p; skip_space(&p)) {
    const char *w;
    TRY(need_word(&p, &w));
    TRY(read_directive(&p, w));
  }
  *out = p.module;
  return NULL;
}

const ptx_function *ptx_find_entry(const ptx_module *m, const char *name) {
  const ptx_function *f = find_function(m, name);
  return f && f->is_entry ? f : NULL;
}

size_t ptx_parameter_bytes(const ptx_function *f, unsigned k) {
  return k < f->n_parameters ? f->parameter_bytes[k] : 0;
}
