/* check_mma_product.c - products by tensor cores: dots of any layout, convolutions, epilogues, at any sizes and with
 * every shape of tile, compared with the reference evaluator; the PTX; which tiles are chosen. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "backend_gpu/runtime/emulated_block.h"
#include "emit/blocks/mma_product.h"
#include "emit/blocks/sum_parts.h"
#include "runtime/host/code_loader.h"
#include "tests/suite.h"
#include "tests/unit/emit/kernel_case.h"
#include "tests/unit/emit/sizes_case.h"

static const emit_mma_tile tiles[] = {
    {4, 2, 2, 4, 0, 1}, {2, 2, 2, 2, 0, 1},         {1, 2, 2, 1, 0, 1},          {1, 2, 1, 2, 0, 1},
    {1, 1, 2, 2, 0, 1}, {2, 2, 1, 2, DTYPE_F32, 1}, {1, 2, 2, 1, DTYPE_BF16, 1}, {2, 2, 2, 2, DTYPE_F16, 1},
    {1, 2, 1, 2, 0, 2}, {2, 2, 2, 2, 0, 8},         {1, 2, 2, 1, DTYPE_F32, 4},
};
enum { TILES = 5, PARTS = 8, ALL_TILES = sizeof tiles / sizeof *tiles }; /* those between round, the last ones divide */

static size_t tile; /* the one of this test */

static void mma_way(const sizes_case *k, arena *a, const emit_target *t, sizes_way *way) {
  (void)a;
  if (t->mma) { /* not on sm_75, for which PTX may be written, too */
    ck_assert(emit_takes_mma(t, k->i, (dtype)tiles[tile].rounded));
    *way = (sizes_way){.write = emit_mma_product_kernel, .config = &tiles[tile], .phases = 1};
    if (tiles[tile].parts > 1) {
      way->phases = 2;
      way->scratch_bytes = emit_parts_scratch(k->i, tiles[tile].parts);
    }
  }
}

static sizes_case *add(sizes_cases *c, double tolerance, const char *text) {
  sizes_case *k = sizes_add_text(c, text);
  for (uint32_t j = 0; j < c->n; j++) { /* the entry may have become two cases */
    if (!c->items[j].prepare) {
      c->items[j].prepare = mma_way;
      c->items[j].tolerance = tolerance;
      c->items[j].most = 200000;
    }
  }
  return k;
}

/* Sums are f32, so what counts is the rounding of the result. */
enum { ROUNDS = 2 };

static const double F16 = 4e-3, BF16 = 3e-2, EXACT = 0;

#define DOT_OF(x, a, y, b, t, result, lhs, rhs, batch)                                                           \
  "(%x: " x a ", %y: " y b ") {\n%z = dot(%x, %y) {lhs_contract=" lhs ", rhs_contract=" rhs ", lhs_batch=" batch \
  ", rhs_batch=" batch "} : " t result "\nreturn %z\n}"
#define DOT(t, a, b, result, lhs, rhs, batch) DOT_OF(t, a, t, b, t, result, lhs, rhs, batch)
#define PLAIN "lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, "
#define CONVOLUTION(x, w, result, attributes) \
  "(%x: f16" x ", %w: f16" w ") {\n%z = convolution(%x, %w) {" attributes "} : f16" result "\nreturn %z\n}"

START_TEST(dots) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  add(&c, F16, DOT("f16", "[m,k]", "[k,n]", "[m,n]", "[1]", "[0]", "[]"));
  add(&c, F16, DOT("f16", "[k,m]", "[n,k]", "[m,n]", "[0]", "[1]", "[]"));
  add(&c, F16, DOT("f16", "[b,m,k]", "[b,k,n]", "[b,m,n]", "[2]", "[1]", "[0]"));
  add(&c, F16, DOT("f16", "[70,133]", "[133,90]", "[70,90]", "[1]", "[0]", "[]"));
  add(&c, F16, DOT("f16", "[m,64]", "[64,96]", "[m,96]", "[1]", "[0]", "[]")); /* vectors */
  add(&c, F16, DOT("f16", "[m,k]", "[k]", "[m]", "[1]", "[0]", "[]"));
  add(&c, F16, /* the batch innermost, and columns that no vector divides */
      "(%x: f16[m,20,4], %y: f16[20,9,4]) {\n%z = dot(%x, %y) {lhs_contract=[1], rhs_contract=[0], lhs_batch=[2], "
      "rhs_batch=[2]} : f16[4,m,9]\nreturn %z\n}");
  add(&c, F16, DOT("f16", "[2,m,3,k]", "[k,3,n]", "[2,m,n]", "[2,3]", "[1,0]", "[]"));
  sizes_check_blocks(&c, ROUNDS);
}
END_TEST

