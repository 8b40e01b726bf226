/* check_onnxifi.c - libonnxifi-xla.so as a client sees it: opened with dlopen, called through pointers. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "../api/little_room.h"
#include "../api/write_model.h"
#include "../suite.h"
#include "onnxifi_client.h"

static const float W[] = {1, -2, 0.5f, 3}, B[] = {0, 1, -1, 0.25f};

static onnxGraph affine_graph(void) {
  message m = affine_model(W, B);
  onnxGraph g;
  ck_assert_int_eq(lib.onnxInitGraph(backend, NULL, m.n, m.bytes, 0, NULL, &g), OK);
  memset(m.bytes, 0xff, m.n); /* the library has copied the model */
  return g;
}

/* --- backends and events --- */

START_TEST(backends) {
  open_library();
  onnxBackend b = &lib;
  IS(INVALID_POINTER, lib.onnxInitBackend(ids[_i], NULL, NULL));
  IS(INVALID_ID, lib.onnxInitBackend(&b, NULL, &b));
  ck_assert_ptr_null(b);
  IS(UNSUPPORTED_PROPERTY, lib.onnxInitBackend(ids[_i], (uint64_t[]){77, 1, 0}, &b));
  IS(UNSUPPORTED_PROPERTY, lib.onnxInitBackend(ids[_i], (uint64_t[]){ONNXIFI_BACKEND_CUDA_STREAM, 1, 0}, &b));
  IS(INVALID_PROPERTY, lib.onnxInitBackend(ids[_i], (uint64_t[]){ONNXIFI_BACKEND_PROPERTY_LOG_LEVEL, 9, 0}, &b));
  ck_assert_ptr_null(b);
  uint64_t good[] = {ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION, ONNXIFI_OPTIMIZATION_LOW_LATENCY,
                     ONNXIFI_BACKEND_PROPERTY_LOG_LEVEL, ONNXIFI_LOG_LEVEL_ERROR, 0};
  IS(SUCCESS, lib.onnxInitBackend(ids[_i], good, &b));
  IS(SUCCESS, lib.onnxReleaseBackend(b));
  IS(INVALID_BACKEND, lib.onnxReleaseBackend(b));
  IS(INVALID_BACKEND, lib.onnxReleaseBackend(NULL));
  IS(INVALID_BACKEND, lib.onnxReleaseBackend(&b));
}
END_TEST

START_TEST(events) {
  open_backend(0);
  onnxEvent e = &lib;
  onnxEventState state = 1;
  IS(INVALID_POINTER, lib.onnxInitEvent(backend, NULL));
  IS(INVALID_BACKEND, lib.onnxInitEvent(ids[0], &e));
  ck_assert_ptr_null(e);
  e = new_event();
  IS(INVALID_POINTER, lib.onnxGetEventState(e, NULL));
  IS(SUCCESS, lib.onnxGetEventState(e, &state));
  ck_assert_int_eq(state, ONNXIFI_EVENT_STATE_NONSIGNALLED);
  IS(SUCCESS, lib.onnxSignalEvent(e));
  IS(INVALID_STATE, lib.onnxSignalEvent(e));
  IS(SUCCESS, lib.onnxGetEventState(e, &state));
  ck_assert_int_eq(state, ONNXIFI_EVENT_STATE_SIGNALLED);
  IS(SUCCESS, lib.onnxWaitEvent(e));
  IS(INVALID_BACKEND, lib.onnxReleaseBackend(e));
  IS(SUCCESS, lib.onnxReleaseEvent(e));
  IS(INVALID_EVENT, lib.onnxReleaseEvent(e));
  onnxEvent next = new_event(); /* another handle than e, even if the event is in the same memory */
  IS(INVALID_EVENT, lib.onnxSignalEvent(e));
  IS(INVALID_EVENT, lib.onnxWaitEvent(e));
  IS(INVALID_EVENT, lib.onnxGetEventState(e, &state));
  ck_assert_int_eq(state, ONNXIFI_EVENT_STATE_INVALID);
  IS(INVALID_EVENT, lib.onnxSignalEvent(NULL));
  IS(INVALID_EVENT, lib.onnxSignalEvent(backend));
  IS(SUCCESS, lib.onnxReleaseEvent(next));
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
}
END_TEST

static void *signal_later(void *event) {
  usleep(20000);
  ck_assert_int_eq(lib.onnxSignalEvent(event), OK);
  return NULL;
}

