/* transpose_tiles.h - transposes after which another dimension is innermost, and the tiles of two dimensions in which
 * kernels compute them: in registers (transpose_tiles.c), and in the shared memory of a block (block_transpose.c). */
#ifndef EMIT_KERNEL_TRANSPOSE_TILES_H
#define EMIT_KERNEL_TRANSPOSE_TILES_H

#include "emit/kernel/writer.h"

enum { EMIT_MOST_TRANSPOSES = 4 };

typedef struct emit_transposes {
  emit_writer *w;
  int n;
  const hlo_instr *of[EMIT_MOST_TRANSPOSES]; /* the transposes, all of one shape and permutation */
  int rank, column; /* the number of the result's dimensions, after merging those that stay neighbours, and the number
                       of the one that is innermost in the operand.  Positions along dimension `column` are the rows of
                       tiles, and positions along the last dimension are their columns */
  dim dims[SHAPE_MAX_RANK];
} emit_transposes;

/* Finds the transposes after which another dimension is innermost, and from which the results of the kernel are
 * computed by operations that keep the positions of elements.  Sets *out and returns true if there are any, and if all
 * other operations of the kernel are elementwise or copies, reshapes, broadcasts, slices or a few gathers of rows. */
bool emit_find_transposes(emit_writer *w, emit_transposes *out);

/* Returns the number of tiles of `rows` x `columns` elements along each dimension of t.  The array is on the kernel's
 * arena. */
dim *emit_transposed_tiles(const emit_transposes *t, int64_t rows, int64_t columns);
/* Returns the index of the result at position `row` and `column`, with the other dimensions as in `at`. */
const emit_index *emit_transposed_index(const emit_transposes *t, const emit_index *at, emit_pos row, emit_pos column);
/* Returns the value of transpose number k at an index that emit_transposed_index has returned. */
emit_pair emit_transposed_value(const emit_transposes *t, int k, const emit_index *at);
/* Declares `value` to be the value of transpose number k at such an index, as emit_element_set does. */
void emit_set_transposed(const emit_transposes *t, int k, const emit_index *at, emit_pair value);

#endif
