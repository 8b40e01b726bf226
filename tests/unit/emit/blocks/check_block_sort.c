/* check_block_sort.c - sorts by blocks of threads: the reference evaluator's order, also of equal elements, of NaN and
 * of zeros of both signs, for lines of many lengths, all elements or only the first ones. */
#include <stdlib.h>
#include <string.h>

#include "backend_gpu/runtime/emulated_block.h"
#include "emit/blocks/block_sort.h"
#include "runtime/host/code_loader.h"
#include "tests/unit/emit/blocks/block_case.h"

static emit_sort config = {.front = INT64_MAX, .iota = -1};

static void sort_way(const hlo_instr *i, block_way *out) {
  dim scratch = emit_block_sort_scratch(i, &config);
  ck_assert(dim_is_const(scratch));
  *out = (block_way){emit_block_sort_kernel, &config, emit_block_sort_phases(i, &config), scratch};
}

/* Sorts x and, with it, y, whose elements show whether equal elements of x keep their order. */
static kernel_case *add(kernel_cases *c, const char *type, const char *extents, int dimension, bool descending) {
  const char *x = TEXT("%s[%s]", type, extents), *y = TEXT("s32[%s]", extents);
  kernel_case *k =
      kernel_add(c, 0,
                 TEXT("%s; %s(%%x: %s, %%y: %s) {\n%%a, %%b = sort(%%x, %%y) {dimension=%d, descending=%s} "
                      ": %s, %s\nreturn %%a, %%b\n}",
                      x, y, x, y, dimension, descending ? "true" : "false", x, y));
  k->low = -100;
  k->high = 100;
  return k;
}

static const int64_t lengths[] = {1, 2, 3, 31, 32, 33, 64, 1000, 2049, 4096, 4097, 5000};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths };
static const char *const types[] = {"f32", "f64", "f16", "bf16", "s8", "s32", "s64", "u64", "f8e5m2", "pred"};
enum { N_TYPES = sizeof types / sizeof *types };

START_TEST(lines) {
  kernel_cases c = {0};
  for (int k = 0; k < N_LENGTHS; k++) {
    long long n = lengths[k];
    add(&c, types[_i], TEXT("%lld", n), 0, k % 2);
    if (k % 3 == 0) {
      add(&c, types[_i], TEXT("3,%lld", n), 1, k % 2 == 0);
      add(&c, types[_i], TEXT("2,%lld,3", n), 1, k % 2);
    }
  }
  block_check_all(&c, BLOCK_SPECIAL, sort_way);
}
END_TEST

/* One pass merges 16 runs, of 4096 or 2048 items each. */
START_TEST(long_lines) {
  kernel_cases c = {0};
  add(&c, "f32", "65536", 0, false);
  add(&c, "f32", "65537", 0, true);
  add(&c, "s64", "100000", 0, false);
  add(&c, "f16", "2,40000", 1, true);
  block_check_all(&c, BLOCK_TIES, sort_way);
}
END_TEST

/* --- lines whose length may be an argument, and only the first elements: compared with what qsort or all elements give
 * --- */

enum { MOST = 100000 };

typedef struct sorted {
  uint32_t x[MOST], y[MOST];
} sorted;

static int64_t length; /* the value of each symbol */

static int64_t value_of(void *data, dim symbol) {
  (void)data, (void)symbol;
  return length;
}

static int64_t evaluate(const hlo_instr *i, dim d) {
  int64_t n;
  ck_assert(dim_evaluate(i->parent->module->dims, d, value_of, NULL, &n));
  return n;
}

static void run_phase(const hlo_instr *i, const emit_kernel_info *info, rt_block_fn *fn, const void **buffers,
                      gpu_order order) {
  int64_t *args = ARENA_NEW_N(kernel_arena, int64_t, info->n_sizes + 1), grid = evaluate(i, info->grid);
  for (uint32_t k = 0; k < info->n_sizes; k++) {
    args[k] = evaluate(i, info->sizes[k]);
  }
  uint32_t threads = info->threads ? info->threads : 64;
  gpu_blocks b = {fn, "sort", buffers, args, grid, threads, info->shared_bytes, order};
  ASSERT_OK(gpu_run_blocks(&b, 0, grid * info->step_threads / threads + 1));
}

