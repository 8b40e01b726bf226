/* composite_recurrence.c - builds lstm, gru and rnn as loops over the time steps of a sequence.
 *
 * One dot before the loop multiplies the inputs of all steps by w.  The biases are added to its result, except one bias
 * of gru that may have to be added inside the loop (input_projection).  The loop carries the step, the values that
 * never change (the body can use only its own parameters), the state, and the outputs so far. */
#include <string.h>

#include "base/dim/guard.h"
#include "hlo/ir/composites.h"
#include "hlo/ir/fold_sizes.h"

int hlo_cell_gates(hlo_composite_id cell) { return cell == HLO_COMPOSITE_LSTM ? 4 : cell == HLO_COMPOSITE_GRU ? 3 : 1; }

int hlo_cell_activations(hlo_composite_id cell) {
  return cell == HLO_COMPOSITE_LSTM ? 3 : cell == HLO_COMPOSITE_GRU ? 2 : 1;
}

typedef struct sizes {
  dim steps, batch, hidden;
} sizes;

/* The values that the loop carries, which are operands of the loop outside and parameters inside: the time step, the
 * hidden state, y so far, the product of the inputs and w, the weights r, the cell state, the hidden gate's recurrent
 * bias (gru), the lengths of the sequences, and the peephole weights. */
enum { STEP, H, Y, XW, R, C, R_BIAS, LENGTHS, PEEPHOLE, N_CARRIED };
typedef hlo_value carried[N_CARRIED];

typedef struct layer { /* one direction of a layer */
  const hlo_recurrence *r;
  const hlo_cell_activation *act;
  bool reverse;
  sizes n;
} layer;

static hlo_value number(hlo_builder *b, hlo_op op, hlo_value x, double y) {
  return hlo_binary(b, op, x, hlo_like(b, x, y));
}
static hlo_value add(hlo_builder *b, hlo_value x, hlo_value y) { return hlo_binary(b, HLO_ADD, x, y); }
static hlo_value mul(hlo_builder *b, hlo_value x, hlo_value y) { return hlo_binary(b, HLO_MUL, x, y); }

static hlo_value negative_or(hlo_builder *b, hlo_value x, hlo_value negative) {
  return hlo_select(b, hlo_compare(b, HLO_GE, x, hlo_like(b, x, 0)), x, negative);
}

static hlo_value softplus(hlo_builder *b, hlo_value x) {
  hlo_value tail = hlo_unary(b, HLO_EXP, hlo_unary(b, HLO_NEG, hlo_unary(b, HLO_ABS, x)));
  return add(b, number(b, HLO_MAX, x, 0), hlo_unary(b, HLO_LOG1P, tail));
}

static hlo_value activate(hlo_builder *b, const layer *l, int k, hlo_value x) {
  const hlo_cell_activation *a = &l->act[k];
  if (l->r->clip > 0 && k != 2) { /* the input of lstm's third activation is the cell state, which is not clipped */
    x = hlo_clamp(b, hlo_scalar(b, hlo_type(x), -l->r->clip), x, hlo_scalar(b, hlo_type(x), l->r->clip));
  }
  switch (a->kind) {
    case HLO_ACT_SIGMOID: return hlo_unary(b, HLO_LOGISTIC, x);
    case HLO_ACT_TANH: return hlo_unary(b, HLO_TANH, x);
    case HLO_ACT_RELU: return number(b, HLO_MAX, x, 0);
    case HLO_ACT_AFFINE: return number(b, HLO_ADD, number(b, HLO_MUL, x, a->alpha), a->beta);
    case HLO_ACT_LEAKY_RELU: return negative_or(b, x, number(b, HLO_MUL, x, a->alpha));
    case HLO_ACT_THRESHOLDED_RELU:
      return hlo_select(b, hlo_compare(b, HLO_GE, x, hlo_like(b, x, a->alpha)), x, hlo_like(b, x, 0));
    case HLO_ACT_SCALED_TANH:
      return number(b, HLO_MUL, hlo_unary(b, HLO_TANH, number(b, HLO_MUL, x, a->beta)), a->alpha);
    case HLO_ACT_HARD_SIGMOID:
      x = number(b, HLO_ADD, number(b, HLO_MUL, x, a->alpha), a->beta);
      return number(b, HLO_MIN, number(b, HLO_MAX, x, 0), 1);
    case HLO_ACT_ELU: return negative_or(b, x, number(b, HLO_MUL, hlo_unary(b, HLO_EXPM1, x), a->alpha));
    case HLO_ACT_SOFTSIGN: return hlo_binary(b, HLO_DIV, x, number(b, HLO_ADD, hlo_unary(b, HLO_ABS, x), 1));
    case HLO_ACT_SOFTPLUS: return softplus(b, x);
    case HLO_ACT_COUNT: break;
  }
  return (hlo_value){0};
}

