/* product.h - dots and channels-last convolutions as products of matrices, divided into blocks that stay in registers
 * (gemm.h).
 *
 *     C[batch][group][row][column] = sum over s of A[batch, group, row, s] * B[batch, group, s, column]
 *
 * The rows of a convolution are the positions of its result, its columns are the output channels, and s runs over the
 * taps and the input channels.  Batches, rows and s are nests of loops (emit_level); the offset of an element of A is
 * the sum of the loops' counters times their strides.  So A is read in place, except that it is copied with zeros
 * around it if a convolution has padding.  B is read as panels, which are vectors of columns: a constant is packed into
 * panels at compile time (emit_product_pack), any other B is packed by a kernel that runs before the product, unless it
 * already lies in memory as vectors.
 *
 * Quantised weights (hlo/analysis/quantized.h) stay small integers in their panels.  The products of one block of
 * weights, which have one scale, are added up, and their sum is scaled.
 *
 * Bytes (A is u8 or s8, B is constant s8, sums are s32) and s16 (B is constant, sums are s32) are multiplied in dot
 * groups if the target has instructions for them.  "Element" in this file then means a group of four bytes or two s16
 * that follow each other along s.
 *
 * The epilogue of the fusion is computed in registers, or on a small tile right after the sums.  Products are always
 * added in the order of s, so that the result's bits depend neither on blocks nor on threads.
 *
 * This header does not include LLVM's headers. */
#ifndef EMIT_PRODUCT_PRODUCT_H
#define EMIT_PRODUCT_PRODUCT_H

#include "emit/kernel/compile.h"
#include "hlo/analysis/quantized.h"

enum { EMIT_PRODUCT_LEVELS = 6, EMIT_PRODUCT_SPATIAL = 3 }; /* the most loops of a nest; the most spatial dimensions */
enum { EMIT_PRODUCT_ROWS = 28, EMIT_PRODUCT_VECTORS = 8 };  /* the limits of a block, which are those of gemm.h */
enum { EMIT_PRODUCT_LOWER = 2 }; /* the most smaller blocks of a ladder (emit_product.ladder) */
/* The stack that a product with emit_product.ladder takes, besides its tile: a record, and functions that call each
 * other. */
enum { EMIT_LADDER_STACK = 2 << 10 };

/* One loop (a level) of a nest of loops: it has n iterations; a and b are the distances in A and in B from one
 * iteration to the next, in elements. */
typedef struct emit_level {
  dim n, a, b;
} emit_level;

/* The size of a block: the number of rows, and of vectors of columns. */
typedef struct emit_product_block {
  int64_t rows, vectors;
} emit_product_block;

/* How a product whose extents are not all constants is divided into steps of the grid.  There should be `wanted` steps,
 * so that all threads have work.  Columns are divided first, but not among more than most_column_steps steps, and then
 * rows.  A step has between least_row_blocks and most_row_blocks blocks of rows.  emit_product_grid_of computes the
 * numbers from these bounds. */
typedef struct emit_product_steps {
  int64_t wanted, most_column_steps, least_row_blocks, most_row_blocks;
} emit_product_steps;

/* The members up to `spatial` describe a contraction; its sizes are expressions of the table of dims of its module.
 * The members from `lanes` on are chosen, and are numbers: equal bytes of them, and equal instructions, mean equal
 * kernels. */
