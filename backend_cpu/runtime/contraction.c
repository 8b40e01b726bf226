/* contraction.c - the thunk kinds cpu.convolution and cpu.dot: their config, loading and running. */
#include "backend_cpu/runtime/contraction.h"

#include <stdlib.h>
#include <string.h>

#include "backend_cpu/runtime/kinds.h"
#include "base/arith.h"

enum { GEOMETRY_FIELDS = sizeof(cpu_geometry) / sizeof(int64_t), MAX_CALL_BUFFERS = 4 + CPU_MAX_POST_OPS };

/* --- description --- */

void cpu_contraction_write(rt_writer *w, const cpu_contraction *c) {
  rt_put_i64s(w, GEOMETRY_FIELDS, (const int64_t *)&c->g);
  rt_put_i64(w, c->n_post_ops);
  for (uint32_t k = 0; k < c->n_post_ops; k++) {
    rt_put_i64(w, c->post_ops[k].kind);
    rt_put_i64(w, c->post_ops[k].dims);
    rt_put_f64(w, c->post_ops[k].alpha);
    rt_put_f64(w, c->post_ops[k].beta);
  }
}

static bool in_range(int64_t v, int64_t low, int64_t high) { return v >= low && v <= high; }

static bool types_are_sane(const cpu_geometry *g) {
  if (g->weights_type == DTYPE_F32) {
    bool has_reduced_operands = g->packed && (g->reduced_precision == DTYPE_BF16 || g->reduced_precision == DTYPE_F16);
    return g->lhs_type == DTYPE_F32 && g->result_type == DTYPE_F32 &&
           (has_reduced_operands || g->reduced_precision == DTYPE_INVALID);
  }
  int64_t x = g->lhs_type, y = g->result_type;
  return g->weights_type == DTYPE_S8 && g->packed && g->reduced_precision == DTYPE_INVALID &&
         (x == DTYPE_U8 || x == DTYPE_S8) && (y == DTYPE_F32 || y == DTYPE_S32 || y == DTYPE_U8 || y == DTYPE_S8);
}

/* Returns the distance from the first to the last of n elements. */
static int64_t reach(int64_t n, int64_t stride) { return mul_saturated(n - 1, stride); }

/* Returns the number of elements from the first to the last that a matrix product reads of an array; a, b and c are the
 * distances that its three dimensions reach (reach). */
static int64_t span_elements(int64_t a, int64_t b, int64_t c) {
  return add_saturated(add_saturated(add_saturated(a, b), c), 1);
}

static int64_t product_of(int64_t first, int n, const int64_t *factors) {
  int64_t product = first;
  for (int d = 0; d < n; d++) {
    product = mul_saturated(product, factors[d]);
  }
  return product;
}

static int64_t lhs_elements(const cpu_geometry *g) {
  return g->op == CPU_MATMUL
             ? span_elements(reach(g->batch, g->lhs_batch_stride), reach(g->m, g->lhs_m), reach(g->k, g->lhs_k))
             : product_of(mul_saturated(g->batch, g->in_channels), g->spatial, g->in);
}

static int64_t weights_elements(const cpu_geometry *g) {
  return g->op == CPU_MATMUL
             ? span_elements(reach(g->batch, g->rhs_batch_stride), reach(g->k, g->rhs_k), reach(g->n, g->rhs_n))
             : product_of(mul_saturated(g->out_channels, g->in_channels / g->groups), g->spatial, g->kernel);
}

/* Returns true if each array has so few elements that numbers of bytes and offsets can be computed without overflow. */
static bool arrays_are_sane(const cpu_contraction *c) {
  const int64_t most = (int64_t)1 << 56;
  int64_t dims[CPU_MAX_RANK];
  int rank = cpu_contraction_dims(c, dims);
  return lhs_elements(&c->g) <= most && weights_elements(&c->g) <= most && product_of(1, rank, dims) <= most;
}

