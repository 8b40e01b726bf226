/* gather_to_slice.c - gathers and scatters at indices that step evenly become slices and their updates,
 * and checks of such indices that hold go, before the indices are computed.  Simplify has the same rules
 * (gather.c), but comes after fold, which would make arrays of the indices that are several times as
 * large as what is moved.
 *
 * Order: before fold, with dce between them.  Keeps: results, bit for bit.  Breaks: nothing. */
#include "hlo/passes/simplify/simplify.h"

status pass_gather_to_slice(hlo_module *m, pass_context *c, bool *changed) {
  hlo_eval_fn *eval = c->eval;
  c->eval = NULL; /* slices of constants are fold's, which knows how much it may keep */
  status s = hlo_sweep_module(m, c, hlo_gather_rules, changed);
  c->eval = eval;
  return s;
}
