/* check_flash_attention.c - compares kernels of attention for any number of batches, queries and keys
 * (emit/contraction/flash_attention.h) with the reference evaluator: layouts, masks, rows without any key, sizes of
 * heads; from no query and no key to many, one kernel for all of them. */
#include <check.h>

#include "emit/contraction/flash_attention.h"
#include "hlo/ir/builder.h"
#include "hlo/text/text.h"
#include "tests/unit/emit/attention_texts.h"
#include "tests/unit/emit/sizes_case.h"

enum { ROUNDS = 40 };

/* The largest error, relative to the largest result.  Results are sums of up to 1,000 weighted values in f32, in
 * another order than the reference's.  Weights have exp's error of 2 ULP, the error of the factor by which a block of
 * keys is scaled, and that of rounded scores: what a score of up to 100 is off by is the relative error of its
 * exponential. */
static const double tolerance = 1e-5;

START_TEST(any_sizes) {
  sizes_cases c = {0};
  for (size_t k = 0; k < ATTENTION_TEXTS; k++) {
    sizes_case *one = sizes_add_text(&c, attention_texts[k]);
    one->tolerance = tolerance;
    one->write = emit_flash_attention_write;
    one->kind = HLO_FUSION_ATTENTION;
  }
  sizes_check_all(&c, ROUNDS, EMIT_MACHINES);
}
END_TEST

/* Scores near -1000 are rounded to multiples of 2^-14, so the relative error of their exponentials can be half of
 * that. */
START_TEST(masked_tiles) {
  sizes_cases c = {0};
  for (int k = 0; k < 2; k++) {
    sizes_case *one = sizes_add_text(&c, attention_masked_tiles[k]);
    one->tolerance = 1e-3;
    one->write = emit_flash_attention_write;
    one->kind = HLO_FUSION_ATTENTION;
  }
  sizes_check_all(&c, 8 * ROUNDS, EMIT_MACHINES);
}
END_TEST

/* A row of zeros times v is NaN where v is infinite, which every third case has. */
START_TEST(zeros_where_nan) {
  sizes_cases c = {0};
  for (int k = 0; k < 3; k++) {
    sizes_case *one = sizes_add_text(&c, attention_without_nan[k % 2]);
    one->tolerance = tolerance;
    one->infinite = k == 2 ? 2 : 0;
    one->write = emit_flash_attention_write;
    one->kind = HLO_FUSION_ATTENTION;
  }
  sizes_check_all(&c, 2 * ROUNDS, EMIT_MACHINES);
}
END_TEST

/* Returns a fusion of kind attention with the entry's body. */
static const hlo_instr *attention_of(const hlo_computation *entry) {
  hlo_module *m = entry->module;
  hlo_builder b = hlo_builder_make(hlo_computation_create(m, "caller"));
  hlo_value *operands = ARENA_NEW_N(sizes_arena, hlo_value, entry->n_params);
  for (uint32_t k = 0; k < entry->n_params; k++) {
    operands[k] = hlo_result(hlo_parameter(b.computation, entry->params[k]->shapes[0]), 0);
  }
  hlo_computation **callee = ARENA_NEW_N(sizes_arena, hlo_computation *, 1);
  *callee = hlo_computation_clone(m, entry);
  hlo_instr *i = hlo_instr_create(b.computation, NULL, HLO_FUSION, entry->n_params, operands, 1);
  hlo_attr_of(i, HLO_ATTR_FUSION)->i = HLO_FUSION_ATTENTION;
  *hlo_attr_of(i, HLO_ATTR_COMPUTATIONS) = (hlo_attr){.n_comps = 1, .comps = callee};
  ASSERT_OK(hlo_infer(i));
  return i;
}

static status objects_of_all(void *data) {
  static const char *const machines[][2] = {{"aarch64-unknown-linux-gnu", "generic"},
                                            {"riscv64-unknown-linux-gnu", "generic-rv64"}};
  (void)data;
  for (size_t j = 0; j < sizeof machines / sizeof *machines; j++) {
    sizes_cases c = {0};
    emit_target t;
    emit_module *m;
    emit_kernel_info info;
    const void *object;
    size_t size;
    TRY(emit_target_init(sizes_arena, machines[j][0], machines[j][1], 0, &t));
    TRY(emit_module_create(sizes_arena, &t, "attention", &m));
    for (size_t k = 0; k < ATTENTION_TEXTS; k++) {
      const hlo_instr *i = attention_of(sizes_add_text(&c, attention_texts[k])->entry);
      TRY(emit_flash_attention_write(m, arena_printf(sizes_arena, "k%zu", k), i, NULL, NULL, 0, &info));
    }
    TRY(status_prefix(emit_module_object(m, &object, &size), "%s", machines[j][0]));
  }
  return NULL;
}

/* Compiles the kernels for processors that cannot be run here: LLVM must be able to select all
 * instructions. */
START_TEST(other_machines) { ASSERT_OK(guard_run(objects_of_all, NULL)); }
END_TEST

int main(void) {
  TCase *t = tcase_create("flash-attention");
  tcase_add_checked_fixture(t, sizes_setup, sizes_teardown);
  tcase_set_timeout(t, 600);
  tcase_add_test(t, any_sizes);
  tcase_add_test(t, masked_tiles);
  tcase_add_test(t, zeros_where_nan);
  tcase_add_test(t, other_machines);
  return run_suite("flash-attention", t);
}
