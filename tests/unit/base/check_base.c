/* check_base.c - statuses, arenas with guards and budgets, shapes, literals. */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/tensor/literal.h"
#include "base/poison.h"
#include "tests/suite.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }

static void teardown(void) { arena_destroy(memory); }

/* --- status --- */

static void expect_status(status s, status_code code, const char *message) {
  ck_assert_ptr_nonnull(s);
  ck_assert_int_eq(status_get_code(s), code);
  ck_assert_str_eq(status_message(s), message);
  status_free(s);
}

START_TEST(status_basics) {
  ck_assert_int_eq(status_get_code(NULL), STATUS_OK);
  ck_assert_str_eq(status_message(NULL), "");
  status_free(NULL);
  expect_status(status_error(STATUS_IO, "%s: %d", "x", 5), STATUS_IO, "x: 5");
  expect_status(status_prefix(status_error(STATUS_UNSUPPORTED, "no"), "node %d", 3), STATUS_UNSUPPORTED, "node 3: no");
  ck_assert_ptr_null(status_prefix(NULL, "x"));
  ck_assert_str_eq(status_code_name(STATUS_INVALID_MODEL), "invalid-model");
  ck_assert_str_eq(status_code_name((status_code)-1), "unknown");
  ck_assert_str_eq(status_code_name((status_code)8), "unknown");
}
END_TEST

/* {the bytes of a hostile name, the text that is shown for them} */
static const char *const names[][2] = {
    {"a\nb\x1b[2J\x7f", "a?b?[2J?"},
    {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
    {"\xc3", "?"},
    {"\xe2\x82", "??"},
    {"\xc2\x9b", "??"},
    {"\xc0\xaf", "??"},
    {"\xed\xa0\x80", "???"},
    {"\xff\xfe", "??"},
    {"\xf4\x90\x80\x80", "????"},
    {"\xe0\x80\x80", "???"},
};

START_TEST(status_hostile_names) {
  expect_status(status_error(STATUS_INVALID_FILE, "%s", names[_i][0]), STATUS_INVALID_FILE, names[_i][1]);
}
END_TEST

/* A status keeps the first node that it is given, which is the innermost one, also through prefixes and
 * copies. */
START_TEST(status_nodes) {
  status s = status_at_node(status_error(STATUS_INVALID_MODEL | STATUS_ABOUT_SHAPE, "no"), "a\n: Add");
  s = status_prefix(status_at_node(s, "l: Loop"), "model");
  status copy = status_copy(s);
  ck_assert_str_eq(status_get_node(copy), "a?: Add");
  ck_assert_int_eq(status_get_subject(copy), STATUS_ABOUT_SHAPE);
  expect_status(s, STATUS_INVALID_MODEL, "model: l: Loop: a?: Add: no");
  expect_status(copy, STATUS_INVALID_MODEL, "model: l: Loop: a?: Add: no");
  s = status_about_node(status_error(STATUS_IO, "no"), "a: Add (fused)", 6);
  ck_assert_str_eq(status_get_node(s), "a: Add");
  s = status_suffix(s, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE, "%d and %d", 5, 6);
  ck_assert_str_eq(status_get_node(s), "a: Add");
  ck_assert_int_eq(status_get_subject(s), STATUS_ABOUT_SHAPE);
  expect_status(s, STATUS_INVALID_ARGUMENT, "no; 5 and 6");
  ck_assert_ptr_null(status_suffix(NULL, STATUS_IO, "no"));
  ck_assert_ptr_null(status_at_node(NULL, "a"));
  ck_assert_ptr_null(status_copy(NULL));
  ck_assert_str_eq(status_get_node(NULL), "");
}
END_TEST

START_TEST(status_long) {
  char *text = arena_alloc(memory, 100001);
  memset(text, 'x', 100000);
  status s = status_error(STATUS_IO, "%s", text);
  ck_assert_uint_eq(strlen(status_message(s)), 1999);
  s = status_prefix(s, "%s", text);
  size_t n = strlen(status_message(s));
  ck_assert(n > 3900 && n < 4000);
  ck_assert_ptr_nonnull(strstr(status_message(s), "x: x"));
  status_free(s);
}
END_TEST

/* --- arena --- */

static bool is_zero(const char *p, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (p[i]) {
      return false;
    }
  }
  return true;
}

