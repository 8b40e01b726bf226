/* check_image.c - .oxla files: what is written is read back; damage of any kind is a clear error and never a
 * crash. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend_cpu/compile/target.h"
#include "backend_cpu/runtime/target.h"
#include "backend_ref/eval.h"
#include "backend_ref/target.h"
#include "base/file.h"
#include "hlo/text/text.h"
#include "runtime/exec/executable.h"
#include "runtime/program/image.h"
#include "tests/suite.h"
#include "tests/unit/runtime/image_bytes.h"

#ifdef __SANITIZE_ADDRESS__
/* A damaged size may be more than the memory there is: then malloc must return NULL, so that the reader
 * reports it. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
#endif

static arena *memory;
static char path[] = "/tmp/check-image-XXXXXX";

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

/* A loop, a branch, a product with constants, a sort. */
static const char text[] =
    "onnx-xla hlo 1\nmodule \"test\" {\n"
    "computation go_on(%i: s64[], %n: s64[], %x: f32[4]) {\n"
    "  %p = compare(%i, %n) {comparison=lt} : pred[]\n  return %p\n}\n"
    "computation step(%i: s64[], %n: s64[], %x: f32[4]) {\n"
    "  %one = constant() {value=s64[] 1} : s64[]\n  %j = add(%i, %one) : s64[]\n"
    "  %y = add(%x, %x) : f32[4]\n  return %j, %n, %y\n}\n"
    "computation plain(%x: f32[4]) {\n  return %x\n}\n"
    "computation turned(%x: f32[4]) {\n  %y = reverse(%x) {dimensions=[0]} : f32[4]\n  return %y\n}\n"
    "entry main(%x: f32[4] \"x\", %n: s64[] \"n\") {\n"
    "  %i = constant() {value=s64[] 0} : s64[]\n"
    "  %j, %m, %y = while(%i, %n, %x) {computations=[go_on, step]} : s64[], s64[], f32[4]\n"
    "  %s = sort(%y) {dimension=0, descending=true} : f32[4]\n"
    "  %p = compare(%j, %i) {comparison=gt} : pred[]\n"
    "  %b = conditional(%p, %s) {computations=[turned, plain]} : f32[4]\n"
    "  %r = reshape(%b) : f32[2,2]\n"
    "  %w = constant() {value=f32[2,3] {1, 10, 100, 2, 20, 200}} : f32[2,3]\n"
    "  %d = dot(%r, %w) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[2,3]\n"
    "  return %d \"d\"\n}\n}\n";
static const float input[] = {1, 4, 2, 3};
static const int64_t count = 2;
/* The product of {{4, 8}, {12, 16}} and the constant. */
static const float output[] = {20, 200, 2000, 44, 440, 4400};

typedef struct backend {
  const rt_target *target;
  const rt_compiler *compiler;
} backend;
static const backend backends[] = {{&ref_target, &ref_compiler}, {&cpu_target, &cpu_compiler}};

static status write_image(void *data) {
  const backend *b = data;
  hlo_module *m;
  rt_program *p;
  rt_report report = {0};
  rt_compile_options options = {.threads = 1, .eval = ref_fold};
  TRY(hlo_parse(memory, text, strlen(text), NULL, &m));
  TRY(b->compiler->compile((struct hlo_module *)m, &options, memory, &p, &report));
  rt_image image = {.model = "test", .producer = "check_image", .target = "ref", .n_programs = 1, .programs = &p};
  return rt_image_write(&image, path);
}

/* What is tried with the file: it is opened and loaded, and run if `run` is set; `ran` is set when the run
 * begins. */
typedef struct trial {
  const backend *b;
  bool verify, run, ran;
  float d[6];
} trial;

/* Runs the program for at most half a second, since a damaged loop may never end. */
static status run_for_a_while(const rt_executable *e, trial *t) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  mem_budget budget = {.deadline = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + 500000000u};
  rt_run_options options = {.budget = &budget};
  return rt_execute(rt_executable_binding(e), &options, (const void *[]){input, &count}, (void *[]){t->d});
}

