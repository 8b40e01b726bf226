/* team.c - teams of threads, and the kernels of reductions and of dots that are computed by them; see team.h.
 *
 * A row is reduced by a warp, or by a block if it is long.  If columns are reduced, a block takes as many of them as a
 * warp has lanes: each warp takes part of the rows, so that its loads are coalesced.  The values that the threads of a
 * warp have accumulated are combined by exchanges, in the form of a binary tree; the values of several warps are
 * combined through shared memory.
 *
 * A dot is a reduction, too.  Its kernel here is for results of few rows, as in a step of a decoder, where reading the
 * weights takes most of the time.  The weights for one column of the result are a row or a column of the weights in
 * memory, so that they are read like a row or a column that is reduced. */
#include "emit/kernel/team.h"

#include <assert.h>

#include "emit/element/loop_plan.h"
#include "emit/element/reduction_loop.h"
#include "emit/element/view.h"
#include "emit/kernel/block.h"
#include "hlo/analysis/row_space.h"

enum {
  LEAST_ROW = 16,         /* shorter rows are computed by a thread each */
  MOST_WARP_ROW = 1024,   /* longer rows are computed by a block each */
  MOST_BLOCK_ROW = 16384, /* longer rows are computed by larger blocks */
  BLOCK_WARPS = 8,
  LARGE_BLOCK_WARPS = 32,
  LEAST_COLUMN = 32, /* shorter columns are computed by a thread each */
  TALL_COLUMN = 512, /* blocks of taller columns have more warps */
  TALL_COLUMN_WARPS = 16,
  FEW_COLUMNS = 16,      /* fewer columns are not worth the lanes of a warp, and are reduced like rows */
  MANY_COLUMNS = 1 << 17 /* this many columns keep a GPU busy if a thread computes each */
};

/* What the threads of a team need to combine their values. */
typedef struct joint {
  emit_writer *w;
  int warps; /* the number of warps of the team, a power of two; if columns are reduced, the number of warps of the
                block, each of which has one thread of every column's team */
  LLVMValueRef shared[EMIT_REDUCTION_LOOP_VALUES]; /* for each accumulated value, places of 8 bytes in shared memory:
                                                      one for each warp (join_block) or each thread (join_columns); NULL
                                                      before the first join */
} joint;

/* --- joining --- */

/* Combines the values of each group of n neighbouring lanes, and gives the result to every lane of the group. n is a
 * power of two. */
static void join_lanes(joint *j, const emit_reduction_loop *f, int n, LLVMValueRef *acc) {
  for (int half = n / 2; half >= 1; half /= 2) {
    LLVMValueRef other[EMIT_REDUCTION_LOOP_VALUES];
    for (int k = 0; k < f->n; k++) {
      other[k] = emit_lane_xor(j->w, acc[k], (unsigned)half);
    }
    f->combine(f, acc, other);
  }
}

/* Allocates `n` places for each accumulated value unless an earlier join of the team has done so. */
static void reserve(joint *j, const emit_reduction_loop *f, int64_t n) {
  for (int k = 0; k < f->n; k++) {
    j->shared[k] = j->shared[k] ? j->shared[k] : emit_shared_memory(j->w, j->w->e.w->i64, n, 8);
  }
}

static LLVMValueRef place_of(const joint *j, int k, LLVMTypeRef type, LLVMValueRef at) {
  return LLVMBuildInBoundsGEP2(j->w->e.w->builder, type, j->shared[k], &at, 1, "");
}

static void put(const joint *j, const emit_reduction_loop *f, LLVMValueRef at, const LLVMValueRef *acc) {
  for (int k = 0; k < f->n; k++) {
    LLVMBuildStore(j->w->e.w->builder, acc[k], place_of(j, k, LLVMTypeOf(acc[k]), at));
  }
}

static void get(const joint *j, const emit_reduction_loop *f, LLVMValueRef at, LLVMValueRef *acc) {
  for (int k = 0; k < f->n; k++) {
    LLVMTypeRef type = LLVMTypeOf(acc[k]);
    acc[k] = LLVMBuildLoad2(j->w->e.w->builder, type, place_of(j, k, type, at), "");
  }
}

