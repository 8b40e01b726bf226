/* block_nms.h - non-maximum suppression by blocks of threads. */
#ifndef EMIT_BLOCKS_BLOCK_NMS_H
#define EMIT_BLOCKS_BLOCK_NMS_H

#include "emit/kernel/compile.h"
#include "emit/kernel/special.h"

/* Writes the kernels of what emit_nms_kernel computes, in as many phases; without a config.  Returns the bytes of their
 * scratch memory. */
emit_write_fn emit_block_nms_kernel;
dim emit_block_nms_scratch(const hlo_instr *i);

#endif
