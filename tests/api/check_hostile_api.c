/* check_hostile_api.c - what callers of onnx-xla.h do at run time: cancelling, limits, odd buffers, empty arrays,
 * threads with small stacks, forks, signals, and runs at the same time.  All tests are done on both backends. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api_client.h"

/* y = x + z, where both are f32[n, m]. */
static message sum_model(void) {
  message g = {.n = 0};
  add_node(&g, "Add", "x", "z", "y");
  add_value(&g, GRAPH_INPUT, "x", 1, DIMS(-1, -2));
  add_value(&g, GRAPH_INPUT, "z", 1, DIMS(-1, -2));
  add_value(&g, GRAPH_OUTPUT, "y", 1, DIMS(-1, -2));
  return finish_model(&g, 8, 13);
}

/* --- cancelling and limits --- */

static void *cancel_soon(void *run) {
  usleep(200000);
  oxla_cancel(run, 1);
  return NULL;
}

START_TEST(cancels_a_run) {
  message m = endless_model();
  oxla_model *model = load(&m, _i);
  uint8_t go = 1;
  float x[4] = {0, 1, 1, 0};
  oxla_run *run = endless_run(model, &go, x);
  oxla_tensor y;
  pthread_t thread;
  double start = seconds();
  pthread_create(&thread, NULL, cancel_soon, run);
  refuse(oxla_execute(run), OXLA_RESOURCE, "cancelled");
  pthread_join(thread, NULL);
  ck_assert_double_lt(seconds() - start, 20);
  refuse(oxla_execute(run), OXLA_RESOURCE, "cancelled"); /* each execution fails until the request is taken back */
  oxla_cancel(run, 0);
  go = 0; /* the loop has no iteration */
  succeed(oxla_execute(run));
  succeed(oxla_get_output(run, "y", &y));
  ck_assert_mem_eq(y.data, x, sizeof x);
  oxla_run_destroy(run);
  run = endless_run(model, &go, x);
  oxla_cancel(run, 1); /* the model is compiled already, so only the execution notices */
  succeed(oxla_compile(run));
  refuse(oxla_execute(run), OXLA_RESOURCE, "cancelled");
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

START_TEST(cancels_compiling) {
  message m = sum_model();
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  oxla_cancel(run, 1);
  refuse(oxla_compile(run), OXLA_RESOURCE, "cancelled");
  oxla_cancel(run, 0);
  succeed(oxla_compile(run));
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* A request to cancel that is taken back at once still ends the execution that was going on. */
START_TEST(cancels_in_an_instant) {
  message m = endless_model();
  oxla_model *model = load(&m, _i);
  uint8_t go = 1;
  float x[4] = {0};
  oxla_run *run = endless_run(model, &go, x);
  oxla_event *event;
  for (int k = 0; k < 20; k++) {
    succeed(oxla_start(run, NULL, NULL, &event));
    usleep((useconds_t)(k * 500));
    oxla_cancel(run, 1);
    oxla_cancel(run, 0);
    refuse(oxla_event_wait(event, -1, NULL), OXLA_RESOURCE, "cancelled");
    oxla_event_destroy(event);
  }
  oxla_cancel(run, 1);
  oxla_cancel(run, 0);
  go = 0;
  succeed(oxla_execute(run)); /* this execution began after the request was taken back */
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

typedef struct toggling {
  oxla_run *run;
  _Atomic int stop;
} toggling;

static void *toggle(void *data) {
  toggling *t = data;
  for (uint32_t k = 0; !t->stop; k++) {
    oxla_cancel(t->run, 1);
    usleep(k * 31 % 100);
    oxla_cancel(t->run, 0);
    usleep(k * 7919 % 5000);
  }
  return NULL;
}

/* Requests to cancel are made and taken back at any time: an execution is either cancelled or complete. */
START_TEST(cancels_or_completes) {
  enum { ROWS = 1000000, TIMES = 100 };
  message m = affine_model(W, B);
  oxla_model *model = load_with(&m, (oxla_options){.backend = backends[_i], .threads = 4});
  oxla_run *run = new_run(model);
  numbers v = make_numbers(ROWS, 1);
  size_t bytes = (size_t)ROWS * 4 * sizeof(float);
  float *y = malloc(bytes);
  pthread_t thread;
  toggling t = {run, 0};
  set_affine(run, &v, ROWS);
  succeed(oxla_compile(run));
  succeed(oxla_set_output(run, "y", y, bytes));
  pthread_create(&thread, NULL, toggle, &t);
  double start = seconds();
  for (int k = 0; k < TIMES && seconds() - start < 20; k++) { /* fewer times if a sanitizer makes executions slow */
    memset(y, 0x55, bytes);
    oxla_error *error = oxla_execute(run);
    if (error) {
      refuse(error, OXLA_RESOURCE, "cancelled");
    } else {
      ck_assert_mem_eq(y, v.want, bytes);
    }
  }
  t.stop = 1;
  pthread_join(thread, NULL);
  succeed(oxla_execute(run));
  check_result(run, &v, ROWS);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  free_numbers(&v);
  free(y);
}
END_TEST

START_TEST(time_ends_a_run) {
  message m = endless_model();
  oxla_model *model = load_with(&m, (oxla_options){.backend = backends[_i], .threads = 1, .max_seconds = 2});
  uint8_t go = 1;
  float x[4] = {0};
  oxla_run *run = endless_run(model, &go, x);
  double start = seconds();
  oxla_error *error = oxla_execute(run);
  ck_assert_str_ne(oxla_error_node(error), ""); /* the name of the loop or of a node in it */
  refuse(error, OXLA_RESOURCE, "time limit");
  ck_assert_double_lt(seconds() - start, 30);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* All memory of a run counts towards the limit: outputs, copies of buffers whose elements are not aligned, and
 * intermediate values. */
START_TEST(memory_ends_a_run) {
  enum { N = 1 << 22 };
  message g = {.n = 0};
  add_node(&g, "Relu", "x", NULL, "y");
  add_value(&g, GRAPH_INPUT, "x", 1, DIMS(-1));
  add_value(&g, GRAPH_OUTPUT, "y", 1, DIMS(-1));
  message m = finish_model(&g, 8, 13);
  oxla_model *model = load_with(&m, (oxla_options){.backend = backends[_i], .max_memory = 40 << 20});
  oxla_run *run = new_run(model);
  float *x = calloc(4 * N + 1, sizeof *x);
  oxla_tensor y;
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 1, (int64_t[]){4 * N}, x));
  refuse(oxla_execute(run), OXLA_RESOURCE, "no 67108864 bytes of memory for output 'y'");
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 1, (int64_t[]){2 * N}, (char *)x + 1));
  refuse(oxla_execute(run), OXLA_RESOURCE, "bytes of memory for input 'x'");
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 1, (int64_t[]){1000}, x));
  succeed(oxla_execute(run));    /* the run can still be used */
  for (int k = 0; k < 50; k++) { /* and its memory does not grow */
    succeed(oxla_set_input(run, "x", OXLA_FLOAT, 1, (int64_t[]){1000 + k % 3}, x));
    succeed(oxla_execute(run));
  }
  succeed(oxla_get_output(run, "y", &y));
  ck_assert_int_eq(y.dims[0], 1001);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  free(x);
}
END_TEST

