/* check_attention.c - tests what is recognised as attention, and that similar computations are not. */
#include "hlo/analysis/attention.h"

#include "tests/unit/hlo/hlo_case.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* Two heads of three queries and five keys.  The reshapes change nothing, as exporters write them. */
static const char attention[] =
    "(%q: f32[2,3,4], %k: f32[2,5,4], %v: f32[2,5,6], %mask: f32[2,3,5], %other: f32[2,3,5]) {\n"
    "%qk = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : f32[2,3,5]\n"
    "%x = add(%qk, %mask) : f32[2,3,5]\n"
    "%m = reduce(%x) {dimensions=[2], reducer=maximum} : f32[2,3]\n"
    "%ms = broadcast(%m) {dimensions=[0,1]} : f32[2,3,5]\n"
    "%d = subtract(%x, %ms) : f32[2,3,5] %d6 = reshape(%d) : f32[6,5] %d5 = reshape(%d6) : f32[2,3,5]\n"
    "%e = exponential(%d5) : f32[2,3,5]\n"
    "%s = reduce(%e) {dimensions=[2], reducer=add} : f32[2,3]\n"
    "%s1 = reshape(%s) : f32[6] %s2 = reshape(%s1) : f32[2,3]\n"
    "%ss = broadcast(%s2) {dimensions=[0,1]} : f32[2,3,5]\n"
    "%p = divide(%e, %ss) : f32[2,3,5]\n"
    "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : f32[2,3,6]\n"
    "return %pv }";

static bool find(hlo_computation *c) {
  hlo_attention a;
  return hlo_find_attention(c->roots[0].def, 0, &a);
}

static bool is_member(const hlo_attention *a, hlo_op op) {
  bool found = false;
  for (uint32_t k = 0; k < a->n; k++) {
    found = found || a->members[k]->op == op;
  }
  return found;
}

START_TEST(parts_are_captured) {
  hlo_computation *c = parse_entry(memory, attention);
  hlo_attention a;
  ck_assert(hlo_find_attention(c->roots[0].def, 0, &a));
  ck_assert(a.q.def == c->params[0] && a.k.def == c->params[1] && a.v.def == c->params[2]);
  ck_assert(a.batches == 2 && a.rows == 3 && a.keys == 5);
  ck_assert(a.scores.def->op == HLO_ADD && a.exp->op == HLO_EXP && a.qk->op == HLO_DOT && a.root == a.pv);
  ck_assert(a.max->op == HLO_REDUCE && a.shift.def == a.max);
  ck_assert(a.sum->op == HLO_REDUCE && a.total.def->op == HLO_RESHAPE);
  ck_assert_uint_eq(a.n, 12); /* all but the two broadcasts, which are copied into their users */
  ck_assert(is_member(&a, HLO_RESHAPE) && !is_member(&a, HLO_BROADCAST));
}
END_TEST

START_TEST(attention_or_not) {
  static const text_change changes[] = {
      {"add(%qk, %mask)", "multiply(%mask, %qk)", true},
      {"add(%qk, %mask)", "add(%other, %mask)", false}, /* the scores come from no dot */
      {"subtract(%x, %ms)", "subtract(%ms, %x)", false},
      {"subtract(%x, %ms)", "subtract(%qk, %ms)", false}, /* the maximum is that of another array */
      {"subtract(%x, %ms)", "add(%x, %ms)", false},
      {"subtract(%x, %ms)", "subtract(%x, %other)", false},
      {"divide(%e, %ss)", "divide(%ss, %e)", false},
      {"divide(%e, %ss)", "divide(%x, %ss)", false}, /* the sum is that of another array */
      {"divide(%e, %ss)", "multiply(%e, %ss)", false},
      {"divide(%e, %ss)", "divide(%e, %other)", false},
      {"exponential(%d5)", "tanh(%d5)", false},
      {"reducer=maximum", "reducer=minimum", false},
      {"reducer=add", "reducer=maximum", false},
      {"%s = reduce(%e)", "%s = reduce(%x)", false},
      {"%m = reduce(%x)", "%m = reduce(%other)", false},
      {"return %pv", "return %pv, %p", false}, /* the weights have another user */
      {"return %pv", "return %pv, %d6", false},
      {"return %pv", "%n = negate(%x) : f32[2,3,5] return %pv, %n", false},
      {"return %pv", "%n = negate(%ms) : f32[2,3,5] return %pv, %n", false},
  };
  CHECK_CHANGES(memory, attention, changes, find);
}
END_TEST

/* The same with 0 in place of NaN. */
START_TEST(zeros_where_nan) {
  static const char zeros[] =
      "%w = divide(%e, %ss) : f32[2,3,5] %c0 = constant() {value=f32[] 0} : f32[] %isnan = compare(%w, %w) "
      "{comparison=ne} : pred[2,3,5] %zero = broadcast(%c0) {dimensions=[]} : f32[2,3,5] %p = select(%isnan, %zero, "
      "%w) : f32[2,3,5]\n";
  static const text_change changes[] = {
      {"{comparison=ne}", "{comparison=eq}", false},
      {"compare(%w, %w)", "compare(%e, %e)", false},
      {"compare(%w, %w)", "compare(%w, %other)", false},
      {"select(%isnan, %zero, %w)", "select(%isnan, %w, %zero)", false},
      {"value=f32[] 0}", "value=f32[] 1}", false},
      {"return %pv", "return %pv, %w", false},
      {"return %pv", "return %pv, %isnan", false},
      /* the total need not be NaN where a weight is */
      {"%s1 = reshape(%s)", "%n = negate(%s) : f32[2,3] %s1 = reshape(%n)", false},
      {"%ms = broadcast(%m)", "%n = negate(%m) : f32[2,3] %ms = broadcast(%n)", false},
  };
  const char *text = with(memory, attention, "%p = divide(%e, %ss) : f32[2,3,5]\n", zeros);
  hlo_attention a;
  ck_assert(hlo_find_attention(parse_entry(memory, text)->roots[0].def, 0, &a) && a.zero_where_nan);
  ck_assert(is_member(&a, HLO_SELECT) && is_member(&a, HLO_COMPARE));
  ck_assert(hlo_find_attention(parse_entry(memory, attention)->roots[0].def, 0, &a) && !a.zero_where_nan);
  CHECK_CHANGES(memory, text, changes, find);
}
END_TEST

