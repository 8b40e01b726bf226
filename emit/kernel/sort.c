/* sort.c - kernels that sort lines along one dimension.
 *
 * Elements become unsigned keys of the same order, so that one radix sort serves all types.  An item is a key with the
 * position of its element in one integer: the key is the high half, so that items compare as a stable sort needs.  If
 * only the first few elements are wanted, items are gathered until there is no more room; they are sorted, and from
 * then on only items are gathered that come before the last wanted one. */
#include "emit/kernel/special.h"
#include "emit/kernel/writer.h"

enum {
  SHORT = 32,   /* up to this many items are sorted by insertion */
  DIGITS = 256, /* a pass of the radix sort is by a byte of the keys */
  ROOM = 512    /* the least room for items of which only the first are wanted */
};

/* The sizes of a sort, which its scratch memory follows from. */
typedef struct sizes {
  dim outer, n, inner, lines, parts;
  dim wanted, room;   /* how many items are wanted, and how many are gathered before they are sorted */
  int64_t item_bytes; /* twice the bytes of a key, which is also large enough for a position */
} sizes;

static sizes sizes_of(const hlo_instr *i, const emit_sort *config) {
  dim_table *t = i->parent->module->dims;
  const shape *s = &i->shapes[0];
  int d = (int)hlo_int(i, HLO_ATTR_DIMENSION);
  sizes z = {.outer = shape_dim_product(t, s, 0, d), .n = s->dims[d], .inner = shape_dim_product(t, s, d + 1, s->rank)};
  z.lines = dim_mul(t, z.outer, z.inner);
  z.parts = dim_min(t, z.lines, config->parts);
  int64_t front = config->front > 0 ? config->front : 1;
  bool all = front >= INT32_MAX;
  z.wanted = all ? z.n : dim_min(t, z.n, front);
  z.room = all ? z.n : dim_min(t, z.n, front > ROOM / 2 ? 2 * front : ROOM);
  bool narrow = dtype_bytes(hlo_type(i->operands[0])) <= 4 && dim_is_const(z.n) && z.n < UINT32_MAX;
  z.item_bytes = narrow ? 8 : 16;
  return z;
}

dim emit_sort_scratch(const hlo_instr *i, const emit_sort *s) {
  dim_table *t = i->parent->module->dims;
  sizes z = sizes_of(i, s);
  return dim_mul(t, dim_mul(t, z.room, 2 * z.item_bytes), z.parts);
}

typedef struct sorter {
  emit_writer *w;
  const emit_ir *ir;
  const hlo_instr *i;
  const emit_sort *config;
  sizes z;
  dim *dims;              /* the extents of a line's array: [outer, n, inner] */
  LLVMTypeRef word, item; /* half an item, and an item */
  LLVMValueRef counts;    /* a word for each digit */
  const emit_index *at;   /* the index of the line: [outer, inner] */
} sorter;

/* --- keys --- */

/* Returns an unsigned integer that compares as the float with these bits does: NaN is above all numbers, and -0 equals
 * 0. */
static LLVMValueRef float_key(const emit_ir *ir, LLVMValueRef bits, int64_t infinity) {
  int64_t sign = (int64_t)((uint64_t)1 << (emit_bits(bits) - 1));
  LLVMValueRef magnitude = LLVMBuildAnd(ir->builder, bits, emit_i(bits, sign - 1), "");
  LLVMValueRef below = LLVMBuildSub(ir->builder, emit_i(bits, sign), magnitude, "");
  LLVMValueRef above = LLVMBuildAdd(ir->builder, emit_i(bits, sign), magnitude, "");
  LLVMValueRef key = emit_select(ir, emit_icmp(ir, LLVMIntSLT, bits, emit_i(bits, 0)), below, above);
  LLVMValueRef nan = emit_icmp(ir, LLVMIntUGT, magnitude, emit_i(bits, infinity));
  return emit_select(ir, nan, emit_i(bits, -1), key);
}

