/* check_wire_scan.c - tests which payloads the wire scan cuts out and which messages it refuses. */
#include <check.h>
#include <stdlib.h>

#include "frontend/model/wire_scan.h"
#include "tests/suite.h"
#include "tests/unit/frontend/build_model.h"

static arena *a;

static void setup(void) { a = arena_create(NULL); }

static void teardown(void) { arena_destroy(a); }

typedef struct parse_call {
  arena *a;
  const ProtobufCMessageDescriptor *type;
  const void *bytes;
  size_t size;
  ProtobufCMessage *out;
} parse_call;

static status call_parse(void *data) {
  parse_call *c = data;
  return onnx_wire_parse(c->a, c->type, c->bytes, c->size, &c->out);
}

/* Parses a heap copy of exactly that size, so that AddressSanitizer finds reads beyond its end, and frees the copy. */
static status parse(const ProtobufCMessageDescriptor *type, const void *bytes, size_t size, void *out) {
  uint8_t *copy = malloc(size ? size : 1);
  memcpy(copy, bytes, size);
  parse_call c = {a, type, copy, size, NULL};
  status s = guard_run(call_parse, &c);
  *(ProtobufCMessage **)out = c.out;
  free(copy);
  return s;
}

#define MODEL &onnx__model_proto__descriptor
#define TENSOR &onnx__tensor_proto__descriptor

static void expect_failure(const ProtobufCMessageDescriptor *type, const wire *w, const char *part) {
  ProtobufCMessage *m;
  status s = parse(type, w->bytes, w->n, &m);
  ck_assert_msg(status_get_code(s) == STATUS_INVALID_FILE && strstr(status_message(s), part), "\"%s\" lacks \"%s\"",
                status_message(s), part);
  status_free(s);
}

static Onnx__ModelProto *sample(void) {
  Onnx__ModelProto *m = new_model(a, "x", "y");
  Onnx__NodeProto *node = graph_node(a, m->graph, "Conv", "x,w", "y");
  Onnx__AttributeProto *t = add_attribute(a, node, "pads");
  t->n_ints = 3;
  t->ints = arena_memdup(a, (int64_t[]){-1, 300, INT64_MIN}, 24);
  Onnx__TensorProto *w = new_tensor(a, "w", 1, 1, (int64_t[]){500});
  float data[500];
  for (int i = 0; i < 500; i++) {
    data[i] = (float)i;
  }
  set_raw(a, w, data, sizeof data);
  PB_ADD(a, m->graph->initializer, m->graph->n_initializer, w);
  Onnx__TensorProto *f = new_tensor(a, "f", 1, 1, (int64_t[]){500});
  f->n_float_data = 500;
  f->float_data = arena_memdup(a, data, sizeof data);
  PB_ADD(a, m->graph->initializer, m->graph->n_initializer, f);
  Onnx__TensorProto *small = new_tensor(a, "s", 1, 1, (int64_t[]){2});
  set_raw(a, small, data, 8);
  PB_ADD(a, m->graph->initializer, m->graph->n_initializer, small);
  return m;
}

START_TEST(large_data_is_cut) {
  size_t size;
  uint8_t *bytes = pack(a, sample(), &size);
  Onnx__ModelProto *m;
  ck_assert_ptr_null(parse(MODEL, bytes, size, &m));
  ck_assert_int_eq((int)m->graph->n_initializer, 3);
  for (int i = 0; i < 2; i++) {
    const Onnx__TensorProto *t = m->graph->initializer[i];
    ck_assert_int_eq((int)t->span_field, i == 0 ? 9 : 4);
    ck_assert_uint_eq(t->span_length, 2000);
    ck_assert_uint_le(t->span_offset, size - 2000);
    float value;
    memcpy(&value, bytes + t->span_offset + 499 * 4, 4);
    ck_assert(value == 499);
    ck_assert(!t->has_raw_data && !t->n_float_data);
  }
  const Onnx__TensorProto *small = m->graph->initializer[2];
  ck_assert(!small->has_span_field);
  ck_assert_uint_eq(small->raw_data.len, 8);
  ck_assert_str_eq(m->graph->node[0]->attribute[0]->name, "pads");
  ck_assert(m->graph->node[0]->attribute[0]->ints[2] == INT64_MIN);
}
END_TEST

START_TEST(absent_strings_are_empty) {
  wire w = {0};
  wire_bytes(&w, 7, "", 0);
  Onnx__ModelProto *m;
  ck_assert_ptr_null(parse(MODEL, w.bytes, w.n, &m));
  ck_assert_str_eq(m->producer_name, "");
  ck_assert_str_eq(m->graph->name, "");
}
END_TEST

