/* tfidf.c - TfIdfVectorizer for integers and strings: counts how often each n-gram of a pool occurs in each row of the
 * input.
 *
 * The items of an n-gram may be 1 to max_skip_count + 1 positions apart in the row.  For each length and each distance,
 * the n-grams that begin at all positions of all rows are compared with all n-grams of that length in the pool at once,
 * and the matches are summed along the row. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_common.h"
#include "frontend/import/symbolic.h"

typedef struct vectorizer {
  const char *mode;
  int64_t shortest, longest, skips;
  const int64_t *starts;  /* [k]: the position in `pool` where the n-grams of k + 1 items start */
  const int64_t *columns; /* for each n-gram: its column of the output */
  const int64_t *pool;    /* the items of all n-grams, one after the other */
  size_t n_starts, n_grams, n_pool, n_weights;
  const float *weights; /* one for each n-gram, or NULL */
  int64_t width;        /* the number of columns of the output */
} vectorizer;

static status read_lengths(const onnx_node *n, vectorizer *v) {
  const char *const names[] = {"min_gram_length", "max_gram_length", "max_skip_count"};
  int64_t *const out[] = {&v->shortest, &v->longest, &v->skips};
  for (int k = 0; k < 3; k++) {
    TRY(onnx_attr_required(n->proto, names[k]));
    TRY(onnx_attr_int_in(n->proto, names[k], 0, k < 2 ? 1 : 0, INT32_MAX, out[k]));
  }
  CHECK_THAT(v->shortest <= v->longest, STATUS_INVALID_MODEL,
             "min_gram_length is %" PRId64 ", more than max_gram_length %" PRId64, v->shortest, v->longest);
  return NULL;
}

static size_t end_of(const vectorizer *v, size_t length) {
  return length < v->n_starts ? (size_t)v->starts[length] : v->n_pool;
}

/* Checks that the pool consists of whole n-grams and that ngram_indexes has a column for each. */
static status check_pool(const vectorizer *v) {
  size_t grams = 0;
  CHECK_THAT(v->n_starts == 0 || v->starts[0] == 0, STATUS_INVALID_MODEL, "ngram_counts begins with %" PRId64 ", not 0",
             v->starts[0]);
  for (size_t k = 0; k < v->n_starts; k++) {
    size_t begin = (size_t)v->starts[k], end = end_of(v, k + 1);
    CHECK_THAT(v->starts[k] >= 0 && begin <= end && end <= v->n_pool && (end - begin) % (k + 1) == 0,
               STATUS_INVALID_MODEL, "ngram_counts: the n-grams of %zu items do not fill [%zu, %zu) of a pool of %zu",
               k + 1, begin, end, v->n_pool);
    grams += (end - begin) / (k + 1);
  }
  CHECK_THAT(grams == v->n_grams, STATUS_INVALID_MODEL, "ngram_indexes has %zu numbers for %zu n-grams", v->n_grams,
             grams);
  return NULL;
}

static status read_vectorizer(const onnx_node *n, vectorizer *v) {
  const bool of_strings = hlo_type(n->in[0]) == DTYPE_STR;
  const char *const needed[] = {"mode", "ngram_counts", "ngram_indexes", of_strings ? "pool_strings" : "pool_int64s"};
  for (size_t k = 0; k < sizeof needed / sizeof *needed; k++) {
    TRY(onnx_attr_required(n->proto, needed[k]));
  }
  *v = (vectorizer){0};
  TRY(read_lengths(n, v));
  TRY(onnx_attr_string(n->arena, n->proto, "mode", NULL, &v->mode));
  CHECK_THAT(strcmp(v->mode, "TF") == 0 || strcmp(v->mode, "IDF") == 0 || strcmp(v->mode, "TFIDF") == 0,
             STATUS_INVALID_MODEL, "mode is '%.20s', none of TF, IDF, TFIDF", v->mode);
  TRY(onnx_attr_ints(n->proto, "ngram_counts", &v->starts, &v->n_starts));
  TRY(onnx_attr_ints(n->proto, "ngram_indexes", &v->columns, &v->n_grams));
  TRY(of_strings ? onnx_node_strings(n, "pool_strings", &v->pool, &v->n_pool)
                 : onnx_attr_ints(n->proto, "pool_int64s", &v->pool, &v->n_pool));
  TRY(onnx_attr_floats(n->proto, "weights", &v->weights, &v->n_weights));
  TRY(check_pool(v));
  for (size_t k = 0; k < v->n_grams; k++) {
    CHECK_THAT(v->columns[k] >= 0 && v->columns[k] < INT32_MAX, STATUS_INVALID_MODEL, "ngram_indexes has %" PRId64,
               v->columns[k]);
    v->width = v->columns[k] >= v->width ? v->columns[k] + 1 : v->width;
  }
  CHECK_THAT(!v->weights || v->n_weights == v->n_grams, STATUS_INVALID_MODEL, "weights has %zu numbers for %zu n-grams",
             v->n_weights, v->n_grams);
  return NULL;
}

/* Returns a constant array with the item at position `item` of each n-gram of the given length. */
static hlo_value items(const onnx_node *n, const vectorizer *v, size_t length, size_t item, dim count) {
  void *data;
  literal l = literal_new(n->arena, shape_make(DTYPE_S64, 1, &count), &data);
  for (dim k = 0; k < count; k++) {
    ((int64_t *)data)[k] = v->pool[(size_t)v->starts[length - 1] + (size_t)k * length + item];
  }
  return hlo_constant(n->b, l);
}