/* Returns an unsigned integer that compares as v does.  It has no more bits than needed, since each byte may be a pass
 * of the radix sort. */
static LLVMValueRef key_of(const emit_ir *ir, dtype t, LLVMValueRef v) {
  switch (t) {
    case DTYPE_F64: return float_key(ir, emit_bits_of(ir, v), 0x7ff0000000000000);
    case DTYPE_F16: return float_key(ir, v, 0x7c00);
    case DTYPE_BF16: return float_key(ir, v, 0x7f80);
    case DTYPE_PRED: return LLVMBuildZExt(ir->builder, v, emit_type_like(v, ir->i8), "");
    default: break;
  }
  if (dtype_is_float(t)) {
    return float_key(ir, emit_bits_of(ir, emit_widen(ir, t, v)), 0x7f800000);
  }
  int64_t sign = (int64_t)((uint64_t)1 << (emit_bits(v) - 1));
  return dtype_is_signed(t) ? LLVMBuildXor(ir->builder, v, emit_i(v, sign), "") : v;
}

/* Returns how many bits key_of gives. */
static int64_t key_bits(dtype t) {
  bool wide = dtype_is_float(t) && dtype_bytes(t) == 1; /* widened to f32 */
  return wide ? 32 : 8 * (int64_t)dtype_bytes(t);
}

/* --- items --- */

/* Returns the index of position `place` of the line in an operand or result. */
static const emit_index *place_at(const sorter *s, emit_pos place, const shape *of) {
  const emit_indexer *x = &s->w->e.x;
  emit_index *at = emit_index_new(x, 3, s->dims);
  emit_axis_from(at, 0, s->at, 0);
  emit_axis_at(at, 1, place);
  emit_axis_from(at, 2, s->at, 1);
  return emit_index_reshape(x, at, of->rank, of->dims);
}

static emit_pair value_at(const sorter *s, uint32_t operand, emit_pos place) {
  hlo_value v = s->i->operands[operand];
  return emit_value(&s->w->e, v, place_at(s, place, hlo_shape(v)));
}

/* Returns the key at a position: keys that are smaller come first. */
static LLVMValueRef key_at(const sorter *s, emit_pos place) {
  LLVMValueRef key = key_of(s->ir, hlo_type(s->i->operands[0]), value_at(s, 0, place).v);
  return hlo_int(s->i, HLO_ATTR_DESCENDING) ? LLVMBuildNot(s->ir->builder, key, "") : key;
}

static LLVMValueRef item_at(const sorter *s, LLVMValueRef place) {
  LLVMBuilderRef b = s->ir->builder;
  LLVMValueRef key = LLVMBuildZExt(b, key_at(s, emit_pos_at(place, 1)), s->item, "");
  key = LLVMBuildShl(b, key, emit_i(key, 4 * s->z.item_bytes), "");
  LLVMValueRef low = LLVMBuildIntCast2(b, place, s->word, false, "");
  return LLVMBuildOr(b, key, LLVMBuildZExt(b, low, s->item, ""), "");
}

static LLVMValueRef key_word(const sorter *s, LLVMValueRef item) {
  LLVMValueRef high = LLVMBuildLShr(s->ir->builder, item, emit_i(item, 4 * s->z.item_bytes), "");
  return LLVMBuildTrunc(s->ir->builder, high, s->word, "");
}

static LLVMValueRef place_of(const sorter *s, LLVMValueRef item) {
  LLVMValueRef low = LLVMBuildTrunc(s->ir->builder, item, s->word, "");
  return LLVMBuildIntCast2(s->ir->builder, low, s->ir->i64, false, "");
}

static LLVMValueRef address(const sorter *s, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef k) {
  return LLVMBuildInBoundsGEP2(s->ir->builder, type, base, &k, 1, "");
}

static LLVMValueRef load(const sorter *s, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef k) {
  LLVMValueRef v = LLVMBuildLoad2(s->ir->builder, type, address(s, type, base, k), "");
  LLVMSetAlignment(v, 8);
  return v;
}

