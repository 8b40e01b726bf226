/* check_emit_sizes.c - compares kernels that take sizes as arguments with the reference evaluator. */
#include <string.h>

#include "base/dim/guard.h"
#include "hlo/ir/builder.h"
#include "tests/unit/emit/sizes_case.h"

enum { ROUNDS = 24 };

#define CHECK_TEXTS(texts) SIZES_CHECK_TEXTS(texts, 0, ROUNDS)

/* --- loops over elements --- */

static const char *const elementwise_texts[] = {
    "(%x: f32[n], %y: f32[n]) {\n%z = add(%x, %y) : f32[n]\n%w = multiply(%z, %x) : f32[n]\nreturn %w\n}",
    "(%x: f32[b,n,16], %y: f32[b,n,16]) {\n%z = subtract(%x, %y) : f32[b,n,16]\nreturn %z\n}",
    "(%x: f32[n,2*m+1], %y: f32[m]) {\n%z = negate(%x) : f32[n,2*m+1]\nreturn %z\n}",
    "(%x: f64[n], %y: s8[n]) {\n%z = convert(%y) {saturate=true, rounding=nearest} : f64[n]\n%w = add(%x, %z) : "
    "f64[n]\nreturn %w\n}",
    "(%x: c64[n,3], %y: c64[n,3]) {\n%z = multiply(%x, %y) : c64[n,3]\nreturn %z, %x\n}",
    "(%x: f32[n,m], %v: f32[]) {\n%b = broadcast(%v) {dimensions=[]} : f32[n,m]\n%c = compare(%x, %b) "
    "{comparison=lt} : pred[n,m]\n%s = select(%c, %b, %x) : f32[n,m]\nreturn %s, %c\n}",
    "(%x: s8[n]) {\n%a = bitcast-convert(%x) : u8[n]\n%c = convert(%x) {saturate=true, rounding=nearest} : s4[n]\n%b = "
    "bitcast-convert(%c) : u4[n]\nreturn %a, %b\n}",
};

START_TEST(elementwise) { CHECK_TEXTS(elementwise_texts); }
END_TEST