START_TEST(arena_memory) {
  unsigned seed = 1;
  for (int i = 0; i < 3000; i++) {
    size_t align = (size_t)1 << (rand_r(&seed) % 13), size = rand_r(&seed) % (i % 100 ? 300u : 200000u);
    char *p = i % 2 ? arena_alloc_aligned(memory, size, align) : arena_alloc(memory, size);
    ck_assert_uint_eq((uintptr_t)p % (i % 2 ? align : 16), 0);
    ck_assert(is_zero(p, size));
    memset(p, 0xff, size);
  }
  arena_alloc(memory, 0);
}
END_TEST

#ifdef POISON_IS_SEEN
/* An arena divides large pieces of the system's memory; AddressSanitizer must know the end of each allocation
 * in them. */
START_TEST(arena_ends) {
  for (size_t size = 0; size < 50; size++) {
    char *p = arena_alloc_aligned(memory, size, 1 + size % 2);
    ck_assert_ptr_null(__asan_region_is_poisoned(p, size));
    ck_assert(__asan_address_is_poisoned(p + size));
  }
}
END_TEST

/* AddressSanitizer reports the use of a pointer into an array that has moved since, because it grew. */
START_TEST(arena_old_arrays) {
  uint32_t *items = NULL, n = 0, cap = 0;
  for (uint32_t i = 0; i < 100; i++) {
    const uint32_t *old = items, before = cap;
    *ARENA_PUSH(memory, items, n, cap) = i;
    for (uint32_t k = 0; k < before; k++) {
      ck_assert_int_eq(__asan_address_is_poisoned(&old[k]), items != old);
    }
    ck_assert_ptr_null(__asan_region_is_poisoned(items, cap * sizeof *items));
  }
}
END_TEST
#endif

/* Small allocations between large ones go into one chunk. */
START_TEST(arena_waste) {
  enum { LARGE = 2 << 20, TIMES = 20 };
  for (int i = 0; i < TIMES; i++) {
    arena_alloc(memory, LARGE);
    arena_alloc(memory, 100);
  }
  ck_assert_uint_lt(arena_used(memory), (size_t)LARGE * TIMES + 3 * (1 << 20));
}
END_TEST

START_TEST(arena_text) {
  ck_assert_str_eq(arena_strdup(memory, "abc"), "abc");
  ck_assert_str_eq(arena_strndup(memory, "abc", 2), "ab");
  ck_assert_str_eq(arena_strndup(memory, "abc", 100), "abc");
  ck_assert_str_eq(arena_strndup(memory, NULL, 0), "");
  ck_assert_str_eq(arena_printf(memory, "%d-%s", 5, "x"), "5-x");
  ck_assert_str_eq(arena_printf(memory, "%s", ""), "");
  ck_assert_uint_eq(strlen(arena_printf(memory, "%127d", 1)), 127); /* around the length of the first attempt */
  ck_assert_uint_eq(strlen(arena_printf(memory, "%128d", 1)), 128);
  ck_assert_str_eq(arena_printf(memory, "%0150d", 7) + 149, "7");
  text_builder text = {.arena = memory};
  const int64_t extremes[] = {0, -1, 10, INT64_MIN, INT64_MAX};
  for (int k = 0; k < 5; k++) {
    text_builder_put_number(&text, extremes[k]);
    text_builder_put(&text, " ");
  }
  ck_assert_str_eq(text_builder_end(&text), "0 -1 10 -9223372036854775808 9223372036854775807 ");
  int numbers[2] = {3, 4};
  int *copy = arena_memdup(memory, numbers, sizeof numbers), *grown = arena_grow(memory, copy, sizeof numbers, 16);
  ck_assert(grown[0] == 3 && grown[1] == 4 && grown[2] == 0);
  ck_assert_ptr_nonnull(arena_grow(memory, NULL, 0, 16));
  uint32_t *items = NULL, n = 0, cap = 0;
  for (uint32_t i = 0; i < 1000; i++) {
    *ARENA_PUSH(memory, items, n, cap) = i;
  }
  ck_assert_uint_eq(n, 1000);
  for (uint32_t i = 0; i < n; i++) {
    ck_assert_uint_eq(items[i], i);
  }
}
END_TEST

static char order[8];

static void note(void *text) { strcat(order, text); }

