/* onednn_version.c - the interfaces that differ between oneDNN 2.x and 3.x: memory descriptors and operations. */
#include "backend_cpu/runtime/onednn.h"

#ifdef HAVE_ONEDNN

#include <string.h>

/* dnnl_runtime_error means that the generator of a kernel ran out of registers or made too long a jump, as that of
 * oneDNN 2.7 does for bf16 convolutions of 12 groups on Zen 4. */
status onednn_failed(dnnl_status_t s, const char *what) {
  bool cannot = s == dnnl_unimplemented || s == dnnl_runtime_error;
  status_code code = s == dnnl_out_of_memory ? STATUS_RESOURCE : cannot ? STATUS_UNSUPPORTED : STATUS_INTERNAL;
  return status_error(code, "oneDNN cannot make %s (status %d)", what, (int)s);
}

/* --- implementations --- */

const char *onednn_implementation(const_dnnl_primitive_desc_t pd) {
  const char *name = "";
  onednn.primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
  return name;
}

bool onednn_is_fast(const_dnnl_primitive_desc_t pd) {
  const char *name = onednn_implementation(pd);
  return strncmp(name, "ref", 3) != 0 && strncmp(name, "simple", 6) != 0;
}

static bool is_refused(const onednn_window *w, const_dnnl_primitive_desc_t pd) {
  return w->no_gemm && strstr(onednn_implementation(pd), "gemm");
}

/* --- descriptors --- */

/* Returns oneDNN's name for a dtype. */
static dnnl_data_type_t data_type(int64_t t) {
  static const dnnl_data_type_t table[DTYPE_COUNT] = {
      [DTYPE_U8] = dnnl_u8,   [DTYPE_S8] = dnnl_s8,     [DTYPE_S32] = dnnl_s32,
      [DTYPE_F16] = dnnl_f16, [DTYPE_BF16] = dnnl_bf16, [DTYPE_F32] = dnnl_f32};
  return table[t];
}

/* --- version 3 --- */

#if DNNL_VERSION_MAJOR >= 3
static void destroy_md(void *md) { onednn.memory_desc_destroy(md); }

static status keep_md(arena *a, dnnl_memory_desc_t md, onednn_md *out) {
  arena_cleanup(a, destroy_md, md);
  *out = md;
  return NULL;
}

status onednn_make_md(arena *a, int64_t type, int n, const dnnl_dims_t dims, const dnnl_dims_t strides,
                      onednn_md *out) {
  dnnl_memory_desc_t md;
  DNNL(strides ? onednn.memory_desc_create_with_strides(&md, n, dims, data_type(type), strides)
               : onednn.memory_desc_create_with_tag(&md, n, dims, data_type(type), dnnl_format_tag_any),
       "a memory descriptor");
  return keep_md(a, md, out);
}

rt_span onednn_md_format(arena *a, onednn_md md) {
  rt_writer w = {.arena = a};
  int32_t n = 0, blocks = 0;
  int64_t offset = 0;
  dnnl_format_kind_t kind = dnnl_format_kind_undef;
  dnnl_dims_t *dims, *padded, *strides, *inner, *which;
  onednn.memory_desc_query(md, dnnl_query_ndims_s32, &n);
  onednn.memory_desc_query(md, dnnl_query_inner_nblks_s32, &blocks);
  onednn.memory_desc_query(md, dnnl_query_submemory_offset_s64, &offset);
  onednn.memory_desc_query(md, dnnl_query_format_kind, &kind);
  rt_put_i64(&w, offset);
  rt_put_i64(&w, kind);
  rt_put_i64(&w, (int64_t)onednn.memory_desc_get_size(md));
  if (onednn.memory_desc_query(md, dnnl_query_dims, &dims) == dnnl_success &&
      onednn.memory_desc_query(md, dnnl_query_padded_dims, &padded) == dnnl_success &&
      onednn.memory_desc_query(md, dnnl_query_strides, &strides) == dnnl_success) {
    rt_put_i64s(&w, (uint32_t)n, *dims);
    rt_put_i64s(&w, (uint32_t)n, *padded);
    rt_put_i64s(&w, (uint32_t)n, *strides);
  }
  if (blocks && onednn.memory_desc_query(md, dnnl_query_inner_blks, &inner) == dnnl_success &&
      onednn.memory_desc_query(md, dnnl_query_inner_idxs, &which) == dnnl_success) {
    rt_put_i64s(&w, (uint32_t)blocks, *inner);
    rt_put_i64s(&w, (uint32_t)blocks, *which);
  }
  return rt_written(&w);
}

