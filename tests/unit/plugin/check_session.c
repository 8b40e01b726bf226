/* check_session.c - sessions: programs by shape and by content, files, dims, budgets, many threads. */
#include <check.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/unit/frontend/build_model.h"
#include "tests/unit/plugin/compiler_half.h"
#include "plugin/session/session.h"
#include "tests/suite.h"

/* --- helpers --- */

static const char *const backends[] = {"ref", "cpu"};
static char path[] = "/tmp/check-session-XXXXXX";

static void setup(void) {
  strcpy(path + sizeof path - 7, "XXXXXX");
  int fd = mkstemp(path);
  ck_assert(fd >= 0);
  close(fd);
}

static void teardown(void) { unlink(path); }

/* Fails with that code, and the message has the words in it. */
#define ASSERT_FAILS(expression, code, words)                                                                    \
  do {                                                                                                           \
    status bad_ = (expression);                                                                                  \
    ck_assert_msg(bad_, "%s succeeds", #expression);                                                             \
    ck_assert_msg(status_get_code(bad_) == (code) && strstr(status_message(bad_), words), "%s: %s", #expression, \
                  status_message(bad_));                                                                         \
    status_free(bad_);                                                                                           \
  } while (0)

static session *open_with(const char *file, session_options options) {
  session *s;
  ASSERT_OK(session_open(file, NULL, 0, &options, &s));
  return s;
}

static session *open_file(const char *file, const char *backend) {
  return open_with(file, (session_options){.backend = backend, .open_dim = 1, .compile.threads = 1});
}

/* The program for one f32 input of that shape. */
static const session_program *compile(session *s, int64_t rows, int64_t columns) {
  shape given = shape_make(DTYPE_F32, 2, (dim[]){rows, columns});
  const session_program *c;
  ASSERT_OK(session_compile(s, &(session_inputs){.shapes = (const shape *[]){&given}}, &c));
  return c;
}

static void run_relu(session *s, const session_program *c, int64_t n) {
  float x[64], y[64];
  for (int64_t k = 0; k < n; k++) {
    x[k] = k % 2 ? (float)-k : (float)k;
  }
  session_output out = {.given = y, .given_bytes = (size_t)n * sizeof *y};
  ASSERT_OK(session_run(s, c, NULL, &(session_inputs){.values = (const void *[]){x}}, &out));
  for (int64_t k = 0; k < n; k++) {
    ck_assert(y[k] == (k % 2 ? 0 : x[k]));
  }
}

/* --- models --- */

static void set_type(arena *a, Onnx__ValueInfoProto *v, int type, const char *dims) {
  Onnx__TypeProto *t = PB_NEW(a, Onnx__TypeProto, ONNX__TYPE_PROTO__INIT);
  Onnx__TypeProto__Tensor *tensor = PB_NEW(a, Onnx__TypeProto__Tensor, ONNX__TYPE_PROTO__TENSOR__INIT);
  tensor->has_elem_type = 1;
  tensor->elem_type = type;
  tensor->shape = PB_NEW(a, Onnx__TensorShapeProto, ONNX__TENSOR_SHAPE_PROTO__INIT);
  size_t n;
  char **list = names(a, dims, &n);
  for (size_t k = 0; k < n; k++) {
    Onnx__TensorShapeProto__Dimension *d =
        PB_NEW(a, Onnx__TensorShapeProto__Dimension, ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT);
    bool fixed = *list[k] >= '0' && *list[k] <= '9';
    d->value_case = fixed ? ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE
                          : ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    if (fixed) {
      d->dim_value = atoi(list[k]);
    } else {
      d->dim_param = list[k];
    }
    PB_ADD(a, tensor->shape->dim, tensor->shape->n_dim, d);
  }
  t->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  t->tensor_type = tensor;
  v->type = t;
}

static void write_model(arena *a, const Onnx__ModelProto *m) {
  size_t size;
  uint8_t *bytes = pack(a, m, &size);
  ASSERT_OK(file_write(path, bytes, size));
  arena_destroy(a);
}

/* y = Relu(x), f32[n,m]. */
static void write_relu(void) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  graph_node(a, m->graph, "Relu", "x", "y");
  set_type(a, m->graph->input[0], 1, "n,m");
  set_type(a, m->graph->output[0], 1, "n,m");
  write_model(a, m);
}

