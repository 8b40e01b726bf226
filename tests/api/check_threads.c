/* check_threads.c - onnx-xla.h from several threads at once. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api_client.h"

static void *client(void *model) {
  oxla_run *run = new_run(model);
  for (int k = 0; k < 60; k++) {
    run_affine(run, 1 + k % 3, (float)k);
  }
  oxla_run_destroy(run);
  return NULL;
}

START_TEST(two_threads) {
  message m = affine_model(W, B);
  oxla_model *model = load(&m, _i);
  pthread_t threads[2];
  for (int k = 0; k < 2; k++) {
    pthread_create(&threads[k], NULL, client, model);
  }
  for (int k = 0; k < 2; k++) {
    pthread_join(threads[k], NULL);
  }
  oxla_model_destroy(model);
}
END_TEST

/* --- indices: each run checks its own indices, whatever other threads' runs have as theirs --- */

static message gather_model(void) {
  message g = {.n = 0};
  add_node(&g, "Gather", "x", "i", "y");
  add_value(&g, GRAPH_INPUT, "x", 1, DIMS(4));
  add_value(&g, GRAPH_INPUT, "i", 7, DIMS(2));
  add_value(&g, GRAPH_OUTPUT, "y", 1, DIMS(2));
  return finish_model(&g, 8, 13);
}

typedef struct gathering {
  oxla_model *model;
  int64_t last; /* the second index; 3 is the largest that is in range */
  int unchecked;
} gathering;

static void *gather(void *data) {
  const gathering *g = data;
  const float x[4] = {1, 2, 4, 8};
  oxla_run *run = new_run(g->model);
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, 1, (int64_t[]){4}, x));
  succeed(oxla_set_input(run, "i", OXLA_INT64, 1, (int64_t[]){2}, (int64_t[]){0, g->last}));
  for (int k = 0; k < 20; k++) {
    oxla_error *error = oxla_execute(run);
    if (g->last > 3 && !g->unchecked) {
      refuse_about(error, OXLA_INVALID_ARGUMENT, OXLA_ABOUT_VALUE, "Gather");
      continue;
    }
    oxla_tensor y;
    succeed(error);
    succeed(oxla_get_output(run, "y", &y));
    ck_assert(((const float *)y.data)[0] == 1);
    ck_assert(g->last > 3 || ((const float *)y.data)[1] == x[g->last]);
  }
  oxla_run_destroy(run);
  return NULL;
}

START_TEST(checked_indices) {
  message m = gather_model();
  for (int unchecked = 0; unchecked < 2; unchecked++) {
    oxla_model *model = load_with(&m, (oxla_options){.backend = backends[_i], .threads = 2, .unchecked = unchecked});
    gathering parts[3] = {{model, 3, unchecked}, {model, 9, unchecked}, {model, 1, unchecked}};
    pthread_t threads[3];
    for (int k = 0; k < 3; k++) {
      pthread_create(&threads[k], NULL, gather, &parts[k]);
    }
    for (int k = 0; k < 3; k++) {
      pthread_join(threads[k], NULL);
    }
    oxla_model_destroy(model);
  }
}
END_TEST

/* --- everything at once: one thread each, all on the same model --- */

static void describe_model(oxla_model *model) {
  oxla_tensor t;
  succeed(oxla_input_type(model, 0, &t));
  ck_assert_str_eq(oxla_input_name(model, 0), "x");
  ck_assert_str_eq(oxla_metadata(model, "key"), "value");
}

static void check_model(oxla_model *model) { succeed(oxla_check(model)); }

static void save_model(oxla_model *model) {
  oxla_error *error = oxla_save(model, "/dev/null"); /* nothing may be compiled yet */
  ck_assert(!error || oxla_error_code(error) == OXLA_INVALID_ARGUMENT);
  oxla_error_free(error);
}

static void execute_new_run(oxla_model *model) {
  static _Atomic int shape;
  oxla_run *run = new_run(model);
  run_affine(run, 1 + shape++ % 7, 1);
  oxla_run_destroy(run);
}

static void cancel_run(oxla_model *model) {
  numbers v = make_numbers(3, 2);
  oxla_run *run = new_run(model);
  oxla_event *event;
  set_affine(run, &v, 3);
  succeed(oxla_start(run, NULL, NULL, &event));
  oxla_cancel(run, 1);
  oxla_error *error = oxla_event_wait(event, -1, NULL); /* there is an error if the request came in time */
  ck_assert(!error || oxla_error_code(error) == OXLA_RESOURCE);
  oxla_error_free(error);
  oxla_event_destroy(event);
  oxla_run_destroy(run);
  free_numbers(&v);
}

