/* likely.c - see likely.h. */
#include "emit/llvm/likely.h"

#include "base/dim/guard.h"

enum { LIKELY = 64 }; /* the size that is assumed for a symbol without a hint */

static int64_t likely_symbol(void *data, dim symbol) {
  int64_t hint;
  return dim_hint(data, symbol, &hint) ? hint : LIKELY;
}

double emit_likely_size(const dim_table *t, dim d) {
  int64_t n;
  if (dim_is_const(d)) {
    return (double)d;
  }
  return d != DIM_OVERFLOW && dim_evaluate(t, d, likely_symbol, (void *)t, &n) ? (double)n : LIKELY;
}

double emit_likely_elements(const dim_table *t, const shape *s) {
  double n = 1;
  for (int k = 0; k < s->rank; k++) {
    n *= emit_likely_size(t, s->dims[k]);
  }
  return n;
}
