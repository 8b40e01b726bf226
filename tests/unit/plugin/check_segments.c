/* check_segments.c - a model that runs segment by segment is compiled once, whatever it computes. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "plugin/compiler/segments_internal.h"
#include "plugin/session/internal.h"
#include "tests/suite.h"
#include "tests/unit/plugin/compiler_half.h"
#include "tests/unit/plugin/session_case.h"

static const char *const backends[] = {"ref", "cpu"};

enum { MOST = 100, SIZES = 40 };

/* Returns the number of segments of the site and of all sites below it, and raises *most_bindings to the largest number
 * of bindings that one of these segments has. */
static uint32_t count_segments(const interpreter_site *site, uint32_t *most_bindings) {
  uint32_t n = 0;
  for (const segment *x = site->segments; x; x = x->next, n++) {
    uint32_t bindings = 0;
    for (const segment_binding *b = x->bindings; b; b = b->next) {
      bindings++;
    }
    *most_bindings = bindings > *most_bindings ? bindings : *most_bindings;
  }
  for (const interpreter_site *c = site->children; c; c = c->next) {
    n += count_segments(c, most_bindings);
  }
  return n;
}

static void run(session *s, const shape *given, const void *x, session_output *out) {
  session_inputs inputs = {.shapes = &given, .values = &x};
  const session_program *c;
  ASSERT_OK(session_compile(s, &inputs, &c));
  ASSERT_OK(session_run(s, c, NULL, &inputs, out));
  ck_assert(!c->program);
  session_release(s, c);
}

/* Counts the lines of the log that say that a segment was compiled. */
static void count_compiled(void *data, session_log_level level, const char *line) {
  (void)level;
  *(uint32_t *)data += strncmp(line, "a segment was compiled", 22) == 0;
}

/* y = ReduceSum(Cast(NonZero(x)) + 1), whose middle has a computed size: the sum of the positions + 1. */
static void write_positions(void) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  graph_node(a, m->graph, "NonZero", "x", "nz");
  graph_node(a, m->graph, "Shape", "nz", "s");
  graph_node(a, m->graph, "ConstantOfShape", "s", "zeros");
  graph_node(a, m->graph, "Exp", "zeros", "ones");
  graph_node(a, m->graph, "CastLike", "nz,ones", "f");
  graph_node(a, m->graph, "Add", "f,ones", "sums");
  graph_node(a, m->graph, "ReduceSum", "sums", "y");
  session_case_set_type(a, m->graph->input[0], 1, "n");
  session_case_set_type(a, m->graph->output[0], 1, "1,1");
  session_case_write(a, m);
}

START_TEST(computed_sizes) {
  write_positions();
  uint32_t first = 0, most_bindings = 0, compiled = 0;
  session_options options = {.backend = backends[_i], .tune = "off", .log = count_compiled, .log_data = &compiled};
  session *s = session_case_open_with(session_case_path, options);
  session_output out = {0};
  for (int k = 0; k < SIZES; k++) {
    float x[MOST] = {0};
    int count = k < 5 ? k : (k * 7) % MOST, n = MOST - k % 3;
    double expected = 0;
    for (int i = 0; i < count && i < n; i++) {
      x[i] = 1;
      expected += i + 1;
    }
    shape given = shape_make(DTYPE_F32, 1, (dim[]){n});
    run(s, &given, x, &out);
    ck_assert_double_eq(*(const float *)out.data, expected);
    first = k == 5 ? count_segments(&s->segments->main, &most_bindings) : first;
  }
  /* only the sizes 0 and 1 may need segments of their own */
  ck_assert_uint_eq(count_segments(&s->segments->main, &most_bindings), first);
  ck_assert_uint_le(first, 6);
  ck_assert(compiled >= 1 && compiled <= first);
  ck_assert_uint_ge(most_bindings, 2);
  session_output_finish(s, &out);
  session_close(s);
}
END_TEST

