/* writer.h - the state of a kernel function while its code is written, and what all kinds of kernels share: buffers,
 * loops over the grid, the epilogue. */
#ifndef EMIT_KERNEL_WRITER_H
#define EMIT_KERNEL_WRITER_H

#include "emit/kernel/compile.h"
#include "emit/element/element.h"
#include "hlo/analysis/in_place_update.h"

/* The threads among which control flow is uniform: if one of them gets to a place in the code, all of them do.  This is
 * only for blocks of threads. */
typedef enum emit_uniformity { EMIT_DIVERGENT, EMIT_UNIFORM_WARP, EMIT_UNIFORM_BLOCK } emit_uniformity;

typedef struct emit_writer {
  emit_element e;
  const struct emit_execution_ops *execution; /* how the target divides the grid (execution.h) */
  const hlo_instr *i;
  uint32_t n_results;
  hlo_value *roots;      /* the value of each result */
  LLVMValueRef *results; /* the pointers to the results */
  bool *shared;          /* for each result, whether it is in the buffer of an operand */
  const int32_t *alias;  /* as in emit_options, but never NULL */
  /* Not NULL if the only result is an in-place update of an array that is already in the result's buffer.  The kernel
   * then writes only the changed part of the array, and the root is that part.  NULL means that whole results are
   * written. */
  const hlo_in_place_update *place;
  int64_t rows;            /* see emit_options */
  LLVMValueRef begin, end; /* the steps of the grid that the call or thread computes; there may be none */
  int n_split_points; /* in emit_nest: how many positions split the last dimension into parts, each of which gets a loop
                         of its own */
  const int64_t *split_points; /* the positions, in ascending order; neither the beginning nor the end of the dimension
                                  is among them */
  emit_uniformity uniform;     /* among which threads control flow is uniform where the next instruction is written */
  LLVMValueRef stores; /* an i1 that is true in the thread that stores the element which its team has computed; NULL
                          means that every thread stores what it computes */
  uint32_t n_syncs;    /* how many barriers and exchanges were written (block.h) */
  emit_kernel_info *info;
  double cost; /* the cost of the whole kernel, in nanoseconds */
} emit_writer;

/* Begins the function `name` for the instruction.  Its buffers are the operands, the results, and then n_more further
 * ones, such as scratch memory.  If neither emit_supports nor emit_supports_special (special.h) returns true, the
 * result is UNSUPPORTED with the reason. */
STATUS_MUST_USE status emit_writer_begin(emit_writer *w, emit_module *m, const char *name, const hlo_instr *i,
                                         const emit_options *options, uint32_t n_more, emit_kernel_info *info);
/* Ends the function; info->grid and w->cost must be set. */
void emit_writer_end(emit_writer *w);
/* Must be called after emit_writer_end.  Deletes the function and returns UNSUPPORTED if the function needs a size that
 * cannot be expressed, or has more buffers and sizes than a call can pass. */
STATUS_MUST_USE status emit_writer_check(const emit_writer *w);
/* Begins a further function of the kernel, such as one that a loop calls for each part of the results.  It is void and
 * internal to the module; its parameters (emit_shared.parameters) begin with the table of buffers and the table of
 * arguments.  Until emit_writer_leave, everything is written to this function.  emit_writer_leave ends it, goes on
 * where emit_writer_enter was called, and returns the function. */
typedef struct emit_outer_function {
  emit_ir ir;
  LLVMBasicBlockRef here;
  emit_table *table;
  emit_sizes sizes;
  const emit_input *inputs;
  LLVMValueRef *results;
} emit_outer_function;
void emit_writer_enter(emit_writer *w, const char *name, const char *parameters, emit_outer_function *outer);
LLVMValueRef emit_writer_leave(emit_writer *w, const emit_outer_function *outer);
/* Returns argument number k of the kernel's call. */
LLVMValueRef emit_writer_arg(const emit_writer *w, uint32_t k);
/* Returns the address of buffer k.  LLVM is told that it is aligned to 64 bytes, but not its size. */
LLVMValueRef emit_writer_buffer(const emit_writer *w, uint32_t k);

/* Returns which operand of the kernel an operand of its contraction (emit_contraction_of) is. */
uint32_t emit_writer_operand_number(const emit_writer *w, hlo_value v);

/* Writes the body of a loop nest for w->e.x.lanes elements along the last dimension, from index `at` on. */
typedef void emit_body_fn(emit_writer *w, const void *data, const emit_index *at);

/* Writes a loop nest over extents[rank] and sets info->grid.  The outer dimensions are the kernel's grid, or ordinary
 * loops if `serial`. For ranges, the last one is a loop over vectors of `lanes` lanes, and over single elements for the
 * rest; if the outer ones are few, it is divided into blocks, which are steps of the grid.  For blocks of threads, it
 * is part of the grid, a step has `lanes` elements, and rows of the last dimension must begin at multiples of `lanes`.
 */
void emit_nest(emit_writer *w, int rank, const dim *extents, int lanes, bool serial, emit_body_fn *body,
               const void *data);

/* Returns the number of the first of n lines that belongs to part number `part` of `parts`.  The parts' numbers of
 * lines differ by at most one. */
LLVMValueRef emit_first_of_part(const emit_writer *w, LLVMValueRef part, dim parts, dim n);

/* Returns the position in the results' buffers at which the element at index `at` of the roots is stored. */
emit_pos emit_result_pos(const emit_writer *w, const emit_index *at);

/* Stores the values of all roots at index `at` in the results.  The caller may have declared values on which the roots
 * depend (emit_element_set), such as the sum of a contraction. */
void emit_store_roots(emit_writer *w, const emit_index *at);

/* Returns true if the body of the fusion `i` has no mathematical function (emit_is_math) and fewer than eight
 * operations.  The contraction counts; parameters, constants, broadcasts, reshapes and dynamic-update-slices do not.
 * The code of the epilogue may then be repeated, for example for every vector of a register block.  Otherwise it is
 * better written once, such as in a loop over sums that were stored to memory. */
bool emit_is_light(const hlo_instr *i);

/* Allocates `elements` elements of type t on the function's stack.  Every step of the grid uses this memory again. */
LLVMValueRef emit_row_memory(const emit_ir *w, dtype t, int64_t elements);

/* The kinds of kernels (update.c, row_fusion.c, transpose_tiles.c, block_transpose.c, pooling.c, team.c).  All others
 * are written by write_loops in kernel.c. */
bool emit_is_update(const emit_writer *w);
void emit_write_update(emit_writer *w);
bool emit_is_row_fusion(const emit_writer *w);
void emit_write_row_fusion(emit_writer *w);
bool emit_is_tiles(emit_writer *w);
void emit_write_tiles(emit_writer *w);
bool emit_is_block_transpose(emit_writer *w);
void emit_write_block_transpose(emit_writer *w);
bool emit_is_pooling(emit_writer *w);
void emit_write_pooling(emit_writer *w);
bool emit_is_team_reduction(const emit_writer *w);
void emit_write_team_reduction(emit_writer *w);

#endif