static void *release_later(void *event) {
  usleep(20000);
  ck_assert_int_eq(lib.onnxReleaseEvent(event), OK);
  return NULL;
}

START_TEST(waiting) {
  open_backend(0);
  pthread_t t;
  onnxEvent e = new_event(), lost = new_event();
  pthread_create(&t, NULL, signal_later, e);
  IS(SUCCESS, lib.onnxWaitEvent(e));
  pthread_join(t, NULL);
  pthread_create(&t, NULL, release_later, lost); /* after this, nobody could signal the event any more */
  IS(INVALID_EVENT, lib.onnxWaitEvent(lost));
  pthread_join(t, NULL);
  IS(SUCCESS, lib.onnxReleaseEvent(e));
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
}
END_TEST

/* --- graphs --- */

static onnxStatus init(const message *m, uint32_t n, const onnxTensorDescriptorV1 *weights, onnxGraph *g) {
  return lib.onnxInitGraph(backend, NULL, m->n, m->bytes, n, weights, g);
}

START_TEST(bad_graphs) {
  open_backend(_i);
  message m = affine_model(W, B);
  onnxGraph g = &lib;
  IS(INVALID_POINTER, init(&m, 0, NULL, NULL));
  IS(INVALID_BACKEND, lib.onnxInitGraph(&m, NULL, m.n, m.bytes, 0, NULL, &g));
  ck_assert_ptr_null(g);
  IS(INVALID_POINTER, lib.onnxInitGraph(backend, NULL, m.n, NULL, 0, NULL, &g));
  IS(INVALID_POINTER, init(&m, 1, NULL, &g));
  IS(INVALID_SIZE, lib.onnxInitGraph(backend, NULL, 0, m.bytes, 0, NULL, &g));
  IS(UNSUPPORTED_PROPERTY, lib.onnxInitGraph(backend, (uint64_t[]){5, 1, 0}, m.n, m.bytes, 0, NULL, &g));
  IS(INVALID_PROTOBUF, lib.onnxInitGraph(backend, NULL, m.n - 1, m.bytes, 0, NULL, &g));
  m = unary_model("NoSuchOperator", 1, DIMS(2), 13);
  IS(UNSUPPORTED_OPERATOR, init(&m, 0, NULL, &g));
  ck_assert_ptr_null(g);
  IS(INVALID_GRAPH, lib.onnxReleaseGraph(NULL));
  IS(INVALID_GRAPH, lib.onnxReleaseGraph(backend));
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
}
END_TEST

START_TEST(weights) {
  open_backend(_i);
  message m = affine_model(NULL, NULL);
  float w[4], b[4], x[] = {1, 2, 3, 4}, y[4], want[4];
  memcpy(w, W, sizeof w);
  memcpy(b, B, sizeof b);
  onnxTensorDescriptorV1 good[] = {describe("w", 1, (uint64_t[]){4}, w), describe("b", 1, (uint64_t[]){4}, b)}, d[2];
  onnxGraph g;
#define WITH(status, field, value) \
  memcpy(d, good, sizeof d);       \
  d[1].field = (value);            \
  IS(status, init(&m, 2, d, &g));  \
  ck_assert_ptr_null(g);
  WITH(UNSUPPORTED_TAG, tag, 1)
  WITH(INVALID_NAME, name, "nobody")
  WITH(INVALID_NAME, name, NULL)
  WITH(INVALID_SHAPE, shape, (uint64_t[]){0})
  WITH(INVALID_SHAPE, shape, NULL)
  WITH(INVALID_DATATYPE, dataType, 99)
  WITH(INVALID_MEMORY_TYPE, memoryType, 3)
  WITH(UNSUPPORTED_MEMORY_TYPE, memoryType, ONNXIFI_MEMORY_TYPE_CUDA_BUFFER)
  WITH(INVALID_MEMORY_LOCATION, buffer, 0)
  WITH(MISMATCHING_SHAPE, shape, (uint64_t[]){3})
  WITH(MISMATCHING_DATATYPE, dataType, ONNXIFI_DATATYPE_INT32)
#undef WITH
  IS(SUCCESS, init(&m, 2, good, &g));
  memset(w, 0, sizeof w); /* the library has copied the weights */
  memset(b, 0, sizeof b);
  onnxTensorDescriptorV1 in = describe("x", 2, (uint64_t[]){1, 4}, x), out = describe("y", 2, (uint64_t[]){1, 4}, y);
  IS(SUCCESS, lib.onnxSetGraphIO(g, 1, &in, 1, &out));
  run_once(g);
  affine(1, x, W, B, want);
  ck_assert_mem_eq(y, want, sizeof y);
  IS(SUCCESS, lib.onnxReleaseGraph(g));
  m = affine_model(W, B); /* descriptors are ignored if the model has its weights itself */
  IS(SUCCESS, init(&m, 2, (onnxTensorDescriptorV1[]){{0}}, &g));
  IS(SUCCESS, lib.onnxReleaseGraph(g));
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
}
END_TEST

