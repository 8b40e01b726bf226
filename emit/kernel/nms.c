/* nms.c - kernels of non-maximum suppression, which compute what base/nms.c does.
 *
 * For each line (one batch and class), candidates are in a heap, the best one on top.  The coordinates of chosen boxes
 * are in separate arrays, so that a candidate is compared with a block of them by vector instructions.  A second kernel
 * joins the lists of the boxes that were chosen for each line. */
#include "emit/element/nms_boxes.h"
#include "emit/kernel/special.h"
#include "emit/kernel/writer.h"

enum {
  BLOCK = 16,              /* the number of chosen boxes with which a candidate is compared at once */
  ARRAYS = EMIT_NMS_PARTS, /* the number of arrays of chosen boxes: one for each coordinate, and one for the areas
                              (emit_nms_box) */
  FLOAT = 4,               /* bytes */
  KEY = 8,                 /* bytes of a candidate in the heap */
  COUNT = 8,               /* bytes of the number of boxes that are chosen in a line */
  AT_LEAST = 64            /* bytes that are added to the scratch memory, so that it is not empty if there is no line */
};

/* The sizes of a suppression, from which the size of its scratch memory follows: a count for each line, then for each
 * part of the lines (emit_nms.parts) the arrays of chosen boxes, in whole blocks, and a heap with room for all boxes.
 */
typedef struct sizes {
  dim batches, classes, boxes, limit, lines, parts;
  dim array;      /* the elements of an array of chosen boxes */
  dim part_bytes; /* the scratch memory of a part */
} sizes;

static sizes sizes_of(const hlo_instr *i, const emit_nms *config) {
  dim_table *t = i->parent->module->dims;
  const shape *s = hlo_shape(i->operands[EMIT_NMS_SCORES]);
  sizes z = {.batches = s->dims[0], .classes = s->dims[1], .boxes = s->dims[2], .limit = hlo_nms_room(i)};
  z.lines = dim_mul(t, z.batches, z.classes);
  z.parts = dim_min(t, z.lines, config->parts);
  z.array = dim_mul(t, dim_ceildiv(t, z.limit, BLOCK), BLOCK);
  z.part_bytes = dim_add(t, dim_mul(t, z.array, ARRAYS * FLOAT), dim_mul(t, z.boxes, KEY));
  return z;
}

dim emit_nms_scratch(const hlo_instr *i, const emit_nms *s) {
  dim_table *t = i->parent->module->dims;
  sizes z = sizes_of(i, s);
  dim counts = dim_mul(t, z.lines, COUNT);
  return dim_add_const(t, dim_add(t, counts, dim_mul(t, z.part_bytes, z.parts)), AT_LEAST);
}

typedef struct suppression {
  emit_writer *w;
  const emit_ir *ir;
  sizes z;
  LLVMValueRef counts;         /* the address of the numbers of chosen boxes of all lines */
  LLVMValueRef arrays[ARRAYS]; /* the addresses of a part's arrays of chosen boxes, and of its heap */
  LLVMValueRef heap;
  LLVMValueRef batch, class; /* the batch and the class of the line */
} suppression;

/* --- memory --- */

static LLVMValueRef address(const suppression *s, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef k) {
  return LLVMBuildInBoundsGEP2(s->ir->builder, type, base, &k, 1, "");
}

static LLVMValueRef load(const suppression *s, LLVMTypeRef type, LLVMValueRef at, unsigned alignment) {
  LLVMValueRef v = LLVMBuildLoad2(s->ir->builder, type, at, "");
  LLVMSetAlignment(v, alignment);
  return v;
}

static void store(const suppression *s, LLVMValueRef v, LLVMValueRef at, unsigned alignment) {
  LLVMSetAlignment(LLVMBuildStore(s->ir->builder, v, at), alignment);
}

static LLVMValueRef load_word(const suppression *s, LLVMValueRef base, LLVMValueRef k) {
  return load(s, s->ir->i64, address(s, s->ir->i64, base, k), 8);
}

