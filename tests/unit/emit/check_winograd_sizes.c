/* check_winograd_sizes.c - compares Winograd's kernels whose numbers of images and whose sizes are arguments
 * (emit/contraction/winograd.h) with the reference evaluator: one kernel each, at many sizes, in all schedules.  The
 * tolerance is the error that the compiler accepts (backend_cpu/README). */
#include <check.h>
#include <stdlib.h>

#include "base/dim/guard.h"
#include "emit/contraction/winograd.h"
#include "tests/unit/emit/sizes_case.h"

enum { ROUNDS = 14, WAYS = 6 };
static const double bound = 0x1p-17;

static const emit_winograd_options ways[WAYS] = {
    {.tile = 4, .threads = 1, .cache_bytes = 1 << 20},
    {.tile = 4, .threads = 3, .cache_bytes = 1 << 14},
    {.tile = 2, .threads = 2, .cache_bytes = 1 << 14},
    {.tile = 4, .phased = true, .threads = 1, .cache_bytes = 1 << 20},
    {.tile = 2, .phased = true, .threads = 3, .cache_bytes = 1 << 20},
    {.tile = 4, .phased = true, .on_the_fly = true, .threads = 3, .cache_bytes = 1 << 14},
};
static const emit_winograd_options *way_of_test;

static void pack(const void *packing, const void *weights, void *packed) {
  emit_winograd_pack(packing, weights, packed);
}

static status write(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                    const void *config, uint32_t phase, emit_kernel_info *info) {
  return emit_winograd_kernel(m, name, i, options, config, phase, info);
}

static void prepare(const sizes_case *k, arena *a, const emit_target *t, sizes_way *way) {
  emit_winograd *w = ARENA_NEW(a, emit_winograd), *chosen = ARENA_NEW(a, emit_winograd);
  emit_winograd_options o = *way_of_test;
  const hlo_instr *c = emit_contraction_of(k->i);
  if (!emit_winograd_plan(c, t, &o, w)) { /* windows with more taps allow smaller tiles only */
    o.tile = 2;
    ck_assert(emit_winograd_plan(c, t, &o, w));
  }
  if (o.threads > 1 && !o.phased) { /* otherwise these cases have too little work for a second thread */
    w->parts.least = 1;
    w->parts.large = 50;
  }
  w->weights = 1;
  emit_winograd_choose_like(chosen, w);
  *way = (sizes_way){.write = write,
                     .config = chosen,
                     .phases = emit_winograd_kernels(w),
                     .scratch_bytes = emit_winograd_scratch_bytes(k->i->parent->module->dims, w),
                     .packed_bytes = emit_winograd_packed_bytes(w),
                     .pack = pack,
                     .packing = w};
}

#define PLACES "lhs_dilation=[1,1], rhs_dilation=[1,1], groups=1, layout=channels-last"
#define SAME "strides=[1,1], low=[1,1], high=[1,1], " PLACES

