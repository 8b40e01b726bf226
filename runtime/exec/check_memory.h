/* check_memory.h - checked runs, which find every thunk that accesses memory that is not its own, for tests and to find
 * the cause of wrong numbers.  They are switched on by rt_run_options.check_memory.  A run takes a few times as long,
 * and thunks of other runs wait for it.
 *
 * Each thunk runs in guarded memory of its own (trial.h), two or three times, and an error is
 *   - an access outside of its buffers, or a write to an input,
 *   - a result that depends on whether it shares memory with an input: it is written while the input is still read,
 *   - in a concurrent group, a thunk that writes memory that another one uses,
 *   - a result of the run, or a decision (of a loop, a conditional, or a thunk that only fails or not), that is not
 *     defined: no thunk wrote it, or it depends on such bytes.
 *
 * Undefined bytes may be copied and computed with; for example, the elements beyond the size of an array of dynamic
 * size are undefined.  To follow them there is a mark for each byte, and each thunk runs with two kinds of numbers in
 * undefined bytes: bytes of its outputs that differ are undefined.
 *
 * The checker relies on what the program says about which buffers a thunk reads: the inputs, and outputs that are
 * `kept`. hlo/schedule/buffers_check.c checks that buffers hold the right values, and loading a program checks that
 * outputs do not overlap. */
#ifndef RUNTIME_EXEC_CHECK_MEMORY_H
#define RUNTIME_EXEC_CHECK_MEMORY_H

#include "runtime/program/target.h"

typedef struct rt_checker rt_checker;

/* Makes a checker for one run, on the arena. run->arena, params and results must be set.  Jumps to the guard if memory
 * runs out. */
rt_checker *rt_checker_create(arena *a, rt_run *run);
/* Runs the thunk, which must have no bodies. */
STATUS_MUST_USE status rt_checker_run(rt_checker *c, const rt_thunk *t, rt_run *r);
/* Must be called before a thunk that makes a decision by its inputs.  Fails if they are not defined. */
STATUS_MUST_USE status rt_checker_decide(rt_checker *c, const rt_thunk *t);
/* Must be called before the bodies of a concurrent group run.  Fails if one body writes what another one uses. */
STATUS_MUST_USE status rt_checker_concurrent(rt_checker *c, const rt_thunk *t);
/* Must be called after all thunks.  Fails if a result of the program is not defined. */
STATUS_MUST_USE status rt_checker_finish(rt_checker *c);

#endif
