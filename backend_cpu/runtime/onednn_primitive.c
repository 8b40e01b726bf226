/* onednn_primitive.c - makes a oneDNN primitive for a geometry: memory descriptors in oneDNN's order of dimensions,
 * post-ops, and the format of packed weights. */
#include "backend_cpu/runtime/onednn.h"

#ifdef HAVE_ONEDNN

#include <string.h>

#include "base/headroom.h"

static int64_t bias_type(const cpu_geometry *g) { return cpu_sums_bytes(g) ? DTYPE_S32 : DTYPE_F32; }

/* --- memory descriptors: from HLO's order of dimensions to oneDNN's --- */

/* Returns the position in oneDNN's order (N, C, spatial) of an activation's dimension number d in memory. */
static int logical(const cpu_geometry *g, int d) {
  if (g->op == CPU_MATMUL || !g->channels_last || d == 0) {
    return d;
  }
  return d == g->spatial + 1 ? 1 : d + 1;
}

/* Makes the descriptor of an array that is dense in memory; dimensions that are not in `mask` have extent 1. */
static status activation_md(arena *a, const cpu_geometry *g, int64_t type, int rank, const int64_t *memory,
                            uint32_t mask, onednn_md *out) {
  dnnl_dims_t dims, strides;
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; d--) {
    int to = logical(g, d);
    dims[to] = mask >> d & 1 ? memory[d] : 1;
    strides[to] = stride;
    stride *= dims[to];
  }
  return onednn_make_md(a, type, rank, dims, strides, out);
}

/* The types that the operands have when they are multiplied. */
static int64_t lhs_type(const cpu_geometry *g) { return g->reduced_precision ? g->reduced_precision : g->lhs_type; }
static int64_t weights_type(const cpu_geometry *g) {
  return g->reduced_precision ? g->reduced_precision : g->weights_type;
}

static status convolution_mds(arena *a, const cpu_contraction *c, onednn_operands *d) {
  const cpu_geometry *g = &c->g;
  int n = 0, rank;
  int64_t lhs[CPU_MAX_RANK], result[CPU_MAX_RANK];
  lhs[n++] = g->batch;
  if (!g->channels_last) {
    lhs[n++] = g->in_channels;
  }
  for (int s = 0; s < g->spatial; s++) {
    lhs[n++] = g->in[s];
  }
  if (g->channels_last) {
    lhs[n++] = g->in_channels;
  }
  rank = cpu_contraction_dims(c, result);
  TRY(activation_md(a, g, g->lhs_type, rank, lhs, ONEDNN_EVERY_DIM, &d->given_lhs));
  TRY(activation_md(a, g, lhs_type(g), rank, lhs, ONEDNN_EVERY_DIM, &d->lhs));
  TRY(activation_md(a, g, g->result_type, rank, result, ONEDNN_EVERY_DIM, &d->result));
  dnnl_dims_t kernel, strides;
  int k = 0;
  if (g->groups > 1) {
    kernel[k++] = g->groups;
  }
  kernel[k++] = g->out_channels / g->groups;
  kernel[k++] = g->in_channels / g->groups;
  for (int s = 0; s < g->spatial; s++) {
    kernel[k++] = g->kernel[s];
  }
  int64_t stride = 1;
  for (int s = k - 1; s >= 0; s--) {
    strides[s] = stride;
    stride *= kernel[s];
  }
  TRY(onednn_make_md(a, g->weights_type, k, kernel, strides, &d->plain_weights));
  if (g->packed) {
    TRY(onednn_make_md(a, weights_type(g), k, kernel, NULL, &d->weights));
  }
  if (g->has_bias) {
    TRY(onednn_make_md(a, bias_type(g), 1, (dnnl_dims_t){g->out_channels}, (dnnl_dims_t){1}, &d->bias));
  }
  return NULL;
}