START_TEST(bad_io) {
  open_backend(_i);
  onnxGraph g = affine_graph();
  float x[8] = {0}, y[8];
  uint64_t shape[] = {2, 4};
  onnxTensorDescriptorV1 in = describe("x", 2, shape, x), out = describe("y", 2, shape, y), d;
  IS(INVALID_GRAPH, lib.onnxSetGraphIO(backend, 1, &in, 1, &out));
  IS(INVALID_POINTER, lib.onnxSetGraphIO(g, 1, NULL, 1, &out));
  IS(INVALID_POINTER, lib.onnxSetGraphIO(g, 1, &in, 1, NULL));
  IS(UNIDENTIFIED_NAME, lib.onnxSetGraphIO(g, 0, NULL, 1, &out));
  IS(UNIDENTIFIED_NAME, lib.onnxSetGraphIO(g, 1, &in, 0, &out));
  IS(INVALID_NAME, lib.onnxSetGraphIO(g, 2, (onnxTensorDescriptorV1[]){in, in}, 1, &out));
#define WITH(status, side, field, value) \
  d = side;                              \
  d.field = (value);                     \
  IS(status, lib.onnxSetGraphIO(g, 1, &side == &in ? &d : &in, 1, &side == &out ? &d : &out));
  WITH(UNSUPPORTED_TAG, in, tag, 0)
  WITH(UNSUPPORTED_TAG, out, tag, 0)
  WITH(INVALID_NAME, in, name, "nobody")
  WITH(INVALID_NAME, out, name, NULL)
  WITH(INVALID_SHAPE, in, shape, NULL)
  WITH(UNSUPPORTED_SHAPE, in, dimensions, 17)
  WITH(UNSUPPORTED_SHAPE, in, shape, ((uint64_t[]){UINT64_MAX, 4}))
  WITH(INVALID_DATATYPE, in, dataType, 0)
  WITH(INVALID_MEMORY_TYPE, out, memoryType, 1000)
  WITH(UNSUPPORTED_MEMORY_TYPE, in, memoryType, ONNXIFI_MEMORY_TYPE_OPENCL_BUFFER)
  WITH(INVALID_MEMORY_LOCATION, out, buffer, 0)
  WITH(INVALID_MEMORY_LOCATION, out, buffer, (onnxPointer)(uintptr_t)(x + 1)) /* overlaps a part of the input */
  WITH(INVALID_MEMORY_LOCATION, out, buffer, (onnxPointer)(uintptr_t)(x + 7))
  WITH(MISMATCHING_DATATYPE, in, dataType, ONNXIFI_DATATYPE_INT8)
  WITH(MISMATCHING_DATATYPE, out, dataType, ONNXIFI_DATATYPE_FLOAT64)
  WITH(MISMATCHING_SHAPE, in, dimensions, 1)
  WITH(MISMATCHING_SHAPE, in, shape, ((uint64_t[]){4, 2}))
  WITH(MISMATCHING_SHAPE, out, shape, ((uint64_t[]){1, 4}))
#undef WITH
  IS(SUCCESS, lib.onnxSetGraphIO(g, 1, &in, 1, &out));
  onnxMemoryFenceV1 before = fence(new_event()), after = fence(&lib);
  IS(INVALID_NAME, lib.onnxSetGraphIO(g, 1, &out, 1, &out)); /* a call that fails removes what was set before */
  IS(UNIDENTIFIED_NAME, lib.onnxRunGraph(g, &before, &after));
  ck_assert_ptr_null(after.event);
  IS(SUCCESS, lib.onnxReleaseEvent(before.event));
  IS(SUCCESS, lib.onnxReleaseGraph(g));
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
}
END_TEST

/* --- runs --- */

