/* compile.h - kernels into modules, modules into objects.
 *
 * A module has an LLVM context of its own: several threads may compile, each its own modules on its own
 * arena. Call inside guard_run (base/arena.h).  A module is built once: kernels first, then exactly one of
 * object, assembly or IR, after which it is spent. */
#ifndef EMIT_KERNEL_COMPILE_H
#define EMIT_KERNEL_COMPILE_H

#include "emit/kernel/kernel.h"
#include "emit/llvm/target.h"

typedef struct emit_module emit_module;

/* Disposed of with the arena, or earlier by emit_module_destroy.  `t` is copied. */
STATUS_MUST_USE status emit_module_create(arena *a, const emit_target *t, const char *name, emit_module **out);
/* NULL is allowed.  Frees what LLVM holds. */
void emit_module_destroy(emit_module *m);

/* Adds the kernel `name` (a C identifier) for a fusion or a single instruction.  options may be NULL.
 * UNSUPPORTED with the reason where emit_supports is false; the module can still be used then.  On a GPU
 * target: a kernel entry whose parameters are the buffers; it covers its results in a grid-stride loop
 * (info->grid is their element count). */
STATUS_MUST_USE status emit_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                                   emit_kernel_info *info);

/* Another way to write a kernel with the same signature: from plain bytes that say how, and as one of several phases.
 * Buffers are those of emit_kernel, and scratch memory after the results if the writer's caller gives any. */
typedef status emit_write_fn(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                             const void *config, uint32_t phase, emit_kernel_info *info);

/* A relocatable ELF object (position independent, small code model), which leaves no functions undefined but those of
 * runtime/kernel_externals.def.  *bytes lives on the module's arena. */
STATUS_MUST_USE status emit_module_object(emit_module *m, const void **bytes, size_t *size);
/* Assembly (PTX on a GPU target), with a terminating 0 that is not counted. */
STATUS_MUST_USE status emit_module_assembly(emit_module *m, const char **text, size_t *size);
/* LLVM IR after the passes. */
STATUS_MUST_USE status emit_module_ir(emit_module *m, const char **text, size_t *size);

/* One kernel as PTX for sm_80. */
STATUS_MUST_USE status emit_ptx(arena *a, const char *name, const hlo_instr *i, const char **text);

#endif
