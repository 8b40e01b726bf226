/* passes.h - finds the application of a pass that changed what a module computes. */
#ifndef VERIFY_PASSES_H
#define VERIFY_PASSES_H

#include "verify/verify.h"

/* Searches by bisection.  In each step the reference evaluator evaluates the module as it was after some application of
 * a pass.  If a result then differs from want[], *found is set and *out is filled in with cause VERIFY_PASS. */
STATUS_MUST_USE status verify_passes(arena *a, const hlo_module *imported, verify_import_fn *import, void *import_data,
                                     const literal *inputs, const literal *want, const verify_options *o, bool *found,
                                     verify_finding *out);

#endif
