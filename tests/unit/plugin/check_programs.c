/* check_programs.c - which programs and bindings a session keeps and which it frees; and of programs for all sizes: how
 * much memory they take, which symbols are pinned, and the ranges that the caller gives for symbols. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/session/internal.h"
#include "runtime/program/image.h"
#include "runtime/program/size_text.h"
#include "tests/suite.h"
#include "tests/unit/plugin/compiler_half.h"
#include "tests/unit/plugin/session_case.h"

static const char *const backends[] = {"ref", "cpu"};

/* y = x times w, 8 times with Relu between, f32[n,32]. */
static void write_layers(void) {
  enum { SIZE = 32, LAYERS = 8 };
  float weights[SIZE * SIZE];
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  const char *from = "x";
  for (int k = 0; k < SIZE * SIZE; k++) {
    weights[k] = (float)(k % 7 - 3) / 16;
  }
  Onnx__TensorProto *w = new_tensor(a, "w", 1, 2, (int64_t[]){SIZE, SIZE});
  set_raw(a, w, weights, sizeof weights);
  PB_ADD(a, m->graph->initializer, m->graph->n_initializer, w);
  for (int k = 0; k < LAYERS; k++) {
    const char *product = arena_printf(a, "p%d", k), *to = k + 1 < LAYERS ? arena_printf(a, "r%d", k) : "y";
    graph_node(a, m->graph, "MatMul", arena_printf(a, "%s,w", from), product);
    graph_node(a, m->graph, "Relu", product, to);
    from = to;
  }
  session_case_set_type(a, m->graph->input[0], 1, "n,32");
  session_case_set_type(a, m->graph->output[0], 1, "n,32");
  session_case_write(a, m);
}

static void run_rows(session *s, const session_program *c, int64_t rows) {
  float *x = calloc((size_t)rows * 32, sizeof *x);
  session_output out = {0};
  ASSERT_OK(session_run(s, c, NULL, &(session_inputs){.values = (const void *[]){x}}, &out));
  ck_assert_int_eq(out.shape.dims[0], rows);
  session_output_finish(s, &out);
  free(x);
}

static void run_sizes(session *s, int64_t from, int64_t to) {
  for (int64_t rows = from; rows < to; rows++) {
    const session_program *c = session_case_compile(s, rows, 32);
    run_rows(s, c, rows);
    session_release(s, c);
  }
}

/* Bindings are freed when they take more than their part of the memory for programs (PART), except those that are held
 * and the ones used last. */
START_TEST(few_bindings) {
  enum { MB = 1 << 20, ALL = 16 * MB, PART = ALL / 128, MOST = 60 };
  write_layers();
  session *s = session_case_open_with(
      session_case_path,
      (session_options){
          .backend = "cpu", .open_dim = 1, .compile.threads = 1, .program_memory = ALL / MB, .specialise = "off"});
  const session_program *held = session_case_compile(s, 5, 32), *last;
  run_sizes(s, 6, MOST);
  ck_assert_msg(s->bindings.bytes > PART / 2 && s->bindings.bytes <= PART, "%u bindings of %g bytes", s->bindings.n,
                (double)s->bindings.bytes);
  ck_assert(s->bindings.n > 1 && s->bindings.n < MOST && s->n_generals == 1);
  ck_assert_ptr_eq(session_case_compile(s, 5, 32), held);
  run_rows(s, held, 5);
  last = s->bindings.first->next;
  ck_assert_ptr_eq(session_case_compile(s, MOST - 1, 32), last);
  run_sizes(s, 6, 9); /* the bindings for these sizes were freed and are made again */
  session_close(s);
}
END_TEST

/* Does the same with programs for one set of sizes each. */
START_TEST(few_programs) {
  enum { MB = 1 << 20, MOST = 60 };
  write_layers();
  session *s = session_case_open_with(session_case_path, (session_options){.backend = "cpu",
                                                                           .open_dim = 1,
                                                                           .compile.threads = 1,
                                                                           .program_memory = 1,
                                                                           .specialise = "full",
                                                                           .tune = "off"});
  const session_program *held = session_case_compile(s, 5, 32);
  run_sizes(s, 6, MOST);
  ck_assert(s->compiled.n > 1 && s->compiled.n < MOST - 6);
  ck_assert(s->compiled.bytes > MB / 2 && s->compiled.bytes < MB);
  ck_assert_ptr_eq(session_case_compile(s, 5, 32), held);
  run_rows(s, held, 5);
  session_close(s);
}
END_TEST

