/* check_foxi.c - libfoxi-xla.so as Caffe2 and Glow call it.  The declarations here were written from foxi's documented
 * layout, independently of plugin/onnxifi/foxi.h, which must agree with it. */
#include <check.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../api/write_model.h"
#include "../fake_driver.h"
#include "../suite.h"

/* --- the ABI --- */

typedef void *handle;
typedef int32_t status_code;

enum {
  SUCCESS = 0,
  FALLBACK = 1,
  INVALID_ID = 0x101,
  INVALID_POINTER = 0x103,
  INVALID_GRAPH = 0x107,
  INVALID_EVENT = 0x108,
  INVALID_NAME = 0x10A,
  INVALID_PROPERTY = 0x110,
  UNSUPPORTED_TAG = 0x201,
  UNSUPPORTED_ATTRIBUTE = 0x204,
  UNSUPPORTED_DATATYPE = 0x206,
  UNSUPPORTED_MEMORY_TYPE = 0x207,
  UNSUPPORTED_PROPERTY = 0x209,
  UNIDENTIFIED_NAME = 0x301,
  MISMATCHING_SHAPE = 0x302,
  MISMATCHING_DATATYPE = 0x303
};
enum {
  TENSOR_TAG = 0x43DFBF69,
  FENCE_TAG = 0x23E08AAB,
  NONSIGNALLED = 0x16BD,
  SIGNALLED = 0x3395,
  EXTENSIONS = 4,
  NAME = 1
};

typedef struct descriptor {
  int32_t tag, pad0;
  const char *name;
  uint64_t type, memory;
  uint32_t rank, pad1;
  const uint64_t *shape;
  uint32_t axis, pad2;
  uint64_t n_scales;
  const float *scales;
  const int32_t *biases;
  uint8_t offline, pad3[7];
  uint64_t buffer;
} descriptor;
_Static_assert(sizeof(descriptor) == 96 && offsetof(descriptor, buffer) == 88, "foxi's layout on 64 bits");

typedef struct fence {
  int32_t tag, pad;
  uint64_t type;
  handle event;
} fence;

typedef struct trace_event {
  char name[33], type;
  uint64_t timestamp;
  uint32_t thread;
  uint64_t duration;
} trace_event;

typedef struct trace_list {
  uint64_t n;
  trace_event **events;
} trace_list;

static struct {
  status_code (*ids)(handle *ids, size_t *n);
  status_code (*info)(handle id, int32_t key, void *value, size_t *size);
  status_code (*compatibility)(handle id, size_t size, const void *model);
  status_code (*init_backend)(handle id, const uint64_t *properties, handle *backend);
  status_code (*release_backend)(handle backend);
  status_code (*init_event)(handle backend, handle *event);
  status_code (*signal)(handle event);
  status_code (*wait)(handle event);
  status_code (*release_event)(handle event);
  status_code (*init_graph)(handle backend, const uint64_t *properties, size_t size, const void *model, uint32_t n,
                            const descriptor *weights, handle *graph, uint32_t max_sequence, void *reader);
  status_code (*set_io)(handle graph, uint32_t n_in, const descriptor *in, uint32_t n_out, const descriptor *out);
  status_code (*run)(handle graph, const fence *before, fence *after);
  status_code (*release_graph)(handle graph);
  status_code (*extension)(handle id, const char *name, void **function);
} foxi;

static struct {
  status_code (*run)(handle graph, uint32_t n_in, const descriptor *in, uint32_t n_out, const descriptor *out,
                     fence *after, trace_list *traces);
  status_code (*release_traces)(trace_list *traces);
  status_code (*wait)(handle event, uint32_t milliseconds, int32_t *state, status_code *status, char *message,
                      size_t *length);
  status_code (*batch)(int64_t *size);
  status_code (*set_option)(const char *name, const char *value);
  status_code (*get_option)(const char *name, char *value, size_t *length);
} more;

static handle ids[8], backend;
static size_t n_ids;

static const float W[] = {1, -2, 0.5f, 3}, B[] = {0, 1, -1, 0.25f};

