/* compile.h - compiles kernels into modules and modules into objects.
 *
 * A module has an LLVM context of its own, so several threads may compile, each its own modules on its own arena.  Call
 * these functions inside guard_run (base/arena.h).  A module is built once: kernels first, then exactly one of object,
 * assembly or IR, after which nothing more can be done with it. */
#ifndef EMIT_KERNEL_COMPILE_H
#define EMIT_KERNEL_COMPILE_H

#include "emit/kernel/kernel.h"
#include "emit/llvm/target.h"

typedef struct emit_module emit_module;

/* The module is freed with the arena, or earlier by emit_module_destroy.  `t` is copied. */
STATUS_MUST_USE status emit_module_create(arena *a, const emit_target *t, const char *name, emit_module **out);
/* Frees the module before its arena is destroyed.  NULL is allowed. */
void emit_module_destroy(emit_module *m);

/* Adds the kernel `name` (a C identifier) for a fusion or a single instruction. options may be NULL.  If emit_supports
 * returns false, the result is UNSUPPORTED with the reason, and the module can still be used.  On a GPU target it is a
 * kernel entry whose parameters are the buffers, with a grid-stride loop over its results (info->grid is the number of
 * their elements). */
STATUS_MUST_USE status emit_kernel(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                                   emit_kernel_info *info);

/* A function that writes a kernel of another kind with the same signature.  config is plain bytes that describe the
 * kernel, phase is the number of one of several kernels that run one after the other.  The buffers are those of
 * emit_kernel, followed by scratch memory if there is any. */
typedef status emit_write_fn(emit_module *m, const char *name, const hlo_instr *i, const emit_options *options,
                             const void *config, uint32_t phase, emit_kernel_info *info);

/* Returns a relocatable ELF object (position independent, small code model).  Its only undefined functions are those of
 * runtime/kernel_externals.def.  *bytes is on the module's arena. */
STATUS_MUST_USE status emit_module_object(emit_module *m, const void **bytes, size_t *size);
/* Returns assembly, or PTX on a GPU target.  It ends with a 0 that is not counted. */
STATUS_MUST_USE status emit_module_assembly(emit_module *m, const char **text, size_t *size);
/* Returns the LLVM IR after the passes. */
STATUS_MUST_USE status emit_module_ir(emit_module *m, const char **text, size_t *size);

/* Returns one kernel as PTX for sm_80. */
STATUS_MUST_USE status emit_ptx(arena *a, const char *name, const hlo_instr *i, const char **text);

#endif
