/* guard.h - questions about symbolic sizes, whose answers become guards.
 *
 * A model is compiled for sizes at hand, the hints of its symbols, but the program is to serve other sizes too.
 * Whoever must decide something that depends on a size asks here.  If the algebra of dims proves the answer, no guard
 * is needed.  Otherwise the hints answer, and the table keeps the answer as a guard: the program is right only for
 * sizes at which the answer is the same.  (PyTorch's ShapeEnv works in this way.)
 *
 * A question about symbols without hints, such as those of a module that was read from text, adds no guard: its answer
 * is true only if that is proven. */
#ifndef BASE_DIM_GUARD_H
#define BASE_DIM_GUARD_H

#include "base/dim/dim.h"

typedef enum dim_relation { DIM_EQUAL, DIM_NOT_EQUAL, DIM_AT_MOST, DIM_LESS, DIM_RELATION_COUNT } dim_relation;

/* Returns true if the numbers have this relation. */
bool dim_relation_holds(dim_relation relation, int64_t a, int64_t b);

/* The condition that a and b have this relation: a is equal to b, a is at most b, and so on.  The dims may be signed.
 */
typedef struct dim_guard {
  dim_relation relation;
  dim a, b;
  const char *source; /* who asked first: the label of an ONNX node, or the name of a pass; never NULL */
} dim_guard;

void dim_set_hint(dim_table *t, dim symbol, int64_t hint);
/* Evaluates d at the hints.  Returns true, and sets *out, if all symbols of d have hints and dim_evaluate succeeds.  A
 * constant needs no hints. */
bool dim_hint(const dim_table *t, dim d, int64_t *out);

/* The sizes for which a named dimension is meant, from `least` to `most`. */
typedef struct dim_range {
  const char *name;
  int64_t least, most;
} dim_range;

/* States that the program is only meant for sizes at which d is in [least, most]: adds guards for that range, and later
 * questions may be answered from it without further guards.  Returns false if d is a constant outside of that range. */
bool dim_set_range(dim_table *t, dim d, int64_t least, int64_t most);
/* Sets the source of the guards that follow; the text is borrowed.  NULL means "". */
void dim_set_source(dim_table *t, const char *source);

/* Return true if a is equal to b, or at most b.  May add a guard. */
bool dim_equal(dim_table *t, dim a, dim b);
bool dim_at_most(dim_table *t, dim a, dim b);
/* Like dim_equal, but adds no guard if the answer is false.  For a special case, if what is done in the general case is
 * right for equal sizes too.  After dim_forgo_special_cases, the answer is true only if it is so for all sizes. */
bool dim_happens_equal(dim_table *t, dim a, dim b);
void dim_forgo_special_cases(dim_table *t);
/* Returns true if a is greater than b, for a choice of which either is right if they are equal: a guard that it adds
 * allows that, so the programs for both answers have the sizes between them in common. */
bool dim_happens_greater(dim_table *t, dim a, dim b);
/* Returns NULL if all questions could be answered, otherwise the source of the first question that could not.  A
 * question cannot be answered if one of its expressions is DIM_OVERFLOW, or if an expression cannot be evaluated at the
 * hints, since a number is too large or a divisor is not positive (dim_evaluate).  Then the answer was false and no
 * guard states it, so a module that was made with the table may be wrong even for the sizes at hand.  In the second
 * case the symbols of the question are pinned, so that a second attempt with these pins can be right. */
const char *dim_unanswered(const dim_table *t);
/* Returns NULL if all symbols of the questions so far, and of what was to be pinned (dim_pin), had hints, otherwise the
 * source of the first without them.  Its answer was false, and no guard states it.  The questions about a module that
 * was read from text have no hints; an import must not end with one. */
const char *dim_unhinted(const dim_table *t);
/* These return true only for what is proven for all sizes; they add no guard. */
bool dim_known_equal(dim_table *t, dim a, dim b);
bool dim_known_at_most(dim_table *t, dim a, dim b);

/* Returns the hint of d, and adds the guard that each symbol of d equals its hint (pins it).  If d has no hint
 * (dim_hint), the result is 0, and that is noted (dim_unhinted, dim_unanswered). */
int64_t dim_pin(dim_table *t, dim d);

/* Returns the guards, in the order in which they were added; there are no duplicates. */
const dim_guard *dim_guards(const dim_table *t, uint32_t *n);
/* Returns true if the guard holds for these values of symbols. */
bool dim_guard_holds(const dim_table *t, const dim_guard *g, dim_value_fn *value, void *data);
/* Removes the guards from number n on, those that were added since there were n: for a node that does not become part
 * of the module after all.  If `keep_equations` is true, those of the relation DIM_EQUAL stay. */
void dim_forget_guards(dim_table *t, uint32_t n, bool keep_equations);
const char *dim_guard_print(arena *a, const dim_table *t, const dim_guard *g);

/* If the guard is an equation from which a symbol follows (total = past+seq, batch = 1), sets *symbol and *equals and
 * returns true.  The expression does not contain the symbol. */
bool dim_guard_solve(dim_table *t, const dim_guard *g, dim *symbol, dim *equals);

#endif
