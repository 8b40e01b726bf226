/* check_hlo_text.c - tests the printer and the parser of HLO text: round trips of every operation, which texts are
 * refused with which messages, and damaged texts.  tests/hlo/text/all-ops.expected is the text with every operation. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/text/text.h"
#include "hlo/text/verify.h"
#include "tests/suite.h"

static arena *memory;
static mem_budget budget;

static void setup(void) {
  budget = (mem_budget){.limit = (uint64_t)256 << 20};
  memory = arena_create(&budget);
}

static void teardown(void) { arena_destroy(memory); }

static char *read_sample(size_t *n) {
  const char *root = getenv("top_srcdir");
  char path[4096];
  snprintf(path, sizeof path, "%s/tests/hlo/text/all-ops.expected", root ? root : ".");
  FILE *f = fopen(path, "rb");
  ck_assert_msg(f != NULL, "%s cannot be opened", path);
  char *text = malloc(1 << 20);
  *n = fread(text, 1, (1 << 20) - 1, f);
  text[*n] = '\0';
  fclose(f);
  return text;
}

static void no_error(status s) { ck_assert_msg(!s, "%s", status_message(s)); }

/* Fails unless s is a failure whose message contains `words`.  Frees s. */
static void expect_error(status s, const char *words) {
  ck_assert_msg(s != NULL, "no failure, but expected: %s", words);
  ck_assert_msg(strstr(status_message(s), words) != NULL, "message: %s\nexpected: %s", status_message(s), words);
  status_free(s);
}

static hlo_module *parse(const char *text) {
  hlo_module *m = NULL;
  no_error(hlo_parse(memory, text, strlen(text), NULL, &m));
  return m;
}

static const char *print(const hlo_module *m, const hlo_print_options *options) {
  const char *text = NULL;
  no_error(hlo_print(memory, m, options, &text, NULL));
  return text;
}

/* Returns the text of a module whose entry has these parameters and lines. */
static const char *in_module(const char *params, const char *lines) {
  return arena_printf(memory, "onnx-xla hlo 1\nmodule \"t\" {\n  entry main(%s) {\n%s\n  }\n}\n", params, lines);
}

START_TEST(round_trip_of_every_operation) {
  size_t n = 0;
  char *sample = read_sample(&n);
  hlo_module *m = parse(sample);
  ck_assert_str_eq(print(m, NULL), sample);
  for (int op = 0; op < HLO_OP_COUNT; op++) {
    const char *call = arena_printf(memory, " %s(", hlo_op_get_info((hlo_op)op)->name);
    ck_assert_msg(op == HLO_PARAMETER || strstr(sample, call), "%s is missing in the sample", call);
  }
  for (int id = 0; id < HLO_ATTR_COUNT; id++) {
    const char *name = hlo_attr_get_info((hlo_attr_id)id)->name;
    ck_assert_msg(id == HLO_ATTR_INDEX || strstr(sample, name), "%s is missing in the sample", name);
  }
  free(sample);
}
END_TEST

START_TEST(copies_print_alike) {
  size_t n = 0;
  char *sample = read_sample(&n);
  hlo_module *copy = hlo_module_clone(memory, parse(sample));
  no_error(hlo_verify(copy));
  ck_assert_uint_eq(hlo_module_hash(copy), hlo_module_hash(parse(print(copy, NULL))));
  free(sample);
}
END_TEST

/* Two equal dots, of which the first has a config. */
static const char assigned[] =
    "onnx-xla hlo 1\nmodule \"t\" kernels_assigned {\n  entry main(%0: f32[4,4]) {\n"
    "    %1 = dot(%0, %0) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[4,4] "
    "config=\"gemm:8x48\" @\"a\"\n"
    "    %2 = dot(%0, %0) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[4,4]\n"
    "    return %1, %2\n  }\n}\n";

