/* generate.c - operators that generate arrays: Constant, ConstantOfShape, Range, window functions, EyeLike, Trilu,
 * OneHot. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/import_common.h"
#include "frontend/import/symbolic.h"
#include "frontend/model/tensor.h"
#include "hlo/ir/fold_sizes.h"

#define INVALID STATUS_INVALID_MODEL

/* --- Constant --- */

static literal floats_literal(const onnx_node *n, int rank, size_t count, const float *values) {
  void *data;
  int64_t length = (int64_t)count;
  literal l = literal_new(n->arena, shape_make(DTYPE_F32, rank, &length), &data);
  if (count) {
    memcpy(data, values, count * sizeof *values);
  }
  return l;
}

static status constant_floats(onnx_node *n, const char *name) {
  const float *values;
  size_t count;
  TRY(onnx_attr_floats(n->proto, name, &values, &count));
  n->out[0] = hlo_constant(n->b, floats_literal(n, 1, count, values));
  return NULL;
}

static status constant_ints(onnx_node *n, const char *name) {
  const int64_t *values;
  size_t count;
  TRY(onnx_attr_ints(n->proto, name, &values, &count));
  n->out[0] = hlo_s64s(n->b, values, (int64_t)count);
  return NULL;
}

static status constant_float(onnx_node *n, const char *name) {
  float v;
  TRY(onnx_attr_float(n->proto, name, 0, &v));
  n->out[0] = hlo_constant(n->b, floats_literal(n, 0, 1, &v));
  return NULL;
}

static status constant_int(onnx_node *n, const char *name) {
  int64_t v;
  TRY(onnx_attr_int(n->proto, name, 0, &v));
  n->out[0] = hlo_scalar_int(n->b, DTYPE_S64, v);
  return NULL;
}

static status constant_tensor(onnx_node *n, const char *name) {
  const Onnx__TensorProto *t;
  literal l;
  TRY(onnx_attr_tensor(n->proto, name, &t));
  TRY(onnx_node_tensor(n, t, &l));
  n->out[0] = hlo_constant(n->b, l);
  return NULL;
}

static status constant_sparse(onnx_node *n, const char *name) {
  const Onnx__SparseTensorProto *t;
  literal l;
  TRY(onnx_attr_sparse_tensor(n->proto, name, &t));
  TRY(onnx_node_sparse_tensor(n, t, &l));
  n->out[0] = hlo_constant(n->b, l);
  return NULL;
}

static status constant_string(onnx_node *n, const char *name) {
  int64_t number;
  TRY(onnx_node_string(n, name, "", &number));
  n->out[0] = hlo_constant(n->b, literal_scalar_i64(n->arena, DTYPE_STR, number));
  return NULL;
}

static status constant_strings(onnx_node *n, const char *name) {
  const int64_t *numbers;
  size_t count;
  TRY(onnx_node_strings(n, name, &numbers, &count));
  n->out[0] = hlo_constant(n->b, literal_make(shape_make(DTYPE_STR, 1, (dim[]){(dim)count}), numbers));
  return NULL;
}

/* The attributes that can give the value of a Constant; exactly one of them must be present. */
static const struct {
  const char *name;
  status (*make)(onnx_node *n, const char *name);
} constant_forms[] = {
    {"value", constant_tensor},        {"sparse_value", constant_sparse},   {"value_float", constant_float},
    {"value_floats", constant_floats}, {"value_int", constant_int},         {"value_ints", constant_ints},
    {"value_string", constant_string}, {"value_strings", constant_strings},
};

status onnx_import_constant(onnx_node *n) {
  int form = -1;
  for (int k = 0; k < (int)(sizeof constant_forms / sizeof *constant_forms); k++) {
    if (onnx_attr_has(n->proto, constant_forms[k].name)) {
      CHECK_THAT(form < 0, INVALID, "attributes %s and %s are both given", constant_forms[form].name,
                 constant_forms[k].name);
      form = k;
    }
  }
  CHECK_THAT(form >= 0, INVALID, "no attribute gives a value");
  return constant_forms[form].make(n, constant_forms[form].name);
}

