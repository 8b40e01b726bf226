/* check_emit.c - kernels against the reference evaluator: every emitter and element type, for several vector
 * widths and processors.  Inputs end right before memory that must not be touched. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backend_ref/eval.h"
#include "emit/compile.h"
#include "hlo/text.h"
#include "runtime/code_loader.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

/* --- kernels to try --- */

typedef struct kernel_case {
  const char *text;  /* (%x: f32[4]) { ... return %y } */
  double tolerance;  /* relative, and absolute times 1/16; 0: the same bits (or any NaN) */
  int64_t low, high; /* of random integers; equal: any */
  int32_t alias;     /* result 0 lies in this operand's buffer; -1 */
  hlo_instr *fusion;
  emit_kernel_info info;
} kernel_case;

typedef struct cases {
  kernel_case *items;
  uint32_t n, cap;
} cases;

static kernel_case *add(cases *c, double tolerance, const char *text) {
  kernel_case *k = ARENA_PUSH(memory, c->items, c->n, c->cap);
  *k = (kernel_case){.text = text, .tolerance = tolerance, .alias = -1};
  return k;
}
#define TEXT(...) arena_printf(memory, __VA_ARGS__)

static hlo_instr *parse_case(const kernel_case *k) {
  const char *open = strchr(k->text, '('),
             *args = arena_strndup(memory, open, (size_t)(strchr(k->text, '{') - open));
  /* Names of the parameters, and shapes of the results: of the callee. */
  const char *names = "";
  for (const char *p = args; (p = strchr(p, '%')); p++) {
    names = TEXT("%s%s%.*s", names, *names ? ", " : "", (int)strcspn(p, ":"), p);
  }
  const char *shapes = k->text[0] == '(' ? NULL : arena_strndup(memory, k->text, (size_t)(open - k->text));
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
    bool ends =
        (*p == ',' && strchr("[0123456789", p[1]) == NULL) || (*p == ')' && !p[strspn(p + 1, " \n") + 1]);
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
  status s = hlo_parse(memory, text, strlen(text), NULL, &m);
  ck_assert_msg(!s, "%s\nin\n%s", status_message(s), text);
  return m->entry->roots[0].def;
}

/* --- data --- */

static uint64_t seed = 88172645463325252u;
static uint64_t next_random(void) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed;
}

static void random_element(const kernel_case *k, dtype t, unsigned char *at) {
  static const double special[] = {0, -0.0, INFINITY, -INFINITY, NAN,  1e-40, -1e-42,
                                   1, -1,   0.5,      65504,     3e38, 1e-7};
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
  int64_t v =
      k->low < k->high ? k->low + (int64_t)(r >> 8) % (k->high - k->low + 1) : (int64_t)(r >> 8) % 41 - 20;
  if (k->low == k->high && r % 8 == 0) {
    v = (int64_t)next_random();
  }
  if (k->low == k->high && r % 8 == 1 && dtype_is_signed(t)) {
    v = INT64_MIN >> (64 - dtype_get_info(t)->bits);
  }
  dtype_store_i64(t, at, t == DTYPE_PRED ? v & 1 : v);
}

