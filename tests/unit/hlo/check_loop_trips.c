/* check_loop_trips.c - which loops have a known number of iterations, and what it is. */
#include <check.h>
#include <string.h>

#include "hlo/analysis/loop_trips.h"
#include "tests/suite.h"
#include "tests/unit/hlo/hlo_case.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }

static void teardown(void) { arena_destroy(memory); }

/* Returns the instruction `while` of a new module, which has this condition, this body and these operands. */
static const hlo_instr *loop(const char *condition, const char *body, const char *start) {
  hlo_module *m;
  const char *text =
      arena_printf(memory,
                   "onnx-xla hlo 1\nmodule \"m\" {\n"
                   "computation go(%%i: s64[], %%e: s64[], %%x: f32[]) {\n  %s\n  return %%p\n}\n"
                   "computation step(%%i: s64[], %%e: s64[], %%x: f32[]) {\n"
                   "  %%o = constant() {value=s64[] 1} : s64[]\n"
                   "  %%t = constant() {value=s64[] 2} : s64[]\n"
                   "  %%y = add(%%x, %%x) : f32[]\n  %s\n}\n"
                   "entry main(%%a: f32[n,7], %%x: f32[], %%s: s64[]) {\n  %s\n"
                   "  %%j, %%f, %%y = while(%%i, %%e, %%x) {computations=[go, step]} : s64[], s64[], f32[]\n"
                   "  return %%y\n}\n}\n",
                   condition, body, start);
  ASSERT_OK(hlo_parse(memory, text, strlen(text), NULL, &m));
  const hlo_instr *i = m->entry->first;
  while (i->op != HLO_WHILE) {
    i = i->next;
  }
  return i;
}

#define CONSTANT(name, value) "%" name " = constant() {value=s64[] " value "} : s64[]\n"
#define LESS "%p = compare(%i, %e) {comparison=lt} : pred[]"
#define COUNT "%j = add(%i, %o) : s64[]\n  return %j, %e, %y"
#define SIZE(name, size) \
  "%" name "1 = sizes() {elements=[" size "]} : s64[1]\n  %" name " = reshape(%" name "1) : s64[]\n"

START_TEST(known) {
  static const struct {
    const char *condition, *body, *start;
    int64_t trips;
  } cases[] = {
      {LESS, COUNT, CONSTANT("i", "0") CONSTANT("e", "5"), 5},
      {LESS, COUNT, CONSTANT("i", "3") CONSTANT("e", "5"), 2},
      {LESS, COUNT, CONSTANT("i", "-3") CONSTANT("e", "5"), 8},
      {LESS, COUNT, CONSTANT("i", "5") CONSTANT("e", "5"), 0},
      {LESS, COUNT, CONSTANT("i", "7") CONSTANT("e", "-5"), 0},
      {LESS, "%j = add(%o, %i) : s64[]\n  return %j, %e, %y", CONSTANT("i", "0") CONSTANT("e", "5"), 5},
      {CONSTANT("c", "9") "  %p = compare(%i, %c) {comparison=lt} : pred[]", COUNT,
       CONSTANT("i", "1") CONSTANT("e", "5"), 8},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    dim trips;
    ck_assert(hlo_loop_trips(loop(cases[k].condition, cases[k].body, cases[k].start), &trips));
    ck_assert_int_eq(trips, cases[k].trips);
  }
}
END_TEST

static dim seven(void *data, dim symbol) {
  (void)data, (void)symbol;
  return 7;
}

START_TEST(sizes) {
  dim trips;
  const hlo_instr *i = loop(LESS, COUNT, CONSTANT("i", "2") SIZE("e", "n"));
  ck_assert(hlo_loop_trips(i, &trips));
  ck_assert_int_lt(trips, 0); /* trips is an expression, not a number */
  ck_assert_int_eq(dim_substitute(i->parent->module->dims, trips, seven, NULL), 5);
}
END_TEST

START_TEST(unknown) {
  static const char *const cases[][3] = {
      {LESS, COUNT, CONSTANT("i", "0") "%e = add(%s, %s) : s64[]"},
      {LESS, COUNT, CONSTANT("e", "9") "%i = add(%s, %s) : s64[]"},
      {LESS, "%j = add(%i, %t) : s64[]\n  return %j, %e, %y", CONSTANT("i", "0") CONSTANT("e", "5")},
      {LESS, "%j = subtract(%i, %o) : s64[]\n  return %j, %e, %y", CONSTANT("i", "0") CONSTANT("e", "5")},
      {LESS, "%j = add(%e, %o) : s64[]\n  return %j, %e, %y", CONSTANT("i", "0") CONSTANT("e", "5")},
      {LESS, "%j = add(%i, %o) : s64[]\n  %f = add(%e, %o) : s64[]\n  return %j, %f, %y",
       CONSTANT("i", "0") CONSTANT("e", "5")},
      {"%p = compare(%i, %e) {comparison=le} : pred[]", COUNT, CONSTANT("i", "0") CONSTANT("e", "5")},
      {"%p = compare(%e, %i) {comparison=lt} : pred[]", COUNT, CONSTANT("i", "0") CONSTANT("e", "5")},
      {"%l = compare(%i, %e) {comparison=lt} : pred[]\n  %g = compare(%x, %x) {comparison=lt} : pred[]\n"
       "  %p = and(%l, %g) : pred[]",
       COUNT, CONSTANT("i", "0") CONSTANT("e", "5")},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    dim trips;
    ck_assert_msg(!hlo_loop_trips(loop(cases[k][0], cases[k][1], cases[k][2]), &trips), "case %zu", k);
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("loop trips");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, known);
  tcase_add_test(t, sizes);
  tcase_add_test(t, unknown);
  return run_suite("loop trips", t);
}
