/* verify.h - finds out whether a target computes a module as the reference evaluator does, and if not, which
 * decision is to blame.
 *
 * The program runs beside the reference evaluator (lockstep.h).  What differs is then tried alone, with other
 * algorithms, and with no result written over an operand, so that a finding says whether a kernel, an
 * algorithm or a buffer is wrong.  After that the results of the module as it was imported are compared with
 * those of the module that the passes left; where these differ, the first application of a pass that changes
 * them is searched for by halving. */
#ifndef VERIFY_VERIFY_H
#define VERIFY_VERIFY_H

#include "hlo/ir/ir.h"
#include "runtime/program/target.h"

typedef struct verify_options {
  const rt_backend *backend;
  rt_compile_options compile; /* dump, origins and eval are verify's own */
  rt_thread_pool *pool;       /* NULL means one thread */
  bool all_algorithms;        /* each contraction is computed in all the ways that there are */
  const char *folder;         /* where the smallest modules that show a finding are written, with their inputs; NULL:
                                 nowhere */
  uint64_t seed;              /* of random operators */
  /* Called with what is being done and how much of it is done, from 0 to 1.  May be NULL. */
  void (*progress)(void *data, const char *what, double share);
  void *progress_data;
} verify_options;

typedef enum verify_cause {
  VERIFY_UNKNOWN,   /* it is right alone, and wrong in the program wherever results lie */
  VERIFY_KERNEL,    /* it is wrong alone, whatever the algorithm */
  VERIFY_ALGORITHM, /* it is wrong alone, and right with another algorithm */
  VERIFY_BUFFER,    /* it is right where no result lies over an operand */
  VERIFY_PASS       /* a pass changed what the module computes */
} verify_cause;

/* A module or model in a file, and its inputs in files of their own. */
typedef struct verify_example {
  const char *file; /* NULL if there is none was written */
  uint32_t n_inputs;
  const char **names, **inputs; /* of each input, and of its file */
} verify_example;

/* Texts are on the arena. */
typedef struct verify_finding {
  verify_cause cause;
  const char *node;        /* ONNX nodes that the instruction comes from; "" if that is not known */
  const char *instruction; /* HLO, one line; of VERIFY_PASS: the output */
  const char *thunk;       /* its label and kind; "" if there is none */
  const char *algorithm;   /* the thunk's note: which way it is computed; "" */
  const char *difference;  /* as verify_difference_text puts it */
  const char *why;         /* the cause in a sentence */
  const char *stem;        /* of the names of its files; NULL if there are none yet */
  verify_example module;   /* the smallest HLO that shows it */
  uint32_t n_sources;      /* ONNX nodes, each by itself, that the module comes from, or else the instruction */
  const char **sources;
  verify_example model;   /* those nodes; a caller who has the model writes it */
  const char *model_note; /* whether the model shows it, or why there is none; NULL means the caller has no model */
} verify_finding;

typedef struct verify_report {
  uint32_t n_instructions;          /* compared, each time that they ran */
  uint32_t n_algorithms;            /* tried beside those that were chosen */
  uint32_t n_findings, n_different; /* findings are the first few of all that differ */
  verify_finding *findings;         /* in the order in which they came up: the first one is where to begin */
  double seconds_target, seconds_reference;
} verify_report;

/* Makes the module anew each time that it is called, since compiling changes it. */
typedef status verify_import_fn(void *data, arena *a, hlo_module **out);

/* Verifies the module with these inputs, one a parameter of its entry.  A failure is one of importing,
 * compiling or running; what differs is no failure.  Call it inside guard_run. */
STATUS_MUST_USE status verify_module(arena *a, verify_import_fn *import, void *import_data, const literal *inputs,
                                     const verify_options *o, verify_report *out);

#endif
