/* headroom.h - checks that the process may still allocate memory, before calls of libraries that do not survive a
 * failing allocation.
 *
 * When an allocation fails, LLVM and oneDNN throw an exception, end the process or write to address 0, and cannot be
 * used afterwards.  So they are called only if there is room for all that one call allocates. */
#ifndef BASE_HEADROOM_H
#define BASE_HEADROOM_H

#include <stddef.h>

#include "base/status.h"

/* An upper bound, in bytes, of what the compilation of a module of kernels or the creation of a oneDNN primitive takes,
 * if all threads that may do so do it at the same time.  The bound is generous, since a check for more bytes costs no
 * more. */
enum { HEADROOM_LIBRARY = 64 << 20 };

/* An upper bound, in bytes, of what loading oneDNN takes, with the libraries that it loads, and of the first primitive.
 */
enum { HEADROOM_OPEN_LIBRARY = 128 << 20 };

/* An upper bound, in bytes, of what loading the compiler's shared library takes, with LLVM and the other libraries that
 * it loads. */
enum { HEADROOM_COMPILER = 224 << 20 };

/* Returns STATUS_RESOURCE if the process may not map `bytes` more bytes (because of ulimit -v, ulimit -d or strict
 * overcommit).  Another thread may use up the room right afterwards.  It takes two system calls. */
STATUS_MUST_USE status headroom_check(size_t bytes);

#endif
