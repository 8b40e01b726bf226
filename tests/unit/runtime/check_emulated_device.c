/* check_emulated_device.c - an emulated device does its work in order and late; the host cannot access its
 * memory; copies whose addresses do not fit their direction, failures and cancelled waits are reported. */
#include <check.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/memory.h"
#include "runtime/host/emulated_device.h"
#include "tests/suite.h"

static rt_device device;
static rt_stream *stream;

static void setup(void) {
  device = rt_emulated_device();
  rt_emulated_set_delay(300);
  ASSERT_OK(device.create_stream(&device, &stream));
}

static void teardown(void) { device.destroy_stream(stream); }

static void *allocate(size_t bytes) {
  void *memory;
  ASSERT_OK(device.allocate(&device, bytes, &memory));
  ck_assert_uint_eq((uintptr_t)memory % 256, 0);
  return memory;
}

static void check_failure(status s, status_code code, const char *text) {
  ck_assert_ptr_nonnull(s);
  ck_assert_int_eq(status_get_code(s), code);
  ck_assert_msg(strstr(status_message(s), text) != NULL, "%s", status_message(s));
  status_free(s);
}

START_TEST(copies_in_order) {
  enum { N = 1000 };
  int in[N], out[N];
  int *a = allocate(sizeof in), *b = allocate(sizeof in);
  for (int k = 0; k < N; k++) {
    in[k] = k * 7;
  }
  memset(out, 0, sizeof out);
  ASSERT_OK(device.copy(stream, RT_UPLOAD, a, in, sizeof in));
  ASSERT_OK(device.copy(stream, RT_ON_DEVICE, b, a, sizeof in));
  ASSERT_OK(device.copy(stream, RT_DOWNLOAD, out, b, sizeof in));
  ASSERT_OK(device.await(stream, NULL));
  ck_assert_mem_eq(in, out, sizeof in);
  device.release(&device, a, sizeof in);
  device.release(&device, b, sizeof in);
}
END_TEST

/* New memory is NaN. */
START_TEST(new_memory_is_poisoned) {
  float out[8];
  float *a = allocate(sizeof out);
  ASSERT_OK(device.copy(stream, RT_DOWNLOAD, out, a, sizeof out));
  ASSERT_OK(device.await(stream, NULL));
  for (int k = 0; k < 8; k++) {
    ck_assert(out[k] != out[k]);
  }
  device.release(&device, a, sizeof out);
}
END_TEST

START_TEST(the_host_cannot_read) {
  volatile int *a = allocate(sizeof *a);
  (void)*a;
}
END_TEST

START_TEST(knows_its_memory) {
  char here[16];
  char *a = allocate(5000), *b = allocate(1);
  ck_assert(rt_emulated_owns(a, 5000));
  ck_assert(rt_emulated_owns(a + 100, 10));
  ck_assert(rt_emulated_owns(here, 0));
  ck_assert(!rt_emulated_owns(here, 1));
  ck_assert(!rt_emulated_owns(a, (size_t)(b - a) + 1));
  device.release(&device, a, 5000);
  ck_assert(!rt_emulated_owns(a, 1));
  device.release(&device, b, 1);
}
END_TEST

START_TEST(wrong_copies_fail) {
  char here[16];
  char *a = allocate(16);
  ASSERT_OK(device.copy(stream, RT_UPLOAD, here, here, 16));
  check_failure(device.await(stream, NULL), STATUS_INTERNAL, "no upload");
  ASSERT_OK(device.copy(stream, RT_DOWNLOAD, a, here, 16));
  check_failure(device.await(stream, NULL), STATUS_INTERNAL, "no download");
  ASSERT_OK(device.copy(stream, RT_ON_DEVICE, a, here, 16));
  check_failure(device.await(stream, NULL), STATUS_INTERNAL, "no copy on the device");
  ASSERT_OK(device.await(stream, NULL));
  device.release(&device, a, 16);
}
END_TEST

static int calls;

static status go_right(void *data, rt_run *run) {
  (void)data, (void)run;
  calls++;
  return NULL;
}