static void add_number(arena *a, Onnx__ModelProto *m, const char *name, int type, const void *number, size_t size) {
  Onnx__TensorProto *t = new_tensor(a, name, type, 1, (int64_t[]){1});
  set_raw(a, t, number, size);
  PB_ADD(a, m->graph->initializer, m->graph->n_initializer, t);
}

/* y = Exp(ConstantOfShape([largest of x + 1, 2])): the graphs of a batch, numbered by x. */
static void write_graphs(void) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  add_number(a, m, "one", 7, &(int64_t){1}, sizeof(int64_t));
  add_number(a, m, "two", 7, &(int64_t){2}, sizeof(int64_t));
  graph_node(a, m->graph, "ReduceMax", "x", "last");
  graph_node(a, m->graph, "Reshape", "last,one", "list");
  graph_node(a, m->graph, "Add", "list,one", "count");
  set_int(a, graph_node(a, m->graph, "Concat", "count,two", "dims"), "axis", 0);
  graph_node(a, m->graph, "ConstantOfShape", "dims", "zeros");
  graph_node(a, m->graph, "Exp", "zeros", "y");
  session_case_set_type(a, m->graph->input[0], 7, "n");
  session_case_set_type(a, m->graph->output[0], 1, "g,2");
  session_case_write(a, m);
}

/* Counts all lines of the log that say that something was compiled.  None may say that sizes get programs of their own.
 */
static void count_all(void *data, session_log_level level, const char *line) {
  (void)level;
  ck_assert_msg(!strstr(line, "program of its own"), "%s", line);
  *(uint32_t *)data += strstr(line, "compiled for ") != NULL;
}

/* A short list whose length is open gets no program of its own for its contents, and a size that is computed from it is
 * open in the first run already. */
START_TEST(short_lists) {
  write_graphs();
  uint32_t compiled = 0, first = 0;
  session_options options = {
      .backend = backends[_i], .tune = "off", .specialise = "off", .log = count_all, .log_data = &compiled};
  session *s = session_case_open_with(session_case_path, options);
  session_output out = {0};
  for (int k = 0; k < SIZES; k++) {
    int64_t x[MOST] = {0}, n = 3 + k % 17, last = k * 7 % 11;
    x[n - 1] = last;
    shape given = shape_make(DTYPE_S64, 1, (dim[]){n});
    run(s, &given, x, &out);
    ck_assert_int_eq(out.shape.dims[0], last + 1);
    ck_assert_int_eq(out.shape.dims[1], 2);
    ck_assert_float_eq(((const float *)out.data)[2 * last + 1], 1);
    first = k ? first : compiled;
  }
  ck_assert_uint_ge(first, 1);
  ck_assert_uint_eq(compiled, first);
  session_output_finish(s, &out);
  session_close(s);
}
END_TEST

/* What segments have compiled, as the log tells: the numbers of kernels that were written and found, and of
 * contractions whose algorithms were measured. */
typedef struct counts {
  unsigned written, found, measured;
} counts;

static void add_counts(void *data, session_log_level level, const char *line) {
  (void)level;
  counts *all = data, one;
  const char *at = strstr(line, "seconds, ");
  if (strncmp(line, "a segment was compiled", 22) == 0 &&
      sscanf(at, "seconds, %u kernels written, %u found, %u of", &one.written, &one.found, &one.measured) == 3) {
    all->written += one.written;
    all->found += one.found;
    all->measured += one.measured;
  }
}

static void count_refusals(void *data, session_log_level level, const char *line) {
  (void)level;
  *(uint32_t *)data += strncmp(line, "no program is for all sizes", 27) == 0;
}

/* A model that was found to run segment by segment is not imported for all sizes again, unless fewer of its sizes are 0
 * or 1. */
