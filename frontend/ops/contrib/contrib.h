/* contrib.h - what importers of the domain com.microsoft share.  ONNX Runtime defines this domain; its optimiser, its
 * quantiser and exporters write models with it. */
#ifndef FRONTEND_OPS_CONTRIB_CONTRIB_H
#define FRONTEND_OPS_CONTRIB_CONTRIB_H

#include "frontend/import/import_helpers.h"

/* Returns an error if the node has an attribute that is not among the given names, so that no attribute is ignored. */
#define CONTRIB_ATTRIBUTES(n, ...) contrib_attributes(n, (const char *const[]){__VA_ARGS__, NULL})
STATUS_MUST_USE status contrib_attributes(const onnx_node *n, const char *const *known);
/* Returns an error if input k is given; `why` says what is not supported. */
STATUS_MUST_USE status contrib_no_input(const onnx_node *n, uint32_t k, const char *what, const char *why);
/* Returns an error unless input k is given. */
STATUS_MUST_USE status contrib_need_input(const onnx_node *n, uint32_t k, const char *what);

/* Returns input 0, plus the bias in input 1 if it is given, in the type in which activations are computed.  The bias,
 * named `what`, runs along the last dimension. */
STATUS_MUST_USE status contrib_biased(const onnx_node *n, const char *what, hlo_value *out);
/* Returns true if input k is known to be one element, as a scalar or a vector. */
bool contrib_is_single(const onnx_node *n, uint32_t k);

/* Returns softmax of x over all dimensions from `axis` on together. */
hlo_value contrib_softmax_from(const onnx_node *n, hlo_value x, int64_t axis);

/* Returns a copy of the node with other inputs and another version.  With it, the importer of a standard operator that
 * has the same attributes can be called.  `in` has an entry for each input that this operator may have; the first n_in
 * of them are given. */
onnx_node contrib_as(const onnx_node *n, int since, uint32_t n_in, const hlo_value *in);
/* Moves the last dimension of x, the channels, behind the first one, or with `back` from there to the end.  Returns x
 * if its rank is below 3. */
hlo_value contrib_move_channels(hlo_builder *b, hlo_value x, bool back);
/* Returns input k, named `what`, in f32 and broadcast to y, the shape of a product.  Input k holds one scale, or one
 * for each column of the product. */
STATUS_MUST_USE status contrib_column_scale(const onnx_node *n, uint32_t k, const char *what, const shape *y,
                                            hlo_value *out);
/* Sets *out to the product of in[0] and in[1], in f32.  in[0] and in[1] are integers of 8 bits; in[2] and in[3] are
 * their zero points, which may be absent (def is NULL).  a_scale, a scalar, is the scale of in[0].  Input k of the
 * node, named `what`, has one scale for in[1], or one for each of its columns. */
STATUS_MUST_USE status contrib_scaled_product(const onnx_node *n, const hlo_value in[4], hlo_value a_scale, uint32_t k,
                                              const char *what, hlo_value *out);

#endif
