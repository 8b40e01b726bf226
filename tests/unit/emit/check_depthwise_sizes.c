/* check_depthwise_sizes.c - compares kernels of depthwise convolutions whose numbers of images and whose sizes are
 * arguments (emit/contraction/depthwise.h) with the reference evaluator: one kernel each, at many sizes, with tiles of
 * all widths.  The numbers are multiples of 1/16 of at most 3, so that all sums are exact and must be equal. */
#include <check.h>
#include <stdlib.h>

#include "base/dim/guard.h"
#include "emit/contraction/depthwise.h"
#include "tests/unit/emit/sizes_case.h"

enum { ROUNDS = 20 };

static int64_t vectors;

static void pack(const void *packing, const void *weights, void *packed) {
  emit_depthwise_pack(packing, weights, packed);
}

static void prepare(const sizes_case *k, arena *a, const emit_target *t, sizes_way *way) {
  const dim_table *dims = k->i->parent->module->dims;
  emit_depthwise *d = ARENA_NEW(a, emit_depthwise), *chosen = ARENA_NEW(a, emit_depthwise);
  ck_assert(emit_depthwise_of(k->i, d));
  if (!emit_depthwise_choose(dims, d, t, vectors, (uint32_t)vectors) && !emit_depthwise_choose(dims, d, t, 1, 1)) {
    ck_assert(d->lanes % d->group || d->lanes % d->multiplier);
    return; /* emit_kernel then writes the kernel */
  }
  d->weights = 1;
  emit_depthwise_choose_like(chosen, d);
  *way = (sizes_way){.write = emit_depthwise_write,
                     .config = chosen,
                     .phases = 1,
                     .packed_bytes = emit_depthwise_packed_bytes(d),
                     .pack = pack,
                     .packing = d};
}

#define PLACES "lhs_dilation=[1,1], layout=channels-last"
#define SAME "strides=[1,1], low=[1,1], high=[1,1], rhs_dilation=[1,1], " PLACES

