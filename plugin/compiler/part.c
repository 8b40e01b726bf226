/* part.c - writes the nodes of findings as models of their own, with the values that these nodes read. */
#include "plugin/compiler/part.h"

#include "backend_ref/eval.h"
#include "frontend/import/part.h"
#include "plugin/compiler/internal.h"
#include "verify/write.h"

/* All findings of a model.  The values that the nodes of the findings read and compute are evaluated together, by one
 * run of the reference evaluator. */
typedef struct parts_call {
  const compiler_model *s;
  const compile_request *request;
  const compiler_verify_options *o;
  arena *a;
  verify_report *report;
  onnx_part *parts; /* the nodes of each finding */
  str_map numbers;  /* from the name of an input or result of a part to its index in `names`, plus 1 */
  uint32_t n, cap;  /* the number and the capacity of the entries of `names`, `values` and `is_open` */
  const char **names;
  onnx_part_value *values;
  bool *is_open; /* for each value: whether its size depends on what the model computes */
} parts_call;

/* --- the values around the nodes --- */

static void add_names(parts_call *c, const onnx_names *names) {
  for (uint32_t k = 0; k < names->n; k++) {
    void **number = str_map_put(&c->numbers, names->items[k]);
    if (!*number) {
      *ARENA_PUSH(c->a, c->names, c->n, c->cap) = names->items[k];
      *number = (void *)(uintptr_t)c->n;
    }
  }
}

static void find_parts(parts_call *c) {
  c->parts = ARENA_NEW_N(c->a, onnx_part, c->report->n_findings);
  str_map_init(&c->numbers, c->a);
  for (uint32_t k = 0; k < c->report->n_findings; k++) {
    verify_finding *f = &c->report->findings[k];
    status failed = onnx_part_find(c->a, compiler_onnx_model(c->s), f->n_sources, f->sources, &c->parts[k]);
    f->model_note = failed ? arena_printf(c->a, "none is written: %s", status_message(failed)) : NULL;
    if (!failed) {
      add_names(c, &c->parts[k].inputs);
      add_names(c, &c->parts[k].results);
    }
    status_free(failed);
  }
}

/* Evaluates all values that `names` lists.  Values that the import folded to constants become constants in the new
 * models, too, since sizes may depend on them. */
static status compute_values(parts_call *c) {
  hlo_module *m;
  bool complete;
  TRY(compiler_import(compiler_with_outputs(c->s, c->a, c->n, c->names), c->request, c->a, &m, NULL, &complete));
  CHECK_THAT(complete, STATUS_UNSUPPORTED, "the model runs segment by segment, since sizes depend on what it computes");
  literal *values = ARENA_NEW_N(c->a, literal, m->entry->n_roots);
  TRY(ref_eval_computation(m->entry, c->o->inputs, c->a, values));
  c->values = ARENA_NEW_N(c->a, onnx_part_value, c->n);
  c->is_open = ARENA_NEW_N(c->a, bool, c->n);
  for (uint32_t k = 0; k < c->n; k++) {
    c->values[k] = (onnx_part_value){c->names[k], values[k], hlo_literal(m->entry->roots[k]) != NULL};
  }
  for (uint32_t k = 0; m->size_of && k < m->entry->n_roots; k++) {
    if (m->size_of[k].axis >= 0) {
      c->is_open[m->size_of[k].result] = true;
    }
  }
  return NULL;
}

static status values_of(const parts_call *c, const onnx_names *names, onnx_part_value **out) {
  *out = ARENA_NEW_N(c->a, onnx_part_value, names->n + 1);
  for (uint32_t k = 0; k < names->n; k++) {
    uintptr_t number = (uintptr_t)str_map_get(&c->numbers, names->items[k]);
    CHECK_THAT(!c->is_open[number - 1], STATUS_UNSUPPORTED, "the size of '%s' depends on what the model computes",
               names->items[k]);
    (*out)[k] = c->values[number - 1];
  }
  return NULL;
}

