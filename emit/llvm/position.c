/* position.c - positions along a dimension; see position.h. */
#include "emit/llvm/position.h"

#include "base/arith.h"

/* --- arithmetic that is written once --- */

/* Returns the quotient or remainder (`op`) of `a` by b, in the type of `a`.  The division itself is in the type of b,
 * which may be narrower if `a` fits in it. */
static LLVMValueRef divide(const emit_ir *w, LLVMOpcode op, LLVMValueRef a, LLVMValueRef b) {
  LLVMTypeRef wide = LLVMTypeOf(a), t = LLVMTypeOf(b);
  if (t == wide) {
    return emit_opaque(w, LLVMBuildBinOp(w->builder, op, a, b, ""));
  }
  LLVMValueRef r = LLVMBuildBinOp(w->builder, op, LLVMBuildTrunc(w->builder, a, t, ""), b, "");
  return emit_opaque(w, LLVMBuildZExt(w->builder, r, wide, ""));
}

static LLVMValueRef build(const emit_indexer *x, LLVMOpcode op, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef l = x->w->builder;
  switch (op) {
    case LLVMAdd: return LLVMBuildNSWAdd(l, a, b, "");
    case LLVMMul: return LLVMBuildNSWMul(l, a, b, "");
    default: return divide(x->w, op, a, b);
  }
}

static bool is_const(LLVMValueRef v, int64_t c) { return LLVMIsAConstantInt(v) && LLVMConstIntGetSExtValue(v) == c; }

static LLVMValueRef once(const emit_indexer *x, LLVMOpcode op, LLVMValueRef a, LLVMValueRef b) {
  if (op == LLVMAdd && is_const(b, 0)) {
    return a;
  }
  if (op == LLVMAdd && is_const(a, 0)) {
    return b;
  }
  if ((op == LLVMMul || op == LLVMUDiv) && is_const(b, 1)) {
    return a;
  }
  uintptr_t key[5] = {1, (uintptr_t)op, (uintptr_t)a, (uintptr_t)b, 0};
  const emit_pair *found = emit_table_find(x->table, key);
  if (found) {
    return found->v;
  }
  LLVMValueRef v = build(x, op, a, b);
  emit_table_put(x->table, key, (emit_pair){v, NULL});
  return v;
}

/* --- positions --- */

emit_pos emit_pos_const(const emit_indexer *x, int64_t c) {
  return (emit_pos){.base = emit_i64(x->w, c), .multiple = c < 0 ? -c : c, .least = c, .past = c + 1};
}
emit_pos emit_pos_at(LLVMValueRef base, int64_t multiple) { return emit_pos_lanes(base, 0, multiple); }

static LLVMTypeRef lane_type(const emit_indexer *x) { return x->narrow ? x->w->i32 : x->w->i64; }

emit_pos emit_pos_scattered(const emit_indexer *x, LLVMValueRef v) {
  LLVMTypeRef t = emit_type_like(v, x->lanes == 1 ? x->w->i64 : lane_type(x));
  v = LLVMBuildIntCast2(x->w->builder, v, t, true, "");
  return x->lanes == 1 ? emit_pos_at(v, 1) : emit_pos_lanes(v, EMIT_SCATTERED, 1);
}

static LLVMValueRef lane_constants(const emit_indexer *x, const int64_t *lanes) {
  LLVMValueRef constants[EMIT_MOST_LANES];
  for (int k = 0; k < x->lanes; k++) {
    constants[k] = LLVMConstInt(lane_type(x), (unsigned long long)lanes[k], true);
  }
  return LLVMConstVector(constants, (unsigned)x->lanes);
}

LLVMValueRef emit_pos_vector(const emit_indexer *x, emit_pos a) {
  if (x->lanes == 1 || a.step == EMIT_SCATTERED) {
    return a.base;
  }
  uintptr_t key[5] = {2, (uintptr_t)a.base, (uintptr_t)a.step, (uintptr_t)x->lanes, 0};
  const emit_pair *found = emit_table_find(x->table, key);
  if (found) {
    return found->v;
  }
  int64_t offsets[EMIT_MOST_LANES];
  for (int k = 0; k < x->lanes; k++) {
    offsets[k] = k * a.step;
  }
  LLVMValueRef base = LLVMBuildIntCast2(x->w->builder, a.base, lane_type(x), true, "");
  LLVMValueRef v = LLVMBuildAdd(x->w->builder, emit_splat(x->w, base, x->lanes), lane_constants(x, offsets), "");
  emit_table_put(x->table, key, (emit_pair){v, NULL});
  return v;
}

