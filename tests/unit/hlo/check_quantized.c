/* check_quantized.c - tests which arrays are recognised as quantised arrays and as quantised weights, and that similar
 * ones are not. */
#include "hlo/analysis/quantized.h"

#include "tests/unit/hlo/hlo_case.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

#define CONVERT(x) "convert(" x ") {saturate=true, rounding=nearest}"

/* --- numbers --- */

/* ((s32)q - 3) * {1, 2}, with a scale for each row. */
static const char dequantize[] =
    "(%q: u8[2,3], %y: f32[2,3], %t: u8[2,3]) {\n"
    "%z = constant() {value=s32[] 3} : s32[] %zs = broadcast(%z) {dimensions=[]} : s32[2,3]\n"
    "%s = constant() {value=f32[2] {1, 2}} : f32[2] %ss = broadcast(%s) {dimensions=[0]} : f32[2,3]\n"
    "%w = " CONVERT("%q") " : s32[2,3] %c = subtract(%w, %zs) : s32[2,3] %f = " CONVERT("%c") " : f32[2,3]\n"
    "%r = multiply(%f, %ss) : f32[2,3] return %r }";

static bool find_dequantized(hlo_computation *c) {
  hlo_quantized x;
  return hlo_dequantized_of(c->roots[0], &x);
}

START_TEST(dequantized_parts_are_captured) {
  for (int swapped = 0; swapped < 2; swapped++) {
    const char *text = swapped ? with(memory, dequantize, "(%f, %ss)", "(%ss, %f)") : dequantize;
    hlo_computation *c = parse_entry(memory, text);
    hlo_quantized x;
    ck_assert(hlo_dequantized_of(c->roots[0], &x));
    ck_assert_ptr_eq(x.q.def, c->params[0]);
    ck_assert(x.has_zero && hlo_along_is_const(&x.zero) && hlo_along_at(&x.zero, 0) == 3);
    ck_assert(x.zero.n == 1 && x.scale.n == 2 && x.scale.axis == 0);
    ck_assert(hlo_along_at(&x.scale, 0) == 1 && hlo_along_at(&x.scale, 1) == 2);
  }
}
END_TEST

START_TEST(dequantized_or_not) {
  static const text_change changes[] = {
      {"multiply(%f, %ss)", "multiply(%ss, %f)", true},
      {"multiply(%f, %ss)", "add(%f, %ss)", false},
      {"multiply(%f, %ss)", "multiply(%f, %y)", false}, /* a number for each element is no scale */
      {"multiply(%f, %ss)", "multiply(%f, %f)", false},
      {"subtract(%w, %zs)", "subtract(%zs, %w)", false},
      {"subtract(%w, %zs)", "add(%w, %zs)", false},
      {"subtract(%w, %zs)", "subtract(%w, %w)", false},
      {"%q: u8", "%q: s8", true},
      {"%q: u8", "%q: s16", false},
      {"%q: u8", "%q: u4", false}, /* 4 bits only if it is constant */
      {"%f = convert(%c)", "%f = convert(%w)", true},
      {"%f = convert(%c)", "%f = convert(%q)", true},
      {"%f = convert(%c)", "%f = convert(%y)", false},
  };
  CHECK_CHANGES(memory, dequantize, changes, find_dequantized);
}
END_TEST

START_TEST(zero_points_of_zero_and_none_are_not_there) {
  static const text_change changes[] = {{"s32[] 3", "s32[] 0", false},
                                        {"%f = convert(%c)", "%f = convert(%w)", false},
                                        {"%f = convert(%c)", "%f = convert(%q)", false},
                                        {"s32[] 3", "s32[] 1", true}};
  for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
    hlo_computation *c = parse_entry(memory, with(memory, dequantize, changes[k].from, changes[k].to));
    hlo_quantized x;
    ck_assert(hlo_dequantized_of(c->roots[0], &x));
    ck_assert_int_eq(x.has_zero, changes[k].found);
  }
}
END_TEST

START_TEST(centered_is_of_s32_only) {
  hlo_computation *c = parse_entry(memory, with(memory, dequantize, "return %r", "return %c, %f, %w, %zs"));
  hlo_quantized x;
  ck_assert(hlo_centered_of(c->roots[0], &x) && x.has_zero && x.q.def == c->params[0]);
  ck_assert(!hlo_centered_of(c->roots[1], &x));
  ck_assert(hlo_centered_of(c->roots[2], &x) && !x.has_zero);
  ck_assert(!hlo_centered_of(c->roots[3], &x));
}
END_TEST

