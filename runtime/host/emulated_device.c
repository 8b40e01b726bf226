/* emulated_device.c - see emulated_device.h. */
#include "runtime/host/emulated_device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"

/* --- memory: pieces of one reserved region, so that one call changes the protection of all of them --- */

static const size_t region_bytes = (size_t)1 << (sizeof(void *) == 8 ? 38 : 28);
enum { MEMORY_ALIGN = 4096 };

typedef struct piece {
  struct piece *next; /* at a higher address */
  size_t offset, bytes;
} piece;

static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *region; /* NULL until something is allocated */
static piece *pieces;
static size_t top; /* the largest offset at which a piece has ever ended */
static int users;  /* how many threads may touch the memory now */

static void protect(int access) {
  if (top && mprotect(region, top, access) != 0) {
    abort(); /* the system has no memory for its page tables, so the process could not go on */
  }
}

static void enter(void) {
  pthread_mutex_lock(&memory_lock);
  if (users++ == 0) {
    protect(PROT_READ | PROT_WRITE);
  }
  pthread_mutex_unlock(&memory_lock);
}

static void leave(void) {
  pthread_mutex_lock(&memory_lock);
  if (--users == 0) {
    protect(PROT_NONE);
  }
  pthread_mutex_unlock(&memory_lock);
}

