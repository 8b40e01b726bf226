/* staging.c - copies of the caller's arrays; see staging.h. */
#include "runtime/exec/staging.h"

#include <stdlib.h>

static size_t bytes_of(const rt_io *io) { return (size_t)shape_bytes(&io->shape); }

/* Returns true if the caller's array is in the target's memory. */
static bool is_at_home(const rt_staging *s, uint32_t k) { return !s->device || (s->on_device && s->on_device[k]); }

static bool is_aligned(const rt_staging *s, uint32_t k, const void *p) {
  return (uintptr_t)p % rt_array_align(s->device, (dtype)s->io[k].shape.type) == 0;
}

/* Returns true if the caller passes the same memory for the result and for the parameter in which it is carried, but
 * the program does not compute the result in place.  Such a program still reads the parameter while it writes the
 * result. */
static bool needs_own_memory(const rt_io *io, const void *const *params, const void *given) {
  return io->carried && !io->in_place && params && params[io->carried - 1] == given;
}

/* Makes the kept memory at least `bytes` bytes large.  No work of the device may still use it. */
static status make_room(rt_kept *kept, const rt_device *d, size_t bytes, const char *what, const char *name) {
  if (kept->memory && kept->bytes >= bytes) {
    return NULL;
  }
  rt_memory_give(d, NULL, kept->memory, kept->bytes);
  *kept = (rt_kept){.memory = NULL};
  TRY(rt_memory_take(d, NULL, bytes, what, name, &kept->memory));
  kept->bytes = bytes;
  return NULL;
}

static status take_array(rt_staging *s, rt_kept *kept, mem_budget *budget, uint32_t k, void *given,
                         const void *const *params) {
  const rt_io *io = &s->io[k];
  size_t bytes = bytes_of(io);
  const char *what = params ? "output" : "input";
  CHECK_THAT(given || bytes == 0, STATUS_INVALID_ARGUMENT, "%s '%s' has no buffer", what, io->name);
  s->used[k] = given;
  if (is_at_home(s, k) && given && is_aligned(s, k, given) && !needs_own_memory(io, params, given)) {
    return NULL;
  }
  if (s->device) {
    TRY(make_room(&kept[k], s->device, bytes, what, io->name));
    s->owned[k] = kept[k].memory;
  } else {
    TRY(rt_memory_take(NULL, budget, bytes, what, io->name, &s->owned[k]));
  }
  s->used[k] = s->owned[k];
  return NULL;
}

status rt_staging_take(rt_staging *s, const rt_device *d, rt_kept *kept, mem_budget *budget, uint32_t n,
                       const rt_io *io, void *const *given, const bool *on_device, const void *const *params) {
  *s = (rt_staging){
      .device = d, .n = n, .io = io, .on_device = on_device, .owned = calloc(2 * (size_t)n + 1, sizeof *s->owned)};
  CHECK_THAT(s->owned, STATUS_RESOURCE, "out of memory");
  s->used = s->owned + n;
  for (uint32_t k = 0; k < n; k++) {
    TRY(take_array(s, kept, budget, k, given[k], params));
  }
  return NULL;
}

status rt_staging_copy(const rt_staging *s, rt_stream *stream, void *const *given, rt_copy direction) {
  for (uint32_t k = 0; k < s->n; k++) {
    void *to = direction == RT_UPLOAD ? s->owned[k] : given[k], *from = direction == RT_UPLOAD ? given[k] : s->owned[k];
    rt_copy way = is_at_home(s, k) ? RT_ON_DEVICE : direction;
    TRY(s->owned[k] ? rt_memory_copy(s->device, stream, way, to, from, bytes_of(&s->io[k])) : NULL);
  }
  return NULL;
}

status rt_staging_fill_carried(const rt_staging *out, const rt_staging *in, rt_stream *stream,
                               const void *const *params) {
  for (uint32_t k = 0; k < out->n; k++) {
    const rt_io *io = &out->io[k];
    const void *from = io->in_place ? params[io->carried - 1] : out->used[k];
    rt_copy way = io->in_place && is_at_home(in, io->carried - 1) ? RT_ON_DEVICE : RT_UPLOAD;
    TRY(from != out->used[k] ? rt_memory_copy(out->device, stream, way, out->used[k], from, bytes_of(io)) : NULL);
  }
  return NULL;
}

void rt_staging_give(rt_staging *s, mem_budget *budget) {
  for (uint32_t k = 0; k < s->n && s->owned && !s->device; k++) {
    rt_memory_give(NULL, budget, s->owned[k], bytes_of(&s->io[k]));
  }
  free(s->owned);
}
