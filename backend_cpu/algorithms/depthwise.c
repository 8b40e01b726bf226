/* depthwise.c - the algorithm "depthwise": emit/contraction/depthwise.h for convolutions with constant weights. */
#include <stdio.h>

#include "backend_cpu/algorithms/algorithm.h"
#include "emit/contraction/depthwise.h"
#include "emit/llvm/likely.h"

/* Estimated nanoseconds on one thread: of a vector instruction, and of a byte that is read from or written to the
 * caches. */
static const double instruction_nanoseconds = 0.1, byte_nanoseconds = 0.04;

static const dim_table *dims_of(const cpu_problem *p) { return p->instr->parent->module->dims; }

static bool plan_of(const cpu_problem *p, int64_t vectors, emit_depthwise *d) {
  if (!p->constant_weights || p->lhs < 0 || !emit_depthwise_of(p->instr, d) ||
      !emit_depthwise_choose(dims_of(p), d, p->options.target, vectors, p->options.threads)) {
    return false;
  }
  d->weights = p->weights;
  return true;
}

static double likely_bytes(const cpu_problem *p, const shape *s) {
  return emit_likely_elements(dims_of(p), s) * (double)dtype_bytes((dtype)s->type);
}

static double estimate_of(const cpu_problem *p, const emit_depthwise *d) {
  double work =
      emit_depthwise_size(dims_of(p), d) / (double)d->lanes * emit_depthwise_effort(d) * instruction_nanoseconds;
  double bytes = likely_bytes(p, hlo_shape(p->instr->operands[p->lhs])) + likely_bytes(p, &p->instr->shapes[0]);
  return CPU_CALL_NANOSECONDS + cpu_time_on_threads(work + bytes * byte_nanoseconds, p->options.threads);
}

/* The code for groups of several channels is written for each kernel, unrolled over the channels of a group: LLVM takes
 * about this time for a multiplication. */
static double compile_nanoseconds_of(const emit_depthwise *d) {
  const double multiplication_nanoseconds = 6e4;
  return d->group > 1 ? (double)emit_depthwise_code(d) * multiplication_nanoseconds : 0;
}

static uint32_t list_configs(arena *a, const cpu_problem *p, uint32_t room, cpu_config *out) {
  enum { MOST = 4 };
  uint32_t n = 0;
  emit_depthwise d;
  for (int64_t vectors = 1; vectors <= MOST && n < room; vectors *= 2) {
    if (plan_of(p, vectors, &d)) {
      out[n] = (cpu_config){
          .v = {vectors}, .estimate = estimate_of(p, &d), .compile_nanoseconds = compile_nanoseconds_of(&d)};
      snprintf(out[n].name, sizeof out[n].name, "%dx%d", (int)d.width, (int)(vectors * d.lanes));
      n++;
    }
  }
  (void)a;
  return n;
}

static status pack(const void *packing, const literal *weights, void *packed) {
  emit_depthwise_pack(packing, weights->data, packed);
  return NULL;
}

/* Returns a copy of d with only those members that packing depends on; all others are 0. */
static const emit_depthwise *packing_of(arena *a, const emit_depthwise *d) {
  emit_depthwise *w = ARENA_NEW(a, emit_depthwise);
  *w = (emit_depthwise){
      .type = d->type, .input = d->input, .group = d->group, .channels = d->channels, .taps = {d->taps[0], d->taps[1]}};
  return w;
}

static status build(arena *a, const cpu_problem *p, const cpu_config *v, cpu_plan *out) {
  emit_depthwise *d = ARENA_NEW(a, emit_depthwise);
  CHECK_THAT(plan_of(p, v->v[0], d), STATUS_UNSUPPORTED, "no depthwise convolution");
  out->kernel = ARENA_NEW(a, cpu_kernel_plan);
  emit_depthwise *chosen = ARENA_NEW(a, emit_depthwise);
  emit_depthwise_choose_like(chosen, d);
  *out->kernel = (cpu_kernel_plan){.n_phases = 1,
                                   .write = emit_depthwise_write,
                                   .config = chosen,
                                   .config_bytes = sizeof *chosen,
                                   .packed_bytes = emit_depthwise_packed_bytes(d),
                                   .pack = pack,
                                   .packing = packing_of(a, d),
                                   .packing_bytes = sizeof *d};
  return NULL;
}

const cpu_algorithm cpu_depthwise_algorithm = {.name = "depthwise",
                                               .takes_sizes = true,
                                               .compile_nanoseconds = 5e6,
                                               .sized_nanoseconds = 2.5e6,
                                               .shared_nanoseconds = 1e7,
                                               .list_configs = list_configs,
                                               .build = build};
