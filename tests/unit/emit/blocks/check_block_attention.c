/* check_block_attention.c - attention by blocks of threads (emit/blocks/block_attention.h): layouts, masks, rows
 * without any key, sizes of heads and types, at any sizes and with every shape of tile, compared with the reference
 * evaluator; which tiles are chosen. */
#include <check.h>
#include <string.h>

#include "backend_gpu/runtime/emulated_block.h"
#include "emit/blocks/block_attention.h"
#include "runtime/host/code_loader.h"
#include "tests/suite.h"
#include "tests/unit/emit/attention_texts.h"
#include "tests/unit/emit/kernel_case.h"
#include "tests/unit/emit/sizes_case.h"

static const emit_block_attention tiles[] = {{1, 4, 1, 1, 0},  {2, 2, 1, 1, 0}, {4, 2, 1, 1, 0},
                                             {1, 2, 2, 1, 0},  {1, 1, 8, 1, 0}, {1, 1, 16, 1, 0},
                                             {2, 1, 1, 32, 0}, {1, 2, 4, 8, 0}, {1, 1, 16, 2, 0}};
enum { TILES = sizeof tiles / sizeof *tiles, WHOLE_TILES = 6 }; /* blocks share the keys of the others */

static size_t tile; /* the place in tiles[] of the tile that this test uses */

/* Heads that are too large for the test's tile are computed with the tile that emit_choose_block_attention chooses. */
static void blocks_way(const sizes_case *k, arena *a, const emit_target *t, sizes_way *way) {
  hlo_attention attention;
  emit_block_attention *c = ARENA_NEW(a, emit_block_attention);
  if (t->execution != EMIT_BLOCKS) {
    return;
  }
  ck_assert(hlo_attention_of_fusion(k->i, &attention));
  ck_assert(emit_choose_block_attention(&attention, false, c));
  *c = emit_block_attention_fits(&attention, &tiles[tile]) ? tiles[tile] : *c;
  *way = (sizes_way){.write = emit_block_attention_kernel,
                     .config = c,
                     .phases = 1,
                     .scratch_bytes = emit_block_attention_scratch(&attention, c),
                     .counters = emit_block_attention_counters(&attention, c)};
}

static void check(sizes_cases *c, double tolerance, int rounds) {
  for (uint32_t k = 0; k < c->n; k++) {
    c->items[k].prepare = blocks_way;
    c->items[k].tolerance = tolerance;
    c->items[k].kind = HLO_FUSION_ATTENTION;
    /* Where groups or blocks share keys, a block computes few results. */
    c->items[k].most = tiles[tile].splits > 1 || tiles[tile].parts > 2 ? 2000 : 8000;
  }
  sizes_check_blocks(c, rounds);
}

/* The largest error, relative to the largest result, as in check_flash_attention.c.  Results are sums of up to 1,000
 * weighted values in f32, in another order than the reference's.  Weights have exp's error of 2 ULP, the error of the
 * factor by which a tile of keys is scaled, and that of rounded scores: what a score of up to 100 is off by is the
 * relative error of its exponential. */
static const double F32 = 1e-5;

/* Of tiles whose keys are shared by blocks, each has every other text, since they run many blocks. */
START_TEST(any_sizes) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  bool some = tiles[tile].splits > 1;
  for (size_t k = some ? tile % 2 : 0; k < ATTENTION_TEXTS; k += some ? 2 : 1) {
    sizes_add_text(&c, attention_texts[k]);
  }
  check(&c, F32, 4);
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
  check(&c, F32, 4);
}
END_TEST

/* The reference rounds scores, exponentials, their sum, weights and results to the type.  A score of up to 10 is off by
 * 2^-8 (f16) or 2^-5 (bf16), which is the relative error of its exponential. */
