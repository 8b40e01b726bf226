#ifdef ONNX_XLA_POOL
#ifndef ONNX_XLA_POOL_DEFINED
#define ONNX_XLA_POOL_DEFINED 1
/* A pool of threads for parallel loops, for POSIX systems and GCC or Clang; link with -pthread.  Contexts may share it:
 * a loop that begins while another runs is computed by the thread that begins it.  In allocated memory a pool must be
 * aligned to 64 bytes.
 *
 *   static onnx_xla_pool pool;
 *   onnx_xla_pool_start(&pool, 4);        4 threads, one of them the caller's
 *   ..._set_parallel(&context, onnx_xla_pool_run, &pool);
 *   onnx_xla_pool_stop(&pool);            after the last run */
#include <pthread.h>
#include <sched.h>

enum { ONNX_XLA_POOL_MOST = 64, ONNX_XLA_POOL_SPINS = 4000, ONNX_XLA_POOL_RANGES = 4 };
/* What begins a cache line of its own, so that writing it does not slow the threads that wait for what is beside it. */
#define ONNX_XLA_POOL_LINE __attribute__((aligned(64)))

/* The part of a thread's share of a loop that no thread has taken yet. */
typedef struct onnx_xla_pool_share {
  ONNX_XLA_POOL_LINE int64_t next;
  int64_t end;
} onnx_xla_pool_share;
struct onnx_xla_pool;
typedef struct onnx_xla_pool_member {
  struct onnx_xla_pool *pool;
  int number; /* the index of the share that the thread begins with; the caller's is 0 */
  pthread_t thread;
} onnx_xla_pool_member;

/* Each thread has a share of a loop, the same one in each run, so that it finds its weights in its cache; one that is
 * done takes ranges of the others' shares.  The caller computes as the threads do.  When nothing is left, it closes the
 * loop and waits for the threads that are inside; it never waits for a thread to wake up.  The members from `n_shares`
 * on describe the loop.  A thread uses them only while it is counted in `inside`, after it has seen that `open` is 1.
 * They are set only while `open` is 0 and no thread uses them. */
typedef struct onnx_xla_pool {
  ONNX_XLA_POOL_LINE uint32_t round; /* the number of loops that have begun; stopping the pool counts as one */
  int stop, open;
  ONNX_XLA_POOL_LINE int inside;
  ONNX_XLA_POOL_LINE int asleep;
  int waiting, in_use, n_threads; /* n_threads is without the caller's thread */
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  onnx_xla_pool_member threads[ONNX_XLA_POOL_MOST];
  ONNX_XLA_POOL_LINE int n_shares;
  int64_t step;
  void (*body)(void *data, int64_t begin, int64_t end);
  void *data;
  onnx_xla_pool_share shares[ONNX_XLA_POOL_MOST + 1];
} onnx_xla_pool;

static inline void onnx_xla_pool_take(onnx_xla_pool *p, onnx_xla_pool_share *s) {
  while (__atomic_load_n(&s->next, __ATOMIC_RELAXED) < s->end) {
    int64_t begin = __atomic_fetch_add(&s->next, p->step, __ATOMIC_RELAXED);
    if (begin < s->end) {
      p->body(p->data, begin, s->end - begin < p->step ? s->end : begin + p->step);
    }
  }
}

/* Computes what is left of the shares, from share `number` on. */
static inline void onnx_xla_pool_work(onnx_xla_pool *p, int number) {
  int k;
  for (k = 0; k < p->n_shares; k++) {
    onnx_xla_pool_take(p, &p->shares[(number + k) % p->n_shares]);
  }
}

static inline void onnx_xla_pool_divide(onnx_xla_pool *p, int64_t n, int64_t grain) {
  int64_t most = n / grain, share, step;
  int k;
  p->n_shares = most < p->n_threads + 1 ? (int)most : p->n_threads + 1;
  share = (n + p->n_shares - 1) / p->n_shares;
  step = (share + ONNX_XLA_POOL_RANGES - 1) / ONNX_XLA_POOL_RANGES;
  p->step = step < grain ? grain : step;
  for (k = 0; k < p->n_shares; k++) {
    __atomic_store_n(&p->shares[k].next, k * share, __ATOMIC_RELAXED);
    p->shares[k].end = n - k * share < share ? n : (k + 1) * share;
  }
}

/* Waits for a moment.  `k` counts the calls: now and then the core is yielded, since a thread that is awaited may need
 * it. */
static inline void onnx_xla_pool_pause(int k) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
  if (k % 512 == 511) {
    sched_yield();
  }
}

/* Waits until `round` of the pool differs from the parameter `round`, since a loop has begun, and returns the new
 * number.  At first it looks again and again, since loops often follow each other closely; after a while it sleeps. */
