/* onnxifi_client.h - what test programs need that open libonnxifi-xla.so and call it through pointers. */
#ifndef TESTS_ONNXIFI_CLIENT_H
#define TESTS_ONNXIFI_CLIENT_H

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "onnxifi.h"

/* clang-format off */
#define FUNCTIONS(X) \
  X(onnxGetBackendIDs) X(onnxReleaseBackendID) X(onnxGetBackendInfo) X(onnxGetBackendCompatibility) \
  X(onnxInitBackend) X(onnxReleaseBackend) X(onnxInitEvent) X(onnxSignalEvent) X(onnxGetEventState) \
  X(onnxWaitEvent) X(onnxReleaseEvent) X(onnxInitGraph) X(onnxSetGraphIO) X(onnxRunGraph) \
  X(onnxReleaseGraph)
/* clang-format on */

static struct {
#define X(name) name##Function name;
  FUNCTIONS(X)
#undef X
} lib;

#define OK ONNXIFI_STATUS_SUCCESS
#define IS(status, call) ck_assert_int_eq((call), ONNXIFI_STATUS_##status)

static onnxBackendID ids[8];
static size_t n_ids;
static onnxBackend backend;

/* Opens the library.  It sees no GPUs, even on machines that have some, unless the test has set ONNX_XLA_CUDA_DRIVER
 * before. */
static inline void open_library(void) {
  char path[4096];
  setenv("ONNX_XLA_CUDA_DRIVER", "/nowhere/libcuda.so.1", 0);
  const char *top = getenv("top_builddir");
  snprintf(path, sizeof path, "%s/.libs/libonnxifi-xla.so", top ? top : ".");
  void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(so, "%s", dlerror());
#define X(name)                           \
  *(void **)&lib.name = dlsym(so, #name); \
  ck_assert_msg(lib.name, "%s", dlerror());
  FUNCTIONS(X)
#undef X
  n_ids = sizeof ids / sizeof *ids;
  ck_assert_int_eq(lib.onnxGetBackendIDs(ids, &n_ids), OK);
}

/* Opens backend `number`; tests that run in a loop run once for each backend. */
static inline void open_backend(int number) {
  open_library();
  ck_assert_int_eq(lib.onnxInitBackend(ids[number], NULL, &backend), OK);
}

static inline onnxTensorDescriptorV1 describe(const char *name, uint32_t rank, const uint64_t *shape,
                                              const void *data) {
  return (onnxTensorDescriptorV1){.tag = ONNXIFI_TAG_TENSOR_DESCRIPTOR_V1,
                                  .name = name,
                                  .dataType = 1,
                                  .dimensions = rank,
                                  .shape = shape,
                                  .buffer = (onnxPointer)(uintptr_t)data};
}

static inline onnxMemoryFenceV1 fence(onnxEvent e) {
  return (onnxMemoryFenceV1){.tag = ONNXIFI_TAG_MEMORY_FENCE_V1, .type = ONNXIFI_SYNCHRONIZATION_EVENT, .event = e};
}

static inline onnxEvent new_event(void) {
  onnxEvent e;
  ck_assert_int_eq(lib.onnxInitEvent(backend, &e), OK);
  return e;
}

/* Runs the graph once, and waits until the run has ended. */
static inline void run_once(onnxGraph g) {
  onnxMemoryFenceV1 in = fence(new_event()), out = fence(NULL);
  ck_assert_int_eq(lib.onnxRunGraph(g, &in, &out), OK);
  ck_assert_int_eq(lib.onnxSignalEvent(in.event), OK);
  ck_assert_int_eq(lib.onnxWaitEvent(out.event), OK);
  ck_assert_int_eq(lib.onnxReleaseEvent(in.event), OK);
  ck_assert_int_eq(lib.onnxReleaseEvent(out.event), OK);
}

#endif
