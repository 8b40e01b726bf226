/* depthwise.h - depthwise convolutions, channels last: each channel has taps of its own and meets no other; or few
 * others: groups of so many channels, as many in as out, that whole groups fill a vector.  Then each channel of a group
 * in turn is spread over its group's lanes.
 *
 * Vectors lie along the channels.  A tile of `width` places of one row of the result by `vectors` vectors of channels
 * stays in registers while the taps run over it; each input vector is loaded once a tap's row and used for all places
 * that read it. Weights are packed as [taps][channel of a group][channels].  Taps that reach into the padding are left
 * out: tiles at the ends of a row are written each for its own place, those between as a loop.
 *
 * Bytes (u8 or s8 by s8) become f32 as they are loaded: sums of so few products are exact there, and become s32 only
 * where the epilogue does not make f32 of them at once.
 *
 * Of one, two or more spatial dimensions those that are not 1 throughout must be at most two.  An element's sum is in
 * the order of the taps, whatever tiles and threads: the same bits.
 *
 * Free of LLVM's headers. */
#ifndef EMIT_CONTRACTION_DEPTHWISE_H
#define EMIT_CONTRACTION_DEPTHWISE_H

#include "emit/kernel/compile.h"

/* int64_t only: equal bytes, equal kernel.  [0]: rows, [1]: places of a row. */
typedef struct emit_depthwise {
  int64_t type;  /* dtype of the packed weights and of the sums, before they are widened; of bytes: F32 */
  int64_t input; /* of the input; `type`, or U8 or S8 */
  int64_t group; /* channels of one; 1 means depthwise */
  int64_t images, channels, in[2], out[2], taps[2], strides[2], dilation[2], low[2];
  int64_t axis[2]; /* the dimension of the result that it is; 0 means none */
  int64_t weights; /* which operand the packed weights take the place of */
  /* Chosen. */
  int64_t lanes, vectors, width, parts; /* parts: of the rows, for the grid */
} emit_depthwise;

/* The geometry of the convolution that `i` is or, in a fusion, holds.  Returns false if it is no such convolution. */
bool emit_depthwise_of(const hlo_instr *i, emit_depthwise *d);

/* The tile of so many vectors that the target's registers hold, and a grid for so many threads.  Returns false if there
 * is none, or too many places of a row lie at its ends. */
bool emit_depthwise_choose(emit_depthwise *d, const emit_target *t, int64_t vectors, uint32_t threads);

double emit_depthwise_size(const emit_depthwise *d); /* multiplications */
/* Vector instructions that load or multiply for one multiplication of a vector. */
double emit_depthwise_effort(const emit_depthwise *d);

uint64_t emit_depthwise_packed_bytes(const emit_depthwise *d);
void emit_depthwise_pack(const emit_depthwise *d, const void *weights, void *packed);

/* An emit_write_fn of one phase; config is an emit_depthwise. */
STATUS_MUST_USE status emit_depthwise_write(emit_module *m, const char *name, const hlo_instr *i,
                                            const emit_options *options, const void *config, uint32_t phase,
                                            emit_kernel_info *info);

/* --- tiles of a row --- */

/* `n` tiles of `width` places one after the other, the first at `first`.  Several: none of their taps leaves the input.
 */
typedef struct emit_depthwise_run {
  int64_t first, width, n;
  bool inside;
} emit_depthwise_run;
enum { EMIT_DEPTHWISE_RUNS = 12 };
/* Returns their number; 0 means more than EMIT_DEPTHWISE_RUNS. */
int emit_depthwise_runs(const emit_depthwise *d, emit_depthwise_run *runs);

#endif
