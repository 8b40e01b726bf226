/* functions.h - the functions that are compiled when the library is built (backend_cpu/precompiled/), a set for each
 * kind of processor, the least able one first.  There are none in onnx-xla-run and in builds that are configured
 * so (precompiled/no_functions.c). */
#ifndef BACKEND_CPU_RUNTIME_FUNCTIONS_H
#define BACKEND_CPU_RUNTIME_FUNCTIONS_H

#include <stddef.h>

#include "base/machine/function_set.h"
#include "runtime/kernel_abi.h"

extern const function_set cpu_function_sets[];
extern const uint32_t cpu_n_function_sets;

/* The function that kernels call by this name (runtime/kernel_abi.h), which precompiled functions call, too. */
rt_kernel_expired_fn onnx_xla_expired;

#endif
