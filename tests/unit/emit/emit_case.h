/* emit_case.h - runs kernels of one contraction, which a function of emit/ writes, and compares them with the
 * reference evaluator.  Arrays end right before protected memory, and the grid is divided into ranges of random size.
 */
#ifndef TESTS_UNIT_EMIT_EMIT_CASE_H
#define TESTS_UNIT_EMIT_EMIT_CASE_H

#include "emit/kernel/compile.h"
#include "tests/unit/emit/kernel_test.h"

typedef struct emit_case {
  const char *x, *w, *attributes, *y; /* shapes; a convolution if the attributes have strides, otherwise a dot */
  const char *epilogue; /* instructions from %3 to %9; may read %2, of shape `more`.  NULL: none, and no fusion */
  const char *more;
  double tolerance; /* relative to the largest result */
} emit_case;

#define EMIT_CASE_BIAS(y, d) "%4 = broadcast(%2) {dimensions=[" #d "]} : " y "\n%9 = add(%3, %4) : " y "\n"

/* Returns the dot or convolution of the case, or the fusion around it. */
hlo_instr *emit_case_parse(arena *a, const emit_case *c);

/* How the kernel of a case is written. */
typedef struct emit_way {
  const char *name; /* for messages */
  emit_write_fn *write;
  const void *config;
  uint32_t phases;
  uint64_t packed_bytes, scratch_bytes; /* if packed_bytes is 0, weights are not packed */
  void (*pack)(const void *config, const void *weights, void *packed);
} emit_way;

/* Fails the test unless the kernel computes what the reference does, within the case's tolerance. */
void emit_case_check(arena *a, const emit_case *c, const hlo_instr *i, const emit_target *t, const emit_way *way);

#endif
