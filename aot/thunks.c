/* thunks.c - the thunks of a program as IR: each sequence becomes a function i32(context), which returns an aot_error.
 */
#include "aot/host.h"

#include <string.h>

#include "backend_cpu/runtime/kinds.h"
#include "runtime/kernel_abi.h"

static status write_thunk(aot_host *h, const rt_thunk *t);

/* --- calls of kernels --- */

/* The words of the record that each part of a kernel's parallel loop gets (write_range). */
enum { CALL_FUNCTION, CALL_BUFFERS, CALL_ARGS, CALL_WORDS };

static LLVMTypeRef kernel_type(const emit_ir *w) {
  LLVMTypeRef types[] = {w->ptr, w->ptr, w->i64, w->i64};
  return LLVMFunctionType(LLVMVoidTypeInContext(w->context), types, 4, 0);
}

static LLVMTypeRef parallel_type(const emit_ir *w) {
  LLVMTypeRef types[] = {w->ptr, w->i64, w->i64, w->ptr, w->ptr};
  return LLVMFunctionType(LLVMVoidTypeInContext(w->context), types, 5, 0);
}

/* Returns memory of n words in the stack frame of the current function.  It is allocated where the function begins, so
 * that a loop around this place does not allocate it again. */
static LLVMValueRef frame_words(const aot_host *h, uint32_t n) {
  const emit_ir *w = h->ir;
  LLVMBasicBlockRef here = emit_here(w);
  LLVMValueRef first = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(w->function));
  if (first) {
    LLVMPositionBuilderBefore(w->builder, first);
  }
  LLVMValueRef memory = LLVMBuildAlloca(w->builder, LLVMArrayType2(w->i64, n ? n : 1), "");
  LLVMPositionBuilderAtEnd(w->builder, here);
  return memory;
}