status onnx_import_constant_of_shape(onnx_node *n) {
  const dim *dims;
  int64_t rank;
  const Onnx__TensorProto *t;
  float zero = 0;
  literal value = floats_literal(n, 0, 1, &zero);
  TRY(onnx_const_dims(n, 0, "input", &dims, &rank));
  TRY(onnx_attr_tensor(n->proto, "value", &t));
  if (t) {
    TRY(onnx_node_tensor(n, t, &value));
    CHECK_THAT(shape_elements(&value.shape) == 1, INVALID, "value is %s; one element is required",
               SHAPE_STR(onnx_dims(n), &value.shape));
  }
  CHECK_THAT(rank <= SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "input has %" PRId64 " entries; at most %d are supported",
             rank, SHAPE_MAX_RANK);
  for (int64_t k = 0; k < rank; k++) {
    CHECK_THAT(dim_at_most(onnx_dims(n), 0, dims[k]) && dims[k] < DIM_MAX, INVALID, "input[%" PRId64 "] is %s", k,
               dim_print(n->arena, onnx_dims(n), dims[k]));
  }
  value.shape.rank = 0;
  memset(value.shape.dims, 0, sizeof value.shape.dims);
  shape s = shape_make((dtype)value.shape.type, (int)rank, dims);
  TRY(shape_check(&s, "the result"));
  n->out[0] = hlo_broadcast_to(n->b, hlo_constant(n->b, value), &s);
  return NULL;
}

/* --- Range --- */

/* Returns the number of elements of a Range of integers with constant start, limit and delta; limit itself is no
 * element.  The number is exact for all 64-bit values, but at most DIM_MAX. */
static status range_count_ints(const onnx_node *n, int64_t *count) {
  int64_t start, limit, delta;
  TRY(onnx_const_int(n, 0, "start", &start));
  TRY(onnx_const_int(n, 1, "limit", &limit));
  TRY(onnx_const_int(n, 2, "delta", &delta));
  CHECK_THAT(delta != 0, INVALID, "delta is 0");
  *count = 0;
  if (delta > 0 ? start < limit : start > limit) {
    uint64_t span = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    uint64_t step = delta > 0 ? (uint64_t)delta : -(uint64_t)delta;
    uint64_t steps = (span - 1) / step + 1;
    *count = steps > DIM_MAX ? DIM_MAX : (int64_t)steps;
  }
  return NULL;
}

/* Returns input k, a scalar, as a dim.  It must be computed from sizes or be a constant, and its value must be an
 * integer. */
static status range_dim(const onnx_node *n, uint32_t k, const char *what, dim *out) {
  const dim *list;
  int64_t count;
  double number;
  if (n->in[k].def->op == HLO_SIZES || dtype_is_int(hlo_type(n->in[k]))) {
    TRY(onnx_const_dims(n, k, what, &list, &count));
    CHECK_THAT(count == 1, INVALID, "%s must be a scalar", what);
    *out = *list;
    return NULL;
  }
  TRY(onnx_const_float(n, k, what, &number));
  if (number != trunc(number) || fabs(number) > 0x1p24) {
    (void)onnx_pin_value(n, n->in[0]);
    (void)onnx_pin_value(n, n->in[1]);
    return status_error(STATUS_UNSUPPORTED, "%s is %g, and the range is computed from sizes", what, number);
  }
  *out = dim_signed_const(onnx_dims(n), (int64_t)number);
  return NULL;
}

/* Returns the number of elements of a Range whose start or limit is an expression of symbolic sizes. */
static status range_count_sizes(const onnx_node *n, dim *out) {
  dim_table *t = onnx_dims(n);
  dim start, limit, step;
  int64_t delta = 0;
  TRY(range_dim(n, 0, "start", &start));
  TRY(range_dim(n, 1, "limit", &limit));
  TRY(range_dim(n, 2, "delta", &step));
  bool known = dim_signed_value(t, step, &delta);
  CHECK_THAT(known && delta != 0, INVALID, "delta is %s", dim_print(n->arena, t, step));
  dim span = delta > 0 ? dim_signed_sub(t, limit, start) : dim_signed_sub(t, start, limit);
  *out = dim_at_most(t, 0, span) ? dim_ceildiv(t, span, delta > 0 ? delta : -delta) : 0;
  return NULL;
}

static bool computed_from_sizes(const onnx_node *n) {
  return n->in[0].def->op == HLO_SIZES || n->in[1].def->op == HLO_SIZES;
}

static status range_count_floats(const onnx_node *n, int64_t *count) {
  double start, limit, delta;
  TRY(onnx_const_float(n, 0, "start", &start));
  TRY(onnx_const_float(n, 1, "limit", &limit));
  TRY(onnx_const_float(n, 2, "delta", &delta));
  CHECK_THAT(isfinite(start) && isfinite(limit) && isfinite(delta) && delta != 0, INVALID,
             "start %g, limit %g and delta %g give no range", start, limit, delta);
  double steps = ceil((limit - start) / delta);
  *count = !(steps > 0) ? 0 : steps > (double)DIM_MAX ? DIM_MAX : (int64_t)steps;
  return NULL;
}

