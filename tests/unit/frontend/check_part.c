/* check_part.c - tests the extraction of nodes as a model of their own (frontend/import/part.h), and the models that
 * onnx-xla verify writes for a faulty backend. */
#include <check.h>
#include <stdio.h>
#include <unistd.h>

#include "base/tensor/npy.h"
#include "frontend/import/part.h"
#include "frontend/model/tensor.h"
#include "tests/suite.h"
#include "tests/unit/frontend/build_model.h"
#include "tests/unit/plugin/compiler_half.h"

enum { FLOAT = ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT };

static arena *a;

static void setup(void) { a = arena_create(NULL); }

static void teardown(void) { arena_destroy(a); }

/* --- models --- */

static void set_type(Onnx__ValueInfoProto *v, int64_t rows, int64_t columns) {
  v->type = PB_NEW(a, Onnx__TypeProto, ONNX__TYPE_PROTO__INIT);
  v->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  v->type->tensor_type = PB_NEW(a, Onnx__TypeProto__Tensor, ONNX__TYPE_PROTO__TENSOR__INIT);
  v->type->tensor_type->has_elem_type = 1;
  v->type->tensor_type->elem_type = FLOAT;
  Onnx__TensorShapeProto *s = v->type->tensor_type->shape =
      PB_NEW(a, Onnx__TensorShapeProto, ONNX__TENSOR_SHAPE_PROTO__INIT);
  for (int k = 0; k < 2; k++) {
    Onnx__TensorShapeProto__Dimension *d =
        PB_NEW(a, Onnx__TensorShapeProto__Dimension, ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT);
    d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    d->dim_value = k ? columns : rows;
    PB_ADD(a, s->dim, s->n_dim, d);
  }
}

/* Returns a model whose inputs and outputs are f32[rows, columns]. */
static Onnx__ModelProto *typed_model(const char *inputs, const char *outputs, int64_t rows, int64_t columns) {
  Onnx__ModelProto *m = new_model(a, inputs, outputs);
  for (size_t k = 0; k < m->graph->n_input; k++) {
    set_type(m->graph->input[k], rows, columns);
  }
  for (size_t k = 0; k < m->graph->n_output; k++) {
    set_type(m->graph->output[k], rows, columns);
  }
  return m;
}

static void node(Onnx__ModelProto *m, const char *type, const char *inputs, const char *outputs) {
  graph_node(a, m->graph, type, inputs, outputs);
}

static const float *weights(void) {
  enum { N = 600 }; /* so large that the wire scan cuts the data out of the message */
  float *w = ARENA_NEW_N(a, float, N);
  for (int k = 0; k < N; k++) {
    w[k] = (float)k / 64;
  }
  return w;
}

static Onnx__TensorProto *weight_tensor(const char *name) {
  Onnx__TensorProto *t = new_tensor(a, name, FLOAT, 2, (int64_t[]){2, 300});
  set_raw(a, t, weights(), 600 * sizeof(float));
  return t;
}

/* Returns a model of the chain x -> left -> bad -> right -> y and another output, "other".  The weights of "bad" and of
 * the constant "c" are so large that the wire scan cuts them out. */
static Onnx__ModelProto *chain(void) {
  Onnx__ModelProto *m = typed_model("x", "y,other", 2, 300);
  node(m, "Relu", "x", "left");
  node(m, "Add", "left,w", "bad");
  node(m, "Neg", "x", "other");
  graph_node(a, m->graph, "Constant", "", "c");
  Onnx__AttributeProto *value = add_attribute(a, m->graph->node[3], "value");
  value->has_type = 1;
  value->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
  value->t = weight_tensor("");
  node(m, "Mul", "bad,c", "right");
  node(m, "Max", "right,left", "y");
  PB_ADD(a, m->graph->initializer, m->graph->n_initializer, weight_tensor("w"));
  PB_ADD(a, m->graph->initializer, m->graph->n_initializer, weight_tensor("unused"));
  return m;
}

static onnx_model *load(const void *bytes, size_t size) {
  onnx_model *m;
  ASSERT_OK(onnx_model_from_memory(a, bytes, size, NULL, NULL, &m));
  return m;
}

static onnx_model *load_proto(const Onnx__ModelProto *proto) {
  size_t size;
  const uint8_t *bytes = pack(a, proto, &size);
  return load(bytes, size);
}

/* --- which nodes --- */

static const char *joined(const onnx_names *n) {
  const char *text = "";
  for (uint32_t k = 0; k < n->n; k++) {
    text = arena_printf(a, "%s%s%s", text, k ? "," : "", n->items[k]);
  }
  return text;
}

