/* target.c - the cpu target's pipeline of passes, and the steps from a module to a program. */
#include "backend_cpu/compile/target.h"

#include <assert.h>
#include <string.h>

#include "backend_cpu/algorithms/attention.h"
#include "backend_cpu/algorithms/contraction.h"
#include "backend_cpu/compile/assign_kernels.h"
#include "backend_cpu/lower/lower.h"
#include "base/clock.h"
#include "emit/kernel/kernel.h"
#include "emit/llvm/target.h"
#include "hlo/schedule/hlo_report.h"
#include "hlo/passes/pass.h"
#include "lower/kernels/report.h"
#include "lower/kernels/thunks.h"

/* --- the pipeline --- */

static const hlo_pass cleaning[] = {HLO_STEP(fold), HLO_STEP(simplify), HLO_STEP(transpose_sinking), HLO_STEP(cse),
                                    HLO_STEP(dce)};

static const hlo_pass pipeline[] = {
    HLO_STEP(qdq_fusion),
    HLO_STEP(integer_sums),
    HLO_NEEDED_STEP(inline_composites),
    HLO_STEP(gather_to_slice),
    HLO_STEP(dce),
    HLO_GROUP("clean", cleaning),
    HLO_STEP(batch_norm),
    HLO_STEP(dce),
    HLO_STEP(layout),
    HLO_STEP(transposed_convolution),
    HLO_GROUP("clean-layout", cleaning),
    HLO_STEP(lookup_tables),
    HLO_STEP(gather_to_broadcast),
    HLO_STEP(dce),
    HLO_STEP(attention),
    HLO_STEP(dot_canonicalization),
    HLO_STEP(fold),
    HLO_STEP(dce),
    HLO_STEP(epilogue),
    HLO_STEP(concat_in_place),
    HLO_STEP(row_fusion),
    HLO_STEP(reduce_fusion),
    HLO_STEP(loop_fusion),
    HLO_STEP(dce),
    HLO_STEP(lift_scalars),
    HLO_NEEDED_STEP(assign_kernels),
};

/* The passes for a module that `pipeline` has prepared already (hlo_module.kernels_assigned). */
static const hlo_pass after_pipeline[] = {HLO_NEEDED_STEP(assign_kernels)};

static bool takes_attention(void *data, const hlo_attention *a) {
  const cpu_asked *about = data;
  return !about->options->numerics.exact && cpu_takes_attention(a, about->target);
}

static bool takes_fused(void *data, hlo_fusion_kind kind, const hlo_instr *i) {
  (void)data;
  return emit_supports_fused(kind, i);
}

static status dump(void *data, const char *file, const hlo_module *m) {
  const rt_compile_options *o = ((const cpu_asked *)data)->options;
  return o->dump(o->dump_data, file, m);
}

/* The largest result of constant folding in bytes: enough for the weights of a layer that batch normalisation
 * scales. */
static const int64_t fold_bytes = (int64_t)1 << 28;

/* The data of the passes: what the functions of hlo_target need, and what pass assign_kernels makes. */
typedef struct preparation {
  cpu_asked asked; /* the first member, since some functions take a pointer to it */
  arena *arena;
  cpu_problem_options problems;
  cpu_plans *plans;
  rt_report *report;
} preparation;

/* Announces a long phase that is not a pass, by the dump function of the options, so that callers can show progress. */
static status begin(const rt_compile_options *o, const char *phase, const hlo_module *m) {
  return o->dump ? o->dump(o->dump_data, phase, m) : NULL;
}

static uint64_t constant_bytes(const hlo_module *m) {
  uint64_t n = 0;
  for (uint32_t k = 0; k < m->n_computations; k++) {
    for (const hlo_instr *i = m->computations[k]->first; i; i = i->next) {
      n += i->op == HLO_CONSTANT ? (uint64_t)shape_bytes(&i->shapes[0]) : 0;
    }
  }
  return n;
}

static status assign_kernels(void *data, hlo_module *m) {
  preparation *p = data;
  double start = clock_seconds();
  TRY(begin(p->asked.options, "tuning", m));
  p->problems.constant_bytes = constant_bytes(m);
  TRY(cpu_assign_kernels(p->arena, m, p->asked.options, &p->problems, &p->plans, p->report));
  p->report->seconds_tuning = clock_seconds() - start;
  return NULL;
}

static status prepare(hlo_module *m, preparation *p) {
  const rt_compile_options *options = p->asked.options;
  const hlo_target target = {.name = "cpu",
                             .data = p,
                             .takes_epilogue = cpu_takes_epilogue,
                             .takes_activation = cpu_takes_activation,
                             .takes_fused = takes_fused,
                             .takes_narrow_operands = cpu_takes_narrow_operands,
                             .takes_attention = takes_attention,
                             .takes_quantized_weights = cpu_takes_quantized_weights,
                             .takes_in_place_update = cpu_takes_in_place_update,
                             .assign_kernels = assign_kernels,
                             .channels_last = true,
                             .lookup_tables = true,
                             .sums_in_f32 = !p->asked.target->small,
                             .canonical_dots = true};
  pass_context c = {.arena = p->arena,
                    .eval = options->eval,
                    .fold_bytes = fold_bytes,
                    .target = &target,
                    .skip = options->skip_passes,
                    .verify = true};
  if (options->dump) {
    c.dump = dump;
    c.dump_data = p;
  }
  return m->kernels_assigned ? hlo_run_passes(m, after_pipeline, sizeof after_pipeline / sizeof *after_pipeline, &c)
                             : hlo_run_passes(m, pipeline, sizeof pipeline / sizeof *pipeline, &c);
}

