/* special.h - lowers sorts, non-maximum suppressions and the Mersenne twister (emit_is_special) to thunks of the
 * runtime, or to kernels if the program must consist of kernels only. */
#ifndef BACKEND_CPU_LOWER_SPECIAL_H
#define BACKEND_CPU_LOWER_SPECIAL_H

#include "backend_cpu/lower/lower.h"
#include "lower/lower.h"

/* Returns the bytes of scratch memory that `i` needs. */
dim cpu_special_scratch(const cpu_lower_options *o, const hlo_instr *i);
/* Appends the thunks of `i`; kernels are added to `kernels`. */
STATUS_MUST_USE status cpu_lower_special(lower_context *c, const cpu_lower_options *o, lower_kernels *kernels,
                                         const hlo_instr *i);

#endif