START_TEST(unknown_and_private_fields_are_dropped) {
  wire w = {0};
  wire_bytes(&w, 99, "abc", 3);
  wire_tag(&w, 98, 0);
  wire_varint(&w, UINT64_MAX);
  wire_tag(&w, 100001, 0);
  wire_varint(&w, 9);
  wire_tag(&w, 100003, 0);
  wire_varint(&w, 123456);
  wire_bytes(&w, 8, "t", 1);
  Onnx__TensorProto *t;
  ck_assert_ptr_null(parse(TENSOR, w.bytes, w.n, &t));
  ck_assert(!t->has_span_field && !t->has_span_length && !t->base.n_unknown_fields);
  ck_assert_str_eq(t->name, "t");
}
END_TEST

START_TEST(packed_or_not) {
  wire w = {0};
  wire_bytes(&w, 1, "\1\2\3", 3); /* dims, packed although the field is not declared as packed */
  wire_tag(&w, 1, 0);
  wire_varint(&w, 4);
  wire_tag(&w, 7, 0); /* int64_data, not packed although the field is declared as packed */
  wire_varint(&w, 5);
  wire_bytes(&w, 7, "\6\7", 2);
  Onnx__TensorProto *t;
  ck_assert_ptr_null(parse(TENSOR, w.bytes, w.n, &t));
  ck_assert_uint_eq(t->n_dims, 4);
  ck_assert_int_eq(t->dims[3], 4);
  ck_assert_uint_eq(t->n_int64_data, 3);
  ck_assert_int_eq(t->int64_data[2], 7);
}
END_TEST

START_TEST(refusals) {
  wire w = {0};
  w.n = 12;
  memset(w.bytes, 0xff, 12);
  expect_failure(MODEL, &w, "a number of more than 64 bits");
  w = (wire){{0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x81, 0}, 12};
  expect_failure(MODEL, &w, "a number of more than");
  w = (wire){{0x08, 0x80}, 2};
  expect_failure(MODEL, &w, "ends inside a number");
  w = (wire){{0x00, 0x01}, 2};
  expect_failure(MODEL, &w, "field number 0");
  w = (wire){{0x3b, 0x3c}, 2};
  expect_failure(MODEL, &w, "wire type 3");
  w = (wire){{0x9e, 0x06}, 2};
  expect_failure(MODEL, &w, "wire type 6");
  w = (wire){{0x3a, 0x05, 0}, 3};
  expect_failure(MODEL, &w, "graph: graph is 5 bytes long, but only 1 are left in ModelProto");
  w = (wire){{0x38, 0x05}, 2};
  expect_failure(MODEL, &w, "graph: wire type 0, but the field has wire type 2");
  w = (wire){{0x0a, 0x01, 0}, 3};
  expect_failure(MODEL, &w, "ir_version: wire type 2, but the field has wire type 0");
  w = (wire){{0x3a, 0, 0x3a, 0}, 4};
  expect_failure(MODEL, &w, "graph: the message is given twice");
  w = (wire){{0x12, 3, 'a', 0, 'b'}, 5};
  expect_failure(MODEL, &w, "byte 3, producer_name: the string is not UTF-8 or contains NUL");
  w = (wire){{0x12, 2, 0xc0, 0x80}, 4};
  expect_failure(MODEL, &w, "UTF-8");
  w = (wire){{0x12, 3, 0xed, 0xa0, 0x80}, 5};
  expect_failure(MODEL, &w, "UTF-8");
  w = (wire){{0x12, 1, 0xc3}, 3};
  expect_failure(MODEL, &w, "UTF-8");
  w = (wire){{0x22, 3, 0, 0, 0}, 5};
  expect_failure(TENSOR, &w, "float_data[0]: a list of 3 bytes does not hold whole elements");
  w = (wire){{0x0a, 2, 1, 0x80}, 4};
  expect_failure(TENSOR, &w, "dims[0]: element 1 of the list: ends inside a number");
}
END_TEST

START_TEST(text_may_be_any_utf8) {
  wire w = {0};
  const char *text = "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\n";
  wire_bytes(&w, 2, text, strlen(text));
  wire_bytes(&w, 6, "\xff\0", 2); /* doc_string may contain any bytes */
  Onnx__ModelProto *m;
  ck_assert_ptr_null(parse(MODEL, w.bytes, w.n, &m));
  ck_assert_str_eq(m->producer_name, text);
}
END_TEST

START_TEST(pieces) {
  wire w = {0};
  uint8_t data[1024] = {0};
  wire_bytes(&w, 9, data, 4);
  wire_bytes(&w, 9, data, 4);
  expect_failure(TENSOR, &w, "raw_data: the tensor has its elements in more than one piece");
  w.n = 0;
  wire_bytes(&w, 4, data, 4);
  wire_bytes(&w, 4, data, 1024);
  expect_failure(TENSOR, &w, "more than one piece");
  w.n = 0;
  wire_bytes(&w, 4, data, 4);
  wire_bytes(&w, 4, data, 4);
  Onnx__TensorProto *t;
  ck_assert_ptr_null(parse(TENSOR, w.bytes, w.n, &t));
  ck_assert_uint_eq(t->n_float_data, 2);
}
END_TEST

