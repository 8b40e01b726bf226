/* check_fold_sizes.c - the arithmetic of sizes is folded to `sizes` or constants while it is built. */
#include <stdlib.h>

#include "backend_ref/eval.h"
#include "base/dim/guard.h"
#include "hlo/ir/fold_sizes.h"
#include "tests/unit/hlo/hlo_case.h"

static arena *memory;
static hlo_builder b;
static dim_table *table;

/* The symbols n, with the hint 6, and m, with the hint 2. */
static void setup(void) {
  memory = arena_create(NULL);
  hlo_module *m = hlo_module_create(memory, "m");
  m->entry = hlo_computation_create(m, "main");
  b = hlo_builder_make(m->entry);
  b.eval = ref_fold;
  b.fold_bytes = 1024;
  table = m->dims;
  dim_set_hint(table, dim_symbol(table, "n"), 6);
  dim_set_hint(table, dim_symbol(table, "m"), 2);
}

static void teardown(void) { arena_destroy(memory); }

static dim parse(const char *text) {
  dim d = DIM_OVERFLOW;
  ASSERT_OK(dim_parse_signed(table, &text, &d));
  return d;
}

/* Makes the list of sizes "n,4,-1" of the type. */
static hlo_value sizes_of(dtype type, const char *text) {
  dim elements[HLO_MAX_SIZES];
  int n = 0;
  for (const char *at = text; *at; n++) {
    size_t length = strcspn(at, ",");
    elements[n] = parse(arena_strndup(memory, at, length));
    at += length + (at[length] == ',');
  }
  return hlo_sizes(&b, type, n, elements);
}

static hlo_value sizes(const char *text) { return sizes_of(DTYPE_S64, text); }

/* Asserts that v is known, and has these elements. */
static void expect(hlo_value v, const char *want) {
  dim elements[HLO_MAX_SIZES];
  ck_assert_msg(!b.error, "%s", status_message(b.error));
  int n = hlo_sizes_of(v, elements);
  ck_assert_msg(n >= 0, "%s is not folded", want);
  const char *text = "";
  for (int k = 0; k < n; k++) {
    text = arena_printf(memory, "%s%s%s", text, k ? "," : "", dim_print(memory, table, elements[k]));
  }
  ck_assert_str_eq(text, want);
}

static hlo_value op(hlo_op o, const char *x, const char *y) { return hlo_binary(&b, o, sizes(x), sizes(y)); }

START_TEST(arithmetic) {
  expect(op(HLO_ADD, "n,4", "m,1"), "m+n,5");
  expect(op(HLO_SUB, "n,m", "n,n"), "0,m-n");
  expect(op(HLO_MUL, "n,n+1", "m,-1"), "m*n,-n-1");
  expect(op(HLO_DIV, "n,4*n", "4,4"), "n/4,n");
  expect(op(HLO_REM, "n,4*n", "4,4"), "n%4,0");
  expect(op(HLO_DIV, "-9,m-n", "n,4"), "-9/n,m-(3*m+n)/4"); /* towards zero: -(9/n) and -((n-m)/4) */
  expect(op(HLO_REM, "-9,m-n", "n,4"), "-9%n,-(3*m+n)%4");
  int64_t value;
  ck_assert(dim_hint(table, parse("-9/n"), &value) && value == -1);
  ck_assert(dim_hint(table, parse("-(3*m+n)%7"), &value) && value == -5);
  expect(op(HLO_MAX, "n,3", "m,n"), "n,n");
  expect(op(HLO_MIN, "n,3", "m,n"), "m,3");
  expect(hlo_unary(&b, HLO_NEG, sizes("n,-3")), "-n,3");
  expect(hlo_unary(&b, HLO_ABS, sizes("m-n,n")), "n-m,n");
}
END_TEST

START_TEST(movement) {
  hlo_value x = sizes("n,m,7");
  expect(hlo_slice_dim(&b, x, 0, 1, 3), "m,7");
  expect(hlo_slice(&b, x, (dim[]){0}, (dim[]){3}, (int64_t[]){2}), "n,7");
  expect(hlo_concatenate(&b, 2, (hlo_value[]){x, hlo_s64s(&b, (int64_t[]){-1}, 1)}, 0), "n,m,7,-1");
  expect(hlo_take(&b, x, hlo_s64s(&b, (int64_t[]){2, 0}, 2), 0), "7,n");
  expect(hlo_reverse(&b, x, 1, (int64_t[]){0}), "7,m,n");
  expect(hlo_reshape(&b, sizes("n"), 0, NULL), "n");
  expect(
      hlo_broadcast(&b, hlo_sizes(&b, DTYPE_S64, -1, (dim[]){parse("n")}), shape_make(DTYPE_S64, 1, (dim[]){2}), NULL),
      "n,n");
  expect(hlo_reduce(&b, x, HLO_REDUCE_MUL, 1, (int64_t[]){0}), "7*m*n");
  expect(hlo_reduce(&b, x, HLO_REDUCE_ADD, 1, (int64_t[]){0}), "m+n+7");
}
END_TEST

