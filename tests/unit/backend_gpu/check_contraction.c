/* check_contraction.c - the configs of a contraction on GPUs: which there are, their names, and which is the first. */
#include <check.h>
#include <string.h>

#include "backend_gpu/algorithms/contraction.h"
#include "tests/suite.h"
#include "tests/unit/emit/kernel_case.h"

static gpu_config_options options_of(const char *cpu) {
  emit_target *t = ARENA_NEW(kernel_arena, emit_target);
  ASSERT_OK(emit_target_nvptx(kernel_arena, cpu, t));
  return (gpu_config_options){.target = t};
}

static const hlo_instr *dot(const char *type, int64_t m, int64_t k, int64_t n) {
  kernel_cases c = {0};
  const char *text = TEXT(
      "%s[%d,%d](%%x: %s[%d,%d], %%y: %s[%d,%d]) {\n%%z = dot(%%x, %%y) {lhs_contract=[1], "
      "rhs_contract=[0], lhs_batch=[], rhs_batch=[]} : %s[%d,%d]\nreturn %%z\n}",
      type, (int)m, (int)n, type, (int)m, (int)k, type, (int)k, (int)n, type, (int)m, (int)n);
  return hlo_callee(kernel_parse(kernel_add(&c, 0, text)), 0)->roots[0].def;
}

static bool has(const gpu_config *configs, uint32_t n, const char *name) {
  bool found = false;
  for (uint32_t k = 0; k < n; k++) {
    found = found || strcmp(configs[k].name, name) == 0;
  }
  return found;
}

START_TEST(first_configs) {
  static const struct {
    const char *cpu, *type;
    int64_t m, k, n;
    const char *first;
    rt_numerics numerics;
  } cases[] = {
      {"sm_80", "f32", 4096, 512, 4096, "tiles:8x8", {0}},
      {"sm_80", "f16", 4096, 512, 4096, "mma:4x2-2x4", {0}},
      {"sm_90a", "bf16", 4096, 512, 4096, "mma:4x2-2x4", {0}},
      {"sm_75", "f16", 4096, 512, 4096, "tiles:8x8", {0}},
      {"sm_80", "f16", 4096, 512, 4096, "tiles:8x8", {.exact = true}},
      {"sm_80", "f32", 4096, 512, 4096, "mma-tf32:4x2-2x4", {.reduced_precision = DTYPE_F32}},
      {"sm_80", "f32", 4096, 512, 4096, "mma-bf16:4x2-2x4", {.reduced_precision = DTYPE_BF16}},
      {"sm_80", "f32", 4096, 512, 4096, "mma-f16:4x2-2x4", {.reduced_precision = DTYPE_F16}},
      {"sm_80", "f16", 4096, 512, 4096, "mma:4x2-2x4", {.reduced_precision = DTYPE_F32}},
      {"sm_80", "f32", 128, 8192, 128, "tiles:4x4/16", {0}},
      {"sm_80", "f32", 128, 8192, 128, "tiles:1x1", {.exact = true}},
      {"sm_80", "s32", 128, 8192, 128, "tiles:4x4/16", {.exact = true}},
      {"sm_90a", "f16", 64, 8192, 128, "mma:2x2-2x2/32", {0}},
      {"sm_80", "f64", 4096, 512, 4096, "mma:4x2-2x4", {0}},
      {"sm_80", "f64", 4096, 512, 4096, "tiles:8x8", {.exact = true}},
      {"sm_75", "f64", 4096, 512, 4096, "tiles:8x8", {0}},
      {"sm_80", "c64", 64, 64, 64, "loops", {0}},
      {"sm_80", "f64", 2, 64, 2, "loops", {0}},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    gpu_config configs[GPU_MOST_CONFIGS];
    gpu_config_options o = options_of(cases[k].cpu);
    o.numerics = cases[k].numerics;
    uint32_t n = gpu_list_configs(&o, dot(cases[k].type, cases[k].m, cases[k].k, cases[k].n), configs);
    ck_assert_uint_gt(n, 0);
    ck_assert_str_eq(configs[0].name, cases[k].first);
  }
}
END_TEST

