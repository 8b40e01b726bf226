/* concatenate.c - concatenations: from which operand an element comes.
 *
 * In a loop that is split at the borders between operands (emit_split_points_of), the operand is known when the code is
 * written.  Otherwise there is a branch for each operand or, if there are more than two and all are loaded from memory,
 * a table of them (emit_concat_unit). */
#include "base/arith.h"
#include "emit/element/element.h"
#include "emit/llvm/arithmetic.h"
#include "emit/llvm/function.h"

static const shape *operand(const hlo_instr *i, uint32_t k) { return hlo_shape(i->operands[k]); }

typedef struct concat {
  emit_element *e;
  const hlo_instr *i;
  const emit_index *at;
  int d;
  emit_pos p; /* the position along dimension d */
  bool sizes; /* whether an operand's extent along d is not a constant, so that the operand may be empty */
} concat;

/* Returns where the next operand starts along dimension c->d of the result, if an operand with n elements along that
 * dimension starts at `start`. */
static dim next_start(const concat *c, dim start, dim n) {
  return dim_is_const(start) && dim_is_const(n) ? start + n : dim_add(c->e->x.sizes->table, start, n);
}

static emit_index *part_index(const concat *c, uint32_t k, dim start) {
  emit_index *x = emit_operand_index(c->e, c->i, k);
  for (int j = 0; j < x->rank; j++) {
    if (j == c->d) {
      emit_axis_at(x, j, emit_pos_subtract_size(&c->e->x, c->p, start));
    } else {
      emit_axis_from(x, j, c->at, j);
    }
  }
  return x;
}

/* Returns true if no lane is at a position in [start, start + n), which is known for constant positions. */
static bool no_lane_in(const concat *c, int64_t start, int64_t n) {
  const emit_spread *s = c->p.step == EMIT_SCATTERED ? c->p.spread : NULL;
  bool none = s && LLVMIsAConstantInt(s->first);
  for (int k = 0; none && k < c->e->x.lanes; k++) {
    int64_t at = LLVMConstIntGetSExtValue(s->first) + s->offsets[k];
    none = at < start || at >= start + n;
  }
  return none;
}

/* Computes every operand at a position that is clamped to its range; each lane then selects the operand to which it
 * belongs. */
static emit_pair concat_lanes(const concat *c) {
  emit_pair r = {NULL, NULL};
  int64_t start = 0;
  for (uint32_t k = 0; k < c->i->n_operands; k++) {
    int64_t n = operand(c->i, k)->dims[c->d];
    if (n == 0 || no_lane_in(c, start, n)) {
      start += n;
      continue;
    }
    emit_index *x = part_index(c, k, start);
    LLVMValueRef own = emit_pos_vector(&c->e->x, x->axes[c->d].pos);
    x->axes[c->d].pos = emit_pos_clamp(&c->e->x, x->axes[c->d].pos, n);
    emit_pair v = emit_value(c->e, c->i->operands[k], x);
    LLVMValueRef later = emit_icmp(c->e->w, LLVMIntSGE, own, emit_i(own, 0));
    r = r.v ? emit_select_pair(c->e, later, v, r) : v;
    start += n;
  }
  return r;
}

static emit_pair one_lane(emit_element *e, const void *data, const emit_index *at, LLVMValueRef lane) {
  (void)lane;
  return emit_concatenate(e, data, at);
}

/* Computes one lane after the other, each from the operand to which it belongs.  This is for operands that may be
 * empty, since concat_lanes loads an element of every operand. */
static emit_pair one_by_one(const concat *c) {
  return emit_each_lane(c->e, (dtype)c->i->shapes[0].type, c->at, one_lane, c->i);
}

typedef struct arm {
  emit_pair v;
  LLVMBasicBlockRef from;
} arm;

static emit_pair join_arms(const concat *c, const arm *arms, uint32_t n) {
  emit_pair r = {LLVMBuildPhi(c->e->w->builder, LLVMTypeOf(arms[0].v.v), ""), NULL};
  if (arms[0].v.im) {
    r.im = LLVMBuildPhi(c->e->w->builder, LLVMTypeOf(arms[0].v.im), "");
  }
  for (uint32_t k = 0; k < n; k++) {
    LLVMAddIncoming(r.v, (LLVMValueRef *)&arms[k].v.v, (LLVMBasicBlockRef *)&arms[k].from, 1);
    if (r.im) {
      LLVMAddIncoming(r.im, (LLVMValueRef *)&arms[k].v.im, (LLVMBasicBlockRef *)&arms[k].from, 1);
    }
  }
  return r;
}

