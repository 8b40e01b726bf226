/* check_compatibility.c - what libonnxifi-xla.so tells before there is a graph: its backends, and which models they
 * take. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "../api/little_room.h"
#include "../api/write_model.h"
#include "../suite.h"
#include "onnxifi_client.h"

START_TEST(backend_ids) {
  open_library();
  onnxBackendID more[8] = {0};
  size_t n = 0;
  IS(INVALID_POINTER, lib.onnxGetBackendIDs(more, NULL));
  IS(FALLBACK, lib.onnxGetBackendIDs(NULL, &n));
  ck_assert_uint_eq(n, 2);
  n = 1;
  IS(FALLBACK, lib.onnxGetBackendIDs(more, &n));
  ck_assert_uint_eq(n, 2);
  ck_assert_ptr_null(more[0]);
  n = 8;
  IS(SUCCESS, lib.onnxGetBackendIDs(more, &n));
  ck_assert_uint_eq(n, 2);
  ck_assert_ptr_eq(more[1], ids[1]);
  IS(SUCCESS, lib.onnxReleaseBackendID(ids[0]));
  IS(INVALID_ID, lib.onnxReleaseBackendID(NULL));
  IS(INVALID_ID, lib.onnxReleaseBackendID(&n));
}
END_TEST

/* If there is no memory to load the compiler half of the library, the status says so, and a later call succeeds when
 * there is enough. */
START_TEST(room_for_the_compiler) {
  open_library();
  message m = affine_model(NULL, NULL);
  char text[256];
  uint64_t rate;
  if (!room_can_be_taken) {
    return;
  }
  for (int k = 0; k < 2; k++) {
    onnxStatus want = k == 0 ? ONNXIFI_STATUS_NO_SYSTEM_MEMORY : OK;
    size_t n = sizeof text, size = sizeof rate;
    k == 0 ? leave_room(32 << 20) : leave_all_room();
    ck_assert_int_eq(lib.onnxGetBackendInfo(ids[0], ONNXIFI_BACKEND_OPSET_VERSION, text, &n), want);
    ck_assert_int_eq(lib.onnxGetBackendInfo(ids[0], ONNXIFI_BACKEND_MACS_FP32, &rate, &size), want);
    ck_assert_int_eq(lib.onnxGetBackendCompatibility(ids[0], m.n, m.bytes), want);
    ck_assert_int_eq(lib.onnxInitBackend(ids[0], NULL, &backend), want);
  }
  ck_assert(rate > 100000000);
  IS(SUCCESS, lib.onnxReleaseBackend(backend));
}
END_TEST

START_TEST(backend_info) {
  open_library();
  char text[256];
  uint64_t number;
  size_t n = sizeof text;
  for (int key = ONNXIFI_BACKEND_NAME; key <= ONNXIFI_BACKEND_OPSET_VERSION; key++) {
    n = sizeof text;
    if (key != ONNXIFI_BACKEND_DEVICE_TYPE) {
      IS(SUCCESS, lib.onnxGetBackendInfo(ids[_i], key, text, &n));
      ck_assert_uint_eq(n, strlen(text) + 1);
    }
  }
  ck_assert_ptr_nonnull(strstr(text, "ai.onnx:"));
  static const int numbers[] = {0, 6, 10, 11, 12, 13, 14, 20, 21, 22};
  for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
    n = sizeof number;
    IS(SUCCESS, lib.onnxGetBackendInfo(ids[_i], numbers[k], &number, &n));
    ck_assert_uint_eq(n, sizeof number);
  }
  IS(SUCCESS, lib.onnxGetBackendInfo(ids[_i], ONNXIFI_BACKEND_ONNXIFI_VERSION, &number, &n));
  ck_assert_uint_eq(number, (uint64_t)1 << 32);
  static const int rates[] = {ONNXIFI_BACKEND_MACS_FP32, ONNXIFI_BACKEND_MEMORY_BANDWIDTH,
                              ONNXIFI_BACKEND_CPU_MEMORY_READ_BANDWIDTH};
  for (size_t k = 0; k < sizeof rates / sizeof *rates; k++) {
    if (_i == 0) { /* measured; a machine of today does more than 10^8 and less than 10^15 */
      IS(SUCCESS, lib.onnxGetBackendInfo(ids[_i], rates[k], &number, &n));
      ck_assert(number > 100000000 && number < 1000000000000000);
    } else {
      IS(UNSUPPORTED_ATTRIBUTE, lib.onnxGetBackendInfo(ids[_i], rates[k], &number, &n));
    }
  }
  IS(SUCCESS, lib.onnxGetBackendInfo(ids[_i], ONNXIFI_BACKEND_CAPABILITIES, &number, &n));
  ck_assert_uint_eq(number, 0x1F); /* all but hot plugging */
  n = 3;
  IS(FALLBACK, lib.onnxGetBackendInfo(ids[_i], ONNXIFI_BACKEND_NAME, text, &n));
  ck_assert_uint_gt(n, 3);
  IS(FALLBACK, lib.onnxGetBackendInfo(ids[_i], ONNXIFI_BACKEND_MEMORY_SIZE, NULL, &n));
  ck_assert_uint_eq(n, 8);
  IS(INVALID_POINTER, lib.onnxGetBackendInfo(ids[_i], ONNXIFI_BACKEND_NAME, text, NULL));
  IS(INVALID_ID, lib.onnxGetBackendInfo(&n, ONNXIFI_BACKEND_NAME, text, &n));
  IS(UNSUPPORTED_ATTRIBUTE, lib.onnxGetBackendInfo(ids[_i], 9999, text, &n));
  IS(UNSUPPORTED_ATTRIBUTE, lib.onnxGetBackendInfo(ids[_i], ONNXIFI_BACKEND_CUDA_INDEX, text, &n));
}
END_TEST