static status matmul_mds(arena *a, const cpu_geometry *g, onednn_operands *d) {
  int first = g->batch == 1, n = 3 - first; /* without the batch dimension if it is 1 */
  dnnl_dims_t lhs = {g->batch, g->m, g->k}, lhs_strides = {g->lhs_batch_stride, g->lhs_m, g->lhs_k};
  dnnl_dims_t rhs = {g->batch, g->k, g->n}, rhs_strides = {g->rhs_batch_stride, g->rhs_k, g->rhs_n};
  dnnl_dims_t result = {g->batch, g->m, g->n}, strides = {g->m * g->n, g->n, 1};
  dnnl_dims_t dense = {g->m * g->k, g->k, 1};
  TRY(onednn_make_md(a, g->lhs_type, n, lhs + first, lhs_strides + first, &d->given_lhs));
  TRY(onednn_make_md(a, lhs_type(g), n, lhs + first, (g->reduced_precision ? dense : lhs_strides) + first, &d->lhs));
  TRY(onednn_make_md(a, g->weights_type, n, rhs + first, rhs_strides + first, &d->plain_weights));
  if (g->packed) {
    TRY(onednn_make_md(a, weights_type(g), n, rhs + first, NULL, &d->weights));
  }
  TRY(onednn_make_md(a, g->result_type, n, result + first, strides + first, &d->result));
  if (g->has_bias) {
    dnnl_dims_t bias = {1, 1, g->n}, bias_strides = {g->n, g->n, 1};
    TRY(onednn_make_md(a, bias_type(g), n, bias + first, bias_strides + first, &d->bias));
  }
  return NULL;
}

static status array_md(arena *a, const cpu_contraction *c, uint32_t mask, onednn_md *out) {
  int64_t dims[CPU_MAX_RANK];
  int rank = cpu_contraction_dims(c, dims);
  bool no_batch = c->g.op == CPU_MATMUL && c->g.batch == 1;
  return no_batch ? activation_md(a, &c->g, DTYPE_F32, rank - 1, dims + 1, mask >> 1, out)
                  : activation_md(a, &c->g, DTYPE_F32, rank, dims, mask, out);
}

/* --- post-ops --- */

static dnnl_alg_kind_t unary_algorithm(cpu_post_op_kind k) {
  static const dnnl_alg_kind_t table[] = {[CPU_POST_OP_RELU] = dnnl_eltwise_relu,
                                          [CPU_POST_OP_CLIP] = dnnl_eltwise_clip,
                                          [CPU_POST_OP_LINEAR] = dnnl_eltwise_linear,
                                          [CPU_POST_OP_LOGISTIC] = dnnl_eltwise_logistic,
                                          [CPU_POST_OP_SWISH] = dnnl_eltwise_swish,
                                          [CPU_POST_OP_TANH] = dnnl_eltwise_tanh,
                                          [CPU_POST_OP_ELU] = dnnl_eltwise_elu,
                                          [CPU_POST_OP_GELU_ERF] = dnnl_eltwise_gelu_erf,
                                          [CPU_POST_OP_GELU_TANH] = dnnl_eltwise_gelu_tanh,
                                          [CPU_POST_OP_HARDSWISH] = dnnl_eltwise_hardswish,
                                          [CPU_POST_OP_ABS] = dnnl_eltwise_abs,
                                          [CPU_POST_OP_SQRT] = dnnl_eltwise_sqrt,
                                          [CPU_POST_OP_EXP] = dnnl_eltwise_exp,
                                          [CPU_POST_OP_ROUND] = dnnl_eltwise_round};
  return table[k];
}

static dnnl_alg_kind_t binary_algorithm(cpu_post_op_kind k) {
  static const dnnl_alg_kind_t table[] = {dnnl_binary_add, dnnl_binary_sub, dnnl_binary_mul,
                                          dnnl_binary_div, dnnl_binary_max, dnnl_binary_min};
  return table[k - CPU_POST_OP_ADD];
}

/* --- the primitive --- */

void onednn_destroy_primitive(onednn_primitive *p) {
  onednn.primitive_destroy(p->lhs_reorder);
  onednn.primitive_destroy(p->primitive);
  onednn.primitive_desc_destroy(p->pd);
  onednn.primitive_attr_destroy(p->attr);
}

static void add_arg(onednn_primitive *p, int arg, onednn_md md) {
  p->args[p->n_args].arg = arg;
  p->args[p->n_args++].md = md;
}

