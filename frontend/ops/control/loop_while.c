/* loop_while.c - imports the body of a Loop or Scan and builds the HLO `while` that runs it.
 *
 * The `while` carries, in this order: the number of the iteration; the trip count, if it depends on data; the
 * condition, if it may end the loop; the states; the scan outputs; the scan inputs; the captures.  Its body slices the
 * scan inputs, inlines the ONNX body, and stores the scan outputs. */
#include <string.h>

#include "base/dim/guard.h"
#include "frontend/import/sequence.h"
#include "frontend/import/sizes.h"
#include "frontend/import/symbolic.h"
#include "frontend/ops/control/loop_internal.h"
#include "hlo/ir/fold_sizes.h"

static uint32_t first_state(const onnx_loop *l) { return l->is_scan ? 0 : 2; }
static uint32_t first_root(const onnx_loop *l) { return l->is_scan ? 0 : 1; }

/* Returns s without the dimension `axis`. */
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

void onnx_copy_values(hlo_value *to, const hlo_value *from, uint32_t n) {
  if (n) {
    memcpy(to, from, n * sizeof *to);
  }
}

/* --- the body --- */

/* Returns the name of the value of which `name` is a copy by Identity nodes of the graph. */
static const char *original(const Onnx__GraphProto *g, const char *name) {
  for (size_t k = g->n_node; k-- > 0;) { /* nodes come after those whose results they read */
    const Onnx__NodeProto *node = g->node[k];
    bool copies = !*node->domain && node->n_input == 1 && node->n_output == 1 && strcmp(node->op_type, "Identity") == 0;
    name = copies && strcmp(node->output[0], name) == 0 ? node->input[0] : name;
  }
  return name;
}

/* Returns the constant that state k is before and after each iteration, or NULL.  TensorFlow's exporter makes all
 * values from outside states, also the steps of slices. */
static const literal *lasting_constant(const onnx_loop *l, const Onnx__GraphProto *g, uint32_t k) {
  const char *result = original(g, g->output[first_root(l) + k]->name);
  return strcmp(result, g->input[first_state(l) + k]->name) == 0 ? hlo_literal(l->states[k]) : NULL;
}

status onnx_loop_import_body(onnx_loop *l) {
  onnx_node *n = l->n;
  const Onnx__GraphProto *g;
  TRY(onnx_attr_graph(n->proto, "body", &g));
  uint32_t count = first_state(l) + l->n_states + l->n_in, at = 0;
  shape *shapes = ARENA_NEW_N(n->arena, shape, count + 1);
  const literal **known = ARENA_NEW_N(n->arena, const literal *, count + 1);
  literal yes = literal_scalar_i64(n->arena, DTYPE_PRED, 1);
  if (!l->is_scan) {
    known[1] = &yes;
    shapes[at++] = shape_scalar(DTYPE_S64);
    shapes[at++] = shape_scalar(DTYPE_PRED);
  }
  for (uint32_t k = 0; k < l->n_states; k++) {
    CHECK_THAT(onnx_is_array(l->states[k]), STATUS_UNSUPPORTED,
               "state %u is a sequence, and the number of steps is not known or too large to unroll the loop", k);
    known[at] = lasting_constant(l, g, k);
    shapes[at++] = *hlo_shape(l->states[k]);
  }
  for (uint32_t k = 0; k < l->n_in; k++) {
    shapes[at++] = without_axis(hlo_shape(l->scans[k]), l->in[k].axis);
  }
  l->captures = (onnx_captures){0};
  int64_t step = l->is_scan ? (int64_t)count - 1 : 0;
  TRY(status_prefix(onnx_import_body(n, "body", count, shapes, known, step, &l->captures, &l->body), "body"));
  onnx_finish_body(&l->captures, count, l->body);
  dim_set_source(onnx_dims(n), n->b->source); /* importing the body has set other sources */
  return NULL;
}

