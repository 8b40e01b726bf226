/* check_product_programs.c - contractions in programs of the cpu target for all sizes: the algorithms gemm and winograd
 * compute them with their epilogues, as one kernel computes attention, and the results are those of the evaluator at
 * each size. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "backend_cpu/compile/target.h"
#include "backend_cpu/runtime/functions.h"
#include "backend_cpu/runtime/target.h"
#include "emit/llvm/target.h"
#include "hlo/text/text.h"
#include "runtime/host/processor.h"
#include "tests/hlo/general_program.h"
#include "tests/unit/hlo/hlo_case.h"

static arena *memory;

static void setup(void) { memory = arena_create(NULL); }
static void teardown(void) { arena_destroy(memory); }

typedef struct program_case {
  /* "W" and the type after it stand for a constant with random numbers. */
  const char *text;
  const char *thunks; /* a letter for each thunk: G for a kernel of gemm, W for one of winograd, D for one of depthwise,
                         - for any other */
  bool bytes;         /* whether `thunks` holds only on processors with instructions that multiply bytes */
} program_case;

#define PLACES "lhs_dilation=[1,1], groups=1, rhs_dilation=[1,1], layout=channels-last"
#define EACH_OF_24 "lhs_dilation=[1,1], groups=24, rhs_dilation=[1,1], layout=channels-last"

/* %p is the softmax of the rows of %qk. */
#define SOFTMAX                                                         \
  "  %m = reduce(%qk) {dimensions=[3], reducer=maximum} : f32[b,h,w]\n" \
  "  %mb = broadcast(%m) {dimensions=[0,1,2]} : f32[b,h,w,w]\n"         \
  "  %d = subtract(%qk, %mb) : f32[b,h,w,w]\n"                          \
  "  %e = exponential(%d) : f32[b,h,w,w]\n"                             \
  "  %s = reduce(%e) {dimensions=[3], reducer=add} : f32[b,h,w]\n"      \
  "  %sb = broadcast(%s) {dimensions=[0,1,2]} : f32[b,h,w,w]\n"         \
  "  %p = divide(%e, %sb) : f32[b,h,w,w]\n"