/* --- the model --- */

/* The inputs of a part that are not constants. */
typedef struct given {
  uint32_t n;
  const char **names;
  literal *values;
} given;

static given given_of(arena *a, uint32_t n, const onnx_part_value *inputs) {
  given g = {0, ARENA_NEW_N(a, const char *, n + 1), ARENA_NEW_N(a, literal, n + 1)};
  for (uint32_t k = 0; k < n; k++) {
    if (!inputs[k].is_constant) {
      g.names[g.n] = inputs[k].name;
      g.values[g.n++] = inputs[k].value;
    }
  }
  return g;
}

static status verify_part(const parts_call *c, const void *bytes, size_t size, const given *g, bool *wrong) {
  const compiler_api *compiler = onnx_xla_compiler_get(COMPILER_ABI);
  compiler_model *s;
  verify_report report;
  compile_request request = *c->request;
  const shape **shapes = ARENA_NEW_N(c->a, const shape *, g->n + 1);
  const void **values = ARENA_NEW_N(c->a, const void *, g->n + 1);
  for (uint32_t k = 0; k < g->n; k++) {
    shapes[k] = &g->values[k].shape;
    values[k] = g->values[k].data;
  }
  request.inputs = shapes;
  request.values = values;
  compiler_verify_options o = {.inputs = g->values, .all_algorithms = c->o->all_algorithms, .seed = c->o->seed};
  TRY(compiler->open(c->a, NULL, bytes, size, 0, NULL, &s));
  TRY(compiler->verify(s, &request, &o, c->a, &report));
  *wrong = report.n_different > 0;
  return NULL;
}

typedef struct part_call {
  const parts_call *all;
  const onnx_part *part;
  verify_finding *f;
} part_call;

static status write_part(void *data) {
  const part_call *call = data;
  const parts_call *c = call->all;
  verify_finding *f = call->f;
  onnx_part_value *inputs, *results;
  uint8_t *bytes;
  size_t size;
  bool wrong;
  TRY(values_of(c, &call->part->inputs, &inputs));
  TRY(values_of(c, &call->part->results, &results));
  TRY(onnx_part_pack(c->a, compiler_onnx_model(c->s), call->part, inputs, results, &bytes, &size));
  given g = given_of(c->a, call->part->inputs.n, inputs);
  TRY(f->stem ? NULL : verify_claim(c->a, c->o->folder, "onnx", &f->stem));
  TRY(verify_write_example(c->a, f->stem, "onnx", bytes, size, g.n, g.names, g.values, &f->model));
  status failed = verify_part(c, bytes, size, &g, &wrong);
  f->model_note = failed  ? arena_printf(c->a, "it cannot be verified: %s", status_message(failed))
                  : wrong ? "it differs there, too"
                          : "these nodes alone show no difference: nodes around them contribute to it";
  status_free(failed);
  return NULL;
}

static status compute_guarded(void *data) {
  parts_call *c = data;
  find_parts(c);
  return c->n ? compute_values(c) : NULL;
}

void compiler_write_parts(const compiler_model *s, const compile_request *request, const compiler_verify_options *o,
                          arena *a, verify_report *report) {
  if (!o->folder || !report->n_findings || !compiler_onnx_model(s)) {
    return;
  }
  parts_call c = {.s = s, .request = request, .o = o, .a = a, .report = report};
  status no_values = guard_run(compute_guarded, &c);
  for (uint32_t k = 0; k < report->n_findings; k++) {
    verify_finding *f = &report->findings[k];
    status failed = f->model_note ? NULL
                    : no_values   ? status_copy(no_values)
                                  : guard_run(write_part, &(part_call){&c, &c.parts[k], f});
    f->model_note = failed ? arena_printf(a, "none is written: %s", status_message(failed)) : f->model_note;
    status_free(failed);
  }
  status_free(no_values);
}
