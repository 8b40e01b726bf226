/* trampoline.c - see trampoline.h. */
#include "emit/llvm/trampoline.h"

#include <string.h>

#include "emit/llvm/cpus.h"
#include "emit/llvm/metadata.h"

static const char static_chain[] = "nest";

static bool has_trampolines(const emit_ir *w) {
  const emit_arch *arch = emit_find_arch(w->target->triple);
  return arch && arch->static_chain;
}

void emit_mark_static_chain(const emit_ir *w, LLVMValueRef function) {
  emit_ir own = *w;
  own.function = function;
  if (has_trampolines(w)) {
    emit_add_attribute(&own, LLVMCountParams(function), static_chain);
  }
}

LLVMValueRef emit_static_chain(LLVMValueRef constant) {
  LLVMSetLinkage(constant, LLVMInternalLinkage); /* the object has no names of private constants */
  return constant;
}

static bool takes_static_chain(LLVMValueRef f) {
  unsigned kind = LLVMGetEnumAttributeKindForName(static_chain, sizeof static_chain - 1), n = LLVMCountParams(f);
  return n > 0 && LLVMGetEnumAttributeAtIndex(f, n, kind);
}

/* Returns true if i computes an address or loads; if only a function's call is kept, such instructions are not needed.
 */
static bool only_loads(LLVMValueRef i) {
  return LLVMIsAGetElementPtrInst(i) || (LLVMIsALoadInst(i) && !LLVMGetVolatile(i));
}

/* Returns the call of which f consists, besides loads, or NULL if f does anything else. */
static LLVMValueRef only_call(LLVMValueRef f) {
  if (LLVMCountBasicBlocks(f) != 1) {
    return NULL;
  }
  LLVMValueRef call = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(f));
  while (only_loads(call)) {
    call = LLVMGetNextInstruction(call);
  }
  LLVMValueRef last = LLVMGetNextInstruction(call);
  bool returns = last && LLVMIsAReturnInst(last) && LLVMGetNumOperands(last) == 0;
  return returns && LLVMIsACallInst(call) ? call : NULL;
}

/* Returns the function that f calls with its own parameters, and sets *chain to the constant that follows them, or to
 * NULL.  Returns NULL if f does anything else. */
static LLVMValueRef target_of(LLVMValueRef f, LLVMValueRef *chain) {
  LLVMValueRef call = only_call(f), target = call ? LLVMGetCalledValue(call) : NULL;
  if (!target || !LLVMIsAFunction(target) || LLVMGetIntrinsicID(target)) {
    return NULL;
  }
  unsigned n = LLVMCountParams(f), n_arguments = LLVMGetNumArgOperands(call), n_chains = takes_static_chain(target);
  if (n_arguments != n + n_chains || takes_static_chain(f)) {
    return NULL;
  }
  for (unsigned k = 0; k < n; k++) {
    if (LLVMGetOperand(call, k) != LLVMGetParam(f, k)) {
      return NULL;
    }
  }
  *chain = n_chains ? LLVMGetOperand(call, n) : NULL;
  return *chain && !LLVMIsAGlobalVariable(*chain) ? NULL : target;
}

static const char *name_of(LLVMValueRef global) {
  size_t length;
  return LLVMGetValueName2(global, &length);
}

bool emit_only_calls(LLVMValueRef f) {
  LLVMValueRef chain;
  return target_of(f, &chain) != NULL;
}

/* Returns the assembler text of f, for ELF.  No name in a module needs escapes. */
static const char *write_text(const emit_ir *w, LLVMValueRef f, LLVMValueRef target, LLVMValueRef chain) {
  const emit_arch *arch = emit_find_arch(w->target->triple);
  const char *name = name_of(f), *set = "";
  if (chain) {
    set = arena_printf(w->arena, arch->static_chain, name_of(chain));
  }
  const char *global = LLVMGetLinkage(f) == LLVMInternalLinkage ? "" : arena_printf(w->arena, ".globl \"%s\"\n", name);
  return arena_printf(w->arena,
                      ".text\n%s.p2align 4\n.type \"%s\",@function\n\"%s\":\n%sjmp \"%s\"\n.size \"%s\", .-\"%s\"\n",
                      global, name, name, set, name_of(target), name, name);
}

/* Leaves a declaration of f, which code of the module may refer to. */
static void remove_code(LLVMValueRef f) {
  LLVMDeleteBasicBlock(LLVMGetEntryBasicBlock(f));
  if (LLVMGetLinkage(f) == LLVMInternalLinkage) {
    LLVMSetLinkage(f, LLVMExternalLinkage);
    LLVMSetVisibility(f, LLVMHiddenVisibility);
  }
}

void emit_write_trampolines(emit_ir *w) {
  if (!has_trampolines(w)) {
    return;
  }
  for (LLVMValueRef f = LLVMGetFirstFunction(w->module); f; f = LLVMGetNextFunction(f)) {
    LLVMValueRef chain, target = LLVMIsDeclaration(f) ? NULL : target_of(f, &chain);
    if (target) {
      const char *text = write_text(w, f, target, chain);
      LLVMAppendModuleInlineAsm(w->module, text, strlen(text));
      remove_code(f);
    }
  }
}
