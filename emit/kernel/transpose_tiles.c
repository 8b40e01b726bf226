/* transpose_tiles.c - kernels of transposes and the elementwise operations around them.
 *
 * If the innermost dimension of the result is not that of the transposed array, elements that are neighbours in one of
 * them are far apart in the other.  A step of these kernels is a square of n x n elements along both dimensions, for
 * vectors of n lanes.  Its columns are computed as vectors along the operand's innermost dimension, transposed in
 * registers, and used as rows of the result.  So both arrays are accessed in whole vectors.  If an extent is an
 * argument of the kernel and turns out to be smaller than a square, the elements are computed one by one.
 *
 * A result with two to four columns is not computed in squares: its columns are computed as vectors, and then
 * interleaved.  This applies to interleaved channels, repeated elements, and concatenations of single columns. */
#include "emit/kernel/transpose_tiles.h"

#include "emit/element/loop_plan.h"
#include "hlo/analysis/row_space.h"

enum {
  LEAST = 4,
  MOST = 16,       /* the side of the largest square, whose columns should fit in the registers */
  MOST_LANES = 32, /* the most elements of a vector, in kernels of few columns */
  FEW = 4
};

typedef struct tiles {
  emit_transposes t; /* the transposes; if `few`, the only entry of t.of is the operation that interleaves columns */
  int side;
  bool few; /* whether the result has few columns, which are interleaved, and is not computed in squares */
} tiles;

static dim elements(const emit_transposes *t, const shape *s) {
  return emit_dims_product(&t->w->e.x, s->dims, 0, s->rank);
}

/* --- finding transposes --- */

/* Sets t's dimensions to those dimensions of the result that have more than one element, and merges neighbours that are
 * also neighbours in the operand.  Returns false if the innermost dimension stays the innermost. */
static bool merge(emit_transposes *t, const hlo_instr *i) {
  const shape *s = &i->shapes[0], *x = hlo_shape(i->operands[0]);
  int64_t last = -2;
  int from[SHAPE_MAX_RANK], innermost = -1;
  t->rank = 0;
  for (int k = 0; k < s->rank; k++) {
    int64_t p = hlo_ints(i, HLO_ATTR_PERMUTATION)[k];
    if (s->dims[k] == 1) {
      continue;
    }
    int64_t before = last;
    while (before >= 0 && before + 1 < p && x->dims[before + 1] == 1) {
      before++;
    }
    if (t->rank && p == before + 1) {
      t->dims[t->rank - 1] = emit_dims_product(&t->w->e.x, (dim[]){t->dims[t->rank - 1], s->dims[k]}, 0, 2);
    } else {
      from[t->rank] = (int)p;
      t->dims[t->rank++] = s->dims[k];
    }
    last = p;
  }
  for (int k = 0; k < t->rank; k++) {
    innermost = innermost < 0 || from[k] > from[innermost] ? k : innermost;
  }
  t->column = innermost;
  return t->rank >= 2 && innermost < t->rank - 1;
}

static bool same_turn(const hlo_instr *a, const hlo_instr *b) {
  return a->op == b->op && shape_same_dims(&a->shapes[0], &b->shapes[0]) && hlo_same_operation(a, b);
}

/* Returns true if the lanes of vectors hold whole elements of type t, so that elements can be shuffled: not parts of
 * complex numbers, and not single bits (pred). */
static bool fits_vectors(dtype t) { return !dtype_is_complex(t) && t != DTYPE_PRED; }

/* Adds to t the transposes from which v is computed by operations that keep the positions of elements
 * (hlo_is_position_wise). */
static void collect(emit_transposes *t, hlo_value v, int depth) {
  enum { DEEP = 24 };
  if (depth == DEEP || emit_is_input(&t->w->e, v) || hlo_literal(v)) {
    return;
  }
  if (v.def->op == HLO_TRANSPOSE) {
    bool known = t->n == EMIT_MOST_TRANSPOSES;
    for (int k = 0; k < t->n && !known; k++) {
      known = t->of[k] == v.def || !same_turn(t->of[0], v.def);
    }
    if (!known && (t->w->e.w->target->execution == EMIT_BLOCKS || fits_vectors(hlo_type(v)))) {
      t->of[t->n++] = v.def;
    }
  } else if (hlo_is_position_wise(v.def)) {
    for (uint32_t k = 0; k < v.def->n_operands; k++) {
      if (elements(t, hlo_shape(v.def->operands[k])) == elements(t, &v.def->shapes[0])) {
        collect(t, v.def->operands[k], depth + 1);
      }
    }
  }
}

