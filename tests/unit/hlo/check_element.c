/* check_element.c - what is known of single elements of small arrays. */
#include <check.h>
#include <inttypes.h>

#include "hlo/ir/element.h"
#include "tests/suite.h"
#include "tests/unit/hlo/hlo_case.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }

static void teardown(void) { arena_destroy(memory); }

#define LIST(name, type, values) "%" name " = constant() {value=" type "[2] {" values "}} : " type "[2]\n"
#define CONVERT(name, x, to) "%" name " = convert(%" x ") {saturate=true, rounding=nearest} : " to "[2]\n"
#define BILLION LIST("c", "f32", "1000000000, -1000000000")
#define FALSE_TRUE LIST("c", "pred", "false, true")

/* %p has two integers, %q two of 64 bits, %f two floats, %t two preds and %n as many floats as the symbol n says. Where
 * the value of element `at` of %y is not known, it is UNKNOWN here. */
enum { UNKNOWN = -7 };
static const struct {
  const char *body;
  int64_t at, value, least;
} cases[] = {
    {LIST("y", "s64", "3, -4"), 1, -4, -4},
    {LIST("y", "f32", "3, 2.5"), 0, 3, 3},
    {LIST("y", "f32", "3, 2.5"), 1, UNKNOWN, INT64_MIN},
    {"%y = add(%p, %p) : s32[2]\n", 0, UNKNOWN, INT64_MIN},
    /* what is not smaller than a float is not smaller after a conversion */
    {BILLION CONVERT("g", "p", "f32") "%m = maximum(%g, %c) : f32[2]\n" CONVERT("y", "m", "s32"), 0, UNKNOWN,
     1000000000},
    {BILLION CONVERT("g", "p", "f32") "%m = maximum(%g, %c) : f32[2]\n" CONVERT("y", "m", "s32"), 1, UNKNOWN,
     -1000000000},
    {BILLION CONVERT("g", "p", "f32") "%m = minimum(%g, %c) : f32[2]\n" CONVERT("y", "m", "s32"), 0, UNKNOWN,
     INT64_MIN},
    {LIST("c", "s64", "3000000000, 5") "%m = maximum(%q, %c) : s64[2]\n" CONVERT("y", "m", "s32"), 1, UNKNOWN,
     INT64_MIN}, /* wraps */
    {LIST("c", "s64", "16777217, 5") "%m = maximum(%q, %c) : s64[2]\n" CONVERT("y", "m", "f32"), 0, UNKNOWN, INT64_MIN},
    {LIST("c", "s64", "16777217, 5") "%m = maximum(%q, %c) : s64[2]\n" CONVERT("y", "m", "f32"), 1, UNKNOWN, 5},
    {LIST("c", "s64", "3, 5") LIST("d", "s64", "4, 4") "%y = maximum(%c, %d) : s64[2]\n", 0, 4, 4},
    {LIST("c", "s64", "3, 5") LIST("d", "s64", "4, 4") "%y = minimum(%c, %d) : s64[2]\n", 1, 4, 4},
    /* conditions that are known select one, others either */
    {FALSE_TRUE LIST("d", "s64", "3, 5") "%y = select(%c, %d, %q) : s64[2]\n", 1, 5, 5},
    {FALSE_TRUE LIST("d", "s64", "3, 5") "%y = select(%c, %d, %q) : s64[2]\n", 0, UNKNOWN, INT64_MIN},
    {LIST("c", "s64", "2, 6") LIST("d", "s64", "3, 5") "%y = select(%t, %d, %c) : s64[2]\n", 0, UNKNOWN, 2},
    {FALSE_TRUE "%y = and(%t, %c) : pred[2]\n", 0, 0, 0},
    {FALSE_TRUE "%y = and(%t, %c) : pred[2]\n", 1, UNKNOWN, INT64_MIN},
    {FALSE_TRUE "%y = or(%t, %c) : pred[2]\n", 1, 1, 1},
    /* elements that were moved */
    {LIST("c", "s64", "3, 5") "%y = concatenate(%q, %c) {dimension=0} : s64[4]\n", 3, 5, 5},
    {LIST("c", "s64", "3, 5") "%y = concatenate(%q, %c) {dimension=0} : s64[4]\n", 1, UNKNOWN, INT64_MIN},
    {LIST("c", "s64",
          "3, 5") "%d = concatenate(%c, %q) {dimension=0} : s64[4]\n%y = reverse(%d) {dimensions=[0]} : s64[4]\n",
     2, 5, 5},
    {LIST("c", "s64", "3, 5") "%d = concatenate(%c, %q) {dimension=0} : s64[4]\n%e = reshape(%d) : s64[2,2]\n"
                              "%y = transpose(%e) {permutation=[1,0]} : s64[2,2]\n",
     2, 5, 5},
    {LIST("c", "s64", "3, 5") "%y = slice(%c) {starts=[1], limits=[2], strides=[1]} : s64[1]\n", 0, 5, 5},
    {LIST("c", "s64", "3, 5") "%y = slice(%c) {starts=[n], limits=[n+1], strides=[1]} : s64[1]\n", 0, UNKNOWN,
     INT64_MIN},
    {"%c = constant() {value=s64[] 9} : s64[]\n%y = pad(%q, %c) {low=[1], high=[0], interior=[0]} : s64[3]\n", 0, 9, 9},
    {"%c = constant() {value=s64[] 9} : s64[]\n%d = constant() {value=s64[] 4} : s64[]\n%e = maximum(%c, %d) : s64[]\n"
     "%y = broadcast(%e) {dimensions=[]} : s64[3]\n",
     2, 9, 9},
};

START_TEST(elements) {
  hlo_computation *c = parse_entry(
      memory,
      arena_printf(memory, "(%%p: s32[2], %%q: s64[2], %%f: f32[2], %%t: pred[2], %%n: f32[n]) {\n%sreturn %%y }",
                   cases[_i].body));
  hlo_element e = hlo_element_of(c->roots[0], cases[_i].at);
  int64_t value = UNKNOWN;
  bool known = dim_signed_value(c->module->dims, e.value, &value);
  ck_assert_msg(known == (cases[_i].value != UNKNOWN) && (!known || value == cases[_i].value), "%s: %" PRId64,
                cases[_i].body, value);
  ck_assert_msg(e.least == cases[_i].least, "%s: at least %" PRId64, cases[_i].body, e.least);
}
END_TEST

int main(void) {
  TCase *all = tcase_create("all");
  tcase_add_checked_fixture(all, setup, teardown);
  tcase_add_loop_test(all, elements, 0, sizeof cases / sizeof *cases);
  return run_suite("element", all);
}
