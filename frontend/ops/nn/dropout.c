/* dropout.c - the importer of Dropout. */
#include "frontend/import/import_helpers.h"
#include "frontend/import/random_stream.h"

typedef struct dropout {
  hlo_value ratio;    /* the fraction to drop, a float scalar; def is NULL if nothing is dropped */
  hlo_value training; /* whether anything is dropped, pred[]; true if def is NULL */
} dropout;

/* Reads the attributes of versions before 12.  Versions 1 and 6 drop elements unless is_test is set; versions 7 and 10
 * never do. */
static status read_old(onnx_node *n, dropout *d) {
  float ratio;
  bool is_test = true;
  TRY(onnx_attr_float(n->proto, "ratio", 0.5f, &ratio));
  if (n->since < 7) {
    TRY(onnx_attr_bool(n->proto, "is_test", false, &is_test));
  }
  if (!is_test && ratio != 0) {
    d->ratio = hlo_scalar(n->b, DTYPE_F32, ratio);
  }
  return NULL;
}

/* If the scalar v is a constant, sets *value to it and returns true, otherwise returns false. */
static bool is_known(const onnx_node *n, hlo_value v, double *value) {
  const literal *known = n->b->error ? NULL : hlo_literal(v);
  *value = known ? literal_f64(known, 0) : 0;
  return known;
}

static void read_inputs(onnx_node *n, dropout *d) {
  double value;
  if (!onnx_has_in(n, 2)) {
    return;
  }
  d->training = onnx_scalar_input(n, 2, "training_mode");
  if (is_known(n, d->training, &value)) {
    if (value == 0) {
      return;
    }
    d->training = (hlo_value){0};
  }
  d->ratio = onnx_has_in(n, 1) ? onnx_scalar_input(n, 1, "ratio") : hlo_scalar(n->b, DTYPE_F32, 0.5);
  if (is_known(n, d->ratio, &value) && value == 0) {
    d->ratio = (hlo_value){0};
  }
}

/* Makes numbers of 53 random bits as numpy does: the upper 27 bits of the first 32-bit word, then the upper 26 bits of
 * the second.  `words` has the first word in its lower half; the result has the bits at the top. */
static hlo_value numpy_bits(hlo_builder *b, hlo_value words) {
  hlo_value first = onnx_binary_scalar(b, HLO_SHL, words, 32), second = onnx_binary_scalar(b, HLO_SHR, words, 32);
  first = onnx_binary_scalar(b, HLO_AND, first, 0x1p64 - 0x1p37);
  return hlo_binary(b, HLO_OR, first, onnx_binary_scalar(b, HLO_SHL, second, 5));
}

/* Returns a random number in [0, 1) for each element of the data.  If the node has the attribute `seed`, the numbers
 * are those of numpy's RandomState(seed).uniform, which ONNX's test cases expect. */
static status draw(onnx_node *n, hlo_value *out) {
  hlo_builder *b = n->b;
  const shape *x = onnx_in_shape(n, 0);
  int64_t seed;
  if (n->since < 12 || !onnx_attr_has(n->proto, "seed")) {
    onnx_stream s = onnx_stream_make(n, (hlo_value){0});
    *out = onnx_stream_uniform(b, &s, shape_with_type(*x, x->type == DTYPE_F64 ? DTYPE_F64 : DTYPE_F32));
    return NULL;
  }
  TRY(onnx_attr_int(n->proto, "seed", 0, &seed));
  onnx_stream s = onnx_stream_make(n, hlo_scalar_int(b, DTYPE_U64, seed));
  hlo_value words = hlo_rng(b, onnx_stream_seed(b, &s), HLO_MT19937, shape_with_type(*x, DTYPE_U64));
  *out = onnx_unit_interval(b, numpy_bits(b, words));
  return NULL;
}

static status drop(onnx_node *n, const dropout *d, hlo_value *mask) {
  hlo_builder *b = n->b;
  hlo_value u, ratio = d->ratio;
  TRY(draw(n, &u));
  if (d->training.def) { /* without training the ratio is 0, which keeps all elements and scales them by 1 */
    ratio = hlo_select(b, d->training, ratio, hlo_like(b, ratio, 0));
  }
  *mask = hlo_compare(b, HLO_GE, u, hlo_broadcast_to(b, hlo_convert(b, ratio, hlo_type(u)), hlo_shape(u)));
  hlo_value x = onnx_widen(b, n->in[0]), one = hlo_scalar(b, hlo_type(x), 1);
  hlo_value left = hlo_binary(b, HLO_SUB, one, hlo_convert(b, ratio, hlo_type(x)));
  x = onnx_op_stretched(b, HLO_MUL, x, hlo_binary(b, HLO_DIV, one, left));
  n->out[0] = hlo_convert(b, hlo_select(b, *mask, x, hlo_like(b, x, 0)), hlo_type(n->in[0]));
  return NULL;
}

/* The mask output has the data's type before version 10, since then bool. */
status onnx_import_dropout(onnx_node *n) {
  dropout d = {0};
  shape s = *onnx_in_shape(n, 0);
  hlo_value mask = hlo_splat(n->b, shape_with_type(s, DTYPE_PRED), 1);
  n->out[0] = n->in[0];
  if (n->since < 12) {
    TRY(read_old(n, &d));
  } else {
    read_inputs(n, &d);
  }
  if (d.ratio.def) {
    TRY(drop(n, &d, &mask));
  }
  if (onnx_has_out(n, 1)) {
    n->out[1] = hlo_convert(n->b, mask, n->since >= 10 ? DTYPE_PRED : (dtype)s.type);
  }
  return NULL;
}