/* Returns true if the windows that i gathers run along the innermost dimension of its result. */
static bool takes_rows(const hlo_instr *i) {
  const shape *s = &i->shapes[0];
  uint32_t n = hlo_n_ints(i, HLO_ATTR_OFFSET_DIMS);
  return n && hlo_ints(i, HLO_ATTR_OFFSET_DIMS)[n - 1] == s->rank - 1 && s->dims[s->rank - 1] != 1;
}

/* Returns true if the kernel has only elementwise operations, transposes, reshapes, broadcasts, copies, slices, a few
 * gathers of rows, and concatenations whose operands are found by a table.  Others may need a loop for one element,
 * whose code would be written once for each row of a square. */
static bool is_simple(const emit_writer *w) {
  enum { MOST_GATHERED = 4 };
  int gathered = 0;
  for (const hlo_instr *i = w->e.body ? w->e.body->first : w->i; i; i = w->e.body ? i->next : NULL) {
    hlo_kind kind = hlo_info(i)->kind;
    if (i->op == HLO_GATHER && takes_rows(i) && gathered < MOST_GATHERED) {
      gathered++;
    } else if (kind != HLO_ELEMENTWISE && kind != HLO_STRUCTURE && i->op != HLO_TRANSPOSE && i->op != HLO_RESHAPE &&
               i->op != HLO_BROADCAST && i->op != HLO_COPY && i->op != HLO_SLICE &&
               !(i->op == HLO_CONCAT && emit_concat_unit(&w->e, i))) {
      return false;
    }
  }
  return true;
}

/* --- results with few columns --- */

/* Skips reshapes and copies: returns the value from which they compute v. */
static hlo_value unviewed(const emit_writer *w, hlo_value v) {
  while ((v.def->op == HLO_RESHAPE || v.def->op == HLO_COPY) && !emit_is_input(&w->e, v)) {
    v = v.def->operands[0];
  }
  return v;
}

/* Divides the rows into runs of neighbouring rows that no dimension boundary of an operand separates
 * (emit_dim_boundaries).  If a run has fewer than all rows, the dimension of the rows becomes two: the runs, and the
 * rows of a run.  Returns false if there is no such division. */
static bool cut_rows(emit_transposes *t, const hlo_instr *turned) {
  emit_dim_boundaries boundaries = {0};
  const emit_indexer *x = &t->w->e.x;
  dim runs[SHAPE_MAX_RANK], rows = t->dims[t->column], columns = t->dims[t->rank - 1];
  for (uint32_t k = 0; k < turned->n_operands; k++) {
    emit_dim_boundaries_of(&t->w->e, turned->operands[k], &boundaries);
  }
  dim run = runs[emit_loop_extents(x, &boundaries, elements(t, hlo_shape(turned->operands[0])), runs) - 1];
  if (emit_divides(x, rows, run)) {
    return true;
  }
  if (!emit_divides(x, run, rows) || t->rank == SHAPE_MAX_RANK) {
    return false;
  }
  t->dims[t->rank - 2] = emit_quotient(x, rows, run);
  t->dims[t->rank - 1] = run;
  t->dims[t->rank++] = columns;
  t->column = t->rank - 2;
  return true;
}

/* Sets t's dimensions to those of s with more than one element, the last two of which are rows and columns.  Returns
 * which dimension of s is that of the columns. */
static int keep_dims(emit_transposes *t, const shape *s) {
  int columns = 0;
  t->rank = 0;
  for (int k = 0; k < s->rank; k++) {
    if (s->dims[k] != 1) {
      t->dims[t->rank++] = s->dims[k];
      columns = k;
    }
  }
  t->column = t->rank - 2;
  return columns;
}

/* Sets t's dimensions, and returns true if i concatenates single columns. */
static bool joins_columns(emit_transposes *t, const hlo_instr *i) {
  int64_t d = hlo_int(i, HLO_ATTR_DIMENSION);
  bool single = keep_dims(t, &i->shapes[0]) == d;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    single = single && hlo_shape(i->operands[k])->dims[d] == 1;
  }
  return single && t->rank >= 2;
}

/* Sets t's dimensions, and returns true if the broadcast i repeats each element in the neighbouring columns of a row:
 * the dimension of columns is new, and that of rows is the operand's last one (apart from dimensions of extent 1). */
