/* loop.c - Loop and Scan: a `while` that counts steps, or the steps one after the other.
 *
 * A `while` carries, in this order: step, trip count and condition where they are no constants, states, scan
 * outputs, scan inputs, captures.  Its body inlines the ONNX body between slicing the scan inputs and storing
 * the scan outputs. */
#include <inttypes.h>
#include <string.h>

#include "frontend/import/import_helpers.h"
#include "frontend/import/sequence.h"
#include "frontend/import/sizes.h"

/* A loop of constant length whose states change their shapes is written out, up to this many steps; Scan 8 up
 * to this many batches. */
enum { MAX_UNROLLED = 256 };

typedef struct scan_axis {
  int64_t axis;
  bool backward;
} scan_axis;

typedef struct loop {
  onnx_node *n;
  bool is_scan;          /* otherwise the body takes iteration and condition, and gives a condition */
  hlo_computation *body; /* NULL until imported */
  onnx_captures captures;
  uint32_t n_states, n_in, n_out; /* n_in, n_out: scan inputs (of Scan the last is ours: its steps) and outputs */
  hlo_value *states;
  hlo_value *scans;    /* the inputs, whole */
  scan_axis *in, *out; /* out[k].axis is set once the rank is known */
  int64_t trip;        /* -1: `trip_value` says; INT64_MAX: no limit */
  hlo_value trip_value;
  hlo_value length;  /* Scan 8: how many of the `trip` steps are made; no value: all */
  hlo_value cond;    /* no value: true */
  bool may_end;      /* by its condition, before the trip count is reached */
  bool ignores_cond; /* Loop without condition: what the body says does not matter */
} loop;

static uint32_t first_state(const loop *l) { return l->is_scan ? 0 : 2; }
static uint32_t first_root(const loop *l) { return l->is_scan ? 0 : 1; }

/* dims of s without `axis`. */
static shape without_axis(const shape *s, int64_t axis) {
  shape r = *s;
  memmove(r.dims + axis, r.dims + axis + 1, (size_t)(r.rank - axis - 1) * sizeof *r.dims);
  r.dims[--r.rank] = 0;
  return r;
}

static shape with_axis(const shape *s, int64_t axis, dim extent) {
  shape r = *s;
  memmove(r.dims + axis + 1, r.dims + axis, (size_t)(r.rank - axis) * sizeof *r.dims);
  r.dims[axis] = extent;
  r.rank++;
  return r;
}

/* Lists may be empty, and then NULL. */
static void copy_values(hlo_value *to, const hlo_value *from, uint32_t n) {
  if (n) {
    memcpy(to, from, n * sizeof *to);
  }
}

/* --- the body --- */

/* Its parameters' shapes, and what is known of the condition inside: it is true, or the step would not run.
 */
static status import_body(loop *l, const literal *iteration) {
  onnx_node *n = l->n;
  uint32_t count = first_state(l) + l->n_states + l->n_in, at = 0;
  shape *shapes = ARENA_NEW_N(n->arena, shape, count + 1);
  const literal **known = ARENA_NEW_N(n->arena, const literal *, count + 1);
  literal yes = literal_scalar_i64(n->arena, DTYPE_PRED, 1);
  if (!l->is_scan) {
    known[0] = iteration;
    known[1] = &yes;
    shapes[at++] = shape_scalar(DTYPE_S64);
    shapes[at++] = shape_scalar(DTYPE_PRED);
  }
  for (uint32_t k = 0; k < l->n_states; k++) {
    CHECK_THAT(!onnx_is_sequence(l->states[k]), STATUS_UNSUPPORTED,
               "state %u is a sequence, and the steps are too many, or not known, to be written out", k);
    shapes[at++] = *hlo_shape(l->states[k]);
  }
  for (uint32_t k = 0; k < l->n_in; k++) {
    shapes[at++] = without_axis(hlo_shape(l->scans[k]), l->in[k].axis);
  }
  l->captures = (onnx_captures){0};
  int64_t step = l->is_scan ? (int64_t)count - 1 : 0;
  TRY(status_prefix(onnx_import_body(n, "body", count, shapes, known, step, &l->captures, &l->body), "body"));
  onnx_finish_body(&l->captures, count, l->body);
  return NULL;
}

