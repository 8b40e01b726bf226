/* block_sort.c - see block_sort.h.
 *
 * What is sorted are items (emit/element/sort_items.h), no two of which are equal, so that any network sorts stably.  A
 * block sorts a list in shared memory by a bitonic network.  There are three ways:
 *   - A line that fits into shared memory is sorted there.
 *   - If only few of the first elements are wanted, a block gathers items until the list is full, sorts it, and from
 *     then on gathers only items that come before the last wanted one.
 *   - Otherwise blocks sort pieces of the lines, and further kernels merge WAYS sorted runs to one each time.  In these
 *     kernels, a thread for each item looks up in each of the runs how many items come before its own.  The last kernel
 *     merges all runs that are left, and stores the elements that belong to the items. */
#include "emit/blocks/block_sort.h"

#include <assert.h>

#include "emit/element/sort_items.h"
#include "emit/kernel/block.h"

enum {
  SHARED = 32768, /* the bytes of the list in shared memory */
  MOST_THREADS = 512,
  FRONT_SHARE = 4, /* items are gathered only if those that are wanted fill at most 1 / FRONT_SHARE of the list */
  WAYS = 16,       /* how many runs are merged to one */
  MOST_MERGES = 3
};

/* --- sizes --- */

typedef struct plan {
  dim lines, n, wanted;
  int64_t room; /* how many items fit into a list in shared memory */
  bool fits, front;
  uint32_t merges;
  uint32_t threads; /* the number of threads in a block that sorts */
} plan;

static plan plan_of(const hlo_instr *i, const emit_sort *s) {
  dim_table *t = i->parent->module->dims;
  dim dims[3];
  emit_sort_dims(i, dims);
  plan p = {.lines = dim_mul(t, dims[0], dims[2]), .n = dims[1], .room = SHARED / emit_sort_item_bytes(i)};
  p.wanted = s->front >= INT32_MAX ? p.n : dim_min(t, p.n, s->front > 0 ? s->front : 1);
  p.fits = dim_is_const(p.n) && p.n <= p.room;
  p.front = !p.fits && s->front <= p.room / FRONT_SHARE;
  p.threads = MOST_THREADS;
  while (p.fits && p.threads > EMIT_WARP && p.threads >= p.n) {
    p.threads /= 2; /* each thread compares a pair of items */
  }
  int64_t run = p.room;
  while (!p.fits && !p.front && p.merges < MOST_MERGES && (p.merges == 0 || !dim_is_const(p.n) || run < p.n)) {
    run *= WAYS;
    p.merges++;
  }
  return p;
}

uint32_t emit_block_sort_phases(const hlo_instr *i, const emit_sort *s) { return 1 + plan_of(i, s).merges; }

/* If there are several merges, there are two lists of all items: each merge reads one list and writes the other. */
dim emit_block_sort_scratch(const hlo_instr *i, const emit_sort *s) {
  dim_table *t = i->parent->module->dims;
  plan p = plan_of(i, s);
  int64_t lists = p.merges > 1 ? 2 : p.merges;
  return dim_mul(t, dim_mul(t, p.lines, p.n), lists * emit_sort_item_bytes(i));
}

typedef struct sorter {
  emit_writer w;
  const emit_ir *ir;
  const hlo_instr *i;
  const emit_sort *config;
  plan p;
  emit_sort_line line;
  LLVMTypeRef item;
  LLVMValueRef thread, list; /* the thread in its block, and the list in shared memory */
} sorter;

static LLVMValueRef plus(const sorter *s, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildNSWAdd(s->ir->builder, x, y, "");
}

static LLVMValueRef minus(const sorter *s, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildNSWSub(s->ir->builder, x, y, "");
}

static LLVMValueRef lesser(const sorter *s, LLVMValueRef x, LLVMValueRef y) {
  return emit_intrinsic2(s->ir, "llvm.smin", x, y);
}

static LLVMValueRef size(const sorter *s, dim d) { return emit_size(&s->w.e.x, d); }

static LLVMValueRef load(const sorter *s, LLVMValueRef base, LLVMValueRef k) {
  return emit_sort_load(&s->line, s->item, base, k);
}