static void store(const sorter *s, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef k, LLVMValueRef v) {
  LLVMSetAlignment(LLVMBuildStore(s->ir->builder, v, address(s, type, base, k)), 8);
}

static LLVMValueRef plus(const sorter *s, LLVMValueRef x, int64_t c) {
  return LLVMBuildNSWAdd(s->ir->builder, x, emit_i64(s->ir, c), "");
}

/* --- sorting items --- */

/* Puts v among the sorted items x[0..n), which move up. */
static void insert(const sorter *s, LLVMValueRef x, LLVMValueRef n, LLVMValueRef v) {
  const emit_ir *ir = s->ir;
  emit_while l;
  emit_while_begin(ir, &l, 1, &n);
  LLVMValueRef k = l.carried[0], before = emit_intrinsic2(ir, "llvm.smax", plus(s, k, -1), emit_i64(ir, 0));
  LLVMValueRef other = load(s, s->item, x, before);
  LLVMValueRef moves =
      LLVMBuildAnd(ir->builder, emit_icmp(ir, LLVMIntSGT, k, emit_i64(ir, 0)), emit_icmp(ir, LLVMIntUGT, other, v), "");
  emit_while_test(ir, &l, moves);
  store(s, s->item, x, k, other);
  emit_while_end(ir, &l, &before);
  store(s, s->item, x, l.carried[0], v);
}

static void sort_short(const sorter *s, LLVMValueRef x, LLVMValueRef m) {
  emit_loop l;
  emit_loop_begin(s->ir, &l, emit_i64(s->ir, 1), m, 1, false, 0, NULL);
  insert(s, x, l.iv, load(s, s->item, x, l.iv));
  emit_loop_end(s->ir, &l, NULL);
}

/* Returns the bits in which the keys of x[0..m) differ. */
static LLVMValueRef differing(const sorter *s, LLVMValueRef x, LLVMValueRef m) {
  emit_loop l;
  LLVMValueRef none = emit_i_of(s->word, 0), first = key_word(s, load(s, s->item, x, emit_i64(s->ir, 0)));
  emit_loop_begin(s->ir, &l, emit_i64(s->ir, 0), m, 1, false, 1, &none);
  emit_poll_in(&s->w->e.x, l.iv, 1, s->z.room, 1);
  LLVMValueRef differs = LLVMBuildXor(s->ir->builder, first, key_word(s, load(s, s->item, x, l.iv)), "");
  emit_loop_end(s->ir, &l, (LLVMValueRef[]){LLVMBuildOr(s->ir->builder, l.carried[0], differs, "")});
  return l.carried[0];
}

static LLVMValueRef digit_of(const sorter *s, LLVMValueRef key, LLVMValueRef shift) {
  LLVMValueRef moved = LLVMBuildLShr(s->ir->builder, key, shift, "");
  LLVMValueRef digit = LLVMBuildAnd(s->ir->builder, moved, emit_i(moved, DIGITS - 1), "");
  return LLVMBuildIntCast2(s->ir->builder, digit, s->ir->i64, false, "");
}

static void clear_counts(const sorter *s) {
  emit_loop l;
  emit_loop_begin(s->ir, &l, emit_i64(s->ir, 0), emit_i64(s->ir, DIGITS), 1, true, 0, NULL);
  store(s, s->word, s->counts, l.iv, emit_i_of(s->word, 0));
  emit_loop_end(s->ir, &l, NULL);
}

/* Adds 1 to the count of a digit.  Returns what it was before. */
static LLVMValueRef count(const sorter *s, LLVMValueRef digit) {
  LLVMValueRef old = load(s, s->word, s->counts, digit);
  store(s, s->word, s->counts, digit, LLVMBuildAdd(s->ir->builder, old, emit_i(old, 1), ""));
  return old;
}

