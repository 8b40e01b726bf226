/* check_block_scatter.c - scatters by blocks of threads: the bits of the reference evaluator, which applies one update
 * after the other, whatever the threads' order; rows, elements, windows and batches of many sizes. */
#include "tests/unit/emit/blocks/block_case.h"

static const char *const reducers[] = {"replace", "add", "multiply", "maximum", "minimum"};
enum { N_REDUCERS = sizeof reducers / sizeof *reducers };

/* Adds a scatter that copies its operand, and the same in place.  Indices are in [low, high], of which some are outside
 * of the operand. */
static void add(kernel_cases *c, int64_t low, int64_t high, const char *type, const char *x, const char *i,
                const char *u, const char *attributes, const char *reducer) {
  const char *text = TEXT(
      "%s[%s](%%x: %s[%s], %%i: s64[%s], %%u: %s[%s]) {\n%%y = scatter(%%x, %%i, %%u) {%s, "
      "reducer=%s} : %s[%s]\nreturn %%y\n}",
      type, x, type, x, i, type, u, attributes, reducer, type, x);
  for (int32_t alias = -1; alias <= 0; alias++) {
    kernel_case *k = kernel_add(c, 0, text);
    k->low = low;
    k->high = high;
    k->alias = alias;
  }
}

#define ELEMENTS \
  "offset_dims=[], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0], index_vector_dim=1"
#define ROWS \
  "offset_dims=[1], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0], index_vector_dim=1"

static const char *number(int64_t n) { return TEXT("%lld", (long long)n); }

/* Many updates of each element, few of them, and none. */
START_TEST(elements) {
  static const int64_t sizes[][2] = {{1, 1},   {2, 31},  {31, 2},     {32, 33},     {33, 32},
                                     {7, 257}, {257, 7}, {1000, 600}, {5000, 1000}, {100000, 500}};
  kernel_cases c = {0};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    const char *n = number(sizes[k][1]);
    add(&c, -2, sizes[k][0], "f32", number(sizes[k][0]), TEXT("%s,1", n), n, ELEMENTS, reducers[_i]);
  }
  block_check_all(&c, BLOCK_ROUGH, NULL);
}
END_TEST

/* Narrow rows, and those of more columns than a block has. */
START_TEST(rows) {
  static const int64_t sizes[][3] = {{5, 3, 9},      {3, 31, 40},   {12, 32, 70},  {2, 33, 5},
                                     {40, 257, 300}, {300, 64, 20}, {3, 1025, 10}, {2, 5000, 3}};
  kernel_cases c = {0};
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    long long n = sizes[k][0], width = sizes[k][1], updates = sizes[k][2];
    add(&c, -1, n, "f32", TEXT("%lld,%lld", n, width), TEXT("%lld,1", updates), TEXT("%lld,%lld", updates, width), ROWS,
        reducers[_i]);
  }
  block_check_all(&c, BLOCK_ROUGH, NULL);
}
END_TEST

