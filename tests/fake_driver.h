/* fake_driver.h - lets test programs use the fake CUDA driver, which works on the host
 * (tests/unit/backend_gpu/module_fake_cuda.c). */
#ifndef TESTS_FAKE_DRIVER_H
#define TESTS_FAKE_DRIVER_H

#include <stdio.h>
#include <stdlib.h>

/* Makes the process open the fake driver in place of CUDA's, and returns the path of the fake driver. */
static inline const char *use_fake_driver(void) {
  static char path[4096];
  const char *top = getenv("top_builddir");
  snprintf(path, sizeof path, "%s/tests/unit/backend_gpu/.libs/module_fake_cuda.so", top ? top : ".");
  setenv("ONNX_XLA_CUDA_DRIVER", path, 1);
  return path;
}

#endif
