/* window.c - reduce-window and arg-reduce-window: a loop over the window for each result element. */
#include "emit/element/accumulate.h"
#include "emit/element/reduction_loop.h"
#include "emit/element/window.h"

static const shape *operand(const hlo_instr *i, uint32_t k) { return hlo_shape(i->operands[k]); }

typedef struct windows {
  const hlo_instr *i;
  const emit_index *at;
  int64_t size[SHAPE_MAX_RANK], stride[SHAPE_MAX_RANK], low[SHAPE_MAX_RANK], high[SHAPE_MAX_RANK], hole[SHAPE_MAX_RANK];
  int loop_of[SHAPE_MAX_RANK]; /* for each dimension of the operand, the dimension of the loop's space that runs
                                  along it, or -1 */
  emit_pair outside;           /* the value of the padding, in registers */
  uint32_t inside; /* a bit for each dimension along which all positions of the loop are known to lie in the operand */
} windows;

static windows windows_of(const hlo_instr *i, const emit_index *at) {
  windows g = {.i = i, .at = at};
  for (int k = 0; k < operand(i, 0)->rank; k++) {
    g.size[k] = hlo_ints(i, HLO_ATTR_WINDOW)[k];
    g.stride[k] = hlo_ints(i, HLO_ATTR_STRIDES)[k];
    g.low[k] = hlo_ints(i, HLO_ATTR_LOW)[k];
    g.high[k] = hlo_ints(i, HLO_ATTR_HIGH)[k];
    g.hole[k] = hlo_ints(i, HLO_ATTR_RHS_DILATION)[k];
  }
  return g;
}

static hlo_reducer reducer_of(const windows *g) { return (hlo_reducer)hlo_int(g->i, HLO_ATTR_REDUCER); }

/* Returns true if windows may reach outside of the operand along dimension k.  If an extent is not a constant, this is
 * so if the dimension has any padding. */
static bool leaves(const windows *g, int k) {
  if (!dim_is_const(g->at->dims[k]) || !dim_is_const(operand(g->i, 0)->dims[k])) {
    return g->low[k] > 0 || g->high[k] > 0;
  }
  int64_t last = (g->at->dims[k] - 1) * g->stride[k] + (g->size[k] - 1) * g->hole[k] - g->low[k];
  return g->low[k] > 0 || last >= operand(g->i, 0)->dims[k];
}

/* Returns the operand's index for position r in the window. *checked gets a bit for each dimension along which the
 * index may be outside of the operand. */
static emit_index *window_index(emit_element *e, const windows *g, const emit_index *r, uint32_t *checked) {
  emit_index *x = emit_operand_index(e, g->i, 0);
  *checked = 0;
  for (int k = 0; k < x->rank; k++) {
    if (g->loop_of[k] < 0 && g->low[k] == 0 && g->stride[k] == 1 && x->dims[k] == g->at->dims[k]) {
      emit_axis_from(x, k, g->at, k);
      continue;
    }
    emit_pos p = emit_pos_scale(&e->x, emit_index_dim(&e->x, g->at, k), g->stride[k]);
    if (g->loop_of[k] >= 0) {
      p = emit_pos_add(&e->x, p, emit_pos_scale(&e->x, emit_index_dim(&e->x, r, g->loop_of[k]), g->hole[k]));
    }
    emit_axis_at(x, k, emit_pos_add_const(&e->x, p, -g->low[k]));
    *checked |= !(g->inside >> k & 1) && leaves(g, k) ? (uint32_t)1 << k : 0;
  }
  return x;
}

bool emit_has_short_windows(const emit_ir *w) { return w->target->functions != NULL; }

/* Returns true if windows may reach into padding.  *inside is then set to an i1 that is true if the windows of all
 * lanes contain no padding.  It is set to NULL in seldom-taken branches, if no such condition can be written, or where
 * one loop serves all windows (emit_has_short_windows). */
