/* experimental.c - experimental operators, which ONNX had in its main domain until release 1.5, and which some old
 * models use.  The elementwise ones are in activation.c, and DynamicSlice is in slice.c. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"

/* The attribute `border` lists left, top, right and bottom.  If `scale` gives height and width of the result, the right
 * and bottom borders are ignored. */
status onnx_import_crop(onnx_node *n) {
  const int64_t *border, *size;
  size_t n_border, n_size;
  TRY(onnx_need_rank(n, 0, "input", 4, 4));
  TRY(onnx_attr_ints(n->proto, "border", &border, &n_border));
  TRY(onnx_attr_ints(n->proto, "scale", &size, &n_size));
  CHECK_THAT(n_border == 4 && (n_size == 0 || n_size == 2), STATUS_INVALID_MODEL,
             "border has %zu entries and scale %zu instead of 4 and none or 2", n_border, n_size);
  dim_table *t = onnx_dims(n);
  const shape *s = onnx_in_shape(n, 0);
  hlo_value y = n->in[0];
  for (int k = 0; k < 2; k++) { /* k is 0 for the height, 1 for the width */
    dim extent = s->dims[2 + k];
    int64_t from = border[1 - k], after = border[3 - k];
    CHECK_THAT(from >= 0 && from <= INT32_MAX && after >= 0 && after <= INT32_MAX &&
                   dim_at_most(t, n_size ? from : from + after, extent),
               STATUS_INVALID_MODEL, "border does not fit into %s", SHAPE_STR(onnx_dims(n), s));
    dim to = n_size ? 0 : dim_add_const(t, extent, -after);
    if (n_size) {
      CHECK_THAT(size[k] >= 0 && size[k] <= INT32_MAX && dim_at_most(t, from + size[k], extent), STATUS_INVALID_MODEL,
                 "scale[%d] is %" PRId64 ", which is more than is left of %s", k, size[k], SHAPE_STR(onnx_dims(n), s));
      to = from + size[k];
    }
    y = hlo_slice_dim(n->b, y, 2 + k, from, to);
  }
  n->out[0] = y;
  return NULL;
}

/* Computes scale * input + bias[channel]. */
status onnx_import_image_scaler(onnx_node *n) {
  hlo_builder *b = n->b;
  float scale;
  const float *bias;
  size_t count;
  CHECK_THAT(dtype_is_float(hlo_type(n->in[0])), STATUS_INVALID_MODEL, "input is %s; floats are needed",
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, 0)));
  TRY(onnx_need_rank(n, 0, "input", 4, 4));
  TRY(onnx_attr_float(n->proto, "scale", 1, &scale));
  TRY(onnx_attr_floats(n->proto, "bias", &bias, &count));
  hlo_value y = onnx_times(b, onnx_widen(b, n->in[0]), scale);
  if (bias) {
    dim channels = (dim)count;
    CHECK_THAT(dim_equal(onnx_dims(n), channels, onnx_in_shape(n, 0)->dims[1]), STATUS_INVALID_MODEL,
               "bias has %zu entries, and input is %s", count, SHAPE_STR(onnx_dims(n), onnx_in_shape(n, 0)));
    hlo_value each = hlo_convert(b, onnx_f32_array(n, bias, 1, &channels), hlo_type(y));
    y = hlo_binary(b, HLO_ADD, y, onnx_along(b, each, hlo_shape(y), 1));
  }
  n->out[0] = hlo_convert(b, y, hlo_type(n->in[0]));
  return NULL;
}

/* --- ConstantFill and GivenTensorFill --- */

static status append_dims(const onnx_node *n, shape *s, const char *what, const dim *dims, int64_t count) {
  dim_table *t = onnx_dims(n);
  CHECK_THAT(count <= SHAPE_MAX_RANK - s->rank, STATUS_UNSUPPORTED, "%s makes more than %d dimensions", what,
             SHAPE_MAX_RANK);
  for (int64_t k = 0; k < count; k++) {
    CHECK_THAT(dim_at_most(t, 0, dims[k]) && dims[k] < DIM_MAX, STATUS_INVALID_MODEL, "%s[%" PRId64 "] is %s", what, k,
               dim_print(n->arena, t, dims[k]));
    s->dims[s->rank++] = dims[k];
  }
  return NULL;
}

/* Appends the dimensions that an attribute lists, and refuses negative ones. */
static status append_given(const onnx_node *n, shape *s, const char *what, const int64_t *dims, size_t count) {
  for (size_t k = 0; k < count; k++) {
    CHECK_THAT(dims[k] >= 0, STATUS_INVALID_MODEL, "%s[%zu] is %" PRId64, what, k, dims[k]);
  }
  return append_dims(n, s, what, dims, (int64_t)count);
}

/* Returns the shape to fill: without an input the attribute `shape`, otherwise the shape of the input or, with
 * input_as_shape, its content, followed by extra_shape. */
static status fill_shape(const onnx_node *n, dtype type, shape *s) {
  const int64_t *dims;
  const dim *known;
  size_t n_dims;
  int64_t n_known;
  bool contents;
  *s = shape_scalar(type);
  TRY(onnx_attr_ints(n->proto, "shape", &dims, &n_dims));
  if (!onnx_has_in(n, 0)) {
    TRY(onnx_attr_required(n->proto, "shape"));
    TRY(append_given(n, s, "shape", dims, n_dims));
    return shape_check(s, "the result");
  }
  TRY(onnx_attr_bool(n->proto, "input_as_shape", false, &contents));
  if (contents) {
    TRY(onnx_const_dims(n, 0, "input", &known, &n_known));
    TRY(append_dims(n, s, "input", known, n_known));
  } else {
    TRY(append_dims(n, s, "input", onnx_in_shape(n, 0)->dims, onnx_in_shape(n, 0)->rank));
  }
  TRY(onnx_attr_ints(n->proto, "extra_shape", &dims, &n_dims));
  TRY(append_given(n, s, "extra_shape", dims, n_dims));
  return shape_check(s, "the result");
}

status onnx_import_constant_fill(onnx_node *n) {
  dtype type;
  float value;
  shape s;
  TRY(onnx_dtype_attr(n, "dtype", DTYPE_F32, &type));
  TRY(onnx_attr_float(n->proto, "value", 0, &value));
  TRY(fill_shape(n, type, &s));
  n->out[0] = hlo_splat(n->b, s, value);
  return NULL;
}

status onnx_import_given_tensor_fill(onnx_node *n) {
  const float *values;
  size_t count;
  shape s;
  TRY(onnx_attr_floats(n->proto, "values", &values, &count));
  TRY(fill_shape(n, DTYPE_F32, &s));
  CHECK_THAT((int64_t)count == shape_elements(&s), STATUS_INVALID_MODEL, "%zu values are given for %s", count,
             SHAPE_STR(onnx_dims(n), &s));
  n->out[0] = onnx_f32_array(n, values, s.rank, s.dims);
  return NULL;
}