static uint64_t resident_bytes(void) {
  unsigned long all, resident = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  ck_assert(f && fscanf(f, "%lu %lu", &all, &resident) == 2);
  fclose(f);
  return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* The part that bindings may take of the memory for programs. */
static const uint64_t most_of_bindings = ((uint64_t)256 << 20) / 128;

/* A session that has met 1,000 sizes takes no more memory than after 10, but for that of bindings.  The code of the
 * compiler is no part of it, since it does not stay in memory. */
START_TEST(memory_of_many_sizes) {
  write_layers();
  session *s = session_case_open(session_case_path, "cpu");
  run_sizes(s, 991, 1001);
  session_await_tuned(s);
  uint64_t resident = resident_bytes();
  run_sizes(s, 1, 1001);
  session_await_tuned(s);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they keep memory that was freed */
  ck_assert_msg(resident_bytes() <= resident + most_of_bindings, "%g bytes, then %g", (double)resident,
                (double)resident_bytes());
#else
  (void)resident;
#endif
  ck_assert(s->bindings.bytes > most_of_bindings / 2 && s->bindings.bytes <= most_of_bindings);
  session_close(s);
}
END_TEST

static void assert_sizes(const session_program *general, const char *expected) {
  char *text;
  size_t size;
  FILE *f = open_memstream(&text, &size);
  size_write_lines(f, 0, 6, general->program);
  fclose(f);
  ck_assert_msg(strcmp(text, expected) == 0, "%s", text);
  free(text);
}

/* y = x + w, where x is f32[n,m] and w a constant f32[4,1]: the program is for n = 4 only, whether the session compiles
 * or loads it. */
static void write_pinned(void) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  graph_node(a, m->graph, "Add", "x,w", "y")->name = arena_strdup(a, "plus");
  Onnx__TensorProto *w = new_tensor(a, "w", 1, 2, (int64_t[]){4, 1});
  set_raw(a, w, (float[]){1, 2, 3, 4}, 4 * sizeof(float));
  PB_ADD(a, m->graph->initializer, m->graph->n_initializer, w);
  session_case_set_type(a, m->graph->input[0], 1, "n,m");
  session_case_set_type(a, m->graph->output[0], 1, "n,m");
  session_case_write(a, m);
}

START_TEST(pins) {
  static const char expected[] =
      "symbol m: x[1]\n"
      "pin    n = 4: plus: Add\n"
      "pins   1 by Add\n";
  write_pinned();
  session *s = session_case_open(session_case_path, backends[_i]);
  (void)session_case_compile(s, 4, 5);
  const session_program *g = session_generals(s);
  ck_assert(g && !g->next && !session_exact_reason(s));
  assert_sizes(g, expected);
  ASSERT_OK(session_save(s, session_case_path));
  session_close(s);
  s = session_case_open(session_case_path, NULL); /* the file says the same */
  assert_sizes(session_generals(s), expected);
  session_close(s);
}
END_TEST

/* If no size is left open, the session says which node pins it. */
START_TEST(all_pinned) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  graph_node(a, m->graph, "Add", "x,w", "y")->name = arena_strdup(a, "plus");
  Onnx__TensorProto *w = new_tensor(a, "w", 1, 1, (int64_t[]){2});
  set_raw(a, w, (float[]){1, 2}, 2 * sizeof(float));
  PB_ADD(a, m->graph->initializer, m->graph->n_initializer, w);
  session_case_set_type(a, m->graph->input[0], 1, "3,n");
  session_case_set_type(a, m->graph->output[0], 1, "3,n");
  session_case_write(a, m);
  session *s = session_case_open(session_case_path, "ref");
  (void)session_case_compile(s, 3, 2);
  ck_assert_ptr_null(session_generals(s));
  ck_assert_str_eq(session_exact_reason(s), "the model is for one set of sizes only: n = 2 (plus: Add)");
  session_close(s);
}
END_TEST

