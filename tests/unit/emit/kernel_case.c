/* kernel_case.c - runs kernels given as HLO text; see kernel_case.h. */
#include "tests/unit/emit/kernel_case.h"

#include <math.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "hlo/text/text.h"
#include "runtime/host/code_loader.h"
#include "tests/unit/emit/kernel_texts.h"
#include "tests/unit/emit/ptx_case.h"

arena *kernel_arena;

void kernel_setup(void) { kernel_arena = arena_create(NULL); }
void kernel_teardown(void) { arena_destroy(kernel_arena); }

/* --- kernels to try --- */

kernel_case *kernel_add(kernel_cases *c, double tolerance, const char *text) {
  kernel_case *k = ARENA_PUSH(kernel_arena, c->items, c->n, c->cap);
  *k = (kernel_case){.text = text, .tolerance = tolerance, .alias = -1};
  return k;
}

hlo_instr *kernel_parse(const kernel_case *k) {
  const char *open = strchr(k->text, '('),
             *args = arena_strndup(kernel_arena, open, (size_t)(strchr(k->text, '{') - open));
  /* the names of the parameters of the fused computation, and the shapes of its results */
  const char *names = "";
  for (const char *p = args; (p = strchr(p, '%')); p++) {
    names = TEXT("%s%s%.*s", names, *names ? ", " : "", (int)strcspn(p, ":"), p);
  }
  const char *shapes = k->text[0] == '(' ? NULL : arena_strndup(kernel_arena, k->text, (size_t)(open - k->text));
  uint32_t n_results = 1;
  for (const char *p = shapes; p && *p; p++) {
    n_results += *p == ';';
  }
  const char *results = "", *listed = "";
  for (uint32_t j = 0; j < n_results; j++) {
    results = TEXT("%s%s%%result%u", results, j ? ", " : "", j);
  }
  for (const char *p = shapes; p && *p; p++) {
    listed = TEXT("%s%c%s", listed, *p == ';' ? ',' : *p, *p == ';' ? " " : "");
  }
  const char *entry_args = args;
  const char *out = "";
  for (const char *p = entry_args; *p; p++) { /* gives each parameter of the entry a name in quotes */
    bool ends = (*p == ',' && strchr("[0123456789", p[1]) == NULL) || (*p == ')' && !p[strspn(p + 1, " \n") + 1]);
    out = TEXT("%s%s%c", out, ends && p > entry_args + 1 ? " \"p\"" : "", *p);
  }
  const char *returned = "";
  for (uint32_t j = 0; j < n_results; j++) {
    returned = TEXT("%s%s%%result%u \"r%u\"", returned, j ? ", " : "", j, j);
  }
  const char *text = TEXT(
      "onnx-xla hlo 1\nmodule \"test\" {\ncomputation f%s\nentry main%s {\n%s = fusion(%s) {kind=loop, "
      "computations=[f]} : %s\nreturn %s\n}\n}\n",
      open, out, results, names, listed, returned);
  hlo_module *m = NULL;
  status s = hlo_parse(kernel_arena, text, strlen(text), NULL, &m);
  ck_assert_msg(!s, "%s\nin\n%s", status_message(s), text);
  return m->entry->roots[0].def;
}

/* --- data --- */

