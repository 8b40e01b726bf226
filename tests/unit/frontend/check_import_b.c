/* check_import_b.c - tests the importers of neural-network operators where ONNX's own cases do not: old versions, rare
 * attributes, and nodes that must be refused.
 *
 * A case is one node as text:  OP input... name=value...
 *   input: f32[2,3] (an input of the model, filled by fill()), s64[2]{1,2} (a constant), - (absent)
 *   value: i1 or f0.5 or sTEXT, or a list: I1,2 F0.5,1 Sa,b
 * Expected values are those of ONNX Runtime 1.31 for the same inputs; for nodes with bodies they are computed by hand.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>

#include "backend_ref/eval.h"
#include "frontend/import/import.h"
#include "tests/suite.h"
#include "tests/unit/frontend/build_model.h"

enum { MAX_INPUTS = 8, MAX_EXPECTED = 40 };

static arena *a;

static void setup(void) { a = arena_create(NULL); }
static void teardown(void) { arena_destroy(a); }

/* --- a node from text --- */

typedef struct one_node {
  Onnx__ModelProto *model;
  uint32_t n;
  onnx_input_shape inputs[MAX_INPUTS];
  literal values[MAX_INPUTS];
} one_node;

/* Fills input j of a model with multiples of 0.25 from -1.25 to 1.25, or, for integers, with numbers from 0 to 10. */
static literal fill(shape s, int j) {
  void *data;
  literal l = literal_new(a, s, &data);
  size_t size = dtype_bytes((dtype)s.type);
  for (int64_t k = 0, n = shape_elements(&s); k < n; k++) {
    int64_t v = (k * 7 + j * 3) % 11;
    if (dtype_is_float((dtype)s.type)) {
      dtype_store_f64((dtype)s.type, (char *)data + (size_t)k * size, ((double)v - 5) / 4, false, DTYPE_ROUND_NEAREST);
    } else {
      dtype_store_i64((dtype)s.type, (char *)data + (size_t)k * size, v);
    }
  }
  return l;
}

/* Parses the elements of a constant, such as {1,2.5}, which follow its shape. */
static literal braces(shape s, const char **text) {
  void *data;
  literal l = literal_new(a, s, &data);
  size_t size = dtype_bytes((dtype)s.type);
  ++*text;
  for (int64_t k = 0, n = shape_elements(&s); k < n; k++) {
    dtype_store_f64((dtype)s.type, (char *)data + (size_t)k * size, strtod(*text, (char **)text), true,
                    DTYPE_ROUND_NEAREST);
    *text += **text == ',';
  }
  ++*text;
  return l;
}

static Onnx__ValueInfoProto *typed_value(const char *name, const shape *s) {
  Onnx__ValueInfoProto *v = new_value(a, name);
  Onnx__TypeProto__Tensor *tensor = PB_NEW(a, Onnx__TypeProto__Tensor, ONNX__TYPE_PROTO__TENSOR__INIT);
  v->type = PB_NEW(a, Onnx__TypeProto, ONNX__TYPE_PROTO__INIT);
  v->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  v->type->tensor_type = tensor;
  tensor->has_elem_type = 1;
  tensor->elem_type = dtype_get_info((dtype)s->type)->onnx;
  tensor->shape = PB_NEW(a, Onnx__TensorShapeProto, ONNX__TENSOR_SHAPE_PROTO__INIT);
  for (int k = 0; k < s->rank; k++) {
    Onnx__TensorShapeProto__Dimension *d =
        PB_NEW(a, Onnx__TensorShapeProto__Dimension, ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT);
    d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    d->dim_value = s->dims[k];
    PB_ADD(a, tensor->shape->dim, tensor->shape->n_dim, d);
  }
  return v;
}