static bool is_number(hlo_value scalar, double number) {
  const literal *l = scalar.def ? hlo_literal(scalar) : NULL;
  return l && literal_f64(l, 0) == number;
}

status onnx_import_range(onnx_node *n) {
  hlo_builder *b = n->b;
  dtype type = hlo_type(n->in[0]), t = dtype_compute_type(type);
  dim count;
  TRY(computed_from_sizes(n) ? range_count_sizes(n, &count)
      : dtype_is_float(type) ? range_count_floats(n, &count)
                             : range_count_ints(n, &count));
  shape s = shape_make(t, 1, &count);
  TRY(shape_check(&s, "the result"));
  hlo_value start = hlo_convert(b, onnx_scalar_input(n, 0, "start"), t);
  hlo_value delta = hlo_convert(b, onnx_scalar_input(n, 2, "delta"), t);
  hlo_value steps = hlo_iota(b, s, 0);
  steps = is_number(delta, 1) ? steps : hlo_binary_broadcast(b, HLO_MUL, steps, delta);
  steps = is_number(start, 0) ? steps : hlo_binary_broadcast(b, HLO_ADD, steps, start);
  n->out[0] = hlo_convert(b, steps, type);
  return NULL;
}

/* --- windows --- */

/* Element k of a window is a0 - a1 cos(2 pi k / N) + a2 cos(4 pi k / N), where N is the number of elements of a
 * periodic window, and one less for a symmetric window.  Windows are computed in f64, so that values near 0 are
 * accurate.  A symmetric window of one element is NaN (0/0), as in the standard's function body. */
static const struct window {
  const char *name;
  double a0, a1, a2;
} windows[] = {
    {"HannWindow", 0.5, 0.5, 0},
    {"HammingWindow", 25.0 / 46, 21.0 / 46, 0},
    {"BlackmanWindow", 0.42, 0.5, 0.08},
};

static const struct window *find_window(const char *name) {
  const struct window *w = windows;
  while (strcmp(w->name, name) != 0) {
    w++;
  }
  return w;
}

status onnx_import_window(onnx_node *n) {
  const struct window *w = find_window(n->proto->op_type);
  hlo_builder *b = n->b;
  const dim *list;
  int64_t count;
  bool periodic;
  dtype type;
  TRY(onnx_const_dims(n, 0, "size", &list, &count));
  TRY(onnx_attr_bool(n->proto, "periodic", true, &periodic));
  TRY(onnx_dtype_attr(n, "output_datatype", DTYPE_F32, &type));
  CHECK_THAT(count == 1, INVALID, "size must be a scalar");
  CHECK_THAT(dim_at_most(onnx_dims(n), 0, *list) && *list < DIM_MAX, INVALID, "size is %s",
             dim_print(n->arena, onnx_dims(n), *list));
  shape s = shape_make(DTYPE_F64, 1, list);
  TRY(shape_check(&s, "the result"));
  hlo_value k = hlo_iota(b, s, 0);
  hlo_value period = hlo_broadcast_to(b, onnx_of_dim(b, DTYPE_F64, *list, 1, periodic ? 0 : -1), &s);
  hlo_value angle = hlo_binary(b, HLO_DIV, onnx_binary_scalar(b, HLO_MUL, k, 2 * M_PI), period);
  hlo_value first = onnx_binary_scalar(b, HLO_MUL, hlo_unary(b, HLO_COS, angle), -w->a1);
  hlo_value second = hlo_unary(b, HLO_COS, onnx_binary_scalar(b, HLO_MUL, angle, 2));
  hlo_value y = hlo_binary(b, HLO_ADD, first, onnx_binary_scalar(b, HLO_MUL, second, w->a2));
  n->out[0] = hlo_convert(b, onnx_binary_scalar(b, HLO_ADD, y, w->a0), type);
  return NULL;
}

/* --- diagonals and one-hot --- */

/* Compares column - row with k in the last two dimensions of s; the result is a pred array. */
static hlo_value diagonal_mask(hlo_builder *b, const shape *s, hlo_comparison c, hlo_value k) {
  shape index = shape_with_type(*s, DTYPE_S64);
  hlo_value column = hlo_iota(b, index, s->rank - 1), row = hlo_iota(b, index, s->rank - 2);
  return hlo_compare(b, c, hlo_binary(b, HLO_SUB, column, row), hlo_broadcast_to(b, k, s));
}

