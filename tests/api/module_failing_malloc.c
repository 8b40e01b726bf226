/* module_failing_malloc.c - preloaded into a program (LD_PRELOAD), it makes one allocation fail: number MALLOC_FAILS_AT
 * of those that our own code asks for, and also all later ones if MALLOC_FAILS_ON is set.  The number of all such
 * allocations is written to the file MALLOC_COUNT.  Allocations of LLVM and other libraries never fail, since these
 * would end the process. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

static atomic_long count;
static long fails_at;
static bool fails_on;

__attribute__((constructor)) static void start(void) {
  const char *at = getenv("MALLOC_FAILS_AT");
  fails_at = at ? atol(at) : 0;
  fails_on = getenv("MALLOC_FAILS_ON") != NULL;
}

__attribute__((destructor)) static void finish(void) {
  const char *path = getenv("MALLOC_COUNT");
  FILE *f = path ? fopen(path, "w") : NULL;
  if (f) {
    fprintf(f, "%ld\n", atomic_load(&count));
    fclose(f);
  }
}

/* Returns true if this allocation, which code at `caller` asks for, shall fail. */
static bool fails(const void *caller) {
  static _Thread_local bool inside; /* dladdr may allocate */
  Dl_info info;
  if (inside) {
    return false;
  }
  inside = true;
  bool ours = dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "onnx-xla") &&
              !strstr(info.dli_fname, ".so.19");
  inside = false;
  if (!ours) {
    return false;
  }
  long k = atomic_fetch_add(&count, 1) + 1;
  bool fail = fails_at && (k == fails_at || (fails_on && k > fails_at));
  errno = fail ? ENOMEM : errno;
  return fail;
}

#define CALLER __builtin_return_address(0)
void *malloc(size_t size) { return fails(CALLER) ? NULL : __libc_malloc(size); }
void *calloc(size_t n, size_t size) { return fails(CALLER) ? NULL : __libc_calloc(n, size); }
void *realloc(void *old, size_t size) { return fails(CALLER) ? NULL : __libc_realloc(old, size); }
void *aligned_alloc(size_t align, size_t size) { return fails(CALLER) ? NULL : __libc_memalign(align, size); }