START_TEST(imported_once) {
  static const struct {
    int size;
    uint32_t refusals;
  } cases[] = {{1, 1}, {1, 1}, {9, 2}, {8, 2}, {1, 2}, {7, 2}};
  write_positions();
  uint32_t refusals = 0;
  session_options options = {.backend = backends[_i], .tune = "off", .log = count_refusals, .log_data = &refusals};
  session *s = session_case_open_with(session_case_path, options);
  session_output out = {0};
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    const float x[MOST] = {1};
    shape given = shape_make(DTYPE_F32, 1, (dim[]){cases[k].size});
    run(s, &given, x, &out);
    ck_assert_double_eq(*(const float *)out.data, 1);
    ck_assert_uint_eq(refusals, cases[k].refusals);
  }
  session_output_finish(s, &out);
  session_close(s);
}
END_TEST

/* The segments of a second process find their kernels in the cache. */
START_TEST(kept_kernels) {
  char folder[] = "/tmp/check-segments-XXXXXX", command[64];
  ck_assert_ptr_nonnull(mkdtemp(folder));
  write_positions();
  counts of[2] = {{0}};
  for (int k = 0; k < 2; k++) {
    session *s = session_case_open_with(
        session_case_path,
        (session_options){
            .cache = folder, .keep_programs = true, .tune = "off", .log = add_counts, .log_data = &of[k]});
    float x[MOST] = {0, 1, 1};
    shape given = shape_make(DTYPE_F32, 1, (dim[]){MOST});
    session_output out = {0};
    run(s, &given, x, &out);
    ck_assert_double_eq(*(const float *)out.data, 5);
    session_output_finish(s, &out);
    session_close(s);
  }
  ck_assert_uint_gt(of[0].written, 0);
  ck_assert_uint_eq(of[1].written, 0);
  ck_assert_uint_ge(of[1].found, of[0].written);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  ck_assert_int_eq(system(command), 0);
}
END_TEST

/* y = 0 + Range(0, sum of x): the content of a computed number decides a size. */
START_TEST(computed_contents) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  graph_node(a, m->graph, "ReduceSum", "x", "sum")->n_output = 1;
  graph_node(a, m->graph, "Sub", "sum,sum", "zero");
  graph_node(a, m->graph, "Shape", "sum", "none"); /* the shape of a sum with kept dimensions: [1] */
  graph_node(a, m->graph, "Squeeze", "none", "one");
  graph_node(a, m->graph, "Squeeze", "sum", "limit");
  graph_node(a, m->graph, "Squeeze", "zero", "start");
  graph_node(a, m->graph, "Range", "start,limit,one", "r");
  graph_node(a, m->graph, "Add", "r,start", "y");
  session_case_set_type(a, m->graph->input[0], 7, "100"); /* so many that the import does not ask for x itself */
  session_case_set_type(a, m->graph->output[0], 7, "n");
  session_case_write(a, m);
  session *s = session_case_open(session_case_path, backends[_i]);
  session_output out = {0};
  uint32_t most_bindings = 0;
  for (int k = 0; k < SIZES; k++) {
    int64_t x[MOST] = {k, 2 * k, 1};
    shape given = shape_make(DTYPE_S64, 1, (dim[]){MOST});
    run(s, &given, x, &out);
    ck_assert_int_eq(out.shape.dims[0], 3 * k + 1);
    for (int i = 0; i < 3 * k + 1; i++) {
      ck_assert_int_eq(((const int64_t *)out.data)[i], i);
    }
  }
  ck_assert_uint_le(count_segments(&s->segments->main, &most_bindings), 5);
  ck_assert_uint_ge(most_bindings, 2);
  session_output_finish(s, &out);
  session_close(s);
}
END_TEST

/* Returns a copy of the text in which the digit stands for each '#', and the next digit for each '+'. */
static const char *numbered(arena *a, const char *text, int digit) {
  char *copy = arena_strdup(a, text);
  for (char *c = copy; *c; c++) {
    *c = (char)(*c == '#' ? '0' + digit : *c == '+' ? '1' + digit : *c);
  }
  return copy;
}

/* Adds to "sum#" those rows of "flat" whose number in column # is not 0; the sum is "sum+".  The nodes are those of
 * exporters for expert # of a language model, whose work on the rows would be between Gather and Expand. */