/* Returns an i1 that says whether the positions of all lanes (c->p) are in [start, start + n). */
static LLVMValueRef all_inside(const concat *c, dim start, dim n) {
  emit_pos own = emit_pos_subtract_size(&c->e->x, c->p, start);
  LLVMValueRef size = emit_size(&c->e->x, n), first = emit_icmp(c->e->w, LLVMIntULT, own.base, size);
  if (own.step == 0) {
    return first;
  }
  LLVMValueRef last = emit_pos_last(&c->e->x, own);
  return LLVMBuildAnd(c->e->w->builder, first, emit_icmp(c->e->w, LLVMIntULT, last, size), "");
}

/* Writes one branch for each operand, and one for vectors whose lanes belong to several operands. */
static emit_pair concat_branches(const concat *c) {
  emit_element *e = c->e;
  const emit_ir *w = e->w;
  LLVMBasicBlockRef done = emit_block(w, "joined");
  arm *arms = ARENA_NEW_N(w->arena, arm, c->i->n_operands + 1);
  uint32_t n_arms = 0, left = 0;
  for (uint32_t k = 0; k < c->i->n_operands; k++) {
    left += operand(c->i, k)->dims[c->d] != 0;
  }
  dim start = 0;
  bool mixed = c->p.step != 0 && left > 1;
  for (uint32_t k = 0; k < c->i->n_operands; k++) {
    dim n = operand(c->i, k)->dims[c->d];
    if (n == 0) {
      continue;
    }
    left--;
    LLVMBasicBlockRef next = NULL;
    if (left || mixed) {
      LLVMBasicBlockRef mine = emit_block(w, "part");
      next = emit_block(w, "next");
      LLVMBuildCondBr(w->builder, all_inside(c, start, n), mine, next);
      LLVMPositionBuilderAtEnd(w->builder, mine);
    }
    uint32_t mark = emit_table_mark(e->x.table);
    arms[n_arms].v = emit_value(e, c->i->operands[k], part_index(c, k, start));
    emit_table_release(e->x.table, mark);
    arms[n_arms++].from = emit_here(w);
    LLVMBuildBr(w->builder, done);
    if (next) {
      LLVMPositionBuilderAtEnd(w->builder, next);
    }
    start = next_start(c, start, n);
  }
  if (mixed) {
    uint32_t mark = emit_table_mark(e->x.table);
    e->slow++;
    arms[n_arms].v = c->sizes ? one_by_one(c) : concat_lanes(c);
    e->slow--;
    emit_table_release(e->x.table, mark);
    arms[n_arms++].from = emit_here(w);
    LLVMBuildBr(w->builder, done);
  }
  LLVMPositionBuilderAtEnd(w->builder, done);
  return join_arms(c, arms, n_arms);
}

/* --- many operands, in a table --- */

/* Along the concatenated dimension, the result is divided into units of emit_concat_unit elements, each of which comes
 * from one operand.  For each unit, the table has the number of the operand's buffer, the position at which the operand
 * begins, and its extent. */
enum { TABLE_BUFFER, TABLE_START, TABLE_EXTENT, TABLE_ENTRIES };

/* Returns true if operand k is loaded from a buffer that no result shares, and its extent along dimension d is a
 * constant. */
static bool fits_table(const emit_element *e, const hlo_instr *i, uint32_t k, int d) {
  const emit_input *in = emit_find_input(e, i->operands[k]);
  return in && !in->sizes && !in->shared && !hlo_literal(i->operands[k]) && dim_is_const(operand(i, k)->dims[d]);
}

int64_t emit_concat_unit(const emit_element *e, const hlo_instr *i) {
  enum { FEW = 2 }; /* up to this many operands have a branch each */
  int d = (int)hlo_int(i, HLO_ATTR_DIMENSION), rank = i->shapes[0].rank;
  int64_t unit = 0;
  if (i->n_operands <= FEW || e->w->target->execution == EMIT_BLOCKS ||
      emit_dims_product(&e->x, i->shapes[0].dims, d + 1, rank) != 1) {
    return 0;
  }
  for (uint32_t k = 0; k < i->n_operands; k++) {
    if (!fits_table(e, i, k, d)) {
      return 0;
    }
    unit = gcd_i64(unit, operand(i, k)->dims[d]);
  }
  return unit % e->wide == 0 ? unit : 0;
}

static LLVMValueRef table_of(const concat *c, int64_t unit) {
  const emit_ir *w = c->e->w;
  int64_t n = c->i->shapes[0].dims[c->d] / unit * TABLE_ENTRIES, start = 0;
  LLVMValueRef *entries = ARENA_NEW_N(w->arena, LLVMValueRef, (size_t)n), *next = entries;
  for (uint32_t k = 0; k < c->i->n_operands; k++) {
    int64_t extent = operand(c->i, k)->dims[c->d];
    for (int64_t at = 0; at < extent; at += unit, next += TABLE_ENTRIES) {
      next[TABLE_BUFFER] = emit_i64(w, emit_find_input(c->e, c->i->operands[k]) - c->e->inputs);
      next[TABLE_START] = emit_i64(w, start);
      next[TABLE_EXTENT] = emit_i64(w, extent);
    }
    start += extent;
  }
  return emit_constant_record(w, (int)n, entries);
}

