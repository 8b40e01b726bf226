/* check_options.c - the options of compile_options.def in a session: their text, the keys of compiled programs, copies.
 */
#include <check.h>
#include <string.h>

#include "plugin/session/options.h"
#include "tests/suite.h"

static arena *a;

static void setup(void) { a = arena_create(NULL); }
static void teardown(void) { arena_destroy(a); }

/* Some value of each type that is not the default. */
static const rt_option_flag some_flag = true;
static const rt_option_count some_count = 4;
static const rt_option_text some_text = "some", some_choice = "some";

static const char *const text_of_flag = "", *const text_of_count = "=4", *const text_of_text = "=some",
                         *const text_of_choice = "=some";

/* The options of sessions in which one option is set, the text for it, and its mark in the table, in_key or
 * no_key. */
static const struct {
  session_options options;
  const char *flag, *value;
  const char *key;
} rows[] = {
#define USER_OPTION(member, key, scope, type, name, flag, ...) \
  {{.member = some_##type}, "--" flag, text_of_##type, #key},
#include "runtime/program/compile_options.def"
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static rt_span key_of(const session_options *o) {
  rt_writer w = {.arena = a};
  session_put_options(&w, o);
  return rt_written(&w);
}

static bool same_key(const session_options *x, const session_options *y) {
  rt_span one = key_of(x), two = key_of(y);
  return one.size == two.size && memcmp(one.data, two.data, one.size) == 0;
}

/* If an option were left out of the key, a program would be found that was compiled with another value of
 * it. */
START_TEST(an_option_alone) {
  const session_options defaults = {0}, *o = &rows[_i].options;
  ck_assert_str_eq(session_options_text(a, o), arena_printf(a, "%s%s", rows[_i].flag, rows[_i].value));
  ck_assert(same_key(o, o));
  ck_assert_int_eq(!same_key(o, &defaults), strcmp(rows[_i].key, "in_key") == 0);
  for (int k = 0; k < _i; k++) {
    ck_assert(!same_key(o, &rows[k].options) || strcmp(rows[_i].key, "in_key") != 0);
  }
}
END_TEST

/* States by hand which options compiled programs depend on, so that a wrong mark in the table is noticed. */
START_TEST(keys) {
  const session_options defaults = {0};
  const session_options differ[] = {{.compile.cpu = "x86-64"},
                                    {.compile.lanes = 4},
                                    {.compile.threads = 2},
                                    {.compile.skip_passes = "cse"},
                                    {.compile.unchecked = true},
                                    {.compile.small = true},
                                    {.compile.numerics.exact = true},
                                    {.compile.numerics.deterministic = true},
                                    {.compile.numerics.reduced_precision = DTYPE_BF16},
                                    {.compile.numerics.reduced_precision = DTYPE_F16},
                                    {.compile.numerics.reduced_precision = DTYPE_F32},
                                    {.compile.out_of_place = true},
                                    {.compile.algorithm = 2}};
  for (size_t k = 0; k < sizeof differ / sizeof *differ; k++) {
    ck_assert_msg(!same_key(&differ[k], &defaults), "%zu", k);
    for (size_t other = 0; other < k; other++) {
      ck_assert_msg(!same_key(&differ[k], &differ[other]), "%zu and %zu", k, other);
    }
  }
  const session_options same[] = {{.compile.keep_text = true}, {.compile.tune_log = "log"}, {.tune = "off"}};
  for (size_t k = 0; k < sizeof same / sizeof *same; k++) {
    ck_assert_msg(same_key(&same[k], &defaults), "%zu", k);
  }
}
END_TEST

START_TEST(texts) {
  const session_options o = {
      .compile = {.cpu = "x86-64", .threads = 2, .numerics = {.exact = true}}, .tune = "off", .precision = "fp32"};
  ck_assert_str_eq(session_options_text(a, &(session_options){0}), "");
  ck_assert_str_eq(session_options_text(a, &o), "--cpu=x86-64 --threads=2 --tune=off --precision=fp32 --exact");
}
END_TEST

START_TEST(copies) {
  char cpu[] = "x86-64", tune[] = "off";
  session_options o = {.compile = {.cpu = cpu, .lanes = 8}, .tune = tune};
  session_copy_options(a, &o);
  memset(cpu, '?', sizeof cpu - 1);
  memset(tune, '?', sizeof tune - 1);
  ck_assert_str_eq(o.compile.cpu, "x86-64");
  ck_assert_str_eq(o.tune, "off");
  ck_assert_ptr_null(o.compile.skip_passes);
  ck_assert_uint_eq(o.compile.lanes, 8);
}
END_TEST

static bool is_listed(const char *flag, const char *list) {
  return strstr(list, arena_printf(a, " %s ", flag)) != NULL;
}

/* States by hand which options a backend refuses.  An option that is ignored would be a promise that is not kept. */
START_TEST(options_of_backends) {
  static const struct {
    const char *backend, *refused;
  } cases[] = {{"cpu", ""},
               {"./of_others.so", ""},
               {"gpu", " --target --own-kernels --features --small --lanes "},
               {"gpu:3", " --target --own-kernels --features --small --lanes "},
               {"gpu:host", " --target --own-kernels --features --small --lanes "},
               {"ref", " --target --own-kernels --cpu --features --small --lanes "}};
  for (int k = 0; k < N_ROWS; k++) {
    status s = session_check_taken(&rows[k].options, cases[_i].backend);
    ck_assert_msg((s != NULL) == is_listed(rows[k].flag, cases[_i].refused), "%s %s", cases[_i].backend, rows[k].flag);
    if (s) {
      ck_assert_int_eq(status_get_code(s), STATUS_INVALID_ARGUMENT);
      ck_assert_str_eq(status_message(s),
                       arena_printf(a, "backend %s has no option %s", cases[_i].backend, rows[k].flag));
    }
    status_free(s);
  }
  ck_assert_ptr_null(session_check_taken(&(session_options){0}, cases[_i].backend));
}
END_TEST

int main(void) {
  TCase *tests = tcase_create("options");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_loop_test(tests, an_option_alone, 0, N_ROWS);
  tcase_add_test(tests, keys);
  tcase_add_test(tests, texts);
  tcase_add_test(tests, copies);
  tcase_add_loop_test(tests, options_of_backends, 0, 6);
  return run_suite("options", tests);
}
