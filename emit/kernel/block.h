/* block.h - what code for blocks of threads has to write differently for a GPU and for a CPU that emulates its threads.
 *
 * Both get the same instructions otherwise, so that they compute the same bits.  runtime/block_abi.h describes the
 * functions.  Only blocks.c, and the files that implement these tables, know which of both is written for. */
#ifndef EMIT_KERNEL_BLOCK_H
#define EMIT_KERNEL_BLOCK_H

#include "emit/llvm/ir.h"

typedef struct emit_block_ops {
  /* Returns the type of a kernel's function.  Its first parameters are those of every kernel (execution.h), the third
   * one is the number of steps. */
  LLVMTypeRef (*type)(const emit_ir *ir);
  /* These return an i64, in the function that is being written: the number of the thread in its block, the number of
   * the block in the launch, and how many threads each block has. */
  LLVMValueRef (*thread)(const emit_ir *ir);
  LLVMValueRef (*block)(const emit_ir *ir);
  LLVMValueRef (*threads)(const emit_ir *ir);
  /* Makes the function, whose instructions are all written, one that can be launched with so many buffers and
   * arguments.  NULL if there is nothing to do. */
  void (*end)(const emit_ir *ir, uint32_t n_buffers, uint32_t n_args);
} emit_block_ops;

extern const emit_block_ops emit_block_nvptx, emit_block_host;

#endif