/* Factors that are copied: along rows and columns, along sums, both, with fewer sums than a stage has, and with more
 * stages than shared memory. */
START_TEST(copied_factors) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  add(&c, F16, DOT("f16", "[m,k]", "[k,40]", "[m,40]", "[1]", "[0]", "[]"));
  add(&c, F16, DOT("f16", "[m,264]", "[264,72]", "[m,72]", "[1]", "[0]", "[]"));
  add(&c, F16, DOT("f16", "[b,40,24]", "[b,40,88]", "[b,24,88]", "[1]", "[1]", "[0]"));
  add(&c, F16, DOT("f16", "[m,3,8]", "[n,3,8]", "[m,n]", "[1,2]", "[1,2]", "[]"));
  add(&c, F16, DOT("f16", "[m,8,16]", "[16,8,24]", "[m,24]", "[1,2]", "[1,0]", "[]"));
  add(&c, F16, DOT("f16", "[200,5,16]", "[200,n]", "[5,16,n]", "[0]", "[0]", "[]"));
  add(&c, EXACT, DOT_OF("s8", "[m,208]", "u8", "[n,208]", "s32", "[m,n]", "[1]", "[1]", "[]"));
  add(&c, F16,
      CONVOLUTION("[n,16,h,w]", "[9,16,3,3]", "[n,9,h,w]",
                  "strides=[1,1], low=[1,1], high=[1,1], " PLAIN "layout=channels-first"));
  sizes_check_blocks(&c, ROUNDS);
}
END_TEST

START_TEST(types_of_factors) {
  sizes_cases c = {0};
  tile = 1;
  add(&c, BF16, DOT("bf16", "[m,64]", "[64,n]", "[m,n]", "[1]", "[0]", "[]"));
  add(&c, EXACT, DOT_OF("s8", "[m,k]", "s8", "[k,n]", "s32", "[m,n]", "[1]", "[0]", "[]"));
  add(&c, EXACT, DOT_OF("u8", "[m,70]", "s8", "[n,70]", "s32", "[m,n]", "[1]", "[1]", "[]"));
  add(&c, EXACT, DOT_OF("s8", "[m,k]", "u8", "[k,n]", "s32", "[m,n]", "[1]", "[0]", "[]"));
  add(&c, EXACT, DOT_OF("u8", "[m,k]", "u8", "[k,n]", "s32", "[m,n]", "[1]", "[0]", "[]"));
  sizes_check_blocks(&c, ROUNDS);
}
END_TEST

/* Factors that are rounded.  The bounds are those of sums of products with that error. */
START_TEST(rounded_factors) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  double bound = tiles[tile].rounded == DTYPE_BF16 ? BF16 : F16;
  add(&c, bound, DOT("f32", "[m,k]", "[k,n]", "[m,n]", "[1]", "[0]", "[]"));
  add(&c, bound, DOT("f32", "[m,64]", "[96,64]", "[m,96]", "[1]", "[1]", "[]"));
  sizes_check_blocks(&c, ROUNDS);
}
END_TEST

/* --- tf32 --- */

static const hlo_instr *instruction(const char *text) {
  sizes_cases c = {0};
  (void)sizes_add_text(&c, text);
  return c.items[0].entry->roots[0].def;
}

/* Rounds to 11 significant bits, ties away from zero. */
static float tf32(float x) {
  int exponent;
  double mantissa = frexp(x, &exponent);
  return (float)ldexp(round(ldexp(mantissa, 11)), exponent - 11);
}

