/* hyper_connection.c - the importers of operators on several residual streams, the branches of hyper-connections.  The
 * streams have the shape (..., C, H), or (..., C * H) if num_branches states C. */
#include <inttypes.h>

#include "base/dim/guard.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/contrib/contrib.h"
#include "frontend/ops/math/norm.h"

typedef struct streams {
  bool flattened;
  int prefix;    /* the number of dimensions before C */
  shape grouped; /* (..., C, H) with the type of the streams */
  hlo_value x;   /* input 0 in f32, with that shape */
} streams;

/* Reads input 0, named `what`. */
static status read_streams(const onnx_node *n, const char *what, streams *out) {
  const shape *s = onnx_in_shape(n, 0);
  int64_t branches, width;
  TRY(onnx_attr_int_in(n->proto, "num_branches", 0, 0, INT32_MAX, &branches));
  *out = (streams){.flattened = branches != 0, .grouped = *s};
  TRY(onnx_need_rank(n, 0, what, branches ? 1 : 2, branches ? SHAPE_MAX_RANK - 1 : SHAPE_MAX_RANK));
  if (branches) {
    TRY(onnx_const_dim(n, s->dims[s->rank - 1], "the last dimension of the streams", &width));
    CHECK_THAT(width % branches == 0, STATUS_INVALID_MODEL,
               "%s is %s, whose last dimension is no multiple of num_branches, %" PRId64, what,
               SHAPE_STR(onnx_dims(n), s), branches);
    out->grouped.rank = s->rank + 1;
    out->grouped.dims[s->rank - 1] = branches;
    out->grouped.dims[s->rank] = width / branches;
  }
  out->prefix = out->grouped.rank - 2;
  out->x = hlo_reshape(n->b, hlo_convert(n->b, n->in[0], DTYPE_F32), out->grouped.rank, out->grouped.dims);
  return NULL;
}

/* Returns y, which has the shape of st->grouped and any type, with the shape and the type of input 0. */
static hlo_value as_streams(const onnx_node *n, hlo_value y) {
  const shape *s = onnx_in_shape(n, 0);
  return hlo_reshape(n->b, hlo_convert(n->b, y, (dtype)s->type), s->rank, s->dims);
}

/* Returns input k, the gates (..., C), (..., C, 1) or (..., C, H), in f32 and broadcast to (..., C, H).  With `flat`,
 * flattened streams may have gates of their own shape, too. */
static status read_gates(const onnx_node *n, uint32_t k, const char *what, const streams *st, bool flat,
                         hlo_value *out) {
  hlo_builder *b = n->b;
  int p = st->prefix;
  const shape *s = onnx_in_shape(n, k);
  shape wanted = st->grouped;
  TRY(onnx_need_rank(n, k, what, p + 1, p + 2));
  flat = flat && st->flattened && s->rank == p + 1 && dim_equal(onnx_dims(n), s->dims[p], onnx_in_shape(n, 0)->dims[p]);
  if (flat) {
    wanted = *onnx_in_shape(n, 0);
  } else if (s->rank == p + 1) {
    wanted.rank = p + 1;
  } else if (dim_known_equal(onnx_dims(n), s->dims[p + 1], 1)) {
    wanted.dims[p + 1] = 1;
  }
  TRY(onnx_need_dims(n, k, what, wanted.rank, wanted.dims));
  hlo_value x = hlo_convert(b, n->in[k], DTYPE_F32);
  if (flat) {
    x = hlo_reshape(b, x, p + 2, st->grouped.dims);
  } else if (s->rank == p + 1) {
    x = onnx_insert_dim(b, x, p + 1);
  }
  *out = hlo_broadcast_to(b, x, &st->grouped);
  return NULL;
}

/* --- BranchwiseRMSNorm --- */

/* Returns input 1, the scale, with a shape that broadcasts to the streams: (H), or (C, H), which may be given as
 * (C * H). */
static status read_scale(const onnx_node *n, const streams *st, hlo_value *out) {
  dim_table *t = onnx_dims(n);
  const shape *s = onnx_in_shape(n, 1);
  const dim *whole = st->grouped.dims + st->prefix;
  dim product = dim_mul(t, whole[0], whole[1]);
  TRY(onnx_need_rank(n, 1, "scale", 1, 2));
  *out = hlo_convert(n->b, n->in[1], DTYPE_F32);
  if (s->rank == 1 && dim_equal(t, s->dims[0], whole[1])) {
    return NULL;
  }
  TRY(onnx_need_dims(n, 1, "scale", s->rank, s->rank == 1 ? &product : whole));
  *out = hlo_reshape(n->b, *out, 2, whole);
  return NULL;
}

