/* target.h - the reference target: programs whose thunks have HLO text as their config, which the reference evaluator
 * runs.  It shows that a target needs no LLVM, and it is the oracle that the tests run through the same executables as
 * other targets. */
#ifndef BACKEND_REF_TARGET_H
#define BACKEND_REF_TARGET_H

#include "runtime/program/target.h"

extern const rt_target ref_target;     /* named "ref"; uses host memory, and one thread for each thunk */
extern const rt_compiler ref_compiler; /* runs no passes, so that the module runs as it is given */
extern const rt_backend ref_backend;

#endif