/* --- arguments --- */

typedef struct bad_options {
  oxla_options options; /* if options.size is 0, the test sets it to sizeof(oxla_options) */
  oxla_code code;
  const char *part; /* a part of the error's message */
} bad_options;

static const int64_t minus_one[] = {-1}, four[] = {4};

static const bad_options wrong_options[] = {
    {{.backend = "abacus"}, OXLA_INVALID_ARGUMENT, "abacus"},
    {{.backend = "/no/such/backend.so"}, OXLA_INVALID_ARGUMENT, "/no/such/backend.so"},
    {{.threads = -1}, OXLA_INVALID_ARGUMENT, "option threads is -1"},
    {{.threads = 257}, OXLA_INVALID_ARGUMENT, "257 threads are asked for; the most is 256"},
    {{.threads = 5000}, OXLA_INVALID_ARGUMENT, "5000 threads"},
    {{.threads = INT32_MIN}, OXLA_INVALID_ARGUMENT, "threads"},
    {{.lanes = -4}, OXLA_INVALID_ARGUMENT, "option lanes is -4"},
    {{.lanes = 3}, OXLA_INVALID_ARGUMENT, "3 lanes are asked for; it must be 1, 4, 8 or 16"},
    {{.lanes = 32}, OXLA_INVALID_ARGUMENT, "32 lanes"},
    {{.n_dims = 3}, OXLA_INVALID_ARGUMENT, "3 values of dimensions, but the list is NULL"},
    {{.n_dims = SIZE_MAX}, OXLA_INVALID_ARGUMENT, "values and 0 ranges of dimensions"},
    {{.dims = &(oxla_dim){NULL, 1}, .n_dims = 1}, OXLA_INVALID_ARGUMENT, "it has no name"},
    {{.dims = &(oxla_dim){"", 1}, .n_dims = 1}, OXLA_INVALID_ARGUMENT, "it has no name"},
    {{.dims = &(oxla_dim){"n", -1}, .n_dims = 1}, OXLA_INVALID_ARGUMENT, "dimension 'n' is -1"},
    {{.dims = &(oxla_dim){"n", INT64_MAX}, .n_dims = 1}, OXLA_INVALID_ARGUMENT, "dimension 'n' is 9223372036854775807"},
    {{.dims = (const oxla_dim[]){{"n", 1}, {"n", 2}}, .n_dims = 2}, OXLA_INVALID_ARGUMENT, "'n' is both 1 and 2"},
    {{.max_seconds = -1}, OXLA_INVALID_ARGUMENT, "-1 seconds"},
    {{.max_seconds = NAN}, OXLA_INVALID_ARGUMENT, "nan seconds"},
    {{.max_seconds = -INFINITY}, OXLA_INVALID_ARGUMENT, "-inf seconds"},
    {{.max_memory = 1}, OXLA_RESOURCE, "memory limit"},
    {{.n_constants = 1}, OXLA_INVALID_ARGUMENT, "1 constants, but the list is NULL"},
    {{.n_constants = SIZE_MAX}, OXLA_INVALID_ARGUMENT, "constants"},
    {{.constants = &(oxla_constant){NULL, OXLA_FLOAT, 1, four, W}, .n_constants = 1}, OXLA_INVALID_ARGUMENT, "no name"},
    {{.constants = &(oxla_constant){"x", OXLA_FLOAT, 1, NULL, W}, .n_constants = 1},
     OXLA_INVALID_ARGUMENT,
     "no dimensions"},
    {{.constants = &(oxla_constant){"x", OXLA_FLOAT, -1, four, W}, .n_constants = 1}, OXLA_INVALID_ARGUMENT, "rank -1"},
    {{.constants = &(oxla_constant){"x", OXLA_FLOAT, 17, four, W}, .n_constants = 1}, OXLA_INVALID_ARGUMENT, "rank 17"},
    {{.constants = &(oxla_constant){"x", OXLA_FLOAT, 1, minus_one, W}, .n_constants = 1},
     OXLA_INVALID_ARGUMENT,
     "negative"},
    {{.constants = &(oxla_constant){"x", (oxla_type)0, 1, four, W}, .n_constants = 1},
     OXLA_INVALID_ARGUMENT,
     "not an element type"},
    {{.constants = &(oxla_constant){"x", OXLA_FLOAT, 1, four, NULL}, .n_constants = 1},
     OXLA_INVALID_ARGUMENT,
     "no data"},
    {{.tune = "a lot"}, OXLA_INVALID_ARGUMENT, "a lot"},
    {{.precision = "fp8"}, OXLA_INVALID_ARGUMENT, "fp8"},
    {{.allocator = &(oxla_allocator){NULL, NULL, NULL}}, OXLA_INVALID_ARGUMENT, "an allocator without functions"},
    {{.size = 1}, OXLA_INVALID_ARGUMENT, "the size of the options is 1;"},
    {{.size = sizeof(size_t)}, OXLA_INVALID_ARGUMENT, "the size of the options is 8;"},
    {{.size = sizeof(oxla_options) - 3}, OXLA_INVALID_ARGUMENT, "the size of the options"},
    {{.size = SIZE_MAX - 7}, OXLA_INVALID_ARGUMENT, "the size of the options"},
};