static const char *const movement_texts[] = {
    /* broadcasts along rows, columns and both */
    "(%x: f32[n,48], %v: f32[48]) {\n%b = broadcast(%v) {dimensions=[1]} : f32[n,48]\n%y = add(%x, %b) : "
    "f32[n,48]\nreturn %y\n}",
    "(%x: f32[b,n,m], %v: f32[m]) {\n%c = broadcast(%v) {dimensions=[2]} : f32[b,n,m]\n%y = add(%x, %c) : "
    "f32[b,n,m]\nreturn %y\n}",
    "(%x: f32[b,n,m], %v: f32[b,n]) {\n%c = broadcast(%v) {dimensions=[0,1]} : f32[b,n,m]\n%y = add(%x, %c) : "
    "f32[b,n,m]\nreturn %y\n}",
    "(%x: f32[b,n,m], %v: f32[n]) {\n%c = broadcast(%v) {dimensions=[1]} : f32[b,n,m]\n%y = multiply(%x, %c) : "
    "f32[b,n,m]\nreturn %y\n}",
    "(%x: f32[n,1], %y: f32[m]) {\n%b = broadcast(%x) {dimensions=[0,1]} : f32[n,m]\nreturn %b\n}",
    /* positions */
    "(%x: s64[n,m]) {\n%i = iota() {dimension=1} : s64[n,m]\n%j = iota() {dimension=0} : s64[n,m]\n%c = compare(%i, "
    "%j) {comparison=le} : pred[n,m]\n%s = select(%c, %x, %i) : s64[n,m]\nreturn %s\n}",
    "(%x: f32[n]) {\n%i = iota() {dimension=0} : f32[n]\n%y = add(%x, %i) : f32[n]\nreturn %y\n}",
    /* reshapes */
    "(%x: f32[b,n,12], %v: f32[4]) {\n%r = reshape(%x) : f32[b*n,3,4]\n%b = broadcast(%v) {dimensions=[2]} : "
    "f32[b*n,3,4]\n%y = add(%r, %b) : f32[b*n,3,4]\nreturn %y\n}",
    "(%x: f32[b*n,m], %v: f32[n,m], %w: f32[b]) {\n%r = reshape(%x) : f32[b,n,m]\n%c = broadcast(%v) "
    "{dimensions=[1,2]} : "
    "f32[b,n,m]\n%y = add(%r, %c) : f32[b,n,m]\n%z = reshape(%y) : f32[b*n*m]\nreturn %z\n}",
    "(%x: f32[n,m]) {\n%t = transpose(%x) {permutation=[1,0]} : f32[m,n]\n%r = reshape(%t) : f32[n*m]\nreturn %r\n}",
    "(%x: f32[b,n,4,8]) {\n%t = transpose(%x) {permutation=[0,2,1,3]} : f32[b,4,n,8]\n%r = reshape(%t) : "
    "f32[4*b,8*n]\nreturn %r\n}",
    /* transposes */
    "(%x: f32[n,m]) {\n%t = transpose(%x) {permutation=[1,0]} : f32[m,n]\nreturn %t\n}",
    "(%x: f32[b,n,4,16]) {\n%t = transpose(%x) {permutation=[0,2,1,3]} : f32[b,4,n,16]\nreturn %t\n}",
    "(%x: f32[b,h,w,3]) {\n%t = transpose(%x) {permutation=[0,3,1,2]} : f32[b,3,h,w]\nreturn %t\n}",
    "(%x: f32[b,3,h,w], %v: f32[3]) {\n%c = broadcast(%v) {dimensions=[1]} : f32[b,3,h,w]\n%y = add(%x, %c) : "
    "f32[b,3,h,w]\n%t = transpose(%y) {permutation=[0,2,3,1]} : f32[b,h,w,3]\nreturn %t\n}",
    "(%x: bf16[b,n,m]) {\n%t = transpose(%x) {permutation=[2,0,1]} : bf16[m,b,n]\nreturn %t\n}",
    "(%x: f32[m,n], %y: f32[n,m]) {\n%t = transpose(%y) {permutation=[1,0]} : f32[m,n]\n%z = add(%x, %t) : "
    "f32[m,n]\nreturn %z\n}",
    "(%x: f32[16*m,32*n], %y: f32[32*n,16*m], %z: f32[n,m]) {\n%t = transpose(%y) {permutation=[1,0]} : "
    "f32[16*m,32*n]\n%u = add(%x, %t) : f32[16*m,32*n]\nreturn %u\n}",
    "(%x: s8[b,n,m], %y: s8[b,n,m]) {\n%t = transpose(%x) {permutation=[0,2,1]} : s8[b,m,n]\n%u = transpose(%y) "
    "{permutation=[0,2,1]} : s8[b,m,n]\n%z = add(%t, %u) : s8[b,m,n]\nreturn %z, %t\n}",
    "(%x: f32[n,m,40], %v: f32[n,40]) {\n%t = transpose(%x) {permutation=[0,2,1]} : f32[n,40,m]\n%c = broadcast(%v) "
    "{dimensions=[0,1]} : f32[n,40,m]\n%z = add(%t, %c) : f32[n,40,m]\nreturn %z\n}",
    "(%x: f64[20,n]) {\n%t = transpose(%x) {permutation=[1,0]} : f64[n,20]\nreturn %t\n}",
    "(%x: f32[n,m,16], %y: f32[n,m,32]) {\n%c = concatenate(%x, %y, %x) {dimension=2} : f32[n,m,64]\n%t = "
    "transpose(%c) {permutation=[0,2,1]} : f32[n,64,m]\nreturn %t\n}",
    /* a few columns are interleaved */
    "(%x: f32[2,n]) {\n%t = transpose(%x) {permutation=[1,0]} : f32[n,2]\nreturn %t\n}",
    "(%x: u8[b,4,n,m]) {\n%y = not(%x) : u8[b,4,n,m]\n%t = transpose(%y) {permutation=[0,2,3,1]} : "
    "u8[b,n,m,4]\nreturn %t\n}",
    "(%x: f32[b,n,m]) {\n%y = broadcast(%x) {dimensions=[0,1,2]} : f32[b,n,m,2]\n%r = reshape(%y) : "
    "f32[b,n,2*m]\nreturn %r\n}",
    "(%x: u8[b,n,m]) {\n%y = broadcast(%x) {dimensions=[0,1,3]} : u8[b,n,2,m,2]\n%r = reshape(%y) : "
    "u8[b,2*n,2*m]\nreturn %r\n}",
    "(%x: f32[n,m,1], %y: f32[n,m,1]) {\n%c = concatenate(%x, %y) {dimension=2} : f32[n,m,2]\nreturn %c\n}",
    "(%x: f32[n,m], %v: f32[m]) {\n%c = broadcast(%v) {dimensions=[1]} : f32[n,m]\n%y = add(%x, %c) : f32[n,m]\n%z "
    "= broadcast(%y) {dimensions=[0,1]} : f32[n,m,3]\nreturn %z\n}",
    /* reverse and slices */
    "(%x: f32[n,m]) {\n%y = reverse(%x) {dimensions=[0,1]} : f32[n,m]\nreturn %y\n}",
    "(%x: f32[n,m]) {\n%y = reverse(%x) {dimensions=[0]} : f32[n,m]\nreturn %y\n}",
    "(%x: f32[n+3,m], %v: f32[n]) {\n%y = slice(%x) {starts=[2,0], limits=[n+3,m], strides=[1,1]} : f32[n+1,m]\nreturn "
    "%y\n}",
    "(%x: f32[n+m,8], %y: f32[m], %z: f32[n]) {\n%s = slice(%x) {starts=[n,0], limits=[n+m,8], strides=[1,1]} : "
    "f32[m,8]\nreturn %s\n}",
    "(%x: f32[5,n+m], %y: f32[m], %z: f32[n]) {\n%s = slice(%x) {starts=[1,n], limits=[5,n+m], strides=[1,1]} : "
    "f32[4,m]\nreturn %s\n}",
    /* no elements: an operand has an extent of 0, but the result's extent is not known to be 0 */
    "(%x: f32[n,0,m], %y: f32[m]) {\n%c = concatenate(%x, %x) {dimension=0} : f32[2*n,0,m]\n%r = reshape(%c) : "
    "f32[0]\n%s = slice(%r) {starts=[0], limits=[m/(m+1)], strides=[1]} : f32[m/(m+1)]\nreturn %s\n}",
    "(%x: f32[n,20]) {\n%y = slice(%x) {starts=[0,3], limits=[n,20], strides=[1,2]} : f32[n,9]\nreturn %y\n}",
    "(%x: f32[3,2*n], %y: f32[n]) {\n%s = slice(%x) {starts=[0,0], limits=[3,2*n], strides=[1,2]} : f32[3,n]\nreturn "
    "%s\n}",
    /* padding */
    "(%x: f32[n,m], %v: f32[]) {\n%y = pad(%x, %v) {low=[0,2], high=[0,3], interior=[0,0]} : f32[n,m+5]\nreturn "
    "%y\n}",
    "(%x: f32[n,m], %v: f32[]) {\n%y = pad(%x, %v) {low=[1,0], high=[2,0], interior=[0,0]} : f32[n+3,m]\nreturn "
    "%y\n}",
    "(%x: f32[b,h,w,8], %v: f32[]) {\n%y = pad(%x, %v) {low=[0,1,1,0], high=[0,1,1,0], interior=[0,0,0,0]} : "
    "f32[b,h+2,w+2,8]\nreturn %y\n}",
    "(%x: f32[n+4,m+2], %v: f32[], %y: f32[n,m]) {\n%p = pad(%x, %v) {low=[-1,1], high=[-2,-2], interior=[0,0]} : "
    "f32[n+1,m+1]\nreturn %p\n}",
    /* gaps, and a size that is the same as before */
    "(%x: f32[n,7], %v: f32[]) {\n%y = pad(%x, %v) {low=[0,0], high=[0,-6], interior=[0,1]} : f32[n,7]\nreturn %y\n}",
    "(%x: f32[n,7], %v: f32[]) {\n%y = pad(%x, %v) {low=[1,2], high=[1,1], interior=[0,1]} : f32[n+2,16]\nreturn "
    "%y\n}",
    "(%x: f32[n+1,m+1], %v: f32[], %z: f32[n,m]) {\n%y = pad(%x, %v) {low=[0,2], high=[1,1], interior=[1,2]} : "
    "f32[2*n+2,3*m+4]\nreturn %y\n}",
    "(%x: f32[b,n+1,8], %v: f32[], %z: f32[n]) {\n%y = pad(%x, %v) {low=[0,-1,0], high=[0,4,0], interior=[0,3,0]} : "
    "f32[b,4*n+4,8]\nreturn %y\n}",
    "(%x: c64[n], %v: c64[]) {\n%y = pad(%x, %v) {low=[3], high=[1], interior=[0]} : c64[n+4]\nreturn %y\n}",
    /* concatenation */
    "(%x: f32[n,4], %y: f32[m,4]) {\n%c = concatenate(%x, %y) {dimension=0} : f32[n+m,4]\nreturn %c\n}",
    "(%x: f32[3,n], %y: f32[3,5], %z: f32[3,m]) {\n%c = concatenate(%x, %y, %z) {dimension=1} : f32[3,n+m+5]\n%d = "
    "negate(%c) : f32[3,n+m+5]\nreturn %d\n}",
    "(%x: f32[b,n,16], %y: f32[b,m,16]) {\n%c = concatenate(%x, %y) {dimension=1} : f32[b,n+m,16]\nreturn %c\n}",
    "(%x: f32[n,20], %y: f32[n,13]) {\n%c = concatenate(%x, %y) {dimension=1} : f32[n,33]\nreturn %c\n}",
    "(%x: f32[n,32], %y: f32[n,64]) {\n%c = concatenate(%x, %y, %x, %x, %y) {dimension=1} : f32[n,224]\nreturn %c\n}",
    "(%x: f32[b,n,32], %y: f32[b,n,64]) {\n%c = concatenate(%x, %y, %x, %y) {dimension=2} : f32[b,n,192]\n%s = "
    "reduce(%c) {dimensions=[1], reducer=maximum} : f32[b,192]\nreturn %s\n}",
    "(%x: f32[n], %y: f32[m]) {\n%c = concatenate(%x, %y) {dimension=0} : f32[n+m]\n%d = reverse(%c) {dimensions=[0]} "
    ": f32[n+m]\n%e = add(%c, %d) : f32[n+m]\nreturn %e\n}",
    "(%x: c64[n,2], %y: c64[m,2]) {\n%c = concatenate(%x, %y) {dimension=0} : c64[n+m,2]\n%t = transpose(%c) "
    "{permutation=[1,0]} : c64[2,n+m]\nreturn %t\n}",
    "(%x: f32[n,m], %y: f32[n,m], %v: f32[]) {\n%p = pad(%x, %v) {low=[0,1], high=[0,0], interior=[0,0]} : "
    "f32[n,m+1]\n%c = concatenate(%p, %y) {dimension=1} : f32[n,2*m+1]\n%t = transpose(%c) {permutation=[1,0]} : "
    "f32[2*m+1,n]\nreturn %t\n}",
};

