/* check_gemm.c - compares register blocks of matrix products (emit/product/gemm.h) with sums in f64: every size of
 * block for which a target has registers, types, strides, lengths of k, vector widths and processors. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "base/tensor/literal.h"
#include "emit/product/gemm.h"
#include "emit/kernel/module.h"
#include "runtime/host/code_loader.h"
#include "tests/unit/emit/kernel_test.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

static void succeed(status s) { ck_assert_msg(!s, "%s", s ? status_message(s) : ""); }

/* --- a function around a block: sums begin at what C holds --- */

typedef struct block_case {
  dtype type;
  int rows, vectors;
  int64_t k, a_row, a_k, b_gap; /* b_gap: elements between the vectors' panels; -1: they lie side by side */
  bool scattered, known;        /* whether rows are found by a list of their offsets, and whether k is a
                                   constant */
  int unroll;
} block_case;

typedef void block_fn(const void *a, const void *b, void *c, int64_t k);

static dtype sum_type(dtype t) { return t == DTYPE_F64 ? t : DTYPE_F32; }

static LLVMValueRef sum_at(emit_ir *w, LLVMValueRef c, LLVMTypeRef element, int at) {
  LLVMValueRef offset = emit_i64(w, at);
  return LLVMBuildGEP2(w->builder, element, c, &offset, 1, "");
}

static emit_gemm block_of(const block_case *x, int lanes, const int64_t *places) {
  emit_gemm g = {.tile = {x->rows, x->vectors, lanes},
                 .type = x->type,
                 .a_row = x->a_row,
                 .a_k = x->a_k,
                 .a_at = x->scattered ? places : NULL,
                 .b_k = lanes,
                 .b_vector = lanes * x->k + x->b_gap,
                 .unroll = x->unroll};
  if (x->b_gap < 0) {
    g.b_k = lanes * x->vectors;
    g.b_vector = lanes;
  }
  return g;
}

static block_fn *build(const emit_target *t, const block_case *x, emit_gemm *g) {
  emit_module *m;
  succeed(emit_module_create(memory, t, "block", &m));
  emit_ir *w = emit_module_ir_of(m);
  LLVMTypeRef types[] = {w->ptr, w->ptr, w->ptr, w->i64};
  w->function =
      LLVMAddFunction(w->module, "block", LLVMFunctionType(LLVMVoidTypeInContext(w->context), types, 4, false));
  LLVMPositionBuilderAtEnd(w->builder, emit_block(w, "entry"));
  g->a = LLVMGetParam(w->function, 0);
  g->b = LLVMGetParam(w->function, 1);
  g->k = x->known ? emit_i64(w, x->k) : LLVMGetParam(w->function, 3);
  LLVMTypeRef element = sum_type(x->type) == DTYPE_F64 ? w->f64 : w->f32;
  LLVMTypeRef vector = emit_vector_type(element, g->tile.lanes);
  LLVMValueRef sums[EMIT_GEMM_SUMS], c = LLVMGetParam(w->function, 2);
  for (int k = 0; k < x->rows * x->vectors; k++) {
    sums[k] = LLVMBuildLoad2(w->builder, vector, sum_at(w, c, element, k * g->tile.lanes), "");
    LLVMSetAlignment(sums[k], 4);
  }
  emit_gemm_block(w, g, sums);
  for (int k = 0; k < x->rows * x->vectors; k++) {
    LLVMSetAlignment(LLVMBuildStore(w->builder, sums[k], sum_at(w, c, element, k * g->tile.lanes)), 4);
  }
  LLVMBuildRetVoid(w->builder);
  rt_code *code;
  succeed(kernel_load(memory, m, kernel_resolve, &code));
  return (block_fn *)rt_code_find(code, "block");
}

/* Returns a number in [-1, 1). */
static double random_number(void) { return (double)(int64_t)(next_random() >> 16 & 0xffff) / 32768.0 - 1; }

/* Returns n random elements, the last of which ends where the allocated memory ends. */
static void *random_array(dtype t, int64_t n) {
  char *at = malloc((size_t)n * dtype_bytes(t) + 1);
  for (int64_t k = 0; k < n; k++) {
    dtype_store_f64(t, at + (size_t)k * dtype_bytes(t), random_number(), true, DTYPE_ROUND_NEAREST);
  }
  return at;
}

static double element(dtype t, const void *at, int64_t k) {
  return dtype_load_f64(t, (const char *)at + (size_t)k * dtype_bytes(t));
}

static void check_block(const emit_target *t, const block_case *x) {
  int lanes = emit_gemm_lanes(t, x->type), columns = lanes * x->vectors;
  int64_t places[EMIT_GEMM_ROWS], last = 0;
  for (int r = 0; r < x->rows; r++) {
    places[r] = x->scattered ? (r * 7 % x->rows) * x->a_row : r * x->a_row;
    last = places[r] > last ? places[r] : last;
  }
  emit_gemm g = block_of(x, lanes, places);
  block_fn *f = build(t, x, &g);
  dtype sums = sum_type(x->type);
  int64_t n_b = (x->vectors - 1) * g.b_vector + (x->k ? (x->k - 1) * g.b_k + lanes : 0);
  void *a = random_array(x->type, last + (x->k ? (x->k - 1) * x->a_k + 1 : 0));
  void *b = random_array(x->type, n_b), *c = random_array(sums, x->rows * columns);
  double *expected = malloc((size_t)(x->rows * columns) * sizeof *expected);
  for (int r = 0; r < x->rows; r++) {
    for (int j = 0; j < columns; j++) {
      double sum = element(sums, c, r * columns + j);
      for (int64_t k = 0; k < x->k; k++) {
        sum += element(x->type, a, places[r] + k * x->a_k) *
               element(x->type, b, j / lanes * g.b_vector + k * g.b_k + j % lanes);
      }
      expected[r * columns + j] = sum;
    }
  }
  f(a, b, c, x->k);
  /* Numbers are at most 1, so each of k + 1 roundings errs by at most half an ulp of k + 1. */
  double bound = (double)(x->k + 1) * (double)(x->k + 1) * (sums == DTYPE_F64 ? 0x1p-53 : 0x1p-24);
  for (int j = 0; j < x->rows * columns; j++) {
    double got = element(sums, c, j);
    ck_assert_msg(fabs(got - expected[j]) <= bound, "%s lanes %d, %s, %dx%d, k %lld: sum %d is %g, not %g", t->cpu,
                  lanes, dtype_name(x->type), x->rows, x->vectors, (long long)x->k, j, got, expected[j]);
  }
  free(a);
  free(b);
  free(c);
  free(expected);
}