static void count_digits(const sorter *s, LLVMValueRef x, LLVMValueRef m, LLVMValueRef shift) {
  emit_loop l;
  emit_loop_begin(s->ir, &l, emit_i64(s->ir, 0), m, 1, false, 0, NULL);
  emit_poll_in(&s->w->e.x, l.iv, 1, s->z.room, 1);
  (void)count(s, digit_of(s, key_word(s, load(s, s->item, x, l.iv)), shift));
  emit_loop_end(s->ir, &l, NULL);
}

/* Replaces each count by the number of items with lower digits. */
static void add_up_counts(const sorter *s) {
  emit_loop l;
  LLVMValueRef none = emit_i_of(s->word, 0);
  emit_loop_begin(s->ir, &l, emit_i64(s->ir, 0), emit_i64(s->ir, DIGITS), 1, true, 1, &none);
  LLVMValueRef one = load(s, s->word, s->counts, l.iv);
  store(s, s->word, s->counts, l.iv, l.carried[0]);
  emit_loop_end(s->ir, &l, (LLVMValueRef[]){LLVMBuildAdd(s->ir->builder, l.carried[0], one, "")});
}

/* Copies x[0..m) to `to`, stably sorted by one byte of the keys. */
static void scatter(const sorter *s, LLVMValueRef x, LLVMValueRef m, LLVMValueRef shift, LLVMValueRef to) {
  clear_counts(s);
  count_digits(s, x, m, shift);
  add_up_counts(s);
  emit_loop l;
  emit_loop_begin(s->ir, &l, emit_i64(s->ir, 0), m, 1, false, 0, NULL);
  emit_poll_in(&s->w->e.x, l.iv, 1, s->z.room, 1);
  LLVMValueRef v = load(s, s->item, x, l.iv), k = count(s, digit_of(s, key_word(s, v), shift));
  store(s, s->item, to, LLVMBuildIntCast2(s->ir->builder, k, s->ir->i64, false, ""), v);
  emit_loop_end(s->ir, &l, NULL);
}

static LLVMValueRef phi2(const emit_ir *ir, LLVMValueRef x, LLVMBasicBlockRef from_x, LLVMValueRef y,
                         LLVMBasicBlockRef from_y) {
  LLVMValueRef phi = LLVMBuildPhi(ir->builder, LLVMTypeOf(x), "");
  LLVMAddIncoming(phi, &x, &from_x, 1);
  LLVMAddIncoming(phi, &y, &from_y, 1);
  return phi;
}

/* Sorts x[0][0..m) with x[1] as scratch memory, byte by byte of the keys, and exchanges both as often as the items have
 * moved. */
static void sort_by_bytes(const sorter *s, LLVMValueRef x[2], LLVMValueRef m) {
  const emit_ir *ir = s->ir;
  LLVMValueRef differs = differing(s, x[0], m);
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), emit_i64(ir, key_bits(hlo_type(s->i->operands[0]))), 8, true, 2, x);
  LLVMValueRef shift = LLVMBuildIntCast2(ir->builder, l.iv, s->word, false, "");
  LLVMValueRef pass = emit_icmp(ir, LLVMIntNE, digit_of(s, differs, shift), emit_i64(ir, 0));
  LLVMBasicBlockRef before = emit_here(ir), after = emit_if_begin(ir, pass);
  scatter(s, l.carried[0], m, shift, l.carried[1]);
  LLVMBasicBlockRef moved = emit_here(ir);
  emit_if_end(ir, after);
  LLVMValueRef from = phi2(ir, l.carried[1], moved, l.carried[0], before);
  LLVMValueRef to = phi2(ir, l.carried[0], moved, l.carried[1], before);
  emit_loop_end(ir, &l, (LLVMValueRef[]){from, to});
  x[0] = l.carried[0];
  x[1] = l.carried[1];
}

