/* contractions.c - see contractions.h. */
#include "backend_cpu/autotune/contractions.h"

#include <string.h>

#include "backend_cpu/autotune/trial.h"
#include "backend_cpu/runtime/target.h"
#include "base/hash.h"
#include "base/machine/machine.h"
#include "hlo/text/text.h"
#include "lower/kernels/outline.h"
#include "runtime/host/thread_pool.h"

struct cpu_tunables {
  arena *arena;
  const cpu_problem_options *options;
  uint64_t weights_span;
  rt_thread_pool *pool; /* NULL until something is timed */
};

/* the data of an autotune_problem */
typedef struct contraction {
  cpu_problem problem;
  cpu_copies *copies; /* NULL until a trial is built */
} contraction;

/* --- this machine --- */

/* Returns the reported size of the last-level cache, limited to 8 MiB for each core.  A virtual machine reports the
 * cache of the whole computer, of which it has only a part. */
static uint64_t last_cache_bytes(uint64_t told) {
  static const uint64_t a_core = 8 << 20;
  uint64_t most = machine_all_cores() * a_core;
  return told < most ? told : most;
}

/* Returns the total size of the copies of weights that trials read in turn, so that weights come from the same level of
 * the memory hierarchy as when the whole module runs. 0 means that one copy is enough. */
static uint64_t weights_span(uint64_t constants) {
  uint64_t near = machine_cache_bytes(2), far = last_cache_bytes(machine_cache_bytes(3));
  return constants <= near ? 0 : constants <= far / 2 ? 2 * near : 4 * far;
}

static uint64_t hash_string(const char *text, uint64_t seed) { return hash_bytes(text, strlen(text), seed); }

static uint64_t machine_hash(const cpu_tunables *t) {
  uint64_t h = hash_string(PACKAGE_VERSION, 1);
  h = hash_string(machine_processor_name().text, h);
  h = hash_string(emit_target_text(t->arena, t->options->target), h);
  h = hash_string(t->options->own_kernels ? "" : cpu_library_of_build(), h);
  h = hash_mix(h, t->options->threads);
  h = hash_mix(h, t->options->numerics.exact);
  h = hash_mix(h, t->options->numerics.reduced_precision);
  return hash_mix(h, t->weights_span);
}

static status can_run(void *data) {
  const cpu_tunables *t = data;
  return cpu_target.check_cpu(NULL, emit_target_text(t->arena, t->options->target));
}

/* --- problems --- */

/* Returns a description of the problem for messages, such as "convolution f32[1,56,56,64] f32[64,64,3,3] add maximum,
 * constant weights; 8 threads".  `rows` is the text to print for the shape of the first operand. */
static const char *describe(arena *a, const cpu_problem *p, const char *rows) {
  const hlo_instr *c = p->contraction;
  const char *text = arena_printf(a, "%s %s %s", hlo_info(c)->name, rows, SHAPE_STR(NULL, hlo_shape(c->operands[1])));
  for (const hlo_instr *i = p->instr == c ? NULL : c->next; i; i = i->next) {
    text = arena_printf(a, "%s %s", text, hlo_info(i)->name);
  }
  return arena_printf(a, "%s%s; %u threads", text, p->constant_weights ? ", constant weights" : "", p->options.threads);
}

/* Returns a text that is equal for problems that differ only in the number of rows, in the number of images or in the
 * image size.  A new shape can then use the config of such a similar problem, whose weights are already packed.
 * Problems with one row are similar only to each other.  Returns NULL if no problem counts as similar: the weights are
 * computed, or precision may be reduced. */
static const char *similar(arena *a, const cpu_problem *p) {
  const shape *x = hlo_shape(p->contraction->operands[0]);
  int64_t longest = 1;
  for (int d = 0; d < x->rank; d++) {
    longest = x->dims[d] > longest ? x->dims[d] : longest;
  }
  const char *count = shape_elements(x) == longest ? "one" : "any";
  const char *rows = arena_printf(a, "%s %d %s", dtype_name((dtype)x->type), x->rank, count);
  const hlo_instr *c = p->contraction;
  for (uint32_t k = 0; c->op == HLO_CONVOLUTION && k < hlo_n_ints(c, HLO_ATTR_STRIDES); k++) {
    rows = arena_printf(a, "%s/%d", rows, (int)hlo_ints(c, HLO_ATTR_STRIDES)[k]);
  }
  return p->constant_weights && !p->options.numerics.reduced_precision ? describe(a, p, rows) : NULL;
}

