/* dispatch.c - the functions of an object with several versions: each calls the function of the same name of the
 * version that init has chosen. */
#include "aot/host.h"

/* Returns the function `name` of a version. */
static LLVMValueRef function_of(const aot_host *h, const char *name) {
  return LLVMGetNamedFunction(h->ir->module, aot_symbol(h, AOT_VERSIONED, name));
}

/* Begins a global function with the parameters of the versions' functions `name`, and returns its *n arguments. */
static LLVMValueRef *begin(aot_host *h, const char *name, uint32_t *n) {
  LLVMTypeRef type = LLVMGlobalGetValueType(function_of(h, name));
  *n = LLVMCountParamTypes(type);
  LLVMTypeRef *types = ARENA_NEW_N(h->arena, LLVMTypeRef, *n + 1);
  LLVMValueRef *args = ARENA_NEW_N(h->arena, LLVMValueRef, *n + 1);
  LLVMGetParamTypes(type, types);
  (void)aot_function(h, AOT_GLOBAL, name, LLVMGetReturnType(type), *n, types);
  for (uint32_t k = 0; k < *n; k++) {
    args[k] = aot_param(h, k);
  }
  return args;
}

/* Writes the global function `name`, which calls the function `name` of the version whose number is in the context.  If
 * the context was set to zeros but not initialised, this is the first version, whose function finds that the context is
 * not ready. */
static void write_call(aot_host *hosts, const char *name) {
  aot_host *h = &hosts[0];
  uint32_t n;
  LLVMValueRef *args = begin(h, name, &n);
  LLVMBasicBlockRef first = emit_block(h->ir, "version");
  LLVMValueRef choose = LLVMBuildSwitch(h->ir->builder, aot_get(h, WORD_VERSION), first, h->object->n_versions);
  for (uint32_t k = 0; k < h->object->n_versions; k++) {
    LLVMBasicBlockRef block = k ? emit_block(h->ir, "version") : first;
    if (k) {
      LLVMAddCase(choose, aot_i64(h, k), block);
    }
    LLVMPositionBuilderAtEnd(h->ir->builder, block);
    LLVMBuildRet(h->ir->builder, aot_call(h, function_of(&hosts[k], name), n, args));
  }
}

/* Writes arena_bytes, which gets no context, so that no version is chosen yet.  It returns the most bytes that any of
 * the versions needs, or 0 if one of them cannot take the sizes. */
static void write_most(aot_host *hosts, const char *name) {
  aot_host *h = &hosts[0];
  LLVMBuilderRef w = h->ir->builder;
  uint32_t n;
  LLVMValueRef *args = begin(h, name, &n), most = aot_i64(h, 0), none = LLVMConstInt(h->ir->i1, 0, 0);
  for (uint32_t k = 0; k < h->object->n_versions; k++) {
    LLVMValueRef bytes = aot_call(h, function_of(&hosts[k], name), n, args);
    none = LLVMBuildOr(w, none, aot_compare(h, LLVMIntEQ, bytes, aot_i64(h, 0)), "");
    most = LLVMBuildSelect(w, aot_compare(h, LLVMIntUGT, bytes, most), bytes, most, "");
  }
  LLVMBuildRet(w, LLVMBuildSelect(w, none, aot_i64(h, 0), most, ""));
}

void aot_write_dispatch(aot_host *hosts) {
  static const char *const names[] = {"bind", "run", "input", "output", "input_dims", "output_dims"};
  if (hosts[0].object->n_versions == 1) {
    return;
  }
  write_most(hosts, "arena_bytes");
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    write_call(hosts, names[k]);
  }
  if (hosts[0].options->n_carried) {
    write_call(hosts, "reset");
  }
}
