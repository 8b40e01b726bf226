/* behaviour.h - the main function of a program that uses several objects as a careless user would: in the wrong order,
 * with wrong memory and wrong sizes, and in several threads.
 *
 * behaviour.py makes the models, compiles them, and includes this file behind their headers:
 * - still: y = Tanh(a) + b for f32[3,5];
 * - open: y = the means of three neighbours in x, f32[1,1,n], whose n is open and must be at least 3;
 * - pick: y = data[index] for f32[5] and s64[2];
 * - some: y = the indices of x's elements that are not 0, for f32[2,3];
 * - update: y = x with x[index] replaced by value, for f32[5], s64[1] and f32[1];
 * - apart: y = table[index] for s64[2], with the table, 0, 1, 2, ... 99, in a file of weights. */
#ifndef BEHAVIOUR_H
#define BEHAVIOUR_H

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { ROOM = 1 << 21, ELEMENTS = 15 };

static int checks, failures;

#define EXPECT(condition) expect((condition) != 0, #condition, __LINE__)

static void expect(int is_true, const char *condition, int line) {
  checks++;
  if (!is_true) {
    failures++;
    printf("FAIL behaviour.h:%d: %s\n", line, condition);
  }
}

/* Returns the first address in `memory` that is aligned as an arena must be. */
static unsigned char *aligned(unsigned char *memory) { return memory + (64 - (uintptr_t)memory % 64) % 64; }

static unsigned char room[ROOM];

/* --- the wrong order, and wrong memory --- */

static void test_order(void) {
  still n;
  int64_t dims[2];
  memset(&n, 0, sizeof n);
  EXPECT(still_run(&n) == STILL_ERROR_NOT_READY);
  EXPECT(still_bind(&n, aligned(room)) == STILL_ERROR_NOT_READY);
  EXPECT(still_init(&n, NULL) == STILL_OK);
  EXPECT(still_run(&n) == STILL_ERROR_NOT_READY);
  EXPECT(still_input(&n, 0) == NULL);
  EXPECT(still_output(&n, 0) == NULL);
  EXPECT(still_input_dims(&n, 0, dims) == STILL_ERROR_NOT_READY);
  EXPECT(still_output_dims(&n, 0, dims) == STILL_ERROR_NOT_READY);
  EXPECT(still_bind(&n, aligned(room)) == STILL_OK);
  EXPECT(still_input(&n, STILL_INPUTS) == NULL);
  EXPECT(still_output(&n, UINT32_MAX) == NULL);
  EXPECT(still_set_input(&n, STILL_INPUTS, room) == STILL_ERROR_NO_SUCH);
  EXPECT(still_set_output(&n, UINT32_MAX, room) == STILL_ERROR_NO_SUCH);
  EXPECT(still_input_dims(&n, STILL_INPUTS, dims) == STILL_ERROR_NO_SUCH);
  EXPECT(still_input_dims(&n, 1, dims) == STILL_OK && dims[0] == 3 && dims[1] == 5);
  EXPECT(still_run(&n) == STILL_OK);
}

static void test_memory(void) {
  still n;
  EXPECT(still_init(&n, aligned(room) + 1) == STILL_ERROR_MEMORY);
  EXPECT(still_bind(&n, aligned(room)) == STILL_ERROR_NOT_READY);
  EXPECT(still_init(&n, NULL) == STILL_OK);
  EXPECT(still_bind(&n, NULL) == STILL_ERROR_MEMORY);
  EXPECT(still_bind(&n, aligned(room) + 8) == STILL_ERROR_MEMORY);
  EXPECT(still_run(&n) == STILL_ERROR_NOT_READY);
  EXPECT(still_bind(&n, aligned(room)) == STILL_OK);
  EXPECT(still_bind(&n, NULL) == STILL_ERROR_MEMORY);
  EXPECT(still_run(&n) == STILL_ERROR_NOT_READY); /* no run after a bind that failed */
}