static void store(const sorter *s, LLVMValueRef base, LLVMValueRef k, LLVMValueRef v) {
  emit_sort_store(&s->line, s->item, base, k, v);
}

/* Returns the address at which the items of the line begin in list number `number` in scratch memory. */
static LLVMValueRef line_list(const sorter *s, uint32_t number, LLVMValueRef line) {
  LLVMValueRef lines = plus(s, line, LLVMBuildNSWMul(s->ir->builder, size(s, s->p.lines), emit_i64(s->ir, number), ""));
  LLVMValueRef scratch = emit_writer_buffer(&s->w, s->i->n_operands + s->i->n_results);
  LLVMValueRef first = LLVMBuildNSWMul(s->ir->builder, lines, size(s, s->p.n), "");
  return emit_sort_address(&s->line, s->item, scratch, first);
}

/* Begins a loop over the numbers in [0, n) that belong to this thread: its own number plus multiples of p.threads. */
static void begin_own(const sorter *s, emit_loop *l, LLVMValueRef n) {
  emit_loop_begin(s->ir, l, s->thread, n, s->p.threads, false, 0, NULL);
}

/* --- the network --- */

/* Compares the pairs of items of a step of the network.  An item is compared with the item whose number differs in the
 * bits of `mask`, of which `half` is the highest, and the lesser item gets the lower number.  Numbers from m on have no
 * items; they count as larger than all items, so that nothing is exchanged with them. */
static void compare_pairs(const sorter *s, LLVMValueRef m, LLVMValueRef pairs, LLVMValueRef half, LLVMValueRef mask) {
  const emit_ir *ir = s->ir;
  LLVMBuilderRef b = ir->builder;
  emit_loop l;
  begin_own(s, &l, pairs);
  LLVMValueRef low = LLVMBuildAnd(b, l.iv, minus(s, half, emit_i64(ir, 1)), "");
  LLVMValueRef x = plus(s, LLVMBuildShl(b, minus(s, l.iv, low), emit_i64(ir, 1), ""), low);
  LLVMValueRef y = LLVMBuildXor(b, x, mask, "");
  LLVMBasicBlockRef inside = emit_if_begin(ir, emit_icmp(ir, LLVMIntSLT, y, m));
  LLVMValueRef first = load(s, s->list, x), second = load(s, s->list, y);
  LLVMBasicBlockRef moved = emit_if_begin(ir, emit_icmp(ir, LLVMIntUGT, first, second));
  store(s, s->list, x, second);
  store(s, s->list, y, first);
  emit_if_end(ir, moved);
  emit_if_end(ir, inside);
  emit_loop_end(ir, &l, NULL);
}

/* Returns the least power of two that is not less than m, and at least 2. */
static LLVMValueRef power_of_two(const sorter *s, LLVMValueRef m) {
  LLVMBuilderRef b = s->ir->builder;
  LLVMValueRef last = minus(s, emit_intrinsic2(s->ir, "llvm.smax", m, emit_i64(s->ir, 2)), emit_i64(s->ir, 1));
  LLVMValueRef zeros = emit_intrinsic(s->ir, "llvm.ctlz", 2, (LLVMValueRef[]){last, LLVMConstNull(s->ir->i1)});
  return LLVMBuildShl(b, emit_i64(s->ir, 1), minus(s, emit_i64(s->ir, 64), zeros), "");
}

/* Sorts the first m items of the list, which the threads have stored together.  In each round, pairs of sorted runs of
 * `run` / 2 items become sorted runs of `run` items: the first step compares the first item of a pair with the last one
 * and so on, and each further step compares items at half the distance of the step before.  Ends with a barrier. */
