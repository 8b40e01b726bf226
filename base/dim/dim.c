/* dim.c - the arithmetic of dim.h.  Dims are converted to polynomials and back. */
#include "base/dim/dim_nodes.h"

#include <string.h>

#include "base/arith.h"

/* The most terms of a polynomial; one with more becomes DIM_OVERFLOW.  Real models have fewer, but a hostile one may
 * have more. */
enum { TERMS_MAX = 64 };

/* --- polynomials --- */

typedef struct term {
  dim monomial;   /* 1 for the constant term */
  int64_t factor; /* not 0 */
} term;

typedef struct poly {
  int n;
  bool overflow;
  term terms[TERMS_MAX]; /* in the order of dim_monomial_compare, so the constant is the last */
} poly;

static void poly_add_term(const dim_table *t, poly *p, dim atoms, int64_t factor) {
  p->overflow = p->overflow || atoms == DIM_OVERFLOW || factor > DIM_MAX || factor < -DIM_MAX;
  if (p->overflow || !factor) {
    return;
  }
  int at = 0;
  while (at < p->n && dim_monomial_compare(t, p->terms[at].monomial, atoms) < 0) {
    at++;
  }
  term *here = &p->terms[at];
  if (at < p->n && here->monomial == atoms) {
    here->factor += factor; /* no overflow: both are far below 2^63 */
    p->overflow = here->factor > DIM_MAX || here->factor < -DIM_MAX;
    if (!here->factor) {
      p->n--;
      memmove(here, here + 1, (size_t)(p->n - at) * sizeof *here);
    }
    return;
  }
  if (p->n == TERMS_MAX) {
    p->overflow = true;
    return;
  }
  memmove(here + 1, here, (size_t)(p->n - at) * sizeof *here);
  *here = (term){atoms, factor};
  p->n++;
}

static void poly_init(poly *p) {
  p->n = 0;
  p->overflow = false;
}

static void poly_add_signed(const dim_table *t, poly *p, dim d) {
  bool negative = d < 0 && dim_at(t, d)->kind == DIM_NEG;
  d = negative ? dim_at(t, d)->lhs : d;
  int64_t factor = 1;
  if (d >= 0) {
    factor = d;
    d = 1;
  } else if (dim_at(t, d)->kind == DIM_MUL && dim_at(t, d)->lhs >= 0) {
    factor = dim_at(t, d)->lhs;
    d = dim_at(t, d)->rhs;
  }
  poly_add_term(t, p, d, negative ? -factor : factor);
}

static void poly_open(const dim_table *t, dim d, poly *p) {
  poly_init(p);
  if (d == DIM_OVERFLOW || d > DIM_MAX) {
    p->overflow = true;
    return;
  }
  for (; d < 0 && dim_at(t, d)->kind == DIM_ADD; d = dim_at(t, d)->lhs) {
    poly_add_signed(t, p, dim_at(t, d)->rhs);
  }
  poly_add_signed(t, p, d);
}

/* Computes p += factor * atoms * q, where `atoms` is a monomial. */
static void poly_add_scaled(dim_table *t, poly *p, const poly *q, dim atoms, int64_t factor) {
  p->overflow = p->overflow || q->overflow;
  for (int i = 0; i < q->n && !p->overflow; i++) {
    int64_t product;
    if (__builtin_mul_overflow(factor, q->terms[i].factor, &product)) {
      p->overflow = true;
      return;
    }
    poly_add_term(t, p, dim_monomial_multiply(t, atoms, q->terms[i].monomial), product);
  }
}

static dim append_term(dim_table *t, dim sum, const term *x) {
  int64_t factor = x->factor < 0 ? -x->factor : x->factor;
  dim d = x->monomial == 1 ? factor : factor == 1 ? x->monomial : dim_intern(t, DIM_MUL, factor, x->monomial);
  d = x->factor < 0 ? dim_intern(t, DIM_NEG, d, 0) : d;
  return sum ? dim_intern(t, DIM_ADD, sum, d) : d;
}

static dim divide_by_const(dim_table *t, poly *a, int64_t b);

/* Finds the sum s for which term k of p, f*(e%m), has the terms f*s beside it in p, where s + e without its constant c
 * is a multiple of m.  Returns false if p has no such terms. */