static status reserve_region(void) {
  void *r = region ? region : mmap(NULL, region_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK_THAT(r != MAP_FAILED, STATUS_RESOURCE, "no room for the memory of an emulated device");
  region = r;
  return NULL;
}

/* Sets *out to a new piece in the first gap that has room.  Behind each piece is at least one page that belongs to no
 * piece. */
static status add_piece(size_t bytes, piece **out) {
  size_t whole = (bytes + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN, offset = 0;
  piece **at = &pieces;
  while (*at && (*at)->offset - offset < whole + MEMORY_ALIGN) {
    offset = (*at)->offset + (*at)->bytes + MEMORY_ALIGN;
    at = &(*at)->next;
  }
  CHECK_THAT(whole >= bytes && whole <= region_bytes && offset <= region_bytes - whole, STATUS_RESOURCE,
             "no %zu bytes of memory on the emulated device", bytes);
  piece *p = *out = malloc(sizeof *p);
  CHECK_THAT(p, STATUS_RESOURCE, "out of memory");
  *p = (piece){.next = *at, .offset = offset, .bytes = whole};
  *at = p;
  top = offset + whole > top ? offset + whole : top;
  return NULL;
}

static status allocate(const rt_device *d, size_t bytes, void **out) {
  (void)d;
  piece *p = NULL;
  pthread_mutex_lock(&memory_lock);
  status failed = reserve_region();
  failed = failed ? failed : add_piece(bytes, &p);
  if (!failed) {
    protect(PROT_READ | PROT_WRITE);
    memset(region + p->offset, 0xff, p->bytes);
    protect(users ? PROT_READ | PROT_WRITE : PROT_NONE);
    *out = region + p->offset;
  }
  pthread_mutex_unlock(&memory_lock);
  return failed;
}

static void release(const rt_device *d, void *memory, size_t bytes) {
  (void)d, (void)bytes;
  pthread_mutex_lock(&memory_lock);
  piece **at = &pieces;
  while (region + (*at)->offset != memory) { /* the process crashes here if `memory` is no piece */
    at = &(*at)->next;
  }
  piece *p = *at;
  *at = p->next;
  (void)madvise(region + p->offset, p->bytes, MADV_DONTNEED);
  free(p);
  pthread_mutex_unlock(&memory_lock);
}

bool rt_emulated_owns(const void *memory, size_t bytes) {
  bool found = bytes == 0;
  pthread_mutex_lock(&memory_lock);
  for (const piece *p = pieces; p && !found; p = p->next) {
    uintptr_t at = (uintptr_t)memory, start = (uintptr_t)region + p->offset;
    found = at >= start && at - start < p->bytes && bytes <= p->bytes - (at - start);
  }
  pthread_mutex_unlock(&memory_lock);
  return found;
}

/* --- streams --- */

typedef struct item {
  struct item *next;
  status (*work)(void *data, rt_run *run);
  void *data;
  rt_run run;
} item;

struct rt_recording {
  item *first, **last;
  status failed; /* why the recording cannot be used; NULL if it can */
};

struct rt_stream {
  pthread_t thread;
  pthread_mutex_t lock; /* guards what follows */
  pthread_cond_t changed;
  item *first, **last;
  bool busy, ending;
  status failed; /* the first failure since the last wait; the work after it is left out */
  unsigned random;
  /* The recording that gets the submitted work; NULL if the queue gets it.  Only the thread that submits work accesses
   * this member. */
  rt_recording *recording;
};

static _Atomic uint32_t longest_delay;

void rt_emulated_set_delay(uint32_t longest) { longest_delay = longest; }

static void delay(rt_stream *s) {
  uint32_t longest = longest_delay;
  if (longest) {
    long nanoseconds = (long)((uint32_t)rand_r(&s->random) % longest) * 1000;
    nanosleep(&(struct timespec){nanoseconds / 1000000000, nanoseconds % 1000000000}, NULL);
  }
}

static status call_item(void *data) {
  item *i = data;
  return i->work(i->data, &i->run);
}

static status do_item(rt_stream *s, item *i) {
  delay(s);
  enter();
  status failed = guard_run(call_item, i);
  leave();
  return failed;
}

static void free_item(item *i) {
  free(i->data);
  free(i);
}

static void *run_stream(void *data) {
  rt_stream *s = data;
  pthread_mutex_lock(&s->lock);
  for (;;) {
    item *i = s->first;
    if (!i && s->ending) {
      break;
    }
    if (!i) {
      pthread_cond_wait(&s->changed, &s->lock);
      continue;
    }
    s->first = i->next;
    s->last = s->first ? s->last : &s->first;
    s->busy = true;
    bool leave_out = s->failed != NULL;
    pthread_mutex_unlock(&s->lock);
    status failed = leave_out ? NULL : do_item(s, i);
    free_item(i);
    pthread_mutex_lock(&s->lock);
    s->failed = s->failed ? s->failed : failed;
    s->busy = false;
    pthread_cond_broadcast(&s->changed);
  }
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

static status create_stream(const rt_device *d, rt_stream **out) {
  rt_stream *s = calloc(1, sizeof *s);
  CHECK_THAT(s, STATUS_RESOURCE, "out of memory");
  (void)d;
  s->last = &s->first;
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->changed, NULL);
  if (pthread_create(&s->thread, NULL, run_stream, s) != 0) {
    free(s);
    return status_error(STATUS_RESOURCE, "no thread for a stream of the emulated device");
  }
  *out = s;
  return NULL;
}

static void destroy_stream(rt_stream *s) {
  pthread_mutex_lock(&s->lock);
  s->ending = true;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
  pthread_join(s->thread, NULL);
  pthread_cond_destroy(&s->changed);
  pthread_mutex_destroy(&s->lock);
  status_free(s->failed);
  free(s);
}

static void append(rt_stream *s, item *i) {
  if (s->recording) {
    *s->recording->last = i;
    s->recording->last = &i->next;
    return;
  }
  pthread_mutex_lock(&s->lock);
  *s->last = i;
  s->last = &i->next;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
}

status rt_emulated_submit(rt_stream *s, const rt_run *run, status (*work)(void *data, rt_run *run), void *data) {
  item *i = malloc(sizeof *i);
  if (!i || !data) {
    free(i);
    free(data);
    return status_error(STATUS_RESOURCE, "out of memory");
  }
  *i = (item){.work = work, .data = data, .run = run ? *run : (rt_run){.stream = s}};
  append(s, i);
  return NULL;
}

/* Fails if the stream is recording, and makes the recording fail, too, as CUDA does. */
static status check_not_recording(const rt_stream *s, const char *what) {
  if (s->recording) {
    s->recording->failed = status_first(s->recording->failed, status_error(STATUS_INTERNAL, "%s in a recording", what));
    return status_copy(s->recording->failed);
  }
  return NULL;
}

static status await(rt_stream *s, const mem_budget *budget) {
  enum { POLL_NANOSECONDS = 5000000 };
  status late = NULL;
  TRY(check_not_recording(s, "a wait"));
  pthread_mutex_lock(&s->lock);
  while ((s->busy || s->first) && !late) {
    struct timespec until = clock_after(CLOCK_REALTIME, POLL_NANOSECONDS);
    pthread_cond_timedwait(&s->changed, &s->lock, &until);
    late = budget_check(budget);
  }
  status failed = s->failed;
  s->failed = NULL;
  pthread_mutex_unlock(&s->lock);
  return status_first(failed, late);
}

/* --- recordings --- */

static status record_begin(rt_stream *s) {
  TRY(check_not_recording(s, "another recording"));
  s->recording = calloc(1, sizeof *s->recording);
  CHECK_THAT(s->recording, STATUS_RESOURCE, "out of memory");
  s->recording->last = &s->recording->first;
  return NULL;
}

static void release_recording(rt_recording *r) {
  for (item *i = r->first, *next; i; i = next) {
    next = i->next;
    free_item(i);
  }
  status_free(r->failed);
  free(r);
}

static status record_end(rt_stream *s, rt_recording **out) {
  rt_recording *r = s->recording;
  CHECK_THAT(r, STATUS_INTERNAL, "the end of a recording that was not begun");
  s->recording = NULL;
  status failed = r->failed;
  r->failed = NULL;
  if (failed) {
    release_recording(r);
    return failed;
  }
  *out = r;
  return NULL;
}

static status repeat(void *data, rt_run *run) {
  for (item *i = (*(rt_recording **)data)->first; i; i = i->next) {
    i->run = *run;
    delay(run->stream);
    TRY(call_item(i));
  }
  return NULL;
}

static status replay(const rt_run *run, rt_recording *r) {
  rt_recording **data = malloc(sizeof(rt_recording *));
  if (data) {
    *data = r;
  }
  return rt_emulated_submit(run->stream, run, repeat, data);
}

/* --- events --- */

struct rt_event {
  _Atomic uint64_t nanoseconds; /* when the stream reached the event; 0 if it has not yet */
};

static status create_event(const rt_device *d, rt_event **out) {
  (void)d;
  *out = calloc(1, sizeof **out);
  CHECK_THAT(*out, STATUS_RESOURCE, "out of memory");
  return NULL;
}

static void destroy_event(rt_event *e) { free(e); }

static status note_time(void *data, rt_run *run) {
  (void)run;
  (*(rt_event **)data)->nanoseconds = clock_nanoseconds();
  return NULL;
}

static status record_event(rt_event *e, rt_stream *s) {
  TRY(check_not_recording(s, "an event"));
  rt_event **data = malloc(sizeof(rt_event *));
  if (data) {
    *data = e;
  }
  e->nanoseconds = 0;
  return rt_emulated_submit(s, NULL, note_time, data);
}

static status elapsed(const rt_event *from, const rt_event *to, double *seconds) {
  uint64_t begin = from->nanoseconds, end = to->nanoseconds;
  CHECK_THAT(begin && end, STATUS_INTERNAL, "the time of an event that was not waited for");
  *seconds = 1e-9 * (double)(int64_t)(end - begin);
  return NULL;
}

/* --- copies --- */

typedef struct copying {
  rt_copy direction;
  void *to;
  const void *from;
  size_t bytes;
} copying;

/* Fails if an address is not in the memory that the direction of the copy implies.  Without this check such a copy
 * would work here, but not on a real device. */
static status check_copy(const copying *c) {
  bool from = rt_emulated_owns(c->from, c->bytes), to = rt_emulated_owns(c->to, c->bytes);
  CHECK_THAT(from == (c->direction != RT_UPLOAD) && to == (c->direction != RT_DOWNLOAD), STATUS_INTERNAL,
             "a copy of %zu bytes that is no %s", c->bytes,
             c->direction == RT_UPLOAD     ? "upload"
             : c->direction == RT_DOWNLOAD ? "download"
                                           : "copy on the device");
  return NULL;
}

static status do_copy(void *data, rt_run *run) {
  const copying *c = data;
  (void)run;
  TRY(check_copy(c));
  memmove(c->to, c->from, c->bytes);
  return NULL;
}

static status copy(rt_stream *s, rt_copy direction, void *to, const void *from, size_t bytes) {
  copying *c = bytes ? malloc(sizeof *c) : NULL;
  if (c) {
    *c = (copying){direction, to, from, bytes};
  }
  TRY(bytes ? rt_emulated_submit(s, NULL, do_copy, c) : NULL);
  return direction == RT_ON_DEVICE ? NULL : check_not_recording(s, "a copy of the host's memory");
}

/* --- thunks --- */

uint64_t rt_emulated_fingerprint(const rt_thunk *t, const rt_run *r) {
  uint64_t h = hash_bytes(t->sizes, t->n_sizes * sizeof *t->sizes, 0);
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    const rt_buffer *b = &t->buffers[k];
    h = hash_mix(h, (uintptr_t)rt_address(r, b));
    h = hash_bytes(b->extents, b->rank * sizeof *b->extents, h);
    h = hash_bytes(b->strides, b->rank * sizeof *b->strides, h);
  }
  return h;
}

status rt_emulated_check_thunk(const rt_thunk *t, const rt_run *r, uint64_t fingerprint) {
  CHECK_THAT(rt_emulated_fingerprint(t, r) == fingerprint, STATUS_INTERNAL,
             "a recording is replayed that was made for other addresses or sizes");
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    const rt_buffer *b = &t->buffers[k];
    CHECK_THAT(rt_emulated_owns(rt_address(r, b), (size_t)rt_buffer_bytes(b)), STATUS_INTERNAL,
               "buffer %u is not in the device's memory", k);
  }
  return NULL;
}

