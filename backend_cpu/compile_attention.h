/* compile_attention.h - fusions of kind attention: which the target takes, and their kernels (emit/attention.h). */
#ifndef BACKEND_CPU_COMPILE_ATTENTION_H
#define BACKEND_CPU_COMPILE_ATTENTION_H

#include "backend_cpu/compile_algorithm.h"

/* The kernel of a fusion of kind attention; false: it is none that emit/ has one for. */
bool cpu_attention_plan(arena *a, const hlo_instr *i, const emit_target *t, cpu_plan **out);

#endif
