/* gemm.h - a matrix product of a block that stays in registers, to be written inside of a caller's own loops.
 *
 *     C[rows][vectors * lanes] += A[rows][k] * B[k][vectors * lanes]
 *
 * C is rows * vectors values (LLVM vectors of `lanes`, row by row) that the caller gives and gets: it starts them at
 * zero, at a bias or where an earlier part of k ended, and does with the sums what it likes; only its own stores touch
 * memory.  For each k a vector of B is loaded once a column vector and an element of A once a row, spread to all lanes.
 * Loops over k that follow one another (taps of a kernel, blocks of a long k) hand the sums on as carried values
 * (emit_loop).
 *
 * B may be small integers (emit_small), which become f32 on the way: what a row of B costs more is shared by all rows
 * of A.
 *
 * A and B may be bytes (quads): four that follow each other in k are one element of s32, and a step of k adds four
 * products.
 *
 * Sums are in order of k, one rounding a step where the target has a fused multiply-add: a column's bits depend neither
 * on the block's size nor on the number of vectors, so callers may cut a product into blocks as they like. */
#ifndef EMIT_CONTRACTION_GEMM_H
#define EMIT_CONTRACTION_GEMM_H

#include "base/tensor/dtype.h"
#include "emit/llvm/ir.h"

enum {
  EMIT_GEMM_ROWS = 28,
  EMIT_GEMM_VECTORS = 8,
  EMIT_GEMM_SUMS = 48
}; /* of one block at most; sums: rows * vectors */

/* How many rows and vectors of columns: what a block's sums, one row of B and an element of A fill of the registers. */
typedef struct emit_gemm_tile {
  int rows, vectors, lanes;
} emit_gemm_tile;

/* The largest block for an m x n product of elements of `type`, which is then to be cut with emit_gemm_cut: the one
 * that loads least for its multiplications, with sums enough to hide their latency.  m, n >= 1. */
emit_gemm_tile emit_gemm_fit(const emit_target *t, dtype type, int64_t m, int64_t n);

/* n in as few parts of at most `most` as there can be: `n_large` of `large` first, then `n_small` of large - 1. */
typedef struct emit_gemm_parts {
  int64_t n_large, n_small;
  int large;
} emit_gemm_parts;
emit_gemm_parts emit_gemm_cut(int64_t n, int most);

/* Lanes that products of `type` are summed in: the target's width in the type of the sums. */
int emit_gemm_lanes(const emit_target *t, dtype type);
/* Is there a block for it?  f32, f64; f16 and bf16, whose sums are f32. */
bool emit_gemm_takes(dtype type);

/* Integers of up to 4 or 8 bits in panels of bytes, offset so that none is negative: of 8 bits a row of `lanes` bytes
 * for each k; of 4 bits one for two, the first k in the low halves.  They are put into the last digits of
 * EMIT_SMALL_BASE, which makes them f32 without a conversion, and zero[v] is subtracted: the base and what stands for
 * 0. */
#define EMIT_SMALL_BASE 0x1p23
typedef struct emit_small {
  int bits;                 /* 4, 8; 0: B is of `type` */
  const LLVMValueRef *zero; /* f32 vectors, one a column vector */
} emit_small;

/* What will be multiplied soon and comes from far away: the lines of `bytes` (i64) from `from` on are asked for while k
 * runs, evenly, `lines` at a time, so that fetching takes all the time that computing does.  They go into the nearest
 * cache: measured (Zen 4), asking for the second-level cache alone gained nothing.  from is NULL if there is nothing.
 */
typedef struct emit_fetch {
  LLVMValueRef from, bytes;
  int lines;
} emit_fetch;

/* Where a block's operands lie.  Strides are in elements and may be anything. */
typedef struct emit_gemm {
  emit_gemm_tile tile;
  dtype type;          /* of A and B in memory; sums have emit_compute_type's */
  LLVMValueRef a, b;   /* pointers to A(0, 0) and B(0, 0) */
  const int64_t *a_at; /* row r of A begins a_at[r] elements behind a; NULL means r * a_row */
  int64_t a_row, a_k;
  int64_t b_k;      /* from one k to the next; vectors are read whole, side by side.  Not used with `small` */
  int64_t b_vector; /* from one vector of columns to the next; with `small` in bytes */
  emit_small small;
  dtype dot4; /* of A's bytes, four in an element of s32: U8 or S8; B's are S8. DTYPE_INVALID: elements are numbers of
                 `type` */
  LLVMValueRef ahead; /* i64: n_ahead vectors so many elements behind B's are brought into the second-level cache with
                         each k; NULL: none */
  int n_ahead;
  emit_fetch fetch;
  LLVMValueRef k; /* i64, at least 0; a constant gives shorter code */
  int unroll;     /* steps of k in a loop's body; 0: as many as pay */
} emit_gemm;

/* The sums at zero. */
void emit_gemm_zero(const emit_ir *w, const emit_gemm *g, LLVMValueRef *sums);
/* Bytes of A are read as u8: of S8 each is 128 more, and sums must begin at EMIT_DOT4_OFFSET times the sum of B's
 * column. */
#define EMIT_DOT4_OFFSET (-128)
/* How many lines at a time (emit_fetch.lines) `blocks` blocks of this size bring all of a next B of the same size. */
int emit_gemm_lines(const emit_gemm_tile *t, dtype type, int blocks);
/* Writes the loop over k, which must be a constant where something is fetched; sums[rows * vectors] go in and out. */
void emit_gemm_block(const emit_ir *w, const emit_gemm *g, LLVMValueRef *sums);

#endif