/* Counts of the body's inputs and outputs; n_out follows. */
static status check_arity(loop *l) {
  const Onnx__GraphProto *g;
  TRY(onnx_attr_graph(l->n->proto, "body", &g));
  uint32_t inputs = first_state(l) + l->n_states + l->n_in, roots = first_root(l) + l->n_states;
  CHECK_THAT(g->n_input == inputs, STATUS_INVALID_MODEL, "body has %zu inputs instead of %u", g->n_input, inputs);
  CHECK_THAT(g->n_output >= roots, STATUS_INVALID_MODEL, "body has %zu outputs; at least %u are needed", g->n_output,
             roots);
  l->n_out = (uint32_t)g->n_output - roots;
  CHECK_THAT(l->n->n_out <= l->n_states + l->n_out, STATUS_INVALID_MODEL, "the node has %u outputs but body gives %u",
             l->n->n_out, l->n_states + l->n_out);
  return NULL;
}

/* What the body gives as its next condition, where that is a constant. */
static const literal *known_condition(const loop *l) { return l->is_scan ? NULL : hlo_literal(l->body->roots[0]); }

static bool stays_true(const loop *l) {
  const literal *c = known_condition(l);
  return l->is_scan || l->ignores_cond || (c && shape_elements(&c->shape) == 1 && literal_i64(c, 0) != 0);
}

static status check_condition(const shape *c) {
  CHECK_THAT(c->kind == SHAPE_ARRAY && c->type == DTYPE_PRED && shape_elements(c) == 1, STATUS_INVALID_MODEL,
             "body gives %s as condition; one bool is needed", SHAPE_STR(NULL, c));
  return NULL;
}

/* A state keeps its type, also where steps are written out and its shape may change. */
static status check_state_type(uint32_t k, const shape *before, const shape *after) {
  CHECK_THAT(before->type == after->type && before->kind == after->kind, STATUS_INVALID_MODEL,
             "state %u is %s before a step but %s after it", k, SHAPE_STR(NULL, before), SHAPE_STR(NULL, after));
  return NULL;
}

static status check_states(const loop *l) {
  if (!l->is_scan) {
    TRY(check_condition(hlo_shape(l->body->roots[0])));
  }
  for (uint32_t k = 0; k < l->n_states; k++) {
    const shape *before = hlo_shape(l->states[k]), *after = hlo_shape(l->body->roots[first_root(l) + k]);
    TRY(check_state_type(k, before, after));
    CHECK_THAT(shape_equal(before, after), STATUS_UNSUPPORTED,
               "state %u is %s before a step but %s after it: its shape depends on data", k, SHAPE_STR(NULL, before),
               SHAPE_STR(NULL, after));
  }
  return NULL;
}

/* Room for the scan outputs of all steps that a loop may make, which its condition may end before. */
enum { MAX_SCAN_BOUND = 16 * 1024 * 1024 };

/* Scan outputs have room for every step from the start: their number, or a bound of it, must be known. */
static status scan_output_shapes(loop *l, shape *shapes) {
  l->may_end = !stays_true(l) || l->cond.def;
  for (uint32_t k = 0; k < l->n_out; k++) {
    const shape *s = hlo_shape(l->body->roots[first_root(l) + l->n_states + k]);
    CHECK_THAT(s->kind == SHAPE_ARRAY && s->rank < SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "scan output %u of %s", k,
               SHAPE_STR(NULL, s));
    CHECK_THAT(l->trip >= 0 && l->trip <= DIM_MAX, STATUS_UNSUPPORTED,
               "there are scan outputs and the trip count is not a constant: their shape depends on data");
    TRY(onnx_axis(l->out[k].axis, s->rank + 1, &l->out[k].axis));
    shapes[k] = with_axis(s, l->out[k].axis, l->trip);
    TRY(shape_check(&shapes[k], "a scan output"));
    CHECK_THAT(!l->may_end || shape_bytes(&shapes[k]) <= MAX_SCAN_BOUND, STATUS_UNSUPPORTED,
               "scan output %u would be %s if the condition did not end the loop", k, SHAPE_STR(NULL, &shapes[k]));
  }
  return NULL;
}