START_TEST(movement) { CHECK_TEXTS(movement_texts); }
END_TEST

/* --- reductions --- */

/* The sums of rows, columns, both, of the outer and the inner dimensions, and of arrays that are computed. */
static const char *const reduction_texts[] = {
    "(%x: f32[n,m]) {\n%y = reduce(%x) {dimensions=[1], reducer=add} : f32[n]\nreturn %y\n}",
    "(%x: f32[n,m]) {\n%y = reduce(%x) {dimensions=[0], reducer=add} : f32[m]\nreturn %y\n}",
    "(%x: f32[n,m]) {\n%y = reduce(%x) {dimensions=[0,1], reducer=add} : f32[]\nreturn %y\n}",
    "(%x: f32[b,n,m]) {\n%y = reduce(%x) {dimensions=[0,2], reducer=add} : f32[n]\nreturn %y\n}",
    "(%x: f32[b,n,m]) {\n%y = reduce(%x) {dimensions=[1], reducer=maximum} : f32[b,m]\nreturn %y\n}",
    "(%x: f32[n,48]) {\n%y = reduce(%x) {dimensions=[1], reducer=add} : f32[n]\nreturn %y\n}",
    "(%x: f32[n,48]) {\n%y = reduce(%x) {dimensions=[0], reducer=minimum} : f32[48]\nreturn %y\n}",
    "(%x: f32[b,h,w,8]) {\n%y = reduce(%x) {dimensions=[1,2], reducer=add} : f32[b,8]\nreturn %y\n}",
    "(%x: f32[b,8,h,w]) {\n%y = reduce(%x) {dimensions=[2,3], reducer=add} : f32[b,8]\nreturn %y\n}",
    "(%x: s32[n,2,3,m]) {\n%y = reduce(%x) {dimensions=[1,2,3], reducer=multiply} : s32[n]\nreturn %y\n}",
    "(%x: f64[n,m]) {\n%y = reduce(%x) {dimensions=[1], reducer=add} : f64[n]\n%z = negate(%y) : f64[n]\nreturn "
    "%z\n}",
    "(%x: bf16[n,m]) {\n%y = reduce(%x) {dimensions=[1], reducer=maximum} : bf16[n]\nreturn %y\n}",
    "(%x: s32[n,m]) {\n%y = reduce(%x) {dimensions=[1], reducer=add} : s32[n]\nreturn %y\n}",
    "(%x: c64[n,m]) {\n%y = reduce(%x) {dimensions=[0], reducer=add} : c64[m]\nreturn %y\n}",
    "(%x: f32[n,m], %y: f32[n,m]) {\n%p = multiply(%x, %y) : f32[n,m]\n%s = reduce(%p) {dimensions=[1], reducer=add} "
    ": f32[n]\n%t = reduce(%x) {dimensions=[1], reducer=maximum} : f32[n]\n%u = add(%s, %t) : f32[n]\nreturn %u\n}",
    "(%x: f32[n,3], %y: f32[m,3]) {\n%c = concatenate(%x, %y) {dimension=0} : f32[n+m,3]\n%s = reduce(%c) "
    "{dimensions=[0], reducer=add} : f32[3]\nreturn %s\n}",
    "(%x: f32[b,n,12]) {\n%r = reshape(%x) : f32[b*n,3,4]\n%s = reduce(%r) {dimensions=[0,2], reducer=add} : "
    "f32[3]\nreturn %s\n}",
    "(%x: f32[n,m+1], %y: f32[m]) {\n%a = arg-reduce(%x) {dimension=1, largest=true, last=false} : s64[n]\nreturn "
    "%a\n}",
    "(%x: f32[n+1,m], %y: f32[n]) {\n%a = arg-reduce(%x) {dimension=0, largest=false, last=true} : s64[m]\nreturn "
    "%a\n}",
};

