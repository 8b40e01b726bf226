/* target.h - the cpu target, which runs programs on this machine's processor. */
#ifndef BACKEND_CPU_RUNTIME_TARGET_H
#define BACKEND_CPU_RUNTIME_TARGET_H

#include "runtime/program/target.h"

extern const rt_target cpu_target;

#endif
