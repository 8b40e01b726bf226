/* check_lower.c - scheduling, buffer assignment, lowering and the .oxla file on random modules with control flow: what
 * the program computes in shared buffers equals what the reference evaluator computes value by value. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend_ref/eval.h"
#include "backend_ref/target.h"
#include "hlo/schedule/buffers.h"
#include "hlo/ir/builder.h"
#include "hlo/text/text.h"
#include "hlo/text/verify.h"
#include "runtime/exec/executable.h"
#include "runtime/program/image.h"
#include "runtime/host/thread_pool.h"
#include "tests/suite.h"
#include "verify/lockstep.h"

enum { MODULES = 400, DEPTH = 2, N_MAX = 64 };

/* --- random modules over s64[4], s64[2,2] and pred[] --- */

typedef struct generator {
  uint64_t state;
  hlo_module *m;
} generator;

static uint32_t draw(generator *g, uint32_t n) { /* xorshift64* */
  g->state ^= g->state >> 12;
  g->state ^= g->state << 25;
  g->state ^= g->state >> 27;
  return (uint32_t)((g->state * 0x2545F4914F6CDD1Du) >> 33) % n;
}

typedef struct pool {
  hlo_value items[N_MAX]; /* all s64[4] */
  uint32_t n;
} pool;

static hlo_value pick(generator *g, const pool *p) { return p->items[draw(g, p->n)]; }

static void keep(pool *p, hlo_value v) {
  if (p->n < N_MAX) {
    p->items[p->n++] = v;
  }
}

static shape vector(void) { return shape_make(DTYPE_S64, 1, (dim[]){4}); }

static void add_ops(generator *g, hlo_builder *b, pool *p, uint32_t count, int depth);

/* Sets roots that are drawn from all values, so that parameters, repeated values and exchanged values occur
 * among them. */
static void set_random_roots(generator *g, hlo_computation *c, const pool *p, uint32_t n, const hlo_value *first) {
  hlo_value roots[8];
  uint32_t k = 0;
  if (first) {
    roots[k++] = *first;
  }
  for (uint32_t j = 0; j < n; j++) {
    roots[k++] = pick(g, p);
  }
  hlo_set_roots(c, k, roots);
}

static hlo_computation *random_branch(generator *g, uint32_t n_args, uint32_t n_roots, int depth) {
  hlo_computation *c = hlo_computation_create(g->m, "branch");
  hlo_builder b = hlo_builder_make(c);
  pool p = {.n = 0};
  for (uint32_t k = 0; k < n_args; k++) {
    keep(&p, hlo_result(hlo_parameter(c, vector()), 0));
  }
  add_ops(g, &b, &p, draw(g, 5), depth);
  set_random_roots(g, c, &p, n_roots, NULL);
  return c;
}

/* Returns a body whose parameters are a counter, s64[], and n vectors. */
static hlo_computation *random_body(generator *g, uint32_t n, int depth) {
  hlo_computation *c = hlo_computation_create(g->m, "body");
  hlo_builder b = hlo_builder_make(c);
  pool p = {.n = 0};
  hlo_value counter = hlo_result(hlo_parameter(c, shape_scalar(DTYPE_S64)), 0);
  for (uint32_t k = 0; k < n; k++) {
    keep(&p, hlo_result(hlo_parameter(c, vector()), 0));
  }
  hlo_value next = hlo_binary(&b, HLO_ADD, counter, hlo_scalar_int(&b, DTYPE_S64, 1));
  add_ops(g, &b, &p, draw(g, 6), depth);
  set_random_roots(g, c, &p, n, &next);
  return c;
}

static hlo_computation *condition(generator *g, uint32_t n, int64_t trips) {
  hlo_computation *c = hlo_computation_create(g->m, "condition");
  hlo_builder b = hlo_builder_make(c);
  hlo_value counter = hlo_result(hlo_parameter(c, shape_scalar(DTYPE_S64)), 0);
  for (uint32_t k = 0; k < n; k++) {
    hlo_parameter(c, vector());
  }
  hlo_value p = hlo_compare(&b, HLO_LT, counter, hlo_scalar_int(&b, DTYPE_S64, trips));
  hlo_set_roots(c, 1, &p);
  return c;
}

static void add_while(generator *g, hlo_builder *b, pool *p, int depth) {
  uint32_t n = 1 + draw(g, 4);
  hlo_value init[8] = {hlo_scalar_int(b, DTYPE_S64, 0)}, out[8];
  for (uint32_t k = 0; k < n; k++) {
    init[k + 1] = pick(g, p);
  }
  hlo_while(b, condition(g, n, draw(g, 4)), random_body(g, n, depth - 1), n + 1, init, out);
  for (uint32_t k = 1; k <= n; k++) {
    keep(p, out[k]);
  }
}

