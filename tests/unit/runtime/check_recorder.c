/* check_recorder.c - runs on a device are recorded when addresses come again, and replayed; a recording is never used
 * for other sizes, bindings or addresses, and what the host decides is not in it. */
#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backend_ref/target.h"
#include "runtime/exec/binding.h"
#include "runtime/exec/recorder.h"
#include "runtime/host/emulated_device.h"
#include "tests/suite.h"
#include "tests/unit/hlo/hlo_case.h"

/* --- a device that counts, for the reference target's thunks --- */

static rt_device emulated, device;
static _Atomic int n_recorded, n_replayed, n_released, n_calls;

static status record_end(rt_stream *s, rt_recording **out) {
  n_recorded++;
  return emulated.record_end(s, out);
}

static status replay(const rt_run *r, rt_recording *recording) {
  n_replayed++;
  return emulated.replay(r, recording);
}

static void release_recording(rt_recording *recording) {
  n_released++;
  emulated.release_recording(recording);
}

static status run_on_device(const rt_thunk *t, rt_run *r) {
  n_calls++;
  return rt_emulated_submit_thunk(t, r, ref_target.kinds[0].run);
}

static bool is_recordable(const rt_thunk *t, const rt_run *r) {
  (void)t, (void)r;
  return true;
}

static rt_thunk_kind kind;
static const rt_target target = {.abi = RT_ABI, .name = "ref", .kinds = &kind, .n_kinds = 1, .device = &device};
static arena *memory;

static void setup(void) {
  memory = arena_create(NULL);
  kind = ref_target.kinds[0];
  kind.run = run_on_device;
  kind.is_recordable = is_recordable;
  emulated = device = rt_emulated_device();
  device.record_end = record_end;
  device.replay = replay;
  device.release_recording = release_recording;
  rt_emulated_set_delay(100);
}

static void teardown(void) { arena_destroy(memory); }

static rt_executable *make(const char *text) {
  hlo_module *m;
  rt_program *p;
  rt_executable *e;
  rt_report report = {0};
  rt_compile_options options = {.skip_passes = NULL};
  ASSERT_OK(hlo_parse(memory, text, strlen(text), NULL, &m));
  ASSERT_OK(ref_compiler.compile(m, &options, memory, &p, &report));
  ASSERT_OK(rt_executable_create(p, &target, NULL, &e));
  return e;
}

/* --- one array, transposed, reversed and doubled; its layout depends on both sizes --- */

#define TURN                                                                                              \
  "onnx-xla hlo 1\nmodule \"m\" {\nentry main(%x: f32[n,m]) {\n"                                          \
  "  %t = transpose(%x) {permutation=[1,0]} : f32[m,n]\n  %r = reverse(%t) {dimensions=[0]} : f32[m,n]\n" \
  "  %d = add(%r, %r) : f32[m,n]\n  return %d\n}\n}\n"

enum { MOST = 60 };

static void turn(const rt_binding *b, int n, int m, float first) {
  float x[MOST], out[MOST];
  for (int k = 0; k < n * m; k++) {
    x[k] = first + (float)k;
  }
  memset(out, 0, sizeof out);
  ASSERT_OK(rt_execute(b, NULL, (const void *const[]){x}, (void *const[]){out}));
  for (int k = 0; k < n * m; k++) {
    int row = k / n, column = k % n;
    ck_assert_float_eq(out[k], 2 * (first + (float)(column * m + m - 1 - row)));
  }
}

static rt_binding *bind(const rt_executable *e, int n, int m) {
  rt_binding *b;
  ASSERT_OK(rt_bind(e, (shape[]){shape_make(DTYPE_F32, 2, (dim[]){n, m})}, &b));
  return b;
}

START_TEST(the_second_run_is_recorded) {
  rt_executable *e = make(TURN);
  rt_binding *b = bind(e, 4, 5);
  for (int run = 0; run < 5; run++) {
    turn(b, 4, 5, (float)(10 * run));
    ck_assert_int_eq(n_recorded, run >= 1);
    ck_assert_int_eq(n_replayed, run);
    ck_assert_int_eq(n_calls, run >= 1 ? 6 : 3);
  }
  rt_binding_destroy(b);
  rt_executable_destroy(e);
  ck_assert_int_eq(n_released, 1);
}
END_TEST

/* The same addresses occur again with other sizes, with new bindings after others were destroyed, and with
 * larger arrays, which move. */
START_TEST(recordings_are_of_one_binding) {
  static const int sizes[][2] = {{3, 5}, {5, 3}, {1, 1}, {15, 1}, {6, 10}, {10, 6}, {2, 7}};
  enum { N = sizeof sizes / sizeof *sizes };
  rt_executable *e = make(TURN);
  for (int round = 0; round < 3; round++) {
    rt_binding *b[N];
    for (int k = 0; k < N; k++) {
      b[k] = bind(e, sizes[k][0], sizes[k][1]);
    }
    for (int k = 0; k < 6 * N; k++) {
      int at = k < 3 * N ? k % N : k / 2 % N; /* more bindings in turn than there are recorders, then each of
                                                 them twice */
      turn(b[at], sizes[at][0], sizes[at][1], (float)k);
    }
    for (int k = 0; k < N; k++) {
      rt_binding_destroy(b[k]);
    }
  }
  rt_executable_destroy(e);
  ck_assert_int_gt(n_recorded, N);
  ck_assert_int_eq(n_released, n_recorded);
}
END_TEST

