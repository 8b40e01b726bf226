/* check_pass.c - tests that the runner refuses a pipeline in which a pass is in a wrong position, with a message that
 * names the pass and the property. */
#include <check.h>
#include <string.h>

#include "hlo/passes/pass.h"
#include "hlo/text/text.h"
#include "tests/suite.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

#define CLEAN HLO_STEP(fold), HLO_STEP(simplify), HLO_STEP(transpose_sinking), HLO_STEP(dce)

static const hlo_pass clean[] = {CLEAN};
static const hlo_pass fold_and_slice[] = {HLO_STEP(gather_to_slice), HLO_STEP(fold)};

enum { MOST_STEPS = 12 };

static const struct {
  hlo_pass steps[MOST_STEPS];
  const char *message; /* NULL: the order is right */
} pipelines[] = {
    {{HLO_STEP(loop_fusion)},
     "pass loop_fusion requires SIMPLIFIED (instructions have the forms that simplify leaves), which no pass sets "
     "before it"},
    {{CLEAN, HLO_STEP(loop_fusion)}, NULL},
    {{HLO_GROUP("clean", clean), HLO_STEP(loop_fusion)}, NULL},
    {{CLEAN, HLO_STEP(dot_canonicalization), HLO_STEP(attention)},
     "pass attention has to come before dot_canonicalization, which sets CANONICAL_DOTS (operands of dots may have "
     "been copied)"},
    {{CLEAN, HLO_STEP(attention), HLO_STEP(dot_canonicalization)}, NULL},
    {{CLEAN, HLO_STEP(loop_fusion), HLO_STEP(epilogue)}, "pass epilogue has to come before loop_fusion, which sets"},
    {{CLEAN, HLO_STEP(reduce_fusion), HLO_STEP(row_fusion)}, "pass row_fusion has to come before reduce_fusion"},
    {{CLEAN, HLO_STEP(epilogue), HLO_STEP(row_fusion), HLO_STEP(reduce_fusion), HLO_STEP(loop_fusion)}, NULL},
    {{CLEAN, HLO_STEP(layout), HLO_STEP(epilogue)}, "pass epilogue requires SIMPLIFIED"},
    {{CLEAN, HLO_STEP(layout), HLO_GROUP("clean", clean), HLO_STEP(epilogue)}, NULL},
    {{CLEAN, HLO_STEP(lookup_tables), HLO_STEP(dce), HLO_STEP(layout)},
     "pass layout has to come before lookup_tables, which sets LOOKUP_TABLES"},
    {{CLEAN, HLO_STEP(batch_norm), HLO_STEP(attention)},
     "pass attention requires DEAD_CODE_REMOVED (each instruction has a user, so that a chain can be told by its only "
     "users), which does not hold after batch_norm"},
    {{HLO_STEP(fold), HLO_STEP(qdq_fusion)}, "pass qdq_fusion has to come before fold, which sets FOLDED"},
    {{HLO_STEP(qdq_fusion), HLO_STEP(fold)}, NULL},
    {{HLO_STEP(assign_kernels), HLO_STEP(dce)}, "pass dce has to come before assign_kernels"},
    {{HLO_STEP(gather_to_slice), HLO_STEP(fold)}, NULL},
    /* In the second round of a group its first step runs after its last one. */
    {{HLO_GROUP("group", fold_and_slice)}, "pass gather_to_slice has to come before fold"},
};
enum { N_PIPELINES = sizeof pipelines / sizeof *pipelines };

static status run(int k, pass_context *c) {
  static const char text[] = "onnx-xla hlo 1\nmodule \"m\" {\nentry main(%0: f32[4]) { return %0 }\n}\n";
  hlo_module *m = NULL;
  uint32_t n = 0;
  while (n < MOST_STEPS && pipelines[k].steps[n].name) {
    n++;
  }
  TRY(hlo_parse(memory, text, strlen(text), NULL, &m));
  return hlo_run_passes(m, pipelines[k].steps, n, c);
}

static void check_run(int k, pass_context *c) {
  status s = run(k, c);
  ck_assert_msg(!s == !pipelines[k].message, "%d: %s", k, s ? status_message(s) : "nothing is refused");
  if (s) {
    ck_assert_int_eq(status_get_code(s), STATUS_INTERNAL);
    ck_assert_msg(strncmp(status_message(s), pipelines[k].message, strlen(pipelines[k].message)) == 0, "%s",
                  status_message(s));
    ck_assert_uint_eq(c->n_records, 0);
  }
  status_free(s);
}

START_TEST(order) { check_run(_i, &(pass_context){.arena = memory}); }
END_TEST

/* Passes are skipped to find a faulty one.  The check of the order counts them as if they ran, so that a pipeline is
 * accepted or refused as without skipping. */
START_TEST(skipped_passes_count) {
  check_run(_i, &(pass_context){.arena = memory, .skip = "simplify,dce,layout,reduce_fusion,fold,batch_norm"});
}
END_TEST

START_TEST(any_order) {
  status s = run(_i, &(pass_context){.arena = memory, .any_order = true});
  ck_assert_msg(!s, "%s", status_message(s));
}
END_TEST

/* Each property that a pass requires or forbids is set by some pass, and each property that a pass sets is
 * required or forbidden by some pass. */
START_TEST(properties_are_used) {
  uint32_t n, sets = 0, asked = 0;
  const hlo_pass_info *passes = hlo_pass_list(&n);
  for (uint32_t k = 0; k < n; k++) {
    sets |= passes[k].sets;
    asked |= passes[k].requires | passes[k].forbids;
    ck_assert_msg((passes[k].sets & passes[k].clears) == 0, "%s", passes[k].name);
    ck_assert_msg((passes[k].requires & passes[k].forbids) == 0, "%s", passes[k].name);
  }
  ck_assert_uint_eq(sets, asked);
}
END_TEST

int main(void) {
  TCase *tests = tcase_create("pass");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_loop_test(tests, order, 0, N_PIPELINES);
  tcase_add_loop_test(tests, skipped_passes_count, 0, N_PIPELINES);
  tcase_add_loop_test(tests, any_order, 0, N_PIPELINES);
  tcase_add_test(tests, properties_are_used);
  return run_suite("pass", tests);
}