static void store_word(const suppression *s, LLVMValueRef base, LLVMValueRef k, LLVMValueRef v) {
  store(s, v, address(s, s->ir->i64, base, k), 8);
}

static LLVMValueRef plus(const suppression *s, LLVMValueRef x, int64_t c) {
  return LLVMBuildNSWAdd(s->ir->builder, x, emit_i64(s->ir, c), "");
}

static LLVMValueRef times(const suppression *s, LLVMValueRef x, int64_t c) {
  return LLVMBuildNSWMul(s->ir->builder, x, emit_i64(s->ir, c), "");
}

static LLVMValueRef size(const suppression *s, dim d) { return emit_size(&s->w->e.x, d); }

/* Sets s->counts, with which the scratch memory begins, and returns the address after it, where the memory of the parts
 * begins. */
static LLVMValueRef scratch_of(suppression *s) {
  s->counts = emit_writer_buffer(s->w, s->w->i->n_operands + s->w->i->n_results);
  return address(s, s->ir->i64, s->counts, size(s, s->z.lines));
}

static void set_part(suppression *s, LLVMValueRef scratch, LLVMValueRef part) {
  LLVMValueRef bytes = LLVMBuildNSWMul(s->ir->builder, part, size(s, s->z.part_bytes), "");
  LLVMValueRef at = address(s, s->ir->i8, scratch, bytes);
  for (int k = 0; k < ARRAYS; k++) {
    s->arrays[k] = at;
    at = address(s, s->ir->f32, at, size(s, s->z.array));
  }
  s->heap = at;
}

/* --- candidates: a heap of keys; the largest key is the best candidate --- */

/* Puts `key` at the free position k of the heap of n keys, or below it, so that the heap is in order again.  Both
 * children are always read; the position of a child that does not exist is replaced by the heap's last position. */
static void sift(const suppression *s, LLVMValueRef n, LLVMValueRef k, LLVMValueRef key) {
  const emit_ir *ir = s->ir;
  LLVMValueRef zero = emit_i64(ir, 0), last = emit_intrinsic2(ir, "llvm.smax", plus(s, n, -1), zero);
  emit_while l;
  emit_while_begin(ir, &l, 1, &k);
  LLVMValueRef child = plus(s, times(s, l.carried[0], 2), 1);
  LLVMValueRef at[2] = {emit_intrinsic2(ir, "llvm.smin", child, last),
                        emit_intrinsic2(ir, "llvm.smin", plus(s, child, 1), last)};
  LLVMValueRef left = load_word(s, s->heap, at[0]), right = load_word(s, s->heap, at[1]);
  LLVMValueRef goes_right = emit_icmp(ir, LLVMIntUGT, right, left);
  LLVMValueRef other = emit_select(ir, goes_right, right, left), place = emit_select(ir, goes_right, at[1], at[0]);
  LLVMValueRef moves =
      LLVMBuildAnd(ir->builder, emit_icmp(ir, LLVMIntSLT, child, n), emit_icmp(ir, LLVMIntUGT, other, key), "");
  emit_while_test(ir, &l, moves);
  store_word(s, s->heap, l.carried[0], other);
  emit_while_end(ir, &l, &place);
  store_word(s, s->heap, l.carried[0], key);
}

