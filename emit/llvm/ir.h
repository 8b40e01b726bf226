/* ir.h - short functions that write LLVM instructions, for scalars and vectors alike.
 *
 * The result of a function with a parameter `like` is a scalar if `like` is one, otherwise a vector of as many lanes as
 * `like` has. */
#ifndef EMIT_LLVM_IR_H
#define EMIT_LLVM_IR_H

#include <llvm-c/Core.h>

#include "emit/llvm/target.h"

/* The state that all emitters of one LLVM module share.  The next instruction is inserted where the builder is. */
typedef struct emit_ir {
  arena *arena;
  const emit_target *target;
  LLVMContextRef context;
  LLVMModuleRef module;
  LLVMBuilderRef builder;
  LLVMValueRef function; /* the function that is being written */
  /* The argument of onnx_xla_expired (runtime/kernel_externals.def), by which long loops ask whether the run was
   * cancelled; NULL means that they do not ask. */
  LLVMValueRef watch;
  LLVMTypeRef i1, i8, i16, i32, i64, f16, f32, f64, ptr;
} emit_ir;

void emit_ir_init(emit_ir *w, arena *a, const emit_target *t, LLVMContextRef c, LLVMModuleRef m);
void emit_ir_finish(emit_ir *w);

enum { EMIT_MOST_LANES = 256 }; /* no vector has more lanes */
/* Returns the number of lanes of a vector, and 0 for a scalar. */
unsigned emit_lanes(LLVMValueRef v);
LLVMTypeRef emit_scalar_type(LLVMTypeRef t);
LLVMTypeRef emit_vector_type(LLVMTypeRef element, int lanes); /* with 1 lane, returns the element type */
LLVMTypeRef emit_type_like(LLVMValueRef like, LLVMTypeRef element);
/* Returns the number of bits of a number, or of each element of a vector. */
unsigned emit_bits(LLVMValueRef v);

/* These return constants of the type of `like` or of a given type; if it is a vector, all its elements are equal. */
LLVMValueRef emit_f(LLVMValueRef like, double value);
LLVMValueRef emit_i(LLVMValueRef like, int64_t value);
LLVMValueRef emit_fill(LLVMTypeRef type, LLVMValueRef scalar_constant);
LLVMValueRef emit_i_of(LLVMTypeRef type, int64_t value); /* type is an integer or a vector of integers */
LLVMValueRef emit_i64(const emit_ir *w, int64_t value);
LLVMValueRef emit_f_of(LLVMTypeRef type, double value);
LLVMValueRef emit_splat(const emit_ir *w, LLVMValueRef scalar, int lanes);
LLVMValueRef emit_lane(const emit_ir *w, LLVMValueRef vector, int lane); /* returns `vector` itself if it is a scalar */
LLVMValueRef emit_set_lane(const emit_ir *w, LLVMValueRef vector, LLVMValueRef scalar, int lane);
LLVMValueRef emit_shuffle(const emit_ir *w, LLVMValueRef x, LLVMValueRef y, const int *lanes, int n);
/* Returns lanes [from, from + n) of x.  Lanes that x does not have are copies of lane `from`. */
LLVMValueRef emit_lanes_of(const emit_ir *w, LLVMValueRef x, int from, int n);
/* Returns the lanes of `low` and then those of `high`, which is a vector of equally many lanes. */
LLVMValueRef emit_append(const emit_ir *w, LLVMValueRef low, LLVMValueRef high);
/* Transposes in registers the square of elements that `side` vectors of `side` lanes form; `side` is a power of two, at
 * most EMIT_SQUARE_MOST.  Each round exchanges blocks next to the diagonal. */
enum { EMIT_SQUARE_MOST = 64 };
void emit_transpose_square(const emit_ir *w, int side, LLVMValueRef *v);

/* Calls an intrinsic that is overloaded on its first argument's type. */
LLVMValueRef emit_intrinsic(const emit_ir *w, const char *name, int n, const LLVMValueRef *args);
LLVMValueRef emit_intrinsic1(const emit_ir *w, const char *name, LLVMValueRef x);
LLVMValueRef emit_intrinsic2(const emit_ir *w, const char *name, LLVMValueRef x, LLVMValueRef y);

/* Return true if the target has instructions for fused multiply-adds, or for floor, ceil, trunc and roundeven, of
 * numbers of x's type. */