/* Returns x [M, K] times the transpose of w [N, K]. */
static hlo_value times_transposed(hlo_builder *b, hlo_value x, hlo_value w) {
  int64_t xk = hlo_rank(x) - 1, wk = 1;
  hlo_dot_dims d = {.n_contract = 1, .lhs_contract = &xk, .rhs_contract = &wk};
  return hlo_dot(b, x, w, &d);
}

/* Broadcasts a vector to every row of `to`. */
static hlo_value rows(hlo_builder *b, hlo_value v, hlo_value to) { return hlo_broadcast_to(b, v, hlo_shape(to)); }

/* Returns gates [from, to) along dimension d of x. */
static hlo_value gates(hlo_builder *b, const layer *l, hlo_value x, int d, int from, int to) {
  return hlo_slice_dim(b, x, d, from * l->n.hidden, to * l->n.hidden);
}

/* Returns gate k of the pre-activations x. */
static hlo_value gate(hlo_builder *b, const layer *l, hlo_value x, int k) { return gates(b, l, x, 1, k, k + 1); }

/* Returns gates [from, to) of xt as a matrix.  xt is one time step of the projected inputs (inputs times w),
 * [1, B, G*H] for batch B, G gates and hidden size H.  It is sliced before it is reshaped, so that a kernel
 * which uses the gates can read them in place. */
static hlo_value step_gates(hlo_builder *b, const layer *l, hlo_value xt, int from, int to) {
  return hlo_reshape(b, gates(b, l, xt, 2, from, to), 2, (dim[]){l->n.batch, (to - from) * l->n.hidden});
}

/* --- cells: compute the new state from xt [1, B, G*H] and the old state --- */

static hlo_value rnn_cell(hlo_builder *b, const layer *l, const carried in, hlo_value xt) {
  return activate(b, l, 0, add(b, step_gates(b, l, xt, 0, 1), times_transposed(b, in[H], in[R])));
}

static hlo_value gru_cell(hlo_builder *b, const layer *l, const carried in, hlo_value xt) {
  hlo_value xh = step_gates(b, l, xt, 2, 3), hr, hh;
  if (l->r->variant) {
    hr = times_transposed(b, in[H], in[R]);
    hh = gate(b, l, hr, 2);
    hh = in[R_BIAS].def ? add(b, hh, rows(b, in[R_BIAS], hh)) : hh;
  } else {
    hr = times_transposed(b, in[H], gates(b, l, in[R], 0, 0, 2));
  }
  hlo_value zr = activate(b, l, 0, add(b, step_gates(b, l, xt, 0, 2), gates(b, l, hr, 1, 0, 2)));
  hlo_value z = gate(b, l, zr, 0), reset = gate(b, l, zr, 1);
  if (l->r->variant) {
    hh = mul(b, reset, hh);
  } else {
    hh = times_transposed(b, mul(b, reset, in[H]), gates(b, l, in[R], 0, 2, 3));
  }
  hh = activate(b, l, 1, add(b, xh, hh));
  hlo_value rest = hlo_binary(b, HLO_SUB, hlo_like(b, z, 1), z);
  return add(b, mul(b, rest, hh), mul(b, z, in[H]));
}

