/* reduce_fusion.c - input fusions: the operations that feed a reduction, and elementwise operations that follow it,
 * run in its kernel.
 *
 * Order: before loop_fusion, which would fuse the operations before a reduction without the reduction.  Keeps: results
 * (f32 sums in the same order); nothing expensive is computed twice.  Breaks: the assumption that every instruction is
 * outside of a fusion.  A fusion has kind input.  Reductions of arrays of the same size that read the same array, or
 * whose results are combined, are in one fusion.  A fusion contains only operations that target->takes_fused allows. */
#include "hlo/passes/fusion/fuse.h"

status pass_reduce_fusion(hlo_module *m, pass_context *c, bool *changed) {
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, c->scratch, false, &n);
  for (uint32_t k = 0; k < n; k++) {
    TRY(hlo_fuse_groups(walked[k], c, HLO_FUSION_INPUT, changed));
  }
  return NULL;
}
