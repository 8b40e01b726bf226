/* dim_evaluate.c - computes the number that an expression is for given values of symbols. */
#include "base/dim/dim_nodes.h"

typedef struct evaluation {
  const dim_table *table;
  dim_value_fn *value;
  void *data;
} evaluation;

static bool evaluate(const evaluation *e, dim d, int64_t *out);

/* Computes without a check of the result's range, except for products, which alone can exceed 64 bits. */
static bool operate(dim_kind kind, int64_t a, int64_t b, int64_t *out) {
  switch (kind) {
    case DIM_ADD: *out = a + b; return true;
    case DIM_MUL: return !__builtin_mul_overflow(a, b, out);
    case DIM_FLOORDIV: *out = b > 0 ? dim_floor_quotient(a, b) : 0; return b > 0;
    case DIM_CEILDIV: *out = b > 0 ? -dim_floor_quotient(-a, b) : 0; return b > 0;
    case DIM_MOD: *out = b > 0 ? a - b * dim_floor_quotient(a, b) : 0; return b > 0;
    case DIM_MAX_OF: *out = a > b ? a : b; return true;
    case DIM_MIN_OF: *out = a < b ? a : b; return true;
    case DIM_NEG: *out = -a; return true;
    default: return false;
  }
}

static bool is_within(int64_t x) { return x >= -DIM_MAX && x <= DIM_MAX; }

bool dim_operate(dim_kind kind, int64_t a, int64_t b, int64_t *out) {
  return operate(kind, a, b, out) && is_within(*out);
}

static bool evaluate_node(const evaluation *e, const dim_node *n, dim d, int64_t *out) {
  int64_t a, b = 0;
  switch (n->kind) {
    case DIM_SYMBOL: *out = e->value(e->data, d); return is_within(*out);
    case DIM_BOUNDED: *out = e->value(e->data, n->rhs); return is_within(*out);
    default:
      return evaluate(e, n->lhs, &a) && (n->kind == DIM_NEG || evaluate(e, n->rhs, &b)) &&
             dim_operate(n->kind, a, b, out);
  }
}

static bool evaluate(const evaluation *e, dim d, int64_t *out) {
  if (dim_is_const(d)) {
    *out = d;
    return d <= DIM_MAX;
  }
  return d != DIM_OVERFLOW && evaluate_node(e, dim_at(e->table, d), d, out);
}

bool dim_evaluate(const dim_table *t, dim d, dim_value_fn *value, void *data, int64_t *out) {
  return evaluate(&(evaluation){t, value, data}, d, out);
}