/* The output is in the memory of the input, so that the next run reads it. */
START_TEST(over_input) {
  open_backend(_i);
  onnxGraph g = affine_graph();
  float x[4] = {1, 2, 3, 4}, want[4];
  uint64_t shape[] = {1, 4};
  onnxTensorDescriptorV1 in = describe("x", 2, shape, x), out = describe("y", 2, shape, x);
  IS(SUCCESS, lib.onnxSetGraphIO(g, 1, &in, 1, &out));
  for (int k = 0; k < 3; k++) {
    affine(1, (float[]){x[0], x[1], x[2], x[3]}, W, B, want);
    run_once(g);
    ck_assert_mem_eq(x, want, sizeof x);
  }
  IS(SUCCESS, lib.onnxReleaseGraph(g));
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
}
END_TEST

START_TEST(bad_runs) {
  open_backend(_i);
  onnxGraph g = affine_graph();
  float x[4] = {0}, y[4];
  uint64_t shape[] = {1, 4};
  onnxTensorDescriptorV1 in = describe("x", 2, shape, x), out = describe("y", 2, shape, y);
  onnxMemoryFenceV1 before = fence(new_event()), after = fence(NULL), bad = before;
  IS(UNIDENTIFIED_NAME, lib.onnxRunGraph(g, &before, &after));
  IS(SUCCESS, lib.onnxSetGraphIO(g, 1, &in, 1, &out));
  IS(INVALID_GRAPH, lib.onnxRunGraph(NULL, &before, &after));
  IS(INVALID_GRAPH, lib.onnxRunGraph(&x, &before, &after));
  IS(INVALID_POINTER, lib.onnxRunGraph(g, NULL, &after));
  IS(INVALID_POINTER, lib.onnxRunGraph(g, &before, NULL));
  bad.tag = 1;
  IS(UNSUPPORTED_TAG, lib.onnxRunGraph(g, &bad, &after));
  bad = before;
  bad.type = 77;
  IS(INVALID_FENCE_TYPE, lib.onnxRunGraph(g, &bad, &after));
  bad.type = ONNXIFI_SYNCHRONIZATION_IMPLICIT;
  IS(UNSUPPORTED_FENCE_TYPE, lib.onnxRunGraph(g, &bad, &after));
  bad = fence(NULL);
  IS(INVALID_EVENT, lib.onnxRunGraph(g, &bad, &after));
  bad = fence(g);
  IS(INVALID_EVENT, lib.onnxRunGraph(g, &bad, &after));
  ck_assert_ptr_null(after.event);
  IS(SUCCESS, lib.onnxReleaseEvent(before.event));
  IS(SUCCESS, lib.onnxReleaseGraph(g));
  IS(INVALID_GRAPH, lib.onnxReleaseGraph(g));
  IS(INVALID_GRAPH, lib.onnxRunGraph(g, &before, &after));
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
}
END_TEST

/* The input is written after the run was started; shapes change between runs. */
START_TEST(runs) {
  open_backend(_i);
  onnxGraph g = affine_graph();
  for (int n = 1; n <= 3; n++) {
    float x[12] = {0}, y[12], want[12];
    uint64_t shape[] = {(uint64_t)n, 4};
    onnxTensorDescriptorV1 in = describe("x", 2, shape, x), out = describe("y", 2, shape, y);
    IS(SUCCESS, lib.onnxSetGraphIO(g, 1, &in, 1, &out));
    onnxMemoryFenceV1 before = fence(new_event()), after = fence(NULL);
    IS(SUCCESS, lib.onnxRunGraph(g, &before, &after));
    onnxEventState state;
    usleep(5000);
    IS(SUCCESS, lib.onnxGetEventState(after.event, &state));
    ck_assert_int_eq(state, ONNXIFI_EVENT_STATE_NONSIGNALLED);
    for (int k = 0; k < 4 * n; k++) {
      x[k] = (float)(k - 5) * 0.75f;
    }
    IS(SUCCESS, lib.onnxSignalEvent(before.event));
    IS(SUCCESS, lib.onnxWaitEvent(after.event));
    affine(n, x, W, B, want);
    ck_assert_mem_eq(y, want, (size_t)n * 4 * sizeof *y);
    IS(INVALID_STATE, lib.onnxSignalEvent(after.event));
    IS(SUCCESS, lib.onnxReleaseEvent(before.event));
    IS(SUCCESS, lib.onnxReleaseEvent(after.event));
  }
  IS(SUCCESS, lib.onnxReleaseGraph(g));
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
}
END_TEST

/* The second graph waits for the output of the first one.  Both runs are started before the first event is
 * signalled. */
