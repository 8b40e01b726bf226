/* block_sort.h - stable sorts by blocks of threads. */
#ifndef EMIT_BLOCKS_BLOCK_SORT_H
#define EMIT_BLOCKS_BLOCK_SORT_H

#include "emit/kernel/compile.h"
#include "emit/kernel/special.h"

/* The first writes kernels that together compute what the one kernel of emit_sort_kernel computes.  The config is an
 * emit_sort, whose `parts` are not used.  The others return the number of kernels (phases), and the bytes of their
 * scratch memory. */
emit_write_fn emit_block_sort_kernel;
uint32_t emit_block_sort_phases(const hlo_instr *i, const emit_sort *s);
dim emit_block_sort_scratch(const hlo_instr *i, const emit_sort *s);

#endif