/* size bytes that end (up to 63 bytes) before a page that cannot be read. */
static void *guarded_memory(size_t size) {
  size_t page = 4096, room = (size + 63) / 64 * 64, pages = (room + page - 1) / page * page;
  char *base = mmap(NULL, pages + 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ck_assert(base != MAP_FAILED);
  mprotect(base, page, PROT_NONE);
  mprotect(base + page + pages, page, PROT_NONE);
  char *at = base + page + pages - room;
  memset(base + page, 0xa5, pages);
  return at;
}
static void free_guarded(void *at, size_t size) {
  size_t page = 4096, room = (size + 63) / 64 * 64, pages = (room + page - 1) / page * page;
  munmap((char *)at + room - pages - page, pages + 2 * page);
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

static void compare(const kernel_case *k, const char *where, const literal *want, const char *got,
                    uint32_t result) {
  dtype t = (dtype)want->shape.type;
  for (int64_t j = 0; j < shape_elements(&want->shape); j++) {
    const char *x = got + (size_t)j * dtype_bytes(t),
               *y = (const char *)want->data + (size_t)j * dtype_bytes(t);
    ck_assert_msg(same_element(t, x, y, k->tolerance),
                  "%s: result %u[%lld] is %.9g (%llx), not %.9g (%llx), of\n%s", where, result, (long long)j,
                  dtype_is_complex(t) ? 0 : dtype_load_f64(t, x),
                  dtype_is_int(t) ? (unsigned long long)dtype_load_i64(t, x) : 0ull,
                  dtype_is_complex(t) ? 0 : dtype_load_f64(t, y),
                  dtype_is_int(t) ? (unsigned long long)dtype_load_i64(t, y) : 0ull, k->text);
  }
}

/* The whole grid in parts of random size. */
static void call_in_parts(emit_kernel_fn *f, const emit_kernel_info *info, const void *const *buffers) {
  for (int64_t from = 0; from < info->grid;) {
    int64_t to = from + 1 + (int64_t)(next_random() % (uint64_t)(info->grid < 4 ? 2 : info->grid / 2));
    to = to > info->grid ? info->grid : to;
    f(buffers, NULL, from, to);
    from = to;
  }
}

static status run_case(const kernel_case *k, const char *where, emit_kernel_fn *f) {
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
    buffers[i->n_operands + j] =
        shares ? buffers[k->alias] : guarded_memory((size_t)shape_bytes(&i->shapes[j]));
  }
  call_in_parts(f, &k->info, buffers);
  for (uint32_t j = 0; j < i->n_results; j++) {
    compare(k, where, &want[j], buffers[i->n_operands + j], j);
  }
  for (uint32_t j = 0; j < i->n_operands + i->n_results; j++) {
    if (j != i->n_operands || k->alias < 0) {
      const shape *s = j < i->n_operands ? hlo_shape(i->operands[j]) : &i->shapes[j - i->n_operands];
      free_guarded((void *)buffers[j], (size_t)shape_bytes(s));
    }
  }
  arena_destroy(a);
  return NULL;
}

#define RESOLVE(f) \
  { #f, (void *)(intptr_t)(double (*)(double))f }
static int expired(const void *budget) { return budget != NULL; }

static void *resolve(const char *name) {
  static const struct {
    const char *name;
    void *f;
  } table[] = {RESOLVE(exp),
               RESOLVE(expm1),
               RESOLVE(log),
               RESOLVE(log1p),
               RESOLVE(sin),
               RESOLVE(cos),
               RESOLVE(tan),
               RESOLVE(asin),
               RESOLVE(acos),
               RESOLVE(atan),
               RESOLVE(sinh),
               RESOLVE(cosh),
               RESOLVE(tanh),
               RESOLVE(asinh),
               RESOLVE(acosh),
               RESOLVE(atanh),
               RESOLVE(erf),
               {"pow", (void *)(intptr_t)(double (*)(double, double))pow},
               {"atan2", (void *)(intptr_t)(double (*)(double, double))atan2},
               {"fmod", (void *)(intptr_t)(double (*)(double, double))fmod},
               {"fmodf", (void *)(intptr_t)fmodf},
               {"memset", (void *)(intptr_t)memset},
               {"memcpy", (void *)(intptr_t)memcpy},
               {"memmove", (void *)(intptr_t)memmove},
               {"onnx_xla_expired", (void *)(intptr_t)expired}};
  for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
    if (strcmp(table[k].name, name) == 0) {
      return table[k].f;
    }
  }
  return NULL;
}

static status compile_and_run(cases *c, const char *cpu, int lanes) {
  arena *a = arena_create(NULL);
  emit_target t;
  emit_module *m = NULL;
  const void *object;
  size_t size;
  rt_code *code;
  TRY(emit_target_init(a, NULL, cpu, lanes, &t));
  TRY(emit_module_create(a, &t, "test", &m));
  for (uint32_t k = 0; k < c->n; k++) {
    kernel_case *one = &c->items[k];
    emit_options options = {&one->alias};
    int32_t *alias = ARENA_NEW_N(a, int32_t, one->fusion->n_results);
    memset(alias, 0xff, one->fusion->n_results * sizeof *alias);
    alias[0] = one->alias;
    options.alias = alias;
    ck_assert_msg(one->alias < 0 || emit_can_alias(one->fusion, (uint32_t)one->alias, 0), "cannot alias: %s",
                  one->text);
    TRY(status_prefix(emit_kernel(m, arena_printf(a, "kernel_%u", k), one->fusion, &options, &one->info),
                      "%s", one->text));
  }
  TRY(emit_module_object(m, &object, &size));
  TRY(rt_code_load(a, (rt_span){object, size}, resolve, &code));
  const char *where = arena_printf(a, "%s, %d lanes", cpu, lanes);
  for (uint32_t k = 0; k < c->n; k++) {
    emit_kernel_fn *f = (emit_kernel_fn *)(intptr_t)rt_code_find(code, arena_printf(a, "kernel_%u", k));
    ck_assert(f);
    for (int round = 0; round < 2; round++) {
      TRY(status_prefix(run_case(&c->items[k], where, f), "%s", c->items[k].text));
    }
  }
  arena_destroy(a);
  return NULL;
}

static const struct {
  const char *cpu;
  int lanes;
} machines[] = {{"native", 0}, {"native", 1}, {"native", 4}, {"native", 8}, {"native", 16}, {"x86-64", 0}};

static status run_all(void *data) {
  cases *c = data;
  for (uint32_t k = 0; k < c->n; k++) {
    c->items[k].fusion = parse_case(&c->items[k]);
  }
  for (size_t j = 0; j < sizeof machines / sizeof *machines; j++) {
    TRY(status_prefix(compile_and_run(c, machines[j].cpu, machines[j].lanes), "%s, %d lanes", machines[j].cpu,
                      machines[j].lanes));
  }
  return NULL;
}

static void check_all(cases *c) {
  status s = guard_run(run_all, c);
  ck_assert_msg(!s, "%s", status_message(s));
}

/* --- elementwise --- */

static const char *const floats[] = {"f32",        "f64",    "f16",        "bf16",    "f8e4m3fn",
                                     "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1fn", "f6e2m3fn", "f6e3m2fn"};
static const char *const ints[] = {"s2", "s4", "s8", "s16", "s32", "s64",
                                   "u2", "u4", "u8", "u16", "u32", "u64"};
enum { N_FLOATS = sizeof floats / sizeof *floats, N_INTS = sizeof ints / sizeof *ints };

static double loose(const char *t) {
  return strcmp(t, "f64") == 0    ? 1e-12
         : strcmp(t, "f32") == 0  ? 2e-6
         : strcmp(t, "f16") == 0  ? 2e-3
         : strcmp(t, "bf16") == 0 ? 2e-2
                                  : 0.51;
}

static void unary_case(cases *c, double tolerance, const char *op, const char *t, const char *to,
                       const char *attrs) {
  add(c, tolerance,
      TEXT("%s[37](%%x: %s[37]) {\n%%y = %s(%%x)%s : %s[37]\nreturn %%y\n}", to, t, op, attrs, to));
}
static void binary_case(cases *c, double tolerance, const char *op, const char *t, const char *to,
                        const char *attrs) {
  add(c, tolerance,
      TEXT("%s[37](%%x: %s[37], %%y: %s[37]) {\n%%z = %s(%%x, %%y)%s : %s[37]\nreturn %%z\n}", to, t, t, op,
           attrs, to));
}

START_TEST(elementwise_floats) {
  static const char *const exact1[] = {"abs",  "negate", "sign", "ceil", "floor", "round-nearest-even",
                                       "sqrt", "rsqrt"};
  static const char *const math1[] = {"exponential", "exponential-minus-one",
                                      "log",         "log-plus-one",
                                      "sine",        "cosine",
                                      "tan",         "asin",
                                      "acos",        "atan",
                                      "sinh",        "cosh",
                                      "tanh",        "asinh",
                                      "acosh",       "atanh",
                                      "erf",         "logistic"};
  static const char *const exact2[] = {"add",     "subtract", "multiply", "divide",
                                       "maximum", "minimum",  "remainder"};
  static const char *const math2[] = {"power", "atan2"};
  const char *t = floats[_i];
  cases c = {0};
  for (size_t k = 0; k < sizeof exact1 / sizeof *exact1; k++) {
    unary_case(&c, 0, exact1[k], t, t, "");
  }
  unary_case(&c, 0, "is-finite", t, "pred", "");
  for (size_t k = 0; k < sizeof math1 / sizeof *math1; k++) {
    unary_case(&c, loose(t), math1[k], t, t, "");
  }
  for (size_t k = 0; k < sizeof exact2 / sizeof *exact2; k++) {
    binary_case(&c, 0, exact2[k], t, t, "");
  }
  for (size_t k = 0; k < sizeof math2 / sizeof *math2; k++) {
    binary_case(&c, loose(t), math2[k], t, t, "");
  }
  static const char *const comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  for (size_t k = 0; k < 6; k++) {
    binary_case(&c, 0, "compare", t, "pred", TEXT(" {comparison=%s}", comparisons[k]));
  }
  add(&c, 0,
      TEXT("%s[37](%%p: pred[37], %%x: %s[37], %%y: %s[37]) {\n%%z = select(%%p, %%x, %%y) : %s[37]\nreturn "
           "%%z\n}",
           t, t, t, t));
  add(&c, 0,
      TEXT(
          "%s[37](%%l: %s[], %%x: %s[37], %%h: %s[37]) {\n%%z = clamp(%%l, %%x, %%h) : %s[37]\nreturn %%z\n}",
          t, t, t, t, t));
  check_all(&c);
}
END_TEST

START_TEST(elementwise_ints) {
  static const char *const one[] = {"abs", "negate", "not", "sign"};
  static const char *const two[] = {"add",   "subtract",   "multiply",   "divide", "remainder",
                                    "power", "maximum",    "minimum",    "and",    "or",
                                    "xor",   "shift-left", "shift-right"};
  static const char *const comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};
  const char *t = ints[_i];
  cases c = {0};
  for (size_t k = 0; k < sizeof one / sizeof *one; k++) {
    unary_case(&c, 0, one[k], t, t, "");
  }
  for (size_t k = 0; k < sizeof two / sizeof *two; k++) {
    binary_case(&c, 0, two[k], t, t, "");
  }
  for (size_t k = 0; k < 6; k++) {
    binary_case(&c, 0, "compare", t, "pred", TEXT(" {comparison=%s}", comparisons[k]));
  }
  check_all(&c);
}
END_TEST

