/* random.c - RandomNormal, RandomUniform, RandomNormalLike, RandomUniformLike, Bernoulli, Multinomial.
 *
 * The first four operators compute random numbers in f32, or in f64 if the result is f64, and then round them to the
 * result's type. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"
#include "frontend/import/random_stream.h"

#define INVALID STATUS_INVALID_MODEL

static dtype draw_type(dtype t) { return t == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32; }

/* --- RandomNormal, RandomUniform, RandomNormalLike, RandomUniformLike --- */

/* Returns the shape and type of the result: those of the input if there is one, otherwise the attribute `shape`.  The
 * attribute `dtype` overrides the type. */
static status result_shape(const onnx_node *n, shape *out) {
  const int64_t *dims;
  size_t rank;
  dtype type = DTYPE_F32;
  if (n->n_in) {
    *out = *hlo_shape(n->in[0]);
    type = (dtype)out->type;
  } else {
    TRY(onnx_attr_required(n->proto, "shape"));
    TRY(onnx_attr_ints(n->proto, "shape", &dims, &rank));
    CHECK_THAT(rank <= SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "shape has %zu entries; at most %d are supported", rank,
               SHAPE_MAX_RANK);
    for (size_t k = 0; k < rank; k++) {
      CHECK_THAT(dims[k] >= 0 && dims[k] <= DIM_MAX, INVALID, "shape[%zu] is %" PRId64, k, dims[k]);
    }
    *out = shape_make(type, (int)rank, dims);
  }
  TRY(onnx_dtype_attr(n, "dtype", type, &type));
  CHECK_THAT(type == DTYPE_F32 || type == DTYPE_F64 || type == DTYPE_F16 || type == DTYPE_BF16, INVALID,
             "the result would be of %s; random numbers are f16, bf16, f32 or f64", dtype_name(type));
  *out = shape_with_type(*out, type);
  return shape_check(out, "the result");
}

/* Returns the largest number of the float type t that is less than `bound`.  Floats of one sign are ordered by
 * magnitude like the integers with the same bits, so the next smaller float differs by 1 in that integer. */
static double number_below(dtype t, double bound) {
  uint64_t bits = 0, sign = (uint64_t)1 << (8 * dtype_bytes(t) - 1);
  double rounded;
  dtype_convert(DTYPE_F64, &bound, t, &bits, 1, true, DTYPE_ROUND_NEAREST);
  dtype_convert(t, &bits, DTYPE_F64, &rounded, 1, true, DTYPE_ROUND_NEAREST);
  if (rounded >= bound) {
    bits = (bits & ~sign) == 0 ? sign | 1 : bits & sign ? bits + 1 : bits - 1;
    dtype_convert(t, &bits, DTYPE_F64, &rounded, 1, true, DTYPE_ROUND_NEAREST);
  }
  return rounded;
}

/* Draws numbers in [low, high).  A number that is `high` after rounding is replaced by the largest number below it. */
static status uniform(onnx_node *n, const onnx_stream *s, shape result) {
  hlo_builder *b = n->b;
  float low, high;
  TRY(onnx_attr_float(n->proto, "low", 0, &low));
  TRY(onnx_attr_float(n->proto, "high", 1, &high));
  dtype t = (dtype)result.type;
  hlo_value x = onnx_stream_uniform(b, s, shape_with_type(result, draw_type(t)));
  x = hlo_convert(b, onnx_plus(b, onnx_times(b, x, (double)high - (double)low), low), t);
  n->out[0] = low < high ? onnx_binary_scalar(b, HLO_MIN, x, number_below(t, high)) : x;
  return NULL;
}

static status normal(onnx_node *n, const onnx_stream *s, shape result) {
  hlo_builder *b = n->b;
  float mean, scale;
  TRY(onnx_attr_float(n->proto, "mean", 0, &mean));
  TRY(onnx_attr_float(n->proto, "scale", 1, &scale));
  dtype t = (dtype)result.type;
  hlo_value x = onnx_stream_normal(b, s, shape_with_type(result, draw_type(t)));
  n->out[0] = hlo_convert(b, onnx_plus(b, onnx_times(b, x, scale), mean), t);
  return NULL;
}