/* The softmax of f16 in f32, as operator Softmax is imported. */
static const char rounded[] =
    "(%q: f16[3,4], %k: f16[5,4], %v: f16[5,6]) {\n"
    "%qk = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f16[3,5]\n"
    "%x = convert(%qk) {saturate=true, rounding=nearest} : f32[3,5]\n"
    "%m = reduce(%x) {dimensions=[1], reducer=maximum} : f32[3]\n"
    "%ms = broadcast(%m) {dimensions=[0]} : f32[3,5]\n%d = subtract(%x, %ms) : f32[3,5]\n"
    "%e = exponential(%d) : f32[3,5]\n%s = reduce(%e) {dimensions=[1], reducer=add} : f32[3]\n"
    "%ss = broadcast(%s) {dimensions=[0]} : f32[3,5]\n%w = divide(%e, %ss) : f32[3,5]\n"
    "%p = convert(%w) {saturate=true, rounding=nearest} : f16[3,5]\n"
    "%pv = dot(%p, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f16[3,6]\nreturn %pv }";

START_TEST(weights_are_rounded) {
  static const text_change changes[] = {
      {"%p = convert(%w)", "%p1 = reshape(%w) : f32[3,5] %p = convert(%p1)", true},
      {"%p = convert(%w)", "%n = convert(%w) {saturate=true, rounding=nearest} : s32[3,5] %p = convert(%n)",
       false}, /* to integers */
      {"%p = convert(%w)", "%n = convert(%ss) {saturate=true, rounding=nearest} : f16[3,5] %p = convert(%ss)", false},
      {"return %pv", "return %pv, %p", false},
      {"return %pv", "return %pv, %w", false},
  };
  hlo_computation *c = parse_entry(memory, rounded);
  hlo_attention a;
  ck_assert(hlo_find_attention(c->roots[0].def, 0, &a));
  ck_assert(is_member(&a, HLO_CONVERT) && a.exp->op == HLO_EXP && a.scores.def->op == HLO_CONVERT);
  ck_assert_uint_eq(a.n, 9); /* all but the two broadcasts */
  CHECK_CHANGES(memory, rounded, changes, find);
}
END_TEST

/* The same with any number of queries, n, and of keys, n+m. */
static const char any_size[] =
    "(%q: f32[b,2,n,4], %k: f32[b,2,n+m,4], %v: f32[b,2,n+m,6], %mask: f32[m], %other: f32[b,2,m,6]) {\n"
    "%qk = dot(%q, %k) {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[3]} : f32[b,2,n,n+m]\n"
    "%x = reshape(%qk) : f32[2*b,n,n+m]\n"
    "%m = reduce(%x) {dimensions=[2], reducer=maximum} : f32[2*b,n]\n"
    "%ms = broadcast(%m) {dimensions=[0,1]} : f32[2*b,n,n+m]\n"
    "%d = subtract(%x, %ms) : f32[2*b,n,n+m]\n"
    "%e = exponential(%d) : f32[2*b,n,n+m]\n"
    "%s = reduce(%e) {dimensions=[2], reducer=add} : f32[2*b,n]\n"
    "%ss = broadcast(%s) {dimensions=[0,1]} : f32[2*b,n,n+m]\n"
    "%p = divide(%e, %ss) : f32[2*b,n,n+m]\n%p4 = reshape(%p) : f32[b,2,n,n+m]\n"
    "%pv = dot(%p4, %v) {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[2]} : f32[b,2,n,6]\n"
    "return %pv }";

START_TEST(sizes_are_symbols) {
  hlo_computation *c = parse_entry(memory, any_size);
  dim_table *t = c->module->dims;
  hlo_attention a;
  dim n = dim_symbol(t, "n"), m = dim_symbol(t, "m");
  ck_assert(hlo_find_attention(c->roots[0].def, 0, &a));
  ck_assert(a.batches == dim_mul(t, 2, dim_symbol(t, "b")) && a.rows == n && a.keys == dim_add(t, n, m));
  static const text_change changes[] = {
      {"{dimensions=[2], reducer=add}", "{dimensions=[2], reducer=maximum}", false},
      {"return %pv", "return %pv, %p4", false},
  };
  CHECK_CHANGES(memory, any_size, changes, find);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("attention");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, parts_are_captured);
  tcase_add_test(t, attention_or_not);
  tcase_add_test(t, zeros_where_nan);
  tcase_add_test(t, weights_are_rounded);
  tcase_add_test(t, sizes_are_symbols);
  return run_suite("attention", t);
}
