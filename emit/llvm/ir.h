/* ir.h - small words for writing LLVM instructions, on scalars and vectors alike.
 *
 * Wherever a function takes `like`, the result has its shape: a scalar, or a vector of as many lanes. */
#ifndef EMIT_LLVM_IR_H
#define EMIT_LLVM_IR_H

#include <llvm-c/Core.h>

#include "emit/llvm/target.h"

/* What all writers of one module share.  The builder stands where the next instruction goes. */
typedef struct emit_ir {
  arena *arena;
  const emit_target *target;
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  LLVMValueRef function; /* being written */
  LLVMValueRef watch;    /* what onnx_xla_expired is asked about; NULL means nothing is */
  LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, ptr;
} emit_ir;

void emit_ir_init(emit_ir *w, arena *a, const emit_target *t, LLVMContextRef c, LLVMModuleRef m);
void emit_ir_finish(emit_ir *w);

/* 0 for a scalar. */
unsigned emit_lanes(LLVMValueRef v);
LLVMTypeRef emit_scalar_type(LLVMTypeRef t);
LLVMTypeRef emit_vector_type(LLVMTypeRef element, int lanes); /* lanes 1: the element */
LLVMTypeRef emit_type_like(LLVMValueRef like, LLVMTypeRef element);
/* Bits of an element. */
unsigned emit_bits(LLVMValueRef v);

/* Constants of like's own type, or of another element type. */
LLVMValueRef emit_f(LLVMValueRef like, double value);
LLVMValueRef emit_i(LLVMValueRef like, int64_t value);
LLVMValueRef emit_fill(LLVMTypeRef type, LLVMValueRef scalar_constant);
LLVMValueRef emit_i_of(LLVMTypeRef type, int64_t value); /* type: integer or vector of them */
LLVMValueRef emit_i64(const emit_ir *w, int64_t value);
LLVMValueRef emit_f_of(LLVMTypeRef type, double value);
LLVMValueRef emit_splat(const emit_ir *w, LLVMValueRef scalar, int lanes);
LLVMValueRef emit_lane(const emit_ir *w, LLVMValueRef vector, int lane); /* a scalar gives itself */
LLVMValueRef emit_set_lane(const emit_ir *w, LLVMValueRef vector, LLVMValueRef scalar, int lane);
LLVMValueRef emit_shuffle(const emit_ir *w, LLVMValueRef x, LLVMValueRef y, const int *lanes, int n);

/* An intrinsic overloaded on its first argument's type. */
LLVMValueRef emit_intrinsic(const emit_ir *w, const char *name, int n, const LLVMValueRef *args);
LLVMValueRef emit_intrinsic1(const emit_ir *w, const char *name, LLVMValueRef x);
LLVMValueRef emit_intrinsic2(const emit_ir *w, const char *name, LLVMValueRef x, LLVMValueRef y);

/* x * y + z: fused where the target does that in one instruction, else rounded twice. */
LLVMValueRef emit_fma(const emit_ir *w, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z);
/* x 2^n for a whole n of x's type, rounded once; what is out of range becomes 0 or infinite.  Only where
 * target->scalef. */
LLVMValueRef emit_scale(const emit_ir *w, LLVMValueRef x, LLVMValueRef n);
/* x / by from by's inverse: the quotient, corrected by its remainder, which gives the nearest f32 as long as |by| is in
 * [EMIT_LEAST_DIVISOR, EMIT_MOST_DIVISOR] and the remainder is no denormal.  For targets with fused multiply-adds. */
LLVMValueRef emit_divide(const emit_ir *w, LLVMValueRef x, LLVMValueRef by, LLVMValueRef inverse);
#define EMIT_LEAST_DIVISOR 0x1p-60
#define EMIT_MOST_DIVISOR 0x1p60
LLVMValueRef emit_select(const emit_ir *w, LLVMValueRef c, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef emit_fcmp(const emit_ir *w, LLVMRealPredicate p, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef emit_icmp(const emit_ir *w, LLVMIntPredicate p, LLVMValueRef x, LLVMValueRef y);
/* Floats as integers of their width and back. */
LLVMValueRef emit_bits_of(const emit_ir *w, LLVMValueRef x);
LLVMValueRef emit_float_of(const emit_ir *w, LLVMValueRef bits);
/* One i1: some lane is true (a scalar: itself). */
LLVMValueRef emit_any(const emit_ir *w, LLVMValueRef mask);
/* Does the constant (splat) equal value?  False for what is no constant. */
bool emit_is_f(LLVMValueRef v, double value);

/* Rounding that needs no library on any target; NaN, infinities and -0 stay. */
LLVMValueRef emit_round_even(const emit_ir *w, LLVMValueRef x);
LLVMValueRef emit_floor(const emit_ir *w, LLVMValueRef x);
LLVMValueRef emit_ceil(const emit_ir *w, LLVMValueRef x);

/* Calls an external function of the C library on each lane: double f(double, ...). */
LLVMValueRef emit_call_lanes(const emit_ir *w, const char *name, int n, const LLVMValueRef *args);
/* `easy`, but for lanes that are `hard` (i1), which that function gives; it is called only where there are such. */
LLVMValueRef emit_call_hard_lanes(const emit_ir *w, LLVMValueRef hard, LLVMValueRef easy, const char *name, int n,
                                  const LLVMValueRef *args);

/* --- control flow --- */

LLVMBasicBlockRef emit_block(const emit_ir *w, const char *name); /* appended, not entered */
LLVMBasicBlockRef emit_here(const emit_ir *w);

enum { EMIT_MAX_CARRIED = 64 };

/* A counted loop with carried values.  Between begin and end the builder stands in its body; `iv` is the
 * counter and carried[] the values at the start of the iteration.  emit_loop_end takes the next values and
 * leaves the final ones in carried[], with the builder behind the loop. */
typedef struct emit_loop {
  LLVMValueRef iv, to, guard_values[EMIT_MAX_CARRIED], carried[EMIT_MAX_CARRIED];
  LLVMBasicBlockRef body, exit, guard;
  int64_t step;
  int n;
} emit_loop;
/* for (iv = from; iv < to; iv += step), i64; `runs` says that it runs at least once. */
void emit_loop_begin(const emit_ir *w, emit_loop *l, LLVMValueRef from, LLVMValueRef to, int64_t step, bool runs, int n,
                     const LLVMValueRef *init);
void emit_loop_end(const emit_ir *w, emit_loop *l, const LLVMValueRef *next);

/* An integer or a pointer of which LLVM's loop passes know no more than its value.  For places that are computed by
 * division, and where inner loops begin: the passes would take them apart into all that they are made of, and spend
 * half of the time of code generation on it. */
LLVMValueRef emit_opaque(const emit_ir *w, LLVMValueRef x);

/* No vector stays in a register from before to behind this place.  LLVM takes constants out of all loops around them
 * and then has too few registers for a loop in between that needs them all: a product whose epilogue has fifteen
 * constants ran at half its speed. */
void emit_forget_vectors(const emit_ir *w);

/* Work between two looks at the budget: elements of the innermost loops. */
enum { EMIT_POLL = 1 << 18 };
/* In the body of `for (iv = 0; iv < n; iv += step)`, where each iv means `inner` elements: returns from the function
 * now and then if the run has no time left.  Nothing for loops that are soon over. */
void emit_poll(const emit_ir *w, LLVMValueRef iv, int64_t step, int64_t n, int64_t inner);

#endif
