/* builder.c - builds instructions with inferred shapes and folds constants. */
#include "hlo/ir/builder.h"

#include <assert.h>
#include <string.h>

#include "base/dim/guard.h"
#include "hlo/ir/fold_sizes.h"

hlo_builder hlo_builder_make(hlo_computation *c) { return (hlo_builder){.computation = c, .source = ""}; }

hlo_builder hlo_builder_inner(const hlo_builder *b, const char *name) {
  hlo_builder inner = hlo_builder_make(hlo_computation_create(b->computation->module, name));
  inner.source = b->source;
  inner.eval = b->eval;
  inner.fold_bytes = b->fold_bytes;
  return inner;
}

status hlo_builder_take_error(hlo_builder *b) {
  status s = b->error;
  b->error = NULL;
  return s;
}

void hlo_fail(hlo_builder *b, status s) {
  if (b->error) {
    status_free(s);
  } else {
    b->error = s;
  }
}

arena *hlo_arena(const hlo_builder *b) { return b->computation->module->arena; }

static const hlo_value no_value;

/* --- constant folding --- */

/* Makes i an instruction without operands.  It has no users yet, so only its operands' lists of uses change. */
static void replace_in_place(hlo_instr *i, hlo_op op, hlo_attr attr) {
  i->op = op;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    hlo_instr *def = i->operands[k].def;
    for (uint32_t u = def->n_uses; u-- > 0;) {
      if (def->uses[u].user == i) {
        def->uses[u] = def->uses[--def->n_uses];
      }
    }
  }
  i->n_operands = 0;
  i->attrs = arena_memdup(i->parent->module->arena, &attr, sizeof attr);
}

/* Replaces an instruction whose operands are constants by its value.  Returns true if it did. */
static bool fold(hlo_builder *b, hlo_instr *i) {
  if (!b->eval || i->op == HLO_CONSTANT || i->n_results != 1 || i->op == HLO_PARAMETER ||
      (hlo_info(i)->flags & (HLO_EFFECT | HLO_RUN)) || !shape_is_static(&i->shapes[0]) ||
      i->shapes[0].kind != SHAPE_ARRAY || shape_bytes(&i->shapes[0]) > b->fold_bytes) {
    return false;
  }
  literal result;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    if (!hlo_literal(i->operands[k])) {
      return false;
    }
  }
  status s = b->eval(i, hlo_arena(b), &result);
  if (s) {
    status_free(s);
    return false;
  }
  replace_in_place(i, HLO_CONSTANT, (hlo_attr){.value = arena_memdup(hlo_arena(b), &result, sizeof result)});
  return true;
}

/* Replaces an instruction that computes sizes by an instruction `sizes` or, if all of its elements are constants, by a
 * constant. */
static void fold_sizes(hlo_instr *i) {
  dim elements[HLO_MAX_SIZES];
  int64_t values[HLO_MAX_SIZES];
  int n = hlo_fold_sizes(i, elements);
  arena *a = i->parent->module->arena;
  if (n < 0) {
    return;
  }
  if (!hlo_constant_sizes(i->parent->module->dims, n, elements, values)) {
    hlo_attr attr = {.n = (uint32_t)n, .ints = arena_memdup(a, elements, (size_t)n * sizeof *elements)};
    replace_in_place(i, HLO_SIZES, attr);
    return;
  }
  literal l = hlo_sizes_literal(a, i->shapes[0], values);
  replace_in_place(i, HLO_CONSTANT, (hlo_attr){.value = arena_memdup(a, &l, sizeof l)});
}

