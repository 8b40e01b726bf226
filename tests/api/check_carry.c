/* check_carry.c - outputs that are carried to the next execution (oxla_options.carried), on both backends, compared
 * with arrays that the test keeps itself. */
#include <stdio.h>

#include "api_client.h"

enum { LINES = 2, WIDTH = 3, MOST_ROWS = 400, STEPS = 160 };

/* --- the model --- */

static void add_concat(message *graph, const char *a, const char *b, int axis, const char *out) {
  message node = {.n = 0}, attribute = {.n = 0};
  put_text(&attribute, 1, "axis");
  put_int(&attribute, 3, axis);
  put_int(&attribute, 20, 2); /* INT */
  put_text(&node, 1, a);
  put_text(&node, 1, b);
  put_text(&node, 2, out);
  put_text(&node, 4, "Concat");
  put_message(&node, 5, &attribute);
  put_message(graph, GRAPH_NODE, &node);
}

/* x has n rows in each of two lines.  `present` is `past` followed by these rows, `front` is these rows followed by
 * `old`, `count` is `counted` + 1, and y is the sum over all rows of `present`, for each line. */
static message decoder_model(void) {
  message g = {.n = 0};
  static const float one = 1;
  static const int64_t axis = 1;
  add_concat(&g, "past", "x", 1, "present");
  add_concat(&g, "x", "old", 1, "front");
  add_node(&g, "Add", "counted", "one", "count");
  add_node(&g, "ReduceSum", "present", "axis", "y");
  add_weight(&g, "one", 1, SCALAR, &one, sizeof one);
  add_weight(&g, "axis", 7, DIMS(1), &axis, sizeof axis);
  add_value(&g, GRAPH_INPUT, "x", 1, DIMS(LINES, -1, WIDTH));
  add_value(&g, GRAPH_INPUT, "past", 1, DIMS(LINES, -2, WIDTH));
  add_value(&g, GRAPH_INPUT, "old", 1, DIMS(LINES, -3, WIDTH));
  add_value(&g, GRAPH_INPUT, "counted", 1, DIMS(1));
  add_value(&g, GRAPH_OUTPUT, "y", 1, DIMS(LINES, 1, WIDTH));
  add_value(&g, GRAPH_OUTPUT, "present", 1, DIMS(LINES, -4, WIDTH));
  add_value(&g, GRAPH_OUTPUT, "front", 1, DIMS(LINES, -5, WIDTH));
  add_value(&g, GRAPH_OUTPUT, "count", 1, DIMS(1));
  return finish_model(&g, 8, 17);
}

static const oxla_carried carried[] = {{"present", "past", 1}, {"front", "old", 1}, {"count", "counted", -1}};
enum { N_CARRIED = sizeof carried / sizeof *carried };

static char log_text[1 << 16];

static void keep_line(void *data, oxla_log_level level, const char *line) {
  (void)data;
  (void)level;
  size_t n = strlen(log_text);
  snprintf(log_text + n, sizeof log_text - n, "%s\n", line);
}

static oxla_model *load_decoder(const message *m, int backend, int check_memory) {
  log_text[0] = '\0';
  return load_with(m, (oxla_options){.backend = backends[backend],
                                     .threads = 2,
                                     .carried = carried,
                                     .n_carried = N_CARRIED,
                                     .check_memory = check_memory,
                                     .cache = "",
                                     .log = keep_line});
}

/* --- the rows that the run should hold --- */

typedef struct rows {
  int64_t n;
  float at[LINES][MOST_ROWS][WIDTH];
} rows;

typedef struct state {
  rows past, old;
  float counted;
  uint64_t random;
  float x[LINES * 40 * WIDTH]; /* what the run reads as input x, also after `step` */
} state;

static uint32_t below(state *s, uint32_t n) {
  s->random = s->random * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(s->random >> 33) % n;
}

/* Adds the rows x after those of r or, if `before` is set, before them. */
static void add_rows(rows *r, const rows *x, bool before) {
  for (int l = 0; l < LINES; l++) {
    if (before) {
      memmove(r->at[l][x->n], r->at[l], (size_t)r->n * sizeof *r->at[l]);
    }
    memcpy(r->at[l][before ? 0 : r->n], x->at[l], (size_t)x->n * sizeof *x->at[l]);
  }
  r->n += x->n;
}

/* Returns the rows of all lines without gaps, in memory that the next call overwrites. */
static const float *pack(const rows *r) {
  static float packed[LINES * MOST_ROWS * WIDTH];
  for (int l = 0; l < LINES; l++) {
    memcpy(packed + l * r->n * WIDTH, r->at[l], (size_t)r->n * sizeof *r->at[l]);
  }
  return packed;
}

