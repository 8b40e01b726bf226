/* check_contents.c - models whose sizes depend on the contents of inputs: one program serves many contents. */
#include <check.h>

#include "plugin/session/internal.h"
#include "tests/suite.h"
#include "tests/unit/plugin/compiler_half.h"
#include "tests/unit/plugin/session_case.h"

static const char *const backends[] = {"ref", "cpu"};

enum { MOST = 64, SIZES = 20 };

/* A session on the model with inputs x, f32[n], and c. */
typedef struct contents_case {
  session *s;
  shape shapes[2];
  const shape *inputs[2];
  const void *values[2];
  float x[MOST];
  session_output out;
} contents_case;

static void begin(contents_case *t, const char *file, const char *backend, int64_t n, dtype type, int64_t n_contents) {
  *t = (contents_case){.s = session_case_open_with(
                           file, (session_options){.backend = backend, .compile.threads = 1, .specialise = "off"})};
  t->shapes[0] = shape_make(DTYPE_F32, 1, (dim[]){n});
  t->shapes[1] = shape_make(type, n_contents < 0 ? 0 : 1, (dim[]){n_contents});
  for (int k = 0; k < MOST; k++) {
    t->x[k] = (float)k;
  }
}

static session_inputs inputs_of(contents_case *t, const void *contents) {
  for (int k = 0; k < 2; k++) {
    t->inputs[k] = &t->shapes[k];
  }
  t->values[0] = t->x;
  t->values[1] = contents;
  return (session_inputs){.shapes = t->inputs, .values = t->values};
}

static void run(contents_case *t, const void *contents) {
  const session_program *c;
  session_inputs inputs = inputs_of(t, contents);
  ASSERT_OK(session_compile(t->s, &inputs, &c));
  ASSERT_OK(session_run(t->s, c, NULL, &inputs, &t->out));
  session_release(t->s, c);
}

static void end(contents_case *t) {
  session_output_finish(t->s, &t->out);
  session_close(t->s);
}

static void write_model(arena *a, Onnx__ModelProto *m, int type, const char *dims, const char *x_dims, int rank) {
  session_case_set_type(a, m->graph->input[0], 1, x_dims);
  session_case_set_type(a, m->graph->input[1], type, dims);
  session_case_set_type(a, m->graph->output[0], 1, rank == 1 ? "p" : "p,q");
  session_case_write(a, m);
}

/* y = Reshape(-x, c). */
static void write_reshape(void) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x,c", "y");
  graph_node(a, m->graph, "Neg", "x", "n");
  graph_node(a, m->graph, "Reshape", "n,c", "y");
  write_model(a, m, 7, "2", "n", 2);
}

static void run_reshape(contents_case *t, int64_t rows, int64_t columns) {
  int64_t inferred = rows < 0 ? t->shapes[0].dims[0] / columns : rows;
  t->shapes[0].dims[0] = inferred * columns;
  run(t, (int64_t[]){rows, columns});
  ck_assert_int_eq(t->out.shape.dims[0], inferred);
  ck_assert_int_eq(t->out.shape.dims[1], columns);
  for (int64_t k = 0; k < inferred * columns; k++) {
    ck_assert_float_eq(((const float *)t->out.data)[k], (float)-k);
  }
}

START_TEST(a_shape) {
  contents_case t;
  write_reshape();
  begin(&t, session_case_path, backends[_i], 6, DTYPE_S64, 2);
  for (int k = 0; k < SIZES; k++) {
    run_reshape(&t, 2 + k % 5, 3 + k % 7);
  }
  ck_assert_uint_eq(t.s->n_generals, 1);
  ck_assert_uint_eq(t.s->compiled.n, 0);
  run_reshape(&t, 0, 3);
  run_reshape(&t, 1, 1);
  end(&t);
}
END_TEST

/* Contents with a negative element, for which no symbol can stand, get a program of their own. */
START_TEST(a_negative_element) {
  contents_case t;
  write_reshape();
  begin(&t, session_case_path, backends[_i], 6, DTYPE_S64, 2);
  for (int k = 0; k < 3; k++) {
    run_reshape(&t, 2, 3);
    t.shapes[0].dims[0] = 12;
    run_reshape(&t, -1, 3);
    t.shapes[0].dims[0] = 24;
    run_reshape(&t, -1, 4);
    run_reshape(&t, 5, 4);
  }
  end(&t);
}
END_TEST

/* The program is saved, and serves other contents in a process that has no compiler. */
START_TEST(saved) {
  contents_case t;
  write_reshape();
  begin(&t, session_case_path, backends[_i], 6, DTYPE_S64, 2);
  run_reshape(&t, 2, 3);
  ASSERT_OK(session_save(t.s, session_case_path));
  end(&t);
  begin(&t, session_case_path, NULL, 6, DTYPE_S64, 2);
  ck_assert_uint_eq(session_source(t.s)->n_inputs, 2);
  run_reshape(&t, 2, 3);
  run_reshape(&t, 7, 5);
  int64_t wrong[] = {-1, 3};
  const session_program *c;
  session_inputs inputs = inputs_of(&t, wrong);
  ASSERT_FAILS(session_compile(t.s, &inputs, &c), STATUS_INVALID_ARGUMENT, "no program for these inputs");
  end(&t);
}
END_TEST

