/* attention.h - the kernel of a fusion of kind attention: that of emit/contraction/attention.h if all sizes are
 * constants, otherwise that of emit/contraction/flash_attention.h. */
#ifndef BACKEND_CPU_ALGORITHMS_ATTENTION_H
#define BACKEND_CPU_ALGORITHMS_ATTENTION_H

#include "backend_cpu/algorithms/algorithm.h"
#include "hlo/analysis/attention.h"

/* Returns true if emit/ has a kernel for the attention. */
bool cpu_takes_attention(const hlo_attention *a, const emit_target *t);

/* Makes the plan of a fusion of kind attention.  Returns false if emit/ has no kernel for it. */
bool cpu_attention_plan(arena *a, const hlo_instr *i, const emit_target *t, cpu_plan **out);

#endif
