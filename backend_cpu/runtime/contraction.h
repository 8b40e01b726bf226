/* contraction.h - convolutions and matrix products as library calls.  The compiler writes them into thunks, and the
 * runtime reads them from there.  The functions of the part "the library" are implemented in onednn*.c or
 * openblas.c. */
#ifndef BACKEND_CPU_RUNTIME_CONTRACTION_H
#define BACKEND_CPU_RUNTIME_CONTRACTION_H

#include "runtime/program/target.h"

enum { CPU_MAX_POST_OPS = 8, CPU_MAX_PARTS = 1024, CPU_MAX_SPATIAL = 3, CPU_MAX_RANK = CPU_MAX_SPATIAL + 2 };

/* An operation of the epilogue that the same call computes. x is the value computed so far. */
typedef enum cpu_post_op_kind {
  CPU_POST_OP_SUM,    /* x + what was in the result's buffer before the call */
  CPU_POST_OP_RELU,   /* x > 0 ? x : alpha*x */
  CPU_POST_OP_CLIP,   /* min(max(x, alpha), beta) */
  CPU_POST_OP_LINEAR, /* alpha*x + beta */
  CPU_POST_OP_LOGISTIC,
  CPU_POST_OP_SWISH, /* x * logistic(alpha*x) */
  CPU_POST_OP_TANH,
  CPU_POST_OP_ELU, /* x > 0 ? x : alpha*(exp(x)-1) */
  CPU_POST_OP_GELU_ERF,
  CPU_POST_OP_GELU_TANH,
  CPU_POST_OP_HARDSWISH, /* x * min(max(x/6 + 1/2, 0), 1) */
  CPU_POST_OP_ABS,
  CPU_POST_OP_SQRT,
  CPU_POST_OP_EXP,
  CPU_POST_OP_ROUND, /* to the nearest integer, ties to even */
  CPU_POST_OP_LAST_UNARY = CPU_POST_OP_ROUND,
  CPU_POST_OP_ADD, /* this kind and those below compute x op array, element by element */
  CPU_POST_OP_SUB,
  CPU_POST_OP_MUL,
  CPU_POST_OP_DIV,
  CPU_POST_OP_MAX,
  CPU_POST_OP_MIN,
  CPU_POST_OP_COUNT
} cpu_post_op_kind;

typedef struct cpu_post_op {
  cpu_post_op_kind kind;
  uint32_t dims; /* a mask of the result's dimensions that the array has; it is broadcast along the others */
  double alpha, beta;
} cpu_post_op;

typedef enum cpu_contraction_op { CPU_CONVOLUTION, CPU_MATMUL } cpu_contraction_op;

/* All members are int64_t, since they are written to a thunk's config one after the other. */
typedef struct cpu_geometry {
  int64_t op;
  int64_t has_bias; /* the bias has one number per output channel or column */
  int64_t packed;   /* the weights are a constant in the library's own format */
  /* the number of parts of the result (cpu_contraction_axis), each computed by a library call on one thread */
  int64_t parts;
  /* Dtypes.  Either all are f32, or lhs is u8 or s8 and the weights are s8 and packed.  In the second case the bias is
   * s32, post-ops are computed in f32, and a result that is not f32 is rounded to the nearest and saturated. */
  int64_t lhs_type, weights_type, result_type;
  /* If this is DTYPE_BF16 or DTYPE_F16, the f32 operands are rounded to this type before they are multiplied: the
   * weights when they are packed, lhs in each run.  Sums, bias and post-ops are f32.  If this is DTYPE_INVALID, nothing
   * is rounded. */
  int64_t reduced_precision;
  /* For a convolution.  Its weights are [O, I/groups, spatial...]. */
  int64_t spatial, channels_last, batch, in_channels, out_channels, groups;
  int64_t in[CPU_MAX_SPATIAL], out[CPU_MAX_SPATIAL], kernel[CPU_MAX_SPATIAL];
  int64_t strides[CPU_MAX_SPATIAL], low[CPU_MAX_SPATIAL], high[CPU_MAX_SPATIAL], dilation[CPU_MAX_SPATIAL];
  /* For a matrix product, which uses `batch` as well: [m, k] x [k, n] gives a dense [m, n]. lhs_* and rhs_* are strides
   * in elements. */
  int64_t m, k, n, lhs_batch_stride, lhs_m, lhs_k, rhs_batch_stride, rhs_k, rhs_n;
} cpu_geometry;

/* A library call.  The buffers of its thunk are lhs, weights, the bias if there is one, the arrays of post-ops (f32) in
 * order, the result, and scratch memory if there is any. */
