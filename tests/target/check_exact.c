/* check_exact.c - operations that ops.def calls exact give the same bits on both targets.  Operations with one operand,
 * and conversions, get all values of types of up to 16 bits; otherwise operands are random bits and special values.
 * The functions that are not exact get all values of 16-bit floats, and their results differ by at most one place. */
#include <check.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "hlo/text/text.h"
#include "tests/suite.h"
#include "tests/target/two_targets.h"

enum { N = 65536, TEXT = 16000 };

/* --- operands --- */

static uint64_t random_state;

static uint64_t random_bits(void) { /* splitmix64 */
  uint64_t z = random_state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

static dtype part_type(dtype t) { return t == DTYPE_C64 ? DTYPE_F32 : t == DTYPE_C128 ? DTYPE_F64 : t; }

static void store_bits(dtype t, void *at, uint64_t bits) {
  const dtype_info *info = dtype_get_info(t);
  if (dtype_is_int(t) || t == DTYPE_PRED) {
    dtype_store_i64(t, at, (int64_t)(t == DTYPE_PRED ? bits & 1 : bits));
  } else {
    bits = info->bits < 8 ? bits & ((1u << info->bits) - 1) : bits;
    memcpy(at, &bits, info->bytes);
  }
}

static void store_special(dtype t, void *at, uint64_t which) {
  static const double values[] = {0,
                                  -0.0,
                                  1,
                                  -1,
                                  2,
                                  0.5,
                                  -1.5,
                                  3,
                                  1e-40,
                                  -1e-310,
                                  5e-324,
                                  65504,
                                  65520,
                                  2147483648.0,
                                  -2147483648.0,
                                  9223372036854775808.0,
                                  3.4028234e38,
                                  1e300,
                                  (double)INFINITY,
                                  -(double)INFINITY,
                                  (double)NAN};
  if (dtype_is_int(t) || t == DTYPE_PRED) {
    store_bits(t, at, which % 4 == 0 ? which >> 62 : which % 4 == 1 ? UINT64_MAX : (uint64_t)1 << (which >> 58));
  } else {
    dtype_store_f64(t, at, values[which % (sizeof values / sizeof *values)], false, DTYPE_ROUND_NEAREST);
  }
}

/* Returns operand `number`.  The elements of operand 0 are all bit patterns of a type of up to 16 bits.  Other elements
 * are random: a quarter are special values, a quarter numbers of common size, the others any bits. */
static literal operand(arena *a, dtype type, uint32_t number) {
  void *data;
  literal l = literal_new(a, shape_make(type, 1, (dim[]){N}), &data);
  dtype part = part_type(type);
  size_t size = dtype_bytes(part), count = N * (dtype_bytes(type) / size);
  for (size_t k = 0; k < count; k++) {
    uint64_t r = random_bits();
    void *at = (char *)data + k * size;
    if (number == 0 && size <= 2) {
      store_bits(part, at, k);
    } else if (r % 4 == 0) {
      store_special(part, at, random_bits());
    } else if (r % 4 == 1 && dtype_is_float(part)) {
      dtype_store_f64(part, at, ((double)(int64_t)random_bits()) * 0x1p-60, false, DTYPE_ROUND_NEAREST);
    } else {
      store_bits(part, at, random_bits());
    }
  }
  return l;
}

/* --- comparison --- */

typedef struct trial {
  const char *text;
  int places; /* by how many values of the type results may differ; 0: they must have the same bits */
  const variant *v;
  char message[600];
} trial;

static bool is_nan(dtype t, const char *at) { return dtype_is_float(t) && isnan(dtype_load_f64(t, at)); }

/* Returns the place of a 16-bit float among all values of the type in ascending order, where 0 has place 0. */
static int place_of(const char *at) {
  uint16_t bits;
  memcpy(&bits, at, sizeof bits);
  return bits & 0x8000 ? -(bits & 0x7fff) : bits;
}

static bool same(const trial *t, dtype part, const char *want, const char *got) {
  if (memcmp(want, got, dtype_bytes(part)) == 0 || (is_nan(part, want) && is_nan(part, got))) {
    return true;
  }
  return t->places > 0 && dtype_bytes(part) == 2 && !is_nan(part, want) && !is_nan(part, got) &&
         abs(place_of(want) - place_of(got)) <= t->places;
}

static const char *number_text(arena *a, const literal *l, size_t k) {
  dtype part = part_type((dtype)l->shape.type);
  size_t size = dtype_bytes(part), each = dtype_bytes((dtype)l->shape.type) / size;
  const char *at = (const char *)l->data + k * each * size, *text = "";
  for (size_t p = 0; p < each; p++, at += size) {
    uint64_t bits = 0;
    memcpy(&bits, at, size);
    text = dtype_is_float(part) ? arena_printf(a, "%s %.17g (%" PRIx64 ")", text, dtype_load_f64(part, at), bits)
                                : arena_printf(a, "%s %" PRId64, text, dtype_load_i64(part, at));
  }
  return text;
}

static void compare(trial *t, arena *a, const hlo_module *m, const literal *in, uint32_t r, const literal *want,
                    const literal *got) {
  dtype type = (dtype)want->shape.type, part = part_type(type);
  size_t size = dtype_bytes(part), each = dtype_bytes(type) / size;
  for (size_t k = 0; k < N * each; k++) {
    if (!same(t, part, (const char *)want->data + k * size, (const char *)got->data + k * size)) {
      const hlo_instr *i = m->entry->roots[r].def;
      const char *operands = "";
      for (uint32_t p = 0; p < m->entry->n_params; p++) {
        operands = arena_printf(a, "%s %s%s,", operands, dtype_name((dtype)in[p].shape.type),
                                number_text(a, &in[p], k / each));
      }
      snprintf(t->message, sizeof t->message, "%s: %s of%s is%s, not%s (%s)", t->v->name, hlo_info(i)->name, operands,
               number_text(a, got, k / each), number_text(a, want, k / each), dtype_name(type));
      return;
    }
  }
}

static status try_it(void *data) {
  trial *t = data;
  arena *a = arena_create(NULL);
  hlo_module *m;
  status s = hlo_parse(a, t->text, strlen(t->text), NULL, &m);
  if (!s) {
    uint32_t n_in = m->entry->n_params, n_out = m->entry->n_roots;
    literal *in = ARENA_NEW_N(a, literal, n_in + 1), *want = ARENA_NEW_N(a, literal, n_out),
            *got = ARENA_NEW_N(a, literal, n_out);
    random_state = 42;
    for (uint32_t k = 0; k < n_in; k++) {
      in[k] = operand(a, hlo_type(hlo_result(m->entry->params[k], 0)), k);
    }
    s = ref_eval_computation(m->entry, in, a, want);
    for (size_t v = 0; v < N_VARIANTS && !s && !*t->message; v++) {
      hlo_module *again; /* compiling changes a module */
      t->v = &variants[v];
      s = hlo_parse(a, t->text, strlen(t->text), NULL, &again);
      s = s ? s : run_on_cpu(a, again, t->v, in, got);
      for (uint32_t k = 0; k < n_out && !s && !*t->message; k++) {
        compare(t, a, m, in, k, &want[k], &got[k]);
      }
    }
  }
  arena_destroy(a);
  return s;
}

/* --- modules --- */

/* The text of a module: instructions that read the parameters %x0, %x1, ..., and each of which is a result. */
typedef struct text {
  char params[300], body[TEXT], root[2000];
  int n, n_body;
} text;

static void add_parameters(text *t, const char *type, int n) {
  for (int k = 0; k < n; k++) {
    sprintf(t->params + strlen(t->params), "%s%%x%d: %s[%d] \"x%d\"", *t->params ? ", " : "", k, type, N, k);
  }
}

/* Adds an instruction: `format` is the text after "%rN = ", and `result` the element type of its result. */
static void add(text *t, const char *result, const char *format, ...) {
  va_list args;
  va_start(args, format);
  t->n_body += snprintf(t->body + t->n_body, sizeof t->body - (size_t)t->n_body, "%%r%d = ", t->n);
  t->n_body += vsnprintf(t->body + t->n_body, sizeof t->body - (size_t)t->n_body, format, args);
  t->n_body += snprintf(t->body + t->n_body, sizeof t->body - (size_t)t->n_body, " : %s[%d]\n", result, N);
  va_end(args);
  ck_assert_int_lt(t->n_body, TEXT);
  sprintf(t->root + strlen(t->root), "%s%%r%d \"r%d\"", t->n ? ", " : "", t->n, t->n);
  t->n++;
}

static void add_each(text *t, const char *type, const char *operands, const char *const *ops) {
  for (; *ops; ops++) {
    add(t, type, "%s(%s)", *ops, operands);
  }
}

static void check(const text *t, int places) {
  static char module[TEXT + 3000];
  int n = snprintf(module, sizeof module, "onnx-xla hlo 1\nmodule \"t\" {\nentry main(%s) {\n%sreturn %s\n}\n}\n",
                   t->params, t->body, t->root);
  ck_assert_int_lt(n, (int)sizeof module);
  trial both = {.text = module, .places = places};
  status s = guard_run(try_it, &both);
  ck_assert_msg(!s, "%s\n%s", status_message(s), module);
  ck_assert_msg(!*both.message, "%s", both.message);
}

static const char *const half[] = {"f16", "bf16"};

START_TEST(one_operand) {
  static const char *const floats[] = {"abs",  "negate", "sign", "ceil", "floor", "round-nearest-even",
                                       "sqrt", "rsqrt",  NULL};
  static const char *const ints[] = {"negate", "not", "sign", NULL}, *const signed_ints[] = {"abs", NULL},
                           *const complex[] = {"negate", NULL};
  dtype type = (dtype)_i;
  const char *name = dtype_name(type);
  if (type == DTYPE_STR || type == DTYPE_PRED) {
    return;
  }
  text t = {0};
  add_parameters(&t, name, 1);
  add_each(&t, name, "%x0", dtype_is_float(type) ? floats : dtype_is_complex(type) ? complex : ints);
  if (dtype_is_signed(type)) {
    add_each(&t, name, "%x0", signed_ints);
  } else if (dtype_is_float(type)) {
    add(&t, "pred", "is-finite(%%x0)");
  } else if (dtype_is_complex(type)) {
    const char *part = dtype_name(part_type(type));
    add(&t, part, "real(%%x0)");
    add(&t, part, "imag(%%x0)");
  }
  check(&t, 0);
}
END_TEST

START_TEST(convert) {
  dtype from = (dtype)_i;
  if (from == DTYPE_STR) {
    return;
  }
  text t = {0};
  add_parameters(&t, dtype_name(from), 1);
  for (dtype to = DTYPE_INVALID + 1; to < DTYPE_COUNT; to++) {
    static const char *const roundings[] = {"nearest", "up", "down"};
    bool small = dtype_is_float(to) && dtype_bytes(to) == 1;
    if (to != from && to != DTYPE_STR && !(dtype_is_complex(from) && !dtype_is_complex(to))) {
      for (int k = 0; k < (to == DTYPE_F8E8M0FNU ? 6 : small ? 2 : 1); k++) {
        add(&t, dtype_name(to), "convert(%%x0) {saturate=%s, rounding=%s}", k % 2 ? "false" : "true", roundings[k / 2]);
      }
    }
  }
  check(&t, 0);
}
END_TEST

START_TEST(two_operands) {
  static const char *const floats[] = {"add",       "subtract", "multiply", "divide",
                                       "remainder", "maximum",  "minimum",  NULL};
  static const char *const ints[] = {"add", "subtract", "multiply", "divide",     "remainder",   "maximum", "minimum",
                                     "and", "or",       "xor",      "shift-left", "shift-right", NULL};
  static const char *const preds[] = {"and", "or", "xor", NULL};
  static const char *const complex[] = {"add", "subtract", "multiply", "divide", NULL};
  static const char *const orders[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  dtype type = (dtype)_i;
  const char *name = dtype_name(type);
  if (type == DTYPE_STR) {
    return;
  }
  text t = {0};
  add_parameters(&t, name, 2);
  add_each(&t, name, "%x0, %x1",
           dtype_is_float(type)     ? floats
           : dtype_is_complex(type) ? complex
           : type == DTYPE_PRED     ? preds
                                    : ints);
  for (int k = 0; k < (dtype_is_complex(type) ? 2 : 6); k++) {
    add(&t, "pred", "compare(%%x0, %%x1) {comparison=%s}", orders[k]);
  }
  check(&t, 0);
}
END_TEST

START_TEST(three_operands) {
  dtype type = (dtype)_i;
  const char *name = dtype_name(type);
  if (type == DTYPE_STR || dtype_is_complex(type)) {
    return;
  }
  text t = {0};
  add_parameters(&t, name, 3);
  add(&t, "pred", "compare(%%x1, %%x2) {comparison=lt}");
  add(&t, name, "select(%%r0, %%x0, %%x2)");
  if (type != DTYPE_PRED) {
    add(&t, name, "clamp(%%x1, %%x0, %%x2)");
  }
  check(&t, 0);
}
END_TEST

/* The functions are computed in f32 with an error of some ULP and then rounded to the type.  So a value near the middle
 * between two values of the type may be rounded to either of them. */
START_TEST(functions) {
  static const char *const ops[] = {"exponential", "exponential-minus-one",
                                    "log",         "log-plus-one",
                                    "sine",        "cosine",
                                    "tan",         "asin",
                                    "acos",        "atan",
                                    "sinh",        "cosh",
                                    "tanh",        "asinh",
                                    "acosh",       "atanh",
                                    "erf",         "logistic",
                                    NULL};
  text t = {0};
  add_parameters(&t, half[_i], 1);
  add_each(&t, half[_i], "%x0", ops);
  check(&t, 1);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("exact");
  tcase_set_timeout(c, 300);
  tcase_add_loop_test(c, one_operand, 1, DTYPE_COUNT);
  tcase_add_loop_test(c, convert, 1, DTYPE_COUNT);
  tcase_add_loop_test(c, two_operands, 1, DTYPE_COUNT);
  tcase_add_loop_test(c, three_operands, 1, DTYPE_COUNT);
  tcase_add_loop_test(c, functions, 0, 2);
  return run_suite("exact", c);
}
