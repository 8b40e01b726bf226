/* verify.c - verifies a model or each of its segments with verify/verify.h, and writes the nodes in which a difference
 * was found as models of their own (part.h). */
#include "plugin/compiler/verify.h"

#include "plugin/compiler/backend.h"
#include "plugin/compiler/internal.h"
#include "plugin/compiler/part.h"
#include "plugin/compiler/segments.h"
#include "runtime/host/thread_pool.h"

typedef struct verify_call {
  const compiler_model *s;
  const compile_request *request;
  const compiler_verify_options *o;
  arena *a;
  verify_report *out;
  uint32_t cap_findings;
  verify_options options;
} verify_call;

/* Adds the report of one module to that of the model.  A model that runs segment by segment has several modules. */
static void add_report(verify_call *c, const verify_report *r) {
  verify_report *all = c->out;
  for (uint32_t k = 0; k < r->n_findings; k++) {
    *ARENA_PUSH(c->a, all->findings, all->n_findings, c->cap_findings) = r->findings[k];
  }
  all->n_instructions += r->n_instructions;
  all->n_algorithms += r->n_algorithms;
  all->n_different += r->n_different;
  all->seconds_target += r->seconds_target;
  all->seconds_reference += r->seconds_reference;
}

static status verify_one(verify_call *c, verify_import_fn *import, void *data, const literal *inputs) {
  verify_report report;
  TRY(verify_module(c->a, import, data, inputs, &c->options, &report));
  add_report(c, &report);
  return NULL;
}

static status import_model(void *data, arena *a, hlo_module **out) {
  const verify_call *c = data;
  bool complete;
  return compiler_import(c->s, c->request, a, out, NULL, &complete);
}

/* --- a model whose sizes depend on what it computes --- */

static status import_segment(void *data, arena *a, hlo_module **out) {
  *out = hlo_module_clone(a, data);
  return NULL;
}

static status verify_segment(void *data, hlo_module *segment, const literal *inputs) {
  return verify_one(data, import_segment, segment, inputs);
}

static void destroy_segments(void *data) { segmented_model_destroy(data); }

static status verify_segments(verify_call *c) {
  const compiler_api *compiler = onnx_xla_compiler_get(COMPILER_ABI);
  segmented_model *segments;
  const shape **shapes = ARENA_NEW_N(c->a, const shape *, c->s->n_inputs);
  const void **values = ARENA_NEW_N(c->a, const void *, c->s->n_inputs);
  compiler_array *outputs = ARENA_NEW_N(c->a, compiler_array, c->s->n_outputs + 1);
  for (uint32_t k = 0; k < c->s->n_inputs; k++) {
    shapes[k] = &c->o->inputs[k].shape;
    values[k] = c->o->inputs[k].data;
  }
  segments_run_options run = {.shapes = shapes,
                              .values = values,
                              .pool = c->options.pool,
                              .budget = arena_budget(c->a),
                              .seed = c->o->seed,
                              .strings = c->o->strings,
                              .watch = verify_segment,
                              .watch_data = c};
  TRY(compiler->segments_create(c->s, c->request, arena_budget(c->a), &segments));
  arena_cleanup(c->a, destroy_segments, segments);
  TRY(compiler->segments_run(segments, &run, outputs));
  for (uint32_t k = 0; k < c->s->n_outputs; k++) {
    budget_free(arena_budget(c->a), outputs[k].data, outputs[k].bytes, 64);
  }
  return NULL;
}

/* --- any model --- */

static void destroy_pool(void *pool) { rt_thread_pool_destroy(pool); }

static status verify(void *data) {
  verify_call *c = data;
  hlo_module *m;
  bool complete;
  *c->out = (verify_report){0};
  c->options = (verify_options){.compile = c->request->options,
                                .all_algorithms = c->o->all_algorithms,
                                .folder = c->o->folder,
                                .seed = c->o->seed,
                                .progress = c->o->progress,
                                .progress_data = c->o->progress_data};
  c->options.compile.dump = NULL;
  TRY(compiler_backend(c->request->backend, &c->options.backend));
  TRY(rt_thread_pool_create(c->options.compile.threads, &c->options.pool));
  arena_cleanup(c->a, destroy_pool, c->options.pool);
  TRY(compiler_import(c->s, c->request, c->a, &m, NULL, &complete));
  TRY(complete ? verify_one(c, import_model, c, c->o->inputs) : verify_segments(c));
  compiler_write_parts(c->s, c->request, c->o, c->a, c->out);
  return NULL;
}

status compiler_verify(const compiler_model *s, const compile_request *request, const compiler_verify_options *o,
                       arena *a, verify_report *out) {
  return guard_run(verify, &(verify_call){.s = s, .request = request, .o = o, .a = a, .out = out});
}
