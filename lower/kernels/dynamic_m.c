/* dynamic_m.c - finds which values of an instruction have rows, and rewrites it for another number of rows. */
#include "lower/kernels/dynamic_m.h"

#include <string.h>

#include "lower/kernels/outline.h"

enum {
  /* the fewest elements of a row; kernels for shorter rows are faster if they are written for the actual shape */
  LEAST_ROW = 256
};

/* What is known about the values of a computation: for each, whether its leading dimensions are the rows in the sense
 * of dynamic_m.h.  The uses of a value decide this, so an instruction's results are visited before its operands. */
typedef struct rows {
  arena *arena;
  int64_t n;
  uint32_t n_facts, cap;
  struct fact {
    hlo_value value;
    bool has;
  } * facts;
  bool fails;
} rows;

/* Returns how many leading dimensions of s have r->n, the number of rows, as their product.  Returns -1 if there is no
 * such number. */
static int leading(const rows *r, const shape *s) {
  int64_t n = 1;
  for (int d = 0; d < s->rank && n < r->n; d++) {
    n *= s->dims[d];
    if (n == r->n) {
      return d + 1;
    }
  }
  return -1;
}

static struct fact *fact_of(const rows *r, hlo_value v) {
  for (uint32_t k = 0; k < r->n_facts; k++) {
    if (hlo_value_equal(r->facts[k].value, v)) {
      return &r->facts[k];
    }
  }
  return NULL;
}

static bool has_rows(const rows *r, hlo_value v) {
  const struct fact *f = fact_of(r, v);
  return f && f->has;
}

/* Records that v is needed row by row (`by_rows`), or as a whole.  Sets r->fails if v is needed in both ways, if it is
 * needed row by row but has no such rows, or if it is not an array. */
static void want(rows *r, hlo_value v, bool by_rows) {
  struct fact *f = fact_of(r, v);
  r->fails |=
      hlo_shape(v)->kind != SHAPE_ARRAY || (by_rows && leading(r, hlo_shape(v)) < 0) || (f && f->has != by_rows);
  if (!f) {
    *ARENA_PUSH(r->arena, r->facts, r->n_facts, r->cap) = (struct fact){v, by_rows};
  }
}

/* --- how operations need the rows of their operands --- */

/* Records how a broadcast needs its operand, whose dimensions become the dimensions HLO_ATTR_DIMENSIONS of the result.
 * The first q dimensions of the result are the rows; the operand must have all of them, or none. */
static void want_broadcast(rows *r, const hlo_instr *i, int q) {
  const shape *x = hlo_shape(i->operands[0]);
  const int64_t *dims = hlo_ints(i, HLO_ATTR_DIMENSIONS);
  int64_t before = 1;
  int n_before = 0;
  for (int d = 0; d < x->rank; d++) {
    r->fails |= d > 0 && dims[d] <= dims[d - 1];
    before *= dims[d] < q ? x->dims[d] : 1;
    n_before += dims[d] < q;
  }
  r->fails |= n_before > 0 && before != r->n;
  want(r, i->operands[0], n_before > 0);
  r->fails |= n_before > 0 && leading(r, x) > n_before;
}

static bool all_behind(uint32_t n, const int64_t *dims, int q) {
  for (uint32_t k = 0; k < n; k++) {
    if (dims[k] < q) {
      return false;
    }
  }
  return true;
}

static void want_dot(rows *r, const hlo_instr *i, int q) {
  const shape *x = hlo_shape(i->operands[0]);
  uint32_t n_sums = hlo_n_ints(i, HLO_ATTR_LHS_CONTRACT);
  int free_dims = x->rank - (int)n_sums;
  want(r, i->operands[0], true);
  want(r, i->operands[1], false);
  r->fails |= hlo_n_ints(i, HLO_ATTR_LHS_BATCH) != 0 || leading(r, x) != q || q > free_dims ||
              !all_behind(n_sums, hlo_ints(i, HLO_ATTR_LHS_CONTRACT), q);
}