LLVMValueRef emit_pos_last(const emit_indexer *x, emit_pos a) {
  return once(x, LLVMAdd, a.base, emit_i64(x->w, a.step * (x->lanes - 1)));
}

static emit_pos scattered(LLVMValueRef v) { return emit_pos_lanes(v, EMIT_SCATTERED, 1); }

/* --- positions at constant distances --- */

static emit_spread *new_spread(const emit_indexer *x, LLVMValueRef first, int64_t multiple) {
  emit_spread *s = arena_alloc(x->w->arena, sizeof *s + (size_t)x->lanes * sizeof *s->offsets);
  s->first = first;
  s->multiple = multiple;
  return s;
}

const emit_spread *emit_pos_spread(const emit_indexer *x, emit_pos a) {
  if (a.step == EMIT_SCATTERED) {
    return a.spread;
  }
  emit_spread *s = new_spread(x, a.base, a.multiple);
  for (int k = 0; k < x->lanes; k++) {
    s->offsets[k] = k * a.step;
  }
  return s;
}

/* Returns the positions of s, which are affine if the distances are even. */
static emit_pos spread_position(const emit_indexer *x, const emit_spread *s) {
  const int64_t *offsets = s->offsets, step = x->lanes > 1 ? offsets[1] - offsets[0] : 0;
  bool even = true;
  for (int k = 1; k < x->lanes; k++) {
    even &= offsets[k] - offsets[k - 1] == step;
  }
  if (even) {
    LLVMValueRef base = once(x, LLVMAdd, s->first, emit_i64(x->w, offsets[0]));
    return emit_pos_lanes(base, step, gcd_i64(s->multiple, offsets[0] < 0 ? -offsets[0] : offsets[0]));
  }
  LLVMValueRef first = emit_pos_vector(x, emit_pos_at(s->first, s->multiple));
  emit_pos r = scattered(once(x, LLVMAdd, first, lane_constants(x, offsets)));
  r.spread = s;
  return r;
}

/* Returns a + b, at least one of which is scattered. */
static emit_pos add_scattered(const emit_indexer *x, emit_pos a, emit_pos b) {
  const emit_spread *s = emit_pos_spread(x, a), *t = s ? emit_pos_spread(x, b) : NULL;
  if (!t) {
    return scattered(once(x, LLVMAdd, emit_pos_vector(x, a), emit_pos_vector(x, b)));
  }
  emit_spread *r = new_spread(x, once(x, LLVMAdd, s->first, t->first), gcd_i64(s->multiple, t->multiple));
  for (int k = 0; k < x->lanes; k++) {
    r->offsets[k] = s->offsets[k] + t->offsets[k];
  }
  return spread_position(x, r);
}

/* Returns |a * c|, a divisor of the product of c and a multiple of `a`. */
static int64_t scaled_multiple(int64_t a, int64_t c) {
  int64_t product;
  if (__builtin_mul_overflow(a, c, &product)) {
    product = a;
  }
  return product < 0 ? -product : product;
}

/* Returns a * c, where `a` is scattered. */
static emit_pos scale_scattered(const emit_indexer *x, emit_pos a, int64_t c) {
  const emit_spread *s = a.spread;
  emit_spread *r = s ? new_spread(x, NULL, scaled_multiple(s->multiple, c)) : NULL;
  bool known = s != NULL;
  for (int k = 0; known && k < x->lanes; k++) {
    known = !__builtin_mul_overflow(s->offsets[k], c, &r->offsets[k]);
  }
  if (!known) {
    return scattered(once(x, LLVMMul, a.base, emit_i(a.base, c)));
  }
  r->first = once(x, LLVMMul, s->first, emit_i64(x->w, c));
  return spread_position(x, r);
}