START_TEST(elementwise_others) {
  cases c = {0};
  static const char *const two[] = {"and", "or", "xor"};
  for (int k = 0; k < 3; k++) {
    binary_case(&c, 0, two[k], "pred", "pred", "");
  }
  unary_case(&c, 0, "not", "pred", "pred", "");
  binary_case(&c, 0, "compare", "pred", "pred", " {comparison=lt}");
  for (int k = 0; k < 2; k++) {
    const char *t = k ? "c128" : "c64", *part = k ? "f64" : "f32";
    double tolerance = k ? 1e-12 : 1e-5;
    static const char *const ops[] = {"add", "subtract", "multiply", "divide"};
    for (int j = 0; j < 4; j++) {
      binary_case(&c, tolerance, ops[j], t, t, "");
    }
    unary_case(&c, tolerance, "abs", t, part, "");
    unary_case(&c, 0, "negate", t, t, "");
    unary_case(&c, 0, "real", t, part, "");
    unary_case(&c, 0, "imag", t, part, "");
    binary_case(&c, 0, "complex", part, t, "");
    binary_case(&c, 0, "compare", t, "pred", " {comparison=ne}");
    unary_case(&c, 0, "convert", t, "f32", " {saturate=false, rounding=nearest}");
    unary_case(&c, 0, "convert", "s32", t, " {saturate=false, rounding=nearest}");
  }
  unary_case(&c, 0, "bitcast-convert", "f32", "u32", "");
  unary_case(&c, 0, "bitcast-convert", "s64", "f64", "");
  unary_case(&c, 0, "bitcast-convert", "bf16", "s16", "");
  unary_case(&c, 0, "bitcast-convert", "u8", "s8", "");
  unary_case(&c, 0, "bitcast-convert", "u4", "s4", "");
  unary_case(&c, 0, "bitcast-convert", "s4", "u4", "");
  unary_case(&c, 0, "bitcast-convert", "s4", "f4e2m1fn", "");
  unary_case(&c, 0, "bitcast-convert", "f4e2m1fn", "s4", "");
  check_all(&c);
}
END_TEST

START_TEST(conversions) {
  static const char *const more[] = {"pred", "f8e8m0fnu"};
  cases c = {0};
  const char *from = _i < N_FLOATS            ? floats[_i]
                     : _i < N_FLOATS + N_INTS ? ints[_i - N_FLOATS]
                                              : more[_i - N_FLOATS - N_INTS];
  for (int k = 0; k < N_FLOATS + N_INTS + 2; k++) {
    const char *to = k < N_FLOATS            ? floats[k]
                     : k < N_FLOATS + N_INTS ? ints[k - N_FLOATS]
                                             : more[k - N_FLOATS - N_INTS];
    unary_case(&c, 0, "convert", from, to,
               k % 2 ? " {saturate=true, rounding=nearest}" : " {saturate=false, rounding=nearest}");
    if (k == N_FLOATS + N_INTS + 1) {
      unary_case(&c, 0, "convert", from, to, " {saturate=false, rounding=up}");
      unary_case(&c, 0, "convert", from, to, " {saturate=true, rounding=down}");
    }
  }
  check_all(&c);
}
END_TEST

/* --- movement --- */

