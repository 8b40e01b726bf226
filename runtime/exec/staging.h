/* staging.h - the caller's arrays for a run.  An array that is not aligned as kernels require is copied to or from
 * aligned memory.  If the target has a device, arrays in host memory are copied to or from its memory.  A result for
 * which the caller passes the memory of a parameter gets memory of its own if the program still reads the parameter. */
#ifndef RUNTIME_EXEC_STAGING_H
#define RUNTIME_EXEC_STAGING_H

#include "runtime/exec/memory.h"

/* Memory of a device for an array, which is kept for later runs, so that they have it at the same address. */
typedef struct rt_kept {
  void *memory; /* NULL: none yet */
  size_t bytes;
} rt_kept;

typedef struct rt_staging {
  const rt_device *device;
  uint32_t n;
  const rt_io *io;
  const bool *on_device; /* which of the caller's arrays are in the device's memory; NULL: none */
  void **owned, **used;  /* owned[k]: the aligned or kept memory; NULL: used[k] is the caller's own array */
} rt_staging;

/* Provides staging memory for those of the n arrays at `given` that need it.  `io` describes the arrays, and
 * `on_device`, if not NULL, tells which of them are in the device's memory.  On a device, the staging memory of array k
 * is kept[k].memory, which is replaced if it is too small.  `params` has the addresses of the inputs if the arrays are
 * outputs, and is NULL if they are inputs.  rt_staging_give frees staging memory of the host; it must be called even if
 * rt_staging_take fails. */
STATUS_MUST_USE status rt_staging_take(rt_staging *s, const rt_device *d, rt_kept *kept, mem_budget *budget, uint32_t n,
                                       const rt_io *io, void *const *given, const bool *on_device,
                                       const void *const *params);
void rt_staging_give(rt_staging *s, mem_budget *budget);

/* Copies the arrays at `given` into staging memory (RT_UPLOAD) or out of it (RT_DOWNLOAD), within the device if they
 * are in its memory. */
STATUS_MUST_USE status rt_staging_copy(const rt_staging *s, rt_stream *stream, void *const *given, rt_copy direction);
/* Copies the contents of a parameter into each result that is computed in place of it (rt_io.in_place), unless both
 * have the same memory.  `in` describes the parameters, and `params` has their addresses. */
STATUS_MUST_USE status rt_staging_fill_carried(const rt_staging *out, const rt_staging *in, rt_stream *stream,
                                               const void *const *params);

#endif
