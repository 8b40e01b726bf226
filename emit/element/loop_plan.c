/* loop_plan.c - dimensions that loops must keep apart, and widths of vectors; see loop_plan.h. */
#include "emit/element/loop_plan.h"

#include <math.h>
#include <string.h>

#include "emit/element/window.h"
#include "emit/math/math.h"
#include "hlo/analysis/queries.h"

bool emit_is_dim_boundary(const emit_dim_boundaries *c, dim n) {
  for (int k = 0; k < c->n; k++) {
    if (c->at[k] == n) {
      return true;
    }
  }
  return false;
}

static void add_boundary(emit_dim_boundaries *c, dim n) {
  if (n != 0 && n != 1 && c->n < EMIT_MAX_DIM_BOUNDARIES && !emit_is_dim_boundary(c, n)) {
    c->at[c->n++] = n;
  }
}

typedef struct walk {
  const emit_element *e;
  emit_dim_boundaries *boundaries;
  uint32_t n, cap;
  const hlo_instr **seen;
} walk;

enum { NARROWEST = 4 }; /* the fewest lanes of vectors that are narrower than the target's */

static bool is_leaf(const emit_element *e, hlo_value v) {
  if (hlo_literal(v) || hlo_rank(v) == 0) {
    return true;
  }
  for (uint32_t k = 0; k < e->n_inputs; k++) {
    if (hlo_value_equal(e->inputs[k].value, v)) {
      return true;
    }
  }
  return false;
}

static bool keeps_order(const hlo_instr *i) {
  return hlo_info(i)->kind == HLO_ELEMENTWISE || i->op == HLO_COPY || i->op == HLO_RESHAPE ||
         (i->op == HLO_GATHER && hlo_is_lookup(i));
}

static bool was_seen(walk *w, const hlo_instr *i) {
  for (uint32_t k = 0; k < w->n; k++) {
    if (w->seen[k] == i) {
      return true;
    }
  }
  *ARENA_PUSH(w->e->w->arena, w->seen, w->n, w->cap) = i;
  return false;
}

/* Returns true if v is computed from inputs of the kernel, constants and scalars only by operations that keep the order
 * of elements (keeps_order). */
static bool is_flat(walk *w, hlo_value v) {
  if (is_leaf(w->e, v) || was_seen(w, v.def)) {
    return true;
  }
  if (!keeps_order(v.def)) {
    return false;
  }
  for (uint32_t k = 0; k < v.def->n_operands; k++) {
    if (!is_flat(w, v.def->operands[k])) {
      return false;
    }
  }
  return true;
}

/* Where a dimension of a result comes from, if it is not a dimension of the operand. */
enum {
  FROM_NOTHING = -1, /* all its positions have the same element */
  CHANGED = -2       /* the operation changes positions along it */
};

/* Sets from[k] to the operand's dimension from which dimension k of i's first result comes, or leaves it CHANGED.
 * Dimensions that are neighbours in operand and result need no boundary between them. */
typedef void origins_fn(const hlo_instr *i, int *from);

static const shape *operand_shape(const hlo_instr *i) { return hlo_shape(i->operands[0]); }

static void same_origins(const hlo_instr *i, int *from) {
  for (int k = 0; k < i->shapes[0].rank; k++) {
    from[k] = k;
  }
}

static void broadcast_origins(const hlo_instr *i, int *from) {
  const shape *s = &i->shapes[0], *x = operand_shape(i);
  for (int k = 0; k < s->rank; k++) {
    from[k] = FROM_NOTHING;
  }
  for (int k = 0; k < x->rank; k++) {
    int64_t d = hlo_ints(i, HLO_ATTR_DIMENSIONS)[k];
    from[d] = x->dims[k] == s->dims[d] ? k : FROM_NOTHING;
  }
}

static void transpose_origins(const hlo_instr *i, int *from) {
  for (int k = 0; k < i->shapes[0].rank; k++) {
    from[k] = (int)hlo_ints(i, HLO_ATTR_PERMUTATION)[k];
  }
}

/* Dimensions that have the same size in `whole` and in the result come from it as they are. */
static void origins_of_equal_sizes(const hlo_instr *i, const shape *whole, int *from) {
  for (int k = 0; k < i->shapes[0].rank; k++) {
    from[k] = whole->dims[k] == i->shapes[0].dims[k] ? k : CHANGED;
  }
}