/* Loads the elements from position p along dimension c->d on, which are all in one unit. `outer` is the position along
 * the dimensions before it. */
static emit_pair load_unit(const concat *c, LLVMValueRef table, int64_t unit, LLVMValueRef outer, emit_pos p) {
  const emit_ir *w = c->e->w;
  LLVMValueRef number = emit_pos_div(&c->e->x, emit_pos_at(p.base, p.multiple), unit).base;
  LLVMValueRef entry = emit_record_at(w, table, emit_times(w, number, TABLE_ENTRIES));
  LLVMValueRef buffer = emit_record_number(w, entry, TABLE_BUFFER);
  buffer = LLVMBuildInBoundsGEP2(w->builder, w->ptr, c->e->buffers, &buffer, 1, "");
  LLVMValueRef base = LLVMBuildLoad2(w->builder, w->ptr, buffer, "");
  LLVMValueRef own = emit_sub(w, p.base, emit_record_number(w, entry, TABLE_START));
  LLVMValueRef at = emit_add(w, emit_mul(w, outer, emit_record_number(w, entry, TABLE_EXTENT)), own);
  return emit_load(c->e, base, (dtype)c->i->shapes[0].type, emit_pos_lanes(at, p.step, 1), false, false);
}

/* Loads `lanes` lanes from position p on, `each` at a time. */
static emit_pair load_units(const concat *c, LLVMValueRef table, int64_t unit, LLVMValueRef outer, emit_pos p,
                            int lanes, int each) {
  emit_element *e = c->e;
  if (lanes == each) {
    e->x.lanes = each;
    return load_unit(c, table, unit, outer, p);
  }
  LLVMValueRef low = load_units(c, table, unit, outer, p, lanes / 2, each).v;
  LLVMValueRef high = load_units(c, table, unit, outer, emit_pos_add_const(&e->x, p, lanes / 2), lanes / 2, each).v;
  return (emit_pair){emit_append(e->w, low, high), NULL};
}

/* Sets *out to the elements, loaded through a table, and returns true.  Returns false if emit_concat_unit returns 0, if
 * the elements are complex, or if the lanes cannot be divided into equal parts, each of which has neighbouring elements
 * of one unit. */
static bool from_table(const concat *c, emit_pair *out) {
  emit_element *e = c->e;
  int64_t unit = emit_concat_unit(e, c->i);
  int lanes = e->x.lanes, each = lanes;
  if (!unit || dtype_is_complex((dtype)c->i->shapes[0].type) || (lanes > 1 && c->p.step != 1)) {
    return false;
  }
  while (unit % each) {
    each /= 2;
  }
  emit_pos outer = emit_index_range(&e->x, c->at, 0, c->d); /* written only here, since it may take divisions */
  if (outer.step || c->p.multiple % each) {
    return false;
  }
  *out = load_units(c, table_of(c, unit), unit, outer.base, c->p, lanes, each);
  e->x.lanes = lanes;
  return true;
}

emit_pair emit_concatenate(emit_element *e, const hlo_instr *i, const emit_index *at) {
  concat c = {e, i, at, (int)hlo_int(i, HLO_ATTR_DIMENSION), {0}, false};
  c.p = emit_index_dim(&e->x, at, c.d);
  if (e->x.lanes == 1) {
    c.p.step = 0;
  }
  dim start = 0;
  for (uint32_t k = 0; k < i->n_operands; k++) { /* looks for an operand to which all lanes are known to belong */
    dim n = operand(i, k)->dims[c.d], end = next_start(&c, start, n);
    if (dim_is_const(start) && dim_is_const(end) && emit_pos_inside(c.p, start, end)) {
      return emit_value(e, i->operands[k], part_index(&c, k, start));
    }
    start = end;
    c.sizes |= !dim_is_const(n);
  }
  emit_pair r;
  if (from_table(&c, &r)) {
    return r;
  }
  uint32_t mark = emit_table_mark(e->x.table);
  bool scattered = c.p.step == EMIT_SCATTERED || (c.p.step != 0 && e->slow);
  r = !scattered ? concat_branches(&c) : c.sizes ? one_by_one(&c) : concat_lanes(&c);
  if (!scattered) {
    emit_table_release(e->x.table, mark); /* values that were computed in a branch do not dominate the code after it */
  }
  return r;
}
