/* compile_target.c - the cpu's pipeline and the way from a module to a program. */
#include "backend_cpu/compile_target.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "backend_cpu/compile_contraction.h"
#include "backend_cpu/compile_kernels.h"
#include "backend_cpu/compile_lower.h"
#include "emit/kernel.h"
#include "emit/target.h"
#include "hlo/pass.h"

/* --- the pipeline --- */

static const hlo_pass cleaning[] = {HLO_STEP(fold), HLO_STEP(simplify), HLO_STEP(motion), HLO_STEP(cse), HLO_STEP(dce)};

static const hlo_pass pipeline[] = {
    HLO_STEP(inline_composites),
    HLO_GROUP("clean", cleaning),
    HLO_STEP(batch_norm),
    HLO_STEP(dce),
    HLO_STEP(layout),
    HLO_GROUP("clean-layout", cleaning),
    HLO_STEP(epilogue),
    HLO_STEP(reduce_fusion),
    HLO_STEP(loop_fusion),
    HLO_STEP(dce),
};

/* What emit/ can write may be part of a kernel. */
static bool takes_fused(void *data, hlo_fusion_kind kind, const hlo_instr *i) {
  (void)data;
  switch (hlo_info(i)->kind) {
    case HLO_ELEMENTWISE:
      break;
    case HLO_MOVEMENT:
      if (kind == HLO_FUSION_OUTPUT) {
        return false;
      }
      break;
    default:
      if (i->op != HLO_REDUCE || kind != HLO_FUSION_INPUT) {
        return false;
      }
  }
  return emit_supports(i, NULL);
}

typedef struct dumping {
  const rt_compile_options *options;
} dumping;

static status dump(void *data, const char *file, const hlo_module *m) {
  const rt_compile_options *o = ((const dumping *)data)->options;
  return o->dump(o->dump_data, file, m);
}

/* Of one folded result: the weights of a layer, which batch normalisation scales. */
static const int64_t fold_bytes = (int64_t)1 << 28;

static status prepare(hlo_module *m, const rt_compile_options *options, arena *a) {
  static const hlo_target target = {.name = "cpu", .takes_epilogue = cpu_takes_epilogue, .takes_fused = takes_fused,
                                    .channels_last = true};
  dumping d = {options};
  pass_context c = {.arena = a, .eval = options->eval, .fold_bytes = fold_bytes, .target = &target, .verify = true};
  if (options->dump) {
    c.dump = dump;
    c.dump_data = &d;
  }
  return hlo_run_passes(m, pipeline, sizeof pipeline / sizeof *pipeline, &c);
}

/* --- the report --- */

static bool is_work(const hlo_instr *i) {
  switch (i->op) {
    case HLO_PARAMETER:
    case HLO_CONSTANT:
    case HLO_RESHAPE:
    case HLO_WHILE:
    case HLO_CONDITIONAL:
      return false;
    default:
      return true;
  }
}

static uint64_t bytes_of(const hlo_instr *i) {
  uint64_t n = 0;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    n += (uint64_t)shape_bytes(hlo_shape(i->operands[k]));
  }
  for (uint32_t k = 0; k < i->n_results; k++) {
    n += (uint64_t)shape_bytes(&i->shapes[k]);
  }
  return n;
}

/* Whether the computation is the body of a fusion: then it is no step of its own. */
static bool is_fused(const hlo_module *m, const hlo_computation *c) {
  for (uint32_t k = 0; k < m->n_computations; k++) {
    for (const hlo_instr *i = m->computations[k]->first; i; i = i->next) {
      if (i->op == HLO_FUSION && hlo_callee(i, 0) == c) {
        return true;
      }
    }
  }
  return false;
}

static void count_contraction(const hlo_instr *i, bool clustered, rt_report *r) {
  if (i->op == HLO_DOT) {
    r->dots++;
    r->clustered_dots += clustered;
  } else if (i->op == HLO_CONVOLUTION) {
    r->convolutions++;
    r->clustered_convolutions += clustered;
  }
}