static void add_conditional(generator *g, hlo_builder *b, pool *p, int depth) {
  uint32_t n = 1 + draw(g, 3), n_roots = 1 + draw(g, 3);
  hlo_value args[4], out[4];
  for (uint32_t k = 0; k < n; k++) {
    args[k] = pick(g, p);
  }
  hlo_value first = hlo_reshape(b, hlo_slice_dim(b, pick(g, p), 0, 0, 1), 0, NULL);
  hlo_value index = hlo_compare(b, HLO_LT, first, hlo_scalar_int(b, DTYPE_S64, 0));
  hlo_computation *branches[2] = {random_branch(g, n, n_roots, depth - 1), NULL};
  branches[1] = draw(g, 4) ? random_branch(g, n, n_roots, depth - 1) : branches[0];
  hlo_conditional(b, index, 2, branches, n, args, out);
  for (uint32_t k = 0; k < n_roots; k++) {
    keep(p, out[k]);
  }
}

static void add_op(generator *g, hlo_builder *b, pool *p, int depth) {
  static const hlo_op binary[] = {HLO_ADD, HLO_SUB, HLO_MUL, HLO_XOR, HLO_MAX};
  switch (draw(g, depth > 0 ? 7 : 5)) {
    case 0:
    case 1: keep(p, hlo_binary(b, binary[draw(g, 5)], pick(g, p), pick(g, p))); break;
    case 2: /* reshapes to a matrix, transposes it, and reshapes it back */
      keep(p, hlo_reshape(b, hlo_transpose(b, hlo_reshape(b, pick(g, p), 2, (dim[]){2, 2}), (int64_t[]){1, 0}), 1,
                          (dim[]){4}));
      break;
    case 3: keep(p, hlo_reverse(b, pick(g, p), 1, (int64_t[]){0})); break;
    case 4: keep(p, hlo_splat(b, vector(), draw(g, 100))); break;
    case 5: add_while(g, b, p, depth); break;
    default: add_conditional(g, b, p, depth);
  }
}

static void add_ops(generator *g, hlo_builder *b, pool *p, uint32_t count, int depth) {
  for (uint32_t k = 0; k < count; k++) {
    add_op(g, b, p, depth);
  }
}

static hlo_module *random_module(arena *a, uint64_t seed) {
  generator g = {.state = seed * 0x9E3779B97F4A7C15u + 1, .m = hlo_module_create(a, "random")};
  hlo_computation *c = g.m->entry = hlo_computation_create(g.m, "main");
  hlo_builder b = hlo_builder_make(c);
  pool p = {.n = 0};
  for (int k = 0; k < 3; k++) {
    keep(&p, hlo_result(hlo_parameter(c, vector()), 0));
  }
  add_ops(&g, &b, &p, 3 + draw(&g, 10), DEPTH);
  set_random_roots(&g, c, &p, 4, NULL);
  ck_assert_msg(!b.error, "%s", status_message(b.error));
  hlo_module_clean(g.m);
  return g.m;
}

/* --- the comparison --- */

static const int64_t inputs[3][4] = {{1, -2, 3, -4}, {50, 60, 70, 80}, {-9, 8, -7, 6}};

/* Reverses each concurrent group, since its instructions may run in any order.  Returns the number of
 * groups. */
static uint32_t turn_around(const rt_sequence *s) {
  uint32_t groups = 0;
  for (uint32_t k = 0; k < s->n; k++) {
    rt_thunk *t = &s->thunks[k];
    bool beside = strcmp(t->kind, "concurrent") == 0;
    for (uint32_t b = 0; b < t->n_bodies; b++) {
      groups += turn_around(&t->bodies[b]);
      if (beside && b < t->n_bodies / 2) {
        rt_sequence last = t->bodies[t->n_bodies - 1 - b];
        t->bodies[t->n_bodies - 1 - b] = t->bodies[b];
        t->bodies[b] = last;
      }
    }
    groups += beside;
  }
  return groups;
}

