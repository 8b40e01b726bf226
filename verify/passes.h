/* passes.h - finds the first pass, in the order in which passes were applied, that changed what a module computes. */
#ifndef VERIFY_PASSES_H
#define VERIFY_PASSES_H

#include "verify/verify.h"

/* Finds by bisection the first application of a pass after which the module computes other results.  want[] are the
 * results of the module `imported` for `inputs`.  Each step evaluates, by the reference evaluator, the module as it was
 * after some application of a pass.  If the results after the last pass differ from want[], *found is set to true and
 * *out is filled in with cause VERIFY_PASS; otherwise *found is set to false. */
STATUS_MUST_USE status verify_passes(arena *a, const hlo_module *imported, verify_import_fn *import, void *import_data,
                                     const literal *inputs, const literal *want, const verify_options *o, bool *found,
                                     verify_finding *out);

#endif
