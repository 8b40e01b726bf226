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
  hlo_instr *qk, *pv; /* the dots */
  hlo_value q, k, v;  /* the operands of the fusion, before the views that are members */
  /* The operand of softmax: computed elementwise from the result of qk and from values that do not depend on it. */
  hlo_value scores;
  hlo_instr *max, *exp, *sum; /* the reductions of the scores and of exp; exp is e^(scores - shift) */
  /* One value a row, computed elementwise from the results of max and sum; `total` is what exp is divided by. */
  hlo_value shift, total;
  hlo_instr *root;             /* pv, or a transpose of its result */
  int64_t batches, rows, keys; /* the sizes of b, m and n */
  uint32_t n;
  /* From the operands of qk to the root; only the root is used by instructions that are not members. */
  hlo_instr *members[HLO_ATTENTION_MEMBERS];
} hlo_attention;

/* Instructions that may be members besides. */
enum hlo_attention_views {
  HLO_OPERAND_VIEWS = 1, /* the slices, transposes, reshapes and broadcasts from which q, k and v come */
  HLO_RESULT_VIEW = 2    /* a transpose of the result */
};

/* Finds the attention that ends with this dot; `views` is a set of hlo_attention_views. */
bool hlo_find_attention(hlo_instr *pv, unsigned views, hlo_attention *a);
/* Finds the attention that a fusion of kind attention computes; it is its whole body. */
bool hlo_attention_of_fusion(const hlo_instr *i, hlo_attention *a);

#endif
