/* check_session.c - sessions: programs by shape and by content, files, dims, budgets. */
#include <check.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend_cpu/runtime/target.h"
#include "base/file.h"
#include "plugin/session/internal.h"
#include "runtime/host/processor.h"
#include "tests/suite.h"
#include "tests/unit/plugin/compiler_half.h"
#include "tests/unit/plugin/session_case.h"

static const char *const backends[] = {"ref", "cpu"};

/* y = Reshape(x, shape): f32[6], int64[2]. */
static void write_reshape(void) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x,shape", "y");
  graph_node(a, m->graph, "Reshape", "x,shape", "y");
  session_case_set_type(a, m->graph->input[0], 1, "6");
  session_case_set_type(a, m->graph->input[1], 7, "2");
  session_case_set_type(a, m->graph->output[0], 1, "p,q");
  session_case_write(a, m);
}

START_TEST(by_shape) {
  session_case_write_relu();
  session *s = session_case_open(session_case_path, backends[_i]);
  const compiler_model *source = session_source(s);
  ck_assert(source->n_inputs == 1 && source->n_outputs == 1 && strcmp(source->inputs[0].name, "x") == 0);
  ck_assert(source->inputs[0].shape.dims[0] == -1 && strcmp(source->inputs[0].dim_names[1], "m") == 0);
  const session_program *a = session_case_compile(s, 2, 3), *b = session_case_compile(s, 4, 5);
  ck_assert(a != b && session_case_compile(s, 2, 3) == a && session_case_compile(s, 4, 5) == b);
  ck_assert(!session_program_needs_contents(a));
  session_case_run_relu(s, a, 6);
  session_case_run_relu(s, b, 20);
  session_case_run_relu(s, session_case_compile(s, 0, 3), 0);
  session_close(s);
}
END_TEST

/* 0 threads means as many as there are cores when the session is opened. */
START_TEST(all_cores) {
  cpu_set_t one;
  session_case_write_relu();
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
  session *s = session_case_open_with(session_case_path, (session_options){.open_dim = 1});
  ck_assert_uint_eq(session_threads(s), 1);
  ck_assert_uint_eq(session_request(s, &(session_inputs){0}).options.threads, 1);
  session_close(s);
  s = session_case_open_with(session_case_path, (session_options){.open_dim = 1, .compile.threads = 3});
  ck_assert_uint_eq(session_threads(s), 3);
  session_close(s);
}
END_TEST

/* Makes the thunks that read the first input read the arena instead, behind all bytes that are written
 * there. */
static void move_input(rt_program *p) {
  for (uint32_t k = 0; k < p->body.n; k++) {
    for (uint32_t b = 0; b < p->body.thunks[k].n_inputs; b++) {
      rt_buffer *buffer = &p->body.thunks[k].buffers[b];
      if (buffer->space == RT_PARAM) {
        buffer->space = RT_ARENA;
        buffer->offset = (rt_size)p->arena_bytes;
      }
    }
  }
  p->arena_bytes += 64;
}

/* A program reads memory to which nothing was written; only a session with the option check_memory notices
 * that. */
START_TEST(checked_memory) {
  session_case_write_relu();
  for (int check = 0; check < 2; check++) {
    float x[6] = {0}, y[6];
    session *s = session_case_open_with(
        session_case_path, (session_options){.backend = backends[_i], .open_dim = 1, .check_memory = check});
    const session_program *c = session_case_compile(s, 2, 3);
    session_output out = {.given = y, .given_bytes = sizeof y};
    move_input((rt_program *)c->program);
    status failed = session_run(s, c, NULL, &(session_inputs){.values = (const void *[]){x}}, &out);
    bool found = failed && strstr(status_message(failed), "output 'y' is not defined: nothing wrote it");
    ck_assert_msg(check ? found : !failed, "%s", status_message(failed));
    status_free(failed);
    session_close(s);
  }
}
END_TEST

START_TEST(saved) {
  session_case_write_relu();
  session *s = session_case_open(session_case_path, backends[_i]);
  ASSERT_FAILS(session_save(s, session_case_path), STATUS_INVALID_ARGUMENT, "nothing");
  (void)session_case_compile(s, 2, 3);
  (void)session_case_compile(s, 4, 5);
  ASSERT_OK(session_save(s, session_case_path)); /* overwrites the model, which is mapped */
  session_close(s);
  s = session_case_open(session_case_path, NULL);
  ck_assert(session_is_image(s));
  session_case_run_relu(s, session_case_compile(s, 4, 5), 20);
  session_case_run_relu(s, session_case_compile(s, 2, 3), 6);
  const session_program *c = session_case_compile(s, 7, 9); /* the second compilation was for all sizes */
  ck_assert(c->general && c->program->params[0].shape.dims[1] == 9);
  session_case_run_relu(s, c, 63);
  session_close(s);
}
END_TEST

