/* general_program.h - one program for all sizes of a module with symbols. */
#ifndef TESTS_HLO_GENERAL_PROGRAM_H
#define TESTS_HLO_GENERAL_PROGRAM_H

#include "hlo/ir/ir.h"
#include "runtime/exec/executable.h"
#include "tests/hlo/same_values.h"

typedef struct general_program {
  const rt_program *program;
  rt_executable *executable;
} general_program;

/* Compiles a copy of the module, on the arena, for one of the targets; functions and cpu are options of the compiler
 * and may be NULL.  If file is not NULL, the program is written to that file and read from it. */
STATUS_MUST_USE status general_program_make(arena *a, const rt_compiler *compiler, const rt_target *target,
                                            const hlo_module *m, const function_set *functions, const char *cpu,
                                            const char *file, general_program *out);
void general_program_destroy(general_program *p);

/* Makes a static copy of the module: sizes[k] is the size of the symbol whose name is the letter names[k]. */
STATUS_MUST_USE status general_program_bind(arena *a, const hlo_module *m, const char *names, const int64_t *sizes,
                                            hlo_module **bound);

/* Binds the program to the sizes of the inputs of `bound`, a static copy of the module (hlo_bind), and runs it, in the
 * last round as a checked run.  Fails if results differ from those that the evaluator computes from the copy. */
STATUS_MUST_USE status general_program_compare(const general_program *p, const hlo_module *bound, same_floats how,
                                               uint32_t rounds);

#endif