/* Windows that overlap each other, updates of columns, several dimensions of indices, batches. */
START_TEST(windows) {
  kernel_cases c = {0};
  const char *r = reducers[_i];
  add(&c, -1, 9, "f32", "9,6", "40,2", "40,2,3",
      "offset_dims=[1,2], collapsed_dims=[], operand_batch=[], indices_batch=[], index_map=[0,1], index_vector_dim=1",
      r);
  add(&c, 0, 30, "f32", "40,50", "20,1", "20,3,50",
      "offset_dims=[1,2], collapsed_dims=[], operand_batch=[], indices_batch=[], index_map=[0], index_vector_dim=1", r);
  add(&c, -1, 20, "f32", "7,20", "33,1", "7,33",
      "offset_dims=[0], collapsed_dims=[1], operand_batch=[], indices_batch=[], index_map=[1], index_vector_dim=1", r);
  add(&c, -1, 8, "f32", "8,8,3", "9,7,2", "9,7,3",
      "offset_dims=[2], collapsed_dims=[0,1], operand_batch=[], indices_batch=[], index_map=[1,0], index_vector_dim=2",
      r);
  add(&c, -1, 50, "f32", "6,50", "6,90,1", "6,90",
      "offset_dims=[], collapsed_dims=[1], operand_batch=[0], indices_batch=[0], index_map=[1], index_vector_dim=2", r);
  add(&c, -1, 50, "f32", "200,5", "200,9,1", "200,9",
      "offset_dims=[], collapsed_dims=[1], operand_batch=[0], indices_batch=[0], index_map=[1], index_vector_dim=2", r);
  add(&c, -1, 11, "f32", "3,11,5,4", "5,3,6,1", "5,3,6,4",
      "offset_dims=[3], collapsed_dims=[1], operand_batch=[0,2], indices_batch=[1,0], index_map=[1], "
      "index_vector_dim=3",
      r);
  add(&c, 0, 0, "f32", "17", "3,0", "3,17",
      "offset_dims=[1], collapsed_dims=[], operand_batch=[], indices_batch=[], index_map=[], index_vector_dim=1", r);
  block_check_all(&c, BLOCK_ROUGH, NULL);
}
END_TEST

START_TEST(types) {
  static const char *const all_types[] = {"f16", "bf16", "f64", "s32", "s64", "u8", "s8", "c64"};
  kernel_cases c = {0};
  for (size_t k = 0; k < sizeof all_types / sizeof *all_types; k++) {
    for (int r = 0; r < (k < 7 ? N_REDUCERS : 2); r++) {
      add(&c, 0, 30, all_types[k], "30", "70,1", "70", ELEMENTS, reducers[r]);
    }
  }
  add(&c, 0, 30, "pred", "30", "70,1", "70", ELEMENTS, "replace");
  block_check_all(&c, BLOCK_ROUGH, NULL);
}
END_TEST

/* A fusion that computes the scatter's operand and its updates, too. */
START_TEST(fused) {
  kernel_cases c = {0};
  kernel_case *k =
      kernel_add(&c, 0,
                 "f32[60,24](%x: f32[60,24], %i: s64[50,1], %u: f32[50,24]) {\n%w = negate(%x) : f32[60,24]\n%v = "
                 "multiply(%u, %u) : "
                 "f32[50,24]\n%y = scatter(%w, %i, %v) {" ROWS ", reducer=add} : f32[60,24]\nreturn %y\n}");
  k->high = 61;
  block_check_all(&c, BLOCK_ROUGH, NULL);
}
END_TEST

/* Rows and columns are divided among blocks, but only among so many that each has enough work. */
START_TEST(work_is_divided) {
  kernel_cases c = {0};
  emit_target t;
  add(&c, 0, 9, "f32", "100000", "500,1", "500", ELEMENTS, "add");
  add(&c, 0, 9, "f32", "64,5000", "5,1", "5,5000", ROWS, "add");
  add(&c, 0, 9, "f32", "10", "5,1", "5", ELEMENTS, "add");
  ASSERT_OK(emit_target_nvptx(kernel_arena, "sm_80", &t));
  (void)block_write(&c, &t, NULL);
  static const int64_t grids[] = {128, 125, 1};
  static const uint32_t threads[] = {256, 256, 32};
  for (int k = 0; k < 3; k++) {
    ck_assert_int_eq(c.items[2 * k].info.grid, grids[k]);
    ck_assert_uint_eq(c.items[2 * k].info.threads, threads[k]);
    ck_assert_uint_eq(c.items[2 * k].info.step_threads, threads[k]);
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("block-scatter");
  tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, elements, 0, N_REDUCERS);
  tcase_add_loop_test(t, rows, 0, N_REDUCERS);
  tcase_add_loop_test(t, windows, 0, N_REDUCERS);
  tcase_add_test(t, types);
  tcase_add_test(t, fused);
  tcase_add_test(t, work_is_divided);
  return run_suite("block-scatter", t);
}
