/* check_npy.c - .npy files, good and hostile. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/tensor/npy.h"
#include "tests/suite.h"

static arena *a;

static void setup(void) { a = arena_create(NULL); }

static void teardown(void) { arena_destroy(a); }

/* Returns a file of this version with this dictionary and data, in memory of exactly its size. */
static uint8_t *make_file(int version, const char *dictionary, const void *data, size_t n_data, size_t *size) {
  size_t n = strlen(dictionary), start = version == 1 ? 10 : 12;
  *size = start + n + n_data;
  uint8_t *file = malloc(*size);
  memcpy(file, "\x93NUMPY", 6);
  file[6] = (uint8_t)version;
  file[7] = 0;
  for (size_t i = 8; i < start; i++) {
    file[i] = (uint8_t)(n >> (8 * (i - 8)));
  }
  memcpy(file + start, dictionary, n);
  memcpy(file + start + n, data, n_data);
  return file;
}

typedef struct parse_call {
  const void *bytes;
  size_t size;
  dtype raw;
  literal *out;
} parse_call;

static status call_parse(void *data) {
  parse_call *c = data;
  return npy_parse(a, "x.npy", c->bytes, c->size, c->raw, NULL, c->out);
}

static status parse_as(const void *bytes, size_t size, dtype raw, literal *out) {
  return guard_run(call_parse, &(parse_call){bytes, size, raw, out});
}

static status parse(const void *bytes, size_t size, literal *out) { return parse_as(bytes, size, DTYPE_INVALID, out); }

static void expect_failure(int version, const char *dictionary, size_t n_data, status_code code, const char *part) {
  size_t size;
  literal l;
  uint8_t data[64] = {0};
  uint8_t *file = make_file(version, dictionary, data, n_data, &size);
  status s = parse(file, size, &l);
  ck_assert_msg(status_get_code(s) == code && strstr(status_message(s), part), "%s gives %s", dictionary,
                status_message(s));
  status_free(s);
  free(file);
}

START_TEST(round_trip) {
  for (int t = 1; t < DTYPE_COUNT; t++) {
    const dtype_info *info = dtype_get_info(t);
    if (t == DTYPE_STR) {
      continue;
    }
    void *data;
    literal l = literal_new(a, shape_make(t, 2, (dim[]){3, 5}), &data), back;
    memset(data, 1, 15 * info->bytes);
    if (dtype_is_signed(t)) {
      dtype_store_i64(t, data, -1);
    }
    uint8_t *bytes;
    size_t size;
    ck_assert_ptr_null(npy_format(a, &l, NULL, &bytes, &size));
    ck_assert_ptr_null(parse(bytes, size, &back));
    ck_assert_msg(literal_equal(&l, &back), "%s", info->name);
    ck_assert_uint_eq((uintptr_t)(size - 15 * info->bytes) % 64, 0);
  }
}
END_TEST

/* Text and bytes as NumPy writes them: without the NULs at their ends. */
START_TEST(strings) {
  static const struct {
    const char *code;
    uint8_t data[24];
    size_t n;
  } files[] = {
      {"<U3", "a\0\0\0\xe9\0\0\0\0\0\0\0\x2b\x73\0\0\0\0\0\0\0\0\0\0", 24},
      {">U3", "\0\0\0a\0\0\0\xe9\0\0\0\0\0\0\x73\x2b\0\0\0\0\0\0\0\0", 24},
      {"|S4", "a\xc3\xa9\0\xe7\x8c\xab", 8},
  };
  for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
    string_table *t = string_table_create(a, NULL);
    const char *header = arena_printf(a, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }", files[k].code);
    size_t size, n;
    literal l, back;
    uint8_t *file = make_file(1, header, files[k].data, files[k].n, &size);
    ck_assert_ptr_null(npy_parse(a, "x.npy", file, size, DTYPE_INVALID, t, &l));
    ck_assert_int_eq(l.shape.type, DTYPE_STR);
    ck_assert_str_eq(string_table_text(t, (uint64_t)literal_i64(&l, 0), &n), "a\xc3\xa9");
    ck_assert_str_eq(string_table_text(t, (uint64_t)literal_i64(&l, 1), &n), "\xe7\x8c\xab");
    ck_assert_ptr_null(npy_format(a, &l, t, &file, &size));
    ck_assert_ptr_null(npy_parse(a, "x.npy", file, size, DTYPE_INVALID, t, &back));
    ck_assert(literal_equal(&l, &back));
  }
}
END_TEST