START_TEST(chain) {
  open_backend(_i);
  onnxGraph first = affine_graph(), second = affine_graph();
  float x[4] = {3, 1, 4, 1}, y[4], z[4], want[4];
  uint64_t shape[] = {1, 4};
  onnxTensorDescriptorV1 dx = describe("x", 2, shape, x), dy = describe("y", 2, shape, y),
                         ey = describe("x", 2, shape, y), dz = describe("y", 2, shape, z);
  IS(SUCCESS, lib.onnxSetGraphIO(first, 1, &dx, 1, &dy));
  IS(SUCCESS, lib.onnxSetGraphIO(second, 1, &ey, 1, &dz));
  onnxMemoryFenceV1 start = fence(new_event()), middle = fence(NULL), end = fence(NULL);
  IS(SUCCESS, lib.onnxRunGraph(first, &start, &middle));
  IS(SUCCESS, lib.onnxRunGraph(second, &middle, &end));
  IS(SUCCESS, lib.onnxReleaseEvent(middle.event)); /* the run signals the event even though it was released */
  IS(SUCCESS, lib.onnxSignalEvent(start.event));
  IS(SUCCESS, lib.onnxWaitEvent(end.event));
  affine(1, x, W, B, want);
  affine(1, (float[]){want[0], want[1], want[2], want[3]}, W, B, want);
  ck_assert_mem_eq(z, want, sizeof z);
  IS(SUCCESS, lib.onnxReleaseEvent(start.event));
  IS(SUCCESS, lib.onnxReleaseEvent(end.event));
  IS(SUCCESS, lib.onnxReleaseGraph(first));
  IS(SUCCESS, lib.onnxReleaseGraph(second));
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
}
END_TEST

/* Many runs are in flight; the input events of some of them are released and never signalled.  Releasing the graph
 * waits for all runs. */
START_TEST(many_in_flight) {
  open_backend(_i);
  enum { RUNS = 12 };
  onnxGraph g = affine_graph();
  static float x[RUNS][4], y[RUNS][4];
  onnxMemoryFenceV1 before[RUNS], after[RUNS];
  uint64_t shape[] = {1, 4};
  for (int k = 0; k < RUNS; k++) {
    onnxTensorDescriptorV1 in = describe("x", 2, shape, x[k]), out = describe("y", 2, shape, y[k]);
    x[k][0] = (float)k;
    IS(SUCCESS, lib.onnxSetGraphIO(g, 1, &in, 1, &out)); /* a run keeps the inputs and outputs that it began with */
    before[k] = fence(new_event());
    after[k] = fence(NULL);
    IS(SUCCESS, lib.onnxRunGraph(g, &before[k], &after[k]));
  }
  for (int k = RUNS; k-- > 0;) { /* the last run first; every third event is released and never signalled */
    IS(SUCCESS, k % 3 ? lib.onnxSignalEvent(before[k].event) : lib.onnxReleaseEvent(before[k].event));
  }
  IS(SUCCESS, lib.onnxReleaseGraph(g));
  for (int k = 0; k < RUNS; k++) {
    float want[4];
    onnxEventState state;
    affine(1, x[k], W, B, want);
    ck_assert(k % 3 == 0 || memcmp(y[k], want, sizeof want) == 0);
    IS(SUCCESS, lib.onnxGetEventState(after[k].event, &state));
    ck_assert_int_eq(state, ONNXIFI_EVENT_STATE_SIGNALLED);
    IS(SUCCESS, lib.onnxReleaseEvent(after[k].event));
  }
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
}
END_TEST

