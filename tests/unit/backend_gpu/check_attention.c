/* check_attention.c - the configs of an attention on GPUs: which there are, their names, and which is the first. */
#include <check.h>
#include <string.h>

#include "backend_gpu/algorithms/config.h"
#include "tests/suite.h"
#include "tests/unit/emit/kernel_case.h"

static gpu_config_options options_for(const char *cpu, bool exact) {
  emit_target *t = ARENA_NEW(kernel_arena, emit_target);
  ASSERT_OK(emit_target_nvptx(kernel_arena, cpu, t));
  return (gpu_config_options){.target = t, .numerics = {.exact = exact}};
}

static gpu_config_options options_of(bool exact) { return options_for("sm_80", exact); }

/* Returns an attention of b batches, n rows and m keys of `size` elements. */
static const hlo_instr *attention_of(const char *t, int b, int n, int m, int size) {
  kernel_cases c = {0};
  const char *full = TEXT("%s[%d,%d,%d]", t, b, n, m), *kept = TEXT("%s[%d,%d]", t, b, n);
  const char *q = TEXT("%s[%d,%d,%d]", t, b, n, size), *k = TEXT("%s[%d,%d,%d]", t, b, m, size);
  const char *text = TEXT(
      "%s(%%q: %s, %%k: %s, %%v: %s) {\n"
      "%%x = dot(%%q, %%k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : %s\n"
      "%%m = reduce(%%x) {dimensions=[2], reducer=maximum} : %s\n%%mb = broadcast(%%m) {dimensions=[0,1]} : %s\n"
      "%%d = subtract(%%x, %%mb) : %s\n%%e = exponential(%%d) : %s\n"
      "%%s = reduce(%%e) {dimensions=[2], reducer=add} : %s\n%%sb = broadcast(%%s) {dimensions=[0,1]} : %s\n"
      "%%p = divide(%%e, %%sb) : %s\n"
      "%%pv = dot(%%p, %%v) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : %s\nreturn %%pv\n}",
      q, q, k, k, full, kept, full, full, full, kept, full, full, q);
  hlo_instr *i = (hlo_instr *)kernel_parse(kernel_add(&c, 0, text));
  hlo_attr_of(i, HLO_ATTR_FUSION)->i = HLO_FUSION_ATTENTION;
  return i;
}

static const hlo_instr *attention(int b, int n, int m) { return attention_of("f32", b, n, m, 64); }

START_TEST(first_configs) {
  static const struct {
    int batches, rows, keys;
    bool exact;
    const char *first;
  } cases[] = {
      {64, 1024, 1024, false, "attention:4x2-1"}, /* many blocks */
      {12, 1, 1024, false, "attention:1x1-16/4"}, /* one tile of keys for each block */
      {12, 1, 1024, true, "attention:1x1-16"},     {12, 1, 512, false, "attention:1x1-16"}, /* few tiles */
      {12, 1, 65536, false, "attention:1x1-16/8"},                                          /* enough blocks */
      {1, 2, 65536, false, "attention:1x1-8/32"},  {2, 64, 4096, false, "attention:1x4-1/8"},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    gpu_config configs[GPU_MOST_CONFIGS];
    gpu_config_options o = options_of(cases[k].exact);
    uint32_t n = gpu_list_configs(&o, attention(cases[k].batches, cases[k].rows, cases[k].keys), configs);
    ck_assert_msg(n > 0, "case %zu has no config", k);
    ck_assert_str_eq(configs[0].name, cases[k].first);
  }
}
END_TEST

/* Each config is found by its name, and names are unique. */
START_TEST(found_by_name) {
  gpu_config configs[GPU_MOST_CONFIGS], found;
  gpu_config_options o = options_of(false), exact = options_of(true);
  const hlo_instr *i = attention(3, 20, 1024);
  uint32_t n = gpu_list_configs(&o, i, configs);
  ck_assert_uint_ge(n, 4);
  for (uint32_t k = 0; k < n; k++) {
    ck_assert(gpu_find_config(&o, i, configs[k].name, &found));
    ck_assert(found.write == configs[k].write && found.bytes == configs[k].bytes);
    ck_assert_mem_eq(&found.attention, &configs[k].attention, found.bytes);
    ck_assert(gpu_find_config(&exact, i, configs[k].name, &found) == !strchr(configs[k].name, '/'));
    for (uint32_t j = 0; j < k; j++) {
      ck_assert_str_ne(configs[j].name, configs[k].name);
    }
  }
}
END_TEST

