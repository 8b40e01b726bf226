/* attention.h - fusions of kind attention: which the target takes, and their kernels (emit/contraction/attention.h). */
#ifndef BACKEND_CPU_ALGORITHMS_ATTENTION_H
#define BACKEND_CPU_ALGORITHMS_ATTENTION_H

#include "backend_cpu/algorithms/algorithm.h"

/* The kernel of a fusion of kind attention; false: it is none that emit/ has one for. */
bool cpu_attention_plan(arena *a, const hlo_instr *i, const emit_target *t, cpu_plan **out);

#endif