static void slice_origins(const hlo_instr *i, int *from) { origins_of_equal_sizes(i, operand_shape(i), from); }

static void update_origins(const hlo_instr *i, int *from) {
  origins_of_equal_sizes(i, hlo_shape(i->operands[1]), from);
}

static void pad_origins(const hlo_instr *i, int *from) {
  slice_origins(i, from);
  for (int k = 0; k < i->shapes[0].rank; k++) {
    from[k] = hlo_ints(i, HLO_ATTR_LOW)[k] == 0 && hlo_ints(i, HLO_ATTR_INTERIOR)[k] == 0 ? from[k] : CHANGED;
  }
}

static void concat_origins(const hlo_instr *i, int *from) {
  slice_origins(i, from);
  from[hlo_int(i, HLO_ATTR_DIMENSION)] = CHANGED;
}

static void reverse_origins(const hlo_instr *i, int *from) {
  same_origins(i, from);
  for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_DIMENSIONS); k++) {
    from[hlo_ints(i, HLO_ATTR_DIMENSIONS)[k]] = CHANGED;
  }
}

static void iota_origins(const hlo_instr *i, int *from) {
  for (int k = 0; k < i->shapes[0].rank; k++) {
    from[k] = k == hlo_int(i, HLO_ATTR_DIMENSION) ? CHANGED : FROM_NOTHING;
  }
}

static void reduce_origins(const hlo_instr *i, int *from) {
  uint32_t gone = 0;
  for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_DIMENSIONS); k++) {
    gone |= (uint32_t)1 << hlo_ints(i, HLO_ATTR_DIMENSIONS)[k];
  }
  for (int k = 0, d = 0; k < operand_shape(i)->rank; k++) {
    if (!(gone >> k & 1)) {
      from[d++] = k;
    }
  }
}

/* The operations that keep some neighbouring dimensions together.  All others change every dimension. */
static origins_fn *const origin_rules[HLO_OP_COUNT] = {
    [HLO_BROADCAST] = broadcast_origins,
    [HLO_TRANSPOSE] = transpose_origins,
    [HLO_SLICE] = slice_origins,
    [HLO_DYNAMIC_SLICE] = slice_origins,
    [HLO_PAD] = pad_origins,
    [HLO_CONCAT] = concat_origins,
    [HLO_DYNAMIC_UPDATE_SLICE] = update_origins,
    [HLO_REVERSE] = reverse_origins,
    [HLO_IOTA] = iota_origins,
    [HLO_RNG] = same_origins,
    [HLO_REDUCE] = reduce_origins,
};

static void origins(const hlo_instr *i, int *from) {
  for (int k = 0; k < i->shapes[0].rank; k++) {
    from[k] = CHANGED;
  }
  if (origin_rules[i->op]) {
    origin_rules[i->op](i, from);
  }
}

/* Returns true if a loop should run across the boundary n between dimensions of i, as if i kept the order of elements:
 * if each vector begins at such a boundary, i changes positions so that the lanes stay near to each other, and a loop
 * that stops there would have no vectors. */
static bool fits_in_vectors(const emit_element *e, const hlo_instr *i, dim n) {
  bool near = i->op == HLO_SLICE || i->op == HLO_CONCAT || i->op == HLO_BROADCAST || i->op == HLO_TRANSPOSE;
  return near && dim_is_const(n) && n > 0 && n < NARROWEST && e->wide % n == 0;
}

static void visit(walk *w, hlo_value v) {
  if (is_leaf(w->e, v) || was_seen(w, v.def)) {
    return;
  }
  const hlo_instr *i = v.def;
  if (keeps_order(i)) {
    for (uint32_t k = 0; k < i->n_operands; k++) {
      visit(w, i->operands[k]);
    }
    return;
  }
  bool flat = true;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    walk below = {.e = w->e};
    flat = flat && is_flat(&below, i->operands[k]);
  }
  int from[SHAPE_MAX_RANK];
  origins(i, from);
  const shape *s = &i->shapes[v.index];
  enum { NONE = -3 };
  int inner = NONE; /* from[] of the nearest dimension to the right that has more than one element */
  for (int k = s->rank - 1; k >= 0; k--) {
    if (s->dims[k] == 1) {
      continue;
    }
    bool together =
        flat && ((from[k] == FROM_NOTHING && inner == FROM_NOTHING) || (from[k] >= 0 && inner == from[k] + 1));
    dim n = emit_dims_product(&w->e->x, s->dims, k + 1, s->rank);
    if (!together && !fits_in_vectors(w->e, i, n)) {
      add_boundary(w->boundaries, n);
    }
    inner = from[k];
  }
}