typedef struct thunk_call {
  const rt_thunk *thunk;
  uint64_t fingerprint;
  status (*function)(const rt_thunk *t, rt_run *r);
} thunk_call;

static status do_thunk(void *data, rt_run *run) {
  const thunk_call *c = data;
  TRY(rt_emulated_check_thunk(c->thunk, run, c->fingerprint));
  return c->function(c->thunk, run);
}

status rt_emulated_submit_thunk(const rt_thunk *t, const rt_run *r, status (*run)(const rt_thunk *t, rt_run *r)) {
  thunk_call *c = malloc(sizeof *c);
  if (c) {
    *c = (thunk_call){t, rt_emulated_fingerprint(t, r), run};
  }
  return rt_emulated_submit(r->stream, r, do_thunk, c);
}

/* --- the device --- */

rt_device rt_emulated_device(void) {
  return (rt_device){.allocate = allocate,
                     .release = release,
                     .create_stream = create_stream,
                     .destroy_stream = destroy_stream,
                     .copy = copy,
                     .await = await,
                     .record_begin = record_begin,
                     .record_end = record_end,
                     .replay = replay,
                     .release_recording = release_recording,
                     .create_event = create_event,
                     .destroy_event = destroy_event,
                     .record_event = record_event,
                     .elapsed = elapsed};
}
