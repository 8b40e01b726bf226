/* check_value.c - sequences, maps and optionals in .pb files. */
#include <check.h>
#include <string.h>

#include "frontend/model/value.h"
#include "tests/suite.h"

static arena *a;

static void setup(void) { a = arena_create(NULL); }
static void teardown(void) { arena_destroy(a); }

static void expect(status s, status_code code, const char *text) {
  ck_assert_ptr_nonnull(s);
  ck_assert_msg(status_get_code(s) == code && strstr(status_message(s), text), "%s", status_message(s));
  status_free(s);
}

static shape declared(shape_kind kind) {
  shape s = shape_scalar(DTYPE_F32);
  s.kind = (uint8_t)kind;
  return s;
}

/* Two arrays of different shapes, one of them without elements. */
static literal two_arrays(void) {
  static const float numbers[] = {1, 2, 3};
  static literal items[2];
  static literal_list list = {2, items};
  items[0] = literal_make(shape_make(DTYPE_F32, 1, (dim[]){3}), numbers);
  items[1] = literal_make(shape_make(DTYPE_F32, 2, (dim[]){0, 4}), "");
  return literal_sequence(DTYPE_F32, &list);
}

static void expect_equal(const literal *got, const literal *want) {
  ck_assert(shape_equal(&got->shape, &want->shape));
  if (want->shape.kind == SHAPE_ARRAY) {
    ck_assert(literal_equal(got, want));
  } else if (literal_is_list(want)) {
    ck_assert_uint_eq(literal_elements(got)->n, literal_elements(want)->n);
    for (uint32_t k = 0; k < literal_elements(want)->n; k++) {
      expect_equal(&literal_elements(got)->items[k], &literal_elements(want)->items[k]);
    }
  }
}

static string_table *strings;

static void expect_round_trip(shape_kind kind, const literal *l) {
  uint8_t *bytes;
  size_t size;
  const char *name;
  literal back;
  shape s = declared(kind);
  ck_assert_ptr_null(onnx_value_to_pb(a, "out", kind, l, strings, &bytes, &size));
  ck_assert_ptr_null(onnx_value_parse_pb(a, "x.pb", bytes, size, &s, strings, &name, &back));
  ck_assert_str_eq(name, "out");
  expect_equal(&back, l);
}

START_TEST(round_trips) {
  literal_list none = {0};
  literal two = two_arrays(), empty = literal_sequence(DTYPE_F32, &none), absent = literal_absent(DTYPE_F32);
  expect_round_trip(SHAPE_SEQUENCE, &two);
  expect_round_trip(SHAPE_SEQUENCE, &empty);
  expect_round_trip(SHAPE_ARRAY, &literal_elements(&two)->items[0]);
  expect_round_trip(SHAPE_OPTIONAL, &literal_elements(&two)->items[0]);
  expect_round_trip(SHAPE_OPTIONAL, &two);
  expect_round_trip(SHAPE_OPTIONAL, &empty);
  expect_round_trip(SHAPE_OPTIONAL, &absent);
}
END_TEST

START_TEST(round_trips_of_maps) {
  strings = string_table_create(a, NULL);
  const int64_t numbers[] = {5, -7, 1}, words[] = {(int64_t)string_table_add(strings, "cat", 3), 0,
                                                   (int64_t)string_table_add(strings, "do\0g", 4)};
  const float values[] = {0.5, 2, -1};
  literal parts[] = {literal_s64s(a, numbers, 3), literal_make(shape_make(DTYPE_F32, 1, (dim[]){3}), values)};
  literal of_words[] = {literal_make(shape_make(DTYPE_STR, 1, (dim[]){3}), words), parts[1]};
  literal none[] = {literal_s64s(a, NULL, 0), literal_make(shape_make(DTYPE_F32, 1, (dim[]){0}), "")};
  literal_list lists[] = {{2, parts}, {2, of_words}, {2, none}};
  literal maps[] = {literal_map(&lists[0]), literal_map(&lists[1]), literal_map(&lists[2])};
  literal_list pair = {2, maps};
  literal all = literal_sequence(DTYPE_F32, &pair);
  expect_round_trip(SHAPE_MAP, &maps[0]);
  expect_round_trip(SHAPE_MAP, &maps[1]);
  expect_round_trip(SHAPE_MAP, &maps[2]);
  expect_round_trip(SHAPE_SEQUENCE, &all);
  uint8_t *bytes;
  size_t size;
  of_words[0].data = (const int64_t[]){0, 1, 99};
  expect(onnx_value_to_pb(a, "out", SHAPE_MAP, &maps[1], strings, &bytes, &size), STATUS_INVALID_ARGUMENT,
         "out: there is no string 99");
  expect(onnx_value_to_pb(a, "out", SHAPE_MAP, &maps[1], NULL, &bytes, &size), STATUS_UNSUPPORTED,
         "out: strings cannot be written here");
}
END_TEST

static status parse(shape_kind kind, const char *bytes, size_t size) {
  const char *name;
  literal l;
  shape s = declared(kind);
  return onnx_value_parse_pb(a, "x.pb", bytes, size, &s, NULL, &name, &l);
}

START_TEST(refused_files) {
  /* elem_type: the field's number and wire type in one byte, then its value */
  static const char nested[] = {2 << 3, 5}, of_nothing[] = {2 << 3, 1}, sequence_of_nothing[] = {2 << 3, 3};
  static const char no_key[] = {3 << 3, 1}, one_key[] = {2 << 3, 7, 3 << 3, 1}; /* key_type 7 is INT64; one of keys */
  expect(parse(SHAPE_SEQUENCE, nested, 2), STATUS_UNSUPPORTED, "a sequence of the element type 5");
  expect(parse(SHAPE_OPTIONAL, nested, 2), STATUS_UNSUPPORTED, "an optional of the element type 5");
  expect(parse(SHAPE_OPTIONAL, of_nothing, 2), STATUS_INVALID_MODEL, "no tensor_value");
  expect(parse(SHAPE_OPTIONAL, sequence_of_nothing, 2), STATUS_INVALID_MODEL, "no sequence_value");
  expect(parse(SHAPE_MAP, no_key, 2), STATUS_UNSUPPORTED, "keys of the type 0");
  expect(parse(SHAPE_MAP, one_key, 4), STATUS_INVALID_MODEL, "a map of 1 keys and 0 values");
  expect(parse(SHAPE_SEQUENCE, nested, 1), STATUS_INVALID_FILE, "x.pb: byte");
}
END_TEST

START_TEST(different_types) {
  literal two = two_arrays(), items[2] = {literal_elements(&two)->items[0], literal_scalar_i64(a, DTYPE_S32, 1)};
  literal_list list = {2, items};
  literal l = literal_sequence(DTYPE_F32, &list);
  uint8_t *bytes;
  size_t size;
  ck_assert_ptr_null(onnx_value_to_pb(a, "", SHAPE_SEQUENCE, &l, NULL, &bytes, &size));
  expect(parse(SHAPE_SEQUENCE, (const char *)bytes, size), STATUS_INVALID_MODEL,
         "element 1 of the sequence is s32[], but element 0 is f32[3]");
}
END_TEST

int main(void) {
  TCase *t = tcase_create("value");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, round_trips);
  tcase_add_test(t, round_trips_of_maps);
  tcase_add_test(t, refused_files);
  tcase_add_test(t, different_types);
  return run_suite("value", t);
}