hlo_instr *hlo_build(hlo_builder *b, hlo_op op, uint32_t n_operands, const hlo_value *operands, uint32_t n_results,
                     const shape *declared, const hlo_attr *attrs) {
  if (b->error) {
    return NULL;
  }
  for (uint32_t k = 0; k < n_operands; k++) {
    if (!operands[k].def) {
      hlo_fail(b, status_error(STATUS_INTERNAL, "%s: operand %u is missing", hlo_op_get_info(op)->name, k));
      return NULL;
    }
  }
  const hlo_op_info *info = hlo_op_get_info(op);
  hlo_instr *i = hlo_instr_create(b->computation, b->before, op, n_operands, operands, n_results);
  i->source = b->source;
  if (declared) {
    memcpy(i->shapes, declared, n_results * sizeof *declared);
  }
  arena *a = hlo_arena(b);
  for (uint32_t k = 0; k < info->n_attrs; k++) { /* lists are copied, since callers may pass them from the stack */
    i->attrs[k] = attrs[k];
    switch (hlo_attr_get_info(info->attrs[k])->kind) {
      case HLO_KIND_INTS:
      case HLO_KIND_DIMS:
      case HLO_KIND_SIGNED_DIMS:
        i->attrs[k].ints = arena_memdup(a, attrs[k].ints, attrs[k].n * sizeof *attrs[k].ints);
        break;
      case HLO_KIND_FLOATS:
        i->attrs[k].floats = arena_memdup(a, attrs[k].floats, attrs[k].n_floats * sizeof *attrs[k].floats);
        break;
      case HLO_KIND_COMPS:
        i->attrs[k].comps = arena_memdup(a, attrs[k].comps, attrs[k].n_comps * sizeof *attrs[k].comps);
        break;
      default: break;
    }
  }
  status s = hlo_infer(i);
  if (s) {
    hlo_remove(i);
    hlo_fail(b, s);
    return NULL;
  }
  if (!fold(b, i)) {
    fold_sizes(i);
  }
  return i;
}

static hlo_value first_result(hlo_instr *i) { return i ? hlo_result(i, 0) : no_value; }

/* Builds an instruction with one result, whose shape is inferred. */
static hlo_value make(hlo_builder *b, hlo_op op, uint32_t n, const hlo_value *operands, const hlo_attr *attrs) {
  return first_result(hlo_build(b, op, n, operands, 1, NULL, attrs));
}

static hlo_value make_declared(hlo_builder *b, hlo_op op, uint32_t n, const hlo_value *operands, shape s,
                               const hlo_attr *attrs) {
  return first_result(hlo_build(b, op, n, operands, 1, &s, attrs));
}

static hlo_attr int_attr(int64_t v) { return (hlo_attr){.i = v}; }
static hlo_attr list_attr(uint32_t n, const int64_t *v) { return (hlo_attr){.n = n, .ints = v}; }

/* --- constants --- */

hlo_value hlo_constant(hlo_builder *b, literal l) {
  if (b->error) {
    return no_value;
  }
  hlo_attr value = {.value = arena_memdup(hlo_arena(b), &l, sizeof l)};
  return make(b, HLO_CONSTANT, 0, NULL, &value);
}

hlo_value hlo_scalar(hlo_builder *b, dtype type, double value) {
  if (type == DTYPE_INVALID) {
    return no_value;
  }
  return hlo_constant(b, literal_scalar_f64(hlo_arena(b), type, value));
}

hlo_value hlo_scalar_int(hlo_builder *b, dtype type, int64_t value) {
  return hlo_constant(b, literal_scalar_i64(hlo_arena(b), type, value));
}

hlo_value hlo_s64s(hlo_builder *b, const int64_t *values, int64_t n) {
  return hlo_constant(b, literal_s64s(hlo_arena(b), values, n));
}

hlo_value hlo_splat(hlo_builder *b, shape s, double value) {
  hlo_value scalar = hlo_scalar(b, (dtype)s.type, value);
  return s.rank ? hlo_broadcast(b, scalar, s, NULL) : scalar;
}

hlo_value hlo_like(hlo_builder *b, hlo_value x, double value) {
  return x.def ? hlo_splat(b, *hlo_shape(x), value) : no_value;
}

/* --- elementwise --- */

hlo_value hlo_unary(hlo_builder *b, hlo_op op, hlo_value x) { return make(b, op, 1, &x, NULL); }

hlo_value hlo_binary(hlo_builder *b, hlo_op op, hlo_value x, hlo_value y) {
  return make(b, op, 2, (hlo_value[]){x, y}, NULL);
}

