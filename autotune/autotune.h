/* autotune.h - decides by which config (an algorithm with its parameters) each instruction of a module is computed: by
 * the log of earlier measurements, by timing, or by estimates.
 *
 * Nothing here depends on a particular backend.  A backend lists the configs of an instruction with their estimates,
 * and builds and runs one (like XLA's CodegenBackend).  This folder decides what is worth timing, in which order and
 * for how long, what is remembered, and what counts as faster. */
#ifndef AUTOTUNE_AUTOTUNE_H
#define AUTOTUNE_AUTOTUNE_H

#include "hlo/ir/ir.h"
#include "runtime/program/target.h"

enum { AUTOTUNE_MAX_CONFIGS = 64 }; /* how many configs of one problem are timed at most */

/* One way to compute a problem: an algorithm with its parameters. */
typedef struct autotune_config {
  /* such as "gemm:8x48": the algorithm, then a colon and its parameters; or only the algorithm, such as "kernel" */
  const char *name;
  double estimate; /* the expected nanoseconds; decides what is timed first, and what is taken if nothing is timed */
  double build;    /* the expected nanoseconds until the program has the code for it */
  double bytes;    /* bytes of packed weights and scratch memory if these may be large; otherwise 0 */
  bool idle;       /* whether some threads have no work; it wins over a better estimate only if it is clearly faster */
} autotune_config;

/* An instruction that can be computed by more than one config. */
typedef struct autotune_problem {
  const char *what; /* a description for people in one line without tabs, which is written to the log */
  rt_span identity; /* everything on which the measured times depend, except the machine; equal bytes mean equal
                       problems */
  /* a text that is equal for all problems that differ only in the number of rows; NULL if there can be no such problems
   */
  const char *similar;
  uint32_t n_configs;
  autotune_config *configs; /* sorted by estimate, the best first */
  void *data;               /* data of the backend */
} autotune_problem;

/* A config that is built and can be run.  The backend defines the structure. */
typedef struct autotune_trial autotune_trial;

typedef struct autotune_backend {
  void *data;
  uint64_t machine; /* a hash of everything that influences measured times and is the same for the whole module */
  uint32_t threads; /* the number of threads of a run */
  const rt_background *background; /* not NULL if programs of the caller may run while configs are timed */
  bool provisional;                /* rt_compile_options.provisional */
  /* Fills *out, on the arena, with the configs of the instruction.  If n_configs is 0, the instruction is not tuned. */
  status (*list_configs)(void *data, arena *a, const hlo_instr *i, autotune_problem *out);
  /* Finds by its name a config that list_configs did not list.  Returns false if the problem has no config of that
   * name. */
  bool (*find_config)(void *data, arena *a, const autotune_problem *p, const char *name, autotune_config *out);
  /* Fails if code for the target cannot run on this machine; the message says why. */
  status (*can_run)(void *data);
  /* Builds a program that computes nothing but the problem, by this config.  `shared` is an arena that lives as long as
   * all trials of the problem. */
  status (*build)(void *data, arena *shared, const autotune_problem *p, const char *config, autotune_trial **out);
  status (*run)(autotune_trial *t);
  void (*destroy)(autotune_trial *t);
} autotune_backend;

/* The config of an instruction and how it was chosen. */
typedef struct autotune_decision {
  hlo_instr *instr;
  const char *what;
  /* How the config was chosen: "timed", "log", "near" (taken from a problem with another number of rows), "estimate",
   * or "quick" (the least sum of the estimated times to build it and to run it a few times). */
  const char *how;
  const char *times; /* microseconds, such as "library:p4=123.40,kernel=400.10", after "disturbed," if other processes
                        used the cores; "" if nothing was timed */
} autotune_decision;

/* The result of autotune().  Its list and texts are on the arena that was passed to autotune(). */
typedef struct autotune_result {
  uint32_t n;
  autotune_decision *decisions;
  uint32_t n_timed;   /* the number of different problems that this call of autotune() has timed */
  uint32_t n_untimed; /* if this call could time nothing (RT_TUNE_KNOWN): the number of problems that RT_TUNE_FAST would
                         time or decide differently; otherwise 0 */
  const char *warning; /* what is wrong with the log, or why nothing is timed; NULL if there is nothing to tell */
} autotune_result;

/* Chooses a config for each instruction that the backend tunes and that has none yet, and writes it into the
 * instruction (hlo_instr.config).  Equal problems are timed once.  If log_path is NULL, nothing is remembered.  With
 * RT_TUNE_OFF this does nothing. */
STATUS_MUST_USE status autotune(arena *a, hlo_module *m, const autotune_backend *backend, rt_tune tune,
                                const char *log_path, autotune_result *out);

#endif