static bool geometry_is_sane(const cpu_geometry *g) {
  const int64_t most = (int64_t)1 << 31;
  bool ok = in_range(g->op, CPU_CONVOLUTION, CPU_MATMUL) && in_range(g->batch, 1, most) &&
            in_range(g->parts, 1, CPU_MAX_PARTS) && types_are_sane(g);
  if (g->op == CPU_MATMUL) {
    return ok && in_range(g->m, 1, most) && in_range(g->k, 1, most) && in_range(g->n, 1, most) &&
           g->lhs_batch_stride >= 0 && g->lhs_m >= 0 && g->lhs_k >= 0 && g->rhs_batch_stride >= 0 && g->rhs_k >= 0 &&
           g->rhs_n >= 0;
  }
  ok = ok && in_range(g->spatial, 1, CPU_MAX_SPATIAL) && in_range(g->in_channels, 1, most) &&
       in_range(g->out_channels, 1, most) && in_range(g->groups, 1, g->in_channels) &&
       g->in_channels % g->groups == 0 && g->out_channels % g->groups == 0;
  for (int d = 0; ok && d < g->spatial; d++) {
    ok = in_range(g->in[d], 1, most) && in_range(g->out[d], 1, most) && in_range(g->kernel[d], 1, most) &&
         in_range(g->strides[d], 1, most) && in_range(g->dilation[d], 1, most) && in_range(g->low[d], 0, most) &&
         in_range(g->high[d], 0, most);
  }
  return ok;
}

status cpu_contraction_read(rt_reader *r, arena *a, const char *what, cpu_contraction *c) {
  uint32_t n;
  const int64_t *fields = rt_get_i64s(r, a, &n);
  CHECK_THAT(n == GEOMETRY_FIELDS, STATUS_INVALID_FILE, "%s: its description is damaged", what);
  memcpy(&c->g, fields, sizeof c->g);
  c->n_post_ops = (uint32_t)rt_get_in(r, 0, CPU_MAX_POST_OPS);
  for (uint32_t k = 0; k < c->n_post_ops; k++) {
    cpu_post_op *p = &c->post_ops[k];
    p->kind = (cpu_post_op_kind)rt_get_in(r, 0, CPU_POST_OP_COUNT - 1);
    p->dims = (uint32_t)rt_get_in(r, 0, (1 << CPU_MAX_RANK) - 1);
    p->alpha = rt_get_f64(r);
    p->beta = rt_get_f64(r);
  }
  CHECK_THAT(!r->bad && geometry_is_sane(&c->g) && arrays_are_sane(c), STATUS_INVALID_FILE,
             "%s: its description is damaged", what);
  return NULL;
}

int cpu_contraction_dims(const cpu_contraction *c, int64_t *dims) {
  const cpu_geometry *g = &c->g;
  int rank = 0;
  dims[rank++] = g->batch;
  if (g->op == CPU_MATMUL) {
    dims[rank++] = g->m;
    dims[rank++] = g->n;
    return rank;
  }
  if (!g->channels_last) {
    dims[rank++] = g->out_channels;
  }
  for (int d = 0; d < g->spatial; d++) {
    dims[rank++] = g->out[d];
  }
  if (g->channels_last) {
    dims[rank++] = g->out_channels;
  }
  return rank;
}

int cpu_contraction_axis(const cpu_contraction *c) {
  const cpu_geometry *g = &c->g;
  if (g->batch > 1) {
    return 0;
  }
  if (g->op == CPU_MATMUL) {
    return g->m > 1 ? 1 : 2;
  }
  for (int d = 0; d < g->spatial && g->channels_last; d++) {
    if (g->out[d] > 1) {
      return d + 1;
    }
    if (g->in[d] > 1) {
      break; /* parts of the operand would not be contiguous */
    }
  }
  return -1;
}

uint32_t cpu_contraction_arrays(const cpu_contraction *c) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < c->n_post_ops; k++) {
    n += c->post_ops[k].kind > CPU_POST_OP_LAST_UNARY;
  }
  return n;
}

/* --- thunks --- */

typedef struct contraction_state {
  cpu_call *call;
  uint64_t scratch_bytes;
  bool has_scratch;
} contraction_state;

static bool holds(const rt_buffer *b, int64_t bytes) { return rt_buffer_is_dense(b) && rt_buffer_bytes(b) >= bytes; }

/* Returns true if the buffers are large enough for what the library will access.  This must be checked, since the
 * config may come from a damaged file. */
