/* stack.c - runs work on a stack that is large enough. */
#include "runtime/host/stack.h"

#include <stdint.h>

enum { LARGE = 8 << 20 };

/* The lowest address of this thread's stack and the address after its end; both are 1 if the system does not know. */
static _Thread_local uintptr_t lowest, end;

static void find_stack(void) {
  pthread_attr_t attributes;
  void *address = NULL;
  size_t size = 0;
  lowest = end = 1;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
    return;
  }
  if (pthread_attr_getstack(&attributes, &address, &size) == 0) {
    lowest = (uintptr_t)address;
    end = lowest + size;
  }
  pthread_attr_destroy(&attributes);
}

/* Returns true if the stack has room for `bytes` more bytes.  A stack that is not the thread's own, such as a
 * coroutine's, is assumed to have room. */
static bool has_room(size_t bytes) {
  uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  if (!lowest) {
    find_stack();
  }
  return here < lowest || here >= end || here - lowest >= bytes;
}

typedef struct work {
  status (*fn)(void *);
  void *data;
  status result;
} work;

static void *run(void *data) {
  work *w = data;
  w->result = guard_run(w->fn, w->data);
  return NULL;
}

bool start_with_stack(void *(*fn)(void *), void *data, pthread_t *out) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  bool started = pthread_attr_setstacksize(&attributes, LARGE) == 0 && pthread_create(out, &attributes, fn, data) == 0;
  pthread_attr_destroy(&attributes);
  return started;
}

status run_with_stack(size_t bytes, status (*fn)(void *), void *data) {
  if (has_room(bytes)) {
    return guard_run(fn, data);
  }
  work w = {fn, data, NULL};
  pthread_t thread;
  CHECK_THAT(start_with_stack(run, &w, &thread), STATUS_RESOURCE, "a thread with a stack of %d bytes cannot be started",
             LARGE);
  pthread_join(thread, NULL);
  return w.result;
}
