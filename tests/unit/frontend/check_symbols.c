/* check_symbols.c - which sizes remain free where ways through a model meet again (frontend/import/symbolic.h). */
#include "tests/suite.h"
#include "tests/unit/frontend/node_case.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* As in a U-Net: a picture x[1,1,height,width] is halved, doubled again by a ConvTranspose, and joined with itself. */
static Onnx__ModelProto *halved_and_doubled(void) {
  const char *kernel = "f32[1,1,2,2]:1,2,3,4", *picture = "f32[1,1,0,0]:";
  Onnx__ModelProto *m = new_model(memory, "", "y");
  Onnx__GraphProto *g = m->graph;
  literal w = case_literal(memory, &kernel), x = case_literal(memory, &picture);
  PB_ADD(memory, g->initializer, g->n_initializer, case_tensor(memory, "w", &w));
  PB_ADD(memory, g->input, g->n_input, case_input(memory, "x", &x, true));
  case_attributes(memory, graph_node(memory, g, "MaxPool", "x", "half"), "kernel_shape=[2,2] strides=[2,2]");
  case_attributes(memory, graph_node(memory, g, "ConvTranspose", "half,w", "whole"), "strides=[2,2]");
  case_attributes(memory, graph_node(memory, g, "Concat", "x,whole", "y"), "axis=1");
  return m;
}

static onnx_input_shape picture(int64_t height, int64_t width) {
  return (onnx_input_shape){.name = "x", .shape = shape_make(DTYPE_F32, 4, (dim[]){1, 1, height, width})};
}

static status import(onnx_definitions *definitions, const onnx_input_shape *at, hlo_module **out) {
  onnx_import_options options = {.inputs = at, .n_inputs = 1, .unchecked = true, .eval = ref_fold};
  size_t size;
  uint8_t *bytes = pack(memory, halved_and_doubled(), &size);
  onnx_model *m;
  bool complete;
  TRY(onnx_model_from_memory(memory, bytes, size, NULL, NULL, &m));
  return definitions ? onnx_import_symbolic(memory, m, &options, definitions, out, &complete)
                     : onnx_import(memory, m, &options, out, &complete);
}

static void expect_same(const hlo_module *general, int64_t height, int64_t width) {
  hlo_module *exact, *bound;
  onnx_input_shape at = picture(height, width);
  ASSERT_OK(import(NULL, &at, &exact));
  ASSERT_OK(hlo_bind(memory, general, &at.shape, &bound));
  ASSERT_OK(same_values(exact, bound, SAME_BITS, memory));
}

START_TEST(doubled_sizes_are_not_pinned) {
  onnx_definitions definitions = {0};
  hlo_module *general, *bound;
  onnx_input_shape at = picture(6, 8);
  ASSERT_OK(import(&definitions, &at, &general));
  for (uint32_t k = 0; k < definitions.n; k++) {
    const onnx_definition *d = &definitions.items[k];
    bool of_picture = strcmp(d->symbol, "x.2") >= 0;
    ck_assert_msg(!of_picture || strstr(d->equals, ".m"), "%s is pinned to %s", d->symbol, d->equals);
  }
  expect_same(general, 6, 8);
  expect_same(general, 2, 2);
  expect_same(general, 18, 4);
  status s = hlo_bind(memory, general, &(shape){.type = DTYPE_F32, .rank = 4, .dims = {1, 1, 0, 8}}, &bound);
  ck_assert_msg(s && strstr(status_message(s), "the program is for sizes with"), "%s", status_message(s));
  status_free(s);
}
END_TEST

int main(void) {
  TCase *all = tcase_create("all");
  tcase_add_checked_fixture(all, setup, teardown);
  tcase_add_test(all, doubled_sizes_are_not_pinned);
  return run_suite("symbols", all);
}