/* Each option with each kind of wrong value.  Options that only the compiler uses may be refused later, when it
 * compiles. */
START_TEST(options_out_of_range) {
  message m = affine_model(W, B);
  for (size_t k = 0; k < sizeof wrong_options / sizeof *wrong_options; k++) {
    const bad_options *bad = &wrong_options[k];
    oxla_options o = bad->options;
    oxla_model *model = (oxla_model *)&m;
    o.size = o.size ? o.size : sizeof o;
    o.backend = o.backend ? o.backend : backends[_i];
    refuse(oxla_load_memory(m.bytes, m.n, &o, &model), bad->code, bad->part);
    ck_assert_ptr_null(model);
  }
  oxla_model *model;
  refuse(oxla_load_memory(m.bytes, m.n, &(oxla_options){0}, &model), OXLA_INVALID_ARGUMENT,
         "the size of the options is 0");
}
END_TEST

/* Options that only the compiler uses. */
START_TEST(options_of_the_compiler) {
  const bad_options wrong[] = {
      {{.cpu = "abacus"}, OXLA_INVALID_ARGUMENT, "abacus"},
      {{.skip_passes = "fold,no-such-pass"}, OXLA_INVALID_ARGUMENT, "no-such-pass"},
      {{.closed_dims = 1}, OXLA_INVALID_ARGUMENT, "n"},
      {{.max_seconds = 1e-9}, OXLA_RESOURCE, "time limit"},
  };
  message m = affine_model(W, B);
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
    oxla_model *model = load_with(&m, wrong[k].options);
    oxla_run *run = new_run(model);
    refuse(oxla_compile(run), wrong[k].code, wrong[k].part);
    oxla_run_destroy(run);
    oxla_model_destroy(model);
  }
}
END_TEST

