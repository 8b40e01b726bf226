/* linear_attention.h - imports LinearAttention, which the standard and ONNX Runtime have. */
#ifndef FRONTEND_OPS_NN_LINEAR_ATTENTION_H
#define FRONTEND_OPS_NN_LINEAR_ATTENTION_H

#include "frontend/import/import_helpers.h"

/* Imports the node.  If `shared` is set, query and key may have fewer heads than value, as in ONNX Runtime's operator;
 * then each of their heads belongs to equally many consecutive heads of value. */
STATUS_MUST_USE status onnx_linear_attention(onnx_node *n, bool shared);

#endif
