/* builder.h - builds instructions with inferred shapes, folds constants, and keeps the first error.
 *
 * A function that builds a value returns it.  After a failure it returns no value (def is NULL), or an operand that
 * already is what is asked for; hlo_build returns NULL.  The first failure stays in `error`, and later calls do
 * nothing.  So an importer can write its arithmetic without checks and look at the error once, at the end.  All values
 * that are passed in must belong to the builder's computation. */
#ifndef HLO_IR_BUILDER_H
#define HLO_IR_BUILDER_H

#include "hlo/ir/ir.h"

struct pass_context; /* hlo/passes/pass.h */

/* Computes the results of an instruction whose operands are constants.  Their elements are on the arena, or are those
 * of an operand.  If the function fails, for example with STATUS_UNSUPPORTED, the instruction is kept, which is not an
 * error. */
typedef status hlo_eval_fn(const hlo_instr *i, arena *a, literal *results);

typedef struct hlo_builder {
  hlo_computation *computation;
  hlo_instr *before;         /* new instructions are inserted before this one; NULL means at the end */
  const char *source;        /* the provenance (hlo_instr.source) of every new instruction; may be "" */
  hlo_eval_fn *eval;         /* NULL means nothing is folded */
  int64_t fold_bytes;        /* results larger than this are not folded */
  struct pass_context *pass; /* the context of the pass that uses the builder (hlo_pass_builder), or NULL */
  status error;
} hlo_builder;

hlo_builder hlo_builder_make(hlo_computation *c);
/* Returns a builder for a new computation of the same module, with the same source and folding. */
hlo_builder hlo_builder_inner(const hlo_builder *b, const char *name);
/* Returns the error and removes it from the builder. */
STATUS_MUST_USE status hlo_builder_take_error(hlo_builder *b);
/* Sets the error to s, unless there is an error already.  The builder takes over s in both cases. */
void hlo_fail(hlo_builder *b, status s);
arena *hlo_arena(const hlo_builder *b);

/* Builds any instruction.  `attrs` are in the order of the operation's row in ops.def.  `declared` are the result
 * shapes, for operations whose result shapes are declared and not inferred (DECL in ops.def). */
hlo_instr *hlo_build(hlo_builder *b, hlo_op op, uint32_t n_operands, const hlo_value *operands, uint32_t n_results,
                     const shape *declared, const hlo_attr *attrs);

hlo_value hlo_constant(hlo_builder *b, literal l);
hlo_value hlo_scalar(hlo_builder *b, dtype type, double value);
hlo_value hlo_scalar_int(hlo_builder *b, dtype type, int64_t value);
hlo_value hlo_s64s(hlo_builder *b, const int64_t *values, int64_t n);
/* Returns an array of x's type and shape whose elements are all `value`. */
hlo_value hlo_like(hlo_builder *b, hlo_value x, double value);
/* Returns an array of shape s whose elements are all `value`. */
hlo_value hlo_splat(hlo_builder *b, shape s, double value);

hlo_value hlo_unary(hlo_builder *b, hlo_op op, hlo_value x);
hlo_value hlo_binary(hlo_builder *b, hlo_op op, hlo_value x, hlo_value y); /* the operands must have equal shapes */
hlo_value hlo_compare(hlo_builder *b, hlo_comparison c, hlo_value x, hlo_value y);
hlo_value hlo_select(hlo_builder *b, hlo_value pred, hlo_value x, hlo_value y);
/* The bounds low and high are scalars, or have x's shape. */
hlo_value hlo_clamp(hlo_builder *b, hlo_value low, hlo_value x, hlo_value high);
/* Converts x, saturating and rounding to nearest.  Returns x if it has the type already. */
hlo_value hlo_convert(hlo_builder *b, hlo_value x, dtype to);
hlo_value hlo_convert_as(hlo_builder *b, hlo_value x, dtype to, bool saturate, dtype_round round);
hlo_value hlo_bitcast(hlo_builder *b, hlo_value x, dtype to);