static void write_expert(arena *a, Onnx__GraphProto *g, int expert) {
  static const struct {
    const char *op, *inputs, *output;
  } nodes[] = {{"Gather", "columns,#", "column#"},
               {"Reshape", "column#,-1", "flags#"},
               {"NonZero", "flags#", "where#"},
               {"Reshape", "where#,-1", "rows#"},
               {"Gather", "flat,rows#", "chosen#"},
               {"Slice", "sum#,0,1,0", "first#"},
               {"Shape", "first#", "of_first#"},
               {"Expand", "chosen#,of_first#", "updates#"},
               {"Unsqueeze", "rows#,1", "list#"},
               {"Shape", "updates#", "of_updates#"},
               {"Expand", "list#,of_updates#", "indices#"},
               {"Shape", "sum#", "of_sum#"},
               {"ConstantOfShape", "of_sum#", "zeros#"},
               {"ScatterElements", "zeros#,indices#,updates#", "scattered#"},
               {"Add", "sum#,scattered#", "sum+"}};
  for (size_t k = 0; k < sizeof nodes / sizeof *nodes; k++) {
    graph_node(a, g, nodes[k].op, numbered(a, nodes[k].inputs, expert), numbered(a, nodes[k].output, expert));
  }
}

static void write_experts(void) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  for (int64_t k = -1; k <= 2; k++) {
    add_number(a, m, arena_printf(a, "%" PRId64, k), 7, &k, sizeof k);
  }
  set_int(a, graph_node(a, m->graph, "Concat", "-1,2", "rows_of_two"), "axis", 0);
  graph_node(a, m->graph, "Reshape", "x,rows_of_two", "flat");
  graph_node(a, m->graph, "Transpose", "flat", "columns");
  graph_node(a, m->graph, "Shape", "x", "of_x");
  graph_node(a, m->graph, "Shape", "flat", "of_flat");
  graph_node(a, m->graph, "ConstantOfShape", "of_flat", "sum0");
  for (int expert = 0; expert < 2; expert++) {
    write_expert(a, m->graph, expert);
  }
  graph_node(a, m->graph, "Reshape", "sum2,of_x", "y");
  session_case_set_type(a, m->graph->input[0], 1, "b,s,2");
  session_case_set_type(a, m->graph->output[0], 1, "b,s,2");
  session_case_write(a, m);
}

/* Sizes that are products of computed numbers are the same whatever is met first: the array, or the numbers. */
START_TEST(experts) {
  write_experts();
  uint32_t compiled = 0, first = 0;
  session_options options = {
      .backend = backends[_i], .tune = "off", .specialise = "off", .log = count_compiled, .log_data = &compiled};
  session *s = session_case_open_with(session_case_path, options);
  session_output out = {0};
  for (int k = 0; k < SIZES; k++) {
    float x[MOST];
    int64_t batch = k ? 1 + k % 3 : 2, length = k ? 1 + k * 7 % 11 : 7, n = 2 * batch * length;
    for (int i = 0; i < n; i++) {
      x[i] = (float)((i * 5 + k) % 3);
    }
    shape given = shape_make(DTYPE_F32, 3, (dim[]){batch, length, 2});
    run(s, &given, x, &out);
    for (int i = 0; i < n; i++) {
      float chosen = (float)((x[i / 2 * 2] != 0) + (x[i / 2 * 2 + 1] != 0));
      ck_assert_float_eq(((const float *)out.data)[i], chosen * x[i]);
    }
    first = k ? first : compiled;
  }
  ck_assert_uint_eq(compiled, first);
  session_output_finish(s, &out);
  session_close(s);
}
END_TEST

