/* check_values.c - sequences, maps and optionals as inputs and outputs. */
#include <string.h>

#include "api_client.h"

/* Adds an input or output that is a sequence of tensors of f32, an optional tensor, or an optional sequence. */
static void add_list(message *graph, unsigned field, const char *name, bool optional, bool sequence) {
  enum { TENSOR = 1, SEQUENCE = 4, OPTIONAL = 9 }; /* the fields of TypeProto */
  message tensor = {.n = 0}, type = {.n = 0}, value = {.n = 0};
  put_int(&tensor, 1, OXLA_FLOAT);
  put_message(&type, TENSOR, &tensor);
  for (int k = 0; k < 2; k++) {
    if (k ? optional : sequence) {
      message inner = {.n = 0}, around = {.n = 0};
      put_message(&inner, 1, &type);
      put_message(&around, k ? OPTIONAL : SEQUENCE, &inner);
      type = around;
    }
  }
  put_text(&value, 1, name);
  put_message(&value, 2, &type);
  put_message(graph, field, &value);
}

/* ys = SequenceInsert(xs, t), n = SequenceLength(xs), has = OptionalHasElement(o), p = o, qs = os. */
static message lists_model(void) {
  message g = {.n = 0};
  add_list(&g, GRAPH_INPUT, "xs", false, true);
  add_value(&g, GRAPH_INPUT, "t", OXLA_FLOAT, DIMS(-1));
  add_list(&g, GRAPH_INPUT, "o", true, false);
  add_list(&g, GRAPH_INPUT, "os", true, true);
  add_node(&g, "SequenceInsert", "xs", "t", "ys");
  add_node(&g, "SequenceLength", "xs", NULL, "n");
  add_node(&g, "OptionalHasElement", "o", NULL, "has");
  add_node(&g, "Identity", "o", NULL, "p");
  add_node(&g, "Identity", "os", NULL, "qs");
  add_list(&g, GRAPH_OUTPUT, "ys", false, true);
  add_value(&g, GRAPH_OUTPUT, "n", OXLA_INT64, SCALAR);
  add_value(&g, GRAPH_OUTPUT, "has", OXLA_BOOL, SCALAR);
  add_list(&g, GRAPH_OUTPUT, "p", true, false);
  add_list(&g, GRAPH_OUTPUT, "qs", true, true);
  return finish_model(&g, 8, 18);
}

static const float numbers_of[] = {1, 2, 3, 4, 5, 6};

static oxla_tensor tensor_of(int64_t n) {
  return (oxla_tensor){.type = OXLA_FLOAT, .rank = 1, .dims = {n}, .data = (void *)(uintptr_t)numbers_of};
}

static void set_tensor(oxla_run *run, const char *name, int64_t n) {
  succeed(oxla_set_input(run, name, OXLA_FLOAT, 1, &n, numbers_of));
}

/* Expects that an output is a sequence of arrays with these lengths. */
static void expect_sequence(const oxla_run *run, const char *name, size_t count, const int64_t *lengths) {
  oxla_kind kind;
  oxla_tensor t;
  size_t n;
  succeed(oxla_get_elements(run, name, &kind, &n));
  ck_assert_int_eq(kind, OXLA_SEQUENCE);
  ck_assert_uint_eq(n, count);
  for (size_t k = 0; k < n; k++) {
    succeed(oxla_get_element(run, name, k, &t));
    ck_assert_int_eq(t.type, OXLA_FLOAT);
    ck_assert_int_eq(t.rank, 1);
    ck_assert_int_eq(t.dims[0], lengths[k]);
    ck_assert_uint_eq(t.bytes, (size_t)lengths[k] * sizeof(float));
    ck_assert_mem_eq(t.data, numbers_of, t.bytes);
  }
  refuse(oxla_get_element(run, name, n, &t), OXLA_INVALID_ARGUMENT, "elements, and no element");
  refuse(oxla_get_output(run, name, &t), OXLA_INVALID_ARGUMENT, "is seq<f32>");
}

static void expect_absent(const oxla_run *run, const char *name) {
  oxla_kind kind;
  size_t n;
  succeed(oxla_get_elements(run, name, &kind, &n));
  ck_assert_int_eq(kind, OXLA_OPTIONAL);
  ck_assert_uint_eq(n, 0);
}

static void expect_number(const oxla_run *run, const char *name, int64_t want) {
  oxla_tensor t;
  succeed(oxla_get_output(run, name, &t));
  ck_assert_int_eq(t.type == OXLA_BOOL ? *(uint8_t *)t.data : *(int64_t *)t.data, want);
}

