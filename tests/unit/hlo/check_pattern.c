/* check_pattern.c - tests what each kind of pattern matches and refuses, what is captured, and how long matching
 * takes. */
#include "hlo/analysis/pattern.h"

#include "hlo/ir/builder.h"
#include "tests/unit/hlo/hlo_case.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* Return the first root of the entry, and its parameter k. */
static hlo_value root_of(const hlo_computation *c) { return c->roots[0]; }
static hlo_value param(const hlo_computation *c, uint32_t k) { return hlo_result(c->params[k], 0); }
static bool equal(hlo_value a, hlo_value b) { return hlo_value_equal(a, b); }

/* --- operations --- */

START_TEST(operands_match_in_their_order) {
  hlo_computation *c = parse_entry(memory, "(%x: f32[4], %y: f32[4]) { %d = subtract(%x, %y) : f32[4] return %d }");
  hlo_value x = param(c, 0), y = param(c, 1), left = {0}, right = {0}, d = {0};
  ck_assert(hlo_match(root_of(c), P_AS(&d, P_OP(HLO_SUB, P_ANY(&left), P_ANY(&right)))));
  ck_assert(equal(d, root_of(c)) && equal(left, x) && equal(right, y));
  ck_assert(hlo_match(root_of(c), P_OP(HLO_SUB, P_SAME(&x), P_SAME(&y))));
  ck_assert(!hlo_match(root_of(c), P_OP(HLO_SUB, P_SAME(&y), P_SAME(&x))));
  ck_assert(!hlo_match(root_of(c), P_OP(HLO_ADD, P_SAME(&x), P_SAME(&y))));
}
END_TEST

START_TEST(the_number_of_operands_counts) {
  hlo_computation *c =
      parse_entry(memory, "(%x: f32[2]) { %c = concatenate(%x, %x, %x) {dimension=0} : f32[6] return %c }");
  hlo_value x;
  ck_assert(hlo_match(root_of(c), P_OP(HLO_CONCAT, P_ANY(&x), P_SAME(&x), P_SAME(&x))));
  ck_assert(!hlo_match(root_of(c), P_OP(HLO_CONCAT, P_ANY(&x), P_SAME(&x))));
  ck_assert(!hlo_match(root_of(c), P_COMMUTE(HLO_CONCAT, P_ANY(&x), P_SAME(&x))));
}
END_TEST

/* x * tanh(x + y * z) with the operands of each operation in both orders. */
START_TEST(operands_of_commutative_operations_match_in_both_orders) {
  for (int order = 0; order < 8; order++) {
    const char *text =
        arena_printf(memory,
                     "(%%x: f32[4], %%y: f32[4], %%z: f32[4]) { %%p = multiply(%s) : f32[4] "
                     "%%s = add(%s) : f32[4] %%t = tanh(%%s) : f32[4] %%r = multiply(%s) : f32[4] "
                     "return %%r }",
                     order & 1 ? "%y, %z" : "%z, %y", order & 2 ? "%x, %p" : "%p, %x", order & 4 ? "%x, %t" : "%t, %x");
    hlo_computation *c = parse_entry(memory, text);
    hlo_value x = {0}, y = param(c, 1), z = param(c, 2);
    const hlo_pattern *product = P_COMMUTE(HLO_MUL, P_SAME(&y), P_SAME(&z));
    const hlo_pattern *gate = P_OP(HLO_TANH, P_COMMUTE(HLO_ADD, P_SAME(&x), product));
    ck_assert_msg(hlo_match(root_of(c), P_COMMUTE(HLO_MUL, P_ANY(&x), gate)), "order %d", order);
    ck_assert(equal(x, param(c, 0)));
  }
}
END_TEST

/* --- captures --- */

/* Only the sum, which is matched after the product, tells which operand of the product x is. */
START_TEST(a_capture_is_tried_again_for_what_comes_later) {
  for (int k = 0; k < 2; k++) {
    hlo_computation *c = parse_entry(memory, k ? "(%x: f32[4], %y: f32[4]) { %p = multiply(%y, %x) : f32[4] "
                                                 "%s = add(%x, %p) : f32[4] return %s }"
                                               : "(%x: f32[4], %y: f32[4]) { %p = multiply(%x, %y) : f32[4] "
                                                 "%s = add(%p, %x) : f32[4] return %s }");
    hlo_value x = {0}, y = {0};
    const hlo_pattern *product = P_COMMUTE(HLO_MUL, P_ANY(&x), P_ANY(&y));
    ck_assert(hlo_match(root_of(c), P_COMMUTE(HLO_ADD, product, P_SAME(&x))));
    ck_assert(equal(x, param(c, 0)) && equal(y, param(c, 1)));
  }
}
END_TEST

