/* two_targets.h - the same HLO on the cpu target, compiled for processors with more and with fewer features. */
#ifndef TESTS_TARGET_TWO_TARGETS_H
#define TESTS_TARGET_TWO_TARGETS_H

#include "base/tensor/literal.h"
#include "hlo/ir/ir.h"

typedef struct variant {
  const char *name, *cpu;
  uint32_t lanes, threads;
  bool folds; /* what depends on constants only, so that weights made of iotas are packed */
} variant;

enum { N_VARIANTS = 6 };
extern const variant variants[N_VARIANTS];

/* Compiles m and runs it twice in the same memory; out has room for its results. */
STATUS_MUST_USE status run_on_cpu(arena *a, hlo_module *m, const variant *v, const literal *in, literal *out);

#endif