static const char *outputs_of(const onnx_model *m, const bool *chosen) {
  onnx_names names = {0};
  for (size_t k = 0; k < m->graph->n_node; k++) {
    if (!chosen || chosen[k]) {
      *ARENA_PUSH(a, names.items, names.n, names.cap) = m->graph->node[k]->output[0];
    }
  }
  return joined(&names);
}

typedef struct find_row {
  const char *sources[2];
  const char *nodes, *inputs, *results;
} find_row;

static const find_row finds[] = {
    {{"bad: Add"}, "bad", "left", "bad"},
    {{"left: Relu"}, "left", "x", "left"},
    {{"left: Relu", "right: Mul"}, "left,bad,right", "x,c", "left,right"},
    {{"y: Max", "bad: Add"}, "bad,right,y", "left,c", "y"},
    {{"other: Neg", "left: Relu"}, "left,other", "x", "left,other"},
};
enum { N_FINDS = sizeof finds / sizeof *finds };

START_TEST(nodes_are_closed_over_between) {
  const find_row *r = &finds[_i];
  onnx_model *m = load_proto(chain());
  onnx_part part;
  ASSERT_OK(onnx_part_find(a, m, r->sources[1] ? 2 : 1, r->sources, &part));
  ck_assert_str_eq(outputs_of(m, part.chosen), r->nodes);
  ck_assert_str_eq(joined(&part.inputs), r->inputs);
  ck_assert_str_eq(joined(&part.results), r->results);
}
END_TEST

static void refuse(const onnx_model *m, const char *source, const char *message) {
  onnx_part part;
  status s = onnx_part_find(a, m, source ? 1 : 0, &source, &part);
  ck_assert_int_eq(status_get_code(s), STATUS_UNSUPPORTED);
  ck_assert_msg(strstr(status_message(s), message), "%s", status_message(s));
  status_free(s);
}

static void add_function(Onnx__ModelProto *m) {
  Onnx__FunctionProto *f = PB_NEW(a, Onnx__FunctionProto, ONNX__FUNCTION_PROTO__INIT);
  f->domain = arena_strdup(a, "own");
  f->name = arena_strdup(a, "F");
  f->input = names(a, "p", &f->n_input);
  f->output = names(a, "q", &f->n_output);
  add_node(a, &f->node, &f->n_node, "Exp", "p", "q");
  PB_ADD(a, m->functions, m->n_functions, f);
  Onnx__OperatorSetIdProto *o = PB_NEW(a, Onnx__OperatorSetIdProto, ONNX__OPERATOR_SET_ID_PROTO__INIT);
  o->domain = arena_strdup(a, "");
  o->has_version = 1;
  o->version = 21;
  PB_ADD(a, f->opset_import, f->n_opset_import, o);
  add_opset(a, m, "own", 1);
}

static void call(Onnx__ModelProto *m, const char *input, const char *output) {
  graph_node(a, m->graph, "F", input, output)->domain = arena_strdup(a, "own");
}

/* For a node in a function or a body, the file has the node of the main graph that calls or contains it. */
START_TEST(what_stands_inside_is_taken_with_what_is_around_it) {
  Onnx__ModelProto *p = typed_model("x", "y", 2, 3);
  onnx_part part;
  onnx_part_value in = {.name = "x", .value = literal_make(shape_scalar(DTYPE_F32), NULL)}, out = in;
  uint8_t *bytes;
  size_t size;
  add_function(p);
  call(p, "x", "y");
  onnx_model *m = load_proto(p);
  ASSERT_OK(onnx_part_find(a, m, 1, (const char *const[]){"q: Exp"}, &part));
  ck_assert_str_eq(outputs_of(m, part.chosen), "y");
  out.name = "y";
  ASSERT_OK(onnx_part_pack(a, m, &part, &in, &out, &bytes, &size));
  ck_assert_uint_eq(load(bytes, size)->proto->n_functions, 1);

  Onnx__GraphProto *body = new_graph(a, "", "inner");
  graph_node(a, body, "Neg", "x", "inner");
  Onnx__NodeProto *branch = graph_node(a, p->graph, "If", "condition", "z");
  set_graph(a, branch, "then_branch", body);
  set_graph(a, branch, "else_branch", body);
  PB_ADD(a, p->graph->input, p->graph->n_input, new_value(a, "condition"));
  m = load_proto(p);
  ASSERT_OK(onnx_part_find(a, m, 1, (const char *const[]){"inner: Neg"}, &part));
  ck_assert_str_eq(outputs_of(m, part.chosen), "z");
  ck_assert_str_eq(joined(&part.inputs), "condition,x");
}
END_TEST

