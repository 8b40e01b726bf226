/* answer.h - which other hints would have changed an answer about sizes (base/dim/guard.h). */
#ifndef BASE_DIM_ANSWER_H
#define BASE_DIM_ANSWER_H

#include "base/dim/guard.h"

/* Another value for the hint of a symbol, or if `symbol` is 0, one value for the hints of all symbols. */
typedef struct dim_change {
  dim symbol;
  int64_t value;
} dim_change;

/* Evaluates d at the hints after the change.  Returns false where dim_evaluate does. */
bool dim_changed_hint(const dim_table *t, dim d, const dim_change *c, int64_t *out);

/* Returns true if the guard does not hold at the hints after the change. */
bool dim_breaks_guard(const dim_table *t, const dim_guard *g, const dim_change *c);

enum { DIM_CHANGES = DIM_MOST_SYMBOLS + 1 };

/* Finds changes after which the guard, which holds at the hints, does not hold.  Each changes one symbol to the nearest
 * possible value, which is at least 1; the last one may change all symbols, as the height and the width of a square
 * picture.  Returns their number. */
uint32_t dim_changes_of_answer(dim_table *t, const dim_guard *g, dim_change changes[DIM_CHANGES]);

#endif
