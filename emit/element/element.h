/* element.h - the element emitter: writes the instructions that compute the element of a value at an index, as a scalar
 * or as a vector of lanes.
 *
 * It walks from the value through its producers to the inputs, which are loaded.  On the way, operations that move
 * elements change the index, and elementwise operations become instructions.  Where a value has already been computed
 * at the same index, that result is used again.  Reductions, window reductions and contractions become loops
 * (reduction_loop.c).  No load is ever outside of its array. */
#ifndef EMIT_ELEMENT_ELEMENT_H
#define EMIT_ELEMENT_ELEMENT_H

#include "emit/llvm/index.h"
#include "emit/llvm/number.h"
#include "hlo/ir/ir.h"

typedef struct emit_input {
  hlo_value value;   /* a value that is loaded and not computed */
  LLVMValueRef base; /* the address of the value's elements */
  bool shared;       /* whether a result of the kernel is in the same buffer, so that loads of the value must stay in
                        order with stores */
  const hlo_instr *sizes; /* if not NULL, the HLO_SIZES instruction whose result the value is; the value is then made
                             from the kernel's sizes and not loaded */
} emit_input;

/* Only for the kernels of row-wise fusions (emit/kernel/row_fusion.c).  Sets *out to the value of v at index i and
 * returns true if the kernel has already computed or stored that value, or if v is a division that is written as a
 * multiplication by an inverse.  Otherwise returns false and does not change *out. */
typedef struct emit_row_fusion emit_row_fusion;
bool emit_row_value(const emit_row_fusion *r, hlo_value v, const emit_index *i, emit_pair *out);
/* Returns true if the kernel has already computed or stored v, so that emit_row_value does not compute it. */
bool emit_row_has(const emit_row_fusion *r, hlo_value v);
/* If v is a division that emit_row_value would write as a multiplication by an inverse, sets *by and *inverse to the
 * divisor, whose absolute value is in [EMIT_LEAST_DIVISOR, EMIT_MOST_DIVISOR], and its inverse, and returns true. */
bool emit_row_divisor(const emit_row_fusion *r, hlo_value v, LLVMValueRef *by, LLVMValueRef *inverse);

/* Threads that compute one element together (reduction_loop.h). */
typedef struct emit_team emit_team;

typedef struct emit_element {
  emit_ir *w;
  emit_indexer x; /* x.lanes: the lanes of the values that are computed now, 1 for scalars; emitters change it for a
                     while and restore it */
  uint32_t n_inputs;
  const emit_input *inputs;
  LLVMValueRef buffers; /* the table of the kernel's buffers, of which the first ones are those of the inputs */
  /* The body of the fusion that the kernel computes, or NULL if the kernel computes a single instruction.  Reductions
   * of the body that reduce the same dimensions of arrays of one shape share a loop. */
  const hlo_computation *body;
  emit_row_fusion *rows; /* NULL if the kernel is not that of a row-wise fusion */
  /* The team whose threads all compute the value at the same index and share its reductions.  NULL where each thread
   * has an index of its own, or may take another path than the other threads. */
  emit_team *team;
  int wide; /* the vector width of the kernel: while x.lanes is 1, a loop that computes one element may still use
               vectors of up to this many lanes */
  int slow; /* greater than 0 while a seldom-taken branch is written; in such a branch, no further special cases are
               written for speed */
  LLVMValueRef scope_inputs, scope_results, invariant; /* LLVM metadata for loads and stores (emit/kernel/kernel.c) */
} emit_element;

/* Returns the value of v at index i, which is an index of v's shape, in e->x.lanes lanes. */
emit_pair emit_value(emit_element *e, hlo_value v, const emit_index *i);

/* Declares `value` to be the value of v at i, in e->x.lanes lanes. emit_value then returns it, until emit_table_release
 * makes e->x.table forget it. */
void emit_element_set(emit_element *e, hlo_value v, const emit_index *i, emit_pair value);

/* Returns, for each lane, the value of v at i if `mask` is true (an i1, a vector of them, or NULL for true) and the
 * position along each dimension in the bit set `checked` is in range; otherwise returns `otherwise`.  Positions along
 * checked dimensions may be out of range; in i they must be plain positions (emit_axis.pos) and not refer to another
 * index.  Positions along the other dimensions must be in range, even in lanes in which `mask` is false. */
emit_pair emit_guarded(emit_element *e, hlo_value v, emit_index *i, uint32_t checked, LLVMValueRef mask,
                       emit_pair otherwise);

/* Returns a vector whose lanes `body` computes one after the other, in a loop.  For each lane, `body` gets the number
 * of the lane and the scalar index that `at` has in this lane, and returns a scalar of type t.  This is for branches
 * that are seldom taken, and for vectors of which some lanes must not load anything. */
typedef emit_pair emit_lane_fn(emit_element *e, const void *data, const emit_index *at, LLVMValueRef lane);
emit_pair emit_each_lane(emit_element *e, dtype t, const emit_index *at, emit_lane_fn *body, const void *data);

/* Returns the integer element of v at index i, clamped to [0, limit], as a position.  The position is affine in the
 * lane (emit_pos) if all lanes read the same element.  It is also affine if `limit` is a constant, v is a constant, i
 * is affine with a known range, and the clamped values of v are evenly spaced over this range.  Otherwise it is
 * scattered. */
emit_pos emit_start(emit_element *e, hlo_value v, const emit_index *i, dim limit);

/* Returns the input that is v, or NULL if v is computed. */
const emit_input *emit_find_input(const emit_element *e, hlo_value v);
static inline bool emit_is_input(const emit_element *e, hlo_value v) { return emit_find_input(e, v) != NULL; }

