/* check_emit_sizes_loops.c - compares kernels that take sizes as arguments with the reference evaluator: gathers,
 * updates, scans and windows, and functions of interleaved columns. */
#include "tests/unit/emit/sizes_case.h"

enum { ROUNDS = 24 };

#define CHECK_TEXTS(texts) SIZES_CHECK_TEXTS(texts, 0, ROUNDS)

/* --- functions of interleaved columns --- */

static const char *const interleaved_texts[] = {
    "(%x: f32[b,2,n]) {\n%t = transpose(%x) {permutation=[0,2,1]} : f32[b,n,2]\n%y = logistic(%t) : "
    "f32[b,n,2]\nreturn %y\n}",
    "(%x: f32[3,3,n,m], %y: f32[n,3,m,3]) {\n%t = transpose(%x) {permutation=[2,0,3,1]} : f32[n,3,m,3]\n%e = tanh(%t) "
    ": f32[n,3,m,3]\n%z = add(%e, %y) : f32[n,3,m,3]\nreturn %z, %e\n}",
    "(%x: f32[2,n]) {\n%t = transpose(%x) {permutation=[1,0]} : f32[n,2]\n%y = exponential(%t) : "
    "f32[n,2]\nreturn %y\n}",
};

/* The last dimension is shorter than a vector, so vectors reach over several positions of the dimension before it. The
 * functions have errors of at most 2 ULP (emit/math/math.h); the reference's are the C library's. */
START_TEST(interleaved) { SIZES_CHECK_TEXTS(interleaved_texts, 0x1p-21, ROUNDS); }
END_TEST

/* --- gathers and slices at computed positions --- */

#define TAKE "operand_batch=[], indices_batch=[], "

static const char *const gather_texts[] = {
    /* gathers of rows of a table: only the indices have symbolic sizes, then the table has, too */
    "(%x: f32[50,24], %i: s64[b,n]) {\n%y = gather(%x, %i) {offset_dims=[2], collapsed_dims=[0], " TAKE
    "index_map=[0], index_vector_dim=2, sizes=[1,24]} : f32[b,n,24]\nreturn %y\n}",
    "(%x: f32[n+1,m], %i: s32[b], %z: f32[n,m]) {\n%y = gather(%x, %i) {offset_dims=[1], collapsed_dims=[0], " TAKE
    "index_map=[0], index_vector_dim=1, sizes=[1,m]} : f32[b,m]\nreturn %y\n}",
    /* along the last dimension, and along the middle one */
    "(%x: f32[n,m+1], %i: s64[b], %z: f32[m]) {\n%y = gather(%x, %i) {offset_dims=[0], collapsed_dims=[1], " TAKE
    "index_map=[1], index_vector_dim=1, sizes=[n,1]} : f32[n,b]\nreturn %y\n}",
    "(%x: f32[b,n+2,m], %i: s64[3], %z: f32[n]) {\n%y = gather(%x, %i) {offset_dims=[0,2], collapsed_dims=[1], " TAKE
    "index_map=[1], index_vector_dim=1, sizes=[b,1,m]} : f32[b,3,m]\n%w = negate(%y) : f32[b,3,m]\nreturn %w\n}",
    /* windows, and an index for each row */
    "(%x: f32[n+4,m+3], %i: s64[b,2], %z: f32[n,m]) {\n%y = gather(%x, %i) {offset_dims=[1,2], collapsed_dims=[], " TAKE
    "index_map=[0,1], index_vector_dim=1, sizes=[3,m]} : f32[b,3,m]\nreturn %y\n}",
    "(%x: f32[n,m+1], %i: s64[n,b], %z: f32[m]) {\n%y = gather(%x, %i) {offset_dims=[], collapsed_dims=[1], "
    "operand_batch=[0], indices_batch=[0], index_map=[1], index_vector_dim=2, sizes=[1,1]} : f32[n,b]\nreturn %y\n}",
    /* from an array that is computed, with a result that is summed */
    "(%x: f32[n+1,m], %i: s64[b], %z: f32[n]) {\n%w = negate(%x) : f32[n+1,m]\n%y = gather(%w, %i) {offset_dims=[1], "
    "collapsed_dims=[0], " TAKE
    "index_map=[0], index_vector_dim=1, sizes=[1,m]} : f32[b,m]\n%s = reduce(%y) "
    "{dimensions=[1], reducer=add} : f32[b]\nreturn %s\n}",
    "(%x: f32[n,m], %i: s64[2]) {\n%y = dynamic-slice(%x, %i) {sizes=[n,m]} : f32[n,m]\nreturn %y\n}",
    "(%x: f32[n+2,m], %i: s64[2], %z: f32[n]) {\n%y = dynamic-slice(%x, %i) {sizes=[n,m]} : f32[n,m]\nreturn %y\n}",
    "(%x: f32[n,m+5], %i: s64[2], %z: f32[m]) {\n%y = dynamic-slice(%x, %i) {sizes=[n,4]} : f32[n,4]\n%w = "
    "negate(%y) : f32[n,4]\nreturn %w\n}",
};

