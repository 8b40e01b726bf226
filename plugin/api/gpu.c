/* gpu.c - implements onnx-xla.h: which GPUs there are. */
#include <stdio.h>

#include "backend_gpu/runtime/cuda.h"
#include "plugin/api/internal.h"

static status count(int *out) {
  uint32_t n;
  CHECK_THAT(out, STATUS_INVALID_ARGUMENT, "argument out is NULL");
  *out = 0;
  TRY(gpu_cuda_count(&n));
  *out = (int)n;
  return NULL;
}

oxla_error *oxla_gpu_count(int *out) { return api_error(count(out)); }

static status describe(int number, oxla_gpu *out) {
  gpu_cuda_info info;
  CHECK_THAT(out, STATUS_INVALID_ARGUMENT, "argument out is NULL");
  CHECK_THAT(number >= 0, STATUS_INVALID_ARGUMENT, "there is no GPU %d", number);
  TRY(gpu_cuda_describe((uint32_t)number, &info));
  *out = (oxla_gpu){
      .memory_bytes = info.memory_bytes, .operations = (uint64_t)info.operations, .bandwidth = (uint64_t)info.bytes};
  snprintf(out->name, sizeof out->name, "%s", info.name);
  snprintf(out->architecture, sizeof out->architecture, "%s", info.architecture);
  return NULL;
}

oxla_error *oxla_describe_gpu(int number, oxla_gpu *out) { return api_error(describe(number, out)); }
