/* kernels.h - the kernels of a program.  They are collected while the program is lowered, each of several equal kernels
 * only once, and then compiled on all cores. */
#ifndef LOWER_KERNELS_KERNELS_H
#define LOWER_KERNELS_KERNELS_H

#include "emit/kernel/compile.h"
#include "emit/llvm/target.h"
#include "lower/kernels/jobs.h"
#include "lower/sizes.h"
#include "runtime/program/weight_pool.h"
#include "runtime/program/target.h"

enum { LOWER_RANGE_NANOSECONDS = 2000 }; /* the least work for which another thread is used */

typedef struct lower_kernels lower_kernels;

/* Creates an empty collection; the target is borrowed.  `kind` is the kind of the thunks that call the kernels, a
 * static text such as "cpu.kernel".  Kernels that other programs of the session have compiled are taken from the weight
 * pool, and new ones are added to it; weight_pool is NULL if there is no session. */
lower_kernels *lower_kernels_create(arena *a, const emit_target *target, const char *kind, rt_weight_pool *weight_pool);
/* Returns the kind of the thunks that call the kernels. */
const char *lower_kernels_kind(const lower_kernels *k);
/* Lets lower_kernels_compile compile the kernels for more machines as well: its objects are then bundles
 * (runtime/program/code_bundle.h).  A kernel must be written in the same way for all targets, so these targets may
 * differ from the first one only in LLVM's names and in features.  The targets are borrowed. */
void lower_kernels_add_targets(lower_kernels *k, uint32_t n, const emit_target *targets);

/* A function that writes a kernel in place of emit_kernel, and the arguments for it. */
typedef struct lower_kernel_writer {
  emit_write_fn *write;
  const char *name;   /* a name for `write` that is the same in every process */
  const void *config; /* plain bytes, which are copied; equal bytes mean an equal kernel */
  size_t config_bytes;
  uint32_t phase;
  int32_t packed; /* the operand whose buffer holds packed weights, which never become part of the code; -1 if there is
                     none */
  /* Estimates of how long it takes to compile the kernel (0 if that is not known), and the functions that kernels with
   * a writer of this name share in a module (emit/llvm/function.h). */
  double nanoseconds, shared_nanoseconds;
} lower_kernel_writer;

/* A call of a kernel of dynamic M (dynamic_m.h). */
typedef struct lower_kernel_call {
  int64_t rows;          /* the rows of this call; 0 if the kernel is only for the sizes of its instruction */
  int64_t placeholder_m; /* the number of rows for which the code was written */
  bool known; /* whether `info` describes this call.  If not, and `rows` is not 0, the grid of the call is the grid of
                 the compiled code times rows / placeholder_m */
  emit_kernel_info info;
  uint32_t n_args;
  const int64_t *args; /* borrowed */
} lower_kernel_call;

/* Adds a kernel for `i`, which is copied. `alias` says which operands' buffers the results share (emit_options).  If
 * `writer` is NULL, emit_kernel writes the kernel.  If `call` is NULL, the kernel is only for the sizes of `i`.  Sets
 * *mark, by which lower_kernels_attach finds the kernel: until then, the caller keeps it as the config of the thunk
 * that calls the kernel. */
STATUS_MUST_USE status lower_kernels_add(lower_kernels *k, const hlo_instr *i, const int32_t *alias,
                                         const lower_kernel_writer *writer, const lower_kernel_call *call,
                                         rt_span *mark);

/* Return the number of different kernels; and how many of them lower_kernels_compile found in the weight pool. */
uint32_t lower_kernels_unique(const lower_kernels *k);
uint32_t lower_kernels_found(const lower_kernels *k);
/* Return the number of objects that lower_kernels_compile compiled, which are the first in lower_object_code; and how
 * often lower_kernels_add was called, also for kernels that are equal. */
uint32_t lower_kernels_new_objects(const lower_kernels *k);
uint32_t lower_kernels_asked(const lower_kernels *k);

/* Code objects (emit_module_code), and for each a name that lists the kernels in it (rt_program). */
typedef struct lower_object_code {
  uint32_t n;
  rt_span *objects, *names;
} lower_object_code;

/* Returns the number of threads for which the work of a compilation or a program is divided.  A deterministic program
 * must not depend on the machine, so for it the number is a constant. */
uint32_t lower_shares_of(const rt_compile_options *o);

/* Compiles all kernels that are not in the weight pool into objects.  The number of new objects is a multiple of
 * `shares`, the number of threads among which compiling is to be divided evenly, unless there are fewer kernels.
 * `threads` is the number of threads that actually compile and run the other jobs.  A failure names the kernel's
 * operation. */
STATUS_MUST_USE status lower_kernels_compile(lower_kernels *k, lower_jobs *jobs, uint32_t shares, uint32_t threads,
                                             lower_object_code *out);
/* Writes all kernels into `module`, which the caller completes and compiles, in place of lower_kernels_compile, and
 * runs the other jobs. `prefix` is put before the names of the kernels. lower_kernels_attach may be called afterwards.
 */
STATUS_MUST_USE status lower_kernels_write(lower_kernels *k, lower_jobs *jobs, uint32_t threads, const char *prefix,
                                           emit_module *module);
/* Returns the LLVM IR or assembly of all kernels as one text, for the first target. */
STATUS_MUST_USE status lower_kernels_text(lower_kernels *k, bool assembly, const char **text);

/* Sets the config and the sizes of a thunk that calls a kernel; before the call, its config is the *mark of
 * lower_kernels_add.  May be called only after lower_kernels_compile or lower_kernels_write.  The config becomes the
 * number of the code object (rt_put_i64), the name of the function in it (rt_put_text), and then for ranges how many
 * steps of the grid are enough work for a thread (rt_put_i64), for blocks of threads RT_BLOCK_ABI and
 * emit_kernel_info.threads, step_threads and shared_bytes (rt_put_i64 each).  The first size is the grid, and the
 * others are the sizes that the kernel takes as arguments. */
STATUS_MUST_USE status lower_kernels_attach(const lower_kernels *k, size_table *sizes, rt_thunk *t);

#endif