static void test_texts(void) {
  for (int k = 0; k <= STILL_ERROR_NO_SUCH; k++) {
    EXPECT(strlen(still_error_text(k)) > 4);
  }
  EXPECT(strcmp(still_error_text(-1), "unknown error") == 0);
  EXPECT(strcmp(still_error_text(1000000), "unknown error") == 0);
  EXPECT(strcmp(still_inputs[0].name, "a") == 0 && strcmp(still_inputs[0].type, "f32") == 0);
  EXPECT(still_inputs[0].rank == 2 && still_inputs[0].dims[1] == 5 && still_inputs[0].element_bytes == 4);
  EXPECT(open_inputs[0].dims[1] == 1 && open_inputs[0].dims[2] == -1);
}

/* --- sizes --- */

static void test_bad_sizes(void) {
  static const int64_t bad[] = {-1, 0, 1, 2, INT64_MIN, INT64_MAX, INT64_MAX / 4, (int64_t)1 << 60, (int64_t)1 << 40};
  open n;
  EXPECT(open_init(&n, NULL) == OPEN_OK);
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    int is_large = bad[k] == (int64_t)1 << 40; /* a size that would do if there were so much memory */
    int error = is_large ? OPEN_ERROR_SIZES : open_bind(&n, aligned(room), bad[k]);
    EXPECT(is_large || open_arena_bytes(bad[k]) == 0);
    EXPECT(error != OPEN_OK && strlen(open_error_text(error)) > 4);
    EXPECT(is_large || open_run(&n) == OPEN_ERROR_NOT_READY);
  }
  EXPECT(strstr(open_error_text(open_bind(&n, aligned(room), 2)), "the object is for sizes with") != NULL);
}

/* Binds to n elements, runs, and compares with the means; a context may be bound again. */
static void run_open(open *n, int64_t elements) {
  int64_t dims[3];
  EXPECT(open_arena_bytes(elements) > 0 && open_arena_bytes(elements) <= ROOM - 64);
  EXPECT(open_bind(n, aligned(room), elements) == OPEN_OK);
  float *x = open_in_x(n);
  for (int64_t k = 0; k < elements; k++) {
    x[k] = (float)(k * k % 7);
  }
  EXPECT(open_run(n) == OPEN_OK);
  EXPECT(open_output_dims(n, 0, dims) == OPEN_OK && dims[2] == elements - 2);
  const float *y = open_out_y(n);
  for (int64_t k = 0; k < elements - 2; k++) {
    float sum = (float)(k * k % 7 + (k + 1) * (k + 1) % 7 + (k + 2) * (k + 2) % 7);
    EXPECT(fabsf(y[k] - sum / 3) < 1e-5f);
  }
}

static void test_sizes(void) {
  static const int64_t sizes[] = {5, 3, 1000, 64, 3};
  open n;
  EXPECT(open_init(&n, NULL) == OPEN_OK);
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    run_open(&n, sizes[k]);
  }
}

/* --- contents --- */

static void test_index(void) {
  static const float data[5] = {2, 3, 5, 7, 11};
  static const int64_t good[2] = {4, -5}, bad[2] = {0, 5};
  pick n;
  EXPECT(pick_init(&n, NULL) == PICK_OK && pick_bind(&n, aligned(room)) == PICK_OK);
  memcpy(pick_in_data(&n), data, sizeof data);
  memcpy(pick_in_index(&n), bad, sizeof bad);
  int error = pick_run(&n);
  EXPECT(error > PICK_ERROR_NO_SUCH && strstr(pick_error_text(error), "out of bounds") != NULL);
  EXPECT(pick_set_in_index(&n, good) == PICK_OK);
  EXPECT(pick_run(&n) == PICK_OK);
  EXPECT(pick_out_y(&n)[0] == 11 && pick_out_y(&n)[1] == 2);
}