static const char *const movement_texts[] = {
    "f32[3,5,7](%x: f32[5,7]) {\n%y = broadcast(%x) {dimensions=[1, 2]} : f32[3,5,7]\nreturn %y\n}",
    "f32[6,40](%x: f32[6]) {\n%y = broadcast(%x) {dimensions=[0]} : f32[6,40]\nreturn %y\n}",
    "f32[2,3,8,8](%x: f32[2,3,8,8], %b: f32[3]) {\n%c = broadcast(%b) {dimensions=[1]} : f32[2,3,8,8]\n%y = "
    "add(%x, %c) : "
    "f32[2,3,8,8]\n%z = maximum(%y, %c) : f32[2,3,8,8]\nreturn %z\n}",
    "f32[2,33](%x: f32[2,1]) {\n%y = broadcast(%x) {dimensions=[0, 1]} : f32[2,33]\nreturn %y\n}",
    "f32[9,4](%x: f32[]) {\n%y = broadcast(%x) {dimensions=[]} : f32[9,4]\n%z = negate(%y) : "
    "f32[9,4]\nreturn %z\n}",
    "f32[13,17](%x: f32[17,13]) {\n%y = transpose(%x) {permutation=[1, 0]} : f32[13,17]\nreturn %y\n}",
    "f32[2,20,5,3](%x: f32[2,3,20,5]) {\n%y = transpose(%x) {permutation=[0, 2, 3, 1]} : "
    "f32[2,20,5,3]\nreturn %y\n}",
    "f32[2,32,20](%x: f32[2,20,32]) {\n%y = transpose(%x) {permutation=[0, 2, 1]} : f32[2,32,20]\nreturn "
    "%y\n}",
    "f32[4,30](%x: f32[4,6,5]) {\n%y = reshape(%x) : f32[4,30]\nreturn %y\n}",
    "f32[24,7](%x: f32[8,21]) {\n%y = reverse(%x) {dimensions=[1]} : f32[8,21]\n%z = reshape(%y) : "
    "f32[24,7]\nreturn %z\n}",
    "f32[10,12](%x: f32[3,5,8]) {\n%y = transpose(%x) {permutation=[2, 0, 1]} : f32[8,3,5]\n%z = reshape(%y) "
    ": f32[10,12]\nreturn "
    "%z\n}",
    "f32[64,49](%x: f32[64,7,7], %b: f32[7]) {\n%c = broadcast(%b) {dimensions=[2]} : f32[64,7,7]\n%y = "
    "add(%x, %c) : "
    "f32[64,7,7]\n%z = reshape(%y) : f32[64,49]\nreturn %z\n}",
    "f32[5,40](%x: f32[5,40]) {\n%y = reverse(%x) {dimensions=[0, 1]} : f32[5,40]\nreturn %y\n}",
    "f32[3,17](%x: f32[5,40]) {\n%y = slice(%x) {starts=[1, 5], limits=[4, 39], strides=[1, 2]} : "
    "f32[3,17]\nreturn %y\n}",
    "f32[3,7](%x: f32[3,40]) {\n%y = slice(%x) {starts=[0, 1], limits=[3, 38], strides=[1, 4]} : "
    "f32[3,10]\n%z = slice(%y) "
    "{starts=[0, 3], limits=[3, 10], strides=[1, 1]} : f32[3,7]\nreturn %z\n}",
    "f32[2,20](%x: f32[4,200]) {\n%y = slice(%x) {starts=[1, 7], limits=[4, 200], strides=[2, 10]} : "
    "f32[2,20]\nreturn %y\n}",
    "f32[6,45](%x: f32[5,40], %v: f32[]) {\n%y = pad(%x, %v) {low=[2, 3], high=[-1, 2], interior=[0, 0]} : "
    "f32[6,45]\nreturn %y\n}",
    "f32[5,35](%x: f32[5,40], %v: f32[]) {\n%y = pad(%x, %v) {low=[0, -3], high=[0, -2], interior=[0, 0]} : "
    "f32[5,35]\nreturn %y\n}",
    "f32[10,41](%x: f32[5,20], %v: f32[]) {\n%y = pad(%x, %v) {low=[1, -1], high=[0, 3], interior=[1, 1]} : "
    "f32[10,41]\nreturn %y\n}",
    "f32[5](%x: f32[0], %v: f32[]) {\n%y = pad(%x, %v) {low=[2], high=[3], interior=[0]} : f32[5]\nreturn "
    "%y\n}",
    "f32[2,10,6](%x: f32[2,3,6], %y: f32[2,0,6], %z: f32[2,7,6]) {\n%c = concatenate(%x, %y, %z) "
    "{dimension=1} : f32[2,10,6]\nreturn "
    "%c\n}",
    "f32[3,60](%x: f32[3,33], %y: f32[3,4], %z: f32[3,23]) {\n%c = concatenate(%x, %y, %z) {dimension=1} : "
    "f32[3,60]\n%d = "
    "negate(%c) : f32[3,60]\nreturn %d\n}",
    "f32[40](%x: f32[17], %y: f32[23]) {\n%c = concatenate(%x, %y) {dimension=0} : f32[40]\n%d = reverse(%c) "
    "{dimensions=[0]} : "
    "f32[40]\n%e = add(%c, %d) : f32[40]\nreturn %e\n}",
    "f32[4,70](%x: f32[4,30], %v: f32[]) {\n%p = pad(%x, %v) {low=[0, 3], high=[0, 2], interior=[0, 0]} : "
    "f32[4,35]\n%q = reverse(%p) "
    "{dimensions=[1]} : f32[4,35]\n%c = concatenate(%p, %q) {dimension=1} : f32[4,70]\nreturn %c\n}",
    "s64[5,40]() {\n%y = iota() {dimension=1} : s64[5,40]\nreturn %y\n}",
    "f32[5,40]() {\n%y = iota() {dimension=0} : f32[5,40]\nreturn %y\n}",
    "u4[40]() {\n%y = iota() {dimension=0} : u4[40]\nreturn %y\n}",
    "bf16[3,20](%x: bf16[20,3]) {\n%i = iota() {dimension=1} : bf16[3,20]\n%t = transpose(%x) "
    "{permutation=[1, 0]} : bf16[3,20]\n%y = "
    "multiply(%i, %t) : bf16[3,20]\nreturn %y\n}",
    "u32[33](%s: u64[3]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u32[33]\nreturn %y\n}",
    "u64[3,31](%s: u64[3]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u64[3,31]\nreturn %y\n}",
    "u32[8,32](%s: u64[3]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u32[8,32]\n%z = not(%y) : "
    "u32[8,32]\nreturn %z\n}",
    "u64[64](%s: u64[3]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u64[64]\nreturn %y\n}",
    "u32[5,40](%s: u64[3]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u32[40,5]\n%t = transpose(%y) "
    "{permutation=[1, 0]} : u32[5,40]\nreturn %t\n}",
    "u64[37](%s: u64[3]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u64[80]\n%t = slice(%y) {starts=[3], "
    "limits=[77], strides=[2]} : u64[37]\nreturn %t\n}",
    "u32[48](%s: u64[3]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u32[48]\n%t = reverse(%y) {dimensions=[0]} "
    ": u32[48]\nreturn %t\n}",
    "u32[](%s: u64[3]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u32[]\nreturn %y\n}",
    "c64[7,5](%x: c64[5,7]) {\n%y = transpose(%x) {permutation=[1, 0]} : c64[7,5]\nreturn %y\n}",
    "str[40](%x: str[17], %y: str[23]) {\n%c = concatenate(%x, %y) {dimension=0} : str[40]\nreturn %c\n}",
    "pred[3,37](%x: pred[37], %y: f32[3]) {\n%a = broadcast(%x) {dimensions=[1]} : pred[3,37]\nreturn %a\n}",
    "f32[40](%x: f32[40]) {\n%c = constant() {value=f32[4] {1, 2, 3, 4}} : f32[4]\n%b = broadcast(%c) "
    "{dimensions=[1]} : f32[10,4]\n%r = "
    "reshape(%b) : f32[40]\n%y = multiply(%x, %r) : f32[40]\nreturn %y\n}",
    "f32[2,3,4,5];f32[120](%x: f32[2,3,4,5]) {\n%y = negate(%x) : f32[2,3,4,5]\n%z = reshape(%x) : "
    "f32[120]\n%w = sqrt(%z) : "
    "f32[120]\nreturn %y, %w\n}",
    "f32[1](%x: f32[1]) {\n%y = negate(%x) : f32[1]\nreturn %y\n}",
    "f32[](%x: f32[]) {\n%y = negate(%x) : f32[]\nreturn %y\n}",
    "f32[0,3](%x: f32[0,3]) {\n%y = negate(%x) : f32[0,3]\nreturn %y\n}",
    "f32[3000](%x: f32[3000], %y: f32[3000]) {\n%z = add(%x, %y) : f32[3000]\nreturn %z\n}",
    "f32[100003](%x: f32[100003], %y: f32[100003]) {\n%z = multiply(%x, %y) : f32[100003]\nreturn %z\n}",
};