static void join_warp(emit_team *t, const emit_reduction_loop *f, LLVMValueRef *acc) {
  join_lanes(t->data, f, EMIT_WARP, acc);
}

/* Each warp leaves its value in shared memory.  Each lane then takes the value of one warp, and the lanes are combined.
 * After the last barrier, the shared memory may be used for the next values. */
static void join_block(emit_team *t, const emit_reduction_loop *f, LLVMValueRef *acc) {
  joint *j = t->data;
  const emit_ir *ir = j->w->e.w;
  LLVMValueRef lane = emit_lane_number(j->w);
  reserve(j, f, j->warps);
  join_lanes(j, f, EMIT_WARP, acc);
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntEQ, lane, emit_i64(ir, 0)));
  put(j, f, emit_warp_number(j->w), acc);
  emit_if_end(ir, after);
  emit_barrier(j->w);
  get(j, f, LLVMBuildAnd(ir->builder, lane, emit_i64(ir, j->warps - 1), ""), acc);
  emit_barrier(j->w);
  join_lanes(j, f, j->warps, acc);
}

/* Combines, for each lane number, the values of the threads with that number in all warps.  Each thread leaves its
 * value in shared memory, in a row for each warp that is one place longer than needed, so that a column lies in
 * different banks.  Then the threads of a warp take some whole columns, and leave the combined values in those columns
 * of the first row, which no other warp has read. */
static void join_columns(emit_team *t, const emit_reduction_loop *f, LLVMValueRef *acc) {
  enum { PITCH = EMIT_WARP + 1 };
  joint *j = t->data;
  const emit_ir *ir = j->w->e.w;
  LLVMBuilderRef b = ir->builder;
  LLVMValueRef lane = emit_lane_number(j->w), warp = emit_warp_number(j->w), pitch = emit_i64(ir, PITCH);
  LLVMValueRef own = LLVMBuildNSWAdd(b, LLVMBuildNSWMul(b, warp, pitch, ""), lane, "");
  LLVMValueRef row = LLVMBuildAnd(b, lane, emit_i64(ir, j->warps - 1), "");
  LLVMValueRef first = LLVMBuildNSWMul(b, warp, emit_i64(ir, EMIT_WARP / j->warps), "");
  LLVMValueRef column = LLVMBuildNSWAdd(b, first, LLVMBuildUDiv(b, lane, emit_i64(ir, j->warps), ""), "");
  LLVMValueRef turned = LLVMBuildNSWAdd(b, LLVMBuildNSWMul(b, row, pitch, ""), column, "");
  reserve(j, f, (int64_t)j->warps * PITCH);
  put(j, f, own, acc);
  emit_barrier(j->w);
  get(j, f, turned, acc);
  join_lanes(j, f, j->warps, acc);
  LLVMBasicBlockRef after = emit_if_begin(ir, emit_icmp(ir, LLVMIntEQ, row, emit_i64(ir, 0)));
  put(j, f, column, acc);
  emit_if_end(ir, after);
  emit_barrier(j->w);
  get(j, f, lane, acc);
  emit_barrier(j->w);
}

/* --- teams --- */

static joint *new_joint(emit_writer *w, int warps) {
  joint *j = ARENA_NEW(w->e.w->arena, joint);
  j->w = w;
  j->warps = warps;
  return j;
}

static void set_team(emit_writer *w, int64_t threads, LLVMValueRef number, joint *j,
                     void (*join)(emit_team *, const emit_reduction_loop *, LLVMValueRef *)) {
  w->e.team = ARENA_NEW(w->e.w->arena, emit_team);
  *w->e.team = (emit_team){.data = j, .threads = threads, .number = number, .join = join};
  w->stores = emit_icmp(w->e.w, LLVMIntEQ, number, emit_i64(w->e.w, 0));
}

