/* check_binding.c - one program of the reference target for all sizes: bound to many sizes it computes what static
 * copies of its module compute, from many threads and from a file; sizes that it is not for and damaged tables are
 * refused. */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "backend_ref/target.h"
#include "base/dim/guard.h"
#include "base/file.h"
#include "hlo/ir/bind.h"
#include "runtime/exec/binding.h"
#include "runtime/program/image.h"
#include "runtime/program/sizes.h"
#include "tests/hlo/general_program.h"
#include "tests/unit/hlo/hlo_case.h"
#include "tests/unit/runtime/image_bytes.h"

static arena *memory;
static char path[] = "/tmp/check-binding-XXXXXX";

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

/* The first parameter is a matrix.  A second one has as many rows, and two columns more than the first; symbols may
 * have any names. */
static const char *const modules[] = {
    /* movements of elements, a dot, elementwise operations */
    "(%x: f32[n,m], %y: f32[n,m+2]) {\n"
    "  %c = concatenate(%x, %y) {dimension=1} : f32[n,2*m+2]\n"
    "  %t = transpose(%c) {permutation=[1,0]} : f32[2*m+2,n]\n"
    "  %d = dot(%c, %t) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[n,n]\n"
    "  %r = reshape(%c) : f32[2*m*n+2*n]\n"
    "  %i = iota() {dimension=0} : f32[2*m*n+2*n]\n"
    "  %s = add(%r, %i) : f32[2*m*n+2*n]\n"
    "  %h = slice(%c) {starts=[0,m], limits=[n,2*m+2], strides=[1,1]} : f32[n,m+2]\n"
    "  %u = maximum(%h, %y) : f32[n,m+2]\n"
    "  return %d, %s, %u, %x\n}",
    /* sizes as numbers, padding, a sort; many values that live at different times */
    "(%x: f32[n,m]) {\n"
    "  %s = sizes() {elements=[n*m,m+1,-1]} : s64[3]\n"
    "  %z = constant() {value=f32[] 0} : f32[]\n"
    "  %a = negate(%x) : f32[n,m]\n"
    "  %b = multiply(%a, %x) : f32[n,m]\n"
    "  %c = pad(%b, %z) {low=[1,0], high=[0,2], interior=[0,0]} : f32[n+1,m+2]\n"
    "  %d = sort(%c) {dimension=1, descending=true} : f32[n+1,m+2]\n"
    "  %e = add(%d, %d) : f32[n+1,m+2]\n"
    "  %f = multiply(%a, %b) : f32[n,m]\n"
    "  return %s, %e, %f\n}",
    /* a symbol, q, that occurs only in the sum q+2 */
    "(%x: f32[n,p], %y: f32[n,q+2]) {\n"
    "  %h = slice(%y) {starts=[0,2], limits=[n,q+2], strides=[1,1]} : f32[n,q]\n"
    "  %s = sizes() {elements=[q,n,p]} : s64[3]\n"
    "  return %h, %s\n}",
    /* a loop and a branch, whose bodies have sizes too */
    "onnx-xla hlo 1\nmodule \"m\" {\n"
    "computation go_on(%i: s64[], %a: f32[n,m]) {\n"
    "  %e = constant() {value=s64[] 3} : s64[]\n  %p = compare(%i, %e) {comparison=lt} : pred[]\n  return %p\n}\n"
    "computation step(%i: s64[], %a: f32[n,m]) {\n"
    "  %o = constant() {value=s64[] 1} : s64[]\n  %j = add(%i, %o) : s64[]\n"
    "  %r = reverse(%a) {dimensions=[0]} : f32[n,m]\n  %b = add(%a, %r) : f32[n,m]\n  return %j, %b\n}\n"
    "computation turned(%b: f32[n,m]) {\n  %t = reverse(%b) {dimensions=[1]} : f32[n,m]\n  return %t\n}\n"
    "computation plain(%b: f32[n,m]) {\n  return %b\n}\n"
    "entry main(%x: f32[n,m]) {\n"
    "  %s = sizes() {elements=[n,0]} : s64[2]\n"
    "  %f = slice(%s) {starts=[0], limits=[1], strides=[1]} : s64[1]\n  %i = reshape(%f) : s64[]\n"
    "  %j, %a = while(%i, %x) {computations=[go_on, step]} : s64[], f32[n,m]\n"
    "  %k = constant() {value=s64[] 3} : s64[]\n  %p = compare(%j, %k) {comparison=gt} : pred[]\n"
    "  %b = conditional(%p, %a) {computations=[turned, plain]} : f32[n,m]\n"
    "  return %b, %j\n}\n}\n",
};