START_TEST(movement) {
  cases c = {0};
  for (size_t k = 0; k < sizeof movement_texts / sizeof *movement_texts; k++) {
    add(&c, 0, movement_texts[k]);
  }
  check_all(&c);
}
END_TEST

static const char *const indexed_texts[] = {
    "f32[3,20](%x: f32[7,40], %s: s64[2]) {\n%y = dynamic-slice(%x, %s) {sizes=[3, 20]} : f32[3,20]\nreturn "
    "%y\n}",
    "f32[7,40](%x: f32[7,40], %u: f32[3,20], %s: s64[2]) {\n%y = dynamic-update-slice(%x, %u, %s) : "
    "f32[7,40]\nreturn %y\n}",
    "f32[4,33](%x: f32[9,33], %i: s64[4]) {\n%y = gather(%x, %i) {offset_dims=[1], collapsed_dims=[0], "
    "operand_batch=[], "
    "indices_batch=[], index_map=[0], index_vector_dim=1, sizes=[1, 33]} : f32[4,33]\nreturn %y\n}",
    "f32[3,40](%x: f32[3,9], %i: s32[40]) {\n%y = gather(%x, %i) {offset_dims=[0], collapsed_dims=[1], "
    "operand_batch=[], "
    "indices_batch=[], index_map=[1], index_vector_dim=1, sizes=[3, 1]} : f32[3,40]\nreturn %y\n}",
    "f32[2,20,5](%x: f32[8,9,6], %i: s64[2,20,2]) {\n%y = gather(%x, %i) {offset_dims=[2], "
    "collapsed_dims=[0, 1], operand_batch=[], "
    "indices_batch=[], index_map=[1, 0], index_vector_dim=2, sizes=[1, 1, 5]} : f32[2,20,5]\nreturn %y\n}",
    "f32[3,17](%x: f32[3,9], %i: s64[3,17,1]) {\n%y = gather(%x, %i) {offset_dims=[], collapsed_dims=[1], "
    "operand_batch=[0], "
    "indices_batch=[0], index_map=[1], index_vector_dim=2, sizes=[1, 1]} : f32[3,17]\nreturn %y\n}",
    "f32[2,20](%x: f32[9,20], %i: s64[2]) {\n%y = gather(%x, %i) {offset_dims=[1], collapsed_dims=[0], "
    "operand_batch=[], "
    "indices_batch=[], index_map=[0], index_vector_dim=1, sizes=[1, 20]} : f32[2,20]\n%z = exponential(%y) : "
    "f32[2,20]\nreturn %z\n}",
    "f32[9,20](%x: f32[9,20], %i: s64[5], %u: f32[5,20]) {\n%y = scatter(%x, %i, %u) {offset_dims=[1], "
    "collapsed_dims=[0], "
    "operand_batch=[], indices_batch=[], index_map=[0], index_vector_dim=1, reducer=add} : f32[9,20]\nreturn "
    "%y\n}",
    "s32[30](%x: s32[30], %i: s64[12,1], %u: s32[12]) {\n%y = scatter(%x, %i, %u) {offset_dims=[], "
    "collapsed_dims=[0], "
    "operand_batch=[], indices_batch=[], index_map=[0], index_vector_dim=1, reducer=replace} : "
    "s32[30]\nreturn %y\n}",
    "bf16[9,6](%x: bf16[9,6], %i: s32[4,2], %u: bf16[4,2,3]) {\n%y = scatter(%x, %i, %u) {offset_dims=[1, "
    "2], collapsed_dims=[], "
    "operand_batch=[], indices_batch=[], index_map=[0, 1], index_vector_dim=1, reducer=maximum} : "
    "bf16[9,6]\nreturn %y\n}",
    "f32[3,9](%x: f32[3,9], %i: s64[3,5,1], %u: f32[3,5]) {\n%y = scatter(%x, %i, %u) {offset_dims=[], "
    "collapsed_dims=[1], "
    "operand_batch=[0], indices_batch=[0], index_map=[1], index_vector_dim=2, reducer=multiply} : "
    "f32[3,9]\nreturn %y\n}",
};

START_TEST(indexed) {
  cases c = {0};
  for (size_t k = 0; k < sizeof indexed_texts / sizeof *indexed_texts; k++) {
    kernel_case *one = add(&c, 1e-5, indexed_texts[k]);
    one->low = -2;
    one->high = 12;
    if (strstr(one->text, "scatter") || strstr(one->text, "update")) { /* in place as well */
      kernel_case *again = add(&c, 1e-5, indexed_texts[k]);
      again->low = -2;
      again->high = 12;
      again->alias = 0;
    }
  }
  kernel_case *one =
      add(&c, 0,
          "f32[100](%x: f32[100], %y: f32[100]) {\n%z = add(%x, %y) : f32[100]\n%w = multiply(%z, %x) : "
          "f32[100]\nreturn %w\n}");
  one->alias = 1;
  one = add(
      &c, 0,
      "f32[100];f32[100](%x: f32[100], %y: f32[100]) {\n%z = add(%x, %y) : f32[100]\n%w = multiply(%z, %x) : "
      "f32[100]\nreturn %z, %w\n}");
  one->alias = 0;
  check_all(&c);
}
END_TEST

/* --- reductions, windows, scans, contractions --- */

static void reduce_cases(cases *c, const char *t, const char *reducer, double tolerance) {
  static const struct {
    const char *dims, *over, *result;
  } rows[] = {{"4,77", "1", "4"},         {"77,20", "0", "20"}, {"3,5,21", "0, 2", "5"}, {"500", "0", ""},
              {"2,6,3,3", "2, 3", "2,6"}, {"0,5", "0", "5"},    {"4,2,33", "1", "4,33"}, {"6,1", "1", "6"}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    kernel_case *one = add(
        c, tolerance,
        TEXT("%s[%s](%%x: %s[%s]) {\n%%y = reduce(%%x) {dimensions=[%s], reducer=%s} : %s[%s]\nreturn %%y\n}",
             t, rows[k].result, t, rows[k].dims, rows[k].over, reducer, t, rows[k].result));
    (void)one;
  }
}

START_TEST(reductions) {
  static const char *const all[] = {"f32", "f64", "f16", "bf16", "s8", "s32", "s64", "u8", "u64", "s4"};
  static const char *const reducers[] = {"add", "multiply", "maximum", "minimum"};
  const char *t = all[_i];
  cases c = {0};
  for (int k = 0; k < 4; k++) {
    reduce_cases(&c, t, reducers[k], _i >= 4 ? 0 : k >= 2 ? 0 : k == 1 ? 0.05 : loose(t) * 64);
  }
  if (_i >= 4) {
    reduce_cases(&c, t, "and", 0);
    reduce_cases(&c, t, "xor", 0);
  }
  if (_i == 0) {
    reduce_cases(&c, "pred", "or", 0);
    reduce_cases(&c, "pred", "and", 0);
    reduce_cases(&c, "c64", "add", 1e-4);
  }
  check_all(&c);
}
END_TEST

