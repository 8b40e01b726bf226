/* guarded.c - see guarded.h.  An access that is not allowed raises SIGSEGV.  The handler records the first one and
 * makes the pages accessible, so that the instruction succeeds when it is executed again.  mprotect is a plain system
 * call, so a handler may use it. */
#include "runtime/exec/guarded.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/machine/machine.h"

enum { GUARD = 64 * 1024 }; /* GUARD is a multiple of the page size of every machine */

/* --- pages --- */

static void unmap(void *data) {
  const guarded *g = data;
  if (g->map) {
    munmap(g->map, g->map_bytes);
  }
}

static guarded *reserve(arena *a, size_t bytes) {
  guarded *g = ARENA_NEW(a, guarded);
  arena_cleanup(a, unmap, g);
  g->map_bytes = bytes + 2 * GUARD;
  void *map = bytes > SIZE_MAX / 2
                  ? MAP_FAILED
                  : mmap(NULL, g->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) {
    guard_fail("no address space for guarded memory");
  }
  g->map = map;
  return g;
}

static size_t aligned_to(size_t bytes, size_t align) { return (bytes + align - 1) & ~(align - 1); }

static size_t readable_bytes(size_t bytes) { return aligned_to(bytes, machine_page_bytes()); }

static void place_data(guarded *g, size_t bytes, size_t align) {
  g->data = g->pages + g->page_bytes - aligned_to(bytes, align);
  g->bytes = bytes;
}

guarded *guarded_create(arena *a, size_t bytes, size_t align) {
  guarded *g = reserve(a, readable_bytes(bytes));
  g->pages = g->map + GUARD;
  g->page_bytes = readable_bytes(bytes);
  place_data(g, bytes, align);
  if (g->page_bytes && mprotect(g->pages, g->page_bytes, PROT_READ | PROT_WRITE) != 0) {
    guard_fail("no guarded memory");
  }
  return g;
}

typedef struct loan {
  guarded_pool *pool;
  guarded *memory;
} loan;

/* Returns memory to the pool.  Memory that cannot be made writable again stays mapped until the pool's arena is
 * destroyed. */
static void end_loan(void *data) {
  const loan *l = data;
  guarded *g = l->memory, **spare = &l->pool->spare[g->page_bytes / machine_page_bytes()];
  if (!g->is_protected || mprotect(g->pages, g->page_bytes, PROT_READ | PROT_WRITE) == 0) {
    g->is_protected = false;
    g->next = *spare;
    *spare = g;
  }
}

guarded *guarded_take(guarded_pool *p, arena *user, size_t bytes, size_t align) {
  size_t n = readable_bytes(bytes) / machine_page_bytes();
  if (n >= sizeof p->spare / sizeof *p->spare) {
    return guarded_create(user, bytes, align);
  }
  guarded *g = p->spare[n];
  if (g) {
    p->spare[n] = g->next;
    place_data(g, bytes, align);
  } else {
    g = guarded_create(p->arena, bytes, align);
  }
  arena_cleanup(user, end_loan, arena_memdup(user, &(loan){p, g}, sizeof(loan)));
  return g;
}

guarded *guarded_forbidden(arena *a, size_t bytes) {
  guarded *g = reserve(a, aligned_to(bytes, machine_page_bytes()));
  g->data = g->pages = g->map + GUARD;
  return g;
}

status guarded_protect(guarded *g) {
  CHECK_THAT(!g->page_bytes || mprotect(g->pages, g->page_bytes, PROT_READ) == 0, STATUS_RESOURCE,
             "cannot protect memory: %s", strerror(errno));
  g->is_protected = true;
  return NULL;
}

bool guarded_holds(const guarded *g, uintptr_t address) {
  return address >= (uintptr_t)g->map && address - (uintptr_t)g->map < g->map_bytes;
}

/* --- faults --- */

typedef struct watch {
  uint32_t n;
  guarded *const *list;
  const char *what;
  struct sigaction before;
  atomic_int access; /* the guarded_access of the first fault */
  atomic_uintptr_t address;
} watch;

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static watch *_Atomic watching; /* what the SIGSEGV handler watches now; NULL if no guarded_run is in progress */

static int access_of(const void *context) {
#if defined(__x86_64__) && defined(__linux__)
  enum { WRITE_BIT = 2 }; /* a bit of the page fault's error code */
  const ucontext_t *c = context;
  return c->uc_mcontext.gregs[REG_ERR] & WRITE_BIT ? GUARDED_WRITTEN : GUARDED_READ;
#else
  (void)context;
  return GUARDED_TOUCHED;
#endif
}

static guarded *find(const watch *w, uintptr_t address) {
  for (uint32_t k = 0; k < w->n; k++) {
    if (guarded_holds(w->list[k], address)) {
      return w->list[k];
    }
  }
  return NULL;
}

static void say(const char *text) {
  ssize_t written = write(STDERR_FILENO, text, strlen(text));
  (void)written;
}

/* Restores the handler that was installed before this one.  That handler gets the fault, which happens again when the
 * instruction is executed again. */
static void give_up(const watch *w, int signal, const siginfo_t *info) {
  if (w) {
    say("onnx-xla: fault outside of all buffers while this was computed: ");
    say(w->what);
    say("\n");
  }
  sigaction(signal, w ? &w->before : &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
  if (info->si_code <= 0) { /* the signal was sent by a process and does not come from an instruction */
    raise(signal);
  }
}

static void on_fault(int signal, siginfo_t *info, void *context) {
  int error = errno, none = GUARDED_NONE;
  watch *w = atomic_load(&watching);
  uintptr_t address = (uintptr_t)info->si_addr;
  guarded *g = w && info->si_code > 0 ? find(w, address) : NULL;
  if (!g || mprotect(g->map, g->map_bytes, PROT_READ | PROT_WRITE) != 0) {
    give_up(w, signal, info);
  } else if (atomic_compare_exchange_strong(&w->access, &none, access_of(context))) {
    atomic_store(&w->address, address);
  }
  errno = error;
}

status guarded_run(uint32_t n, guarded *const *list, const char *what, status (*fn)(void *), void *data,
                   guarded_fault *fault) {
  watch w = {.n = n, .list = list, .what = what};
  struct sigaction ours = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
  pthread_mutex_lock(&one_at_a_time);
  atomic_store(&watching, &w);
  sigaction(SIGSEGV, &ours, &w.before);
  status s = guard_run(fn, data);
  sigaction(SIGSEGV, &w.before, NULL);
  atomic_store(&watching, NULL);
  pthread_mutex_unlock(&one_at_a_time);
  *fault = (guarded_fault){(guarded_access)atomic_load(&w.access), atomic_load(&w.address)};
  return s;
}
