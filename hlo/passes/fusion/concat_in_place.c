/* concat_in_place.c - a concatenation becomes an array that is written part by part: each operand is written directly
 * to its part of the result.
 *
 * Order: after epilogue, whose fusions can write in place, and before loop_fusion.  Keeps: results, bit for bit.
 * Breaks: the assumption that an output fusion has the shape of its contraction.  Only concatenations that would have a
 * kernel of their own are rewritten; others are computed within the loop fusion of their users.
 *
 *     a = fusion(x); b = fusion(y); concatenate(a, b)
 *     e = empty; p = fusion(x, e) { dynamic-update-slice(e, a, 0) }; fusion(y, p) { dynamic-update-slice(p, b, n) }
 *
 * Operands that cannot be written in place are copied to their parts.  At most one operand may be copied,
 * since each copy is a kernel. */
#include <string.h>

#include "hlo/passes/rewrite.h"

typedef struct part {
  hlo_value value;
  int64_t start; /* the position of the operand's first element along the concatenated dimension */
  bool written;  /* whether the instruction that computes this operand can write it to its part of the result */
} part;

/* Returns true if loop fusion may compute the concatenation in the kernel of this user.  It never does so for a
 * contraction, a window or an output fusion. */
static bool fuses(const hlo_instr *user) {
  switch (hlo_info(user)->kind) {
    case HLO_CONTRACTION:
    case HLO_WINDOW: return false;
    case HLO_STRUCTURE: return user->op != HLO_FUSION || hlo_int(user, HLO_ATTR_FUSION) != HLO_FUSION_OUTPUT;
    default: return true;
  }
}

/* Returns true for a concatenation of several operands that no user can take into a fusion. */
static bool is_computed_alone(const hlo_instr *i) {
  for (uint32_t k = 0; k < i->n_uses; k++) {
    if (fuses(i->uses[k].user)) {
      return false;
    }
  }
  return i->n_operands > 1;
}

/* Returns true if the result is not known to be empty, and its extents from the concatenated dimension on are
 * constants.  Then each part begins at a constant position of a row of constant size. */
static bool has_fixed_rows(const hlo_instr *i) {
  const shape *s = &i->shapes[0];
  bool fixed = !shape_is_empty(s);
  for (int k = (int)hlo_int(i, HLO_ATTR_DIMENSION); k < s->rank; k++) {
    fixed = fixed && dim_is_const(s->dims[k]);
  }
  return fixed;
}

static bool can_write(const pass_context *c, hlo_value v) {
  return v.def->n_results == 1 && hlo_used_once(v) && c->target->takes_in_place_update(c->target->data, v.def);
}

/* Sets parts[] to the operands that have elements: first those that are written in place, in the order in which they
 * are computed, then the one that is copied.  Returns false if more than one operand must be copied, if none can be
 * written in place, or if the extent of an operand along the concatenated dimension is symbolic.  (Even then the extent
 * of the result can be a constant, for example if the extents of two operands are n and 4 - n.) */
static bool find_parts(const pass_context *c, const hlo_instr *i, uint32_t *n, part *parts) {
  int64_t dimension = hlo_int(i, HLO_ATTR_DIMENSION), start = 0;
  uint32_t copied = 0;
  *n = 0;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    hlo_value v = i->operands[k];
    part one = {v, start, can_write(c, v)};
    if (!dim_is_const(hlo_shape(v)->dims[dimension])) {
      return false;
    }
    start += hlo_shape(v)->dims[dimension];
    if (shape_is_empty(hlo_shape(v))) {
      continue;
    }
    copied += !one.written;
    uint32_t at = (*n)++;
    for (; at > 0 && one.written && (!parts[at - 1].written || parts[at - 1].value.def->id > v.def->id); at--) {
      parts[at] = parts[at - 1];
    }
    parts[at] = one;
  }
  return copied < 2 && *n > copied;
}

static hlo_value starts_of(hlo_builder *b, const shape *s, int64_t dimension, int64_t start) {
  int64_t starts[SHAPE_MAX_RANK] = {0};
  starts[dimension] = start;
  return hlo_s64s(b, starts, s->rank);
}

