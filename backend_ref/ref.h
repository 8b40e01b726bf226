/* ref.h - what the files of the evaluator share.
 *
 * An operation is a function that takes a ref_call.  Element types are data: arrays are brought into one of five
 * classes of numbers, computed there and brought back. */
#ifndef BACKEND_REF_REF_H
#define BACKEND_REF_REF_H

#include "hlo/ir/ir.h"

/* --- one evaluation --- */

typedef struct ref_pool ref_pool;
typedef struct ref_slot ref_slot;

typedef struct ref_call {
  const hlo_instr *i;
  const literal *in; /* [n_operands] */
  literal *out;      /* [n_results]: shapes are set, the function sets data */
  arena *a;          /* for results */
  arena **scratch;   /* use ref_scratch */
  ref_pool *pool;    /* NULL for an instruction that calls nothing and is evaluated alone, as are the next two */
  ref_slot **in_slots;
  ref_slot **out_slots;
  int64_t work; /* since the budget was looked at: ref_work */
} ref_call;

typedef status ref_fn(ref_call *c);

/* Memory for result k, zeroed. */
void *ref_result(ref_call *c, uint32_t k);
/* Result 0 has the bits of operand 0: no copy. */
void ref_alias(ref_call *c);
/* Temporary memory: freed after the operation. */
arena *ref_scratch(ref_call *c);
static inline status ref_check_budget(const ref_call *c) { return budget_check(arena_budget(c->a)); }
/* In every loop that may be long: n elements more have been looked at.  Now and then it looks at the budget. */
static inline status ref_work(ref_call *c, int64_t n) {
  c->work += n;
  if (c->work < 1 << 20) {
    return NULL;
  }
  c->work = 0;
  return ref_check_budget(c);
}
status ref_unsupported(const hlo_instr *i);
/* The table's function for the instruction, run. */
status ref_run_op(ref_call *c);

/* --- computations (run.c) --- */

/* Memory of the values of running computations.  A slot is memory that several values may share, counted; NULL
 * is memory of somebody else.  Everything dies with the pool, which dies with its arena. */
ref_pool *ref_pool_create(arena *home);
ref_slot *ref_slot_retain(ref_slot *s);
void ref_slot_release(ref_pool *p, ref_slot *s);
/* args[n_params] with their slots (NULL: all are somebody else's); roots[n_roots] come with a reference each.
 * After a failure the pool is good for nothing but being destroyed. */
status ref_run(ref_pool *p, const hlo_computation *c, const literal *args, ref_slot *const *arg_slots, literal *roots,
               ref_slot **root_slots);

/* --- numbers (number.c) --- */

typedef enum ref_class { REF_F32, REF_F64, REF_S64, REF_U64, REF_C128, REF_CLASSES } ref_class;
enum { REF_CHUNK = 512 }; /* elements computed at a time */

/* Room for a chunk of any class. */
typedef union ref_buffer {
  float f32[REF_CHUNK];
  double f64[2 * REF_CHUNK];
  int64_t s64[REF_CHUNK];
  uint64_t u64[REF_CHUNK];
} ref_buffer;

/* Where arithmetic on elements of that type is done: f32 for the small floats; pred and strings count as
 * unsigned. */
ref_class ref_class_of(dtype t);
/* Where sums of them are kept: f64 for all floats. */
ref_class ref_sum_class(dtype t);
size_t ref_class_bytes(ref_class c);
/* Elements [first, first + n) of data as class c: in `buffer`, or data itself where no conversion is needed. */
const void *ref_load(dtype t, ref_class c, const void *data, int64_t first, int64_t n, void *buffer);
/* The whole array as class c, converted into scratch memory if need be. */
const void *ref_load_all(ref_call *call, const literal *l, ref_class c);
/* The reverse: rounds once, integers wrap. */
void ref_store(dtype t, ref_class c, const void *values, void *data, int64_t first, int64_t n);
/* Where to compute result k in class c: its own memory, or scratch that ref_finish stores into it. */
void *ref_begin(ref_call *call, uint32_t k, ref_class c);
void ref_finish(ref_call *call, uint32_t k, ref_class c, void *values);
/* -1, 0, 1; NaN is larger than everything and equal to NaN.  Not for complex numbers. */
int ref_order(ref_class c, const void *x, const void *y);
bool ref_is_nan(ref_class c, const void *x);

/* --- elementwise and reduction kernels --- */