bool emit_has_fma(const emit_ir *w, LLVMValueRef x);
bool emit_has_rounding(const emit_ir *w, LLVMValueRef x);
/* Returns x * y + z, fused if the target has an instruction for it, otherwise rounded twice. */
LLVMValueRef emit_fma(const emit_ir *w, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z);
/* Return the larger and the smaller number of floats as IEEE 754's maximum and minimum do: NaN if one is NaN, and -0 is
 * less than 0. */
LLVMValueRef emit_maximum(const emit_ir *w, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef emit_minimum(const emit_ir *w, LLVMValueRef x, LLVMValueRef y);
/* Returns the larger number of floats by one comparison: either one if both are zeros, and y if one is NaN. */
LLVMValueRef emit_larger(const emit_ir *w, LLVMValueRef x, LLVMValueRef y);
/* Returns x 2^n for an integer n in x's float type, rounded once.  The result is 0 or infinite if it is out of range.
 * Requires target->scalef. */
LLVMValueRef emit_scale(const emit_ir *w, LLVMValueRef x, LLVMValueRef n);
/* Returns x / by as emit_divide does, in less time, for x in [0, 1] and a divisor of at least 1. */
LLVMValueRef emit_divide_small(const emit_ir *w, LLVMValueRef x, LLVMValueRef by, LLVMValueRef inverse);
/* Returns x / by, computed as x * inverse with by's inverse and corrected by the remainder.  That gives the nearest
 * f32 if |by| is in [EMIT_LEAST_DIVISOR, EMIT_MOST_DIVISOR] and the remainder is not denormal.  Requires a target with
 * fused multiply-adds. */
LLVMValueRef emit_divide(const emit_ir *w, LLVMValueRef x, LLVMValueRef by, LLVMValueRef inverse);
#define EMIT_LEAST_DIVISOR 0x1p-60
#define EMIT_MOST_DIVISOR 0x1p60
LLVMValueRef emit_select(const emit_ir *w, LLVMValueRef c, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef emit_fcmp(const emit_ir *w, LLVMRealPredicate p, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef emit_icmp(const emit_ir *w, LLVMIntPredicate p, LLVMValueRef x, LLVMValueRef y);
/* These convert floats to integers of the same bits, and back. */
LLVMValueRef emit_bits_of(const emit_ir *w, LLVMValueRef x);
LLVMValueRef emit_float_of(const emit_ir *w, LLVMValueRef bits);
/* Returns an i1 that is true if any lane is true.  A scalar is returned as it is. */
LLVMValueRef emit_any(const emit_ir *w, LLVMValueRef mask);
/* Returns true if v is a constant, or a splat of one, that equals value. */
bool emit_is_f(LLVMValueRef v, double value);

/* These round without a library function, the first one to the nearest integer, half to even.  NaN, infinities and -0
 * stay as they are. */
LLVMValueRef emit_round_even(const emit_ir *w, LLVMValueRef x);
LLVMValueRef emit_floor(const emit_ir *w, LLVMValueRef x);
LLVMValueRef emit_ceil(const emit_ir *w, LLVMValueRef x);

/* Calls the function `name` for each lane.  It is one of the C library or of emit_own_function, takes n values of the
 * lanes' type (f64 or f32), and returns a value of that type. */
LLVMValueRef emit_call_lanes(const emit_ir *w, const char *name, int n, const LLVMValueRef *args);
/* Returns `easy` in the lanes in which the i1 `hard` is false, and the result of the function `name` (see
 * emit_call_lanes) in the other lanes, if there are any. */
LLVMValueRef emit_call_hard_lanes(const emit_ir *w, LLVMValueRef hard, LLVMValueRef easy, const char *name, int n,
                                  const LLVMValueRef *args);

/* Returns `name` after it has made sure that the module defines the scalar function of that name, which has n
 * parameters of x's element type and returns a value of that type.  `body` writes its instructions and returns its
 * result; it is called for the first use in a module.  emit_call_lanes and emit_call_hard_lanes then call the function
 * by its name. */
typedef LLVMValueRef emit_function_fn(const emit_ir *w, const LLVMValueRef *args);
const char *emit_own_function(const emit_ir *w, const char *name, int n, LLVMValueRef x, emit_function_fn *body);

/* --- control flow --- */

/* Appends a block to the function; the builder does not move. */
LLVMBasicBlockRef emit_block(const emit_ir *w, const char *name);
LLVMBasicBlockRef emit_here(const emit_ir *w);
/* Returns a phi, which is x where control comes from block from_x, and y where it comes from from_y. */
LLVMValueRef emit_phi2(const emit_ir *w, LLVMValueRef x, LLVMBasicBlockRef from_x, LLVMValueRef y,
                       LLVMBasicBlockRef from_y);

enum { EMIT_MAX_CARRIED = 80 };

/* A counted loop with carried values.  Between emit_loop_begin and emit_loop_end the builder is in the loop's body,
 * `iv` is the counter and carried[] has the values at the start of the iteration. emit_loop_end takes the values for
 * the next iteration, leaves the final values in carried[] and moves the builder after the loop. */
typedef struct emit_loop {
  LLVMValueRef iv, to, guard_values[EMIT_MAX_CARRIED], carried[EMIT_MAX_CARRIED];
  LLVMBasicBlockRef body, exit, guard;
  int64_t step;
  int n;
} emit_loop;
/* Begins for (iv = from; iv < to; iv += step) with i64.  `runs` promises that there is at least one iteration. */
void emit_loop_begin(const emit_ir *w, emit_loop *l, LLVMValueRef from, LLVMValueRef to, int64_t step, bool runs, int n,
                     const LLVMValueRef *init);
void emit_loop_end(const emit_ir *w, emit_loop *l, const LLVMValueRef *next);

/* A loop whose number of iterations is not known in advance.  After emit_while_begin, the builder is in the loop's
 * head, carried[] has the values at the start of an iteration, and the caller writes the condition.  After
 * emit_while_test, the builder is in the body. emit_while_end takes the values for the next iteration and moves the
 * builder after the loop, where carried[] has the values for which the condition was false. */
typedef struct emit_while {
  LLVMValueRef carried[EMIT_MAX_CARRIED];
  LLVMBasicBlockRef head, exit;
  int n;
} emit_while;
void emit_while_begin(const emit_ir *w, emit_while *l, int n, const LLVMValueRef *init);
void emit_while_test(const emit_ir *w, emit_while *l, LLVMValueRef condition);
void emit_while_end(const emit_ir *w, emit_while *l, const LLVMValueRef *next);

/* The first begins code that runs only if the condition is true.  The second ends that code and moves the builder after
 * it; it takes the block that emit_if_begin has returned. */
LLVMBasicBlockRef emit_if_begin(const emit_ir *w, LLVMValueRef condition);
void emit_if_end(const emit_ir *w, LLVMBasicBlockRef after);

/* Returns the integer or pointer x in a way that hides its computation from LLVM's loop passes.  This is for positions
 * that are computed by division and for the starts of inner loops. target.c asks LLVM to leave out loop strength
 * reduction; a version of LLVM that runs it nevertheless would otherwise take these computations apart, and spend half
 * of the time of code generation on that. */
LLVMValueRef emit_opaque(const emit_ir *w, LLVMValueRef x);

/* Makes LLVM keep no value in a vector register across this point, on x86-64 and AArch64; does nothing on other
 * architectures.  LLVM hoists constants out of all loops, and would then lack registers in an inner loop that needs all
 * of them: that of a product whose epilogue has many constants. */
void emit_forget_vectors(const emit_ir *w);

/* EMIT_POLL is about how many elements the innermost loops may process between two checks of the run's budget.
 * EMIT_ANY_NUMBER stands for a number of iterations that is not known when the code is written. */
enum { EMIT_POLL = 1 << 18, EMIT_ANY_NUMBER = INT32_MAX };
/* For the body of a loop `for (iv = 0; iv < n; iv += step)` that processes `inner` elements for each value of iv:
 * writes code that calls onnx_xla_expired now and then, and returns from the kernel if the run is cancelled or its time
 * is up.  Writes nothing if emit_ir.watch is NULL, if the loop is short, or if `inner` is so large that loops inside of
 * this one poll.  If n is EMIT_ANY_NUMBER, a loop that turns out to be short does not call. */
void emit_poll(const emit_ir *w, LLVMValueRef iv, int64_t step, int64_t n, int64_t inner);

#endif
