/* api_client.h - what the tests of onnx-xla.h share. */
#ifndef TESTS_API_API_CLIENT_H
#define TESTS_API_API_CLIENT_H

#include <check.h>
#include <stdlib.h>
#include <time.h>

#include "../suite.h"
#include "onnx-xla.h"
#include "write_model.h"

static const char *const backends[] = {"cpu", "ref"};               /* a test that runs for both takes backends[_i] */
static const float W[] = {1, -2, 0.5f, 3}, B[] = {0, 1, -1, 0.25f}; /* the weights of affine_model */

static inline void succeed(oxla_error *error) { ck_assert_msg(!error, "%s", oxla_error_message(error)); }

/* Expects an error with this code and this subject, whose message contains `part`.  Frees it. */
static inline void refuse_about(oxla_error *error, oxla_code code, oxla_subject about, const char *part) {
  ck_assert_msg(oxla_error_code(error) == code, "code %d, not %d: %s", (int)oxla_error_code(error), (int)code,
                oxla_error_message(error));
  ck_assert_msg(strstr(oxla_error_message(error), part), "'%s' does not say '%s'", oxla_error_message(error), part);
  ck_assert_int_eq(oxla_error_subject(error), about);
  oxla_error_free(error);
}

static inline void refuse(oxla_error *error, oxla_code code, const char *part) {
  refuse_about(error, code, oxla_error_subject(error), part);
}

static inline double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline oxla_model *load_with(const message *m, oxla_options o) {
  oxla_model *model;
  o.size = sizeof o;
  succeed(oxla_load_memory(m->bytes, m->n, &o, &model));
  return model;
}

static inline oxla_model *load(const message *m, int backend) {
  return load_with(m, (oxla_options){.backend = backends[backend], .threads = 2});
}

static inline oxla_run *new_run(oxla_model *m) {
  oxla_run *run;
  succeed(oxla_run_create(m, &run));
  return run;
}

/* An input of affine_model, and the output that it must give. */
typedef struct numbers {
  float *x, *want;
} numbers;

static inline numbers make_numbers(int rows, float first) {
  size_t bytes = (size_t)rows * 4 * sizeof(float);
  numbers v = {malloc(bytes), malloc(bytes)};
  for (int k = 0; k < 4 * rows; k++) {
    v.x[k] = first + (float)(k % 1000 - 6) * 1.25f;
  }
  affine(rows, v.x, W, B, v.want);
  return v;
}

static inline void free_numbers(numbers *v) {
  free(v->x);
  free(v->want);
}

static inline void set_affine(oxla_run *run, const numbers *v, int rows) {
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){rows, 4}, v->x));
}

/* Expects that the run of affine_model has computed v->want, and returns its output. */
static inline oxla_tensor check_result(const oxla_run *run, const numbers *v, int rows) {
  oxla_tensor y;
  succeed(oxla_get_output(run, "y", &y));
  ck_assert_int_eq(y.type, OXLA_FLOAT);
  ck_assert_int_eq(y.rank, 2);
  ck_assert_int_eq(y.dims[0], rows);
  ck_assert_int_eq(y.dims[1], 4);
  ck_assert_uint_eq(y.bytes, (size_t)rows * 4 * sizeof *v->x);
  ck_assert_mem_eq(y.data, v->want, y.bytes);
  return y;
}

static inline void run_affine(oxla_run *run, int rows, float first) {
  numbers v = make_numbers(rows, first);
  set_affine(run, &v, rows);
  succeed(oxla_execute(run));
  check_result(run, &v, rows);
  free_numbers(&v);
}

/* y = x, squared again and again for ever: a Loop without a count, whose condition stays true if `go` is true. */
static inline message endless_model(void) {
  message body = {.n = 0}, loop = {.n = 0}, attribute = {.n = 0}, g = {.n = 0};
  add_node(&body, "Identity", "go", NULL, "on");
  add_node(&body, "Mul", "s", "s", "t");
  put_text(&body, GRAPH_NAME, "body");
  add_value(&body, GRAPH_INPUT, "i", 7, SCALAR);
  add_value(&body, GRAPH_INPUT, "go", 9, SCALAR);
  add_value(&body, GRAPH_INPUT, "s", 1, DIMS(4));
  add_value(&body, GRAPH_OUTPUT, "on", 9, SCALAR);
  add_value(&body, GRAPH_OUTPUT, "t", 1, DIMS(4));
  put_text(&attribute, 1, "body");
  put_message(&attribute, 6, &body);
  put_int(&attribute, 20, 5);
  put_text(&loop, 1, "");
  put_text(&loop, 1, "go");
  put_text(&loop, 1, "x");
  put_text(&loop, 2, "y");
  put_text(&loop, 4, "Loop");
  put_message(&loop, 5, &attribute);
  put_message(&g, GRAPH_NODE, &loop);
  add_value(&g, GRAPH_INPUT, "go", 9, SCALAR);
  add_value(&g, GRAPH_INPUT, "x", 1, DIMS(4));
  add_value(&g, GRAPH_OUTPUT, "y", 1, DIMS(4));
  return finish_model(&g, 8, 13);
}

/* Returns a run of endless_model, which ends at once if *go is 0, and never otherwise. */
static inline oxla_run *endless_run(oxla_model *model, uint8_t *go, float *x) {
  oxla_run *run = new_run(model);
  succeed(oxla_set_input(run, "go", OXLA_BOOL, 0, NULL, go));
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 1, (int64_t[]){4}, x));
  return run;
}

/* Runs the tests `once`, and the tests `both` for each backend. */
static inline int run_tests(const char *name, const TTest *const *once, const TTest *const *both) {
  TCase *t = tcase_create("all");
  tcase_set_timeout(t, 120); /* the machine may be busy with other tests */
  for (; *once; once++) {
    tcase_add_test(t, *once);
  }
  for (; *both; both++) {
    tcase_add_loop_test(t, *both, 0, 2);
  }
  return run_suite(name, t);
}

#endif
