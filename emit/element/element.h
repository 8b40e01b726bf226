/* element.h - the element emitter: writes the instructions that compute the element of a value at an index, as a scalar
 * or as a vector of lanes.
 *
 * It walks from the value through its producers to the inputs, which are loaded.  Movement changes the index on the
 * way, elementwise operations become instructions.  A value that was written before at the same position is used again.
 * Reductions, windows and contractions write loops (reduction_loop.c).  No load is ever outside of its array. */
#ifndef EMIT_ELEMENT_ELEMENT_H
#define EMIT_ELEMENT_ELEMENT_H

#include "emit/llvm/index.h"
#include "emit/llvm/number.h"
#include "hlo/ir/ir.h"

typedef struct emit_input {
  hlo_value value;   /* a value that is loaded and not computed */
  LLVMValueRef base; /* the pointer to its elements */
  bool shared;       /* whether a result is written over it, so that loads stay in order with stores */
} emit_input;

/* In a row-wise kernel (emit/kernel/row_fusion.c): sets *out to the value of v at i and returns true if the kernel has
 * it already; otherwise leaves *out alone and returns false. */
typedef struct emit_row_fusion emit_row_fusion;
bool emit_row_value(const emit_row_fusion *r, hlo_value v, const emit_index *i, emit_pair *out);

typedef struct emit_element {
  emit_ir *w;
  emit_indexer x; /* x.lanes is 1 or the vector width; writers change it temporarily */
  uint32_t n_inputs;
  const emit_input *inputs;
  /* The body of a fusion, whose reductions over the same elements share a loop; otherwise NULL. */
  const hlo_computation *body;
  emit_row_fusion *rows; /* in a row-wise kernel; otherwise NULL */
  int wide;              /* the number of lanes that a loop inside of a scalar may use */
  int slow; /* more than 0 on a path for scattered lanes, where no further branches for speed are written */
  LLVMValueRef scope_inputs, scope_results, invariant; /* LLVM metadata for loads and stores (emit/kernel/kernel.c) */
} emit_element;

/* Returns the value of v at index i, which is an index of v's shape, in e->x.lanes lanes. */
emit_pair emit_value(emit_element *e, hlo_value v, const emit_index *i);

/* Declares that v has this value at i, in e->x.lanes lanes.  emit_value returns it until e->x.table is released to an
 * earlier mark (emit_table_release). */
void emit_element_set(emit_element *e, hlo_value v, const emit_index *i, emit_pair value);

/* Returns v if every dimension of i in the bit set `checked` is in range and `mask` (an i1 or a vector, or NULL) holds,
 * otherwise `otherwise`.  The axes of checked dimensions are positions, which may be anything. */
emit_pair emit_guarded(emit_element *e, hlo_value v, emit_index *i, uint32_t checked, LLVMValueRef mask,
                       emit_pair otherwise);

/* Returns the integer element of v at i as a position clamped to [0, limit].  It is affine in the lane if v is a
 * constant whose elements at these lanes are evenly spaced. */
emit_pos emit_start(emit_element *e, hlo_value v, const emit_index *i, int64_t limit);

bool emit_is_input(const emit_element *e, hlo_value v);

/* Sets *out to x at `at` as an integer of type `to`, and returns true, if x is a rounded number, perhaps plus a zero
 * point (quantize.c).  Otherwise returns false. */
bool emit_quantize(emit_element *e, dtype to, hlo_value x, const emit_index *at, emit_pair *out);

/* Load and store.  `base` points to elements of type t; the number of lanes is e->x.lanes. */
emit_pair emit_load(emit_element *e, LLVMValueRef base, dtype t, emit_pos at, bool shared, bool constant);
/* Loads lanes that are `step` (1 to 4) apart, but only those whose position `along` the innermost dimension is in [0,
 * n).  The others are undefined.  For types for which emit_masks_loads returns true. */
emit_pair emit_load_masked(emit_element *e, LLVMValueRef base, dtype t, emit_pos at, emit_pos along, int64_t n,
                           bool shared);
bool emit_masks_loads(const emit_element *e, dtype t);
void emit_store(emit_element *e, LLVMValueRef base, dtype t, emit_pos at, emit_pair v, bool shared);

emit_pair emit_splat_pair(const emit_element *e, emit_pair v); /* broadcasts scalars to all lanes */
emit_pair emit_select_pair(const emit_element *e, LLVMValueRef c, emit_pair x, emit_pair y);

/* The emitter of an operation, which returns the value of result 0 at i. */
typedef emit_pair emit_op_fn(emit_element *e, const hlo_instr *i, const emit_index *at);
/* These are in movement.c. */
emit_op_fn emit_copy, emit_iota, emit_broadcast, emit_reshape, emit_transpose, emit_reverse, emit_slice, emit_pad;
emit_op_fn emit_concatenate, emit_dynamic_slice, emit_gather, emit_dynamic_update_slice;
/* This is in random.c. */
emit_op_fn emit_rng;
/* These are in reduce.c, window.c and contract.c. */
emit_op_fn emit_reduce, emit_arg_reduce, emit_reduce_window, emit_arg_reduce_window, emit_dot, emit_convolution;

/* Returns the emitter of an operation, or NULL if it is elementwise or has none (emit_supports). */
emit_op_fn *emit_op_emitter(hlo_op op);

/* Returns positions along a dimension whose n elements are `gap` apart.  *mask is narrowed to the lanes whose position
 * is an element. */
emit_pos emit_without_gaps(emit_element *e, emit_pos p, int64_t n, int64_t gap, LLVMValueRef *mask);
/* Returns an index of operand k of i, which the caller fills in. */
emit_index *emit_operand_index(emit_element *e, const hlo_instr *i, uint32_t k);

/* The dimensions of a gather or scatter, by which the position of the window in the operand is computed for an element
 * of the outer array, which is the result of a gather or the updates of a scatter. */
typedef struct emit_window_dims {
  int n_batch, batch[SHAPE_MAX_RANK]; /* the dimensions of the outer array that select an index vector */
  int offset_of[SHAPE_MAX_RANK];      /* for each dimension of the operand, the dimension of the outer array that is an
                                         offset in the window, or -1 */
} emit_window_dims;
emit_window_dims emit_window_dims_of(const hlo_instr *i, const shape *outer);
/* Returns the position of the start along each dimension of the operand. sizes are the extents of the window; clamp is
 * true for gather. */
void emit_window_starts(emit_element *e, const hlo_instr *i, const emit_window_dims *d, const emit_index *at,
                        const int64_t *sizes, bool clamp, emit_pos *starts);

#endif
