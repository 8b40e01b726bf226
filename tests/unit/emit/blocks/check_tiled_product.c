/* check_tiled_product.c - products in tiles: dots of any layout, convolutions, epilogues, other types, at any sizes and
 * with every shape of tile, compared with the reference evaluator; which tiles are chosen. */
#include <check.h>

#include "emit/blocks/sum_parts.h"
#include "emit/blocks/tiled_product.h"
#include "tests/suite.h"
#include "tests/unit/emit/blocks/block_case.h"
#include "tests/unit/emit/sizes_case.h"

static const emit_tile tiles[] = {{1, 1, 16, 1}, {2, 1, 16, 1}, {1, 4, 16, 1}, {4, 4, 16, 1},
                                  {8, 2, 16, 1}, {8, 8, 8, 1},  {1, 1, 16, 2}, {4, 4, 16, 8}};
enum { TILES = 6, ALL_TILES = sizeof tiles / sizeof *tiles }; /* those from TILES on divide sums among blocks */

static size_t tile; /* the place in tiles[] of the tile that this test uses */

static void tiled_way(const sizes_case *k, arena *a, const emit_target *t, sizes_way *way) {
  (void)a;
  if (t->execution == EMIT_BLOCKS) {
    ck_assert(emit_takes_tiles(k->i));
    *way = (sizes_way){.write = emit_tiled_product_kernel, .config = &tiles[tile], .phases = 1};
    if (tiles[tile].parts > 1) {
      way->scratch_bytes = emit_parts_scratch(k->i, tiles[tile].parts);
      way->counters = emit_count_tiles_of(k->i, &tiles[tile]);
    }
  }
}

static sizes_case *add(sizes_cases *c, double tolerance, const char *text) {
  sizes_case *k = sizes_add_text(c, text);
  for (uint32_t j = 0; j < c->n; j++) { /* sizes_add_text may have added two cases for the text */
    if (!c->items[j].prepare) {
      c->items[j].prepare = tiled_way;
      c->items[j].tolerance = tolerance;
      c->items[j].most = 200000;
    }
  }
  return k;
}

/* A sum of n products in f32 has a relative error of at most n 2^-24 of the sum of their sizes. */
static const double F32 = 1e-4, F16 = 4e-3, BF16 = 3e-2, EXACT = 0;

#define DOT(type, a, b, result, lhs, rhs, batch)                                                                       \
  "(%x: " type a ", %y: " type b ") {\n%z = dot(%x, %y) {lhs_contract=" lhs ", rhs_contract=" rhs ", lhs_batch=" batch \
  ", rhs_batch=" batch "} : " type result "\nreturn %z\n}"

START_TEST(dots) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  add(&c, F32, DOT("f32", "[m,k]", "[k,n]", "[m,n]", "[1]", "[0]", "[]"));
  add(&c, F32, DOT("f32", "[k,m]", "[n,k]", "[m,n]", "[0]", "[1]", "[]"));
  add(&c, F32, DOT("f32", "[b,m,k]", "[b,k,n]", "[b,m,n]", "[2]", "[1]", "[0]"));
  add(&c, F32, DOT("f32", "[70,33]", "[33,90]", "[70,90]", "[1]", "[0]", "[]"));
  add(&c, F32, DOT("f32", "[m,48]", "[48,n]", "[m,n]", "[1]", "[0]", "[]")); /* no multiple of parts, but of stages */
  add(&c, F32, DOT("f32", "[m,k]", "[k]", "[m]", "[1]", "[0]", "[]"));
  add(&c, F32, DOT("f32", "[2,m,3,k]", "[k,3,n]", "[2,m,n]", "[2,3]", "[1,0]", "[]"));
  add(&c, EXACT, DOT("s32", "[m,20]", "[20,n]", "[m,n]", "[1]", "[0]", "[]"));
  add(&c, F32, DOT("f64", "[m,20]", "[20,n]", "[m,n]", "[1]", "[0]", "[]"));
  add(&c, F16, DOT("f16", "[m,20]", "[20,n]", "[m,n]", "[1]", "[0]", "[]"));
  add(&c, BF16, DOT("bf16", "[m,k]", "[k,n]", "[m,n]", "[1]", "[0]", "[]"));
  sizes_check_blocks(&c, 3);
}
END_TEST

#define CONVOLUTION(x, w, result, attributes) \
  "(%x: f32" x ", %w: f32" w ") {\n%z = convolution(%x, %w) {" attributes "} : f32" result "\nreturn %z\n}"
#define PLAIN "lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, "

