/* sizes.h - sizes that are arguments of a kernel, and what code for positions needs to know. */
#ifndef EMIT_LLVM_SIZES_H
#define EMIT_LLVM_SIZES_H

#include "base/tensor/shape.h"
#include "emit/llvm/likely.h"
#include "emit/llvm/table.h"

/* The sizes of a kernel that are not constants.  Extents, strides and offsets are dims: constants, or expressions of a
 * dim_table.  Each expression that the code needs is an argument of the kernel, which is loaded at the beginning. */
typedef struct emit_sizes {
  dim_table *table;
  LLVMValueRef args; /* the kernel's table of arguments */
  uint32_t n_dims, cap_dims, n_values, cap_values;
  dim *dims; /* argument k is dims[k], and values[k] is its value as an i64 */
  LLVMValueRef *values;
  bool overflow; /* whether the code would need a size that is DIM_OVERFLOW, so that the code must not be used */
} emit_sizes;

typedef struct emit_indexer {
  emit_ir *w;
  emit_table *table;
  int lanes;   /* the number of lanes of the values that are computed; 1 means scalars */
  bool narrow; /* whether every position fits in 31 bits, so that scattered ones are i32 */
  emit_sizes *sizes;
} emit_indexer;

/* Returns d, which may be signed, as an i64. */
LLVMValueRef emit_size(const emit_indexer *x, dim d);
/* Loads the sizes from number `first` on again, at the beginning of the function that is being written, since another
 * function has loaded them.  The sizes before `first` were loaded in this function. */
void emit_reload_sizes(const emit_indexer *x, uint32_t first);
/* Returns d in as many lanes as v has, and of v's type. */
LLVMValueRef emit_size_like(const emit_indexer *x, LLVMValueRef v, dim d);
/* Returns a - b, which may be negative. */
dim emit_dims_difference(const emit_indexer *x, dim a, dim b);
/* Writes emit_poll (ir.h) for a loop `for (iv = 0; iv < n; iv += step)`, where n and `inner` need not be constants. */
void emit_poll_in(const emit_indexer *x, LLVMValueRef iv, int64_t step, dim n, dim inner);
/* Returns the product of dims[first], ..., dims[last - 1]. */
dim emit_dims_product(const emit_indexer *x, const dim *dims, int first, int last);
/* Returns true if b is known to be a multiple of a, which is not 0. */
bool emit_divides(const emit_indexer *x, dim a, dim b);
/* Returns b / a, where a divides b. */
dim emit_quotient(const emit_indexer *x, dim b, dim a);

#endif