static void random_element(const kernel_case *k, dtype t, unsigned char *at) {
  static const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1e-40, -1e-42, 1, -1, 0.5, 65504, 3e38, 1e-7};
  if (dtype_is_complex(t)) {
    for (int j = 0; j < 2; j++) {
      random_element(k, t == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64, at + (size_t)j * dtype_bytes(t) / 2);
    }
    return;
  }
  uint64_t r = next_random();
  if (dtype_is_float(t)) {
    double v = (double)((int64_t)(r >> 16) % 2000001) / 1000000.0 * 3 - 3;
    if (r % 16 == 0 && k->tolerance == 0) {
      v = special[r / 16 % (sizeof special / sizeof *special)];
    }
    dtype_store_f64(t, at, v, true, DTYPE_ROUND_NEAREST);
    if (k->tolerance == 0 && dtype_bytes(t) == 1) {
      *at = (unsigned char)(r >> 20) & ((1u << dtype_get_info(t)->bits) - 1);
    }
    return;
  }
  int64_t v = k->low < k->high ? k->low + (int64_t)(r >> 8) % (k->high - k->low + 1) : (int64_t)(r >> 8) % 41 - 20;
  if (k->low == k->high && r % 8 == 0) {
    v = (int64_t)next_random();
  }
  if (k->low == k->high && r % 8 == 1 && dtype_is_signed(t)) {
    v = INT64_MIN >> (64 - dtype_get_info(t)->bits);
  }
  dtype_store_i64(t, at, t == DTYPE_PRED ? v & 1 : v);
}

/* --- running and comparing --- */

static bool close_enough(double x, double y, double tolerance) {
  if (x == y || (isnan(x) && isnan(y))) {
    return true;
  }
  return fabs(x - y) <= tolerance * (fabs(y) + 1.0 / 16);
}

static bool same_element(dtype t, const char *x, const char *y, double tolerance) {
  if (memcmp(x, y, dtype_bytes(t)) == 0) {
    return true;
  }
  if (dtype_is_complex(t)) {
    dtype part = t == DTYPE_C64 ? DTYPE_F32 : DTYPE_F64;
    return same_element(part, x, y, tolerance) &&
           same_element(part, x + dtype_bytes(part), y + dtype_bytes(part), tolerance);
  }
  if (!dtype_is_float(t)) {
    return false;
  }
  double a = dtype_load_f64(t, x), b = dtype_load_f64(t, y);
  return tolerance > 0 ? close_enough(a, b, tolerance) : isnan(a) && isnan(b);
}

static void compare(const kernel_case *k, const char *where, const literal *want, const char *got, uint32_t result) {
  dtype t = (dtype)want->shape.type;
  for (int64_t j = 0; j < shape_elements(&want->shape); j++) {
    const char *x = got + (size_t)j * dtype_bytes(t), *y = (const char *)want->data + (size_t)j * dtype_bytes(t);
    ck_assert_msg(same_element(t, x, y, k->tolerance), "%s: result %u[%lld] is %.9g (%llx), not %.9g (%llx), of\n%s",
                  where, result, (long long)j, dtype_is_complex(t) ? 0 : dtype_load_f64(t, x),
                  dtype_is_int(t) ? (unsigned long long)dtype_load_i64(t, x) : 0ull,
                  dtype_is_complex(t) ? 0 : dtype_load_f64(t, y),
                  dtype_is_int(t) ? (unsigned long long)dtype_load_i64(t, y) : 0ull, k->text);
  }
}

static literal *random_operands(arena *a, const kernel_case *k) {
  literal *args = ARENA_NEW_N(a, literal, k->fusion->n_operands);
  for (uint32_t j = 0; j < k->fusion->n_operands; j++) {
    void *data;
    args[j] = literal_new(a, *hlo_shape(k->fusion->operands[j]), &data);
    for (int64_t e = 0; e < shape_elements(&args[j].shape); e++) {
      dtype t = (dtype)args[j].shape.type;
      random_element(k, t, (unsigned char *)data + (size_t)e * dtype_bytes(t));
    }
  }
  return args;
}

/* A kernel that can be called. */
typedef struct callable {
  emit_execution execution;
  bool unaligned; /* whether operands may be at any address */
  void *f;
  emit_kernel_info info;
} callable;

/* Runs the kernel in guarded memory, and returns its results.  If operands may be at any address, those that share no
 * buffer with a result begin one byte behind an aligned address. */
