/* attention.h - recognises attention, however it is expressed: a dot, elementwise operations on its result, a softmax
 * of each row, and a second dot.
 *
 *     result[b, m, :] = sum over n of softmax_n(scores(q[b, m, :] . k[b, n, :])) v[b, n, :]
 *
 * The softmax may be computed in a wider type of floats, and its result rounded to that of v.
 *
 * Pass attention makes it a fusion of kind attention, and emit/contraction/attention.h emits the fusion as one kernel;
 * both recognise it with this file.  The arrays between the dots have one row for each [b, m], and the elements of a
 * row are contiguous. */
#ifndef HLO_ANALYSIS_ATTENTION_H
#define HLO_ANALYSIS_ATTENTION_H

#include "hlo/ir/ir.h"

enum { HLO_ATTENTION_MEMBERS = 64 };

typedef struct hlo_attention {
  hlo_instr *qk, *pv; /* the dot of q and k, and the dot of the softmax (p) and v */
  hlo_value q, k, v;  /* the operands of the fusion; views of them may be in `members` */
  /* The operand of softmax, which is computed elementwise from the result of qk and from values that do not depend on
   * that result. */
  hlo_value scores;
  hlo_instr *max, *exp, *sum; /* max reduces the scores, sum reduces exp; exp is e^(scores - shift) */
  /* Each has one value for each row.  `shift` is computed elementwise from the result of max.  `total`, by which exp is
   * divided, is computed elementwise from the result of sum. */
  hlo_value shift, total;
  bool total_sees_max; /* whether `total` depends on max as well as on sum, as it may if whole rows can be masked */
  /* Whether 0 stands for the softmax of rows in which it is NaN, as exporters write it for rows that may be masked. The
   * result of such a row is the sum of the rows of v times 0.  Then shift is the result of max, and total that of sum,
   * so that either all elements of a row are NaN or none. */
  bool zero_where_nan;
  hlo_instr *root;         /* pv, or a transpose of its result */
  dim batches, rows, keys; /* the numbers of batches (b), rows of q (m), and keys (n), which may be symbolic */
  uint32_t n;
  /* The instructions of the fusion.  Only the result of `root` is used by instructions that are not members. */
  hlo_instr *members[HLO_ATTENTION_MEMBERS];
} hlo_attention;

/* Further instructions that hlo_find_attention may add to `members`, as bits. */
enum hlo_attention_views {
  HLO_OPERAND_VIEWS = 1, /* the slices, transposes, reshapes and broadcasts from which q, k and v come */
  HLO_RESULT_VIEW = 2    /* a transpose of the result */
};

/* Finds the attention whose second dot is `pv`; `views` is a set of hlo_attention_views. */
bool hlo_find_attention(hlo_instr *pv, unsigned views, hlo_attention *a);
/* Finds the attention that the body of a fusion of kind attention computes.  Returns false if `i` is not such
 * a fusion. */
bool hlo_attention_of_fusion(const hlo_instr *i, hlo_attention *a);

/* Returns true if scores are shifted by their maximum, so that no exponential is more than 1 but in rows that have a
 * NaN or an infinite score, whose results are NaN.  Where the maximum is infinite, as in rows that have no key, the
 * shift may be another value. */
bool hlo_shifts_by_maximum(const hlo_attention *a);

#endif
