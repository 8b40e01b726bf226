/* sizes.c - dynamic dimensions of values, and the rules by which operators pass them on. */
#include "frontend/import/sizes.h"

#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "hlo/ir/fold_sizes.h"

/* --- dynamic dimensions --- */

void onnx_dynamic_dim_set(onnx_importer *im, hlo_value v, int axis, hlo_value size) {
  if (v.def && size.def) {
    *ARENA_PUSH(im->arena, im->dynamic, im->n_dynamic, im->cap_dynamic) = (onnx_dynamic_dim){v, axis, size, im->node};
  }
}

static const onnx_dynamic_dim *find_dynamic(const onnx_importer *im, hlo_value v, int axis) {
  for (uint32_t k = im->n_dynamic; k-- > 0;) {
    if (hlo_value_equal(im->dynamic[k].value, v) && (axis < 0 || im->dynamic[k].axis == axis)) {
      return &im->dynamic[k];
    }
  }
  return NULL;
}

hlo_value onnx_dynamic_dim_get(const onnx_importer *im, hlo_value v, int axis) {
  const onnx_dynamic_dim *d = find_dynamic(im, v, axis);
  return d ? d->size : (hlo_value){0};
}

bool onnx_has_dynamic_dims(const onnx_importer *im, hlo_value v) { return find_dynamic(im, v, -1); }

bool onnx_require_sizes(onnx_importer *im, hlo_value v) {
  const onnx_dynamic_dim *d = find_dynamic(im, v, -1);
  if (d) { /* if a body of this node made the dimension dynamic, deferring the node cannot help, so the host
              interprets it */
    *(d->node == im->node ? &im->requirements.host_interpreted : &im->requirements.deferred) = true;
  }
  return d;
}

/* --- rules: the sizes of the output's dynamic dimensions from those of the inputs --- */

static hlo_value size_of(const onnx_node *n, uint32_t k, int axis) {
  return onnx_dynamic_dim_get(n->scope->importer, n->in[k], axis);
}

static bool is_dynamic(const onnx_node *n, uint32_t k) {
  return onnx_has_in(n, k) && onnx_has_dynamic_dims(n->scope->importer, n->in[k]);
}

/* Returns true if no input from number k on has dynamic dimensions. */
static bool static_from(const onnx_node *n, uint32_t k) {
  while (k < n->n_in && !is_dynamic(n, k)) {
    k++;
  }
  return k >= n->n_in;
}

bool onnx_sizes_none(const onnx_node *n, onnx_sizes *out) {
  (void)n;
  (void)out;
  return false;
}

/* The rule of operators that compute each element from the same element of the first input; other inputs must not have
 * dynamic dimensions. */
bool onnx_sizes_unary(const onnx_node *n, onnx_sizes *out) {
  for (int d = 0; d < hlo_rank(n->in[0]); d++) {
    out->size[d] = size_of(n, 0, d);
  }
  return static_from(n, 1);
}

/* The rule of QuantizeLinear and DequantizeLinear.  It accepts a single scale only; an array of scales along an axis
 * would need to have the dynamic dimension as well. */
bool onnx_sizes_quantize(const onnx_node *n, onnx_sizes *out) {
  const shape *s = hlo_shape(n->in[1]);
  return dim_known_equal(onnx_dims(n), shape_dim_product(onnx_dims(n), s, 0, s->rank), 1) && onnx_sizes_unary(n, out);
}

/* The rule of Dropout.  It accepts inference only (versions before 7, which may drop elements, have no rule), and no
 * mask output, which would have dynamic dimensions as well. */
bool onnx_sizes_dropout(const onnx_node *n, onnx_sizes *out) {
  const literal *training = onnx_has_in(n, 2) ? hlo_literal(n->in[2]) : NULL;
  bool infers = !onnx_has_in(n, 2) || (training && shape_elements(&training->shape) == 1 && !literal_i64(training, 0));
  return infers && !onnx_has_out(n, 1) && onnx_sizes_unary(n, out);
}

/* The rule of elementwise operators with broadcasting: if a dimension of one operand is dynamic, the corresponding
 * dimension of each other operand must be dynamic, too, with the same HLO value as its size, or have extent 1. */