START_TEST(configs_are_part_of_an_instruction) {
  hlo_module *m = parse(assigned), *copy = hlo_module_clone(memory, m);
  hlo_instr *first = m->entry->roots[0].def, *second = m->entry->roots[1].def;
  ck_assert_str_eq(print(m, NULL), assigned);
  ck_assert_str_eq(print(copy, NULL), assigned);
  ck_assert(!hlo_same_operation(first, second));
  ck_assert(hlo_operation_hash(first) != hlo_operation_hash(second));
  second->config = "gemm:8x48";
  ck_assert(hlo_same_operation(first, second));
  ck_assert_uint_eq(hlo_operation_hash(first), hlo_operation_hash(second));
  ck_assert(hlo_module_hash(m) != hlo_module_hash(copy));
  second->config = "";
  m->kernels_assigned = false;
  ck_assert(hlo_module_hash(m) != hlo_module_hash(copy));
}
END_TEST

START_TEST(comments_names_and_any_order_of_attributes) {
  const char *text = in_module("%x: f32[4,batch] /*no*/", "");
  hlo_module *m = NULL;
  expect_error(hlo_parse(memory, text, strlen(text), NULL, &m), "3:31: ',' is expected instead of '/*no*/'");
  m = parse(in_module("%x: f32[4,batch] // a comment\n ",
                      "// another // one\n %sum = reduce( %x ) { reducer = add,"
                      "dimensions = [ 0 ] } : f32[batch] @\"n\" // last\n return %sum \"y\""));
  ck_assert_str_eq(
      print(m, NULL),
      "onnx-xla hlo 1\nmodule \"t\" {\n  entry main(%0: f32[4,batch]) {\n"
      "    %1 = reduce(%0) {dimensions=[0], reducer=add} : f32[batch] @\"n\"\n    return %1 \"y\"\n  }\n}\n");
  ck_assert_str_eq(print(m, &(hlo_print_options){.no_sources = true}),
                   "onnx-xla hlo 1\nmodule \"t\" {\n  entry main(%0: f32[4,batch]) {\n"
                   "    %1 = reduce(%0) {dimensions=[0], reducer=add} : f32[batch]\n    return %1 \"y\"\n  }\n}\n");
  ck_assert_str_eq(hlo_instr_text(memory, m->entry->last),
                   "%1 = reduce(%0) {dimensions=[0], reducer=add} : f32[batch] @\"n\"");
}
END_TEST

/* --- large constants --- */

enum { LARGE = 1000 };

/* Returns a module whose result is the constant. */
static hlo_module *with_constant(literal l) {
  hlo_module *m = hlo_module_create(memory, "constant");
  m->entry = hlo_computation_create(m, "main");
  hlo_instr *i = hlo_instr_create(m->entry, NULL, HLO_CONSTANT, 0, NULL, 1);
  i->attrs[0].value = arena_memdup(memory, &l, sizeof l);
  no_error(hlo_infer(i));
  hlo_value root = hlo_result(i, 0);
  hlo_set_roots(m->entry, 1, &root);
  return m;
}

static hlo_module *with_large_constant(void) {
  void *data = NULL;
  dim n = LARGE;
  literal l = literal_new(memory, shape_make(DTYPE_F32, 1, &n), &data);
  for (int k = 0; k < LARGE; k++) {
    ((float *)data)[k] = (float)k / 7;
  }
  return with_constant(l);
}

static status keep_blob(void *data, const literal *l, uint64_t *number) {
  *(const literal **)data = l;
  *number = 42;
  return NULL;
}

static status give_blob(void *data, uint64_t number, const shape *s, const void **bytes) {
  const literal *l = data;
  CHECK_THAT(number == 42 && shape_equal(s, &l->shape), STATUS_INVALID_FILE, "there is no blob %d", (int)number);
  *bytes = l->data;
  return NULL;
}

START_TEST(large_constants_in_full) {
  hlo_module *m = with_large_constant();
  const char *text = print(m, NULL);
  ck_assert_ptr_nonnull(strstr(text, "f32[1000] base64 \""));
  hlo_module *again = parse(text);
  ck_assert(literal_equal(hlo_literal(m->entry->roots[0]), hlo_literal(again->entry->roots[0])));
  ck_assert_str_eq(print(again, NULL), text);
  text = print(m, &(hlo_print_options){.small_elements = LARGE});
  ck_assert_ptr_nonnull(strstr(text, "{0, 0.14285715, 0.2857143, "));
  again = parse(text);
  ck_assert(literal_equal(hlo_literal(m->entry->roots[0]), hlo_literal(again->entry->roots[0])));
}
END_TEST

