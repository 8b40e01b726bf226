/* check_emulated_block.c - the orders in which the emulator runs the warps of a block and their threads, and what is in
 * shared memory before they run. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "backend_gpu/runtime/emulated_block.h"
#include "tests/suite.h"

enum { WARP = RT_BLOCK_WARP, MOST = RT_BLOCK_MOST_THREADS };

/* The numbers of the threads that have run. */
typedef struct list {
  uint32_t n, threads[MOST];
} list;

static void append(const void *const *buffers, const int64_t *args, int64_t steps, rt_block_thread *t) {
  list *l = (list *)buffers[0];
  (void)args, (void)steps;
  l->threads[l->n++] = (uint32_t)t->thread;
}

static list run(uint32_t threads, gpu_order order) {
  list l = {.n = 0};
  const void *buffers[] = {&l};
  gpu_blocks b = {.fn = append, .name = "append", .buffers = buffers, .steps = 1, .threads = threads, .order = order};
  ck_assert_ptr_null(gpu_run_blocks(&b, 0, 1));
  ck_assert_uint_eq(l.n, threads);
  return l;
}

/* The loop's variable is the number of warps. */
START_TEST(orders_differ) {
  uint32_t warps = (uint32_t)_i, threads = warps * WARP;
  list forward = run(threads, GPU_FORWARD), reverse = run(threads, GPU_REVERSE), shuffled = run(threads, GPU_SHUFFLED);
  bool seen[MOST] = {false}, warps_as_forward = true, warps_as_reverse = true;
  for (uint32_t k = 0; k < threads; k++) {
    ck_assert_uint_eq(forward.threads[k], k);
    ck_assert_uint_eq(reverse.threads[k], threads - 1 - k);
    ck_assert(!seen[shuffled.threads[k]]);
    seen[shuffled.threads[k]] = true;
    warps_as_forward &= shuffled.threads[k] / WARP == forward.threads[k] / WARP;
    warps_as_reverse &= shuffled.threads[k] / WARP == reverse.threads[k] / WARP;
  }
  ck_assert(memcmp(shuffled.threads, forward.threads, WARP * sizeof(uint32_t)) != 0);
  ck_assert(warps <= 2 || !(warps_as_forward || warps_as_reverse));
}
END_TEST

static void use_shared(const void *const *buffers, const int64_t *args, int64_t steps, rt_block_thread *t) {
  float *shared = t->shared;
  (void)args, (void)steps;
  ((float *)buffers[0])[t->block] = shared[t->thread];
  shared[t->thread] = 0;
}

/* What a block leaves in shared memory is not there for the next one. */
START_TEST(shared_memory_begins_undefined) {
  enum { BLOCKS = 3 };
  float found[BLOCKS] = {0};
  const void *buffers[] = {found};
  gpu_blocks b = {.fn = use_shared,
                  .name = "shared",
                  .buffers = buffers,
                  .steps = BLOCKS,
                  .threads = 1,
                  .shared_bytes = sizeof(float)};
  ck_assert_ptr_null(gpu_run_blocks(&b, 0, BLOCKS));
  for (int k = 0; k < BLOCKS; k++) {
    ck_assert(isnan(found[k]));
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("orders");
  tcase_add_test(t, shared_memory_begins_undefined);
  tcase_add_loop_test(t, orders_differ, 1, MOST / WARP + 1);
  return run_suite("emulated block", t);
}
