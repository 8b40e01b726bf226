/* assign_kernels.c - the target chooses the config of each instruction.
 *
 * Requires: a module that the target's other passes have prepared.  Keeps: everything but configs; but a computation
 * that several loops or branches call is copied for each of them.  Breaks: nothing. */
#include "hlo/ir/flatten_calls.h"
#include "hlo/passes/pass.h"

status pass_assign_kernels(hlo_module *m, pass_context *c, bool *changed) {
  if (!c->target || !c->target->assign_kernels) {
    return NULL;
  }
  hlo_flatten_calls(m); /* so that each call of a computation has configs of its own */
  *changed = m->kernels_assigned = true;
  return c->target->assign_kernels(c->target->data, m);
}