static bool has_padding(emit_element *e, const windows *g, LLVMValueRef *inside) {
  bool padded = false, known = e->slow == 0 && !emit_has_short_windows(e->w);
  *inside = NULL;
  for (int k = 0; k < g->at->rank; k++) {
    if (leaves(g, k)) {
      emit_pos p = emit_pos_scale(&e->x, emit_index_dim(&e->x, g->at, k), g->stride[k]);
      p = emit_pos_add_const(&e->x, p, -g->low[k]);
      padded = true;
      known =
          known && emit_reduction_loop_inside(e, p, (g->size[k] - 1) * g->hole[k], operand(g->i, 0)->dims[k], inside);
    }
  }
  *inside = known ? *inside : NULL;
  return padded;
}

static LLVMValueRef steps_to(const emit_ir *w, LLVMValueRef distance, int64_t hole) {
  LLVMValueRef n = emit_intrinsic2(w, "llvm.smax", distance, emit_i64(w, 0));
  return LLVMBuildUDiv(w->builder, LLVMBuildAdd(w->builder, n, emit_i64(w, hole - 1), ""), emit_i64(w, hole), "");
}

/* Limits the loops to the part of the window that lies in the operand, along dimensions where that part is the same
 * for all lanes. */
static void cut_loops(emit_reduction_loop *f, windows *g) {
  emit_element *e = f->e;
  const emit_ir *w = e->w;
  for (int k = 0; k < g->at->rank; k++) {
    emit_pos p = emit_pos_scale(&e->x, emit_index_dim(&e->x, g->at, k), g->stride[k]);
    if (!leaves(g, k) || g->loop_of[k] < 0 || (p.step != 0 && e->x.lanes > 1)) {
      continue;
    }
    LLVMValueRef before = LLVMBuildSub(w->builder, emit_i64(w, g->low[k]), p.base, "");
    LLVMValueRef after = LLVMBuildAdd(w->builder, before, emit_size(&e->x, operand(g->i, 0)->dims[k]), "");
    LLVMValueRef to = steps_to(w, after, g->hole[k]);
    f->from[g->loop_of[k]] = steps_to(w, before, g->hole[k]);
    f->to[g->loop_of[k]] = emit_intrinsic2(w, "llvm.smin", to, emit_i64(w, g->size[k]));
    g->inside |= (uint32_t)1 << k;
  }
}

/* Writes the loops over the windows of all lanes.  If windows may reach into the padding, and an i1 can say whether
 * these windows do, there are two: one without checks of positions, for windows that lie in the operand, as nearly all
 * do, and one with checks. */
static void run_windows(emit_reduction_loop *f, windows *g, LLVMValueRef *out) {
  LLVMValueRef inside;
  if (!has_padding(f->e, g, &inside)) {
    emit_reduction_loop_run(f, out);
    return;
  }
  if (!inside) {
    cut_loops(f, g);
    emit_reduction_loop_run(f, out);
    return;
  }
  windows clear = *g;
  emit_reduction_loop fast = *f;
  clear.inside = UINT32_MAX;
  fast.data = &clear;
  f->compact = true;
  cut_loops(f, g);
  emit_reduction_loop_either(inside, &fast, f, out);
}

static void window_step(const emit_reduction_loop *f, const emit_index *r, LLVMValueRef *acc) {
  const windows *g = f->data;
  emit_element *e = f->e;
  dtype t = hlo_type(g->i->operands[0]);
  uint32_t checked;
  emit_index *x = window_index(e, g, r, &checked);
  emit_pair v = checked ? emit_guarded(e, g->i->operands[0], x, checked, NULL, emit_splat_pair(e, g->outside))
                        : emit_value(e, g->i->operands[0], x);
  emit_pair s = {acc[0], f->n == 2 ? acc[1] : NULL};
  s = emit_acc_combine(e->w, reducer_of(g), t, s, emit_acc_hold(e->w, reducer_of(g), t, v));
  acc[0] = s.v;
  if (f->n == 2) {
    acc[1] = s.im;
  }
}

