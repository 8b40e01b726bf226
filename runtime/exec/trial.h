/* trial.h - one run of a thunk whose buffers are in guarded memory and not where the program has them.  It finds its
 * inputs there, and arbitrary numbers in place of everything undefined.  If it writes anywhere else, that is a
 * violation.  Part of check_memory.h. */
#ifndef RUNTIME_EXEC_TRIAL_H
#define RUNTIME_EXEC_TRIAL_H

#include "runtime/exec/guarded.h"
#include "runtime/program/target.h"

/* The numbers in place of bytes that nothing wrote.  There are two kinds, so that results which depend on them differ.
 */
typedef enum wild { WILD_NAN, WILD_FINITE } wild; /* signalling NaNs and large integers; finite numbers */

/* Marks of bytes.  Larger ones say which thunk is the reason why a byte is undefined. */
enum { MARK_NEVER_WRITTEN, MARK_DEFINED, MARK_FIRST_ORIGIN };

/* A space that thunks write, with a mark for each of its bytes. */
typedef struct tracked {
  uint8_t *data;
  uint32_t *marks;
} tracked;

/* The state of a checked run that all its trials use. */
typedef struct checked_run {
  arena *arena; /* lives as long as the run */
  const rt_program *program;
  rt_run *run;
  tracked memory, *results;      /* the run's arena; the caller's outputs */
  guarded **params, **constants; /* read-only copies, made when they are first needed */
  guarded *forbidden;            /* in place of the arena */
  guarded_pool pool;
} checked_run;

typedef struct trial trial;

/* Runs the thunk.  With out_of_place, outputs do not share memory with inputs, whatever the program says.  Fails if the
 * thunk fails, or with a violation. */
STATUS_MUST_USE status trial_run(checked_run *c, arena *a, const rt_thunk *t, rt_run *r, bool out_of_place, wild kind,
                                 trial **out);
/* Return where buffer k is in the trial; and, for outputs, what was there before the run. */
const uint8_t *trial_buffer(const trial *t, uint32_t k);
const uint8_t *trial_before(const trial *t, uint32_t k);

/* --- for check_memory.c, too --- */

/* A buffer as contiguous slices in row-major order: one, or one for each element. */
typedef struct slices {
  const rt_buffer *buffer;
  int64_t n;
  size_t bytes; /* the bytes of one slice */
} slices;

slices slices_of(const rt_buffer *b);
/* Returns the distance in bytes from the buffer's first slice to the k-th. */
uint64_t slice_offset(const slices *p, int64_t k);
/* Returns the position of the first of n marks that is not MARK_DEFINED, or n if there is none. */
size_t first_undefined(const uint32_t *marks, size_t n);

/* Returns the space of the buffer, or NULL for inputs and constants, which are always defined. */
const tracked *tracked_space(const checked_run *c, const rt_buffer *b);
/* Returns true if they have a byte in common. */
bool buffers_overlap(const rt_buffer *x, const rt_buffer *y);
/* Returns true if the thunk reads what buffer k held before. */
bool thunk_reads(const rt_thunk *t, uint32_t k);
/* Returns text such as "output 0, f32[2,3] in bytes 64 to 88 of the arena". */
const char *buffer_text(arena *a, const rt_program *p, const rt_thunk *t, uint32_t k);
/* Returns a STATUS_INTERNAL that names the thunk's kind and note; the caller puts the label before it. */
status violation(const rt_thunk *t, const char *format, ...) STATUS_PRINTF(2, 3);

#endif
