/* likely.h - sizes and numbers of elements that are likely: from hints (base/dim/guard.h) if there are any.  They are
 * only for estimates of costs, since the code must be right for all sizes. */
#ifndef EMIT_LLVM_LIKELY_H
#define EMIT_LLVM_LIKELY_H

#include "base/tensor/shape.h"

double emit_likely_size(const dim_table *t, dim d);
double emit_likely_elements(const dim_table *t, const shape *s);

#endif