/* The second dimension of the output is known after a run, and not again after the next bind. */
static void test_data_sizes(void) {
  static const float x[2][6] = {{0, 1, 0, 1, 0, 0}, {0, 0, 0, 0, 0, 0}};
  static const int64_t wanted[] = {0, 1, 1, 0};
  some n;
  int64_t dims[2] = {0, 0};
  EXPECT(some_outputs[0].dims[0] == 2 && some_outputs[0].dims[1] == -1);
  EXPECT(some_init(&n, NULL) == SOME_OK && some_bind(&n, aligned(room)) == SOME_OK);
  EXPECT(some_output_dims(&n, 0, dims) == SOME_ERROR_NOT_READY);
  for (int k = 0; k < 2; k++) {
    memcpy(some_in_x(&n), x[k], sizeof x[k]);
    EXPECT(some_run(&n) == SOME_OK && some_output_dims(&n, 0, dims) == SOME_OK);
    EXPECT(dims[0] == 2 && dims[1] == (k ? 0 : 2));
    EXPECT(k || memcmp(some_out_y(&n), wanted, sizeof wanted) == 0);
  }
  EXPECT(some_bind(&n, aligned(room)) == SOME_OK);
  EXPECT(some_output_dims(&n, 0, dims) == SOME_ERROR_NOT_READY);
}

/* The output may lie in the memory of the input that it is an update of, or elsewhere. */
static void test_update(void) {
  static const int64_t index = 3;
  static const float value = 9;
  float memory[5] = {0, 1, 2, 3, 4}, other[5];
  update n;
  EXPECT(update_init(&n, NULL) == UPDATE_OK && update_bind(&n, aligned(room)) == UPDATE_OK);
  EXPECT(update_set_in_x(&n, memory) == UPDATE_OK && update_set_out_y(&n, other) == UPDATE_OK);
  EXPECT(update_set_in_index(&n, &index) == UPDATE_OK && update_set_in_value(&n, &value) == UPDATE_OK);
  EXPECT(update_run(&n) == UPDATE_OK && other[2] == 2 && other[3] == 9 && memory[3] == 3);
  EXPECT(update_set_out_y(&n, memory) == UPDATE_OK);
  EXPECT(update_run(&n) == UPDATE_OK && memory[2] == 2 && memory[3] == 9 && memory[4] == 4);
}

/* --- weights --- */

static void test_weights(const char *path) {
  static const int64_t index[2] = {99, 7};
  static unsigned char memory[ROOM];
  unsigned char *weights = aligned(memory);
  apart n;
  FILE *f = fopen(path, "rb");
  EXPECT(f && fread(weights, 1, ROOM - 64, f) >= 100 * sizeof(float));
  EXPECT(apart_init(&n, NULL) == APART_ERROR_MEMORY);
  EXPECT(apart_init(&n, weights + 4) == APART_ERROR_MEMORY);
  EXPECT(apart_init(&n, weights) == APART_OK && apart_bind(&n, aligned(room)) == APART_OK);
  EXPECT(apart_set_in_index(&n, index) == APART_OK && apart_run(&n) == APART_OK);
  EXPECT(apart_out_y(&n)[0] == 99 && apart_out_y(&n)[1] == 7);
  EXPECT(!f || fclose(f) == 0);
}

/* --- threads --- */

typedef struct worker {
  pthread_t thread;
  float value;
  int wrong;
  still context;
  unsigned char memory[ROOM];
} worker;

static void *work(void *data) {
  worker *w = data;
  w->wrong += still_init(&w->context, NULL) != STILL_OK || still_bind(&w->context, aligned(w->memory)) != STILL_OK;
  for (int round = 0; round < 200 && !w->wrong; round++) {
    float x = w->value + (float)round / 100;
    for (int k = 0; k < ELEMENTS; k++) {
      still_in_a(&w->context)[k] = x;
      still_in_b(&w->context)[k] = (float)k;
    }
    w->wrong += still_run(&w->context) != STILL_OK;
    for (int k = 0; k < ELEMENTS; k++) {
      w->wrong += fabsf(still_out_y(&w->context)[k] - (tanhf(x) + (float)k)) > 1e-5f;
    }
  }
  return NULL;
}