static status open_and_run(arena *a, trial *t) {
  rt_image *image;
  rt_executable *e;
  TRY(rt_image_open(a, path, t->verify, &image));
  CHECK_THAT(image->n_programs == 1, STATUS_INVALID_FILE, "%u programs", image->n_programs);
  TRY(rt_executable_create(image->programs[0], t->b->target, NULL, &e));
  const rt_program *p = image->programs[0];
  status s = NULL;
  if (t->run && rt_executable_binding(e) && p->n_params == 2 && p->n_results == 1 &&
      shape_bytes(&p->params[0].shape) <= (int64_t)sizeof input &&
      shape_bytes(&p->params[1].shape) <= (int64_t)sizeof count &&
      shape_bytes(&p->results[0].shape) <= (int64_t)sizeof t->d) {
    t->ran = true;
    s = run_for_a_while(e, t);
  }
  rt_executable_destroy(e);
  return s;
}

static status try_guarded(void *data) {
  mem_budget budget = {.limit = 1 << 28};
  arena *a = arena_create(&budget);
  status s = open_and_run(a, data);
  arena_destroy(a);
  return s;
}

static uint8_t *make(int k, size_t *size) {
  const uint8_t *bytes;
  status s = guard_run(write_image, (void *)&backends[k]);
  ck_assert_msg(!s, "%s: %s", backends[k].target->name, status_message(s));
  s = file_map(memory, path, &bytes, size);
  ck_assert_msg(!s, "%s", status_message(s));
  return arena_memdup(memory, bytes, *size);
}

static void put(const uint8_t *bytes, size_t size) {
  FILE *f = fopen(path, "wb");
  ck_assert(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0);
}

static void expect_error(trial t, const char *what, size_t at) {
  status s = guard_run(try_guarded, &t);
  ck_assert_msg(s, "%s: %s %zu is accepted", t.b->target->name, what, at);
  ck_assert_msg(status_get_code(s) == STATUS_INVALID_FILE && !strchr(status_message(s), '\n'), "%s: %s %zu: %s (%s)",
                t.b->target->name, what, at, status_message(s), status_code_name(status_get_code(s)));
  status_free(s);
}

START_TEST(round_trip) {
  size_t size;
  (void)make(_i, &size);
  trial t = {.b = &backends[_i], .verify = true, .run = true};
  status s = guard_run(try_guarded, &t);
  ck_assert_msg(!s, "%s: %s", t.b->target->name, status_message(s));
  ck_assert(t.ran && memcmp(t.d, output, sizeof output) == 0);
}
END_TEST

START_TEST(truncated) {
  size_t size;
  uint8_t *bytes = make(_i, &size);
  for (size_t n = 0; n < size; n += 100) {
    put(bytes, n);
    expect_error((trial){.b = &backends[_i]}, "a file cut to", n);
  }
  put(bytes, size - 1);
  expect_error((trial){.b = &backends[_i]}, "a file cut to", size - 1);
}
END_TEST

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

/* A flipped bit is noticed unless it is in padding, since hashes cover all other bytes. */
START_TEST(flipped) {
  size_t size;
  uint8_t *bytes = make(_i, &size);
  uint64_t random = 88172645463325252u;
  int refused = 0;
  for (int k = 0; k < 1000; k++) {
    size_t bit = next_random(&random) % (size * 8);
    bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    put(bytes, size);
    trial t = {.b = &backends[_i], .verify = true, .run = true};
    status s = guard_run(try_guarded, &t);
    if (s) {
      refused++;
      ck_assert_int_eq(status_get_code(s), STATUS_INVALID_FILE);
      status_free(s);
    } else { /* padding */
      ck_assert_msg(memcmp(t.d, output, sizeof output) == 0, "bit %zu changes the numbers", bit);
    }
    bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
  }
  ck_assert_int_gt(refused, 100);
}
END_TEST

/* Damage after which the hashes are made right again, so that only the loader's checks of buffers, thunks and texts can
 * find it.  What still loads is run only if it is for the reference target: nothing can check what machine code does
 * with a changed number. */