static inline uint32_t onnx_xla_pool_await(onnx_xla_pool *p, uint32_t round) {
  int k;
  for (k = 1; k < ONNX_XLA_POOL_SPINS && __atomic_load_n(&p->round, __ATOMIC_SEQ_CST) == round; k++) {
    onnx_xla_pool_pause(k);
  }
  if (k == ONNX_XLA_POOL_SPINS) {
    pthread_mutex_lock(&p->lock);
    __atomic_add_fetch(&p->asleep, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&p->round, __ATOMIC_SEQ_CST) == round) {
      pthread_cond_wait(&p->work, &p->lock);
    }
    __atomic_sub_fetch(&p->asleep, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&p->lock);
  }
  return __atomic_load_n(&p->round, __ATOMIC_SEQ_CST);
}

static inline void *onnx_xla_pool_thread(void *data) {
  const onnx_xla_pool_member *m = (const onnx_xla_pool_member *)data;
  onnx_xla_pool *p = m->pool;
  uint32_t round = 0;
  for (;;) {
    round = onnx_xla_pool_await(p, round);
    if (__atomic_load_n(&p->stop, __ATOMIC_SEQ_CST)) {
      return NULL;
    }
    __atomic_add_fetch(&p->inside, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&p->open, __ATOMIC_SEQ_CST)) {
      onnx_xla_pool_work(p, m->number);
    }
    if (__atomic_sub_fetch(&p->inside, 1, __ATOMIC_SEQ_CST) == 0 && __atomic_load_n(&p->waiting, __ATOMIC_SEQ_CST)) {
      pthread_mutex_lock(&p->lock);
      pthread_cond_signal(&p->done);
      pthread_mutex_unlock(&p->lock);
    }
  }
}

/* Begins a loop, or tells the threads to end. */
static inline void onnx_xla_pool_announce(onnx_xla_pool *p) {
  __atomic_add_fetch(&p->round, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&p->asleep, __ATOMIC_SEQ_CST)) {
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
  }
}

/* Waits until no thread is inside.  A thread may stay inside for long because it has lost its core: the caller then
 * sleeps, so that the thread can have the caller's core. */
static inline void onnx_xla_pool_await_others(onnx_xla_pool *p) {
  int k;
  for (k = 0; k < ONNX_XLA_POOL_SPINS && __atomic_load_n(&p->inside, __ATOMIC_SEQ_CST); k++) {
    onnx_xla_pool_pause(k);
  }
  if (k == ONNX_XLA_POOL_SPINS) {
    pthread_mutex_lock(&p->lock);
    __atomic_store_n(&p->waiting, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&p->inside, __ATOMIC_SEQ_CST)) {
      pthread_cond_wait(&p->done, &p->lock);
    }
    __atomic_store_n(&p->waiting, 0, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&p->lock);
  }
}

/* The function for set_parallel; `user` is the pool. */
static inline void onnx_xla_pool_run(void *user, int64_t n, int64_t grain,
                                     void (*body)(void *data, int64_t begin, int64_t end), void *data) {
  onnx_xla_pool *p = (onnx_xla_pool *)user;
  grain = grain > 0 ? grain : 1;
  /* A loop within a loop is not divided: the thread that begins it computes it. */
  if (p->n_threads == 0 || n / 2 < grain || __atomic_exchange_n(&p->in_use, 1, __ATOMIC_ACQUIRE)) {
    body(data, 0, n);
    return;
  }
  onnx_xla_pool_divide(p, n, grain);
  p->body = body;
  p->data = data;
  __atomic_store_n(&p->open, 1, __ATOMIC_SEQ_CST);
  onnx_xla_pool_announce(p);
  onnx_xla_pool_work(p, 0);
  __atomic_store_n(&p->open, 0, __ATOMIC_SEQ_CST);
  onnx_xla_pool_await_others(p);
  __atomic_store_n(&p->in_use, 0, __ATOMIC_RELEASE);
}

/* Ends the threads.  The pool may be started again. */
static inline void onnx_xla_pool_stop(onnx_xla_pool *p) {
  __atomic_store_n(&p->stop, 1, __ATOMIC_SEQ_CST);
  onnx_xla_pool_announce(p);
  while (p->n_threads > 0) {
    pthread_join(p->threads[--p->n_threads].thread, NULL);
  }
  pthread_cond_destroy(&p->done);
  pthread_cond_destroy(&p->work);
  pthread_mutex_destroy(&p->lock);
}

/* Starts a pool of n threads, one of them the caller's.  Returns how many there are, which may be fewer. */
static inline int onnx_xla_pool_start(onnx_xla_pool *p, int n) {
  p->n_threads = p->stop = p->open = p->inside = p->asleep = p->waiting = p->in_use = 0;
  p->round = 0;
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->work, NULL);
  pthread_cond_init(&p->done, NULL);
  while (p->n_threads < n - 1 && p->n_threads < ONNX_XLA_POOL_MOST) {
    onnx_xla_pool_member *m = &p->threads[p->n_threads];
    m->pool = p;
    m->number = p->n_threads + 1;
    if (pthread_create(&m->thread, NULL, onnx_xla_pool_thread, m) != 0) {
      break;
    }
    p->n_threads++;
  }
  return p->n_threads + 1;
}
#endif
#endif
