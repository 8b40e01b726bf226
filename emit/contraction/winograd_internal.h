/* winograd_internal.h - declarations for the files that write winograd.h's kernels: the kernel that is being written,
 * arithmetic on positions, memory, the transform of weights.  For the files winograd*.c only. */
#ifndef EMIT_CONTRACTION_WINOGRAD_INTERNAL_H
#define EMIT_CONTRACTION_WINOGRAD_INTERNAL_H

#include "emit/llvm/arithmetic.h"
#include "emit/contraction/winograd.h"
#include "emit/llvm/function.h"
#include "emit/product/gemm.h"
#include "emit/kernel/writer.h"
#include "emit/product/shared_kernel.h"

/* The kernel that is being written. */
typedef struct winograd {
  emit_writer *w;
  const emit_winograd *p;
  const emit_ir *ir;
  hlo_value convolution; /* the value from which the epilogue starts */
  uint32_t x_buffer, scratch_buffer;
  LLVMValueRef u; /* the address of the packed weights, for a kernel that only multiplies */
  int lanes[2];   /* the lanes of vectors along the channels and along the outputs */
} winograd;

/* --- arithmetic on positions: i64 --- */

static inline LLVMValueRef number(const winograd *g, int64_t n) { return emit_i64(g->ir, n); }

static inline LLVMValueRef add(const winograd *g, LLVMValueRef x, LLVMValueRef y) {
  return LLVMBuildNSWAdd(g->ir->builder, x, y, "");
}

static inline dim_table *table(const winograd *g) { return g->w->e.x.sizes->table; }

static inline LLVMValueRef size(const winograd *g, dim d) { return emit_size(&g->w->e.x, d); }

static inline LLVMValueRef scaled(const winograd *g, LLVMValueRef x, dim n) {
  return emit_times_size(&g->w->e.x, x, n);
}

static inline LLVMValueRef plus(const winograd *g, LLVMValueRef x, int64_t n) {
  return n ? add(g, x, number(g, n)) : x;
}

static inline LLVMValueRef quotient(const winograd *g, LLVMValueRef x, dim n) {
  return emit_over_size(&g->w->e.x, x, n);
}

static inline LLVMValueRef remainder_of(const winograd *g, LLVMValueRef x, dim n) {
  return emit_modulo_size(&g->w->e.x, x, n);
}

static inline LLVMValueRef lesser(const winograd *g, LLVMValueRef x, LLVMValueRef y) {
  return emit_intrinsic2(g->ir, "llvm.smin", x, y);
}

/* --- memory: f32 --- */

/* Returns the address that is `at` elements after `base`.  The address of a position in the padding, which is not read,
 * may lie outside of the array, so the GEP is not `inbounds`. */
static inline LLVMValueRef address(const winograd *g, LLVMValueRef base, LLVMValueRef at) {
  return LLVMBuildGEP2(g->ir->builder, g->ir->f32, base, &at, 1, "");
}

static inline LLVMValueRef load(const winograd *g, LLVMValueRef from, int lanes) {
  LLVMValueRef v = LLVMBuildLoad2(g->ir->builder, emit_vector_type(g->ir->f32, lanes), from, "");
  LLVMSetAlignment(v, sizeof(float));
  return v;
}

static inline void store(const winograd *g, LLVMValueRef v, LLVMValueRef to) {
  LLVMSetAlignment(LLVMBuildStore(g->ir->builder, v, to), sizeof(float));
}

/* Returns the number of elements of a panel of weights. */
static inline int64_t panel_size(const emit_winograd *p) { return p->channels * emit_winograd_panel(p); }

/* --- the weights --- */

enum { EMIT_WINOGRAD_MOST_PANEL = EMIT_GEMM_VECTORS * 16 };

/* Memory for emit_winograd_transform_weights. */
typedef struct emit_winograd_weights {
  const emit_winograd *p;
  double g[2][EMIT_WINOGRAD_MOST][EMIT_WINOGRAD_MOST];
  /* `taps` are the weights of the outputs, with zeros after the last output; `half` are these weights after the
   * transform along one dimension (G w). */
  double taps[25][EMIT_WINOGRAD_MOST_PANEL];
  double half[EMIT_WINOGRAD_MOST * 5][EMIT_WINOGRAD_MOST_PANEL];
} emit_winograd_weights;

void emit_winograd_weights_init(emit_winograd_weights *t, const emit_winograd *p);
/* Transforms the weights of n outputs, at most EMIT_WINOGRAD_MOST_PANEL, from n kernels of f32 at any alignment that
 * are `stride` elements apart.  Each of the a*a transformed numbers is written for all outputs side by side, to_plane
 * elements after the number before it. */
void emit_winograd_transform_weights(emit_winograd_weights *t, int64_t n, const void *w, int64_t stride,
                                     int64_t to_plane, float *to);

/* --- functions that kernels share --- */

/* The size of a tile of the input, that of the tile of results, and the lanes of the vectors that transforms use. */
typedef struct winograd_tile {
  int64_t size[2], m[2];
  int lanes;
} winograd_tile;
static inline winograd_tile winograd_tile_of(const emit_winograd *p, int lanes) {
  return (winograd_tile){{emit_winograd_size(p, 0), emit_winograd_size(p, 1)}, {p->m[0], p->m[1]}, lanes};
}

