/* check_findings.c - tests imports that list all nodes that cannot be imported instead of failing at the first one. */
#include <check.h>

#include "backend_ref/eval.h"
#include "frontend/import/import.h"
#include "tests/suite.h"
#include "tests/unit/frontend/build_model.h"

static arena *a;

static void setup(void) { a = arena_create(NULL); }
static void teardown(void) { arena_destroy(a); }

/* Gives an input of the graph the type f32[2,3]. */
static void set_type(Onnx__ValueInfoProto *v) {
  v->type = PB_NEW(a, Onnx__TypeProto, ONNX__TYPE_PROTO__INIT);
  v->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  Onnx__TypeProto__Tensor *t = v->type->tensor_type =
      PB_NEW(a, Onnx__TypeProto__Tensor, ONNX__TYPE_PROTO__TENSOR__INIT);
  t->has_elem_type = 1;
  t->elem_type = dtype_get_info(DTYPE_F32)->onnx;
  t->shape = PB_NEW(a, Onnx__TensorShapeProto, ONNX__TENSOR_SHAPE_PROTO__INIT);
  for (int64_t k = 2; k <= 3; k++) {
    Onnx__TensorShapeProto__Dimension *d =
        PB_NEW(a, Onnx__TensorShapeProto__Dimension, ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT);
    d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    d->dim_value = k;
    PB_ADD(a, t->shape->dim, t->shape->n_dim, d);
  }
}

static const char *deferred; /* why the import that findings_of made is not complete, or NULL */

/* Returns the findings of an import of a model whose input x is f32[2,3]; the shapes of other inputs are not given.
 * `subject` is 0, or the subject of the error with which the import must fail. */
static onnx_findings findings_of(Onnx__ModelProto *p, status_code subject) {
  onnx_findings found = {0};
  bool complete = false;
  onnx_model *m;
  hlo_module *h;
  size_t size;
  for (size_t k = 0; k < p->graph->n_input; k++) {
    set_type(p->graph->input[k]);
  }
  uint8_t *bytes = pack(a, p, &size);
  status s = onnx_model_from_memory(a, bytes, size, NULL, NULL, &m);
  ck_assert_msg(!s, "%s", status_message(s));
  onnx_input_shape x = {.name = "x", .shape = shape_make(DTYPE_F32, 2, (dim[]){2, 3})};
  onnx_import_options o = {.inputs = &x, .n_inputs = 1, .findings = &found, .deferred = &deferred, .eval = ref_fold};
  s = onnx_import(a, m, &o, &h, &complete);
  ck_assert_msg(!s == !subject && (!s || status_get_subject(s) == subject), "%s", status_message(s));
  ck_assert(!complete);
  status_free(s);
  return found;
}

static void expect(const onnx_findings *found, uint32_t n, const char *const *parts) {
  for (uint32_t k = 0; k < found->n && k < n; k++) {
    ck_assert_msg(strstr(found->items[k].text, parts[k]), "\"%s\" lacks \"%s\"", found->items[k].text, parts[k]);
  }
  ck_assert_uint_eq(found->n, n);
}

START_TEST(test_all_of_a_graph) {
  static const char *const parts[] = {"MatMul that makes \"bad1\": A is", "Nope that makes \"bad2\"",
                                      "Gemm that makes \"bad3\": "};
  Onnx__ModelProto *p = new_model(a, "x,other", "behind2,fine");
  graph_node(a, p->graph, "MatMul", "x,x", "bad1");
  graph_node(a, p->graph, "Relu", "bad1", "behind1");
  graph_node(a, p->graph, "Nope", "x", "bad2");
  graph_node(a, p->graph, "Gemm", "x,x", "bad3");
  graph_node(a, p->graph, "Add", "behind1,bad3", "behind2");
  graph_node(a, p->graph, "Neg", "other", "of_other");
  graph_node(a, p->graph, "Relu", "x", "fine");
  onnx_findings found = findings_of(p, 0);
  expect(&found, 3, parts);
  ck_assert_int_eq(found.items[1].subject, STATUS_ABOUT_OPERATOR);
  ck_assert_ptr_null(deferred);
}
END_TEST

/* Adds a function my.F with the input a and the output b, without nodes, and a call of it that defines y. */
static Onnx__FunctionProto *add_function(Onnx__ModelProto *p) {
  add_opset(a, p, "my", 1);
  Onnx__FunctionProto *f = PB_NEW(a, Onnx__FunctionProto, ONNX__FUNCTION_PROTO__INIT);
  f->domain = "my";
  f->name = "F";
  f->input = names(a, "a", &f->n_input);
  f->output = names(a, "b", &f->n_output);
  PB_ADD(a, f->opset_import, f->n_opset_import, p->opset_import[0]);
  PB_ADD(a, p->functions, p->n_functions, f);
  graph_node(a, p->graph, "F", "x", "y")->domain = "my";
  return f;
}

START_TEST(test_all_of_a_function) {
  static const char *const parts[] = {"my.F that makes \"y\": MatMul that makes \"bad\": ",
                                      "my.F that makes \"y\": Gemm that makes \"b\": "};
  Onnx__ModelProto *p = new_model(a, "x", "behind");
  Onnx__FunctionProto *f = add_function(p);
  add_node(a, &f->node, &f->n_node, "MatMul", "a,a", "bad");
  add_node(a, &f->node, &f->n_node, "Relu", "bad", "behind");
  add_node(a, &f->node, &f->n_node, "Gemm", "a,a", "b");
  graph_node(a, p->graph, "Relu", "y", "behind");
  onnx_findings found = findings_of(p, 0);
  expect(&found, 2, parts);
}
END_TEST

