/* rnn.c - the importers of LSTM, GRU and RNN, which become composites whose decomposition is a loop
 * (hlo/ir/composites.h). */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "frontend/import/import_helpers.h"
#include "frontend/import/symbolic.h"
#include "hlo/ir/composites.h"

typedef struct layer {
  hlo_recurrence r;
  int n_directions;
  bool batch_first;
  dim steps, batch, inputs, hidden;
} layer;

/* The activation functions, whose names are compared without regard to case.  has_alpha and has_beta say whether the
 * function takes the next entry of activation_alpha and activation_beta; alpha and beta are the defaults. */
static const struct {
  const char *name;
  hlo_activation kind;
  bool has_alpha, has_beta;
  double alpha, beta;
} known_activations[] = {
    {"Sigmoid", HLO_ACT_SIGMOID, false, false, 0, 0},
    {"Tanh", HLO_ACT_TANH, false, false, 0, 0},
    {"Relu", HLO_ACT_RELU, false, false, 0, 0},
    {"Affine", HLO_ACT_AFFINE, true, true, 1, 0},
    {"LeakyRelu", HLO_ACT_LEAKY_RELU, true, false, 0.01f, 0},
    {"ThresholdedRelu", HLO_ACT_THRESHOLDED_RELU, true, false, 1, 0},
    {"ScaledTanh", HLO_ACT_SCALED_TANH, true, true, 1, 1},
    {"HardSigmoid", HLO_ACT_HARD_SIGMOID, true, true, 0.2f, 0.5f},
    {"Elu", HLO_ACT_ELU, true, false, 1, 0},
    {"Softsign", HLO_ACT_SOFTSIGN, false, false, 0, 0},
    {"Softplus", HLO_ACT_SOFTPLUS, false, false, 0, 0},
};

/* The lists activation_alpha and activation_beta, and the positions of the entries that the next function takes. */
typedef struct parameters {
  const float *alpha, *beta;
  size_t n_alpha, n_beta, alpha_at, beta_at;
} parameters;

static status find_activation(const char *name, parameters *p, hlo_cell_activation *out) {
  for (size_t k = 0; k < sizeof known_activations / sizeof *known_activations; k++) {
    if (strcasecmp(name, known_activations[k].name) == 0) {
      *out = (hlo_cell_activation){known_activations[k].kind, known_activations[k].alpha, known_activations[k].beta};
      if (known_activations[k].has_alpha && p->alpha_at < p->n_alpha) {
        out->alpha = p->alpha[p->alpha_at++];
      }
      if (known_activations[k].has_beta && p->beta_at < p->n_beta) {
        out->beta = p->beta[p->beta_at++];
      }
      return NULL;
    }
  }
  return status_error(STATUS_INVALID_MODEL, "activation \"%.40s\" is unknown", name);
}

static status read_activations(const onnx_node *n, layer *l) {
  static const char *const defaults[][3] = {[HLO_COMPOSITE_LSTM] = {"Sigmoid", "Tanh", "Tanh"},
                                            [HLO_COMPOSITE_GRU] = {"Sigmoid", "Tanh"},
                                            [HLO_COMPOSITE_RNN] = {"Tanh"}};
  const char *const *names;
  size_t count;
  parameters p = {0};
  TRY(onnx_attr_strings(n->arena, n->proto, "activations", &names, &count));
  TRY(onnx_attr_floats(n->proto, "activation_alpha", &p.alpha, &p.n_alpha));
  TRY(onnx_attr_floats(n->proto, "activation_beta", &p.beta, &p.n_beta));
  int each = hlo_cell_activations(l->r.cell), want = each * l->n_directions;
  if (l->r.cell == HLO_COMPOSITE_RNN && count == 2 && strcasecmp(names[0], "Tanh") == 0 &&
      strcasecmp(names[1], "Tanh") == 0) {
    count = 0; /* some exporters write the default, two entries of Tanh, even if there is only one direction */
  }
  CHECK_THAT(count == 0 || count == (size_t)want, STATUS_INVALID_MODEL, "activations has %zu entries instead of %d",
             count, want);
  for (int k = 0; k < want; k++) {
    TRY(find_activation(count ? names[k] : defaults[l->r.cell][k % each], &p, &l->r.activations[k]));
  }
  return NULL;
}