bool onnx_sizes_broadcast(const onnx_node *n, onnx_sizes *out) {
  int rank = 0;
  for (uint32_t k = 0; k < n->n_in; k++) {
    rank = onnx_has_in(n, k) && hlo_rank(n->in[k]) > rank ? hlo_rank(n->in[k]) : rank;
  }
  for (int d = 0; d < rank; d++) {
    for (uint32_t k = 0; k < n->n_in; k++) {
      int at = d - (rank - hlo_rank(n->in[k]));
      hlo_value size = onnx_has_in(n, k) && at >= 0 ? size_of(n, k, at) : (hlo_value){0};
      if (size.def && out->size[d].def && !hlo_value_equal(size, out->size[d])) {
        return false;
      }
      out->size[d] = size.def ? size : out->size[d];
    }
    for (uint32_t k = 0; out->size[d].def && k < n->n_in; k++) {
      int at = d - (rank - hlo_rank(n->in[k]));
      if (onnx_has_in(n, k) && at >= 0 && !size_of(n, k, at).def && hlo_shape(n->in[k])->dims[at] != 1) {
        return false;
      }
    }
  }
  return true;
}

bool onnx_sizes_transpose(const onnx_node *n, onnx_sizes *out) {
  const int64_t *perm;
  size_t count;
  int rank = hlo_rank(n->in[0]);
  status failed = onnx_attr_ints(n->proto, "perm", &perm, &count);
  bool fine = !failed && (count == 0 || count == (size_t)rank);
  status_free(failed);
  for (int d = 0; fine && d < rank; d++) {
    int64_t from = count ? perm[d] : rank - 1 - d;
    fine = from >= 0 && from < rank;
    out->size[d] = fine ? size_of(n, 0, (int)from) : (hlo_value){0};
  }
  return fine;
}

static bool axis_of(const onnx_node *n, int64_t def, int rank, int64_t *out) {
  int64_t axis = def;
  status failed = onnx_attr_int(n->proto, "axis", def, &axis);
  failed = failed ? failed : onnx_axis(axis, rank, out);
  bool fine = !failed;
  status_free(failed);
  return fine;
}

/* The rule of Gather: the gathered axis of `data` must be constant; its other dimensions and those of `indices` may be
 * dynamic. */
bool onnx_sizes_gather(const onnx_node *n, onnx_sizes *out) {
  int64_t axis;
  int rank = hlo_rank(n->in[0]), more = hlo_rank(n->in[1]), at = 0;
  if (!axis_of(n, 0, rank, &axis) || size_of(n, 0, (int)axis).def || rank + more - 1 > SHAPE_MAX_RANK) {
    return false;
  }
  for (int d = 0; d < rank; d++) {
    for (int k = 0; d == axis && k < more; k++) {
      out->size[at++] = size_of(n, 1, k);
    }
    if (d != axis) {
      out->size[at++] = size_of(n, 0, d);
    }
  }
  return true;
}

/* The rule of GatherND: `indices` may have dynamic dimensions, except for the last one.  `data` must not have any, and
 * the attribute batch_dims must be absent. */
bool onnx_sizes_gather_nd(const onnx_node *n, onnx_sizes *out) {
  int last = hlo_rank(n->in[1]) - 1;
  for (int d = 0; d < last; d++) {
    out->size[d] = size_of(n, 1, d);
  }
  return !onnx_attr_has(n->proto, "batch_dims") && last >= 0 && !size_of(n, 1, last).def && !is_dynamic(n, 0);
}

/* Marks the axes that Squeeze removes or Unsqueeze inserts.  Returns false if there are none, or if they are neither an
 * attribute nor a constant. */
static bool list_axes(const onnx_node *n, int rank, bool *is_axis) {
  const int64_t *values;
  int64_t count, sorted[SHAPE_MAX_RANK];
  if (onnx_has_in(n, 1) && !hlo_literal(n->in[1])) {
    return false;
  }
  status failed = onnx_ints_attr_or_input(n, "axes", 1, &values, &count);
  failed = failed ? failed : onnx_axes(values, (size_t)count, rank, sorted);
  for (int64_t k = 0; !failed && k < count; k++) {
    is_axis[sorted[k]] = true;
  }
  bool fine = !failed && count > 0;
  status_free(failed);
  return fine;
}

