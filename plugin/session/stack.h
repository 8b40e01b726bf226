/* stack.h - runs work on a stack that is large enough, whatever thread the caller has, since compilers recurse. */
#ifndef PLUGIN_SESSION_STACK_H
#define PLUGIN_SESSION_STACK_H

#include "base/arena.h"

/* The bytes of stack that compiling (LLVM's passes are the deepest) and running need. */
enum { SESSION_COMPILE_STACK = 1 << 20, SESSION_RUN_STACK = 192 << 10 };

/* Does guard_run: here if that many bytes are left of this thread's stack, otherwise in a new thread, for whose end
 * this one waits. */
STATUS_MUST_USE status run_with_stack(size_t bytes, status (*fn)(void *), void *data);

#endif
