/* accumulate.h - how reductions and windows hold what they have so far.
 *
 * Sums of small floats are held in f32.  The maximum and minimum of floats are held as integers of the same order
 * (keys), in which -0 is below 0 and each NaN beyond the extreme that is wanted: so combining two is one instruction
 * that knows of neither, while a float's costs five on most processors.  Everything else is held as it is.
 *
 * `t` is the element type of the array that is reduced. */
#ifndef EMIT_ELEMENT_ACCUMULATE_H
#define EMIT_ELEMENT_ACCUMULATE_H

#include "emit/element/elementwise.h"

/* What memory of values that are held has for elements. */
dtype emit_acc_type(hlo_reducer r, dtype t);
/* One element as it is held, and back. */
emit_pair emit_acc_hold(const emit_ir *w, hlo_reducer r, dtype t, emit_pair v);
emit_pair emit_acc_value(const emit_ir *w, hlo_reducer r, dtype t, emit_pair held);
/* Scalars. */
emit_pair emit_acc_identity(const emit_ir *w, hlo_reducer r, dtype t);
emit_pair emit_acc_combine(const emit_ir *w, hlo_reducer r, dtype t, emit_pair x, emit_pair y);

#endif