static void run(const kernel_case *c, const uint32_t *x, const uint32_t *y, gpu_order order, sorted *out) {
  const hlo_instr *i = hlo_callee(kernel_parse(c), 0)->roots[0].def;
  uint32_t phases = emit_block_sort_phases(i, &config);
  emit_target t;
  emit_module *m;
  rt_code *code;
  emit_kernel_info *info = ARENA_NEW_N(kernel_arena, emit_kernel_info, phases);
  ASSERT_OK(emit_target_blocks_host(kernel_arena, &t));
  ASSERT_OK(emit_module_create(kernel_arena, &t, "test", &m));
  for (uint32_t phase = 0; phase < phases; phase++) {
    ASSERT_OK(emit_block_sort_kernel(m, TEXT("k%u", phase), i, NULL, &config, phase, &info[phase]));
  }
  ASSERT_OK(kernel_load(kernel_arena, m, kernel_resolve, &code));
  size_t scratch_bytes = (size_t)evaluate(i, emit_block_sort_scratch(i, &config));
  void *scratch = arena_alloc_aligned(kernel_arena, scratch_bytes + 1, 64);
  memset(out, 0xa5, sizeof *out);
  const void *buffers[] = {x, y, out->x, out->y, scratch};
  for (uint32_t phase = 0; phase < phases; phase++) {
    run_phase(i, &info[phase], (rt_block_fn *)(intptr_t)rt_code_find(code, TEXT("k%u", phase)), buffers, order);
  }
}

static int by_number(const void *x, const void *y) {
  uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
  return (a > b) - (a < b);
}

/* The elements are pairs of a small number and a position, so that a stable sort by the number sorts them. */
START_TEST(open_lengths) {
  static const int64_t sizes[] = {0, 1, 2, 2047, 2048, 2049, 5000, 32769, 100000};
  sorted *out = ARENA_NEW(kernel_arena, sorted);
  uint32_t *x = ARENA_NEW_N(kernel_arena, uint32_t, MOST), *y = ARENA_NEW_N(kernel_arena, uint32_t, MOST);
  uint64_t *want = ARENA_NEW_N(kernel_arena, uint64_t, MOST);
  kernel_cases c = {0};
  kernel_case *one = add(&c, "s32", "n", 0, false);
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    length = sizes[k];
    for (uint32_t j = 0; j < length; j++) {
      x[j] = (uint32_t)(next_random() >> 20) % 1000;
      y[j] = j;
      want[j] = (uint64_t)x[j] << 32 | j;
    }
    qsort(want, (size_t)length, sizeof *want, by_number);
    for (int front = 0; front < 2; front++) {
      config.front = front ? 50 : INT64_MAX;
      run(one, x, y, (gpu_order)(k % GPU_ORDERS), out);
      for (int64_t j = 0; j < length && j < config.front; j++) {
        ck_assert_uint_eq(out->x[j], want[j] >> 32);
        ck_assert_uint_eq(out->y[j], (uint32_t)want[j]);
      }
      ck_assert(length == MOST || out->x[length] == 0xa5a5a5a5);
    }
  }
  config.front = INT64_MAX;
}
END_TEST

/* How the elements are ordered, which decides how often the list of candidates for the first elements is full. */
typedef enum arrangement { RANDOM, FALLING, RISING, EQUAL, ARRANGEMENTS } arrangement;

