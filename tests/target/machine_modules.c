/* machine_modules.c - see machine_modules.h. */
#include "tests/target/machine_modules.h"

#include <string.h>

#include "backend_cpu/compile/target.h"
#include "backend_ref/eval.h"
#include "hlo/text/text.h"
#include "tests/target/text_case.h"

typedef struct list {
  arena *arena;
  machine_module *items;
  uint32_t n, cap;
} list;

static void add(list *l, const char *name, const char *params, const char *body, const char *root, double tolerance,
                double low, double high) {
  machine_module *m = ARENA_PUSH(l->arena, l->items, l->n, l->cap);
  const char *text = arena_printf(l->arena, "onnx-xla hlo 1\nmodule \"t\" {\nentry main(%s) {\n%s\nreturn %s\n}\n}\n",
                                  params, body, root);
  *m = (machine_module){arena_strdup(l->arena, name), text, tolerance, low, high};
}

/* --- elementwise operations --- */

/* Adds a module with an instruction for each of the operations, a list that ends with NULL, in one type. */
static void add_each(list *l, const char *const *ops, const char *type, int arity, double tolerance, double low,
                     double high) {
  arena *a = l->arena;
  const char *params = "", *body = "", *root = "";
  static const char *const args[] = {"%0", "%0, %1", "%0, %1, %2"};
  for (int k = 0; k < arity; k++) {
    params = arena_printf(a, "%s%s%%%d: %s[3,37] \"p%d\"", params, k ? ", " : "", k, type, k);
  }
  for (int k = 0; ops[k]; k++) {
    body = arena_printf(a, "%s%%%d = %s(%s) : %s[3,37]\n", body, arity + k, ops[k], args[arity - 1], type);
    root = arena_printf(a, "%s%s%%%d \"r%d\"", root, k ? ", " : "", arity + k, k);
  }
  add(l, arena_printf(a, "%s of %s", ops[0], type), params, body, root, tolerance, low, high);
}

static void add_floats(list *l) {
  static const char *const exact[] = {"abs", "negate", "sign", "ceil", "floor", "round-nearest-even", NULL},
                           *const two[] = {"add",     "subtract", "multiply",  "divide",
                                           "maximum", "minimum",  "remainder", NULL},
                           *const loose[] = {"power", "atan2", NULL};
  static const char *const wide[] = {"exponential", "exponential-minus-one",
                                     "sine",        "cosine",
                                     "atan",        "tanh",
                                     "erf",         "logistic",
                                     "sinh",        "cosh",
                                     "asinh",       NULL},
                           *const positive[] = {"log", "log-plus-one", "rsqrt", "sqrt", NULL},
                           *const unit[] = {"asin", "acos", "atanh", "tan", NULL};
  static const struct {
    const char *name;
    double tolerance;
  } types[] = {{"f32", 2e-6}, {"f64", 1e-6}, {"f16", 2e-3}, {"bf16", 1e-2}};
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    const char *t = types[k].name;
    add_each(l, exact, t, 1, 0, -9, 9);
    add_each(l, two, t, 2, 0, -9, 9);
    add_each(l, loose, t, 2, types[k].tolerance, 0.1, 4);
    add_each(l, wide, t, 1, types[k].tolerance, -8, 8);
    add_each(l, positive, t, 1, types[k].tolerance, 0.01, 50);
    add_each(l, unit, t, 1, types[k].tolerance, -0.9, 0.9);
  }
}

static void add_ints(list *l) {
  static const char *const types[] = {"s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64"};
  static const char *const one[] = {"negate", "not", NULL};
  static const char *const two[] = {"add", "subtract", "multiply", "divide",     "remainder",   "maximum", "minimum",
                                    "and", "or",       "xor",      "shift-left", "shift-right", "power",   NULL};
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    add_each(l, one, types[k], 1, 0, 0, 20);
    add_each(l, two, types[k], 2, 0, 0, 20);
  }
}

