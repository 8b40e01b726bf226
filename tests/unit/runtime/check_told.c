/* check_told.c - parameters whose shapes tell a program the elements of an input (rt_io.told). */
#include "runtime/program/told.h"

#include <check.h>

#include "tests/suite.h"

enum { N = 3 };

static rt_io told(uint32_t input, uint32_t element, dim value) {
  return (rt_io){
      .name = "c", .shape = shape_make(DTYPE_U8, 2, (dim[]){value, 0}), .told = input + 1, .element = element};
}

/* The inputs are x, f32[2], and c, s32[3]; three more parameters tell the elements of c. */
static rt_program program(rt_io *params) {
  params[0] = (rt_io){.name = "x", .shape = shape_make(DTYPE_F32, 1, (dim[]){2})};
  params[1] = (rt_io){.name = "c", .shape = shape_make(DTYPE_S32, 1, (dim[]){N})};
  params[2] = told(1, 0, 7);
  params[3] = told(1, 1, 0);
  params[4] = told(1, 2, 65536);
  return (rt_program){.n_params = 5, .params = params};
}

START_TEST(shapes) {
  rt_io params[5];
  program(params);
  int32_t values[N] = {4, 5, 6};
  literal c = literal_make(params[1].shape, values);
  shape s = rt_told_shape(&params[2], &c);
  ck_assert(s.rank == 2 && s.dims[0] == 4 && s.dims[1] == 0 && s.type == DTYPE_U8);
  ck_assert_int_eq(rt_told_shape(&params[3], &c).dims[0], 5);
  s = rt_told_shape(&params[4], &c);
  ck_assert(s.rank == 2 && s.dims[0] == 6 && s.dims[1] == 0);
  values[1] = -1;
  ck_assert_int_eq(rt_told_shape(&params[3], &c).dims[0], -1);
  c.data = NULL;
  ck_assert_int_eq(rt_told_shape(&params[2], &c).dims[0], -1);
  c = literal_make(shape_make(DTYPE_S32, 1, (dim[]){2}), values); /* shorter than what the program is for */
  ck_assert_int_eq(rt_told_shape(&params[4], &c).dims[0], -1);
}
END_TEST

START_TEST(contents) {
  rt_io params[5];
  arena *a = arena_create(NULL);
  rt_program p = program(params);
  ck_assert_uint_eq(rt_program_inputs(&p), 2);
  ck_assert(!rt_told_content(a, &p, 0));
  const int32_t *c = rt_told_content(a, &p, 1);
  ck_assert(c[0] == 7 && c[1] == 0 && c[2] == 65536);
  arena_destroy(a);
}
END_TEST

/* A program with a further parameter that tells nothing, such as memory with room (here parameter 4), does
 * not take two inputs.  A program for certain contents of an input takes only those. */
START_TEST(inputs) {
  rt_io params[5];
  rt_program p = program(params);
  ck_assert(rt_program_takes_inputs(&p, 2) && !rt_program_takes_inputs(&p, 1) && !rt_program_takes_inputs(&p, 3));
  params[4].told = 0;
  ck_assert(!rt_program_takes_inputs(&p, 2));
  int32_t content[N] = {4, 5, 6}, other[N] = {4, 5, 7};
  program(params);
  ck_assert(rt_program_has_contents(&p, NULL));
  params[1].value = content;
  ck_assert(rt_program_has_contents(&p, (const void *[]){NULL, (int32_t[]){4, 5, 6}}));
  ck_assert(!rt_program_has_contents(&p, (const void *[]){NULL, other}));
  ck_assert(!rt_program_has_contents(&p, (const void *[]){NULL, NULL}) && !rt_program_has_contents(&p, NULL));
}
END_TEST

static void refused(const rt_program *p) {
  status s = rt_told_check(p);
  ck_assert(s && status_get_code(s) == STATUS_INVALID_FILE);
  status_free(s);
}

START_TEST(damaged) {
  rt_io params[5];
  rt_program p = program(params);
  ASSERT_OK(rt_told_check(&p));
  params[4].element = N; /* behind the last element */
  refused(&p);
  params[4].element = UINT32_MAX;
  refused(&p);
  program(params);
  params[4].told = 1; /* an input of floats */
  refused(&p);
  params[4].told = 3; /* a parameter that tells contents itself */
  refused(&p);
  params[4].told = 5;
  refused(&p);
  program(params);
  params[4].shape.dims[1] = 1; /* has elements */
  refused(&p);
  params[4].shape.rank = 0;
  refused(&p);
  program(params);
  params[1].shape.dims[0] = -1;
  refused(&p);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("told");
  tcase_add_test(c, shapes);
  tcase_add_test(c, contents);
  tcase_add_test(c, inputs);
  tcase_add_test(c, damaged);
  return run_suite("told", c);
}
