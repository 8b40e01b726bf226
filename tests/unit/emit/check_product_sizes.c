/* check_product_sizes.c - compares dots and convolutions in register blocks that take sizes as arguments with the
 * reference evaluator: one kernel each, at many sizes.  The numbers are multiples of 1/16 of at most 3, so that all
 * sums of up to a thousand products are exact in f32, and the results must be equal. */
#include <check.h>
#include <stdlib.h>

#include "base/dim/guard.h"
#include "emit/product/gemm.h"
#include "emit/product/product.h"
#include "tests/unit/emit/sizes_case.h"

enum { ROUNDS = 30 };

/* --- how the kernels are written --- */

static void pack(const void *packing, const void *weights, void *packed) {
  emit_product_pack(packing, weights, packed);
}

static emit_product_options options;

static void prepare(const sizes_case *k, arena *a, const emit_target *t, sizes_way *way) {
  dim_table *dims = k->i->parent->module->dims;
  emit_product *p = ARENA_NEW(a, emit_product), *chosen = ARENA_NEW(a, emit_product);
  ck_assert(emit_product_of(k->i, p));
  options.constant_weights = k->packs;
  emit_product_choose(dims, p, t, &options);
  if (p->dot && !emit_gemm_has_dots(t, (dtype)p->dot, (int)p->lanes)) {
    return; /* emit_kernel then writes the kernel */
  }
  emit_product_choose_like(chosen, p);
  *way = (sizes_way){.write = emit_product_write,
                     .config = chosen,
                     .phases = emit_product_phases(p),
                     .scratch_bytes = emit_product_scratch(dims, p),
                     .packed_bytes = k->packs ? emit_product_packed_bytes(p) : 0,
                     .pack = pack,
                     .packing = p};
}

/* Adds each case, and, if its second parameter has a constant shape, also the case with that parameter
 * packed. */
static void add_all(sizes_cases *c, const char *const *texts, size_t n) {
  for (size_t k = 0; k < n; k++) {
    sizes_case *one = sizes_add_text(c, texts[k]);
    bool constant = shape_is_static(&one->entry->params[1]->shapes[0]);
    one->prepare = prepare;
    one->most = 3000;
    if (constant) {
      one = sizes_add_text(c, texts[k]);
      one->prepare = prepare;
      one->packs = true;
      one->most = 3000;
    }
  }
}

static void check_texts(const char *const *texts, size_t n) {
  sizes_cases c = {0};
  add_all(&c, texts, n);
  sizes_check_all(&c, ROUNDS, EMIT_MACHINES);
}
#define CHECK_TEXTS(texts) check_texts(texts, sizeof(texts) / sizeof *(texts))

/* --- dots --- */

#define DOT "{lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]}"
#define DOT3 "{lhs_batch=[], rhs_batch=[], lhs_contract=[2], rhs_contract=[0]}"