/* y = Reshape(x, shape): f32[6], int64[2]. */
static void write_reshape(void) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x,shape", "y");
  graph_node(a, m->graph, "Reshape", "x,shape", "y");
  set_type(a, m->graph->input[0], 1, "6");
  set_type(a, m->graph->input[1], 7, "2");
  set_type(a, m->graph->output[0], 1, "p,q");
  write_model(a, m);
}

/* --- tests --- */

START_TEST(by_shape) {
  write_relu();
  session *s = open_file(path, backends[_i]);
  const compiler_model *source = session_source(s);
  ck_assert(source->n_inputs == 1 && source->n_outputs == 1 && strcmp(source->inputs[0].name, "x") == 0);
  ck_assert(source->inputs[0].shape.dims[0] == -1 && strcmp(source->inputs[0].dim_names[1], "m") == 0);
  const session_program *a = compile(s, 2, 3), *b = compile(s, 4, 5);
  ck_assert(a != b && compile(s, 2, 3) == a && compile(s, 4, 5) == b);
  ck_assert(!session_program_has_values(a));
  run_relu(s, a, 6);
  run_relu(s, b, 20);
  run_relu(s, compile(s, 0, 3), 0);
  session_close(s);
}
END_TEST

/* 0 threads are as many as there are cores, from opening on. */
START_TEST(all_cores) {
  cpu_set_t one;
  write_relu();
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
  session *s = open_with(path, (session_options){.open_dim = 1});
  ck_assert_uint_eq(session_threads(s), 1);
  ck_assert_uint_eq(session_request(s, &(session_inputs){0}).options.threads, 1);
  session_close(s);
  s = open_with(path, (session_options){.open_dim = 1, .compile.threads = 3});
  ck_assert_uint_eq(session_threads(s), 3);
  session_close(s);
}
END_TEST

/* What read the first input reads the arena, behind all that is written there. */
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

