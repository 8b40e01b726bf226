/* ref.h - what the files of the evaluator share.
 *
 * Each operation is a function that takes a ref_call.  It converts its operands' elements to one of five number
 * classes, computes in that class, and converts the results back. */
#ifndef BACKEND_REF_REF_H
#define BACKEND_REF_REF_H

#include "hlo/ir/ir.h"

/* --- one evaluation --- */

typedef struct ref_pool ref_pool;
typedef struct ref_slot ref_slot;

typedef struct ref_call {
  const hlo_instr *i;
  const literal *in; /* the operands, [n_operands] */
  literal *out;      /* the results, [n_results]; the caller sets their shapes, the operation their data */
  arena *a;          /* the arena of the results */
  arena **scratch;   /* the arena of temporary memory, which ref_scratch makes and returns; NULL before that */
  /* pool, in_slots and out_slots are NULL where ref_eval evaluates an instruction that calls no computation */
  ref_pool *pool;
  ref_slot **in_slots;
  ref_slot **out_slots;
  int64_t work; /* the number of elements processed since the last check of the budget (ref_work) */
} ref_call;

typedef status ref_fn(ref_call *c);

/* Allocates zeroed memory for result k. */
void *ref_result(ref_call *c, uint32_t k);
/* Makes result 0 share the memory of operand 0. */
void ref_alias(ref_call *c);
/* Returns an arena for temporary memory, which is freed after the operation. */
arena *ref_scratch(ref_call *c);
static inline status ref_check_budget(const ref_call *c) { return budget_check(arena_budget(c->a)); }
/* Must be called in every loop that may be long, with the number of elements that were processed.  It checks the budget
 * each time that 2^20 elements have been processed. */
static inline status ref_work(ref_call *c, int64_t n) {
  c->work += n;
  if (c->work < 1 << 20) {
    return NULL;
  }
  c->work = 0;
  return ref_check_budget(c);
}
status ref_unsupported(const hlo_instr *i);
/* Runs the function of the table in eval.c for the instruction's operation. */
status ref_run_op(ref_call *c);

/* --- computations (run.c) --- */

/* A pool manages the memory of values while computations run.  It consists of slots: reference-counted memory that
 * several values may share.  A slot of NULL stands for memory that the pool does not own.  The pool lives as long as
 * the arena `home`. */
ref_pool *ref_pool_create(arena *home);
ref_slot *ref_slot_retain(ref_slot *s);
void ref_slot_release(ref_pool *p, ref_slot *s);
/* Runs a computation with args[n_params] and the slots of their memory; arg_slots is NULL if the pool owns none of it.
 * Sets roots[n_roots] and root_slots; the caller gets a reference to each slot.  After a failure the pool must not be
 * used again; its memory is freed with the arena `home`. */
status ref_run(ref_pool *p, const hlo_computation *c, const literal *args, ref_slot *const *arg_slots, literal *roots,
               ref_slot **root_slots);

/* --- numbers (number.c) --- */

/* The number classes: the C types in which the evaluator computes (float, double, int64_t, uint64_t, double complex).
 * Elements of other types are converted to one of them. */
typedef enum ref_class { REF_F32, REF_F64, REF_S64, REF_U64, REF_C128, REF_CLASSES } ref_class;
enum { REF_CHUNK = 512 }; /* the number of elements computed at a time */

/* Room for a chunk of any class. */
typedef union ref_buffer {
  float f32[REF_CHUNK];
  double f64[2 * REF_CHUNK];
  int64_t s64[REF_CHUNK];
  uint64_t u64[REF_CHUNK];
} ref_buffer;

/* Returns the class in which elements of that type are computed: f32 for the small floats; pred and strings count as
 * unsigned. */
ref_class ref_class_of(dtype t);
/* Returns the class in which sums of elements of that type are kept: f64 for all floats. */
ref_class ref_sum_class(dtype t);
size_t ref_class_bytes(ref_class c);
/* Returns a pointer to elements [first, first + n) of `data`, as numbers of class c.  It points into `data` if no
 * conversion is needed, otherwise to `buffer`. */
const void *ref_load(dtype t, ref_class c, const void *data, int64_t first, int64_t n, void *buffer);
/* Returns the whole array as class c, converted into scratch memory if needed. */
const void *ref_load_all(ref_call *call, const literal *l, ref_class c);
/* Stores values of class c as elements of type t.  Rounds once; integers wrap. */
void ref_store(dtype t, ref_class c, const void *values, void *data, int64_t first, int64_t n);
/* Returns memory for the caller to compute result k in, as numbers of class c.  It is the result's own memory, or
 * scratch memory that ref_finish then converts to the result's type. */
void *ref_begin(ref_call *call, uint32_t k, ref_class c);
void ref_finish(ref_call *call, uint32_t k, ref_class c, void *values);
/* Compares two numbers: returns -1, 0 or 1.  NaN is larger than everything and equal to NaN.  Not for complex
 * numbers. */
int ref_order(ref_class c, const void *x, const void *y);
bool ref_is_nan(ref_class c, const void *x);

/* --- elementwise and reduction kernels --- */

