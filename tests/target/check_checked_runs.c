/* check_checked_runs.c - a run with check_memory names each thunk that accesses memory which it may not access, and
 * accepts what only looks like a fault.  This is tested with a target of the test's own, and then with programs of both
 * targets in which a buffer was moved. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend_cpu/compile/target.h"
#include "backend_cpu/runtime/target.h"
#include "backend_ref/target.h"
#include "hlo/text/text.h"
#include "runtime/exec/executable.h"
#include "runtime/program/image.h"
#include "runtime/host/thread_pool.h"
#include "tests/suite.h"

static arena *a;

static void setup(void) { a = arena_create(NULL); }
static void teardown(void) { arena_destroy(a); }

/* --- a target whose thunks do one thing each, with s32 --- */

enum { N = 8, FAR = 4096 };

static int32_t *at(const rt_thunk *t, rt_run *r, uint32_t k) { return rt_address(r, &t->buffers[k]); }

static status run_add(const rt_thunk *t, rt_run *r) { /* the inputs' sum, element by element */
  int32_t *out = at(t, r, t->n_inputs);
  for (int64_t k = 0; k < rt_buffer_elements(&t->buffers[t->n_inputs]); k++) {
    uint32_t sum = 0; /* unsigned, so that a sum of undefined numbers may overflow */
    for (uint32_t i = 0; i < t->n_inputs; i++) {
      sum += (uint32_t)at(t, r, i)[k];
    }
    out[k] = (int32_t)sum;
  }
  return NULL;
}

static status run_reverse(const rt_thunk *t, rt_run *r) {
  for (int k = 0; k < N; k++) {
    at(t, r, 1)[k] = at(t, r, 0)[N - 1 - k];
  }
  return NULL;
}

static status run_behind(const rt_thunk *t, rt_run *r) {
  at(t, r, 1)[N] = 1;
  return run_add(t, r);
}

static status run_before(const rt_thunk *t, rt_run *r) {
  at(t, r, 1)[-1] = 1;
  return run_add(t, r);
}

static status run_far(const rt_thunk *t, rt_run *r) {
  at(t, r, 1)[FAR] = 1;
  return run_add(t, r);
}

static status run_read_far(const rt_thunk *t, rt_run *r) {
  volatile int32_t *in = at(t, r, 0);
  (void)in[FAR];
  return run_add(t, r);
}

/* Adds the number after the end of the input to the sum. */
static status run_read_behind(const rt_thunk *t, rt_run *r) {
  TRY(run_add(t, r));
  at(t, r, 1)[0] += at(t, r, 0)[N];
  return NULL;
}

static status run_on_input(const rt_thunk *t, rt_run *r) {
  at(t, r, 0)[2] = 1;
  return run_add(t, r);
}

static status run_arena(const rt_thunk *t, rt_run *r) {
  r->arena[3] = 1;
  return run_add(t, r);
}

/* Adds to the numbers that are already in its output. */
static status run_more(const rt_thunk *t, rt_run *r) {
  for (int k = 0; k < N; k++) {
    at(t, r, t->n_inputs)[k] += at(t, r, 0)[k];
  }
  return NULL;
}

static status run_half(const rt_thunk *t, rt_run *r) {
  memcpy(at(t, r, 1), at(t, r, 0), N / 2 * sizeof(int32_t));
  return NULL;
}

/* Adds a number of its scratch memory, which it has not written, to the output. */
static status run_scratch(const rt_thunk *t, rt_run *r) {
  TRY(run_add(t, r));
  at(t, r, 1)[5] += at(t, r, 2)[5];
  return NULL;
}

static status run_less(const rt_thunk *t, rt_run *r) { /* writes whether the first element is below 100, as pred[] */
  *(uint8_t *)rt_address(r, &t->buffers[1]) = at(t, r, 0)[0] < 100;
  return NULL;
}

/* Copies half of the array, and writes how many elements that is, as s64[]. */
static status run_sized(const rt_thunk *t, rt_run *r) {
  *(int64_t *)rt_address(r, &t->buffers[2]) = N / 2;
  return run_half(t, r);
}

