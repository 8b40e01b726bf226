/* row_fusion.c - kernels of row-wise fusions (hlo/analysis/row_space.h): softmax, normalisations.
 *
 * A step of the grid is a row, or a vector of neighbouring rows.  It consists of phases, which are loops over the row.
 * Each phase computes the reductions whose operands are known by then; the last phase stores the results.  Values that
 * exist once for each row are computed between the phases.  If several phases need the elements of a full array (one
 * with a value for each element of the rows), they are computed again if that is cheap.  Otherwise the current row of
 * the array is stored in the first of these phases: in the array's own buffer if the array is a result, on the stack if
 * the length of a row is a constant, or in the buffer of another result that is not written yet.
 *
 * On blocks of threads, a team of threads computes a row if it is long enough (team.h).  In all phases a thread visits
 * the same elements of the row, so that it reads only what it has stored itself. */
#include "emit/element/elementwise.h"
#include "emit/element/loop_plan.h"
#include "emit/element/reduce.h"
#include "emit/kernel/team.h"
#include "emit/kernel/writer.h"
#include "emit/math/math.h"
#include "hlo/analysis/queries.h"
#include "hlo/analysis/row_space.h"
#include "hlo/analysis/softmax.h"

enum { STACK_BYTES = 16384 };

/* A full array (one with a value for each element of the rows) of which the current row is stored in memory by the
 * first phase that needs it.  Phases are the kernel's loops over the row. */
typedef struct stored {
  hlo_value value;
  int phase; /* the phase that writes the row; later phases read it */
  LLVMValueRef base;
  bool whole; /* true if `base` is the beginning of a whole array; false if it is memory for one row or, with
                 `columns`, for a row of vectors */
} stored;

typedef struct fact {
  const hlo_instr *instr;
  int level;            /* the number of phases (loops over the row) that must run before the instruction's value is
                           known */
  uint64_t phases;      /* a bit for each phase that needs the instruction's value for each element of the row */
  bool hot;             /* whether the instruction depends on a reduction */
  emit_pair known;      /* for a hot instruction with one value for each row: that value, once it has been computed */
  LLVMValueRef inverse; /* 1 / known while results that divide by it are written with inverses; otherwise NULL */
  bool exponential, quotient, compares; /* hlo_is_softmax_exponential, hlo_is_softmax_quotient, and
                                           hlo_maximum_may_ignore_nan, in f32 */
} fact;

struct emit_row_fusion {
  emit_writer *w;
  hlo_row_space space;
  uint32_t n_facts, n_stored;
  fact *facts;
  stored *stored;
  int phase, last; /* the phase that is being written, and the last one, which stores the results */
  int n_gone;
  dim gone[HLO_ROW_DIMS];
  bool columns; /* whether the elements of neighbouring rows are next to each other in memory; each lane then computes a
                   row, `vector` rows at once */
  int vector;
  bool tail_first; /* whether the last phase may read memory that it overwrites; it then computes the last vector of a
                      row first */
  const emit_index *at; /* the index of the row */
};

static fact *fact_of(const emit_row_fusion *r, const hlo_instr *i) {
  for (uint32_t k = 0; k < r->n_facts; k++) {
    if (r->facts[k].instr == i) {
      return &r->facts[k];
    }
  }
  return NULL;
}

/* --- the instructions of the body --- */

static void find_levels(emit_row_fusion *r, const hlo_computation *c) {
  for (const hlo_instr *i = c->first; i; i = i->next) {
    r->n_facts++;
  }
  r->facts = ARENA_NEW_N(r->w->e.w->arena, fact, r->n_facts);
  uint32_t n = 0;
  for (const hlo_instr *i = c->first; i; i = i->next) {
    fact f = {.instr = i};
    for (uint32_t k = 0; k < i->n_operands; k++) {
      const fact *x = fact_of(r, i->operands[k].def);
      f.level = x->level > f.level ? x->level : f.level;
      f.hot |= x->hot;
    }
    f.level += i->op == HLO_REDUCE;
    f.hot |= i->op == HLO_REDUCE;
    if (i->shapes[0].type == DTYPE_F32) {
      f.exponential = hlo_is_softmax_exponential(&r->space, i);
      f.quotient = hlo_is_softmax_quotient(&r->space, i);
      f.compares = i->op == HLO_REDUCE && hlo_int(i, HLO_ATTR_REDUCER) == HLO_REDUCE_MAX &&
                   hlo_maximum_may_ignore_nan(&r->space, i);
    }
    r->last = f.level > r->last ? f.level : r->last;
    r->facts[n++] = f;
  }
}

