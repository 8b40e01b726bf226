/* target.c - the GPU targets' pipeline of passes, and the steps from a module to a program. */
#include "backend_gpu/compile/target.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "backend_gpu/algorithms/config.h"
#include "backend_gpu/lower/lower.h"
#include "backend_gpu/runtime/cuda.h"
#include "backend_gpu/runtime/target.h"
#include "base/clock.h"
#include "emit/blocks/block_attention.h"
#include "emit/kernel/kernel.h"
#include "emit/llvm/likely.h"
#include "emit/llvm/target.h"
#include "hlo/analysis/quantized.h"
#include "hlo/analysis/queries.h"
#include "hlo/passes/pass.h"
#include "hlo/schedule/hlo_report.h"
#include "lower/kernels/report.h"
#include "lower/kernels/thunks.h"
#include "runtime/program/code_bundle.h"

/* --- the pipeline --- */

static const hlo_pass cleaning[] = {HLO_STEP(fold), HLO_STEP(simplify), HLO_STEP(transpose_sinking), HLO_STEP(cse),
                                    HLO_STEP(dce)};

static const hlo_pass pipeline[] = {
    HLO_STEP(qdq_fusion),
    HLO_NEEDED_STEP(inline_composites),
    HLO_STEP(gather_to_slice),
    HLO_STEP(dce),
    HLO_GROUP("clean", cleaning),
    HLO_STEP(batch_norm),
    HLO_STEP(dce),
    HLO_STEP(gather_to_broadcast),
    HLO_STEP(dce),
    HLO_STEP(dot_merger),
    HLO_STEP(dce),
    HLO_STEP(attention),
    HLO_STEP(epilogue),
    HLO_STEP(row_fusion),
    HLO_STEP(reduce_fusion),
    HLO_STEP(loop_fusion),
    HLO_STEP(dce),
    HLO_STEP(lift_scalars),
    HLO_NEEDED_STEP(assign_kernels),
};

/* The passes for a module that `pipeline` has prepared already (hlo_module.kernels_assigned). */
static const hlo_pass after_pipeline[] = {HLO_NEEDED_STEP(assign_kernels)};

/* What the functions of hlo_target need. */
typedef struct pass_data {
  const rt_compile_options *options;
  const emit_target *target;
  rt_report *report;
} pass_data;

/* Chooses a config for each contraction and attention that has none: the first, or the one that the options ask for. */
static status assign_kernels(void *data, hlo_module *m) {
  const pass_data *p = data;
  const gpu_config_options o = {p->target, p->options->numerics};
  uint32_t n, number = p->options->algorithm ? p->options->algorithm - 1 : 0;
  hlo_computation **walked = hlo_walked(m, m->arena, false, &n);
  for (uint32_t c = 0; c < n; c++) {
    for (hlo_instr *i = walked[c]->first; i; i = i->next) {
      gpu_config configs[GPU_MOST_CONFIGS];
      uint32_t found = *i->config ? 0 : gpu_list_configs(&o, i, configs);
      i->config = number < found ? arena_strdup(m->arena, configs[number].name) : i->config;
      p->report->n_algorithms = found > p->report->n_algorithms ? found : p->report->n_algorithms;
    }
  }
  return NULL;
}

static bool takes_fused(void *data, hlo_fusion_kind kind, const hlo_instr *i) {
  (void)data;
  return emit_supports_fused(kind, i);
}

/* Everything that is computed element by element can follow a product in the same kernel. */
static bool takes_epilogue(void *data, const hlo_instr *contraction, const hlo_instr *consumer, uint32_t operand) {
  (void)data, (void)operand;
  return emit_takes_tiles(contraction) && emit_supports_fused(HLO_FUSION_OUTPUT, consumer);
}

static bool takes_activation(void *data, const hlo_instr *contraction, const hlo_instr *x, const hlo_activation *a) {
  (void)data, (void)x, (void)a;
  return emit_takes_tiles(contraction);
}

/* Bytes are multiplied only by tensor cores, since other kernels take as long for bytes as for f32. */
static bool takes_narrow_operands(void *data, const hlo_instr *contraction, dtype lhs) {
  const pass_data *p = data;
  emit_mma_tile tile;
  bool is_exact = contraction->shapes[0].type == DTYPE_S32;
  bool bytes = lhs != DTYPE_S16; /* signed and unsigned bytes are taken alike */
  return bytes && p->target->mma && (is_exact || !p->options->numerics.exact) && emit_takes_tiles(contraction) &&
         emit_choose_mma_tile(contraction, true, &tile);
}

/* The kernel for few rows (emit/kernel/team.h) dequantises weights while it reads them, so that only small integers are
 * read from memory.  With more rows, every weight would be dequantised many times. */
static bool takes_quantized_weights(void *data, const hlo_instr *dot) {
  enum { MOST_ROWS = 8, LEAST_WEIGHTS = 1 << 18 };
  hlo_quantized_weights w;
  (void)data;
  return hlo_quantized_weights_of(dot, &w) && (double)w.sums * (double)w.columns >= LEAST_WEIGHTS &&
         emit_likely_elements(dot->parent->module->dims, &dot->shapes[0]) <= (double)(MOST_ROWS * w.columns);
}

