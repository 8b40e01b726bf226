/* reduction_loop.c - the loops of reductions, windows and contractions; see reduction_loop.h. */
#include <assert.h>
#include <string.h>

#include "emit/element/reduction_loop.h"
#include "emit/element/loop_plan.h"

enum { MAX_COPIES = 4, SHORT = 4, UNROLL = 12 };

/* Returns the largest number of steps with which a loop is fully unrolled if f->unroll is set. */
static int most_unrolled(const emit_reduction_loop *f) { return f->e->w->target->small ? SHORT : UNROLL; }

/* Returns the number of values that the loop carries: copies * n vectors, and with `rows` also n scalars for the
 * elements after the last whole vector of a row. */
static int carried(const emit_reduction_loop *f) { return f->n * (f->copies + f->rows); }

static LLVMValueRef *scalars_of(const emit_reduction_loop *f, LLVMValueRef *acc) { return acc + f->n * f->copies; }

/* Writes one step at position p of the innermost dimension.  It accumulates into copy number `copy`, or into the
 * scalars if `copy` equals f->copies. */
static void step_at(const emit_reduction_loop *f, emit_index *outer, emit_pos p, int copy, LLVMValueRef *acc) {
  emit_element *e = f->e;
  int lanes = e->x.lanes;
  emit_index *r = emit_index_new(&e->x, f->rank, f->dims);
  for (int k = 0; k < f->rank - 1; k++) {
    r->axes[k] = outer->axes[k];
  }
  if (f->rank) {
    emit_axis_at(r, f->rank - 1, p);
  }
  e->x.lanes = f->rows ? (copy == f->copies ? 1 : f->lanes) : lanes;
  f->step(f, r, acc + f->n * copy);
  e->x.lanes = lanes;
}

/* Writes the loop over positions [from, to) of the innermost dimension.  Each iteration has `copies` steps of `width`
 * elements, which accumulate into the copies from number `first_copy` on. */
static void inner_loop(const emit_reduction_loop *f, emit_index *outer, int64_t from, int64_t to, int width, int copies,
                       int first_copy, LLVMValueRef *acc) {
  emit_element *e = f->e;
  int64_t stride = (int64_t)width * copies, trips = (to - from) / stride;
  int64_t written_out = f->unroll && !f->compact                    ? most_unrolled(f) / copies
                        : f->rank > 1 && copies == 1 && !f->compact ? SHORT
                                                                    : 1;
  bool unrolled = trips <= written_out;
  emit_loop l;
  uint32_t mark = emit_table_mark(e->x.table);
  if (!unrolled) {
    emit_loop_begin(e->w, &l, emit_i64(e->w, from), emit_i64(e->w, to), stride, true, carried(f), acc);
    emit_poll(e->w, l.iv, stride, to - from, 1);
  }
  LLVMValueRef *now = unrolled ? acc : l.carried, next[EMIT_MAX_CARRIED];
  for (int k = 0; k < carried(f); k++) {
    next[k] = now[k];
  }
  for (int64_t t = 0; t < (unrolled ? trips : 1); t++) {
    for (int c = 0; c < copies; c++) {
      emit_pos p = unrolled ? emit_pos_const(&e->x, from + t * stride) : emit_pos_at(l.iv, width);
      p = emit_pos_along(emit_pos_add_const(&e->x, p, (int64_t)c * width), width);
      step_at(f, outer, p, first_copy + c, next);
    }
  }
  if (!unrolled) {
    emit_table_release(e->x.table, mark);
    emit_loop_end(e->w, &l, next);
  }
  for (int k = 0; k < carried(f); k++) {
    acc[k] = unrolled ? next[k] : l.carried[k];
  }
}

/* Accumulates the last vector of a row, whose first `seen` lanes were accumulated before and are masked. */
static void last_vector(const emit_reduction_loop *f, emit_index *outer, int64_t n, int seen, LLVMValueRef *acc) {
  const emit_ir *w = f->e->w;
  LLVMValueRef lanes[EMIT_MOST_LANES];
  for (int k = 0; k < f->lanes; k++) {
    lanes[k] = LLVMConstInt(w->i1, k >= seen, false);
  }
  emit_reduction_loop once = *f;
  once.mask = LLVMConstVector(lanes, (unsigned)f->lanes);
  step_at(&once, outer, emit_pos_lanes(emit_i64(w, n - f->lanes), 1, 1), 0, acc);
}

