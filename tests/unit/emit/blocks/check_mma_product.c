/* check_mma_product.c - products by tensor cores: dots of any layout, convolutions, epilogues, at any sizes and with
 * every shape of tile, compared with the reference evaluator; the PTX; which tiles are chosen. */
#include <check.h>
#include <float.h>
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
    {4, 2, 2, 4, 0, 1, 0},          {2, 2, 2, 2, 0, 1, 0},         {1, 2, 2, 1, 0, 1, 0},
    {1, 2, 1, 2, 0, 1, 0},          {1, 1, 2, 2, 0, 1, 0},         {2, 2, 1, 2, DTYPE_F32, 1, 0},
    {1, 2, 2, 1, DTYPE_BF16, 1, 0}, {2, 2, 2, 2, DTYPE_F16, 1, 0}, {1, 2, 1, 2, 0, 2, 0},
    {2, 2, 2, 2, 0, 8, 0},          {1, 2, 2, 1, DTYPE_F32, 4, 0}, {4, 2, 2, 4, DTYPE_F32, 1, 1},
    {1, 2, 1, 2, DTYPE_F32, 1, 1},  {2, 2, 2, 2, DTYPE_F32, 2, 1},
};
/* Tiles before ROUNDED have factors of any type, those from there to PARTS round factors, those from there to SPLIT
 * divide sums among blocks, and those from SPLIT on split factors into two. */
enum { TILES = 5, ROUNDED = 5, PARTS = 8, SPLIT = 11, ALL_TILES = sizeof tiles / sizeof *tiles };

static size_t tile; /* the place in tiles[] of the tile that this test uses */

static void mma_way(const sizes_case *k, arena *a, const emit_target *t, sizes_way *way) {
  (void)a;
  if (t->mma) { /* not on sm_75, for which PTX may be written, too */
    ck_assert(emit_takes_mma(t, k->i, (dtype)tiles[tile].rounded));
    *way = (sizes_way){.write = emit_mma_product_kernel, .config = &tiles[tile], .phases = 1};
    if (tiles[tile].parts > 1) {
      way->scratch_bytes = emit_parts_scratch(k->i, tiles[tile].parts);
      way->counters = emit_count_mma_tiles(k->i, &tiles[tile]);
    }
  }
}

static sizes_case *add(sizes_cases *c, double tolerance, const char *text) {
  sizes_case *k = sizes_add_text(c, text);
  for (uint32_t j = 0; j < c->n; j++) { /* sizes_add_text may have added two cases for the text */
    if (!c->items[j].prepare) {
      c->items[j].prepare = mma_way;
      c->items[j].tolerance = tolerance;
      c->items[j].most = 20000;
    }
  }
  return k;
}

enum { ROUNDS = 3 }; /* the sizes of the first two are 0 and 1 */

/* The tolerances.  Sums of f16 and bf16 are f32, so what counts there is the rounding of the result. */
static const double F16 = 4e-3, BF16 = 3e-2, SPLIT_F32 = 1e-5, F64 = 1e-13, EXACT = 0;

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

/* Factors that are copied asynchronously, along rows or columns, along the dimension of the sums, or along both; sums
 * that are shorter than a stage; more stages than shared memory has room for; and lines that begin at no multiples of
 * a copy's size. */
START_TEST(copied_factors) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  add(&c, F16, DOT("f16", "[m,k]", "[k,40]", "[m,40]", "[1]", "[0]", "[]"));
  add(&c, F16, DOT("f16", "[m,264]", "[264,72]", "[m,72]", "[1]", "[0]", "[]"));
  add(&c, F16, DOT("f16", "[b,40,24]", "[b,40,88]", "[b,24,88]", "[1]", "[1]", "[0]"));
  add(&c, F16, DOT("f16", "[m,3,8]", "[n,3,8]", "[m,n]", "[1,2]", "[1,2]", "[]"));
  add(&c, F16, DOT("f16", "[m,8,16]", "[16,8,24]", "[m,24]", "[1,2]", "[1,0]", "[]"));
  add(&c, F16, DOT("f16", "[200,5,16]", "[200,n]", "[5,16,n]", "[0]", "[0]", "[]"));
  add(&c, F16, DOT("f16", "[m,20]", "[20,44]", "[m,44]", "[1]", "[0]", "[]"));
  add(&c, F16, DOT("f16", "[m,84]", "[n,84]", "[m,n]", "[1]", "[1]", "[]"));
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