START_TEST(arena_cleanups) {
  order[0] = 0;
  arena *a = arena_create(NULL);
  arena_cleanup(a, note, (void *)"a");
  arena_cleanup(a, note, (void *)"b");
  arena_destroy(a);
  ck_assert_str_eq(order, "ba");
  arena_destroy(NULL);
}
END_TEST

static status allocate_too_much(void *a) {
  for (int i = 0; i < 10000; i++) {
    arena_alloc(a, 1000);
  }
  return NULL;
}

static status overflow_product(void *a) {
  arena_calloc(a, SIZE_MAX / 2, 3);
  return NULL;
}

static status allocate_everything(void *a) {
  volatile size_t size = SIZE_MAX - 8; /* hidden from the compiler, which would warn */
  arena_alloc(a, size);
  return NULL;
}

static status fail_plainly(void *a) { return status_error(STATUS_IO, "plain"); }

static status clean_up_without_memory(void *a) {
  for (int i = 0; i < 1000000; i++) {
    arena_cleanup(a, note, (void *)"");
  }
  return NULL;
}

/* The inner guard catches the first failure, the outer guard the second one. */
static status nested(void *a) {
  status s = guard_run(allocate_too_much, a);
  ck_assert_int_eq(status_get_code(s), STATUS_RESOURCE);
  status_free(s);
  return allocate_too_much(a);
}

START_TEST(guards) {
  mem_budget budget = {.limit = 1 << 20};
  arena *a = arena_create(&budget);
  ck_assert_ptr_eq(arena_budget(a), &budget);
  expect_status(guard_run(allocate_too_much, a), STATUS_RESOURCE, "the memory limit is used up");
  ck_assert(budget.used <= budget.limit && budget.used == arena_used(a));
  expect_status(guard_run(nested, a), STATUS_RESOURCE, "the memory limit is used up");
  expect_status(guard_run(clean_up_without_memory, a), STATUS_RESOURCE, "the memory limit is used up");
  expect_status(guard_run(overflow_product, memory), STATUS_RESOURCE, "out of memory");
  expect_status(guard_run(allocate_everything, memory), STATUS_RESOURCE, "out of memory");
  expect_status(guard_run(fail_plainly, NULL), STATUS_IO, "plain");
  arena_destroy(a);
  ck_assert_uint_eq(budget.used, 0);
}
END_TEST

START_TEST(budgets) {
  mem_budget budget = {.deadline = 0};
  ck_assert_ptr_null(budget_check(NULL));
  ck_assert_ptr_null(budget_check(&budget));
  budget.deadline = UINT64_MAX;
  ck_assert_ptr_null(budget_check(&budget));
  budget.deadline = 1;
  expect_status(budget_check(&budget), STATUS_RESOURCE, "the time limit has passed");
  budget.deadline = 0;
  budget.cancel = 1;
  ck_assert(budget_expired(&budget));
  expect_status(budget_check(&budget), STATUS_RESOURCE, "cancelled");
}
END_TEST

/* Memory of an inner budget counts in the outer one, too.  Cancelling the outer budget cancels the inner one,
 * but the outer deadline does not hold for the inner budget. */
START_TEST(nested_budgets) {
  _Atomic int flag = 0;
  mem_budget outer = {.limit = 1000, .deadline = 1}, inner = {.limit = 600, .outer = &outer, .stopped = &flag};
  void *a = budget_alloc(&inner, 500, 64), *b = budget_alloc(&outer, 300, 64);
  ck_assert(a && b && (uintptr_t)a % 64 == 0);
  ck_assert_uint_eq(inner.used, 512);
  ck_assert_uint_eq(outer.used, 512 + 320);
  ck_assert_ptr_null(budget_alloc(&inner, 200, 64)); /* above the limit of the inner budget */
  ck_assert_ptr_null(budget_alloc(&outer, 200, 64));
  budget_free(&inner, a, 500, 64);
  ck_assert_uint_eq(inner.used, 0);
  ck_assert_uint_eq(outer.used, 320);
  ck_assert_ptr_null(budget_alloc(&inner, SIZE_MAX, 64));
  a = budget_alloc(&inner, 0, 64); /* an allocation of 0 bytes has an address, too */
  ck_assert_ptr_nonnull(a);
  budget_free(&inner, a, 0, 64);
  budget_free(&outer, b, 300, 64);
  budget_free(&outer, NULL, 300, 64);
  ck_assert_uint_eq(outer.used, 0);
  ck_assert(!budget_expired(&inner) && budget_expired(&outer));
  flag = 1;
  expect_status(budget_check(&inner), STATUS_RESOURCE, "cancelled");
  flag = 0;
  outer.cancel = 1;
  expect_status(budget_check(&inner), STATUS_RESOURCE, "cancelled");
}
END_TEST

