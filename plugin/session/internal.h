/* internal.h - declarations that the files of a session share.  Users include session.h. */
#ifndef PLUGIN_SESSION_INTERNAL_H
#define PLUGIN_SESSION_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "plugin/session/opened_file.h"
#include "plugin/session/session.h"
#include "plugin/session/store.h"
#include "runtime/exec/executable.h"
#include "runtime/host/thread_pool.h"
#include "runtime/program/weight_pool.h"

/* A corner of the ranges (session_options.ranges) has the least or the largest size of each of the first
 * SESSION_MOST_RANGES ranges, and the largest size of each further range.  Programs are compiled until all corners are
 * served, for which each corner may have a program of its own. */
enum { SESSION_MOST_RANGES = 4 };

typedef struct compile_cache compile_cache;
typedef struct specialisation specialisation;

/* The values of the option `specialise`.  It says when programs are tuned by measuring, if the option `tune` is
 * "fast". */
typedef enum specialise {
  SPECIALISE_AUTO, /* in the background, while an untuned program serves runs */
  SPECIALISE_OFF,  /* never */
  SPECIALISE_FULL  /* the first program of the session, before its first run */
} specialise;

/* Programs, and the sum of their bytes. */
typedef struct program_list {
  session_program *first, *last;
  uint32_t n;
  uint64_t bytes;
} program_list;

struct session {
  arena *arena; /* the arena of `options`, `source` and `image` */
  /* The budget of all memory of the session.  Runs read it without the lock, so nothing in it but the used memory may
   * change. */
  mem_budget budget;
  mem_budget compiling; /* nested in `budget`, with the deadline of the current compilation */
  session_options options;
  const rt_target *target;
  compiler_model *source;   /* source->model is NULL as long as only the description in the cache has been read */
  opened_file *file;        /* the file from which the session was opened */
  compile_cache *cache;     /* NULL if there is no cache */
  content_store code_store; /* keeps code that the driver of the target's device has compiled; open if
                               loading.code_cache is not NULL */
  rt_code_cache code_cache;
  rt_load_options loading; /* the options with which all programs are loaded */
  const rt_image *image;   /* the .oxla file; NULL if the session was opened from a model, or from a .oxla file that
                              contains the model */
  const shape *assumed;  /* the shapes of the inputs, with sizes for the dimensions to which nothing gives one; NULL as
                            long as none are found (session_assume_sizes) */
  string_table *strings; /* see session_strings */
  arena *string_memory;  /* of `strings`, to which a caller may add while other threads use `arena` */
  const char *warning;
  const compiler_carry *carried; /* the option `carried`, with numbers in place of names */
  uint32_t n_carried;
  double load_seconds;
  rt_thread_pool *pool;
  /* The lock guards the lists and the table of programs, `exact_reason`, `specialisation` and `taken_by`
   * (session_take_turn).  It is only held for short times, never while compiling or running. */
  pthread_mutex_t lock;
  program_list compiled;     /* the programs for one set of sizes, the newest first.  For a model that runs segment by
                                segment, each has no rt_program: it stands for the segments (session_program.program) */
  program_list bindings;     /* the bindings of programs for all sizes, the last used first */
  session_program *generals; /* the list of programs for all sizes (programs.c) */
  uint32_t n_generals;
  /* A hash table of the programs in `compiled` and `bindings`, by their shapes: n_table lists, where n_table is a power
   * of 2.  If there was no memory for a table, n_table is 0 and all programs are in the list `unhashed`. */
  session_program **table, *unhashed;
  uint32_t n_table;
  uint64_t weights;         /* the bytes of the constants of the program whose constants are the largest */
  bool meets_contents;      /* whether a program was compiled that is only for certain contents of an input */
  const char *exact_reason; /* why the model was not compiled for all sizes when that was last tried; NULL if it was */
  uint64_t clock;
  pid_t taken_by;           /* the process of the thread that has the turn (session_take_turn); 0 if none has it */
  pthread_cond_t turn_ends; /* also signalled when a specialisation ends */
  /* Only the thread that has the turn may remove programs, or change `compiling`, `weight_pool`, `segments`,
   * `n_refused`, `most_small`, and what `arena`, `source` and `cache` point to. */
  uint32_t n_refused; /* how often sizes got a program of their own, since the model was not compiled for all sizes */
  /* UINT32_MAX, or, if the model ran segment by segment, how many of its inputs' sizes were 0 or 1.  Only such hints
   * may make a difference, so that it is tried again for fewer of them. */
  uint32_t most_small;
  rt_weight_pool *weight_pool;  /* constants of the programs */
  rt_weight_pool *segment_pool; /* what the segments share, guarded by their own lock; NULL as long as there
                                   are no segments */
  hash_secret secret;           /* the secret of weight_pool (rt_weight_pool_create) */
  segmented_model *segments;    /* the segments of a model that runs segment by segment; NULL as long as there are
                                   none */
  /* begun: the number of runs and compilations that have begun so far; busy: the number of those that are in progress.
   * What specialise.c compiles in the background is not counted. */
  atomic_uint_fast64_t begun;
  atomic_uint busy;
  specialise specialise;
  specialisation *specialisation; /* the tuning of a program in the background, which may have ended; NULL if none
                                     was begun */
  uint32_t n_specialised;         /* the number of tunings that were begun */
  mem_budget specialising;        /* the budget of `specialisation`, nested in `budget` */
  double patience;                /* the seconds that all measurements of a tuning together may wait for runs to end */
  /* the programs that tuned ones have replaced and that are not freed yet, and their number */
  program_list replaced;
  atomic_uint n_replaced;
  uint64_t entropy;
  atomic_uint_fast64_t n_fresh_seeds;
};

