/* composites.h - the composites of composites.def and the functions that build their decompositions. */
#ifndef HLO_IR_COMPOSITES_H
#define HLO_IR_COMPOSITES_H

#include "hlo/ir/builder.h"

typedef enum hlo_composite_id {
#define COMPOSITE(id, ...) HLO_COMPOSITE_##id,
#include "hlo/ir/composites.def"
#undef COMPOSITE
  HLO_COMPOSITE_COUNT
} hlo_composite_id;

typedef struct hlo_composite_info {
  const char *name;
  int version;
  const char *operands, *ints, *floats, *results; /* see composites.def */
} hlo_composite_info;
const hlo_composite_info *hlo_composite_get_info(hlo_composite_id id);
/* Returns HLO_COMPOSITE_COUNT if there is no such composite. */
hlo_composite_id hlo_composite_from_name(const char *name);

/* --- recurrent cells: lstm, gru, rnn --- */

/* The values of the attribute `activation`; a and b are alpha and beta. */
typedef enum hlo_activation {
  HLO_ACT_SIGMOID,
  HLO_ACT_TANH,
  HLO_ACT_RELU,
  HLO_ACT_AFFINE,           /* a * x + b */
  HLO_ACT_LEAKY_RELU,       /* x >= 0 ? x : a * x */
  HLO_ACT_THRESHOLDED_RELU, /* x >= a ? x : 0 */
  HLO_ACT_SCALED_TANH,      /* a * tanh(b * x) */
  HLO_ACT_HARD_SIGMOID,     /* min(max(a * x + b, 0), 1) */
  HLO_ACT_ELU,              /* x >= 0 ? x : a * (exp(x) - 1) */
  HLO_ACT_SOFTSIGN,         /* x / (1 + |x|) */
  HLO_ACT_SOFTPLUS,         /* log(1 + exp(x)) */
  HLO_ACT_COUNT
} hlo_activation;

typedef enum hlo_direction { HLO_DIR_FORWARD, HLO_DIR_REVERSE, HLO_DIR_BIDIRECTIONAL } hlo_direction;

typedef struct hlo_cell_activation {
  hlo_activation kind;
  double alpha, beta;
} hlo_cell_activation;

/* One layer of a recurrent network.  Shapes are as in composites.def, all of one type, f32 or f64; lengths is s32 or
 * s64. */
typedef struct hlo_recurrence {
  hlo_composite_id cell; /* LSTM, GRU or RNN */
  hlo_direction direction;
  bool variant; /* lstm: the forget gate is 1 - the input gate; gru: linear_before_reset */
  double clip;  /* clips the inputs of activations, except lstm's cell state, to [-clip, clip]; 0 means not at all */
  hlo_cell_activation activations[6]; /* the activations of each direction: 3 for lstm, 2 for gru, 1 for rnn */
  hlo_value x, w, r, bias, lengths, initial_h, initial_c, peephole; /* a value that is left out has def NULL */
} hlo_recurrence;

int hlo_cell_gates(hlo_composite_id cell);
int hlo_cell_activations(hlo_composite_id cell);
/* Builds a composite for the layer.  out is y, y_h and, for lstm, y_c.  A time step after the end of a
 * sequence keeps the state, and its y is 0.  The reverse direction starts at the end of each sequence. */
void hlo_build_recurrence(hlo_builder *b, const hlo_recurrence *r, hlo_value *out);

#endif
