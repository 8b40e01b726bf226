/* compile_kernels.h - the kernels of a program: collected while it is lowered, equal ones once, then compiled on all cores. */
#ifndef BACKEND_CPU_COMPILE_KERNELS_H
#define BACKEND_CPU_COMPILE_KERNELS_H

#include "backend_cpu/compile_jobs.h"
#include "emit/compile.h"
#include "emit/target.h"
#include "runtime/target.h"

enum { CPU_RANGE_NANOSECONDS = 2000 }; /* of work that make another thread worth its while */

typedef struct cpu_kernels cpu_kernels;

/* The target is borrowed. */
cpu_kernels *cpu_kernels_create(arena *a, const emit_target *target);

/* How a kernel is written that is not emit_kernel's. */
typedef struct cpu_writer {
  emit_write_fn *write;
  const void *config; /* plain bytes, copied: equal bytes, equal kernel */
  size_t config_bytes;
  uint32_t phase;
  int32_t packed; /* the operand whose buffer holds packed weights, which is never part of the code; -1: none */
} cpu_writer;

/* The number of the kernel for `i`, whose results share the buffers that `alias` names (emit_options).  `i` is copied.
 * writer NULL: emit_kernel. */
STATUS_MUST_USE status cpu_kernels_add(cpu_kernels *k, const hlo_instr *i, const int32_t *alias, const cpu_writer *writer,
                                       uint32_t *number);

typedef enum cpu_isolation {
  CPU_ISOLATE_KERNEL, /* operands become parameters, but for constants that a kernel holds: short ones, single numbers */
  CPU_ISOLATE_PROGRAM /* all constants stay */
} cpu_isolation;

/* A copy of `i` alone in a module of its own.  Operand number `packed` (-1: none) becomes a parameter in any case.  Names and
 * sources are left out, so that equal texts mean equal kernels. */
hlo_instr *cpu_isolate(arena *a, const hlo_instr *i, cpu_isolation how, int32_t packed);

/* How many there are, without repetitions, and how often they were asked for. */
uint32_t cpu_kernels_unique(const cpu_kernels *k);
uint32_t cpu_kernels_asked(const cpu_kernels *k);

/* Compiles all into objects [*n] on the arena, as many for each of `shares` threads; `threads` do that together with the other
 * jobs.  A failure names the kernel's operation. */
STATUS_MUST_USE status cpu_kernels_compile(cpu_kernels *k, cpu_jobs *jobs, uint32_t shares, uint32_t threads, uint32_t *n,
                                           rt_span **objects);
/* Their LLVM IR or assembly, one text. */
STATUS_MUST_USE status cpu_kernels_text(cpu_kernels *k, bool assembly, const char **text);

/* The config of the thunk of kernel `number`, after compiling. */
rt_span cpu_kernels_config(const cpu_kernels *k, uint32_t number);

#endif