START_TEST(convolutions) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  add(&c, F32,
      CONVOLUTION("[n,5,h,w]", "[9,5,3,3]", "[n,9,h,w]",
                  "strides=[1,1], low=[1,1], high=[1,1], " PLAIN "layout=channels-first"));
  add(&c, F32,
      CONVOLUTION("[n,h,w,5]", "[9,5,3,3]", "[n,h,w,9]",
                  "strides=[1,1], low=[1,1], high=[1,1], " PLAIN "layout=channels-last"));
  add(&c, F32,
      CONVOLUTION("[2,4,11,9]", "[6,4,2,3]", "[2,6,5,4]",
                  "strides=[2,2], low=[0,0], high=[0,0], " PLAIN "layout=channels-first"));
  add(&c, F32,
      CONVOLUTION("[n,6,13,13]", "[8,3,3,3]", "[n,8,11,11]",
                  "strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[2,2], groups=2, "
                  "layout=channels-first"));
  add(&c, F32,
      CONVOLUTION("[n,13,13,6]", "[8,3,3,3]", "[n,11,11,8]",
                  "strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[2,2], groups=2, "
                  "layout=channels-last"));
  sizes_check_blocks(&c, 3);
}
END_TEST

/* A bias, an activation, and a residual, whose memory the result may have. */
START_TEST(epilogues) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  sizes_case *k = add(&c, F32,
                      "(%x: f32[m,40], %y: f32[40,n], %b: f32[n], %r: f32[m,n]) {\n%z = dot(%x, %y) {lhs_contract=[1], "
                      "rhs_contract=[0], lhs_batch=[], rhs_batch=[]} : f32[m,n]\n%c = broadcast(%b) {dimensions=[1]} : "
                      "f32[m,n]\n%s = add(%z, %c) : f32[m,n]\n%t = tanh(%s) : f32[m,n]\n%u = add(%t, %r) : "
                      "f32[m,n]\nreturn %u\n}");
  k->kind = HLO_FUSION_OUTPUT;
  k->shares = 3;
  sizes_check_blocks(&c, 3);
}
END_TEST

/* --- factors that are copied --- */

/* Tiles of which a thread has no copy, one and several of a side; the last one divides sums. */
static const int tiles_of_copies[] = {0, 4, 5, 7};
enum { TILES_OF_COPIES = sizeof tiles_of_copies / sizeof *tiles_of_copies };

/* Neighbouring factors of a side are those of rows or columns, or of sums; in some cases those of a side are not
 * copied, also since its lines begin at no multiples of a copy's size.  There are fewer sums than a stage has, as many,
 * and many more; and rows and columns beyond the end. */
START_TEST(copies) {
  sizes_cases c = {0};
  tile = (size_t)tiles_of_copies[_i];
  add(&c, F32, DOT("f32", "[m,4]", "[4,36]", "[m,36]", "[1]", "[0]", "[]"));
  add(&c, F32, DOT("f32", "[b,m,8]", "[b,8,72]", "[b,m,72]", "[2]", "[1]", "[0]"));
  add(&c, F32, DOT("f32", "[m,212]", "[n,212]", "[m,n]", "[1]", "[1]", "[]"));
  add(&c, F32, DOT("f32", "[k,44]", "[k,140]", "[44,140]", "[0]", "[0]", "[]"));
  add(&c, F32, DOT("f32", "[2,m,3,12]", "[12,3,8]", "[2,m,8]", "[2,3]", "[1,0]", "[]"));
  add(&c, EXACT, DOT("s32", "[m,60]", "[60,28]", "[m,28]", "[1]", "[0]", "[]"));
  add(&c, F32, DOT("f32", "[100,m]", "[n,100]", "[m,n]", "[0]", "[1]", "[]"));
  add(&c, F32, DOT("f32", "[m,8]", "[8,38]", "[m,38]", "[1]", "[0]", "[]"));
  add(&c, F32, DOT("f32", "[m,50]", "[n,50]", "[m,n]", "[1]", "[1]", "[]"));
  add(&c, F32, DOT("f32", "[3,m,2,32]", "[3,n,2,32]", "[3,2,m,n]", "[3]", "[3]", "[0,2]"));
  sizes_check_blocks(&c, 3);
}
END_TEST

static void block_way_of_tile(const hlo_instr *i, block_way *out) {
  (void)i;
  *out = (block_way){.write = emit_tiled_product_kernel, .config = &tiles[tile], .phases = 1};
}

#define CASE(type, a, b, result, lhs, rhs) type result DOT(type, a, b, result, lhs, rhs, "[]")