static uint64_t bit(int k) { return (uint64_t)1 << k; }

static bool is_full_root(const emit_row_fusion *r, uint32_t k) {
  return hlo_is_full(&r->space, hlo_shape(r->w->roots[k]));
}

/* Returns true if each element of i is used only for the element at the same position of the same row.  In a team this
 * is required if i is stored, since a thread may read again only what it has stored itself. */
static bool stays_in_place(const emit_row_fusion *r, const hlo_instr *i) {
  for (uint32_t k = 0; k < r->n_facts; k++) {
    const hlo_instr *user = r->facts[k].instr;
    bool uses = false;
    for (uint32_t j = 0; j < user->n_operands; j++) {
      uses |= user->operands[j].def == i;
    }
    if (uses && user->op != HLO_REDUCE && !hlo_is_position_wise(user)) {
      return false;
    }
  }
  return true;
}

/* Returns true if several phases (loops over the row) need the values of f for all elements of the row, and computing
 * them again in each of these phases would take long.  They are then computed once and stored. */
static bool is_dear(const emit_row_fusion *r, const fact *f) {
  const hlo_instr *i = f->instr;
  return hlo_info(i)->kind == HLO_ELEMENTWISE && !hlo_is_cheap(i) && hlo_is_full(&r->space, &i->shapes[0]) &&
         (f->phases & (f->phases - 1)) && (!r->w->e.team || stays_in_place(r, i));
}

/* Returns how many elements a row would take on the stack, or 0 if rows cannot be stored there. */
static int64_t stack_elements(const emit_row_fusion *r) {
  dim length = r->space.length;
  return dim_is_const(length) && length <= STACK_BYTES && !r->w->e.team ? length * (r->columns ? r->vector : 1) : 0;
}

/* Chooses the memory in which the values of f for a row are stored for later phases; the member `base` is NULL if there
 * is no room. *stack is the number of bytes left on the stack. *taken has a bit for each result whose buffer holds the
 * row of another value until the last phase writes the result. */
static stored place_for(emit_row_fusion *r, const fact *f, int64_t *stack, uint64_t *taken) {
  emit_writer *w = r->w;
  const emit_ir *ir = w->e.w;
  stored s = {.value = hlo_result((hlo_instr *)f->instr, 0), .phase = __builtin_ctzll(f->phases)};
  dtype t = hlo_type(s.value);
  for (uint32_t k = 0; k < w->n_results; k++) {
    /* whether the result's buffer is already taken for the row of another value, which is needed until the result is
     * written */
    bool lent = k < 64 && (*taken & bit((int)k));
    if (hlo_value_equal(w->roots[k], s.value) && !w->shared[k] && !lent) {
      s.base = w->results[k];
      s.whole = true;
      return s;
    }
  }
  int64_t elements = stack_elements(r);
  if (elements && elements * (int64_t)dtype_bytes(t) <= *stack) {
    *stack -= elements * (int64_t)dtype_bytes(t);
    s.base = emit_row_memory(ir, t, elements);
    return s;
  }
  for (uint32_t k = 0; k < w->n_results && k < 64; k++) {
    /* whether root k itself is a value that is stored for later phases; its buffer then holds no other value */
    bool own = false;
    for (uint32_t j = 0; j < r->n_facts; j++) {
      own |= is_dear(r, &r->facts[j]) && r->facts[j].instr == w->roots[k].def;
    }
    if (!own && !w->shared[k] && !(*taken & bit((int)k)) && is_full_root(r, k) && hlo_type(w->roots[k]) == t) {
      *taken |= bit((int)k);
      s.base = w->results[k];
      s.whole = r->tail_first = true;
      return s;
    }
  }
  return s;
}

/* Determines, from the results to the operands, in which phases (loops over the row) each instruction is needed, and
 * which instructions' values are stored for later phases.  Such an instruction is computed only in the first phase that
 * needs it. */