static bool find_completed(const dim_table *t, const poly *p, int k, poly *s, int64_t *c) {
  enum { LARGEST = 1 << 24 }; /* so that products of two are below DIM_MAX */
  dim x = p->terms[k].monomial;
  int64_t f = p->terms[k].factor;
  poly e;
  poly_init(s);
  *c = 0;
  if (x >= 0 || dim_at(t, x)->kind != DIM_MOD || !dim_is_const(dim_at(t, x)->rhs) || dim_at(t, x)->rhs > LARGEST ||
      f > LARGEST || f < -LARGEST) {
    return false;
  }
  poly_open(t, dim_at(t, x)->lhs, &e);
  for (int i = 0; i < e.n && !e.overflow; i++) {
    int at = 0;
    if (e.terms[i].monomial == 1) {
      *c = e.terms[i].factor;
      continue;
    }
    while (at < p->n && p->terms[at].monomial != e.terms[i].monomial) {
      at++;
    }
    if (at == p->n || p->terms[at].factor % f || (p->terms[at].factor / f + e.terms[i].factor) % dim_at(t, x)->rhs) {
      return false;
    }
    poly_add_term(t, s, e.terms[i].monomial, p->terms[at].factor / f);
  }
  return !e.overflow && s->n > 0;
}

/* Writes sums of a size and a remainder as a multiple, so that quotients of them are exact: h + (3*h)%4, which is h
 * padded to a multiple of 4, becomes 4*((h+3)/4), and h - h%4 becomes 4*(h/4).  In general f*s + f*(e%m), where e is
 * c-s but for multiples of m, is f*c - f*m*floor((c-s)/m), or f*c + f*m*ceil((s-c)/m).  Returns true if p is changed.
 */
static bool complete_remainders(dim_table *t, poly *p) {
  bool changed = false;
  for (int k = 0; k < p->n && !p->overflow; k++) {
    poly s, over;
    int64_t c;
    if (!find_completed(t, p, k, &s, &c)) {
      continue;
    }
    int64_t f = p->terms[k].factor, m = dim_at(t, p->terms[k].monomial)->rhs, sign = s.terms[0].factor > 0 ? 1 : -1;
    poly_add_term(t, p, p->terms[k].monomial, -f);
    poly_add_scaled(t, p, &s, 1, -f);
    poly_add_term(t, p, 1, f * c);
    poly_init(&over);
    poly_add_scaled(t, &over, &s, 1, sign);
    poly_add_term(t, &over, 1, sign > 0 ? m - 1 - c : c);
    poly_open(t, divide_by_const(t, &over, m), &s);
    poly_add_scaled(t, p, &s, 1, sign * f * m);
    changed = true;
    k = -1;
  }
  return changed;
}

/* Converts a polynomial, which it may change, to a dim.  Positive terms come first, then negative terms, then the
 * constant; but a constant comes first if it is positive and no other term is (5-n).  A negative constant becomes a
 * DIM_NEG, since it may be an intermediate result: max(2-5,0) is 0.  Functions whose result is a size call dim_whole,
 * which turns a negative constant into DIM_OVERFLOW. */
static dim poly_close(dim_table *t, poly *p) {
  (void)complete_remainders(t, p);
  if (p->overflow) {
    return DIM_OVERFLOW;
  }
  int n = p->n;
  const term *constant = n && p->terms[n - 1].monomial == 1 ? &p->terms[--n] : NULL;
  if (!n) {
    return constant ? append_term(t, 0, constant) : 0;
  }
  dim sum = 0;
  for (int i = 0; i < n; i++) {
    sum = p->terms[i].factor > 0 ? append_term(t, sum, &p->terms[i]) : sum;
  }
  if (!sum && constant && constant->factor > 0) {
    sum = append_term(t, sum, constant);
    constant = NULL;
  }
  for (int i = 0; i < n; i++) {
    sum = p->terms[i].factor < 0 ? append_term(t, sum, &p->terms[i]) : sum;
  }
  return constant ? append_term(t, sum, constant) : sum;
}

