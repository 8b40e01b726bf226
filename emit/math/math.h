/* math.h - the transcendental functions, as instructions on f32 and f64 scalars or vectors.
 *
 * In f32 they are polynomials with fused multiply-adds ("fma" in the table), the same on every target.  If the target
 * has no such instruction ("plain"), products are rounded before the addition, and errors are a little larger.  The
 * results for infinities, NaN, zeros and denormals are those of C's functions.  The largest errors that were measured
 * over dense samples of all of f32 are, in units of the last place (ULP):
 *
 *              fma  plain           fma  plain             fma  plain
 *   exp        1.1  1.1      sin       1.5  1.5      sinh      1.7  1.7
 *   expm1      1.7  1.7      cos       1.6  1.6      cosh      1.6  1.6
 *   log        0.9  0.9      tan       2.6  2.6      tanh      2.5  2.5
 *   log1p      1.4  1.4      asin      2.3  2.3      asinh     1.9  1.9
 *   logistic   2.5  2.5      acos      1.1  1.1      acosh     2.1  2.1
 *   erf        1.1  1.3      atan      1.5  1.6      atanh     2.2  2.2
 *   pow        0.51 0.51     atan2     1.6  1.6
 *
 * In f64 these are polynomials as well:
 *
 *   exp        1.0      log        0.9      sin       2.6      sinh      1.7
 *   expm1      2.1      log1p      1.4      cos       2.6      cosh      1.6
 *   logistic   2.4      tanh       2.7
 *
 * For the other functions, and for sin and cos of arguments from 2^20 on, the C library is called for each lane, since
 * its errors are smaller.  Targets without one (emit_target.libm), which all have fused multiply-adds, use these
 * polynomials:
 *
 *   tan        2.7      asin       2.3      asinh     2.0      erf       1.3
 *   pow        0.8      acos       1.3      acosh     2.4
 *   atan2      1.7      atan       1.8      atanh     2.2 */
#ifndef EMIT_MATH_MATH_H
#define EMIT_MATH_MATH_H

#include "emit/llvm/ir.h"
#include "hlo/ir/ir.h"

/* Returns true if emit_math writes the operation; others are plain instructions (elementwise.c). */
bool emit_is_math(hlo_op op);

/* Returns the operation of x, or of x and y for POW and ATAN2; otherwise y is NULL.  The operands are f32 or f64,
 * scalars or vectors. */
LLVMValueRef emit_math(const emit_ir *w, hlo_op op, LLVMValueRef x, LLVMValueRef y);

/* Returns the same bits as emit_math for HLO_EXP, in less time, where x is at most 0 or NaN. */
LLVMValueRef emit_exp_at_most_1(const emit_ir *w, LLVMValueRef x);

/* Returns the remainder of floats, exactly what C's fmod returns. */
LLVMValueRef emit_remainder(const emit_ir *w, LLVMValueRef x, LLVMValueRef y);

/* Returns x times logistic(y), in less time than the two operations take separately.  The error is 1.7 ULP for |y| up
 * to 8, and up to 7.0 ULP for y near -80 (3.8 without fused multiply-adds).  logistic(y) counts as 0 where it is at
 * most half of the least denormal number. */
LLVMValueRef emit_times_logistic(const emit_ir *w, LLVMValueRef x, LLVMValueRef y);

#endif
