/* coupling.h - probabilities of classes from those of each two classes (Wu, Lin and Weng, "Probability estimates for
 * multi-class classification by pairwise coupling"). */
#ifndef FRONTEND_OPS_ML_COUPLING_H
#define FRONTEND_OPS_ML_COUPLING_H

#include "frontend/import/import_helpers.h"

/* Sets *out to the probabilities of the classes, f32[N][count].  pairs[N][count*(count-1)/2], f32, has the probability
 * of class i against class j for each i < j, in the order of i and then j. */
STATUS_MUST_USE status ml_coupled(const onnx_node *n, hlo_value pairs, int64_t count, hlo_value *out);

#endif
