/* behaviour.h - the main function of a program that uses several objects as a careless user would: in the wrong order,
 * with wrong memory and wrong sizes, and in several threads.
 *
 * behaviour.py makes the models, compiles them, and includes this file after their headers:
 * - still: y = Tanh(a) + b for f32[3,5];
 * - open: y = the means of three neighbours in x, f32[1,1,n], whose n is open and must be at least 3;
 * - pick: y = data[index] for f32[5] and s64[2];
 * - some: y = the indices of x's elements that are not 0, for f32[2,3];
 * - update: y = x with x[index] replaced by value, for f32[5], s64[1] and f32[1];
 * - square: y = the product of x and x, f32[2,2];
 * - apart: y = table[index] for s64[2], with the table, 0, 1, 2, ... 99, in a file of weights;
 * - group: y0 to y5 = Tanh(x0) to Tanh(x5) for f32[64,500], which are independent, so they may be computed at once. */
#ifndef BEHAVIOUR_H
#define BEHAVIOUR_H

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"

enum { ROOM = 1 << 21, ELEMENTS = 15 };

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
    int is_large = bad[k] == (int64_t)1 << 40; /* this size would be right if there were so much memory */
    int error = is_large ? OPEN_ERROR_SIZES : open_bind(&n, aligned(room), bad[k]);
    EXPECT(is_large || open_arena_bytes(bad[k]) == 0);
    EXPECT(error != OPEN_OK && strlen(open_error_text(error)) > 4);
    EXPECT(is_large || open_run(&n) == OPEN_ERROR_NOT_READY);
  }
  for (int64_t size = 0; size < 3; size++) { /* a guard refuses them, even where the output's size would be negative */
    EXPECT(strstr(open_error_text(open_bind(&n, aligned(room), size)), "the object is for sizes with") != NULL);
  }
}

/* Binds the context, which may have been bound before, to this number of elements, runs it, and compares the output
 * with the means. */
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

/* The second dimension of the output is known after a run, until the next bind. */
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

/* Squares [[1, 1], [1, 0]] two times, which gives its fourth power, [[5, 3], [3, 2]]. */
static void square_twice(square *n, void *x, const void *y) {
  static const float begin[4] = {1, 1, 1, 0}, wanted[4] = {5, 3, 3, 2};
  memcpy(x, begin, sizeof begin);
  EXPECT(square_run(n) == SQUARE_OK);
  if (x != y) {
    EXPECT(square_set_in_x(n, y) == SQUARE_OK);
  }
  EXPECT(square_run(n) == SQUARE_OK && memcmp(y, wanted, sizeof wanted) == 0);
}

/* The output has the same memory as the input: memory of the caller, aligned or not, or of the arena. */
static void test_over_input(void) {
  square n;
  unsigned char memory[256], *begin = aligned(memory);
  EXPECT(square_init(&n, NULL) == SQUARE_OK && square_bind(&n, aligned(room)) == SQUARE_OK);
  square_twice(&n, square_in_x(&n), square_out_y(&n));
  EXPECT(square_set_in_x(&n, NULL) == SQUARE_OK && square_set_out_y(&n, square_in_x(&n)) == SQUARE_OK);
  square_twice(&n, square_in_x(&n), square_in_x(&n));
  for (size_t k = 0; k < 8; k += 4) {
    float *at = (float *)(void *)(begin + k);
    EXPECT(square_set_in_x(&n, at) == SQUARE_OK && square_set_out_y(&n, at) == SQUARE_OK);
    square_twice(&n, at, at);
  }
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
  weights[0] ^= 1; /* changes the mark by which the object knows its own file of weights */
  EXPECT(apart_init(&n, weights) == APART_ERROR_MEMORY);
  EXPECT(strstr(apart_error_text(APART_ERROR_MEMORY), "another object") != NULL);
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

/* A parallel loop that does its parts from the last to the first, and counts its calls. */
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

/* The state of a parallel loop that finds out how deeply its calls are nested. */
typedef struct nesting {
  int calls, now, most;
} nesting;

static void count_nesting(void *user, int64_t n, int64_t grain, void (*body)(void *data, int64_t begin, int64_t end),
                          void *data) {
  nesting *x = user;
  x->calls++;
  x->now++;
  x->most = x->now > x->most ? x->now : x->most;
  for (int64_t begin = 0; begin < n; begin += grain) {
    body(data, begin, n - begin < grain ? n : begin + grain);
  }
  x->now--;
}

/* Instructions that run at the same time (a concurrent group) contain no parallel loops, since few thread pools allow
 * nested ones. */
static void test_group(void) {
  nesting x = {0, 0, 0};
  group n;
  EXPECT(group_init(&n, NULL) == GROUP_OK && group_bind(&n, aligned(room)) == GROUP_OK);
  group_set_parallel(&n, count_nesting, &x);
  for (uint32_t k = 0; k < GROUP_INPUTS; k++) {
    float *in = group_input(&n, k);
    for (size_t i = 0; i < GROUP_IN_X0_ELEMENTS; i++) {
      in[i] = (float)k / 8;
    }
  }
  EXPECT(group_run(&n) == GROUP_OK && x.calls > 0 && x.most == 1);
  EXPECT(group_run(&n) == GROUP_OK && x.calls % 2 == 0);
  for (uint32_t k = 0; k < GROUP_OUTPUTS; k++) {
    EXPECT(fabsf(((float *)group_output(&n, k))[77] - tanhf((float)k / 8)) < 1e-5f);
  }
}

static void test_pool(void) {
  static onnx_xla_pool pools[2];
  open a, b;
  for (int round = 0; round < 2; round++) {
    EXPECT(onnx_xla_pool_start(&pools[0], 3) == 3);
    EXPECT(open_init(&a, NULL) == OPEN_OK && open_init(&b, NULL) == OPEN_OK);
    open_set_parallel(&a, onnx_xla_pool_run, &pools[0]);
    open_set_parallel(&b, onnx_xla_pool_run, &pools[1]);
    EXPECT(onnx_xla_pool_start(&pools[1], 1) == 1);
    for (int k = 0; k < 5; k++) {
      run_open(&a, 100000 + k);
      run_open(&b, 200000 - k);
      run_open(&a, 3 + k);
    }
    onnx_xla_pool_stop(&pools[0]);
    onnx_xla_pool_stop(&pools[1]);
  }
}

/* --- two contexts that share a pool --- */

enum { PLACES = 4000 };

typedef struct sharer {
  pthread_t thread;
  onnx_xla_pool *pool;
  int wrong, inner[PLACES], counts[PLACES]; /* how often the bodies of loops were called for each place */
  open context;
  unsigned char memory[ROOM];
} sharer;

/* Counts without atomic operations, so that ThreadSanitizer reports two threads at one place. */
static void count_inner(void *data, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; k++) {
    ((sharer *)data)->inner[k]++;
  }
}