/* out[k] = f(x[k], y[k]); bits is the width of the element type (shifts).  All of one class. */
typedef void ref_kernel(const void *x, const void *y, void *out, int64_t n, int bits);
/* NULL if the class does not have the operation. */
ref_kernel *ref_binary_kernel(hlo_op op, ref_class c);
ref_kernel *ref_complex_kernel(hlo_op op);

/* acc[k * acc_stride] = f(acc[k * acc_stride], x[k * x_stride]) for k below n. */
typedef void ref_row_kernel(void *acc, const void *x, int64_t acc_stride, int64_t x_stride, int64_t n);
ref_row_kernel *ref_row(hlo_reducer r, ref_class c);
/* Sets n values of class c to what the reducer starts with for elements of type t. */
void ref_identity(hlo_reducer r, dtype t, ref_class c, void *values, int64_t n);

/* --- moving elements (movement.c) --- */

/* A box of elements: extents, and strides in elements on both sides (0 and negative ones are fine). */
typedef struct ref_box {
  int rank;
  int64_t extents[SHAPE_MAX_RANK], to[SHAPE_MAX_RANK], from[SHAPE_MAX_RANK];
} ref_box;
/* Moves one element of `size` bytes from src to dst for each index of the box; they point at index 0. */
void ref_move(size_t size, const ref_box *b, void *dst, const void *src);
/* Next index below `extents` in row-major order; false (and all zeros) after the last. */
bool ref_next(int rank, const int64_t *extents, int64_t *index);
int64_t ref_offset(int rank, const int64_t *strides, const int64_t *index);

/* How gather and scatter address: the outer array (gather's result, scatter's updates) has batch dims, which pick an
 * index vector, and window dims, which run over a window of the operand. */
typedef struct ref_windows {
  int n_batch, n_window, n_map;
  int batch_dim[SHAPE_MAX_RANK];        /* dim of the outer array */
  int64_t index_stride[SHAPE_MAX_RANK]; /* of a batch dim, in indices */
  int outer_dim[SHAPE_MAX_RANK];        /* the dimension of the outer array that is window dimension k */
  int operand_dim[SHAPE_MAX_RANK];      /* the dimension of the operand that is window dimension k */
  const int64_t *map;                   /* index vector component -> operand dim */
  int64_t vector_stride;
  int batch_of[SHAPE_MAX_RANK]; /* batch dim that is operand dim d's start, or -1 */
} ref_windows;
void ref_windows_init(ref_windows *w, const hlo_instr *i, const shape *outer);
/* The start of the window of outer index `index`, as the indices say: anything. */
void ref_windows_start(const ref_windows *w, const literal *indices, int rank, const int64_t *index, int64_t *start);
/* x within [0, room]. */
static inline int64_t ref_clamp(int64_t x, int64_t room) { return x < 0 || room < 0 ? 0 : x > room ? room : x; }

/* --- lines: an array as [outer, n, inner] around one dimension --- */

typedef struct ref_lines {
  int64_t outer, n, inner;
} ref_lines;
static inline ref_lines ref_lines_of(const shape *s, int64_t dimension) {
  return (ref_lines){shape_product(s, 0, (int)dimension), s->dims[dimension],
                     shape_product(s, (int)dimension + 1, s->rank)};
}

/* --- the operations: what the rows of the table in eval.c name --- */

/* elementwise.c, complex.c */
/* ref_unary or ref_binary if there is a kernel for the operation, else NULL. */
ref_fn *ref_elementwise(hlo_op op);
ref_fn ref_unary, ref_binary, ref_is_finite, ref_convert, ref_compare, ref_select, ref_clamp_op, ref_bitcast;
ref_fn ref_part, ref_make_complex;
/* movement.c */
ref_fn ref_empty, ref_copy, ref_iota, ref_broadcast, ref_transpose, ref_reverse, ref_slice, ref_pad, ref_concatenate;
ref_fn ref_dynamic_slice, ref_gather;
/* update.c */
ref_fn ref_dynamic_update_slice, ref_scatter;
/* reduce.c, window.c, scan_sort.c, contract.c */
ref_fn ref_reduce, ref_arg_reduce, ref_reduce_window, ref_arg_reduce_window, ref_cumulative, ref_sort, ref_nms;
ref_fn ref_dot, ref_convolution;
/* random.c */
ref_fn ref_run_seed, ref_rng;
ref_fn ref_check;
/* control.c */
ref_fn ref_constant, ref_while, ref_conditional, ref_called;

#endif
