/* binding.h - binds a program for many sizes to the sizes of a run's inputs.
 *
 * The guards of the program are checked, its sizes are computed, and the slots of its arena get offsets.  That takes
 * microseconds, and the result runs as fast as a program that was compiled for these sizes. */
#ifndef RUNTIME_EXEC_BINDING_H
#define RUNTIME_EXEC_BINDING_H

#include "runtime/exec/executable.h"

/* Binds the program to inputs of these shapes, one for each parameter.  The error is INVALID_ARGUMENT with
 * STATUS_ABOUT_SHAPE if the shapes do not fit the parameters or a guard does not hold.  Everything that depends on
 * sizes is checked as for a program of one set of sizes: a damaged program gives an error, and no thunk touches memory
 * outside of its buffers.  Many threads may bind one executable at once.  Bindings count in the executable's budget. */
STATUS_MUST_USE status rt_bind(const rt_executable *e, const shape *inputs, rt_binding **out);
/* Must not be called while a run uses the binding.  NULL is allowed. */
void rt_binding_destroy(rt_binding *b);

/* --- between binding.c and executable.c --- */

/* Returns the thunks of the executable as they were loaded.  Their sizes may still be expressions. */
const rt_binding *rt_executable_loaded(const rt_executable *e);
mem_budget *rt_executable_budget(const rt_executable *e);
/* Returns a number for a new binding, which no other binding of the process has. */
uint64_t rt_binding_next_number(void);

/* Checks, before the program is bound, that the sizes of a thunk exist, and that they are numbers where the thunk's
 * kind takes no expressions. */
STATUS_MUST_USE status rt_check_thunk_sizes(const rt_program *p, const rt_thunk *t);

#endif
