/* contraction.h - the kernels that compute a dot or a convolution, with the operations that follow, and their configs.
 *
 * Configs are:
 *
 *   loops             emit_kernel: a thread for each element of the result
 *   tiles:RxC         tiled_product.h: R rows and C columns for each of 16 x 16 threads
 *   mma:RxC-DxA       mma_product.h: 16 R rows and 16 C columns for each warp, of which a block has D x A
 *   mma-T:RxC-DxA     the same with f32 factors that are rounded to T: tf32, bf16 or f16, as the options ask for
 *   mma-tf32x3:...    the same with f32 factors that are split into two numbers of tf32 each (mma_product.h); only
 *                     where a module says so, since how tensor cores round sums of f32 is not specified
 *   .../P             tiles or mma with each sum divided into P parts, a power of two from 2 to 32 (sum_parts.h)
 *
 * Loops and tiles with whole sums round alike.  rt_numerics.exact leaves out mma and divided sums, except for integers,
 * whose sums are the same in any order. */
#ifndef BACKEND_GPU_ALGORITHMS_CONTRACTION_H
#define BACKEND_GPU_ALGORITHMS_CONTRACTION_H

#include "backend_gpu/algorithms/config.h"

/* The following functions do for contractions what the functions of config.h do for all instructions. */
dim gpu_contraction_scratch(const gpu_config *c, const hlo_instr *i);
dim gpu_contraction_counters(const gpu_config *c, const hlo_instr *i);
uint32_t gpu_list_contraction_configs(const gpu_config_options *o, const hlo_instr *i, gpu_config *out);
bool gpu_find_contraction_config(const gpu_config_options *o, const hlo_instr *i, const char *name, gpu_config *out);

#endif