/* Sets out->identity to bytes that contain the text of the instruction alone, a flag for each operand that says whether
 * it is a constant, and the names of the configs.  The names are a part of it, so that a problem for which there are
 * new configs is timed again. */
static status identify(arena *a, const cpu_problem *p, autotune_problem *out) {
  const hlo_print_options options = {.no_sources = true};
  lower_outline_symbols none = {0}; /* only problems whose sizes are constants are timed */
  const hlo_instr *alone = lower_outline(a, p->instr, LOWER_OUTLINE_KERNEL, p->weights, &none);
  const char *text;
  rt_writer w = {.arena = a};
  TRY(hlo_print(a, alone->parent->module, &options, &text, NULL));
  rt_put_text(&w, text);
  for (uint32_t k = 0; k < p->instr->n_operands; k++) {
    rt_put_i64(&w, hlo_literal(p->instr->operands[k]) != NULL);
  }
  for (uint32_t k = 0; k < out->n_configs; k++) {
    rt_put_text(&w, out->configs[k].name);
  }
  out->identity = rt_written(&w);
  return NULL;
}

static autotune_config tunable(const cpu_tunables *t, arena *a, const cpu_config *c) {
  const cpu_algorithm *x = c->algorithm;
  double compile = c->compile_nanoseconds > 0 ? c->compile_nanoseconds : x->compile_nanoseconds;
  return (autotune_config){.name = cpu_config_name(a, c),
                           .estimate = c->estimate,
                           .build = x->library_nanoseconds + compile / t->options->threads,
                           .bytes = c->bytes,
                           .idle = c->idle};
}

static status list_configs(void *data, arena *a, const hlo_instr *i, autotune_problem *out) {
  const cpu_tunables *t = data;
  cpu_problem p;
  cpu_config *configs;
  *out = (autotune_problem){0};
  /* A problem whose sizes are not constants gets no configs to time, since times for some sizes tell too little about
   * other sizes: estimates choose its config. */
  if (!cpu_problem_of(i, t->options, &p) || p.takes_sizes) {
    return NULL;
  }
  out->n_configs = cpu_list_configs(a, &p, &configs);
  out->configs = ARENA_NEW_N(a, autotune_config, out->n_configs);
  for (uint32_t k = 0; k < out->n_configs; k++) {
    out->configs[k] = tunable(t, a, &configs[k]);
  }
  contraction *c = out->data = ARENA_NEW(a, contraction);
  c->problem = p;
  out->what = describe(a, &p, SHAPE_STR(NULL, hlo_shape(p.contraction->operands[0])));
  out->similar = similar(a, &p);
  return identify(a, &p, out);
}

static bool find_config(void *data, arena *a, const autotune_problem *p, const char *name, autotune_config *out) {
  cpu_config found;
  if (!cpu_find_config(a, &((const contraction *)p->data)->problem, name, &found)) {
    return false;
  }
  *out = tunable(data, a, &found);
  return true;
}

/* --- trials --- */

static status build(void *data, arena *shared, const autotune_problem *p, const char *config, autotune_trial **out) {
  cpu_tunables *t = data;
  contraction *c = p->data;
  if (!t->pool) {
    TRY(rt_thread_pool_create(t->options->threads, &t->pool));
  }
  c->copies = c->copies ? c->copies : cpu_copies_create(shared);
  return cpu_trial_create(&c->problem, config, t->pool, c->copies, t->weights_span, arena_budget(t->arena), out);
}

cpu_tunables *cpu_tunables_create(arena *a, const cpu_problem_options *options, autotune_backend *out) {
  cpu_tunables *t = ARENA_NEW(a, cpu_tunables);
  *t = (cpu_tunables){.arena = a, .options = options, .weights_span = weights_span(options->constant_bytes)};
  *out = (autotune_backend){.data = t,
                            .machine = machine_hash(t),
                            .threads = options->threads,
                            .list_configs = list_configs,
                            .find_config = find_config,
                            .can_run = can_run,
                            .build = build,
                            .run = cpu_trial_run,
                            .destroy = cpu_trial_destroy};
  return t;
}

void cpu_tunables_destroy(cpu_tunables *t) {
  if (t->pool) {
    rt_thread_pool_destroy(t->pool);
  }
}