/* Returns f32[rows, count]: how often each n-gram of the length occurs in a row with its items `distance` apart. */
static hlo_value count_grams(const onnx_node *n, const vectorizer *v, hlo_value x, size_t length, int64_t distance,
                             dim count) {
  hlo_builder *b = n->b;
  dim rows = hlo_shape(x)->dims[0];
  dim places = dim_add_const(onnx_dims(n), hlo_shape(x)->dims[1], -(int64_t)(length - 1) * distance);
  shape all = shape_make(DTYPE_S64, 3, (dim[]){rows, places, count});
  hlo_value hit = {0};
  for (size_t k = 0; k < length; k++) {
    dim at = (dim)k * distance;
    hlo_value here =
        hlo_broadcast(b, hlo_slice_dim(b, x, 1, at, dim_add_const(onnx_dims(n), places, at)), all, (int64_t[]){0, 1});
    hlo_value same = hlo_compare(b, HLO_EQ, here, hlo_broadcast(b, items(n, v, length, k, count), all, (int64_t[]){2}));
    hit = hit.def ? hlo_binary(b, HLO_AND, hit, same) : same;
  }
  return hlo_reduce(b, hlo_convert(b, hit, DTYPE_F32), HLO_REDUCE_ADD, 1, (int64_t[]){1});
}

/* Returns f32[rows, n_grams + 1], the number of occurrences of each n-gram in each row.  The last column is 0;
 * to_columns reads it for output columns without an n-gram. */
static hlo_value count_all(const onnx_node *n, const vectorizer *v, hlo_value x) {
  hlo_builder *b = n->b;
  dim rows = hlo_shape(x)->dims[0], items_a_row = hlo_shape(x)->dims[1];
  hlo_value *parts = ARENA_NEW_N(n->arena, hlo_value, v->n_starts + 1);
  uint32_t n_parts = 0;
  for (size_t length = 1; length <= v->n_starts; length++) {
    dim count = (dim)((end_of(v, length) - (size_t)v->starts[length - 1]) / length);
    hlo_value sum = hlo_splat(b, shape_make(DTYPE_F32, 2, (dim[]){rows, count}), 0);
    bool wanted = (int64_t)length >= v->shortest && (int64_t)length <= v->longest && count > 0;
    for (int64_t d = 1; wanted && d <= (length > 1 ? v->skips + 1 : 1) &&
                        dim_at_most(onnx_dims(n), (dim)(length - 1) * d + 1, items_a_row);
         d++) {
      sum = hlo_binary(b, HLO_ADD, sum, count_grams(n, v, x, length, d, count));
    }
    parts[n_parts++] = sum;
  }
  parts[n_parts++] = hlo_splat(b, shape_make(DTYPE_F32, 2, (dim[]){rows, 1}), 0);
  return hlo_concatenate(b, n_parts, parts, 1);
}

/* Moves the counts to their columns of the output.  If several n-grams have the same column, their counts are added.
 * Each iteration of the outer loop gathers the counts of at most one n-gram for each column. */
static hlo_value to_columns(const onnx_node *n, const vectorizer *v, hlo_value counts) {
  hlo_value sum = {0};
  int64_t *from = ARENA_NEW_N(n->arena, int64_t, (size_t)v->width + 1);
  bool *used = ARENA_NEW_N(n->arena, bool, v->n_grams + 1);
  for (bool more = true; more;) {
    more = false;
    for (int64_t c = 0; c < v->width; c++) {
      from[c] = (int64_t)v->n_grams;
    }
    for (size_t k = 0; k < v->n_grams; k++) {
      bool is_free = !used[k] && from[v->columns[k]] == (int64_t)v->n_grams;
      more = more || (!used[k] && !is_free);
      if (is_free) {
        used[k] = true;
        from[v->columns[k]] = (int64_t)k;
      }
    }
    hlo_value part = onnx_take_known(n->b, counts, 1, from, v->width);
    sum = sum.def ? hlo_binary(n->b, HLO_ADD, sum, part) : part;
  }
  return sum;
}

/* Applies the mode (TF, IDF or TFIDF) and the weights to the result of count_all. */
static hlo_value weigh(const onnx_node *n, const vectorizer *v, hlo_value counts) {
  hlo_builder *b = n->b;
  if (strcmp(v->mode, "TF") == 0) {
    return counts;
  }
  counts = strcmp(v->mode, "IDF") == 0 ? onnx_binary_scalar(b, HLO_MIN, counts, 1) : counts;
  if (!v->weights) {
    return counts;
  }
  void *data;
  dim width = (dim)v->n_grams + 1;
  literal l = literal_new(n->arena, shape_make(DTYPE_F32, 1, &width), &data);
  memset(data, 0, (size_t)width * sizeof(float));
  memcpy(data, v->weights, v->n_grams * sizeof(float));
  return hlo_binary(b, HLO_MUL, counts, hlo_broadcast(b, hlo_constant(b, l), *hlo_shape(counts), (int64_t[]){1}));
}

status onnx_import_tf_idf_vectorizer(onnx_node *n) {
  hlo_builder *b = n->b;
  vectorizer v;
  const shape s = *hlo_shape(n->in[0]);
  TRY(read_vectorizer(n, &v));
  CHECK_THAT(s.rank == 1 || s.rank == 2, STATUS_INVALID_MODEL, "X is %s; it must have one or two dimensions",
             SHAPE_STR(onnx_dims(n), &s));
  hlo_value x = s.type == DTYPE_STR ? hlo_bitcast(b, n->in[0], DTYPE_S64) : hlo_convert(b, n->in[0], DTYPE_S64);
  x = s.rank == 1 ? hlo_reshape(b, x, 2, (dim[]){1, s.dims[0]}) : x;
  hlo_value y = to_columns(n, &v, weigh(n, &v, count_all(n, &v, x)));
  n->out[0] = s.rank == 1 ? hlo_reshape(b, y, 1, &v.width) : y;
  return NULL;
}
