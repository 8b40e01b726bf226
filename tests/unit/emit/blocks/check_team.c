/* check_team.c - reductions and row-wise fusions of many lengths and types on emulated blocks of threads: they compute
 * what the reference evaluator does, and the same bits in all orders of the threads; their PTX can be assembled. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend_gpu/runtime/emulated_block.h"
#include "backend_ref/eval.h"
#include "runtime/host/code_loader.h"
#include "tests/unit/emit/kernel_case.h"

/* The last one is for single rows only, for the sake of time. */
static const int64_t lengths[] = {1, 2, 15, 31, 32, 33, 255, 256, 257, 1024, 1025, 5000, 16385};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths - 1 };
static const char *const types[] = {"f32", "f16", "bf16", "f64", "s32", "u8"};
enum { N_TYPES = sizeof types / sizeof *types };

/* --- data: sums of these numbers are exact in every order, unless they are `rough` --- */

typedef enum numbers { EXACT, ROUGH, TIES, SPECIAL } numbers;

static double number(numbers how) {
  static const double special[] = {NAN, INFINITY, -INFINITY, -0.0, 0, 65504};
  uint64_t r = next_random() >> 20;
  switch (how) {
    case ROUGH: return (double)(r % 2000001) / 1e6 - 0.7;
    case TIES: return r % 997 == 0 ? NAN : (double)(r % 4);
    case SPECIAL: return r % 101 < 6 ? special[r % 101] : (double)(r % 65) / 16 - 2;
    default: return (double)(int64_t)(r % 17) - 8;
  }
}

static literal random_literal(const shape *s, numbers how) {
  dtype t = (dtype)s->type;
  char *data = arena_alloc_aligned(kernel_arena, (size_t)shape_bytes(s) + 1, 64);
  for (int64_t k = 0; k < shape_elements(s); k++) {
    double v = number(how);
    if (dtype_is_float(t)) {
      dtype_store_f64(t, data + (size_t)k * dtype_bytes(t), v, true, DTYPE_ROUND_NEAREST);
    } else {
      dtype_store_i64(t, data + (size_t)k * dtype_bytes(t), isfinite(v) ? llround(v) : 3);
    }
  }
  return literal_make(*s, data);
}

/* --- running --- */

/* Fails unless the results are near those of the reference evaluator; a tolerance of 0 wants equal numbers. */
static void compare(const kernel_case *c, const literal *want, const char *got) {
  dtype t = (dtype)want->shape.type;
  for (int64_t k = 0; k < shape_elements(&want->shape); k++) {
    double x = dtype_load_f64(t, got + (size_t)k * dtype_bytes(t)), y = literal_f64(want, k);
    bool same = x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= c->tolerance * (fabs(y) + 1.0 / 16);
    if (!same) {
      ck_abort_msg("element %lld is %.9g, not %.9g, of\n%s", (long long)k, x, y, c->text);
    }
  }
}

/* Runs the kernel into fresh memory. */
static char *run(const kernel_case *c, rt_block_fn *fn, const literal *args, gpu_order order) {
  const hlo_instr *i = c->fusion;
  const void *buffers[8];
  ck_assert(i->n_operands + i->n_results <= 8 && i->n_results == 1);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    buffers[k] = args[k].data;
  }
  size_t bytes = (size_t)shape_bytes(&i->shapes[0]);
  char *out = arena_alloc_aligned(kernel_arena, bytes + 1, 64);
  memset(out, 0xa5, bytes);
  buffers[i->n_operands] = out;
  int64_t grid = emit_static_grid(&c->info);
  uint32_t threads = c->info.threads ? c->info.threads : 64;
  gpu_blocks b = {fn, "test", buffers, NULL, grid, threads, c->info.shared_bytes, order};
  ASSERT_OK(gpu_run_blocks(&b, 0, grid * c->info.step_threads / threads + 1));
  return out;
}

