/* write_model.h - small ONNX models as bytes, for tests that include the public header.  Of the library's own headers
 * it includes only protobuf_wire.h, which includes no other. */
#ifndef TESTS_API_WRITE_MODEL_H
#define TESTS_API_WRITE_MODEL_H

#include <assert.h>
#include <stdint.h>

#include "../../base/protobuf_wire.h"

/* A protobuf message in the making, which may be copied and need not be freed. */
typedef struct message {
  uint8_t bytes[8192];
  size_t n;
} message;

static inline pb_writer end_of(message *m) {
  return (pb_writer){.bytes = m->bytes, .n = m->n, .capacity = sizeof m->bytes, .fixed = true};
}

static inline void set_end(message *m, const pb_writer *w) {
  assert(w->n <= w->capacity);
  m->n = w->n;
}

static inline void put_int(message *m, unsigned field, int64_t value) {
  pb_writer w = end_of(m);
  pb_put_int(&w, field, value);
  set_end(m, &w);
}

static inline void put_bytes(message *m, unsigned field, const void *bytes, size_t n) {
  pb_writer w = end_of(m);
  pb_put_bytes(&w, field, bytes, n);
  set_end(m, &w);
}

static inline void put_text(message *m, unsigned field, const char *text) { put_bytes(m, field, text, strlen(text)); }

static inline void put_message(message *m, unsigned field, const message *inner) {
  put_bytes(m, field, inner->bytes, inner->n);
}

/* --- graphs --- */

enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };

/* Adds an input or output to the graph.  A dimension below 0 is the symbol "n" (-1), "m" (-2), ... */
static inline void add_value(message *graph, unsigned field, const char *name, int type, int rank,
                             const int64_t *dims) {
  message shape = {.n = 0}, tensor = {.n = 0}, about = {.n = 0}, value = {.n = 0};
  for (int k = 0; k < rank; k++) {
    message d = {.n = 0};
    if (dims[k] >= 0) {
      put_int(&d, 1, dims[k]);
    } else {
      put_text(&d, 2, (char[]){(char)('o' + dims[k]), 0});
    }
    put_message(&shape, 1, &d);
  }
  put_int(&tensor, 1, type);
  put_message(&tensor, 2, &shape);
  put_message(&about, 1, &tensor);
  put_text(&value, 1, name);
  put_message(&value, 2, &about);
  put_message(graph, field, &value);
}

#define DIMS(...) \
  (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
#define SCALAR 0, (const int64_t *)0

/* Adds a node with one or two inputs; b may be NULL. */
static inline void add_node(message *graph, const char *type, const char *a, const char *b, const char *out) {
  message node = {.n = 0};
  put_text(&node, 1, a);
  if (b) {
    put_text(&node, 1, b);
  }
  put_text(&node, 2, out);
  put_text(&node, 4, type);
  put_message(graph, GRAPH_NODE, &node);
}

static inline void add_weight(message *graph, const char *name, int type, int rank, const int64_t *dims,
                              const void *data, size_t bytes) {
  message t = {.n = 0};
  for (int k = 0; k < rank; k++) {
    put_int(&t, 1, dims[k]);
  }
  put_int(&t, 2, type);
  put_text(&t, 8, name);
  put_bytes(&t, 9, data, bytes);
  put_message(graph, GRAPH_INITIALIZER, &t);
}

static inline message finish_model(const message *graph, int64_t ir_version, int64_t opset) {
  message m = {.n = 0}, import = {.n = 0}, named = *graph;
  put_text(&named, GRAPH_NAME, "test");
  put_text(&import, 1, "");
  put_int(&import, 2, opset);
  put_int(&m, 1, ir_version);
  put_message(&m, 7, &named);
  put_message(&m, 8, &import);
  return m;
}

/* y = max(x * w + b, 0) with x f32[n, 4], w and b f32[4]; weights in the model, or inputs of it. */
static inline message affine_message(const float *w, const float *b) {
  message g = {.n = 0};
  add_node(&g, "Mul", "x", "w", "xw");
  add_node(&g, "Add", "xw", "b", "xwb");
  add_node(&g, "Relu", "xwb", NULL, "y");
  add_value(&g, GRAPH_INPUT, "x", 1, DIMS(-1, 4));
  if (w) {
    add_weight(&g, "w", 1, DIMS(4), w, 4 * sizeof *w);
    add_weight(&g, "b", 1, DIMS(4), b, 4 * sizeof *b);
  } else {
    add_value(&g, GRAPH_INPUT, "w", 1, DIMS(4));
    add_value(&g, GRAPH_INPUT, "b", 1, DIMS(4));
  }
  add_value(&g, GRAPH_OUTPUT, "y", 1, DIMS(-1, 4));
  return g;
}

static inline message affine_model(const float *w, const float *b) {
  message g = affine_message(w, b);
  return finish_model(&g, 8, 13);
}

static inline void affine(int n, const float *x, const float *w, const float *b, float *y) {
  for (int k = 0; k < 4 * n; k++) {
    float v = x[k] * w[k % 4] + b[k % 4];
    y[k] = v > 0 ? v : 0;
  }
}

/* A model of one node with the input x and the output y, both of this type and with these dims. */
static inline message unary_model(const char *op, int type, int rank, const int64_t *dims, int64_t opset) {
  message g = {.n = 0};
  add_node(&g, op, "x", NULL, "y");
  add_value(&g, GRAPH_INPUT, "x", type, rank, dims);
  add_value(&g, GRAPH_OUTPUT, "y", type, rank, dims);
  return finish_model(&g, 8, opset);
}

#endif
