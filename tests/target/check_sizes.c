/* check_sizes.c - one program of the cpu target for all sizes: bound to many sizes it computes what the evaluator
 * computes from static copies of its module.  Kernels of instructions that differ only in the names of their sizes have
 * equal texts. */
#include <check.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend_cpu/compile/target.h"
#include "backend_cpu/runtime/target.h"
#include "hlo/text/text.h"
#include "lower/kernels/outline.h"
#include "runtime/program/sizes.h"
#include "tests/hlo/general_program.h"
#include "tests/target/two_targets.h"
#include "tests/unit/hlo/hlo_case.h"

static arena *memory;
static char path[] = "/tmp/check-sizes-XXXXXX";

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

/* The first parameter has the dimensions n and m. */
static const char *const modules[] = {
    /* movement, a product with any number of rows, columns and products in a sum, and a result that is a part of
       another one */
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
    /* checks whose limits are sizes */
    "(%x: f32[n,m]) {\n"
    "  %i = iota() {dimension=0} : s64[n,2]\n"
    "  %o = constant() {value=s64[] 1} : s64[]\n"
    "  %a = broadcast(%o) {dimensions=[]} : s64[n,2]\n"
    "  %j = add(%i, %a) : s64[n,2]\n"
    "  %k = negate(%j) : s64[n,2]\n"
    "  check(%j) {name=\"j\", limits=[n+1,2*n+1], from_end=false} : ()\n"
    "  check(%k) {name=\"k\", limits=[n], from_end=true} : ()\n"
    "  return %j, %k, %x\n}",
    /* softmax of rows, a product with constant weights, a bias and an activation */
    "(%x: f32[n,m], %w: f32[24,40], %v: f32[n,24], %b: f32[40]) {\n"
    "  %h = reduce(%x) {dimensions=[1], reducer=maximum} : f32[n]\n"
    "  %i = broadcast(%h) {dimensions=[0]} : f32[n,m]\n"
    "  %j = subtract(%x, %i) : f32[n,m]\n"
    "  %e = exponential(%j) : f32[n,m]\n"
    "  %s = reduce(%e) {dimensions=[1], reducer=add} : f32[n]\n"
    "  %k = broadcast(%s) {dimensions=[0]} : f32[n,m]\n"
    "  %p = divide(%e, %k) : f32[n,m]\n"
    "  %d = dot(%v, %w) {lhs_batch=[], rhs_batch=[], lhs_contract=[1], rhs_contract=[0]} : f32[n,40]\n"
    "  %c = broadcast(%b) {dimensions=[1]} : f32[n,40]\n"
    "  %a = add(%d, %c) : f32[n,40]\n"
    "  %t = tanh(%a) : f32[n,40]\n"
    "  return %p, %t\n}",
    /* padding around a dimension of extent 1, so that whole slices of the result are padding */
    "(%x: f32[n,m], %z: f32[n,1,4,4]) {\n"
    "  %c = constant() {value=f32[] 0.5} : f32[]\n"
    "  %p = pad(%z, %c) {low=[1,1,-1,0], high=[3,2,2,3], interior=[0,0,0,0]} : f32[n+4,4,5,7]\n"
    "  return %p, %x\n}",
    /* positions that begin at a size, as those of tokens that follow others */
    "(%x: f32[n,m], %t: f32[500,8]) {\n"
    "  %p = sizes() {elements=[n]} : s64[]\n"
    "  %i = iota() {dimension=0} : s64[m]\n"
    "  %b = broadcast(%p) {dimensions=[]} : s64[m]\n"
    "  %a = add(%i, %b) : s64[m]\n"
    "  %c = reshape(%a) : s64[1,m]\n"
    "  %g = gather(%t, %c) {offset_dims=[2], collapsed_dims=[0], operand_batch=[], indices_batch=[], index_map=[0],"
    " index_vector_dim=2, sizes=[1,8]} : f32[1,m,8]\n"
    "  %u = add(%g, %g) : f32[1,m,8]\n"
    "  return %u\n}",
    /* columns of an array that are overwritten, by computed numbers and by a transposed array */
    "(%x: f32[n,m], %a: f32[n,8], %b: f32[n,3], %t: f32[3,n]) {\n"
    "  %s = constant() {value=s64[2] {0, 4}} : s64[2]\n"
    "  %e = exponential(%b) : f32[n,3]\n"
    "  %u = dynamic-update-slice(%a, %e, %s) : f32[n,8]\n"
    "  %p = transpose(%t) {permutation=[1,0]} : f32[n,3]\n"
    "  %o = constant() {value=s64[2] {0, 1}} : s64[2]\n"
    "  %v = dynamic-update-slice(%u, %p, %o) : f32[n,8]\n"
    "  %c = add(%a, %v) : f32[n,8]\n"
    "  return %v, %c, %x\n}",
    /* one element of a constant, at a position that is a size */
    "(%x: f32[n,m]) {\n"
    "  %i = iota() {dimension=0} : s8[66]\n"
    "  %s = slice(%i) {starts=[n], limits=[n+1], strides=[1]} : s8[1]\n"
    "  return %s, %x\n}",
    /* batched products, as of an attention that is not fused */
    "(%x: f32[n,m], %q: f32[3,n,16], %k: f32[3,m,16]) {\n"
    "  %s = dot(%q, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[2]} : f32[3,n,m]\n"
    "  %b = broadcast(%x) {dimensions=[1,2]} : f32[3,n,m]\n"
    "  %t = add(%s, %b) : f32[3,n,m]\n"
    "  %o = dot(%t, %k) {lhs_batch=[0], rhs_batch=[0], lhs_contract=[2], rhs_contract=[1]} : f32[3,n,16]\n"
    "  return %o\n}",
    /* attention of heads that share keys and values, with the past before the new keys */
    "(%x: f32[n,m], %q: f32[1,n,4,16], %k: f32[1,2,n,16], %past: f32[1,2,m,16], %v: f32[1,2,n+m,16]) {\n"
    "  %c = concatenate(%past, %k) {dimension=2} : f32[1,2,n+m,16]\n"
    "  %kb = broadcast(%c) {dimensions=[0,1,3,4]} : f32[1,2,2,n+m,16] %k4 = reshape(%kb) : f32[1,4,n+m,16]\n"
    "  %vb = broadcast(%v) {dimensions=[0,1,3,4]} : f32[1,2,2,n+m,16] %v4 = reshape(%vb) : f32[1,4,n+m,16]\n"
    "  %qk = dot(%q, %k4) {lhs_batch=[0,2], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[3]} : f32[1,4,n,n+m]\n"
    "  %m = reduce(%qk) {dimensions=[3], reducer=maximum} : f32[1,4,n]\n"
    "  %mb = broadcast(%m) {dimensions=[0,1,2]} : f32[1,4,n,n+m] %d = subtract(%qk, %mb) : f32[1,4,n,n+m]\n"
    "  %e = exponential(%d) : f32[1,4,n,n+m] %s = reduce(%e) {dimensions=[3], reducer=add} : f32[1,4,n]\n"
    "  %sb = broadcast(%s) {dimensions=[0,1,2]} : f32[1,4,n,n+m] %p = divide(%e, %sb) : f32[1,4,n,n+m]\n"
    "  %pv = dot(%p, %v4) {lhs_batch=[0,1], rhs_batch=[0,1], lhs_contract=[3], rhs_contract=[2]} : f32[1,4,n,16]\n"
    "  %y = transpose(%pv) {permutation=[0,2,1,3]} : f32[1,n,4,16]\n"
    "  return %c, %y\n}",
    /* a depthwise convolution with constant weights, a bias and an activation */
    "(%x: f32[n,m], %i: f32[n,4,m+1,5], %b: f32[4]) {\n"
    "  %w = constant() {value=f32[4,1,3,3] {1, 2, 3, 4, 5, 6, 7, 8, 9, -1, 0.5, 2, 1, -3, 1, 0, 2, 1, 3, 1, 2, -1, 0, "
    "1,"
    " 2, 2, 1, 0.25, 1, 4, 1, 3, -2, 1, 0, 5}} : f32[4,1,3,3]\n"
    "  %c = convolution(%i, %w) {strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1],"
    " groups=4, layout=channels-first} : f32[n,4,m+1,5]\n"
    "  %bb = broadcast(%b) {dimensions=[1]} : f32[n,4,m+1,5]\n"
    "  %a = add(%c, %bb) : f32[n,4,m+1,5]\n"
    "  %t = tanh(%a) : f32[n,4,m+1,5]\n"
    "  return %t\n}",
    /* transposed convolutions: one whose kernel is as long as the distance between elements, and one whose kernel is
       longer, so that its result is cut */
    "(%x: f32[n,m], %i: f32[n,2,m+1,n+2]) {\n"
    "  %w = constant() {value=f32[3,2,2,2] {1, 2, 3, 4, 5, 6, 7, 8, 9, -1, 0.5, 2, 1, -3, 1, 0, 2, 1, 3, 1, 2, -1, 0,"
    " 1}} : f32[3,2,2,2]\n"
    "  %c = convolution(%i, %w) {strides=[1,1], low=[1,1], high=[1,1], lhs_dilation=[2,2], rhs_dilation=[1,1],"
    " groups=1, layout=channels-first} : f32[n,3,2*m+2,2*n+4]\n"
    "  %u = constant() {value=f32[2,3,1,4] {1, 2, 3, 4, 5, 6, 7, 8, 9, -1, 0.5, 2, 1, -3, 1, 0, 2, 1, 3, 1, 2, -1, 0,"
    " 1}} : f32[2,3,1,4]\n"
    "  %d = convolution(%c, %u) {strides=[1,1], low=[0,2], high=[0,3], lhs_dilation=[1,3], rhs_dilation=[1,1],"
    " groups=1, layout=channels-first} : f32[n,2,2*m+2,6*n+12]\n"
    "  return %c, %d\n}",
    /* convolutions with padding and stride, one of them depthwise, and a sum for each channel */
    "(%x: f32[n,m], %i: f32[n,5,m+4,9], %w: f32[8,5,3,3], %u: f32[8,1,3,3]) {\n"
    "  %c = convolution(%i, %w) {strides=[1,2], low=[1,1], high=[1,1], lhs_dilation=[1,1], rhs_dilation=[1,1],"
    " groups=1, layout=channels-first} : f32[n,8,m+4,5]\n"
    "  %z = constant() {value=f32[] 0} : f32[]\n"
    "  %b = broadcast(%z) {dimensions=[]} : f32[n,8,m+4,5]\n"
    "  %r = maximum(%c, %b) : f32[n,8,m+4,5]\n"
    "  %d = convolution(%r, %u) {strides=[1,1], low=[0,1], high=[0,1], lhs_dilation=[1,1], rhs_dilation=[1,1],"
    " groups=8, layout=channels-first} : f32[n,8,m+2,5]\n"
    "  %s = reduce(%d) {dimensions=[2,3], reducer=add} : f32[n,8]\n"
    "  return %d, %s\n}",
    /* sorts of lines that are contiguous and that are not, of all and of the first few elements, with their positions
     */
    "(%x: f32[n,m], %y: s32[m+3,n], %z: u8[n,m]) {\n"
    "  %a, %b = sort(%x, %z) {dimension=0, descending=true} : f32[n,m], u8[n,m]\n"
    "  %i = iota() {dimension=0} : s64[m+3,n]\n"
    "  %c, %d = sort(%y, %i) {dimension=0, descending=false} : s32[m+3,n], s64[m+3,n]\n"
    "  %e = slice(%c) {starts=[0,0], limits=[2,n], strides=[1,1]} : s32[2,n]\n"
    "  %f = slice(%d) {starts=[1,0], limits=[3,n], strides=[1,1]} : s64[2,n]\n"
    "  %g = negate(%x) : f32[n,m]\n"
    "  %h = sort(%g) {dimension=1, descending=false} : f32[n,m]\n"
    "  %j = sizes() {elements=[n,m,4,2*n,1]} : s64[5]\n"
    "  %k = sort(%j) {dimension=0, descending=true} : s64[5]\n"
    "  return %a, %b, %e, %f, %h, %k\n}",
    /* non-maximum suppression for any number of classes and boxes */
    "(%x: f32[n,m], %l: f32[2,m,2], %s: f32[2,n,m], %k: s64[]) {\n"
    "  %a = abs(%l) : f32[2,m,2]\n"
    "  %h = add(%l, %a) : f32[2,m,2]\n"
    "  %c = concatenate(%l, %h) {dimension=2} : f32[2,m,4]\n"
    "  %o = constant() {value=f32[] 0.3} : f32[]\n"
    "  %b, %t = non-max-suppression(%c, %s, %k, %o, %o) {limit=9} : s64[2*n*min(m,9),3], s64[]\n"
    "  %w = constant() {value=s64[] 1000} : s64[]\n"
    "  %d, %u = non-max-suppression(%c, %s, %w, %o) {limit=400} : s64[2*n*min(m,400),3], s64[]\n"
    "  return %b, %t, %d, %u\n}",
    /* random words, as many as the sizes say */
    "(%x: f32[n,m], %s: u64[1]) {\n"
    "  %a = rng-bit-generator(%s) {algorithm=mt19937} : u32[n,m+5]\n"
    "  %b = rng-bit-generator(%s) {algorithm=mt19937} : u64[30*n]\n"
    "  return %a, %b, %x\n}",
};