START_TEST(what_is_not_known_is_refused) {
  Onnx__ModelProto *p = typed_model("x", "z", 2, 3);
  add_function(p);
  call(p, "x", "y");
  call(p, "y", "z");
  onnx_model *m = load_proto(p);
  refuse(m, "q: Exp", "2 nodes of the model are or contain 'q: Exp'");
  refuse(m, "gradient of y: F", "'gradient of y: F' is no node of the model");
  refuse(m, NULL, "the nodes that it was imported from are not known");
}
END_TEST

/* --- the file --- */

static literal weight_literal(void) {
  shape s = shape_scalar(DTYPE_F32);
  s.rank = 2;
  s.dims[0] = 2;
  s.dims[1] = 300;
  return literal_make(s, weights());
}

static void check_weights(const onnx_model *m, const Onnx__TensorProto *t) {
  literal l;
  ASSERT_OK(onnx_tensor_literal(a, &m->source, t, &l));
  ck_assert_mem_eq(l.data, weights(), 600 * sizeof(float));
}

/* The new file has the arrays that the wire scan cut out of the model, as far as its nodes read them, and no others. */
START_TEST(the_file_holds_what_it_needs) {
  onnx_model *m = load_proto(chain());
  const char *const sources[] = {"c: Constant", "bad: Add"};
  uint8_t *bytes;
  size_t size;
  onnx_part part;
  ASSERT_OK(onnx_part_find(a, m, 2, sources, &part));
  ck_assert_str_eq(joined(&part.inputs), "left");
  onnx_part_value in = {.name = "left", .value = weight_literal()};
  onnx_part_value out[] = {{.name = "bad", .value = weight_literal()}, {.name = "c", .value = weight_literal()}};
  ASSERT_OK(onnx_part_pack(a, m, &part, &in, out, &bytes, &size));
  onnx_model *small = load(bytes, size);
  ck_assert_str_eq(outputs_of(small, NULL), "bad,c");
  ck_assert_uint_eq(small->graph->n_input, 1);
  ck_assert_uint_eq(small->graph->n_initializer, 1);
  check_weights(small, small->graph->initializer[0]);
  check_weights(small, small->graph->node[1]->attribute[0]->t);

  in.is_constant = true;
  ASSERT_OK(onnx_part_pack(a, m, &part, &in, out, &bytes, &size));
  small = load(bytes, size);
  ck_assert_uint_eq(small->graph->n_input, 0);
  ck_assert_uint_eq(small->graph->n_initializer, 2);
}
END_TEST

/* A function's attribute has a default, which no node of the model gives: the new file has its array, too. */
START_TEST(the_file_holds_the_defaults_of_functions) {
  Onnx__ModelProto *p = typed_model("x", "y", 2, 300);
  add_function(p);
  Onnx__FunctionProto *f = p->functions[0];
  Onnx__NodeProto defaults = ONNX__NODE_PROTO__INIT;
  Onnx__AttributeProto *c = add_attribute(a, &defaults, "c");
  c->has_type = 1;
  c->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
  c->t = weight_tensor("");
  f->attribute_proto = defaults.attribute;
  f->n_attribute_proto = defaults.n_attribute;
  call(p, "x", "y");
  onnx_model *m = load_proto(p);
  onnx_part part;
  ASSERT_OK(onnx_part_find(a, m, 1, (const char *const[]){"y: F"}, &part));
  onnx_part_value in = {.name = "x", .value = weight_literal()}, out = {.name = "y", .value = weight_literal()};
  uint8_t *bytes;
  size_t size;
  ASSERT_OK(onnx_part_pack(a, m, &part, &in, &out, &bytes, &size));
  onnx_model *small = load(bytes, size);
  check_weights(small, small->proto->functions[0]->attribute_proto[0]->t);
}
END_TEST

START_TEST(a_large_file_is_not_written) {
  Onnx__ModelProto *p = chain();
  onnx_part part;
  uint8_t *bytes;
  size_t size = (size_t)65 << 20;
  Onnx__TensorProto *t = p->graph->initializer[0];
  t->dims[0] = 1;
  t->dims[1] = (int64_t)(size / 4);
  t->raw_data.data = arena_alloc(a, size);
  t->raw_data.len = size;
  onnx_model *m = load_proto(p);
  ASSERT_OK(onnx_part_find(a, m, 1, (const char *const[]){"bad: Add"}, &part));
  onnx_part_value in = {.name = "left", .value = weight_literal()}, out = {.name = "bad", .value = weight_literal()};
  status s = onnx_part_pack(a, m, &part, &in, &out, &bytes, &size);
  ck_assert_msg(s && strstr(status_message(s), "64 MiB"), "%s", s ? status_message(s) : "it is written");
  status_free(s);
}
END_TEST

