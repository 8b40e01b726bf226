/* gemm.h - the micro-kernel of matrix products, as in BLIS: a block of C that stays in registers.  Callers write the
 * loops around it.
 *
 *     C[rows][vectors * lanes] += A[rows][k] * B[k][vectors * lanes]
 *
 * C is rows * vectors LLVM vectors of `lanes` lanes, row by row.  The caller passes in their initial values, which are
 * zeros, a bias or the sums of an earlier part of k, and gets the sums back; only the caller stores them.  For each k,
 * each vector of B is loaded once, and each element of A is loaded once and broadcast to all lanes.  Several loops over
 * k one after the other (for the taps of a convolution, or for blocks of a long k) pass the sums on as carried values
 * (emit_loop).
 *
 * B may be small integers (emit_small), which are converted to f32 on the way.  A row of B is converted once for all
 * rows of A.
 *
 * A and B may be small integers in dot groups: four bytes, or two s16, that follow each other along k are one element
 * of 32 bits, and each k adds the four or two products of a group.
 *
 * Products are added in the order of k, with one rounding for each if the target has a fused multiply-add.  So the bits
 * of a column depend neither on the size of the block nor on the number of vectors, and callers may cut a product into
 * blocks as they like. */
#ifndef EMIT_PRODUCT_GEMM_H
#define EMIT_PRODUCT_GEMM_H

#include "base/tensor/dtype.h"
#include "emit/llvm/ir.h"

enum {
  EMIT_GEMM_ROWS = 28,
  EMIT_GEMM_VECTORS = 8,
  EMIT_GEMM_SUMS = 48
}; /* the limits of one block; EMIT_GEMM_SUMS limits rows * vectors */

/* The number of vectors of sums below which a block waits for the latency of its multiply-adds: two start in a cycle,
 * and each takes 4 or, on Zen 2, 5 cycles. */
enum { EMIT_GEMM_LATENCY = 10 };

/* The size of a block: its rows, and its columns counted in vectors of `lanes` lanes.  It must fit the registers
 * (emit_gemm_fits). */
typedef struct emit_gemm_tile {
  int rows, vectors, lanes;
} emit_gemm_tile;

/* Returns the best block size for an m x n product of elements of `type`, which the caller cuts into such blocks by
 * emit_gemm_cut.  It is the size for which the fewest cycles are estimated: one that needs few loads per multiplication
 * and has enough sums to hide the latency of a multiplication.  m and n are at least 1.  `held` is how many vectors
 * of columns of B a core's second-level cache holds for all k; wider blocks read B from a slower one. */
emit_gemm_tile emit_gemm_fit(const emit_target *t, dtype type, int64_t m, int64_t n, int64_t held);

/* Returns how many registers a block needs: for its sums, a row of B and an element of A.  A block of one row uses each
 * vector of B once, as it is loaded. */
int64_t emit_gemm_needed_registers(int64_t rows, int64_t vectors);

/* Returns true if the registers can hold a block of this size (emit_gemm_needed_registers), and its rows and sums are
 * within the limits above. */
bool emit_gemm_fits(const emit_target *t, dtype type, int lanes, int64_t rows, int64_t vectors);

/* A division of n into as few parts as possible, none larger than `most`: first n_large parts of size `large`, then
 * n_small parts of size large - 1. */
typedef struct emit_gemm_parts {
  int64_t n_large, n_small;
  int large;
} emit_gemm_parts;
emit_gemm_parts emit_gemm_cut(int64_t n, int most);

/* Returns the number of lanes in which products of `type` are summed: the target's vector width in the type of the
 * sums. */
int emit_gemm_lanes(const emit_target *t, dtype type);
/* Returns true if the target has instructions for dot groups of `dot` (emit_gemm.dot) in vectors of `lanes` groups. */
bool emit_gemm_has_dots(const emit_target *t, dtype dot, int lanes);
/* Returns how many registers of the target a block may use for its sums, a row of B and an element of A.  Products of
 * dot groups may take one more before they are added, and converting small integers (`small`) takes some.  `dot` is as
 * in emit_gemm. */
int emit_gemm_registers(const emit_target *t, dtype dot, bool small);
/* Returns true for the types that blocks support: f32, f64, and f16 and bf16, whose sums are f32. */
bool emit_gemm_takes(dtype type);

/* Small integers in place of f32 elements of B.  Their panels hold bytes; `offset` was added to the integers when they
 * were packed, so that none is negative.  With 8 bits there is a row of `lanes` bytes for each k.  With 4 bits, a row
 * of `lanes` bytes holds the integers of two k, those of the first k in the low halves of the bytes.  AVX-512 converts
 * 16 integers of 4 bits to f32 with one instruction, which looks them up in a register. */
