/* run.c - the function that runs the program once: it brings inputs and outputs into memory that kernels can use, and
 * runs the thunks, as rt_execute does (runtime/exec/executable.c). */
#include "aot/host.h"

static LLVMValueRef either(const aot_host *h, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildOr(h->ir->builder, a, b, "");
}

/* Sets the memory that the run uses for port k: the memory that the caller gave, or the port's own if the caller gave
 * none, if its elements are not aligned, or if `must_own`, an i1 that may be NULL, is true. */
static void choose_memory(const aot_host *h, const aot_ports *ports, uint32_t k, LLVMValueRef must_own) {
  LLVMBuilderRef w = h->ir->builder;
  LLVMValueRef given = aot_get_ptr(h, ports->given + k);
  LLVMValueRef own = aot_is_unusable(h, given, dtype_align((dtype)ports->io[k].shape.type));
  own = must_own ? either(h, own, must_own) : own;
  aot_set(h, ports->used + k, LLVMBuildSelect(w, own, aot_own_memory(h, ports, k), given, ""));
}

/* Writes i1 over_input(context, memory), which returns whether the array of an input begins at `memory` in this run. */
static LLVMValueRef write_over_input(aot_host *h) {
  LLVMTypeRef types[] = {h->ir->ptr, h->ir->ptr};
  LLVMValueRef f = aot_function(h, AOT_INTERNAL, "over_input", h->ir->i1, 2, types);
  LLVMValueRef none = LLVMConstInt(h->ir->i1, 0, 0), used = aot_word(h, h->inputs.used);
  emit_loop l;
  emit_loop_begin(h->ir, &l, aot_i64(h, 0), aot_i64(h, h->inputs.n), 1, false, 1, &none);
  LLVMValueRef input = aot_load(h, h->ir->ptr, aot_element(h, used, l.iv));
  LLVMValueRef is_one = either(h, l.carried[0], aot_compare(h, LLVMIntEQ, input, aot_param(h, 1)));
  emit_loop_end(h->ir, &l, &is_one);
  LLVMBuildRet(h->ir->builder, l.carried[0]);
  return f;
}

/* Returns an i1 that is true if the memory that the caller gave for input k begins in the arena, where it may overlap
 * an output. */
static LLVMValueRef is_in_arena(const aot_host *h, uint32_t k) {
  LLVMValueRef bytes = aot_is_static(h) ? aot_i64(h, (int64_t)h->arena_bytes) : aot_get(h, WORD_ARENA_BYTES);
  LLVMValueRef at = LLVMBuildPtrToInt(h->ir->builder, aot_get_ptr(h, h->inputs.given + k), h->ir->i64, "");
  LLVMValueRef begin = LLVMBuildPtrToInt(h->ir->builder, aot_get_ptr(h, WORD_ARENA), h->ir->i64, "");
  return aot_compare(h, LLVMIntULT, aot_binary(h, LLVMSub, at, begin), bytes);
}

/* If the caller gave memory for port k but the run uses the port's own, copies the array from the caller's memory to
 * the port's own, or back if `in` is false. */
static void copy_port(const aot_host *h, const aot_ports *ports, uint32_t k, bool in) {
  LLVMBuilderRef w = h->ir->builder;
  LLVMValueRef given = aot_get_ptr(h, ports->given + k), used = aot_get_ptr(h, ports->used + k);
  LLVMValueRef there = LLVMBuildIsNotNull(w, given, ""), differs = LLVMBuildICmp(w, LLVMIntNE, given, used, "");
  LLVMBasicBlockRef copies = emit_if_begin(h->ir, LLVMBuildAnd(w, there, differs, ""));
  LLVMBuildMemCpy(w, in ? used : given, 1, in ? given : used, 1, aot_io_bytes(h, &ports->io[k]));
  emit_if_end(h->ir, copies);
}

/* --- contents on which sizes depend --- */

static void return_if_value(const aot_host *h, LLVMValueRef bad) {
  aot_return_if(h, bad, aot_error_value(h, AOT_WRONG_VALUE));
}

