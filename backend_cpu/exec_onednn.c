/* exec_onednn.c - the library calls of exec_contraction.h on oneDNN, and all that anybody has to know about it.
 *
 * Versions 2.x and 3.x differ in how things are described; the first part of this file gives both one face.  A call owns
 * its primitives; memory objects belong to one run at a time and are kept for the next. */
#include "backend_cpu/exec_contraction.h"
#include "runtime/pool.h"

#ifdef HAVE_ONEDNN

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIMS = 6, MAX_ARGS = 6 + CPU_MAX_POSTS };

static status failed(dnnl_status_t s, const char *what) {
  status_code code = s == dnnl_out_of_memory ? STATUS_RESOURCE : s == dnnl_unimplemented ? STATUS_UNSUPPORTED : STATUS_INTERNAL;
  return status_error(code, "oneDNN cannot make %s (status %d)", what, (int)s);
}

#define DNNL(call, what)            \
  do {                              \
    dnnl_status_t dnnl_s_ = (call); \
    if (dnnl_s_ != dnnl_success) {  \
      return failed(dnnl_s_, what); \
    }                               \
  } while (0)

/* A dtype in the library's words. */
static dnnl_data_type_t data_type(int64_t t) {
  static const dnnl_data_type_t table[DTYPE_COUNT] = {
      [DTYPE_U8] = dnnl_u8,   [DTYPE_S8] = dnnl_s8,   [DTYPE_S32] = dnnl_s32,
      [DTYPE_F16] = dnnl_f16, [DTYPE_BF16] = dnnl_bf16, [DTYPE_F32] = dnnl_f32};
  return table[t];
}

static int64_t bias_type(const cpu_geometry *g) { return cpu_sums_bytes(g) ? DTYPE_S32 : DTYPE_F32; }

/* --- one face for two versions: memory descriptors --- */

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t md_ref;

static void destroy_md(void *md) { dnnl_memory_desc_destroy(md); }

static status keep_md(arena *a, dnnl_memory_desc_t md, md_ref *out) {
  arena_cleanup(a, destroy_md, md);
  *out = md;
  return NULL;
}

static status make_md(arena *a, int64_t type, int n, const dnnl_dims_t dims, const dnnl_dims_t strides, md_ref *out) {
  dnnl_memory_desc_t md;
  DNNL(strides ? dnnl_memory_desc_create_with_strides(&md, n, dims, data_type(type), strides)
               : dnnl_memory_desc_create_with_tag(&md, n, dims, data_type(type), dnnl_format_tag_any),
       "a memory descriptor");
  return keep_md(a, md, out);
}

/* All that can be asked about a format, as numbers. */
static rt_span md_format(arena *a, md_ref md) {
  rt_writer w = {.arena = a};
  int32_t n = 0, blocks = 0;
  int64_t offset = 0;
  dnnl_format_kind_t kind = dnnl_format_kind_undef;
  dnnl_dims_t *dims, *padded, *strides, *inner, *which;
  dnnl_memory_desc_query(md, dnnl_query_ndims_s32, &n);
  dnnl_memory_desc_query(md, dnnl_query_inner_nblks_s32, &blocks);
  dnnl_memory_desc_query(md, dnnl_query_submemory_offset_s64, &offset);
  dnnl_memory_desc_query(md, dnnl_query_format_kind, &kind);
  rt_put_i64(&w, offset);
  rt_put_i64(&w, kind);
  rt_put_i64(&w, (int64_t)dnnl_memory_desc_get_size(md));
  if (dnnl_memory_desc_query(md, dnnl_query_dims, &dims) == dnnl_success &&
      dnnl_memory_desc_query(md, dnnl_query_padded_dims, &padded) == dnnl_success &&
      dnnl_memory_desc_query(md, dnnl_query_strides, &strides) == dnnl_success) {
    rt_put_i64s(&w, (uint32_t)n, *dims);
    rt_put_i64s(&w, (uint32_t)n, *padded);
    rt_put_i64s(&w, (uint32_t)n, *strides);
  }
  if (blocks && dnnl_memory_desc_query(md, dnnl_query_inner_blks, &inner) == dnnl_success &&
      dnnl_memory_desc_query(md, dnnl_query_inner_idxs, &which) == dnnl_success) {
    rt_put_i64s(&w, (uint32_t)blocks, *inner);
    rt_put_i64s(&w, (uint32_t)blocks, *which);
  }
  return rt_written(&w);
}

/* This version's formats cannot be made from what we keep of them. */
static md_ref md_from_format(arena *a, rt_span format) {
  (void)a;
  (void)format;
  return NULL;
}

static md_ref query_md(const_dnnl_primitive_desc_t pd, dnnl_query_t what) { return dnnl_primitive_desc_query_md(pd, what, 0); }