static const char *add_input(one_node *c, Onnx__NodeProto *node, int j, const char *text) {
  char *name = *text == '-' ? arena_strdup(a, "") : arena_printf(a, "in%d", j);
  shape s;
  PB_ADD(a, node->input, node->n_input, name);
  if (*text == '-') {
    return text + 1;
  }
  status bad = shape_parse(NULL, &text, &s);
  ck_assert_msg(!bad, "%s", status_message(bad));
  if (*text == '{') {
    literal l = braces(s, &text);
    Onnx__TensorProto *t = new_tensor(a, name, dtype_get_info((dtype)s.type)->onnx, s.rank, s.dims);
    set_raw(a, t, l.data, (size_t)shape_bytes(&s));
    PB_ADD(a, c->model->graph->initializer, c->model->graph->n_initializer, t);
    return text;
  }
  PB_ADD(a, c->model->graph->input, c->model->graph->n_input, typed_value(name, &s));
  c->values[c->n] = shape_elements(&s) < 1 << 20 ? fill(s, j) : literal_make(s, NULL);
  c->inputs[c->n++] = (onnx_input_shape){.name = name, .shape = s};
  return text;
}

static void add_value(Onnx__NodeProto *node, const char *name, char *text) {
  Onnx__AttributeProto *t = add_attribute(a, node, name);
  static const char kinds[] = "ifsIFS";
  static const int types[] = {2, 1, 3, 7, 6, 8}; /* AttributeType */
  const char *kind = strchr(kinds, *text++);
  ck_assert_msg(kind, "attribute %s", name);
  t->has_type = 1;
  t->type = types[kind - kinds];
  for (char *item = text; item;) {
    char *next = strchr(item, ',');
    next = next && *kind < 'a' ? next : NULL;
    size_t length = next ? (size_t)(next - item) : strlen(item);
    ProtobufCBinaryData bytes = {length, arena_memdup(a, item, length)};
    switch (*kind) {
      case 'i':
        t->has_i = 1;
        t->i = strtoll(item, NULL, 10);
        break;
      case 'f':
        t->has_f = 1;
        t->f = strtof(item, NULL);
        break;
      case 's':
        t->has_s = 1;
        t->s = bytes;
        break;
      case 'I': PB_ADD(a, t->ints, t->n_ints, strtoll(item, NULL, 10)); break;
      case 'F': PB_ADD(a, t->floats, t->n_floats, strtof(item, NULL)); break;
      default: PB_ADD(a, t->strings, t->n_strings, bytes); break;
    }
    item = next ? next + 1 : NULL;
  }
}

static one_node parse(int opset, const char *text) {
  one_node c = {.model = new_model(a, "", "out0,out1,out2")};
  c.model->opset_import[0]->version = opset;
  size_t op = strcspn(text, " ");
  Onnx__NodeProto *node = graph_node(a, c.model->graph, arena_strndup(a, text, op), "", "out0");
  int j = 0;
  for (text += op; *text == ' ';) {
    text++;
    size_t length = strcspn(text, " "), equals = strcspn(text, "=");
    if (equals >= length) {
      text = add_input(&c, node, j++, text);
    } else {
      char *value = arena_strndup(a, text + equals + 1, length - equals - 1);
      add_value(node, arena_strndup(a, text, equals), value);
      text += length;
    }
  }
  return c;
}

/* --- running it --- */

typedef struct run_call {
  one_node *c;
  literal out;
} run_call;

static status run_node(void *data) {
  run_call *r = data;
  onnx_model *m;
  hlo_module *h;
  size_t size;
  uint8_t *bytes = pack(a, r->c->model, &size);
  TRY(onnx_model_from_memory(a, bytes, size, NULL, NULL, &m));
  onnx_import_options o = {.inputs = r->c->inputs, .n_inputs = r->c->n, .eval = ref_fold};
  bool complete;
  TRY(onnx_import(a, m, &o, &h, &complete));
  CHECK_THAT(complete, STATUS_UNSUPPORTED, "sizes depend on what is computed");
  return ref_eval_computation(h->entry, r->c->values, a, &r->out);
}

