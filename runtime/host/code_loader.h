/* code_loader.h - makes a relocatable ELF object executable in this process: the whole linker that our kernels need.
 *
 * For x86-64 and AArch64.  The object's allocated sections are laid out in one mapping, relocated, and protected: code
 * can be executed but not written.  Everything read from the object is checked, so that a damaged one gives an
 * error; what its code does once it runs is not (it is as trusted as a .so). */
#ifndef RUNTIME_HOST_CODE_LOADER_H
#define RUNTIME_HOST_CODE_LOADER_H

#include "runtime/program/target.h"

/* The address of a function outside of the object, NULL when there is none of that name. */
typedef void *rt_resolve_fn(const char *name);

/* The mapping lives as long as the arena, and so must the object's bytes: symbol names are borrowed from them.
 * INVALID_FILE: damaged or for another machine; UNSUPPORTED: a relocation that we do not know, a function that
 * `resolve` does not. */
STATUS_MUST_USE status rt_code_load(arena *a, rt_span object, rt_resolve_fn *resolve, rt_code **out);

/* The address of a symbol that the object defines, NULL when there is none. */
void *rt_code_find(const rt_code *code, const char *name);

#endif
