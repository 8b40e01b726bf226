/* headroom.h - whether the process may still grow, for calls of libraries that do not survive it when it may
 * not.
 *
 * Where an allocation fails LLVM and oneDNN throw, end the process, or write to address 0, and nothing of
 * theirs can be used afterwards.  So they are called only where there is room for whatever one call takes. */
#ifndef BASE_HEADROOM_H
#define BASE_HEADROOM_H

#include <stddef.h>

#include "base/status.h"

/* What compiling one module of kernels, or making one primitive, takes at most, on all threads that may do so
 * at the same time: many times what was seen, since it costs nothing to ask for. */
enum { HEADROOM_LIBRARY = 64 << 20 };

/* What opening the compiler half takes, with LLVM and the other libraries that it brings: 170 MiB were
 * seen. */
enum { HEADROOM_COMPILER = 224 << 20 };

/* STATUS_RESOURCE where the process may not map so many bytes more (ulimit -v, ulimit -d, strict overcommit).
 * Another thread may take them right afterwards.  Two system calls. */
STATUS_MUST_USE status headroom_check(size_t bytes);

#endif
