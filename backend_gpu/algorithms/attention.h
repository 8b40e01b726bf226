/* attention.h - the kernels that compute an attention, and their configs:
 *
 *   attention:RxK-P    block_attention.h: R rows for each group of threads, and K keys of a tile for each thread;
 *                      P groups share the keys of the same rows
 *   attention:mma-K    the same file, by tensor cores: K keys at a time
 *   .../S              the same with the keys of the same rows divided among S blocks, a power of two from 2 to 32
 *
 * rt_numerics.exact leaves out the kinds mma and /S. */
#ifndef BACKEND_GPU_ALGORITHMS_ATTENTION_H
#define BACKEND_GPU_ALGORITHMS_ATTENTION_H

#include "backend_gpu/algorithms/config.h"

/* Returns true if the config is one of an attention. */
bool gpu_is_attention_config(const gpu_config *c);

/* The following functions do for fusions of kind attention what the functions of config.h do for all instructions. */
dim gpu_attention_scratch(const gpu_config *c, const hlo_instr *i);
dim gpu_attention_counters(const gpu_config *c, const hlo_instr *i);
uint32_t gpu_list_attention_configs(const gpu_config_options *o, const hlo_attention *a, gpu_config *out);
bool gpu_find_attention_config(const gpu_config_options *o, const hlo_attention *a, const char *name, gpu_config *out);

#endif