START_TEST(a_failed_match_leaves_captures_as_they_were) {
  hlo_computation *c = parse_entry(memory,
                                   "(%x: f32[4], %y: f32[4], %z: f32[4]) { %p = multiply(%x, %y) : f32[4] "
                                   "%s = add(%p, %z) : f32[4] return %s }");
  hlo_value before = param(c, 2), x = before, y = before;
  const hlo_pattern *product = P_COMMUTE(HLO_MUL, P_ANY(&x), P_ANY(&y));
  ck_assert(!hlo_match(root_of(c), P_COMMUTE(HLO_ADD, product, P_SAME(&x))));
  ck_assert(equal(x, before) && equal(y, before));
}
END_TEST

START_TEST(a_different_value_is_not_the_same) {
  hlo_computation *c = parse_entry(memory,
                                   "(%x: f32[4], %y: f32[4]) { %n = negate(%x) : f32[4] "
                                   "%m = negate(%x) : f32[4] %s = add(%n, %m) : f32[4] return %s }");
  hlo_value x;
  ck_assert(!hlo_match(root_of(c), P_COMMUTE(HLO_ADD, P_ANY(&x), P_SAME(&x))));
  ck_assert(hlo_match(root_of(c), P_OP(HLO_ADD, P_OP(HLO_NEG, P_ANY(&x)), P_OP(HLO_NEG, P_SAME(&x)))));
}
END_TEST

START_TEST(results_of_one_instruction_are_different_values) {
  hlo_computation *c = parse_entry(memory,
                                   "(%x: f32[4]) { %a, %b = sort(%x, %x) {dimension=0, descending=false} "
                                   ": f32[4], f32[4] %s = add(%a, %b) : f32[4] return %s }");
  hlo_value x;
  ck_assert(!hlo_match(root_of(c), P_OP(HLO_ADD, P_ANY(&x), P_SAME(&x))));
}
END_TEST

/* --- alternatives --- */

static bool never(hlo_value v, void *data) {
  (void)v;
  (void)data;
  return false;
}

START_TEST(an_alternative_that_is_not_taken_captures_nothing) {
  hlo_computation *c = parse_entry(memory, "(%x: f32[4], %y: f32[4]) { %s = add(%x, %y) : f32[4] return %s }");
  hlo_value x = {0}, y = {0}, z = {0};
  const hlo_pattern *first = P_OP(HLO_ADD, P_ANY(&x), P_IF(never, NULL));
  ck_assert(hlo_match(root_of(c), P_EITHER(first, P_OP(HLO_ADD, P_ANY(&z), P_ANY(&y)))));
  ck_assert(!x.def && equal(y, param(c, 1)));
  ck_assert(!hlo_match(root_of(c), P_EITHER(first, P_OP(HLO_SUB, P_ANY(&x), P_ANY(&y)))));
}
END_TEST

/* The first alternative matches by itself, but not with what follows. */
START_TEST(the_second_alternative_is_tried_for_what_comes_later) {
  hlo_computation *c = parse_entry(memory,
                                   "(%x: f32[4]) { %n = negate(%x) : f32[4] %s = add(%n, %n) : f32[4] "
                                   "return %s }");
  hlo_value v = {0};
  const hlo_pattern *negated_or_not = P_EITHER(P_OP(HLO_NEG, P_ANY(&v)), P_ANY(&v));
  ck_assert(hlo_match(root_of(c), P_OP(HLO_ADD, negated_or_not, P_SAME(&v))));
  ck_assert_int_eq(v.def->op, HLO_NEG);
}
END_TEST

/* --- conditions --- */