static const char *const rows_texts[] = {
    "(%x: f32[n,20], %w: f32[20,32]) {\n%y = dot(%x, %w) " DOT " : f32[n,32]\nreturn %y\n}",
    "(%x: f32[n,37], %w: f32[37,67]) {\n%y = dot(%x, %w) " DOT " : f32[n,67]\nreturn %y\n}",
    "(%x: f32[b,n,24], %w: f32[24,176]) {\n%y = dot(%x, %w) " DOT3 " : f32[b,n,176]\nreturn %y\n}",
    "(%x: f32[n,16], %w: f32[5,16]) {\n%y = dot(%x, %w) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], "
    "rhs_contract=[1]} : f32[n,5]\nreturn %y\n}",
    /* a bias, a residual that may be overwritten, and one value for all rows of a batch */
    "(%x: f32[b,n,24], %w: f32[24,40], %v: f32[40]) {\n%d = dot(%x, %w) " DOT3
    " : f32[b,n,40]\n%c = broadcast(%v) {dimensions=[2]} : f32[b,n,40]\n%y = add(%d, %c) : f32[b,n,40]\n%z = "
    "maximum(%y, %d) : f32[b,n,40]\nreturn %z\n}",
    "(%x: f32[n,24], %w: f32[24,53], %r: f32[n,53]) {\n%d = dot(%x, %w) " DOT
    " : f32[n,53]\n%y = add(%d, %r) : f32[n,53]\nreturn %y\n}",
    "(%x: f32[b,n,8], %w: f32[8,48], %r: f32[b]) {\n%d = dot(%x, %w) " DOT3
    " : f32[b,n,48]\n%c = broadcast(%r) {dimensions=[0]} : f32[b,n,48]\n%y = subtract(%d, %c) : f32[b,n,48]\nreturn "
    "%y\n}",
    /* rows that need more than one loop, or are far apart */
    "(%x: f32[b,24,n], %w: f32[24,33]) {\n%y = dot(%x, %w) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], "
    "rhs_contract=[0]} : f32[b,n,33]\nreturn %y\n}",
    "(%x: f32[n,5,m,6], %w: f32[5,6,32]) {\n%y = dot(%x, %w) {lhs_batch=[], rhs_batch=[], lhs_contract=[1,3], "
    "rhs_contract=[0,1]} : f32[n,m,32]\nreturn %y\n}",
    "(%x: f32[n,3,24], %w: f32[24,32]) {\n%y = dot(%x, %w) " DOT3 " : f32[n,3,32]\nreturn %y\n}",
    "(%x: f32[n,6,3,m], %w: f32[6,32]) {\n%y = dot(%x, %w) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], "
    "rhs_contract=[0]} : f32[n,3,m,32]\nreturn %y\n}",
    /* other types */
    "(%x: f64[n,14], %w: f64[14,21]) {\n%y = dot(%x, %w) " DOT " : f64[n,21]\nreturn %y\n}",
    "(%x: bf16[n,14], %w: bf16[14,40]) {\n%y = dot(%x, %w) " DOT " : bf16[n,40]\nreturn %y\n}",
};

START_TEST(rows) { CHECK_TEXTS(rows_texts); }
END_TEST

static const char *const batched_texts[] = {
    /* attention: the number m of keys is the number of columns, and then the length of the sums */
    "(%x: f32[b,h,n,16], %y: f32[b,h,m,16]) {\n%z = dot(%x, %y) {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], "
    "rhs_contract=[3]} : f32[b,h,n,m]\nreturn %z\n}",
    "(%x: f32[b,n,3,16], %y: f32[b,m,3,16], %r: f32[b,3,n,m]) {\n%z = dot(%x, %y) {lhs_batch=[0,2], rhs_batch=[0,2], "
    "lhs_contract=[3], rhs_contract=[3]} : f32[b,3,n,m]\n%w = add(%z, %r) : f32[b,3,n,m]\nreturn %w\n}",
    "(%x: f32[b,h,n,16], %y: f32[b,h,16,m], %r: f32[b,n,m]) {\n%z = dot(%x, %y) {lhs_batch=[0,1], rhs_batch=[0,1], "
    "lhs_contract=[3], rhs_contract=[2]} : f32[b,h,n,m]\n%c = broadcast(%r) {dimensions=[0,2,3]} : f32[b,h,n,m]\n%w = "
    "add(%z, %c) : f32[b,h,n,m]\nreturn %w\n}",
    "(%x: f32[b,n,m], %y: f32[b,m,32]) {\n%z = dot(%x, %y) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], "
    "rhs_contract=[1]} : f32[b,n,32]\nreturn %z\n}",
    "(%x: f32[b,4,n,m], %y: f32[b,m,4,24]) {\n%z = dot(%x, %y) {lhs_batch=[0,1], rhs_batch=[0,2], lhs_contract=[3], "
    "rhs_contract=[1]} : f32[b,4,n,24]\nreturn %z\n}",
    /* all sizes are symbols, in other layouts */
    "(%x: f32[n,h], %y: f32[h,m]) {\n%z = dot(%x, %y) " DOT " : f32[n,m]\nreturn %z\n}",
    "(%x: f32[h,n], %y: f32[m,h]) {\n%z = dot(%x, %y) {lhs_batch=[], rhs_batch=[], lhs_contract=[0], "
    "rhs_contract=[1]} : f32[n,m]\nreturn %z\n}",
    "(%x: f32[7,h], %y: f32[h,40]) {\n%z = dot(%x, %y) " DOT " : f32[7,40]\nreturn %z\n}",
    "(%x: f32[b,9,16], %y: f32[b,16,40]) {\n%z = dot(%x, %y) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], "
    "rhs_contract=[1]} : f32[b,9,40]\nreturn %z\n}",
    "(%x: f32[5,9,16], %y: f32[5,16,m]) {\n%z = dot(%x, %y) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], "
    "rhs_contract=[1]} : f32[5,9,m]\nreturn %z\n}",
    "(%x: f32[n,b,h], %y: f32[b,h,m]) {\n%z = dot(%x, %y) {lhs_batch=[1], rhs_batch=[0], lhs_contract=[2], "
    "rhs_contract=[1]} : f32[b,n,m]\nreturn %z\n}",
    "(%x: f32[n,h,b], %y: f32[m,h,b]) {\n%z = dot(%x, %y) {lhs_batch=[2], rhs_batch=[2], lhs_contract=[1], "
    "rhs_contract=[1]} : f32[b,n,m]\nreturn %z\n}",
};