static status go_wrong(void *data, rt_run *run) {
  (void)data, (void)run;
  return status_error(STATUS_UNSUPPORTED, "as it was meant");
}

static status run_out(void *data, rt_run *run) {
  (void)data, (void)run;
  guard_fail("out of memory");
}

/* Work after a failure is not done until a wait has reported the failure. */
START_TEST(a_failure_stops_the_stream) {
  ASSERT_OK(rt_emulated_submit(stream, NULL, go_wrong, malloc(1)));
  ASSERT_OK(rt_emulated_submit(stream, NULL, go_right, malloc(1)));
  check_failure(device.await(stream, NULL), STATUS_UNSUPPORTED, "as it was meant");
  ck_assert_int_eq(calls, 0);
  ASSERT_OK(rt_emulated_submit(stream, NULL, go_right, malloc(1)));
  ASSERT_OK(device.await(stream, NULL));
  ck_assert_int_eq(calls, 1);
  ASSERT_OK(rt_emulated_submit(stream, NULL, run_out, malloc(1)));
  check_failure(device.await(stream, NULL), STATUS_RESOURCE, "out of memory");
}
END_TEST

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static status wait_for_test(void *data, rt_run *run) {
  (void)data, (void)run;
  pthread_mutex_lock(&held);
  pthread_mutex_unlock(&held);
  return NULL;
}

START_TEST(a_wait_can_be_cancelled) {
  mem_budget budget = {.cancel = true};
  pthread_mutex_lock(&held);
  ASSERT_OK(rt_emulated_submit(stream, NULL, wait_for_test, malloc(1)));
  status s = device.await(stream, &budget);
  pthread_mutex_unlock(&held);
  ck_assert_ptr_nonnull(s);
  status_free(s);
  ASSERT_OK(device.await(stream, NULL));
}
END_TEST

/* Recorded work is done at each replay, and gets the rt_run of that replay. */
static int seeds[3];

static status note_seed(void *data, rt_run *run) {
  (void)data;
  seeds[calls++] = (int)run->seed;
  return NULL;
}

START_TEST(recordings_are_replayed) {
  rt_recording *recording;
  rt_run run = {.stream = stream, .seed = 1};
  ASSERT_OK(device.record_begin(stream));
  ASSERT_OK(rt_emulated_submit(stream, &run, note_seed, malloc(1)));
  ASSERT_OK(device.record_end(stream, &recording));
  ASSERT_OK(device.await(stream, NULL));
  ck_assert_int_eq(calls, 0);
  for (run.seed = 5; run.seed < 7; run.seed++) {
    ASSERT_OK(device.replay(&run, recording));
  }
  ASSERT_OK(device.await(stream, NULL));
  ck_assert(calls == 2 && seeds[0] == 5 && seeds[1] == 6);
  device.release_recording(recording);
}
END_TEST

START_TEST(recordings_that_break) {
  char here[16] = "";
  char *a = allocate(16);
  rt_recording *recording;
  ASSERT_OK(device.record_begin(stream));
  check_failure(device.await(stream, NULL), STATUS_INTERNAL, "a wait in a recording");
  check_failure(device.record_end(stream, &recording), STATUS_INTERNAL, "a wait in a recording");
  ASSERT_OK(device.record_begin(stream));
  check_failure(device.copy(stream, RT_UPLOAD, a, here, 16), STATUS_INTERNAL, "a copy of the host's memory");
  check_failure(device.record_begin(stream), STATUS_INTERNAL, "a copy of the host's memory");
  check_failure(device.record_end(stream, &recording), STATUS_INTERNAL, "a copy of the host's memory");
  check_failure(device.record_end(stream, &recording), STATUS_INTERNAL, "that was not begun");
  device.release(&device, a, 16);
}
END_TEST

