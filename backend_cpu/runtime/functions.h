/* functions.h - the precompiled functions: those that are compiled when the library is built
 * (backend_cpu/precompiled/).  There is a set for each kind of processor, the least able one first.  There are no sets
 * in onnx-xla-run, nor in builds that are configured without them (precompiled/no_functions.c). */
#ifndef BACKEND_CPU_RUNTIME_FUNCTIONS_H
#define BACKEND_CPU_RUNTIME_FUNCTIONS_H

#include <stddef.h>

#include "base/machine/function_set.h"
#include "runtime/kernel_abi.h"

extern const function_set cpu_function_sets[];
extern const uint32_t cpu_n_function_sets;

/* Kernels and precompiled functions call this function by its name (runtime/kernel_abi.h). */
rt_kernel_expired_fn onnx_xla_expired;

#endif
