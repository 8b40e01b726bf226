/* trial.h - runs a thunk once with its buffers in guarded memory instead of at their places in the program.  Defined
 * bytes of its inputs are copied to the guarded memory; all undefined bytes there are filled with arbitrary numbers.
 * An access outside of the thunk's buffers, or a write outside of its outputs, is a violation.  Only the checked runs
 * of check_memory.h use these functions. */
#ifndef RUNTIME_EXEC_TRIAL_H
#define RUNTIME_EXEC_TRIAL_H

#include "runtime/exec/guarded.h"
#include "runtime/program/target.h"

/* The kind of numbers that fill undefined bytes: signalling NaNs and large numbers, or ordinary finite numbers.  Each
 * thunk runs with both, so that results that depend on undefined bytes differ. */
typedef enum wild { WILD_NAN, WILD_FINITE } wild;

/* The mark of a byte.  MARK_FIRST_ORIGIN + k means that the byte is undefined, and that item k of rt_checker.origins
 * (check_memory.c) says why. */
enum { MARK_NEVER_WRITTEN, MARK_DEFINED, MARK_FIRST_ORIGIN };

/* A space that thunks may write (rt_space), with a mark for each of its bytes. */
typedef struct tracked {
  uint8_t *data;
  uint32_t *marks;
} tracked;

/* The state of a checked run, which all trials of that run use. */
typedef struct checked_run {
  arena *arena; /* lives as long as the run */
  const rt_program *program;
  rt_run *run;
  tracked memory, *results;      /* memory: the run's arena; results: the caller's outputs */
  guarded **params, **constants; /* read-only copies of inputs and constants, made when they are first needed */
  guarded *forbidden;            /* what the thunk gets as the run's arena; every access to it is a violation */
  guarded_pool pool;
} checked_run;

typedef struct trial trial;

/* Runs the thunk.  With out_of_place, outputs do not share memory with inputs, even where they do in the program.
 * Fails if the thunk fails, or if it makes a wrong access. */
STATUS_MUST_USE status trial_run(checked_run *c, arena *a, const rt_thunk *t, rt_run *r, bool out_of_place, wild kind,
                                 trial **out);
/* trial_buffer returns the contents of buffer k after the run.  trial_before returns those that an output k had before
 * the run. */
const uint8_t *trial_buffer(const trial *t, uint32_t k);
const uint8_t *trial_before(const trial *t, uint32_t k);

/* --- for check_memory.c, too --- */

/* A buffer as contiguous slices in row-major order: a single slice if it is dense, otherwise a slice for each element.
 */
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

/* Returns the space of the buffer; NULL for inputs and constants, all bytes of which are defined. */
const tracked *tracked_space(const checked_run *c, const rt_buffer *b);
/* Returns true if the bytes from the first to the last element of one buffer overlap those of the other. */
bool buffers_overlap(const rt_buffer *x, const rt_buffer *y);
/* Returns true if the thunk reads what buffer k contains before the thunk runs. */
bool thunk_reads(const rt_thunk *t, uint32_t k);
/* Returns text such as "output 0, f32[2,3] in bytes 64 to 88 of the arena". */
const char *buffer_text(arena *a, const rt_program *p, const rt_thunk *t, uint32_t k);
/* Returns a STATUS_INTERNAL whose message begins with the thunk's kind and note.  The caller adds the thunk's label. */
status violation(const rt_thunk *t, const char *format, ...) STATUS_PRINTF(2, 3);

#endif