static const char *const texts[] = {
    /* windows of 3 x 3 with padding on each side: symbols for all sizes, for the number of images, of rows,
     * of columns */
    "(%x: f32[b,h,w,16], %w: f32[16,1,3,3]) {\n%y = convolution(%x, %w) {" SAME
    ", groups=16} : f32[b,h,w,16]\nreturn "
    "%y\n}",
    "(%x: f32[b,7,6,19], %w: f32[19,1,3,3]) {\n%y = convolution(%x, %w) {" SAME
    ", groups=19} : f32[b,7,6,19]\nreturn "
    "%y\n}",
    "(%x: f32[2,h,9,24], %w: f32[24,1,3,3]) {\n%y = convolution(%x, %w) {" SAME
    ", groups=24} : f32[2,h,9,24]\nreturn "
    "%y\n}",
    "(%x: f32[1,5,w,33], %w: f32[33,1,3,3]) {\n%y = convolution(%x, %w) {" SAME
    ", groups=33} : f32[1,5,w,33]\nreturn "
    "%y\n}",
    /* in this order: stride 2; a 5x5 window without padding; dilation, and padding that can be wider than the image;
     * negative padding, which crops */
    "(%x: f32[b,2*h,2*w,20], %w: f32[20,1,3,3], %s: f32[h,w]) {\n%y = convolution(%x, %w) {strides=[2,2], low=[1,1], "
    "high=[1,1], rhs_dilation=[1,1], groups=20, " PLACES "} : f32[b,h,w,20]\nreturn %y\n}",
    "(%x: f32[b,h+4,w+4,8], %w: f32[8,1,5,5], %s: f32[h,w]) {\n%y = convolution(%x, %w) {strides=[1,1], low=[0,0], "
    "high=[0,0], rhs_dilation=[1,1], groups=8, " PLACES "} : f32[b,h,w,8]\nreturn %y\n}",
    "(%x: f32[b,h,w,12], %w: f32[12,1,3,3]) {\n%y = convolution(%x, %w) {strides=[1,1], low=[4,5], high=[4,5], "
    "rhs_dilation=[2,3], groups=12, " PLACES "} : f32[b,h+4,w+4,12]\nreturn %y\n}",
    "(%x: f32[b,h+3,w+5,12], %w: f32[12,1,2,3], %s: f32[h,w]) {\n%y = convolution(%x, %w) {strides=[1,1], low=[-1,2], "
    "high=[-1,-5], rhs_dilation=[1,1], groups=12, " PLACES "} : f32[b,h,w,12]\nreturn %y\n}",
    /* a bias and an activation; a residual that may be overwritten */
    "(%x: f32[b,h,w,40], %w: f32[40,1,3,3], %v: f32[40]) {\n%d = convolution(%x, %w) {" SAME
    ", groups=40} : "
    "f32[b,h,w,40]\n%c = broadcast(%v) {dimensions=[3]} : f32[b,h,w,40]\n%y = add(%d, %c) : f32[b,h,w,40]\n%z = "
    "maximum(%y, %d) : f32[b,h,w,40]\nreturn %z\n}",
    "(%x: f32[b,h,w,21], %w: f32[21,1,3,3], %r: f32[b,h,w,21]) {\n%d = convolution(%x, %w) {" SAME
    ", groups=21} : "
    "f32[b,h,w,21]\n%y = add(%d, %r) : f32[b,h,w,21]\nreturn %y\n}",
    /* groups of channels, several output channels for each input channel, bytes, other types, one and three dimensions
     */
    "(%x: f32[b,h,w,32], %w: f32[32,4,3,3]) {\n%y = convolution(%x, %w) {" SAME
    ", groups=8} : f32[b,h,w,32]\nreturn "
    "%y\n}",
    "(%x: f32[b,h,w,18], %w: f32[36,1,3,3]) {\n%y = convolution(%x, %w) {" SAME
    ", groups=18} : f32[b,h,w,36]\nreturn "
    "%y\n}",
    "(%x: u8[b,h,w,40], %w: s8[40,1,3,3]) {\n%y = convolution(%x, %w) {" SAME
    ", groups=40} : s32[b,h,w,40]\nreturn "
    "%y\n}",
    "(%x: f64[b,h,w,10], %w: f64[10,1,3,3]) {\n%y = convolution(%x, %w) {" SAME
    ", groups=10} : f64[b,h,w,10]\nreturn "
    "%y\n}",
    "(%x: f32[b,w,17], %w: f32[17,1,5]) {\n%y = convolution(%x, %w) {strides=[1], low=[2], high=[2], lhs_dilation=[1], "
    "rhs_dilation=[1], layout=channels-last, groups=17} : f32[b,w,17]\nreturn %y\n}",
    "(%x: f32[b,h,1,w,12], %w: f32[12,1,3,1,3]) {\n%y = convolution(%x, %w) {strides=[1,1,1], low=[1,0,1], "
    "high=[1,0,1], lhs_dilation=[1,1,1], rhs_dilation=[1,1,1], layout=channels-last, groups=12} : "
    "f32[b,h,1,w,12]\nreturn %y\n}",
};
enum { N_TEXTS = sizeof texts / sizeof *texts };

START_TEST(any_sizes) {
  sizes_cases c = {0};
  vectors = (int64_t)1 << _i;
  for (size_t k = 0; k < N_TEXTS; k++) {
    sizes_case *one = sizes_add_text(&c, texts[k]);
    one->prepare = prepare;
    one->most = 3000;
    if (_i == 1) { /* hints choose the width of tiles */
      dim_table *t = one->entry->module->dims;
      dim_set_hint(t, dim_symbol(t, "w"), 5);
      dim_set_hint(t, dim_symbol(t, "h"), 1);
    }
  }
  sizes_check_all(&c, ROUNDS, EMIT_MACHINES);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("depthwise-sizes");
  tcase_add_checked_fixture(t, sizes_setup, sizes_teardown);
  tcase_set_timeout(t, 600);
  tcase_add_loop_test(t, any_sizes, 0, 3);
  return run_suite("depthwise-sizes", t);
}
