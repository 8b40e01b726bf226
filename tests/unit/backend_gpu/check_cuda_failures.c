/* check_cuda_failures.c - the CUDA platform when the driver fails: each call in turn, work of streams, lost devices,
 * forks. The driver is module_fake_cuda.c. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend_gpu/runtime/cuda_driver.h"
#include "tests/suite.h"
#include "tests/unit/backend_gpu/cuda_case.h"

/* Runs the function in a child process with FAKE_CUDA_FAIL set to `fail`.  Returns the function's result,
 * which must be at most 255. */
static int in_child(int (*function)(const char *data), const char *fail, const char *data) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    setenv("FAKE_CUDA_FAIL", fail, 1);
    exit(function(data));
  }
  int result;
  ck_assert_int_eq(waitpid(child, &result, 0), child);
  ck_assert_msg(WIFEXITED(result), "FAKE_CUDA_FAIL=%s: a signal %d", fail, WTERMSIG(result));
  return WEXITSTATUS(result);
}

static int *shared_calls; /* in memory that children share, since an exit status is at most 255 */

static int count_calls(const char *data) {
  (void)data;
  status failed = cuda_program_do(cuda_case_device(0));
  *shared_calls = (int)cuda_case_ask("fake_cuda_calls");
  return failed != NULL;
}

static int complain(const char *text, status s) {
  fprintf(stderr, "%s: %s: %s\n", getenv("FAKE_CUDA_FAIL"), text, status_message(s));
  return 1;
}

/* Runs programs one after the other.  A call of the driver fails in one of them, and that run or the next one
 * must report the error of this name.  After that all runs must succeed and leave nothing allocated, unless
 * the device is lost.  Returns 0 if all this is so. */
static int run_with_failure(const char *name) {
  bool told = false;
  status last = NULL;
  for (int k = 0; k < 4; k++) {
    status_free(last);
    last = cuda_program_do(cuda_case_device(0));
    told |= last != NULL;
    if (last && !strstr(status_message(last), name)) {
      return complain("the error is not named", last);
    }
  }
  bool lost = last && strstr(status_message(last), "since then the device is lost to this process");
  if (last && !lost) {
    return complain("neither works nor is lost", last);
  }
  if (!told || cuda_case_ask("fake_cuda_breaches") || (!lost && cuda_case_ask("fake_cuda_live"))) {
    return complain("not told, rules broken, or something left over", last);
  }
  status_free(last);
  return 0;
}