#else
typedef const dnnl_memory_desc_t *md_ref;

static status make_md(arena *a, int64_t type, int n, const dnnl_dims_t dims, const dnnl_dims_t strides, md_ref *out) {
  dnnl_memory_desc_t *md = ARENA_NEW(a, dnnl_memory_desc_t);
  DNNL(strides ? dnnl_memory_desc_init_by_strides(md, n, dims, data_type(type), strides)
               : dnnl_memory_desc_init_by_tag(md, n, dims, data_type(type), dnnl_format_tag_any),
       "a memory descriptor");
  *out = md;
  return NULL;
}

/* A plain structure: its bytes are the format. */
static rt_span md_format(arena *a, md_ref md) { return (rt_span){arena_memdup(a, md, sizeof *md), sizeof *md}; }

static md_ref md_from_format(arena *a, rt_span format) {
  return format.size == sizeof(dnnl_memory_desc_t) ? arena_memdup(a, format.data, format.size) : NULL;
}

static md_ref query_md(const_dnnl_primitive_desc_t pd, dnnl_query_t what) { return dnnl_primitive_desc_query_md(pd, what, 0); }
#endif

/* --- the engine: one a process, never given back --- */

static dnnl_engine_t engine;
static char library_name[64];

static void start_engine(void) {
  const dnnl_version_t *v = dnnl_version();
  if (dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) {
    engine = NULL;
  }
  snprintf(library_name, sizeof library_name, "oneDNN %d.%d.%d (cpu isa %d)", v->major, v->minor, v->patch,
           (int)dnnl_get_effective_cpu_isa());
}

static dnnl_engine_t get_engine(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, start_engine);
  return engine;
}

const char *cpu_library_name(void) { return get_engine() ? library_name : NULL; }

bool cpu_library_is_blas(void) { return false; }

/* Without the instructions for it, the library adds pairs of products up in 16 bits, which saturate. */
bool cpu_library_has_bytes(void) {
  unsigned isa = get_engine() ? (unsigned)dnnl_get_effective_cpu_isa() : 0;
  return (isa & dnnl_cpu_isa_avx512_core_vnni) == dnnl_cpu_isa_avx512_core_vnni ||
         (isa & dnnl_cpu_isa_avx2_vnni) == dnnl_cpu_isa_avx2_vnni;
}

/* --- threads: the library asks OpenMP, whose answer belongs to the calling thread --- */

#ifdef HAVE_OPENMP
int omp_get_max_threads(void);
void omp_set_num_threads(int n);

/* Gives the number to restore. */
static int use_one_thread(void) {
  int before = omp_get_max_threads();
  if (before != 1) {
    omp_set_num_threads(1);
  }
  return before;
}

static void restore_threads(int before) {
  if (omp_get_max_threads() != before) {
    omp_set_num_threads(before);
  }
}
#else
static int use_one_thread(void) { return 1; }
static void restore_threads(int before) { (void)before; }
#endif

/* --- post operations --- */

static dnnl_alg_kind_t unary_algorithm(cpu_post_kind k) {
  static const dnnl_alg_kind_t table[] = {
      [CPU_POST_RELU] = dnnl_eltwise_relu,           [CPU_POST_CLIP] = dnnl_eltwise_clip,
      [CPU_POST_LINEAR] = dnnl_eltwise_linear,       [CPU_POST_LOGISTIC] = dnnl_eltwise_logistic,
      [CPU_POST_SWISH] = dnnl_eltwise_swish,         [CPU_POST_TANH] = dnnl_eltwise_tanh,
      [CPU_POST_ELU] = dnnl_eltwise_elu,             [CPU_POST_GELU_ERF] = dnnl_eltwise_gelu_erf,
      [CPU_POST_GELU_TANH] = dnnl_eltwise_gelu_tanh, [CPU_POST_HARDSWISH] = dnnl_eltwise_hardswish,
      [CPU_POST_ABS] = dnnl_eltwise_abs,             [CPU_POST_SQRT] = dnnl_eltwise_sqrt,
      [CPU_POST_EXP] = dnnl_eltwise_exp,             [CPU_POST_ROUND] = dnnl_eltwise_round};
  return table[k];
}

static dnnl_alg_kind_t binary_algorithm(cpu_post_kind k) {
  static const dnnl_alg_kind_t table[] = {dnnl_binary_add, dnnl_binary_sub, dnnl_binary_mul,
                                          dnnl_binary_div, dnnl_binary_max, dnnl_binary_min};
  return table[k - CPU_POST_ADD];
}