static void add_conversions(list *l) {
  static const char *const types[] = {"f32", "f64", "f16", "bf16", "f8e4m3fn", "s8",  "s16",
                                      "s32", "s64", "u8",  "u16",  "u32",      "u64", "pred"};
  enum { N = sizeof types / sizeof *types };
  for (size_t f = 0; f < N; f++) {
    const char *body = "", *root = "";
    for (size_t t = 0; t < N; t++) {
      body = arena_printf(l->arena, "%s%%%zu = convert(%%0) {saturate=true, rounding=nearest} : %s[2,41]\n", body,
                          t + 1, types[t]);
      root = arena_printf(l->arena, "%s%s%%%zu \"r%zu\"", root, t ? ", " : "", t + 1, t);
    }
    add(l, arena_printf(l->arena, "conversions of %s", types[f]),
        arena_printf(l->arena, "%%0: %s[2,41] \"x\"", types[f]), body, root, 0, -100, 300);
  }
}

static void add_comparisons(list *l) {
  static const char *const types[] = {"f32", "f64", "f16", "s8", "s32", "s64", "u64"};
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    const char *t = types[k];
    add(l, arena_printf(l->arena, "comparisons of %s", t),
        arena_printf(l->arena, "%%0: %s[5,33] \"x\", %%1: %s[5,33] \"y\"", t, t),
        arena_printf(l->arena,
                     "%%2 = compare(%%0, %%1) {comparison=lt} : pred[5,33]\n%%3 = select(%%2, %%0, %%1) : %s[5,33]\n"
                     "%%4 = compare(%%0, %%1) {comparison=eq} : pred[5,33]\n%%5 = select(%%4, %%0, %%1) : %s[5,33]\n"
                     "%%6 = clamp(%%1, %%0, %%1) : %s[5,33]\n",
                     t, t, t),
        "%2 \"a\", %3 \"b\", %5 \"c\", %6 \"d\"", 0, -5, 5);
  }
}

/* --- reductions, rows and windows --- */

static void add_reductions(list *l) {
  static const char *const types[] = {"f32", "f64", "f16", "bf16", "s32", "s64", "u8"};
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    const char *y = types[t];
    add(l, arena_printf(l->arena, "reductions of %s", y), arena_printf(l->arena, "%%0: %s[5,6,35] \"x\"", y),
        arena_printf(l->arena,
                     "%%1 = reduce(%%0) {dimensions=[2], reducer=add} : %s[5,6]\n"
                     "%%2 = reduce(%%0) {dimensions=[0], reducer=multiply} : %s[6,35]\n"
                     "%%3 = reduce(%%0) {dimensions=[0,1,2], reducer=maximum} : %s[]\n"
                     "%%4 = reduce(%%0) {dimensions=[0,2], reducer=minimum} : %s[6]\n"
                     "%%5 = cumulative(%%0) {dimension=2, reducer=add, exclusive=false, backward=false} : %s[5,6,35]\n"
                     "%%6 = arg-reduce(%%0) {dimension=2, largest=true, last=false} : s64[5,6]\n",
                     y, y, y, y, y),
        "%1 \"a\", %2 \"b\", %3 \"c\", %4 \"d\", %5 \"e\", %6 \"f\"",
        strcmp(y, "bf16") == 0  ? 5e-2
        : strcmp(y, "f16") == 0 ? 5e-3
        : y[0] == 'f'           ? 2e-6
                                : 0,
        0.8, 1.2);
  }
}

static void add_rows(list *l) {
  add(l, "softmax", "%0: f32[7,75] \"x\"",
      "%1 = reduce(%0) {dimensions=[1], reducer=maximum} : f32[7]\n%2 = broadcast(%1) {dimensions=[0]} : f32[7,75]\n"
      "%3 = subtract(%0, %2) : f32[7,75]\n%4 = exponential(%3) : f32[7,75]\n"
      "%5 = reduce(%4) {dimensions=[1], reducer=add} : f32[7]\n%6 = broadcast(%5) {dimensions=[0]} : f32[7,75]\n"
      "%7 = divide(%4, %6) : f32[7,75]",
      "%7 \"y\"", 2e-6, -4, 4);
  add(l, "normalised rows", "%0: f32[9,50] \"x\", %1: f32[50] \"scale\"",
      "%2 = multiply(%0, %0) : f32[9,50]\n%3 = reduce(%2) {dimensions=[1], reducer=add} : f32[9]\n"
      "%4 = rsqrt(%3) : f32[9]\n%5 = broadcast(%4) {dimensions=[0]} : f32[9,50]\n%6 = multiply(%0, %5) : f32[9,50]\n"
      "%7 = broadcast(%1) {dimensions=[1]} : f32[9,50]\n%8 = multiply(%6, %7) : f32[9,50]",
      "%8 \"y\"", 2e-6, -4, 4);
}

