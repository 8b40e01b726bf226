/* onednn.c - the library calls of contraction.h on oneDNN.
 *
 * A call owns its primitives.  Memory objects belong to one run at a time and are kept for the next run. */
#include "backend_cpu/runtime/onednn.h"
#include "runtime/host/thread_pool.h"

#ifdef HAVE_ONEDNN

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/headroom.h"

/* --- threads: oneDNN asks OpenMP for the number of threads, which is set per calling thread --- */

/* Makes oneDNN use one thread and returns the number to restore. */
static int use_one_thread(void) {
  int before = onednn.omp_get_max_threads ? onednn.omp_get_max_threads() : 1;
  if (before != 1) {
    onednn.omp_set_num_threads(1);
  }
  return before;
}

static void restore_threads(int before) {
  if (before != 1) {
    onednn.omp_set_num_threads(before);
  }
}

/* --- calls: parts of the result, each computed by one thread ---
 *
 * The library's own threads would be OpenMP's, which wait for each other in busy loops.  Where other programs need the
 * cores too, that takes many times as long.  Dividing the result into parts costs nothing, since a part's cost is
 * proportional to its rows. */

/* The oneDNN objects that a run of a part needs.  They are kept for the next run, since making them takes longer than
 * running a small part. */
typedef struct ready {
  dnnl_stream_t stream;
  uint32_t n;
  dnnl_exec_arg_t args[ONEDNN_MAX_ARGS + 1];
  void *at[ONEDNN_MAX_ARGS + 1]; /* the addresses that the memory objects in `args` have now */
  /* source and destination of the conversion of lhs; the destination is args[0].memory, borrowed */
  dnnl_exec_arg_t lhs_reorder[2];
} ready;

typedef struct part {
  const onednn_primitive *primitive;
  int64_t offsets[ONEDNN_MAX_ARGS]; /* the offset in bytes of the part in each argument */
  ready *_Atomic spare;             /* the objects that the last run left; a run takes them, or makes others if it
                                       finds NULL */
} part;

struct cpu_call {
  uint32_t n_parts, n_primitives;
  part *parts;
  onednn_primitive *primitives;
  uint64_t scratch_bytes; /* the most scratch memory that a part needs */
  uint64_t weights_bytes; /* the packed weights that a part reads */
  bool divides_weights;
};

/* Changes g to the geometry of the part [begin, end) of the result along `axis`.  Sets *first to the first index that
 * this part reads along the dimension of lhs that corresponds to `axis`.  Returns false if the part reads nothing but
 * padding. */
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

/* Returns the stride, in elements, of the dimension of lhs that corresponds to dimension `axis` of the result; 0 for
 * the columns of a matrix product, since every part of them reads all of lhs. */
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

static void set_offsets(const cpu_contraction *c, const cpu_call *call, uint32_t k, int axis, int64_t begin,
                        int64_t first, int64_t *offsets) {
  bool columns = c->g.op == CPU_MATMUL && axis == 2;
  int64_t weight = (int64_t)dtype_bytes((dtype)c->g.weights_type), size = sizeof(float);
  uint32_t n = 0;
  offsets[n++] = first * lhs_step(&c->g, axis) * (int64_t)dtype_bytes((dtype)c->g.lhs_type);
  offsets[n++] = call->divides_weights            ? (int64_t)(k * call->weights_bytes)
                 : columns                        ? begin * c->g.rhs_n * weight
                 : c->g.op == CPU_MATMUL && !axis ? begin * c->g.rhs_batch_stride * weight
                                                  : 0;
  if (c->g.has_bias) {
    offsets[n++] = columns ? begin * CPU_BIAS_BYTES : 0;
  }
  for (uint32_t p = 0; p < c->n_post_ops; p++) {
    if (c->post_ops[p].kind > CPU_POST_OP_LAST_UNARY) {
      offsets[n++] = begin * array_step(c, axis, c->post_ops[p].dims) * size;
    }
  }
  offsets[n] = begin * array_step(c, axis, ONEDNN_EVERY_DIM) * (int64_t)dtype_bytes((dtype)c->g.result_type);
}

