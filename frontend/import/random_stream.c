/* random_stream.c - makes the states of HLO's rng-bit-generator for random operators, and converts its bits to random
 * numbers (random_stream.h). */
#include "frontend/import/random_stream.h"

#include <string.h>

#include "frontend/import/import_helpers.h"
#include "frontend/import/scope.h"

/* --- streams --- */

static hlo_value vector(hlo_builder *b, uint32_t n, const hlo_value *scalars) {
  hlo_value parts[3];
  for (uint32_t k = 0; k < n; k++) {
    parts[k] = hlo_reshape(b, scalars[k], 1, (dim[]){1});
  }
  return hlo_concatenate(b, n, parts, 0);
}

static hlo_value u64(hlo_builder *b, uint64_t value) { return hlo_scalar_int(b, DTYPE_U64, (int64_t)value); }

/* Hashes two numbers into one, u64[1]: the first number that the generator Philox gives if its state is these two and
 * 0.  Different pairs practically never have the same hash. */
static hlo_value mix_one(hlo_builder *b, hlo_value key, hlo_value number) {
  hlo_value state = vector(b, 3, (hlo_value[]){key, number, u64(b, 0)});
  return hlo_rng(b, state, HLO_PHILOX, shape_make(DTYPE_U64, 1, (dim[]){1}));
}

static hlo_value mix(hlo_builder *b, hlo_value key, hlo_value number) {
  return hlo_reshape(b, mix_one(b, key, number), 0, NULL);
}

/* Returns the seed of the run: the result of one run-seed instruction in the entry computation, which bodies capture.
 */
static hlo_value run_seed(onnx_scope *s) {
  if (!s->run_seed.def) {
    s->run_seed = s->around ? onnx_scope_capture(s, run_seed(s->around)) : hlo_run_seed(s->b);
  }
  return s->run_seed;
}

/* Returns a hash of the iteration numbers of all enclosing loops, u64[], or no value (def is NULL) outside of
 * loops. */
static hlo_value path(onnx_scope *s) {
  if (!s->path.def && s->frame) {
    (void)onnx_frame_value(s, ONNX_FRAME_STEP, &s->path);
  }
  if (!s->path.def && s->around) {
    hlo_value outer = path(s->around);
    outer = outer.def ? onnx_scope_capture(s, outer) : outer;
    s->path = outer;
    if (s->step.def) {
      s->path = mix(s->b, outer.def ? outer : u64(s->b, 0), hlo_convert(s->b, s->step, DTYPE_U64));
    }
  }
  return s->path;
}

onnx_stream onnx_stream_make(onnx_node *n, hlo_value seed) {
  hlo_builder *b = n->b;
  hlo_value steps = path(n->scope);
  onnx_stream s = {seed, steps.def ? steps : u64(b, 0), steps.def};
  if (!seed.def) {
    hlo_value node = u64(b, hash_mix(n->scope->place, onnx_node_hash(n->proto)));
    s.key = run_seed(n->scope);
    s.number = steps.def ? mix(b, node, steps) : node;
  }
  return s;
}

status onnx_stream_attr(onnx_node *n, onnx_stream *out) {
  float seed;
  uint32_t bits;
  hlo_value key = {0};
  TRY(onnx_attr_float(n->proto, "seed", 0, &seed));
  if (onnx_attr_has(n->proto, "seed")) {
    memcpy(&bits, &seed, sizeof bits);
    key = u64(n->b, bits);
  }
  *out = onnx_stream_make(n, key);
  return NULL;
}

hlo_value onnx_stream_seed(hlo_builder *b, const onnx_stream *s) {
  return s->in_loop ? mix_one(b, s->key, s->number) : vector(b, 1, &s->key);
}

/* --- numbers --- */

hlo_value onnx_stream_bits(hlo_builder *b, const onnx_stream *s, int part, shape bits) {
  hlo_value state = vector(b, 3, (hlo_value[]){s->key, u64(b, (uint64_t)part << 62), s->number});
  return hlo_rng(b, state, HLO_PHILOX, bits);
}

/* Converts the integer in the upper `count` bits of x to a float.  The conversion is exact if the float's significand
 * has at least `count` bits.  `count` is less than the width of x, so the integer can be converted as a signed one, for
 * which processors have an instruction. */
static hlo_value upper_bits(hlo_builder *b, hlo_value x, int count) {
  bool wide = hlo_type(x) == DTYPE_U64;
  x = onnx_binary_scalar(b, HLO_SHR, x, (wide ? 64 : 32) - count);
  x = hlo_bitcast(b, x, wide ? DTYPE_S64 : DTYPE_S32);
  return hlo_convert(b, x, wide ? DTYPE_F64 : DTYPE_F32);
}

hlo_value onnx_unit_interval(hlo_builder *b, hlo_value bits) {
  bool wide = hlo_type(bits) == DTYPE_U64;
  return onnx_times(b, upper_bits(b, bits, wide ? 53 : 24), wide ? 0x1p-53 : 0x1p-24);
}

static shape bits_for(shape x) { return shape_with_type(x, x.type == DTYPE_F64 ? DTYPE_U64 : DTYPE_U32); }

hlo_value onnx_stream_uniform(hlo_builder *b, const onnx_stream *s, shape x) {
  return onnx_unit_interval(b, onnx_stream_bits(b, s, 0, bits_for(x)));
}

/* Returns uniformly distributed numbers in (0, 1], of which the caller can take the logarithm.  Near 0 they are as
 * finely spaced as the bits allow. */
static hlo_value above_zero(hlo_builder *b, hlo_value bits) {
  bool wide = hlo_type(bits) == DTYPE_U64;
  return onnx_times(b, onnx_plus(b, upper_bits(b, bits, wide ? 53 : 31), 0.5), wide ? 0x1p-53 : 0x1p-31);
}

/* Box and Muller's method needs two random numbers, for a radius and an angle.  For f32 they are the two halves of a
 * 64-bit number, for f64 two independent 64-bit numbers of the stream (parts 0 and 1). */
hlo_value onnx_stream_normal(hlo_builder *b, const onnx_stream *s, shape x) {
  hlo_value radius = onnx_stream_bits(b, s, 0, shape_with_type(x, DTYPE_U64)), angle;
  if (x.type == DTYPE_F64) {
    angle = onnx_stream_bits(b, s, 1, shape_with_type(x, DTYPE_U64));
  } else {
    angle = hlo_convert(b, onnx_binary_scalar(b, HLO_SHR, radius, 32), DTYPE_U32);
    radius = hlo_convert(b, radius, DTYPE_U32);
  }
  radius = hlo_unary(b, HLO_SQRT, onnx_times(b, hlo_unary(b, HLO_LOG, above_zero(b, radius)), -2));
  angle = hlo_unary(b, HLO_COS, onnx_times(b, onnx_unit_interval(b, angle), 6.283185307179586));
  return hlo_binary(b, HLO_MUL, radius, angle);
}
