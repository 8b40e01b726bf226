/* host.c - short functions that write the host program's IR; see host.h. */
#include "aot/host.h"

#include <inttypes.h>
#include <string.h>

#include "emit/llvm/metadata.h"
#include "runtime/kernel_abi.h"

enum { WORD = 8 }; /* the bytes of a word of the context */

/* --- functions --- */

/* If each version has its own function `name`, the symbol contains the version's number. */
const char *aot_symbol(const aot_host *h, aot_scope scope, const char *name) {
  bool own = scope == AOT_INTERNAL || (scope == AOT_VERSIONED && h->object->n_versions > 1);
  return own ? arena_printf(h->arena, "%s_v%" PRIu32 "_%s", h->options->prefix, h->version, name)
             : arena_printf(h->arena, "%s_%s", h->options->prefix, name);
}

static bool is_global(const aot_host *h, aot_scope scope) {
  return scope == AOT_GLOBAL || (scope == AOT_VERSIONED && h->object->n_versions == 1);
}

LLVMValueRef aot_function(aot_host *h, aot_scope scope, const char *name, LLVMTypeRef result, uint32_t n,
                          const LLVMTypeRef *parameters) {
  emit_ir *w = h->ir;
  LLVMTypeRef type = LLVMFunctionType(result, (LLVMTypeRef *)parameters, n, 0);
  w->function = LLVMAddFunction(w->module, aot_symbol(h, scope, name), type);
  LLVMSetLinkage(w->function, is_global(h, scope) ? LLVMExternalLinkage : LLVMInternalLinkage);
  emit_add_attribute(w, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, "nounwind");
  emit_add_text_attribute(w, "no-builtins", "true");
  LLVMPositionBuilderAtEnd(w->builder, emit_block(w, "entry"));
  h->context = n ? aot_param(h, 0) : NULL;
  return w->function;
}

LLVMValueRef aot_param(const aot_host *h, uint32_t k) { return LLVMGetParam(h->ir->function, k); }

LLVMValueRef aot_call(const aot_host *h, LLVMValueRef function, uint32_t n, LLVMValueRef *args) {
  return LLVMBuildCall2(h->ir->builder, LLVMGlobalGetValueType(function), function, args, n, "");
}

LLVMValueRef aot_error_value(const aot_host *h, int32_t error) {
  return LLVMConstInt(h->ir->i32, (unsigned long long)error, 0);
}

void aot_return(const aot_host *h, int32_t error) { LLVMBuildRet(h->ir->builder, aot_error_value(h, error)); }

void aot_return_if(const aot_host *h, LLVMValueRef bad, LLVMValueRef error) {
  LLVMBasicBlockRef failed = emit_if_begin(h->ir, bad);
  LLVMBuildRet(h->ir->builder, error);
  LLVMPositionBuilderAtEnd(h->ir->builder, failed);
}

LLVMValueRef aot_site_error(aot_host *h, const char *text) {
  aot_object *x = h->object;
  *ARENA_PUSH(x->arena, x->sites, x->n_sites, x->cap_sites) = text;
  return aot_error_value(h, AOT_FIRST_SITE + (int32_t)x->n_sites - 1);
}

/* --- values --- */

LLVMValueRef aot_i64(const aot_host *h, int64_t v) { return emit_i64(h->ir, v); }

LLVMValueRef aot_offset(const aot_host *h, LLVMValueRef base, LLVMValueRef bytes) {
  return LLVMBuildGEP2(h->ir->builder, h->ir->i8, base, &bytes, 1, "");
}

LLVMValueRef aot_binary(const aot_host *h, LLVMOpcode op, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildBinOp(h->ir->builder, op, a, b, "");
}

LLVMValueRef aot_compare(const aot_host *h, LLVMIntPredicate p, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildICmp(h->ir->builder, p, a, b, "");
}

LLVMValueRef aot_padded(const aot_host *h, LLVMValueRef x) {
  LLVMValueRef sum = aot_binary(h, LLVMAdd, x, aot_i64(h, RT_KERNEL_ALIGN - 1));
  return aot_binary(h, LLVMAnd, sum, aot_i64(h, -(int64_t)RT_KERNEL_ALIGN));
}

LLVMValueRef aot_load(const aot_host *h, LLVMTypeRef t, LLVMValueRef address) {
  return LLVMBuildLoad2(h->ir->builder, t, address, "");
}

void aot_store(const aot_host *h, LLVMValueRef v, LLVMValueRef address) { LLVMBuildStore(h->ir->builder, v, address); }

LLVMValueRef aot_load_integer(const aot_host *h, dtype type, LLVMValueRef array, LLVMValueRef k) {
  const emit_ir *w = h->ir;
  LLVMTypeRef t = LLVMIntTypeInContext(w->context, (unsigned)dtype_bytes(type) * 8);
  LLVMValueRef x = aot_load(h, t, LLVMBuildGEP2(w->builder, t, array, &k, 1, ""));
  return dtype_is_signed(type) ? LLVMBuildSExt(w->builder, x, w->i64, "") : LLVMBuildZExt(w->builder, x, w->i64, "");
}

LLVMValueRef aot_is_unusable(const aot_host *h, LLVMValueRef address, size_t align) {
  LLVMBuilderRef w = h->ir->builder;
  LLVMValueRef bits = LLVMBuildPtrToInt(w, address, h->ir->i64, "");
  LLVMValueRef low = aot_binary(h, LLVMAnd, bits, aot_i64(h, (int64_t)align - 1));
  LLVMValueRef odd = aot_compare(h, LLVMIntNE, low, aot_i64(h, 0));
  return LLVMBuildOr(w, odd, LLVMBuildIsNull(w, address, ""), "");
}

