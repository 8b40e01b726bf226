/* scores.h - what importers of the domain ai.onnx.ml share: rows of features, scores, and the labels of classes. */
#ifndef FRONTEND_OPS_ML_SCORES_H
#define FRONTEND_OPS_ML_SCORES_H

#include "frontend/import/import_helpers.h"

/* Returns input 0 as rows[N][features] of the type; an input of one dimension is one row. */
STATUS_MUST_USE status ml_rows(const onnx_node *n, dtype type, hlo_value *out);

/* What happens to the scores of a row at the end (attribute post_transform). */
typedef enum ml_transform { ML_NONE, ML_SOFTMAX, ML_LOGISTIC, ML_SOFTMAX_ZERO, ML_PROBIT } ml_transform;
STATUS_MUST_USE status ml_read_transform(const onnx_node *n, ml_transform *out);
/* Applies the transform to scores[N][E], of a float type. */
hlo_value ml_transformed(hlo_builder *b, hlo_value scores, ml_transform t);

/* Sets *labels to the labels of the classes from the attribute `ints`, or to the numbers of those in `strings`.  One of
 * the two must have labels. */
STATUS_MUST_USE status ml_read_labels(const onnx_node *n, const char *ints, const char *strings, const int64_t **labels,
                                      int64_t *count);
/* Returns the labels of the classes in `chosen`, an array of s64 that are below `count`: s64, or strings if the node
 * has the attribute classlabels_strings with labels. */
hlo_value ml_labels_of(const onnx_node *n, const int64_t *labels, int64_t count, hlo_value chosen);
/* Returns positive where the condition pred[N] is true, and otherwise negative, in the same types. */
hlo_value ml_either_label(const onnx_node *n, hlo_value condition, int64_t positive, int64_t negative);

#endif