START_TEST(events_are_waited_for) {
  rt_event *from, *to;
  double seconds;
  ASSERT_OK(device.create_event(&device, &from));
  ASSERT_OK(device.create_event(&device, &to));
  ASSERT_OK(device.record_event(from, stream));
  pthread_mutex_lock(&held);
  ASSERT_OK(rt_emulated_submit(stream, NULL, wait_for_test, malloc(1)));
  ASSERT_OK(device.record_event(to, stream));
  check_failure(device.elapsed(from, to, &seconds), STATUS_INTERNAL, "not waited for");
  pthread_mutex_unlock(&held);
  ASSERT_OK(device.await(stream, NULL));
  ASSERT_OK(device.elapsed(from, to, &seconds));
  ck_assert(seconds >= 0);
  device.destroy_event(from);
  device.destroy_event(to);
}
END_TEST

/* Programs with the same array share its copy, and what is no longer used is freed. */
START_TEST(constants_are_shared) {
  int data[4] = {1, 2, 3, 4}, out[4];
  void *a, *b, *c;
  ASSERT_OK(rt_device_constant_take(&device, stream, data, sizeof data, &a));
  ASSERT_OK(rt_device_constant_take(&device, stream, data, sizeof data, &b));
  ASSERT_OK(rt_device_constant_take(&device, stream, data, sizeof *data, &c));
  ck_assert_ptr_eq(a, b);
  ck_assert_ptr_ne(a, c);
  rt_device_constant_give(&device, data, sizeof data);
  ASSERT_OK(device.copy(stream, RT_DOWNLOAD, out, a, sizeof out));
  ASSERT_OK(device.await(stream, NULL));
  ck_assert_mem_eq(out, data, sizeof out);
  rt_device_constant_give(&device, data, sizeof data);
  rt_device_constant_give(&device, data, sizeof *data);
  ck_assert(!rt_emulated_owns(a, 1));
}
END_TEST

/* Many pieces of memory, allocated and freed in another order, never overlap. */
START_TEST(pieces_do_not_overlap) {
  enum { N = 200 };
  unsigned char *pieces[N] = {0}, out[3];
  size_t bytes[N];
  for (int k = 0; k < 5 * N; k++) {
    int at = k * 37 % N;
    if (pieces[at]) {
      ASSERT_OK(device.copy(stream, RT_DOWNLOAD, out, pieces[at], 1));
      ASSERT_OK(device.copy(stream, RT_DOWNLOAD, out + 1, pieces[at] + bytes[at] - 1, 1));
      ASSERT_OK(device.await(stream, NULL));
      ck_assert(out[0] == at && out[1] == at);
      device.release(&device, pieces[at], bytes[at]);
    }
    bytes[at] = (size_t)(k * 131 % 9000 + 1);
    pieces[at] = allocate(bytes[at]);
    unsigned char fill = (unsigned char)at;
    ASSERT_OK(device.copy(stream, RT_UPLOAD, pieces[at], &fill, 1));
    ASSERT_OK(device.copy(stream, RT_UPLOAD, pieces[at] + bytes[at] - 1, &fill, 1));
    ASSERT_OK(device.await(stream, NULL));
  }
  for (int k = 0; k < N; k++) {
    device.release(&device, pieces[k], bytes[k]);
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("device");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, copies_in_order);
  tcase_add_test(t, new_memory_is_poisoned);
#ifdef __SANITIZE_ADDRESS__ /* it handles the fault and exits with 1 */
  tcase_add_exit_test(t, the_host_cannot_read, 1);
#else
  tcase_add_test_raise_signal(t, the_host_cannot_read, SIGSEGV);
#endif
  tcase_add_test(t, knows_its_memory);
  tcase_add_test(t, wrong_copies_fail);
  tcase_add_test(t, a_failure_stops_the_stream);
  tcase_add_test(t, a_wait_can_be_cancelled);
  tcase_add_test(t, recordings_are_replayed);
  tcase_add_test(t, recordings_that_break);
  tcase_add_test(t, events_are_waited_for);
  tcase_add_test(t, constants_are_shared);
  tcase_add_test(t, pieces_do_not_overlap);
  return run_suite("emulated device", t);
}
