/* affine.h - recognises integer arrays whose elements step evenly: start + step[0] * i[0] + step[1] * i[1] + ...
 * Exporters write ranges of indices in this form.  Such an array is recognised from the iotas, constants and operations
 * that compute it, so it need not be in memory. */
#ifndef HLO_ANALYSIS_AFFINE_H
#define HLO_ANALYSIS_AFFINE_H

#include "hlo/ir/ir.h"

/* A part of an array: along dimension d the elements at first[d] + stride[d] * i with 0 <= i < count[d]. */
typedef struct hlo_region {
  int64_t first[SHAPE_MAX_RANK], stride[SHAPE_MAX_RANK], count[SHAPE_MAX_RANK];
} hlo_region;

/* The elements of a region as a function of the index i in the region: start + step[0] * i[0] + step[1] * i[1] + ...
 * low and high are the smallest and the largest element. */
typedef struct hlo_affine {
  int64_t start, step[SHAPE_MAX_RANK]; /* step is 0 where count is 1, and for dimensions beyond the rank */
  int64_t low, high;
} hlo_affine;

/* Returns the region of all elements of an array, whose shape must be static. */
hlo_region hlo_whole_region(const shape *s);
/* Returns true if the elements of this region of v are known to be a function of their index as hlo_affine describes
 * it, and sets *out to that function.  The region must not be empty. */
bool hlo_affine_of(hlo_value v, const hlo_region *region, hlo_affine *out);

#endif