/* Returns the distances of a's lanes if those of their quotients and remainders by c are known as well, otherwise NULL.
 * They are known if s->first is a multiple of c, or if all lanes have the same quotient, since s->first is a multiple
 * of s->multiple and the lanes are near enough to it. */
static const emit_spread *divided_spread(const emit_indexer *x, emit_pos a, int64_t c) {
  const emit_spread *s = emit_pos_spread(x, a);
  if (!s || s->multiple % c == 0) {
    return s;
  }
  int64_t room = gcd_i64(s->multiple, c);
  for (int k = 0; k < x->lanes; k++) {
    if (s->offsets[k] < 0 || s->offsets[k] >= room) {
      return NULL;
    }
  }
  return s;
}

emit_pos emit_pos_add(const emit_indexer *x, emit_pos a, emit_pos b) {
  bool affine = a.step != EMIT_SCATTERED && b.step != EMIT_SCATTERED;
  emit_pos sum =
      affine ? emit_pos_lanes(once(x, LLVMAdd, a.base, b.base), a.step + b.step, gcd_i64(a.multiple, b.multiple))
             : add_scattered(x, a, b);
  bool known = a.least < a.past && b.least < b.past;
  if (!known || __builtin_add_overflow(a.least, b.least, &sum.least) ||
      __builtin_add_overflow(a.past, b.past - 1, &sum.past)) {
    sum.least = sum.past = 0;
  }
  return sum;
}

emit_pos emit_pos_add_const(const emit_indexer *x, emit_pos a, int64_t c) {
  return emit_pos_add(x, a, emit_pos_const(x, c));
}

emit_pos emit_pos_scale(const emit_indexer *x, emit_pos a, int64_t c) {
  if (c == 1) {
    return a;
  }
  if (c == 0) {
    return emit_pos_const(x, 0);
  }
  emit_pos r = a.step == EMIT_SCATTERED ? scale_scattered(x, a, c)
                                        : emit_pos_lanes(once(x, LLVMMul, a.base, emit_i64(x->w, c)), a.step * c,
                                                         scaled_multiple(a.multiple, c));
  int64_t least, most;
  if (a.least < a.past && !__builtin_mul_overflow(c < 0 ? a.past - 1 : a.least, c, &least) &&
      !__builtin_mul_overflow(c < 0 ? a.least : a.past - 1, c, &most) && most < INT64_MAX) {
    r.least = least;
    r.past = most + 1;
  }
  return r;
}

emit_pos emit_pos_add_size(const emit_indexer *x, emit_pos a, dim d) {
  int64_t c;
  return dim_signed_value(x->sizes->table, d, &c) ? emit_pos_add_const(x, a, c)
                                                  : emit_pos_add(x, a, emit_pos_at(emit_size(x, d), 1));
}

emit_pos emit_pos_subtract_size(const emit_indexer *x, emit_pos a, dim d) {
  int64_t c;
  if (dim_signed_value(x->sizes->table, d, &c)) {
    return emit_pos_add_const(x, a, -c);
  }
  return emit_pos_add(x, a, emit_pos_scale(x, emit_pos_at(emit_size(x, d), 1), -1));
}

emit_pos emit_pos_scale_by_size(const emit_indexer *x, emit_pos a, dim d) {
  if (dim_is_const(d)) {
    return emit_pos_scale(x, a, d);
  }
  if (a.step == 0) {
    return emit_pos_at(once(x, LLVMMul, a.base, emit_size(x, d)), a.multiple);
  }
  LLVMValueRef v = emit_pos_vector(x, a);
  return x->lanes == 1 ? emit_pos_at(once(x, LLVMMul, v, emit_size(x, d)), 1)
                       : scattered(once(x, LLVMMul, v, emit_splat(x->w, emit_size(x, d), x->lanes)));
}

/* Returns true if all lanes are known to have the same quotient by c, since lane 0 is a multiple of a.multiple and the
 * other lanes are near enough to it. */