/* Executes with sequences of two and then of no tensors, and with optionals that have an element and that have none. */
static void execute(oxla_run *run) {
  oxla_tensor two[] = {tensor_of(3), tensor_of(0)}, p;
  two[1].data = NULL; /* an empty tensor needs no data */
  succeed(oxla_set_sequence(run, "xs", OXLA_FLOAT, 2, two));
  set_tensor(run, "t", 5);
  set_tensor(run, "o", 2);
  succeed(oxla_set_sequence(run, "os", OXLA_FLOAT, 1, two));
  succeed(oxla_keep_inputs(run));
  succeed(oxla_execute(run));
  expect_sequence(run, "ys", 3, (int64_t[]){3, 0, 5});
  expect_sequence(run, "qs", 1, (int64_t[]){3});
  expect_number(run, "n", 2);
  expect_number(run, "has", 1);
  succeed(oxla_get_output(run, "p", &p));
  ck_assert_int_eq(p.dims[0], 2);
  ck_assert_mem_eq(p.data, numbers_of, p.bytes);

  succeed(oxla_set_sequence(run, "xs", OXLA_FLOAT, 0, NULL));
  succeed(oxla_set_absent(run, "o"));
  succeed(oxla_set_absent(run, "os"));
  succeed(oxla_execute(run));
  expect_sequence(run, "ys", 1, (int64_t[]){5});
  expect_number(run, "n", 0);
  expect_number(run, "has", 0);
  expect_absent(run, "p");
  expect_absent(run, "qs");
}