static void sort_list(sorter *s, LLVMValueRef m) {
  const emit_ir *ir = s->ir;
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef two = emit_i64(ir, 2), one = emit_i64(ir, 1), end = power_of_two(s, m);
  LLVMValueRef pairs = LLVMBuildLShr(b, end, one, "");
  emit_while rounds, steps;
  emit_barrier(&s->w);
  emit_while_begin(ir, &rounds, 1, &two);
  LLVMValueRef run = rounds.carried[0];
  emit_while_test(ir, &rounds, emit_icmp(ir, LLVMIntSLE, run, end));
  emit_while_begin(ir, &steps, 2, (LLVMValueRef[]){LLVMBuildLShr(b, run, one, ""), minus(s, run, one)});
  LLVMValueRef half = steps.carried[0];
  emit_while_test(ir, &steps, emit_icmp(ir, LLVMIntSGT, half, emit_i64(ir, 0)));
  compare_pairs(s, m, pairs, half, steps.carried[1]);
  emit_barrier(&s->w);
  LLVMValueRef next = LLVMBuildLShr(b, half, one, "");
  emit_while_end(ir, &steps, (LLVMValueRef[]){next, next});
  run = LLVMBuildShl(b, run, one, "");
  emit_while_end(ir, &rounds, &run);
}

/* --- elements --- */

/* Stores the elements at `place` of the line as number k of the results. */
static void store_elements(sorter *s, LLVMValueRef place, LLVMValueRef k) {
  emit_element *e = &s->w.e;
  for (uint32_t o = 0; o < s->i->n_operands; o++) {
    const shape *to = &s->i->shapes[o];
    emit_pair v = o == s->config->iota ? (emit_pair){place, NULL} : emit_sort_value(&s->line, o, emit_pos_at(place, 1));
    emit_pos at = emit_index_linear(&e->x, emit_sort_index(&s->line, emit_pos_at(k, 1), to));
    emit_store(e, s->w.results[o], (dtype)to->type, at, v, false);
  }
}

/* Loads m items of the line, from position `first` on, into the list. */
static void load_items(sorter *s, LLVMValueRef first, LLVMValueRef m) {
  emit_table *table = s->w.e.x.table;
  emit_loop l;
  begin_own(s, &l, m);
  uint32_t mark = emit_table_mark(table);
  store(s, s->list, l.iv, emit_sort_item(&s->line, plus(s, first, l.iv)));
  emit_table_release(table, mark);
  emit_loop_end(s->ir, &l, NULL);
}

/* Stores the elements of the wanted items of the list. */
static void store_wanted(sorter *s) {
  emit_table *table = s->w.e.x.table;
  emit_loop l;
  begin_own(s, &l, size(s, s->p.wanted));
  uint32_t mark = emit_table_mark(table);
  store_elements(s, emit_sort_place(&s->line, load(s, s->list, l.iv)), l.iv);
  emit_table_release(table, mark);
  emit_loop_end(s->ir, &l, NULL);
}

/* --- the first elements --- */

/* Each thread looks at one item, from position `first` of the line on.  The items that are below the limit are added to
 * the m items of the list.  Returns the new number of items. */
static LLVMValueRef gather(sorter *s, LLVMValueRef first, LLVMValueRef m, LLVMValueRef limit) {
  const emit_ir *ir = s->ir;
  LLVMValueRef n = size(s, s->p.n), place = plus(s, first, s->thread), total;
  LLVMValueRef exists = emit_icmp(ir, LLVMIntSLT, place, n);
  LLVMValueRef item = emit_sort_item(&s->line, lesser(s, place, minus(s, n, emit_i64(ir, 1))));
  LLVMValueRef taken = LLVMBuildAnd(ir->builder, exists, emit_icmp(ir, LLVMIntULT, item, limit), "");
  LLVMValueRef before = emit_count_before(&s->w, taken, &total);
  LLVMBasicBlockRef after = emit_if_begin(ir, taken);
  store(s, s->list, plus(s, m, before), item);
  emit_if_end(ir, after);
  return plus(s, m, total);
}

/* Sorts the *m items of the list, and reduces *m to at most the number of wanted items.  *limit becomes the last of
 * them: if the list is full, it has all wanted items; otherwise the line is at its end, and the limit is not used
 * again. */
static void keep_first(sorter *s, LLVMValueRef *m, LLVMValueRef *limit) {
  sort_list(s, *m);
  *m = lesser(s, *m, size(s, s->p.wanted));
  /* *m is at least 1, since all items are below the first limit. */
  *limit = load(s, s->list, minus(s, *m, emit_i64(s->ir, 1)));
}

