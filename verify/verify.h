/* verify.h - finds out whether a target computes a module as the reference evaluator does and, if not, what the cause
 * is.
 *
 * The program runs in lockstep with the reference evaluator (lockstep.h).  An instruction whose results differ is then
 * compiled alone, compiled with other algorithms, and run in a program where no result shares an operand's buffer.
 * This tells whether its kernel, its algorithm or a buffer is wrong.  Then the results of the program are compared with
 * those of the module as it was imported, which the reference evaluator computes.  If they differ, the first
 * application of a pass that changes them is found by bisection. */
#ifndef VERIFY_VERIFY_H
#define VERIFY_VERIFY_H

#include "hlo/ir/ir.h"
#include "runtime/program/target.h"

typedef struct verify_options {
  const rt_backend *backend;
  rt_compile_options compile; /* verify_module itself sets the members eval, origins, sharing and keep_text; for some
                                 of its experiments also algorithm, tune, out_of_place and dump */
  rt_thread_pool *pool;       /* NULL means one thread */
  bool all_algorithms;        /* whether to check each contraction alone with every algorithm */
  /* the folder for files with the smallest modules that show a finding, and their inputs; NULL: no files are written */
  const char *folder;
  uint64_t seed; /* the seed of runs, for operators such as RandomNormal */
  /* Called with a description of the current step, and the share of that step that is done, from 0 to 1.  May be
   * NULL. */
  void (*progress)(void *data, const char *what, double share);
  void *progress_data;
} verify_options;

typedef enum verify_cause {
  /* the instruction is right if compiled alone, but wrong in the program even if no result shares an operand's buffer;
   * or the results of control flow are not those of its body */
  VERIFY_UNKNOWN,
  VERIFY_KERNEL,    /* the instruction is wrong if compiled alone, with every algorithm */
  VERIFY_ALGORITHM, /* the instruction is wrong if compiled alone, but right with another algorithm */
  VERIFY_BUFFER,    /* the instruction is right in a program where no result shares an operand's buffer */
  VERIFY_PASS       /* a pass changed what the module computes */
} verify_cause;

/* A file with a module or model, and files with its inputs. */
typedef struct verify_example {
  const char *file; /* NULL if none was written */
  uint32_t n_inputs;
  const char **names, **inputs; /* the name of each input, and its file */
} verify_example;

/* A difference that was found, and its cause.  Texts are on the arena. */
typedef struct verify_finding {
  verify_cause cause;
  const char *node;        /* the ONNX nodes that the instruction comes from; "" if they are not known */
  const char *instruction; /* the instruction as a line of HLO; for VERIFY_PASS the output that differs */
  const char *thunk;       /* the label and kind of the thunk; "" if there is none */
  const char *algorithm;   /* the note of the thunk, which names the algorithm; "" if there is none */
  const char *difference;  /* made by verify_difference_text; "" for an algorithm that the program does not use */
  const char *why;         /* the cause in a sentence */
  const char *stem;        /* the beginning of the names of the finding's files; NULL if it has no files yet */
  verify_example module;   /* the smallest HLO module that shows the difference */
  /* the ONNX nodes, one string each, from which the module comes; if there is no module, those of the instruction */
  uint32_t n_sources;
  const char **sources;
  verify_example model; /* a model of those nodes; a caller that has the original model writes it */
  /* whether `model` shows the difference, or why no model was made; NULL if the caller has no model */
  const char *model_note;
} verify_finding;

typedef struct verify_report {
  /* the number of comparisons: an instruction in a loop counts each time that it runs */
  uint32_t n_instructions;
  uint32_t n_algorithms; /* with all_algorithms: how many configs of contractions were tried alone, the chosen ones
                            included, but not those that the backend cannot build */
  uint32_t n_findings, n_different; /* n_different counts all differences; only the first few become findings */
  /* in the order in which the instructions ran, so the first finding is the one to look at first */
  verify_finding *findings;
  double seconds_target, seconds_reference;
} verify_report;

/* A function that makes the module anew each time it is called, which is necessary since compiling changes a module. */
typedef status verify_import_fn(void *data, arena *a, hlo_module **out);

/* Verifies the module with these inputs, one for each parameter of its entry.  Fails if importing, compiling or running
 * fails; a difference is a finding and not a failure.  Must be called inside guard_run. */
STATUS_MUST_USE status verify_module(arena *a, verify_import_fn *import, void *import_data, const literal *inputs,
                                     const verify_options *o, verify_report *out);

#endif