hlo_value hlo_compare(hlo_builder *b, hlo_comparison c, hlo_value x, hlo_value y) {
  hlo_attr attr = int_attr(c);
  return make(b, HLO_COMPARE, 2, (hlo_value[]){x, y}, &attr);
}

hlo_value hlo_select(hlo_builder *b, hlo_value pred, hlo_value x, hlo_value y) {
  return make(b, HLO_SELECT, 3, (hlo_value[]){pred, x, y}, NULL);
}

hlo_value hlo_clamp(hlo_builder *b, hlo_value low, hlo_value x, hlo_value high) {
  return make(b, HLO_CLAMP, 3, (hlo_value[]){low, x, high}, NULL);
}

hlo_value hlo_convert_as(hlo_builder *b, hlo_value x, dtype to, bool saturate, dtype_round round) {
  if (hlo_type(x) == to) {
    return x;
  }
  hlo_attr attrs[] = {int_attr(saturate), int_attr(round)};
  return make_declared(b, HLO_CONVERT, 1, &x, shape_with_type(*hlo_shape(x), to), attrs);
}

hlo_value hlo_convert(hlo_builder *b, hlo_value x, dtype to) {
  return hlo_convert_as(b, x, to, true, DTYPE_ROUND_NEAREST);
}

hlo_value hlo_bitcast(hlo_builder *b, hlo_value x, dtype to) {
  return make_declared(b, HLO_BITCAST, 1, &x, shape_with_type(*hlo_shape(x), to), NULL);
}

/* --- broadcasting --- */

hlo_value hlo_broadcast(hlo_builder *b, hlo_value x, shape to, const int64_t *dimensions) {
  hlo_attr attr = list_attr((uint32_t)hlo_rank(x), dimensions);
  return make_declared(b, HLO_BROADCAST, 1, &x, shape_with_type(to, hlo_type(x)), &attr);
}

hlo_value hlo_broadcast_to(hlo_builder *b, hlo_value x, const shape *dims) {
  const shape *s = hlo_shape(x);
  if (!x.def || shape_same_dims(s, dims)) {
    return x;
  }
  if (s->rank > dims->rank) {
    hlo_fail(b,
             status_error(STATUS_INVALID_MODEL, "%s cannot be broadcast to %s",
                          SHAPE_STR(b->computation->module->dims, s), SHAPE_STR(b->computation->module->dims, dims)));
    return no_value;
  }
  int64_t dimensions[SHAPE_MAX_RANK];
  for (int k = 0; k < s->rank; k++) {
    dimensions[k] = dims->rank - s->rank + k;
  }
  return hlo_broadcast(b, x, *dims, dimensions);
}

status hlo_broadcast_shape(dim_table *t, const shape *x, const shape *y, shape *out) {
  const shape *longer = x->rank >= y->rank ? x : y, *shorter = x->rank >= y->rank ? y : x;
  *out = *longer;
  out->type = x->type;
  int shift = longer->rank - shorter->rank;
  for (int k = shift; k < longer->rank; k++) {
    dim a = longer->dims[k], c = shorter->dims[k - shift];
    if (a == 1 || (c != 1 && !dim_equal(t, a, c) && dim_equal(t, a, 1))) {
      out->dims[k] = c;
    } else {
      CHECK_THAT(c == 1 || dim_equal(t, a, c) || dim_equal(t, c, 1), STATUS_INVALID_MODEL,
                 "%s and %s do not broadcast: dimension %d from the end differs and neither is 1", SHAPE_STR(t, x),
                 SHAPE_STR(t, y), longer->rank - 1 - k);
    }
  }
  return NULL;
}

void hlo_broadcast_both(hlo_builder *b, hlo_value *x, hlo_value *y) {
  if (b->error || !x->def || !y->def) {
    return;
  }
  shape s;
  status bad = hlo_broadcast_shape(b->computation->module->dims, hlo_shape(*x), hlo_shape(*y), &s);
  if (bad) {
    hlo_fail(b, bad);
    return;
  }
  *x = hlo_broadcast_to(b, *x, &s);
  *y = hlo_broadcast_to(b, *y, &s);
}

