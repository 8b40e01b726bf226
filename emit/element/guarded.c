/* guarded.c - values at positions that may be out of range (emit_guarded). */
#include <assert.h>

#include "emit/element/element.h"
#include "emit/math/math.h"
#include "hlo/analysis/queries.h"

static LLVMValueRef both(const emit_element *e, LLVMValueRef x, LLVMValueRef y) {
  return !x ? y : !y ? x : LLVMBuildAnd(e->w->builder, x, y, "");
}

static LLVMValueRef below(const emit_element *e, LLVMValueRef x, int64_t n) {
  return emit_icmp(e->w, LLVMIntULT, x, emit_i(x, n));
}

/* Returns lane number `lane` of v, which is a vector or a scalar. */
static LLVMValueRef lane_of(const emit_ir *w, LLVMValueRef v, LLVMValueRef lane) {
  return v && emit_lanes(v) ? LLVMBuildExtractElement(w->builder, v, lane, "") : v;
}

static emit_pos lane_position(const emit_ir *w, emit_pos p, LLVMValueRef lane) {
  if (p.step == EMIT_SCATTERED) {
    return emit_pos_at(LLVMBuildSExt(w->builder, lane_of(w, p.base, lane), w->i64, ""), 1);
  }
  LLVMValueRef distance = LLVMBuildNSWMul(w->builder, lane, emit_i64(w, p.step), "");
  return emit_pos_at(p.step ? LLVMBuildNSWAdd(w->builder, p.base, distance, "") : p.base, 1);
}

/* Returns the position along dimension k, which may be out of range. emit_index_dim cannot be used in all cases, since
 * it returns 0 along a dimension of extent 1. */
static emit_pos unclamped_position(const emit_element *e, const emit_index *at, int k) {
  const emit_axis *a = &at->axes[k];
  return at->reshaped || a->from ? emit_index_dim(&e->x, at, k) : a->pos;
}

emit_pair emit_each_lane(emit_element *e, dtype t, const emit_index *at, emit_lane_fn *body, const void *data) {
  const emit_ir *w = e->w;
  int lanes = e->x.lanes, n = dtype_is_complex(t) ? 2 : 1;
  emit_pos *places = ARENA_NEW_N(w->arena, emit_pos, SHAPE_MAX_RANK);
  for (int k = 0; k < at->rank; k++) {
    places[k] = unclamped_position(e, at, k);
  }
  LLVMValueRef none = LLVMGetPoison(emit_vector_type(emit_register_type(w, t), lanes)), init[2] = {none, none}, next[2];
  emit_loop l;
  emit_loop_begin(w, &l, emit_i64(w, 0), emit_i64(w, lanes), 1, true, n, init);
  uint32_t mark = emit_table_mark(e->x.table);
  emit_index *own = emit_index_new(&e->x, at->rank, at->dims);
  for (int k = 0; k < at->rank; k++) {
    emit_axis_at(own, k, lane_position(w, places[k], l.iv));
  }
  e->x.lanes = 1;
  e->slow++;
  emit_pair v = body(e, data, own, l.iv);
  e->slow--;
  e->x.lanes = lanes;
  emit_table_release(e->x.table, mark);
  next[0] = LLVMBuildInsertElement(w->builder, l.carried[0], v.v, l.iv, "");
  next[1] = n == 2 ? LLVMBuildInsertElement(w->builder, l.carried[1], v.im, l.iv, "") : NULL;
  emit_loop_end(w, &l, next);
  return (emit_pair){l.carried[0], n == 2 ? l.carried[1] : NULL};
}

typedef struct guard {
  emit_element *e;
  hlo_value v;
  const emit_index *i;
  uint32_t checked;
  LLVMValueRef mask;
  emit_pair otherwise;
} guard;

/* Returns the value of g->v at positions that are clamped into range.  Lanes that are out of range along a dimension in
 * which lanes have different positions get g->otherwise; for the other dimensions, emit_guarded selects it for all
 * lanes at once.  If clamp_lanes is false, lanes are known to be in range along the dimensions in which they differ. */
static emit_pair guarded_lanes(const guard *g, bool clamp_lanes) {
  emit_element *e = g->e;
  emit_index *safe = emit_index_new(&e->x, g->i->rank, g->i->dims);
  LLVMValueRef mask = clamp_lanes ? g->mask : NULL;
  for (int k = 0; k < safe->rank; k++) {
    safe->axes[k] = g->i->axes[k];
    emit_pos p = g->i->axes[k].pos;
    if (!(g->checked >> k & 1)) {
      continue;
    }
    if (p.step == 0) {
      safe->axes[k].pos = emit_pos_clamp(&e->x, p, safe->dims[k]);
    } else if (clamp_lanes) {
      mask = both(e, mask, below(e, emit_pos_vector(&e->x, p), safe->dims[k]));
      safe->axes[k].pos = emit_pos_clamp(&e->x, p, safe->dims[k]);
    }
  }
  emit_pair v = emit_value(e, g->v, safe);
  return mask ? emit_select_pair(e, mask, v, g->otherwise) : v;
}