/* The first parameter has the dimensions b, h and w. */
static const program_case cases[] = {
    /* a layer with bias and activation, and one that adds its input */
    {"(%x: f32[b,h,w,24]) {\n"
     "  %1 = W f32[24,64]\n"
     "  %2 = W f32[64]\n"
     "  %3 = W f32[64,24]\n"
     "  %d = dot(%x, %1) {lhs_batch=[], rhs_batch=[], lhs_contract=[3], rhs_contract=[0]} : f32[b,h,w,64]\n"
     "  %c = broadcast(%2) {dimensions=[3]} : f32[b,h,w,64]\n"
     "  %a = add(%d, %c) : f32[b,h,w,64]\n"
     "  %t = tanh(%a) : f32[b,h,w,64]\n"
     "  %e = dot(%t, %3) {lhs_batch=[], rhs_batch=[], lhs_contract=[3], rhs_contract=[0]} : f32[b,h,w,24]\n"
     "  %r = add(%e, %x) : f32[b,h,w,24]\n"
     "  return %r\n}",
     "GG", false},
    /* convolutions of images of any size: one with stride 2, and one to which its own input is added */
    {"(%x: f32[b,h,w,8]) {\n"
     "  %1 = W f32[32,8,3,3]\n"
     "  %2 = W f32[32]\n"
     "  %3 = W f32[32,32,3,3]\n"
     "  %d = convolution(%x, %1) {strides=[2,2], low=[1,1], high=[1,1], " PLACES "} : f32[b,(h+1)/2,(w+1)/2,32]\n"
     "  %c = broadcast(%2) {dimensions=[3]} : f32[b,(h+1)/2,(w+1)/2,32]\n"
     "  %a = add(%d, %c) : f32[b,(h+1)/2,(w+1)/2,32]\n"
     "  %z = constant() {value=f32[] 0} : f32[]\n"
     "  %y = broadcast(%z) {dimensions=[]} : f32[b,(h+1)/2,(w+1)/2,32]\n"
     "  %r = maximum(%a, %y) : f32[b,(h+1)/2,(w+1)/2,32]\n"
     "  %e = convolution(%r, %3) {strides=[1,1], low=[1,1], high=[1,1], " PLACES "} : f32[b,(h+1)/2,(w+1)/2,32]\n"
     "  %s = add(%e, %r) : f32[b,(h+1)/2,(w+1)/2,32]\n"
     "  return %s\n}",
     "GGW", false},
    /* convolutions without strides: with a bias and a sum, and with a longer kernel along one dimension */
    {"(%x: f32[b,h,w,32], %r: f32[b,h,w,48]) {\n"
     "  %1 = W f32[48,32,3,3]\n"
     "  %2 = W f32[48]\n"
     "  %3 = W f32[16,48,1,5]\n"
     "  %d = convolution(%x, %1) {strides=[1,1], low=[1,1], high=[1,1], " PLACES "} : f32[b,h,w,48]\n"
     "  %c = broadcast(%2) {dimensions=[3]} : f32[b,h,w,48]\n"
     "  %a = add(%d, %c) : f32[b,h,w,48]\n"
     "  %s = add(%a, %r) : f32[b,h,w,48]\n"
     "  %e = convolution(%s, %3) {strides=[1,1], low=[0,1], high=[0,3], " PLACES "} : f32[b,h,w,16]\n"
     "  return %e\n}",
     "WW", false},
    /* attention */
    {"(%q: f32[b,h,w,64], %k: f32[b,h,w,64], %v: f32[b,h,w,64]) {\n"
     "  %qk = dot(%q, %k) {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[3]} : "
     "f32[b,h,w,w]\n" SOFTMAX
     "  %r = dot(%p, %v) {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[2]} : f32[b,h,w,64]\n"
     "  return %r\n}",
     "-", false},
    /* attention with keys side by side, and heads that whole vectors do not divide */
    {"(%q: f32[b,h,w,20], %k: f32[b,h,20,w], %v: f32[b,h,w,24]) {\n"
     "  %qk = dot(%q, %k) {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[2]} : "
     "f32[b,h,w,w]\n" SOFTMAX
     "  %r = dot(%p, %v) {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[2]} : f32[b,h,w,24]\n"
     "  return %r\n}",
     "-", false},
    /* products with any number of columns, and with sums of any number of products */
    {"(%x: f32[b,h,w,24], %q: f32[b,h,40], %k: f32[b,w,40]) {\n"
     "  %s = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : f32[b,h,w]\n"
     "  %t = tanh(%s) : f32[b,h,w]\n"
     "  %o = dot(%t, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : f32[b,h,40]\n"
     "  return %o, %x\n}",
     "GGG-", false},
    /* convolutions that write their results as channels of a concatenation, next to channels that are copied */
    {"(%x: f32[b,h,w,24]) {\n"
     "  %1 = W f32[32,24,3,3]\n"
     "  %2 = W f32[8,24,1,1]\n"
     "  %3 = W f32[16,64,1,1]\n"
     "  %d = convolution(%x, %1) {strides=[1,1], low=[1,1], high=[1,1], " PLACES "} : f32[b,h,w,32]\n"
     "  %z = tanh(%d) : f32[b,h,w,32]\n"
     "  %e = convolution(%x, %2) {strides=[1,1], low=[0,0], high=[0,0], " PLACES "} : f32[b,h,w,8]\n"
     "  %c = concatenate(%e, %z, %x) {dimension=3} : f32[b,h,w,64]\n"
     "  %f = convolution(%c, %3) {strides=[1,1], low=[0,0], high=[0,0], " PLACES "} : f32[b,h,w,16]\n"
     "  return %f\n}",
     "WG-G", false},
    /* layers that differ in a factor and a shift, which their kernels then read (hlo/passes/fusion/lift_scalars.c) */
    {"(%x: f32[b,h,w,24]) {\n"
     "  %1 = W f32[24,24,1,1]\n"
     "  %2 = W f32[24,1,3,3]\n"
     "  %c1 = convolution(%x, %1) {strides=[1,1], low=[0,0], high=[0,0], " PLACES "} : f32[b,h,w,24]\n"
     "  %f1 = constant() {value=f32[] 0.125} : f32[]\n"
     "  %m1 = broadcast(%f1) {dimensions=[]} : f32[b,h,w,24]\n"
     "  %p1 = multiply(%c1, %m1) : f32[b,h,w,24]\n"
     "  %g1 = constant() {value=f32[] 2} : f32[]\n"
     "  %n1 = broadcast(%g1) {dimensions=[]} : f32[b,h,w,24]\n"
     "  %a1 = add(%p1, %n1) : f32[b,h,w,24]\n"
     "  %t1 = tanh(%a1) : f32[b,h,w,24]\n"
     "  %c2 = convolution(%t1, %1) {strides=[1,1], low=[0,0], high=[0,0], " PLACES "} : f32[b,h,w,24]\n"
     "  %f2 = constant() {value=f32[] 0.25} : f32[]\n"
     "  %m2 = broadcast(%f2) {dimensions=[]} : f32[b,h,w,24]\n"
     "  %p2 = multiply(%c2, %m2) : f32[b,h,w,24]\n"
     "  %g2 = constant() {value=f32[] -1} : f32[]\n"
     "  %n2 = broadcast(%g2) {dimensions=[]} : f32[b,h,w,24]\n"
     "  %a2 = add(%p2, %n2) : f32[b,h,w,24]\n"
     "  %t2 = tanh(%a2) : f32[b,h,w,24]\n"
     "  %c3 = convolution(%t2, %2) {strides=[1,1], low=[1,1], high=[1,1], " EACH_OF_24 "} : f32[b,h,w,24]\n"
     "  %f3 = constant() {value=f32[] 0.125} : f32[]\n"
     "  %m3 = broadcast(%f3) {dimensions=[]} : f32[b,h,w,24]\n"
     "  %p3 = multiply(%c3, %m3) : f32[b,h,w,24]\n"
     "  %g3 = constant() {value=f32[] 0.5} : f32[]\n"
     "  %n3 = broadcast(%g3) {dimensions=[]} : f32[b,h,w,24]\n"
     "  %a3 = add(%p3, %n3) : f32[b,h,w,24]\n"
     "  %t3 = tanh(%a3) : f32[b,h,w,24]\n"
     "  %c4 = convolution(%t3, %2) {strides=[1,1], low=[1,1], high=[1,1], " EACH_OF_24 "} : f32[b,h,w,24]\n"
     "  %f4 = constant() {value=f32[] 0.0625} : f32[]\n"
     "  %m4 = broadcast(%f4) {dimensions=[]} : f32[b,h,w,24]\n"
     "  %p4 = multiply(%c4, %m4) : f32[b,h,w,24]\n"
     "  %g4 = constant() {value=f32[] 0.25} : f32[]\n"
     "  %n4 = broadcast(%g4) {dimensions=[]} : f32[b,h,w,24]\n"
     "  %a4 = add(%p4, %n4) : f32[b,h,w,24]\n"
     "  %t4 = tanh(%a4) : f32[b,h,w,24]\n"
     "  return %t4\n}",
     "GGDD", false},
    /* a quantised network: a convolution with a zero point, whose sums are divided by 33, so that none is near the
       middle between two bytes; then a depthwise one */
    {"(%x: u8[b,8,h,w]) {\n"
     "  %3 = constant() {value=s32[] 3} : s32[]\n"
     "  %z = broadcast(%3) {dimensions=[]} : s32[b,8,h,w]\n"
     "  %i = convert(%x) {saturate=true, rounding=nearest} : s32[b,8,h,w]\n"
     "  %j = subtract(%i, %z) : s32[b,8,h,w]\n"
     "  %k = convert(%j) {saturate=true, rounding=nearest} : f32[b,8,h,w]\n"
     "  %s = constant() {value=f32[] 0.5} : f32[]\n"
     "  %t = broadcast(%s) {dimensions=[]} : f32[b,8,h,w]\n"
     "  %d = multiply(%k, %t) : f32[b,8,h,w]\n"
     "  %1 = W s8[16,8,3,3]\n"
     "  %4 = convert(%1) {saturate=true, rounding=nearest} : f32[16,8,3,3]\n"
     "  %5 = broadcast(%s) {dimensions=[]} : f32[16,8,3,3]\n"
     "  %6 = multiply(%4, %5) : f32[16,8,3,3]\n"
     "  %c = convolution(%d, %6) {strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], "
     "groups=1, layout=channels-first} : f32[b,16,h,w]\n"
     "  %8 = constant() {value=f32[] 8.25} : f32[]\n"
     "  %9 = broadcast(%8) {dimensions=[]} : f32[b,16,h,w]\n"
     "  %e = divide(%c, %9) : f32[b,16,h,w]\n"
     "  %f = round-nearest-even(%e) : f32[b,16,h,w]\n"
     "  %l = constant() {value=f32[] 0} : f32[]\n"
     "  %m = constant() {value=f32[] 255} : f32[]\n"
     "  %g = clamp(%l, %f, %m) : f32[b,16,h,w]\n"
     "  %q = convert(%g) {saturate=true, rounding=nearest} : u8[b,16,h,w]\n"
     "  %u = convert(%q) {saturate=true, rounding=nearest} : f32[b,16,h,w]\n"
     "  %v = broadcast(%s) {dimensions=[]} : f32[b,16,h,w]\n"
     "  %n = multiply(%u, %v) : f32[b,16,h,w]\n"
     "  %2 = W s8[16,1,3,3]\n"
     "  %10 = convert(%2) {saturate=true, rounding=nearest} : f32[16,1,3,3]\n"
     "  %11 = broadcast(%s) {dimensions=[]} : f32[16,1,3,3]\n"
     "  %12 = multiply(%10, %11) : f32[16,1,3,3]\n"
     "  %o = convolution(%n, %12) {strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1], "
     "groups=16, layout=channels-first} : f32[b,16,h,w]\n"
     "  return %o\n}",
     "-GD-", true},
};
enum { N_CASES = sizeof cases / sizeof *cases, N_SHARING = 5 }; /* the first ones share most of their code */

