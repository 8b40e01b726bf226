/* update.h - what the writers of scatters and of cumulative operations share: update.c writes them for ranges,
 * block_scatter.c and scan.c for blocks of threads. */
#ifndef EMIT_KERNEL_UPDATE_H
#define EMIT_KERNEL_UPDATE_H

#include "emit/kernel/writer.h"

/* --- scatter --- */

/* Returns true if the array that the kernel's only root updates is already in the result's buffer. */
bool emit_updates_in_place(const emit_writer *w);
/* Combines, in w->e.x.lanes lanes, the element at `from` of the updates of the scatter `i` with the element at `to` of
 * the result, and stores the combination at `to`, which must be inside of the array. */
void emit_scatter_element(emit_writer *w, const hlo_instr *i, const emit_index *to, const emit_index *from);
/* Returns an i1 that is true if the whole window that begins at `starts` lies in the operand. */
LLVMValueRef emit_scatter_fits(const emit_writer *w, const hlo_instr *i, const emit_window_dims *d,
                               const emit_pos *starts);
/* Writes the kernel of a scatter for blocks of threads. */
void emit_write_block_scatter(emit_writer *w, const hlo_instr *i);

/* --- cumulative operations --- */

/* The lines of a cumulative operation. */
typedef struct emit_lines {
  const hlo_instr *i;
  dim dims[3]; /* three extents: the product of the extents outside of the cumulated dimension, its own extent, and the
                  product of the extents inside */
} emit_lines;

typedef struct emit_line_element {
  emit_pair v;    /* an element of the operand, in the accumulating type */
  emit_pos place; /* its position in the operand and in the result */
} emit_line_element;

/* Returns element number p of a line, counted from the end if the operation is backward.  `line` is the line's index
 * along the outer and the inner dimension. */
emit_line_element emit_line_at(emit_writer *w, const emit_lines *g, const emit_index *line, emit_pos p);
/* Stores `sum` at the position of the element `at`. */
void emit_line_store(emit_writer *w, const emit_lines *g, const emit_line_element *at, emit_pair sum);

/* Returns true if a block of threads should compute each line: there are few lines, and they are long. */
bool emit_takes_block_lines(const emit_writer *w, const emit_lines *g);
/* Writes the kernel in which a block of threads computes each line.  `extents` are the numbers of lines along the outer
 * and the inner dimension. */
void emit_write_block_lines(emit_writer *w, const emit_lines *g, const dim *extents);

#endif
