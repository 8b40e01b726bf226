/* winograd.c - the algorithm "winograd": emit/contraction/winograd.h for convolutions with constant weights. */
#include <math.h>
#include <string.h>

#include "backend_cpu/algorithms/algorithm.h"
#include "emit/contraction/winograd.h"
#include "emit/llvm/likely.h"

/* The error that a layer may have against sums in f64, relative to the largest output (see backend_cpu/README). */
static const double largest_error = 0x1p-17;
/* Estimates for one thread.  A multiplication takes a sixth longer than in a plain product, because of the transforms.
 * Packed weights are read from memory; a byte of them takes less time in a phased plan (emit_winograd.phased), which
 * reads it only once.  Weights that are transformed on the fly are transformed again for each share of the tiles
 * (emit_winograd.share).  The results of a phase are written to memory and read by the next phase, except for those
 * that fit in a thread's part of the last-level cache (cached_bytes). */
static const double with_transforms = 7.0 / 6, fused_byte_nanoseconds = 0.025, phased_byte_nanoseconds = 0.015,
                    on_the_fly_nanoseconds = 0.02, scratch_nanoseconds = 0.1, cached_bytes = 4 << 20,
                    least_on_the_fly_bytes = 16 << 20, call_nanoseconds = 1000;

enum { TILE, SCHEDULE, FUSED = 0, PHASED, ON_THE_FLY }; /* indices of cpu_config.v, and the values of v[SCHEDULE] */

static dim_table *dims_of(const cpu_problem *p) { return p->instr->parent->module->dims; }

static bool plan_of(const cpu_problem *p, const cpu_config *v, emit_winograd *w) {
  emit_winograd_options options = {v->v[TILE], v->v[SCHEDULE] != FUSED, v->v[SCHEDULE] == ON_THE_FLY,
                                   p->options.threads, p->options.target->l2_bytes};
  if (p->options.numerics.exact || p->multiplications < CPU_SMALL_CONTRACTION || !p->constant_weights || p->lhs < 0 ||
      !emit_supports(p->instr, NULL) || !emit_winograd_plan(p->contraction, p->options.target, &options, w) ||
      /* sums that must stay exact (hlo/passes/integer_sums.c) */
      literal_is_whole(hlo_literal(p->instr->operands[p->weights]))) {
    return false;
  }
  w->weights = p->weights;
  return true;
}

static double likely(const cpu_problem *p, dim d) { return emit_likely_size(dims_of(p), d); }

static double transformed_bytes(const emit_winograd *w) {
  return (double)emit_winograd_products(w) * (double)w->channels * (double)w->outputs * sizeof(float);
}

/* Returns true if the config can be the fastest.  Transforming weights on the fly takes time and is only worth it for
 * weights that do not fit in any cache.  Phases are only worth it if the weights are larger than a core's cache, and
 * not if one thread computes all tiles as one block in any case. */
static bool is_worth_listing(const cpu_problem *p, const emit_winograd *w) {
  bool same = p->options.threads == 1 && likely(p, emit_winograd_all_tiles(dims_of(p), w)) <= (double)w->rows;
  /* whether the plain weights take at most half the memory of the transformed ones */
  bool smaller = emit_winograd_products(w) >= 2 * w->r[0] * w->r[1];
  bool on_the_fly = smaller && transformed_bytes(w) > least_on_the_fly_bytes;
  return !w->phased ||
         (transformed_bytes(w) > (double)p->options.target->l2_bytes && (w->on_the_fly ? on_the_fly : !same));
}

static double estimate_of(const cpu_problem *p, const emit_winograd *w) {
  double bytes = (double)emit_winograd_packed_bytes(w),
         work = emit_winograd_multiplications(dims_of(p), w) * with_transforms *
                cpu_multiply_add_nanoseconds(p->options.target, w->lanes);
  double shares = w->on_the_fly ? likely(p, emit_winograd_shares(dims_of(p), w)) : 0;
  work += on_the_fly_nanoseconds * transformed_bytes(w) * shares;
  bytes *= w->phased ? phased_byte_nanoseconds : fused_byte_nanoseconds;
  double far =
      w->phased ? likely(p, emit_winograd_scratch_bytes(dims_of(p), w)) - p->options.threads * cached_bytes : 0;
  bytes += far > 0 ? far * scratch_nanoseconds : 0;
  return call_nanoseconds * emit_winograd_kernels(w) + cpu_time_on_threads(work, p->options.threads) + bytes;
}

/* Drops configs whose estimates are too far behind the best one to be worth compiling and timing. */
static uint32_t keep_promising(uint32_t n, cpu_config *v) {
  const double far = 1.35;
  double least = n ? v[0].estimate : 0;
  uint32_t kept = 0;
  for (uint32_t k = 1; k < n; k++) {
    least = v[k].estimate < least ? v[k].estimate : least;
  }
  for (uint32_t k = 0; k < n; k++) {
    if (v[k].estimate <= far * least) {
      v[kept++] = v[k];
    }
  }
  return kept;
}