/* Code may call functions of the library that compiled it, but not the code that a file keeps. */
START_TEST(saved_without_functions) {
  const char *numbers = "", *type = "f32[16,32]";
  arena *a = arena_create(NULL);
  for (int k = 0; k < 16 * 32; k++) {
    numbers = arena_printf(a, "%s%s%d.5", numbers, k ? ", " : "", k % 7);
  }
  const char *text = arena_printf(a,
                                  "onnx-xla hlo 1\nmodule \"m\" {\n  entry main(%%0: f32[n,16] \"x\") {\n"
                                  "    %%1 = constant() {value=%s {%s}} : %s\n"
                                  "    %%2 = dot(%%0, %%1) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], "
                                  "rhs_contract=[0]} : f32[n,32]\n    return %%2 \"y\"\n  }\n}\n",
                                  type, numbers, type);
  ASSERT_OK(file_write(session_case_path, text, strlen(text)));
  for (int portable = 0; portable < 2; portable++) {
    session *s = session_case_open_with(session_case_path, (session_options){.compile.portable = portable});
    const session_program *c = session_case_compile(s, 5, 16);
    bool calls = !portable && cpu_target.functions();
    ck_assert_int_eq(rt_processor_has_functions(c->program->cpu), calls);
    if (calls) { /* the file's program is compiled within the time of a compilation */
      s->options.max_seconds = 1e-9;
      ASSERT_FAILS(session_save(s, session_case_path), STATUS_RESOURCE, "time");
      s->options.max_seconds = 0;
    }
    ASSERT_OK(session_save(s, session_case_path));
    session_close(s);
    s = session_case_open(session_case_path, NULL);
    c = session_case_compile(s, 3, 16);
    ck_assert(c->general && !rt_processor_has_functions(c->program->cpu));
    session_close(s);
    ASSERT_OK(file_write(session_case_path, text, strlen(text)));
  }
  arena_destroy(a);
}
END_TEST

/* A file with a program for one set of sizes refuses others. */
START_TEST(saved_for_one_size) {
  const session_program *c;
  shape other = shape_make(DTYPE_F32, 2, (dim[]){7, 7});
  session_case_write_relu();
  session *s = session_case_open_with(
      session_case_path,
      (session_options){.backend = backends[_i], .open_dim = 1, .specialise = "full", .compile.threads = 1});
  (void)session_case_compile(s, 2, 3);
  ASSERT_OK(session_save(s, session_case_path));
  session_close(s);
  s = session_case_open(session_case_path, NULL);
  ASSERT_FAILS(session_compile(s, &(session_inputs){.shapes = (const shape *[]){&other}}, &c), STATUS_INVALID_ARGUMENT,
               "f32[7,7]");
  session_close(s);
}
END_TEST

/* The programs of a session are bindings of one program for all sizes; with --specialise=full or --deterministic, one
 * is compiled for each set of sizes. */
START_TEST(all_sizes) {
  static const char *const choices[] = {NULL, "full", NULL};
  session_case_write_relu();
  session *s = session_case_open_with(session_case_path, (session_options){.backend = "cpu",
                                                                           .open_dim = 1,
                                                                           .specialise = choices[_i],
                                                                           .compile.numerics.deterministic = _i == 2,
                                                                           .compile.threads = 1});
  const session_program *first = session_case_compile(s, 2, 3), *general = first->general;
  ck_assert((general != NULL) == (_i == 0));
  for (int k = 0; k < 128; k++) {
    const session_program *c = session_case_compile(s, 3 + k % 7, k % 13);
    ck_assert_ptr_eq(c->general, general);
    session_case_run_relu(s, c, (3 + k % 7) * (k % 13));
    session_release(s, c);
  }
  ck_assert_ptr_eq(session_case_compile(s, 2, 3), first);
  session_close(s);
}
END_TEST