/* Options of a program that was built with a newer header: fields that this library does not know must be 0. */
START_TEST(newer_options) {
  struct {
    oxla_options known;
    int64_t more[4];
  } newer = {.known = {.size = sizeof newer, .backend = backends[_i]}};
  message m = affine_model(W, B);
  oxla_model *model;
  succeed(oxla_load_memory(m.bytes, m.n, &newer.known, &model));
  oxla_model_destroy(model);
  newer.more[3] = 1;
  refuse(oxla_load_memory(m.bytes, m.n, &newer.known, &model), OXLA_UNSUPPORTED,
         "this version of the library does not");
  refuse(oxla_survey(m.bytes, m.n, &newer.known, NULL, NULL), OXLA_INVALID_ARGUMENT, "no function");
}
END_TEST

static void ignore(void *data, size_t node, oxla_code code, const char *text) {
  (void)data, (void)node, (void)code, (void)text;
}

/* Calls every function that takes numbers, names or lists with wrong ones. */
START_TEST(arguments_out_of_range) {
  message m = affine_model(W, B);
  oxla_model *model = load(&m, _i), *other;
  oxla_run *run = new_run(model);
  float x[8] = {0};
  const int64_t dims[] = {2, 4};
  char *text;
  oxla_tensor t = {.data = x};
  oxla_event *event;
  const oxla_code wrong = OXLA_INVALID_ARGUMENT;
  refuse(oxla_load("", NULL, &other), OXLA_IO, "");
  refuse(oxla_load("/", NULL, &other), wrong, "is a folder");
  refuse(oxla_load_memory(m.bytes, 0, NULL, &other), OXLA_INVALID_FILE, "");
  refuse(oxla_input_type(model, 1, &t), wrong, "no input 1");
  refuse(oxla_input_type(model, SIZE_MAX, &t), wrong, "no input");
  refuse(oxla_output_type(model, SIZE_MAX, &t), wrong, "no output");
  ck_assert_ptr_null(oxla_input_name(model, SIZE_MAX));
  ck_assert_ptr_null(oxla_output_name(model, SIZE_MAX));
  ck_assert_ptr_null(oxla_input_dim_name(model, SIZE_MAX, 0));
  ck_assert_ptr_null(oxla_input_dim_name(model, 0, -1));
  ck_assert_ptr_null(oxla_input_dim_name(model, 0, 99));
  ck_assert_ptr_null(oxla_metadata(model, NULL));
  refuse(oxla_survey(m.bytes, m.n, &(oxla_options){.size = 3}, ignore, NULL), wrong, "the size of the options is 3");
  refuse(oxla_survey(m.bytes, m.n, &(oxla_options){.size = sizeof(oxla_options), .backend = "abacus"}, ignore, NULL),
         wrong, "abacus");
  refuse(oxla_survey(m.bytes, 0, NULL, ignore, NULL), OXLA_INVALID_FILE, "");
  refuse(oxla_set_input(run, NULL, OXLA_FLOAT, 2, dims, x), wrong, "no input name");
  refuse(oxla_set_input(run, "x", OXLA_FLOAT, 2, NULL, x), wrong, "rank 2, but no dimensions");
  refuse(oxla_set_input(run, "x", OXLA_FLOAT, -1, dims, x), wrong, "rank -1");
  refuse(oxla_set_input(run, "x", OXLA_FLOAT, 17, dims, x), wrong, "rank 17");
  refuse(oxla_set_input(run, "x", OXLA_FLOAT, 1, minus_one, x), wrong, "negative");
  refuse(oxla_set_input(run, "x", (oxla_type)-1, 2, dims, x), wrong, "-1 is not an element type");
  refuse(oxla_set_input_at(run, SIZE_MAX, OXLA_FLOAT, 2, dims, x), wrong, "no input");
  refuse(oxla_set_input_at(run, 0, OXLA_FLOAT, 2, NULL, x), wrong, "no dimensions");
  refuse(oxla_set_output(run, NULL, x, 4), wrong, "no output name");
  refuse(oxla_set_output_at(run, SIZE_MAX, x, 4), wrong, "no output");
  refuse(oxla_set_max_seconds(run, -1), wrong, "-1 seconds");
  refuse(oxla_set_max_seconds(run, NAN), wrong, "nan seconds");
  succeed(oxla_set_max_seconds(run, INFINITY)); /* no limit */
  run_affine(run, 2, 1);
  succeed(oxla_set_max_seconds(run, 1e300));
  run_affine(run, 2, 1);
  refuse(oxla_get_output(run, NULL, &t), wrong, "no output name");
  refuse(oxla_get_output_at(run, SIZE_MAX, &t), wrong, "no output");
  refuse(oxla_save(model, ""), OXLA_IO, "");
  refuse(oxla_take_output(run, &(oxla_tensor){.data = x}), wrong, "not an output in the run's own memory");
  refuse(oxla_profile(run, -1, 1, OXLA_PROFILE_JSON, &text), wrong, "negative");
  refuse(oxla_profile(run, 0, -1, OXLA_PROFILE_JSON, &text), wrong, "negative");
  refuse(oxla_profile(run, 0, 1, (oxla_profile_format)7, &text), wrong, "7 is not a format");
  ck_assert_ptr_null(text);
  numbers v = make_numbers(2, 1);
  set_affine(run, &v, 2);
  succeed(oxla_start(run, NULL, NULL, &event));
  refuse(oxla_event_wait(event, NAN, NULL), wrong, "seconds");
  succeed(oxla_event_wait(event, INFINITY, NULL));
  oxla_event_destroy(event);
  check_result(run, &v, 2);
  free_numbers(&v);
  oxla_free_output(model, x); /* x was not allocated by the model */
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* --- buffers and shapes --- */

START_TEST(odd_buffers) {
  message m = sum_model();
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  const int64_t dims[] = {3, 5};
  char *memory = malloc(512);
  oxla_tensor y;
  for (int shift = 0; shift < 9; shift++) { /* also addresses that are not aligned for floats */
    float x[15], z[15];
    for (int k = 0; k < 15; k++) {
      x[k] = (float)(k + shift);
      z[k] = (float)(100 * k);
    }
    memset(memory, 0x55, 512);
    memcpy(memory + shift, x, sizeof x);
    memcpy(memory + 128 + shift, z, sizeof z);
    succeed(oxla_set_input(run, "x", OXLA_FLOAT, 2, dims, memory + shift));
    succeed(oxla_set_input(run, "z", OXLA_FLOAT, 2, dims, memory + 128 + shift));
    succeed(oxla_set_output(run, "y", memory + 256 + shift, sizeof x));
    succeed(oxla_execute(run));
    for (int k = 0; k < 15; k++) {
      float got;
      memcpy(&got, memory + 256 + shift + 4 * k, sizeof got);
      ck_assert_float_eq(got, x[k] + z[k]);
    }
    ck_assert_int_eq(memory[255 + shift], 0x55);
    ck_assert_int_eq(memory[256 + shift + 60], 0x55);
  }
  succeed(oxla_set_output(run, "y", NULL, 0));
  succeed(oxla_set_input(run, "z", OXLA_FLOAT, 2, dims, NULL));
  refuse(oxla_execute(run), OXLA_INVALID_ARGUMENT, "input 'z' is not set");
  succeed(oxla_set_input(run, "z", OXLA_FLOAT, 2, (int64_t[]){3, 6}, memory));
  refuse(oxla_execute(run), OXLA_INVALID_ARGUMENT, "the inputs give 'm' the sizes 5 and 6");
  succeed(oxla_set_input(run, "z", OXLA_FLOAT, 2, (int64_t[]){(int64_t)1 << 31, (int64_t)1 << 20}, memory));
  oxla_error *error = oxla_execute(run);
  ck_assert_ptr_nonnull(error);
  oxla_error_free(error);
  refuse(oxla_set_input(run, "z", OXLA_FLOAT, 2, (int64_t[]){(int64_t)1 << 62, 4}, memory), OXLA_RESOURCE, "z");
  /* An empty input may have the address NULL. */
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){0, 5}, NULL));
  succeed(oxla_set_input(run, "z", OXLA_FLOAT, 2, (int64_t[]){0, 5}, NULL));
  succeed(oxla_execute(run));
  succeed(oxla_get_output(run, "y", &y));
  ck_assert_int_eq(y.dims[0], 0);
  ck_assert_uint_eq(y.bytes, 0);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  free(memory);
}
END_TEST