START_TEST(reductions) { CHECK_TEXTS(reduction_texts); }
END_TEST

/* --- the instruction `sizes` --- */

static const char *const sizes_texts[] = {
    "(%x: s64[n,m]) {\n%s = sizes() {elements=[n,n+m,-3]} : s64[3]\nreturn %s\n}",
    "(%x: s32[n,m]) {\n%s = sizes() {elements=[m]} : s32[]\n%b = broadcast(%s) {dimensions=[]} : s32[n,m]\n%y = "
    "add(%x, %b) : s32[n,m]\nreturn %y\n}",
    "(%x: s64[n,3]) {\n%s = sizes() {elements=[n,2*n-5,7]} : s64[3]\n%b = broadcast(%s) {dimensions=[1]} : "
    "s64[n,3]\n%y = multiply(%x, %b) : s64[n,3]\nreturn %y\n}",
    "(%x: f32[n], %y: f32[m]) {\n%s = sizes() {elements=[n,m-n]} : s64[2]\n%f = convert(%s) {saturate=true, "
    "rounding=nearest} : f32[2]\n%c = concatenate(%x, %f, %y) {dimension=0} : f32[n+m+2]\nreturn %c\n}",
};

START_TEST(sizes_as_values) {
  sizes_cases c = {0};
  for (size_t k = 0; k < sizeof sizes_texts / sizeof *sizes_texts; k++) {
    sizes_add_text(&c, sizes_texts[k]);
  }
  sizes_case *k = sizes_add_text(&c,
                                 "(%x: s64[n,2], %s: s64[2]) {\n%b = broadcast(%s) {dimensions=[1]} : s64[n,2]\n%y = "
                                 "add(%x, %b) : s64[n,2]\nreturn %y\n}");
  k->elements = "n;2*n-1";
  sizes_check_all(&c, ROUNDS, EMIT_MACHINES_AND_BLOCKS);
}
END_TEST