START_TEST(batched) { CHECK_TEXTS(batched_texts); }
END_TEST

/* --- epilogues that are written once for a block, over sums in memory --- */

static const char *const heavy_texts[] = {
    "(%x: f32[n,24], %w: f32[24,53], %v: f32[53]) {\n%d = dot(%x, %w) " DOT
    " : f32[n,53]\n%c = broadcast(%v) {dimensions=[1]} : f32[n,53]\n%a = add(%d, %c) : f32[n,53]\n%y = tanh(%a) : "
    "f32[n,53]\nreturn %y\n}",
    "(%x: f32[b,n,16], %y: f32[b,m,16], %r: f32[b,n,m]) {\n%z = dot(%x, %y) {lhs_batch=[0], rhs_batch=[0], "
    "lhs_contract=[2], rhs_contract=[2]} : f32[b,n,m]\n%t = tanh(%z) : f32[b,n,m]\n%w = add(%t, %r) : "
    "f32[b,n,m]\nreturn %w\n}",
};

START_TEST(heavy_epilogues) {
  const double tanh_error = 4e-7; /* tanh may be 2.5 ULP off (emit/math/math.h), and sums with it half an ULP more */
  sizes_cases c = {0};
  add_all(&c, heavy_texts, sizeof heavy_texts / sizeof *heavy_texts);
  for (uint32_t k = 0; k < c.n; k++) {
    c.items[k].tolerance = tanh_error;
  }
  sizes_check_all(&c, ROUNDS, EMIT_MACHINES);
}
END_TEST

/* --- weights of small integers --- */

/* Quantised weights with one scale for each column, with one for each block and column, with zero points, and with
 * columns that fill no whole vectors. */
