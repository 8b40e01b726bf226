/* ptx.h - an interpreter of PTX, so that the code that we write for GPUs runs where there is none.
 *
 * It knows the instructions that LLVM and our emitters write, as the PTX ISA (version 8.5) describes them, and refuses
 * all others.  It knows nothing of our kernels. */
#ifndef TESTS_PTX_PTX_H
#define TESTS_PTX_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"

typedef struct ptx_module ptx_module;
typedef struct ptx_function ptx_function;

/* Reads a module.  It and its functions live on the arena; the text need not stay. */
STATUS_MUST_USE status ptx_parse(arena *a, const char *text, ptx_module **out);

/* Returns the kernel of that name, or NULL. */
const ptx_function *ptx_find_entry(const ptx_module *m, const char *name);

/* Returns the number of bytes of parameter k of a kernel, or 0 if it has no such parameter. */
size_t ptx_parameter_bytes(const ptx_function *f, unsigned k);

typedef struct ptx_launch {
  uint32_t blocks, threads; /* along x; the other dimensions of both are 1 */
  size_t shared_bytes;      /* of the memory that the launch gives to `.extern .shared` arrays */
  void *const *parameters;  /* the address of the value of each parameter */
  /* Tells in which array of the device's memory an address is.  Returns false if it is in none: the kernel then fails.
   * NULL: addresses are not checked. */
  bool (*find_array)(void *data, uint64_t address, uint64_t *begin, uint64_t *end);
  void *data;
} ptx_launch;

/* Runs a kernel to its end.  An error says which fault the kernel has that need not show on a GPU: an access to memory
 * that is not its own or is not aligned, or a shuffle or a barrier that some threads do not reach.  Shared memory and
 * registers begin with arbitrary contents; asynchronous copies arrive when they are waited for, not earlier. */
STATUS_MUST_USE status ptx_run(const ptx_function *f, const ptx_launch *launch);

#endif