/* --- modules --- */

static uint64_t state = 1;

/* Returns the text of a constant, such as "constant() {value=f32[2] {1, 2}} : f32[2]". */
static const char *constant_text(const char *type) {
  const char *at = type, *numbers = "";
  shape s;
  ck_assert(!shape_parse(NULL, &at, &s));
  for (int64_t k = 0; k < shape_elements(&s); k++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    numbers = arena_printf(memory, "%s%s%d", numbers, k ? ", " : "", (int)(state >> 62) - 2);
    numbers = dtype_is_int((dtype)s.type) ? numbers : arena_printf(memory, "%s.%d", numbers, (int)(state >> 40) % 10);
  }
  return arena_printf(memory, "constant() {value=%s {%s}} : %s", type, numbers, type);
}

static const hlo_module *parse(const char *text) {
  const char *all = "", *rest = text, *found;
  while ((found = strstr(rest, "= W "))) {
    size_t before = (size_t)(found + 2 - rest), length = strcspn(found + 4, "\n");
    all = arena_printf(memory, "%s%.*s%s", all, (int)before, rest,
                       constant_text(arena_printf(memory, "%.*s", (int)length, found + 4)));
    rest = found + 4 + length;
  }
  return parse_entry(memory, arena_printf(memory, "%s%s", all, rest))->module;
}

