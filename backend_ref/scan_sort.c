/* scan_sort.c - cumulative operations, sorting and non-maximum suppression, which work along one dimension. */
#include <string.h>

#include "backend_ref/ref.h"
#include "base/nms.h"

/* --- cumulative operations --- */

/* The operand is seen as [outer][n][inner], where n is the dimension along which elements are accumulated (ref_lines).
 * For each outer index, all `inner` accumulations advance together, by one element of each at a time. */
status ref_cumulative(ref_call *c) {
  const shape *x = &c->in[0].shape;
  dtype t = (dtype)x->type;
  hlo_reducer reducer = (hlo_reducer)hlo_int(c->i, HLO_ATTR_REDUCER);
  bool exclusive = hlo_int(c->i, HLO_ATTR_EXCLUSIVE), backward = hlo_int(c->i, HLO_ATTR_BACKWARD);
  ref_class class = ref_sum_class(t);
  ref_row_kernel *kernel = ref_row(reducer, class);
  if (!kernel) {
    return ref_unsupported(c->i);
  }
  ref_lines l = ref_lines_of(x, hlo_int(c->i, HLO_ATTR_DIMENSION));
  void *acc = arena_calloc(ref_scratch(c), (size_t)l.inner, ref_class_bytes(class));
  void *row = arena_calloc(ref_scratch(c), (size_t)l.inner, ref_class_bytes(class));
  void *r = ref_result(c, 0);
  for (int64_t o = 0; o < l.outer; o++) {
    ref_identity(reducer, t, class, acc, l.inner);
    for (int64_t k = 0; k < l.n; k++) {
      int64_t first = (o * l.n + (backward ? l.n - 1 - k : k)) * l.inner;
      if (exclusive) {
        ref_store(t, class, acc, r, first, l.inner);
      }
      kernel(acc, ref_load(t, class, c->in[0].data, first, l.inner, row), 1, 1, l.inner);
      if (!exclusive) {
        ref_store(t, class, acc, r, first, l.inner);
      }
      TRY(ref_work(c, l.inner));
    }
  }
  return NULL;
}

/* --- sort --- */

/* The keys of one line: the elements of the first operand along the sorted dimension, for one index in the other
 * dimensions. */
typedef struct keys {
  ref_class class; /* the C type to which the keys are converted, so that they can be compared (ref.h) */
  bool descending;
  const char *values; /* the address of the first key */
  int64_t step;       /* the distance from one key to the next in bytes */
} keys;

static bool goes_first(const keys *k, int64_t x, int64_t y) {
  int order = ref_order(k->class, k->values + x * k->step, k->values + y * k->step);
  return k->descending ? order > 0 : order < 0;
}

/* Merges the sorted runs [0, middle) and [middle, n) of `from` into `to`.  Of equal keys those of the first run come
 * first. */
static void merge(const keys *k, const int64_t *from, int64_t middle, int64_t n, int64_t *to) {
  int64_t x = 0, y = middle;
  for (int64_t at = 0; at < n; at++) {
    bool second = x == middle || (y < n && goes_first(k, from[y], from[x]));
    to[at] = second ? from[y++] : from[x++];
  }
}

/* Sorts the positions of the n keys by their values.  Sets *sorted to `order` or `other`, whichever holds the sorted
 * positions in the end. */
static status sort_line(ref_call *c, const keys *k, int64_t n, int64_t *order, int64_t *other, const int64_t **sorted) {
  for (int64_t i = 0; i < n; i++) {
    order[i] = i;
  }
  for (int64_t width = 1; width < n; width *= 2) {
    for (int64_t i = 0; i < n; i += 2 * width) {
      int64_t end = n - i < 2 * width ? n - i : 2 * width;
      merge(k, order + i, width < end ? width : end, end, other + i);
      TRY(ref_work(c, end));
    }
    int64_t *swap = order;
    order = other;
    other = swap;
  }
  *sorted = order;
  return NULL;
}

static void permute(ref_call *c, uint32_t operand, const ref_lines *l, int64_t first, const int64_t *order) {
  size_t size = dtype_bytes((dtype)c->in[operand].shape.type);
  const char *from = c->in[operand].data;
  char *to = (char *)c->out[operand].data;
  for (int64_t k = 0; k < l->n; k++) {
    memcpy(to + (size_t)(first + k * l->inner) * size, from + (size_t)(first + order[k] * l->inner) * size, size);
  }
}

status ref_sort(ref_call *c) {
  const shape *x = &c->in[0].shape;
  dtype t = (dtype)x->type;
  ref_lines l = ref_lines_of(x, hlo_int(c->i, HLO_ATTR_DIMENSION));
  keys k = {.class = ref_class_of(t), .descending = hlo_int(c->i, HLO_ATTR_DESCENDING)};
  if (k.class == REF_C128 || t == DTYPE_STR) {
    return ref_unsupported(c->i);
  }
  const char *values = ref_load_all(c, &c->in[0], k.class);
  int64_t size = (int64_t)ref_class_bytes(k.class);
  int64_t *order = ARENA_NEW_N(ref_scratch(c), int64_t, (size_t)l.n);
  int64_t *other = ARENA_NEW_N(ref_scratch(c), int64_t, (size_t)l.n);
  k.step = l.inner * size;
  for (uint32_t j = 0; j < c->i->n_operands; j++) {
    ref_result(c, j);
  }
  for (int64_t line = 0; line < l.outer * l.inner && l.n; line++) {
    int64_t first = line / l.inner * l.n * l.inner + line % l.inner;
    k.values = values + first * size;
    const int64_t *sorted;
    TRY(sort_line(c, &k, l.n, order, other, &sorted));
    for (uint32_t j = 0; j < c->i->n_operands; j++) {
      permute(c, j, &l, first, sorted);
      TRY(ref_work(c, l.n));
    }
  }
  return NULL;
}

/* --- non-maximum suppression --- */

status ref_nms(ref_call *c) {
  const shape *scores = &c->in[1].shape;
  const int64_t *most = c->in[2].data;
  const float *overlap = c->in[3].data;
  int64_t boxes = scores->dims[2], lines = scores->dims[0] * scores->dims[1];
  nms p = {.batches = scores->dims[0],
           .classes = scores->dims[1],
           .boxes = boxes,
           .limit = hlo_nms_room(c->i),
           .most = *most,
           .corners = c->in[0].data,
           .scores = c->in[1].data,
           .overlap = *overlap,
           .floor = c->i->n_operands > 4 ? c->in[4].data : NULL};
  int64_t *rows = ref_result(c, 0), *total = ref_result(c, 1);
  int64_t *counts = ARENA_NEW_N(ref_scratch(c), int64_t, (size_t)lines + 1);
  void *scratch = arena_alloc_aligned(ref_scratch(c), nms_scratch(p.boxes, p.limit), 64);
  for (int64_t line = 0; line < lines; line++) {
    counts[line] = nms_line(&p, line, scratch, rows, arena_budget(c->a));
    TRY(ref_work(c, p.boxes + 1));
  }
  *total = nms_join(&p, counts, rows);
  return ref_check_budget(c);
}