START_TEST(small_floats) {
  sizes_cases f16 = {0}, bf16 = {0};
  tile = (size_t)_i;
  sizes_add_text(&f16, PLAIN("f16", "16", "24"));
  check(&f16, 2e-2, 4);
  sizes_add_text(&bf16, PLAIN("bf16", "16", "24"));
  check(&bf16, 1.5e-1, 4);
}
END_TEST

/* Tensor cores, with whole and divided sums.  On targets without them the config is not used. */
static const emit_block_attention mma_tiles[] = {{2, 16, 1, 1, 1}, {2, 16, 1, 4, 1}, {2, 8, 1, 1, 1}, {2, 8, 1, 8, 1}};
enum { MMA_TILES = sizeof mma_tiles / sizeof *mma_tiles };

static void mma_way(const sizes_case *k, arena *a, const emit_target *t, sizes_way *way) {
  hlo_attention attention;
  blocks_way(k, a, t, way);
  ck_assert(hlo_attention_of_fusion(k->i, &attention));
  if (t->execution == EMIT_BLOCKS && emit_takes_mma_attention(t, &attention)) {
    emit_block_attention *c = ARENA_NEW(a, emit_block_attention);
    *c = mma_tiles[tile];
    c->keys = emit_block_attention_fits(&attention, c) ? c->keys : 8;
    ck_assert(emit_block_attention_fits(&attention, c));
    way->config = c;
    way->scratch_bytes = emit_block_attention_scratch(&attention, c);
    way->counters = emit_block_attention_counters(&attention, c);
  }
}

static void check_mma(sizes_cases *c, double tolerance, int rounds) {
  for (uint32_t k = 0; k < c->n; k++) {
    c->items[k].most = 8000;
    c->items[k].prepare = mma_way;
    c->items[k].tolerance = tolerance;
    c->items[k].kind = HLO_FUSION_ATTENTION;
  }
  sizes_check_blocks(c, rounds);
}

/* q and v lie with heads before the elements, as projections do; keys are columns; keys after a row's own are masked.
 */
#define LAYOUTS(type)                                                                                               \
  "(%q0: " type "[b,n,3,32], %k: " type "[b,3,32,m], %v0: " type                                                    \
  "[b,m,3,32]) {\n"                                                                                                 \
  "%q = transpose(%q0) {permutation=[0,2,1,3]} : " type                                                             \
  "[b,3,n,32]\n"                                                                                                    \
  "%qk = dot(%q, %k) {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[2]} : " type                \
  "[b,3,n,m]\n"                                                                                                     \
  "%i = iota() {dimension=2} : s32[b,3,n,m]\n%j = iota() {dimension=3} : s32[b,3,n,m]\n"                            \
  "%on = compare(%i, %j) {comparison=ge} : pred[b,3,n,m]\n%low = constant() {value=" type "[] -inf} : " type        \
  "[]\n"                                                                                                            \
  "%lowb = broadcast(%low) {dimensions=[]} : " type "[b,3,n,m]\n%x = select(%on, %qk, %lowb) : " type               \
  "[b,3,n,m]\n" SOFTMAX(                                                                                            \
      type "[b,3,n,m]", type "[b,3,n]", "3",                                                                        \
      "[0,1,2]") "%v = transpose(%v0) {permutation=[0,2,1,3]} : " type                                              \
                 "[b,3,m,32]\n"                                                                                     \
                 "%pv = dot(%p, %v) {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[2]} : " type \
                 "[b,3,n,32]\n"                                                                                     \
                 "%y = transpose(%pv) {permutation=[0,2,1,3]} : " type "[b,n,3,32]\nreturn %y\n}"

