/* program.c - compiles and runs one module, and compares its results as a whole; see program.h. */
#include "verify/program.h"

#include <math.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "base/hash.h"

static void destroy(void *e) { rt_executable_destroy(e); }

status verify_make(const verify_options *o, const rt_compile_options *compile, arena *a, hlo_module *m,
                   rt_executable **out, rt_report *report) {
  rt_program *p;
  rt_compile_options options = *compile;
  options.eval = ref_fold;
  options.sharing = NULL;
  options.keep_text = false;
  TRY(o->backend->compiler->compile((struct hlo_module *)m, &options, a, &p, report));
  TRY(rt_executable_create(p, o->backend->target, &(rt_load_options){.budget = arena_budget(a)}, out));
  arena_cleanup(a, destroy, *out);
  return NULL;
}

status verify_run(const verify_options *o, const rt_executable *e, const literal *inputs,
                  status (*drive)(void *data, const rt_sequence *body, rt_run *r), void *drive_data, arena *a,
                  literal *results) {
  const rt_program *p = rt_executable_program(e);
  const void **params = ARENA_NEW_N(a, const void *, p->n_params + 1);
  void **out = ARENA_NEW_N(a, void *, p->n_results + 1);
  for (uint32_t k = 0; k < p->n_params; k++) {
    params[k] = literal_aligned(&inputs[k], a);
  }
  for (uint32_t k = 0; k < p->n_results; k++) {
    results[k] = literal_new(a, p->results[k].shape, &out[k]);
  }
  rt_run_options options = {
      .pool = o->pool, .budget = arena_budget(a), .seed = o->seed, .drive = drive, .drive_data = drive_data};
  return rt_execute(rt_executable_binding(e), &options, params, out);
}

/* --- results of whole modules --- */

/* The data of evaluate_moved, which evaluates a module with slightly changed numbers.  Inputs are changed, and
 * constants too, since a model may have no other numbers. */
typedef struct moving {
  const hlo_module *m;
  const literal *inputs;
} moving;

static void move_constants(arena *a, hlo_computation *c, double unit, uint64_t seed) {
  uint64_t n = 0;
  for (hlo_instr *i = c->first; i; i = i->next) {
    if (i->op == HLO_CONSTANT) {
      literal *l = ARENA_NEW(a, literal);
      *l = verify_moved(a, hlo_literal(hlo_result(i, 0)), unit, verify_seed(seed, n++));
      hlo_attr_of(i, HLO_ATTR_VALUE)->value = l;
    }
  }
}

static status evaluate_moved(void *data, double unit, uint64_t seed, arena *a, literal *results) {
  const moving *m = data;
  hlo_module *copy = hlo_module_clone(a, m->m);
  literal *inputs = ARENA_NEW_N(a, literal, copy->entry->n_params + 1);
  for (uint32_t k = 0; k < copy->entry->n_params; k++) {
    inputs[k] = verify_moved(a, &m->inputs[k], unit, verify_seed(seed, k));
  }
  for (uint32_t k = 0; k < copy->n_computations; k++) {
    move_constants(a, copy->computations[k], unit, verify_seed(seed, 1000 + k));
  }
  return ref_eval_computation(copy->entry, inputs, a, results);
}

static double unit_of_results(const hlo_module *m) {
  double unit = 0x1p-24;
  for (uint32_t k = 0; k < m->n_computations; k++) {
    for (const hlo_instr *i = m->computations[k]->first; i; i = i->next) {
      verify_tolerance t = verify_tolerance_of(i, DTYPE_INVALID);
      unit = fmax(unit, t.unit);
    }
  }
  return unit;
}

status verify_results_differ(arena *a, const hlo_module *m, const literal *inputs, const literal *want,
                             const literal *got, bool *differ, verify_difference *out) {
  double unit = unit_of_results(m);
  moving moves = {m, inputs};
  verify_tolerance t = {.unit = unit, .of_largest = 2048 * fmin(unit, 0x1p-20)};
  return verify_compare(a, &t, m->entry->n_roots, want, got, NULL, NULL, evaluate_moved, &moves, differ, out);
}
