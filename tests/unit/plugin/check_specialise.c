/* check_specialise.c - a program is tuned in the background and takes the place of the first one, while threads run it,
 * while the session is closed, while memory runs out and while the process ends. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend_cpu/runtime/contraction.h"
#include "plugin/session/internal.h"
#include "plugin/session/profile.h"
#include "tests/suite.h"
#include "tests/unit/plugin/compiler_half.h"
#include "tests/unit/plugin/session_case.h"

/* The sizes of the product: large enough that measuring its algorithms pays. */
enum { ROWS = 1024, SIZE = 512 };

static float element(int64_t k) { return (float)(k * 7 % 5 - 2); }

/* y = Abs(MatMul(x, w)), x f32[n,SIZE] and w f32[SIZE,SIZE] of small integers, so that all algorithms give the same
 * sums. */
static void write_product_of(const char *input, const char *dims) {
  arena *a = arena_create(NULL);
  Onnx__ModelProto *m = new_model(a, input, "y");
  float *w = ARENA_NEW_N(a, float, SIZE *SIZE);
  for (int64_t k = 0; k < SIZE * SIZE; k++) {
    w[k] = element(k / 3);
  }
  Onnx__TensorProto *t = new_tensor(a, "w", 1, 2, (int64_t[]){SIZE, SIZE});
  set_raw(a, t, w, SIZE * SIZE * sizeof *w);
  PB_ADD(a, m->graph->initializer, m->graph->n_initializer, t);
  graph_node(a, m->graph, "MatMul", arena_printf(a, "%s,w", input), "p");
  graph_node(a, m->graph, "Abs", "p", "y");
  session_case_set_type(a, m->graph->input[0], 1, dims);
  session_case_set_type(a, m->graph->output[0], 1, dims);
  session_case_write(a, m);
}

static void write_product(void) { write_product_of("x", "n,512"); }

/* A model without open sizes, whose first program is for one set of sizes. */
static void write_exact_product(void) { write_product_of("x", "1024,512"); }

static session *open_tuned(session_options o) {
  o.tune = o.tune || o.compile.numerics.deterministic ? o.tune : "fast";
  o.cache = o.cache ? o.cache : "";
  o.compile.threads = 2;
  return session_case_open_with(session_case_path, o);
}

/* Runs the program and compares some of the sums with sums computed here. */
static void run_product(session *s, const session_program *c, int64_t rows) {
  float *x = malloc((size_t)rows * SIZE * sizeof *x);
  session_output out = {0};
  for (int64_t k = 0; k < rows * SIZE; k++) {
    x[k] = element(k + 1);
  }
  status failed = session_run(s, c, NULL, &(session_inputs){.values = (const void *[]){x}}, &out);
  if (s->budget.limit && status_get_code(failed) == STATUS_RESOURCE) { /* no memory is left for the run */
    status_free(failed);
    free(x);
    return;
  }
  ck_assert_msg(!failed, "%s", status_message(failed));
  for (int64_t at = 0; at < rows * SIZE; at += 1009) {
    float sum = 0;
    for (int64_t k = 0; k < SIZE; k++) {
      sum += x[at / SIZE * SIZE + k] * element((k * SIZE + at % SIZE) / 3);
    }
    ck_assert_msg(((const float *)out.data)[at] == fabsf(sum), "element %d", (int)at);
  }
  session_output_finish(s, &out);
  free(x);
}

/* Compiles a program for all sizes, and runs it until one for these sizes is being tuned. */
static const session_program *begin_tuning(session *s) {
  const session_program *c = session_case_compile(s, ROWS, SIZE);
  for (int k = 0; k < 3; k++) {
    ck_assert(!s->specialisation);
    run_product(s, c, ROWS);
  }
  ck_assert(s->specialisation);
  return c;
}