hlo_value hlo_binary_broadcast(hlo_builder *b, hlo_op op, hlo_value x, hlo_value y) {
  hlo_broadcast_both(b, &x, &y);
  return hlo_binary(b, op, x, y);
}

/* --- movement --- */

hlo_value hlo_iota(hlo_builder *b, shape s, int64_t dimension) {
  hlo_attr attr = int_attr(dimension);
  return make_declared(b, HLO_IOTA, 0, NULL, s, &attr);
}

hlo_value hlo_empty(hlo_builder *b, shape s) { return make_declared(b, HLO_EMPTY, 0, NULL, s, NULL); }

void hlo_check(hlo_builder *b, hlo_value x, const char *what, uint32_t n, const dim *limits, bool from_end) {
  hlo_attr attrs[] = {{.s = what}, list_attr(n, limits), int_attr(from_end)};
  (void)hlo_build(b, HLO_CHECK, 1, &x, 0, NULL, attrs);
}

hlo_value hlo_run_seed(hlo_builder *b) { return make(b, HLO_RUN_SEED, 0, NULL, NULL); }

hlo_value hlo_rng(hlo_builder *b, hlo_value state, hlo_algorithm algorithm, shape s) {
  hlo_attr attr = int_attr(algorithm);
  return make_declared(b, HLO_RNG, 1, &state, s, &attr);
}

hlo_value hlo_reshape(hlo_builder *b, hlo_value x, int rank, const dim *dims) {
  if (rank > SHAPE_MAX_RANK) {
    hlo_fail(b, status_error(STATUS_UNSUPPORTED, "rank %d is above %d", rank, SHAPE_MAX_RANK));
    return no_value;
  }
  shape s = shape_make(hlo_type(x), rank, dims);
  return x.def && shape_same_dims(&s, hlo_shape(x)) ? x : make_declared(b, HLO_RESHAPE, 1, &x, s, NULL);
}

hlo_value hlo_transpose(hlo_builder *b, hlo_value x, const int64_t *permutation) {
  hlo_attr attr = list_attr((uint32_t)hlo_rank(x), permutation);
  return make(b, HLO_TRANSPOSE, 1, &x, &attr);
}

hlo_value hlo_reverse(hlo_builder *b, hlo_value x, uint32_t n, const int64_t *dimensions) {
  hlo_attr attr = list_attr(n, dimensions);
  return make(b, HLO_REVERSE, 1, &x, &attr);
}