/* --- compiling a module --- */

status cpu_target_of(arena *a, const rt_compile_options *o, emit_target *out) {
  const char *usual = o->triple ? "generic" : "native";
  TRY(emit_target_init(a, o->triple, o->cpu ? o->cpu : usual, (int)o->lanes, out));
  if (o->features) {
    TRY(emit_target_change_features(a, o->features, (int)o->lanes, out));
  }
  if (o->small) {
    emit_target_make_small(out);
  }
  return NULL;
}

/* The state of a compilation. */
typedef struct compilation {
  rt_compile_options *options; /* on the arena, since jobs use them */
  arena *arena;
  emit_target *target;
  rt_report *report, unused;
  uint32_t shares;
  lower_kernels *kernels;
  lower_jobs *jobs;
  size_table sizes;
  rt_program *program;
  double start; /* when the last step ended */
} compilation;

static status run_passes(compilation *c, hlo_module *m, preparation *p) {
  const rt_compile_options *o = c->options;
  hlo_report before = hlo_report_of(m);
  cpu_problem_options problems = {
      .target = c->target, .threads = c->shares, .numerics = o->numerics, .own_kernels = o->own_kernels};
  *p = (preparation){.asked = {o, c->target}, .arena = c->arena, .problems = problems, .report = c->report};
  TRY(prepare(m, p));
  lower_report_module(m, &before, c->report);
  c->report->seconds_passes = clock_lap(&c->start) - c->report->seconds_tuning;
  return NULL;
}

static status lower_module(compilation *c, hlo_module *m) {
  rt_compile_options *o = c->options;
  preparation p;
  c->start = clock_seconds();
  TRY(cpu_target_of(c->arena, o, c->target));
  if (o->functions && emit_target_includes(c->target, o->functions->target)) {
    c->target->functions = o->functions;
  }
  TRY(run_passes(c, m, &p));
  bool shares = o->sharing && !o->keep_text;
  c->kernels = lower_kernels_create(c->arena, c->target, "cpu.kernel", shares ? o->sharing->weight_pool : NULL);
  c->jobs = lower_jobs_create(c->arena);
  cpu_lower_options *lower = ARENA_NEW(c->arena, cpu_lower_options); /* jobs use it later */
  *lower = (cpu_lower_options){.target = c->target,
                               .threads = c->shares,
                               .plans = p.plans,
                               .keep_text = o->keep_text,
                               .out_of_place = o->out_of_place,
                               .own_kernels = o->own_kernels,
                               .sharing = o->sharing,
                               .origins = o->origins,
                               .jobs = c->jobs};
  TRY(cpu_lower(m, c->kernels, lower, c->arena, &c->sizes, &c->program, c->report));
  c->report->seconds_lower = clock_lap(&c->start);
  return begin(o, "machine code", m);
}

static void finish(compilation *c) {
  c->report->seconds_codegen = clock_lap(&c->start);
  lower_report_program(c->program, c->kernels, c->report);
}

static void begin_compilation(compilation *c, const rt_compile_options *given, arena *a, rt_report *report) {
  rt_compile_options *own = ARENA_NEW(a, rt_compile_options);
  *own = given ? *given : (rt_compile_options){.threads = 1};
  own->own_kernels |= own->triple != NULL; /* so that the program is the same on whichever machine it is compiled */
  *c = (compilation){.options = own, .arena = a, .target = ARENA_NEW(a, emit_target)};
  assert(c->options->threads >= 1);
  c->report = report ? report : &c->unused;
  c->shares = lower_shares_of(c->options);
}

static status compile(struct hlo_module *m, const rt_compile_options *options, arena *a, rt_program **out,
                      rt_report *report) {
  compilation c;
  lower_object_code code;
  begin_compilation(&c, options, a, report);
  TRY(lower_module(&c, m));
  TRY(lower_kernels_compile(c.kernels, c.jobs, c.shares, c.options->threads, &code));
  TRY(lower_kernels_attach_program(&c.sizes, c.kernels, &code));
  TRY(c.options->keep_text ? lower_report_texts(c.kernels, c.report) : NULL);
  c.program->cpu = code.n ? emit_target_text(a, c.target) : "";
  *out = c.program;
  finish(&c);
  return NULL;
}

status cpu_compile_into_module(struct hlo_module *m, const rt_compile_options *options, arena *a, const char *prefix,
                               emit_module *module, rt_program **out, rt_report *report) {
  compilation c;
  begin_compilation(&c, options, a, report);
  TRY(lower_module(&c, m));
  TRY(lower_kernels_write(c.kernels, c.jobs, c.options->threads, prefix, module));
  TRY(lower_kernels_attach_program(&c.sizes, c.kernels, &(lower_object_code){0}));
  c.program->cpu = emit_target_text(a, c.target);
  *out = c.program;
  finish(&c);
  return NULL;
}

const rt_compiler cpu_compiler = {.abi = RT_ABI, .name = "cpu", .compile = compile};