/* --- threads, processes, signals --- */

static void *many_runs(void *model) {
  oxla_run *run = new_run(model);
  for (int k = 0; k < 40; k++) {
    run_affine(run, 30000, (float)k); /* large enough to be divided among the threads of the pool */
  }
  oxla_run_destroy(run);
  return NULL;
}

START_TEST(runs_side_by_side) {
  enum { THREADS = 4 };
  message m = affine_model(W, B);
  oxla_model *model = load(&m, _i);
  pthread_t threads[THREADS];
  for (int k = 0; k < THREADS; k++) {
    pthread_create(&threads[k], NULL, many_runs, model);
  }
  for (int k = 0; k < THREADS; k++) {
    pthread_join(threads[k], NULL);
  }
  oxla_model_destroy(model);
}
END_TEST

START_TEST(forks) {
  message m = affine_model(W, B);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  run_affine(run, 30000, 1);
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    alarm(60);
    run_affine(run, 30000, 2); /* compiled by the parent */
    run_affine(run, 7, 3);     /* compiled by the child */
    oxla_run_destroy(run);
    oxla_model_destroy(model);
    _exit(7);
  }
  int how;
  ck_assert_int_eq(waitpid(child, &how, 0), child);
  ck_assert_msg(WIFEXITED(how) && WEXITSTATUS(how) == 7, "the child ended with %#x", (unsigned)how);
  run_affine(run, 30000, 4);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