static bool repeats(emit_transposes *t, const hlo_instr *i) {
  const shape *s = &i->shapes[0], *x = hlo_shape(i->operands[0]);
  int rows = -1, columns = keep_dims(t, s);
  for (int k = 0; k < x->rank; k++) {
    int d = (int)hlo_ints(i, HLO_ATTR_DIMENSIONS)[k];
    if (x->dims[k] != 1) {
      rows = d > rows ? d : rows;
    }
  }
  bool next = rows >= 0 && rows < columns;
  for (int k = rows + 1; k < columns; k++) {
    next = next && s->dims[k] == 1;
  }
  return next;
}

/* Sets t's dimensions, and returns true if i is a broadcast or a concatenation that interleaves columns, or a transpose
 * that changes the innermost dimension.  Such a transpose interleaves columns only if t->column is t->rank - 2, which
 * the caller checks. */
static bool has_columns(emit_transposes *t, const hlo_instr *i) {
  switch (i->op) {
    case HLO_TRANSPOSE: return merge(t, i);
    case HLO_BROADCAST: return repeats(t, i);
    case HLO_CONCAT: return joins_columns(t, i);
    default: return false;
  }
}

/* Returns the largest side of a square, at most `most`, that fits along a dimension of n elements, for the likely size
 * if n is not a constant. */
static int widest(const emit_writer *w, dim n, int most) {
  double likely = emit_likely_size(w->e.x.sizes->table, n);
  int side = w->e.wide < most ? w->e.wide : most;
  while (side > likely) {
    side /= 2;
  }
  return side;
}

/* Returns true if the only result is a transpose, a broadcast or a concatenation that interleaves a few columns, with
 * no operation after it except reshapes and copies. */
static bool find_few(emit_writer *w, tiles *out) {
  emit_transposes *t = &out->t;
  *out = (tiles){.t.w = w, .few = true};
  hlo_value v = unviewed(w, w->roots[0]);
  dtype type = hlo_type(v);
  if (w->n_results != 1 || w->shared[0] || w->place || emit_is_input(&w->e, v) || !fits_vectors(type) ||
      !has_columns(t, v.def) || t->column != t->rank - 2 || !dim_is_const(t->dims[t->rank - 1]) ||
      t->dims[t->rank - 1] > FEW || !cut_rows(t, v.def)) {
    return false;
  }
  t->n = 1;
  t->of[0] = v.def;
  out->side = widest(w, t->dims[t->column], MOST_LANES);
  return out->side >= LEAST;
}

/* --- finding squares --- */

bool emit_find_transposes(emit_writer *w, emit_transposes *out) {
  *out = (emit_transposes){.w = w};
  if (!is_simple(w)) {
    return false;
  }
  for (uint32_t k = 0; k < w->n_results; k++) {
    collect(out, w->roots[k], 0);
  }
  return out->n && merge(out, out->of[0]);
}

static bool find(emit_writer *w, tiles *out) {
  const emit_transposes *t = &out->t;
  *out = (tiles){.few = false};
  if (!emit_find_transposes(w, &out->t)) {
    return false;
  }
  dim rows = t->dims[t->column], columns = t->dims[t->rank - 1];
  int of_rows = widest(w, rows, MOST), of_columns = widest(w, columns, MOST),
      side = of_rows < of_columns ? of_rows : of_columns;
  out->side = side;
  for (uint32_t k = 0; k < w->n_results;
       /* The last square may overlap the one before and compute its elements again, so no operand may be overwritten.
        */
       k++) {
    if (side && w->shared[k] && !(emit_divides(&w->e.x, side, rows) && emit_divides(&w->e.x, side, columns))) {
      return false;
    }
  }
  return side >= LEAST;
}

bool emit_is_tiles(emit_writer *w) {
  tiles t;
  return find_few(w, &t) || find(w, &t);
}

/* --- writing squares and columns --- */

const emit_index *emit_transposed_index(const emit_transposes *t, const emit_index *at, emit_pos row, emit_pos column) {
  emit_indexer *x = &t->w->e.x;
  emit_index *i = emit_index_new(x, t->rank, t->dims);
  for (int k = 0; k < t->rank - 1; k++) {
    emit_axis_from(i, k, at, k);
  }
  emit_axis_at(i, t->column, row);
  emit_axis_at(i, t->rank - 1, column);
  return i;
}

