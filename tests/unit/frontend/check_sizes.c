/* check_sizes.c - tests that operators with a rule in sizes.c pass dynamic dimensions on.  A model in which such an
 * operator reads the result of a NonZero is imported as one module, not in segments, and computes the same as with an
 * array that has the size from the start. */
#include "frontend/import/importer.h"
#include "frontend/import/sizes.h"
#include "tests/suite.h"
#include "tests/unit/frontend/node_case.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* A case for an operator.  Its inputs may be the model's input x, or values that the model computes from it: i, the
 * positions of the elements that are not 0, s64[1,n]; `column`, i as a column; `condition`, i as pred; v, i in the type
 * `type`. */
typedef struct operation {
  const char *name;
  int from;                               /* the first opset to which the case applies; the last such row is used */
  const char *type, *attributes, *inputs; /* x, i, column, condition, v, or "=" and an array */
} operation;

static const operation operations[] = {
    {"And", 7, "pred", "", "v v"},
    {"BitCast", 26, "f32", "to=12", "v"},
    {"BitShift", 11, "u32", "direction=LEFT", "v v"},
    {"BitwiseAnd", 18, "s32", "", "v v"},
    {"BitwiseNot", 18, "s32", "", "v"},
    {"BitwiseOr", 18, "s32", "", "v v"},
    {"BitwiseXor", 18, "s32", "", "v v"},
    {"Cast", 9, "f32", "to=11", "v"},
    {"CastLike", 15, "f32", "", "v =f64[]:1"},
    {"Clip", 1, "f32", "min=2.0 max=3.0", "v"},
    {"Clip", 11, "f32", "", "v =f32[]:2 =f32[]:3"},
    {"Concat", 4, "f32", "axis=0", "v v"},
    {"DequantizeLinear", 10, "u8", "", "v =f32[]:0.5 =u8[]:3"},
    {"Equal", 7, "s64", "", "v v"},
    {"Gather", 1, "f32", "axis=0", "v =s64[2]:0,0"},
    {"GatherND", 11, "f32", "", "x column"},
    {"Mod", 10, "f32", "fmod=1", "v v"},
    {"Not", 1, "pred", "", "v"},
    {"Or", 7, "pred", "", "v v"},
    {"PRelu", 7, "f32", "", "v =f32[1]:0.5"},
    {"QuantizeLinear", 10, "f32", "", "v =f32[]:0.5 =u8[]:3"},
    {"Reshape", 5, "f32", "", "v =s64[2]:1,-1"},
    {"Scale", 1, "f32", "scale=2.0", "v"},
    {"Slice", 10, "f32", "", "v =s64[1]:0 =s64[1]:1 =s64[1]:0"},
    {"Squeeze", 1, "f32", "axes=[0]", "v"},
    {"Squeeze", 13, "f32", "", "v =s64[1]:0"},
    {"Unsqueeze", 1, "f32", "axes=[0]", "v"},
    {"Unsqueeze", 13, "f32", "", "v =s64[1]:0"},
    {"Where", 9, "f32", "", "condition v v"},
    {"Xor", 7, "pred", "", "v v"},
};

/* Returns the case for an operator.  Without a row in the table, the type is f32, and the number of inputs follows from
 * the rule. */
static operation find(const onnx_op_row *row, int opset) {
  operation found = {row->name, row->since, "f32", "", row->sizes == onnx_sizes_broadcast ? "v v" : "v"};
  for (size_t k = 0; k < sizeof operations / sizeof *operations; k++) {
    found = strcmp(operations[k].name, row->name) == 0 && operations[k].from <= opset ? operations[k] : found;
  }
  return found;
}

static void add_cast(Onnx__GraphProto *g, const char *to, const char *name) {
  shape s;
  const char *text = arena_printf(memory, "%s[]", to);
  ck_assert_ptr_null(shape_parse(NULL, &text, &s));
  case_attributes(memory, graph_node(memory, g, "Cast", "i", name),
                  arena_printf(memory, "to=%d", dtype_get_info((dtype)s.type)->onnx));
}