/* A constant of each type as base64, whose elements have many different bit patterns. */
START_TEST(base64_of_each_type) {
  enum { N = 256 };
  for (dtype t = DTYPE_INVALID + 1; t < DTYPE_COUNT; t++) {
    void *data;
    dim n = N;
    literal l = literal_new(memory, shape_make(t, 1, &n), &data);
    unsigned char *bytes = data;
    size_t size = dtype_bytes(t), unused = 8 * size - (size_t)dtype_get_info(t)->bits;
    for (size_t k = 0; k < N * size; k++) {
      bytes[k] = (unsigned char)(k & (0xffu >> (unused < 8 ? unused : 0)));
      if (size == 1 && !dtype_is_float(t)) { /* sets the unused bits, such as the copies of the sign of an s4 */
        dtype_store_i64(t, &bytes[k], dtype_load_i64(t, &bytes[k]));
      }
    }
    hlo_module *m = with_constant(l);
    const char *text = print(m, NULL);
    ck_assert_msg(strstr(text, "base64") != NULL, "%s", text);
    ck_assert(literal_equal(hlo_literal(m->entry->roots[0]), hlo_literal(parse(text)->entry->roots[0])));
  }
}
END_TEST

START_TEST(large_constants_left_out) {
  hlo_module *m = with_large_constant(), *again = NULL;
  const char *text = print(m, &(hlo_print_options){.literals = HLO_LITERAL_ELIDE});
  ck_assert_ptr_nonnull(strstr(text, "{value=f32[1000] ...}"));
  expect_error(hlo_parse(memory, text, strlen(text), NULL, &again), "whose value was left out");
}
END_TEST

START_TEST(large_constants_elsewhere) {
  hlo_module *m = with_large_constant(), *again = NULL;
  const literal *kept = NULL;
  hlo_print_options print_options = {.literals = HLO_LITERAL_BLOB, .blob = keep_blob, .blob_data = &kept};
  const char *text = print(m, &print_options);
  ck_assert_ptr_nonnull(strstr(text, "{value=f32[1000] blob(42)}"));
  hlo_parse_options parse_options = {.blob = give_blob, .blob_data = (void *)kept};
  no_error(hlo_parse(memory, text, strlen(text), &parse_options, &again));
  ck_assert_ptr_eq(hlo_literal(again->entry->roots[0])->data, kept->data);
  ck_assert_str_eq(print(again, &print_options), text);
  expect_error(hlo_parse(memory, text, strlen(text), NULL, &again), "blob(42) stands for bytes that are not here");
  char *changed = arena_strdup(memory, text);
  *(strstr(changed, "42)}") + 1) = '3';
  expect_error(hlo_parse(memory, changed, strlen(changed), &parse_options, &again), "there is no blob 43");
}
END_TEST

/* --- numbers --- */

START_TEST(numbers_keep_their_bits) {
  for (int t = DTYPE_INVALID + 1; t < DTYPE_COUNT; t++) {
    size_t size = dtype_bytes((dtype)t);
    if (size > 2 || t == DTYPE_PRED) {
      continue;
    }
    int n = size == 2 ? 65536 : 1 << dtype_get_info((dtype)t)->bits;
    dim d = n;
    void *data = NULL;
    literal l = literal_new(memory, shape_make((dtype)t, 1, &d), &data);
    for (int k = 0; k < n; k++) {
      if (dtype_is_int((dtype)t)) {
        dtype_store_i64((dtype)t, (char *)data + (size_t)k * size, k);
      } else {
        memcpy((char *)data + (size_t)k * size, &(uint16_t){(uint16_t)k}, size);
      }
    }
    hlo_module *m = with_large_constant();
    hlo_instr *i = m->entry->first;
    i->attrs[0].value = &l;
    no_error(hlo_infer(i));
    hlo_module *again = parse(print(m, &(hlo_print_options){.small_elements = 65536}));
    ck_assert_msg(literal_equal(hlo_literal(again->entry->roots[0]), &l), "%s", dtype_name((dtype)t));
  }
}
END_TEST

