/* tfidf.c - TfIdfVectorizer for integers and strings: counts how often each n-gram of a pool occurs in each row of the
 * input (ngrams.h), weighs the counts, and moves them to their columns. */
#include <inttypes.h>
#include <string.h>

#include "frontend/import/import_common.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/array/ngrams.h"

typedef struct vectorizer {
  const char *mode;
  onnx_ngrams pool;
  const int64_t *columns; /* for each n-gram: its column of the output */
  size_t n_weights;
  const float *weights; /* one for each n-gram, or NULL */
  int64_t width;        /* the number of columns of the output */
} vectorizer;

static status read_lengths(const onnx_node *n, vectorizer *v) {
  const char *const names[] = {"min_gram_length", "max_gram_length", "max_skip_count"};
  int64_t *const out[] = {&v->pool.shortest, &v->pool.longest, &v->pool.skips};
  for (int k = 0; k < 3; k++) {
    TRY(onnx_attr_required(n->proto, names[k]));
    TRY(onnx_attr_int_in(n->proto, names[k], 0, k < 2 ? 1 : 0, INT32_MAX, out[k]));
  }
  CHECK_THAT(v->pool.shortest <= v->pool.longest, STATUS_INVALID_MODEL,
             "min_gram_length is %" PRId64 ", more than max_gram_length %" PRId64, v->pool.shortest, v->pool.longest);
  return NULL;
}

/* Checks that the pool consists of whole n-grams and that ngram_indexes has a column for each. */
static status check_pool(const onnx_ngrams *p) {
  size_t grams = 0;
  CHECK_THAT(p->n_starts == 0 || p->starts[0] == 0, STATUS_INVALID_MODEL, "ngram_counts begins with %" PRId64 ", not 0",
             p->starts[0]);
  for (size_t k = 0; k < p->n_starts; k++) {
    size_t begin = (size_t)p->starts[k], end = onnx_ngrams_end(p, k + 1);
    CHECK_THAT(p->starts[k] >= 0 && begin <= end && end <= p->n_pool && (end - begin) % (k + 1) == 0,
               STATUS_INVALID_MODEL, "ngram_counts: the n-grams of %zu items do not fill [%zu, %zu) of a pool of %zu",
               k + 1, begin, end, p->n_pool);
    grams += (end - begin) / (k + 1);
  }
  CHECK_THAT(grams == p->n_grams, STATUS_INVALID_MODEL, "ngram_indexes has %zu numbers for %zu n-grams", p->n_grams,
             grams);
  CHECK_THAT(p->n_pool <= INT32_MAX, STATUS_UNSUPPORTED, "a pool of %zu items is not supported", p->n_pool);
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
  TRY(onnx_attr_ints(n->proto, "ngram_counts", &v->pool.starts, &v->pool.n_starts));
  TRY(onnx_attr_ints(n->proto, "ngram_indexes", &v->columns, &v->pool.n_grams));
  TRY(of_strings ? onnx_node_strings(n, "pool_strings", &v->pool.pool, &v->pool.n_pool)
                 : onnx_attr_ints(n->proto, "pool_int64s", &v->pool.pool, &v->pool.n_pool));
  TRY(onnx_attr_floats(n->proto, "weights", &v->weights, &v->n_weights));
  TRY(check_pool(&v->pool));
  for (size_t k = 0; k < v->pool.n_grams; k++) {
    CHECK_THAT(v->columns[k] >= 0 && v->columns[k] < INT32_MAX, STATUS_INVALID_MODEL, "ngram_indexes has %" PRId64,
               v->columns[k]);
    v->width = v->columns[k] >= v->width ? v->columns[k] + 1 : v->width;
  }
  CHECK_THAT(!v->weights || v->n_weights == v->pool.n_grams, STATUS_INVALID_MODEL,
             "weights has %zu numbers for %zu n-grams", v->n_weights, v->pool.n_grams);
  return NULL;
}

/* Gives the n-grams columns of the counts: those of the output if these are all different, otherwise the first ones,
 * and a last column of zeros.  Returns whether they are those of the output. */
static bool choose_columns(const onnx_node *n, vectorizer *v) {
  size_t count = v->pool.n_grams;
  bool different = true, *used = ARENA_NEW_N(n->arena, bool, (size_t)v->width + 1);
  int64_t *own = ARENA_NEW_N(n->arena, int64_t, count + 1);
  for (size_t k = 0; k < count; k++) {
    own[k] = (int64_t)k;
    different = different && !used[v->columns[k]];
    used[v->columns[k]] = true;
  }
  v->pool.columns = different ? v->columns : own;
  v->pool.width = different ? v->width : (int64_t)count + 1;
  return different;
}

/* Moves the counts to their columns of the output.  If several n-grams have the same column, their counts are added.
 * Each iteration of the outer loop gathers the counts of at most one n-gram for each column; columns of the output
 * without one read the last column, which is 0. */
static hlo_value to_columns(const onnx_node *n, const vectorizer *v, hlo_value counts) {
  hlo_value sum = {0};
  int64_t *from = ARENA_NEW_N(n->arena, int64_t, (size_t)v->width + 1);
  bool *used = ARENA_NEW_N(n->arena, bool, v->pool.n_grams + 1);
  for (bool more = true; more;) {
    more = false;
    for (int64_t c = 0; c < v->width; c++) {
      from[c] = (int64_t)v->pool.n_grams;
    }
    for (size_t k = 0; k < v->pool.n_grams; k++) {
      bool is_free = !used[k] && from[v->columns[k]] == (int64_t)v->pool.n_grams;
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

/* Applies the mode (TF, IDF or TFIDF) and the weights to the counts. */
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
  dim width = v->pool.width;
  literal l = literal_new(n->arena, shape_make(DTYPE_F32, 1, &width), &data);
  memset(data, 0, (size_t)width * sizeof(float));
  for (size_t k = 0; k < v->pool.n_grams; k++) {
    ((float *)data)[v->pool.columns[k]] = v->weights[k];
  }
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
  bool in_place = choose_columns(n, &v);
  hlo_value y = weigh(n, &v, onnx_count_ngrams(n, &v.pool, x));
  y = in_place ? y : to_columns(n, &v, y);
  n->out[0] = s.rank == 1 ? hlo_reshape(b, y, 1, &v.width) : y;
  return NULL;
}
