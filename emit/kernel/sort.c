/* sort.c - kernels that sort lines along one dimension.
 *
 * What is sorted are items (emit/element/sort_items.h), integers that stand for the elements, so that one radix sort
 * serves all types.  If only the first few elements are wanted, items are gathered until their memory is full, and
 * sorted.  From then on, only those items are gathered that come before the last wanted one. */
#include "emit/element/sort_items.h"
#include "emit/kernel/special.h"
#include "emit/kernel/writer.h"

enum {
  SHORT = 32,   /* up to this many items are sorted by insertion */
  DIGITS = 256, /* the number of values of a byte; each pass of the radix sort sorts by one byte of the keys */
  ROOM = 512    /* if only the first items are wanted: the smallest number of items for which there is memory */
};

/* The sizes of a sort, from which the size of its scratch memory follows. */
typedef struct sizes {
  dim n, inner, lines, parts;
  dim wanted, room; /* how many items are wanted, and how many are gathered before they are sorted */
  dim part; /* how many items take as much memory as a part has: two lists and the counts, which are half items */
  int64_t item_bytes;
} sizes;

static sizes sizes_of(const hlo_instr *i, const emit_sort *config) {
  dim_table *t = i->parent->module->dims;
  dim dims[3];
  emit_sort_dims(i, dims);
  sizes z = {.n = dims[1], .inner = dims[2], .lines = dim_mul(t, dims[0], dims[2])};
  z.parts = dim_min(t, z.lines, config->parts);
  int64_t front = config->front > 0 ? config->front : 1;
  bool all = front >= INT32_MAX;
  z.wanted = all ? z.n : dim_min(t, z.n, front);
  z.room = all ? z.n : dim_min(t, z.n, front > ROOM / 2 ? 2 * front : ROOM);
  z.item_bytes = emit_sort_item_bytes(i);
  z.part = dim_add_const(t, dim_mul(t, z.room, 2), DIGITS / 2);
  return z;
}

dim emit_sort_scratch(const hlo_instr *i, const emit_sort *s) {
  dim_table *t = i->parent->module->dims;
  sizes z = sizes_of(i, s);
  return dim_mul(t, dim_mul(t, z.part, z.item_bytes), z.parts);
}

typedef struct sorter {
  emit_sort_line line;
  emit_writer *w;
  const emit_ir *ir;
  const hlo_instr *i;
  const emit_sort *config;
  sizes z;
  LLVMTypeRef word, item; /* the types of half an item and of an item */
  LLVMValueRef counts;    /* the address of the counts: a word for each value of a byte */
} sorter;

/* --- items --- */

static LLVMValueRef load(const sorter *s, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef k) {
  return emit_sort_load(&s->line, type, base, k);
}

static void store(const sorter *s, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef k, LLVMValueRef v) {
  emit_sort_store(&s->line, type, base, k, v);
}

static LLVMValueRef key_word(const sorter *s, LLVMValueRef item) { return emit_sort_key_word(&s->line, item); }

static LLVMValueRef plus(const sorter *s, LLVMValueRef x, int64_t c) {
  return LLVMBuildNSWAdd(s->ir->builder, x, emit_i64(s->ir, c), "");
}

/* --- sorting items --- */

/* Inserts v into the sorted items x[0..n).  Larger items move up by one position. */
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

/* Returns a word that has a 1 in every bit in which the keys of x[0..m) differ. */
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

/* Sorts x[0][0..m) by one byte of the keys after the other, with x[1] as scratch memory.  Each pass moves the items
 * from one list to the other and exchanges x[0] and x[1], so that the sorted items are in x[0] at the end. */
static void sort_by_bytes(const sorter *s, LLVMValueRef x[2], LLVMValueRef m) {
  const emit_ir *ir = s->ir;
  LLVMValueRef differs = differing(s, x[0], m);
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), emit_i64(ir, emit_sort_key_bits(hlo_type(s->i->operands[0]))), 8, true, 2,
                  x);
  LLVMValueRef shift = LLVMBuildIntCast2(ir->builder, l.iv, s->word, false, "");
  LLVMValueRef pass = emit_icmp(ir, LLVMIntNE, digit_of(s, differs, shift), emit_i64(ir, 0));
  LLVMBasicBlockRef before = emit_here(ir), after = emit_if_begin(ir, pass);
  scatter(s, l.carried[0], m, shift, l.carried[1]);
  LLVMBasicBlockRef moved = emit_here(ir);
  emit_if_end(ir, after);
  LLVMValueRef from = emit_phi2(ir, l.carried[1], moved, l.carried[0], before);
  LLVMValueRef to = emit_phi2(ir, l.carried[0], moved, l.carried[1], before);
  emit_loop_end(ir, &l, (LLVMValueRef[]){from, to});
  x[0] = l.carried[0];
  x[1] = l.carried[1];
}

/* Sorts x[0][0..m) with x[1] as scratch memory: few items by insertion, more by their bytes.  The sorted items are in
 * x[0], which may have been exchanged with x[1]. */
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
    x[k] = emit_phi2(ir, x[k], few, y[k], many);
  }
}

/* --- lines --- */

