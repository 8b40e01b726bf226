/* check_tensor.c - tests the conversion of ONNX tensors to literals and back, and external data. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "frontend/model/external_data.h"
#include "frontend/model/tensor.h"
#include "frontend/model/wire_scan.h"
#include "tests/suite.h"
#include "tests/unit/frontend/build_model.h"

static arena *a;
static onnx_source source;
static char folder[32];

static void setup(void) {
  a = arena_create(NULL);
  source = (onnx_source){.name = "test"};
}

static void teardown(void) { arena_destroy(a); }

/* --- helpers --- */

typedef struct decode_call {
  const void *tensor;
  bool sparse;
  literal *out;
} decode_call;

static status call_decode(void *data) {
  decode_call *c = data;
  return c->sparse ? onnx_sparse_tensor_literal(a, &source, c->tensor, c->out)
                   : onnx_tensor_literal(a, &source, c->tensor, c->out);
}

static status decode(const Onnx__TensorProto *t, literal *out) {
  return guard_run(call_decode, &(decode_call){t, false, out});
}

static literal decode_good(const Onnx__TensorProto *t) {
  literal l;
  status s = decode(t, &l);
  ck_assert_msg(!s, "%s", status_message(s));
  return l;
}

static void expect(status s, status_code code, const char *part) {
  ck_assert_msg(status_get_code(s) == code && strstr(status_message(s), part), "\"%s\" (%s) lacks \"%s\"",
                status_message(s), status_code_name(status_get_code(s)), part);
  status_free(s);
}

static void expect_bad(const Onnx__TensorProto *t, const char *part) {
  literal l;
  expect(decode(t, &l), STATUS_INVALID_MODEL, part);
}

static Onnx__TensorProto *vector(int type, int64_t n) { return new_tensor(a, "t", type, 1, &n); }

static Onnx__TensorProto *raw_vector(int type, int64_t n, const void *bytes, size_t size) {
  Onnx__TensorProto *t = vector(type, n);
  set_raw(a, t, bytes, size);
  return t;
}

static Onnx__TensorProto *int32_vector(int type, int64_t n, size_t count, const int32_t *values) {
  Onnx__TensorProto *t = vector(type, n);
  t->n_int32_data = count;
  t->int32_data = arena_memdup(a, values, count * sizeof *values);
  return t;
}

/* --- raw data --- */

START_TEST(raw_data) {
  float values[] = {1, -2, 3.5f};
  literal l = decode_good(raw_vector(1, 3, values, sizeof values));
  ck_assert_int_eq(l.shape.type, DTYPE_F32);
  ck_assert(literal_f64(&l, 2) == 3.5);
  expect_bad(raw_vector(1, 3, values, 8), "tensor \"t\": raw_data has 8 bytes instead of 12");
  expect_bad(raw_vector(1, 2, values, 12), "raw_data has 12 bytes instead of 8");
  expect_bad(raw_vector(1, 2, values, 7), "raw_data has 7 bytes");
  expect_bad(vector(1, 3), "has no data for its 3 elements");
  l = decode_good(vector(1, 0));
  ck_assert_int_eq((int)shape_elements(&l.shape), 0);
  l = decode_good(raw_vector(9, 3, "\2\0\1", 3));
  ck_assert_mem_eq(l.data, "\1\0\1", 3);
}
END_TEST

START_TEST(spans) {
  uint8_t file[64] = {0};
  for (int i = 0; i < 64; i++) {
    file[i] = (uint8_t)i;
  }
  source.bytes = file;
  source.size = sizeof file;
  uintptr_t skew = -(uintptr_t)file % 4;
  Onnx__TensorProto *t = vector(6, 4);
  t->has_span_field = t->has_span_offset = t->has_span_length = 1;
  t->span_field = 9;
  t->span_length = 16;
  for (uint64_t offset = skew; offset < skew + 4; offset++) {
    t->span_offset = offset;
    literal l = decode_good(t);
    ck_assert((l.data == file + offset) == (offset == skew));
    ck_assert_mem_eq(l.data, file + offset, 16);
  }
  t->span_offset = 49;
  literal l;
  expect(decode(t, &l), STATUS_INTERNAL, "outside the file");
}
END_TEST

