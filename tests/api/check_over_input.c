/* check_over_input.c - outputs that are written to the memory of an input (oxla_set_output), on both backends, compared
 * with arrays that the test keeps itself. */
#include <stdatomic.h>
#include <stdio.h>

#include "api_client.h"

enum { LINES = 2, ROWS = 64, WIDTH = 48, ELEMENTS = LINES * ROWS * WIDTH, BYTES = ELEMENTS * 4, STEPS = 6 };

/* --- models --- */

static void add_scatter(message *graph, const char *x, const char *out) {
  message node = {.n = 0};
  put_text(&node, 1, "cache");
  put_text(&node, 1, x);
  put_text(&node, 1, "at");
  put_text(&node, 2, out);
  put_text(&node, 4, "TensorScatter");
  put_message(graph, GRAPH_NODE, &node);
}

/* How `next` is computed from `cache`.  `sum` is the sum of the rows of `next`. */
typedef enum update {
  SCATTERED,      /* one row of each line is replaced */
  SCATTERED_OPEN, /* as SCATTERED, but the number of rows is a symbol */
  READ,   /* as SCATTERED, and `first` is the sum of the rows of `cache`, which is read after `next` is computed */
  SECOND, /* as SCATTERED, and another output, `before`, is an update of `cache`, too; only one of the two outputs can
             be in place */
  ADDED,  /* x is added to each row */
  N_UPDATES
} update;

static message cache_model(update u) {
  message g = {.n = 0};
  static const int64_t axis = 1;
  const int64_t dims[] = {LINES, u == SCATTERED_OPEN ? -1 : ROWS, WIDTH};
  if (u == SECOND) {
    add_scatter(&g, "other", "before");
    add_value(&g, GRAPH_INPUT, "other", 1, DIMS(LINES, 1, WIDTH));
    add_value(&g, GRAPH_OUTPUT, "before", 1, 3, dims);
  }
  if (u == ADDED) {
    add_node(&g, "Add", "cache", "x", "next");
  } else {
    add_scatter(&g, "x", "next");
    add_value(&g, GRAPH_INPUT, "at", 7, DIMS(LINES));
  }
  add_node(&g, "ReduceSum", "next", "axis", "sum");
  if (u == READ) {
    add_node(&g, "ReduceSum", "cache", "axis", "first");
    add_value(&g, GRAPH_OUTPUT, "first", 1, DIMS(LINES, 1, WIDTH));
  }
  add_weight(&g, "axis", 7, DIMS(1), &axis, sizeof axis);
  add_value(&g, GRAPH_INPUT, "cache", 1, 3, dims);
  add_value(&g, GRAPH_INPUT, "x", 1, DIMS(LINES, 1, WIDTH));
  add_value(&g, GRAPH_OUTPUT, "next", 1, 3, dims);
  add_value(&g, GRAPH_OUTPUT, "sum", 1, DIMS(LINES, 1, WIDTH));
  return finish_model(&g, 11, 24);
}

/* --- what is in the memory --- */

typedef float lines[LINES][ROWS][WIDTH];

typedef struct state {
  lines cache, before;
  float x[LINES][WIDTH], other[LINES][WIDTH];
  int64_t at[LINES];
  uint64_t random;
} state;

static uint32_t below(state *s, uint32_t n) {
  s->random = s->random * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(s->random >> 33) % n;
}

/* Small integers, whose sums are exact. */
static void fill(state *s, float *x, int n) {
  for (int k = 0; k < n; k++) {
    x[k] = (float)below(s, 64) - 32;
  }
}

static void replace_row(const state *s, lines to, float (*with)[WIDTH]) {
  for (int l = 0; l < LINES; l++) {
    memcpy(to[l][s->at[l]], with[l], sizeof with[l]);
  }
}

static void advance(state *s, update u) {
  memcpy(s->before, s->cache, sizeof s->before);
  for (int k = 0; u == ADDED && k < ELEMENTS; k++) {
    (&s->cache[0][0][0])[k] += s->x[k / (ROWS * WIDTH)][k % WIDTH];
  }
  if (u != ADDED) {
    replace_row(s, s->cache, s->x);
  }
}

static void check_sum(const oxla_run *run, const char *name, lines of) {
  oxla_tensor t;
  succeed(oxla_get_output(run, name, &t));
  for (int k = 0; k < LINES * WIDTH; k++) {
    float sum = 0;
    for (int r = 0; r < ROWS; r++) {
      sum += of[k / WIDTH][r][k % WIDTH];
    }
    ck_assert_float_eq(((float *)t.data)[k], sum);
  }
}