dim dim_whole(const dim_table *t, dim d) {
  bool negative = d < 0 && d != DIM_OVERFLOW && dim_at(t, d)->kind == DIM_NEG && dim_is_const(dim_at(t, d)->lhs);
  return negative ? DIM_OVERFLOW : d;
}

static dim add_scaled(dim_table *t, dim a, dim b, int64_t factor) {
  poly p, q;
  poly_open(t, a, &p);
  poly_open(t, b, &q);
  poly_add_scaled(t, &p, &q, 1, factor);
  return poly_close(t, &p);
}

dim dim_add(dim_table *t, dim a, dim b) { return dim_whole(t, add_scaled(t, a, b, 1)); }

dim dim_sub(dim_table *t, dim a, dim b) { return dim_whole(t, add_scaled(t, a, b, -1)); }

dim dim_add_const(dim_table *t, dim a, int64_t c) {
  poly p;
  poly_open(t, a, &p);
  poly_add_term(t, &p, 1, c);
  return dim_whole(t, poly_close(t, &p));
}

static dim multiply_polynomials(dim_table *t, dim a, dim b) {
  poly p, q, product;
  poly_open(t, a, &p);
  poly_open(t, b, &q);
  poly_init(&product);
  product.overflow = p.overflow || q.overflow;
  for (int i = 0; i < p.n && !product.overflow; i++) {
    poly_add_scaled(t, &product, &q, p.terms[i].monomial, p.terms[i].factor);
  }
  return poly_close(t, &product);
}

static dim multiply_constants(int64_t a, int64_t b) {
  int64_t product;
  bool large = a > DIM_MAX || b > DIM_MAX || __builtin_mul_overflow(a, b, &product) || product > DIM_MAX;
  return large ? DIM_OVERFLOW : product;
}

/* Sizes of arrays are multiplied over and over, so the last products are kept. */
static dim multiply(dim_table *t, dim a, dim b) {
  if (a == DIM_OVERFLOW || b == DIM_OVERFLOW) {
    return DIM_OVERFLOW;
  }
  if (dim_is_const(a) && dim_is_const(b)) {
    return multiply_constants(a, b);
  }
  dim_product *known = &t->products[((uint64_t)a * 31 + (uint64_t)b) % DIM_PRODUCTS];
  if (known->a != a || known->b != b) {
    *known = (dim_product){a, b, multiply_polynomials(t, a, b)};
  }
  return known->product;
}

dim dim_mul(dim_table *t, dim a, dim b) { return dim_whole(t, multiply(t, a, b)); }

dim dim_signed_const(dim_table *t, int64_t c) {
  poly p;
  poly_init(&p);
  poly_add_term(t, &p, 1, c);
  return poly_close(t, &p);
}

dim dim_signed_add(dim_table *t, dim a, dim b) { return add_scaled(t, a, b, 1); }

dim dim_signed_sub(dim_table *t, dim a, dim b) { return add_scaled(t, a, b, -1); }

dim dim_signed_mul(dim_table *t, dim a, dim b) { return multiply(t, a, b); }

bool dim_signed_value(const dim_table *t, dim d, int64_t *out) {
  if (d == DIM_OVERFLOW) {
    return false;
  }
  bool negative = d < 0 && dim_at(t, d)->kind == DIM_NEG;
  dim magnitude = negative ? dim_at(t, d)->lhs : d;
  *out = negative ? -magnitude : magnitude;
  return dim_is_const(magnitude);
}

/* --- division --- */

/* Divides a by b without remainder: a = quotient * b.  Returns false if that is not possible. */
static bool poly_divide_exactly(dim_table *t, const poly *a, const poly *b, poly *quotient) {
  poly rest = *a;
  poly_init(quotient);
  while (rest.n) {
    dim common, factor;
    dim_monomial_split(t, rest.terms[0].monomial, b->terms[0].monomial, &common, &factor);
    if (common != b->terms[0].monomial || rest.terms[0].factor % b->terms[0].factor) {
      return false;
    }
    int64_t scale = rest.terms[0].factor / b->terms[0].factor;
    poly_add_term(t, quotient, factor, scale);
    poly_add_scaled(t, &rest, b, factor, -scale);
    if (rest.overflow || quotient->overflow) {
      return false;
    }
  }
  return true;
}