/* --- as a while --- */

typedef struct carry { /* values outside or parameters inside */
  hlo_value step, trip, cond;
  hlo_value *states, *outs, *scans, *captures;
} carry;

static uint32_t carry_size(const loop *l) { return 3 + l->n_states + l->n_out + l->n_in + l->captures.n; }

static carry carry_new(const loop *l) {
  hlo_value *all = ARENA_NEW_N(l->n->arena, hlo_value, carry_size(l));
  carry c = {.states = all};
  c.outs = c.states + l->n_states;
  c.scans = c.outs + l->n_out;
  c.captures = c.scans + l->n_in;
  return c;
}

static uint32_t carry_pack(const loop *l, const carry *c, hlo_value *out) {
  uint32_t n = 0, rest = l->n_states + l->n_out + l->n_in + l->captures.n;
  out[n++] = c->step;
  if (c->trip.def) {
    out[n++] = c->trip;
  }
  if (c->cond.def) {
    out[n++] = c->cond;
  }
  for (uint32_t k = 0; k < rest; k++) { /* the lists lie one behind the other */
    out[n++] = c->states[k];
  }
  return n;
}

static carry carry_parameters(const loop *l, const carry *outside, hlo_computation *c) {
  carry in = carry_new(l);
  uint32_t rest = l->n_states + l->n_out + l->n_in + l->captures.n;
  in.step = hlo_result(hlo_parameter(c, *hlo_shape(outside->step)), 0);
  if (outside->trip.def) {
    in.trip = hlo_result(hlo_parameter(c, *hlo_shape(outside->trip)), 0);
  }
  if (outside->cond.def) {
    in.cond = hlo_result(hlo_parameter(c, *hlo_shape(outside->cond)), 0);
  }
  for (uint32_t k = 0; k < rest; k++) {
    in.states[k] = hlo_result(hlo_parameter(c, *hlo_shape(outside->states[k])), 0);
  }
  return in;
}

static void build_condition(hlo_builder *b, const loop *l, const carry *outside) {
  carry in = carry_parameters(l, outside, b->computation);
  hlo_value limit = in.trip.def ? in.trip : hlo_scalar_int(b, DTYPE_S64, l->trip);
  hlo_value go = hlo_compare(b, HLO_LT, in.step, limit);
  go = in.cond.def ? hlo_binary(b, HLO_AND, go, in.cond) : go;
  hlo_set_roots(b->computation, 1, &go);
}

/* s64[rank] that is 0 but at `axis`. */
static hlo_value starts_at(hlo_builder *b, const loop *l, const scan_axis *axis, int rank, const carry *at) {
  hlo_value parts[SHAPE_MAX_RANK], step = at->step;
  if (axis->backward) {
    hlo_value steps = at->trip.def ? at->trip : hlo_scalar_int(b, DTYPE_S64, l->trip);
    step = hlo_binary(b, HLO_SUB, onnx_plus(b, steps, -1), step);
  }
  hlo_value zero = hlo_s64s(b, (int64_t[]){0}, 1);
  for (int k = 0; k < rank; k++) {
    parts[k] = k == axis->axis ? hlo_reshape(b, step, 1, (dim[]){1}) : zero;
  }
  return hlo_concatenate(b, (uint32_t)rank, parts, 0);
}

static hlo_value read_element(hlo_builder *b, const loop *l, uint32_t k, hlo_value whole, const carry *at) {
  shape s = *hlo_shape(whole);
  shape element = without_axis(&s, l->in[k].axis);
  hlo_value starts = starts_at(b, l, &l->in[k], s.rank, at);
  s.dims[l->in[k].axis] = 1;
  return hlo_reshape(b, hlo_dynamic_slice(b, whole, starts, s.dims), element.rank, element.dims);
}