/* A program that reads what nothing wrote, as only a session with the option sees. */
START_TEST(checked_memory) {
  write_relu();
  for (int check = 0; check < 2; check++) {
    float x[6] = {0}, y[6];
    session *s = open_with(path, (session_options){.backend = backends[_i], .open_dim = 1, .check_memory = check});
    const session_program *c = compile(s, 2, 3);
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
  write_relu();
  session *s = open_file(path, backends[_i]);
  ASSERT_FAILS(session_save(s, path), STATUS_INVALID_ARGUMENT, "nothing");
  (void)compile(s, 2, 3);
  (void)compile(s, 4, 5);
  ASSERT_OK(session_save(s, path)); /* over the model, which is mapped */
  session_close(s);
  s = open_file(path, NULL);
  ck_assert(session_is_image(s));
  run_relu(s, compile(s, 4, 5), 20);
  run_relu(s, compile(s, 2, 3), 6);
  shape other = shape_make(DTYPE_F32, 2, (dim[]){7, 7});
  const session_program *c;
  ASSERT_FAILS(session_compile(s, &(session_inputs){.shapes = (const shape *[]){&other}}, &c), STATUS_INVALID_ARGUMENT,
               "f32[7,7]");
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
  set_type(a, m->graph->output[0], 1, "100");
  write_model(a, m);
}

static void run_random(session *s, const uint64_t *seed, float *y) {
  const session_program *c;
  ASSERT_OK(session_compile(s, &(session_inputs){0}, &c));
  session_output out = {.given = y, .given_bytes = 100 * sizeof *y};
  ASSERT_OK(session_run(s, c, seed, &(session_inputs){0}, &out));
}

/* The same numbers for the same seed, also from a saved file; others for every run without one. */
START_TEST(seeds) {
  enum { BYTES = 100 * sizeof(float) };
  float y[4][100], again[100];
  const uint64_t five = 5;
  write_random();
  session *s = open_file(path, backends[_i]);
  for (int k = 0; k < 3; k++) {
    run_random(s, k ? NULL : &five, y[k]);
  }
  run_random(s, &five, again);
  ck_assert_mem_eq(again, y[0], BYTES);
  ASSERT_OK(session_save(s, path));
  session_close(s);
  s = open_file(path, NULL);
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
  ck_assert(session_program_has_values(*out));
  const shape *got = &(*out)->program->results[0].shape;
  ck_assert(got->rank == 2 && got->dims[0] == p && got->dims[1] == q);
  session_output output = {.given = y, .given_bytes = sizeof y};
  ASSERT_OK(session_run(s, *out, NULL, &inputs, &output));
  ck_assert(memcmp(x, y, sizeof x) == 0);
}

/* What an input holds decides sizes: programs are kept by that too, also in files. */
START_TEST(by_value) {
  const session_program *a, *b, *c;
  write_reshape();
  session *s = open_file(path, backends[_i]);
  ASSERT_FAILS(session_compile(s, &(session_inputs){0}, &c), STATUS_UNSUPPORTED, "shape");
  run_reshape(s, 2, 3, &a);
  run_reshape(s, 3, 2, &b);
  run_reshape(s, 2, 3, &c);
  ck_assert(a != b && a == c);
  ASSERT_OK(session_save(s, path));
  session_close(s);
  s = open_file(path, NULL);
  run_reshape(s, 3, 2, &a);
  run_reshape(s, 2, 3, &b);
  ck_assert(a != b);
  session_close(s);
}
END_TEST

START_TEST(dims) {
  const session_program *c;
  write_relu();
  compiler_dim n = {"n", 5};
  session *s = open_with(path, (session_options){.backend = "ref", .dims = &n, .n_dims = 1});
  ASSERT_FAILS(session_compile(s, &(session_inputs){0}, &c), STATUS_INVALID_ARGUMENT, "m");
  session_close(s);
  s = open_with(path, (session_options){.backend = "ref", .dims = &n, .n_dims = 1, .open_dim = 3});
  shape wanted = session_input_shape(s, &(session_inputs){0}, 0);
  ck_assert(wanted.dims[0] == 5 && wanted.dims[1] == 3);
  ASSERT_OK(session_compile(s, &(session_inputs){0}, &c));
  ck_assert(shape_equal(&c->program->params[0].shape, &wanted));
  session_close(s);
  compiler_dim wrong[] = {n, {"k", 5}};
  ASSERT_FAILS(session_open(path, NULL, 0, &(session_options){.backend = "ref", .dims = wrong, .n_dims = 2}, &s),
               STATUS_INVALID_ARGUMENT, "no input has a dimension 'k'; the model's named dimensions are: n, m");
}
END_TEST

START_TEST(wrong_inputs) {
  const session_program *c;
  write_relu();
  session *s = open_file(path, "ref");
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
  ASSERT_OK(file_write(path, text, strlen(text)));
  session *s = open_file(path, backends[_i]);
  run_relu(s, compile(s, 2, 3), 6);
  session_close(s);
}
END_TEST

START_TEST(budgets) {
  session *s;
  write_relu();
  session_options small = {.backend = "ref", .open_dim = 1, .max_memory = 1000};
  ASSERT_FAILS(session_open(path, NULL, 0, &small, &s), STATUS_RESOURCE, path);
  ck_assert(!s);
  session_options none = {.backend = "nothing"};
  ASSERT_FAILS(session_open(path, NULL, 0, &none, &s), STATUS_INVALID_ARGUMENT, "nothing");
  ASSERT_FAILS(session_open("/nowhere/at all", NULL, 0, &none, &s), STATUS_IO, "/nowhere/at all: ");
  session_options ref = {.backend = "ref"};
  ASSERT_FAILS(session_open("/nowhere/at all", NULL, 0, &ref, &s), STATUS_IO, "/nowhere/at all: ");
}
END_TEST

/* Many threads that want programs of the same few shapes: one each is made, and all runs are right. */
enum { THREADS = 8, ROUNDS = 50, SHAPES = 5 };

typedef struct worker {
  session *s;
  const session_program *seen[SHAPES];
} worker;

static void *work(void *data) {
  worker *w = data;
  for (int k = 0; k < ROUNDS; k++) {
    int rows = 1 + k % SHAPES;
    const session_program *c = compile(w->s, rows, 4);
    w->seen[rows - 1] = c;
    run_relu(w->s, c, rows * 4);
  }
  return NULL;
}

START_TEST(threads) {
  write_relu();
  pthread_t ids[THREADS];
  worker workers[THREADS] = {{.s = open_file(path, backends[_i])}};
  for (int k = 0; k < THREADS; k++) {
    workers[k].s = workers[0].s;
    ck_assert(pthread_create(&ids[k], NULL, work, &workers[k]) == 0);
  }
  for (int k = 0; k < THREADS; k++) {
    pthread_join(ids[k], NULL);
    ck_assert(memcmp(workers[k].seen, workers[0].seen, sizeof workers[0].seen) == 0);
  }
  session_close(workers[0].s);
}
END_TEST

/* y = ConstantOfShape(Shape(NonZero(x))), x f32[n]: a size that depends on what is computed. */
static void write_pieces(void) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  graph_node(a, m->graph, "NonZero", "x", "nz");
  graph_node(a, m->graph, "Shape", "nz", "s");
  graph_node(a, m->graph, "ConstantOfShape", "s", "y");
  set_type(a, m->graph->input[0], 1, "n");
  set_type(a, m->graph->output[0], 1, "p,q");
  write_model(a, m);
}

