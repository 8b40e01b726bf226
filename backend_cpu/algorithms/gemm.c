/* gemm.c - the algorithm "gemm": matrix products in register blocks by generated kernels
 * (emit/product/product.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend_cpu/algorithms/algorithm.h"
#include "emit/product/gemm.h"
#include "emit/product/product.h"
#include "emit/llvm/likely.h"
#include "lower/kernels/dynamic_m.h"

enum { ROWS, VECTORS, LANES }; /* indices of cpu_config.v; a value of 0 leaves the choice to emit_product_choose */

static dim_table *dims_of(const cpu_problem *p) { return p->instr->parent->module->dims; }

/* Returns true if no loop is around the product whose next iteration would find the weights in a cache. */
static bool is_outside_loops(const cpu_problem *p) {
  const hlo_computation *c = p->instr->parent;
  return c == c->module->entry;
}

/* Returns true if a run reads the weights from memory: all weights together are larger than a core's share of caches
 * usually is, so that the next run does not find them there, either. */
static bool weights_in_memory(const cpu_problem *p) {
  const uint64_t caches = 16 << 20;
  return is_outside_loops(p) && p->options.constant_bytes > caches;
}

static bool make(const cpu_problem *p, const cpu_config *v, emit_product *out) {
  emit_product_options options = {.rows = (int)v->v[ROWS],
                                  .vectors = (int)v->v[VECTORS],
                                  .lanes = (int)v->v[LANES],
                                  .threads = p->options.threads,
                                  .cache_bytes = p->options.target->l2_bytes,
                                  .constant_weights = p->constant_weights,
                                  .from_memory = weights_in_memory(p),
                                  /* a ladder's kernel is little code for LLVM if the functions that it calls are
                                   * precompiled */
                                  .ladder = p->options.target->functions != NULL};
  if (!emit_product_of(p->instr, out)) {
    return false;
  }
  emit_product_choose(dims_of(p), out, p->options.target, &options);
  /* A depthwise convolution would use only one lane of each vector. */
  if (out->group.n > 1 && out->columns == 1 && out->lanes > 1) {
    return false;
  }
  if (out->dot && !(p->constant_weights && emit_gemm_has_dots(p->options.target, (dtype)out->dot, (int)out->lanes))) {
    return false;
  }
  if (out->ladder && p->options.target->stack < EMIT_LADDER_STACK) {
    return false;
  }
  dim scratch = emit_product_scratch(dims_of(p), out);
  if (scratch == DIM_OVERFLOW || (scratch && p->options.target->small)) {
    return false;
  }
  return !out->quantized_type || p->constant_weights;
}

/* Returns the estimated nanoseconds.  The time of a large register block is that of its multiplications: two vectors a
 * cycle at about 3 GHz.  The time of a small one is that of its loads, or the latency of its multiplications. */
static double estimate(const cpu_problem *p, const emit_product *g) {
  double sums = (double)(g->tile_rows * g->tile_vectors), loads = (double)(g->tile_rows + g->tile_vectors) / sums;
  dim_table *t = dims_of(p);
  double columns = emit_likely_size(t, g->columns),
         vectors = ceil(columns / (double)g->lanes); /* the last vector may have fewer columns than lanes */
  double padded = p->multiplications / fmax(columns, 1) * (vectors * (double)g->lanes);
  double work = padded / (double)g->lanes * (0.15 * fmax(EMIT_GEMM_LATENCY / sums, 1) + 0.015 * loads);
  work += emit_likely_size(t, emit_product_scratch(t, g)) * 0.1;
  work += g->quantized_type ? padded / (double)g->lanes / (double)g->tile_rows * 0.3 : 0;
  return CPU_CALL_NANOSECONDS * emit_product_phases(g) + cpu_time_on_threads(work, p->options.threads);
}

/* The time of a vector instruction of half the width relative to one of full width: a compromise between processors
 * that split full vectors into halves (0.5) and those that do not (1). */
static const double half_width = 0.62;