START_TEST(the_first_run_does_not_wait) {
  write_product();
  session *s = open_tuned((session_options){0});
  const session_program *first = session_case_compile(s, ROWS, SIZE);
  ck_assert_uint_eq(first->report.n_timed, 0);
  ck_assert(first->untuned);
  run_product(s, first, ROWS);
  session_await_tuned(s);
  ck_assert(session_program_is_replaced(first));
  run_product(s, first, ROWS); /* the replaced program can be run until it is released */
  const session_program *tuned = session_case_compile(s, ROWS, SIZE);
  ck_assert(tuned != first && !session_program_is_replaced(tuned) && !tuned->untuned);
  ck_assert_uint_eq(s->n_replaced, 1);
  session_release(s, first);
  ck_assert_uint_eq(s->n_replaced, 0);
  run_product(s, tuned, ROWS);
  run_product(s, session_case_compile(s, 3, SIZE), 3); /* another size finds the weights of the tuned program */
  session_release(s, tuned);
  session_close(s);
}
END_TEST

static uint32_t count_kernels(const session_program *c) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < c->program->body.n; k++) {
    n += strcmp(c->program->body.thunks[k].kind, "cpu.kernel") == 0;
  }
  return n;
}

/* Returns the number of kernels of a program whose algorithms estimates choose, and which no tuned program
 * will replace. */
static uint32_t count_untuned(void) {
  session *s = open_tuned((session_options){.specialise = "off"});
  const session_program *c = session_case_compile(s, ROWS, SIZE);
  ck_assert(!c->provisional);
  uint32_t n = count_kernels(c);
  session_close(s);
  return n;
}

/* The first program calls the library, if there is one, so that no kernel must be written for it. */
START_TEST(the_first_program_is_provisional) {
  write_exact_product();
  uint32_t untuned = count_untuned();
  session *s = open_tuned((session_options){0});
  const session_program *c = session_case_compile(s, ROWS, SIZE);
  ck_assert(c->provisional && c->untuned);
  ck_assert_uint_le(count_kernels(c), untuned);
  ck_assert(count_kernels(c) == 0 || !cpu_library_name());
  run_product(s, c, ROWS);
  session_await_tuned(s);
  ck_assert(session_program_is_replaced(c));
  const session_program *tuned = session_case_compile(s, ROWS, SIZE);
  ck_assert(!tuned->provisional && !tuned->untuned);
  run_product(s, tuned, ROWS);
  session_close(s);
}
END_TEST

/* If runs leave no time for measurements, the provisional program is replaced by one whose algorithms estimates
 * choose. */
START_TEST(busy_for_long) {
  write_exact_product();
  session *s = open_tuned((session_options){0});
  s->patience = 0.1;
  session_begin_work(s);
  const session_program *c = session_case_compile(s, ROWS, SIZE);
  ck_assert(c->provisional);
  session_await_tuned(s);
  ck_assert(session_program_is_replaced(c));
  session_end_work(s);
  run_product(s, session_case_compile(s, ROWS, SIZE), ROWS);
  session_close(s);
}
END_TEST

/* Nobody holds the first program: it is freed when the tuned one takes its place. */
START_TEST(the_first_program_is_freed) {
  write_product();
  session *s = open_tuned((session_options){0});
  session_release(s, session_case_compile(s, ROWS, SIZE));
  session_await_tuned(s);
  ck_assert_uint_eq(s->n_replaced, 0);
  ck_assert_uint_eq(s->compiled.n, 1);
  run_product(s, session_case_compile(s, ROWS, SIZE), ROWS);
  session_close(s);
}
END_TEST

/* Sizes that change in each run, such as those of a decoder, get no programs of their own. */
START_TEST(sizes_that_come_once) {
  write_product();
  session *s = open_tuned((session_options){0});
  for (int rows = 2; rows < 40; rows++) {
    run_product(s, session_case_compile(s, rows, SIZE), rows);
  }
  ck_assert(!s->specialisation);
  ck_assert_uint_eq(s->compiled.n, 0);
  session_close(s);
}
END_TEST

static const struct {
  session_options options;
  bool timed;
} waiting[] = {{{.specialise = "off"}, false},
               {{.specialise = "full"}, true},
               {{.tune = "off"}, false},
               {{.tune = "full"}, true},
               {{.compile.numerics.deterministic = true}, false},
               {{.compile.numerics.deterministic = true, .specialise = "full"}, false}};

START_TEST(only_auto_tunes_in_the_background) {
  write_product();
  session *s = open_tuned(waiting[_i].options);
  const session_program *c = session_case_compile(s, ROWS, SIZE);
  ck_assert_int_eq(c->report.n_timed > 0, waiting[_i].timed);
  session_await_tuned(s);
  ck_assert(!s->specialisation && !session_program_is_replaced(c) && session_case_compile(s, ROWS, SIZE) == c);
  session_close(s);
}
END_TEST