static dnnl_status_t append_unary(dnnl_post_ops_t ops, const cpu_post *p) {
  float alpha = (float)p->alpha, beta = (float)p->beta;
#if DNNL_VERSION_MAJOR >= 3
  if (p->kind == CPU_POST_HARDSWISH) {
    alpha = 1.f / 6;
    beta = 0.5f;
  }
  return dnnl_post_ops_append_eltwise(ops, unary_algorithm(p->kind), alpha, beta);
#else
  return dnnl_post_ops_append_eltwise(ops, 1, unary_algorithm(p->kind), alpha, beta);
#endif
}

static dnnl_status_t append_sum(dnnl_post_ops_t ops) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef);
#else
  return dnnl_post_ops_append_sum(ops, 1);
#endif
}

/* --- shapes: HLO's order of dimensions to the library's --- */

/* Where dimension d in memory of an activation stands in the library's order N, C, spatial. */
static int logical(const cpu_geometry *g, int d) {
  if (g->op == CPU_MATMUL || !g->channels_last || d == 0) {
    return d;
  }
  return d == g->spatial + 1 ? 1 : d + 1;
}

/* An array dense in memory order, of which only the dimensions in `mask` are there. */
static status activation_md(arena *a, const cpu_geometry *g, int64_t type, int rank, const int64_t *memory, uint32_t mask,
                            md_ref *out) {
  dnnl_dims_t dims, strides;
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; d--) {
    int to = logical(g, d);
    dims[to] = mask >> d & 1 ? memory[d] : 1;
    strides[to] = stride;
    stride *= dims[to];
  }
  return make_md(a, type, rank, dims, strides, out);
}

enum { EVERY_DIM = (1 << CPU_MAX_RANK) - 1 };

/* Types in which operands are multiplied. */
static int64_t lhs_type(const cpu_geometry *g) { return g->narrow ? g->narrow : g->lhs_type; }
static int64_t weights_type(const cpu_geometry *g) { return g->narrow ? g->narrow : g->weights_type; }

/* Of lhs and weights: as they are multiplied, and as they are given. */
typedef struct descriptors {
  md_ref lhs, given_lhs, weights, plain_weights, bias, result;
} descriptors;

static status convolution_mds(arena *a, const cpu_contraction *c, descriptors *d) {
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
  TRY(activation_md(a, g, g->lhs_type, rank, lhs, EVERY_DIM, &d->given_lhs));
  TRY(activation_md(a, g, lhs_type(g), rank, lhs, EVERY_DIM, &d->lhs));
  TRY(activation_md(a, g, g->result_type, rank, result, EVERY_DIM, &d->result));
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
  TRY(make_md(a, g->weights_type, k, kernel, strides, &d->plain_weights));
  if (g->packed) {
    TRY(make_md(a, weights_type(g), k, kernel, NULL, &d->weights));
  }
  if (g->has_bias) {
    TRY(make_md(a, bias_type(g), 1, (dnnl_dims_t){g->out_channels}, (dnnl_dims_t){1}, &d->bias));
  }
  return NULL;
}

static status matmul_mds(arena *a, const cpu_geometry *g, descriptors *d) {
  int first = g->batch == 1, n = 3 - first; /* without the batch dimension when it is 1 */
  dnnl_dims_t lhs = {g->batch, g->m, g->k}, lhs_strides = {g->lhs_batch_stride, g->lhs_m, g->lhs_k};
  dnnl_dims_t rhs = {g->batch, g->k, g->n}, rhs_strides = {g->rhs_batch_stride, g->rhs_k, g->rhs_n};
  dnnl_dims_t result = {g->batch, g->m, g->n}, strides = {g->m * g->n, g->n, 1};
  dnnl_dims_t dense = {g->m * g->k, g->k, 1};
  TRY(make_md(a, g->lhs_type, n, lhs + first, lhs_strides + first, &d->given_lhs));
  TRY(make_md(a, lhs_type(g), n, lhs + first, (g->narrow ? dense : lhs_strides) + first, &d->lhs));
  TRY(make_md(a, g->weights_type, n, rhs + first, rhs_strides + first, &d->plain_weights));
  if (g->packed) {
    TRY(make_md(a, weights_type(g), n, rhs + first, NULL, &d->weights));
  }
  TRY(make_md(a, g->result_type, n, result + first, strides + first, &d->result));
  if (g->has_bias) {
    dnnl_dims_t bias = {1, 1, g->n}, bias_strides = {g->n, g->n, 1};
    TRY(make_md(a, bias_type(g), n, bias + first, bias_strides + first, &d->bias));
  }
  return NULL;
}

static status array_md(arena *a, const cpu_contraction *c, uint32_t mask, md_ref *out) {
  int64_t dims[CPU_MAX_RANK];
  int rank = cpu_contraction_dims(c, dims);
  bool no_batch = c->g.op == CPU_MATMUL && c->g.batch == 1;
  return no_batch ? activation_md(a, &c->g, DTYPE_F32, rank - 1, dims + 1, mask >> 1, out)
                  : activation_md(a, &c->g, DTYPE_F32, rank, dims, mask, out);
}