/* --- quantisation --- */

static const char quantize[] =
    "(%x: f32[4], %v: f32[]) {\n"
    "%l = constant() {value=f32[] 0} : f32[] %h = constant() {value=f32[] 255} : f32[]\n"
    "%z = constant() {value=f32[] 7} : f32[] %zs = broadcast(%z) {dimensions=[]} : f32[4]\n"
    "%n = round-nearest-even(%x) : f32[4] %a = add(%n, %zs) : f32[4] %c = clamp(%l, %a, %h) : f32[4]\n"
    "%r = " CONVERT("%c") " : u8[4] return %r }";

static bool find_requantized(hlo_computation *c) {
  hlo_requantized x;
  return hlo_requantized_of(c->roots[0], &x);
}

START_TEST(requantized_parts_are_captured) {
  static const text_change orders[] = {{"add(%n, %zs)", "add(%n, %zs)", true}, {"add(%n, %zs)", "add(%zs, %n)", true}};
  for (int k = 0; k < 2; k++) {
    hlo_computation *c = parse_entry(memory, with(memory, quantize, orders[k].from, orders[k].to));
    hlo_requantized x;
    ck_assert(hlo_requantized_of(c->roots[0], &x));
    ck_assert(x.low == 0 && x.high == 255 && x.zero == 7);
    ck_assert_int_eq(x.round->op, HLO_ROUND);
    ck_assert_int_eq(x.addition->op, HLO_ADD);
    ck_assert_ptr_eq(x.v.def, c->params[0]);
  }
}
END_TEST

START_TEST(requantized_without_a_zero_point) {
  hlo_computation *c = parse_entry(memory, with(memory, quantize, "clamp(%l, %a, %h)", "clamp(%l, %n, %h)"));
  hlo_requantized x;
  ck_assert(hlo_requantized_of(c->roots[0], &x) && !x.addition && x.zero == 0 && x.round);
}
END_TEST

START_TEST(requantized_or_not) {
  static const text_change changes[] = {
      {"f32[] 255", "f32[] 100", true},
      {"f32[] 255", "f32[] 256", false}, /* numbers that the type does not have */
      {"f32[] 255", "f32[] 100.5", false},
      {"f32[] 255", "f32[] inf", false},
      {"f32[] 0", "f32[] -1", false},
      {"f32[] 0", "f32[] 0.5", false},
      {"f32[] 0", "f32[] nan", false},
      {"f32[] 7", "f32[] 1073741824", false},
      {"u8[4] return", "s8[4] return", false},
      {"u8[4] return", "s16[4] return", false},
      {"clamp(%l, %a, %h)", "clamp(%v, %a, %h)", false}, /* bounds that are not known */
      {"clamp(%l, %a, %h)", "clamp(%l, %a, %v)", false},
      {"clamp(%l, %a, %h)", "clamp(%l, %x, %h)", false}, /* nothing is rounded */
      {"add(%n, %zs)", "add(%n, %x)", false},            /* a zero point that is not known */
      {"add(%n, %zs)", "add(%x, %zs)", false},
      {"add(%n, %zs)", "add(%n, %n)", false},
      {"add(%n, %zs)", "subtract(%n, %zs)", false},
      {"round-nearest-even(%x)", "floor(%x)", false},
  };
  CHECK_CHANGES(memory, quantize, changes, find_requantized);
}
END_TEST

/* --- weights --- */

/* Weights of 4 x 6, in two blocks of two rows, each with a scale and a zero point for each column. */
static const char weights[] =
    "(%x: f32[5,4], %q: u4[2,2,6], %s: f32[2,6], %z: s32[2,6], %other: f32[2,2,6]) {\n"
    "%ss = broadcast(%s) {dimensions=[0,2]} : f32[2,2,6] %zs = broadcast(%z) {dimensions=[0,2]} : s32[2,2,6]\n"
    "%w = " CONVERT("%q") " : s32[2,2,6] %c = subtract(%w, %zs) : s32[2,2,6] %f = " CONVERT("%c") " : f32[2,2,6]\n"
    "%m = multiply(%f, %ss) : f32[2,2,6] %j = reshape(%m) : f32[4,6]\n"
    "%r = dot(%x, %j) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[5,6]\n"
    "return %r }";

