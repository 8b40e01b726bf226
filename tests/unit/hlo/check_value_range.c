/* check_value_range.c - bounds of the elements of values. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "hlo/analysis/value_range.h"
#include "hlo/ir/builder.h"
#include "tests/suite.h"
#include "tests/unit/hlo/hlo_case.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }

static void teardown(void) { arena_destroy(memory); }

#define FLOAT(name, value)                      \
  "%" name "1 = constant() {value=f32[] " value \
  "} : f32[]\n"                                 \
  "%" name " = broadcast(%" name "1) {dimensions=[]} : f32[2,3]\n"
#define CONVERT(name, x, type) "%" name " = convert(%" x ") {saturate=true, rounding=nearest} : " type "[2,3]\n"
#define DOT(type) "{lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : " type "[2,4]\n"

/* The range of %y; an unknown one has `low` above `high`. */
static const struct {
  const char *body;
  double low, high;
  bool whole;
} cases[] = {
    {CONVERT("y", "q", "f32"), 0, 255, true},
    {"%y = add(%x, %x) : f32[2,3]\n", 1, 0, false},
    {"%y = add(%q, %q) : u8[2,3]\n", 0, 255, true}, /* wraps */
    {CONVERT("i", "q", "s32") "%y = add(%i, %i) : s32[2,3]\n", 0, 510, true},
    {CONVERT("i", "q", "s32") "%y = negate(%i) : s32[2,3]\n", -255, 0, true},
    {CONVERT("y", "x", "s8"), -128, 127, true},
    {"%y = multiply(%z, %z) : s32[2,3]\n", -2147483648.0, 2147483647, true},
    {CONVERT("f", "q", "f32") FLOAT("c", "-0.5") "%y = multiply(%f, %c) : f32[2,3]\n", -127.5, 0, false},
    {CONVERT("f", "q", "f32") FLOAT("c", "-0.5") "%y = divide(%f, %c) : f32[2,3]\n", -510, 0, false},
    {CONVERT("f", "q", "f32") "%y = divide(%f, %f) : f32[2,3]\n", 1, 0, false},
    {CONVERT("f", "q", "f32")
         FLOAT("c", "0.25") "%g = multiply(%f, %c) : f32[2,3]\n%y = round-nearest-even(%g) : f32[2,3]\n",
     0, 64, true},
    {CONVERT("f", "z", "f32") FLOAT("c", "1e30") "%y = multiply(%f, %c) : f32[2,3]\n", 1, 0, false}, /* infinite */
    {CONVERT("f", "q", "f32") FLOAT("c", "inf") "%y = multiply(%f, %c) : f32[2,3]\n", 1, 0, false},
    {CONVERT("f", "q", "f32") FLOAT("a", "3") FLOAT("b", "7.5") "%y = clamp(%a, %f, %b) : f32[2,3]\n", 3, 7.5, false},
    {FLOAT("a", "3") FLOAT("b", "7.5") "%y = clamp(%a, %x, %b) : f32[2,3]\n", 1, 0, false}, /* NaN stays */
    {FLOAT("a", "3") CONVERT("f", "q", "f32") "%y = maximum(%f, %a) : f32[2,3]\n", 3, 255, true},
    {FLOAT("a", "3") CONVERT("f", "q", "f32") "%y = minimum(%f, %a) : f32[2,3]\n", 0, 3, true},
    {"%w = constant() {value=f32[3,4] {1, 2, 3, 4, 5, 6, 7, 8, -9, 8, 7, 6}} : f32[3,4]\n" CONVERT(
         "f", "q", "f32") "%y = dot(%f, %w) " DOT("f32"),
     -3 * 255 * 9, 3 * 255 * 9, true},
    {"%w = constant() {value=f32[3,4] {1, 2, 3, 4, 5, 6, 7, 8, -9, 8, 7, 6.5}} : f32[3,4]\n" CONVERT(
         "f", "q", "f32") "%y = dot(%f, %w) " DOT("f32"),
     -2 * 3 * 255 * 9, 2 * 3 * 255 * 9, false},
};

START_TEST(bounds) {
  const char *text = arena_printf(
      memory,
      "onnx-xla hlo 1\nmodule \"m\" {\nentry main(%%q: u8[2,3], %%x: f32[2,3], %%z: s32[2,3]) {\n%sreturn %%y\n}\n}\n",
      cases[_i].body);
  hlo_module *m;
  ASSERT_OK(hlo_parse(memory, text, strlen(text), NULL, &m));
  hlo_value_ranges ranges = hlo_value_ranges_make(m->entry, memory);
  hlo_value y = m->entry->roots[0];
  hlo_value_range r = hlo_value_range_of(&ranges, y);
  bool known = cases[_i].low <= cases[_i].high;
  ck_assert_int_eq(r.known, known);
  if (known) {
    ck_assert_double_eq(r.low, cases[_i].low);
    ck_assert_double_eq(r.high, cases[_i].high);
    ck_assert_int_eq(r.whole, cases[_i].whole);
  }
  ck_assert_double_eq(hlo_largest_magnitude(&ranges, y), known ? fmax(-r.low, r.high) : INFINITY);
}
END_TEST

/* Of a value that was made after the ranges, the type is known. */
START_TEST(later) {
  static const char text[] = "onnx-xla hlo 1\nmodule \"m\" {\nentry main(%q: u8[2]) {\nreturn %q\n}\n}\n";
  hlo_module *m;
  ASSERT_OK(hlo_parse(memory, text, strlen(text), NULL, &m));
  hlo_value_ranges ranges = hlo_value_ranges_make(m->entry, memory);
  hlo_builder b = hlo_builder_make(m->entry);
  hlo_value f = hlo_convert(&b, m->entry->roots[0], DTYPE_F32);
  ck_assert(!hlo_value_range_of(&ranges, f).known);
  ck_assert_double_eq(hlo_value_range_of(&ranges, hlo_convert(&b, f, DTYPE_S8)).low, -128);
}
END_TEST

int main(void) {
  TCase *all = tcase_create("all");
  tcase_add_checked_fixture(all, setup, teardown);
  tcase_add_loop_test(all, bounds, 0, sizeof cases / sizeof *cases);
  tcase_add_test(all, later);
  return run_suite("value range", all);
}