START_TEST(gathers) { CHECK_TEXTS(gather_texts); }
END_TEST

/* --- updates --- */

#define UPDATE(map, vector, reducer) \
  "operand_batch=[], indices_batch=[], index_map=" map ", index_vector_dim=" vector ", reducer=" reducer

static const char *const update_texts[] = {
    "(%x: f32[n+2,m], %u: f32[2,m], %i: s64[2], %z: f32[n]) {\n%y = dynamic-update-slice(%x, %u, %i) : "
    "f32[n+2,m]\nreturn %y\n}",
    "(%x: f32[b,n+m,16], %u: f32[b,m,16], %i: s64[3], %z: f32[n]) {\n%y = dynamic-update-slice(%x, %u, %i) : "
    "f32[b,n+m,16]\nreturn %y\n}",
    "(%x: f32[n,m+3], %u: f32[n,3], %i: s64[2], %z: f32[m]) {\n%v = negate(%u) : f32[n,3]\n%y = "
    "dynamic-update-slice(%x, %v, %i) : f32[n,m+3]\nreturn %y\n}",
    "(%x: f32[n+m,m+1], %u: f32[n,m], %i: s64[2]) {\n%y = dynamic-update-slice(%x, %u, %i) : f32[n+m,m+1]\n%w = "
    "negate(%y) : f32[n+m,m+1]\nreturn %w\n}",
    "(%x: f32[30,24], %u: f32[n,m], %i: s64[2]) {\n%y = dynamic-update-slice(%x, %u, %i) : f32[30,24]\nreturn %y\n}",
    /* rows, also of more columns than a block has, elements and windows; indices may be outside of the array and may
       occur several times */
    "(%x: f32[n,m], %i: s64[b,1], %u: f32[b,m]) {\n%y = scatter(%x, %i, %u) {offset_dims=[1], "
    "collapsed_dims=[0], " UPDATE("[0]", "1", "replace") "} : f32[n,m]\nreturn %y\n}",
    "(%x: f32[n,m], %i: s64[b,1], %u: f32[b,m]) {\n%y = scatter(%x, %i, %u) {offset_dims=[1], "
    "collapsed_dims=[0], " UPDATE("[0]", "1", "add") "} : f32[n,m]\nreturn %y\n}",
    "(%x: f32[12,n], %i: s64[b,2], %u: f32[b]) {\n%y = scatter(%x, %i, %u) {offset_dims=[], "
    "collapsed_dims=[0,1], " UPDATE("[0,1]", "1", "maximum") "} : f32[12,n]\nreturn %y\n}",
    "(%x: f32[n,m], %i: s32[b,2], %u: f32[b,2,3]) {\n%y = scatter(%x, %i, %u) {offset_dims=[1,2], "
    "collapsed_dims=[], " UPDATE("[0,1]", "1", "minimum") "} : f32[n,m]\nreturn %y\n}",
    "(%x: f32[n,24], %i: s64[b,1], %u: f32[b,24]) {\n%w = negate(%x) : f32[n,24]\n%v = negate(%u) : f32[b,24]\n%y = "
    "scatter(%w, %i, %v) {offset_dims=[1], collapsed_dims=[0], " UPDATE("[0]", "1",
                                                                        "replace") "} : f32[n,24]\nreturn %y\n}",
    "(%x: f32[n,m+1500], %i: s64[b,1], %u: f32[b,m+1500], %z: f32[m]) {\n%y = scatter(%x, %i, %u) {offset_dims=[1], "
    "collapsed_dims=[0], " UPDATE("[0]", "1", "replace") "} : f32[n,m+1500]\nreturn %y\n}",
    "(%x: s64[n,m], %i: s64[n,b,1], %u: s64[n,b]) {\n%y = scatter(%x, %i, %u) {offset_dims=[], collapsed_dims=[1], "
    "operand_batch=[0], indices_batch=[0], index_map=[1], index_vector_dim=2, reducer=add} : s64[n,m]\nreturn %y\n}",
};

START_TEST(updates) { CHECK_TEXTS(update_texts); }
END_TEST