status onnx_import_eye_like(onnx_node *n) {
  const shape *s = hlo_shape(n->in[0]);
  int64_t k;
  dtype type;
  TRY(onnx_attr_int(n->proto, "k", 0, &k));
  TRY(onnx_dtype_attr(n, "dtype", (dtype)s->type, &type));
  CHECK_THAT(s->rank == 2, INVALID, "input is %s; rank 2 is required", SHAPE_STR(onnx_dims(n), s));
  hlo_value mask = diagonal_mask(n->b, s, HLO_EQ, hlo_scalar_int(n->b, DTYPE_S64, k));
  n->out[0] = hlo_convert(n->b, mask, type);
  return NULL;
}

status onnx_import_trilu(onnx_node *n) {
  const shape *s = hlo_shape(n->in[0]);
  bool upper;
  TRY(onnx_attr_bool(n->proto, "upper", true, &upper));
  CHECK_THAT(s->rank >= 2, INVALID, "input is %s; rank 2 or more is required", SHAPE_STR(onnx_dims(n), s));
  hlo_value k = hlo_scalar_int(n->b, DTYPE_S64, 0);
  if (onnx_has_in(n, 1)) {
    k = hlo_convert(n->b, onnx_scalar_input(n, 1, "k"), DTYPE_S64);
  }
  hlo_value mask = diagonal_mask(n->b, s, upper ? HLO_GE : HLO_LE, k);
  n->out[0] = hlo_select(n->b, mask, n->in[0], hlo_like(n->b, n->in[0], 0));
  return NULL;
}

/* Reads `depth`, which may be computed from symbolic sizes. */
static status read_depth(const onnx_node *n, dim *out) {
  double number;
  dim elements[HLO_MAX_SIZES];
  if (!hlo_literal(n->in[1]) && hlo_sizes_of(n->in[1], elements) == 1) {
    *out = elements[0];
    CHECK_THAT(dim_at_most(onnx_dims(n), 1, *out), INVALID, "depth is %s", dim_print(n->arena, onnx_dims(n), *out));
    return NULL;
  }
  TRY(onnx_const_float(n, 1, "depth", &number));
  CHECK_THAT(number >= 1 && number <= (double)DIM_MAX, INVALID, "depth is %g", number);
  *out = (int64_t)number;
  return NULL;
}

/* An element of the result is the on-value if its position along the new axis equals the index, otherwise the
 * off-value.  For an index outside of [-depth, depth) all elements are the off-value. */
status onnx_import_one_hot(onnx_node *n) {
  hlo_builder *b = n->b;
  const shape *si = hlo_shape(n->in[0]), *sv = hlo_shape(n->in[2]);
  dim depth;
  int64_t axis, where[SHAPE_MAX_RANK];
  TRY(read_depth(n, &depth));
  CHECK_THAT(sv->rank == 1 && dim_equal(onnx_dims(n), sv->dims[0], 2), INVALID, "values is %s; [off, on] is required",
             SHAPE_STR(onnx_dims(n), sv));
  CHECK_THAT(si->rank < SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "indices is %s; the rank is too large",
             SHAPE_STR(onnx_dims(n), si));
  TRY(onnx_axis_attr(n, -1, si->rank + 1, &axis));
  shape s = shape_scalar(DTYPE_S64);
  for (int k = 0; k < si->rank + 1; k++) {
    s.dims[s.rank++] = k == axis ? depth : si->dims[k - (k > axis)];
    if (k < si->rank) {
      where[k] = k + (k >= axis);
    }
  }
  TRY(shape_check(&s, "the result"));
  hlo_value index = hlo_convert(b, n->in[0], DTYPE_S64);
  hlo_value below = onnx_compare_scalar(b, HLO_LT, index, 0);
  index = hlo_select(b, below, onnx_binary_dim(b, HLO_ADD, index, depth), index);
  hlo_value hit = hlo_compare(b, HLO_EQ, hlo_broadcast(b, index, s, where), hlo_iota(b, s, axis));
  hlo_value off = hlo_reshape(b, hlo_slice_dim(b, n->in[2], 0, 0, 1), 0, NULL);
  hlo_value on = hlo_reshape(b, hlo_slice_dim(b, n->in[2], 0, 1, 2), 0, NULL);
  n->out[0] = hlo_select(b, hit, hlo_broadcast_to(b, on, &s), hlo_broadcast_to(b, off, &s));
  return NULL;
}
