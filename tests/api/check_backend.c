/* check_backend.c - backends of a third party (module_toy_backend.c, and module_device_backend.c, which has memory of
 * its own) that are loaded by their paths: compiling, running, saving and loading models. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "api_client.h"

static char toy[4096];
static const oxla_options *options;

static void setup(const char *module) {
  static oxla_options o = {.size = sizeof o, .backend = toy};
  const char *top = getenv("top_builddir");
  snprintf(toy, sizeof toy, "%s/tests/api/.libs/module_%s_backend.so", top ? top : ".", module);
  options = &o;
}

static void setup_toy(void) { setup("toy"); }
static void setup_device(void) { setup("device"); }

static void run_model(oxla_model *m, int rows) {
  oxla_run *run = new_run(m);
  run_affine(run, rows, 0);
  oxla_run_destroy(run);
}

START_TEST(compiles_and_runs) {
  message bytes = affine_model(W, B);
  oxla_model *m;
  succeed(oxla_load_memory(bytes.bytes, bytes.n, options, &m));
  run_model(m, 1);
  run_model(m, 4);
  oxla_model_destroy(m);
}
END_TEST

START_TEST(saves_and_loads) {
  message bytes = affine_model(W, B);
  oxla_model *m;
  char path[] = "toy-XXXXXX";
  int fd = mkstemp(path);
  ck_assert(fd >= 0);
  close(fd);
  succeed(oxla_load_memory(bytes.bytes, bytes.n, options, &m));
  run_model(m, 3);
  succeed(oxla_save(m, path));
  oxla_model_destroy(m);
  succeed(oxla_load(path, options, &m));
  run_model(m, 3);
  oxla_model_destroy(m);
  refuse(oxla_load(path, &(oxla_options){.size = sizeof(oxla_options), .backend = "ref"}, &m), OXLA_INVALID_ARGUMENT,
         "toy");
  unlink(path);
}
END_TEST

START_TEST(says_what_it_cannot) {
  message bytes = unary_model("Cos", 1, DIMS(2), 13);
  oxla_model *m;
  oxla_run *run;
  succeed(oxla_load_memory(bytes.bytes, bytes.n, options, &m));
  succeed(oxla_run_create(m, &run));
  oxla_error *error = oxla_compile(run);
  ck_assert_int_eq(oxla_error_subject(error), OXLA_ABOUT_OPERATOR);
  refuse(error, OXLA_UNSUPPORTED, "y: Cos: the toy backend cannot do cosine");
  oxla_run_destroy(run);
  oxla_model_destroy(m);
  bytes = unary_model("Neg", 6, DIMS(2), 13);
  succeed(oxla_load_memory(bytes.bytes, bytes.n, options, &m));
  succeed(oxla_run_create(m, &run));
  refuse(oxla_compile(run), OXLA_UNSUPPORTED, "s32[2]");
  oxla_run_destroy(run);
  oxla_model_destroy(m);
}
END_TEST

START_TEST(is_no_backend) {
  message bytes = affine_model(W, B);
  oxla_model *m;
  oxla_options o = {.size = sizeof o, .backend = "./nobody.so"};
  refuse(oxla_load_memory(bytes.bytes, bytes.n, &o, &m), OXLA_INVALID_ARGUMENT, "nobody.so");
  o.backend = "nobody";
  refuse(oxla_load_memory(bytes.bytes, bytes.n, &o, &m), OXLA_INVALID_ARGUMENT, "'nobody' is unknown");
  snprintf(toy, sizeof toy, "%s/.libs/libonnx-xla.so", getenv("top_builddir") ? getenv("top_builddir") : ".");
  refuse(oxla_load_memory(bytes.bytes, bytes.n, options, &m), OXLA_INVALID_ARGUMENT, "exports no onnx_xla_backend");
}
END_TEST

/* Running out of memory is an error and does not end the process, also if memory runs out in the backend, which has its
 * own copy of the code that allocates. */
