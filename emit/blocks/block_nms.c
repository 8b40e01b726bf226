/* block_nms.c - see block_nms.h.
 *
 * A block chooses the boxes of a line (one batch and class).  In each round it chooses the best candidate that is left,
 * compares all other candidates with it, and removes those that it suppresses.  So a box that is chosen has been
 * compared with all boxes that were chosen before it, as on the other targets, although each thread reads only the keys
 * of its own boxes.  A second kernel, which has one block, joins the lists of all lines. */
#include "emit/blocks/block_nms.h"

#include <assert.h>

#include "emit/element/nms_boxes.h"
#include "emit/kernel/block.h"

enum {
  WORD = 8,      /* bytes of a candidate's key, and of the number of boxes that are chosen in a line */
  AT_LEAST = 64, /* bytes that are added to the scratch memory, so that it is not empty if there is no line */
  MOST_THREADS = 512,
  JOIN_THREADS = 256,
  ROW = 3 /* words of a row of the first result: batch, class and box */
};

typedef struct suppression {
  emit_writer w;
  const emit_ir *ir;
  const hlo_instr *i;
  dim lines, classes, boxes, limit;
  uint32_t threads;                /* the number of threads in a block */
  LLVMValueRef thread;             /* the number of the thread in its block */
  LLVMValueRef line, batch, class; /* the line that the block computes */
  LLVMValueRef counts, keys; /* in scratch memory: the numbers of chosen boxes of all lines; the keys of this line */
} suppression;

static suppression suppression_of(const hlo_instr *i) {
  const shape *s = hlo_shape(i->operands[EMIT_NMS_SCORES]);
  return (suppression){.i = i,
                       .lines = dim_mul(i->parent->module->dims, s->dims[0], s->dims[1]),
                       .classes = s->dims[1],
                       .boxes = s->dims[2],
                       .limit = hlo_nms_room(i)};
}

dim emit_block_nms_scratch(const hlo_instr *i) {
  dim_table *t = i->parent->module->dims;
  suppression s = suppression_of(i);
  dim words = dim_add(t, s.lines, dim_mul(t, s.lines, s.boxes));
  return dim_add_const(t, dim_mul(t, words, WORD), AT_LEAST);
}

/* --- words --- */

static LLVMValueRef size(const suppression *s, dim d) { return emit_size(&s->w.e.x, d); }

static LLVMValueRef plus(const suppression *s, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildNSWAdd(s->ir->builder, x, y, "");
}

static LLVMValueRef times(const suppression *s, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildNSWMul(s->ir->builder, x, y, "");
}

static LLVMValueRef address(const suppression *s, LLVMValueRef base, LLVMValueRef k) {
  return LLVMBuildInBoundsGEP2(s->ir->builder, s->ir->i64, base, &k, 1, "");
}

static LLVMValueRef load(const suppression *s, LLVMValueRef base, LLVMValueRef k) {
  return LLVMBuildLoad2(s->ir->builder, s->ir->i64, address(s, base, k), "");
}

static void store(const suppression *s, LLVMValueRef base, LLVMValueRef k, LLVMValueRef v) {
  LLVMBuildStore(s->ir->builder, v, address(s, base, k));
}

static LLVMBasicBlockRef begin_first_thread(const suppression *s) {
  return emit_if_begin(s->ir, emit_icmp(s->ir, LLVMIntEQ, s->thread, emit_i64(s->ir, 0)));
}

/* Begins the code of the kernel's steps, each of which a block of `threads` threads computes.  Returns the block that
 * emit_if_end takes at the end. */
static LLVMBasicBlockRef begin_steps(suppression *s, uint32_t threads) {
  s->threads = threads;
  emit_block_team(&s->w, threads, threads);
  s->thread = emit_thread_number(&s->w);
  s->counts = emit_writer_buffer(&s->w, s->i->n_operands + s->i->n_results);
  return emit_if_begin(s->ir, emit_icmp(s->ir, LLVMIntSLT, s->w.begin, s->w.end));
}

/* --- choosing --- */

static uint32_t threads_for(dim boxes) {
  uint32_t n = MOST_THREADS;
  while (dim_is_const(boxes) && n > EMIT_WARP && n / 2 >= boxes) {
    n /= 2;
  }
  return n;
}

static void keep_larger(const emit_writer *w, const void *data, LLVMValueRef *acc, const LLVMValueRef *x) {
  (void)data;
  acc[0] = emit_intrinsic2(w->e.w, "llvm.umax", acc[0], x[0]);
}

/* Returns, in all threads of the block, the largest of the keys that the threads pass. */
static LLVMValueRef largest(suppression *s, LLVMValueRef key) {
  emit_scan scan = {.n = 1, .identity = {emit_i64(s->ir, 0)}, .combine = keep_larger};
  LLVMValueRef before, all;
  emit_block_scan(&s->w, &scan, &key, &before, &all);
  return all;
}

