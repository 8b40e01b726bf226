/* team_loop.c - loops of reductions whose elements are divided among the threads of a team; see reduction_loop.h.
 *
 * Neighbouring threads visit neighbouring elements, so that their loads are coalesced.  Each thread has several copies
 * of the accumulators, as in loops of one thread. */
#include <string.h>

#include "emit/element/reduction_loop.h"

enum { MOST_COPIES = 4 };

typedef struct team_loop {
  const emit_reduction_loop *f;
  const emit_team *team;
  int copies;
  dim n; /* the number of elements */
} team_loop;

/* Accumulates element p of the space into copy number `copy`. */
static void visit(const team_loop *l, emit_pos p, int copy, LLVMValueRef *acc) {
  const emit_reduction_loop *f = l->f;
  emit_indexer *x = &f->e->x;
  emit_index *flat = emit_index_new(x, 1, &l->n);
  emit_axis_at(flat, 0, p);
  f->step(f, emit_index_reshape(x, flat, f->rank, f->dims), acc + f->n * copy);
}

/* Writes the loop over the positions `from`, from + copies * team->threads and so on, below `to`.  Each iteration has
 * one step for each of the first `copies` copies of the accumulators; these steps are team->threads positions apart.
 * `runs` is as for emit_loop_begin. */
static void strided_loop(const team_loop *l, LLVMValueRef from, LLVMValueRef to, int copies, bool runs,
                         LLVMValueRef *acc) {
  emit_indexer *x = &l->f->e->x;
  int carried = l->f->n * l->copies;
  emit_loop loop;
  LLVMValueRef next[EMIT_MAX_CARRIED];
  uint32_t mark = emit_table_mark(x->table);
  emit_loop_begin(x->w, &loop, from, to, l->team->threads * copies, runs, carried, acc);
  memcpy(next, loop.carried, (size_t)carried * sizeof *next);
  for (int c = 0; c < copies; c++) {
    visit(l, emit_pos_add_const(x, emit_pos_at(loop.iv, 1), c * l->team->threads), c, next);
  }
  emit_table_release(x->table, mark);
  emit_loop_end(x->w, &loop, next);
  memcpy(acc, loop.carried, (size_t)carried * sizeof *acc);
}

/* Accumulates the thread's part: with all copies of the accumulators as long as all threads have an element for each
 * copy, then with one copy. */
static void run_part(const team_loop *l, LLVMValueRef *acc) {
  emit_indexer *x = &l->f->e->x;
  LLVMBuilderRef b = x->w->builder;
  LLVMValueRef n = emit_size(x, l->n), first = l->team->number;
  int64_t stride = l->team->threads * l->copies;
  LLVMValueRef main = LLVMBuildAnd(b, n, emit_i64(x->w, -stride), ""); /* teams and copies are powers of two */
  bool known = dim_is_const(l->n);
  if (!known || l->n >= stride) {
    strided_loop(l, first, main, l->copies, known, acc);
  }
  if (!known || l->n % stride) {
    strided_loop(l, LLVMBuildNSWAdd(b, main, first, ""), n, 1, false, acc);
  }
}

/* Returns how many copies of the accumulators a thread has.  Several copies hide the latency of loads; there are fewer
 * if the loop accumulates many values. */
static int choose_copies(const emit_reduction_loop *f, const emit_team *t, dim n) {
  int copies = f->n == 0 ? 1 : f->n <= 2 ? MOST_COPIES : 2;
  while (copies > 1 && dim_is_const(n) && n < 2 * copies * t->threads) {
    copies /= 2;
  }
  return copies;
}

void emit_team_loop_run(emit_reduction_loop *f, LLVMValueRef *out) {
  emit_element *e = f->e;
  emit_team *team = e->team;
  dim n = emit_dims_product(&e->x, f->dims, 0, f->rank);
  team_loop l = {f, team, choose_copies(f, team, n), n};
  LLVMValueRef acc[EMIT_MAX_CARRIED];
  for (int k = 0; k < f->n * l.copies; k++) {
    acc[k] = f->init[k % f->n];
  }
  e->team = NULL;
  run_part(&l, acc);
  e->team = team;
  for (int c = 1; c < l.copies; c++) {
    f->combine(f, acc, acc + f->n * c);
  }
  if (f->n) {
    team->join(team, f, acc);
    memcpy(out, acc, (size_t)f->n * sizeof *out);
  }
}
