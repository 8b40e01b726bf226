/* sum_parts.h - products in tiles whose sums are divided among blocks (split-k): few tiles with long sums would leave
 * most of a GPU's processors without work.
 *
 * The sums of each element are divided into equally many parts.  A first kernel has a block for each tile and part, and
 * stores the parts of the elements' sums in scratch memory.  A second one adds the parts of each element in their order
 * and goes on with what follows.  So a sum depends on the number of parts and on the sizes, never on which block is
 * done first. */
#ifndef EMIT_BLOCKS_SUM_PARTS_H
#define EMIT_BLOCKS_SUM_PARTS_H

#include "emit/blocks/tile_geometry.h"
#include "emit/kernel/compile.h"

enum { EMIT_MOST_PARTS = 32 };

/* Returns the number of parts that should be used where `blocks` blocks compute whole sums of `sums` products; 1: they
 * should stay whole. */
int64_t emit_choose_parts(double blocks, double sums);

/* Returns the bytes of scratch memory for the parts of the contraction of `i`. */
dim emit_parts_scratch(const hlo_instr *i, int64_t parts);

/* The sums [from, past) of a part; there may be none. */
typedef struct emit_sum_part {
  LLVMValueRef from, past;
} emit_sum_part;
/* Returns those of part number `part`, which begin at a multiple of `step`. */
emit_sum_part emit_sums_of_part(const emit_writer *w, const emit_tile_geometry *g, LLVMValueRef part, int64_t parts,
                                int64_t step);

/* Stores a part of the sum of the result's element at a row and a column in scratch memory, which is the buffer behind
 * the results, unless they are beyond the end. */
void emit_store_part(emit_writer *w, const emit_tile_geometry *g, LLVMValueRef batch, LLVMValueRef part,
                     LLVMValueRef row, LLVMValueRef column, LLVMValueRef sum);

/* Writes the second kernel. */
STATUS_MUST_USE status emit_join_parts(emit_module *m, const char *name, const hlo_instr *i,
                                       const emit_options *options, int64_t parts, emit_kernel_info *info);

#endif