/* --- onnx-xla verify --- */

typedef struct trial {
  const Onnx__ModelProto *proto;
  const char *folder;
  verify_report report;
} trial;

static compiler_model *verify(trial *t, const float *x) {
  const compiler_api *compiler;
  compiler_model *s;
  size_t size;
  const uint8_t *bytes = pack(a, t->proto, &size);
  const char *top = getenv("top_builddir");
  shape two_rows = weight_literal().shape;
  literal input = literal_make(two_rows, x);
  compile_request request = {.backend = arena_printf(a, "%s/tests/api/.libs/module_faulty_backend.so", top ? top : "."),
                             .inputs = (const shape *const[]){&two_rows},
                             .values = (const void *const[]){x}};
  request.options.threads = 1;
  compiler_verify_options o = {.inputs = &input, .folder = t->folder};
  ASSERT_OK(session_open_compiler(&compiler));
  ASSERT_OK(compiler->open(a, NULL, bytes, size, 0, NULL, &s));
  ASSERT_OK(compiler->verify(s, &request, &o, a, &t->report));
  return s;
}

static void remove_example(const verify_example *x) {
  for (uint32_t k = 0; k < x->n_inputs; k++) {
    ck_assert_int_eq(unlink(x->inputs[k]), 0);
  }
  ck_assert_int_eq(unlink(x->file), 0);
}

/* The part's input has the value that the reference evaluator computes there. */
static void check_input(const verify_example *x, const float *input) {
  literal l;
  ck_assert_uint_eq(x->n_inputs, 1);
  ck_assert_str_eq(x->names[0], "left");
  ASSERT_OK(npy_read(a, x->inputs[0], DTYPE_F32, &l));
  for (int k = 0; k < 600; k++) {
    float want = input[k] > 0 ? input[k] : 0;
    ck_assert_msg(((const float *)l.data)[k] == want, "element %d", k);
  }
}

static float *alternating(void) {
  float *x = ARENA_NEW_N(a, float, 600);
  for (int k = 0; k < 600; k++) {
    x[k] = (float)(k % 2 ? k : -k);
  }
  return x;
}

START_TEST(the_nodes_of_a_finding_are_written) {
  char folder[] = "part-XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(folder));
  trial t = {.proto = chain(), .folder = folder};
  const float *x = alternating();
  verify(&t, x);
  ck_assert_uint_eq(t.report.n_findings, 1);
  const verify_finding *f = &t.report.findings[0];
  ck_assert_msg(f->model.file, "%s", f->model_note);
  ck_assert_str_eq(f->model_note, "it differs there, too");
  onnx_model *m;
  ASSERT_OK(onnx_model_open(a, f->model.file, NULL, &m));
  ck_assert_str_eq(outputs_of(m, NULL), "bad");
  check_input(&f->model, x);
  remove_example(&f->module);
  remove_example(&f->model);
  ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* For a fault in a function that is called twice, no model is written, and the report says why. */
START_TEST(a_reason_stands_where_no_model_is_written) {
  Onnx__ModelProto *p = typed_model("x", "z", 2, 300);
  add_function(p);
  p->functions[0]->node[0]->op_type = arena_strdup(a, "Neg");
  p->functions[0]->node[0]->name = arena_strdup(a, "bad");
  call(p, "x", "y");
  call(p, "y", "z");
  char folder[] = "part-XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(folder));
  trial t = {.proto = p, .folder = folder};
  verify(&t, alternating());
  ck_assert_uint_eq(t.report.n_findings, 2);
  for (uint32_t k = 0; k < 2; k++) {
    const verify_finding *f = &t.report.findings[k];
    ck_assert_ptr_null(f->model.file);
    ck_assert_str_eq(f->model_note, "none is written: 2 nodes of the model are or contain 'bad: Neg'");
    remove_example(&f->module);
  }
  ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("part");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_set_timeout(c, 60);
  tcase_add_loop_test(c, nodes_are_closed_over_between, 0, N_FINDS);
  tcase_add_test(c, what_stands_inside_is_taken_with_what_is_around_it);
  tcase_add_test(c, what_is_not_known_is_refused);
  tcase_add_test(c, the_file_holds_what_it_needs);
  tcase_add_test(c, the_file_holds_the_defaults_of_functions);
  tcase_add_test(c, a_large_file_is_not_written);
  tcase_add_test(c, the_nodes_of_a_finding_are_written);
  tcase_add_test(c, a_reason_stands_where_no_model_is_written);
  return run_suite("part", c);
}