/* Multiplies by the identity, so that each element is a rounded factor. */
START_TEST(tf32_is_rounded) {
  enum { N = 16, SIZE = N * N };
  static float x[SIZE], y[SIZE], z[SIZE];
  emit_target t;
  emit_module *m;
  emit_kernel_info info;
  const void *object;
  size_t size;
  rt_code *code;
  ASSERT_OK(emit_target_blocks_host(kernel_arena, &t));
  ASSERT_OK(emit_module_create(kernel_arena, &t, "test", &m));
  const hlo_instr *i = instruction(DOT("f32", "[16,16]", "[16,16]", "[16,16]", "[1]", "[0]", "[]"));
  ASSERT_OK(emit_mma_product_kernel(m, "k", i, NULL, &tiles[TILES], 0, &info));
  ASSERT_OK(emit_module_object(m, &object, &size));
  ASSERT_OK(rt_code_load(kernel_arena, (rt_span){object, size}, kernel_resolve, &code));
  for (int k = 0; k < SIZE; k++) {
    x[k] = (float)ldexp((double)(next_random() >> 40), k % 40 - 30) * (k % 3 ? 1 : -1);
    y[k] = k / N == k % N;
  }
  x[0] = 1 + 0x1p-11F; /* a tie */
  x[1] = 1 + 0x1p-11F - 0x1p-23F;
  x[2] = -1 - 0x1p-11F;
  uint32_t bits = 0x7fffffff; /* the NaN that GPUs make */
  memcpy(&x[SIZE - 1], &bits, sizeof bits);
  const void *buffers[] = {x, y, z};
  gpu_blocks b = {(rt_block_fn *)(intptr_t)rt_code_find(code, "k"),
                  "k",
                  buffers,
                  NULL,
                  emit_static_grid(&info),
                  info.threads,
                  info.shared_bytes,
                  GPU_SHUFFLED};
  ASSERT_OK(gpu_run_blocks(&b, 0, b.steps));
  ck_assert(z[0] == 1 + 0x1p-10F && z[1] == 1 && z[2] == -1 - 0x1p-10F);
  for (int k = 0; k < SIZE - N; k++) {
    ck_assert_msg(z[k] == tf32(x[k]), "%a is %a, not %a", x[k], z[k], tf32(x[k]));
  }
  ck_assert(isnan(z[SIZE - 1]));
}
END_TEST

START_TEST(convolutions) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  add(&c, F16,
      CONVOLUTION("[n,5,h,w]", "[9,5,3,3]", "[n,9,h,w]",
                  "strides=[1,1], low=[1,1], high=[1,1], " PLAIN "layout=channels-first"));
  add(&c, F16,
      CONVOLUTION("[n,h,w,5]", "[9,5,3,3]", "[n,h,w,9]",
                  "strides=[1,1], low=[1,1], high=[1,1], " PLAIN "layout=channels-last"));
  add(&c, F16,
      CONVOLUTION("[n,6,13,13]", "[8,3,3,3]", "[n,8,11,11]",
                  "strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[2,2], groups=2, "
                  "layout=channels-first"));
  sizes_check_blocks(&c, ROUNDS);
}
END_TEST

/* Sums that are divided into parts, of which the last ones may have none; more of them than a stage has, and fewer. */
START_TEST(divided_sums) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  if (tiles[tile].rounded) {
    add(&c, F16, DOT("f32", "[m,k]", "[k,n]", "[m,n]", "[1]", "[0]", "[]"));
  } else {
    add(&c, F16, DOT("f16", "[m,k]", "[k,n]", "[m,n]", "[1]", "[0]", "[]"));
    add(&c, F16, DOT("f16", "[b,m,520]", "[b,520,40]", "[b,m,40]", "[2]", "[1]", "[0]"));
    add(&c, EXACT, DOT_OF("s8", "[m,400]", "s8", "[n,400]", "s32", "[m,n]", "[1]", "[1]", "[]"));
    add(&c, F16,
        CONVOLUTION("[n,16,h,w]", "[9,16,3,3]", "[n,9,h,w]",
                    "strides=[1,1], low=[1,1], high=[1,1], " PLAIN "layout=channels-first"));
  }
  sizes_check_blocks(&c, ROUNDS);
}
END_TEST

/* A bias, an activation, and a residual, whose memory the result may have. */
START_TEST(epilogues) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  sizes_case *k = add(&c, F16,
                      "(%x: f16[m,40], %y: f16[40,n], %b: f16[n], %r: f16[m,n]) {\n%z = dot(%x, %y) {lhs_contract=[1], "
                      "rhs_contract=[0], lhs_batch=[], rhs_batch=[]} : f16[m,n]\n%c = broadcast(%b) {dimensions=[1]} : "
                      "f16[m,n]\n%s = add(%z, %c) : f16[m,n]\n%t = tanh(%s) : f16[m,n]\n%u = add(%t, %r) : "
                      "f16[m,n]\nreturn %u\n}");
  k->kind = HLO_FUSION_OUTPUT;
  k->shares = 3;
  sizes_check_blocks(&c, ROUNDS);
}
END_TEST

