/* check_profile.c - what instructions cost, what a profiler notes, what a profile makes of it, what the machine
 * reaches. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/plugin/compiler_half.h"
#include "hlo/analysis/cost.h"
#include "hlo/text/text.h"
#include "plugin/session/profile.h"
#include "runtime/host/thread_pool.h"
#include "tests/suite.h"

static arena *a;

static void setup(void) { a = arena_create(NULL); }
static void teardown(void) { arena_destroy(a); }

/* --- costs, by hand --- */

typedef struct cost_row {
  const char *params, *instruction; /* of the entry, which returns %r */
  int64_t operations, bytes;
} cost_row;

static const cost_row costs[] = {
    {"%0: f32[4,3], %1: f32[4,3]", "%r = add(%0, %1) : f32[4,3]", 12, 3 * 48},
    {"%0: f32[4,3]", "%r = multiply(%0, %0) : f32[4,3]", 12, 2 * 48},
    {"%0: f16[8]", "%r = exponential(%0) : f16[8]", 8, 2 * 16},
    {"%0: f32[4,3]", "%r = reshape(%0) : f32[12]", 0, 0},
    {"%0: f32[4,3]", "%r = transpose(%0) {permutation=[1,0]} : f32[3,4]", 0, 2 * 48},
    {"%0: f32[4,8], %1: f32[8,3]",
     "%r = dot(%0, %1) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[4,3]", 2 * 12 * 8,
     4 * (32 + 24 + 12)},
    {"%0: f32[1,4,5,5], %1: f32[6,4,3,3]",
     "%r = convolution(%0, %1) {strides=[1,1], low=[0,0], high=[0,0], lhs_dilation=[1,1], rhs_dilation=[1,1], "
     "groups=1, "
     "layout=channels-first} : f32[1,6,3,3]",
     2 * 54 * 36, 4 * (100 + 216 + 54)},
    {"%0: f32[4,8]", "%r = reduce(%0) {dimensions=[1], reducer=add} : f32[4]", 32, 128 + 16},
    {"%0: f32[100]", "%r = slice(%0) {starts=[10], limits=[20], strides=[1]} : f32[10]", 0, 40 + 40},
    {"%0: f32[9,4], %1: f32[1,4], %2: s64[2]", "%r = dynamic-update-slice(%0, %1, %2) : f32[9,4]", 0, 16 + 16 + 16},
    /* bytes of two rows of the table, of their indices, and of the result */
    {"%0: f32[1000,4], %1: s64[2,1]",
     "%r = gather(%0, %1) {offset_dims=[1], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0], "
     "index_vector_dim=1, sizes=[1,4]} : f32[2,4]",
     0, 32 + 16 + 32},
    /* of %0 ten elements are read, of %1 all */
    {"%0: f32[100], %1: f32[10]", "%r = fusion(%0, %1) {kind=loop, computations=[part]} : f32[10]", 20, 40 + 40 + 40},
};

static hlo_module *parse(const char *text) {
  hlo_module *m;
  ASSERT_OK(hlo_parse(a, text, strlen(text), &(hlo_parse_options){0}, &m));
  return m;
}

START_TEST(cost_of_instructions) {
  const cost_row *row = &costs[_i];
  bool fused = strstr(row->instruction, "fusion");
  const char *part =
      "computation part(%0: f32[100], %1: f32[10]) {\n"
      "%2 = slice(%0) {starts=[10], limits=[20], strides=[1]} : f32[10]\n"
      "%3 = add(%2, %1) : f32[10]\n%4 = tanh(%3) : f32[10]\nreturn %4\n}\n";
  char *text = arena_printf(a, "onnx-xla hlo 1\nmodule \"m\" {\n%sentry main(%s) {\n%s\nreturn %%r\n}\n}\n",
                            fused ? part : "", row->params, row->instruction);
  hlo_cost c = hlo_cost_of(parse(text)->entry->roots[0].def);
  ck_assert_msg(c.operations == row->operations && c.bytes == row->bytes,
                "%s: %" PRId64 " operations, %" PRId64 " bytes", row->instruction, c.operations, c.bytes);
}
END_TEST