/* A run does not wait for the tuning of segments, unless specialise=full asks for it. */
START_TEST(untuned_segments) {
  enum { N = 512 }; /* so large that measuring pays */
  static float x[N * N] = {1, 1};
  static const char *const how[] = {"auto", "full"};
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  graph_node(a, m->graph, "Transpose", "x", "t");
  graph_node(a, m->graph, "MatMul", "x,t", "product");
  graph_node(a, m->graph, "NonZero", "product", "nz");
  graph_node(a, m->graph, "Shape", "nz", "s");
  graph_node(a, m->graph, "ConstantOfShape", "s", "y");
  session_case_set_type(a, m->graph->input[0], 1, "512,512");
  session_case_set_type(a, m->graph->output[0], 1, "2,n");
  session_case_write(a, m);
  for (unsigned k = 0; k < 2; k++) {
    counts of = {0};
    session *s = session_case_open_with(
        session_case_path, (session_options){.tune = "fast", .specialise = how[k], .log = add_counts, .log_data = &of});
    shape given = shape_make(DTYPE_F32, 2, (dim[]){N, N});
    session_output out = {0};
    run(s, &given, x, &out);
    ck_assert_int_eq(out.shape.dims[1], 1);
    ck_assert_uint_eq(of.measured, k);
    session_output_finish(s, &out);
    session_close(s);
  }
}
END_TEST

/* --- data in other files --- */

static const char *external_path(void) {
  static char path[64];
  snprintf(path, sizeof path, "%s.data", session_case_path);
  return path;
}

/* Adds the attribute `value`, a number in another file. */
static void add_external(arena *a, Onnx__NodeProto *node) {
  Onnx__AttributeProto *value = add_attribute(a, node, "value");
  Onnx__StringStringEntryProto *place = PB_NEW(a, Onnx__StringStringEntryProto, ONNX__STRING_STRING_ENTRY_PROTO__INIT);
  value->has_type = 1;
  value->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
  value->t = new_tensor(a, "", 1, 0, NULL);
  value->t->has_data_location = 1;
  value->t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
  place->key = arena_strdup(a, "location");
  place->value = arena_strdup(a, strrchr(external_path(), '/') + 1);
  PB_ADD(a, value->t->external_data, value->t->n_external_data, place);
}

/* Adds a function that returns the number: its node has it or, if `is_default`, the default of its attribute. */
static void add_function(arena *a, Onnx__ModelProto *m, bool is_default) {
  Onnx__FunctionProto *f = PB_NEW(a, Onnx__FunctionProto, ONNX__FUNCTION_PROTO__INIT);
  f->domain = arena_strdup(a, "own");
  f->name = arena_strdup(a, "Number");
  f->output = names(a, "q", &f->n_output);
  Onnx__NodeProto *node = add_node(a, &f->node, &f->n_node, "Constant", "", "q");
  if (is_default) {
    Onnx__NodeProto defaults = ONNX__NODE_PROTO__INIT;
    add_external(a, &defaults);
    f->attribute_proto = defaults.attribute;
    f->n_attribute_proto = defaults.n_attribute;
    Onnx__AttributeProto *reference = add_attribute(a, node, "value");
    reference->has_type = 1;
    reference->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    reference->ref_attr_name = arena_strdup(a, "value");
  } else {
    add_external(a, node);
  }
  PB_ADD(a, m->functions, m->n_functions, f);
}

/* y is the number times the sum of x, which decides the size of an array.  The number is in the body of an If, in a
 * function, or the default of a function's attribute. */
static void write_external(int place) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x,c", "y");
  graph_node(a, m->graph, "ReduceSum", "x", "sum");
  graph_node(a, m->graph, "ConstantOfShape", "sum", "zeros");
  if (place == 0) {
    Onnx__GraphProto *body = new_graph(a, "", "q");
    add_external(a, graph_node(a, body, "Constant", "", "q"));
    Onnx__NodeProto *choice = graph_node(a, m->graph, "If", "c", "number");
    set_graph(a, choice, "then_branch", body);
    set_graph(a, choice, "else_branch", body);
  } else {
    add_function(a, m, place == 2);
    domain_node(a, m, "own", 1, "Number", "number");
  }
  graph_node(a, m->graph, "Add", "zeros,number", "numbers");
  graph_node(a, m->graph, "ReduceSum", "numbers", "y");
  session_case_set_type(a, m->graph->input[0], 7, "100"); /* so many that the import does not ask for x itself */
  session_case_set_type(a, m->graph->input[1], 9, "");
  session_case_set_type(a, m->graph->output[0], 1, "1");
  session_case_write(a, m);
}