/* With exact numerics no kernel takes an attention, since these kernels round differently from plain loops: when a tile
 * has a larger score than the tiles before, earlier sums are multiplied by a factor. */
static bool takes_attention(void *data, const hlo_attention *a) {
  const pass_data *p = data;
  emit_block_attention c;
  return !p->options->numerics.exact && emit_choose_block_attention(a, false, &c);
}

static status dump(void *data, const char *file, const hlo_module *m) {
  const rt_compile_options *o = data;
  return o->dump(o->dump_data, file, m);
}

/* The largest result of constant folding in bytes, as for the cpu target: enough for the weights of a layer */
static const int64_t fold_bytes = (int64_t)1 << 28;

static status prepare(hlo_module *m, pass_data *data, arena *a) {
  const rt_compile_options *o = data->options;
  const hlo_target target = {.name = "gpu",
                             .data = data,
                             .takes_narrow_operands = takes_narrow_operands,
                             .takes_epilogue = takes_epilogue,
                             .takes_activation = takes_activation,
                             .takes_quantized_weights = takes_quantized_weights,
                             .takes_attention = takes_attention,
                             .takes_fused = takes_fused,
                             .assign_kernels = assign_kernels,
                             .merges_dots = true,
                             .merges_moves = true};
  pass_context c = {.arena = a,
                    .eval = o->eval,
                    .fold_bytes = fold_bytes,
                    .target = &target,
                    .skip = o->skip_passes,
                    .verify = true,
                    .dump = o->dump ? dump : NULL,
                    .dump_data = (void *)o};
  return m->kernels_assigned ? hlo_run_passes(m, after_pipeline, sizeof after_pipeline / sizeof *after_pipeline, &c)
                             : hlo_run_passes(m, pipeline, sizeof pipeline / sizeof *pipeline, &c);
}

/* --- compiling a module --- */

/* The state of a compilation. */
typedef struct compilation {
  rt_compile_options *options; /* on the arena, since jobs use them */
  arena *arena;
  const char *name; /* the name of the rt_target */
  emit_target target;
  uint32_t n_more; /* further architectures, for which the same kernels are compiled */
  emit_target *more;
  rt_report *report;
  lower_kernels *kernels;
  lower_jobs *jobs;
  size_table sizes;
  rt_program *program;
  double start; /* when the last step ended */
} compilation;

static status run_passes(compilation *c, hlo_module *m) {
  hlo_report before = hlo_report_of(m);
  pass_data data = {c->options, &c->target, c->report};
  TRY(prepare(m, &data, c->arena));
  lower_report_module(m, &before, c->report);
  c->report->seconds_passes = clock_lap(&c->start);
  return NULL;
}

static status lower_module(compilation *c, hlo_module *m) {
  const rt_compile_options *o = c->options;
  bool shares = o->sharing && !o->keep_text;
  c->kernels = lower_kernels_create(c->arena, &c->target, "gpu.kernel", shares ? o->sharing->weight_pool : NULL);
  lower_kernels_add_targets(c->kernels, c->n_more, c->more);
  c->jobs = lower_jobs_create(c->arena);
  gpu_lower_options *lower = ARENA_NEW(c->arena, gpu_lower_options); /* the jobs use it, too */
  *lower = (gpu_lower_options){.target = c->name,
                               .configs = {&c->target, o->numerics},
                               .keep_text = o->keep_text,
                               .out_of_place = o->out_of_place,
                               .sharing = o->sharing,
                               .origins = o->origins,
                               .jobs = c->jobs};
  TRY(gpu_lower(m, c->kernels, lower, c->arena, &c->sizes, &c->program, c->report));
  c->report->seconds_lower = clock_lap(&c->start);
  return o->dump ? o->dump(o->dump_data, "machine code", m) : NULL;
}

static const char *machines_text(const compilation *c) {
  const char *text = emit_target_text(c->arena, &c->target);
  for (uint32_t k = 0; k < c->n_more; k++) {
    text = arena_printf(c->arena, "%s" RT_CPU_SEPARATOR "%s", text, emit_target_text(c->arena, &c->more[k]));
  }
  return text;
}

static status compile_kernels(compilation *c) {
  const rt_compile_options *o = c->options;
  lower_object_code code;
  TRY(lower_kernels_compile(c->kernels, c->jobs, lower_shares_of(o), o->threads, &code));
  TRY(lower_kernels_attach_program(&c->sizes, c->kernels, &code));
  TRY(o->keep_text ? lower_report_texts(c->kernels, c->report) : NULL);
  c->program->cpu = code.n ? machines_text(c) : "";
  c->report->seconds_codegen = clock_lap(&c->start);
  lower_report_program(c->program, c->kernels, c->report);
  return NULL;
}