static void expect_same(const rt_program *p, const literal *expected, const char *text) {
  int64_t out[4][4];
  rt_executable *e;
  rt_thread_pool *threads;
  status s = rt_executable_create(p, &ref_target, NULL, &e);
  ck_assert_msg(!s, "%s\n%s", status_message(s), text);
  s = rt_thread_pool_create(3, &threads);
  ck_assert_ptr_null(s);
  for (int twice = 0; twice < 2; twice++) { /* the first run is checked; the second one uses its arena again,
                                               and has threads */
    memset(out, 0x55, sizeof out);
    s = rt_execute(rt_executable_binding(e), &(rt_run_options){.pool = twice ? threads : NULL, .check_memory = !twice},
                   (const void *[]){inputs[0], inputs[1], inputs[2]}, (void *[]){out[0], out[1], out[2], out[3]});
    ck_assert_msg(!s, "%s\n%s", status_message(s), text);
    for (int k = 0; k < 4; k++) {
      ck_assert_msg(memcmp(out[k], expected[k].data, sizeof out[k]) == 0, "result %d differs\n%s", k, text);
    }
  }
  rt_executable_destroy(e);
  rt_thread_pool_destroy(threads);
}

static void save_and_load(arena *a, rt_program *p, const literal *expected, const char *text) {
  char path[] = "check_lower.XXXXXX";
  int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  close(fd);
  rt_image image = {.model = "random", .producer = "test", .target = p->target, .n_programs = 1, .programs = &p}, *read;
  status s = rt_image_write(&image, path);
  ck_assert_msg(!s, "%s", status_message(s));
  s = rt_image_open(a, path, true, &read);
  unlink(path);
  ck_assert_msg(!s, "%s", status_message(s));
  expect_same(read->programs[0], expected, text);
}

static status refuse(void *data, const hlo_instr *i, const literal *operands, const literal *want, const rt_program *p,
                     const rt_thunk *t, const verify_difference *d) {
  (void)data, (void)operands, (void)want, (void)d;
  char label[RT_LABEL_BYTES];
  (void)rt_thunk_write_label(p, t, label);
  return status_error(STATUS_INTERNAL, "%s %u differs from the reference", label, i->id);
}

/* Runs the program in lockstep with the reference evaluator: each instruction, also in loops, branches and
 * groups, must give the same result. */
static void expect_lockstep(arena *a, const hlo_module *m, const rt_program *p, const rt_origins *origins,
                            const literal *args, const char *text) {
  rt_executable *e;
  void *results[4];
  const void *params[] = {args[0].data, args[1].data, args[2].data};
  for (uint32_t k = 0; k < p->n_results; k++) {
    (void)literal_new(a, p->results[k].shape, &results[k]);
  }
  verify_lockstep lockstep = {.origins = origins, .module = m, .inputs = args, .differs = refuse};
  status s = rt_executable_create(p, &ref_target, NULL, &e);
  ck_assert_msg(!s, "%s", s ? status_message(s) : "");
  s = rt_execute(rt_executable_binding(e), &(rt_run_options){.drive = verify_drive, .drive_data = &lockstep}, params,
                 results);
  ck_assert_msg(!s, "%s\n%s", s ? status_message(s) : "", text);
  rt_executable_destroy(e);
}

static uint32_t groups; /* the number of concurrent groups in all modules */

static status check_seed(void *data) {
  uint64_t seed = *(const uint64_t *)data;
  arena *a = arena_create(NULL);
  hlo_module *m = random_module(a, seed);
  const char *text;
  literal args[3], expected[4];
  rt_program *p;
  rt_report report = {0};
  TRY(hlo_print(a, m, NULL, &text, NULL));
  TRY(hlo_verify(m));
  for (int k = 0; k < 3; k++) {
    args[k] = literal_make(vector(), inputs[k]);
  }
  TRY(ref_eval_computation(m->entry, args, a, expected));
  rt_origins origins = {0};
  const rt_compile_options options = {
      .keep_text = true, .threads = 2, .origins = &origins}; /* buffers are checked, too */
  TRY(ref_compiler.compile((struct hlo_module *)m, &options, a, &p, &report));
  ck_assert_uint_le(report.arena_lower_bound, report.arena_bytes);
  expect_same(p, expected, text);
  expect_lockstep(a, m, p, &origins, args, text);
  groups += turn_around(&p->body);
  expect_same(p, expected, text);
  save_and_load(a, p, expected, text);
  arena_destroy(a);
  return NULL;
}

START_TEST(random_modules) {
  for (uint64_t seed = 0; seed < MODULES; seed++) {
    status s = guard_run(check_seed, &seed);
    ck_assert_msg(!s, "seed %d: %s", (int)seed, status_message(s));
  }
  ck_assert_uint_gt(groups, MODULES / 2);
}
END_TEST

/* --- what the check of buffers finds: an assignment by other rules than those that hold --- */

