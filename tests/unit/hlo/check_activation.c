/* check_activation.c - tests which operations on one array are recognised as an activation, and that similar ones are
 * not. */
#include "hlo/analysis/activation.h"

#include "tests/unit/hlo/hlo_case.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* %x is computed, since only what an instruction computes can have an activation, not a parameter. */
#define BEGIN                                                                                              \
  "(%a: f32[4], %other: f32[4]) { %x = negate(%a) : f32[4] %one = constant() {value=f32[] 1} : f32[]\n"    \
  "%ones = broadcast(%one) {dimensions=[]} : f32[4] %half = constant() {value=f32[] 0.5} : f32[]\n"        \
  "%halves = broadcast(%half) {dimensions=[]} : f32[4] %k = constant() {value=f32[] 0.70710677} : f32[]\n" \
  "%ks = broadcast(%k) {dimensions=[]} : f32[4] %l = constant() {value=f32[] 0.044715} : f32[]\n"          \
  "%ls = broadcast(%l) {dimensions=[]} : f32[4] %m = constant() {value=f32[] 0.7978846} : f32[]\n"         \
  "%ms = broadcast(%m) {dimensions=[]} : f32[4] %r = constant() {value=f32[] 1.4142135} : f32[]\n"         \
  "%rs = broadcast(%r) {dimensions=[]} : f32[4] %three = constant() {value=f32[] 3} : f32[]\n"             \
  "%threes = broadcast(%three) {dimensions=[]} : f32[4] %six = constant() {value=f32[] 6} : f32[]\n"       \
  "%sixes = broadcast(%six) {dimensions=[]} : f32[4] %zero = constant() {value=f32[] 0} : f32[]\n"

static bool find_activation(hlo_computation *c, hlo_activation *a) {
  return hlo_find_activation(c->first->next->next, NULL, NULL, a) &&
         hlo_value_equal(c->roots[0], hlo_result(a->members[a->n - 1], 0));
}

/* Returns true if the result of c is recognised as an activation of this kind. */
static bool finds(hlo_computation *c, hlo_activation_kind kind) {
  hlo_activation a;
  return find_activation(c, &a) && a.kind == kind;
}
static bool find_swish(hlo_computation *c) { return finds(c, HLO_SWISH); }
static bool find_gelu_erf(hlo_computation *c) { return finds(c, HLO_GELU_ERF); }
static bool find_gelu_tanh(hlo_computation *c) { return finds(c, HLO_GELU_TANH); }
static bool find_hard_swish(hlo_computation *c) { return finds(c, HLO_HARD_SWISH); }

/* --- x * logistic(alpha * x) --- */

static const char swish[] =
    BEGIN "%s = multiply(%x, %threes) : f32[4] %t = logistic(%s) : f32[4] %y = multiply(%x, %t) : f32[4] return %y }";

START_TEST(alpha_and_members_of_swish) {
  hlo_activation a;
  ck_assert(find_activation(parse_entry(memory, swish), &a));
  ck_assert(a.alpha == 3 && a.n == 3);
  ck_assert(a.members[0]->op == HLO_MUL && a.members[1]->op == HLO_LOGISTIC && a.members[2]->op == HLO_MUL);
  const char *without =
      with(memory, swish, "%s = multiply(%x, %threes) : f32[4] %t = logistic(%s)", "%t = logistic(%x)");
  ck_assert(find_activation(parse_entry(memory, without), &a));
  ck_assert(a.alpha == 1 && a.n == 2);
}
END_TEST

START_TEST(swish_or_not) {
  static const text_change changes[] = {
      {"multiply(%x, %t)", "multiply(%t, %x)", true},
      {"multiply(%x, %threes)", "multiply(%threes, %x)", true},
      {"multiply(%x, %threes)", "divide(%x, %threes)", true},
      {"multiply(%x, %threes)", "divide(%threes, %x)", false},
      {"multiply(%x, %threes)", "add(%x, %threes)", false},
      {"multiply(%x, %t)", "multiply(%other, %t)", false},
      {"multiply(%x, %t)", "multiply(%s, %t)", false}, /* 3 x */
      {"multiply(%x, %t)", "add(%x, %t)", false},
      {"multiply(%x, %t)", "divide(%x, %t)", false},
      {"return %y", "return %y, %t", false}, /* a value inside of the activation has another user */
      {"return %y", "return %y, %x", false},
      {"return %y", "%n = tanh(%t) : f32[4] return %y, %n", false},
      {"return %y", "%n = add(%x, %other) : f32[4] return %y, %n", false},
      {"%y = multiply", "%i = add(%t, %ones) : f32[4] %y = multiply", false}, /* %t has another user, although
                                                                                 nothing uses %i */
  };
  CHECK_CHANGES(memory, swish, changes, find_swish);
}
END_TEST

/* --- x * (1 + erf(x / sqrt 2)) / 2 --- */

static const char gelu_erf[] = BEGIN
    "%s = multiply(%x, %ks) : f32[4] %t = erf(%s) : f32[4] %g = add(%t, %ones) : f32[4]\n"
    "%h = multiply(%x, %halves) : f32[4] %y = multiply(%h, %g) : f32[4] return %y }";

