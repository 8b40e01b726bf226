/* qdq_weights.c - see qdq_weights.h. */
#include "hlo/passes/qdq_weights.h"

#include "hlo/passes/pass.h"

/* The state of reading weights: numbers of type t, S8 or S16, that are [lines][rows][inner], where the rows are the
 * outputs. */
typedef struct reader {
  dtype t;
  int64_t rows, inner;
  int64_t *sums, *magnitudes, *zeros; /* for each output; a magnitude is the sum of absolute values */
  int32_t *chunk;                     /* a row of a line, or if `inner` is 1 a whole line */
  void *to;                           /* where the numbers are written; NULL if they need not be */
} reader;

/* Converts n elements of l from element `from` on.  Models have hundreds of millions of bytes, so these have loops that
 * compilers turn into vector instructions. */
static void widen(const literal *l, int64_t from, int64_t n, int32_t *to) {
  const int8_t *bytes = (const int8_t *)l->data + from;
  if (l->shape.type == DTYPE_S8) {
    for (int64_t k = 0; k < n; k++) {
      to[k] = bytes[k];
    }
  } else if (l->shape.type == DTYPE_U8) {
    for (int64_t k = 0; k < n; k++) {
      to[k] = (uint8_t)bytes[k];
    }
  } else {
    for (int64_t k = 0; k < n; k++) {
      to[k] = (int32_t)literal_i64(l, from + k);
    }
  }
}

/* Reads one line of l, which begins at element `from`.  Returns false where qdq_read_weights does. */
static bool read_line(reader *r, const literal *l, int64_t from) {
  const int64_t low = r->t == DTYPE_S8 ? INT8_MIN : INT16_MIN, high = -1 - low;
  int8_t *bytes = r->t == DTYPE_S8 && r->to ? (int8_t *)r->to + from : NULL;
  int16_t *words = r->t == DTYPE_S16 && r->to ? (int16_t *)r->to + from : NULL;
  bool fits = true;
  for (int64_t row = 0, k = 0; row < r->rows && fits; row++) {
    if (row == 0 || r->inner > 1) {
      widen(l, from + k, r->inner > 1 ? r->inner : r->rows, r->chunk);
    }
    const int32_t *x = r->inner > 1 ? r->chunk : r->chunk + row;
    for (int64_t end = k + r->inner; k < end; k++) {
      int64_t v = *x++ - r->zeros[row];
      fits = fits && v >= low && v <= high;
      r->sums[row] += v;
      r->magnitudes[row] += v < 0 ? -v : v;
      if (bytes) {
        bytes[k] = (int8_t)v;
      } else if (words) {
        words[k] = (int16_t)v;
      }
    }
    fits = fits && r->magnitudes[row] <= INT32_MAX / 255;
  }
  return fits;
}

bool qdq_read_weights(hlo_builder *b, const hlo_instr *i, const hlo_quantized *x, dtype t, qdq_weights *w) {
  const literal *l = hlo_literal(x->q);
  int outputs = hlo_output_dim(i);
  if (!l || outputs < 0 || !hlo_has_output_zeros(x, outputs)) {
    return false;
  }
  int64_t rows = l->shape.dims[outputs], inner = shape_product(&l->shape, outputs + 1, l->shape.rank);
  *w = (qdq_weights){.n = rows, .sums = ARENA_NEW_N(hlo_arena(b), int64_t, (size_t)rows + 1)};
  reader r = {.t = t, .rows = rows, .inner = inner, .sums = w->sums};
  r.magnitudes = ARENA_NEW_N(b->pass->scratch, int64_t, (size_t)rows + 1);
  r.zeros = ARENA_NEW_N(b->pass->scratch, int64_t, (size_t)rows + 1);
  r.chunk = ARENA_NEW_N(b->pass->scratch, int32_t, (size_t)(inner > 1 ? inner : rows) + 1);
  bool changes = hlo_type(x->q) != t;
  for (int64_t k = 0; k < rows && x->has_zero; k++) {
    r.zeros[k] = (int64_t)hlo_along_at(&x->zero, k);
    changes = changes || r.zeros[k];
  }
  if (changes) {
    w->numbers = literal_new(hlo_arena(b), shape_with_type(l->shape, t), &r.to);
  } else {
    w->numbers = *l; /* large weights stay where they are, in the model's file */
  }
  for (int64_t k = 0, n = shape_elements(&l->shape); k < n; k += rows * inner) {
    if (!read_line(&r, l, k)) {
      return false;
    }
  }
  return true;
}
