/* emulator.h - a GPU that the host emulates: the same kernels as on a real one, compiled for this processor.
 *
 * Its memory and its queues are those of an emulated device (runtime/host/emulated_device.h).  A launch calls a kernel
 * once for each thread, with the blocks divided among the threads of the run.  The order of the threads in a block is
 * that of the environment variable ONNX_XLA_EMULATOR_ORDER: forward (the default), reverse, or shuffled.  A right
 * kernel gives the same bits for all of them. */
#ifndef BACKEND_GPU_RUNTIME_EMULATOR_H
#define BACKEND_GPU_RUNTIME_EMULATOR_H

#include "backend_gpu/runtime/device.h"

/* Returns the emulated GPU, of which there is one in a process. */
const gpu_device *gpu_emulator(void);

#endif