static void open_library(void) {
  static const char *const names[] = {"onnxGetBackendIDs",
                                      "onnxGetBackendInfo",
                                      "onnxGetBackendCompatibility",
                                      "onnxInitBackend",
                                      "onnxReleaseBackend",
                                      "onnxInitEvent",
                                      "onnxSignalEvent",
                                      "onnxWaitEvent",
                                      "onnxReleaseEvent",
                                      "onnxInitGraph",
                                      "onnxSetGraphIO",
                                      "onnxRunGraph",
                                      "onnxReleaseGraph",
                                      "onnxGetExtensionFunctionAddress"};
  static const char *const extensions[] = {"onnxSetIOAndRunGraphFunction", "onnxReleaseTraceEventsFunction",
                                           "onnxWaitEventForFunction",     "onnxGetCurrentBatchSizeFunction",
                                           "onnxSetOptionFunction",        "onnxGetOptionFunction"};
  _Static_assert(sizeof foxi == sizeof names && sizeof more == sizeof extensions, "a pointer a name");
  char path[4096];
  const char *top = getenv("top_builddir");
  snprintf(path, sizeof path, "%s/.libs/libfoxi-xla.so", top ? top : ".");
  setenv("ONNX_XLA_CUDA_DRIVER", "/nowhere/libcuda.so.1", 0); /* no GPUs, also on machines that have some */
  void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(so, "%s", dlerror());
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    ((void **)&foxi)[k] = dlsym(so, names[k]);
    ck_assert_msg(((void **)&foxi)[k], "%s", dlerror());
  }
  n_ids = 0;
  ck_assert_int_eq(foxi.ids(NULL, &n_ids), FALLBACK); /* Caffe2 asks for the number of IDs in this way */
  ck_assert_uint_le(n_ids, sizeof ids / sizeof *ids);
  ck_assert_int_eq(foxi.ids(ids, &n_ids), SUCCESS);
  for (size_t k = 0; k < sizeof extensions / sizeof *extensions; k++) {
    ck_assert_int_eq(foxi.extension(ids[1], extensions[k], &((void **)&more)[k]), SUCCESS);
  }
}

/* Opens backend `number`: 0 is the one that Caffe2 takes, 1 the reference evaluator. */
static void open_backend(int number) {
  open_library();
  ck_assert_int_eq(foxi.init_backend(ids[1 + number], (uint64_t[]){0}, &backend), SUCCESS);
}

static descriptor describe(const char *name, uint32_t rank, const uint64_t *shape, const void *data) {
  return (descriptor){
      .tag = TENSOR_TAG, .name = name, .type = 1, .rank = rank, .shape = shape, .buffer = (uintptr_t)data};
}

/* Returns a graph whose weights are given by descriptors, as Caffe2 does it. */
static handle affine_graph(void) {
  message m = affine_model(NULL, NULL);
  uint64_t shape[] = {4};
  descriptor weights[] = {describe("w", 1, shape, W), describe("b", 1, shape, B)};
  handle g;
  ck_assert_int_eq(foxi.init_graph(backend, NULL, m.n, m.bytes, 2, weights, &g, 0, NULL), SUCCESS);
  return g;
}

/* --- tests --- */

START_TEST(what_it_is) {
  open_library();
  char text[64];
  size_t n = sizeof text;
  ck_assert_uint_eq(n_ids, 3);
  ck_assert_int_eq(foxi.info(ids[0], EXTENSIONS, text, &n), SUCCESS);
  ck_assert_str_eq(text, "onnx_extension_function");
  ck_assert_uint_eq(n, strlen(text) + 1);
  void *function = text;
  ck_assert_int_eq(foxi.extension(ids[0], "onnxNoSuchFunction", &function), UNIDENTIFIED_NAME);
  ck_assert_ptr_null(function);
  ck_assert_int_eq(foxi.extension(&n, "onnxWaitEventForFunction", &function), INVALID_ID);
  ck_assert_int_eq(foxi.extension(ids[0], NULL, &function), INVALID_POINTER);
  ck_assert_int_eq(foxi.extension(ids[0], "onnxWaitEventForFunction", NULL), INVALID_POINTER);
  message m = affine_model(NULL, NULL);
  ck_assert_int_eq(foxi.compatibility(ids[1], m.n, m.bytes), SUCCESS);
}
END_TEST

