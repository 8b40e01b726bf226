/* attention_parts.c - the scores, masks and softmax of attention (attention_parts.h). */
#include "frontend/ops/contrib/attention_parts.h"

#include <inttypes.h>
#include <math.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/nn/attention.h"

static const int64_t swap_heads[] = {0, 2, 1, 3};

status contrib_read_heads(const onnx_node *n, bool grouped, contrib_attention *a) {
  TRY(onnx_attr_required(n->proto, "num_heads"));
  TRY(onnx_attr_int_in(n->proto, "num_heads", 0, 1, INT32_MAX, &a->heads));
  a->kv_heads = a->heads;
  if (grouped) {
    TRY(onnx_attr_required(n->proto, "kv_num_heads"));
    TRY(onnx_attr_int_in(n->proto, "kv_num_heads", 0, 1, INT32_MAX, &a->kv_heads));
  }
  CHECK_THAT(a->heads % a->kv_heads == 0, STATUS_INVALID_MODEL,
             "num_heads %" PRId64 " is no multiple of kv_num_heads %" PRId64, a->heads, a->kv_heads);
  return NULL;
}

status contrib_read_scale(const onnx_node *n, contrib_attention *a) {
  TRY(onnx_attr_float(n->proto, "scale", 0, &a->scale));
  a->scale = a->scale == 0 ? 1 / sqrtf((float)a->head) : a->scale; /* 0 means the default, too */
  return NULL;
}

hlo_value contrib_join_heads(hlo_builder *b, hlo_value x) {
  if (b->error) {
    return x;
  }
  const shape *s = hlo_shape(x);
  dim all = dim_mul(b->computation->module->dims, s->dims[1], s->dims[3]);
  return hlo_reshape(b, hlo_transpose(b, x, swap_heads), 3, (dim[]){s->dims[0], s->dims[2], all});
}

status contrib_write_rows(const onnx_node *n, hlo_value cache, hlo_value x, hlo_value start, hlo_value *out) {
  hlo_value in[] = {cache, x, start};
  if (n->b->error) {
    return NULL;
  }
  onnx_node scatter = contrib_as(n, 24, 3, in);
  scatter.out = out;
  return onnx_import_tensor_scatter(&scatter);
}

/* q is multiplied by the scale, and not the scores or the keys, since q usually has fewer elements than the scores, and
 * than the keys if there is a cache. */
hlo_value contrib_scores(hlo_builder *b, const contrib_attention *a, hlo_value q, hlo_value k) {
  q = onnx_times(b, hlo_convert(b, q, DTYPE_F32), a->scale);
  hlo_value x = onnx_head_product(b, q, hlo_convert(b, k, DTYPE_F32), 3, a->heads, a->kv_heads);
  if (a->softcap == 0) {
    return x;
  }
  x = hlo_unary(b, HLO_TANH, hlo_binary(b, HLO_DIV, x, hlo_like(b, x, a->softcap)));
  return onnx_times(b, x, a->softcap);
}

status contrib_add_bias(const onnx_node *n, const contrib_attention *a, uint32_t k, hlo_value *scores) {
  if (!onnx_has_in(n, k)) {
    return NULL;
  }
  dim_table *t = onnx_dims(n);
  TRY(onnx_need_rank(n, k, "attention_bias", 4, 4));
  const dim *have = onnx_in_shape(n, k)->dims;
  dim want[] = {a->batch, a->heads, a->steps, a->keys};
  for (int d = 0; d < 2; d++) {
    want[d] = dim_known_equal(t, have[d], 1) ? 1 : want[d];
  }
  TRY(onnx_need_dims(n, k, "attention_bias", 4, want));
  *scores = onnx_op_stretched(n->b, HLO_ADD, *scores, hlo_convert(n->b, n->in[k], DTYPE_F32));
  return NULL;
}

hlo_value contrib_hide(hlo_builder *b, hlo_value scores, hlo_value seen) {
  return hlo_select(b, seen, scores, hlo_like(b, scores, -INFINITY));
}

/* Returns the softmax of the scores x over their last dimension. */
static hlo_value probabilities(hlo_builder *b, const contrib_attention *a, hlo_value x) {
  int64_t axis = 3, head = 1;
  if (!a->sink.def && !a->may_be_blind) {
    return onnx_softmax(b, x, axis);
  }
  hlo_value most = onnx_reduce_keep(b, x, HLO_REDUCE_MAX, 1, &axis), blind = {0}, sink = {0};
  if (a->sink.def) {
    sink = hlo_broadcast(b, a->sink, *hlo_shape(most), &head);
    most = hlo_binary(b, HLO_MAX, most, sink);
  } else {
    blind = onnx_compare_scalar(b, HLO_EQ, most, -INFINITY);
    most = hlo_select(b, blind, hlo_like(b, most, 0), most);
  }
  hlo_value e = hlo_unary(b, HLO_EXP, onnx_op_stretched(b, HLO_SUB, x, most));
  hlo_value sum = onnx_reduce_keep(b, e, HLO_REDUCE_ADD, 1, &axis);
  if (sink.def) {
    sum = hlo_binary(b, HLO_ADD, sum, hlo_unary(b, HLO_EXP, hlo_binary(b, HLO_SUB, sink, most)));
  } else {
    sum = hlo_select(b, blind, hlo_like(b, sum, 1), sum);
  }
  return onnx_op_stretched(b, HLO_DIV, e, sum);
}

hlo_value contrib_weigh(hlo_builder *b, const contrib_attention *a, hlo_value scores, hlo_value v) {
  hlo_value p = probabilities(b, a, scores);
  return onnx_head_product(b, p, hlo_convert(b, v, DTYPE_F32), 2, a->heads, a->kv_heads);
}
