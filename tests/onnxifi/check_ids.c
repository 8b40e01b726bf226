/* check_ids.c - the IDs that libonnxifi-xla.so has for GPUs, with a CUDA driver that emulates them
 * (module_fake_cuda.c).  The driver runs only code for the host, so graphs for GPUs are compiled for the host. */
#include <unistd.h>

#include "../api/write_model.h"
#include "../fake_driver.h"
#include "../suite.h"
#include "onnx-xla.h"
#include "onnxifi_client.h"

static const float W[] = {1, -2, 0.5f, 3}, B[] = {0, 1, -1, 0.25f};

enum { CPU, REFERENCE, GPU_0, GPU_1, N_IDS };

/* --- what the library asks of the C API --- */

static char asked_backend[32], asked_cpu[32]; /* the options of the last model that was loaded */

/* The library that a test opens calls this function in place of that of libonnx-xla, since symbols are looked up in the
 * program first.  It notes for which backend and CPU a model is compiled, and has it compiled for the emulating
 * driver. */
oxla_error *oxla_load_memory(const void *bytes, size_t size, const oxla_options *options, oxla_model **out) {
  oxla_error *(*load)(const void *, size_t, const oxla_options *, oxla_model **);
  oxla_options o = *options;
  *(void **)&load = dlsym(RTLD_NEXT, "oxla_load_memory");
  snprintf(asked_backend, sizeof asked_backend, "%s", o.backend);
  snprintf(asked_cpu, sizeof asked_cpu, "%s", o.cpu ? o.cpu : "");
  o.cpu = o.cpu ? "host" : NULL;
  return load(bytes, size, &o, out);
}

static void open_with_gpus(const char *n, const char *failures) {
  use_fake_driver();
  setenv("FAKE_CUDA_DEVICES", n, 1);
  setenv("FAKE_CUDA_FAIL", failures, 1);
  open_library();
}

static const char *text_of(int number, onnxBackendInfo key) {
  static char text[256];
  size_t n = sizeof text;
  IS(SUCCESS, lib.onnxGetBackendInfo(ids[number], key, text, &n));
  ck_assert_uint_eq(n, strlen(text) + 1);
  return text;
}

static uint64_t number_of(int number, onnxBackendInfo key) {
  uint64_t value;
  size_t n = sizeof value;
  IS(SUCCESS, lib.onnxGetBackendInfo(ids[number], key, &value, &n));
  ck_assert_uint_eq(n, sizeof value);
  return value;
}

/* --- tests --- */

START_TEST(each_gpu_has_an_id) {
  int gpus;
  open_with_gpus("2", "");
  ck_assert_uint_eq(n_ids, N_IDS);
  ck_assert(oxla_gpu_count(&gpus) == NULL && gpus == N_IDS - GPU_0);
  ck_assert_str_eq(text_of(CPU, ONNXIFI_BACKEND_NAME), "onnx-xla cpu");
  ck_assert_str_eq(text_of(REFERENCE, ONNXIFI_BACKEND_NAME), "onnx-xla reference");
  ck_assert_str_eq(text_of(GPU_0, ONNXIFI_BACKEND_NAME), "onnx-xla gpu:0");
  ck_assert_str_eq(text_of(GPU_1, ONNXIFI_BACKEND_NAME), "onnx-xla gpu:1");
  onnxBackendID again[N_IDS] = {0};
  size_t n = N_IDS - 1;
  IS(FALLBACK, lib.onnxGetBackendIDs(again, &n));
  ck_assert_uint_eq(n, N_IDS);
  IS(SUCCESS, lib.onnxGetBackendIDs(again, &n));
  for (int k = 0; k < N_IDS; k++) {
    ck_assert_ptr_eq(again[k], ids[k]);
    IS(SUCCESS, lib.onnxReleaseBackendID(ids[k]));
    ck_assert_int_eq((int)number_of(k, ONNXIFI_BACKEND_DEVICE_TYPE),
                     k < GPU_0 ? ONNXIFI_DEVICE_TYPE_CPU : ONNXIFI_DEVICE_TYPE_GPU);
  }
}
END_TEST

