/* check_run_memory.c - counters of a run (RT_COUNTERS): they are 0 when a run begins, also after a run that failed and
 * left other numbers in them, and only targets with a device have them. */
#include <check.h>
#include <string.h>

#include "runtime/exec/executable.h"
#include "runtime/host/emulated_device.h"
#include "tests/suite.h"

enum { COUNTERS = 3, FAILS = 1 /* the seed of runs that fail */ };

/* Stores in the result how many counters were not 0.  Makes each 0 again, unless the run fails. */
static status count(const rt_thunk *t, rt_run *r) {
  int32_t *result = rt_address(r, &t->buffers[0]), *counters = rt_address(r, &t->buffers[1]), n = 0;
  for (int k = 0; k < COUNTERS; k++) {
    n += counters[k] != 0;
    counters[k] = r->seed == FAILS;
  }
  CHECK_THAT(r->seed != FAILS, STATUS_INTERNAL, "as the test wants it");
  *result = n;
  return NULL;
}

static status run_on_device(const rt_thunk *t, rt_run *r) { return rt_emulated_submit_thunk(t, r, count); }

static rt_device device;
static const rt_thunk_kind kind = {.name = "count", .run = run_on_device};
static const rt_target target = {.abi = RT_ABI, .name = "counting", .kinds = &kind, .n_kinds = 1, .device = &device},
                       without_device = {.abi = RT_ABI, .name = "counting", .kinds = &kind, .n_kinds = 1};

static const rt_size extents[] = {COUNTERS}, strides[] = {1}, one[] = {1};
static rt_buffer buffers[] = {
    {.space = RT_RESULT, .type = DTYPE_S32, .rank = 1, .extents = one, .strides = strides},
    {.space = RT_COUNTERS, .type = DTYPE_S32, .rank = 1, .kept = true, .extents = extents, .strides = strides}};

static rt_executable *make(const rt_target *t, status *failed) {
  static rt_thunk thunk = {.kind = "count", .operation = "count", .n_buffers = 2, .buffers = buffers};
  static rt_io result = {.name = "n"};
  static rt_program p = {
      .target = "counting", .cpu = "", .n_results = 1, .results = &result, .body = {.n = 1, .thunks = &thunk}};
  rt_executable *e = NULL;
  result.shape = shape_make(DTYPE_S32, 1, (dim[]){1});
  device = rt_emulated_device();
  *failed = rt_executable_create(&p, t, NULL, &e);
  return e;
}

START_TEST(counters_are_zero) {
  static const uint64_t seeds[] = {0, 0, FAILS, 0, 0, FAILS, FAILS, 0};
  status failed;
  rt_executable *e = make(&target, &failed);
  ASSERT_OK(failed);
  for (size_t k = 0; k < sizeof seeds / sizeof *seeds; k++) {
    int32_t n = -1;
    const rt_run_options options = {.seed = seeds[k]};
    failed = rt_execute(rt_executable_binding(e), &options, NULL, (void *const[]){&n});
    ck_assert((failed != NULL) == (seeds[k] == FAILS));
    ck_assert_int_eq(n, failed ? -1 : 0);
    status_free(failed);
  }
  rt_executable_destroy(e);
}
END_TEST

START_TEST(host_memory_has_none) {
  status failed;
  ck_assert_ptr_null(make(&without_device, &failed));
  ck_assert_int_eq(status_get_code(failed), STATUS_INVALID_FILE);
  ck_assert_msg(strstr(status_message(failed), "target counting has no counters"), "%s", status_message(failed));
  status_free(failed);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("run-memory");
  tcase_add_test(t, counters_are_zero);
  tcase_add_test(t, host_memory_has_none);
  return run_suite("run-memory", t);
}