/* Sizes that the model cannot have, which are asked for first, do not keep it from being compiled for all others. */
START_TEST(impossible_sizes) {
  const session_program *c;
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  graph_node(a, m->graph, "Reshape", "x,w", "y");
  Onnx__TensorProto *w = new_tensor(a, "w", 7, 1, (int64_t[]){3});
  set_raw(a, w, (int64_t[]){0, 2, -1}, 3 * sizeof(int64_t));
  PB_ADD(a, m->graph->initializer, m->graph->n_initializer, w);
  session_case_set_type(a, m->graph->input[0], 1, "n,m");
  session_case_set_type(a, m->graph->output[0], 1, "n,2,p");
  session_case_write(a, m);
  session *s = session_case_open(session_case_path, backends[_i]);
  shape wrong = shape_make(DTYPE_F32, 2, (dim[]){3, 5});
  for (int k = 0; k < 5; k++) {
    ASSERT_FAILS(session_compile(s, &(session_inputs){.shapes = (const shape *[]){&wrong}}, &c), STATUS_INVALID_MODEL,
                 "Reshape");
  }
  ck_assert(!session_exact_reason(s));
  for (int64_t k = 2; k < 9; k++) {
    (void)session_case_compile(s, k, 2 * k);
  }
  ck_assert_uint_eq(s->n_generals, 1);
  ck_assert_uint_eq(s->compiled.n, 0);
  session_close(s);
}
END_TEST

static session *open_ranges(const char *backend, bool keep_open, const dim_range *ranges, uint32_t n) {
  session_options o = {.backend = backend, .open_dim = 1, .compile.threads = 1, .ranges = ranges, .n_ranges = n};
  o.keep_open = keep_open;
  return session_case_open_with(session_case_path, o);
}

/* A program for ranges has guards by which its sizes must be in these ranges, and no other guards.  Other sizes are
 * errors, also if the program comes from a file. */
START_TEST(ranges) {
  const session_program *c;
  session_case_write_relu();
  session *s = open_ranges(backends[_i], false, (dim_range[]){{"n", 2, 7}, {"m", 0, 9}}, 2);
  ASSERT_OK(session_compile_ranges(s, &(session_inputs){0}, &c));
  ck_assert(c->general && c->program->params[0].shape.dims[0] == 7 && c->program->params[0].shape.dims[1] == 9);
  session_release(s, c);
  assert_sizes(session_generals(s),
               "symbol n: x[0]\n"
               "symbol m: x[1]\n"
               "pins   none\n"
               "guard  2 <= n: range of n\n"
               "guard  n <= 7: range of n\n"
               "guard  m <= 9: range of m\n");
  ck_assert_uint_eq(s->n_generals, 1);
  shape wrong[] = {shape_make(DTYPE_F32, 2, (dim[]){8, 3}), shape_make(DTYPE_F32, 2, (dim[]){1, 3})};
  for (int k = 0; k < 2; k++) {
    ASSERT_FAILS(session_compile(s, &(session_inputs){.shapes = (const shape *[]){&wrong[k]}}, &c),
                 STATUS_INVALID_ARGUMENT, "its dimension 0, 'n', is outside of the range 2 to 7");
  }
  ASSERT_OK(session_save(s, session_case_path));
  session_close(s);
  s = session_case_open(session_case_path, NULL);
  for (int64_t n = 2; n <= 7; n++) {
    session_case_run_relu(s, session_case_compile(s, n, 9 - n), n * (9 - n));
  }
  ASSERT_FAILS(session_compile(s, &(session_inputs){.shapes = (const shape *[]){&wrong[0]}}, &c),
               STATUS_INVALID_ARGUMENT, "range of n: the program is for sizes with n <= 7");
  ASSERT_FAILS(session_compile(s, &(session_inputs){.shapes = (const shape *[]){&wrong[1]}}, &c),
               STATUS_INVALID_ARGUMENT, "range of n: the program is for sizes with 2 <= n");
  session_close(s);
}
END_TEST