/* More sizes than a session keeps pieces for. */
static void *work_in_pieces(void *data) {
  session *s = data;
  session_output out = {0};
  for (int k = 0; k < 3 * ROUNDS; k++) {
    float x[100] = {0};
    int count = (k * 7) % 100;
    for (int i = 0; i < count; i++) {
      x[(i * 13) % 100] = 1;
    }
    shape given = shape_make(DTYPE_F32, 1, (dim[]){100});
    session_inputs inputs = {.shapes = (const shape *[]){&given}, .values = (const void *[]){x}};
    const session_program *c;
    ASSERT_OK(session_compile(s, &inputs, &c));
    ck_assert(!c->program && session_program_output(s, c, 0).dims[1] == -1);
    ASSERT_OK(session_run(s, c, NULL, &inputs, &out));
    ck_assert(out.shape.rank == 2 && out.shape.dims[0] == 1 && out.shape.dims[1] == count);
  }
  session_output_finish(s, &out);
  return NULL;
}

START_TEST(pieces) {
  write_pieces();
  pthread_t ids[THREADS];
  session *s = open_file(path, "ref");
  for (int k = 0; k < THREADS; k++) {
    ck_assert(pthread_create(&ids[k], NULL, work_in_pieces, s) == 0);
  }
  for (int k = 0; k < THREADS; k++) {
    pthread_join(ids[k], NULL);
  }
  ASSERT_OK(session_save(s, path)); /* with the model in it */
  session_close(s);
  s = open_file(path, NULL);
  (void)work_in_pieces(s);
  session_close(s);
}
END_TEST

/* x decides the size of w and is a result too; the size of k makes the model run in pieces.  The piece that took x for
 * a constant is there still when the first run's x is gone. */
START_TEST(piece_constants) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x,z", "w,y,k");
  graph_node(a, m->graph, "ConstantOfShape", "x", "w");
  graph_node(a, m->graph, "Identity", "x", "y");
  graph_node(a, m->graph, "NonZero", "z", "nz");
  graph_node(a, m->graph, "Shape", "nz", "s");
  graph_node(a, m->graph, "ConstantOfShape", "s", "k");
  set_type(a, m->graph->input[0], 7, "1");
  set_type(a, m->graph->input[1], 1, "m");
  set_type(a, m->graph->output[0], 1, "n");
  set_type(a, m->graph->output[1], 7, "1");
  set_type(a, m->graph->output[2], 1, "q,p");
  write_model(a, m);
  session *s = open_file(path, "ref");
  shape sizes = shape_make(DTYPE_S64, 1, (dim[]){1}), given = shape_make(DTYPE_F32, 1, (dim[]){100});
  session_output out[3];
  memset(out, 0, sizeof out);
  for (int k = 0; k < ROUNDS; k++) {
    int64_t x[1] = {3};
    float z[100] = {0, 1, (float)k};
    session_inputs inputs = {.shapes = (const shape *[]){&sizes, &given}, .values = (const void *[]){x, z}};
    const session_program *c;
    ASSERT_OK(session_compile(s, &inputs, &c));
    ck_assert(!c->program);
    ASSERT_OK(session_run(s, c, NULL, &inputs, out));
    ck_assert_int_eq(out[0].shape.dims[0], 3);
    ck_assert_int_eq(*(const int64_t *)out[1].data, 3);
    ck_assert_int_eq(out[2].shape.dims[1], k ? 2 : 1);
  }
  for (int k = 0; k < 3; k++) {
    session_output_finish(s, &out[k]);
  }
  session_close(s);
}
END_TEST