/* Checks that an input has the contents for which the program was compiled. */
static void check_value(const aot_host *h, uint32_t k) {
  const emit_ir *w = h->ir;
  const rt_io *io = &h->inputs.io[k];
  int64_t bytes = shape_bytes(&io->shape);
  LLVMValueRef table = aot_bytes(h, io->value, (size_t)bytes), used = aot_get_ptr(h, h->inputs.used + k);
  LLVMValueRef none = LLVMConstInt(w->i1, 0, 0);
  emit_loop l;
  emit_loop_begin(w, &l, aot_i64(h, 0), aot_i64(h, bytes), 1, false, 1, &none);
  LLVMValueRef a = aot_load(h, w->i8, aot_offset(h, table, l.iv)), b = aot_load(h, w->i8, aot_offset(h, used, l.iv));
  LLVMValueRef bad = either(h, l.carried[0], aot_compare(h, LLVMIntNE, a, b));
  emit_loop_end(w, &l, &bad);
  return_if_value(h, l.carried[0]);
}

/* Checks that an element of an input is the size that the caller gave `bind` for it.  `io` is the parameter of the
 * program that stands for the element. */
static void check_told(const aot_host *h, const rt_io *io) {
  const rt_io *input = &h->inputs.io[io->told - 1];
  LLVMValueRef used = aot_get_ptr(h, h->inputs.used + io->told - 1);
  LLVMValueRef x = aot_load_integer(h, (dtype)input->shape.type, used, aot_i64(h, io->element));
  return_if_value(h, aot_compare(h, LLVMIntNE, x, aot_size(h, io->shape.dims[0])));
}

/* --- the run --- */

static void prepare_inputs(const aot_host *h) {
  for (uint32_t k = 0; k < h->inputs.n_named; k++) {
    choose_memory(h, &h->inputs, k, is_in_arena(h, k));
    copy_port(h, &h->inputs, k, true);
    if (h->inputs.io[k].value && shape_bytes(&h->inputs.io[k].shape)) {
      check_value(h, k);
    }
  }
  for (uint32_t k = h->inputs.n_named; k < h->inputs.n; k++) {
    if (h->inputs.io[k].told) {
      check_told(h, &h->inputs.io[k]);
    } else {
      choose_memory(h, &h->inputs, k, NULL);
    }
  }
}

/* Sets the memory of the outputs.  An output for which the caller gave the memory of an input is computed in the port's
 * own memory, since the input is still read.  But an output that the program computes in place, over a parameter, may
 * have the memory of that parameter; if it has other memory, the parameter is copied there first. */
static void prepare_outputs(const aot_host *h, LLVMValueRef over_input) {
  LLVMBuilderRef w = h->ir->builder;
  for (uint32_t k = 0; k < h->outputs.n; k++) {
    const rt_io *io = &h->outputs.io[k];
    LLVMValueRef args[] = {h->context, aot_get_ptr(h, h->outputs.given + k)}, over = aot_call(h, over_input, 2, args);
    if (!io->in_place) {
      choose_memory(h, &h->outputs, k, over);
      continue;
    }
    LLVMValueRef source = aot_get_ptr(h, h->inputs.used + io->carried - 1);
    LLVMValueRef other = aot_compare(h, LLVMIntNE, args[1], source);
    choose_memory(h, &h->outputs, k, LLVMBuildAnd(w, over, other, ""));
    LLVMValueRef used = aot_get_ptr(h, h->outputs.used + k);
    LLVMBasicBlockRef differs = emit_if_begin(h->ir, aot_compare(h, LLVMIntNE, used, source));
    LLVMBuildMemCpy(w, used, 1, source, 1, aot_io_bytes(h, io));
    emit_if_end(h->ir, differs);
  }
}

/* --- outputs whose sizes depend on data --- */

/* An output that is computed with the largest dimensions that it may have, and then packed to those that the run has
 * computed. */
