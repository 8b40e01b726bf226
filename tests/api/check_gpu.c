/* check_gpu.c - which GPUs there are, by a driver that emulates two (module_fake_cuda.c), and without one. */
#include <stdio.h>

#include "api_client.h"

static void setup(void) {
  static char driver[4096];
  const char *top = getenv("top_builddir");
  snprintf(driver, sizeof driver, "%s/tests/unit/backend_gpu/.libs/module_fake_cuda.so", top ? top : ".");
  setenv("ONNX_XLA_CUDA_DRIVER", driver, 1);
  setenv("FAKE_CUDA_DEVICES", "2", 1);
}

static void remove_the_driver(void) { setenv("ONNX_XLA_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1); }

/* What the driver says of its devices, and what follows from that by CUDA's documentation: a multiprocessor of sm_90 or
 * sm_86 begins 128 multiply-adds in a cycle, and memory transfers twice in one. */
START_TEST(gpus_are_described) {
  static const struct { const char *name, *architecture; } want[] = {{"Fake GPU 0", "sm_90"}, {"Fake GPU 1", "sm_86"}};
  int n = 0;
  succeed(oxla_gpu_count(&n));
  ck_assert_int_eq(n, 2);
  for (int k = 0; k < n; k++) {
    oxla_gpu g;
    succeed(oxla_describe_gpu(k, &g));
    ck_assert_str_eq(g.name, want[k].name);
    ck_assert_str_eq(g.architecture, want[k].architecture);
    ck_assert_uint_eq(g.memory_bytes, 1 << 30);
    ck_assert_uint_eq(g.operations, 2 * 128 * 132 * 1980000000ULL);
    ck_assert_uint_eq(g.bandwidth, 2 * 2619000000ULL * 5120 / 8);
  }
}
END_TEST

START_TEST(there_is_no_such_gpu) {
  oxla_gpu g;
  refuse(oxla_describe_gpu(2, &g), OXLA_INVALID_ARGUMENT, "there is no CUDA device 2");
  refuse(oxla_describe_gpu(-1, &g), OXLA_INVALID_ARGUMENT, "there is no GPU -1");
  refuse(oxla_describe_gpu(0, NULL), OXLA_INVALID_ARGUMENT, "no place");
  refuse(oxla_gpu_count(NULL), OXLA_INVALID_ARGUMENT, "no place");
}
END_TEST

START_TEST(there_is_no_driver) {
  oxla_gpu g;
  int n = 1;
  remove_the_driver();
  refuse_about(oxla_gpu_count(&n), OXLA_UNSUPPORTED, OXLA_ABOUT_BACKEND, "there is no driver of CUDA");
  ck_assert_int_eq(n, 0);
  refuse_about(oxla_describe_gpu(0, &g), OXLA_UNSUPPORTED, OXLA_ABOUT_BACKEND, "there is no driver of CUDA");
}
END_TEST

int main(void) {
  TCase *t = tcase_create("gpus");
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_set_timeout(t, 120);
  tcase_add_test(t, gpus_are_described);
  tcase_add_test(t, there_is_no_such_gpu);
  tcase_add_test(t, there_is_no_driver);
  return run_suite("gpus", t);
}
