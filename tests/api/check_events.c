/* check_events.c - onnx-xla.h: executions in the background, their events, cancelling them, time limits. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api_client.h"

/* Waits for the event, which must come without an error, and destroys it. */
static void finish(oxla_event *event) {
  int over = 0;
  succeed(oxla_event_wait(event, -1, &over));
  ck_assert_int_eq(over, 1);
  oxla_event_destroy(event);
}

START_TEST(runs_in_the_background) {
  message m = affine_model(W, B);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  for (int rows = 1; rows < 9; rows++) {
    numbers v = make_numbers(rows, (float)rows);
    oxla_event *event;
    set_affine(run, &v, rows);
    succeed(oxla_start(run, NULL, NULL, &event));
    finish(event);
    check_result(run, &v, rows);
    free_numbers(&v);
    run_affine(run, rows, 2); /* also executed in the foreground in between */
  }
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* While an execution goes on, other calls that change its run are refused. */
START_TEST(refuses_a_busy_run) {
  message m = endless_model();
  oxla_model *model = load(&m, _i);
  uint8_t go = 1;
  float x[4] = {0, 1, 1, 0};
  oxla_run *run = endless_run(model, &go, x);
  oxla_event *event, *other = (oxla_event *)&event;
  oxla_tensor y = {.data = x};
  char *text;
  int over = 1;
  succeed(oxla_start(run, NULL, NULL, &event));
  succeed(oxla_event_wait(event, 0, &over));
  ck_assert_int_eq(over, 0);
  double start = seconds();
  succeed(oxla_event_wait(event, 0.05, &over));
  ck_assert_double_ge(seconds() - start, 0.05);
  ck_assert_int_eq(over, 0);
  refuse(oxla_start(run, NULL, NULL, &other), OXLA_INVALID_ARGUMENT, "the run is executing");
  ck_assert_ptr_null(other);
  oxla_error *const refused[] = {oxla_set_input(run, "x", OXLA_FLOAT, 1, (int64_t[]){4}, x),
                                 oxla_set_input_at(run, 1, OXLA_FLOAT, 1, (int64_t[]){4}, x),
                                 oxla_keep_inputs(run),
                                 oxla_set_output(run, "y", x, sizeof x),
                                 oxla_set_output_at(run, 0, x, sizeof x),
                                 oxla_set_seed(run, 1),
                                 oxla_set_max_seconds(run, 1),
                                 oxla_compile(run),
                                 oxla_execute(run),
                                 oxla_get_output(run, "y", &y),
                                 oxla_get_output_at(run, 0, &y),
                                 oxla_take_output(run, &y),
                                 oxla_profile(run, 0, 1, OXLA_PROFILE_JSON, &text)};
  for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
    refuse(refused[k], OXLA_INVALID_ARGUMENT, "the run is executing");
  }
  oxla_cancel(run, 1);
  for (int k = 0; k < 2; k++) { /* each wait returns the error */
    refuse(oxla_event_wait(event, -1, &over), OXLA_RESOURCE, "cancelled");
    ck_assert_int_eq(over, 1);
  }
  oxla_event_destroy(event);
  oxla_cancel(run, 0);
  go = 0;
  succeed(oxla_start(run, NULL, NULL, &event));
  finish(event);
  succeed(oxla_get_output(run, "y", &y));
  ck_assert_mem_eq(y.data, x, sizeof x);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* The event has the error of the run, with the node that caused it, and the run can be used after it. */
START_TEST(tells_what_failed) {
  message m = unary_model("NoSuchOperator", 1, DIMS(2), 13);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  oxla_event *event;
  float x[2] = {0};
  refuse(oxla_start(run, NULL, NULL, NULL), OXLA_INVALID_ARGUMENT, "argument out is NULL");
  succeed(oxla_start(run, NULL, NULL, &event));
  refuse(oxla_event_wait(event, -1, NULL), OXLA_INVALID_ARGUMENT, "'x' is not set");
  oxla_event_destroy(event);
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, DIMS(2), x));
  succeed(oxla_start(run, NULL, NULL, &event));
  oxla_error *error = oxla_event_wait(event, 60, NULL);
  ck_assert_str_eq(oxla_error_node(error), "NoSuchOperator that makes \"y\"");
  refuse_about(error, OXLA_UNSUPPORTED, OXLA_ABOUT_OPERATOR, "NoSuchOperator");
  oxla_event_destroy(event);
  oxla_event_destroy(NULL);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* Events and runs may be destroyed in any order, also during the execution. */
START_TEST(goes_in_any_order) {
  message m = endless_model();
  oxla_model *model = load(&m, _i);
  uint8_t go = 1;
  float x[4] = {0};
  for (int k = 0; k < 4; k++) {
    oxla_run *run = endless_run(model, &go, x);
    oxla_event *event;
    succeed(oxla_start(run, NULL, NULL, &event));
    if (k % 2) {
      usleep(20000);
    }
    if (k / 2) {
      oxla_event_destroy(event);
    }
    oxla_run_destroy(run); /* cancels the execution */
    if (!(k / 2)) {
      refuse(oxla_event_wait(event, 0, NULL), OXLA_RESOURCE, "cancelled");
      oxla_event_destroy(event);
    }
  }
  oxla_model_destroy(model);
}
END_TEST

static void write_byte(void *pipe_end) { ck_assert_int_eq(write(*(int *)pipe_end, "x", 1), 1); }

