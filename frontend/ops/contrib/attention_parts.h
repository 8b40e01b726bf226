/* attention_parts.h - attention as the operators of ONNX Runtime compute it: scores of heads, what is added to them,
 * which keys a query sees, and softmax.  In the shapes in comments, B is the size of the batch, S the number of steps
 * (queries), and "." any size. */
#ifndef FRONTEND_OPS_CONTRIB_ATTENTION_PARTS_H
#define FRONTEND_OPS_CONTRIB_ATTENTION_PARTS_H

#include "frontend/ops/contrib/contrib.h"

typedef struct contrib_attention {
  dim batch, steps, keys; /* the size of the batch, and how many queries (steps) and keys each of its elements has */
  int64_t heads, kv_heads, head; /* the number of heads of Q, that of K and V, and the number of elements of a head */
  float scale, softcap;          /* a softcap of 0 means none */
  bool may_be_blind;             /* whether a query may see no key at all; its result is then 0 */
  hlo_value sink; /* f32[heads]: an additional score of each head, which takes part in softmax but has no row of V; def
                     is NULL if there is none */
} contrib_attention;

/* Reads num_heads, which must be positive, and kv_num_heads if `grouped`. */
STATUS_MUST_USE status contrib_read_heads(const onnx_node *n, bool grouped, contrib_attention *a);
/* Reads scale, whose default is 1 / sqrt(a->head). */
STATUS_MUST_USE status contrib_read_scale(const onnx_node *n, contrib_attention *a);

/* Converts x [B, heads, S, .] to [B, S, heads * .]. */
hlo_value contrib_join_heads(hlo_builder *b, hlo_value x);

/* Sets *out to the cache [B, kv_heads, ., .] with the new rows x [B, kv_heads, S, .] at the positions from start[b] on,
 * for each element b of the batch.  `start` is s64[B].  The run fails if there is no room for the rows. */
STATUS_MUST_USE status contrib_write_rows(const onnx_node *n, hlo_value cache, hlo_value x, hlo_value start,
                                          hlo_value *out);

/* Returns the scores of q [B, heads, S, head] and k [B, kv_heads, keys, head], as [B, heads, S, keys] in f32. */
hlo_value contrib_scores(hlo_builder *b, const contrib_attention *a, hlo_value q, hlo_value k);
/* Adds input k, [B or 1, heads or 1, S, keys], to the scores if it is given. */
STATUS_MUST_USE status contrib_add_bias(const onnx_node *n, const contrib_attention *a, uint32_t k, hlo_value *scores);
/* Returns the scores with -infinity where `seen` is false, so that softmax ignores them.  `seen` is pred, with the
 * dimensions of the scores. */
hlo_value contrib_hide(hlo_builder *b, hlo_value scores, hlo_value seen);
/* Returns softmax of the scores times v [B, kv_heads, keys, .], as [B, heads, S, .] in f32. */
hlo_value contrib_weigh(hlo_builder *b, const contrib_attention *a, hlo_value scores, hlo_value v);

#endif
