/* contraction.h - dots and convolutions, alone or with an epilogue, as the library (oneDNN or OpenBLAS) computes
 * them. */
#ifndef BACKEND_CPU_ALGORITHMS_CONTRACTION_H
#define BACKEND_CPU_ALGORITHMS_CONTRACTION_H

#include "backend_cpu/runtime/contraction.h"
#include "emit/llvm/target.h"
#include "hlo/passes/pass.h"

/* How one instruction is computed by a library call. */
typedef struct cpu_library_plan {
  cpu_contraction c;
  const hlo_instr *instr;
  /* lhs, weights and bias are values of the computation that contains `instr`; bias.def is NULL if there is no bias */
  hlo_value lhs, weights, bias;
  hlo_value arrays[CPU_MAX_POST_OPS]; /* the arrays that post-ops read, in order */
  hlo_value sum; /* the residual, which is in the result's buffer before the call and is added; def is NULL if there is
                    none */
  cpu_call *call;
  cpu_call_info info;
} cpu_library_plan;

/* This is hlo_target.takes_epilogue.  Returns true if the library call or kernel of the contraction can compute
 * `consumer` as well.  Operand number `operand` of `consumer` is the value that the call or kernel has computed so
 * far. */
bool cpu_takes_epilogue(void *data, const hlo_instr *contraction, const hlo_instr *consumer, uint32_t operand);
/* This is hlo_target.takes_activation. */
bool cpu_takes_activation(void *data, const hlo_instr *contraction, const hlo_instr *x, const hlo_activation *a);

/* The type of what hlo_target.data points to.  Passes hand that pointer to the functions of hlo_target as their first
 * argument, `data`. */
typedef struct cpu_asked {
  const rt_compile_options *options;
  const emit_target *target;
} cpu_asked;

/* Returns true if the contraction needs a generated kernel: no library may be called, sizes are arguments, or s16 are
 * multiplied. */
bool cpu_needs_own_kernel(const cpu_asked *about, const hlo_instr *contraction);

/* This is hlo_target.takes_narrow_operands. */
bool cpu_takes_narrow_operands(void *data, const hlo_instr *contraction, dtype lhs);

/* This is hlo_target.takes_quantized_weights.  The algorithm "gemm" computes such dots. */
bool cpu_takes_quantized_weights(void *data, const hlo_instr *dot);
/* This is hlo_target.takes_in_place_update.  Returns true only for contractions that a kernel of "gemm" or "depthwise"
 * can compute, since no library call writes to a part of an array.  Returns false in a provisional program: there a
 * library call and a copy are better than a kernel, which must be compiled first. */
bool cpu_takes_in_place_update(void *data, const hlo_instr *i);

/* A contraction with fewer multiplications than this is faster without a library call. */
enum { CPU_SMALL_CONTRACTION = 16384 };

/* Returns the dot or convolution that `i` is or, if it is an output fusion, contains.  Returns NULL if there is none,
 * or if a fusion contains several. */
hlo_instr *cpu_find_contraction(const hlo_instr *i);
/* Returns the number of multiplications of a dot or convolution of any type. */
double cpu_multiplications(const hlo_instr *contraction);

/* Describes a dot, a convolution or an output fusion as a library call: sets its geometry, operands and epilogue, but
 * neither the number of parts into which it is divided nor `call`.  Returns false if no call of the library computes
 * it. */
bool cpu_library_plan_read(const hlo_instr *i, cpu_library_plan *p);

#endif