static void add_inputs(Onnx__GraphProto *g, Onnx__NodeProto *node, const char *text) {
  for (int k = 0; *text; k++, text += strspn(text, " ")) {
    char *name = arena_strndup(memory, text, strcspn(text, " "));
    if (*text++ == '=') {
      literal l = case_literal(memory, &text);
      name = arena_printf(memory, "constant%d", k);
      PB_ADD(memory, g->initializer, g->n_initializer, case_tensor(memory, name, &l));
    }
    PB_ADD(memory, node->input, node->n_input, name);
    text += strcspn(text, " ");
  }
}

typedef struct trial {
  const char *domain;
  const operation *o;
  int opset;
  bool open; /* whether the size depends on data */
  literal result;
} trial;

/* Adds the function own.Columns, which concatenates two transposed matrices by ONNX's Concat of opset 3 without the
 * attribute axis.  That opset has no operator whose sizes depend on data, but it may be the opset of a function. */
static void add_columns(Onnx__ModelProto *m) {
  Onnx__FunctionProto *f = PB_NEW(memory, Onnx__FunctionProto, ONNX__FUNCTION_PROTO__INIT);
  Onnx__OperatorSetIdProto *o = PB_NEW(memory, Onnx__OperatorSetIdProto, ONNX__OPERATOR_SET_ID_PROTO__INIT);
  f->domain = arena_strdup(memory, "own");
  f->name = arena_strdup(memory, "Columns");
  f->input = names(memory, "a,b", &f->n_input);
  f->output = names(memory, "c", &f->n_output);
  add_node(memory, &f->node, &f->n_node, "Transpose", "a", "p");
  add_node(memory, &f->node, &f->n_node, "Transpose", "b", "q");
  add_node(memory, &f->node, &f->n_node, "Concat", "p,q", "c");
  o->domain = arena_strdup(memory, "");
  o->has_version = 1;
  o->version = 3;
  PB_ADD(memory, f->opset_import, f->n_opset_import, o);
  PB_ADD(memory, m->functions, m->n_functions, f);
}

static Onnx__ModelProto *model_of(const trial *t, const literal *x) {
  const char *places = "s64[1,3]:1,3,4";
  Onnx__ModelProto *m = new_model(memory, "", "y");
  Onnx__GraphProto *g = m->graph;
  PB_ADD(memory, g->input, g->n_input, case_input(memory, "x", x, false));
  if (t->open) {
    graph_node(memory, g, "NonZero", "x", "i");
  } else {
    literal i = case_literal(memory, &places);
    PB_ADD(memory, g->initializer, g->n_initializer, case_tensor(memory, "i", &i));
  }
  graph_node(memory, g, "Transpose", "i", "column");
  add_cast(g, "pred", "condition");
  add_cast(g, t->o->type, "v");
  Onnx__NodeProto *node = domain_node(memory, m, t->domain, t->opset, t->o->name, "y");
  case_attributes(memory, node, t->o->attributes);
  add_inputs(g, node, t->o->inputs);
  if (strcmp(t->domain, "own") == 0) {
    add_columns(m);
  }
  return m;
}

static status compute(void *data) {
  trial *t = data;
  const char *text = "f32[6]:0,5,0,-2,7,0";
  literal x = case_literal(memory, &text);
  onnx_model *m;
  hlo_module *h;
  size_t size;
  bool whole;
  uint8_t *bytes = pack(memory, model_of(t, &x), &size);
  TRY(onnx_model_from_memory(memory, bytes, size, NULL, NULL, &m));
  onnx_input_shape input = {.name = "x", .shape = x.shape};
  bool wanted = false;
  onnx_import_options options = {.inputs = &input, .n_inputs = 1, .wanted = &wanted, .eval = ref_fold};
  TRY(onnx_import(memory, m, &options, &h, &whole));
  CHECK_THAT(whole, STATUS_UNSUPPORTED, "the model is in pieces");
  literal *results = ARENA_NEW_N(memory, literal, h->entry->n_roots);
  TRY(ref_eval_computation(h->entry, &x, memory, results));
  case_cut(h, results);
  t->result = results[0];
  return NULL;
}