bool emit_row_team(emit_writer *w, dim n) {
  if (w->e.w->target->execution != EMIT_BLOCKS || (dim_is_const(n) && n < LEAST_ROW)) {
    return false;
  }
  if (dim_is_const(n) && n <= MOST_WARP_ROW) {
    emit_block_team(w, 0, EMIT_WARP);
    set_team(w, EMIT_WARP, emit_lane_number(w), new_joint(w, 1), join_warp);
    return true;
  }
  int warps = dim_is_const(n) && n > MOST_BLOCK_ROW ? LARGE_BLOCK_WARPS : BLOCK_WARPS;
  emit_block_team(w, (uint32_t)(warps * EMIT_WARP), (uint32_t)(warps * EMIT_WARP));
  set_team(w, warps * EMIT_WARP, emit_thread_number(w), new_joint(w, warps), join_block);
  return true;
}

static void begin_column_team(emit_writer *w, dim n) {
  int warps = dim_is_const(n) && n >= TALL_COLUMN ? TALL_COLUMN_WARPS : BLOCK_WARPS;
  emit_block_team(w, (uint32_t)(warps * EMIT_WARP), (uint32_t)(warps * EMIT_WARP));
  set_team(w, warps, emit_warp_number(w), new_joint(w, warps), join_columns);
}

void emit_team_end(emit_writer *w) {
  w->e.team = NULL;
  w->stores = NULL;
}

/* --- kernels of reductions --- */

/* The search for the reductions from which the results of a kernel are computed. */
typedef struct search {
  const emit_writer *w;
  const hlo_instr *reduction; /* NULL if none was found yet */
  bool rows;                  /* whether the innermost dimension is reduced */
  dim n;                      /* the number of elements that are reduced to one */
  dim total;                  /* the number of elements of a result */
  bool unsuited;
  uint32_t n_seen, cap;
  const hlo_instr **seen;
} search;

static dim reduced_elements(const search *s, const hlo_instr *i) {
  const emit_indexer *x = &s->w->e.x;
  const shape *of = hlo_shape(i->operands[0]);
  if (i->op == HLO_DOT) {
    dim *sums = ARENA_NEW_N(x->w->arena, dim, SHAPE_MAX_RANK);
    int n_sums = emit_contracted_extents(i, sums);
    return emit_dims_product(x, sums, 0, n_sums);
  }
  if (i->op == HLO_ARG_REDUCE) {
    return of->dims[hlo_int(i, HLO_ATTR_DIMENSION)];
  }
  dim *dims = ARENA_NEW_N(x->w->arena, dim, SHAPE_MAX_RANK);
  uint32_t n = hlo_n_ints(i, HLO_ATTR_DIMENSIONS);
  for (uint32_t k = 0; k < n; k++) {
    dims[k] = of->dims[hlo_ints(i, HLO_ATTR_DIMENSIONS)[k]];
  }
  return emit_dims_product(x, dims, 0, (int)n);
}

/* Returns true if neighbouring elements in memory are reduced to one element.  For a dot, the operand that has the
 * result's innermost dimension decides. */
static bool reduces_rows(const hlo_instr *i) {
  if (i->op != HLO_DOT) {
    return emit_reduces_rows(i);
  }
  uint32_t n = hlo_n_ints(i, HLO_ATTR_RHS_CONTRACT), batch = hlo_n_ints(i, HLO_ATTR_RHS_BATCH);
  bool second = hlo_rank(i->operands[1]) > (int)(n + batch);
  hlo_attr_id contract = second ? HLO_ATTR_RHS_CONTRACT : HLO_ATTR_LHS_CONTRACT;
  return n && emit_is_innermost(i->operands[second], (int)hlo_ints(i, contract)[n - 1]);
}

/* Adds a reduction to the search.  Sets `unsuited` if the reduction differs from an earlier one in `rows` or `n`, or
 * has not as many elements as the results. */
static void take_reduction(search *s, const hlo_instr *i) {
  const shape *result = &i->shapes[0];
  dim n = reduced_elements(s, i);
  bool rows = reduces_rows(i);
  s->unsuited |= emit_dims_product(&s->w->e.x, result->dims, 0, result->rank) != s->total;
  s->unsuited |= s->reduction && (s->n != n || s->rows != rows);
  s->reduction = i;
  s->n = n;
  s->rows = rows;
}