typedef struct emit_product {
  int64_t type; /* the dtype of A, B and C */
  /* The nests of loops over batches, over rows, and over s (the products that are added up to a sum), each with its
   * outermost level first.  Levels that can be one loop are merged.  The stride of rows in B is 0. */
  int64_t n_batch, n_rows, n_sums;
  emit_level batch[EMIT_PRODUCT_LEVELS], rows[EMIT_PRODUCT_LEVELS], sums[EMIT_PRODUCT_LEVELS];
  emit_level group;      /* the groups of a convolution, whose columns are next to each other in C */
  dim columns, b_column; /* the number of columns of a group, and the distance between columns in B */
  /* quantized_type is the dtype of quantised weights B, and `block` the number of weights along s that share a scale.
   * A quantized_type of DTYPE_INVALID means that B is not quantised and has the type `type`. */
  int64_t quantized_type;
  int64_t block;
  /* The dtype of A's integers, U8, S8 or S16, if they are multiplied in dot groups; `type` is then S32.  DTYPE_INVALID
   * means that there are no dot groups. */
  int64_t dot;
  /* The distance in B between the integers of a dot group.  With dot groups, distances in B count integers, and those
   * in A count groups. */
  int64_t dot_step;
  /* The copy of A with zeros around it, for a convolution with padding.  If padded_elements is 0, A is read in place.
   */
  dim padded_elements, images, in[EMIT_PRODUCT_SPATIAL], padded[EMIT_PRODUCT_SPATIAL];
  int64_t low[EMIT_PRODUCT_SPATIAL], channels, spatial;
  /* Set by emit_product_choose. */
  int64_t lanes; /* the number of columns in a vector */
  /* With dot groups: each sum starts at this factor times the sum of its column of B.  It is not 0 if the bytes of A
   * must be converted from u8 to s8, or from s8 to u8, for the target's instruction (emit_gemm_dot_offset). */
  int64_t dot_offset;
  int64_t tile_rows, tile_vectors; /* the size of the largest block */
  /* Whether the rows are divided like a ladder (emit_row_cut), by functions that many kernels share.  It is so if the
   * number of rows of the innermost loop is not a constant, or where emit_product_options.ladder asks for it. */
  int64_t ladder;
  /* Smaller blocks of a ladder, the higher ones first, for the rows that are left.  They are usually wider than the
   * largest ones, so that they keep the processor as busy.  An entry with 0 rows is not used. */
  emit_product_block lower[EMIT_PRODUCT_LOWER];
  int64_t packing; /* an emit_packing */
  /* How many blocks a step of the grid computes along rows and along columns, if all extents of C are constants. */
  int64_t row_blocks, column_blocks;
  emit_product_steps steps; /* how the grid is divided if the extents of C are not all constants */
  int64_t rows_first;       /* whether consecutive steps of the grid go along the rows, and not along the columns */
  /* emit_fetch.lines of gemm.h for prefetching the next panels of B while a block is multiplied; 0 means no
   * prefetching. */
  int64_t fetch_lines;
  /* How many bytes ahead of the elements that are multiplied a product of one row prefetches its panels
   * (emit_gemm.ahead), since it has no other rows that could prefetch the next ones; 0 means no prefetching. */
  int64_t fetch_ahead;
  int64_t dynamic_m; /* whether the number of rows is an argument (emit_product_dynamic_m) */
} emit_product;

typedef enum emit_packing {
  EMIT_B_PLAIN,  /* B is read in place, as rows of contiguous whole vectors */
  EMIT_B_PACKED, /* panels that are packed at compile time and passed in place of the operand */
  EMIT_B_SCRATCH /* panels that a kernel of its own packs into scratch memory */
} emit_packing;

/* Sets the geometry of the dot or convolution that `i` is or, if it is a fusion, contains.  In a fusion only
 * elementwise operations may lead from the contraction's result to the fusion's results.  Returns false if `i` has no
 * contraction that this file supports. */
bool emit_product_of(const hlo_instr *i, emit_product *p);

/* Sets the geometry of a dot whose operands lie in memory with the strides xs and ys, one for each dimension.  Returns
 * false if its columns are not evenly spaced, or if its dimensions make too many loops. */
bool emit_product_of_dot(const hlo_instr *dot, const dim *xs, const dim *ys, emit_product *p);
/* Appends l as the innermost loop of the nest levels[*n].  If l and the loop that was innermost before can be one loop
 * (because their strides in A and, with merge_b, in B fit), they are merged instead.  A loop of one iteration is left
 * out.  Returns false if there are too many loops. */
bool emit_add_level(dim_table *t, int64_t *n, emit_level *levels, emit_level l, bool merge_b);

/* The arguments of emit_product_choose.  rows, vectors and lanes are the size of a block; 0 means the size that
 * emit_gemm_fit finds best and, for lanes, the target's vector width.  cache_bytes is the size of a core's second-level
 * cache.  `from_memory` says that no cache holds B when the product begins.  `ladder` asks for a ladder where the
 * number of rows is a constant, too; this is done only if B fits that cache, since a B that comes from memory is read
 * faster by blocks that prefetch their panels, which those of a ladder do not. */
typedef struct emit_product_options {
  int rows, vectors, lanes;
  uint32_t threads;
  int64_t cache_bytes;
  bool constant_weights, from_memory, ladder;
} emit_product_options;
/* Chooses the members of *p from `lanes` on.  Where sizes are not constants, the choice depends on their hints
 * (base/dim/guard.h), and the kernel is right, but perhaps slower, for other sizes, too. */
void emit_product_choose(dim_table *dims, emit_product *p, const emit_target *t, const emit_product_options *options);
/* Copies to *p the members of `chosen` that emit_product_choose has set. */
void emit_product_choose_like(emit_product *p, const emit_product *chosen);