/* Runs a model with one node, whose output number `which` is the model's only output. */
static status run(int opset, const char *text, int which, literal *out) {
  one_node c = parse(opset, text);
  Onnx__NodeProto *node = c.model->graph->node[0];
  for (int k = 0; k < which; k++) {
    PB_ADD(a, node->output, node->n_output, arena_printf(a, "out%d", k + 1));
  }
  c.model->graph->output[0] = c.model->graph->output[which];
  c.model->graph->n_output = 1;
  run_call r = {.c = &c};
  status s = guard_run(run_node, &r);
  *out = r.out;
  return s;
}

typedef struct number_case {
  int opset;
  const char *node;
  int output;
  int n;
  double want[MAX_EXPECTED];
} number_case;

static const number_case numbers[] = {
#include "tests/unit/frontend/import_b_numbers.def"
};

START_TEST(test_numbers) {
  const number_case *c = &numbers[_i];
  literal out;
  status s = run(c->opset, c->node, c->output, &out);
  ck_assert_msg(!s, "%d %s: %s", c->opset, c->node, status_message(s));
  ck_assert_msg(shape_elements(&out.shape) == c->n, "%d %s: %s instead of %d elements", c->opset, c->node,
                SHAPE_STR(NULL, &out.shape), c->n);
  for (int k = 0; k < c->n; k++) {
    double got = literal_f64(&out, k);
    ck_assert_msg(fabs(got - c->want[k]) <= 1e-5 + 1e-4 * fabs(c->want[k]), "%d %s: [%d] is %g instead of %g", c->opset,
                  c->node, k, got, c->want[k]);
  }
}
END_TEST

/* --- nodes that are refused --- */

typedef struct refused_case {
  int opset;
  const char *node, *part; /* part: what the message must contain */
} refused_case;