/* A file with a model that runs segment by segment contains the model, which needs all of its data. */
START_TEST(data_in_other_files) {
  const float number = 2.5f;
  const int64_t x[MOST] = {1, 0, 2};
  const uint8_t c = 1;
  write_external(_i);
  ASSERT_OK(file_write(external_path(), &number, sizeof number));
  session *s = session_case_open_with(session_case_path, (session_options){.tune = "off"});
  shape of_x = shape_make(DTYPE_S64, 1, (dim[]){MOST}), of_c = shape_scalar(DTYPE_PRED);
  session_inputs inputs = {.shapes = (const shape *[]){&of_x, &of_c}, .values = (const void *[]){x, &c}};
  session_output out = {0};
  const session_program *program;
  ASSERT_OK(session_compile(s, &inputs, &program));
  ASSERT_OK(session_run(s, program, NULL, &inputs, &out));
  ck_assert_double_eq(*(const float *)out.data, 3 * 2.5);
  ck_assert_ptr_null(program->program);
  ASSERT_FAILS(session_save(s, session_case_path), STATUS_UNSUPPORTED, "the model has data in other files");
  session_release(s, program);
  session_output_finish(s, &out);
  session_close(s);
  ck_assert_int_eq(unlink(external_path()), 0);
}
END_TEST

/* e = Exp(x), and a Loop that adds up the first element of e, the first two, and so on, until the sum is 5 or more. The
 * size of what the body slices depends on data, so that the host runs the loop, for constant sizes too. */
static void write_interpreted_loop(void) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  add_number(a, m, "zero", 7, &(int64_t){0}, sizeof(int64_t));
  add_number(a, m, "one", 7, &(int64_t){1}, sizeof(int64_t));
  add_number(a, m, "none", 1, &(float){0}, sizeof(float));
  add_number(a, m, "limit", 1, &(float){5}, sizeof(float));
  add_number(a, m, "true", 9, &(uint8_t){1}, 1);
  graph_node(a, m->graph, "Exp", "x", "e");
  Onnx__GraphProto *body = new_graph(a, "i,go,n,sum,all", "go2,n2,sum2,all2");
  graph_node(a, body, "Slice", "all,zero,n", "part");
  graph_node(a, body, "Identity", "all", "all2");
  graph_node(a, body, "ReduceSum", "part", "more");
  graph_node(a, body, "Add", "sum,more", "sum2");
  graph_node(a, body, "Add", "n,one", "n2");
  graph_node(a, body, "Less", "sum2,limit", "go2");
  set_graph(a, graph_node(a, m->graph, "Loop", ",true,one,none,e", "last,y,rest"), "body", body);
  session_case_set_type(a, m->graph->input[0], 1, "n");
  session_case_set_type(a, m->graph->output[0], 1, "1");
  session_case_write(a, m);
}

/* What is beside a loop that the host runs is compiled once for all sizes: the loop does not pin them, since that would
 * be in vain. */
START_TEST(loops_pin_in_vain) {
  write_interpreted_loop();
  uint32_t compiled = 0;
  session *s = session_case_open_with(
      session_case_path,
      (session_options){.backend = backends[_i], .tune = "off", .log = count_compiled, .log_data = &compiled});
  session_output out = {0};
  for (int n = 5; n < 20; n++) {
    const float x[MOST] = {0};
    uint32_t before = compiled;
    shape given = shape_make(DTYPE_F32, 1, (dim[]){n});
    run(s, &given, x, &out);
    ck_assert_double_eq(*(const float *)out.data, 1 + 2 + 3);
    ck_assert(n < 7 || compiled == before);
  }
  ck_assert_uint_ge(compiled, 1);
  session_output_finish(s, &out);
  session_close(s);
}
END_TEST