static const hlo_module *parse(const char *text) {
  hlo_module *m;
  if (text[0] == '(') {
    return parse_entry(memory, text)->module;
  }
  ASSERT_OK(hlo_parse(memory, text, strlen(text), NULL, &m));
  return m;
}

static shape matrix(int64_t n, int64_t m) { return shape_make(DTYPE_F32, 2, (dim[]){n, m}); }

enum { SIZES = 6, ROUNDS = 3 };
static const int64_t sizes[SIZES][2] = {{3, 5}, {1, 1}, {0, 4}, {7, 0}, {1, 40}, {33, 2}};

static hlo_module *bind_module(const hlo_module *m, const int64_t size[2]) {
  hlo_module *bound;
  ASSERT_OK(hlo_bind(memory, m, (shape[]){matrix(size[0], size[1]), matrix(size[0], size[1] + 2)}, &bound));
  return bound;
}

static status compile(void *data) {
  general_program *p = ((void **)data)[0];
  return general_program_make(memory, &ref_compiler, &ref_target, ((void **)data)[1], NULL, NULL, ((void **)data)[2],
                              p);
}

static general_program make(const hlo_module *m, const char *file) {
  general_program p = {0};
  ASSERT_OK(guard_run(compile, (void *[]){&p, (void *)m, (void *)file}));
  return p;
}

START_TEST(equal_to_static_copies) {
  const hlo_module *m = parse(modules[_i / 2]);
  general_program p = make(m, _i % 2 ? path : NULL);
  ck_assert(!rt_program_is_static(p.program) && !rt_executable_binding(p.executable));
  for (int k = 0; k < SIZES; k++) {
    ASSERT_OK(general_program_compare(&p, bind_module(m, sizes[k]), SAME_BITS, ROUNDS));
  }
  general_program_destroy(&p);
}
END_TEST

typedef struct worker {
  const general_program *program;
  hlo_module *bound[SIZES];
  status failed;
} worker;

static status run_all(void *data) {
  const worker *w = data;
  for (int k = 0; k < SIZES; k++) {
    TRY(general_program_compare(w->program, w->bound[k], SAME_BITS, 1));
  }
  return NULL;
}

static void *work(void *data) {
  worker *w = data;
  w->failed = guard_run(run_all, w);
  return NULL;
}

START_TEST(many_threads) {
  enum { THREADS = 8 };
  const hlo_module *m = parse_entry(memory, modules[0])->module;
  general_program p = make(m, NULL);
  worker workers[THREADS];
  pthread_t threads[THREADS];
  for (int t = 0; t < THREADS; t++) {
    workers[t].program = &p;
    for (int k = 0; k < SIZES; k++) { /* each thread begins with another size */
      workers[t].bound[k] = bind_module(m, sizes[(k + t) % SIZES]);
    }
  }
  for (int t = 0; t < THREADS; t++) {
    ck_assert_int_eq(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
  }
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
    ASSERT_OK(workers[t].failed);
  }
  general_program_destroy(&p);
}
END_TEST

/* --- refusals --- */

static void expect_refusal(const general_program *p, const shape *inputs, const char *words) {
  rt_binding *b;
  status s = rt_bind(p->executable, inputs, &b);
  ck_assert_msg(s && strstr(status_message(s), words), "%s", status_message(s));
  ck_assert_int_eq(status_get_code(s), STATUS_INVALID_ARGUMENT);
  ck_assert(!b);
  status_free(s);
}

/* The message for a dimension that must be a multiple does not name an arbitrary multiple. */
START_TEST(sizes_that_are_no_multiples) {
  hlo_module *m = parse_entry(memory, "(%x: f32[4*n+2,m]) {\n  %z = negate(%x) : f32[4*n+2,m]\n  return %z\n}")->module;
  for (int k = 0; k < 2; k++) {
    general_program p = make(m, k ? path : NULL);
    for (int64_t rows = 0; rows < 6; rows++) {
      if (rows != 2) {
        expect_refusal(&p, (shape[]){matrix(rows, 4)}, "; its dimension 0 must be 4*n+2");
      }
    }
    general_program_destroy(&p);
  }
}
END_TEST