static const char *const small_texts[] = {
    "(%x: f32[n,64], %w: s8[64,48], %s: f32[48]) {\n%c = convert(%w) {saturate=true, rounding=nearest} : "
    "f32[64,48]\n%b = broadcast(%s) {dimensions=[1]} : f32[64,48]\n%f = multiply(%c, %b) : f32[64,48]\n%d = dot(%x, "
    "%f) " DOT " : f32[n,48]\n%y = negate(%d) : f32[n,48]\nreturn %y\n}",
    "(%x: f32[b,n,64], %w: s4[2,32,48], %s: f32[2,48], %z: f32[48]) {\n%c = convert(%w) {saturate=true, "
    "rounding=nearest} : f32[2,32,48]\n%b = broadcast(%s) {dimensions=[0,2]} : f32[2,32,48]\n%m = multiply(%c, %b) : "
    "f32[2,32,48]\n%f = reshape(%m) : f32[64,48]\n%d = dot(%x, %f) " DOT3
    " : f32[b,n,48]\n%v = broadcast(%z) {dimensions=[2]} : f32[b,n,48]\n%y = add(%d, %v) : f32[b,n,48]\nreturn "
    "%y\n}",
    "(%x: f32[n,64], %w: u4[48,64], %s: f32[48]) {\n%c = convert(%w) {saturate=true, rounding=nearest} : "
    "s32[48,64]\n%k = constant() {value=s32[] 3} : s32[]\n%z = broadcast(%k) {dimensions=[]} : s32[48,64]\n%m = "
    "subtract(%c, %z) : s32[48,64]\n%g = convert(%m) {saturate=true, rounding=nearest} : f32[48,64]\n%b = "
    "broadcast(%s) {dimensions=[0]} : f32[48,64]\n%f = multiply(%g, %b) : f32[48,64]\n%y = dot(%x, %f) "
    "{lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]} : f32[n,48]\nreturn %y\n}",
    /* columns that are no whole vectors, whose scales are a slice of those that a kernel may read */
    "(%x: f32[n,64], %w: u4[45,2,32], %s: f32[2,48]) {\n%c = convert(%w) {saturate=true, rounding=nearest} : "
    "f32[45,2,32]\n%l = slice(%s) {starts=[0,0], limits=[2,45], strides=[1,1]} : f32[2,45]\n%p = transpose(%l) "
    "{permutation=[1,0]} : f32[45,2]\n%b = broadcast(%p) {dimensions=[0,1]} : f32[45,2,32]\n%m = multiply(%c, %b) : "
    "f32[45,2,32]\n%f = reshape(%m) : f32[45,64]\n%y = dot(%x, %f) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], "
    "rhs_contract=[1]} : f32[n,45]\nreturn %y\n}",
};

START_TEST(small_weights) {
  sizes_cases c = {0};
  for (size_t k = 0; k < sizeof small_texts / sizeof *small_texts; k++) {
    sizes_case *one = sizes_add_text(&c, small_texts[k]);
    one->prepare = prepare;
    one->packs = true;
    one->most = 3000;
  }
  sizes_check_all(&c, ROUNDS, EMIT_MACHINES);
}
END_TEST

/* --- convolutions --- */

#define PLACES "lhs_dilation=[1,1], layout=channels-last"

