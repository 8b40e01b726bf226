/* plans.h - the plans of a module's contractions and attentions, ready for code generation.
 *
 * An instruction's config (hlo_instr.config) names the algorithm and its parameters.  The plan is what the algorithm
 * makes of them for the instruction's shapes and weights.  Plans are built before buffers are assigned and do not
 * change afterwards. */
#ifndef BACKEND_CPU_ALGORITHMS_PLANS_H
#define BACKEND_CPU_ALGORITHMS_PLANS_H

#include "backend_cpu/algorithms/algorithm.h"

typedef struct cpu_plans cpu_plans;

/* Returns an empty set of plans, which lives on the arena. */
cpu_plans *cpu_plans_create(arena *a, const cpu_problem_options *options);

/* Builds the plan of every instruction that has a config.  Fails if a config cannot be built.  The message names the
 * instruction and, if it has no such config, those that it can have. */
STATUS_MUST_USE status cpu_plans_build_given(cpu_plans *plans, const hlo_module *m);

/* Builds the plans of all other contractions and attentions.  Where a contraction has no config by now, or one that its
 * weights do not allow, the config with the least estimate is taken and written into the instruction.  `threads`
 * threads write the code of library calls and check plans. */
STATUS_MUST_USE status cpu_plans_build_rest(cpu_plans *plans, hlo_module *m, uint32_t threads);

/* Returns the plan of `i`, or NULL if it has none: `i` is neither a contraction nor an attention, or no algorithm can
 * compute it. */
cpu_plan *cpu_plan_of(const cpu_plans *plans, const hlo_instr *i);

#endif
