/* check_protobuf_wire.c - protobuf's wire format: what is read, what is refused, and what is written. */
#include <check.h>

#include "base/protobuf_wire.h"
#include "tests/suite.h"

/* A copy of exactly n bytes on the heap, where a sanitizer notices a read beyond its end. */
typedef struct message {
  uint8_t *bytes;
  size_t n;
} message;

static message copy_of(const void *bytes, size_t n) {
  message m = {malloc(n ? n : 1), n};
  ck_assert_ptr_nonnull(m.bytes);
  memcpy(m.bytes, bytes, n);
  return m;
}

static pb_cursor all_of(const message *m) { return (pb_cursor){m->bytes, m->bytes + m->n}; }

static pb_error read_varint(const char *bytes, size_t n, uint64_t *value, size_t *used) {
  message m = copy_of(bytes, n);
  pb_cursor c = all_of(&m);
  pb_error wrong = pb_read_varint(&c, value);
  *used = (size_t)(c.at - m.bytes);
  free(m.bytes);
  return wrong;
}

/* The first three rows are from protobuf's documentation of its encoding. */
START_TEST(varints) {
  static const struct {
    const char *bytes;
    size_t n;
    uint64_t value;
  } rows[] = {
      {"\x96\x01", 2, 150},
      {"\x01", 1, 1},
      {"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, (uint64_t)-2},
      {"\x00", 1, 0},
      {"\x7f", 1, 127},
      {"\x80\x01", 2, 128},
      {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, UINT64_MAX},
      {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 10, UINT64_C(1) << 63},
      {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10, 0}, /* longer than it must be, as are the next two */
      {"\x80\x00", 2, 0},
      {"\x96\x81\x80\x00", 4, 150},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    uint64_t value = 7;
    size_t used;
    ck_assert_int_eq(read_varint(rows[k].bytes, rows[k].n, &value, &used), PB_OK);
    ck_assert_uint_eq(value, rows[k].value);
    ck_assert_uint_eq(used, rows[k].n);
    for (size_t n = 0; n < rows[k].n; n++) {
      value = 7;
      ck_assert_int_eq(read_varint(rows[k].bytes, n, &value, &used), PB_TRUNCATED);
      ck_assert_uint_eq(value, 7);
    }
  }
}
END_TEST

START_TEST(too_many_bits) {
  static const char *const rows[] = {
      "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02",     /* 2^64 */
      "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",     /* 70 bits */
      "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", /* 11 bytes */
      "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x81\x00",
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    uint64_t value = 7;
    size_t used;
    ck_assert_int_eq(read_varint(rows[k], 11, &value, &used), PB_OVERFLOW);
    ck_assert_uint_eq(value, 7);
  }
}
END_TEST

static pb_error read_field(const char *bytes, size_t n, pb_field *f) {
  message m = copy_of(bytes, n);
  pb_cursor c = all_of(&m);
  pb_error wrong = pb_read_tag(&c, f);
  wrong = wrong ? wrong : pb_read_value(&c, f);
  pb_cursor again = all_of(&m);
  ck_assert_int_eq(pb_next(&again, f), wrong == PB_OK);
  ck_assert_ptr_eq(again.at, wrong ? m.bytes : c.at);
  f->value = NULL; /* it pointed into m.bytes, which is freed */
  free(m.bytes);
  return wrong;
}

START_TEST(fields) {
  static const struct {
    const char *bytes;
    size_t n;
    uint64_t number;
    int wire_type;
    uint64_t size;
  } rows[] = {
      {"\x08\x96\x01", 3, 1, PB_VARINT, 2}, {"\x08\x96\x81\x00", 4, 1, PB_VARINT, 3},
      {"\x12\x07testing", 9, 2, PB_LEN, 7}, {"\x12\x00", 2, 2, PB_LEN, 0},
      {"\x12\x81\x00x", 4, 2, PB_LEN, 1},   {"\x19\1\2\3\4\5\6\7\x08", 9, 3, PB_I64, 8},
      {"\x25\1\2\3\4", 5, 4, PB_I32, 4},    {"\xf8\xff\xff\xff\x0f\x00", 6, PB_NUMBER_MAX, PB_VARINT, 1},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    pb_field f;
    ck_assert_int_eq(read_field(rows[k].bytes, rows[k].n, &f), PB_OK);
    ck_assert_uint_eq(f.number, rows[k].number);
    ck_assert_int_eq(f.wire_type, rows[k].wire_type);
    ck_assert_uint_eq(f.size, rows[k].size);
    for (size_t n = 0; n < rows[k].n; n++) {
      pb_error wrong = read_field(rows[k].bytes, n, &f);
      ck_assert(wrong == PB_TRUNCATED || wrong == PB_LENGTH);
    }
  }
}
END_TEST

START_TEST(no_fields) {
  static const struct {
    const char *bytes;
    size_t n;
    pb_error wrong;
  } rows[] = {
      {"", 0, PB_TRUNCATED},
      {"\x00\x01", 2, PB_NUMBER},
      {"\x02\x00", 2, PB_NUMBER},
      {"\x80\x80\x80\x80\x10\x00", 6, PB_NUMBER},                        /* 2^29 */
      {"\xf8\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", 11, PB_NUMBER},   /* 2^61 - 1 */
      {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x00", 11, PB_OVERFLOW}, /* the tag */
      {"\x3b\x3c", 2, PB_TYPE},                                          /* a group of number 7, */
      {"\x3c", 1, PB_TYPE},                                              /* and its end */
      {"\x3e\x00", 2, PB_TYPE},                                          /* 6 and 7 are no wire types */
      {"\x3f\x00", 2, PB_TYPE},
      {"\x3a", 1, PB_TRUNCATED},
      {"\x3a\x80", 2, PB_TRUNCATED},
      {"\x3a\x05xxxx", 6, PB_LENGTH},
      {"\x3a\x01", 2, PB_LENGTH},
      {"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x", 12, PB_LENGTH},   /* 2^64 - 1 bytes */
      {"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7fx", 11, PB_LENGTH},       /* 2^63 - 1 */
      {"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02x", 12, PB_OVERFLOW}, /* the length */
      {"\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11, PB_OVERFLOW},
      {"\x39\1\2\3\4\5\6\7", 8, PB_LENGTH},
      {"\x3d\1\2\3", 4, PB_LENGTH},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    pb_field f = {0};
    ck_assert_msg(read_field(rows[k].bytes, rows[k].n, &f) == rows[k].wrong, "row %zu", k);
  }
}
END_TEST

/* After an error, the field has the number, type or length that a message about it needs. */
START_TEST(errors_tell_numbers_types_and_lengths) {
  pb_field f;
  ck_assert_int_eq(read_field("\x80\x80\x80\x80\x10", 5, &f), PB_NUMBER);
  ck_assert_uint_eq(f.number, UINT64_C(1) << 29);
  ck_assert_int_eq(read_field("\x3e", 1, &f), PB_TYPE);
  ck_assert_uint_eq(f.number, 7);
  ck_assert_int_eq(f.wire_type, 6);
  ck_assert_int_eq(read_field("\x3a\x05\x00", 3, &f), PB_LENGTH);
  ck_assert_uint_eq(f.size, 5);
  ck_assert_int_eq(read_field("\x39\x05", 2, &f), PB_LENGTH);
  ck_assert_uint_eq(f.size, 8);
}
END_TEST

/* The bounds of an inner message are its own: a value in it must not reach into what follows the inner
 * message. */
START_TEST(nested) {
  /* 7 { 1: 5, 2: "ab" }, 1: 9 */
  message m = copy_of(
      "\x3a\x06\x08\x05\x12\x02"
      "ab\x08\x09",
      10);
  pb_cursor outer = all_of(&m);
  pb_field f;
  ck_assert(pb_next(&outer, &f) && f.number == 7);
  pb_cursor inner = pb_value(&f);
  uint64_t value;
  ck_assert(pb_next(&inner, &f) && f.number == 1);
  pb_cursor number = pb_value(&f);
  ck_assert(pb_read_varint(&number, &value) == PB_OK && value == 5 && number.at == number.end);
  ck_assert(pb_next(&inner, &f) && f.number == 2 && f.size == 2 && memcmp(f.value, "ab", 2) == 0);
  ck_assert(!pb_next(&inner, &f) && inner.at == inner.end);
  ck_assert(pb_next(&outer, &f) && f.number == 1 && !pb_next(&outer, &f) && outer.at == outer.end);
  m.bytes[5] = 3; /* the length of "ab" now includes the next byte */
  outer = all_of(&m);
  ck_assert(pb_next(&outer, &f));
  inner = pb_value(&f);
  ck_assert(pb_next(&inner, &f) && !pb_next(&inner, &f) && inner.at == m.bytes + 4);
  free(m.bytes);
}
END_TEST

START_TEST(known_bytes) {
  pb_writer w = {0}, inner = {0};
  pb_put_int(&w, 1, 150);
  pb_put_text(&w, 2, "testing");
  pb_put_int(&inner, 1, 150);
  pb_put_message(&w, 3, &inner);
  pb_put_float(&w, 16, 1);
  pb_put_int(&w, 1, -2);
  static const char expected[] =
      "\x08\x96\x01\x12\x07testing\x1a\x03\x08\x96\x01\x85\x01\0\0\x80\x3f"
      "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01";
  ck_assert_uint_eq(w.n, sizeof expected - 1);
  ck_assert_mem_eq(w.bytes, expected, w.n);
  ck_assert(!w.failed && !inner.bytes && !inner.n);
  pb_free(&w);
  ck_assert(!w.bytes && !w.n && !w.capacity);
}
END_TEST

START_TEST(padded_varints) {
  uint8_t out[16];
  ck_assert_uint_eq(pb_encode_varint(out, 150, 0), 2);
  ck_assert_uint_eq(pb_encode_varint(out, 150, 1), 2);
  ck_assert_uint_eq(pb_encode_varint(out, 150, 5), 5);
  ck_assert_mem_eq(out, "\x96\x81\x80\x80\x00", 5);
  ck_assert_uint_eq(pb_encode_varint(out, 0, 3), 3);
  ck_assert_mem_eq(out, "\x80\x80\x00", 3);
  ck_assert_uint_eq(pb_encode_varint(out, UINT64_MAX, 0), PB_VARINT_MAX);
}
END_TEST

/* All lengths of a varint, written on the heap, into fixed memory, and only counted. */
START_TEST(written_and_read_again) {
  pb_writer grown = {0}, counted = {.fixed = true};
  uint8_t memory[2048];
  pb_writer fixed = {.bytes = memory, .capacity = sizeof memory, .fixed = true};
  pb_writer *const all[] = {&grown, &counted, &fixed};
  for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
    for (int bit = 0; bit < 64; bit++) {
      pb_put_int(all[k], (uint32_t)1 << bit % 29, (int64_t)(UINT64_C(1) << bit));
      pb_put_bytes(all[k], PB_NUMBER_MAX, "bytes", (size_t)bit % 6);
    }
  }
  ck_assert_uint_eq(grown.n, counted.n);
  ck_assert_uint_eq(grown.n, fixed.n);
  ck_assert_mem_eq(grown.bytes, fixed.bytes, grown.n);
  pb_cursor c = {grown.bytes, grown.bytes + grown.n};
  for (int bit = 0; bit < 64; bit++) {
    pb_field f;
    uint64_t value;
    ck_assert(pb_next(&c, &f) && f.number == (uint64_t)1 << bit % 29 && f.wire_type == PB_VARINT);
    pb_cursor number = pb_value(&f);
    ck_assert(pb_read_varint(&number, &value) == PB_OK && value == UINT64_C(1) << bit);
    ck_assert(pb_next(&c, &f) && f.number == PB_NUMBER_MAX && f.wire_type == PB_LEN);
    ck_assert(f.size == (uint64_t)bit % 6 && memcmp(f.value, "bytes", f.size) == 0);
  }
  ck_assert_ptr_eq(c.at, c.end);
  pb_free(&grown);
}
END_TEST

/* What does not fit is counted, and nothing after it is written, though it would fit. */
START_TEST(fixed_memory_is_never_exceeded) {
  uint8_t memory[8];
  memset(memory, 0xee, sizeof memory);
  pb_writer w = {.bytes = memory, .capacity = 4, .fixed = true};
  pb_put(&w, "abc", 3);
  pb_put(&w, "de", 2);
  pb_put(&w, "f", 1);
  pb_put(&w, NULL, 0);
  ck_assert_uint_eq(w.n, 6);
  ck_assert_mem_eq(memory, "abc\xee\xee\xee\xee\xee", 8);
}
END_TEST

/* Adding an inner message that has failed, here by an allocation, makes the outer one fail and frees the inner one. */
START_TEST(failure_passes_outwards) {
  pb_writer w = {0}, inner = {.failed = true};
  pb_put_int(&w, 1, 1);
  pb_put_int(&inner, 1, 1);
  ck_assert(inner.failed && inner.n == 0);
  pb_put_message(&w, 2, &inner);
  ck_assert(w.failed && !inner.failed);
  pb_free(&w);
}
END_TEST

int main(void) {
  TCase *tests = tcase_create("protobuf_wire");
  tcase_add_test(tests, varints);
  tcase_add_test(tests, too_many_bits);
  tcase_add_test(tests, fields);
  tcase_add_test(tests, no_fields);
  tcase_add_test(tests, errors_tell_numbers_types_and_lengths);
  tcase_add_test(tests, nested);
  tcase_add_test(tests, known_bytes);
  tcase_add_test(tests, padded_varints);
  tcase_add_test(tests, written_and_read_again);
  tcase_add_test(tests, fixed_memory_is_never_exceeded);
  tcase_add_test(tests, failure_passes_outwards);
  return run_suite("protobuf_wire", tests);
}