/* --- which instructions, and which tiles --- */

START_TEST(types) {
  emit_target gpu, old, cpu;
  ASSERT_OK(emit_target_nvptx(kernel_arena, "sm_80", &gpu));
  ASSERT_OK(emit_target_nvptx(kernel_arena, "sm_75", &old));
  ASSERT_OK(emit_target_init(kernel_arena, NULL, "native", 0, &cpu));
  const hlo_instr *half = instruction(DOT("f16", "[64,64]", "[64,64]", "[64,64]", "[1]", "[0]", "[]"));
  ck_assert(emit_takes_mma(&gpu, half, DTYPE_INVALID));
  ck_assert(!emit_takes_mma(&old, half, DTYPE_INVALID));
  ck_assert(!emit_takes_mma(&cpu, half, DTYPE_INVALID));
  ck_assert(!emit_takes_mma(&gpu, instruction(DOT("f32", "[64,64]", "[64,64]", "[64,64]", "[1]", "[0]", "[]")),
                            DTYPE_INVALID));
  ck_assert(!emit_takes_mma(&gpu, instruction(DOT("f64", "[64,64]", "[64,64]", "[64,64]", "[1]", "[0]", "[]")),
                            DTYPE_INVALID));
  ck_assert(!emit_takes_mma(&gpu, instruction(DOT("s32", "[64,64]", "[64,64]", "[64,64]", "[1]", "[0]", "[]")),
                            DTYPE_INVALID));
}
END_TEST

START_TEST(choices) {
  emit_mma_tile t;
  ck_assert(
      !emit_choose_mma_tile(instruction(DOT("f16", "[4,64]", "[64,64]", "[4,64]", "[1]", "[0]", "[]")), false, &t));
  ck_assert(
      !emit_choose_mma_tile(instruction(DOT("f16", "[64,8]", "[8,64]", "[64,64]", "[1]", "[0]", "[]")), false, &t));
  ck_assert(emit_choose_mma_tile(instruction(DOT("f16", "[4096,64]", "[64,4096]", "[4096,4096]", "[1]", "[0]", "[]")),
                                 false, &t));
  ck_assert(t.warp_rows * t.down == 8 && t.warp_columns * t.across == 8);
  ck_assert(
      emit_choose_mma_tile(instruction(DOT("f16", "[64,64]", "[64,64]", "[64,64]", "[1]", "[0]", "[]")), false, &t));
  ck_assert(t.warp_rows * t.down * t.warp_columns * t.across <= 4); /* more blocks matter more than larger tiles */
  ck_assert(emit_choose_mma_tile(instruction(DOT("f16", "[16,64]", "[64,65536]", "[16,65536]", "[1]", "[0]", "[]")),
                                 false, &t));
  ck_assert(t.warp_rows * t.down == 1 && t.parts == 1);
  const hlo_instr *few = instruction(DOT("f16", "[64,8192]", "[8192,128]", "[64,128]", "[1]", "[0]", "[]"));
  ck_assert(emit_choose_mma_tile(few, true, &t) && t.parts == 32);
  ck_assert(emit_choose_mma_tile(few, false, &t) && t.parts == 1);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("mma-product");
  tcase_add_checked_fixture(t, sizes_setup_with_kernels, sizes_teardown_with_kernels);
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, dots, 0, TILES);
  tcase_add_loop_test(t, copied_factors, 0, TILES);
  tcase_add_test(t, types_of_factors);
  tcase_add_loop_test(t, rounded_factors, TILES, PARTS);
  tcase_add_test(t, tf32_is_rounded);
  tcase_add_loop_test(t, convolutions, 0, TILES);
  tcase_add_loop_test(t, divided_sums, PARTS, ALL_TILES);
  tcase_add_loop_test(t, epilogues, 0, TILES);
  tcase_add_loop_test(t, epilogues, PARTS, PARTS + 2);
  tcase_add_test(t, types);
  tcase_add_test(t, choices);
  return run_suite("mma-product", t);
}
