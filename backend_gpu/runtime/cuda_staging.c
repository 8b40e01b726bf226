/* cuda_staging.c - copies between the host and CUDA's devices through page-locked memory.  The driver copies only such
 * memory while the host goes on; a copy of pageable memory would make the caller wait. */
#include <string.h>

#include "backend_gpu/runtime/cuda_device.h"

enum { BUFFER_BYTES = 4 << 20, LINE = 64 /* bytes; they divide BUFFER_BYTES */ };

static cuda_buffer *current(cuda_staging *g) { return &g->buffers[g->turn]; }

/* --- buffers --- */

static status take_buffer(cuda_device *d, cuda_buffer *b) {
  void *memory;
  TRY(b->event ? NULL : cuda_check(d, d->cu->cuEventCreate(&b->event, CU_EVENT_DISABLE_TIMING), "creating an event"));
  if (!b->memory) {
    TRY(cuda_check(d, d->cu->cuMemHostAlloc(&memory, BUFFER_BYTES, 0), "allocating %d bytes of page-locked memory",
                   BUFFER_BYTES));
    b->memory = memory;
  }
  return NULL;
}

/* Empties a buffer whose copies are done. */
static void deliver(cuda_buffer *b) {
  for (uint32_t k = 0; k < b->n_downloads; k++) {
    memcpy(b->downloads[k].to, b->downloads[k].from, b->downloads[k].bytes);
  }
  b->n_downloads = 0;
  b->used = 0;
}

/* Makes the other buffer the current one, after waiting until its copies are done.  The copies of the buffer that was
 * current before go on meanwhile. */
static status turn(rt_stream *s) {
  cuda_device *d = s->device;
  cuda_staging *g = &s->staging;
  TRY(cuda_check(d, d->cu->cuEventRecord(current(g)->event, s->handle), "noting the end of copies"));
  g->turn = !g->turn;
  if (current(g)->used) {
    TRY(cuda_check(d, d->cu->cuEventSynchronize(current(g)->event), "waiting for copies"));
  }
  deliver(current(g));
  return NULL;
}

/* Sets *out to a buffer with room for one more copy. */
static status find_room(rt_stream *s, cuda_buffer **out) {
  cuda_staging *g = &s->staging;
  const cuda_buffer *b = current(g);
  if (b->used == BUFFER_BYTES || b->n_downloads == CUDA_MOST_DOWNLOADS) {
    TRY(turn(s));
  }
  *out = current(g);
  return take_buffer(s->device, *out);
}

/* --- copies --- */

/* The memory for one copy. */
typedef struct part {
  cuda_buffer *buffer;
  uint8_t *memory;
  size_t bytes;
} part;

/* Takes memory for as many of the bytes as a buffer has room for.  Parts begin at multiples of the size of a cache
 * line. */
static status take_part(rt_stream *s, size_t bytes, part *out) {
  cuda_buffer *b;
  TRY(find_room(s, &b));
  size_t room = BUFFER_BYTES - b->used;
  *out = (part){b, b->memory + b->used, bytes < room ? bytes : room};
  b->used = (b->used + out->bytes + LINE - 1) / LINE * LINE;
  return NULL;
}

/* Returns true if a download to some of these bytes of the host has not been delivered yet. */
static bool is_awaited(const cuda_staging *g, const char *at, size_t bytes) {
  for (int k = 0; k < 2; k++) {
    for (uint32_t j = 0; j < g->buffers[k].n_downloads; j++) {
      const cuda_download *p = &g->buffers[k].downloads[j];
      if (at < (const char *)p->to + p->bytes && (const char *)p->to < at + bytes) {
        return true;
      }
    }
  }
  return false;
}

status cuda_upload(rt_stream *s, CUdeviceptr to, const void *from, size_t bytes) {
  cuda_device *d = s->device;
  const char *at = from;
  if (is_awaited(&s->staging, at, bytes)) { /* must read what the earlier download writes */
    TRY(cuda_await(s, NULL));
  }
  for (part p; bytes > 0; at += p.bytes, to += p.bytes, bytes -= p.bytes) {
    TRY(take_part(s, bytes, &p));
    memcpy(p.memory, at, p.bytes);
    TRY(cuda_check(d, d->cu->cuMemcpyHtoDAsync_v2(to, p.memory, p.bytes, s->handle), "copying %zu bytes to the device",
                   p.bytes));
  }
  return NULL;
}

status cuda_download_later(rt_stream *s, void *to, CUdeviceptr from, size_t bytes) {
  cuda_device *d = s->device;
  char *at = to;
  for (part p; bytes > 0; at += p.bytes, from += p.bytes, bytes -= p.bytes) {
    TRY(take_part(s, bytes, &p));
    TRY(cuda_check(d, d->cu->cuMemcpyDtoHAsync_v2(p.memory, from, p.bytes, s->handle),
                   "copying %zu bytes from the device", p.bytes));
    p.buffer->downloads[p.buffer->n_downloads++] = (cuda_download){at, p.memory, p.bytes};
  }
  return NULL;
}

/* Delivers the other buffer first, since its copies are older than those of the current one. */
void cuda_staging_deliver(rt_stream *s) {
  deliver(&s->staging.buffers[!s->staging.turn]);
  deliver(current(&s->staging));
}

void cuda_staging_forget(rt_stream *s) { s->staging.buffers[0].n_downloads = s->staging.buffers[1].n_downloads = 0; }

void cuda_staging_free(rt_stream *s) {
  cuda_device *d = s->device;
  for (int k = 0; k < 2; k++) {
    cuda_buffer *b = &s->staging.buffers[k];
    if (b->memory) {
      cuda_lose_if(d, cuda_check(d, d->cu->cuMemFreeHost(b->memory), "freeing page-locked memory"));
    }
    if (b->event) {
      cuda_lose_if(d, cuda_check(d, d->cu->cuEventDestroy_v2(b->event), "destroying an event"));
    }
  }
}