static void set_inputs(oxla_run *run, state *s, update u, const float *cache) {
  succeed(oxla_set_input(run, "cache", OXLA_FLOAT, DIMS(LINES, ROWS, WIDTH), cache));
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, DIMS(LINES, 1, WIDTH), s->x));
  if (u != ADDED) {
    succeed(oxla_set_input(run, "at", OXLA_INT64, DIMS(LINES), s->at));
  }
  if (u == SECOND) {
    succeed(oxla_set_input(run, "other", OXLA_FLOAT, DIMS(LINES, 1, WIDTH), s->other));
  }
}

/* Executes with new rows.  The memory `cache` contains s->cache; `next` is the memory of the output. */
static void step(oxla_run *run, state *s, update u, const float *cache, const float *next) {
  fill(s, &s->x[0][0], LINES * WIDTH);
  fill(s, &s->other[0][0], LINES * WIDTH);
  for (int l = 0; l < LINES; l++) {
    s->at[l] = below(s, ROWS);
  }
  set_inputs(run, s, u, cache);
  succeed(oxla_execute(run));
  advance(s, u);
  oxla_tensor t;
  succeed(oxla_get_output(run, "next", &t));
  ck_assert_ptr_eq(t.data, next);
  ck_assert_mem_eq(next, s->cache, BYTES);
  ck_assert(next == cache || memcmp(cache, s->before, BYTES) == 0);
  check_sum(run, "sum", s->cache);
  if (u == READ) {
    check_sum(run, "first", s->before);
  }
  if (u == SECOND) {
    succeed(oxla_get_output(run, "before", &t));
    replace_row(s, s->before, s->other);
    ck_assert_mem_eq(t.data, s->before, BYTES);
  }
}

/* --- an allocator that counts --- */

static atomic_size_t n_allocated; /* the bytes of large blocks */

static void *allocate(void *data, size_t bytes, size_t align) {
  (void)data;
  void *p;
  n_allocated += bytes >= BYTES ? bytes : 0;
  return posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, bytes) ? NULL : p;
}

static void release(void *data, void *memory, size_t bytes, size_t align) {
  (void)data, (void)bytes, (void)align;
  free(memory);
}

static const oxla_allocator allocator = {.allocate = allocate, .release = release};

static oxla_model *load_cache(update u, int backend, int check_memory) {
  message m = cache_model(u);
  return load_with(&m, (oxla_options){.backend = backends[backend],
                                      .threads = 2,
                                      .cache = "",
                                      .check_memory = check_memory,
                                      .allocator = &allocator});
}

/* --- tests --- */

static _Alignas(64) char one_memory[BYTES + 64], other_memory[BYTES + 64];

/* In two steps of three, the output is in the memory of the input; in the third step it is in other memory.  The
 * numbers are right whether or not the update is done in place. */