static bool buffers_fit(const rt_thunk *t, const cpu_contraction *c, const cpu_call_info *info) {
  const cpu_geometry *g = &c->g;
  int64_t dims[CPU_MAX_RANK];
  int rank = cpu_contraction_dims(c, dims);
  int64_t channels = g->op == CPU_MATMUL ? g->n : g->out_channels;
  const rt_buffer *b = t->buffers;
  bool ok = holds(b++, (int64_t)dtype_bytes((dtype)g->lhs_type) * lhs_elements(g));
  ok = ok && holds(b++, g->packed ? (int64_t)info->weights_bytes : (int64_t)sizeof(float) * weights_elements(g));
  ok = ok && (!g->has_bias || holds(b++, CPU_BIAS_BYTES * channels));
  for (uint32_t k = 0; ok && k < c->n_post_ops; k++) {
    if (c->post_ops[k].kind > CPU_POST_OP_LAST_UNARY) {
      int64_t n = 1;
      for (int d = 0; d < rank; d++) {
        n *= c->post_ops[k].dims >> d & 1 ? dims[d] : 1;
      }
      ok = holds(b++, (int64_t)sizeof(float) * n);
    }
  }
  return ok && holds(b, (int64_t)dtype_bytes((dtype)g->result_type) * product_of(1, rank, dims));
}

static status load_contraction(rt_thunk *t, rt_loader *l, cpu_contraction_op op) {
  cpu_contraction c;
  rt_reader r = rt_reader_make(t->config);
  TRY(cpu_contraction_read(&r, l->arena, t->kind, &c));
  const char *library = rt_get_text(&r);
  rt_span format = rt_get_bytes(&r);
  TRY(rt_reader_end(&r, t->kind));
  uint32_t needed = 3 + (c.g.has_bias != 0) + cpu_contraction_arrays(&c);
  CHECK_THAT(c.g.op == (int64_t)op && t->n_buffers >= needed && t->n_buffers <= needed + 1, STATUS_INVALID_FILE,
             "damaged");
  TRY(status_prefix(cpu_library_open(), "this step calls %s, unless you compile the model with --own-kernels",
                    library));
  CHECK_THAT(!c.g.packed || strcmp(library, cpu_library_name()) == 0, STATUS_INVALID_FILE,
             "its weights are packed for %s, but this is %s: compile the model again", library, cpu_library_name());
  contraction_state *s = ARENA_NEW(l->arena, contraction_state);
  cpu_call_info info;
  TRY(cpu_call_create(l->arena, &c, c.g.packed ? &format : NULL, &s->call, &info));
  CHECK_THAT(buffers_fit(t, &c, &info), STATUS_INVALID_FILE, "its buffers do not fit");
  s->scratch_bytes = info.scratch_bytes;
  s->has_scratch = t->n_buffers > needed && (uint64_t)rt_buffer_bytes(&t->buffers[needed]) >= info.scratch_bytes;
  t->state = s;
  return NULL;
}

status cpu_convolution_load(rt_thunk *t, rt_loader *l) { return load_contraction(t, l, CPU_CONVOLUTION); }

status cpu_dot_load(rt_thunk *t, rt_loader *l) { return load_contraction(t, l, CPU_MATMUL); }

status cpu_contraction_run(const rt_thunk *t, rt_run *r) {
  const contraction_state *s = t->state;
  void *buffers[MAX_CALL_BUFFERS];
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    buffers[k] = rt_address(r, &t->buffers[k]);
  }
  if (s->has_scratch || s->scratch_bytes == 0) {
    return cpu_call_run(s->call, r, buffers, s->has_scratch ? buffers[t->n_buffers - 1] : NULL);
  }
  /* This library version needs more scratch memory than the one with which the program was compiled. */
  void *scratch = budget_alloc(r->budget, s->scratch_bytes, 64);
  CHECK_THAT(scratch, STATUS_RESOURCE, "no %llu bytes of scratch memory", (unsigned long long)s->scratch_bytes);
  status failed = cpu_call_run(s->call, r, buffers, scratch);
  budget_free(r->budget, scratch, s->scratch_bytes, 64);
  return failed;
}