static const char *const fused_reductions[] = {
    /* the producer inlined, two reductions in one loop, an epilogue */
    "f32[5];f32[5](%x: f32[5,100]) {\n%s = reduce(%x) {dimensions=[1], reducer=add} : f32[5]\n%q = "
    "multiply(%x, %x) : "
    "f32[5,100]\n%r = reduce(%q) {dimensions=[1], reducer=add} : f32[5]\nreturn %s, %r\n}",
    "f32[5,1](%x: f32[5,100], %b: f32[100]) {\n%c = broadcast(%b) {dimensions=[1]} : f32[5,100]\n%d = "
    "subtract(%x, %c) : "
    "f32[5,100]\n%e = exponential(%d) : f32[5,100]\n%s = reduce(%e) {dimensions=[1], reducer=add} : "
    "f32[5]\n%l = log(%s) : f32[5]\n%r = "
    "reshape(%l) : f32[5,1]\nreturn %r\n}",
    "f32[40](%x: f32[30,40]) {\n%s = reduce(%x) {dimensions=[0], reducer=add} : f32[40]\n%y = multiply(%s, "
    "%s) : f32[40]\nreturn "
    "%y\n}",
    "f32[3,40](%x: f32[3,40]) {\n%m = reduce(%x) {dimensions=[1], reducer=maximum} : f32[3]\n%b = "
    "broadcast(%m) {dimensions=[0]} : "
    "f32[3,40]\n%d = subtract(%x, %b) : f32[3,40]\n%e = exponential(%d) : f32[3,40]\nreturn %e\n}",
    "f32[6](%x: f32[2,3,6,7,8]) {\n%t = transpose(%x) {permutation=[1, 3, 2, 0, 4]} : f32[3,7,6,2,8]\n%s = "
    "reduce(%t) "
    "{dimensions=[0, 1, 3, 4], reducer=add} : f32[6]\nreturn %s\n}",
    "f32[2,3](%x: f32[2,3,5,5], %b: f32[5]) {\n%c = broadcast(%b) {dimensions=[3]} : f32[2,3,5,5]\n%y = "
    "multiply(%x, %c) : "
    "f32[2,3,5,5]\n%s = reduce(%y) {dimensions=[2, 3], reducer=add} : f32[2,3]\nreturn %s\n}",
};

START_TEST(reductions_fused) {
  cases c = {0};
  for (size_t k = 0; k < sizeof fused_reductions / sizeof *fused_reductions; k++) {
    add(&c, 1e-4, fused_reductions[k]);
  }
  check_all(&c);
}
END_TEST

START_TEST(arg_reductions) {
  static const char *const types[] = {"f32", "f64", "bf16", "s8", "s32", "u16"};
  static const struct {
    const char *dims, *result;
    int d;
  } rows[] = {{"4,77", "4", 1}, {"77,20", "20", 0}, {"3,9,21", "3,21", 1}, {"100", "", 0}};
  cases c = {0};
  for (size_t j = 0; j < sizeof types / sizeof *types; j++) {
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
      for (int flags = 0; flags < 4; flags++) {
        kernel_case *one =
            add(&c, 0,
                TEXT("s64[%s](%%x: %s[%s]) {\n%%y = arg-reduce(%%x) {dimension=%d, largest=%s, last=%s} : "
                     "s64[%s]\nreturn %%y\n}",
                     rows[k].result, types[j], rows[k].dims, rows[k].d, flags & 1 ? "true" : "false",
                     flags & 2 ? "true" : "false", rows[k].result));
        one->low = 0;
        one->high = 9;
      }
    }
  }
  check_all(&c);
}
END_TEST

START_TEST(windows) {
  static const struct {
    const char *dims, *window, *strides, *low, *high, *holes, *result;
  } rows[] = {
      {"1,3,20,40", "1, 1, 3, 3", "1, 1, 1, 1", "0, 0, 1, 1", "0, 0, 1, 1", "1, 1, 1, 1", "1,3,20,40"},
      {"2,3,21,21", "1, 1, 3, 3", "1, 1, 2, 2", "0, 0, 1, 1", "0, 0, 1, 1", "1, 1, 1, 1", "2,3,11,11"},
      {"1,2,16,64", "1, 1, 2, 2", "1, 1, 2, 2", "0, 0, 0, 0", "0, 0, 0, 0", "1, 1, 1, 1", "1,2,8,32"},
      {"1,9,9,20", "1, 3, 3, 1", "1, 2, 2, 1", "0, 1, 1, 0", "0, 1, 1, 0", "1, 1, 1, 1", "1,5,5,20"},
      {"1,50", "1, 7", "1, 1", "0, 5", "0, 4", "1, 2", "1,47"},
  };
  static const char *const types[] = {"f32", "f64", "s8", "bf16", "u8"};
  static const char *const reducers[] = {"maximum", "add", "minimum"};
  cases c = {0};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    for (size_t j = 0; j < sizeof types / sizeof *types; j++) {
      for (int r = 0; r < 3; r++) {
        bool exact = r != 1 || j == 2 || j == 4;
        add(&c, exact ? 0 : loose(types[j]) * 32,
            TEXT("%s[%s](%%x: %s[%s]) {\n%%y = reduce-window(%%x) {window=[%s], strides=[%s], low=[%s], "
                 "high=[%s], rhs_dilation=[%s], "
                 "reducer=%s} : %s[%s]\nreturn %%y\n}",
                 types[j], rows[k].result, types[j], rows[k].dims, rows[k].window, rows[k].strides,
                 rows[k].low, rows[k].high, rows[k].holes, reducers[r], types[j], rows[k].result));
      }
      add(&c, 0,
          TEXT("s64[%s](%%x: %s[%s]) {\n%%y = arg-reduce-window(%%x) {window=[%s], strides=[%s], low=[%s], "
               "high=[%s], "
               "rhs_dilation=[%s]} : s64[%s]\nreturn %%y\n}",
               rows[k].result, types[j], rows[k].dims, rows[k].window, rows[k].strides, rows[k].low,
               rows[k].high, rows[k].holes, rows[k].result));
    }
  }
  check_all(&c);
}
END_TEST