/* Return the shape and the data of parameter k of a program.  The first parameters are the inputs of the model.  A
 * further parameter is a size that is an element of an input (rt_io.told), or memory with room for a carried output. */
shape session_param_shape(const session *s, const session_inputs *inputs, const rt_program *p, uint32_t k);
const void *session_param_data(const session *s, const session_inputs *inputs, const rt_program *p, uint32_t k);
/* Raises *inputs->room to at least what the program needs for these inputs.  Does nothing if inputs->room is NULL. */
STATUS_MUST_USE status session_raise_room(const session *s, const session_inputs *inputs, const rt_program *p);
/* Returns the number of carried outputs that the program writes in place; 0 if `p` is NULL. */
uint32_t session_carried_in_place(const session *s, const rt_program *p);
/* Returns the range of dimension d of an input (session_options.ranges), or NULL if it has none. */
const dim_range *session_range_of(const session *s, const model_value *v, int d);
/* Returns true if the program is for exactly the shapes of these inputs, and for their contents if it depends on
 * contents. */
bool session_program_serves(const session *s, const rt_program *p, const session_inputs *inputs);
/* Reads a model or HLO text from the session's file. */
STATUS_MUST_USE status session_open_model(const session *s, compiler_model **out);
/* Waits for the session's turn and takes it.  The turn is a lock: one thread at a time has it, to compile,
 * check or save.  Running existing programs needs no turn.  Fails in a process that was forked while a thread
 * of its parent had the turn. */
STATUS_MUST_USE status session_take_turn(session *s);
/* Waits for a signal that a turn may have ended, but not longer than `nanoseconds` unless this is 0.  The caller holds
 * the lock, and checks `taken_by` again.  Fails like session_take_turn. */
STATUS_MUST_USE status session_await_turn(session *s, int64_t nanoseconds);
void session_end_turn(session *s);
/* Must be called at the beginning and at the end of each run, and of each compilation for which a caller waits; they
 * count these (begun, busy). */
void session_begin_work(session *s);
void session_end_work(session *s);
/* Opens the model itself if only its description in the cache has been read so far.  The caller has the turn. */
STATUS_MUST_USE status session_need_model(session *s);
/* Makes a session_program of the program `p`, which is NULL for a model that runs segment by segment.  It is no
 * error if only another machine can run the program (session_program.elsewhere).  Takes over the arena of the program,
 * also after a failure.  The caller has the turn. */
STATUS_MUST_USE status session_make_program(session *s, const rt_program *p, arena *a, session_program **out);
/* Puts the program `with` in the place of `old`, which is freed when it has no users.  The caller has the
 * turn. */
void session_replace_program(session *s, session_program *old, session_program *with);
/* Adds the program to the session.  It must be complete, since other threads can find it from then on.  The caller
 * holds the lock, or is the only thread that has the session. */
void session_add_program(session *s, session_program *c);
/* Returns the program for these inputs, or NULL.  The caller holds the lock. */
session_program *session_find_program(session *s, const session_inputs *inputs);
/* Adds the program to the session, with the caller as its user.  Then frees the programs that were not used for the
 * longest time, as long as programs take too much memory (session_options.program_memory).  The caller has the turn. */
void session_keep_program(session *s, session_program *c);
/* session_free_program frees a program that is in no list of the session, session_free_programs all programs
 * of the session. */
void session_free_program(session *s, session_program *c);
void session_free_programs(session *s);

/* Returns true if the options allow programs for all sizes, which are never tuned. */
bool session_allows_general(const session *s);
/* Returns true if neither the inputs `told`, the model nor options.dims give the size of some dimension. */
bool session_has_open_sizes(const session *s, const session_inputs *told);
/* Returns how many dimensions of the inputs have the size 0 or 1. */
uint32_t session_small_sizes(const session *s, const session_inputs *inputs);
/* Returns true if the next compilation, which is for these inputs, should make a program for all sizes.  The
 * caller has the turn (session_take_turn). */
bool session_wants_general(const session *s, const session_inputs *inputs);
/* Adds a program for all sizes to the session.  The caller has the turn. */
void session_add_general(session *s, session_program *c);
/* Binds a program for all sizes to these inputs and sets *out to the binding, which is not yet in the session's list of
 * programs.  If no program serves the inputs, *out is NULL and *refused says why one of them does not; it stays NULL if
 * none was tried.  `refused` may be NULL; otherwise *refused must be NULL before the call.  The caller has the turn. */
STATUS_MUST_USE status session_bind(session *s, const session_inputs *inputs, session_program **out, status *refused);

/* Fails if each of these programs for all sizes, which are `what` the message says, is only for one size of a dimension
 * that has a range with several sizes. */
STATUS_MUST_USE status session_check_pins(const session *s, const char *what, uint32_t n,
                                          const rt_program *const *programs);

/* Returns the inputs for which a program without open sizes was compiled or bound: its shapes, and the contents that
 * decide sizes. */
session_inputs session_inputs_of(arena *a, const rt_program *p);

/* Returns true if the session's log gets lines of this level. */
bool session_logs(const session *s, session_log_level level);
/* Writes a line to the session's log, if it gets lines of this level. */
void session_log(const session *s, session_log_level level, const char *format, ...) STATUS_PRINTF(3, 4);
/* Write to the log that the session was opened, and that a program for these inputs was compiled or found. */
void session_log_opened(const session *s);
void session_log_compiled(const session *s, const session_inputs *inputs, const session_program *c);

/* Does what session_run does, and measures it with a profiler, which may be NULL. */
STATUS_MUST_USE status session_run_watched(session *s, const session_program *c, const uint64_t *seed,
                                           const session_inputs *inputs, session_output *outputs,
                                           struct rt_profiler *profiler);

#endif