static status append_post_ops(arena *a, const cpu_contraction *c, onednn_primitive *x, dnnl_post_ops_t ops) {
  for (uint32_t k = 0; k < c->n_post_ops; k++) {
    const cpu_post_op *p = &c->post_ops[k];
    if (p->kind == CPU_POST_OP_SUM) {
      DNNL(onednn_append_sum(ops), "a sum");
    } else if (p->kind <= CPU_POST_OP_LAST_UNARY) {
      DNNL(onednn_append_unary(ops, unary_algorithm(p->kind), (float)p->alpha, (float)p->beta), "an activation");
    } else {
      onednn_md md;
      TRY(array_md(a, c, p->dims, &md));
      DNNL(onednn.post_ops_append_binary(ops, binary_algorithm(p->kind), md), "a binary operation");
      add_arg(x, DNNL_ARG_ATTR_MULTIPLE_POST_OP((int)k) | DNNL_ARG_SRC_1, md);
    }
  }
  return NULL;
}

static status make_attr(arena *a, const cpu_contraction *c, onednn_primitive *x) {
  DNNL(onednn.primitive_attr_create(&x->attr), "attributes");
  DNNL(onednn.primitive_attr_set_scratchpad_mode(x->attr, dnnl_scratchpad_mode_user), "attributes");
  dnnl_post_ops_t ops;
  DNNL(onednn.post_ops_create(&ops), "attributes");
  status s = append_post_ops(a, c, x, ops);
  dnnl_status_t set = s ? dnnl_success : onednn.primitive_attr_set_post_ops(x->attr, ops);
  onednn.post_ops_destroy(ops);
  return s ? s : set ? onednn_failed(set, "attributes") : NULL;
}

/* Returns true if a post-op reads an array that differs from position to position of a channels-last result.  Of such
 * an array, oneDNN 2.x's convolution by matrix products reads the first position's elements everywhere without an error
 * (gemm_convolution.cpp; fixed in 3.1 for f32, not for bytes).  oneDNN uses that convolution where its JIT convolutions
 * do not apply: for groups whose channels do not fill a vector, and for padding wider than their registers. */
static bool reads_arrays_by_position(const cpu_contraction *c) {
  bool found = false;
  for (uint32_t k = 0; k < c->n_post_ops; k++) {
    found = found || cpu_reads_by_position(&c->g, &c->post_ops[k]);
  }
  return found && c->g.channels_last;
}

static dnnl_status_t convolution_pd(const cpu_contraction *c, const onednn_operands *d, dnnl_primitive_attr_t attr,
                                    dnnl_primitive_desc_t *pd) {
  const cpu_geometry *g = &c->g;
  onednn_window w = {.no_gemm = reads_arrays_by_position(c)};
  for (int s = 0; s < g->spatial; s++) {
    w.strides[s] = g->strides[s];
    w.low[s] = g->low[s];
    /* The padding at the end is only as large as the last window reaches.  It is never negative, since oneDNN would
     * then use a slow implementation. */
    w.high[s] = (g->out[s] - 1) * g->strides[s] + (g->kernel[s] - 1) * g->dilation[s] + 1 - g->in[s] - g->low[s];
    w.high[s] = w.high[s] < 0 ? 0 : w.high[s];
    w.dilation[s] = g->dilation[s] - 1;
  }
  return onednn_convolution(d, &w, attr, pd);
}

static dnnl_status_t make_pd(const cpu_contraction *c, const onednn_operands *d, onednn_primitive *x) {
  onednn.primitive_desc_destroy(x->pd);
  x->pd = NULL;
  return c->g.op == CPU_MATMUL ? onednn_matmul(d, x->attr, &x->pd) : convolution_pd(c, d, x->attr, &x->pd);
}

static bool same_span(rt_span a, rt_span b) { return a.size == b.size && memcmp(a.data, b.data, a.size) == 0; }

static bool has_format(arena *a, const onednn_primitive *x, rt_span format) {
  return same_span(onednn_md_format(a, onednn.primitive_desc_query_md(x->pd, dnnl_query_weights_md, 0)), format);
}

/* Has oneDNN choose an implementation.  If the chosen one needs weights in another format than `format`, asks again for
 * one that uses `format`. */