void emit_dim_boundaries_of(const emit_element *e, hlo_value v, emit_dim_boundaries *c) {
  walk w = {.e = e, .boundaries = c};
  visit(&w, v);
}

/* A boundary is given as the product of the extents to its right (loop_plan.h).  Returns true if boundary `a` is
 * further to the right than `b`: of two constants, if it is the smaller; otherwise, if it divides `b`.  If only one is
 * a constant and neither divides the other, the constant counts as further to the right. */
static bool is_inside(const emit_indexer *x, dim a, dim b) {
  if (dim_is_const(a) && dim_is_const(b)) {
    return a < b;
  }
  return emit_divides(x, a, b) || (dim_is_const(a) && !emit_divides(x, b, a));
}

int emit_loop_extents(const emit_indexer *x, const emit_dim_boundaries *c, dim total, dim extents[SHAPE_MAX_RANK]) {
  dim bounds[SHAPE_MAX_RANK + 1] = {1}, last = 1;
  int n = 1;
  for (;;) { /* finds the next larger boundary that is a multiple of the one found before */
    dim next = total;
    for (int k = 0; k < c->n; k++) {
      dim s = c->at[k];
      bool between = s != last && s != total && emit_divides(x, last, s) && emit_divides(x, s, total);
      next = between && (next == total || is_inside(x, s, next)) ? s : next;
    }
    if (next == total || n == SHAPE_MAX_RANK) {
      break;
    }
    bounds[n++] = last = next;
  }
  bounds[n] = total;
  for (int k = 0; k < n; k++) {
    extents[n - 1 - k] = emit_quotient(x, bounds[k + 1], bounds[k]);
  }
  return n;
}

/* --- positions at which loops are split --- */

/* Returns the innermost dimension with more than one element, or -1 if there is none. */
static int innermost(const shape *s) {
  int k = s->rank - 1;
  while (k >= 0 && s->dims[k] == 1) {
    k--;
  }
  return k;
}

enum {
  MAX_SPLIT_POINTS = 24, /* the limit for the number of split points */
  MAX_LOOPS = 4,    /* a loop over more operands of a concatenation is not split if they can be read through a table */
  MAX_WRITTEN = 256 /* the limit for the number of visited instructions times the number of loops, each of which
                       has its own code for each instruction */
};

typedef struct split_points {
  const emit_element *e;
  int n, written;
  int64_t inner, at[MAX_SPLIT_POINTS];
} split_points;

static void add_split_point(split_points *s, int64_t at) {
  int k = 0;
  while (k < s->n && s->at[k] < at) {
    k++;
  }
  if (at <= 0 || at >= s->inner || (k < s->n && s->at[k] == at)) {
    return;
  }
  if (s->n == MAX_SPLIT_POINTS) {
    s->written = MAX_WRITTEN + 1;
    return;
  }
  memmove(s->at + k + 1, s->at + k, (size_t)(s->n++ - k) * sizeof *s->at);
  s->at[k] = at;
}

static void find_split_points(split_points *s, hlo_value v, int64_t from);

static void split_points_of_padding(split_points *s, const hlo_instr *i, int d, int64_t from) {
  const shape *x = hlo_shape(i->operands[0]);
  int64_t low = hlo_ints(i, HLO_ATTR_LOW)[d];
  if (hlo_ints(i, HLO_ATTR_INTERIOR)[d] == 0 && low >= 0 && hlo_ints(i, HLO_ATTR_HIGH)[d] >= 0) {
    add_split_point(s, from + low);
    add_split_point(s, from + low + x->dims[d]);
    find_split_points(s, i->operands[0], from + low);
  }
}

static void split_points_of_parts(split_points *s, const hlo_instr *i, int d, int64_t from) {
  bool along = hlo_int(i, HLO_ATTR_DIMENSION) == d;
  if (along && i->n_operands > MAX_LOOPS && emit_concat_unit(s->e, i)) {
    return;
  }
  for (uint32_t k = 0; k < i->n_operands && dim_is_const(hlo_shape(i->operands[k])->dims[d]); k++) {
    find_split_points(s, i->operands[k], from);
    from += along ? hlo_shape(i->operands[k])->dims[d] : 0;
    add_split_point(s, from);
  }
}