/* Sums of f64 differ in their order only. */
START_TEST(f64) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  add(&c, F64, DOT("f64", "[m,k]", "[k,n]", "[m,n]", "[1]", "[0]", "[]"));
  add(&c, F64, DOT("f64", "[m,44]", "[n,44]", "[m,n]", "[1]", "[1]", "[]")); /* copies */
  add(&c, F64, DOT("f64", "[m,18]", "[18,64]", "[m,64]", "[1]", "[0]", "[]"));
  sizes_check_blocks(&c, ROUNDS);
}
END_TEST

/* Factors that are rounded.  The tolerances are those of sums of products whose factors have that rounding error. */
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

/* Multiplies x[m,k] by y[k,n] with tile number t; scratch memory is for two parts at most. */
static void multiply(size_t t, int m, int k, int n, const float *x, const float *y, float *z) {
  emit_target host;
  emit_module *module;
  emit_kernel_info info;
  rt_code *code;
  const hlo_instr *i =
      instruction(TEXT("(%%x: f32[%d,%d], %%y: f32[%d,%d]) {\n%%z = dot(%%x, %%y) {lhs_contract=[1], "
                       "rhs_contract=[0], lhs_batch=[], rhs_batch=[]} : f32[%d,%d]\nreturn %%z\n}",
                       m, k, k, n, m, n));
  ASSERT_OK(emit_target_blocks_host(kernel_arena, &host));
  ASSERT_OK(emit_module_create(kernel_arena, &host, "test", &module));
  ASSERT_OK(emit_mma_product_kernel(module, "k", i, NULL, &tiles[t], 0, &info));
  ASSERT_OK(kernel_load(kernel_arena, module, kernel_resolve, &code));
  dim counters = emit_count_mma_tiles(i, &tiles[t]);
  ck_assert(dim_is_const(counters));
  const void *buffers[] = {x, y, z, arena_alloc_aligned(kernel_arena, 2 * (size_t)(m * n) * sizeof *z, 64),
                           ARENA_NEW_N(kernel_arena, int32_t, counters)};
  int64_t steps = emit_static_grid(&info);
  gpu_blocks b = {.fn = (rt_block_fn *)(intptr_t)rt_code_find(code, "k"),
                  .name = "k",
                  .buffers = buffers,
                  .steps = steps,
                  .threads = info.threads,
                  .shared_bytes = info.shared_bytes,
                  .order = GPU_SHUFFLED};
  ASSERT_OK(gpu_run_blocks(&b, 0, steps));
}

/* Multiplies by the identity, so that each element is a rounded factor. */
START_TEST(tf32_is_rounded) {
  enum { N = 16, SIZE = N * N };
  static _Alignas(64) float x[SIZE], y[SIZE], z[SIZE];
  for (int k = 0; k < SIZE; k++) {
    x[k] = (float)ldexp((double)(next_random() >> 40), k % 40 - 30) * (k % 3 ? 1 : -1);
    y[k] = k / N == k % N;
  }
  x[0] = 1 + 0x1p-11F; /* a tie */
  x[1] = 1 + 0x1p-11F - 0x1p-23F;
  x[2] = -1 - 0x1p-11F;
  uint32_t bits = 0x7fffffff; /* the NaN that GPUs make */
  memcpy(&x[SIZE - 1], &bits, sizeof bits);
  multiply(ROUNDED, N, N, N, x, y, z);
  ck_assert(z[0] == 1 + 0x1p-10F && z[1] == 1 && z[2] == -1 - 0x1p-10F);
  for (int k = 0; k < SIZE - N; k++) {
    ck_assert_msg(z[k] == tf32(x[k]), "%a is %a, not %a", x[k], z[k], tf32(x[k]));
  }
  ck_assert(isnan(z[SIZE - 1]));
}
END_TEST

/* Returns a number of either sign; magnitudes differ by factors of up to 2^20. */
static float any_float(void) {
  uint64_t r = next_random() >> 16;
  return (float)ldexp((double)(r >> 8 & 0xffffff) + 0x1p24, (int)(r % 20) - 34) * (r >> 40 & 1 ? 1 : -1);
}

/* The error is at most what mma_product.h says.  What is left out of the products costs at most 2^-21 (1 + 2^-10) of
 * the sum of the products' magnitudes.  A sum in f32 has at most n + n / 4 additions: of n products, and of what each
 * step of eight products and each part adds.  Each addition costs at most 2^-24 of the sum of the magnitudes. */