static void add_config(const cpu_problem *p, const cpu_config *options, uint32_t *n, cpu_config *out) {
  emit_product g;
  cpu_config v = *options;
  if (!make(p, &v, &g)) {
    return;
  }
  snprintf(v.name, sizeof v.name, options->v[LANES] ? "%dx%d.%d" : "%dx%d", (int)g.tile_rows,
           (int)(g.tile_vectors * g.lanes), (int)g.lanes);
  v.estimate = estimate(p, &g) * (options->v[LANES] ? half_width : 1);
  for (uint32_t k = 0; k < *n; k++) {
    if (strcmp(out[k].name, v.name) == 0) {
      return;
    }
  }
  v.estimate += *n ? 0.05 * v.estimate : 0; /* the first config has the block that emit_product_choose finds best;
                                               others must be clearly better */
  out[(*n)++] = v;
}

/* Returns half of the full number of lanes if the number of columns is a multiple of that, but not of the full number.
 * Otherwise returns 0. */
static int whole_lanes(const cpu_problem *p) {
  enum { FEWEST = 4 };
  emit_product g;
  if (!make(p, &(cpu_config){.v = {0}}, &g) || !dim_is_const(g.columns) || g.columns % g.lanes == 0) {
    return 0;
  }
  int lanes = (int)g.lanes / 2;
  return lanes >= FEWEST && g.columns % lanes == 0 ? lanes : 0;
}

static int registers_of(const cpu_problem *p) {
  emit_product g;
  bool makes = make(p, &(cpu_config){.v = {0}}, &g);
  return emit_gemm_registers(p->options.target, makes ? (dtype)g.dot : DTYPE_INVALID, makes && g.quantized_type);
}

/* Returns true if each weight is read once in a run. */
static bool reads_once(const cpu_problem *p) {
  emit_product g;
  return is_outside_loops(p) && !p->takes_sizes && make(p, &(cpu_config){.v = {0}}, &g) && g.tile_rows == 1;
}

/* Lists configs with different blocks: the block that emit_product_choose finds best; the same in vectors of half the
 * width, if the number of columns is a multiple of the half width but not of the full one; and for larger products some
 * that read B, or A, less often.  If weights are read once, these have blocks of one or two vectors, since memory is
 * read faster in one or two streams than in eight. */
static uint32_t list_configs(arena *a, const cpu_problem *p, uint32_t room, cpu_config *out) {
  uint32_t n = 0;
  (void)a, (void)room;
  add_config(p, &(cpu_config){.v = {0}}, &n, out);
  int lanes = n ? whole_lanes(p) : 0;
  if (lanes) {
    add_config(p, &(cpu_config){.v = {[LANES] = lanes}}, &n, out);
  }
  if (!n || p->multiplications <= CPU_SMALL_CONTRACTION) {
    return n;
  }
  bool once = reads_once(p);
  int registers = registers_of(p);
  for (int vectors = once ? 1 : 2; vectors <= (once ? 2 : 4); vectors++) {
    add_config(p, &(cpu_config){.v = {[ROWS] = (registers - 1 - vectors) / vectors, [VECTORS] = vectors}}, &n, out);
  }
  return n;
}

static status pack(const void *packing, const literal *weights, void *packed) {
  emit_product_pack(packing, weights->data, packed);
  return NULL;
}

/* Returns a copy of g with only those members that packing depends on, so that products with other numbers of rows
 * share packed weights.  Its dims are numbers, since the weights are constant. */
static const emit_product *packing_of(arena *a, const emit_product *g) {
  emit_product *b = ARENA_NEW(a, emit_product);
  b->type = g->type;
  b->quantized_type = g->quantized_type;
  b->dot = g->dot;
  b->dot_offset = g->dot_offset;
  b->dot_step = g->dot_step;
  b->lanes = g->lanes;
  b->columns = g->columns;
  b->b_column = g->b_column;
  b->n_batch = g->n_batch;
  b->n_sums = g->n_sums;
  b->group = (emit_level){.n = g->group.n, .b = g->group.b};
  for (int k = 0; k < EMIT_PRODUCT_LEVELS; k++) {
    b->batch[k] = (emit_level){.n = g->batch[k].n, .b = g->batch[k].b};
    b->sums[k] = (emit_level){.n = g->sums[k].n, .b = g->sums[k].b};
  }
  return b;
}

