/* reduce.c - the emitters of reduce and arg-reduce. */
#include "emit/element/accumulate.h"
#include "emit/element/reduction_loop.h"
#include "emit/element/loop_plan.h"
#include "emit/element/reduce.h"

/* The data of emit_reduce's loop: the result's index and the reduced dimensions. */
typedef struct reduced {
  const emit_index *at;
  int n_gone, gone[SHAPE_MAX_RANK]; /* the reduced dimensions */
  dim gone_dims[SHAPE_MAX_RANK];
} reduced;

static const shape *operand(const hlo_instr *i, uint32_t k) { return hlo_shape(i->operands[k]); }

int emit_reduction_parts(const hlo_instr *i) { return dtype_is_complex((dtype)i->shapes[0].type) ? 2 : 1; }

/* Returns the operand's index: kept dimensions from the result's index, reduced ones from r, a position in the loop's
 * space, whose dimensions may be merged. */
static const emit_index *reduced_index(emit_element *e, const emit_reductions *g, const emit_index *r) {
  const reduced *d = g->data;
  emit_index *x = emit_operand_index(e, g->of[0], 0);
  const emit_index *apart = emit_index_reshape(&e->x, r, d->n_gone, d->gone_dims);
  for (int k = 0, kept = 0, gone = 0; k < x->rank; k++) {
    if (gone < d->n_gone && d->gone[gone] == k) {
      emit_axis_from(x, k, apart, gone++);
    } else {
      emit_axis_from(x, k, d->at, kept++);
    }
  }
  return x;
}

static hlo_reducer reducer_of(const hlo_instr *i) { return (hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER); }

/* --- the accumulated value of reduction k --- */

static emit_pair identity(const emit_ir *w, const emit_reductions *g, int k) {
  dtype t = hlo_type(g->of[k]->operands[0]);
  return g->compares[k] ? emit_reduce_identity(w, HLO_REDUCE_MAX, t) : emit_acc_identity(w, reducer_of(g->of[k]), t);
}

static emit_pair hold(const emit_ir *w, const emit_reductions *g, int k, emit_pair x) {
  return g->compares[k] ? x : emit_acc_hold(w, reducer_of(g->of[k]), hlo_type(g->of[k]->operands[0]), x);
}

static emit_pair combine(const emit_ir *w, const emit_reductions *g, int k, emit_pair x, emit_pair y) {
  return g->compares[k] ? (emit_pair){emit_larger(w, y.v, x.v), NULL}
                        : emit_acc_combine(w, reducer_of(g->of[k]), hlo_type(g->of[k]->operands[0]), x, y);
}

/* Returns v with the reducer's identity in the lanes in which f->mask is false, since the elements of these lanes were
 * accumulated before. */
static emit_pair masked(const emit_reduction_loop *f, int k, emit_pair v) {
  if (!f->mask) {
    return v;
  }
  return emit_select_pair(f->e, f->mask, v, emit_splat_pair(f->e, identity(f->e->w, f->data, k)));
}

/* --- the loop --- */

void emit_reductions_step(const emit_reduction_loop *f, const emit_index *r, LLVMValueRef *acc) {
  const emit_reductions *g = f->data;
  for (int k = 0, j = 0; k < g->n; j += emit_reduction_parts(g->of[k]), k++) {
    hlo_value x = g->of[k]->operands[0];
    const emit_index *place = g->place(f->e, g, r),
                     *at = emit_index_reshape(&f->e->x, place, hlo_rank(x), hlo_shape(x)->dims);
    emit_pair v = masked(f, k, hold(f->e->w, g, k, emit_value(f->e, x, at)));
    bool pair = emit_reduction_parts(g->of[k]) == 2;
    emit_pair s = {acc[j], pair ? acc[j + 1] : NULL};
    s = combine(f->e->w, g, k, s, v);
    acc[j] = s.v;
    if (pair) {
      acc[j + 1] = s.im;
    }
  }
}

