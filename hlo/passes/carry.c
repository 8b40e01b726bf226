/* carry.c - see carry.h. */
#include "hlo/passes/carry.h"

#include <string.h>

#include "base/dim/guard.h"
#include "hlo/ir/bind.h"
#include "hlo/ir/builder.h"
#include "hlo/ir/fold_sizes.h"

/* Returns the concatenation that appends to parameter c->parameter and gives root c->root.  Returns NULL if the root is
 * not such a concatenation, or if the parameter has other uses. */
static hlo_instr *find_concatenation(const hlo_module *m, const hlo_carry *c) {
  const hlo_computation *entry = m->entry;
  hlo_instr *i = entry->roots[c->root].def, *past = entry->params[c->parameter];
  bool fits = i->op == HLO_CONCAT && i->n_operands > 1 && i->operands[0].def == past &&
              hlo_int(i, HLO_ATTR_DIMENSION) == c->axis && hlo_value_uses(hlo_result(past, 0)) == 1;
  return fits ? i : NULL;
}

/* If the root is a parameter with some elements updated, returns that parameter, otherwise NULL. */
static const hlo_instr *updated_parameter(hlo_value root) {
  hlo_value v = root;
  bool updated = false;
  while (v.def->op == HLO_RESHAPE || v.def->op == HLO_SCATTER || v.def->op == HLO_DYNAMIC_UPDATE_SLICE) {
    updated |= v.def->op != HLO_RESHAPE;
    v = v.def->operands[0];
  }
  bool fits = updated && v.def->op == HLO_PARAMETER && shape_equal(hlo_shape(root), hlo_shape(v));
  return fits ? v.def : NULL;
}

/* Adds a parameter that has the shape of parameter c->parameter, except that its extent along dimension c->axis is
 * `capacity`. */
static hlo_instr *add_room(hlo_module *m, const hlo_carry *c, dim capacity) {
  shape s = m->entry->params[c->parameter]->shapes[0];
  uint32_t n = m->entry->n_params;
  s.dims[c->axis] = capacity;
  if (m->param_names) {
    const char **names = ARENA_NEW_N(m->arena, const char *, n + 1), *name = m->param_names[c->parameter];
    memcpy(names, m->param_names, n * sizeof *names);
    names[n] = name ? arena_printf(m->arena, "%s, with room", name) : NULL;
    m->param_names = names;
  }
  return hlo_parameter(m->entry, s);
}

/* Returns what the concatenation appends to its first operand. */
static hlo_value appended(hlo_builder *b, const hlo_instr *concatenation, int axis) {
  return concatenation->n_operands == 2
             ? concatenation->operands[1]
             : hlo_concatenate(b, concatenation->n_operands - 1, concatenation->operands + 1, axis);
}

/* Replaces the concatenation by an update of the array with room, and its uses by a slice of the updated
 * array. */
static status rewrite(hlo_module *m, const hlo_carry *c, hlo_instr *concatenation, dim capacity) {
  dim start[SHAPE_MAX_RANK] = {0}, length = concatenation->shapes[0].dims[c->axis];
  start[c->axis] = m->entry->params[c->parameter]->shapes[0].dims[c->axis];
  hlo_instr *room = add_room(m, c, capacity);
  hlo_builder b = hlo_builder_make(m->entry);
  b.before = concatenation;
  b.source = concatenation->source;
  hlo_value all = hlo_dynamic_update_slice(&b, hlo_result(room, 0), appended(&b, concatenation, c->axis),
                                           hlo_sizes(&b, DTYPE_S64, room->shapes[0].rank, start));
  hlo_value rows = hlo_slice_dim(&b, all, c->axis, 0, length);
  TRY(hlo_builder_take_error(&b));
  hlo_replace(hlo_result(concatenation, 0), rows);
  hlo_remove(concatenation);
  m->entry->roots[c->root] = all;
  m->carried[c->root] = (hlo_carried){m->entry->n_params - 1, c->axis, length};
  return NULL;
}

/* If the length has a hint, gives the capacity a hint that is at least twice as large.  Adds the guard that the length
 * is at most the capacity. */
static void guard_capacity(dim_table *t, dim capacity, dim length) {
  int64_t hint, wanted;
  if (dim_hint(t, length, &wanted)) {
    dim_set_hint(t, capacity, dim_hint(t, capacity, &hint) && hint > 2 * wanted ? hint : 2 * wanted);
  }
  dim_set_source(t, "carry");
  (void)dim_at_most(t, length, capacity);
  dim_set_source(t, NULL);
}

static void carry_none(hlo_module *m) {
  m->carried = ARENA_NEW_N(m->arena, hlo_carried, m->entry->n_roots);
  for (uint32_t k = 0; k < m->entry->n_roots; k++) {
    m->carried[k] = (hlo_carried){.parameter = -1, .axis = -1};
  }
}

status hlo_carry_roots(hlo_module *m, uint32_t n, const hlo_carry *pairs, uint32_t *n_carried) {
  *n_carried = 0;
  dim capacity = 0;
  bool is_open = !hlo_is_static(m);
  for (uint32_t k = 0; k < n; k++) {
    const hlo_carry *c = &pairs[k];
    hlo_instr *i = c->axis >= 0 && is_open ? find_concatenation(m, c) : NULL;
    if (!i && (c->axis >= 0 || updated_parameter(m->entry->roots[c->root]) != m->entry->params[c->parameter])) {
      continue;
    }
    if (++*n_carried == 1) {
      carry_none(m);
    }
    if (!i) {
      m->carried[c->root].parameter = c->parameter;
      continue;
    }
    capacity = capacity ? capacity : dim_own(m->dims, "_capacity_0");
    guard_capacity(m->dims, capacity, i->shapes[0].dims[c->axis]);
    TRY(rewrite(m, c, i, capacity));
  }
  return NULL;
}

/* Returns true if the parameter carries none of the first n roots. */
static bool is_free(const hlo_module *m, uint32_t parameter, uint32_t n) {
  for (uint32_t k = 0; k < n; k++) {
    if (m->carried[k].parameter == parameter) {
      return false;
    }
  }
  return true;
}

void hlo_carry_updates(hlo_module *m) {
  if (m->carried) {
    return;
  }
  carry_none(m);
  bool any = false;
  for (uint32_t k = 0; k < m->entry->n_roots; k++) {
    const hlo_instr *updated = updated_parameter(m->entry->roots[k]);
    for (uint32_t j = 0; updated && j < m->entry->n_params; j++) {
      if (m->entry->params[j] == updated && is_free(m, j, k)) {
        m->carried[k].parameter = j;
        any = true;
      }
    }
  }
  m->carried = any ? m->carried : NULL;
}
