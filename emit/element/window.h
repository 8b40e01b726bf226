/* window.h - what kernels of sliding windows (emit/kernel/pooling.c) and window.c have in common. */
#ifndef EMIT_ELEMENT_WINDOW_H
#define EMIT_ELEMENT_WINDOW_H

#include "emit/element/element.h"

/* The part of reduce-window i that lies along all dimensions but the innermost: what the columns at `at` hold
 * (accumulate.h), an index of the result's dimensions but the innermost, which is the operand's. */
emit_pair emit_reduce_window_columns(emit_element *e, const hlo_instr *i, const emit_index *at);

#endif
