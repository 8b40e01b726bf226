/* window.c - reduce-window and arg-reduce-window: a loop over the window for each result element. */
#include "emit/elementwise.h"
#include "emit/fold.h"

static const shape *operand(const hlo_instr *i, uint32_t k) { return hlo_shape(i->operands[k]); }

typedef struct windows {
  const hlo_instr *i;
  const emit_index *at;
  int n_loops, loop_of[SHAPE_MAX_RANK]; /* operand dim -> dim of the loop's space, or -1 */
  emit_pair outside;                    /* what padding holds, in registers */
  bool inside;                          /* the whole window is known to lie in the operand */
} windows;

/* Place in the operand of place r in the window; *checked: dims that may be outside of it. */
static emit_index *window_index(emit_element *e, const windows *g, const emit_index *r, uint32_t *checked) {
  const hlo_instr *i = g->i;
  emit_index *x = emit_operand_index(e, i, 0);
  *checked = 0;
  for (int k = 0; k < x->rank; k++) {
    int64_t stride = hlo_ints(i, HLO_ATTR_STRIDES)[k], low = hlo_ints(i, HLO_ATTR_LOW)[k];
    int64_t hole = hlo_ints(i, HLO_ATTR_RHS_DILATION)[k], size = hlo_ints(i, HLO_ATTR_WINDOW)[k];
    if (g->loop_of[k] < 0 && low == 0 && x->dims[k] == g->at->dims[k]) {
      emit_axis_from(x, k, g->at, k);
      continue;
    }
    emit_pos p = emit_pos_scale(&e->x, emit_index_dim(&e->x, g->at, k), stride);
    if (g->loop_of[k] >= 0) {
      p = emit_pos_add(&e->x, p, emit_pos_scale(&e->x, emit_index_dim(&e->x, r, g->loop_of[k]), hole));
    }
    emit_axis_at(x, k, emit_pos_add_const(&e->x, p, -low));
    if (!g->inside && (low > 0 || (g->at->dims[k] - 1) * stride + (size - 1) * hole - low >= x->dims[k])) {
      *checked |= (uint32_t)1 << k;
    }
  }
  return x;
}

/* Is there padding?  Then *inside tells whether the windows of all lanes are clear of it; NULL: that cannot
 * be told. */
static bool has_padding(emit_element *e, const windows *g, LLVMValueRef *inside) {
  const hlo_instr *i = g->i;
  bool padded = false, known = e->slow == 0;
  *inside = NULL;
  for (int k = 0; k < g->at->rank; k++) {
    int64_t stride = hlo_ints(i, HLO_ATTR_STRIDES)[k], low = hlo_ints(i, HLO_ATTR_LOW)[k],
            n = operand(i, 0)->dims[k];
    int64_t span = (hlo_ints(i, HLO_ATTR_WINDOW)[k] - 1) * hlo_ints(i, HLO_ATTR_RHS_DILATION)[k];
    if (low > 0 || (g->at->dims[k] - 1) * stride + span - low >= n) {
      emit_pos p =
          emit_pos_add_const(&e->x, emit_pos_scale(&e->x, emit_index_dim(&e->x, g->at, k), stride), -low);
      padded = true;
      known = known && emit_fold_inside(e, p, span, n, inside);
    }
  }
  *inside = known ? *inside : NULL;
  return padded;
}

/* Windows inside of the operand, nearly all of them, go without looking at every place. */
static void run_windows(emit_fold *f, windows *g, LLVMValueRef *out) {
  LLVMValueRef inside;
  if (!has_padding(f->e, g, &inside) || !inside) {
    emit_fold_run(f, out);
    return;
  }
  windows clear = *g;
  emit_fold fast = *f;
  clear.inside = true;
  fast.data = &clear;
  f->compact = true;
  emit_fold_either(inside, &fast, f, out);
}

