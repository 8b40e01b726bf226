/* machine_modules.h - HLO modules that together use every emitter of emit/, in all element types, for the tests that
 * compile for machines other than this one. */
#ifndef TESTS_TARGET_MACHINE_MODULES_H
#define TESTS_TARGET_MACHINE_MODULES_H

#include "aot/aot.h"
#include "hlo/ir/ir.h"
#include "runtime/program/target.h"

typedef struct machine_module {
  const char *name, *text;
  double tolerance; /* relative to the largest magnitude of a result; 0: the same bits */
  double low, high; /* of inputs of floating types */
} machine_module;

/* Returns the modules, which are on the arena. */
const machine_module *machine_modules(arena *a, uint32_t *n);

/* A machine for which code is compiled. */
typedef struct machine {
  const char *triple, *cpu;
} machine;

/* Compiles a module, whose work is divided for two threads, to an object for C programs, whose names begin with
 * `prefix`.  Nothing is timed. */
STATUS_MUST_USE status machine_object(arena *a, const char *text, const machine *on, const char *prefix,
                                      aot_files *out);

/* Compiles a module in the same way, and sets *assembly to the text of its code. */
STATUS_MUST_USE status machine_assembly(arena *a, const char *text, const machine *on, const char **assembly);

#endif
