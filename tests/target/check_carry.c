/* check_carry.c - attention whose keys and values are carried from run to run: programs of both targets write new rows
 * in place, and compute what the evaluator computes from the module that concatenates. */
#include <check.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend_cpu/compile/target.h"
#include "backend_cpu/runtime/target.h"
#include "backend_ref/eval.h"
#include "backend_ref/target.h"
#include "hlo/passes/carry.h"
#include "hlo/text/text.h"
#include "hlo/text/verify.h"
#include "runtime/exec/binding.h"
#include "tests/hlo/general_program.h"
#include "tests/unit/hlo/hlo_case.h"

/* Attention over n new tokens after m past ones, with two heads of keys and values for four heads of queries. */
static const char *const attention =
    "(%q: f32[1,n,4,16], %k: f32[1,2,n,16], %v: f32[1,2,n,16], %pk: f32[1,2,m,16], %pv: f32[1,2,m,16]) {\n"
    "  %kc = concatenate(%pk, %k) {dimension=2} : f32[1,2,n+m,16]\n"
    "  %vc = concatenate(%pv, %v) {dimension=2} : f32[1,2,n+m,16]\n"
    "  %kb = broadcast(%kc) {dimensions=[0,1,3,4]} : f32[1,2,2,n+m,16] %k4 = reshape(%kb) : f32[1,4,n+m,16]\n"
    "  %vb = broadcast(%vc) {dimensions=[0,1,3,4]} : f32[1,2,2,n+m,16] %v4 = reshape(%vb) : f32[1,4,n+m,16]\n"
    "  %qk = dot(%q, %k4) {lhs_batch=[0,2], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[3]} : f32[1,4,n,n+m]\n"
    "  %m = reduce(%qk) {dimensions=[3], reducer=maximum} : f32[1,4,n]\n"
    "  %mb = broadcast(%m) {dimensions=[0,1,2]} : f32[1,4,n,n+m] %d = subtract(%qk, %mb) : f32[1,4,n,n+m]\n"
    "  %e = exponential(%d) : f32[1,4,n,n+m] %s = reduce(%e) {dimensions=[3], reducer=add} : f32[1,4,n]\n"
    "  %sb = broadcast(%s) {dimensions=[0,1,2]} : f32[1,4,n,n+m] %p = divide(%e, %sb) : f32[1,4,n,n+m]\n"
    "  %o = dot(%p, %v4) {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[2]} : f32[1,4,n,16]\n"
    "  %y = transpose(%o) {permutation=[0,2,1,3]} : f32[1,n,4,16]\n"
    "  return %y, %kc, %vc\n}";

enum { HEADS = 2, WIDTH = 16, ROOM = 24, NOTHING = 77 };
static const hlo_carry pairs[] = {{1, 3, 2}, {2, 4, 2}};

static const struct {
  const rt_compiler *compiler;
  const rt_target *target;
} targets[] = {{&cpu_compiler, &cpu_target}, {&ref_compiler, &ref_target}};

static arena *memory;
static char path[] = "/tmp/check-carry-XXXXXX";

static void setup(void) {
  memory = arena_create(NULL);
  strcpy(path + sizeof path - 7, "XXXXXX");
  int fd = mkstemp(path);
  ck_assert(fd >= 0);
  close(fd);
}

static void teardown(void) {
  unlink(path);
  arena_destroy(memory);
}

static const hlo_module *carried_module(const char *text) {
  uint32_t n;
  hlo_module *m = parse_entry(memory, text)->module;
  ASSERT_OK(hlo_carry_roots(m, 2, pairs, &n));
  ck_assert_uint_eq(n, 2);
  ASSERT_OK(hlo_verify(m));
  return m;
}

static status compile(void *data) {
  general_program *p = ((void **)data)[0];
  size_t k = (size_t)((const char *)((void **)data)[2] - (const char *)0);
  return general_program_make(memory, targets[k].compiler, targets[k].target, ((void **)data)[1], NULL, NULL, path, p);
}

static general_program program_of(size_t target, const hlo_module *m) {
  general_program p = {0};
  ASSERT_OK(guard_run(compile, (void *[]){&p, (void *)(uintptr_t)m, (char *)0 + target}));
  return p;
}

/* --- a run of decoding --- */

typedef struct decoder {
  const hlo_module *plain;
  general_program program;
  /* The memory that the program carries, and the rows that it should have. */
  float *room[2], rows[2][HEADS][ROOM][WIDTH];
  int64_t past;
  uint64_t state;
} decoder;