/* Returns a new computation that computes what `i` does, and sets *result to its result. */
static hlo_computation *body_of(hlo_module *m, const hlo_instr *i, hlo_value *result) {
  if (i->op == HLO_FUSION) {
    hlo_computation *body = hlo_computation_clone(m, hlo_callee(i, 0));
    *result = body->roots[0];
    return body;
  }
  hlo_computation *body = hlo_computation_create(m, "fused_output");
  hlo_value *operands = ARENA_NEW_N(m->arena, hlo_value, i->n_operands);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    operands[k] = hlo_result(hlo_parameter(body, *hlo_shape(i->operands[k])), 0);
  }
  *result = hlo_result(hlo_instr_clone(body, NULL, i, operands), 0);
  return body;
}

/* Builds a fusion that computes the part and writes it into `base`, and sets *out to its result.  The instruction that
 * computes p->value stays until place_all removes it. */
static status write_part(hlo_computation *c, const part *p, hlo_value base, int64_t dimension, hlo_value *out) {
  hlo_instr *i = p->value.def;
  hlo_module *m = c->module;
  hlo_value made, *operands = ARENA_NEW_N(m->arena, hlo_value, i->n_operands + 1);
  hlo_computation *body = body_of(m, i, &made);
  hlo_builder b = hlo_builder_make(body);
  memcpy(operands, i->operands, i->n_operands * sizeof *operands);
  operands[i->n_operands] = base;
  hlo_value into = hlo_result(hlo_parameter(body, *hlo_shape(base)), 0);
  hlo_value root = hlo_dynamic_update_slice(&b, into, made, starts_of(&b, hlo_shape(base), dimension, p->start));
  TRY(hlo_builder_take_error(&b));
  hlo_set_roots(body, 1, &root);
  hlo_instr *placed = hlo_instr_create(c, i, HLO_FUSION, i->n_operands + 1, operands, 1);
  placed->source = i->source;
  placed->shapes[0] = *hlo_shape(base);
  placed->id = i->id;
  hlo_attr_of(placed, HLO_ATTR_FUSION)->i = HLO_FUSION_OUTPUT;
  hlo_attr *callee = hlo_attr_of(placed, HLO_ATTR_COMPUTATIONS);
  callee->n_comps = 1;
  callee->comps = arena_memdup(m->arena, &body, sizeof body);
  *out = hlo_result(placed, 0);
  return NULL;
}

static status place_all(pass_context *context, hlo_instr *i, uint32_t n, const part *parts) {
  hlo_computation *c = i->parent;
  int64_t dimension = hlo_int(i, HLO_ATTR_DIMENSION);
  hlo_builder first = hlo_pass_builder(context, c, parts[0].value.def), b = hlo_pass_builder(context, c, i);
  first.source = b.source = i->source;
  hlo_value whole = hlo_empty(&first, i->shapes[0]);
  TRY(hlo_builder_take_error(&first));
  for (uint32_t k = 0; k < n; k++) {
    if (parts[k].written) {
      TRY(write_part(c, &parts[k], whole, dimension, &whole));
    } else {
      whole =
          hlo_dynamic_update_slice(&b, whole, parts[k].value, starts_of(&b, &i->shapes[0], dimension, parts[k].start));
      TRY(hlo_builder_take_error(&b));
    }
  }
  hlo_replace(hlo_result(i, 0), whole);
  hlo_remove(i);
  for (uint32_t k = 0; k < n; k++) {
    if (parts[k].written) {
      hlo_remove(parts[k].value.def);
    }
  }
  hlo_pass_note(context, "parts written in place", n);
  return NULL;
}

static status place_parts(hlo_computation *c, pass_context *context, bool *changed) {
  hlo_number(c);
  HLO_FOR_EACH(i, c) {
    uint32_t n;
    TRY(budget_check(arena_budget(context->scratch)));
    if (i->op == HLO_CONCAT && is_computed_alone(i) && has_fixed_rows(i)) {
      part *parts = ARENA_NEW_N(context->scratch, part, i->n_operands);
      if (find_parts(context, i, &n, parts)) {
        TRY(place_all(context, i, n, parts));
        *changed = true;
      }
    }
  }
  return NULL;
}

status pass_concat_in_place(hlo_module *m, pass_context *c, bool *changed) {
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, c->scratch, false, &n);
  for (uint32_t k = 0; k < n && c->target->takes_in_place_update; k++) {
    TRY(place_parts(walked[k], c, changed));
  }
  return NULL;
}