static void reduce_combine(const emit_reduction_loop *f, LLVMValueRef *acc, const LLVMValueRef *other) {
  const emit_reductions *g = f->data;
  for (int k = 0, j = 0; k < g->n; j += emit_reduction_parts(g->of[k]), k++) {
    bool pair = emit_reduction_parts(g->of[k]) == 2;
    emit_pair x = {acc[j], pair ? acc[j + 1] : NULL}, y = {other[j], pair ? other[j + 1] : NULL};
    x = combine(f->e->w, g, k, x, y);
    acc[j] = x.v;
    if (pair) {
      acc[j + 1] = x.im;
    }
  }
}

emit_reduction_loop emit_reductions_loop(emit_element *e, const emit_reductions *g) {
  emit_reduction_loop f = {
      .e = e, .data = g, .step = emit_reductions_step, .combine = reduce_combine, .masks = true, .cooperative = true};
  for (int k = 0; k < g->n; k++) {
    f.heavy |= emit_takes_math(e, g->of[k]->operands[0]);
    emit_pair id = identity(e->w, g, k);
    f.init[f.n++] = id.v;
    if (id.im) {
      f.init[f.n++] = id.im;
    }
  }
  return f;
}

emit_pair emit_reductions_value(const emit_element *e, const emit_reductions *g, int k, const LLVMValueRef *out) {
  int j = 0;
  for (int m = 0; m < k; m++) {
    j += emit_reduction_parts(g->of[m]);
  }
  emit_pair held = {out[j], emit_reduction_parts(g->of[k]) == 2 ? out[j + 1] : NULL};
  return g->compares[k] ? held : emit_acc_value(e->w, reducer_of(g->of[k]), (dtype)g->of[k]->shapes[0].type, held);
}

static bool depends(const hlo_instr *i, const hlo_instr *on, int budget) {
  if (i == on) {
    return true;
  }
  for (uint32_t k = 0; k < i->n_operands && budget > 0; k++) {
    if (depends(i->operands[k].def, on, budget - 1)) {
      return true;
    }
  }
  return budget <= 0;
}

/* Adds to g the other reductions of the fusion that reduce the same dimensions of an array of the same shape, if none
 * of them depends on another; they share a loop. */
static void find_siblings(const emit_element *e, emit_reductions *g) {
  const hlo_instr *i = g->of[0];
  int parts = emit_reduction_parts(i);
  for (hlo_instr *j = e->body ? e->body->first : NULL; j && g->n < EMIT_REDUCTION_LOOP_VALUES / 2; j = j->next) {
    if (j == i || j->op != HLO_REDUCE || !shape_same_dims(operand(i, 0), operand(j, 0)) ||
        hlo_n_ints(i, HLO_ATTR_DIMENSIONS) != hlo_n_ints(j, HLO_ATTR_DIMENSIONS) || !hlo_value_uses(hlo_result(j, 0)) ||
        parts + emit_reduction_parts(j) > EMIT_REDUCTION_LOOP_VALUES) {
      continue;
    }
    bool same = true;
    for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_DIMENSIONS); k++) {
      same = same && hlo_ints(i, HLO_ATTR_DIMENSIONS)[k] == hlo_ints(j, HLO_ATTR_DIMENSIONS)[k];
    }
    for (int k = 0; k < g->n; k++) {
      same = same && !depends(j, g->of[k], 16) && !depends(g->of[k], j, 16);
    }
    if (same) {
      g->of[g->n++] = j;
      parts += emit_reduction_parts(j);
    }
  }
}

/* Merges reduced dimensions that are neighbours, if no operation that computes the operands needs them separately. */
static void merge_dims(emit_reduction_loop *f, const emit_reductions *g, const reduced *d) {
  emit_dim_boundaries boundaries = {0};
  for (int k = 0; k < g->n; k++) {
    emit_dim_boundaries_of(f->e, g->of[k]->operands[0], &boundaries);
  }
  const shape *x = operand(g->of[0], 0);
  for (int k = 0; k < d->n_gone; k++) {
    bool join = k > 0 && d->gone[k] == d->gone[k - 1] + 1 &&
                !emit_is_dim_boundary(&boundaries, emit_dims_product(&f->e->x, x->dims, d->gone[k], x->rank));
    if (join) {
      dim both[] = {f->dims[f->rank - 1], d->gone_dims[k]};
      f->dims[f->rank - 1] = emit_dims_product(&f->e->x, both, 0, 2);
    } else {
      f->dims[f->rank++] = d->gone_dims[k];
    }
  }
}

