/* check_memory.c - onnx-xla.h: ownership of memory: inputs that are borrowed or kept, outputs that are borrowed, given
 * or taken, the caller's allocator, and models in memory; and what the log says. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "api_client.h"

/* A model with the inputs a and b, and their product and sum as outputs. */
static message two_by_two(void) {
  message g = {.n = 0};
  add_node(&g, "Mul", "a", "b", "product");
  add_node(&g, "Add", "a", "b", "sum");
  add_value(&g, GRAPH_INPUT, "a", 1, DIMS(-1));
  add_value(&g, GRAPH_INPUT, "b", 1, DIMS(-1));
  add_value(&g, GRAPH_OUTPUT, "product", 1, DIMS(-1));
  add_value(&g, GRAPH_OUTPUT, "sum", 1, DIMS(-1));
  return finish_model(&g, 8, 13);
}

START_TEST(goes_by_index) {
  message m = two_by_two();
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  float a[] = {1, 2, 3}, b[] = {10, 20, 30}, product[3];
  oxla_tensor y;
  succeed(oxla_set_input_at(run, 1, OXLA_FLOAT, DIMS(3), b));
  succeed(oxla_set_input_at(run, 0, OXLA_FLOAT, DIMS(3), a));
  refuse(oxla_set_input_at(run, 2, OXLA_FLOAT, DIMS(3), a), OXLA_INVALID_ARGUMENT, "there is no input 2");
  refuse(oxla_set_input_at(run, SIZE_MAX, OXLA_FLOAT, DIMS(3), a), OXLA_INVALID_ARGUMENT, "there is no input");
  refuse(oxla_get_output_at(run, 2, &y), OXLA_INVALID_ARGUMENT, "there is no output 2");
  refuse(oxla_set_output_at(run, 2, a, 12), OXLA_INVALID_ARGUMENT, "there is no output 2");
  succeed(oxla_compile(run));
  succeed(oxla_get_output_at(run, 0, &y)); /* before an execution: the output's type and shape, without data */
  ck_assert_int_eq(y.rank, 1);
  ck_assert_int_eq(y.dims[0], 3);
  ck_assert_uint_eq(y.bytes, sizeof product);
  ck_assert_ptr_null(y.data);
  succeed(oxla_set_output_at(run, 0, product, sizeof product));
  succeed(oxla_execute(run));
  ck_assert_mem_eq(product, ((float[]){10, 40, 90}), sizeof product);
  succeed(oxla_get_output_at(run, 1, &y));
  ck_assert_mem_eq(y.data, ((float[]){11, 22, 33}), y.bytes);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

START_TEST(keeps_inputs) {
  message m = two_by_two();
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  float a[] = {1, 2, 3}, b[] = {10, 20, 30};
  oxla_tensor y;
  succeed(oxla_keep_inputs(run)); /* there is nothing to keep yet */
  succeed(oxla_set_input(run, "a", OXLA_FLOAT, DIMS(3), a));
  succeed(oxla_keep_inputs(run));
  a[0] = a[1] = a[2] = 77;
  succeed(oxla_set_input(run, "b", OXLA_FLOAT, DIMS(3), b));
  for (int k = 0; k < 2; k++) { /* a is kept, b is borrowed */
    b[0] += 1;
    succeed(oxla_execute(run));
    succeed(oxla_get_output(run, "sum", &y));
    ck_assert_mem_eq(y.data, ((float[]){12 + (float)k, 22, 33}), y.bytes);
  }
  succeed(oxla_keep_inputs(run)); /* keeping what is already kept changes nothing */
  succeed(oxla_keep_inputs(run));
  b[0] = 0;
  succeed(oxla_execute(run));
  succeed(oxla_get_output(run, "sum", &y));
  ck_assert_mem_eq(y.data, ((float[]){13, 22, 33}), y.bytes);
  succeed(oxla_set_input(run, "a", OXLA_FLOAT, DIMS(3), a)); /* borrowed again */
  succeed(oxla_execute(run));
  succeed(oxla_get_output(run, "sum", &y));
  ck_assert_mem_eq(y.data, ((float[]){89, 97, 107}), y.bytes);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

static void *free_it(void *data) {
  void **model_and_data = data;
  oxla_free_output(model_and_data[0], model_and_data[1]);
  return NULL;
}

START_TEST(takes_outputs) {
  enum { TAKEN = 20 };
  message m = affine_model(W, B);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  oxla_tensor taken[TAKEN], y;
  numbers v[TAKEN];
  for (int k = 0; k < TAKEN; k++) {
    int rows = 1 + k % 3;
    v[k] = make_numbers(rows, (float)k);
    set_affine(run, &v[k], rows);
    succeed(oxla_execute(run));
    taken[k] = check_result(run, &v[k], rows);
    succeed(oxla_take_output(run, &taken[k]));
    refuse(oxla_take_output(run, &taken[k]), OXLA_INVALID_ARGUMENT, "not an output in the run's own memory");
    succeed(oxla_get_output(run, "y", &y)); /* the shape stays */
    ck_assert_ptr_null(y.data);
    ck_assert_int_eq(y.dims[0], rows);
  }
  float given[4];
  set_affine(run, &v[0], 1);
  succeed(oxla_set_output(run, "y", given, sizeof given));
  succeed(oxla_execute(run));
  succeed(oxla_get_output(run, "y", &y));
  refuse(oxla_take_output(run, &y), OXLA_INVALID_ARGUMENT,
         "not an output in the run's own memory"); /* the memory is the caller's */
  oxla_run_destroy(run);                           /* outputs that were taken stay valid */
  for (int k = 0; k < TAKEN; k++) {
    ck_assert_mem_eq(taken[k].data, v[k].want, taken[k].bytes);
    free_numbers(&v[k]);
  }
  pthread_t thread;
  void *model_and_data[] = {model, taken[3].data};
  pthread_create(&thread, NULL, free_it, model_and_data);
  for (int k = 4; k < TAKEN; k++) { /* the others are freed with the model */
    oxla_free_output(model, taken[k].data);
  }
  pthread_join(thread, NULL);
  oxla_free_output(model, NULL);
  oxla_free_output(model, given); /* this memory was never taken */
  oxla_model_destroy(model);
}
END_TEST

/* --- an allocator --- */

/* An allocator that counts bytes and calls, and keeps the size of each block in front of it. */
typedef struct counting {
  _Atomic long held, calls;
  _Atomic long left; /* how many calls are served before one is refused; below 0: none is refused */
} counting;

static void *count_allocate(void *data, size_t bytes, size_t align) {
  counting *c = data;
  if (atomic_load(&c->left) >= 0 && atomic_fetch_sub(&c->left, 1) <= 0) {
    atomic_store(&c->left, 0);
    return NULL;
  }
  size_t front = align < 2 * sizeof bytes ? 2 * sizeof bytes : align;
  char *memory = aligned_alloc(front, (bytes + 2 * front - 1) & ~(front - 1));
  ((size_t *)(void *)(memory + front))[-1] = bytes;
  ((size_t *)(void *)(memory + front))[-2] = align;
  memset(memory + front, 0xa5, bytes); /* memory from an allocator need not be zero */
  c->held += (long)bytes;
  c->calls++;
  return memory + front;
}

static void count_release(void *data, void *memory, size_t bytes, size_t align) {
  counting *c = data;
  ck_assert_ptr_nonnull(memory);
  ck_assert_uint_eq(((size_t *)memory)[-1], bytes);
  ck_assert_uint_eq(((size_t *)memory)[-2], align);
  c->held -= (long)bytes;
  size_t front = align < 2 * sizeof bytes ? 2 * sizeof bytes : align;
  free((char *)memory - front);
}

static oxla_error *load_counted(const message *m, int backend, counting *c, oxla_model **out) {
  oxla_allocator a = {count_allocate, count_release, c}; /* the library copies it */
  oxla_options o = {.size = sizeof o, .backend = backends[backend], .threads = 2, .allocator = &a};
  return oxla_load_memory(m->bytes, m->n, &o, out);
}

START_TEST(allocates) {
  message m = affine_model(W, B);
  counting c = {.left = -1};
  oxla_model *model;
  succeed(load_counted(&m, _i, &c, &model));
  ck_assert_int_gt(c.calls, 0);
  oxla_run *run = new_run(model);
  run_affine(run, 20000, 1);
  ck_assert_int_ge(c.held, 20000 * 4 * (long)sizeof(float)); /* this includes the output */
  run_affine(run, 3, 1);
  long held = c.held;
  for (int k = 0; k < 20; k++) {
    run_affine(run, 3, (float)k);
  }
  ck_assert_int_eq(c.held, held);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  ck_assert_int_eq(c.held, 0);
  oxla_options o = {.size = sizeof o, .allocator = &(oxla_allocator){.data = &c}};
  refuse(oxla_load_memory(m.bytes, m.n, &o, &model), OXLA_INVALID_ARGUMENT, "allocator without functions");
}
END_TEST

/* Each allocation in turn is refused: each time there is an error, and no memory is leaked. */
START_TEST(allocates_nothing) {
  message m = affine_model(W, B);
  bool done = false;
  for (long n = 0; !done; n++) {
    counting c = {.left = n};
    numbers v = make_numbers(2, 1);
    oxla_model *model;
    oxla_run *run = NULL;
    oxla_error *error = load_counted(&m, _i, &c, &model);
    if (!error) {
      run = new_run(model);
      set_affine(run, &v, 2);
      error = oxla_execute(run);
    }
    done = !error;
    if (error) {
      refuse(error, OXLA_RESOURCE, "memory");
    }
    oxla_run_destroy(run);
    oxla_model_destroy(model);
    free_numbers(&v);
    ck_assert_int_eq(c.held, 0);
    ck_assert_int_lt(n, 10000);
  }
}
END_TEST

/* --- compiled models in memory --- */

START_TEST(loads_compiled_bytes) {
  message m = affine_model(W, B);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  void *saved = run;
  size_t size = 1;
  refuse(oxla_save_memory(model, &saved, &size), OXLA_INVALID_ARGUMENT, "nothing has been compiled");
  ck_assert_ptr_null(saved);
  ck_assert_uint_eq(size, 0);
  run_affine(run, 2, 0);
  succeed(oxla_save_memory(model, &saved, &size));
  ck_assert_uint_gt(size, 0);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  char *bytes = aligned_alloc(4096, (size + 2 * 4096) & ~(size_t)4095);
  for (int odd = 1; odd >= 0; odd--) { /* at an odd address, and at the beginning of a page */
    char *at = bytes + 8 * odd;
    memcpy(at, saved, size);
    succeed(oxla_load_memory(at, size, NULL, &model));
    ck_assert_uint_eq(oxla_initializer_count(model), 0);
    run = new_run(model);
    run_affine(run, 2, 3);
    run_affine(run, 3, 1); /* what was saved is for all sizes */
    oxla_run_destroy(run);
    oxla_model_destroy(model);
  }
  refuse(oxla_load_memory(bytes, size - 1, NULL, &model), OXLA_INVALID_FILE, "");
  free(bytes);
  oxla_free(saved);
}
END_TEST

/* --- the log --- */

typedef struct lines {
  char text[8192];
  int n[4]; /* by level */
} lines;

static void remember(void *data, oxla_log_level level, const char *line) {
  lines *l = data;
  ck_assert(level >= OXLA_LOG_WARNING && level <= OXLA_LOG_DEBUG);
  ck_assert_ptr_null(strchr(line, '\n'));
  l->n[level]++;
  strncat(l->text, line, sizeof l->text - strlen(l->text) - 2);
  strcat(l->text, "\n");
}

START_TEST(logs) {
  message m = affine_model(W, B);
  lines l = {.n = {0}};
  oxla_model *model = load_with(
      &m, (oxla_options){.backend = backends[_i], .log = remember, .log_data = &l, .cache = "/dev/null/nowhere"});
  oxla_run *run = new_run(model);
  ck_assert_msg(strstr(l.text, "opened \"test\"") && strstr(l.text, backends[_i]), "%s", l.text);
  run_affine(run, 2, 0);
  ck_assert_msg(strstr(l.text, "compiled for x f32[2,4]"), "%s", l.text);
  int info = l.n[OXLA_LOG_INFO], debug = l.n[OXLA_LOG_DEBUG];
  run_affine(run, 2, 1); /* compiles nothing */
  ck_assert_int_eq(l.n[OXLA_LOG_INFO], info);
  ck_assert_int_eq(l.n[OXLA_LOG_DEBUG], debug + 1);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  if (_i == 0) { /* only the cpu backend writes to the cache */
    ck_assert_msg(l.n[OXLA_LOG_WARNING] > 0 && strstr(l.text, "/dev/null/nowhere"), "%s", l.text);
  }
}
END_TEST

/* Each option of the header reaches the session, which logs those that are set. */
START_TEST(options_arrive) {
  message m = affine_model(W, B);
  lines l = {.n = {0}};
  bool is_cpu =
      strcmp(backends[_i], "cpu") == 0; /* ref has no options of a processor, and refuses them (check_gpu.c) */
  oxla_model_destroy(load_with(&m, (oxla_options){.backend = backends[_i],
                                                  .cpu = is_cpu ? "x86-64" : NULL,
                                                  .lanes = is_cpu ? 4 : 0,
                                                  .threads = 2,
                                                  .skip_passes = "cse,dce",
                                                  .tune = "off",
                                                  .precision = "fp32",
                                                  .exact = 1,
                                                  .deterministic = -1,
                                                  .unchecked = 2,
                                                  .log = remember,
                                                  .log_data = &l}));
  const char *want =
      is_cpu ? "options: --cpu=x86-64 --lanes=4 --threads=2 --skip-pass=cse,dce --tune=off --precision=fp32 "
               "--exact --deterministic --unchecked\n"
             : "options: --threads=2 --skip-pass=cse,dce --tune=off --precision=fp32 --exact "
               "--deterministic --unchecked\n";
  ck_assert_msg(strstr(l.text, want), "%s", l.text);
  l.text[0] = '\0';
  oxla_model_destroy(load_with(
      &m, (oxla_options){.backend = backends[_i], .threads = 1, .exact = 1, .log = remember, .log_data = &l}));
  ck_assert_msg(strstr(l.text, "options: --threads=1 --exact\n"), "%s", l.text);
}
END_TEST

int main(void) {
  const TTest *const once[] = {NULL};
  const TTest *const both[] = {goes_by_index,        keeps_inputs, takes_outputs,  allocates, allocates_nothing,
                               loads_compiled_bytes, logs,         options_arrive, NULL};
  return run_tests("memory", once, both);
}