/* y = x[0:c], where no dimension is open. */
static void write_slice(void) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x,c", "y");
  graph_node(a, m->graph, "Sub", "c,c", "zero");
  graph_node(a, m->graph, "Slice", "x,zero,c", "y");
  write_model(a, m, 7, "1", "64", 1);
}

/* When contents change for the first time, a program for all contents is compiled. */
START_TEST(constant_dimensions) {
  contents_case t;
  write_slice();
  begin(&t, session_case_path, backends[_i], MOST, DTYPE_S64, 1);
  for (int64_t k = 0; k < SIZES; k++) {
    int64_t count = 10 + 3 * k % 50;
    run(&t, &count);
    ck_assert_int_eq(t.out.shape.dims[0], count);
    ck_assert_float_eq(((const float *)t.out.data)[count - 1], (float)count - 1);
  }
  ck_assert_uint_eq(t.s->n_generals, 1);
  ck_assert_uint_eq(t.s->compiled.n, 1);
  end(&t);
}
END_TEST

/* A program that is for certain contents refuses others, and says that it is because of an input's value. */
START_TEST(other_contents) {
  contents_case t;
  const session_program *c;
  int64_t count = 10, other = 13;
  write_slice();
  begin(&t, session_case_path, backends[_i], MOST, DTYPE_S64, 1);
  session_inputs inputs = inputs_of(&t, &count);
  ASSERT_OK(session_compile(t.s, &inputs, &c));
  inputs = inputs_of(&t, &other);
  status refused = session_run(t.s, c, NULL, &inputs, &t.out);
  ck_assert_msg(refused && strstr(status_message(refused), "holds other values"), "%s", status_message(refused));
  ck_assert_int_eq(status_get_subject(refused), STATUS_ABOUT_VALUE);
  status_free(refused);
  session_release(t.s, c);
  end(&t);
}
END_TEST

/* y = x[0:least of c], where the elements of c may be so large that y is all of x. */
START_TEST(large_elements) {
  contents_case t;
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x,c", "y");
  graph_node(a, m->graph, "ReduceMin", "c", "least");
  graph_node(a, m->graph, "Sub", "least,least", "zero");
  graph_node(a, m->graph, "Slice", "x,zero,least", "y");
  write_model(a, m, 7, "2", "n", 1);
  begin(&t, session_case_path, backends[_i], 6, DTYPE_S64, 2);
  for (int64_t k = 0; k < 4; k++) {
    int64_t ends[] = {k % 2 ? 4 : INT32_MAX, INT32_MAX};
    run(&t, ends);
    ck_assert_int_eq(t.out.shape.dims[0], k % 2 ? 4 : 6);
  }
  end(&t);
}
END_TEST

static Onnx__GraphProto *branch(arena *a, const char *op) {
  Onnx__GraphProto *g = new_graph(a, "", "r");
  graph_node(a, g, op, "x", "r");
  return g;
}

/* y = Exp(x) or Neg(x), as c says; only the branch that is taken is compiled. */
static void write_if(int type, const char *condition) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x,c", "y");
  if (condition) {
    graph_node(a, m->graph, "Sub", "c,c", "zero");
    graph_node(a, m->graph, condition, "c,zero", "cond");
  } else {
    graph_node(a, m->graph, "Identity", "c", "cond");
  }
  Onnx__NodeProto *node = graph_node(a, m->graph, "If", "cond", "y");
  set_graph(a, node, "then_branch", branch(a, "Exp"));
  set_graph(a, node, "else_branch", branch(a, "Neg"));
  write_model(a, m, type, "", "n", 1);
}

static void run_if(contents_case *t, int64_t n, const void *contents, bool taken) {
  t->shapes[0].dims[0] = n;
  run(t, contents);
  ck_assert_int_eq(t->out.shape.dims[0], n);
  ck_assert_float_eq(((const float *)t->out.data)[0], taken ? 1 : 0);
}

START_TEST(a_condition) {
  contents_case t;
  write_if(9, NULL);
  begin(&t, session_case_path, backends[_i], 6, DTYPE_PRED, -1);
  for (int k = 0; k < SIZES; k++) {
    bool taken = k % 3 == 0;
    run_if(&t, 2 + k, &taken, taken);
  }
  ck_assert_uint_eq(t.s->n_generals, 2);
  end(&t);
}
END_TEST

/* A guard compares the number with 0, so that there are two programs, whatever numbers come. */
START_TEST(a_compared_number) {
  contents_case t;
  write_if(7, "Greater");
  begin(&t, session_case_path, backends[_i], 6, DTYPE_S64, -1);
  for (int64_t k = 0; k < SIZES; k++) {
    int64_t step = k % 4 ? k : 0;
    run_if(&t, 2 + k, &step, step > 0);
  }
  ck_assert_uint_eq(t.s->n_generals, 2);
  end(&t);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("contents");
  tcase_add_checked_fixture(c, session_case_setup, session_case_teardown);
  tcase_add_loop_test(c, a_shape, 0, 2);
  tcase_add_loop_test(c, a_negative_element, 0, 2);
  tcase_add_loop_test(c, saved, 0, 2);
  tcase_add_loop_test(c, constant_dimensions, 0, 2);
  tcase_add_loop_test(c, other_contents, 0, 2);
  tcase_add_loop_test(c, large_elements, 0, 2);
  tcase_add_loop_test(c, a_condition, 0, 2);
  tcase_add_loop_test(c, a_compared_number, 0, 2);
  return run_suite("contents", c);
}
