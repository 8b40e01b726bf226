/* run_memory.h - the memory of a run: its arena, and on a device its queue, counters, memory for the caller's arrays,
 * and recordings of its work.  An executable keeps it for later runs. */
#ifndef RUNTIME_EXEC_RUN_MEMORY_H
#define RUNTIME_EXEC_RUN_MEMORY_H

#include "runtime/exec/recorder.h"
#include "runtime/exec/staging.h"

typedef struct rt_run_memory {
  struct rt_run_memory *next; /* the next one in the list of spare memory of an executable */
  const rt_device *device;    /* NULL if the memory is the host's; then stream, in, out and recordings are NULL */
  mem_budget *budget;         /* counts the arena if it is in the host's memory */
  size_t bytes;               /* the size of the arena */
  void *arena;
  size_t counter_bytes;
  void *counters; /* RT_COUNTERS */
  bool counted;   /* whether counters may be other than 0, since a run has failed */
  rt_stream *stream;
  uint32_t n_in, n_out;
  rt_kept *in, *out;
  rt_recordings *recordings; /* NULL if the device cannot record */
} rt_run_memory;

/* Makes memory for runs of the program, with an arena of `bytes` bytes and counters of `counter_bytes` bytes.  The
 * budget must live as long as the memory. */
STATUS_MUST_USE status rt_run_memory_create(const rt_device *d, mem_budget *budget, const rt_program *p, size_t bytes,
                                            size_t counter_bytes, rt_run_memory **out);
/* Makes all counters 0.  There must be counters. */
STATUS_MUST_USE status rt_run_memory_clear_counters(rt_run_memory *m);
/* NULL is allowed. */
void rt_run_memory_destroy(rt_run_memory *m);
/* Returns the bytes of the arena, of the counters and of the memory for the caller's arrays. */
uint64_t rt_run_memory_bytes(const rt_run_memory *m);

#endif
