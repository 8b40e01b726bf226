/* experimental.c - experimental operators, which ONNX had in its main domain until release 1.5, and which some old
 * models use.  The elementwise ones of them are in activation.c. */
#include <inttypes.h>
#include <string.h>

#include "frontend/import/import_helpers.h"

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
  const shape *s = onnx_in_shape(n, 0);
  hlo_value y = n->in[0];
  for (int k = 0; k < 2; k++) { /* k is 0 for the height, 1 for the width */
    dim extent = s->dims[2 + k];
    int64_t from = border[1 - k], to = extent - border[3 - k];
    CHECK_THAT(from >= 0 && from <= extent && border[3 - k] >= 0, STATUS_INVALID_MODEL, "border does not fit into %s",
               SHAPE_STR(NULL, s));
    if (n_size) {
      CHECK_THAT(size[k] >= 0 && size[k] <= extent - from, STATUS_INVALID_MODEL,
                 "scale[%d] is %" PRId64 "; %" PRId64 " of %s are left", k, size[k], extent - from, SHAPE_STR(NULL, s));
      to = from + size[k];
    }
    CHECK_THAT(to >= from, STATUS_INVALID_MODEL, "border does not fit into %s", SHAPE_STR(NULL, s));
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
             SHAPE_STR(NULL, onnx_in_shape(n, 0)));
  TRY(onnx_need_rank(n, 0, "input", 4, 4));
  TRY(onnx_attr_float(n->proto, "scale", 1, &scale));
  TRY(onnx_attr_floats(n->proto, "bias", &bias, &count));
  dim channels = onnx_in_shape(n, 0)->dims[1];
  hlo_value y = onnx_times(b, onnx_widen(b, n->in[0]), scale);
  if (bias) {
    CHECK_THAT((dim)count == channels, STATUS_INVALID_MODEL, "bias has %zu entries for %" PRId64 " channels", count,
               channels);
    hlo_value each = hlo_convert(b, onnx_f32_array(n, bias, 1, &channels), hlo_type(y));
    y = hlo_binary(b, HLO_ADD, y, onnx_along(b, each, hlo_shape(y), 1));
  }
  n->out[0] = hlo_convert(b, y, hlo_type(n->in[0]));
  return NULL;
}

/* --- ConstantFill and GivenTensorFill --- */

static status append_dims(shape *s, const char *what, const int64_t *dims, int64_t count) {
  CHECK_THAT(count <= SHAPE_MAX_RANK - s->rank, STATUS_UNSUPPORTED, "%s makes more than %d dimensions", what,
             SHAPE_MAX_RANK);
  for (int64_t k = 0; k < count; k++) {
    CHECK_THAT(dims[k] >= 0 && dims[k] <= DIM_MAX, STATUS_INVALID_MODEL, "%s[%" PRId64 "] is %" PRId64, what, k,
               dims[k]);
    s->dims[s->rank++] = dims[k];
  }
  return NULL;
}

/* Returns the shape to fill: without an input the attribute `shape`, otherwise the shape of the input or, with
 * input_as_shape, its content, followed by extra_shape. */
static status fill_shape(const onnx_node *n, dtype type, shape *s) {
  const int64_t *dims;
  size_t n_dims;
  int64_t n_known;
  bool contents;
  *s = shape_scalar(type);
  TRY(onnx_attr_ints(n->proto, "shape", &dims, &n_dims));
  if (!onnx_has_in(n, 0)) {
    TRY(onnx_attr_required(n->proto, "shape"));
    TRY(append_dims(s, "shape", dims, (int64_t)n_dims));
    return shape_check(s, "the result");
  }
  TRY(onnx_attr_bool(n->proto, "input_as_shape", false, &contents));
  if (contents) {
    TRY(onnx_const_ints(n, 0, "input", &dims, &n_known));
    TRY(append_dims(s, "input", dims, n_known));
  } else {
    TRY(append_dims(s, "input", onnx_in_shape(n, 0)->dims, onnx_in_shape(n, 0)->rank));
  }
  TRY(onnx_attr_ints(n->proto, "extra_shape", &dims, &n_dims));
  TRY(append_dims(s, "extra_shape", dims, (int64_t)n_dims));
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
             SHAPE_STR(NULL, &s));
  n->out[0] = onnx_f32_array(n, values, s.rank, s.dims);
  return NULL;
}
