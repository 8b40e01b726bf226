/* preprocess.c - the importers of operators of ai.onnx.ml that prepare the features of rows: scaling, norms,
 * thresholds, values that are missing, and the choice of features. */
#include <float.h>
#include <inttypes.h>
#include <math.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/ml/scores.h"

/* Broadcasts `values`, which has one element or one for each feature, to the dimensions of X.  `name` is the attribute
 * that gives them. */
static status for_features(const onnx_node *n, const char *name, hlo_value values, size_t count, hlo_value *out) {
  const shape *s = onnx_in_shape(n, 0);
  CHECK_THAT(count == 1 || dim_equal(onnx_dims(n), (dim)count, s->dims[s->rank - 1]), STATUS_INVALID_MODEL,
             "%s has %zu values; X is %s", name, count, SHAPE_STR(onnx_dims(n), s));
  *out = onnx_along(n->b, values, s, s->rank - 1);
  return NULL;
}

/* Returns the values of an attribute of floats for each element of X, in the float type. */
static status floats_for_features(const onnx_node *n, const char *name, dtype type, size_t *count, hlo_value *out) {
  const float *values;
  TRY(onnx_attr_floats(n->proto, name, &values, count));
  CHECK_THAT(*count, STATUS_INVALID_MODEL, "%s has no values", name);
  hlo_value given = hlo_convert(n->b, onnx_f32_array(n, values, 1, (dim[]){(dim)*count}), type);
  return for_features(n, name, given, *count, out);
}

/* --- Scaler --- */

status onnx_import_ml_scaler(onnx_node *n) {
  hlo_builder *b = n->b;
  dtype type = hlo_type(n->in[0]) == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32;
  size_t n_offsets, n_scales;
  hlo_value offset, scale;
  TRY(onnx_need_rank(n, 0, "X", 1, 2));
  TRY(floats_for_features(n, "offset", type, &n_offsets, &offset));
  TRY(floats_for_features(n, "scale", type, &n_scales, &scale));
  CHECK_THAT(n_offsets == n_scales, STATUS_INVALID_MODEL, "offset has %zu values, but scale has %zu", n_offsets,
             n_scales);
  hlo_value x = hlo_binary(b, HLO_SUB, hlo_convert(b, n->in[0], type), offset);
  n->out[0] = hlo_convert(b, hlo_binary(b, HLO_MUL, x, scale), DTYPE_F32);
  return NULL;
}

/* --- Normalizer --- */

static hlo_value over_rows(hlo_builder *b, hlo_value x, hlo_reducer r) {
  int64_t last = hlo_rank(x) - 1;
  return hlo_broadcast_to(b, onnx_reduce_keep(b, x, r, 1, &last), hlo_shape(x));
}

/* Returns the largest number of each row, which is negative if all are; NaN does not count. */
static hlo_value row_maximum(hlo_builder *b, hlo_value x) {
  hlo_value lowest = hlo_like(b, x, -FLT_MAX);
  hlo_value counts = hlo_select(b, hlo_compare(b, HLO_EQ, x, x), x, lowest);
  return hlo_binary(b, HLO_MAX, over_rows(b, counts, HLO_REDUCE_MAX), lowest);
}

/* Returns the absolute values of x / |x|, where x is f32.  Squares are made in the type of `given`, X itself, or in f64
 * if that is an integer, which could overflow. */
static hlo_value of_length_one(hlo_builder *b, hlo_value x, hlo_value given, hlo_value *norm) {
  hlo_value wide = hlo_type(given) == DTYPE_F32 ? given : hlo_convert(b, given, DTYPE_F64);
  hlo_value squares = hlo_convert(b, hlo_binary(b, HLO_MUL, wide, wide), DTYPE_F32);
  *norm = over_rows(b, squares, HLO_REDUCE_ADD);
  hlo_value y = hlo_unary(b, HLO_SQRT, hlo_binary(b, HLO_DIV, squares, *norm));
  return hlo_select(b, onnx_compare_scalar(b, HLO_LT, x, 0), hlo_unary(b, HLO_NEG, y), y);
}

