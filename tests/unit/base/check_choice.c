/* check_choice.c - the words of a list "a|b|c". */
#include <check.h>

#include "base/choice.h"
#include "tests/suite.h"

START_TEST(words_are_choices) {
  static const char *const words[] = {"off", "fast", "full", "on"};
  for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
    ck_assert(is_choice("off|fast|full|on", words[k]));
    ck_assert(is_choice(words[k], words[k]));
  }
  ck_assert(is_choice("alone|one", "one")); /* "one" is also a part of "alone" */
}
END_TEST

START_TEST(other_texts_are_not) {
  static const char *const texts[] = {"",     "o",          "of",       "offf",      "n",     "Off",  "off ", "|",
                                      "off|", "|fast|full", "off|fast", "fast|full", "ffull", "l|on", "on|"};
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    ck_assert_msg(!is_choice("off|fast|full|on", texts[k]), "%s", texts[k]);
  }
}
END_TEST

int main(void) {
  TCase *tests = tcase_create("choice");
  tcase_add_test(tests, words_are_choices);
  tcase_add_test(tests, other_texts_are_not);
  return run_suite("choice", tests);
}
