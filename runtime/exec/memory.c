/* memory.c - memory of the host and of devices; see memory.h. */
#include "runtime/exec/memory.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* --- arrays --- */

status rt_memory_take(const rt_device *d, mem_budget *budget, size_t bytes, const char *what, const char *name,
                      void **out) {
  const char *quote = name ? "'" : "", *space = name ? " " : "";
  name = name ? name : "";
  if (d) {
    return status_prefix(d->allocate(d, bytes ? bytes : 1, out), "%s%s%s%s%s", what, space, quote, name, quote);
  }
  *out = budget_alloc(budget, bytes, RT_ARRAY_ALIGN);
  CHECK_THAT(*out, STATUS_RESOURCE, "no %zu bytes of memory for %s%s%s%s%s", bytes, what, space, quote, name, quote);
  return NULL;
}

void rt_memory_give(const rt_device *d, mem_budget *budget, void *memory, size_t bytes) {
  if (!d) {
    budget_free(budget, memory, bytes, RT_ARRAY_ALIGN);
  } else if (memory) {
    d->release(d, memory, bytes ? bytes : 1);
  }
}

status rt_memory_copy(const rt_device *d, rt_stream *s, rt_copy direction, void *to, const void *from, size_t bytes) {
  if (bytes == 0) {
    return NULL;
  }
  if (d) {
    return d->copy(s, direction, to, from, bytes);
  }
  memmove(to, from, bytes);
  return NULL;
}

status rt_memory_await(const rt_device *d, rt_stream *s, const mem_budget *budget, status failed) {
  status late = d && !failed ? d->await(s, budget) : NULL;
  failed = failed ? failed : late;
  if (d && failed) {
    status_free(d->await(s, NULL));
  }
  return failed;
}

status rt_memory_read(const rt_run *r, void *to, const void *from, size_t bytes) {
  TRY(rt_memory_copy(r->device, r->stream, RT_DOWNLOAD, to, from, bytes));
  return rt_memory_await(r->device, r->stream, r->budget, NULL);
}

/* --- constants --- */

/* A constant that is on a device.  The array in host memory identifies it: as long as a program uses it, nothing else
 * can be at its address. */
typedef struct constant {
  struct constant *next;
  const rt_device *device;
  const void *data;
  size_t bytes;
  void *copy;
  uint32_t users;
} constant;

static pthread_mutex_t constants_lock = PTHREAD_MUTEX_INITIALIZER;
static constant *constants;

static constant **find_constant(const rt_device *d, const void *data, size_t bytes) {
  constant **c = &constants;
  while (*c && ((*c)->device != d || (*c)->data != data || (*c)->bytes != bytes)) {
    c = &(*c)->next;
  }
  return c;
}

static status new_constant(const rt_device *d, rt_stream *s, const void *data, size_t bytes, constant **out) {
  void *copy;
  TRY(rt_memory_take(d, NULL, bytes, "a constant", NULL, &copy));
  status failed = bytes ? d->copy(s, RT_UPLOAD, copy, data, bytes) : NULL;
  /* waits here, since another program, whose stream does not wait for this one, may find the copy at once */
  failed = failed ? failed : d->await(s, NULL);
  constant *c = failed ? NULL : malloc(sizeof *c);
  if (!c) {
    rt_memory_give(d, NULL, copy, bytes);
    return failed ? failed : status_error(STATUS_RESOURCE, "out of memory");
  }
  *c = (constant){.next = constants, .device = d, .data = data, .bytes = bytes, .copy = copy};
  *out = constants = c;
  return NULL;
}

status rt_device_constant_take(const rt_device *d, rt_stream *s, const void *data, size_t bytes, void **out) {
  status failed = NULL;
  pthread_mutex_lock(&constants_lock);
  constant *c = *find_constant(d, data, bytes);
  if (!c) {
    failed = new_constant(d, s, data, bytes, &c);
  }
  if (!failed) {
    c->users++;
    *out = c->copy;
  }
  pthread_mutex_unlock(&constants_lock);
  return failed;
}

void rt_device_constant_give(const rt_device *d, const void *data, size_t bytes) {
  pthread_mutex_lock(&constants_lock);
  constant **at = find_constant(d, data, bytes), *c = *at;
  if (--c->users == 0) {
    *at = c->next;
    rt_memory_give(d, NULL, c->copy, bytes);
    free(c);
  }
  pthread_mutex_unlock(&constants_lock);
}

/* --- thunks that work in host memory --- */

typedef struct host_call {
  const rt_thunk *thunk;
  rt_run *run;
  void **memory; /* for each buffer: the bytes from its first to its last element */
} host_call;

/* Returns true if the call needs what is in the buffer: because the thunk reads it, or because copying the buffer back
 * would otherwise change bytes between its elements. */
static bool is_needed(const rt_thunk *t, uint32_t k) {
  return k < t->n_inputs || t->buffers[k].kept || !rt_buffer_is_dense(&t->buffers[k]);
}

static status stage_buffers(const host_call *c) {
  for (uint32_t k = 0; k < c->thunk->n_buffers; k++) {
    const rt_buffer *b = &c->thunk->buffers[k];
    size_t bytes = (size_t)rt_buffer_bytes(b);
    TRY(rt_memory_take(NULL, c->run->budget, bytes, "a copy of a buffer", NULL, &c->memory[k]));
    if (is_needed(c->thunk, k)) {
      TRY(rt_memory_copy(c->run->device, c->run->stream, RT_DOWNLOAD, c->memory[k], rt_address(c->run, b), bytes));
    }
  }
  return c->run->device->await(c->run->stream, c->run->budget);
}

/* Runs the thunk on the copies of its buffers. */
static status run_staged_thunk(void *data) {
  const host_call *c = data;
  rt_buffer buffers[c->thunk->n_buffers + 1];
  rt_thunk staged = *c->thunk;
  rt_run run = *c->run;
  for (uint32_t k = 0; k < staged.n_buffers; k++) {
    buffers[k] = c->thunk->buffers[k];
    buffers[k].space = RT_STAGED;
    buffers[k].index = k;
    buffers[k].offset = 0;
  }
  staged.buffers = buffers;
  run.staged = c->memory;
  return staged.ops->run(&staged, &run);
}

static status unstage_buffers(const host_call *c) {
  for (uint32_t k = c->thunk->n_inputs; k < c->thunk->n_buffers; k++) {
    const rt_buffer *b = &c->thunk->buffers[k];
    TRY(rt_memory_copy(c->run->device, c->run->stream, RT_UPLOAD, rt_address(c->run, b), c->memory[k],
                       (size_t)rt_buffer_bytes(b)));
  }
  return NULL;
}

status rt_run_on_host(const rt_thunk *t, rt_run *r) {
  host_call c = {.thunk = t, .run = r, .memory = calloc((size_t)t->n_buffers + 1, sizeof *c.memory)};
  CHECK_THAT(c.memory, STATUS_RESOURCE, "out of memory");
  status failed = stage_buffers(&c);
  failed = failed ? failed : guard_run(run_staged_thunk, &c);
  failed = failed ? failed : unstage_buffers(&c);
  failed = rt_memory_await(r->device, r->stream, r->budget, failed);
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    rt_memory_give(NULL, r->budget, c.memory[k], (size_t)rt_buffer_bytes(&t->buffers[k]));
  }
  free(c.memory);
  return failed;
}
