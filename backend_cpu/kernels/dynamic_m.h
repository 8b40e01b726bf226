/* dynamic_m.h - kernels for any number of rows, so that a sequence length that a session has not met yet needs no new
 * code.
 *
 * Rows are the leading dimensions of an instruction's results, taken together, if each row of a result depends on the
 * same row of some operands and on all of the other operands: normalisations, elementwise operations on them, gathers,
 * products with weights.  Such an instruction is compiled with its leading dimensions merged into one of a placeholder
 * size, and the number of rows is an argument (emit_options.rows). */
#ifndef BACKEND_CPU_KERNELS_DYNAMIC_M_H
#define BACKEND_CPU_KERNELS_DYNAMIC_M_H

#include "emit/kernel/kernel.h"
#include "emit/llvm/target.h"

/* Returns true if the leading dimensions of the results of `i` are so many rows in this sense; there are at least
 * two. */
bool cpu_has_leading_rows(arena *a, const hlo_instr *i, int64_t rows);

/* Returns the number of rows of `i` if emit_kernel is to compile it for any number of rows, otherwise 0. */
int64_t cpu_dynamic_m(arena *a, const hlo_instr *i, const emit_target *t);

/* Changes `alone`, the only instruction of its module besides parameters and constants (cpu_outline), from `rows` to
 * placeholder_m rows. */
void cpu_set_m(arena *a, hlo_instr *alone, int64_t rows, int64_t placeholder_m);

#endif
