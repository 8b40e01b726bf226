/* movement.c - operations that only move elements.  Nearly all of them copy one box of elements, with strides in the
 * source and in the destination (ref_box). */
#include <string.h>

#include "backend_ref/ref.h"
#include "hlo/ir/fold_sizes.h"

/* --- boxes --- */

bool ref_next(int rank, const int64_t *extents, int64_t *index) {
  for (int d = rank - 1; d >= 0; d--) {
    if (++index[d] < extents[d]) {
      return true;
    }
    index[d] = 0;
  }
  return false;
}

int64_t ref_offset(int rank, const int64_t *strides, const int64_t *index) {
  int64_t offset = 0;
  for (int d = 0; d < rank; d++) {
    offset += index[d] * strides[d];
  }
  return offset;
}

/* Drops dimensions of one element, and merges neighbouring dimensions that are contiguous in both source and
 * destination. */
static ref_box simplify(const ref_box *b) {
  ref_box r = {.rank = 0};
  for (int d = 0; d < b->rank; d++) {
    int last = r.rank - 1;
    if (b->extents[d] == 1) {
      continue;
    }
    if (r.rank && r.to[last] == b->to[d] * b->extents[d] && r.from[last] == b->from[d] * b->extents[d]) {
      r.extents[last] *= b->extents[d];
    } else {
      last = r.rank++;
      r.extents[last] = b->extents[d];
    }
    r.to[last] = b->to[d];
    r.from[last] = b->from[d];
  }
  return r;
}

/* The source need not be aligned. */
#define MOVE_ROW(T)                                                           \
  do {                                                                        \
    T *d = dst;                                                               \
    for (int64_t k = 0; k < n; k++) {                                         \
      memcpy(&d[k * to], (const char *)src + k * from * (int64_t)size, size); \
    }                                                                         \
  } while (0)

typedef struct pair {
  uint64_t first, second;
} pair;

static void move_row(size_t size, int64_t n, void *dst, int64_t to, const void *src, int64_t from) {
  if (to == 1 && from == 1) {
    memcpy(dst, src, (size_t)n * size);
    return;
  }
  switch (size) {
    case 1: MOVE_ROW(uint8_t); break;
    case 2: MOVE_ROW(uint16_t); break;
    case 4: MOVE_ROW(uint32_t); break;
    case 8: MOVE_ROW(uint64_t); break;
    default: /* c128 */ MOVE_ROW(pair); break;
  }
}

void ref_move(size_t size, const ref_box *b, void *dst, const void *src) {
  for (int d = 0; d < b->rank; d++) {
    if (b->extents[d] <= 0) {
      return;
    }
  }
  ref_box r = simplify(b);
  if (r.rank == 0) {
    memcpy(dst, src, size);
    return;
  }
  int outer = r.rank - 1;
  int64_t index[SHAPE_MAX_RANK] = {0}, bytes = (int64_t)size;
  do {
    move_row(size, r.extents[outer], (char *)dst + ref_offset(outer, r.to, index) * bytes, r.to[outer],
             (const char *)src + ref_offset(outer, r.from, index) * bytes, r.from[outer]);
  } while (ref_next(outer, r.extents, index));
}

static size_t element_size(const ref_call *c) { return dtype_bytes((dtype)c->out[0].shape.type); }

static const void *element(const ref_call *c, uint32_t operand, int64_t offset) {
  return (const char *)c->in[operand].data + offset * (int64_t)element_size(c);
}

/* Returns a box for the whole of result 0.  Its strides in the operand are 0; the caller sets them. */
static ref_box result_box(const ref_call *c) {
  const shape *s = &c->out[0].shape;
  ref_box b = {.rank = s->rank};
  memcpy(b.extents, s->dims, sizeof b.extents);
  shape_strides(s, b.to);
  return b;
}

/* --- operations --- */

status ref_copy(ref_call *c) {
  ref_alias(c);
  return NULL;
}

/* Result 0, whose contents are undefined, has zeros, as new memory has, so that all runs give the same. */
status ref_empty(ref_call *c) {
  (void)ref_result(c, 0);
  return NULL;
}

/* Evaluates an array of sizes, which must be constants: before a module with symbolic dimensions is evaluated, its
 * symbols are replaced by numbers (hlo/ir/bind.h). */
status ref_sizes(ref_call *c) {
  int64_t values[HLO_MAX_SIZES];
  int n = (int)hlo_n_ints(c->i, HLO_ATTR_ELEMENTS);
  CHECK_THAT(n <= HLO_MAX_SIZES &&
                 hlo_constant_sizes(c->i->parent->module->dims, n, hlo_ints(c->i, HLO_ATTR_ELEMENTS), values),
             STATUS_UNSUPPORTED, "the elements are not constants");
  literal l = hlo_sizes_literal(c->a, c->out[0].shape, values);
  memcpy(ref_result(c, 0), l.data, (size_t)shape_bytes(&l.shape));
  return NULL;
}