/* Computes out[k] = f(x[k], y[k]) for k < n, or f(x[k]) if the operation has one operand; then y is NULL.  x, y and out
 * are of one class, but kernels whose results are pred write uint8_t.  `bits` is the width of the element type, which
 * shifts need. */
typedef void ref_kernel(const void *x, const void *y, void *out, int64_t n, int bits);
/* These return NULL if there is no kernel for the operation.  ref_binary_kernel is for operations of two operands,
 * ref_complex_kernel for class c128. */
ref_kernel *ref_binary_kernel(hlo_op op, ref_class c);
ref_kernel *ref_complex_kernel(hlo_op op);

/* Computes acc[k * acc_stride] = f(acc[k * acc_stride], x[k * x_stride]) for k < n. */
typedef void ref_row_kernel(void *acc, const void *x, int64_t acc_stride, int64_t x_stride, int64_t n);
ref_row_kernel *ref_row(hlo_reducer r, ref_class c);
/* Sets n values of class c to the reducer's initial value for elements of type t. */
void ref_identity(hlo_reducer r, dtype t, ref_class c, void *values, int64_t n);

/* --- moving elements (movement.c) --- */

/* A box of elements that is copied: its extents, and its strides in the destination (`to`) and in the source (`from`),
 * in elements.  Strides may be 0 or negative. */
typedef struct ref_box {
  int rank;
  int64_t extents[SHAPE_MAX_RANK], to[SHAPE_MAX_RANK], from[SHAPE_MAX_RANK];
} ref_box;
/* Copies one element of `size` bytes from src to dst for each index of the box. dst and src point to the element at
 * index 0. */
void ref_move(size_t size, const ref_box *b, void *dst, const void *src);
/* Advances to the next index below `extents` in row-major order.  Returns false after the last one; the index is then 0
 * again. */
bool ref_next(int rank, const int64_t *extents, int64_t *index);
int64_t ref_offset(int rank, const int64_t *strides, const int64_t *index);

/* The index arithmetic of gather and scatter.  The outer array is the result of a gather, or the updates of a scatter.
 * It has two kinds of dimensions.  The batch dims select an index vector, which says where a window of the operand
 * starts.  The window dims run over the elements of that window. */
typedef struct ref_windows {
  int n_batch, n_window, n_map;
  int batch_dim[SHAPE_MAX_RANK];        /* which dimension of the outer array batch dim k is */
  int64_t index_stride[SHAPE_MAX_RANK]; /* the stride of batch dim k in the array of indices */
  int outer_dim[SHAPE_MAX_RANK];        /* which dimension of the outer array window dim k is */
  int operand_dim[SHAPE_MAX_RANK];      /* which dimension of the operand window dim k is */
  const int64_t *map; /* [n_map]: the operand's dimension that each component of an index vector indexes */
  int64_t vector_stride;
  int batch_of[SHAPE_MAX_RANK]; /* the batch dim whose index is the start along dimension d of the operand; -1 if none
                                   is */
} ref_windows;
void ref_windows_init(ref_windows *w, const hlo_instr *i, const shape *outer);
/* Computes where the window for index `index` of the outer array starts in the operand.  The index vectors are data, so
 * a start may be any number, also one outside of the operand. */
void ref_windows_start(const ref_windows *w, const literal *indices, int rank, const int64_t *index, int64_t *start);
/* Returns x clamped to [0, room], and 0 if room is negative. */
static inline int64_t ref_clamp(int64_t x, int64_t room) { return x < 0 || room < 0 ? 0 : x > room ? room : x; }

/* --- lines: an array seen as [outer, n, inner] around one dimension --- */

typedef struct ref_lines {
  int64_t outer, n, inner;
} ref_lines;
static inline ref_lines ref_lines_of(const shape *s, int64_t dimension) {
  return (ref_lines){shape_product(s, 0, (int)dimension), s->dims[dimension],
                     shape_product(s, (int)dimension + 1, s->rank)};
}

/* --- the operations: the functions in the table in eval.c --- */

/* elementwise.c, complex.c */
/* Returns ref_unary or ref_binary if there is a kernel for the operation, otherwise NULL. */
ref_fn *ref_elementwise(hlo_op op);
ref_fn ref_unary, ref_binary, ref_is_finite, ref_convert, ref_compare, ref_select, ref_clamp_op, ref_bitcast;
ref_fn ref_part, ref_make_complex;
/* movement.c */
ref_fn ref_sizes, ref_empty, ref_copy, ref_iota, ref_broadcast, ref_transpose, ref_reverse, ref_slice, ref_pad,
    ref_concatenate;
ref_fn ref_dynamic_slice, ref_gather;
/* update.c */
ref_fn ref_dynamic_update_slice, ref_scatter;
/* reduce.c, window.c, scan_sort.c, contract.c */
ref_fn ref_reduce, ref_arg_reduce, ref_reduce_window, ref_arg_reduce_window, ref_cumulative, ref_sort, ref_nms;
ref_fn ref_dot, ref_convolution;
/* random.c, and ref_check of control.c */
ref_fn ref_run_seed, ref_rng;
ref_fn ref_check;
/* control.c */
ref_fn ref_constant, ref_while, ref_conditional, ref_called;

#endif