static hlo_value store_element(hlo_builder *b, const loop *l, uint32_t k, hlo_value whole, hlo_value element,
                               const carry *at) {
  shape s = with_axis(hlo_shape(element), l->out[k].axis, 1);
  hlo_value starts = starts_at(b, l, &l->out[k], s.rank, at);
  return hlo_dynamic_update_slice(b, whole, hlo_reshape(b, element, s.rank, s.dims), starts);
}

static void build_body(hlo_builder *b, const loop *l, const carry *outside) {
  carry in = carry_parameters(l, outside, b->computation), next = in;
  uint32_t n_args = 0, first = first_root(l);
  hlo_value *args = ARENA_NEW_N(l->n->arena, hlo_value, l->body->n_params + 1);
  hlo_value *roots = ARENA_NEW_N(l->n->arena, hlo_value, l->body->n_roots + 1);
  if (!l->is_scan) {
    args[n_args++] = in.step;
    args[n_args++] = hlo_scalar_int(b, DTYPE_PRED, 1);
  }
  for (uint32_t k = 0; k < l->n_states; k++) {
    args[n_args++] = in.states[k];
  }
  for (uint32_t k = 0; k < l->n_in; k++) {
    args[n_args++] = read_element(b, l, k, in.scans[k], &in);
  }
  for (uint32_t k = 0; k < l->captures.n; k++) {
    args[n_args++] = in.captures[k];
  }
  next.step = hlo_binary(b, HLO_ADD, in.step, hlo_scalar_int(b, DTYPE_S64, 1));
  if (b->error) {
    return;
  }
  hlo_inline(next.step.def, l->body, args, roots);
  next.cond = in.cond.def ? hlo_reshape(b, roots[0], 0, NULL) : in.cond;
  next.states = ARENA_NEW_N(l->n->arena, hlo_value, carry_size(l));
  copy_values(next.states, roots + first, l->n_states);
  for (uint32_t k = 0; k < l->n_out; k++) {
    next.states[l->n_states + k] = store_element(b, l, k, in.outs[k], roots[first + l->n_states + k], &in);
  }
  copy_values(next.states + l->n_states + l->n_out, in.scans, l->n_in + l->captures.n);
  hlo_value *all = ARENA_NEW_N(l->n->arena, hlo_value, carry_size(l));
  uint32_t n = carry_pack(l, &next, all);
  hlo_set_roots(b->computation, n, all);
}

/* results: states, then scan outputs. */
static status build_while(loop *l, hlo_value *results) {
  hlo_builder *b = l->n->b;
  shape *shapes = ARENA_NEW_N(l->n->arena, shape, l->n_out + 1);
  TRY(check_states(l));
  TRY(scan_output_shapes(l, shapes));
  carry c = carry_new(l);
  c.step = hlo_scalar_int(b, DTYPE_S64, 0);
  c.trip = l->length.def ? l->length : l->trip < 0 ? l->trip_value : c.trip;
  if (l->may_end) {
    c.cond = l->cond.def ? l->cond : hlo_scalar_int(b, DTYPE_PRED, 1);
  }
  copy_values(c.states, l->states, l->n_states);
  for (uint32_t k = 0; k < l->n_out; k++) {
    c.outs[k] = hlo_splat(b, shapes[k], 0);
  }
  copy_values(c.scans, l->scans, l->n_in);
  copy_values(c.captures, l->captures.outer, l->captures.n);
  if (l->trip == 0 || b->error) {
    copy_values(results, c.states, l->n_states + l->n_out);
    return NULL;
  }
  hlo_builder condition = hlo_builder_inner(b, "loop_condition"), body = hlo_builder_inner(b, "loop_body");
  build_condition(&condition, l, &c);
  build_body(&body, l, &c);
  TRY(hlo_builder_take_error(&condition));
  TRY(hlo_builder_take_error(&body));
  hlo_value *init = ARENA_NEW_N(l->n->arena, hlo_value, carry_size(l));
  hlo_value *out = ARENA_NEW_N(l->n->arena, hlo_value, carry_size(l));
  uint32_t n = carry_pack(l, &c, init);
  hlo_while(b, condition.computation, body.computation, n, init, out);
  copy_values(results, out + (n - (l->n_states + l->n_out + l->n_in + l->captures.n)), l->n_states + l->n_out);
  for (uint32_t k = 0; l->may_end && k < l->n_out; k++) {
    onnx_dynamic_dim_set(l->n->scope->importer, results[l->n_states + k], (int)l->out[k].axis, out[0]);
  }
  return NULL;
}