static hlo_module *parse(const char *text) { return parse_entry(memory, text)->module; }

enum { SIZES = 7, ROUNDS = 2 };
static const int64_t sizes[SIZES][2] = {{3, 5}, {1, 1}, {0, 4}, {7, 0}, {1, 40}, {33, 2}, {64, 129}};

static status compile_own(struct hlo_module *m, const rt_compile_options *options, arena *a, rt_program **out,
                          rt_report *report) {
  rt_compile_options own = *options;
  own.own_kernels = true;
  TRY(cpu_compiler.compile(m, &own, a, out, report));
  CHECK_THAT(is_of_own_kernels(&(*out)->body), STATUS_INTERNAL, "a thunk is not one of own kernels");
  return NULL;
}

static const rt_compiler own_compiler = {.abi = RT_ABI, .name = "cpu", .compile = compile_own};

typedef struct wanted_program {
  const hlo_module *module;
  const rt_compiler *compiler;
  const char *file;
  general_program *program;
} wanted_program;

static status compile(void *data) {
  const wanted_program *w = data;
  return general_program_make(memory, w->compiler, &cpu_target, w->module, NULL, NULL, w->file, w->program);
}

/* Each module is run as it was compiled, after writing it to a file and reading it, and as a program of own kernels. */
START_TEST(computes_like_the_evaluator) {
  const hlo_module *m = parse(modules[_i / 3]);
  general_program p = {0};
  wanted_program w = {m, _i % 3 == 2 ? &own_compiler : &cpu_compiler, _i % 3 == 1 ? path : NULL, &p};
  ASSERT_OK(guard_run(compile, &w));
  ck_assert(!rt_program_is_static(p.program) && !rt_executable_binding(p.executable));
  for (int k = 0; k < SIZES; k++) {
    hlo_module *bound;
    ASSERT_OK(general_program_bind(memory, m, "nm", sizes[k], &bound));
    status s = general_program_compare(&p, bound, SAME_ROUNDED, ROUNDS);
    ck_assert_msg(!s, "%d x %d: %s", (int)sizes[k][0], (int)sizes[k][1], status_message(s));
  }
  general_program_destroy(&p);
}
END_TEST

