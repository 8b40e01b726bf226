/* check_backend.c - a third party's backend (module_toy_backend.c), loaded by path: compiles, runs, saves, loads. */
#include <stdio.h>
#include <unistd.h>

#include "api_client.h"

static char toy[4096];
static const oxla_options *options;

static void setup(void) {
  static oxla_options o = {.size = sizeof o, .backend = toy};
  const char *top = getenv("top_builddir");
  snprintf(toy, sizeof toy, "%s/tests/api/.libs/module_toy_backend.so", top ? top : ".");
  options = &o;
}

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

/* Wherever memory runs out, also in the backend's own copy of what allocates, that is an error and no end of the
 * process. */
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

/* The command line takes it too. */
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

int main(void) {
  TCase *t = tcase_create("all");
  tcase_add_checked_fixture(t, setup, NULL);
  tcase_add_test(t, compiles_and_runs);
  tcase_add_test(t, saves_and_loads);
  tcase_add_test(t, says_what_it_cannot);
  tcase_add_test(t, is_no_backend);
  tcase_add_test(t, memory_limits);
  tcase_add_test(t, command_line);
  return run_suite("backend", t);
}