/* The softmax is that of f32, as operator Softmax is imported. */
#define ROUNDED(type)                                                                                         \
  "(%q: " type "[b,n,32], %k: " type "[b,m,32], %v: " type                                                    \
  "[b,m,32]) {\n"                                                                                             \
  "%qk = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : " type              \
  "[b,n,m]\n"                                                                                                 \
  "%x = convert(%qk) {saturate=true, rounding=nearest} : f32[b,n,m]\n" SOFTMAX(                               \
      "f32[b,n,m]", "f32[b,n]", "2",                                                                          \
      "[0,1]") "%r = convert(%p) {saturate=true, rounding=nearest} : " type                                   \
               "[b,n,m]\n"                                                                                    \
               "%pv = dot(%r, %v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : " type \
               "[b,n,32]\nreturn %pv\n}"

/* Heads of q, k and v have two dimensions with another one between them, so that only 12 of their 24 elements are
 * neighbours. */
#define APART(type) \
  "(%q: " type "[b,2,n,12], %k: " type "[b,2,m,12], %v: " type                                                    \
  "[b,2,m,12]) {\n"                                                                                               \
  "%x = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[1,3], rhs_contract=[1,3]} : " type               \
  "[b,n,m]\n" SOFTMAX(type "[b,n,m]", type "[b,n]", "2",                                                          \
                      "[0,1]") "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=" \
                               "[2]} : " type "[b,n,2,12]\nreturn %pv\n}"

/* Keys have two dimensions, of which v has the first one innermost, after heads of w elements. */
#define KEYS_APART(type, w) \
  "(%q: " type "[b,n,16], %k: " type "[b,16,m,16], %v: " type "[b,m," w                                        \
  ",16]) {\n"                                                                                                  \
  "%x = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[3]} : " type                \
  "[b,n,16,m]\n" SOFTMAX(type "[b,n,16,m]", type "[b,n]", "2,3",                                               \
                         "[0,1]") "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2,3], "      \
                                  "rhs_contract=[3,1]} : " type "[b,n," w "]\nreturn %pv\n}"

/* The tolerances are those of small_floats. */
START_TEST(tensor_cores) {
  sizes_cases f16 = {0}, bf16 = {0};
  tile = (size_t)_i;
  sizes_add_text(&f16, PLAIN("f16", "16", "24"));
  sizes_add_text(&f16, PLAIN("f16", "64", "64"));
  sizes_add_text(&f16, PLAIN("f16", "128", "100"));
  sizes_add_text(&f16, PLAIN("f16", "7", "1"));
  sizes_add_text(&f16, LAYOUTS("f16"));
  sizes_add_text(&f16, ROUNDED("f16"));
  check_mma(&f16, 2e-2, 4);
  sizes_add_text(&bf16, PLAIN("bf16", "40", "128"));
  sizes_add_text(&bf16, LAYOUTS("bf16"));
  check_mma(&bf16, 1.5e-1, 4);
}
END_TEST

/* Which factors are loaded as vectors depends on all dimensions of heads and keys.  The tolerance is that of
 * small_floats. */
START_TEST(several_dimensions) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  sizes_add_text(&c, APART("f16"));
  sizes_add_text(&c, KEYS_APART("f16", "12"));
  sizes_add_text(&c, KEYS_APART("f16", "24"));
  check_mma(&c, 2e-2, 4);
}
END_TEST

/* The texts of check_flash_attention.  Scores near -1000 are multiples of 1/256, so they are exact. */
START_TEST(masked_tiles) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  sizes_add_text(&c, attention_masked_tiles[0]);
  sizes_add_text(&c, attention_masked_tiles[1]);
  check(&c, F32, 4);
}
END_TEST

/* A row of zeros times v is NaN where v is infinite, as it is in the last case. */
START_TEST(zeros_where_nan) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  sizes_add_text(&c, attention_without_nan[0]);
  sizes_add_text(&c, attention_without_nan[1]);
  sizes_add_text(&c, attention_without_nan[0])->infinite = 2;
  check(&c, F32, 4);
}
END_TEST

/* All values are infinite.  A tile of keys that is not whole has places beyond the last key, whose weights are 0; times
 * an infinite value that would be NaN. */