static void find_stored(emit_row_fusion *r) {
  int64_t room = r->w->e.w->target->stack, stack = room < STACK_BYTES ? room : STACK_BYTES;
  uint64_t taken = 0;
  r->stored = ARENA_NEW_N(r->w->e.w->arena, stored, r->n_facts);
  for (uint32_t k = 0; k < r->w->n_results; k++) {
    fact_of(r, r->w->roots[k].def)->phases |= is_full_root(r, k) ? bit(r->last) : 0;
    r->tail_first |= r->w->shared[k];
  }
  for (uint32_t k = r->n_facts; k-- > 0;) {
    fact *f = &r->facts[k];
    uint64_t phases = f->phases;
    if (is_dear(r, f)) {
      stored s = place_for(r, f, &stack, &taken);
      if (s.base) {
        r->stored[r->n_stored++] = s;
        phases = bit(s.phase);
      }
    }
    for (uint32_t j = 0; j < f->instr->n_operands; j++) {
      fact *x = fact_of(r, f->instr->operands[j].def);
      x->phases |= f->instr->op == HLO_REDUCE ? bit(f->level - 1) : phases;
    }
  }
}

/* --- indices --- */

/* Returns the index in a full array of the element of the current row at index r. r has one position for each reduced
 * dimension. */
static const emit_index *place_in_row(emit_element *e, const emit_row_fusion *rows, const emit_index *r) {
  const hlo_row_space *s = &rows->space;
  emit_index *x = emit_index_new(&e->x, s->rank, s->dims);
  for (int k = 0, kept = 0, gone = 0; k < s->rank; k++) {
    if (s->gone[k]) {
      emit_axis_from(x, k, r, gone++);
    } else {
      emit_axis_from(x, k, rows->at, kept++);
    }
  }
  return x;
}

static const emit_index *reductions_place(emit_element *e, const emit_reductions *g, const emit_index *r) {
  return place_in_row(e, g->data, r);
}

/* Returns the position of the element at i, an index of a full array (hlo_is_full), in the memory where s is stored. */
static emit_pos stored_at(emit_element *e, const emit_row_fusion *r, const stored *s, const emit_index *i) {
  if (s->whole) {
    return emit_index_linear(&e->x, i);
  } /* otherwise the length of a row is a constant */
  const hlo_row_space *space = &r->space;
  const emit_index *x = emit_index_reshape(&e->x, i, space->rank, space->dims);
  emit_pos at = emit_pos_const(&e->x, 0);
  int64_t stride = 1;
  for (int k = space->rank - 1; k >= 0; k--) {
    if (space->gone[k]) {
      at = emit_pos_add(&e->x, at, emit_pos_scale(&e->x, emit_index_dim(&e->x, x, k), stride));
      stride *= space->dims[k];
    }
  }
  if (r->columns && e->x.lanes > 1) {
    at = emit_pos_along(emit_pos_scale(&e->x, at, e->x.lanes), e->x.lanes);
  }
  return at;
}

/* --- division of a row by a number --- */

/* Returns the divisor if i divides a row in f32 by a value that exists once for each row and has been computed already,
 * and the target has fused multiply-adds.  Otherwise returns NULL. */
static fact *divisor_of(const emit_row_fusion *r, const hlo_instr *i) {
  if (i->op != HLO_DIV || i->shapes[0].type != DTYPE_F32 || !r->w->e.w->target->fma) {
    return NULL;
  }
  const hlo_instr *spread = i->operands[1].def;
  fact *f = spread->op == HLO_BROADCAST ? fact_of(r, spread->operands[0].def) : NULL;
  return f && f->known.v ? f : NULL;
}

/* Returns v, which is a number for each row, in all lanes. */
static LLVMValueRef in_lanes(const emit_element *e, LLVMValueRef v) {
  return emit_lanes(v) ? v : emit_splat_pair(e, (emit_pair){v, NULL}).v;
}

static emit_pair divide(emit_element *e, const fact *i, const fact *divisor, emit_pair x) {
  LLVMValueRef by = in_lanes(e, divisor->known.v), inverse = in_lanes(e, divisor->inverse);
  LLVMValueRef q = i->quotient ? emit_divide_small(e->w, x.v, by, inverse) : emit_divide(e->w, x.v, by, inverse);
  return (emit_pair){q, NULL};
}

/* Computes the inverses of the divisors of the results.  *fits becomes an i1: whether all divisors are far enough from
 * zero and infinity; NULL if there are no divisors. */
