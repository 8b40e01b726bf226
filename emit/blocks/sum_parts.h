/* sum_parts.h - products in tiles whose sums are divided among blocks (split-k): few tiles with long sums would leave
 * most of a GPU's processors without work.
 *
 * The sums of each element are divided into equally many parts.  There is a block for each tile and part, which stores
 * its part of the elements' sums in scratch memory.  The block of a tile that is done last adds the parts of each
 * element in their order, and goes on with what follows.  So a sum depends on the number of parts and on the sizes,
 * never on which block is done last.  Each tile has a counter, by which blocks find out which one of them that is. */
#ifndef EMIT_BLOCKS_SUM_PARTS_H
#define EMIT_BLOCKS_SUM_PARTS_H

#include "emit/blocks/tile_geometry.h"
#include "emit/kernel/compile.h"

enum { EMIT_MOST_PARTS = 32 };

/* How many buffers a kernel has behind the results if sums are divided: scratch memory for the parts, and the tiles'
 * counters, s32, which are 0 before and after a launch. */
enum { EMIT_PARTS_BUFFERS = 2 };

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

/* Stores a part of the sum of the result's element at a row and a column in scratch memory, unless they are beyond the
 * end. */
void emit_store_part(emit_writer *w, const emit_tile_geometry *g, const emit_tile_step *step, LLVMValueRef row,
                     LLVMValueRef column, LLVMValueRef sum);

/* Writes what the block does after it has stored its part of a tile of so many rows and columns: if it is the last one
 * of the tile, its threads add the parts, and store the results. */
void emit_join_parts(emit_writer *w, const emit_tile_geometry *g, const emit_tile_step *step, int64_t rows,
                     int64_t columns, int64_t parts);

#endif
