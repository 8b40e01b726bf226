/* writer.h - a kernel function while it is written: its buffers, its loops over the grid, the kinds of bodies. */
#ifndef EMIT_KERNEL_WRITER_H
#define EMIT_KERNEL_WRITER_H

#include "emit/kernel/compile.h"
#include "emit/element/element.h"
#include "hlo/analysis/in_place_update.h"

typedef struct emit_writer {
  emit_element e;
  const struct emit_execution_ops *execution; /* for the target (execution.h) */
  const hlo_instr *i;
  uint32_t n_results;
  hlo_value *roots;      /* the value of each result */
  LLVMValueRef *results; /* the pointers to the results */
  bool *shared;          /* whether the result is in the buffer of an operand */
  const int32_t *alias;  /* as in emit_options, but never NULL */
  /* Set if the only result is written as a part of the array in its buffer; the root is then that part.  NULL means
   * that the result is the whole array. */
  const hlo_in_place_update *place;
  int64_t rows; /* see emit_options */
  LLVMValueRef begin, end;
  int n_split_points; /* in emit_nest: the positions at which the last dimension is split into loops of their own */
  const int64_t *split_points; /* the positions, in ascending order; neither the beginning nor the end of the dimension
                                  is among them */
  emit_kernel_info *info;
  double cost; /* the cost of the whole kernel, in nanoseconds */
} emit_writer;

/* Begins the function `name` for the instruction with its buffers: operands, results, then n_more of the writer's own
 * (scratch memory).  If emit_supports returns false, the result is UNSUPPORTED with the reason. */
STATUS_MUST_USE status emit_writer_begin(emit_writer *w, emit_module *m, const char *name, const hlo_instr *i,
                                         const emit_options *options, uint32_t n_more, emit_kernel_info *info);
/* Ends the function; info->grid and w->cost must be set. */
void emit_writer_end(emit_writer *w);
/* Returns argument number k of the kernel's call (runtime/kernel_abi.h). */
LLVMValueRef emit_writer_arg(const emit_writer *w, uint32_t k);
/* Returns the address of buffer k, which is aligned to 64 bytes and whose size is not known. */
LLVMValueRef emit_writer_buffer(const emit_writer *w, uint32_t k);

/* Returns the address of an operand of the kernel's contraction (emit_contraction_of). */
LLVMValueRef emit_writer_operand(const emit_writer *w, hlo_value v);

/* Writes the body at position `at` of the loops' space, in w->e.x.lanes lanes along its last dimension. */
typedef void emit_body_fn(emit_writer *w, const void *data, const emit_index *at);

/* Writes loops over extents[rank].  The outer dimensions are parallel (they are the kernel's grid, or ordinary loops if
 * `serial`); the last one is done in vectors of `lanes` and single elements for the rest. */
void emit_nest(emit_writer *w, int rank, const int64_t *extents, int lanes, bool serial, emit_body_fn *body,
               const void *data);

/* Returns the position in the results' buffers of the element at `at` of the roots. */
emit_pos emit_result_pos(const emit_writer *w, const emit_index *at);

/* Stores the values of all roots at `at` in the results.  Values on which the roots depend may have been declared
 * before (emit_element_set). */
void emit_store_roots(emit_writer *w, const emit_index *at);

/* Returns true if the epilogue of the fusion `i` has so few operations, in so few registers, that it is written for
 * every vector of a block.  Otherwise it is written once, as a loop over a tile in memory. */
bool emit_is_light(const hlo_instr *i);

/* Returns memory of the function for so many elements of type t, for one step of the grid. */
LLVMValueRef emit_row_memory(const emit_ir *w, dtype t, int64_t elements);

/* The kinds of kernels (update.c, row_fusion.c, transpose_tiles.c, pooling.c).  All others are written by write_loops
 * in kernel.c. */
bool emit_is_update(const emit_writer *w);
void emit_write_update(emit_writer *w);
bool emit_is_row_fusion(const emit_writer *w);
void emit_write_row_fusion(emit_writer *w);
bool emit_is_tiles(emit_writer *w);
void emit_write_tiles(emit_writer *w);
bool emit_is_pooling(emit_writer *w);
void emit_write_pooling(emit_writer *w);

#endif