enum { SIZES = 9, ROUNDS = 2 };
static const int64_t sizes[SIZES][3] = {{1, 1, 1}, {2, 5, 7},   {1, 40, 3}, {0, 4, 5},  {3, 0, 2},
                                        {2, 3, 0}, {1, 17, 33}, {5, 1, 64}, {2, 31, 20}};

typedef struct compilation {
  const hlo_module *module;
  const function_set *functions;
  const char *cpu;
  general_program *out;
} compilation;

static status compile(void *data) {
  const compilation *c = data;
  return general_program_make(memory, &cpu_compiler, &cpu_target, c->module, c->functions, c->cpu, NULL, c->out);
}

static const char *letter_of(const char *note) {
  return strstr(note, "gemm:") ? "G" : strstr(note, "winograd:") ? "W" : strstr(note, "depthwise:") ? "D" : "-";
}

static const char *thunks_of(const rt_program *p) {
  const char *all = "";
  for (uint32_t k = 0; k < p->body.n; k++) {
    all = arena_printf(memory, "%s%s", all, letter_of(p->body.thunks[k].note));
  }
  return all;
}

/* Returns LLVM's name of the processor for which functions are. */
static const char *cpu_of(const function_set *functions) {
  const char *cpu = strchr(functions->target, ' ') + 1;
  return arena_strndup(memory, cpu, strcspn(cpu, " "));
}

