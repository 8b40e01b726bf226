/* reduce_fusion.c - what feeds a reduction, and what follows it element by element, runs in its kernel.
 *
 * Order: before loop_fusion, which would take the producers.  Keeps: results (f32 sums in the
 * same order); nothing expensive is computed twice.  Breaks: the assumption that an instruction stands at top
 * level. A fusion has kind input; several reductions of arrays of one size that read the same array, or whose
 * results are combined, share one.  Only what target->takes_fused allows is fused. */
#include "hlo/passes/fuse.h"

status pass_reduce_fusion(hlo_module *m, pass_context *c, bool *changed) {
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, c->scratch, false, &n);
  for (uint32_t k = 0; k < n; k++) {
    TRY(hlo_fuse_clusters(walked[k], c, HLO_FUSION_INPUT, changed));
  }
  return NULL;
}