/* Returns the part of g that the kernel's code depends on besides the instruction. */
static const emit_product *config_of(arena *a, const emit_product *g) {
  emit_product *chosen = ARENA_NEW(a, emit_product);
  emit_product_choose_like(chosen, g);
  return chosen;
}

/* Makes the kernel take any number of rows (dynamic M) if that is possible.  It is not possible if the kernel itself
 * packs panels. */
static void set_call(arena *a, const cpu_problem *p, const emit_product *g, cpu_kernel_plan *kernel) {
  if (p->takes_sizes) {
    return;
  }
  emit_product *code = ARENA_NEW(a, emit_product);
  int64_t *args = ARENA_NEW_N(a, int64_t, EMIT_PRODUCT_ARGS), rows = g->n_rows == 1 ? g->rows[0].n : 0;
  lower_kernel_call call = {.rows = rows, .known = true, .n_args = EMIT_PRODUCT_ARGS, .args = args};
  if (kernel->n_phases == 1 && p->contraction->op == HLO_DOT &&
      emit_product_dynamic_m(dims_of(p), g, code, &call.placeholder_m, &call.info, args) &&
      lower_has_leading_rows(a, p->instr, rows)) {
    kernel->config = config_of(a, code);
    kernel->call = call;
  }
}

static status build(arena *a, const cpu_problem *p, const cpu_config *v, cpu_plan *out) {
  emit_product *g = ARENA_NEW(a, emit_product);
  CHECK_THAT(make(p, v, g), STATUS_UNSUPPORTED, "no product of matrices");
  out->kernel = ARENA_NEW(a, cpu_kernel_plan);
  *out->kernel = (cpu_kernel_plan){.n_phases = emit_product_phases(g),
                                   .write = emit_product_write,
                                   .config = config_of(a, g),
                                   .config_bytes = sizeof *g,
                                   .scratch_bytes = emit_product_scratch(dims_of(p), g)};
  set_call(a, p, g, out->kernel);
  if (g->packing == EMIT_B_PACKED) {
    out->kernel->packed_bytes = emit_product_packed_bytes(g);
    out->kernel->pack = pack;
    out->kernel->packing = packing_of(a, g);
    out->kernel->packing_bytes = sizeof *g;
  }
  out->scratch_bytes = out->kernel->scratch_bytes;
  return NULL;
}

/* Finds blocks that list_configs lists for other numbers of rows, so that the same code can serve these rows too. */
static bool find_config(const cpu_problem *p, const char *name, cpu_config *out) {
  emit_product g;
  int rows, columns, lanes = 0;
  uint32_t n = 0;
  if (sscanf(name, "%dx%d.%d", &rows, &columns, &lanes) < 2 || lanes < 0 ||
      !make(p, &(cpu_config){.v = {[LANES] = lanes}}, &g)) {
    return false;
  }
  int64_t vectors = columns / g.lanes;
  if (rows < 1 || rows > EMIT_PRODUCT_ROWS || vectors < 1 || vectors > EMIT_PRODUCT_VECTORS ||
      emit_gemm_needed_registers(rows, vectors) > registers_of(p)) {
    return false;
  }
  add_config(p, &(cpu_config){.v = {[ROWS] = rows, [VECTORS] = vectors, [LANES] = lanes}}, &n, out);
  return n && strcmp(out->name, name) == 0;
}

const cpu_algorithm cpu_gemm_algorithm = {.name = "gemm",
                                          .takes_sizes = true,
                                          .compile_nanoseconds = 8e6,
                                          .sized_nanoseconds = 2.5e6,
                                          .shared_nanoseconds = 6e7,
                                          .list_configs = list_configs,
                                          .build = build,
                                          .find_config = find_config};
