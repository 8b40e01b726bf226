/* window.h - what window.c shares with the pooling kernels (emit/kernel/pooling.c) and the plans of loops. */
#ifndef EMIT_ELEMENT_WINDOW_H
#define EMIT_ELEMENT_WINDOW_H

#include "emit/element/element.h"

/* Reduces the window of reduce-window i at index `at` along all dimensions except the innermost one, and returns the
 * value in accumulated form (accumulate.h).  Along the innermost dimension, the position in `at` is one of the operand.
 */
emit_pair emit_reduce_window_columns(emit_element *e, const hlo_instr *i, const emit_index *at);

/* Returns true if the code of windows that may reach into padding is one loop over the part of the window that lies in
 * the operand.  Elsewhere a loop without checks stands beside one with checks, which is twice the code; where LLVM's
 * time counts more than the code's, that does not pay (Inception-v1 has 13 poolings). */
bool emit_has_short_windows(const emit_ir *w);

#endif
