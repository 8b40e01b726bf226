/* autotune.h - decides by which config each instruction of a module is computed: by the log, by timing, or by
 * estimates.
 *
 * Nothing here knows a backend.  A backend lists the configs of an instruction with their estimates, and builds and
 * runs one (like XLA's CodegenBackend).  This folder decides what is worth timing, in which order and for how long,
 * what is remembered, and what counts as faster. */
#ifndef AUTOTUNE_AUTOTUNE_H
#define AUTOTUNE_AUTOTUNE_H

#include "hlo/ir/ir.h"
#include "runtime/program/target.h"

enum { AUTOTUNE_MAX_CONFIGS = 64 }; /* the most configs of one problem that are timed */

/* One way to compute a problem. */
typedef struct autotune_config {
  /* such as "gemm:8x48": the algorithm, then a colon and its parameters; or only the algorithm, such as "kernel" */
  const char *name;
  double estimate; /* expected nanoseconds; decides what is timed first, and what is taken where nothing is timed */
  double bytes;    /* bytes of packed weights and scratch memory if these may be large; otherwise 0 */
  bool idle;       /* whether threads are left without work; such a config wins only where it is clearly faster */
} autotune_config;

/* An instruction that can be computed by more than one config. */
typedef struct autotune_problem {
  const char *what; /* a description for people, which the log keeps; a line without tabs */
  rt_span identity; /* all that times depend on besides the machine; equal bytes mean equal problems */
  /* the same text for all problems that differ only in the number of rows; NULL if there are none */
  const char *similar;
  uint32_t n_configs;
  autotune_config *configs; /* sorted, the least estimate first */
  void *data;               /* data of the backend */
} autotune_problem;

/* A config that is built and can be run.  The backend defines the structure. */
typedef struct autotune_trial autotune_trial;

typedef struct autotune_backend {
  void *data;
  uint64_t machine; /* a hash of all that times depend on and that is the same for the whole module */
  uint32_t threads; /* the number of threads of a run */
  /* Fills *out, on the arena, with the configs of the instruction. n_configs 0 means that it is not tuned. */
  status (*list_configs)(void *data, arena *a, const hlo_instr *i, autotune_problem *out);
  /* Finds a config that list_configs left out, by its name; returns false if the problem has none of that name. */
  bool (*find_config)(void *data, arena *a, const autotune_problem *p, const char *name, autotune_config *out);
  /* Fails if code for the target cannot run on this machine; the message says why. */
  status (*can_run)(void *data);
  /* Builds a program that computes the problem alone by the config.  `shared` is an arena that lives as long as all
   * trials of this problem. */
  status (*build)(void *data, arena *shared, const autotune_problem *p, const char *config, autotune_trial **out);
  status (*run)(autotune_trial *t);
  void (*destroy)(autotune_trial *t);
} autotune_backend;

/* How the config of an instruction was decided. */
typedef struct autotune_decision {
  hlo_instr *instr;
  const char *what;
  const char *how;   /* "timed", "log", "near" (taken from a problem with another number of rows) or "estimate" */
  const char *times; /* microseconds, such as "library:p4=123.40,kernel=400.10"; "" if nothing was timed */
} autotune_decision;

/* The result of autotune, on its arena. */
typedef struct autotune_result {
  uint32_t n;
  autotune_decision *decisions;
  uint32_t n_timed;    /* the number of different problems that were timed now */
  const char *warning; /* why the log cannot be used, or why nothing is timed; NULL if there is no warning */
} autotune_result;

/* Decides on a config for each instruction of the module that has none and that the backend tunes, and writes it into
 * the instruction (hlo_instr.config).  Equal problems are timed once.  With log_path NULL nothing is remembered.  With
 * RT_TUNE_OFF nothing is decided. */
STATUS_MUST_USE status autotune(arena *a, hlo_module *m, const autotune_backend *backend, rt_tune tune,
                                const char *log_path, autotune_result *out);

#endif
