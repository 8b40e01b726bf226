/* sizes.c - sizes of a kernel that are not constants; see sizes.h. */
#include "emit/llvm/sizes.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Loads argument k at the beginning of the function, so that it can be used everywhere. */
static LLVMValueRef load_size(const emit_ir *w, LLVMValueRef args, uint32_t k) {
  LLVMBasicBlockRef here = emit_here(w), entry = LLVMGetEntryBasicBlock(w->function);
  LLVMValueRef first = LLVMGetFirstInstruction(entry), at = emit_i64(w, k);
  if (first) {
    LLVMPositionBuilderBefore(w->builder, first);
  } else {
    LLVMPositionBuilderAtEnd(w->builder, entry);
  }
  LLVMValueRef v = LLVMBuildLoad2(w->builder, w->i64, LLVMBuildInBoundsGEP2(w->builder, w->i64, args, &at, 1, ""), "");
  LLVMSetAlignment(v, 8);
  LLVMPositionBuilderAtEnd(w->builder, here);
  return v;
}

LLVMValueRef emit_size(const emit_indexer *x, dim d) {
  emit_sizes *s = x->sizes;
  int64_t constant;
  if (dim_is_const(d) || d == DIM_OVERFLOW) {
    s->overflow |= d == DIM_OVERFLOW;
    return emit_i64(x->w, d == DIM_OVERFLOW ? 1 : d);
  }
  if (dim_signed_value(s->table, d, &constant)) {
    return emit_i64(x->w, constant);
  }
  for (uint32_t k = 0; k < s->n_dims; k++) {
    if (s->dims[k] == d) {
      return s->values[k];
    }
  }
  assert(s->args);
  LLVMValueRef v = load_size(x->w, s->args, s->n_dims);
  *ARENA_PUSH(x->w->arena, s->values, s->n_values, s->cap_values) = v;
  *ARENA_PUSH(x->w->arena, s->dims, s->n_dims, s->cap_dims) = d;
  return v;
}

void emit_reload_sizes(const emit_indexer *x, uint32_t first) {
  emit_sizes *s = x->sizes;
  LLVMValueRef *values = ARENA_NEW_N(x->w->arena, LLVMValueRef, s->n_dims + 1);
  if (first) {
    memcpy(values, s->values, first * sizeof *values);
  }
  for (uint32_t k = first; k < s->n_dims; k++) {
    values[k] = load_size(x->w, s->args, k);
  }
  s->values = values;
  s->n_values = s->n_dims;
  s->cap_values = s->n_dims + 1;
}

LLVMValueRef emit_size_like(const emit_indexer *x, LLVMValueRef v, dim d) {
  if (dim_is_const(d)) {
    return emit_i(v, d);
  }
  LLVMValueRef n = LLVMBuildIntCast2(x->w->builder, emit_size(x, d), emit_scalar_type(LLVMTypeOf(v)), true, "");
  return emit_lanes(v) ? emit_splat(x->w, n, (int)emit_lanes(v)) : n;
}

dim emit_dims_difference(const emit_indexer *x, dim a, dim b) { return dim_signed_sub(x->sizes->table, a, b); }

static dim product(dim_table *t, const dim *dims, int first, int last) {
  dim n = 1;
  for (int k = first; k < last; k++) {
    n = dim_mul(t, n, dims[k]);
  }
  return n;
}

dim emit_dims_product(const emit_indexer *x, const dim *dims, int first, int last) {
  return product(x->sizes->table, dims, first, last);
}

bool emit_divides(const emit_indexer *x, dim a, dim b) {
  if (dim_is_const(a) && dim_is_const(b)) {
    return a > 0 && b % a == 0;
  }
  return a != 0 && (a == b || dim_mod(x->sizes->table, b, a) == 0);
}

dim emit_quotient(const emit_indexer *x, dim b, dim a) {
  return dim_is_const(a) && dim_is_const(b) ? b / a : dim_floordiv(x->sizes->table, b, a);
}

void emit_poll_in(const emit_indexer *x, LLVMValueRef iv, int64_t step, dim n, dim inner) {
  double each = fmin(fmax(emit_likely_size(x->sizes->table, inner), 1), (double)INT64_MAX / 4);
  emit_poll(x->w, iv, step, dim_is_const(n) ? n : EMIT_ANY_NUMBER, dim_is_const(inner) ? inner : (int64_t)each);
}