START_TEST(mended) {
  size_t size;
  uint8_t *good = make(_i, &size), *bytes = arena_memdup(memory, good, size);
  const uint8_t *row = good + HEADER + PROGRAMS * ROW;
  uint64_t random = 2463534242u, start = image_number(row + 8), length = image_number(row + 16);
  image_mend(bytes);
  ck_assert_msg(memcmp(good, bytes, size) == 0, "the format is not what this test knows");
  for (int k = 0; k < 1000; k++) {
    uint64_t at = start + next_random(&random) % length;
    bytes[at] = k % 2 ? (uint8_t)next_random(&random) : bytes[at] ^ (uint8_t)(1 << next_random(&random) % 8);
    image_mend(bytes);
    put(bytes, size);
    trial t = {.b = &backends[_i], .run = _i == 0};
    status_free(guard_run(try_guarded, &t));
    memcpy(bytes, good, size);
  }
}
END_TEST

START_TEST(strangers) {
  static const char words[] =
      "not a file of ours, but one that is longer than a header has to be: many words follow, "
      "and none of them means anything to the reader of it; there are two hundred at least. "
      "So it goes on for a while, and ends here.";
  static const char *const files[] = {"", "O", words};
  for (size_t k = 0; k < sizeof files / sizeof *files; k++) {
    put((const uint8_t *)files[k], strlen(files[k]));
    expect_error((trial){.b = &backends[0]}, "stranger", k);
    ck_assert(!rt_image_begins(files[k], strlen(files[k])));
  }
  unlink(path);
  trial t = {.b = &backends[0]};
  status s = guard_run(try_guarded, &t);
  ck_assert(status_get_code(s) == STATUS_IO);
  status_free(s);
}
END_TEST

/* A target refuses a program that was compiled for another target. */
START_TEST(other_target) {
  size_t size;
  (void)make(0, &size);
  trial t = {.b = &backends[1]};
  status s = guard_run(try_guarded, &t);
  ck_assert_msg(s, "a program of ref is accepted by cpu");
  status_free(s);
}
END_TEST

/* What rt_image.pace was told. */
typedef struct told {
  uint64_t all, most;
  int calls;
} told;

static void tell(void *data, uint64_t bytes) {
  told *t = data;
  t->all += bytes;
  t->most = bytes > t->most ? bytes : t->most;
  t->calls++;
}

/* Each constant is read and then written: the writer can wait after each megabyte that it writes, and after each
 * constant that it reads. */
START_TEST(pieces) {
  enum { MEGABYTE = 1 << 20, LARGE = 5 * MEGABYTE, SMALL = MEGABYTE / 4, N = 9 };
  uint8_t *bytes = arena_calloc(memory, LARGE, 1);
  rt_span constants[N] = {{bytes, LARGE}};
  for (int k = 1; k < N; k++) {
    constants[k] = (rt_span){bytes + k, (size_t)SMALL + (size_t)k};
  }
  rt_program p = {.target = "ref", .cpu = "", .n_constants = N, .constants = constants};
  rt_image image = {.model = "test", .target = "ref", .n_programs = 1, .programs = &(rt_program *){&p}};
  const uint8_t *without, *with;
  size_t size, size_with;
  told t = {0};
  ASSERT_OK(rt_image_write(&image, path));
  ASSERT_OK(file_map(memory, path, &without, &size));
  image.pace = tell;
  image.pace_data = &t;
  ASSERT_OK(rt_image_write(&image, path));
  ASSERT_OK(file_map(memory, path, &with, &size_with));
  ck_assert(size == size_with && memcmp(with, without, size) == 0);
  uint64_t all = 2 * (LARGE + (N - 1) * (uint64_t)SMALL);
  ck_assert_uint_le(t.all, all + 2 * N * N);
  ck_assert_uint_ge(t.all, all - MEGABYTE);
  ck_assert_uint_eq(t.most, LARGE);
  ck_assert_int_ge(t.calls, 1 + 5 + 1 + 1);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("image");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_loop_test(c, round_trip, 0, 2);
  tcase_add_loop_test(c, truncated, 0, 2);
  tcase_add_loop_test(c, flipped, 0, 2);
  tcase_add_loop_test(c, mended, 0, 2);
  tcase_add_test(c, strangers);
  tcase_add_test(c, other_target);
  tcase_add_test(c, pieces);
  return run_suite("image", c);
}
