/* function.c - see function.h. */
#include "emit/llvm/function.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "emit/llvm/cpus.h"
#include "emit/llvm/metadata.h"

void emit_mark_function(const emit_ir *w) {
  emit_add_attribute(w, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "nounwind");
  emit_add_text_attribute(w, "no-builtins", "true");
  if (w->target->vector_bits) {
    char bits[16];
    snprintf(bits, sizeof bits, "%d", w->target->vector_bits);
    emit_add_text_attribute(w, "prefer-vector-width", bits);
  }
}

void emit_compile_quickly(const emit_ir *w) {
  if (w->target->small) {
    return;
  }
  emit_add_attribute(w, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "optnone");
  emit_add_attribute(w, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "noinline"); /* which optnone needs */
}

void emit_divide_plainly(const emit_ir *w) {
  const emit_arch *arch = emit_find_arch(w->target->triple);
  if (arch && arch->family == EMIT_X86) {
    const char *features = emit_target_llvm_features(w->arena, w->target);
    features = arena_printf(w->arena, "%s%s-idivq-to-divl", features, *features ? "," : "");
    emit_add_text_attribute(w, EMIT_TARGET_FEATURES, features);
  }
}

LLVMValueRef emit_add_internal_function(const emit_ir *w, const char *name, LLVMTypeRef type) {
  emit_ir own = *w;
  own.function = LLVMAddFunction(w->module, name, type);
  LLVMSetLinkage(own.function, LLVMInternalLinkage);
  LLVMSetUnnamedAddress(own.function, LLVMGlobalUnnamedAddr); /* equal functions become one (emit/kernel/compile.c) */
  emit_mark_function(&own);
  return own.function;
}

LLVMValueRef emit_shared_function(const emit_ir *w, const char *name, LLVMTypeRef type, emit_shared_body_fn *body,
                                  const void *data) {
  const char *target = emit_target_text(w->arena, w->target);
  name = arena_printf(w->arena, "%s_%016llx", name, (unsigned long long)hash_bytes(target, strlen(target), 0));
  LLVMValueRef f = LLVMGetNamedFunction(w->module, name);
  if (f) {
    return f;
  }
  LLVMBasicBlockRef caller = emit_here(w);
  emit_ir own = *w;
  own.watch = NULL;
  own.function = emit_add_internal_function(w, name, type);
  LLVMPositionBuilderAtEnd(w->builder, emit_block(&own, "entry"));
  body(&own, data);
  LLVMPositionBuilderAtEnd(w->builder, caller);
  return own.function;
}

void emit_call_shared(const emit_ir *w, const char *name, emit_shared_body_fn *body, const void *data, unsigned n,
                      LLVMValueRef *arguments) {
  LLVMTypeRef *types = ARENA_NEW_N(w->arena, LLVMTypeRef, n);
  for (unsigned k = 0; k < n; k++) {
    types[k] = LLVMTypeOf(arguments[k]);
  }
  LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(w->context), types, n, false);
  LLVMBuildCall2(w->builder, type, emit_shared_function(w, name, type, body, data), arguments, n, "");
}