static void find_first(sorter *s) {
  const emit_ir *ir = s->ir;
  emit_table *table = s->w.e.x.table;
  LLVMValueRef n = size(s, s->p.n);
  emit_loop l;
  emit_loop_begin(ir, &l, emit_i64(ir, 0), n, s->p.threads, false, 2,
                  (LLVMValueRef[]){emit_i64(ir, 0), LLVMConstAllOnes(s->item)});
  uint32_t mark = emit_table_mark(table);
  LLVMValueRef m = gather(s, l.iv, l.carried[0], l.carried[1]), limit = l.carried[1];
  LLVMValueRef full = emit_icmp(ir, LLVMIntSGT, m, emit_i64(ir, s->p.room - s->p.threads));
  LLVMValueRef last = emit_icmp(ir, LLVMIntSGE, plus(s, l.iv, emit_i64(ir, s->p.threads)), n);
  LLVMBasicBlockRef before = emit_here(ir), after = emit_if_begin(ir, LLVMBuildOr(ir->builder, full, last, ""));
  LLVMValueRef kept = m, new_limit = limit;
  keep_first(s, &kept, &new_limit);
  LLVMBasicBlockRef sorted = emit_here(ir);
  emit_if_end(ir, after);
  m = emit_phi2(ir, kept, sorted, m, before);
  limit = emit_phi2(ir, new_limit, sorted, limit, before);
  emit_table_release(table, mark);
  emit_loop_end(ir, &l, (LLVMValueRef[]){m, limit});
}

/* --- kernels --- */

static void sort_short_line(sorter *s) {
  LLVMValueRef n = size(s, s->p.n);
  load_items(s, emit_i64(s->ir, 0), n);
  sort_list(s, n);
  store_wanted(s);
}

/* Sorts a piece of a line in shared memory, and writes it to its place in list 0 of scratch memory, which the first
 * merge reads. */
static void sort_piece(sorter *s, LLVMValueRef line, LLVMValueRef piece) {
  LLVMValueRef room = emit_i64(s->ir, s->p.room), first = LLVMBuildNSWMul(s->ir->builder, piece, room, "");
  LLVMValueRef m = lesser(s, minus(s, size(s, s->p.n), first), room);
  load_items(s, first, m);
  sort_list(s, m);
  LLVMValueRef to = line_list(s, 0, line);
  emit_loop l;
  begin_own(s, &l, m);
  store(s, to, plus(s, first, l.iv), load(s, s->list, l.iv));
  emit_loop_end(s->ir, &l, NULL);
}

/* Writes the kernel of phase 0, in which a block computes each step: it sorts a line, or a piece of one if kernels that
 * merge follow. */
static void write_sort(sorter *s) {
  const emit_ir *ir = s->ir;
  dim_table *t = s->i->parent->module->dims;
  emit_block_team(&s->w, s->p.threads, s->p.threads);
  s->thread = emit_thread_number(&s->w);
  s->list = emit_shared_memory(&s->w, s->item, s->p.fits ? s->p.n : s->p.room, 16);
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntSLT, s->w.begin, s->w.end));
  dim pieces = s->p.merges ? dim_ceildiv(t, s->p.n, s->p.room) : 1;
  LLVMValueRef line = LLVMBuildUDiv(ir->builder, s->w.begin, size(s, pieces), "");
  emit_sort_set_line(&s->line, line);
  if (s->p.merges) {
    sort_piece(s, line, LLVMBuildURem(ir->builder, s->w.begin, size(s, pieces), ""));
  } else if (s->p.front) {
    find_first(s);
    store_wanted(s);
  } else {
    sort_short_line(s);
  }
  emit_if_end(ir, after);
  s->w.info->grid = dim_mul(t, s->p.lines, pieces);
}