static bool was_seen(search *s, const hlo_instr *i) {
  for (uint32_t k = 0; k < s->n_seen; k++) {
    if (s->seen[k] == i) {
      return true;
    }
  }
  *ARENA_PUSH(s->w->e.w->arena, s->seen, s->n_seen, s->cap) = i;
  return false;
}

static void visit(search *s, hlo_value v) {
  const hlo_instr *i = v.def;
  if (emit_is_input(&s->w->e, v) || hlo_literal(v) || was_seen(s, i)) {
    return;
  }
  if (i->op == HLO_REDUCE || i->op == HLO_ARG_REDUCE || i->op == HLO_DOT) {
    take_reduction(s, i);
    return;
  }
  s->unsuited |= hlo_info(i)->kind == HLO_CONTRACTION || hlo_info(i)->kind == HLO_WINDOW;
  for (uint32_t k = 0; hlo_is_position_wise(i) && k < i->n_operands; k++) {
    visit(s, i->operands[k]);
  }
}

/* Returns true if a team should compute each element of the results. */
static bool find_reduction(const emit_writer *w, search *s) {
  const shape *result = hlo_shape(w->roots[0]);
  *s = (search){.w = w, .total = emit_dims_product(&w->e.x, result->dims, 0, result->rank)};
  for (uint32_t k = 0; k < w->n_results; k++) {
    visit(s, w->roots[k]);
  }
  if (!s->reduction || s->unsuited || (dim_is_const(s->n) && s->n < LEAST_ROW)) {
    return false;
  }
  bool many = dim_is_const(s->total) && s->total >= MANY_COLUMNS, small = dim_is_const(s->n) && s->n < LEAST_COLUMN;
  return s->rows || !(many || small);
}

bool emit_is_team_reduction(const emit_writer *w) {
  search s;
  return w->e.w->target->execution == EMIT_BLOCKS && !w->place && find_reduction(w, &s);
}

static void store_element(emit_writer *w, const void *data, const emit_index *at) {
  (void)data;
  emit_store_roots(w, at);
}

/* Writes a step of columns: lane l of each warp computes element number 32 * step + l.  If there is no such element, it
 * computes the last one and does not store it. */
static void store_columns(emit_writer *w, const void *data, const emit_index *at) {
  emit_indexer *x = &w->e.x;
  const emit_ir *ir = w->e.w;
  LLVMBuilderRef b = ir->builder;
  const dim *total = data;
  LLVMValueRef step = emit_index_dim(x, at, 0).base, n = emit_size(x, *total);
  LLVMValueRef first = LLVMBuildNSWMul(b, step, emit_i64(ir, EMIT_WARP), "");
  LLVMValueRef column = LLVMBuildNSWAdd(b, first, emit_lane_number(w), "");
  w->stores = LLVMBuildAnd(b, w->stores, emit_icmp(ir, LLVMIntSLT, column, n), "");
  LLVMValueRef last = LLVMBuildNSWSub(b, n, emit_i64(ir, 1), "");
  emit_index *element = emit_index_new(x, 1, total);
  emit_axis_at(element, 0, emit_pos_at(emit_intrinsic2(ir, "llvm.smin", column, last), 1));
  emit_store_roots(w, element);
}

void emit_write_team_reduction(emit_writer *w) {
  search s;
  bool team = find_reduction(w, &s), few = dim_is_const(s.total) && s.total < FEW_COLUMNS;
  assert(team);
  (void)team;
  dim *extents = ARENA_NEW_N(w->e.w->arena, dim, 2);
  extents[0] = s.total;
  extents[1] = dim_ceildiv(w->e.x.sizes->table, s.total, EMIT_WARP);
  if (s.rows || few) {
    (void)emit_row_team(w, s.n);
    emit_nest(w, 1, extents, 1, false, store_element, NULL);
  } else {
    begin_column_team(w, s.n);
    emit_nest(w, 1, extents + 1, 1, false, store_columns, extents);
  }
  emit_team_end(w);
}