static literal *results_of(arena *a, const kernel_case *k, const callable *f, const literal *args) {
  const hlo_instr *i = k->fusion;
  uint32_t n = i->n_operands;
  void **buffers = ARENA_NEW_N(a, void *, n + i->n_results + 1); /* the last entry is the budget: NULL */
  literal *results = ARENA_NEW_N(a, literal, i->n_results);
  size_t skip = f->unaligned;
  for (uint32_t j = 0; j < n; j++) {
    size_t bytes = (size_t)shape_bytes(&args[j].shape);
    buffers[j] = (int32_t)j == k->alias ? guarded_memory(bytes) : (char *)guarded_memory(bytes + skip) + skip;
    memcpy(buffers[j], args[j].data, bytes);
  }
  for (uint32_t j = 0; j < i->n_results; j++) {
    bool shares = j == 0 && k->alias >= 0;
    buffers[n + j] = shares ? buffers[k->alias] : guarded_memory((size_t)shape_bytes(&i->shapes[j]));
  }
  kernel_call(f->execution, f->f, &f->info, (const void *const *)buffers, NULL, emit_static_grid(&f->info));
  for (uint32_t j = 0; j < i->n_results; j++) {
    results[j] = literal_make(i->shapes[j], arena_memdup(a, buffers[n + j], (size_t)shape_bytes(&i->shapes[j])));
  }
  for (uint32_t j = 0; j < n; j++) {
    size_t skipped = (int32_t)j == k->alias ? 0 : skip;
    guarded_free((char *)buffers[j] - skipped, (size_t)shape_bytes(&args[j].shape) + skipped);
  }
  for (uint32_t j = k->alias >= 0; j < i->n_results; j++) {
    guarded_free(buffers[n + j], (size_t)shape_bytes(&i->shapes[j]));
  }
  return results;
}

static status run_case(const kernel_case *k, const char *where, const callable *f) {
  arena *a = arena_create(NULL);
  const literal *args = random_operands(a, k), *got = results_of(a, k, f, args);
  literal *want = ARENA_NEW_N(a, literal, k->fusion->n_results);
  TRY(ref_eval_computation(hlo_callee(k->fusion, 0), args, a, want));
  for (uint32_t j = 0; j < k->fusion->n_results; j++) {
    compare(k, where, &want[j], got[j].data, j);
  }
  arena_destroy(a);
  return NULL;
}

static status write_case(arena *a, emit_module *m, const char *name, kernel_case *k) {
  int32_t *alias = ARENA_NEW_N(a, int32_t, k->fusion->n_results);
  memset(alias, 0xff, k->fusion->n_results * sizeof *alias);
  alias[0] = k->alias;
  ck_assert_msg(k->alias < 0 || emit_can_alias(k->fusion, (uint32_t)k->alias, 0), "cannot alias: %s", k->text);
  return status_prefix(emit_kernel(m, name, k->fusion, &(emit_options){.alias = alias}, &k->info), "%s", k->text);
}

/* Writes a module of all kernels. */
static status write_all(arena *a, kernel_cases *c, const emit_target *t, emit_module **m) {
  TRY(emit_module_create(a, t, "test", m));
  for (uint32_t k = 0; k < c->n; k++) {
    TRY(write_case(a, *m, arena_printf(a, "kernel_%u", k), &c->items[k]));
  }
  return NULL;
}

static status compile_all(arena *a, kernel_cases *c, const emit_machine *machine, bool libm, callable **out) {
  emit_target t = emit_machine_target(a, machine);
  t.libm = t.libm && libm;
  emit_module *m = NULL;
  rt_code *code;
  TRY(write_all(a, c, &t, &m));
  TRY(kernel_load(a, m, kernel_resolve, &code));
  *out = ARENA_NEW_N(a, callable, c->n);
  for (uint32_t k = 0; k < c->n; k++) {
    void *f = rt_code_find(code, arena_printf(a, "kernel_%u", k));
    ck_assert_ptr_nonnull(f);
    (*out)[k] = (callable){t.execution, t.unaligned, f, c->items[k].info};
  }
  return NULL;
}

