/* shared_kernel.c - see shared_kernel.h. */
#include "emit/product/shared_kernel.h"

#include "emit/kernel/execution.h"
#include "emit/llvm/arithmetic.h"
#include "emit/llvm/metadata.h"
#include "emit/llvm/trampoline.h"

/* --- the record --- */

enum { COPIED = 4 }; /* how many constants are copied at once */

void emit_shared_kernel_begin(emit_shared_kernel *k, emit_writer *w, int n) {
  n = (n + COPIED - 1) / COPIED * COPIED;
  *k = (emit_shared_kernel){.w = w, .n = n, .constants = ARENA_NEW_N(w->e.w->arena, LLVMValueRef, n)};
  emit_put_buffer(k, EMIT_RECORD_WATCH, w->info->n_buffers);
}

void emit_put(emit_shared_kernel *k, int entry, LLVMValueRef constant) { k->constants[entry] = constant; }

void emit_put_number(emit_shared_kernel *k, int entry, int64_t number) {
  emit_put(k, entry, emit_i64(k->w->e.w, number));
}

void emit_put_size(emit_shared_kernel *k, int entry, dim size) {
  LLVMValueRef value = emit_size(&k->w->e.x, size);
  const emit_sizes *s = k->w->e.x.sizes;
  if (LLVMIsAConstantInt(value)) {
    emit_put(k, entry, value);
    return;
  }
  uint32_t number = 0;
  while (s->dims[number] != size) {
    number++;
  }
  *ARENA_PUSH(k->w->e.w->arena, k->args, k->n_args, k->cap_args) = (emit_record_source){entry, number};
}

void emit_put_buffer(emit_shared_kernel *k, int entry, uint32_t buffer) {
  *ARENA_PUSH(k->w->e.w->arena, k->buffers, k->n_buffers, k->cap_buffers) = (emit_record_source){entry, buffer};
}

/* --- tables: void f(buffers, args, begin, end, table) --- */

/* The entries of a table, which have 8 bytes each.  The record's constants follow, and then two entries for each
 * source: first those that are arguments, then those that are buffers. */
enum { TABLE_STEPS, TABLE_N, TABLE_ROOM, TABLE_N_ARGS, TABLE_N_BUFFERS, TABLE_CONSTANTS };
enum { RUN_BUFFERS, RUN_ARGS, RUN_BEGIN, RUN_END, RUN_TABLE, RUN_PARAMETERS };

/* Copies n entries of `type` from the table `from`, as the sources at `sources` say, to the record. */
static void copy_sources(const emit_ir *w, LLVMTypeRef type, LLVMValueRef from, LLVMValueRef sources, LLVMValueRef n,
                         LLVMValueRef record) {
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), n, 1, false, 0, NULL);
  LLVMValueRef source = emit_record_at(w, sources, emit_times(w, l.iv, 2));
  LLVMValueRef entry = emit_record_number(w, source, 0), number = emit_record_number(w, source, 1);
  LLVMValueRef value =
      LLVMBuildLoad2(w->builder, type, LLVMBuildInBoundsGEP2(w->builder, type, from, &number, 1, ""), "");
  LLVMSetAlignment(LLVMBuildStore(w->builder, value, emit_record_at(w, record, entry)), 8);
  emit_loop_end(w, &l, NULL);
}

/* Copies n entries; n is a multiple of COPIED. */
static void copy_constants(const emit_ir *w, LLVMValueRef from, LLVMValueRef n, LLVMValueRef record) {
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), n, COPIED, true, 0, NULL);
  LLVMTypeRef type = emit_vector_type(w->i64, COPIED);
  LLVMValueRef entries = LLVMBuildLoad2(w->builder, type, emit_record_at(w, from, l.iv), "");
  LLVMSetAlignment(entries, 8);
  LLVMSetAlignment(LLVMBuildStore(w->builder, entries, emit_record_at(w, record, l.iv)), 8);
  emit_loop_end(w, &l, NULL);
}

static LLVMValueRef reserve(const emit_ir *w, LLVMTypeRef type, LLVMValueRef n, unsigned alignment) {
  LLVMValueRef memory = LLVMBuildArrayAlloca(w->builder, type, n, "");
  LLVMSetAlignment(memory, alignment);
  return memory;
}