static const refused_case refused[] = {
    {11, "Conv f32[1,4,5,5] f32[4,4,3,3] group=i0", "group"},
    {11, "Conv f32[1,4,5,5] f32[4,4,3,3] group=i-2", "group"},
    {11, "Conv f32[1,4,5,5] f32[4,2,3,3] group=i3", "channels 4 != 6"},
    {11, "Conv f32[1,4,5,5] f32[3,2,3,3] group=i2", "no multiple of group 2"},
    {11, "Conv f32[1,4,5,5] f32[4,3,3,3]", "channels 4 != 3"},
    {11, "Conv f32[1,4,5,5] f32[4,4,3,3] strides=I0,1", "strides[0] is 0"},
    {11, "Conv f32[1,4,5,5] f32[4,4,3,3] strides=I1,-1", "strides[1] is -1"},
    {11, "Conv f32[1,4,5,5] f32[4,4,3,3] strides=I1", "strides has 1 entries instead of 2"},
    {11, "Conv f32[1,4,5,5] f32[4,4,3,3] dilations=I1,9223372036854775807", "dilations[1]"},
    {11, "Conv f32[1,4,5,5] f32[4,4,3,3] dilations=I3,3", "the kernel covers 7"},
    {11, "Conv f32[1,4,5,5] f32[4,4,3,3] pads=I0,0,0,-1", "pads[3] is -1"},
    {11, "Conv f32[1,4,5,5] f32[4,4,3,3] pads=I0,0", "pads has 2 entries instead of 4"},
    {11, "Conv f32[1,4,5,5] f32[4,4,3,3] kernel_shape=I3,5", "kernel_shape[1] is 5 but W has extent 3"},
    {11, "Conv f32[1,4,5,5] f32[4,4,0,3]", "W has spatial extent 0"},
    {11, "Conv f32[1,4,5,5] f32[4,4,7,3]", "the kernel covers 7"},
    {11, "Conv f32[1,4,5,5] f32[4,4,3,3] f32[3]", "B is f32[3] instead of f32[4]"},
    {11, "Conv f32[1,4,5,5] f32[4,4,3,3] auto_pad=sSOME", "auto_pad is \"SOME\""},
    {11, "Conv f32[1,4,5,5] f32[4,4,3,3] auto_pad=i1", "auto_pad"},
    {11, "Conv f32[4,5] f32[4,4]", "rank must be at least 3"},
    {11, "ConvTranspose f32[1,4,5,5] f32[3,4,3,3]", "channels 4 != 3"},
    {11, "ConvTranspose f32[1,4,5,5] f32[4,4,3,3] output_padding=I1,0", "output_padding[0] is 1"},
    {11, "ConvTranspose f32[1,4,5,5] f32[4,4,3,3] output_shape=I0,5", "output_shape[0] is 0"},
    {11, "ConvTranspose f32[1,4,1,1] f32[4,4,3,3] pads=I2,0,2,0", "cut off more"},
    {11, "MaxPool f32[1,4,5,5]", "kernel_shape is missing"},
    {11, "NonMaxSuppression f32[1,4,5] f32[1,1,4]", "boxes is f32[1,4,5]"},
    {11, "NonMaxSuppression f32[1,4,4] f32[1,1,5]", "scores is f32[1,1,5] but boxes is f32[1,4,4]"},
    {11, "NonMaxSuppression f32[1,4,4] f32[2,1,4]", "scores is f32[2,1,4] but boxes is f32[1,4,4]"},
    {11, "NonMaxSuppression f32[1,4,4] f32[1,1,4] s64[2]", "max_output_boxes_per_class is s64[2]; a scalar"},
    {11, "NonMaxSuppression f32[1,4,4] f32[1,1,4] center_point_box=i2", "center_point_box is 2"},
    {11, "MaxPool f32[1,4,5,5] kernel_shape=I0,1", "kernel_shape[0] is 0"},
    {11, "MaxPool f32[1,4,5,5] kernel_shape=I3", "kernel_shape has 1 entries instead of 2"},
    {11, "AveragePool f32[1,4,5,5] kernel_shape=I9,9", "the kernel covers 9"},
    {22, "AveragePool f32[1,3,2,2] kernel_shape=I4,4 strides=I2,2 ceil_mode=i1", "whose padded extent is 2"},
    {11, "AveragePool s32[1,4,5,5] kernel_shape=I2,2", "version 11 takes f16, f32, f64"},
    {11, "LpPool f32[1,4,5,5] kernel_shape=I2,2 p=i0", "p is 0"},
    {11, "MaxUnpool f32[1,1,2,2] s64[1,1,2,1] kernel_shape=I2,2", "I is s64[1,1,2,1]"},
    {11, "Gemm f32[8,64] f32[32,10]", "A is f32[8,64] but B is f32[32,10]; K 64 != 32"},
    {11, "Gemm f32[8,64] f32[10,32] transB=i1", "K 64 != 32"},
    {11, "Gemm f32[2,3] f32[3,4] f32[3,4]", "does not broadcast"},
    {6, "Gemm f32[2,3] f32[3,4] f32[4]", "C is f32[4] but A * B is f32[2,4]"},
    {11, "Gemm f32[2,3,1] f32[3,4]", "rank must be 2"},
    {13, "MatMul f32[2,3] f32[4,5]", "K 3 != 4"},
    {13, "MatMul f32[] f32[4,5]", "rank must be at least 1"},
    {13, "MatMul f32[2,2,3] f32[3,3,5]", "do not broadcast"},
    {13, "MatMulInteger u8[2,3] u8[3,2] u8[5]", "a_zero_point is u8[5]"},
    {12, "Einsum f32[2,3] f32[3,4] equation=sij,jk,kl->il", "more terms than inputs (2)"},
    {12, "Einsum f32[2,3] f32[3,4] equation=sij->ij", "fewer terms than inputs (2)"},
    {12, "Einsum f32[2,3] f32[4,4] equation=sij,jk->ik", "extents 3 and 4"},
    {12, "Einsum f32[2,3] equation=sijk->i", "3 subscripts but its operand has rank 2"},
    {12, "Einsum f32[2,3] equation=sij->ii", "is given twice"},
    {12, "Einsum f32[2,3] equation=sij->ik", "is in no input"},
    {12, "Einsum f32[2,3] equation=si1->i", "'1' is not a letter"},
    {12, "Einsum f32[2,3] equation=si..->i", "misplaced '.'"},
    {12, "Einsum f32[2,3] equation=sij-i", "'-' must begin '->'"},
    {12, "Einsum f32[2,3]", "equation"},
    {9, "BatchNormalization f32[2,3,4] f32[3] f32[3] f32[4] f32[3]", "mean is f32[4] instead of f32[3]"},
    {21, "GroupNormalization f32[2,3,4] f32[3] f32[3] num_groups=i2", "num_groups is 2"},
    {21, "GroupNormalization f32[2,3,4] f32[3] f32[3] num_groups=i0", "num_groups is 0"},
    {17, "LayerNormalization f32[2,3] f32[3] axis=i2", "axis 2"},
    {17, "LayerNormalization f32[2,3] f32[4]", "f32[4]"},
    {13, "LRN f32[1,3,2,2] size=i0", "size"},
    {21, "QuantizeLinear f32[4,6] f32[3,6] axis=i0 block_size=i3", "blocks of 3"},
    {13, "QuantizeLinear f32[4,6] f32[3]", "axis 1"},
    {10, "QuantizeLinear f32[4,6] f32[6]", "must be a scalar"},
    {21, "QuantizeLinear f32[4,6] f32[] output_dtype=i1", "cannot quantize to f32"},
    {21, "DequantizeLinear u8[4] f32[] s8[]", "x_zero_point is s8[] but x is u8[4]"},
    {14, "LSTM f32[2,1,3] f32[1,8,3] f32[1,8,2] hidden_size=i3", "hidden_size is 3 but R is f32[1,8,2]"},
    {14, "LSTM f32[2,1,3] f32[1,8,4] f32[1,8,2]", "W is f32[1,8,4] instead of f32[1,8,3]"},
    {14, "LSTM f32[2,1,3] f32[1,8,3] f32[1,8,2] activations=SSigmoid,Tanh", "activations has 2 entries instead of 3"},
    {14, "LSTM f32[2,1,3] f32[1,8,3] f32[1,8,2] activations=SSigmoid,Tanh,Magic", "\"Magic\" is unknown"},
    {14, "LSTM f32[2,1,3] f32[1,8,3] f32[1,8,2] direction=sbidirectional", "instead of f32[2,8,3]"},
    {14, "GRU f32[2,1,3] f32[1,6,3] f32[1,6,2] direction=sup", "direction is \"up\""},
    {14, "RNN f32[2,3] f32[1,2,3] f32[1,2,2]", "its rank must be 3"},
    {14, "RNN f32[2,1,3] f32[1,2,3] f32[1,2,2] - s32[2]", "sequence_lens is s32[2] instead of s32[1]"},
    {14, "RNN f32[2,1,3] f32[1,2,3] f32[1,2,2] clip=f-1", "clip is -1"},
    {13, "Resize f32[1,1,2,2] - f32[4]{1,1,0,2}", "scales[2] is 0"},
    {13, "Resize f32[1,1,2,2] - f32[4]{1,1,-1,2}", "scales[2] is -1"},
    {13, "Resize f32[1,1,2,2] - f32[3]{1,1,2}", "scales has 3 entries instead of 4"},
    {13, "Resize f32[1,1,2,2]", "neither scales and sizes is given"},
    {13, "Resize f32[1,1,2,2] - f32[4]{1,1,2,2} s64[4]{1,1,4,4}", "both scales and sizes are given"},
    {13, "Resize f32[1,1,2,2] - - s64[4]{1,1,-4,4}", "sizes[2] is -4"},
    {13, "Resize f32[1,1,2,2] - f32[4]{1,1,2,2} mode=sfancy", "mode is \"fancy\""},
    {13, "Resize f32[1,1,2,2] - f32[4]{1,1,1e30,2}", "scales[2]"},
    {13, "Resize f32[1,1,2,2] - - s64[4]{1,1,99999999999,99999999999}", "2^56"},
    {28, "SwiGLU f32[2,3] f32[3]", "they must be alike"},
    {28, "Attention f32[1,1,3,4] f32[1,1,3,4] f32[1,1,3,4] left_window_size=i-2", "left_window_size is -2"},
    {23, "Attention f32[1,2,3,4] f32[1,2,3,5] f32[1,2,3,4]", "disagree"},
    {23, "Attention f32[1,3,3,4] f32[1,2,3,4] f32[1,2,3,4]", "no multiple of 2"},
    {23, "Attention f32[1,3,8] f32[1,3,8] f32[1,3,8] kv_num_heads=i2", "q_num_heads"},
    {23, "Attention f32[1,3,8] f32[1,3,8] f32[1,3,8] q_num_heads=i3 kv_num_heads=i3", "q_num_heads is 3"},
    {23, "RotaryEmbedding f32[1,2,3,4] f32[8,3] f32[8,3] s64[1,3]", "its last dimension must be 2"},
    {13, "NegativeLogLikelihoodLoss f32[2,3] s64[3]", "target is s64[3] instead of s64[2]"},
    {13, "SoftmaxCrossEntropyLoss f32[2,3] s64[2] reduction=smax", "reduction is \"max\""},
};

