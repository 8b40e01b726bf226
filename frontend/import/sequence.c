/* sequence.c - sequences of tensors as lists of HLO values, and optionals without an element. */
#include "frontend/import/sequence.h"

#include <inttypes.h>

static hlo_value make_list(arena *a, shape_kind kind, dtype type, uint32_t n, const hlo_value *elements) {
  shape *s = ARENA_NEW(a, shape);
  *s = shape_scalar(type);
  s->kind = (uint8_t)kind;
  /* The operation is invalid, so that code which mistakes the list for an instruction fails at once. */
  hlo_instr *list = ARENA_NEW(a, hlo_instr);
  *list = (hlo_instr){.op = HLO_OP_COUNT, .n_operands = n, .n_results = 1, .shapes = s, .source = ""};
  list->operands = ARENA_NEW_N(a, hlo_value, n + 1);
  for (uint32_t k = 0; k < n; k++) {
    list->operands[k] = elements[k];
  }
  return hlo_result(list, 0);
}

hlo_value onnx_sequence_make(arena *a, dtype type, uint32_t n, const hlo_value *elements) {
  return make_list(a, SHAPE_SEQUENCE, type, n, elements);
}

hlo_value onnx_absent_make(arena *a, dtype type) { return make_list(a, SHAPE_OPTIONAL, type, 0, NULL); }

bool onnx_may_become(const shape *before, const shape *after) {
  bool optional = before->kind == SHAPE_OPTIONAL || after->kind == SHAPE_OPTIONAL;
  return before->type == after->type && (optional || before->kind == after->kind);
}

status onnx_sequence_position(int64_t position, int64_t n, bool end, int64_t *out) {
  CHECK_THAT(position >= -n && (position < n || (end && position == n)), STATUS_INVALID_MODEL,
             "position is %" PRId64 "; in a sequence of %" PRId64 " it must be within [%" PRId64 ", %" PRId64 "%s",
             position, n, -n, n, end ? "]" : ")");
  *out = position < 0 ? position + n : position;
  return NULL;
}
