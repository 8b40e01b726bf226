/* winograd.h - convolutions of stride 1 by Winograd's minimal filtering algorithm, channels last.
 *
 * An output tile of m x m positions of a convolution with r x r taps is computed from a x a input positions, where a =
 * m + r - 1: with matrices of small constants, y = A'[(G w G') . (B' x B)]A, where . multiplies elementwise.  Summed
 * over the channels, the elementwise products are a*a matrix products of [tiles x C] by [C x K], which take a*a /
 * (m*m*r*r) of the multiplications of the direct algorithm: 1/4 for F(4,3), 1/2.25 for F(2,3).  A dimension with one
 * tap is not transformed (m = r = 1), so 1-D convolutions are a special case.  Their tiles may be longer, since the
 * errors of two transforms do not multiply: F(4,7) takes 1/2.8 of the multiplications, F(6,3) 1/2.25 and F(4,5) 1/2.5.
 *
 *   transform  a block of tiles, with vectors along the channels:   x -> V[a*a][tiles][C]
 *   multiply   the a*a products, with weights packed in panels:     V, U[a*a][panels][C][panel] -> M[a*a][tiles][K]
 *   finish     transforms back, applies the epilogue and stores:    M -> y
 *
 * There are three schedules.  In the fused schedule, a thread does all three steps for a block of tiles that stays in
 * its cache; the grid is parts of the tiles, each with its own scratch memory.  In the phased schedule, three kernels
 * run one after the other, so that the weights are read once.  In the phased schedule with the on-the-fly transform,
 * the weights are packed untransformed, W[panels][C][taps][panel], and each worker transforms, in f32, the weights of
 * some channels right before it multiplies with them.  For F(4,3), that is a quarter of the bytes of transformed
 * weights.  Sums run over all channels in one order, so that the result's bits depend neither on the schedule nor on
 * the threads, except for the rounding of weights that are transformed on the fly.
 *
 * The number of images and their sizes may be arguments of the kernel.  The grid of the fused schedule then has a
 * number of parts that depends on the number of tiles (emit_winograd_parts).
 *
 * This header does not include LLVM's headers. */
#ifndef EMIT_CONTRACTION_WINOGRAD_H
#define EMIT_CONTRACTION_WINOGRAD_H

#include "emit/kernel/compile.h"

enum {
  EMIT_WINOGRAD_MOST = 10,                            /* the largest m + r - 1 */
  EMIT_WINOGRAD_MOST_TAPS = 7,                        /* the largest r */
  EMIT_WINOGRAD_PAIRS = (EMIT_WINOGRAD_MOST - 2) / 2, /* the most pairs of points (emit_winograd_points) */
  EMIT_WINOGRAD_PHASES = 3                            /* the number of kernels of a phased schedule */
};

/* The number of parts into which the grid of the fused schedule divides the tiles (emit_winograd_count_parts).  If the
 * number of tiles is a constant, it is `most`.  Otherwise it depends on how many tiles each part would get: up to `few`
 * parts if each gets at least `least` tiles; up to `most` if each gets at least `least` and EMIT_WINOGRAD_PART tiles;
 * and up to EMIT_WINOGRAD_PARTS if each gets at least `large`.  It is at least 1. */
enum { EMIT_WINOGRAD_PART = 12, EMIT_WINOGRAD_PARTS = 256 };
typedef struct emit_winograd_parts {
  int64_t most, few, least, large;
} emit_winograd_parts;

/* This struct has only members of 64 bits.  [0] is for rows, [1] for columns; 1-D convolutions have columns only.  The
 * members of type dim are expressions of the module's sizes.  They are 0 in the copy from which a kernel is written
 * (emit_winograd_choose_like); the writer computes them again from the instruction (emit_winograd_set_sizes). */
typedef struct emit_winograd {
  dim in[2], out[2], tiles[2], batch; /* `tiles` are those of one image */
  /* The distances in V and in M (above), in elements, from one of the a*a matrices (planes) to the next. */
  dim v_plane, m_plane;
  int64_t m[2], r[2], low[2];
  int64_t spatial, channels, outputs; /* spatial is the number of spatial dimensions of the arrays, 1 or 2 */
  int64_t weights;                    /* which operand is the weights; the kernels read them packed */
  int64_t phased;
  emit_winograd_parts parts;
  int64_t block; /* the largest number of tiles that are computed at once; if phased, the likely number of all tiles */
  int64_t rows, vectors, lanes; /* the register block of the products: rows by vectors of lanes */
  int64_t slab; /* the number of outputs that are computed at once and then transformed back; a multiple of the outputs
                   of a panel */
  int64_t v_row, m_row;        /* distances in V and M, in elements, from row to row (tile to tile) */
  int64_t on_the_fly, workers; /* whether weights are transformed on the fly; if so, the number of steps of the grid */
  int64_t chunk, share; /* on the fly: the number of channels whose weights are transformed at once (a chunk), and the
                           number of tiles that are then multiplied by them (a share, which is a multiple of `rows`) */
  int64_t u_plane;      /* with the on-the-fly transform: the distance in elements from one of the a*a matrices of
                           transformed weights of a chunk to the next; each is [chunk][panel] */
} emit_winograd;

