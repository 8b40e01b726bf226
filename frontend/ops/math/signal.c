/* signal.c - DFT, STFT and MelWeightMatrix. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/math/fourier.h"

#define INVALID STATUS_INVALID_MODEL

/* Checks the shape of a signal, whose last dimension must be a constant. */
static status check_signal(const onnx_node *n, const shape *s) {
  int64_t parts = 0;
  if (s->rank >= 2) {
    TRY(onnx_const_dim(n, s->dims[s->rank - 1], "the last dimension of the signal", &parts));
  }
  CHECK_THAT(parts == 1 || parts == 2, INVALID,
             "the signal is %s; rank 2 or more and a last dimension of 1 or 2 are required",
             SHAPE_STR(onnx_dims(n), s));
  return NULL;
}

static status dft_axis(const onnx_node *n, int64_t rank, int64_t *axis) {
  int64_t given = -2;
  if (n->since < 20) {
    TRY(onnx_attr_int(n->proto, "axis", 1, &given));
  } else if (onnx_has_in(n, 2)) {
    TRY(onnx_const_int(n, 2, "axis", &given));
  }
  TRY(onnx_axis(given, rank, axis));
  CHECK_THAT(*axis != rank - 1, INVALID, "axis %" PRId64 " is the last one, which holds the parts of complex numbers",
             given);
  return NULL;
}

/* Sets *out to the number of points of a DFT.  It is pinned if it may be large. */
static status dft_length(const onnx_node *n, bool half, dim extent, dim *out) {
  dim_table *t = onnx_dims(n);
  const dim *given;
  int64_t count, bins;
  if (onnx_has_in(n, 1)) {
    TRY(onnx_const_dims(n, 1, "dft_length", &given, &count));
    *out = count == 1 ? *given : 0;
    return dim_is_const(*out) || dim_at_most(t, *out, ONNX_FOURIER_OPEN_MAX) ? NULL
                                                                             : onnx_const_int(n, 1, "dft_length", out);
  }
  dim length = half ? dim_signed_mul(t, dim_signed_sub(t, extent, 1), 2) : extent;
  if (!dim_is_const(extent) && dim_at_most(t, length, ONNX_FOURIER_OPEN_MAX)) {
    *out = length;
    return NULL;
  }
  TRY(onnx_const_dim(n, extent, "the number of points", &bins));
  *out = half ? 2 * (bins - 1) : bins;
  return NULL;
}

status onnx_import_dft(onnx_node *n) {
  const shape *s = hlo_shape(n->in[0]);
  bool inverse, one_sided;
  int64_t axis;
  dim length;
  TRY(check_signal(n, s));
  TRY(onnx_attr_bool(n->proto, "inverse", false, &inverse));
  TRY(onnx_attr_bool(n->proto, "onesided", false, &one_sided));
  TRY(dft_axis(n, s->rank, &axis));
  TRY(dft_length(n, inverse && one_sided, s->dims[axis], &length));
  CHECK_THAT(dim_at_most(onnx_dims(n), 1, length), INVALID, "dft_length is %s",
             dim_print(n->arena, onnx_dims(n), length));
  CHECK_THAT(!dim_is_const(length) || length <= ONNX_FOURIER_MAX, STATUS_RESOURCE,
             "dft_length is %" PRId64 ", above %d", length, ONNX_FOURIER_MAX);
  onnx_fourier f = {.n = length, .inverse = inverse, .one_sided = one_sided};
  n->out[0] = onnx_fourier_transform(n, &f, n->in[0], axis);
  return NULL;
}

/* Returns the frames of the signal as [batch, frames, length, parts]; frame k begins at k * step. */
static hlo_value signal_frames(hlo_builder *b, hlo_value x, dim frames, int64_t length, int64_t step) {
  shape s = shape_make(DTYPE_S64, 2, (dim[]){frames, length});
  hlo_value start = onnx_binary_scalar(b, HLO_MUL, hlo_iota(b, s, 0), (double)step);
  return hlo_take(b, x, hlo_binary(b, HLO_ADD, start, hlo_iota(b, s, 1)), 1);
}

/* Sets *out to the length of a frame, which must be a constant. */
static status frame_length(const onnx_node *n, int64_t *out) {
  if (onnx_has_in(n, 3)) {
    return onnx_const_int(n, 3, "frame_length", out);
  }
  bool window = onnx_has_in(n, 2) && hlo_rank(n->in[2]) == 1;
  return onnx_const_dim(n, window ? hlo_shape(n->in[2])->dims[0] : hlo_shape(n->in[0])->dims[1],
                        "the length of a frame", out);
}

/* PyTorch writes real signals as [batch, length], without the standard's last dimension of 1; ONNX Runtime takes both.
 */
