/* check_block_attention.c - attention by blocks of threads (emit/blocks/block_attention.h): layouts, masks, rows
 * without any key, sizes of heads and types, at any sizes and with every shape of tile, compared with the reference
 * evaluator; which tiles are chosen. */
#include <check.h>

#include "emit/blocks/block_attention.h"
#include "tests/suite.h"
#include "tests/unit/emit/attention_texts.h"
#include "tests/unit/emit/kernel_case.h"
#include "tests/unit/emit/sizes_case.h"

static const emit_block_attention tiles[] = {{1, 4, 1}, {2, 2, 1}, {4, 2, 1}, {1, 2, 2}, {1, 1, 8}, {1, 1, 16}};
enum { TILES = sizeof tiles / sizeof *tiles };

static size_t tile; /* the place in tiles[] of the tile that this test uses */

/* Heads that are too large for the test's tile are computed with the tile that emit_choose_block_attention chooses. */
static void blocks_way(const sizes_case *k, arena *a, const emit_target *t, sizes_way *way) {
  hlo_attention attention;
  emit_block_attention *c = ARENA_NEW(a, emit_block_attention);
  if (t->execution != EMIT_BLOCKS) {
    return;
  }
  ck_assert(hlo_attention_of_fusion(k->i, &attention));
  ck_assert(emit_choose_block_attention(&attention, c));
  *c = emit_block_attention_fits(&attention, &tiles[tile]) ? tiles[tile] : *c;
  *way = (sizes_way){.write = emit_block_attention_kernel, .config = c, .phases = 1};
}

static void check(sizes_cases *c, double tolerance, int rounds) {
  for (uint32_t k = 0; k < c->n; k++) {
    c->items[k].prepare = blocks_way;
    c->items[k].tolerance = tolerance;
    c->items[k].kind = HLO_FUSION_ATTENTION;
  }
  sizes_check_blocks(c, rounds);
}

/* The largest error, relative to the largest result, as in check_flash_attention.c.  Results are sums of up to 1,000
 * weighted values in f32, in another order than the reference's.  Weights have exp's error of 2 ULP, the error of the
 * factor by which a tile of keys is scaled, and that of rounded scores: what a score of up to 100 is off by is the
 * relative error of its exponential. */
static const double F32 = 1e-5;

START_TEST(any_sizes) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  for (size_t k = 0; k < ATTENTION_TEXTS; k++) {
    sizes_add_text(&c, attention_texts[k]);
  }
  check(&c, F32, 8);
}
END_TEST

/* Attention of `type` whose heads have s and w elements. */
#define PLAIN(type, s, w)                                                                                          \
  "(%q: " type "[b,n," s "], %k: " type "[b,m," s "], %v: " type "[b,m," w                                         \
  "]) {\n%x0 = dot(%q, %k) {lhs_batch=[0], "                                                                       \
  "rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : " type "[b,n,m]\n%c = constant() {value=" type             \
  "[] 0.125} : " type "[]\n%cb = broadcast(%c) {dimensions=[]} : " type "[b,n,m]\n%x = multiply(%x0, %cb) : " type \
  "[b,n,m]\n" SOFTMAX(                                                                                             \
      type "[b,n,m]", type "[b,n]", "2",                                                                           \
      "[0,1]") "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : " type      \
               "[b,n," w "]\nreturn %pv\n}"

START_TEST(heads) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  sizes_add_text(&c, PLAIN("f32", "1", "1"));
  sizes_add_text(&c, PLAIN("f32", "80", "80"));
  sizes_add_text(&c, PLAIN("f32", "128", "100"));
  sizes_add_text(&c, PLAIN("f32", "33", "65"));
  sizes_add_text(&c, PLAIN("f64", "20", "40"));
  check(&c, F32, 8);
}
END_TEST

/* The reference rounds scores, exponentials, their sum, weights and results to the type.  A score of up to 10 is off by
 * 2^-8 (f16) or 2^-5 (bf16), which is the relative error of its exponential. */
START_TEST(small_floats) {
  sizes_cases f16 = {0}, bf16 = {0};
  tile = (size_t)_i;
  sizes_add_text(&f16, PLAIN("f16", "16", "24"));
  check(&f16, 2e-2, 8);
  sizes_add_text(&bf16, PLAIN("bf16", "16", "24"));
  check(&bf16, 1.5e-1, 8);
}
END_TEST

/* A text of check_flash_attention at more sizes. */
START_TEST(masked_tiles) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  sizes_add_text(&c, attention_masked_tiles);
  check(&c, F32, 24);
}
END_TEST

