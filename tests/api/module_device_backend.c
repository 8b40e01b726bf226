/* module_device_backend.c - the toy backend with memory of its own, which nobody can touch but while a thunk runs or a
 * copy is made: a host that reads or writes an address of the device, and a device that is given one of the host, fail.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/exec/executable.h"

#define onnx_xla_backend toy_backend
#include "tests/api/module_toy_backend.c"
#undef onnx_xla_backend

/* --- the memory --- */

typedef struct block {
  struct block *next;
  char *data;
  size_t bytes; /* whole pages */
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block *blocks;
static int users; /* how many work on the memory now */

static void protect(int access) {
  for (const block *b = blocks; b; b = b->next) {
    (void)mprotect(b->data, b->bytes, access);
  }
}

static void enter(void) {
  pthread_mutex_lock(&lock);
  if (users++ == 0) {
    protect(PROT_READ | PROT_WRITE);
  }
  pthread_mutex_unlock(&lock);
}

static void leave(void) {
  pthread_mutex_lock(&lock);
  if (--users == 0) {
    protect(PROT_NONE);
  }
  pthread_mutex_unlock(&lock);
}

static void *allocate(size_t bytes) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
  block *b = malloc(sizeof *b);
  void *data = mmap(NULL, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!b || data == MAP_FAILED) {
    free(b);
    return NULL;
  }
  pthread_mutex_lock(&lock);
  *b = (block){blocks, data, whole};
  blocks = b;
  if (users) {
    protect(PROT_READ | PROT_WRITE);
  }
  pthread_mutex_unlock(&lock);
  return data;
}

static void release(void *memory, size_t bytes) {
  (void)bytes;
  pthread_mutex_lock(&lock);
  block **at = &blocks;
  while ((*at)->data != memory) { /* what is not the device's ends the process here */
    at = &(*at)->next;
  }
  block *b = *at;
  *at = b->next;
  pthread_mutex_unlock(&lock);
  munmap(b->data, b->bytes);
  free(b);
}

/* Not one byte before or behind what was allocated, up to whole pages. */
static bool is_ours(const void *data, size_t bytes) {
  bool found = bytes == 0;
  pthread_mutex_lock(&lock);
  for (const block *b = blocks; b && !found; b = b->next) {
    uintptr_t at = (uintptr_t)data, start = (uintptr_t)b->data;
    found = at >= start && at - start < b->bytes && bytes <= b->bytes - (at - start);
  }
  pthread_mutex_unlock(&lock);
  return found;
}

static status transfer(void *to, const void *from, size_t bytes, bool up) {
  CHECK_THAT(is_ours(up ? to : from, bytes) && !is_ours(up ? from : to, bytes), STATUS_INTERNAL,
             "a copy of %zu bytes that is no %s", bytes, up ? "upload" : "download");
  enter();
  memcpy(to, from, bytes);
  leave();
  return NULL;
}

static status upload(void *to, const void *from, size_t bytes) { return transfer(to, from, bytes, true); }
static status download(void *to, const void *from, size_t bytes) { return transfer(to, from, bytes, false); }

/* --- its thunks --- */

static status run_on_device(const rt_thunk *t, rt_run *r, status (*work)(const rt_thunk *t, rt_run *r)) {
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    CHECK_THAT(is_ours(rt_address(r, &t->buffers[k]), (size_t)rt_buffer_bytes(&t->buffers[k])), STATUS_INTERNAL,
               "buffer %u is not in the device's memory", k);
  }
  enter();
  status failed = work(t, r);
  leave();
  return failed;
}

static status run_loop(const rt_thunk *t, rt_run *r) { return run_on_device(t, r, run); }

/* The runtime's own copies, once the memory can be touched. */
static const rt_thunk_kind *host_copy(void) {
  const rt_thunk_kind *k = rt_common_kinds;
  while (strcmp(k->name, "copy") != 0) {
    k++;
  }
  return k;
}

static status load_copy(rt_thunk *t, rt_loader *l) { return host_copy()->load(t, l); }
static status run_copy(const rt_thunk *t, rt_run *r) { return run_on_device(t, r, host_copy()->run); }

static const rt_thunk_kind device_kinds[] = {{.name = "toy.loop", .load = load, .run = run_loop},
                                             {.name = "copy", .load = load_copy, .run = run_copy}};
static const rt_device memory = {.allocate = allocate, .release = release, .upload = upload, .download = download};
static const rt_target device_target = {
    .abi = RT_ABI, .name = "toy", .kinds = device_kinds, .n_kinds = 2, .device = &memory};
static const rt_backend device_backend = {
    .abi = RT_ABI, .adopt_guard = guard_adopt, .target = &device_target, .compiler = &compiler};

rt_backend_entry onnx_xla_backend;

const rt_backend *onnx_xla_backend(uint32_t abi) { return abi == RT_ABI && toy_backend(abi) ? &device_backend : NULL; }