START_TEST(infinite_values) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  sizes_add_text(&c, PLAIN("f32", "16", "24"))->infinite = 2;
  check(&c, F32, 4);
}
END_TEST

/* The tolerance is that of small_floats for bf16, and for its reason: the reference rounds scores to bf16, so that one
 * of up to 10 is off by 2^-5, the relative error of its exponential. */
START_TEST(infinite_values_by_tensor_cores) {
  sizes_cases c = {0};
  tile = (size_t)_i;
  sizes_add_text(&c, PLAIN("bf16", "16", "24"))->infinite = 2;
  check_mma(&c, 1.5e-1, 4);
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
  check(&c, F32, 12);
}
END_TEST

/* --- the order of blocks --- */

#define SIZED(type, b, n, m, d) \
  "(%q: " type "[" b "," n "," d "], %k: " type "[" b "," m "," d "], %v: " type "[" b "," m "," d               \
  "]) {\n%x = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : " type "[" b "," n \
  "," m "]\n" SOFTMAX(type "[" b "," n "," m "]", type "[" b "," n "]", "2",                                     \
                      "[0,1]") "%pv = dot(%p, %v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], "             \
                               "rhs_contract=[1]} : " type "[" b "," n "," d "]\nreturn %pv\n}"

typedef struct launch {
  rt_block_fn *fn;
  emit_kernel_info info;
  const hlo_instr *i;
  emit_block_attention config;
} launch;

/* Compiles a kernel that says what its threads access, so that gpu_run_blocks finds races. */
static launch compile(emit_block_attention config) {
  kernel_cases c = {0};
  launch l = {.config = config};
  hlo_attention a;
  emit_target t;
  emit_module *m;
  rt_code *code;
  const char *f32 = "f32[2,70,16]" SIZED("f32", "2", "70", "200", "16");
  const char *f16 = "f16[2,70,16]" SIZED("f16", "2", "70", "200", "16");
  hlo_instr *i = kernel_parse(kernel_add(&c, 0, config.mma ? f16 : f32));
  hlo_attr_of(i, HLO_ATTR_FUSION)->i = HLO_FUSION_ATTENTION;
  ck_assert(hlo_attention_of_fusion(i, &a) && emit_block_attention_fits(&a, &config));
  ASSERT_OK(emit_target_blocks_host(kernel_arena, &t));
  t.tells_accesses = true;
  ASSERT_OK(emit_module_create(kernel_arena, &t, "test", &m));
  ASSERT_OK(emit_block_attention_kernel(m, "kernel", i, NULL, &config, 0, &l.info));
  ASSERT_OK(kernel_load(kernel_arena, m, kernel_resolve, &code));
  l.i = i;
  l.fn = (rt_block_fn *)(intptr_t)rt_code_find(code, "kernel");
  return l;
}

/* Runs all blocks, of which each follows the last one by `stride`, with which their number has no common divisor. */
static void run_blocks(const launch *l, void *const *operands, int64_t stride, gpu_order order, void *out) {
  enum { MOST_SCRATCH = 1 << 20, MOST_COUNTERS = 1 << 8 };
  static _Alignas(64) char scratch[MOST_SCRATCH];
  static int32_t counters[MOST_COUNTERS];
  const void *buffers[] = {operands[0], operands[1], operands[2], out, scratch, counters};
  hlo_attention a;
  ck_assert(hlo_attention_of_fusion(l->i, &a));
  ck_assert_int_le(emit_block_attention_scratch(&a, &l->config), MOST_SCRATCH);
  ck_assert_int_le(emit_block_attention_counters(&a, &l->config), MOST_COUNTERS);
  memset(scratch, 0xff, sizeof scratch);
  int64_t n = emit_static_grid(&l->info), at = 0;
  gpu_blocks b = {l->fn, "attention", buffers, NULL, n, l->info.threads, l->info.shared_bytes, order};
  for (int64_t k = 0; k < n; k++, at = (at + stride) % n) {
    ASSERT_OK(gpu_run_blocks(&b, at, at + 1));
  }
  for (int k = 0; k < MOST_COUNTERS; k++) {
    ck_assert_int_eq(counters[k], 0);
  }
}