/* Broadcasts as numpy does: aligns the last dimensions and stretches dimensions of 1. */
hlo_value hlo_broadcast_to(hlo_builder *b, hlo_value x, const shape *dims); /* keeps x's type */
STATUS_MUST_USE status hlo_broadcast_shape(dim_table *t, const shape *x, const shape *y, shape *out);
void hlo_broadcast_both(hlo_builder *b, hlo_value *x, hlo_value *y);
/* Broadcasts both operands to a common shape and returns hlo_binary of them. */
hlo_value hlo_binary_broadcast(hlo_builder *b, hlo_op op, hlo_value x, hlo_value y);

/* XLA's broadcast: dimension k of x is dimension dimensions[k] of `to`. */
hlo_value hlo_broadcast(hlo_builder *b, hlo_value x, shape to, const int64_t *dimensions);
hlo_value hlo_iota(hlo_builder *b, shape s, int64_t dimension);
hlo_value hlo_empty(hlo_builder *b, shape s); /* the elements are undefined */
hlo_value hlo_reshape(hlo_builder *b, hlo_value x, int rank, const dim *dims);
hlo_value hlo_transpose(hlo_builder *b, hlo_value x, const int64_t *permutation);
hlo_value hlo_reverse(hlo_builder *b, hlo_value x, uint32_t n, const int64_t *dimensions);
/* Each list has one entry for each dimension.  If strides is NULL, all are 1. */
hlo_value hlo_slice(hlo_builder *b, hlo_value x, const dim *starts, const dim *limits, const int64_t *strides);
/* Takes [start, limit) of one dimension with stride 1, and the other dimensions whole. */
hlo_value hlo_slice_dim(hlo_builder *b, hlo_value x, int64_t dimension, dim start, dim limit);
/* interior may be NULL, which means none.  `value` is a scalar of x's type. */
hlo_value hlo_pad(hlo_builder *b, hlo_value x, hlo_value value, const int64_t *low, const int64_t *high,
                  const int64_t *interior);
hlo_value hlo_concatenate(hlo_builder *b, uint32_t n, const hlo_value *xs, int64_t dimension);
hlo_value hlo_dynamic_slice(hlo_builder *b, hlo_value x, hlo_value starts, const dim *sizes); /* starts is s64[rank] */
hlo_value hlo_dynamic_update_slice(hlo_builder *b, hlo_value x, hlo_value update, hlo_value starts);

typedef struct hlo_gather_dims { /* the names are StableHLO's; each list has as many entries as its n_ member says
                                    (n_batch for both lists of batch dimensions) */
  uint32_t n_offset, n_collapsed, n_batch, n_map;
  const int64_t *offset, *collapsed, *operand_batch, *indices_batch, *map;
  int64_t index_vector_dim;
} hlo_gather_dims;
hlo_value hlo_gather(hlo_builder *b, hlo_value x, hlo_value indices, const hlo_gather_dims *d, const dim *sizes);
/* In `d`, `offset` has StableHLO's update_window_dims, and `collapsed` its inserted_window_dims. */
hlo_value hlo_scatter(hlo_builder *b, hlo_value x, hlo_value indices, hlo_value updates, const hlo_gather_dims *d,
                      hlo_reducer reducer);
/* Returns the slices along `dimension` that the indices, s32 or s64, pick.  The indices may have any rank and must be
 * in range (ONNX Gather). */
hlo_value hlo_take(hlo_builder *b, hlo_value x, hlo_value indices, int64_t dimension);

/* Adds an instruction that fails the run if an integer of x is out of bounds.  Element k must be less than limits[k %
 * n].  It must be at least 0, or at least -limits[k % n] if `from_end` is true.  If n is 0, no element may be 0.
 * `what` is the name of x in the message. */