static void check_case(const kernel_case *c, rt_block_fn *fn, numbers how) {
  const hlo_instr *i = c->fusion;
  literal *args = ARENA_NEW_N(kernel_arena, literal, i->n_operands), want;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    args[k] = random_literal(hlo_shape(i->operands[k]), how);
  }
  ASSERT_OK(ref_eval_computation(hlo_callee(i, 0), args, kernel_arena, &want));
  char *first = NULL;
  for (gpu_order order = 0; order < GPU_ORDERS; order++) {
    char *out = run(c, fn, args, order);
    first = first ? first : out;
    ck_assert_msg(memcmp(first, out, (size_t)shape_bytes(&i->shapes[0])) == 0, "order %d gives other bits of\n%s",
                  (int)order, c->text);
  }
  compare(c, &want, first);
}

/* Writes every `every`-th kernel. */
static void write_kernels(kernel_cases *c, uint32_t every, const emit_target *t, emit_module **m) {
  ASSERT_OK(emit_module_create(kernel_arena, t, "test", m));
  for (uint32_t k = 0; k < c->n; k += every) {
    kernel_case *one = &c->items[k];
    one->fusion = kernel_parse(one);
    ASSERT_OK(emit_kernel(*m, TEXT("k%u", k), one->fusion, NULL, &one->info));
  }
}

/* Assembles the PTX of some of the kernels if there is an assembler. */
static void check_ptx(kernel_cases *c) {
  enum { PTX_EVERY = 5 };
  static const char ptxas[] = "/usr/local/cuda/bin/ptxas";
  char path[] = "/tmp/check_team.XXXXXX";
  emit_target t;
  emit_module *m;
  const char *text;
  size_t size;
  ASSERT_OK(emit_target_nvptx(kernel_arena, "sm_80", &t));
  write_kernels(c, PTX_EVERY, &t, &m);
  ASSERT_OK(emit_module_assembly(m, &text, &size));
  int file = access(ptxas, X_OK) == 0 ? mkstemp(path) : -1;
  if (file >= 0) {
    ck_assert_int_eq(write(file, text, size), (int)size);
    close(file);
    ck_assert_int_eq(system(TEXT("%s -arch=sm_80 -O1 -o /dev/null %s", ptxas, path)), 0);
    unlink(path);
  }
}

static void check_all(kernel_cases *c, numbers how) {
  emit_target t;
  emit_module *m;
  const void *object;
  size_t size;
  rt_code *code;
  check_ptx(c);
  ASSERT_OK(emit_target_blocks_host(kernel_arena, &t));
  t.tells_accesses = true;
  write_kernels(c, 1, &t, &m);
  ASSERT_OK(emit_module_object(m, &object, &size));
  ASSERT_OK(rt_code_load(kernel_arena, (rt_span){object, size}, kernel_resolve, &code));
  for (uint32_t k = 0; k < c->n; k++) {
    check_case(&c->items[k], (rt_block_fn *)(intptr_t)rt_code_find(code, TEXT("k%u", k)), how);
  }
}

/* --- reductions --- */

/* Shapes whose dimension n is reduced, and how many threads compute a step if n is 256. */
static const struct {
  const char *before, *after, *over, *result;
  uint32_t threads;
} shapes[] = {{"3,", "", "1", "3", 32},
              {"", "", "0", "", 32},
              {"", ",37", "0", "37", 256},
              {"2,", ",40", "1", "2,40", 256},
              {"", ",3", "0", "3", 32},
              {"", ",2,7", "0, 2", "2", 256},
              {"2,", ",16,5", "1", "2,16,5", 256},
              {"5,2,", "", "0, 2", "2", 256}};
enum { N_SHAPES = sizeof shapes / sizeof *shapes };

static kernel_case *add_reduction(kernel_cases *c, int s, int64_t n, const char *type, const char *reducer) {
  return kernel_add(
      c, 0,
      TEXT("%s[%s](%%x: %s[%s%lld%s]) {\n%%y = reduce(%%x) {dimensions=[%s], reducer=%s} : %s[%s]\nreturn "
           "%%y\n}",
           type, shapes[s].result, type, shapes[s].before, (long long)n, shapes[s].after, shapes[s].over, reducer, type,
           shapes[s].result));
}

START_TEST(sums) {
  kernel_cases c = {0};
  for (int s = 0; s < N_SHAPES; s++) {
    for (int k = 0; k < N_LENGTHS + (s == 1); k++) {
      add_reduction(&c, s, lengths[k], types[_i], "add")->tolerance = _i == 2 ? 0x1p-7 : _i == 1 ? 0x1p-10 : 0;
    }
  }
  check_all(&c, EXACT);
}
END_TEST

