/* suite.h - runs the tests of a program that uses Check. */
#ifndef TESTS_SUITE_H
#define TESTS_SUITE_H

#include <check.h>

#define ASSERT_OK(expression)                                          \
  do {                                                                 \
    status bad_ = (expression);                                        \
    ck_assert_msg(!bad_, "%s: %s", #expression, status_message(bad_)); \
  } while (0)

/* Runs the tests as a suite of that name; returns what main must return.  CK_VERBOSITY says how much is printed. */
static inline int run_suite(const char *name, TCase *tests) {
  Suite *s = suite_create(name);
  suite_add_tcase(s, tests);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed > 0;
}

#endif