status onnx_import_contrib_branchwise_rms_norm(onnx_node *n) {
  hlo_builder *b = n->b;
  streams st;
  float epsilon;
  hlo_value scale;
  TRY(CONTRIB_ATTRIBUTES(n, "num_branches", "epsilon"));
  TRY(onnx_attr_float(n->proto, "epsilon", 1e-5f, &epsilon));
  TRY(read_streams(n, "X", &st));
  int64_t last = st.prefix + 1;
  hlo_value inverse = onnx_inverse_deviation(b, onnx_mean_square(b, st.x, 1, &last), epsilon);
  hlo_value y = onnx_op_stretched(b, HLO_MUL, st.x, inverse);
  if (onnx_has_in(n, 1)) {
    TRY(read_scale(n, &st, &scale));
    y = onnx_op_stretched(b, HLO_MUL, y, scale);
  }
  n->out[0] = as_streams(n, y);
  return NULL;
}

/* --- HyperConnectionPreMix, HyperConnectionPostMix --- */

/* The sum of the streams, each multiplied by its gate. */
status onnx_import_contrib_hyper_connection_pre_mix(onnx_node *n) {
  hlo_builder *b = n->b;
  streams st;
  float scale;
  hlo_value gates;
  TRY(CONTRIB_ATTRIBUTES(n, "num_branches", "reduction_scale"));
  TRY(onnx_attr_float(n->proto, "reduction_scale", 1, &scale));
  TRY(read_streams(n, "streams", &st));
  TRY(read_gates(n, 1, "pre_mix", &st, true, &gates));
  int64_t branch = st.prefix;
  hlo_value y = hlo_reduce(b, hlo_binary(b, HLO_MUL, st.x, gates), HLO_REDUCE_ADD, 1, &branch);
  n->out[0] = hlo_convert(b, onnx_times(b, y, scale), (dtype)st.grouped.type);
  return NULL;
}

/* Replaces the streams by sums of them: new stream k has the factor mix[..., c, k] for stream c. */
static status mix_streams(const onnx_node *n, uint32_t k, streams *st) {
  int64_t batch[SHAPE_MAX_RANK], branch = st->prefix;
  shape square = st->grouped;
  square.dims[st->prefix + 1] = square.dims[st->prefix];
  TRY(onnx_need_dims(n, k, "stream_mix", square.rank, square.dims));
  for (int d = 0; d < st->prefix; d++) {
    batch[d] = d;
  }
  hlo_dot_dims d = {.n_batch = (uint32_t)st->prefix,
                    .lhs_batch = batch,
                    .rhs_batch = batch,
                    .n_contract = 1,
                    .lhs_contract = &branch,
                    .rhs_contract = &branch};
  st->x = hlo_dot(n->b, hlo_convert(n->b, n->in[k], DTYPE_F32), st->x, &d);
  return NULL;
}

/* The streams, or sums of them, to each of which a gate adds its part of block_output. */
status onnx_import_contrib_hyper_connection_post_mix(onnx_node *n) {
  enum { STREAMS, BLOCK_OUTPUT, POST_MIX, STREAM_MIX };
  hlo_builder *b = n->b;
  streams st;
  hlo_value gates;
  TRY(CONTRIB_ATTRIBUTES(n, "num_branches"));
  TRY(read_streams(n, "streams", &st));
  shape reduced = st.grouped;
  reduced.rank = st.prefix + 1;
  reduced.dims[st.prefix] = st.grouped.dims[st.prefix + 1];
  TRY(onnx_need_dims(n, BLOCK_OUTPUT, "block_output", reduced.rank, reduced.dims));
  TRY(read_gates(n, POST_MIX, "post_mix", &st, false, &gates));
  TRY(onnx_has_in(n, STREAM_MIX) ? mix_streams(n, STREAM_MIX, &st) : NULL);
  hlo_value more = onnx_insert_dim(b, hlo_convert(b, n->in[BLOCK_OUTPUT], DTYPE_F32), st.prefix);
  n->out[0] = as_streams(n, hlo_binary(b, HLO_ADD, st.x, onnx_op_stretched(b, HLO_MUL, gates, more)));
  return NULL;
}