static status read_direction(const onnx_node *n, layer *l) {
  static const char *const names[] = {"forward", "reverse", "bidirectional"};
  const char *text;
  TRY(onnx_attr_string(n->arena, n->proto, "direction", "forward", &text));
  for (int k = 0; k < 3; k++) {
    if (strcasecmp(text, names[k]) == 0) {
      l->r.direction = (hlo_direction)k;
      l->n_directions = k == 2 ? 2 : 1;
      return NULL;
    }
  }
  return status_error(STATUS_INVALID_MODEL, "direction is \"%.40s\"; it must be forward, reverse or bidirectional",
                      text);
}

static status read_clip(const onnx_node *n, layer *l) {
  float clip;
  TRY(onnx_attr_float(n->proto, "clip", 0, &clip));
  CHECK_THAT(isfinite(clip) && clip >= 0, STATUS_INVALID_MODEL, "clip is %g; it must be positive", (double)clip);
  l->r.clip = clip;
  return NULL;
}

/* Reads the sizes off the shapes of X and R, and checks the shapes of the other inputs against them. */
static status read_sizes(const onnx_node *n, layer *l) {
  const shape *x = onnx_in_shape(n, 0), *r = onnx_in_shape(n, 2);
  int64_t hidden, gates = hlo_cell_gates(l->r.cell);
  TRY(onnx_need_rank(n, 0, "X", 3, 3));
  TRY(onnx_need_rank(n, 1, "W", 3, 3));
  TRY(onnx_need_rank(n, 2, "R", 3, 3));
  l->steps = x->dims[l->batch_first ? 1 : 0];
  l->batch = x->dims[l->batch_first ? 0 : 1];
  l->inputs = x->dims[2];
  l->hidden = r->dims[2];
  TRY(onnx_attr_int(n->proto, "hidden_size", l->hidden, &hidden));
  CHECK_THAT(hidden == l->hidden && hidden >= 1, STATUS_INVALID_MODEL, "hidden_size is %" PRId64 " but R is %s", hidden,
             SHAPE_STR(onnx_dims(n), r));
  dim d = l->n_directions;
  TRY(onnx_need_dims(n, 1, "W", 3, (dim[]){d, gates * hidden, l->inputs}));
  TRY(onnx_need_dims(n, 2, "R", 3, (dim[]){d, gates * hidden, hidden}));
  TRY(onnx_need_dims(n, 3, "B", 2, (dim[]){d, 2 * gates * hidden}));
  TRY(onnx_need_dims(n, 4, "sequence_lens", 1, &l->batch));
  if (onnx_has_in(n, 4)) {
    TRY(onnx_check_below(n, n->in[4], "sequence_lens", dim_add_const(onnx_dims(n), l->steps, 1)));
  }
  dim state[] = {d, l->batch, hidden}, state_batch_first[] = {l->batch, d, hidden};
  TRY(onnx_need_dims(n, 5, "initial_h", 3, l->batch_first ? state_batch_first : state));
  if (l->r.cell == HLO_COMPOSITE_LSTM) {
    TRY(onnx_need_dims(n, 6, "initial_c", 3, l->batch_first ? state_batch_first : state));
    TRY(onnx_need_dims(n, 7, "P", 2, (dim[]){d, 3 * hidden}));
  }
  return NULL;
}

static const int64_t swap_first[] = {1, 0, 2};

/* Returns input k, converted to the type in which the layer is computed, or no value (def is NULL) if it is absent.  If
 * `swap` is true, its first two dimensions are exchanged. */
