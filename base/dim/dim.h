/* dim.h - the size of one dimension: a constant, or an expression over named symbols (batch, seq+1).
 *
 * A dim is a 64-bit handle.  Not negative: the constant itself.  Negative: an expression of a dim_table,
 * interned and canonical, so that two dims of one table are equal exactly if their handles are.
 * The same encoding serves thunks (rt_size): a negative number indexes the run's table of evaluated sizes.
 *
 * A bounded dimension is the expression kind DIM_BOUNDED: laid out by its bound, its true extent a run-time
 * value; written <=100:n. */
#ifndef BASE_DIM_DIM_H
#define BASE_DIM_DIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef int64_t dim;
typedef struct dim_table dim_table;

/* What arithmetic gives when a constant leaves [0, DIM_MAX] or an expression grows beyond reason (64 terms);
 * absorbing; refused by shape_check. */
#define DIM_OVERFLOW INT64_MIN
/* Larger constants overflow. */
#define DIM_MAX ((int64_t)1 << 56)

typedef enum dim_kind {
  DIM_CONST,
  DIM_SYMBOL,   /* a named unknown >= 0 */
  DIM_ADD,      /* a + b */
  DIM_MUL,      /* a * b */
  DIM_FLOORDIV, /* floor(a / b): also where a is negative */
  DIM_CEILDIV,  /* ceil(a / b), b no constant: ceil(n/4) is (n+3)/4 */
  DIM_MOD,      /* a - b * floor(a / b) */
  DIM_MAX_OF,
  DIM_MIN_OF,
  DIM_NEG,    /* -a, a term of a sum; a whole dim is never negative */
  DIM_BOUNDED /* a: the constant bound, b: the symbol that holds the size */
} dim_kind;

dim_table *dim_table_create(arena *a);

static inline bool dim_is_const(dim d) { return d >= 0; }

/* The interned symbol of that name (letters, digits, '_', '.': others are replaced by '_'; a digit at the start
 * gets a '_' before it). */
dim dim_symbol(dim_table *t, const char *name);
dim dim_symbol_n(dim_table *t, const char *name, size_t length);
/* The symbol that stands for dimension k of an array, which has no name of its own: "_array_k", cut short, with a
 * number behind it where that is another's. */
dim dim_nameless(dim_table *t, const char *array, int k);
/* `bound` is a constant. */
dim dim_bounded(dim_table *t, dim bound, const char *size_name);

/* Arithmetic, as if symbols were large enough for every result to be >= 0 and every divisor to be > 0.  Sums and
 * products are multiplied out and sorted: seq+1-1 is seq, 2*n+n is 3*n, (s*d+d)/(s+1) is d.  A division by a constant
 * keeps only what does not divide: (2*h+3)/2 is h+1.  A division by the constant 0 is DIM_OVERFLOW. */
dim dim_add(dim_table *t, dim a, dim b);
dim dim_sub(dim_table *t, dim a, dim b);
dim dim_mul(dim_table *t, dim a, dim b);
dim dim_floordiv(dim_table *t, dim a, dim b);
dim dim_ceildiv(dim_table *t, dim a, dim b);
dim dim_mod(dim_table *t, dim a, dim b);
dim dim_max(dim_table *t, dim a, dim b);
dim dim_min(dim_table *t, dim a, dim b);
/* Adds a constant that may be negative. */
dim dim_add_const(dim_table *t, dim a, int64_t c);

/* The extent that memory is laid out by: d itself, or the bound of a bounded dimension.  (Not of an expression that
 * has a bounded dimension inside.) */
dim dim_layout(const dim_table *t, dim d);

dim_kind dim_get_kind(const dim_table *t, dim d);
/* Operands of an expression (0 where there is none). */
dim dim_lhs(const dim_table *t, dim d);
dim dim_rhs(const dim_table *t, dim d);
/* Of a symbol or a bounded dimension; NULL otherwise. */
const char *dim_name(const dim_table *t, dim d);

/* Replaces symbols by what `value` gives for them (return the symbol itself to keep it).  A bounded dimension whose
 * size becomes a constant is that constant; one whose size becomes an expression stays as it is. */
dim dim_substitute(dim_table *t, dim d, dim (*value)(void *data, dim symbol), void *data);

/* Text as HLO prints it: 12, batch, seq+1, (h+1)/2, ceil(n/m), max(a,b), <=100:n.  On the arena.  It does not depend
 * on the order in which the table met its symbols, and dim_parse gives the same dim back. */
const char *dim_print(arena *a, const dim_table *t, dim d);
/* Parses one dim at *text, moves *text behind it.  Blanks are allowed around operators. */
STATUS_MUST_USE status dim_parse(dim_table *t, const char **text, dim *out);

#endif