START_TEST(packed_types) {
  static const struct {
    int onnx;
    const char *bytes;
    size_t size;
    int64_t n;
    int8_t want[8];
  } cases[] = {
      {21, "\x21\xf3", 2, 3, {1, 2, 3}},       {22, "\x8f\x07", 2, 3, {-1, -8, 7}}, {23, "\xf1", 1, 2, {1, 15}},
      {25, "\xe4\x02", 2, 5, {0, 1, 2, 3, 2}}, {26, "\xe4", 1, 4, {0, 1, -2, -1}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    literal l = decode_good(raw_vector(cases[i].onnx, cases[i].n, cases[i].bytes, cases[i].size));
    ck_assert_mem_eq(l.data, cases[i].want, (size_t)cases[i].n);
    int32_t bytes[] = {(uint8_t)cases[i].bytes[0], (uint8_t)cases[i].bytes[1]};
    l = decode_good(int32_vector(cases[i].onnx, cases[i].n, cases[i].size, bytes));
    ck_assert_mem_eq(l.data, cases[i].want, (size_t)cases[i].n);
    expect_bad(raw_vector(cases[i].onnx, cases[i].n, "abc", 3), "raw_data has 3 bytes");
  }
}
END_TEST

/* The standard packs four elements of 6 bits in three bytes of raw_data, but does not pack them in int32_data.  The
 * bytes are those that the onnx package writes. */
START_TEST(packed_six) {
  static const char bytes[] = "\x0c\x1c\x7c\x14", want[] = {12, 48, 1, 31, 20};
  literal l = decode_good(raw_vector(27, 5, bytes, 4));
  ck_assert_mem_eq(l.data, want, 5);
  ck_assert(literal_f64(&l, 1) == -2 && literal_f64(&l, 3) == 7.5);
  l = decode_good(raw_vector(28, 5, bytes, 4));
  ck_assert(literal_f64(&l, 0) == 1 && literal_f64(&l, 3) == 28);
  l = decode_good(int32_vector(27, 5, 5, (int32_t[]){12, 48, 1, 31, 20}));
  ck_assert_mem_eq(l.data, want, 5);
  expect_bad(int32_vector(27, 1, 1, (int32_t[]){64}), "is 64, outside of the range of f6e2m3fn");
  expect_bad(int32_vector(28, 1, 1, (int32_t[]){-1}), "is -1, outside of the range of f6e3m2fn");
  expect_bad(raw_vector(27, 5, bytes, 3), "raw_data has 3 bytes");
}
END_TEST

/* --- typed fields --- */

START_TEST(int32_fields) {
  literal l = decode_good(int32_vector(3, 2, 2, (int32_t[]){-128, 127}));
  ck_assert_int_eq(literal_i64(&l, 0), -128);
  expect_bad(int32_vector(3, 1, 1, (int32_t[]){128}), "element 0 of int32_data is 128, outside of the range of s8");
  expect_bad(int32_vector(2, 1, 1, (int32_t[]){-1}), "is -1, outside of the range of u8");
  l = decode_good(int32_vector(4, 1, 1, (int32_t[]){65535}));
  ck_assert_int_eq(literal_i64(&l, 0), 65535);
  l = decode_good(int32_vector(6, 1, 1, (int32_t[]){INT32_MIN}));
  ck_assert_int_eq(literal_i64(&l, 0), INT32_MIN);
  l = decode_good(int32_vector(10, 2, 2, (int32_t[]){0x3c00, 0x3c00 - 0x8000 - 0x8000 + 0x8000}));
  ck_assert(literal_f64(&l, 0) == 1);
  ck_assert(literal_f64(&l, 1) == -1); /* the bits of a negative float may be sign-extended in int32_data */
  expect_bad(int32_vector(10, 1, 1, (int32_t[]){65536}), "outside of the range of f16");
  l = decode_good(int32_vector(16, 1, 1, (int32_t[]){0x4040}));
  ck_assert(literal_f64(&l, 0) == 3);
  l = decode_good(int32_vector(9, 3, 3, (int32_t[]){0, 256, -1}));
  ck_assert_mem_eq(l.data, "\0\1\1", 3);
  expect_bad(int32_vector(6, 3, 2, (int32_t[]){1, 2}), "int32_data has 2 elements instead of 3");
}
END_TEST

START_TEST(other_fields) {
  Onnx__TensorProto *t = vector(12, 2);
  t->n_uint64_data = 2;
  t->uint64_data = (uint64_t[]){1, UINT32_MAX};
  literal l = decode_good(t);
  ck_assert_int_eq(literal_i64(&l, 1), UINT32_MAX);
  t->uint64_data[1]++;
  expect_bad(t, "outside of the range of u32");
  t->data_type = 13;
  l = decode_good(t);
  t->data_type = 7;
  expect_bad(t, "its elements are s64, but they are in uint64_data instead of int64_data");
  t = vector(14, 2);
  t->n_float_data = 4;
  t->float_data = (float[]){1, 2, 3, 4};
  l = decode_good(t);
  ck_assert(literal_f64(&l, 1) == 3);
  t->data_type = 3;
  expect_bad(t, "float_data instead of int32_data");
  t->data_type = 1;
  expect_bad(t, "float_data has 16 bytes instead of 8");
  set_raw(a, t, "abcdefgh", 8);
  expect_bad(t, "has both raw_data and float_data");
  t = vector(15, 1);
  t->n_double_data = 2;
  t->double_data = (double[]){5, 6};
  l = decode_good(t);
  ck_assert(literal_f64(&l, 0) == 5);
}
END_TEST

START_TEST(types_and_dims) {
  literal l;
  expect_bad(vector(0, 0), "has no element type");
  expect(decode(vector(99, 0), &l), STATUS_UNSUPPORTED, "unknown element type 99");
  expect(decode(vector(-5, 0), &l), STATUS_UNSUPPORTED, "unknown element type -5");
  expect(decode(vector(8, 0), &l), STATUS_UNSUPPORTED, "strings");
  expect_bad(vector(1, -1), "dimension 0 is -1");
  expect_bad(vector(1, INT64_MAX), "its shape");
  expect(decode(new_tensor(a, "t", 1, 2, (int64_t[]){(int64_t)1 << 55, 4}), &l), STATUS_RESOURCE, "2^56");
  int64_t *ones = ARENA_NEW_N(a, int64_t, 1000000);
  expect(decode(new_tensor(a, "t", 1, 1000000, ones), &l), STATUS_UNSUPPORTED, "1000000 dimensions");
  Onnx__TensorProto *t = vector(1, 0);
  t->segment = PB_NEW(a, Onnx__TensorProto__Segment, ONNX__TENSOR_PROTO__SEGMENT__INIT);
  expect(decode(t, &l), STATUS_UNSUPPORTED, "segment");
}
END_TEST

/* --- sparse tensors --- */

static Onnx__TensorProto *int64_tensor(size_t rank, const int64_t *dims, size_t n, const int64_t *values) {
  Onnx__TensorProto *t = new_tensor(a, "", 7, rank, dims);
  t->n_int64_data = n;
  t->int64_data = arena_memdup(a, values, n * sizeof *values);
  return t;
}

START_TEST(sparse) {
  Onnx__SparseTensorProto *s = PB_NEW(a, Onnx__SparseTensorProto, ONNX__SPARSE_TENSOR_PROTO__INIT);
  literal l;
  decode_call c = {s, true, &l};
  expect(guard_run(call_decode, &c), STATUS_INVALID_MODEL, "no values");
  s->values = raw_vector(2, 2, "\5\7", 2);
  s->n_dims = 2;
  s->dims = (int64_t[]){2, 3};
  expect(guard_run(call_decode, &c), STATUS_INVALID_MODEL, "no indices");
  s->indices = int64_tensor(1, (int64_t[]){2}, 2, (int64_t[]){1, 5});
  ck_assert_ptr_null(guard_run(call_decode, &c));
  ck_assert_mem_eq(l.data, "\0\5\0\0\0\7", 6);
  s->indices = int64_tensor(2, (int64_t[]){2, 2}, 4, (int64_t[]){0, 1, 1, 2});
  ck_assert_ptr_null(guard_run(call_decode, &c));
  ck_assert_mem_eq(l.data, "\0\5\0\0\0\7", 6);
  s->indices->int64_data[3] = 3;
  expect(guard_run(call_decode, &c), STATUS_INVALID_MODEL, "index 1 is 3 in dimension 1, which has 3");
  s->indices = int64_tensor(1, (int64_t[]){2}, 2, (int64_t[]){1, 6});
  expect(guard_run(call_decode, &c), STATUS_INVALID_MODEL, "index 1 is 6, outside");
  s->indices->int64_data[1] = -1;
  expect(guard_run(call_decode, &c), STATUS_INVALID_MODEL, "outside");
  s->indices->int64_data[1] = 1;
  expect(guard_run(call_decode, &c), STATUS_INVALID_MODEL, "not greater than");
  s->indices = int64_tensor(1, (int64_t[]){3}, 3, (int64_t[]){1, 2, 3});
  expect(guard_run(call_decode, &c), STATUS_INVALID_MODEL, "the indices are");
}
END_TEST

/* --- .pb --- */

START_TEST(pb_round_trip) {
  for (int t = 1; t < DTYPE_COUNT; t++) {
    const dtype_info *info = dtype_get_info(t);
    if (t == DTYPE_STR) {
      continue;
    }
    void *data;
    literal l = literal_new(a, shape_make(t, 2, (dim[]){3, 5}), &data), back;
    for (size_t i = 0; i < 15u * info->bytes; i++) {
      ((uint8_t *)data)[i] = (uint8_t)(i & 1);
    }
    uint8_t *bytes;
    size_t size;
    const char *name;
    ck_assert_ptr_null(onnx_tensor_to_pb(a, "out", &l, NULL, &bytes, &size));
    ck_assert_ptr_null(onnx_tensor_parse_pb(a, "x.pb", bytes, size, NULL, &name, &back));
    ck_assert_str_eq(name, "out");
    ck_assert_msg(literal_equal(&l, &back), "%s", info->name);
  }
}
END_TEST

START_TEST(strings_of_a_pb) {
  string_table *t = string_table_create(a, NULL), *again = string_table_create(a, NULL);
  uint64_t numbers[] = {string_table_add(t, "one", 3), 0, string_table_add(t, "t\0wo", 4), 1};
  literal l = literal_make(shape_make(DTYPE_STR, 2, (dim[]){2, 2}), numbers), back;
  uint8_t *bytes;
  size_t size;
  const char *name;
  ck_assert_ptr_null(onnx_tensor_to_pb(a, "out", &l, t, &bytes, &size));
  ck_assert_ptr_null(onnx_tensor_parse_pb(a, "x.pb", bytes, size, again, &name, &back));
  ck_assert(literal_equal(&l, &back));
  ck_assert_mem_eq(string_table_text(again, 2, &size), "t\0wo", 5);
  numbers[1] = 7;
  expect(onnx_tensor_to_pb(a, "out", &l, t, &bytes, &size), STATUS_INVALID_ARGUMENT, "out: there is no string 7");
  expect(onnx_tensor_to_pb(a, "out", &l, NULL, &bytes, &size), STATUS_UNSUPPORTED, "strings cannot be written");
}
END_TEST

START_TEST(large_pb_file) {
  void *data;
  literal l = literal_new(a, shape_make(DTYPE_F32, 1, (dim[]){1000}), &data), back;
  memset(data, 7, 4000);
  uint8_t *bytes;
  size_t size;
  const char *name;
  ck_assert_ptr_null(onnx_tensor_to_pb(a, "", &l, NULL, &bytes, &size));
  char path[] = "check_tensor.XXXXXX";
  close(mkstemp(path));
  ck_assert_ptr_null(file_write(path, bytes, size));
  ck_assert_ptr_null(onnx_tensor_read_pb(a, path, NULL, &name, &back));
  ck_assert(literal_equal(&l, &back));
  unlink(path);
  expect(onnx_tensor_parse_pb(a, "x.pb", bytes, size - 1, NULL, &name, &back), STATUS_INVALID_FILE, "x.pb: byte");
}
END_TEST

/* --- external data --- */

static const char *in_folder(const char *name) { return arena_printf(a, "%s/%s", folder, name); }

static void write_file(const char *name, const char *text) {
  ck_assert_ptr_null(file_write(in_folder(name), text, strlen(text)));
}

static void setup_folder(void) {
  setup();
  strcpy(folder, "check_tensor.XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  ck_assert_int_eq(mkdir(in_folder("model"), 0700), 0);
  ck_assert_int_eq(mkdir(in_folder("model/sub"), 0700), 0);
  write_file("secret", "secret data");
  write_file("model/data", "0123456789abcdef");
  write_file("model/sub/data", "sub data");
  write_file("model/one", "12345678");
  ck_assert_int_eq(link(in_folder("model/one"), in_folder("model/hard")), 0);
  ck_assert_int_eq(symlink("data", in_folder("model/soft")), 0);
  ck_assert_int_eq(symlink("../secret", in_folder("model/out")), 0);
  ck_assert_int_eq(symlink("sub", in_folder("model/subsoft")), 0);
  ck_assert_int_eq(mkfifo(in_folder("model/pipe"), 0600), 0);
  ck_assert_ptr_null(onnx_folder_open(a, in_folder("model"), &source.folder));
}

static void teardown_folder(void) {
  static const char *const files[] = {"model/data", "model/sub/data", "model/one",  "model/hard", "model/soft",
                                      "model/out",  "model/subsoft",  "model/pipe", "secret"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    unlink(in_folder(files[i]));
  }
  rmdir(in_folder("model/sub"));
  rmdir(in_folder("model"));
  rmdir(folder);
  teardown();
}

static void add_pair(Onnx__TensorProto *t, const char *key, const char *value) {
  Onnx__StringStringEntryProto *pair = PB_NEW(a, Onnx__StringStringEntryProto, ONNX__STRING_STRING_ENTRY_PROTO__INIT);
  pair->key = arena_strdup(a, key);
  pair->value = arena_strdup(a, value);
  PB_ADD(a, t->external_data, t->n_external_data, pair);
}

/* Returns a tensor of n bytes of external data; an argument that is NULL leaves its key out. */
static Onnx__TensorProto *external(int64_t n, const char *location, const char *offset, const char *length) {
  Onnx__TensorProto *t = vector(2, n);
  t->has_data_location = 1;
  t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
  const char *keys[] = {"location", "offset", "length"}, *values[] = {location, offset, length};
  for (int i = 0; i < 3; i++) {
    if (values[i]) {
      add_pair(t, keys[i], values[i]);
    }
  }
  return t;
}

START_TEST(external_good) {
  if (_i) {
    onnx_folder_avoid_openat2(source.folder);
  }
  literal l = decode_good(external(16, "data", NULL, NULL));
  ck_assert_mem_eq(l.data, "0123456789abcdef", 16);
  literal m = decode_good(external(4, "data", "12", "4"));
  ck_assert(m.data == (const uint8_t *)l.data + 12);
  m = decode_good(external(8, "./sub/data", "0", "8"));
  ck_assert_mem_eq(m.data, "sub data", 8);
  Onnx__TensorProto *t = external(2, "data", NULL, NULL);
  add_pair(t, "__class__", "x");
  add_pair(t, "checksum", "0");
  decode_good(t);
}
END_TEST

START_TEST(external_locations) {
  if (_i) {
    onnx_folder_avoid_openat2(source.folder);
  }
  static const char *const bad[] = {
      "../secret", "/etc/passwd", "sub/../../secret", "junk/../../secret", "",      ".",
      "..",        "./..",        "..\\secret",       "sub//data",         "data/", "//data",
      "./",        "sub/./data"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    expect_bad(external(4, bad[i], NULL, NULL), "location");
  }
  char *longest = arena_alloc(a, 100001);
  memset(longest, 'a', 100000);
  expect_bad(external(4, longest, NULL, NULL), "100000 characters");
  literal l;
  longest[3000] = '\0';
  expect(decode(external(4, longest, NULL, NULL), &l), STATUS_IO, "cannot be opened");
  expect(decode(external(4, "missing", NULL, NULL), &l), STATUS_IO, "cannot be opened");
  expect_bad(external(4, "soft", NULL, NULL), "symbolic link");
  expect_bad(external(4, "out", NULL, NULL), "symbolic link");
  expect_bad(external(4, "subsoft/data", NULL, NULL), "symbolic link");
  expect_bad(external(4, "data/x", NULL, NULL), "symbolic link");
  expect_bad(external(4, "hard", NULL, NULL), "hard links");
  expect_bad(external(4, "pipe", NULL, NULL), "not a regular file");
  expect_bad(external(4, "sub", NULL, NULL), "not a regular file");
  expect_bad(external(4, NULL, NULL, NULL), "no location");
}
END_TEST

START_TEST(external_numbers) {
  literal l;
  static const char *const bad[] = {"-1", "",   "x", "1x", " 1", "0x10", "18446744073709551615", "99999999999999999999",
                                    "+1", "1e3"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    expect_bad(external(4, "data", bad[i], NULL), "has the offset");
    expect_bad(external(4, "data", "0", bad[i]), "has the length");
  }
  expect_bad(external(4, "data", "0", "5"), "has length 5, but type and dims ask for 4 bytes");
  expect(decode(external(4, "data", "13", "4"), &l), STATUS_INVALID_FILE, "too few");
  expect(decode(external(17, "data", NULL, NULL), &l), STATUS_INVALID_FILE, "too few");
  expect(decode(external(4, "data", "9223372036854775807", NULL), &l), STATUS_INVALID_FILE, "too few");
  Onnx__TensorProto *t = external(4, "data", "0", NULL);
  add_pair(t, "offset", "4");
  expect_bad(t, "gives \"offset\" twice");
  t = external(4, "data", NULL, NULL);
  set_raw(a, t, "abcd", 4);
  expect_bad(t, "has both external_data and raw_data");
  source.folder = NULL;
  expect_bad(external(4, "data", NULL, NULL), "a model in memory");
}
END_TEST

START_TEST(external_unaligned) {
  Onnx__TensorProto *t = external(2, "data", "1", NULL);
  t->data_type = 5;
  literal l = decode_good(t);
  ck_assert_uint_eq((uintptr_t)l.data % 2, 0);
  ck_assert_mem_eq(l.data, "1234", 4);
}
END_TEST

int main(void) {
  TCase *tests = tcase_create("tensor"), *files = tcase_create("external");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_checked_fixture(files, setup_folder, teardown_folder);
  tcase_add_test(tests, raw_data);
  tcase_add_test(tests, spans);
  tcase_add_test(tests, packed_types);
  tcase_add_test(tests, packed_six);
  tcase_add_test(tests, int32_fields);
  tcase_add_test(tests, other_fields);
  tcase_add_test(tests, types_and_dims);
  tcase_add_test(tests, sparse);
  tcase_add_test(tests, pb_round_trip);
  tcase_add_test(tests, large_pb_file);
  tcase_add_test(tests, strings_of_a_pb);
  tcase_add_loop_test(files, external_good, 0, 2);
  tcase_add_loop_test(files, external_locations, 0, 2);
  tcase_add_test(files, external_numbers);
  tcase_add_test(files, external_unaligned);
  int failed = run_suite("tensor", tests);
  return run_suite("tensor-files", files) || failed;
}
