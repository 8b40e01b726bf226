/* dynamic_m.h - kernels for any number of rows: a length that a session has not met yet needs no new code for them.
 *
 * Rows are the leading dimensions of an instruction's results, taken together, where each row of a result depends on
 * the same row of some operands and on all of the others: normalisations, element by element operations on them,
 * look-ups, products with weights.  Such an instruction is compiled for a number of rows that stands for any
 * (emit_options.rows), its leading dimensions made one. */
#ifndef BACKEND_CPU_KERNELS_DYNAMIC_M_H
#define BACKEND_CPU_KERNELS_DYNAMIC_M_H

#include "emit/kernel/kernel.h"
#include "emit/llvm/target.h"

/* Whether `i` is one of so many rows, at least two. */
bool cpu_has_leading_rows(arena *a, const hlo_instr *i, int64_t rows);

/* How many rows the kernel that emit_kernel makes of `i` has, if it is to be for any number of them; else 0. */
int64_t cpu_dynamic_m(arena *a, const hlo_instr *i, const emit_target *t);

/* Makes the rows of `alone`, the only instruction of its module beside parameters and constants (cpu_outline),
 * placeholder_m ones. */
void cpu_set_m(arena *a, hlo_instr *alone, int64_t rows, int64_t placeholder_m);

#endif