/* NaN, infinities and zeros of both signs. */
START_TEST(maxima) {
  kernel_cases c = {0};
  for (int s = 0; s < N_SHAPES; s += 2) {
    for (int k = 0; k < N_LENGTHS; k++) {
      add_reduction(&c, s, lengths[k], types[_i], (s / 2 + k) % 2 ? "maximum" : "minimum");
    }
  }
  check_all(&c, SPECIAL);
}
END_TEST

/* A sum in a tree has less error than one in order, which may have 2^-24 of each partial sum. */
START_TEST(sums_are_accurate) {
  kernel_cases c = {0};
  for (int s = 0; s < N_SHAPES; s++) {
    for (int k = 0; k < N_LENGTHS; k++) {
      add_reduction(&c, s, lengths[k], "f32", "add")->tolerance = 0x1p-19;
    }
  }
  check_all(&c, ROUGH);
}
END_TEST

START_TEST(teams_are_used) {
  kernel_cases c = {0};
  emit_target t;
  emit_module *m;
  for (int s = 0; s < N_SHAPES; s++) {
    add_reduction(&c, s, 256, "f32", "add");
  }
  add_reduction(&c, 0, 1024, "f32", "add");
  add_reduction(&c, 0, 1025, "f32", "add");
  add_reduction(&c, 0, 15, "f32", "add");
  ASSERT_OK(emit_target_blocks_host(kernel_arena, &t));
  write_kernels(&c, 1, &t, &m);
  for (int s = 0; s < N_SHAPES; s++) {
    ck_assert_msg(c.items[s].info.step_threads == shapes[s].threads, "%u threads for\n%s", c.items[s].info.step_threads,
                  c.items[s].text);
  }
  ck_assert_uint_eq(c.items[N_SHAPES].info.step_threads, 32);
  ck_assert_uint_eq(c.items[N_SHAPES + 1].info.step_threads, 256);
  ck_assert_uint_eq(c.items[N_SHAPES + 2].info.step_threads, 1);
}
END_TEST

/* Of equal values the first or the last counts, and a NaN counts more than any number. */
START_TEST(positions) {
  static const struct {
    const char *before, *after, *result;
    int d;
  } all[] = {{"3,", "", "3", 1}, {"2,", ",20", "2,20", 1}, {"", "", "", 0}};
  kernel_cases c = {0};
  for (int s = 0; s < 3; s++) {
    for (int k = s; k < 2 * N_LENGTHS; k += 3) {
      kernel_add(&c, 0,
                 TEXT("s64[%s](%%x: %s[%s%lld%s]) {\n%%y = arg-reduce(%%x) {dimension=%d, largest=%s, last=%s} : "
                      "s64[%s]\nreturn %%y\n}",
                      all[s].result, types[_i], all[s].before, (long long)lengths[k / 2], all[s].after, all[s].d,
                      k % 2 ? "true" : "false", k / 2 % 4 > 1 ? "true" : "false", all[s].result));
    }
  }
  check_all(&c, TIES);
}
END_TEST

/* Two sums in one loop, with operations before and behind them. */
START_TEST(fused) {
  kernel_cases c = {0};
  for (int k = 0; k < N_LENGTHS; k++) {
    long long n = lengths[k];
    kernel_add(
        &c, 0x1p-18,
        TEXT("f32[3](%%x: f32[3,%lld], %%b: f32[3]) {\n%%s = reduce(%%x) {dimensions=[1], reducer=add} : f32[3]\n"
             "%%q = multiply(%%x, %%x) : f32[3,%lld]\n%%t = reduce(%%q) {dimensions=[1], reducer=add} : f32[3]\n"
             "%%u = subtract(%%t, %%s) : f32[3]\n%%v = add(%%u, %%b) : f32[3]\nreturn %%v\n}",
             n, n));
    kernel_add(&c, 0x1p-18,
               TEXT("f32[50](%%x: f32[%lld,50], %%b: f32[50]) {\n%%q = multiply(%%x, %%x) : f32[%lld,50]\n%%t = "
                    "reduce(%%q) {dimensions=[0], reducer=add} : f32[50]\n%%v = add(%%t, %%b) : f32[50]\nreturn %%v\n}",
                    n, n));
  }
  check_all(&c, EXACT);
}
END_TEST