START_TEST(test_refused) {
  const refused_case *c = &refused[_i];
  literal out;
  status s = run(c->opset, c->node, 0, &out);
  ck_assert_msg(s, "%s is accepted", c->node);
  status_code code = status_get_code(s);
  ck_assert_msg(code == STATUS_INVALID_MODEL || code == STATUS_UNSUPPORTED || code == STATUS_RESOURCE, "%s: %s",
                c->node, status_code_name(code));
  ck_assert_msg(strstr(status_message(s), c->part), "%s: \"%s\" lacks \"%s\"", c->node, status_message(s), c->part);
  status_free(s);
}
END_TEST

/* Equations of 10^5 subscripts and of 10^5 terms are refused. */
START_TEST(test_long_equation) {
  for (int k = 0; k < 2; k++) {
    char *text = arena_alloc(a, 100100), *at = text + sprintf(text, "Einsum f32[2,3] equation=s");
    memset(at, k ? ',' : 'i', 100000);
    literal out;
    status s = run(12, text, 0, &out);
    ck_assert_int_eq(status_get_code(s), STATUS_INVALID_MODEL);
    ck_assert_uint_lt(strlen(status_message(s)), 300);
    status_free(s);
  }
}
END_TEST

/* Nodes whose inputs have valid shapes, but whose results would be too large, are errors. */
START_TEST(test_too_large) {
  static const char *const nodes[] = {
      "LSTM f32[1048576,1048576,1] f32[1,4194304,1] f32[1,4194304,1048576]",
      "GRU f32[1048576,1048576,1] f32[1,3145728,1] f32[1,3145728,1048576] - - - linear_before_reset=i1",
      "Gemm f32[1073741824,1] f32[1,1073741824]",
      "Einsum f32[1073741824] f32[1073741824] equation=si,j",
      "Attention f32[1,1,1073741824,1] f32[1,1,1073741824,1] f32[1,1,1073741824,1]",
      "ConvTranspose f32[1,1,1073741824] f32[1,1,1] strides=I1073741824",
      "GridSample f32[1,1073741824,2,2] f32[1,1073741824,1,2]",
  };
  one_node c = parse(23, nodes[_i]);
  Onnx__GraphProto *g = c.model->graph;
  g->n_output = 1;
  size_t size;
  uint8_t *bytes = pack(a, c.model, &size);
  onnx_model *m;
  hlo_module *h;
  status s = onnx_model_from_memory(a, bytes, size, NULL, NULL, &m);
  ck_assert_msg(!s, "%s", status_message(s));
  onnx_import_options o = {.inputs = c.inputs, .n_inputs = c.n, .eval = ref_fold};
  bool complete;
  s = onnx_import(a, m, &o, &h, &complete);
  ck_assert_msg(s, "%s is accepted", nodes[_i]);
  status_free(s);
}
END_TEST

