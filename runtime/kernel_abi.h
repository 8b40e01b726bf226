/* kernel_abi.h - how a compiled kernel is called, and what it may call.
 *
 * It stands alone and is C99, for whoever loads the objects of a program, or links them, without the rest of onnx-xla.
 * RT_KERNEL_ABI goes up with every change of this file and of kernel_externals.def (tests/abi/test-kernel-abi). */
#ifndef RUNTIME_KERNEL_ABI_H
#define RUNTIME_KERNEL_ABI_H

#include <stdint.h>

enum { RT_KERNEL_ABI = 1 };

/* What buffers are aligned to, in bytes. */
enum { RT_KERNEL_ALIGN = 64 };

/* A kernel.  It allocates nothing, keeps no state, and calls nothing but what kernel_externals.def lists.
 *
 * buffers  one pointer for each operand, in order, then one for each result, then one for scratch memory if the kernel
 *          needs any: dense row-major arrays.  Entries of operands that are small constants are not read.  One more
 * entry is behind them: what the kernel hands to onnx_xla_expired. args     numbers of this call, for kernels that take
 * any; others do not read it. begin,   a part of the kernel's grid, which is [0, n) with an n that is stored beside the
 * kernel.  Parts may run at end      the same time on several threads, in any order; all of them together write every
 * element of every result. */
typedef void rt_kernel_fn(const void *const *buffers, const int64_t *args, int64_t begin, int64_t end);

/* onnx_xla_expired, a function that whoever loads kernels has for them.  Long loops call it now and then with the entry
 * behind the buffers.  If it returns not 0, the kernel returns at once, and its results are not finished. */
typedef int32_t rt_kernel_expired_fn(const void *watch);

#endif