emit_pair emit_transposed_value(const emit_transposes *t, int k, const emit_index *at) {
  emit_element *e = &t->w->e;
  hlo_value v = hlo_result((hlo_instr *)t->of[k], 0);
  return emit_value(e, v, emit_index_reshape(&e->x, at, hlo_rank(v), hlo_shape(v)->dims));
}

void emit_set_transposed(const emit_transposes *t, int k, const emit_index *at, emit_pair value) {
  emit_element *e = &t->w->e;
  emit_element_set(e, hlo_result((hlo_instr *)t->of[k], 0), at, value);
}

/* Returns where square number n begins along a dimension of `extent` elements, of which there are at least `side`.  The
 * last square is moved back so that it ends with the last element. */
static emit_pos begin(emit_element *e, emit_pos n, dim extent, int side) {
  emit_pos at = emit_pos_scale(&e->x, n, side);
  dim last = emit_dims_difference(&e->x, extent, side);
  if (!emit_divides(&e->x, side, extent)) {
    at = emit_pos_at(emit_intrinsic2(e->w, "llvm.smin", at.base, emit_size(&e->x, last)), 1);
  }
  return dim_is_const(last) ? emit_pos_below(at, last + 1) : at;
}

static void square(const tiles *t, const emit_index *at) {
  const emit_transposes *f = &t->t;
  emit_element *e = &f->w->e;
  LLVMValueRef v[EMIT_MOST_TRANSPOSES][MOST];
  emit_pos row = begin(e, emit_index_dim(&e->x, at, f->column), f->dims[f->column], t->side);
  emit_pos column = begin(e, emit_index_dim(&e->x, at, f->rank - 1), f->dims[f->rank - 1], t->side);
  e->x.lanes = t->side;
  for (int j = 0; j < f->n; j++) {
    for (int k = 0; k < t->side; k++) {
      emit_pos own = emit_pos_add_const(&e->x, column, k);
      v[j][k] = emit_transposed_value(f, j, emit_transposed_index(f, at, emit_pos_along(row, t->side), own)).v;
    }
    emit_transpose_square(e->w, t->side, v[j]);
  }
  for (int k = 0; k < t->side; k++) {
    const emit_index *x =
        emit_transposed_index(f, at, emit_pos_add_const(&e->x, row, k), emit_pos_along(column, t->side));
    uint32_t mark = emit_table_mark(e->x.table);
    for (int j = 0; j < f->n; j++) {
      emit_set_transposed(f, j, x, (emit_pair){v[j][k], NULL});
    }
    emit_store_roots(f->w, x);
    emit_table_release(e->x.table, mark);
  }
  e->x.lanes = 1;
}

/* Returns vector number k of the n vectors that result from interleaving the n vectors v. */
static LLVMValueRef interleaved(const emit_ir *w, int n, int side, const LLVMValueRef *v, int k) {
  LLVMValueRef all = v[0];
  for (int j = 1; j < n; j++) {
    int from[MOST_LANES];
    for (int lane = 0; lane < side; lane++) {
      int at = k * side + lane, column = at % n, row = at / n;
      from[lane] = column == j ? side + row : j == 1 ? row : lane;
    }
    all = emit_shuffle(w, all, v[j], from, side);
  }
  return all;
}

static void strip(const tiles *t, const emit_index *at) {
  const emit_transposes *f = &t->t;
  emit_writer *w = f->w;
  emit_element *e = &w->e;
  LLVMValueRef v[FEW];
  int columns = (int)f->dims[f->rank - 1];
  emit_pos row = begin(e, emit_index_dim(&e->x, at, f->column), f->dims[f->column], t->side);
  emit_pos first = emit_index_linear(&e->x, emit_transposed_index(f, at, row, emit_pos_const(&e->x, 0)));
  e->x.lanes = t->side;
  for (int k = 0; k < columns; k++) {
    v[k] = emit_transposed_value(f, 0,
                                 emit_transposed_index(f, at, emit_pos_along(row, t->side), emit_pos_const(&e->x, k)))
               .v;
  }
  dtype type = (dtype)f->of[0]->shapes[0].type;
  for (int k = 0; k < columns; k++) {
    emit_pair part = {interleaved(e->w, columns, t->side, v, k), NULL};
    emit_store(e, w->results[0], type, emit_pos_along(emit_pos_add_const(&e->x, first, k * t->side), t->side), part,
               false);
  }
  e->x.lanes = 1;
}

