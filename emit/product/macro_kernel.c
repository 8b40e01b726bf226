/* macro_kernel.c - see macro_kernel.h. */
#include "emit/product/macro_kernel.h"

#include "emit/llvm/arithmetic.h"

enum {
  MACRO_RECORD,
  MACRO_A,
  MACRO_B,
  MACRO_FIRST_ROW,
  MACRO_FIRST_COLUMN,
  MACRO_ROW_FROM,
  MACRO_ROW_TO,
  MACRO_COLUMN_STEP,
  MACRO_PARAMETERS
};

typedef struct macro_kernel {
  const emit_ir *w;
  LLVMValueRef parameters[MACRO_PARAMETERS];
  /* The number of the rung, the address of its entries in the record, and the rows of its blocks. */
  LLVMValueRef rung_number, rung, rows;
  LLVMValueRef first_outer, past_outer; /* the iterations of the loops around the blocks in which the step has rows */
  LLVMValueRef micro, b, first_column, width; /* the column of blocks that is being computed */
  /* The iteration of the loops around the blocks; the address in A and the row of C at which it begins. */
  LLVMValueRef outer, a, row;
} macro_kernel;

static LLVMValueRef number_of(const macro_kernel *m, int entry) {
  return emit_record_number(m->w, m->parameters[MACRO_RECORD], entry);
}

static LLVMValueRef pointer_of(const macro_kernel *m, int entry) {
  return emit_record_pointer(m->w, m->parameters[MACRO_RECORD], entry);
}

static LLVMValueRef after(const emit_ir *w, LLVMValueRef base, LLVMValueRef bytes) {
  return LLVMBuildInBoundsGEP2(w->builder, w->i8, base, &bytes, 1, "");
}

/* --- the rows of a column of blocks --- */

static void write_block(const macro_kernel *m, LLVMValueRef unit) {
  const emit_ir *w = m->w;
  LLVMValueRef buffers = pointer_of(m, EMIT_RECORD_BUFFERS), args = pointer_of(m, EMIT_RECORD_ARGS);
  LLVMValueRef tile = pointer_of(m, EMIT_RECORD_ROOM);
  LLVMValueRef loops = emit_record_at(w, m->parameters[MACRO_RECORD], emit_i64(w, EMIT_LADDER_LOOPS));
  LLVMValueRef a = after(w, m->a, emit_mul(w, unit, number_of(m, EMIT_LADDER_ROW_BYTES)));
  LLVMValueRef sum[EMIT_MICRO_PARAMETERS] = {buffers, args, loops, a, m->b, tile, m->first_column};
  emit_call_typed(w, m->micro, EMIT_MICRO_TYPES, sum);
  LLVMValueRef finish[EMIT_EPILOGUE_PARAMETERS] = {buffers,         args,    tile, emit_add(w, m->row, unit), m->rows,
                                                   m->first_column, m->width};
  emit_call_typed(w, pointer_of(m, EMIT_LADDER_EPILOGUE), EMIT_EPILOGUE_TYPES, finish);
}

/* Returns how many of n rows are left for the current rung and the rungs after it.  Each rung before it takes as many
 * rows as fill whole blocks of its height. */
static LLVMValueRef rows_left(const macro_kernel *m, LLVMValueRef n) {
  const emit_ir *w = m->w;
  LLVMValueRef rungs = emit_record_at(w, m->parameters[MACRO_RECORD], emit_i64(w, EMIT_LADDER_RUNGS));
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), m->rung_number, 1, false, 1, &n);
  LLVMValueRef rung = emit_record_at(w, rungs, emit_times(w, l.iv, EMIT_RUNG_ENTRIES));
  LLVMValueRef left = emit_rem(w, l.carried[0], emit_record_number(w, rung, EMIT_RUNG_ROWS));
  emit_loop_end(w, &l, &left);
  return l.carried[0];
}

/* The blocks of the current rung in one iteration of the loops around the blocks: their first row, and their number. */
typedef struct row_blocks {
  LLVMValueRef first, n;
} row_blocks;

/* Returns the blocks of iteration `outer`.  The step has rows [begin * h, end * h) of it, where h is the height of the
 * highest rung's blocks; the last few of these rows may not exist (EMIT_LADDER_INNER says how many rows do). */