/* y = RandomUniform(), f32[100]. */
static void write_random(void) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "", "y");
  Onnx__AttributeProto *t = add_attribute(a, graph_node(a, m->graph, "RandomUniform", "", "y"), "shape");
  t->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
  t->has_type = 1;
  t->n_ints = 1;
  t->ints = ARENA_NEW(a, int64_t);
  *t->ints = 100;
  session_case_set_type(a, m->graph->output[0], 1, "100");
  session_case_write(a, m);
}

static void run_random(session *s, const uint64_t *seed, float *y) {
  const session_program *c;
  ASSERT_OK(session_compile(s, &(session_inputs){0}, &c));
  session_output out = {.given = y, .given_bytes = 100 * sizeof *y};
  ASSERT_OK(session_run(s, c, seed, &(session_inputs){0}, &out));
}

/* Runs with the same seed draw the same numbers, also from a saved file; every run without a seed draws others. */
START_TEST(seeds) {
  enum { BYTES = 100 * sizeof(float) };
  float y[4][100], again[100];
  const uint64_t five = 5;
  write_random();
  session *s = session_case_open(session_case_path, backends[_i]);
  for (int k = 0; k < 3; k++) {
    run_random(s, k ? NULL : &five, y[k]);
  }
  run_random(s, &five, again);
  ck_assert_mem_eq(again, y[0], BYTES);
  ASSERT_OK(session_save(s, session_case_path));
  session_close(s);
  s = session_case_open(session_case_path, NULL);
  run_random(s, &five, again);
  ck_assert_mem_eq(again, y[0], BYTES);
  run_random(s, NULL, y[3]);
  for (int k = 0; k < 4; k++) {
    for (int j = 0; j < k; j++) {
      ck_assert_mem_ne(y[j], y[k], BYTES);
    }
  }
  session_close(s);
}
END_TEST

static void run_reshape(session *s, int64_t p, int64_t q, const session_program **out) {
  float x[6] = {0, 1, 2, 3, 4, 5}, y[6] = {0};
  int64_t want[] = {p, q};
  const void *values[] = {x, want};
  const shape shapes[] = {shape_make(DTYPE_F32, 1, (dim[]){6}), shape_make(DTYPE_S64, 1, (dim[]){2})};
  session_inputs inputs = {.shapes = (const shape *[]){&shapes[0], &shapes[1]}, .values = values};
  ASSERT_OK(session_compile(s, &inputs, out));
  ck_assert(session_program_needs_contents(*out));
  const shape *got = &(*out)->program->results[0].shape;
  ck_assert(got->rank == 2 && got->dims[0] == p && got->dims[1] == q);
  session_output output = {.given = y, .given_bytes = sizeof y};
  ASSERT_OK(session_run(s, *out, NULL, &inputs, &output));
  ck_assert(memcmp(x, y, sizeof x) == 0);
}

/* If the contents of an input decide sizes, programs are distinguished by these contents, too, also in
 * files. */
START_TEST(by_value) {
  const session_program *a, *b, *c;
  write_reshape();
  session *s = session_case_open(session_case_path, backends[_i]);
  ASSERT_FAILS(session_compile(s, &(session_inputs){0}, &c), STATUS_UNSUPPORTED, "shape");
  run_reshape(s, 2, 3, &a);
  run_reshape(s, 3, 2, &b);
  run_reshape(s, 2, 3, &c);
  ck_assert(a != b && a == c);
  ASSERT_OK(session_save(s, session_case_path));
  session_close(s);
  s = session_case_open(session_case_path, NULL);
  run_reshape(s, 3, 2, &a);
  run_reshape(s, 2, 3, &b);
  ck_assert(a != b);
  session_close(s);
}
END_TEST

START_TEST(dims) {
  const session_program *c;
  session_case_write_relu();
  compiler_dim n = {"n", 5};
  session *s = session_case_open_with(session_case_path, (session_options){.backend = "ref", .dims = &n, .n_dims = 1});
  ASSERT_FAILS(session_compile(s, &(session_inputs){0}, &c), STATUS_INVALID_ARGUMENT, "m");
  session_close(s);
  s = session_case_open_with(session_case_path,
                             (session_options){.backend = "ref", .dims = &n, .n_dims = 1, .open_dim = 3});
  shape wanted = session_input_shape(s, &(session_inputs){0}, 0);
  ck_assert(wanted.dims[0] == 5 && wanted.dims[1] == 3);
  ASSERT_OK(session_compile(s, &(session_inputs){0}, &c));
  ck_assert(shape_equal(&c->program->params[0].shape, &wanted));
  session_close(s);
  compiler_dim wrong[] = {n, {"k", 5}};
  ASSERT_FAILS(
      session_open(session_case_path, NULL, 0, &(session_options){.backend = "ref", .dims = wrong, .n_dims = 2}, &s),
      STATUS_INVALID_ARGUMENT, "no input has a dimension 'k'; the model's named dimensions are: n, m");
}
END_TEST

