/* contraction.h - convolutions and matrix products as a library computes them: what both halves of the target say to
 * each other about them, and what hides the library (onednn*.c, openblas.c). */
#ifndef BACKEND_CPU_RUNTIME_CONTRACTION_H
#define BACKEND_CPU_RUNTIME_CONTRACTION_H

#include "runtime/program/target.h"

enum { CPU_MAX_POST_OPS = 8, CPU_MAX_PARTS = 1024, CPU_MAX_SPATIAL = 3, CPU_MAX_RANK = CPU_MAX_SPATIAL + 2 };

/* What follows the contraction in the same call, on the value x so far. */
typedef enum cpu_post_op_kind {
  CPU_POST_OP_SUM,    /* x + what the result's buffer held before */
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
  CPU_POST_OP_ROUND, /* to the nearest whole number, of two the even one */
  CPU_POST_OP_LAST_UNARY = CPU_POST_OP_ROUND,
  CPU_POST_OP_ADD, /* from here on: x op array */
  CPU_POST_OP_SUB,
  CPU_POST_OP_MUL,
  CPU_POST_OP_DIV,
  CPU_POST_OP_MAX,
  CPU_POST_OP_MIN,
  CPU_POST_OP_COUNT
} cpu_post_op_kind;

typedef struct cpu_post_op {
  cpu_post_op_kind kind;
  uint32_t dims; /* of an array: bit d says that it has dimension d of the result, otherwise it is stretched */
  double alpha, beta;
} cpu_post_op;

typedef enum cpu_contraction_op { CPU_CONVOLUTION, CPU_MATMUL } cpu_contraction_op;

/* Members are int64_t only: they are written to a thunk's config as they stand. */
typedef struct cpu_geometry {
  int64_t op;
  int64_t has_bias; /* one number an output channel or column */
  int64_t packed;   /* the weights are a constant in the library's own format */
  int64_t parts;    /* library calls that the result is divided into, one thread each: see cpu_contraction_axis */
  /* dtypes: all f32, or lhs u8 or s8, weights s8 and packed: then bias is s32, posts are computed in f32, and a result
   * that is not f32 is rounded to the nearest and cut off at its type's ends. */
  int64_t lhs_type, weights_type, result_type;
  /* DTYPE_BF16 or DTYPE_F16: operands are f32, but rounded to this type before they are multiplied; the weights when
   * they are packed, the other one in each run.  Sums, bias and posts are f32.  DTYPE_INVALID: nothing is rounded. */
  int64_t reduced_precision;
  /* convolution; kernel [O, I/groups, spatial...] */
  int64_t spatial, channels_last, batch, in_channels, out_channels, groups;
  int64_t in[CPU_MAX_SPATIAL], out[CPU_MAX_SPATIAL], kernel[CPU_MAX_SPATIAL];
  int64_t strides[CPU_MAX_SPATIAL], low[CPU_MAX_SPATIAL], high[CPU_MAX_SPATIAL], dilation[CPU_MAX_SPATIAL];
  /* matrix product: `batch` (above) of [m, k] x [k, n] to dense [m, n]; strides in elements */
  int64_t m, k, n, lhs_batch_stride, lhs_m, lhs_k, rhs_batch_stride, rhs_k, rhs_n;
} cpu_geometry;

/* Arrays of posts are f32.  Buffers of its thunk: lhs, weights, bias if there is one, the posts' arrays in order; the
 * result; scratch if there is any. */
typedef struct cpu_contraction {
  cpu_geometry g;
  uint32_t n_post_ops;
  cpu_post_op post_ops[CPU_MAX_POST_OPS];
} cpu_contraction;

void cpu_contraction_write(rt_writer *w, const cpu_contraction *c);
STATUS_MUST_USE status cpu_contraction_read(rt_reader *r, arena *a, const char *what, cpu_contraction *c);
/* Dimensions of the result as it lies in memory; gives the rank. */
int cpu_contraction_dims(const cpu_contraction *c, int64_t *dims);
/* The dimension of the result that may be divided: all before it are 1, so that parts are contiguous.  -1: none. */
int cpu_contraction_axis(const cpu_contraction *c);
/* Arrays that posts read. */
uint32_t cpu_contraction_arrays(const cpu_contraction *c);
/* The dimension of the result, as it lies in memory, that counts channels (of a matrix product: columns), as a mask. */
static inline uint32_t cpu_channels_mask(const cpu_geometry *g) {
  return g->op == CPU_MATMUL ? 4 : g->channels_last ? 1u << (g->spatial + 1) : 2;
}
/* Returns true if the post reads an array that differs along more than the channels. */
static inline bool cpu_reads_by_position(const cpu_geometry *g, const cpu_post_op *post_op) {
  return post_op->kind > CPU_POST_OP_LAST_UNARY && (post_op->dims & ~cpu_channels_mask(g));
}
static inline bool cpu_sums_bytes(const cpu_geometry *g) { return g->weights_type == DTYPE_S8; }
/* Bytes of an element of the bias. */
enum { CPU_BIAS_BYTES = 4 };

/* --- the library --- */

/* "oneDNN 2.6.3 avx512_core_bf16", NULL when built without any. */
const char *cpu_library_name(void);
/* It only multiplies plain matrices: no convolutions, bias, posts or packed weights. */
bool cpu_library_is_blas(void);
/* It has products of bytes, whose sums nothing saturates before the end. */
bool cpu_library_has_bytes(void);

/* Returns true if the library computes this contraction, with its posts, by more than plain loops.  Takes some ten
 * microseconds: nothing is generated. */
bool cpu_library_is_fast(const cpu_contraction *c);

typedef struct cpu_call cpu_call; /* ready to run, from many threads at once */

typedef struct cpu_call_info {
  const char *implementation; /* the library's word for it */
  bool fast;                  /* false: the library's plain loops; better do it ourselves */
  uint64_t scratch_bytes, weights_bytes;
  rt_span format; /* of packed weights: equal bytes, equal format */
} cpu_call_info;

/* format: of the weights as they are packed; NULL while compiling: the library chooses.  Handles are cleanups of the
 * arena. UNSUPPORTED when the library cannot do it, or not with that format. */
STATUS_MUST_USE status cpu_call_create(arena *a, const cpu_contraction *c, const rt_span *format, cpu_call **out,
                                       cpu_call_info *info);
/* Plain weights, as HLO has them (a matrix product's: strides rhs_k, rhs_n), into weights_bytes. */
STATUS_MUST_USE status cpu_call_pack(const cpu_call *c, const void *plain, void *packed);
/* buffers as the thunk has them, without scratch. */
STATUS_MUST_USE status cpu_call_run(const cpu_call *c, const rt_run *r, void *const *buffers, void *scratch);

#endif