static row_blocks row_blocks_of(const macro_kernel *m, LLVMValueRef outer) {
  const emit_ir *w = m->w;
  LLVMValueRef inside = number_of(m, EMIT_LADDER_INSIDE), before = emit_mul(w, outer, inside);
  LLVMValueRef begin = emit_greater(w, emit_sub(w, m->parameters[MACRO_ROW_FROM], before), emit_i64(w, 0));
  LLVMValueRef end = emit_lesser(w, emit_sub(w, m->parameters[MACRO_ROW_TO], before), inside);
  LLVMValueRef high = number_of(m, EMIT_LADDER_RUNGS + EMIT_RUNG_ROWS), from = emit_mul(w, begin, high);
  LLVMValueRef to = emit_lesser(w, emit_mul(w, end, high), number_of(m, EMIT_LADDER_INNER));
  LLVMValueRef left = rows_left(m, emit_sub(w, to, from));
  return (row_blocks){emit_sub(w, to, left), emit_div(w, left, m->rows)};
}

/* Writes the loop over the blocks of the current rung in the current iteration of the loops around the blocks. */
static void write_rows(const macro_kernel *m) {
  const emit_ir *w = m->w;
  row_blocks blocks = row_blocks_of(m, m->outer);
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), blocks.n, 1, false, 0, NULL);
  write_block(m, emit_add(w, blocks.first, emit_mul(w, l.iv, m->rows)));
  emit_loop_end(w, &l, NULL);
}

/* Returns the offset in A, in bytes, of iteration m->outer of the loops around the blocks. */
static LLVMValueRef outside_offset(const macro_kernel *m) {
  const emit_ir *w = m->w;
  LLVMValueRef levels = emit_record_at(w, m->parameters[MACRO_RECORD], emit_i64(w, EMIT_LADDER_OUTSIDE));
  LLVMValueRef start[] = {m->outer, emit_i64(w, 0)};
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), number_of(m, EMIT_LADDER_N_OUTSIDE), 1, false, 2, start);
  LLVMValueRef level = emit_record_at(w, levels, emit_times(w, l.iv, 2)), n = emit_record_number(w, level, 0);
  LLVMValueRef digit = emit_rem(w, l.carried[0], n);
  LLVMValueRef next[] = {emit_div(w, l.carried[0], n),
                         emit_add(w, l.carried[1], emit_mul(w, digit, emit_record_number(w, level, 1)))};
  emit_loop_end(w, &l, next);
  return l.carried[1];
}

/* Writes the loop over those iterations of the loops around the blocks in which the step has rows, for the current
 * column of blocks. */
static void write_outer_loop(macro_kernel *m) {
  const emit_ir *w = m->w;
  emit_loop l;
  emit_loop_begin(w, &l, m->first_outer, m->past_outer, 1, true, 0, NULL);
  m->outer = l.iv;
  m->a = after(w, m->parameters[MACRO_A], outside_offset(m));
  m->row = emit_add(w, m->parameters[MACRO_FIRST_ROW], emit_mul(w, l.iv, number_of(m, EMIT_LADDER_INNER)));
  write_rows(m);
  emit_loop_end(w, &l, NULL);
}

/* --- the columns of a rung --- */

/* Sets what belongs to column number `number` of blocks. */
static void set_column(macro_kernel *m, LLVMValueRef number) {
  const emit_ir *w = m->w;
  LLVMValueRef wide = emit_record_number(w, m->rung, EMIT_RUNG_WIDTHS),
               narrow = emit_record_number(w, m->rung, EMIT_RUNG_WIDTHS + 1);
  LLVMValueRef n_wide = emit_record_number(w, m->rung, EMIT_RUNG_N_WIDE);
  LLVMValueRef is_narrow = emit_icmp(w, LLVMIntSGE, number, n_wide), lanes = number_of(m, EMIT_LADDER_LANES);
  LLVMValueRef extra = emit_mul(w, emit_lesser(w, number, n_wide), emit_sub(w, wide, narrow));
  LLVMValueRef vector = emit_add(w, emit_mul(w, number, narrow), extra), column = emit_mul(w, vector, lanes);
  LLVMValueRef which = LLVMBuildZExt(w->builder, is_narrow, w->i64, "");
  LLVMValueRef micro = emit_record_at(w, m->rung, emit_add(w, which, emit_i64(w, EMIT_RUNG_MICRO)));
  m->micro = LLVMBuildLoad2(w->builder, w->ptr, micro, "");
  m->b = after(w, m->parameters[MACRO_B], emit_mul(w, vector, number_of(m, EMIT_LADDER_VECTOR_BYTES)));
  m->first_column = emit_add(w, m->parameters[MACRO_FIRST_COLUMN], column);
  m->width = emit_lesser(w, emit_sub(w, number_of(m, EMIT_LADDER_COLUMNS), column),
                         emit_mul(w, emit_select(w, is_narrow, narrow, wide), lanes));
}

