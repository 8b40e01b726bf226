/* import_helpers.c - functions that importers of neural-network operators share: checks of shapes, small compositions
 * of HLO, and the attributes of sliding windows. */
#include "frontend/import/import_helpers.h"
#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"

#include <inttypes.h>
#include <string.h>

/* --- checks --- */

status onnx_need_rank(const onnx_node *n, uint32_t k, const char *what, int low, int high) {
  const shape *s = onnx_in_shape(n, k);
  CHECK_THAT(s->kind == SHAPE_ARRAY, STATUS_INVALID_MODEL, "%s is %s; an array is needed", what,
             SHAPE_STR(onnx_dims(n), s));
  if (low == high) {
    CHECK_THAT(s->rank == low, STATUS_INVALID_MODEL, "%s is %s; its rank must be %d", what, SHAPE_STR(onnx_dims(n), s),
               low);
  }
  CHECK_THAT(s->rank >= low, STATUS_INVALID_MODEL, "%s is %s; its rank must be at least %d", what,
             SHAPE_STR(onnx_dims(n), s), low);
  CHECK_THAT(s->rank <= high, STATUS_INVALID_MODEL, "%s is %s; its rank must be at most %d", what,
             SHAPE_STR(onnx_dims(n), s), high);
  return NULL;
}

status onnx_need_dims(const onnx_node *n, uint32_t k, const char *what, int rank, const dim *dims) {
  if (!onnx_has_in(n, k)) {
    return NULL;
  }
  const shape *s = onnx_in_shape(n, k);
  shape want = shape_make((dtype)s->type, rank, dims);
  CHECK_THAT(s->kind == SHAPE_ARRAY && onnx_has_dims(n, s, rank, dims), STATUS_INVALID_MODEL, "%s is %s instead of %s",
             what, SHAPE_STR(onnx_dims(n), s), SHAPE_STR(onnx_dims(n), &want));
  return NULL;
}

status onnx_need_one_element(const onnx_node *n, uint32_t k, const char *what) {
  const shape *s = onnx_in_shape(n, k);
  dim count = shape_dim_product(onnx_dims(n), s, 0, s->rank);
  CHECK_THAT(dim_equal(onnx_dims(n), count, 1), STATUS_INVALID_MODEL, "%s is %s; it must have one element", what,
             SHAPE_STR(onnx_dims(n), s));
  return NULL;
}

status onnx_choose(const onnx_node *n, const char *name, const char *def, const char *const *texts, int count,
                   int *out) {
  const char *text;
  TRY(onnx_attr_string(n->arena, n->proto, name, def, &text));
  for (int k = 0; k < count; k++) {
    if (strcmp(text, texts[k]) == 0) {
      *out = k;
      return NULL;
    }
  }
  return status_error(STATUS_INVALID_MODEL, "%s is \"%.40s\", which is unknown", name, text);
}

/* --- values --- */

hlo_value onnx_times(hlo_builder *b, hlo_value x, double factor) {
  return factor == 1 ? x : hlo_binary(b, HLO_MUL, x, hlo_like(b, x, factor));
}

hlo_value onnx_plus(hlo_builder *b, hlo_value x, double term) {
  return hlo_binary(b, HLO_ADD, x, hlo_like(b, x, term));
}

hlo_value onnx_search(hlo_builder *b, hlo_value keys, hlo_value x) {
  if (!keys.def || !x.def) {
    return (hlo_value){0};
  }
  hlo_value at = hlo_splat(b, shape_with_type(*hlo_shape(x), DTYPE_S64), 0);
  for (int64_t step = hlo_shape(keys)->dims[0] / 2; step >= 1; step /= 2) {
    hlo_value next = onnx_plus(b, at, (double)step);
    hlo_value reached = hlo_compare(b, HLO_LE, hlo_take(b, keys, next, 0), x);
    at = hlo_select(b, reached, next, at);
  }
  return at;
}

hlo_value onnx_op_stretched(hlo_builder *b, hlo_op op, hlo_value x, hlo_value y) {
  return hlo_binary(b, op, x, hlo_broadcast_to(b, y, hlo_shape(x)));
}