/* Begins a loop over the boxes of this thread: box k belongs to thread k mod s->threads.  The loop carries the largest
 * key so far.  Returns the mark that end_boxes takes. */
static uint32_t begin_boxes(suppression *s, emit_loop *l) {
  LLVMValueRef none = emit_i64(s->ir, 0);
  emit_loop_begin(s->ir, l, s->thread, size(s, s->boxes), s->threads, false, 1, &none);
  return emit_table_mark(s->w.e.x.table);
}

static LLVMValueRef end_boxes(suppression *s, emit_loop *l, uint32_t mark, LLVMValueRef key) {
  emit_table_release(s->w.e.x.table, mark);
  emit_loop_end(s->ir, l, (LLVMValueRef[]){emit_intrinsic2(s->ir, "llvm.umax", l->carried[0], key)});
  return l->carried[0];
}

/* Stores the keys of the thread's boxes, 0 for boxes that are no candidates, and returns the largest key. */
static LLVMValueRef find_candidates(suppression *s, LLVMValueRef floor) {
  const emit_ir *ir = s->ir;
  emit_loop l;
  uint32_t mark = begin_boxes(s, &l);
  LLVMValueRef score = emit_nms_operand(&s->w.e, s->i, EMIT_NMS_SCORES, (LLVMValueRef[]){s->batch, s->class, l.iv});
  LLVMValueRef key = emit_nms_key(ir, score, l.iv);
  if (floor) {
    key = emit_select(ir, emit_fcmp(ir, LLVMRealOGT, score, floor), key, emit_i64(ir, 0));
  }
  store(s, s->keys, l.iv, key);
  return end_boxes(s, &l, mark, key);
}

/* Removes from the thread's candidates the chosen box and those that it suppresses, and returns the largest key of the
 * remaining candidates. */
static LLVMValueRef remove_suppressed(suppression *s, LLVMValueRef which, const emit_nms_box *chosen,
                                      LLVMValueRef overlap) {
  const emit_ir *ir = s->ir;
  LLVMValueRef none = emit_i64(ir, 0);
  emit_loop l;
  uint32_t mark = begin_boxes(s, &l);
  LLVMValueRef key = load(s, s->keys, l.iv);
  LLVMBasicBlockRef before = emit_here(ir), after = emit_if_begin(ir, emit_icmp(ir, LLVMIntNE, key, none));
  emit_nms_box box = emit_nms_load_box(&s->w.e, s->i, s->batch, l.iv);
  LLVMValueRef goes = LLVMBuildOr(ir->builder, emit_nms_suppresses(ir, &box, chosen, overlap),
                                  emit_icmp(ir, LLVMIntEQ, l.iv, which), "");
  LLVMValueRef left = emit_select(ir, goes, none, key);
  store(s, s->keys, l.iv, left);
  LLVMBasicBlockRef compared = emit_here(ir);
  emit_if_end(ir, after);
  LLVMValueRef phi = LLVMBuildPhi(ir->builder, ir->i64, "");
  LLVMAddIncoming(phi, (LLVMValueRef[]){left, key}, (LLVMBasicBlockRef[]){compared, before}, 2);
  return end_boxes(s, &l, mark, phi);
}

/* Stores batch, class and box number `which` as row number k of the line.  The first thread does it. */
static void store_row(suppression *s, LLVMValueRef k, LLVMValueRef which) {
  LLVMValueRef row = plus(s, times(s, s->line, size(s, s->limit)), k), words[ROW] = {s->batch, s->class, which};
  LLVMBasicBlockRef after = begin_first_thread(s);
  for (int j = 0; j < ROW; j++) {
    store(s, s->w.results[0], plus(s, times(s, row, emit_i64(s->ir, ROW)), emit_i64(s->ir, j)), words[j]);
  }
  emit_if_end(s->ir, after);
}

/* Chooses boxes of the line, and returns how many. */
static LLVMValueRef choose_boxes(suppression *s) {
  emit_element *e = &s->w.e;
  const emit_ir *ir = s->ir;
  LLVMValueRef floor = s->i->n_operands > EMIT_NMS_FLOOR ? emit_nms_operand(e, s->i, EMIT_NMS_FLOOR, NULL) : NULL;
  LLVMValueRef overlap = emit_nms_operand(e, s->i, EMIT_NMS_OVERLAP, NULL);
  LLVMValueRef most = emit_nms_operand(e, s->i, EMIT_NMS_MOST, NULL), none = emit_i64(ir, 0);
  most = emit_intrinsic2(ir, "llvm.smin", most, size(s, s->limit));
  emit_while l;
  emit_while_begin(ir, &l, 2, (LLVMValueRef[]){largest(s, find_candidates(s, floor)), none});
  LLVMValueRef best = l.carried[0], chosen = l.carried[1];
  LLVMValueRef more = emit_icmp(ir, LLVMIntNE, best, none), fits = emit_icmp(ir, LLVMIntSLT, chosen, most);
  emit_while_test(ir, &l, LLVMBuildAnd(ir->builder, more, fits, ""));
  uint32_t mark = emit_table_mark(e->x.table);
  LLVMValueRef which = emit_nms_box_of_key(ir, best);
  emit_nms_box box = emit_nms_load_box(e, s->i, s->batch, which);
  store_row(s, chosen, which);
  LLVMValueRef next = largest(s, remove_suppressed(s, which, &box, overlap));
  emit_table_release(e->x.table, mark);
  emit_while_end(ir, &l, (LLVMValueRef[]){next, plus(s, chosen, emit_i64(ir, 1))});
  return l.carried[1];
}