/* Sorts x[0][0..m) likewise, by the way that is best for m. */
static void sort_items(const sorter *s, LLVMValueRef x[2], LLVMValueRef m) {
  const emit_ir *ir = s->ir;
  LLVMBasicBlockRef few = emit_block(ir, "few"), many = emit_block(ir, "many"), sorted = emit_block(ir, "sorted");
  LLVMBuildCondBr(ir->builder, emit_icmp(ir, LLVMIntSLE, m, emit_i64(ir, SHORT)), few, many);
  LLVMPositionBuilderAtEnd(ir->builder, few);
  sort_short(s, x[0], m);
  few = emit_here(ir);
  LLVMBuildBr(ir->builder, sorted);
  LLVMPositionBuilderAtEnd(ir->builder, many);
  LLVMValueRef y[2] = {x[0], x[1]};
  sort_by_bytes(s, y, m);
  many = emit_here(ir);
  LLVMBuildBr(ir->builder, sorted);
  LLVMPositionBuilderAtEnd(ir->builder, sorted);
  for (int k = 0; k < 2; k++) {
    x[k] = phi2(ir, x[k], few, y[k], many);
  }
}

/* --- lines --- */

/* Returns an i1: whether some of the `n` vectors of keys from position k on may come before the limit, a key. */
static LLVMValueRef any_below(const sorter *s, LLVMValueRef k, int n, LLVMValueRef limit) {
  emit_element *e = &s->w->e;
  LLVMValueRef any = NULL;
  uint32_t mark = emit_table_mark(e->x.table);
  e->x.lanes = e->wide;
  for (int j = 0; j < n; j++) {
    LLVMValueRef key = key_at(s, emit_pos_lanes(plus(s, k, j * e->wide), 1, 1));
    LLVMValueRef cut = LLVMBuildIntCast2(s->ir->builder, limit, emit_scalar_type(LLVMTypeOf(key)), false, "");
    LLVMValueRef below = emit_icmp(s->ir, LLVMIntULT, key, emit_splat(s->ir, cut, e->wide));
    any = any ? LLVMBuildOr(s->ir->builder, any, below, "") : below;
  }
  e->x.lanes = 1;
  emit_table_release(e->x.table, mark);
  return emit_any(s->ir, any);
}

/* Returns true if many elements of a line are compared with the limit at a time. */
static bool looks_ahead(const sorter *s) { return s->config->front < INT32_MAX && s->z.inner == 1 && s->w->e.wide > 1; }

/* Returns a position from k on before which no item is below the limit, by comparing blocks of many.  Blocks are not
 * looked at twice: if k is inside of one, or if there is no limit yet, this is k. */
static LLVMValueRef skip(const sorter *s, LLVMValueRef k, LLVMValueRef limit) {
  const emit_ir *ir = s->ir;
  const int n = 4, step = n * s->w->e.wide;
  LLVMValueRef last = LLVMBuildNSWSub(ir->builder, emit_size(&s->w->e.x, s->z.n), emit_i64(ir, step), "");
  LLVMValueRef inside = LLVMBuildAnd(ir->builder, k, emit_i64(ir, step - 1), ""), least = key_word(s, limit);
  LLVMValueRef looks = LLVMBuildAnd(ir->builder, emit_icmp(ir, LLVMIntEQ, inside, emit_i64(ir, 0)),
                                    emit_icmp(ir, LLVMIntNE, limit, LLVMConstAllOnes(s->item)), "");
  emit_while l;
  emit_while_begin(ir, &l, 2, (LLVMValueRef[]){k, looks});
  LLVMValueRef fits = emit_icmp(ir, LLVMIntSLE, l.carried[0], last);
  emit_while_test(ir, &l, LLVMBuildAnd(ir->builder, fits, l.carried[1], ""));
  emit_poll_in(&s->w->e.x, l.carried[0], step, s->z.n, 1);
  LLVMValueRef none = LLVMBuildNot(ir->builder, any_below(s, l.carried[0], n, least), "");
  LLVMValueRef next = emit_select(ir, none, plus(s, l.carried[0], step), l.carried[0]);
  emit_while_end(ir, &l, (LLVMValueRef[]){next, none});
  return l.carried[0];
}

