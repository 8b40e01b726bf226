/* check_cuda.c - the functions of the CUDA platform, on the fake driver (module_fake_cuda.c); its declarations are
 * compared with CUDA's own where these are installed.  check_cuda_failures.c has what happens when the driver fails,
 * check_cuda_module.c how code is compiled and kept. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "runtime/program/code_bundle.h"
#include "tests/suite.h"
#include "tests/unit/backend_gpu/cuda_case.h"

/* --- devices --- */

START_TEST(devices_are_described) {
  gpu_cuda_info info;
  uint32_t n;
  ASSERT_OK(gpu_cuda_count(&n));
  ck_assert_uint_eq(n, 2);
  ASSERT_OK(gpu_cuda_describe(1, &info));
  ck_assert_str_eq(info.name, "Fake GPU 1");
  ck_assert_uint_eq(info.memory_bytes, 1 << 30);
  ck_assert_uint_eq(info.capability, 86);
  ck_assert_uint_eq(info.processors, 132);
  ck_assert_uint_eq(info.shared_bytes, 227 << 10);
  ck_assert_uint_eq(info.cuda_version, 12040);
  ck_assert_str_eq(info.architecture, "sm_86");
  ck_assert_double_eq_tol(info.operations, 2.0 * 128 * 132 * 1.98e9, 1e6); /* multiply and add in each of 128 lanes */
  ck_assert_double_eq_tol(info.bytes, 2 * 2.619e9 * 5120 / 8, 1e3);
  ck_assert_ptr_eq(cuda_case_device(1), cuda_case_device(1));
  ck_assert_ptr_ne(cuda_case_device(0), cuda_case_device(1));
  cuda_case_check_end();
}
END_TEST

START_TEST(a_device_that_is_not_there) {
  gpu_cuda_info info;
  void *memory;
  const gpu_device *g = cuda_case_device(7);
  const char *text = "there is no CUDA device 7: the driver sees 2";
  cuda_case_check_failure(g->device.allocate(&g->device, 1, &memory), STATUS_INVALID_ARGUMENT, text);
  cuda_case_check_failure(gpu_cuda_describe(7, &info), STATUS_INVALID_ARGUMENT, text);
}
END_TEST

START_TEST(no_device_at_all) {
  uint32_t n;
  setenv("FAKE_CUDA_DEVICES", "0", 1);
  cuda_case_check_failure(cuda_program_do(cuda_case_device(0)), STATUS_UNSUPPORTED, "CUDA_ERROR_NO_DEVICE");
  cuda_case_check_failure(gpu_cuda_count(&n), STATUS_UNSUPPORTED, "CUDA_ERROR_NO_DEVICE");
}
END_TEST