START_TEST(huge_costs_end_at_the_limit) {
  hlo_module *m = parse(
      "onnx-xla hlo 1\nmodule \"m\" {\nentry main(%0: f32[1000000000,4000000], %1: f32[4000000,900]) {\n"
      "%r = dot(%0, %1) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[1000000000,900]\n"
      "return %r\n}\n}\n");
  hlo_instr *dot = m->entry->roots[0].def;
  ck_assert_int_eq(hlo_cost_of(dot).operations, 7200000000000000000);
  dot->operands[1].def->shapes[0].dims[1] = dot->shapes[0].dims[1] = 2000; /* 16e18 does not fit into 63
                                                                              bits */
  ck_assert_int_eq(hlo_cost_of(dot).operations, INT64_MAX);
}
END_TEST

/* --- profiles --- */

/* A loop of five iterations, then two operations of which the cpu target makes one kernel. */
static const char program[] =
    "onnx-xla hlo 1\nmodule \"m\" {\n"
    "computation more(%0: s64[], %1: f32[4096]) {\n"
    "%2 = constant() {value=s64[] 5} : s64[]\n%3 = compare(%0, %2) {comparison=lt} : pred[]\nreturn %3\n}\n"
    "computation step(%0: s64[], %1: f32[4096]) {\n"
    "%2 = constant() {value=s64[] 1} : s64[]\n%3 = add(%0, %2) : s64[]\n"
    "%4 = sine(%1) : f32[4096] @\"wave: Sin\"\nreturn %3, %4\n}\n"
    "entry main(%0: f32[4096] \"x\", %1: f32[4096] \"y\") {\n"
    "%2 = constant() {value=s64[] 0} : s64[]\n"
    "%3, %4 = while(%2, %0) {computations=[more, step]} : s64[], f32[4096] @\"around: Loop\"\n"
    "%5 = multiply(%4, %1) : f32[4096] @\"a \\\"quoted\\\" one: Mul\"\n"
    "%6 = subtract(%5, %0) : f32[4096] @\"less: Sub\"\n"
    "return %6 \"z\"\n}\n}\n";

enum { RUNS = 4, STEPS = 5, N = 4096 };

static session *opened;

static run_profile profile_text(const char *backend, const char *text) {
  static float x[N], y[N], z[N];
  session_options options = {.backend = backend, .open_dim = 1, .compile.threads = 1};
  session_output out = {.given = z, .given_bytes = sizeof z};
  session_inputs inputs = {.values = (const void *[]){x, y}};
  run_profile_options how = {.warm_up = 1, .runs = RUNS};
  const session_program *c;
  run_profile p;
  ASSERT_OK(session_open(NULL, text, strlen(text), &options, &opened));
  ASSERT_OK(session_compile(opened, &inputs, &c));
  ASSERT_OK(session_profile(opened, c, NULL, &inputs, &out, &how, a, &p));
  return p;
}

static run_profile profile_of(const char *backend) { return profile_text(backend, program); }

static const run_profile_group *find_group(const run_profile_groups *g, const char *name) {
  for (uint32_t k = 0; k < g->n; k++) {
    if (strcmp(g->items[k].name, name) == 0) {
      return &g->items[k];
    }
  }
  ck_abort_msg("no %s", name);
  return NULL;
}

static const rt_profiled *find_thunk(const run_profile *p, const char *part) {
  for (uint32_t k = 0; k < p->raw->n_thunks; k++) {
    if (strstr(p->raw->thunks[k].label, part)) {
      return &p->raw->thunks[k];
    }
  }
  ck_abort_msg("no thunk of %s", part);
  return NULL;
}

static const char *const backends[] = {"cpu", "ref"};

/* The thunks' own times add up to no more than the time of the run.  A thunk in the loop runs once in each
 * iteration. */