/* Each case is compiled with all functions that it calls, with calls of the precompiled ones for this processor, and
 * with calls of those for the least able processor. */
enum { OWN, BEST, LEAST, WAYS };

START_TEST(contractions) {
  const program_case *test = &cases[_i / WAYS];
  const hlo_module *m = parse(test->text);
  general_program p = {0};
  const function_set *best = cpu_target.functions();
  const function_set *functions = _i % WAYS == OWN || !best ? NULL : _i % WAYS == BEST ? best : cpu_function_sets;
  const char *cpu = functions && _i % WAYS == LEAST ? cpu_of(functions) : NULL;
  ASSERT_OK(guard_run(compile, &(compilation){m, functions, cpu, &p}));
  ck_assert_int_eq(rt_processor_has_functions(p.program->cpu), functions != NULL);
  emit_target t;
  ASSERT_OK(emit_target_init(memory, NULL, cpu ? cpu : "native", 0, &t));
  if (t.dots || !test->bytes) {
    ck_assert_str_eq(thunks_of(p.program), test->thunks);
  }
  for (int k = 0; k < SIZES; k++) {
    hlo_module *bound;
    ASSERT_OK(general_program_bind(memory, m, "bhw", sizes[k], &bound));
    status s = general_program_compare(&p, bound, SAME_ROUNDED, ROUNDS);
    ck_assert_msg(!s, "sizes %d: %s", k, status_message(s));
  }
  general_program_destroy(&p);
}
END_TEST

static uint64_t code_bytes(const hlo_module *m, const function_set *functions) {
  general_program p = {0};
  uint64_t bytes = 0;
  ASSERT_OK(guard_run(compile, &(compilation){m, functions, NULL, &p}));
  for (uint32_t k = 0; k < p.program->n_code; k++) {
    bytes += p.program->code[k].size;
  }
  general_program_destroy(&p);
  return bytes;
}

/* The functions that contractions of f32, and attention, share are among the precompiled ones, so that their code is
 * not in the program: what is left, names included, is less than three quarters. */
START_TEST(calls_precompiled) {
  const hlo_module *m = parse(cases[_i].text);
  const function_set *functions = cpu_target.functions();
  if (functions) {
    ck_assert_uint_lt(4 * code_bytes(m, functions), 3 * code_bytes(m, NULL));
  }
}
END_TEST

int main(void) {
  TCase *c = tcase_create("product-programs");
  tcase_set_timeout(c, 120);
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_loop_test(c, calls_precompiled, 0, N_SHARING);
  tcase_add_loop_test(c, contractions, 0, WAYS * N_CASES);
  return run_suite("product-programs", c);
}