/* Writes one line of indices and broadcasts it along the other dimensions. */
status ref_iota(ref_call *c) {
  int64_t dimension = hlo_int(c->i, HLO_ATTR_DIMENSION);
  ref_box b = result_box(c);
  int64_t n = b.extents[dimension], *indices = ARENA_NEW_N(ref_scratch(c), int64_t, (size_t)n);
  for (int64_t k = 0; k < n; k++) {
    indices[k] = k;
  }
  void *line = arena_calloc(ref_scratch(c), (size_t)n, element_size(c));
  dtype_convert(DTYPE_S64, indices, (dtype)c->out[0].shape.type, line, (size_t)n, false, DTYPE_ROUND_NEAREST);
  b.from[dimension] = 1;
  ref_move(element_size(c), &b, ref_result(c, 0), line);
  return NULL;
}

status ref_broadcast(ref_call *c) {
  const int64_t *dimensions = hlo_ints(c->i, HLO_ATTR_DIMENSIONS);
  const shape *x = &c->in[0].shape;
  int64_t strides[SHAPE_MAX_RANK];
  shape_strides(x, strides);
  ref_box b = result_box(c);
  for (int d = 0; d < x->rank; d++) {
    b.from[dimensions[d]] = x->dims[d] == 1 ? 0 : strides[d];
  }
  ref_move(element_size(c), &b, ref_result(c, 0), c->in[0].data);
  return NULL;
}

/* Sets result 0 to the elements of the box in operand 0, whose first element has the number `base`.  Elements that are
 * contiguous in a constant are not copied: weights may be large parts of a model's file. */
static void move_elements(ref_call *c, const ref_box *b, int64_t base) {
  ref_box simple = simplify(b);
  bool contiguous = simple.rank == 0 || (simple.rank == 1 && simple.from[0] == 1);
  if (contiguous && !c->pool && shape_elements(&c->out[0].shape)) {
    c->out[0].data = element(c, 0, base);
  } else {
    void *r = ref_result(c, 0);
    if (shape_elements(&c->out[0].shape)) {
      ref_move(element_size(c), b, r, element(c, 0, base));
    }
  }
}

status ref_transpose(ref_call *c) {
  const int64_t *permutation = hlo_ints(c->i, HLO_ATTR_PERMUTATION);
  int64_t strides[SHAPE_MAX_RANK];
  shape_strides(&c->in[0].shape, strides);
  ref_box b = result_box(c);
  for (int d = 0; d < b.rank; d++) {
    b.from[d] = strides[permutation[d]];
  }
  move_elements(c, &b, 0);
  return NULL;
}

status ref_reverse(ref_call *c) {
  ref_box b = result_box(c);
  int64_t base = 0;
  shape_strides(&c->in[0].shape, b.from);
  for (uint32_t k = 0; k < hlo_n_ints(c->i, HLO_ATTR_DIMENSIONS); k++) {
    int64_t d = hlo_ints(c->i, HLO_ATTR_DIMENSIONS)[k];
    base += (b.extents[d] - 1) * b.from[d];
    b.from[d] = -b.from[d];
  }
  move_elements(c, &b, base);
  return NULL;
}

status ref_slice(ref_call *c) {
  ref_box b = result_box(c);
  int64_t strides[SHAPE_MAX_RANK];
  shape_strides(&c->in[0].shape, strides);
  for (int d = 0; d < b.rank; d++) {
    /* the stride of a single element is not used and could overflow */
    b.from[d] = b.extents[d] > 1 ? strides[d] * hlo_ints(c->i, HLO_ATTR_STRIDES)[d] : 0;
  }
  move_elements(c, &b, ref_offset(b.rank, strides, hlo_ints(c->i, HLO_ATTR_STARTS)));
  return NULL;
}

status ref_dynamic_slice(ref_call *c) {
  const shape *x = &c->in[0].shape;
  ref_box b = result_box(c);
  shape_strides(x, b.from);
  int64_t base = 0;
  for (int d = 0; d < b.rank; d++) {
    base += ref_clamp(literal_i64(&c->in[1], d), x->dims[d] - b.extents[d]) * b.from[d];
  }
  move_elements(c, &b, base);
  return NULL;
}

/* Element k of n is put at position low + k * step.  Sets *first to the number of the first element that is put into
 * [0, limit), and returns how many elements are put there. */
static int64_t landing(int64_t n, int64_t low, int64_t step, int64_t limit, int64_t *first) {
  *first = low < 0 ? (-low + step - 1) / step : 0;
  int64_t end = limit - low <= 0 ? 0 : (limit - low - 1) / step + 1;
  end = end < n ? end : n;
  return end > *first ? end - *first : 0;
}

status ref_pad(ref_call *c) {
  const shape *x = &c->in[0].shape;
  size_t size = element_size(c);
  ref_box all = result_box(c), b = all;
  void *r = ref_result(c, 0);
  memset(all.from, 0, sizeof all.from);
  ref_move(size, &all, r, c->in[1].data);
  int64_t from = 0, to = 0;
  shape_strides(x, b.from);
  for (int d = 0; d < b.rank; d++) {
    int64_t low = hlo_ints(c->i, HLO_ATTR_LOW)[d], step = hlo_ints(c->i, HLO_ATTR_INTERIOR)[d] + 1, first;
    b.extents[d] = landing(x->dims[d], low, step, all.extents[d], &first);
    from += first * b.from[d];
    to += (low + first * step) * b.to[d];
    b.to[d] *= b.extents[d] > 1 ? step : 0; /* the step of a single element is not used and could overflow */
    if (b.extents[d] == 0) {
      return NULL;
    }
  }
  ref_move(size, &b, (char *)r + to * (int64_t)size, element(c, 0, from));
  return NULL;
}