/* Adds peephole weight p times c to x, if there are peepholes; p is 0 for the input, 1 for the output, 2 for the
 * forget gate. */
static hlo_value peep(hlo_builder *b, const layer *l, const carried in, hlo_value x, int p, hlo_value c) {
  return in[PEEPHOLE].def ? add(b, x, mul(b, rows(b, gates(b, l, in[PEEPHOLE], 0, p, p + 1), c), c)) : x;
}

static hlo_value lstm_cell(hlo_builder *b, const layer *l, const carried in, hlo_value xt, hlo_value *c) {
  enum { N_GATES = 4 };
  hlo_value hr = times_transposed(b, in[H], in[R]), old = in[C], pre[N_GATES];
  for (int k = 0; k < N_GATES; k++) {
    pre[k] = add(b, step_gates(b, l, xt, k, k + 1), gate(b, l, hr, k));
  }
  hlo_value input = activate(b, l, 0, peep(b, l, in, pre[0], 0, old));
  hlo_value forget = l->r->variant ? hlo_binary(b, HLO_SUB, hlo_like(b, input, 1), input)
                                   : activate(b, l, 0, peep(b, l, in, pre[2], 2, old));
  hlo_value cell = activate(b, l, 1, pre[3]);
  *c = add(b, mul(b, forget, old), mul(b, input, cell));
  hlo_value output = activate(b, l, 0, peep(b, l, in, pre[1], 1, *c));
  return mul(b, output, activate(b, l, 2, *c));
}

/* --- the loop over the steps --- */

static uint32_t pack(const carried in, hlo_value *out) {
  uint32_t n = 0;
  for (int k = 0; k < N_CARRIED; k++) {
    if (in[k].def) {
      out[n++] = in[k];
    }
  }
  return n;
}

/* Returns the vector [step, 0, 0]. */
static hlo_value step_starts(hlo_builder *b, hlo_value step) {
  hlo_value zeros = hlo_s64s(b, (int64_t[]){0, 0}, 2);
  return hlo_concatenate(b, 2, (hlo_value[]){hlo_reshape(b, step, 1, (dim[]){1}), zeros}, 0);
}

/* Returns, for each sequence of the batch, x if the time step lies within the sequence, otherwise `old`. */
static hlo_value within(hlo_builder *b, const carried in, hlo_value step, hlo_value x, hlo_value old) {
  if (!in[LENGTHS].def) {
    return x;
  }
  hlo_value before = hlo_compare(b, HLO_LT, rows(b, step, in[LENGTHS]), in[LENGTHS]);
  return hlo_select(b, hlo_broadcast(b, before, *hlo_shape(x), (int64_t[]){0}), x, old);
}

static void build_body(hlo_builder *b, const layer *l, const carried outside) {
  carried in, next;
  hlo_parameters_like(b->computation, N_CARRIED, outside, in);
  memcpy(next, in, sizeof next);
  const sizes *n = &l->n;
  hlo_value step = in[STEP];
  if (l->reverse) {
    dim last = dim_signed_sub(b->computation->module->dims, n->steps, 1);
    step = hlo_binary(b, HLO_SUB, hlo_sizes(b, DTYPE_S64, -1, &last), step);
  }
  hlo_value starts = step_starts(b, step);
  dim width = hlo_cell_gates(l->r->cell) * n->hidden;
  hlo_value xt = hlo_dynamic_slice(b, in[XW], starts, (dim[]){1, n->batch, width});
  hlo_value h, c = {0};
  switch (l->r->cell) {
    case HLO_COMPOSITE_LSTM: h = lstm_cell(b, l, in, xt, &c); break;
    case HLO_COMPOSITE_GRU: h = gru_cell(b, l, in, xt); break;
    default: h = rnn_cell(b, l, in, xt); break;
  }
  next[STEP] = number(b, HLO_ADD, in[STEP], 1);
  next[H] = within(b, in, step, h, in[H]);
  if (in[C].def) {
    next[C] = within(b, in, step, c, in[C]);
  }
  h = within(b, in, step, h, hlo_like(b, h, 0));
  next[Y] = hlo_dynamic_update_slice(b, in[Y], hlo_reshape(b, h, 3, (dim[]){1, n->batch, n->hidden}), starts);
  hlo_value roots[N_CARRIED];
  uint32_t n_roots = pack(next, roots);
  hlo_set_roots(b->computation, n_roots, roots);
}

