/* passes.h - which application of a pass changed what a module computes. */
#ifndef VERIFY_PASSES_H
#define VERIFY_PASSES_H

#include "verify/verify.h"

/* Searches by halving, each step a run of the reference evaluator over the module as it was after that
 * application. *out is filled, with cause VERIFY_PASS, if any result of a stage differs from want[]; *found
 * says so. */
STATUS_MUST_USE status verify_passes(arena *a, const hlo_module *imported, verify_import_fn *import, void *import_data,
                                     const literal *inputs, const literal *want, const verify_options *o, bool *found,
                                     verify_finding *out);

#endif
