/* check_strings.c - arrays of strings: their numbers, which a caller gets and gives in place of bytes. */
#include <string.h>

#include "api_client.h"

/* Adds an initializer with strings. */
static void add_strings(message *graph, const char *name, int n, const char *const *strings) {
  message t = {.n = 0};
  put_int(&t, 1, n);           /* dims */
  put_int(&t, 2, OXLA_STRING); /* data_type */
  for (int k = 0; k < n; k++) {
    put_text(&t, 6, strings[k]); /* string_data */
  }
  put_text(&t, 8, name);
  put_message(graph, GRAPH_INITIALIZER, &t);
}

/* A model of e = Equal(x, words) and w = words. */
static message words_model(void) {
  message g = {.n = 0};
  add_value(&g, GRAPH_INPUT, "x", OXLA_STRING, DIMS(-1));
  add_strings(&g, "words", 3, (const char *const[]){"cat", "dog", "cat"});
  add_node(&g, "Equal", "x", "words", "e");
  add_node(&g, "Identity", "words", NULL, "w");
  add_value(&g, GRAPH_OUTPUT, "e", OXLA_BOOL, DIMS(-1));
  add_value(&g, GRAPH_OUTPUT, "w", OXLA_STRING, DIMS(3));
  return finish_model(&g, 8, 19);
}

static uint64_t number(oxla_run *run, const char *text) {
  uint64_t out;
  succeed(oxla_string_number(run, text, strlen(text), &out));
  return out;
}

static void expect_text(const oxla_run *run, uint64_t number, const char *want) {
  size_t n;
  const char *bytes = oxla_string_bytes(run, number, &n);
  ck_assert_ptr_nonnull(bytes);
  ck_assert_str_eq(bytes, want);
  ck_assert_uint_eq(n, strlen(want));
}

static void execute(oxla_run *run) {
  oxla_tensor e, w;
  const uint64_t x[] = {number(run, "cat"), number(run, "cow"), number(run, "dog")};
  succeed(oxla_set_input(run, "x", OXLA_STRING, 1, (int64_t[]){3}, x));
  succeed(oxla_execute(run));
  succeed(oxla_get_output(run, "e", &e));
  succeed(oxla_get_output(run, "w", &w));
  ck_assert_mem_eq(e.data, ((const uint8_t[]){1, 0, 0}), 3);
  ck_assert_int_eq(w.type, OXLA_STRING);
  expect_text(run, ((const uint64_t *)w.data)[1], "dog");
  expect_text(run, ((const uint64_t *)w.data)[2], "cat");
}

START_TEST(strings_have_numbers) {
  message m = words_model();
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model), *other = new_run(model);
  execute(run);
  ck_assert_uint_eq(number(run, ""), 0);
  ck_assert_uint_eq(number(run, "cat"), number(other, "cat"));
  ck_assert_uint_eq(number(run, "cow"), number(run, "cow"));
  ck_assert_uint_eq(number(run, "cow"), number(other, "hen")); /* numbers of other strings are the run's own */
  expect_text(run, number(run, "cow"), "cow");
  refuse(oxla_string_number(run, NULL, 3, &(uint64_t){0}), OXLA_INVALID_ARGUMENT, "no string is given");
  uint64_t cow = number(run, "cow"), cat = number(run, "cat");
  oxla_forget_strings(run);
  ck_assert_ptr_null(oxla_string_bytes(run, cow, NULL));
  expect_text(run, cat, "cat");
  execute(run);
  oxla_run_destroy(run);
  oxla_run_destroy(other);
  oxla_model_destroy(model);
}
END_TEST

START_TEST(a_file_has_the_strings) {
  message m = words_model();
  oxla_model *model = load(&m, _i), *loaded;
  oxla_run *run = new_run(model);
  void *bytes;
  size_t size;
  execute(run);
  succeed(oxla_save_memory(model, &bytes, &size));
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  succeed(oxla_load_memory(bytes, size, NULL, &loaded));
  run = new_run(loaded);
  execute(run);
  oxla_run_destroy(run);
  oxla_model_destroy(loaded);
  oxla_free(bytes);
}
END_TEST

/* c = StringConcat(x, words), whose strings the run adds to those that it knows. */
START_TEST(strings_are_made) {
  message g = {.n = 0};
  add_value(&g, GRAPH_INPUT, "x", OXLA_STRING, DIMS(-1));
  add_strings(&g, "words", 1, (const char *const[]){"s"});
  add_node(&g, "StringConcat", "x", "words", "c");
  add_value(&g, GRAPH_OUTPUT, "c", OXLA_STRING, DIMS(-1));
  message m = finish_model(&g, 9, 20);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  oxla_tensor c;
  for (int64_t n = 1; n <= 3; n++) {
    const uint64_t x[] = {number(run, "cat"), number(run, ""), number(run, "cow")};
    succeed(oxla_set_input(run, "x", OXLA_STRING, 1, &n, x));
    succeed(oxla_execute(run));
    succeed(oxla_get_output(run, "c", &c));
    ck_assert_int_eq(c.dims[0], n);
    expect_text(run, ((const uint64_t *)c.data)[0], "cats");
    ck_assert_uint_eq(((const uint64_t *)c.data)[0], number(run, "cats"));
    if (n == 3) {
      ck_assert_uint_eq(((const uint64_t *)c.data)[1], number(run, "s"));
      expect_text(run, ((const uint64_t *)c.data)[2], "cows");
      oxla_forget_strings(run);
    }
  }
  succeed(oxla_set_input(run, "x", OXLA_STRING, 1, (int64_t[]){1}, &(uint64_t){77}));
  refuse(oxla_execute(run), OXLA_INVALID_ARGUMENT, "there is no string 77");
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("strings");
  tcase_set_timeout(c, 60);
  tcase_add_loop_test(c, strings_have_numbers, 0, 2);
  tcase_add_loop_test(c, a_file_has_the_strings, 0, 2);
  tcase_add_loop_test(c, strings_are_made, 0, 2);
  return run_suite("strings", c);
}
