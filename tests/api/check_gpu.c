/* check_gpu.c - the GPUs that are listed, with a driver that emulates two (module_fake_cuda.c) and without a driver;
 * and the backend that replaces a GPU which cannot be used. */
#include <stdio.h>

#include "../fake_driver.h"
#include "api_client.h"

static void setup(void) {
  use_fake_driver();
  setenv("FAKE_CUDA_DEVICES", "2", 1);
}

static void remove_the_driver(void) { setenv("ONNX_XLA_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1); }

/* What the driver says of its devices, and the rates that follow by CUDA's documentation: in each cycle, a
 * multiprocessor of sm_90 or sm_86 begins 128 multiply-adds, and memory transfers data twice. */
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
  refuse(oxla_describe_gpu(0, NULL), OXLA_INVALID_ARGUMENT, "argument out is NULL");
  refuse(oxla_gpu_count(NULL), OXLA_INVALID_ARGUMENT, "argument out is NULL");
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

/* Expects that affine_model cannot be run on the backend for which it was loaded, for this reason.  Destroys the
 * model. */
static void fail_to_run(oxla_model *m, const char *reason) {
  oxla_run *run = new_run(m);
  numbers v = make_numbers(3, 1);
  set_affine(run, &v, 3);
  refuse_about(oxla_execute(run), OXLA_UNSUPPORTED, OXLA_ABOUT_BACKEND, reason);
  oxla_run_destroy(run);
  oxla_model_destroy(m);
  free_numbers(&v);
}

/* Expects that affine_model cannot be loaded for the backend, for this reason. */
static void fail_to_load(const char *backend, oxla_code code, const char *reason) {
  oxla_model *m;
  message bytes = affine_model(W, B);
  oxla_options o = {.size = sizeof o, .backend = backend};
  refuse(oxla_load_memory(bytes.bytes, bytes.n, &o, &m), code, reason);
  ck_assert_ptr_null(m);
}

/* The newest GPU that is too old is the Tesla V100, of capability 7.0. */
START_TEST(a_gpu_that_is_too_old) {
  oxla_gpu g;
  setenv("FAKE_CUDA_CAPABILITY", "70", 1);
  succeed(oxla_describe_gpu(0, &g));
  ck_assert_str_eq(g.architecture, "");
  fail_to_load("gpu", OXLA_UNSUPPORTED, "has compute capability 7.0; at least 7.5");
}
END_TEST

/* A model for a GPU of this machine is not loaded if the GPU cannot be used, although nothing is computed yet. */
START_TEST(loading_tries_the_device) {
  setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2:1:2", 1);
  fail_to_load("gpu:2", OXLA_INVALID_ARGUMENT,
               "the device of backend gpu:2 cannot be used (--cpu=sm_80, for instance, compiles for a GPU that is not "
               "here): there is no CUDA device 2");
  fail_to_load("gpu", OXLA_RESOURCE, "CUDA_ERROR_OUT_OF_MEMORY");
}
END_TEST

START_TEST(loading_needs_a_driver) {
  remove_the_driver();
  fail_to_load("gpu", OXLA_UNSUPPORTED, "there is no driver of CUDA");
}
END_TEST

/* An option that means nothing to the backend is refused when the model is loaded. */
START_TEST(options_of_other_backends) {
  static const struct {
    oxla_options options;
    const char *text;
  } cases[] = {{{.backend = "gpu:host", .lanes = 4}, "backend gpu:host has no option --lanes"},
               {{.backend = "gpu:1", .cpu = "host", .lanes = 8}, "backend gpu:1 has no option --lanes"},
               {{.backend = "gpu:7", .lanes = 8, .fallback = "cpu"}, "backend gpu:7 has no option --lanes"},
               {{.backend = "ref", .lanes = 1}, "backend ref has no option --lanes"},
               {{.backend = "ref", .cpu = "native"}, "backend ref has no option --cpu"}};
  message bytes = affine_model(W, B);
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    oxla_model *m;
    oxla_options o = cases[k].options;
    o.size = sizeof o;
    refuse(oxla_load_memory(bytes.bytes, bytes.n, &o, &m), OXLA_INVALID_ARGUMENT, cases[k].text);
    ck_assert_ptr_null(m);
  }
}
END_TEST

/* A model for a named GPU can be compiled and saved where there is none. */
START_TEST(a_gpu_of_another_machine) {
  void *file;
  size_t size;
  remove_the_driver();
  message bytes = affine_model(W, B);
  oxla_model *m = load_with(&bytes, (oxla_options){.backend = "gpu", .cpu = "sm_80"});
  oxla_run *run = new_run(m);
  succeed(oxla_compile(run));
  oxla_run_destroy(run);
  succeed(oxla_save_memory(m, &file, &size));
  oxla_free(file);
  fail_to_run(m, "there is no driver of CUDA");
}
END_TEST

/* --- oxla_options.fallback --- */

static char warning[512]; /* the last warning of the log */

static void keep_warning(void *data, oxla_log_level level, const char *line) {
  (void)data;
  if (level == OXLA_LOG_WARNING) {
    snprintf(warning, sizeof warning, "%s", line);
  }
}

/* Loads affine_model with these options, expects that it uses the backend `used`, and runs it. */
static void compute_on(oxla_options o, const char *used) {
  message bytes = affine_model(W, B);
  o.log = keep_warning;
  oxla_model *m = load_with(&bytes, o);
  ck_assert_str_eq(oxla_model_backend(m), used);
  oxla_device d;
  succeed(oxla_model_device(m, &d));
  ck_assert_int_eq(d.type, strncmp(used, "gpu", 3) == 0 ? OXLA_DEVICE_CUDA : OXLA_DEVICE_HOST);
  oxla_run *run = new_run(m);
  run_affine(run, 3, 1);
  oxla_run_destroy(run);
  oxla_model_destroy(m);
}

START_TEST(another_backend_takes_the_place_of_a_gpu) {
  static const struct {
    const char *driver_fails, *fallback, *reason;
  } cases[] = {{NULL, "cpu", "the backend is cpu, not gpu:0: there is no driver of CUDA"},
               {"", "cpu", "CUDA device 0 has compute capability 7.0; at least 7.5 is needed"},
               {"cuInit:1:999", "cpu", "CUDA_ERROR_UNKNOWN"},
               {"cuDevicePrimaryCtxRetain:1:2", "ref", "the backend is ref, not gpu:0: CUDA device 0"},
               {"cuMemAlloc_v2:1:2", "cpu", "CUDA_ERROR_OUT_OF_MEMORY"}};
  if (cases[_i].driver_fails) {
    setenv("FAKE_CUDA_FAIL", cases[_i].driver_fails, 1);
    setenv("FAKE_CUDA_CAPABILITY", *cases[_i].driver_fails ? "75" : "70", 1);
  } else {
    remove_the_driver();
  }
  compute_on((oxla_options){.backend = "gpu:0", .fallback = cases[_i].fallback}, cases[_i].fallback);
  ck_assert_msg(strstr(warning, cases[_i].reason), "'%s' does not say '%s'", warning, cases[_i].reason);
}
END_TEST

START_TEST(a_gpu_that_works_is_used) {
  compute_on((oxla_options){.backend = "gpu:1", .cpu = "host", .fallback = "ref"}, "gpu:1");
  compute_on((oxla_options){.backend = "cpu", .fallback = "ref"}, "cpu");
  compute_on((oxla_options){.fallback = "ref"}, "cpu");
  ck_assert_str_eq(warning, "");
  ck_assert_str_eq(oxla_model_backend(NULL), "");
}
END_TEST

/* The fallback's name is checked even if no fallback is needed.  Options of a program that was built with an older
 * header have no fallback. */
START_TEST(without_another_backend) {
  message bytes = affine_model(W, B);
  oxla_options o = {.size = sizeof o, .backend = "cpu", .fallback = "abacus"};
  oxla_model *m;
  refuse(oxla_load_memory(bytes.bytes, bytes.n, &o, &m), OXLA_INVALID_ARGUMENT, "abacus");
  remove_the_driver();
  o = (oxla_options){.size = offsetof(oxla_options, fallback), .backend = "gpu", .cpu = "sm_80", .fallback = "cpu"};
  succeed(oxla_load_memory(bytes.bytes, bytes.n, &o, &m));
  ck_assert_str_eq(oxla_model_backend(m), "gpu");
  fail_to_run(m, "there is no driver of CUDA");
}
END_TEST

int main(void) {
  TCase *t = tcase_create("gpus");
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_set_timeout(t, 120);
  tcase_add_test(t, gpus_are_described);
  tcase_add_test(t, there_is_no_such_gpu);
  tcase_add_test(t, there_is_no_driver);
  tcase_add_test(t, a_gpu_that_is_too_old);
  tcase_add_test(t, loading_tries_the_device);
  tcase_add_test(t, loading_needs_a_driver);
  tcase_add_test(t, a_gpu_of_another_machine);
  tcase_add_test(t, options_of_other_backends);
  tcase_add_loop_test(t, another_backend_takes_the_place_of_a_gpu, 0, 5);
  tcase_add_test(t, a_gpu_that_works_is_used);
  tcase_add_test(t, without_another_backend);
  return run_suite("gpus", t);
}
