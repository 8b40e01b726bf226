/* scan.c - prefixes over the threads of a block (block.h), and cumulative operations on long lines: a block takes as
 * many elements of a line at a time as it has threads, and carries the sum of all elements so far on to the next ones.
 */
#include <assert.h>
#include <string.h>

#include "emit/element/elementwise.h"
#include "emit/kernel/block.h"
#include "emit/kernel/update.h"

/* --- prefixes --- */

static void copy(int n, LLVMValueRef *to, const LLVMValueRef *from) { memcpy(to, from, (size_t)n * sizeof *to); }

static void select_all(const emit_ir *ir, int n, LLVMValueRef c, LLVMValueRef *x, const LLVMValueRef *otherwise) {
  for (int k = 0; k < n; k++) {
    x[k] = emit_select(ir, c, x[k], otherwise[k]);
  }
}

/* Replaces x in each lane of a warp by the combination of the values of this and of all earlier lanes. */
static void scan_warp(emit_writer *w, const emit_scan *s, LLVMValueRef lane, LLVMValueRef *x) {
  const emit_ir *ir = w->e.w;
  for (unsigned by = 1; by < EMIT_WARP; by *= 2) {
    LLVMValueRef sum[EMIT_SCAN_PARTS];
    for (int k = 0; k < s->n; k++) {
      sum[k] = emit_lane_up(w, x[k], by);
    }
    s->combine(w, s->data, sum, x);
    LLVMValueRef has = emit_icmp(ir, LLVMIntSGE, lane, emit_i64(ir, by));
    select_all(ir, s->n, has, sum, x);
    copy(s->n, x, sum);
  }
}

typedef struct list {
  LLVMValueRef parts[EMIT_SCAN_PARTS];
} list;

/* Allocates shared memory for a value of each warp. */
static list new_list(emit_writer *w, int n) {
  enum { PLACE = 8 }; /* bytes */
  list r = {{NULL}};
  for (int k = 0; k < n; k++) {
    r.parts[k] = emit_shared_memory(w, w->e.w->i64, w->info->threads / EMIT_WARP, PLACE);
  }
  return r;
}

static LLVMValueRef place_of(const emit_writer *w, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef at) {
  return LLVMBuildInBoundsGEP2(w->e.w->builder, type, base, &at, 1, "");
}

/* Sets x, of the types of `like`, to entry `at` of the list. */
static void get(const emit_writer *w, int n, const list *from, LLVMValueRef at, const LLVMValueRef *like,
                LLVMValueRef *x) {
  for (int k = 0; k < n; k++) {
    LLVMTypeRef type = LLVMTypeOf(like[k]);
    x[k] = LLVMBuildLoad2(w->e.w->builder, type, place_of(w, type, from->parts[k], at), "");
  }
}

/* Stores x in entry `at` in the threads in which `stores` is true. */
static void put(const emit_writer *w, int n, const list *to, LLVMValueRef at, LLVMValueRef stores,
                const LLVMValueRef *x) {
  LLVMBasicBlockRef after = emit_if_begin(w->e.w, stores);
  for (int k = 0; k < n; k++) {
    LLVMBuildStore(w->e.w->builder, x[k], place_of(w, LLVMTypeOf(x[k]), to->parts[k], at));
  }
  emit_if_end(w->e.w, after);
}

/* Each warp stores the combination of its values in a list.  Then each warp scans this list, with one entry in each
 * lane, and the first warp stores the prefixes in another list, which all threads read. */
void emit_block_scan(emit_writer *w, const emit_scan *s, const LLVMValueRef *x, LLVMValueRef *before,
                     LLVMValueRef *total) {
  const emit_ir *ir = w->e.w;
  int64_t warps = w->info->threads / EMIT_WARP;
  assert(warps > 0 && (warps & (warps - 1)) == 0 && w->info->step_threads == w->info->threads);
  LLVMValueRef lane = emit_lane_number(w), warp = emit_warp_number(w), zero = emit_i64(ir, 0), one = emit_i64(ir, 1);
  LLVMValueRef own[EMIT_SCAN_PARTS], sums[EMIT_SCAN_PARTS], earlier[EMIT_SCAN_PARTS], mine[EMIT_SCAN_PARTS];
  list sum_list = new_list(w, s->n), prefix_list = new_list(w, s->n);
  copy(s->n, own, x);
  scan_warp(w, s, lane, own);
  put(w, s->n, &sum_list, warp, emit_icmp(ir, LLVMIntEQ, lane, emit_i64(ir, EMIT_WARP - 1)), own);
  emit_barrier(w);
  get(w, s->n, &sum_list, LLVMBuildAnd(ir->builder, lane, emit_i64(ir, warps - 1), ""), x, sums);
  scan_warp(w, s, lane, sums);
  LLVMValueRef has_sum = emit_icmp(ir, LLVMIntSLT, emit_thread_number(w), emit_i64(ir, warps));
  put(w, s->n, &prefix_list, lane, has_sum, sums);
  emit_barrier(w);
  get(w, s->n, &prefix_list, emit_i64(ir, warps - 1), x, total);
  LLVMValueRef last = emit_intrinsic2(ir, "llvm.smax", LLVMBuildNSWSub(ir->builder, warp, one, ""), zero);
  get(w, s->n, &prefix_list, last, x, earlier);
  select_all(ir, s->n, emit_icmp(ir, LLVMIntSGT, warp, zero), earlier, s->identity);
  for (int k = 0; k < s->n; k++) {
    mine[k] = emit_lane_up(w, own[k], 1);
  }
  copy(s->n, before, earlier);
  s->combine(w, s->data, before, mine);
  select_all(ir, s->n, emit_icmp(ir, LLVMIntSGT, lane, zero), before, earlier);
}