static bool one_bucket(const emit_indexer *x, emit_pos a, int64_t c) {
  return a.step > 0 && gcd_i64(a.multiple, c) > (x->lanes - 1) * a.step;
}

/* Returns true if all lanes are known to have the same constant quotient by c, and sets *bucket to it. */
static bool known_bucket(emit_pos a, int64_t c, int64_t *bucket) {
  *bucket = a.least / c;
  return a.least >= 0 && emit_pos_inside(a, *bucket * c, *bucket * c + c);
}

/* Returns c as a divisor of a.base: an i32 for blocks of threads if all lanes of `a` are known to fit in an i32,
 * otherwise an i64.  GPUs have no instruction for 64-bit division, and the multiplication that replaces a division by a
 * constant takes several times as many instructions in 64 bits as in 32. */
static LLVMValueRef constant_divisor(const emit_indexer *x, emit_pos a, int64_t c) {
  bool narrow = x->w->target->execution == EMIT_BLOCKS && emit_pos_inside(a, 0, INT32_MAX) && c < INT32_MAX;
  return narrow ? LLVMConstInt(x->w->i32, (unsigned long long)c, true) : emit_i64(x->w, c);
}

/* Returns r, a quotient or a remainder of `a`, with the range [least, past) if the lanes of `a` are known not to be
 * negative; otherwise without a range. */
static emit_pos in_range(emit_pos r, emit_pos a, int64_t least, int64_t past) {
  if (emit_pos_inside(a, 0, INT64_MAX)) {
    r.least = least;
    r.past = past;
  }
  return r;
}

/* Returns the size d as a divisor: an i64 that is at least 1.  If d is 0 when the kernel runs, the quotient is not
 * used, but the division must not trap. */
static LLVMValueRef divisor(const emit_indexer *x, dim d) {
  LLVMValueRef n = emit_size(x, d);
  uintptr_t key[5] = {4, (uintptr_t)n, 0, 0, 0};
  const emit_pair *found = emit_table_find(x->table, key);
  LLVMValueRef v = found ? found->v : emit_intrinsic2(x->w, "llvm.smax", n, emit_i64(x->w, 1));
  if (!found) {
    emit_table_put(x->table, key, (emit_pair){v, NULL});
  }
  return v;
}

/* Writes the quotient or remainder of `a` by a size that is not a constant. */
static emit_pos by_size(const emit_indexer *x, LLVMOpcode op, emit_pos a, dim c) {
  if (a.step == 0) {
    return emit_pos_at(once(x, op, a.base, divisor(x, c)), 1);
  }
  LLVMValueRef v = emit_pos_vector(x, a);
  return scattered(once(x, op, v, emit_splat(x->w, divisor(x, c), x->lanes)));
}

static emit_pos quotient(const emit_indexer *x, emit_pos a, int64_t c) {
  const emit_spread *s = divided_spread(x, a, c);
  if (s) {
    LLVMValueRef first = once(x, LLVMUDiv, s->first, constant_divisor(x, a, c));
    emit_spread *r = new_spread(x, first, s->multiple % c == 0 ? s->multiple / c : 1);
    for (int k = 0; k < x->lanes; k++) {
      r->offsets[k] = floor_div(s->offsets[k], c);
    }
    return spread_position(x, r);
  }
  LLVMValueRef v = emit_pos_vector(x, a);
  return scattered(once(x, LLVMUDiv, v, emit_i(v, c)));
}

emit_pos emit_pos_div(const emit_indexer *x, emit_pos a, dim c) {
  int64_t bucket;
  if (c == 1) {
    return a;
  }
  if (!dim_is_const(c)) {
    return by_size(x, LLVMUDiv, a, c);
  }
  if (known_bucket(a, c, &bucket)) {
    return emit_pos_const(x, bucket);
  }
  return in_range(quotient(x, a, c), a, a.least / c, (a.past - 1) / c + 1);
}

