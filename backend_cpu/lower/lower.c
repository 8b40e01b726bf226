/* lower.c - the thunks of each instruction; see lower.h. */
#include "backend_cpu/lower/lower.h"

#include <string.h>

#include "backend_cpu/lower/special.h"
#include "emit/kernel/special.h"
#include "backend_cpu/runtime/kinds.h"
#include "hlo/analysis/cost.h"
#include "lower/kernels/dynamic_m.h"
#include "lower/kernels/special.h"
#include "lower/kernels/thunks.h"
#include "lower/lower.h"
#include "runtime/program/weight_pool.h"

typedef struct lowering {
  arena *arena;
  lower_kernels *kernels;
  const cpu_lower_options *options;
} lowering;

static const cpu_library_plan *library_plan_of(const lowering *l, const hlo_instr *i) {
  const cpu_plan *plan = cpu_plan_of(l->options->plans, i);
  return plan ? plan->library : NULL;
}

static bool is_attention(const hlo_instr *i) {
  return i->op == HLO_FUSION && hlo_int(i, HLO_ATTR_FUSION) == HLO_FUSION_ATTENTION;
}

/* --- the rules for buffers --- */

/* Returns true if the library call reads v only as its residual, which it reads from the result's buffer.  Other
 * operands cannot share that buffer, since the call reads them while it writes the result. */
static bool is_only_residual(const cpu_library_plan *p, hlo_value v) {
  bool only = p->sum.def && hlo_value_equal(p->sum, v) && !hlo_value_equal(p->lhs, v) &&
              !hlo_value_equal(p->weights, v) && !(p->bias.def && hlo_value_equal(p->bias, v));
  for (uint32_t k = 0; only && k < cpu_contraction_arrays(&p->c); k++) {
    only = !hlo_value_equal(p->arrays[k], v);
  }
  return only;
}

static hlo_access access_of(void *data, const hlo_instr *i) {
  (void)data;
  bool again = is_attention(i); /* the last two tiles overlap, and their common rows are computed twice */
  bool any_order = i->op == HLO_SORT || i->op == HLO_NMS || i->op == HLO_COPY || lower_is_concat_of_many(i);
  return again || any_order ? HLO_READS_WHILE_WRITING : HLO_READS_ROW_FIRST;
}

static bool may_share(void *data, const hlo_instr *i, uint32_t operand, uint32_t result) {
  const cpu_library_plan *p = library_plan_of(data, i);
  if (p) {
    return is_only_residual(p, i->operands[operand]);
  }
  return access_of(data, i) != HLO_READS_WHILE_WRITING && emit_can_alias(i, operand, result);
}

static bool reads_any_address(void *data, const hlo_instr *i) {
  const lowering *l = data;
  return l->options->target->unaligned && !cpu_plan_of(l->options->plans, i) && !emit_is_special(i);
}

/* --- kernels --- */

static dim scratch(void *data, const hlo_instr *i) {
  const lowering *l = data;
  if (emit_is_special(i)) {
    return cpu_special_scratch(l->options, i);
  }
  const cpu_plan *plan = cpu_plan_of(l->options->plans, i);
  return plan ? plan->scratch_bytes : 0;
}

/* Fails for a contraction that takes sizes as arguments and would be computed by plain loops, if it is large for likely
 * sizes.  A program for one set of sizes, which has better algorithms, is then faster even if it must be compiled
 * first. */
static status check_loop(const hlo_instr *i) {
  const double large = 2e7; /* multiplications; a plain loop does about 1e9 of them in a second */
  const hlo_instr *contraction = emit_takes_sizes(i) ? cpu_find_contraction(i) : NULL;
  CHECK_THAT(!contraction || cpu_multiplications(contraction) < large, STATUS_UNSUPPORTED,
             "no fast kernel for %s takes sizes as arguments", hlo_info(i)->name);
  return NULL;
}

static status emit_kernel_thunk(lowering *l, lower_context *c, const hlo_instr *i) {
  const char *why = "";
  CHECK_THAT(emit_supports(i, &why), STATUS_UNSUPPORTED, "no kernel for %s: %s", hlo_info(i)->name, why);
  TRY(check_loop(i));
  enum { PLACEHOLDER_M = 17 }; /* a prime, so that lower_kernels_attach notices a grid that does not count rows */
  lower_bring_base(c, i);
  int64_t rows = emit_takes_sizes(i) ? 0 : lower_dynamic_m(l->arena, i, l->options->target);
  lower_kernel_call call = {.rows = rows, .placeholder_m = PLACEHOLDER_M};
  rt_thunk *t = lower_kernel_thunk(c, l->kernels, i);
  return lower_add_kernel(c, l->kernels, t, i, NULL, call.rows ? &call : NULL);
}