START_TEST(values_of_all_kinds) {
  message m = lists_model();
  oxla_model *model = load(&m, _i);
  oxla_tensor t;
  ck_assert_int_eq(oxla_input_kind(model, 0), OXLA_SEQUENCE);
  ck_assert_int_eq(oxla_input_kind(model, 1), OXLA_TENSOR);
  ck_assert_int_eq(oxla_input_kind(model, 2), OXLA_OPTIONAL);
  ck_assert_int_eq(oxla_output_kind(model, 3), OXLA_OPTIONAL);
  ck_assert_int_eq(oxla_output_kind(model, 99), OXLA_TENSOR);
  ck_assert_int_eq(oxla_input_kind(NULL, 0), OXLA_TENSOR);
  succeed(oxla_input_type(model, 0, &t));
  ck_assert_int_eq(t.type, OXLA_FLOAT);
  ck_assert_int_eq(t.rank, -1);
  oxla_run *run = new_run(model);
  execute(run);
  execute(run);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

START_TEST(a_file_takes_sequences) {
  message m = lists_model();
  oxla_model *model = load(&m, _i), *loaded;
  oxla_run *run = new_run(model);
  void *bytes;
  size_t size;
  execute(run);
  succeed(oxla_save_memory(model, &bytes, &size));
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  succeed(oxla_load_memory(bytes, size, NULL, &loaded));
  run = new_run(loaded);
  execute(run);
  oxla_run_destroy(run);
  oxla_model_destroy(loaded);
  oxla_free(bytes);
}
END_TEST

START_TEST(wrong_values_are_refused) {
  message m = lists_model();
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  oxla_tensor two[] = {tensor_of(3), tensor_of(2)}, t;
  oxla_kind kind;
  size_t n;
  refuse(oxla_set_input(run, "xs", OXLA_FLOAT, 1, (int64_t[]){2}, numbers_of), OXLA_INVALID_ARGUMENT,
         "input 'xs' is f32[2]; the model needs seq<f32>");
  refuse(oxla_set_absent(run, "xs"), OXLA_INVALID_ARGUMENT, "input 'xs' is opt<f32>; the model needs seq<f32>");
  refuse(oxla_set_sequence(run, "o", OXLA_FLOAT, 2, two), OXLA_INVALID_ARGUMENT, "the model needs opt<f32>");
  refuse(oxla_set_sequence(run, "t", OXLA_FLOAT, 2, two), OXLA_INVALID_ARGUMENT, "the model needs f32");
  refuse(oxla_set_sequence(run, "xs", OXLA_FLOAT, 2, NULL), OXLA_INVALID_ARGUMENT, "no list of tensors");
  refuse(oxla_set_sequence(run, "xs", OXLA_INT64, 0, NULL), OXLA_INVALID_ARGUMENT, "input 'xs' is");
  two[1].data = NULL;
  refuse(oxla_set_sequence(run, "xs", OXLA_FLOAT, 2, two), OXLA_INVALID_ARGUMENT, "tensor 1: it has no data");
  two[1] = tensor_of(2);
  two[1].type = OXLA_INT32;
  refuse(oxla_set_sequence(run, "xs", OXLA_FLOAT, 2, two), OXLA_INVALID_ARGUMENT,
         "element 1 of the sequence is s32[2]");
  refuse(oxla_set_sequence(run, "none", OXLA_FLOAT, 0, NULL), OXLA_INVALID_ARGUMENT, "no input 'none'");
  refuse(oxla_get_elements(run, "ys", &kind, &n), OXLA_INVALID_ARGUMENT, "has not been executed");
  succeed(oxla_set_sequence(run, "xs", OXLA_FLOAT, 1, two));
  refuse(oxla_execute(run), OXLA_INVALID_ARGUMENT, "input 't' is not set");
  set_tensor(run, "t", 5);
  succeed(oxla_set_absent(run, "o"));
  refuse(oxla_execute(run), OXLA_INVALID_ARGUMENT, "input 'os' is not set");
  succeed(oxla_set_absent(run, "os"));
  succeed(oxla_execute(run));
  refuse(oxla_get_elements(run, "ys", NULL, &n), OXLA_INVALID_ARGUMENT, "argument kind is NULL");
  refuse(oxla_get_element(run, "n", 0, &t), OXLA_INVALID_ARGUMENT, "output 'n' is s64[], which has no elements");
  float memory[8];
  succeed(oxla_set_output(run, "ys", memory, sizeof memory));
  refuse(oxla_execute(run), OXLA_UNSUPPORTED, "output 'ys' is seq<f32>, which cannot be written to memory");
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* --- maps --- */

/* Adds an input or output that is a map from int64 to f32, or a sequence of such maps. */
static void add_map(message *graph, unsigned field, const char *name, bool sequence) {
  message tensor = {.n = 0}, value_type = {.n = 0}, map = {.n = 0}, type = {.n = 0}, value = {.n = 0};
  put_int(&tensor, 1, OXLA_FLOAT);
  put_message(&value_type, 1, &tensor);
  put_int(&map, 1, OXLA_INT64);
  put_message(&map, 2, &value_type);
  put_message(&type, 5, &map);
  if (sequence) {
    message inner = {.n = 0}, around = {.n = 0};
    put_message(&inner, 1, &type);
    put_message(&around, 4, &inner);
    type = around;
  }
  put_text(&value, 1, name);
  put_message(&value, 2, &type);
  put_message(graph, field, &value);
}

/* Adds a node of ai.onnx.ml with an attribute of integers. */
static void add_ml_node(message *graph, const char *op, const char *x, const char *y, const char *attribute, int n,
                        const int64_t *values) {
  message node = {.n = 0}, a = {.n = 0};
  put_text(&a, 1, attribute);
  for (int k = 0; k < n; k++) {
    put_int(&a, 8, values[k]); /* ints */
  }
  put_int(&a, 20, 7); /* INTS */
  put_text(&node, 1, x);
  put_text(&node, 2, y);
  put_text(&node, 4, op);
  put_message(&node, 5, &a);
  put_text(&node, 7, "ai.onnx.ml");
  put_message(graph, GRAPH_NODE, &node);
}

static message finish_ml_model(const message *graph) {
  message m = finish_model(graph, 8, 17), import = {.n = 0};
  put_text(&import, 1, "ai.onnx.ml");
  put_int(&import, 2, 3);
  put_message(&m, 8, &import);
  return m;
}

/* zs = ZipMap(x) with the labels 30, 10, 20; y = DictVectorizer(m) with the vocabulary 5, 7. */
static message maps_model(void) {
  message g = {.n = 0};
  add_value(&g, GRAPH_INPUT, "x", OXLA_FLOAT, DIMS(-1, 3));
  add_map(&g, GRAPH_INPUT, "m", false);
  add_ml_node(&g, "ZipMap", "x", "zs", "classlabels_int64s", 3, (const int64_t[]){30, 10, 20});
  add_ml_node(&g, "DictVectorizer", "m", "y", "int64_vocabulary", 2, (const int64_t[]){5, 7});
  add_map(&g, GRAPH_OUTPUT, "zs", true);
  add_value(&g, GRAPH_OUTPUT, "y", OXLA_FLOAT, DIMS(1, 2));
  return finish_ml_model(&g);
}

static oxla_tensor keys_of(const int64_t *keys, int64_t n) {
  return (oxla_tensor){.type = OXLA_INT64, .rank = 1, .dims = {n}, .data = (void *)(uintptr_t)keys};
}

START_TEST(maps_have_keys_and_values) {
  message m = maps_model();
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  const int64_t labels[] = {7, -1, 9};
  oxla_tensor keys = keys_of(labels, 3), values = tensor_of(3), y;
  oxla_kind kind;
  size_t n;
  ck_assert_int_eq(oxla_input_kind(model, 1), OXLA_MAP);
  ck_assert_int_eq(oxla_output_kind(model, 0), OXLA_MAPS);
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){2, 3}, numbers_of));
  succeed(oxla_set_map(run, "m", &keys, &values));
  succeed(oxla_execute(run));
  succeed(oxla_get_elements(run, "zs", &kind, &n));
  ck_assert_int_eq(kind, OXLA_MAPS);
  ck_assert_uint_eq(n, 2);
  succeed(oxla_get_map(run, "zs", 1, &keys, &values));
  ck_assert_int_eq(keys.type, OXLA_INT64);
  ck_assert_mem_eq(keys.data, ((const int64_t[]){10, 20, 30}), 3 * sizeof(int64_t));
  ck_assert_mem_eq(values.data, ((const float[]){5, 6, 4}), 3 * sizeof(float));
  succeed(oxla_get_output(run, "y", &y));
  ck_assert_mem_eq(y.data, ((const float[]){0, 1}), 2 * sizeof(float));
  refuse(oxla_get_map(run, "zs", 2, &keys, &values), OXLA_INVALID_ARGUMENT, "has 2 elements, and no element 2");
  refuse(oxla_get_map(run, "y", 0, &keys, &values), OXLA_INVALID_ARGUMENT, "output 'y' is f32[1,2], which has no maps");
  refuse(oxla_get_element(run, "zs", 0, &y), OXLA_INVALID_ARGUMENT, "element 0 of output 'zs' is map<f32>");
  refuse(oxla_get_map(run, "zs", 0, NULL, &values), OXLA_INVALID_ARGUMENT, "argument keys is NULL");
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){0, 3}, NULL));
  succeed(oxla_execute(run));
  succeed(oxla_get_elements(run, "zs", &kind, &n));
  ck_assert_int_eq(kind, OXLA_MAPS);
  ck_assert_uint_eq(n, 0);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