/* y = Concat(a, b) + c, whose length is n+k, as the mask of a transformer is as long as the past and the new tokens. */
START_TEST(ranges_of_a_sum) {
  const session_program *c;
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "a,b,c", "y");
  set_int(a, graph_node(a, m->graph, "Concat", "a,b", "ab"), "axis", 0);
  graph_node(a, m->graph, "Add", "ab,c", "y")->name = arena_strdup(a, "sum");
  session_case_set_type(a, m->graph->input[0], 1, "n");
  session_case_set_type(a, m->graph->input[1], 1, "k");
  session_case_set_type(a, m->graph->input[2], 1, "t");
  session_case_set_type(a, m->graph->output[0], 1, "t");
  session_case_write(a, m);
  session *s = open_ranges(backends[_i], true, (dim_range[]){{"n", 2, 8}, {"k", 3, 9}}, 2);
  ASSERT_OK(session_compile_ranges(s, &(session_inputs){0}, &c));
  session_release(s, c);
  ck_assert_uint_eq(s->n_generals, 1);
  ck_assert_uint_eq(session_generals(s)->program->n_definitions, 1); /* t = n+k */
  session_close(s);
}
END_TEST

/* y = a + b, f32[n] and f32[k], where k may be called n, too. */
static void write_sum(const char *k) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "a,b", "y");
  graph_node(a, m->graph, "Add", "a,b", "y")->name = arena_strdup(a, "sum");
  session_case_set_type(a, m->graph->input[0], 1, "n");
  session_case_set_type(a, m->graph->input[1], 1, k);
  session_case_set_type(a, m->graph->output[0], 1, "o");
  session_case_write(a, m);
}

/* Compiles and runs a + b for each pair of sizes, and checks the results. */
static void run_sums(session *s, const int64_t (*sizes)[2], size_t n_sizes) {
  for (size_t k = 0; k < n_sizes; k++) {
    const session_program *c;
    float a[] = {1, 2, 3, 4, 5, 6}, b[] = {10, 20, 30, 40, 50, 60};
    shape first = shape_make(DTYPE_F32, 1, sizes[k]), second = shape_make(DTYPE_F32, 1, &sizes[k][1]);
    session_inputs inputs = {.shapes = (const shape *[]){&first, &second}, .values = (const void *[]){a, b}};
    session_output out = {0};
    ASSERT_OK(session_compile(s, &inputs, &c));
    ASSERT_OK(session_run(s, c, NULL, &inputs, &out));
    int64_t n = sizes[k][0] > sizes[k][1] ? sizes[k][0] : sizes[k][1];
    ck_assert_int_eq(out.shape.dims[0], n);
    for (int64_t i = 0; i < n; i++) {
      ck_assert(((float *)out.data)[i] == a[sizes[k][0] == 1 ? 0 : i] + b[sizes[k][1] == 1 ? 0 : i]);
    }
    session_output_finish(s, &out);
  }
}

/* Sizes of 1, which are broadcast, need programs of their own.  A saved file has all these programs. */
START_TEST(split_ranges) {
  static const int64_t sizes[][2] = {{5, 5}, {1, 4}, {6, 1}, {1, 1}, {2, 2}};
  const session_program *c;
  write_sum("k");
  session *s = open_ranges(backends[_i % 2], _i / 2, (dim_range[]){{"n", 1, 6}, {"k", 1, 6}}, 2);
  ASSERT_OK(session_compile_ranges(s, &(session_inputs){0}, &c));
  ck_assert_uint_eq(s->n_generals, 3);
  ASSERT_OK(session_save(s, session_case_path));
  session_close(s);
  s = session_case_open(session_case_path, NULL);
  run_sums(s, sizes, sizeof sizes / sizeof *sizes);
  session_close(s);
}
END_TEST