status onnx_import_stft(onnx_node *n) {
  hlo_builder *b = n->b;
  dim_table *t = onnx_dims(n);
  hlo_value signal = hlo_rank(n->in[0]) == 2 ? onnx_insert_dim(b, n->in[0], 2) : n->in[0];
  const shape *s = hlo_shape(signal);
  bool one_sided;
  int64_t step, length;
  TRY(check_signal(n, s));
  CHECK_THAT(s->rank == 3, INVALID, "signal is %s; rank 2 or 3 is required", SHAPE_STR(onnx_dims(n), s));
  TRY(onnx_attr_bool(n->proto, "onesided", true, &one_sided));
  TRY(onnx_const_int(n, 1, "frame_step", &step));
  TRY(frame_length(n, &length));
  CHECK_THAT(step >= 1, INVALID, "frame_step is %" PRId64, step);
  CHECK_THAT(length >= 1 && dim_at_most(t, length, s->dims[1]) && length <= ONNX_FOURIER_MAX, INVALID,
             "frame_length is %" PRId64 " but signal is %s", length, SHAPE_STR(onnx_dims(n), s));
  dim count = dim_add_const(t, dim_floordiv(t, dim_add_const(t, s->dims[1], -length), step), 1);
  hlo_value frames = signal_frames(b, signal, count, length, step);
  if (onnx_has_in(n, 2)) {
    TRY(onnx_need_dims(n, 2, "window", 1, &length));
    frames = hlo_binary(b, HLO_MUL, frames, hlo_broadcast(b, n->in[2], *hlo_shape(frames), (int64_t[]){2}));
  }
  n->out[0] = onnx_fourier_transform(n, &(onnx_fourier){.n = length, .one_sided = one_sided}, frames, 2);
  return NULL;
}

/* --- MelWeightMatrix --- */

typedef struct mel_filters {
  int64_t bins, length, rate;
  double low, high; /* lower_edge_hertz and upper_edge_hertz */
} mel_filters;

static double hertz_to_mel(double f) { return 2595 * log10(1 + f / 700); }

/* Returns the spectrogram bin of edge k.  The filters have `bins` + 2 edges, evenly spaced on the mel scale; filter k
 * extends from edge k to edge k + 2. */
static double mel_edge(const mel_filters *f, int64_t k) {
  double low = hertz_to_mel(f->low), step = (hertz_to_mel(f->high) - low) / (double)(f->bins + 2);
  double hertz = 700 * (pow(10, ((double)k * step + low) / 2595) - 1);
  return floor((double)(f->length + 1) * hertz / (double)f->rate);
}

/* Fills column k with a triangular filter, which rises from edge k to edge k + 1 and falls to edge k + 2. */
static void fill_triangle(const mel_filters *f, int64_t k, double *matrix) {
  int64_t left = (int64_t)mel_edge(f, k), centre = (int64_t)mel_edge(f, k + 1), right = (int64_t)mel_edge(f, k + 2);
  if (left == centre) {
    matrix[centre * f->bins + k] = 1;
  }
  for (int64_t j = left; j < centre || (j == centre && left < centre); j++) {
    matrix[j * f->bins + k] = (double)(j - left) / (double)(centre - left);
  }
  for (int64_t j = centre; j < right; j++) {
    matrix[j * f->bins + k] = (double)(right - j) / (double)(right - centre);
  }
}

status onnx_import_mel_weight_matrix(onnx_node *n) {
  mel_filters f;
  dtype type;
  void *data;
  TRY(onnx_const_int(n, 0, "num_mel_bins", &f.bins));
  TRY(onnx_const_int(n, 1, "dft_length", &f.length));
  TRY(onnx_const_int(n, 2, "sample_rate", &f.rate));
  TRY(onnx_const_float(n, 3, "lower_edge_hertz", &f.low));
  TRY(onnx_const_float(n, 4, "upper_edge_hertz", &f.high));
  TRY(onnx_dtype_attr(n, "output_datatype", DTYPE_F32, &type));
  CHECK_THAT(f.bins >= 0 && f.bins <= INT32_MAX && f.length >= 0 && f.length <= INT32_MAX && f.rate > 0, INVALID,
             "num_mel_bins is %" PRId64 ", dft_length %" PRId64 ", sample_rate %" PRId64, f.bins, f.length, f.rate);
  CHECK_THAT(f.low >= 0 && f.low <= f.high && isfinite(f.high), INVALID, "the edges are %g and %g hertz", f.low,
             f.high);
  shape s = shape_make(DTYPE_F64, 2, (dim[]){f.length / 2 + 1, f.bins});
  TRY(shape_check(&s, "the result"));
  CHECK_THAT(f.bins == 0 || mel_edge(&f, f.bins + 1) <= (double)(f.length / 2), INVALID,
             "upper_edge_hertz is %g, beyond the %" PRId64 " bins of the spectrogram", f.high, f.length / 2 + 1);
  literal l = literal_new(n->arena, s, &data);
  for (int64_t k = 0; k < f.bins; k++) {
    fill_triangle(&f, k, data);
  }
  n->out[0] = hlo_convert(n->b, hlo_constant(n->b, l), type);
  return NULL;
}
