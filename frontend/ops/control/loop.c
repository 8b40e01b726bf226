/* loop.c - the importer of Loop, which becomes an HLO `while` or is unrolled. */
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/scope.h"
#include "frontend/import/sequence.h"
#include "frontend/import/sizes.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/control/loop_internal.h"
#include "hlo/ir/fold_sizes.h"

/* Unrolls a Loop with a constant trip count; results[] receives the states, then the scan outputs.  The condition must
 * be a constant after every iteration but the last one, unless it is ignored. */
static status unroll(onnx_loop *l, hlo_value *results) {
  onnx_node *n = l->n;
  hlo_builder *b = n->b;
  uint32_t n_inputs = 2 + l->n_states, n_roots = 1 + l->n_states + l->n_out;
  hlo_value *inputs = ARENA_NEW_N(n->arena, hlo_value, n_inputs), *roots = ARENA_NEW_N(n->arena, hlo_value, n_roots);
  hlo_value *elements = ARENA_NEW_N(n->arena, hlo_value, l->n_out * (size_t)l->trip + 1);
  uint32_t steps = 0;
  onnx_copy_values(inputs + 2, l->states, l->n_states);
  for (bool more = true; more && steps < l->trip;) {
    inputs[0] = hlo_scalar_int(b, DTYPE_S64, steps);
    inputs[1] = hlo_scalar_int(b, DTYPE_PRED, 1);
    TRY(status_prefix(onnx_import_inline(n, "body", n_inputs, inputs, inputs[0], n_roots, roots), "body, step %u",
                      steps));
    TRY(hlo_builder_take_error(b));
    TRY(onnx_loop_check_condition(n, hlo_shape(roots[0])));
    for (uint32_t k = 0; k < l->n_states; k++) {
      TRY(onnx_loop_check_state_type(n, k, hlo_shape(inputs[2 + k]), hlo_shape(roots[1 + k])));
    }
    for (uint32_t k = 0; k < n_roots; k++) {
      CHECK_THAT(k <= l->n_states || onnx_is_array(roots[k]), STATUS_INVALID_MODEL,
                 "scan output %u is a sequence; a tensor is needed", k - 1 - l->n_states);
      CHECK_THAT(!onnx_require_sizes(n->scope->importer, roots[k]), STATUS_UNSUPPORTED,
                 "the size of output %u of body depends on data", k);
    }
    onnx_copy_values(inputs + 2, roots + 1, l->n_states);
    for (uint32_t k = 0; k < l->n_out; k++) {
      elements[k * (size_t)l->trip + steps] = onnx_insert_dim(b, roots[1 + l->n_states + k], 0);
    }
    const literal *go = hlo_literal(roots[0]);
    steps++;
    CHECK_THAT(go || l->ignores_cond || steps == l->trip, STATUS_UNSUPPORTED,
               "values change their shapes from step to step and the condition depends on data");
    more = l->ignores_cond || (go && shape_elements(&go->shape) == 1 && literal_i64(go, 0) != 0);
  }
  onnx_copy_values(results, inputs + 2, l->n_states);
  for (uint32_t k = 0; k < l->n_out; k++) {
    results[l->n_states + k] = hlo_concatenate(b, steps, elements + k * (size_t)l->trip, 0);
  }
  return NULL;
}

/* Reads M, which may be a constant, computed from sizes, or computed from data. */
static void read_trip(onnx_loop *l) {
  onnx_node *n = l->n;
  dim elements[HLO_MAX_SIZES];
  const literal *known = hlo_literal(n->in[0]);
  if (known) {
    l->trip = literal_i64(known, 0) < 0 ? 0 : literal_i64(known, 0);
  } else if (hlo_sizes_of(n->in[0], elements) == 1) {
    l->trip = dim_at_most(onnx_dims(n), 0, elements[0]) ? elements[0] : 0;
  } else {
    l->trip_value = hlo_convert(n->b, hlo_reshape(n->b, n->in[0], 0, NULL), DTYPE_S64);
  }
}

/* Reads the inputs M and cond; each may be absent, and otherwise has one element. */
static status read_limits(onnx_loop *l) {
  onnx_node *n = l->n;
  l->trip = INT64_MAX;
  if (onnx_has_in(n, 0)) {
    TRY(onnx_need_one_element(n, 0, "M"));
    read_trip(l);
  }
  l->ignores_cond = !onnx_has_in(n, 1);
  if (!l->ignores_cond) {
    TRY(onnx_need_one_element(n, 1, "cond"));
    const literal *known = hlo_literal(n->in[1]);
    l->cond = known ? l->cond : hlo_reshape(n->b, n->in[1], 0, NULL);
    l->trip = known && !literal_i64(known, 0) ? 0 : l->trip;
  }
  CHECK_THAT(onnx_has_in(n, 0) || !l->ignores_cond, STATUS_UNSUPPORTED,
             "neither M nor cond is given: the loop never ends");
  return NULL;
}

