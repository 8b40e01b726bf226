/* product_parts.h - parts of product.h's kernels for kernels that hold products. */
#ifndef EMIT_PRODUCT_PARTS_H
#define EMIT_PRODUCT_PARTS_H

#include "emit/product.h"
#include "emit/writer.h"

/* Where step number `index` of the levels stands, in A or in B: i64, in elements. */
LLVMValueRef emit_level_offset(const emit_ir *w, int64_t n, const emit_level *levels, bool in_b, LLVMValueRef index);

/* All of a kernel that packs B, whose batch 0 begins at `b`, as panels at `packed`: writes its loop, sets its grid and cost. */
void emit_product_panels(emit_writer *w, const emit_product *p, LLVMValueRef b, LLVMValueRef packed);

#endif
