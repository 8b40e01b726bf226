/* suite.h - the end of a Check program. */
#ifndef TESTS_SUITE_H
#define TESTS_SUITE_H

#include <check.h>

/* Runs the tests as a suite of that name; gives what main returns.  CK_VERBOSITY says how much is printed. */
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