/* The model's own names of dimensions may have characters that are not shown.  Such a name means the dimension whose
 * shown name comes from it. */
START_TEST(own_names_of_dims) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  graph_node(a, m->graph, "Relu", "x", "y");
  session_case_set_type(a, m->graph->input[0], 1, "a-b,c d");
  session_case_set_type(a, m->graph->output[0], 1, "a-b,c d");
  session_case_write(a, m);
  compiler_dim own[] = {{"c d", 3}, {"a-b", 2}}, mixed[] = {{"c_d", 3}, {"a-b", 2}};
  for (int k = 0; k < 2; k++) {
    const session_program *c;
    session *s = session_case_open_with(session_case_path,
                                        (session_options){.backend = "ref", .dims = k == 0 ? own : mixed, .n_dims = 2});
    ASSERT_OK(session_compile(s, &(session_inputs){0}, &c));
    ck_assert(shape_equal(&c->program->params[0].shape, &(shape){.type = DTYPE_F32, .rank = 2, .dims = {2, 3}}));
    session_close(s);
  }
}
END_TEST

/* If several of the model's names look alike, they are shown with numbers.  Then only the shown names are accepted, and
 * none is taken for another dimension's. */
START_TEST(shown_names_of_dims) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  graph_node(a, m->graph, "Relu", "x", "y");
  session_case_set_type(a, m->graph->input[0], 1, "a-b,a_b,a b");
  session_case_set_type(a, m->graph->output[0], 1, "a-b,a_b,a b");
  session_case_write(a, m);
  static const char *const own[] = {"a-b", "a b", "a_b.3"};
  for (int k = 0; k < 3; k++) {
    session *none;
    const compiler_dim given = {own[k], 2};
    ASSERT_FAILS(session_open(session_case_path, NULL, 0,
                              &(session_options){.backend = "ref", .dims = &given, .n_dims = 1}, &none),
                 STATUS_INVALID_ARGUMENT, "the model's named dimensions are: a_b, a_b.1, a_b.2");
  }
  compiler_dim shown[] = {{"a_b.2", 4}, {"a_b", 2}, {"a_b.1", 3}};
  session *s =
      session_case_open_with(session_case_path, (session_options){.backend = "ref", .dims = shown, .n_dims = 3});
  const session_program *c;
  ASSERT_OK(session_compile(s, &(session_inputs){0}, &c));
  ck_assert(shape_equal(&c->program->params[0].shape, &(shape){.type = DTYPE_F32, .rank = 3, .dims = {2, 3, 4}}));
  session_close(s);
}
END_TEST

START_TEST(wrong_inputs) {
  const session_program *c;
  session_case_write_relu();
  session *s = session_case_open(session_case_path, "ref");
  shape wrong = shape_make(DTYPE_S32, 2, (dim[]){2, 3});
  ASSERT_FAILS(session_compile(s, &(session_inputs){.shapes = (const shape *[]){&wrong}}, &c), STATUS_INVALID_ARGUMENT,
               "input 'x' is s32[2,3]");
  wrong = shape_make(DTYPE_F32, 1, (dim[]){2});
  ASSERT_FAILS(session_compile(s, &(session_inputs){.shapes = (const shape *[]){&wrong}}, &c), STATUS_INVALID_ARGUMENT,
               "input 'x' is f32[2]");
  session_close(s);
}
END_TEST

START_TEST(hlo_text) {
  static const char text[] =
      "onnx-xla hlo 1\nmodule \"m\" {\n  entry main(%0: f32[2,3] \"x\") {\n"
      "    %1 = constant() {value=f32[] 0} : f32[]\n"
      "    %2 = broadcast(%1) {dimensions=[]} : f32[2,3]\n"
      "    %3 = maximum(%0, %2) : f32[2,3]\n    return %3 \"y\"\n  }\n}\n";
  ASSERT_OK(file_write(session_case_path, text, strlen(text)));
  session *s = session_case_open(session_case_path, backends[_i]);
  session_case_run_relu(s, session_case_compile(s, 2, 3), 6);
  session_close(s);
}
END_TEST