/* --- shapes --- */

static shape parse(dim_table *table, const char *text) {
  shape s;
  const char *at = text;
  status failure = shape_parse(table, &at, &s);
  ck_assert_msg(!failure, "%s: %s", text, status_message(failure));
  ck_assert_str_eq(at, "");
  return s;
}

START_TEST(shape_texts) {
  static const char *const texts[] = {"f32[]",
                                      "f32[2,3]",
                                      "pred[0]",
                                      "s4[batch,seq+1]",
                                      "f8e4m3fnuz[<=100:n,64]",
                                      "seq<f32[2]>",
                                      "opt<str>",
                                      "map<s64[n]>",
                                      "c128[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]"};
  dim_table *table = dim_table_create(memory);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    shape s = parse(table, texts[i]);
    ck_assert_str_eq(shape_print(memory, table, &s), texts[i]);
    ck_assert_str_eq(SHAPE_STR(table, &s), texts[i]);
  }
  shape s = parse(table, "f32[n,2]");
  ck_assert_str_eq(SHAPE_STR(NULL, &s), "f32[?,2]");
  ck_assert(!shape_is_static(&s));
}
END_TEST

START_TEST(shape_refused) {
  static const char *const texts[] = {"",
                                      "f32",
                                      "f31[2]",
                                      "f32[",
                                      "f32[2",
                                      "f32[2,]",
                                      "f32[,2]",
                                      "seq<f32[]",
                                      "opt<",
                                      "map<f32[2]",
                                      "f32[2;3]",
                                      "f32[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
                                      "f64[72057594037927936]",
                                      "f32[-1]",
                                      "s8[268435456,268435456,2]"};
  dim_table *table = dim_table_create(memory);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    shape s;
    const char *at = texts[i];
    status failure = shape_parse(table, &at, &s);
    ck_assert_msg(failure != NULL, "'%s' parses", texts[i]);
    status_free(failure);
  }
}
END_TEST

START_TEST(shape_sizes) {
  shape s = shape_make(DTYPE_BF16, 3, (dim[]){2, 3, 4});
  int64_t strides[3];
  shape_strides(&s, strides);
  ck_assert(strides[0] == 12 && strides[1] == 4 && strides[2] == 1);
  ck_assert_int_eq(shape_elements(&s), 24);
  ck_assert_int_eq(shape_bytes(&s), 48);
  ck_assert_int_eq(shape_product(&s, 1, 3), 12);
  ck_assert_int_eq(shape_product(&s, 1, 1), 1);
  shape scalar = shape_scalar(DTYPE_C128), wide = shape_with_type(s, DTYPE_F64);
  ck_assert_int_eq(shape_bytes(&scalar), 16);
  ck_assert(shape_same_dims(&s, &wide) && !shape_equal(&s, &wide));
  shape overflow = shape_make(DTYPE_S8, 2, (dim[]){1, DIM_OVERFLOW});
  expect_status(shape_check(&overflow, "x"), STATUS_INVALID_MODEL, "x: dimension 1 is negative or too large");
  /* Strides would overflow although there are no elements. */
  shape empty = shape_make(DTYPE_S8, 3, (dim[]){(dim)1 << 40, 0, (dim)1 << 40});
  status failure = shape_check(&empty, "x");
  ck_assert_int_eq(status_get_code(failure), STATUS_RESOURCE);
  status_free(failure);
  shape fits = shape_make(DTYPE_S8, 2, (dim[]){DIM_MAX, 0});
  ck_assert_ptr_null(shape_check(&fits, "x"));
}
END_TEST