static void run_loop(hlo_builder *b, const layer *l, carried state) {
  hlo_builder condition = hlo_builder_inner(b, "steps_left"), body = hlo_builder_inner(b, "step");
  carried in;
  hlo_parameters_like(condition.computation, N_CARRIED, state, in);
  hlo_value left = hlo_compare(&condition, HLO_LT, in[STEP], hlo_sizes(&condition, DTYPE_S64, -1, &l->n.steps));
  hlo_set_roots(condition.computation, 1, &left);
  build_body(&body, l, state);
  if (body.error || condition.error) {
    hlo_fail(b, hlo_builder_take_error(body.error ? &body : &condition));
    status_free(hlo_builder_take_error(&condition));
    return;
  }
  hlo_value init[N_CARRIED], out[N_CARRIED];
  uint32_t n = pack(state, init), at = 0;
  hlo_while(b, condition.computation, body.computation, n, init, out);
  for (int k = 0; k < N_CARRIED; k++) {
    if (state[k].def) {
      state[k] = out[at++];
    }
  }
}

/* Returns x[d, ...], with one dimension less, or no value (def is NULL) if x is absent. */
static hlo_value direction_of(hlo_builder *b, hlo_value x, int d) {
  if (!x.def) {
    return x;
  }
  shape s = *hlo_shape(x);
  x = hlo_slice_dim(b, x, 0, d, d + 1);
  return hlo_reshape(b, x, s.rank - 1, s.dims + 1);
}

/* Returns the product of the inputs of all time steps and w, plus the biases.  A bias that can only be added
 * in the loop is left out; *r_bias is set to it if there is one. */
static hlo_value input_projection(hlo_builder *b, const layer *l, int d, hlo_value *r_bias) {
  hlo_value xw = times_transposed(b, l->r->x, direction_of(b, l->r->w, d)), bias = direction_of(b, l->r->bias, d);
  if (!bias.def) {
    return xw;
  }
  int n = hlo_cell_gates(l->r->cell);
  hlo_value wb = gates(b, l, bias, 0, 0, n), rb = gates(b, l, bias, 0, n, 2 * n);
  /* The reset gate multiplies the hidden gate's recurrent bias, so that bias is added in the loop. */
  if (l->r->cell == HLO_COMPOSITE_GRU && l->r->variant) {
    *r_bias = gates(b, l, rb, 0, 2, 3);
    hlo_value zero = hlo_like(b, *r_bias, 0);
    rb = hlo_concatenate(b, 2, (hlo_value[]){gates(b, l, rb, 0, 0, 2), zero}, 0);
  }
  return add(b, xw, rows(b, add(b, wb, rb), xw));
}

static hlo_value with_direction(hlo_builder *b, hlo_value x, int at) {
  shape s = *hlo_shape(x);
  if (!x.def) {
    return x;
  }
  memmove(s.dims + at + 1, s.dims + at, (size_t)(s.rank - at) * sizeof *s.dims);
  s.dims[at] = 1;
  return hlo_reshape(b, x, s.rank + 1, s.dims);
}

