/* target.h - the reference target: programs whose thunks are HLO text, which is evaluated as it is.  It shows that a
 * target needs no LLVM, and it is the oracle that the tests run through the same executables as other targets. */
#ifndef BACKEND_REF_TARGET_H
#define BACKEND_REF_TARGET_H

#include "runtime/program/target.h"

extern const rt_target ref_target;     /* named "ref"; uses host memory and one thread */
extern const rt_compiler ref_compiler; /* runs no passes, so the given module is what runs */
extern const rt_backend ref_backend;

#endif
