/* ptx_case.h - checks what must hold for the PTX of all kernels, and that NVIDIA's assembler takes it. */
#ifndef TESTS_UNIT_EMIT_PTX_CASE_H
#define TESTS_UNIT_EMIT_PTX_CASE_H

#include <stdbool.h>

#include "base/arena.h"
#include "emit/kernel/compile.h"

/* The GPUs for which code is written, from the oldest on. */
enum { PTX_GPUS = 7 };
extern const char *const ptx_gpus[PTX_GPUS];

/* Writes the module, which is for `gpu`, as PTX.  Fails the test unless
 *   - it calls nothing, and each access to memory says which kind of memory;
 *   - arithmetic is rounded as IEEE 754 says: nothing is approximate, flushes denormal numbers, or may be contracted;
 *   - ptxas, where there is one, assembles it without keeping registers in memory. */
STATUS_MUST_USE status ptx_check(arena *a, emit_module *m, const char *gpu);

/* Returns the path of ptxas, or NULL; then what needs it is skipped, and a line on standard error says so. */
const char *ptx_assembler(arena *a);

#endif
