/* dim_evaluate.c - evaluates expressions for given values of symbols, and translates expressions from one table to
 * another. */
#include "base/arith.h"
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
    case DIM_FLOORDIV: *out = b > 0 ? floor_div(a, b) : 0; return b > 0;
    case DIM_CEILDIV: *out = b > 0 ? -floor_div(-a, b) : 0; return b > 0;
    case DIM_MOD: *out = b > 0 ? a - b * floor_div(a, b) : 0; return b > 0;
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

/* --- expressions of another table --- */

typedef struct translation {
  dim_table *to;
  const dim_table *from;
  dim_atom_fn *atom;
  void *data;
} translation;

static dim translate(const translation *x, dim d);

static dim translate_node(const translation *x, const dim_node *n) {
  dim a = translate(x, n->lhs), b = n->kind == DIM_NEG ? 0 : translate(x, n->rhs);
  switch (n->kind) {
    case DIM_ADD: return dim_signed_add(x->to, a, b);
    case DIM_NEG: return dim_signed_sub(x->to, 0, a);
    case DIM_MUL: return dim_signed_mul(x->to, a, b);
    case DIM_FLOORDIV: return dim_floordiv(x->to, a, b);
    case DIM_CEILDIV: return dim_ceildiv(x->to, a, b);
    case DIM_MOD: return dim_mod(x->to, a, b);
    case DIM_MAX_OF: return dim_max(x->to, a, b);
    case DIM_MIN_OF: return dim_min(x->to, a, b);
    default: return DIM_OVERFLOW;
  }
}

static dim translate(const translation *x, dim d) {
  dim found;
  if (dim_is_const(d) || d == DIM_OVERFLOW) {
    return d;
  }
  const dim_node *n = dim_at(x->from, d);
  bool adds = n->kind == DIM_ADD || n->kind == DIM_NEG || n->kind == DIM_MUL;
  return !adds && x->atom(x->data, d, &found) ? found : translate_node(x, n);
}

dim dim_translate(dim_table *to, const dim_table *from, dim d, dim_atom_fn *atom, void *data) {
  return translate(&(translation){to, from, atom, data}, d);
}