/* A block has 16 rows: 2 tiles for each batch.  Each row and block has 64 values and 3 numbers in scratch memory. */
START_TEST(memory) {
  gpu_config found;
  gpu_config_options o = options_of(false);
  const hlo_instr *i = attention(3, 20, 1024);
  ck_assert(gpu_find_config(&o, i, "attention:1x2-1/8", &found));
  ck_assert_int_eq(gpu_config_counters(&found, i), 3 * 2);
  ck_assert_int_eq(gpu_config_scratch(&found, i), 3 * 2 * 16 * 8 * (64 + 3) * 4);
  ck_assert(gpu_find_config(&o, i, "attention:1x2-1", &found));
  ck_assert(gpu_config_counters(&found, i) == 0 && gpu_config_scratch(&found, i) == 0);
}
END_TEST

/* Tensor cores multiply f16 and bf16, rows of few registers, and enough rows. */
START_TEST(tensor_cores) {
  static const struct {
    const char *cpu, *type;
    int rows, size;
    bool exact;
    const char *first;
  } cases[] = {
      {"sm_80", "f16", 1024, 64, false, "attention:mma-64"},  {"sm_90a", "bf16", 1024, 128, false, "attention:mma-32"},
      {"sm_80", "f16", 64, 64, false, "attention:mma-64/16"}, {"sm_80", "f16", 1024, 136, false, "attention:2x4-1"},
      {"sm_80", "f16", 15, 64, false, "attention:1x4-1/16"},  {"sm_80", "f16", 1024, 64, true, "attention:4x2-1"},
      {"sm_75", "f16", 1024, 64, false, "attention:4x2-1"},   {"sm_80", "f32", 1024, 64, false, "attention:4x2-1"},
      {"sm_80", "f64", 1024, 64, false, "attention:4x1-1"},
  };
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    gpu_config configs[GPU_MOST_CONFIGS], found;
    gpu_config_options o = options_for(cases[k].cpu, cases[k].exact);
    const hlo_instr *i = attention_of(cases[k].type, 4, cases[k].rows, 4096, cases[k].size);
    ck_assert_uint_gt(gpu_list_configs(&o, i, configs), 0);
    ck_assert_msg(strcmp(configs[0].name, cases[k].first) == 0, "case %zu: %s", k, configs[0].name);
    ck_assert(gpu_find_config(&o, i, cases[k].first, &found));
    bool takes = k < 3 || k == 4; /* the others have wide heads, are exact, or are of another target or type */
    ck_assert(gpu_find_config(&o, i, "attention:mma-32/2", &found) == takes);
  }
}
END_TEST

START_TEST(refused) {
  static const char *const names[] = {"",
                                      "loops",
                                      "attention",
                                      "attention:1x4",
                                      "attention:3x4-1",
                                      "attention:8x1-1",
                                      "attention:1x8-1",
                                      "attention:2x1-2",    /* several rows and parts */
                                      "attention:1x1-32",   /* more parts than groups */
                                      "attention:1x1-16/1", /* not how whole sums are spelled */
                                      "attention:1x1-16/3",
                                      "attention:1x1-16/64",
                                      "attention:1x1-16/2/2",
                                      "attention:-1x1-16",
                                      "attention:mma-64", /* not for f32 */
                                      "tiles:1x1"};
  gpu_config found;
  gpu_config_options o = options_of(false);
  const hlo_instr *i = attention(3, 20, 1024);
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    ck_assert_msg(!gpu_find_config(&o, i, names[k], &found), "%s", names[k]);
  }
  static const char *const mma_names[] = {"attention:mma",    "attention:mma-16",  "attention:mma-65",
                                          "attention:mma-96", "attention:mma-128", "attention:mma-64/3"};
  i = attention_of("f16", 3, 20, 1024, 64);
  for (size_t k = 0; k < sizeof mma_names / sizeof *mma_names; k++) {
    ck_assert_msg(!gpu_find_config(&o, i, mma_names[k], &found), "%s", mma_names[k]);
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("attention");
  tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
  tcase_add_test(t, first_configs);
  tcase_add_test(t, found_by_name);
  tcase_add_test(t, tensor_cores);
  tcase_add_test(t, memory);
  tcase_add_test(t, refused);
  return run_suite("gpu-attention", t);
}