/* The size of NonZero's result depends on the numbers; the descriptor's shape is the largest that it may be. */
START_TEST(sizes_that_a_run_decides) {
  open_backend(_i);
  message nodes = {.n = 0};
  add_value(&nodes, GRAPH_INPUT, "x", 1, DIMS(4));
  add_node(&nodes, "NonZero", "x", NULL, "y");
  add_node(&nodes, "Shape", "y", NULL, "s");
  add_value(&nodes, GRAPH_OUTPUT, "y", 7, DIMS(1, -1));
  add_value(&nodes, GRAPH_OUTPUT, "s", 7, DIMS(2));
  message m = finish_model(&nodes, 8, 13);
  onnxGraph g;
  IS(SUCCESS, lib.onnxInitGraph(backend, NULL, m.n, m.bytes, 0, NULL, &g));
  float x[] = {1, 0, 0, 3};
  int64_t y[4] = {-1, -1, -1, -1}, shape[2];
  onnxTensorDescriptorV1 in = describe("x", 1, (uint64_t[]){4}, x);
  onnxTensorDescriptorV1 out[] = {describe("y", 2, (uint64_t[]){1, 4}, y), describe("s", 1, (uint64_t[]){2}, shape)};
  out[0].dataType = out[1].dataType = ONNXIFI_DATATYPE_INT64;
  IS(SUCCESS, lib.onnxSetGraphIO(g, 1, &in, 2, out));
  run_once(g);
  ck_assert(y[0] == 0 && y[1] == 3 && y[2] == -1);
  ck_assert(shape[0] == 1 && shape[1] == 2);
  x[1] = 5;
  run_once(g);
  ck_assert(y[0] == 0 && y[1] == 1 && y[2] == 3 && y[3] == -1);
  ck_assert_int_eq(shape[1], 3);
  IS(SUCCESS, lib.onnxReleaseGraph(g));
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
}
END_TEST

/* --- what is logged --- */

/* Returns how many bytes are written to standard error while a graph is made and run once, and another one is
 * refused. */
static long logged(int number, uint64_t level) {
  IS(SUCCESS, lib.onnxInitBackend(ids[number], (uint64_t[]){ONNXIFI_BACKEND_PROPERTY_LOG_LEVEL, level, 0}, &backend));
  FILE *file = tmpfile();
  int before = dup(2);
  dup2(fileno(file), 2);
  onnxGraph g = affine_graph(), none;
  float x[4] = {0}, y[4];
  onnxTensorDescriptorV1 in = describe("x", 2, (uint64_t[]){1, 4}, x), out = describe("y", 2, (uint64_t[]){1, 4}, y);
  IS(SUCCESS, lib.onnxSetGraphIO(g, 1, &in, 1, &out));
  run_once(g);
  IS(SUCCESS, lib.onnxReleaseGraph(g));
  message m = unary_model("NoSuchOperator", 1, DIMS(2), 13);
  IS(UNSUPPORTED_OPERATOR, lib.onnxInitGraph(backend, NULL, m.n, m.bytes, 0, NULL, &none));
  dup2(before, 2);
  close(before);
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
  fseek(file, 0, SEEK_END);
  long bytes = ftell(file);
  fclose(file);
  return bytes;
}

START_TEST(log_levels) {
  open_library();
  long error = logged(_i, ONNXIFI_LOG_LEVEL_ERROR), warning = logged(_i, ONNXIFI_LOG_LEVEL_WARNING);
  long info = logged(_i, ONNXIFI_LOG_LEVEL_INFO), debug = logged(_i, ONNXIFI_LOG_LEVEL_DEBUG);
  ck_assert(0 < error && error <= warning && warning < info && info < debug);
}
END_TEST

/* --- threads --- */

static void *client(void *data) {
  (void)data;
  onnxGraph own = affine_graph();
  float x[4], y[4], want[4];
  uint64_t shape[] = {1, 4};
  onnxTensorDescriptorV1 in = describe("x", 2, shape, x), out = describe("y", 2, shape, y);
  ck_assert_int_eq(lib.onnxSetGraphIO(own, 1, &in, 1, &out), OK);
  for (int k = 0; k < 50; k++) {
    for (int i = 0; i < 4; i++) {
      x[i] = (float)(k * i);
    }
    run_once(own);
    affine(1, x, W, B, want);
    ck_assert_mem_eq(y, want, sizeof y);
  }
  ck_assert_int_eq(lib.onnxReleaseGraph(own), OK);
  return NULL;
}

START_TEST(two_threads) {
  open_backend(_i);
  pthread_t threads[2];
  for (int k = 0; k < 2; k++) {
    pthread_create(&threads[k], NULL, client, NULL);
  }
  for (int k = 0; k < 2; k++) {
    pthread_join(threads[k], NULL);
  }
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
}
END_TEST

int main(void) {
  TCase *t = tcase_create("all");
  tcase_add_test(t, events);
  tcase_add_test(t, waiting);
  const TTest *const both[] = {backends,   bad_graphs, weights, bad_io,         over_input,
                               bad_runs,   runs,       chain,   many_in_flight, sizes_that_a_run_decides,
                               log_levels, two_threads};
  for (size_t k = 0; k < sizeof both / sizeof *both; k++) {
    tcase_add_loop_test(t, both[k], 0, 2);
  }
  return run_suite("onnxifi", t);
}
