/* quantized.c - see quantized.h. */
#include "hlo/analysis/quantized.h"

/* --- stretched arrays --- */

/* The one dimension along which a constant varies, -1 for none, -2 for more than one. */
static int varies_along(const literal *l) {
  enum { MAX_BYTES = 1 << 16 };
  int64_t strides[SHAPE_MAX_RANK];
  if (shape_bytes(&l->shape) > MAX_BYTES) {
    return -2;
  }
  if (literal_is_splat(l)) {
    return -1;
  }
  shape_strides(&l->shape, strides);
  int axis = -1;
  for (int64_t k = 0, n = shape_elements(&l->shape); k < n; k++) {
    double x = literal_f64(l, k);
    for (int d = 0; d < l->shape.rank; d++) {
      bool moved = k / strides[d] % l->shape.dims[d] > 0;
      if (d != axis && moved && literal_f64(l, k - strides[d]) != x) {
        if (axis >= 0) {
          return -2;
        }
        axis = d;
      }
    }
  }
  return axis;
}

static bool along_constant(hlo_value v, const literal *l, hlo_along *out) {
  int64_t strides[SHAPE_MAX_RANK];
  int axis = varies_along(l);
  if (axis == -2) {
    return false;
  }
  shape_strides(&l->shape, strides);
  *out = (hlo_along){v, axis, axis < 0 ? 1 : l->shape.dims[axis], axis < 0 ? 1 : strides[axis]};
  return true;
}

bool hlo_along_of(hlo_value v, hlo_along *out) {
  const literal *l = hlo_literal(v);
  if (dtype_is_complex(hlo_type(v)) || !shape_is_static(hlo_shape(v)) || shape_elements(hlo_shape(v)) == 0) {
    return false;
  }
  if (l) {
    return along_constant(v, l, out);
  }
  if (hlo_rank(v) == 0) {
    *out = (hlo_along){v, -1, 1, 1};
    return true;
  }
  if (v.def->op != HLO_BROADCAST) {
    return false;
  }
  hlo_value x = v.def->operands[0];
  const int64_t *to = hlo_ints(v.def, HLO_ATTR_DIMENSIONS);
  *out = (hlo_along){x, -1, 1, 1};
  for (int d = 0; d < hlo_rank(x); d++) {
    if (hlo_shape(x)->dims[d] != 1) {
      if (out->axis >= 0) {
        return false;
      }
      out->axis = (int)to[d];
      out->n = hlo_shape(x)->dims[d];
    }
  }
  return true;
}

bool hlo_along_is_const(const hlo_along *a) { return hlo_literal(a->v) != NULL; }

double hlo_along_at(const hlo_along *a, int64_t k) {
  return literal_f64(hlo_literal(a->v), a->n == 1 ? 0 : k * a->step);
}

bool hlo_along_equal(const hlo_along *a, const hlo_along *b) {
  if (!hlo_along_is_const(a) || !hlo_along_is_const(b) || a->n != b->n || (a->n > 1 && a->axis != b->axis)) {
    return false;
  }
  for (int64_t k = 0; k < a->n; k++) {
    if (hlo_along_at(a, k) != hlo_along_at(b, k)) {
      return false;
    }
  }
  return true;
}

/* --- quantised arrays --- */

static bool is_byte(hlo_value v) {
  const dtype_info *t = dtype_get_info(hlo_type(v));
  return hlo_type(v) == DTYPE_S8 || hlo_type(v) == DTYPE_U8 ||
         (hlo_literal(v) && dtype_is_int(hlo_type(v)) && t->bits <= 8);
}

static bool converted_byte(hlo_value v, hlo_value *q) {
  *q = v.def->op == HLO_CONVERT ? v.def->operands[0] : v;
  return v.def->op == HLO_CONVERT && is_byte(*q);
}

