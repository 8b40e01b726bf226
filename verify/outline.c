/* outline.c - copies an instruction, and some of those that it reads, to a new module; see outline.h. */
#include "verify/outline.h"

#include <string.h>

typedef struct outline {
  arena *a;
  hlo_module *m;
  literal *const *values;
  hlo_instr **made;   /* for each id of an original instruction: its copy; NULL if there is none */
  hlo_value **params; /* params[id][r] replaces result r of the original instruction with that id */
  literal *inputs;
  uint32_t n_inputs, cap_inputs;
} outline;

static bool is_taken(const hlo_instr *i, int depth) {
  return i->op == HLO_CONSTANT || (depth >= 0 && i->op != HLO_PARAMETER);
}

/* Adds the parameters of the outline, which must come before all other instructions of its computation. */
static void add_params(outline *o, const hlo_instr *i, int depth) {
  for (uint32_t k = 0; k < i->n_operands; k++) {
    hlo_value v = i->operands[k];
    if (is_taken(v.def, depth - 1)) {
      add_params(o, v.def, depth - 1);
      continue;
    }
    if (!o->params[v.def->id]) {
      o->params[v.def->id] = ARENA_NEW_N(o->a, hlo_value, v.def->n_results);
    }
    if (!o->params[v.def->id][v.index].def) {
      o->params[v.def->id][v.index] = hlo_result(hlo_parameter(o->m->entry, *hlo_shape(v)), 0);
      *ARENA_PUSH(o->a, o->inputs, o->n_inputs, o->cap_inputs) = o->values[v.def->id][v.index];
    }
  }
}

/* Copies an instruction and the instructions that it reads.  A value for which add_params has made a parameter, since
 * it is beyond `depth` on some path, is not copied, even if it is within `depth` on another path. */
static hlo_instr *copy(outline *o, const hlo_instr *i, int depth) {
  if (o->made[i->id]) {
    return o->made[i->id];
  }
  hlo_value *operands = ARENA_NEW_N(o->a, hlo_value, i->n_operands + 1);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    hlo_value v = i->operands[k];
    bool cut = o->params[v.def->id] && o->params[v.def->id][v.index].def;
    operands[k] = cut ? o->params[v.def->id][v.index] : hlo_result(copy(o, v.def, depth - 1), v.index);
  }
  hlo_instr *made = hlo_instr_clone(o->m->entry, NULL, i, operands);
  made->concurrent = false;
  made->config = ""; /* no algorithm is chosen, so that each one can be tried */
  return o->made[i->id] = made;
}

hlo_module *verify_outline(arena *a, const hlo_instr *i, int depth, literal *const *values, literal **inputs) {
  uint32_t n = i->parent->n_ids;
  outline o = {.a = a,
               .m = hlo_module_create(a, "outline"),
               .values = values,
               .made = ARENA_NEW_N(a, hlo_instr *, n),
               .params = ARENA_NEW_N(a, hlo_value *, n)};
  o.m->entry = hlo_computation_create(o.m, "main");
  add_params(&o, i, depth);
  hlo_instr *root = copy(&o, i, depth);
  hlo_value *roots = ARENA_NEW_N(a, hlo_value, i->n_results);
  for (uint32_t k = 0; k < i->n_results; k++) {
    roots[k] = hlo_result(root, k);
  }
  hlo_set_roots(o.m->entry, i->n_results, roots);
  hlo_module_clean(o.m);
  *inputs = o.inputs;
  return o.m;
}
