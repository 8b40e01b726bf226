/* eval.h - the reference evaluator, which defines what every HLO operation means, in plain C.
 *
 * It is the oracle of the tests, and folds constants.  Sums of floats are accumulated in f64 and rounded once; f16 and
 * smaller floats are computed in f32 and rounded after each operation; transcendental functions are libm's in f64.
 * Modules must have passed the verifier; arrays may contain anything.
 *
 * Memory comes from arenas, so call these functions inside guard_run.  The budget of the arena bounds memory and time
 * (STATUS_RESOURCE).  All functions are thread-safe as long as nobody changes the module. */
#ifndef BACKEND_REF_EVAL_H
#define BACKEND_REF_EVAL_H

#include "hlo/ir/builder.h"
#include "hlo/ir/ir.h"

/* Returns true if the instruction can be evaluated once its sizes are constants: its operation supports the element
 * types, and the same holds for all instructions of the computations that it calls. */
bool ref_supports(const hlo_instr *i);

/* Evaluates one instruction, also one that calls computations, into results[n_results].  The elements of a result are
 * on `a`, or are shared with an operand or a constant (by a reshape or a copy).  So the operands must live as long as
 * the results. */
STATUS_MUST_USE status ref_eval(const hlo_instr *i, const literal *operands, arena *a, literal *results);

/* Evaluates a computation with args[n_params] into roots[n_roots].  Intermediate values are freed after their last use.
 * The roots are valid as long as `a`, the arguments and the module live.  After a failure, what was allocated stays on
 * `a`. */
STATUS_MUST_USE status ref_eval_computation(const hlo_computation *c, const literal *args, arena *a, literal *roots);

/* Returns the number of multiplications of a contraction, whose operands have constant sizes. */
double ref_contraction_work(const hlo_instr *i);
/* ref_fold does not compute contractions with more multiplications. */
enum { REF_MOST_WORK = 1 << 26 };

/* Evaluates an instruction whose operands are constants, for hlo_builder.eval and the folding pass.  Fails with
 * STATUS_UNSUPPORTED for instructions that cannot be evaluated (ref_supports, symbolic dimensions), and for those that
 * are not worth folding: large broadcasts, iotas and random bits, whose results need more memory than the instructions;
 * contractions that take long; and instructions that call computations, since these may loop forever. */
hlo_eval_fn ref_fold;

#endif