START_TEST(a_chain_is_followed_to_its_end_or_limit) {
  hlo_computation *c = parse_entry(memory,
                                   "(%x: f32[4]) { %a = reshape(%x) : f32[2,2] %b = reshape(%a) : f32[4,1] "
                                   "%c = reshape(%b) : f32[1,4] return %c }");
  hlo_value x = param(c, 0), v = {0};
  ck_assert(hlo_match(root_of(c), P_BEHIND(HLO_RESHAPE, 3, P_SAME(&x))));
  ck_assert(hlo_match(root_of(c), P_BEHIND(HLO_RESHAPE, 9, P_SAME(&x))));
  ck_assert(!hlo_match(root_of(c), P_BEHIND(HLO_RESHAPE, 2, P_SAME(&x))));
  ck_assert(hlo_match(root_of(c), P_BEHIND(HLO_RESHAPE, 2, P_ANY(&v))));
  ck_assert_int_eq(hlo_rank(v), 2);
  ck_assert(hlo_match(root_of(c), P_BEHIND(HLO_TRANSPOSE, 9, P_ANY(&v))));
  ck_assert(equal(v, root_of(c)));
}
END_TEST

START_TEST(a_second_user_is_seen) {
  static const struct {
    const char *text;
    bool once;
  } cases[] = {
      {"(%x: f32[4]) { %n = negate(%x) : f32[4] %e = exponential(%n) : f32[4] return %e }", true},
      {"(%x: f32[4]) { %n = negate(%x) : f32[4] %e = exponential(%n) : f32[4] return %e, %n }", false},
      {"(%x: f32[4]) { %n = negate(%x) : f32[4] %e = exponential(%n) : f32[4] %t = tanh(%n) : f32[4] return %e, %t }",
       false},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    hlo_computation *c = parse_entry(memory, cases[k].text);
    hlo_value x;
    ck_assert(hlo_match(root_of(c), P_OP(HLO_EXP, P_OP(HLO_NEG, P_ANY(&x)))));
    ck_assert_int_eq(hlo_match(root_of(c), P_OP(HLO_EXP, P_ONCE(P_OP(HLO_NEG, P_ANY(&x))))), cases[k].once);
  }
}
END_TEST

START_TEST(the_element_type_is_that_of_the_value) {
  hlo_computation *c = parse_entry(memory,
                                   "(%x: s8[4]) { %w = convert(%x) {saturate=false, rounding=nearest} : s32[4] "
                                   "return %w }");
  hlo_value x;
  const hlo_pattern *byte = P_TYPE(DTYPE_S8, P_ANY(&x));
  ck_assert(hlo_match(root_of(c), P_TYPE(DTYPE_S32, P_OP(HLO_CONVERT, byte))));
  ck_assert(!hlo_match(root_of(c), P_TYPE(DTYPE_S8, P_OP(HLO_CONVERT, byte))));
  ck_assert(!hlo_match(root_of(c), P_OP(HLO_CONVERT, P_TYPE(DTYPE_U8, P_ANY(&x)))));
}
END_TEST

START_TEST(a_splat_is_read) {
  hlo_computation *c = parse_entry(memory,
                                   "(%x: f32[4]) { %n = constant() {value=f32[] 2.5} : f32[] "
                                   "%s = broadcast(%n) {dimensions=[]} : f32[4] "
                                   "%p = multiply(%s, %x) : f32[4] return %p }");
  hlo_value x = {0};
  literal number;
  ck_assert(hlo_match(root_of(c), P_COMMUTE(HLO_MUL, P_ANY(&x), P_SPLAT(&number))));
  ck_assert(equal(x, param(c, 0)) && literal_f64(&number, 0) == 2.5);
  ck_assert(!hlo_match(root_of(c), P_OP(HLO_MUL, P_ANY(&x), P_SPLAT(&number))));
}
END_TEST

/* --- what was matched --- */

static void check_list(const hlo_matched *m, uint32_t n, const hlo_op *ops) {
  ck_assert_uint_eq(m->n, n);
  for (uint32_t k = 0; k < n; k++) {
    ck_assert_int_eq(m->list[k]->op, ops[k]);
  }
}

/* The pattern matches only with the operands of the product exchanged.  Instructions that were listed before
 * they were exchanged must not remain in the list. */