/* Adds the split points of a gather with constant indices: where the difference of neighbouring indices changes. */
static void split_points_of_taking(split_points *s, const hlo_instr *i, int d, int64_t from) {
  const literal *l = hlo_literal(i->operands[1]);
  for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_OFFSET_DIMS); k++) {
    l = hlo_ints(i, HLO_ATTR_OFFSET_DIMS)[k] == d ? NULL : l;
  }
  int64_t n = i->shapes[0].dims[d], runs[MAX_SPLIT_POINTS], n_runs = 0, begin = 0;
  if (!l || shape_elements(&l->shape) != n) {
    return;
  }
  size_t size = dtype_bytes((dtype)l->shape.type);
  for (int64_t k = 1; k < n && n_runs < MAX_SPLIT_POINTS; k++) {
    int64_t v[3];
    for (int j = 0; j < 3; j++) {
      v[j] =
          dtype_load_i64((dtype)l->shape.type, (const char *)l->data + (size_t)(k - 2 + j > 0 ? k - 2 + j : 0) * size);
    }
    if (k - begin >= 2 && v[2] - v[1] != v[1] - v[0]) {
      runs[n_runs++] = begin = k;
    }
  }
  for (int64_t k = 0; n_runs < MAX_SPLIT_POINTS && k < n_runs; k++) {
    add_split_point(s, from + runs[k]);
  }
}

static dim elements(const emit_element *e, const shape *s) { return emit_dims_product(&e->x, s->dims, 0, s->rank); }

/* Adds the split points of v.  The first element of its innermost dimension is at position `from` of the loop. */
static void find_split_points(split_points *s, hlo_value v, int64_t from) {
  int d = innermost(hlo_shape(v));
  if (d < 0 || is_leaf(s->e, v) || s->written > MAX_WRITTEN || !dim_is_const(hlo_shape(v)->dims[d])) {
    return;
  }
  const hlo_instr *i = v.def;
  int64_t n = hlo_shape(v)->dims[d];
  s->written++;
  if (i->op == HLO_PAD) {
    split_points_of_padding(s, i, d, from);
  } else if (i->op == HLO_CONCAT) {
    split_points_of_parts(s, i, d, from);
  } else if (i->op == HLO_GATHER) {
    split_points_of_taking(s, i, d, from);
  }
  for (uint32_t k = 0; keeps_order(i) && k < i->n_operands; k++) {
    const shape *x = hlo_shape(i->operands[k]);
    int inner = innermost(x);
    if (inner >= 0 && x->dims[inner] == n && elements(s->e, x) == elements(s->e, hlo_shape(v))) {
      find_split_points(s, i->operands[k], from);
    }
  }
}

const int64_t *emit_split_points_of(const emit_element *e, uint32_t n_roots, const hlo_value *roots, dim inner,
                                    int *n) {
  *n = 0;
  if (!dim_is_const(inner)) {
    return NULL;
  }
  split_points *s = ARENA_NEW(e->w->arena, split_points);
  *s = (split_points){.e = e, .inner = inner};
  for (uint32_t k = 0; k < n_roots; k++) {
    int d = innermost(hlo_shape(roots[k]));
    if (d >= 0 && hlo_shape(roots[k])->dims[d] == inner) {
      find_split_points(s, roots[k], 0);
    }
  }
  bool few = s->written * (s->n + 1) <= MAX_WRITTEN;
  *n = few ? s->n : 0;
  return *n ? s->at : NULL;
}

/* --- widths of vectors --- */

int emit_choose_lanes(dim n, int lanes) {
  if (!dim_is_const(n)) {
    return lanes;
  }
  int best = 1;
  int64_t steps = n;
  for (int w = lanes; w >= NARROWEST || (w == lanes && w > 1); w /= 2) {
    int64_t s = n / w + n % w;
    if (s < steps) {
      steps = s;
      best = w;
    }
  }
  return best;
}

bool emit_reduces_rows(const hlo_instr *i) {
  const shape *x = i->n_operands ? hlo_shape(i->operands[0]) : NULL;
  if (i->op == HLO_ARG_REDUCE) {
    return hlo_int(i, HLO_ATTR_DIMENSION) == innermost(x);
  }
  if (i->op == HLO_REDUCE) {
    return hlo_has_int(i, HLO_ATTR_DIMENSIONS, innermost(x));
  }
  uint32_t n = i->op == HLO_DOT ? hlo_n_ints(i, HLO_ATTR_LHS_CONTRACT) : 0;
  return n && hlo_ints(i, HLO_ATTR_LHS_CONTRACT)[n - 1] == innermost(x) &&
         hlo_ints(i, HLO_ATTR_RHS_CONTRACT)[n - 1] == innermost(hlo_shape(i->operands[1]));
}