/* A row whose norm is 0 stays as it is. */
status onnx_import_ml_normalizer(onnx_node *n) {
  static const char *const names[] = {"MAX", "L1", "L2"};
  hlo_builder *b = n->b;
  int kind;
  TRY(onnx_need_rank(n, 0, "X", 1, 2));
  TRY(onnx_choose(n, "norm", "MAX", names, 3, &kind));
  hlo_value x = hlo_convert(b, n->in[0], DTYPE_F32), norm, y;
  if (kind == 2) {
    y = of_length_one(b, x, n->in[0], &norm);
  } else {
    norm = kind == 0 ? row_maximum(b, x) : over_rows(b, hlo_unary(b, HLO_ABS, x), HLO_REDUCE_ADD);
    y = hlo_binary(b, HLO_DIV, x, norm);
  }
  n->out[0] = hlo_select(b, onnx_compare_scalar(b, HLO_EQ, norm, 0), x, y);
  return NULL;
}

/* --- Binarizer --- */

/* Returns whether the integers x are above the threshold.  They are compared as integers, since floats do not have all
 * of them. */
static hlo_value integers_above(hlo_builder *b, hlo_value x, double threshold) {
  double bound = hlo_type(x) == DTYPE_S32 ? 0x1p31 : 0x1p63, floor_of = floor(threshold);
  shape s = shape_with_type(*hlo_shape(x), DTYPE_PRED);
  if (!(floor_of < bound)) { /* NaN is not above anything either */
    return hlo_splat(b, s, 0);
  }
  if (floor_of < -bound) {
    return hlo_splat(b, s, 1);
  }
  hlo_value limit = hlo_scalar_int(b, hlo_type(x), (int64_t)floor_of);
  return hlo_compare(b, HLO_GT, x, hlo_broadcast(b, limit, *hlo_shape(x), NULL));
}

status onnx_import_ml_binarizer(onnx_node *n) {
  float threshold;
  TRY(onnx_attr_float(n->proto, "threshold", 0, &threshold));
  hlo_value x = n->in[0];
  hlo_value above = dtype_is_float(hlo_type(x)) ? onnx_compare_scalar(n->b, HLO_GT, x, (double)threshold)
                                                : integers_above(n->b, x, (double)threshold);
  n->out[0] = hlo_convert(n->b, above, hlo_type(x));
  return NULL;
}

/* --- Imputer --- */

static status impute_floats(onnx_node *n) {
  hlo_builder *b = n->b;
  hlo_value x = n->in[0], imputed;
  float replaced;
  size_t count;
  TRY(floats_for_features(n, "imputed_value_floats", hlo_type(x), &count, &imputed));
  TRY(onnx_attr_float(n->proto, "replaced_value_float", 0, &replaced));
  hlo_value missing =
      isnan(replaced) ? hlo_compare(b, HLO_NE, x, x) : onnx_compare_scalar(b, HLO_EQ, x, (double)replaced);
  n->out[0] = hlo_select(b, missing, imputed, x);
  return NULL;
}

static status check_s32(const char *name, int64_t value) {
  CHECK_THAT(value >= INT32_MIN && value <= INT32_MAX, STATUS_INVALID_MODEL, "%s has %" PRId64 ", but X is s32", name,
             value);
  return NULL;
}

static status impute_integers(onnx_node *n) {
  hlo_builder *b = n->b;
  hlo_value x = n->in[0], imputed;
  int64_t replaced;
  size_t count;
  const int64_t *values;
  TRY(onnx_attr_ints(n->proto, "imputed_value_int64s", &values, &count));
  TRY(onnx_attr_int(n->proto, "replaced_value_int64", 0, &replaced));
  CHECK_THAT(count, STATUS_INVALID_MODEL, "imputed_value_int64s has no values");
  if (hlo_type(x) == DTYPE_S32) {
    TRY(check_s32("replaced_value_int64", replaced));
    for (size_t k = 0; k < count; k++) {
      TRY(check_s32("imputed_value_int64s", values[k]));
    }
  }
  hlo_value given = hlo_convert(b, hlo_s64s(b, values, (int64_t)count), hlo_type(x));
  TRY(for_features(n, "imputed_value_int64s", given, count, &imputed));
  hlo_value missing = hlo_broadcast(b, hlo_scalar_int(b, hlo_type(x), replaced), *hlo_shape(x), NULL);
  n->out[0] = hlo_select(b, hlo_compare(b, HLO_EQ, x, missing), imputed, x);
  return NULL;
}