/* What s32 numbers are stretched from; they may have been widened after that. */
static bool zero_of(hlo_value v, hlo_along *out) {
  hlo_value narrow = v.def->op == HLO_CONVERT ? v.def->operands[0] : v;
  bool widened = dtype_is_int(hlo_type(narrow)) && dtype_bytes(hlo_type(narrow)) <= 2;
  return hlo_along_of(widened ? narrow : v, out);
}

bool hlo_centered_of(hlo_value v, hlo_quantized *out) {
  *out = (hlo_quantized){0};
  if (hlo_type(v) != DTYPE_S32) {
    return false;
  }
  if (v.def->op == HLO_SUB && zero_of(v.def->operands[1], &out->zero)) {
    bool zeros = hlo_along_is_const(&out->zero) && out->zero.n == 1 && hlo_along_at(&out->zero, 0) == 0;
    out->has_zero = !zeros;
    v = v.def->operands[0];
  }
  return converted_byte(v, &out->q);
}

static bool scaled_by(hlo_value x, hlo_value scale, hlo_quantized *out) {
  bool byte = converted_byte(x, &out->q);
  if (!byte && !(x.def->op == HLO_CONVERT && hlo_centered_of(x.def->operands[0], out))) {
    return false;
  }
  out->has_zero = !byte && out->has_zero;
  return hlo_along_of(scale, &out->scale);
}

bool hlo_dequantized_of(hlo_value v, hlo_quantized *out) {
  *out = (hlo_quantized){0};
  if (v.def->op != HLO_MUL || hlo_type(v) != DTYPE_F32) {
    return false;
  }
  return scaled_by(v.def->operands[0], v.def->operands[1], out) ||
         scaled_by(v.def->operands[1], v.def->operands[0], out);
}

/* A number that stands everywhere, perhaps as an integer that f32 holds. */
static bool const_splat(hlo_value v, double *number) {
  hlo_along a;
  if (v.def->op == HLO_CONVERT && dtype_is_int(hlo_type(v.def->operands[0])) &&
      dtype_bytes(hlo_type(v.def->operands[0])) <= 2) {
    v = v.def->operands[0];
  }
  if (!hlo_along_of(v, &a) || a.n != 1 || !hlo_along_is_const(&a)) {
    return false;
  }
  *number = hlo_along_at(&a, 0);
  return true;
}

bool hlo_requantized_of(hlo_value v, hlo_requantized *out) {
  *out = (hlo_requantized){0};
  const hlo_instr *clamp = v.def->op == HLO_CONVERT ? v.def->operands[0].def : NULL;
  if ((hlo_type(v) != DTYPE_S8 && hlo_type(v) != DTYPE_U8) || !clamp || clamp->op != HLO_CLAMP ||
      clamp->shapes[0].type != DTYPE_F32 || !const_splat(clamp->operands[0], &out->low) ||
      !const_splat(clamp->operands[2], &out->high)) {
    return false;
  }
  hlo_instr *x = clamp->operands[1].def;
  if (x->op == HLO_ADD) {
    uint32_t k = x->operands[0].def->op == HLO_ROUND ? 0 : 1;
    if (!const_splat(x->operands[1 - k], &out->zero)) {
      return false;
    }
    out->addition = x;
    x = x->operands[k].def;
  }
  out->round = x;
  out->v = x->op == HLO_ROUND ? x->operands[0] : v;
  return x->op == HLO_ROUND;
}

/* --- weights of small integers --- */

static bool is_small_int(hlo_value v) { return dtype_is_int(hlo_type(v)) && dtype_get_info(hlo_type(v))->bits <= 8; }

/* A broadcast that does not change along dimension d. */
static bool is_even_along(hlo_value v, int d) {
  if (v.def->op != HLO_BROADCAST) {
    return false;
  }
  for (int k = 0; k < hlo_rank(v.def->operands[0]); k++) {
    if (hlo_ints(v.def, HLO_ATTR_DIMENSIONS)[k] == d && hlo_shape(v.def->operands[0])->dims[k] != 1) {
      return false;
    }
  }
  return true;
}

