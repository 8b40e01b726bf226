/* accumulate.h - in which form reductions and windows keep the value accumulated so far.
 *
 * Sums of small floats are kept in f32.  The maximum and minimum of floats are kept as integers of the same order
 * (keys), in which -0 is less than 0 and each NaN is beyond the extreme that is searched.  Then combining two values is
 * one instruction without special cases, while it takes five for floats on most processors.  Everything else is kept as
 * it is.
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
/* These return scalars. */
emit_pair emit_acc_identity(const emit_ir *w, hlo_reducer r, dtype t);
emit_pair emit_acc_combine(const emit_ir *w, hlo_reducer r, dtype t, emit_pair x, emit_pair y);

#endif