static void check_rows(const oxla_run *run, const char *name, const rows *want) {
  oxla_tensor t;
  succeed(oxla_get_output(run, name, &t));
  ck_assert_int_eq(t.rank, 3);
  ck_assert_int_eq(t.dims[1], want->n);
  ck_assert_uint_eq(t.bytes, (size_t)(LINES * want->n * WIDTH) * sizeof(float));
  ck_assert_mem_eq(t.data, pack(want), t.bytes);
}

static void begin(oxla_run *run, state *s) {
  static const float zero = 0;
  s->past.n = s->old.n = 0;
  s->counted = 0;
  succeed(oxla_set_input(run, "past", OXLA_FLOAT, DIMS(LINES, 0, WIDTH), NULL));
  succeed(oxla_set_input(run, "old", OXLA_FLOAT, DIMS(LINES, 0, WIDTH), NULL));
  succeed(oxla_set_input(run, "counted", OXLA_FLOAT, DIMS(1), &zero));
}

/* Expects that y has the sums of the past rows.  Sums of small integers are exact. */
static void check_sums(const oxla_run *run, const state *s) {
  oxla_tensor t;
  succeed(oxla_get_output(run, "y", &t));
  for (int l = 0; l < LINES; l++) {
    for (int w = 0; w < WIDTH; w++) {
      float sum = 0;
      for (int64_t k = 0; k < s->past.n; k++) {
        sum += s->past.at[l][k][w];
      }
      ck_assert_float_eq(((float *)t.data)[l * WIDTH + w], sum);
    }
  }
}

static void step(oxla_run *run, state *s, int64_t n, bool look) {
  rows x = {.n = n};
  for (int64_t k = 0; k < LINES * n * WIDTH; k++) {
    x.at[k / (n * WIDTH)][k / WIDTH % n][k % WIDTH] = s->x[k] = (float)below(s, 64) - 32;
  }
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, DIMS(LINES, n, WIDTH), s->x));
  succeed(oxla_execute(run));
  add_rows(&s->past, &x, false);
  add_rows(&s->old, &x, true);
  s->counted++;
  check_sums(run, s);
  if (look) {
    oxla_tensor t;
    check_rows(run, "present", &s->past);
    check_rows(run, "front", &s->old);
    succeed(oxla_get_output(run, "count", &t));
    ck_assert_float_eq(*(float *)t.data, s->counted);
  }
}

static void drop_rows(oxla_run *run, state *s) {
  int64_t past = below(s, (uint32_t)s->past.n + 1);
  succeed(oxla_rewind(run, "past", past));
  s->past.n = past;
}

/* --- tests --- */