static void add_windows(list *l) {
  static const char *const types[] = {"f32", "f64", "f16", "s32", "u8"};
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    const char *t = types[k];
    add(l, arena_printf(l->arena, "pooling of %s", t), arena_printf(l->arena, "%%0: %s[2,3,11,28] \"x\"", t),
        arena_printf(l->arena,
                     "%%1 = reduce-window(%%0) {window=[1,1,3,3], strides=[1,1,1,1], low=[0,0,1,1], high=[0,0,1,1], "
                     "rhs_dilation=[1,1,1,1], reducer=maximum} : %s[2,3,11,28]\n"
                     "%%2 = reduce-window(%%0) {window=[1,1,2,3], strides=[1,1,2,2], low=[0,0,0,1], high=[0,0,1,1], "
                     "rhs_dilation=[1,1,1,1], reducer=add} : %s[2,3,6,14]\n",
                     t, t),
        "%1 \"a\", %2 \"b\"",
        k == 2  ? 2e-3
        : k < 2 ? 1e-6
                : 0,
        -1, 1);
  }
}

/* --- movement --- */

static void add_movement(list *l) {
  static const char *const types[] = {"f32", "s64", "u8", "f16"};
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    const char *t = types[k];
    add(l, arena_printf(l->arena, "movement of %s", t),
        arena_printf(l->arena, "%%0: %s[4,6,7] \"x\", %%1: %s[40,36] \"y\", %%2: %s[] \"v\", %%3: s64[2] \"at\"", t, t,
                     t),
        arena_printf(l->arena,
                     "%%4 = transpose(%%0) {permutation=[2,0,1]} : %s[7,4,6]\n"
                     "%%5 = reverse(%%0) {dimensions=[0,2]} : %s[4,6,7]\n"
                     "%%6 = slice(%%0) {starts=[1,0,2], limits=[4,6,7], strides=[1,2,2]} : %s[3,3,3]\n"
                     "%%7 = concatenate(%%0, %%0) {dimension=1} : %s[4,12,7]\n"
                     "%%8 = transpose(%%1) {permutation=[1,0]} : %s[36,40]\n"
                     "%%9 = pad(%%1, %%2) {low=[1,-1], high=[0,2], interior=[1,0]} : %s[80,37]\n"
                     "%%10 = dynamic-slice(%%1, %%3) {sizes=[3,5]} : %s[3,5]\n"
                     "%%11 = dynamic-update-slice(%%1, %%10, %%3) : %s[40,36]",
                     t, t, t, t, t, t, t, t),
        "%4 \"a\", %5 \"b\", %6 \"c\", %7 \"d\", %8 \"e\", %9 \"f\", %10 \"g\", %11 \"h\"", 0, -9, 9);
  }
  add(l, "gather and scatter", "%0: f32[9,17] \"x\", %1: s64[5] \"i\", %2: f32[5,17] \"u\", %4: s32[5] \"j\"",
      "%3 = gather(%0, %1) {offset_dims=[1], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0], "
      "index_vector_dim=1, sizes=[1,17]} : f32[5,17]\n"
      "%5 = scatter(%0, %1, %2) {offset_dims=[1], collapsed_dims=[0], operand_batch=[], indices_batch=[], "
      "index_map=[0], index_vector_dim=1, reducer=add} : f32[9,17]\n"
      "%6 = gather(%0, %4) {offset_dims=[1], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0], "
      "index_vector_dim=1, sizes=[1,17]} : f32[5,17]",
      "%3 \"a\", %5 \"b\", %6 \"c\"", 1e-6, -1, 1);
  add(l, "random bits", "%0: u64[3] \"s\"",
      "%1 = rng-bit-generator(%0) {algorithm=philox} : u32[37,64]\n"
      "%2 = rng-bit-generator(%0) {algorithm=philox} : u64[2,1001]\n"
      "%3 = convert(%2) {saturate=true, rounding=nearest} : f32[2,1001]",
      "%1 \"a\", %3 \"b\"", 0, 0, 1e9);
}

/* --- contractions --- */

/* Returns the text of sines, which are folded to constant weights %w. */
static const char *sines(list *l, const char *type, int n) {
  return arena_printf(l->arena,
                      "%%i = iota() {dimension=0} : f32[%d]\n%%s = sine(%%i) : f32[%d]\n%%w = reshape(%%s) : %s\n", n,
                      n, type);
}

