/* check_block_nms.c - non-maximum suppression by blocks of threads chooses the same boxes as the reference evaluator:
 * among few boxes and many, which suppress many others or few, with equal scores and with NaN. */
#include "emit/blocks/block_nms.h"
#include "tests/unit/emit/blocks/block_case.h"

static void nms_way(const hlo_instr *i, block_way *out) {
  dim scratch = emit_block_nms_scratch(i);
  ck_assert(dim_is_const(scratch));
  *out = (block_way){.write = emit_block_nms_kernel, .phases = EMIT_NMS_PHASES, .scratch_bytes = scratch};
}

/* The corners, the threshold and the floor of scores, if there is one, are random numbers; the integer operand is how
 * many boxes are wanted. */
static void add(kernel_cases *c, int batches, int classes, int boxes, int limit, bool floor) {
  int rows = batches * classes * (boxes < limit ? boxes : limit);
  kernel_case *k =
      kernel_add(c, 0,
                 TEXT("s64[%d,3]; s64[](%%b: f32[%d,%d,4], %%s: f32[%d,%d,%d], %%k: s64[], %%o: f32[]%s) {\n%%y, %%t = "
                      "non-max-suppression(%%b, %%s, %%k, %%o%s) {limit=%d} : s64[%d,3], s64[]\nreturn %%y, %%t\n}",
                      rows, batches, boxes, batches, classes, boxes, floor ? ", %f: f32[]" : "", floor ? ", %f" : "",
                      limit, rows));
  k->low = limit / 2;
  k->high = limit + 5;
}

static const block_numbers numbers[] = {BLOCK_EXACT, BLOCK_ROUGH, BLOCK_TIES, BLOCK_SPECIAL};

START_TEST(boxes) {
  static const int sizes[][4] = {{1, 1, 1, 1},   {1, 1, 2, 5},    {1, 2, 31, 7},    {2, 3, 32, 32},
                                 {1, 5, 33, 10}, {2, 1, 64, 100}, {1, 2, 513, 100}, {1, 1, 1000, 300},
                                 {3, 4, 50, 10}, {1, 1, 5000, 50}};
  kernel_cases c = {0};
  for (int round = 0; round < 3; round++) {
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
      add(&c, sizes[k][0], sizes[k][1], sizes[k][2], sizes[k][3], (k + (size_t)round) % 2);
    }
  }
  block_check_all(&c, numbers[_i], nms_way);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("block-nms");
  tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, boxes, 0, sizeof numbers / sizeof *numbers);
  return run_suite("block-nms", t);
}
