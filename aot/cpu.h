/* cpu.h - the check, when an object is initialised, that the processor has the features its code needs. */
#ifndef AOT_CPU_H
#define AOT_CPU_H

#include "aot/host.h"

/* Writes an internal function i1() that returns whether this processor has all features of the target.  A processor
 * whose CPUID has no leaf 7 counts as if it lacked them.  Returns NULL if nothing is checked: the target needs no
 * features, or is not x86-64. */
LLVMValueRef aot_write_cpu_check(aot_host *h);

#endif
