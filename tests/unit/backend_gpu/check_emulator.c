/* check_emulator.c - launches on the emulator: a recording of a launch may be replayed only with the addresses with
 * which it was made, as on a GPU, and a launch may use only memory of the device. */
#include <check.h>

#include "backend_gpu/runtime/emulator.h"
#include "tests/suite.h"
#include "tests/unit/backend_gpu/cuda_case.h"

enum { N = 64, BYTES = N * sizeof(int) };

static const gpu_device *gpu;
static const rt_device *device;
static rt_stream *stream;
static arena *memory;
static gpu_function *add;

static void setup(void) {
  rt_code *code;
  gpu = gpu_emulator();
  device = &gpu->device;
  memory = arena_create(NULL);
  ASSERT_OK(gpu->load(gpu, memory, cuda_case_code, NULL, &code));
  add = gpu->find(gpu, memory, code, "add");
  ck_assert_ptr_nonnull(add);
  ASSERT_OK(device->create_stream(device, &stream));
}

static void teardown(void) {
  device->destroy_stream(stream);
  arena_destroy(memory);
}

/* The kernel "add" on three arrays of N numbers, which lie in the inputs. */
static rt_size extent = N, stride = 1;
static rt_buffer buffers[] = {
    {.space = RT_PARAM, .type = DTYPE_S32, .rank = 1, .index = 0, .extents = &extent, .strides = &stride},
    {.space = RT_PARAM, .type = DTYPE_S32, .rank = 1, .index = 1, .extents = &extent, .strides = &stride},
    {.space = RT_PARAM, .type = DTYPE_S32, .rank = 1, .index = 2, .extents = &extent, .strides = &stride}};
static const rt_thunk thunk = {.buffers = buffers, .n_buffers = 3};

static status launch(const rt_run *r) {
  static const int64_t factor = 2;
  gpu_launch l = {.thunk = &thunk,
                  .run = r,
                  .blocks = N / 32,
                  .threads = 32,
                  .n_buffers = 3,
                  .n_args = 1,
                  .buffers = r->params,
                  .args = &factor,
                  .steps = N};
  return gpu->launch(stream, add, &l);
}

static int *allocate(void) {
  void *out;
  ASSERT_OK(device->allocate(device, BYTES, &out));
  return out;
}

static rt_run run_of(const void *const *params) {
  return (rt_run){.device = device, .stream = stream, .params = params};
}

static void upload(int *to, int first) {
  static int numbers[N];
  for (int k = 0; k < N; k++) {
    numbers[k] = first + k;
  }
  ASSERT_OK(device->copy(stream, RT_UPLOAD, to, numbers, BYTES));
  ASSERT_OK(device->await(stream, NULL));
}

START_TEST(replays_keep_their_addresses) {
  int *x = allocate(), *y = allocate(), *sums = allocate(), *other = allocate(), found[N];
  rt_recording *recording;
  rt_run run = run_of((const void *[]){x, y, sums}), elsewhere = run_of((const void *[]){x, other, sums});
  ASSERT_OK(device->record_begin(stream));
  ASSERT_OK(launch(&run));
  ASSERT_OK(device->record_end(stream, &recording));
  for (int round = 0; round < 2; round++) {
    upload(x, round);
    upload(y, 100);
    ASSERT_OK(device->replay(&run, recording));
    ASSERT_OK(device->copy(stream, RT_DOWNLOAD, found, sums, BYTES));
    ASSERT_OK(device->await(stream, NULL));
    for (int k = 0; k < N; k++) {
      ck_assert_int_eq(found[k], round + k + 2 * (100 + k));
    }
  }
  ASSERT_OK(device->replay(&elsewhere, recording));
  cuda_case_check_failure(device->await(stream, NULL), STATUS_INTERNAL, "made for other addresses or sizes");
  extent = N / 2;
  ASSERT_OK(device->replay(&run, recording));
  cuda_case_check_failure(device->await(stream, NULL), STATUS_INTERNAL, "made for other addresses or sizes");
  extent = N;
  ASSERT_OK(device->replay(&run, recording));
  ASSERT_OK(device->await(stream, NULL));
  device->release_recording(recording);
}
END_TEST

START_TEST(memory_of_the_host_is_refused) {
  static const int host[N];
  int *x = allocate(), *sums = allocate();
  rt_run run = run_of((const void *[]){x, host, sums});
  upload(x, 0);
  ASSERT_OK(launch(&run));
  cuda_case_check_failure(device->await(stream, NULL), STATUS_INTERNAL, "buffer 1 is not in the device's memory");
}
END_TEST

int main(void) {
  TCase *t = tcase_create("emulator");
  tcase_add_unchecked_fixture(t, cuda_case_setup, cuda_case_teardown);
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, replays_keep_their_addresses);
  tcase_add_test(t, memory_of_the_host_is_refused);
  return run_suite("emulator", t);
}