/* GPUs come after the backends whose numbers Caffe2 expects.  Here a driver emulates them. */
START_TEST(gpus_come_last) {
  char text[64];
  use_fake_driver();
  open_library();
  static const char *const names[] = {"onnx-xla cpu", "onnx-xla cpu (ONNX models)", "onnx-xla reference",
                                      "onnx-xla gpu:0", "onnx-xla gpu:1"};
  ck_assert_uint_eq(n_ids, sizeof names / sizeof *names);
  for (size_t k = 0; k < n_ids; k++) {
    size_t n = sizeof text;
    ck_assert_int_eq(foxi.info(ids[k], NAME, text, &n), SUCCESS);
    ck_assert_str_eq(text, names[k]);
  }
}
END_TEST

START_TEST(properties) {
  open_library();
  handle b, g;
  ck_assert_int_eq(foxi.init_backend(ids[0], (uint64_t[]){1, 4, 0}, &b), SUCCESS); /* compiled ahead of time */
  message m = affine_model(W, B);
  ck_assert_int_eq(foxi.init_graph(b, (uint64_t[]){4, 0}, m.n, m.bytes, 0, NULL, &g, 0, NULL), SUCCESS);
  ck_assert_int_eq(foxi.release_graph(g), SUCCESS);
  ck_assert_int_eq(foxi.init_graph(b, (uint64_t[]){1, 0}, m.n, m.bytes, 0, NULL, &g, 0, NULL), UNSUPPORTED_PROPERTY);
  ck_assert_ptr_null(g);
  ck_assert_int_eq(foxi.release_backend(b), SUCCESS);
  ck_assert_int_eq(foxi.init_backend(ids[0], (uint64_t[]){1, 5, 0}, &b), INVALID_PROPERTY);
}
END_TEST

/* Runs as Caffe2's onnxifi_op.cc does it. */
START_TEST(runs) {
  open_backend(_i);
  handle g = affine_graph();
  for (uint64_t n = 1; n <= 3; n++) {
    float x[12], y[12], want[12];
    for (int k = 0; k < 12; k++) {
      x[k] = (float)(k * (int)n) - 5;
    }
    uint64_t shape[] = {n, 4};
    descriptor in = describe("x", 2, shape, x), out = describe("y", 2, shape, y);
    fence after = {.tag = FENCE_TAG};
    trace_list traces = {.n = 99};
    ck_assert_int_eq(more.run(g, 1, &in, 1, &out, &after, &traces), SUCCESS);
    int64_t batch;
    ck_assert_int_eq(more.batch(&batch), SUCCESS);
    ck_assert_int_eq(batch, (int64_t)n);
    int32_t state;
    status_code outcome;
    char text[512];
    size_t length = sizeof text;
    ck_assert_int_eq(more.wait(after.event, 0, &state, &outcome, text, &length), SUCCESS);
    ck_assert_int_eq(state, SIGNALLED);
    ck_assert_int_eq(outcome, SUCCESS);
    ck_assert_uint_eq(length, 0);
    affine((int)n, x, W, B, want);
    ck_assert_mem_eq(y, want, n * 4 * sizeof *y);
    ck_assert_uint_eq(traces.n, 1);
    ck_assert_int_eq(traces.events[0]->type, 'X');
    ck_assert_uint_gt(traces.events[0]->timestamp, 1600000000000000u); /* microseconds, after 2020 */
    ck_assert_int_eq(more.release_traces(&traces), SUCCESS);
    ck_assert_uint_eq(traces.n, 0);
    ck_assert_int_eq(foxi.release_event(after.event), SUCCESS);
  }
  ck_assert_int_eq(more.release_traces(NULL), INVALID_POINTER);
  ck_assert_int_eq(foxi.release_graph(g), SUCCESS);
  ck_assert_int_eq(foxi.release_backend(backend), SUCCESS);
}
END_TEST