/* --- bodies --- */

/* Returns a graph with one node, whose outputs are the graph's outputs. */
static Onnx__GraphProto *body(const char *inputs, const char *op, const char *node_inputs, const char *outputs) {
  Onnx__GraphProto *g = new_graph(a, inputs, outputs);
  graph_node(a, g, op, node_inputs, outputs);
  return g;
}

static void expect_body(one_node *c, const char *attribute, Onnx__GraphProto *g, status_code code, const char *part) {
  set_graph(a, c->model->graph->node[0], attribute, g);
  c->model->graph->n_output = 1;
  run_call r = {.c = c};
  status s = guard_run(run_node, &r);
  ck_assert_msg(status_get_code(s) == code && strstr(status_message(s), part), "\"%s\" (%s) lacks \"%s\"",
                status_message(s), status_code_name(status_get_code(s)), part);
  status_free(s);
}

START_TEST(test_bodies_refused) {
  one_node c = parse(13, "Loop s64[]{3} pred[]{1} f32[2]");
  expect_body(&c, "body", body("i,c", "Identity", "c", "r"), STATUS_INVALID_MODEL, "body has 2 inputs instead of 3");
  c = parse(13, "Loop s64[]{3} pred[]{1} f32[2]");
  expect_body(&c, "body", body("i,c,x", "Identity", "c", "r"), STATUS_INVALID_MODEL, "at least 2 are needed");
  c = parse(13, "Loop s64[2] pred[]{1}");
  expect_body(&c, "body", body("i,c", "Identity", "c", "r"), STATUS_INVALID_MODEL, "M is s64[2]");
  c = parse(13, "Loop s64[]{3} -");
  expect_body(&c, "body", body("i,c", "Identity", "c", "r"), STATUS_INVALID_MODEL,
              "the node has 1 outputs but body gives 0");
  c = parse(13, "Loop - -");
  expect_body(&c, "body", body("i,c", "Identity", "c", "r"), STATUS_UNSUPPORTED, "the loop never ends");
  c = parse(13, "If pred[2]");
  expect_body(&c, "then_branch", body("", "Identity", "in0", "r"), STATUS_INVALID_MODEL, "one element");
  c = parse(13, "If f32[]");
  expect_body(&c, "then_branch", body("", "Identity", "in0", "r"), STATUS_INVALID_MODEL,
              "cond is f32[]; version 13 takes pred");
  c = parse(13, "Scan f32[2] f32[3,2] num_scan_inputs=i3");
  expect_body(&c, "body", body("s,x", "Identity", "s", "r"), STATUS_INVALID_MODEL, "num_scan_inputs is 3");
  c = parse(13, "Scan f32[2] f32[3,2] num_scan_inputs=i1 scan_input_axes=I2");
  expect_body(&c, "body", body("s,x", "Identity", "s", "r"), STATUS_INVALID_MODEL, "axis 2");
  c = parse(13, "Scan f32[2] f32[3,2] num_scan_inputs=i1 scan_input_directions=I2");
  expect_body(&c, "body", body("s,x", "Identity", "s", "r"), STATUS_INVALID_MODEL, "scan_input_directions[0] is 2");
}
END_TEST