static status run_failing(const rt_thunk *t, rt_run *r) {
  (void)t, (void)r;
  return status_error(STATUS_INVALID_ARGUMENT, "on purpose");
}

static status run_limit(const rt_thunk *t, rt_run *r) {
  CHECK_THAT(at(t, r, 0)[N - 1] < 100, STATUS_INVALID_ARGUMENT, "too large");
  return NULL;
}

static status run_wild(const rt_thunk *t, rt_run *r) {
  (void)t, (void)r;
  void *nowhere = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *(volatile int *)nowhere = 1;
  return NULL;
}

/* All kinds claim that outputs may lie over inputs, so that programs with faults are loaded. */
#define KIND(kind, function) \
  { .name = "toy." kind, .run = function, .access = RT_READS_ALL_FIRST }
static const rt_thunk_kind kinds[] = {KIND("add", run_add),
                                      KIND("reverse", run_reverse),
                                      KIND("behind", run_behind),
                                      KIND("before", run_before),
                                      KIND("far", run_far),
                                      KIND("read-far", run_read_far),
                                      KIND("read-behind", run_read_behind),
                                      KIND("on-input", run_on_input),
                                      KIND("arena", run_arena),
                                      KIND("more", run_more),
                                      KIND("half", run_half),
                                      KIND("scratch", run_scratch),
                                      KIND("less", run_less),
                                      KIND("sized", run_sized),
                                      KIND("failing", run_failing),
                                      KIND("wild", run_wild),
                                      KIND("limit", run_limit)};

static const rt_target toy_target = {
    .abi = RT_ABI, .name = "toy", .kinds = kinds, .n_kinds = sizeof kinds / sizeof *kinds};

/* --- its programs: one input x, one output y, an arena of slots of N numbers --- */

static const int64_t one = 1, eight = N;

enum { SLOT = 64 };

static rt_buffer vector(rt_space space, uint32_t index, int slot) {
  return (rt_buffer){.space = (uint8_t)space,
                     .type = DTYPE_S32,
                     .rank = 1,
                     .index = index,
                     .offset = slot * SLOT,
                     .extents = &eight,
                     .strides = &one};
}

static rt_buffer in_arena(int slot) { return vector(RT_ARENA, 0, slot); }
static rt_buffer x(void) { return vector(RT_PARAM, 0, 0); }
static rt_buffer y(void) { return vector(RT_RESULT, 0, 0); }

static rt_buffer scalar(rt_buffer b, dtype type) {
  b.type = (uint8_t)type;
  b.rank = 0;
  return b;
}

static rt_buffer kept(rt_buffer b) {
  b.kept = true;
  return b;
}

static rt_program *new_program(void) {
  rt_program *p = ARENA_NEW(a, rt_program);
  shape s = shape_make(DTYPE_S32, 1, &eight);
  *p = (rt_program){.target = "toy",
                    .cpu = "",
                    .n_params = 1,
                    .n_results = 1,
                    .params = ARENA_NEW(a, rt_io),
                    .results = ARENA_NEW_N(a, rt_io, 2),
                    .arena_bytes = 8 * SLOT};
  p->params[0] = (rt_io){.name = "x", .shape = s};
  p->results[0] = (rt_io){.name = "y", .shape = s};
  return p;
}

static rt_thunk *append(rt_sequence *s, const char *kind, uint32_t n_inputs, uint32_t n, const rt_buffer *buffers) {
  rt_thunk *t = ARENA_PUSH(a, s->thunks, s->n, s->cap);
  *t = (rt_thunk){.kind = kind,
                  .operation = arena_printf(a, "node %u", s->n - 1),
                  .note = "",
                  .n_inputs = n_inputs,
                  .n_buffers = n,
                  .buffers = arena_memdup(a, buffers, n * sizeof *buffers)};
  return t;
}

#define APPEND(sequence, kind, n_inputs, ...) \
  append(sequence, kind, n_inputs, sizeof((rt_buffer[]){__VA_ARGS__}) / sizeof(rt_buffer), (rt_buffer[]){__VA_ARGS__})

