/* dim_nodes.h - the expressions of dim.h as nodes of a table, and the products in them; for the sources of
 * this folder only.
 *
 * Canonical form.  A dim that is not a constant is a polynomial with integer coefficients which is always multiplied
 * out: a sum of terms, each a coefficient times a monomial, which is a sorted product of atoms.  Atoms are symbols,
 * bounded dimensions, divisions, remainders, maxima and minima.  Arithmetic converts dims to polynomials and the result
 * back.  Nodes are interned, so equal polynomials have equal handles.  The order of terms and atoms depends on names
 * and structure only, never on the order of creation, so that text which one table has written is read back unchanged.
 */
#ifndef BASE_DIM_DIM_NODES_H
#define BASE_DIM_DIM_NODES_H

#include <assert.h>

#include "base/dim/guard.h"
#include "base/hash.h"

/* The most nodes of an expression; a larger one becomes DIM_OVERFLOW.  Real models have smaller ones, but a hostile
 * model may have larger ones. */
enum { DIM_MOST_NODES = 1024 };

typedef struct dim_node {
  dim_kind kind;
  /* The number of nodes if the expression is written as a tree.  It is more than twice the depth, so a limit on it
   * bounds recursion. */
  uint32_t size;
  dim lhs, rhs;
  const char *name;
  int64_t hint; /* of a symbol, if has_hint is set (guard.h) */
  bool has_hint;
  int64_t least, most; /* of a symbol, if has_range is set */
  bool has_range;
  bool exact; /* see dim_is_exact */
  bool taken; /* the symbol belongs to a key of `named` or `nameless`, or to a module that was read as text */
} dim_node;

/* A product that was computed. */
typedef struct dim_product {
  dim a, b, product;
} dim_product;
enum { DIM_PRODUCTS = 64 };

struct dim_table {
  arena *arena;
  dim_node *nodes;
  uint32_t n, cap;
  uint32_t *slots; /* open addressing; slots have the index + 1 of a node that is not a symbol, or 0 if they are free */
  uint32_t n_slots;
  dim_product products[DIM_PRODUCTS]; /* each at an index that its factors decide; at first all are 0 * 0 */
  str_map symbols;                    /* by the names that dim_name returns */
  str_map named;                      /* the symbols of dim_named, by the names that a model gives them */
  str_map nameless;                   /* the symbols of dim_nameless and dim_own, by what they were asked for */
  str_map numbers;                    /* for a name, the largest number that was appended to it, cast to a pointer */
  dim_guard *guards;
  uint32_t n_guards, cap_guards;
  const char *source;         /* the source of the guards that are added next (dim_set_source) */
  const char *unanswered;     /* see dim_unanswered */
  const char *unhinted;       /* see dim_unhinted */
  bool forgoes_special_cases; /* see dim_forgo_special_cases */
  bool decides_extremes;      /* see dim_decide_extremes */
  bool has_extremes;          /* dim_smaller or dim_larger has made an expression */
  bool pinned_extreme;        /* an expression with a minimum or maximum was pinned */
};

/* Returns the node of an expression; d must not be a constant. */
static inline const dim_node *dim_at(const dim_table *t, dim d) {
  assert(d < 0 && d != DIM_OVERFLOW && -(d + 1) < t->n);
  return &t->nodes[-(d + 1)];
}

/* Returns the node with this kind and these operands, without simplifying. */
dim dim_intern(dim_table *t, dim_kind kind, dim lhs, dim rhs);
/* Returns d, or DIM_OVERFLOW if it is a negative constant, which no size is. */
dim dim_whole(const dim_table *t, dim d);
/* Returns the maximum (DIM_MAX_OF) or the minimum (DIM_MIN_OF) of two signed numbers. */
dim dim_extreme(dim_table *t, dim_kind kind, dim a, dim b);
/* Divides the signed number d by the factors that all its terms have in common: 6*a*n - 6*b*n becomes a-b. */
dim dim_cancel(dim_table *t, dim d);
/* Compares in a total order that does not depend on the values of handles. */
int dim_compare(const dim_table *t, dim a, dim b);

/* Returns true if d, which may be signed, is known to be not negative.  Symbols are assumed to be not negative, and
 * divisors to be positive. */
bool dim_never_negative(const dim_table *t, dim d);

/* Returns true if d, which may be signed, is not negative for all symbols within their ranges (dim_set_range). */
bool dim_in_range_never_negative(const dim_table *t, dim d);

/* --- monomials: interned products of atoms; the empty product is the constant 1 --- */

/* The highest degree of a monomial; one of a higher degree becomes DIM_OVERFLOW.  No real model has one, but a hostile
 * one may. */
enum { DIM_DEGREE_MAX = 32 };

typedef struct dim_monomial {
  int degree;
  dim atoms[DIM_DEGREE_MAX]; /* sorted */
} dim_monomial;

void dim_monomial_open(const dim_table *t, dim d, dim_monomial *m);
dim dim_monomial_close(dim_table *t, const dim_monomial *m);
/* Compares by degree, the highest first, then by atoms.  Multiplying two monomials by a third keeps their order, which
 * polynomial division requires. */
int dim_monomial_compare(const dim_table *t, dim a, dim b);
dim dim_monomial_multiply(dim_table *t, dim a, dim b);
/* Splits a into common * rest, where `common` has the atoms that a and b share. */
void dim_monomial_split(dim_table *t, dim a, dim b, dim *common, dim *rest);

#endif
