/* memory.h - memory for the arrays of a target: its device's, or the host's. */
#ifndef RUNTIME_EXEC_MEMORY_H
#define RUNTIME_EXEC_MEMORY_H

#include "runtime/program/target.h"

enum { RT_ARRAY_ALIGN = 64 }; /* the alignment of every space (rt_space) in bytes, but for the caller's arrays */

/* Returns the least alignment with which a run uses the caller's array of this type where it is; the array of a caller
 * with less is copied.  Only kernels of devices load vectors that must be aligned. */
static inline size_t rt_array_align(const rt_device *d, dtype t) { return d ? RT_ARRAY_ALIGN : dtype_align(t); }

/* Allocates memory of the device, or of the host if `d` is NULL.  The budget counts only memory of the host.  The
 * message of a failure names `what`, followed by `name` in quotes if it is not NULL. */
STATUS_MUST_USE status rt_memory_take(const rt_device *d, mem_budget *budget, size_t bytes, const char *what,
                                      const char *name, void **out);
/* Frees memory of rt_memory_take; the arguments must be those with which it was allocated.  NULL is allowed. */
void rt_memory_give(const rt_device *d, mem_budget *budget, void *memory, size_t bytes);

/* Sets *out to the device's copy of a constant, `bytes` bytes at `data`, which must not change until the copy is given
 * back.  Programs that have the same array in host memory share one copy.  A new copy is made by work of the stream,
 * and is complete when this returns. */
STATUS_MUST_USE status rt_device_constant_take(const rt_device *d, rt_stream *s, const void *data, size_t bytes,
                                               void **out);
void rt_device_constant_give(const rt_device *d, const void *data, size_t bytes);

/* Copies bytes to an array that may overlap the source: on the host, at once, if `d` is NULL; otherwise in the given
 * direction, as the next work of the stream. */
STATUS_MUST_USE status rt_memory_copy(const rt_device *d, rt_stream *s, rt_copy direction, void *to, const void *from,
                                      size_t bytes);

/* Waits until the device has done the work of the stream.  Returns `failed` unless it is NULL.  Otherwise returns the
 * failure of the wait, such as that of a budget that has expired, or NULL.  Even after a failure it waits to the end,
 * so that what the work uses may be freed afterwards.  Without a device there is nothing to wait for. */
STATUS_MUST_USE status rt_memory_await(const rt_device *d, rt_stream *s, const mem_budget *budget, status failed);

/* Reads bytes of an array of the target, after all work of the run so far is done. */
STATUS_MUST_USE status rt_memory_read(const rt_run *r, void *to, const void *from, size_t bytes);

/* Runs a thunk whose kind works in host memory (rt_thunk_kind.on_host) on a target with a device. */
STATUS_MUST_USE status rt_run_on_host(const rt_thunk *t, rt_run *r);

#endif