/* --- what is refused --- */

static const struct {
  const char *params, *lines, *words;
} refused[] = {
    {"%x: f32[4]", "return %y", "4:8: %y is not defined before its use"},
    {"%x: f32[4]", "%x = abs(%x) : f32[4] return", "4:1: %x is defined twice"},
    {"%x: f32[4], %x: f32[4]", "return", "%x is defined twice"},
    {"%x: f32[4]", "%y = abs(%x) : f32[5] return", "4:1: abs: result 0 is declared f32[5] but is f32[4]"},
    {"%x: f32[4]", "%y = abs(%x, %x) : f32[4] return", "abs has 2 operands; at most 1 are allowed"},
    {"%x: f32[4]", "%y, %z = abs(%x) : f32[4], f32[4] return", "abs has 2 results instead of 1"},
    {"%x: f32[4]", "%y = sort(%x, %x) {dimension=0, descending=true} : f32[4], f32[4] return",
     "2 shapes for its results"},
    {"%x: f32[4]", "%y = parameter() {index=0} : f32[4] return", "there is no operation 'parameter' here"},
    {"%x: f32[4]", "%y = frob(%x) : f32[4] return", "4:6: there is no operation 'frob' here"},
    {"%x: f32[4]", "%y = reduce(%x) {dimensions=[0]} : f32[] return", "reduce needs the attribute reducer"},
    {"%x: f32[4]", "%y = reduce(%x) {dimensions=[0], reducer=sum} : f32[] return",
     "'sum' is no value of this attribute"},
    {"%x: f32[4]", "%y = reduce(%x) {dimensions=[0], dimensions=[0]} : f32[] return",
     "no attribute 'dimensions', or has it"},
    {"%x: f32[4]", "%y = abs(%x) {colour=1} : f32[4] return", "abs has no attribute 'colour'"},
    {"%x: f32[4]", "%y = iota() {dimension=99999999999999999999} : f32[4] return", "the integer does not fit 64 bits"},
    {"%x: f32[4]", "%y = iota() {dimension=-1} : f32[4] return", "dimension -1 is outside of rank 1"},
    {"%x: f99[4]", "return", "'f99' is no element type"},
    {"%x: f32[4,2,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "return", "a shape has more than 16 dimensions"},
    {"%x: f32[1073741824,1073741824]", "return", "has more than 2^56 bytes"},
    {"%x: f32[-3]", "return", "3:"},
    {"%x: f32[4]", "%y = abs(%x) : f32[4] config return", "'=' is expected instead of 'return'"},
    {"%x: f32[4]", "%y = abs(%x) : f32[4] config=gemm return", "'\"' is expected instead of 'gemm'"},
    {"%x: f32[4] \"name", "return", "a string has no end"},
    {"%x: f32[4] \"\\q\"", "return", "an escape in a string must be"},
    {"%x: f32[4] \"\\x00\"", "return", "an escape in a string must be"},
    {"", "%c = constant() {value=f32[3] {1, 2}} : f32[3] return", "',' is expected instead of '}'"},
    {"", "%c = constant() {value=f32[2] {1, 2, 3}} : f32[2] return", "'}' is expected instead of ','"},
    {"", "%c = constant() {value=f32[1000000000] {1, 2, 3}} : f32[2] return", "needs more elements than there is text"},
    {"", "%c = constant() {value=f32[1000000000] splat 1} : f32[2] return", "more bytes than allowed"},
    {"", "%c = constant() {value=f32[100000000] splat 1} : f32[2] return", "the memory limit is used up"},
    {"", "%c = constant() {value=f32[n] splat 1} : f32[n] return", "must be an array of constant extents, not f32[n]"},
    {"", "%c = constant() {value=u8[] 256} : u8[] return", "the number does not fit u8"},
    {"", "%c = constant() {value=u8[] -1} : u8[] return", "a number without sign is expected"},
    {"", "%c = constant() {value=s4[] 8} : s4[] return", "the number does not fit s4"},
    {"", "%c = constant() {value=f16[] 70000} : f16[] return", "the number does not fit f16"},
    {"", "%c = constant() {value=f16[] #12345} : f16[] return", "hexadecimal digits of one f16"},
    {"", "%c = constant() {value=pred[] 2} : pred[] return", "true or false is expected instead of '2'"},
    {"", "%c = constant() {value=pred[3] base64 \"AAEH\"} : pred[3] return", "element 2 of pred[3] has bits"},
    {"", "%c = constant() {value=u8[3] base64 \"AAE\"} : u8[3] return", "u8[3] needs 4 characters of base64"},
    {"", "%c = constant() {value=u8[3] base64 \"A*EH\"} : u8[3] return", "a character is not of base64"},
    {"%x: f32[4]", "%y = fusion(%x) {kind=loop, computations=[main]} : f32[4] return",
     "computation main is not defined"},
    {"%x: f32[4]", "%y = slice(%x) {starts=[-1], limits=[4], strides=[1]} : f32[5] return", "is negative"},
};

START_TEST(refusals) {
  hlo_module *m = NULL;
  const char *text = in_module(refused[_i].params, refused[_i].lines);
  hlo_parse_options options = {.max_bytes = (int64_t)1 << 29};
  expect_error(hlo_parse(memory, text, strlen(text), &options, &m), refused[_i].words);
  ck_assert_ptr_null(m);
}
END_TEST

static const struct {
  const char *text, *words;
} refused_modules[] = {
    {"", "1:1: 'onnx-xla hlo' and a version is expected, but the text ends"},
    {"onnx-xla hlo 2\n", "this is HLO text of version 2; only version 1 can be read"},
    {"onnx-xla hlo 1\nmodule \"m\" {\n}", "3:1: 'computation' or 'entry' is expected instead of '}'"},
    {"onnx-xla hlo 1\nmodule \"m\" { entry e() { return } } more", "2:37: the end is expected instead of 'more'"},
    {"onnx-xla hlo 1\nmodule \"m\" { entry e() { return } entry f() { return } }",
     "'}' is expected instead of 'entry'"},
    {"onnx-xla hlo 1\nmodule \"m\" { computation e() { return } entry e() { return } }",
     "computation e is defined twice"},
};

START_TEST(refused_texts) {
  hlo_module *m = NULL;
  const char *text = refused_modules[_i].text;
  expect_error(hlo_parse(memory, text, strlen(text), NULL, &m), refused_modules[_i].words);
}
END_TEST

/* Returns the text of a chain of computations, each of which calls the one before it `times` times. */
static const char *call_chain(int length, int times) {
  char *text = arena_alloc(memory, (size_t)length * (size_t)times * 200 + 1000), *at = text;
  at += sprintf(at, "onnx-xla hlo 1\nmodule \"m\" {\ncomputation c0(%%x: f32[]) { return %%x }\n");
  for (int k = 1; k <= length; k++) {
    at += sprintf(at, "%s c%d(%%x: f32[]) {\n", k == length ? "entry" : "computation", k);
    for (int j = 0; j < times; j++) {
      at += sprintf(at, "%%y%d = fusion(%%x) {kind=loop, computations=[c%d]} : f32[]\n", j, k - 1);
    }
    at += sprintf(at, "return %%y0 }\n");
  }
  sprintf(at, "}\n");
  return text;
}

START_TEST(calls_are_bounded) {
  hlo_module *m = NULL;
  const char *text = call_chain(50, 1);
  no_error(hlo_parse(memory, text, strlen(text), NULL, &m));
  text = call_chain(200, 1);
  expect_error(hlo_parse(memory, text, strlen(text), NULL, &m), "nest too deeply or too often");
  text = call_chain(40, 2); /* 2^40 instructions once all is inlined */
  expect_error(hlo_parse(memory, text, strlen(text), NULL, &m), "nest too deeply or too often");
}
END_TEST

/* --- damage --- */

/* Whatever the text is, parsing must fail with a status or give a module; the module's printed text must then
 * be parsed to a module that prints the same text. */
static void try_text(const char *text, size_t n) {
  mem_budget small = {.limit = (uint64_t)64 << 20};
  arena *a = arena_create(&small);
  hlo_module *m = NULL, *again = NULL;
  status s = hlo_parse(a, text, n, NULL, &m);
  if (!s) {
    const char *first = NULL, *second = NULL;
    no_error(hlo_print(a, m, NULL, &first, NULL));
    s = hlo_parse(a, first, strlen(first), NULL, &again);
    ck_assert_msg(!s, "%s in:\n%s", status_message(s), first);
    no_error(hlo_print(a, again, NULL, &second, NULL));
    ck_assert_str_eq(first, second);
  }
  status_free(s);
  arena_destroy(a);
}

START_TEST(truncated_at_every_byte) {
  size_t n = 0;
  char *sample = read_sample(&n);
  for (size_t cut = 0; cut < n; cut++) {
    char *copy = malloc(cut + 1); /* of the exact size, so that a sanitizer notices reads beyond its end */
    memcpy(copy, sample, cut);
    try_text(copy, cut);
    free(copy);
  }
  free(sample);
}
END_TEST

START_TEST(flipped_bits) {
  size_t n = 0;
  char *sample = read_sample(&n);
  uint32_t random = 1;
  for (size_t at = 0; at < n; at++) {
    char old = sample[at];
    random = random * 1664525u + 1013904223u;
    sample[at] ^= (char)(1 << (random >> 29));
    try_text(sample, n);
    sample[at] = old;
  }
  free(sample);
}
END_TEST

/* Replaces parts of the text by other pieces: numbers, brackets and words, which fit the grammar more often
 * than changed bits do. */
START_TEST(exchanged_pieces) {
  static const char *const pieces[] = {"0",      "-1", "9", "99999999999999", "[]", "[0]", "%0", "f32[]",
                                       "s64[3]", "n",  "}", "max(n,3)"};
  size_t n = 0;
  char *sample = read_sample(&n), *text = malloc(n + 100);
  uint32_t random = 7;
  for (int round = 0; round < 8000; round++) {
    random = random * 1664525u + 1013904223u;
    size_t at = (random >> 4) % n;
    at += strcspn(sample + at, "0123456789%[");
    size_t skip = 1 + strspn(sample + at + 1, "0123456789");
    const char *piece = pieces[(random >> 2) % (sizeof pieces / sizeof *pieces)];
    if (at + skip <= n) {
      int length = sprintf(text, "%.*s%s%s", (int)at, sample, piece, sample + at + skip);
      try_text(text, (size_t)length);
    }
  }
  free(text);
  free(sample);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("text");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_set_timeout(c, 600);
  tcase_add_test(c, round_trip_of_every_operation);
  tcase_add_test(c, copies_print_alike);
  tcase_add_test(c, configs_are_part_of_an_instruction);
  tcase_add_test(c, comments_names_and_any_order_of_attributes);
  tcase_add_test(c, large_constants_in_full);
  tcase_add_test(c, base64_of_each_type);
  tcase_add_test(c, large_constants_left_out);
  tcase_add_test(c, large_constants_elsewhere);
  tcase_add_test(c, numbers_keep_their_bits);
  tcase_add_loop_test(c, refusals, 0, sizeof refused / sizeof *refused);
  tcase_add_loop_test(c, refused_texts, 0, sizeof refused_modules / sizeof *refused_modules);
  tcase_add_test(c, calls_are_bounded);
  tcase_add_test(c, truncated_at_every_byte);
  tcase_add_test(c, flipped_bits);
  tcase_add_test(c, exchanged_pieces);
  return run_suite("hlo_text", c);
}