/* y = MatMul(x, w): f32[n,256], f32[256,64]. */
static void write_product(void) {
  enum { ROWS = 256, COLUMNS = 64 };
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x", "y");
  graph_node(a, m->graph, "MatMul", "x,w", "y");
  set_type(a, m->graph->input[0], 1, "n,256");
  set_type(a, m->graph->output[0], 1, "n,64");
  Onnx__TensorProto *w = PB_NEW(a, Onnx__TensorProto, ONNX__TENSOR_PROTO__INIT);
  float *data = ARENA_NEW_N(a, float, ROWS *COLUMNS);
  for (int k = 0; k < ROWS * COLUMNS; k++) {
    data[k] = (float)(k % 97) - 40;
  }
  w->name = arena_strdup(a, "w");
  w->has_data_type = 1;
  w->data_type = 1;
  w->dims = arena_memdup(a, (int64_t[]){ROWS, COLUMNS}, 2 * sizeof *w->dims);
  w->n_dims = 2;
  w->has_raw_data = 1;
  w->raw_data = (ProtobufCBinaryData){ROWS * COLUMNS * sizeof *data, (uint8_t *)data};
  PB_ADD(a, m->graph->initializer, m->graph->n_initializer, w);
  write_model(a, m);
}

static const void *largest_constant(const session_program *c) {
  const rt_span *largest = NULL;
  for (uint32_t k = 0; k < c->program->n_constants; k++) {
    largest = !largest || c->program->constants[k].size > largest->size ? &c->program->constants[k] : largest;
  }
  ck_assert(largest && largest->size >= 256 * 64 * sizeof(float));
  return largest->data;
}

