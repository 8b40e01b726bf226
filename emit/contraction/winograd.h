/* winograd.h - convolutions of stride 1 by Winograd's minimal filtering, channels last.
 *
 * An output tile of m x m places of a convolution with r x r taps comes from a = m + r - 1 squared numbers of the
 * input: with matrices of small constants, y = A'[(G w G') . (B' x B)]A, where . multiplies number by number.  Summed
 * over the channels that is a*a matrix products of [tiles x C] by [C x K], which take a*a / (m*m*r*r) of the direct
 * multiplications: 1/4 for F(4,3), 1/2.25 for F(2,3).  A dimension of one tap is left alone (m = r = 1), so 1-D
 * convolutions are a case of this; the other one may then be longer, since errors do not multiply: F(4,7) takes 1/2.8,
 * F(6,3) 1/2.25, F(4,5) 1/2.5.
 *
 *   transform  a block of tiles, vectors along the channels:    x -> V[a*a][tiles][C]
 *   multiply   the a*a products, weights packed in panels:      V, U[a*a][panels][C][panel] -> M[a*a][tiles][K]
 *   finish     back, then the epilogue, straight to the result: M -> y
 *
 * Two schedules.  Fused: a thread does all three for a block of tiles that stays in its cache; the grid is parts of the
 * tiles, each with scratch memory of its own.  Phased: three kernels one after the other, so that the weights are read
 * once.  Phased and late: the packed weights are the plain ones, W[panels][C][taps][panel], and who multiplies
 * transforms those of some channels just before, in f32: F(4,3) then reads, and keeps, a quarter of the bytes.  Sums
 * run over all channels in one order, so the bits depend on neither the schedule nor the threads, but for weights that
 * are transformed late.
 *
 * Free of LLVM's headers. */
#ifndef EMIT_CONTRACTION_WINOGRAD_H
#define EMIT_CONTRACTION_WINOGRAD_H

#include "emit/kernel/compile.h"

enum { EMIT_WINOGRAD_MOST = 10, EMIT_WINOGRAD_PAIRS = (EMIT_WINOGRAD_MOST - 2) / 2, EMIT_WINOGRAD_PHASES = 3 };

/* Members are int64_t only: equal bytes, equal kernel.  [0]: rows, [1]: columns; 1-D convolutions have columns only. */
typedef struct emit_winograd {
  int64_t m[2], r[2], in[2], out[2], low[2], tiles[2]; /* tiles: of one image */
  int64_t spatial, batch, channels, outputs;           /* spatial: dimensions that the arrays have, 1 or 2 */
  int64_t weights;                                     /* which operand the packed weights take the place of */
  int64_t phased, parts, block;           /* parts of the tiles; tiles that are worked on at once, at most */
  int64_t rows, vectors, lanes;           /* registers of the product: rows x vectors of lanes */
  int64_t slab;                           /* outputs between multiplying and finishing, whole panels */
  int64_t v_row, v_plane, m_row, m_plane; /* distances in V and M, in elements */
  int64_t on_the_fly, workers; /* weights are transformed when they are multiplied, by so many parts of the work */
  int64_t chunk,
      share;       /* channels that are transformed at once, tiles that are then multiplied (whole blocks of rows) */
  int64_t u_plane; /* the distance of products in a chunk's transformed weights */
} emit_winograd;

/* What the caller wishes. */
typedef struct emit_winograd_options {
  int64_t tile;            /* m, even (where there are several taps) */
  bool phased, on_the_fly; /* late: phased, too */
  uint32_t threads;
  int64_t cache_bytes; /* a core's own cache */
} emit_winograd_options;

/* A plan for a convolution (of any epilogue) or false: not f32, groups, strides, holes, channels first, taps other than
 * 3, 5 and 7, m + r - 1 above 6 in two dimensions or above EMIT_WINOGRAD_MOST in one, sizes that overflow. */
bool emit_winograd_plan(const hlo_instr *convolution, const emit_target *t, const emit_winograd_options *o,
                        emit_winograd *out);

/* m + r - 1 of a dimension. */
static inline int64_t emit_winograd_size(const emit_winograd *p, int d) { return p->m[d] + p->r[d] - 1; }
int64_t emit_winograd_products(const emit_winograd *p);  /* a*a */
int64_t emit_winograd_all_tiles(const emit_winograd *p); /* of the batch */
int64_t emit_winograd_panel(const emit_winograd *p);     /* outputs of a panel of weights */
int64_t emit_winograd_panels(const emit_winograd *p);
int64_t emit_winograd_shares(const emit_winograd *p);
int64_t emit_winograd_on_the_fly_elements(const emit_winograd *p); /* of a worker's transformed weights */
uint64_t emit_winograd_packed_bytes(const emit_winograd *p);
uint64_t emit_winograd_scratch_bytes(const emit_winograd *p);
/* What the products cost, counted in multiplications of the direct convolution that take as long. */
double emit_winograd_multiplications(const emit_winograd *p);

/* weights[outputs][channels][rows][columns] into packed_bytes: computed in f64, rounded once; late ones are only put in
 * order. */
void emit_winograd_pack(const emit_winograd *p, const float *weights, float *packed);

/* The largest error of a sample of tiles against sums in f64, relative to the largest output of the sample, with these
 * weights and seeded activations in [-1, 1): the arithmetic of the kernel in C.  Fast: some tiles and outputs only. */
double emit_winograd_error(arena *a, const emit_winograd *p, const float *weights);

/* Writes kernel number `phase` (below emit_winograd_kernels) for the convolution or the output fusion around one.
 * Buffers: the operands, of which p->weights is packed; the results; scratch memory. */
uint32_t emit_winograd_kernels(const emit_winograd *p);
STATUS_MUST_USE status emit_winograd_kernel(emit_module *m, const char *name, const hlo_instr *i,
                                            const emit_options *options, const emit_winograd *p, uint32_t phase,
                                            emit_kernel_info *info);

/* --- the numbers --- */

/* The points ±p that an algorithm of m + r - 1 = size takes besides 0 and infinity; gives their number. */
int emit_winograd_points(int64_t size, double *points);
/* Coefficients, ascending, of the product of (y - p*p) over all points but number `without` (-1: over all); their
 * number - 1. */
int emit_winograd_polynomial(int64_t size, int without, double *coefficients);
/* G: row k gives number k of the transformed weights from the r taps; row 2 + 2k is row 1 + 2k with every other sign
 * changed. */
void emit_winograd_weight_matrix(int64_t size, int64_t r, double g[EMIT_WINOGRAD_MOST][EMIT_WINOGRAD_MOST]);

#endif