static emit_pos remainder_of(const emit_indexer *x, emit_pos a, int64_t c) {
  bool affine = a.step != EMIT_SCATTERED;
  if (a.step == 0 || (affine && one_bucket(x, a, c))) {
    return emit_pos_lanes(once(x, LLVMURem, a.base, constant_divisor(x, a, c)), a.step, gcd_i64(a.multiple, c));
  }
  if (affine && a.step % c == 0) {
    return emit_pos_at(once(x, LLVMURem, a.base, constant_divisor(x, a, c)), gcd_i64(a.multiple, c));
  }
  const emit_spread *s = divided_spread(x, a, c);
  if (s) {
    bool whole = s->multiple % c == 0;
    LLVMValueRef first = whole ? emit_i64(x->w, 0) : once(x, LLVMURem, s->first, constant_divisor(x, a, c));
    emit_spread *r = new_spread(x, first, whole ? 0 : gcd_i64(s->multiple, c));
    for (int k = 0; k < x->lanes; k++) {
      r->offsets[k] = s->offsets[k] - floor_div(s->offsets[k], c) * c;
    }
    return spread_position(x, r);
  }
  LLVMValueRef v = emit_pos_vector(x, a);
  return scattered(once(x, LLVMURem, v, emit_i(v, c)));
}

emit_pos emit_pos_mod(const emit_indexer *x, emit_pos a, dim c) {
  int64_t bucket;
  if (c == 1) {
    return emit_pos_const(x, 0);
  }
  if (!dim_is_const(c)) {
    return by_size(x, LLVMURem, a, c);
  }
  if (known_bucket(a, c, &bucket)) {
    return emit_pos_add_const(x, a, -bucket * c);
  }
  return in_range(remainder_of(x, a, c), a, 0, c);
}

bool emit_pos_mod_scatters(const emit_indexer *x, emit_pos a, dim c) {
  int64_t bucket;
  if (!dim_is_const(c)) {
    return a.step != 0;
  }
  return c != 1 && a.step != 0 && !known_bucket(a, c, &bucket) &&
         (a.step == EMIT_SCATTERED || (!one_bucket(x, a, c) && a.step % c != 0)) && !divided_spread(x, a, c);
}

/* Returns n - 1 with as many lanes as v has, and of v's type. */
static LLVMValueRef last_place(const emit_indexer *x, LLVMValueRef v, dim n) {
  LLVMValueRef last = LLVMBuildNSWSub(x->w->builder, emit_size(x, n), emit_i64(x->w, 1), "");
  return emit_lanes(v) ? emit_splat(x->w, last, (int)emit_lanes(v)) : last;
}

static int64_t clamped(int64_t a, int64_t n) { return a < 0 ? 0 : a < n ? a : n - 1; }

/* Returns `a`, whose lanes are at constant positions, clamped to [0, n - 1]. */
static emit_pos clamp_constants(const emit_indexer *x, const emit_spread *a, int64_t n) {
  emit_spread *r = new_spread(x, emit_i64(x->w, 0), 0);
  for (int k = 0; k < x->lanes; k++) {
    r->offsets[k] = clamped(LLVMConstIntGetSExtValue(a->first) + a->offsets[k], n);
  }
  return spread_position(x, r);
}

emit_pos emit_pos_clamp(const emit_indexer *x, emit_pos a, dim n) {
  if (dim_is_const(n) && a.step == EMIT_SCATTERED && a.spread && LLVMIsAConstantInt(a.spread->first)) {
    return emit_pos_below(clamp_constants(x, a.spread, n), n);
  }
  LLVMValueRef v = a.step == 0 ? a.base : emit_pos_vector(x, a);
  uintptr_t key[5] = {3, (uintptr_t)v, (uintptr_t)n, 0, 0};
  const emit_pair *found = emit_table_find(x->table, key);
  LLVMValueRef r = found ? found->v : NULL;
  if (!found) {
    LLVMValueRef last = dim_is_const(n) ? emit_i(v, n - 1) : last_place(x, v, n);
    r = emit_intrinsic2(x->w, "llvm.smax", emit_intrinsic2(x->w, "llvm.smin", v, last), emit_i(v, 0));
    emit_table_put(x->table, key, (emit_pair){r, NULL});
  }
  return emit_pos_below(a.step == 0 || x->lanes == 1 ? emit_pos_at(r, 1) : scattered(r), n);
}
