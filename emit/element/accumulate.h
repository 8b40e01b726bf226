/* accumulate.h - the form in which reductions and window reductions keep the value that is accumulated so far.
 *
 * The maximum and minimum of f16, bf16, f32 and f64 are kept as keys: integers of the same order as the numbers, in
 * which -0 is less than 0.  A NaN is larger than every number if a maximum is computed, and smaller if a minimum is, so
 * it becomes the result.  Combining two keys takes one instruction; for floats it takes five on most processors.  In
 * all other cases, floats smaller than f32 are kept as f32, and values of other types as they are.
 *
 * `t` is the element type of the array that is reduced. */
#ifndef EMIT_ELEMENT_ACCUMULATE_H
#define EMIT_ELEMENT_ACCUMULATE_H

#include "emit/element/elementwise.h"

/* Returns the element type in which accumulated values are stored in memory. */
dtype emit_acc_type(hlo_reducer r, dtype t);
/* These convert an element to the form in which it is accumulated, and back. */
emit_pair emit_acc_hold(const emit_ir *w, hlo_reducer r, dtype t, emit_pair v);
emit_pair emit_acc_value(const emit_ir *w, hlo_reducer r, dtype t, emit_pair held);
/* The first returns, as a scalar, the identity: combining it with a value gives that value.  The second combines two
 * accumulated values, which are scalars or vectors. */
emit_pair emit_acc_identity(const emit_ir *w, hlo_reducer r, dtype t);
emit_pair emit_acc_combine(const emit_ir *w, hlo_reducer r, dtype t, emit_pair x, emit_pair y);

#endif