status ref_concatenate(ref_call *c) {
  int64_t dimension = hlo_int(c->i, HLO_ATTR_DIMENSION), at = 0;
  ref_box b = result_box(c);
  char *r = ref_result(c, 0);
  for (uint32_t k = 0; k < c->i->n_operands; k++) {
    const shape *x = &c->in[k].shape;
    b.extents[dimension] = x->dims[dimension];
    shape_strides(x, b.from);
    ref_move(element_size(c), &b, r + at * b.to[dimension] * (int64_t)element_size(c), c->in[k].data);
    at += x->dims[dimension];
  }
  return NULL;
}

/* --- gather, and what it shares with scatter --- */

void ref_windows_init(ref_windows *w, const hlo_instr *i, const shape *outer) {
  const shape *operand = hlo_shape(i->operands[0]), *indices = hlo_shape(i->operands[1]);
  int64_t strides[SHAPE_MAX_RANK], vector = hlo_int(i, HLO_ATTR_INDEX_VECTOR_DIM);
  int n = 0;
  shape_strides(indices, strides);
  *w = (ref_windows){.n_map = (int)hlo_n_ints(i, HLO_ATTR_INDEX_MAP), .map = hlo_ints(i, HLO_ATTR_INDEX_MAP)};
  w->vector_stride = vector < indices->rank ? strides[vector] : 0;
  for (int d = 0; d < operand->rank; d++) {
    int batch = hlo_find_int(i, HLO_ATTR_OPERAND_BATCH, d);
    w->batch_of[d] = -1;
    if (batch >= 0) {
      int64_t of_indices = hlo_ints(i, HLO_ATTR_INDICES_BATCH)[batch];
      w->batch_of[d] = (int)(of_indices > vector ? of_indices - 1 : of_indices);
    } else if (!hlo_has_int(i, HLO_ATTR_COLLAPSED_DIMS, d)) {
      w->operand_dim[n++] = d;
    }
  }
  for (int d = 0, from = 0; d < outer->rank; d++) {
    if (hlo_has_int(i, HLO_ATTR_OFFSET_DIMS, d)) {
      w->outer_dim[w->n_window++] = d;
    } else {
      from += from == vector;
      w->batch_dim[w->n_batch] = d;
      w->index_stride[w->n_batch++] = strides[from++];
    }
  }
}

void ref_windows_start(const ref_windows *w, const literal *indices, int rank, const int64_t *index, int64_t *start) {
  int64_t base = 0;
  for (int k = 0; k < w->n_batch; k++) {
    base += index[w->batch_dim[k]] * w->index_stride[k];
  }
  for (int d = 0; d < rank; d++) {
    start[d] = w->batch_of[d] >= 0 ? index[w->batch_dim[w->batch_of[d]]] : 0;
  }
  for (int k = 0; k < w->n_map; k++) {
    start[w->map[k]] = literal_i64(indices, base + k * w->vector_stride);
  }
}

/* Copies one window of the operand for each index vector. */
status ref_gather(ref_call *c) {
  const shape *x = &c->in[0].shape, *out = &c->out[0].shape;
  const int64_t *sizes = hlo_ints(c->i, HLO_ATTR_SIZES);
  int64_t strides[SHAPE_MAX_RANK], to[SHAPE_MAX_RANK], batch[SHAPE_MAX_RANK], index[SHAPE_MAX_RANK] = {0};
  size_t size = element_size(c);
  char *r = ref_result(c, 0);
  if (!shape_elements(out)) {
    return NULL;
  }
  ref_windows w;
  ref_windows_init(&w, c->i, out);
  shape_strides(x, strides);
  shape_strides(out, to);
  memcpy(batch, out->dims, sizeof batch);
  ref_box b = {.rank = w.n_window};
  for (int k = 0; k < w.n_window; k++) {
    b.extents[k] = out->dims[w.outer_dim[k]];
    b.to[k] = to[w.outer_dim[k]];
    b.from[k] = strides[w.operand_dim[k]];
    batch[w.outer_dim[k]] = 1;
  }
  do {
    int64_t start[SHAPE_MAX_RANK];
    ref_windows_start(&w, &c->in[1], x->rank, index, start);
    for (int d = 0; d < x->rank; d++) {
      start[d] = ref_clamp(start[d], x->dims[d] - sizes[d]);
    }
    ref_move(size, &b, r + ref_offset(out->rank, to, index) * (int64_t)size,
             element(c, 0, ref_offset(x->rank, strides, start)));
    TRY(ref_work(c, 8)); /* copying a window takes as long as 8 elements of other operations */
  } while (ref_next(out->rank, batch, index));
  return NULL;
}
