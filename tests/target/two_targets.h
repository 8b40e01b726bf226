/* two_targets.h - the same HLO on the cpu target, compiled for processors with more and with fewer features. */
#ifndef TESTS_TARGET_TWO_TARGETS_H
#define TESTS_TARGET_TWO_TARGETS_H

#include "base/tensor/literal.h"
#include "hlo/ir/ir.h"
#include "runtime/program/program.h"

typedef struct variant {
  const char *name, *cpu;
  uint32_t lanes, threads;
  bool folds; /* whether instructions that depend on constants only are folded, so that weights computed from iotas are
                 packed */
  bool own_kernels; /* the program calls no library and no function of the runtime */
  bool deterministic;
} variant;

enum { N_VARIANTS = 8 };
extern const variant variants[N_VARIANTS];

/* Returns true if all thunks are of kinds that a program with rt_compile_options.own_kernels may have. */
bool is_of_own_kernels(const rt_sequence *s);

/* Compiles m and runs it three times in the same memory.  Sets out[k] to result k. */
STATUS_MUST_USE status run_on_cpu(arena *a, hlo_module *m, const variant *v, const literal *in, literal *out);

#endif