static const int64_t ones[SHAPE_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
static const int64_t zeros[SHAPE_MAX_RANK];

hlo_value hlo_slice(hlo_builder *b, hlo_value x, const dim *starts, const dim *limits, const int64_t *strides) {
  uint32_t n = (uint32_t)hlo_rank(x);
  hlo_attr attrs[] = {list_attr(n, starts), list_attr(n, limits), list_attr(n, strides ? strides : ones)};
  return make(b, HLO_SLICE, 1, &x, attrs);
}

hlo_value hlo_slice_dim(hlo_builder *b, hlo_value x, int64_t dimension, dim start, dim limit) {
  const shape *s = hlo_shape(x);
  if (!x.def || dimension < 0 || dimension >= s->rank) {
    hlo_fail(b, status_error(STATUS_INTERNAL, "slice of dimension %d of %s", (int)dimension,
                             SHAPE_STR(b->computation->module->dims, s)));
    return no_value;
  }
  dim starts[SHAPE_MAX_RANK] = {0}, limits[SHAPE_MAX_RANK];
  memcpy(limits, s->dims, sizeof limits);
  starts[dimension] = start;
  limits[dimension] = limit;
  return hlo_slice(b, x, starts, limits, NULL);
}

hlo_value hlo_pad(hlo_builder *b, hlo_value x, hlo_value value, const int64_t *low, const int64_t *high,
                  const int64_t *interior) {
  uint32_t n = (uint32_t)hlo_rank(x);
  hlo_attr attrs[] = {list_attr(n, low), list_attr(n, high), list_attr(n, interior ? interior : zeros)};
  return make(b, HLO_PAD, 2, (hlo_value[]){x, value}, attrs);
}

hlo_value hlo_concatenate(hlo_builder *b, uint32_t n, const hlo_value *xs, int64_t dimension) {
  if (n == 1) {
    return xs[0];
  }
  hlo_attr attr = int_attr(dimension);
  return make(b, HLO_CONCAT, n, xs, &attr);
}

hlo_value hlo_dynamic_slice(hlo_builder *b, hlo_value x, hlo_value starts, const dim *sizes) {
  hlo_attr attr = list_attr((uint32_t)hlo_rank(x), sizes);
  return make(b, HLO_DYNAMIC_SLICE, 2, (hlo_value[]){x, starts}, &attr);
}

hlo_value hlo_dynamic_update_slice(hlo_builder *b, hlo_value x, hlo_value update, hlo_value starts) {
  return make(b, HLO_DYNAMIC_UPDATE_SLICE, 3, (hlo_value[]){x, update, starts}, NULL);
}

hlo_value hlo_gather(hlo_builder *b, hlo_value x, hlo_value indices, const hlo_gather_dims *d, const dim *sizes) {
  hlo_attr attrs[] = {list_attr(d->n_offset, d->offset),
                      list_attr(d->n_collapsed, d->collapsed),
                      list_attr(d->n_batch, d->operand_batch),
                      list_attr(d->n_batch, d->indices_batch),
                      list_attr(d->n_map, d->map),
                      int_attr(d->index_vector_dim),
                      list_attr((uint32_t)hlo_rank(x), sizes)};
  return make(b, HLO_GATHER, 2, (hlo_value[]){x, indices}, attrs);
}

hlo_value hlo_scatter(hlo_builder *b, hlo_value x, hlo_value indices, hlo_value updates, const hlo_gather_dims *d,
                      hlo_reducer reducer) {
  hlo_attr attrs[] = {list_attr(d->n_offset, d->offset),
                      list_attr(d->n_collapsed, d->collapsed),
                      list_attr(d->n_batch, d->operand_batch),
                      list_attr(d->n_batch, d->indices_batch),
                      list_attr(d->n_map, d->map),
                      int_attr(d->index_vector_dim),
                      int_attr(reducer)};
  return make(b, HLO_SCATTER, 3, (hlo_value[]){x, indices, updates}, attrs);
}

hlo_value hlo_take(hlo_builder *b, hlo_value x, hlo_value indices, int64_t dimension) {
  const shape *s = hlo_shape(x), *si = hlo_shape(indices);
  if (!x.def || !indices.def) {
    return no_value;
  }
  if (s->rank - 1 + si->rank > SHAPE_MAX_RANK) {
    hlo_fail(b, status_error(STATUS_UNSUPPORTED, "gather: the result's rank is above %d", SHAPE_MAX_RANK));
    return no_value;
  }
  int64_t offset[SHAPE_MAX_RANK], sizes[SHAPE_MAX_RANK];
  uint32_t n = 0;
  /* The result has the dimensions of x before and after `dimension`; between them are the dimensions of the indices. */
  for (int k = 0; k < s->rank; k++) {
    sizes[k] = k == dimension ? 1 : s->dims[k];
    if (k != dimension) {
      offset[n++] = k < dimension ? k : k - 1 + si->rank;
    }
  }
  hlo_gather_dims d = {.n_offset = n,
                       .offset = offset,
                       .n_collapsed = 1,
                       .collapsed = &dimension,
                       .n_map = 1,
                       .map = &dimension,
                       .index_vector_dim = si->rank};
  return hlo_gather(b, x, indices, &d, sizes);
}

/* --- reductions and windows --- */

hlo_value hlo_reduce(hlo_builder *b, hlo_value x, hlo_reducer r, uint32_t n, const int64_t *dimensions) {
  if (n == 0) {
    return x;
  }
  hlo_attr attrs[] = {list_attr(n, dimensions), int_attr(r)};
  return make(b, HLO_REDUCE, 1, &x, attrs);
}

hlo_value hlo_arg_reduce(hlo_builder *b, hlo_value x, int64_t dimension, bool largest, bool last) {
  hlo_attr attrs[] = {int_attr(dimension), int_attr(largest), int_attr(last)};
  return make(b, HLO_ARG_REDUCE, 1, &x, attrs);
}

static void window_attrs(hlo_attr *attrs, uint32_t n, const hlo_window *w) {
  attrs[0] = list_attr(n, w->window);
  attrs[1] = list_attr(n, w->strides ? w->strides : ones);
  attrs[2] = list_attr(n, w->low ? w->low : zeros);
  attrs[3] = list_attr(n, w->high ? w->high : zeros);
  attrs[4] = list_attr(n, w->dilation ? w->dilation : ones);
}

hlo_value hlo_reduce_window(hlo_builder *b, hlo_value x, hlo_reducer r, const hlo_window *w) {
  hlo_attr attrs[6];
  window_attrs(attrs, (uint32_t)hlo_rank(x), w);
  attrs[5] = int_attr(r);
  return make(b, HLO_REDUCE_WINDOW, 1, &x, attrs);
}

hlo_value hlo_arg_reduce_window(hlo_builder *b, hlo_value x, const hlo_window *w) {
  hlo_attr attrs[5];
  window_attrs(attrs, (uint32_t)hlo_rank(x), w);
  return make(b, HLO_ARG_REDUCE_WINDOW, 1, &x, attrs);
}

hlo_value hlo_cumulative(hlo_builder *b, hlo_value x, hlo_reducer r, int64_t dimension, bool exclusive, bool backward) {
  hlo_attr attrs[] = {int_attr(dimension), int_attr(r), int_attr(exclusive), int_attr(backward)};
  return make(b, HLO_CUMULATIVE, 1, &x, attrs);
}

static void take_results(hlo_instr *i, uint32_t n, hlo_value *out) {
  for (uint32_t k = 0; k < n; k++) {
    out[k] = i ? hlo_result(i, k) : no_value;
  }
}

void hlo_sort(hlo_builder *b, uint32_t n, const hlo_value *xs, int64_t dimension, bool descending, hlo_value *out) {
  hlo_attr attrs[] = {int_attr(dimension), int_attr(descending)};
  take_results(hlo_build(b, HLO_SORT, n, xs, n, NULL, attrs), n, out);
}

void hlo_nms(hlo_builder *b, uint32_t n, const hlo_value *xs, int64_t limit, hlo_value out[2]) {
  hlo_attr attrs[] = {int_attr(limit)};
  take_results(hlo_build(b, HLO_NMS, n, xs, 2, NULL, attrs), 2, out);
}

/* --- contractions --- */

hlo_value hlo_dot(hlo_builder *b, hlo_value x, hlo_value y, const hlo_dot_dims *d) {
  hlo_attr attrs[] = {list_attr(d->n_batch, d->lhs_batch), list_attr(d->n_batch, d->rhs_batch),
                      list_attr(d->n_contract, d->lhs_contract), list_attr(d->n_contract, d->rhs_contract)};
  return make(b, HLO_DOT, 2, (hlo_value[]){x, y}, attrs);
}

/* If x is a vector or y has no batch dimensions, the batch dimensions of the other operand become free dimensions of
 * the dot.  So the common x[.., M, K] * w[K, N] is one plain matrix product.  Otherwise both operands are broadcast to
 * common batch dimensions. */
hlo_value hlo_matmul(hlo_builder *b, hlo_value x, hlo_value y) {
  if (!x.def || !y.def) {
    return no_value;
  }
  const shape *sx = hlo_shape(x), *sy = hlo_shape(y);
  if (sx->rank == 0 || sy->rank == 0) {
    hlo_fail(b, status_error(STATUS_INVALID_MODEL, "a matrix product of %s and %s: neither may be a scalar",
                             SHAPE_STR(b->computation->module->dims, sx), SHAPE_STR(b->computation->module->dims, sy)));
    return no_value;
  }
  if (sx->rank == 1 || sy->rank <= 2) {
    int64_t contract_x = sx->rank - 1, contract_y = sy->rank == 1 ? 0 : sy->rank - 2;
    hlo_dot_dims d = {.n_contract = 1, .lhs_contract = &contract_x, .rhs_contract = &contract_y};
    hlo_value r = hlo_dot(b, x, y, &d); /* has the free dimensions of x, then those of y */
    return r;
  }
  int batch = (sx->rank > sy->rank ? sx->rank : sy->rank) - 2;
  shape bx = *sx, by = *sy; /* the batch dimensions of x and y */
  bx.rank = (uint8_t)(sx->rank - 2);
  by.rank = (uint8_t)(sy->rank - 2);
  shape common;
  status bad = hlo_broadcast_shape(b->computation->module->dims, &bx, &by, &common);
  if (bad) {
    hlo_fail(b, bad);
    return no_value;
  }
  int64_t dims[SHAPE_MAX_RANK];
  shape tx = shape_make(hlo_type(x), batch, common.dims), ty = shape_make(hlo_type(y), batch, common.dims);
  for (int k = 0; k < 2; k++) {
    tx.dims[batch + k] = sx->dims[sx->rank - 2 + k];
    ty.dims[batch + k] = sy->dims[sy->rank - 2 + k];
  }
  tx.rank = ty.rank = (uint8_t)(batch + 2);
  x = hlo_broadcast_to(b, x, &tx);
  y = hlo_broadcast_to(b, y, &ty);
  for (int k = 0; k < batch; k++) {
    dims[k] = k;
  }
  int64_t contract_x = batch + 1, contract_y = batch;
  hlo_dot_dims d = {.n_batch = (uint32_t)batch,
                    .lhs_batch = dims,
                    .rhs_batch = dims,
                    .n_contract = 1,
                    .lhs_contract = &contract_x,
                    .rhs_contract = &contract_y};
  return hlo_dot(b, x, y, &d);
}

hlo_value hlo_convolution(hlo_builder *b, hlo_value x, hlo_value kernel, const hlo_conv_dims *d) {
  uint32_t n = hlo_rank(x) >= 2 ? (uint32_t)hlo_rank(x) - 2 : 0;
  hlo_attr attrs[] = {list_attr(n, d->strides ? d->strides : ones),
                      list_attr(n, d->low ? d->low : zeros),
                      list_attr(n, d->high ? d->high : zeros),
                      list_attr(n, d->lhs_dilation ? d->lhs_dilation : ones),
                      list_attr(n, d->rhs_dilation ? d->rhs_dilation : ones),
                      int_attr(d->groups),
                      int_attr(d->layout)};
  return make(b, HLO_CONVOLUTION, 2, (hlo_value[]){x, kernel}, attrs);
}

/* --- control flow --- */

void hlo_while(hlo_builder *b, hlo_computation *condition, hlo_computation *body, uint32_t n, const hlo_value *init,
               hlo_value *out) {
  hlo_computation *comps[] = {condition, body};
  hlo_attr attr = {.n_comps = 2, .comps = comps};
  take_results(hlo_build(b, HLO_WHILE, n, init, n, NULL, &attr), n, out);
}

void hlo_conditional(hlo_builder *b, hlo_value index, uint32_t n_branches, hlo_computation **branches, uint32_t n,
                     const hlo_value *args, hlo_value *out) {
  hlo_value *operands = ARENA_NEW_N(hlo_arena(b), hlo_value, n + 1);
  operands[0] = index;
  if (n) {
    memcpy(operands + 1, args, n * sizeof *args);
  }
  hlo_attr attr = {.n_comps = n_branches, .comps = branches};
  uint32_t n_results = branches[0]->n_roots;
  take_results(hlo_build(b, HLO_CONDITIONAL, n + 1, operands, n_results, NULL, &attr), n_results, out);
}

void hlo_composite(hlo_builder *b, const char *name, hlo_computation *decomposition, uint32_t n, const hlo_value *args,
                   uint32_t n_ints, const int64_t *ints, uint32_t n_floats, const double *floats, hlo_value *out) {
  hlo_attr attrs[] = {{.s = name},
                      list_attr(n_ints, ints),
                      {.n_floats = n_floats, .floats = floats},
                      {.n_comps = 1, .comps = &decomposition}};
  uint32_t n_results = decomposition->n_roots;
  take_results(hlo_build(b, HLO_COMPOSITE, n, args, n_results, NULL, attrs), n_results, out);
}