/* Returns how many of the m sorted items from x on come before `item`. */
static LLVMValueRef count_before(const sorter *s, LLVMValueRef x, LLVMValueRef m, LLVMValueRef item) {
  const emit_ir *ir = s->ir;
  emit_while l; /* the items before carried[0] come before `item`, those from carried[1] on do not */
  emit_while_begin(ir, &l, 2, (LLVMValueRef[]){emit_i64(ir, 0), m});
  LLVMValueRef from = l.carried[0], to = l.carried[1];
  emit_while_test(ir, &l, emit_icmp(ir, LLVMIntSLT, from, to));
  LLVMValueRef middle = LLVMBuildLShr(ir->builder, plus(s, from, to), emit_i64(ir, 1), "");
  LLVMValueRef before = emit_icmp(ir, LLVMIntULT, load(s, x, middle), item);
  LLVMValueRef next = plus(s, middle, emit_i64(ir, 1));
  emit_while_end(ir, &l, (LLVMValueRef[]){emit_select(ir, before, next, from), emit_select(ir, before, to, middle)});
  return l.carried[0];
}

/* Returns how many items of the line's runs of `run` items in [first, end) come before `item`. */
static LLVMValueRef rank_in_runs(const sorter *s, LLVMValueRef list, int64_t run, LLVMValueRef first, LLVMValueRef end,
                                 LLVMValueRef item) {
  const emit_ir *ir = s->ir;
  LLVMValueRef zero = emit_i64(ir, 0);
  emit_loop l;
  emit_loop_begin(ir, &l, first, end, run, false, 1, &zero);
  LLVMValueRef m = lesser(s, minus(s, end, l.iv), emit_i64(ir, run));
  LLVMValueRef k = count_before(s, emit_sort_address(&s->line, s->item, list, l.iv), m, item);
  emit_loop_end(ir, &l, (LLVMValueRef[]){plus(s, l.carried[0], k)});
  return l.carried[0];
}

/* Moves item number `place` of a line to its position in the merged run.  In the last phase the elements that belong to
 * the item are stored, and not the item. */
static void merge_item(sorter *s, uint32_t phase, LLVMValueRef line, LLVMValueRef place) {
  const emit_ir *ir = s->ir;
  int64_t run = s->p.room;
  for (uint32_t k = 1; k < phase; k++) {
    run *= WAYS;
  }
  bool is_last = phase == s->p.merges;
  LLVMValueRef from = line_list(s, (phase - 1) % 2, line), item = load(s, from, place), n = size(s, s->p.n);
  LLVMValueRef group = emit_i64(ir, run * WAYS);
  LLVMValueRef first = is_last ? emit_i64(ir, 0) : minus(s, place, LLVMBuildURem(ir->builder, place, group, ""));
  LLVMValueRef end = is_last ? n : lesser(s, plus(s, first, group), n);
  LLVMValueRef to = plus(s, first, rank_in_runs(s, from, run, first, end, item));
  if (!is_last) {
    store(s, line_list(s, phase % 2, line), to, item);
    return;
  }
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntSLT, to, size(s, s->p.wanted)));
  store_elements(s, emit_sort_place(&s->line, item), to);
  emit_if_end(ir, after);
}

/* Writes the kernel of a phase that merges, in which a thread computes each step. */
static void write_merge(sorter *s, uint32_t phase) {
  const emit_ir *ir = s->ir;
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntSLT, s->w.begin, s->w.end));
  s->w.uniform = EMIT_DIVERGENT;
  LLVMValueRef n = size(s, s->p.n), line = emit_opaque(ir, LLVMBuildUDiv(ir->builder, s->w.begin, n, ""));
  emit_sort_set_line(&s->line, line);
  merge_item(s, phase, line, LLVMBuildURem(ir->builder, s->w.begin, n, ""));
  emit_if_end(ir, after);
  s->w.info->grid = dim_mul(s->i->parent->module->dims, s->p.lines, s->p.n);
}

status emit_block_sort_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                              const void *config, uint32_t phase, emit_kernel_info *info) {
  sorter s = {.i = i, .config = config, .p = plan_of(i, config)};
  TRY(emit_writer_begin(&s.w, m, name, i, options, s.p.merges > 0, info));
  assert(s.w.e.w->target->execution == EMIT_BLOCKS);
  s.ir = s.w.e.w;
  s.line = emit_sort_line_of(&s.w.e, i);
  s.item = s.line.item;
  if (phase == 0) {
    write_sort(&s);
  } else {
    write_merge(&s, phase);
  }
  emit_writer_end(&s.w);
  return emit_writer_check(&s.w);
}