START_TEST(gelu_by_erf_or_not) {
  static const text_change changes[] = {
      {"multiply(%h, %g)", "multiply(%g, %h)", true},
      {"add(%t, %ones)", "add(%ones, %t)", true},
      {"multiply(%x, %ks)", "divide(%x, %rs)", true},
      {"multiply(%x, %ks)", "multiply(%x, %ms)", false},
      {"multiply(%x, %ks)", "multiply(%other, %ks)", false},
      {"multiply(%x, %ks)", "multiply(%x, %x)", false},
      {"add(%t, %ones)", "add(%t, %halves)", false},
      {"add(%t, %ones)", "subtract(%t, %ones)", false},
      {"add(%t, %ones)", "add(%t, %t)", false},
      {"multiply(%x, %halves)", "multiply(%x, %ones)", false},
      {"multiply(%x, %halves)", "multiply(%x, %x)", false},
      {"erf(%s)", "tanh(%s)", false},
      {"return %y", "return %y, %g", false},
      /* (x + x t) / 2 and x / 2 + x / 2 t, with everything multiplied out */
      {"%g = add(%t, %ones) : f32[4]\n%h = multiply(%x, %halves) : f32[4] %y = multiply(%h, %g)",
       "%g = multiply(%t, %x) : f32[4]\n%h = add(%x, %g) : f32[4] %y = multiply(%h, %halves)", true},
      {"%g = add(%t, %ones) : f32[4]\n%h = multiply(%x, %halves) : f32[4] %y = multiply(%h, %g)",
       "%h = multiply(%x, %halves) : f32[4] %g = multiply(%h, %t) : f32[4] %y = add(%h, %g)", true},
      {"%g = add(%t, %ones) : f32[4]\n%h = multiply(%x, %halves) : f32[4] %y = multiply(%h, %g)",
       "%h = multiply(%x, %halves) : f32[4] %g = multiply(%h, %t) : f32[4] %y = subtract(%h, %g)", false},
      /* erf of two different arguments */
      {"%g = add(%t, %ones)", "%u = erf(%x) : f32[4] %g = add(%t, %u)", false},
  };
  CHECK_CHANGES(memory, gelu_erf, changes, find_gelu_erf);
}
END_TEST

/* --- x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) / 2 --- */

static const char gelu_tanh[] = BEGIN
    "%q = multiply(%x, %x) : f32[4] %c = multiply(%q, %x) : f32[4] %d = multiply(%c, %ls) : f32[4]\n"
    "%e = add(%x, %d) : f32[4] %s = multiply(%e, %ms) : f32[4] %t = tanh(%s) : f32[4] %g = add(%t, %ones) : f32[4]\n"
    "%h = multiply(%x, %g) : f32[4] %y = multiply(%h, %halves) : f32[4] return %y }";

START_TEST(gelu_by_tanh_or_not) {
  static const text_change changes[] = {
      {"add(%x, %d)", "add(%d, %x)", true},
      {"%q = multiply(%x, %x) : f32[4] %c = multiply(%q, %x)", "%c = power(%x, %threes)", true},
      {"%q = multiply(%x, %x) : f32[4] %c = multiply(%q, %x)", "%c = power(%x, %sixes)", false},
      {"%q = multiply(%x, %x) : f32[4] %c = multiply(%q, %x)", "%c = power(%threes, %x)", false},
      {"multiply(%q, %x)", "multiply(%q, %q)", false}, /* x^4 */
      {"multiply(%c, %ls)", "multiply(%c, %ms)", false},
      {"multiply(%e, %ms)", "multiply(%e, %ks)", false},
      {"add(%x, %d)", "subtract(%x, %d)", false},
      {"tanh(%s)", "erf(%s)", false},
      {"multiply(%h, %halves)", "multiply(%h, %ones)", false},
      {"return %y", "return %y, %q", false},
  };
  CHECK_CHANGES(memory, gelu_tanh, changes, find_gelu_tanh);
}
END_TEST

/* --- x * min(max(x/6 + 1/2, 0), 1) --- */

static const char hard_swish[] = BEGIN
    "%s = add(%x, %threes) : f32[4] %t = clamp(%zero, %s, %six) : f32[4] %g = multiply(%x, %t) : f32[4]\n"
    "%y = divide(%g, %sixes) : f32[4] return %y }";

START_TEST(hard_swish_or_not) {
  static const text_change changes[] = {
      {"multiply(%x, %t)", "multiply(%t, %x)", true},
      {"clamp(%zero, %s, %six)", "clamp(%one, %s, %six)", false},
      {"clamp(%zero, %s, %six)", "clamp(%zero, %s, %three)", false},
      {"clamp(%zero, %s, %six)", "clamp(%zero, %s, %x)", false},
      {"add(%x, %threes)", "add(%x, %ones)", false},
      {"add(%x, %threes)", "multiply(%x, %threes)", false},
      {"divide(%g, %sixes)", "divide(%sixes, %g)", false},
      {"divide(%g, %sixes)", "divide(%g, %threes)", false},
      {"return %y", "return %y, %s", false},
  };
  CHECK_CHANGES(memory, hard_swish, changes, find_hard_swish);
}
END_TEST

/* Each constant may differ by one rounding of f32, but not by more. */
START_TEST(constants_are_close) {
  static const text_change changes[] = {{"0.70710677", "0.7071068", true}, {"0.70710677", "0.70711", false}};
  CHECK_CHANGES(memory, gelu_erf, changes, find_gelu_erf);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("activation");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, alpha_and_members_of_swish);
  tcase_add_test(t, swish_or_not);
  tcase_add_test(t, gelu_by_erf_or_not);
  tcase_add_test(t, gelu_by_tanh_or_not);
  tcase_add_test(t, hard_swish_or_not);
  tcase_add_test(t, constants_are_close);
  return run_suite("activation", t);
}
