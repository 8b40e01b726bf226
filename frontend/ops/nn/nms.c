/* nms.c - the importer of NonMaxSuppression. */
#include <inttypes.h>

#include "base/dim/guard.h"
#include "frontend/import/import_common.h"
#include "frontend/import/sizes.h"
#include "frontend/import/symbolic.h"

#define INVALID STATUS_INVALID_MODEL

static status check_shapes(const onnx_node *n) {
  const shape *boxes = hlo_shape(n->in[0]), *scores = hlo_shape(n->in[1]);
  CHECK_THAT(boxes->rank == 3 && dim_equal(onnx_dims(n), boxes->dims[2], 4), INVALID,
             "boxes is %s; [batches, boxes, 4] is required", SHAPE_STR(onnx_dims(n), boxes));
  CHECK_THAT(scores->rank == 3 && dim_equal(onnx_dims(n), scores->dims[0], boxes->dims[0]) &&
                 dim_equal(onnx_dims(n), scores->dims[2], boxes->dims[1]),
             INVALID, "scores is %s but boxes is %s; [batches, classes, boxes] is required",
             SHAPE_STR(onnx_dims(n), scores), SHAPE_STR(onnx_dims(n), boxes));
  return NULL;
}

/* Returns [batches, boxes, 4]: for each box the lower coordinate on both axes, then the higher one.  The input states a
 * box by two opposite corners in any order or, with `centers`, by its center and size.  A box of negative size overlaps
 * no other. */
static hlo_value corners_of(onnx_node *n, bool centers) {
  hlo_builder *b = n->b;
  hlo_value first = hlo_slice_dim(b, n->in[0], 2, 0, 2), second = hlo_slice_dim(b, n->in[0], 2, 2, 4), ends[2];
  if (centers) {
    hlo_value half = onnx_binary_scalar(b, HLO_MUL, second, 0.5);
    ends[0] = hlo_binary(b, HLO_SUB, first, half);
    ends[1] = hlo_binary(b, HLO_ADD, first, half);
  } else {
    ends[0] = hlo_binary(b, HLO_MIN, first, second);
    ends[1] = hlo_binary(b, HLO_MAX, first, second);
  }
  return hlo_concatenate(b, 2, ends, 2);
}

/* Reads iou_threshold.  If it is a constant, it must be within the range that ONNX allows; otherwise it is not checked.
 */
static status overlap_of(onnx_node *n, hlo_value *out) {
  *out = onnx_has_in(n, 3) ? onnx_scalar_input(n, 3, "iou_threshold") : hlo_scalar(n->b, DTYPE_F32, 0);
  const literal *l = out->def ? hlo_literal(*out) : NULL;
  if (l) {
    double overlap = literal_f64(l, 0);
    CHECK_THAT(overlap >= 0 && overlap <= 1, INVALID, "iou_threshold is %g; it must lie in [0, 1]", overlap);
  }
  return NULL;
}

/* Sets *most to max_output_boxes_per_class, or to 0 if it is absent.  *limit receives a bound, known during the import,
 * of the number of boxes that are selected for one class; UINT32_MAX if there is none. */
static void most_of(onnx_node *n, hlo_value *most, int64_t *limit) {
  *most =
      onnx_has_in(n, 2) ? onnx_scalar_input(n, 2, "max_output_boxes_per_class") : hlo_scalar_int(n->b, DTYPE_S64, 0);
  dim boxes = hlo_shape(n->in[0])->dims[1];
  *limit = dim_is_const(boxes) ? boxes : UINT32_MAX;
  const literal *l = most->def ? hlo_literal(*most) : NULL;
  if (l && literal_i64(l, 0) < *limit) {
    *limit = literal_i64(l, 0) < 0 ? 0 : literal_i64(l, 0);
  }
}

/* The operation hlo_nms returns an array with room for as many rows as can be selected, and the number of rows that are
 * selected.  If that number is a constant, the array is cut to it; otherwise the result has a dynamic dimension. */
status onnx_import_non_max_suppression(onnx_node *n) {
  int64_t centers, limit;
  hlo_value operands[5], out[2];
  TRY(check_shapes(n));
  TRY(onnx_attr_int(n->proto, "center_point_box", 0, &centers));
  CHECK_THAT(centers == 0 || centers == 1, INVALID, "center_point_box is %" PRId64 "; it must be 0 or 1", centers);
  operands[0] = corners_of(n, centers);
  operands[1] = n->in[1];
  most_of(n, &operands[2], &limit);
  TRY(overlap_of(n, &operands[3]));
  if (onnx_has_in(n, 4)) {
    operands[4] = onnx_scalar_input(n, 4, "score_threshold");
  }
  hlo_nms(n->b, onnx_has_in(n, 4) ? 5 : 4, operands, limit, out);
  if (n->b->error) {
    return NULL;
  }
  const literal *size = hlo_literal(out[1]);
  if (hlo_shape(out[0])->dims[0] == 0) {
    n->out[0] = hlo_splat(n->b, *hlo_shape(out[0]), 0);
  } else if (size) {
    n->out[0] = hlo_slice_dim(n->b, out[0], 0, 0, literal_i64(size, 0));
  } else {
    n->out[0] = out[0];
    onnx_dynamic_dim_set(n->scope->importer, n->out[0], 0, out[1]);
  }
  return NULL;
}