START_TEST(blocks) {
  static const block_case cases[] = {
      {DTYPE_F32, 1, 1, 1, 1, 1, -1, false, true, 0},     {DTYPE_F32, 1, 1, 0, 1, 1, -1, false, false, 0},
      {DTYPE_F32, 14, 2, 37, 40, 1, 0, false, true, 0},   {DTYPE_F32, 14, 2, 37, 1, 14, -1, false, false, 0},
      {DTYPE_F32, 6, 4, 64, 64, 1, 32, false, true, 0},   {DTYPE_F32, 7, 3, 5, 11, 2, -1, true, true, 0},
      {DTYPE_F32, 1, 8, 130, 130, 1, 0, false, false, 0}, {DTYPE_F32, 13, 2, 8, 8, 1, 0, true, false, 4},
      {DTYPE_F32, 5, 1, 3, 3, 1, 0, false, true, 8},      {DTYPE_F32, 28, 1, 9, 9, 1, 0, false, true, 3},
      {DTYPE_F32, 3, 2, 2, 0, 1, -1, false, true, 0},     {DTYPE_F64, 8, 3, 21, 21, 1, 0, false, true, 0},
      {DTYPE_F64, 3, 1, 17, 1, 3, -1, true, false, 0},    {DTYPE_F16, 6, 2, 19, 19, 1, 0, false, true, 0},
      {DTYPE_BF16, 6, 2, 19, 1, 6, -1, false, false, 0},  {DTYPE_BF16, 12, 2, 33, 40, 1, 16, true, true, 2},
  };
  emit_target t = emit_machine_target(memory, &emit_machines[_i]);
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    check_block(&t, &cases[k]);
  }
}
END_TEST

/* Checks every block that emit_gemm_fit chooses, and the smaller blocks that emit_gemm_cut makes of it. */
START_TEST(fitted) {
  emit_target t = emit_machine_target(memory, &emit_machines[_i]);
  for (int m = 1; m <= 30; m++) {
    int64_t n = m * 13 % 90 + 1;
    emit_gemm_tile tile = emit_gemm_fit(&t, DTYPE_F32, m, n, EMIT_GEMM_VECTORS);
    emit_gemm_parts rows = emit_gemm_cut(m, tile.rows);
    ck_assert_int_eq(rows.n_large * rows.large + rows.n_small * (rows.large - 1), m);
    ck_assert_int_le(rows.large, tile.rows);
    ck_assert_int_le(tile.rows * tile.vectors + tile.vectors + 1, 32);
    check_block(&t, &(block_case){DTYPE_F32, rows.large, tile.vectors, 6, 6, 1, 0, false, true, 0});
  }
}
END_TEST

/* Checks that blocks of large products have enough sums to hide the latency of multiply-adds, whatever numbers of rows
 * and columns divide evenly. */
START_TEST(busy) {
  emit_target t = emit_machine_target(memory, &emit_machines[_i]);
  int registers = t.vector_bits && t.lanes * 32 > t.vector_bits ? t.lanes * 32 / t.vector_bits : 1; /* of a vector */
  for (int m = 64; t.registers >= 16 && m < 500; m += 3) {
    for (int64_t vectors = 8; vectors <= 384; vectors *= 2) {
      emit_gemm_tile tile = emit_gemm_fit(&t, DTYPE_F32, m, vectors * t.lanes, EMIT_GEMM_VECTORS);
      ck_assert_int_ge(tile.rows * tile.vectors * registers, EMIT_GEMM_LATENCY);
    }
  }
}
END_TEST

START_TEST(cuts) {
  static const struct {
    int64_t n;
    int most;
    emit_gemm_parts parts;
  } rows[] = {
      {1, 14, {1, 0, 1}},   {14, 14, {1, 0, 14}}, {15, 14, {1, 1, 8}},
      {49, 14, {1, 3, 13}}, {56, 14, {4, 0, 14}}, {100, 6, {15, 2, 6}},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    emit_gemm_parts p = emit_gemm_cut(rows[k].n, rows[k].most);
    ck_assert_int_eq(p.n_large, rows[k].parts.n_large);
    ck_assert_int_eq(p.n_small, rows[k].parts.n_small);
    ck_assert_int_eq(p.large, rows[k].parts.large);
  }
}
END_TEST

int main(void) {
  TCase *c = tcase_create("blocks");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_set_timeout(c, 120);
  tcase_add_loop_test(c, blocks, 0, EMIT_MACHINES);
  tcase_add_loop_test(c, fitted, 0, EMIT_MACHINES);
  tcase_add_loop_test(c, busy, 0, EMIT_MACHINES);
  tcase_add_test(c, cuts);
  return run_suite("gemm", c);
}