/* A new binding may have its thunks at the addresses where a destroyed one had them. */
START_TEST(bindings_that_are_gone) {
  rt_executable *e = make(TURN);
  for (int k = 0; k < 20; k++) {
    int n = k % 2 ? 3 : 5, m = 8 - n;
    rt_binding *b = bind(e, n, m);
    for (int run = 0; run < 3; run++) {
      turn(b, n, m, (float)run);
    }
    rt_binding_destroy(b);
  }
  rt_executable_destroy(e);
}
END_TEST

/* Two thunks that need no arena: if the arena were replaced by a larger one, all recordings would be
 * dropped. */
#define TWO                                                                    \
  "onnx-xla hlo 1\nmodule \"m\" {\nentry main(%x: f32[n]) {\n"                 \
  "  %r = reverse(%x) {dimensions=[0]} : f32[n]\n  %d = negate(%x) : f32[n]\n" \
  "  return %r, %d\n}\n}\n"

enum { FEW = 10, MANY = 5000 };

static void negate(const rt_binding *b, int n, float first) {
  float x[MANY], reversed[MANY], negated[MANY];
  for (int k = 0; k < n; k++) {
    x[k] = first + (float)k;
  }
  ASSERT_OK(rt_execute(b, NULL, (const void *const[]){x}, (void *const[]){reversed, negated}));
  for (int k = 0; k < n; k++) {
    ck_assert(reversed[k] == first + (float)(n - 1 - k) && negated[k] == -x[k]);
  }
}

/* Larger arrays need other memory, which smaller arrays then use, too. */
START_TEST(arrays_that_move) {
  rt_executable *e = make(TWO);
  rt_binding *few, *many;
  ASSERT_OK(rt_bind(e, (shape[]){shape_make(DTYPE_F32, 1, (dim[]){FEW})}, &few));
  ASSERT_OK(rt_bind(e, (shape[]){shape_make(DTYPE_F32, 1, (dim[]){MANY})}, &many));
  for (int k = 0; k < 7; k++) {
    negate(k == 3 ? many : few, k == 3 ? MANY : FEW, (float)k);
  }
  ck_assert_int_eq(n_recorded, 2);
  ck_assert_int_eq(n_released, 0);
  rt_binding_destroy(few);
  rt_binding_destroy(many);
  rt_executable_destroy(e);
}
END_TEST

/* Returns whether a run has the recordings of runs with the addresses places[0] to places[4]: of the arena, of two
 * parameters and of two results.  Address number `other` is another one, none if it is -1. */
static bool finds_the_same(int other) {
  static char places[6];
  rt_recordings *all;
  const rt_program p = {.n_params = 2, .n_results = 2};
  const rt_binding b = {.program = &p, .number = 7};
  struct rt_recorder *found[2];
  ASSERT_OK(rt_recordings_create(&device, &all));
  for (int k = 0; k < 2; k++) {
    const void *at[5];
    for (int j = 0; j < 5; j++) {
      at[j] = &places[k && j == other ? 5 : j];
    }
    void *results[] = {(void *)(uintptr_t)at[3], (void *)(uintptr_t)at[4]};
    rt_run r = {.arena = (void *)(uintptr_t)at[0], .params = at + 1, .results = results};
    ASSERT_OK(rt_recordings_find(all, &b, &r));
    ASSERT_OK(rt_recordings_find(all, &b, &r)); /* the first run with a set of addresses has no recordings */
    found[k] = r.recorder;
  }
  rt_recordings_destroy(all);
  ck_assert(found[0] && found[1]);
  return found[0] == found[1];
}

START_TEST(each_address_counts) {
  ck_assert(finds_the_same(-1));
  for (int other = 0; other < 5; other++) {
    ck_assert_msg(!finds_the_same(other), "address %d may be another one", other);
  }
}
END_TEST

static void *turn_often(void *data) {
  for (int k = 0; k < 20; k++) {
    turn(data, 7, 3, (float)k);
  }
  return NULL;
}

START_TEST(threads_have_recordings_of_their_own) {
  rt_executable *e = make(TURN);
  rt_binding *b = bind(e, 7, 3);
  pthread_t threads[4];
  for (int k = 0; k < 4; k++) {
    ck_assert_int_eq(pthread_create(&threads[k], NULL, turn_often, b), 0);
  }
  for (int k = 0; k < 4; k++) {
    pthread_join(threads[k], NULL);
  }
  rt_binding_destroy(b);
  rt_executable_destroy(e);
  ck_assert_int_gt(n_replayed, 0);
}
END_TEST