/* The options of the kernels that the caller chooses. */
typedef struct emit_winograd_options {
  int64_t tile;            /* m, which must be even (in a dimension with several taps) */
  bool phased, on_the_fly; /* on_the_fly requires phased */
  uint32_t threads;
  int64_t cache_bytes; /* the size of a core's own cache */
} emit_winograd_options;

/* Makes a plan for a convolution (without regard to its epilogue).  Returns false if the convolution is not f32, has
 * groups, strides, dilation, channels first, or taps other than 3, 5 and 7 (one of two dimensions may have a single
 * tap), if its number of channels or its weights' shape is not constant, if m + r - 1 is above 6 in two dimensions or
 * above EMIT_WINOGRAD_MOST in one, or if a size is too large. */
bool emit_winograd_plan(const hlo_instr *convolution, const emit_target *t, const emit_winograd_options *o,
                        emit_winograd *out);
/* Sets *chosen to a copy of p in which all dims are 0: equal bytes mean equal kernels for equal instructions. */
void emit_winograd_choose_like(emit_winograd *chosen, const emit_winograd *p);
/* Sets the dims of *p, a copy that emit_winograd_choose_like has made, from the sizes of the convolution. */
void emit_winograd_set_sizes(const hlo_instr *convolution, emit_winograd *p);

/* Returns m + r - 1 of dimension d. */
static inline int64_t emit_winograd_size(const emit_winograd *p, int d) { return p->m[d] + p->r[d] - 1; }
int64_t emit_winograd_products(const emit_winograd *p);              /* a * a, the number of matrix products */
dim emit_winograd_all_tiles(dim_table *t, const emit_winograd *p);   /* the tiles of all images */
dim emit_winograd_count_parts(dim_table *t, const emit_winograd *p); /* see emit_winograd_parts */
int64_t emit_winograd_panel(const emit_winograd *p);                 /* the number of outputs in a panel of weights */
int64_t emit_winograd_panels(const emit_winograd *p);
dim emit_winograd_shares(dim_table *t, const emit_winograd *p);
int64_t emit_winograd_on_the_fly_elements(const emit_winograd *p); /* elements of one worker's transformed weights */
uint64_t emit_winograd_packed_bytes(const emit_winograd *p);
dim emit_winograd_scratch_bytes(dim_table *t, const emit_winograd *p);
/* Returns the cost of the whole algorithm for likely sizes, as the number of multiplications of a direct convolution
 * that would take as long. */
double emit_winograd_multiplications(dim_table *t, const emit_winograd *p);

/* Packs weights[outputs][channels][rows][columns], f32 of any alignment, into emit_winograd_packed_bytes bytes at
 * `packed`.  They are transformed in f64 and rounded once, but only rearranged if the plan transforms them on the fly.
 */
void emit_winograd_pack(const emit_winograd *p, const void *weights, float *packed);

/* Returns the largest error of a sample of tiles and outputs, relative to the sample's largest output, with these
 * weights (f32, which need not be aligned) and pseudorandom activations in [-1, 1).  It repeats the kernel's arithmetic
 * in C and compares with sums in f64. */
double emit_winograd_error(arena *a, const emit_winograd *p, const void *weights);

/* The first returns the number of kernels; the second writes kernel number `phase` (below that number) for the
 * convolution or the output fusion around one, by a plan that emit_winograd_choose_like has set.  The kernel's buffers
 * are the operands, of which p->weights is packed, the results, and scratch memory. */
uint32_t emit_winograd_kernels(const emit_winograd *p);
STATUS_MUST_USE status emit_winograd_kernel(emit_module *m, const char *name, const hlo_instr *i,
                                            const emit_options *options, const emit_winograd *chosen, uint32_t phase,
                                            emit_kernel_info *info);

/* --- the matrices of the transforms --- */

/* The interpolation points for m + r - 1 = size are 0, infinity and pairs ±p.  Sets `points` to the positive one of
 * each pair and returns their number. */
int emit_winograd_points(int64_t size, double *points);
/* Sets the coefficients, lowest power first, of the product of (y - p*p) over all p of emit_winograd_points except
 * number `without` (-1 means over all).  Returns its degree. */
int emit_winograd_polynomial(int64_t size, int without, double *coefficients);
/* Sets the matrix G, whose row k gives element k of the transformed weights from the r taps.  Row 2 + 2k is row 1 + 2k
 * with the sign of every other element changed. */
void emit_winograd_weight_matrix(int64_t size, int64_t r, double g[EMIT_WINOGRAD_MOST][EMIT_WINOGRAD_MOST]);

#endif