/* Returns a model whose graphs nest `depth` messages deep: GraphProto.node, NodeProto.attribute, AttributeProto.g, and
 * so on. */
static uint8_t *nest(int depth, size_t *size) {
  static const uint8_t tags[] = {0x3a, 0x0a, 0x2a, 0x32}; /* the tags of ModelProto.graph, then node, attribute and g */
  size_t room = (size_t)depth * 6, at = room;
  uint8_t *bytes = malloc(room);
  for (int i = depth - 1; i >= 0; i--) {
    uint8_t head[6];
    size_t length = room - at, n = 0;
    head[n++] = i == 0 ? tags[0] : tags[1 + (i - 1) % 3];
    n += pb_encode_varint(head + n, length, 0);
    at -= n;
    memcpy(bytes + at, head, n);
  }
  memmove(bytes, bytes + at, room - at);
  *size = room - at;
  return bytes;
}

START_TEST(nesting) {
  static const int depths[] = {1, 2, 98, 99, 100, 101, 10000, 100000};
  for (size_t i = 0; i < sizeof depths / sizeof *depths; i++) {
    size_t size;
    uint8_t *bytes = nest(depths[i], &size);
    ProtobufCMessage *m;
    status s = parse(MODEL, bytes, size, &m);
    if (depths[i] < ONNX_WIRE_MAX_DEPTH) {
      ck_assert_msg(!s, "%s", status_message(s));
    } else {
      ck_assert_int_eq(status_get_code(s), STATUS_INVALID_FILE);
      ck_assert_ptr_nonnull(strstr(status_message(s), "nested more than 100 deep"));
    }
    status_free(s);
    free(bytes);
  }
}
END_TEST

START_TEST(truncated_everywhere) {
  size_t size;
  uint8_t *bytes = pack(a, sample(), &size);
  for (size_t n = 0; n < size; n++) {
    ProtobufCMessage *m;
    status_free(parse(MODEL, bytes, n, &m));
  }
}
END_TEST

/* A pseudorandom generator with a fixed seed, so that failures can be repeated. */
static uint32_t next(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

START_TEST(bit_flips) {
  size_t size;
  uint8_t *bytes = pack(a, sample(), &size);
  uint32_t state = 1;
  for (int i = 0; i < 1000; i++) {
    uint8_t *copy = malloc(size);
    memcpy(copy, bytes, size);
    for (uint32_t flips = next(&state) % 4; flips != UINT32_MAX; flips--) {
      /* Half of the changed bytes are among the first 100, since most others are payload, which the scan does not read.
       */
      copy[next(&state) % 2 ? next(&state) % 100 : next(&state) % size] ^= (uint8_t)(1 << next(&state) % 8);
    }
    ProtobufCMessage *m;
    status s = parse(MODEL, copy, size, &m);
    ck_assert(status_get_code(s) != STATUS_INTERNAL);
    status_free(s);
    free(copy);
  }
}
END_TEST

START_TEST(memory_is_bounded) {
  enum { N = 200000 };
  uint8_t *bytes = malloc(2 * N + 4);
  wire head = {0};
  wire_tag(&head, 7, 2);
  wire_varint(&head, 2 * N);
  memcpy(bytes, head.bytes, head.n);
  for (int i = 0; i < N; i++) {
    memcpy(bytes + head.n + 2 * i, "\x0a\0", 2); /* an empty node */
  }
  mem_budget budget = {.limit = 8 << 20};
  arena *small = arena_create(&budget);
  parse_call c = {small, MODEL, bytes, head.n + 2 * N, NULL};
  status s = guard_run(call_parse, &c);
  ck_assert_int_eq(status_get_code(s), STATUS_RESOURCE);
  ck_assert_ptr_nonnull(strstr(status_message(s), "memory limit"));
  status_free(s);
  arena_destroy(small);
  ck_assert_uint_eq(budget.used, 0);

  budget.limit = 0;
  small = arena_create(&budget);
  c.a = small;
  ck_assert_ptr_null(guard_run(call_parse, &c));
  ck_assert_uint_eq(((Onnx__ModelProto *)c.out)->graph->n_node, N);
  arena_destroy(small);
  ck_assert_uint_eq(budget.used, 0);
  free(bytes);
}
END_TEST

int main(void) {
  TCase *tests = tcase_create("wire_scan");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, large_data_is_cut);
  tcase_add_test(tests, absent_strings_are_empty);
  tcase_add_test(tests, unknown_and_private_fields_are_dropped);
  tcase_add_test(tests, packed_or_not);
  tcase_add_test(tests, refusals);
  tcase_add_test(tests, text_may_be_any_utf8);
  tcase_add_test(tests, pieces);
  tcase_add_test(tests, nesting);
  tcase_add_test(tests, truncated_everywhere);
  tcase_add_test(tests, bit_flips);
  tcase_add_test(tests, memory_is_bounded);
  return run_suite("wire_scan", tests);
}