static status execute(const rt_program *p, const rt_target *target, bool check, const void *input, void *output) {
  rt_executable *e;
  rt_thread_pool *pool;
  int64_t size;
  ASSERT_OK(rt_executable_create(p, target, NULL, &e));
  ASSERT_OK(rt_thread_pool_create(2, &pool));
  status s = rt_execute(rt_executable_binding(e), &(rt_run_options){.pool = pool, .check_memory = check},
                        (const void *[]){input}, (void *[]){output, &size});
  rt_thread_pool_destroy(pool);
  rt_executable_destroy(e);
  return s;
}

static const int32_t given[N] = {1, 2, 3, 4, 5, 6, 7, 8};

/* If `words` is NULL, expects that the first element of y is `first`; otherwise, that the run fails with a message that
 * contains `words`. */
static void expect(const rt_program *p, const char *words, int32_t first) {
  int32_t out[N + 8] = {0};
  status s = execute(p, &toy_target, true, given, out);
  if (words) {
    ck_assert_msg(s, "nothing is wrong, but this is: %s", words);
    ck_assert_msg(status_get_code(s) == STATUS_INTERNAL, "%s", status_message(s));
    ck_assert_msg(strstr(status_message(s), words), "'%s' does not say '%s'", status_message(s), words);
    status_free(s);
  } else {
    ck_assert_msg(!s, "%s", status_message(s));
    ck_assert_int_eq(out[0], first);
  }
  for (int k = N; k < N + 8; k++) {
    ck_assert_int_eq(out[k], 0);
  }
}

/* --- one thunk --- */

typedef struct fault {
  const char *kind, *words;
} fault;

static const fault faults[] = {
    {"toy.behind",
     "node 1: toy.behind: writes byte 1 behind the end of output 0, s32[8] in bytes 64 to 96 of the arena"},
    {"toy.before", "node 1: toy.before: writes 4 bytes before output 0, s32[8] in bytes 64 to 96 of the arena"},
    {"toy.far", "behind the end of output 0, s32[8] in bytes 64 to 96 of the arena"},
    {"toy.read-far", "behind the end of input 0, s32[8] in bytes 0 to 32 of the arena"},
    {"toy.read-behind",
     "node 1 (toy.read-behind) computed output 0, s32[8] in bytes 64 to 96 of the arena from what nothing "
     "had written"},
    {"toy.on-input", "byte 8 of input 0, s32[8] in bytes 0 to 32 of the arena"},
    {"toy.arena", "node 1: toy.arena: "},
    {"toy.more",
     "node 1 (toy.more) computed output 0, s32[8] in bytes 64 to 96 of the arena from what nothing had "
     "written"},
    {"toy.half", "element 4 of output 'y' is not defined: node 1 (toy.half) left it as it was in output 0"},
};

START_TEST(of_a_thunk) {
  const fault *f = &faults[_i];
  rt_program *p = new_program();
  APPEND(&p->body, "toy.add", 1, x(), in_arena(0));
  APPEND(&p->body, f->kind, 1, in_arena(0), in_arena(1));
  APPEND(&p->body, "toy.add", 1, in_arena(1), y());
  expect(p, f->words, 0);
}
END_TEST

/* Neither the caller's memory nor a constant can be written to. */
START_TEST(of_what_is_given) {
  rt_program *p = new_program();
  APPEND(&p->body, "toy.on-input", 1, x(), y());
  expect(p, "byte 8 of input 0, s32[8] in bytes 0 to 32 of the model's input 'x'", 0);
  p = new_program();
  _Alignas(64) static const int32_t numbers[N] = {1};
  p->n_constants = 1;
  p->constants = &(rt_span){numbers, sizeof numbers};
  APPEND(&p->body, "toy.on-input", 1, vector(RT_CONSTANT, 0, 0), y());
  expect(p, "byte 8 of input 0, s32[8] in bytes 0 to 32 of constant 0", 0);
  p = new_program();
  APPEND(&p->body, "toy.behind", 1, x(), y());
  expect(p, "behind the end of output 0, s32[8] in bytes 0 to 32 of the model's output 'y'", 0);
}
END_TEST