/* The results have the same bits whichever block is the last one of its tile, and in every order of threads, and there
 * are no races. */
START_TEST(orders) {
  static const emit_block_attention configs[] = {{1, 1, 1, 4, 0}, {2, 1, 1, 2, 0}, {1, 1, 4, 4, 0},
                                                 {1, 2, 8, 8, 0}, {2, 8, 1, 1, 1}, {2, 16, 1, 4, 1}};
  enum { OPERANDS = 3, MOST = 2 * 200 * 16, RESULTS = 2 * 70 * 16, BYTES = RESULTS * sizeof(float) };
  char first[BYTES], next[BYTES];
  const launch l = compile(configs[_i]);
  dtype t = hlo_type(l.i->operands[0]);
  void *operands[OPERANDS];
  for (int p = 0; p < OPERANDS; p++) {
    char *at = operands[p] = arena_alloc_aligned(kernel_arena, MOST * sizeof(float), 64);
    for (size_t k = 0; k < MOST; k++) {
      double x = (double)(next_random() >> 40) / (1 << 23) - 1;
      dtype_store_f64(t, at + k * dtype_bytes(t), x, true, DTYPE_ROUND_NEAREST);
    }
  }
  int64_t n = emit_static_grid(&l.info), strides[] = {n - 1, 104729};
  memset(first, 0xff, sizeof first);
  run_blocks(&l, operands, 1, GPU_FORWARD, first);
  for (int k = 0; k < 2 * GPU_ORDERS; k++) {
    memset(next, 0xff, sizeof next);
    run_blocks(&l, operands, strides[k % 2], (gpu_order)(k / 2), next);
    ck_assert_mem_eq(first, next, sizeof first);
  }
}
END_TEST

/* --- which tiles are chosen --- */

static bool choose(const char *text, emit_block_attention *out) {
  sizes_cases c = {0};
  const hlo_computation *entry = sizes_add_text(&c, text)->entry;
  hlo_attention a;
  return hlo_find_attention(entry->roots[0].def, 0, &a) && emit_choose_block_attention(&a, true, out);
}

START_TEST(choices) {
  emit_block_attention c;
  ck_assert(choose(SIZED("f32", "64", "1024", "1024", "64"), &c));
  ck_assert(c.rows == 4 && c.parts == 1 && c.splits == 1);
  ck_assert(choose(SIZED("f32", "12", "128", "128", "64"), &c)); /* more blocks matter more than larger tiles */
  ck_assert(c.rows == 1 && c.parts == 1);
  ck_assert(choose(SIZED("f32", "12", "1", "1024", "64"), &c)); /* one row: all groups of threads share its keys */
  ck_assert(c.rows == 1 && c.parts == 16 && c.splits == 4);
  ck_assert(choose(SIZED("f32", "12", "1", "8", "64"), &c)); /* too few keys to be divided */
  ck_assert(c.parts == 1);
  ck_assert(choose(SIZED("f32", "64", "1024", "1024", "256"), &c)); /* fewer rows of wide heads fit into the memory */
  ck_assert(c.rows < 4);
  ck_assert(!choose(SIZED("f32", "64", "1024", "1024", "2048"), &c));
}
END_TEST

/* --- which shifts tensor cores take --- */

/* A condition, the shift that it chooses from the maximum %m0 and from zeros, and whether the shift is known to be the
 * maximum wherever that is finite.  Only then no exponential is more than 1, and each fits f16. */
