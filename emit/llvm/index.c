/* index.c - positions, indices and the table of computations that are already written (emit_table); see index.h. */
#include "emit/llvm/index.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/arith.h"
#include "base/hash.h"

/* --- sizes --- */

/* Loads argument k at the beginning of the function, so that it can be used everywhere. */
static LLVMValueRef load_size(const emit_ir *w, LLVMValueRef args, uint32_t k) {
  LLVMBasicBlockRef here = emit_here(w), entry = LLVMGetEntryBasicBlock(w->function);
  LLVMValueRef first = LLVMGetFirstInstruction(entry), at = emit_i64(w, k);
  if (first) {
    LLVMPositionBuilderBefore(w->builder, first);
  } else {
    LLVMPositionBuilderAtEnd(w->builder, entry);
  }
  LLVMValueRef v = LLVMBuildLoad2(w->builder, w->i64, LLVMBuildInBoundsGEP2(w->builder, w->i64, args, &at, 1, ""), "");
  LLVMSetAlignment(v, 8);
  LLVMPositionBuilderAtEnd(w->builder, here);
  return v;
}

LLVMValueRef emit_size(const emit_indexer *x, dim d) {
  emit_sizes *s = x->sizes;
  int64_t constant;
  if (dim_is_const(d) || d == DIM_OVERFLOW) {
    s->overflow |= d == DIM_OVERFLOW;
    return emit_i64(x->w, d == DIM_OVERFLOW ? 1 : d);
  }
  if (dim_signed_value(s->table, d, &constant)) {
    return emit_i64(x->w, constant);
  }
  for (uint32_t k = 0; k < s->n_dims; k++) {
    if (s->dims[k] == d) {
      return s->values[k];
    }
  }
  assert(s->args);
  LLVMValueRef v = load_size(x->w, s->args, s->n_dims);
  *ARENA_PUSH(x->w->arena, s->values, s->n_values, s->cap_values) = v;
  *ARENA_PUSH(x->w->arena, s->dims, s->n_dims, s->cap_dims) = d;
  return v;
}

void emit_reload_sizes(const emit_indexer *x, uint32_t first) {
  emit_sizes *s = x->sizes;
  LLVMValueRef *values = ARENA_NEW_N(x->w->arena, LLVMValueRef, s->n_dims + 1);
  if (first) {
    memcpy(values, s->values, first * sizeof *values);
  }
  for (uint32_t k = first; k < s->n_dims; k++) {
    values[k] = load_size(x->w, s->args, k);
  }
  s->values = values;
  s->n_values = s->n_dims;
  s->cap_values = s->n_dims + 1;
}

LLVMValueRef emit_size_like(const emit_indexer *x, LLVMValueRef v, dim d) {
  if (dim_is_const(d)) {
    return emit_i(v, d);
  }
  LLVMValueRef n = LLVMBuildIntCast2(x->w->builder, emit_size(x, d), emit_scalar_type(LLVMTypeOf(v)), true, "");
  return emit_lanes(v) ? emit_splat(x->w, n, (int)emit_lanes(v)) : n;
}

dim emit_dims_difference(const emit_indexer *x, dim a, dim b) { return dim_signed_sub(x->sizes->table, a, b); }

static dim product(dim_table *t, const dim *dims, int first, int last) {
  dim n = 1;
  for (int k = first; k < last; k++) {
    n = dim_mul(t, n, dims[k]);
  }
  return n;
}

dim emit_dims_product(const emit_indexer *x, const dim *dims, int first, int last) {
  return product(x->sizes->table, dims, first, last);
}

bool emit_divides(const emit_indexer *x, dim a, dim b) {
  if (dim_is_const(a) && dim_is_const(b)) {
    return a > 0 && b % a == 0;
  }
  return a != 0 && (a == b || dim_mod(x->sizes->table, b, a) == 0);
}

dim emit_quotient(const emit_indexer *x, dim b, dim a) {
  return dim_is_const(a) && dim_is_const(b) ? b / a : dim_floordiv(x->sizes->table, b, a);
}

