/* attention.h - the kernel of a fusion of kind attention (emit/contraction/attention.h). */
#ifndef BACKEND_CPU_ALGORITHMS_ATTENTION_H
#define BACKEND_CPU_ALGORITHMS_ATTENTION_H

#include "backend_cpu/algorithms/algorithm.h"

/* Makes the plan of a fusion of kind attention.  Returns false if emit/ has no kernel for it. */
bool cpu_attention_plan(arena *a, const hlo_instr *i, const emit_target *t, cpu_plan **out);

#endif