/* Writes the same loop as inner_loop, for limits that are not constants. */
static void inner_loop_of_size(const emit_reduction_loop *f, emit_index *outer, LLVMValueRef from, LLVMValueRef to,
                               int width, int copies, int first_copy, LLVMValueRef *acc) {
  emit_element *e = f->e;
  const emit_ir *w = e->w;
  int64_t stride = (int64_t)width * copies;
  LLVMValueRef next[EMIT_MAX_CARRIED];
  emit_loop l;
  uint32_t mark = emit_table_mark(e->x.table);
  emit_loop_begin(w, &l, from, to, stride, false, carried(f), acc);
  emit_poll(w, l.iv, stride, EMIT_ANY_NUMBER, 1);
  memcpy(next, l.carried, (size_t)carried(f) * sizeof *next);
  for (int c = 0; c < copies; c++) {
    emit_pos p = emit_pos_add_const(&e->x, emit_pos_at(l.iv, width), (int64_t)c * width);
    step_at(f, outer, emit_pos_along(p, width), first_copy + c, next);
  }
  emit_table_release(e->x.table, mark);
  emit_loop_end(w, &l, next);
  memcpy(acc, l.carried, (size_t)carried(f) * sizeof *acc);
}

/* Returns a mask that is false in the first `seen` lanes. */
static LLVMValueRef mask_from(const emit_reduction_loop *f, LLVMValueRef seen) {
  const emit_ir *w = f->e->w;
  LLVMValueRef lanes[EMIT_MOST_LANES];
  for (int k = 0; k < f->lanes; k++) {
    lanes[k] = emit_i64(w, k);
  }
  return emit_icmp(w, LLVMIntSGE, LLVMConstVector(lanes, (unsigned)f->lanes), emit_splat(w, seen, f->lanes));
}

/* Accumulates the elements [from, to) of a row of n elements, where to == n.  The last vector ends with the row, and
 * its lanes that were accumulated before are masked.  If the row is shorter than a vector, the caller passes from ==
 * to, and the loop has no iteration. */
static void masked_loop(const emit_reduction_loop *f, emit_index *outer, LLVMValueRef from, LLVMValueRef to,
                        LLVMValueRef n, LLVMValueRef *acc) {
  emit_element *e = f->e;
  const emit_ir *w = e->w;
  LLVMValueRef next[EMIT_MAX_CARRIED];
  emit_loop l;
  uint32_t mark = emit_table_mark(e->x.table);
  emit_loop_begin(w, &l, from, to, f->lanes, false, carried(f), acc);
  memcpy(next, l.carried, (size_t)carried(f) * sizeof *next);
  emit_reduction_loop masked = *f;
  LLVMValueRef last = LLVMBuildNSWSub(w->builder, n, emit_i64(w, f->lanes), "");
  LLVMValueRef at = emit_intrinsic2(w, "llvm.smin", l.iv, last);
  masked.mask = mask_from(f, LLVMBuildNSWSub(w->builder, l.iv, at, ""));
  step_at(&masked, outer, emit_pos_lanes(at, 1, 1), 0, next);
  emit_table_release(e->x.table, mark);
  emit_loop_end(w, &l, next);
  memcpy(acc, l.carried, (size_t)carried(f) * sizeof *acc);
}

/* Writes the loops over the innermost dimension if its extent is an argument.  The numbers of lanes and of copies are
 * powers of two. */
static void innermost_of_size(const emit_reduction_loop *f, emit_index *outer, LLVMValueRef *acc) {
  const emit_ir *w = f->e->w;
  int width = f->rows ? f->lanes : 1;
  LLVMValueRef n = emit_size(&f->e->x, f->dims[f->rank - 1]);
  LLVMValueRef main = LLVMBuildAnd(w->builder, n, emit_i64(w, -(int64_t)width * f->copies), ""),
               whole = LLVMBuildAnd(w->builder, n, emit_i64(w, -(int64_t)width), "");
  inner_loop_of_size(f, outer, emit_i64(w, 0), main, width, f->copies, 0, acc);
  if (f->masks && width > 1) {
    LLVMValueRef is_long = emit_icmp(w, LLVMIntSGE, n, emit_i64(w, width));
    whole = emit_select(w, is_long, n, main);
    masked_loop(f, outer, main, whole, n, acc);
  } else if (f->copies > 1) {
    inner_loop_of_size(f, outer, main, whole, width, 1, 0, acc);
  }
  if (width > 1) {
    inner_loop_of_size(f, outer, whole, n, 1, 1, f->copies, acc);
  }
}

static void nest(const emit_reduction_loop *f, int level, emit_index *outer, LLVMValueRef *acc);

/* Writes the loop over dimension `level`, from from[level] to to[level], or over the whole extent where these are
 * NULL. */
