/* check_emit_movement.c - compares kernels that move elements, by constant and by computed indices, with the reference
 * evaluator. */
#include <string.h>

#include "tests/unit/emit/kernel_case.h"
#include "tests/unit/emit/kernel_texts.h"

START_TEST(movement) {
  kernel_cases c = {0};
  for (size_t k = 0; k < N_MOVEMENT; k++) {
    kernel_add(&c, 0, movement_texts[k]);
  }
  kernel_check_all(&c);
}
END_TEST

static const char *const indexed_texts[] = {
    "f32[3,20](%x: f32[7,40], %s: s64[2]) {\n%y = dynamic-slice(%x, %s) {sizes=[3, 20]} : f32[3,20]\nreturn "
    "%y\n}",
    "f32[7,40](%x: f32[7,40], %u: f32[3,20], %s: s64[2]) {\n%y = dynamic-update-slice(%x, %u, %s) : "
    "f32[7,40]\nreturn %y\n}",
    "f32[4,33](%x: f32[9,33], %i: s64[4]) {\n%y = gather(%x, %i) {offset_dims=[1], collapsed_dims=[0], "
    "operand_batch=[], "
    "indices_batch=[], index_map=[0], index_vector_dim=1, sizes=[1, 33]} : f32[4,33]\nreturn %y\n}",
    "f32[3,40](%x: f32[3,9], %i: s32[40]) {\n%y = gather(%x, %i) {offset_dims=[0], collapsed_dims=[1], "
    "operand_batch=[], "
    "indices_batch=[], index_map=[1], index_vector_dim=1, sizes=[3, 1]} : f32[3,40]\nreturn %y\n}",
    "f32[2,20,5](%x: f32[8,9,6], %i: s64[2,20,2]) {\n%y = gather(%x, %i) {offset_dims=[2], "
    "collapsed_dims=[0, 1], operand_batch=[], "
    "indices_batch=[], index_map=[1, 0], index_vector_dim=2, sizes=[1, 1, 5]} : f32[2,20,5]\nreturn %y\n}",
    "f32[3,17](%x: f32[3,9], %i: s64[3,17,1]) {\n%y = gather(%x, %i) {offset_dims=[], collapsed_dims=[1], "
    "operand_batch=[0], "
    "indices_batch=[0], index_map=[1], index_vector_dim=2, sizes=[1, 1]} : f32[3,17]\nreturn %y\n}",
    "f32[2,20](%x: f32[9,20], %i: s64[2]) {\n%y = gather(%x, %i) {offset_dims=[1], collapsed_dims=[0], "
    "operand_batch=[], "
    "indices_batch=[], index_map=[0], index_vector_dim=1, sizes=[1, 20]} : f32[2,20]\n%z = exponential(%y) : "
    "f32[2,20]\nreturn %z\n}",
    "f32[9,20](%x: f32[9,20], %i: s64[5], %u: f32[5,20]) {\n%y = scatter(%x, %i, %u) {offset_dims=[1], "
    "collapsed_dims=[0], "
    "operand_batch=[], indices_batch=[], index_map=[0], index_vector_dim=1, reducer=add} : f32[9,20]\nreturn "
    "%y\n}",
    "s32[30](%x: s32[30], %i: s64[12,1], %u: s32[12]) {\n%y = scatter(%x, %i, %u) {offset_dims=[], "
    "collapsed_dims=[0], "
    "operand_batch=[], indices_batch=[], index_map=[0], index_vector_dim=1, reducer=replace} : "
    "s32[30]\nreturn %y\n}",
    "bf16[9,6](%x: bf16[9,6], %i: s32[4,2], %u: bf16[4,2,3]) {\n%y = scatter(%x, %i, %u) {offset_dims=[1, "
    "2], collapsed_dims=[], "
    "operand_batch=[], indices_batch=[], index_map=[0, 1], index_vector_dim=1, reducer=maximum} : "
    "bf16[9,6]\nreturn %y\n}",
    "f32[3,9](%x: f32[3,9], %i: s64[3,5,1], %u: f32[3,5]) {\n%y = scatter(%x, %i, %u) {offset_dims=[], "
    "collapsed_dims=[1], "
    "operand_batch=[0], indices_batch=[0], index_map=[1], index_vector_dim=2, reducer=multiply} : "
    "f32[3,9]\nreturn %y\n}",
};

START_TEST(indexed) {
  kernel_cases c = {0};
  for (size_t k = 0; k < sizeof indexed_texts / sizeof *indexed_texts; k++) {
    kernel_case *one = kernel_add(&c, 1e-5, indexed_texts[k]);
    one->low = -2;
    one->high = 12;
    if (strstr(one->text, "scatter") || strstr(one->text, "update")) { /* in place as well */
      kernel_case *again = kernel_add(&c, 1e-5, indexed_texts[k]);
      again->low = -2;
      again->high = 12;
      again->alias = 0;
    }
  }
  kernel_case *one =
      kernel_add(&c, 0,
                 "f32[100](%x: f32[100], %y: f32[100]) {\n%z = add(%x, %y) : f32[100]\n%w = multiply(%z, %x) : "
                 "f32[100]\nreturn %w\n}");
  one->alias = 1;
  one = kernel_add(
      &c, 0,
      "f32[100];f32[100](%x: f32[100], %y: f32[100]) {\n%z = add(%x, %y) : f32[100]\n%w = multiply(%z, %x) : "
      "f32[100]\nreturn %z, %w\n}");
  one->alias = 0;
  kernel_check_all(&c);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("emit-movement");
  tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
  tcase_set_timeout(t, 300);
  tcase_add_test(t, movement);
  tcase_add_test(t, indexed);
  return run_suite("emit-movement", t);
}
