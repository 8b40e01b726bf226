/* program.h - compiles modules for the target that is verified, runs them, and evaluates them on the
 * reference: what the searches for a cause have in common. */
#ifndef VERIFY_PROGRAM_H
#define VERIFY_PROGRAM_H

#include "runtime/exec/executable.h"
#include "verify/compare.h"
#include "verify/verify.h"

/* Compiles m, which changes, and makes it ready; the executable goes with the arena. */
STATUS_MUST_USE status verify_make(const verify_options *o, const rt_compile_options *compile, arena *a, hlo_module *m,
                                   rt_executable **out, rt_report *report);

/* Runs it; results are on the arena.  drive may be NULL. */
STATUS_MUST_USE status verify_run(const verify_options *o, const rt_executable *e, const literal *inputs,
                                  status (*drive)(void *data, const rt_sequence *body, rt_run *r), void *drive_data,
                                  arena *a, literal *results);

/* Whether two modules' entries give the same for these inputs, as far as sums in another order allow: 2^11
 * units of the largest element, and 16 times what 4 units more or less of each input and each constant
 * change. */
STATUS_MUST_USE status verify_results_differ(arena *a, const hlo_module *m, const literal *inputs, const literal *want,
                                             const literal *got, bool *differ, verify_difference *out);

#endif