/* Divides term by term: a = quotient * b + rest, where the coefficients of rest are in [0, b). */
static void poly_divide_terms(const dim_table *t, const poly *a, int64_t b, poly *quotient, poly *rest) {
  poly_init(quotient);
  poly_init(rest);
  for (int i = 0; i < a->n; i++) {
    const term *x = &a->terms[i];
    int64_t times = floor_div(x->factor, b);
    poly_add_term(t, quotient, x->monomial, times);
    poly_add_term(t, rest, x->monomial, x->factor - times * b);
  }
}

/* Cancels the atoms that b and all terms of a have in common, before a is divided by b. */
static void cancel_symbols(dim_table *t, poly *a, term *b) {
  dim shared = b->monomial, unused;
  for (int i = 0; i < a->n; i++) {
    dim_monomial_split(t, shared, a->terms[i].monomial, &shared, &unused);
  }
  if (shared == 1) {
    return;
  }
  poly smaller;
  poly_init(&smaller);
  for (int i = 0; i < a->n; i++) {
    dim left;
    dim_monomial_split(t, a->terms[i].monomial, shared, &unused, &left);
    poly_add_term(t, &smaller, left, a->terms[i].factor);
  }
  *a = smaller;
  dim_monomial_split(t, b->monomial, shared, &unused, &b->monomial);
}

dim dim_cancel(dim_table *t, dim d) {
  poly p, smaller;
  poly_open(t, d, &p);
  if (p.overflow || !p.n) {
    return d;
  }
  term common = p.terms[0];
  for (int i = 1; i < p.n; i++) {
    common.factor = gcd_i64(p.terms[i].factor, common.factor);
  }
  cancel_symbols(t, &p, &common);
  poly_init(&smaller);
  for (int i = 0; i < p.n; i++) {
    poly_add_term(t, &smaller, p.terms[i].monomial, p.terms[i].factor / common.factor);
  }
  return poly_close(t, &smaller);
}

/* Divides a and b by the greatest common divisor g of b's factor and the factors of a's terms, except the constant term
 * c: floor((g*x + c) / (g*y)) is floor((x + floor(c/g)) / y), and likewise with ceilings. */
static void cancel_factor(const dim_table *t, poly *a, term *b, bool ceiling) {
  int64_t g = b->factor;
  for (int i = 0; i < a->n; i++) {
    g = a->terms[i].monomial == 1 ? g : gcd_i64(a->terms[i].factor, g);
  }
  if (g == 1) {
    return;
  }
  poly smaller;
  poly_init(&smaller);
  for (int i = 0; i < a->n; i++) {
    int64_t c = a->terms[i].factor;
    poly_add_term(t, &smaller, a->terms[i].monomial, ceiling ? -floor_div(-c, g) : floor_div(c, g));
  }
  *a = smaller;
  b->factor /= g;
}

/* Merges a division that is nested in the division of a by b: floor((floor(x/c) + y) / b) is floor((x + c*y) / (b*c)).
 * Does this once and returns true if exactly one term of a is a division by a constant c, and its factor is 1.  Returns
 * false, and changes nothing, otherwise or if b*c is too large. */
static bool merge_nested(dim_table *t, poly *a, int64_t *b) {
  int found = -1;
  for (int i = 0; i < a->n; i++) {
    dim d = a->terms[i].monomial;
    if (d < 0 && dim_at(t, d)->kind == DIM_FLOORDIV && dim_is_const(dim_at(t, d)->rhs)) {
      if (found >= 0) {
        return false;
      }
      found = i;
    }
  }
  if (found < 0 || a->terms[found].factor != 1) {
    return false;
  }
  poly y = *a, merged;
  dim inner = a->terms[found].monomial;
  int64_t c = dim_at(t, inner)->rhs, product;
  if (__builtin_mul_overflow(c, *b, &product) || product > DIM_MAX) {
    return false;
  }
  poly_add_term(t, &y, inner, -1);
  poly_open(t, dim_at(t, inner)->lhs, &merged);
  poly_add_scaled(t, &merged, &y, 1, c);
  if (merged.overflow) {
    return false;
  }
  *a = merged;
  *b = product;
  return true;
}

