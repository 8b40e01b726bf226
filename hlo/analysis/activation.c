/* activation.c - see activation.h.  What is looked for has the form x * c * (p + q*f(g(x))): a product whose factors
 * are x, numbers and one sum with f (erf, tanh, logistic, clamp), where g is a polynomial. */
#include "hlo/analysis/activation.h"

#include <math.h>
#include <string.h>

#include "hlo/analysis/queries.h"

typedef struct finder {
  hlo_value x;
  hlo_splat_fn *splat;
  const void *data;
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

/* Equal but for what a few roundings of f32 make of it. */
static bool is_near(double x, double y) { return fabs(x - y) <= 1e-6 * fabs(y); }

/* --- polynomials in x --- */

enum { DEGREE = 3, DEPTH = 12 };
typedef struct polynomial {
  double c[DEGREE + 1];
} polynomial;

static bool polynomial_of(const finder *f, hlo_value v, int depth, polynomial *out);

static bool product_of(const polynomial *x, const polynomial *y, polynomial *out) {
  *out = (polynomial){{0}};
  for (int i = 0; i <= DEGREE; i++) {
    for (int j = 0; j <= DEGREE; j++) {
      double c = x->c[i] * y->c[j];
      if (c != 0 && i + j > DEGREE) {
        return false;
      }
      if (i + j <= DEGREE) {
        out->c[i + j] += c;
      }
    }
  }
  return true;
}

static bool polynomial_binary(const finder *f, const hlo_instr *i, int depth, polynomial *out) {
  polynomial x, y;
  if (!polynomial_of(f, i->operands[0], depth, &x) || !polynomial_of(f, i->operands[1], depth, &y)) {
    return false;
  }
  bool constant = y.c[1] == 0 && y.c[2] == 0 && y.c[3] == 0;
  switch (i->op) {
    case HLO_ADD:
    case HLO_SUB:
      for (int k = 0; k <= DEGREE; k++) {
        out->c[k] = x.c[k] + (i->op == HLO_ADD ? y.c[k] : -y.c[k]);
      }
      return true;
    case HLO_MUL: return product_of(&x, &y, out);
    case HLO_DIV:
      for (int k = 0; k <= DEGREE; k++) {
        out->c[k] = x.c[k] / y.c[0];
      }
      return constant && y.c[0] != 0;
    case HLO_POW: {
      polynomial square;
      if (!constant || (y.c[0] != 2 && y.c[0] != 3) || !product_of(&x, &x, &square)) {
        return false;
      }
      *out = square;
      return y.c[0] == 2 || product_of(&square, &x, out);
    }
    default: return false;
  }
}

static bool polynomial_of(const finder *f, hlo_value v, int depth, polynomial *out) {
  double number;
  *out = (polynomial){{0}};
  if (hlo_value_equal(v, f->x)) {
    out->c[1] = 1;
    return true;
  }
  if (number_of(f, v, &number)) {
    out->c[0] = number;
    return true;
  }
  return depth > 0 && v.def->n_operands == 2 && v.def->n_results == 1 && polynomial_binary(f, v.def, depth - 1, out);
}

/* --- the gate: p + q*f(..) --- */

typedef struct gate {
  double p, q;
  hlo_value inner; /* f(..) */
} gate;

static bool gate_of(const finder *f, hlo_value v, int depth, gate *out) {
  const hlo_instr *i = v.def;
  double number;
  if (i->op == HLO_ERF || i->op == HLO_TANH || i->op == HLO_LOGISTIC || i->op == HLO_CLAMP) {
    *out = (gate){0, 1, v};
    return true;
  }
  if (depth == 0 || i->n_operands != 2) {
    return false;
  }
  bool swapped = number_of(f, i->operands[0], &number);
  if (!swapped && !number_of(f, i->operands[1], &number)) {
    return false;
  }
  if (!gate_of(f, i->operands[swapped], depth - 1, out)) {
    return false;
  }
  switch (i->op) {
    case HLO_ADD: out->p += number; return true;
    case HLO_MUL:
      out->p *= number;
      out->q *= number;
      return true;
    case HLO_DIV:
      out->p /= number;
      out->q /= number;
      return !swapped && number != 0;
    default: return false;
  }
}

/* --- the product --- */

typedef struct factors {
  double number;
  uint32_t n_x;
  bool has_gate;
  gate gate;
} factors;

static bool factors_of(const finder *f, hlo_value v, int depth, factors *out) {
  const hlo_instr *i = v.def;
  double number;
  if (hlo_value_equal(v, f->x)) {
    out->n_x++;
    return true;
  }
  if (number_of(f, v, &number)) {
    out->number *= number;
    return true;
  }
  if (depth > 0 && i->op == HLO_MUL) {
    return factors_of(f, i->operands[0], depth - 1, out) && factors_of(f, i->operands[1], depth - 1, out);
  }
  if (depth > 0 && i->op == HLO_DIV && number_of(f, i->operands[1], &number) && number != 0) {
    out->number /= number;
    return factors_of(f, i->operands[0], depth - 1, out);
  }
  bool first = !out->has_gate;
  out->has_gate = true;
  return first && gate_of(f, v, depth, &out->gate);
}

static bool is_line(const polynomial *g) { return g->c[0] == 0 && g->c[2] == 0 && g->c[3] == 0; }

/* Returns true if q times `clamp`, whose operand is `g` of x, is the gate of a hard-swish, by which x is multiplied. */
static bool is_hard_gate(const finder *f, const hlo_instr *clamp, const polynomial *g, double q) {
  double low, high;
  return number_of(f, clamp->operands[0], &low) && number_of(f, clamp->operands[2], &high) && low == 0 &&
         is_near(q * high, 1) && g->c[2] == 0 && g->c[3] == 0 && is_near(q * g->c[0], 0.5) &&
         is_near(q * g->c[1], 1.0 / 6);
}

/* Returns true if `y` is one of the functions. */
static bool recognise(const finder *f, hlo_value y, hlo_activation *out) {
  const double tanh_scale = M_2_SQRTPI * M_SQRT1_2, tanh_cube = 0.044715;
  factors all = {.number = 1};
  polynomial g;
  if ((y.def->op != HLO_MUL && y.def->op != HLO_DIV) || !factors_of(f, y, DEPTH, &all) || all.n_x != 1 ||
      !all.has_gate) {
    return false;
  }
  const hlo_instr *inner = all.gate.inner.def;
  if (!polynomial_of(f, inner->operands[inner->op == HLO_CLAMP], DEPTH, &g)) {
    return false;
  }
  double p = all.number * all.gate.p, q = all.number * all.gate.q;
  switch (inner->op) {
    case HLO_LOGISTIC:
      out->kind = HLO_SWISH;
      out->alpha = g.c[1];
      return p == 0 && is_near(q, 1) && is_line(&g);
    case HLO_ERF:
      out->kind = HLO_GELU_ERF;
      return is_near(p, 0.5) && is_near(q, 0.5) && is_line(&g) && is_near(g.c[1], M_SQRT1_2);
    case HLO_TANH:
      out->kind = HLO_GELU_TANH;
      return is_near(p, 0.5) && is_near(q, 0.5) && g.c[0] == 0 && g.c[2] == 0 && is_near(g.c[1], tanh_scale) &&
             is_near(g.c[3], tanh_scale * tanh_cube);
    case HLO_CLAMP: out->kind = HLO_HARD_SWISH; return p == 0 && is_hard_gate(f, inner, &g, q);
    default: return false;
  }
}

/* --- what stands between --- */

static bool is_member(const hlo_activation *a, const finder *f, hlo_value v) {
  bool found = hlo_value_equal(v, f->x);
  for (uint32_t k = 0; k < a->n && !found; k++) {
    found = v.def == a->members[k];
  }
  return found;
}

/* Uses of members in `i`; 0 too where it is none of the operations. */
static uint32_t uses_in(const finder *f, const hlo_activation *a, const hlo_instr *i) {
  uint32_t n = 0;
  double number;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    bool member = is_member(a, f, i->operands[k]);
    if (!member && !number_of(f, i->operands[k], &number)) {
      return 0;
    }
    n += member;
  }
  bool elementwise = hlo_info(i)->kind == HLO_ELEMENTWISE && i->n_results == 1;
  return elementwise && shape_equal(&i->shapes[0], hlo_shape(f->x)) ? n : 0;
}

bool hlo_find_activation(hlo_instr *x, hlo_splat_fn *splat, const void *data, hlo_activation *out) {
  enum { LOOKED_AT = 128 }; /* instructions: splats and what belongs to others stand between */
  finder f = {hlo_result(x, 0), splat ? splat : plain_splat, data};
  uint32_t open = x->n_uses; /* uses of x and members that no member is */
  *out = (hlo_activation){.alpha = 1};
  if (x->n_results != 1 || x->n_uses < 2 || !dtype_is_float((dtype)x->shapes[0].type) || hlo_is_root(f.x)) {
    return false;
  }
  int looked = 0;
  for (hlo_instr *i = x->next; i && looked < LOOKED_AT && out->n < HLO_ACTIVATION_MEMBERS; i = i->next, looked++) {
    uint32_t n = uses_in(&f, out, i);
    if (n == 0) {
      continue;
    }
    open -= n;
    out->members[out->n++] = i;
    if (open == 0 && recognise(&f, hlo_result(i, 0), out)) { /* else a factor may follow */
      return true;
    }
    if (i->n_uses == 0 || hlo_is_root(hlo_result(i, 0))) {
      return false;
    }
    open += i->n_uses;
  }
  return false;
}