START_TEST(a_wrong_word) {
  session *s;
  write_product();
  ASSERT_FAILS(session_open(session_case_path, NULL, 0, &(session_options){.specialise = "on"}, &s),
               STATUS_INVALID_ARGUMENT, "specialise 'on' is not one of off, auto and full");
}
END_TEST

/* --- threads --- */

enum { THREADS = 4, SIZES = 3 };

typedef struct runner {
  session *s;
  atomic_bool *stop;
  int64_t rows;
  uint32_t changes;
} runner;

/* Runs one size until told to stop, with other sizes in between, and changes to the tuned program as callers
 * of a session do. */
static void *run_many(void *data) {
  runner *r = data;
  const session_program *c = session_case_compile(r->s, r->rows, SIZE);
  for (int k = 0; !atomic_load(r->stop) || session_program_is_replaced(c); k++) {
    if (session_program_is_replaced(c)) {
      session_release(r->s, c);
      c = session_case_compile(r->s, r->rows, SIZE);
      r->changes++;
    }
    run_product(r->s, c, r->rows);
    if (k < SIZES) {
      const session_program *other = session_case_compile(r->s, 1 + k, SIZE);
      run_product(r->s, other, 1 + k);
      session_release(r->s, other);
    }
    (void)nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  }
  session_release(r->s, c);
  return NULL;
}

START_TEST(many_threads_change_over) {
  write_product();
  pthread_t ids[THREADS];
  runner runners[THREADS];
  atomic_bool stop = false;
  session *s = open_tuned((session_options){0});
  const session_program *first = session_case_compile(s, ROWS, SIZE);
  for (int k = 0; k < THREADS; k++) {
    runners[k] = (runner){.s = s, .stop = &stop, .rows = ROWS};
    ck_assert(pthread_create(&ids[k], NULL, run_many, &runners[k]) == 0);
  }
  session_release(s, first);
  session_await_tuned(s);
  atomic_store(&stop, true);
  for (int k = 0; k < THREADS; k++) {
    pthread_join(ids[k], NULL);
    ck_assert_uint_le(runners[k].changes, 1);
  }
  ck_assert_uint_eq(s->n_replaced, 0);
  session_close(s);
}
END_TEST

/* --- ends --- */

/* Waits for some milliseconds, so that what follows happens in another phase of tuning each time. */
static void wait_for(int milliseconds) {
  (void)nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000L}, NULL);
}

static const int delays[] = {0, 15, 30, 60, 120, 250};
enum { N_DELAYS = sizeof delays / sizeof *delays };

START_TEST(closed_while_it_tunes) {
  write_product();
  session *s = open_tuned((session_options){0});
  (void)begin_tuning(s);
  wait_for(delays[_i]);
  session_close(s);
}
END_TEST

/* ThreadSanitizer shall not complain about threads that a process does not join before it ends. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "report_thread_leaks=0"; }

/* A process may end without closing its sessions. */
START_TEST(the_process_ends_while_it_tunes) {
  write_product();
  pid_t child = fork();
  if (child == 0) {
    static session *volatile open; /* where LeakSanitizer finds it */
    open = open_tuned((session_options){0});
    (void)begin_tuning(open);
    wait_for(delays[_i]);
    exit(0);
  }
  int ended = -1;
  ck_assert_int_eq(waitpid(child, &ended, 0), child);
  ck_assert_msg(WIFEXITED(ended) && WEXITSTATUS(ended) == 0, "the process ended with status %d", ended);
}
END_TEST