/* Records that a gather needs its indices row by row and its other operand as a whole. */
static void want_gather(rows *r, const hlo_instr *i, int q) {
  int64_t vector = hlo_int(i, HLO_ATTR_INDEX_VECTOR_DIM);
  want(r, i->operands[0], false);
  want(r, i->operands[1], true);
  r->fails |= hlo_n_ints(i, HLO_ATTR_OPERAND_BATCH) != 0 || hlo_n_ints(i, HLO_ATTR_INDICES_BATCH) != 0 || vector < q ||
              leading(r, hlo_shape(i->operands[1])) != q ||
              !all_behind(hlo_n_ints(i, HLO_ATTR_OFFSET_DIMS), hlo_ints(i, HLO_ATTR_OFFSET_DIMS), q);
}

/* Records for each operand of `i` whether its leading dimensions must be the rows, if those of the results are the
 * rows. */
static void want_operands(rows *r, const hlo_instr *i) {
  int q = leading(r, &i->shapes[0]);
  switch (i->op) {
    case HLO_PARAMETER: return;
    case HLO_BROADCAST: want_broadcast(r, i, q); return;
    case HLO_RESHAPE: want(r, i->operands[0], true); return;
    case HLO_REDUCE:
      for (uint32_t k = 0; k < i->n_operands; k++) {
        want(r, i->operands[k], true);
        r->fails |= leading(r, hlo_shape(i->operands[k])) != q;
      }
      r->fails |= !all_behind(hlo_n_ints(i, HLO_ATTR_DIMENSIONS), hlo_ints(i, HLO_ATTR_DIMENSIONS), q);
      return;
    case HLO_DOT: want_dot(r, i, q); return;
    case HLO_GATHER: want_gather(r, i, q); return;
    default:
      r->fails |= hlo_info(i)->kind != HLO_ELEMENTWISE || i->n_operands == 0;
      for (uint32_t k = 0; k < i->n_operands; k++) {
        want(r, i->operands[k], true);
        r->fails |= !shape_same_dims(hlo_shape(i->operands[k]), &i->shapes[0]);
      }
  }
}

/* Returns true if `i` may be needed as a whole.  The kernel then computes it again for each row, which is acceptable
 * for cheap operations only. */
static bool is_cheap_as_a_whole(const hlo_instr *i) {
  hlo_kind kind = hlo_info(i)->kind;
  return kind == HLO_STRUCTURE || kind == HLO_ELEMENTWISE || kind == HLO_MOVEMENT;
}

static void want_results(rows *r, const hlo_instr *i) {
  bool any = false;
  for (uint32_t k = 0; k < i->n_results; k++) {
    any |= has_rows(r, hlo_result((hlo_instr *)i, k));
  }
  for (uint32_t k = 0; k < i->n_results && any; k++) {
    want(r, hlo_result((hlo_instr *)i, k), true);
  }
  for (uint32_t k = 0; k < i->n_operands && !any; k++) {
    want(r, i->operands[k], false);
  }
  r->fails |= !any && !is_cheap_as_a_whole(i);
  if (any && !r->fails) {
    want_operands(r, i);
  }
}

/* Finds which values of a fusion's body, or of one instruction, have rows.  Returns false if the instruction cannot be
 * compiled for any number of rows. */
static bool find(rows *r, const hlo_instr *i) {
  const hlo_computation *c = i->op == HLO_FUSION ? hlo_callee(i, 0) : NULL;
  for (uint32_t k = 0; k < i->n_results; k++) {
    want(r, c ? c->roots[k] : hlo_result((hlo_instr *)i, k), true);
  }
  for (const hlo_instr *j = c ? c->last : i; j && !r->fails; j = c ? j->prev : NULL) {
    want_results(r, j);
  }
  for (uint32_t k = 0; c && k < i->n_operands && !r->fails; k++) {
    want(r, i->operands[k], has_rows(r, hlo_result(c->params[k], 0)));
  }
  for (uint32_t k = 0; k < i->n_operands && !r->fails; k++) {
    r->fails |= has_rows(r, i->operands[k]) && lower_is_embedded(i, k);
  }
  return !r->fails;
}

