/* config.h - the configs of kernels for blocks of threads: the ways to compute a contraction or an attention.
 *
 * Pass assign_kernels writes a config's name into the instruction (hlo_instr.config), and lowering reads it from there.
 * contraction.h and attention.h say which configs there are.  Numbers of blocks follow from likely sizes, not from the
 * GPU, so that all GPUs compute the same sums. */
#ifndef BACKEND_GPU_ALGORITHMS_CONFIG_H
#define BACKEND_GPU_ALGORITHMS_CONFIG_H

#include "emit/blocks/block_attention.h"
#include "emit/blocks/mma_product.h"
#include "emit/blocks/tiled_product.h"
#include "runtime/program/target.h"

enum { GPU_MOST_CONFIGS = 28 };

typedef struct gpu_config {
  char name[24];
  emit_write_fn *write; /* writes the kernel; NULL means that emit_kernel does */
  union {
    emit_tile tile;
    emit_mma_tile mma;
    emit_block_attention attention;
  };
  size_t bytes; /* the size of the member of the union that `write` gets as its config; 0 if `write` is NULL */
} gpu_config;

/* A list of configs.  Of those that are added, only the first GPU_MOST_CONFIGS are kept. */
typedef struct gpu_config_list {
  gpu_config *items;
  uint32_t n;
} gpu_config_list;
/* Adds a config unless one of its name is there. */
void gpu_add_config(gpu_config_list *l, gpu_config c);

/* Return the bytes of scratch memory, and the number of counters (RT_COUNTERS), that the kernel needs for `i`. */
dim gpu_config_scratch(const gpu_config *c, const hlo_instr *i);
dim gpu_config_counters(const gpu_config *c, const hlo_instr *i);

/* What configs depend on besides the instruction. */
typedef struct gpu_config_options {
  const emit_target *target;
  rt_numerics numerics;
} gpu_config_options;

/* Writes the configs from which one is chosen for the contraction or attention `i` to `out`, which has room for
 * GPU_MOST_CONFIGS.  The first one is that which should be used.  Returns their number, which is 0 if `i` is
 * neither. */
uint32_t gpu_list_configs(const gpu_config_options *o, const hlo_instr *i, gpu_config *out);

/* Finds a config of the instruction by its name.  Returns false if it has none of that name. */
bool gpu_find_config(const gpu_config_options *o, const hlo_instr *i, const char *name, gpu_config *out);

#endif
