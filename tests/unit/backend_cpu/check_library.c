/* check_library.c - into how many parts a library call is divided, and what it is then estimated to take. */
#include <check.h>
#include <string.h>

#include "backend_cpu/algorithms/algorithm.h"
#include "backend_cpu/runtime/contraction.h"
#include "hlo/text/text.h"
#include "tests/suite.h"

static arena *a;

static void setup(void) { a = arena_create(NULL); }
static void teardown(void) { arena_destroy(a); }

static status zeros(void *data, uint64_t number, const shape *s, const void **bytes) {
  (void)data, (void)number;
  *bytes = arena_alloc_aligned(a, (size_t)shape_bytes(s), 64);
  return NULL;
}

/* Returns the library's config with the best estimate for f32[1,512] times f32[512,columns], for two threads. */
static cpu_config config_for(int columns, bool constant_weights) {
  const char *text =
      arena_printf(a,
                   "onnx-xla hlo 1\nmodule \"t\" {\nentry main(%%x: f32[1,512], %%v: f32[512,%d]) {\n"
                   "%%w = constant() {value=f32[512,%d] blob(1)} : f32[512,%d]\n"
                   "%%y = dot(%%x, %s) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[1,%d]\n"
                   "return %%y\n}\n}\n",
                   columns, columns, columns, constant_weights ? "%w" : "%v", columns);
  emit_target target;
  cpu_problem problem;
  cpu_config *configs;
  hlo_module *m;
  ASSERT_OK(hlo_parse(a, text, strlen(text), &(hlo_parse_options){.blob = zeros}, &m));
  ASSERT_OK(emit_target_init(a, NULL, "native", 0, &target));
  cpu_problem_options options = {.target = &target, .threads = 2};
  ck_assert(cpu_problem_of(m->entry->roots[0].def, &options, &problem));
  uint32_t n = cpu_list_configs(a, &problem, &configs), k = 0;
  while (k < n && configs[k].algorithm != &cpu_library_algorithm) {
    k++;
  }
  ck_assert_uint_lt(k, n);
  return configs[k];
}

/* Weights that are packed can only be divided into equal parts.  If a prime number of columns prevents that, one thread
 * computes the call, which takes about twice as long.  Other weights can be divided anywhere. */
START_TEST(prime_columns) {
  ck_assert_str_ne(config_for(997, false).name, "p1");
  if (!cpu_library_is_blas()) { /* which packs nothing */
    ck_assert_str_eq(config_for(997, true).name, "p1");
    ck_assert(config_for(997, true).estimate > 1.5 * config_for(1000, true).estimate);
  }
}
END_TEST

int main(void) {
  TCase *c = tcase_create("library");
  tcase_add_checked_fixture(c, setup, teardown);
  if (cpu_library_name()) {
    tcase_add_test(c, prime_columns);
  }
  return run_suite("library", c);
}
