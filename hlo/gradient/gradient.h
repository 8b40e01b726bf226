/* gradient.h - reverse-mode differentiation: instructions that compute derivatives, behind those they come from.
 *
 * Rules (rules.h) are local: each turns the gradients of an instruction's results into those of its operands.
 * What they make is ordinary HLO, so it can be differentiated again, and passes see nothing special.  Where the
 * derivative jumps:
 *   maximum, minimum   an operand that is not differentiated loses a tie (relu'(0) = 0), two that are share it equally;
 *   reduce, window     equals share the gradient of a reduction; of a window the first of them gets it;
 *   abs, sign, clamp  0 where they bend; integers, comparisons and rounding have no derivative: nothing flows through
 *   them. What flows back as exactly 0 stays 0, also where the local derivative is infinite: so a select hides what it
 *   did not take. */
#ifndef HLO_GRADIENT_GRADIENT_H
#define HLO_GRADIENT_GRADIENT_H

#include "hlo/ir/builder.h"

/* d sum over k of sum(dys[k] * ys[k]) / d xs: dys[k] has ys[k]'s shape; no value: ys[k] does not count.  dxs[k] is no
 * value where no y depends on x.  The xs are independent: nothing flows through one to what it is computed from; each
 * is the result of an instruction with one.  All values are floats and stand before the builder's place.  Composites on
 * the way are inlined. */
void hlo_gradients(hlo_builder *b, uint32_t n_ys, const hlo_value *ys, const hlo_value *dys, uint32_t n_xs,
                   const hlo_value *xs, hlo_value *dxs);

/* Returns true if there is a rule for the operation.  Operations whose results are not floats need none. */
bool hlo_has_gradient(hlo_op op);

#endif