typedef struct packing {
  const aot_host *h;
  uint32_t output;
  int last; /* the last dimension that depends on data */
} packing;

/* Returns the stride of dimension d in bytes, for the dimensions of the run or for the largest ones. */
static LLVMValueRef step(const packing *p, int d, bool of_run) {
  const aot_host *h = p->h;
  const shape *s = &h->outputs.io[p->output].shape;
  LLVMValueRef bytes = aot_i64(h, (int64_t)dtype_bytes((dtype)s->type));
  for (int k = d + 1; k < s->rank; k++) {
    bytes =
        aot_binary(h, LLVMMul, bytes, of_run ? aot_dimension(h, &h->outputs, p->output, k) : aot_size(h, s->dims[k]));
  }
  return bytes;
}

/* Writes code that moves the elements of dimensions d and higher from their places in an array of the largest
 * dimensions to those in an array of the dimensions of the run.  No element moves to a higher address, so none is
 * overwritten before it is moved. */
static void move_elements(const packing *p, LLVMValueRef to, LLVMValueRef from, int d) {
  const aot_host *h = p->h;
  LLVMValueRef n = aot_dimension(h, &h->outputs, p->output, d), in = step(p, d, false), out = step(p, d, true);
  if (d == p->last) {
    LLVMBuildMemMove(h->ir->builder, to, 1, from, 1, aot_binary(h, LLVMMul, n, out));
    return;
  }
  emit_loop l;
  emit_loop_begin(h->ir, &l, aot_i64(h, 0), n, 1, false, 0, NULL);
  move_elements(p, aot_offset(h, to, aot_binary(h, LLVMMul, l.iv, out)),
                aot_offset(h, from, aot_binary(h, LLVMMul, l.iv, in)), d + 1);
  emit_loop_end(h->ir, &l, NULL);
}

/* Makes an output an array of the dimensions that the run has computed, without gaps (literal_compact). */
static void pack_output(const aot_host *h, uint32_t k) {
  packing p = {h, k, 0};
  for (int d = 1; d < h->outputs.io[k].shape.rank; d++) {
    p.last = aot_size_output(&h->outputs, k, d) ? d : p.last;
  }
  if (p.last) {
    LLVMValueRef memory = aot_get_ptr(h, h->outputs.used + k);
    move_elements(&p, memory, memory, 0);
  }
}

/* Copies an output that was not computed in place to the input in which it is carried. */
static void keep_output(const aot_host *h, uint32_t k) {
  if (h->outputs.storage[k] == AOT_COPIED) {
    LLVMValueRef from = aot_get_ptr(h, h->outputs.used + k),
                 to = aot_get_ptr(h, h->inputs.used + h->outputs.kept_in[k]);
    LLVMBuildMemCpy(h->ir->builder, to, 1, from, 1, aot_io_bytes(h, &h->outputs.io[k]));
  }
}

status aot_write_run(aot_host *h) {
  LLVMValueRef body;
  TRY(aot_write_sequence(h, &h->program->body, &body));
  LLVMValueRef over_input = write_over_input(h);
  (void)aot_function(h, AOT_VERSIONED, "run", h->ir->i32, 1, &h->ir->ptr);
  LLVMValueRef bound = aot_compare(h, LLVMIntEQ, aot_get(h, WORD_STATE), aot_i64(h, AOT_BOUND));
  aot_return_if(h, LLVMBuildNot(h->ir->builder, bound, ""), aot_error_value(h, AOT_NOT_READY));
  prepare_inputs(h);
  prepare_outputs(h, over_input);
  LLVMValueRef failed = aot_call(h, body, 1, &h->context);
  aot_return_if(h, aot_compare(h, LLVMIntNE, failed, aot_error_value(h, AOT_OK)), failed);
  for (uint32_t k = 0; k < h->outputs.n_named; k++) {
    pack_output(h, k);
    copy_port(h, &h->outputs, k, false);
    keep_output(h, k);
  }
  aot_return(h, AOT_OK);
  return NULL;
}
