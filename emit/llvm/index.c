/* index.c - indices; see index.h. */
#include "emit/llvm/index.h"

#include <string.h>

emit_index *emit_index_new(const emit_indexer *x, int rank, const dim *dims) {
  emit_index *i = arena_alloc(x->w->arena, sizeof(emit_index) + (size_t)rank * sizeof(emit_axis));
  i->rank = rank;
  i->dims = dims;
  return i;
}

const emit_index *emit_index_reshape(const emit_indexer *x, const emit_index *i, int rank, const dim *dims) {
  if (i->rank == rank && memcmp(i->dims, dims, (size_t)rank * sizeof *dims) == 0) {
    return i;
  }
  emit_index *r = emit_index_new(x, 0, dims);
  r->rank = rank;
  r->reshaped = i->reshaped ? i->reshaped : i;
  return r;
}

/* Returns the linear position over dimensions [left, right) of p, modulo c.  If the product of the inner dimensions
 * divides c, only the outer ones need the modulo, so that lanes along the inner ones stay affine. */
static emit_pos range_modulo(const emit_indexer *x, const emit_index *p, int left, int right, dim c) {
  for (int k = left + 1; k < right; k++) {
    dim inner = emit_dims_product(x, p->dims, k, right);
    if (emit_divides(x, inner, c)) {
      emit_pos outer = emit_pos_mod(x, emit_index_range(x, p, left, k), emit_quotient(x, c, inner));
      return emit_pos_add(x, emit_pos_scale_by_size(x, outer, inner), emit_index_range(x, p, k, right));
    }
  }
  return emit_pos_mod(x, emit_index_range(x, p, left, right), c);
}

/* Returns the linear position over dimensions [first, last) of i, which is a reshape of an index in another shape.  It
 * is computed from the linear position over the smallest range of the other shape's dimensions that contains them, by a
 * division and a remainder where needed. */
static emit_pos reshaped_range(const emit_indexer *x, const emit_index *i, int first, int last) {
  const emit_index *p = i->reshaped;
  dim low = emit_dims_product(x, i->dims, last, i->rank), high = emit_dims_product(x, i->dims, first, i->rank);
  int right = p->rank;
  dim t_low = 1;
  for (int k = p->rank - 1; k >= 0; k--) {
    dim t = emit_dims_product(x, p->dims, k, p->rank);
    if (emit_divides(x, t, low)) {
      right = k;
      t_low = t;
    }
  }
  int left = right;
  dim t_high = t_low;
  while (left > 0 && !emit_divides(x, high, t_high)) {
    t_high = emit_dims_product(x, p->dims, --left, p->rank);
  }
  emit_pos r = emit_pos_div(x, emit_index_range(x, p, left, right), emit_quotient(x, low, t_low));
  if (t_high == high || first == 0) {
    return r;
  }
  dim n = emit_dims_product(x, i->dims, first, last);
  bool apart = low == t_low && emit_pos_mod_scatters(x, r, n);
  return apart ? range_modulo(x, p, left, right, n) : emit_pos_mod(x, r, n);
}

/* Returns how many dimensions ending with k are consecutive dimensions of one other index, so that their linear
 * position can be taken from that index.  All of them except the first must also have the extents that they have
 * there. */
static int run_length(const emit_index *i, int first, int k) {
  const emit_index *from = i->axes[k].from;
  int n = 1;
  while (from && k - n >= first && i->axes[k - n].from == from && i->axes[k - n].dim == i->axes[k].dim - n &&
         i->dims[k - n + 1] == from->dims[i->axes[k - n + 1].dim]) {
    n++;
  }
  return n;
}

emit_pos emit_index_range(const emit_indexer *x, const emit_index *i, int first, int last) {
  dim n = emit_dims_product(x, i->dims, first, last);
  bool empty = emit_dims_product(x, i->dims, 0, i->rank) == 0; /* an extent of 0 must not become a divisor */
  if (empty || n == 1) {
    return emit_pos_const(x, 0);
  }
  if (i->reshaped) {
    return reshaped_range(x, i, first, last);
  }
  emit_pos sum = emit_pos_const(x, 0);
  for (int k = last - 1; k >= first;) {
    if (i->dims[k] == 1) {
      k--;
      continue;
    }
    int run = run_length(i, first, k);
    const emit_axis *a = &i->axes[k];
    emit_pos p = a->from ? emit_index_range(x, a->from, a->dim - run + 1, a->dim + 1) : a->pos;
    sum = emit_pos_add(x, sum, emit_pos_scale_by_size(x, p, emit_dims_product(x, i->dims, k + 1, last)));
    k -= run;
  }
  return sum;
}
