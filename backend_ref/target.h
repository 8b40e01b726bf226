/* target.h - the reference target: programs whose thunks are HLO text, evaluated as it stands.  The proof that a target
 * needs no LLVM, and the oracle that the tests run through the same executables as the others. */
#ifndef BACKEND_REF_TARGET_H
#define BACKEND_REF_TARGET_H

#include "runtime/program/target.h"

extern const rt_target ref_target;     /* "ref"; host memory, one thread */
extern const rt_compiler ref_compiler; /* no passes: what is given is what runs */
extern const rt_backend ref_backend;

#endif
