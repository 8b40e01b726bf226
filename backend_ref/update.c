/* update.c - operations whose result is their first operand with some elements changed. */
#include <string.h>

#include "backend_ref/ref.h"

/* Makes result 0 a copy of operand 0. */
static char *copy_operand(ref_call *c) {
  char *r = ref_result(c, 0);
  size_t bytes = (size_t)shape_bytes(&c->out[0].shape);
  if (bytes) {
    memcpy(r, c->in[0].data, bytes);
  }
  return r;
}

status ref_dynamic_update_slice(ref_call *c) {
  const shape *x = &c->in[0].shape, *update = &c->in[1].shape;
  size_t size = dtype_bytes((dtype)x->type);
  char *r = copy_operand(c);
  ref_box b = {.rank = x->rank};
  memcpy(b.extents, update->dims, sizeof b.extents);
  shape_strides(x, b.to);
  shape_strides(update, b.from);
  int64_t base = 0;
  for (int d = 0; d < x->rank; d++) {
    base += ref_clamp(literal_i64(&c->in[2], d), x->dims[d] - update->dims[d]) * b.to[d];
  }
  if (shape_elements(update)) {
    ref_move(size, &b, r + base * (int64_t)size, c->in[1].data);
  }
  return NULL;
}

/* Computes old = kernel(old, update) for one element; if `kernel` is NULL, `update` replaces `old`. */
static void combine(dtype t, ref_class class, ref_kernel *kernel, void *old, const void *update) {
  if (!kernel) {
    memcpy(old, update, dtype_bytes(t));
    return;
  }
  double x[2], y[2], r[2]; /* room for one number of any ref_class */
  kernel(ref_load(t, class, old, 0, 1, x), ref_load(t, class, update, 0, 1, y), r, 1, 0);
  ref_store(t, class, r, old, 0, 1);
}

typedef struct scatter {
  ref_windows w;
  const shape *x;
  int64_t strides[SHAPE_MAX_RANK]; /* the strides of x */
  int64_t sizes[SHAPE_MAX_RANK];   /* the sizes of a window in each dim of x */
} scatter;

static void scatter_init(scatter *s, const ref_call *c) {
  const shape *updates = &c->in[2].shape;
  s->x = &c->in[0].shape;
  ref_windows_init(&s->w, c->i, updates);
  shape_strides(s->x, s->strides);
  for (int d = 0; d < s->x->rank; d++) {
    s->sizes[d] = 1;
  }
  for (int k = 0; k < s->w.n_window; k++) {
    s->sizes[s->w.operand_dim[k]] = updates->dims[s->w.outer_dim[k]];
  }
}

/* Returns the offset in x of the window of update `index`; -1 if it does not fit. */
static int64_t window_at(const scatter *s, const literal *indices, const int64_t *index) {
  int64_t start[SHAPE_MAX_RANK];
  ref_windows_start(&s->w, indices, s->x->rank, index, start);
  for (int d = 0; d < s->x->rank; d++) {
    if (start[d] < 0 || start[d] > s->x->dims[d] - s->sizes[d]) {
      return -1;
    }
  }
  return ref_offset(s->x->rank, s->strides, start);
}

/* The order in which updates are applied, which decides the result where windows overlap: one window after the other,
 * each in row-major order. */
typedef struct update_order {
  int rank, dims[SHAPE_MAX_RANK];  /* the dimensions of the updates, the outermost loop's first */
  int64_t extents[SHAPE_MAX_RANK]; /* their extents, in this order */
  int64_t at[SHAPE_MAX_RANK];      /* the index of the current update, in this order */
} update_order;

static update_order order_of(const ref_windows *w, const shape *updates) {
  update_order o = {.rank = updates->rank};
  memcpy(o.dims, w->batch_dim, (size_t)w->n_batch * sizeof *o.dims);
  memcpy(o.dims + w->n_batch, w->outer_dim, (size_t)w->n_window * sizeof *o.dims);
  for (int k = 0; k < o.rank; k++) {
    o.extents[k] = updates->dims[o.dims[k]];
  }
  return o;
}

status ref_scatter(ref_call *c) {
  const shape *updates = &c->in[2].shape;
  hlo_reducer reducer = (hlo_reducer)hlo_int(c->i, HLO_ATTR_REDUCER);
  dtype t = (dtype)updates->type;
  ref_class class = ref_class_of(t);
  ref_kernel *kernel = reducer == HLO_REDUCE_REPLACE ? NULL : ref_binary_kernel(hlo_reducer_op(reducer), class);
  if (reducer != HLO_REDUCE_REPLACE && (!kernel || t == DTYPE_STR)) {
    return ref_unsupported(c->i);
  }
  char *r = copy_operand(c);
  int64_t index[SHAPE_MAX_RANK] = {0}, strides[SHAPE_MAX_RANK], n = shape_elements(updates);
  size_t size = dtype_bytes(t);
  scatter s;
  scatter_init(&s, c);
  shape_strides(updates, strides);
  update_order o = order_of(&s.w, updates);
  for (int64_t k = 0; k < n; k++, ref_next(o.rank, o.extents, o.at)) {
    for (int d = 0; d < o.rank; d++) {
      index[o.dims[d]] = o.at[d];
    }
    TRY(ref_work(c, 8)); /* an update takes as long as 8 elements of other operations */
    int64_t at = window_at(&s, &c->in[1], index);
    if (at < 0) {
      continue;
    }
    for (int d = 0; d < s.w.n_window; d++) {
      at += index[s.w.outer_dim[d]] * s.strides[s.w.operand_dim[d]];
    }
    combine(t, class, kernel, r + at * (int64_t)size,
            (const char *)c->in[2].data + ref_offset(o.rank, strides, index) * (int64_t)size);
  }
  return NULL;
}
