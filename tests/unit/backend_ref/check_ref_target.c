/* check_ref_target.c - programs of the reference target give what the evaluator gives. */
#include <check.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "backend_ref/target.h"
#include "hlo/text/text.h"
#include "runtime/exec/executable.h"
#include "tests/suite.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

#define HEAD "onnx-xla hlo 1\nmodule \"test\" {\n"

/* Counts i to n, doubling x; then sorts, selects by a branch, multiplies and reshapes. */
static const char program_text[] = HEAD
    "computation go_on(%i: s64[], %n: s64[], %x: f32[4]) {\n"
    "  %p = compare(%i, %n) {comparison=lt} : pred[]\n"
    "  return %p\n}\n"
    "computation step(%i: s64[], %n: s64[], %x: f32[4]) {\n"
    "  %one = constant() {value=s64[] 1} : s64[]\n"
    "  %j = add(%i, %one) : s64[]\n"
    "  %y = add(%x, %x) : f32[4]\n"
    "  return %j, %n, %y\n}\n"
    "computation plain(%x: f32[4]) {\n  return %x\n}\n"
    "computation turned(%x: f32[4]) {\n  %y = reverse(%x) {dimensions=[0]} : f32[4]\n  return %y\n}\n"
    "entry main(%x: f32[4] \"x\", %n: s64[] \"n\") {\n"
    "  %i = constant() {value=s64[] 0} : s64[]\n"
    "  %j, %m, %y = while(%i, %n, %x) {computations=[go_on, step]} : s64[], s64[], f32[4]\n"
    "  %k = iota() {dimension=0} : s32[4]\n"
    "  %s, %t = sort(%y, %k) {dimension=0, descending=true} : f32[4], s32[4]\n"
    "  %p = compare(%j, %i) {comparison=gt} : pred[]\n"
    "  %b = conditional(%p, %s) {computations=[turned, plain]} : f32[4]\n"
    "  %f = fusion(%b) {kind=loop, computations=[turned]} : f32[4]\n"
    "  %r = reshape(%f) : f32[2,2]\n"
    "  %w = constant() {value=f32[2,1] {1, 10}} : f32[2,1]\n"
    "  %d = dot(%r, %w) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[2,1]\n"
    "  return %d \"d\", %t \"t\", %x \"x2\", %w \"w\"\n}\n}\n";

static hlo_module *parse(const char *text) {
  hlo_module *m = NULL;
  status s = hlo_parse(memory, text, strlen(text), NULL, &m);
  ck_assert_msg(!s, "%s", status_message(s));
  return m;
}

static status compile_and_run(void *data) {
  (void)data;
  float x[] = {1, 4, 2, 3}, d[2], x2[4], w[2];
  int64_t n = 3;
  int32_t t[4];
  rt_program *p;
  rt_executable *e;
  rt_report report = {0};
  TRY(ref_compiler.compile(parse(program_text), NULL, memory, &p, &report));
  TRY(rt_executable_create(p, &ref_target, NULL, &e));
  status s = rt_execute(rt_executable_binding(e), &(rt_run_options){.check_memory = true}, (const void *[]){x, &n},
                        (void *[]){d, t, x2, w});
  rt_executable_destroy(e);
  TRY(s);
  /* x is doubled three times, to 8 32 16 24, and sorted to 32 24 16 8 (order 1 3 2 0), which the branch and the fusion
   * reverse; d is 32 + 10 * 24 and 16 + 10 * 8 */
  CHECK_THAT(d[0] == 272 && d[1] == 96, STATUS_INTERNAL, "d is %g, %g", (double)d[0], (double)d[1]);
  CHECK_THAT(t[0] == 1 && t[1] == 3 && t[2] == 2 && t[3] == 0, STATUS_INTERNAL, "t is %d %d %d %d", t[0], t[1], t[2],
             t[3]);
  CHECK_THAT(memcmp(x, x2, sizeof x) == 0 && w[0] == 1 && w[1] == 10, STATUS_INTERNAL, "what passes through changed");
  CHECK_THAT(report.thunks == 0 || report.hlo_before > 0, STATUS_INTERNAL, "the report is empty");
  return NULL;
}

START_TEST(runs) {
  status s = guard_run(compile_and_run, NULL);
  ck_assert_msg(!s, "%s", status_message(s));
}
END_TEST

/* Loads a program whose thunk has this text as config.  Loading must fail if the text asks for other buffers
 * than the thunk has. */
static status load_damaged(void *data) {
  rt_program *p;
  rt_executable *e;
  TRY(ref_compiler.compile(parse(HEAD "entry main(%x: f32[4]) {\n  %y = negate(%x) : f32[4]\n  return %y\n}\n}\n"),
                           NULL, memory, &p, NULL));
  ck_assert_uint_eq(p->body.n, 1);
  const char *text = data;
  p->body.thunks[0].config = (rt_span){text, strlen(text)};
  status s = rt_executable_create(p, &ref_target, NULL, &e);
  rt_executable_destroy(e);
  return s;
}

START_TEST(damaged) {
  static const char *const texts[] = {
      "",
      "onnx-xla hlo 9\n",
      HEAD "entry op(%x: f32[400]) {\n  %y = negate(%x) : f32[400]\n  return %y\n}\n}\n",
      HEAD "entry op(%x: s32[4]) {\n  %y = negate(%x) : s32[4]\n  return %y\n}\n}\n",
      HEAD "entry op(%x: f32[4], %z: f32[4]) {\n  %y = add(%x, %z) : f32[4]\n  return %y\n}\n}\n",
      HEAD "entry op(%x: f32[4]) {\n  %y = negate(%x) : f32[4]\n  return %y, %y\n}\n}\n"};
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    status s = guard_run(load_damaged, (void *)texts[k]);
    ck_assert_msg(s && status_get_code(s) != STATUS_INTERNAL, "text %zu: %s", k, s ? status_message(s) : "accepted");
    status_free(s);
  }
}
END_TEST

static status run_nothing(const rt_thunk *t, rt_run *r) {
  (void)t;
  (void)r;
  return NULL;
}

/* A target's own thunk kind goes before the runtime's kind of the same name: a device, for example, copies in
 * its own way. */
START_TEST(own_kinds_first) {
  static const rt_thunk_kind kinds[] = {{.name = "copy", .run = run_nothing}};
  static const rt_target plain = {.abi = RT_ABI, .name = "plain"};
  static const rt_target device = {.abi = RT_ABI, .name = "plain", .kinds = kinds, .n_kinds = 1};
  rt_thunk copy = {.kind = "copy", .operation = "a copy of nothing"}; /* the runtime's own kind refuses it */
  const rt_program p = {.target = "plain", .cpu = "", .body = {1, 1, &copy}};
  rt_executable *e;
  status s = rt_executable_create(&p, &plain, NULL, &e);
  ck_assert_int_eq(status_get_code(s), STATUS_INVALID_FILE);
  status_free(s);
  s = rt_executable_create(&p, &device, NULL, &e);
  ck_assert_msg(!s, "%s", status_message(s));
  rt_executable_destroy(e);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("ref_target");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_test(c, runs);
  tcase_add_test(c, damaged);
  tcase_add_test(c, own_kinds_first);
  return run_suite("ref_target", c);
}
