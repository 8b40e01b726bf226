/* outline.c - see outline.h. */
#include "lower/kernels/outline.h"

#include <stdio.h>

#include "base/dim/guard.h"
#include "hlo/ir/bind.h"

enum { SMALL_CONSTANT = 64 };

/* Splats and short lists of integers (indices, sizes) become part of the code, which makes it faster.  Other constants,
 * such as weights, do not become part of it, so that one kernel serves instructions that differ only in these
 * constants.  For the same reason floats of rank 0 that are operands of a fusion do not become part of it
 * (lift_scalars.c). */
bool lower_is_embedded(const hlo_instr *i, uint32_t operand) {
  const literal *l = hlo_literal(i->operands[operand]);
  bool list = l && dtype_is_int((dtype)l->shape.type) && shape_bytes(&l->shape) <= SMALL_CONSTANT;
  bool lifted = l && i->op == HLO_FUSION && l->shape.rank == 0; /* see hlo/passes/fusion/lift_scalars.c */
  return list || (l && !lifted && literal_is_splat(l));
}

/* --- symbols --- */

typedef struct renaming {
  arena *arena;
  const dim_table *from;
  dim_table *to;
  lower_outline_symbols *symbols;
} renaming;

dim lower_outline_symbol(dim_table *t, uint32_t k) {
  char name[16];
  return dim_symbol_n(t, name, (size_t)snprintf(name, sizeof name, "s%u", k));
}

static void copy_hint(const renaming *r, dim d, dim symbol) {
  int64_t hint;
  if (dim_hint(r->from, d, &hint)) {
    dim_set_hint(r->to, symbol, hint);
  }
}

static bool symbol_of(void *data, dim d, dim *out) {
  renaming *r = data;
  lower_outline_symbols *s = r->symbols;
  uint32_t k = 0;
  while (k < s->n && s->sizes[k] != d) {
    k++;
  }
  *out = lower_outline_symbol(r->to, k);
  if (k == s->n) {
    *ARENA_PUSH(r->arena, s->sizes, s->n, s->cap) = d;
    copy_hint(r, d, *out);
  }
  return true;
}

static dim rename_dim(void *data, dim d) {
  renaming *r = data;
  return dim_translate(r->to, r->from, d, symbol_of, r);
}

/* --- copies --- */

static bool same_symbol(void *data, dim d, dim *out) {
  const renaming *r = data;
  if (dim_get_kind(r->from, d) != DIM_SYMBOL) {
    return false;
  }
  *out = dim_symbol(r->to, dim_name(r->from, d));
  copy_hint(r, d, *out);
  return true;
}

dim lower_outline_copy_dim(dim_table *to, const dim_table *from, dim d) {
  return dim_translate(to, from, d, same_symbol, &(renaming){.from = from, .to = to});
}

static dim keep_dim(void *data, dim d) {
  const renaming *r = data;
  return lower_outline_copy_dim(r->to, r->from, d);
}

/* The symbols keep their names.  They are not numbered again, since the copy may have its computations in another
 * order. */
hlo_instr *lower_outline_copy(arena *a, const hlo_instr *outlined) {
  const hlo_module *m = outlined->parent->module;
  hlo_module *copy = hlo_module_clone(a, m);
  copy->dims = dim_table_create(a);
  hlo_map_dims(copy, keep_dim, &(renaming){.from = m->dims, .to = copy->dims});
  return copy->entry->roots[0].def;
}

/* --- outlining --- */

hlo_instr *lower_outline(arena *a, const hlo_instr *i, lower_isolation how, int32_t packed,
                         lower_outline_symbols *symbols) {
  hlo_module *m = hlo_module_create(a, "kernel");
  hlo_computation *c = hlo_computation_create(m, "kernel");
  hlo_value *operands = ARENA_NEW_N(a, hlo_value, i->n_operands);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    bool embedded = lower_is_embedded(i, k) || i->operands[k].def->op == HLO_SIZES;
    bool stays = how == LOWER_OUTLINE_PROGRAM ? hlo_literal(i->operands[k]) != NULL : embedded;
    if ((int32_t)k == packed || !stays) {
      operands[k] = hlo_result(hlo_parameter(c, *hlo_shape(i->operands[k])), 0);
    }
  }
  for (uint32_t k = 0; k < i->n_operands; k++) {
    if (!operands[k].def) {
      operands[k] = hlo_result(hlo_instr_clone(c, NULL, i->operands[k].def, NULL), 0);
    }
  }
  hlo_instr *copy = hlo_instr_clone(c, NULL, i, operands);
  hlo_value *roots = ARENA_NEW_N(a, hlo_value, i->n_results);
  for (uint32_t k = 0; k < i->n_results; k++) {
    roots[k] = hlo_result(copy, k);
  }
  hlo_set_roots(c, i->n_results, roots);
  m->entry = c;
  for (uint32_t k = 0; k < m->n_computations; k++) { /* all get plain names, so that equal kernels have equal texts */
    m->computations[k]->name = arena_printf(a, "c%u", k);
    for (hlo_instr *j = m->computations[k]->first; j; j = j->next) {
      j->source = j->config = "";
    }
  }
  hlo_map_dims(m, rename_dim, &(renaming){a, i->parent->module->dims, m->dims, symbols});
  return copy;
}