status onnx_import_ml_imputer(onnx_node *n) {
  TRY(onnx_need_rank(n, 0, "X", 1, 2));
  CHECK_THAT(!onnx_attr_has(n->proto, "imputed_value_floats") || !onnx_attr_has(n->proto, "imputed_value_int64s"),
             STATUS_INVALID_MODEL, "imputed_value_floats and imputed_value_int64s are both given");
  return dtype_is_float(hlo_type(n->in[0])) ? impute_floats(n) : impute_integers(n);
}

/* --- FeatureVectorizer --- */

/* Returns x with `size` columns: later ones are left out, and missing ones are 0. */
static hlo_value with_columns(const onnx_node *n, hlo_value x, dim size) {
  dim_table *t = onnx_dims(n);
  if (n->b->error) {
    return x;
  }
  dim has = hlo_shape(x)->dims[1];
  if (dim_at_most(t, size, has)) {
    return hlo_slice_dim(n->b, x, 1, 0, size);
  }
  shape rest = shape_make(DTYPE_F32, 2, (dim[]){hlo_shape(x)->dims[0], dim_sub(t, size, has)});
  return hlo_concatenate(n->b, 2, (hlo_value[]){x, hlo_splat(n->b, rest, 0)}, 1);
}

/* inputdimensions has the numbers of columns that the inputs have in the result. */
status onnx_import_ml_feature_vectorizer(onnx_node *n) {
  hlo_value *rows = ARENA_NEW_N(n->arena, hlo_value, n->n_in);
  const int64_t *sizes;
  size_t n_sizes;
  TRY(onnx_attr_ints(n->proto, "inputdimensions", &sizes, &n_sizes));
  CHECK_THAT(!sizes || n_sizes == n->n_in, STATUS_INVALID_MODEL,
             "inputdimensions has %zu values; there are %" PRIu32 " inputs", n_sizes, n->n_in);
  for (uint32_t k = 0; k < n->n_in; k++) {
    onnx_node one = *n;
    one.in = &n->in[k];
    TRY(ml_rows(&one, DTYPE_F32, &rows[k]));
    if (n->b->error) {
      return NULL;
    }
    CHECK_THAT(dim_equal(onnx_dims(n), hlo_shape(rows[k])->dims[0], hlo_shape(rows[0])->dims[0]), STATUS_INVALID_MODEL,
               "input %" PRIu32 " is %s; it has another number of rows than input 0", k,
               SHAPE_STR(onnx_dims(n), onnx_in_shape(n, k)));
    if (sizes) {
      CHECK_THAT(sizes[k] >= 0 && sizes[k] <= INT32_MAX, STATUS_INVALID_MODEL, "inputdimensions has %" PRId64,
                 sizes[k]);
      rows[k] = with_columns(n, rows[k], sizes[k]);
    }
  }
  n->out[0] = n->n_in == 1 ? rows[0] : hlo_concatenate(n->b, n->n_in, rows, 1);
  return NULL;
}

/* --- ArrayFeatureExtractor --- */

/* Y may have any dimensions; the result has one dimension for all its indices.  An X of one dimension gives one row. */
status onnx_import_ml_array_feature_extractor(onnx_node *n) {
  hlo_builder *b = n->b;
  const shape *s = onnx_in_shape(n, 0), *chosen = onnx_in_shape(n, 1);
  TRY(onnx_need_rank(n, 0, "X", 1, SHAPE_MAX_RANK));
  int last = s->rank - 1;
  dim count = shape_dim_product(onnx_dims(n), chosen, 0, chosen->rank);
  CHECK_THAT(dim_at_most(onnx_dims(n), 1, count), STATUS_INVALID_MODEL, "Y is %s; there must be an index",
             SHAPE_STR(onnx_dims(n), chosen));
  TRY(onnx_check_below(n, n->in[1], "Y", s->dims[last]));
  hlo_value z = hlo_take(b, n->in[0], hlo_reshape(b, n->in[1], 1, &count), last);
  n->out[0] = s->rank == 1 ? onnx_insert_dim(b, z, 0) : z;
  return NULL;
}
