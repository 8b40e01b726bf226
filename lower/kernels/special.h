/* special.h - kernels of sorts, non-maximum suppression and the Mersenne twister (emit/kernel/special.h).
 *
 * On CPUs the kernel of a sort or a suppression divides its lines into at most `parts` parts, which are the steps of
 * its grid and have scratch memory of their own.  If `parts` is LOWER_BLOCKS, kernels of blocks of threads
 * (emit/blocks/) are written, whose grid consists of the lines. */
#ifndef LOWER_KERNELS_SPECIAL_H
#define LOWER_KERNELS_SPECIAL_H

#include "emit/kernel/special.h"
#include "lower/kernels/kernels.h"
#include "lower/lower.h"

enum { LOWER_BLOCKS = 0 };

/* Returns true if only sorts read the iota `i`, and only as positions in their lines, so that it need not be computed.
 */
bool lower_only_positions(const hlo_instr *i);
/* Returns how a sort is written: which elements are wanted, and which operand is not read. */
emit_sort lower_sort_config(const hlo_instr *sort, int64_t parts);
/* Returns the bytes of scratch memory that the kernels of `i` need. */
dim lower_special_scratch(const hlo_instr *i, int64_t parts);
/* Appends the thunks of the kernels of `i`, for which emit_is_special is true. */
STATUS_MUST_USE status lower_special_kernels(lower_context *c, lower_kernels *kernels, const hlo_instr *i,
                                             int64_t parts);

#endif