static bool prefers_row_loop(walk *w, hlo_value v) {
  if (is_leaf(w->e, v) || was_seen(w, v.def)) {
    return false;
  }
  if (emit_reduces_rows(v.def)) {
    return true;
  }
  for (uint32_t k = 0; keeps_order(v.def) && k < v.def->n_operands; k++) {
    if (prefers_row_loop(w, v.def->operands[k])) {
      return true;
    }
  }
  return false;
}

/* Returns true if i is a dot whose second operand has rows along the result's innermost dimension. */
static bool multiplies_rows(const hlo_instr *i) {
  const shape *y = i->op == HLO_DOT ? hlo_shape(i->operands[1]) : NULL;
  return y && y->rank > 1 && !hlo_has_int(i, HLO_ATTR_RHS_CONTRACT, y->rank - 1);
}

/* If i reduces elements of its operand, but none that differ in the innermost position only, so that each lane has its
 * own sum, returns how many vectors of sums should be computed side by side.  Otherwise returns 0.  Products read a
 * part of each row of a matrix, which may be a page apart, and the longer the parts the faster.  Of windows this is
 * said only where there is a loop over each, whose time several vectors share; loops that are unrolled became slower by
 * a tenth with several. */
static int column_vectors(const emit_element *e, const hlo_instr *i) {
  enum { PRODUCTS = 8 };
  if (i->op == HLO_REDUCE_WINDOW) {
    bool loop = i->shapes[0].rank > 1 && emit_has_short_windows(e->w);
    return loop && hlo_ints(i, HLO_ATTR_WINDOW)[i->shapes[0].rank - 1] == 1 ? EMIT_COLUMN_VECTORS : 0;
  }
  bool reduces = i->op == HLO_REDUCE || i->op == HLO_ARG_REDUCE;
  return multiplies_rows(i) ? PRODUCTS : reduces && !emit_reduces_rows(i) ? EMIT_COLUMN_VECTORS : 0;
}

/* Returns the number for v, or for the first such reduction among the values that it reads at the same position. */
static int find_column_vectors(walk *w, hlo_value v) {
  if (is_leaf(w->e, v) || was_seen(w, v.def)) {
    return 0;
  }
  int found = column_vectors(w->e, v.def);
  for (uint32_t k = 0; !found && keeps_order(v.def) && k < v.def->n_operands; k++) {
    found = find_column_vectors(w, v.def->operands[k]);
  }
  return found;
}

static bool takes_math(walk *w, hlo_value v) {
  const hlo_instr *i = v.def;
  bool elementwise = hlo_info(i)->kind == HLO_ELEMENTWISE;
  if (is_leaf(w->e, v) || was_seen(w, i) || (w->e->rows && emit_row_has(w->e->rows, v))) {
    return false;
  }
  bool found = elementwise && emit_is_math(i->op);
  for (uint32_t k = 0; !found && (elementwise || hlo_info(i)->kind == HLO_MOVEMENT) && k < i->n_operands; k++) {
    found = takes_math(w, i->operands[k]);
  }
  return found;
}

int emit_lanes_of_vectors(const emit_element *e, dim rows, dim n, int vectors) {
  enum { BUSY = 8 };
  const dim_table *t = e->x.sizes->table;
  for (int wide = e->wide * vectors; e->wide > 1 && wide > e->wide; wide /= 2) {
    double steps = emit_likely_size(t, rows) * floor(emit_likely_size(t, n) / wide);
    if ((!dim_is_const(n) || n % wide == 0) && steps >= BUSY) {
      return wide;
    }
  }
  return emit_choose_lanes(n, e->wide);
}

int emit_column_vectors(const emit_element *e, hlo_value v) {
  walk w = {.e = e};
  return find_column_vectors(&w, v);
}

bool emit_prefers_row_loop(const emit_element *e, hlo_value v) {
  walk w = {.e = e};
  return prefers_row_loop(&w, v);
}

bool emit_takes_math(const emit_element *e, hlo_value v) {
  walk w = {.e = e};
  return takes_math(&w, v);
}
