/* gather_to_slice.c - gathers and scatters at indices that step evenly become slices and updates of slices, and checks
 * of such indices that always succeed are removed, before the indices are computed.  Simplify has the same rules
 * (gather.c) but runs after fold, which would compute arrays of indices that are several times as large as the moved
 * data.
 *
 * Order: before fold, with dce between them.  Keeps: results, bit for bit.  Breaks: nothing. */
#include "hlo/passes/simplify/simplify.h"

status pass_gather_to_slice(hlo_module *m, pass_context *c, bool *changed) {
  hlo_eval_fn *eval = c->eval;
  c->eval = NULL; /* slices of constants are left for fold, which limits the size of the results */
  status s = hlo_sweep_module(m, c, hlo_gather_rules, changed);
  c->eval = eval;
  return s;
}
