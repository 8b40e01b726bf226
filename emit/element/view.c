/* view.c - strides of views; see view.h. */
#include "emit/element/view.h"

#include <string.h>

static int skip_ones(const shape *s, int d) {
  while (d < s->rank && s->dims[d] == 1) {
    d++;
  }
  return d;
}

/* n and m are two products of sizes that are not equal.  Returns true if n must be multiplied by further sizes to
 * become equal to m, and false if m must.  Sets *unknown if they are not both constants and neither is known to divide
 * the other. */
static bool first_grows(dim_table *t, dim n, dim m, bool *unknown) {
  if (dim_is_const(n) && dim_is_const(m)) {
    return n < m;
  }
  bool first = n != 0 && dim_mod(t, m, n) == 0;
  *unknown |= !first && (m == 0 || dim_mod(t, n, m) != 0);
  return first;
}

/* An array of shape `from` with the strides `given` is reshaped to `to`, which has as many elements; if the shapes are
 * static, they have at least one.  Sets out to the strides of the reshaped array.  Returns false if it has no strides.
 */
static bool reshape_strides(dim_table *table, const shape *from, const dim *given, const shape *to, dim *out) {
  memset(out, 0, sizeof *out * SHAPE_MAX_RANK);
  int f = skip_ones(from, 0), t = skip_ones(to, 0);
  while (f < from->rank && t < to->rank) { /* finds the next dimensions of both shapes that have the same product */
    dim n = from->dims[f], m = to->dims[t];
    int last_f = f, last_t = t;
    while (n != m) {
      bool unknown = false, first = first_grows(table, n, m, &unknown);
      int *last = first ? &last_f : &last_t;
      const shape *s = first ? from : to;
      *last = skip_ones(s, *last + 1);
      if (unknown || *last >= s->rank) {
        return false;
      }
      dim *product = first ? &n : &m;
      *product = dim_mul(table, *product, s->dims[*last]);
    }
    dim stride = given[last_f];
    for (int d = last_f, inner = last_f; --d >= f;) {
      if (from->dims[d] != 1 && given[d] != dim_mul(table, given[inner], from->dims[inner])) {
        return false;
      }
      inner = from->dims[d] != 1 ? d : inner;
    }
    for (int d = last_t; d >= t; d--) {
      out[d] = stride;
      stride = dim_mul(table, stride, to->dims[d]);
    }
    f = skip_ones(from, last_f + 1);
    t = skip_ones(to, last_t + 1);
  }
  return true;
}

/* At first, x describes i's operand as a view of some array.  Changes x so that it describes i's result as a view of
 * that array.  Returns false if this view has no strides. */
static bool step(const hlo_instr *i, emit_view *x) {
  const shape *s = &i->shapes[0];
  dim_table *t = i->parent->module->dims;
  dim before[SHAPE_MAX_RANK];
  memcpy(before, x->strides, sizeof before);
  switch (i->op) {
    case HLO_RESHAPE: return reshape_strides(t, hlo_shape(i->operands[0]), before, s, x->strides);
    case HLO_TRANSPOSE:
      for (int d = 0; d < s->rank; d++) {
        x->strides[d] = before[hlo_ints(i, HLO_ATTR_PERMUTATION)[d]];
      }
      return true;
    case HLO_SLICE:
      for (int d = 0; d < s->rank; d++) {
        x->offset = dim_add(t, x->offset, dim_mul(t, hlo_ints(i, HLO_ATTR_STARTS)[d], before[d]));
        x->strides[d] = dim_mul(t, hlo_ints(i, HLO_ATTR_STRIDES)[d], before[d]);
      }
      return true;
    case HLO_BROADCAST:
      memset(x->strides, 0, sizeof x->strides);
      for (int d = 0; d < hlo_rank(i->operands[0]); d++) {
        x->strides[hlo_ints(i, HLO_ATTR_DIMENSIONS)[d]] = hlo_shape(i->operands[0])->dims[d] == 1 ? 0 : before[d];
      }
      return true;
    default: return false;
  }
}

bool emit_view_of(hlo_value v, hlo_value base, emit_view *out) {
  enum { DEEPEST = 16 };
  const hlo_instr *way[DEEPEST];
  int n = 0;
  for (; !hlo_value_equal(v, base); v = v.def->operands[0]) {
    if (n == DEEPEST || v.def->n_operands != 1) {
      return false;
    }
    way[n++] = v.def;
  }
  memset(out, 0, sizeof *out);
  shape_dim_strides(base.def->parent->module->dims, hlo_shape(base), out->strides);
  while (n > 0) {
    if (!step(way[--n], out)) {
      return false;
    }
  }
  return true;
}

/* --- which dimension is innermost in memory --- */

/* Returns the first operand of the elementwise operation i that is neither a broadcast nor a constant, or the last
 * operand if there is none. */
static hlo_value main_operand(const hlo_instr *i) {
  uint32_t k = 0;
  while (k + 1 < i->n_operands && (i->operands[k].def->op == HLO_BROADCAST || hlo_literal(i->operands[k]))) {
    k++;
  }
  return i->operands[k];
}

/* *v is a reshape.  If its dimension *d is the innermost one and its operand has the same innermost dimension, replaces
 * *v by the operand and *d by the number of that dimension, and returns true. */
static bool behind_reshape(hlo_value *v, int *d) {
  hlo_value from = v->def->operands[0];
  int rank = hlo_rank(from);
  bool same = *d == hlo_rank(*v) - 1 && rank > 0 && hlo_shape(*v)->dims[*d] == hlo_shape(from)->dims[rank - 1];
  if (same) {
    *v = from;
    *d = rank - 1;
  }
  return same;
}

bool emit_is_innermost(hlo_value v, int d) {
  for (;;) {
    const hlo_instr *i = v.def;
    if (i->op == HLO_RESHAPE) {
      if (!behind_reshape(&v, &d)) {
        return d == hlo_rank(v) - 1;
      }
      continue;
    }
    if (i->op == HLO_TRANSPOSE) {
      d = (int)hlo_ints(i, HLO_ATTR_PERMUTATION)[d];
    } else if (i->op == HLO_BROADCAST) {
      d = hlo_find_int(i, HLO_ATTR_DIMENSIONS, d);
      if (d < 0) {
        return false;
      }
    } else if (i->op != HLO_SLICE && (hlo_info(i)->kind != HLO_ELEMENTWISE || i->n_operands == 0)) {
      return d == hlo_rank(v) - 1;
    }
    v = hlo_info(i)->kind == HLO_ELEMENTWISE ? main_operand(i) : i->operands[0];
  }
}