/* --- a loop with a check in it: the host decides the number of iterations, and makes the check --- */

static const char loop[] =
    "onnx-xla hlo 1\nmodule \"m\" {\n"
    "computation go_on(%i: s64[], %a: f32[3], %end: s64[]) {\n"
    "  %p = compare(%i, %end) {comparison=lt} : pred[]\n  return %p\n}\n"
    "computation step(%i: s64[], %a: f32[3], %end: s64[]) {\n"
    "  %o = constant() {value=s64[] 1} : s64[]\n  %j = add(%i, %o) : s64[]\n"
    "  %r = reverse(%a) {dimensions=[0]} : f32[3]\n  %b = add(%a, %r) : f32[3]\n  return %j, %b, %end\n}\n"
    "entry main(%end: s64[], %x: f32[3]) {\n"
    "  %z = constant() {value=s64[] 0} : s64[]\n"
    "  %j, %a, %e = while(%z, %x, %end) {computations=[go_on, step]} : s64[], f32[3], s64[]\n"
    "  return %a\n}\n}\n";

START_TEST(steps_of_loops_are_replayed) {
  rt_executable *e = make(loop);
  for (int64_t steps = 0; steps < 6; steps++) {
    float x[] = {1, 2, 5 + (float)steps}, out[3];
    ASSERT_OK(rt_execute(rt_executable_binding(e), NULL, (const void *const[]){&steps, x}, (void *const[]){out}));
    float outer[2] = {x[0], x[2]}, middle = x[1];
    for (int64_t k = 0; k < steps; k++) {
      outer[0] = outer[1] = outer[0] + outer[1];
      middle *= 2;
    }
    ck_assert(out[0] == outer[0] && out[1] == middle && out[2] == outer[1]);
  }
  ck_assert_int_gt(n_replayed, 2 + 3 + 4 + 5);
  rt_executable_destroy(e);
}
END_TEST

/* A loop with a known number of iterations is one recording, and its condition is not computed. */
START_TEST(counted_loops_are_recorded) {
  static const char counted[] =
      "onnx-xla hlo 1\nmodule \"m\" {\n"
      "computation go_on(%i: s64[], %a: f32[3]) {\n  %e = constant() {value=s64[] 6} : s64[]\n"
      "  %p = compare(%i, %e) {comparison=lt} : pred[]\n  return %p\n}\n"
      "computation step(%i: s64[], %a: f32[3]) {\n  %o = constant() {value=s64[] 1} : s64[]\n"
      "  %j = add(%i, %o) : s64[]\n  %b = add(%a, %a) : f32[3]\n  return %j, %b\n}\n"
      "entry main(%x: f32[3]) {\n  %z = constant() {value=s64[] 0} : s64[]\n"
      "  %j, %a = while(%z, %x) {computations=[go_on, step]} : s64[], f32[3]\n  return %a, %j\n}\n}\n";
  rt_executable *e = make(counted);
  for (int run = 0; run < 4; run++) {
    float x[] = {1, 2, (float)run}, out[3];
    int64_t count;
    ASSERT_OK(rt_execute(rt_executable_binding(e), NULL, (const void *const[]){x}, (void *const[]){out, &count}));
    ck_assert(out[0] == 64 && out[1] == 128 && out[2] == (float)(64 * run) && count == 6);
  }
  ck_assert_int_eq(n_calls, 2 * 6 * 2); /* two thunks in each of 6 iterations, in a plain run and while
                                           recording */
  ck_assert(n_recorded == 1 && n_replayed == 3);
  rt_executable_destroy(e);
}
END_TEST

/* --- failures --- */

static status no_memory(rt_stream *s) {
  (void)s;
  return status_error(STATUS_RESOURCE, "no memory for a recording");
}

START_TEST(a_recording_that_fails) {
  rt_executable *e = make(TURN);
  rt_binding *b = bind(e, 4, 5);
  float x[20] = {0}, out[20];
  turn(b, 4, 5, 1);
  device.record_begin = no_memory;
  status failed = rt_execute(b, NULL, (const void *const[]){x}, (void *const[]){out});
  ck_assert(failed && strstr(status_message(failed), "no memory for a recording"));
  status_free(failed);
  device.record_begin = emulated.record_begin;
  turn(b, 4, 5, 2);
  turn(b, 4, 5, 3);
  rt_binding_destroy(b);
  rt_executable_destroy(e);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("recorder");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_test(t, the_second_run_is_recorded);
  tcase_add_test(t, recordings_are_of_one_binding);
  tcase_add_test(t, bindings_that_are_gone);
  tcase_add_test(t, arrays_that_move);
  tcase_add_test(t, each_address_counts);
  tcase_add_test(t, threads_have_recordings_of_their_own);
  tcase_add_test(t, steps_of_loops_are_replayed);
  tcase_add_test(t, counted_loops_are_recorded);
  tcase_add_test(t, a_recording_that_fails);
  return run_suite("recorder", t);
}
