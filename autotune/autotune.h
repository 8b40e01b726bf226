/* autotune.h - by which config each instruction of a module is computed: what the log knows, what is timed now, and
 * estimates for the rest.
 *
 * Nothing here knows a backend: it lists the configs of an instruction with their estimates, and builds and runs one
 * (as XLA's CodegenBackend).  What is worth timing, in which order and for how long, what is remembered, and what
 * counts as faster is decided here. */
#ifndef AUTOTUNE_AUTOTUNE_H
#define AUTOTUNE_AUTOTUNE_H

#include "hlo/ir/ir.h"
#include "runtime/program/target.h"

enum { AUTOTUNE_MAX_CONFIGS = 64 }; /* of one problem that are timed */

/* One way to compute a problem. */
typedef struct autotune_config {
  const char *name; /* "gemm:8x48": the algorithm, then a colon and its parameters; "kernel": it has none */
  double estimate;  /* expected nanoseconds: decides what is timed first, and what is taken where nothing is timed */
  double bytes;     /* of packed weights and scratch memory, where these may be large; 0: few */
  bool idle;        /* leaves threads without work: wins only where it is clearly faster */
} autotune_config;

/* An instruction that can be computed by more than one config. */
typedef struct autotune_problem {
  const char *what;    /* for people, and for the log: a line without tabs */
  rt_span identity;    /* bytes of all that times depend on, beside the machine; equal bytes, equal problem */
  const char *similar; /* the same text for problems that differ in the number of rows only; NULL: there are none */
  uint32_t n_configs;
  autotune_config *configs; /* the least estimate first */
  void *data;               /* the backend's own */
} autotune_problem;

/* A config that is built and can be run; the backend's own. */
typedef struct autotune_trial autotune_trial;

typedef struct autotune_backend {
  void *data;
  uint64_t machine; /* hash of all that times depend on and that is the same for the whole module */
  uint32_t threads; /* that runs use */
  /* Fills *out on the arena, with all configs that the instruction is known to have; n_configs 0: it is not tuned. */
  status (*list_configs)(void *data, arena *a, const hlo_instr *i, autotune_problem *out);
  /* Finds a config that list_configs left out, by its name; returns false if the problem has none of that name. */
  bool (*find_config)(void *data, arena *a, const autotune_problem *p, const char *name, autotune_config *out);
  /* Fails if what is built cannot run on this machine; the message says why. */
  status (*can_run)(void *data);
  /* Builds the config alone, with all that running it takes.  `shared` lives as long as the trials of this problem. */
  status (*build)(void *data, arena *shared, const autotune_problem *p, const char *config, autotune_trial **out);
  status (*run)(autotune_trial *t);
  void (*destroy)(autotune_trial *t);
} autotune_backend;

/* How the config of an instruction was decided. */
typedef struct autotune_decision {
  hlo_instr *instr;
  const char *what;
  const char *how;   /* "timed", "log", "near" (other rows were timed), "guess" */
  const char *times; /* "library:p4=123.40,kernel=400.10", microseconds; "": nothing was timed */
} autotune_decision;

/* On the arena. */
typedef struct autotune_result {
  uint32_t n;
  autotune_decision *decisions;
  uint32_t n_timed;    /* different problems that were timed now */
  const char *warning; /* of a log that cannot be used, or why nothing is timed; NULL: none */
} autotune_result;

/* Decides on a config for each instruction of the module that has none and that the backend tunes, and writes it there
 * (hlo_instr.config).  Equal problems are timed once.  log_path NULL: nothing is remembered.  tune RT_TUNE_OFF: nothing
 * is decided. */
STATUS_MUST_USE status autotune(arena *a, hlo_module *m, const autotune_backend *backend, rt_tune tune,
                                const char *log_path, autotune_result *out);

#endif