/* Returns true if the graph, or a graph in it, contains a Loop or a function call.  A Loop with such a body
 * is never unrolled, since the numbers of iterations of nested loops would multiply. */
static bool holds_loop(const onnx_model *m, const Onnx__GraphProto *g) {
  for (size_t k = 0; k < g->n_node; k++) {
    const Onnx__NodeProto *node = g->node[k];
    if (strcmp(node->op_type, "Loop") == 0 || onnx_model_callee(m, node)) {
      return true;
    }
    for (size_t a = 0; a < node->n_attribute; a++) {
      if (node->attribute[a]->g && holds_loop(m, node->attribute[a]->g)) {
        return true;
      }
    }
  }
  return false;
}

/* Returns true if the loop can be unrolled: the number of iterations is a small constant, the initial condition is a
 * constant, and the body contains no loops or function calls. */
static bool can_unroll(const onnx_loop *l) {
  const Onnx__AttributeProto *body = onnx_attr_find(l->n->proto, "body");
  return l->trip >= 1 && l->trip <= ONNX_LOOP_MAX_UNROLLED && !l->trip_value.def && !l->cond.def && body && body->g &&
         !holds_loop(l->n->scope->importer->frame->model, body->g);
}

/* Returns true for a loop that makes no iteration and has no scan outputs.  The results of such a loop are the initial
 * states.  Its body need not be one that can be imported: it may carry sequences, or read elements of an array that has
 * none. */
static bool keeps_states(const onnx_loop *l) { return l->trip == 0 && l->n_out == 0; }

/* Requires M and cond as constants, if the import can compute them from inputs of the model or results of earlier
 * segments, because the loop can then be unrolled.  Otherwise the node must be host-interpreted, that is, run by the
 * host between segments. */
static void run_interpreted(const onnx_node *n) {
  bool trip = onnx_require_inputs(n, 0), cond = onnx_require_inputs(n, 1);
  if (!trip && !cond) {
    onnx_require_interpreter(n);
  }
}

/* If sizes that decide how the loop is imported are symbolic, pins them and returns true, since with constant
 * sizes the loop may become a part of the module.  The shapes of the inputs are pinned only if neither M nor cond
 * could be, since a loop with a known number of iterations can be unrolled for any shapes.  After a pin, the
 * requirements are set to `before`, as they were before the failed attempt to import the loop. */
static bool pin_sizes(const onnx_node *n, onnx_requirements before) {
  bool pinned = false;
  if (!onnx_may_pin(n)) {
    return false;
  }
  for (uint32_t k = 0; k < 2; k++) {
    pinned |= onnx_has_in(n, k) && !hlo_literal(n->in[k]) && onnx_pin_value(n, n->in[k]);
  }
  pinned = pinned || onnx_pin_inputs(n);
  if (pinned) {
    n->scope->importer->requirements = before;
  }
  return pinned;
}

status onnx_import_loop(onnx_node *n) {
  CHECK_THAT(n->n_in >= 2, STATUS_INVALID_MODEL, "%u inputs; M and cond are required; an empty name leaves one out",
             n->n_in);
  onnx_loop l = {.n = n, .n_states = n->n_in - 2};
  l.states = ARENA_NEW_N(n->arena, hlo_value, l.n_states + 1);
  onnx_requirements before = n->scope->importer->requirements;
  for (uint32_t k = 0; k < l.n_states; k++) {
    CHECK_THAT(onnx_has_in(n, 2 + k), STATUS_INVALID_MODEL, "state %u is missing", k);
    l.states[k] = n->in[2 + k];
  }
  TRY(read_limits(&l));
  TRY(onnx_loop_check_arity(&l));
  l.out = ARENA_NEW_N(n->arena, onnx_loop_axis, l.n_out + 1);
  hlo_value *results = ARENA_NEW_N(n->arena, hlo_value, l.n_states + l.n_out + 1);
  status s = NULL;
  if (keeps_states(&l)) {
    onnx_copy_values(results, l.states, l.n_states);
  } else if (l.trip != 1 || !can_unroll(&l)) {
    s = onnx_loop_import_body(&l);
    if (!s) {
      onnx_loop_count_trips(&l);
    }
    s = s ? s : onnx_loop_build_while(&l, results);
  }
  if (can_unroll(&l) && (l.trip == 1 || (s && status_get_code(s) == STATUS_UNSUPPORTED))) {
    status_free(s);
    s = unroll(&l, results);
  }
  if (s && status_get_code(s) == STATUS_UNSUPPORTED && !pin_sizes(n, before)) {
    run_interpreted(n);
  }
  onnx_copy_values(n->out, results, n->n_out);
  return s;
}