static const char *const convolution_texts[] = {
    /* images of a constant size */
    "(%x: f32[b,7,6,19], %w: f32[33,19,1,1]) {\n%y = convolution(%x, %w) {strides=[1,1], low=[0,0], high=[0,0], "
    "rhs_dilation=[1,1], groups=1, " PLACES "} : f32[b,7,6,33]\nreturn %y\n}",
    "(%x: f32[b,9,7,5], %w: f32[32,5,3,3], %v: f32[32]) {\n%d = convolution(%x, %w) {strides=[2,1], low=[1,1], "
    "high=[1,1], rhs_dilation=[1,1], groups=1, " PLACES
    "} : f32[b,5,7,32]\n%c = broadcast(%v) {dimensions=[3]} : f32[b,5,7,32]\n%y = add(%d, %c) : f32[b,5,7,32]\nreturn "
    "%y\n}",
    /* images of any size */
    "(%x: f32[b,h,w,8], %k: f32[40,8,1,1]) {\n%y = convolution(%x, %k) {strides=[1,1], low=[0,0], high=[0,0], "
    "rhs_dilation=[1,1], groups=1, " PLACES "} : f32[b,h,w,40]\nreturn %y\n}",
    "(%x: f32[b,h,w,8], %k: f32[16,8,1,1]) {\n%y = convolution(%x, %k) {strides=[2,2], low=[0,0], high=[0,0], "
    "rhs_dilation=[1,1], groups=1, " PLACES "} : f32[b,(h+1)/2,(w+1)/2,16]\nreturn %y\n}",
    "(%x: f32[b,h,w,5], %k: f32[24,5,3,3], %v: f32[24], %r: f32[b,h,w,24]) {\n%d = convolution(%x, %k) "
    "{strides=[1,1], low=[1,1], high=[1,1], rhs_dilation=[1,1], groups=1, " PLACES
    "} : f32[b,h,w,24]\n%c = broadcast(%v) {dimensions=[3]} : f32[b,h,w,24]\n%e = add(%d, %c) : f32[b,h,w,24]\n%y = "
    "add(%e, %r) : f32[b,h,w,24]\nreturn %y\n}",
    "(%x: f32[b,h,w,4], %k: f32[32,4,3,3]) {\n%y = convolution(%x, %k) {strides=[2,2], low=[1,1], high=[1,1], "
    "rhs_dilation=[1,1], groups=1, " PLACES "} : f32[b,(h+1)/2,(w+1)/2,32]\nreturn %y\n}",
    "(%x: f32[1,h,w,4], %k: f32[40,4,3,2]) {\n%y = convolution(%x, %k) {strides=[1,2], low=[2,0], high=[2,3], "
    "rhs_dilation=[2,3], groups=1, " PLACES "} : f32[1,h,(w+1)/2,40]\nreturn %y\n}",
    "(%x: f32[b,h+2,w+2,6], %k: f32[24,6,3,3], %z: f32[h,w]) {\n%y = convolution(%x, %k) {strides=[1,1], low=[0,0], "
    "high=[0,0], rhs_dilation=[1,1], groups=1, " PLACES "} : f32[b,h,w,24]\nreturn %y\n}",
    "(%x: f32[b,h,w,12], %k: f32[32,3,3,3]) {\n%y = convolution(%x, %k) {strides=[1,1], low=[1,1], high=[1,1], "
    "rhs_dilation=[1,1], groups=4, " PLACES "} : f32[b,h,w,32]\nreturn %y\n}",
    "(%x: f32[b,32,w,4], %k: f32[16,4,3,3]) {\n%y = convolution(%x, %k) {strides=[2,1], low=[1,1], high=[1,1], "
    "rhs_dilation=[1,1], groups=1, " PLACES "} : f32[b,16,w,16]\nreturn %y\n}",
    "(%x: f32[b,h,3,4], %k: f32[16,4,3,3]) {\n%y = convolution(%x, %k) {strides=[1,1], low=[1,1], high=[1,1], "
    "rhs_dilation=[1,1], groups=1, " PLACES "} : f32[b,h,3,16]\nreturn %y\n}",
    /* one dimension */
    "(%x: f32[b,n,9], %k: f32[17,9,5]) {\n%y = convolution(%x, %k) {strides=[1], low=[2], high=[2], "
    "rhs_dilation=[1], groups=1, lhs_dilation=[1], layout=channels-last} : f32[b,n,17]\nreturn %y\n}",
    "(%x: f32[b,n,8], %k: f32[32,8,3]) {\n%y = convolution(%x, %k) {strides=[2], low=[1], high=[1], "
    "rhs_dilation=[1], groups=1, lhs_dilation=[1], layout=channels-last} : f32[b,(n+1)/2,32]\nreturn %y\n}",
    /* three dimensions */
    "(%x: f32[1,h,w,n,4], %k: f32[16,4,2,3,3]) {\n%y = convolution(%x, %k) {strides=[1,2,1], low=[1,1,1], "
    "high=[0,1,1], rhs_dilation=[1,1,1], groups=1, lhs_dilation=[1,1,1], layout=channels-last} : "
    "f32[1,h,(w+1)/2,n,16]\nreturn %y\n}",
    /* the last elements may be in no window, although there is padding before the first */
    "(%x: f32[b,n,8], %k: f32[32,8,3]) {\n%y = convolution(%x, %k) {strides=[3], low=[1], high=[0], "
    "rhs_dilation=[1], groups=1, lhs_dilation=[1], layout=channels-last} : f32[b,(n+1)/3,32]\nreturn %y\n}",
};