void hlo_check(hlo_builder *b, hlo_value x, const char *what, uint32_t n, const dim *limits, bool from_end);
/* Returns the seed of the run, u64[]. */
hlo_value hlo_run_seed(hlo_builder *b);
/* Returns random bits of shape s, u32 or u64, which are a function of the state (u64[3], or u64[1] for mt19937) and of
 * the position of each element. */
hlo_value hlo_rng(hlo_builder *b, hlo_value state, hlo_algorithm algorithm, shape s);

hlo_value hlo_reduce(hlo_builder *b, hlo_value x, hlo_reducer r, uint32_t n, const int64_t *dimensions);
hlo_value hlo_arg_reduce(hlo_builder *b, hlo_value x, int64_t dimension, bool largest, bool last);

typedef struct hlo_window { /* each list has one entry for each dimension of the operand; a NULL list has only 1s or, if
                               it is `low` or `high`, 0s; `window` is never NULL */
  const int64_t *window, *strides, *low, *high, *dilation;
} hlo_window;
hlo_value hlo_reduce_window(hlo_builder *b, hlo_value x, hlo_reducer r, const hlo_window *w);
hlo_value hlo_arg_reduce_window(hlo_builder *b, hlo_value x, const hlo_window *w);
hlo_value hlo_cumulative(hlo_builder *b, hlo_value x, hlo_reducer r, int64_t dimension, bool exclusive, bool backward);
/* Sorts all operands by the first one, stably, into out[n]. */
void hlo_sort(hlo_builder *b, uint32_t n, const hlo_value *xs, int64_t dimension, bool descending, hlo_value *out);

/* xs are corners, scores, most, overlap and optionally floor (see non-max-suppression in OPS.md).  out are the chosen
 * boxes, a row (batch, class, box) for each, and their number. */
void hlo_nms(hlo_builder *b, uint32_t n, const hlo_value *xs, int64_t limit, hlo_value out[2]);

typedef struct hlo_dot_dims {
  uint32_t n_batch, n_contract;
  const int64_t *lhs_batch, *rhs_batch, *lhs_contract, *rhs_contract;
} hlo_dot_dims;
hlo_value hlo_dot(hlo_builder *b, hlo_value x, hlo_value y, const hlo_dot_dims *d);
/* Returns numpy's matmul of two values of the same element type. */
hlo_value hlo_matmul(hlo_builder *b, hlo_value x, hlo_value y);

typedef struct hlo_conv_dims { /* each list has one entry for each spatial dimension; a NULL list has only 1s or, if it
                                  is `low` or `high`, 0s */
  const int64_t *strides, *low, *high, *lhs_dilation, *rhs_dilation;
  int64_t groups;
  hlo_layout layout;
} hlo_conv_dims;
hlo_value hlo_convolution(hlo_builder *b, hlo_value x, hlo_value kernel, const hlo_conv_dims *d);

/* The parameters and the roots of `body` are the carried values.  `condition` has the same parameters and one pred[]
 * root.  The results are in out[n]. */
void hlo_while(hlo_builder *b, hlo_computation *condition, hlo_computation *body, uint32_t n, const hlo_value *init,
               hlo_value *out);
/* `index` is pred[] (true takes branch 0, false branch 1) or s32[] (a number that is out of range takes the last
 * branch).  Each branch takes all args.  `out` are the results, which are the roots of the branch that is taken. */
void hlo_conditional(hlo_builder *b, hlo_value index, uint32_t n_branches, hlo_computation **branches, uint32_t n,
                     const hlo_value *args, hlo_value *out);
/* Builds a composite, which calls `decomposition`, a computation of the same module.  The row of `name` in
 * composites.def says what the operands, ints and floats are. */
void hlo_composite(hlo_builder *b, const char *name, hlo_computation *decomposition, uint32_t n, const hlo_value *args,
                   uint32_t n_ints, const int64_t *ints, uint32_t n_floats, const double *floats, hlo_value *out);

#endif