static onnxStatus compatible(int number, const message *m) {
  return lib.onnxGetBackendCompatibility(ids[number], m->n, m->bytes);
}

START_TEST(compatibility) {
  open_library();
  message m = affine_model(NULL, NULL);
  IS(SUCCESS, compatible(_i, &m));
  IS(INVALID_ID, lib.onnxGetBackendCompatibility(NULL, m.n, m.bytes));
  IS(INVALID_POINTER, lib.onnxGetBackendCompatibility(ids[_i], m.n, NULL));
  IS(INVALID_SIZE, lib.onnxGetBackendCompatibility(ids[_i], 0, m.bytes));
  IS(INVALID_PROTOBUF, lib.onnxGetBackendCompatibility(ids[_i], m.n - 1, m.bytes));
  m = unary_model("Relu", 1, DIMS(2), 1000);
  IS(UNSUPPORTED_VERSION, compatible(_i, &m));
  m = unary_model("NoSuchOperator", 1, DIMS(2), 13);
  IS(UNSUPPORTED_OPERATOR, compatible(_i, &m));
  m = unary_model("Relu", 1, 17, (const int64_t[17]){1, 1, 1}, 13);
  IS(UNSUPPORTED_SHAPE, compatible(_i, &m));
  m = unary_model("Identity", 8, DIMS(2), 13);
  IS(UNSUPPORTED_DATATYPE, compatible(_i, &m));
}
END_TEST

/* Graphs are refused whose declared outputs differ from the real ones, or in which the contents of an input decide a
 * size. */
START_TEST(compatibility_of_graphs) {
  open_library();
  message g = {.n = 0}, m;
  add_value(&g, GRAPH_INPUT, "x", 1, DIMS(2, 3));
  add_node(&g, "Transpose", "x", NULL, "y");
  message wrong = g;
  add_value(&wrong, GRAPH_OUTPUT, "y", 1, DIMS(2, 3));
  m = finish_model(&wrong, 8, 13);
  IS(MISMATCHING_SHAPE, compatible(_i, &m));
  wrong = g;
  add_value(&wrong, GRAPH_OUTPUT, "y", 11, DIMS(3, 2));
  m = finish_model(&wrong, 8, 13);
  IS(MISMATCHING_DATATYPE, compatible(_i, &m));
  wrong = g;
  add_value(&wrong, GRAPH_OUTPUT, "nobody", 1, DIMS(3, 2));
  m = finish_model(&wrong, 8, 13);
  IS(INVALID_MODEL, compatible(_i, &m));
  message reshape = {.n = 0};
  add_value(&reshape, GRAPH_INPUT, "x", 1, DIMS(2, 3));
  add_value(&reshape, GRAPH_INPUT, "s", 7, DIMS(1));
  add_node(&reshape, "Reshape", "x", "s", "y");
  add_value(&reshape, GRAPH_OUTPUT, "y", 1, DIMS(-1));
  m = finish_model(&reshape, 8, 13);
  IS(SUCCESS, compatible(_i, &m));
}
END_TEST

/* The check must be fast, since frameworks ask for each node. */
START_TEST(compatibility_is_quick) {
  open_library();
  message m = unary_model("Relu", 1, DIMS(64, 1000), 13);
  IS(SUCCESS, lib.onnxGetBackendCompatibility(ids[_i], m.n, m.bytes)); /* opens the compiler */
  struct timespec start, end;
  clock_gettime(CLOCK_MONOTONIC, &start);
  for (int k = 0; k < 500; k++) {
    IS(SUCCESS, lib.onnxGetBackendCompatibility(ids[_i], m.n, m.bytes));
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9;
  ck_assert_msg(seconds < 5, "500 nodes took %.3f s",
                seconds); /* each takes about 0.1 ms on a machine that does nothing else */
}
END_TEST

int main(void) {
  TCase *t = tcase_create("all");
  tcase_add_test(t, room_for_the_compiler);
  tcase_add_test(t, backend_ids);
  tcase_add_loop_test(t, backend_info, 0, 2);
  tcase_add_loop_test(t, compatibility, 0, 2);
  tcase_add_loop_test(t, compatibility_of_graphs, 0, 2);
  tcase_add_loop_test(t, compatibility_is_quick, 0, 2);
  return run_suite("compatibility", t);
}
