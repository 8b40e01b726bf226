/* contrib.c - checks and conversions that importers of the domain com.microsoft share (contrib.h). */
#include "frontend/ops/contrib/contrib.h"

#include <inttypes.h>
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"

status contrib_attributes(const onnx_node *n, const char *const *known) {
  for (size_t k = 0; k < n->proto->n_attribute; k++) {
    const char *name = n->proto->attribute[k]->name;
    size_t j = 0;
    while (known[j] && strcmp(known[j], name) != 0) {
      j++;
    }
    CHECK_THAT(known[j], STATUS_UNSUPPORTED, "attribute '%s' is not supported", name);
  }
  return NULL;
}

status contrib_no_input(const onnx_node *n, uint32_t k, const char *what, const char *why) {
  CHECK_THAT(!onnx_has_in(n, k), STATUS_UNSUPPORTED, "input %s is given; %s", what, why);
  return NULL;
}

status contrib_need_input(const onnx_node *n, uint32_t k, const char *what) {
  CHECK_THAT(onnx_has_in(n, k), STATUS_INVALID_MODEL, "input %s is missing", what);
  return NULL;
}

status contrib_biased(const onnx_node *n, const char *what, hlo_value *out) {
  hlo_builder *b = n->b;
  *out = onnx_widen(b, n->in[0]);
  if (onnx_has_in(n, 1)) {
    const shape *x = onnx_in_shape(n, 0);
    TRY(onnx_need_rank(n, 0, "the first input", 1, SHAPE_MAX_RANK));
    TRY(onnx_need_dims(n, 1, what, 1, &x->dims[x->rank - 1]));
    *out = onnx_op_stretched(b, HLO_ADD, *out, onnx_widen(b, n->in[1]));
  }
  return NULL;
}

bool contrib_is_single(const onnx_node *n, uint32_t k) {
  const shape *s = onnx_in_shape(n, k);
  return s->rank == 0 || (s->rank == 1 && dim_known_equal(onnx_dims(n), s->dims[0], 1));
}

hlo_value contrib_softmax_from(const onnx_node *n, hlo_value x, int64_t axis) {
  if (n->b->error) {
    return x;
  }
  const shape *s = hlo_shape(x);
  dim_table *t = onnx_dims(n);
  dim matrix[] = {shape_dim_product(t, s, 0, (int)axis), shape_dim_product(t, s, (int)axis, s->rank)};
  x = onnx_softmax(n->b, hlo_reshape(n->b, x, 2, matrix), 1);
  return hlo_reshape(n->b, x, s->rank, s->dims);
}

onnx_node contrib_as(const onnx_node *n, int since, uint32_t n_in, const hlo_value *in) {
  onnx_node other = *n;
  other.since = since;
  other.n_in = n_in;
  other.in = in;
  return other;
}

hlo_value contrib_move_channels(hlo_builder *b, hlo_value x, bool back) {
  int64_t order[SHAPE_MAX_RANK];
  int rank = x.def ? hlo_rank(x) : 0;
  if (rank < 3) {
    return x;
  }
  for (int d = 1; d < rank; d++) {
    int next = d == rank - 1 ? 1 : d + 1, previous = d == 1 ? rank - 1 : d - 1;
    order[d] = back ? next : previous;
  }
  order[0] = 0;
  return hlo_transpose(b, x, order);
}
