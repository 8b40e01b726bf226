/* internal.h - what the files of a session share; users want session.h. */
#ifndef PLUGIN_SESSION_INTERNAL_H
#define PLUGIN_SESSION_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "plugin/session/opened_file.h"
#include "plugin/session/session.h"
#include "plugin/session/store.h"
#include "runtime/host/thread_pool.h"
#include "runtime/program/weight_pool.h"

typedef struct compile_cache compile_cache;

struct session {
  arena *arena;         /* options, the source, or the image */
  mem_budget budget;    /* of all: runs read it without the lock, so that nothing but the memory changes */
  mem_budget compiling; /* inside it, with the deadline of what is compiled now */
  session_options options;
  const rt_target *target;
  compiler_model *source; /* its model is NULL as long as the cache's description is all that was needed */
  opened_file *file;      /* what it was opened from */
  compile_cache *cache;   /* NULL means no cache */
  const rt_image *image;  /* NULL means a model */
  const char *warning;
  double load_seconds;
  rt_thread_pool *pool;
  /* The lock guards the list of programs, who uses them, and whose turn it is; nobody works under it. */
  pthread_mutex_t lock;
  session_program *compiled;
  uint32_t n_compiled;
  uint64_t clock;
  bool is_taken; /* somebody has the turn: */
  pthread_cond_t turn_ends;
  /* Only who has the turn changes what follows, `compiling`, and what is behind `arena`, `source` and `cached`; nobody
   * else takes programs away. */
  rt_weight_pool *weight_pool; /* constants of the programs */
  segmented_model *segments;   /* NULL if it is not needed so far */
  atomic_uint busy;            /* how many runs and compilations there are now */
  uint64_t entropy;
  atomic_uint_fast64_t n_fresh_seeds;
};

/* Returns true if the program is for these inputs. */
bool session_program_serves(const session *s, const rt_program *p, const session_inputs *inputs);
/* Reads the session's file: a model, or HLO text. */
STATUS_MUST_USE status session_open_model(const session *s, compiler_model **out);
/* Who compiles, checks or saves takes turns; runs of programs that are there need none. */
void session_take_turn(session *s);
void session_end_turn(session *s);
/* The model itself, where the cache's description has been enough so far.  In a turn. */
STATUS_MUST_USE status session_need_model(session *s);
/* Makes the program (NULL: pieces) ready, even if another machine must run it.  Takes the arena, also when it fails. In
 * a turn. */
STATUS_MUST_USE status session_make_program(session *s, const rt_program *p, arena *a, session_program **out);
/* From now on it is one of the session's: complete, for others find it. */
void session_add_program(session *s, session_program *c);

/* A line for whoever listens. */
void session_log(const session *s, session_log_level level, const char *format, ...) STATUS_PRINTF(3, 4);
/* That the session was opened; that it has a program for these inputs now. */
void session_log_opened(const session *s);
void session_log_compiled(const session *s, const session_inputs *inputs, const session_program *c);

/* session_run with a profiler that looks on; NULL if there is none. */
STATUS_MUST_USE status session_run_watched(session *s, const session_program *c, const uint64_t *seed,
                                           const session_inputs *inputs, session_output *outputs,
                                           struct rt_profiler *profiler);

#endif
