/* stack.h - runs a function on a stack that is large enough for compiling, which recurses, even if the caller's thread
 * has a small stack. */
#ifndef PLUGIN_SESSION_STACK_H
#define PLUGIN_SESSION_STACK_H

#include "base/arena.h"

/* The bytes of stack that compiling (LLVM's passes are the deepest) and running need. */
enum { SESSION_COMPILE_STACK = 1 << 20, SESSION_RUN_STACK = 192 << 10 };

/* Does guard_run(fn, data): in the caller's thread if `bytes` bytes of its stack are free, otherwise in a new thread,
 * for which the caller waits. */
STATUS_MUST_USE status run_with_stack(size_t bytes, status (*fn)(void *), void *data);

#endif