/* convert(subtract(convert(q), zero)) or convert(q); members come last first. */
static bool read_centered(hlo_value v, hlo_quantized_weights *out) {
  if (v.def->op != HLO_CONVERT) {
    return false;
  }
  out->members[out->n++] = v.def;
  hlo_value x = v.def->operands[0];
  if (x.def->op == HLO_SUB && hlo_type(x) == DTYPE_S32 && x.def->operands[0].def->op == HLO_CONVERT) {
    out->zero = x.def->operands[1];
    out->members[out->n++] = x.def;
    out->members[out->n++] = x.def->operands[0].def;
    x = x.def->operands[0].def->operands[0];
  }
  out->q = x;
  return is_small_int(x);
}

static bool read_scaled(hlo_quantized_weights *out) {
  uint32_t n = out->n;
  for (uint32_t k = 0; k < 2; k++) {
    out->n = n;
    out->zero = (hlo_value){0};
    out->scale = out->scaled->operands[1 - k];
    if (read_centered(out->scaled->operands[k], out)) {
      return true;
    }
  }
  return false;
}

/* The last `n` members are single links of a chain, in the order in which they are computed from now on. */
static bool turn_chain(hlo_quantized_weights *w) {
  for (uint32_t k = 0; k < w->n / 2; k++) {
    hlo_instr *first = w->members[k];
    w->members[k] = w->members[w->n - 1 - k];
    w->members[w->n - 1 - k] = first;
  }
  for (uint32_t k = 0; k < w->n; k++) {
    if (w->members[k]->n_uses != 1 || hlo_is_root(hlo_result(w->members[k], 0))) {
      return false;
    }
  }
  return true;
}

bool hlo_quantized_weights_of(const hlo_instr *dot, hlo_quantized_weights *out) {
  *out = (hlo_quantized_weights){.block_dim = -1};
  hlo_value v = dot->operands[1];
  if (dot->op != HLO_DOT || hlo_n_ints(dot, HLO_ATTR_RHS_BATCH) || hlo_n_ints(dot, HLO_ATTR_RHS_CONTRACT) != 1 ||
      hlo_rank(v) != 2 || hlo_type(v) != DTYPE_F32 || hlo_value_equal(v, dot->operands[0])) {
    return false;
  }
  int contract = (int)hlo_ints(dot, HLO_ATTR_RHS_CONTRACT)[0];
  if (v.def->op == HLO_TRANSPOSE) { /* of two dims: they change places */
    contract = (int)hlo_ints(v.def, HLO_ATTR_PERMUTATION)[contract];
    out->members[out->n++] = v.def;
    v = v.def->operands[0];
  }
  const shape *matrix = hlo_shape(v), *s = matrix;
  if (v.def->op == HLO_RESHAPE) {
    out->members[out->n++] = v.def;
    v = v.def->operands[0];
    s = hlo_shape(v);
    bool splits = s->rank == 3 && s->dims[contract] * s->dims[contract + 1] == matrix->dims[contract];
    if (!splits) {
      return false;
    }
    out->block_dim = contract + 1;
  }
  if (v.def->op != HLO_MUL || s->rank > 3 || (s->rank == 3) != (out->block_dim >= 0)) {
    return false;
  }
  out->scaled = v.def;
  out->members[out->n++] = v.def;
  out->sum_dim = contract;
  out->column_dim = contract == 1 ? 0 : out->block_dim < 0 ? 1 : 2;
  out->sums = matrix->dims[contract];
  out->columns = matrix->dims[1 - contract];
  out->block = out->block_dim < 0 ? out->sums : s->dims[out->block_dim];
  out->sum_step = contract == 0 ? out->columns : 1;
  out->column_step = contract == 0 ? 1 : out->sums;
  int even = out->block_dim < 0 ? contract : out->block_dim;
  return out->sums > 0 && out->columns > 0 && read_scaled(out) && is_even_along(out->scale, even) &&
         (!out->zero.def || is_even_along(out->zero, even)) && turn_chain(out);
}