/* --- pieces: one primitive, for parts of equal geometry --- */

typedef struct piece {
  cpu_geometry geometry;
  dnnl_primitive_t primitive;
  dnnl_primitive_desc_t pd;
  dnnl_primitive_attr_t attr;
  md_ref plain_weights, weights, scratch;
  uint64_t scratch_bytes; /* the library's, a multiple of 64 */
  dnnl_primitive_t narrowing; /* of lhs, into scratch memory behind the library's; NULL: it is read where it lies */
  md_ref given_lhs;
  uint64_t narrow_bytes; /* a multiple of 64 */
  uint32_t n_args;
  struct {
    int arg;
    md_ref md;
  } args[MAX_ARGS]; /* in the order of the thunk's buffers */
} piece;

static void destroy_piece(void *data) {
  piece *p = data;
  dnnl_primitive_destroy(p->narrowing);
  dnnl_primitive_destroy(p->primitive);
  dnnl_primitive_desc_destroy(p->pd);
  dnnl_primitive_attr_destroy(p->attr);
}

static void add_arg(piece *p, int arg, md_ref md) {
  p->args[p->n_args].arg = arg;
  p->args[p->n_args++].md = md;
}

static status append_posts(arena *a, const cpu_contraction *c, piece *x, dnnl_post_ops_t ops) {
  for (uint32_t k = 0; k < c->n_posts; k++) {
    const cpu_post *p = &c->posts[k];
    if (p->kind == CPU_POST_SUM) {
      DNNL(append_sum(ops), "a sum");
    } else if (p->kind <= CPU_POST_LAST_UNARY) {
      DNNL(append_unary(ops, p), "an activation");
    } else {
      md_ref md;
      TRY(array_md(a, c, p->dims, &md));
      DNNL(dnnl_post_ops_append_binary(ops, binary_algorithm(p->kind), md), "a binary operation");
      add_arg(x, DNNL_ARG_ATTR_MULTIPLE_POST_OP((int)k) | DNNL_ARG_SRC_1, md);
    }
  }
  return NULL;
}

static status make_attr(arena *a, const cpu_contraction *c, piece *x) {
  DNNL(dnnl_primitive_attr_create(&x->attr), "attributes");
  DNNL(dnnl_primitive_attr_set_scratchpad_mode(x->attr, dnnl_scratchpad_mode_user), "attributes");
  dnnl_post_ops_t ops;
  DNNL(dnnl_post_ops_create(&ops), "attributes");
  status s = append_posts(a, c, x, ops);
  dnnl_status_t set = s ? dnnl_success : dnnl_primitive_attr_set_post_ops(x->attr, ops);
  dnnl_post_ops_destroy(ops);
  return s ? s : set ? failed(set, "attributes") : NULL;
}

static dnnl_status_t convolution_pd(const cpu_geometry *g, const descriptors *d, dnnl_primitive_attr_t attr,
                                    dnnl_primitive_desc_t *pd) {
  dnnl_dims_t strides, low, high, dilation;
  for (int s = 0; s < g->spatial; s++) {
    strides[s] = g->strides[s];
    low[s] = g->low[s];
    /* Only what is read; never negative, which sends the library down a slow path. */
    high[s] = (g->out[s] - 1) * g->strides[s] + (g->kernel[s] - 1) * g->dilation[s] + 1 - g->in[s] - g->low[s];
    high[s] = high[s] < 0 ? 0 : high[s];
    dilation[s] = g->dilation[s] - 1;
  }
#if DNNL_VERSION_MAJOR >= 3
  return dnnl_convolution_forward_primitive_desc_create(pd, get_engine(), dnnl_forward_inference,
                                                        dnnl_convolution_direct, d->lhs, d->weights, d->bias, d->result,
                                                        strides, dilation, low, high, attr);
#else
  dnnl_convolution_desc_t desc;
  dnnl_status_t s = dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_inference, dnnl_convolution_direct,
                                                               d->lhs, d->weights, d->bias, d->result, strides, dilation,
                                                               low, high);
  return s ? s : dnnl_primitive_desc_create(pd, &desc, attr, get_engine(), NULL);
#endif
}

static dnnl_status_t matmul_pd(const descriptors *d, dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *pd) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl_matmul_primitive_desc_create(pd, get_engine(), d->lhs, d->weights, d->bias, d->result, attr);
#else
  dnnl_matmul_desc_t desc;
  dnnl_status_t s = dnnl_matmul_desc_init(&desc, d->lhs, d->weights, d->bias, d->result);
  return s ? s : dnnl_primitive_desc_create(pd, &desc, attr, get_engine(), NULL);
#endif
}