/* --- step by step --- */

/* Loop with a constant trip count: results as above.  The condition must be known after every step. */
static status unroll(loop *l, hlo_value *results) {
  onnx_node *n = l->n;
  hlo_builder *b = n->b;
  uint32_t n_inputs = 2 + l->n_states, n_roots = 1 + l->n_states + l->n_out;
  hlo_value *inputs = ARENA_NEW_N(n->arena, hlo_value, n_inputs), *roots = ARENA_NEW_N(n->arena, hlo_value, n_roots);
  hlo_value *elements = ARENA_NEW_N(n->arena, hlo_value, l->n_out * (size_t)l->trip + 1);
  uint32_t steps = 0;
  copy_values(inputs + 2, l->states, l->n_states);
  for (bool more = true; more && steps < l->trip;) {
    inputs[0] = hlo_scalar_int(b, DTYPE_S64, steps);
    inputs[1] = hlo_scalar_int(b, DTYPE_PRED, 1);
    TRY(status_prefix(onnx_import_inline(n, "body", n_inputs, inputs, inputs[0], n_roots, roots), "body, step %u",
                      steps));
    TRY(hlo_builder_take_error(b));
    TRY(check_condition(hlo_shape(roots[0])));
    for (uint32_t k = 0; k < l->n_states; k++) {
      TRY(check_state_type(k, hlo_shape(inputs[2 + k]), hlo_shape(roots[1 + k])));
    }
    for (uint32_t k = 0; k < n_roots; k++) {
      CHECK_THAT(k <= l->n_states || !onnx_is_sequence(roots[k]), STATUS_INVALID_MODEL,
                 "scan output %u is a sequence; a tensor is needed", k - 1 - l->n_states);
      CHECK_THAT(!onnx_require_sizes(n->scope->importer, roots[k]), STATUS_UNSUPPORTED,
                 "the size of output %u of body depends on data", k);
    }
    copy_values(inputs + 2, roots + 1, l->n_states);
    for (uint32_t k = 0; k < l->n_out; k++) {
      elements[k * (size_t)l->trip + steps] = onnx_insert_dim(b, roots[1 + l->n_states + k], 0);
    }
    const literal *go = hlo_literal(roots[0]);
    steps++;
    CHECK_THAT(go || l->ignores_cond || steps == l->trip, STATUS_UNSUPPORTED,
               "values change their shapes from step to step and the condition depends on data");
    more = l->ignores_cond || (go && shape_elements(&go->shape) == 1 && literal_i64(go, 0) != 0);
  }
  copy_values(results, inputs + 2, l->n_states);
  for (uint32_t k = 0; k < l->n_out; k++) {
    results[l->n_states + k] = hlo_concatenate(b, steps, elements + k * (size_t)l->trip, 0);
  }
  return NULL;
}

static void give_results(onnx_node *n, const hlo_value *results) { copy_values(n->out, results, n->n_out); }

/* --- Loop --- */

