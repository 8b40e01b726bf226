/* thread_pool.c - runs parallel loops on a pool of threads.
 *
 * The caller writes the loop into the pool, works on it like the workers, closes it, and waits for the workers that
 * have entered it.  A worker that wakes up late finds the loop closed, so nobody ever waits for a thread to wake up,
 * which takes long.
 *
 *   caller: write loop; open = 1; seq++; wake sleeping workers | work | open = 0; wait until inside == 0
 *   worker: if seq changed: inside++; if open: work; inside--
 *
 * The caller writes the loop only while open == 0, after it has seen inside == 0.  A worker reads the loop only between
 * inside++ and inside--, after it has seen open == 1 there.  Both flags are sequentially consistent, so that one side
 * always sees the other: a worker that enters after the caller saw inside == 0 sees open == 0 until the next loop is
 * written. */
#include "runtime/host/thread_pool.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

enum {
  RANGES_A_THREAD = 4, /* the number of ranges into which a thread's share is divided, so that others can take some */
  SPIN_NANOSECONDS = 50000,
  LINE = 64
};

/* The part of a thread's share of a loop that nobody has taken yet. */
typedef struct share {
  _Alignas(LINE) _Atomic int64_t next;
  int64_t end;
} share;

typedef struct loop {
  void (*fn)(void *data, int64_t begin, int64_t end);
  void *data;
  int64_t step;
  uint32_t n_shares;
  share shares[RT_MAX_THREADS];
} loop;

typedef struct worker {
  rt_thread_pool *pool;
  pthread_t thread;
  uint32_t number; /* the index of the share that the worker works on first; the caller has number 0 */
} worker;

struct rt_thread_pool {
  _Alignas(LINE) atomic_uint seq; /* is incremented for each loop, and when the workers must stop */
  atomic_int open;
  _Alignas(LINE) atomic_int inside;
  _Alignas(LINE) atomic_int parked;
  atomic_int stop;
  pthread_mutex_t turn; /* held by the caller that runs a loop */
  pthread_mutex_t lock; /* guards `parked` */
  pthread_cond_t wake;
  uint32_t threads, n_workers;
  bool started;
  unsigned forks; /* the value of the global `forks` when the pool was made */
  worker *workers;
  loop loop;
};

/* --- fork: a child has none of the threads, and its locks may be held by threads that do not exist --- */

static atomic_uint forks; /* the number of forks between the first process that made a pool and this one */

static void count_fork(void) { atomic_fetch_add(&forks, 1); }

static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, count_fork); }

static bool is_of_parent(const rt_thread_pool *p) {
  return p->forks != atomic_load_explicit(&forks, memory_order_relaxed);
}

static void pause_cpu(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ volatile("yield");
#endif
}

/* --- the work --- */

static void work_share(loop *l, share *s) {
  for (;;) {
    if (atomic_load_explicit(&s->next, memory_order_relaxed) >= s->end) {
      return;
    }
    int64_t begin = atomic_fetch_add_explicit(&s->next, l->step, memory_order_relaxed);
    if (begin >= s->end) {
      return;
    }
    l->fn(l->data, begin, s->end - begin < l->step ? s->end : begin + l->step);
  }
}

/* Works on the thread's own share of the loop, then on what is left of the shares of other threads. */
static void work(loop *l, uint32_t number) {
  for (uint32_t k = 0; k < l->n_shares; k++) {
    work_share(l, &l->shares[(number + k) % l->n_shares]);
  }
}

static void divide(loop *l, int64_t n, int64_t grain, uint32_t threads) {
  int64_t most = n / grain;
  l->n_shares = most < threads ? (uint32_t)most : threads;
  int64_t share_size = (n + l->n_shares - 1) / l->n_shares;
  int64_t step = (share_size + RANGES_A_THREAD - 1) / RANGES_A_THREAD;
  l->step = step < grain ? grain : step;
  for (uint32_t k = 0; k < l->n_shares; k++) {
    int64_t begin = k * share_size;
    atomic_store_explicit(&l->shares[k].next, begin, memory_order_relaxed);
    l->shares[k].end = n - begin < share_size ? n : begin + share_size;
  }
}

/* --- workers --- */

/* Waits until seq is not `seen` any more: spins for a while, then sleeps. */
static void await_change(rt_thread_pool *p, unsigned seen) {
  int64_t until = 0;
  for (uint32_t k = 1; atomic_load(&p->seq) == seen; k++) {
    pause_cpu();
    if (k % 64) {
      continue;
    }
    int64_t t = clock_nanoseconds();
    until = until ? until : t + SPIN_NANOSECONDS;
    if (t < until) {
      sched_yield(); /* the thread that woke this one may need the same core */
      continue;
    }
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->parked, 1);
    while (atomic_load(&p->seq) == seen) {
      pthread_cond_wait(&p->wake, &p->lock);
    }
    atomic_fetch_sub(&p->parked, 1);
    pthread_mutex_unlock(&p->lock);
  }
}

static void *worker_main(void *data) {
  worker *w = data;
  rt_thread_pool *p = w->pool;
  unsigned seen = 0;
  for (;;) {
    await_change(p, seen);
    seen = atomic_load(&p->seq);
    if (atomic_load(&p->stop)) {
      return NULL;
    }
    atomic_fetch_add(&p->inside, 1);
    if (atomic_load(&p->open)) {
      work(&p->loop, w->number);
    }
    atomic_fetch_sub(&p->inside, 1);
  }
}