void emit_poll_in(const emit_indexer *x, LLVMValueRef iv, int64_t step, dim n, dim inner) {
  double each = fmin(fmax(emit_likely_size(x->sizes->table, inner), 1), (double)INT64_MAX / 4);
  emit_poll(x->w, iv, step, dim_is_const(n) ? n : EMIT_ANY_NUMBER, dim_is_const(inner) ? inner : (int64_t)each);
}

/* --- the table of computations that are already written --- */

enum { BUCKETS = 1024 };
typedef struct entry {
  uintptr_t key[5];
  emit_pair value;
  uint32_t bucket, next; /* next is the number of an older entry of the same bucket plus one, or 0 */
} entry;

struct emit_table {
  arena *arena;
  entry *items;
  uint32_t n, cap, heads[BUCKETS];
};

emit_table *emit_table_create(arena *a) {
  emit_table *t = ARENA_NEW(a, emit_table);
  t->arena = a;
  return t;
}

static uint32_t bucket_of(const uintptr_t key[5]) { return (uint32_t)(hash_bytes(key, 5 * sizeof *key, 0) % BUCKETS); }

const emit_pair *emit_table_find(const emit_table *t, const uintptr_t key[5]) {
  for (uint32_t k = t->heads[bucket_of(key)]; k; k = t->items[k - 1].next) {
    if (memcmp(t->items[k - 1].key, key, 5 * sizeof *key) == 0) {
      return &t->items[k - 1].value;
    }
  }
  return NULL;
}

void emit_table_put(emit_table *t, const uintptr_t key[5], emit_pair value) {
  entry *e = ARENA_PUSH(t->arena, t->items, t->n, t->cap);
  memcpy(e->key, key, sizeof e->key);
  e->value = value;
  e->bucket = bucket_of(key);
  e->next = t->heads[e->bucket];
  t->heads[e->bucket] = t->n;
}

uint32_t emit_table_mark(const emit_table *t) { return t->n; }

void emit_table_release(emit_table *t, uint32_t mark) {
  while (t->n > mark) {
    entry *e = &t->items[--t->n];
    t->heads[e->bucket] = e->next;
  }
}

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
  return (emit_pos){emit_i64(x->w, c), 0, c < 0 ? -c : c, c, c + 1};
}
emit_pos emit_pos_at(LLVMValueRef base, int64_t multiple) { return emit_pos_lanes(base, 0, multiple); }

static LLVMTypeRef lane_type(const emit_indexer *x) { return x->narrow ? x->w->i32 : x->w->i64; }

emit_pos emit_pos_scattered(const emit_indexer *x, LLVMValueRef v) {
  LLVMTypeRef t = emit_type_like(v, x->lanes == 1 ? x->w->i64 : lane_type(x));
  v = LLVMBuildIntCast2(x->w->builder, v, t, true, "");
  return x->lanes == 1 ? emit_pos_at(v, 1) : emit_pos_lanes(v, EMIT_SCATTERED, 1);
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
  LLVMTypeRef t = lane_type(x);
  LLVMValueRef offsets[256], base = LLVMBuildIntCast2(x->w->builder, a.base, t, true, "");
  for (int k = 0; k < x->lanes; k++) {
    offsets[k] = LLVMConstInt(t, (unsigned long long)(k * a.step), true);
  }
  LLVMValueRef v =
      LLVMBuildAdd(x->w->builder, emit_splat(x->w, base, x->lanes), LLVMConstVector(offsets, (unsigned)x->lanes), "");
  emit_table_put(x->table, key, (emit_pair){v, NULL});
  return v;
}

LLVMValueRef emit_pos_last(const emit_indexer *x, emit_pos a) {
  return once(x, LLVMAdd, a.base, emit_i64(x->w, a.step * (x->lanes - 1)));
}

static emit_pos scattered(LLVMValueRef v) { return emit_pos_lanes(v, EMIT_SCATTERED, 1); }