START_TEST(split_factors) {
  enum { M = 20, N = 24, LONG = 200, SHORT = 3 };
  static _Alignas(64) float x[M * LONG], y[LONG * N], z[M * N];
  for (int sums = SHORT; sums <= LONG; sums += LONG - SHORT) {
    double most = 0;
    for (int k = 0; k < M * sums || k < sums * N; k++) {
      x[k < M * sums ? k : 0] = any_float();
      y[k < sums * N ? k : 0] = any_float();
    }
    multiply((size_t)_i, M, sums, N, x, y, z);
    for (int k = 0; k < M * N; k++) {
      double want = 0, sizes = 0;
      for (int j = 0; j < sums; j++) {
        double product = (double)x[k / N * sums + j] * (double)y[j * N + k % N];
        want += product;
        sizes += fabs(product);
      }
      double error = fabs((double)z[k] - want) / sizes, bound = 0x1p-21 * (1 + 0x1p-10) + (1.25 * sums + 1) * 0x1p-24;
      ck_assert_msg(error <= bound, "%d sums: %.9g is not %.9g: %g of the sizes, not %g", sums, z[k], want, error,
                    bound);
      most = error > most ? error : most;
    }
    /* Long sums are far better than their bound.  Without the split, the errors of tf32 would be 2^-11. */
    ck_assert_msg(most < 0x1p-20, "%d sums: %g", sums, most);
  }
}
END_TEST

/* A factor that is NaN or infinite gives the same result as a product in f32, and the largest number stays finite. */
START_TEST(split_special_factors) {
  enum { N = 8 };
  static _Alignas(64) float x[N * N], y[N * N], z[N * N];
  for (int k = 0; k < N * N; k++) {
    x[k] = k / N == k % N ? 1 : 0;
    y[k] = 1 + (float)k / 1000;
  }
  x[0] = INFINITY;
  x[N + 1] = FLT_MAX;
  x[2 * N + 2] = NAN;
  x[3 * N + 3] = -INFINITY;
  y[N] = 0.5F;
  y[N + 1] = 2;
  y[3 * N] = 0;
  multiply((size_t)_i, N, N, N, x, y, z);
  for (int j = 0; j < N; j++) {
    ck_assert(z[j] == INFINITY);
    ck_assert(isnan(z[2 * N + j]));
    ck_assert(j == 0 ? isnan(z[3 * N]) : z[3 * N + j] == -INFINITY);
    ck_assert(fabs((double)z[4 * N + j] - (double)y[4 * N + j]) <= 0x1p-21);
  }
  ck_assert(fabs((double)z[N] / (FLT_MAX * 0.5) - 1) <= 0x1p-21);
  ck_assert(z[N + 1] == INFINITY);
}
END_TEST

/* Products with split factors, whose sizes are not constants; their PTX is checked as well. */
START_TEST(split_sizes) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  add(&c, SPLIT_F32, DOT("f32", "[m,k]", "[k,n]", "[m,n]", "[1]", "[0]", "[]"));
  add(&c, SPLIT_F32, DOT("f32", "[m,72]", "[n,72]", "[m,n]", "[1]", "[1]", "[]")); /* copies */
  sizes_check_blocks(&c, ROUNDS);
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

/* Sums that are divided into parts.  The last part may have no products; the other parts have more or fewer products
 * than a stage. */
START_TEST(divided_sums) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  if (tiles[tile].rounded) {
    add(&c, F16, DOT("f32", "[m,k]", "[k,n]", "[m,n]", "[1]", "[0]", "[]"));
  } else {
    add(&c, F16, DOT("f16", "[m,k]", "[k,n]", "[m,n]", "[1]", "[0]", "[]"));
    add(&c, F16, DOT("f16", "[m,160]", "[160,n]", "[m,n]", "[1]", "[0]", "[]")); /* five whole stages */
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
  ck_assert(emit_takes_mma(&gpu, instruction(DOT("f64", "[64,64]", "[64,64]", "[64,64]", "[1]", "[0]", "[]")),
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
  tcase_add_loop_test(t, f64, 0, TILES - 1);
  tcase_add_loop_test(t, rounded_factors, ROUNDED, PARTS);
  tcase_add_test(t, tf32_is_rounded);
  tcase_add_loop_test(t, split_factors, SPLIT, ALL_TILES);
  tcase_add_loop_test(t, split_special_factors, SPLIT, ALL_TILES);
  tcase_add_loop_test(t, split_sizes, SPLIT, ALL_TILES);
  tcase_add_loop_test(t, convolutions, 0, TILES);
  tcase_add_loop_test(t, divided_sums, PARTS, SPLIT);
  tcase_add_loop_test(t, epilogues, 0, TILES);
  tcase_add_loop_test(t, epilogues, PARTS, PARTS + 2);
  tcase_add_test(t, types);
  tcase_add_test(t, choices);
  return run_suite("mma-product", t);
}
