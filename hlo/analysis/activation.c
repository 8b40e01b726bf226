/* activation.c - see activation.h.  The result of each operation between x and the activation's result is represented
 * as a polynomial in x and t.  Here t is f(g(x)), where f is erf, tanh, logistic or clamp, and g is a polynomial in x.
 * An activation is then recognised by the coefficients, whatever operations they come from. */
#include "hlo/analysis/activation.h"

#include <math.h>

#include "hlo/analysis/queries.h"

/* --- polynomials --- */

enum { X_TERMS = 4, T_TERMS = 2, TERMS = X_TERMS * T_TERMS };

/* A polynomial with terms up to x^3 and their products with t: c[i] is the coefficient of x^i, and c[X_TERMS + i] that
 * of t x^i. */
typedef struct polynomial {
  double c[TERMS];
} polynomial;

/* Sets of terms, as bits.  has_only checks that all coefficients outside of a set are 0. */
enum terms { ONE = 1, X = 2, XX = 4, XXX = 8, TX = X << X_TERMS, IN_X = ONE | X | XX | XXX };

static bool has_only(const polynomial *p, unsigned terms) {
  bool only = true;
  for (int k = 0; k < TERMS; k++) {
    only = only && (p->c[k] == 0 || terms >> k & 1);
  }
  return only;
}

/* Computes the product of x and y.  Returns false if it has terms that the struct polynomial cannot hold. */
static bool product_of(const polynomial *x, const polynomial *y, polynomial *out) {
  *out = (polynomial){{0}};
  for (int i = 0; i < TERMS; i++) {
    for (int j = 0; j < TERMS; j++) {
      double c = x->c[i] * y->c[j];
      bool fits = i % X_TERMS + j % X_TERMS < X_TERMS && i + j < TERMS;
      if (c != 0 && !fits) {
        return false;
      }
      if (fits) {
        out->c[i + j] += c;
      }
    }
  }
  return true;
}

static bool power_of(const polynomial *x, double exponent, polynomial *out) {
  polynomial square;
  if ((exponent != 2 && exponent != 3) || !product_of(x, x, &square)) {
    return false;
  }
  *out = square;
  return exponent == 2 || product_of(&square, x, out);
}

/* Sets *out to the result of an operation with two operands.  Returns false if it is not a polynomial in x and t. */
static bool combine(hlo_op op, const polynomial *x, const polynomial *y, polynomial *out) {
  if (op == HLO_MUL) {
    return product_of(x, y, out);
  }
  if (op == HLO_POW) {
    return has_only(y, ONE) && power_of(x, y->c[0], out);
  }
  for (int k = 0; k < TERMS; k++) {
    out->c[k] = op == HLO_DIV ? x->c[k] / y->c[0] : op == HLO_ADD ? x->c[k] + y->c[k] : x->c[k] - y->c[k];
  }
  return op == HLO_ADD || op == HLO_SUB || (op == HLO_DIV && has_only(y, ONE) && y->c[0] != 0);
}

/* --- what the members of an activation compute --- */

typedef struct finder {
  hlo_value x;
  hlo_splat_fn *splat;
  const void *data;
  polynomial computed[HLO_ACTIVATION_MEMBERS]; /* computed[k] is the result of members[k] of the hlo_activation, the
                                                  instructions found so far */
  const hlo_instr *inner;                      /* the instruction that computes t; NULL until it is found */
  polynomial g;                                /* the operand of `inner` */
} finder;

static bool plain_splat(const void *data, hlo_value v, double *number) {
  literal l;
  (void)data;
  if (!dtype_is_float(hlo_type(v)) || !hlo_splat_of(v, &l)) {
    return false;
  }
  *number = literal_f64(&l, 0);
  return true;
}

static bool number_of(const finder *f, hlo_value v, double *number) { return f->splat(f->data, v, number); }

/* Returns true if v is x or the result of one of a->members[], and sets *out to its polynomial. */
static bool member_of(const finder *f, const hlo_activation *a, hlo_value v, polynomial *out) {
  *out = (polynomial){{0, 1}};
  bool found = hlo_value_equal(v, f->x);
  for (uint32_t k = 0; k < a->n && !found; k++) {
    found = v.def == a->members[k];
    *out = f->computed[k];
  }
  return found;
}

/* Sets operands[] to the polynomials of i's operands.  Returns how many operands are x or results of a->members[].
 * Returns 0 also if another operand is not a constant number, or if `i` is not an elementwise operation on arrays of
 * x's shape, since `i` then does not belong to the activation. */
