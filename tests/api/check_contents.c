/* check_contents.c - inputs whose contents decide sizes. */
#include <string.h>

#include "api_client.h"

START_TEST(values_decide_sizes) {
  message g = {.n = 0};
  add_value(&g, GRAPH_INPUT, "x", 1, DIMS(2, 6));
  add_value(&g, GRAPH_INPUT, "s", 7, DIMS(2));
  add_node(&g, "Reshape", "x", "s", "y");
  add_value(&g, GRAPH_OUTPUT, "y", 1, DIMS(-1, -2));
  message m = finish_model(&g, 8, 13);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  float x[12] = {1, 2, 3};
  int64_t s[2];
  oxla_tensor y;
  refuse_about(oxla_check(model), OXLA_UNSUPPORTED, OXLA_ABOUT_VALUE, "");
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){2, 6}, x));
  succeed(oxla_set_input(run, "s", OXLA_INT64, 1, (int64_t[]){2}, NULL));
  refuse_about(oxla_compile(run), OXLA_UNSUPPORTED, OXLA_ABOUT_VALUE, "");
  succeed(oxla_set_input(run, "s", OXLA_INT64, 1, (int64_t[]){2}, s));
  for (int n = 1; n <= 4; n++) {
    s[0] = n;
    s[1] = 12 / n;
    succeed(oxla_execute(run));
    succeed(oxla_get_output(run, "y", &y));
    ck_assert_int_eq(y.dims[0], n);
    ck_assert_mem_eq(y.data, x, sizeof x);
  }
  s[0] = 5;
  s[1] = 5;
  refuse_about(oxla_execute(run), OXLA_INVALID_MODEL, OXLA_ABOUT_NOTHING, "25 elements");
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* The contents of one input are known and wrong: the error is about these, not about the unknown contents of another
 * input, which a caller would supply in vain. */
START_TEST(wrong_contents_beside_unknown_ones) {
  message g = {.n = 0};
  add_value(&g, GRAPH_INPUT, "x", 1, DIMS(2, 6));
  add_value(&g, GRAPH_INPUT, "s", 7, DIMS(2));
  add_value(&g, GRAPH_INPUT, "t", 7, DIMS(1));
  add_node(&g, "Reshape", "x", "s", "y");
  add_node(&g, "Reshape", "x", "t", "z");
  add_value(&g, GRAPH_OUTPUT, "y", 1, DIMS(-1, -2));
  add_value(&g, GRAPH_OUTPUT, "z", 1, DIMS(-3));
  message m = finish_model(&g, 8, 13);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){2, 6}, NULL));
  succeed(oxla_set_input(run, "s", OXLA_INT64, 1, (int64_t[]){2}, (int64_t[]){5, 5}));
  succeed(oxla_set_input(run, "t", OXLA_INT64, 1, (int64_t[]){1}, NULL));
  refuse_about(oxla_compile(run), OXLA_INVALID_MODEL, OXLA_ABOUT_NOTHING, "25 elements");
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* Only the contents of an input change between the executions of one run.  The second contents make the session compile
 * a program for all contents. */
START_TEST(contents_decide_sizes) {
  message g = {.n = 0};
  add_value(&g, GRAPH_INPUT, "x", 1, DIMS(1));
  add_value(&g, GRAPH_INPUT, "s", 7, DIMS(1));
  add_node(&g, "Expand", "x", "s", "y");
  add_value(&g, GRAPH_OUTPUT, "y", 1, DIMS(-1));
  message m = finish_model(&g, 8, 13);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  float x = 3;
  int64_t s;
  oxla_tensor y;
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 1, (int64_t[]){1}, &x));
  succeed(oxla_set_input(run, "s", OXLA_INT64, 1, (int64_t[]){1}, &s));
  for (int k = 0; k < 8; k++) {
    s = 1 + 3 * k % 7;
    succeed(oxla_execute(run));
    succeed(oxla_get_output(run, "y", &y));
    ck_assert_int_eq(y.dims[0], s);
    ck_assert(((const float *)y.data)[s - 1] == x);
  }
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("contents");
  tcase_set_timeout(c, 60);
  tcase_add_loop_test(c, values_decide_sizes, 0, 2);
  tcase_add_loop_test(c, wrong_contents_beside_unknown_ones, 0, 2);
  tcase_add_loop_test(c, contents_decide_sizes, 0, 2);
  return run_suite("contents", c);
}