/* Calls the functions that foxi shares with ONNXIFI, where only the tensor descriptor differs. */
START_TEST(runs_in_two_calls) {
  open_backend(_i);
  handle g = affine_graph();
  float x[] = {1, 2, 3, 4}, y[4], want[4];
  uint64_t shape[] = {1, 4};
  descriptor in = describe("x", 2, shape, x), out = describe("y", 2, shape, y);
  ck_assert_int_eq(foxi.set_io(g, 1, &in, 1, &out), SUCCESS);
  fence before = {.tag = FENCE_TAG}, after = {.tag = FENCE_TAG};
  ck_assert_int_eq(foxi.init_event(backend, &before.event), SUCCESS);
  ck_assert_int_eq(foxi.run(g, &before, &after), SUCCESS);
  int32_t state;
  status_code outcome;
  ck_assert_int_eq(more.wait(after.event, 20, &state, &outcome, NULL, NULL), SUCCESS); /* `before` is not signalled */
  ck_assert_int_eq(state, NONSIGNALLED);
  ck_assert_int_eq(foxi.signal(before.event), SUCCESS);
  ck_assert_int_eq(foxi.wait(after.event), SUCCESS);
  affine(1, x, W, B, want);
  ck_assert_mem_eq(y, want, sizeof y);
  ck_assert_int_eq(foxi.release_event(before.event), SUCCESS);
  ck_assert_int_eq(foxi.release_event(after.event), SUCCESS);
  ck_assert_int_eq(foxi.release_graph(g), SUCCESS);
  ck_assert_int_eq(foxi.release_backend(backend), SUCCESS);
}
END_TEST

/* A model for batches of three gets two rows; the outputs have room for three. */
START_TEST(smaller_batches) {
  open_backend(_i);
  message graph = {.n = 0};
  add_value(&graph, GRAPH_INPUT, "x", 1, DIMS(3, 4));
  add_node(&graph, "Exp", "x", NULL, "y");
  add_value(&graph, GRAPH_OUTPUT, "y", 1, DIMS(3, 4));
  message m = finish_model(&graph, 4, 9);
  handle g;
  ck_assert_int_eq(foxi.init_graph(backend, NULL, m.n, m.bytes, 0, NULL, &g, 0, NULL), SUCCESS);
  float x[8] = {0}, y[12];
  uint64_t given[] = {2, 4}, most[] = {3, 4}, wrong[] = {4, 4}, wide[] = {2, 3};
  descriptor in = describe("x", 2, given, x), out = describe("y", 2, most, y), bad = describe("x", 2, wrong, x);
  for (int run = 0; run < 2; run++) {
    fence after = {.tag = FENCE_TAG};
    memset(y, 0, sizeof y);
    ck_assert_int_eq(more.run(g, 1, &in, 1, &out, &after, NULL), SUCCESS);
    ck_assert_int_eq(foxi.wait(after.event), SUCCESS);
    for (int k = 0; k < 12; k++) {
      ck_assert(y[k] == 1);
    }
    ck_assert_int_eq(foxi.release_event(after.event), SUCCESS);
  }
  fence after = {.tag = FENCE_TAG};
  uint64_t none[] = {0, 4};
  descriptor empty = describe("x", 2, none, NULL); /* no rows need no memory */
  memset(y, 0, sizeof y);
  ck_assert_int_eq(more.run(g, 1, &empty, 1, &out, &after, NULL), SUCCESS);
  ck_assert_int_eq(foxi.wait(after.event), SUCCESS);
  ck_assert(y[0] == 1 && y[11] == 1);
  ck_assert_int_eq(foxi.release_event(after.event), SUCCESS);
  ck_assert_int_eq(more.run(g, 1, &bad, 1, &out, &after, NULL), MISMATCHING_SHAPE);
  bad = describe("x", 2, wide, x);
  ck_assert_int_eq(more.run(g, 1, &bad, 1, &out, &after, NULL), MISMATCHING_SHAPE);
  ck_assert_int_eq(foxi.release_graph(g), SUCCESS);
  ck_assert_int_eq(foxi.release_backend(backend), SUCCESS);
}
END_TEST