static float number(decoder *d) {
  d->state = d->state * 6364136223846793005u + 1442695040888963407u;
  return (float)(d->state >> 40) / (1 << 23) - 1;
}

static float *numbers(decoder *d, int64_t n) {
  float *x = arena_alloc_aligned(memory, (size_t)(n + 1) * sizeof *x, 64);
  for (int64_t k = 0; k < n; k++) {
    x[k] = number(d);
  }
  return x;
}

/* Returns the first `n` rows of both heads without gaps. */
static float *packed(const decoder *d, int which, int64_t n) {
  float *x = arena_alloc_aligned(memory, (size_t)(HEADS * n * WIDTH + 1) * sizeof *x, 64);
  for (int h = 0; h < HEADS; h++) {
    memcpy(x + h * n * WIDTH, d->rows[which][h], (size_t)(n * WIDTH) * sizeof *x);
  }
  return x;
}

static void append(decoder *d, int which, int64_t n, const float *x) {
  for (int h = 0; h < HEADS; h++) {
    memcpy(d->rows[which][h][d->past], x + h * n * WIDTH, (size_t)(n * WIDTH) * sizeof *x);
  }
}

/* Returns what the evaluator computes from the module that concatenates. */
static const float *evaluate(decoder *d, int64_t n, const float *const *x) {
  hlo_module *bound;
  ASSERT_OK(general_program_bind(memory, d->plain, "nm", (int64_t[]){n, d->past}, &bound));
  literal args[5], roots[3];
  for (uint32_t k = 0; k < 5; k++) {
    const void *data = k < 3 ? x[k] : packed(d, (int)k - 3, d->past);
    args[k] = literal_make(bound->entry->params[k]->shapes[0], data);
  }
  ASSERT_OK(ref_eval_computation(bound->entry, args, memory, roots));
  return roots[0].data;
}

static void check_room(const decoder *d) {
  for (int k = 0; k < 2; k++) {
    for (int h = 0; h < HEADS; h++) {
      const float *row = d->room[k] + h * ROOM * WIDTH;
      ck_assert_mem_eq(row, d->rows[k][h], (size_t)d->past * WIDTH * sizeof *row);
      for (int64_t at = d->past * WIDTH; at < ROOM * WIDTH; at++) {
        ck_assert_float_eq(row[at], NOTHING); /* this element must not have been written */
      }
    }
  }
}

/* Runs the program with n new tokens, and compares its results and the carried memory. */
static void step(decoder *d, int64_t n, bool check_memory) {
  const float *x[3] = {numbers(d, n * 64), numbers(d, n * HEADS * WIDTH), numbers(d, n * HEADS * WIDTH)};
  const float *want = evaluate(d, n, x);
  float *y = arena_alloc_aligned(memory, (size_t)(n * 64 + 1) * sizeof *y, 64);
  const int64_t past[] = {1, HEADS, d->past, WIDTH}, room[] = {1, HEADS, ROOM, WIDTH};
  const int64_t q[] = {1, n, 4, WIDTH}, k[] = {1, HEADS, n, WIDTH};
  const int64_t *dims[] = {q, k, k, past, past, room, room};
  shape shapes[7];
  for (int s = 0; s < 7; s++) {
    shapes[s] = shape_make(DTYPE_F32, 4, dims[s]);
  }
  append(d, 0, n, x[1]);
  append(d, 1, n, x[2]);
  rt_binding *b;
  ASSERT_OK(rt_bind(d->program.executable, shapes, &b));
  ck_assert_int_eq(b->program->results[1].length, d->past + n);
  ASSERT_OK(rt_execute(b, &(rt_run_options){.check_memory = check_memory},
                       (const void *[]){x[0], x[1], x[2], d->room[0], d->room[1], d->room[0], d->room[1]},
                       (void *[]){y, d->room[0], d->room[1]}));
  rt_binding_destroy(b);
  d->past += n;
  for (int64_t e = 0; e < n * 64; e++) {
    ck_assert_float_eq_tol(y[e], want[e], 1e-5f); /* some 20 products of numbers below 1, in another order */
  }
  check_room(d);
}