static status compile_and_run(kernel_cases *c, const emit_machine *machine) {
  arena *a = arena_create(NULL);
  const char *where = emit_machine_name(a, machine);
  callable *kernels;
  TRY(compile_all(a, c, machine, true, &kernels));
  for (uint32_t k = 0; k < c->n; k++) {
    for (int round = 0; round < 2; round++) {
      TRY(status_prefix(run_case(&c->items[k], where, &kernels[k]), "%s", c->items[k].text));
    }
  }
  arena_destroy(a);
  return NULL;
}

/* Fails unless kernels give the same bits on blocks and on ranges of the grid.  For that they must use the
 * same instructions, so they are compiled without vectors, and those on ranges for a processor without
 * AVX-512. */
static status compare_bits(kernel_cases *c) {
  static const emit_machine machines[] = {{"native", 1, EMIT_BLOCKS, false}, {"x86-64-v3", 1, EMIT_RANGES, false}};
  arena *a = arena_create(NULL);
  callable *blocks, *ranges;
  TRY(compile_all(a, c, &machines[0], false, &blocks));
  TRY(compile_all(a, c, &machines[1], false, &ranges)); /* without libm, which blocks cannot call */
  for (uint32_t k = 0; k < c->n; k++) {
    const kernel_case *one = &c->items[k];
    const literal *args = random_operands(a, one), *x = results_of(a, one, &blocks[k], args),
                  *y = results_of(a, one, &ranges[k], args);
    bool same_order = blocks[k].info.step_threads <= 1; /* teams of threads add in another order */
    for (uint32_t j = 0; same_order && j < one->fusion->n_results; j++) {
      ck_assert_msg(memcmp(x[j].data, y[j].data, (size_t)shape_bytes(&x[j].shape)) == 0,
                    "blocks and ranges give other bits of\n%s", one->text);
    }
  }
  arena_destroy(a);
  return NULL;
}

static status compile_for_gpu(kernel_cases *c, const char *gpu) {
  arena *a = arena_create(NULL);
  emit_target t;
  emit_module *m = NULL;
  TRY(emit_target_nvptx(a, gpu, &t));
  TRY(write_all(a, c, &t, &m));
  TRY(ptx_check(a, m, gpu));
  arena_destroy(a);
  return NULL;
}

static void parse_all(kernel_cases *c) {
  for (uint32_t k = 0; k < c->n; k++) {
    c->items[k].fusion = kernel_parse(&c->items[k]);
  }
}

static status run_all(void *data) {
  kernel_cases *c = data;
  parse_all(c);
  for (size_t j = 0; j < EMIT_MACHINES_AND_BLOCKS; j++) {
    TRY(status_prefix(compile_and_run(c, &emit_machines[j]), "%s", emit_machine_name(kernel_arena, &emit_machines[j])));
  }
  TRY(compare_bits(c));
  return compile_for_gpu(c, ptx_gpus[next_random() % PTX_GPUS]);
}

void kernel_check_all(kernel_cases *c) {
  status s = guard_run(run_all, c);
  ck_assert_msg(!s, "%s", status_message(s));
}

typedef struct gpu_job {
  kernel_cases *cases;
  const char *gpu;
} gpu_job;

static status run_gpu_job(void *data) {
  const gpu_job *j = data;
  parse_all(j->cases);
  return compile_for_gpu(j->cases, j->gpu);
}

void kernel_check_ptx(kernel_cases *c, const char *gpu) { ASSERT_OK(guard_run(run_gpu_job, &(gpu_job){c, gpu})); }

/* --- common kernels --- */

const char *const kernel_floats[] = {"f32",    "f64",        "f16",      "bf16",     "f8e4m3fn", "f8e4m3fnuz",
                                     "f8e5m2", "f8e5m2fnuz", "f4e2m1fn", "f6e2m3fn", "f6e3m2fn"};
const char *const kernel_ints[] = {"s2", "s4", "s8", "s16", "s32", "s64", "u2", "u4", "u8", "u16", "u32", "u64"};