/* Fills the heap with the line's candidates, in no order yet, and returns their number. */
static LLVMValueRef gather(const suppression *s) {
  emit_element *e = &s->w->e;
  const emit_ir *ir = s->ir;
  LLVMValueRef none = emit_i64(ir, 0);
  LLVMValueRef floor =
      s->w->i->n_operands > EMIT_NMS_FLOOR ? emit_nms_operand(&s->w->e, s->w->i, EMIT_NMS_FLOOR, NULL) : NULL;
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), size(s, s->z.boxes), 1, false, 1, &none);
  emit_poll_in(&e->x, l.iv, 1, s->z.boxes, 1);
  uint32_t mark = emit_table_mark(e->x.table);
  LLVMValueRef score = emit_nms_operand(&s->w->e, s->w->i, EMIT_NMS_SCORES, (LLVMValueRef[]){s->batch, s->class, l.iv}),
               more = emit_i64(ir, 1);
  store_word(s, s->heap, l.carried[0], emit_nms_key(ir, score, l.iv));
  if (floor) {
    more = LLVMBuildZExt(ir->builder, emit_fcmp(ir, LLVMRealOGT, score, floor), ir->i64, "");
  }
  emit_table_release(e->x.table, mark);
  emit_loop_end(ir, &l, (LLVMValueRef[]){LLVMBuildNSWAdd(ir->builder, l.carried[0], more, "")});
  return l.carried[0];
}

/* Makes a heap of n keys that are in no order: sifts down each key that has a child, from the last one to the first. */
static void make_heap(const suppression *s, LLVMValueRef n) {
  const emit_ir *ir = s->ir;
  LLVMValueRef half = LLVMBuildLShr(ir->builder, n, emit_i64(ir, 1), "");
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), half, 1, false, 0, NULL);
  emit_poll_in(&s->w->e.x, l.iv, 1, s->z.boxes, 1);
  LLVMValueRef k = plus(s, LLVMBuildNSWSub(ir->builder, half, l.iv, ""), -1);
  sift(s, n, k, load_word(s, s->heap, k));
  emit_loop_end(ir, &l, NULL);
}

/* --- boxes --- */

/* Returns an i1 that is true if one of the n chosen boxes suppresses x. */
static LLVMValueRef hidden(const suppression *s, const emit_nms_box *x, LLVMValueRef n) {
  const emit_ir *ir = s->ir;
  LLVMTypeRef block = emit_vector_type(ir->f32, BLOCK);
  LLVMValueRef overlap = emit_splat(ir, emit_nms_operand(&s->w->e, s->w->i, EMIT_NMS_OVERLAP, NULL), BLOCK);
  emit_nms_box wide, chosen;
  for (int k = 0; k < ARRAYS; k++) {
    wide.v[k] = emit_splat(ir, x->v[k], BLOCK);
  }
  emit_while l;
  emit_while_begin(ir, &l, 2, (LLVMValueRef[]){emit_i64(ir, 0), LLVMConstNull(ir->i1)});
  LLVMValueRef more = emit_icmp(ir, LLVMIntSLT, l.carried[0], n);
  emit_while_test(ir, &l, LLVMBuildAnd(ir->builder, more, LLVMBuildNot(ir->builder, l.carried[1], ""), ""));
  for (int k = 0; k < ARRAYS; k++) {
    chosen.v[k] = load(s, block, address(s, ir->f32, s->arrays[k], l.carried[0]), FLOAT);
  }
  LLVMValueRef hit = emit_nms_suppresses(ir, &wide, &chosen, overlap);
  emit_while_end(ir, &l, (LLVMValueRef[]){plus(s, l.carried[0], BLOCK), hit});
  return l.carried[1];
}

/* Adds x to the n chosen boxes.  The last block is filled up with boxes of area 0, which suppress nothing. */
static void choose(const suppression *s, const emit_nms_box *x, LLVMValueRef n) {
  const emit_ir *ir = s->ir;
  LLVMValueRef in_block = LLVMBuildAnd(ir->builder, n, emit_i64(ir, BLOCK - 1), "");
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntEQ, in_block, emit_i64(ir, 0)));
  for (int k = 0; k < ARRAYS; k++) {
    LLVMValueRef zeros = LLVMConstNull(emit_vector_type(ir->f32, BLOCK));
    store(s, zeros, address(s, ir->f32, s->arrays[k], n), FLOAT);
  }
  emit_if_end(ir, after);
  for (int k = 0; k < ARRAYS; k++) {
    store(s, x->v[k], address(s, ir->f32, s->arrays[k], n), FLOAT);
  }
}

