/* assign_kernels.c - requires: a module that the target's other passes have prepared.  Keeps everything but configs. */
#include "hlo/ir/flatten_calls.h"
#include "hlo/passes/pass.h"

status pass_assign_kernels(hlo_module *m, pass_context *c, bool *changed) {
  if (!c->target || !c->target->assign_kernels) {
    return NULL;
  }
  hlo_flatten_calls(m); /* a config is decided for each call of a computation */
  *changed = m->kernels_assigned = true;
  return c->target->assign_kernels(c->target->data, m);
}
