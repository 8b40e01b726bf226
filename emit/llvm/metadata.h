/* metadata.h - attributes of functions, and metadata of instructions. */
#ifndef EMIT_LLVM_METADATA_H
#define EMIT_LLVM_METADATA_H

#include "emit/llvm/ir.h"

/* Adds an attribute that LLVM knows by `name`, such as "noalias", to the function that is being written: at 0 to its
 * result, at k to its parameter k - 1, at LLVMAttributeFunctionIndex to the function itself. */
void emit_add_attribute(const emit_ir *w, unsigned at, const char *name);
/* Adds the attribute "name"="value" to the function that is being written. */
void emit_add_text_attribute(const emit_ir *w, const char *name, const char *value);

/* Returns a metadata node of these n operands. */
LLVMValueRef emit_metadata_node(const emit_ir *w, LLVMMetadataRef *operands, size_t n);
/* Attaches metadata of a kind, such as "align", to the instruction v. */
void emit_set_metadata(const emit_ir *w, LLVMValueRef v, const char *kind, LLVMValueRef node);
/* Attaches metadata of a kind whose only operand is the number n. */
void emit_set_metadata_number(const emit_ir *w, LLVMValueRef v, const char *kind, int64_t n);

#endif
