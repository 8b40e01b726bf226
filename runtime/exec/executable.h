/* executable.h - a program made ready to run: kinds resolved, code loaded, library objects made.  Immutable; may be run
 * from many threads at once, each run has its own arena. */
#ifndef RUNTIME_EXEC_EXECUTABLE_H
#define RUNTIME_EXEC_EXECUTABLE_H

#include "runtime/program/target.h"

/* The program must live as long.  Everything in it is checked: it may come from a damaged file.  The budget counts what
 * is kept between runs too. */
STATUS_MUST_USE status rt_executable_create(const rt_program *p, const rt_target *target, mem_budget *budget,
                                            rt_executable **out);
void rt_executable_destroy(rt_executable *e);
const rt_program *rt_executable_program(const rt_executable *e);
const rt_target *rt_executable_target(const rt_executable *e);

typedef struct rt_run_options {
  rt_thread_pool *pool; /* NULL means one thread */
  mem_budget *budget;   /* of this run: cancel, deadline; its memory counts there */
  struct rt_profiler *profiler;
  uint64_t seed;     /* of random numbers: equal seeds, equal numbers */
  bool check_memory; /* what thunks do to memory is checked (check_memory.h) */
  /* Runs the program's thunks in place of rt_run_sequence, to look at memory between them; NULL means nobody does. */
  status (*drive)(void *data, const rt_sequence *body, rt_run *r);
  void *drive_data;
} rt_run_options;

/* Runs with the caller's buffers, one a parameter and one a result, of the sizes that the program states, in host
 * memory.  Buffers need no alignment beyond their elements' (others are copied through). */
STATUS_MUST_USE status rt_execute(const rt_executable *e, const rt_run_options *options, const void *const *params,
                                  void *const *results);

/* Runs the thunks of a sequence; for control-flow kinds. */
STATUS_MUST_USE status rt_run_sequence(const rt_sequence *s, rt_run *r);

/* The branch that a conditional of n takes: pred[] chooses the first where it is true, s32[] by number, the last where
 * there is none of that number. */
int64_t rt_branch_of(dtype type, const void *index, uint32_t n);

/* The kinds every target has: "copy" (buffers of any strides, one input, one output), "while", "conditional",
 * "run-seed" (one output, u64[]: the seed of the run), "mt19937" (input: its seed, u64[1]; output: u32 or u64, dense).
 */
extern const rt_thunk_kind rt_common_kinds[];
extern const uint32_t rt_n_common_kinds;

#endif
