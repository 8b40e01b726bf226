/* check_loop_trips.c - Loops whose conditions compare counters with sizes: the number of iterations is the one that a
 * loop in C makes, for each number of rows, and the module serves all of them; other conditions are not counted. */
#include "tests/suite.h"
#include "tests/unit/frontend/open_model.h"

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* A Loop over counters, which begin at `first` or, if `from_end` is set, at the number of rows minus 1.  Each iteration
 * adds `step`; there is a next one if the counter compares so with `limit` or, if that is NONE, with the number of
 * rows. */
enum { NONE = -100 };
typedef struct counted {
  const char *name, *type; /* the type of the counters */
  const char *compared;    /* the type in which they are compared */
  const char *operator;
  int64_t first, step, limit;
  bool from_end, swapped, both; /* both: a second counter begins at 1 and also ends the loop */
  const char *most;             /* M, or NULL */
  bool is_counted;
} counted;

static Onnx__NodeProto *node(Onnx__GraphProto *g, const char *type, const char *inputs, const char *outputs,
                             const char *attributes) {
  Onnx__NodeProto *n = graph_node(memory, g, type, inputs, outputs);
  case_attributes(memory, n, attributes);
  return n;
}

static const char *cast_to(const char *type) {
  dtype t = dtype_from_name(type, strlen(type));
  return arena_printf(memory, "to=%d", dtype_get_info(t)->onnx);
}

/* Compares the counter with the limit; `out` is also a prefix for the names of what is computed on the way. */
static void ask(Onnx__GraphProto *g, const counted *c, const char *counter, const char *out) {
  const char *a = arena_printf(memory, "%s.a", out), *b = arena_printf(memory, "%s.b", out);
  node(g, "Cast", counter, a, cast_to(c->compared));
  node(g, "Cast", "bound", b, cast_to(c->compared));
  node(g, c->operator, arena_printf(memory, "%s,%s", c->swapped ? b : a, c->swapped ? a : b), out, "");
}

static Onnx__ModelProto *model_of(const counted *c) {
  Onnx__ModelProto *m = new_model(memory, "", "all");
  add_input(m, "x", "f32[0,0]:");
  add_constant(m, "zero", "s64[]:0");
  add_constant(m, "step", arena_printf(memory, "%s[]:%d", c->type, (int)c->step));
  add_constant(m, "one", arena_printf(memory, "%s[]:1", c->type));
  add_constant(m, "begin", arena_printf(memory, "%s[]:%d", c->type, (int)c->first));
  add_constant(m, "M", arena_printf(memory, "s64[]:%s", c->most ? c->most : "0"));
  node(m->graph, "Shape", "x", "dims", "");
  node(m->graph, "Gather", "dims,zero", "n", "");
  node(m->graph, "Cast", "n", "rows", cast_to(c->type));
  if (c->limit == NONE) {
    node(m->graph, "Identity", "rows", "bound", "");
  } else {
    add_constant(m, "bound", arena_printf(memory, "%s[]:%d", c->type, (int)c->limit));
  }
  if (c->from_end) {
    node(m->graph, "Sub", "rows,one", "start", "");
  } else {
    node(m->graph, "Identity", "begin", "start", "");
  }
  ask(m->graph, c, "start", "ask");
  Onnx__GraphProto *body = new_graph(memory, "turn,alive,i,j", "more,i2,j2,row");
  node(body, "Add", "i,step", "i2", "");
  node(body, "Add", "step,j", "j2", "");
  ask(body, c, "i2", "again");
  ask(body, c, "j2", "too");
  node(body, c->both ? "And" : "Identity", c->both ? "again,too" : "again", "more", "");
  node(body, "Cast", "i", "row", "to=1");
  set_graph(memory, node(m->graph, "Loop", c->most ? "M,ask,start,one" : ",ask,start,one", "last,second,all", ""),
            "body", body);
  return m;
}

static bool holds(const counted *c, int64_t counter, int64_t rows) {
  int64_t bound = c->limit == NONE ? rows : c->limit, a = c->swapped ? bound : counter,
          b = c->swapped ? counter : bound;
  bool equal = strstr(c->operator, "OrEqual") != NULL;
  return strncmp(c->operator, "Less", 4) == 0 ? a < b || (equal && a == b) : a > b || (equal && a == b);
}