/* A thread that a callback wakes finds that the event is over and the outputs are complete. */
START_TEST(calls_back) {
  message m = affine_model(W, B);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  for (int k = 0; k < 200; k++) {
    numbers v = make_numbers(3, (float)k);
    oxla_event *event;
    char byte;
    int over = 0;
    set_affine(run, &v, 3);
    succeed(oxla_start(run, write_byte, &ends[1], &event));
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    if (k % 2) {
      succeed(oxla_event_wait(event, 0, &over));
      ck_assert_int_eq(over, 1);
    }
    check_result(run, &v, 3);
    oxla_event_destroy(event);
    free_numbers(&v);
  }
  close(ends[0]);
  close(ends[1]);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

static void *wait_for(void *event) {
  int over = 0;
  succeed(oxla_event_wait(event, 60, &over));
  ck_assert_int_eq(over, 1);
  return NULL;
}

/* Many runs of one model at once, each event awaited by two threads. */
START_TEST(many_at_once) {
  enum { RUNS = 8, ROUNDS = 5 };
  message m = affine_model(W, B);
  oxla_model *model = load(&m, _i);
  for (int round = 0; round < ROUNDS; round++) {
    oxla_run *runs[RUNS];
    oxla_event *events[RUNS];
    numbers v[RUNS];
    pthread_t threads[RUNS];
    for (int k = 0; k < RUNS; k++) {
      runs[k] = new_run(model);
      v[k] = make_numbers(1 + k % 4, (float)k);
      set_affine(runs[k], &v[k], 1 + k % 4);
      succeed(oxla_start(runs[k], NULL, NULL, &events[k]));
      pthread_create(&threads[k], NULL, wait_for, events[k]);
    }
    for (int k = 0; k < RUNS; k++) {
      wait_for(events[k]);
      pthread_join(threads[k], NULL);
      check_result(runs[k], &v[k], 1 + k % 4);
      oxla_event_destroy(events[k]);
      oxla_run_destroy(runs[k]);
      free_numbers(&v[k]);
    }
  }
  oxla_model_destroy(model);
}
END_TEST

/* A run's own time limit, in the foreground and in the background; 0 removes it. */
START_TEST(has_a_time_limit) {
  message m = endless_model();
  oxla_model *model = load_with(&m, (oxla_options){.backend = backends[_i], .threads = 1, .max_seconds = 1000});
  uint8_t go = 1;
  float x[4] = {0};
  oxla_run *run = endless_run(model, &go, x);
  oxla_event *event;
  refuse(oxla_set_max_seconds(run, -1), OXLA_INVALID_ARGUMENT, "-1");
  succeed(oxla_compile(run));
  succeed(oxla_set_max_seconds(run, 0.2));
  double start = seconds();
  refuse(oxla_execute(run), OXLA_RESOURCE, "the time limit has passed");
  succeed(oxla_start(run, NULL, NULL, &event));
  refuse(oxla_event_wait(event, -1, NULL), OXLA_RESOURCE, "the time limit has passed");
  ck_assert_double_lt(seconds() - start, 30);
  oxla_event_destroy(event);
  succeed(oxla_set_max_seconds(run, 1e-9)); /* compiling for other shapes exceeds this limit at once, too */
  oxla_run *other = endless_run(model, &go, x);
  succeed(oxla_set_max_seconds(other, 0));
  oxla_cancel(other, 1);
  refuse(oxla_execute(other), OXLA_RESOURCE, "cancelled");
  oxla_run_destroy(other);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* After a fork, the child has none of its parent's threads: executions go on in the parent only, and in the child runs
 * can be started anew. */
START_TEST(forks) {
  message m = affine_model(W, B), endless = endless_model();
  oxla_model *model = load(&m, _i), *slow = load(&endless, _i);
  uint8_t go = 1;
  float x[4] = {0};
  oxla_run *run = new_run(model), *busy = endless_run(slow, &go, x);
  oxla_event *event, *pending;
  numbers v = make_numbers(3, 1);
  set_affine(run, &v, 3);
  succeed(oxla_start(run, NULL, NULL, &event));
  finish(event);
  succeed(oxla_compile(busy));
  succeed(oxla_start(busy, NULL, NULL, &pending));
  pid_t child = fork();
  if (child == 0) {
    refuse(oxla_event_wait(pending, -1, NULL), OXLA_RESOURCE, "parent process");
    oxla_event_destroy(pending);
#ifndef __SANITIZE_THREAD__ /* ThreadSanitizer refuses to start threads in such a child */
    succeed(oxla_start(run, NULL, NULL, &event));
    finish(event);
    check_result(run, &v, 3);
#endif
    oxla_run_destroy(run);
    _exit(0);
  }
  int ended;
  ck_assert_int_eq(waitpid(child, &ended, 0), child);
  ck_assert_int_eq(ended, 0);
  oxla_run_destroy(busy);
  oxla_event_destroy(pending);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  oxla_model_destroy(slow);
  free_numbers(&v);
}
END_TEST

int main(void) {
  const TTest *const once[] = {NULL};
  const TTest *const both[] = {runs_in_the_background,
                               refuses_a_busy_run,
                               tells_what_failed,
                               goes_in_any_order,
                               calls_back,
                               many_at_once,
                               has_a_time_limit,
                               forks,
                               NULL};
  return run_tests("events", once, both);
}
