/* check_softmax.c - tests which steps are recognised as those of a softmax (hlo/analysis/softmax.h). */
#include "hlo/analysis/softmax.h"
#include "tests/unit/hlo/hlo_case.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* Returns the first instruction of c with the operation `op`. */
static const hlo_instr *first_of(const hlo_computation *c, hlo_op op) {
  for (const hlo_instr *i = c->first; i; i = i->next) {
    if (i->op == op) {
      return i;
    }
  }
  ck_abort_msg("the instruction is not there");
}

static hlo_row_space space_of(const hlo_computation *c) {
  hlo_row_space s;
  ck_assert(hlo_row_space_of(first_of(c, HLO_REDUCE), &s));
  return s;
}

#define BEGIN "(%x: f32[4,6], %o: f32[4,6], %r: f32[4]) {\n%m = reduce(%x) {dimensions=[1], reducer=maximum} : f32[4]\n"
#define SHIFT                                                                      \
  "%k = reshape(%m) : f32[4,1] %b = broadcast(%k) {dimensions=[0,1]} : f32[4,6]\n" \
  "%c = subtract(%x, %b) : f32[4,6]\n"
#define RAISE                                                                                \
  "%e = exponential(%c) : f32[4,6] %s = reduce(%e) {dimensions=[1], reducer=add} : f32[4]\n" \
  "%t = broadcast(%s) {dimensions=[0]} : f32[4,6]\n"

static const char softmax[] = BEGIN SHIFT RAISE "%y = divide(%e, %t) : f32[4,6]\nreturn %y }";

static bool finds_exponential(hlo_computation *c) {
  hlo_row_space s = space_of(c);
  return hlo_is_softmax_exponential(&s, first_of(c, HLO_EXP));
}

START_TEST(exponentials) {
  static const text_change changes[] = {
      {"subtract(%x, %b)", "subtract(%o, %b)", false},
      {"subtract(%x, %b)", "subtract(%b, %x)", false},
      {"subtract(%x, %b)", "add(%x, %b)", false},
      {"reducer=maximum", "reducer=minimum", false},
      {"reduce(%x) {dimensions=[1], reducer=maximum}", "reduce(%o) {dimensions=[1], reducer=maximum}", false},
      {"reshape(%m)", "reshape(%r)", false},
      {"return %y", "return %y, %m", true},
      {"return %y", "return %c", true},
  };
  CHECK_CHANGES(memory, softmax, changes, finds_exponential);
}
END_TEST

static bool finds_quotient(hlo_computation *c) {
  hlo_row_space s = space_of(c);
  return hlo_is_softmax_quotient(&s, first_of(c, HLO_DIV));
}

START_TEST(quotients) {
  static const text_change changes[] = {
      {"divide(%e, %t)", "divide(%t, %e)", false},
      {"divide(%e, %t)", "divide(%c, %t)", false},
      {"divide(%e, %t)", "divide(%e, %b)", false},
      {"reduce(%e) {dimensions=[1], reducer=add}", "reduce(%e) {dimensions=[1], reducer=maximum}", false},
      {"reduce(%e) {dimensions=[1], reducer=add}", "reduce(%c) {dimensions=[1], reducer=add}", false},
      {"subtract(%x, %b)", "subtract(%o, %b)", false},
      {"return %y", "return %y, %s, %m", true},
  };
  CHECK_CHANGES(memory, softmax, changes, finds_quotient);
}
END_TEST

static bool ignores_nan(hlo_computation *c) {
  hlo_row_space s = space_of(c);
  return hlo_maximum_may_ignore_nan(&s, first_of(c, HLO_REDUCE));
}

START_TEST(maxima_of_softmax) {
  static const text_change changes[] = {
      {"return %y", "return %y, %s", true}, /* the sum is NaN in any case */
      {"return %y", "return %y, %m", false},
      {"return %y", "return %y, %k", false},
      {"return %y", "return %y, %b", false},
      {"return %y", "return %y, %c", false},
      {"return %y", "return %y, %e", false},
      {"return %y", "%z = add(%e, %o) : f32[4,6] return %y, %z", false},
      {"return %y", "%z = log(%s) : f32[4] %v = add(%z, %m) : f32[4] return %y, %v", false},
      {"subtract(%x, %b)", "subtract(%o, %b)", false},
      {"divide(%e, %t)", "divide(%e, %o)", false},
  };
  CHECK_CHANGES(memory, softmax, changes, ignores_nan);
}
END_TEST

static const char logarithm[] = BEGIN SHIFT RAISE
    "%l = log(%s) : f32[4] %v = broadcast(%l) {dimensions=[0]} : f32[4,6]\n"
    "%y = subtract(%c, %v) : f32[4,6]\nreturn %y }";

START_TEST(maxima_of_logarithms) {
  static const text_change changes[] = {
      {"subtract(%c, %v)", "subtract(%c, %t)", false}, {"subtract(%c, %v)", "subtract(%v, %c)", false},
      {"subtract(%c, %v)", "maximum(%c, %v)", false},  {"log(%s)", "log(%r)", false},
      {"exponential(%c)", "exponential(%o)", false},   {"return %y", "return %y, %c", false},
  };
  CHECK_CHANGES(memory, logarithm, changes, ignores_nan);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("softmax");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, exponentials);
  tcase_add_test(t, quotients);
  tcase_add_test(t, maxima_of_softmax);
  tcase_add_test(t, maxima_of_logarithms);
  return run_suite("softmax", t);
}
