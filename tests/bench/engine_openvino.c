/* engine_openvino.c - OpenVINO through the C API that its wheel's library carries.
 *
 * Its settings are those that are best for it: the latency hint, one stream, the given number of threads.  Its
 * precision is fp32, as for all engines here: by default it uses bf16 on CPUs that have it, and then its numbers are no
 * longer the model's. */
#include "client.h"

#include <stdbool.h>
#include <stdio.h>

typedef struct {
  int64_t rank;
  int64_t *dims;
} ov_shape;
enum {
  F16 = 3,
  F32 = 4,
  F64 = 5,
  I8 = 7,
  I16 = 8,
  I32 = 9,
  I64 = 10,
  U8 = 16,
  U16 = 17,
  U32 = 18,
  U64 = 19,
  BOOLEAN = 1
};
/* OpenVINO's number of an element type, by ONNX's number. */
static const int types[] = {0, F32, U8, I8, U16, I16, I32, I64, 0, BOOLEAN, F16, F64, U32, U64};

/* Carried outputs belong to the request that computed them, so two requests run by turns. */
static void *lib, *compiled, *request, *other;
static bool carries;

static void check(int status, const char *what) {
  if (status) {
    const char *(*last)(void) = (const char *(*)(void))need_symbol(lib, "ov_get_last_err_msg");
    const char *message = last();
    die("%s: status %d: %s", what, status, message ? message : "");
  }
}
#define CALL(name, types_, ...) check(((int(*) types_)need_symbol(lib, #name))(__VA_ARGS__), #name)

static void set_inputs(int n, tensor *inputs) {
  for (int i = 0; i < n; i++) {
    tensor *t = &inputs[i];
    void *value;
    CALL(ov_tensor_create_from_host_ptr, (int, ov_shape, void *, void **), types[t->type], (ov_shape){t->rank, t->dims},
         t->data, &value);
    CALL(ov_infer_request_set_tensor, (void *, const char *, void *), request, t->name, value);
    CALL(ov_infer_request_set_tensor, (void *, const char *, void *), other, t->name, value);
  }
}

static void carry(int output, const char *input) {
  void *value;
  CALL(ov_infer_request_get_output_tensor_by_index, (void *, size_t, void **), request, (size_t)output, &value);
  CALL(ov_infer_request_set_tensor, (void *, const char *, void *), other, input, value);
  carries = true;
}

static void load(const char *library, const char *path, int threads, int n, tensor *inputs) {
  void *core, *model;
  char count[16];
  snprintf(count, sizeof count, "%d", threads);
  lib = open_library(library);
  CALL(ov_core_create, (void **), &core);
  CALL(ov_core_read_model, (void *, const char *, const char *, void **), core, path, NULL, &model);
  const char *settings[] = {"PERFORMANCE_HINT",         "LATENCY", "NUM_STREAMS", "1", "INFERENCE_NUM_THREADS", count,
                            "INFERENCE_PRECISION_HINT", "f32"};
  CALL(ov_core_compile_model, (void *, void *, const char *, size_t, void **, ...), core, model, "CPU", (size_t)8,
       &compiled, settings[0], settings[1], settings[2], settings[3], settings[4], settings[5], settings[6],
       settings[7]);
  CALL(ov_compiled_model_create_infer_request, (void *, void **), compiled, &request);
  CALL(ov_compiled_model_create_infer_request, (void *, void **), compiled, &other);
  set_inputs(n, inputs);
}

static void run(void) {
  if (carries) {
    void *next = other;
    other = request;
    request = next;
    carries = false;
  }
  static int (*infer)(void *);
  if (!infer) {
    infer = (int (*)(void *))need_symbol(lib, "ov_infer_request_infer");
  }
  check(infer(request), "ov_infer_request_infer");
}

static int onnx_type(int type) {
  for (int k = 1; k < (int)(sizeof types / sizeof types[0]); k++) {
    if (types[k] == type) {
      return k;
    }
  }
  die("an output has a type that is not compared");
}

static int outputs(tensor *out) {
  size_t n;
  CALL(ov_compiled_model_outputs_size, (void *, size_t *), compiled, &n);
  for (size_t k = 0; k < n && k < MAX_TENSORS; k++) {
    void *value;
    ov_shape shape;
    int type;
    tensor *t = &out[k];
    *t = (tensor){0};
    CALL(ov_infer_request_get_output_tensor_by_index, (void *, size_t, void **), request, k, &value);
    CALL(ov_tensor_get_shape, (void *, ov_shape *), value, &shape);
    CALL(ov_tensor_get_element_type, (void *, int *), value, &type);
    CALL(ov_tensor_get_byte_size, (void *, size_t *), value, &t->bytes);
    CALL(ov_tensor_data, (void *, void **), value, &t->data);
    t->type = onnx_type(type);
    for (t->rank = 0; t->rank < shape.rank && t->rank < MAX_DIMS; t->rank++) {
      t->dims[t->rank] = shape.dims[t->rank];
    }
  }
  return (int)n;
}

const engine engine_openvino = {"openvino", load, set_inputs, carry, run, outputs, NULL, NULL};