/* Adds items from position *k of the line on to x[0..*m), as long as there is room, but only those below the limit. */
static void gather(const sorter *s, LLVMValueRef x, LLVMValueRef limit, LLVMValueRef *k, LLVMValueRef *m) {
  emit_writer *w = s->w;
  const emit_ir *ir = s->ir;
  LLVMValueRef n = emit_size(&w->e.x, s->z.n), room = emit_size(&w->e.x, s->z.room);
  emit_while l;
  emit_while_begin(ir, &l, 2, (LLVMValueRef[]){*k, *m});
  LLVMValueRef more = emit_icmp(ir, LLVMIntSLT, l.carried[0], n), fits = emit_icmp(ir, LLVMIntSLT, l.carried[1], room);
  emit_while_test(ir, &l, LLVMBuildAnd(ir->builder, more, fits, ""));
  uint32_t mark = emit_table_mark(w->e.x.table);
  emit_poll_in(&w->e.x, l.carried[0], 1, s->z.n, 1);
  LLVMValueRef item = item_at(s, l.carried[0]);
  store(s, s->item, x, l.carried[1], item);
  LLVMValueRef below = LLVMBuildZExt(ir->builder, emit_icmp(ir, LLVMIntULT, item, limit), ir->i64, "");
  emit_table_release(w->e.x.table, mark);
  LLVMValueRef next = plus(s, l.carried[0], 1);
  next = looks_ahead(s) ? skip(s, next, limit) : next;
  emit_while_end(ir, &l, (LLVMValueRef[]){next, LLVMBuildNSWAdd(ir->builder, l.carried[1], below, "")});
  *k = l.carried[0];
  *m = l.carried[1];
}

/* Returns the address of the first items of the line in their order.  x is scratch memory for two lists. */
static LLVMValueRef order(const sorter *s, const LLVMValueRef x[2]) {
  const emit_ir *ir = s->ir;
  const emit_indexer *at = &s->w->e.x;
  LLVMValueRef zero = emit_i64(ir, 0), all = LLVMConstAllOnes(s->item), wanted = emit_size(at, s->z.wanted);
  emit_while l;
  emit_while_begin(ir, &l, 5, (LLVMValueRef[]){zero, zero, all, x[0], x[1]});
  emit_while_test(ir, &l, emit_icmp(ir, LLVMIntSLT, l.carried[0], emit_size(at, s->z.n)));
  LLVMValueRef k = l.carried[0], m = l.carried[1], lists[2] = {l.carried[3], l.carried[4]};
  gather(s, lists[0], l.carried[2], &k, &m);
  sort_items(s, lists, m);
  m = emit_intrinsic2(ir, "llvm.smin", m, wanted);
  LLVMValueRef last = load(s, s->item, lists[0], plus(s, m, -1)); /* m is at least 1, since no item is above `all` */
  LLVMValueRef limit = emit_select(ir, emit_icmp(ir, LLVMIntEQ, m, wanted), last, all);
  emit_while_end(ir, &l, (LLVMValueRef[]){k, m, limit, lists[0], lists[1]});
  return l.carried[3];
}

/* Stores the elements of operand o in the order of the items. */
static void permute(const sorter *s, uint32_t o, LLVMValueRef items) {
  emit_element *e = &s->w->e;
  emit_loop l;
  emit_loop_begin(s->ir, &l, emit_i64(s->ir, 0), emit_size(&e->x, s->z.wanted), 1, false, 0, NULL);
  emit_poll_in(&e->x, l.iv, 1, s->z.wanted, 1);
  uint32_t mark = emit_table_mark(e->x.table);
  LLVMValueRef place = place_of(s, load(s, s->item, items, l.iv));
  emit_pair v = o == s->config->iota ? (emit_pair){place, NULL} : value_at(s, o, emit_pos_at(place, 1));
  const shape *to = &s->i->shapes[o];
  emit_pos at = emit_index_linear(&e->x, place_at(s, emit_pos_at(l.iv, 1), to));
  emit_store(e, s->w->results[o], (dtype)to->type, at, v, false);
  emit_table_release(e->x.table, mark);
  emit_loop_end(s->ir, &l, NULL);
}