/* What is the same for all sizes becomes a constant; comparisons become guards. */
START_TEST(constants_and_guards) {
  hlo_value one = hlo_slice_dim(&b, sizes("n,7"), 0, 1, 2);
  ck_assert_ptr_nonnull(hlo_literal(one));
  ck_assert_ptr_nonnull(hlo_literal(op(HLO_SUB, "n+2", "n")));
  expect(hlo_compare(&b, HLO_EQ, sizes("n,n"), sizes("1,6")), "0,1");
  expect(hlo_compare(&b, HLO_LT, sizes("n,m"), sizes("m,n")), "0,1");
  expect(hlo_select(&b, hlo_compare(&b, HLO_GE, sizes("n"), sizes("m")), sizes("n"), sizes("m")), "n");
  uint32_t n;
  (void)dim_guards(table, &n);
  ck_assert_uint_ge(n, 3);
}
END_TEST

/* Comparisons of sizes as floats, as TensorFlow writes them. */
START_TEST(compared_floats) {
  hlo_value x = hlo_convert(&b, sizes("n,m"), DTYPE_F32);
  expect(hlo_compare(&b, HLO_GT, x, hlo_like(&b, x, 2)), "1,0");
  expect(hlo_compare(&b, HLO_LE, hlo_like(&b, x, 6), x), "1,0");
  ck_assert_int_eq(hlo_compare(&b, HLO_LT, x, hlo_like(&b, x, 6.5)).def->op, HLO_COMPARE);
}
END_TEST

/* Tables of sizes as TensorFlow's Pad and SpaceToBatchND have them: rows are joined and padded, the table is converted
 * and transposed, and becomes a list. */
START_TEST(tables) {
  hlo_value zeros =
      hlo_constant(&b, hlo_sizes_literal(memory, shape_make(DTYPE_S32, 2, (dim[]){1, 2}), (int64_t[]){7, 8}));
  hlo_value row = hlo_reshape(&b, sizes_of(DTYPE_S32, "0,n"), 2, (dim[]){1, 2});
  hlo_value table_of_rows = hlo_convert(&b, hlo_concatenate(&b, 2, (hlo_value[]){zeros, row}, 0), DTYPE_S64);
  hlo_value columns = hlo_transpose(&b, table_of_rows, (int64_t[]){1, 0});
  expect(hlo_reshape(&b, columns, 1, (dim[]){4}), "7,0,8,n");
  hlo_value one = hlo_scalar(&b, DTYPE_S32, 1);
  hlo_value padded = hlo_pad(&b, row, one, (int64_t[]){1, 0}, (int64_t[]){0, -1}, (int64_t[]){0, 1});
  expect(hlo_reshape(&b, padded, 1, (dim[]){4}), "1,1,0,1");
  hlo_value sum = hlo_binary(&b, HLO_ADD, row, row);
  ck_assert_int_eq(hlo_reshape(&b, sum, 1, (dim[]){2}).def->op, HLO_RESHAPE);
}
END_TEST

START_TEST(conversions) {
  expect(hlo_convert(&b, sizes("n,-4"), DTYPE_S32), "n,-4");
  expect(hlo_convert(&b, sizes_of(DTYPE_S32, "n"), DTYPE_S64), "n");
  expect(hlo_convert(&b, hlo_unary(&b, HLO_FLOOR, hlo_convert(&b, sizes("n,3"), DTYPE_F32)), DTYPE_S64), "n,3");
  hlo_value f = hlo_convert(&b, sizes("n"), DTYPE_F32);
  ck_assert_int_eq(hlo_binary(&b, HLO_MUL, f, f).def->op, HLO_MUL); /* numbers that may not be integers are data */
  hlo_value narrow = hlo_convert(&b, sizes("n"), DTYPE_U8);
  ck_assert_int_eq(narrow.def->op, HLO_CONVERT);
}
END_TEST

/* Integers of 32 bits wrap, so they are folded to expressions only under guards that their values fit. */
START_TEST(narrow_integers_wrap) {
  hlo_value n = sizes_of(DTYPE_S32, "n"), large = sizes_of(DTYPE_S32, "500000000*n");
  uint32_t guards;
  expect(hlo_binary(&b, HLO_MUL, n, n), "n*n");
  ck_assert_str_eq(dim_guard_print(memory, table, &dim_guards(table, &guards)[0]), "n*n <= 2147483647");
  ck_assert_int_eq(hlo_binary(&b, HLO_ADD, large, n).def->op, HLO_ADD);
}
END_TEST