static void window_step(const emit_fold *f, const emit_index *r, LLVMValueRef *acc) {
  const windows *g = f->data;
  emit_element *e = f->e;
  dtype t = hlo_type(g->i->operands[0]);
  uint32_t checked;
  emit_index *x = window_index(e, g, r, &checked);
  emit_pair v = checked ? emit_guarded(e, g->i->operands[0], x, checked, NULL, emit_splat_pair(e, g->outside))
                        : emit_value(e, g->i->operands[0], x);
  emit_pair s = {acc[0], f->n == 2 ? acc[1] : NULL};
  s = emit_reduce_combine(e->w, (hlo_reducer)hlo_int(g->i, HLO_ATTR_REDUCER), t, s, emit_widen_pair(e, t, v));
  acc[0] = s.v;
  if (f->n == 2) {
    acc[1] = s.im;
  }
}

static void window_combine(const emit_fold *f, LLVMValueRef *acc, const LLVMValueRef *other) {
  const windows *g = f->data;
  emit_pair x = {acc[0], f->n == 2 ? acc[1] : NULL}, y = {other[0], f->n == 2 ? other[1] : NULL};
  x = emit_reduce_combine(f->e->w, (hlo_reducer)hlo_int(g->i, HLO_ATTR_REDUCER), hlo_type(g->i->operands[0]),
                          x, y);
  acc[0] = x.v;
  if (f->n == 2) {
    acc[1] = x.im;
  }
}

static void window_space(emit_fold *f, windows *g) {
  for (int k = 0; k < operand(g->i, 0)->rank; k++) {
    int64_t size = hlo_ints(g->i, HLO_ATTR_WINDOW)[k];
    g->loop_of[k] = size > 1 ? f->rank : -1;
    if (size > 1) {
      f->dims[f->rank++] = size;
    }
  }
}

emit_pair emit_reduce_window(emit_element *e, const hlo_instr *i, const emit_index *at) {
  dtype t = hlo_type(i->operands[0]);
  windows g = {.i = i, .at = at};
  emit_fold f = {.e = e, .data = &g, .step = window_step, .combine = window_combine};
  window_space(&f, &g);
  emit_pair id = emit_reduce_identity(e->w, (hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER), t);
  g.outside = id;
  if (emit_is_small_float(t)) {
    LLVMBool loses;
    g.outside.v = emit_number_f(e->w, t, LLVMConstRealGetDouble(id.v, &loses));
  }
  f.n = id.im ? 2 : 1;
  f.init[0] = id.v;
  f.init[1] = id.im;
  LLVMValueRef out[2];
  run_windows(&f, &g, out);
  return (emit_pair){emit_narrow(e->w, t, out[0]), id.im ? out[1] : NULL};
}

static void arg_window_step(const emit_fold *f, const emit_index *r, LLVMValueRef *acc) {
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
      at = emit_select(w, emit_icmp(w, LLVMIntULT, p, emit_i(p, x->dims[k])), at, emit_i(at, -1));
    }
  }
  emit_pair outside = emit_splat_pair(e, g->outside);
  LLVMValueRef v = emit_widen(w, t, emit_guarded(e, g->i->operands[0], x, checked, NULL, outside).v);
  emit_arg_take(f, t, true, false, acc, v, at);
}

static void arg_window_combine(const emit_fold *f, LLVMValueRef *acc, const LLVMValueRef *other) {
  const windows *g = f->data;
  emit_arg_take(f, hlo_type(g->i->operands[0]), true, false, acc, other[0], other[1]);
}

emit_pair emit_arg_reduce_window(emit_element *e, const hlo_instr *i, const emit_index *at) {
  dtype t = hlo_type(i->operands[0]);
  windows g = {.i = i, .at = at, .outside = {LLVMConstNull(emit_register_type(e->w, t)), NULL}};
  emit_fold f = {.e = e, .data = &g, .step = arg_window_step, .combine = arg_window_combine};
  window_space(&f, &g);
  emit_arg_init(&f, t);
  LLVMValueRef out[2];
  run_windows(&f, &g, out);
  return emit_arg_result(&f, out[1]);
}