status onnx_import_random(onnx_node *n) {
  onnx_stream s;
  shape result;
  TRY(result_shape(n, &result));
  TRY(onnx_stream_attr(n, &s));
  bool is_normal = strncmp(n->proto->op_type, "RandomNormal", strlen("RandomNormal")) == 0;
  return is_normal ? normal(n, &s, result) : uniform(n, &s, result);
}

/* --- Bernoulli --- */

status onnx_import_bernoulli(onnx_node *n) {
  hlo_builder *b = n->b;
  onnx_stream s;
  dtype type;
  TRY(onnx_dtype_attr(n, "dtype", hlo_type(n->in[0]), &type));
  TRY(onnx_stream_attr(n, &s));
  hlo_value p = onnx_widen(b, n->in[0]);
  n->out[0] = hlo_convert(b, hlo_compare(b, HLO_LT, onnx_stream_uniform(b, &s, *hlo_shape(p)), p), type);
  return NULL;
}

/* --- Multinomial --- */

/* Returns the cumulative sums of the probabilities along the classes.  x, [batch, classes], holds the logarithms of
 * probabilities that need not add up to 1. */
static hlo_value running_sums(hlo_builder *b, hlo_value x) {
  hlo_value largest = onnx_reduce_keep(b, x, HLO_REDUCE_MAX, 1, (int64_t[]){1});
  hlo_value p = hlo_unary(b, HLO_EXP, onnx_op_stretched(b, HLO_SUB, x, largest));
  return hlo_cumulative(b, p, HLO_REDUCE_ADD, 1, false, false);
}

/* A random number u in [0, 1) chooses the class whose number is the count of cumulative sums that are at most u times
 * the total.  In f64 that product is less than the total for every u, so the count is less than the number of classes,
 * and a class of probability 0 is never chosen. */
status onnx_import_multinomial(onnx_node *n) {
  hlo_builder *b = n->b;
  const shape *x = onnx_in_shape(n, 0);
  onnx_stream s;
  dtype type;
  int64_t samples;
  TRY(onnx_need_rank(n, 0, "input", 2, 2));
  TRY(onnx_dtype_attr(n, "dtype", DTYPE_S32, &type));
  CHECK_THAT(type == DTYPE_S32 || type == DTYPE_S64, INVALID, "dtype is %s; it must be int32 or int64",
             dtype_name(type));
  TRY(onnx_attr_int_in(n->proto, "sample_size", 1, 0, DIM_MAX, &samples));
  TRY(onnx_stream_attr(n, &s));
  dim batch = x->dims[0];
  int64_t classes;
  TRY(onnx_const_dim(n, x->dims[1], "the number of classes", &classes));
  CHECK_THAT(classes >= 1 || batch == 0 || samples == 0, INVALID, "input is %s; there is no class to choose",
             SHAPE_STR(onnx_dims(n), x));
  shape draws = shape_make(DTYPE_F64, 2, (dim[]){batch, samples});
  shape pairs = shape_make(DTYPE_F64, 3, (dim[]){batch, samples, classes});
  TRY(shape_check(&draws, "the result"));
  TRY(shape_check(&pairs, "result times classes"));
  if (shape_is_empty(&draws)) {
    n->out[0] = hlo_splat(b, shape_with_type(draws, type), 0);
    return NULL;
  }
  hlo_value sums = running_sums(b, hlo_convert(b, n->in[0], DTYPE_F64));
  hlo_value whole = onnx_pick(b, sums, 1, classes - 1);
  hlo_value u = onnx_stream_uniform(b, &s, draws);
  u = hlo_binary(b, HLO_MUL, u, hlo_broadcast(b, whole, draws, (int64_t[]){0}));
  hlo_value passed = hlo_compare(b, HLO_LE, hlo_broadcast(b, sums, pairs, (int64_t[]){0, 2}),
                                 hlo_broadcast(b, u, pairs, (int64_t[]){0, 1}));
  n->out[0] = hlo_reduce(b, hlo_convert(b, passed, type), HLO_REDUCE_ADD, 1, (int64_t[]){2});
  return NULL;
}