typedef struct cpu_contraction {
  cpu_geometry g;
  uint32_t n_post_ops;
  cpu_post_op post_ops[CPU_MAX_POST_OPS];
} cpu_contraction;

/* Write a call to a thunk's config, and read it from there.  Reading fails with INVALID_FILE if the bytes are damaged;
 * the message names `what`. */
void cpu_contraction_write(rt_writer *w, const cpu_contraction *c);
STATUS_MUST_USE status cpu_contraction_read(rt_reader *r, arena *a, const char *what, cpu_contraction *c);
/* Sets dims to the extents of the result, in the order of the dimensions in memory, and returns the rank. */
int cpu_contraction_dims(const cpu_contraction *c, int64_t *dims);
/* Returns the dimension of the result along which it may be divided into parts, or -1 if there is none.  All dimensions
 * before it are 1, so that parts are contiguous. */
int cpu_contraction_axis(const cpu_contraction *c);
/* Returns the number of arrays that post-ops read. */
uint32_t cpu_contraction_arrays(const cpu_contraction *c);
/* Returns a mask with one bit: that of the result's dimension of channels or, for a matrix product, of columns. */
static inline uint32_t cpu_channels_mask(const cpu_geometry *g) {
  return g->op == CPU_MATMUL ? 4 : g->channels_last ? 1u << (g->spatial + 1) : 2;
}
/* Returns true if the post-op reads an array that has a dimension other than the channels. */
static inline bool cpu_reads_by_position(const cpu_geometry *g, const cpu_post_op *post_op) {
  return post_op->kind > CPU_POST_OP_LAST_UNARY && (post_op->dims & ~cpu_channels_mask(g));
}
static inline bool cpu_sums_bytes(const cpu_geometry *g) { return g->weights_type == DTYPE_S8; }
/* The bytes of an element of the bias, which is f32 or s32. */
enum { CPU_BIAS_BYTES = 4 };

/* --- the library --- */

/* Returns the name and version of the library with which onnx-xla was built, such as "oneDNN 2.6.3", or "". */
const char *cpu_library_of_build(void);
/* Returns true if onnx-xla was built with a library which, as far as is known, can be opened.  Does not open it:
 * loading a library takes milliseconds and megabytes, and many programs never call it. */
bool cpu_library_may_open(void);
/* Opens the library, unless it is open, as all functions below do, too.  Fails with UNSUPPORTED if onnx-xla was built
 * without a library, or if the library is not installed or finds no processor that it can use, and with RESOURCE if
 * memory is short. */
STATUS_MUST_USE status cpu_library_open(void);
/* Returns the library's name and version, such as "oneDNN 2.6.3 (cpu isa 63)", or NULL if it cannot be opened. */
const char *cpu_library_name(void);
/* Returns true if the library only multiplies plain matrices: no convolutions, bias, post-ops or packed weights. */
bool cpu_library_is_blas(void);
/* Returns true if the library multiplies bytes without saturating intermediate sums. */
bool cpu_library_has_bytes(void);

/* Returns true if the library's implementation of this contraction with its post-ops is more than plain loops.  Takes
 * about ten microseconds, since no code is generated. */
bool cpu_library_is_fast(const cpu_contraction *c);

typedef struct cpu_call cpu_call; /* a library call that is ready to run, from many threads at once */

typedef struct cpu_call_info {
  const char *implementation; /* the library's name for the implementation it uses */
  bool fast;                  /* false if the library has only plain loops, which the kernels of emit/ outrun */
  uint64_t scratch_bytes, weights_bytes;
  rt_span format; /* the format of packed weights; equal bytes mean equal formats */
} cpu_call_info;

/* Makes a call on the arena; the library's handles are destroyed with the arena.  `format` is the format of packed
 * weights.  It is NULL while compiling, when the library chooses a format, and if the weights are not packed.  Fails
 * with UNSUPPORTED if the library cannot compute the contraction, or not with weights of that format. */
STATUS_MUST_USE status cpu_call_create(arena *a, const cpu_contraction *c, const rt_span *format, cpu_call **out,
                                       cpu_call_info *info);
/* Packs weights that are laid out as in HLO (for a matrix product: with strides rhs_k and rhs_n) into
 * info.weights_bytes at `packed`. */
STATUS_MUST_USE status cpu_call_pack(const cpu_call *c, const void *plain, void *packed);
/* Runs the call.  `buffers` are the thunk's buffers except for scratch memory. */
STATUS_MUST_USE status cpu_call_run(const cpu_call *c, const rt_run *r, void *const *buffers, void *scratch);

#endif