START_TEST(wrong_maps_are_refused) {
  message m = maps_model();
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  const int64_t labels[] = {7, -1, 9};
  oxla_tensor keys = keys_of(labels, 3), two = keys_of(labels, 2), values = tensor_of(3);
  refuse(oxla_set_map(run, "m", &keys, NULL), OXLA_INVALID_ARGUMENT, "argument values is NULL");
  refuse(oxla_set_map(run, "m", &two, &values), OXLA_INVALID_ARGUMENT,
         "the keys of the map are s64[2] and the values f32[3]");
  refuse(oxla_set_map(run, "m", &values, &values), OXLA_INVALID_ARGUMENT, "the model needs s64 and f32");
  refuse(oxla_set_map(run, "m", &keys, &keys), OXLA_INVALID_ARGUMENT, "input 'm' is s64; the model needs f32");
  refuse(oxla_set_map(run, "x", &keys, &values), OXLA_INVALID_ARGUMENT, "input 'x'");
  refuse(oxla_set_sequence(run, "m", OXLA_FLOAT, 1, &values), OXLA_INVALID_ARGUMENT, "the model needs map<f32>");
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* Maps are no tensors: what reads sequences of tensors refuses sequences of maps, of an input and of a node. */
START_TEST(sequences_of_maps_are_read_by_nobody) {
  message g = {.n = 0};
  add_value(&g, GRAPH_INPUT, "x", OXLA_FLOAT, DIMS(-1, 2));
  add_ml_node(&g, "ZipMap", "x", "zs", "classlabels_int64s", 2, (const int64_t[]){3, 1});
  add_node(&g, _i ? "SequenceLength" : "Identity", "zs", NULL, "n");
  if (_i) {
    add_value(&g, GRAPH_OUTPUT, "n", OXLA_INT64, SCALAR);
  } else {
    add_map(&g, GRAPH_OUTPUT, "n", true);
  }
  message m = finish_ml_model(&g);
  oxla_model *model = load(&m, 0);
  oxla_run *run = new_run(model);
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){3, 2}, numbers_of));
  refuse(oxla_execute(run), OXLA_INVALID_MODEL, "'zs' is a map or a sequence of maps");
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("values");
  tcase_set_timeout(c, 60);
  tcase_add_loop_test(c, values_of_all_kinds, 0, 2);
  tcase_add_loop_test(c, a_file_takes_sequences, 0, 2);
  tcase_add_loop_test(c, wrong_values_are_refused, 0, 2);
  tcase_add_loop_test(c, maps_have_keys_and_values, 0, 2);
  tcase_add_loop_test(c, wrong_maps_are_refused, 0, 2);
  tcase_add_loop_test(c, sequences_of_maps_are_read_by_nobody, 0, 2);
  return run_suite("values", c);
}