static void write_run(emit_ir *w, const void *data) {
  LLVMValueRef p[RUN_PARAMETERS];
  (void)data;
  LLVMGetParams(w->function, p);
  emit_add_text_attribute(w, "probe-stack", "inline-asm"); /* the room may be larger than a page */
  LLVMValueRef table = p[RUN_TABLE], n = emit_record_number(w, table, TABLE_N);
  LLVMValueRef n_args = emit_record_number(w, table, TABLE_N_ARGS);
  LLVMValueRef constants = emit_record_at(w, table, emit_i64(w, TABLE_CONSTANTS));
  LLVMValueRef args = emit_record_at(w, constants, n), buffers = emit_record_at(w, args, emit_times(w, n_args, 2));
  LLVMValueRef record = reserve(w, w->i64, n, 8),
               room = reserve(w, w->i8, emit_record_number(w, table, TABLE_ROOM), 64);
  copy_constants(w, constants, n, record);
  copy_sources(w, w->i64, p[RUN_ARGS], args, n_args, record);
  copy_sources(w, w->ptr, p[RUN_BUFFERS], buffers, emit_record_number(w, table, TABLE_N_BUFFERS), record);
  const LLVMValueRef head[] = {
      [EMIT_RECORD_BUFFERS] = p[RUN_BUFFERS], [EMIT_RECORD_ARGS] = p[RUN_ARGS], [EMIT_RECORD_ROOM] = room};
  for (int k = 0; k < (int)(sizeof head / sizeof *head); k++) {
    if (head[k]) {
      LLVMSetAlignment(LLVMBuildStore(w->builder, head[k], emit_record_at(w, record, emit_i64(w, k))), 8);
    }
  }
  LLVMValueRef arguments[] = {record, p[RUN_BEGIN], p[RUN_END]};
  emit_call_typed(w, emit_record_pointer(w, table, TABLE_STEPS), EMIT_STEPS_TYPES, arguments);
  LLVMBuildRetVoid(w->builder);
}

const emit_shared emit_run_table = {"run_table", "ppiic", write_run, NULL};

static LLVMValueRef *put_sources(const emit_ir *w, LLVMValueRef *to, const emit_record_source *sources, uint32_t n) {
  for (uint32_t k = 0; k < n; k++) {
    *to++ = emit_i64(w, sources[k].entry);
    *to++ = emit_i64(w, sources[k].number);
  }
  return to;
}

static LLVMValueRef write_table(const emit_shared_kernel *k, const emit_shared *steps, int64_t room) {
  const emit_ir *w = k->w->e.w;
  const uint32_t n = (uint32_t)k->n;
  LLVMValueRef *table = ARENA_NEW_N(w->arena, LLVMValueRef, TABLE_CONSTANTS + n + 2 * (k->n_args + k->n_buffers));
  table[TABLE_STEPS] = emit_shared_function(w, steps);
  table[TABLE_N] = emit_i64(w, n);
  table[TABLE_ROOM] = emit_i64(w, room);
  table[TABLE_N_ARGS] = emit_i64(w, k->n_args);
  table[TABLE_N_BUFFERS] = emit_i64(w, k->n_buffers);
  LLVMValueRef *to = table + TABLE_CONSTANTS;
  for (uint32_t j = 0; j < n; j++) {
    *to++ = k->constants[j] ? k->constants[j] : emit_i64(w, 0);
  }
  to = put_sources(w, to, k->args, k->n_args);
  to = put_sources(w, to, k->buffers, k->n_buffers);
  return emit_static_chain(emit_constant_record(w, (int)(to - table), table));
}

void emit_shared_kernel_write(const emit_shared_kernel *k, const emit_shared *steps, int64_t room) {
  const emit_writer *w = k->w;
  LLVMValueRef arguments[RUN_PARAMETERS] = {LLVMGetParam(w->e.w->function, EMIT_BUFFERS),
                                            LLVMGetParam(w->e.w->function, EMIT_ARGS), w->begin, w->end,
                                            write_table(k, steps, room)};
  emit_call_shared(w->e.w, &emit_run_table, arguments);
}

/* --- steps --- */

void emit_write_steps(emit_ir *w, void (*write_step)(const emit_ir *w, LLVMValueRef record, LLVMValueRef step)) {
  LLVMValueRef p[EMIT_STEPS_PARAMETERS];
  LLVMGetParams(w->function, p);
  emit_divide_plainly(w);
  emit_loop l;
  emit_loop_begin(w, &l, p[EMIT_STEPS_BEGIN], p[EMIT_STEPS_END], 1, false, 0, NULL);
  write_step(w, p[EMIT_STEPS_RECORD], l.iv);
  emit_loop_end(w, &l, NULL);
  LLVMBuildRetVoid(w->builder);
}