static void add_products(list *l) {
  static const char *const forms[][4] = {{"f32[7,19]", "f32[19,23]", MATMUL, "f32[7,23]"},
                                         {"f32[65,70]", "f32[130,70]", DOT_OF("", "", "1", "1"), "f32[65,130]"},
                                         {"f32[3,65,70]", "f32[3,70,33]", DOT_OF("0", "0", "2", "1"), "f32[3,65,33]"},
                                         {"f32[1,300]", "f32[300,90]", MATMUL, "f32[1,90]"},
                                         {"f64[7,19]", "f64[19,23]", MATMUL, "f64[7,23]"},
                                         {"s32[7,19]", "s32[19,23]", MATMUL, "s32[7,23]"},
                                         {"s64[7,19]", "s64[19,23]", MATMUL, "s64[7,23]"},
                                         {"f16[33,19]", "f16[19,23]", MATMUL, "f16[33,23]"},
                                         {"bf16[33,19]", "bf16[19,23]", MATMUL, "bf16[33,23]"},
                                         {"u8[33,72]", "s8[72,23]", MATMUL, "s32[33,23]"},
                                         {"s8[33,70]", "s8[70,64]", MATMUL, "s32[33,64]"}};
  for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
    const char *const *f = forms[k];
    add(l, arena_printf(l->arena, "dot %s %s", f[0], f[1]),
        arena_printf(l->arena, "%%0: %s \"x\", %%1: %s \"y\"", f[0], f[1]),
        arena_printf(l->arena, "%%2 = dot(%%0, %%1) %s : %s", f[2], f[3]), "%2 \"z\"",
        f[0][0] == 'b'                 ? 2e-2
        : strncmp(f[0], "f16", 3) == 0 ? 2e-3
        : f[0][0] == 'f'               ? 2e-6
                                       : 0,
        -1, 1);
  }
  add(l, "dense layer", "%0: f32[9,64] \"x\", %1: f32[48] \"b\"",
      arena_printf(l->arena,
                   "%s%%d = dot(%%0, %%w) " MATMUL " : f32[9,48]\n%%c = broadcast(%%1) {dimensions=[1]} : f32[9,48]\n"
                   "%%a = add(%%d, %%c) : f32[9,48]\n%%t = tanh(%%a) : f32[9,48]",
                   sines(l, "f32[64,48]", 64 * 48)),
      "%t \"y\"", 1e-5, -1, 1);
  add(l, "dot of bytes by constant bytes", "%0: u8[33,72] \"x\", %1: s8[33,72] \"y\"",
      arena_printf(l->arena,
                   "%s%%n = constant() {value=f32[] 100} : f32[]\n%%m = broadcast(%%n) {dimensions=[]} : f32[72,64]\n"
                   "%%p = multiply(%%w, %%m) : f32[72,64]\n"
                   "%%q = convert(%%p) {saturate=true, rounding=nearest} : s8[72,64]\n"
                   "%%d = dot(%%0, %%q) " MATMUL " : s32[33,64]\n%%e = dot(%%1, %%q) " MATMUL " : s32[33,64]",
                   sines(l, "f32[72,64]", 72 * 64)),
      "%d \"a\", %e \"b\"", 0, 0, 120);
}