/* --- contractions --- */

/* Packs weights with the library, which reads them from aligned memory.  They are copied if their address in a model
 * file is not aligned. */
static status pack_by_library(const lowering *l, const cpu_call *call, const literal *given, void *packed) {
  size_t bytes = (size_t)shape_bytes(&given->shape);
  if (literal_is_aligned(given)) {
    return cpu_call_pack(call, given->data, packed);
  }
  void *copy = budget_alloc(arena_budget(l->arena), bytes, 64);
  CHECK_THAT(copy, STATUS_RESOURCE, "no %zu bytes of memory for weights", bytes);
  status failed = cpu_call_pack(call, memcpy(copy, given->data, bytes), packed);
  budget_free(arena_budget(l->arena), copy, bytes, 64);
  return failed;
}

/* Sets *out to memory for packed weights.  If another program of the session has packed the same weights in the same
 * way, *out is the memory with those, and *fresh is false; otherwise the caller must fill it.  `how` identifies the
 * packing. */
static status packed_memory(const lowering *l, const literal *plain, rt_span how, uint64_t bytes, void **out,
                            bool *fresh) {
  const rt_sharing *sharing = l->options->sharing;
  *fresh = true;
  if (!sharing) {
    *out = arena_alloc_aligned(l->arena, bytes, 64);
    return NULL;
  }
  rt_writer name = {.arena = l->arena};
  rt_put_text(&name, "packed");
  rt_weight_pool_put_name(&name, sharing, plain->data, (uint64_t)shape_bytes(&plain->shape));
  rt_put_bytes(&name, how.data, how.size);
  *out = rt_weight_pool_get(sharing->weight_pool, rt_written(&name), bytes, fresh);
  CHECK_THAT(*out, STATUS_RESOURCE, "no %llu bytes of memory for weights", (unsigned long long)bytes);
  return NULL;
}

/* A job that packs weights, with the library or with the kernel plan's own function. */
typedef struct packing {
  const lowering *lowering;
  const literal *given;
  const cpu_call *call;
  const cpu_kernel_plan *kernel; /* used if call is NULL */
  void *packed;
} packing;

static status pack(void *data) {
  const packing *p = data;
  const rt_sharing *sharing = p->lowering->options->sharing;
  status failed = p->call ? pack_by_library(p->lowering, p->call, p->given, p->packed)
                          : p->kernel->pack(p->kernel->packing, p->given, p->packed);
  if (sharing && sharing->drop) {
    sharing->drop(sharing->owner, p->given->data, (uint64_t)shape_bytes(&p->given->shape));
  }
  return failed;
}

static void pack_later(lowering *l, packing p) {
  const double byte_nanoseconds = 0.3;
  p.lowering = l;
  double cost = byte_nanoseconds * (double)shape_bytes(&p.given->shape);
  lower_jobs_add(l->options->jobs, cost, pack, arena_memdup(l->arena, &p, sizeof p));
}

/* Returns bytes that identify how the library packs weights: equal bytes mean that equal weights are packed alike. */
static rt_span library_packing(const lowering *l, const cpu_library_plan *p) {
  cpu_geometry g = p->c.g;
  rt_writer w = {.arena = l->arena};
  /* if columns are divided, each part is packed by itself */
  g.parts = cpu_contraction_axis(&p->c) == 2 && g.op == CPU_MATMUL ? g.parts : 1;
  g.m = g.m == 1;
  g.batch = g.has_bias = g.result_type = g.lhs_batch_stride = g.lhs_m = g.lhs_k = 0;
  memset(g.in, 0, sizeof g.in);
  memset(g.out, 0, sizeof g.out);
  rt_put_text(&w, cpu_library_name());
  rt_put_bytes(&w, p->info.format.data, p->info.format.size);
  rt_put_bytes(&w, &g, sizeof g);
  return rt_written(&w);
}

