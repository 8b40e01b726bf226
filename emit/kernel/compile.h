/* compile.h - compiles kernels into modules and modules into objects.
 *
 * A module has an LLVM context of its own, so several threads may compile at once, each its own modules on its own
 * arena.  Call these functions inside guard_run (base/arena.h).  First add kernels to a module, then ask for exactly
 * one of object, assembly, code or IR.  After that, the module can only be destroyed. */
#ifndef EMIT_KERNEL_COMPILE_H
#define EMIT_KERNEL_COMPILE_H

#include "emit/kernel/kernel.h"
#include "emit/llvm/target.h"

typedef struct emit_module emit_module;

/* Creates a module, which is freed with the arena, or earlier by emit_module_destroy.  `t` is copied, but the strings
 * and functions to which it points are not. */
STATUS_MUST_USE status emit_module_create(arena *a, const emit_target *t, const char *name, emit_module **out);
/* Frees the module before its arena is destroyed.  NULL is allowed. */
void emit_module_destroy(emit_module *m);

/* Sets the target for which functions are written from now on; it must have the triple of the module's first target.
 * Functions that are there already keep the target for which they were written, so a module may have code for several
 * CPUs.  The first target must be set again before the module's code is asked for.  `t` is copied as by
 * emit_module_create. */
void emit_module_set_target(emit_module *m, const emit_target *t);
const emit_target *emit_module_target(const emit_module *m);

/* Makes the internal functions of the module visible to the other objects of the program or shared object that is
 * linked (LLVM's hidden visibility), and calls tell(data, name) for each of them. */
void emit_module_export(emit_module *m, void (*tell)(void *data, const char *name), void *data);

/* Adds the kernel `name` (a C identifier) for a fusion or a single instruction. options may be NULL.  If emit_supports
 * returns false, the result is UNSUPPORTED with the reason, and the module can still be used.  For blocks of threads,
 * info->step_threads threads compute each step of info->grid; a kernel whose parameters would have too many bytes is
 * UNSUPPORTED.  If shapes are not static, expressions are added to the table of dims of i's module, so only one thread
 * at a time may write kernels of that module. */
STATUS_MUST_USE status emit_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                                   emit_kernel_info *info);

/* A function that writes a kernel for `i` in place of emit_kernel, such as a matrix product in register blocks.
 * `config` is plain bytes that describe the kernel.  An instruction may need several kernels that run one after the
 * other; `phase` is the number of this one.  The buffers are those of emit_kernel, followed by scratch memory and by
 * counters (RT_COUNTERS) if there are any. */
typedef status emit_write_fn(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                             const void *config, uint32_t phase, emit_kernel_info *info);

/* Returns a relocatable object (small code model; position independent unless emit_target.absolute is true).  Its only
 * undefined functions are those of runtime/kernel_externals.def and emit/llvm/compiler_calls.def, and those of
 * emit_target.functions if there are any.  *bytes is on the module's arena. */
STATUS_MUST_USE status emit_module_object(emit_module *m, const void **bytes, size_t *size);
/* Returns assembly, or PTX on a GPU target.  It ends with a null character that is not counted in *size. */
STATUS_MUST_USE status emit_module_assembly(emit_module *m, const char **text, size_t *size);
/* Returns what a program keeps as its code, on the module's arena: an object (emit_module_object), or for an NVIDIA GPU
 * the PTX, since the GPU's driver compiles it for the GPU at hand.  The null character at the end of the PTX is counted
 * in *size. */
STATUS_MUST_USE status emit_module_code(emit_module *m, const void **bytes, size_t *size);
/* Returns the LLVM IR as it is after LLVM's passes. */
STATUS_MUST_USE status emit_module_ir(emit_module *m, const char **text, size_t *size);

#endif