static void invert(emit_row_fusion *r, LLVMValueRef *fits) {
  const emit_ir *w = r->w->e.w;
  *fits = NULL;
  for (uint32_t k = 0; k < r->n_facts; k++) {
    fact *d = r->facts[k].phases & bit(r->last) ? divisor_of(r, r->facts[k].instr) : NULL;
    if (!d || d->inverse) {
      continue;
    }
    LLVMValueRef x = d->known.v, size = emit_intrinsic1(w, "llvm.fabs", x);
    LLVMValueRef low = emit_fcmp(w, LLVMRealUGT, emit_f(x, EMIT_LEAST_DIVISOR), size),
                 high = emit_fcmp(w, LLVMRealUGT, size, emit_f(x, EMIT_MOST_DIVISOR));
    LLVMValueRef out = emit_any(w, LLVMBuildOr(w->builder, low, high, "")), fine = LLVMBuildNot(w->builder, out, "");
    *fits = *fits ? LLVMBuildAnd(w->builder, *fits, fine, "") : fine;
    d->inverse = LLVMBuildFDiv(w->builder, emit_f(x, 1), x, "");
  }
}

/* Returns where an earlier phase has stored the row of v, or NULL. */
static const stored *stored_before(const emit_row_fusion *r, hlo_value v) {
  for (uint32_t k = 0; k < r->n_stored; k++) {
    if (hlo_value_equal(r->stored[k].value, v) && r->stored[k].phase < r->phase) {
      return &r->stored[k];
    }
  }
  return NULL;
}

bool emit_row_has(const emit_row_fusion *r, hlo_value v) {
  const fact *f = fact_of(r, v.def);
  return (f && f->known.v) || stored_before(r, v);
}

bool emit_row_divisor(const emit_row_fusion *r, hlo_value v, LLVMValueRef *by, LLVMValueRef *inverse) {
  const fact *d = emit_row_has(r, v) ? NULL : divisor_of(r, v.def);
  if (!d || !d->inverse) {
    return false;
  }
  *by = in_lanes(&r->w->e, d->known.v);
  *inverse = in_lanes(&r->w->e, d->inverse);
  return true;
}

bool emit_row_value(const emit_row_fusion *r, hlo_value v, const emit_index *i, emit_pair *out) {
  emit_element *e = &r->w->e;
  const fact *f = fact_of(r, v.def);
  if (f && f->known.v) {
    bool same = emit_lanes(f->known.v) || e->x.lanes == 1;
    *out = same ? f->known : emit_splat_pair(e, f->known);
    return true;
  }
  const stored *s = stored_before(r, v);
  if (s) {
    *out = emit_load(e, s->base, hlo_type(v), stored_at(e, r, s, i), true, false);
    return true;
  }
  const fact *d = divisor_of(r, v.def);
  if (d && d->inverse) {
    *out = divide(e, f, d, emit_value(e, v.def->operands[0], i));
    return true;
  }
  if (f && f->exponential) {
    *out = (emit_pair){emit_exp_at_most_1(e->w, emit_value(e, v.def->operands[0], i).v), NULL};
    return true;
  }
  return false;
}

/* --- the phases of a row --- */

static emit_pair value_at(emit_element *e, hlo_value v, const emit_index *place) {
  return emit_value(e, v, emit_index_reshape(&e->x, place, hlo_rank(v), hlo_shape(v)->dims));
}

static void store_first(emit_row_fusion *r, const emit_index *place) {
  emit_element *e = &r->w->e;
  for (uint32_t k = 0; k < r->n_stored; k++) {
    const stored *s = &r->stored[k];
    if (s->phase == r->phase) {
      emit_pair v = value_at(e, s->value, place);
      emit_store(e, s->base, hlo_type(s->value), stored_at(e, r, s, place), v, true);
    }
  }
}

static void phase_step(const emit_reduction_loop *f, const emit_index *at, LLVMValueRef *acc) {
  const emit_reductions *g = f->data;
  emit_reductions_step(f, at, acc);
  store_first((emit_row_fusion *)g->data, place_in_row(f->e, g->data, at));
}

static void set_space(const emit_row_fusion *r, emit_reduction_loop *f) {
  f->rows = !r->columns;
  f->rank = r->n_gone;
  for (int k = 0; k < r->n_gone; k++) {
    f->dims[k] = r->gone[k];
  }
}

/* Writes one loop over the row that computes reductions of this phase: of those in r->facts[from] and after it, as many
 * as fit in one loop.  Returns the index in r->facts from which to continue. */
