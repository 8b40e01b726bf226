/* check_symbols.c - which sizes stay symbols where branches of a model meet again
 * (frontend/import/symbolic.h). */
#include "tests/suite.h"
#include "tests/unit/frontend/open_model.h"

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* As in a U-Net, an image x[1,1,height,width] is halved, doubled again by a ConvTranspose, and concatenated
 * with x. */
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

/* A deeper network: what halved_and_doubled gives is divided by 4 and multiplied by it again. */
static Onnx__ModelProto *divided_twice(void) {
  const char *kernel = "f32[2,1,4,4]:1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8,8,7,6,5,4,3,2,1,8,7,6,5,4,3,2,1";
  Onnx__ModelProto *m = halved_and_doubled();
  Onnx__GraphProto *g = m->graph;
  literal w = case_literal(memory, &kernel);
  PB_ADD(memory, g->initializer, g->n_initializer, case_tensor(memory, "w4", &w));
  case_attributes(memory, graph_node(memory, g, "MaxPool", "y", "part"), "kernel_shape=[4,4] strides=[4,4]");
  case_attributes(memory, graph_node(memory, g, "ConvTranspose", "part,w4", "all"), "strides=[4,4]");
  case_attributes(memory, graph_node(memory, g, "Concat", "y,all", "z"), "axis=1");
  PB_ADD(memory, g->output, g->n_output, new_value(memory, "z"));
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

/* The second equation is one of the symbol that the first one has introduced. */
START_TEST(sizes_of_a_deep_network_are_not_pinned) {
  static const int64_t sizes[][2] = {{16, 24}, {8, 4}, {20, 32}};
  onnx_definitions d = {0};
  hlo_module *general, *exact, *bound;
  Onnx__ModelProto *m = divided_twice();
  bool complete;
  for (int k = 0; k < 3; k++) {
    onnx_input_shape at = picture(sizes[k][0], sizes[k][1]);
    if (k == 0) {
      ASSERT_OK(import_model(m, &at, 1, &d, false, &general, &complete));
    }
    ASSERT_OK(import_model(m, &at, 1, NULL, false, &exact, &complete));
    ASSERT_OK(hlo_bind(memory, general, &at.shape, &bound));
    ASSERT_OK(same_values(exact, bound, SAME_BITS, memory));
  }
}
END_TEST

/* Adds an input z of one dimension, which is called `name`, and the output -z. */
static void add_other(Onnx__ModelProto *m, const char *name) {
  add_input(m, "z", "f32[0]:");
  m->graph->input[m->graph->n_input - 1]->type->tensor_type->shape->dim[0]->dim_param = arena_strdup(memory, name);
  graph_node(memory, m->graph, "Neg", "z", "-z");
  PB_ADD(memory, m->graph->output, m->graph->n_output, new_value(memory, "-z"));
}

static onnx_input_shape vector(const char *name, dtype type, int64_t n) {
  return (onnx_input_shape){.name = name, .shape = shape_make(type, 1, &n)};
}

/* The symbol of which a dimension becomes a multiple is none of the model's dimensions, not even one of its name. */
START_TEST(a_model_has_a_dimension_called_like_a_multiple) {
  static const int64_t sizes[][3] = {{6, 8, 5}, {18, 4, 7}, {2, 2, 9}};
  onnx_definitions d = {0};
  hlo_module *general, *exact, *bound;
  Onnx__ModelProto *m = halved_and_doubled();
  bool complete;
  add_other(m, "x.2.m");
  for (int k = 0; k < 3; k++) {
    onnx_input_shape at[] = {picture(sizes[k][0], sizes[k][1]), vector("z", DTYPE_F32, sizes[k][2])};
    if (k == 0) {
      ASSERT_OK(import_model(m, at, 2, &d, false, &general, &complete));
    }
    ASSERT_OK(import_model(m, at, 2, NULL, false, &exact, &complete));
    ASSERT_OK(hlo_bind(memory, general, (shape[]){at[0].shape, at[1].shape}, &bound));
    ASSERT_OK(same_values(exact, bound, SAME_BITS, memory));
  }
}
END_TEST

/* The symbol that stands for an element of an input is none of the model's dimensions either. */
START_TEST(a_model_has_a_dimension_called_like_an_element) {
  static const int64_t elements[] = {3}, sizes[] = {5, 2, 3};
  onnx_definitions d = {0};
  hlo_module *general, *bound;
  bool complete;
  Onnx__ModelProto *m = new_model(memory, "", "y");
  add_input(m, "x", "f32[0]:");
  literal content = literal_make(shape_make(DTYPE_S64, 1, (dim[]){1}), elements);
  PB_ADD(memory, m->graph->input, m->graph->n_input, case_input(memory, "size", &content, false));
  graph_node(memory, m->graph, "Expand", "x,size", "y");
  add_other(m, "size.value0");
  onnx_input_shape at[] = {vector("x", DTYPE_F32, 1), vector("size", DTYPE_S64, 1), vector("z", DTYPE_F32, 5)};
  at[1].value = &content;
  at[1].use = ONNX_CONTENT_SYMBOLS;
  ASSERT_OK(import_model(m, at, 3, &d, false, &general, &complete));
  for (int k = 0; k < 3; k++) {
    shape told = onnx_told_shape(7 + k), z = shape_make(DTYPE_F32, 1, (dim[]){sizes[k]});
    ASSERT_OK(hlo_bind(memory, general, (shape[]){at[0].shape, at[1].shape, z, told}, &bound));
    ck_assert_int_eq(hlo_shape(bound->entry->roots[0])->dims[0], 7 + k);
    ck_assert_int_eq(hlo_shape(bound->entry->roots[1])->dims[0], sizes[k]);
  }
}
END_TEST

/* Images are made so much smaller that each sum has many terms, in batches of any size. */
START_TEST(many_taps_take_any_batch) {
  Onnx__ModelProto *m = new_model(memory, "", "y");
  add_input(m, "x", "f32[0,0,0,0]:");
  Onnx__TensorShapeProto *s = m->graph->input[0]->type->tensor_type->shape;
  for (int k = 2; k < 4; k++) {
    s->dim[k]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    s->dim[k]->dim_value = 16;
  }
  add_constant(m, "scales", "f32[4]:1,1,0.125,0.125");
  Onnx__NodeProto *node = graph_node(memory, m->graph, "Resize", "x,,scales", "y");
  case_attributes(memory, node, "mode=cubic antialias=1");
  onnx_definitions d = {0};
  hlo_module *general, *exact, *bound;
  bool complete;
  onnx_input_shape at = {.name = "x", .shape = shape_make(DTYPE_F32, 4, (dim[]){2, 3, 16, 16})};
  ASSERT_OK(import_model(m, &at, 1, &d, false, &general, &complete));
  ck_assert_uint_eq(d.n, 0);
  at.shape.dims[0] = 5;
  ASSERT_OK(import_model(m, &at, 1, NULL, false, &exact, &complete));
  ASSERT_OK(hlo_bind(memory, general, &at.shape, &bound));
  ASSERT_OK(same_values(exact, bound, SAME_BITS, memory));
}
END_TEST

/* x is reshaped to a list whose length is the product of two sizes of w, which x need not have: the sizes of both are
 * taken to be the same in pairs, and none is pinned. */
START_TEST(products_are_equal_in_pairs) {
  Onnx__ModelProto *m = new_model(memory, "", "y");
  onnx_definitions d = {0};
  hlo_module *general, *exact, *bound;
  bool complete;
  shape given[2] = {shape_make(DTYPE_F32, 2, (dim[]){6, 8}), shape_make(DTYPE_F32, 3, (dim[]){8, 3, 6})};
  onnx_input_shape at[2] = {{.name = "x", .shape = given[0]}, {.name = "w", .shape = given[1]}};
  add_input(m, "x", "f32[0,0]:");
  add_input(m, "w", "f32[0,0,0]:");
  add_constant(m, "zero", "s64[1]:0");
  add_constant(m, "two", "s64[1]:2");
  graph_node(memory, m->graph, "Shape", "w", "sizes");
  graph_node(memory, m->graph, "Gather", "sizes,zero", "a");
  graph_node(memory, m->graph, "Gather", "sizes,two", "b");
  graph_node(memory, m->graph, "Mul", "a,b", "length");
  graph_node(memory, m->graph, "Reshape", "x,length", "y");
  ASSERT_OK(import_model(m, at, 2, &d, false, &general, &complete));
  ck_assert_uint_eq(d.n, 2);
  for (uint32_t k = 0; k < d.n; k++) {
    ck_assert_msg(d.items[k].equals[1] == '.', "%s is %s", d.items[k].symbol, d.items[k].equals);
  }
  given[0] = at[0].shape = shape_make(DTYPE_F32, 2, (dim[]){5, 7});
  given[1] = at[1].shape = shape_make(DTYPE_F32, 3, (dim[]){7, 2, 5});
  ASSERT_OK(import_model(m, at, 2, NULL, false, &exact, &complete));
  ASSERT_OK(hlo_bind(memory, general, given, &bound));
  ASSERT_OK(same_values(exact, bound, SAME_BITS, memory));
}
END_TEST

/* Parts of x [2,columns] whose ends lie within x or beyond it, and halves of which the second one may be smaller.
 * `then` is NULL or adds v to the part, which is valid from `least` columns on. */
static const struct {
  const char *op, *inputs, *attributes, *w, *v, *then;
  dim least;
} parts[] = {
    {"Slice", "x,zero,w,one", "", "s64[1]:4", "s64[1]:0", NULL, 0},
    {"Slice", "x,w,v,one", "", "s64[1]:3", "s64[1]:7", NULL, 0},
    {"Slice", "x,w,v,one", "", "s64[1]:-6", "s64[1]:-2", NULL, 0},
    {"Slice", "x,w,v,one,w", "", "s64[1]:2", "s64[1]:9", NULL, 0},
    {"Split", "x", "axis=1 num_outputs=2", "s64[]:0", "s64[]:0", NULL, 0},
    {"Slice", "x,zero,w,one", "", "s64[1]:4", "f32[4]:1,2,3,4", "Add", 4},
};

/* The hint is larger than all numbers in the row.  No size is pinned. */
START_TEST(parts_take_any_size) {
  const char *outputs = parts[_i].then ? "a" : strcmp(parts[_i].op, "Split") == 0 ? "y,z" : "y";
  Onnx__ModelProto *m = new_model(memory, "", parts[_i].then ? "y" : outputs);
  onnx_definitions d = {0};
  hlo_module *general, *exact, *bound;
  bool complete;
  add_input(m, "x", "f32[0,0]:");
  add_constant(m, "zero", "s64[1]:0");
  add_constant(m, "one", "s64[1]:1");
  add_constant(m, "w", parts[_i].w);
  add_constant(m, "v", parts[_i].v);
  graph_node(memory, m->graph, parts[_i].op, parts[_i].inputs, outputs);
  case_attributes(memory, m->graph->node[0], parts[_i].attributes);
  if (parts[_i].then) {
    graph_node(memory, m->graph, parts[_i].then, "a,v", "y");
  }
  onnx_input_shape at = {.name = "x", .shape = shape_make(DTYPE_F32, 2, (dim[]){2, 60})};
  ASSERT_OK(import_model(m, &at, 1, &d, false, &general, &complete));
  ck_assert_uint_eq(d.n, 0);
  for (dim n = parts[_i].least; n < 12; n++) {
    at.shape.dims[1] = n;
    ASSERT_OK(import_model(m, &at, 1, NULL, false, &exact, &complete));
    ASSERT_OK(hlo_bind(memory, general, &at.shape, &bound));
    ASSERT_OK(same_values(exact, bound, SAME_BITS, memory));
  }
}
END_TEST

/* Operators that accept inputs all of whose sizes are symbols.  Equations between sizes are what the operator itself
 * requires, in the order in which they are found; dimension k of input number i is ini.k. node_case.h tests what they
 * compute. */
static const struct {
  const char *op;
  int opset;
  const char *attributes, *inputs, *definitions;
} open_nodes[] = {
    {"NonZero", 13, "", "f32[2,3]:1,0,0,4,5,0", ""},
    {"Compress", 11, "axis=1", "f32[2,3]:1,2,3,4,5,6 pred[2]:1,0", ""},
    {"NonMaxSuppression", 11, "", "f32[1,2,4]:0,0,1,1,0,0,2,2 f32[1,3,2]:1,2,3,4,5,6 =s64[]:1",
     "in0.2=4 in0.0=in1.0 in0.1=in1.2 "},
    {"Gather", 13, "axis=1", "f32[2,3]:1,2,3,4,5,6 s64[2]:0,-1", ""},
    {"GatherND", 13, "", "f32[2,3]:1,2,3,4,5,6 =s64[2,1]:0,-1", ""},
    {"GatherND", 13, "batch_dims=1", "f32[2,3]:1,2,3,4,5,6 s64[2,2,1]:0,-1,1,2", "in1.2=1 in1.0=in0.0 "},
    {"GatherElements", 13, "axis=1", "f32[2,3]:1,2,3,4,5,6 s64[1,2]:0,-1", ""},
    {"Scatter", 9, "", "f32[3]:1,2,3 s64[2]:0,1 f32[2]:4,5", "in1.0=in2.0 "},
    {"ScatterElements", 18, "axis=1", "f32[2,3]:1,2,3,4,5,6 s64[1,2]:0,-1 f32[1,2]:7,8", "in1.0=in2.0 in1.1=in2.1 "},
    {"ScatterND", 18, "", "f32[2,3]:1,2,3,4,5,6 s64[1,1]:0 f32[1,3]:7,8,9", "in1.1=1 in0.1=in2.1 in1.0=in2.0 "},
    {"OneHot", 11, "axis=0", "s64[2]:1,-1 =s64[1]:3 =f32[2]:0,5", ""},
    {"RoiAlign", 16, "output_height=2 sampling_ratio=2",
     "f32[1,1,3,4]:1,2,3,4,5,6,7,8,9,10,11,12 f32[1,4]:0,0,2,2 s64[1]:0", "in1.1=4 in1.0=in2.0 "},
    {"ReverseSequence", 10, "", "f32[2,3]:1,2,3,4,5,6 s64[3]:1,2,1", "in0.1=in1.0 "},
    {"TensorScatter", 24, "mode=circular", "f32[1,3,2]:1,2,3,4,5,6 f32[1,2,2]:7,8,9,10 s64[1]:2",
     "in1.0=in0.0 in1.2=in0.2 in0.0=in2.0 "},
    {"GridSample", 20, "padding_mode=reflection", "f32[1,1,2,2]:1,2,3,4 f32[1,1,1,2]:0,0", "in1.3=2 in0.0=in1.0 "},
    {"DeformConv", 19, "",
     "f32[1,1,3,3]:1,2,3,4,5,6,7,8,9 =f32[1,1,2,2]:1,2,3,4 f32[1,8,2,2]:0,0,0,0,0,0,0,0,0,0,0,0,0,"
     "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
     "in0.1=1 in2.1=8 in0.0=in2.0 in2.2=in0.2-1 in2.3=in0.3-1 "},
    {"Trilu", 14, "", "f32[2,3]:1,2,3,4,5,6", ""},
    {"EyeLike", 22, "", "f32[2,3]:1,2,3,4,5,6", ""},
    {"BitShift", 11, "direction=LEFT", "u8[2]:1,2 u8[2]:1,2", "in1.0=in0.0 "},
    {"BitCast", 26, "to=6", "f32[2]:1,2", ""},
    {"RandomUniformLike", 22, "", "f32[2]:1,2", ""},
    {"Bernoulli", 22, "", "f32[2]:1,2", ""},
    {"DepthToSpace", 13, "blocksize=2", "f32[1,4,1,2]:1,2,3,4,5,6,7,8", "in0.1=4*in0.1.m+0 "},
    {"SpaceToDepth", 13, "blocksize=2", "f32[1,1,2,4]:1,2,3,4,5,6,7,8", "in0.2=2*in0.2.m+0 in0.3=2*in0.3.m+0 "},
    {"NegativeLogLikelihoodLoss", 22, "", "f32[2,3]:1,2,3,4,5,6 s64[2]:0,1", "in0.0=in1.0 "},
    {"SoftmaxCrossEntropyLoss", 13, "", "f32[2,3]:1,2,3,4,5,6 s64[2]:0,1", "in0.0=in1.0 "},
    {"MaxUnpool", 22, "kernel_shape=[2] strides=[2]", "f32[1,1,2]:1,2 s64[1,1,2]:1,2",
     "in0.0=in1.0 in0.1=in1.1 in0.2=in1.2 "},
    {"CenterCropPad", 18, "", "f32[2,3]:1,2,3,4,5,6 =s64[2]:3,2", ""},
    {"QuantizeLinear", 23, "", "f32[2,3]:1,2,3,4,5,6 =f32[]:2", ""},
    {"DequantizeLinear", 23, "axis=0 block_size=2", "s8[3,2]:1,2,3,4,5,6 f32[2,2]:1,2,3,4",
     "in1.0=(in0.0+1)/2 in0.1=in1.1 "},
    {"DynamicQuantizeLinear", 11, "", "f32[2,3]:1,2,3,4,5,6", ""},
    {"MatMulInteger", 10, "", "s8[2,3]:1,2,3,4,5,6 s8[3,1]:1,2,3", "in1.0=in0.1 "},
    {"QLinearMatMul", 21, "", "s8[1,2]:1,2 =f32[]:1 =s8[]:0 s8[2,1]:1,2 =f32[]:1 =s8[]:0 =f32[]:1 =s8[]:0",
     "in3.0=in0.1 "},
    {"ConvInteger", 10, "", "s8[1,1,3]:1,2,3 =s8[1,1,2]:1,2", "in0.1=1 "},
    {"QLinearConv", 10, "", "s8[1,1,3]:1,2,3 =f32[]:1 =s8[]:0 =s8[1,1,2]:1,2 =f32[]:1 =s8[]:0 =f32[]:1 =s8[]:0",
     "in0.1=1 "},
    {"Attention", 23, "is_causal=1",
     "f32[1,1,2,2]:1,2,3,4 f32[1,1,3,2]:1,2,3,4,5,6 f32[1,1,3,1]:1,2,3 - f32[1,1,1,2]:1,2 f32[1,1,1,1]:1",
     "in0.1=1 in1.1=1 in2.1=1 in0.3=2 in1.3=2 in4.1=1 in4.3=2 in5.1=1 in0.0=in1.0 in1.0=in2.0 in1.2=in2.2 "
     "in2.0=in4.0 in4.0=in5.0 in4.2=in5.2 in2.3=in5.3 "},
    {"RotaryEmbedding", 23, "", "f32[1,1,3,2]:1,2,3,4,5,6 f32[4,1]:1,2,3,4 f32[4,1]:1,2,3,4 s64[1,3]:0,1,2",
     "in0.3=2 in1.1=1 in2.1=1 in0.0=in3.0 in0.2=in3.1 "},
    {"Unique", 11, "", "f32[2,3]:1,2,3,1,5,6", ""},
    {"Unique", 11, "axis=1 sorted=0", "f32[2,3]:1,2,3,1,5,6", ""},
    {"Einsum", 12, "equation=ij,jk", "f32[2,3]:1,2,3,4,5,6 f32[3,1]:1,2,3", "in1.0=in0.1 "},
    {"AffineGrid", 20, "", "f32[2,2,3]:1,0,0,0,1,0,1,0,0,0,1,0 =s64[4]:2,1,2,3", "in0.0=2 in0.1=2 in0.2=3 "},
    {"Col2Im", 18, "",
     "f32[2,4,6]:1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,"
     "17,18,19,20,21,22,23,24 =s64[2]:3,4 =s64[2]:2,2",
     "in0.1=4 in0.2=6 "},
    {"ConstantFill", 1, "extra_shape=[2]", "f32[2,3]:1,2,3,4,5,6", ""},
    {"Crop", 1, "border=[1,0,0,1]", "f32[1,1,2,3]:1,2,3,4,5,6", ""},
    {"Crop", 1, "border=[1,0,0,1] scale=[1,2]", "f32[1,1,2,3]:1,2,3,4,5,6", ""},
    {"DFT", 17, "axis=1", "f32[2,3,1]:1,2,3,4,5,6", "in0.2=1 "},
    {"DFT", 17, "axis=1", "f32[2,3,1]:1,2,3,4,5,6 =s64[]:4", "in0.2=1 "},
    {"Det", 22, "", "f32[1,2,2]:1,2,3,4", "in0.1=in0.2 "},
    {"ImageScaler", 1, "bias=[1.0]", "f32[1,1,2,3]:1,2,3,4,5,6", "in0.1=1 "},
    {"MaxRoiPool", 22, "pooled_shape=[1,2]", "f32[1,1,2,3]:1,2,3,4,5,6 f32[2,5]:0,0,0,1,1,0,1,0,2,1", "in1.1=5 "},
    {"STFT", 17, "", "f32[2,5,1]:1,2,3,4,5,6,7,8,9,10 =s64[]:1 f32[2]:1,2", "in0.2=1 in2.0=2 "},
    {"STFT", 17, "", "f32[2,5,1]:1,2,3,4,5,6,7,8,9,10 =s64[]:1 - =s64[]:2", "in0.2=1 "},
    {"TfIdfVectorizer", 9,
     "mode=TF min_gram_length=1 max_gram_length=2 max_skip_count=1 ngram_counts=[0,1] ngram_indexes=[0,1] "
     "pool_int64s=[2,2,3]",
     "s64[2,4]:1,2,3,4,2,2,3,3", ""},
};

typedef struct open_run {
  case_run run;
  const char *found;
} open_run;

static status open_node(void *data) {
  open_run *r = data;
  onnx_model *m;
  hlo_module *general;
  onnx_definitions d = {0};
  TRY(case_load(&r->run, &m));
  TRY(case_import(&r->run, m, &d, &general));
  r->found = "";
  for (uint32_t k = 0; k < d.n; k++) {
    r->found = arena_printf(memory, "%s%s=%s ", r->found, d.items[k].symbol, d.items[k].equals);
  }
  return NULL;
}

START_TEST(nodes_keep_their_sizes_open) {
  const char *want = open_nodes[_i].definitions;
  /* the expected result "!" is not used, since nothing is computed */
  const node_case c = {open_nodes[_i].op, open_nodes[_i].opset, open_nodes[_i].attributes, open_nodes[_i].inputs, "!"};
  open_run r = {.run = {.arena = memory, .c = &c, .open = true}};
  ASSERT_OK(guard_run(open_node, &r));
  ck_assert_msg(strcmp(r.found, want) == 0, "%s: %s", c.op, r.found);
}
END_TEST

/* A node, or two after each other, whose inputs x and z have open dimensions only; w and v are constants.  Few sizes
 * are valid, by the rules of the operators in ONNX's standard. */
typedef struct assumed {
  const char *op, *inputs, *attributes;
  const char *then, *then_inputs, *then_attributes; /* the node that reads the result, which is called `a`, or NULL */
  const char *x, *z, *w, *v;                        /* z, w and v may be NULL */
} assumed;

static const assumed assumed_rows[] = {
    {"Add", "x,z", "", NULL, NULL, NULL, "f32[0,0]:", "f32[0,0]:", NULL, NULL},
    {"Add", "x,w", "", NULL, NULL, NULL, "f32[0,0]:", NULL, "f32[3]:1,2,3", NULL},
    {"MatMul", "x,w", "", NULL, NULL, NULL, "f32[0,0,0]:", NULL, "f32[3,2]:1,2,3,4,5,6", NULL},
    {"Concat", "x,z", "axis=1", NULL, NULL, NULL, "f32[0,0,0]:", "f32[0,0,0]:", NULL, NULL},
    {"SpaceToDepth", "x", "blocksize=3", NULL, NULL, NULL, "f32[0,0,0,0]:", NULL, NULL, NULL},
    {"TopK", "x,w", "", NULL, NULL, NULL, "f32[0,0]:", NULL, "s64[1]:300", NULL},
    {"Squeeze", "x,w", "", NULL, NULL, NULL, "f32[0,0]:", NULL, "s64[1]:1", NULL},
    {"Reshape", "x,w", "", NULL, NULL, NULL, "f32[0,0]:", NULL, "s64[3]:0,12,-1", NULL},
    /* a skip connection over an average of 3 elements, and one whose sizes must be odd */
    {"AveragePool", "x", "kernel_shape=[3] strides=[3]", "Resize", "a,,v", "", "f32[0,0,0]:", NULL, NULL,
     "f32[3]:1,1,3"},
    {"MaxPool", "x", "kernel_shape=[3] strides=[2]", "ConvTranspose", "a,v", "strides=[2]", "f32[0,0,0]:", NULL, NULL,
     "f32[1,1,3]:1,2,3"},
    /* the size of a flattened picture */
    {"MaxPool", "x", "kernel_shape=[2,2] strides=[2,2]", "Reshape", "a,v", "", "f32[0,1,0,0]:", NULL, NULL,
     "s64[3]:0,1,9"},
};

static Onnx__ModelProto *assumed_model(const assumed *r) {
  Onnx__ModelProto *m = new_model(memory, "", "y");
  const char *end = r->then ? r->then : r->op;
  add_input(m, "x", r->x);
  if (r->z) {
    add_input(m, "z", r->z);
  }
  if (r->w) {
    add_constant(m, "w", r->w);
  }
  if (r->v) {
    add_constant(m, "v", r->v);
  }
  bool two = strcmp(end, "TopK") == 0;
  case_attributes(memory,
                  graph_node(memory, m->graph, r->op, r->inputs,
                             r->then ? "a"
                             : two   ? "y,index"
                                     : "y"),
                  r->attributes);
  if (r->then) {
    bool skip = strcmp(end, "Reshape") != 0; /* the result is added to x */
    case_attributes(memory, graph_node(memory, m->graph, end, r->then_inputs, skip ? "b" : "y"), r->then_attributes);
    if (skip) {
      graph_node(memory, m->graph, "Add", "x,b", "y");
    }
  }
  return m;
}

/* Sizes are found at which the model is valid, where neither the first sizes that are tried nor equal ones are. */
START_TEST(sizes_are_assumed) {
  Onnx__ModelProto *m = assumed_model(&assumed_rows[_i]);
  const onnx_import_options options = {.unchecked = true, .eval = ref_fold};
  size_t size;
  uint8_t *bytes = pack(memory, m, &size);
  onnx_model *model;
  shape shapes[2];
  hlo_module *exact, *general, *bound;
  onnx_definitions d = {0};
  bool complete;
  ASSERT_OK(onnx_model_from_memory(memory, bytes, size, NULL, NULL, &model));
  ASSERT_OK(onnx_assume_sizes(memory, model, &options, shapes));
  const onnx_input_shape at[] = {{.name = "x", .shape = shapes[0]}, {.name = "z", .shape = shapes[1]}};
  ASSERT_OK(import_model(m, at, model->graph->n_input, NULL, false, &exact, &complete));
  ASSERT_OK(import_model(m, at, model->graph->n_input, &d, false, &general, &complete));
  ASSERT_OK(hlo_bind(memory, general, shapes, &bound));
}
END_TEST

/* A caller whose sizes are 1 otherwise, since it runs the model, gets one picture and not the first size that is
 * assumed. */
START_TEST(assumed_batches_are_small) {
  const uint32_t flattened = sizeof assumed_rows / sizeof *assumed_rows - 1;
  Onnx__ModelProto *m = assumed_model(&assumed_rows[flattened]);
  const onnx_import_options options = {.unchecked = true, .eval = ref_fold, .open_dim = _i};
  size_t size;
  uint8_t *bytes = pack(memory, m, &size);
  onnx_model *model;
  shape at;
  ASSERT_OK(onnx_model_from_memory(memory, bytes, size, NULL, NULL, &model));
  ASSERT_OK(onnx_assume_sizes(memory, model, &options, &at));
  ck_assert_int_eq(at.dims[1] * (at.dims[2] / 2) * (at.dims[3] / 2), 9);
  ck_assert(_i == 1 ? at.dims[0] == 1 : at.dims[0] > 1);
}
END_TEST

/* If no sizes are valid, the error is the one for the first sizes. */
START_TEST(no_sizes_can_be_assumed) {
  Onnx__ModelProto *m = new_model(memory, "", "y");
  const onnx_import_options options = {.eval = ref_fold};
  size_t size;
  onnx_model *model;
  shape at;
  add_input(m, "x", "f32[0,0]:");
  add_constant(m, "w", "f32[3]:1,2,3");
  add_constant(m, "v", "f32[4]:1,2,3,4");
  graph_node(memory, m->graph, "Add", "x,w", "a");
  graph_node(memory, m->graph, "Concat", "a,x", "b");
  graph_node(memory, m->graph, "Add", "b,v", "y");
  case_attributes(memory, m->graph->node[1], "axis=0");
  uint8_t *bytes = pack(memory, m, &size);
  ASSERT_OK(onnx_model_from_memory(memory, bytes, size, NULL, NULL, &model));
  status failed = onnx_assume_sizes(memory, model, &options, &at);
  ck_assert_msg(failed && strstr(status_message(failed), "f32[3]"), "%s", status_message(failed));
  status_free(failed);
}
END_TEST

/* A sound x[n] is padded to `window` samples.  The first size that is assumed is 64. */
static const struct beyond {
  const char *window;
  int64_t size; /* the size beyond the upper bound; 0 if none is looked for */
} beyond_rows[] = {
    {"s64[1]:256", 512},
    {"s64[1]:2000", 4096},
    {"s64[1]:50", 0},     /* the program for 64 samples has no upper bound */
    {"s64[1]:100000", 0}, /* a bound that is far away is one of the model */
};

START_TEST(sizes_beyond_a_bound_are_found) {
  const onnx_import_options options = {.open_dim = 64, .unchecked = true, .eval = ref_fold};
  const struct beyond *r = &beyond_rows[_i];
  Onnx__ModelProto *m = new_model(memory, "", "y");
  size_t size;
  onnx_model *model;
  shape at;
  bool found;
  add_input(m, "x", "f32[0]:");
  add_constant(m, "window", r->window);
  add_constant(m, "front", "s64[1]:0");
  graph_node(memory, m->graph, "Shape", "x", "n");
  graph_node(memory, m->graph, "Sub", "window,n", "missing");
  case_attributes(memory, graph_node(memory, m->graph, "Concat", "front,missing", "pads"), "axis=0");
  graph_node(memory, m->graph, "Pad", "x,pads", "y");
  uint8_t *bytes = pack(memory, m, &size);
  ASSERT_OK(onnx_model_from_memory(memory, bytes, size, NULL, NULL, &model));
  ASSERT_OK(onnx_assume_beyond(memory, model, &options, &at, &found));
  ck_assert(found == (r->size > 0));
  ck_assert_int_eq(at.dims[0], found ? r->size : 64);
}
END_TEST

/* A sound x[1,n] is reflected at both ends.  Where it is shorter than what is added, the number of reflections is that
 * of one size. */
START_TEST(sizes_that_pin_less_are_preferred) {
  const onnx_import_options options = {.open_dim = 64, .alone = true, .unchecked = true, .eval = ref_fold};
  Onnx__ModelProto *m = new_model(memory, "", "y");
  size_t size;
  onnx_model *model;
  shape at;
  hlo_module *module;
  onnx_definitions d = {0};
  bool complete;
  add_input(m, "x", "f32[0,0]:");
  add_constant(m, "pads", "s64[4]:0,200,0,200");
  case_attributes(memory, graph_node(memory, m->graph, "Pad", "x,pads", "y"), "mode=reflect");
  uint8_t *bytes = pack(memory, m, &size);
  ASSERT_OK(onnx_model_from_memory(memory, bytes, size, NULL, NULL, &model));
  ASSERT_OK(onnx_assume_sizes(memory, model, &options, &at));
  const onnx_input_shape input = {.name = "x", .shape = at};
  ASSERT_OK(import_model(m, &input, 1, &d, true, &module, &complete));
  ck_assert_uint_eq(d.n, 0);
}
END_TEST

int main(void) {
  TCase *all = tcase_create("all");
  tcase_add_checked_fixture(all, setup, teardown);
  tcase_add_test(all, doubled_sizes_are_not_pinned);
  tcase_add_test(all, sizes_of_a_deep_network_are_not_pinned);
  tcase_add_test(all, a_model_has_a_dimension_called_like_a_multiple);
  tcase_add_test(all, a_model_has_a_dimension_called_like_an_element);
  tcase_add_test(all, many_taps_take_any_batch);
  tcase_add_loop_test(all, parts_take_any_size, 0, sizeof parts / sizeof *parts);
  tcase_add_test(all, products_are_equal_in_pairs);
  tcase_add_loop_test(all, sizes_are_assumed, 0, sizeof assumed_rows / sizeof *assumed_rows);
  tcase_add_loop_test(all, assumed_batches_are_small, 1, 3);
  tcase_add_test(all, no_sizes_can_be_assumed);
  tcase_add_test(all, sizes_that_pin_less_are_preferred);
  tcase_add_loop_test(all, sizes_beyond_a_bound_are_found, 0, sizeof beyond_rows / sizeof *beyond_rows);
  tcase_add_loop_test(all, nodes_keep_their_sizes_open, 0, sizeof open_nodes / sizeof *open_nodes);
  return run_suite("symbols", all);
}
