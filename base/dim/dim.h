/* dim.h - the size of one dimension: a constant, or an expression over named symbols (batch, seq+1).
 *
 * A dim is a 64-bit handle.  If it is not negative, it is the constant itself.  If it is negative, it stands for an
 * expression in a dim_table.  Expressions are interned and canonical, so two dims of one table are equal if and only if
 * their handles are.
 *
 * A bounded dimension is an expression of kind DIM_BOUNDED.  Memory is laid out for its bound; its true extent is known
 * only at run time.  It is written <=100:n, where 100 is the bound and n the symbol of the extent. */
#ifndef BASE_DIM_DIM_H
#define BASE_DIM_DIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef int64_t dim;
typedef struct dim_table dim_table;

/* The result of arithmetic if a number in it is larger than DIM_MAX, if a size would be a negative constant, or if an
 * expression is too large: more than 64 terms, 1024 nodes, or a degree above 32.  Arithmetic on DIM_OVERFLOW gives
 * DIM_OVERFLOW again, and shape_check refuses it. */
#define DIM_OVERFLOW INT64_MIN
/* Constants larger than this become DIM_OVERFLOW. */
#define DIM_MAX ((int64_t)1 << 56)

typedef enum dim_kind {
  DIM_CONST,
  DIM_SYMBOL,   /* a named unknown number, which is not negative */
  DIM_ADD,      /* a + b */
  DIM_MUL,      /* a * b */
  DIM_FLOORDIV, /* floor(a / b), also if a is negative */
  DIM_CEILDIV,  /* ceil(a / b) where b is not a constant; ceil(n/4) is expressed as (n+3)/4 */
  DIM_MOD,      /* a - b * floor(a / b) */
  DIM_MAX_OF,
  DIM_MIN_OF,
  DIM_NEG,    /* -a: a term of a sum, or a signed number (see below) */
  DIM_BOUNDED /* a is the constant bound, b the symbol of the true extent */
} dim_kind;

dim_table *dim_table_create(arena *a);

static inline bool dim_is_const(dim d) { return d >= 0; }

/* Returns the interned symbol of that name, which consists of letters, digits, '_' and '.'.  Other characters are
 * replaced by '_', and a '_' is put before a digit at the start. */
dim dim_symbol(dim_table *t, const char *name);
dim dim_symbol_n(dim_table *t, const char *name, size_t length);
/* Returns the symbol of the dimension that a model calls `name`, which may have any characters.  The symbol's own name
 * has only allowed ones, and a number at its end if another name of a dimension would give the same: "a-b" and "a_b"
 * are different dimensions. */
dim dim_named(dim_table *t, const char *name);
/* Returns what dim_named calls the dimension of that name if no other name of a dimension would give the same. */
char *dim_clean_name(arena *a, const char *name);
bool dim_is_listed(const char *name, const char *const *names, uint32_t n);
/* Returns the one of the names of symbols that a user means by `given`: that name itself, or the one that dim_named
 * makes of it.  Returns NULL if there is none, or if several names of the model could have given it, which then have
 * numbers behind them. */
const char *dim_find_name(arena *a, const char *given, const char *const *names, uint32_t n);
/* Returns the symbol that stands for dimension k of an array if that dimension has no name: "_array_k", where the name
 * of the array is shortened if it is long.  A number is appended if another dimension has that name. */
dim dim_nameless(dim_table *t, const char *array, int k);
/* Returns the symbol that the compiler itself calls `name`, which is none of a model's dimensions: if one has that
 * name, a number is appended. */
dim dim_own(dim_table *t, const char *name);
/* Reserves all symbols that the table has now, such as those of a module that was read from text.  If dim_named,
 * dim_nameless or dim_own is later called with a name or an array for the first time, it returns none of them. */
void dim_take_symbols(dim_table *t);
/* Returns a bounded dimension, whose true extent is the symbol of that name.  `bound` must be a constant. */
dim dim_bounded(dim_table *t, dim bound, const char *size_name);

/* Arithmetic, which assumes that symbols are so large that no result is negative and every divisor is positive.  Sums
 * and products are multiplied out and sorted: seq+1-1 is seq, 2*n+n is 3*n, (s*d+d)/(s+1) is d.  A division by a
 * constant takes out what can be divided exactly: (2*h+3)/2 is h+1.  A size and the remainder that makes it a multiple
 * of a constant become one term: h + (-h)%4 is 4*((h+3)/4), h - h%4 is 4*(h/4).  A division by the constant 0 is
 * DIM_OVERFLOW. */
dim dim_add(dim_table *t, dim a, dim b);
dim dim_sub(dim_table *t, dim a, dim b);
dim dim_mul(dim_table *t, dim a, dim b); /* the table may be NULL if both sizes are constants or DIM_OVERFLOW */
dim dim_floordiv(dim_table *t, dim a, dim b);
dim dim_ceildiv(dim_table *t, dim a, dim b);
dim dim_mod(dim_table *t, dim a, dim b);
dim dim_max(dim_table *t, dim a, dim b);
dim dim_min(dim_table *t, dim a, dim b);
/* Adds a constant that may be negative. */
dim dim_add_const(dim_table *t, dim a, int64_t c);

