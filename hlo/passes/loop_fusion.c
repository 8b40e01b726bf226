/* loop_fusion.c - elementwise operations and data movement that feed or accompany each other become one
 * kernel.
 *
 * Order: best after simplify, transpose_sinking, epilogue and reduce_fusion (it leaves other fusions
 * alone). Keeps: results, bit for bit; nothing but broadcasts, iotas and scalar constants is computed more than once,
 * a cheap operation at most twice.  Breaks: the assumption that an instruction stands at top level. A fusion
 * has kind loop, one result or several of equal size.  Only what target->takes_fused allows is fused. */
#include "hlo/passes/fuse.h"

status pass_loop_fusion(hlo_module *m, pass_context *c, bool *changed) {
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, c->scratch, false, &n);
  for (uint32_t k = 0; k < n; k++) {
    TRY(hlo_fuse_clusters(walked[k], c, HLO_FUSION_LOOP, changed));
  }
  return NULL;
}