static status choose(arena *a, const cpu_contraction *c, onednn_operands *d, const rt_span *format, onednn_md known,
                     onednn_primitive *x) {
  DNNL(make_pd(c, d, x), "this operation");
  if (!format || has_format(a, x, *format)) {
    return NULL;
  }
  d->weights = known ? known : onednn_md_from_format(a, *format);
  CHECK_THAT(d->weights && make_pd(c, d, x) == dnnl_success && has_format(a, x, *format), STATUS_UNSUPPORTED,
             "its weights are packed in a form that %s does not use here: compile the model again", cpu_library_name());
  return NULL;
}

dnnl_status_t onednn_make_reorder(onednn_md from, onednn_md to, dnnl_primitive_t *out) {
  dnnl_primitive_desc_t pd = NULL;
  dnnl_status_t s = onednn.reorder_primitive_desc_create(&pd, from, onednn.engine, to, onednn.engine, NULL);
  s = s ? s : onednn.primitive_create(out, pd);
  onednn.primitive_desc_destroy(pd);
  return s;
}

static uint64_t whole_lines(uint64_t bytes) { return (bytes + 63) & ~(uint64_t)63; }

static status make_lhs_reorder(const onednn_operands *d, onednn_primitive *x) {
  x->given_lhs = d->given_lhs;
  x->reduced_lhs_bytes = whole_lines(onednn.memory_desc_get_size(d->lhs));
  DNNL(onednn_make_reorder(d->given_lhs, d->lhs, &x->lhs_reorder), "a conversion of the operand");
  return NULL;
}

/* Sets in x and d what oneDNN needs to choose an implementation, and has it choose one (x->pd).  Does not make the
 * primitive; args[1], which are the weights, has no descriptor yet. */
static status describe(arena *a, const cpu_contraction *c, const rt_span *format, onednn_md known, onednn_operands *d,
                       onednn_primitive *x) {
  TRY(headroom_check(HEADROOM_LIBRARY));
  x->geometry = c->g;
  TRY(c->g.op == CPU_MATMUL ? matmul_mds(a, &c->g, d) : convolution_mds(a, c, d));
  d->weights = c->g.packed ? d->weights : d->plain_weights;
  x->plain_weights = d->plain_weights;
  add_arg(x, DNNL_ARG_SRC, d->lhs);
  add_arg(x, DNNL_ARG_WEIGHTS, NULL);
  if (d->bias) {
    add_arg(x, DNNL_ARG_BIAS, d->bias);
  }
  TRY(make_attr(a, c, x));
  add_arg(x, DNNL_ARG_DST, d->result);
  return choose(a, c, d, format, known, x);
}

typedef struct question {
  const cpu_contraction *c;
  arena *a;
  onednn_primitive primitive;
} question;

static status ask(void *data) {
  question *q = data;
  onednn_operands d = {0};
  q->a = arena_create(NULL);
  return describe(q->a, q->c, NULL, NULL, &d, &q->primitive);
}

bool cpu_library_is_fast(const cpu_contraction *c) {
  question q = {.c = c};
  if (!cpu_library_name()) {
    return false;
  }
  status s = guard_run(ask, &q);
  bool fast = !s && onednn_is_fast(q.primitive.pd);
  onednn_destroy_primitive(&q.primitive);
  arena_destroy(q.a);
  status_free(s);
  return fast;
}

status onednn_make_primitive(arena *a, const cpu_contraction *c, const rt_span *format, onednn_md known,
                             onednn_primitive *x) {
  onednn_operands d = {0};
  TRY(describe(a, c, format, known, &d, x));
  DNNL(onednn.primitive_create(&x->primitive, x->pd), "this operation");
  x->weights = x->args[1].md = onednn.primitive_desc_query_md(x->pd, dnnl_query_weights_md, 0);
  x->scratch = onednn.primitive_desc_query_md(x->pd, dnnl_query_scratchpad_md, 0);
  x->scratch_bytes = x->scratch ? whole_lines(onednn.memory_desc_get_size(x->scratch)) : 0;
  return c->g.reduced_precision ? make_lhs_reorder(&d, x) : NULL;
}

#endif
