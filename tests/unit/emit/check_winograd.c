/* check_winograd.c - compares Winograd's kernels (emit/contraction/winograd.h) with direct sums in f64: sizes,
 * padding, batches, tiles, schedules, vector widths and processors.  Also tests the error that emit_winograd_error
 * states. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "emit/contraction/winograd.h"
#include "hlo/ir/builder.h"
#include "runtime/host/code_loader.h"
#include "tests/unit/emit/kernel_test.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

static void succeed(status s) { ck_assert_msg(!s, "%s", s ? status_message(s) : ""); }

/* The error, relative to the largest result, that the compiler accepts (backend_cpu/README). */
static const double bound = 0x1p-17;

typedef struct conv_case {
  int64_t batch, in[2], channels, outputs, taps[2], low[2], high[2];
  double scale; /* of inputs and weights */
} conv_case;

static const conv_case cases[] = {
    {1, {8, 8}, 16, 16, {3, 3}, {1, 1}, {1, 1}, 1},     {1, {4, 4}, 1, 1, {3, 3}, {0, 0}, {0, 0}, 1},
    {1, {1, 1}, 3, 5, {3, 3}, {1, 1}, {1, 1}, 1},       {2, {7, 7}, 33, 17, {3, 3}, {1, 1}, {1, 1}, 1},
    {3, {5, 13}, 20, 40, {3, 3}, {0, 2}, {2, 0}, 1},    {1, {9, 6}, 15, 31, {3, 3}, {2, 2}, {2, 2}, 1},
    {1, {14, 14}, 64, 144, {3, 3}, {1, 1}, {1, 1}, 1},  {1, {10, 11}, 18, 130, {3, 3}, {1, 1}, {1, 1}, 1},
    {1, {12, 12}, 40, 24, {5, 5}, {2, 2}, {2, 2}, 1},   {1, {6, 21}, 8, 9, {1, 3}, {0, 1}, {0, 1}, 1},
    {2, {21, 6}, 9, 8, {3, 1}, {1, 0}, {1, 0}, 1},      {1, {9, 9}, 12, 12, {3, 5}, {1, 2}, {1, 2}, 1},
    {1, {11, 11}, 16, 16, {3, 3}, {5, 4}, {4, 5}, 1},   {1, {12, 12}, 16, 16, {3, 3}, {-1, -2}, {-3, 0}, 1},
    {1, {9, 9}, 24, 24, {3, 3}, {1, 1}, {1, 1}, 1e-15}, {1, {9, 9}, 24, 24, {3, 3}, {1, 1}, {1, 1}, 1e15},
    {1, {23, 17}, 32, 48, {3, 3}, {1, 1}, {1, 1}, 1},   {2, {1, 37}, 20, 33, {1, 7}, {0, 3}, {0, 3}, 1},
    {1, {6, 30}, 12, 40, {1, 7}, {0, 2}, {0, 3}, 1},    {1, {50, 5}, 17, 24, {7, 1}, {3, 0}, {3, 0}, 1},
    {1, {1, 64}, 16, 16, {1, 5}, {0, 2}, {0, 2}, 1},    {1, {3, 29}, 64, 16, {1, 3}, {0, 1}, {0, 1}, 1},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static int64_t out_of(const conv_case *c, int d) { return c->in[d] + c->low[d] + c->high[d] - c->taps[d] + 1; }

/* --- an instruction, its numbers, and what is right --- */

typedef struct problem {
  const conv_case *c;
  const hlo_instr *instr;
  float *x, *w;
  double *want, largest;
} problem;

static void fill(float *to, int64_t n, double scale, uint64_t seed) {
  for (int64_t k = 0; k < n; k++) {
    to[k] = (float)(scale * ((double)(hash_mix(seed, (uint64_t)k) >> 11) * 0x1p-52 - 1));
  }
}

static double direct(const problem *p, int64_t n, int64_t y, int64_t x, int64_t k) {
  const conv_case *c = p->c;
  double sum = 0;
  for (int64_t i = 0; i < c->taps[0]; i++) {
    for (int64_t j = 0; j < c->taps[1]; j++) {
      int64_t at[] = {y + i - c->low[0], x + j - c->low[1]};
      if (at[0] < 0 || at[0] >= c->in[0] || at[1] < 0 || at[1] >= c->in[1]) {
        continue;
      }
      const float *from = p->x + ((n * c->in[0] + at[0]) * c->in[1] + at[1]) * c->channels;
      for (int64_t l = 0; l < c->channels; l++) {
        sum += (double)from[l] * (double)p->w[((k * c->channels + l) * c->taps[0] + i) * c->taps[1] + j];
      }
    }
  }
  return sum;
}

static void make_want(problem *p) {
  const conv_case *c = p->c;
  double *to = p->want = ARENA_NEW_N(memory, double, (size_t)shape_elements(&p->instr->shapes[0]));
  for (int64_t n = 0; n < c->batch; n++) {
    for (int64_t y = 0; y < out_of(c, 0); y++) {
      for (int64_t x = 0; x < out_of(c, 1); x++) {
        for (int64_t k = 0; k < c->outputs; k++) {
          *to = direct(p, n, y, x, k);
          p->largest = fmax(p->largest, fabs(*to++));
        }
      }
    }
  }
}

static hlo_value convolve(hlo_builder *b, const conv_case *c, hlo_value x, hlo_value w) {
  static const int64_t one[] = {1, 1};
  hlo_conv_dims d = {.layout = HLO_CHANNELS_LAST,
                     .groups = 1,
                     .strides = one,
                     .low = c->low,
                     .high = c->high,
                     .lhs_dilation = one,
                     .rhs_dilation = one};
  return hlo_convolution(b, x, w, &d);
}

static problem make_problem(const conv_case *c) {
  hlo_module *m = hlo_module_create(memory, "m");
  hlo_computation *main = hlo_computation_create(m, "main");
  hlo_builder b = hlo_builder_make(main);
  shape xs = shape_make(DTYPE_F32, 4, (dim[]){c->batch, c->in[0], c->in[1], c->channels});
  shape ws = shape_make(DTYPE_F32, 4, (dim[]){c->outputs, c->channels, c->taps[0], c->taps[1]});
  hlo_value x = hlo_result(hlo_parameter(main, xs), 0), w = hlo_result(hlo_parameter(main, ws), 0);
  hlo_value y = convolve(&b, c, x, w);
  succeed(hlo_builder_take_error(&b));
  hlo_set_roots(main, 1, &y);
  problem p = {.c = c,
               .instr = y.def,
               .x = guarded_memory((size_t)shape_bytes(&xs)),
               .w = arena_alloc_aligned(memory, (size_t)shape_bytes(&ws), 64)};
  fill(p.x, shape_elements(&xs), c->scale, 1);
  fill(p.w, shape_elements(&ws), c->scale, 2);
  make_want(&p);
  return p;
}

/* --- kernels --- */

static void run_phase(rt_kernel_fn *f, const emit_kernel_info *info, const void *const *buffers) {
  ck_assert_int_gt(info->grid, 0);
  for (int64_t from = 0, step = 1; from < info->grid; from += step, step = 2 * step) { /* parts of several sizes */
    f(buffers, NULL, from, from + step < info->grid ? from + step : info->grid);
  }
}

static float *run(const problem *p, const emit_target *t, const emit_winograd *w) {
  emit_module *m;
  rt_code *code;
  emit_kernel_info info[EMIT_WINOGRAD_PHASES];
  emit_winograd chosen;
  emit_winograd_choose_like(&chosen, w);
  succeed(emit_module_create(memory, t, "winograd", &m));
  for (uint32_t k = 0; k < emit_winograd_kernels(w); k++) {
    succeed(emit_winograd_kernel(m, arena_printf(memory, "k%u", k), p->instr, NULL, &chosen, k, &info[k]));
  }
  succeed(kernel_load(memory, m, kernel_resolve, &code));
  float *packed = guarded_memory(emit_winograd_packed_bytes(w)),
        *y = guarded_memory((size_t)shape_bytes(&p->instr->shapes[0]));
  size_t scratch_bytes = (size_t)emit_winograd_scratch_bytes(p->instr->parent->module->dims, w);
  void *scratch = guarded_memory(scratch_bytes);
  memset(scratch, 0xff, scratch_bytes); /* NaN */
  memset(y, 0xff, (size_t)shape_bytes(&p->instr->shapes[0]));
  emit_winograd_pack(w, p->w, packed);
  const void *buffers[] = {p->x, packed, y, scratch, NULL};
  for (uint32_t k = 0; k < emit_winograd_kernels(w); k++) {
    run_phase((rt_kernel_fn *)(intptr_t)rt_code_find(code, arena_printf(memory, "k%u", k)), &info[k], buffers);
  }
  emit_module_destroy(m);
  return y;
}

static void compare(const problem *p, const float *y, const char *what) {
  int64_t n = shape_elements(&p->instr->shapes[0]);
  double error = 0;
  for (int64_t k = 0; k < n; k++) {
    double e = fabs((double)y[k] - p->want[k]);
    error = e <= error ? error : e; /* if e is NaN, so is the error */
  }
  ck_assert_msg(error <= bound * p->largest, "%s: error %g of %g", what, error, p->largest);
}

/* Returns true if emit_winograd_plan must accept the tile: along each dimension with taps, the tile's patch
 * of the image has at most 6 elements if both dimensions have taps, otherwise at most 10. */
static bool should_plan(const conv_case *c, int64_t tile) {
  bool both = c->taps[0] > 1 && c->taps[1] > 1;
  for (int d = 0; d < 2; d++) {
    if (c->taps[d] > 1 && tile + c->taps[d] - 1 > (both ? 6 : 10)) {
      return false;
    }
  }
  return true;
}

/* All schedules and numbers of threads must give the same bits for one size of tiles; those that transform
 * the weights on the fly need to agree only with each other. */
static void try_tile(const problem *p, const emit_target *t, int64_t tile, const char *what) {
  size_t bytes = (size_t)shape_bytes(&p->instr->shapes[0]);
  const float *first = NULL;
  for (int way = 0; way < 5; way++) {
    emit_winograd w;
    bool small = way == 1 || way == 4, on_the_fly = way >= 3;
    emit_winograd_options o = {.tile = tile,
                               .phased = way >= 2,
                               .on_the_fly = on_the_fly,
                               .threads = small ? 3 : 1,
                               .cache_bytes = small ? 1 << 14 : 1 << 20};
    if (!emit_winograd_plan(p->instr, t, &o, &w)) {
      ck_assert_msg(!should_plan(p->c, tile), "%s, F(%d): no plan", what, (int)tile);
      return;
    }
    ck_assert_msg(should_plan(p->c, tile), "%s, F(%d): a plan", what, (int)tile);
    w.weights = 1;
    const float *y = run(p, t, &w);
    compare(p, y, arena_printf(memory, "%s, F(%d), way %d", what, (int)tile, way));
    ck_assert_msg(!first || memcmp(first, y, bytes) == 0, "%s, F(%d): way %d gives other bits", what, (int)tile, way);
    first = first && way != 2 ? first : way == 2 ? NULL : y;
  }
}

START_TEST(convolutions) {
  problem p = make_problem(&cases[_i]);
  for (int v = 0; v < EMIT_MACHINES; v++) {
    emit_target t = emit_machine_target(memory, &emit_machines[v]);
    const char *what = arena_printf(memory, "case %d, %s, %d lanes", _i, emit_machines[v].cpu, emit_machines[v].lanes);
    for (int64_t tile = 2; tile <= 8; tile += 2) {
      try_tile(&p, &t, tile, what);
    }
  }
}
END_TEST

/* --- what is refused --- */

static bool plans(const hlo_instr *i, int64_t tile) {
  emit_target t;
  emit_winograd w;
  emit_winograd_options o = {.tile = tile, .threads = 2, .cache_bytes = 1 << 20};
  succeed(emit_target_init(memory, NULL, "native", 0, &t));
  return emit_winograd_plan(i, &t, &o, &w);
}

START_TEST(refusals) {
  static const conv_case plain = {1, {8, 8}, 4, 4, {3, 3}, {1, 1}, {1, 1}, 1},
                         one = {1, {8, 8}, 4, 4, {1, 1}, {0, 0}, {0, 0}, 1},
                         four = {1, {8, 8}, 4, 4, {4, 4}, {1, 1}, {1, 1}, 1},
                         five = {1, {8, 8}, 4, 4, {5, 5}, {1, 1}, {1, 1}, 1},
                         seven = {1, {8, 8}, 4, 4, {7, 7}, {1, 1}, {1, 1}, 1},
                         nine = {1, {1, 18}, 4, 4, {1, 9}, {0, 1}, {0, 1}, 1};
  ck_assert(plans(make_problem(&plain).instr, 4) && plans(make_problem(&five).instr, 2));
  ck_assert(!plans(make_problem(&plain).instr, 3) && !plans(make_problem(&five).instr, 4));
  ck_assert(!plans(make_problem(&seven).instr, 2) && !plans(make_problem(&nine).instr, 2));
  ck_assert(!plans(make_problem(&one).instr, 4) && !plans(make_problem(&four).instr, 2));
}
END_TEST

/* --- the stated error --- */

/* Returns the stated error for taps x taps if `both` is set, otherwise for 1 x taps. */
static double sample_error(int64_t channels, int64_t tile, int64_t taps, bool both, bool on_the_fly) {
  emit_winograd w = {.on_the_fly = on_the_fly,
                     .m = {both ? tile : 1, tile},
                     .r = {both ? taps : 1, taps},
                     .channels = channels,
                     .outputs = 16};
  int64_t n = w.outputs * channels * w.r[0] * taps;
  float *weights = ARENA_NEW_N(memory, float, (size_t)n);
  fill(weights, n, 1, 3);
  return emit_winograd_error(memory, &w, weights);
}

START_TEST(errors) {
  static const int64_t channels[] = {1, 16, 64, 512};
  for (size_t k = 0; k < sizeof channels / sizeof *channels; k++) {
    double two = sample_error(channels[k], 2, 3, true, false), four = sample_error(channels[k], 4, 3, true, false);
    double on_the_fly = sample_error(channels[k], 4, 3, true, true);
    ck_assert_msg(on_the_fly > 0 && on_the_fly < bound, "%d channels, late: %g", (int)channels[k], on_the_fly);
    ck_assert_msg(two > 0 && two < bound / 4 && four < bound && two < four, "%d channels: F(2,3) %g, F(4,3) %g",
                  (int)channels[k], two, four);
    for (int64_t size = 8; size <= 10; size += 2) { /* in one dimension */
      for (int64_t taps = 3; taps <= 7; taps += 2) {
        double long_one = sample_error(channels[k], size - taps + 1, taps, false, false);
        ck_assert_msg(long_one > 0 && long_one < bound, "%d channels, F(%d,%d): %g", (int)channels[k],
                      (int)(size - taps + 1), (int)taps, long_one);
      }
    }
  }
  double many = sample_error(1 << 17, 4, 3, true, false); /* a long sum in f32 has a large error, which the
                                                             stated error must show */
  ck_assert_msg(many > bound, "%g", many);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("winograd");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, convolutions, 0, N_CASES);
  tcase_add_test(t, refusals);
  tcase_add_test(t, errors);
  return run_suite("winograd", t);
}
