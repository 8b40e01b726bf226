/* recurrent.c - the importer of DynamicQuantizeLSTM, into which ONNX Runtime's quantiser turns an LSTM. */
#include <inttypes.h>

#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/contrib.h"

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, P, W_SCALE, W_ZERO_POINT, R_SCALE, R_ZERO_POINT };

/* Sets *out to input `at`, a scale or zero point, broadcast to s, the shape of the weights [directions, inputs, gates *
 * hidden].  It has an element for each direction, or for each column of each direction. */
static status of_columns(const onnx_node *n, uint32_t at, const char *what, const shape *s, hlo_value *out) {
  static const int64_t dimensions[] = {0, 2};
  const shape *have = onnx_in_shape(n, at);
  dim want[] = {s->dims[0], s->dims[2]};
  TRY(onnx_need_dims(n, at, what, have->rank == 1 ? 1 : 2, want));
  *out = hlo_broadcast(n->b, n->in[at], shape_with_type(*s, (dtype)have->type), dimensions);
  return NULL;
}

/* Sets *out to the weights in input k, in f32 and as LSTM has them, [directions, gates * hidden, inputs].  Their scale
 * is input `scale`, and their zero point the next one. */
static status dequantized(const onnx_node *n, uint32_t k, uint32_t scale, const char *what, hlo_value *out) {
  static const int64_t swap_last[] = {0, 2, 1};
  hlo_builder *b = n->b;
  const shape *s = onnx_in_shape(n, k);
  hlo_value factor, zero;
  TRY(onnx_need_rank(n, k, what, 3, 3));
  TRY(of_columns(n, scale, "a scale", s, &factor));
  TRY(of_columns(n, scale + 1, "a zero point", s, &zero));
  hlo_value q = hlo_binary(b, HLO_SUB, hlo_convert(b, n->in[k], DTYPE_S32), hlo_convert(b, zero, DTYPE_S32));
  *out = hlo_transpose(b, hlo_binary(b, HLO_MUL, hlo_convert(b, q, DTYPE_F32), factor), swap_last);
  return NULL;
}

/* ONNX Runtime rounds X and the hidden states to bytes, those of as many rows at once as a thread computes, so that its
 * results depend on the number of threads.  Here they are not rounded. */
status onnx_import_contrib_dynamic_quantize_lstm(onnx_node *n) {
  enum { LSTM_INPUTS = P + 1, LSTM_VERSION = 7 };
  hlo_value in[LSTM_INPUTS];
  TRY(CONTRIB_ATTRIBUTES(n, "activation_alpha", "activation_beta", "activations", "clip", "direction", "hidden_size",
                         "input_forget"));
  for (uint32_t k = 0; k <= R_ZERO_POINT; k++) {
    CHECK_THAT(onnx_has_in(n, k) || (k >= B && k <= P), STATUS_INVALID_MODEL, "input %" PRIu32 " is missing", k);
    if (k < LSTM_INPUTS) {
      in[k] = n->in[k];
    }
  }
  TRY(dequantized(n, W, W_SCALE, "W", &in[W]));
  TRY(dequantized(n, R, R_SCALE, "R", &in[R]));
  if (n->b->error) {
    return NULL;
  }
  onnx_node lstm = contrib_as(n, LSTM_VERSION, LSTM_INPUTS, in);
  return onnx_import_lstm(&lstm);
}