static status find_primitive(arena *a, const cpu_contraction *c, const rt_span *format, cpu_call *call,
                             const onednn_primitive **out) {
  for (uint32_t k = 0; k < call->n_primitives; k++) {
    if (memcmp(&call->primitives[k].geometry, &c->g, sizeof c->g) == 0) {
      *out = &call->primitives[k];
      return NULL;
    }
  }
  onednn_primitive *x = &call->primitives[call->n_primitives++];
  *out = x;
  if (x == call->primitives || !c->g.packed) {
    return onednn_make_primitive(a, c, format, NULL, x);
  }
  rt_span same = onednn_md_format(a, call->primitives[0].weights); /* all parts read the same weights */
  return onednn_make_primitive(a, c, &same, call->primitives[0].weights, x);
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
    TRY(find_primitive(a, &some, format, call, &call->parts[k].primitive));
    const onednn_primitive *x = call->parts[k].primitive;
    CHECK_THAT(!call->divides_weights || x == call->primitives, STATUS_INVALID_FILE, "parts of the weights differ");
    call->weights_bytes = onednn.memory_desc_get_size(x->weights);
    uint64_t scratch = x->scratch_bytes + x->reduced_lhs_bytes;
    call->scratch_bytes = scratch > call->scratch_bytes ? scratch : call->scratch_bytes;
    if (call->n_parts > 1) {
      set_offsets(c, call, k, axis, begin, first, call->parts[k].offsets);
    }
  }
  return NULL;
}

static void describe(arena *a, const cpu_contraction *c, const cpu_call *call, cpu_call_info *info) {
  info->fast = true;
  for (uint32_t k = 0; k < call->n_primitives; k++) {
    info->implementation = arena_strdup(a, onednn_implementation(call->primitives[k].pd));
    info->fast = info->fast && onednn_is_fast(call->primitives[k].pd);
  }
  info->scratch_bytes = call->scratch_bytes * call->n_parts;
  info->weights_bytes = call->weights_bytes * (call->divides_weights ? call->n_parts : 1);
  info->format = c->g.packed ? onednn_md_format(a, call->primitives[0].weights) : (rt_span){"", 0};
}

static void destroy_args(uint32_t n, dnnl_exec_arg_t *args) {
  for (uint32_t k = 0; k < n; k++) {
    onednn.memory_destroy(args[k].memory);
  }
}

/* Frees r, which may be NULL. */
static void destroy_ready(ready *r) {
  if (r) {
    destroy_args(r->n, r->args);
    onednn.memory_destroy(r->lhs_reorder[0].memory);
    onednn.stream_destroy(r->stream);
    free(r);
  }
}

static void destroy_primitives(void *data) {
  cpu_call *call = data;
  for (uint32_t k = 0; k < call->n_parts; k++) {
    destroy_ready(atomic_load(&call->parts[k].spare));
  }
  for (uint32_t k = 0; k < call->n_primitives; k++) {
    onednn_destroy_primitive(&call->primitives[k]);
  }
}

status cpu_call_create(arena *a, const cpu_contraction *c, const rt_span *format, cpu_call **out, cpu_call_info *info) {
  TRY(cpu_library_open());
  cpu_call *call = ARENA_NEW(a, cpu_call);
  call->n_parts = (uint32_t)c->g.parts;
  call->parts = ARENA_NEW_N(a, part, call->n_parts);
  call->primitives = ARENA_NEW_N(a, onednn_primitive, call->n_parts);
  arena_cleanup(a, destroy_primitives, call);
  int before = use_one_thread();
  status s = make_parts(a, c, format, call);
  restore_threads(before);
  if (!s) {
    describe(a, c, call, info);
  }
  *out = call;
  return s;
}

/* --- running a call --- */

static dnnl_status_t execute(dnnl_primitive_t p, uint32_t n, dnnl_exec_arg_t *args) {
  dnnl_stream_t stream;
  dnnl_status_t s = onednn.stream_create(&stream, onednn.engine, dnnl_stream_default_flags);
  if (s) {
    return s;
  }
  s = onednn.primitive_execute(p, stream, (int)n, args);
  s = s ? s : onednn.stream_wait(stream);
  onednn.stream_destroy(stream);
  return s;
}

typedef struct call_run {
  const cpu_call *call;
  void *const *buffers;
  uint8_t *scratch;
  _Atomic int failed; /* a dnnl_status_t: the failure of a part, or 0 */
} call_run;

/* Makes the oneDNN objects for a run of a part.  The caller destroys *out also after a failure. */
static dnnl_status_t make_ready(const onednn_primitive *x, ready **out) {
  ready *r = *out = calloc(1, sizeof *r);
  dnnl_status_t s = r ? onednn.stream_create(&r->stream, onednn.engine, dnnl_stream_default_flags) : dnnl_out_of_memory;
  uint32_t n = x->n_args + (x->scratch_bytes > 0);
  for (uint32_t k = 0; !s && k < n; k++) {
    r->args[k].arg = k < x->n_args ? x->args[k].arg : DNNL_ARG_SCRATCHPAD;
    onednn_md md = k < x->n_args ? x->args[k].md : x->scratch;
    s = onednn.memory_create(&r->args[k].memory, md, onednn.engine, DNNL_MEMORY_NONE);
    r->n += !s;
  }
  if (!s && x->lhs_reorder) {
    r->lhs_reorder[0].arg = DNNL_ARG_FROM;
    r->lhs_reorder[1] = (dnnl_exec_arg_t){DNNL_ARG_TO, r->args[0].memory};
    s = onednn.memory_create(&r->lhs_reorder[0].memory, x->given_lhs, onednn.engine, DNNL_MEMORY_NONE);
  }
  return s;
}

