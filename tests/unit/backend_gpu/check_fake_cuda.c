/* check_fake_cuda.c - the fake driver knows the driver's rules: what breaks one is an error, and is counted. */
#include <check.h>

#include "backend_gpu/runtime/cuda_driver.h"
#include "tests/suite.h"
#include "tests/unit/backend_gpu/cuda_case.h"

/* Opens the fake driver directly, without the CUDA platform of backend_gpu. */
static const cuda_driver *open_driver(CUcontext *context) {
  const cuda_driver *cu;
  ASSERT_OK(cuda_driver_start(&cu));
  ck_assert_int_eq(cu->cuDevicePrimaryCtxRetain(context, 0), CUDA_SUCCESS);
  return cu;
}

START_TEST(breaches_of_rules_are_seen) {
  CUcontext context;
  CUdeviceptr memory, none = 0;
  CUstream stream;
  int here[4];
  const cuda_driver *cu = open_driver(&context);
  ck_assert_int_eq(cu->cuMemAlloc_v2(&memory, 16), CUDA_ERROR_INVALID_CONTEXT);
  ck_assert_int_eq(cu->cuCtxSetCurrent(context), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuMemAlloc_v2(&memory, 16), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuMemcpyHtoDAsync_v2((uintptr_t)here, here, 16, stream), CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(cu->cuMemcpyDtoHAsync_v2(here, (uintptr_t)here, 16, stream), CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(cu->cuMemcpyHtoDAsync_v2(memory, here, 5000, stream), CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(cu->cuMemFree_v2(none), CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(cu->cuMemFree_v2(memory), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuMemFree_v2(memory), CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(cu->cuMemcpyHtoDAsync_v2(memory, here, 16, stream), CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq(cuda_case_ask("fake_cuda_live"), 1);
  ck_assert_int_eq(cu->cuStreamDestroy_v2(stream), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
  ck_assert_uint_eq(cuda_case_ask("fake_cuda_live"), 0);
  ck_assert_uint_eq(cuda_case_ask("fake_cuda_breaches"), 8);
}
END_TEST

START_TEST(pageable_memory_is_refused) {
  CUcontext context;
  CUdeviceptr memory;
  CUstream stream;
  CUevent event;
  int here[4];
  void *locked;
  const cuda_driver *cu = open_driver(&context);
  ck_assert_int_eq(cu->cuCtxSetCurrent(context), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuMemAlloc_v2(&memory, 16), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuMemHostAlloc(&locked, 16, 0), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuMemcpyHtoDAsync_v2(memory, here, 16, stream), CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(cu->cuMemcpyDtoHAsync_v2(here, memory, 16, stream), CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(cu->cuMemcpyDtoHAsync_v2((char *)locked + 1, memory, 16, stream), CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq(cuda_case_ask("fake_cuda_breaches"), 3);
  ck_assert_int_eq(cu->cuMemcpyHtoDAsync_v2(memory, locked, 16, stream), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuEventRecord(event, stream), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuEventSynchronize(event), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuMemFreeHost(locked), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuMemcpyHtoDAsync_v2(memory, locked, 16, stream), CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(cu->cuMemFreeHost(locked), CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq(cuda_case_ask("fake_cuda_breaches"), 5);
}
END_TEST

static CUresult launch_on(const cuda_driver *cu, CUfunction f, CUstream s, const void *const *buffers,
                          unsigned shared) {
  int64_t args[1] = {0}, steps = 1;
  void *parameters[] = {(void *)buffers, args, &steps};
  return cu->cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, shared, s, parameters, NULL);
}

START_TEST(breaches_by_launches_are_seen) {
  CUcontext context;
  CUmodule module;
  CUfunction f;
  CUstream stream;
  int here[1];
  const void *buffers[3] = {here, here, here};
  const cuda_driver *cu = open_driver(&context);
  ck_assert_int_eq(cu->cuCtxSetCurrent(context), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuModuleLoadDataEx(&module, cuda_case_code.data, 0, NULL, NULL), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuModuleGetFunction(&f, module, "add"), CUDA_SUCCESS);
  ck_assert_int_eq(launch_on(cu, f, stream, buffers, 50000), CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(launch_on(cu, f, stream, NULL, 0), CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(cu->cuModuleUnload(module), CUDA_SUCCESS);
  ck_assert_int_eq(launch_on(cu, f, stream, buffers, 0), CUDA_ERROR_INVALID_HANDLE);
  ck_assert_int_eq(cu->cuModuleLoadDataEx(&module, cuda_case_code.data, 0, NULL, NULL), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuModuleGetFunction(&f, module, "add"), CUDA_SUCCESS);
  ck_assert_int_eq(launch_on(cu, f, stream, buffers, 0), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
  ck_assert_int_eq(cu->cuModuleUnload(module), CUDA_ERROR_ILLEGAL_ADDRESS);
  ck_assert_uint_eq(cuda_case_ask("fake_cuda_breaches"), 4);
}
END_TEST

START_TEST(breaches_by_linking_are_seen) {
  CUcontext context;
  CUlinkState linker;
  CUmodule module;
  void *cubin;
  size_t bytes;
  char text[] = "no end";
  const cuda_driver *cu = open_driver(&context);
  ck_assert_int_eq(cu->cuCtxSetCurrent(context), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuLinkCreate_v2(0, NULL, NULL, &linker), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuLinkComplete(linker, &cubin, &bytes), CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(cu->cuLinkAddData_v2(linker, CU_JIT_INPUT_PTX, text, 3, "x", 0, NULL, NULL),
                   CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(cu->cuLinkAddData_v2(linker, CU_JIT_INPUT_PTX, text, sizeof text, "x", 0, NULL, NULL),
                   CUDA_ERROR_INVALID_PTX);
  ck_assert_int_eq(cu->cuLinkAddData_v2(linker, CU_JIT_INPUT_PTX, (void *)cuda_case_code.data, cuda_case_code.size, "x",
                                        0, NULL, NULL),
                   CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuLinkComplete(linker, &cubin, &bytes), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuModuleLoadDataEx(&module, cubin, 0, NULL, NULL), CUDA_SUCCESS);
  ck_assert_uint_eq(cuda_case_ask("fake_cuda_compilations"), 1);
  ck_assert_uint_eq(cuda_case_ask("fake_cuda_live"), 2);
  ck_assert_int_eq(cu->cuLinkDestroy(linker), CUDA_SUCCESS);
  ck_assert_int_eq(cu->cuLinkDestroy(linker), CUDA_ERROR_INVALID_HANDLE);
  ck_assert_int_eq(cu->cuModuleUnload(module), CUDA_SUCCESS);
  ck_assert_uint_eq(cuda_case_ask("fake_cuda_live"), 0);
  ck_assert_uint_eq(cuda_case_ask("fake_cuda_breaches"), 3);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("fake cuda");
  tcase_add_unchecked_fixture(t, cuda_case_setup, cuda_case_teardown);
  tcase_set_timeout(t, 120);
  tcase_add_test(t, breaches_of_rules_are_seen);
  tcase_add_test(t, pageable_memory_is_refused);
  tcase_add_test(t, breaches_by_launches_are_seen);
  tcase_add_test(t, breaches_by_linking_are_seen);
  return run_suite("fake cuda", t);
}