START_TEST(no_driver) {
  setenv("ONNX_XLA_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
  cuda_case_check_failure(cuda_program_do(cuda_case_device(0)), STATUS_UNSUPPORTED,
                          "there is no driver of CUDA: /nowhere/libcuda.so.1");
  setenv("ONNX_XLA_CUDA_DRIVER", "libm.so.6", 1);
  cuda_case_check_failure(cuda_program_do(cuda_case_device(0)), STATUS_UNSUPPORTED,
                          "libm.so.6, has no function cuInit");
  setenv("ONNX_XLA_CUDA_DRIVER", cuda_case_driver, 1);
  ASSERT_OK(cuda_program_do(cuda_case_device(0)));
  cuda_case_check_end();
}
END_TEST

START_TEST(programs_run) {
  ASSERT_OK(cuda_program_do(cuda_case_device(0)));
  ASSERT_OK(cuda_program_do(cuda_case_device(1)));
  cuda_case_check_end();
}
END_TEST

static void *run_often(void *data) {
  for (int k = 0; k < 10; k++) {
    ASSERT_OK(cuda_program_do(data));
  }
  return NULL;
}

START_TEST(any_thread_may_call) {
  pthread_t threads[4];
  for (uint32_t k = 0; k < 4; k++) {
    ck_assert_int_eq(pthread_create(&threads[k], NULL, run_often, (void *)cuda_case_device(k % 2)), 0);
  }
  for (int k = 0; k < 4; k++) {
    pthread_join(threads[k], NULL);
  }
  cuda_case_check_end();
}
END_TEST

/* --- memory and waiting --- */

START_TEST(memory_runs_out) {
  const rt_device *d = &cuda_case_device(0)->device;
  void *a, *b;
  ASSERT_OK(d->allocate(d, 1 << 29, &a));
  cuda_case_check_failure(d->allocate(d, (1 << 29) + 1, &b), STATUS_RESOURCE,
                          "CUDA device 0: no 536870913 bytes of memory, of 1073741824 bytes 536870912 are free: "
                          "CUDA_ERROR_OUT_OF_MEMORY");
  d->release(d, a, 1 << 29);
  ASSERT_OK(d->allocate(d, (1 << 29) + 1, &b));
  d->release(d, b, (1 << 29) + 1);
  cuda_case_check_end();
}
END_TEST

START_TEST(free_memory_is_unknown) {
  const rt_device *d = &cuda_case_device(0)->device;
  void *memory;
  setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2:1:2,cuMemGetInfo_v2:1:1", 1);
  cuda_case_check_failure(d->allocate(d, 5, &memory), STATUS_INTERNAL,
                          "no 5 bytes of memory: CUDA_ERROR_OUT_OF_MEMORY");
}
END_TEST

static long resident_pages(void) {
  long all = 0, resident = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  ck_assert(f && fscanf(f, "%ld %ld", &all, &resident) == 2);
  fclose(f);
  return resident;
}

START_TEST(launches_leave_no_memory_behind) {
  setenv("FAKE_CUDA_DELAY", "0", 1);
  cuda_program *p = cuda_program_loaded();
  long before = 0;
  for (int k = 0; k < 1100; k++) {
    before = k == 100 ? resident_pages() : before;
    ASSERT_OK(cuda_program_launch(p, k));
    if (k % 50 == 49) {
      ASSERT_OK(p->device->await(p->stream, NULL));
    }
  }
  const char *sanitizers = getenv("ONNX_XLA_SANITIZERS"); /* sanitizers keep memory that was freed */
  ck_assert((sanitizers && *sanitizers) || resident_pages() - before < 500);
  cuda_program_free(p);
  cuda_case_check_end();
}
END_TEST

/* When a budget ends a wait, no copy may write to host memory afterwards.  The wait must end without waiting
 * for the kernels that come before these copies. */
START_TEST(waits_end_with_the_budget) {
  cuda_program *p = cuda_program_loaded();
  for (int copies = 0; copies < 3; copies++) {
    mem_budget cancelled = {.cancel = true}, late = {.deadline = 1};
    cuda_program_linger(p, copies);
    cuda_case_check_failure(p->device->await(p->stream, copies % 2 ? &cancelled : &late), STATUS_RESOURCE,
                            copies % 2 ? "cancelled" : "the time limit has passed");
    ASSERT_OK(p->device->await(p->stream, &(mem_budget){.deadline = deadline_after(100)}));
    ck_assert_int_eq(p->sums[1], 0);
  }
  cuda_program_free(p);
  cuda_case_check_end();
}
END_TEST

/* --- recordings --- */

/* A call that CUDA forbids during a capture ends the recording; its stream can then be used as before. */
START_TEST(recordings_that_break) {
  cuda_program *p = cuda_program_loaded();
  rt_recording *recording;
  for (int k = 0; k < 3; k++) {
    uint64_t breaches = cuda_case_ask("fake_cuda_breaches");
    void *memory;
    ASSERT_OK(p->device->record_begin(p->stream));
    status failed = k == 0   ? p->device->await(p->stream, NULL)
                    : k == 1 ? p->device->allocate(p->device, 1, &memory)
                             : p->device->record_begin(p->stream);
    ck_assert_ptr_nonnull(failed);
    status_free(failed);
    failed = p->device->record_end(p->stream, &recording);
    if (k < 2) {
      cuda_case_check_failure(failed, STATUS_INTERNAL, "ending a recording: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
    } else {
      ASSERT_OK(failed);
      p->device->release_recording(recording);
    }
    ck_assert_uint_eq(cuda_case_ask("fake_cuda_breaches"), breaches + 1);
    ASSERT_OK(cuda_program_run(p, NULL));
    cuda_program_check_results(p);
  }
  cuda_program_free(p);
  ck_assert_uint_eq(cuda_case_ask("fake_cuda_live"), 0);
}
END_TEST

/* Recordings refuse copies from or to host memory, since another array may be at the host's address when the
 * recording is replayed. */
START_TEST(copies_of_the_host_are_not_recorded) {
  cuda_program *p = cuda_program_loaded();
  rt_recording *recording;
  ASSERT_OK(p->device->record_begin(p->stream));
  cuda_case_check_failure(p->device->copy(p->stream, RT_UPLOAD, p->memory[0], p->x, CUDA_CASE_BYTES), STATUS_INTERNAL,
                          "a copy of the host's memory in a recording");
  cuda_case_check_failure(p->device->copy(p->stream, RT_DOWNLOAD, p->sums, p->memory[0], CUDA_CASE_BYTES),
                          STATUS_INTERNAL, "a copy of the host's memory in a recording");
  ASSERT_OK(p->device->record_end(p->stream, &recording));
  p->device->release_recording(recording);
  ASSERT_OK(cuda_program_replay(p));
  ck_assert_uint_eq(cuda_case_ask("fake_cuda_graph_launches"), 2);
  cuda_program_free(p);
  cuda_case_check_end();
}
END_TEST

/* --- times and rates --- */

START_TEST(events_have_times) {
  cuda_program *p = cuda_program_loaded();
  const rt_device *d = p->device;
  rt_event *from, *to;
  double seconds = -1;
  uint64_t begin = clock_nanoseconds();
  ASSERT_OK(d->create_event(d, &from));
  ASSERT_OK(d->create_event(d, &to));
  ASSERT_OK(d->record_event(from, p->stream));
  cuda_program_linger(p, 0);
  ASSERT_OK(d->record_event(to, p->stream));
  cuda_case_check_failure(d->elapsed(from, to, &seconds), STATUS_INTERNAL, "time between events: CUDA_ERROR_NOT_READY");
  ASSERT_OK(d->await(p->stream, NULL));
  ASSERT_OK(d->elapsed(from, to, &seconds));
  ck_assert(seconds > 1e-3 && seconds < 1e-9 * (double)(clock_nanoseconds() - begin));
  ASSERT_OK(d->elapsed(to, from, &seconds));
  ck_assert(seconds < 0);
  d->destroy_event(from);
  d->destroy_event(to);
  cuda_program_free(p);
  cuda_case_check_end();
}
END_TEST

/* An H100 SXM has 132 multiprocessors, 1.98 GHz and HBM3 of 5120 bits: its data sheet says 67 TFLOP/s and 3.35 TB/s. */
START_TEST(peaks_are_those_of_data_sheets) {
  double operations, bytes;
  const rt_device *d = &cuda_case_device(0)->device;
  ASSERT_OK(d->peak(d, &operations, &bytes));
  ck_assert_double_eq_tol(operations, 67e12, 0.1e12);
  ck_assert_double_eq_tol(bytes, 3.35e12, 0.01e12);
}
END_TEST

/* --- code --- */

#define SM_80 "nvptx64-nvidia-cuda sm_80 +ptx70 1 blocks"
#define SM_86 "nvptx64-nvidia-cuda sm_86 +ptx71 1 blocks"
#define SM_90 "nvptx64-nvidia-cuda sm_90 +ptx78 1 blocks"
#define SM_90A "nvptx64-nvidia-cuda sm_90a +ptx80 1 blocks"

START_TEST(code_fits_the_device) {
  static const struct {
    const char *cpu, *failure[2]; /* on sm_90 and sm_86; NULL if the code runs */
  } cases[] = {
      {"", {NULL, NULL}},
      {"nvptx64-nvidia-cuda sm_80 +ptx70 1", {NULL, NULL}},
      {"nvptx64-nvidia-cuda sm_86 +ptx78 1 blocks", {NULL, NULL}},
      {"nvptx64-nvidia-cuda sm_90 +ptx80 1", {NULL, "PTX for sm_90, but CUDA device 1 is sm_86"}},
      {"nvptx64-nvidia-cuda sm_90a +ptx80 1", {NULL, "PTX for sm_90a, but CUDA device 1 is sm_86"}},
      {"nvptx64-nvidia-cuda sm_86a +ptx80 1", {"PTX for sm_86a, but CUDA device 0 is sm_90", NULL}},
      {"nvptx64-nvidia-cuda sm_120 +ptx87 1", {"PTX for sm_120, but", "PTX for sm_120, but"}},
      {"nvptx64-nvidia-cuda sm_80  1", {"a cubin for sm_80, but CUDA device 0 is sm_90", NULL}},
      {"nvptx64-nvidia-cuda sm_90  1", {NULL, "a cubin for sm_90, but CUDA device 1 is sm_86"}},
      {"s390x-linux-gnu z13 +vector 8", {"compiled for s390x-linux-gnu", "compiled for s390x-linux-gnu"}},
      {"nvptx64-nvidia-cuda", {"compiled for nvptx64-nvidia-cuda", "compiled for nvptx64-nvidia-cuda"}},
      {"nvptx64-nvidia-cuda sm_90x +ptx80 1", {"'sm_90x', which is no GPU", "'sm_90x', which is no GPU"}},
      {"nvptx64-nvidia-cuda sm_90aa +ptx80 1", {"'sm_90aa', which is no GPU", "'sm_90aa', which is no GPU"}},
      {"nvptx64-nvidia-cuda sm_12345 +ptx80 1", {"'sm_12345', which is no GPU", "'sm_12345', which is no GPU"}},
      {"nvptx64-nvidia-cuda sm_ +ptx80 1", {"'sm_', which is no GPU", "'sm_', which is no GPU"}},
      {"nvptx64-nvidia-cuda gfx90a 1", {"'gfx90a', which is no GPU", "'gfx90a', which is no GPU"}},
      {SM_86 "; " SM_90A, {NULL, NULL}},
      {SM_90A "; " SM_90, {NULL, "PTX for sm_90a, PTX for sm_90, but CUDA device 1 is sm_86"}},
      {SM_90 "; s390x-linux-gnu z13 +vector 8", {"which are no GPUs", "which are no GPUs"}},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    for (uint32_t ordinal = 0; ordinal < 2; ordinal++) {
      status s = cuda_case_device(ordinal)->check_cpu(cuda_case_device(ordinal), cases[k].cpu);
      if (cases[k].failure[ordinal]) {
        cuda_case_check_failure(s, STATUS_INVALID_FILE, cases[k].failure[ordinal]);
      } else {
        ck_assert_msg(!s, "%s: %s", cases[k].cpu, status_message(s));
      }
    }
  }
}
END_TEST

static void check_refused(const char *text, size_t bytes, const char *message) {
  const gpu_device *g = cuda_case_device(0);
  arena *a = arena_create(NULL);
  rt_code *loaded;
  cuda_case_check_failure(g->load(g, a, (rt_span){(const uint8_t *)text, bytes}, NULL, &loaded), STATUS_INVALID_FILE,
                          message);
  arena_destroy(a);
}

START_TEST(wrong_code_is_refused) {
  static const char ptx[] = ".version 7.0\n.target sm_80\n", empty_object[64] = "\177ELF";
  check_refused(ptx, sizeof ptx - 1, "neither PTX nor a cubin");
  check_refused("", 0, "neither PTX nor a cubin");
  check_refused(ptx, sizeof ptx, "the driver of CUDA 12.4: CUDA_ERROR_INVALID_PTX");
  check_refused(ptx, sizeof ptx, "line 1; fatal: the fake driver has no compiler of PTX");
  check_refused(empty_object, sizeof empty_object, "CUDA_ERROR_INVALID_IMAGE");
  cuda_case_check_end();
}
END_TEST

/* The fake driver cannot compile PTX text, so its error tells which code of the bundle it was given. */
START_TEST(the_best_code_of_a_bundle_is_loaded) {
  static const struct {
    const char *cpus[3], *taken[2]; /* on sm_90 and sm_86 */
  } cases[] = {
      {{SM_80, SM_86, SM_90A}, {"PTX: text_2", "PTX: text_1"}},
      {{SM_90A, SM_80, SM_86}, {"PTX: text_0", "PTX: text_2"}},
      {{SM_90A, SM_90, SM_80}, {"PTX: text_0", "PTX: text_2"}},
      {{SM_80, SM_90, SM_90A}, {"PTX: text_2", "PTX: text_0"}},
      {{"nvptx64-nvidia-cuda sm_86a +ptx71 1", SM_86, SM_90}, {"PTX: text_2", "PTX: text_0"}},
      {{SM_86, "nvptx64-nvidia-cuda sm_86  1", SM_90}, {"PTX: text_2", "PTX: text_1"}},
      {{SM_90, SM_90A, "nvptx64-nvidia-cuda sm_120 +ptx87 1"},
       {"PTX: text_1", "PTX for sm_90, PTX for sm_90a, PTX for sm_120, but CUDA device 1 is sm_86"}},
      {{SM_80, "znver4", SM_90}, {"code for 'znver4', which is no GPU", "code for 'znver4', which is no GPU"}},
  };
  static const char texts[3][16] = {".target text_0", ".target text_1", ".target text_2"};
  arena *a = arena_create(NULL);
  rt_code *loaded;
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    rt_bundled_code codes[3];
    for (int j = 0; j < 3; j++) {
      codes[j] = (rt_bundled_code){cases[k].cpus[j], {texts[j], sizeof texts[j]}};
    }
    rt_span bundle = rt_code_bundle_write(a, 3, codes);
    for (uint32_t ordinal = 0; ordinal < 2; ordinal++) {
      const gpu_device *g = cuda_case_device(ordinal);
      cuda_case_check_failure(g->load(g, a, bundle, NULL, &loaded), STATUS_INVALID_FILE, cases[k].taken[ordinal]);
    }
  }
  arena_destroy(a);
  cuda_case_check_end();
}
END_TEST

/* A bundle comes from a file, which may be damaged: it is refused wherever it is cut off. */
START_TEST(bundles_have_all_their_bytes) {
  const rt_bundled_code codes[] = {{SM_80, cuda_case_code}, {SM_90A, {"rest", 5}}};
  const gpu_device *sm_86 = cuda_case_device(1);
  arena *a = arena_create(NULL);
  rt_code *loaded;
  rt_span bundle = rt_code_bundle_write(a, 2, codes);
  ASSERT_OK(sm_86->load(sm_86, a, bundle, NULL, &loaded));
  ck_assert_ptr_nonnull(sm_86->find(sm_86, a, loaded, "add"));
  for (uint64_t cut = 0; cut < bundle.size; cut++) {
    status s = sm_86->load(sm_86, a, (rt_span){bundle.data, cut}, NULL, &loaded);
    ck_assert_ptr_nonnull(s);
    ck_assert_int_eq(status_get_code(s), STATUS_INVALID_FILE);
    status_free(s);
  }
  arena_destroy(a);
  cuda_case_check_end();
}
END_TEST

START_TEST(a_driver_that_is_too_old) {
  setenv("FAKE_CUDA_FAIL", "cuModuleLoadDataEx:1:222", 1);
  check_refused((const char *)cuda_case_code.data, cuda_case_code.size,
                "CUDA device 0: loading code for sm_90 by the driver of CUDA 12.4: CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
}
END_TEST

START_TEST(kernels_are_found) {
  cuda_program *p = cuda_program_loaded();
  rt_code *loaded;
  ASSERT_OK(p->gpu->load(p->gpu, p->arena, cuda_case_code, NULL, &loaded));
  ck_assert_ptr_null(p->gpu->find(p->gpu, p->arena, loaded, "nothing"));
  p->add = p->gpu->find(p->gpu, p->arena, loaded, "add_unchecked");
  ck_assert_ptr_nonnull(p->add);
  ASSERT_OK(cuda_program_run(p, NULL));
  cuda_program_check_results(p);
  cuda_program_free(p);
  cuda_case_check_end();
}
END_TEST

static void check_launch(const cuda_program *p, gpu_launch l, const char *failure) {
  int64_t factor = 1;
  l.n_buffers = 3;
  l.buffers = (const void *const *)p->memory;
  l.n_args = 1;
  l.args = &factor;
  status s = p->gpu->launch(p->stream, p->add, &l);
  if (failure) {
    cuda_case_check_failure(s, STATUS_UNSUPPORTED, failure);
  } else {
    ASSERT_OK(s);
  }
}

START_TEST(launches_have_limits) {
  cuda_program *p = cuda_program_loaded();
  check_launch(p, (gpu_launch){.blocks = 0, .threads = 1}, NULL);
  check_launch(p, (gpu_launch){.blocks = 2, .threads = 1024, .shared_bytes = 227 << 10}, NULL);
  check_launch(p, (gpu_launch){.blocks = 1, .threads = 0}, "blocks of 0 threads; 1 to 1024 are possible");
  check_launch(p, (gpu_launch){.blocks = 1, .threads = 1025}, "blocks of 1025 threads");
  check_launch(p, (gpu_launch){.blocks = (int64_t)1 << 31, .threads = 1}, "kernel add has 2147483648 blocks");
  check_launch(p, (gpu_launch){.blocks = 1, .threads = 1, .shared_bytes = (227 << 10) + 1},
               "232449 bytes of shared memory; up to 232448 are possible");
  ASSERT_OK(p->device->await(p->stream, NULL));
  cuda_program_free(p);
  cuda_case_check_end();
}
END_TEST

/* What a kernel declares itself is not left for launches. */
START_TEST(declared_shared_memory_counts) {
  setenv("FAKE_CUDA_DECLARED", "1000", 1);
  cuda_program *p = cuda_program_loaded();
  check_launch(p, (gpu_launch){.blocks = 1, .threads = 1, .shared_bytes = (227 << 10) - 1000}, NULL);
  check_launch(p, (gpu_launch){.blocks = 1, .threads = 1, .shared_bytes = (227 << 10) - 999},
               "231449 bytes of shared memory; up to 231448 are possible");
  ASSERT_OK(p->device->await(p->stream, NULL));
  cuda_program_free(p);
  cuda_case_check_end();
}
END_TEST

/* --- the declarations --- */

/* Compiles cuda_functions.def after CUDA's own header, with which each row must agree.  Older headers lack
 * some of the constants. */
START_TEST(declarations_are_those_of_cuda) {
  static const char source[] =
      "#include <cuda.h>\n"
      "#if CUDA_VERSION >= 13000\n"
      "#define KIND(t) _Generic((t)0, int: 1, unsigned: 1, unsigned long long: 2, default: 3)\n"
      "#define CUDA_TYPE(name, type) _Static_assert(sizeof(name) == sizeof(type) && KIND(name) == KIND(type), #name);\n"
      "#define CUDA_CONSTANT(name, value) _Static_assert(name == value, #name);\n"
      "#define CUDA_FUNCTION(name, parameters) CUresult (*const check_##name) parameters = name;\n"
      "#include \"backend_gpu/runtime/cuda_functions.def\"\n"
      "#endif\n";
  const char *home = getenv("CUDA_HOME");
  char path[500], options[3000];
  snprintf(path, sizeof path, "%s/include/cuda.h", home && *home ? home : "/usr/local/cuda");
  if (access(path, R_OK) == 0) {
    *strrchr(path, '/') = '\0';
    snprintf(options, sizeof options, "-std=c11 -Werror -fsyntax-only -I%s -x c - <<'END'\n%s\nEND", path, source);
    cuda_case_compile(options);
  }
}
END_TEST

/* The toolkit has a library that exports all functions of the driver, each of which returns CUDA_ERROR_STUB_LIBRARY. */
START_TEST(functions_are_those_of_cuda) {
  uint32_t n;
  const char *home = getenv("CUDA_HOME");
  char path[500];
  snprintf(path, sizeof path, "%s/lib64/stubs/libcuda.so", home && *home ? home : "/usr/local/cuda");
  if (access(path, R_OK) == 0) {
    setenv("ONNX_XLA_CUDA_DRIVER", path, 1);
    cuda_case_check_failure(gpu_cuda_count(&n), STATUS_UNSUPPORTED, "starting the driver of CUDA: CUDA's error 34");
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("cuda");
  tcase_add_unchecked_fixture(t, cuda_case_setup, cuda_case_teardown);
  tcase_set_timeout(t, 120);
  tcase_add_test(t, devices_are_described);
  tcase_add_test(t, a_device_that_is_not_there);
  tcase_add_test(t, no_device_at_all);
  tcase_add_test(t, no_driver);
  tcase_add_test(t, programs_run);
  tcase_add_test(t, any_thread_may_call);
  tcase_add_test(t, memory_runs_out);
  tcase_add_test(t, free_memory_is_unknown);
  tcase_add_test(t, launches_leave_no_memory_behind);
  tcase_add_test(t, waits_end_with_the_budget);
  tcase_add_test(t, recordings_that_break);
  tcase_add_test(t, copies_of_the_host_are_not_recorded);
  tcase_add_test(t, events_have_times);
  tcase_add_test(t, peaks_are_those_of_data_sheets);
  tcase_add_test(t, code_fits_the_device);
  tcase_add_test(t, wrong_code_is_refused);
  tcase_add_test(t, the_best_code_of_a_bundle_is_loaded);
  tcase_add_test(t, bundles_have_all_their_bytes);
  tcase_add_test(t, a_driver_that_is_too_old);
  tcase_add_test(t, kernels_are_found);
  tcase_add_test(t, launches_have_limits);
  tcase_add_test(t, declared_shared_memory_counts);
  tcase_add_test(t, declarations_are_those_of_cuda);
  tcase_add_test(t, functions_are_those_of_cuda);
  return run_suite("cuda", t);
}
