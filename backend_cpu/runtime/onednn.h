/* onednn.h - what the files onednn*.c share: one interface for oneDNN 2.x and 3.x, whose descriptors differ, and
 * functions that make a primitive for a cpu_contraction. */
#ifndef BACKEND_CPU_RUNTIME_ONEDNN_H
#define BACKEND_CPU_RUNTIME_ONEDNN_H

#include "backend_cpu/runtime/contraction.h"

#ifdef HAVE_ONEDNN

#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_version.h>

/* --- the library: onednn_library.c --- */

/* The process's only engine and the library's functions, which onednn_functions.def lists, without their prefix dnnl_.
 * All are set once cpu_library_open() succeeded.  The last two are those of OpenMP that the library uses, or NULL if it
 * was built without OpenMP. */
typedef struct onednn_library {
  dnnl_engine_t engine;
#define ONEDNN_FUNCTION(name) __typeof__(dnnl_##name) *name;
#include "backend_cpu/runtime/onednn_functions.def"
  int (*omp_get_max_threads)(void);
  void (*omp_set_num_threads)(int n);
} onednn_library;

extern onednn_library onednn;

/* --- the differences between the library's versions: onednn_version.c --- */

/* Returns the error for a failure of oneDNN to make `what`.  It is UNSUPPORTED if oneDNN has no implementation. */
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

/* Makes a memory descriptor that lives as long as the arena.  If `strides` is NULL, the library chooses the format. */
STATUS_MUST_USE status onednn_make_md(arena *a, int64_t type, int n, const dnnl_dims_t dims, const dnnl_dims_t strides,
                                      onednn_md *out);
/* Returns bytes that identify the format. */
rt_span onednn_md_format(arena *a, onednn_md md);
/* Makes a descriptor from the bytes of onednn_md_format.  Returns NULL if this version of the library cannot do that,
 * or if the bytes do not have the size of its descriptors. */
onednn_md onednn_md_from_format(arena *a, rt_span format);

dnnl_status_t onednn_append_unary(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm, float alpha, float beta);
dnnl_status_t onednn_append_sum(dnnl_post_ops_t ops);

/* The memory descriptors of the operands. lhs and weights describe what is multiplied. given_lhs describes lhs in the
 * thunk's buffer, and plain_weights describes the weights in HLO, both before any conversion. bias is NULL if there is
 * none. */
typedef struct onednn_operands {
  onednn_md lhs, given_lhs, weights, plain_weights, bias, result;
} onednn_operands;

typedef struct onednn_window {
  dnnl_dims_t strides, low, high, dilation;
  bool no_gemm; /* the library must not use its implementation of convolutions by matrix products */
} onednn_window;

/* Returns the library's name for the implementation that it chose. */
const char *onednn_implementation(const_dnnl_primitive_desc_t pd);
/* Returns true if the implementation that the library chose is more than plain loops. */
bool onednn_is_fast(const_dnnl_primitive_desc_t pd);

dnnl_status_t onednn_convolution(const onednn_operands *d, const onednn_window *w, dnnl_primitive_attr_t attr,
                                 dnnl_primitive_desc_t *out);
dnnl_status_t onednn_matmul(const onednn_operands *d, dnnl_primitive_attr_t attr, dnnl_primitive_desc_t *out);

/* --- primitives: onednn_primitive.c --- */

/* ONEDNN_EVERY_DIM is a mask of all dimensions, as in cpu_post_op.dims. */
enum { ONEDNN_MAX_ARGS = 6 + CPU_MAX_POST_OPS, ONEDNN_EVERY_DIM = (1 << CPU_MAX_RANK) - 1 };

typedef struct onednn_primitive {
  cpu_geometry geometry;
  dnnl_primitive_t primitive;
  dnnl_primitive_desc_t pd;
  dnnl_primitive_attr_t attr;
  onednn_md plain_weights, weights, scratch;
  uint64_t scratch_bytes; /* the bytes of scratch memory that the library needs, a multiple of 64 */
  /* converts lhs to reduced precision, into scratch memory after that of the library; NULL if lhs is used as it is */
  dnnl_primitive_t lhs_reorder;
  onednn_md given_lhs;
  uint64_t reduced_lhs_bytes; /* the bytes of the converted lhs, a multiple of 64; 0 if lhs_reorder is NULL */
  uint32_t n_args;
  struct {
    int arg;
    onednn_md md;
  } args[ONEDNN_MAX_ARGS]; /* in the order of the thunk's buffers */
} onednn_primitive;

/* Makes a primitive for c in *x.  The caller zeroes *x before, and destroys it afterwards, also after a failure.
 * `format` is the format of packed weights, or NULL if the library is to choose.  `known` is the descriptor of
 * `format`, or NULL. */
STATUS_MUST_USE status onednn_make_primitive(arena *a, const cpu_contraction *c, const rt_span *format, onednn_md known,
                                             onednn_primitive *x);
void onednn_destroy_primitive(onednn_primitive *x);

/* Makes a primitive that copies from one format or type to another. */
dnnl_status_t onednn_make_reorder(onednn_md from, onednn_md to, dnnl_primitive_t *out);

#endif
#endif
