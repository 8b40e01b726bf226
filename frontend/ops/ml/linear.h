/* linear.h - what importers of linear models and support vector machines share: products of rows and weights, and what
 * is made of scores. */
#ifndef FRONTEND_OPS_ML_LINEAR_H
#define FRONTEND_OPS_ML_LINEAR_H

#include "frontend/ops/ml/scores.h"

/* Reads an attribute of floats that must have at least one. */
STATUS_MUST_USE status ml_need_floats(const onnx_node *n, const char *name, const float **values, int64_t *count);

/* Returns an error unless the attribute `name`, which has `count` numbers, has one for each feature of each of the
 * `n_vectors` vectors.  `rows` has the features [N][F]. */
STATUS_MUST_USE status ml_check_vectors(const onnx_node *n, const char *name, int64_t count, int64_t n_vectors,
                                        hlo_value rows);
/* Returns the products of x[N][F] and vectors[M][F], [N][M]. */
hlo_value ml_products(hlo_builder *b, hlo_value x, hlo_value vectors);

/* Returns the index of the largest score of each row of scores[N][E], s64[N].  Of equal ones the first counts; NaN
 * counts only at index 0, and then is the largest, as in a search that keeps the first score until one is greater. */
hlo_value ml_first_largest(hlo_builder *b, hlo_value scores);

/* Where a model has one score s for two classes: whether, and how, the score of the other class is added before it. */
typedef enum ml_other { ML_ALONE, ML_COMPLEMENT /* 1-s */, ML_OPPOSITE /* -s */ } ml_other;
/* Sets *out to what becomes of scores[N][E] at the end, as ONNX Runtime does it: two or more scores are transformed.
 * With a score for another class, LOGISTIC is applied to -s and s, and the other transforms do nothing.  For one score
 * alone, only PROBIT does something.  ONNX Runtime leaves undefined what PROBIT does with another class; that is
 * refused. */
STATUS_MUST_USE status ml_final_scores(const onnx_node *n, hlo_value scores, int64_t count, ml_transform transform,
                                       ml_other other, hlo_value *out);

#endif