START_TEST(of_buffers_that_overlap) {
  rt_program *p = new_program(); /* each element is read only for the same element of the output, so this is right */
  APPEND(&p->body, "toy.add", 1, x(), in_arena(0));
  APPEND(&p->body, "toy.add", 2, in_arena(0), x(), in_arena(0));
  APPEND(&p->body, "toy.add", 1, in_arena(0), y());
  expect(p, NULL, 2);
  p = new_program();
  APPEND(&p->body, "toy.add", 1, x(), in_arena(0));
  APPEND(&p->body, "toy.reverse", 1, in_arena(0), in_arena(0));
  APPEND(&p->body, "toy.add", 1, in_arena(0), y());
  expect(p,
         "node 1: toy.reverse: element 4 of output 0, s32[8] in bytes 0 to 32 of the arena depends on "
         "whether an output overlaps "
         "input 0, s32[8] in bytes 0 to 32 of the arena: it is read after it was overwritten",
         0);
}
END_TEST

START_TEST(of_scratch_memory) {
  rt_program *p = new_program();
  APPEND(&p->body, "toy.scratch", 1, x(), y(), in_arena(1));
  expect(p, "element 5 of output 'y' is not defined: node 0 (toy.scratch) computed output 0", 0);
}
END_TEST

/* A thunk may read the numbers that its output had before it ran only if the output is declared as kept. */
START_TEST(kept_outputs) {
  rt_program *p = new_program();
  APPEND(&p->body, "toy.add", 1, x(), in_arena(2));
  APPEND(&p->body, "toy.scratch", 1, x(), y(), kept(in_arena(2)));
  APPEND(&p->body, "toy.more", 1, x(), kept(y()));
  expect(p, NULL, 2);
  char path[] = "check_checked_runs.XXXXXX";
  close(mkstemp(path));
  rt_image image = {.model = "m", .producer = "test", .target = "toy", .n_programs = 1, .programs = &p}, *read;
  ASSERT_OK(rt_image_write(&image, path));
  ASSERT_OK(rt_image_open(a, path, true, &read));
  unlink(path);
  expect(read->programs[0], NULL, 2);
}
END_TEST

/* Bytes that no thunk wrote may be copied and used in arithmetic, as long as they do not reach an output. */
START_TEST(undefined_numbers_that_do_not_matter) {
  rt_program *p = new_program();
  shape size = shape_scalar(DTYPE_S64);
  p->n_results = 2;
  p->results[1] = (rt_io){.name = "size", .shape = size, .is_size = true, .sized = 0};
  APPEND(&p->body, "toy.sized", 1, x(), in_arena(0), scalar(vector(RT_RESULT, 1, 0), DTYPE_S64));
  APPEND(&p->body, "toy.add", 2, in_arena(0), x(), y());
  expect(p, NULL, 2);
}
END_TEST

START_TEST(who_is_blamed) {
  rt_program *p = new_program(); /* the undefined numbers pass through other thunks, one of which works in place */
  APPEND(&p->body, "toy.half", 1, x(), in_arena(0));
  APPEND(&p->body, "toy.add", 2, in_arena(0), x(), in_arena(1));
  APPEND(&p->body, "toy.add", 2, in_arena(1), in_arena(0), in_arena(1));
  APPEND(&p->body, "toy.add", 1, in_arena(1), y());
  expect(p, "element 4 of output 'y' is not defined: node 0 (toy.half) left it as it was in output 0", 0);
  p = new_program();
  APPEND(&p->body, "toy.add", 1, in_arena(3), y());
  expect(p, "element 0 of output 'y' is not defined: nothing wrote it", 0);
}
END_TEST

START_TEST(failures_are_handed_on) {
  rt_program *p = new_program();
  int32_t out[N];
  APPEND(&p->body, "toy.failing", 1, x(), y());
  status s = execute(p, &toy_target, true, given, out);
  ck_assert_int_eq(status_get_code(s), STATUS_INVALID_ARGUMENT);
  ck_assert_str_eq(status_message(s), "node 0: on purpose");
  status_free(s);
}
END_TEST