/* --- random fusions --- */

enum { MOST_VALUES = 24, MOST_RANK = 4 };

typedef struct random_fusion {
  hlo_builder b;
  int n;
  hlo_value values[MOST_VALUES];
} random_fusion;

static int below(int n) { return (int)((next_random() >> 20) % (uint64_t)n); }

static hlo_value any_value(const random_fusion *f) { return f->values[below(f->n)]; }

/* Returns a value of the same shape as x, which may be x. */
static hlo_value partner(const random_fusion *f, hlo_value x) {
  hlo_value found = x;
  for (int k = 0; k < f->n; k++) {
    found = shape_equal(hlo_shape(f->values[k]), hlo_shape(x)) && below(2) ? f->values[k] : found;
  }
  return found;
}

static hlo_value random_broadcast(random_fusion *f, hlo_value x) {
  dim_table *t = f->b.computation->module->dims;
  const shape *s = hlo_shape(x);
  dim extra[] = {3, dim_symbol(t, "n"), dim_symbol(t, "m"), 1, 16}, dims[SHAPE_MAX_RANK];
  int64_t dimensions[SHAPE_MAX_RANK];
  int at = below(s->rank + 1);
  for (int k = 0; k < s->rank; k++) {
    dimensions[k] = k + (k >= at);
    dims[dimensions[k]] = s->dims[k];
  }
  dims[at] = extra[below(5)];
  return s->rank == MOST_RANK ? x : hlo_broadcast(&f->b, x, shape_make(DTYPE_F32, s->rank + 1, dims), dimensions);
}