START_TEST(sizes_that_do_not_fit) {
  hlo_module *m = parse_entry(memory,
                              "(%x: f32[n,m], %y: f32[n,m+2]) {\n  %z = negate(%y) : f32[n,m+2]\n"
                              "  %s = slice(%x) {starts=[0,0], limits=[n,m-2], strides=[1,1]} : f32[n,m-2]\n"
                              "  return %z, %s\n}")
                      ->module;
  dim n = dim_symbol(m->dims, "n");
  dim_set_hint(m->dims, n, 7);
  dim_set_source(m->dims, "a: Slice");
  ck_assert(dim_at_most(m->dims, n, 9));
  for (int k = 0; k < 2; k++) {
    general_program p = make(m, k ? path : NULL);
    expect_refusal(&p, (shape[]){matrix(3, 4), matrix(3, 5)}, "input 'input_1' is f32[3,5]; its dimension 1 must be 6");
    expect_refusal(&p, (shape[]){matrix(3, 4), matrix(2, 6)}, "input 'input_1' is f32[2,6]; its dimension 0 must be 3");
    expect_refusal(&p, (shape[]){matrix(3, 4), shape_scalar(DTYPE_F32)},
                   "input 'input_1' is f32[] instead of f32[?,?]");
    expect_refusal(&p, (shape[]){matrix(10, 4), matrix(10, 6)}, "a: Slice: the program is for sizes with n <= 9");
    expect_refusal(&p, (shape[]){matrix(3, 1), matrix(3, 3)}, "or is negative");
    ASSERT_OK(general_program_compare(&p, bind_module(m, (int64_t[]){9, 2}), SAME_BITS, 1));
    general_program_destroy(&p);
  }
  m = parse_entry(memory, "(%x: f32[n,m], %y: f32[n,12/m]) {\n  return %x\n}")->module;
  general_program p = make(m, NULL);
  expect_refusal(&p, (shape[]){matrix(3, 0), matrix(3, 2)}, "dimension 1 of input 'input_1' cannot be computed");
  general_program_destroy(&p);
}
END_TEST

/* No guard says that m is at least 4: the slice itself is refused. */
START_TEST(instruction_that_is_not_defined) {
  hlo_module *m = parse_entry(memory,
                              "(%x: f32[n,m], %y: f32[n,m+2]) {\n"
                              "  %s = slice(%x) {starts=[0,0], limits=[n,4], strides=[1,1]} : f32[n,4]\n"
                              "  return %s\n}")
                      ->module;
  general_program p = make(m, NULL);
  ASSERT_OK(general_program_compare(&p, bind_module(m, (int64_t[]){3, 4}), SAME_BITS, 1));
  expect_refusal(&p, (shape[]){matrix(3, 3), matrix(3, 5)}, "not for these inputs");
  general_program_destroy(&p);
}
END_TEST

START_TEST(symbol_of_no_input) {
  const hlo_module *m = parse_entry(memory, "(%x: f32[n+m,4]) {\n  return %x\n}")->module;
  general_program p = {0};
  status s = guard_run(compile, (void *[]){&p, (void *)m, NULL});
  ck_assert_msg(s && strstr(status_message(s), "no input tells the size"), "%s", status_message(s));
  status_free(s);
}
END_TEST

/* --- damage --- */

/* The numbers of a program's tables that a damaged file may have changed. */
typedef struct places {
  int64_t *items[4096];
  uint32_t n;
} places;

static void add_place(places *p, const rt_size *at) {
  if (p->n < sizeof p->items / sizeof *p->items) {
    p->items[p->n++] = (int64_t *)(uintptr_t)at;
  }
}

