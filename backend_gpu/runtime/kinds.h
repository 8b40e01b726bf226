/* kinds.h - the load, bind and run functions of the thunk kinds of the GPU targets. */
#ifndef BACKEND_GPU_RUNTIME_KINDS_H
#define BACKEND_GPU_RUNTIME_KINDS_H

#include "backend_gpu/runtime/device.h"

status gpu_kernel_load(rt_thunk *t, rt_loader *l);
status gpu_kernel_bind(rt_thunk *t, arena *a);
status gpu_kernel_run(const rt_thunk *t, rt_run *r);
bool gpu_kernel_is_recordable(const rt_thunk *t, const rt_run *r);

#endif