static void add_convolutions(list *l) {
  add(l, "convolution", "%0: f32[1,3,20,21] \"x\", %1: f32[16,3,3,3] \"w\"",
      "%2 = convolution(%0, %1) " CONV_FIRST("2,2", "1,1", "1,1", "1,1", "1,1", "1") " : f32[1,16,10,11]", "%2 \"y\"",
      2e-6, -1, 1);
  add(l, "transposed convolution", "%0: f32[1,9,11,8] \"x\", %1: f32[6,8,2,2] \"w\"",
      "%2 = convolution(%0, %1) " CONV_LAST("1,1", "1,1", "1,1", "2,2", "1,1", "1") " : f32[1,18,22,6]", "%2 \"y\"",
      2e-6, -1, 1);
  add(l, "depthwise convolution", "%0: f32[2,20,21,24] \"x\", %1: f32[24] \"b\"",
      arena_printf(l->arena,
                   "%s%%y = convolution(%%0, %%w) " CONV_LAST(
                       "1,1", "1,1", "1,1", "1,1", "1,1",
                       "24") " : "
                             "f32[2,20,21,24]\n%%c = broadcast(%%1) {dimensions=[3]} : f32[2,20,21,24]\n"
                             "%%a = add(%%y, %%c) : f32[2,20,21,24]",
                   sines(l, "f32[24,1,3,3]", 24 * 9)),
      "%a \"y\"", 2e-6, -1, 1);
  static const char *const configs[] = {"", " config=\"winograd:4\"", " config=\"winograd:4.phased\"",
                                        " config=\"kernel\""};
  for (size_t k = 0; k < sizeof configs / sizeof *configs; k++) {
    add(l, arena_printf(l->arena, "constant convolution%s", configs[k]), "%0: f32[1,28,28,16] \"x\"",
        arena_printf(
            l->arena,
            "%s%%a = convolution(%%0, %%w) " CONV_LAST("1,1", "1,1", "1,1", "1,1", "1,1", "1") " : "
                                                                                               "f32[1,28,28,16]%s",
            sines(l, "f32[16,16,3,3]", 16 * 144), configs[k]),
        "%a \"y\"", 1e-4, -1, 1);
  }
  add(l, "bytes, depthwise", "%0: s8[1,9,9,24] \"x\", %1: s8[24,1,3,3] \"w\"",
      "%2 = convolution(%0, %1) " CONV_LAST("2,2", "1,1", "1,1", "1,1", "1,1", "24") " : s32[1,5,5,24]", "%2 \"y\"", 0,
      -1, 1);
}

static void add_attention(list *l) {
  add(l, "attention", "%0: f32[2,19,16] \"q\", %1: f32[2,40,16] \"k\", %2: f32[2,40,48] \"v\"",
      "%3 = dot(%0, %1) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : f32[2,19,40]\n"
      "%4 = reduce(%3) {dimensions=[2], reducer=maximum} : f32[2,19]\n"
      "%5 = broadcast(%4) {dimensions=[0,1]} : f32[2,19,40]\n%6 = subtract(%3, %5) : f32[2,19,40]\n"
      "%7 = exponential(%6) : f32[2,19,40]\n%8 = reduce(%7) {dimensions=[2], reducer=add} : f32[2,19]\n"
      "%9 = broadcast(%8) {dimensions=[0,1]} : f32[2,19,40]\n%10 = divide(%7, %9) : f32[2,19,40]\n"
      "%11 = dot(%10, %2) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : f32[2,19,48]",
      "%11 \"y\"", 1e-5, -2, 2);
}

const machine_module *machine_modules(arena *a, uint32_t *n) {
  list l = {.arena = a};
  add_floats(&l);
  add_ints(&l);
  add_conversions(&l);
  add_comparisons(&l);
  add_reductions(&l);
  add_rows(&l);
  add_windows(&l);
  add_movement(&l);
  add_products(&l);
  add_convolutions(&l);
  add_attention(&l);
  *n = l.n;
  return l.items;
}

static rt_compile_options options_for(const machine *on) {
  return (rt_compile_options){
      .triple = on->triple, .cpu = on->cpu, .threads = 2, .own_kernels = true, .eval = ref_fold};
}

status machine_object(arena *a, const char *text, const machine *on, const char *prefix, aot_files *out) {
  hlo_module *m;
  emit_module *code;
  rt_program *p;
  aot_version version;
  rt_compile_options options = options_for(on);
  aot_options names = {.prefix = prefix, .model = "test", .about = "", .file = "net.o", .header = "net.h"};
  TRY(hlo_parse(a, text, strlen(text), NULL, &m));
  TRY(cpu_target_of(a, &options, &version.target));
  emit_target least = emit_target_baseline(&version.target);
  TRY(emit_module_create(a, &least, "test", &code));
  TRY(cpu_compile_into_module((struct hlo_module *)m, &options, a, "v0_", code, &p, NULL));
  version.program = p;
  names.n_inputs = p->n_params;
  TRY(aot_write(a, code, 1, &version, &names, out));
  emit_module_destroy(code);
  return NULL;
}

status machine_assembly(arena *a, const char *text, const machine *on, const char **assembly) {
  hlo_module *m;
  rt_program *p;
  rt_report report = {0};
  rt_compile_options options = options_for(on);
  options.keep_text = true;
  TRY(hlo_parse(a, text, strlen(text), NULL, &m));
  TRY(cpu_compiler.compile((struct hlo_module *)m, &options, a, &p, &report));
  *assembly = report.assembly;
  return NULL;
}
