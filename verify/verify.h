/* verify.h - finds out whether a target computes a module as the reference evaluator does and, if not, what is the
 * cause.
 *
 * The program runs beside the reference evaluator (lockstep.h).  An instruction whose results differ is then compiled
 * alone, with other algorithms, and in a program where no result shares an operand's buffer; this tells a wrong kernel,
 * algorithm or buffer from each other.  Then the results of the module as it was imported are compared with those of
 * the module after all passes.  If they differ, the first application of a pass that changes them is found by
 * bisection. */
#ifndef VERIFY_VERIFY_H
#define VERIFY_VERIFY_H

#include "hlo/ir/ir.h"
#include "runtime/program/target.h"

typedef struct verify_options {
  const rt_backend *backend;
  rt_compile_options compile; /* the members dump, origins and eval are set by verify_module */
  rt_thread_pool *pool;       /* NULL means one thread */
  bool all_algorithms;        /* whether each contraction is checked with every algorithm */
  /* the folder for the smallest modules that show a finding, with their inputs; NULL if they are not written */
  const char *folder;
  uint64_t seed; /* the seed of a run for operators such as RandomNormal */
  /* Called with what is being done and the share of it that is done, from 0 to 1.  May be NULL. */
  void (*progress)(void *data, const char *what, double share);
  void *progress_data;
} verify_options;

typedef enum verify_cause {
  VERIFY_UNKNOWN,   /* right alone, and wrong in the program also if no result shares an operand's buffer */
  VERIFY_KERNEL,    /* wrong alone with every algorithm */
  VERIFY_ALGORITHM, /* wrong alone, but right with another algorithm */
  VERIFY_BUFFER,    /* right in a program where no result shares an operand's buffer */
  VERIFY_PASS       /* a pass changed what the module computes */
} verify_cause;

/* A module or model in a file, and its inputs in files of their own. */
typedef struct verify_example {
  const char *file; /* NULL if none was written */
  uint32_t n_inputs;
  const char **names, **inputs; /* the name of each input, and its file */
} verify_example;

/* One difference that was found, and its cause.  Texts are on the arena. */
typedef struct verify_finding {
  verify_cause cause;
  const char *node;        /* ONNX nodes that the instruction comes from; "" if that is not known */
  const char *instruction; /* a line of HLO; for VERIFY_PASS the output that differs */
  const char *thunk;       /* its label and kind; "" if there is none */
  const char *algorithm;   /* the thunk's note, which names the algorithm; "" if there is none */
  const char *difference;  /* made by verify_difference_text */
  const char *why;         /* the cause in a sentence */
  const char *stem;        /* what the names of its files begin with; NULL if there are none yet */
  verify_example module;   /* the smallest HLO module that shows the difference */
  /* the ONNX nodes, one string each, from which the module comes or, if there is no module, the instruction */
  uint32_t n_sources;
  const char **sources;
  verify_example model; /* a model of those nodes, which a caller that has the original model writes */
  /* whether that model shows the difference, or why there is none; NULL if the caller has no model */
  const char *model_note;
} verify_finding;

typedef struct verify_report {
  uint32_t n_instructions;          /* instructions that were compared, counted each time that they ran */
  uint32_t n_algorithms;            /* algorithms that were tried in addition to the chosen ones */
  uint32_t n_findings, n_different; /* n_different counts all differences; only the first few become findings */
  verify_finding *findings; /* in the order in which they occurred, so the first one is the one to look at first */
  double seconds_target, seconds_reference;
} verify_report;

/* A function that makes the module anew each time it is called, since compiling changes it. */
typedef status verify_import_fn(void *data, arena *a, hlo_module **out);

/* Verifies the module with these inputs, one for each parameter of its entry.  Fails if importing, compiling or running
 * fails; a difference is a finding and not a failure.  Must be called inside guard_run. */
STATUS_MUST_USE status verify_module(arena *a, verify_import_fn *import, void *import_data, const literal *inputs,
                                     const verify_options *o, verify_report *out);

#endif
