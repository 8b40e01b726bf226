/* eval.h - the reference evaluator: what every HLO operation means, in plain C.
 *
 * It is the oracle of the tests and what folds constants.  Floats accumulate in f64 and are rounded once; f16 and
 * the smaller floats are computed in f32 and rounded after each operation; transcendental functions are libm's in
 * f64.  Modules must have passed the verifier; the contents of arrays may be anything.
 *
 * Memory comes from arenas: call inside guard_run.  The budget of the arena that is passed in bounds memory and
 * time (STATUS_RESOURCE).  Thread-safe as long as nobody changes the module. */
#ifndef BACKEND_REF_EVAL_H
#define BACKEND_REF_EVAL_H

#include "hlo/ir/builder.h"
#include "hlo/ir/ir.h"

/* Returns true if the operation can be evaluated with these element types and static shapes, and everything that it
 * calls as well. */
bool ref_supports(const hlo_instr *i);

/* Evaluates one instruction, also one that calls computations, into results[n_results].  Their elements live on
 * `a`, or are those of an operand or a constant (reshape, copy): keep the operands as long as the results. */
STATUS_MUST_USE status ref_eval(const hlo_instr *i, const literal *operands, arena *a, literal *results);

/* Evaluates a computation: args[n_params] to roots[n_roots].  Intermediate values are freed as soon as they have
 * been used; the roots live as long as `a`, the arguments and the module.  A failure leaves what was allocated
 * to `a`. */
STATUS_MUST_USE status ref_eval_computation(const hlo_computation *c, const literal *args, arena *a, literal *roots);

/* For hlo_builder.eval and the folding pass: an instruction whose operands are constants.  Gives up
 * (STATUS_UNSUPPORTED) where folding does not pay: large broadcasts, iotas and random bits, which are constants in a
 * compact form already, contractions that take long, and what calls computations: they may loop. */
hlo_eval_fn ref_fold;

#endif