/* Whether a program was compiled or comes from the cache's folder, all of a session have the same weights. */
START_TEST(one_array_of_weights) {
  char folder[] = "/tmp/check-session-cache-XXXXXX", command[100];
  ck_assert_ptr_nonnull(mkdtemp(folder));
  write_product();
  session_options options = {.cache = folder, .tune = "off", .keep_programs = true, .compile.threads = 1};
  for (int start = 0; start < 3; start++) {
    session *s = open_with(path, options);
    const session_program *a = compile(s, 40, 256), *b = compile(s, 50 + start, 256), *c = compile(s, 50, 256);
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

/* A session that has found its model in the cache reads it only when it must compile; then it must be the one that was
 * opened, whether another was written over it or renamed to its path. */
START_TEST(changed_behind_the_cache) {
  char folder[] = "/tmp/check-session-cache-XXXXXX", command[100];
  const session_program *c;
  shape other = shape_make(DTYPE_F32, 2, (dim[]){2, 3});
  session_inputs inputs = {.shapes = (const shape *[]){&other}};
  session_options options = {.cache = folder, .tune = "off", .keep_programs = true, .compile.threads = 1};
  ck_assert_ptr_nonnull(mkdtemp(folder));
  write_relu();
  session *s = open_with(path, options);
  compile(s, 4, 5);
  session_close(s);
  s = open_with(path, options);
  run_relu(s, compile(s, 4, 5), 20);
  run_relu(s, compile(s, 2, 4), 8);
  session_close(s);
  s = open_with(path, options);
  if (_i) {
    FILE *f = fopen(path, "r+");
    ck_assert(f && fputc(8, f) == 8 && fclose(f) == 0); /* the byte that stands there: the times change */
  } else {
    write_reshape();
  }
  run_relu(s, compile(s, 4, 5), 20);
  ASSERT_FAILS(session_compile(s, &inputs, &c), STATUS_INVALID_FILE, "the file has changed since it was opened");
  session_close(s);
  snprintf(command, sizeof command, "rm -r %s", folder);
  ck_assert_int_eq(system(command), 0);
}
END_TEST

/* --- one compiles, others run --- */

/* A compilation that stops between two passes until it is told to go on. */
typedef struct gate {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool closed, reached; /* somebody waits at it */
  session *s;
} gate;

/* False after ten seconds. */
static bool await(gate *g, const bool *what, bool value) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 10;
  while (*what != value) {
    if (pthread_cond_timedwait(&g->changed, &g->lock, &until) != 0) {
      return false;
    }
  }
  return true;
}

static status stop_at_gate(void *data, const char *pass, const struct hlo_module *m) {
  gate *g = data;
  (void)pass;
  (void)m;
  pthread_mutex_lock(&g->lock);
  g->reached |= g->closed;
  pthread_cond_broadcast(&g->changed);
  bool opened = await(g, &g->closed, false);
  pthread_mutex_unlock(&g->lock);
  CHECK_THAT(opened, STATUS_INTERNAL, "nobody opens the gate");
  return NULL;
}

static void set_gate(gate *g, bool closed) {
  pthread_mutex_lock(&g->lock);
  g->closed = closed;
  pthread_cond_broadcast(&g->changed);
  pthread_mutex_unlock(&g->lock);
}

static void *compile_other(void *data) {
  gate *g = data;
  return (void *)(uintptr_t)compile(g->s, 4, 5);
}

/* Of two that want the same new shape one compiles and the other waits; a third runs what is there; a fourth gives up.
 */
START_TEST(runs_while_another_compiles) {
  gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  session_options options = {
      .backend = "cpu", .tune = "off", .compile = {.threads = 1, .dump = stop_at_gate, .dump_data = &g}};
  write_relu();
  g.s = open_with(path, options);
  const session_program *ready = compile(g.s, 2, 3);
  set_gate(&g, true);
  pthread_t compilers[2];
  for (int k = 0; k < 2; k++) {
    ck_assert_int_eq(pthread_create(&compilers[k], NULL, compile_other, &g), 0);
  }
  pthread_mutex_lock(&g.lock);
  ck_assert(await(&g, &g.reached, true));
  pthread_mutex_unlock(&g.lock);
  for (int k = 0; k < 10; k++) {
    const session_program *c = compile(g.s, 2, 3);
    ck_assert_ptr_eq(c, ready);
    run_relu(g.s, c, 6);
    session_release(g.s, c);
  }
  shape third = shape_make(DTYPE_F32, 2, (dim[]){1, 1});
  const _Atomic int stopped = 1;
  const session_program *none;
  ASSERT_FAILS(session_compile(g.s, &(session_inputs){.shapes = (const shape *[]){&third}, .stopped = &stopped}, &none),
               STATUS_RESOURCE, "cancelled");
  set_gate(&g, false);
  void *made[2];
  for (int k = 0; k < 2; k++) {
    ck_assert_int_eq(pthread_join(compilers[k], &made[k]), 0);
  }
  ck_assert_ptr_eq(made[0], made[1]);
  ck_assert_ptr_ne(made[0], ready);
  run_relu(g.s, made[0], 20);
  session_close(g.s);
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
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_loop_test(c, by_shape, 0, 2);
  tcase_add_test(c, all_cores);
  tcase_add_loop_test(c, checked_memory, 0, 2);
  tcase_add_loop_test(c, saved, 0, 2);
  tcase_add_loop_test(c, seeds, 0, 2);
  tcase_add_loop_test(c, by_value, 0, 2);
  tcase_add_test(c, dims);
  tcase_add_test(c, wrong_inputs);
  tcase_add_loop_test(c, hlo_text, 0, 2);
  tcase_add_test(c, budgets);
  tcase_add_loop_test(c, threads, 0, 2);
  tcase_add_test(c, pieces);
  tcase_add_test(c, piece_constants);
  tcase_add_test(c, one_array_of_weights);
  tcase_add_loop_test(c, changed_behind_the_cache, 0, 2);
  tcase_add_test(c, runs_while_another_compiles);
  tcase_add_test(c, names_of_files);
  return run_suite("session", c);
}