emit_pos emit_pos_add(const emit_indexer *x, emit_pos a, emit_pos b) {
  if (a.step == EMIT_SCATTERED || b.step == EMIT_SCATTERED) {
    return scattered(once(x, LLVMAdd, emit_pos_vector(x, a), emit_pos_vector(x, b)));
  }
  emit_pos sum = emit_pos_lanes(once(x, LLVMAdd, a.base, b.base), a.step + b.step, gcd_i64(a.multiple, b.multiple));
  bool known = a.least < a.past && b.least < b.past;
  if (!known || __builtin_add_overflow(a.least, b.least, &sum.least) ||
      __builtin_add_overflow(a.past, b.past - 1, &sum.past)) {
    sum.least = sum.past = 0;
  }
  return sum;
}

emit_pos emit_pos_add_const(const emit_indexer *x, emit_pos a, int64_t c) {
  if (a.step == EMIT_SCATTERED) {
    return scattered(once(x, LLVMAdd, a.base, emit_i(a.base, c)));
  }
  return emit_pos_add(x, a, emit_pos_const(x, c));
}

emit_pos emit_pos_scale(const emit_indexer *x, emit_pos a, int64_t c) {
  if (c == 1) {
    return a;
  }
  if (c == 0) {
    return emit_pos_const(x, 0);
  }
  if (a.step == EMIT_SCATTERED) {
    return scattered(once(x, LLVMMul, a.base, emit_i(a.base, c)));
  }
  int64_t multiple = 0;
  if (__builtin_mul_overflow(a.multiple, c, &multiple)) {
    multiple = a.multiple;
  }
  emit_pos r =
      emit_pos_lanes(once(x, LLVMMul, a.base, emit_i64(x->w, c)), a.step * c, multiple < 0 ? -multiple : multiple);
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
  bool affine = a.step != EMIT_SCATTERED;
  if (a.step == 0 || (affine && one_bucket(x, a, c))) {
    return emit_pos_at(once(x, LLVMUDiv, a.base, constant_divisor(x, a, c)), a.multiple % c == 0 ? a.multiple / c : 1);
  }
  if (affine && a.step % c == 0 && a.multiple % c == 0) {
    return emit_pos_lanes(once(x, LLVMUDiv, a.base, constant_divisor(x, a, c)), a.step / c, a.multiple / c);
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

/* Returns true if emit_pos_mod needs arithmetic on vectors. */
static bool mod_scatters(const emit_indexer *x, emit_pos a, dim c) {
  int64_t bucket;
  if (!dim_is_const(c)) {
    return a.step != 0;
  }
  return c != 1 && a.step != 0 && !known_bucket(a, c, &bucket) &&
         (a.step == EMIT_SCATTERED || (!one_bucket(x, a, c) && a.step % c != 0));
}

/* Returns n - 1 with as many lanes as v has, and of v's type. */
static LLVMValueRef last_place(const emit_indexer *x, LLVMValueRef v, dim n) {
  LLVMValueRef last = LLVMBuildNSWSub(x->w->builder, emit_size(x, n), emit_i64(x->w, 1), "");
  return emit_lanes(v) ? emit_splat(x->w, last, (int)emit_lanes(v)) : last;
}

emit_pos emit_pos_clamp(const emit_indexer *x, emit_pos a, dim n) {
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

/* --- indices --- */

emit_index *emit_index_new(const emit_indexer *x, int rank, const dim *dims) {
  emit_index *i = arena_alloc(x->w->arena, sizeof(emit_index) + (size_t)rank * sizeof(emit_axis));
  i->rank = rank;
  i->dims = dims;
  return i;
}

const emit_index *emit_index_reshape(const emit_indexer *x, const emit_index *i, int rank, const dim *dims) {
  if (i->rank == rank && memcmp(i->dims, dims, (size_t)rank * sizeof *dims) == 0) {
    return i;
  }
  emit_index *r = emit_index_new(x, 0, dims);
  r->rank = rank;
  r->reshaped = i->reshaped ? i->reshaped : i;
  return r;
}

/* Returns the linear position over dimensions [left, right) of p, modulo c.  If the product of the inner dimensions
 * divides c, only the outer ones need the modulo, so that lanes along the inner ones stay affine. */
static emit_pos range_modulo(const emit_indexer *x, const emit_index *p, int left, int right, dim c) {
  for (int k = left + 1; k < right; k++) {
    dim inner = emit_dims_product(x, p->dims, k, right);
    if (emit_divides(x, inner, c)) {
      emit_pos outer = emit_pos_mod(x, emit_index_range(x, p, left, k), emit_quotient(x, c, inner));
      return emit_pos_add(x, emit_pos_scale_by_size(x, outer, inner), emit_index_range(x, p, k, right));
    }
  }
  return emit_pos_mod(x, emit_index_range(x, p, left, right), c);
}

/* Returns the linear position over dimensions [first, last) of i, which is a reshape of an index in another shape.  It
 * is computed from the linear position over the smallest range of the other shape's dimensions that contains them, by a
 * division and a remainder where needed. */
static emit_pos reshaped_range(const emit_indexer *x, const emit_index *i, int first, int last) {
  const emit_index *p = i->reshaped;
  dim low = emit_dims_product(x, i->dims, last, i->rank), high = emit_dims_product(x, i->dims, first, i->rank);
  int right = p->rank;
  dim t_low = 1;
  for (int k = p->rank - 1; k >= 0; k--) {
    dim t = emit_dims_product(x, p->dims, k, p->rank);
    if (emit_divides(x, t, low)) {
      right = k;
      t_low = t;
    }
  }
  int left = right;
  dim t_high = t_low;
  while (left > 0 && !emit_divides(x, high, t_high)) {
    t_high = emit_dims_product(x, p->dims, --left, p->rank);
  }
  emit_pos r = emit_pos_div(x, emit_index_range(x, p, left, right), emit_quotient(x, low, t_low));
  if (t_high == high || first == 0) {
    return r;
  }
  dim n = emit_dims_product(x, i->dims, first, last);
  bool apart = low == t_low && mod_scatters(x, r, n);
  return apart ? range_modulo(x, p, left, right, n) : emit_pos_mod(x, r, n);
}

/* Returns how many dimensions ending with k are consecutive dimensions of one other index, so that their linear
 * position can be taken from that index.  All of them except the first must also have the extents that they have
 * there. */
static int run_length(const emit_index *i, int first, int k) {
  const emit_index *from = i->axes[k].from;
  int n = 1;
  while (from && k - n >= first && i->axes[k - n].from == from && i->axes[k - n].dim == i->axes[k].dim - n &&
         i->dims[k - n + 1] == from->dims[i->axes[k - n + 1].dim]) {
    n++;
  }
  return n;
}

emit_pos emit_index_range(const emit_indexer *x, const emit_index *i, int first, int last) {
  dim n = emit_dims_product(x, i->dims, first, last);
  bool empty = emit_dims_product(x, i->dims, 0, i->rank) == 0; /* an extent of 0 must not become a divisor */
  if (empty || n == 1) {
    return emit_pos_const(x, 0);
  }
  if (i->reshaped) {
    return reshaped_range(x, i, first, last);
  }
  emit_pos sum = emit_pos_const(x, 0);
  for (int k = last - 1; k >= first;) {
    if (i->dims[k] == 1) {
      k--;
      continue;
    }
    int run = run_length(i, first, k);
    const emit_axis *a = &i->axes[k];
    emit_pos p = a->from ? emit_index_range(x, a->from, a->dim - run + 1, a->dim + 1) : a->pos;
    sum = emit_pos_add(x, sum, emit_pos_scale_by_size(x, p, emit_dims_product(x, i->dims, k + 1, last)));
    k -= run;
  }
  return sum;
}
