/* writer.h - one kernel function while it is written: its buffers, its loops over the grid, its kinds of
 * bodies. */
#ifndef EMIT_KERNEL_WRITER_H
#define EMIT_KERNEL_WRITER_H

#include "emit/kernel/compile.h"
#include "emit/element/element.h"
#include "hlo/analysis/in_place_update.h"

typedef struct emit_writer {
  emit_element e;
  const hlo_instr *i;
  uint32_t n_results;
  hlo_value *roots;      /* what each result holds */
  LLVMValueRef *results; /* pointers */
  bool *shared;          /* the result lies in the buffer of an operand */
  const int32_t *alias;  /* as in emit_options; never NULL */
  /* Where the only result lies in the array of its buffer, whose root is the part; NULL means the result is the whole
   * array. */
  const hlo_in_place_update *place;
  int64_t rows; /* as in emit_options */
  LLVMValueRef begin, end;
  int n_split_points; /* in emit_nest: where the loops' last dimension is cut into pieces, each with loops of its own,
                       */
  const int64_t *split_points; /* in order, inside of the dimension */
  emit_kernel_info *info;
  double cost; /* of the whole kernel, in nanoseconds */
} emit_writer;

/* Begins the function `name` for the instruction, its buffers bound: operands, results, then n_more of the writer's own
 * (scratch memory).  UNSUPPORTED with the reason where emit_supports is false. */
STATUS_MUST_USE status emit_writer_begin(emit_writer *w, emit_module *m, const char *name, const hlo_instr *i,
                                         const emit_options *options, uint32_t n_more, emit_kernel_info *info);
/* Ends it; info->grid and w->cost are known by now. */
void emit_writer_end(emit_writer *w);
/* Argument k of the call. */
LLVMValueRef emit_writer_arg(const emit_writer *w, uint32_t k);
/* The address of buffer k: aligned to 64 bytes, of unknown size. */
LLVMValueRef emit_writer_buffer(const emit_writer *w, uint32_t k);

/* Where the elements of an operand of the kernel's contraction lie (emit_contraction_of). */
LLVMValueRef emit_writer_operand(const emit_writer *w, hlo_value v);

/* Writes what happens at place `at` of the loops' space, in w->e.x.lanes lanes along its last dimension. */
typedef void emit_body_fn(emit_writer *w, const void *data, const emit_index *at);

/* Loops over extents[rank]: outermost dimensions in parallel (the kernel's grid, or all of it here when
 * `serial`), the last one in vectors of `lanes` and single elements for the rest. */
void emit_nest(emit_writer *w, int rank, const int64_t *extents, int lanes, bool serial, emit_body_fn *body,
               const void *data);

/* Where the element at `at` of the roots stands in the results' buffers. */
emit_pos emit_result_pos(const emit_writer *w, const emit_index *at);

/* Writes the values of all roots at `at` to the results.  What the roots are made from may have been put into the table
 * before (emit_element_set). */
void emit_store_roots(emit_writer *w, const emit_index *at);

/* Is what follows the contraction of the fusion `i` few enough operations, in few registers, to be written for every
 * vector of a block?  Otherwise it is written once, in a loop over a tile in memory. */
bool emit_is_light(const hlo_instr *i);

/* The width for kernels that mostly hold elements of these bytes. */
int emit_writer_lanes(const emit_writer *w);

/* Memory of the function's own, of so many elements of type t, for one step of the grid. */
LLVMValueRef emit_row_memory(const emit_ir *w, dtype t, int64_t elements);

/* The kinds of kernels (update.c, row_fusion.c, transpose_tiles.c, pooling.c); write_loops in kernel.c is the one for
 * everything else. */
bool emit_is_update(const emit_writer *w);
void emit_write_update(emit_writer *w);
bool emit_is_row_fusion(const emit_writer *w);
void emit_write_row_fusion(emit_writer *w);
bool emit_is_tiles(emit_writer *w);
void emit_write_tiles(emit_writer *w);
bool emit_is_pooling(emit_writer *w);
void emit_write_pooling(emit_writer *w);

#endif