static _Atomic int ticks; /* counts in whichever thread gets the signal */

static void tick(int number) {
  (void)number;
  ticks++;
}

/* The model runs while a timer interrupts every system call. */
START_TEST(signals) {
  struct sigaction action = {.sa_handler = tick}, before;
  struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  sigaction(SIGALRM, &action, &before);
  setitimer(ITIMER_REAL, &often, NULL);
  message m = affine_model(W, B);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  for (int k = 0; k < 20; k++) {
    run_affine(run, 30000 + k % 2, (float)k);
  }
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  setitimer(ITIMER_REAL, &never, NULL);
  sigaction(SIGALRM, &before, NULL);
  ck_assert_int_gt(ticks, 3);
}
END_TEST

typedef struct small_stack {
  message bytes; /* written before, since writing a model takes more stack than the thread has */
  int backend;
} small_stack;

/* Loads, compiles and runs a model. */
static void *work_on_small_stack(void *data) {
  const small_stack *s = data;
  oxla_model *model = load(&s->bytes, s->backend);
  oxla_run *run = new_run(model);
  succeed(oxla_check(model));
  run_affine(run, 30000, 1);
  run_affine(run, 3, 1);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  return data;
}

/* The size of the stack includes OpenBLAS's thread-local block of 60 KB.  AddressSanitizer needs more. */
#ifdef __SANITIZE_ADDRESS__
enum { SMALL_STACK = 128 << 10 };
#else
enum { SMALL_STACK = 64 << 10 };
#endif