typedef struct emit_small {
  int bits; /* 4 or 8; 0 means that B has no small integers but elements of `type` */
  int offset;
  const LLVMValueRef *zero; /* for each vector of columns, the zero points in f32; NULL if there are none */
} emit_small;

/* Memory to prefetch, such as the next panels of B: the cache lines of `bytes` bytes (i64) from `from` on.  They are
 * prefetched `lines` at a time, spread evenly over the loop over k, so that the last ones are prefetched as the loop
 * ends.  They go into the first-level cache, since prefetching into the second-level cache gains nothing.  If `from` is
 * NULL, or k is so small that there is no loop, nothing is prefetched. */
typedef struct emit_fetch {
  LLVMValueRef from, bytes;
  int lines;
} emit_fetch;

/* The operands of a block.  Strides are counted in elements; any value is allowed. */
typedef struct emit_gemm {
  emit_gemm_tile tile;
  dtype type;          /* the type of A and B in memory; sums have the type emit_compute_type(type) */
  LLVMValueRef a, b;   /* pointers to A(0, 0) and B(0, 0) */
  const int64_t *a_at; /* row r of A begins a_at[r] elements after a; NULL means r * a_row */
  int64_t a_row, a_k;
  int64_t b_k;      /* the distance between rows of B, whose vectors are contiguous; not used with `small` */
  int64_t b_vector; /* the distance between vectors of columns; with `small` in bytes */
  /* Distances that are not constants (i64), in place of a_at and a_row, a_k, b_k and b_vector; NULL where the distance
   * is a constant.  `ahead` can be used only if b_k and b_vector are constants. */
  LLVMValueRef a_row_size, a_k_size, b_k_size, b_vector_size;
  emit_small small;
  /* The type of A's integers in dot groups: U8 or S8, for which those of B are S8; or S16, as those of B are then.
   * `type` is S32.  DTYPE_INVALID means that elements are numbers of `type`. */
  dtype dot;
  bool dot_flips; /* whether the bytes of A must be converted, since the dot instruction reads bytes of the other
                      signedness */
  /* A distance in elements (i64).  For each k, the vectors at this distance after the first n_ahead vectors of B are
   * prefetched into the second-level cache.  NULL means that nothing is prefetched. */
  LLVMValueRef ahead;
  int n_ahead;
  emit_fetch fetch;
  LLVMValueRef k; /* the number of products in each sum (or of dot groups), an i64 of at least 0; a constant gives
                     shorter code, and `small` requires one */
  int unroll;     /* how many k an iteration of the loop handles; 0 lets the emitter choose */
} emit_gemm;

/* Sets the sums to zero. */
void emit_gemm_zero(const emit_ir *w, const emit_gemm *g, LLVMValueRef *sums);
/* The dot instruction of a target reads the bytes of A as u8 or as s8 (emit_target.signed_dots).  Bytes of the other
 * type are converted by adding or subtracting 128.  To make up for that, each sum must start at a multiple of the sum
 * of its column of B.  Returns the factor of that multiple, which is 0 if `dot` is a type that an instruction reads. */
int emit_gemm_dot_offset(const emit_target *t, dtype dot);
/* Returns emit_fetch.lines for `blocks` blocks of this size that together prefetch the next panels of B, which are as
 * large as those that the blocks read. */
int emit_gemm_lines(const emit_gemm_tile *t, dtype type, int blocks);
/* Writes the loop over k.  If B has small integers, or if g->fetch is used, g->k must be a constant.  sums[rows *
 * vectors] are input and output. */
void emit_gemm_block(const emit_ir *w, const emit_gemm *g, LLVMValueRef *sums);

/* One of the loops over the products of a sum: it has n iterations; a and b are the distances in A and in B from one
 * iteration to the next, in elements.  All are i64. */
typedef struct emit_gemm_loop {
  LLVMValueRef n, a, b;
} emit_gemm_loop;
/* Writes the nest of the n loops, of which the first is the outermost; n is at least 1.  g->k and the distances from
 * one k to the next are those of the innermost loop and need not be set. */
void emit_gemm_nest(const emit_ir *w, const emit_gemm *g, int n, const emit_gemm_loop *loops, LLVMValueRef *sums);

/* Returns part `number` of n equal parts of the memory that is to be prefetched. */
emit_fetch emit_fetch_part(const emit_ir *w, const emit_fetch *f, LLVMValueRef number, LLVMValueRef n);

/* The distance between the rows of a tile in memory, in vectors. */
enum { EMIT_GEMM_TILE_VECTORS = EMIT_GEMM_VECTORS };

/* Writes the sums to `tile`: vector v of row r to vector r * EMIT_GEMM_TILE_VECTORS + v. */
void emit_gemm_store(const emit_ir *w, const emit_gemm *g, const LLVMValueRef *sums, LLVMValueRef tile);

#endif
