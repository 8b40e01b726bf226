/* cuda_driver.h - CUDA's driver (libcuda.so.1), which is opened when it is first needed. */
#ifndef BACKEND_GPU_RUNTIME_CUDA_DRIVER_H
#define BACKEND_GPU_RUNTIME_CUDA_DRIVER_H

#include "base/status.h"

#define CUDA_TYPE(name, type) typedef type name;
#include "backend_gpu/runtime/cuda_functions.def"

enum {
#define CUDA_CONSTANT(name, value) name = value,
#include "backend_gpu/runtime/cuda_functions.def"
};

typedef struct cuda_driver {
#define CUDA_FUNCTION(name, parameters) CUresult(*name) parameters;
#include "backend_gpu/runtime/cuda_functions.def"
} cuda_driver;

/* Sets *out to the driver, which the first call opens and initialises (cuInit).  After a failure the next call tries
 * again.  The environment variable ONNX_XLA_CUDA_DRIVER has the path of another library in place of libcuda.so.1, for
 * tests. */
STATUS_MUST_USE status cuda_driver_start(const cuda_driver **out);

/* Returns a text that distinguishes the driver's file from that of any other driver: its path, which usually has the
 * version, its size and its time.  The driver must have been started. */
const char *cuda_driver_file(void);

/* Must be called before each use of the driver.  Fails if a parent process used the driver before it forked this one:
 * here the driver neither works nor fails in a defined way, so no function of the driver may be called. */
STATUS_MUST_USE status cuda_driver_check_process(void);

/* The text of an error: its name, and the driver's explanation in parentheses. */
typedef struct cuda_error_text {
  char text[200];
} cuda_error_text;

cuda_error_text cuda_driver_explain(const cuda_driver *driver, CUresult error);

#endif