static const struct {
  const char *condition, *chosen;
  bool takes;
} shifts[] = {
    {"compare(%m0, %lowk) {comparison=eq}", "%zero, %m0", true},
    {"compare(%lowk, %m0) {comparison=eq}", "%zero, %m0", true},
    {"compare(%m0, %lowk) {comparison=ne}", "%m0, %zero", true},
    {"is-finite(%m0)", "%m0, %zero", true},
    {"is-finite(%m0)", "%zero, %m0", false},
    {"compare(%m0, %lowk) {comparison=eq}", "%m0, %zero", false},
    {"compare(%m0, %lowk) {comparison=ne}", "%zero, %m0", false},
    {"compare(%m0, %lowk) {comparison=gt}", "%m0, %zero", false},
    {"compare(%m0, %zero) {comparison=ne}", "%m0, %zero", false},
    {"is-finite(%other)", "%m0, %zero", false},
    {"compare(%other, %lowk) {comparison=ne}", "%m0, %zero", false},
};

START_TEST(shift_is_the_maximum) {
  sizes_cases c = {0};
  hlo_attention a;
  emit_target t;
  const hlo_computation *entry =
      sizes_add_text(
          &c, TEXT("(%%q: f16[n,16], %%k: f16[m,16], %%v: f16[m,16], %%other: f16[n]) {\n"
                   "%%x = dot(%%q, %%k) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f16[n,m]\n"
                   "%%low = constant() {value=f16[] -inf} : f16[]\n%%lowk = broadcast(%%low) {dimensions=[]} : f16[n]\n"
                   "%%c0 = constant() {value=f16[] 0} : f16[]\n%%zero = broadcast(%%c0) {dimensions=[]} : f16[n]\n"
                   "%%m0 = reduce(%%x) {dimensions=[1], reducer=maximum} : f16[n]\n%%on = %s : pred[n]\n"
                   "%%mx = select(%%on, %s) : f16[n]\n%%mb = broadcast(%%mx) {dimensions=[0]} : f16[n,m]\n"
                   "%%d = subtract(%%x, %%mb) : f16[n,m]\n%%e = exponential(%%d) : f16[n,m]\n"
                   "%%s = reduce(%%e) {dimensions=[1], reducer=add} : f16[n]\n"
                   "%%sb = broadcast(%%s) {dimensions=[0]} : f16[n,m]\n%%p = divide(%%e, %%sb) : f16[n,m]\n"
                   "%%pv = dot(%%p, %%v) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f16[n,16]\n"
                   "return %%pv\n}",
                   shifts[_i].condition, shifts[_i].chosen))
          ->entry;
  ASSERT_OK(emit_target_nvptx(kernel_arena, "sm_80", &t));
  ck_assert(hlo_find_attention(entry->roots[0].def, 0, &a));
  ck_assert_int_eq(emit_takes_mma_attention(&t, &a), shifts[_i].takes);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("block-attention");
  tcase_add_checked_fixture(t, sizes_setup_with_kernels, sizes_teardown_with_kernels);
  tcase_set_timeout(t, 600);
  tcase_add_loop_test(t, any_sizes, 0, TILES);
  tcase_add_loop_test(t, heads, 0, WHOLE_TILES + 1);
  tcase_add_loop_test(t, small_floats, 0, WHOLE_TILES + 1);
  tcase_add_loop_test(t, tensor_cores, 0, MMA_TILES);
  tcase_add_loop_test(t, several_dimensions, 0, MMA_TILES);
  tcase_add_loop_test(t, masked_tiles, 0, TILES);
  tcase_add_loop_test(t, zeros_where_nan, 0, TILES);
  tcase_add_loop_test(t, infinite_values, 0, TILES);
  tcase_add_loop_test(t, infinite_values_by_tensor_cores, 0, MMA_TILES);
  tcase_add_loop_test(t, masked_rows, 0, TILES);
  tcase_add_loop_test(t, orders, 0, 6);
  tcase_add_test(t, choices);
  tcase_add_loop_test(t, shift_is_the_maximum, 0, sizeof shifts / sizeof *shifts);
  return run_suite("block-attention", t);
}
