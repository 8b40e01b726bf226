/* kernel_case.c - runs kernels given as HLO text; see kernel_case.h. */
#include "tests/unit/emit/kernel_case.h"

#include <math.h>
#include <string.h>

#include "backend_ref/eval.h"
#include "hlo/text/text.h"
#include "runtime/host/code_loader.h"

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
  /* Names of the parameters, and shapes of the results: of the callee. */
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
  for (const char *p = entry_args; *p; p++) { /* the entry's parameters carry names */
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

static status run_case(const kernel_case *k, const char *where, emit_execution execution, void *f) {
  arena *a = arena_create(NULL);
  const hlo_instr *i = k->fusion;
  const void **buffers = ARENA_NEW_N(a, const void *, i->n_operands + i->n_results + 1); /* the last: no budget */
  literal *args = ARENA_NEW_N(a, literal, i->n_operands), *want = ARENA_NEW_N(a, literal, i->n_results);
  for (uint32_t j = 0; j < i->n_operands; j++) {
    const shape *s = hlo_shape(i->operands[j]);
    unsigned char *data = guarded_memory((size_t)shape_bytes(s));
    for (int64_t e = 0; e < shape_elements(s); e++) {
      random_element(k, (dtype)s->type, data + (size_t)e * dtype_bytes((dtype)s->type));
    }
    buffers[j] = data;
    args[j] = literal_make(*s, arena_memdup(a, data, (size_t)shape_bytes(s)));
  }
  TRY(ref_eval_computation(hlo_callee(i, 0), args, a, want));
  for (uint32_t j = 0; j < i->n_results; j++) {
    bool shares = j == 0 && k->alias >= 0;
    buffers[i->n_operands + j] = shares ? buffers[k->alias] : guarded_memory((size_t)shape_bytes(&i->shapes[j]));
  }
  kernel_call(execution, f, &k->info, buffers, NULL, emit_static_grid(&k->info));
  for (uint32_t j = 0; j < i->n_results; j++) {
    compare(k, where, &want[j], buffers[i->n_operands + j], j);
  }
  for (uint32_t j = 0; j < i->n_operands + i->n_results; j++) {
    if (j != i->n_operands || k->alias < 0) {
      const shape *s = j < i->n_operands ? hlo_shape(i->operands[j]) : &i->shapes[j - i->n_operands];
      guarded_free((void *)buffers[j], (size_t)shape_bytes(s));
    }
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

static status compile_and_run(kernel_cases *c, const emit_machine *machine) {
  arena *a = arena_create(NULL);
  emit_target t = emit_machine_target(a, machine);
  emit_module *m = NULL;
  const void *object;
  size_t size;
  rt_code *code;
  bool *written = ARENA_NEW_N(a, bool, c->n);
  TRY(emit_module_create(a, &t, "test", &m));
  for (uint32_t k = 0; k < c->n; k++) {
    status s = write_case(a, m, arena_printf(a, "kernel_%u", k), &c->items[k]);
    written[k] = !s;
    if (!t.libm && s && strstr(status_message(s), "needs a library")) {
      status_free(s);
      continue;
    }
    TRY(s);
  }
  TRY(emit_module_object(m, &object, &size));
  TRY(rt_code_load(a, (rt_span){object, size}, kernel_resolve, &code));
  const char *where = emit_machine_name(a, machine);
  for (uint32_t k = 0; k < c->n; k++) {
    void *f = written[k] ? rt_code_find(code, arena_printf(a, "kernel_%u", k)) : NULL;
    ck_assert(f || !written[k]);
    for (int round = 0; f && round < 2; round++) {
      TRY(status_prefix(run_case(&c->items[k], where, t.execution, f), "%s", c->items[k].text));
    }
  }
  arena_destroy(a);
  return NULL;
}

static status run_all(void *data) {
  kernel_cases *c = data;
  for (uint32_t k = 0; k < c->n; k++) {
    c->items[k].fusion = kernel_parse(&c->items[k]);
  }
  for (size_t j = 0; j < EMIT_MACHINES_AND_BLOCKS; j++) {
    TRY(status_prefix(compile_and_run(c, &emit_machines[j]), "%s", emit_machine_name(kernel_arena, &emit_machines[j])));
  }
  return NULL;
}

void kernel_check_all(kernel_cases *c) {
  status s = guard_run(run_all, c);
  ck_assert_msg(!s, "%s", status_message(s));
}

/* --- common ones --- */

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