/* --- scans and random numbers --- */

static const char *const scan_texts[] = {
    "(%x: f32[n,m]) {\n%y = cumulative(%x) {dimension=1, reducer=add, exclusive=false, backward=false} : "
    "f32[n,m]\nreturn %y\n}",
    "(%x: f32[n,m]) {\n%y = cumulative(%x) {dimension=0, reducer=add, exclusive=true, backward=true} : "
    "f32[n,m]\nreturn %y\n}",
    "(%x: s32[b,n,m]) {\n%y = cumulative(%x) {dimension=1, reducer=add, exclusive=false, backward=true} : "
    "s32[b,n,m]\nreturn %y\n}",
    "(%x: f32[b,n,24]) {\n%w = negate(%x) : f32[b,n,24]\n%y = cumulative(%w) {dimension=1, reducer=maximum, "
    "exclusive=false, backward=false} : f32[b,n,24]\nreturn %y\n}",
    "(%x: c64[n,3]) {\n%y = cumulative(%x) {dimension=0, reducer=add, exclusive=true, backward=false} : "
    "c64[n,3]\nreturn %y\n}",
    "(%s: u64[3], %z: f32[n,m]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u32[n,m]\nreturn %y\n}",
    "(%s: u64[3], %z: f32[n,m]) {\n%y = rng-bit-generator(%s) {algorithm=philox} : u64[m,n]\n%t = transpose(%y) "
    "{permutation=[1,0]} : u64[n,m]\nreturn %t\n}",
};

START_TEST(scans) { CHECK_TEXTS(scan_texts); }
END_TEST

/* --- windows --- */

#define PLAIN "rhs_dilation=[1,1,1,1], reducer="

static const char *const window_texts[] = {
    /* channels last, and first; without padding, with padding, and with padding that not every window reaches */
    "(%x: f32[b,h,w,8]) {\n%y = reduce-window(%x) {window=[1,3,3,1], strides=[1,1,1,1], low=[0,1,1,0], "
    "high=[0,1,1,0], " PLAIN "maximum} : f32[b,h,w,8]\nreturn %y\n}",
    "(%x: f32[b,2*h+1,2*w,5], %z: f32[h,w]) {\n%y = reduce-window(%x) {window=[1,2,2,1], strides=[1,2,2,1], "
    "low=[0,0,0,0], high=[0,0,0,0], " PLAIN "add} : f32[b,h,w,5]\nreturn %y\n}",
    "(%x: f32[b,3,h,w]) {\n%y = reduce-window(%x) {window=[1,1,3,3], strides=[1,1,1,1], low=[0,0,1,1], "
    "high=[0,0,1,1], " PLAIN "maximum} : f32[b,3,h,w]\nreturn %y\n}",
    "(%x: f32[b,3,h,w]) {\n%y = reduce-window(%x) {window=[1,1,3,3], strides=[1,1,2,2], low=[0,0,1,1], "
    "high=[0,0,1,1], " PLAIN
    "maximum} : f32[b,3,(h+1)/2,(w+1)/2]\n%z = negate(%y) : "
    "f32[b,3,(h+1)/2,(w+1)/2]\nreturn %z\n}",
    "(%x: f32[h+4,w+4], %z: f32[h,w]) {\n%y = reduce-window(%x) {window=[3,3], strides=[1,1], low=[0,0], high=[0,0], "
    "rhs_dilation=[2,2], reducer=add} : f32[h,w]\nreturn %y\n}",
    "(%x: f32[h,w]) {\n%y = reduce-window(%x) {window=[5,5], strides=[1,1], low=[4,0], high=[0,4], "
    "rhs_dilation=[1,1], reducer=minimum} : f32[h,w]\nreturn %y\n}",
    "(%x: f32[7,w,16]) {\n%n = negate(%x) : f32[7,w,16]\n%y = reduce-window(%n) {window=[3,1,1], strides=[2,1,1], "
    "low=[1,0,0], high=[1,0,0], rhs_dilation=[1,1,1], reducer=maximum} : f32[4,w,16]\nreturn %y\n}",
    "(%x: f32[b,w]) {\n%y = reduce-window(%x) {window=[1,7], strides=[1,3], low=[0,3], high=[0,3], "
    "rhs_dilation=[1,1], reducer=add} : f32[b,(w+2)/3]\nreturn %y\n}",
    "(%x: f32[b,h,w+2], %z: f32[w]) {\n%n = negate(%x) : f32[b,h,w+2]\n%y = reduce-window(%n) {window=[1,3,3], "
    "strides=[1,1,1], low=[0,1,0], high=[0,1,0], rhs_dilation=[1,1,1], reducer=maximum} : f32[b,h,w]\n%a = "
    "reduce-window(%x) {window=[1,1,3], strides=[1,1,1], low=[0,0,0], high=[0,0,0], rhs_dilation=[1,1,1], "
    "reducer=add} : f32[b,h,w]\n%s = add(%y, %a) : f32[b,h,w]\nreturn %s\n}",
    "(%x: f32[b,h,20]) {\n%y = reduce-window(%x) {window=[1,2,2], strides=[1,1,1], low=[0,1,1], high=[0,0,0], "
    "rhs_dilation=[1,1,1], reducer=maximum} : f32[b,h,20]\nreturn %y\n}",
    "(%x: s32[6,w]) {\n%y = reduce-window(%x) {window=[3,3], strides=[2,1], low=[1,2], high=[1,2], "
    "rhs_dilation=[1,2], reducer=maximum} : s32[3,w]\n%z = negate(%y) : s32[3,w]\nreturn %z\n}",
    /* blocks that lie in the padding */
    "(%x: f32[w]) {\n%y = reduce-window(%x) {window=[3], strides=[1], low=[3000], high=[5000], rhs_dilation=[1], "
    "reducer=maximum} : f32[w+7998]\nreturn %y\n}",
    "(%x: bf16[h,w,4]) {\n%y = reduce-window(%x) {window=[2,3,1], strides=[1,1,1], low=[1,1,0], high=[0,1,0], "
    "rhs_dilation=[1,1,1], reducer=maximum} : bf16[h,w,4]\nreturn %y\n}",
    "(%x: f32[b,h,w]) {\n%y = arg-reduce-window(%x) {window=[1,3,3], strides=[1,1,1], low=[0,1,1], high=[0,1,1], "
    "rhs_dilation=[1,1,1]} : s64[b,h,w]\nreturn %y\n}",
    "(%x: f32[b,h,w,6]) {\n%y = arg-reduce-window(%x) {window=[1,3,2,1], strides=[1,2,1,1], low=[0,1,0,0], "
    "high=[0,1,1,0], rhs_dilation=[1,1,1,1]} : s64[b,(h+1)/2,w,6]\nreturn %y\n}",
};

