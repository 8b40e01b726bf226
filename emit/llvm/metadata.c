/* metadata.c - function attributes and instruction metadata; see metadata.h. */
#include "emit/llvm/metadata.h"

#include <assert.h>
#include <stdio.h>
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

void emit_mark_function(const emit_ir *w) {
  emit_add_attribute(w, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "nounwind");
  emit_add_text_attribute(w, "no-builtins", "true");
  if (w->target->vector_bits) {
    char bits[16];
    snprintf(bits, sizeof bits, "%d", w->target->vector_bits);
    emit_add_text_attribute(w, "prefer-vector-width", bits);
  }
}

LLVMValueRef emit_add_internal_function(const emit_ir *w, const char *name, LLVMTypeRef type) {
  emit_ir own = *w;
  own.function = LLVMAddFunction(w->module, name, type);
  LLVMSetLinkage(own.function, LLVMInternalLinkage);
  emit_mark_function(&own);
  return own.function;
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
