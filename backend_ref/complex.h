/* complex.h - products of complex numbers as hlo/ir/OPS.md defines them.  C's operator would replace some NaNs by
 * infinities. */
#ifndef BACKEND_REF_COMPLEX_H
#define BACKEND_REF_COMPLEX_H

#include <complex.h>

#ifndef CMPLX /* glibc's header does not define CMPLX for clang */
#define CMPLX(re, im) __builtin_complex((double)(re), (double)(im))
#endif

static inline double complex ref_product(double complex x, double complex y) {
  return CMPLX(creal(x) * creal(y) - cimag(x) * cimag(y), creal(x) * cimag(y) + cimag(x) * creal(y));
}

#endif