/* --- lines --- */

/* Returns the position of row number k of a line in the first result. */
static LLVMValueRef row_of(const suppression *s, LLVMValueRef line, LLVMValueRef k) {
  LLVMValueRef rows = LLVMBuildNSWMul(s->ir->builder, line, size(s, s->z.limit), "");
  return times(s, LLVMBuildNSWAdd(s->ir->builder, rows, k, ""), 3);
}

static void write_row(const suppression *s, LLVMValueRef line, LLVMValueRef k, LLVMValueRef which) {
  LLVMValueRef row = row_of(s, line, k), numbers[] = {s->batch, s->class, which};
  for (int j = 0; j < 3; j++) {
    store_word(s, s->w->results[0], plus(s, row, j), numbers[j]);
  }
}

/* Takes the best of n candidates from the heap, and returns the number of its box. */
static LLVMValueRef take_best(const suppression *s, LLVMValueRef n) {
  LLVMValueRef best = load_word(s, s->heap, emit_i64(s->ir, 0)), rest = plus(s, n, -1);
  sift(s, rest, emit_i64(s->ir, 0), load_word(s, s->heap, rest));
  return emit_nms_box_of_key(s->ir, best);
}

/* Chooses boxes of a line, and returns how many. */
static LLVMValueRef choose_boxes(const suppression *s, LLVMValueRef line) {
  emit_element *e = &s->w->e;
  const emit_ir *ir = s->ir;
  LLVMValueRef zero = emit_i64(ir, 0), n = gather(s);
  LLVMValueRef most =
      emit_intrinsic2(ir, "llvm.smin", emit_nms_operand(&s->w->e, s->w->i, EMIT_NMS_MOST, NULL), size(s, s->z.limit));
  make_heap(s, n);
  emit_while l;
  emit_while_begin(ir, &l, 3, (LLVMValueRef[]){n, zero, zero});
  LLVMValueRef left = l.carried[0], chosen = l.carried[1], tried = l.carried[2];
  LLVMValueRef more = emit_icmp(ir, LLVMIntSGT, left, zero), fits = emit_icmp(ir, LLVMIntSLT, chosen, most);
  emit_while_test(ir, &l, LLVMBuildAnd(ir->builder, more, fits, ""));
  emit_poll_in(&e->x, tried, 1, s->z.boxes, s->z.limit);
  uint32_t mark = emit_table_mark(e->x.table);
  LLVMValueRef which = take_best(s, left);
  emit_nms_box x = emit_nms_load_box(e, s->w->i, s->batch, which);
  LLVMValueRef stays = LLVMBuildNot(ir->builder, hidden(s, &x, chosen), "");
  LLVMBasicBlockRef after = emit_if_begin(ir, stays);
  choose(s, &x, chosen);
  write_row(s, line, chosen, which);
  emit_if_end(ir, after);
  emit_table_release(e->x.table, mark);
  LLVMValueRef now = LLVMBuildNSWAdd(ir->builder, chosen, LLVMBuildZExt(ir->builder, stays, ir->i64, ""), "");
  emit_while_end(ir, &l, (LLVMValueRef[]){plus(s, left, -1), now, plus(s, tried, 1)});
  return l.carried[1];
}