/* The layout of packed B is [batch][group][panel][s][lanes], where s runs over the products of one sum.  A panel is one
 * vector of columns.  If there are fewer columns than lanes in the last panel, it is filled up: with zeros at compile
 * time, with copies of the last column by a kernel.  For dot groups with a dot_offset, a panel begins with the
 * initial values of its sums (the head).  The functions return the number of elements of all panels, of one panel, and
 * of its head.  Here and below, the table may be NULL if all sizes that matter are constants, as those of a constant B
 * are. */
dim emit_product_packed(dim_table *t, const emit_product *p);
dim emit_product_panel(dim_table *t, const emit_product *p);
int64_t emit_product_head(const emit_product *p);
/* Returns the bytes of all panels of a constant B.  Small integers of up to 4 bits are stored two in a byte, as
 * emit_gemm reads them. */
uint64_t emit_product_packed_bytes(const emit_product *p);
/* The first returns the number of bits of a quantised weight, 4 or 8.  The second returns the number that packing adds
 * to each, so that none is negative. */
int emit_product_quantized_bits(const emit_product *p);
int emit_product_quantized_offset(const emit_product *p);
/* Returns true if kernels can read the quantised weights w: no byte holds weights of two blocks that have different
 * scales. */
bool emit_product_reads_quantized(const hlo_quantized_weights *w);
/* Packs B, which is a constant, into `packed`, which has room for emit_product_packed_bytes bytes.  `weights` is B as
 * the instruction's operand is laid out. */
void emit_product_pack(const emit_product *p, const void *weights, void *packed);
/* The first returns the number of products (or of dot groups) whose sum is an element of C.  The second returns the
 * offset in a constant B of the factor of product number s in column 0. */
dim emit_product_sums(dim_table *t, const emit_product *p);
int64_t emit_product_sum_offset(const emit_product *p, int64_t s);

/* How the rows are divided into blocks.  emit_product.rows is a nest of loops over the rows.  Its first n_outside loops
 * stay ordinary loops around the blocks.  In each of their iterations, the rows of the remaining one or two loops are
 * divided into n_large + n_small blocks.  The size of a block is counted in units: a unit is one row, or all rows of
 * the innermost loop if these are few.
 *
 * With emit_product.ladder, the rows of the innermost loop are divided like a ladder: into blocks of tile_rows rows, as
 * many as there are; the rows that are left into the blocks of emit_product.lower, from the higher to the lower ones.
 * The member `blocks` then counts tile_rows rows, or the fewer rows that are left, as one block. */
typedef struct emit_row_cut {
  int64_t n_outside;
  dim outer; /* the number of iterations of the loops around the blocks */
  bool ladder;
  int64_t unit_rows;       /* the number of rows of a unit */
  dim unit_step, row_step; /* the distances in A from unit to unit and from row to row */
  /* Unless this is a ladder: there are n_large blocks of `large` units, and n_small blocks of one unit less
   * (emit_gemm_parts). */
  int64_t n_large, n_small, large;
  dim inner;  /* the number of rows that one iteration of the loops around the blocks divides into blocks */
  dim blocks; /* the number of blocks in all iterations together */
} emit_row_cut;
emit_row_cut emit_product_rows(dim_table *t, const emit_product *p);

/* Makes one kernel serve products that differ only in their number of rows (dynamic M): its code depends on the height
 * of the blocks (MR) only.  Returns false if that is not possible, as for a product whose rows come from several
 * dimensions that have no common stride, fit in one block, or are blocks of one row.  Otherwise sets *code to the
 * product for which the kernel is to be written, which has *placeholder_m rows (for emit_options.rows).  Sets *info to
 * the grid and the cost for the rows of p, and args to the arguments of the call for these rows.  If there are several
 * kernels (phases), the arguments are those of the last one. */
enum { EMIT_PRODUCT_ARGS = 5 };
bool emit_product_dynamic_m(dim_table *t, const emit_product *p, emit_product *code, int64_t *placeholder_m,
                            emit_kernel_info *info, int64_t args[EMIT_PRODUCT_ARGS]);

/* The first returns the number of kernels (phases), which run one after the other.  The second returns the bytes of
 * scratch memory, which is the buffer after the results. */
uint32_t emit_product_phases(const emit_product *p);
dim emit_product_scratch(dim_table *t, const emit_product *p);
/* Writes kernel number `phase`; it is an emit_write_fn (emit/kernel/compile.h).  Its config is an emit_product, of
 * which it reads only what emit_product_choose has set. */
STATUS_MUST_USE status emit_product_write(emit_module *m, const char *name, const hlo_instr *i,
                                          const emit_options *options, const void *config, uint32_t phase,
                                          emit_kernel_info *info);

#endif