static emit_pair join(const emit_element *e, emit_pair x, LLVMBasicBlockRef from_x, emit_pair y,
                      LLVMBasicBlockRef from_y) {
  LLVMBasicBlockRef from[2] = {from_x, from_y};
  emit_pair r = {LLVMBuildPhi(e->w->builder, LLVMTypeOf(x.v), ""), NULL};
  LLVMAddIncoming(r.v, (LLVMValueRef[]){x.v, y.v}, from, 2);
  if (x.im) {
    r.im = LLVMBuildPhi(e->w->builder, LLVMTypeOf(x.im), "");
    LLVMAddIncoming(r.im, (LLVMValueRef[]){x.im, y.im}, from, 2);
  }
  return r;
}

/* Writes two branches.  The first runs if all lanes are in range, which is nearly always so; it clamps no lanes, so
 * that its loads can be contiguous.  The second runs otherwise. */
static emit_pair guarded_branch(const guard *g, LLVMValueRef all_in_range) {
  emit_element *e = g->e;
  const emit_ir *w = e->w;
  LLVMBasicBlockRef fast = emit_block(w, "inside"), slow = emit_block(w, "edge"), done = emit_block(w, "guarded");
  LLVMBuildCondBr(w->builder, all_in_range, fast, slow);
  emit_pair v[2];
  LLVMBasicBlockRef from[2], at[2] = {fast, slow};
  for (int k = 0; k < 2; k++) {
    uint32_t mark = emit_table_mark(e->x.table);
    LLVMPositionBuilderAtEnd(w->builder, at[k]);
    e->slow += k;
    v[k] = guarded_lanes(g, k == 1);
    e->slow -= k;
    emit_table_release(e->x.table, mark);
    from[k] = emit_here(w);
    LLVMBuildBr(w->builder, done);
  }
  LLVMPositionBuilderAtEnd(w->builder, done);
  return join(e, v[0], from[0], v[1], from[1]);
}

/* Returns the value of g->v by a masked load, or {NULL, NULL} if that is not possible.  It is possible for types with
 * masked loads (emit_masks_loads) if g->v is an input, if g->mask is NULL, and if the lanes differ along only one
 * checked dimension, the innermost one, and are one to four elements apart. */
static emit_pair guarded_masked(const guard *g) {
  emit_element *e = g->e;
  const emit_input *in = emit_find_input(e, g->v);
  int d = -1, n = 0;
  emit_index *safe = emit_index_new(&e->x, g->i->rank, g->i->dims);
  for (int k = 0; k < safe->rank; k++) {
    safe->axes[k] = g->i->axes[k];
    if (g->checked >> k & 1 && g->i->axes[k].pos.step == 0) {
      safe->axes[k].pos = emit_pos_clamp(&e->x, g->i->axes[k].pos, safe->dims[k]);
    } else if (g->checked >> k & 1) {
      d = k;
      n++;
    }
  }
  emit_pair none = {NULL, NULL};
  if (!in || n != 1 || g->mask || !emit_masks_loads(e, hlo_type(g->v)) || hlo_literal(g->v)) {
    return none;
  }
  emit_pos along = safe->axes[d].pos, at = emit_index_linear(&e->x, safe);
  if (along.step < 1 || along.step > 4 || at.step != along.step) {
    return none;
  }
  emit_pair r = emit_load_masked(e, in->base, hlo_type(g->v), at, along, safe->dims[d], in->shared);
  return emit_select_pair(e, below(e, emit_pos_vector(&e->x, along), safe->dims[d]), r, g->otherwise);
}

/* --- guarded values of arrays that may be empty --- */

/* Returns an i1 that is true if all lanes are in range along the dimensions in g->checked, and g->mask is true.
 * Returns NULL if nothing is to be checked, or if this would need a condition for each lane. */
static LLVMValueRef all_in_range(const guard *g) {
  emit_element *e = g->e;
  LLVMValueRef all = g->mask;
  bool scalars = e->x.lanes == 1;
  if (all && emit_lanes(all)) {
    return NULL;
  }
  for (int k = 0; k < g->i->rank; k++) {
    emit_pos p = g->i->axes[k].pos;
    if (!(g->checked >> k & 1)) {
      continue;
    }
    if (!scalars && p.step == EMIT_SCATTERED) {
      return NULL;
    }
    LLVMValueRef n = emit_size(&e->x, g->i->dims[k]);
    all = both(e, all, emit_icmp(e->w, LLVMIntULT, p.base, n));
    all = scalars || p.step == 0 ? all : both(e, all, emit_icmp(e->w, LLVMIntULT, emit_pos_last(&e->x, p), n));
  }
  return all;
}

