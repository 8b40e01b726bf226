/* row_space.c - row spaces and row-wise bodies; see row_space.h. */
#include "hlo/analysis/row_space.h"

/* --- row spaces --- */

/* Appends a dimension, or merges it with the last one.  Returns false if there are too many. */
static bool add_dim(hlo_row_space *s, dim n, bool gone) {
  if (n == 1) {
    return true;
  }
  if (s->rank && s->gone[s->rank - 1] == gone) {
    s->dims[s->rank - 1] = dim_mul(s->table, s->dims[s->rank - 1], n);
    return true;
  }
  if (s->rank == HLO_ROW_DIMS) {
    return false;
  }
  s->dims[s->rank] = n;
  s->gone[s->rank++] = gone;
  return true;
}

static bool make_space(dim_table *t, const shape *x, uint32_t gone, hlo_row_space *s) {
  *s = (hlo_row_space){.table = t, .rows = 1, .length = 1};
  for (int k = 0; k < x->rank; k++) {
    bool goes = gone >> k & 1;
    if (!add_dim(s, x->dims[k], goes)) {
      return false;
    }
    s->rows = goes ? s->rows : dim_mul(t, s->rows, x->dims[k]);
    s->length = goes ? dim_mul(t, s->length, x->dims[k]) : s->length;
  }
  s->elements = dim_mul(t, s->rows, s->length);
  return s->elements != 0 && s->elements != DIM_OVERFLOW && s->length != 1;
}

static dim elements_of(const hlo_row_space *s, const shape *x) { return shape_dim_product(s->table, x, 0, x->rank); }

bool hlo_is_full(const hlo_row_space *s, const shape *x) { return elements_of(s, x) == s->elements; }
bool hlo_is_kept(const hlo_row_space *s, const shape *x) { return elements_of(s, x) == s->rows; }

static bool is_plain(const dim_table *t, const shape *s) {
  return s->kind == SHAPE_ARRAY && s->type != DTYPE_STR && shape_is_exact(t, s);
}

bool hlo_row_space_of(const hlo_instr *reduce, hlo_row_space *s) {
  uint32_t gone = 0;
  for (uint32_t k = 0; k < hlo_n_ints(reduce, HLO_ATTR_DIMENSIONS); k++) {
    gone |= (uint32_t)1 << hlo_ints(reduce, HLO_ATTR_DIMENSIONS)[k];
  }
  const shape *x = hlo_shape(reduce->operands[0]);
  dim_table *t = reduce->parent->module->dims;
  return is_plain(t, x) && make_space(t, x, gone, s);
}

bool hlo_row_space_equal(const hlo_row_space *a, const hlo_row_space *b) {
  bool same = a->rank == b->rank;
  for (int k = 0; same && k < a->rank; k++) {
    same = a->dims[k] == b->dims[k] && a->gone[k] == b->gone[k];
  }
  return same;
}

bool hlo_reduces_rows(const hlo_row_space *s, const hlo_instr *reduce) {
  hlo_row_space mine;
  return hlo_row_space_of(reduce, &mine) && hlo_row_space_equal(s, &mine);
}

bool hlo_broadcasts_rows(const hlo_row_space *s, const hlo_instr *broadcast) {
  const shape *x = hlo_shape(broadcast->operands[0]), *y = &broadcast->shapes[0];
  if (!is_plain(s->table, x) || !is_plain(s->table, y)) {
    return false;
  }
  uint32_t gone = ((uint32_t)1 << y->rank) - 1;
  int64_t last = -1;
  for (int k = 0; k < x->rank; k++) {
    int64_t d = hlo_ints(broadcast, HLO_ATTR_DIMENSIONS)[k];
    if (x->dims[k] == 1) {
      continue;
    }
    if (d < last) { /* the broadcast changes the order of the dimensions */
      return false;
    }
    last = d;
    gone &= ~((uint32_t)1 << d);
  }
  hlo_row_space mine;
  return make_space(s->table, y, gone, &mine) && hlo_row_space_equal(s, &mine);
}

bool hlo_is_position_wise(const hlo_instr *i) {
  return hlo_info(i)->kind == HLO_ELEMENTWISE || i->op == HLO_RESHAPE || i->op == HLO_COPY;
}

/* --- bodies of row-wise fusions --- */

enum { MAX_BODY = 512, MAX_REDUCES = 48 };

typedef struct body {
  uint32_t n;
  const hlo_instr *of[MAX_BODY];
  bool hot[MAX_BODY]; /* for each instruction of the body: whether it depends on a reduction */
} body;

static bool is_hot(const body *b, const hlo_instr *i) {
  for (uint32_t k = b->n; k-- > 0;) {
    if (b->of[k] == i) {
      return b->hot[k];
    }
  }
  return false;
}

/* Returns true if i is allowed in a row-wise body.  A reduction must have one result and the row space *s.  An
 * instruction that is no reduction and does not depend on one is allowed.  If it depends on one (is hot), its result
 * must be a full array or have one value for each row, and each row of the result may depend only on the same row of
 * the operands. */
static bool fits(const body *b, const hlo_row_space *s, const hlo_instr *i, bool hot) {
  if (i->op == HLO_REDUCE) {
    return i->n_results == 1 && hlo_reduces_rows(s, i);
  }
  if (!hot) {
    return true;
  }
  if (i->op == HLO_BROADCAST) {
    return hlo_broadcasts_rows(s, i);
  }
  bool whole = i->n_results == 1 && hlo_is_position_wise(i);
  dim n = elements_of(s, &i->shapes[0]);
  for (uint32_t k = 0; whole && k < i->n_operands; k++) {
    whole = !is_hot(b, i->operands[k].def) || elements_of(s, hlo_shape(i->operands[k])) == n;
  }
  return whole && (n == s->rows || n == s->elements);
}

bool hlo_is_row_wise(const hlo_computation *c, hlo_row_space *s) {
  body b = {0};
  uint32_t n_reduces = 0;
  bool any = false, full_hot = false, full_root = false, kept_root = false;
  for (const hlo_instr *i = c->first; i; i = i->next) {
    if (b.n == MAX_BODY || n_reduces > MAX_REDUCES) {
      return false;
    }
    if (i->op == HLO_REDUCE && !any && !hlo_row_space_of(i, s)) {
      return false;
    }
    any |= i->op == HLO_REDUCE;
    n_reduces += i->op == HLO_REDUCE;
    bool hot = i->op == HLO_REDUCE;
    for (uint32_t k = 0; k < i->n_operands; k++) {
      hot |= is_hot(&b, i->operands[k].def);
    }
    if ((any || hot) && !fits(&b, s, i, hot)) {
      return false;
    }
    full_hot |= hot && hlo_is_full(s, &i->shapes[0]);
    b.of[b.n] = i;
    b.hot[b.n++] = hot;
  }
  for (uint32_t k = 0; any && k < c->n_roots; k++) {
    const shape *x = hlo_shape(c->roots[k]);
    if (!hlo_is_full(s, x) && !hlo_is_kept(s, x)) {
      return false;
    }
    full_root |= hlo_is_full(s, x);
    kept_root |= hlo_is_kept(s, x);
  }
  return any && (full_hot || (full_root && kept_root));
}