START_TEST(first) {
  static const int64_t sizes[][2] = {{5000, 1}, {5000, 10}, {4097, 1024}, {10000, 50}, {16384, 700}, {5000, 1025}};
  sorted *all = ARENA_NEW(kernel_arena, sorted), *some = ARENA_NEW(kernel_arena, sorted);
  uint32_t *x = ARENA_NEW_N(kernel_arena, uint32_t, MOST), *y = ARENA_NEW_N(kernel_arena, uint32_t, MOST);
  for (int k = 0; k < 6; k++) {
    uint32_t n = (uint32_t)sizes[k][0], front = (uint32_t)sizes[k][1];
    for (uint32_t j = 0; j < n; j++) {
      x[j] = _i == RANDOM ? (uint32_t)(next_random() >> 20) % 1000 : _i == FALLING ? n - j : _i == RISING ? j : 7;
      y[j] = j;
    }
    kernel_cases c = {0};
    kernel_case *one = add(&c, "s32", TEXT("%u", n), 0, false);
    config.front = INT64_MAX;
    run(one, x, y, GPU_FORWARD, all);
    config.front = front;
    for (gpu_order order = 0; order < GPU_ORDERS; order++) {
      run(one, x, y, order, some);
      ck_assert_int_eq(memcmp(all->x, some->x, 4 * front), 0);
      ck_assert_int_eq(memcmp(all->y, some->y, 4 * front), 0);
      ck_assert_uint_eq(some->x[front], 0xa5a5a5a5);
    }
  }
  config.front = INT64_MAX;
}
END_TEST

/* If the config says that the second operand is an iota, the operand is not read, and its buffer may be missing. */
START_TEST(positions) {
  static const uint32_t sizes[] = {100, 5000};
  uint32_t *x = ARENA_NEW_N(kernel_arena, uint32_t, MOST);
  sorted *out = ARENA_NEW(kernel_arena, sorted);
  for (int k = 0; k < 2; k++) {
    for (uint32_t j = 0; j < sizes[k]; j++) {
      x[j] = sizes[k] - j;
    }
    kernel_cases c = {0};
    const char *to = TEXT("s32[%u], s64[%u]", sizes[k], sizes[k]);
    kernel_case *one = kernel_add(&c, 0,
                                  TEXT("s32[%u]; s64[%u](%%x: s32[%u], %%y: s64[%u]) {\n%%a, %%b = sort(%%x, %%y) "
                                       "{dimension=0, descending=false} : %s\nreturn %%a, %%b\n}",
                                       sizes[k], sizes[k], sizes[k], sizes[k], to));
    config.iota = 1;
    run(one, x, NULL, GPU_SHUFFLED, out);
    config.iota = -1;
    for (uint32_t j = 0; j < sizes[k]; j++) {
      int64_t place;
      memcpy(&place, (char *)out->y + 8 * j, sizeof place);
      ck_assert_uint_eq(out->x[j], j + 1);
      ck_assert_int_eq(place, sizes[k] - 1 - j);
    }
  }
}
END_TEST

/* How many kernels a sort of lines of this length consists of. */
START_TEST(phases) {
  static const struct {
    const char *type, *extents;
    int64_t front;
    uint32_t n;
    int64_t scratch;
  } rows[] = {{"f32", "4096", INT64_MAX, 1, 0},
              {"f32", "4097", INT64_MAX, 2, 4097 * 8},
              {"f32", "65537", INT64_MAX, 3, 65537 * 16},
              {"s64", "2048", INT64_MAX, 1, 0},
              {"f32", "100000000", INT64_MAX, 4, 1600000000},
              {"f32", "100000", 1024, 1, 0},
              {"f32", "100000", 1025, 3, 1600000}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    kernel_cases c = {0};
    block_way way;
    config.front = rows[k].front;
    sort_way(hlo_callee(kernel_parse(add(&c, rows[k].type, rows[k].extents, 0, false)), 0)->roots[0].def, &way);
    ck_assert_uint_eq(way.phases, rows[k].n);
    ck_assert_int_eq(way.scratch_bytes, rows[k].scratch);
  }
  config.front = INT64_MAX;
}
END_TEST

int main(void) {
  TCase *t = tcase_create("block-sort");
  tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, lines, 0, N_TYPES);
  tcase_add_test(t, long_lines);
  tcase_add_test(t, open_lengths);
  tcase_add_loop_test(t, first, 0, ARRANGEMENTS);
  tcase_add_test(t, positions);
  tcase_add_test(t, phases);
  return run_suite("block-sort", t);
}