START_TEST(wrong_strings) {
  static const struct {
    const char *code;
    uint8_t data[8];
    size_t n;
    const char *message;
  } files[] = {
      {"<U1", {0, 0, 0x11}, 4, "Unicode lacks"}, {"<U1", {0, 0xd8}, 4, "Unicode lacks"},
      {"<U2", {1}, 4, "1 strings of 8"},         {"<U99999999999999999999", {1}, 4, "no equal here"},
      {"<Ux", {1}, 4, "no equal here"},          {"|S0", {1}, 1, "1 strings of 0"},
  };
  for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
    const char *header = arena_printf(a, "{'descr': '%s', 'fortran_order': False, 'shape': (1,), }", files[k].code);
    size_t size;
    literal l;
    uint8_t *file = make_file(1, header, files[k].data, files[k].n, &size);
    status s = npy_parse(a, "x.npy", file, size, DTYPE_INVALID, string_table_create(a, NULL), &l);
    ck_assert_msg(s && strstr(status_message(s), files[k].message), "%s: %s", files[k].code, status_message(s));
    status_free(s);
  }
}
END_TEST

START_TEST(scalars_and_empty) {
  literal l = literal_scalar_f64(a, DTYPE_F32, 2.5), back;
  uint8_t *bytes;
  size_t size;
  ck_assert_ptr_null(npy_format(a, &l, NULL, &bytes, &size));
  ck_assert_ptr_null(parse(bytes, size, &back));
  ck_assert_int_eq(back.shape.rank, 0);
  ck_assert(literal_f64(&back, 0) == 2.5);
  l = literal_make(shape_make(DTYPE_S64, 1, (dim[]){0}), NULL);
  ck_assert_ptr_null(npy_format(a, &l, NULL, &bytes, &size));
  ck_assert_ptr_null(parse(bytes, size, &back));
  ck_assert_int_eq(back.shape.dims[0], 0);
}
END_TEST

START_TEST(orders) {
  const uint8_t big[] = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6};
  static const int fortran[] = {1, 3, 5, 2, 4, 6};
  for (int version = 1; version <= 3; version++) {
    for (int order = 0; order < 2; order++) {
      const char *text = order ? "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3L), }   \n"
                               : "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\">i2\"}";
      size_t size;
      literal l;
      uint8_t *file = make_file(version, text, big, sizeof big, &size);
      ck_assert_ptr_null(parse(file, size, &l));
      ck_assert_int_eq(l.shape.rank, 2);
      for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(literal_i64(&l, i), order ? fortran[i] : i + 1);
      }
      free(file);
    }
  }
}
END_TEST