static uint32_t most(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* Allocates the tables of buffers and arguments that all kernels of the sequence use in turn. */
static void take_tables(aot_host *h, const rt_sequence *s) {
  uint32_t buffers = 0, args = 0;
  for (uint32_t k = 0; k < s->n; k++) {
    buffers = most(buffers, s->thunks[k].n_buffers + 1);
    args = most(args, s->thunks[k].n_sizes);
  }
  h->kernel_buffers = frame_words(h, buffers); /* pointers have at most the size of a word */
  h->kernel_args = frame_words(h, args);
}

static LLVMValueRef word_of(const aot_host *h, LLVMValueRef words, uint32_t k) {
  return aot_element(h, words, aot_i64(h, k));
}

/* Writes void range(record, begin, end), which computes a part of a kernel's grid. */
static LLVMValueRef write_range(aot_host *h) {
  const emit_ir *w = h->ir;
  LLVMTypeRef types[] = {w->ptr, w->i64, w->i64};
  LLVMValueRef f = aot_function(h, AOT_INTERNAL, "range", LLVMVoidTypeInContext(w->context), 3, types);
  LLVMValueRef call[CALL_WORDS];
  for (uint32_t k = 0; k < CALL_WORDS; k++) {
    call[k] = aot_load(h, w->ptr, word_of(h, aot_param(h, 0), k));
  }
  LLVMValueRef args[] = {call[CALL_BUFFERS], call[CALL_ARGS], aot_param(h, 1), aot_param(h, 2)};
  LLVMBuildCall2(w->builder, kernel_type(w), call[CALL_FUNCTION], args, 4, "");
  LLVMBuildRetVoid(w->builder);
  return f;
}

/* Writes code that calls the kernel for its whole grid, and returns from the current function. */
static void call_directly(const aot_host *h, LLVMValueRef kernel, LLVMValueRef buffers, LLVMValueRef args,
                          LLVMValueRef grid) {
  LLVMValueRef all[] = {buffers, args, aot_i64(h, 0), grid};
  LLVMBuildCall2(h->ir->builder, kernel_type(h->ir), kernel, all, 4, "");
  LLVMBuildRetVoid(h->ir->builder);
}

/* Writes void kernel(context, function, buffers, args, grid, grain), which calls a kernel.  It does so in parts if the
 * caller has a function for parallel loops and the grid has more than `grain` steps. */
static void write_kernel_call(aot_host *h) {
  const emit_ir *w = h->ir;
  LLVMTypeRef types[] = {w->ptr, w->ptr, w->ptr, w->ptr, w->i64, w->i64};
  LLVMValueRef range = write_range(h);
  h->kernel_call = aot_function(h, AOT_INTERNAL, "kernel", LLVMVoidTypeInContext(w->context), 6, types);
  LLVMValueRef kernel = aot_param(h, 1), buffers = aot_param(h, 2), args = aot_param(h, 3), grid = aot_param(h, 4);
  LLVMValueRef record = frame_words(h, CALL_WORDS), parallel = aot_get_ptr(h, WORD_PARALLEL);
  LLVMBasicBlockRef some = emit_if_begin(h->ir, aot_compare(h, LLVMIntSGT, grid, aot_i64(h, 0)));
  LLVMValueRef small = aot_compare(h, LLVMIntSLE, grid, aot_param(h, 5));
  LLVMBasicBlockRef alone =
      emit_if_begin(h->ir, LLVMBuildOr(w->builder, small, LLVMBuildIsNull(w->builder, parallel, ""), ""));
  call_directly(h, kernel, buffers, args, grid);
  LLVMPositionBuilderAtEnd(w->builder, alone);
  LLVMValueRef call[CALL_WORDS] = {kernel, buffers, args};
  for (uint32_t k = 0; k < CALL_WORDS; k++) {
    aot_store(h, call[k], word_of(h, record, k));
  }
  LLVMValueRef all[] = {aot_get_ptr(h, WORD_USER), grid, aot_param(h, 5), range, record};
  LLVMBuildCall2(w->builder, parallel_type(w), parallel, all, 5, "");
  emit_if_end(h->ir, some);
  LLVMBuildRetVoid(w->builder);
}

/* Returns the arguments of a kernel as an array, which is a constant if all of them are numbers; NULL if n is 0. */
static LLVMValueRef kernel_args(const aot_host *h, uint32_t n, const rt_size *sizes) {
  bool constant = true;
  for (uint32_t k = 0; k < n; k++) {
    constant = constant && sizes[k] >= 0;
  }
  if (n == 0) {
    return LLVMConstNull(h->ir->ptr);
  }
  if (constant || aot_is_static(h)) {
    return aot_numbers(h, n, sizes);
  }
  for (uint32_t k = 0; k < n; k++) {
    aot_store(h, aot_size(h, sizes[k]), word_of(h, h->kernel_args, k));
  }
  return h->kernel_args;
}

/* Returns the table of a kernel's buffers.  The last entry, the argument of onnx_xla_expired, is NULL, since an object
 * has no budget. */
static LLVMValueRef kernel_buffers(const aot_host *h, const rt_thunk *t) {
  LLVMValueRef table = h->kernel_buffers;
  for (uint32_t k = 0; k <= t->n_buffers; k++) {
    LLVMValueRef index = aot_i64(h, k), at = LLVMBuildGEP2(h->ir->builder, h->ir->ptr, table, &index, 1, "");
    aot_store(h, k < t->n_buffers ? aot_address(h, &t->buffers[k]) : LLVMConstNull(h->ir->ptr), at);
  }
  return table;
}

static status write_kernel(aot_host *h, const rt_thunk *t) {
  cpu_kernel_config c;
  TRY(cpu_kernel_config_read(t, 1, &c));
  LLVMValueRef kernel = LLVMGetNamedFunction(h->ir->module, c.symbol);
  CHECK_THAT(kernel && t->n_sizes, STATUS_INTERNAL, "there is no kernel '%s'", c.symbol);
  if (t->sizes[0] == 0) {
    return NULL;
  }
  int64_t grain = h->n_groups ? INT64_MAX : c.grain; /* within a member of a concurrent group, a kernel is not divided:
                                                        the caller's loops do not nest */
  LLVMValueRef grid = aot_size(h, t->sizes[0]), args = kernel_args(h, t->n_sizes - 1, t->sizes + 1);
  LLVMValueRef all[] = {h->context, kernel, kernel_buffers(h, t), args, grid, aot_i64(h, grain)};
  if (t->sizes[0] >= 0 && t->sizes[0] <= grain) {
    LLVMValueRef direct[] = {all[2], args, aot_i64(h, 0), grid};
    LLVMBuildCall2(h->ir->builder, kernel_type(h->ir), kernel, direct, 4, "");
    return NULL;
  }
  (void)aot_call(h, h->kernel_call, 6, all);
  return NULL;
}

/* --- copies --- */

static LLVMValueRef elements(const aot_host *h, const rt_buffer *b) {
  LLVMValueRef n = aot_i64(h, 1);
  for (int k = 0; k < b->rank; k++) {
    n = aot_binary(h, LLVMMul, n, aot_size(h, b->extents[k]));
  }
  return n;
}

/* Returns true if the buffer is known to be row-major without gaps.  If sizes are symbolic, this is known for ranks 0
 * and 1 only. */
static bool is_dense(const aot_host *h, const rt_buffer *b) {
  if (aot_is_static(h)) {
    return rt_buffer_is_dense(b);
  }
  return b->rank == 0 || (b->rank == 1 && b->strides[0] == 1);
}

/* Writes code that copies the elements of dimensions k and higher. */
static void copy_dimension(const aot_host *h, LLVMValueRef to, const rt_buffer *out, LLVMValueRef from,
                           const rt_buffer *in, int k) {
  int64_t size = (int64_t)dtype_bytes((dtype)in->type);
  LLVMBuilderRef w = h->ir->builder;
  bool run = k == in->rank - 1 && in->strides[k] == 1 && out->strides[k] == 1;
  if (k == in->rank || run) {
    LLVMValueRef n = run ? aot_size(h, in->extents[k]) : aot_i64(h, 1);
    LLVMBuildMemMove(w, to, 1, from, 1, aot_binary(h, LLVMMul, n, aot_i64(h, size)));
    return;
  }
  emit_loop l;
  emit_loop_begin(h->ir, &l, aot_i64(h, 0), aot_size(h, in->extents[k]), 1, false, 0, NULL);
  LLVMValueRef in_step = aot_binary(h, LLVMMul, aot_size(h, in->strides[k]), aot_i64(h, size));
  LLVMValueRef out_step = aot_binary(h, LLVMMul, aot_size(h, out->strides[k]), aot_i64(h, size));
  copy_dimension(h, aot_offset(h, to, aot_binary(h, LLVMMul, l.iv, out_step)), out,
                 aot_offset(h, from, aot_binary(h, LLVMMul, l.iv, in_step)), in, k + 1);
  emit_loop_end(h->ir, &l, NULL);
}

/* If both buffers begin at the same address, nothing is copied.  If they begin at different addresses, buffers that
 * are not dense do not overlap. */
static status write_copy(aot_host *h, const rt_thunk *t) {
  const rt_buffer *in = &t->buffers[0], *out = &t->buffers[1];
  LLVMValueRef from = aot_address(h, in), to = aot_address(h, out);
  LLVMBasicBlockRef other = emit_if_begin(h->ir, aot_compare(h, LLVMIntNE, from, to));
  if (is_dense(h, in) && is_dense(h, out)) {
    LLVMValueRef bytes = aot_binary(h, LLVMMul, elements(h, in), aot_i64(h, (int64_t)dtype_bytes((dtype)in->type)));
    LLVMBuildMemMove(h->ir->builder, to, 1, from, 1, bytes);
  } else if (in->rank == out->rank) {
    copy_dimension(h, to, out, from, in, 0);
  } else {
    return status_error(STATUS_INTERNAL, "a copy between unequal buffers");
  }
  emit_if_end(h->ir, other);
  return NULL;
}

/* --- control flow --- */

/* Runs the sequence; the current function returns if it fails. */
static void run_sequence(const aot_host *h, LLVMValueRef sequence) {
  LLVMValueRef context = h->context, failed = aot_call(h, sequence, 1, &context);
  aot_return_if(h, aot_compare(h, LLVMIntNE, failed, aot_error_value(h, AOT_OK)), failed);
}

static void run_in_turn(const aot_host *h, uint32_t n, const LLVMValueRef *sequences) {
  for (uint32_t k = 0; k < n; k++) {
    run_sequence(h, sequences[k]);
  }
}

static status write_bodies(aot_host *h, const rt_thunk *t, LLVMValueRef **out) {
  bool group = strcmp(t->kind, "concurrent") == 0;
  *out = ARENA_NEW_N(h->arena, LLVMValueRef, t->n_bodies);
  h->n_groups += group;
  for (uint32_t k = 0; k < t->n_bodies; k++) {
    TRY(aot_write_sequence(h, &t->bodies[k], &(*out)[k]));
  }
  h->n_groups -= group;
  return NULL;
}

static void write_while(const aot_host *h, const rt_thunk *t, const LLVMValueRef *bodies) {
  const emit_ir *w = h->ir;
  LLVMBasicBlockRef head = emit_block(w, "while"), body = emit_block(w, "body"), done = emit_block(w, "done");
  LLVMBuildBr(w->builder, head);
  LLVMPositionBuilderAtEnd(w->builder, head);
  run_sequence(h, bodies[0]);
  LLVMValueRef again = aot_load(h, w->i8, aot_address(h, &t->buffers[0]));
  LLVMBuildCondBr(w->builder, emit_icmp(w, LLVMIntNE, again, LLVMConstInt(w->i8, 0, 0)), body, done);
  LLVMPositionBuilderAtEnd(w->builder, body);
  run_sequence(h, bodies[1]);
  LLVMBuildBr(w->builder, head);
  LLVMPositionBuilderAtEnd(w->builder, done);
}

/* Returns the number of the branch to run, as rt_branch_of does: 0 for true and 1 for false, or an index.  An index out
 * of range is returned unchanged; the switch that write_conditional writes then selects the last branch. */
static LLVMValueRef branch_of(const aot_host *h, const rt_thunk *t) {
  const emit_ir *w = h->ir;
  const rt_buffer *b = &t->buffers[0];
  bool truth = b->type == DTYPE_PRED;
  LLVMValueRef x = aot_load(h, truth ? w->i8 : w->i32, aot_address(h, b));
  if (truth) {
    LLVMValueRef no = emit_icmp(w, LLVMIntEQ, x, LLVMConstInt(w->i8, 0, 0));
    return LLVMBuildZExt(w->builder, no, w->i32, "");
  }
  return x;
}

static void write_conditional(const aot_host *h, const rt_thunk *t, const LLVMValueRef *bodies) {
  const emit_ir *w = h->ir;
  LLVMBasicBlockRef last = emit_block(w, "branch"), done = emit_block(w, "joined");
  LLVMValueRef choose = LLVMBuildSwitch(w->builder, branch_of(h, t), last, t->n_bodies);
  for (uint32_t k = 0; k < t->n_bodies; k++) {
    LLVMBasicBlockRef block = k + 1 < t->n_bodies ? emit_block(w, "branch") : last;
    if (block != last) {
      LLVMAddCase(choose, LLVMConstInt(w->i32, k, 0), block);
    }
    LLVMPositionBuilderAtEnd(w->builder, block);
    run_sequence(h, bodies[k]);
    LLVMBuildBr(w->builder, done);
  }
  LLVMPositionBuilderAtEnd(w->builder, done);
}

/* --- concurrent groups --- */

/* The words of the record of a group: the context, and the error of a member that failed. */
enum { GROUP_CONTEXT, GROUP_ERROR, GROUP_WORDS };

/* Writes void members(record, begin, end), which runs members begin to end - 1 of a group. */
static LLVMValueRef write_members(aot_host *h, uint32_t n, const LLVMValueRef *bodies) {
  emit_ir *w = h->ir;
  LLVMTypeRef types[] = {w->ptr, w->i64, w->i64};
  LLVMValueRef f = aot_function(h, AOT_INTERNAL, "members", LLVMVoidTypeInContext(w->context), 3, types);
  LLVMValueRef record = aot_param(h, 0), context = aot_load(h, w->ptr, word_of(h, record, GROUP_CONTEXT));
  LLVMValueRef *table = ARENA_NEW_N(h->arena, LLVMValueRef, n);
  memcpy(table, bodies, n * sizeof *table);
  LLVMValueRef list = aot_table(h, w->ptr, n, table);
  emit_loop l;
  emit_loop_begin(w, &l, aot_param(h, 1), aot_param(h, 2), 1, false, 0, NULL);
  LLVMValueRef at = LLVMBuildGEP2(w->builder, w->ptr, list, &l.iv, 1, "");
  LLVMValueRef body = aot_load(h, w->ptr, at);
  LLVMTypeRef type = LLVMFunctionType(w->i32, &w->ptr, 1, 0);
  LLVMValueRef failed = LLVMBuildCall2(w->builder, type, body, &context, 1, "");
  LLVMBasicBlockRef bad = emit_if_begin(h->ir, aot_compare(h, LLVMIntNE, failed, aot_error_value(h, AOT_OK)));
  LLVMValueRef store = LLVMBuildStore(w->builder, failed, word_of(h, record, GROUP_ERROR));
  LLVMSetOrdering(store, LLVMAtomicOrderingMonotonic); /* several members may fail at once; any error will do */
  LLVMSetAlignment(store, 4);
  emit_if_end(h->ir, bad);
  emit_loop_end(w, &l, NULL);
  LLVMBuildRetVoid(w->builder);
  return f;
}

/* Lets the caller's function for parallel loops (WORD_PARALLEL) run the members of the group at the same time.  The
 * current function returns the error of a member that failed. */
static void call_group(const aot_host *h, uint32_t n, LLVMValueRef members) {
  const emit_ir *w = h->ir;
  LLVMValueRef record = frame_words(h, GROUP_WORDS), error = word_of(h, record, GROUP_ERROR);
  aot_store(h, h->context, word_of(h, record, GROUP_CONTEXT));
  aot_store(h, aot_error_value(h, AOT_OK), error);
  LLVMValueRef all[] = {aot_get_ptr(h, WORD_USER), aot_i64(h, n), aot_i64(h, 1), members, record};
  LLVMBuildCall2(w->builder, parallel_type(w), aot_get_ptr(h, WORD_PARALLEL), all, 5, "");
  LLVMValueRef failed = aot_load(h, w->i32, error);
  aot_return_if(h, aot_compare(h, LLVMIntNE, failed, aot_error_value(h, AOT_OK)), failed);
}

/* Writes the function of the members (write_members); afterwards, the function that was current before is current
 * again. */
static LLVMValueRef write_members_apart(aot_host *h, uint32_t n, const LLVMValueRef *bodies) {
  LLVMValueRef function = h->ir->function, context = h->context;
  LLVMBasicBlockRef here = emit_here(h->ir);
  LLVMValueRef members = write_members(h, n, bodies);
  h->ir->function = function;
  h->context = context;
  LLVMPositionBuilderAtEnd(h->ir->builder, here);
  return members;
}

/* A group within a member of another group runs on that member's thread. */
static void write_concurrent(aot_host *h, const rt_thunk *t, const LLVMValueRef *bodies) {
  emit_ir *w = h->ir;
  if (h->n_groups) {
    run_in_turn(h, t->n_bodies, bodies);
    return;
  }
  LLVMValueRef members = write_members_apart(h, t->n_bodies, bodies);
  LLVMBasicBlockRef alone = emit_block(w, "alone"), group = emit_block(w, "group"), done = emit_block(w, "joined");
  LLVMBuildCondBr(w->builder, LLVMBuildIsNull(w->builder, aot_get_ptr(h, WORD_PARALLEL), ""), alone, group);
  LLVMPositionBuilderAtEnd(w->builder, group);
  call_group(h, t->n_bodies, members);
  LLVMBuildBr(w->builder, done);
  LLVMPositionBuilderAtEnd(w->builder, alone);
  run_in_turn(h, t->n_bodies, bodies);
  LLVMBuildBr(w->builder, done);
  LLVMPositionBuilderAtEnd(w->builder, done);
}

/* --- checks, seeds --- */

/* Returns an i1 that is true if one of the elements begin, begin + step, ... of the buffer is outside of
 * [low, low + extent).  One comparison of unsigned numbers tells, as in base/tensor/bounds.c. */
static LLVMValueRef is_outside(const aot_host *h, const rt_buffer *b, uint32_t begin, uint32_t step, LLVMValueRef low,
                               LLVMValueRef extent) {
  const emit_ir *w = h->ir;
  LLVMValueRef data = aot_address(h, b), none = LLVMConstInt(w->i1, 0, 0);
  emit_loop l;
  emit_loop_begin(w, &l, aot_i64(h, begin), elements(h, b), step, false, 1, &none);
  LLVMValueRef x = aot_load_integer(h, (dtype)b->type, data, l.iv);
  LLVMValueRef bad = aot_compare(h, LLVMIntUGE, aot_binary(h, LLVMSub, x, low), extent);
  bad = LLVMBuildOr(w->builder, l.carried[0], bad, "");
  emit_loop_end(w, &l, &bad);
  return l.carried[0];
}

static status write_check(aot_host *h, const rt_thunk *t) {
  rt_reader r = rt_reader_make(t->config);
  const char *what = rt_get_text(&r);
  bool from_end = rt_get_in(&r, 0, 1);
  TRY(rt_reader_end(&r, t->kind));
  const char *label = rt_thunk_label(h->arena, h->program, t), *rule = t->n_sizes ? "out of bounds" : "0 as a divisor";
  LLVMValueRef error = aot_site_error(h, arena_printf(h->arena, "%s: %s: %s", label, what, rule));
  if (t->n_sizes == 0) { /* the interval [1, 0) wraps around and contains everything but 0 */
    aot_return_if(h, is_outside(h, &t->buffers[0], 0, 1, aot_i64(h, 1), aot_i64(h, -1)), error);
  }
  for (uint32_t k = 0; k < t->n_sizes; k++) {
    LLVMValueRef limit = aot_size(h, t->sizes[k]), zero = aot_i64(h, 0);
    LLVMValueRef low = from_end ? aot_binary(h, LLVMSub, zero, limit) : zero;
    LLVMValueRef extent = aot_binary(h, LLVMSub, limit, low);
    aot_return_if(h, is_outside(h, &t->buffers[0], k, t->n_sizes, low, extent), error);
  }
  return NULL;
}

static void write_seed(const aot_host *h, const rt_thunk *t) {
  aot_store(h, aot_get(h, WORD_SEED), aot_address(h, &t->buffers[0]));
}

/* --- sequences --- */

static status write_control(aot_host *h, const rt_thunk *t, const LLVMValueRef *bodies) {
  if (strcmp(t->kind, "while") == 0) {
    write_while(h, t, bodies);
  } else if (strcmp(t->kind, "conditional") == 0) {
    write_conditional(h, t, bodies);
  } else {
    write_concurrent(h, t, bodies);
  }
  return NULL;
}

static status write_thunk(aot_host *h, const rt_thunk *t) {
  if (strcmp(t->kind, "cpu.kernel") == 0) {
    return write_kernel(h, t);
  }
  if (strcmp(t->kind, "copy") == 0) {
    return write_copy(h, t);
  }
  if (strcmp(t->kind, "check") == 0) {
    return write_check(h, t);
  }
  CHECK_THAT(strcmp(t->kind, "run-seed") == 0, STATUS_UNSUPPORTED, "an object cannot contain %s yet", t->kind);
  write_seed(h, t);
  return NULL;
}

/* Bodies are functions of their own, so they are written before the function that calls them. */
static status write_all_bodies(aot_host *h, const rt_sequence *s, LLVMValueRef ***out) {
  *out = ARENA_NEW_N(h->arena, LLVMValueRef *, s->n);
  for (uint32_t k = 0; k < s->n; k++) {
    TRY(write_bodies(h, &s->thunks[k], &(*out)[k]));
  }
  return NULL;
}

static status at_thunk(const aot_host *h, const rt_thunk *t, status failed) {
  return failed ? status_prefix(failed, "%s", rt_thunk_label(h->arena, h->program, t)) : NULL;
}

/* Begins the function of a sequence or of a part of it. */
static LLVMValueRef begin_sequence(aot_host *h) {
  const char *name = arena_printf(h->arena, "sequence_%u", h->n_sequences++);
  return aot_function(h, AOT_INTERNAL, name, h->ir->i32, 1, &h->ir->ptr);
}

static status write_part(aot_host *h, const rt_sequence *s, LLVMValueRef *out) {
  LLVMValueRef **bodies;
  TRY(write_all_bodies(h, s, &bodies));
  if (!h->kernel_call) {
    write_kernel_call(h);
  }
  *out = begin_sequence(h);
  take_tables(h, s);
  for (uint32_t k = 0; k < s->n; k++) {
    const rt_thunk *t = &s->thunks[k];
    TRY(at_thunk(h, t, t->n_bodies ? write_control(h, t, bodies[k]) : write_thunk(h, t)));
  }
  aot_return(h, AOT_OK);
  return NULL;
}

/* A long sequence becomes several functions, since LLVM's time grows faster than the length of a function. */
status aot_write_sequence(aot_host *h, const rt_sequence *s, LLVMValueRef *out) {
  enum { PART = 128 };
  uint32_t n_parts = (s->n + PART - 1) / PART;
  LLVMValueRef *parts = ARENA_NEW_N(h->arena, LLVMValueRef, n_parts);
  if (n_parts <= 1) {
    return write_part(h, s, out);
  }
  for (uint32_t k = 0; k < n_parts; k++) {
    TRY(budget_check(arena_budget(h->arena)));
    uint32_t begin = k * PART, n = s->n - begin < PART ? s->n - begin : PART;
    TRY(write_part(h, &(rt_sequence){.thunks = s->thunks + begin, .n = n}, &parts[k]));
  }
  *out = begin_sequence(h);
  run_in_turn(h, n_parts, parts);
  aot_return(h, AOT_OK);
  return NULL;
}