START_TEST(convolutions) { CHECK_TEXTS(convolution_texts); }
END_TEST

/* --- products of bytes and of s16, in dot groups where the processor has them --- */

static const char *const dots_texts[] = {
    "(%x: u8[n,64], %w: s8[64,48]) {\n%y = dot(%x, %w) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], "
    "rhs_contract=[0]} : s32[n,48]\nreturn %y\n}",
    "(%x: s8[m,n,12], %w: s8[19,12]) {\n%y = dot(%x, %w) {lhs_batch=[], rhs_batch=[], lhs_contract=[2], "
    "rhs_contract=[1]} : s32[m,n,19]\nreturn %y\n}",
    "(%x: u8[b,h,w,4], %w: s8[24,4,3,3]) {\n%y = convolution(%x, %w) {strides=[1,1], low=[1,1], high=[1,1], "
    "rhs_dilation=[1,1], groups=1, " PLACES "} : s32[b,h,w,24]\nreturn %y\n}",
    "(%x: s8[b,h,w,8], %w: s8[16,8,3,3]) {\n%y = convolution(%x, %w) {strides=[1,1], low=[1,1], high=[1,1], "
    "rhs_dilation=[1,1], groups=1, " PLACES "} : s32[b,h,w,16]\nreturn %y\n}",
    "(%x: u8[b,2*h,2*w,8], %w: s8[16,4,3,3], %s: u8[h,w]) {\n%y = convolution(%x, %w) {strides=[2,2], low=[1,1], "
    "high=[1,1], rhs_dilation=[1,1], groups=2, " PLACES
    "} : s32[b,h,w,16]\nreturn "
    "%y\n}",
    /* a bias, a factor for each channel, and the result rounded to bytes */
    "(%x: s8[b,h,w,12], %w: s8[40,12,1,3], %v: s32[40], %f: f32[40]) {\n%d = convolution(%x, %w) {strides=[1,1], "
    "low=[0,1], high=[0,1], rhs_dilation=[1,1], groups=1, " PLACES
    "} : s32[b,h,w,40]\n"
    "%c = broadcast(%v) {dimensions=[3]} : s32[b,h,w,40]\n%a = add(%d, %c) : s32[b,h,w,40]\n"
    "%r = convert(%a) {saturate=true, rounding=nearest} : f32[b,h,w,40]\n"
    "%g = broadcast(%f) {dimensions=[3]} : f32[b,h,w,40]\n%p = multiply(%r, %g) : f32[b,h,w,40]\n"
    "%o = round-nearest-even(%p) : f32[b,h,w,40]\n%y = convert(%o) {saturate=true, rounding=nearest} : "
    "u8[b,h,w,40]\nreturn %y\n}",
    "(%x: s16[n,64], %w: s16[64,48]) {\n%y = dot(%x, %w) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], "
    "rhs_contract=[0]} : s32[n,48]\nreturn %y\n}",
    "(%x: s16[m,n,6], %w: s16[19,6]) {\n%y = dot(%x, %w) {lhs_batch=[], rhs_batch=[], lhs_contract=[2], "
    "rhs_contract=[1]} : s32[m,n,19]\nreturn %y\n}",
    "(%x: s16[b,2*h,2*w,8], %w: s16[16,4,3,3], %s: u8[h,w]) {\n%y = convolution(%x, %w) {strides=[2,2], low=[1,1], "
    "high=[1,1], rhs_dilation=[1,1], groups=2, " PLACES
    "} : s32[b,h,w,16]\nreturn "
    "%y\n}",
    /* a bias, and the result rounded to s16 */
    "(%x: s16[b,h,w,6], %w: s16[40,6,1,3], %v: s32[40], %f: f32[40]) {\n%d = convolution(%x, %w) {strides=[1,1], "
    "low=[0,1], high=[0,1], rhs_dilation=[1,1], groups=1, " PLACES
    "} : s32[b,h,w,40]\n"
    "%c = broadcast(%v) {dimensions=[3]} : s32[b,h,w,40]\n%a = add(%d, %c) : s32[b,h,w,40]\n"
    "%r = convert(%a) {saturate=true, rounding=nearest} : f32[b,h,w,40]\n"
    "%g = broadcast(%f) {dimensions=[3]} : f32[b,h,w,40]\n%p = multiply(%r, %g) : f32[b,h,w,40]\n"
    "%o = round-nearest-even(%p) : f32[b,h,w,40]\n%y = convert(%o) {saturate=true, rounding=nearest} : "
    "s16[b,h,w,40]\nreturn %y\n}",
};