/* The first call of a loop begins another one, which the pool does not divide. */
static void count_places(void *data, int64_t begin, int64_t end) {
  sharer *s = data;
  for (int64_t k = begin; k < end; k++) {
    s->counts[k]++;
  }
  if (begin == 0) {
    onnx_xla_pool_run(s->pool, PLACES, 1, count_inner, s);
  }
}

/* Runs loops of n places with this grain, and checks that each body was called once for each place that it had. */
static void count_loop(sharer *s, int64_t n, int64_t grain) {
  memset(s->counts, 0, sizeof s->counts);
  memset(s->inner, 0, sizeof s->inner);
  onnx_xla_pool_run(s->pool, n, grain, count_places, s);
  for (int64_t k = 0; k < PLACES; k++) {
    s->wrong += s->counts[k] != (k < n) || s->inner[k] != 1;
  }
}

/* Runs the context with x[k] = factor * k, whose means of neighbours are the numbers in the middle. */
static void run_shared(sharer *s, int64_t elements, float factor) {
  s->wrong += open_bind(&s->context, aligned(s->memory), elements) != OPEN_OK;
  float *x = open_in_x(&s->context);
  for (int64_t k = 0; k < elements && !s->wrong; k++) {
    x[k] = factor * (float)k;
  }
  s->wrong += open_run(&s->context) != OPEN_OK;
  for (int64_t k = 0; k < elements - 2 && !s->wrong; k++) {
    s->wrong += fabsf(open_out_y(&s->context)[k] - factor * (float)(k + 1)) > 1e-5f * factor * (float)(k + 1);
  }
}

static void *share(void *data) {
  sharer *s = data;
  s->wrong += open_init(&s->context, NULL) != OPEN_OK;
  open_set_parallel(&s->context, onnx_xla_pool_run, s->pool);
  for (int round = 1; round <= 200 && !s->wrong; round++) {
    count_loop(s, round % 2 ? round : PLACES - round, round % 7);
    if (round % 10 == 0) {
      run_shared(s, 100000 + round, (float)round);
    }
  }
  return NULL;
}

static void test_shared_pool(void) {
  static onnx_xla_pool pool;
  static sharer sharers[2];
  EXPECT(onnx_xla_pool_start(&pool, 3) == 3);
  for (int k = 0; k < 2; k++) {
    sharers[k].pool = &pool;
    EXPECT(pthread_create(&sharers[k].thread, NULL, share, &sharers[k]) == 0);
  }
  for (int k = 0; k < 2; k++) {
    EXPECT(pthread_join(sharers[k].thread, NULL) == 0);
    EXPECT(sharers[k].wrong == 0);
  }
  onnx_xla_pool_stop(&pool);
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
  test_over_input();
  test_weights(argc > 1 ? argv[1] : "");
  test_threads();
  test_parallel();
  test_group();
  test_pool();
  test_shared_pool();
  return report();
}

#endif