static int64_t trips_of(const counted *c, int64_t rows) {
  int64_t i = c->from_end ? rows - 1 : c->first, j = 1, n = 0, most = c->most ? strtoll(c->most, NULL, 10) : INT64_MAX;
  for (bool more = holds(c, i, rows); more && n < most; n++) {
    i += c->step;
    j += c->step;
    more = holds(c, i, rows) && (!c->both || holds(c, j, rows));
  }
  return n;
}

static const counted loops[] = {
    {"up", "s64", "s64", "Less", 0, 1, NONE, false, false, false, NULL, true},
    {"up, as floats", "s32", "f32", "Less", 0, 1, NONE, false, false, false, "9223372036854775807", true},
    {"up, as doubles", "s32", "f64", "Greater", 0, 1, NONE, false, true, false, "9223372036854775807", true},
    {"up by three", "s64", "s64", "Less", 0, 3, NONE, false, false, false, NULL, true},
    {"up by two from 1", "s64", "f32", "LessOrEqual", 1, 2, NONE, false, false, false, NULL, true},
    {"from beyond", "s64", "s64", "Less", 4, 1, NONE, false, false, false, NULL, true},
    {"down", "s64", "s64", "Greater", 0, -1, -1, true, false, false, NULL, true},
    {"down by two", "s32", "f32", "GreaterOrEqual", 0, -2, 0, true, false, false, NULL, true},
    {"down, swapped", "s64", "s64", "LessOrEqual", 0, -1, 1, true, true, false, NULL, true},
    {"two counters", "s32", "f32", "Less", 0, 1, NONE, false, false, true, "9223372036854775807", true},
    {"at most four", "s64", "s64", "Less", 0, 1, NONE, false, false, false, "4", true},
    {"a constant number", "s64", "s64", "Less", 0, 2, 9, false, false, false, NULL, true},
    /* What is not counted: a counter of few bits wraps around; one that stands still never ends the loop. */
    {"u8", "u8", "u8", "Less", 0, 1, NONE, false, false, false, NULL, false},
    {"f16", "s64", "f16", "Less", 0, 1, NONE, false, false, false, NULL, false},
    {"near the last whole f32", "s32", "f32", "Less", 16777210, 1, 16777213, false, false, false, NULL, false},
    {"the wrong way", "s32", "s32", "Less", 0, -1, NONE, false, false, false, NULL, false},
};

static status import_rows(Onnx__ModelProto *m, int64_t rows, onnx_definitions *definitions, hlo_module **out) {
  onnx_input_shape at = {.name = "x", .shape = shape_make(DTYPE_F32, 2, (dim[]){rows, 1})};
  bool complete;
  TRY(import_model(m, &at, 1, definitions, false, out, &complete));
  CHECK_THAT(complete, STATUS_UNSUPPORTED, "the number of iterations is not counted");
  return NULL;
}

static int64_t rows_of_result(const hlo_module *m) { return hlo_shape(m->entry->roots[0])->dims[0]; }

START_TEST(iterations_are_counted) {
  const counted *c = &loops[_i];
  Onnx__ModelProto *m = model_of(c);
  hlo_module *exact, *general, *bound;
  onnx_definitions d = {0};
  for (int64_t rows = 0; rows < 12; rows++) {
    status s = import_rows(m, rows, NULL, &exact);
    ck_assert_msg((s == NULL) == c->is_counted || trips_of(c, rows) == 0, "%s, %d rows: %s", c->name, (int)rows,
                  s ? status_message(s) : "counted");
    if (!s) {
      ck_assert_msg(rows_of_result(exact) == trips_of(c, rows), "%s, %d rows: %d iterations", c->name, (int)rows,
                    (int)rows_of_result(exact));
    }
    status_free(s);
  }
  status s = import_rows(m, 6, &d, &general);
  ck_assert_msg((s == NULL) == c->is_counted, "%s: %s", c->name, s ? status_message(s) : "counted");
  for (int64_t rows = 5; !s && rows < 12; rows++) {
    shape at = shape_make(DTYPE_F32, 2, (dim[]){rows, 1});
    ASSERT_OK(hlo_bind(memory, general, &at, &bound));
    ck_assert_int_eq(rows_of_result(bound), trips_of(c, rows));
    ASSERT_OK(import_rows(m, rows, NULL, &exact));
    ASSERT_OK(same_values(exact, bound, SAME_BITS, memory));
  }
  status_free(s);
}
END_TEST

int main(void) {
  TCase *all = tcase_create("all");
  tcase_add_checked_fixture(all, setup, teardown);
  tcase_add_loop_test(all, iterations_are_counted, 0, sizeof loops / sizeof *loops);
  return run_suite("loop-trips", all);
}