/* --- arrays that are smaller than a square --- */

/* Returns an i1 that says whether a square fits along dimension d, or NULL if the extent is a constant, since squares
 * are chosen so that they fit. */
static LLVMValueRef fits_along(const tiles *t, int d) {
  const emit_element *e = &t->t.w->e;
  dim extent = t->t.dims[d];
  return dim_is_const(extent) ? NULL : emit_icmp(e->w, LLVMIntSGE, emit_size(&e->x, extent), emit_i64(e->w, t->side));
}

/* Begins a loop over those positions of square number n that are inside of a dimension of `extent` elements. */
static void begin_partly(emit_element *e, emit_loop *l, emit_pos n, dim extent, int side) {
  LLVMValueRef from = emit_pos_scale(&e->x, n, side).base;
  LLVMValueRef to = LLVMBuildNSWAdd(e->w->builder, from, emit_i64(e->w, side), "");
  to = emit_intrinsic2(e->w, "llvm.smin", to, emit_size(&e->x, extent));
  emit_loop_begin(e->w, l, from, to, 1, false, 0, NULL);
}

/* Computes the elements of a square one by one. */
static void one_by_one(const tiles *t, const emit_index *at) {
  const emit_transposes *f = &t->t;
  emit_element *e = &f->w->e;
  emit_loop rows, columns;
  begin_partly(e, &rows, emit_index_dim(&e->x, at, f->column), f->dims[f->column], t->side);
  uint32_t mark = emit_table_mark(e->x.table);
  begin_partly(e, &columns, emit_index_dim(&e->x, at, f->rank - 1), f->dims[f->rank - 1], t->side);
  uint32_t inner = emit_table_mark(e->x.table);
  emit_store_roots(f->w, emit_transposed_index(f, at, emit_pos_at(rows.iv, 1), emit_pos_at(columns.iv, 1)));
  emit_table_release(e->x.table, inner);
  emit_loop_end(e->w, &columns, NULL);
  emit_table_release(e->x.table, mark);
  emit_loop_end(e->w, &rows, NULL);
}

static void whole(const tiles *t, const emit_index *at) {
  if (t->few) {
    strip(t, at);
  } else {
    square(t, at);
  }
}

static void body(emit_writer *w, const void *data, const emit_index *at) {
  const tiles *t = data;
  const emit_ir *ir = w->e.w;
  LLVMValueRef row = fits_along(t, t->t.column), column = t->few ? NULL : fits_along(t, t->t.rank - 1);
  if (!row && !column) {
    whole(t, at);
    return;
  }
  LLVMValueRef fits = !row ? column : !column ? row : LLVMBuildAnd(ir->builder, row, column, "");
  LLVMBasicBlockRef in[2] = {emit_block(ir, "square"), emit_block(ir, "part")}, done = emit_block(ir, "turned");
  LLVMBuildCondBr(ir->builder, fits, in[0], in[1]);
  for (int k = 0; k < 2; k++) {
    uint32_t mark = emit_table_mark(w->e.x.table);
    LLVMPositionBuilderAtEnd(ir->builder, in[k]);
    if (k == 0) {
      whole(t, at);
    } else {
      one_by_one(t, at);
    }
    emit_table_release(w->e.x.table, mark);
    LLVMBuildBr(ir->builder, done);
  }
  LLVMPositionBuilderAtEnd(ir->builder, done);
}

dim *emit_transposed_tiles(const emit_transposes *t, int64_t rows, int64_t columns) {
  dim_table *table = t->w->e.x.sizes->table;
  dim *n = ARENA_NEW_N(t->w->e.w->arena, dim, SHAPE_MAX_RANK);
  for (int k = 0; k < t->rank; k++) {
    int64_t side = k == t->column ? rows : k == t->rank - 1 ? columns : 1;
    n[k] = dim_ceildiv(table, t->dims[k], side);
  }
  return n;
}

void emit_write_tiles(emit_writer *w) {
  tiles *t = ARENA_NEW(w->e.w->arena, tiles);
  (void)(find_few(w, t) || find(w, t));
  int64_t columns = t->few ? t->t.dims[t->t.rank - 1] : t->side;
  emit_nest(w, t->t.rank, emit_transposed_tiles(&t->t, t->side, columns), 1, false, body, t);
}