/* An access to an address that belongs to no buffer ends the process, as it does without a check. */
START_TEST(other_faults) {
  rt_program *p = new_program();
  APPEND(&p->body, "toy.wild", 1, x(), y());
  expect(p, "", 0);
}
END_TEST

/* --- control flow --- */

/* while (z < 100) z += x, and y = z */
static rt_program *loop(bool defined, const char *kind) {
  rt_program *p = new_program();
  rt_sequence *bodies = ARENA_NEW_N(a, rt_sequence, 2);
  if (defined) {
    APPEND(&p->body, "toy.add", 1, x(), in_arena(0));
  }
  APPEND(&bodies[0], "toy.less", 1, in_arena(0), scalar(in_arena(1), DTYPE_PRED));
  APPEND(&bodies[1], kind, 2, in_arena(0), x(), in_arena(0));
  rt_thunk *t = APPEND(&p->body, "while", 1, scalar(in_arena(1), DTYPE_PRED));
  t->n_bodies = 2;
  t->bodies = bodies;
  APPEND(&p->body, "toy.add", 1, in_arena(0), y());
  return p;
}

START_TEST(loops) {
  expect(loop(true, "toy.add"), NULL, 100);
  expect(loop(false, "toy.add"), "while: its decision depends on undefined memory: nothing wrote it", 0);
}
END_TEST

static rt_program *choice(bool defined, const char *kind) {
  rt_program *p = new_program();
  rt_sequence *bodies = ARENA_NEW_N(a, rt_sequence, 2);
  if (defined) {
    APPEND(&p->body, "toy.less", 1, x(), scalar(in_arena(0), DTYPE_PRED));
  }
  APPEND(&bodies[0], kind, 1, x(), in_arena(1));
  APPEND(&bodies[1], "toy.far", 1, x(), in_arena(1)); /* does not run */
  rt_thunk *t = APPEND(&p->body, "conditional", 1, scalar(in_arena(0), DTYPE_PRED));
  t->n_bodies = 2;
  t->bodies = bodies;
  APPEND(&p->body, "toy.add", 1, in_arena(1), y());
  return p;
}

START_TEST(conditionals) {
  expect(choice(true, "toy.add"), NULL, 1);
  expect(choice(true, "toy.half"), "element 4 of output 'y' is not defined: node 0 (toy.half)", 0);
  expect(choice(false, "toy.add"), "conditional: its decision depends on undefined memory", 0);
}
END_TEST

/* A thunk without outputs, which only may fail, makes a decision, too, so its input must be defined. */
START_TEST(checks) {
  rt_program *p = new_program();
  APPEND(&p->body, "toy.limit", 1, x());
  APPEND(&p->body, "toy.add", 1, x(), y());
  expect(p, NULL, 1);
  p = new_program();
  APPEND(&p->body, "toy.half", 1, x(), in_arena(0));
  APPEND(&p->body, "toy.limit", 1, in_arena(0));
  APPEND(&p->body, "toy.add", 1, x(), y());
  expect(p, "node 1: toy.limit: its decision depends on undefined memory: node 0 (toy.half) left it as it was", 0);
}
END_TEST

static rt_program *group(rt_buffer from, rt_buffer to) {
  rt_program *p = new_program();
  rt_sequence *bodies = ARENA_NEW_N(a, rt_sequence, 2);
  APPEND(&p->body, "toy.add", 1, x(), in_arena(0));
  APPEND(&bodies[0], "toy.add", 1, x(), in_arena(1));
  APPEND(&bodies[1], "toy.add", 1, from, to);
  rt_thunk *t = append(&p->body, "concurrent", 0, 0, &from);
  t->n_bodies = 2;
  t->bodies = bodies;
  APPEND(&p->body, "toy.add", 2, in_arena(1), to, y());
  return p;
}

START_TEST(side_by_side) {
  expect(group(in_arena(0), in_arena(2)), NULL, 2);
  expect(group(in_arena(1), in_arena(2)), "writes output 0, s32[8] in bytes 64 to 96 of the arena while", 0);
  expect(group(in_arena(0), in_arena(1)),
         "concurrent: node 0 writes output 0, s32[8] in bytes 64 to 96 of the arena while node 0 has output 0", 0);
}
END_TEST