START_TEST(decodes_in_place) {
  decoder d = {.plain = parse_entry(memory, attention)->module, .state = 5};
  d.program = program_of((size_t)_i, carried_module(attention));
  /* Four thunks: the position, two updates, and the attention, which reads keys and values in place.  Nothing is
   * copied. */
  ck_assert(_i > 0 || d.program.program->body.n == 4);
  for (int k = 0; k < 2; k++) {
    ck_assert(d.program.program->results[k + 1].in_place);
    d.room[k] = numbers(&d, HEADS * ROOM * WIDTH);
    for (int e = 0; e < HEADS * ROOM * WIDTH; e++) {
      d.room[k][e] = NOTHING;
    }
  }
  static const int64_t lengths[] = {5, 1, 1, 0, 3, 1, 12, 1};
  for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
    step(&d, lengths[k], k % 2);
  }
  ck_assert_int_eq(d.past, ROOM);
  general_program_destroy(&d.program);
}
END_TEST

/* Updates of a parameter %c that other instructions read before and after the update, or that is itself a result.
 * Whether the program updates in place or not, the parameter and the result may have the same memory. */
static const char *const updates[] = {
    "%n = negate(%c) : f32[4,3] return %s, %n", "%n = add(%s, %c) : f32[4,3] return %s, %n", "return %s, %c",
    "%t = dynamic-update-slice(%s, %y, %p) : f32[4,3] %n = subtract(%t, %s) : f32[4,3] return %t, %n"};
enum { N_UPDATES = sizeof updates / sizeof *updates };

START_TEST(updates_in_shared_memory) {
  uint32_t n;
  const char *text = arena_printf(memory,
                                  "(%%c: f32[4,3], %%y: f32[1,3]) {\n"
                                  "  %%p = constant() {value=s64[2] {2, 0}} : s64[2]\n"
                                  "  %%x = slice(%%c) {starts=[1,0], limits=[2,3], strides=[1,1]} : f32[1,3]\n"
                                  "  %%s = dynamic-update-slice(%%c, %%x, %%p) : f32[4,3]\n  %s\n}",
                                  updates[_i / 2]);
  hlo_module *m = parse_entry(memory, text)->module;
  ASSERT_OK(hlo_carry_roots(m, 1, &(hlo_carry){0, 0, -1}, &n));
  ck_assert_uint_eq(n, 1);
  general_program p = program_of((size_t)_i % 2, m);
  decoder d = {.state = 6};
  float *c = numbers(&d, 12), *y = numbers(&d, 3), *other = numbers(&d, 12);
  literal args[] = {literal_make(m->entry->params[0]->shapes[0], arena_memdup(memory, c, 12 * sizeof *c)),
                    literal_make(m->entry->params[1]->shapes[0], y)};
  literal want[2];
  ASSERT_OK(ref_eval_computation(m->entry, args, memory, want));
  ASSERT_OK(rt_execute(rt_executable_binding(p.executable), NULL, (const void *[]){c, y}, (void *[]){c, other}));
  ck_assert_mem_eq(c, want[0].data, 12 * sizeof *c);
  ck_assert_mem_eq(other, want[1].data, 12 * sizeof *c);
  general_program_destroy(&p);
}
END_TEST

/* A damaged file may describe its results in any way. */
START_TEST(damaged_results) {
  general_program p = program_of(0, carried_module(attention)), other = {0};
  for (int k = 0; k < 7; k++) {
    rt_program damaged = *p.program;
    damaged.results = arena_memdup(memory, p.program->results, p.program->n_results * sizeof *damaged.results);
    rt_io *io = &damaged.results[1];
    io->carried = k == 0 ? 100 : k == 1 ? 7 : k == 2 ? 4 : k == 3 ? 0 : io->carried;
    io->axis = k == 4 ? 4 : io->axis;
    io->length = k == 5 ? -1000 : k == 6 ? DIM_MAX + 1 : io->length;
    status s = rt_executable_create(&damaged, &cpu_target, NULL, &other.executable);
    ck_assert_msg(s && strstr(status_message(s), "is damaged"), "%d: %s", k, status_message(s));
    status_free(s);
  }
  general_program_destroy(&p);
}
END_TEST

/* Replaces `from` by `to` in the module, so that the first of pairs[] cannot be carried, and expects that the second
 * one is carried nevertheless. */
static void check_declines(const char *from, const char *to) {
  uint32_t n;
  hlo_module *m = parse_entry(memory, with(memory, attention, from, to))->module;
  ASSERT_OK(hlo_carry_roots(m, 2, pairs, &n));
  ck_assert_msg(n == 1, "%s: %u", to, (unsigned)n);
  ASSERT_OK(hlo_verify(m));
  ck_assert_int_eq(m->carried[1].parameter, -1);
  ck_assert_int_eq(m->carried[2].parameter, 5);
}