/* Arithmetic on signed numbers, such as the elements of an integer array that a model computes from sizes: seq-10, -1.
 * A signed number is a dim, too; if it is a negative constant, it is an expression of kind DIM_NEG.  Before a signed
 * number is used as an extent, the caller must ask whether it may be negative (base/dim/guard.h). */
dim dim_signed_const(dim_table *t, int64_t c);
dim dim_signed_add(dim_table *t, dim a, dim b);
dim dim_signed_sub(dim_table *t, dim a, dim b);
dim dim_signed_mul(dim_table *t, dim a, dim b);
/* Returns true, and sets *out, if d is a constant; it may be negative. */
bool dim_signed_value(const dim_table *t, dim d, int64_t *out);

/* Returns true if d is factor * symbol + rest with a positive factor, and sets *symbol, *factor and *rest. */
bool dim_linear(const dim_table *t, dim d, dim *symbol, int64_t *factor, int64_t *rest);

/* Evaluates d, which may be signed, with the value that `value` returns for each symbol.  Returns false if d is
 * DIM_OVERFLOW, if d or a part of it is outside of [-DIM_MAX, DIM_MAX], or if a divisor is not positive. */
typedef int64_t dim_value_fn(void *data, dim symbol);
bool dim_evaluate(const dim_table *t, dim d, dim_value_fn *value, void *data, int64_t *out);

/* Computes one operation, DIM_ADD to DIM_NEG, of numbers that are within [-DIM_MAX, DIM_MAX]; DIM_NEG has no b. Returns
 * false if the result is outside of that range or a divisor is not positive. */
bool dim_operate(dim_kind kind, int64_t a, int64_t b, int64_t *out);

/* Translates d, an expression of table `from`, to an expression of table `to`.  `atom` is called for each symbol,
 * bounded dimension, quotient, remainder, maximum and minimum in d, from the outermost to the innermost.  It may set
 * *out to the dim of table `to` that replaces this part of d, and return true.  If it returns false, the operands of
 * this part are translated instead.  It must not return false for symbols and bounded dimensions: they cannot be
 * translated part by part, and would become DIM_OVERFLOW. */
typedef bool dim_atom_fn(void *data, dim d, dim *out);
dim dim_translate(dim_table *to, const dim_table *from, dim d, dim_atom_fn *atom, void *data);

/* Returns the extent for which memory is laid out: the bound if d is a bounded dimension, otherwise d itself.  Must not
 * be called for any other expression that contains a bounded dimension. */
dim dim_layout(const dim_table *t, dim d);

/* Returns true if d is not DIM_OVERFLOW and contains no bounded dimension. */
bool dim_is_exact(const dim_table *t, dim d);

dim_kind dim_get_kind(const dim_table *t, dim d);
/* Return the operands of an expression, or 0 if it has none. */
dim dim_lhs(const dim_table *t, dim d);
dim dim_rhs(const dim_table *t, dim d);
/* Returns the name of a symbol or a bounded dimension, otherwise NULL. */
const char *dim_name(const dim_table *t, dim d);

/* Replaces each symbol by what `value` returns for it, which may be the symbol itself.  A bounded dimension depends on
 * what `value` returns for the symbol of its true extent: a constant replaces the whole bounded dimension, another
 * symbol becomes the symbol of its extent, and for any other expression the bounded dimension stays as it is.  If the
 * result as a whole is a negative constant, it becomes DIM_OVERFLOW. */
dim dim_substitute(dim_table *t, dim d, dim (*value)(void *data, dim symbol), void *data);

enum { DIM_MOST_SYMBOLS = 8 };
typedef struct dim_symbols {
  uint32_t n;
  dim items[DIM_MOST_SYMBOLS];
} dim_symbols;
/* Adds the symbols of d to the list, except those that are there.  When the list is full, the others are left out. */
void dim_add_symbols(dim_table *t, dim d, dim_symbols *list);

/* Returns the dim as text on the arena, as HLO prints it: 12, batch, seq+1, (h+1)/2, ceil(n/m), max(a,b), <=100:n.  The
 * text does not depend on the order in which symbols were added to the table, and dim_parse (dim_parse_signed for a
 * signed number) turns it into the same dim.  DIM_OVERFLOW becomes "?", which cannot be parsed. */
const char *dim_print(arena *a, const dim_table *t, dim d);
/* Parse a dim at *text and move *text past it.  Blanks are allowed around operators.  dim_parse_signed also
 * accepts negative numbers. */
STATUS_MUST_USE status dim_parse(dim_table *t, const char **text, dim *out);
STATUS_MUST_USE status dim_parse_signed(dim_table *t, const char **text, dim *out);

#endif
