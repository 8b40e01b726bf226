/* op_types.c - finds the rows of onnx_types.def and checks the types of a node's inputs against them. */
#include "frontend/operators/op_types.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DOMAIN(id, name) static const char id[] = name;
#include "frontend/model/onnx_domains.def"
#undef DOMAIN

static const onnx_op_types rows[] = {
#define TYPES(domain, name, since, inputs, outputs, types) {domain, name, since, inputs, outputs, types},
#include "frontend/operators/onnx_types.def"
#undef TYPES
};

static int compare(const void *x, const void *y) {
  const onnx_op_types *a = x, *b = y;
  int by_domain = strcmp(a->domain, b->domain), by_name = strcmp(a->name, b->name);
  return by_domain ? by_domain : by_name ? by_name : (a->since > b->since) - (a->since < b->since);
}

const onnx_op_types *onnx_op_types_of(const onnx_op_row *row) {
  onnx_op_types key = {.domain = row->domain, .name = row->name, .since = row->since};
  return bsearch(&key, rows, sizeof rows / sizeof *rows, sizeof *rows, compare);
}

const onnx_op_types *onnx_op_types_rows(uint32_t *n) {
  *n = sizeof rows / sizeof *rows;
  return rows;
}

/* --- parsing the texts of the rows --- */

typedef struct part {
  const char *text;
  size_t n;
} part;

static bool same_text(part p, part q) { return p.n == q.n && memcmp(p.text, q.text, p.n) == 0; }
static bool is_text(part p, const char *text) { return same_text(p, (part){text, strlen(text)}); }

/* Splits off the part of *list before the next character that is in `ends`, and skips that character and the blanks
 * after it.  Returns false if *list was empty. */
static bool next_part(part *list, const char *ends, part *out) {
  *out = (part){list->text, 0};
  while (out->n < list->n && !strchr(ends, out->text[out->n])) {
    out->n++;
  }
  bool found = list->n > 0;
  size_t used = out->n < list->n ? out->n + 1 : out->n;
  while (used < list->n && list->text[used] == ' ') {
    used++;
  }
  *list = (part){list->text + used, list->n - used};
  return found;
}

/* A formal input or output, as the standard lists it. */
typedef struct formal {
  part name, type;
  bool alone;  /* whether it is a variadic input or output whose values may have different types */
  uint32_t of; /* the index of the value among those of a variadic input; 0 if it is not variadic */
} formal;

/* Finds the formal input that describes input k of a node; a variadic one, which comes last, describes all inputs
 * from its position on.  Returns false if there is none. */
static bool formal_at(const char *text, uint32_t k, formal *out) {
  part list = {text, strlen(text)}, entry, name;
  for (uint32_t j = 0; next_part(&list, " ", &entry); j++) {
    (void)next_part(&entry, ":", &name);
    *out = (formal){name, entry, entry.text[entry.n - 1] == '*', k - j};
    bool many = out->alone || entry.text[entry.n - 1] == '.';
    out->type.n -= out->alone ? 1 : many ? strlen("...") : 0;
    if (j == k || many) {
      return true;
    }
  }
  return false;
}

/* Returns the name of an input for messages: "X", or "inputs[2]" for the third value of a variadic input. */
static const char *label(arena *a, const formal *f) {
  const char *name = arena_printf(a, "%.*s", (int)f->name.n, f->name.text);
  return f->of ? arena_printf(a, "%s[%" PRIu32 "]", name, f->of) : name;
}

/* --- types as bits --- */

#define BIT(id) ((uint64_t)1 << DTYPE_##id)
#define INTS (BIT(S8) | BIT(S16) | BIT(S32) | BIT(S64) | BIT(U8) | BIT(U16) | BIT(U32) | BIT(U64))
#define FLOATS (BIT(F16) | BIT(F32) | BIT(F64))
#define COMPLEX (BIT(C64) | BIT(C128))
/* The bits of sequences of any element type, and of optionals without an element. */
#define SEQUENCE ((uint64_t)1 << 63)
#define ABSENT ((uint64_t)1 << 62)
_Static_assert(DTYPE_COUNT <= 62, "every element type has a bit below ABSENT's");

