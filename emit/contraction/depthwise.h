/* depthwise.h - depthwise convolutions with channels last: each output channel depends on one input channel, and each
 * input channel has `multiplier` output channels.  Convolutions with small groups of as many input as output channels
 * are included: a vector then holds several groups, and each input channel in turn is broadcast to the lanes of its
 * group.
 *
 * Vectors run along the channels.  A tile of `width` positions of one row of the result by `vectors` vectors of
 * channels stays in registers while the products with the taps are added up.  Each input vector is loaded once for each
 * row of taps and used for all positions that need it.  Weights are packed as [taps][channel of a group][channels].
 * Taps that would read padding are left out.  Therefore each tile at the ends of a row has code of its own, which has
 * for each position only the taps inside of the input; all tiles in between share a loop.
 *
 * Bytes (u8 or s8 inputs, s8 weights) are converted to f32 when they are loaded, since sums of so few products of bytes
 * are exact in f32.  The sums are converted to s32, unless the epilogue starts by converting them to f32.
 *
 * The number of images and their sizes may be arguments of the kernel.  If the length of the rows is such an argument,
 * a shared function (depthwise_internal.h) computes the rows and calls the kernel's epilogue.
 *
 * At most two of the spatial dimensions may have an extent other than 1.  Products are always added in the order of the
 * taps, so that a result's bits depend neither on the tiles nor on the number of threads.
 *
 * This header does not include LLVM's headers. */
#ifndef EMIT_CONTRACTION_DEPTHWISE_H
#define EMIT_CONTRACTION_DEPTHWISE_H

#include "emit/kernel/compile.h"

/* This struct has only members of 64 bits.  In arrays, [0] is for the rows of an image and [1] for the positions in a
 * row. */
typedef struct emit_depthwise {
  int64_t type;  /* the dtype of the packed weights, which is F32 if the operands are bytes; the products are summed in
                    the type emit_compute_type(type) */
  int64_t input; /* the dtype of the input: the same as `type`, or U8 or S8 */
  int64_t group; /* the number of input channels of a group; 1 for an ordinary depthwise convolution */
  int64_t multiplier; /* the number of output channels for each input channel; 1 if `group` is not */
  dim images, in[2], out[2];
  int64_t channels; /* the number of output channels */
  int64_t taps[2], strides[2], dilation[2], low[2];
  int64_t axis[2]; /* the dimension of the result for rows, and for positions in a row; 0 means that there is none */
  int64_t weights; /* which operand is the weights; the kernel reads them packed */
  /* Set by emit_depthwise_choose.  If these members and `weights` have equal bytes, the kernels for equal instructions
   * are equal. */
  int64_t lanes, vectors, width, parts; /* `parts` is the number of parts into which the grid divides the rows */
} emit_depthwise;

/* Sets the geometry of the convolution that `i` is or, if it is a fusion, contains.  Returns false if there is none
 * that this file supports. */
bool emit_depthwise_of(const hlo_instr *i, emit_depthwise *d);

/* Chooses a tile that has `vectors` vectors and fits the target's registers, and a grid for `threads` threads.  Returns
 * false if there is no such tile, if vectors do not consist of whole groups of channels, or if the code for a row would
 * be too long, as it is if many tiles read padding. */
bool emit_depthwise_choose(const dim_table *dims, emit_depthwise *d, const emit_target *t, int64_t vectors,
                           uint32_t threads);
/* Copies to *chosen the members on which the kernel's code depends besides the instruction, and sets all other members
 * to 0. */
void emit_depthwise_choose_like(emit_depthwise *chosen, const emit_depthwise *d);

/* Returns the number of multiplications of vectors in the code for a row of taps, or 0 if a row has too many runs. */
int64_t emit_depthwise_code(const emit_depthwise *d);
/* Returns the likely number of multiplications. */
double emit_depthwise_size(const dim_table *dims, const emit_depthwise *d);
/* Returns the number of vector instructions, loads included, for each multiply-add of a vector. */
double emit_depthwise_effort(const emit_depthwise *d);

/* Packs the weights of a convolution, which lie in memory as the operand does, into emit_depthwise_packed_bytes bytes
 * at `packed`, in which they have the type d->type. */
uint64_t emit_depthwise_packed_bytes(const emit_depthwise *d);
void emit_depthwise_pack(const emit_depthwise *d, const void *weights, void *packed);

/* Writes the kernel; it is an emit_write_fn (emit/kernel/compile.h) with one phase, whose config is an emit_depthwise
 * that emit_depthwise_choose_like has set. */
STATUS_MUST_USE status emit_depthwise_write(emit_module *m, const char *name, const hlo_instr *i,
                                            const emit_options *options, const void *config, uint32_t phase,
                                            emit_kernel_info *info);

/* --- tiles of a row --- */

/* A run of `n` tiles of `width` positions, one after the other, the first at position `first`. `inside` is true if all
 * their taps are inside of the input; it is always true in a run of several tiles. */
typedef struct emit_depthwise_run {
  int64_t first, width, n;
  bool inside;
} emit_depthwise_run;
enum { EMIT_DEPTHWISE_RUNS = 12 };
/* Returns true if the lengths of the result's rows and of the input's rows are constants, so that rows are divided into
 * runs. */
static inline bool emit_depthwise_has_runs(const emit_depthwise *d) {
  return dim_is_const(d->out[1]) && dim_is_const(d->in[1]);
}
/* Divides a row into runs.  Returns their number, or 0 if there are more than EMIT_DEPTHWISE_RUNS. */
int emit_depthwise_runs(const emit_depthwise *d, emit_depthwise_run *runs);

#endif