START_TEST(declines) {
  /* The past is the last operand of the concatenation, is not a parameter, or is also what is appended; or the root is
   * not the concatenation. */
  check_declines("concatenate(%pk, %k)", "concatenate(%k, %pk)");
  check_declines("%kc = concatenate(%pk, %k)", "%pn = negate(%pk) : f32[1,2,m,16] %kc = concatenate(%pn, %k)");
  check_declines("%kc = concatenate(%pk, %k)",
                 "%z = slice(%pk) {starts=[0,0,0,0], limits=[1,2,n,16], strides=[1,1,1,1]} : f32[1,2,n,16]\n"
                 "%kc = concatenate(%pk, %z)");
  check_declines("return %y, %kc", "%nk = negate(%kc) : f32[1,2,n+m,16] return %y, %nk");
  /* the array would grow along another dimension */
  uint32_t n;
  hlo_module *m = parse_entry(memory, attention)->module;
  ASSERT_OK(hlo_carry_roots(m, 1, &(hlo_carry){1, 3, 1}, &n));
  ck_assert(n == 0 && !m->carried);
}
END_TEST

/* The number of rows for which there is room is neither the dimension of that name in the module's text nor one of an
 * array of a model, and it stays the same symbol when a copy of the module is carried again. */
START_TEST(room_has_a_name_of_its_own) {
  char *text = arena_strdup(memory, attention), *renamed = "";
  for (char *m; (m = strstr(text, "m")); text = m + 1) {
    bool symbol = strspn(m + 1, ",]") && strspn(m - 1, "+,");
    renamed = arena_printf(memory, "%s%.*s%s", renamed, (int)(m - text), text, symbol ? "_capacity_0" : "m");
  }
  hlo_module *plain = parse_entry(memory, arena_printf(memory, "%s%s", renamed, text))->module;
  dim of_text = plain->entry->params[3]->shapes[0].dims[2], room[2];
  ck_assert_str_eq(dim_name(plain->dims, of_text), "_capacity_0");
  for (int k = 0; k < 2; k++) {
    uint32_t n;
    hlo_module *m = hlo_module_clone(memory, plain);
    ASSERT_OK(hlo_carry_roots(m, 2, pairs, &n));
    ck_assert_uint_eq(n, 2);
    room[k] = m->entry->params[5]->shapes[0].dims[2];
  }
  ck_assert(room[0] != of_text && room[0] != dim_nameless(plain->dims, "capacity", 0) && room[1] == room[0]);
}
END_TEST

/* The printed text of a carried root can be parsed again, and wrong parameters and dimensions in it are refused. */
START_TEST(carried_text) {
  const hlo_module *m = carried_module(attention);
  const char *text, *again;
  size_t size;
  hlo_module *read;
  ASSERT_OK(hlo_print(memory, m, NULL, &text, &size));
  ck_assert_ptr_nonnull(strstr(text, " carried in 5:2 to m+n"));
  ASSERT_OK(hlo_parse(memory, text, size, NULL, &read));
  ASSERT_OK(hlo_print(memory, read, NULL, &again, &size));
  ck_assert_str_eq(text, again);
  static const char *const wrong[][2] = {{"in 5:2 to m+n", "in 3:2 to m+n"},
                                         {"in 5:2 to m+n", "in 6:2 to m+n"},
                                         {"in 5:2 to m+n", "in 7"},
                                         {"in 5:2", "in 5:4"},
                                         {"in 5:2", "in -1:2"},
                                         {"in 5:2 to", "in 5:2 of"},
                                         {"in 5:2", "of 5:2"}};
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
    const char *changed = with(memory, text, wrong[k][0], wrong[k][1]);
    status s = hlo_parse(memory, changed, strlen(changed), NULL, &read);
    ck_assert_msg(s != NULL, "%s is accepted", wrong[k][1]);
    status_free(s);
  }
}
END_TEST

/* If parameter and result have different memory, the result begins as a copy of the parameter.  If the result's memory
 * has too little room, the program cannot be bound. */