/* Writes the conversion of x at index `at` to the integer type `to` if `to` has 8 to 16 bits and x is a quantisation:
 * an f32 number that was rounded to an integer, with or without a zero point added (quantize.c).  Sets *out and returns
 * true in that case, otherwise returns false. */
bool emit_quantize(emit_element *e, dtype to, hlo_value x, const emit_index *at, emit_pair *out);

/* These functions load and store e->x.lanes elements of type t, to which `base` points.  `shared` says whether an
 * operand and a result of the kernel share the buffer of these elements, `constant` whether the elements are a
 * constant. */
emit_pair emit_load(emit_element *e, LLVMValueRef base, dtype t, emit_pos at, bool shared, bool constant);
/* Loads elements that are at.step (1 to 4) apart, but only in the lanes whose positions along the innermost dimension,
 * `along`, are in [0, n).  The other lanes are undefined.  emit_masks_loads must be true for the type. */
emit_pair emit_load_masked(emit_element *e, LLVMValueRef base, dtype t, emit_pos at, emit_pos along, int64_t n,
                           bool shared);
bool emit_masks_loads(const emit_element *e, dtype t);
void emit_store(emit_element *e, LLVMValueRef base, dtype t, emit_pos at, emit_pair v, bool shared);

emit_pair emit_splat_pair(const emit_element *e, emit_pair v); /* broadcasts scalars to all lanes */
emit_pair emit_select_pair(const emit_element *e, LLVMValueRef c, emit_pair x, emit_pair y);

/* The emitter of an operation; it returns the value of result 0 of `i` at index `at`. */
typedef emit_pair emit_op_fn(emit_element *e, const hlo_instr *i, const emit_index *at);
/* These are in movement.c. */
emit_op_fn emit_sizes_list, emit_copy, emit_iota, emit_broadcast, emit_reshape, emit_transpose, emit_reverse,
    emit_slice, emit_pad;
emit_op_fn emit_dynamic_slice, emit_gather, emit_dynamic_update_slice;
/* This is in concatenate.c. */
emit_op_fn emit_concatenate;
/* Returns 0 if the concatenation i is not to be read through a table of its operands.  Otherwise returns a multiple of
 * e->wide that divides the extent of every operand along the concatenated dimension, and therefore also the position at
 * which each operand begins.  Code that reads through a table does not depend on the number of operands. */
int64_t emit_concat_unit(const emit_element *e, const hlo_instr *i);
/* This is in random.c. */
emit_op_fn emit_rng;
/* These are in reduce.c, window.c and contract.c. */
emit_op_fn emit_reduce, emit_arg_reduce, emit_reduce_window, emit_arg_reduce_window, emit_dot, emit_convolution;

/* Sets extents[] to those of the space over which a dot or convolution sums its products: the contracted dimensions of
 * a dot, or the input channels of a convolution's group and then the positions in its window (taps).  Returns their
 * number. */
int emit_contracted_extents(const hlo_instr *i, dim *extents);
/* Returns the factor that operand number `operand` (0 or 1) gives to one product of the contraction i, in the type of
 * the sum.  The product is that for the result's element at `at` and for index r in the space of
 * emit_contracted_extents.  Dimensions of `at` that the operand does not have are not used. */
emit_pair emit_factor(emit_element *e, const hlo_instr *i, uint32_t operand, const emit_index *at, const emit_index *r);
/* Returns the address of the element that emit_factor reads.  The operand must be an input that is loaded, and not the
 * image of a convolution. */
LLVMValueRef emit_factor_address(emit_element *e, const hlo_instr *i, uint32_t operand, const emit_index *at,
                                 const emit_index *r);

/* Returns the emitter of an operation.  Returns NULL for elementwise operations (elementwise.h) and for those that
 * kernels do not support (emit_supports). */
emit_op_fn *emit_op_emitter(hlo_op op);

/* p is a position in a dilated dimension, whose n elements are `gap` apart, with padding between them.  Returns the
 * index of the element at p, and clears in *mask (NULL means that all lanes are set) the lanes whose p is in the
 * padding or out of range. */
emit_pos emit_without_gaps(emit_element *e, emit_pos p, dim n, int64_t gap, LLVMValueRef *mask);
/* Returns a new index for operand k of `i`; the caller sets its axes. */
emit_index *emit_operand_index(emit_element *e, const hlo_instr *i, uint32_t k);

/* How the elements of the outer array of a gather or scatter belong to windows of the operand.  The outer array is the
 * result of a gather, or the updates of a scatter.  Some of its dimensions select an index vector, which says where a
 * window starts; the others are offsets in the window. */
typedef struct emit_window_dims {
  int n_batch, batch[SHAPE_MAX_RANK]; /* the dimensions of the outer array that select an index vector */
  int offset_of[SHAPE_MAX_RANK];      /* for each dimension of the operand, the dimension of the outer array that is an
                                         offset in the window, or -1 */
} emit_window_dims;
emit_window_dims emit_window_dims_of(const hlo_instr *i, const shape *outer);
/* Sets starts to the start of the window along each dimension of the operand, for the element `at` of the outer array.
 * If `clamp`, as for a gather, starts are clamped so that a window of extents `sizes` lies in the operand.  Otherwise
 * `sizes` is not used, and e->x.lanes must be 1. */
void emit_window_starts(emit_element *e, const hlo_instr *i, const emit_window_dims *d, const emit_index *at,
                        const dim *sizes, bool clamp, emit_pos *starts);

#endif