double kernel_tolerance(const char *t) {
  return strcmp(t, "f64") == 0    ? 1e-12
         : strcmp(t, "f32") == 0  ? 2e-6
         : strcmp(t, "f16") == 0  ? 2e-3
         : strcmp(t, "bf16") == 0 ? 2e-2
                                  : 0.51;
}

void kernel_unary(kernel_cases *c, double tolerance, const char *op, const char *t, const char *to, const char *attrs) {
  kernel_add(c, tolerance,
             TEXT("%s[37](%%x: %s[37]) {\n%%y = %s(%%x)%s : %s[37]\nreturn %%y\n}", to, t, op, attrs, to));
}
void kernel_binary(kernel_cases *c, double tolerance, const char *op, const char *t, const char *to,
                   const char *attrs) {
  kernel_add(c, tolerance,
             TEXT("%s[37](%%x: %s[37], %%y: %s[37]) {\n%%z = %s(%%x, %%y)%s : %s[37]\nreturn %%z\n}", to, t, t, op,
                  attrs, to));
}

void kernel_reduce(kernel_cases *c, const char *t, const char *reducer, double tolerance) {
  static const struct {
    const char *dims, *over, *result;
  } rows[] = {{"4,77", "1", "4"},         {"77,20", "0", "20"}, {"3,5,21", "0, 2", "5"}, {"500", "0", ""},
              {"2,6,3,3", "2, 3", "2,6"}, {"0,5", "0", "5"},    {"4,2,33", "1", "4,33"}, {"6,1", "1", "6"}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    kernel_add(c, tolerance,
               TEXT("%s[%s](%%x: %s[%s]) {\n%%y = reduce(%%x) {dimensions=[%s], reducer=%s} : %s[%s]\nreturn %%y\n}", t,
                    rows[k].result, t, rows[k].dims, rows[k].over, reducer, t, rows[k].result));
  }
}

void kernel_add_all(kernel_cases *c) {
  static const char *const one[] = {"exponential",
                                    "exponential-minus-one",
                                    "log",
                                    "log-plus-one",
                                    "sine",
                                    "cosine",
                                    "tan",
                                    "asin",
                                    "acos",
                                    "atan",
                                    "sinh",
                                    "cosh",
                                    "tanh",
                                    "asinh",
                                    "acosh",
                                    "atanh",
                                    "erf",
                                    "logistic",
                                    "round-nearest-even",
                                    "floor",
                                    "ceil",
                                    "sqrt",
                                    "sign"};
  static const char *const two[] = {"add", "divide", "maximum", "power", "atan2", "remainder"};
  for (size_t k = 0; k < N_MOVEMENT; k++) {
    kernel_add(c, 0, movement_texts[k]);
  }
  for (size_t k = 0; k < N_FUSED; k++) {
    kernel_add(c, 0, fused_reductions[k]);
  }
  for (int j = 0; j < KERNEL_FLOATS; j++) {
    for (size_t k = 0; k < sizeof one / sizeof *one; k++) {
      kernel_unary(c, 0, one[k], kernel_floats[j], kernel_floats[j], "");
    }
    for (size_t k = 0; k < sizeof two / sizeof *two; k++) {
      kernel_binary(c, 0, two[k], kernel_floats[j], kernel_floats[j], "");
    }
    for (int k = 0; k < KERNEL_INTS; k++) {
      kernel_unary(c, 0, "convert", kernel_floats[j], kernel_ints[k], " {saturate=true, rounding=nearest}");
      kernel_unary(c, 0, "convert", kernel_ints[k], kernel_floats[j], " {saturate=true, rounding=nearest}");
    }
    kernel_reduce(c, kernel_floats[j], "add", 0);
  }
  for (int j = 0; j < KERNEL_INTS; j++) {
    kernel_binary(c, 0, "divide", kernel_ints[j], kernel_ints[j], "");
    kernel_binary(c, 0, "power", kernel_ints[j], kernel_ints[j], "");
  }
}