static hlo_value operand(const onnx_node *n, uint32_t k, bool swap) {
  if (!onnx_has_in(n, k)) {
    return (hlo_value){0};
  }
  hlo_value x = onnx_widen(n->b, n->in[k]);
  return swap ? hlo_transpose(n->b, x, swap_first) : x;
}

static hlo_value initial_state(const onnx_node *n, const layer *l, uint32_t k) {
  if (onnx_has_in(n, k)) {
    return operand(n, k, l->batch_first);
  }
  dim dims[] = {l->n_directions, l->batch, l->hidden};
  return hlo_splat(n->b, shape_make(dtype_compute_type(hlo_type(n->in[0])), 3, dims), 0);
}

/* Returns the final states y [D, B, H], but 0 for a sequence without steps.  The standard does not say what the state
 * of such a sequence is; ONNX Runtime ignores the initial state. */
static hlo_value final_states(hlo_builder *b, const layer *l, hlo_value y) {
  int64_t batch = 1;
  if (b->error || !l->r.lengths.def) {
    return y;
  }
  hlo_value empty = onnx_compare_scalar(b, HLO_LE, l->r.lengths, 0);
  return hlo_select(b, hlo_broadcast(b, empty, *hlo_shape(y), &batch), hlo_like(b, y, 0), y);
}

/* Sets the outputs in the input's type.  With batch_first, Y is transposed from [T, D, B, H] to [B, T, D, H], and
 * states from [D, B, H] to [B, D, H]. */
static void take_outputs(onnx_node *n, const layer *l, const hlo_value *out, uint32_t n_out) {
  static const int64_t batch_first[] = {2, 0, 1, 3};
  for (uint32_t k = 0; k < n_out && k < n->n_out; k++) {
    hlo_value y = k == 0 ? out[k] : final_states(n->b, l, out[k]);
    if (l->batch_first) {
      y = hlo_transpose(n->b, y, k == 0 ? batch_first : swap_first);
    }
    n->out[k] = hlo_convert(n->b, y, hlo_type(n->in[0]));
  }
}

static status import_layer(onnx_node *n, hlo_composite_id cell, const char *variant) {
  layer l = {.r = {.cell = cell}};
  hlo_value out[3] = {{0}};
  bool lstm = cell == HLO_COMPOSITE_LSTM;
  TRY(read_direction(n, &l));
  TRY(read_activations(n, &l));
  TRY(read_clip(n, &l));
  if (n->since >= 14) {
    TRY(onnx_attr_bool(n->proto, "layout", false, &l.batch_first));
  }
  if (variant) {
    TRY(onnx_attr_bool(n->proto, variant, false, &l.r.variant));
  }
  TRY(read_sizes(n, &l));
  l.r.x = operand(n, 0, l.batch_first);
  l.r.w = operand(n, 1, false);
  l.r.r = operand(n, 2, false);
  l.r.bias = operand(n, 3, false);
  l.r.lengths = onnx_has_in(n, 4) ? n->in[4] : (hlo_value){0};
  l.r.initial_h = initial_state(n, &l, 5);
  if (lstm) {
    l.r.initial_c = initial_state(n, &l, 6);
    l.r.peephole = operand(n, 7, false);
  }
  hlo_build_recurrence(n->b, &l.r, out);
  take_outputs(n, &l, out, lstm ? 3 : 2);
  return NULL;
}

status onnx_import_lstm(onnx_node *n) { return import_layer(n, HLO_COMPOSITE_LSTM, "input_forget"); }
/* The attribute linear_before_reset exists since version 3. */
status onnx_import_gru(onnx_node *n) {
  return import_layer(n, HLO_COMPOSITE_GRU, n->since >= 3 ? "linear_before_reset" : NULL);
}
status onnx_import_rnn(onnx_node *n) { return import_layer(n, HLO_COMPOSITE_RNN, NULL); }
