/* complex.c - the importers of ComplexMul, ComplexMulConj, Rfft and Irfft.  The last dimension of complex arrays holds
 * the real and the imaginary part. */
#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/contrib.h"
#include "frontend/ops/math/fourier.h"

static status need_complex(const onnx_node *n, uint32_t k, const char *what) {
  const shape *s = onnx_in_shape(n, k);
  CHECK_THAT(s->rank >= 1 && dim_equal(onnx_dims(n), s->dims[s->rank - 1], 2), STATUS_INVALID_MODEL,
             "%s is %s; its last dimension must be 2", what, SHAPE_STR(onnx_dims(n), s));
  return NULL;
}

/* --- ComplexMul, ComplexMulConj --- */

/* Returns a part of x, 0 for the real one or 1 for the imaginary one, which becomes `negative` if that is set. */
static hlo_value part(hlo_builder *b, hlo_value x, int64_t index, bool negative) {
  if (!x.def) {
    return x;
  }
  x = onnx_pick(b, onnx_widen(b, x), hlo_rank(x) - 1, index);
  return negative ? hlo_unary(b, HLO_NEG, x) : x;
}

/* ComplexMulConj multiplies by the conjugates of B. */
status onnx_import_contrib_complex_mul(onnx_node *n) {
  hlo_builder *b = n->b;
  bool conjugate = strcmp(n->proto->op_type, "ComplexMulConj") == 0;
  TRY(CONTRIB_ATTRIBUTES(n, NULL));
  TRY(need_complex(n, 0, "A"));
  TRY(need_complex(n, 1, "B"));
  hlo_value re = part(b, n->in[0], 0, false), im = part(b, n->in[0], 1, false);
  hlo_value of_b[] = {part(b, n->in[1], 0, false), part(b, n->in[1], 1, conjugate)};
  hlo_value parts[] = {hlo_binary(b, HLO_SUB, hlo_binary_broadcast(b, HLO_MUL, re, of_b[0]),
                                  hlo_binary_broadcast(b, HLO_MUL, im, of_b[1])),
                       hlo_binary(b, HLO_ADD, hlo_binary_broadcast(b, HLO_MUL, re, of_b[1]),
                                  hlo_binary_broadcast(b, HLO_MUL, im, of_b[0]))};
  if (b->error) {
    return NULL;
  }
  int64_t last = hlo_rank(parts[0]);
  parts[0] = onnx_insert_dim(b, parts[0], last);
  parts[1] = onnx_insert_dim(b, parts[1], last);
  n->out[0] = hlo_convert(b, hlo_concatenate(b, 2, parts, last), hlo_type(n->in[0]));
  return NULL;
}

/* --- Rfft, Irfft --- */

/* Reads the number of dimensions of a signal.  `rank` is that of the input without its complex dimension. */
static status read_signal(const onnx_node *n, int64_t rank, int64_t *dims) {
  int64_t normalized, one_sided;
  TRY(CONTRIB_ATTRIBUTES(n, "normalized", "onesided", "signal_ndim"));
  TRY(onnx_attr_int(n->proto, "normalized", 0, &normalized));
  TRY(onnx_attr_int(n->proto, "onesided", 1, &one_sided));
  CHECK_THAT(normalized == 0 && one_sided == 1, STATUS_UNSUPPORTED, "attribute %s %" PRId64 " is not supported",
             normalized ? "normalized" : "onesided", normalized ? normalized : one_sided);
  TRY(onnx_attr_int(n->proto, "signal_ndim", 1, dims));
  CHECK_THAT(*dims >= 1 && *dims <= rank, STATUS_INVALID_MODEL, "signal_ndim is %" PRId64 " but X is %s", *dims,
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, 0)));
  return NULL;
}

/* Sets f->n to the extent of a dimension, from which the number of points follows. */
static status read_points(const onnx_node *n, int64_t axis, onnx_fourier *f) {
  TRY(onnx_const_dim(n, onnx_in_shape(n, 0)->dims[axis], "a dimension of the signal", &f->n));
  f->n = f->inverse && f->one_sided ? 2 * (f->n - 1) : f->n;
  CHECK_THAT(f->n >= 1 && f->n <= ONNX_FOURIER_MAX, STATUS_INVALID_MODEL,
             "X is %s; its dimension %" PRId64 " would make a transform of %" PRId64 " points",
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, 0)), axis, f->n);
  return NULL;
}

status onnx_import_contrib_rfft(onnx_node *n) {
  int64_t dims, rank = hlo_rank(n->in[0]);
  TRY(read_signal(n, rank, &dims));
  CHECK_THAT(rank < SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "X is %s; the rank is too large",
             SHAPE_STR(onnx_dims(n), onnx_in_shape(n, 0)));
  hlo_value x = onnx_insert_dim(n->b, onnx_widen(n->b, n->in[0]), rank);
  for (int64_t axis = rank - 1; axis >= rank - dims; axis--) {
    onnx_fourier f = {.one_sided = axis == rank - 1};
    TRY(read_points(n, axis, &f));
    x = n->b->error ? x : onnx_fourier_transform(n, &f, x, axis);
  }
  n->out[0] = hlo_convert(n->b, x, hlo_type(n->in[0]));
  return NULL;
}

/* The last dimension of the signal gets twice as many elements as it had bins, less 2. */
status onnx_import_contrib_irfft(onnx_node *n) {
  int64_t dims, rank = (int64_t)hlo_rank(n->in[0]) - 1;
  TRY(need_complex(n, 0, "X"));
  TRY(read_signal(n, rank, &dims));
  hlo_value x = onnx_widen(n->b, n->in[0]);
  for (int64_t axis = rank - dims; axis < rank; axis++) {
    onnx_fourier f = {.inverse = true, .one_sided = axis == rank - 1};
    TRY(read_points(n, axis, &f));
    x = n->b->error ? x : onnx_fourier_transform(n, &f, x, axis);
  }
  n->out[0] = hlo_convert(n->b, onnx_pick(n->b, x, rank, 0), hlo_type(n->in[0]));
  return NULL;
}