static void add_thunks(places *p, const rt_sequence *s) {
  for (uint32_t k = 0; k < s->n; k++) {
    const rt_thunk *t = &s->thunks[k];
    for (uint32_t b = 0; b < t->n_buffers; b++) {
      add_place(p, &t->buffers[b].offset);
      for (int d = 0; d < t->buffers[b].rank; d++) {
        add_place(p, &t->buffers[b].extents[d]);
        add_place(p, &t->buffers[b].strides[d]);
      }
    }
    for (uint32_t j = 0; j < t->n_sizes; j++) {
      add_place(p, &t->sizes[j]);
    }
  }
}

static void find_places(const rt_program *p, places *out) {
  out->n = 0;
  for (uint32_t k = 0; k < p->n_sizes; k++) {
    add_place(out, &p->sizes[k].a);
    add_place(out, &p->sizes[k].b);
  }
  for (uint32_t k = 0; k < p->n_slots; k++) {
    add_place(out, &p->slots[k].bytes);
  }
  for (uint32_t k = 0; k < p->n_params + p->n_results; k++) {
    const rt_io *io = k < p->n_params ? &p->params[k] : &p->results[k - p->n_params];
    for (int d = 0; d < io->shape.rank; d++) {
      add_place(out, &io->shape.dims[d]);
    }
  }
  add_thunks(out, &p->body);
}

/* Loads, binds and runs the program with arrays of exactly the sizes that the binding states. */
static status run_damaged(void *data) {
  const rt_program *p = data;
  rt_executable *e;
  rt_binding *b = NULL;
  CHECK_THAT(p->n_params <= 2 && p->n_params + p->n_results <= 8, STATUS_INVALID_FILE, "another number of arrays");
  mem_budget budget = {.limit = 1 << 26};
  TRY(rt_executable_create(p, &ref_target, NULL, &e));
  arena *a = arena_create(NULL);
  status s = rt_bind(e, (shape[]){matrix(3, 5), matrix(3, 7)}, &b);
  void *arrays[8] = {0};
  bool small = !s;
  for (uint32_t k = 0; !s && k < p->n_params + p->n_results; k++) {
    const rt_io *io = k < p->n_params ? &b->program->params[k] : &b->program->results[k - p->n_params];
    small &= shape_bytes(&io->shape) < 1 << 20;
    arrays[k] = small ? calloc(1, (size_t)shape_bytes(&io->shape) + 1) : NULL;
  }
  small &= !b || b->program->arena_bytes < 1 << 24;
  if (small) {
    struct timespec now; /* a damaged loop may go on for ever */
    clock_gettime(CLOCK_MONOTONIC, &now);
    budget.deadline = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + 500000000u;
    s = rt_execute(b, &(rt_run_options){.budget = &budget}, (const void *const *)arrays, arrays + p->n_params);
  }
  for (int k = 0; k < 8; k++) {
    free(arrays[k]);
  }
  rt_binding_destroy(b);
  arena_destroy(a);
  rt_executable_destroy(e);
  return s;
}

/* A change of any number of the tables gives an error or other numbers, but touches nothing outside of the arrays,
 * which AddressSanitizer would show. */
START_TEST(damaged_numbers) {
  const hlo_module *m = parse_entry(memory, modules[0])->module;
  general_program p = make(m, NULL);
  places all;
  find_places(p.program, &all);
  ck_assert_uint_lt(all.n, 4096);
  const int64_t numbers[] = {INT64_MIN, -1000, -3, -2, -1, 0, 1, 2, 1 << 20, DIM_MAX, DIM_MAX + 1, INT64_MAX};
  uint32_t refused = 0;
  for (uint32_t k = 0; k < all.n; k++) {
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++) {
      int64_t before = *all.items[k];
      *all.items[k] = numbers[n];
      status s = guard_run(run_damaged, (void *)p.program);
      refused += s != NULL;
      ck_assert_msg(!s || !strchr(status_message(s), '\n'), "%s", status_message(s));
      status_free(s);
      *all.items[k] = before;
    }
  }
  ASSERT_OK(guard_run(run_damaged, (void *)p.program));
  ck_assert_msg(refused > all.n * 6, "%u of %u refused", refused, all.n * 12);
  general_program_destroy(&p);
}
END_TEST

static status open_damaged(void *data) {
  rt_image *image;
  mem_budget budget = {.limit = 1 << 26};
  arena *a = arena_create(&budget);
  (void)data;
  status s = rt_image_open(a, path, false, &image);
  s = s || image->n_programs == 0 ? s : guard_run(run_damaged, image->programs[0]);
  arena_destroy(a);
  return s;
}