static status compile_for(compilation *c, hlo_module *m, rt_program **out) {
  c->start = clock_seconds();
  TRY(run_passes(c, m));
  TRY(lower_module(c, m));
  TRY(compile_kernels(c));
  *out = c->program;
  return NULL;
}

static compilation begin(const rt_compile_options *given, arena *a, const char *name, rt_report *report) {
  rt_compile_options *own = ARENA_NEW(a, rt_compile_options);
  *own = given ? *given : (rt_compile_options){.threads = 1};
  return (compilation){.options = own, .arena = a, .name = name, .report = report ? report : ARENA_NEW(a, rt_report)};
}

static status compile_host(struct hlo_module *m, const rt_compile_options *options, arena *a, rt_program **out,
                           rt_report *report) {
  compilation c = begin(options, a, GPU_HOST_TARGET_NAME, report);
  bool checked = c.options->cpu && strcmp(c.options->cpu, "checked") == 0;
  CHECK_THAT(checked || !c.options->cpu || strcmp(c.options->cpu, "native") == 0, STATUS_INVALID_ARGUMENT,
             "unknown CPU '%s'; the emulator knows native, and checked, which finds data races", c.options->cpu);
  TRY(emit_target_blocks_host(a, &c.target));
  c.target.tells_accesses = checked;
  return compile_for(&c, m, out);
}

/* Sets *out to the names of the architectures to compile for: those in the options, otherwise that of the first GPU.
 * The name "host" means code for this processor, which only a driver that emulates a GPU can load. */
static status choose_architectures(const rt_compile_options *o, arena *a, const char **out) {
  gpu_cuda_info info;
  *out = o->cpu;
  if (!o->cpu) {
    TRY(status_prefix(gpu_cuda_describe(0, &info), "--cpu=sm_80, for instance, compiles for a GPU that is not here"));
    TRY(gpu_cuda_check_capability(0, info.capability));
    *out = arena_strdup(a, info.architecture);
  }
  return NULL;
}

static status check_is_new(const compilation *c, const char *architecture) {
  bool known = strcmp(c->target.cpu, architecture) == 0;
  for (uint32_t k = 0; k < c->n_more; k++) {
    known = known || strcmp(c->more[k].cpu, architecture) == 0;
  }
  CHECK_THAT(!known, STATUS_INVALID_ARGUMENT, "%s is named twice", architecture);
  return NULL;
}

/* Sets the targets from a list like "sm_80,sm_90a".  The kernels are the same for all targets, so they use only what
 * all of them have. */
static status read_architectures(compilation *c, char *names) {
  c->more = ARENA_NEW_N(c->arena, emit_target, strlen(names));
  TRY(emit_target_nvptx(c->arena, strsep(&names, ","), &c->target));
  for (const char *name; (name = strsep(&names, ",")) != NULL;) {
    TRY(check_is_new(c, name));
    TRY(emit_target_nvptx(c->arena, name, &c->more[c->n_more]));
    c->target.mma = c->target.mma && c->more[c->n_more].mma;
    c->n_more++;
  }
  for (uint32_t k = 0; k < c->n_more; k++) {
    c->more[k].mma = c->target.mma;
  }
  return NULL;
}

static status compile(struct hlo_module *m, const rt_compile_options *options, arena *a, rt_program **out,
                      rt_report *report) {
  compilation c = begin(options, a, GPU_TARGET_NAME, report);
  const char *architectures;
  TRY(choose_architectures(c.options, a, &architectures));
  TRY(strcmp(architectures, "host") == 0 ? emit_target_blocks_host(a, &c.target)
                                         : read_architectures(&c, arena_strdup(a, architectures)));
  return compile_for(&c, m, out);
}

static const rt_compiler gpu_compiler = {.abi = RT_ABI, .name = GPU_TARGET_NAME, .compile = compile};
static const rt_compiler host_compiler = {.abi = RT_ABI, .name = GPU_HOST_TARGET_NAME, .compile = compile_host};

/* --- backends --- */

/* The backends that were asked for.  They stay as long as the process. */
typedef struct found_backend {
  struct found_backend *next;
  rt_backend backend;
} found_backend;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static found_backend *backends;

static const rt_backend *backend_of(const rt_target *target) {
  pthread_mutex_lock(&lock);
  found_backend *b = backends;
  while (b && b->backend.target != target) {
    b = b->next;
  }
  if (!b && (b = malloc(sizeof *b))) {
    bool host = strcmp(target->name, GPU_HOST_TARGET_NAME) == 0;
    *b = (found_backend){backends, {RT_ABI, guard_adopt, target, host ? &host_compiler : &gpu_compiler}};
    backends = b;
  }
  pthread_mutex_unlock(&lock);
  return b ? &b->backend : NULL;
}

status gpu_find_backend(const char *name, const rt_backend **out) {
  const rt_target *target;
  *out = NULL;
  TRY(gpu_find_target(name, &target));
  if (target) {
    *out = backend_of(target);
    CHECK_THAT(*out, STATUS_RESOURCE, "out of memory");
  }
  return NULL;
}
