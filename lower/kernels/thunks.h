/* thunks.h - what backends have in common that make thunks of kernels: views, copies, results that share a buffer with
 * an operand, and the kernels' code once it is compiled. */
#ifndef LOWER_KERNELS_THUNKS_H
#define LOWER_KERNELS_THUNKS_H

#include "lower/kernels/kernels.h"
#include "lower/lower.h"

/* --- functions for lower_backend --- */

/* Returns true if the result is the operand's buffer in another shape (lower_backend.is_view): a reshape, a bitcast
 * that is a view, and a broadcast or transpose that only adds or moves dimensions of one element. */
bool lower_is_view(const hlo_instr *i);
/* Returns true for a concatenation that should be lowered to copies: its kernel would have a loop for each operand, and
 * LLVM takes quadratic time for many loops in one function.  The result of such a concatenation must not share an
 * operand's buffer. */
bool lower_is_concat_of_many(const hlo_instr *i);

/* --- copies --- */

/* Returns true if both buffers begin at the same place. */
bool lower_same_buffer(const rt_buffer *a, const rt_buffer *b);
/* Appends a thunk that copies one buffer to another, which has the same shape, for `i`. */
void lower_copy_buffer(lower_context *c, const hlo_instr *i, rt_buffer from, rt_buffer to);

/* Appends the thunks of `i` and sets *done to true if `i` needs no kernel: if its results have no elements or need no
 * values (HLO_EMPTY), or if it is a copy, a concatenation of many operands (lower_is_concat_of_many), or an iota whose
 * elements nobody loads (lower_only_positions).  Otherwise sets *done to false.  Fails for custom calls and composites,
 * which no kernel computes; `target` is the target's name for the message. */
STATUS_MUST_USE status lower_without_kernel(lower_context *c, const hlo_instr *i, const char *target, bool *done);

/* --- kernels --- */

/* If `i` is an in-place update, copies the array of which it changes a part to the result's buffer, unless the array is
 * there already.  The kernels of `i`, whose thunks come next, then write only the changed part. */
void lower_bring_base(lower_context *c, const hlo_instr *i);
/* Append a thunk that calls a kernel of the collection; its buffers are those of lower_thunk or lower_thunk_replacing.
 * If `i` is an in-place update, the result's buffer also replaces that of the operand of which `i` changes a part. */
rt_thunk *lower_kernel_thunk(lower_context *c, const lower_kernels *k, const hlo_instr *i);
rt_thunk *lower_kernel_thunk_replacing(lower_context *c, const lower_kernels *k, const hlo_instr *i, uint32_t operand,
                                       rt_buffer b);
/* Adds the kernel that the thunk calls (lower_kernels_add).  The thunk's buffers say which operands' buffers its
 * results share; the array that an in-place update changes counts as such an operand.  Until
 * lower_kernels_attach_program, t->config is the kernel's mark. */
STATUS_MUST_USE status lower_add_kernel(lower_context *c, lower_kernels *k, rt_thunk *t, const hlo_instr *i,
                                        const lower_kernel_writer *writer, const lower_kernel_call *call);

/* Adds the code objects to the program of `sizes`, sets the configs and sizes of all its thunks that call kernels
 * (lower_kernels_attach), and calls size_table_finish.  May be called only after lower_kernels_compile or, with an
 * empty `code`, after lower_kernels_write. */
STATUS_MUST_USE status lower_kernels_attach_program(size_table *sizes, const lower_kernels *kernels,
                                                    const lower_object_code *code);

#endif