static void write_columns(macro_kernel *m) {
  const emit_ir *w = m->w;
  LLVMValueRef steps = number_of(m, EMIT_LADDER_COLUMN_STEPS), n = emit_record_number(w, m->rung, EMIT_RUNG_N);
  LLVMValueRef each = emit_div(w, emit_add(w, n, emit_sub(w, steps, emit_i64(w, 1))), steps);
  LLVMValueRef from = emit_mul(w, m->parameters[MACRO_COLUMN_STEP], each);
  emit_loop l;
  emit_loop_begin(w, &l, from, emit_lesser(w, emit_add(w, from, each), n), 1, false, 0, NULL);
  emit_poll(w, l.iv, 1, EMIT_ANY_NUMBER, EMIT_POLL);
  set_column(m, l.iv);
  write_outer_loop(m);
  emit_loop_end(w, &l, NULL);
}

/* --- the function --- */

static void set_outer(macro_kernel *m) {
  const emit_ir *w = m->w;
  LLVMValueRef inside = number_of(m, EMIT_LADDER_INSIDE), one = emit_i64(w, 1);
  LLVMValueRef last = emit_div(w, emit_sub(w, m->parameters[MACRO_ROW_TO], one), inside);
  m->first_outer = emit_div(w, m->parameters[MACRO_ROW_FROM], inside);
  m->past_outer = emit_add(w, last, one);
}

/* Returns an i1 that is true unless the step has one iteration of the loops around the blocks, and the rung no blocks
 * in it.  With few rows, going through the columns of empty rungs would take as long as the products. */
static LLVMValueRef may_have_blocks(const macro_kernel *m) {
  const emit_ir *w = m->w;
  LLVMValueRef n = emit_sub(w, m->past_outer, m->first_outer), one = emit_i64(w, 1);
  LLVMValueRef several = emit_icmp(w, LLVMIntSGT, n, one);
  LLVMValueRef some = emit_icmp(w, LLVMIntSGE, row_blocks_of(m, m->first_outer).n, one);
  return LLVMBuildOr(w->builder, several, some, "");
}

static void write_body(emit_ir *w, const void *data) {
  (void)data;
  macro_kernel m = {.w = w};
  LLVMGetParams(w->function, m.parameters);
  emit_divide_plainly(w);
  w->watch = pointer_of(&m, EMIT_RECORD_WATCH);
  LLVMValueRef rungs = emit_record_at(w, m.parameters[MACRO_RECORD], emit_i64(w, EMIT_LADDER_RUNGS));
  set_outer(&m);
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), number_of(&m, EMIT_LADDER_N_RUNGS), 1, true, 0, NULL);
  m.rung_number = l.iv;
  m.rung = emit_record_at(w, rungs, emit_times(w, l.iv, EMIT_RUNG_ENTRIES));
  m.rows = emit_record_number(w, m.rung, EMIT_RUNG_ROWS);
  LLVMBasicBlockRef next = emit_if_begin(w, may_have_blocks(&m));
  write_columns(&m);
  emit_if_end(w, next);
  emit_loop_end(w, &l, NULL);
  LLVMBuildRetVoid(w->builder);
}

static const emit_shared macro_kernel_function = {"macro_kernel", "pppiiiii", write_body, NULL};

/* --- the steps of the grid: void f(record, begin, end) --- */

typedef struct steps {
  const emit_ir *w;
  LLVMValueRef record;
} steps;