static uint32_t read_operands(const finder *f, const hlo_activation *a, const hlo_instr *i, polynomial *operands) {
  uint32_t n = 0;
  bool elementwise = hlo_info(i)->kind == HLO_ELEMENTWISE && i->n_results == 1;
  if (!elementwise || !shape_equal(&i->shapes[0], hlo_shape(f->x))) {
    return 0;
  }
  for (uint32_t k = 0; k < i->n_operands; k++) {
    bool member = member_of(f, a, i->operands[k], &operands[k]);
    if (!member) {
      operands[k] = (polynomial){{0}};
      if (!number_of(f, i->operands[k], &operands[k].c[0])) {
        return 0;
      }
    }
    n += member;
  }
  return n;
}

/* Sets *out to the result of `i`.  If i computes t, sets f->inner and f->g.  Returns false if the result is not a
 * polynomial in x and t. */
static bool compute(finder *f, const hlo_instr *i, const polynomial *operands, polynomial *out) {
  if (i->op != HLO_ERF && i->op != HLO_TANH && i->op != HLO_LOGISTIC && i->op != HLO_CLAMP) {
    return i->n_operands == 2 && combine(i->op, &operands[0], &operands[1], out);
  }
  bool first = !f->inner;
  f->inner = i;
  f->g = operands[i->op == HLO_CLAMP];
  *out = (polynomial){.c[X_TERMS] = 1};
  return first && has_only(&f->g, IN_X);
}

/* --- the activations --- */

/* Returns true if x and y are equal up to a few rounding errors of f32. */
static bool is_near(double x, double y) { return fabs(x - y) <= 1e-6 * fabs(y); }

/* Returns true if q * clamp(low, g, high) is min(max(x/6 + 1/2, 0), 1). */
static bool is_hard_gate(const finder *f, double q) {
  double low, high;
  return number_of(f, f->inner->operands[0], &low) && number_of(f, f->inner->operands[2], &high) && low == 0 &&
         is_near(q * high, 1) && has_only(&f->g, ONE | X) && is_near(q * f->g.c[0], 0.5) &&
         is_near(q * f->g.c[1], 1.0 / 6);
}

/* Returns true if y has the form p*x + q*x*t and is one of the activations.  Sets out->kind and, for HLO_SWISH,
 * out->alpha. */
static bool recognise(const finder *f, const polynomial *y, hlo_activation *out) {
  const double tanh_scale = M_2_SQRTPI * M_SQRT1_2, tanh_cube = 0.044715;
  const polynomial *g = &f->g;
  double p = y->c[1], q = y->c[X_TERMS + 1];
  bool halves = is_near(p, 0.5) && is_near(q, 0.5);
  if (!f->inner || !has_only(y, X | TX)) {
    return false;
  }
  switch (f->inner->op) {
    case HLO_LOGISTIC:
      out->kind = HLO_SWISH;
      out->alpha = g->c[1];
      return p == 0 && is_near(q, 1) && has_only(g, X);
    case HLO_ERF: out->kind = HLO_GELU_ERF; return halves && has_only(g, X) && is_near(g->c[1], M_SQRT1_2);
    case HLO_TANH:
      out->kind = HLO_GELU_TANH;
      return halves && has_only(g, X | XXX) && is_near(g->c[1], tanh_scale) && is_near(g->c[3], tanh_scale * tanh_cube);
    default: out->kind = HLO_HARD_SWISH; return p == 0 && is_hard_gate(f, q);
  }
}

bool hlo_find_activation(hlo_instr *x, hlo_splat_fn *splat, const void *data, hlo_activation *out) {
  enum { LOOKED_AT = 128 }; /* the search ends this many instructions after x */
  finder f = {.x = hlo_result(x, 0), .splat = splat ? splat : plain_splat, .data = data};
  uint32_t open = x->n_uses; /* the number of uses of x and of the results of out->members[] by instructions that are
                                not in out->members[] */
  *out = (hlo_activation){.alpha = 1};
  if (x->n_results != 1 || x->n_uses < 2 || !dtype_is_float((dtype)x->shapes[0].type) || hlo_is_root(f.x)) {
    return false;
  }
  int looked = 0;
  for (hlo_instr *i = x->next; i && looked < LOOKED_AT && out->n < HLO_ACTIVATION_MEMBERS; i = i->next, looked++) {
    polynomial operands[3];
    uint32_t n = read_operands(&f, out, i, operands);
    if (n == 0) {
      continue;
    }
    polynomial *y = &f.computed[out->n];
    if (!compute(&f, i, operands, y)) {
      return false;
    }
    open -= n;
    out->members[out->n++] = i;
    if (open == 0 && recognise(&f, y, out)) { /* otherwise goes on, since a multiplication by a constant may follow */
      return true;
    }
    if (i->n_uses == 0 || hlo_is_root(hlo_result(i, 0))) {
      return false;
    }
    open += i->n_uses;
  }
  return false;
}
