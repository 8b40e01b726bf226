/* check_computations.c - the reference evaluator on computations: control flow, deadlines, memory, folding. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "tests/suite.h"
#include "tests/unit/backend_ref/eval_case.h"

#define HEAD "onnx-xla hlo 1\nmodule \"test\" {\n"

START_TEST(loops) {
  /* i counts to 5, x doubles */
  eval_check_text(HEAD
                  "computation go_on(%i: s64[], %x: f32[2]) {\n"
                  "  %n = constant() {value=s64[] 5} : s64[]\n"
                  "  %p = compare(%i, %n) {comparison=lt} : pred[]\n"
                  "  return %p\n}\n"
                  "computation step(%i: s64[], %x: f32[2]) {\n"
                  "  %one = constant() {value=s64[] 1} : s64[]\n"
                  "  %j = add(%i, %one) : s64[]\n"
                  "  %y = add(%x, %x) : f32[2]\n"
                  "  return %j, %y\n}\n"
                  "entry main() {\n"
                  "  %i = constant() {value=s64[] 0} : s64[]\n"
                  "  %x = constant() {value=f32[2] {1, 3}} : f32[2]\n"
                  "  %j, %y = while(%i, %x) {computations=[go_on, step]} : s64[], f32[2]\n"
                  "  %a = constant() {value=s64[] 5} : s64[]\n"
                  "  %b = constant() {value=f32[2] {32, 96}} : f32[2]\n"
                  "  return %j, %y, %a, %b\n}\n}\n");
  /* carried values that change places, three times; nothing is computed */
  eval_check_text(HEAD
                  "computation go_on(%i: s64[], %x: s8[], %y: s8[]) {\n"
                  "  %n = constant() {value=s64[] 3} : s64[]\n"
                  "  %p = compare(%i, %n) {comparison=lt} : pred[]\n"
                  "  return %p\n}\n"
                  "computation step(%i: s64[], %x: s8[], %y: s8[]) {\n"
                  "  %one = constant() {value=s64[] 1} : s64[]\n"
                  "  %j = add(%i, %one) : s64[]\n"
                  "  return %j, %y, %x\n}\n"
                  "entry main() {\n"
                  "  %i = constant() {value=s64[] 0} : s64[]\n"
                  "  %one = constant() {value=s8[] 1} : s8[]\n"
                  "  %two = add(%one, %one) : s8[]\n"
                  "  %j, %x, %y = while(%i, %one, %two) {computations=[go_on, step]} : s64[], s8[], s8[]\n"
                  "  %again = constant() {value=s8[] 2} : s8[]\n"
                  "  return %x, %y, %again, %one\n}\n}\n");
}
END_TEST

#define BRANCHES                                         \
  HEAD "computation same(%x: s32[]) {\n  return %x\n}\n" \
       "computation twice(%x: s32[]) {\n  %y = add(%x, %x) : s32[]\n  return %y\n}\n"
#define CONDITIONAL(type, value, expected)                                        \
  BRANCHES "entry main() {\n  %i = constant() {value=" type " " value "} : " type \
           "\n"                                                                   \
           "  %x = constant() {value=s32[] 7} : s32[]\n"                          \
           "  %r = conditional(%i, %x) {computations=[same, twice]} : s32[]\n"    \
           "  %w = constant() {value=s32[] " expected "} : s32[]\n  return %r, %w\n}\n}\n"

START_TEST(branches) {
  eval_check_text(CONDITIONAL("pred[]", "true", "7"));
  eval_check_text(CONDITIONAL("pred[]", "false", "14"));
  eval_check_text(CONDITIONAL("s32[]", "0", "7"));
  eval_check_text(CONDITIONAL("s32[]", "1", "14"));
  eval_check_text(CONDITIONAL("s32[]", "-1", "14")); /* an index out of range selects the last branch */
  eval_check_text(CONDITIONAL("s32[]", "9", "14"));
  eval_check_text(BRANCHES
                  "entry main() {\n  %x = constant() {value=s32[] 7} : s32[]\n"
                  "  %r = composite(%x) {name=\"twice\", ints=[], floats=[], computations=[twice]} : s32[]\n"
                  "  %f = fusion(%r) {kind=loop, computations=[twice]} : s32[]\n"
                  "  %w = constant() {value=s32[] 28} : s32[]\n  return %f, %w\n}\n}\n");
}
END_TEST

/* --- entries --- */

static status endless(void *data) {
  mem_budget *budget = data;
  arena *a = arena_create(budget);
  arena_cleanup(eval_memory, (void (*)(void *))arena_destroy, a);
  hlo_module *m = eval_parse(HEAD
                             "computation go_on(%x: pred[]) {\n  return %x\n}\n"
                             "computation step(%x: pred[]) {\n  %y = copy(%x) : pred[]\n  return %y\n}\n"
                             "entry main(%x: pred[]) {\n"
                             "  %y = while(%x) {computations=[go_on, step]} : pred[]\n  return %y\n}\n}\n");
  uint8_t yes = 1;
  literal x = literal_make(shape_scalar(DTYPE_PRED), &yes), root;
  return ref_eval_computation(m->entry, &x, a, &root);
}

/* A loop that never ends stops at the deadline, here long past. */
START_TEST(deadline) {
  static mem_budget budget = {.deadline = 1}; /* the arena lives longer than this test */
  status s = guard_run(endless, &budget);
  ck_assert_int_eq(status_get_code(s), STATUS_RESOURCE);
  status_free(s);
}
END_TEST

/* Multiplies x by itself a hundred times in turn, 1 MB for each product, with a limit of 8 MB: products that
 * are no longer needed are freed. */