/* The rule of Squeeze.  A dynamic dimension that it removes has room for one element; the importer checks that there is
 * one. */
bool onnx_sizes_squeeze(const onnx_node *n, onnx_sizes *out) {
  bool gone[SHAPE_MAX_RANK] = {false};
  int rank = hlo_rank(n->in[0]), at = 0;
  if (!list_axes(n, rank, gone)) {
    return false;
  }
  for (int d = 0; d < rank; d++) {
    hlo_value size = size_of(n, 0, d);
    if (gone[d] && size.def && hlo_shape(n->in[0])->dims[d] != 1) {
      return false;
    }
    if (!gone[d]) {
      out->size[at++] = size;
    }
  }
  return true;
}

bool onnx_sizes_unsqueeze(const onnx_node *n, onnx_sizes *out) {
  bool made[SHAPE_MAX_RANK] = {false};
  const literal *l = onnx_has_in(n, 1) ? hlo_literal(n->in[1]) : NULL;
  const int64_t *values;
  size_t count = l ? (size_t)shape_elements(&l->shape) : 0;
  if (!l) {
    status_free(onnx_attr_ints(n->proto, "axes", &values, &count));
  }
  int rank = hlo_rank(n->in[0]) + (int)count, at = 0;
  if (count > SHAPE_MAX_RANK || rank > SHAPE_MAX_RANK || !list_axes(n, rank, made)) {
    return false;
  }
  for (int d = 0; d < rank; d++) {
    if (!made[d]) {
      out->size[d] = size_of(n, 0, at++);
    }
  }
  return true;
}

/* The rule of Concat: the concatenated axis must be constant, and the arrays must have equal sizes in all other
 * dimensions. */
bool onnx_sizes_concat(const onnx_node *n, onnx_sizes *out) {
  int64_t axis;
  int rank = hlo_rank(n->in[0]);
  if (!axis_of(n, 1, rank, &axis)) { /* only before version 4 may the attribute be missing */
    return false;
  }
  for (int d = 0; d < rank; d++) {
    out->size[d] = size_of(n, 0, d);
    for (uint32_t k = 0; k < n->n_in; k++) {
      if (hlo_rank(n->in[k]) != rank || !hlo_value_equal(size_of(n, k, d), out->size[d]) ||
          (d == axis && out->size[d].def)) {
        return false;
      }
    }
  }
  return true;
}

/* The rule of Slice: the dimensions that are sliced must not be dynamic, and an input `axes` must be a constant; other
 * dimensions may be dynamic. */
bool onnx_sizes_slice(const onnx_node *n, onnx_sizes *out) {
  bool cut[SHAPE_MAX_RANK] = {false};
  const int64_t *axes = NULL;
  int64_t sorted[SHAPE_MAX_RANK], count = 0;
  int rank = hlo_rank(n->in[0]);
  status failed = NULL;
  if (!static_from(n, 1) || !shape_is_static(hlo_shape(n->in[1])) || (onnx_has_in(n, 3) && !hlo_literal(n->in[3]))) {
    return false;
  }
  if (onnx_has_in(n, 3)) {
    failed = onnx_const_ints(n, 3, "axes", &axes, &count);
    failed = failed ? failed : onnx_axes(axes, (size_t)count, rank, sorted);
  } else {
    count = shape_elements(hlo_shape(n->in[1]));
  }
  bool fine = !failed && count <= rank;
  status_free(failed);
  for (int64_t k = 0; fine && k < count; k++) {
    cut[axes ? sorted[k] : k] = true;
  }
  for (int d = 0; fine && d < rank; d++) {
    out->size[d] = size_of(n, 0, d);
    fine = !cut[d] || !out->size[d].def;
  }
  return fine;
}

/* Returns the product of the elements of a new shape; DIM_OVERFLOW if one of them may be negative. */
static dim product_of(dim_table *t, int n, const dim *list) {
  dim product = 1;
  for (int k = 0; k < n; k++) {
    product = dim_known_at_most(t, 0, list[k]) ? dim_mul(t, product, list[k]) : DIM_OVERFLOW;
  }
  return product;
}