/* Runs a node whose body has been added, and returns the node's output number `which`. */
static literal run_body(one_node *c, int which) {
  Onnx__NodeProto *node = c->model->graph->node[0];
  for (int k = 0; k < which; k++) {
    PB_ADD(a, node->output, node->n_output, arena_printf(a, "out%d", k + 1));
  }
  c->model->graph->output[0] = c->model->graph->output[which];
  c->model->graph->n_output = 1;
  run_call r = {.c = c};
  status s = guard_run(run_node, &r);
  ck_assert_msg(!s, "%s", status_message(s));
  return r.out;
}

/* Concatenates x with itself three times; the loop is unrolled, since its state grows. */
START_TEST(test_growing_state) {
  one_node c = parse(13, "Loop s64[]{3} - f32[1]");
  Onnx__GraphProto *g = new_graph(a, "i,c,x", "c2,x2");
  graph_node(a, g, "Identity", "c", "c2");
  Onnx__NodeProto *concat = graph_node(a, g, "Concat", "x,x", "x2");
  add_value(concat, "axis", arena_strdup(a, "i0"));
  set_graph(a, c.model->graph->node[0], "body", g);
  literal out = run_body(&c, 0);
  ck_assert_int_eq(shape_elements(&out.shape), 8);
}
END_TEST