static bool always_shares(void *data, const hlo_instr *i, uint32_t operand, uint32_t result) {
  (void)data, (void)i, (void)operand, (void)result;
  return true;
}

static hlo_access reads_all_first(void *data, const hlo_instr *i) {
  (void)data, (void)i;
  return HLO_READS_ALL_FIRST;
}

static bool is_reverse(const hlo_instr *i) { return i->op == HLO_REVERSE; }

static dim some_scratch(void *data, const hlo_instr *i) {
  (void)data;
  return i->op == HLO_REVERSE ? 100 : 0;
}

static status check_by(const char *text, const hlo_buffer_rules *given, const hlo_buffer_rules *true_ones) {
  arena *a = arena_create(NULL);
  hlo_module *m;
  hlo_buffers *b;
  status s = hlo_parse(a, text, strlen(text), NULL, &m);
  ck_assert_msg(!s, "%s", s ? status_message(s) : "");
  s = hlo_assign_buffers(a, m, given, &b);
  ck_assert_ptr_null(s);
  s = hlo_check_buffers(a, m, true_ones, b);
  arena_destroy(a);
  return s;
}

static void expect_fault(const char *text, const hlo_buffer_rules *given, const hlo_buffer_rules *true_ones,
                         const char *message) {
  status s = check_by(text, true_ones, true_ones);
  ck_assert_msg(!s, "%s", s ? status_message(s) : "");
  s = check_by(text, given, true_ones);
  ck_assert_msg(s && strstr(status_message(s), message), "%s: %s", message, s ? status_message(s) : "nothing found");
  status_free(s);
}

/* Two instructions run at the same time, and one of them writes over what the other reads. */
START_TEST(faults_side_by_side_are_found) {
  static const char text[] =
      "onnx-xla hlo 1\nmodule \"m\" {\n entry main(%x: s64[4] \"x\") {\n"
      "%a = negate(%x) : s64[4]\n%b = reverse(%a) {dimensions=[0]} : s64[4]\n%c = abs(%a) : s64[4]\n"
      "%d = add(%b, %c) : s64[4]\nreturn %d \"y\"\n}\n}\n";
  const hlo_buffer_rules shares = {.may_share = always_shares, .access = reads_all_first};
  arena *a = arena_create(NULL);
  hlo_module *m;
  hlo_buffers *b;
  status s = hlo_parse(a, text, sizeof text - 1, NULL, &m);
  ck_assert_msg(!s, "%s", s ? status_message(s) : "");
  hlo_instr *c = m->entry->last->prev;
  for (int beside = 1; beside >= 0; beside--) {
    c->concurrent = beside;
    s = hlo_assign_buffers(a, m, &shares, &b);
    ck_assert_ptr_null(s);
    c->concurrent = true;
    s = hlo_check_buffers(a, m, &shares, b);
    ck_assert_msg((s == NULL) == (beside == 1), "%s", s ? status_message(s) : "nothing found");
    ck_assert(!s || strstr(status_message(s), "at the same time"));
    status_free(s);
  }
  arena_destroy(a);
}
END_TEST

START_TEST(faults_are_found) {
  static const char text[] =
      "onnx-xla hlo 1\nmodule \"m\" {\n entry main(%x: s64[4] \"x\") {\n"
      "%a = negate(%x) : s64[4]\n%b = reverse(%a) {dimensions=[0]} : s64[4]\n%c = abs(%a) : s64[4]\n"
      "%d = add(%b, %c) : s64[4]\n%e = reverse(%d) {dimensions=[0]} : s64[4]\n%f = negate(%e) : s64[4]\n"
      "return %f \"y\"\n}\n}\n";
  const hlo_buffer_rules none = {0}, views = {.is_view = is_reverse}, scratch = {.scratch = some_scratch};
  const hlo_buffer_rules shares = {.may_share = always_shares, .access = reads_all_first};
  const hlo_buffer_rules shares_scratch = {
      .may_share = always_shares, .access = reads_all_first, .scratch = some_scratch};
  expect_fault(text, &shares, &none, "which is still read");
  expect_fault(text, &views, &none, "which is still read");
  expect_fault(text, &none, &views, "view of other bytes");
  expect_fault(text, &shares_scratch, &scratch, "which is still read");
  expect_fault(text, &views, &shares, "is overwritten");
}
END_TEST

int main(void) {
  TCase *t = tcase_create("lower");
  tcase_set_timeout(t, 60); /* the machine may be busy */
  tcase_add_test(t, random_modules);
  tcase_add_test(t, faults_are_found);
  tcase_add_test(t, faults_side_by_side_are_found);
  return run_suite("lower", t);
}
