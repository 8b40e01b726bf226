/* check_precompute.c - large products of constants are computed when a model is compiled, not in its runs. */
#include <check.h>
#include <string.h>

#include "plugin/session/internal.h"
#include "tests/suite.h"
#include "tests/unit/plugin/compiler_half.h"
#include "tests/unit/plugin/session_case.h"

enum { N = 512 };

static const char *const backends[] = {"ref", "cpu", "gpu:host"};

/* A matrix in which element [i,j] is i % 5, or j % 7 if `across`. */
static void add_matrix(arena *a, Onnx__ModelProto *m, const char *name, bool across) {
  static float x[N * N];
  for (int k = 0; k < N * N; k++) {
    x[k] = across ? (float)(k % N % 7) : (float)(k / N % 5);
  }
  Onnx__TensorProto *t = new_tensor(a, name, 1, 2, (int64_t[]){N, N});
  set_raw(a, t, x, sizeof x);
  PB_ADD(a, m->graph->initializer, m->graph->n_initializer, t);
}

/* y = x - a b, and z = a x. */
static void write_products(void) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y,z");
  add_matrix(a, m, "a", true);
  add_matrix(a, m, "b", false);
  graph_node(a, m->graph, "MatMul", "a,b", "product");
  graph_node(a, m->graph, "Neg", "product", "negative");
  graph_node(a, m->graph, "Add", "x,negative", "y");
  graph_node(a, m->graph, "MatMul", "a,x", "z");
  session_case_set_type(a, m->graph->input[0], 1, "512,512");
  session_case_set_type(a, m->graph->output[0], 1, "512,512");
  session_case_set_type(a, m->graph->output[1], 1, "512,512");
  session_case_write(a, m);
}

/* Returns the number of thunks that compute a product. */
static uint32_t count_products(const rt_program *p) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < p->body.n; k++) {
    const char *operation = p->body.thunks[k].operation;
    n += strcmp(operation, "dot") == 0 || strcmp(operation, "output fusion") == 0;
  }
  return n;
}

START_TEST(products_of_constants_are_not_run) {
  static float x[N * N];
  double sum = 0;
  write_products();
  for (int k = 0; k < N; k++) {
    sum += (k % 7) * (k % 5);
  }
  session *s = session_case_open(session_case_path, backends[_i]);
  const shape given = shape_make(DTYPE_F32, 2, (dim[]){N, N}), *shapes = &given;
  const void *values = x;
  session_inputs inputs = {.shapes = &shapes, .values = &values};
  session_output out[2] = {0};
  const session_program *c;
  x[3] = 9;
  ASSERT_OK(session_compile(s, &inputs, &c));
  ASSERT_OK(session_run(s, c, NULL, &inputs, out));
  ck_assert_uint_eq(count_products(c->program), _i == 0 ? 2 : 1); /* the reference computes all of it itself */
  for (int k = 0; k < N * N; k++) {
    ck_assert_double_eq(((const float *)out[0].data)[k], x[k] - sum);
  }
  session_release(s, c);
  session_output_finish(s, &out[0]);
  session_output_finish(s, &out[1]);
  session_close(s);
}
END_TEST

/* Results that need more memory than the constants of the model are left to the runs, which free them. */
START_TEST(many_products_stay) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  static const char *const products[] = {"a,b", "b,a", "a,a", "b,b"}, *const sums[] = {"x", "s0", "s1", "s2", "y"};
  add_matrix(a, m, "a", true);
  add_matrix(a, m, "b", false);
  for (int k = 0; k < 4; k++) {
    const char *product = arena_printf(a, "p%d", k);
    graph_node(a, m->graph, "MatMul", products[k], product);
    graph_node(a, m->graph, "Mul", arena_printf(a, "%s,%s", sums[k], product), sums[k + 1]);
  }
  session_case_set_type(a, m->graph->input[0], 1, "512,512");
  session_case_set_type(a, m->graph->output[0], 1, "512,512");
  session_case_write(a, m);
  session *s = session_case_open(session_case_path, "cpu");
  const shape given = shape_make(DTYPE_F32, 2, (dim[]){N, N}), *shapes = &given;
  session_inputs inputs = {.shapes = &shapes};
  const session_program *c;
  ASSERT_OK(session_compile(s, &inputs, &c));
  ck_assert_uint_eq(count_products(c->program), 4);
  session_release(s, c);
  session_close(s);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("precompute");
  tcase_add_checked_fixture(c, session_case_setup, session_case_teardown);
  tcase_add_loop_test(c, products_of_constants_are_not_run, 0, 3);
  tcase_add_test(c, many_products_stay);
  return run_suite("precompute", c);
}