static void set_ints(arena *a, Onnx__NodeProto *node, const char *name, int64_t *pair) {
  Onnx__AttributeProto *t = add_attribute(a, node, name);
  t->has_type = 1;
  t->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
  t->n_ints = 2;
  t->ints = pair;
}

/* Each corner of two ranges may need a program of its own, here since the padding depends on remainders, which is a
 * guard if indices are wanted, too. */
START_TEST(every_corner_has_a_program) {
  const session_program *c;
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  Onnx__NodeProto *pool = graph_node(a, m->graph, "MaxPool", "x", "y,i");
  Onnx__AttributeProto *same = add_attribute(a, pool, "auto_pad");
  same->has_type = same->has_s = 1;
  same->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
  same->s = (ProtobufCBinaryData){.data = (uint8_t *)arena_strdup(a, "SAME_UPPER"), .len = strlen("SAME_UPPER")};
  set_ints(a, pool, "kernel_shape", (int64_t[]){3, 3});
  set_ints(a, pool, "strides", (int64_t[]){2, 2});
  session_case_set_type(a, m->graph->input[0], 1, "1,1,n,k");
  session_case_set_type(a, m->graph->output[0], 1, "1,1,o,p");
  session_case_write(a, m);
  session *s = open_ranges(backends[_i], false, (dim_range[]){{"n", 4, 7}, {"k", 4, 7}}, 2);
  ASSERT_OK(session_compile_ranges(s, &(session_inputs){0}, &c));
  ck_assert_uint_eq(s->n_generals, 4);
  session_close(s);
}
END_TEST

/* Two dimensions of one name may have different sizes, as in ONNX Runtime.  The program for equal sizes serves only
 * equal sizes, and others serve the rest.  A size of the name in the options is for both dimensions, and so is a
 * range. */
START_TEST(one_name_for_two_sizes) {
  static const int64_t equal[][2] = {{5, 5}, {3, 3}}, different[][2] = {{1, 4}, {6, 1}, {6, 6}, {1, 5}, {2, 1}};
  const session_program *c;
  session *s;
  write_sum("n");
  s = open_ranges(backends[_i], false, (dim_range[]){{"n", 1, 6}}, 1);
  run_sums(s, equal, 2);
  assert_sizes(session_generals(s),
               "symbol n: a[0], b[0]\n"
               "pins   none\n"
               "guard  1 <= n: range of n\n"
               "guard  n <= 6: range of n\n");
  run_sums(s, different, 1);
  assert_sizes(session_generals(s),
               "symbol _b_0: b[0]\n"
               "pin    n = 1: sum: Add\n"
               "pins   1 by Add\n"
               "guard  1 <= _b_0: range of n\n"
               "guard  _b_0 <= 6: range of n\n");
  run_sums(s, different, 5);
  ck_assert_uint_eq(s->n_generals, 3);
  session_close(s);

  shape four = shape_make(DTYPE_F32, 1, (dim[]){4}), one = shape_make(DTYPE_F32, 1, (dim[]){1});
  session_inputs inputs = {.shapes = (const shape *[]){&four, &one}};
  s = session_case_open_with(
      session_case_path,
      (session_options){.backend = backends[_i], .dims = &(compiler_dim){"n", 4}, .n_dims = 1, .compile.threads = 1});
  ASSERT_FAILS(session_compile(s, &inputs, &c), STATUS_INVALID_ARGUMENT,
               "input 'b' is f32[1]; dimension 0 of f32[n] must be 4");
  session_close(s);
}
END_TEST

