/* cast.c - the importers of Cast, CastLike and BitCast. */
#include <string.h>

#include "frontend/import/import_common.h"

/* Returns the type that the attribute `to` names as a string, as in version 1, and in some models of version 6. */
static status named_type(const onnx_node *n, dtype *out) {
  static const struct {
    const char *name;
    dtype type;
  } names[] = {
      {"FLOAT", DTYPE_F32},   {"UINT8", DTYPE_U8},   {"INT8", DTYPE_S8},    {"UINT16", DTYPE_U16},
      {"INT16", DTYPE_S16},   {"INT32", DTYPE_S32},  {"INT64", DTYPE_S64},  {"BOOL", DTYPE_PRED},
      {"FLOAT16", DTYPE_F16}, {"DOUBLE", DTYPE_F64}, {"UINT32", DTYPE_U32}, {"UINT64", DTYPE_U64},
  };
  const char *to;
  TRY(onnx_attr_string(n->arena, n->proto, "to", "", &to));
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    if (strcmp(names[k].name, to) == 0) {
      *out = names[k].type;
      return NULL;
    }
  }
  return status_error(STATUS_INVALID_MODEL, "attribute to: '%s' is no element type of version 1", to);
}

static status round_mode(const onnx_node *n, dtype_round *out) {
  const char *mode;
  TRY(onnx_attr_string(n->arena, n->proto, "round_mode", "up", &mode));
  *out = strcmp(mode, "up") == 0 ? DTYPE_ROUND_UP : strcmp(mode, "down") == 0 ? DTYPE_ROUND_DOWN : DTYPE_ROUND_NEAREST;
  CHECK_THAT(*out != DTYPE_ROUND_NEAREST || strcmp(mode, "nearest") == 0, STATUS_INVALID_MODEL,
             "round_mode is '%s', not up, down or nearest", mode);
  return NULL;
}

/* The host casts strings, between segments (plugin/compiler/host/cast.c), since no kernel sees their bytes. */
static status cast_strings(onnx_node *n, dtype to) {
  if (hlo_type(n->in[0]) == to) {
    n->out[0] = n->in[0];
    return NULL;
  }
  return onnx_leave_to_interpreter(n, "it casts strings");
}

/* Converts the input.  round_mode is used for float8e8m0 only, the one type for which the standard defines it. */
static status cast_to(onnx_node *n, dtype to) {
  bool saturate;
  dtype_round round;
  TRY(onnx_attr_bool(n->proto, "saturate", true, &saturate));
  TRY(round_mode(n, &round));
  dtype from = hlo_type(n->in[0]);
  if (from == DTYPE_STR || to == DTYPE_STR) {
    return cast_strings(n, to);
  }
  if (dtype_is_int(to) && dtype_get_info(to)->bits < 8) {
    /* The conversion by way of s32 makes values out of range wrap, as in ONNX's test cases. */
    n->out[0] = hlo_convert(n->b, hlo_convert(n->b, n->in[0], DTYPE_S32), to);
    return NULL;
  }
  bool small = dtype_is_float(to) && dtype_bytes(to) == 1;
  n->out[0] =
      hlo_convert_as(n->b, n->in[0], to, saturate || !small, to == DTYPE_F8E8M0FNU ? round : DTYPE_ROUND_NEAREST);
  return NULL;
}

status onnx_import_cast(onnx_node *n) {
  dtype to;
  TRY(onnx_attr_required(n->proto, "to"));
  bool named = onnx_attr_type(onnx_attr_find(n->proto, "to")) == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
  if (n->since == 1 || (n->since == 6 && named)) {
    TRY(named_type(n, &to));
  } else {
    int64_t number;
    TRY(onnx_attr_int(n->proto, "to", 0, &number));
    bool strings = number == ONNX__TENSOR_PROTO__DATA_TYPE__STRING; /* onnx_dtype_attr refuses them */
    to = DTYPE_STR;
    TRY(strings ? NULL : onnx_dtype_attr(n, "to", DTYPE_INVALID, &to));
  }
  return cast_to(n, to);
}

status onnx_import_cast_like(onnx_node *n) { return cast_to(n, hlo_type(n->in[1])); }

status onnx_import_bit_cast(onnx_node *n) {
  dtype to;
  TRY(onnx_attr_required(n->proto, "to"));
  TRY(onnx_dtype_attr(n, "to", DTYPE_INVALID, &to));
  hlo_value x = n->in[0]; /* ONNX's bool has 8 bits, HLO's pred has one */
  if (hlo_type(x) == DTYPE_PRED && to != DTYPE_PRED) {
    x = hlo_convert(n->b, x, DTYPE_U8);
  }
  if (to == DTYPE_PRED && hlo_type(x) != DTYPE_PRED) {
    n->out[0] = hlo_convert(n->b, hlo_bitcast(n->b, x, DTYPE_U8), to);
  } else {
    n->out[0] = hlo_bitcast(n->b, x, to);
  }
  return NULL;
}
