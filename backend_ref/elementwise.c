/* elementwise.c - one kernel per operation and number class, and the loop over chunks that runs them. */
#include <math.h>
#include <string.h>

#include "backend_ref/ref.h"

/* --- kernels of one operand --- */

#define KERNEL1(name, T, R, expression)                                              \
  static void name(const void *xs, const void *ys, void *out, int64_t n, int bits) { \
    const T *px = xs;                                                                \
    R *r = out;                                                                      \
    for (int64_t k = 0; k < n; k++) {                                                \
      T x = px[k];                                                                   \
      r[k] = (R)(expression);                                                        \
    }                                                                                \
  }
/* Defines the kernels of an operation on floats for float and for double elements (ref_class).  Functions of libm are
 * called in f64, and the kernel for float rounds their results. */
#define MATH1(name, expression)                 \
  KERNEL1(name##_f32, float, float, expression) \
  KERNEL1(name##_f64, double, double, expression)

#define INT1(name, signed_expression, unsigned_expression) \
  KERNEL1(name##_s64, int64_t, int64_t, signed_expression) \
  KERNEL1(name##_u64, uint64_t, uint64_t, unsigned_expression)

MATH1(abs, fabs(x))
MATH1(neg, -x)
MATH1(sign, x > 0 ? 1 : x < 0 ? -1 : x)
KERNEL1(sqrt_f32, float, float, sqrtf(x))
KERNEL1(sqrt_f64, double, double, sqrt(x))
/* rsqrt rounds twice, since other targets do so, and all targets must compute the same bits. */
KERNEL1(rsqrt_f32, float, float, 1 / sqrtf(x))
KERNEL1(rsqrt_f64, double, double, 1 / sqrt(x))

/* For x < -700, 1 is lost in the sum, and e^-x may be too large for an f64. */
static double logistic(double x) { return x < -700 ? exp(x) : 1 / (1 + exp(-x)); }

/* Functions of floats: each operation and its formula.  To add such an operation, an entry here is enough. */
/* clang-format off */
#define FLOAT_FUNCTIONS(F)                                                            \
  F(CEIL, ceil(x)) F(FLOOR, floor(x)) F(ROUND, nearbyint(x)) F(EXP, exp(x))           \
  F(EXPM1, expm1(x)) F(LOG, log(x)) F(LOG1P, log1p(x)) F(SIN, sin(x)) F(COS, cos(x))  \
  F(TAN, tan(x)) F(ASIN, asin(x)) F(ACOS, acos(x)) F(ATAN, atan(x)) F(SINH, sinh(x))  \
  F(COSH, cosh(x)) F(TANH, tanh(x)) F(ASINH, asinh(x)) F(ACOSH, acosh(x))             \
  F(ATANH, atanh(x)) F(ERF, erf(x)) F(LOGISTIC, logistic((double)x))
/* clang-format on */
#define F(op, expression) MATH1(op, expression)
FLOAT_FUNCTIONS(F)
#undef F

INT1(abs, x < 0 ? 0 - (uint64_t)x : (uint64_t)x, x)
INT1(neg, 0 - (uint64_t)x, 0 - x)
INT1(not, ~x, ~x)
INT1(sign, (x > 0) - (x < 0), x != 0)
KERNEL1(not_pred, uint64_t, uint64_t, !x)
KERNEL1(finite_f32, float, uint8_t, isfinite(x) != 0)
KERNEL1(finite_f64, double, uint8_t, isfinite(x) != 0)

#define FLOATS(name) \
  { [REF_F32] = name##_f32, [REF_F64] = name##_f64 }
#define INTS(name) \
  { [REF_S64] = name##_s64, [REF_U64] = name##_u64 }
#define ALL(name) \
  { name##_f32, name##_f64, name##_s64, name##_u64 }

typedef ref_kernel *by_class[REF_CLASSES];

static const by_class unary_kernels[HLO_OP_COUNT] = {
#define F(op, expression) [HLO_##op] = FLOATS(op),
    FLOAT_FUNCTIONS(F)
#undef F
        [HLO_ABS] = ALL(abs),
    [HLO_NEG] = ALL(neg),
    [HLO_NOT] = INTS(not ),
    [HLO_SIGN] = ALL(sign),
    [HLO_SQRT] = FLOATS(sqrt),
    [HLO_RSQRT] = FLOATS(rsqrt),
};

/* --- kernels of two operands --- */

#define KERNEL2(name, T, R, expression)                                              \
  static void name(const void *xs, const void *ys, void *out, int64_t n, int bits) { \
    const T *px = xs, *py = ys;                                                      \
    R *r = out;                                                                      \
    for (int64_t k = 0; k < n; k++) {                                                \
      T x = px[k], y = py[k];                                                        \
      r[k] = (R)(expression);                                                        \
    }                                                                                \
  }
#define FLOAT2(name, f32_expression, f64_expression) \
  KERNEL2(name##_f32, float, float, f32_expression)  \
  KERNEL2(name##_f64, double, double, f64_expression)
#define INT2(name, signed_expression, unsigned_expression) \
  KERNEL2(name##_s64, int64_t, int64_t, signed_expression) \
  KERNEL2(name##_u64, uint64_t, uint64_t, unsigned_expression)

/* If an operand is NaN, the result is NaN.  +0 counts as larger than -0, so that the order of the operands does not
 * matter. */
#define MAXIMUM (x != x ? x : y != y ? y : x == y ? (signbit(x) ? y : x) : x > y ? x : y)
#define MINIMUM (x != x ? x : y != y ? y : x == y ? (signbit(x) ? x : y) : x < y ? x : y)

/* Integers of fewer than 64 bits wrap when they are stored.  Those of 64 bits must wrap here, so x / -1 is computed as
 * an unsigned negation. */
static int64_t divide_s64(int64_t x, int64_t y) { return y == 0 ? -1 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y; }
static int64_t remainder_s64(int64_t x, int64_t y) { return y == 0 ? x : y == -1 ? 0 : x % y; }

static uint64_t power_u64(uint64_t x, uint64_t y) {
  uint64_t r = 1;
  for (; y; y >>= 1, x *= x) {
    r = y & 1 ? r * x : r;
  }
  return r;
}
static int64_t power_s64(int64_t x, int64_t y) {
  if (y < 0) {
    return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
  }
  return (int64_t)power_u64((uint64_t)x, (uint64_t)y);
}

static int64_t shift_right_s64(int64_t x, int64_t y, int bits) {
  int by = (uint64_t)y >= (uint64_t)bits ? 63 : (int)y;
  return x < 0 ? (int64_t) ~(~(uint64_t)x >> by) : (int64_t)((uint64_t)x >> by);
}

FLOAT2(add, x + y, x + y)
FLOAT2(sub, x - y, x - y)
FLOAT2(mul, x *y, x *y)
FLOAT2(div, x / y, x / y)
FLOAT2(rem, fmodf(x, y), fmod(x, y))
FLOAT2(pow, pow(x, y), pow(x, y))
FLOAT2(atan2, atan2(x, y), atan2(x, y))
FLOAT2(max, MAXIMUM, MAXIMUM)
FLOAT2(min, MINIMUM, MINIMUM)
INT2(add, (uint64_t)x + (uint64_t)y, x + y)
INT2(sub, (uint64_t)x - (uint64_t)y, x - y)
INT2(mul, (uint64_t)x *(uint64_t)y, x *y)
INT2(div, divide_s64(x, y), y ? x / y : UINT64_MAX)
INT2(rem, remainder_s64(x, y), y ? x % y : x)
INT2(pow, power_s64(x, y), power_u64(x, y))
INT2(max, x > y ? x : y, x > y ? x : y)
INT2(min, x < y ? x : y, x < y ? x : y)
INT2(and, x &y, x &y)
INT2(or, x | y, x | y)
INT2(xor, x ^ y, x ^ y)
INT2(shl, (uint64_t)y < (uint64_t)bits ? (uint64_t)x << y : 0, y < (uint64_t)bits ? x << y : 0)
INT2(shr, shift_right_s64(x, y, bits), y < (uint64_t)bits ? x >> y : 0)

static const by_class binary_kernels[HLO_OP_COUNT] = {
    [HLO_ADD] = ALL(add),  [HLO_SUB] = ALL(sub),  [HLO_MUL] = ALL(mul),        [HLO_DIV] = ALL(div),
    [HLO_REM] = ALL(rem),  [HLO_POW] = ALL(pow),  [HLO_ATAN2] = FLOATS(atan2), [HLO_MAX] = ALL(max),
    [HLO_MIN] = ALL(min),  [HLO_AND] = INTS(and), [HLO_OR] = INTS(or),         [HLO_XOR] = INTS(xor),
    [HLO_SHL] = INTS(shl), [HLO_SHR] = INTS(shr),
};

ref_kernel *ref_binary_kernel(hlo_op op, ref_class c) {
  return c == REF_C128 ? ref_complex_kernel(op) : binary_kernels[op][c];
}

/* --- comparisons --- */

#define COMPARE(name, operator)                       \
  KERNEL2(name##_f32, float, uint8_t, x operator y)   \
  KERNEL2(name##_f64, double, uint8_t, x operator y)  \
  KERNEL2(name##_s64, int64_t, uint8_t, x operator y) \
  KERNEL2(name##_u64, uint64_t, uint8_t, x operator y)
COMPARE(eq, ==)
COMPARE(ne, !=)
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)

typedef struct complex_number {
  double re, im;
} complex_number;
KERNEL2(eq_c128, complex_number, uint8_t, x.re == y.re && x.im == y.im)
KERNEL2(ne_c128, complex_number, uint8_t, x.re != y.re || x.im != y.im)

static const by_class compare_kernels[] = {
    [HLO_EQ] = {eq_f32, eq_f64, eq_s64, eq_u64, eq_c128},
    [HLO_NE] = {ne_f32, ne_f64, ne_s64, ne_u64, ne_c128},
    [HLO_LT] = ALL(lt),
    [HLO_LE] = ALL(le),
    [HLO_GT] = ALL(gt),
    [HLO_GE] = ALL(ge),
};

/* --- the loops over all elements --- */

/* Runs the kernel over all elements, which are first converted to the C type that `in` stands for.  The kernel writes
 * numbers of that type, or uint8_t if `to_pred`. */
static status map(ref_call *c, ref_kernel *kernel, ref_class in, bool to_pred) {
  if (!kernel) {
    return ref_unsupported(c->i);
  }
  dtype from = (dtype)c->in[0].shape.type, to = (dtype)c->out[0].shape.type;
  int64_t n = shape_elements(&c->out[0].shape);
  int bits = dtype_get_info(from)->bits;
  char *data = ref_result(c, 0);
  ref_buffer x, y, r;
  bool direct = to_pred || ref_class_bytes(in) == dtype_bytes(to); /* the kernel writes the result itself */
  for (int64_t k = 0; k < n; k += REF_CHUNK) {
    int64_t m = n - k < REF_CHUNK ? n - k : REF_CHUNK;
    const void *px = ref_load(from, in, c->in[0].data, k, m, &x);
    const void *py = c->i->n_operands > 1 ? ref_load(from, in, c->in[1].data, k, m, &y) : NULL;
    void *out = direct ? data + (size_t)k * dtype_bytes(to) : (void *)&r;
    kernel(px, py, out, m, bits);
    if (!direct) {
      ref_store(to, in, out, data, k, m);
    }
    TRY(ref_work(c, m));
  }
  return NULL;
}

static bool has_kernel(const by_class kernels) {
  bool any = false;
  for (int c = 0; c < REF_CLASSES; c++) {
    any = any || kernels[c];
  }
  return any;
}

ref_fn *ref_elementwise(hlo_op op) {
  return has_kernel(unary_kernels[op]) ? ref_unary : has_kernel(binary_kernels[op]) ? ref_binary : NULL;
}

status ref_unary(ref_call *c) {
  dtype t = (dtype)c->in[0].shape.type;
  ref_class class = ref_class_of(t);
  if (t == DTYPE_PRED && c->i->op == HLO_NOT) {
    return map(c, not_pred, class, false);
  }
  if (class == REF_C128) {
    return c->i->op == HLO_ABS ? ref_part(c) : map(c, ref_complex_kernel(c->i->op), class, false);
  }
  return map(c, unary_kernels[c->i->op][class], class, false);
}

status ref_binary(ref_call *c) {
  ref_class class = ref_class_of((dtype)c->in[0].shape.type);
  return map(c, ref_binary_kernel(c->i->op, class), class, false);
}

status ref_is_finite(ref_call *c) {
  ref_class class = ref_class_of((dtype)c->in[0].shape.type);
  return map(c, class == REF_F32 ? finite_f32 : class == REF_F64 ? finite_f64 : NULL, class, true);
}

status ref_compare(ref_call *c) {
  dtype t = (dtype)c->in[0].shape.type;
  int64_t which = hlo_int(c->i, HLO_ATTR_COMPARISON);
  if (t == DTYPE_STR && which != HLO_EQ && which != HLO_NE) { /* strings are ids, whose order means nothing */
    return ref_unsupported(c->i);
  }
  return map(c, compare_kernels[which][ref_class_of(t)], ref_class_of(t), true);
}

status ref_convert(ref_call *c) {
  const shape *from = &c->in[0].shape, *to = &c->out[0].shape;
  dtype_convert((dtype)from->type, c->in[0].data, (dtype)to->type, ref_result(c, 0), (size_t)shape_elements(to),
                hlo_int(c->i, HLO_ATTR_SATURATE), (dtype_round)hlo_int(c->i, HLO_ATTR_ROUNDING));
  return NULL;
}

status ref_bitcast(ref_call *c) {
  dtype from = (dtype)c->in[0].shape.type, to = (dtype)c->out[0].shape.type;
  if (dtype_same_memory(from, to)) {
    ref_alias(c);
    return NULL;
  }
  const uint8_t *x = c->in[0].data;
  uint8_t *r = ref_result(c, 0), mask = (uint8_t)((1u << dtype_get_info(to)->bits) - 1);
  for (int64_t k = 0, n = shape_elements(&c->out[0].shape); k < n; k++) {
    r[k] = x[k] & mask;
    if (dtype_is_signed(to)) {
      dtype_store_i64(to, &r[k], r[k]);
    }
  }
  return NULL;
}

status ref_select(ref_call *c) {
  const uint8_t *pred = c->in[0].data;
  int64_t n = shape_elements(&c->out[0].shape);
  size_t size = dtype_bytes((dtype)c->out[0].shape.type);
  char *r = ref_result(c, 0);
  const char *x = c->in[1].data, *y = c->in[2].data;
  for (int64_t k = 0; k < n; k++) {
    size_t at = (size_t)k * size;
    memcpy(r + at, (pred[k] ? x : y) + at, size);
  }
  return NULL;
}

/* Returns a chunk of a bound of clamp.  A scalar fills the whole buffer. */
static const void *load_bound(const literal *bound, ref_class class, int64_t first, int64_t n, ref_buffer *buffer) {
  dtype t = (dtype)bound->shape.type;
  if (bound->shape.rank) {
    return ref_load(t, class, bound->data, first, n, buffer);
  }
  size_t size = ref_class_bytes(class);
  ref_buffer one;
  const void *value = ref_load(t, class, bound->data, 0, 1, &one);
  for (int64_t k = 0; k < n; k++) {
    memcpy((char *)buffer + (size_t)k * size, value, size);
  }
  return buffer;
}

status ref_clamp_op(ref_call *c) {
  dtype t = (dtype)c->in[1].shape.type;
  ref_class class = ref_class_of(t);
  int64_t n = shape_elements(&c->out[0].shape);
  void *data = ref_result(c, 0);
  ref_kernel *max = binary_kernels[HLO_MAX][class], *min = binary_kernels[HLO_MIN][class];
  ref_buffer x, bound, r;
  for (int64_t k = 0; k < n; k += REF_CHUNK) {
    int64_t m = n - k < REF_CHUNK ? n - k : REF_CHUNK;
    max(ref_load(t, class, c->in[1].data, k, m, &x), load_bound(&c->in[0], class, k, m, &bound), &r, m, 0);
    min(&r, load_bound(&c->in[2], class, k, m, &bound), &r, m, 0);
    ref_store(t, class, &r, data, k, m);
    TRY(ref_work(c, m));
  }
  return NULL;
}
