/* function.c - see function.h. */
#include "emit/llvm/function.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "emit/llvm/cpus.h"
#include "emit/llvm/metadata.h"
#include "emit/llvm/trampoline.h"

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

/* --- shared functions --- */

LLVMTypeRef emit_shared_type(const emit_ir *w, const char *parameters) {
  LLVMTypeRef types[EMIT_SHARED_PARAMETERS];
  unsigned n = 0;
  for (; parameters[n]; n++) {
    assert(n < EMIT_SHARED_PARAMETERS);
    types[n] = parameters[n] == 'i' ? w->i64 : w->ptr;
  }
  return LLVMFunctionType(LLVMVoidTypeInContext(w->context), types, n, false);
}

void emit_call_typed(const emit_ir *w, LLVMValueRef function, const char *parameters, LLVMValueRef *arguments) {
  LLVMTypeRef type = emit_shared_type(w, parameters);
  LLVMBuildCall2(w->builder, type, function, arguments, LLVMCountParamTypes(type), "");
}

/* Returns the name of a shared function in code for the target of which `target` is the text (emit_target_text). */
static const char *name_for(const emit_ir *w, const emit_shared *f, const char *target) {
  return arena_printf(w->arena, "%s_%016llx", f->name, (unsigned long long)hash_bytes(target, strlen(target), 0));
}

/* Marks the static chain of the function that was just added for f, if it has one. */
static void mark_parameters(const emit_ir *w, const emit_shared *f, LLVMValueRef function) {
  if (strchr(f->parameters, 'c')) {
    emit_mark_static_chain(w, function);
  }
}

/* Returns f as one of the functions that are there when the code runs, or NULL if it is none of them. */
static LLVMValueRef find_precompiled(const emit_ir *w, const emit_shared *f) {
  const function_set *there = w->target->functions;
  const char *name = there ? name_for(w, f, there->target) : NULL;
  if (!there || !function_set_find(there, name)) {
    return NULL;
  }
  LLVMValueRef found = LLVMGetNamedFunction(w->module, name);
  if (!found) {
    found = LLVMAddFunction(w->module, name, emit_shared_type(w, f->parameters));
    mark_parameters(w, f, found);
  }
  return found;
}

static LLVMValueRef add_shared(const emit_ir *w, const emit_shared *f, const char *name) {
  LLVMBasicBlockRef caller = emit_here(w);
  emit_ir own = *w;
  own.watch = NULL;
  own.function = emit_add_internal_function(w, name, emit_shared_type(w, f->parameters));
  mark_parameters(w, f, own.function);
  LLVMPositionBuilderAtEnd(w->builder, emit_block(&own, "entry"));
  f->body(&own, f->data);
  if (caller) {
    LLVMPositionBuilderAtEnd(w->builder, caller);
  }
  return own.function;
}

LLVMValueRef emit_shared_function(const emit_ir *w, const emit_shared *f) {
  LLVMValueRef found = find_precompiled(w, f);
  if (found) {
    return found;
  }
  const char *name = name_for(w, f, emit_target_text(w->arena, w->target));
  found = LLVMGetNamedFunction(w->module, name);
  return found ? found : add_shared(w, f, name);
}

void emit_call_shared(const emit_ir *w, const emit_shared *f, LLVMValueRef *arguments) {
  emit_call_typed(w, emit_shared_function(w, f), f->parameters, arguments);
}

/* --- records --- */

LLVMValueRef emit_record_at(const emit_ir *w, LLVMValueRef record, LLVMValueRef k) {
  return LLVMBuildInBoundsGEP2(w->builder, w->i64, record, &k, 1, "");
}

LLVMValueRef emit_record_number(const emit_ir *w, LLVMValueRef record, int k) {
  return LLVMBuildLoad2(w->builder, w->i64, emit_record_at(w, record, emit_i64(w, k)), "");
}

LLVMValueRef emit_record_pointer(const emit_ir *w, LLVMValueRef record, int k) {
  return LLVMBuildLoad2(w->builder, w->ptr, emit_record_at(w, record, emit_i64(w, k)), "");
}

LLVMValueRef emit_constant_data(const emit_ir *w, LLVMValueRef value, const char *name) {
  LLVMValueRef data = LLVMAddGlobal(w->module, LLVMTypeOf(value), name);
  LLVMSetInitializer(data, value);
  LLVMSetLinkage(data, LLVMPrivateLinkage);
  LLVMSetGlobalConstant(data, true);
  LLVMSetUnnamedAddress(data, LLVMGlobalUnnamedAddr);
  return data;
}

LLVMValueRef emit_constant_record(const emit_ir *w, int n, LLVMValueRef *entries) {
  LLVMValueRef *fields = ARENA_NEW_N(w->arena, LLVMValueRef, 2 * n);
  unsigned n_fields = 0;
  for (int k = 0; k < n; k++) {
    fields[n_fields++] = entries[k];
    if (LLVMTypeOf(entries[k]) == w->ptr && w->target->pointer_bits == 32) {
      fields[n_fields++] = LLVMConstNull(w->i32);
    }
  }
  LLVMValueRef record = emit_constant_data(w, LLVMConstStructInContext(w->context, fields, n_fields, false), "record");
  LLVMSetAlignment(record, 8);
  return record;
}