/* Inputs M and cond: each may be absent, a scalar or one element. */
static status read_limits(loop *l) {
  onnx_node *n = l->n;
  l->trip = INT64_MAX;
  if (onnx_has_in(n, 0)) {
    const shape *s = onnx_in_shape(n, 0);
    CHECK_THAT(shape_elements(s) == 1, STATUS_INVALID_MODEL, "M is %s; it must have one element", SHAPE_STR(NULL, s));
    const literal *known = hlo_literal(n->in[0]);
    l->trip = known ? literal_i64(known, 0) : -1;
    l->trip = known && l->trip < 0 ? 0 : l->trip;
    l->trip_value = hlo_convert(n->b, hlo_reshape(n->b, n->in[0], 0, NULL), DTYPE_S64);
  }
  l->ignores_cond = !onnx_has_in(n, 1);
  if (!l->ignores_cond) {
    const shape *s = onnx_in_shape(n, 1);
    CHECK_THAT(shape_elements(s) == 1, STATUS_INVALID_MODEL, "cond is %s; it must have one element",
               SHAPE_STR(NULL, s));
    const literal *known = hlo_literal(n->in[1]);
    l->cond = known ? l->cond : hlo_reshape(n->b, n->in[1], 0, NULL);
    l->trip = known && !literal_i64(known, 0) ? 0 : l->trip;
  }
  CHECK_THAT(onnx_has_in(n, 0) || !l->ignores_cond, STATUS_UNSUPPORTED,
             "neither M nor cond is given: the loop never ends");
  return NULL;
}

/* Does the graph, or a graph in it, hold a loop or a call of a function?  Such a body is never written out:
 * nested ones would multiply. */
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

/* Can the steps be written out, because they are few and their number is known? */
static bool can_unroll(const loop *l) {
  const Onnx__AttributeProto *body = onnx_attr_find(l->n->proto, "body");
  return l->trip >= 1 && l->trip <= MAX_UNROLLED && !l->cond.def && body && body->g &&
         !holds_loop(l->n->scope->importer->frame->model, body->g);
}

/* No step, and nothing but states, of which a body in HLO cannot have all: they stay what they are. */
static bool keeps_sequences(const loop *l) {
  bool sequences = false;
  for (uint32_t k = 0; k < l->n_states; k++) {
    sequences |= onnx_is_sequence(l->states[k]);
  }
  return sequences && l->trip == 0 && l->n_out == 0;
}

/* The steps could be written out if their number were known; otherwise they run one by one. */
static void run_interpreted(const onnx_node *n) {
  bool trip = onnx_require_inputs(n, 0), cond = onnx_require_inputs(n, 1);
  if (!trip && !cond) {
    onnx_require_interpreter(n);
  }
}

status onnx_import_loop(onnx_node *n) {
  CHECK_THAT(n->n_in >= 2, STATUS_INVALID_MODEL, "%u inputs; M and cond are needed, if only by name", n->n_in);
  loop l = {.n = n, .n_states = n->n_in - 2};
  l.states = ARENA_NEW_N(n->arena, hlo_value, l.n_states + 1);
  for (uint32_t k = 0; k < l.n_states; k++) {
    CHECK_THAT(onnx_has_in(n, 2 + k), STATUS_INVALID_MODEL, "state %u is missing", k);
    l.states[k] = n->in[2 + k];
  }
  TRY(read_limits(&l));
  TRY(check_arity(&l));
  l.out = ARENA_NEW_N(n->arena, scan_axis, l.n_out + 1);
  hlo_value *results = ARENA_NEW_N(n->arena, hlo_value, l.n_states + l.n_out + 1);
  status s = NULL;
  if (keeps_sequences(&l)) {
    copy_values(results, l.states, l.n_states);
  } else if (l.trip != 1 || !can_unroll(&l)) {
    s = import_body(&l, NULL);
    s = s ? s : build_while(&l, results);
  }
  if (can_unroll(&l) && (l.trip == 1 || (s && status_get_code(s) == STATUS_UNSUPPORTED))) {
    status_free(s);
    s = unroll(&l, results);
  }
  if (s && status_get_code(s) == STATUS_UNSUPPORTED) {
    run_interpreted(n);
  }
  give_results(n, results);
  return s;
}

/* --- Scan --- */

