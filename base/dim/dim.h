/* dim.h - the size of one dimension: a constant, or an expression over named symbols (batch, seq+1).
 *
 * A dim is a 64-bit handle.  If it is not negative, it is the constant itself.  If it is negative, it stands for an
 * expression in a dim_table.  Expressions are interned and canonical, so two dims of one table are equal exactly if
 * their handles are.
 *
 * A bounded dimension is an expression of kind DIM_BOUNDED.  Memory is laid out by its bound; its true extent is a
 * value at run time.  It is written <=100:n. */
#ifndef BASE_DIM_DIM_H
#define BASE_DIM_DIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef int64_t dim;
typedef struct dim_table dim_table;

/* The result of arithmetic if a constant leaves [0, DIM_MAX] or an expression has more than 64 terms.  Arithmetic on it
 * gives DIM_OVERFLOW again, and shape_check refuses it. */
#define DIM_OVERFLOW INT64_MIN
/* Constants larger than this become DIM_OVERFLOW. */
#define DIM_MAX ((int64_t)1 << 56)

typedef enum dim_kind {
  DIM_CONST,
  DIM_SYMBOL,   /* a named unknown >= 0 */
  DIM_ADD,      /* a + b */
  DIM_MUL,      /* a * b */
  DIM_FLOORDIV, /* floor(a / b), also if a is negative */
  DIM_CEILDIV,  /* ceil(a / b) where b is not a constant; ceil(n/4) is expressed as (n+3)/4 */
  DIM_MOD,      /* a - b * floor(a / b) */
  DIM_MAX_OF,
  DIM_MIN_OF,
  DIM_NEG,    /* -a, as a term of a sum; a whole dim is never negative */
  DIM_BOUNDED /* a is the constant bound, b the symbol that holds the size */
} dim_kind;

dim_table *dim_table_create(arena *a);

static inline bool dim_is_const(dim d) { return d >= 0; }

/* Returns the interned symbol of that name, which consists of letters, digits, '_' and '.'.  Other characters are
 * replaced by '_', and a '_' is put before a digit at the start. */
dim dim_symbol(dim_table *t, const char *name);
dim dim_symbol_n(dim_table *t, const char *name, size_t length);
/* Returns the symbol that stands for dimension k of an array if it has no name of its own: "_array_k", shortened if it
 * is long, with a number at the end if another dimension has that name. */
dim dim_nameless(dim_table *t, const char *array, int k);
/* Returns a bounded dimension, whose size is the symbol of that name.  `bound` must be a constant. */
dim dim_bounded(dim_table *t, dim bound, const char *size_name);

/* Arithmetic, assuming that symbols are large enough for every result to be >= 0 and every divisor to be > 0.  Sums and
 * products are multiplied out and sorted: seq+1-1 is seq, 2*n+n is 3*n, (s*d+d)/(s+1) is d.  A division by a constant
 * takes out what divides exactly: (2*h+3)/2 is h+1.  A division by the constant 0 is DIM_OVERFLOW. */
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

/* Returns the extent by which memory is laid out: d itself, or the bound of a bounded dimension.  Must not be called
 * for an expression that contains a bounded dimension. */
dim dim_layout(const dim_table *t, dim d);

dim_kind dim_get_kind(const dim_table *t, dim d);
/* Return the operands of an expression, or 0 if it has none. */
dim dim_lhs(const dim_table *t, dim d);
dim dim_rhs(const dim_table *t, dim d);
/* Returns the name of a symbol or a bounded dimension, otherwise NULL. */
const char *dim_name(const dim_table *t, dim d);

/* Replaces each symbol by what `value` returns for it, which may be the symbol itself.  A bounded dimension whose size
 * becomes a constant is replaced by that constant; if its size becomes an expression, it stays as it is. */
dim dim_substitute(dim_table *t, dim d, dim (*value)(void *data, dim symbol), void *data);

/* Returns the text as HLO prints it, on the arena: 12, batch, seq+1, (h+1)/2, ceil(n/m), max(a,b), <=100:n.  It does
 * not depend on the order in which the table met its symbols, and dim_parse turns it into the same dim. */
const char *dim_print(arena *a, const dim_table *t, dim d);
/* Parses one dim at *text and moves *text behind it.  Blanks are allowed around operators. */
STATUS_MUST_USE status dim_parse(dim_table *t, const char **text, dim *out);

#endif