/* Adds rows one by one and several at a time, until the memory has grown three times. */
START_TEST(grows) {
  message m = decoder_model();
  oxla_model *model = load_decoder(&m, _i % 2, _i / 2);
  oxla_run *run = new_run(model);
  state s = {.random = 7};
  begin(run, &s);
  for (int k = 0; k < STEPS; k++) {
    step(run, &s, k % 8 == 3 ? 2 + below(&s, 8) : 1, k % 3 == 0);
  }
  ck_assert_int_gt(s.past.n, 256 - 32);
  ck_assert_msg(strstr(log_text, "1 of 3 carried outputs are written in place"), "%s", log_text);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* Adds random rows, drops rows, and begins anew with rows of the caller, in two runs by turns. */
START_TEST(rewinds) {
  message m = decoder_model();
  oxla_model *model = load_decoder(&m, _i, 0);
  oxla_run *runs[2] = {new_run(model), new_run(model)};
  static state s[2];
  s[0] = (state){.random = 11};
  s[1] = (state){.random = 12};
  begin(runs[0], &s[0]);
  begin(runs[1], &s[1]);
  for (int k = 0; k < STEPS; k++) {
    oxla_run *run = runs[k % 2];
    state *one = &s[k % 2];
    step(run, one, 1 + below(one, 3), below(one, 2));
    if (below(one, 10) == 0) {
      drop_rows(run, one);
    }
    if (below(one, 20) == 0) { /* the past is set anew, to a copy in which one row has other numbers */
      for (int l = 0; l < LINES && one->past.n; l++) {
        one->past.at[l][0][0] = (float)k;
      }
      succeed(oxla_set_input(run, "past", OXLA_FLOAT, DIMS(LINES, one->past.n, WIDTH), pack(&one->past)));
      succeed(oxla_keep_inputs(run));
    }
    if (one->old.n > MOST_ROWS - 8) {
      begin(run, one);
    }
  }
  for (int k = 0; k < 2; k++) {
    oxla_run_destroy(runs[k]);
  }
  oxla_model_destroy(model);
}
END_TEST

/* A carried output can be taken, and keeps its contents when the next execution has added rows. */
START_TEST(taken) {
  message m = decoder_model();
  oxla_model *model = load_decoder(&m, _i, 0);
  oxla_run *run = new_run(model);
  state s = {.random = 3};
  oxla_tensor t;
  begin(run, &s);
  step(run, &s, 5, false);
  succeed(oxla_get_output(run, "present", &t));
  succeed(oxla_take_output(run, &t));
  float *kept = malloc(t.bytes);
  memcpy(kept, t.data, t.bytes);
  step(run, &s, 2, true);
  ck_assert_mem_eq(kept, t.data, t.bytes);
  oxla_free_output(model, t.data);
  free(kept);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* A profile executes, but does not carry its outputs to the next execution: its output has the new rows, and the next
 * execution adds the same rows again. */
START_TEST(profiled) {
  message m = decoder_model();
  oxla_model *model = load_decoder(&m, _i, 0);
  oxla_run *run = new_run(model);
  state s = {.random = 3};
  begin(run, &s);
  step(run, &s, 5, true);
  static const float x[LINES * WIDTH] = {1, 2, 3, 4, 5, 6};
  rows more = s.past, one = {.n = 1, .at = {{{1, 2, 3}}, {{4, 5, 6}}}};
  add_rows(&more, &one, false);
  char *text;
  succeed(oxla_set_input(run, "x", OXLA_FLOAT, DIMS(LINES, 1, WIDTH), x));
  succeed(oxla_profile(run, 1, 2, OXLA_PROFILE_JSON, &text));
  oxla_free(text);
  check_rows(run, "present", &more);
  step(run, &s, 1, true);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* An execution that was cancelled has not changed anything that the next one reads. */
START_TEST(cancelled) {
  message m = decoder_model();
  oxla_model *model = load_decoder(&m, _i, 0);
  oxla_run *run = new_run(model);
  state s = {.random = 4};
  begin(run, &s);
  step(run, &s, 3, true);
  oxla_cancel(run, 1);
  refuse(oxla_execute(run), OXLA_RESOURCE, "cancelled");
  oxla_cancel(run, 0);
  step(run, &s, 2, true);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

/* A cache of a fixed number of rows, into which TensorScatter writes. */
START_TEST(scatters) {
  enum { ROWS = 5 };
  message g = {.n = 0}, node = {.n = 0};
  const char *const names[] = {"cache", "x", "at"};
  for (int k = 0; k < 3; k++) {
    put_text(&node, 1, names[k]);
  }
  put_text(&node, 2, "next");
  put_text(&node, 4, "TensorScatter");
  put_message(&g, GRAPH_NODE, &node);
  add_value(&g, GRAPH_INPUT, "cache", 1, DIMS(LINES, ROWS, WIDTH));
  add_value(&g, GRAPH_INPUT, "x", 1, DIMS(LINES, 1, WIDTH));
  add_value(&g, GRAPH_INPUT, "at", 7, DIMS(LINES));
  add_value(&g, GRAPH_OUTPUT, "next", 1, DIMS(LINES, ROWS, WIDTH));
  message m = finish_model(&g, 11, 24);
  static const oxla_carried pair = {"next", "cache", -1};
  log_text[0] = '\0';
  oxla_model *model = load_with(
      &m, (oxla_options){.backend = backends[_i], .carried = &pair, .n_carried = 1, .cache = "", .log = keep_line});
  oxla_run *run = new_run(model);
  float cache[LINES][ROWS][WIDTH] = {{{1, 2, 3}, {4, 5, 6}}}, want[LINES][ROWS][WIDTH];
  memcpy(want, cache, sizeof want);
  succeed(oxla_set_input(run, "cache", OXLA_FLOAT, DIMS(LINES, ROWS, WIDTH), cache));
  state s = {.random = 8};
  for (int k = 0; k < 20; k++) {
    float x[LINES][WIDTH];
    int64_t at[LINES];
    for (int l = 0; l < LINES; l++) {
      at[l] = below(&s, ROWS);
      for (int w = 0; w < WIDTH; w++) {
        x[l][w] = want[l][at[l]][w] = (float)below(&s, 100);
      }
    }
    oxla_tensor t;
    succeed(oxla_set_input(run, "x", OXLA_FLOAT, DIMS(LINES, 1, WIDTH), x));
    succeed(oxla_set_input(run, "at", OXLA_INT64, DIMS(LINES), at));
    succeed(oxla_execute(run));
    if (k % 3 == 0) {
      succeed(oxla_get_output(run, "next", &t));
      ck_assert_mem_eq(t.data, want, sizeof want);
    }
  }
  ck_assert_float_eq(cache[0][1][2], 6); /* the caller's memory has not been written to */
  ck_assert_msg(strstr(log_text, "1 of 1 carried outputs are written in place"), "%s", log_text);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

static void refuse_carried(const message *m, oxla_carried one, oxla_carried other, oxla_subject about,
                           const char *part) {
  oxla_model *model;
  const oxla_carried list[] = {one, other};
  oxla_options o = {.size = sizeof o, .carried = list, .n_carried = other.output ? 2 : 1, .cache = ""};
  refuse_about(oxla_load_memory(m->bytes, m->n, &o, &model), OXLA_INVALID_ARGUMENT, about, part);
}

START_TEST(refusals) {
  message m = decoder_model();
  const oxla_carried none = {NULL, NULL, 0};
  refuse_carried(&m, (oxla_carried){"nobody", "past", 1}, none, OXLA_ABOUT_NAME, "no output 'nobody'");
  refuse_carried(&m, (oxla_carried){"present", "nobody", 1}, none, OXLA_ABOUT_NAME, "no input 'nobody'");
  refuse_carried(&m, (oxla_carried){"present", NULL, 1}, none, OXLA_ABOUT_NAME, "no input ''");
  refuse_carried(&m, (oxla_carried){"present", "past", 3}, none, OXLA_ABOUT_SHAPE, "no dimension 3");
  refuse_carried(&m, (oxla_carried){"present", "past", -2}, none, OXLA_ABOUT_SHAPE, "no dimension -2");
  refuse_carried(&m, carried[0], (oxla_carried){"front", "past", 1}, OXLA_ABOUT_NOTHING, "carried twice");
  oxla_model *model;
  oxla_options no_list = {.size = sizeof no_list, .n_carried = 1, .cache = ""};
  refuse(oxla_load_memory(m.bytes, m.n, &no_list, &model), OXLA_INVALID_ARGUMENT,
         "1 outputs are carried, but the list is NULL");
  model = load_decoder(&m, 0, 0);
  oxla_run *run = new_run(model);
  state s = {.random = 3};
  begin(run, &s);
  refuse(oxla_rewind(run, "past", 0), OXLA_INVALID_ARGUMENT, "input 'past' has not been computed yet");
  step(run, &s, 4, false);
  refuse(oxla_rewind(run, "past", 5), OXLA_INVALID_ARGUMENT, "cannot be rewound to 5: it has 4 elements");
  refuse(oxla_rewind(run, "past", -1), OXLA_INVALID_ARGUMENT, "cannot be rewound to -1");
  refuse(oxla_rewind(run, "counted", 0), OXLA_INVALID_ARGUMENT,
         "no output that grows is carried in an input 'counted'");
  refuse(oxla_rewind(run, "x", 0), OXLA_INVALID_ARGUMENT, "no output that grows");
  refuse(oxla_rewind(run, NULL, 0), OXLA_INVALID_ARGUMENT, "no input name");
  refuse(oxla_rewind(NULL, "past", 0), OXLA_INVALID_ARGUMENT, "no run");
  float memory[64];
  refuse(oxla_set_output(run, "present", memory, sizeof memory), OXLA_INVALID_ARGUMENT, "output 'present' is carried");
  succeed(oxla_set_output(run, "present", NULL, 0));
  void *bytes;
  size_t size;
  refuse(oxla_save_memory(model, &bytes, &size), OXLA_UNSUPPORTED, "cannot be saved");
  step(run, &s, 1, true);
  oxla_run_destroy(run);
  oxla_model_destroy(model);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("carry");
  tcase_set_timeout(c, 120);
  tcase_add_loop_test(c, grows, 0, 4);
  tcase_add_loop_test(c, rewinds, 0, 2);
  tcase_add_loop_test(c, taken, 0, 2);
  tcase_add_loop_test(c, profiled, 0, 2);
  tcase_add_loop_test(c, cancelled, 0, 2);
  tcase_add_loop_test(c, scatters, 0, 2);
  tcase_add_test(c, refusals);
  return run_suite("carry", c);
}
