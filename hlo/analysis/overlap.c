/* overlap.c - how results depend on operands; see overlap.h. */
#include "hlo/analysis/overlap.h"

#include "base/dim/guard.h"
#include "hlo/analysis/row_space.h"

/* What is known of each instruction of a body, in list order. */
typedef struct analysis {
  const hlo_row_space *rows; /* NULL if the body is not row-wise, or if the parameter is not a full array */
  uint32_t n;
  const hlo_instr **of;
  hlo_dependence *dependence;
} analysis;

static hlo_dependence found(const analysis *a, const hlo_instr *i) {
  for (uint32_t k = a->n; k-- > 0;) {
    if (a->of[k] == i) {
      return a->dependence[k];
    }
  }
  return HLO_ON_ANY_ELEMENT;
}

/* Returns true if the two shapes, of values of one module, have equally many elements for all sizes. */
static bool same_elements(const hlo_instr *i, const shape *x, const shape *y) {
  dim_table *t = i->parent->module->dims;
  return shape_is_static(x) && shape_is_static(y)
             ? shape_elements(x) == shape_elements(y)
             : dim_known_equal(t, shape_dim_product(t, x, 0, x->rank), shape_dim_product(t, y, 0, y->rank));
}

/* Returns true if the broadcast only adds dimensions of 1, so that elements keep their linear positions. */
static bool keeps_order(const hlo_instr *broadcast) {
  const shape *x = hlo_shape(broadcast->operands[0]);
  int64_t last = -1;
  for (int k = 0; k < x->rank; k++) {
    int64_t d = hlo_ints(broadcast, HLO_ATTR_DIMENSIONS)[k];
    if (x->dims[k] != 1 && d < last) {
      return false;
    }
    last = x->dims[k] != 1 ? d : last;
  }
  return same_elements(broadcast, x, &broadcast->shapes[0]);
}

/* Returns true if element k of every result depends on no other element of operand `operand` than element k. */
static bool maps_elements(const hlo_instr *i, uint32_t operand) {
  const shape *x = hlo_shape(i->operands[operand]), *y = &i->shapes[0];
  if (x->kind != SHAPE_ARRAY || y->kind != SHAPE_ARRAY || !same_elements(i, x, y)) {
    return false;
  }
  switch (i->op) {
    case HLO_BROADCAST: return keeps_order(i);
    case HLO_BITCAST: /* operand and result have equally many elements (checked above) */ return true;
    case HLO_DYNAMIC_UPDATE_SLICE:
    case HLO_SCATTER: /* elements that are not updated stay */ return operand == 0;
    default: return hlo_is_position_wise(i);
  }
}

static bool maps_rows(const analysis *a, const hlo_instr *i) {
  return a->rows && ((i->op == HLO_REDUCE && hlo_reduces_rows(a->rows, i)) ||
                     (i->op == HLO_BROADCAST && hlo_broadcasts_rows(a->rows, i)));
}

/* Returns how `i` depends on a parameter of the body by way of its operand number `operand`, which depends on that
 * parameter as `given` says. */
static hlo_dependence through(const analysis *a, const hlo_instr *i, uint32_t operand, hlo_dependence given) {
  if (given == HLO_INDEPENDENT || given == HLO_ON_ANY_ELEMENT || maps_elements(i, operand)) {
    return given;
  }
  return maps_rows(a, i) ? HLO_ON_SAME_ROW : HLO_ON_ANY_ELEMENT;
}

static hlo_dependence stronger(hlo_dependence x, hlo_dependence y) { return x > y ? x : y; }

static hlo_dependence of_instr(const analysis *a, const hlo_instr *i) {
  hlo_dependence most = HLO_INDEPENDENT;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    most = stronger(most, through(a, i, k, found(a, i->operands[k].def)));
  }
  return most;
}

static uint32_t length_of(const hlo_computation *c) {
  uint32_t n = 0;
  for (const hlo_instr *i = c->first; i; i = i->next) {
    n++;
  }
  return n;
}

static hlo_dependence of_body(arena *memory, const hlo_computation *c, const hlo_instr *param) {
  hlo_row_space space;
  uint32_t n = length_of(c);
  bool by_rows = hlo_is_row_wise(c, &space) && hlo_is_full(&space, &param->shapes[0]);
  analysis a = {.rows = by_rows ? &space : NULL,
                .of = ARENA_NEW_N(memory, const hlo_instr *, n),
                .dependence = ARENA_NEW_N(memory, hlo_dependence, n)};
  for (const hlo_instr *i = c->first; i; i = i->next) {
    hlo_dependence one = i == param ? HLO_ON_SAME_ELEMENT : of_instr(&a, i);
    a.of[a.n] = i;
    a.dependence[a.n++] = one;
  }
  hlo_dependence most = HLO_INDEPENDENT;
  for (uint32_t k = 0; k < c->n_roots; k++) {
    most = stronger(most, found(&a, c->roots[k].def));
  }
  return most;
}

hlo_dependence hlo_dependence_on(arena *a, const hlo_instr *i, uint32_t operand) {
  if (i->op == HLO_FUSION) {
    return of_body(a, hlo_callee(i, 0), hlo_callee(i, 0)->params[operand]);
  }
  return maps_elements(i, operand) ? HLO_ON_SAME_ELEMENT : HLO_ON_ANY_ELEMENT;
}

bool hlo_may_overlap(arena *a, const hlo_instr *i, uint32_t operand, uint32_t result, hlo_access access) {
  if (access != HLO_READS_ROW_FIRST) {
    return access == HLO_READS_ALL_FIRST;
  }
  const shape *x = hlo_shape(i->operands[operand]), *y = &i->shapes[result];
  return dtype_bytes((dtype)x->type) == dtype_bytes((dtype)y->type) && same_elements(i, x, y) &&
         hlo_dependence_on(a, i, operand) <= HLO_ON_SAME_ROW;
}