onednn_md onednn_md_from_format(arena *a, rt_span format) {
  (void)a;
  (void)format;
  return NULL;
}

/* Version 3 has the two constants of hard-swish as parameters; in 2.x they are fixed at these values. */
dnnl_status_t onednn_append_unary(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm, float alpha, float beta) {
  bool hardswish = algorithm == dnnl_eltwise_hardswish;
  return onednn.post_ops_append_eltwise(ops, algorithm, hardswish ? 1.f / 6 : alpha, hardswish ? 0.5f : beta);
}

dnnl_status_t onednn_append_sum(dnnl_post_ops_t ops) {
  return onednn.post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef);
}

dnnl_status_t onednn_convolution(const onednn_operands *d, const onednn_window *w, dnnl_primitive_attr_t attr,
                                 dnnl_primitive_desc_t *out) {
  dnnl_status_t s = onednn.convolution_forward_primitive_desc_create(
      out, onednn.engine, dnnl_forward_inference, dnnl_convolution_direct, d->lhs, d->weights, d->bias, d->result,
      w->strides, w->dilation, w->low, w->high, attr);
  while (!s && is_refused(w, *out)) {
    s = onednn.primitive_desc_next_impl(*out) ? dnnl_unimplemented : dnnl_success;
  }
  return s;
}

dnnl_status_t onednn_matmul(const onednn_operands *d, dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out) {
  return onednn.matmul_primitive_desc_create(out, onednn.engine, d->lhs, d->weights, d->bias, d->result, attr);
}

/* --- version 2 --- */

#else
status onednn_make_md(arena *a, int64_t type, int n, const dnnl_dims_t dims, const dnnl_dims_t strides,
                      onednn_md *out) {
  dnnl_memory_desc_t *md = ARENA_NEW(a, dnnl_memory_desc_t);
  DNNL(strides ? onednn.memory_desc_init_by_strides(md, n, dims, data_type(type), strides)
               : onednn.memory_desc_init_by_tag(md, n, dims, data_type(type), dnnl_format_tag_any),
       "a memory descriptor");
  *out = md;
  return NULL;
}

/* In version 2 a descriptor is a plain structure, whose bytes identify the format. */
rt_span onednn_md_format(arena *a, onednn_md md) { return (rt_span){arena_memdup(a, md, sizeof *md), sizeof *md}; }

onednn_md onednn_md_from_format(arena *a, rt_span format) {
  return format.size == sizeof(dnnl_memory_desc_t) ? arena_memdup(a, format.data, format.size) : NULL;
}

dnnl_status_t onednn_append_unary(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm, float alpha, float beta) {
  return onednn.post_ops_append_eltwise(ops, 1, algorithm, alpha, beta);
}

dnnl_status_t onednn_append_sum(dnnl_post_ops_t ops) { return onednn.post_ops_append_sum(ops, 1); }

dnnl_status_t onednn_convolution(const onednn_operands *d, const onednn_window *w, dnnl_primitive_attr_t attr,
                                 dnnl_primitive_desc_t *out) {
  dnnl_convolution_desc_t desc;
  dnnl_status_t s = onednn.dilated_convolution_forward_desc_init(&desc, dnnl_forward_inference, dnnl_convolution_direct,
                                                                 d->lhs, d->weights, d->bias, d->result, w->strides,
                                                                 w->dilation, w->low, w->high);
  dnnl_primitive_desc_iterator_t i = NULL;
  s = s ? s : onednn.primitive_desc_iterator_create(&i, &desc, attr, onednn.engine, NULL);
  while (!s && (*out = onednn.primitive_desc_iterator_fetch(i)) && is_refused(w, *out)) {
    onednn.primitive_desc_destroy(*out);
    *out = NULL;
    s = onednn.primitive_desc_iterator_next(i) ? dnnl_unimplemented : dnnl_success;
  }
  onednn.primitive_desc_iterator_destroy(i);
  return s || *out ? s : dnnl_out_of_memory;
}

dnnl_status_t onednn_matmul(const onednn_operands *d, dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out) {
  dnnl_matmul_desc_t desc;
  dnnl_status_t s = onednn.matmul_desc_init(&desc, d->lhs, d->weights, d->bias, d->result);
  return s ? s : onednn.primitive_desc_create(out, &desc, attr, onednn.engine, NULL);
}
#endif

#endif