/* Sizes that are divided, scaled or limited as floats, as Paddle and TensorFlow do. */
START_TEST(fractions) {
  hlo_value n = hlo_convert(&b, sizes("n,m+9"), DTYPE_F32), half = hlo_like(&b, n, 0.5), three = hlo_like(&b, n, 3);
  hlo_value scaled = hlo_binary(&b, HLO_ADD, hlo_binary(&b, HLO_MUL, n, hlo_like(&b, n, 1.5)), half);
  expect(hlo_unary(&b, HLO_FLOOR, hlo_binary(&b, HLO_DIV, n, three)), "n/3,m/3+3");
  expect(hlo_unary(&b, HLO_CEIL, hlo_binary(&b, HLO_DIV, n, three)), "(n+2)/3,(m+2)/3+3");
  expect(hlo_convert(&b, scaled, DTYPE_S64), "n+(n+1)/2,m+m/2+14");
  expect(hlo_convert(&b, hlo_binary(&b, HLO_MAX, n, hlo_like(&b, n, -1e9)), DTYPE_S32), "n,m+9");
  expect(hlo_convert(&b, hlo_binary(&b, HLO_MIN, n, hlo_like(&b, n, 2.5)), DTYPE_S32), "2,2");
  /* TensorFlow limits ends of slices so: a large limit is exact as it is, and so are negative sizes */
  hlo_value ends = hlo_constant(
      &b, hlo_sizes_literal(memory, shape_make(DTYPE_F32, 1, (dim[]){2}), (int64_t[]){-1000000000, 1000000000}));
  expect(hlo_convert(&b, hlo_binary(&b, HLO_MAX, hlo_convert(&b, sizes("-n,m"), DTYPE_F32), ends), DTYPE_S32),
         "-n,1000000000");
  hlo_value sign = hlo_unary(&b, HLO_SIGN, scaled), most = hlo_unary(&b, HLO_ABS, scaled);
  expect(hlo_convert(&b, hlo_binary(&b, HLO_MUL, hlo_unary(&b, HLO_FLOOR, most), sign), DTYPE_S64),
         "n+(n+1)/2,m+m/2+14");
  /* the product and the second quotient are rounded */
  hlo_value tenth = hlo_binary(&b, HLO_MUL, n, hlo_like(&b, n, 0.1)), third = hlo_binary(&b, HLO_DIV, n, three);
  ck_assert_int_eq(hlo_unary(&b, HLO_FLOOR, tenth).def->op, HLO_FLOOR);
  ck_assert_int_eq(hlo_unary(&b, HLO_FLOOR, hlo_binary(&b, HLO_MUL, third, three)).def->op, HLO_FLOOR);
}
END_TEST

/* Fractions keep their order in a reshape and in a broadcast that repeats none of them. */
START_TEST(moved_fractions) {
  hlo_value n = hlo_convert(&b, sizes("n,m+9"), DTYPE_F32), half = hlo_binary(&b, HLO_MUL, n, hlo_like(&b, n, 0.5));
  for (int64_t along = 0; along < 2; along++) {
    for (int64_t rows = 1; rows <= 2; rows++) {
      shape s = shape_make(DTYPE_F32, 2, (dim[]){along ? rows : 2, along ? 2 : rows});
      hlo_value list = hlo_reshape(&b, hlo_broadcast(&b, half, s, &along), 1, (dim[]){2 * rows});
      hlo_value folded = hlo_convert(&b, list, DTYPE_S64);
      if (rows == 1) {
        expect(folded, "n/2,(m+1)/2+4");
      } else {
        ck_assert_int_eq(folded.def->op, HLO_CONVERT);
      }
    }
  }
  dim open = parse("n");
  hlo_value data = hlo_result(hlo_parameter(b.computation, shape_make(DTYPE_F32, 1, &open)), 0);
  hlo_value six = hlo_reshape(&b, data, 1, (dim[]){6});
  ck_assert_int_eq(hlo_convert(&b, six, DTYPE_S64).def->op, HLO_CONVERT);
}
END_TEST

START_TEST(is_not_folded) {
  ck_assert_int_eq(op(HLO_DIV, "n", "m-n").def->op, HLO_DIV);
  ck_assert_int_eq(op(HLO_AND, "n", "m").def->op, HLO_AND);
  hlo_value data = hlo_result(hlo_parameter(b.computation, shape_make(DTYPE_S64, 1, (dim[]){1})), 0);
  ck_assert_int_eq(hlo_binary(&b, HLO_ADD, sizes("n"), data).def->op, HLO_ADD);
}
END_TEST

int main(void) {
  TCase *all = tcase_create("all");
  tcase_add_checked_fixture(all, setup, teardown);
  tcase_add_test(all, arithmetic);
  tcase_add_test(all, movement);
  tcase_add_test(all, constants_and_guards);
  tcase_add_test(all, compared_floats);
  tcase_add_test(all, tables);
  tcase_add_test(all, conversions);
  tcase_add_test(all, narrow_integers_wrap);
  tcase_add_test(all, fractions);
  tcase_add_test(all, moved_fractions);
  tcase_add_test(all, is_not_folded);
  return run_suite("fold_sizes", all);
}
