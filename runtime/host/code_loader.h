/* code_loader.h - loads a relocatable ELF object into this process: a linker with only what compiled kernels need.
 *
 * It supports x86-64, AArch64, 64-bit RISC-V and 32-bit ARM.  The object's allocated sections are placed in one
 * mapping, relocated, and protected, so that code can be executed but not written.  Everything that is read from the
 * object is checked, so a damaged object is an error.  What its code does when it runs is not checked; it is trusted as
 * a .so is. */
#ifndef RUNTIME_HOST_CODE_LOADER_H
#define RUNTIME_HOST_CODE_LOADER_H

#include "runtime/program/target.h"

/* Returns the address of a function outside of the object, or NULL if there is none of that name. */
typedef void *rt_resolve_fn(const char *name);

/* Loads an object.  The mapping lives as long as the arena, and the object's bytes must live as long, since symbol
 * names are borrowed from them.  Errors: INVALID_FILE (damaged, or for another machine); UNSUPPORTED (an unknown
 * relocation, or a function for which `resolve` returns NULL); RESOURCE and IO (the system gives no memory, or does not
 * let it be executed). */
STATUS_MUST_USE status rt_code_load(arena *a, rt_span object, rt_resolve_fn *resolve, rt_code **out);

/* Returns the address of a symbol that the object defines, or NULL if there is none. */
void *rt_code_find(const rt_code *code, const char *name);

#endif
