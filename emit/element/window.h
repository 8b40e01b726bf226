/* window.h - shared by kernels of sliding windows (emit/kernel/pooling.c) and window.c. */
#ifndef EMIT_ELEMENT_WINDOW_H
#define EMIT_ELEMENT_WINDOW_H

#include "emit/element/element.h"

/* Reduces the window of reduce-window i along all dimensions except the innermost one, at index `at`, and returns the
 * value in the form of accumulate.h. */
emit_pair emit_reduce_window_columns(emit_element *e, const hlo_instr *i, const emit_index *at);

#endif
