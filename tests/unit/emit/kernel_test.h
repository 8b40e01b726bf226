/* kernel_test.h - shared by tests of kernels: the processors, memory that ends right before protected memory, random
 * numbers, and the functions that kernels call. */
#ifndef TESTS_UNIT_EMIT_KERNEL_TEST_H
#define TESTS_UNIT_EMIT_KERNEL_TEST_H

#include <check.h>

#include "emit/llvm/target.h"
#include "runtime/kernel_abi.h"
#include "tests/suite.h"

/* Processors and widths of vectors. */
typedef struct emit_machine {
  const char *cpu;
  int lanes;
} emit_machine;
enum { EMIT_MACHINES = 6 };
extern const emit_machine emit_machines[EMIT_MACHINES];
/* The native processor in place of one of another architecture. */
emit_target emit_machine_target(arena *a, const emit_machine *m);

/* size bytes, all 0xa5, aligned to 64 bytes as buffers are, that end (up to 63 bytes) before a page that cannot be read
 * and begin behind another.  guarded_free wants the same size. */
void *guarded_memory(size_t size);
void guarded_free(void *at, size_t size);

/* The same numbers in every process. */
uint64_t next_random(void);

/* What kernels call, for rt_code_load. */
void *kernel_resolve(const char *name);
/* For code that must call nothing: returns NULL. */
void *kernel_resolve_nothing(const char *name);

#endif