START_TEST(budgets) {
  session *s;
  session_case_write_relu();
  session_options small = {.backend = "ref", .open_dim = 1, .max_memory = 1000};
  ASSERT_FAILS(session_open(session_case_path, NULL, 0, &small, &s), STATUS_RESOURCE, session_case_path);
  ck_assert(!s);
  session_options none = {.backend = "nothing"};
  ASSERT_FAILS(session_open(session_case_path, NULL, 0, &none, &s), STATUS_INVALID_ARGUMENT, "nothing");
  ASSERT_FAILS(session_open("/nowhere/at all", NULL, 0, &none, &s), STATUS_IO, "/nowhere/at all: ");
  session_options ref = {.backend = "ref"};
  ASSERT_FAILS(session_open("/nowhere/at all", NULL, 0, &ref, &s), STATUS_IO, "/nowhere/at all: ");
}
END_TEST

enum { ROWS = 256, COLUMNS = 64 };

static float weight(int64_t k) { return (float)(k % 97) - 40; }

/* Writes a model of one node with the inputs x, whose elements have type `x_type`, and the weights f32[256,64]. */
static void write_weights(const char *op, const char *inputs, const char *weights, int x_type, const char *x_dims) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  graph_node(a, m->graph, op, inputs, "y");
  session_case_set_type(a, m->graph->input[0], x_type, x_dims);
  session_case_set_type(a, m->graph->output[0], 1, "n,64");
  float *data = ARENA_NEW_N(a, float, ROWS *COLUMNS);
  for (int k = 0; k < ROWS * COLUMNS; k++) {
    data[k] = weight(k);
  }
  Onnx__TensorProto *w = new_tensor(a, weights, 1, 2, (int64_t[]){ROWS, COLUMNS});
  set_raw(a, w, data, ROWS * COLUMNS * sizeof *data);
  PB_ADD(a, m->graph->initializer, m->graph->n_initializer, w);
  session_case_write(a, m);
}

static const void *largest_constant(const session_program *c) {
  const rt_span *largest = NULL;
  for (uint32_t k = 0; k < c->program->n_constants; k++) {
    largest = !largest || c->program->constants[k].size > largest->size ? &c->program->constants[k] : largest;
  }
  ck_assert(largest && largest->size >= ROWS * COLUMNS * sizeof(float));
  return largest->data;
}

/* If each program of a session is for one set of sizes, they all share one array of weights, whether they were compiled
 * or come from the cache's folder. */
START_TEST(one_array_of_weights) {
  char folder[] = "/tmp/check-session-cache-XXXXXX", command[100];
  ck_assert_ptr_nonnull(mkdtemp(folder));
  write_weights("MatMul", "x,w", "w", 1, "n,256");
  session_options options = {
      .cache = folder, .tune = "off", .specialise = "full", .keep_programs = true, .compile.threads = 1};
  for (int start = 0; start < 3; start++) {
    session *s = session_case_open_with(session_case_path, options);
    const session_program *a = session_case_compile(s, 40, 256), *b = session_case_compile(s, 50 + start, 256),
                          *c = session_case_compile(s, 50, 256);
    ck_assert(a->from_cache == (start > 0) && !b->from_cache);
    ck_assert(c == b || c->from_cache);
    ck_assert_ptr_eq(largest_constant(a), largest_constant(b));
    ck_assert_ptr_eq(largest_constant(a), largest_constant(c));
    session_close(s);
  }
  snprintf(command, sizeof command, "rm -r %s", folder);
  ck_assert_int_eq(system(command), 0);
}
END_TEST