/* A child of a process whose session tunes can use the session and close it. */
START_TEST(forked_while_it_tunes) {
  write_product();
  session *s = open_tuned((session_options){0});
  const session_program *c = begin_tuning(s);
  wait_for(30);
  pid_t child = fork();
  if (child == 0) {
    run_product(s, c, ROWS);
    session_await_tuned(s);
    _exit(0);
  }
  int ended = -1;
  ck_assert_int_eq(waitpid(child, &ended, 0), child);
  ck_assert(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
  session_close(s);
}
END_TEST

/* A child that was forked while a thread compiled can run, but not compile; it does not wait for a thread that it does
 * not have. */
START_TEST(forked_while_it_compiles) {
  write_product();
  session *s = open_tuned((session_options){.specialise = "off"});
  const session_program *c = session_case_compile(s, ROWS, SIZE);
  ASSERT_OK(session_take_turn(s));
  pid_t child = fork();
  if (child == 0) {
    shape given = shape_make(DTYPE_F32, 2, (dim[]){3, SIZE});
    const session_program *other;
    run_product(s, c, ROWS);
    ASSERT_FAILS(session_compile(s, &(session_inputs){.shapes = (const shape *[]){&given}}, &other), STATUS_RESOURCE,
                 "forked while a thread compiled");
    run_profile profile;
    session_output out = {0};
    arena *a = arena_create(NULL);
    float x[ROWS * SIZE] = {0};
    ASSERT_FAILS(session_check(s, &(session_inputs){0}), STATUS_RESOURCE, "forked while a thread compiled");
    ASSERT_FAILS(session_save(s, "/dev/null"), STATUS_RESOURCE, "forked while a thread compiled");
    ASSERT_FAILS(session_profile(s, c, NULL, &(session_inputs){.values = (const void *[]){x}}, &out,
                                 &(run_profile_options){.runs = 1}, a, &profile),
                 STATUS_RESOURCE, "forked while a thread compiled");
    _exit(0);
  }
  int ended = -1;
  ck_assert_int_eq(waitpid(child, &ended, 0), child);
  ck_assert(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
  session_end_turn(s);
  run_product(s, session_case_compile(s, 3, SIZE), 3);
  session_close(s);
}
END_TEST

/* With any limit of memory, the first program runs if it can be made, whether or not the tuned one can be
 * made. */
START_TEST(out_of_memory) {
  write_product();
  uint32_t made = 0, tuned = 0;
  for (uint64_t limit = 1 << 20; limit <= 8 << 20; limit += limit / 4) {
    session *s = NULL;
    const session_program *c;
    shape given = shape_make(DTYPE_F32, 2, (dim[]){ROWS, SIZE});
    status failed =
        session_open(session_case_path, NULL, 0,
                     &(session_options){.max_memory = limit, .tune = "fast", .cache = "", .compile.threads = 2}, &s);
    failed = failed ? failed : session_compile(s, &(session_inputs){.shapes = (const shape *[]){&given}}, &c);
    if (!failed) {
      session_await_tuned(s);
      run_product(s, c, ROWS);
      made++;
      tuned += session_program_is_replaced(c);
    }
    ck_assert(!failed || status_get_code(failed) == STATUS_RESOURCE);
    status_free(failed);
    session_close(s);
  }
  ck_assert(tuned > 0 && tuned <= made);
}
END_TEST

START_TEST(cancelled) {
  write_product();
  session *s = open_tuned((session_options){0});
  const session_program *c = begin_tuning(s);
  atomic_store(&s->specialising.cancel, 1);
  session_await_tuned(s);
  ck_assert(!session_program_is_replaced(c) && session_case_compile(s, ROWS, SIZE) == c);
  run_product(s, c, ROWS);
  session_close(s);
}
END_TEST

/* Nothing is measured as long as a run is in progress. */
START_TEST(busy) {
  write_product();
  session *s = open_tuned((session_options){0});
  const session_program *c = begin_tuning(s);
  session_begin_work(s);
  wait_for(2000);
  ck_assert(!session_program_is_replaced(c));
  session_end_work(s);
  session_await_tuned(s);
  ck_assert(session_program_is_replaced(c));
  session_close(s);
}
END_TEST

/* --- the cache --- */

static char folder[32];

static void make_folder(void) {
  strcpy(folder, "/tmp/check-specialise-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  ck_assert_int_eq(system(command), 0);
}

/* A process that ends soon leaves a program with kernels in the cache, not the provisional one, whose calls
 * of a library each process has to prepare anew. */
START_TEST(no_provisional_program_is_kept) {
  write_exact_product();
  uint32_t untuned = count_untuned();
  make_folder();
  for (int k = 0; k < 2; k++) {
    session *s = open_tuned((session_options){.cache = folder, .keep_programs = true});
    const session_program *c = session_case_compile(s, ROWS, SIZE);
    ck_assert(c->from_cache == k && c->untuned);
    ck_assert(k ? count_kernels(c) == untuned : c->provisional);
    run_product(s, c, ROWS);
    session_release(s, c);
    session_close(s);
  }
  remove_folder();
}
END_TEST

/* The number of runs after which a size counts as one that comes often. */
enum { OFTEN = 16 };

static session *open_cached(void) { return open_tuned((session_options){.cache = folder, .keep_programs = true}); }

/* The next session finds the tuned program in the cache, or the first program if the session was closed
 * before a tuned one was ready. */
START_TEST(the_tuned_program_is_kept) {
  write_product();
  make_folder();
  session *s = open_cached();
  (void)session_case_compile(s, ROWS, SIZE);
  session_close(s);
  s = open_cached();
  const session_program *c = session_case_compile(s, ROWS, SIZE);
  ck_assert(c->from_cache && c->untuned);
  for (int k = 0; k < OFTEN; k++) {
    run_product(s, c, ROWS);
  }
  session_await_tuned(s);
  ck_assert(session_program_is_replaced(c));
  run_product(s, session_case_compile(s, ROWS, SIZE), ROWS);
  session_close(s);
  s = open_cached();
  c = session_case_compile(s, ROWS, SIZE);
  ck_assert(c->from_cache && !c->untuned && !s->specialisation);
  run_product(s, c, ROWS);
  session_close(s);
  remove_folder();
}
END_TEST

/* Another model with the same layers finds their kernels in the cache. */
START_TEST(kernels_of_another_model) {
  make_folder();
  for (int k = 0; k < 2; k++) {
    write_product_of(k ? "another" : "x", "n,512");
    session *s = open_tuned((session_options){.cache = folder, .keep_programs = true, .specialise = "off"});
    const session_program *c = session_case_compile(s, ROWS, SIZE);
    ck_assert(!c->from_cache);
    const rt_report *r = &c->general->report;
    ck_assert_uint_gt(r->kernels_unique, 0);
    ck_assert_uint_eq(r->kernels_found, k ? r->kernels_unique : 0);
    run_product(s, c, ROWS);
    run_product(s, session_case_compile(s, 3, SIZE), 3);
    session_close(s);
  }
  remove_folder();
}
END_TEST

/* What is saved is the tuned program, also if it is still being made. */
START_TEST(the_tuned_program_is_saved) {
  write_product();
  session *s = open_tuned((session_options){0});
  const session_program *c = session_case_compile(s, ROWS, SIZE);
  ASSERT_OK(session_save(s, session_case_path));
  ck_assert(session_program_is_replaced(c));
  session_close(s);
  s = session_case_open(session_case_path, NULL);
  run_product(s, session_case_compile(s, ROWS, SIZE), ROWS);
  session_close(s);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("specialise");
  tcase_add_checked_fixture(c, session_case_setup, session_case_teardown);
  tcase_set_timeout(c, 120);
  tcase_add_test(c, the_first_run_does_not_wait);
  tcase_add_test(c, the_first_program_is_provisional);
  tcase_add_test(c, the_first_program_is_freed);
  tcase_add_test(c, sizes_that_come_once);
  tcase_add_loop_test(c, only_auto_tunes_in_the_background, 0, sizeof waiting / sizeof *waiting);
  tcase_add_test(c, a_wrong_word);
  tcase_add_test(c, many_threads_change_over);
  tcase_add_loop_test(c, closed_while_it_tunes, 0, N_DELAYS);
  tcase_add_loop_test(c, the_process_ends_while_it_tunes, 0, N_DELAYS);
  tcase_add_test(c, forked_while_it_tunes);
  tcase_add_test(c, forked_while_it_compiles);
  tcase_add_test(c, out_of_memory);
  tcase_add_test(c, cancelled);
  tcase_add_test(c, busy);
  tcase_add_test(c, busy_for_long);
  tcase_add_test(c, no_provisional_program_is_kept);
  tcase_add_test(c, the_tuned_program_is_kept);
  tcase_add_test(c, kernels_of_another_model);
  tcase_add_test(c, the_tuned_program_is_saved);
  return run_suite("specialise", c);
}