/* --- programs of the real targets --- */

static rt_program *compile(const rt_compiler *c, const char *body) {
  hlo_module *m;
  rt_program *p;
  const char *text = arena_printf(
      a, "onnx-xla hlo 1\nmodule \"m\" {\nentry main(%%0: s32[100] \"x\") {\n%s\nreturn %%r \"y\"\n}\n}\n", body);
  ASSERT_OK(hlo_parse(a, text, strlen(text), NULL, &m));
  rt_compile_options options = {.threads = 2};
  ASSERT_OK(c->compile((struct hlo_module *)m, &options, a, &p, NULL));
  return p;
}

static void expect_of(const rt_program *p, const rt_target *target, const char *words) {
  int32_t in[100] = {5, 3, 8}, out[100];
  status s = execute(p, target, true, in, out);
  ck_assert_msg(words ? s != NULL : !s, "%s", words ? words : status_message(s));
  ck_assert_msg(!words || strstr(status_message(s), words), "'%s' does not say '%s'", status_message(s), words);
  status_free(s);
}

static const char *const reversal =
    "%2 = sort(%0) {dimension=0, descending=true} : s32[100]\n"
    "%3 = reverse(%2) {dimensions=[0]} : s32[100]\n"
    "%r = sort(%3) {dimension=0, descending=false} : s32[100]";

START_TEST(a_kernel_over_its_operand) {
  rt_program *p = compile(&cpu_compiler, reversal);
  expect_of(p, &cpu_target, NULL);
  for (uint32_t k = 0; k < p->body.n; k++) {
    rt_thunk *t = &p->body.thunks[k], *next = t + 1;
    if (strcmp(t->kind, "cpu.kernel") == 0 && t->buffers[0].space == RT_ARENA) {
      t->buffers[1] = next->buffers[0] = t->buffers[0];
      expect_of(p, &cpu_target, "it is read after it was overwritten");
      return;
    }
  }
  ck_abort_msg("there is no kernel between the sorts");
}
END_TEST

/* The evaluator's thunks read all operands before they write, so an overlap is no fault, but an operand that no thunk
 * wrote is a fault. */
START_TEST(an_operand_that_is_not_there) {
  rt_program *p = compile(&ref_compiler, reversal);
  expect_of(p, &ref_target, NULL);
  rt_buffer *last = &p->body.thunks[p->body.n - 1].buffers[0];
  last->space = RT_ARENA;
  last->offset = (rt_size)p->arena_bytes;
  p->arena_bytes += 100 * sizeof(int32_t);
  expect_of(p, &ref_target, "element 0 of output 'y' is not defined: nothing wrote it");
}
END_TEST

int main(void) {
  TCase *c = tcase_create("checked runs");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_loop_test(c, of_a_thunk, 0, sizeof faults / sizeof *faults);
  tcase_add_test(c, of_what_is_given);
  tcase_add_test(c, of_buffers_that_overlap);
  tcase_add_test(c, of_scratch_memory);
  tcase_add_test(c, kept_outputs);
  tcase_add_test(c, undefined_numbers_that_do_not_matter);
  tcase_add_test(c, who_is_blamed);
  tcase_add_test(c, failures_are_handed_on);
#ifdef __SANITIZE_ADDRESS__ /* our handler leaves the fault to AddressSanitizer's, which exits with 1 */
  tcase_add_exit_test(c, other_faults, 1);
#else
  tcase_add_test_raise_signal(c, other_faults, SIGSEGV);
#endif
  tcase_add_test(c, loops);
  tcase_add_test(c, conditionals);
  tcase_add_test(c, checks);
  tcase_add_test(c, side_by_side);
  tcase_add_test(c, a_kernel_over_its_operand);
  tcase_add_test(c, an_operand_that_is_not_there);
  tcase_set_timeout(c, 60); /* the machine may be busy */
  return run_suite("checked runs", c);
}
