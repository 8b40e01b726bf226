/* stack.h - runs a function on a stack that is large enough for compiling, which recurses, even if the caller's thread
 * has a small stack. */
#ifndef RUNTIME_HOST_STACK_H
#define RUNTIME_HOST_STACK_H

#include <pthread.h>

#include "base/arena.h"

/* The bytes of stack that compiling (LLVM's passes are the deepest) and running need. */
enum { SESSION_COMPILE_STACK = 1 << 20, SESSION_RUN_STACK = 192 << 10 };

/* Does guard_run(fn, data): in the caller's thread if `bytes` bytes of its stack are free, otherwise in a new thread,
 * for which the caller waits.  Fails with STATUS_RESOURCE if that thread cannot be started. */
STATUS_MUST_USE status run_with_stack(size_t bytes, status (*fn)(void *), void *data);

/* Starts a thread whose stack is large enough for compiling and for running.  Returns false if it cannot be started. */
bool start_with_stack(void *(*fn)(void *), void *data, pthread_t *out);

#endif