START_TEST(scans) {
  static const char *const types[] = {"f32", "f64", "f16", "s32", "u8"};
  static const char *const reducers[] = {"add", "multiply", "maximum", "minimum"};
  static const struct {
    const char *dims;
    int d;
  } rows[] = {{"4,30", 1}, {"12,37", 0}, {"3,7,18", 1}};
  cases c = {0};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    for (size_t j = 0; j < sizeof types / sizeof *types; j++) {
      for (int r = 0; r < 4; r++) {
        bool exact = r >= 2 || j >= 3;
        add(&c,
            exact    ? 0
            : r == 1 ? 0.05
                     : loose(types[j]) * 64,
            TEXT("%s[%s](%%x: %s[%s]) {\n%%y = cumulative(%%x) {dimension=%d, reducer=%s, exclusive=%s, "
                 "backward=%s} : %s[%s]\nreturn "
                 "%%y\n}",
                 types[j], rows[k].dims, types[j], rows[k].dims, rows[k].d, reducers[r],
                 r % 2 ? "true" : "false", (r / 2 + k) % 2 ? "true" : "false", types[j], rows[k].dims));
      }
    }
  }
  check_all(&c);
}
END_TEST

START_TEST(contractions) {
  static const char *const types[][3] = {{"f32", "f32", "f32"}, {"f64", "f64", "f64"}, {"f16", "f16", "f16"},
                                         {"bf16", "bf16", "bf16"}, {"s16", "s16", "s16"}, {"s32", "s32", "s32"},
                                         {"u64", "u64", "u64"}, {"c64", "c64", "c64"}, {"s8", "s8", "s32"},
                                         {"u8", "s8", "s32"}, {"s8", "u8", "s32"}, {"u8", "u8", "s32"}};
  static const struct {
    const char *x, *y, *attrs, *result;
  } dots[] = {
      {"5,7", "7,20", "lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]", "5,20"},
      {"5,70", "9,70", "lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[1]", "5,9"},
      {"3,4,6", "3,6,18", "lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]", "3,4,18"},
      {"6,3,4,5", "4,5,3,6", "lhs_batch=[1], rhs_batch=[2], lhs_contract=[2, 3], rhs_contract=[0, 1]",
       "3,6,6"},
      {"40", "40", "lhs_batch=[], rhs_batch=[], lhs_contract=[0], rhs_contract=[0]", ""},
      {"3,0", "0,5", "lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]", "3,5"},
  };
  static const struct {
    const char *x, *kernel, *attrs, *result;
  } convolutions[] = {
      {"1,3,9,20", "4,3,3,3",
       "strides=[1, 1], low=[1, 1], high=[1, 1], lhs_dilation=[1, 1], rhs_dilation=[1, 1], groups=1, "
       "layout=channels-first",
       "1,4,9,20"},
      {"2,4,11,11", "6,2,3,2",
       "strides=[2, 2], low=[0, 1], high=[1, -1], lhs_dilation=[1, 1], rhs_dilation=[2, 1], groups=2, "
       "layout=channels-first",
       "2,6,4,5"},
      {"1,5,6,3", "8,3,3,3",
       "strides=[1, 2], low=[2, 2], high=[2, 2], lhs_dilation=[2, 3], rhs_dilation=[1, 1], groups=1, "
       "layout=channels-last",
       "1,11,9,8"},
      {"1,8,17", "8,1,3",
       "strides=[1], low=[1], high=[1], lhs_dilation=[1], rhs_dilation=[1], groups=8, layout=channels-first",
       "1,8,17"},
      {"3,5", "7,5",
       "strides=[], low=[], high=[], lhs_dilation=[], rhs_dilation=[], groups=1, layout=channels-first",
       "3,7"},
  };
  const char *x = types[_i][0], *y = types[_i][1], *t = types[_i][2];
  cases c = {0};
  double tolerance = _i == 7 ? 1e-4 : _i >= 4 ? 0 : loose(t) * 64;
  for (size_t k = 0; k < sizeof dots / sizeof *dots; k++) {
    add(&c, tolerance,
        TEXT("%s[%s](%%x: %s[%s], %%y: %s[%s]) {\n%%z = dot(%%x, %%y) {%s} : %s[%s]\nreturn %%z\n}", t,
             dots[k].result, x, dots[k].x, y, dots[k].y, dots[k].attrs, t, dots[k].result));
  }
  for (size_t k = 0; k < sizeof convolutions / sizeof *convolutions; k++) {
    add(&c, tolerance,
        TEXT("%s[%s](%%x: %s[%s], %%y: %s[%s]) {\n%%z = convolution(%%x, %%y) {%s} : %s[%s]\nreturn %%z\n}",
             t, convolutions[k].result, x, convolutions[k].x, y, convolutions[k].kernel,
             convolutions[k].attrs, t, convolutions[k].result));
  }
  check_all(&c);
}
END_TEST

/* --- GPU: as text only --- */

static status ptx_of_all(void *data) {
  cases *c = data;
  for (uint32_t k = 0; k < c->n; k++) {
    const char *text = NULL;
    status s = emit_ptx(memory, TEXT("kernel_%u", k), parse_case(&c->items[k]), &text);
    TRY(status_prefix(s, "%s", c->items[k].text));
    ck_assert_msg(strstr(text, TEXT(".visible .entry kernel_%u(", k)) != NULL, "%s", text);
    ck_assert_msg(strstr(text, ".target sm_80") != NULL, "%s", text);
    ck_assert_msg(strstr(text, ".extern .func") == NULL, "a call in\n%s\nof\n%s", text, c->items[k].text);
    const char *folder = getenv("ONNX_XLA_PTX_DIR"); /* for ptxas */
    FILE *f = folder ? fopen(TEXT("%s/k%u.ptx", folder, k), "w") : NULL;
    if (f) {
      fputs(text, f);
      fclose(f);
    }
  }
  return NULL;
}

START_TEST(ptx) {
  cases c = {0};
  for (size_t k = 0; k < sizeof movement_texts / sizeof *movement_texts; k++) {
    add(&c, 0, movement_texts[k]);
  }
  for (size_t k = 0; k < sizeof fused_reductions / sizeof *fused_reductions; k++) {
    add(&c, 0, fused_reductions[k]);
  }
  static const char *const one[] = {"exponential",        "log",   "sine", "tanh",    "erf",
                                    "round-nearest-even", "floor", "sqrt", "logistic"};
  static const char *const two[] = {"add", "divide", "maximum", "power", "atan2"};
  static const char *const types[] = {"f32", "f16", "bf16", "f8e4m3fn"};
  for (int j = 0; j < 4; j++) {
    for (size_t k = 0; k < sizeof one / sizeof *one; k++) {
      unary_case(&c, 0, one[k], types[j], types[j], "");
    }
    for (size_t k = 0; k < sizeof two / sizeof *two; k++) {
      binary_case(&c, 0, two[k], types[j], types[j], "");
    }
  }
  binary_case(&c, 0, "divide", "s32", "s32", "");
  binary_case(&c, 0, "maximum", "f64", "f64", "");
  binary_case(&c, 0, "power", "s64", "s64", "");
  status s = guard_run(ptx_of_all, &c);
  ck_assert_msg(!s, "%s", status_message(s));
}
END_TEST