START_TEST(memory_limits) {
  message bytes = affine_model(W, B);
  int refused = 0, served = 0;
  for (uint64_t limit = 4 << 10; limit <= 1 << 20; limit += limit / 16) {
    oxla_model *m = NULL;
    oxla_run *run = NULL;
    oxla_options o = *options;
    o.max_memory = limit;
    oxla_error *error = oxla_load_memory(bytes.bytes, bytes.n, &o, &m);
    error = error ? error : oxla_run_create(m, &run);
    numbers v = make_numbers(2, 0);
    if (!error) {
      set_affine(run, &v, 2);
    }
    error = error ? error : oxla_compile(run);
    ck_assert_msg(!error || oxla_error_code(error) == OXLA_RESOURCE, "%s", oxla_error_message(error));
    refused += error != NULL;
    served += error == NULL;
    oxla_error_free(error);
    oxla_run_destroy(run);
    oxla_model_destroy(m);
    free_numbers(&v);
  }
  ck_assert(refused > 0 && served > 0);
}
END_TEST

/* The command line takes a backend's path, too. */
START_TEST(command_line) {
  const char *program = getenv("ONNX_XLA");
  if (!program || access(program, X_OK) != 0) {
    return;
  }
  message bytes = affine_model(W, B);
  char path[] = "toy-XXXXXX", command[9000];
  int fd = mkstemp(path);
  ck_assert(fd >= 0 && write(fd, bytes.bytes, bytes.n) == (ssize_t)bytes.n);
  close(fd);
  snprintf(command, sizeof command, "'%s' run '%s' --backend '%s' --dim n=2", program, path, toy);
  ck_assert_int_eq(system(command), 0);
  unlink(path);
}
END_TEST

/* Executes many runs.  Runs at the same time have separate memory, which later runs use again. */
static void *run_often(void *model) {
  for (int k = 0; k < 50; k++) {
    run_model(model, 1 + k % 5);
  }
  return NULL;
}

START_TEST(many_runs) {
  message bytes = affine_model(W, B);
  oxla_model *m;
  pthread_t threads[3];
  succeed(oxla_load_memory(bytes.bytes, bytes.n, options, &m));
  for (int k = 0; k < 3; k++) {
    ck_assert_int_eq(pthread_create(&threads[k], NULL, run_often, m), 0);
  }
  for (int k = 0; k < 3; k++) {
    ck_assert_int_eq(pthread_join(threads[k], NULL), 0);
  }
  oxla_model_destroy(m);
}
END_TEST

/* Checked runs look at the arrays between thunks, which is possible only in the host's memory. */
START_TEST(no_checked_runs_on_a_device) {
  message bytes = affine_model(W, B);
  oxla_model *m;
  oxla_run *run;
  oxla_options o = *options;
  o.check_memory = 1;
  succeed(oxla_load_memory(bytes.bytes, bytes.n, &o, &m));
  succeed(oxla_run_create(m, &run));
  numbers v = make_numbers(2, 0);
  set_affine(run, &v, 2);
  refuse(oxla_execute(run), OXLA_UNSUPPORTED, "target toy has memory of its own");
  oxla_run_destroy(run);
  free_numbers(&v);
  oxla_model_destroy(m);
}
END_TEST

static void add_tests(TCase *t) {
  tcase_add_test(t, compiles_and_runs);
  tcase_add_test(t, saves_and_loads);
  tcase_add_test(t, says_what_it_cannot);
  tcase_add_test(t, memory_limits);
  tcase_add_test(t, many_runs);
  tcase_add_test(t, command_line);
}

int main(void) {
  TCase *toys = tcase_create("toy"), *devices = tcase_create("device");
  tcase_add_checked_fixture(toys, setup_toy, NULL);
  tcase_add_checked_fixture(devices, setup_device, NULL);
  add_tests(toys);
  add_tests(devices);
  tcase_add_test(toys, is_no_backend);
  tcase_add_test(devices, no_checked_runs_on_a_device);
  Suite *s = suite_create("backend");
  suite_add_tcase(s, toys);
  suite_add_tcase(s, devices);
  return run_whole_suite(s);
}