/* All nodes of a function's body that need sizes are deferred, not only the first one. */
START_TEST(test_sizes_in_a_function) {
  Onnx__ModelProto *p = new_model(a, "x", "y");
  Onnx__FunctionProto *f = add_function(p);
  add_node(a, &f->node, &f->n_node, "NonZero", "a", "nz");
  add_node(a, &f->node, &f->n_node, "ReduceSum", "nz", "s");
  add_node(a, &f->node, &f->n_node, "ReduceSum", "nz", "t");
  add_node(a, &f->node, &f->n_node, "Add", "s,t", "b");
  onnx_findings found = findings_of(p, 0);
  expect(&found, 0, NULL);
  ck_assert_ptr_nonnull(strstr(deferred, "ReduceSum that makes \"s\": "));
}
END_TEST

/* Without findings, the first node that is not a part of the module is named, and whose size it lacks. */
START_TEST(test_why_nodes_are_deferred) {
  Onnx__ModelProto *p = new_model(a, "x", "s");
  onnx_model *m;
  hlo_module *h;
  bool complete = true;
  size_t size;
  graph_node(a, p->graph, "NonZero", "x", "nz");
  graph_node(a, p->graph, "ReduceSum", "nz", "s");
  set_type(p->graph->input[0]);
  uint8_t *bytes = pack(a, p, &size);
  ASSERT_OK(onnx_model_from_memory(a, bytes, size, NULL, NULL, &m));
  ASSERT_OK(onnx_import(a, m, &(onnx_import_options){.deferred = &deferred, .eval = ref_fold}, &h, &complete));
  ck_assert(!complete);
  ck_assert_str_eq(deferred, "ReduceSum that makes \"s\": the size of input 'nz' depends on data");
}
END_TEST

/* If sizes depend on the contents of inputs, the import fails as it does when no findings are asked for, but
 * it lists the findings up to there. */
START_TEST(test_wanted_contents) {
  static const char *const parts[] = {"MatMul that makes \"bad\": ", "Gemm that makes \"worse\": "};
  Onnx__ModelProto *p = new_model(a, "x", "y");
  graph_node(a, p->graph, "MatMul", "x,x", "bad");
  graph_node(a, p->graph, "ArgMax", "x", "rows");
  graph_node(a, p->graph, "Squeeze", "rows", "row");
  graph_node(a, p->graph, "Reshape", "x,row", "y");
  graph_node(a, p->graph, "Gemm", "x,x", "worse");
  onnx_findings found = findings_of(p, STATUS_ABOUT_VALUE);
  expect(&found, 2, parts);
}
END_TEST

/* Adds a node c to a list: LeakyRelu with alpha as an integer. */
static Onnx__AttributeProto *add_leaky_relu(Onnx__NodeProto ***nodes, size_t *n, const char *in, const char *out) {
  Onnx__NodeProto *node = add_node(a, nodes, n, "LeakyRelu", in, out);
  node->name = "c";
  Onnx__AttributeProto *alpha = PB_NEW(a, Onnx__AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT);
  alpha->name = "alpha";
  alpha->has_type = 1;
  alpha->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
  alpha->has_i = 1;
  alpha->i = 1;
  PB_ADD(a, node->attribute, node->n_attribute, alpha);
  return alpha;
}

/* A message about an attribute names its node once. */
START_TEST(test_node_is_named_once) {
  Onnx__ModelProto *p = new_model(a, "x", "y,z");
  Onnx__FunctionProto *f = add_function(p);
  Onnx__AttributeProto *reference = add_leaky_relu(&f->node, &f->n_node, "a", "b");
  reference->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
  reference->has_i = 0;
  reference->ref_attr_name = "slope";
  f->attribute = names(a, "slope", &f->n_attribute);
  Onnx__NodeProto *call = p->graph->node[0];
  PB_ADD(a, call->attribute, call->n_attribute, add_leaky_relu(&p->graph->node, &p->graph->n_node, "x", "z"));
  call->attribute[0] = arena_memdup(a, call->attribute[0], sizeof *call->attribute[0]);
  call->attribute[0]->name = "slope";
  onnx_findings found = findings_of(p, 0);
  ck_assert_uint_eq(found.n, 2);
  ck_assert_str_eq(found.items[0].text,
                   "my.F that makes \"y\": c: LeakyRelu: attribute alpha refers to slope, which has another type");
  ck_assert_str_eq(found.items[1].text, "c: LeakyRelu: attribute alpha is int, not float");
}
END_TEST

int main(void) {
  TCase *t = tcase_create("all");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, test_all_of_a_graph);
  tcase_add_test(t, test_all_of_a_function);
  tcase_add_test(t, test_sizes_in_a_function);
  tcase_add_test(t, test_why_nodes_are_deferred);
  tcase_add_test(t, test_wanted_contents);
  tcase_add_test(t, test_node_is_named_once);
  return run_suite("findings", t);
}