/* The possible values of the side of the tiles and the schedule. */
static const cpu_config tiles[] = {{.name = "8", .v = {8, FUSED}},
                                   {.name = "8.phased", .v = {8, PHASED}},
                                   {.name = "6", .v = {6, FUSED}},
                                   {.name = "6.phased", .v = {6, PHASED}},
                                   {.name = "4", .v = {4, FUSED}},
                                   {.name = "4.phased", .v = {4, PHASED}},
                                   {.name = "4.on-the-fly", .v = {4, ON_THE_FLY}},
                                   {.name = "2", .v = {2, FUSED}},
                                   {.name = "2.phased", .v = {2, PHASED}}};
enum { N_TILES = sizeof tiles / sizeof *tiles };

static void fill_config(const cpu_problem *p, const cpu_config *tile, const emit_winograd *w, cpu_config *out) {
  *out = *tile;
  out->bytes = (double)emit_winograd_packed_bytes(w) + likely(p, emit_winograd_scratch_bytes(dims_of(p), w));
  out->estimate = estimate_of(p, w);
}

static uint32_t list_configs(arena *a, const cpu_problem *p, uint32_t room, cpu_config *out) {
  uint32_t n = 0;
  emit_winograd w;
  bool small = p->options.target->small; /* transformed tiles take several times the memory of the operand */
  for (size_t k = 0; k < N_TILES && n < room && !small; k++) {
    if (plan_of(p, &tiles[k], &w) && is_worth_listing(p, &w)) {
      fill_config(p, &tiles[k], &w, &out[n++]);
    }
  }
  (void)a;
  return keep_promising(n, out);
}

static bool find_config(const cpu_problem *p, const char *name, cpu_config *out) {
  emit_winograd w;
  size_t k = 0;
  while (k < N_TILES && strcmp(tiles[k].name, name) != 0) {
    k++;
  }
  if (k == N_TILES || !plan_of(p, &tiles[k], &w)) {
    return false;
  }
  fill_config(p, &tiles[k], &w, out);
  return true;
}

static status write_phase(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                          const void *config, uint32_t phase, emit_kernel_info *info) {
  return emit_winograd_kernel(m, name, i, options, config, phase, info);
}

static status pack(const void *packing, const literal *weights, void *packed) {
  emit_winograd_pack(packing, weights->data, packed);
  return NULL;
}

/* Returns a copy of w with only those members that packing depends on; all others are 0. */
static const emit_winograd *packing_of(arena *a, const emit_winograd *w) {
  emit_winograd *k = ARENA_NEW(a, emit_winograd);
  *k = (emit_winograd){.m = {w->m[0], w->m[1]},
                       .r = {w->r[0], w->r[1]},
                       .channels = w->channels,
                       .outputs = w->outputs,
                       .vectors = w->vectors,
                       .lanes = w->lanes,
                       .on_the_fly = w->on_the_fly};
  return k;
}

static status build(arena *a, const cpu_problem *p, const cpu_config *v, cpu_plan *out) {
  emit_winograd *w = ARENA_NEW(a, emit_winograd), *chosen = ARENA_NEW(a, emit_winograd);
  CHECK_THAT(plan_of(p, v, w), STATUS_UNSUPPORTED, "not for winograd");
  emit_winograd_choose_like(chosen, w);
  out->kernel = ARENA_NEW(a, cpu_kernel_plan);
  *out->kernel = (cpu_kernel_plan){.n_phases = emit_winograd_kernels(w),
                                   .write = write_phase,
                                   .config = chosen,
                                   .config_bytes = sizeof *chosen,
                                   .packed_bytes = emit_winograd_packed_bytes(w),
                                   .pack = pack,
                                   .packing = packing_of(a, w),
                                   .packing_bytes = sizeof *w,
                                   .scratch_bytes = emit_winograd_scratch_bytes(dims_of(p), w)};
  out->scratch_bytes = out->kernel->scratch_bytes;
  return NULL;
}

static status check(arena *a, const cpu_problem *p, const cpu_plan *plan) {
  double error = emit_winograd_error(a, plan->kernel->config, hlo_literal(p->instr->operands[p->weights])->data);
  CHECK_THAT(error <= largest_error, STATUS_UNSUPPORTED, "its error with these weights is %g of the largest output",
             error);
  return NULL;
}

const cpu_algorithm cpu_winograd_algorithm = {.name = "winograd",
                                              .takes_sizes = true,
                                              .compile_nanoseconds = 4e6,
                                              .sized_nanoseconds = 3e6,
                                              .shared_nanoseconds = 2.5e7,
                                              .list_configs = list_configs,
                                              .build = build,
                                              .check = check,
                                              .find_config = find_config};
