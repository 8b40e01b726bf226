/* kernel_test.h - for tests of kernels: the processors, calls of kernels, memory that ends right before
 * protected memory, random numbers, and the functions that kernels call. */
#ifndef TESTS_UNIT_EMIT_KERNEL_TEST_H
#define TESTS_UNIT_EMIT_KERNEL_TEST_H

#include <check.h>

#include "emit/kernel/kernel.h"
#include "emit/kernel/module.h"
#include "emit/llvm/target.h"
#include "runtime/block_abi.h"
#include "runtime/host/code_loader.h"
#include "runtime/kernel_abi.h"
#include "tests/suite.h"

/* Processors and widths of vectors.  The last entry is the native processor that emulates blocks of threads;
 * kernels of contraction/ are not written for it. */
typedef struct emit_machine {
  const char *cpu;
  int lanes;
  emit_execution execution;
  bool has_functions; /* whether emit_target.functions is set, though it is empty: code is then compiled as fast as can
                         be, and functions that differ in constants share their code (emit/llvm/split_similar.h) */
} emit_machine;
enum { EMIT_MACHINES = 6, EMIT_MACHINES_AND_BLOCKS };
extern const emit_machine emit_machines[EMIT_MACHINES_AND_BLOCKS];
/* Returns the target of a machine.  It is the native processor if the machine's is of another architecture,
 * or if the native processor cannot emulate blocks. */
emit_target emit_machine_target(arena *a, const emit_machine *m);
/* Returns a name such as "native, 4 lanes". */
const char *emit_machine_name(arena *a, const emit_machine *m);

/* Calls a kernel for its whole grid, in ranges of random size or, on blocks, in blocks of random size if the kernel
 * allows it, with their threads forwards, backwards or shuffled. */
void kernel_call(emit_execution execution, void *kernel, const emit_kernel_info *info, const void *const *buffers,
                 const int64_t *args, int64_t grid);

/* Returns `size` bytes, all 0xa5, aligned to 64 bytes as buffers are.  They end at most 63 bytes before a
 * page that cannot be accessed, and another such page is before them. guarded_free must be given the same
 * size. */
void *guarded_memory(size_t size);
void guarded_free(void *at, size_t size);

/* Returns the next random number; the numbers are the same in every process. */
uint64_t next_random(void);

/* Returns the function of this name if kernels may call it, for rt_code_load. */
void *kernel_resolve(const char *name);
/* Returns NULL, for code that must call no function. */
void *kernel_resolve_nothing(const char *name);
/* Compiles the module, and loads its kernels, which stay loaded until the arena is destroyed.  `resolve` finds the
 * functions that they may call. */
STATUS_MUST_USE status kernel_load(arena *a, emit_module *m, void *(*resolve)(const char *name), rt_code **out);

#endif
