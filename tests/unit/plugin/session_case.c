/* session_case.c - a session on a small model in a file, for tests of sessions. */
#include "tests/unit/plugin/session_case.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/suite.h"

char session_case_path[] = "/tmp/check-session-XXXXXX";

void session_case_setup(void) {
  strcpy(session_case_path + sizeof session_case_path - 7, "XXXXXX");
  int fd = mkstemp(session_case_path);
  ck_assert(fd >= 0);
  close(fd);
}

void session_case_teardown(void) { unlink(session_case_path); }

session *session_case_open_with(const char *file, session_options options) {
  session *s;
  ASSERT_OK(session_open(file, NULL, 0, &options, &s));
  return s;
}

session *session_case_open(const char *file, const char *backend) {
  return session_case_open_with(file, (session_options){.backend = backend, .open_dim = 1, .compile.threads = 1});
}

const session_program *session_case_compile(session *s, int64_t rows, int64_t columns) {
  shape given = shape_make(DTYPE_F32, 2, (dim[]){rows, columns});
  const session_program *c;
  ASSERT_OK(session_compile(s, &(session_inputs){.shapes = (const shape *[]){&given}}, &c));
  return c;
}

void session_case_run_relu(session *s, const session_program *c, int64_t n) {
  enum { MOST = 128 };
  float x[MOST], y[MOST];
  ck_assert(n <= MOST);
  for (int64_t k = 0; k < n; k++) {
    x[k] = k % 2 ? (float)-k : (float)k;
  }
  session_output out = {.given = y, .given_bytes = (size_t)n * sizeof *y};
  ASSERT_OK(session_run(s, c, NULL, &(session_inputs){.values = (const void *[]){x}}, &out));
  for (int64_t k = 0; k < n; k++) {
    ck_assert(y[k] == (k % 2 ? 0 : x[k]));
  }
}

void session_case_set_type(arena *a, Onnx__ValueInfoProto *v, int type, const char *dims) {
  Onnx__TypeProto *t = PB_NEW(a, Onnx__TypeProto, ONNX__TYPE_PROTO__INIT);
  Onnx__TypeProto__Tensor *tensor = PB_NEW(a, Onnx__TypeProto__Tensor, ONNX__TYPE_PROTO__TENSOR__INIT);
  tensor->has_elem_type = 1;
  tensor->elem_type = type;
  tensor->shape = PB_NEW(a, Onnx__TensorShapeProto, ONNX__TENSOR_SHAPE_PROTO__INIT);
  size_t n;
  char **list = names(a, dims, &n);
  for (size_t k = 0; k < n; k++) {
    Onnx__TensorShapeProto__Dimension *d =
        PB_NEW(a, Onnx__TensorShapeProto__Dimension, ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT);
    bool fixed = *list[k] >= '0' && *list[k] <= '9';
    d->value_case = fixed ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE
                          : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    if (fixed) {
      d->dim_value = atoi(list[k]);
    } else {
      d->dim_param = list[k];
    }
    PB_ADD(a, tensor->shape->dim, tensor->shape->n_dim, d);
  }
  t->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  t->tensor_type = tensor;
  v->type = t;
}

void session_case_write(arena *a, const Onnx__ModelProto *m) {
  size_t size;
  uint8_t *bytes = pack(a, m, &size);
  ASSERT_OK(file_write(session_case_path, bytes, size));
  arena_destroy(a);
}

void session_case_write_relu(void) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  graph_node(a, m->graph, "Relu", "x", "y");
  session_case_set_type(a, m->graph->input[0], 1, "n,m");
  session_case_set_type(a, m->graph->output[0], 1, "n,m");
  session_case_write(a, m);
}
