/* attention.h - attention, however it is spelled: a dot, elementwise work on its result, a softmax of each row, another
 * dot.
 *
 *     result[b, m, :] = sum over n of softmax_n(scores(q[b, m, :] . k[b, n, :])) v[b, n, :]
 *
 * Pass attention makes a fusion of it, of kind attention, which emit/contraction/attention.h writes as one kernel: both
 * ask here what one is. In the linear order of all arrays between the dots a row's elements lie side by side, and rows
 * are [b, m]. */
#ifndef HLO_ANALYSIS_ATTENTION_H
#define HLO_ANALYSIS_ATTENTION_H

#include "hlo/ir/ir.h"

enum { HLO_ATTENTION_MEMBERS = 64 };

typedef struct hlo_attention {
  hlo_instr *qk, *pv;          /* the dots */
  hlo_value q, k, v;           /* where they lie: behind the views that are members; operands of the fusion */
  hlo_value scores;            /* softmax's operand: elementwise from qk's result and from what does not depend on it */
  hlo_instr *max, *exp, *sum;  /* reductions of scores and of exp, which is e^(scores - shift) */
  hlo_value shift, total;      /* one a row, elementwise from the result of max and of sum; what exp is divided by */
  hlo_instr *root;             /* pv, or the transpose of its result */
  int64_t batches, rows, keys; /* of b, m, n */
  uint32_t n;
  hlo_instr *members[HLO_ATTENTION_MEMBERS]; /* from qk's operands to the root; nobody else uses any but the root */
} hlo_attention;

/* What may also be members. */
enum hlo_attention_views {
  HLO_OPERAND_VIEWS = 1, /* the slices, transposes, reshapes and broadcasts that q, k and v come from */
  HLO_RESULT_VIEW = 2    /* a transpose of the result */
};

/* The attention that ends in this dot; views: a set of them. */
bool hlo_find_attention(hlo_instr *pv, unsigned views, hlo_attention *a);
/* That of a fusion of kind attention: all of its body. */
bool hlo_attention_of_fusion(const hlo_instr *i, hlo_attention *a);

#endif
