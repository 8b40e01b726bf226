/* check_memory.h - checked runs, for tests and for finding the cause of wrong numbers.  They find each thunk that
 * accesses memory outside of its buffers or depends on memory that nothing wrote.  They are switched on by
 * rt_run_options.check_memory.  A checked run takes a few times as long as a plain one, and its thunks wait for those
 * of other checked runs.
 *
 * Each thunk runs in guarded memory of its own (trial.h), two or three times.  The following is an error:
 *   - an access outside of the thunk's buffers, or a write to an input
 *   - an output that changes if it shares memory with an input: the thunk writes it while it still reads the input
 *   - in a concurrent group, a thunk that writes memory which a thunk of another body of the group uses
 *   - undefined bytes in a result of the run, in the condition of a loop or conditional, or in the inputs of a thunk
 *     without outputs, which only decides whether the run fails
 *
 * A byte is undefined if no thunk wrote it or if it was computed from undefined bytes.  Undefined bytes may be copied
 * and computed with; for example, the elements beyond the size of an array of dynamic size are undefined.  To track
 * them, each byte has a mark, and each thunk runs twice with different numbers in all undefined bytes.  Output elements
 * that differ between the two runs are undefined.
 *
 * The checker relies on what the program states about which buffers a thunk reads: the inputs, and the outputs with
 * rt_buffer.kept.  hlo/schedule/buffers_check.c checks that buffers hold the right values, and loading a program checks
 * that outputs do not overlap. */
#ifndef RUNTIME_EXEC_CHECK_MEMORY_H
#define RUNTIME_EXEC_CHECK_MEMORY_H

#include "runtime/program/target.h"

typedef struct rt_checker rt_checker;

/* Makes a checker for one run, on the arena.  run->arena, params and results must be set.  If memory runs out, this
 * jumps to the innermost guard_run (base/arena.h). */
rt_checker *rt_checker_create(arena *a, rt_run *run);
/* Runs the thunk, which must not be control flow (it has no bodies). */
STATUS_MUST_USE status rt_checker_run(rt_checker *c, const rt_thunk *t, rt_run *r);
/* Must be called before the inputs of a thunk decide what runs next.  Fails if an input has undefined bytes. */
STATUS_MUST_USE status rt_checker_decide(rt_checker *c, const rt_thunk *t);
/* Must be called before the bodies of a concurrent group run.  Fails if one body writes memory that another body uses.
 */
STATUS_MUST_USE status rt_checker_concurrent(rt_checker *c, const rt_thunk *t);
/* Must be called after all thunks.  Fails if a result of the program is not defined. */
STATUS_MUST_USE status rt_checker_finish(rt_checker *c);

#endif