hlo_value onnx_along(hlo_builder *b, hlo_value v, const shape *to, int64_t dimension) {
  const shape *s = hlo_shape(v);
  if (!v.def) {
    return v;
  }
  if (s->rank == 1 && s->dims[0] == 1 && (to->rank == 0 || to->dims[dimension] != 1)) {
    v = hlo_reshape(b, v, 0, NULL);
    s = hlo_shape(v);
  }
  return hlo_broadcast(b, v, *to, s->rank ? &dimension : NULL);
}

/* Subtracts from x the largest element along the axis, so that the exponentials in a softmax do not overflow. */
static hlo_value shifted(hlo_builder *b, hlo_value x, int64_t axis) {
  return onnx_op_stretched(b, HLO_SUB, x, onnx_reduce_keep(b, x, HLO_REDUCE_MAX, 1, &axis));
}

hlo_value onnx_softmax(hlo_builder *b, hlo_value x, int64_t axis) {
  hlo_value e = hlo_unary(b, HLO_EXP, shifted(b, x, axis));
  return onnx_op_stretched(b, HLO_DIV, e, onnx_reduce_keep(b, e, HLO_REDUCE_ADD, 1, &axis));
}

hlo_value onnx_log_softmax(hlo_builder *b, hlo_value x, int64_t axis) {
  hlo_value y = shifted(b, x, axis);
  hlo_value sum = onnx_reduce_keep(b, hlo_unary(b, HLO_EXP, y), HLO_REDUCE_ADD, 1, &axis);
  return onnx_op_stretched(b, HLO_SUB, y, hlo_unary(b, HLO_LOG, sum));
}

hlo_value onnx_pick(hlo_builder *b, hlo_value x, int64_t dimension, int64_t index) {
  shape s = *hlo_shape(x);
  if (!x.def) {
    return x;
  }
  hlo_value row = hlo_slice_dim(b, x, dimension, index, index + 1);
  for (int64_t k = dimension; k + 1 < s.rank; k++) {
    s.dims[k] = s.dims[k + 1];
  }
  return hlo_reshape(b, row, s.rank - 1, s.dims);
}

hlo_value onnx_insert_dim(hlo_builder *b, hlo_value x, int64_t dimension) {
  const shape *s = hlo_shape(x);
  dim dims[SHAPE_MAX_RANK + 1];
  if (!x.def) {
    return x;
  }
  for (int k = 0; k <= s->rank; k++) {
    dims[k] = k < dimension ? s->dims[k] : k == dimension ? 1 : s->dims[k - 1];
  }
  return hlo_reshape(b, x, s->rank + 1, dims);
}

static hlo_value array_of(const onnx_node *n, dtype type, const void *values, int rank, const dim *dims) {
  shape s = shape_make(type, rank, dims);
  void *data;
  literal l = literal_new(n->arena, s, &data);
  memcpy(data, values, (size_t)shape_bytes(&s));
  return hlo_constant(n->b, l);
}

hlo_value onnx_s64_array(const onnx_node *n, const int64_t *values, int rank, const dim *dims) {
  return array_of(n, DTYPE_S64, values, rank, dims);
}

hlo_value onnx_f32_array(const onnx_node *n, const float *values, int rank, const dim *dims) {
  return array_of(n, DTYPE_F32, values, rank, dims);
}

/* The conversion to an integer type saturates, too.  The explicit clamp makes the form by which passes recognise a
 * quantisation (hlo/analysis/quantized.h). */
hlo_value onnx_saturate(hlo_builder *b, hlo_value x, hlo_value zero_point, dtype to) {
  hlo_value y = hlo_unary(b, HLO_ROUND, x);
  if (zero_point.def) {
    y = hlo_binary(b, HLO_ADD, y, hlo_convert(b, zero_point, hlo_type(y)));
  }
  hlo_value low = hlo_scalar(b, hlo_type(y), dtype_lowest_f64(to));
  hlo_value high = hlo_scalar(b, hlo_type(y), dtype_max_f64(to));
  return hlo_convert(b, hlo_clamp(b, low, y, high), to);
}

/* --- windows --- */