static dnnl_status_t make_pd(const cpu_contraction *c, const descriptors *d, piece *x) {
  dnnl_primitive_desc_destroy(x->pd);
  x->pd = NULL;
  return c->g.op == CPU_MATMUL ? matmul_pd(d, x->attr, &x->pd) : convolution_pd(&c->g, d, x->attr, &x->pd);
}

static bool same_span(rt_span a, rt_span b) { return a.size == b.size && memcmp(a.data, b.data, a.size) == 0; }

static bool has_format(arena *a, const piece *x, rt_span format) {
  return same_span(md_format(a, query_md(x->pd, dnnl_query_weights_md)), format);
}

/* The library's choice; where it would choose another format of weights than the one that is wanted, that one. */
static status choose(arena *a, const cpu_contraction *c, descriptors *d, const rt_span *format, md_ref known, piece *x) {
  DNNL(make_pd(c, d, x), "this operation");
  if (!format || has_format(a, x, *format)) {
    return NULL;
  }
  d->weights = known ? known : md_from_format(a, *format);
  CHECK_THAT(d->weights && make_pd(c, d, x) == dnnl_success && has_format(a, x, *format), STATUS_UNSUPPORTED,
             "its weights are packed in a form that %s does not use here: compile the model again", library_name);
  return NULL;
}

static dnnl_status_t reorder_of(md_ref from, md_ref to, dnnl_primitive_t *out) {
  dnnl_primitive_desc_t pd = NULL;
  dnnl_status_t s = dnnl_reorder_primitive_desc_create(&pd, from, get_engine(), to, get_engine(), NULL);
  s = s ? s : dnnl_primitive_create(out, pd);
  dnnl_primitive_desc_destroy(pd);
  return s;
}

static uint64_t whole_lines(uint64_t bytes) { return (bytes + 63) & ~(uint64_t)63; }

static status make_narrowing(const descriptors *d, piece *x) {
  x->given_lhs = d->given_lhs;
  x->narrow_bytes = whole_lines(dnnl_memory_desc_get_size(d->lhs));
  DNNL(reorder_of(d->given_lhs, d->lhs, &x->narrowing), "a conversion of the operand");
  return NULL;
}

/* format: of packed weights, NULL for the library's choice; known: the same as a descriptor, if there is one. */
static status make_piece(arena *a, const cpu_contraction *c, const rt_span *format, md_ref known, piece *x) {
  descriptors d = {0};
  x->geometry = c->g;
  TRY(c->g.op == CPU_MATMUL ? matmul_mds(a, &c->g, &d) : convolution_mds(a, c, &d));
  d.weights = c->g.packed ? d.weights : d.plain_weights;
  x->plain_weights = d.plain_weights;
  add_arg(x, DNNL_ARG_SRC, d.lhs);
  add_arg(x, DNNL_ARG_WEIGHTS, NULL);
  if (d.bias) {
    add_arg(x, DNNL_ARG_BIAS, d.bias);
  }
  TRY(make_attr(a, c, x));
  add_arg(x, DNNL_ARG_DST, d.result);
  TRY(choose(a, c, &d, format, known, x));
  DNNL(dnnl_primitive_create(&x->primitive, x->pd), "this operation");
  x->weights = x->args[1].md = query_md(x->pd, dnnl_query_weights_md);
  x->scratch = query_md(x->pd, dnnl_query_scratchpad_md);
  x->scratch_bytes = x->scratch ? whole_lines(dnnl_memory_desc_get_size(x->scratch)) : 0;
  return c->g.narrow ? make_narrowing(&d, x) : NULL;
}

/* --- calls: parts of the result, each computed by one thread ---
 *
 * The library's own threads would have to be OpenMP's, which wait for each other busily: where other programs want the
 * cores too, that takes many times as long.  Rows of the result cost the same one by one as together. */

/* What a run of a part needs of the library beside memory: making it takes longer than a small part. */
typedef struct ready {
  dnnl_stream_t stream;
  uint32_t n;
  dnnl_exec_arg_t args[MAX_ARGS + 1];
  void *at[MAX_ARGS + 1]; /* where the arguments' memory lies */
  dnnl_exec_arg_t narrowing[2]; /* from lhs as it is given, to the first of args, whose memory it borrows */
} ready;

typedef struct part {
  const piece *piece;
  int64_t offsets[MAX_ARGS]; /* bytes, of each argument */
  ready *_Atomic spare;      /* of the last run; a run takes it, one that finds none makes another */
} part;

struct cpu_call {
  uint32_t n_parts, n_pieces;
  part *parts;
  piece *pieces;
  uint64_t scratch_bytes, weights_bytes; /* of one part */
  bool divides_weights;
};

