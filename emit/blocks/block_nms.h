/* block_nms.h - non-maximum suppression by blocks of threads. */
#ifndef EMIT_BLOCKS_BLOCK_NMS_H
#define EMIT_BLOCKS_BLOCK_NMS_H

#include "emit/kernel/compile.h"
#include "emit/kernel/special.h"

/* The first writes kernels that compute what those of emit_nms_kernel do, in as many phases (EMIT_NMS_PHASES).  It does
 * not use its config.  The second returns the bytes of scratch memory of these kernels. */
emit_write_fn emit_block_nms_kernel;
dim emit_block_nms_scratch(const hlo_instr *i);

#endif