/* Returns an i1 that is true if a key in the `n` vectors of keys from position k on is less than the key `limit`. */
static LLVMValueRef any_below(const sorter *s, LLVMValueRef k, int n, LLVMValueRef limit) {
  emit_element *e = &s->w->e;
  LLVMValueRef any = NULL;
  uint32_t mark = emit_table_mark(e->x.table);
  e->x.lanes = e->wide;
  for (int j = 0; j < n; j++) {
    LLVMValueRef key = emit_sort_key(&s->line, emit_pos_lanes(plus(s, k, j * e->wide), 1, 1));
    LLVMValueRef cut = LLVMBuildIntCast2(s->ir->builder, limit, emit_scalar_type(LLVMTypeOf(key)), false, "");
    LLVMValueRef below = emit_icmp(s->ir, LLVMIntULT, key, emit_splat(s->ir, cut, e->wide));
    any = any ? LLVMBuildOr(s->ir->builder, any, below, "") : below;
  }
  e->x.lanes = 1;
  emit_table_release(e->x.table, mark);
  return emit_any(s->ir, any);
}

/* Returns true if `gather` compares many elements of a line with the limit at a time (skip). */
static bool looks_ahead(const sorter *s) { return s->config->front < INT32_MAX && s->z.inner == 1 && s->w->e.wide > 1; }

/* Skips blocks of elements from position k on of which none is below the limit, and returns the position after them.
 * Returns k if there is no limit yet, or if k is not the start of a block, since its block was compared before. */
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

/* Appends to x[0..*m) the items that are below the limit, from position *k of the line on, as long as there is room.
 * The limit is the last wanted item of those gathered so far, or has all bits set if fewer than the wanted items were
 * gathered.  Advances *k and *m. */
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
  LLVMValueRef item = emit_sort_item(&s->line, l.carried[0]);
  store(s, s->item, x, l.carried[1], item);
  LLVMValueRef below = LLVMBuildZExt(ir->builder, emit_icmp(ir, LLVMIntULT, item, limit), ir->i64, "");
  emit_table_release(w->e.x.table, mark);
  LLVMValueRef next = plus(s, l.carried[0], 1);
  next = looks_ahead(s) ? skip(s, next, limit) : next;
  emit_while_end(ir, &l, (LLVMValueRef[]){next, LLVMBuildNSWAdd(ir->builder, l.carried[1], below, "")});
  *k = l.carried[0];
  *m = l.carried[1];
}

/* Returns the address of a list that begins with the wanted items of the line, sorted. x is scratch memory for two
 * lists. */
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
  /* m is at least 1, since every item is less than `all`. */
  LLVMValueRef last = load(s, s->item, lists[0], plus(s, m, -1));
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
  LLVMValueRef place = emit_sort_place(&s->line, load(s, s->item, items, l.iv));
  emit_pair v = o == s->config->iota ? (emit_pair){place, NULL} : emit_sort_value(&s->line, o, emit_pos_at(place, 1));
  const shape *to = &s->i->shapes[o];
  emit_pos at = emit_index_linear(&e->x, emit_sort_index(&s->line, emit_pos_at(l.iv, 1), to));
  emit_store(e, s->w->results[o], (dtype)to->type, at, v, false);
  emit_table_release(e->x.table, mark);
  emit_loop_end(s->ir, &l, NULL);
}

static void sort_line(sorter *s, LLVMValueRef line, const LLVMValueRef x[2]) {
  emit_element *e = &s->w->e;
  uint32_t mark = emit_table_mark(e->x.table);
  emit_sort_set_line(&s->line, line);
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
  LLVMValueRef first = LLVMBuildNSWMul(ir->builder, parts.iv, emit_size(x, s->z.part), "");
  LLVMValueRef list = emit_sort_address(&s->line, s->item, scratch, first),
               lists[2] = {list, emit_sort_address(&s->line, s->item, list, room)};
  s->counts = emit_sort_address(&s->line, s->item, lists[1], room);
  LLVMValueRef from = emit_first_of_part(s->w, parts.iv, s->z.parts, s->z.lines);
  LLVMValueRef to = emit_first_of_part(s->w, plus(s, parts.iv, 1), s->z.parts, s->z.lines);
  emit_loop_begin(ir, &lines, from, to, 1, false, 0, NULL);
  sort_line(s, lines.iv, lists);
  emit_loop_end(ir, &lines, NULL);
  emit_loop_end(ir, &parts, NULL);
}

/* Estimates the time of the kernel in nanoseconds: a pass over all items for each byte of the keys and for each
 * operand, and two more. */
static double cost_of(const sorter *s) {
  const double pass = 3;
  double n = emit_likely_elements(s->i->parent->module->dims, &s->i->shapes[0]);
  return pass * n * (2 + (double)emit_sort_key_bits(hlo_type(s->i->operands[0])) / 8 + s->i->n_operands);
}

status emit_sort_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                        const void *config, uint32_t phase, emit_kernel_info *info) {
  (void)phase;
  emit_writer w;
  TRY(emit_writer_begin(&w, m, name, i, options, 1, info));
  sorter s = {.w = &w, .ir = w.e.w, .i = i, .config = config, .z = sizes_of(i, config)};
  s.line = emit_sort_line_of(&w.e, i);
  s.word = s.line.word;
  s.item = s.line.item;
  sort_parts(&s);
  info->grid = s.z.parts;
  w.cost = cost_of(&s);
  emit_writer_end(&w);
  return emit_writer_check(&w);
}
