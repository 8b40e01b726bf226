/* depthwise.h - depthwise convolutions with channels last: each output channel depends on one input channel, or on a
 * small group of as many input channels as output channels, of which several fill a vector.  In a group, each input
 * channel in turn is broadcast to the lanes of its group.
 *
 * Vectors run along the channels.  A tile of `width` positions of one row of the result by `vectors` vectors of
 * channels stays in registers while the taps are added up.  Each input vector is loaded once for each row of taps and
 * used for all positions that need it.  Weights are packed as [taps][channel of a group][channels].  Taps that read the
 * padding are left out: tiles at the ends of a row have code of their own for each position, those between share a
 * loop.
 *
 * Bytes (u8 or s8 by s8) are converted to f32 when they are loaded: sums of so few products are exact in f32.  They are
 * converted to s32 only if the epilogue does not convert them to f32 at once.
 *
 * At most two of the spatial dimensions may have an extent other than 1.  An element's sum is in the order of the taps,
 * whatever tiles and threads are used, so its bits are always the same.
 *
 * This header does not include LLVM's headers. */
#ifndef EMIT_CONTRACTION_DEPTHWISE_H
#define EMIT_CONTRACTION_DEPTHWISE_H

#include "emit/kernel/compile.h"

/* This struct has only int64_t members, so that equal bytes mean equal kernels.  In arrays, [0] is for rows and [1]
 * for positions in a row. */
typedef struct emit_depthwise {
  int64_t type;  /* the dtype of the packed weights and of the sums, before they are widened; F32 for bytes */
  int64_t input; /* the dtype of the input: the same as `type`, or U8 or S8 */
  int64_t group; /* the channels of a group; 1 means an ordinary depthwise convolution */
  int64_t images, channels, in[2], out[2], taps[2], strides[2], dilation[2], low[2];
  int64_t axis[2]; /* for rows and positions, the dimension of the result along which they run; 0 means that there is
                      none */
  int64_t weights; /* the number of the operand that the packed weights replace */
  /* Set by emit_depthwise_choose. */
  int64_t lanes, vectors, width, parts; /* `parts` is the number of parts into which the grid divides the rows */
} emit_depthwise;

/* Sets the geometry of the convolution that `i` is or, if it is a fusion, contains.  Returns false if it is not such a
 * convolution. */
bool emit_depthwise_of(const hlo_instr *i, emit_depthwise *d);

/* Chooses a tile with so many vectors that fits the target's registers, and a grid for so many threads.  Returns false
 * if there is none, or if too many positions of a row are at its ends. */
bool emit_depthwise_choose(emit_depthwise *d, const emit_target *t, int64_t vectors, uint32_t threads);

double emit_depthwise_size(const emit_depthwise *d); /* the number of multiplications */
/* Returns the number of vector loads and multiplications per multiplication of a vector. */
double emit_depthwise_effort(const emit_depthwise *d);

uint64_t emit_depthwise_packed_bytes(const emit_depthwise *d);
void emit_depthwise_pack(const emit_depthwise *d, const void *weights, void *packed);

/* Writes the kernel; it is an emit_write_fn (emit/kernel/compile.h) with one phase, whose config is an emit_depthwise.
 */
STATUS_MUST_USE status emit_depthwise_write(emit_module *m, const char *name, const hlo_instr *i,
                                            const emit_options *options, const void *config, uint32_t phase,
                                            emit_kernel_info *info);

/* --- tiles of a row --- */

/* `n` tiles of `width` positions one after the other, the first at `first`.  If there are several, none of their taps
 * is outside of the input. */
typedef struct emit_depthwise_run {
  int64_t first, width, n;
  bool inside;
} emit_depthwise_run;
enum { EMIT_DEPTHWISE_RUNS = 12 };
/* Returns the number of runs, or 0 if there are more than EMIT_DEPTHWISE_RUNS. */
int emit_depthwise_runs(const emit_depthwise *d, emit_depthwise_run *runs);

#endif
