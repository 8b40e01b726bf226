/* tile_geometry.h - a dot or convolution as a product of two matrices for each member of a batch, of which blocks of
 * threads compute tiles.
 *
 * The columns are the dimensions of the result of which the innermost is one, so that neighbouring threads store
 * neighbouring elements: for a convolution of channels-first images they are the pixels.  The sums run over the
 * contracted dimensions, or over the channels and taps of a convolution (implicit GEMM).  Rows, columns, sums and batch
 * are each counted by one number, and every factor is read as the element emitter reads it, so operands may have any
 * layout, may be computed, and need no padded or rearranged copy. */
#ifndef EMIT_BLOCKS_TILE_GEOMETRY_H
#define EMIT_BLOCKS_TILE_GEOMETRY_H

#include "emit/kernel/writer.h"

/* Some dimensions of the contraction's result, or of the space over which is summed, as one. */
typedef struct emit_tile_group {
  int n, of[SHAPE_MAX_RANK];
  dim extents[SHAPE_MAX_RANK];
  dim total;
} emit_tile_group;

typedef struct emit_tile_geometry {
  const hlo_instr *c;   /* the contraction */
  uint32_t row_operand; /* the operand that has the rows; the other one has the columns */
  emit_tile_group rows, columns, batch;
  /* A convolution of several groups has no dimension for them: they are the batch, and `channel`, the only dimension of
   * rows or of columns, counts the channels of one group.  -1: there is one group. */
  int channel;
  emit_tile_group sums; /* the space over which is summed (emit_contracted_extents); `of` is not used */
} emit_tile_geometry;

/* Returns true if the contraction of `i` (emit_contraction_of) has this geometry. */
bool emit_has_tile_geometry(const hlo_instr *i);
/* Sets the geometry of the contraction c. */
emit_tile_geometry emit_tile_geometry_of(const hlo_instr *c);

/* Returns true if neighbouring sums, not neighbouring rows or columns, are next to each other in the operand. */
bool emit_has_sums_innermost(const hlo_instr *c, uint32_t operand);

/* Returns how many neighbouring sums, or positions of a row or column, lie next to each other in the operand: those
 * from a multiple of that number on, which is known when the code is written.  1: none are known to. */
int64_t emit_neighbouring_sums(const emit_tile_geometry *g, uint32_t operand);
int64_t emit_neighbouring_positions(const emit_tile_geometry *g, uint32_t operand);

/* Returns the index of the contraction's result at a row and a column of a member of the batch. */
emit_index *emit_tile_index(emit_indexer *x, const emit_tile_geometry *g, LLVMValueRef batch, LLVMValueRef row,
                            LLVMValueRef column);

/* Returns p, or the last position before n if p is not less.  p is less than n rounded up to a multiple of `step`. */
LLVMValueRef emit_within(const emit_indexer *x, LLVMValueRef p, dim n, int64_t step);

/* Returns the factors that an operand contributes to sums `sum` of rows `position`, if it has the rows, or of columns,
 * in the type of the sums, in e->x.lanes lanes.  All numbers must be in range. */
LLVMValueRef emit_tile_factor(emit_element *e, const emit_tile_geometry *g, uint32_t operand, LLVMValueRef batch,
                              emit_pos position, emit_pos sum);

/* Returns the address of the factor, if the operand is loaded and has neighbouring ones. */
LLVMValueRef emit_tile_factor_address(emit_element *e, const emit_tile_geometry *g, uint32_t operand,
                                      LLVMValueRef batch, LLVMValueRef position, LLVMValueRef sum);

/* Factors that are copied to shared memory as they are, EMIT_TILE_COPY bytes at a time (emit_copy_begin). */
enum { EMIT_TILE_COPY = 16 };
/* Returns true if factors of `type` can be copied: the operand is loaded, is not converted and not overwritten, and so
 * many bytes lie next to each other.  Sets *across to whether these are neighbouring rows or columns, of one sum, and
 * not neighbouring sums. */
bool emit_has_tile_copies(const emit_element *e, const emit_tile_geometry *g, uint32_t operand, dtype type,
                          bool *across);
/* Begins a copy of the factors from sum `sum` of row or column `position` on, which may be beyond the end, to the
 * address `to`.  Positions beyond the end are replaced by the last ones, so that nothing outside of an array is read;
 * factors of sums beyond the end become zeros. */
void emit_tile_copy_begin(emit_writer *w, const emit_tile_geometry *g, uint32_t operand, bool across,
                          LLVMValueRef batch, LLVMValueRef position, LLVMValueRef sum, LLVMValueRef to);

/* Stores the results of the kernel at a row and a column, unless they are beyond the end.  Their sum is given in the
 * type in which sums are computed. */
void emit_store_tile_element(emit_writer *w, const emit_tile_geometry *g, LLVMValueRef batch, LLVMValueRef row,
                             LLVMValueRef column, LLVMValueRef sum);

/* Returns an i1: whether the row and the column are ones of the result. */
LLVMValueRef emit_is_in_result(const emit_indexer *x, const emit_tile_geometry *g, LLVMValueRef row,
                               LLVMValueRef column);

/* The tiles of the result, as the steps of the grid: those of a row of tiles follow each other. */
typedef struct emit_tile_step {
  LLVMValueRef batch, row, column; /* the numbers of the member of the batch, and of the tile in both directions */
  LLVMValueRef part;               /* the number of the part of the sums (sum_parts.h) */
  LLVMValueRef tile;               /* the number of the tile among those of all members of the batch */
} emit_tile_step;
/* Returns the number of tiles of so many rows and columns. */
dim emit_count_tiles(dim_table *t, const emit_tile_geometry *g, int64_t rows, int64_t columns);
/* Divides the number of the step that the block computes, and sets the grid, for tiles of so many rows and columns, and
 * so many parts. */
emit_tile_step emit_tile_step_of(emit_writer *w, const emit_tile_geometry *g, int64_t rows, int64_t columns,
                                 int64_t parts);

#endif
