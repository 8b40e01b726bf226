/* window.c - reductions over sliding windows. */
#include <string.h>

#include "backend_ref/ref.h"

typedef struct window {
  int rank;
  const int64_t *extents, *strides, *low, *dilation;
  int64_t operand[SHAPE_MAX_RANK]; /* the strides of the operand */
} window;

static window window_of(const ref_call *c) {
  const hlo_instr *i = c->i;
  window w = {.rank = c->in[0].shape.rank,
              .extents = hlo_ints(i, HLO_ATTR_WINDOW),
              .strides = hlo_ints(i, HLO_ATTR_STRIDES),
              .low = hlo_ints(i, HLO_ATTR_LOW),
              .dilation = hlo_ints(i, HLO_ATTR_RHS_DILATION)};
  shape_strides(&c->in[0].shape, w.operand);
  return w;
}

/* The part of a window that lies inside the operand. */
typedef struct visible {
  /* Along each dimension: the number of elements, and their distance in the operand. */
  int64_t count[SHAPE_MAX_RANK], steps[SHAPE_MAX_RANK];
  int64_t base; /* the offset of the first element */
} visible;

/* Finds the part of the window for result index `index` that lies inside the operand.  Returns false if the window is
 * all padding. */
static bool see(const window *w, const shape *x, const int64_t *index, visible *v) {
  v->base = 0;
  for (int d = 0; d < w->rank; d++) {
    int64_t start = index[d] * w->strides[d] - w->low[d], step = w->dilation[d];
    int64_t first = start < 0 ? (-start + step - 1) / step : 0;
    int64_t end = x->dims[d] - start <= 0 ? 0 : (x->dims[d] - start - 1) / step + 1;
    end = end < w->extents[d] ? end : w->extents[d];
    if (end <= first) {
      return false;
    }
    v->count[d] = end - first;
    /* the step of a single element is not used and could overflow */
    v->steps[d] = v->count[d] > 1 ? step * w->operand[d] : 0;
    v->base += (start + first * step) * w->operand[d];
  }
  return true;
}

status ref_reduce_window(ref_call *c) {
  const shape *x = &c->in[0].shape, *out = &c->out[0].shape;
  dtype t = (dtype)x->type;
  hlo_reducer reducer = (hlo_reducer)hlo_int(c->i, HLO_ATTR_REDUCER);
  ref_class class = ref_sum_class(t);
  ref_row_kernel *kernel = ref_row(reducer, class);
  if (!kernel) {
    return ref_unsupported(c->i);
  }
  const char *values = ref_load_all(c, &c->in[0], class);
  char *acc = ref_begin(c, 0, class);
  int64_t n = shape_elements(out), size = (int64_t)ref_class_bytes(class), index[SHAPE_MAX_RANK] = {0};
  ref_identity(reducer, t, class, acc, n);
  window w = window_of(c);
  int inner = w.rank - 1;
  for (int64_t k = 0; k < n; k++, ref_next(out->rank, out->dims, index)) {
    visible v;
    if (see(&w, x, index, &v)) {
      int64_t at[SHAPE_MAX_RANK] = {0};
      do {
        int64_t m = w.rank ? v.count[inner] : 1;
        kernel(acc + k * size, values + (v.base + ref_offset(inner, v.steps, at)) * size, 0,
               w.rank ? v.steps[inner] : 1, m);
        TRY(ref_work(c, m));
      } while (ref_next(inner, v.count, at));
    }
    TRY(ref_work(c, 1));
  }
  ref_finish(c, 0, class, acc);
  return NULL;
}

/* Returns the offset of the largest element: the first of equal ones, or the first NaN if there is one. */
static int64_t largest(const window *w, const visible *v, ref_class class, const char *values) {
  int64_t best = v->base, at[SHAPE_MAX_RANK] = {0}, size = (int64_t)ref_class_bytes(class);
  do {
    int64_t k = v->base + ref_offset(w->rank, v->steps, at);
    if (ref_order(class, values + k * size, values + best * size) > 0) {
      best = k;
    }
  } while (ref_next(w->rank, v->count, at));
  return best;
}

status ref_arg_reduce_window(ref_call *c) {
  const shape *x = &c->in[0].shape, *out = &c->out[0].shape;
  ref_class class = ref_class_of((dtype)x->type);
  const char *values = ref_load_all(c, &c->in[0], class);
  int64_t *r = ref_begin(c, 0, REF_S64), n = shape_elements(out), index[SHAPE_MAX_RANK] = {0};
  window w = window_of(c);
  for (int64_t k = 0; k < n; k++, ref_next(out->rank, out->dims, index)) {
    visible v;
    bool seen = see(&w, x, index, &v);
    r[k] = seen ? largest(&w, &v, class, values) : -1;
    int64_t m = 1;
    for (int d = 0; seen && d < w.rank; d++) {
      m *= v.count[d];
    }
    TRY(ref_work(c, m));
  }
  ref_finish(c, 0, REF_S64, r);
  return NULL;
}