/* A sum and a position, which are joined one after the other. */
START_TEST(two_joins) {
  kernel_cases c = {0};
  for (int d = 0; d < 2; d++) {
    for (int k = 3; k < N_LENGTHS; k++) {
      const char *x = d ? TEXT("f32[40,%lld]", (long long)lengths[k]) : TEXT("f32[%lld,40]", (long long)lengths[k]);
      kernel_add(&c, 0,
                 TEXT("f32[40](%%x: %s) {\n%%s = reduce(%%x) {dimensions=[%d], reducer=add} : f32[40]\n"
                      "%%p = arg-reduce(%%x) {dimension=%d, largest=true, last=false} : s64[40]\n"
                      "%%q = convert(%%p) {saturate=true, rounding=nearest} : f32[40]\n%%y = add(%%s, %%q) : "
                      "f32[40]\nreturn %%y\n}",
                      x, d, d));
    }
  }
  check_all(&c, EXACT);
}
END_TEST

/* --- row-wise fusions --- */

#define ROWS_TEXT(how, to, from)                                                                      \
  "%" to " = reduce(%" from ") {dimensions=[1], reducer=" how "} : T[3]\n%" to to " = broadcast(%" to \
  ") {dimensions=[0]} : T[3,N]\n"

static const char *const row_texts[] = {
    "T[3,N](%x: T[3,N]) {\n" ROWS_TEXT("maximum", "a", "x") "%c = subtract(%x, %aa) : T[3,N]\n%d = exponential(%c) : "
    "T[3,N]\n" ROWS_TEXT("add", "s", "d") "%y = divide(%d, %ss) : T[3,N]\nreturn %y\n}",
    /* RMS norm without the root of the mean */
    "T[3,N](%x: T[3,N], %w: T[N]) {\n%q = multiply(%x, %x) : T[3,N]\n" ROWS_TEXT("add", "s", "q")
    "%r = rsqrt(%ss) : T[3,N]\n%y = multiply(%x, %r) : T[3,N]\n%v = broadcast(%w) {dimensions=[1]} : T[3,N]\n%z = "
    "multiply(%y, %v) : T[3,N]\nreturn %z\n}",
    /* two passes, as for the mean and the variance */
    "T[3,N](%x: T[3,N]) {\n" ROWS_TEXT("add", "a", "x") "%c = subtract(%x, %aa) : T[3,N]\n%q = multiply(%c, %c) : "
    "T[3,N]\n" ROWS_TEXT("maximum", "s", "q") "%y = divide(%c, %ss) : T[3,N]\nreturn %y\n}"};

/* Returns the text with a type in place of each T and a number in place of each N. */
static const char *instance(const char *text, const char *type, int64_t n) {
  const char *out = "";
  for (const char *p = text; *p; p++) {
    bool letter = p > text && (p[-1] == '%' || (p[-1] >= 'a' && p[-1] <= 'z'));
    out = *p == 'T' && !letter   ? TEXT("%s%s", out, type)
          : *p == 'N' && !letter ? TEXT("%s%lld", out, (long long)n)
                                 : TEXT("%s%c", out, *p);
  }
  return out;
}

START_TEST(rows) {
  kernel_cases c = {0};
  for (size_t j = 0; j < sizeof row_texts / sizeof *row_texts; j++) {
    for (int k = 1; k < N_LENGTHS; k++) {
      kernel_add(&c, _i ? 0x1p-6 : 0x1p-18, instance(row_texts[j], types[_i], lengths[k]));
    }
  }
  check_all(&c, ROUGH);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("team");
  tcase_add_checked_fixture(t, kernel_setup, kernel_teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, sums, 0, N_TYPES);
  tcase_add_loop_test(t, maxima, 0, N_TYPES);
  tcase_add_test(t, sums_are_accurate);
  tcase_add_test(t, teams_are_used);
  tcase_add_loop_test(t, positions, 0, N_TYPES);
  tcase_add_test(t, fused);
  tcase_add_test(t, two_joins);
  tcase_add_loop_test(t, rows, 0, 2);
  return run_suite("emit-team", t);
}