static uint64_t next_random(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

/* The hashes of the file are corrected after each change, so that the reader's other checks are reached. */
START_TEST(damaged_files) {
  enum { CHANGES = 600 };
  const hlo_module *m = parse(modules[_i]);
  general_program p = make(m, path);
  const uint8_t *file;
  size_t size;
  ASSERT_OK(file_map(memory, path, &file, &size));
  uint8_t *bytes = arena_memdup(memory, file, size), *good = arena_memdup(memory, file, size);
  uint64_t random = 1, start = image_number(bytes + HEADER + PROGRAMS * ROW + 8),
           length = image_number(bytes + HEADER + PROGRAMS * ROW + 16);
  uint32_t refused = 0;
  general_program_destroy(&p);
  for (int k = 0; k < CHANGES; k++) {
    bytes[start + next_random(&random) % length] = (uint8_t)next_random(&random);
    image_mend(bytes);
    FILE *f = fopen(path, "wb");
    ck_assert(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0);
    status s = guard_run(open_damaged, NULL);
    refused += s != NULL;
    status_free(s);
    memcpy(bytes, good, size);
  }
  ck_assert_msg(refused > CHANGES / 4 && refused < CHANGES, "%u of %d refused", refused, CHANGES);
}
END_TEST

static void expect_damage(const rt_program *p, const char *words) {
  rt_executable *e;
  status s = rt_executable_create(p, &ref_target, NULL, &e);
  ck_assert_msg(s && strstr(status_message(s), words), "%s", status_message(s));
  ck_assert_int_eq(status_get_code(s), STATUS_INVALID_FILE);
  status_free(s);
}

START_TEST(damaged_tables) {
  const hlo_module *m = parse_entry(memory, modules[0])->module;
  general_program g = make(m, NULL);
  const rt_program p = *g.program;
  rt_program x = p;
  rt_size_node nodes[] = {{.op = DIM_SYMBOL, .a = 0, .b = 0, .name = "n"}, {.op = DIM_ADD, .a = -1, .b = -2}};
  x.sizes = nodes;
  x.n_sizes = 2;
  expect_damage(&x, "size 1 is damaged"); /* it refers to itself */
  nodes[1].b = 1;
  nodes[1].op = DIM_BOUNDED;
  expect_damage(&x, "size 1 is damaged");
  nodes[0].b = 2;
  expect_damage(&x, "size 0 is damaged"); /* no such dimension */
  nodes[0].b = 0;
  nodes[0].a = 2;
  expect_damage(&x, "size 0 is damaged");
  x = p;
  rt_guard guard = {.relation = DIM_RELATION_COUNT, .text = "", .source = ""};
  x.guards = &guard;
  x.n_guards = 1;
  expect_damage(&x, "guard 0 is damaged");
  guard = (rt_guard){.relation = DIM_EQUAL, .a = -1 - (rt_size)p.n_sizes, .text = "", .source = ""};
  expect_damage(&x, "guard 0 is damaged");
  x = p;
  rt_slot slot = {.bytes = 8, .first = 3, .last = 2};
  x.slots = &slot;
  x.n_slots = 1;
  expect_damage(&x, "slot 0 of the arena is damaged");
  x = p;
  x.n_slots = 0;
  expect_damage(&x, "a buffer is damaged");
  x = p;
  x.n_sizes = 0;
  expect_damage(&x, "is damaged");
  general_program_destroy(&g);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("binding");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_loop_test(c, equal_to_static_copies, 0, 2 * (int)(sizeof modules / sizeof *modules));
  tcase_add_test(c, many_threads);
  tcase_add_test(c, sizes_that_are_no_multiples);
  tcase_add_test(c, sizes_that_do_not_fit);
  tcase_add_test(c, instruction_that_is_not_defined);
  tcase_add_test(c, symbol_of_no_input);
  tcase_add_test(c, damaged_numbers);
  tcase_add_test(c, damaged_tables);
  tcase_add_loop_test(c, damaged_files, 0, (int)(sizeof modules / sizeof *modules));
  return run_suite("binding", c);
}