START_TEST(times_add_up) {
  run_profile p = profile_of(backends[_i]);
  ck_assert_uint_eq(p.raw->n_runs, RUNS);
  for (uint32_t r = 0; r < RUNS; r++) {
    double sum = 0;
    for (uint32_t k = 0; k < p.raw->n_thunks; k++) {
      ck_assert(p.raw->thunks[k].seconds[r] >= 0);
      sum += p.raw->thunks[k].seconds[r];
    }
    ck_assert_msg(sum <= p.raw->run_seconds[r] && p.raw->run_seconds[r] >= p.min, "%g of %g", sum,
                  p.raw->run_seconds[r]);
  }
  ck_assert(p.gaps >= 0 && p.min <= p.median && p.median >= p.raw->run_seconds[p.raw->fastest]);
  ck_assert(p.min == p.raw->run_seconds[p.raw->fastest]);
  const rt_profiled *wave = find_thunk(&p, "wave: Sin");
  ck_assert_uint_eq(wave->calls, RUNS * STEPS);
  ck_assert_uint_eq(wave->depth, 1);
  ck_assert_int_eq(wave->operations, N);
  ck_assert_int_eq(wave->bytes, 2 * 4 * N);
  ck_assert_uint_eq(find_thunk(&p, "around: Loop (while)")->calls, RUNS);
  for (uint32_t k = 1; k < p.raw->n_thunks; k++) {
    ck_assert(p.rows[k - 1].median >= p.rows[k].median);
  }
  session_close(opened);
}
END_TEST

/* Events are listed in the order of their ends, so the events inside of another one, which begin after it, come before
 * it. */
START_TEST(events_nest) {
  run_profile p = profile_of(backends[_i]);
  const rt_profile_event *e = p.raw->events;
  uint32_t inner = 0;
  ck_assert(p.raw->n_events > 2 * STEPS && !p.raw->cut);
  for (uint32_t k = 0; k < p.raw->n_events; k++) {
    ck_assert(e[k].begin <= e[k].end && (k == 0 || e[k - 1].end <= e[k].end));
    ck_assert_uint_eq(e[k].depth, p.raw->thunks[e[k].thunk].depth);
    inner += e[k].depth == 1;
    for (uint32_t j = k; e[k].depth == 0 && j-- > 0 && e[j].depth == 1;) {
      ck_assert(e[j].begin >= e[k].begin);
    }
  }
  ck_assert_uint_ge(inner, 2 * STEPS);
  session_close(opened);
}
END_TEST

/* Calls in a run that fails, which is not ended, do not count, so that calls / runs is the number of calls in a run. */
START_TEST(failed_runs_do_not_count) {
  rt_profiler *p = rt_profiler_create(a);
  const rt_program no_nodes = {0};
  const rt_thunk thunk = {.kind = "k", .operation = "o"};
  for (int run = 0; run < 3; run++) {
    rt_profiler_begin(p);
    for (int call = 0; call < 2; call++) {
      rt_profile_mark mark = rt_profile_enter(p, &no_nodes, &thunk);
      rt_profile_leave(p, &mark, -1);
    }
    if (run != 1) {
      rt_profiler_end(p);
    }
  }
  ck_assert_uint_eq(rt_profiler_result(p)->n_runs, 2);
  ck_assert_uint_eq(rt_profiler_result(p)->thunks[0].calls, 4);
}
END_TEST

/* Half of the time of a kernel for two nodes is added to each of them. */
START_TEST(nodes_share_a_kernel) {
  run_profile p = profile_of("cpu");
  const run_profile_group *product = find_group(&p.nodes, "a \"quoted\" one: Mul"),
                          *less = find_group(&p.nodes, "less: Sub");
  const rt_profiled *kernel = find_thunk(&p, "less: Sub");
  ck_assert_str_eq(kernel->label, "a \"quoted\" one: Mul + less: Sub (loop fusion)");
  ck_assert_str_eq(kernel->note, "multiply subtract");
  ck_assert(product->seconds == less->seconds && product->seconds > 0);
  ck_assert_uint_eq(find_group(&p.operators, "Sub")->count, 1);
  ck_assert(find_group(&p.operators, "Sub")->seconds == less->seconds);
  ck_assert_uint_eq(find_group(&p.kinds, "cpu.kernel loop fusion")->count, 1);
  session_close(opened);
}
END_TEST

/* Only a contraction gets all the time of the operations in its kernel.  A kernel that begins with a conversion is
 * shared by its nodes, though its note begins with "conv" as that of a convolution does. */
