/* complex.c - operations on complex numbers, which are computed as pairs of f64 and rounded to the element type at the
 * end. */
#include "backend_ref/complex.h"

#include "backend_ref/ref.h"

typedef double complex number;

#define KERNEL(name, expression)                                                     \
  static void name(const void *xs, const void *ys, void *out, int64_t n, int bits) { \
    const number *px = xs, *py = ys;                                                 \
    number *r = out;                                                                 \
    for (int64_t k = 0; k < n; k++) {                                                \
      number x = px[k], y = py ? py[k] : 0;                                          \
      (void)y;                                                                       \
      r[k] = (expression);                                                           \
    }                                                                                \
  }

static number quotient(number x, number y) {
  number r = ref_product(x, conj(y));
  double norm = creal(y) * creal(y) + cimag(y) * cimag(y);
  return CMPLX(creal(r) / norm, cimag(r) / norm);
}

KERNEL(add, x + y)
KERNEL(sub, x - y)
KERNEL(mul, ref_product(x, y))
KERNEL(divide, quotient(x, y))
KERNEL(neg, -x)

ref_kernel *ref_complex_kernel(hlo_op op) {
  switch (op) {
    case HLO_ADD: return add;
    case HLO_SUB: return sub;
    case HLO_MUL: return mul;
    case HLO_DIV: return divide;
    case HLO_NEG: return neg;
    default: return NULL;
  }
}

/* Computes real, imag and abs of complex numbers; the results are real.  (ref_unary computes abs of real numbers with
 * another kernel, and the shape rule refuses real operands of real and imag.) */
status ref_part(ref_call *c) {
  dtype from = (dtype)c->in[0].shape.type, to = (dtype)c->out[0].shape.type;
  int64_t n = shape_elements(&c->out[0].shape);
  void *data = ref_result(c, 0);
  ref_buffer x;
  double r[REF_CHUNK];
  for (int64_t k = 0; k < n; k += REF_CHUNK) {
    int64_t m = n - k < REF_CHUNK ? n - k : REF_CHUNK;
    const number *px = ref_load(from, REF_C128, c->in[0].data, k, m, &x);
    for (int64_t j = 0; j < m; j++) {
      r[j] = c->i->op == HLO_REAL ? creal(px[j]) : c->i->op == HLO_IMAG ? cimag(px[j]) : cabs(px[j]);
    }
    ref_store(to, REF_F64, r, data, k, m);
    TRY(ref_work(c, m));
  }
  return NULL;
}

status ref_make_complex(ref_call *c) {
  dtype from = (dtype)c->in[0].shape.type, to = (dtype)c->out[0].shape.type;
  int64_t n = shape_elements(&c->out[0].shape);
  void *data = ref_result(c, 0);
  ref_buffer x, y;
  number r[REF_CHUNK];
  for (int64_t k = 0; k < n; k += REF_CHUNK) {
    int64_t m = n - k < REF_CHUNK ? n - k : REF_CHUNK;
    const double *re = ref_load(from, REF_F64, c->in[0].data, k, m, &x);
    const double *im = ref_load(from, REF_F64, c->in[1].data, k, m, &y);
    for (int64_t j = 0; j < m; j++) {
      r[j] = CMPLX(re[j], im[j]);
    }
    ref_store(to, REF_C128, r, data, k, m);
    TRY(ref_work(c, m));
  }
  return NULL;
}
