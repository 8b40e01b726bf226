/* check_same_values.c - tests the comparison that decides whether an expected file of tests/hlo has the same values as
 * before, with modules that differ at the end of a type's range, or not at all. */
#include <check.h>
#include <string.h>

#include "hlo/text/text.h"
#include "tests/hlo/same_values.h"
#include "tests/suite.h"

typedef struct pair {
  const char *type, *before, *after; /* the bodies of functions of %x, %y and %p */
  bool same;
} pair;

static const pair pairs[] = {
    {"f32", "%r = add(%x, %y)", "%r = add(%y, %x)", true},
    {"f32", "%z = subtract(%x, %x) %r = add(%x, %z)", "%r = copy(%x)", false}, /* differs for NaN and
                                                                                  infinities */
    {"f32", "%n = negate(%x) %r = negate(%n)", "%r = copy(%x)", true},
    {"f32", "%z = subtract(%y, %y) %r = subtract(%z, %x)", "%r = negate(%x)", false}, /* differs for -0 */
    {"f32", "%r = divide(%x, %y)", "%q = divide(%y, %x) %o = divide(%q, %q) %r = divide(%o, %q)", false},
    {"u8", "%r = maximum(%x, %y)", "%s = subtract(%x, %y) %r = add(%s, %y)", false},
    {"s32", "%a = abs(%x) %r = maximum(%a, %x)", "%r = abs(%x)", true},
    {"s32", "%a = abs(%x) %b = abs(%y) %r = maximum(%a, %b)",
     "%n = negate(%x) %b = abs(%y) %m = maximum(%n, %x) %r = maximum(%m, %b)", true},
    {"s64", "%n = negate(%x) %r = maximum(%n, %y)", "%m = negate(%y) %s = minimum(%x, %m) %r = negate(%s)",
     false}, /* differs for the smallest integer */
    {"u32", "%r = minimum(%x, %y)", "%r = copy(%y)", false},
};

static hlo_module *parse(arena *a, const char *type, const char *body) {
  static const char form[] = "onnx-xla hlo 1\nmodule \"m\" {\n entry main(%%x: %s[64], %%y: %s[64]) {\n";
  char *text = (char *)(uintptr_t)arena_printf(a, form, type, type);
  char *copy = arena_strdup(a, body);
  for (char *part = strtok(copy, ")"); part; part = strtok(NULL, ")")) {
    text = (char *)(uintptr_t)arena_printf(a, "%s%s) : %s[64]\n", text, part, type);
  }
  text = (char *)(uintptr_t)arena_printf(a, "%s return %%r\n }\n}\n", text);
  hlo_module *m = NULL;
  status s = hlo_parse(a, text, strlen(text), NULL, &m);
  ck_assert_msg(!s, "%s: %s", text, status_message(s));
  return m;
}

/* Returns true if the modules give different results for a round of inputs. */
static bool differ(arena *a, const hlo_module *before, const hlo_module *after, same_floats how) {
  status s = same_values(before, after, how, a);
  ck_assert_msg(!s || status_get_code(s) == STATUS_INTERNAL, "%s", status_message(s));
  bool found = s != NULL;
  status_free(s);
  return found;
}

START_TEST(bits) {
  const pair *p = &pairs[_i];
  arena *a = arena_create(NULL);
  bool different = differ(a, parse(a, p->type, p->before), parse(a, p->type, p->after), SAME_BITS);
  ck_assert_msg(different != p->same, "%s of %s is %sfound to differ", p->before, p->type, different ? "" : "not ");
  arena_destroy(a);
}
END_TEST

/* (x + y) / y and x / y + y / y: their values are near, but not the same. */
START_TEST(rounded) {
  arena *a = arena_create(NULL);
  hlo_module *before = parse(a, "f32", "%s = add(%x, %y) %r = divide(%s, %y)"),
             *after = parse(a, "f32", "%s = divide(%x, %y) %o = divide(%y, %y) %r = add(%s, %o)"),
             *wrong = parse(a, "f32", "%r = divide(%x, %y)");
  ck_assert(differ(a, before, after, SAME_BITS));
  ck_assert(!differ(a, before, after, SAME_ROUNDED));
  ck_assert(differ(a, before, wrong, SAME_ROUNDED));
  arena_destroy(a);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("same values");
  tcase_add_loop_test(c, bits, 0, sizeof pairs / sizeof *pairs);
  tcase_add_test(c, rounded);
  return run_suite("same values", c);
}
