/* check_memory.h - runs in which no thunk can touch memory that is not its own without being named: for
 * tests, and for who looks for a wrong number.  Given with rt_run_options.check_memory; a run takes a few
 * times as long, and thunks of other runs wait.
 *
 * Each thunk runs in guarded memory of its own (trial.h), two or three times, and an error is
 *   - what it reads or writes outside its buffers, and what it writes to its inputs,
 *   - a result that depends on whether it lies over an input: it is written while the input is still read,
 *   - thunks side by side of which one writes what another uses,
 *   - a result of the run, or a decision (of a loop, a conditional, a thunk that only fails or does not),
 *     that is not defined: nobody wrote it, or it depends on such bytes.
 *
 * Undefined bytes may be copied and computed with (what lies behind the size of an array whose size is data
 * is anything): they are followed, a mark a byte, by running each thunk with two sorts of wild numbers in
 * their place.
 *
 * What a program says of its thunks is believed: which buffers are read (the inputs, and outputs that are
 * `kept`).  That the right values lie in them is the business of hlo/schedule/buffers_check.c; that no outputs overlap
 * is seen when a program is loaded. */
#ifndef RUNTIME_EXEC_CHECK_MEMORY_H
#define RUNTIME_EXEC_CHECK_MEMORY_H

#include "runtime/program/target.h"

typedef struct rt_checker rt_checker;

/* Makes a checker for one run, on the arena. run->arena, params and results must be set.  Jumps to the guard if memory
 * runs out. */
rt_checker *rt_checker_create(arena *a, rt_run *run);
/* Runs the thunk, which must have no bodies. */
STATUS_MUST_USE status rt_checker_run(rt_checker *c, const rt_thunk *t, rt_run *r);
/* Is called before the thunk decides by its inputs. */
STATUS_MUST_USE status rt_checker_decide(rt_checker *c, const rt_thunk *t);
/* Is called before the thunk's bodies run at the same time. */
STATUS_MUST_USE status rt_checker_concurrent(rt_checker *c, const rt_thunk *t);
/* Is called after all thunks; returns an error unless the results are defined. */
STATUS_MUST_USE status rt_checker_finish(rt_checker *c);

#endif