static bool find_weights(hlo_computation *c) {
  hlo_quantized_weights w;
  return hlo_quantized_weights_of(c->roots[0].def, &w);
}

START_TEST(weights_of_blocks_are_captured) {
  static const hlo_op ops[] = {HLO_CONVERT, HLO_SUB, HLO_CONVERT, HLO_MUL, HLO_RESHAPE};
  hlo_computation *c = parse_entry(memory, weights);
  hlo_quantized_weights w;
  ck_assert(hlo_quantized_weights_of(c->roots[0].def, &w));
  ck_assert(w.q.def == c->params[1] && w.scale.def->op == HLO_BROADCAST && w.zero.def->op == HLO_BROADCAST);
  ck_assert(w.scaled->op == HLO_MUL && w.sums == 4 && w.columns == 6 && w.block == 2);
  ck_assert(w.sum_step == 6 && w.column_step == 1 && w.sum_dim == 0 && w.block_dim == 1 && w.column_dim == 2);
  ck_assert_uint_eq(w.n, sizeof ops / sizeof *ops);
  for (uint32_t k = 0; k < w.n; k++) {
    ck_assert_int_eq(w.members[k]->op, ops[k]);
  }
}
END_TEST

/* Weights without blocks and without a zero point, and transposed: sums run along the last dimension of q. */
START_TEST(transposed_weights_are_captured) {
  static const char text[] =
      "(%x: f32[5,4], %q: s8[6,4], %s: f32[6], %e: f32[4]) { %ss = broadcast(%s) {dimensions=[0]} : f32[6,4]\n"
      "%f = " CONVERT("%q") " : f32[6,4] %m = multiply(%ss, %f) : f32[6,4]\n"
      "%t = transpose(%m) {permutation=[1,0]} : f32[4,6]\n"
      "%r = dot(%x, %t) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[5,6] return %r }";
  static const text_change changes[] = {{"multiply(%ss, %f)", "multiply(%f, %ss)", true},
                                        {"broadcast(%s) {dimensions=[0]}", "broadcast(%e) {dimensions=[1]}", false}};
  hlo_quantized_weights w;
  ck_assert(hlo_quantized_weights_of(parse_entry(memory, text)->roots[0].def, &w));
  ck_assert(!w.zero.def && w.n == 3 && w.sums == 4 && w.columns == 6 && w.block == 4);
  ck_assert(w.sum_step == 1 && w.column_step == 4 && w.sum_dim == 1 && w.block_dim == -1 && w.column_dim == 0);
  CHECK_CHANGES(memory, text, changes, find_weights);
}
END_TEST

START_TEST(weights_or_not) {
  static const text_change changes[] = {
      {"multiply(%f, %ss)", "multiply(%ss, %f)", true},
      {"multiply(%f, %ss)", "add(%f, %ss)", false},
      {"multiply(%f, %ss)", "multiply(%f, %other)", false}, /* a scale for each element */
      {"subtract(%w, %zs)", "subtract(%zs, %w)", false},
      {"%q: u4", "%q: s8", true},
      {"%q: u4", "%q: s16", false},
      {"%f = convert(%c)", "%f = convert(%w)", false},
      {"%f = convert(%c)", "%f = convert(%q)", true},
      {"return %r }", "return %r, %m }", false}, /* the weights have another user */
      {"return %r }", "%e = negate(%c) : s32[2,2,6] return %r, %e }", false},
      {"return %r }", "return %r, %ss }", true}, /* a scale may have other users */
      /* the scale is not one for each block */
      {"%ss = broadcast(%s) {dimensions=[0,2]}", "%ss = broadcast(%s) {dimensions=[1,2]}", false},
      {"%zs = broadcast(%z) {dimensions=[0,2]}", "%zs = broadcast(%z) {dimensions=[1,2]}", false},
  };
  CHECK_CHANGES(memory, weights, changes, find_weights);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("quantized");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, dequantized_parts_are_captured);
  tcase_add_test(t, dequantized_or_not);
  tcase_add_test(t, zero_points_of_zero_and_none_are_not_there);
  tcase_add_test(t, centered_is_of_s32_only);
  tcase_add_test(t, requantized_parts_are_captured);
  tcase_add_test(t, requantized_without_a_zero_point);
  tcase_add_test(t, requantized_or_not);
  tcase_add_test(t, weights_of_blocks_are_captured);
  tcase_add_test(t, transposed_weights_are_captured);
  tcase_add_test(t, weights_or_not);
  return run_suite("quantized", t);
}