/* A table from which rows are gathered is read in the model's file, wherever it begins there. */
START_TEST(a_table_in_the_file) {
  uint32_t unaligned = 0;
  for (int k = 0; k < 4; k++) { /* the length of the name, which is there twice, moves the table in the file */
    static const char *const names[] = {"w", "wt", "wta", "wtab"};
    const int64_t x[] = {3, 255, 0};
    char inputs[16];
    session_output out = {0};
    snprintf(inputs, sizeof inputs, "%s,x", names[k]);
    write_weights("Gather", inputs, names[k], 7, "n");
    session *s = session_case_open(session_case_path, "cpu");
    shape three = shape_make(DTYPE_S64, 1, (dim[]){3});
    const session_program *c;
    ASSERT_OK(session_compile(s, &(session_inputs){.shapes = (const shape *[]){&three}}, &c));
    ASSERT_OK(session_run(s, c, NULL, &(session_inputs){.values = (const void *[]){x}}, &out));
    for (int64_t j = 0; j < 3 * COLUMNS; j++) {
      ck_assert_float_eq(((const float *)out.data)[j], weight(x[j / COLUMNS] * COLUMNS + j % COLUMNS));
    }
    unaligned += (uintptr_t)largest_constant(c) % sizeof(float) != 0;
    session_output_finish(s, &out);
    session_close(s);
  }
  ck_assert_uint_ge(unaligned, 2);
}
END_TEST

/* A session that has found its model in the cache reads the model's file only when it must compile.
 * Compiling fails if another model was written over the file, or renamed to its path, since the session was
 * opened. */
START_TEST(changed_behind_the_cache) {
  char folder[] = "/tmp/check-session-cache-XXXXXX", command[100];
  const session_program *c;
  shape other = shape_make(DTYPE_F32, 2, (dim[]){2, 3});
  session_inputs inputs = {.shapes = (const shape *[]){&other}};
  session_options options = {
      .cache = folder, .tune = "off", .specialise = "full", .keep_programs = true, .compile.threads = 1};
  ck_assert_ptr_nonnull(mkdtemp(folder));
  session_case_write_relu();
  session *s = session_case_open_with(session_case_path, options);
  session_case_compile(s, 4, 5);
  session_close(s);
  s = session_case_open_with(session_case_path, options);
  session_case_run_relu(s, session_case_compile(s, 4, 5), 20);
  session_case_run_relu(s, session_case_compile(s, 2, 4), 8);
  session_close(s);
  s = session_case_open_with(session_case_path, options);
  if (_i) {
    FILE *f = fopen(session_case_path, "r+");
    ck_assert(f && fputc(8, f) == 8 && fclose(f) == 0); /* writes the byte that the file has already, which
                                                           changes its times */
  } else {
    write_reshape();
  }
  session_case_run_relu(s, session_case_compile(s, 4, 5), 20);
  ASSERT_FAILS(session_compile(s, &inputs, &c), STATUS_INVALID_FILE, "the file has changed since it was opened");
  session_close(s);
  snprintf(command, sizeof command, "rm -r %s", folder);
  ck_assert_int_eq(system(command), 0);
}
END_TEST

/* --- names --- */

START_TEST(names_of_files) {
  status s = status_name_file(status_error(STATUS_IO, "a.onnx cannot be opened"), "a.onnx");
  ck_assert_str_eq(status_message(s), "a.onnx: cannot be opened");
  s = status_name_file(s, "a.onnx");
  ck_assert_str_eq(status_message(s), "a.onnx: cannot be opened");
  ck_assert_int_eq(status_get_code(s), STATUS_IO);
  s = status_name_file(s, "a");
  ck_assert_str_eq(status_message(s), "a: a.onnx: cannot be opened");
  status_free(s);
  ck_assert(!status_name_file(NULL, "a"));
}
END_TEST

int main(void) {
  TCase *c = tcase_create("session");
  tcase_add_checked_fixture(c, session_case_setup, session_case_teardown);
  tcase_add_loop_test(c, by_shape, 0, 2);
  tcase_add_test(c, all_cores);
  tcase_add_loop_test(c, checked_memory, 0, 2);
  tcase_add_loop_test(c, saved, 0, 2);
  tcase_add_loop_test(c, seeds, 0, 2);
  tcase_add_loop_test(c, by_value, 0, 2);
  tcase_add_test(c, dims);
  tcase_add_test(c, own_names_of_dims);
  tcase_add_test(c, shown_names_of_dims);
  tcase_add_test(c, wrong_inputs);
  tcase_add_loop_test(c, hlo_text, 0, 2);
  tcase_add_test(c, budgets);
  tcase_add_test(c, one_array_of_weights);
  tcase_add_test(c, a_table_in_the_file);
  tcase_add_loop_test(c, saved_for_one_size, 0, 2);
  tcase_add_test(c, saved_without_functions);
  tcase_add_loop_test(c, all_sizes, 0, 3);
  tcase_add_loop_test(c, changed_behind_the_cache, 0, 2);
  tcase_add_test(c, names_of_files);
  return run_suite("session", c);
}