static void write_lines(suppression *s) {
  const emit_ir *ir = s->ir;
  LLVMValueRef scratch = scratch_of(s), classes = size(s, s->z.classes);
  emit_loop parts, lines;
  emit_loop_begin(ir, &parts, s->w->begin, s->w->end, 1, false, 0, NULL);
  set_part(s, scratch, parts.iv);
  LLVMValueRef from = emit_first_of_part(s->w, parts.iv, s->z.parts, s->z.lines);
  LLVMValueRef to = emit_first_of_part(s->w, plus(s, parts.iv, 1), s->z.parts, s->z.lines);
  emit_loop_begin(ir, &lines, from, to, 1, false, 0, NULL);
  uint32_t mark = emit_table_mark(s->w->e.x.table);
  s->batch = emit_opaque(ir, LLVMBuildUDiv(ir->builder, lines.iv, classes, ""));
  s->class = emit_opaque(ir, LLVMBuildURem(ir->builder, lines.iv, classes, ""));
  store_word(s, s->counts, lines.iv, choose_boxes(s, lines.iv));
  emit_table_release(s->w->e.x.table, mark);
  emit_loop_end(ir, &lines, NULL);
  emit_loop_end(ir, &parts, NULL);
  s->w->info->grid = s->z.parts;
}

/* --- joining the lines --- */

/* Moves `n` words of the first result from `from` down to `to`. */
static void move_words(const suppression *s, LLVMValueRef from, LLVMValueRef to, LLVMValueRef n) {
  const emit_ir *ir = s->ir;
  LLVMValueRef rows = s->w->results[0];
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), n, 1, false, 0, NULL);
  LLVMValueRef v = load_word(s, rows, LLVMBuildNSWAdd(ir->builder, from, l.iv, ""));
  store_word(s, rows, LLVMBuildNSWAdd(ir->builder, to, l.iv, ""), v);
  emit_loop_end(ir, &l, NULL);
}

/* Moves the rows of all lines to the front of the first result, and returns the number of these rows. */
static LLVMValueRef join(const suppression *s) {
  const emit_ir *ir = s->ir;
  LLVMValueRef none = emit_i64(ir, 0);
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), size(s, s->z.lines), 1, false, 1, &none);
  emit_poll_in(&s->w->e.x, l.iv, 1, s->z.lines, s->z.limit);
  LLVMValueRef n = load_word(s, s->counts, l.iv), from = row_of(s, l.iv, emit_i64(ir, 0));
  move_words(s, from, times(s, l.carried[0], 3), times(s, n, 3));
  emit_loop_end(ir, &l, (LLVMValueRef[]){LLVMBuildNSWAdd(ir->builder, l.carried[0], n, "")});
  return l.carried[0];
}

/* Writes zeros to the rows of the first result after the first n. */
static void clear_rest(const suppression *s, LLVMValueRef n) {
  const emit_ir *ir = s->ir;
  LLVMValueRef end = row_of(s, size(s, s->z.lines), emit_i64(ir, 0));
  emit_loop l;
  emit_loop_begin(ir, &l, times(s, n, 3), end, 1, false, 0, NULL);
  store_word(s, s->w->results[0], l.iv, emit_i64(ir, 0));
  emit_loop_end(ir, &l, NULL);
}

static void write_join(suppression *s) {
  const emit_ir *ir = s->ir;
  (void)scratch_of(s);
  /* The grid has only one step, but a call may have an empty range. */
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntSLT, s->w->begin, s->w->end));
  LLVMValueRef total = join(s);
  clear_rest(s, total);
  store_word(s, s->w->results[1], emit_i64(ir, 0), total);
  emit_if_end(ir, after);
  s->w->info->grid = 1;
}

/* Estimates the time of the first kernel in nanoseconds. */
static double cost_of(const suppression *s) {
  const double candidate = 20;
  const hlo_instr *i = s->w->i;
  return candidate * emit_likely_elements(i->parent->module->dims, hlo_shape(i->operands[EMIT_NMS_SCORES]));
}

status emit_nms_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                       const void *config, uint32_t phase, emit_kernel_info *info) {
  emit_writer w;
  TRY(emit_writer_begin(&w, m, name, i, options, 1, info));
  suppression s = {.w = &w, .ir = w.e.w, .z = sizes_of(i, config)};
  if (phase == 0) {
    write_lines(&s);
    w.cost = cost_of(&s);
  } else {
    write_join(&s);
  }
  emit_writer_end(&w);
  return emit_writer_check(&w);
}
