/* loop_fusion.c - loop fusions: elementwise operations and data movement that read one another or the same array
 * become one kernel.
 *
 * Order: best after simplify, transpose_sinking, epilogue and reduce_fusion; other fusions are left alone.  Keeps:
 * results, bit for bit.  Only broadcasts, iotas and scalar constants are computed more than once, and cheap operations
 * at most twice.  Breaks: the assumption that every instruction is outside of a fusion.  A fusion has kind loop, and
 * one result or several of equal size.  It has only operations that target->takes_fused allows. */
#include "hlo/passes/fusion/fuse.h"

status pass_loop_fusion(hlo_module *m, pass_context *c, bool *changed) {
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, c->scratch, false, &n);
  for (uint32_t k = 0; k < n; k++) {
    TRY(hlo_fuse_groups(walked[k], c, HLO_FUSION_LOOP, changed));
  }
  return NULL;
}