bool lower_has_leading_rows(arena *a, const hlo_instr *i, int64_t n) {
  rows r = {.arena = a, .n = n};
  return n > 1 && find(&r, i);
}

int64_t lower_dynamic_m(arena *a, const hlo_instr *i, const emit_target *t) {
  const shape *s = &i->shapes[0];
  bool elementwise = i->op == HLO_FUSION || hlo_info(i)->kind == HLO_ELEMENTWISE || i->op == HLO_GATHER;
  if (!elementwise || s->kind != SHAPE_ARRAY) {
    return 0;
  }
  for (int q = s->rank - 1; q > 0; q--) {
    int64_t inner = shape_product(s, q, s->rank), n = shape_product(s, 0, q);
    if (inner >= LEAST_ROW && inner % t->lanes == 0 && lower_has_leading_rows(a, i, n)) {
      return n;
    }
  }
  return 0;
}

/* --- rewriting an instruction for another number of rows --- */

static shape with_rows(const rows *r, const shape *s, int64_t placeholder_m) {
  int q = leading(r, s);
  shape out = *s;
  memset(out.dims, 0, sizeof out.dims);
  out.rank = (uint8_t)(s->rank - q + 1);
  out.dims[0] = placeholder_m;
  memcpy(out.dims + 1, s->dims + q, (size_t)(s->rank - q) * sizeof *s->dims);
  return out;
}

/* Changes an attribute that lists dimensions to what it is after the first q dimensions have become one. */
static void shift(arena *a, hlo_instr *i, hlo_attr_id id, int q) {
  hlo_attr *x = hlo_attr_of(i, id);
  int64_t *dims = ARENA_NEW_N(a, int64_t, x->n + 1);
  uint32_t n = 0;
  for (uint32_t k = 0; k < x->n; k++) {
    if (x->ints[k] >= q) {
      dims[n++] = x->ints[k] - (q - 1);
    } else if (n == 0) {
      dims[n++] = 0;
    }
  }
  x->n = n;
  x->ints = dims;
}

/* Adapts the attributes that list dimensions to the shapes of with_rows(), where one dimension replaces the leading
 * dimensions whose product is the number of rows.  Must be called before the shapes are changed. */
static void change_attributes(const rows *r, hlo_instr *i) {
  int q = leading(r, &i->shapes[0]);
  switch (i->op) {
    case HLO_BROADCAST:
    case HLO_REDUCE: shift(r->arena, i, HLO_ATTR_DIMENSIONS, q); return;
    case HLO_DOT: shift(r->arena, i, HLO_ATTR_LHS_CONTRACT, q); return;
    case HLO_GATHER:
      shift(r->arena, i, HLO_ATTR_OFFSET_DIMS, q);
      hlo_attr_of(i, HLO_ATTR_INDEX_VECTOR_DIM)->i -= q - 1;
      return;
    default: return;
  }
}

void lower_set_m(arena *a, hlo_instr *alone, int64_t n, int64_t placeholder_m) {
  rows r = {.arena = a, .n = n};
  (void)find(&r, alone);
  for (uint32_t k = 0; k < r.n_facts; k++) {
    hlo_value v = r.facts[k].value;
    if (r.facts[k].has && v.index == 0 && v.def->op != HLO_FUSION) {
      change_attributes(&r, v.def);
    }
  }
  for (uint32_t k = 0; k < r.n_facts; k++) {
    shape *s = (shape *)(uintptr_t)hlo_shape(r.facts[k].value);
    *s = r.facts[k].has ? with_rows(&r, s, placeholder_m) : *s;
  }
  for (uint32_t k = 0; alone->op == HLO_FUSION && k < alone->n_results; k++) {
    alone->shapes[k] = with_rows(&r, &alone->shapes[k], placeholder_m);
  }
}