static void part_loop(const emit_reduction_loop *f, int level, emit_index *outer, LLVMValueRef *acc) {
  emit_element *e = f->e;
  dim left = emit_dims_product(&e->x, f->dims, level + 1, f->rank), n = f->dims[level];
  LLVMValueRef from = f->from[level] ? f->from[level] : emit_i64(e->w, 0);
  LLVMValueRef to = f->to[level] ? f->to[level] : emit_size(&e->x, n);
  emit_loop l;
  LLVMValueRef next[EMIT_MAX_CARRIED];
  uint32_t mark = emit_table_mark(e->x.table);
  emit_loop_begin(e->w, &l, from, to, 1, !f->from[level] && dim_is_const(n), carried(f), acc);
  emit_poll_in(&e->x, l.iv, 1, n, left);
  for (int k = 0; k < carried(f); k++) {
    next[k] = l.carried[k];
  }
  if (level == f->rank - 1) {
    step_at(f, outer, emit_pos_at(l.iv, 1), 0, next);
  } else {
    emit_axis_at(outer, level, emit_pos_at(l.iv, 1));
    nest(f, level + 1, outer, next);
  }
  emit_table_release(e->x.table, mark);
  emit_loop_end(e->w, &l, next);
  for (int k = 0; k < carried(f); k++) {
    acc[k] = l.carried[k];
  }
}

static void innermost(const emit_reduction_loop *f, emit_index *outer, LLVMValueRef *acc) {
  if (f->rank && f->from[f->rank - 1]) {
    part_loop(f, f->rank - 1, outer, acc);
    return;
  }
  if (f->rank && !dim_is_const(f->dims[f->rank - 1])) {
    innermost_of_size(f, outer, acc);
    return;
  }
  int64_t n = f->rank ? f->dims[f->rank - 1] : 1;
  int width = f->rows ? f->lanes : 1;
  int64_t main = n / (width * f->copies) * (width * f->copies), whole = n / width * width;
  if (main) {
    inner_loop(f, outer, 0, main, width, f->copies, 0, acc);
  }
  if (whole > main) {
    inner_loop(f, outer, main, whole, width, 1, 0, acc);
  }
  if (n > whole && f->masks && width > 1 && whole) {
    last_vector(f, outer, n, width - (int)(n - whole), acc);
  } else if (n > whole) {
    inner_loop(f, outer, whole, n, 1, 1, f->copies, acc);
  }
}

static void nest(const emit_reduction_loop *f, int level, emit_index *outer, LLVMValueRef *acc) {
  if (level >= f->rank - 1) {
    innermost(f, outer, acc);
    return;
  }
  dim left = emit_dims_product(&f->e->x, f->dims, level, f->rank);
  if (!dim_is_const(left) || left > UNROLL || f->compact || f->from[level]) {
    part_loop(f, level, outer, acc);
    return;
  }
  for (int64_t k = 0; k < f->dims[level]; k++) {
    emit_axis_at(outer, level, emit_pos_const(&f->e->x, k));
    nest(f, level + 1, outer, acc);
  }
}

/* Combines the upper half of the lanes with the lower half, until one lane is left. */
static void across_lanes(const emit_reduction_loop *f, LLVMValueRef *acc) {
  emit_element *e = f->e;
  int lanes = e->x.lanes, mask[EMIT_MOST_LANES];
  for (int half = f->lanes / 2; half >= 1; half /= 2) {
    LLVMValueRef low[EMIT_REDUCTION_LOOP_VALUES], high[EMIT_REDUCTION_LOOP_VALUES];
    for (int k = 0; k < f->n; k++) {
      for (int j = 0; j < half; j++) {
        mask[j] = j;
      }
      low[k] = half == 1 ? emit_lane(e->w, acc[k], 0) : emit_shuffle(e->w, acc[k], NULL, mask, half);
      for (int j = 0; j < half; j++) {
        mask[j] = half + j;
      }
      high[k] = half == 1 ? emit_lane(e->w, acc[k], 1) : emit_shuffle(e->w, acc[k], NULL, mask, half);
    }
    e->x.lanes = half;
    f->combine(f, low, high);
    for (int k = 0; k < f->n; k++) {
      acc[k] = low[k];
    }
  }
  e->x.lanes = lanes;
}

/* Returns how many copies of the accumulators the loop has.  Several copies hide the latency of an operation; there are
 * fewer if the body is large, which also takes LLVM less time. */
static int choose_copies(const emit_reduction_loop *f) {
  dim inner = f->rank ? f->dims[f->rank - 1] : 1;
  int64_t n = dim_is_const(inner) ? inner / (f->rows ? f->lanes : 1) : EMIT_ANY_NUMBER;
  bool many = !f->rows && f->e->x.lanes > f->e->wide; /* an accumulator of several vectors already hides the latency */
  int most = f->heavy ? (f->n ? 2 : 1) : MAX_COPIES;
  int copies = f->compact || many ? 1 : f->n <= 2 ? most : 2;
  while (copies > 1 && n < 2 * copies) {
    copies /= 2;
  }
  return copies;
}