START_TEST(conversions_share_a_kernel) {
  static const char text[] =
      "onnx-xla hlo 1\nmodule \"m\" {\n"
      "entry main(%0: f32[4096] \"x\", %1: f32[4096] \"y\") {\n"
      "%2 = convert(%0) {saturate=true, rounding=nearest} : s32[4096] @\"c: Cast\"\n%3 = multiply(%2, %2) : s32[4096] "
      "@\"d: odd: Mul\"\n"
      "%4 = convert(%3) {saturate=true, rounding=nearest} : f32[4096] @\"e: Cast\"\n%5 = add(%4, %1) : f32[4096] @\"f "
      "+ g: Add\"\n"
      "return %5 \"z\"\n}\n}\n";
  run_profile p = profile_text("cpu", text);
  const rt_profiled *kernel = find_thunk(&p, "c: Cast");
  ck_assert_int_eq(strncmp(kernel->note, "convert", 7), 0);
  ck_assert_uint_eq(kernel->n_nodes, 4);
  ck_assert_str_eq(kernel->label, "c: Cast + d: odd: Mul + e: Cast + f + g: Add (loop fusion)");
  ck_assert_str_eq(kernel->nodes[1].operator_name, "Mul");
  ck_assert_str_eq(kernel->nodes[3].text, "f + g: Add");
  double each = find_group(&p.nodes, "c: Cast")->seconds;
  ck_assert(each > 0 && find_group(&p.nodes, "d: odd: Mul")->seconds == each);
  ck_assert(find_group(&p.nodes, "f + g: Add")->seconds == each);
  ck_assert_uint_eq(find_group(&p.operators, "Cast")->count, 2);
  session_close(opened);
}
END_TEST

START_TEST(texts) {
  static const char *const json[] = {
      "\"model\": \"m\"", "\"runs\": 4",      "\"a \\\"quoted\\\" one: Mul + less: Sub (loop fusion)\"",
      "\"gflops\": ",     "\"operators\": [", "\"name\": \"Sub\", \"count\": 1, \"median_ms\": "};
  static const char *const trace[] = {"\"traceEvents\": [", "\"ph\": \"X\"", "\"wave: Sin (sine)\"", "\"dur\": "};
  run_profile p = profile_of("cpu");
  char *text;
  size_t size;
  for (int kind = 0; kind < 2; kind++) {
    FILE *f = open_memstream(&text, &size);
    kind ? run_profile_write_trace(&p, f) : run_profile_write_json(&p, f);
    fclose(f);
    for (uint32_t k = 0; k < (kind ? sizeof trace / sizeof *trace : sizeof json / sizeof *json); k++) {
      const char *part = kind ? trace[k] : json[k];
      ck_assert_msg(strstr(text, part), "no %s in %s", part, text);
    }
    free(text);
  }
  session_close(opened);
}
END_TEST

/* --- the machine --- */

START_TEST(roofline) {
  rt_thread_pool *pool;
  rt_roofline r;
  ASSERT_OK(rt_thread_pool_create(2, &pool));
  ASSERT_OK(rt_roofline_measure(pool, &r));
  rt_thread_pool_destroy(pool);
  ck_assert_uint_eq(r.threads, 2);
  /* The rate of any processor is between these bounds: a core with two 512-bit units at 10 GHz would do 640
   * GFLOP/s. */
  ck_assert_msg(r.flops_one > 1e7 && r.flops_one < 640e9, "%g", r.flops_one);
  ck_assert(r.flops_all >= r.flops_one && r.flops_all < 2 * 640e9);
  ck_assert(r.read_one > 1e7 && r.read_all >= r.read_one);
}
END_TEST

int main(void) {
  TCase *tests = tcase_create("profile");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_set_timeout(tests, 120);
  tcase_add_loop_test(tests, cost_of_instructions, 0, sizeof costs / sizeof *costs);
  tcase_add_test(tests, huge_costs_end_at_the_limit);
  tcase_add_loop_test(tests, times_add_up, 0, 2);
  tcase_add_loop_test(tests, events_nest, 0, 2);
  tcase_add_test(tests, failed_runs_do_not_count);
  tcase_add_test(tests, nodes_share_a_kernel);
  tcase_add_test(tests, conversions_share_a_kernel);
  tcase_add_test(tests, texts);
  tcase_add_test(tests, roofline);
  return run_suite("profile", tests);
}
