/* dynamic_m.h - kernels for any number of rows (dynamic M), so that no new code is needed for a sequence length that a
 * session has not seen before.
 *
 * The leading dimensions of an instruction's results, merged into one, are its rows if each row of a result depends
 * only on the same row of some operands and on the other operands as a whole.  This is so for normalisations,
 * elementwise operations, gathers, and products with weights.  Such an instruction is compiled with its leading
 * dimensions merged into one of a placeholder size, and the number of rows is an argument (emit_options.rows). */
#ifndef LOWER_KERNELS_DYNAMIC_M_H
#define LOWER_KERNELS_DYNAMIC_M_H

#include "emit/kernel/kernel.h"
#include "emit/llvm/target.h"

/* Returns true if the leading dimensions of the results of `i`, merged, are `rows` rows in the sense above, and `rows`
 * is at least two. */
bool lower_has_leading_rows(arena *a, const hlo_instr *i, int64_t rows);

/* Returns the number of rows of `i` if emit_kernel should compile it for any number of rows, otherwise 0. */
int64_t lower_dynamic_m(arena *a, const hlo_instr *i, const emit_target *t);

/* Changes `alone`, the only instruction of its module besides parameters and constants (lower_outline), from `rows` to
 * placeholder_m rows. */
void lower_set_m(arena *a, hlo_instr *alone, int64_t rows, int64_t placeholder_m);

#endif