emit_pair emit_reduce(emit_element *e, const hlo_instr *i, const emit_index *at) {
  reduced d = {.at = at, .n_gone = (int)hlo_n_ints(i, HLO_ATTR_DIMENSIONS)};
  emit_reductions g = {.n = 1, .of = {i}, .place = reduced_index, .data = &d};
  for (int k = 0; k < d.n_gone; k++) {
    d.gone[k] = (int)hlo_ints(i, HLO_ATTR_DIMENSIONS)[k];
    d.gone_dims[k] = operand(i, 0)->dims[d.gone[k]];
  }
  find_siblings(e, &g);
  emit_reduction_loop f = emit_reductions_loop(e, &g);
  f.rows = emit_reduces_rows(i);
  merge_dims(&f, &g, &d);
  LLVMValueRef out[EMIT_REDUCTION_LOOP_VALUES];
  emit_reduction_loop_run(&f, out);
  emit_pos linear = emit_index_linear(&e->x, at);
  for (int k = 1; k < g.n; k++) { /* the first reduction's value is put into the table by emit_value */
    uintptr_t key[5] = {16, (uintptr_t)g.of[k], (uintptr_t)e->x.lanes, (uintptr_t)linear.base, (uintptr_t)linear.step};
    emit_table_put(e->x.table, key, emit_reductions_value(e, &g, k, out));
  }
  return emit_reductions_value(e, &g, 0, out);
}

/* --- arg-reduce: the accumulated values are {best value, its position}; position -1 means that there is none yet ---
 */

typedef struct arg {
  const hlo_instr *i;
  const emit_index *at;
  bool largest, last;
} arg;

static LLVMTypeRef position_type(const emit_element *e) { return e->x.narrow ? e->w->i32 : e->w->i64; }

LLVMValueRef emit_arg_position(const emit_element *e, emit_pos p) {
  LLVMValueRef v = e->x.lanes == 1 || p.step == 0 ? p.base : emit_pos_vector(&e->x, p);
  v = LLVMBuildIntCast2(e->w->builder, v, emit_type_like(v, position_type(e)), true, "");
  return emit_lanes(v) ? v : emit_splat(e->w, v, e->x.lanes);
}

void emit_arg_take(const emit_reduction_loop *f, dtype t, bool largest, bool last, LLVMValueRef *acc, LLVMValueRef x,
                   LLVMValueRef at) {
  const emit_ir *w = f->e->w;
  LLVMBuilderRef b = w->builder;
  LLVMValueRef better = largest ? emit_less(w, t, acc[0], x) : emit_less(w, t, x, acc[0]);
  LLVMValueRef earlier = emit_icmp(w, LLVMIntSLT, at, acc[1]), wanted = last ? LLVMBuildNot(b, earlier, "") : earlier;
  LLVMValueRef take;
  if (dtype_is_float(t)) {
    LLVMValueRef x_nan = emit_fcmp(w, LLVMRealUNO, x, x), best_nan = emit_fcmp(w, LLVMRealUNO, acc[0], acc[0]);
    LLVMValueRef equal = emit_fcmp(w, LLVMRealOEQ, x, acc[0]);
    take = LLVMBuildOr(b, better, LLVMBuildAnd(b, equal, wanted, ""), "");
    take = emit_select(w, x_nan, LLVMBuildOr(b, LLVMBuildNot(b, best_nan, ""), earlier, ""), take);
  } else {
    take = LLVMBuildOr(b, better, LLVMBuildAnd(b, emit_icmp(w, LLVMIntEQ, x, acc[0]), wanted, ""), "");
  }
  take = LLVMBuildOr(b, take, emit_icmp(w, LLVMIntSLT, acc[1], emit_i(at, 0)), "");
  take = LLVMBuildAnd(b, take, emit_icmp(w, LLVMIntSGE, at, emit_i(at, 0)), "");
  acc[0] = emit_select(w, take, x, acc[0]);
  acc[1] = emit_select(w, take, at, acc[1]);
}

/* Does what emit_arg_take does for an x whose position is later than all that acc has seen.  acc[0] begins with the
 * least preferred value (emit_arg_reduce), so a position of -1 needs no test: it stays only while all values are that
 * one. */
