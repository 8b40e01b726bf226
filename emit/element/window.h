/* window.h - what window.c shares with the pooling kernels (emit/kernel/pooling.c). */
#ifndef EMIT_ELEMENT_WINDOW_H
#define EMIT_ELEMENT_WINDOW_H

#include "emit/element/element.h"

/* Reduces the window of reduce-window i at index `at` along all dimensions except the innermost one, and returns the
 * value in accumulated form (accumulate.h).  Along the innermost dimension, the position in `at` is one of the operand.
 */
emit_pair emit_reduce_window_columns(emit_element *e, const hlo_instr *i, const emit_index *at);

#endif
