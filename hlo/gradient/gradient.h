/* gradient.h - reverse-mode differentiation: after the instructions to differentiate, adds others that compute their
 * derivatives.
 *
 * Rules (rules.h) are local: each computes the gradients of an instruction's operands from those of its results.  They
 * build ordinary HLO, which can be differentiated again, and which passes need not treat specially.  Where a
 * derivative does not exist, the rules choose:
 *   maximum, minimum   two equal operands share the gradient; if only one of them needs a gradient, that one gets 0
 *                      (relu'(0) = 0);
 *   reduce             all elements equal to a maximum or minimum share its gradient;
 *   reduce-window      the first element equal to the maximum or minimum of a window gets its gradient;
 *   abs, clamp         0 at the points where the slope changes.
 * Integers, comparisons, sign and rounding have no gradient.  A gradient of exactly 0 stays 0 even if the local
 * derivative is infinite, so that a select hides the branch that it does not take. */
#ifndef HLO_GRADIENT_GRADIENT_H
#define HLO_GRADIENT_GRADIENT_H

#include "hlo/ir/builder.h"

/* Sets dxs[k] to the derivative of the sum over j of sum(dys[j] * ys[j]) with respect to xs[k], or to no value (def is
 * NULL) if no y depends on it.  dys[j] has ys[j]'s shape; if its def is NULL, ys[j] is left out of the sum.  The xs are
 * independent variables: gradients do not flow through one to the values from which it is computed.  Each x is the
 * result of an instruction with one result.  All values are floats and come before the builder's position.  Composites
 * that depend on an x are inlined. */
void hlo_gradients(hlo_builder *b, uint32_t n_ys, const hlo_value *ys, const hlo_value *dys, uint32_t n_xs,
                   const hlo_value *xs, hlo_value *dxs);

/* Returns true if the operation can be differentiated: there is a rule for it, or it is a composite, which is
 * inlined.  Operations whose results are not floats need no rule. */
bool hlo_has_gradient(hlo_op op);

#endif