static uint32_t reduce_some(emit_row_fusion *r, uint32_t from) {
  emit_element *e = &r->w->e;
  emit_reductions g = {.place = reductions_place, .data = r};
  int parts = 0;
  uint32_t k = from;
  for (; k < r->n_facts; k++) {
    const hlo_instr *i = r->facts[k].instr;
    if (i->op != HLO_REDUCE || r->facts[k].level != r->phase + 1) {
      continue;
    }
    parts += emit_reduction_parts(i);
    if (parts > EMIT_REDUCTION_LOOP_VALUES || g.n == EMIT_REDUCTION_LOOP_VALUES / 2) {
      break;
    }
    g.compares[g.n] = r->facts[k].compares;
    g.of[g.n++] = i;
  }
  if (g.n) {
    LLVMValueRef out[EMIT_REDUCTION_LOOP_VALUES];
    emit_reduction_loop f = emit_reductions_loop(e, &g);
    f.step = phase_step;
    f.cooperative = true;
    set_space(r, &f);
    emit_reduction_loop_run(&f, out);
    for (int j = 0; j < g.n; j++) {
      fact_of(r, g.of[j])->known = emit_reductions_value(e, &g, j, out);
    }
  }
  return k;
}

/* Computes the values that exist once for each row and whose operands the current phase has completed. */
static void compute_kept(emit_row_fusion *r) {
  for (uint32_t k = 0; k < r->n_facts; k++) {
    fact *f = &r->facts[k];
    if (f->hot && f->level == r->phase + 1 && f->instr->op != HLO_REDUCE &&
        hlo_is_kept(&r->space, &f->instr->shapes[0])) {
      f->known = value_at(&r->w->e, hlo_result((hlo_instr *)f->instr, 0), r->at);
    }
  }
}

/* --- storing the results --- */

/* Returns true if an earlier phase has written the result: its row was stored in its own buffer for later phases. */
static bool is_written(const emit_row_fusion *r, uint32_t result) {
  for (uint32_t k = 0; k < r->n_stored; k++) {
    const stored *s = &r->stored[k];
    if (s->whole && hlo_value_equal(s->value, r->w->roots[result]) && s->base == r->w->results[result]) {
      return s->phase < r->last;
    }
  }
  return false;
}

static void compute_results(emit_row_fusion *r, bool full, const emit_index *place, emit_pair *values) {
  for (uint32_t k = 0; k < r->w->n_results; k++) {
    if (is_full_root(r, k) == full && !is_written(r, k)) {
      values[k] = value_at(&r->w->e, r->w->roots[k], place);
    }
  }
}

static void store_results(emit_row_fusion *r, bool full, const emit_index *place, const emit_pair *values) {
  emit_writer *w = r->w;
  emit_pos at = emit_index_linear(&w->e.x, place);
  for (uint32_t k = 0; k < w->n_results; k++) {
    if (is_full_root(r, k) == full && !is_written(r, k)) {
      emit_store(&w->e, w->results[k], hlo_type(w->roots[k]), at, values[k], w->shared[k] || r->tail_first);
    }
  }
}

/* A step of the last phase's loop: computes the elements of all results and then stores them.  No element is stored
 * before all are computed, since a result may overwrite an operand. */
static void result_step(const emit_reduction_loop *f, const emit_index *at, LLVMValueRef *acc) {
  (void)acc;
  emit_row_fusion *r = (emit_row_fusion *)f->data;
  const emit_index *place = place_in_row(f->e, r, at);
  emit_pair *values = ARENA_NEW_N(f->e->w->arena, emit_pair, r->w->n_results);
  compute_results(r, true, place, values);
  store_results(r, true, place, values);
}

/* Computes the elements of the results in the row's last vector.  Must be called before any element of the row is
 * stored: the last vector overlaps the vector before it, whose stores may overwrite what the last vector reads.
 * Returns the index of the last vector. */
static const emit_index *last_vector(emit_row_fusion *r, emit_reduction_loop *f, int lanes, emit_pair *values) {
  emit_element *e = &r->w->e;
  emit_index *last = emit_index_new(&e->x, 1, r->gone);
  emit_axis_at(last, 0, emit_pos_lanes(emit_i64(e->w, r->gone[0] - lanes), 1, 1));
  f->dims[0] = r->gone[0] / lanes * lanes;
  const emit_index *place = place_in_row(e, r, last);
  e->x.lanes = lanes;
  compute_results(r, true, place, values);
  e->x.lanes = 1;
  return place;
}

