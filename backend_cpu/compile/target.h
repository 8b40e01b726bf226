/* target.h - the compiler of the cpu target. */
#ifndef BACKEND_CPU_COMPILE_TARGET_H
#define BACKEND_CPU_COMPILE_TARGET_H

#include "emit/kernel/compile.h"
#include "runtime/program/target.h"

extern const rt_compiler cpu_compiler;

/* Sets *out to the machine for which code is written: this one, unless the options name another. */
STATUS_MUST_USE status cpu_target_of(arena *a, const rt_compile_options *o, emit_target *out);

/* Compiles like cpu_compiler, but only writes the kernels into this LLVM module, to which the caller adds functions
 * that call them before it makes an object of it (aot/).  The program has no code; a thunk that calls a kernel names
 * its function in the module, which begins with `prefix`.  The options must have own_kernels. */
STATUS_MUST_USE status cpu_compile_into_module(struct hlo_module *m, const rt_compile_options *options, arena *a,
                                               const char *prefix, emit_module *module, rt_program **out,
                                               rt_report *report);

#endif