static void window_combine(const emit_reduction_loop *f, LLVMValueRef *acc, const LLVMValueRef *other) {
  const windows *g = f->data;
  emit_pair x = {acc[0], f->n == 2 ? acc[1] : NULL}, y = {other[0], f->n == 2 ? other[1] : NULL};
  x = emit_acc_combine(f->e->w, reducer_of(g), hlo_type(g->i->operands[0]), x, y);
  acc[0] = x.v;
  if (f->n == 2) {
    acc[1] = x.im;
  }
}

static void window_space(emit_reduction_loop *f, windows *g) {
  for (int k = 0; k < operand(g->i, 0)->rank; k++) {
    g->loop_of[k] = g->size[k] > 1 ? f->rank : -1;
    if (g->size[k] > 1) {
      f->dims[f->rank++] = g->size[k];
    }
  }
}

/* Returns the result of the reduction in accumulated form (accumulate.h). */
static emit_pair reduce_windows(emit_element *e, windows *g) {
  dtype t = hlo_type(g->i->operands[0]);
  emit_reduction_loop f = {.e = e, .data = g, .step = window_step, .combine = window_combine, .unroll = true};
  window_space(&f, g);
  emit_pair held = emit_acc_identity(e->w, reducer_of(g), t);
  g->outside = emit_acc_value(e->w, reducer_of(g), t, held);
  f.n = held.im ? 2 : 1;
  f.init[0] = held.v;
  f.init[1] = held.im;
  LLVMValueRef out[2];
  run_windows(&f, g, out);
  return (emit_pair){out[0], held.im ? out[1] : NULL};
}

emit_pair emit_reduce_window(emit_element *e, const hlo_instr *i, const emit_index *at) {
  windows g = windows_of(i, at);
  return emit_acc_value(e->w, reducer_of(&g), hlo_type(i->operands[0]), reduce_windows(e, &g));
}

emit_pair emit_reduce_window_columns(emit_element *e, const hlo_instr *i, const emit_index *at) {
  windows g = windows_of(i, at);
  int last = operand(i, 0)->rank - 1;
  g.size[last] = g.stride[last] = g.hole[last] = 1;
  g.low[last] = g.high[last] = 0;
  return reduce_windows(e, &g);
}

static void arg_window_step(const emit_reduction_loop *f, const emit_index *r, LLVMValueRef *acc) {
  const windows *g = f->data;
  emit_element *e = f->e;
  const emit_ir *w = e->w;
  dtype t = hlo_type(g->i->operands[0]);
  uint32_t checked;
  emit_index *x = window_index(e, g, r, &checked);
  LLVMValueRef at = emit_arg_position(e, emit_index_linear(&e->x, x));
  for (int k = 0; k < x->rank; k++) {
    if (checked >> k & 1) {
      LLVMValueRef p = emit_arg_position(e, x->axes[k].pos);
      at = emit_select(w, emit_icmp(w, LLVMIntULT, p, emit_size_like(&e->x, p, x->dims[k])), at, emit_i(at, -1));
    }
  }
  emit_pair outside = emit_splat_pair(e, g->outside);
  LLVMValueRef v = emit_widen(w, t, emit_guarded(e, g->i->operands[0], x, checked, NULL, outside).v);
  emit_arg_take(f, t, true, false, acc, v, at);
}

static void arg_window_combine(const emit_reduction_loop *f, LLVMValueRef *acc, const LLVMValueRef *other) {
  const windows *g = f->data;
  emit_arg_take(f, hlo_type(g->i->operands[0]), true, false, acc, other[0], other[1]);
}

emit_pair emit_arg_reduce_window(emit_element *e, const hlo_instr *i, const emit_index *at) {
  dtype t = hlo_type(i->operands[0]);
  windows g = windows_of(i, at);
  g.outside = (emit_pair){LLVMConstNull(emit_register_type(e->w, t)), NULL};
  emit_reduction_loop f = {.e = e, .data = &g, .step = arg_window_step, .combine = arg_window_combine};
  window_space(&f, &g);
  emit_arg_init(&f, t);
  LLVMValueRef out[2];
  run_windows(&f, &g, out);
  return emit_arg_result(&f, out[1]);
}
