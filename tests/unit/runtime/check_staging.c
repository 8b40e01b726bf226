/* check_staging.c - which arrays of the caller a run uses where they are, and which it copies. */
#include <check.h>
#include <stdint.h>

#include "runtime/exec/staging.h"
#include "runtime/host/emulated_device.h"
#include "tests/suite.h"

enum { FLOATS = 100 };

/* Takes an array of f32 that begins at `given`.  Returns whether the run uses it where it is. */
static bool is_used(const rt_device *d, dtype type, char *given) {
  rt_io io = {.name = "x", .shape = shape_make(type, 1, (dim[]){FLOATS})};
  rt_kept kept = {0};
  rt_staging s;
  mem_budget budget = {0};
  bool there[] = {true};
  ASSERT_OK(rt_staging_take(&s, d, &kept, &budget, 1, &io, (void *[]){given}, there, NULL));
  bool used = s.used[0] == given;
  ck_assert(used == !s.owned[0]);
  ck_assert_uint_eq((uintptr_t)s.used[0] % rt_array_align(d, type), 0);
  rt_staging_give(&s, &budget);
  rt_memory_give(d, NULL, kept.memory, kept.bytes);
  return used;
}

static _Alignas(RT_ARRAY_ALIGN) char memory[(FLOATS + 1) * 16];

/* NumPy aligns arrays to 16 bytes, and a part of an array begins at any element. */
START_TEST(elements_are_aligned) {
  ck_assert(is_used(NULL, DTYPE_F32, memory));
  ck_assert(is_used(NULL, DTYPE_F32, memory + 16));
  ck_assert(is_used(NULL, DTYPE_F32, memory + 4));
  ck_assert(is_used(NULL, DTYPE_F64, memory + 8));
  ck_assert(is_used(NULL, DTYPE_C64, memory + 4));
  ck_assert(is_used(NULL, DTYPE_C128, memory + 8));
  ck_assert(is_used(NULL, DTYPE_U8, memory + 1));
  ck_assert(is_used(NULL, DTYPE_PRED, memory + 3));
}
END_TEST

START_TEST(elements_are_not_aligned) {
  ck_assert(!is_used(NULL, DTYPE_F32, memory + 2));
  ck_assert(!is_used(NULL, DTYPE_F64, memory + 4));
  ck_assert(!is_used(NULL, DTYPE_F16, memory + 1));
  ck_assert(!is_used(NULL, DTYPE_C128, memory + 4));
}
END_TEST

/* Kernels of devices load vectors. */
START_TEST(device_needs_more) {
  rt_device d = rt_emulated_device();
  ck_assert(is_used(&d, DTYPE_F32, memory));
  ck_assert(!is_used(&d, DTYPE_F32, memory + 16));
  ck_assert(!is_used(&d, DTYPE_U8, memory + 1));
}
END_TEST

int main(void) {
  TCase *t = tcase_create("staging");
  tcase_add_test(t, elements_are_aligned);
  tcase_add_test(t, elements_are_not_aligned);
  tcase_add_test(t, device_needs_more);
  return run_suite("staging", t);
}