static hlo_value random_transpose(random_fusion *f, hlo_value x) {
  int64_t permutation[SHAPE_MAX_RANK];
  for (int k = 0; k < hlo_rank(x); k++) {
    int j = below(k + 1);
    permutation[k] = permutation[j];
    permutation[j] = k;
  }
  return hlo_transpose(&f->b, x, permutation);
}

/* Merges two neighbouring dimensions, or splits a dimension of 16. */
static hlo_value random_reshape(random_fusion *f, hlo_value x) {
  const shape *s = hlo_shape(x);
  dim dims[SHAPE_MAX_RANK];
  int at = below(s->rank), n = 0;
  bool split = s->dims[at] == 16 && s->rank < MOST_RANK;
  for (int k = 0; k < s->rank; k++) {
    if (k == at && split) {
      dims[n++] = 2;
      dims[n++] = 8;
    } else if (k == at && k + 1 < s->rank) {
      dims[n++] = shape_dim_product(f->b.computation->module->dims, s, k, k + 2);
      k++;
    } else {
      dims[n++] = s->dims[k];
    }
  }
  return hlo_reshape(&f->b, x, n, dims);
}

/* Pads one dimension.  A dimension of constant size may get gaps, and then it may be cut to its former size. */
static hlo_value random_pad(random_fusion *f, hlo_value x) {
  int64_t low[SHAPE_MAX_RANK] = {0}, high[SHAPE_MAX_RANK] = {0}, interior[SHAPE_MAX_RANK] = {0};
  int at = below(hlo_rank(x));
  dim n = hlo_shape(x)->dims[at];
  low[at] = below(4);
  high[at] = below(3);
  if (dim_is_const(n) && below(2)) {
    interior[at] = 1 + below(2);
    low[at] = below(2) ? low[at] : 0;
    high[at] = below(2) ? high[at] : -interior[at] * (n - 1) - low[at];
  }
  return hlo_pad(&f->b, x, hlo_scalar(&f->b, DTYPE_F32, 0.5), low, high, interior);
}

/* Takes every second or third element along a dimension, if it is known to be long enough. */
static hlo_value random_slice(random_fusion *f, hlo_value x) {
  const shape *s = hlo_shape(x);
  dim starts[SHAPE_MAX_RANK] = {0};
  int64_t strides[SHAPE_MAX_RANK];
  int at = below(s->rank);
  for (int k = 0; k < s->rank; k++) {
    strides[k] = k == at ? 1 + below(3) : 1;
  }
  starts[at] = dim_known_at_most(f->b.computation->module->dims, 1, s->dims[at]);
  return hlo_slice(&f->b, x, starts, s->dims, strides);
}