static status long_chain(void *data) {
  hlo_module *m = hlo_module_create(eval_memory, "test");
  m->entry = hlo_computation_create(m, "main");
  hlo_builder b = hlo_builder_make(m->entry);
  dim n = 1 << 18;
  shape s = shape_make(DTYPE_F32, 1, &n);
  hlo_value x = hlo_result(hlo_parameter(m->entry, s), 0);
  for (int k = 0; k < 100; k++) {
    x = hlo_binary(&b, HLO_MUL, x, x);
  }
  hlo_set_roots(m->entry, 1, &x);
  TRY(hlo_builder_take_error(&b));
  mem_budget budget = {.limit = 8 << 20};
  arena *a = arena_create(&budget);
  void *ones;
  literal arg = literal_new(eval_memory, s, &ones), root;
  for (int k = 0; k < 1 << 18; k++) {
    ((float *)ones)[k] = -1;
  }
  status failed = ref_eval_computation(m->entry, &arg, a, &root);
  if (!failed && (literal_f64(&root, 0) != 1 || literal_f64(&root, (1 << 18) - 1) != 1)) {
    failed = status_error(STATUS_INTERNAL, "the product is wrong");
  }
  arena_destroy(a);
  if (!failed && budget.used) {
    failed = status_error(STATUS_INTERNAL, "memory is left over");
  }
  return failed;
}

START_TEST(frees_what_is_dead) {
  status s = guard_run(long_chain, NULL);
  ck_assert_msg(!s, "%s", eval_fail_text(s));
}
END_TEST

static status fold(void *data) {
  hlo_module *m = hlo_module_create(eval_memory, "test");
  m->entry = hlo_computation_create(m, "main");
  hlo_builder b = hlo_builder_make(m->entry);
  b.eval = ref_fold;
  b.fold_bytes = 1 << 20;
  dim many = 1000;
  hlo_value x = hlo_s64s(&b, (int64_t[]){1, 2}, 2), y = hlo_binary(&b, HLO_ADD, x, x);
  hlo_value splat = hlo_splat(&b, shape_make(DTYPE_F32, 1, &many), 3);
  TRY(hlo_builder_take_error(&b));
  const literal *l = hlo_literal(y);
  CHECK_THAT(l && literal_i64(l, 0) == 2 && literal_i64(l, 1) == 4, STATUS_INTERNAL, "1+1, 2+2 was not folded");
  CHECK_THAT(!hlo_literal(splat), STATUS_INTERNAL, "a splat became a constant");
  return NULL;
}

START_TEST(folding) {
  status s = guard_run(fold, NULL);
  ck_assert_msg(!s, "%s", eval_fail_text(s));
}
END_TEST

/* Rows 2 and 3 of a matrix are contiguous, so folding the slice must not copy them; columns are not contiguous. */
static status fold_slices(void *data) {
  hlo_module *m = hlo_module_create(eval_memory, "test");
  m->entry = hlo_computation_create(m, "main");
  hlo_builder b = hlo_builder_make(m->entry);
  b.eval = ref_fold;
  b.fold_bytes = 1 << 20;
  int32_t elements[4][3] = {{0}, {0}, {6, 7, 8}, {9, 10, 11}};
  literal matrix = literal_make(shape_make(DTYPE_S32, 2, (dim[]){4, 3}), elements);
  hlo_value x = hlo_constant(&b, matrix);
  const literal *rows = hlo_literal(hlo_slice(&b, x, (int64_t[]){2, 0}, (int64_t[]){4, 3}, (int64_t[]){1, 1}));
  const literal *columns = hlo_literal(hlo_slice(&b, x, (int64_t[]){2, 1}, (int64_t[]){4, 3}, (int64_t[]){1, 1}));
  TRY(hlo_builder_take_error(&b));
  CHECK_THAT(rows && rows->data == elements[2], STATUS_INTERNAL, "contiguous rows were copied");
  CHECK_THAT(columns && memcmp(columns->data, (int32_t[]){7, 8, 10, 11}, 16) == 0, STATUS_INTERNAL, "wrong columns");
  return NULL;
}

START_TEST(folding_slices) {
  status s = guard_run(fold_slices, NULL);
  ck_assert_msg(!s, "%s", eval_fail_text(s));
}
END_TEST

static status every_op(void *data) {
  hlo_module *m = hlo_module_create(eval_memory, "test");
  hlo_computation *c = hlo_computation_create(m, "main");
  for (int op = 0; op < HLO_OP_COUNT; op++) {
    hlo_instr *i = hlo_instr_create(c, NULL, (hlo_op)op, 0, NULL, 0); /* no shapes: any types will do */
    CHECK_THAT(ref_supports(i) == (op != HLO_CUSTOM_CALL), STATUS_INTERNAL, "%s: no function",
               hlo_op_get_info((hlo_op)op)->name);
  }
  return NULL;
}

START_TEST(table_is_complete) {
  status s = guard_run(every_op, NULL);
  ck_assert_msg(!s, "%s", eval_fail_text(s));
}
END_TEST

int main(void) {
  TCase *c = tcase_create("computations");
  tcase_add_checked_fixture(c, eval_setup, eval_teardown);
  tcase_add_test(c, loops);
  tcase_add_test(c, branches);
  tcase_add_test(c, deadline);
  tcase_add_test(c, frees_what_is_dead);
  tcase_add_test(c, folding);
  tcase_add_test(c, folding_slices);
  tcase_add_test(c, table_is_complete);
  return run_suite("computations", c);
}
