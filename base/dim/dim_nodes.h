/* dim_nodes.h - expressions of dim.h as nodes of a table, and products of them: between dim.c and dim_nodes.c only.
 *
 * Canonical form.  A dim that is no constant is a polynomial with integer coefficients, always multiplied out:
 * a sum of terms, each a coefficient times a monomial, which is a sorted product of atoms.  Atoms are symbols,
 * bounded dimensions, divisions, remainders, maxima and minima.  Arithmetic goes dim -> polynomial -> dim; nodes
 * are interned, so equal polynomials are equal handles.  The order of terms and atoms depends on names and
 * structure alone, never on the order of creation, so that text written by one table reads back unchanged. */
#ifndef BASE_DIM_DIM_NODES_H
#define BASE_DIM_DIM_NODES_H

#include <assert.h>

#include "base/dim/dim.h"
#include "base/hash.h"

typedef struct dim_node {
  dim_kind kind;
  uint32_t size; /* nodes of the expression as a tree; twice the depth and more, so it bounds recursion */
  dim lhs, rhs;
  const char *name;
} dim_node;

struct dim_table {
  arena *arena;
  dim_node *nodes;
  uint32_t n, cap;
  uint32_t *slots; /* open addressing: index + 1 of a node that is no symbol, 0 is free */
  uint32_t n_slots;
  str_map symbols;
};

/* Of an expression, not of a constant. */
static inline const dim_node *dim_at(const dim_table *t, dim d) {
  assert(d < 0 && d != DIM_OVERFLOW && -(d + 1) < t->n);
  return &t->nodes[-(d + 1)];
}

/* The node of that kind and operands, as they are. */
dim dim_intern(dim_table *t, dim_kind kind, dim lhs, dim rhs);
/* A total order that does not depend on handles. */
int dim_compare(const dim_table *t, dim a, dim b);

/* --- monomials: interned products of atoms; the empty product is the constant 1 --- */

/* What is of a higher degree is DIM_OVERFLOW: nobody's model, but perhaps somebody's attack. */
enum { DIM_DEGREE_MAX = 32 };

typedef struct dim_monomial {
  int degree;
  dim atoms[DIM_DEGREE_MAX]; /* sorted */
} dim_monomial;

void dim_monomial_open(const dim_table *t, dim d, dim_monomial *m);
dim dim_monomial_close(dim_table *t, const dim_monomial *m);
/* By degree, highest first, then by atoms: an order that multiplication keeps, as polynomial division needs. */
int dim_monomial_compare(const dim_table *t, dim a, dim b);
dim dim_monomial_multiply(dim_table *t, dim a, dim b);
/* Splits b's atoms off a: a = common * rest, where common holds what both have. */
void dim_monomial_split(dim_table *t, dim a, dim b, dim *common, dim *rest);

#endif