static void take_later(const emit_reduction_loop *f, dtype t, const arg *g, LLVMValueRef *acc, LLVMValueRef x,
                       LLVMValueRef at) {
  const emit_ir *w = f->e->w;
  LLVMValueRef take;
  if (dtype_is_float(t)) { /* unordered comparisons, so that a NaN is taken, and then stays */
    LLVMRealPredicate p = g->largest ? (g->last ? LLVMRealUGE : LLVMRealUGT) : (g->last ? LLVMRealULE : LLVMRealULT);
    LLVMValueRef number = emit_fcmp(w, LLVMRealORD, acc[0], acc[0]);
    take = LLVMBuildAnd(w->builder, emit_fcmp(w, p, x, acc[0]), number, "");
  } else if (g->last) {
    LLVMValueRef worse = g->largest ? emit_less(w, t, x, acc[0]) : emit_less(w, t, acc[0], x);
    take = LLVMBuildNot(w->builder, worse, "");
  } else {
    take = g->largest ? emit_less(w, t, acc[0], x) : emit_less(w, t, x, acc[0]);
  }
  acc[0] = emit_select(w, take, x, acc[0]);
  acc[1] = emit_select(w, take, at, acc[1]);
}

static void arg_step(const emit_reduction_loop *f, const emit_index *r, LLVMValueRef *acc) {
  const arg *g = f->data;
  emit_element *e = f->e;
  dtype t = hlo_type(g->i->operands[0]);
  int d = (int)hlo_int(g->i, HLO_ATTR_DIMENSION);
  emit_index *x = emit_operand_index(e, g->i, 0);
  for (int k = 0; k < x->rank; k++) {
    if (k == d) {
      emit_axis_from(x, k, r, 0);
    } else {
      emit_axis_from(x, k, g->at, k - (k > d));
    }
  }
  LLVMValueRef v = emit_widen(e->w, t, emit_value(e, g->i->operands[0], x).v);
  take_later(f, t, g, acc, v, emit_arg_position(e, emit_index_dim(&e->x, r, 0)));
}

static void arg_combine(const emit_reduction_loop *f, LLVMValueRef *acc, const LLVMValueRef *other) {
  const arg *g = f->data;
  emit_arg_take(f, hlo_type(g->i->operands[0]), g->largest, g->last, acc, other[0], other[1]);
}

void emit_arg_init(emit_reduction_loop *f, dtype t) {
  f->n = 2;
  f->init[0] = LLVMConstNull(emit_register_type(f->e->w, emit_compute_type(t)));
  f->init[1] = emit_i_of(position_type(f->e), -1);
}

emit_pair emit_arg_result(const emit_reduction_loop *f, LLVMValueRef position) {
  LLVMTypeRef s64 = emit_type_like(position, f->e->w->i64);
  return (emit_pair){LLVMBuildIntCast2(f->e->w->builder, position, s64, true, ""), NULL};
}

/* An element that is visited twice has the same position both times, and a loop visits the elements of an accumulator
 * in ascending order, so no lanes need to be masked. */
emit_pair emit_arg_reduce(emit_element *e, const hlo_instr *i, const emit_index *at) {
  arg g = {i, at, hlo_int(i, HLO_ATTR_LARGEST), hlo_int(i, HLO_ATTR_LAST)};
  emit_reduction_loop f = {.e = e,
                           .data = &g,
                           .step = arg_step,
                           .combine = arg_combine,
                           .cooperative = true,
                           .rows = emit_reduces_rows(i),
                           .masks = true,
                           .rank = 1};
  dtype t = hlo_type(i->operands[0]);
  f.dims[0] = operand(i, 0)->dims[hlo_int(i, HLO_ATTR_DIMENSION)];
  emit_arg_init(&f, t);
  f.init[0] = emit_reduce_identity(e->w, g.largest ? HLO_REDUCE_MAX : HLO_REDUCE_MIN, t).v;
  LLVMValueRef out[2];
  emit_reduction_loop_run(&f, out);
  /* If the position is -1, all elements are the least preferred value, and the first of them is wanted. */
  return emit_arg_result(&f, emit_intrinsic2(e->w, "llvm.smax", out[1], emit_i(out[1], 0)));
}