static LLVMValueRef entry_of(const steps *s, int entry) { return emit_record_number(s->w, s->record, entry); }

/* Returns n divided by an entry, and sets *n to the remainder. */
static LLVMValueRef divide(const steps *s, LLVMValueRef *n, int entry) {
  LLVMValueRef by = entry_of(s, entry), quotient = emit_div(s->w, *n, by);
  *n = emit_rem(s->w, *n, by);
  return quotient;
}

/* Adds the distances of batch number `batch` to the addresses of A and B. */
static void add_batch(const steps *s, LLVMValueRef batch, LLVMValueRef addresses[2]) {
  const emit_ir *w = s->w;
  LLVMValueRef levels = emit_record_at(w, s->record, emit_i64(w, EMIT_LADDER_BATCH));
  LLVMValueRef start[] = {batch, addresses[0], addresses[1]};
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), entry_of(s, EMIT_LADDER_N_BATCH), 1, false, 3, start);
  LLVMValueRef level = emit_record_at(w, levels, emit_times(w, l.iv, 3)), n = emit_record_number(w, level, 0);
  LLVMValueRef digit = emit_rem(w, l.carried[0], n);
  LLVMValueRef next[] = {emit_div(w, l.carried[0], n),
                         after(w, l.carried[1], emit_mul(w, digit, emit_record_number(w, level, 1))),
                         after(w, l.carried[2], emit_mul(w, digit, emit_record_number(w, level, 2)))};
  emit_loop_end(w, &l, next);
  addresses[0] = l.carried[1];
  addresses[1] = l.carried[2];
}

/* Writes step number `step` of the grid, whose first dimension varies fastest. */
static void write_step(const emit_ir *w, LLVMValueRef record, LLVMValueRef step) {
  const steps own = {w, record}, *s = &own;
  LLVMValueRef first = step, second = divide(s, &first, EMIT_LADDER_FIRST),
               outside = divide(s, &second, EMIT_LADDER_SECOND);
  LLVMValueRef group = outside, batch = divide(s, &group, EMIT_LADDER_GROUPS);
  LLVMValueRef rows_first = emit_icmp(w, LLVMIntNE, entry_of(s, EMIT_LADDER_ROWS_FIRST), emit_i64(w, 0));
  LLVMValueRef blocks = entry_of(s, EMIT_LADDER_ROW_BLOCKS);
  LLVMValueRef from = emit_mul(w, emit_select(w, rows_first, first, second), blocks);
  LLVMValueRef to = emit_lesser(w, emit_add(w, from, blocks), entry_of(s, EMIT_LADDER_BLOCKS));
  LLVMValueRef a = emit_record_pointer(w, s->record, EMIT_LADDER_A),
               b = emit_record_pointer(w, s->record, EMIT_LADDER_B);
  LLVMValueRef in_b = emit_add(w, emit_mul(w, outside, entry_of(s, EMIT_LADDER_PANELS)),
                               emit_mul(w, group, entry_of(s, EMIT_LADDER_GROUP_B)));
  LLVMValueRef at[] = {after(w, a, emit_mul(w, group, entry_of(s, EMIT_LADDER_GROUP_A))),
                       after(w, b, emit_add(w, in_b, entry_of(s, EMIT_LADDER_B_START)))};
  add_batch(s, batch, at);
  LLVMValueRef arguments[MACRO_PARAMETERS] = {
      [MACRO_RECORD] = s->record,
      [MACRO_A] = at[0],
      [MACRO_B] = at[1],
      [MACRO_FIRST_ROW] = emit_mul(w, batch, entry_of(s, EMIT_LADDER_BATCH_ROWS)),
      [MACRO_FIRST_COLUMN] = emit_mul(w, group, entry_of(s, EMIT_LADDER_COLUMNS)),
      [MACRO_ROW_FROM] = from,
      [MACRO_ROW_TO] = to,
      [MACRO_COLUMN_STEP] = emit_select(w, rows_first, second, first)};
  emit_call_shared(w, &macro_kernel_function, arguments);
}

static void write_steps(emit_ir *w, const void *data) {
  (void)data;
  emit_write_steps(w, write_step);
}

const emit_shared emit_macro_steps = {"macro_steps", EMIT_STEPS_TYPES, write_steps, NULL};