/* The geometry of results [begin, end) of the axis; the operand's part begins at *first.  False where nothing is read. */
static bool divide(cpu_geometry *g, int axis, int64_t begin, int64_t end, int64_t *first) {
  *first = begin;
  if (axis == 0) {
    g->batch = end - begin;
  } else if (g->op == CPU_MATMUL) {
    *(axis == 1 ? &g->m : &g->n) = end - begin;
  } else {
    int s = axis - 1;
    int64_t from = begin * g->strides[s] - g->low[s];
    int64_t to = (end - 1) * g->strides[s] - g->low[s] + (g->kernel[s] - 1) * g->dilation[s] + 1;
    g->low[s] = from < 0 ? -from : 0;
    g->high[s] = to > g->in[s] ? to - g->in[s] : 0;
    *first = from < 0 ? 0 : from;
    g->in[s] = (to > g->in[s] ? g->in[s] : to) - *first;
    g->out[s] = end - begin;
    return g->in[s] > 0;
  }
  return true;
}

/* Elements of the operand from one place of the axis to the next. */
static int64_t lhs_step(const cpu_geometry *g, int axis) {
  if (g->op == CPU_MATMUL) {
    return axis == 0 ? g->lhs_batch_stride : axis == 1 ? g->lhs_m : 0;
  }
  int64_t n = g->in_channels;
  for (int s = axis; s < g->spatial; s++) {
    n *= g->in[s];
  }
  return n;
}

static int64_t array_step(const cpu_contraction *c, int axis, uint32_t mask) {
  int64_t dims[CPU_MAX_RANK], n = mask >> axis & 1;
  int rank = cpu_contraction_dims(c, dims);
  for (int d = axis + 1; d < rank; d++) {
    n *= mask >> d & 1 ? dims[d] : 1;
  }
  return n;
}

static void set_offsets(const cpu_contraction *c, const cpu_call *call, uint32_t k, int axis, int64_t begin, int64_t first,
                        int64_t *offsets) {
  bool columns = c->g.op == CPU_MATMUL && axis == 2;
  int64_t weight = (int64_t)dtype_bytes((dtype)c->g.weights_type), size = sizeof(float);
  uint32_t n = 0;
  offsets[n++] = first * lhs_step(&c->g, axis) * (int64_t)dtype_bytes((dtype)c->g.lhs_type);
  offsets[n++] = call->divides_weights              ? (int64_t)(k * call->weights_bytes)
                 : columns                          ? begin * c->g.rhs_n * weight
                 : c->g.op == CPU_MATMUL && !axis ? begin * c->g.rhs_batch_stride * weight
                                                    : 0;
  if (c->g.has_bias) {
    offsets[n++] = columns ? begin * CPU_BIAS_BYTES : 0;
  }
  for (uint32_t p = 0; p < c->n_posts; p++) {
    if (c->posts[p].kind > CPU_POST_LAST_UNARY) {
      offsets[n++] = begin * array_step(c, axis, c->posts[p].dims) * size;
    }
  }
  offsets[n] = begin * array_step(c, axis, EVERY_DIM) * (int64_t)dtype_bytes((dtype)c->g.result_type);
}

static status find_piece(arena *a, const cpu_contraction *c, const rt_span *format, cpu_call *call, const piece **out) {
  for (uint32_t k = 0; k < call->n_pieces; k++) {
    if (memcmp(&call->pieces[k].geometry, &c->g, sizeof c->g) == 0) {
      *out = &call->pieces[k];
      return NULL;
    }
  }
  piece *x = &call->pieces[call->n_pieces++];
  *out = x;
  if (x == call->pieces || !c->g.packed) {
    return make_piece(a, c, format, NULL, x);
  }
  rt_span same = md_format(a, call->pieces[0].weights); /* all parts read the same weights */
  return make_piece(a, c, &same, call->pieces[0].weights, x);
}

static status make_parts(arena *a, const cpu_contraction *c, const rt_span *format, cpu_call *call) {
  int64_t dims[CPU_MAX_RANK];
  int axis = cpu_contraction_axis(c);
  cpu_contraction_dims(c, dims);
  CHECK_THAT(call->n_parts == 1 || (axis >= 0 && dims[axis] >= (int64_t)call->n_parts), STATUS_INVALID_FILE,
             "a contraction in too many parts");
  call->divides_weights = c->g.packed && c->g.op == CPU_MATMUL && axis == 2 && call->n_parts > 1;
  for (uint32_t k = 0; k < call->n_parts; k++) {
    cpu_contraction some = *c;
    int64_t first = 0, n = axis < 0 ? 1 : dims[axis], begin = n * k / call->n_parts, end = n * (k + 1) / call->n_parts;
    CHECK_THAT(call->n_parts == 1 || divide(&some.g, axis, begin, end, &first), STATUS_UNSUPPORTED,
               "a part of the result reads padding only");
    TRY(find_piece(a, &some, format, call, &call->parts[k].piece));
    const piece *x = call->parts[k].piece;
    CHECK_THAT(!call->divides_weights || x == call->pieces, STATUS_INVALID_FILE, "parts of the weights differ");
    call->weights_bytes = dnnl_memory_desc_get_size(x->weights);
    uint64_t scratch = x->scratch_bytes + x->narrow_bytes;
    call->scratch_bytes = scratch > call->scratch_bytes ? scratch : call->scratch_bytes;
    if (call->n_parts > 1) {
      set_offsets(c, call, k, axis, begin, first, call->parts[k].offsets);
    }
  }
  return NULL;
}

