/* tile_geometry.h - a dot or convolution as a product of two matrices for each member of a batch.  Blocks of threads
 * compute tiles of these products.
 *
 * The result's innermost dimension is one of those that are counted as columns, so that neighbouring threads store
 * neighbouring elements: for a convolution of channels-first images the columns are the pixels.  Each element of the
 * result is a sum over the contracted dimensions, or over the channels and taps of a convolution (implicit GEMM); a
 * position in the space of these dimensions is called `sum` here.  Rows, columns, positions in a sum and members of the
 * batch are each counted by one number.  Factors are read by the element emitter, so operands may have any layout, may
 * be computed, and need no padded or rearranged copy. */
#ifndef EMIT_BLOCKS_TILE_GEOMETRY_H
#define EMIT_BLOCKS_TILE_GEOMETRY_H

#include "emit/kernel/writer.h"

/* Some dimensions (`of`) of the contraction's result, or of the space that sums run over; a number in [0, total) counts
 * the positions along all of them. */
typedef struct emit_tile_group {
  int n, of[SHAPE_MAX_RANK];
  dim extents[SHAPE_MAX_RANK];
  dim total;
} emit_tile_group;

typedef struct emit_tile_geometry {
  const hlo_instr *c;   /* the contraction */
  uint32_t row_operand; /* the operand that has the rows; the other one has the columns */
  emit_tile_group rows, columns, batch;
  /* The result of a convolution has no dimension for its groups.  If there are several, the groups are the members of
   * the batch, and `channel` is the dimension of the result that counts channels; it alone makes up the rows or the
   * columns, which are counted within one group.  -1 means that there is one group. */
  int channel;
  emit_tile_group sums; /* the space that sums run over (emit_contracted_extents); `of` is not used */
} emit_tile_geometry;

/* Returns true if the contraction of `i` (emit_contraction_of) has this geometry. */
bool emit_has_tile_geometry(const hlo_instr *i);
/* Sets the geometry of the contraction c. */
emit_tile_geometry emit_tile_geometry_of(const hlo_instr *c);

/* Returns true if the operand's innermost dimension is one that sums run over, and not one of its rows or columns. */
bool emit_has_sums_innermost(const hlo_instr *c, uint32_t operand);

/* Return how many neighbouring factors are known to be contiguous in the operand, the first of which is at a multiple
 * of that number: factors along the sum, or along the operand's rows or columns.  1 means that none are known to be
 * contiguous. */
int64_t emit_neighbouring_sums(const emit_tile_geometry *g, uint32_t operand);
int64_t emit_neighbouring_positions(const emit_tile_geometry *g, uint32_t operand);

/* Returns the index of the contraction's result at a row and a column of a member of the batch. */
emit_index *emit_tile_index(emit_indexer *x, const emit_tile_geometry *g, LLVMValueRef batch, LLVMValueRef row,
                            LLVMValueRef column);

/* Returns p, or n - 1 if p is not less than n.  p must be less than n rounded up to a multiple of `step`. */
LLVMValueRef emit_within(const emit_indexer *x, LLVMValueRef p, dim n, int64_t step);

/* Returns, in e->x.lanes lanes and in the type of the sums, an operand's factors at the positions `sum`. `position` is
 * the number of the row if the operand has the rows, otherwise of the column.  All numbers must be in range. */
LLVMValueRef emit_tile_factor(emit_element *e, const emit_tile_geometry *g, uint32_t operand, LLVMValueRef batch,
                              emit_pos position, emit_pos sum);

/* Returns the address of the factor that emit_tile_factor returns for one lane.  The operand must be an input that is
 * loaded, and not the image of a convolution. */
LLVMValueRef emit_tile_factor_address(emit_element *e, const emit_tile_geometry *g, uint32_t operand,
                                      LLVMValueRef batch, LLVMValueRef position, LLVMValueRef sum);

/* Factors that are copied to shared memory as they are, EMIT_TILE_COPY bytes at a time (emit_copy_begin). */
enum { EMIT_TILE_COPY = 16 };
/* Returns true if factors of `type` can be copied: the target has copies, the operand is loaded, is not converted and
 * not overwritten, and EMIT_TILE_COPY bytes of factors lie next to each other.  Sets *across to whether these belong to
 * neighbouring rows or columns, at one position in the sum; otherwise they belong to one row or column. */
bool emit_has_tile_copies(const emit_element *e, const emit_tile_geometry *g, uint32_t operand, dtype type,
                          bool *across);
/* Begins a copy of the factors from position `sum` in the sum of row or column `position` on to the address `to`. Rows,
 * columns and positions in the sum that are beyond the end are replaced by the last ones, so that nothing outside of an
 * array is read; factors beyond the end of the sum become zeros. */
void emit_tile_copy_begin(emit_writer *w, const emit_tile_geometry *g, uint32_t operand, bool across,
                          LLVMValueRef batch, LLVMValueRef position, LLVMValueRef sum, LLVMValueRef to);

/* Stores the results of the kernel at a row and a column, unless these are beyond the end. `sum` is the contraction's
 * element there, in the type in which sums are computed. */
void emit_store_tile_element(emit_writer *w, const emit_tile_geometry *g, LLVMValueRef batch, LLVMValueRef row,
                             LLVMValueRef column, LLVMValueRef sum);

/* Returns an i1 that is true if the row and the column are in the result. */
LLVMValueRef emit_is_in_result(const emit_indexer *x, const emit_tile_geometry *g, LLVMValueRef row,
                               LLVMValueRef column);

/* The tile of the result that a step of the grid computes.  The steps of one row of tiles follow each other. */
typedef struct emit_tile_step {
  LLVMValueRef batch, row, column; /* the number of the batch's member; the tile's numbers along rows and columns */
  LLVMValueRef part;               /* the number of the part of the sums (sum_parts.h) */
  LLVMValueRef tile;               /* the number of the tile among those of all members of the batch */
} emit_tile_step;
/* Returns the number of tiles of `rows` rows and `columns` columns, of all members of the batch together. */
dim emit_count_tiles(dim_table *t, const emit_tile_geometry *g, int64_t rows, int64_t columns);
/* Returns the tile of the step that the block computes, and sets the grid, for tiles of `rows` rows and `columns`
 * columns whose sums are divided into `parts` parts. */
emit_tile_step emit_tile_step_of(emit_writer *w, const emit_tile_geometry *g, int64_t rows, int64_t columns,
                                 int64_t parts);

#endif