/* Returns floor(a / b), where b is a positive constant. */
static dim divide_by_const(dim_table *t, poly *a, int64_t b) {
  poly sum, quotient, rest;
  poly_init(&sum);
  do {
    term divisor = {1, b};
    poly_divide_terms(t, a, b, &quotient, &rest);
    poly_add_scaled(t, &sum, &quotient, 1, 1);
    cancel_factor(t, &rest, &divisor, false);
    *a = rest;
    b = divisor.factor;
    if (sum.overflow || a->overflow) {
      return DIM_OVERFLOW;
    }
  } while (merge_nested(t, a, &b) || complete_remainders(t, a));
  dim rounded = b == 1 || !a->n ? poly_close(t, a) : dim_intern(t, DIM_FLOORDIV, poly_close(t, a), b);
  return add_scaled(t, poly_close(t, &sum), rounded, 1);
}

/* Divides a by b.  If b is a constant, the result is a sum of what can be divided exactly and a floor of the rest.
 * Otherwise it is the exact quotient if there is one, or a/b in lowest terms. */
static dim divide(dim_table *t, dim a, dim b, bool ceiling) {
  poly p, q, quotient;
  poly_open(t, a, &p);
  poly_open(t, b, &q);
  if (p.overflow || q.overflow || q.n == 0) {
    return DIM_OVERFLOW;
  }
  bool by_term = q.n == 1 && q.terms[0].factor > 0;
  if (by_term) {
    cancel_factor(t, &p, &q.terms[0], ceiling);
  }
  if (poly_divide_exactly(t, &p, &q, &quotient)) {
    return poly_close(t, &quotient);
  }
  if (by_term) {
    cancel_symbols(t, &p, &q.terms[0]);
    cancel_factor(t, &p, &q.terms[0], ceiling); /* for example a/(2*a*b) becomes 1/(2*b) */
    if (poly_divide_exactly(t, &p, &q, &quotient)) {
      return poly_close(t, &quotient); /* (4*a*b+a)/(4*a*b) has become b/b */
    }
    if (q.terms[0].monomial == 1) {
      poly_add_term(t, &p, 1, ceiling ? q.terms[0].factor - 1 : 0); /* ceil(a/b) is floor((a + b-1) / b) */
      return p.overflow ? DIM_OVERFLOW : divide_by_const(t, &p, q.terms[0].factor);
    }
  }
  return dim_intern(t, ceiling ? DIM_CEILDIV : DIM_FLOORDIV, dim_whole(t, poly_close(t, &p)),
                    dim_whole(t, poly_close(t, &q)));
}

dim dim_floordiv(dim_table *t, dim a, dim b) { return dim_whole(t, divide(t, a, b, false)); }

dim dim_ceildiv(dim_table *t, dim a, dim b) { return dim_whole(t, divide(t, a, b, true)); }

/* Replaces remainders by multiples of b, which do not change a remainder by b: (4 - h%4) % 4 is (4-h) % 4. */
static void open_remainders(dim_table *t, poly *p, int64_t b) {
  for (int i = 0; i < p->n && !p->overflow; i++) {
    term x = p->terms[i];
    if (x.monomial < 0 && dim_at(t, x.monomial)->kind == DIM_MOD && dim_at(t, x.monomial)->rhs >= b &&
        dim_at(t, x.monomial)->rhs % b == 0) {
      poly inner;
      poly_open(t, dim_at(t, x.monomial)->lhs, &inner);
      poly_add_term(t, p, x.monomial, -x.factor);
      poly_add_scaled(t, p, &inner, 1, x.factor);
      i = -1;
    }
  }
}

/* Returns a - b * floor(a / b), which is in [0, b). */
dim dim_mod(dim_table *t, dim a, dim b) {
  poly p, q, quotient, rest;
  poly_open(t, a, &p);
  poly_open(t, b, &q);
  if (p.overflow || q.overflow || q.n == 0) {
    return DIM_OVERFLOW;
  }
  if (poly_divide_exactly(t, &p, &q, &quotient)) {
    return 0;
  }
  if (dim_is_const(b)) {
    open_remainders(t, &p, b);
    do {
      poly_divide_terms(t, &p, b, &quotient, &rest);
      p = rest;
    } while (complete_remainders(t, &p));
    a = poly_close(t, &rest);
    return dim_is_const(a) ? a : dim_intern(t, DIM_MOD, a, b);
  }
  return dim_intern(t, DIM_MOD, dim_whole(t, a), dim_whole(t, b));
}

