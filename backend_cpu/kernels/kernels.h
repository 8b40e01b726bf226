/* kernels.h - the kernels of a program: collected while it is lowered, equal ones once, then compiled on all cores. */
#ifndef BACKEND_CPU_KERNELS_KERNELS_H
#define BACKEND_CPU_KERNELS_KERNELS_H

#include "backend_cpu/kernels/jobs.h"
#include "emit/kernel/compile.h"
#include "emit/llvm/target.h"
#include "runtime/program/weight_pool.h"
#include "runtime/program/target.h"

enum { CPU_RANGE_NANOSECONDS = 2000 }; /* of work that make another thread worth its while */

typedef struct cpu_kernels cpu_kernels;

/* The target is borrowed.  Kernels that programs of the session have already are taken from there, and new ones are
 * left there; weight_pool is NULL if there is no session. */
cpu_kernels *cpu_kernels_create(arena *a, const emit_target *target, rt_weight_pool *weight_pool);

/* How a kernel is written that is not emit_kernel's. */
typedef struct cpu_writer {
  emit_write_fn *write;
  const char *name;   /* of `write`, the same in every process */
  const void *config; /* plain bytes, copied: equal bytes, equal kernel */
  size_t config_bytes;
  uint32_t phase;
  int32_t packed; /* the operand whose buffer holds packed weights, which is never part of the code; -1: none */
} cpu_writer;

/* A call of a kernel that is for any number of rows (dynamic_m.h). */
typedef struct cpu_call_of {
  int64_t rows;          /* of this call; 0: the kernel is for its instruction's sizes alone */
  int64_t placeholder_m; /* what stands for them in the code */
  bool known;            /* `info` says how it is called; else the grid is rows / placeholder_m of that of the kernel */
  emit_kernel_info info;
  uint32_t n_args;
  const int64_t *args; /* borrowed */
} cpu_call_of;

/* A kernel for `i`, whose results share the buffers that `alias` names (emit_options).  `i` is copied.  writer NULL:
 * emit_kernel; call NULL: for its sizes alone.  *mark is what cpu_kernels_config wants. */
STATUS_MUST_USE status cpu_kernels_add(cpu_kernels *k, const hlo_instr *i, const int32_t *alias,
                                       const cpu_writer *writer, const cpu_call_of *call, rt_span *mark);

/* Does the kernel hold the constant, so that it is no parameter? */
bool cpu_is_embedded(hlo_value v);

typedef enum cpu_isolation {
  CPU_OUTLINE_KERNEL, /* operands become parameters, but for constants that a kernel holds: short ones, single numbers
                       */
  CPU_OUTLINE_PROGRAM /* all constants stay */
} cpu_isolation;

/* A copy of `i` alone in a module of its own.  Operand number `packed` (-1: none) becomes a parameter in any case.
 * Names, sources and configs are left out, so that equal texts mean equal kernels. */
hlo_instr *cpu_outline(arena *a, const hlo_instr *i, cpu_isolation how, int32_t packed);

/* How many there are, without repetitions, and how often they were asked for. */
uint32_t cpu_kernels_unique(const cpu_kernels *k);
uint32_t cpu_kernels_asked(const cpu_kernels *k);

/* Objects, and what is in them (rt_program). */
typedef struct cpu_code {
  uint32_t n;
  rt_span *objects, *names;
} cpu_code;

/* Compiles all that are not there into objects, as many for each of `shares` threads; `threads` do that together with
 * the other jobs.  A failure names the kernel's operation. */
STATUS_MUST_USE status cpu_kernels_compile(cpu_kernels *k, cpu_jobs *jobs, uint32_t shares, uint32_t threads,
                                           cpu_code *out);
/* Their LLVM IR or assembly, one text. */
STATUS_MUST_USE status cpu_kernels_text(cpu_kernels *k, bool assembly, const char **text);

/* The config of the thunk of a call, after compiling. */
STATUS_MUST_USE status cpu_kernels_config(const cpu_kernels *k, rt_span mark, rt_span *out);

#endif
