/* check_symbols_windows.c - pools and convolutions imported once for all sizes: bound to other sizes, the module must
 * compute what the model computes that is imported for those sizes. */
#include "tests/suite.h"
#include "tests/unit/frontend/open_model.h"

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* Windows whose padding, or number of positions, depends on the remainder of the size by the stride.  The hints are the
 * remainders 0 and 1. */
static const struct {
  const char *op, *inputs, *attributes, *x, *constant;
} windows[] = {
    {"AveragePool", "x", "kernel_shape=[4] strides=[3] pads=[1,0] ceil_mode=1", "f32[0,0,0]:", NULL},
    {"AveragePool", "x", "kernel_shape=[2] strides=[4] ceil_mode=1", "f32[0,0,0]:", NULL},
    {"AveragePool", "x", "kernel_shape=[2] strides=[3] pads=[1,1] ceil_mode=1 count_include_pad=1",
     "f32[0,0,0]:", NULL},
    {"MaxPool", "x", "kernel_shape=[1] strides=[3] ceil_mode=1", "f32[0,0,0]:", NULL},
    {"AveragePool", "x", "kernel_shape=[3] strides=[2] auto_pad=SAME_UPPER", "f32[0,0,0]:", NULL},
    {"AveragePool", "x", "kernel_shape=[4] strides=[3] auto_pad=SAME_LOWER ceil_mode=1", "f32[0,0,0]:", NULL},
    {"AveragePool", "x", "kernel_shape=[5] strides=[3] auto_pad=SAME_UPPER count_include_pad=1", "f32[0,0,0]:", NULL},
    {"AveragePool", "x", "kernel_shape=[2] strides=[2] auto_pad=SAME_LOWER", "f32[0,0,0]:", NULL},
    {"MaxPool", "x", "kernel_shape=[3] strides=[2] auto_pad=SAME_UPPER", "f32[0,0,0]:", NULL},
    {"MaxPool", "x", "kernel_shape=[3] strides=[5] auto_pad=SAME_LOWER", "s8[0,0,0]:", NULL},
    {"LpPool", "x", "kernel_shape=[2] dilations=[2] strides=[2] auto_pad=SAME_UPPER", "f32[0,0,0]:", NULL},
    {"Conv", "x,w", "strides=[2] auto_pad=SAME_UPPER", "f32[0,0,0]:", "f32[1,2,3]:1,2,3,4,5,6"},
    {"Conv", "x,w", "strides=[4] dilations=[2] auto_pad=SAME_LOWER", "f32[0,0,0]:", "f32[1,2,2]:1,2,3,4"},
    {"ConvInteger", "x,w,z", "strides=[2] auto_pad=SAME_UPPER", "u8[0,0,0]:", "u8[1,2,3]:1,2,3,4,5,6"},
    {"ConvTranspose", "x,w", "strides=[2] auto_pad=SAME_UPPER", "f32[0,0,0]:", "f32[2,1,3]:1,2,3,4,5,6"},
};

static void check_window(int row, dim hint) {
  Onnx__ModelProto *m = new_model(memory, "", "y");
  onnx_definitions d = {0};
  hlo_module *general, *exact, *bound;
  bool complete;
  add_input(m, "x", windows[row].x);
  if (windows[row].constant) {
    add_constant(m, "w", windows[row].constant);
    add_constant(m, "z", "u8[]:7");
  }
  graph_node(memory, m->graph, windows[row].op, windows[row].inputs, "y");
  case_attributes(memory, m->graph->node[0], windows[row].attributes);
  const char *text = windows[row].x;
  dtype type = (dtype)case_literal(memory, &text).shape.type;
  onnx_input_shape at = {.name = "x", .shape = shape_make(type, 3, (dim[]){1, 2, hint})};
  ASSERT_OK(import_model(m, &at, 1, &d, false, &general, &complete));
  for (dim n = 1; n < 11; n++) {
    at.shape.dims[2] = n;
    ASSERT_OK(import_model(m, &at, 1, NULL, false, &exact, &complete));
    ASSERT_OK(hlo_bind(memory, general, &at.shape, &bound));
    ASSERT_OK(same_values(exact, bound, SAME_BITS, memory));
  }
}

START_TEST(windows_take_any_remainder) {
  check_window(_i, 60);
  check_window(_i, 61);
}
END_TEST

/* With ceil_mode, one window may cover the whole input, whatever its size.  So the result has one element a channel,
 * and its shape can be used without a pin. */
START_TEST(windows_larger_than_the_input) {
  static const char *const ops[] = {"AveragePool", "MaxPool", "LpPool"};
  Onnx__ModelProto *m = new_model(memory, "", "y");
  onnx_definitions d = {0};
  hlo_module *general, *exact, *bound;
  bool complete;
  onnx_input_shape at = {.name = "x", .shape = shape_make(DTYPE_F32, 3, (dim[]){1, 2, 60})};
  add_input(m, "x", "f32[0,0,0]:");
  graph_node(memory, m->graph, ops[_i], "x", "y");
  case_attributes(memory, m->graph->node[0], "kernel_shape=[512] strides=[512] ceil_mode=1");
  ASSERT_OK(import_model(m, &at, 1, &d, false, &general, &complete));
  ck_assert_uint_eq(d.n, 0);
  ck_assert_int_eq(hlo_shape(general->entry->roots[0])->dims[2], 1);
  for (dim n = 1; n <= 512; n = 3 * n + 1) {
    at.shape.dims[2] = n;
    ASSERT_OK(import_model(m, &at, 1, NULL, false, &exact, &complete));
    ASSERT_OK(hlo_bind(memory, general, &at.shape, &bound));
    ASSERT_OK(same_values(exact, bound, SAME_BITS, memory));
  }
}
END_TEST

int main(void) {
  TCase *all = tcase_create("all");
  tcase_add_checked_fixture(all, setup, teardown);
  tcase_add_loop_test(all, windows_take_any_remainder, 0, sizeof windows / sizeof *windows);
  tcase_add_loop_test(all, windows_larger_than_the_input, 0, 3);
  return run_suite("symbols-windows", all);
}