/* Caffe2 declares in the model that every weight has floats; the type in the weight's descriptor is the right one. */
START_TEST(types_of_weights) {
  open_backend(_i);
  message graph = {.n = 0};
  add_value(&graph, GRAPH_INPUT, "x", 1, DIMS(2, 3));
  add_value(&graph, GRAPH_INPUT, "s", 1, DIMS(1));
  add_node(&graph, "Reshape", "x", "s", "y");
  add_value(&graph, GRAPH_OUTPUT, "y", 1, DIMS(6));
  message m = finish_model(&graph, 4, 9);
  uint64_t one[] = {1}, two[] = {2, 3}, six[] = {6};
  int64_t to[] = {6};
  descriptor weight = describe("s", 1, one, to);
  weight.type = 7;
  handle g;
  ck_assert_int_eq(foxi.init_graph(backend, NULL, m.n, m.bytes, 1, &weight, &g, 0, NULL), SUCCESS);
  float x[] = {1, 2, 3, 4, 5, 6}, y[6];
  descriptor in = describe("x", 2, two, x), out = describe("y", 1, six, y);
  fence after = {.tag = FENCE_TAG};
  ck_assert_int_eq(more.run(g, 1, &in, 1, &out, &after, NULL), SUCCESS);
  ck_assert_int_eq(foxi.wait(after.event), SUCCESS);
  ck_assert_mem_eq(x, y, sizeof y);
  ck_assert_int_eq(foxi.release_event(after.event), SUCCESS);
  ck_assert_int_eq(foxi.release_graph(g), SUCCESS);
  ck_assert_int_eq(foxi.release_backend(backend), SUCCESS);
}
END_TEST

/* If the result of a run does not fit into the output's memory, the event has the error. */
START_TEST(failed_runs) {
  open_backend(_i);
  message graph = {.n = 0};
  add_value(&graph, GRAPH_INPUT, "x", 1, DIMS(4));
  add_node(&graph, "NonZero", "x", NULL, "y");
  add_value(&graph, GRAPH_OUTPUT, "y", 7, DIMS(1, -1));
  message m = finish_model(&graph, 4, 9);
  handle g;
  ck_assert_int_eq(foxi.init_graph(backend, (uint64_t[]){0}, m.n, m.bytes, 0, NULL, &g, 0, NULL), SUCCESS);
  float x[] = {1, 0, 2, 3};
  int64_t y[4] = {-1, -1, -1, -1};
  uint64_t shape[] = {4}, few[] = {1, 2}, enough[] = {1, 3};
  descriptor in = describe("x", 1, shape, x), out = describe("y", 2, few, y);
  out.type = 7;
  int32_t state;
  status_code outcome;
  char text[16];
  size_t length = sizeof text;
  fence after = {.tag = FENCE_TAG};
  ck_assert_int_eq(more.run(g, 1, &in, 1, &out, &after, NULL), SUCCESS);
  ck_assert_int_eq(more.wait(after.event, 60000, &state, &outcome, text, &length), SUCCESS);
  ck_assert_int_eq(state, SIGNALLED);
  ck_assert_int_eq(outcome, MISMATCHING_SHAPE);
  ck_assert_uint_eq(length, strlen(text)); /* as much of the text as there was room for */
  ck_assert_uint_eq(length, sizeof text - 1);
  ck_assert_int_eq(y[0], -1);
  ck_assert_int_eq(foxi.release_event(after.event), SUCCESS);
  ck_assert_int_eq(more.wait(after.event, 1, &state, &outcome, text, &length), INVALID_EVENT);
  out.shape = enough;
  ck_assert_int_eq(more.run(g, 1, &in, 1, &out, &after, NULL), SUCCESS);
  ck_assert_int_eq(foxi.wait(after.event), SUCCESS);
  ck_assert(y[0] == 0 && y[1] == 2 && y[2] == 3 && y[3] == -1);
  ck_assert_int_eq(foxi.release_event(after.event), SUCCESS);
  ck_assert_int_eq(foxi.release_graph(g), SUCCESS);
  ck_assert_int_eq(foxi.release_backend(backend), SUCCESS);
}
END_TEST

/* Runs the graph, and expects that the event has this status and a message that contains the words. */
static void run_fails(handle g, const descriptor *in, const descriptor *out, status_code want, const char *words) {
  int32_t state;
  status_code outcome;
  char text[200];
  size_t length = sizeof text;
  fence after = {.tag = FENCE_TAG};
  ck_assert_int_eq(more.run(g, 2, in, 1, out, &after, NULL), SUCCESS);
  ck_assert_int_eq(more.wait(after.event, 60000, &state, &outcome, text, &length), SUCCESS);
  ck_assert_int_eq(outcome, want);
  ck_assert_msg(strstr(text, words), "'%s'", text);
  ck_assert_int_eq(foxi.release_event(after.event), SUCCESS);
}