static void sort_line(sorter *s, LLVMValueRef line, const LLVMValueRef x[2]) {
  emit_element *e = &s->w->e;
  uint32_t mark = emit_table_mark(e->x.table);
  dim *flat_dims = ARENA_NEW_N(s->ir->arena, dim, 1), *dims = ARENA_NEW_N(s->ir->arena, dim, 2);
  *flat_dims = s->z.lines;
  dims[0] = s->z.outer;
  dims[1] = s->z.inner;
  emit_index *flat = emit_index_new(&e->x, 1, flat_dims);
  emit_axis_at(flat, 0, emit_pos_at(emit_opaque(s->ir, line), 1));
  s->at = emit_index_reshape(&e->x, flat, 2, dims);
  for (int k = 0; k < 2; k++) { /* divides before the loops, which then find the positions in e->x.table */
    (void)emit_index_dim(&e->x, s->at, k);
  }
  LLVMValueRef items = order(s, x);
  for (uint32_t o = 0; o < s->i->n_operands; o++) {
    permute(s, o, items);
  }
  emit_table_release(e->x.table, mark);
}

static void sort_parts(sorter *s) {
  const emit_indexer *x = &s->w->e.x;
  const emit_ir *ir = s->ir;
  LLVMValueRef scratch = emit_writer_buffer(s->w, s->i->n_operands + s->i->n_results);
  LLVMValueRef room = emit_size(x, s->z.room);
  emit_loop parts, lines;
  emit_loop_begin(ir, &parts, s->w->begin, s->w->end, 1, false, 0, NULL);
  LLVMValueRef first = LLVMBuildNSWMul(ir->builder, LLVMBuildShl(ir->builder, parts.iv, emit_i64(ir, 1), ""), room, "");
  LLVMValueRef list = address(s, s->item, scratch, first), lists[2] = {list, address(s, s->item, list, room)};
  LLVMValueRef from = emit_first_of_part(s->w, parts.iv, s->z.parts, s->z.lines);
  LLVMValueRef to = emit_first_of_part(s->w, plus(s, parts.iv, 1), s->z.parts, s->z.lines);
  emit_loop_begin(ir, &lines, from, to, 1, false, 0, NULL);
  sort_line(s, lines.iv, lists);
  emit_loop_end(ir, &lines, NULL);
  emit_loop_end(ir, &parts, NULL);
}

/* Estimates the time of the kernel in nanoseconds: a pass over all items for each byte of the keys. */
static double cost_of(const sorter *s) {
  const double pass = 3;
  double n = emit_likely_elements(s->i->parent->module->dims, &s->i->shapes[0]);
  return pass * n * (2 + (double)key_bits(hlo_type(s->i->operands[0])) / 8 + s->i->n_operands);
}

status emit_sort_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                        const void *config, uint32_t phase, emit_kernel_info *info) {
  (void)phase;
  emit_writer w;
  TRY(emit_writer_begin(&w, m, name, i, options, 1, info));
  sorter s = {.w = &w, .ir = w.e.w, .i = i, .config = config, .z = sizes_of(i, config)};
  s.dims = ARENA_NEW_N(s.ir->arena, dim, 3);
  s.dims[0] = s.z.outer;
  s.dims[1] = s.z.n;
  s.dims[2] = s.z.inner;
  s.word = LLVMIntTypeInContext(s.ir->context, (unsigned)(4 * s.z.item_bytes));
  s.item = LLVMIntTypeInContext(s.ir->context, (unsigned)(8 * s.z.item_bytes));
  s.counts = emit_row_memory(s.ir, s.z.item_bytes == 8 ? DTYPE_U32 : DTYPE_U64, DIGITS);
  sort_parts(&s);
  info->grid = s.z.parts;
  w.cost = cost_of(&s);
  emit_writer_end(&w);
  return emit_writer_check(&w);
}
