/* check_model.c - tests the loading of models: files, versions, functions, names and the order of nodes. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frontend/operators/op_types.h"
#include "frontend/model/attributes.h"
#include "frontend/model/functions.h"
#include "tests/suite.h"
#include "tests/unit/frontend/build_model.h"

static arena *a;

static void setup(void) { a = arena_create(NULL); }

static void teardown(void) { arena_destroy(a); }

typedef struct load_call {
  const char *path;
  const void *bytes;
  size_t size;
  const onnx_load_options *options;
  onnx_model *out;
} load_call;

static status call_load(void *data) {
  load_call *c = data;
  return c->path ? onnx_model_open(a, c->path, c->options, &c->out)
                 : onnx_model_from_memory(a, c->bytes, c->size, NULL, c->options, &c->out);
}

static status load_bytes(const void *bytes, size_t size, onnx_model **out) {
  load_call c = {.bytes = bytes, .size = size};
  status s = guard_run(call_load, &c);
  *out = c.out;
  return s;
}

static status load(const Onnx__ModelProto *proto, onnx_model **out) {
  size_t size;
  uint8_t *bytes = pack(a, proto, &size);
  return load_bytes(bytes, size, out);
}

static onnx_model *load_good(const Onnx__ModelProto *proto) {
  onnx_model *m;
  status s = load(proto, &m);
  ck_assert_msg(!s, "%s", status_message(s));
  return m;
}

static void expect(status s, status_code code, const char *part) {
  ck_assert_msg(status_get_code(s) == code && strstr(status_message(s), part), "\"%s\" (%s) lacks \"%s\"",
                status_message(s), status_code_name(status_get_code(s)), part);
  status_free(s);
}

static void expect_bad(const Onnx__ModelProto *proto, const char *part) {
  onnx_model *m;
  expect(load(proto, &m), STATUS_INVALID_MODEL, part);
}

/* --- files --- */

static void expect_open(const char *path, status_code code, const char *part) {
  load_call c = {.path = path};
  expect(guard_run(call_load, &c), code, part);
}

/* Makes the file, opens it, and removes it. */
static void expect_file(const char *path, const void *bytes, size_t size, const char *part) {
  FILE *f = fopen(path, "wb");
  ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
  fclose(f);
  expect_open(path, STATUS_INVALID_FILE, part);
  unlink(path);
}

#define EXPECT_FILE(text, part) expect_file(path, text, sizeof(text) - 1, part)