/* The order of each sum is the same as without copies, which the oldest GPU does not have, and the threads wait for
 * what they read. */
START_TEST(copies_keep_bits) {
  static const char *const texts[] = {CASE("f32", "[50,212]", "[212,140]", "[50,140]", "[1]", "[0]"),
                                      CASE("f32", "[130,72]", "[136,72]", "[130,136]", "[1]", "[1]"),
                                      CASE("f32", "[29,60]", "[29,132]", "[60,132]", "[0]", "[0]"),
                                      CASE("f32", "[40,36]", "[70,40]", "[36,70]", "[0]", "[1]"),
                                      CASE("f32", "[33,41]", "[41,64]", "[33,64]", "[1]", "[0]")};
  enum { N = sizeof texts / sizeof *texts };
  kernel_cases c = {0};
  emit_target with, without;
  tile = (size_t)tiles_of_copies[_i];
  ASSERT_OK(emit_target_blocks_host(kernel_arena, &with));
  without = with;
  without.mma = false;
  for (int k = 0; k < N; k++) {
    kernel_add(&c, F32, texts[k]);
  }
  block_check_same(&c, BLOCK_ROUGH, block_way_of_tile, &with, &without);
  uint32_t loaded[N];
  for (int k = 0; k < N; k++) {
    loaded[k] = c.items[k].info.shared_bytes; /* of the last target */
  }
  block_check_all(&c, BLOCK_ROUGH, block_way_of_tile);
  for (int k = 0; k < N; k++) { /* the last product has nothing that can be copied */
    ck_assert_int_eq(c.items[k].info.shared_bytes > 2 * loaded[k], k < N - 1);
  }
}
END_TEST

static bool choose(const char *text, bool divides, emit_tile *out) {
  sizes_cases c = {0};
  (void)sizes_add_text(&c, text);
  for (uint32_t k = 0; k < c.n; k++) {
    c.items[k].i = c.items[k].entry->roots[0].def;
  }
  return emit_takes_tiles(c.items[0].i) && emit_choose_tile(c.items[0].i, divides, out);
}

START_TEST(choices) {
  emit_tile t;
  ck_assert(!choose(DOT("f32", "[4,64]", "[64,64]", "[4,64]", "[1]", "[0]", "[]"), false, &t)); /* few rows */
  ck_assert(!choose(DOT("f32", "[64,4]", "[4,64]", "[64,64]", "[1]", "[0]", "[]"), false, &t)); /* short sums */
  ck_assert(choose(DOT("f32", "[64,64]", "[64,64]", "[64,64]", "[1]", "[0]", "[]"), false, &t));
  ck_assert(t.rows == 1 && t.columns == 1); /* more blocks matter more than larger tiles */
  ck_assert(choose(DOT("f32", "[4096,64]", "[64,4096]", "[4096,4096]", "[1]", "[0]", "[]"), false, &t));
  ck_assert(t.rows == 8 && t.columns == 8 && t.sums == 8);
  ck_assert(choose(DOT("f32", "[16,64]", "[64,65536]", "[16,65536]", "[1]", "[0]", "[]"), false, &t));
  ck_assert(t.rows == 1 && t.columns == 8 && t.parts == 1);
  ck_assert(choose(DOT("f32", "[128,8192]", "[8192,128]", "[128,128]", "[1]", "[0]", "[]"), true, &t));
  ck_assert(t.rows == 4 && t.columns == 4 && t.parts == 16);
  ck_assert(choose(DOT("f32", "[128,8192]", "[8192,128]", "[128,128]", "[1]", "[0]", "[]"), false, &t));
  ck_assert(t.rows == 1 && t.columns == 1 && t.parts == 1);
  ck_assert(!choose(DOT("c64", "[64,64]", "[64,64]", "[64,64]", "[1]", "[0]", "[]"), false, &t));
}
END_TEST

int main(void) {
  TCase *t = tcase_create("tiled-product");
  tcase_add_checked_fixture(t, sizes_setup_with_kernels, sizes_teardown_with_kernels);
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, dots, 0, ALL_TILES);
  tcase_add_loop_test(t, convolutions, 2, TILES);
  tcase_add_loop_test(t, epilogues, 1, 4);
  tcase_add_loop_test(t, epilogues, TILES, ALL_TILES);
  tcase_add_loop_test(t, copies, 0, TILES_OF_COPIES);
  tcase_add_loop_test(t, copies_keep_bits, 0, TILES_OF_COPIES - 1);
  tcase_add_test(t, choices);
  return run_suite("tiled-product", t);
}
