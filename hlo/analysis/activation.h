/* activation.h - activations that are spelled out: several operations on one array that together are a known function
 * of it. */
#ifndef HLO_ANALYSIS_ACTIVATION_H
#define HLO_ANALYSIS_ACTIVATION_H

#include "hlo/ir/ir.h"

typedef enum hlo_activation_kind {
  HLO_SWISH,     /* x * logistic(alpha*x) */
  HLO_GELU_ERF,  /* x * (1 + erf(x / sqrt 2)) / 2 */
  HLO_GELU_TANH, /* x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) / 2 */
  HLO_HARD_SWISH /* x * min(max(x/6 + 1/2, 0), 1) */
} hlo_activation_kind;

enum { HLO_ACTIVATION_MEMBERS = 16 };

typedef struct hlo_activation {
  hlo_activation_kind kind;
  double alpha;
  uint32_t n;
  hlo_instr *members[HLO_ACTIVATION_MEMBERS]; /* in list order; the last one's result is the function's */
} hlo_activation;

/* Whether v is an array of one number; *number is it. */
typedef bool hlo_splat_fn(const void *data, hlo_value v, double *number);

/* The activation of result 0 of `x`: nobody but its members uses x, nor any member but the last.  Constants may be off
 * by what f32 rounds, and the operations in any order that means the same.  splat: how to tell splats (bodies of
 * fusions have theirs outside); NULL: as hlo_splat_of. */
bool hlo_find_activation(hlo_instr *x, hlo_splat_fn *splat, const void *data, hlo_activation *out);

#endif
