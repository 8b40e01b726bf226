/* object_names.h - reads the object files of other machines: ELF of 32 and 64 bits, and WebAssembly, little-endian. */
#ifndef TESTS_TARGET_OBJECT_NAMES_H
#define TESTS_TARGET_OBJECT_NAMES_H

#include <stdint.h>

#include "base/arena.h"
#include "runtime/program/program.h"

typedef struct object_names {
  int machine; /* ELF's EM_...; 0 for WebAssembly */
  uint32_t flags;
  uint32_t n, cap;
  const char **undefined; /* the names that the object uses and does not define */
} object_names;

/* Returns the machine and the undefined names of an object file.  Strings point into it or are on the arena.  Fails the
 * test if it is no object. */
object_names object_names_of(arena *a, rt_span object);

#endif