/* Returns the number of lanes for a row of n elements.  If f->masks, the last vector may overlap the one before. */
static int row_lanes(const emit_reduction_loop *f, dim n) {
  if (!f->masks || !dim_is_const(n)) {
    return emit_choose_lanes(n, f->e->wide);
  }
  int lanes = f->e->wide;
  while (lanes > 1 && lanes > n) {
    lanes /= 2;
  }
  return lanes >= 4 || lanes == f->e->wide ? lanes : 1;
}

void emit_reduction_loop_run(emit_reduction_loop *f, LLVMValueRef *out) {
  emit_element *e = f->e;
  if (e->team && f->cooperative) {
    emit_team_loop_run(f, out);
    return;
  }
  f->lanes = e->x.lanes;
  if (f->rows) {
    f->lanes = e->x.lanes == 1 && f->rank ? row_lanes(f, f->dims[f->rank - 1]) : 1;
    f->rows = f->lanes > 1;
    f->lanes = f->rows ? f->lanes : e->x.lanes;
  }
  f->copies = choose_copies(f);
  LLVMValueRef acc[EMIT_MAX_CARRIED];
  assert(carried(f) <= EMIT_MAX_CARRIED);
  for (int k = 0; k < carried(f); k++) {
    acc[k] = emit_splat(e->w, f->init[k % f->n], k < f->n * f->copies ? f->lanes : 1);
  }
  for (int k = 0; k < f->rank; k++) {
    if (f->dims[k] == 0) {
      for (int j = 0; j < f->n; j++) {
        out[j] = emit_splat(e->w, f->init[j], e->x.lanes);
      }
      return;
    }
  }
  nest(f, 0, emit_index_new(&e->x, f->rank, f->dims), acc);
  if (f->n == 0) {
    return;
  }
  int lanes = e->x.lanes;
  e->x.lanes = f->lanes;
  for (int c = 1; c < f->copies; c++) {
    f->combine(f, acc, acc + f->n * c);
  }
  e->x.lanes = lanes;
  if (f->rows) {
    across_lanes(f, acc);
    f->combine(f, acc, scalars_of(f, acc));
  }
  for (int k = 0; k < f->n; k++) {
    out[k] = acc[k];
  }
}

/* Returns max(n - span, 0), the number of positions after which at least `span` further ones follow. */
static LLVMValueRef room_for(const emit_element *e, dim n, int64_t span) {
  if (dim_is_const(n)) {
    return emit_i64(e->w, n - span);
  }
  LLVMValueRef room = LLVMBuildNSWSub(e->w->builder, emit_size(&e->x, n), emit_i64(e->w, span), "");
  return emit_intrinsic2(e->w, "llvm.smax", room, emit_i64(e->w, 0));
}

bool emit_reduction_loop_inside(const emit_element *e, emit_pos p, int64_t span, dim n, LLVMValueRef *inside) {
  if (p.step < 0 && e->x.lanes > 1) { /* the positions are scattered or decreasing */
    return false;
  }
  if (dim_is_const(n) && n <= span) {
    return false;
  }
  LLVMBuilderRef b = e->w->builder;
  LLVMValueRef limit = room_for(e, n, span), one = emit_icmp(e->w, LLVMIntULT, p.base, limit);
  if (p.step != 0 && e->x.lanes > 1) {
    LLVMValueRef last = emit_icmp(e->w, LLVMIntULT, emit_pos_last(&e->x, p), limit);
    one = LLVMBuildAnd(b, one, last, "");
  }
  *inside = *inside ? LLVMBuildAnd(b, *inside, one, "") : one;
  return true;
}

void emit_reduction_loop_either(LLVMValueRef inside, emit_reduction_loop *fast, emit_reduction_loop *slow,
                                LLVMValueRef *out) {
  emit_element *e = fast->e;
  const emit_ir *w = e->w;
  emit_reduction_loop *folds[2] = {fast, slow};
  LLVMValueRef values[2][EMIT_REDUCTION_LOOP_VALUES];
  LLVMBasicBlockRef at[2] = {emit_block(w, "inside"), emit_block(w, "edge")}, done = emit_block(w, "folded"), from[2];
  LLVMBuildCondBr(w->builder, inside, at[0], at[1]);
  for (int k = 0; k < 2; k++) {
    uint32_t mark = emit_table_mark(e->x.table);
    LLVMPositionBuilderAtEnd(w->builder, at[k]);
    e->slow += k;
    emit_reduction_loop_run(folds[k], values[k]);
    e->slow -= k;
    emit_table_release(e->x.table, mark);
    from[k] = emit_here(w);
    LLVMBuildBr(w->builder, done);
  }
  LLVMPositionBuilderAtEnd(w->builder, done);
  for (int k = 0; k < fast->n; k++) {
    out[k] = LLVMBuildPhi(w->builder, LLVMTypeOf(values[0][k]), "");
    LLVMAddIncoming(out[k], (LLVMValueRef[]){values[0][k], values[1][k]}, from, 2);
  }
}