LLVMValueRef aot_element(const aot_host *h, LLVMValueRef words, LLVMValueRef k) {
  return LLVMBuildGEP2(h->ir->builder, h->ir->i64, words, &k, 1, "");
}

/* Adds an internal constant with this value to the module.  Equal ones may be merged. */
static LLVMValueRef make_constant(const aot_host *h, LLVMValueRef value) {
  LLVMValueRef g = LLVMAddGlobal(h->ir->module, LLVMTypeOf(value), "");
  LLVMSetInitializer(g, value);
  LLVMSetGlobalConstant(g, 1);
  LLVMSetLinkage(g, LLVMPrivateLinkage);
  LLVMSetUnnamedAddress(g, LLVMGlobalUnnamedAddr);
  return g;
}

LLVMValueRef aot_table(const aot_host *h, LLVMTypeRef t, uint32_t n, LLVMValueRef *values) {
  return make_constant(h, LLVMConstArray2(t, values, n));
}

LLVMValueRef aot_numbers(const aot_host *h, uint32_t n, const int64_t *numbers) {
  LLVMValueRef *values = ARENA_NEW_N(h->arena, LLVMValueRef, n);
  for (uint32_t k = 0; k < n; k++) {
    values[k] = aot_i64(h, numbers[k]);
  }
  return aot_table(h, h->ir->i64, n, values);
}

LLVMValueRef aot_bytes(const aot_host *h, const void *bytes, size_t n) {
  return make_constant(h, LLVMConstStringInContext2(h->ir->context, bytes, n, 1));
}

LLVMValueRef aot_text(const aot_host *h, const char *text) { return aot_bytes(h, text, strlen(text) + 1); }

void aot_global(const aot_host *h, const char *name, LLVMValueRef value) {
  const char *symbol = arena_printf(h->arena, "%s_%s", h->options->prefix, name);
  LLVMValueRef g = LLVMAddGlobal(h->ir->module, LLVMTypeOf(value), symbol);
  LLVMSetInitializer(g, value);
  LLVMSetGlobalConstant(g, 1);
}

/* --- the context --- */

LLVMValueRef aot_word(const aot_host *h, uint32_t word) {
  return aot_offset(h, h->context, aot_i64(h, (int64_t)word * WORD));
}

LLVMValueRef aot_get(const aot_host *h, uint32_t word) { return aot_load(h, h->ir->i64, aot_word(h, word)); }

LLVMValueRef aot_get_ptr(const aot_host *h, uint32_t word) { return aot_load(h, h->ir->ptr, aot_word(h, word)); }

void aot_set(const aot_host *h, uint32_t word, LLVMValueRef v) { aot_store(h, v, aot_word(h, word)); }

LLVMValueRef aot_size(const aot_host *h, rt_size s) {
  return s < 0 ? aot_get(h, h->sizes + (uint32_t) - (s + 1)) : aot_i64(h, s);
}

LLVMValueRef aot_io_bytes(const aot_host *h, const rt_io *io) {
  LLVMValueRef bytes = aot_i64(h, (int64_t)dtype_bytes((dtype)io->shape.type));
  for (int k = 0; k < io->shape.rank; k++) {
    bytes = aot_binary(h, LLVMMul, bytes, aot_size(h, io->shape.dims[k]));
  }
  return bytes;
}

uint32_t aot_size_output(const aot_ports *ports, uint32_t k, int d) {
  for (uint32_t j = ports->n_named; j < ports->n; j++) {
    const rt_io *io = &ports->io[j];
    if (io->is_size && io->sized == k && io->axis == d) {
      return j;
    }
  }
  return 0;
}

LLVMValueRef aot_dimension(const aot_host *h, const aot_ports *ports, uint32_t k, int d) {
  uint32_t j = aot_size_output(ports, k, d);
  return j ? aot_load(h, h->ir->i64, aot_get_ptr(h, ports->used + j)) : aot_size(h, ports->io[k].shape.dims[d]);
}

LLVMValueRef aot_own_memory(const aot_host *h, const aot_ports *ports, uint32_t k) {
  LLVMValueRef at = ports->at ? aot_i64(h, (int64_t)ports->at[k]) : aot_get(h, ports->offsets + k);
  return aot_offset(h, aot_get_ptr(h, WORD_ARENA), at);
}

static LLVMValueRef arena_offset(const aot_host *h, const rt_buffer *b) {
  LLVMValueRef offset = aot_size(h, b->offset);
  return h->program->n_slots ? aot_binary(h, LLVMAdd, offset, aot_get(h, h->slots + b->index)) : offset;
}

LLVMValueRef aot_address(const aot_host *h, const rt_buffer *b) {
  switch (b->space) {
    case RT_ARENA: return aot_offset(h, aot_get_ptr(h, WORD_SCRATCH), arena_offset(h, b));
    case RT_CONSTANT: {
      LLVMValueRef at = aot_binary(h, LLVMAdd, aot_size(h, b->offset), aot_i64(h, (int64_t)h->constants[b->index]));
      return aot_offset(h, aot_get_ptr(h, WORD_WEIGHTS), at);
    }
    case RT_PARAM: return aot_offset(h, aot_get_ptr(h, h->inputs.used + b->index), aot_size(h, b->offset));
    default: return aot_offset(h, aot_get_ptr(h, h->outputs.used + b->index), aot_size(h, b->offset));
  }
}
