/* executable.h - a program that is ready to run: its thunk kinds are resolved, its code is loaded, its library objects
 * are made.  It never changes and may be run from many threads at once; each run has an arena of its own. */
#ifndef RUNTIME_EXEC_EXECUTABLE_H
#define RUNTIME_EXEC_EXECUTABLE_H

#include "runtime/program/target.h"

typedef struct rt_load_options {
  mem_budget *budget;              /* counts the host's memory of the executable and of the arenas of runs */
  const rt_code_cache *code_cache; /* see rt_target.load_code */
} rt_load_options;

/* The program must live as long as the executable.  Everything in it is checked, since it may come from a damaged file.
 * The options may be NULL: no budget, and no cache. */
STATUS_MUST_USE status rt_executable_create(const rt_program *p, const rt_target *target,
                                            const rt_load_options *options, rt_executable **out);
void rt_executable_destroy(rt_executable *e);
/* Returns how many bytes of memory the executable takes now: thunks, loaded code, and the memory that is kept for later
 * runs (rt_run_memory); if none is kept yet, one arena counts.  Constants do not count. */
uint64_t rt_executable_bytes(rt_executable *e);
const rt_program *rt_executable_program(const rt_executable *e);
const rt_target *rt_executable_target(const rt_executable *e);

/* A program with numbers for all sizes, which never changes and may be run from many threads at once.  rt_bind
 * (binding.h) makes one from a program for many sizes. */
typedef struct rt_binding {
  const rt_executable *executable; /* must live as long as the binding */
  const rt_program *program;       /* all of its sizes are numbers */
  uint64_t counter_bytes;          /* how many bytes of RT_COUNTERS a run needs */
  uint64_t number;                 /* unique among the bindings that the process has made */
  rt_sequence body;                /* the program's thunks, ready to run */
  arena *arena; /* owns what the binding points to; NULL in the binding that belongs to an executable */
} rt_binding;

/* Returns the binding of a program for one set of sizes, which belongs to the executable; NULL if the program is for
 * many sizes. */
const rt_binding *rt_executable_binding(const rt_executable *e);

typedef struct rt_run_options {
  rt_thread_pool *pool; /* NULL means one thread */
  mem_budget *budget;   /* limits the time and memory of this run, and can cancel it */
  struct rt_profiler *profiler;
  uint64_t seed;     /* the seed of random numbers; equal seeds give equal numbers */
  bool check_memory; /* whether accesses of thunks to memory are checked (check_memory.h) */
  /* For each input and each output, whether its array is in the memory of the target's device; NULL: no array is.  An
   * input there must be complete when the run begins.  An array in the device's memory is used in place if its address
   * is a multiple of RT_ARRAY_ALIGN, otherwise it is copied. */
  const bool *params_on_device, *results_on_device;
  /* If not NULL, this function runs the program's thunks instead of rt_run_sequence, so that it can examine memory
   * between them (rt_memory_read). */
  status (*drive)(void *data, const rt_sequence *body, rt_run *r);
  void *drive_data;
} rt_run_options;

/* Runs a bound program.  `params` and `results` have a buffer for each parameter and each result, of the size that the
 * program states, in host memory unless the options say otherwise.  Buffers that are not aligned as kernels require
 * (rt_array_align) are copied.  A result that is carried in a parameter (rt_io.carried) may have the parameter's
 * buffer.  Otherwise a result must overlap no other buffer. */
STATUS_MUST_USE status rt_execute(const rt_binding *b, const rt_run_options *options, const void *const *params,
                                  void *const *results);

/* Returns how many bytes of RT_COUNTERS the thunks of the sequence need.  All sizes must be numbers. */
uint64_t rt_counter_bytes(const rt_sequence *s);

/* Puts the thunk's label before the message of a failure, and the thunk's nodes into the status unless it names a node
 * already.  Returns the status.  NULL stays NULL. */
status rt_at_thunk(status failed, const rt_program *p, const rt_thunk *t);

/* Runs a thunk. */
STATUS_MUST_USE status rt_run_thunk(const rt_thunk *t, rt_run *r);
/* Runs the thunks of a sequence.  The kinds of control flow call it for their bodies. */
STATUS_MUST_USE status rt_run_sequence(const rt_sequence *s, rt_run *r);

/* Returns the index of the branch that a conditional of n branches takes.  `index` points to a pred[], which selects
 * branch 0 if true and branch 1 if false, or to an s32[] with the branch's index; an index out of range selects the
 * last branch. */
int64_t rt_branch_of(dtype type, const void *index, uint32_t n);

/* The thunk kinds that every target has besides its own: "copy" (one input and one output, with any strides),
 * "while", "conditional", "concurrent", "check" (bounds.h), "run-seed" (one output, u64[]: the seed of the run) and
 * "mt19937" (input: its seed, u64[1]; output: u32 or u64, dense). */
extern const rt_thunk_kind rt_common_kinds[];
extern const uint32_t rt_n_common_kinds;

#endif
