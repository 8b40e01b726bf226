/* check_cuda_staging.c - copies of the host's memory go through page-locked memory, whatever their size, number and
 * order. The driver (module_fake_cuda.c) copies late, and refuses other memory. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"
#include "tests/unit/backend_gpu/cuda_case.h"

enum { LARGE = (11 << 20) + 13, SMALL = 200, SMALL_BYTES = 12 };

typedef struct copies {
  const rt_device *device;
  rt_stream *stream;
  uint8_t *memory;    /* LARGE bytes of the device */
  uint8_t *from, *to; /* LARGE bytes of the host each */
} copies;

static copies begin(void) {
  copies c = {.device = &cuda_case_device(0)->device, .from = malloc(LARGE), .to = malloc(LARGE)};
  void *memory;
  ASSERT_OK(c.device->allocate(c.device, LARGE, &memory));
  c.memory = memory;
  ASSERT_OK(c.device->create_stream(c.device, &c.stream));
  for (int k = 0; k < LARGE; k++) {
    c.from[k] = (uint8_t)((k * 7 + k / 251) & 0xff);
    c.to[k] = 0xcc;
  }
  return c;
}

static void end(copies *c) {
  c->device->destroy_stream(c->stream);
  c->device->release(c->device, c->memory, LARGE);
  free(c->from);
  free(c->to);
  cuda_case_check_end();
}

static void upload(const copies *c, size_t to, const void *from, size_t bytes) {
  ASSERT_OK(c->device->copy(c->stream, RT_UPLOAD, c->memory + to, from, bytes));
}

static void download(const copies *c, void *to, size_t from, size_t bytes) {
  ASSERT_OK(c->device->copy(c->stream, RT_DOWNLOAD, to, c->memory + from, bytes));
}

static void await(const copies *c) { ASSERT_OK(c->device->await(c->stream, NULL)); }

/* Uses each part of both staging buffers more than once. */
START_TEST(large_arrays) {
  copies c = begin();
  for (int round = 0; round < 2; round++) {
    memset(c.to, 0xcc, LARGE);
    upload(&c, 0, c.from, LARGE);
    download(&c, c.to, 0, LARGE);
    await(&c);
    ck_assert_mem_eq(c.to, c.from, LARGE);
    c.from[LARGE / 2] ^= 0xff;
  }
  end(&c);
}
END_TEST

/* More downloads than a buffer can note (CUDA_MOST_DOWNLOADS), alternating with uploads. */
START_TEST(many_small_arrays) {
  copies c = begin();
  for (int k = 0; k < SMALL; k++) {
    upload(&c, (size_t)k * SMALL_BYTES, c.from + k * SMALL_BYTES, SMALL_BYTES);
    download(&c, c.to + k * SMALL_BYTES, (size_t)k * SMALL_BYTES, SMALL_BYTES);
  }
  await(&c);
  ck_assert_mem_eq(c.to, c.from, SMALL * SMALL_BYTES);
  ck_assert_int_eq(c.to[SMALL * SMALL_BYTES], 0xcc);
  end(&c);
}
END_TEST

/* The caller must wait before it writes to an array that it has uploaded, but it may upload an array to which
 * it has just begun a download.  The download may be in either staging buffer, of 4 MB each. */
START_TEST(copies_are_done_in_their_order) {
  copies c = begin();
  upload(&c, 5000, c.from, (size_t)_i * (5 << 20));
  upload(&c, 0, c.from, 1000);
  download(&c, c.to, 0, 1000);
  upload(&c, 2000, c.to + 10, 500);
  download(&c, c.to + 1000, 2000, 500);
  download(&c, c.to + 1100, 0, 100); /* overwrites a part of the previous download */
  await(&c);
  ck_assert_mem_eq(c.to, c.from, 1000);
  ck_assert_mem_eq(c.to + 1000, c.from + 10, 100);
  ck_assert_mem_eq(c.to + 1100, c.from, 100);
  ck_assert_mem_eq(c.to + 1200, c.from + 210, 300);
  end(&c);
}
END_TEST

/* A stream that is destroyed does its work first, for which it needs its staging buffers. */
START_TEST(streams_end_after_their_work) {
  copies c = begin();
  upload(&c, 0, c.from, LARGE);
  c.device->destroy_stream(c.stream);
  ASSERT_OK(c.device->create_stream(c.device, &c.stream));
  download(&c, c.to, 0, LARGE);
  await(&c);
  ck_assert_mem_eq(c.to, c.from, LARGE);
  end(&c);
}
END_TEST

/* Arrays that move by less than their own length, up and down.  The driver takes no copy that overlaps itself. */
START_TEST(overlapping_copies_on_the_device) {
  enum { N = 1000000 };
  static const int moves[] = {64, -64, N - 1, 1 - N};
  for (int k = 0; k < 4; k++) {
    copies c = begin();
    int from = moves[k] < 0 ? -moves[k] : 0;
    upload(&c, 0, c.from, LARGE);
    ASSERT_OK(c.device->copy(c.stream, RT_ON_DEVICE, c.memory + from + moves[k], c.memory + from, N));
    download(&c, c.to, (size_t)(from + moves[k]), N);
    await(&c);
    ck_assert_mem_eq(c.to, c.from + from, N);
    end(&c);
  }
}
END_TEST

/* A download whose wait was cancelled is not delivered by the next wait, which delivers its own downloads. */
START_TEST(downloads_that_are_given_up) {
  copies c = begin();
  mem_budget cancelled = {.cancel = true};
  upload(&c, 0, c.from, LARGE);
  await(&c);
  for (int k = 0; k < 20; k++) {
    download(&c, c.to, 0, 1000);
    status failed = c.device->await(c.stream, &cancelled);
    bool given_up = failed != NULL; /* otherwise the device was faster */
    status_free(failed);
    ck_assert_int_eq(c.to[1], given_up ? 0xcc : c.from[1]);
    download(&c, c.to + 2000, 100, 1000);
    await(&c);
    ck_assert_int_eq(c.to[1], given_up ? 0xcc : c.from[1]);
    ck_assert_mem_eq(c.to + 2000, c.from + 100, 1000);
    memset(c.to, 0xcc, 3000);
  }
  end(&c);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("cuda staging");
  tcase_add_unchecked_fixture(t, cuda_case_setup, cuda_case_teardown);
  tcase_set_timeout(t, 120);
  tcase_add_test(t, large_arrays);
  tcase_add_test(t, many_small_arrays);
  tcase_add_loop_test(t, copies_are_done_in_their_order, 0, 2);
  tcase_add_test(t, streams_end_after_their_work);
  tcase_add_test(t, overlapping_copies_on_the_device);
  tcase_add_test(t, downloads_that_are_given_up);
  return run_suite("cuda staging", t);
}
