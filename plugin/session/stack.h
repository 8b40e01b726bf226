/* stack.h - work on a stack that is large enough, whatever thread the caller has: compilers recurse. */
#ifndef PLUGIN_SESSION_STACK_H
#define PLUGIN_SESSION_STACK_H

#include "base/arena.h"

/* Of what compiles (LLVM's passes are the deepest), and of what runs. */
enum { SESSION_COMPILE_STACK = 1 << 20, SESSION_RUN_STACK = 192 << 10 };

/* guard_run: here if that many bytes are left of this thread's stack, else in a thread that this one waits for. */
STATUS_MUST_USE status run_with_stack(size_t bytes, status (*fn)(void *), void *data);

#endif