/* There is no driver, or the driver sees no GPU, or all GPUs are too old: no GPU has an ID, and nothing is printed
 * about that. */
START_TEST(without_a_gpu) {
  char said[64];
  int both[2], kept = dup(STDERR_FILENO);
  ck_assert(pipe(both) == 0 && dup2(both[1], STDERR_FILENO) >= 0);
  if (_i == 0) {
    open_library();
  } else {
    setenv("FAKE_CUDA_CAPABILITY", "70", 1);
    open_with_gpus(_i == 1 ? "0" : "2", "");
  }
  ck_assert(dup2(kept, STDERR_FILENO) >= 0);
  close(both[1]);
  ck_assert_int_eq((int)read(both[0], said, sizeof said), 0);
  ck_assert_uint_eq(n_ids, 2);
}
END_TEST

/* The numbers are the driver's.  128 lanes of 132 multiprocessors begin a multiply-add in each of 1.98e9 cycles. */
START_TEST(what_a_gpu_tells) {
  open_with_gpus("2", "");
  int id = GPU_0 + _i;
  char device[32];
  uint64_t value;
  size_t n = sizeof value;
  snprintf(device, sizeof device, "Fake GPU %d", _i);
  ck_assert_str_eq(text_of(id, ONNXIFI_BACKEND_DEVICE), device);
  ck_assert_str_eq(text_of(id, ONNXIFI_BACKEND_VENDOR), "onnx-xla");
  ck_assert_uint_eq(number_of(id, ONNXIFI_BACKEND_MEMORY_SIZE), 1 << 30);
  ck_assert_uint_eq(number_of(id, ONNXIFI_BACKEND_MACS_FP32), 128 * 132 * 1980000000ULL);
  ck_assert_uint_eq(number_of(id, ONNXIFI_BACKEND_MEMORY_BANDWIDTH), 2 * 2619000000ULL * 5120 / 8);
  ck_assert_uint_eq(number_of(id, ONNXIFI_BACKEND_CUDA_INDEX), (uint64_t)_i);
  IS(UNSUPPORTED_ATTRIBUTE, lib.onnxGetBackendInfo(ids[id], ONNXIFI_BACKEND_CPU_MEMORY_READ_BANDWIDTH, &value, &n));
  IS(UNSUPPORTED_ATTRIBUTE, lib.onnxGetBackendInfo(ids[CPU], ONNXIFI_BACKEND_CUDA_INDEX, &value, &n));
  static const onnxBackendInfo like_the_cpu[] = {
      ONNXIFI_BACKEND_ONNXIFI_VERSION, ONNXIFI_BACKEND_CAPABILITIES,          ONNXIFI_BACKEND_INIT_PROPERTIES,
      ONNXIFI_BACKEND_MEMORY_TYPES,    ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES, ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES,
      ONNXIFI_BACKEND_MAX_GRAPH_SIZE,  ONNXIFI_BACKEND_MAX_GRAPH_COUNT};
  for (size_t k = 0; k < sizeof like_the_cpu / sizeof *like_the_cpu; k++) {
    ck_assert_uint_eq(number_of(id, like_the_cpu[k]), number_of(CPU, like_the_cpu[k]));
  }
}
END_TEST

START_TEST(models_are_checked_for_a_gpu) {
  open_with_gpus("2", "");
  message m = affine_model(NULL, NULL);
  IS(SUCCESS, lib.onnxGetBackendCompatibility(ids[GPU_1], m.n, m.bytes));
  ck_assert_str_eq(asked_backend, "gpu:1");
  m = unary_model("NoSuchOperator", 1, DIMS(2), 13);
  IS(UNSUPPORTED_OPERATOR, lib.onnxGetBackendCompatibility(ids[GPU_1], m.n, m.bytes));
}
END_TEST