START_TEST(updates) {
  update u = (update)(_i / 8);
  int offset = _i / 4 % 2 ? 4 : 0; /* memory that is not aligned is copied before and after */
  oxla_model *model = load_cache(u, _i % 2, _i / 2 % 2);
  oxla_run *run = new_run(model);
  static state s;
  s = (state){.random = 5};
  float *one = (float *)(one_memory + offset), *other = (float *)(other_memory + offset);
  fill(&s, &s.cache[0][0][0], ELEMENTS);
  memcpy(one, s.cache, BYTES);
  for (int k = 0; k < STEPS; k++) {
    float *to = k % 3 == 2 ? other : one;
    succeed(oxla_set_output(run, "next", to, BYTES));
    step(run, &s, u, one, to);
    if (to == other) {
      other = one;
      one = to;
    }
  }
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* Scattering rows allocates no memory for a second cache; the other updates allocate memory for one. */
START_TEST(memory) {
  update u = (update)_i;
  bool in_place = u == SCATTERED || u == SCATTERED_OPEN;
  oxla_model *model = load_cache(u, 0, 0);
  oxla_run *run = new_run(model);
  static state s;
  s = (state){.random = 9};
  float *cache = (float *)one_memory;
  memset(cache, 0, BYTES);
  set_inputs(run, &s, u, cache);
  succeed(oxla_compile(run));
  succeed(oxla_set_output(run, "next", cache, BYTES));
  n_allocated = 0;
  step(run, &s, u, cache, cache);
  ck_assert_msg((n_allocated == 0) == in_place, "%zu bytes", (size_t)n_allocated);
  n_allocated = 0;
  step(run, &s, u, cache, cache);
  ck_assert_uint_eq(n_allocated, 0);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* A compiled model that was saved and loaded updates in place, too. */
START_TEST(saved) {
  oxla_model *model = load_cache(SCATTERED, 0, 0), *again;
  oxla_run *run = new_run(model);
  static state s;
  s = (state){.random = 2};
  set_inputs(run, &s, SCATTERED, (float *)one_memory);
  succeed(oxla_compile(run));
  void *bytes;
  size_t size;
  succeed(oxla_save_memory(model, &bytes, &size));
  oxla_run_destroy(run);
  oxla_model_destroy(model);
  oxla_options o = {.size = sizeof o, .allocator = &allocator};
  succeed(oxla_load_memory(bytes, size, &o, &again));
  run = new_run(again);
  memset(one_memory, 0, BYTES);
  succeed(oxla_set_output(run, "next", one_memory, BYTES));
  n_allocated = 0;
  step(run, &s, SCATTERED, (float *)one_memory, (float *)one_memory);
  ck_assert_uint_eq(n_allocated, 0);
  oxla_run_destroy(run);
  oxla_model_destroy(again);
  oxla_free(bytes);
}
END_TEST

static oxla_error *execute_with(oxla_run *run, const char *output, void *data, size_t bytes) {
  succeed(oxla_set_output(run, output, data, bytes));
  return oxla_execute(run);
}

/* Any other overlap is refused, and changes nothing. */
START_TEST(refusals) {
  static const float zeros[ELEMENTS + 64];
  static state s;
  oxla_model *model = load_cache(SECOND, _i, 0);
  oxla_run *run = new_run(model);
  float *cache = (float *)one_memory;
  oxla_code wrong = OXLA_INVALID_ARGUMENT;
  memset(one_memory, 0, sizeof one_memory);
  set_inputs(run, &s, SECOND, cache);
  refuse(execute_with(run, "next", cache + 1, BYTES), wrong,
         "the memory of input 'cache' overlaps that of output 'next'");
  refuse(execute_with(run, "next", cache, BYTES + 4), wrong,
         "the memory of input 'cache' overlaps that of output 'next'");
  refuse(execute_with(run, "next", cache, BYTES - 4), wrong,
         "the memory of output 'next' overlaps that of input 'cache'");
  succeed(oxla_set_output(run, "next", cache, BYTES));
  refuse(execute_with(run, "before", cache, BYTES), wrong,
         "the memory of output 'before' overlaps that of output 'next'");
  succeed(oxla_set_output(run, "before", NULL, 0));
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, DIMS(LINES, 1, WIDTH), cache + 8));
  refuse(oxla_execute(run), wrong, "the memory of output 'next' overlaps that of input 'x'");
  ck_assert_mem_eq(one_memory, zeros, sizeof one_memory);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* y = x + w, where both inputs are in the same memory, so the output must not be there. */
START_TEST(two_inputs) {
  message g = {.n = 0};
  add_node(&g, "Add", "x", "w", "y");
  add_value(&g, GRAPH_INPUT, "x", 1, DIMS(4));
  add_value(&g, GRAPH_INPUT, "w", 1, DIMS(4));
  add_value(&g, GRAPH_OUTPUT, "y", 1, DIMS(4));
  message m = finish_model(&g, 8, 17);
  oxla_model *model = load(&m, _i);
  oxla_run *run = new_run(model);
  float x[4] = {1, 2, 3, 4}, y[4];
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, DIMS(4), x));
  succeed(oxla_set_input(run, "w", OXLA_FLOAT, DIMS(4), x));
  refuse(execute_with(run, "y", x, sizeof x), OXLA_INVALID_ARGUMENT,
         "the memory of input 'x' overlaps that of output 'y'");
  succeed(execute_with(run, "y", y, sizeof y));
  ck_assert_float_eq(y[3], 8);
  ck_assert_float_eq(x[3], 4);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("over_input");
  tcase_set_timeout(c, 120);
  tcase_add_loop_test(c, updates, 0, 8 * N_UPDATES);
  tcase_add_loop_test(c, memory, 0, N_UPDATES);
  tcase_add_test(c, saved);
  tcase_add_loop_test(c, refusals, 0, 2);
  tcase_add_loop_test(c, two_inputs, 0, 2);
  return run_suite("over_input", c);
}
