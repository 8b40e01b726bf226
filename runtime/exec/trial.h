/* trial.h - one run of a thunk whose buffers lie in guarded memory, not where the program has them: it finds
 * there what it reads, and wild numbers in the place of all that is not defined.  What it writes anywhere
 * else is a violation.  Part of check_memory.h. */
#ifndef RUNTIME_EXEC_TRIAL_H
#define RUNTIME_EXEC_TRIAL_H

#include "runtime/exec/guarded.h"
#include "runtime/program/target.h"

/* What lies in the place of numbers that nothing wrote: two sorts, so that what depends on them differs. */
typedef enum wild { WILD_NAN, WILD_FINITE } wild; /* signalling NaNs and large integers; finite numbers */

/* Marks of bytes.  Larger ones say whose fault it is that a byte is not defined. */
enum { MARK_NEVER_WRITTEN, MARK_DEFINED, MARK_FIRST_ORIGIN };

/* A space that thunks write, and a mark for each of its bytes. */
typedef struct tracked {
  uint8_t *data;
  uint32_t *marks;
} tracked;

/* What trials know of the run. */
typedef struct checked_run {
  arena *arena; /* lives as long as the run */
  const rt_program *program;
  rt_run *run;
  tracked memory, *results;      /* the run's arena; the caller's outputs */
  guarded **params, **constants; /* copies to be read only, made when they are first wanted */
  guarded *forbidden;            /* in the place of the arena */
  guarded_pool pool;
} checked_run;

typedef struct trial trial;

/* out_of_place: outputs do not share memory with inputs, whatever the program says.  Fails as the thunk does, or
 * with a violation. */
STATUS_MUST_USE status trial_run(checked_run *c, arena *a, const rt_thunk *t, rt_run *r, bool out_of_place, wild kind,
                                 trial **out);
/* Where buffer k lies in it; and, of outputs, what was there before the run. */
const uint8_t *trial_buffer(const trial *t, uint32_t k);
const uint8_t *trial_before(const trial *t, uint32_t k);

/* --- for check_memory.c, too --- */

/* A buffer as pieces without holes: one, or one an element, in row-major order. */
typedef struct slices {
  const rt_buffer *buffer;
  int64_t n;
  size_t bytes; /* of one */
} slices;

slices slices_of(const rt_buffer *b);
/* Bytes from the buffer's first to its k-th piece. */
uint64_t slice_offset(const slices *p, int64_t k);
/* The first of n marks that is not MARK_DEFINED; n: there is none. */
size_t first_undefined(const uint32_t *marks, size_t n);

/* The space that the buffer lies in, NULL of inputs and constants, which are defined. */
const tracked *tracked_space(const checked_run *c, const rt_buffer *b);
/* Do they have a byte in common? */
bool buffers_overlap(const rt_buffer *x, const rt_buffer *y);
/* Does the thunk read what buffer k held before? */
bool thunk_reads(const rt_thunk *t, uint32_t k);
/* "output 0, f32[2,3] in bytes 64 to 88 of the arena". */
const char *buffer_text(arena *a, const rt_program *p, const rt_thunk *t, uint32_t k);
/* A STATUS_INTERNAL that names the thunk's kind and note; whoever runs thunks puts the label before it. */
status violation(const rt_thunk *t, const char *format, ...) STATUS_PRINTF(2, 3);

#endif
