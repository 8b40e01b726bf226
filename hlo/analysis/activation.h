/* activation.h - finds activations that are written as several operations on one array. */
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
  /* The instructions that compute the activation, in list order; the last one computes its result. */
  hlo_instr *members[HLO_ACTIVATION_MEMBERS];
} hlo_activation;

/* Returns true if all elements of v are the same known number, and sets *number to it. */
typedef bool hlo_splat_fn(const void *data, hlo_value v, double *number);

/* Finds the activation that is computed from result 0 of `x`.  No instruction outside of out->members uses x, or the
 * result of a member other than the last one.  Returns false if there is no such activation.  Constants may differ from
 * the exact ones by rounding errors of f32, and the operations may be any that compute the same polynomial, such as (x
 * + x * t) / 2 for x * (1 + t) / 2.  `splat` recognises splats, since a parameter of a fusion's body may be a splat
 * that is computed outside of the body; NULL means hlo_splat_of. */
bool hlo_find_activation(hlo_instr *x, hlo_splat_fn *splat, const void *data, hlo_activation *out);

#endif