START_TEST(other_memory) {
  general_program p = program_of((size_t)_i, carried_module(attention));
  static const int64_t past[] = {1, HEADS, 2, WIDTH}, room[] = {1, HEADS, 4, WIDTH}, little[] = {1, HEADS, 2, WIDTH};
  static const int64_t q[] = {1, 1, 4, WIDTH}, k[] = {1, HEADS, 1, WIDTH};
  const int64_t *dims[] = {q, k, k, past, past, room, room};
  shape shapes[7];
  for (int s = 0; s < 7; s++) {
    shapes[s] = shape_make(DTYPE_F32, 4, dims[s]);
  }
  enum { ALL = HEADS * 4 * WIDTH };
  decoder d = {.state = 9};
  float *from = numbers(&d, ALL), *kept = arena_memdup(memory, from, ALL * sizeof *from), *x = numbers(&d, 64);
  float *to[2] = {numbers(&d, ALL), numbers(&d, ALL)}, *y = numbers(&d, 64);
  rt_binding *b;
  ASSERT_OK(rt_bind(p.executable, shapes, &b));
  ASSERT_OK(rt_execute(b, NULL, (const void *[]){x, x, x, from, from, from, from}, (void *[]){y, to[0], to[1]}));
  rt_binding_destroy(b);
  ck_assert_mem_eq(from, kept, ALL * sizeof *from);
  for (int h = 0; h < HEADS; h++) {
    memcpy(kept + (h * 4 + 2) * WIDTH, x + h * WIDTH, WIDTH * sizeof *x);
  }
  ck_assert_mem_eq(to[0], kept, ALL * sizeof *from);
  ck_assert_mem_eq(to[1], kept, ALL * sizeof *from);
  shapes[5] = shapes[6] = shape_make(DTYPE_F32, 4, little);
  status s = rt_bind(p.executable, shapes, &b);
  ck_assert_msg(s && strstr(status_message(s), "has room for 2 elements and needs 3"), "%s", status_message(s));
  status_free(s);
  general_program_destroy(&p);
}
END_TEST

/* Expects that hlo_carry_updates finds in which parameters the roots are carried (-1: in none), and that a second call
 * changes nothing if something is carried already. */
static void check_found(const char *text, uint32_t n, const int *want) {
  hlo_module *m = parse_entry(memory, text)->module;
  hlo_carry_updates(m);
  ASSERT_OK(hlo_verify(m));
  for (uint32_t k = 0; k < n; k++) {
    ck_assert_msg((m->carried ? m->carried[k].parameter : -1) == want[k], "root %u of %s", (unsigned)k, text);
  }
  const hlo_carried *found = m->carried;
  hlo_carry_updates(m);
  ck_assert_ptr_eq(m->carried, found);
}

START_TEST(finds_updates) {
#define UPDATE "dynamic-update-slice(%c, %x, %p) : f32[4,3]"
  static const char *const inputs = "(%c: f32[4,3], %x: f32[1,3], %p: s64[2], %d: f32[4,3]) {";
  const struct {
    const char *body;
    int want[2];
  } cases[] = {{"%s = " UPDATE " return %s, %x", {0, -1}},
               {"%s = " UPDATE " return %x, %s", {-1, 0}},
               {"%s = " UPDATE " %t = dynamic-update-slice(%d, %x, %p) : f32[4,3] return %t, %s", {3, 0}},
               /* updated twice, and reshaped in between */
               {"%s = " UPDATE " %t = dynamic-update-slice(%s, %x, %p) : f32[4,3] return %t, %s", {0, -1}},
               {"%r = reshape(%c) : f32[2,6] %y = reshape(%x) : f32[1,3]\n"
                "%s = dynamic-update-slice(%r, %y, %p) : f32[2,6] %t = reshape(%s) : f32[4,3] return %t, %s",
                {0, -1}},
               /* the root is something else, has another shape, or is the parameter itself */
               {"%s = " UPDATE " %t = add(%s, %s) : f32[4,3] return %t, %x", {-1, -1}},
               {"%s = " UPDATE " %t = reshape(%s) : f32[2,6] return %t, %x", {-1, -1}},
               {"%n = negate(%c) : f32[4,3] %s = dynamic-update-slice(%n, %x, %p) : f32[4,3] return %s, %x", {-1, -1}},
               {"return %c, %x", {-1, -1}},
               {"%r = reshape(%c) : f32[2,6] %t = reshape(%r) : f32[4,3] return %t, %x", {-1, -1}}};
#undef UPDATE
  for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
    check_found(arena_printf(memory, "%s\n%s\n}", inputs, cases[k].body), 2, cases[k].want);
  }
}
END_TEST

int main(void) {
  TCase *c = tcase_create("carry");
  tcase_set_timeout(c, 120);
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_loop_test(c, decodes_in_place, 0, 2);
  tcase_add_loop_test(c, other_memory, 0, 2);
  tcase_add_loop_test(c, updates_in_shared_memory, 0, 2 * N_UPDATES);
  tcase_add_test(c, damaged_results);
  tcase_add_test(c, declines);
  tcase_add_test(c, finds_updates);
  tcase_add_test(c, room_has_a_name_of_its_own);
  tcase_add_test(c, carried_text);
  return run_suite("carry", c);
}