/* Starts the workers.  If one cannot be started, the loops run on fewer threads. */
static void start_workers(rt_thread_pool *p) {
  p->started = true;
  for (uint32_t k = 0; k + 1 < p->threads; k++) {
    worker *w = &p->workers[p->n_workers];
    *w = (worker){.pool = p, .number = k + 1};
    if (pthread_create(&w->thread, NULL, worker_main, w) != 0) {
      return;
    }
    p->n_workers++;
  }
}

static void announce(rt_thread_pool *p) {
  atomic_fetch_add(&p->seq, 1);
  if (atomic_load(&p->parked)) {
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
  }
}

/* Waits until no worker is in the loop.  If that takes long, a worker has lost its core or works on a long range, so
 * this core is yielded to other threads. */
static void await_others(rt_thread_pool *p) {
  const int64_t long_wait = 2000000;
  int64_t start = 0;
  for (uint32_t k = 1; atomic_load(&p->inside); k++) {
    pause_cpu();
    if (k % 64) {
      continue;
    }
    int64_t t = clock_nanoseconds();
    start = start ? start : t;
    if (t - start > long_wait) {
      (void)nanosleep(&(struct timespec){.tv_nsec = SPIN_NANOSECONDS}, NULL);
    } else if (t - start > SPIN_NANOSECONDS) {
      sched_yield();
    }
  }
}

/* --- the interface --- */

status rt_thread_pool_create(uint32_t threads, rt_thread_pool **out) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  *out = NULL;
  assert(threads >= 1 && threads <= RT_MAX_THREADS);
  rt_thread_pool *p = aligned_alloc(LINE, sizeof *p);
  worker *workers = calloc(threads, sizeof *workers);
  if (!p || !workers) {
    free(p);
    free(workers);
    return status_error(STATUS_RESOURCE, "out of memory for %u threads", threads);
  }
  *p = (rt_thread_pool){.threads = threads, .workers = workers, .forks = atomic_load(&forks)};
  pthread_mutex_init(&p->turn, NULL);
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->wake, NULL);
  *out = p;
  return NULL;
}

void rt_thread_pool_destroy(rt_thread_pool *p) {
  if (!p) {
    return;
  }
  if (!is_of_parent(p)) {
    atomic_store(&p->stop, 1);
    announce(p);
    for (uint32_t k = 0; k < p->n_workers; k++) {
      pthread_join(p->workers[k].thread, NULL);
    }
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->turn);
  }
  free(p->workers);
  free(p);
}

uint32_t rt_thread_pool_threads(const rt_thread_pool *p) { return p ? p->threads : 1; }

void rt_parallel_for(rt_thread_pool *p, int64_t n, int64_t grain, void (*fn)(void *data, int64_t begin, int64_t end),
                     void *data) {
  grain = grain > 0 ? grain : 1;
  if (n <= 0) {
    return;
  }
  if (rt_thread_pool_threads(p) == 1 || n / 2 < grain || is_of_parent(p) || pthread_mutex_trylock(&p->turn) != 0) {
    fn(data, 0, n);
    return;
  }
  if (!p->started) {
    start_workers(p);
  }
  p->loop.fn = fn;
  p->loop.data = data;
  divide(&p->loop, n, grain, p->threads);
  atomic_store(&p->open, 1);
  announce(p);
  work(&p->loop, 0);
  atomic_store(&p->open, 0);
  await_others(p);
  pthread_mutex_unlock(&p->turn);
}

/* --- within a budget --- */

typedef struct bounded {
  const mem_budget *budget;
  int64_t grain;
  void (*fn)(void *data, int64_t begin, int64_t end);
  void *data;
} bounded;

/* Runs a range in parts and checks the budget between them.  It is not known how long an item takes, so parts begin
 * small and grow until they take long enough. */
static void run_bounded(void *data, int64_t begin, int64_t end) {
  enum { GRAINS = 16, SHORT = 2000000, LONG = 20000000 /* nanoseconds */ };
  const bounded *b = data;
  int64_t n = b->grain > 1 && b->grain < INT64_MAX / GRAINS ? b->grain * GRAINS : b->grain, start = clock_nanoseconds();
  while (begin < end && !budget_expired(b->budget)) {
    n = n < end - begin ? n : end - begin;
    b->fn(b->data, begin, begin + n);
    begin += n;
    int64_t time = clock_nanoseconds(), took = time - start;
    start = time;
    n = took < SHORT && n <= INT64_MAX / 2 ? 2 * n : took > LONG && n > 1 ? n / 2 : n;
  }
}

status rt_parallel_run(const rt_run *r, int64_t n, int64_t grain, void (*fn)(void *data, int64_t begin, int64_t end),
                       void *data) {
  bounded b = {r->budget, grain > 0 ? grain : 1, fn, data};
  if (!r->budget) {
    rt_parallel_for(r->pool, n, grain, fn, data);
    return NULL;
  }
  rt_parallel_for(r->pool, n, grain, run_bounded, &b);
  return budget_check(r->budget);
}