START_TEST(windows) { CHECK_TEXTS(window_texts); }
END_TEST

/* --- contractions as plain loops --- */

#define CONV(low, high, gaps, layout) \
  "low=" low ", high=" high ", lhs_dilation=" gaps ", rhs_dilation=[1,1], groups=1, layout=channels-" layout "} : "

/* Sums of products of the test's numbers are exact.  Some convolutions have padding, and some have gaps between the
 * elements of the operand. */
static const char *const contraction_texts[] = {
    "(%x: f32[b,3,h,w], %k: f32[4,3,3,3]) {\n%y = convolution(%x, %k) {strides=[1,1], " CONV(
        "[1,1]", "[1,1]", "[1,1]", "first") "f32[b,4,h,w]\nreturn %y\n}",
    "(%x: f32[b,h,w,3], %k: f32[8,3,3,3]) {\n%y = convolution(%x, %k) {strides=[2,1], " CONV(
        "[1,1]", "[1,1]", "[1,1]", "last") "f32[b,(h+1)/2,w,8]\nreturn %y\n}",
    "(%x: f32[b,2,h+1,w+1], %k: f32[3,2,2,3], %z: f32[h,w]) {\n%y = convolution(%x, %k) {strides=[1,1], " CONV(
        "[1,1]", "[1,1]", "[2,3]", "first") "f32[b,3,2*h+2,3*w+1]\nreturn %y\n}",
    "(%x: f32[h+1,w+1,4], %k: f32[4,4,3], %z: f32[h,w]) {\n%y = convolution(%x, %k) {strides=[1], low=[2], high=[2], "
    "lhs_dilation=[2], rhs_dilation=[1], groups=1, layout=channels-last} : f32[h+1,2*w+3,4]\nreturn %y\n}",
};

START_TEST(contractions) { CHECK_TEXTS(contraction_texts); }
END_TEST

int main(void) {
  TCase *t = tcase_create("emit-sizes-loops");
  tcase_add_checked_fixture(t, sizes_setup, sizes_teardown);
  tcase_set_timeout(t, 240);
  tcase_add_test(t, interleaved);
  tcase_add_test(t, gathers);
  tcase_add_test(t, updates);
  tcase_add_test(t, scans);
  tcase_add_test(t, windows);
  tcase_add_test(t, contractions);
  return run_suite("emit-sizes-loops", t);
}
