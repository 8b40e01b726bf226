/* standard.c - the importers of operators that the standard has too, under the same name or another one. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/contrib.h"
#include "frontend/ops/math/elimination.h"
#include "frontend/ops/math/select.h"

status onnx_import_contrib_trilu(onnx_node *n) {
  TRY(CONTRIB_ATTRIBUTES(n, "upper"));
  onnx_node standard = contrib_as(n, 14, n->n_in, n->in);
  return onnx_import_trilu(&standard);
}

status onnx_import_contrib_pad(onnx_node *n) {
  TRY(CONTRIB_ATTRIBUTES(n, "mode"));
  onnx_node standard = contrib_as(n, 13, n->n_in, n->in);
  return onnx_import_pad(&standard);
}

status onnx_import_contrib_gather_nd(onnx_node *n) {
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  onnx_node standard = contrib_as(n, 11, n->n_in, n->in);
  return onnx_import_gather_nd(&standard);
}

/* The attributes are those of the standard's GridSample before version 20. */
status onnx_import_contrib_grid_sample(onnx_node *n) {
  TRY(CONTRIB_ATTRIBUTES(n, "align_corners", "mode", "padding_mode"));
  CHECK_THAT(dtype_is_float(hlo_type(n->in[0])), STATUS_INVALID_MODEL, "X is %s; floats are needed",
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, 0)));
  return onnx_import_grid_sample(n);
}

/* --- other inputs than the standard's --- */

/* The axis is an input.  ONNX Runtime refuses some axes because it takes the number of elements of X for its rank; here
 * an axis may be in [-rank - 1, rank], as in TensorFlow, whose operator this is. */
status onnx_import_contrib_expand_dims(onnx_node *n) {
  int64_t axis;
  const shape *s = onnx_in_shape(n, 0);
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  TRY(onnx_const_int(n, 1, "axis", &axis));
  TRY(onnx_axis(axis, s->rank + 1, &axis));
  CHECK_THAT(s->rank < SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "X is %s; the rank is too large",
             SHAPE_STR(onnx_dims(n), s));
  n->out[0] = onnx_insert_dim(n->b, n->in[0], axis);
  return NULL;
}

/* delta may be left out, and is then 1. */
status onnx_import_contrib_range(onnx_node *n) {
  hlo_value in[] = {n->in[0], n->in[1], onnx_has_in(n, 2) ? n->in[2] : hlo_scalar(n->b, hlo_type(n->in[0]), 1)};
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  onnx_node standard = contrib_as(n, 11, 3, in);
  return onnx_import_range(&standard);
}

/* The pads are an input: the number of elements that are cut off at the start of each spatial dimension, then those for
 * the ends. */
status onnx_import_contrib_conv_transpose_with_dynamic_pads(onnx_node *n) {
  dim_table *t = onnx_dims(n);
  hlo_value in[] = {n->in[0], n->in[1], n->in[3]};
  const dim *pads;
  int64_t count;
  const char *pad;
  TRY(CONTRIB_ATTRIBUTES(n, "auto_pad", "dilations", "group", "kernel_shape", "output_padding", "strides"));
  TRY(onnx_attr_string(n->arena, n->proto, "auto_pad", "NOTSET", &pad));
  CHECK_THAT(strcmp(pad, "NOTSET") == 0, STATUS_UNSUPPORTED, "auto_pad %s is not supported", pad);
  TRY(onnx_const_dims(n, 2, "Pads", &pads, &count));
  onnx_node conv = contrib_as(n, 11, 3, in);
  TRY(onnx_import_conv_transpose(&conv));
  if (n->b->error) {
    return NULL;
  }
  shape s = *hlo_shape(n->out[0]);
  int64_t spatial = s.rank - 2;
  CHECK_THAT(count == 2 * spatial, STATUS_INVALID_MODEL, "Pads has %" PRId64 " elements; %" PRId64 " are needed", count,
             2 * spatial);
  for (int64_t k = 0; k < spatial; k++) {
    dim low = pads[k], high = pads[k + spatial], all = s.dims[k + 2];
    CHECK_THAT(dim_at_most(t, 0, low) && dim_at_most(t, 0, high) && dim_at_most(t, dim_add(t, low, high), all),
               STATUS_INVALID_MODEL, "Pads are %s and %s for the %s elements of spatial dimension %" PRId64,
               dim_print(n->arena, t, low), dim_print(n->arena, t, high), dim_print(n->arena, t, all), k);
    n->out[0] = hlo_slice_dim(n->b, n->out[0], k + 2, low, dim_sub(t, all, high));
  }
  return NULL;
}

status onnx_import_contrib_inverse(onnx_node *n) {
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  return onnx_inverse(n, &n->out[0]);
}

/* The standard's MatMulInteger takes bytes only. */
status onnx_import_contrib_matmul_integer16(onnx_node *n) {
  hlo_value in[2];
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  for (uint32_t k = 0; k < 2; k++) {
    CHECK_THAT(hlo_type(n->in[k]) == DTYPE_S16, STATUS_UNSUPPORTED, "an input is %s; only s16 is supported",
               SHAPE_STR(onnx_dims(n), onnx_in_shape(n, k)));
    in[k] = hlo_convert(n->b, n->in[k], DTYPE_S32);
  }
  onnx_node product = contrib_as(n, 13, 2, in);
  return onnx_import_matmul(&product);
}

/* In the order in which the values first occur; NaN differs from NaN.  The second result of the standard's operator,
 * where each value first occurs, is none of this one's. */
status onnx_import_contrib_unique(onnx_node *n) {
  hlo_value out[4];
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  TRY(onnx_need_rank(n, 0, "x", 1, 1));
  TRY(onnx_unique(n, n->in[0], 0, (onnx_unique_options){0}, out));
  n->out[0] = out[0];
  n->out[1] = out[2];
  n->out[2] = out[3];
  return NULL;
}
