/* ngrams.h - how often each n-gram of a pool occurs in each row of an array. */
#ifndef FRONTEND_OPS_ARRAY_NGRAMS_H
#define FRONTEND_OPS_ARRAY_NGRAMS_H

#include "frontend/import/import_common.h"

typedef struct onnx_ngrams {
  int64_t shortest, longest; /* n-grams of other lengths are not counted */
  int64_t skips;             /* items of an n-gram may be 1 to skips + 1 positions apart in the row */
  const int64_t *starts;     /* [n_starts]: entry k is the position in `pool` where the n-grams of k + 1 items start */
  const int64_t *pool;       /* [n_pool]: the items of all n-grams, one after the other; at most INT32_MAX items */
  const int64_t *columns;    /* [n_grams]: the column of the result for each n-gram; all are different */
  int64_t width;             /* the number of columns of the result */
  size_t n_starts, n_pool, n_grams;
} onnx_ngrams;

/* Returns where the n-grams of `length` items end in the pool. */
size_t onnx_ngrams_end(const onnx_ngrams *p, size_t length);
/* Returns f32[rows, width], how often each n-gram of the pool occurs in each row of x, s64[rows, items].  Columns of no
 * n-gram are 0. */
hlo_value onnx_count_ngrams(const onnx_node *n, const onnx_ngrams *p, hlo_value x);

#endif
