/* element.h - the element emitter: the value of an HLO value at an index, written as instructions where the
 * builder stands, on a scalar or on a vector of lanes alike.
 *
 * It walks from the value through its producers down to the inputs, which are loaded; movement changes the
 * index on the way, elementwise operations map.  What was written once (same value, same position) is used
 * again.  Reductions, windows and contractions write loops (reduction_loop.c).  No load is ever outside of its array.
 */
#ifndef EMIT_ELEMENT_ELEMENT_H
#define EMIT_ELEMENT_ELEMENT_H

#include "emit/llvm/index.h"
#include "emit/llvm/number.h"
#include "hlo/ir/ir.h"

typedef struct emit_input {
  hlo_value value;   /* is loaded where the walk meets it */
  LLVMValueRef base; /* pointer to its elements */
  bool shared;       /* a result is written over it: loads stay in order with stores */
} emit_input;

/* What a kernel of rows has at hand (emit/kernel/row_fusion.c): the value of v at i; *out as it is if it has none. True
 * if it had. */
typedef struct emit_row_fusion emit_row_fusion;
bool emit_row_value(const emit_row_fusion *r, hlo_value v, const emit_index *i, emit_pair *out);

typedef struct emit_element {
  emit_ir *w;
  emit_indexer x; /* x.lanes: 1 or the vector width; writers change it for a while */
  uint32_t n_inputs;
  const emit_input *inputs;
  const hlo_computation *body; /* of a fusion: its reductions over the same elements share a loop; else NULL */
  emit_row_fusion *rows;       /* in a kernel of rows; else NULL */
  int wide;                    /* lanes that a loop inside of a scalar may use */
  int slow;                    /* > 0: inside of a path for lanes that are scattered; do not branch for speed again */
  LLVMValueRef scope_inputs, scope_results, invariant; /* metadata */
} emit_element;

/* The value of v at index i (of v's shape) in e->x.lanes lanes. */
emit_pair emit_value(emit_element *e, hlo_value v, const emit_index *i);

/* Says what v is at i, in e->x.lanes lanes: emit_value gives that from now on, until the table is released. */
void emit_element_set(emit_element *e, hlo_value v, const emit_index *i, emit_pair value);

/* v where every dimension in the bit set `checked` of i, and `mask` (NULL if there is nothing; i1 or a vector), is in
 * range; `otherwise` elsewhere.  The axes of checked dimensions are positions, which may be anything. */
emit_pair emit_guarded(emit_element *e, hlo_value v, emit_index *i, uint32_t checked, LLVMValueRef mask,
                       emit_pair otherwise);

/* The integer element of v at i as a position clamped to [0, limit]; affine in the lane where v is a constant of which
 * that is known. */
emit_pos emit_start(emit_element *e, hlo_value v, const emit_index *i, int64_t limit);

bool emit_is_input(const emit_element *e, hlo_value v);

/* x at `at` as an integer of type `to`, where x is a number that is rounded, plus a whole number or not (quantize.c);
 * false: it is something else. */
bool emit_quantize(emit_element *e, dtype to, hlo_value x, const emit_index *at, emit_pair *out);

/* Memory.  `base` points at elements of type t; lanes are e->x.lanes. */
emit_pair emit_load(emit_element *e, LLVMValueRef base, dtype t, emit_pos at, bool shared, bool constant);
/* As emit_load for lanes `step` apart (1 to 4), of which only those whose place `along` the innermost
 * dimension lies in [0, n) are read; the others give anything.  For types that emit_masks_loads. */
emit_pair emit_load_masked(emit_element *e, LLVMValueRef base, dtype t, emit_pos at, emit_pos along, int64_t n,
                           bool shared);
bool emit_masks_loads(const emit_element *e, dtype t);
void emit_store(emit_element *e, LLVMValueRef base, dtype t, emit_pos at, emit_pair v, bool shared);

emit_pair emit_splat_pair(const emit_element *e, emit_pair v); /* scalars to all lanes */
emit_pair emit_select_pair(const emit_element *e, LLVMValueRef c, emit_pair x, emit_pair y);

/* What an operation's emitter is: the value of result 0 at i. */
typedef emit_pair emit_op_fn(emit_element *e, const hlo_instr *i, const emit_index *at);
/* movement.c */
emit_op_fn emit_copy, emit_iota, emit_broadcast, emit_reshape, emit_transpose, emit_reverse, emit_slice, emit_pad;
emit_op_fn emit_concatenate, emit_dynamic_slice, emit_gather, emit_dynamic_update_slice;
/* random.c */
emit_op_fn emit_rng;
/* reduction_loop.c */
emit_op_fn emit_reduce, emit_arg_reduce, emit_reduce_window, emit_arg_reduce_window, emit_dot, emit_convolution;

/* The emitter of an operation; NULL if it is elementwise, or has none (emit_supports). */
emit_op_fn *emit_op_emitter(hlo_op op);

/* Positions along a dimension whose n elements stand `gap` apart: *mask gains which lanes stand on one. */
emit_pos emit_without_gaps(emit_element *e, emit_pos p, int64_t n, int64_t gap, LLVMValueRef *mask);
/* An index of operand k of i, to be filled in. */
emit_index *emit_operand_index(emit_element *e, const hlo_instr *i, uint32_t k);

/* How gather and scatter address (StableHLO's dimension numbers): the window's place in the operand for the
 * element `at` of the result or of the updates. */
typedef struct emit_window_dims {
  int n_batch, batch[SHAPE_MAX_RANK]; /* dims of the outer array that pick an index vector */
  int offset_of[SHAPE_MAX_RANK];      /* operand dim -> dim of the outer array, or -1 */
} emit_window_dims;
emit_window_dims emit_window_dims_of(const hlo_instr *i, const shape *outer);
/* Position of the start along each operand dim.  sizes: window extents; clamp as gather does, or not. */
void emit_window_starts(emit_element *e, const hlo_instr *i, const emit_window_dims *d, const emit_index *at,
                        const int64_t *sizes, bool clamp, emit_pos *starts);

#endif
