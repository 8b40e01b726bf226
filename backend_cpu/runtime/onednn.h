/* onednn.h - between the files that know oneDNN (onednn*.c): one face for its versions 2.x and 3.x, which
 * describe things differently, and primitives for geometries. */
#ifndef BACKEND_CPU_RUNTIME_ONEDNN_H
#define BACKEND_CPU_RUNTIME_ONEDNN_H

#include "backend_cpu/runtime/contraction.h"

#ifdef HAVE_ONEDNN

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>

/* --- the library, and what versions have in different words: onednn_version.c --- */

/* One a process; NULL: the library finds no processor that it can use. */
dnnl_engine_t onednn_engine(void);

status onednn_failed(dnnl_status_t s, const char *what);

#define DNNL(call, what)                   \
  do {                                     \
    dnnl_status_t dnnl_s_ = (call);        \
    if (dnnl_s_ != dnnl_success) {         \
      return onednn_failed(dnnl_s_, what); \
    }                                      \
  } while (0)

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t onednn_md;
#else
typedef const dnnl_memory_desc_t *onednn_md;
#endif

/* Lives as long as the arena.  strides NULL: any format, the library's choice. */
STATUS_MUST_USE status onednn_make_md(arena *a, int64_t type, int n, const dnnl_dims_t dims, const dnnl_dims_t strides,
                                      onednn_md *out);
/* All that can be asked about a format, as bytes. */
rt_span onednn_md_format(arena *a, onednn_md md);
/* NULL: this version's formats cannot be made from what we keep of them. */
onednn_md onednn_md_from_format(arena *a, rt_span format);

dnnl_status_t onednn_append_unary(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm, float alpha, float beta);
dnnl_status_t onednn_append_sum(dnnl_post_ops_t ops);

/* Of lhs and weights: as they are multiplied, and as they are given.  bias NULL: none. */
typedef struct onednn_operands {
  onednn_md lhs, given_lhs, weights, plain_weights, bias, result;
} onednn_operands;

typedef struct onednn_window {
  dnnl_dims_t strides, low, high, dilation;
  bool no_gemm; /* not the library's implementation by matrix products */
} onednn_window;

/* The library's name of the implementation that it chose. */
const char *onednn_implementation(const_dnnl_primitive_desc_t pd);
/* Returns true if that is more than plain loops. */
bool onednn_is_fast(const_dnnl_primitive_desc_t pd);

dnnl_status_t onednn_convolution(const onednn_operands *d, const onednn_window *w, dnnl_primitive_attr_t attr,
                                 dnnl_primitive_desc_t *out);
dnnl_status_t onednn_matmul(const onednn_operands *d, dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out);

/* --- pieces, one primitive each: onednn_primitive.c --- */

/* ONEDNN_EVERY_DIM: a mask of dimensions as cpu_post_op has it. */
enum { ONEDNN_MAX_ARGS = 6 + CPU_MAX_POST_OPS, ONEDNN_EVERY_DIM = (1 << CPU_MAX_RANK) - 1 };

typedef struct onednn_primitive {
  cpu_geometry geometry;
  dnnl_primitive_t primitive;
  dnnl_primitive_desc_t pd;
  dnnl_primitive_attr_t attr;
  onednn_md plain_weights, weights, scratch;
  uint64_t scratch_bytes;       /* the library's, a multiple of 64 */
  dnnl_primitive_t lhs_reorder; /* of lhs, into scratch memory behind the library's; NULL: it is read where it lies */
  onednn_md given_lhs;
  uint64_t reduced_lhs_bytes; /* a multiple of 64 */
  uint32_t n_args;
  struct {
    int arg;
    onednn_md md;
  } args[ONEDNN_MAX_ARGS]; /* in the order of the thunk's buffers */
} onednn_primitive;

/* format: of packed weights, NULL for the library's choice; known: the same as a descriptor, if there is one.  *x,
 * which comes as zeros, is to be destroyed after a failure too. */
STATUS_MUST_USE status onednn_make_primitive(arena *a, const cpu_contraction *c, const rt_span *format, onednn_md known,
                                             onednn_primitive *x);
void onednn_destroy_primitive(onednn_primitive *x);

/* A primitive that copies from one format, or type, to another. */
dnnl_status_t onednn_make_reorder(onednn_md from, onednn_md to, dnnl_primitive_t *out);

#endif
#endif