/* --- other processors: whether LLVM can select it all --- */

static const char *const triples[][2] = {{"aarch64-unknown-linux-gnu", "generic"},
                                         {"riscv64-unknown-linux-gnu", "generic-rv64"},
                                         {"x86_64-pc-linux-gnu", "x86-64-v2"},
                                         {"x86_64-pc-linux-gnu", "x86-64-v3"},
                                         {"x86_64-pc-linux-gnu", "x86-64-v4"}};

static status objects_of_all(void *data) {
  cases *c = data;
  for (size_t j = 0; j < sizeof triples / sizeof *triples; j++) {
    emit_target t;
    emit_module *m = NULL;
    const void *object;
    size_t size;
    TRY(emit_target_init(memory, triples[j][0], triples[j][1], 0, &t));
    TRY(emit_module_create(memory, &t, "test", &m));
    for (uint32_t k = 0; k < c->n; k++) {
      TRY(emit_kernel(m, TEXT("kernel_%u", k), parse_case(&c->items[k]), NULL, &c->items[k].info));
    }
    TRY(status_prefix(emit_module_object(m, &object, &size), "%s", triples[j][0]));
    ck_assert(size > 64 && memcmp(object, "\177ELF", 4) == 0);
    const char *folder = getenv("ONNX_XLA_PTX_DIR");
    FILE *f = folder ? fopen(TEXT("%s/%zu.o", folder, j), "w") : NULL;
    if (f) {
      fwrite(object, 1, size, f);
      fclose(f);
    }
  }
  return NULL;
}

START_TEST(other_machines) {
  cases c = {0};
  static const char *const one[] = {"exponential",        "log",   "sine", "tanh", "erf",
                                    "round-nearest-even", "floor", "ceil", "sqrt", "sign"};
  static const char *const two[] = {"add", "divide", "maximum", "power", "atan2", "remainder"};
  for (size_t k = 0; k < sizeof movement_texts / sizeof *movement_texts; k++) {
    add(&c, 0, movement_texts[k]);
  }
  for (int j = 0; j < N_FLOATS; j++) {
    for (size_t k = 0; k < sizeof one / sizeof *one; k++) {
      unary_case(&c, 0, one[k], floats[j], floats[j], "");
    }
    for (size_t k = 0; k < sizeof two / sizeof *two; k++) {
      binary_case(&c, 0, two[k], floats[j], floats[j], "");
    }
    for (int k = 0; k < N_INTS; k++) {
      unary_case(&c, 0, "convert", floats[j], ints[k], " {saturate=true, rounding=nearest}");
      unary_case(&c, 0, "convert", ints[k], floats[j], " {saturate=true, rounding=nearest}");
    }
    reduce_cases(&c, floats[j], "add", 0);
  }
  for (int j = 0; j < N_INTS; j++) {
    binary_case(&c, 0, "divide", ints[j], ints[j], "");
    binary_case(&c, 0, "power", ints[j], ints[j], "");
  }
  status s = guard_run(objects_of_all, &c);
  ck_assert_msg(!s, "%s", status_message(s));
}
END_TEST

START_TEST(refusals) {
  cases c = {0};
  const char *why = NULL, *text;
  emit_target t;
  hlo_instr *sorted = parse_case(add(
      &c, 0, "f32[4](%x: f32[4]) {\n%y = sort(%x) {dimension=0, descending=false} : f32[4]\nreturn %y\n}"));
  ck_assert(!emit_supports(sorted, &why));
  ck_assert_ptr_nonnull(why);
  hlo_instr *f64 = parse_case(add(&c, 0, "f64[4](%x: f64[4]) {\n%y = sine(%x) : f64[4]\nreturn %y\n}"));
  ck_assert(emit_supports(f64, NULL));
  status s = emit_ptx(memory, "f", f64, &text);
  ck_assert_int_eq(status_get_code(s), STATUS_UNSUPPORTED);
  status_free(s);
  s = emit_target_init(memory, NULL, "pentium-pro", 0, &t);
  ck_assert_int_eq(status_get_code(s), STATUS_INVALID_ARGUMENT);
  status_free(s);
  s = emit_target_init(memory, NULL, "native", 5, &t);
  ck_assert_int_eq(status_get_code(s), STATUS_INVALID_ARGUMENT);
  status_free(s);
}
END_TEST

/* Elementwise chains may run in place; what moves elements may not. */
START_TEST(in_place) {
  cases c = {0};
  hlo_instr *i =
      parse_case(add(&c, 0,
                     "f32[4,4](%x: f32[4,4], %y: f32[4,4]) {\n%a = negate(%x) : f32[4,4]\n%t = transpose(%y) "
                     "{permutation=[1, 0]} : f32[4,4]\n%z = add(%a, %t) : f32[4,4]\nreturn %z\n}"));
  ck_assert(emit_can_alias(i, 0, 0));
  ck_assert(!emit_can_alias(i, 1, 0));
  i = parse_case(
      add(&c, 0,
          "f32[4](%x: f32[4]) {\n%m = reduce(%x) {dimensions=[0], reducer=add} : f32[]\n%b = broadcast(%m) "
          "{dimensions=[]} : f32[4]\n%z = subtract(%x, %b) : f32[4]\nreturn %z\n}"));
  ck_assert(emit_can_alias(i, 0, 0)); /* a row is read before it is written */
  i = parse_case(
      add(&c, 0,
          "f32[4,4](%x: f32[4,4]) {\n%m = reduce(%x) {dimensions=[1], reducer=add} : f32[4]\n%b = broadcast(%m) "
          "{dimensions=[1]} : f32[4,4]\n%z = subtract(%x, %b) : f32[4,4]\nreturn %z\n}"));
  ck_assert(!emit_can_alias(i, 0, 0)); /* another row's sum */
}
END_TEST

int main(void) {
  Suite *s = suite_create("emit");
  TCase *t = tcase_create("kernels");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_loop_test(t, elementwise_floats, 0, N_FLOATS);
  tcase_add_loop_test(t, elementwise_ints, 0, N_INTS);
  tcase_add_test(t, elementwise_others);
  tcase_add_loop_test(t, conversions, 0, N_FLOATS + N_INTS + 2);
  tcase_add_test(t, movement);
  tcase_add_test(t, indexed);
  tcase_add_loop_test(t, reductions, 0, 10);
  tcase_add_test(t, reductions_fused);
  tcase_add_test(t, arg_reductions);
  tcase_add_test(t, windows);
  tcase_add_test(t, scans);
  tcase_add_loop_test(t, contractions, 0, 12);
  tcase_add_test(t, ptx);
  tcase_add_test(t, other_machines);
  tcase_add_test(t, refusals);
  tcase_add_test(t, in_place);
  tcase_set_timeout(t, 300);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