static dnnl_status_t point_at(ready *r, uint32_t k, void *memory) {
  if (r->at[k] == memory) {
    return dnnl_success;
  }
  r->at[k] = memory;
  return onednn.memory_set_data_handle(r->args[k].memory, memory);
}

/* Rounds the part's lhs to reduced precision and writes it to scratch memory. */
static dnnl_status_t reduce_operand(const onednn_primitive *x, ready *r, void *given) {
  dnnl_status_t s = onednn.memory_set_data_handle(r->lhs_reorder[0].memory, given);
  return s ? s : onednn.primitive_execute(x->lhs_reorder, r->stream, 2, r->lhs_reorder);
}

static dnnl_status_t run_part(const call_run *r, uint32_t number) {
  part *p = &r->call->parts[number];
  const onednn_primitive *of = p->primitive;
  ready *x = atomic_exchange(&p->spare, NULL);
  dnnl_status_t s = dnnl_success;
  if (!x) {
    s = make_ready(of, &x);
  }
  uint8_t *scratch = r->scratch + number * r->call->scratch_bytes;
  for (uint32_t k = 0; !s && k < x->n; k++) {
    bool is_scratch = k == of->n_args, has_reduced_operands = k == 0 && of->lhs_reorder;
    s = point_at(x, k,
                 is_scratch             ? scratch
                 : has_reduced_operands ? scratch + of->scratch_bytes
                                        : (uint8_t *)r->buffers[k] + p->offsets[k]);
  }
  if (!s && of->lhs_reorder) {
    s = reduce_operand(of, x, (uint8_t *)r->buffers[0] + p->offsets[0]);
  }
  s = s ? s : onednn.primitive_execute(of->primitive, x->stream, (int)x->n, x->args);
  s = s ? s : onednn.stream_wait(x->stream);
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
  return r.failed ? onednn_failed((dnnl_status_t)r.failed, "its result") : NULL;
}

static dnnl_status_t reorder(onednn_md from, void *source, onednn_md to, void *target) {
  dnnl_primitive_t p = NULL;
  dnnl_exec_arg_t args[2] = {{DNNL_ARG_FROM, NULL}, {DNNL_ARG_TO, NULL}};
  dnnl_status_t s = onednn_make_reorder(from, to, &p);
  s = s ? s : onednn.memory_create(&args[0].memory, from, onednn.engine, source);
  s = s ? s : onednn.memory_create(&args[1].memory, to, onednn.engine, target);
  s = s ? s : execute(p, 2, args);
  destroy_args(2, args);
  onednn.primitive_destroy(p);
  return s;
}

status cpu_call_pack(const cpu_call *c, const void *plain, void *packed) {
  TRY(headroom_check(HEADROOM_LIBRARY));
  int before = use_one_thread();
  dnnl_status_t s = dnnl_success;
  for (uint32_t k = 0; !s && k < (c->divides_weights ? c->n_parts : 1); k++) {
    const onednn_primitive *x = c->parts[k].primitive;
    int64_t columns = k * x->geometry.n * x->geometry.rhs_n * (int64_t)dtype_bytes((dtype)x->geometry.weights_type);
    s = reorder(x->plain_weights, (uint8_t *)plain + columns, x->weights, (uint8_t *)packed + k * c->weights_bytes);
  }
  restore_threads(before);
  return s ? onednn_failed(s, "packed weights") : NULL;
}

#elif !defined HAVE_OPENBLAS

const char *cpu_library_of_build(void) { return ""; }

bool cpu_library_may_open(void) { return false; }

status cpu_library_open(void) {
  return status_error(STATUS_UNSUPPORTED, "onnx-xla was built without oneDNN and OpenBLAS");
}

const char *cpu_library_name(void) { return NULL; }

bool cpu_library_is_blas(void) { return false; }

bool cpu_library_has_bytes(void) { return false; }

/* A build without a library never uses one, so the return value does not matter. */
bool cpu_library_is_fast(const cpu_contraction *c) {
  (void)c;
  return true;
}

status cpu_call_create(arena *a, const cpu_contraction *c, const rt_span *format, cpu_call **out, cpu_call_info *info) {
  (void)a, (void)c, (void)format, (void)info;
  *out = NULL;
  return cpu_library_open();
}

status cpu_call_pack(const cpu_call *c, const void *plain, void *packed) {
  (void)c, (void)plain, (void)packed;
  return cpu_library_open();
}

status cpu_call_run(const cpu_call *c, const rt_run *r, void *const *buffers, void *scratch) {
  (void)c, (void)r, (void)buffers, (void)scratch;
  return cpu_library_open();
}

#endif