/* Reads an attribute that lists `count` integers within [low, ONNX_WINDOW_MAX].  If it is absent, each is `def`. */
static status read_list(const onnx_node *n, const char *name, int count, int64_t low, int64_t def, int64_t *out) {
  const int64_t *values;
  size_t given;
  TRY(onnx_attr_ints(n->proto, name, &values, &given));
  for (int k = 0; k < count; k++) {
    out[k] = def;
  }
  if (!onnx_attr_has(n->proto, name)) {
    return NULL;
  }
  CHECK_THAT(given == (size_t)count, STATUS_INVALID_MODEL, "%s has %zu entries instead of %d", name, given, count);
  for (int k = 0; k < count; k++) {
    CHECK_THAT(values[k] >= low && values[k] <= ONNX_WINDOW_MAX, STATUS_INVALID_MODEL,
               "%s[%d] is %" PRId64 ", outside of %" PRId64 "..%d", name, k, values[k], low, ONNX_WINDOW_MAX);
    out[k] = values[k];
  }
  return NULL;
}

static status read_auto_pad(const onnx_node *n, onnx_auto_pad *out) {
  static const char *const names[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
  const char *text;
  TRY(onnx_attr_string(n->arena, n->proto, "auto_pad", "NOTSET", &text));
  for (int k = 0; k < 4; k++) {
    if (strcmp(text, names[k]) == 0 || (k == 0 && text[0] == '\0')) {
      *out = (onnx_auto_pad)k;
      return NULL;
    }
  }
  return status_error(STATUS_INVALID_MODEL, "auto_pad is \"%.40s\"; it must be NOTSET, VALID, SAME_UPPER or SAME_LOWER",
                      text);
}

static status read_kernel(const onnx_node *n, int spatial, const dim *kernel, onnx_window *w) {
  CHECK_THAT(kernel || onnx_attr_has(n->proto, "kernel_shape"), STATUS_INVALID_MODEL, "kernel_shape is missing");
  TRY(read_list(n, "kernel_shape", spatial, 1, 1, w->kernel));
  for (int k = 0; k < spatial && kernel; k++) {
    CHECK_THAT(!onnx_attr_has(n->proto, "kernel_shape") || w->kernel[k] == kernel[k], STATUS_INVALID_MODEL,
               "kernel_shape[%d] is %" PRId64 " but W has extent %" PRId64 " there", k, w->kernel[k], kernel[k]);
    CHECK_THAT(kernel[k] >= 1 && kernel[k] <= ONNX_WINDOW_MAX, STATUS_INVALID_MODEL,
               "W has spatial extent %" PRId64 "; it must be within 1..%d", kernel[k], ONNX_WINDOW_MAX);
    w->kernel[k] = kernel[k];
  }
  return NULL;
}

status onnx_read_window(const onnx_node *n, int spatial, const dim *kernel, onnx_window *w) {
  int64_t pads[2 * SHAPE_MAX_RANK];
  w->n = spatial;
  TRY(read_kernel(n, spatial, kernel, w));
  TRY(read_list(n, "strides", spatial, 1, 1, w->strides));
  TRY(read_list(n, "dilations", spatial, 1, 1, w->dilations));
  TRY(read_list(n, "pads", 2 * spatial, 0, 0, pads));
  TRY(read_auto_pad(n, &w->auto_pad));
  for (int k = 0; k < spatial; k++) {
    bool explicit_pads = w->auto_pad == ONNX_PAD_NOTSET;
    w->low[k] = explicit_pads ? pads[k] : 0;
    w->high[k] = explicit_pads ? pads[spatial + k] : 0;
  }
  return NULL;
}

/* Returns the hint of a symbolic extent (the size for which the model is being compiled).  The caller's result depends
 * only on the remainder of the extent by `stride` and on whether the extent is 0, so a guard for each of these facts is
 * added (base/dim/guard.h). */
static int64_t size_by_remainder(const onnx_node *n, dim extent, int64_t stride) {
  dim_table *t = onnx_dims(n);
  int64_t size = 0;
  if (dim_hint(t, extent, &size) && !dim_is_const(extent)) {
    (void)dim_at_most(t, 1, extent);
    (void)dim_equal(t, dim_mod(t, extent, stride), size % stride);
  }
  return size;
}

/* Returns the part of the padding that is before the input. */
static int64_t before(const onnx_window *w, int64_t total) {
  return w->auto_pad == ONNX_PAD_SAME_UPPER ? total / 2 : total - total / 2;
}

/* Returns the padding before an open extent.  If all of the padding were behind the input, the last window would begin
 * `room` elements before the input's last one. */
static dim open_padding(dim_table *t, const onnx_window *w, int k, dim extent) {
  dim room = dim_mod(t, dim_add_const(t, extent, w->strides[k] - 1), w->strides[k]);
  dim total = dim_max(t, 0, dim_signed_sub(t, onnx_window_extent(w, k) - 1, room));
  return dim_floordiv(t, dim_add_const(t, total, w->auto_pad == ONNX_PAD_SAME_LOWER), 2);
}

/* Returns true if the padding before an open extent is the same for all sizes, and sets *low to it. */
static bool padding_is_known(const onnx_window *w, int k, int64_t *low) {
  int64_t most = onnx_window_extent(w, k) - 1, least = most - (w->strides[k] - 1);
  *low = before(w, most);
  return *low == before(w, least > 0 ? least : 0);
}

static void fixed_pads(const onnx_node *n, onnx_window *w, int k, dim extent) {
  int64_t size = size_by_remainder(n, extent, w->strides[k]);
  int64_t positions = (size + w->strides[k] - 1) / w->strides[k];
  int64_t total = (positions - 1) * w->strides[k] + onnx_window_extent(w, k) - size;
  total = total > 0 ? total : 0;
  w->low[k] = before(w, total);
  w->high[k] = total - w->low[k];
}

/* The result has as many elements as the windows cover if each begins at its first element, and one more for each
 * further element of the extent.  It is cut from x with the largest padding. */
hlo_value onnx_pad_open_same(const onnx_node *n, const onnx_window *w, int k, hlo_value x, int64_t axis,
                             hlo_value fill) {
  dim_table *t = onnx_dims(n);
  int64_t most = onnx_window_extent(w, k) - 1, largest = before(w, most), low[SHAPE_MAX_RANK] = {0},
          high[SHAPE_MAX_RANK] = {0};
  if (!x.def) {
    return x;
  }
  dim extent = hlo_shape(x)->dims[axis], start = dim_signed_sub(t, largest, open_padding(t, w, k, extent));
  low[axis] = largest;
  high[axis] = most;
  hlo_value padded = hlo_pad(n->b, x, fill, low, high, NULL);
  return hlo_slice_dim(n->b, padded, axis, start, dim_add(t, start, dim_add_const(t, extent, most)));
}

hlo_value onnx_pad_same(const onnx_node *n, onnx_window *w, hlo_value x, hlo_value fill) {
  for (int k = 0; k < w->n && onnx_window_is_same(w) && x.def; k++) {
    dim extent = hlo_shape(x)->dims[2 + k];
    w->low[k] = w->high[k] = 0;
    if (dim_is_const(extent)) {
      fixed_pads(n, w, k, extent);
    } else if (padding_is_known(w, k, &w->low[k])) {
      w->high[k] = onnx_window_extent(w, k) - 1 - w->low[k];
    } else if (fill.def) {
      w->low[k] = 0;
      x = onnx_pad_open_same(n, w, k, x, 2 + k, fill);
    } else {
      fixed_pads(n, w, k, extent);
    }
  }
  return x;
}

status onnx_window_fits(const onnx_node *n, const onnx_window *w, const dim *in) {
  dim_table *t = onnx_dims(n);
  for (int k = 0; k < w->n; k++) {
    dim padded = dim_signed_add(t, in[k], dim_signed_const(t, w->low[k] + w->high[k]));
    CHECK_THAT(dim_at_most(t, onnx_window_extent(w, k), padded), STATUS_INVALID_MODEL,
               "the kernel covers %" PRId64 " (kernel %" PRId64 ", dilation %" PRId64
               ") of spatial dimension %d, whose padded extent is %s",
               onnx_window_extent(w, k), w->kernel[k], w->dilations[k], k, dim_print(n->arena, t, padded));
  }
  return NULL;
}