static void take_an_output(oxla_model *model) {
  numbers v = make_numbers(2, 3);
  oxla_run *run = new_run(model);
  set_affine(run, &v, 2);
  succeed(oxla_keep_inputs(run));
  succeed(oxla_execute(run));
  oxla_tensor y = check_result(run, &v, 2);
  succeed(oxla_take_output(run, &y));
  oxla_run_destroy(run);
  ck_assert_mem_eq(y.data, v.want, y.bytes);
  oxla_free_output(model, y.data);
  free_numbers(&v);
}

typedef struct player {
  oxla_model *model;
  void (*part)(oxla_model *);
} player;

static void *play(void *data) {
  const player *p = data;
  for (int k = 0; k < 20; k++) {
    p->part(p->model);
  }
  return NULL;
}

START_TEST(all_at_once) {
  message m = affine_model(W, B);
  put_bytes(&m, 14, "\x0a\x03key\x12\x05value", 12); /* metadata_props */
  oxla_model *model = load(&m, _i);
  void (*const parts[])(oxla_model *) = {describe_model,  check_model, save_model, execute_new_run,
                                         execute_new_run, cancel_run,  cancel_run, take_an_output};
  enum { PLAYERS = sizeof parts / sizeof *parts };
  player players[PLAYERS];
  pthread_t threads[PLAYERS];
  for (int k = 0; k < PLAYERS; k++) {
    players[k] = (player){model, parts[k]};
    pthread_create(&threads[k], NULL, play, &players[k]);
  }
  for (int k = 0; k < PLAYERS; k++) {
    pthread_join(threads[k], NULL);
  }
  oxla_model_destroy(model);
}
END_TEST

/* --- sizes: each thread runs one model with other sizes, which one program serves --- */

enum { ASKERS = 8, LARGE = 300000 };

typedef struct asker {
  oxla_model *model;
  int number;
  bool may_fail; /* whether memory may run out */
} asker;

/* Runs the model with many sizes.  The fourth thread is cancelled, the fifth has a time limit that is too short, and
 * the sixth needs much memory. */
static void *ask(void *data) {
  const asker *a = data;
  bool is_cancelled = a->number == 3, is_late = a->number == 4;
  oxla_run *run = new_run(a->model);
  for (int k = 0; k < 20; k++) {
    int rows = a->number == 5 ? LARGE + k : (7 * k + a->number) % 50;
    numbers v = make_numbers(rows, (float)k);
    set_affine(run, &v, rows);
    succeed(oxla_set_max_seconds(run, is_late && k % 2 ? 1e-9 : 0));
    oxla_cancel(run, is_cancelled && k % 2);
    oxla_error *error = oxla_execute(run);
    bool may_fail = a->may_fail || ((is_cancelled || is_late) && k % 2);
    ck_assert_msg(!error || (may_fail && oxla_error_code(error) == OXLA_RESOURCE), "%s", oxla_error_message(error));
    if (!error) {
      check_result(run, &v, rows);
    }
    oxla_error_free(error);
    free_numbers(&v);
  }
  oxla_run_destroy(run);
  return NULL;
}

static void count_programs(void *data, oxla_log_level level, const char *line) {
  (void)level;
  *(_Atomic int *)data += strncmp(line, "compiled for all sizes", 22) == 0;
}

/* The threads run first without a memory limit, and then with one that is too small for some of the sizes. */
START_TEST(other_sizes_at_once) {
  message m = affine_model(W, B);
  for (int limited = 0; limited < 2; limited++) {
    _Atomic int programs = 0;
    oxla_options options = {.backend = backends[_i],
                            .threads = 2,
                            .specialise = "off",
                            .max_memory = limited ? 4 << 20 : 0,
                            .log = count_programs,
                            .log_data = &programs};
    oxla_model *model = load_with(&m, options);
    asker askers[ASKERS];
    pthread_t threads[ASKERS];
    for (int k = 0; k < ASKERS; k++) {
      askers[k] = (asker){model, k, limited};
      pthread_create(&threads[k], NULL, ask, &askers[k]);
    }
    for (int k = 0; k < ASKERS; k++) {
      pthread_join(threads[k], NULL);
    }
    ck_assert_int_le(programs, 2); /* a guard may tell a size of 0 or 1 from the others */
    ck_assert_int_ge(programs, !limited);
    oxla_model_destroy(model);
  }
}
END_TEST

int main(void) {
  const TTest *const once[] = {NULL};
  const TTest *const both[] = {two_threads, checked_indices, all_at_once, other_sizes_at_once, NULL};
  return run_tests("threads", once, both);
}