START_TEST(instructions_are_listed_before_their_operands) {
  static const hlo_op ops[] = {HLO_MUL, HLO_RESHAPE, HLO_EXP, HLO_NEG};
  hlo_computation *c = parse_entry(memory,
                                   "(%x: f32[4]) { %n = negate(%x) : f32[4] %e = exponential(%n) : f32[4] "
                                   "%r = reshape(%e) : f32[1,4] %s = reshape(%x) : f32[1,4] "
                                   "%m = multiply(%s, %r) : f32[1,4] return %m }");
  hlo_matched m;
  hlo_value x, y;
  const hlo_pattern *left = P_BEHIND(HLO_RESHAPE, 1, P_OP(HLO_EXP, P_OP(HLO_NEG, P_ANY(&x))));
  ck_assert(hlo_match_listed(root_of(c), P_COMMUTE(HLO_MUL, left, P_ANY(&y)), &m));
  check_list(&m, sizeof ops / sizeof *ops, ops);
  ck_assert(!hlo_match_listed(root_of(c), P_COMMUTE(HLO_MUL, left, P_OP(HLO_EXP, P_ANY(&y))), &m));
  ck_assert_uint_eq(m.n, 0);
}
END_TEST

START_TEST(a_list_that_is_too_long_is_no_match) {
  for (uint32_t n = HLO_MATCHED_MOST; n <= HLO_MATCHED_MOST + 1; n++) {
    hlo_computation *c = parse_entry(memory, "(%x: f32[1]) { return %x }");
    hlo_builder b = hlo_builder_make(c);
    hlo_value v = param(c, 0), x;
    for (uint32_t k = 0; k < n; k++) {
      v = hlo_unary(&b, HLO_NEG, v);
      v.def->op = HLO_COPY; /* the builder would take two negations away */
    }
    hlo_matched m;
    ck_assert_int_eq(hlo_match_listed(v, P_BEHIND(HLO_COPY, n, P_ANY(&x)), &m), n <= HLO_MATCHED_MOST);
    ck_assert(hlo_match(v, P_BEHIND(HLO_COPY, n, P_ANY(&x))));
  }
}
END_TEST

/* --- time --- */

static bool count_and_refuse(hlo_value v, void *count) {
  (void)v;
  ++*(uint32_t *)count;
  return false;
}

/* In a chain of sums v + v there are 2^40 paths to the last operand, but matching a pattern tries no more
 * than the 2^4 paths of the pattern. */
START_TEST(the_size_of_the_graph_does_not_matter) {
  hlo_computation *c = parse_entry(memory, "(%x: f32[1]) { return %x }");
  hlo_builder b = hlo_builder_make(c);
  hlo_value v = param(c, 0);
  uint32_t count = 0;
  for (int k = 0; k < 40; k++) {
    v = hlo_binary(&b, HLO_ADD, v, v);
  }
  hlo_value x;
  const hlo_pattern *p = P_COMMUTE(HLO_ADD, P_ANY(&x), P_IF(count_and_refuse, &count));
  p = P_COMMUTE(HLO_ADD, P_ANY(&x), P_COMMUTE(HLO_ADD, P_ANY(&x), P_COMMUTE(HLO_ADD, P_ANY(&x), p)));
  ck_assert(!hlo_match(v, p));
  ck_assert_uint_eq(count, 16);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("pattern");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, operands_match_in_their_order);
  tcase_add_test(t, the_number_of_operands_counts);
  tcase_add_test(t, operands_of_commutative_operations_match_in_both_orders);
  tcase_add_test(t, a_capture_is_tried_again_for_what_comes_later);
  tcase_add_test(t, a_failed_match_leaves_captures_as_they_were);
  tcase_add_test(t, a_different_value_is_not_the_same);
  tcase_add_test(t, results_of_one_instruction_are_different_values);
  tcase_add_test(t, an_alternative_that_is_not_taken_captures_nothing);
  tcase_add_test(t, the_second_alternative_is_tried_for_what_comes_later);
  tcase_add_test(t, a_chain_is_followed_to_its_end_or_limit);
  tcase_add_test(t, a_second_user_is_seen);
  tcase_add_test(t, the_element_type_is_that_of_the_value);
  tcase_add_test(t, a_splat_is_read);
  tcase_add_test(t, instructions_are_listed_before_their_operands);
  tcase_add_test(t, a_list_that_is_too_long_is_no_match);
  tcase_add_test(t, the_size_of_the_graph_does_not_matter);
  return run_suite("pattern", t);
}