static uint64_t types_of_word(part word) {
  static const struct group {
    const char *name;
    uint64_t types;
  } groups[] = {
      {"any", BIT(PRED) | BIT(STR) | INTS | FLOATS | COMPLEX},
      {"ints", INTS},
      {"floats", FLOATS},
      {"complex", COMPLEX},
      {"f8", BIT(F8E4M3FN) | BIT(F8E4M3FNUZ) | BIT(F8E5M2) | BIT(F8E5M2FNUZ)},
      {"f6", BIT(F6E2M3FN) | BIT(F6E3M2FN)},
      {"seq", SEQUENCE},
      {"opt", ABSENT},
  };
  for (size_t k = 0; k < sizeof groups / sizeof *groups; k++) {
    if (is_text(word, groups[k].name)) {
      return groups[k].types;
    }
  }
  dtype t = dtype_from_name(word.text, word.n); /* DTYPE_INVALID for map and sparse */
  return t == DTYPE_INVALID ? 0 : (uint64_t)1 << t;
}

static uint64_t types_of_words(part words) {
  uint64_t types = 0;
  for (part word; next_part(&words, " ", &word);) {
    types |= types_of_word(word);
  }
  /* an optional that has an element is that element, of any type */
  return types == ABSENT ? UINT64_MAX : types;
}

/* Returns the set of types that a type variable of the row allows.  `variable` may also be the name of a type; then the
 * set has only that type. */
static uint64_t types_of(const onnx_op_types *row, part variable) {
  part list = {row->types, strlen(row->types)}, entry, names, name;
  while (next_part(&list, ";", &entry)) {
    (void)next_part(&entry, "=", &names);
    while (next_part(&names, ",", &name)) {
      if (same_text(name, variable)) {
        return types_of_words(entry);
      }
    }
  }
  return types_of_words(variable);
}

static const char *names_of(arena *a, uint64_t types) {
  const char *text = "";
  for (int t = 0; t < DTYPE_COUNT; t++) {
    if (types >> t & 1) {
      text = arena_printf(a, "%s%s%s", text, *text ? ", " : "", dtype_name((dtype)t));
    }
  }
  text = types & SEQUENCE ? arena_printf(a, "%s%ssequences", text, *text ? ", " : "") : text;
  return types & ABSENT ? arena_printf(a, "%s%soptionals", text, *text ? ", " : "") : text;
}

static uint64_t type_of_value(hlo_value v) {
  switch (hlo_shape(v)->kind) {
    case SHAPE_SEQUENCE: return SEQUENCE;
    case SHAPE_OPTIONAL: return ABSENT;
    default: return (uint64_t)1 << hlo_type(v);
  }
}

/* --- checking --- */

/* For each type variable of an operator, the first input that has it as its type.  All other inputs with that type
 * variable must have the same element type. */
enum { VARIABLES_MAX = 8 };
typedef struct variables {
  uint32_t n;
  struct {
    formal input;
    hlo_value value;
  } items[VARIABLES_MAX];
} variables;

static status check_alike(arena *a, const dim_table *dims, variables *seen, const formal *f, hlo_value v) {
  uint32_t k = 0;
  while (k < seen->n && !same_text(seen->items[k].input.type, f->type)) {
    k++;
  }
  if (k < seen->n) {
    CHECK_THAT(hlo_type(v) == hlo_type(seen->items[k].value), STATUS_INVALID_MODEL,
               "%s is %s but %s is %s; the types differ", label(a, f), SHAPE_STR(dims, hlo_shape(v)),
               label(a, &seen->items[k].input), SHAPE_STR(dims, hlo_shape(seen->items[k].value)));
  } else if (k < VARIABLES_MAX) {
    seen->items[k].input = *f;
    seen->items[k].value = v;
    seen->n++;
  }
  return NULL;
}

status onnx_check_types(arena *a, const onnx_op_row *row, uint32_t n, const hlo_value *in, const dim_table *dims) {
  const onnx_op_types *types = onnx_op_types_of(row);
  variables seen = {0};
  formal f;
  for (uint32_t k = 0; !types && k < n; k++) {
    CHECK_THAT(!in[k].def || hlo_shape(in[k])->kind == SHAPE_ARRAY, STATUS_INVALID_MODEL,
               "input %" PRIu32
               " is %s; a tensor is "
               "needed",
               k, SHAPE_STR(dims, hlo_shape(in[k])));
  }
  for (uint32_t k = 0; types && k < n && formal_at(types->inputs, k, &f); k++) {
    if (!in[k].def) {
      continue;
    }
    uint64_t allowed = types_of(types, f.type);
    CHECK_THAT(allowed & type_of_value(in[k]), STATUS_INVALID_MODEL, "%s is %s; version %d takes %s", label(a, &f),
               SHAPE_STR(dims, hlo_shape(in[k])), row->since, names_of(a, allowed));
    if (!f.alone) {
      TRY(check_alike(a, dims, &seen, &f, in[k]));
    }
  }
  return NULL;
}
