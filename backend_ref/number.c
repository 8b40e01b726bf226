/* number.c - converts arrays of any element type to the five number classes and back. */
#include <math.h>
#include <string.h>

#include "backend_ref/ref.h"

static const dtype class_types[REF_CLASSES] = {[REF_F32] = DTYPE_F32,
                                               [REF_F64] = DTYPE_F64,
                                               [REF_S64] = DTYPE_S64,
                                               [REF_U64] = DTYPE_U64,
                                               [REF_C128] = DTYPE_C128};

ref_class ref_class_of(dtype t) {
  switch (dtype_get_info(t)->kind) {
    case DTYPE_CLASS_FLOAT: return t == DTYPE_F64 ? REF_F64 : REF_F32;
    case DTYPE_CLASS_COMPLEX: return REF_C128;
    case DTYPE_CLASS_SIGNED: return REF_S64;
    default: return REF_U64;
  }
}

ref_class ref_sum_class(dtype t) {
  ref_class c = ref_class_of(t);
  return c == REF_F32 ? REF_F64 : c;
}

size_t ref_class_bytes(ref_class c) { return dtype_bytes(class_types[c]); }

/* Returns true if no conversion is needed.  Strings are ids of 8 bytes and are used as unsigned numbers. */
static bool same_layout(dtype t, ref_class c) { return t == class_types[c] || (t == DTYPE_STR && c == REF_U64); }

const void *ref_load(dtype t, ref_class c, const void *data, int64_t first, int64_t n, void *buffer) {
  const char *at = (const char *)data + (size_t)first * dtype_bytes(t);
  if (same_layout(t, c)) {
    return at;
  }
  dtype_convert(t, at, class_types[c], buffer, (size_t)n, false, DTYPE_ROUND_NEAREST);
  return buffer;
}

const void *ref_load_all(ref_call *call, const literal *l, ref_class c) {
  int64_t n = shape_elements(&l->shape);
  if (same_layout((dtype)l->shape.type, c)) {
    return l->data;
  }
  void *all = arena_calloc(ref_scratch(call), (size_t)n, ref_class_bytes(c));
  return ref_load((dtype)l->shape.type, c, l->data, 0, n, all);
}

void ref_store(dtype t, ref_class c, const void *values, void *data, int64_t first, int64_t n) {
  char *at = (char *)data + (size_t)first * dtype_bytes(t);
  if (!same_layout(t, c)) {
    dtype_convert(class_types[c], values, t, at, (size_t)n, false, DTYPE_ROUND_NEAREST);
  } else if (at != values && n) {
    memcpy(at, values, (size_t)n * dtype_bytes(t));
  }
}

void *ref_begin(ref_call *call, uint32_t k, ref_class c) {
  const shape *s = &call->out[k].shape;
  void *own = ref_result(call, k);
  return same_layout((dtype)s->type, c)
             ? own
             : arena_calloc(ref_scratch(call), (size_t)shape_elements(s), ref_class_bytes(c));
}

void ref_finish(ref_call *call, uint32_t k, ref_class c, void *values) {
  const shape *s = &call->out[k].shape;
  ref_store((dtype)s->type, c, values, (void *)call->out[k].data, 0, shape_elements(s));
}

static int order_f64(double x, double y) {
  if (isnan(x) || isnan(y)) {
    return !!isnan(x) - !!isnan(y);
  }
  return (x > y) - (x < y);
}

int ref_order(ref_class c, const void *x, const void *y) {
  switch (c) {
    case REF_F32: return order_f64(*(const float *)x, *(const float *)y);
    case REF_F64: return order_f64(*(const double *)x, *(const double *)y);
    case REF_S64: return (*(const int64_t *)x > *(const int64_t *)y) - (*(const int64_t *)x < *(const int64_t *)y);
    default: return (*(const uint64_t *)x > *(const uint64_t *)y) - (*(const uint64_t *)x < *(const uint64_t *)y);
  }
}

bool ref_is_nan(ref_class c, const void *x) {
  return (c == REF_F32 && isnan(*(const float *)x)) || (c == REF_F64 && isnan(*(const double *)x));
}
