/* sum_parts.h - products in tiles whose sums are divided among blocks (split-k): few tiles with long sums would leave
 * most of a GPU's processors without work.
 *
 * The sum of each element of the result is divided into the same number of parts.  There is a block for each tile and
 * part; it adds up this part of the sums of the tile's elements, and stores it in scratch memory.  The block of a tile
 * that is done last adds the parts of each element in their order, and stores the results.  So a sum depends on the
 * number of parts and on the sizes, never on which block is done last.  Each tile has a counter, by which its blocks
 * find out which one of them is the last. */
#ifndef EMIT_BLOCKS_SUM_PARTS_H
#define EMIT_BLOCKS_SUM_PARTS_H

#include "emit/blocks/tile_geometry.h"
#include "emit/kernel/compile.h"

enum { EMIT_MOST_PARTS = 32 };

/* The number of buffers that a kernel has after the results if sums are divided: scratch memory for the parts, and the
 * tiles' counters, s32, which are 0 before and after a launch. */
enum { EMIT_PARTS_BUFFERS = 2 };
/* Return the address of the scratch memory, and that of the counter of tile number `tile`. */
LLVMValueRef emit_parts_memory(const emit_writer *w);
LLVMValueRef emit_parts_counter(const emit_writer *w, LLVMValueRef tile);

/* How many blocks keep a GPU busy.  This is an estimate, which was not measured. */
enum { EMIT_ENOUGH_BLOCKS = 64 };

/* Returns the number of parts into which sums should be divided where `blocks` blocks would compute whole sums of
 * `sums` products; 1 means that they should stay whole. */
int64_t emit_choose_parts(double blocks, double sums);

/* Returns the bytes of scratch memory for the parts of the contraction of `i`. */
dim emit_parts_scratch(const hlo_instr *i, int64_t parts);

/* The positions [from, past) in the sum that belong to a part.  There are none if `from` is not before `past`. */
typedef struct emit_sum_part {
  LLVMValueRef from, past;
} emit_sum_part;
/* Returns those of `total` positions that belong to part number `part`.  They begin at a multiple of `step`. */
emit_sum_part emit_part_of(const emit_indexer *x, dim total, LLVMValueRef part, int64_t parts, int64_t step);

/* Stores a part of the sum of the result's element at a row and a column in scratch memory, unless the row or column is
 * beyond the end. */
void emit_store_part(emit_writer *w, const emit_tile_geometry *g, const emit_tile_step *step, LLVMValueRef row,
                     LLVMValueRef column, LLVMValueRef sum);

/* Writes what the block does after it has stored its part of a tile of `rows` rows and `columns` columns: if it is the
 * last block of the tile, its threads add the parts, and store the results. */
void emit_join_parts(emit_writer *w, const emit_tile_geometry *g, const emit_tile_step *step, int64_t rows,
                     int64_t columns, int64_t parts);

#endif