static void compute(int number, const float *x, float *y) {
  message m = affine_model(W, B);
  uint64_t shape[] = {5, 4};
  onnxGraph g;
  IS(SUCCESS, lib.onnxInitBackend(ids[number], NULL, &backend));
  IS(SUCCESS, lib.onnxInitGraph(backend, NULL, m.n, m.bytes, 0, NULL, &g));
  onnxTensorDescriptorV1 in = describe("x", 2, shape, x), out = describe("y", 2, shape, y);
  IS(SUCCESS, lib.onnxSetGraphIO(g, 1, &in, 1, &out));
  run_once(g);
  IS(SUCCESS, lib.onnxReleaseGraph(g));
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
}

/* The numbers are small multiples of powers of two: exact wherever they are computed. */
START_TEST(a_graph_runs_on_its_gpu) {
  float x[20], want[20], got[20] = {0};
  open_with_gpus("2", "");
  for (int k = 0; k < 20; k++) {
    x[k] = (float)(k - 9) * 0.25f;
  }
  compute(CPU, x, want);
  ck_assert_str_eq(asked_backend, "cpu");
  ck_assert_str_eq(asked_cpu, "");
  for (int k = 0; k < 20; k++) {
    float y = x[k] * W[k % 4] + B[k % 4];
    ck_assert(want[k] == (y > 0 ? y : 0));
  }
  compute(GPU_0 + _i, x, got);
  ck_assert_str_eq(asked_backend, _i == 0 ? "gpu:0" : "gpu:1");
  ck_assert_str_eq(asked_cpu, _i == 0 ? "sm_90" : "sm_86"); /* this GPU's architecture, not the first one's */
  ck_assert_mem_eq(got, want, sizeof want);
}
END_TEST

/* If a GPU fails, the client gets an error and can use the CPU.  The log, on standard error, has the driver's
 * reason. */
START_TEST(a_gpu_that_fails) {
  open_with_gpus("1", "cuStreamCreate:1:719");
  message m = unary_model("Relu", 1, DIMS(2), 13);
  onnxGraph g = ids;
  IS(SUCCESS, lib.onnxInitBackend(ids[GPU_0], NULL, &backend));
  IS(INTERNAL_ERROR, lib.onnxInitGraph(backend, NULL, m.n, m.bytes, 0, NULL, &g));
  ck_assert_ptr_null(g);
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
  IS(SUCCESS, lib.onnxInitBackend(ids[CPU], NULL, &backend));
  IS(SUCCESS, lib.onnxInitGraph(backend, NULL, m.n, m.bytes, 0, NULL, &g));
  IS(SUCCESS, lib.onnxReleaseGraph(g));
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
}
END_TEST

/* A GPU without memory is found when the graph is initialised, also if sizes are open, so that nothing is compiled yet.
 */
START_TEST(a_gpu_without_memory) {
  open_with_gpus("1", "cuMemAlloc_v2:1:2");
  message m = affine_model(W, B);
  onnxGraph g = ids;
  IS(SUCCESS, lib.onnxInitBackend(ids[GPU_0], NULL, &backend));
  IS(NO_SYSTEM_MEMORY, lib.onnxInitGraph(backend, NULL, m.n, m.bytes, 0, NULL, &g));
  ck_assert_ptr_null(g);
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
}
END_TEST

int main(void) {
  TCase *t = tcase_create("ids");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, each_gpu_has_an_id);
  tcase_add_loop_test(t, without_a_gpu, 0, 3);
  tcase_add_loop_test(t, what_a_gpu_tells, 0, 2);
  tcase_add_test(t, models_are_checked_for_a_gpu);
  tcase_add_loop_test(t, a_graph_runs_on_its_gpu, 0, 2);
  tcase_add_test(t, a_gpu_that_fails);
  tcase_add_test(t, a_gpu_without_memory);
  return run_suite("ids", t);
}