/* Invalid ranges are refused, and so are ranges for models that need a program for each set of sizes. */
START_TEST(wrong_ranges) {
  static const struct {
    dim_range range;
    const char *message;
  } wrong[] = {{{"n", 3, 2}, "the range of dimension 'n' is 3 to 2"},
               {{"n", -1, 2}, "-1 to 2"},
               {{"", 1, 2}, "has no name"},
               {{"q", 1, 2}, "no input has a dimension 'q'; the model's named dimensions are: n, m"},
               {{"m", 1, 2}, "dimension 'm' has a range and another size"}};
  session *s;
  const session_program *c;
  session_case_write_relu();
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
    session_options o = {.ranges = &wrong[k].range, .n_ranges = 1, .dims = &(compiler_dim){"m", 1}, .n_dims = 1};
    ASSERT_FAILS(session_open(session_case_path, NULL, 0, &o, &s), STATUS_INVALID_ARGUMENT, wrong[k].message);
  }
  write_pinned();
  s = open_ranges("ref", false, (dim_range[]){{"n", 4, 5}}, 1);
  ASSERT_FAILS(session_compile_ranges(s, &(session_inputs){0}, &c), STATUS_INVALID_MODEL, "plus: Add");
  session_close(s);
  for (int k = 0; k < 4; k++) { /* the model is right for an n of 4, and of 1 */
    s = open_ranges("ref", k % 2, (dim_range[]){{"n", 1 + k / 2, 4}, {"m", 2, 9}}, 2);
    ASSERT_FAILS(session_compile_ranges(s, &(session_inputs){0}, &c), STATUS_UNSUPPORTED,
                 "no program serves the whole range of n: n = 4 (plus: Add)");
    session_close(s);
  }
  write_sum("k"); /* which is right for the largest sizes */
  s = open_ranges("ref", false, (dim_range[]){{"n", 2, 6}, {"k", 6, 6}}, 2);
  ASSERT_FAILS(session_compile_ranges(s, &(session_inputs){0}, &c), STATUS_INVALID_ARGUMENT,
               "the ranges have the sizes n = 2, k = 6");
  session_close(s);
}
END_TEST

/* Compiles y = x or, with two inputs, y = x + z, and reads the .oxla file with its program. */
static rt_image *compiled_sum(arena *a, bool two) {
  rt_image *image;
  arena *b = arena_create(NULL);
  Onnx__ModelProto *m = new_model(b, two ? "x,z" : "x", "y");
  graph_node(b, m->graph, two ? "Add" : "Relu", two ? "x,z" : "x", "y");
  for (size_t k = 0; k < m->graph->n_input; k++) {
    session_case_set_type(b, m->graph->input[k], 1, "4");
  }
  session_case_set_type(b, m->graph->output[0], 1, "4");
  session_case_write(b, m);
  session *s = session_case_open(session_case_path, "ref");
  const session_program *c;
  ASSERT_OK(session_compile(s, &(session_inputs){0}, &c));
  ASSERT_OK(session_save(s, session_case_path));
  session_close(s);
  ASSERT_OK(rt_image_open(a, session_case_path, true, &image));
  return image;
}

/* A file whose programs have different inputs is refused, since a run's inputs are checked once for all
 * programs. */
START_TEST(programs_with_other_inputs) {
  arena *a = arena_create(NULL);
  session *s;
  rt_program *one = compiled_sum(a, false)->programs[0];
  rt_image *both = compiled_sum(a, true);
  both->programs = (rt_program *[]){both->programs[0], one};
  both->n_programs = 2;
  ASSERT_OK(rt_image_write(both, session_case_path));
  ASSERT_FAILS(session_open(session_case_path, NULL, 0, &(session_options){0}, &s), STATUS_INVALID_FILE,
               "program 1 has other inputs");
  arena_destroy(a);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("programs");
  tcase_add_checked_fixture(c, session_case_setup, session_case_teardown);
  tcase_add_test(c, few_bindings);
  tcase_add_test(c, few_programs);
  tcase_add_test(c, memory_of_many_sizes);
  tcase_add_loop_test(c, pins, 0, 2);
  tcase_add_test(c, all_pinned);
  tcase_add_loop_test(c, impossible_sizes, 0, 2);
  tcase_add_loop_test(c, ranges, 0, 2);
  tcase_add_loop_test(c, ranges_of_a_sum, 0, 2);
  tcase_add_loop_test(c, every_corner_has_a_program, 0, 2);
  tcase_add_loop_test(c, split_ranges, 0, 4);
  tcase_add_loop_test(c, one_name_for_two_sizes, 0, 2);
  tcase_add_test(c, wrong_ranges);
  tcase_add_test(c, programs_with_other_inputs);
  return run_suite("programs", c);
}