static void describe(arena *a, const cpu_contraction *c, const cpu_call *call, cpu_call_info *info) {
  info->fast = true;
  for (uint32_t k = 0; k < call->n_pieces; k++) {
    const char *name = "";
    dnnl_primitive_desc_query(call->pieces[k].pd, dnnl_query_impl_info_str, 0, &name);
    info->implementation = arena_strdup(a, name);
    info->fast = info->fast && strncmp(name, "ref", 3) != 0 && strncmp(name, "simple", 6) != 0;
  }
  info->scratch_bytes = call->scratch_bytes * call->n_parts;
  info->weights_bytes = call->weights_bytes * (call->divides_weights ? call->n_parts : 1);
  info->format = c->g.packed ? md_format(a, call->pieces[0].weights) : (rt_span){"", 0};
}

static void destroy_args(uint32_t n, dnnl_exec_arg_t *args) {
  for (uint32_t k = 0; k < n; k++) {
    dnnl_memory_destroy(args[k].memory);
  }
}

/* NULL is fine. */
static void destroy_ready(ready *r) {
  if (r) {
    destroy_args(r->n, r->args);
    dnnl_memory_destroy(r->narrowing[0].memory);
    dnnl_stream_destroy(r->stream);
    free(r);
  }
}

static void destroy_pieces(void *data) {
  cpu_call *call = data;
  for (uint32_t k = 0; k < call->n_parts; k++) {
    destroy_ready(atomic_load(&call->parts[k].spare));
  }
  for (uint32_t k = 0; k < call->n_pieces; k++) {
    destroy_piece(&call->pieces[k]);
  }
}

status cpu_call_create(arena *a, const cpu_contraction *c, const rt_span *format, cpu_call **out, cpu_call_info *info) {
  CHECK_THAT(get_engine(), STATUS_INTERNAL, "oneDNN finds no processor that it can use");
  cpu_call *call = ARENA_NEW(a, cpu_call);
  call->n_parts = (uint32_t)c->g.parts;
  call->parts = ARENA_NEW_N(a, part, call->n_parts);
  call->pieces = ARENA_NEW_N(a, piece, call->n_parts);
  arena_cleanup(a, destroy_pieces, call);
  int before = use_one_thread();
  status s = make_parts(a, c, format, call);
  restore_threads(before);
  if (!s) {
    describe(a, c, call, info);
  }
  *out = call;
  return s;
}

/* --- running --- */

static dnnl_status_t execute(dnnl_primitive_t p, uint32_t n, dnnl_exec_arg_t *args) {
  dnnl_stream_t stream;
  dnnl_status_t s = dnnl_stream_create(&stream, get_engine(), dnnl_stream_default_flags);
  if (s) {
    return s;
  }
  s = dnnl_primitive_execute(p, stream, (int)n, args);
  s = s ? s : dnnl_stream_wait(stream);
  dnnl_stream_destroy(stream);
  return s;
}

typedef struct call_run {
  const cpu_call *call;
  void *const *buffers;
  uint8_t *scratch;
  _Atomic int failed; /* a dnnl_status_t */
} call_run;

/* NULL, or a failure and *out to be destroyed. */
static dnnl_status_t make_ready(const piece *x, ready **out) {
  ready *r = *out = calloc(1, sizeof *r);
  dnnl_status_t s = r ? dnnl_stream_create(&r->stream, get_engine(), dnnl_stream_default_flags) : dnnl_out_of_memory;
  uint32_t n = x->n_args + (x->scratch_bytes > 0);
  for (uint32_t k = 0; !s && k < n; k++) {
    r->args[k].arg = k < x->n_args ? x->args[k].arg : DNNL_ARG_SCRATCHPAD;
    md_ref md = k < x->n_args ? x->args[k].md : x->scratch;
    s = dnnl_memory_create(&r->args[k].memory, md, get_engine(), DNNL_MEMORY_NONE);
    r->n += !s;
  }
  if (!s && x->narrowing) {
    r->narrowing[0].arg = DNNL_ARG_FROM;
    r->narrowing[1] = (dnnl_exec_arg_t){DNNL_ARG_TO, r->args[0].memory};
    s = dnnl_memory_create(&r->narrowing[0].memory, x->given_lhs, get_engine(), DNNL_MEMORY_NONE);
  }
  return s;
}