/* The model declares nothing of its output, whose rank is known when the run knows the input s. */
START_TEST(outputs_of_another_rank_or_type) {
  open_backend(_i);
  message graph = {.n = 0}, y = {.n = 0};
  add_value(&graph, GRAPH_INPUT, "x", 1, DIMS(6));
  add_value(&graph, GRAPH_INPUT, "s", 7, DIMS(-1));
  add_node(&graph, "Reshape", "x", "s", "y");
  put_text(&y, 1, "y");
  put_message(&graph, GRAPH_OUTPUT, &y);
  message m = finish_model(&graph, 4, 9);
  handle g;
  ck_assert_int_eq(foxi.init_graph(backend, (uint64_t[]){0}, m.n, m.bytes, 0, NULL, &g, 0, NULL), SUCCESS);
  float x[] = {1, 2, 3, 4, 5, 6};
  double result[6] = {0};
  int64_t s[] = {2, 3};
  uint64_t six[] = {6}, two[] = {2}, shape[] = {2, 3};
  descriptor in[] = {describe("x", 1, six, x), describe("s", 1, two, s)}, out = describe("y", 1, six, result);
  in[1].type = 7;
  run_fails(g, in, &out, MISMATCHING_SHAPE, "output 'y': the rank is 2; the descriptor has 1");
  out = describe("y", 2, shape, result);
  out.type = 11;
  run_fails(g, in, &out, MISMATCHING_DATATYPE, "output 'y': the element type is 1; the descriptor has 11");
  ck_assert(result[0] == 0);
  out.type = 1;
  fence after = {.tag = FENCE_TAG};
  ck_assert_int_eq(more.run(g, 2, in, 1, &out, &after, NULL), SUCCESS);
  ck_assert_int_eq(foxi.wait(after.event), SUCCESS);
  ck_assert_mem_eq(result, x, sizeof x);
  ck_assert_int_eq(foxi.release_event(after.event), SUCCESS);
  ck_assert_int_eq(foxi.release_graph(g), SUCCESS);
  ck_assert_int_eq(foxi.release_backend(backend), SUCCESS);
}
END_TEST

START_TEST(bad_calls) {
  open_backend(_i);
  handle g = affine_graph();
  float x[4] = {0}, y[4], scale = 1;
  int32_t bias = 0;
  uint64_t shape[] = {1, 4};
  descriptor in = describe("x", 2, shape, x), out = describe("y", 2, shape, y), d;
  fence after = {.tag = FENCE_TAG}, bad = {.tag = 1};
  ck_assert_int_eq(more.run(backend, 1, &in, 1, &out, &after, NULL), INVALID_GRAPH);
  ck_assert_int_eq(more.run(g, 1, &in, 1, &out, NULL, NULL), INVALID_POINTER);
  ck_assert_int_eq(more.run(g, 1, NULL, 1, &out, &after, NULL), INVALID_POINTER);
  ck_assert_int_eq(more.run(g, 1, &in, 1, NULL, &after, NULL), INVALID_POINTER);
  ck_assert_int_eq(more.run(g, 1, &in, 1, &out, &bad, NULL), UNSUPPORTED_TAG);
  ck_assert_int_eq(more.run(g, 0, NULL, 1, &out, &after, NULL), UNIDENTIFIED_NAME);
  d = in;
  d.tag = 0;
  ck_assert_int_eq(more.run(g, 1, &d, 1, &out, &after, NULL), UNSUPPORTED_TAG);
  d = in;
  d.n_scales = 1;
  d.scales = &scale;
  d.biases = &bias;
  ck_assert_int_eq(more.run(g, 1, &d, 1, &out, &after, NULL), UNSUPPORTED_DATATYPE);
  d = in;
  d.offline = 1;
  ck_assert_int_eq(foxi.set_io(g, 1, &d, 1, &out), UNSUPPORTED_MEMORY_TYPE);
  int32_t state;
  status_code outcome;
  ck_assert_int_eq(more.wait(g, 1, &state, &outcome, NULL, NULL), INVALID_EVENT);
  ck_assert_int_eq(more.wait(g, 1, NULL, &outcome, NULL, NULL), INVALID_POINTER);
  ck_assert_int_eq(foxi.release_graph(g), SUCCESS);
  ck_assert_int_eq(more.run(g, 1, &in, 1, &out, &after, NULL), INVALID_GRAPH);
  ck_assert_int_eq(foxi.release_backend(backend), SUCCESS);
}
END_TEST