START_TEST(stack_of_64_kilobytes) {
  pthread_attr_t attributes;
  pthread_t thread;
  void *result = NULL;
  small_stack s = {.bytes = affine_model(W, B), .backend = _i};
  pthread_attr_init(&attributes);
  ck_assert_int_eq(pthread_attr_setstacksize(&attributes, SMALL_STACK), 0);
  ck_assert_int_eq(pthread_create(&thread, &attributes, work_on_small_stack, &s), 0);
  pthread_join(thread, &result);
  ck_assert_ptr_eq(result, &s);
  pthread_attr_destroy(&attributes);
}
END_TEST

/* --- external data of a model in memory --- */

START_TEST(no_files_from_memory) {
  message g = {.n = 0}, t = {.n = 0}, location = {.n = 0};
  put_text(&location, 1, "location");
  put_text(&location, 2, "w.bin");
  put_int(&t, 1, 4);
  put_int(&t, 2, 1);
  put_text(&t, 8, "w");
  put_message(&t, 13, &location);
  put_int(&t, 14, 1);
  put_message(&g, GRAPH_INITIALIZER, &t);
  add_node(&g, "Add", "x", "w", "y");
  add_value(&g, GRAPH_INPUT, "x", 1, DIMS(4));
  add_value(&g, GRAPH_OUTPUT, "y", 1, DIMS(4));
  message m = finish_model(&g, 8, 13);
  oxla_options o = {.size = sizeof o, .backend = backends[_i]};
  oxla_model *model = NULL;
  oxla_error *error = oxla_load_memory(m.bytes, m.n, &o, &model);
  oxla_run *run = error ? NULL : new_run(model);
  error = error ? error : oxla_compile(run);
  ck_assert_ptr_nonnull(error);
  ck_assert_msg(strstr(oxla_error_message(error), "w"), "%s", oxla_error_message(error));
  oxla_error_free(error);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

int main(void) {
  const TTest *const once[] = {options_of_the_compiler, NULL};
  const TTest *const both[] = {cancels_a_run,
                               cancels_compiling,
                               cancels_in_an_instant,
                               cancels_or_completes,
                               time_ends_a_run,
                               memory_ends_a_run,
                               options_out_of_range,
                               newer_options,
                               arguments_out_of_range,
                               odd_buffers,
                               runs_side_by_side,
                               forks,
                               signals,
                               stack_of_64_kilobytes,
                               no_files_from_memory,
                               NULL};
  return run_tests("hostile-api", once, both);
}