/* The text of a shape is cut to the buffer, however long its symbols are. */
START_TEST(shape_text_fits) {
  dim_table *table = dim_table_create(memory);
  char name[400];
  memset(name, 'n', sizeof name);
  for (size_t length = 0; length < sizeof name; length++) {
    shape s = shape_make(DTYPE_F8E4M3FNUZ, SHAPE_MAX_RANK, (dim[SHAPE_MAX_RANK]){0});
    for (int i = 0; i < SHAPE_MAX_RANK; i++) {
      s.dims[i] = i % 2 ? dim_symbol_n(table, name, length) : DIM_MAX;
    }
    s.kind = SHAPE_SEQUENCE;
    size_t n = strlen(SHAPE_STR(table, &s));
    ck_assert(n < SHAPE_TEXT_MAX);
    ck_assert_str_eq(SHAPE_STR(table, &s) + n - 2, "]>");
  }
}
END_TEST

/* --- literals --- */

START_TEST(literals) {
  literal pi = literal_scalar_f64(memory, DTYPE_F32, 3.140625), three = literal_scalar_i64(memory, DTYPE_S32, 3);
  ck_assert(literal_f64(&pi, 0) == 3.140625);
  ck_assert_int_eq(literal_i64(&three, 0), 3);
  literal wrapped = literal_scalar_i64(memory, DTYPE_S4, 0x19), brain = literal_scalar_i64(memory, DTYPE_BF16, -5);
  ck_assert_int_eq(literal_i64(&wrapped, 0), -7);
  ck_assert(literal_f64(&brain, 0) == -5);
  literal list = literal_s64s(memory, (int64_t[]){4, 4, -5}, 3), same = literal_s64s(memory, (int64_t[]){4, 4}, 2);
  ck_assert_int_eq(literal_i64(&list, 2), -5);
  ck_assert(!literal_is_splat(&list) && literal_is_splat(&same) && literal_is_splat(&pi));
  literal again = literal_s64s(memory, (int64_t[]){4, 4, -5}, 3), none = literal_s64s(memory, NULL, 0);
  ck_assert(literal_equal(&list, &again) && !literal_equal(&list, &same));
  ck_assert_uint_eq(literal_hash(&list), literal_hash(&again));
  ck_assert_uint_ne(literal_hash(&list), literal_hash(&same));
  literal nothing = literal_make(shape_make(DTYPE_S64, 1, (dim[]){0}), NULL);
  ck_assert(!literal_is_splat(&none) && !literal_is_splat(&nothing) && literal_equal(&none, &nothing));
  ck_assert_uint_eq(literal_hash(&none), literal_hash(&nothing));
}
END_TEST

START_TEST(literal_hashes) {
  void *data, *other;
  literal a = literal_new(memory, shape_make(DTYPE_F32, 1, (dim[]){1000003}), &data);
  literal b = literal_new(memory, a.shape, &other);
  ck_assert(literal_equal(&a, &b) && literal_hash(&a) == literal_hash(&b));
  ((float *)data)[1000002] = 1; /* the hash always reads the first and the last block */
  ck_assert(!literal_equal(&a, &b) && literal_hash(&a) != literal_hash(&b));
  literal flat = literal_make(shape_make(DTYPE_U8, 1, (dim[]){4}), "abcd");
  literal square = literal_make(shape_make(DTYPE_U8, 2, (dim[]){2, 2}), "abcd");
  ck_assert_uint_ne(literal_hash(&flat), literal_hash(&square));
}
END_TEST

int main(void) {
  TCase *all = tcase_create("all");
  tcase_add_checked_fixture(all, setup, teardown);
  tcase_add_test(all, status_basics);
  tcase_add_test(all, status_nodes);
  tcase_add_loop_test(all, status_hostile_names, 0, sizeof names / sizeof *names);
  tcase_add_test(all, status_long);
  tcase_add_test(all, arena_memory);
  tcase_add_test(all, arena_waste);
#ifdef POISON_IS_SEEN
  tcase_add_test(all, arena_ends);
  tcase_add_test(all, arena_old_arrays);
#endif
  tcase_add_test(all, arena_text);
  tcase_add_test(all, arena_cleanups);
  tcase_add_test(all, guards);
  tcase_add_test(all, budgets);
  tcase_add_test(all, nested_budgets);
  tcase_add_test(all, shape_texts);
  tcase_add_test(all, shape_refused);
  tcase_add_test(all, shape_sizes);
  tcase_add_test(all, shape_text_fits);
  tcase_add_test(all, literals);
  tcase_add_test(all, literal_hashes);
  return run_suite("base", all);
}