static void write_choice(suppression *s) {
  const emit_ir *ir = s->ir;
  LLVMBasicBlockRef end = begin_steps(s, threads_for(s->boxes));
  LLVMValueRef classes = size(s, s->classes);
  s->line = s->w.begin;
  s->batch = emit_opaque(ir, LLVMBuildUDiv(ir->builder, s->line, classes, ""));
  s->class = emit_opaque(ir, LLVMBuildURem(ir->builder, s->line, classes, ""));
  s->keys = address(s, s->counts, plus(s, size(s, s->lines), times(s, s->line, size(s, s->boxes))));
  LLVMValueRef n = choose_boxes(s);
  LLVMBasicBlockRef after = begin_first_thread(s);
  store(s, s->counts, s->line, n);
  emit_if_end(ir, after);
  emit_if_end(ir, end);
  s->w.info->grid = s->lines;
}

/* --- joining the lines --- */

/* Moves n words of the first result from position `from` down to `to`, which is at most `from`.  In each round, all
 * threads have read their words before any of them writes, and they overwrite only words that were read in this round
 * or before. */
static void move_words(suppression *s, LLVMValueRef from, LLVMValueRef to, LLVMValueRef n) {
  const emit_ir *ir = s->ir;
  LLVMValueRef rows = s->w.results[0];
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), n, s->threads, false, 0, NULL);
  LLVMValueRef k = plus(s, l.iv, s->thread), last = LLVMBuildNSWSub(ir->builder, n, emit_i64(ir, 1), "");
  LLVMValueRef v = load(s, rows, plus(s, from, emit_intrinsic2(ir, "llvm.smin", k, last)));
  emit_barrier(&s->w);
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntSLT, k, n));
  store(s, rows, plus(s, to, k), v);
  emit_if_end(ir, after);
  emit_loop_end(ir, &l, NULL);
}

/* Moves the rows of all lines to the front of the first result, and returns the number of their words. */
static LLVMValueRef join(suppression *s) {
  const emit_ir *ir = s->ir;
  LLVMValueRef none = emit_i64(ir, 0), row = emit_i64(ir, ROW);
  emit_loop l;
  emit_loop_begin(ir, &l, none, size(s, s->lines), 1, false, 1, &none);
  LLVMValueRef n = times(s, load(s, s->counts, l.iv), row);
  move_words(s, times(s, times(s, l.iv, size(s, s->limit)), row), l.carried[0], n);
  emit_loop_end(ir, &l, (LLVMValueRef[]){plus(s, l.carried[0], n)});
  return l.carried[0];
}

static void write_join(suppression *s) {
  const emit_ir *ir = s->ir;
  LLVMBasicBlockRef end = begin_steps(s, JOIN_THREADS);
  LLVMValueRef n = join(s), row = emit_i64(ir, ROW);
  LLVMValueRef all = times(s, times(s, size(s, s->lines), size(s, s->limit)), row);
  emit_loop l;
  emit_loop_begin(ir, &l, plus(s, n, s->thread), all, s->threads, false, 0, NULL);
  store(s, s->w.results[0], l.iv, emit_i64(ir, 0));
  emit_loop_end(ir, &l, NULL);
  LLVMBasicBlockRef after = begin_first_thread(s);
  store(s, s->w.results[1], emit_i64(ir, 0), LLVMBuildUDiv(ir->builder, n, row, ""));
  emit_if_end(ir, after);
  emit_if_end(ir, end);
  s->w.info->grid = 1;
}

status emit_block_nms_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                             const void *config, uint32_t phase, emit_kernel_info *info) {
  (void)config;
  suppression s = suppression_of(i);
  TRY(emit_writer_begin(&s.w, m, name, i, options, 1, info));
  assert(s.w.e.w->target->execution == EMIT_BLOCKS);
  s.ir = s.w.e.w;
  if (phase == 0) {
    write_choice(&s);
  } else {
    write_join(&s);
  }
  emit_writer_end(&s.w);
  return emit_writer_check(&s.w);
}
