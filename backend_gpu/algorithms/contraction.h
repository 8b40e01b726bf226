/* contraction.h - the kernels that compute a dot or a convolution, with the operations that follow, and their configs.
 *
 * Pass assign_kernels writes a config's name into the instruction (hlo_instr.config), and lowering reads it from there.
 * Configs are:
 *
 *   loops             emit_kernel: a thread for each element of the result
 *   tiles:RxC         tiled_product.h: R rows and C columns for each of 16 x 16 threads
 *   mma:RxC-DxA       mma_product.h: 16 R rows and 16 C columns for each warp, of which a block has D x A
 *   mma-T:RxC-DxA     the same with f32 factors that are rounded to T: tf32, bf16 or f16, as the options ask for
 *   mma-tf32x3:...    the same with f32 factors that are split into two numbers of tf32 each (mma_product.h); only
 *                     where a module says so, since how tensor cores round sums of f32 is not specified
 *   .../P             the same with each sum divided into P parts, 2 to 32 (sum_parts.h)
 *
 * All of them but mma and parts round alike, so rt_numerics.exact leaves these out, except for integers.  The number of
 * parts follows from likely sizes, not from the GPU, so that all GPUs compute the same sums. */
#ifndef BACKEND_GPU_ALGORITHMS_CONTRACTION_H
#define BACKEND_GPU_ALGORITHMS_CONTRACTION_H

#include "emit/blocks/mma_product.h"
#include "emit/blocks/tiled_product.h"
#include "runtime/program/target.h"

enum { GPU_MOST_CONFIGS = 28 };

typedef struct gpu_config {
  char name[24];
  emit_write_fn *write; /* NULL: emit_kernel */
  union {
    emit_tile tile;
    emit_mma_tile mma;
  };
  size_t bytes; /* of the config of `write` */
} gpu_config;

/* Return the bytes of scratch memory, and the number of counters (RT_COUNTERS), that the kernel needs for the
 * contraction of `i`. */
dim gpu_config_scratch(const gpu_config *c, const hlo_instr *i);
dim gpu_config_counters(const gpu_config *c, const hlo_instr *i);

/* What configs depend on beside the contraction. */
typedef struct gpu_config_options {
  const emit_target *target;
  rt_numerics numerics;
} gpu_config_options;

/* Writes the configs for a contraction among which is chosen, the one that should be used first.  Returns their number,
 * which is 0 if `i` is none. */
uint32_t gpu_list_configs(const gpu_config_options *o, const hlo_instr *i, gpu_config *out);

/* Finds a config of the contraction by its name.  Returns false if it has none of that name. */
bool gpu_find_config(const gpu_config_options *o, const hlo_instr *i, const char *name, gpu_config *out);

#endif