status onnx_loop_check_arity(onnx_loop *l) {
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

/* Returns the condition that a Loop's body returns if it is a constant, otherwise NULL. */
static const literal *known_condition(const onnx_loop *l) { return l->is_scan ? NULL : hlo_literal(l->body->roots[0]); }

static bool stays_true(const onnx_loop *l) {
  const literal *c = known_condition(l);
  return l->is_scan || l->ignores_cond || (c && shape_elements(&c->shape) == 1 && literal_i64(c, 0) != 0);
}

status onnx_loop_check_condition(const onnx_node *n, const shape *c) {
  dim_table *t = onnx_dims(n);
  CHECK_THAT(c->kind == SHAPE_ARRAY && c->type == DTYPE_PRED && dim_equal(t, shape_dim_product(t, c, 0, c->rank), 1),
             STATUS_INVALID_MODEL, "body gives %s as condition; one bool is needed", SHAPE_STR(onnx_dims(n), c));
  return NULL;
}

status onnx_loop_check_state_type(const onnx_node *n, uint32_t k, const shape *before, const shape *after) {
  CHECK_THAT(onnx_may_become(before, after), STATUS_INVALID_MODEL, "state %u is %s before a step but %s after it", k,
             SHAPE_STR(onnx_dims(n), before), SHAPE_STR(onnx_dims(n), after));
  return NULL;
}

/* Returns true if the loop makes no iteration.  If there are scan inputs or outputs, an iteration reads or writes an
 * element of them, and can be built only if these arrays are not empty.  So if the trip count is symbolic, a guard says
 * whether it is 0. */
static bool makes_no_step(const onnx_loop *l) {
  bool elements = l->n_in + l->n_out > 0;
  return !l->trip_value.def && (l->trip == 0 || (elements && dim_equal(onnx_dims(l->n), l->trip, 0)));
}

/* Checks what the body makes of the states.  If no iteration is made, their shapes do not matter. */
static status check_states(const onnx_loop *l) {
  if (!l->is_scan) {
    TRY(onnx_loop_check_condition(l->n, hlo_shape(l->body->roots[0])));
  }
  bool no_step = makes_no_step(l);
  for (uint32_t k = 0; k < l->n_states; k++) {
    const shape *before = hlo_shape(l->states[k]), *after = hlo_shape(l->body->roots[first_root(l) + k]);
    TRY(onnx_loop_check_state_type(l->n, k, before, after));
    CHECK_THAT(no_step || onnx_has_dims(l->n, after, before->rank, before->dims), STATUS_UNSUPPORTED,
               "state %u is %s before a step but %s after it: its shape depends on data", k,
               SHAPE_STR(onnx_dims(l->n), before), SHAPE_STR(onnx_dims(l->n), after));
  }
  return NULL;
}

/* If the condition of a loop may end it early, each of its scan outputs has room for all iterations up to the
 * trip count.  This is the largest size in bytes that such a scan output may have. */
enum { MAX_SCAN_BOUND = 16 * 1024 * 1024 };

/* Returns true if the array, which has room for l->trip iterations, is not larger than MAX_SCAN_BOUND.  This becomes a
 * guard if it is not proven for all sizes. */
static bool is_small(const onnx_loop *l, const shape *s) {
  dim_table *t = onnx_dims(l->n);
  int64_t most = MAX_SCAN_BOUND / (int64_t)dtype_bytes((dtype)s->type);
  if (dim_is_const(l->trip) && l->trip > most) {
    return false; /* exporters write a huge trip count for "no limit", whose product with other extents overflows */
  }
  return dim_at_most(t, shape_dim_product(t, s, 0, s->rank), most);
}

/* Computes the shapes of the scan outputs, and sets l->may_end.  Scan outputs have room for all iterations, so the trip
 * count must not depend on data. */
static status scan_output_shapes(onnx_loop *l, shape *shapes) {
  l->may_end = !stays_true(l) || l->cond.def;
  for (uint32_t k = 0; k < l->n_out; k++) {
    const shape *s = hlo_shape(l->body->roots[first_root(l) + l->n_states + k]);
    CHECK_THAT(s->kind == SHAPE_ARRAY && s->rank < SHAPE_MAX_RANK, STATUS_UNSUPPORTED, "scan output %u of %s", k,
               SHAPE_STR(onnx_dims(l->n), s));
    CHECK_THAT(!l->trip_value.def && l->trip <= DIM_MAX, STATUS_UNSUPPORTED,
               "there are scan outputs and the trip count is not a constant: their shape depends on data");
    TRY(onnx_axis(l->out[k].axis, s->rank + 1, &l->out[k].axis));
    shapes[k] = with_axis(s, l->out[k].axis, l->trip);
    CHECK_THAT(!l->may_end || is_small(l, &shapes[k]), STATUS_UNSUPPORTED,
               "scan output %u would need room for %s, since only the condition ends the loop earlier", k,
               SHAPE_STR(onnx_dims(l->n), &shapes[k]));
    TRY(shape_check(&shapes[k], "a scan output"));
  }
  return NULL;
}

/* The values that the `while` carries: either its operands, or the parameters of its body or condition. */
typedef struct carry {
  hlo_value step, trip, cond;
  hlo_value *states, *outs, *scans, *captures;
} carry;

static uint32_t carry_size(const onnx_loop *l) { return 3 + l->n_states + l->n_out + l->n_in + l->captures.n; }

static carry carry_new(const onnx_loop *l) {
  hlo_value *all = ARENA_NEW_N(l->n->arena, hlo_value, carry_size(l));
  carry c = {.states = all};
  c.outs = c.states + l->n_states;
  c.scans = c.outs + l->n_out;
  c.captures = c.scans + l->n_in;
  return c;
}

static uint32_t carry_pack(const onnx_loop *l, const carry *c, hlo_value *out) {
  uint32_t n = 0, rest = l->n_states + l->n_out + l->n_in + l->captures.n;
  out[n++] = c->step;
  if (c->trip.def) {
    out[n++] = c->trip;
  }
  if (c->cond.def) {
    out[n++] = c->cond;
  }
  for (uint32_t k = 0; k < rest;
       k++) { /* states, outs, scans and captures follow each other in one array (carry_new) */
    out[n++] = c->states[k];
  }
  return n;
}

static carry carry_parameters(const onnx_loop *l, const carry *outside, hlo_computation *c) {
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

/* Returns the largest number of iterations, which may be a value that the `while` carries. */
static hlo_value steps_of(hlo_builder *b, const onnx_loop *l, const carry *at) {
  return at->trip.def ? at->trip : hlo_sizes(b, DTYPE_S64, -1, &l->trip);
}

static void build_condition(hlo_builder *b, const onnx_loop *l, const carry *outside) {
  carry in = carry_parameters(l, outside, b->computation);
  hlo_value go = hlo_compare(b, HLO_LT, in.step, steps_of(b, l, &in));
  go = in.cond.def ? hlo_binary(b, HLO_AND, go, in.cond) : go;
  hlo_set_roots(b->computation, 1, &go);
}

/* Returns the start indices, s64[rank], of the element of the current iteration: its position at the axis,
 * elsewhere 0. */
static hlo_value starts_at(hlo_builder *b, const onnx_loop *l, const onnx_loop_axis *axis, int rank, const carry *at) {
  hlo_value parts[SHAPE_MAX_RANK], step = at->step;
  if (axis->backward) {
    step = hlo_binary(b, HLO_SUB, onnx_plus(b, steps_of(b, l, at), -1), step);
  }
  hlo_value zero = hlo_s64s(b, (int64_t[]){0}, 1);
  for (int k = 0; k < rank; k++) {
    parts[k] = k == axis->axis ? hlo_reshape(b, step, 1, (dim[]){1}) : zero;
  }
  return hlo_concatenate(b, (uint32_t)rank, parts, 0);
}

static hlo_value read_element(hlo_builder *b, const onnx_loop *l, uint32_t k, hlo_value whole, const carry *at) {
  shape s = *hlo_shape(whole);
  shape element = without_axis(&s, l->in[k].axis);
  hlo_value starts = starts_at(b, l, &l->in[k], s.rank, at);
  s.dims[l->in[k].axis] = 1;
  return hlo_reshape(b, hlo_dynamic_slice(b, whole, starts, s.dims), element.rank, element.dims);
}

static hlo_value store_element(hlo_builder *b, const onnx_loop *l, uint32_t k, hlo_value whole, hlo_value element,
                               const carry *at) {
  shape s = with_axis(hlo_shape(element), l->out[k].axis, 1);
  hlo_value starts = starts_at(b, l, &l->out[k], s.rank, at);
  return hlo_dynamic_update_slice(b, whole, hlo_reshape(b, element, s.rank, s.dims), starts);
}

static void build_body(hlo_builder *b, const onnx_loop *l, const carry *outside) {
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
  onnx_copy_values(next.states, roots + first, l->n_states);
  for (uint32_t k = 0; k < l->n_out; k++) {
    next.states[l->n_states + k] = store_element(b, l, k, in.outs[k], roots[first + l->n_states + k], &in);
  }
  onnx_copy_values(next.states + l->n_states + l->n_out, in.scans, l->n_in + l->captures.n);
  hlo_value *all = ARENA_NEW_N(l->n->arena, hlo_value, carry_size(l));
  uint32_t n = carry_pack(l, &next, all);
  hlo_set_roots(b->computation, n, all);
}

status onnx_loop_build_while(onnx_loop *l, hlo_value *results) {
  hlo_builder *b = l->n->b;
  shape *shapes = ARENA_NEW_N(l->n->arena, shape, l->n_out + 1);
  TRY(check_states(l));
  TRY(scan_output_shapes(l, shapes));
  carry c = carry_new(l);
  c.step = hlo_scalar_int(b, DTYPE_S64, 0);
  c.trip = l->length.def ? l->length : l->trip_value;
  if (l->may_end) {
    c.cond = l->cond.def ? l->cond : hlo_scalar_int(b, DTYPE_PRED, 1);
  }
  onnx_copy_values(c.states, l->states, l->n_states);
  for (uint32_t k = 0; k < l->n_out; k++) {
    c.outs[k] = hlo_splat(b, shapes[k], 0);
  }
  onnx_copy_values(c.scans, l->scans, l->n_in);
  onnx_copy_values(c.captures, l->captures.outer, l->captures.n);
  if (b->error || makes_no_step(l)) {
    onnx_copy_values(results, c.states, l->n_states + l->n_out);
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
  onnx_copy_values(results, out + (n - (l->n_states + l->n_out + l->n_in + l->captures.n)), l->n_states + l->n_out);
  for (uint32_t k = 0; l->may_end && k < l->n_out; k++) {
    onnx_dynamic_dim_set(l->n->scope->importer, results[l->n_states + k], (int)l->out[k].axis, out[0]);
  }
  return NULL;
}