/* One entry each of an attribute with `count` directions or axes; absent: all 0. */
static status read_scan_list(const onnx_node *n, const char *name, uint32_t count, int64_t *out) {
  const int64_t *values;
  size_t given;
  TRY(onnx_attr_ints(n->proto, name, &values, &given));
  CHECK_THAT(given == 0 || given == count, STATUS_INVALID_MODEL, "%s has %zu entries instead of %u", name, given,
             count);
  for (uint32_t k = 0; k < count; k++) {
    out[k] = given ? values[k] : 0;
  }
  return NULL;
}

static status read_scan_axes(const onnx_node *n, const char *axes, const char *directions, uint32_t count,
                             scan_axis *out) {
  int64_t *values = ARENA_NEW_N(n->arena, int64_t, 2 * (size_t)count + 1);
  if (axes) {
    TRY(read_scan_list(n, axes, count, values));
  }
  TRY(read_scan_list(n, directions, count, values + count));
  for (uint32_t k = 0; k < count; k++) {
    CHECK_THAT((values[count + k] | 1) == 1, STATUS_INVALID_MODEL, "%s[%u] is %" PRId64 "; it must be 0 or 1",
               directions, k, values[count + k]);
    out[k] = (scan_axis){values[k], values[count + k] != 0};
  }
  return NULL;
}

/* Splits the node's inputs from `first` on; reads what both forms of Scan have. */
static status read_scan(onnx_node *n, uint32_t first, loop *l) {
  int64_t m;
  TRY(onnx_attr_required(n->proto, "num_scan_inputs"));
  TRY(onnx_attr_int(n->proto, "num_scan_inputs", 0, &m));
  CHECK_THAT(m >= 1 && m <= (int64_t)n->n_in - first, STATUS_INVALID_MODEL,
             "num_scan_inputs is %" PRId64 "; it must be within 1..%u", m, n->n_in - first);
  *l = (loop){.n = n, .is_scan = true, .n_in = (uint32_t)m, .n_states = n->n_in - first - (uint32_t)m};
  for (uint32_t k = first; k < n->n_in; k++) {
    CHECK_THAT(onnx_has_in(n, k), STATUS_INVALID_MODEL, "input %u is missing", k);
  }
  l->states = ARENA_NEW_N(n->arena, hlo_value, l->n_states + 1);
  l->scans = ARENA_NEW_N(n->arena, hlo_value, l->n_in + 1);
  l->in = ARENA_NEW_N(n->arena, scan_axis, l->n_in + 1);
  TRY(check_arity(l));
  l->out = ARENA_NEW_N(n->arena, scan_axis, l->n_out + 1);
  return NULL;
}

/* The scan axes agree on the number of steps. */
static status count_steps(loop *l) {
  for (uint32_t k = 0; k < l->n_in; k++) {
    const shape *s = hlo_shape(l->scans[k]);
    TRY(status_prefix(onnx_axis(l->in[k].axis, s->rank, &l->in[k].axis), "scan input %u, %s", k, SHAPE_STR(NULL, s)));
    dim steps = s->dims[l->in[k].axis];
    CHECK_THAT(k == 0 || steps == l->trip, STATUS_INVALID_MODEL,
               "scan input %u has %" PRId64 " steps but input 0 has %" PRId64, k, steps, l->trip);
    l->trip = steps;
  }
  return NULL;
}

/* How many steps batch i makes; the standard leaves open what scan outputs hold behind them: 0, from the start. */
static hlo_value length_of(const loop *l, dim i) {
  hlo_builder *b = l->n->b;
  hlo_value n = hlo_convert(b, onnx_pick(b, l->n->in[0], 0, i), DTYPE_S64);
  return hlo_clamp(b, hlo_scalar_int(b, DTYPE_S64, 0), n, hlo_scalar_int(b, DTYPE_S64, l->trip));
}

