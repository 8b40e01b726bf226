/* kernel_abi.h - how a compiled kernel is called, and what it may call.
 *
 * The header is C99 and includes no other file of onnx-xla, so that other programs can load or link the objects of a
 * program.  Every change of a declaration here or in kernel_externals.def must raise RT_KERNEL_ABI
 * (tests/abi/test-kernel-abi). */
#ifndef RUNTIME_KERNEL_ABI_H
#define RUNTIME_KERNEL_ABI_H

#include <stdint.h>

enum { RT_KERNEL_ABI = 2 };

/* The alignment of buffers in bytes, but for arrays of the caller, the program's inputs and outputs, which may have
 * that of their elements only. */
enum { RT_KERNEL_ALIGN = 64 };

/* A kernel.  It allocates nothing, keeps no state, and calls only functions of its object and those that
 * kernel_externals.def describes.
 *
 *   buffers     one pointer for each operand, in order, then one for each result, then one for scratch memory if the
 *               kernel needs any: dense row-major arrays.  Entries of operands that are small constants are not read.
 *               One more entry follows, which the kernel passes to onnx_xla_expired.
 *   args        integer arguments of this call; kernels without such arguments do not read it
 *   begin, end  a part of the kernel's grid, which is [0, n) with an n that is stored with the kernel.  Parts may run
 *               at the same time on several threads, in any order; all of them together write every element of every
 *               result. */
typedef void rt_kernel_fn(const void *const *buffers, const int64_t *args, int64_t begin, int64_t end);

/* The type of onnx_xla_expired, which a loader of kernels must define.  Long loops of kernels call it from time to time
 * with the last entry of `buffers`.  If it returns a number other than 0, the kernel returns at once, and its results
 * are incomplete. */
typedef int32_t rt_kernel_expired_fn(const void *watch);

#endif