static void check(const char *domain, const operation *o, int opset) {
  trial closed = {.domain = domain, .o = o, .opset = opset}, open = closed;
  open.open = true;
  status s = guard_run(compute, &open);
  ck_assert_msg(!s, "%s-%d: %s", o->name, opset, status_message(s));
  s = guard_run(compute, &closed);
  ck_assert_msg(!s, "%s-%d, with a constant size: %s", o->name, opset, status_message(s));
  ck_assert_msg(literal_equal(&open.result, &closed.result),
                "%s-%d: %s with an open dimension, %s without; or other numbers", o->name, opset,
                SHAPE_STR(NULL, &open.result.shape), SHAPE_STR(NULL, &closed.result.shape));
}

/* Tests each row of onnx_ops.def that has a rule, in the opsets that have NonZero. */
START_TEST(rules) {
  enum { FIRST = 9, LAST = 28 };
  uint32_t n, checked = 0;
  const onnx_op_row *rows = onnx_op_rows(&n);
  for (uint32_t k = 0; k < n; k++) {
    int opset = *rows[k].domain || rows[k].since > FIRST ? rows[k].since : FIRST;
    if (rows[k].sizes != onnx_sizes_none && onnx_op_find(rows[k].domain, rows[k].name, opset) == &rows[k] &&
        opset <= LAST) {
      operation o = find(&rows[k], opset);
      check(rows[k].domain, &o, opset);
      checked++;
    }
  }
  ck_assert_uint_gt(checked, 150);
}
END_TEST

/* Before opset 4, Concat without an axis concatenates along dimension 1; here dimension 0 is dynamic. */
START_TEST(concat_without_an_axis) { check("own", &(operation){"Columns", 1, "f32", "", "v v"}, 1); }
END_TEST

/* All rows of elementwise importers have a rule. */
START_TEST(elementwise_operators) {
  onnx_import_fn *const one[] = {onnx_import_unary,  onnx_import_activation, onnx_import_erf,  onnx_import_gelu,
                                 onnx_import_is_inf, onnx_import_is_nan,     onnx_import_cast, onnx_import_cast_like,
                                 onnx_import_clip,   onnx_import_reciprocal};
  onnx_import_fn *const several[] = {onnx_import_binary, onnx_import_compare,  onnx_import_variadic,
                                     onnx_import_where,  onnx_import_pow,      onnx_import_mod,
                                     onnx_import_prelu,  onnx_import_bit_shift};
  uint32_t n;
  const onnx_op_row *rows = onnx_op_rows(&n);
  for (uint32_t k = 0; k < n; k++) {
    for (size_t j = 0; j < sizeof one / sizeof *one; j++) {
      ck_assert_msg(rows[k].importer != one[j] || rows[k].sizes == onnx_sizes_unary, "%s %d", rows[k].name,
                    rows[k].since);
    }
    /* Before opset 7, shapes are not broadcast as in numpy. */
    for (size_t j = 0; j < sizeof several / sizeof *several && rows[k].since >= 7; j++) {
      ck_assert_msg(rows[k].importer != several[j] || rows[k].sizes == onnx_sizes_broadcast, "%s %d", rows[k].name,
                    rows[k].since);
    }
  }
}
END_TEST

int main(void) {
  TCase *c = tcase_create("sizes");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_test(c, rules);
  tcase_add_test(c, concat_without_an_axis);
  tcase_add_test(c, elementwise_operators);
  tcase_set_timeout(c, 60);
  return run_suite("sizes", c);
}
