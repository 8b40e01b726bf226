/* affine.h - integer arrays whose elements step evenly: start + step[0] * i[0] + step[1] * i[1] + ...  That
 * is how exporters spell ranges of indices, and it is found from iota and what is computed of it, so that no
 * such array has to be in memory. */
#ifndef HLO_ANALYSIS_AFFINE_H
#define HLO_ANALYSIS_AFFINE_H

#include "hlo/ir/ir.h"

/* Some of an array's elements: along dimension d those at first[d] + stride[d] * i with 0 <= i < count[d]. */
typedef struct hlo_region {
  int64_t first[SHAPE_MAX_RANK], stride[SHAPE_MAX_RANK], count[SHAPE_MAX_RANK];
} hlo_region;

/* The integer at i of a region.  low, high: the smallest and the largest in the region. */
typedef struct hlo_affine {
  int64_t start, step[SHAPE_MAX_RANK]; /* step is 0 where count is 1, and behind the array's rank */
  int64_t low, high;
} hlo_affine;

/* All elements of an array; its shape is static. */
hlo_region hlo_whole_region(const shape *s);
/* Returns true if the region of v, which has elements, is known to be affine. */
bool hlo_affine_of(hlo_value v, const hlo_region *region, hlo_affine *out);

#endif