/* Writes the last phase; `seldom` says that its code seldom runs. */
static void write_results(emit_row_fusion *r, bool seldom) {
  emit_element *e = &r->w->e;
  emit_reduction_loop f = {
      .e = e, .data = r, .step = result_step, .masks = !r->tail_first, .cooperative = true, .compact = seldom};
  emit_pair *values = ARENA_NEW_N(e->w->arena, emit_pair, r->w->n_results);
  const emit_index *tail = NULL;
  int lanes = e->wide;
  set_space(r, &f);
  for (uint32_t k = 0; k < r->w->n_results; k++) {
    f.heavy |= is_full_root(r, k) && !is_written(r, k) && emit_takes_math(e, r->w->roots[k]);
  }
  bool one = !r->columns && r->n_gone == 1 && dim_is_const(r->gone[0]);
  if (r->tail_first && one && lanes > 1 && r->gone[0] > lanes && r->gone[0] % lanes > 1) {
    tail = last_vector(r, &f, lanes, values);
  }
  emit_reduction_loop_run(&f, NULL);
  if (tail) {
    e->x.lanes = lanes;
    store_results(r, true, tail, values);
    e->x.lanes = 1;
  }
}

/* Writes the results twice, in two branches.  One multiplies by the inverses of the divisors and runs if the i1 `fits`
 * is true; the other one divides. */
static void write_either(emit_row_fusion *r, LLVMValueRef fits) {
  emit_element *e = &r->w->e;
  const emit_ir *w = e->w;
  LLVMBasicBlockRef at[2] = {emit_block(w, "invert"), emit_block(w, "divide")}, done = emit_block(w, "written");
  LLVMBuildCondBr(w->builder, fits, at[0], at[1]);
  for (int k = 0; k < 2; k++) {
    uint32_t mark = emit_table_mark(e->x.table);
    LLVMPositionBuilderAtEnd(w->builder, at[k]);
    write_results(r, k == 1);
    emit_table_release(e->x.table, mark);
    LLVMBuildBr(w->builder, done);
    for (uint32_t j = 0; j < r->n_facts; j++) {
      r->facts[j].inverse = NULL;
    }
  }
  LLVMPositionBuilderAtEnd(w->builder, done);
}

static void row_body(emit_writer *w, const void *data, const emit_index *at) {
  emit_row_fusion *r = (emit_row_fusion *)data;
  r->at = at;
  for (uint32_t k = 0; k < r->n_facts; k++) {
    r->facts[k].known = (emit_pair){NULL, NULL};
    r->facts[k].inverse = NULL;
  }
  for (r->phase = 0; r->phase < r->last; r->phase++) {
    for (uint32_t k = 0; k < r->n_facts;) {
      k = reduce_some(r, k);
    }
    compute_kept(r);
  }
  emit_pair *values = ARENA_NEW_N(w->e.w->arena, emit_pair, w->n_results);
  compute_results(r, false, at, values);
  LLVMBasicBlockRef after = w->stores ? emit_if_begin(w->e.w, w->stores) : NULL;
  store_results(r, false, at, values);
  if (after) {
    emit_if_end(w->e.w, after);
  }
  bool full = false;
  for (uint32_t k = 0; k < w->n_results; k++) {
    full |= is_full_root(r, k) && !is_written(r, k);
  }
  LLVMValueRef fits = NULL;
  if (full) {
    invert(r, &fits);
  }
  if (fits) {
    write_either(r, fits);
  } else if (full) {
    write_results(r, false);
  }
}

bool emit_is_row_fusion(const emit_writer *w) {
  hlo_row_space s;
  return w->e.body && hlo_is_row_wise(w->e.body, &s);
}

void emit_write_row_fusion(emit_writer *w) {
  arena *a = w->e.w->arena;
  emit_row_fusion *r = ARENA_NEW(a, emit_row_fusion);
  r->w = w;
  (void)hlo_is_row_wise(w->e.body, &r->space);
  const hlo_row_space *s = &r->space;
  dim *extents = ARENA_NEW_N(a, dim, HLO_ROW_DIMS + 1);
  int rank = 0;
  for (int k = 0; k < s->rank; k++) {
    if (s->gone[k]) {
      r->gone[r->n_gone++] = s->dims[k];
    } else {
      extents[rank++] = s->dims[k];
    }
  }
  r->columns = !s->gone[s->rank - 1];
  if (!r->columns) {
    extents[rank++] = 1;
  }
  if (!r->columns) {
    (void)emit_row_team(w, s->length);
  }
  find_levels(r, w->e.body);
  w->e.rows = r;
  dim outer = emit_dims_product(&w->e.x, extents, 0, rank - 1);
  int lanes = r->columns ? emit_lanes_of_vectors(&w->e, outer, extents[rank - 1], EMIT_COLUMN_VECTORS) : 1;
  r->vector = lanes;
  find_stored(r);
  emit_nest(w, rank, extents, lanes, false, row_body, r);
  emit_team_end(w);
  w->e.rows = NULL;
}