START_TEST(options) {
  open_library();
  char text[8];
  size_t n = sizeof text;
  ck_assert_int_eq(more.set_option("threads", "1"), SUCCESS);
  ck_assert_int_eq(more.get_option("threads", text, &n), SUCCESS);
  ck_assert_str_eq(text, "1");
  ck_assert_uint_eq(n, 2);
  n = 1;
  ck_assert_int_eq(more.get_option("threads", text, &n), FALLBACK);
  ck_assert_uint_eq(n, 2);
  ck_assert_int_eq(more.set_option("threads", "many"), UNSUPPORTED_ATTRIBUTE);
  ck_assert_int_eq(more.set_option("log_level", "0"), UNSUPPORTED_ATTRIBUTE);
  ck_assert_int_eq(more.set_option("glow_num_devices", "1"), INVALID_NAME);
  ck_assert_int_eq(more.get_option(NULL, text, &n), INVALID_POINTER);
}
END_TEST

/* Many threads use one graph, as in a service. */
static void *serve(void *graph) {
  for (int k = 0; k < 100; k++) {
    float x[4] = {(float)k, 1, 2, 3}, y[4], want[4];
    uint64_t shape[] = {1, 4};
    descriptor in = describe("x", 2, shape, x), out = describe("y", 2, shape, y);
    fence after = {.tag = FENCE_TAG};
    ck_assert_int_eq(more.run(graph, 1, &in, 1, &out, &after, NULL), SUCCESS);
    ck_assert_int_eq(foxi.wait(after.event), SUCCESS);
    ck_assert_int_eq(foxi.release_event(after.event), SUCCESS);
    affine(1, x, W, B, want);
    ck_assert_mem_eq(y, want, sizeof y);
  }
  return NULL;
}

START_TEST(one_graph_for_all) {
  open_backend(_i);
  handle g = affine_graph();
  pthread_t threads[4];
  for (int k = 0; k < 4; k++) {
    pthread_create(&threads[k], NULL, serve, g);
  }
  for (int k = 0; k < 4; k++) {
    pthread_join(threads[k], NULL);
  }
  ck_assert_int_eq(foxi.release_graph(g), SUCCESS);
  ck_assert_int_eq(foxi.release_backend(backend), SUCCESS);
}
END_TEST

/* Handles of libonnxifi-xla.so, which numbers its handles in the same way, are refused. */
START_TEST(handles_of_the_other_library) {
  open_backend(0);
  char path[4096];
  const char *top = getenv("top_builddir");
  snprintf(path, sizeof path, "%s/.libs/libonnxifi-xla.so", top ? top : ".");
  void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(so, "%s", dlerror());
  status_code (*get_ids)(handle *, size_t *), (*init)(handle, const uint64_t *, handle *), (*release)(handle);
  *(void **)&get_ids = dlsym(so, "onnxGetBackendIDs");
  *(void **)&init = dlsym(so, "onnxInitBackend");
  *(void **)&release = dlsym(so, "onnxReleaseBackend");
  handle theirs[2], b;
  size_t n = 2;
  ck_assert_int_eq(get_ids(theirs, &n), SUCCESS);
  ck_assert_int_eq(init(ids[0], NULL, &b), INVALID_ID);
  ck_assert_int_eq(init(theirs[0], NULL, &b), SUCCESS);
  ck_assert_int_ne(foxi.release_backend(b), SUCCESS);
  ck_assert_int_ne(release(backend), SUCCESS);
  ck_assert_int_eq(release(b), SUCCESS);
  ck_assert_int_eq(foxi.release_backend(backend), SUCCESS);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("all");
  const TTest *const once[] = {what_it_is, gpus_come_last, properties, options, handles_of_the_other_library};
  const TTest *const both[] = {
      runs,      runs_in_two_calls, smaller_batches, types_of_weights, failed_runs, outputs_of_another_rank_or_type,
      bad_calls, one_graph_for_all};
  for (size_t k = 0; k < sizeof once / sizeof *once; k++) {
    tcase_add_test(t, once[k]);
  }
  for (size_t k = 0; k < sizeof both / sizeof *both; k++) {
    tcase_add_loop_test(t, both[k], 0, 2);
  }
  return run_suite("foxi", t);
}