START_TEST(dots) {
  sizes_cases c = {0};
  for (size_t k = 0; k < sizeof dots_texts / sizeof *dots_texts; k++) {
    sizes_case *one = sizes_add_text(&c, dots_texts[k]);
    one->prepare = prepare;
    one->packs = true;
    one->most = 3000;
  }
  sizes_check_all(&c, ROUNDS, EMIT_MACHINES);
}
END_TEST

/* --- blocks, grids and hints --- */

/* Grids of few and of many steps, for caches from tiny to large. */
START_TEST(grids) {
  static const uint32_t threads[] = {1, 2, 64};
  options.threads = threads[_i % 3];
  options.cache_bytes = _i < 3 ? 1 << 11 : 1 << 22;
  sizes_cases c = {0};
  add_all(&c, rows_texts, 6);
  add_all(&c, batched_texts, 4);
  add_all(&c, convolution_texts + 2, 4);
  sizes_check_all(&c, ROUNDS / 2, 1);
}
END_TEST

/* Hints have an effect on speed only: with hints that are far from the sizes of the runs, the results are the
 * same. */
START_TEST(wrong_hints) {
  static const int64_t hints[] = {0, 1, 9, 1000000};
  sizes_cases c = {0};
  add_all(&c, rows_texts, sizeof rows_texts / sizeof *rows_texts);
  add_all(&c, batched_texts, sizeof batched_texts / sizeof *batched_texts);
  add_all(&c, convolution_texts, sizeof convolution_texts / sizeof *convolution_texts);
  for (uint32_t k = 0; k < c.n; k++) {
    dim_table *t = c.items[k].entry->module->dims;
    for (const char *name = "bhmnw"; *name; name++) {
      dim_set_hint(t, dim_symbol_n(t, name, 1), hints[next_random() % 4]);
    }
  }
  sizes_check_all(&c, ROUNDS / 3, 1);
}
END_TEST

static void setup(void) {
  sizes_setup();
  options = (emit_product_options){.threads = 2, .cache_bytes = 1 << 20};
}

int main(void) {
  TCase *t = tcase_create("product-sizes");
  tcase_add_checked_fixture(t, setup, sizes_teardown);
  tcase_set_timeout(t, 300);
  tcase_add_test(t, rows);
  tcase_add_test(t, batched);
  tcase_add_test(t, heavy_epilogues);
  tcase_add_test(t, small_weights);
  tcase_add_test(t, convolutions);
  tcase_add_test(t, dots);
  tcase_add_loop_test(t, grids, 0, 6);
  tcase_add_test(t, wrong_hints);
  return run_suite("product-sizes", t);
}