static dnnl_status_t point_at(ready *r, uint32_t k, void *memory) {
  if (r->at[k] == memory) {
    return dnnl_success;
  }
  r->at[k] = memory;
  return dnnl_memory_set_data_handle(r->args[k].memory, memory);
}

/* Rounds the part's operand to narrow numbers in scratch memory. */
static dnnl_status_t narrow_operand(const piece *x, ready *r, void *given) {
  dnnl_status_t s = dnnl_memory_set_data_handle(r->narrowing[0].memory, given);
  return s ? s : dnnl_primitive_execute(x->narrowing, r->stream, 2, r->narrowing);
}

static dnnl_status_t run_part(const call_run *r, uint32_t number) {
  part *p = &r->call->parts[number];
  const piece *of = p->piece;
  ready *x = atomic_exchange(&p->spare, NULL);
  dnnl_status_t s = dnnl_success;
  if (!x) {
    s = make_ready(of, &x);
  }
  uint8_t *scratch = r->scratch + number * r->call->scratch_bytes;
  for (uint32_t k = 0; !s && k < x->n; k++) {
    bool is_scratch = k == of->n_args, is_narrow = k == 0 && of->narrowing;
    s = point_at(x, k, is_scratch  ? scratch
                       : is_narrow ? scratch + of->scratch_bytes
                                   : (uint8_t *)r->buffers[k] + p->offsets[k]);
  }
  if (!s && of->narrowing) {
    s = narrow_operand(of, x, (uint8_t *)r->buffers[0] + p->offsets[0]);
  }
  s = s ? s : dnnl_primitive_execute(of->primitive, x->stream, (int)x->n, x->args);
  s = s ? s : dnnl_stream_wait(x->stream);
  destroy_ready(s ? x : atomic_exchange(&p->spare, x));
  return s;
}

static void run_parts(void *data, int64_t begin, int64_t end) {
  call_run *r = data;
  int before = use_one_thread();
  for (int64_t k = begin; k < end; k++) {
    dnnl_status_t s = run_part(r, (uint32_t)k);
    if (s) {
      r->failed = (int)s;
    }
  }
  restore_threads(before);
}

status cpu_call_run(const cpu_call *c, const rt_run *run, void *const *buffers, void *scratch) {
  call_run r = {.call = c, .buffers = buffers, .scratch = scratch};
  TRY(rt_parallel_run(run, c->n_parts, 1, run_parts, &r));
  return r.failed ? failed((dnnl_status_t)r.failed, "its result") : NULL;
}

static dnnl_status_t reorder(md_ref from, void *source, md_ref to, void *target) {
  dnnl_primitive_t p = NULL;
  dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
  dnnl_status_t s = reorder_of(from, to, &p);
  s = s ? s : dnnl_memory_create(&args[0].memory, from, get_engine(), source);
  s = s ? s : dnnl_memory_create(&args[1].memory, to, get_engine(), target);
  s = s ? s : execute(p, 2, args);
  destroy_args(2, args);
  dnnl_primitive_destroy(p);
  return s;
}

status cpu_call_pack(const cpu_call *c, const void *plain, void *packed) {
  int before = use_one_thread();
  dnnl_status_t s = dnnl_success;
  for (uint32_t k = 0; !s && k < (c->divides_weights ? c->n_parts : 1); k++) {
    const piece *x = c->parts[k].piece;
    int64_t columns = k * x->geometry.n * x->geometry.rhs_n * (int64_t)dtype_bytes((dtype)x->geometry.weights_type);
    s = reorder(x->plain_weights, (uint8_t *)plain + columns, x->weights, (uint8_t *)packed + k * c->weights_bytes);
  }
  restore_threads(before);
  return s ? failed(s, "packed weights") : NULL;
}

#elif !defined HAVE_OPENBLAS

const char *cpu_library_name(void) { return NULL; }

bool cpu_library_is_blas(void) { return false; }

bool cpu_library_has_bytes(void) { return false; }

status cpu_call_create(arena *a, const cpu_contraction *c, const rt_span *format, cpu_call **out,
                       cpu_call_info *info) {
  (void)a, (void)c, (void)format, (void)info;
  *out = NULL;
  return status_error(STATUS_UNSUPPORTED, "built without oneDNN and OpenBLAS");
}

status cpu_call_pack(const cpu_call *c, const void *plain, void *packed) {
  (void)c, (void)plain, (void)packed;
  return status_error(STATUS_UNSUPPORTED, "built without oneDNN and OpenBLAS");
}

status cpu_call_run(const cpu_call *c, const rt_run *r, void *const *buffers, void *scratch) {
  (void)c, (void)r, (void)buffers, (void)scratch;
  return status_error(STATUS_UNSUPPORTED, "built without oneDNN and OpenBLAS");
}

#endif