/* The number of the error and its name. */
static const struct {
  int number;
  const char *name;
} errors[] = {{CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
              {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
              {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"}};

START_TEST(any_call_may_fail) {
  char fail[100];
  shared_calls = mmap(NULL, sizeof *shared_calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ck_assert_ptr_ne(shared_calls, MAP_FAILED);
  ck_assert_int_eq(in_child(count_calls, "", NULL), 0);
  ck_assert_int_gt(*shared_calls, 50);
  for (int k = 1; k <= *shared_calls; k++) {
    snprintf(fail, sizeof fail, "any:%d:%d", k, errors[_i].number);
    ck_assert_msg(in_child(run_with_failure, fail, errors[_i].name) == 0, "FAKE_CUDA_FAIL=%s", fail);
  }
}
END_TEST

/* Work of a stream fails after the call that queued it has returned, and the device is then lost. */
START_TEST(work_may_fail) {
  char fail[100];
  for (int k = 1; k <= 10; k++) {
    snprintf(fail, sizeof fail, "work:%d:700", k);
    ck_assert_msg(in_child(run_with_failure, fail, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0, "FAKE_CUDA_FAIL=%s", fail);
  }
}
END_TEST

START_TEST(unexplained_errors_have_numbers) {
  setenv("FAKE_CUDA_FAIL", "cuMemAlloc_v2:1:12345,cuMemAlloc_v2:2:1,cuGetErrorName:2:1", 1);
  cuda_case_check_failure(cuda_program_do(cuda_case_device(0)), STATUS_INTERNAL,
                          "allocating 4000 bytes: CUDA's error 12345, which");
  cuda_case_check_failure(cuda_program_do(cuda_case_device(0)), STATUS_INTERNAL,
                          "allocating 4000 bytes: CUDA's error 1, which");
  ASSERT_OK(cuda_program_do(cuda_case_device(0)));
  cuda_case_check_end();
}
END_TEST

/* A device that could not be opened is not lost, even if the error is one by which an open device would be
 * lost. */
START_TEST(opening_can_be_repeated) {
  setenv("FAKE_CUDA_FAIL", "cuDeviceGetAttribute:1:999,cuDevicePrimaryCtxRetain:1:2", 1);
  cuda_case_check_failure(cuda_program_do(cuda_case_device(0)), STATUS_INTERNAL, "CUDA_ERROR_UNKNOWN");
  cuda_case_check_failure(cuda_program_do(cuda_case_device(0)), STATUS_RESOURCE,
                          "opening its primary context: CUDA_ERROR_OUT_OF_MEMORY");
  ASSERT_OK(cuda_program_do(cuda_case_device(0)));
  cuda_case_check_end();
}
END_TEST

/* All functions of a lost device report the error by which it was lost; those that return no status do
 * nothing. */
START_TEST(a_lost_device_says_so) {
  setenv("FAKE_CUDA_FAIL", "work:3:719", 1);
  const char *text = "CUDA_ERROR_LAUNCH_FAILED (as the fake driver was told); since then the device is lost";
  cuda_program *p = cuda_program_loaded();
  rt_stream *stream;
  rt_code *loaded;
  void *memory;
  cuda_case_check_failure(cuda_program_run(p, NULL), STATUS_INTERNAL, "CUDA_ERROR_LAUNCH_FAILED");
  cuda_case_check_failure(cuda_program_launch(p, 1), STATUS_INTERNAL, text);
  cuda_case_check_failure(p->device->copy(p->stream, RT_UPLOAD, p->memory[0], p->x, CUDA_CASE_BYTES), STATUS_INTERNAL,
                          text);
  cuda_case_check_failure(p->device->await(p->stream, NULL), STATUS_INTERNAL, text);
  cuda_case_check_failure(p->device->allocate(p->device, 1, &memory), STATUS_INTERNAL, text);
  cuda_case_check_failure(p->device->create_stream(p->device, &stream), STATUS_INTERNAL, text);
  cuda_case_check_failure(p->gpu->check_cpu(p->gpu, "nvptx64-nvidia-cuda sm_80 +ptx70 1"), STATUS_INTERNAL, text);
  cuda_case_check_failure(p->gpu->load(p->gpu, p->arena, cuda_case_code, NULL, &loaded), STATUS_INTERNAL, text);
  cuda_program_free(p);
  ck_assert_uint_eq(cuda_case_ask("fake_cuda_breaches"), 0);
}
END_TEST

/* A device is also lost if a function fails that cannot report it (here the release of memory), but the work
 * of its streams goes on.  Once a wait has reported that the device is lost, nothing writes to host memory
 * any more. */
START_TEST(a_lost_device_may_still_work) {
  setenv("FAKE_CUDA_FAIL", "cuMemFree_v2:1:1", 1);
  cuda_program *p = cuda_program_loaded();
  cuda_program_linger(p, 1);
  p->device->release(p->device, p->memory[1], CUDA_CASE_BYTES);
  cuda_case_check_failure(p->device->await(p->stream, &(mem_budget){.limit = 0}), STATUS_INTERNAL,
                          "freeing memory: CUDA_ERROR_INVALID_VALUE (as the fake driver was told); since then");
  ck_assert_int_eq(p->sums[1], 0);
  cuda_program_free(p);
  ck_assert_uint_eq(cuda_case_ask("fake_cuda_breaches"), 0);
}
END_TEST

/* --- forks --- */

static cuda_program *of_parent;

static int use_in_child(const char *data) {
  (void)data;
  uint64_t calls = cuda_case_ask("fake_cuda_calls");
  gpu_cuda_info info;
  cuda_case_check_failure(cuda_program_launch(of_parent, 1), STATUS_UNSUPPORTED,
                          "has used CUDA and then forked this one");
  cuda_case_check_failure(cuda_program_do(cuda_case_device(1)), STATUS_UNSUPPORTED,
                          "has used CUDA and then forked this one");
  cuda_case_check_failure(gpu_cuda_describe(0, &info), STATUS_UNSUPPORTED, "has used CUDA and then forked this one");
  cuda_program_free(of_parent);
  return cuda_case_ask("fake_cuda_calls") != calls;
}

START_TEST(children_are_told) {
  of_parent = cuda_program_loaded();
  ck_assert_int_eq(in_child(use_in_child, "", NULL), 0);
  ASSERT_OK(cuda_program_run(of_parent, NULL));
  cuda_program_check_results(of_parent);
  cuda_program_free(of_parent);
  cuda_case_check_end();
}
END_TEST

int main(void) {
  TCase *t = tcase_create("cuda failures");
  tcase_add_unchecked_fixture(t, cuda_case_setup, cuda_case_teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, any_call_may_fail, 0, sizeof errors / sizeof *errors);
  tcase_add_test(t, work_may_fail);
  tcase_add_test(t, unexplained_errors_have_numbers);
  tcase_add_test(t, opening_can_be_repeated);
  tcase_add_test(t, a_lost_device_says_so);
  tcase_add_test(t, a_lost_device_may_still_work);
  tcase_add_test(t, children_are_told);
  return run_suite("cuda failures", t);
}
