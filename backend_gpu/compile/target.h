/* target.h - the compiler of the GPU targets. */
#ifndef BACKEND_GPU_COMPILE_TARGET_H
#define BACKEND_GPU_COMPILE_TARGET_H

#include "runtime/program/target.h"

/* Sets *out to the backend of this name (gpu_find_target); NULL if the name is not that of a GPU target. */
STATUS_MUST_USE status gpu_find_backend(const char *name, const rt_backend **out);

#endif
