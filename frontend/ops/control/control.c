/* control.c - the importer of If. */
#include "base/dim/guard.h"
#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"
#include "frontend/import/scope.h"

/* Imports both branches as computations with the same parameters and equal result shapes. */
static status import_branches(onnx_node *n, onnx_captures *captures, hlo_computation **branches) {
  static const char *const names[] = {"then_branch", "else_branch"};
  for (int k = 0; k < 2; k++) {
    TRY(status_prefix(onnx_import_body(n, names[k], 0, NULL, NULL, -1, captures, &branches[k]), "%s", names[k]));
    CHECK_THAT(branches[k]->n_roots == n->n_out, STATUS_INVALID_MODEL, "%s has %u outputs but the node has %u",
               names[k], branches[k]->n_roots, n->n_out);
  }
  for (uint32_t k = 0; k < n->n_out; k++) {
    const shape *a = hlo_shape(branches[0]->roots[k]), *b = hlo_shape(branches[1]->roots[k]);
    CHECK_THAT(onnx_shapes_equal(n, a, b), STATUS_UNSUPPORTED,
               "output %u is %s in then_branch but %s in else_branch: its shape depends on data", k,
               SHAPE_STR(onnx_dims(n), a), SHAPE_STR(onnx_dims(n), b));
  }
  onnx_finish_body(captures, 0, branches[0]);
  onnx_finish_body(captures, 0, branches[1]);
  return NULL;
}

status onnx_import_if(onnx_node *n) {
  TRY(onnx_need_one_element(n, 0, "cond"));
  hlo_value cond = hlo_reshape(n->b, n->in[0], 0, NULL);
  const literal *known = n->b->error ? NULL : hlo_literal(cond);
  if (known) {
    const char *taken = literal_i64(known, 0) ? "then_branch" : "else_branch";
    return status_prefix(onnx_import_inline(n, taken, 0, NULL, (hlo_value){0}, n->n_out, n->out), "%s", taken);
  }
  /* If cond can be computed from the contents of inputs, these contents are required and the node is imported again,
   * with the taken branch only: the other branch would bring its own guards, and kernels that are never called. */
  CHECK_THAT(!onnx_require_told_inputs(n, 0), STATUS_UNSUPPORTED | STATUS_ABOUT_VALUE, "cond is not a constant");
  onnx_captures captures = {0};
  hlo_computation *branches[2];
  onnx_requirements requirements = n->scope->importer->requirements;
  status s = import_branches(n, &captures, branches);
  if (s) { /* a branch that is not taken may be invalid for these shapes; if the condition were a constant, that branch
              would not be imported */
    n->scope->importer->requirements = requirements;
    onnx_require_constant(n, 0);
    status unsupported = status_error(STATUS_UNSUPPORTED, "cond is not a constant, and %s", status_message(s));
    status_free(s);
    return unsupported;
  }
  hlo_conditional(n->b, cond, 2, branches, captures.n, captures.outer, n->out);
  return NULL;
}