static void test_threads(void) {
  static worker workers[2];
  for (int k = 0; k < 2; k++) {
    workers[k].value = (float)k - 1;
    EXPECT(pthread_create(&workers[k].thread, NULL, work, &workers[k]) == 0);
  }
  for (int k = 0; k < 2; k++) {
    EXPECT(pthread_join(workers[k].thread, NULL) == 0);
    EXPECT(workers[k].wrong == 0);
  }
}

/* A loop that does its parts from the last to the first, and counts calls. */
static void backwards(void *user, int64_t n, int64_t grain, void (*body)(void *data, int64_t begin, int64_t end),
                      void *data) {
  ++*(int *)user;
  for (int64_t end = n; end > 0; end -= grain) {
    body(data, end > grain ? end - grain : 0, end);
  }
}

static void test_parallel(void) {
  open n;
  int calls = 0;
  EXPECT(open_init(&n, NULL) == OPEN_OK);
  open_set_parallel(&n, backwards, &calls);
  run_open(&n, 200000);
  EXPECT(calls > 0);
  open_set_parallel(&n, NULL, NULL);
  run_open(&n, 1000);
}

/* --- the pool of threads --- */

typedef struct counted {
  int calls, hits[1000];
} counted;

static void count(void *data, int64_t begin, int64_t end) {
  counted *c = data;
  __atomic_add_fetch(&c->calls, 1, __ATOMIC_RELAXED);
  for (int64_t k = begin; k < end; k++) {
    __atomic_add_fetch(&c->hits[k], 1, __ATOMIC_RELAXED);
  }
}

/* Returns the calls of a loop, of which each element must have been in one, or -1. */
static int counted_calls(onnx_xla_pool *pool, int64_t n, int64_t grain) {
  counted c = {0};
  bool once = true;
  onnx_xla_pool_run(pool, n, grain, count, &c);
  for (int64_t k = 0; k < n; k++) {
    once = once && c.hits[k] == 1;
  }
  return once ? c.calls : -1;
}

typedef struct nested {
  onnx_xla_pool *pool;
  int wrong;
} nested;

static void begin_loops(void *data, int64_t begin, int64_t end) {
  nested *x = data;
  for (int64_t k = begin; k < end; k++) {
    if (counted_calls(x->pool, 100 + k, 1) != 1) {
      __atomic_add_fetch(&x->wrong, 1, __ATOMIC_RELAXED);
    }
  }
}

/* Loops of all lengths, also behind a pause in which the threads fall asleep; one of less than two grains is the
 * caller's, and one within a loop is that of the thread which begins it.  A pool can be started again. */
static void test_pool(void) {
  static onnx_xla_pool pool;
  for (int again = 0; again < 2; again++) {
    EXPECT(onnx_xla_pool_start(&pool, 3) == 3);
    EXPECT(counted_calls(&pool, 199, 100) == 1);
    for (int64_t n = 1; n <= 1000; n++) {
      if (n % 100 == 0) {
        nanosleep(&(struct timespec){0, 1000000}, NULL);
      }
      int calls = counted_calls(&pool, n, 1);
      EXPECT(calls > 0 && calls <= 12);
    }
    nested loops = {&pool, 0};
    for (int round = 0; round < 100; round++) {
      onnx_xla_pool_run(&pool, 100, 1, begin_loops, &loops);
    }
    EXPECT(loops.wrong == 0);
    open object;
    EXPECT(open_init(&object, NULL) == OPEN_OK);
    open_set_parallel(&object, onnx_xla_pool_run, &pool);
    run_open(&object, 200000);
    onnx_xla_pool_stop(&pool);
  }
}

int main(int argc, char **argv) {
  test_order();
  test_memory();
  test_texts();
  test_bad_sizes();
  test_sizes();
  test_index();
  test_data_sizes();
  test_update();
  test_weights(argc > 1 ? argv[1] : "");
  test_threads();
  test_parallel();
  test_pool();
  printf("%d checks, %d failures\n", checks, failures);
  return failures != 0;
}

#endif
