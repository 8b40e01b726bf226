/* contraction.h - dots and convolutions, alone or with an epilogue: what the library takes of them, and how. */
#ifndef BACKEND_CPU_ALGORITHMS_CONTRACTION_H
#define BACKEND_CPU_ALGORITHMS_CONTRACTION_H

#include "backend_cpu/runtime/contraction.h"
#include "emit/llvm/target.h"
#include "hlo/passes/pass.h"

/* How one instruction is computed by the library. */
typedef struct cpu_library_plan {
  cpu_contraction c;
  const hlo_instr *instr;
  hlo_value lhs, weights, bias;       /* of the computation that `instr` stands in; bias.def NULL: none */
  hlo_value arrays[CPU_MAX_POST_OPS]; /* of the posts that read one, in order */
  hlo_value sum;                      /* added to the result, whose buffer holds it beforehand; def NULL: none */
  cpu_call *call;
  cpu_call_info info;
} cpu_library_plan;

/* Whether `consumer` may follow the contraction in one call, its operand number `operand` being the value so far
 * (hlo_target.takes_epilogue). */
bool cpu_takes_epilogue(void *data, const hlo_instr *contraction, const hlo_instr *consumer, uint32_t operand);
/* hlo_target.takes_activation. */
bool cpu_takes_activation(void *data, const hlo_instr *contraction, const hlo_instr *x, const hlo_activation *a);

/* hlo_target.data: what passes ask about. */
typedef struct cpu_asked {
  const rt_compile_options *options;
  const emit_target *target;
} cpu_asked;

/* hlo_target.takes_bytes. */
bool cpu_takes_bytes(void *data, const hlo_instr *contraction, dtype lhs);

/* hlo_target.takes_quantized_weights.  The algorithm "gemm" does it. */
bool cpu_takes_quantized_weights(void *data, const hlo_instr *dot);
bool cpu_takes_in_place_update(void *data, const hlo_instr *i);

/* Below so many multiplications a library call costs more than it saves. */
enum { CPU_SMALL_CONTRACTION = 16384 };

/* The dot or convolution that `i` is, or that an output fusion holds; NULL: neither. */
hlo_instr *cpu_find_contraction(const hlo_instr *i);
/* Of a dot or convolution of any type. */
double cpu_multiplications(const hlo_instr *contraction);

/* The geometry, operands and epilogue of a dot, a convolution or an output fusion in a library's words, without parts
 * and call; false where they have none for it. */
bool cpu_library_plan_read(const hlo_instr *i, cpu_library_plan *p);

#endif
