/* target.h - the compiler of the cpu target. */
#ifndef BACKEND_CPU_COMPILE_TARGET_H
#define BACKEND_CPU_COMPILE_TARGET_H

#include "runtime/program/target.h"

extern const rt_compiler cpu_compiler;

#endif