/* The rule of Reshape: the data must have one dynamic dimension, and the new shape must keep it and be known.  It must
 * state that dimension as -1, or as 0, which copies it (the attribute allowzero must be absent).  The product of the
 * extents before it, and that of the extents after it, must be the same as in the input. */
bool onnx_sizes_reshape(const onnx_node *n, onnx_sizes *out) {
  dim_table *t = onnx_dims(n);
  const shape *s = hlo_shape(n->in[0]);
  dim want[HLO_MAX_SIZES];
  int dynamic = 0, count = n->n_in > 1 && n->in[1].def ? hlo_sizes_of(n->in[1], want) : -1;
  if (count < 0 || count > SHAPE_MAX_RANK || hlo_rank(n->in[1]) != 1 || onnx_attr_has(n->proto, "allowzero")) {
    return false;
  }
  while (dynamic < s->rank && !size_of(n, 0, dynamic).def) {
    dynamic++;
  }
  for (int d = dynamic + 1; d < s->rank; d++) {
    if (size_of(n, 0, d).def) {
      return false;
    }
  }
  dim before = shape_dim_product(t, s, 0, dynamic), behind = shape_dim_product(t, s, dynamic + 1, s->rank);
  for (int k = 0; k < count; k++) {
    int64_t value = 1;
    bool known = dim_signed_value(t, want[k], &value);
    if (known && (value == -1 || (value == 0 && k == dynamic)) && dim_known_equal(t, product_of(t, k, want), before)) {
      out->size[k] = size_of(n, 0, dynamic);
      return dim_known_equal(t, product_of(t, count - k - 1, want + k + 1), behind);
    }
    want[k] = known && value == 0 && k < s->rank ? s->dims[k] : want[k];
  }
  return false;
}

/* The rule of Shape and Size, whose importers read the sizes themselves. */
bool onnx_sizes_by_importer(const onnx_node *n, onnx_sizes *out) {
  (void)n;
  (void)out;
  return true;
}

/* --- before and after an importer --- */

status onnx_sizes_before(onnx_node *n, const onnx_op_row *row, onnx_sizes **out) {
  onnx_importer *im = n->scope->importer;
  *out = NULL;
  if (!im->n_dynamic || static_from(n, 0)) {
    return NULL;
  }
  *out = ARENA_NEW(n->arena, onnx_sizes);
  if (row->sizes(n, *out)) {
    return NULL;
  }
  const char *first = NULL;
  for (uint32_t k = 0; k < n->n_in; k++) {
    bool depends = onnx_has_in(n, k) && onnx_require_sizes(im, n->in[k]);
    first = depends && !first ? n->proto->input[k] : first;
  }
  return status_error(STATUS_UNSUPPORTED, "the size of input '%s' depends on data", first);
}

void onnx_sizes_after(onnx_node *n, const onnx_sizes *s) {
  for (int d = 0; s && d < hlo_rank(n->out[0]); d++) {
    onnx_dynamic_dim_set(n->scope->importer, n->out[0], d, s->size[d]);
  }
}

/* --- results --- */

void onnx_set_roots(onnx_importer *im, uint32_t n, const hlo_value *values) {
  uint32_t n_roots = n, most = n; /* a value may be listed several times, each time with its sizes */
  for (uint32_t k = 0; k < n; k++) {
    most += onnx_has_dynamic_dims(im, values[k]) ? (uint32_t)hlo_rank(values[k]) : 0;
  }
  hlo_value *roots = ARENA_NEW_N(im->arena, hlo_value, most);
  hlo_size_of *size_of = ARENA_NEW_N(im->arena, hlo_size_of, most);
  for (uint32_t k = 0; k < n; k++) {
    roots[k] = values[k];
    size_of[k].axis = -1;
    for (int axis = 0; axis < hlo_rank(values[k]); axis++) {
      hlo_value size = onnx_dynamic_dim_get(im, values[k], axis);
      if (size.def) {
        size_of[n_roots] = (hlo_size_of){.result = k, .axis = axis};
        roots[n_roots++] = size;
      }
    }
  }
  hlo_set_roots(im->module->entry, n_roots, roots);
  im->module->result_names =
      arena_grow(im->arena, im->module->result_names, n * sizeof(char *), n_roots * sizeof(char *));
  im->module->size_of = n_roots > n ? size_of : NULL;
}
