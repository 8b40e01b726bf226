/* check_session_threads.c - one session in many threads: programs, segments, and compiling while others run. */
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plugin/session/store.h"
#include "tests/suite.h"
#include "tests/unit/plugin/compiler_half.h"
#include "tests/unit/plugin/session_case.h"

static const char *const backends[] = {"ref", "cpu"};

/* Many threads need programs for the same few shapes: one program for each shape is made, and all runs are
 * right. */
enum { THREADS = 8, ROUNDS = 50, SHAPES = 5 };

typedef struct worker {
  session *s;
  const session_program *seen[SHAPES];
} worker;

static void *work(void *data) {
  worker *w = data;
  for (int k = 0; k < ROUNDS; k++) {
    int rows = 1 + k % SHAPES;
    const session_program *c = session_case_compile(w->s, rows, 4);
    w->seen[rows - 1] = c;
    session_case_run_relu(w->s, c, rows * 4);
  }
  return NULL;
}

START_TEST(threads) {
  session_case_write_relu();
  pthread_t ids[THREADS];
  worker workers[THREADS] = {{.s = session_case_open(session_case_path, backends[_i])}};
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
  session_case_set_type(a, m->graph->input[0], 1, "n");
  session_case_set_type(a, m->graph->output[0], 1, "p,q");
  session_case_write(a, m);
}

/* Runs a model that runs segment by segment, for more sizes than a session keeps bindings of a segment. */
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
  session *s = session_case_open(session_case_path, "ref");
  for (int k = 0; k < THREADS; k++) {
    ck_assert(pthread_create(&ids[k], NULL, work_in_pieces, s) == 0);
  }
  for (int k = 0; k < THREADS; k++) {
    pthread_join(ids[k], NULL);
  }
  ASSERT_OK(session_save(s, session_case_path)); /* with the model in it */
  session_close(s);
  s = session_case_open(session_case_path, NULL);
  (void)work_in_pieces(s);
  session_close(s);
}
END_TEST

/* x decides the size of w and is a result, too; the size of k makes the model run segment by segment.  The
 * segment that was compiled with x as a constant still exists when the x of the first run does not. */
START_TEST(piece_constants) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, "x,z", "w,y,k");
  graph_node(a, m->graph, "ConstantOfShape", "x", "w");
  graph_node(a, m->graph, "Identity", "x", "y");
  graph_node(a, m->graph, "NonZero", "z", "nz");
  graph_node(a, m->graph, "Shape", "nz", "s");
  graph_node(a, m->graph, "ConstantOfShape", "s", "k");
  session_case_set_type(a, m->graph->input[0], 7, "1");
  session_case_set_type(a, m->graph->input[1], 1, "m");
  session_case_set_type(a, m->graph->output[0], 1, "n");
  session_case_set_type(a, m->graph->output[1], 7, "1");
  session_case_set_type(a, m->graph->output[2], 1, "q,p");
  session_case_write(a, m);
  session *s = session_case_open(session_case_path, "ref");
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

/* A compilation that stops between two passes until it is told to go on. */
typedef struct gate {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool closed, reached; /* reached: whether a thread waits at the gate */
  session *s;
} gate;

/* Waits until *what is `value`.  Returns false after ten seconds. */
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
  return (void *)(uintptr_t)session_case_compile(g->s, 4, 5);
}

/* Of two threads that need a program for the same new shape, one compiles it and the other one waits.  A
 * third thread runs an existing program meanwhile, and a fourth one is cancelled while it waits. */
START_TEST(runs_while_another_compiles) {
  gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  session_options options = {.backend = "cpu",
                             .tune = "off",
                             .specialise = "full",
                             .compile = {.threads = 1, .dump = stop_at_gate, .dump_data = &g}};
  session_case_write_relu();
  g.s = session_case_open_with(session_case_path, options);
  const session_program *ready = session_case_compile(g.s, 2, 3);
  set_gate(&g, true);
  pthread_t compilers[2];
  for (int k = 0; k < 2; k++) {
    ck_assert_int_eq(pthread_create(&compilers[k], NULL, compile_other, &g), 0);
  }
  pthread_mutex_lock(&g.lock);
  ck_assert(await(&g, &g.reached, true));
  pthread_mutex_unlock(&g.lock);
  for (int k = 0; k < 10; k++) {
    const session_program *c = session_case_compile(g.s, 2, 3);
    ck_assert_ptr_eq(c, ready);
    session_case_run_relu(g.s, c, 6);
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
  session_case_run_relu(g.s, made[0], 20);
  session_close(g.s);
}
END_TEST

typedef struct opener {
  const char *folder;
  pthread_barrier_t *start;
  content_store store;
} opener;

static void *open_store(void *data) {
  opener *o = data;
  content_key key = {{1, 2}};
  pthread_barrier_wait(o->start);
  ASSERT_OK(content_store_open(o->folder, 0, &o->store));
  content_store_put_source(&o->store, key, (rt_span){(const uint8_t *)o, sizeof *o});
  return NULL;
}

/* Threads that create one cache folder at the same time get the same secret, and leave no temporary files. */
START_TEST(one_secret) {
  for (int round = 0; round < ROUNDS; round++) {
    char folder[] = "/tmp/onnx-xla-check-secret-XXXXXX", command[160];
    pthread_t ids[THREADS];
    pthread_barrier_t start;
    opener openers[THREADS];
    hash_secret kept;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    pthread_barrier_init(&start, NULL, THREADS);
    for (int k = 0; k < THREADS; k++) {
      openers[k] = (opener){.folder = folder, .start = &start};
      ck_assert(pthread_create(&ids[k], NULL, open_store, &openers[k]) == 0);
    }
    for (int k = 0; k < THREADS; k++) {
      pthread_join(ids[k], NULL);
    }
    int fd = openat(openers[0].store.folder, "secret", O_RDONLY);
    ck_assert(read(fd, &kept, sizeof kept) == sizeof kept);
    close(fd);
    for (int k = 0; k < THREADS; k++) {
      ck_assert(memcmp(&openers[k].store.contents.secret, &kept, sizeof kept) == 0);
      content_store_close(&openers[k].store);
    }
    snprintf(command, sizeof command, "test $(find %s -type f | wc -l) = 2 && rm -r %s", folder, folder);
    ck_assert_int_eq(system(command), 0);
    pthread_barrier_destroy(&start);
  }
}
END_TEST

int main(void) {
  TCase *c = tcase_create("session_threads");
  tcase_add_checked_fixture(c, session_case_setup, session_case_teardown);
  tcase_add_loop_test(c, threads, 0, 2);
  tcase_add_test(c, pieces);
  tcase_add_test(c, piece_constants);
  tcase_add_test(c, runs_while_another_compiles);
  tcase_add_test(c, one_secret);
  return run_suite("session_threads", c);
}
