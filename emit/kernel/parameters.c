/* parameters.c - the parameters that all kernels have (execution.h): buffers and integer arguments. */
#include "emit/kernel/execution.h"
#include "emit/llvm/metadata.h"

void emit_mark_parameters(const emit_ir *ir) {
  for (unsigned k = EMIT_BUFFERS; k <= EMIT_ARGS; k++) {
    emit_add_attribute(ir, k + 1, "nocapture");
    emit_add_attribute(ir, k + 1, "noalias");
    emit_add_attribute(ir, k + 1, "readonly");
  }
}

/* Loads pointer number k from the table of buffers. */
static LLVMValueRef load_buffer(const emit_element *e, uint32_t k, const shape *s, bool known_size) {
  const emit_ir *w = e->w;
  LLVMValueRef table = LLVMGetParam(w->function, EMIT_BUFFERS);
  LLVMValueRef at = emit_i64(w, k), p = LLVMBuildInBoundsGEP2(w->builder, w->ptr, table, &at, 1, "");
  LLVMValueRef v = LLVMBuildLoad2(w->builder, w->ptr, p, "");
  LLVMSetAlignment(v, (unsigned)w->target->pointer_bits / 8);
  emit_set_metadata(w, v, "invariant.load", e->invariant);
  if (w->target->execution == EMIT_BLOCKS) { /* a CPU's kernel may get the caller's array (RT_KERNEL_ALIGN) */
    emit_set_metadata_number(w, v, "align", 64);
  }
  if (shape_is_static(s) && shape_bytes(s)) {
    emit_set_metadata(w, v, "nonnull", e->invariant);
    if (known_size) {
      emit_set_metadata_number(w, v, "dereferenceable", shape_bytes(s));
    }
  }
  return v;
}

void emit_bind_parameters(emit_writer *w, emit_input *inputs) {
  w->e.buffers = LLVMGetParam(w->e.w->function, EMIT_BUFFERS);
  for (uint32_t k = 0; k < w->e.n_inputs; k++) {
    inputs[k].base = load_buffer(&w->e, k, hlo_shape(inputs[k].value), !w->rows);
  }
  for (uint32_t k = 0; k < w->n_results; k++) {
    w->results[k] = load_buffer(&w->e, w->e.n_inputs + k, &w->i->shapes[k], !w->rows);
  }
  w->e.x.sizes->args = LLVMGetParam(w->e.w->function, EMIT_ARGS);
}

LLVMValueRef emit_writer_buffer(const emit_writer *w, uint32_t k) {
  static const shape any = {.type = DTYPE_U8, .rank = 1};
  return load_buffer(&w->e, k, &any, true);
}

LLVMValueRef emit_writer_arg(const emit_writer *w, uint32_t k) {
  const emit_ir *ir = w->e.w;
  LLVMValueRef at = emit_i64(ir, k), table = LLVMGetParam(ir->function, EMIT_ARGS);
  LLVMValueRef v =
      LLVMBuildLoad2(ir->builder, ir->i64, LLVMBuildInBoundsGEP2(ir->builder, ir->i64, table, &at, 1, ""), "");
  LLVMSetAlignment(v, 8);
  emit_set_metadata(ir, v, "invariant.load", w->e.invariant);
  w->info->n_args = k >= w->info->n_args ? k + 1 : w->info->n_args;
  return v;
}
