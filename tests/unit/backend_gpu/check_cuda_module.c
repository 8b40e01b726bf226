/* check_cuda_module.c - what the driver has compiled is kept, and loaded when it is wanted again.  The driver is
 * module_fake_cuda.c, the cache that of cuda_case.h. */
#include <check.h>
#include <elf.h>
#include <stdlib.h>

#include "tests/suite.h"
#include "tests/unit/backend_gpu/cuda_case.h"

/* Loads the kernels by way of the cache; returns how many compilations of the driver that took. */
static uint64_t load_by(cuda_case_cache *c, uint32_t ordinal) {
  const gpu_device *g = cuda_case_device(ordinal);
  arena *a = arena_create(NULL);
  rt_code *loaded;
  uint64_t before = cuda_case_ask("fake_cuda_compilations");
  ASSERT_OK(g->load(g, a, cuda_case_code, &c->cache, &loaded));
  ck_assert_ptr_nonnull(g->find(g, a, loaded, "add"));
  arena_destroy(a);
  return cuda_case_ask("fake_cuda_compilations") - before;
}

START_TEST(code_is_compiled_once) {
  uint32_t n;
  cuda_case_cache *c = cuda_case_cache_new();
  ASSERT_OK(gpu_cuda_count(&n)); /* opens the driver */
  ck_assert_uint_eq(load_by(c, 0), 1);
  ck_assert_uint_eq(load_by(c, 0), 0);
  ck_assert_int_eq(c->kept, 1);
  ck_assert_int_eq(c->found, 1);
  ck_assert_uint_eq(load_by(c, 1), 1); /* another GPU */
  ck_assert_int_eq(c->found, 1);       /* for which nothing was kept; the driver would refuse the other one's code */
  ck_assert_uint_eq(load_by(c, 1), 0);
  setenv("FAKE_CUDA_VERSION", "12050", 1);
  ck_assert_uint_eq(load_by(c, 1), 1);
  ck_assert_uint_eq(load_by(c, 1), 0);
  ck_assert_int_eq(c->kept, 3);
  cuda_case_cache_free(c);
  cuda_case_check_end();
}
END_TEST

/* Kept code that is not a cubin is not given to the driver, and a cubin for another GPU is refused by it;
 * both are compiled again. */
START_TEST(kept_code_that_is_wrong_is_replaced) {
  uint32_t n;
  cuda_case_cache *c = cuda_case_cache_new();
  ASSERT_OK(gpu_cuda_count(&n));
  ck_assert_uint_eq(load_by(c, 0), 1);
  for (int k = 0; k < 3; k++) {
    Elf64_Ehdr *cubin = (Elf64_Ehdr *)c->code.data;
    cubin->e_flags = k == 0 ? 86 : cubin->e_flags;
    cubin->e_ident[0] = k == 1 ? 'x' : cubin->e_ident[0];
    c->code.size = k == 2 ? 10 : c->code.size;
    ck_assert_uint_eq(load_by(c, 0), 1);
    ck_assert_uint_eq(load_by(c, 0), 0);
    ck_assert_int_eq(c->kept, 2 + k);
  }
  cuda_case_cache_free(c);
  cuda_case_check_end();
}
END_TEST

/* When the driver fails to compile or load code, its reason is reported, and nothing is kept. */
START_TEST(compilations_that_fail) {
  static const char ptx[] = ".version 7.0\n.target sm_80\n";
  static const struct {
    const char *fail, *message;
  } cases[] = {
      {"",
       "compiling code for sm_90 by the driver of CUDA 12.4: CUDA_ERROR_INVALID_PTX (as the fake driver was told): "
       "ptxas application ptx input, line 1; fatal: the fake driver has no compiler of PTX: sm_80"},
      {"cuLinkCreate_v2:1:200",
       "starting to compile code for sm_90 by the driver of CUDA 12.4: CUDA_ERROR_INVALID_IMAGE"},
      {"cuLinkComplete:1:222",
       "compiling code for sm_90 by the driver of CUDA 12.4: CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
      {"cuModuleLoadDataEx:1:209", "loading code for sm_90 by the driver of CUDA 12.4: CUDA_ERROR_NO_BINARY_FOR_GPU"}};
  const gpu_device *g = cuda_case_device(0);
  arena *a = arena_create(NULL);
  cuda_case_cache *c = cuda_case_cache_new();
  rt_code *loaded;
  setenv("FAKE_CUDA_FAIL", cases[_i].fail, 1);
  rt_span code = _i == 0 ? (rt_span){(const uint8_t *)ptx, sizeof ptx} : cuda_case_code;
  cuda_case_check_failure(g->load(g, a, code, &c->cache, &loaded), STATUS_INVALID_FILE, cases[_i].message);
  ck_assert_int_eq(c->kept, 0);
  ck_assert_uint_eq(load_by(c, 0), 1);
  arena_destroy(a);
  cuda_case_cache_free(c);
  cuda_case_check_end();
}
END_TEST

int main(void) {
  TCase *t = tcase_create("cuda module");
  tcase_add_unchecked_fixture(t, cuda_case_setup, cuda_case_teardown);
  tcase_set_timeout(t, 120);
  tcase_add_test(t, code_is_compiled_once);
  tcase_add_test(t, kept_code_that_is_wrong_is_replaced);
  tcase_add_loop_test(t, compilations_that_fail, 0, 4);
  return run_suite("cuda module", t);
}