/* One more scan input: the number of each step, from `first` on.  Random operators want it; unused, it dies. */
static void set_step_input(loop *l, uint32_t k, int64_t first) {
  hlo_builder *b = l->n->b;
  hlo_value numbers = hlo_iota(b, shape_make(DTYPE_S64, 1, &l->trip), 0);
  l->scans[k] = onnx_binary_scalar(b, HLO_ADD, numbers, (double)first);
  l->in[k] = (scan_axis){0};
  l->n_in = k + 1;
}

/* Version 8: every array has a batch in front, the scan axis is 1; the batches are scanned one after the
 * other. */
static status import_scan_8(onnx_node *n) {
  loop l;
  hlo_builder *b = n->b;
  TRY(read_scan(n, 1, &l));
  TRY(read_scan_axes(n, NULL, "directions", l.n_in, l.in));
  for (uint32_t k = 1; k < n->n_in; k++) {
    TRY(onnx_need_rank(n, k, "an input", k > l.n_states ? 2 : 1, SHAPE_MAX_RANK));
    CHECK_THAT(onnx_in_shape(n, k)->dims[0] == onnx_in_shape(n, 1)->dims[0], STATUS_INVALID_MODEL,
               "input %u is %s but input 1 is %s; the batches differ", k, SHAPE_STR(NULL, onnx_in_shape(n, k)),
               SHAPE_STR(NULL, onnx_in_shape(n, 1)));
  }
  dim batch = onnx_in_shape(n, 1)->dims[0];
  TRY(onnx_need_dims(n, 0, "sequence_lens", 1, &batch));
  CHECK_THAT(batch >= 1 && batch <= MAX_UNROLLED, STATUS_UNSUPPORTED, "a batch of %" PRId64 "; 1..%d are supported",
             batch, MAX_UNROLLED);
  uint32_t n_results = l.n_states + l.n_out, n_scans = l.n_in;
  hlo_value *results = ARENA_NEW_N(n->arena, hlo_value, n_results + 1);
  hlo_value *parts = ARENA_NEW_N(n->arena, hlo_value, (size_t)batch * n_results + 1);
  for (dim i = 0; i < batch; i++) {
    for (uint32_t k = 0; k < l.n_states + n_scans; k++) {
      *(k < l.n_states ? &l.states[k] : &l.scans[k - l.n_states]) = onnx_pick(b, n->in[1 + k], 0, i);
    }
    if (i == 0) {
      TRY(count_steps(&l));
    }
    set_step_input(&l, n_scans, i * l.trip);
    if (i == 0) {
      TRY(import_body(&l, NULL));
    }
    if (onnx_has_in(n, 0)) {
      l.length = length_of(&l, i);
    }
    TRY(build_while(&l, results));
    for (uint32_t k = 0; k < n_results; k++) {
      parts[k * (size_t)batch + (size_t)i] = onnx_insert_dim(b, results[k], 0);
    }
  }
  for (uint32_t k = 0; k < n->n_out; k++) {
    n->out[k] = hlo_concatenate(b, (uint32_t)batch, parts + k * (size_t)batch, 0);
  }
  return NULL;
}

static status import_scan_9(onnx_node *n) {
  loop l;
  TRY(read_scan(n, 0, &l));
  TRY(read_scan_axes(n, "scan_input_axes", "scan_input_directions", l.n_in, l.in));
  TRY(read_scan_axes(n, "scan_output_axes", "scan_output_directions", l.n_out, l.out));
  copy_values(l.states, n->in, l.n_states);
  copy_values(l.scans, n->in + l.n_states, l.n_in);
  TRY(count_steps(&l));
  set_step_input(&l, l.n_in, 0);
  TRY(import_body(&l, NULL));
  hlo_value *results = ARENA_NEW_N(n->arena, hlo_value, l.n_states + l.n_out + 1);
  TRY(build_while(&l, results));
  give_results(n, results);
  return NULL;
}

status onnx_import_scan(onnx_node *n) {
  status s = n->since == 8 ? import_scan_8(n) : import_scan_9(n);
  if (s && n->since > 8 && status_get_code(s) == STATUS_UNSUPPORTED) {
    onnx_require_interpreter(n);
  }
  return s;
}