/* Each config is found by its name, and names are unique. */
START_TEST(names) {
  gpu_config configs[GPU_MOST_CONFIGS], found;
  gpu_config_options o = options_of("sm_80");
  const hlo_instr *i = dot("f16", 100, 200, 300);
  uint32_t n = gpu_list_configs(&o, i, configs);
  ck_assert(has(configs, n, "loops") && has(configs, n, "tiles:1x8") && has(configs, n, "mma:1x2-1x2"));
  for (uint32_t k = 0; k < n; k++) {
    ck_assert(gpu_find_config(&o, i, configs[k].name, &found));
    ck_assert_ptr_eq((void *)(intptr_t)found.write, (void *)(intptr_t)configs[k].write);
    ck_assert_uint_eq(found.bytes, configs[k].bytes);
    ck_assert_mem_eq(&found.tile, &configs[k].tile, found.bytes);
    ck_assert(!has(configs, k, configs[k].name));
  }
  ck_assert(has(configs, n, "tiles:1x1/2") && has(configs, n, "mma:1x2-1x2/2"));
  ck_assert(gpu_find_config(&o, i, "mma:2x2-2x2/16", &found) && found.mma.parts == 16);
  ck_assert_int_eq(gpu_config_scratch(&found, i), 16 * 4 * 100 * 300);
  ck_assert_int_eq(gpu_config_counters(&found, i), 2 * 5); /* tiles of 64 rows and columns */
  ck_assert(!gpu_find_config(&o, i, "tiles:1x1/3", &found) && !gpu_find_config(&o, i, "tiles:1x1/64", &found) &&
            !gpu_find_config(&o, i, "tiles:1x1/2/2", &found) && !gpu_find_config(&o, i, "loops/2", &found));
  ck_assert(!gpu_find_config(&o, i, "tiles:3x3", &found));
  ck_assert(!gpu_find_config(&o, i, "", &found));
}
END_TEST

/* Configs that split each f32 into two tf32 (tf32x3) are not listed and found only by their names, for f32, where
 * results need not be exact and the GPU multiplies tf32. */
START_TEST(split_factors) {
  gpu_config configs[GPU_MOST_CONFIGS], found;
  gpu_config_options o = options_of("sm_80"), exact = o, old = options_of("sm_75");
  const hlo_instr *i = dot("f32", 100, 200, 300), *half = dot("f16", 100, 200, 300);
  const char *name = "mma-tf32x3:2x2-2x2", *parts = "mma-tf32x3:2x2-2x2/4";
  exact.numerics.exact = true;
  ck_assert(!has(configs, gpu_list_configs(&o, i, configs), name));
  ck_assert(gpu_find_config(&o, i, name, &found) && found.mma.split && found.mma.rounded == DTYPE_F32);
  ck_assert(gpu_find_config(&o, i, parts, &found) && found.mma.split && found.mma.parts == 4);
  ck_assert_str_eq(found.name, parts);
  ck_assert(!gpu_find_config(&exact, i, name, &found) && !gpu_find_config(&old, i, name, &found));
  ck_assert(!gpu_find_config(&o, half, name, &found));
}
END_TEST

START_TEST(only_contractions_have_configs) {
  gpu_config configs[GPU_MOST_CONFIGS];
  gpu_config_options o = options_of("sm_80");
  kernel_cases c = {0};
  const char *text = "f32[4](%x: f32[4]) {\n%y = negate(%x) : f32[4]\nreturn %y\n}";
  const hlo_instr *i = hlo_callee(kernel_parse(kernel_add(&c, 0, text)), 0)->roots[0].def;
  ck_assert_uint_eq(gpu_list_configs(&o, i, configs), 0);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("contraction");
  tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
  tcase_add_test(t, first_configs);
  tcase_add_test(t, names);
  tcase_add_test(t, split_factors);
  tcase_add_test(t, only_contractions_have_configs);
  return run_suite("gpu-contraction", t);
}