static void add_counts(const emit_writer *w, const void *data, LLVMValueRef *acc, const LLVMValueRef *x) {
  (void)data;
  acc[0] = LLVMBuildAdd(w->e.w->builder, acc[0], x[0], "");
}

LLVMValueRef emit_count_before(emit_writer *w, LLVMValueRef is, LLVMValueRef *total) {
  const emit_ir *ir = w->e.w;
  emit_scan s = {.n = 1, .identity = {LLVMConstNull(ir->i32)}, .combine = add_counts};
  LLVMValueRef one = LLVMBuildZExt(ir->builder, is, ir->i32, ""), before;
  emit_block_scan(w, &s, &one, &before, total);
  *total = LLVMBuildZExt(ir->builder, *total, ir->i64, "");
  return LLVMBuildZExt(ir->builder, before, ir->i64, "");
}

/* --- cumulative operations --- */

enum { LEAST_LINE = 64, MANY_LINES = 4096, WIDE = 32, MANY_WIDE_LINES = 512 };

/* If lines are short, or if there are enough of them to keep a GPU busy, one thread computes each line, in the same
 * order of elements as CPUs.  If the elements of neighbouring lines are neighbours in memory, so that loads are
 * coalesced, fewer lines are enough. */
bool emit_takes_block_lines(const emit_writer *w, const emit_lines *g) {
  const dim_table *t = w->e.x.sizes->table;
  double n = emit_likely_size(t, g->dims[1]), inner = emit_likely_size(t, g->dims[2]);
  double lines = emit_likely_size(t, g->dims[0]) * inner;
  return w->e.w->target->execution == EMIT_BLOCKS && n >= LEAST_LINE &&
         lines < (inner >= WIDE ? MANY_WIDE_LINES : MANY_LINES);
}

static uint32_t threads_for(dim n) {
  enum { SHORT = 128, LONG = 1024 };
  return !dim_is_const(n) || (n > SHORT && n <= LONG) ? 256 : n <= SHORT ? 64 : 1024;
}

static void combine_elements(const emit_writer *w, const void *data, LLVMValueRef *acc, const LLVMValueRef *x) {
  const hlo_instr *i = data;
  dtype t = hlo_type(i->operands[0]);
  bool pair = dtype_is_complex(t);
  emit_pair v = emit_reduce_combine(w->e.w, (hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER), t,
                                    (emit_pair){acc[0], pair ? acc[1] : NULL}, (emit_pair){x[0], pair ? x[1] : NULL});
  acc[0] = v.v;
  if (pair) {
    acc[1] = v.im;
  }
}

/* Writes the next elements of the line, from position `first` on. `carry` holds the sum of all earlier elements, and
 * becomes the sum of all elements up to the last of these.  A thread whose position is after the end of the line loads
 * the last element, and stores nothing. */
static void block_elements(emit_writer *w, const emit_lines *g, const emit_scan *s, const emit_index *line,
                           LLVMValueRef first, LLVMValueRef *carry) {
  const emit_ir *ir = w->e.w;
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef n = emit_size(&w->e.x, g->dims[1]), p = LLVMBuildNSWAdd(b, first, emit_thread_number(w), "");
  LLVMValueRef inside = emit_icmp(ir, LLVMIntSLT, p, n);
  p = emit_intrinsic2(ir, "llvm.smin", p, LLVMBuildNSWSub(b, n, emit_i64(ir, 1), ""));
  emit_line_element x = emit_line_at(w, g, line, emit_pos_at(p, 1));
  LLVMValueRef v[EMIT_SCAN_PARTS] = {x.v.v, x.v.im}, before[EMIT_SCAN_PARTS], total[EMIT_SCAN_PARTS];
  select_all(ir, s->n, inside, v, s->identity);
  emit_block_scan(w, s, v, before, total);
  LLVMValueRef sum[EMIT_SCAN_PARTS] = {carry[0], carry[1]};
  s->combine(w, s->data, sum, before);
  if (!hlo_int(g->i, HLO_ATTR_EXCLUSIVE)) {
    s->combine(w, s->data, sum, v);
  }
  LLVMBasicBlockRef after = emit_if_begin(ir, inside);
  emit_line_store(w, g, &x, (emit_pair){sum[0], s->n > 1 ? sum[1] : NULL});
  emit_if_end(ir, after);
  s->combine(w, s->data, carry, total);
}

static void block_line(emit_writer *w, const void *data, const emit_index *line) {
  const emit_lines *g = data;
  const emit_ir *ir = w->e.w;
  emit_pair identity =
      emit_reduce_identity(ir, (hlo_reducer)hlo_int(g->i, HLO_ATTR_REDUCER), hlo_type(g->i->operands[0]));
  emit_scan s = {
      .n = identity.im ? 2 : 1, .identity = {identity.v, identity.im}, .combine = combine_elements, .data = g->i};
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), emit_size(&w->e.x, g->dims[1]), w->info->threads, dim_is_const(g->dims[1]),
                  s.n, s.identity);
  uint32_t mark = emit_table_mark(w->e.x.table);
  LLVMValueRef carry[EMIT_SCAN_PARTS] = {l.carried[0], s.n > 1 ? l.carried[1] : NULL};
  block_elements(w, g, &s, line, l.iv, carry);
  emit_table_release(w->e.x.table, mark);
  emit_loop_end(ir, &l, carry);
}

void emit_write_block_lines(emit_writer *w, const emit_lines *g, const dim *extents) {
  uint32_t threads = threads_for(g->dims[1]);
  emit_block_team(w, threads, threads);
  emit_nest(w, 2, extents, 1, false, block_line, g);
}