START_TEST(bools_are_normalised) {
  size_t size;
  literal l;
  uint8_t *file = make_file(1, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", "\2\0\1", 3, &size);
  ck_assert_ptr_null(parse(file, size, &l));
  ck_assert_mem_eq(l.data, "\1\0\1", 3);
  free(file);
}
END_TEST

/* np.save writes bfloat16 and most types of ml_dtypes without their names, as "V2" or "V1"; the caller then
 * gives the type. */
START_TEST(without_a_name) {
  size_t size;
  literal l;
  uint8_t *file = make_file(1, "{'descr': '<V2', 'fortran_order': False, 'shape': (1,)}", "\x80\x3f", 2, &size);
  ck_assert_ptr_null(parse_as(file, size, DTYPE_BF16, &l));
  ck_assert(l.shape.type == DTYPE_BF16 && literal_f64(&l, 0) == 1);
  status s = parse_as(file, size, DTYPE_F32, &l);
  ck_assert_int_eq(status_get_code(s), STATUS_UNSUPPORTED);
  status_free(s);
  free(file);
  file = make_file(1, "{'descr': '<V1', 'fortran_order': False, 'shape': (2,)}", "\x0f\x07", 2, &size);
  ck_assert_ptr_null(parse_as(file, size, DTYPE_S4, &l));
  ck_assert_int_eq(literal_i64(&l, 0), -1);
  ck_assert_int_eq(literal_i64(&l, 1), 7);
  free(file);
  file = make_file(1, "{'descr': '<f1', 'fortran_order': False, 'shape': (1,)}", "\x3c", 1, &size);
  ck_assert_ptr_null(parse(file, size, &l));
  ck_assert(l.shape.type == DTYPE_F8E5M2 && literal_f64(&l, 0) == 1);
  free(file);
}
END_TEST

START_TEST(hostile_headers) {
  expect_failure(1, "", 0, STATUS_INVALID_FILE, "'{'");
  expect_failure(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", 8, STATUS_INVALID_FILE, "'}'");
  expect_failure(1, "{'descr': '<f4', 'fortran_order': False}", 8, STATUS_INVALID_FILE, "lacks one of");
  expect_failure(1, "{'descr': '<f4', 'fortran_order': 7, 'shape': (2,)}", 8, STATUS_INVALID_FILE, "fortran_order");
  expect_failure(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}", 8, STATUS_INVALID_FILE, "number");
  expect_failure(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", 8, STATUS_INVALID_FILE, "8 bytes");
  expect_failure(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 8, STATUS_INVALID_FILE, "8 bytes");
  expect_failure(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999999,)}", 8,
                 STATUS_INVALID_MODEL, "shape");
  expect_failure(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 4294967296)}", 0,
                 STATUS_RESOURCE, "shape");
  expect_failure(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,)}", 4,
                 STATUS_UNSUPPORTED, "dimensions");
  expect_failure(1, "{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", 8, STATUS_UNSUPPORTED, "|O");
  expect_failure(1, "{'descr': '<V2', 'fortran_order': False, 'shape': (2,)}", 4, STATUS_UNSUPPORTED, "<V2");
  expect_failure(1, "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", 8, STATUS_UNSUPPORTED,
                 "records");
  expect_failure(1, "{'descr': 'f4', 'fortran_order': False, 'shape': (2,)}", 8, STATUS_INVALID_FILE, "f4");
  expect_failure(1, "{'descr': '<f4', 'descr': '<f4'}", 8, STATUS_INVALID_FILE, "twice");
  expect_failure(1, "{'x': 1}", 8, STATUS_INVALID_FILE, "\"x\"");
  expect_failure(1, "{'descr': '<f4", 8, STATUS_INVALID_FILE, "string");
  expect_failure(4, "{}", 8, STATUS_UNSUPPORTED, "version 4");
  expect_failure(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} + 1", 8, STATUS_INVALID_FILE, "goes on");
}
END_TEST

/* Reads every prefix of a file, and files in which a byte is replaced by a few others.  What counts is that
 * sanitizers report nothing. */
START_TEST(damage) {
  literal l = literal_s64s(a, (int64_t[]){1, 2, 3}, 3), back;
  uint8_t *bytes;
  size_t size;
  ck_assert_ptr_null(npy_format(a, &l, NULL, &bytes, &size));
  for (size_t n = 0; n < size; n++) {
    uint8_t *part = malloc(n ? n : 1);
    memcpy(part, bytes, n);
    status s = parse(part, n, &back);
    ck_assert_ptr_nonnull(s);
    status_free(s);
    free(part);
  }
  for (size_t i = 0; i < size - 24; i++) {
    for (int bit = 0; bit < 8; bit++) {
      uint8_t *copy = malloc(size);
      memcpy(copy, bytes, size);
      copy[i] ^= (uint8_t)(1 << bit);
      status_free(parse(copy, size, &back));
      free(copy);
    }
  }
}
END_TEST

int main(void) {
  TCase *tests = tcase_create("npy");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_test(tests, round_trip);
  tcase_add_test(tests, scalars_and_empty);
  tcase_add_test(tests, strings);
  tcase_add_test(tests, wrong_strings);
  tcase_add_test(tests, orders);
  tcase_add_test(tests, bools_are_normalised);
  tcase_add_test(tests, without_a_name);
  tcase_add_test(tests, hostile_headers);
  tcase_add_test(tests, damage);
  return run_suite("npy", tests);
}
