/* check_string_table.c - numbers for strings, and tables that extend others. */
#include <check.h>
#include <string.h>

#include "base/tensor/string_table.h"
#include "tests/suite.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

START_TEST(strings_are_counted) {
  string_table *t = string_table_create(memory, NULL);
  size_t n;
  ck_assert_uint_eq(string_table_add(t, "one", 3), 1);
  ck_assert_uint_eq(string_table_add(t, "two", 3), 2);
  ck_assert_uint_eq(string_table_add(t, "one", 3), 1);
  ck_assert_uint_eq(string_table_add(t, NULL, 0), 0);
  ck_assert_uint_eq(string_table_count(t), 3);
  ck_assert_str_eq(string_table_text(t, 2, &n), "two");
  ck_assert_uint_eq(n, 3);
  ck_assert_str_eq(string_table_text(t, 0, &n), "");
  ck_assert_uint_eq(n, 0);
  ck_assert_ptr_null(string_table_text(t, 3, &n));
  ck_assert_ptr_null(string_table_text(t, UINT64_MAX, &n));
}
END_TEST

START_TEST(strings_have_any_bytes) {
  string_table *t = string_table_create(memory, NULL);
  size_t n;
  ck_assert_uint_eq(string_table_add(t, "a\0b", 3), 1);
  ck_assert_uint_eq(string_table_add(t, "a\0c", 3), 2);
  ck_assert_uint_eq(string_table_add(t, "a", 1), 3);
  ck_assert_mem_eq(string_table_text(t, 2, &n), "a\0c", 4);
  ck_assert_uint_eq(n, 3);
}
END_TEST

START_TEST(a_table_extends_another) {
  string_table *model = string_table_create(memory, NULL);
  size_t n;
  (void)string_table_add(model, "cat", 3);
  string_table *one = string_table_create(memory, model), *other = string_table_create(memory, model);
  ck_assert_uint_eq(string_table_add(one, "cat", 3), 1);
  ck_assert_uint_eq(string_table_add(one, "", 0), 0);
  ck_assert_uint_eq(string_table_add(one, "dog", 3), 2);
  ck_assert_uint_eq(string_table_add(other, "cow", 3), 2);
  ck_assert_str_eq(string_table_text(one, 1, &n), "cat");
  ck_assert_str_eq(string_table_text(one, 2, &n), "dog");
  ck_assert_str_eq(string_table_text(other, 2, &n), "cow");
  ck_assert_uint_eq(string_table_count(model), 2);
  string_table_add_all(other, one);
  ck_assert_uint_eq(string_table_count(other), 4);
  ck_assert_str_eq(string_table_text(other, 3, &n), "dog");
  ck_assert_ptr_null(string_table_text(model, 2, &n));
}
END_TEST

int main(void) {
  TCase *all = tcase_create("all");
  tcase_add_checked_fixture(all, setup, teardown);
  tcase_add_test(all, strings_are_counted);
  tcase_add_test(all, strings_have_any_bytes);
  tcase_add_test(all, a_table_extends_another);
  return run_suite("string_table", all);
}
