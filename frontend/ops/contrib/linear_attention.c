/* linear_attention.c - the importers of the operators around linear attention: LinearAttention, the gates and the
 * causal convolution before it. */
#include <string.h>

#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/contrib.h"
#include "frontend/ops/math/activation.h"
#include "frontend/ops/nn/linear_attention.h"

/* Returns an error if the node has states after several steps, of which speculative decoding takes one. */
static status no_window(const onnx_node *n) {
  int64_t window;
  TRY(onnx_attr_int(n->proto, "state_window", 0, &window));
  CHECK_THAT(window == 0, STATUS_UNSUPPORTED, "state_window is not supported");
  return NULL;
}

/* The attribute chunk_size is a hint. */
status onnx_import_contrib_linear_attention(onnx_node *n) {
  TRY(CONTRIB_ATTRIBUTES(n, "update_rule", "q_num_heads", "kv_num_heads", "scale", "chunk_size", "state_window"));
  TRY(no_window(n));
  return onnx_linear_attention(n, true);
}

/* decay = decay_scale * Softplus(a + dt_bias) and beta = Sigmoid(b), computed in f32. */
status onnx_import_contrib_linear_attention_gate(onnx_node *n) {
  enum { A, DT_BIAS, DECAY_SCALE, B };
  hlo_builder *b = n->b;
  hlo_value x;
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  TRY(onnx_need_rank(n, A, "a", 3, 3));
  const shape *s = onnx_in_shape(n, A);
  TRY(onnx_need_dims(n, DT_BIAS, "dt_bias", 1, &s->dims[2]));
  TRY(onnx_need_dims(n, DECAY_SCALE, "decay_scale", 1, &s->dims[2]));
  TRY(onnx_need_dims(n, B, "b", 3, s->dims));
  x = onnx_op_stretched(b, HLO_ADD, onnx_widen(b, n->in[A]), n->in[DT_BIAS]);
  onnx_activation(b, "Softplus", x, (double[2]){0}, &x);
  x = onnx_op_stretched(b, HLO_MUL, x, n->in[DECAY_SCALE]);
  n->out[0] = hlo_convert(b, x, hlo_type(n->in[A]));
  if (onnx_has_out(n, 1)) {
    TRY(contrib_need_input(n, B, "b"));
    n->out[1] = hlo_convert(b, hlo_unary(b, HLO_LOGISTIC, onnx_widen(b, n->in[B])), hlo_type(n->in[B]));
  }
  return NULL;
}

/* With channels_last, the input is [B, L, C] and the state [B, steps, C]. */
status onnx_import_contrib_causal_conv_with_state(onnx_node *n) {
  enum { INPUT, PAST = 3, N_INPUTS };
  static const int64_t swap_last[] = {0, 2, 1};
  hlo_value in[N_INPUTS];
  int64_t ndim;
  bool channels_last;
  TRY(CONTRIB_ATTRIBUTES(n, "ndim", "activation", "dilation", "channels_last", "state_window"));
  TRY(no_window(n));
  TRY(onnx_attr_int(n->proto, "ndim", 1, &ndim));
  CHECK_THAT(ndim == 1, STATUS_UNSUPPORTED, "ndim %d is not supported", (int)ndim);
  TRY(onnx_attr_bool(n->proto, "channels_last", false, &channels_last));
  if (!channels_last) {
    return onnx_import_causal_conv_with_state(n);
  }
  for (uint32_t k = 0; k < N_INPUTS; k++) {
    in[k] = n->in[k];
    if ((k == INPUT || k == PAST) && onnx_has_in(n, k)) {
      CHECK_THAT(hlo_rank(in[k]) == 3, STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE,
                 "%s is %s; several axes of channels are "
                 "not supported",
                 k == INPUT ? "input" : "past_state", SHAPE_STR(onnx_dims(n), onnx_in_shape(n, k)));
      in[k] = hlo_transpose(n->b, in[k], swap_last);
    }
  }
  onnx_node first = contrib_as(n, n->since, n->n_in, in);
  TRY(onnx_import_causal_conv_with_state(&first));
  for (uint32_t k = 0; k < 2; k++) {
    n->out[k] = hlo_transpose(n->b, n->out[k], swap_last);
  }
  return NULL;
}
