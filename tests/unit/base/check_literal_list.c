/* check_literal_list.c - sequences and maps: in one block of memory, and their parts. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/tensor/literal_list.h"
#include "tests/suite.h"

static const float numbers[] = {1, 2, 3, 4, 5, 6};

static void *packed(const literal *l) {
  size_t bytes = literal_packed_bytes(l);
  void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
  ck_assert_ptr_nonnull(memory);
  memset(memory, 0x55, bytes + 1);
  literal_pack(l, memory);
  ck_assert_int_eq(((const uint8_t *)memory)[bytes], 0x55); /* nothing is written behind the block */
  return memory;
}

START_TEST(arrays_are_copied) {
  literal l = literal_make(shape_make(DTYPE_F32, 2, (dim[]){2, 3}), numbers);
  ck_assert_uint_eq(literal_packed_bytes(&l), sizeof numbers);
  void *memory = packed(&l);
  ck_assert_mem_eq(memory, numbers, sizeof numbers);
  free(memory);
}
END_TEST

START_TEST(sequences_are_one_block) {
  literal items[] = {literal_make(shape_make(DTYPE_F32, 1, (dim[]){6}), numbers),
                     literal_make(shape_make(DTYPE_F32, 2, (dim[]){0, 7}), NULL),
                     literal_make(shape_scalar(DTYPE_F32), numbers + 2)};
  literal_list list = {3, items};
  literal l = literal_sequence(DTYPE_F32, &list);
  literal_list *copy = packed(&l);
  ck_assert_uint_eq(copy->n, 3);
  for (uint32_t k = 0; k < copy->n; k++) {
    const literal *got = &copy->items[k];
    size_t at = (size_t)((const char *)got->data - (const char *)copy);
    ck_assert(literal_equal(got, &items[k]));
    ck_assert_uint_eq((uintptr_t)got->data % 64, 0);
    ck_assert_uint_le(at + (size_t)shape_bytes(&got->shape), literal_packed_bytes(&l));
  }
  free(copy);
}
END_TEST

START_TEST(lists_without_elements) {
  literal_list none = {0};
  literal l = literal_sequence(DTYPE_S64, &none), absent = literal_absent(DTYPE_S64);
  literal_list *copy = packed(&l);
  ck_assert_uint_eq(copy->n, 0);
  ck_assert_str_eq(SHAPE_STR(NULL, &l.shape), "seq<s64>");
  ck_assert_uint_eq(literal_packed_bytes(&absent), 0);
  ck_assert_str_eq(SHAPE_STR(NULL, &absent.shape), "opt<s64>");
  free(copy);
}
END_TEST

static void expect(status s, const char *text) {
  ck_assert_msg(s && strstr(status_message(s), text), "%s", status_message(s));
  status_free(s);
}

START_TEST(maps_have_as_many_keys_as_values) {
  const int64_t keys[] = {3, 1, 2};
  literal parts[] = {literal_make(shape_make(DTYPE_S64, 1, (dim[]){3}), keys),
                     literal_make(shape_make(DTYPE_F32, 1, (dim[]){3}), numbers), literal_absent(DTYPE_F32)};
  literal_list list = {2, parts};
  literal map = literal_map(&list);
  literal_list maps = {1, &map};
  literal all = literal_sequence(DTYPE_F32, &maps);
  literal_list *copy = packed(&all);
  const literal_list *inner = literal_elements(&copy->items[0]);
  ck_assert(literal_equal(&inner->items[0], &parts[0]) && literal_equal(&inner->items[1], &parts[1]));
  free(copy);
  ck_assert_ptr_null(literal_check_elements(&map, SHAPE_ARRAY, DTYPE_S64));
  ck_assert_ptr_null(literal_check_elements(&all, SHAPE_MAP, DTYPE_S64));
  expect(literal_check_elements(&all, SHAPE_ARRAY, DTYPE_S64), "element 0 of the sequence is map<f32>");
  expect(literal_check_elements(&all, SHAPE_MAP, DTYPE_STR), "the model needs str and f32");
  parts[0].shape.dims[0] = 2;
  expect(literal_check_elements(&map, SHAPE_ARRAY, DTYPE_S64), "the keys of the map are s64[2] and the values f32[3]");
  list = (literal_list){2, parts + 1};
  expect(literal_check_elements(&map, SHAPE_ARRAY, DTYPE_S64), "and the values opt<f32>");
  list.n = 1;
  expect(literal_check_elements(&map, SHAPE_ARRAY, DTYPE_S64), "an array of keys and an array of values");
}
END_TEST

int main(void) {
  TCase *t = tcase_create("literal_list");
  tcase_add_test(t, arrays_are_copied);
  tcase_add_test(t, sequences_are_one_block);
  tcase_add_test(t, lists_without_elements);
  tcase_add_test(t, maps_have_as_many_keys_as_values);
  return run_suite("literal_list", t);
}