/* The register block of the products of a panel, and how many vectors it prefetches for each channel. */
typedef struct winograd_panel {
  emit_gemm_tile tile;
  int n_ahead;
} winograd_panel;

winograd_panel winograd_panel_of(const emit_winograd *p);
/* Returns how many rows of V prefetch the same part of the next panel. */
int64_t winograd_period(const emit_winograd *p);

/* Return the functions that transform one vector of a tile, that transform it back, and that multiply by a panel of
 * weights; the files that define them say what their parameters are.  The second argument is borrowed. */
emit_shared winograd_forward_function(const emit_ir *w, const winograd_tile *t);
emit_shared winograd_backward_function(const emit_ir *w, const winograd_tile *t);
emit_shared winograd_panel_function(const emit_ir *w, const winograd_panel *p);
#define WINOGRAD_FORWARD_TYPES "piiiipi" /* emit_shared.parameters */
#define WINOGRAD_BACKWARD_TYPES "pip"
#define WINOGRAD_PANEL_TYPES "pppiiiii"

/* The steps (shared_kernel.h) of kernels that transform the input, that transform the products back and apply the
 * epilogue, and that do all three steps of the algorithm, block by block.  They serve convolutions of all sizes, and
 * call the functions above and the kernel's epilogue by pointers in the record:
 *
 *     void epilogue(buffers, args, line, image, row, column, rows, columns, output)
 *
 * The epilogue is for the vector of outputs from number `output` on, at rows x columns positions from (row, column) on;
 * its values are in `line`, whose rows have m[1] vectors. */
extern const emit_shared winograd_transform_steps, winograd_finish_steps, winograd_fused_steps;

/* The entries of the record, whose room is the line.  The entry after one of a dimension (such as WINOGRAD_TILES) is
 * that of the second dimension. */
enum {
  WINOGRAD_EPILOGUE = EMIT_RECORD_HEAD,
  WINOGRAD_FORWARD,
  WINOGRAD_BACKWARD,
  WINOGRAD_PANEL,
  WINOGRAD_X,
  WINOGRAD_U,
  WINOGRAD_TILES,
  WINOGRAD_IN = WINOGRAD_TILES + 2,
  WINOGRAD_OUT = WINOGRAD_IN + 2,
  WINOGRAD_LOW = WINOGRAD_OUT + 2,
  WINOGRAD_M = WINOGRAD_LOW + 2,
  WINOGRAD_SIZE = WINOGRAD_M + 2, /* emit_winograd_size */
  WINOGRAD_CHANNELS = WINOGRAD_SIZE + 2,
  WINOGRAD_OUTPUTS,
  WINOGRAD_FORWARD_LANES,
  WINOGRAD_BACKWARD_LANES,
  WINOGRAD_V_ROW,
  WINOGRAD_M_ROW,
  WINOGRAD_V_PLANE,
  WINOGRAD_M_PLANE,
  WINOGRAD_PRODUCTS,
  WINOGRAD_PANELS,
  WINOGRAD_PANEL_COLUMNS, /* emit_winograd_panel */
  WINOGRAD_SLAB,          /* the panels of a slab */
  WINOGRAD_BLOCK,
  WINOGRAD_PERIOD, /* winograd_period */
  WINOGRAD_SCRATCH,
  WINOGRAD_M_START, /* if the steps are separate kernels: the element of scratch memory at which M begins */
  /* If they are not: the number of all tiles, that of the parts into which they are divided, and how many elements of
   * scratch memory a part has for V and M. */
  WINOGRAD_ALL_TILES,
  WINOGRAD_PARTS,
  WINOGRAD_PART_ELEMENTS,
  WINOGRAD_ENTRIES
};

/* The parameters of the epilogue. */
enum {
  WINOGRAD_EPILOGUE_LINE = 2,
  WINOGRAD_EPILOGUE_IMAGE,
  WINOGRAD_EPILOGUE_ROW,
  WINOGRAD_EPILOGUE_COLUMN,
  WINOGRAD_EPILOGUE_ROWS,
  WINOGRAD_EPILOGUE_COLUMNS,
  WINOGRAD_EPILOGUE_OUTPUT,
  WINOGRAD_EPILOGUE_PARAMETERS
};
#define WINOGRAD_EPILOGUE_TYPES "pppiiiiii"

/* --- functions that one of the files defines and others call --- */

/* Sets p->m for tiles of the size `tile` and the taps p->r.  Returns false if there are no such tiles. */
bool emit_winograd_choose_tiles(emit_winograd *p, int64_t tile);

/* Transforms the weights of one channel for a vector of outputs.  The taps at `from` are a panel apart; the transformed
 * weights at `to` are `plane` elements apart. */
void winograd_spread(const winograd *g, LLVMValueRef from, LLVMValueRef to, int64_t plane);

/* Multiplies rows [0, n) of V by one panel of weights, with n rounded up to whole register blocks. */
void winograd_multiply_panel(const winograd *g, LLVMValueRef n, LLVMValueRef v, LLVMValueRef u, LLVMValueRef m);
/* Multiplies n tiles by one panel of weights w that are not transformed yet.  One chunk of channels
 * (emit_winograd.chunk) at a time is transformed to u and multiplied. */
void winograd_multiply_on_the_fly(const winograd *g, LLVMValueRef n, LLVMValueRef v, LLVMValueRef w, LLVMValueRef u,
                                  LLVMValueRef m);

#endif
