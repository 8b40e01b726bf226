/* suite.h - runs the tests of a program that uses Check. */
#ifndef TESTS_SUITE_H
#define TESTS_SUITE_H

#include <check.h>
#include <stdlib.h>

#define ASSERT_OK(expression)                                          \
  do {                                                                 \
    status bad_ = (expression);                                        \
    ck_assert_msg(!bad_, "%s: %s", #expression, status_message(bad_)); \
  } while (0)

/* Runs the suite; returns what main must return.  CK_VERBOSITY says how much is printed.  Sessions that name no cache
 * have none, so that what the user's cache holds changes no test. */
static inline int run_whole_suite(Suite *s) {
  setenv("ONNX_XLA_CACHE", "", 1);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed > 0;
}

/* Runs the tests as a suite of that name; returns what main must return. */
static inline int run_suite(const char *name, TCase *tests) {
  Suite *s = suite_create(name);
  suite_add_tcase(s, tests);
  return run_whole_suite(s);
}

#endif