/* Without iterations the results are the initial states, even if the body reads an element that an array does
 * not have. */
START_TEST(test_no_steps) {
  one_node c = parse(13, "Loop s64[]{0} - f32[2] f32[0,2]");
  Onnx__GraphProto *g = new_graph(a, "i,c,x,rows", "c2,x2,rows2");
  graph_node(a, g, "Identity", "c", "c2");
  graph_node(a, g, "Gather", "rows,i", "row");
  graph_node(a, g, "Add", "x,row", "x2");
  graph_node(a, g, "Identity", "rows", "rows2");
  set_graph(a, c.model->graph->node[0], "body", g);
  literal out = run_body(&c, 0);
  for (int k = 0; k < 2; k++) {
    ck_assert_double_eq(literal_f64(&out, k), literal_f64(&c.values[0], k));
  }
}
END_TEST

/* A Loop whose condition ends it after three iterations, and whose body reads a value from outside of it. */
START_TEST(test_while) {
  one_node c = parse(13, "Loop - pred[]{1} f32[2]");
  Onnx__TensorProto *two = new_tensor(a, "two", 7, 0, NULL);
  set_raw(a, two, &(int64_t){2}, 8);
  PB_ADD(a, c.model->graph->initializer, c.model->graph->n_initializer, two);
  Onnx__GraphProto *g = new_graph(a, "i,c,x", "c2,x2");
  graph_node(a, g, "Less", "i,two", "c2");
  graph_node(a, g, "Add", "x,in2", "x2");
  set_graph(a, c.model->graph->node[0], "body", g);
  literal out = run_body(&c, 0);
  for (int k = 0; k < 2; k++) {
    ck_assert_double_eq(literal_f64(&out, k), 4 * literal_f64(&c.values[0], k));
  }
}
END_TEST

/* A Scan that reads the columns of its input backwards and stores its output forwards along the last axis. */
START_TEST(test_scan_directions) {
  one_node c = parse(13,
                     "Scan f32[] f32[2,3] num_scan_inputs=i1 scan_input_axes=I-1 scan_input_directions=I1 "
                     "scan_output_axes=I-1");
  Onnx__GraphProto *g = new_graph(a, "s,x", "s2,y");
  graph_node(a, g, "Identity", "s", "s2");
  graph_node(a, g, "Neg", "x", "y");
  set_graph(a, c.model->graph->node[0], "body", g);
  literal out = run_body(&c, 1);
  ck_assert_int_eq(shape_elements(&out.shape), 6);
  for (int k = 0; k < 6; k++) {
    ck_assert_double_eq(literal_f64(&out, k), -literal_f64(&c.values[1], k / 3 * 3 + 2 - k % 3));
  }
}
END_TEST

int main(void) {
  TCase *t = tcase_create("all");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_loop_test(t, test_numbers, 0, sizeof numbers / sizeof *numbers);
  tcase_add_loop_test(t, test_refused, 0, sizeof refused / sizeof *refused);
  tcase_add_test(t, test_long_equation);
  tcase_add_loop_test(t, test_too_large, 0, 7);
  tcase_add_test(t, test_bodies_refused);
  tcase_add_test(t, test_growing_state);
  tcase_add_test(t, test_no_steps);
  tcase_add_test(t, test_while);
  tcase_add_test(t, test_scan_directions);
  return run_suite("import_b", t);
}