static void build_direction(hlo_builder *b, layer *l, int d, hlo_value *out) {
  const hlo_recurrence *r = l->r;
  carried state = {[STEP] = hlo_scalar_int(b, DTYPE_S64, 0),
                   [R] = direction_of(b, r->r, d),
                   [H] = direction_of(b, r->initial_h, d),
                   [C] = direction_of(b, r->initial_c, d),
                   [PEEPHOLE] = direction_of(b, r->peephole, d)};
  state[XW] = input_projection(b, l, d, &state[R_BIAS]);
  if (r->lengths.def) {
    state[LENGTHS] = hlo_convert(b, r->lengths, DTYPE_S64);
  }
  state[Y] = hlo_splat(b, shape_make(hlo_type(r->x), 3, (dim[]){l->n.steps, l->n.batch, l->n.hidden}), 0);
  /* Without time steps there is no loop, since its body would slice the current time step out of the projected inputs,
   * which are empty. */
  if (!dim_equal(b->computation->module->dims, l->n.steps, 0) && !b->error) {
    run_loop(b, l, state);
  }
  out[0] = with_direction(b, state[Y], 1);
  out[1] = with_direction(b, state[H], 0);
  if (state[C].def) {
    out[2] = with_direction(b, state[C], 0);
  }
}

/* Builds the layer in b's computation, whose parameters are r's values. */
static void build_decomposition(hlo_builder *b, const hlo_recurrence *r) {
  /* The hidden size is taken from the shape of r, where it is a constant; in the shape of the initial state it may be a
   * symbol of the same size. */
  const shape *x = hlo_shape(r->x), *h = hlo_shape(r->r);
  int n_directions = r->direction == HLO_DIR_BIDIRECTIONAL ? 2 : 1;
  uint32_t n_out = r->cell == HLO_COMPOSITE_LSTM ? 3 : 2;
  hlo_value parts[3][2], roots[3];
  for (int d = 0; d < n_directions; d++) {
    hlo_value out[3];
    layer l = {
        .r = r, .act = r->activations + d * hlo_cell_activations(r->cell), .n = {x->dims[0], x->dims[1], h->dims[2]}};
    l.reverse = d == 1 || r->direction == HLO_DIR_REVERSE;
    build_direction(b, &l, d, out);
    for (uint32_t k = 0; k < n_out; k++) {
      parts[k][d] = out[k];
    }
  }
  for (uint32_t k = 0; k < n_out; k++) {
    roots[k] = hlo_concatenate(b, (uint32_t)n_directions, parts[k], k == 0 ? 1 : 0);
  }
  hlo_set_roots(b->computation, n_out, roots);
}

void hlo_build_recurrence(hlo_builder *b, const hlo_recurrence *r, hlo_value *out) {
  hlo_recurrence inside = *r;
  hlo_value *const slots[] = {&inside.x,       &inside.w,         &inside.r,         &inside.bias,
                              &inside.lengths, &inside.initial_h, &inside.initial_c, &inside.peephole};
  enum { N_SLOTS = sizeof slots / sizeof *slots, MAX_ACTIVATIONS = 6 };
  if (b->error) {
    return;
  }
  const hlo_composite_info *info = hlo_composite_get_info(r->cell);
  hlo_builder body = hlo_builder_inner(b, info->name);
  hlo_value args[N_SLOTS];
  uint32_t n = 0;
  int64_t ints[3 + MAX_ACTIVATIONS] = {0, r->direction, r->variant};
  double floats[1 + 2 * MAX_ACTIVATIONS] = {r->clip};
  for (int k = 0; k < N_SLOTS; k++) {
    if (slots[k]->def) {
      ints[0] |= (int64_t)1 << k;
      args[n++] = *slots[k];
      *slots[k] = hlo_result(hlo_parameter(body.computation, *hlo_shape(*slots[k])), 0);
    }
  }
  uint32_t n_act = (uint32_t)hlo_cell_activations(r->cell) * (r->direction == HLO_DIR_BIDIRECTIONAL ? 2 : 1);
  for (uint32_t k = 0; k < n_act; k++) {
    ints[3 + k] = r->activations[k].kind;
    floats[1 + 2 * k] = r->activations[k].alpha;
    floats[2 + 2 * k] = r->activations[k].beta;
  }
  build_decomposition(&body, &inside);
  if (body.error) {
    hlo_fail(b, hlo_builder_take_error(&body));
    return;
  }
  hlo_composite(b, info->name, body.computation, n, args, 3 + n_act, ints, 1 + 2 * n_act, floats, out);
}
