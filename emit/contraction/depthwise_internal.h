/* depthwise_internal.h - declarations for the files that write depthwise.h's kernels: sums of products of a tile, and
 * the function that computes rows of the result whose length is an argument.  For the files depthwise*.c and
 * precompiled.c only. */
#ifndef EMIT_CONTRACTION_DEPTHWISE_INTERNAL_H
#define EMIT_CONTRACTION_DEPTHWISE_INTERNAL_H

#include "emit/contraction/depthwise.h"
#include "emit/llvm/function.h"
#include "emit/product/gemm.h"
#include "emit/product/shared_kernel.h"

enum { DEPTHWISE_MOST_TAPS = 64 }; /* the most taps along a dimension */

/* --- sums of products --- */

/* What the code of a tile's sums depends on, besides the tile's width. */
typedef struct depthwise_code {
  dtype type, input; /* as in emit_depthwise */
  int64_t group, multiplier;
  int64_t taps, stride, dilation; /* those along a row */
  int64_t row_dilation;           /* the distance of two rows of taps in rows of the input */
  int lanes, vectors;
} depthwise_code;

/* A tile whose sums are written: `code.vectors` vectors of channels by `width` positions of a row of the result. */
typedef struct depthwise_tile {
  /* `line` is the address of the input element that the tile's first position reads with the first tap of row 0 of the
   * taps (it may be padding); `taps` is the address of the weights. */
  LLVMValueRef line, taps;
  LLVMValueRef channel[EMIT_GEMM_VECTORS]; /* the first channel of each vector */
  LLVMValueRef channels, in_channels;      /* i64: the numbers of output and of input channels */
  LLVMValueRef line_distance; /* i64: the distance in elements between the input rows of two rows of taps */
  int64_t width;
  /* If `inside` is false, the tile begins at position `first` of a row, and reads only columns [0, in) of the input:
   * tap k of position p reads column p * stride + k * dilation - low. */
  bool inside;
  int64_t first, low, in;
  /* If `columns` is not NULL, it is the number of columns of the input and `column` the one at which `line` is, which
   * may be negative; columns outside of the input are left out by tests in the code, and the four members above say
   * nothing. */
  LLVMValueRef column, columns;
} depthwise_tile;

LLVMTypeRef depthwise_sums_type(const emit_ir *w, const depthwise_code *c);

/* Sets `sums` to the tile's sums of products over rows [from, to) of the taps: of position i and vector v,
 * sums[i * vectors + v]. */
void depthwise_add_rows(const emit_ir *w, const depthwise_code *c, const depthwise_tile *t, LLVMValueRef from,
                        LLVMValueRef to, LLVMValueRef *sums);

/* Returns how many of `taps` taps lie before element `distance`, where the first tap is element 0 and the taps are
 * `dilation` elements apart; 0 if `distance` is negative. */
LLVMValueRef depthwise_taps_before(const emit_ir *w, LLVMValueRef distance, int64_t dilation, LLVMValueRef taps);

/* Returns the address of element `at` after `base`.  It may lie outside of the array if nothing is read there. */
LLVMValueRef depthwise_address(const emit_ir *w, dtype t, LLVMValueRef base, LLVMValueRef at);

/* --- rows whose length is an argument --- */

/* The shared function that computes rows of the result for some vectors of channels:
 *
 *     void f(record, image, row_from, row_to, vector)
 *
 * A row is divided into tiles of `width` positions, of which the last may reach beyond the row's end.  Tiles whose taps
 * are not all inside of the input have code of their own, which tests each column.  The function stores the sums of
 * some tiles, those of depthwise_room_positions(width) positions for each vector, and then calls the kernel's epilogue:
 *
 *     void epilogue(buffers, args, tile, image, row, place, positions, vector, vectors)
 *
 * for the `positions` positions of the row from `place` on and `vectors` vectors of channels from number `vector` on.
 */
typedef struct depthwise_rows {
  depthwise_code code;
  int64_t width;
} depthwise_rows;

/* Returns the number of positions whose sums the room holds if tiles have `width` positions. */
static inline int64_t depthwise_room_positions(int64_t width) { return 4 * width; }

/* The entries of the record (shared_kernel.h), whose room is for the tiles. */
enum {
  DEPTHWISE_EPILOGUE = EMIT_RECORD_HEAD,
  DEPTHWISE_X,
  DEPTHWISE_WEIGHTS,
  DEPTHWISE_CHANNELS,
  DEPTHWISE_IN_ROWS,
  DEPTHWISE_IN_COLUMNS,
  DEPTHWISE_OUT_COLUMNS,
  DEPTHWISE_TAP_ROWS,
  DEPTHWISE_ROW_STRIDE,
  DEPTHWISE_LOW_ROWS,
  DEPTHWISE_LOW_COLUMNS,
  /* The grid is images, parts of the rows, and blocks of vectors of channels (innermost): the number of blocks, that of
   * the large ones, which come first, and the vectors of a large block, of which the others have one less; the number
   * of parts, and of rows; the functions for large blocks and for the others. */
  DEPTHWISE_BLOCKS,
  DEPTHWISE_N_LARGE,
  DEPTHWISE_LARGE,
  DEPTHWISE_PARTS,
  DEPTHWISE_OUT_ROWS,
  DEPTHWISE_ROWS,
  DEPTHWISE_ENTRIES = DEPTHWISE_ROWS + 2
};

/* The steps (shared_kernel.h) of such a kernel. */
extern const emit_shared depthwise_steps;

/* The parameters of the epilogue. */
enum {
  DEPTHWISE_EPILOGUE_TILE = 2,
  DEPTHWISE_EPILOGUE_IMAGE,
  DEPTHWISE_EPILOGUE_ROW,
  DEPTHWISE_EPILOGUE_PLACE,
  DEPTHWISE_EPILOGUE_POSITIONS,
  DEPTHWISE_EPILOGUE_VECTOR,
  DEPTHWISE_EPILOGUE_VECTORS,
  DEPTHWISE_EPILOGUE_PARAMETERS
};
#define DEPTHWISE_EPILOGUE_TYPES "pppiiiiii" /* emit_shared.parameters */

/* Returns the most positions of a tile whose sums the registers can hold. */
int64_t depthwise_most_positions(const emit_target *t, int64_t taps, int64_t vectors);

/* Returns the function; *rows is borrowed. */
emit_shared depthwise_rows_function(const emit_ir *w, const depthwise_rows *rows);

/* Returns the first channel of a vector, which is moved back where it would reach beyond the last channel. */
LLVMValueRef depthwise_channel(const emit_ir *w, LLVMValueRef vector, int lanes, LLVMValueRef channels);

#endif
