/* optional.c - the operators on optionals.  An optional that has an element is that element (sequence.h), so that
 * making one and taking its element make no instructions. */
#include "frontend/import/import_helpers.h"
#include "frontend/import/import.h"
#include "frontend/import/sequence.h"
#include "frontend/model/attributes.h"

static bool has_element(const onnx_node *n) { return onnx_has_in(n, 0) && !onnx_is_absent(n->in[0]); }

status onnx_import_optional(onnx_node *n) {
  const Onnx__TypeProto *type;
  shape s;
  TRY(onnx_attr_type_proto(n->proto, "type", &type));
  if (onnx_has_in(n, 0)) {
    CHECK_THAT(!onnx_is_absent(n->in[0]), STATUS_INVALID_MODEL, "an optional of an optional");
    n->out[0] = n->in[0];
    return NULL;
  }
  CHECK_THAT(type, STATUS_INVALID_MODEL, "neither an input nor the attribute type is given");
  TRY(onnx_type_shape(onnx_dims(n), "the attribute type", type, &s));
  n->out[0] = onnx_absent_make(n->arena, (dtype)s.type);
  return NULL;
}

status onnx_import_optional_has_element(onnx_node *n) {
  n->out[0] = hlo_scalar(n->b, DTYPE_PRED, has_element(n));
  return NULL;
}

status onnx_import_optional_get_element(onnx_node *n) {
  CHECK_THAT(has_element(n), STATUS_INVALID_MODEL, "the optional has no element");
  n->out[0] = n->in[0];
  return NULL;
}
