/* target.h - the GPU targets: "gpu", NVIDIA's GPUs through the CUDA driver, and "gpu:host", the host as an emulator. */
#ifndef BACKEND_GPU_RUNTIME_TARGET_H
#define BACKEND_GPU_RUNTIME_TARGET_H

#include "runtime/program/target.h"

/* The names that programs have for the targets (rt_program.target).  Every CUDA device runs programs for "gpu". */
#define GPU_TARGET_NAME "gpu"
#define GPU_HOST_TARGET_NAME "gpu:host"

/* Sets *out to the target of a backend's name: "gpu:host", "gpu" for the first CUDA device, or "gpu:N" for device N.
 * The device is opened when it is first used.  Any other name sets *out to NULL. */
STATUS_MUST_USE status gpu_find_target(const char *name, const rt_target **out);

/* Returns the name of the architecture for which programs are compiled if the options name none, on the arena: that of
 * the target's own GPU, which asking starts the driver for.  Returns NULL if the target is no GPU, or if its GPU cannot
 * be used, of which its first use tells. */
const char *gpu_target_architecture(const rt_target *t, arena *a);

/* Returns true if the target's programs are PTX, as those of CUDA devices are. */
bool gpu_target_has_ptx(const rt_target *t);

#endif