enum { WEIGHTS = 1 << 20 };

/* y = ReduceSum(Gather(w, NonZero(x)) + Gather(w, NonZero(x))), where w has WEIGHTS elements, the model's name has
 * `length` letters, and the import learns from the addition that two computed sizes are equal, so that it begins
 * again. */
static void write_weights(int length) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  float *numbers = ARENA_NEW_N(a, float, WEIGHTS);
  for (int k = 0; k < WEIGHTS; k++) {
    numbers[k] = (float)(k + 1);
  }
  Onnx__TensorProto *w = new_tensor(a, "w", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, 1, (int64_t[]){WEIGHTS});
  set_raw(a, w, numbers, WEIGHTS * sizeof *numbers);
  PB_ADD(a, m->graph->initializer, m->graph->n_initializer, w);
  m->graph->name = arena_printf(a, "%.*s", length, "graph");
  graph_node(a, m->graph, "NonZero", "x", "at");
  graph_node(a, m->graph, "NonZero", "x", "too");
  graph_node(a, m->graph, "Gather", "w,at", "one");
  graph_node(a, m->graph, "Gather", "w,too", "other");
  graph_node(a, m->graph, "Add", "one,other", "both");
  graph_node(a, m->graph, "ReduceSum", "both", "y");
  session_case_set_type(a, m->graph->input[0], 1, "100");
  session_case_set_type(a, m->graph->output[0], 1, "1,1");
  session_case_write(a, m);
}

/* Returns the bytes that the segment with the most memory has. */
static uint64_t most_memory(const interpreter_site *site) {
  uint64_t most = 0;
  for (const segment *x = site->segments; x; x = x->next) {
    ck_assert_ptr_null(x->compiling);
    most = x->budget.used > most ? x->budget.used : most;
  }
  return most;
}

/* A segment has no weights of its own, wherever they begin in the file and however often it was imported: they are in
 * the file or in the pool of all segments.  Nor does it have what compiling it needed.  The reference evaluator does
 * not use the pool, and copies weights that are not aligned. */
START_TEST(weights_once) {
  for (int length = 1; length <= 4; length++) { /* the weights of three of the four are not aligned */
    write_weights(length);
    session *s = session_case_open_with(session_case_path, (session_options){.backend = backends[_i], .tune = "off"});
    float x[MOST] = {0, 1, 1};
    shape given = shape_make(DTYPE_F32, 1, (dim[]){MOST});
    session_output out = {0};
    run(s, &given, x, &out);
    ck_assert_double_eq(*(const float *)out.data, 2 * (2 + 3));
    uint64_t weights = strcmp(backends[_i], "ref") == 0 ? WEIGHTS * sizeof(float) : 0;
    ck_assert_uint_le(most_memory(&s->segments->main), weights + WEIGHTS * sizeof(float) / 2);
    session_output_finish(s, &out);
    session_close(s);
  }
}
END_TEST

int main(void) {
  TCase *c = tcase_create("segments");
  tcase_add_checked_fixture(c, session_case_setup, session_case_teardown);
  tcase_add_loop_test(c, computed_sizes, 0, 2);
  tcase_add_loop_test(c, computed_contents, 0, 2);
  tcase_add_loop_test(c, experts, 0, 2);
  tcase_add_loop_test(c, short_lists, 0, 2);
  tcase_add_loop_test(c, imported_once, 0, 2);
  tcase_add_test(c, kept_kernels);
  tcase_add_test(c, untuned_segments);
  tcase_add_loop_test(c, data_in_other_files, 0, 3);
  tcase_add_loop_test(c, weights_once, 0, 2);
  tcase_add_loop_test(c, loops_pin_in_vain, 0, 2);
  return run_suite("segments", c);
}