static status add_weights(lowering *l, lower_context *c, rt_thunk *t, const cpu_library_plan *p) {
  if (!p->c.g.packed) {
    lower_add_buffer(c, t, lower_buffer(c, p->weights));
    return NULL;
  }
  const literal *given = hlo_literal(p->weights);
  void *packed;
  bool fresh;
  TRY(packed_memory(l, given, library_packing(l, p), p->info.weights_bytes, &packed, &fresh));
  if (fresh) {
    pack_later(l, (packing){.given = given, .call = p->call, .packed = packed});
  }
  shape bytes = shape_make(DTYPE_U8, 1, (dim[]){(dim)p->info.weights_bytes});
  uint32_t number = lower_constant(c, packed, p->info.weights_bytes);
  lower_add_buffer(c, t, lower_constant_buffer(c, number, &bytes));
  return NULL;
}

/* Records the plan's config and the reason for it in the thunk, unless there was no choice. */
static void note_plan(lower_context *c, rt_thunk *t, const cpu_plan *plan) {
  if (!plan->config.algorithm) {
    return;
  }
  lower_note(c, t, "%s, %s", cpu_config_name(lower_arena(c), &plan->config), plan->why);
}

static status emit_contraction(lowering *l, lower_context *c, const hlo_instr *i, const cpu_plan *plan) {
  const cpu_library_plan *p = plan->library;
  rt_buffer result = lower_buffer(c, hlo_result((hlo_instr *)i, 0));
  if (p->sum.def) {
    result.kept = true;
    rt_buffer sum = lower_buffer(c, p->sum);
    if (!lower_same_buffer(&sum, &result)) {
      lower_copy_buffer(c, i, sum, result);
    }
  }
  rt_thunk *whole = lower_bare_thunk(c, p->c.g.op == CPU_MATMUL ? "cpu.dot" : "cpu.convolution", i);
  rt_buffer scratch_memory;
  lower_note(c, whole, "%s %s%s, %d part(s)", cpu_library_is_blas() ? "OpenBLAS" : "oneDNN",
             p->info.implementation ? p->info.implementation : "", p->c.g.packed ? ", weights packed" : "",
             (int)p->c.g.parts);
  note_plan(c, whole, plan);
  lower_add_buffer(c, whole, lower_buffer(c, p->lhs));
  TRY(add_weights(l, c, whole, p));
  if (p->bias.def) {
    lower_add_buffer(c, whole, lower_buffer(c, p->bias));
  }
  for (uint32_t k = 0; k < cpu_contraction_arrays(&p->c); k++) {
    lower_add_buffer(c, whole, lower_buffer(c, p->arrays[k]));
  }
  whole->n_inputs = whole->n_buffers;
  lower_add_buffer(c, whole, result);
  if (lower_scratch(c, i, &scratch_memory)) {
    lower_add_buffer(c, whole, scratch_memory);
  }
  rt_writer w = {.arena = l->arena};
  cpu_contraction_write(&w, &p->c);
  rt_put_text(&w, cpu_library_name());
  rt_put_bytes(&w, p->info.format.data, p->info.format.size);
  whole->config = rt_written(&w);
  return NULL;
}

/* Makes a constant of the program that holds operand number `operand` as packed weights. */
static status pack_weights(lowering *l, lower_context *c, const hlo_instr *i, uint32_t operand, const cpu_plan *plan,
                           rt_buffer *out) {
  const cpu_kernel_plan *kernel = plan->kernel;
  const literal *given = hlo_literal(i->operands[operand]);
  rt_writer how = {.arena = l->arena};
  void *packed;
  bool fresh;
  rt_put_text(&how, plan->config.algorithm->name);
  rt_put_i64(&how, given->shape.type);
  rt_put_i64s(&how, given->shape.rank, given->shape.dims);
  rt_put_bytes(&how, kernel->packing, kernel->packing_bytes);
  TRY(packed_memory(l, given, rt_written(&how), kernel->packed_bytes, &packed, &fresh));
  if (fresh) {
    pack_later(l, (packing){.given = given, .kernel = kernel, .packed = packed});
  }
  shape bytes = shape_make(DTYPE_U8, 1, (dim[]){(dim)kernel->packed_bytes});
  *out = lower_constant_buffer(c, lower_constant(c, packed, kernel->packed_bytes), &bytes);
  return NULL;
}