static const char *const texts[] = {
    /* windows of 3 x 3 with padding on each side: symbols for all sizes, for the number of images, of rows,
     * of columns */
    "(%x: f32[b,h,w,16], %w: f32[24,16,3,3]) {\n%y = convolution(%x, %w) {" SAME "} : f32[b,h,w,24]\nreturn %y\n}",
    "(%x: f32[b,7,6,19], %w: f32[5,19,3,3]) {\n%y = convolution(%x, %w) {" SAME "} : f32[b,7,6,5]\nreturn %y\n}",
    "(%x: f32[2,h,9,8], %w: f32[40,8,3,3]) {\n%y = convolution(%x, %w) {" SAME "} : f32[2,h,9,40]\nreturn %y\n}",
    "(%x: f32[1,5,w,3], %w: f32[17,3,3,3]) {\n%y = convolution(%x, %w) {" SAME "} : f32[1,5,w,17]\nreturn %y\n}",
    /* in this order: sizes that are multiples of any tile; a 5x5 window without padding; padding that can be wider than
     * the image; negative padding, which crops */
    "(%x: f32[b,4*h,4*w,8], %w: f32[136,8,3,3], %s: f32[h,w]) {\n%y = convolution(%x, %w) {" SAME
    "} : f32[b,4*h,4*w,136]\nreturn %y\n}",
    "(%x: f32[b,h+4,w+4,8], %w: f32[8,8,5,5], %s: f32[h,w]) {\n%y = convolution(%x, %w) {strides=[1,1], low=[0,0], "
    "high=[0,0], " PLACES "} : f32[b,h,w,8]\nreturn %y\n}",
    "(%x: f32[b,h,w,12], %w: f32[12,12,3,3]) {\n%y = convolution(%x, %w) {strides=[1,1], low=[4,5], high=[4,5], " PLACES
    "} : f32[b,h+6,w+8,12]\nreturn %y\n}",
    "(%x: f32[b,h+4,w+5,12], %w: f32[12,12,3,3], %s: f32[h,w]) {\n%y = convolution(%x, %w) {strides=[1,1], low=[-1,2], "
    "high=[-1,-5], " PLACES "} : f32[b,h,w,12]\nreturn %y\n}",
    /* taps along one dimension only, and images of one dimension */
    "(%x: f32[b,h,w,20], %w: f32[9,20,1,3]) {\n%y = convolution(%x, %w) {strides=[1,1], low=[0,1], high=[0,1], " PLACES
    "} : f32[b,h,w,9]\nreturn %y\n}",
    "(%x: f32[b,h,w,9], %w: f32[8,9,7,1]) {\n%y = convolution(%x, %w) {strides=[1,1], low=[3,0], high=[3,0], " PLACES
    "} : f32[b,h,w,8]\nreturn %y\n}",
    "(%x: f32[b,w,17], %w: f32[16,17,5]) {\n%y = convolution(%x, %w) {strides=[1], low=[2], high=[2], "
    "lhs_dilation=[1], "
    "rhs_dilation=[1], groups=1, layout=channels-last} : f32[b,w,16]\nreturn %y\n}",
    /* a bias and an activation; a residual that may be overwritten */
    "(%x: f32[b,h,w,10], %w: f32[33,10,3,3], %v: f32[33]) {\n%d = convolution(%x, %w) {" SAME
    "} : f32[b,h,w,33]\n%c = broadcast(%v) {dimensions=[3]} : f32[b,h,w,33]\n%y = add(%d, %c) : f32[b,h,w,33]\n"
    "%z = maximum(%y, %d) : f32[b,h,w,33]\nreturn %z\n}",
    "(%x: f32[b,h,w,21], %w: f32[21,21,3,3], %r: f32[b,h,w,21]) {\n%d = convolution(%x, %w) {" SAME
    "} : f32[b,h,w,21]\n%y = add(%d, %r) : f32[b,h,w,21]\nreturn %y\n}",
};
enum { N_TEXTS = sizeof texts / sizeof *texts };

/* The last text is tested twice, the second time with its result in the memory of the residual. */
START_TEST(any_sizes) {
  sizes_cases c = {0};
  way_of_test = &ways[_i];
  for (size_t k = 0; k <= N_TEXTS; k++) {
    sizes_case *one = sizes_add_text(&c, texts[k < N_TEXTS ? k : N_TEXTS - 1]);
    one->prepare = prepare;
    one->tolerance = bound;
    one->most = 1500;
    one->shares = k < N_TEXTS ? -1 : 2;
    if (_i == 2) { /* hints choose blocks */
      dim_table *t = one->entry->module->dims;
      dim_set_hint(t, dim_symbol(t, "w"), 5);
      dim_set_hint(t, dim_symbol(t, "h"), 1);
    }
  }
  sizes_check_all(&c, ROUNDS, _i == 0 ? EMIT_MACHINES : 1);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("winograd-sizes");
  tcase_add_checked_fixture(t, sizes_setup, sizes_teardown);
  tcase_set_timeout(t, 600);
  tcase_add_loop_test(t, any_sizes, 0, WAYS);
  return run_suite("winograd-sizes", t);
}
