/* program.h - compiles modules for the target that is verified, runs them, and compares their results.  It is used by
 * all searches for a cause. */
#ifndef VERIFY_PROGRAM_H
#define VERIFY_PROGRAM_H

#include "runtime/exec/executable.h"
#include "verify/compare.h"
#include "verify/verify.h"

/* Compiles m, which is changed by this, and loads the program.  The executable is destroyed with the arena. */
STATUS_MUST_USE status verify_make(const verify_options *o, const rt_compile_options *compile, arena *a, hlo_module *m,
                                   rt_executable **out, rt_report *report);

/* Runs the executable; the results are on the arena. drive may be NULL. */
STATUS_MUST_USE status verify_run(const verify_options *o, const rt_executable *e, const literal *inputs,
                                  status (*drive)(void *data, const rt_sequence *body, rt_run *r), void *drive_data,
                                  arena *a, literal *results);

/* Decides whether the results of two modules for these inputs differ by more than can be explained by additions in
 * another order.  Let u be half a unit in the last place of the coarsest floating type among the results of the inexact
 * instructions of m, or of f32 if that is coarser.  Allowed are 2^11 u of the largest element, where u counts as at
 * most 2^-20, plus 16 times the change of the results of m when each input and each constant is changed by 4 u of
 * itself (compare.h). */
STATUS_MUST_USE status verify_results_differ(arena *a, const hlo_module *m, const literal *inputs, const literal *want,
                                             const literal *got, bool *differ, verify_difference *out);

#endif