static const char *text_alone(const hlo_module *m, int result, lower_outline_symbols *symbols) {
  const char *text;
  const hlo_instr *alone = lower_outline(memory, m->entry->roots[result].def, LOWER_OUTLINE_KERNEL, -1, symbols);
  ASSERT_OK(hlo_print(memory, alone->parent->module, &(hlo_print_options){.no_sources = true}, &text, NULL));
  return text;
}

START_TEST(names_of_sizes_do_not_matter) {
  const hlo_module *m = parse(
      "(%x: f32[n,m], %y: f32[(n+1)/2,4*m]) {\n"
      "  %a = transpose(%x) {permutation=[1,0]} : f32[m,n]\n"
      "  %b = transpose(%y) {permutation=[1,0]} : f32[4*m,(n+1)/2]\n"
      "  %d = transpose(%x) {permutation=[1,0]} : f32[m,n]\n"
      "  return %a, %b, %d\n}");
  lower_outline_symbols a = {0}, b = {0}, d = {0};
  const char *first = text_alone(m, 0, &a), *second = text_alone(m, 1, &b);
  ck_assert_str_eq(first, text_alone(m, 2, &d));
  ck_assert_str_ne(first, second); /* 4*m stays a multiple of 4 */
  ck_assert_uint_eq(a.n, 2);
  ck_assert_uint_eq(b.n, 2);
  ck_assert_str_eq(dim_print(memory, m->dims, b.sizes[0]), "(n+1)/2");
  ck_assert_str_eq(dim_print(memory, m->dims, b.sizes[1]), "m");
}
END_TEST

int main(void) {
  TCase *c = tcase_create("sizes");
  tcase_set_timeout(c, 120);
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_loop_test(c, computes_like_the_evaluator, 0, 3 * (int)(sizeof modules / sizeof *modules));
  tcase_add_test(c, names_of_sizes_do_not_matter);
  return run_suite("sizes", c);
}
