/* metadata.c - function attributes and instruction metadata; see metadata.h. */
#include "emit/llvm/metadata.h"

#include <assert.h>
#include <string.h>

void emit_add_attribute(const emit_ir *w, unsigned at, const char *name) {
  unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
  assert(kind);
  LLVMAddAttributeAtIndex(w->function, at, LLVMCreateEnumAttribute(w->context, kind, 0));
}

void emit_add_text_attribute(const emit_ir *w, const char *name, const char *value) {
  LLVMAttributeRef a =
      LLVMCreateStringAttribute(w->context, name, (unsigned)strlen(name), value, (unsigned)strlen(value));
  LLVMAddAttributeAtIndex(w->function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, a);
}

LLVMValueRef emit_metadata_node(const emit_ir *w, LLVMMetadataRef *operands, size_t n) {
  return LLVMMetadataAsValue(w->context, LLVMMDNodeInContext2(w->context, operands, n));
}

void emit_set_metadata(const emit_ir *w, LLVMValueRef v, const char *kind, LLVMValueRef node) {
  LLVMSetMetadata(v, LLVMGetMDKindIDInContext(w->context, kind, (unsigned)strlen(kind)), node);
}

void emit_set_metadata_number(const emit_ir *w, LLVMValueRef v, const char *kind, int64_t n) {
  LLVMMetadataRef number = LLVMValueAsMetadata(emit_i64(w, n));
  emit_set_metadata(w, v, kind, emit_metadata_node(w, &number, 1));
}