START_TEST(files_that_are_none) {
  char folder[] = "check_model.XXXXXX", path[64];
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/m.onnx", folder);
  expect_open(path, STATUS_IO, "cannot be opened");
  expect_open("/dev/zero", STATUS_INVALID_ARGUMENT, "not a regular file");
  expect_open(folder, STATUS_INVALID_ARGUMENT, "is a folder");
  ck_assert_int_eq(mkfifo(path, 0600), 0);
  expect_open(path, STATUS_INVALID_ARGUMENT, "is a pipe");
  unlink(path);
  EXPECT_FILE("", "is empty");
  EXPECT_FILE("\x08", "ends inside a number");
  EXPECT_FILE("\x1f\x8b\x08\0\0\0\0\0", "gzip");
  EXPECT_FILE("PK\3\4aaaaaaaaaaa", "zip archive");
  EXPECT_FILE("\x18\0\0\0ORTM\0\0\0\0", ".ort");
  EXPECT_FILE("ir_version: 8\ngraph {\n}\n", "is text");
  EXPECT_FILE("version https://git-lfs.github.com/spec/v1\noid sha256:00", "Git LFS");
  /* A file of 4 GiB without data reads as zero bytes, which are tags with the invalid field number 0. */
  int fd = open(path, O_CREAT | O_WRONLY, 0600);
  ck_assert_int_eq(ftruncate(fd, (off_t)4 << 30), 0);
  close(fd);
  expect_open(path, STATUS_INVALID_FILE, "field number 0");
  unlink(path);
  ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

START_TEST(a_good_file) {
  char path[] = "check_model.XXXXXX";
  int fd = mkstemp(path);
  Onnx__ModelProto *p = new_model(a, "x", "y");
  graph_node(a, p->graph, "Relu", "x", "y");
  size_t size;
  uint8_t *bytes = pack(a, p, &size);
  ck_assert_int_eq(write(fd, bytes, size), (int)size);
  close(fd);
  load_call c = {.path = path};
  ck_assert_ptr_null(guard_run(call_load, &c));
  ck_assert_ptr_nonnull(c.out->source.folder);
  ck_assert_str_eq(c.out->graph->node[0]->op_type, "Relu");
  unlink(path);
}
END_TEST

/* --- versions --- */

START_TEST(versions) {
  Onnx__ModelProto *p = new_model(a, "x", "x");
  p->has_ir_version = 0;
  expect_bad(p, "ir_version is missing");
  p->has_ir_version = 1;
  p->ir_version = -1;
  expect_bad(p, "ir_version is not positive");
  p->ir_version = 99;
  onnx_model *m;
  expect(load(p, &m), STATUS_UNSUPPORTED, "IR version 99");
  p->ir_version = 8;
  p->opset_import[0]->version = 999;
  expect(load(p, &m), STATUS_UNSUPPORTED, "version 999 of ai.onnx is newer than");
  p->opset_import[0]->version = 0;
  expect_bad(p, "version 0 of ai.onnx");
  p->opset_import[0]->version = -3;
  expect_bad(p, "version -3");
  p->opset_import[0]->version = 17;
  add_opset(a, p, "ai.onnx", 17);
  m = load_good(p);
  ck_assert_int_eq(onnx_opset_version(&m->opsets, "ai.onnx"), 17);
  ck_assert_int_eq(onnx_opset_version(&m->opsets, "com.microsoft"), 1); /* ONNX Runtime has it in all models */
  ck_assert_int_eq(onnx_opset_version(&m->opsets, "ai.onnx.ml"), 0);
  p->opset_import[1]->version = 18;
  expect_bad(p, "version 17 and 18 of ai.onnx");
  p->n_opset_import = 0;
  expect_bad(p, "opset_import is missing");
  p->ir_version = 2;
  ck_assert_int_eq(onnx_opset_version(&load_good(p)->opsets, ""), 1);
  p->graph = NULL;
  expect_bad(p, "has no graph");
}
END_TEST

/* --- names --- */

START_TEST(names_and_rules) {
  Onnx__ModelProto *p = new_model(a, "x", "y");
  expect_bad(p, "the graph's output \"y\" is not defined");
  Onnx__NodeProto *n = graph_node(a, p->graph, "Add", "x,z", "y");
  n->name = "sum";
  expect_bad(p, "sum: Add: input \"z\" is not defined");
  n->input[1] = "";
  n->domain = "ai.onnx";
  onnx_model *m = load_good(p);
  ck_assert_str_eq(m->graph->node[0]->domain, "");
  n->domain = "com.other";
  expect_bad(p, "sum: com.other.Add: opset_import does not have its domain \"com.other\"");
  n->domain = "";
  n->op_type = "";
  expect_bad(p, "no operator type");
  n->op_type = "Add";
  n->output[0] = "x";
  expect_bad(p, "output \"x\" is already the name of an input");
  n->output[0] = "y";
  graph_node(a, p->graph, "Relu", "x", "y");
  expect_bad(p, "Relu that makes \"y\": output \"y\" is already the name of another output");
  p->graph->n_node = 1;
  add_attribute(a, n, "k");
  add_attribute(a, n, "k");
  expect_bad(p, "attribute \"k\" is given twice");
  for (int i = 0; i < 30; i++) {
    add_attribute(a, n, arena_printf(a, "k%d", i));
  }
  n->attribute[1]->name = "j";
  load_good(p);
  n->attribute[1]->name = "k29";
  expect_bad(p, "attribute \"k29\" is given twice");
  n->attribute[1]->name = "";
  expect_bad(p, "attribute has no name");
  n->attribute[1]->name = "j";
  n->attribute[0]->ref_attr_name = "outer";
  expect_bad(p, "is not in a function");
}
END_TEST

START_TEST(inputs_and_initializers) {
  Onnx__ModelProto *p = new_model(a, "x,w", "x");
  Onnx__TensorProto *w = new_tensor(a, "w", 1, 0, NULL);
  PB_ADD(a, p->graph->initializer, p->graph->n_initializer, w);
  onnx_model *m = load_good(p);
  ck_assert(onnx_model_input_is_required(m, m->graph->input[0]));
  ck_assert(!onnx_model_input_is_required(m, m->graph->input[1]));
  ck_assert(onnx_model_input_is_overridable(m, m->graph->input[1]));
  p->ir_version = 3;
  m = load_good(p);
  ck_assert(!onnx_model_input_is_overridable(m, m->graph->input[1]));
  PB_ADD(a, p->graph->initializer, p->graph->n_initializer, w);
  expect_bad(p, "initializer \"w\" is defined twice");
  p->graph->initializer[1] = new_tensor(a, "", 1, 0, NULL);
  expect_bad(p, "an initializer has no name");
  p->graph->n_initializer = 1;
  PB_ADD(a, p->graph->input, p->graph->n_input, new_value(a, "x"));
  expect_bad(p, "input \"x\" is defined twice");
  p->graph->input[2] = new_value(a, "");
  expect_bad(p, "an input has no name");
  p->graph->n_input = 2;
  PB_ADD(a, p->graph->output, p->graph->n_output, new_value(a, ""));
  expect_bad(p, "an output has no name");
  p->graph->n_output = 1;
  Onnx__SparseTensorProto *sparse = PB_NEW(a, Onnx__SparseTensorProto, ONNX__SPARSE_TENSOR_PROTO__INIT);
  PB_ADD(a, p->graph->sparse_initializer, p->graph->n_sparse_initializer, sparse);
  expect_bad(p, "an initializer has no name");
}
END_TEST

/* --- order --- */

/* The rows of onnx_ops.def are sorted, since onnx_op_find uses binary search. */
START_TEST(operators_in_order) {
  uint32_t n;
  const onnx_op_row *rows = onnx_op_rows(&n);
  for (uint32_t k = 0; k < n; k++) {
    ck_assert_msg(onnx_op_find(rows[k].domain, rows[k].name, rows[k].since) == &rows[k],
                  "onnx_ops.def: %s %d is not where its name belongs", rows[k].name, (int)rows[k].since);
  }
}
END_TEST

/* All versions of an operator have the same `host` column. */
START_TEST(versions_agree) {
  uint32_t n;
  const onnx_op_row *rows = onnx_op_rows(&n);
  for (uint32_t k = 1; k < n; k++) {
    bool same = strcmp(rows[k].name, rows[k - 1].name) == 0 && strcmp(rows[k].domain, rows[k - 1].domain) == 0;
    ck_assert_msg(!same || rows[k].host == rows[k - 1].host, "%s %d", rows[k].name, rows[k].since);
    ck_assert_msg(rows[k].host == onnx_host_no || onnx_op_is_supported(&rows[k]), "%s %d", rows[k].name, rows[k].since);
  }
}
END_TEST

/* Counts the inputs or outputs in a list of onnx_types.def, to compare it with the numbers in onnx_ops.def. */
static uint32_t count_listed(const char *list) {
  uint32_t n = *list != '\0';
  for (const char *at = list; *at; at++) {
    n += *at == ' ';
  }
  bool many = n && (list[strlen(list) - 1] == '.' || list[strlen(list) - 1] == '*');
  return many ? UINT32_MAX : n;
}

START_TEST(operators_with_types) {
  uint32_t n;
  const onnx_op_types *rows = onnx_op_types_rows(&n);
  for (uint32_t k = 0; k < n; k++) {
    const onnx_op_types *t = &rows[k];
    const onnx_op_row *op = onnx_op_find(t->domain, t->name, t->since);
    ck_assert_msg(op && op->since == t->since, "onnx_ops.def lacks %s %d", t->name, t->since);
    ck_assert_msg(onnx_op_types_of(op) == t, "onnx_types.def: %s %d is out of order", t->name, t->since);
    ck_assert_msg(count_listed(t->inputs) == op->max_inputs && count_listed(t->outputs) == op->max_outputs,
                  "%s %d: %s -> %s", t->name, t->since, t->inputs, t->outputs);
  }
}
END_TEST

START_TEST(order) {
  Onnx__ModelProto *p = new_model(a, "x", "d");
  graph_node(a, p->graph, "Neg", "c", "d");
  graph_node(a, p->graph, "Abs", "b", "c");
  graph_node(a, p->graph, "Relu", "x", "b");
  onnx_model *m = load_good(p);
  ck_assert_str_eq(m->graph->node[0]->op_type, "Relu");
  ck_assert_str_eq(m->graph->node[1]->op_type, "Abs");
  ck_assert_str_eq(m->graph->node[2]->op_type, "Neg");
  p->graph->node[2]->input[0] = "d";
  expect_bad(p, "a cycle of 3 nodes");
  p->graph->node[2]->input[0] = "b";
  expect_bad(p, "Relu that makes \"b\": input \"b\" depends on this node's own output: a cycle of 1 node,");
}
END_TEST

START_TEST(subgraphs) {
  Onnx__ModelProto *p = new_model(a, "x,c", "y");
  Onnx__NodeProto *branch = graph_node(a, p->graph, "If", "c", "y");
  branch->name = "if1";
  Onnx__GraphProto *g = new_graph(a, "", "z"), *h = new_graph(a, "", "x");
  graph_node(a, g, "Add", "x,late", "z");
  set_graph(a, branch, "then_branch", g);
  set_graph(a, branch, "else_branch", h);
  expect_bad(p, "if1: If: then_branch: Add that makes \"z\": input \"late\" is not defined");
  graph_node(a, p->graph, "Relu", "x", "late");
  onnx_model *m = load_good(p);
  ck_assert_str_eq(m->graph->node[0]->op_type, "Relu");
  ck_assert_str_eq(m->graph->node[1]->op_type, "If");
  p->graph->node[1]->input[0] = "y"; /* now node `late` and the If depend on each other */
  expect_bad(p, "a cycle of 2 nodes");
  p->graph->node[1]->input[0] = "z"; /* a name of a subgraph is not visible outside of it */
  expect_bad(p, "input \"z\" is not defined");
  p->graph->node[1]->input[0] = "x";
  h->output[0]->name = "z"; /* nor is it visible in the other branch */
  expect_bad(p, "if1: If: else_branch: the graph's output \"z\" is not defined");
}
END_TEST

START_TEST(shadowing) {
  Onnx__ModelProto *p = new_model(a, "c", "y");
  Onnx__NodeProto *branch = graph_node(a, p->graph, "If", "c", "y");
  Onnx__GraphProto *g = new_graph(a, "", "y");
  graph_node(a, g, "Relu", "c", "y");
  set_graph(a, branch, "then_branch", g);
  set_graph(a, branch, "else_branch", g);
  load_good(p);
}
END_TEST

/* Long chains of nodes load in linear time; otherwise the test case would exceed its time limit. */
START_TEST(long_chains) {
  enum { N = 200000 };
  for (int backwards = 0; backwards < 2; backwards++) {
    char in[16], out[16];
    snprintf(out, sizeof out, "v%d", N);
    Onnx__ModelProto *p = new_model(a, "v0", out);
    p->graph->node = ARENA_NEW_N(a, Onnx__NodeProto *, N);
    for (int i = 0; i < N; i++) {
      snprintf(in, sizeof in, "v%d", i);
      snprintf(out, sizeof out, "v%d", i + 1);
      Onnx__NodeProto **list = NULL;
      size_t n = 0;
      p->graph->node[backwards ? N - 1 - i : i] = add_node(a, &list, &n, "Relu", in, out);
    }
    p->graph->n_node = N;
    onnx_model *m = load_good(p);
    ck_assert_str_eq(m->graph->node[N - 1]->input[0], in);
  }
}
END_TEST

/* --- functions --- */

static Onnx__FunctionProto *add_function(Onnx__ModelProto *p, const char *name, const char *inputs,
                                         const char *outputs) {
  Onnx__FunctionProto *f = PB_NEW(a, Onnx__FunctionProto, ONNX__FUNCTION_PROTO__INIT);
  f->domain = "my";
  f->name = arena_strdup(a, name);
  f->input = names(a, inputs, &f->n_input);
  f->output = names(a, outputs, &f->n_output);
  PB_ADD(a, p->functions, p->n_functions, f);
  return f;
}

static Onnx__NodeProto *function_node(Onnx__FunctionProto *f, const char *domain, const char *type, const char *inputs,
                                      const char *outputs) {
  Onnx__NodeProto *node = add_node(a, &f->node, &f->n_node, type, inputs, outputs);
  node->domain = arena_strdup(a, domain);
  return node;
}

START_TEST(functions) {
  Onnx__ModelProto *p = new_model(a, "x", "y");
  add_opset(a, p, "my", 1);
  graph_node(a, p->graph, "F", "x", "y")->domain = "my";
  Onnx__FunctionProto *f = add_function(p, "F", "a", "b");
  Onnx__NodeProto *relu = function_node(f, "", "Relu", "a", "b");
  onnx_model *m = load_good(p);
  const onnx_function *found = onnx_model_callee(m, m->graph->node[0]);
  ck_assert_ptr_nonnull(found);
  ck_assert_str_eq(found->proto->name, "F");
  ck_assert_int_eq(onnx_opset_version(&found->opsets, ""), 21);
  ck_assert_uint_eq(m->expanded_nodes, 2);
  ck_assert_ptr_null(onnx_model_function(m, "my", "F", "other"));
  ck_assert_ptr_null(onnx_model_function(m, "", "F", ""));

  relu->input[0] = "x"; /* a function does not see its caller's values */
  expect_bad(p, "function my.F: Relu that makes \"b\": input \"x\" is not defined");
  relu->input[0] = "a";
  f->output[0] = "c";
  expect_bad(p, "function my.F: the function's output \"c\" is not defined");
  f->output[0] = "b";
  add_function(p, "F", "a", "a");
  expect_bad(p, "function my.F is defined twice");
  p->functions[1]->overload = "two";
  ck_assert_ptr_nonnull(onnx_model_function(load_good(p), "my", "F", "two"));
  p->functions[1]->name = "";
  expect_bad(p, "a function has no name");
}
END_TEST

START_TEST(recursion) {
  Onnx__ModelProto *p = new_model(a, "x", "x");
  add_opset(a, p, "my", 1);
  Onnx__FunctionProto *f = add_function(p, "F", "a", "b"), *g = add_function(p, "G", "a", "b");
  function_node(f, "my", "F", "a", "b");
  function_node(g, "", "Relu", "a", "b");
  expect_bad(p, "function my.F calls itself");
  f->node[0]->op_type = "G";
  load_good(p);
  g->node[0]->op_type = "F";
  g->node[0]->domain = "my";
  expect_bad(p, "function my.F calls itself by way of function my.G");
  /* A call in the branch of an If is recursion as well. */
  g->node[0]->op_type = "If";
  g->node[0]->domain = "";
  Onnx__GraphProto *branch = new_graph(a, "", "c");
  graph_node(a, branch, "F", "a", "c")->domain = "my";
  set_graph(a, g->node[0], "then_branch", branch);
  expect_bad(p, "function my.F calls itself by way of function my.G");
}
END_TEST

START_TEST(billion_laughs) {
  Onnx__ModelProto *p = new_model(a, "x", "y");
  add_opset(a, p, "my", 1);
  graph_node(a, p->graph, "F0", "x", "y")->domain = "my";
  for (int i = 0; i < 80; i++) {
    Onnx__FunctionProto *f = add_function(p, arena_printf(a, "F%d", i), "a", "c");
    const char *callee = arena_printf(a, "F%d", i + 1);
    function_node(f, i < 79 ? "my" : "", i < 79 ? callee : "Relu", "a", "b");
    function_node(f, i < 79 ? "my" : "", i < 79 ? callee : "Relu", "b", "c");
  }
  onnx_model *m;
  expect(load(p, &m), STATUS_RESOURCE, "with its functions inlined, the model has");
}
END_TEST

START_TEST(bound_attributes) {
  Onnx__ModelProto *p = new_model(a, "x", "y");
  add_opset(a, p, "my", 1);
  Onnx__NodeProto *call = graph_node(a, p->graph, "F", "x", "y");
  call->domain = "my";
  Onnx__FunctionProto *f = add_function(p, "F", "a", "b");
  Onnx__NodeProto *node = function_node(f, "", "Softmax", "a", "b");
  Onnx__AttributeProto *t = add_attribute(a, node, "axis");
  t->ref_attr_name = "ax";
  t->has_type = 1;
  t->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
  expect_bad(p, "refers to \"ax\", which the function does not have");
  f->attribute = names(a, "ax", &f->n_attribute);

  const Onnx__NodeProto *bound;
  int64_t axis;
  onnx_model *m = load_good(p);
  const onnx_function *found = onnx_model_callee(m, m->graph->node[0]);
  ck_assert_ptr_null(onnx_node_bind(a, found, m->graph->node[0], found->proto->node[0], &bound));
  ck_assert_ptr_null(onnx_attr_int(bound, "axis", -7, &axis));
  ck_assert_int_eq(axis, -7); /* the call does not give the attribute, so the bound node does not have it */
  expect(onnx_attr_int(found->proto->node[0], "axis", 0, &axis), STATUS_INVALID_MODEL, "refers to");

  Onnx__AttributeProto *given = add_attribute(a, call, "ax");
  given->has_i = 1;
  given->i = 3;
  m = load_good(p);
  found = onnx_model_callee(m, m->graph->node[0]);
  ck_assert_ptr_null(onnx_node_bind(a, found, m->graph->node[0], found->proto->node[0], &bound));
  ck_assert_ptr_null(onnx_attr_int(bound, "axis", -7, &axis));
  ck_assert_int_eq(axis, 3);

  given->has_type = 1;
  given->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
  m = load_good(p);
  found = onnx_model_callee(m, m->graph->node[0]);
  expect(onnx_node_bind(a, found, m->graph->node[0], found->proto->node[0], &bound), STATUS_INVALID_MODEL,
         "another type");
}
END_TEST

/* --- attributes --- */

START_TEST(attributes) {
  Onnx__NodeProto **list = NULL;
  size_t n = 0, count;
  Onnx__NodeProto *node = add_node(a, &list, &n, "Conv", "x", "y");
  node->name = "conv1";
  Onnx__AttributeProto *t = add_attribute(a, node, "group");
  t->has_i = 1;
  t->i = 4;
  t = add_attribute(a, node, "mode");
  t->has_s = 1;
  t->s = (ProtobufCBinaryData){5, (uint8_t *)"cubic"};
  t = add_attribute(a, node, "bad");
  t->has_s = 1;
  t->s = (ProtobufCBinaryData){3, (uint8_t *)"a\0b"};
  t = add_attribute(a, node, "pads");
  t->n_ints = 2;
  t->ints = (int64_t[]){1, 2};
  t = add_attribute(a, node, "empty");

  int64_t i;
  float f;
  bool b;
  const char *s;
  const int64_t *ints;
  const char *const *strings;
  const Onnx__GraphProto *g;
  ck_assert_ptr_null(onnx_attr_int(node, "group", 1, &i));
  ck_assert_int_eq(i, 4);
  ck_assert_ptr_null(onnx_attr_bool(node, "group", false, &b));
  ck_assert(b);
  ck_assert_ptr_null(onnx_attr_float(node, "alpha", 0.5f, &f));
  ck_assert(f == 0.5f);
  ck_assert_ptr_null(onnx_attr_string(a, node, "mode", "linear", &s));
  ck_assert_str_eq(s, "cubic");
  ck_assert_ptr_null(onnx_attr_ints(node, "pads", &ints, &count));
  ck_assert_uint_eq(count, 2);
  ck_assert_ptr_null(onnx_attr_strings(a, node, "empty", &strings, &count));
  ck_assert_uint_eq(count, 0);
  expect(onnx_attr_int_in(node, "group", 1, 1, 3, &i), STATUS_INVALID_MODEL, "attribute group is 4, outside [1, 3]");
  expect(onnx_attr_float(node, "group", 1, &f), STATUS_INVALID_MODEL, "attribute group is int, not float");
  expect(onnx_attr_string(a, node, "bad", "", &s), STATUS_INVALID_MODEL, "contains NUL");
  expect(onnx_attr_graph(node, "body", &g), STATUS_INVALID_MODEL, "attribute body is missing");
}
END_TEST

/* --- damage --- */

static Onnx__ModelProto *sample(void) {
  Onnx__ModelProto *p = new_model(a, "x,c", "y");
  add_opset(a, p, "my", 1);
  Onnx__FunctionProto *f = add_function(p, "F", "a", "b");
  function_node(f, "", "Relu", "a", "b");
  graph_node(a, p->graph, "F", "x", "t")->domain = "my";
  Onnx__NodeProto *branch = graph_node(a, p->graph, "If", "c", "y");
  Onnx__GraphProto *g = new_graph(a, "", "z");
  graph_node(a, g, "Add", "t,w", "z");
  set_graph(a, branch, "then_branch", g);
  Onnx__TensorProto *w = new_tensor(a, "w", 1, 1, (int64_t[]){2});
  set_raw(a, w, "abcdefgh", 8);
  PB_ADD(a, p->graph->initializer, p->graph->n_initializer, w);
  return p;
}

START_TEST(damaged) {
  size_t size;
  uint8_t *bytes = pack(a, sample(), &size);
  onnx_model *m;
  ck_assert_ptr_null(load_bytes(bytes, size, &m));
  for (size_t n = 0; n < size; n++) {
    uint8_t *part = malloc(n ? n : 1);
    memcpy(part, bytes, n);
    status_free(load_bytes(part, n, &m));
    free(part);
  }
  uint32_t state = 1;
  for (int i = 0; i < 1000; i++) {
    uint8_t *copy = malloc(size);
    memcpy(copy, bytes, size);
    for (int k = 0; k <= i % 3; k++) {
      state = state * 1664525u + 1013904223u;
      copy[(state >> 8) % size] ^= (uint8_t)(1 << (state >> 4) % 8);
    }
    status s = load_bytes(copy, size, &m);
    ck_assert(status_get_code(s) != STATUS_INTERNAL);
    status_free(s);
    free(copy);
  }
}
END_TEST

int main(void) {
  TCase *tests = tcase_create("model");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_set_timeout(tests, 60);
  tcase_add_test(tests, files_that_are_none);
  tcase_add_test(tests, a_good_file);
  tcase_add_test(tests, versions);
  tcase_add_test(tests, names_and_rules);
  tcase_add_test(tests, inputs_and_initializers);
  tcase_add_test(tests, operators_in_order);
  tcase_add_test(tests, versions_agree);
  tcase_add_test(tests, operators_with_types);
  tcase_add_test(tests, order);
  tcase_add_test(tests, subgraphs);
  tcase_add_test(tests, shadowing);
  tcase_add_test(tests, long_chains);
  tcase_add_test(tests, functions);
  tcase_add_test(tests, recursion);
  tcase_add_test(tests, billion_laughs);
  tcase_add_test(tests, bound_attributes);
  tcase_add_test(tests, attributes);
  tcase_add_test(tests, damaged);
  return run_suite("model", tests);
}