/* Rows all of whose keys are masked, as the operator Attention writes them: if the maximum says that a row has no key,
 * its total is replaced by 1, and its result is 0. */
START_TEST(masked_rows) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  sizes_add_text(
      &c,
      "(%q: f32[n,8], %k: f32[m,8], %v: f32[m,8], %on: pred[n]) {\n"
      "%qk = dot(%q, %k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f32[n,m]\n"
      "%onb = broadcast(%on) {dimensions=[0]} : pred[n,m]\n" LOW("f32[n,m]") "%x = select(%onb, %qk, %lowb) : "
      "f32[n,m]\n%m0 = reduce(%x) {dimensions=[1], reducer=maximum} : f32[n]\n%lowk = broadcast(%low) {dimensions=[]} "
      ": f32[n]\n%none = compare(%m0, %lowk) {comparison=eq} : pred[n]\n%c0 = constant() {value=f32[] 0} : f32[]\n"
      "%zero = broadcast(%c0) {dimensions=[]} : f32[n]\n%mx = select(%none, %zero, %m0) : f32[n]\n"
      "%mb = broadcast(%mx) {dimensions=[0]} : f32[n,m]\n%d = subtract(%x, %mb) : f32[n,m]\n"
      "%e = exponential(%d) : f32[n,m]\n%s0 = reduce(%e) {dimensions=[1], reducer=add} : f32[n]\n"
      "%c1 = constant() {value=f32[] 1} : f32[]\n%one = broadcast(%c1) {dimensions=[]} : f32[n]\n"
      "%s = select(%none, %one, %s0) : f32[n]\n%sb = broadcast(%s) {dimensions=[0]} : f32[n,m]\n"
      "%p = divide(%e, %sb) : f32[n,m]\n"
      "%pv = dot(%p, %v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[n,8]\nreturn %pv\n}");
  check(&c, F32, 24);
}
END_TEST

static bool choose(const char *text, emit_block_attention *out) {
  sizes_cases c = {0};
  const hlo_computation *entry = sizes_add_text(&c, text)->entry;
  hlo_attention a;
  return hlo_find_attention(entry->roots[0].def, 0, &a) && emit_choose_block_attention(&a, out);
}

#define SIZED(type, b, n, m, d) \
  "(%q: " type "[" b "," n "," d "], %k: " type "[" b "," m "," d "], %v: " type "[" b "," m "," d               \
  "]) {\n%x = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : " type "[" b "," n \
  "," m "]\n" SOFTMAX(type "[" b "," n "," m "]", type "[" b "," n "]", "2",                                     \
                      "[0,1]") "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], "             \
                               "rhs_contract=[1]} : " type "[" b "," n "," d "]\nreturn %pv\n}"

START_TEST(choices) {
  emit_block_attention c;
  ck_assert(choose(SIZED("f32", "64", "1024", "1024", "64"), &c));
  ck_assert(c.rows == 4 && c.parts == 1);
  ck_assert(choose(SIZED("f32", "12", "128", "128", "64"), &c)); /* more blocks matter more than larger tiles */
  ck_assert(c.rows == 1 && c.parts == 1);
  ck_assert(choose(SIZED("f32", "12", "1", "1024", "64"), &c)); /* one row: all groups of threads share its keys */
  ck_assert(c.rows == 1 && c.parts == 16);
  ck_assert(choose(SIZED("f32", "12", "1", "8", "64"), &c)); /* too few keys to be divided */
  ck_assert(c.parts == 1);
  ck_assert(choose(SIZED("f32", "64", "1024", "1024", "256"), &c)); /* fewer rows of wide heads fit into the memory */
  ck_assert(c.rows < 4);
  ck_assert(!choose(SIZED("f32", "64", "1024", "1024", "2048"), &c));
}
END_TEST

int main(void) {
  TCase *t = tcase_create("block-attention");
  tcase_add_checked_fixture(t, sizes_setup_with_kernels, sizes_teardown_with_kernels);
  tcase_set_timeout(t, 600);
  tcase_add_loop_test(t, any_sizes, 0, TILES);
  tcase_add_loop_test(t, heads, 0, TILES);
  tcase_add_loop_test(t, small_floats, 0, TILES);
  tcase_add_loop_test(t, masked_tiles, 0, TILES);
  tcase_add_loop_test(t, masked_rows, 0, TILES);
  tcase_add_test(t, choices);
  return run_suite("block-attention", t);
}