/* --- substitution --- */

static dim substitute_bounded(dim_table *t, dim d, dim (*value)(void *, dim), void *data) {
  dim size = value(data, dim_at(t, d)->rhs);
  if (dim_is_const(size)) {
    return size;
  }
  return size != DIM_OVERFLOW && dim_at(t, size)->kind == DIM_SYMBOL
             ? dim_intern(t, DIM_BOUNDED, dim_at(t, d)->lhs, size)
             : d;
}

static dim substitute(dim_table *t, dim d, dim (*value)(void *, dim), void *data);

/* Substitutes in all terms of a sum and adds the results as one polynomial.  Adding them one by one with dim_add could
 * give a negative partial sum, which dim_add turns into DIM_OVERFLOW. */
static dim substitute_sum(dim_table *t, dim d, dim (*value)(void *, dim), void *data) {
  poly sum, part;
  poly_init(&sum);
  for (bool last = false; !last; d = last ? d : dim_lhs(t, d)) {
    last = dim_get_kind(t, d) != DIM_ADD;
    dim x = last ? d : dim_at(t, d)->rhs;
    bool negative = dim_get_kind(t, x) == DIM_NEG;
    poly_open(t, substitute(t, negative ? dim_at(t, x)->lhs : x, value, data), &part);
    poly_add_scaled(t, &sum, &part, 1, negative ? -1 : 1);
  }
  return poly_close(t, &sum);
}

/* Substitutes in any expression.  The result may be a negative constant, which dim_substitute turns into DIM_OVERFLOW.
 */
static dim substitute(dim_table *t, dim d, dim (*value)(void *, dim), void *data) {
  switch (dim_get_kind(t, d)) {
    case DIM_CONST: return d;
    case DIM_SYMBOL: return value(data, d);
    case DIM_BOUNDED: return substitute_bounded(t, d, value, data);
    case DIM_ADD:
    case DIM_NEG: return substitute_sum(t, d, value, data);
    default: break;
  }
  dim_kind kind = dim_at(t, d)->kind;
  dim lhs = substitute(t, dim_at(t, d)->lhs, value, data), rhs = substitute(t, dim_at(t, d)->rhs, value, data);
  switch (kind) {
    case DIM_MUL: return multiply(t, lhs, rhs);
    case DIM_MOD: return dim_mod(t, lhs, rhs);
    case DIM_MAX_OF:
    case DIM_MIN_OF: return dim_extreme(t, kind, lhs, rhs);
    default: return divide(t, lhs, rhs, kind == DIM_CEILDIV);
  }
}

dim dim_substitute(dim_table *t, dim d, dim (*value)(void *data, dim symbol), void *data) {
  return d == DIM_OVERFLOW ? d : dim_whole(t, substitute(t, d, value, data));
}

static dim add_symbol(void *data, dim symbol) {
  dim_symbols *list = data;
  bool known = list->n == DIM_MOST_SYMBOLS;
  for (uint32_t k = 0; k < list->n; k++) {
    known |= list->items[k] == symbol;
  }
  if (!known) {
    list->items[list->n++] = symbol;
  }
  return symbol;
}

void dim_add_symbols(dim_table *t, dim d, dim_symbols *list) { (void)dim_substitute(t, d, add_symbol, list); }

bool dim_linear(const dim_table *t, dim d, dim *symbol, int64_t *factor, int64_t *rest) {
  poly p;
  poly_open(t, d, &p);
  bool has_rest = p.n == 2 && p.terms[1].monomial == 1;
  if (p.overflow || !(p.n == 1 || has_rest) || p.terms[0].factor < 1 || dim_is_const(p.terms[0].monomial) ||
      dim_at(t, p.terms[0].monomial)->kind != DIM_SYMBOL) {
    return false;
  }
  *symbol = p.terms[0].monomial;
  *factor = p.terms[0].factor;
  *rest = has_rest ? p.terms[1].factor : 0;
  return true;
}