static hlo_value random_reduce(random_fusion *f, hlo_value x) {
  int64_t at = below(hlo_rank(x));
  return hlo_rank(x) < 2 ? x : hlo_reduce(&f->b, x, HLO_REDUCE_MAX, 1, &at);
}

static hlo_value random_value(random_fusion *f) {
  hlo_value x = any_value(f);
  int64_t at = below(hlo_rank(x));
  switch (below(12)) {
    case 0: return hlo_unary(&f->b, HLO_NEG, x);
    case 1: return hlo_binary(&f->b, HLO_ADD, x, partner(f, x));
    case 2: return hlo_binary(&f->b, HLO_MAX, x, partner(f, x));
    case 3: return random_broadcast(f, x);
    case 4: return random_transpose(f, x);
    case 5: return random_reshape(f, x);
    case 6: return random_pad(f, x);
    case 7: return random_slice(f, x);
    case 8: return hlo_concatenate(&f->b, 2, (hlo_value[]){x, partner(f, x)}, at);
    case 9: return hlo_reverse(&f->b, x, 1, &at);
    case 10: return hlo_binary(&f->b, HLO_MAX, x, hlo_iota(&f->b, *hlo_shape(x), at));
    default: return random_reduce(f, x);
  }
}

static const hlo_computation *random_entry(void) {
  hlo_module *m = hlo_module_create(sizes_arena, "random");
  hlo_computation *c = hlo_computation_create(m, "main");
  m->entry = c;
  dim b = dim_symbol(m->dims, "b"), n = dim_symbol(m->dims, "n"), k = dim_symbol(m->dims, "m");
  const shape inputs[] = {shape_make(DTYPE_F32, 3, (dim[]){b, n, 16}), shape_make(DTYPE_F32, 2, (dim[]){n, k})};
  random_fusion f = {.b = hlo_builder_make(c), .n = 2};
  f.values[0] = hlo_result(hlo_parameter(c, inputs[0]), 0);
  f.values[1] = hlo_result(hlo_parameter(c, inputs[1]), 0);
  for (int steps = 3 + below(8); steps > 0; steps--) {
    hlo_value next = random_value(&f);
    f.values[f.n++] = next;
    ASSERT_OK(hlo_builder_take_error(&f.b));
  }
  hlo_set_roots(c, 1, &f.values[f.n - 1]);
  return c;
}

START_TEST(random_fusions) {
  enum { FUSIONS = 60, MACHINES = 2 };
  sizes_cases c = {0};
  for (int k = 0; k < FUSIONS; k++) {
    sizes_add(&c, random_entry())->most = 60; /* few, since one symbol may be several dimensions of an array */
  }
  sizes_check_all(&c, ROUNDS / 2, MACHINES);
}
END_TEST

/* --- hints --- */

/* Hints have an effect on speed only: with hints that are far from the sizes of the runs, the results are the
 * same. */
START_TEST(wrong_hints) {
  static const int64_t hints[] = {0, 1, 1000000};
  sizes_cases c = {0};
  for (size_t k = 0; k < sizeof movement_texts / sizeof *movement_texts; k++) {
    dim_table *t = sizes_add_text(&c, movement_texts[k])->entry->module->dims;
    for (const char *name = "bhmnw"; *name; name++) {
      dim_set_hint(t, dim_symbol_n(t, name, 1), hints[next_random() % 3]);
    }
  }
  sizes_check_all(&c, ROUNDS, 1);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("emit-sizes");
  tcase_add_checked_fixture(t, sizes_setup, sizes_teardown);
  tcase_set_timeout(t, 300);
  tcase_add_test(t, elementwise);
  tcase_add_test(t, movement);
  tcase_add_test(t, reductions);
  tcase_add_test(t, sizes_as_values);
  tcase_add_test(t, random_fusions);
  tcase_add_test(t, wrong_hints);
  return run_suite("emit-sizes", t);
}
