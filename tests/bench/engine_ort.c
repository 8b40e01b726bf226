/* engine_ort.c - ONNX Runtime through the C API that its wheel's library carries.  The wheel brings no header; the enum
 * below has the places of the functions that are needed in the table of functions, whose order its authors promise
 * never to change.
 *
 * Its settings are those that are best for it: all optimisations, the given number of threads within an operator, one
 * operator at a time, spinning and memory patterns (the defaults); outputs of later runs are written to the memory of
 * the first run's outputs. */
#include "client.h"

#include <stdio.h>
#include <string.h>

typedef struct ort_status ort_status;
typedef struct ort_value ort_value;
typedef struct {
  const void *const *(*get_api)(uint32_t version);
  const char *(*get_version)(void);
} ort_base;

enum {
  ORT_API_1 = 1,
  GET_ERROR_MESSAGE = 2,
  CREATE_ENV = 3,
  CREATE_SESSION = 7,
  RUN = 9,
  CREATE_SESSION_OPTIONS = 10,
  SET_GRAPH_OPTIMIZATION_LEVEL = 23,
  SET_INTRA_OP_NUM_THREADS = 24,
  SESSION_GET_OUTPUT_COUNT = 31,
  SESSION_GET_OUTPUT_NAME = 37,
  CREATE_TENSOR_WITH_DATA = 49,
  GET_TENSOR_MUTABLE_DATA = 51,
  GET_TENSOR_ELEMENT_TYPE = 60,
  GET_DIMENSIONS_COUNT = 61,
  GET_DIMENSIONS = 62,
  GET_TENSOR_SHAPE_ELEMENT_COUNT = 64,
  GET_TENSOR_TYPE_AND_SHAPE = 65,
  CREATE_CPU_MEMORY_INFO = 69,
  GET_ALLOCATOR_WITH_DEFAULT_OPTIONS = 78,
  RELEASE_VALUE = 96
};
enum { LEVEL_ERROR = 3, ENABLE_ALL = 99, ARENA_ALLOCATOR = 1, MEMORY_DEFAULT = 0 };

static const void *const *api;
static void *session, *memory;
static const char *input_names[MAX_TENSORS], *output_names[MAX_TENSORS];
static ort_value *input_values[MAX_TENSORS], *output_values[MAX_TENSORS];
static size_t n_inputs, n_outputs;

static void check(ort_status *status) {
  if (status) {
    die("%s", ((const char *(*)(ort_status *))api[GET_ERROR_MESSAGE])(status));
  }
}
/* Calls the function at a place of the table; all are called with arguments of exactly the right types. */
#define CALL(place, types, ...) check(((ort_status * (*)types) api[place])(__VA_ARGS__))

static void release(ort_value **values, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (values[i]) {
      ((void (*)(ort_value *))api[RELEASE_VALUE])(values[i]);
    }
    values[i] = NULL;
  }
}

/* Returns the place of the input of that name, after releasing its value. */
static ort_value **empty_input(const char *name) {
  size_t i = 0;
  while (i < n_inputs && strcmp(input_names[i], name) != 0) {
    i++;
  }
  if (i == n_inputs) {
    input_names[n_inputs++] = strdup(name);
  }
  release(&input_values[i], 1);
  return &input_values[i];
}

static void set_inputs(int n, tensor *inputs) {
  release(output_values, n_outputs);
  for (int i = 0; i < n; i++) {
    tensor *t = &inputs[i];
    CALL(CREATE_TENSOR_WITH_DATA, (void *, void *, size_t, const int64_t *, size_t, int, ort_value **), memory, t->data,
         t->bytes, t->dims, (size_t)t->rank, t->type, empty_input(t->name));
  }
}

static void carry(int output, const char *input) {
  *empty_input(input) = output_values[output];
  output_values[output] = NULL;
}

static void load(const char *library, const char *path, int threads, int n, tensor *inputs) {
  const ort_base *base = ((const ort_base *(*)(void))need_symbol(open_library(library), "OrtGetApiBase"))();
  api = base->get_api(ORT_API_1);
  void *env, *options, *allocator;
  CALL(CREATE_ENV, (int, const char *, void **), LEVEL_ERROR, "bench", &env);
  CALL(CREATE_SESSION_OPTIONS, (void **), &options);
  CALL(SET_GRAPH_OPTIMIZATION_LEVEL, (void *, int), options, ENABLE_ALL);
  CALL(SET_INTRA_OP_NUM_THREADS, (void *, int), options, threads);
  CALL(CREATE_SESSION, (void *, const char *, void *, void **), env, path, options, &session);
  CALL(CREATE_CPU_MEMORY_INFO, (int, int, void **), ARENA_ALLOCATOR, MEMORY_DEFAULT, &memory);
  CALL(GET_ALLOCATOR_WITH_DEFAULT_OPTIONS, (void **), &allocator);
  CALL(SESSION_GET_OUTPUT_COUNT, (void *, size_t *), session, &n_outputs);
  if (n_outputs > MAX_TENSORS) {
    die("too many outputs");
  }
  for (size_t k = 0; k < n_outputs; k++) {
    CALL(SESSION_GET_OUTPUT_NAME, (void *, size_t, void *, const char **), session, k, allocator, &output_names[k]);
  }
  set_inputs(n, inputs);
}

static void run(void) {
  CALL(RUN,
       (void *, void *, const char *const *, ort_value *const *, size_t, const char *const *, size_t, ort_value **),
       session, NULL, input_names, input_values, n_inputs, output_names, n_outputs, output_values);
}

static int outputs(tensor *out) {
  for (size_t k = 0; k < n_outputs; k++) {
    void *info;
    int type;
    size_t rank, count;
    tensor *t = &out[k];
    CALL(GET_TENSOR_TYPE_AND_SHAPE, (ort_value *, void **), output_values[k], &info);
    CALL(GET_TENSOR_ELEMENT_TYPE, (void *, int *), info, &type);
    CALL(GET_DIMENSIONS_COUNT, (void *, size_t *), info, &rank);
    CALL(GET_TENSOR_SHAPE_ELEMENT_COUNT, (void *, size_t *), info, &count);
    static const int widths[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8};
    if (rank > MAX_DIMS || type >= (int)(sizeof widths / sizeof widths[0]) || widths[type] == 0) {
      die("output %zu has a type or rank that is not compared", k);
    }
    *t = (tensor){.type = type, .rank = (int)rank, .bytes = count * (size_t)widths[type]};
    CALL(GET_DIMENSIONS, (void *, int64_t *, size_t), info, t->dims, rank);
    CALL(GET_TENSOR_MUTABLE_DATA, (ort_value *, void **), output_values[k], &t->data);
  }
  return (int)n_outputs;
}

const engine engine_ort = {"ort", load, set_inputs, carry, run, outputs, NULL, NULL};