/* Returns true if lanes may differ in whether they are in range. */
static bool lanes_differ(const guard *g) {
  bool differ = g->mask && emit_lanes(g->mask);
  for (int k = 0; k < g->i->rank; k++) {
    differ |= (g->checked >> k & 1) && g->i->axes[k].pos.step != 0;
  }
  return differ && g->e->x.lanes > 1;
}

static emit_pair guarded_sizes(const guard *g);

static emit_pair guarded_lane(emit_element *e, const void *data, const emit_index *at, LLVMValueRef lane) {
  const guard *all = data;
  guard one = *all;
  one.i = at;
  one.mask = lane_of(e->w, all->mask, lane);
  one.otherwise = (emit_pair){lane_of(e->w, all->otherwise.v, lane), lane_of(e->w, all->otherwise.im, lane)};
  return guarded_sizes(&one);
}

/* Returns the value of g->v, and g->otherwise in the lanes that are out of range.  Such lanes load nothing, since the
 * array may be empty. */
static emit_pair guarded_sizes(const guard *g) {
  emit_element *e = g->e;
  const emit_ir *w = e->w;
  bool differ = lanes_differ(g);
  LLVMValueRef inside = all_in_range(g);
  dtype t = hlo_type(g->v);
  if (!inside || (differ && e->slow)) {
    return differ ? emit_each_lane(e, t, g->i, guarded_lane, g) : emit_value(e, g->v, g->i);
  }
  LLVMBasicBlockRef fast = emit_block(w, "inside"), slow = emit_block(w, "edge"), done = emit_block(w, "guarded");
  LLVMBuildCondBr(w->builder, inside, fast, slow);
  emit_pair v[2];
  LLVMBasicBlockRef from[2], at[2] = {fast, slow};
  for (int k = 0; k < 2; k++) {
    uint32_t mark = emit_table_mark(e->x.table);
    LLVMPositionBuilderAtEnd(w->builder, at[k]);
    v[k] = k == 0 ? emit_value(e, g->v, g->i) : differ ? emit_each_lane(e, t, g->i, guarded_lane, g) : g->otherwise;
    emit_table_release(e->x.table, mark);
    from[k] = emit_here(w);
    LLVMBuildBr(w->builder, done);
  }
  LLVMPositionBuilderAtEnd(w->builder, done);
  return join(e, v[0], from[0], v[1], from[1]);
}

static bool checks_sizes(const emit_index *i, uint32_t checked) {
  for (int k = 0; k < i->rank; k++) {
    if (checked >> k & 1 && !dim_is_const(i->dims[k])) {
      return true;
    }
  }
  return false;
}

emit_pair emit_guarded(emit_element *e, hlo_value v, emit_index *i, uint32_t checked, LLVMValueRef mask,
                       emit_pair otherwise) {
  guard g = {e, v, i, checked, mask, otherwise};
  if (checks_sizes(i, checked)) {
    return guarded_sizes(&g);
  }
  LLVMValueRef uniform = NULL, fast = NULL;
  bool varying = false, affine = !mask && e->slow == 0;
  for (int k = 0; k < i->rank; k++) {
    if (i->dims[k] == 0) {
      return otherwise;
    }
    emit_pos p = i->axes[k].pos;
    if (!(checked >> k & 1)) {
      continue;
    }
    if (e->x.lanes == 1) {
      p.step = 0; /* a scalar has no other lanes that could be out of range */
      i->axes[k].pos.step = 0;
    }
    if (emit_pos_outside(p, 0, i->dims[k])) {
      return otherwise;
    }
    if (emit_pos_inside(p, 0, i->dims[k])) {
      g.checked &= ~((uint32_t)1 << k);
      continue;
    }
    if (p.step == 0) {
      uniform = both(e, uniform, below(e, p.base, i->dims[k]));
      continue;
    }
    varying = true;
    affine = affine && p.step != EMIT_SCATTERED;
    if (affine) {
      fast = both(e, fast, both(e, below(e, p.base, i->dims[k]), below(e, emit_pos_last(&e->x, p), i->dims[k])));
    }
  }
  emit_pair r = varying ? guarded_masked(&g) : (emit_pair){NULL, NULL};
  if (!r.v) {
    r = varying && affine ? guarded_branch(&g, fast) : guarded_lanes(&g, true);
  }
  return uniform ? emit_select_pair(e, uniform, r, otherwise) : r;
}
