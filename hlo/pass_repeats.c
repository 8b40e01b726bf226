/* pass_repeats.c - a take that only repeats elements, each as often as the others, becomes a broadcast: what a resize
 * by whole factors to the nearest element is.
 *
 * Requires: nothing; after layout, which carries transposes through takes but not through broadcasts.  Keeps: results,
 * bit for bit. Breaks: nothing. */
#include "hlo/rewrite.h"

/* Number k is k / times, for all of them; 0: they are others. */
static int64_t times_of(const literal *indices, int64_t n) {
  int64_t all = shape_elements(&indices->shape), times = n > 0 ? all / n : 0;
  if (times < 2 || times * n != all) {
    return 0;
  }
  for (int64_t k = 0; k < all; k++) {
    if (literal_i64(indices, k) != k / times) {
      return 0;
    }
  }
  return times;
}

/* x[..., n, ...] as [..., n, 1, ...], stretched, and joined again. */
static bool repeat(hlo_builder *b, hlo_instr *i) {
  const shape *x = hlo_shape(i->operands[0]);
  const literal *indices = hlo_literal(i->operands[1]);
  int64_t dimension, times, apart[SHAPE_MAX_RANK] = {0}, from[SHAPE_MAX_RANK] = {0};
  if (!indices || indices->shape.rank != 1 || !shape_is_static(x) || x->rank == SHAPE_MAX_RANK ||
      !hlo_is_take(i, &dimension) || (times = times_of(indices, x->dims[dimension])) == 0) {
    return false;
  }
  for (int d = 0, to = 0; d < x->rank; d++, to++) {
    from[d] = to;
    apart[to] = x->dims[d];
    if (d == dimension) {
      apart[++to] = times;
    }
  }
  hlo_value stretched = hlo_broadcast(b, i->operands[0], shape_make((dtype)x->type, x->rank + 1, apart), from);
  return hlo_becomes(i, hlo_reshape(b, stretched, i->shapes[0].rank, i->shapes[0].dims));
}

status pass_repeats(hlo_module *m, pass_context *c, bool *changed) {
  static const hlo_rule_row rules[] = {{HLO_GATHER, repeat}, {HLO_OP_COUNT, NULL}};
  return hlo_sweep_module(m, c, rules, changed);
}