static void count_step(const hlo_instr *i, rt_report *r) {
  count_contraction(i, false, r);
  r->lone_elementwise += hlo_info(i)->kind == HLO_ELEMENTWISE;
  if (i->op != HLO_FUSION) {
    return;
  }
  r->clusters++;
  for (const hlo_instr *k = hlo_callee(i, 0)->first; k; k = k->next) {
    count_contraction(k, true, r);
  }
}

static void count(const hlo_module *m, uint32_t *instructions, uint64_t *bytes, rt_report *r) {
  *instructions = 0;
  *bytes = 0;
  for (uint32_t k = 0; k < m->n_computations; k++) {
    bool fused = is_fused(m, m->computations[k]);
    for (const hlo_instr *i = m->computations[k]->first; i; i = i->next) {
      *instructions += !fused;
      if (!fused && is_work(i)) {
        *bytes += bytes_of(i);
        if (r) {
          count_step(i, r);
        }
      }
    }
  }
}

static uint32_t count_thunks(const rt_sequence *s) {
  uint32_t n = s->n;
  for (uint32_t k = 0; k < s->n; k++) {
    for (uint32_t b = 0; b < s->thunks[k].n_bodies; b++) {
      n += count_thunks(&s->thunks[k].bodies[b]);
    }
  }
  return n;
}

static void report_program(const rt_program *p, const cpu_kernels *kernels, rt_report *r) {
  r->thunks = count_thunks(&p->body);
  r->kernels = cpu_kernels_asked(kernels);
  r->kernels_unique = cpu_kernels_unique(kernels);
  for (uint32_t k = 0; k < p->n_constants; k++) {
    r->constant_bytes += p->constants[k].size;
  }
  for (uint32_t k = 0; k < p->n_code; k++) {
    r->code_bytes += p->code[k].size;
  }
}

/* --- the way --- */

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint32_t threads_of(const rt_compile_options *o) {
  cpu_set_t set;
  if (o->threads) {
    return o->threads;
  }
  return sched_getaffinity(0, sizeof set, &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

static status add_texts(cpu_kernels *kernels, rt_report *r) {
  TRY(cpu_kernels_text(kernels, false, &r->llvm));
  return cpu_kernels_text(kernels, true, &r->assembly);
}

static status compile(struct hlo_module *m, const rt_compile_options *given, arena *a, rt_program **out,
                      rt_report *report) {
  static const rt_compile_options defaults;
  const rt_compile_options *options = given ? given : &defaults;
  rt_report unused = {0}, *r = report ? report : &unused;
  emit_target *target = ARENA_NEW(a, emit_target);
  double start = seconds(), now;
  TRY(emit_target_init(a, NULL, options->cpu ? options->cpu : "native", (int)options->lanes, target));
  count(m, &r->hlo_before, &r->bytes_moved_before, NULL);
  TRY(prepare(m, options, a));
  count(m, &r->hlo_after, &r->bytes_moved_after, r);
  r->seconds_passes = (now = seconds()) - start;
  start = now;
  cpu_kernels *kernels = cpu_kernels_create(a, target);
  TRY(cpu_lower(m, kernels, threads_of(options), options->keep_text, a, out, r));
  r->seconds_lower = (now = seconds()) - start;
  start = now;
  uint32_t n_objects = 0;
  rt_span *objects = NULL;
  TRY(cpu_kernels_compile(kernels, threads_of(options), &n_objects, &objects));
  cpu_attach_code(*out, kernels, n_objects, objects);
  if (options->keep_text) {
    TRY(add_texts(kernels, r));
  }
  (*out)->cpu = n_objects ? emit_target_text(a, target) : "";
  r->seconds_codegen = seconds() - start;
  report_program(*out, kernels, r);
  return NULL;
}

const rt_compiler cpu_compiler = {.abi = RT_ABI, .name = "cpu", .compile = compile};