/* Returns what writes a phase of the plan's kernel; `packed` is as in lower_kernel_writer. */
static lower_kernel_writer writer_of(const cpu_plan *plan, const hlo_instr *i, uint32_t phase, int32_t packed) {
  const cpu_algorithm *algorithm = plan->config.algorithm;
  const cpu_kernel_plan *kernel = plan->kernel;
  bool sized = algorithm && emit_takes_sizes(i);
  double nanoseconds = sized ? algorithm->sized_nanoseconds : algorithm ? algorithm->compile_nanoseconds : 0;
  nanoseconds = plan->config.compile_nanoseconds > 0 ? plan->config.compile_nanoseconds : nanoseconds;
  return (lower_kernel_writer){.write = kernel->write,
                               .name = algorithm ? algorithm->name : "attention",
                               .config = kernel->config,
                               .config_bytes = kernel->config_bytes,
                               .phase = phase,
                               .packed = packed,
                               .nanoseconds = nanoseconds / kernel->n_phases,
                               .shared_nanoseconds = sized ? algorithm->shared_nanoseconds : 0};
}

static status emit_own(lowering *l, lower_context *c, const hlo_instr *i, const cpu_plan *plan) {
  const cpu_kernel_plan *kernel = plan->kernel;
  int32_t packed = kernel->packed_bytes ? plan->weights : -1;
  rt_buffer weights = {0};
  if (packed >= 0) {
    TRY(pack_weights(l, c, i, (uint32_t)packed, plan, &weights));
  }
  lower_bring_base(c, i);
  for (uint32_t phase = 0; phase < kernel->n_phases; phase++) {
    rt_thunk *t = lower_kernel_thunk_replacing(c, l->kernels, i, packed < 0 ? UINT32_MAX : (uint32_t)packed, weights);
    for (uint32_t k = t->n_inputs; k < t->n_buffers; k++) {
      t->buffers[k].kept = phase > 0; /* the instruction's earlier kernels wrote into this buffer */
    }
    if (kernel->n_phases > 1) {
      lower_note(c, t, "step %u of %u", phase + 1, kernel->n_phases);
    }
    note_plan(c, t, plan);
    lower_kernel_writer writer = writer_of(plan, i, phase, packed);
    TRY(lower_add_kernel(c, l->kernels, t, i, &writer, &kernel->call));
  }
  return NULL;
}

/* --- instructions --- */

static status emit(lower_context *c, const hlo_instr *i) {
  lowering *l = lower_data(c);
  bool done;
  TRY(lower_without_kernel(c, i, "cpu", &done));
  if (done) {
    return NULL;
  }
  const cpu_plan *plan = cpu_plan_of(l->options->plans, i);
  if (plan) {
    return plan->library ? emit_contraction(l, c, i, plan) : emit_own(l, c, i, plan);
  }
  return emit_is_special(i) ? cpu_lower_special(c, l->options, l->kernels, i) : emit_kernel_thunk(l, c, i);
}

/* Estimates the time of an instruction.  It assumes multiply-adds near their peak, memory accesses at the speed of the
 * second-level cache, and as many threads as lower_kernels_attach allows. */
static lower_time time_of(void *data, const hlo_instr *i) {
  const lowering *l = data;
  const double least = 300, byte = 0.015, vector = 0.2;
  hlo_cost cost = hlo_cost_of(i);
  double serial = least + vector / l->options->target->lanes * (double)cost.operations + byte * (double)cost.bytes;
  double ranges = serial / LOWER_RANGE_NANOSECONDS,
         threads = ranges < l->options->threads ? ranges : l->options->threads;
  bool none = i->op == HLO_CUSTOM_CALL || i->op == HLO_EMPTY;
  return none ? (lower_time){-1, -1}
              : (lower_time){serial, threads < 2 ? serial : serial / threads + LOWER_FORK_NANOSECONDS};
}

static void later(void *data, double nanoseconds, status (*run)(void *data), void *run_data) {
  lower_jobs_add(((lowering *)data)->options->jobs, nanoseconds, run, run_data);
}

status cpu_lower(hlo_module *m, lower_kernels *kernels, const cpu_lower_options *options, arena *a, size_table *sizes,
                 rt_program **out, rt_report *report) {
  lowering *l = ARENA_NEW(a, lowering); /* on the arena, since jobs that pack weights use it after this function has
                                           returned */
  *l = (lowering){.arena = a, .kernels = kernels, .options = options};
  lower_backend backend = {.target = "cpu",
                           .takes_symbols = true,
                           .emit = emit,
                           .may_share = may_share,
                           .access = access_of,
                           .reads_any_address = reads_any_address,
                           .is_view = lower_is_view,
                           .scratch = scratch,
                           .time = time_of,
                           .threads = options->threads,
                           .later = later,
                           .out_of_place = options->out_of_place,
                           .origins = options->origins,
                           .keep_text = options->keep_text,
                           .sharing = options->sharing,
                           .data = l};
  return lower_program(m, &backend, a, sizes, out, report);
}
