/* check_thread_pool.c - loops cover their range once, also if many threads call them at once or if the pool's threads
 * were parked; an idle pool sleeps. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/host/thread_pool.h"
#include "tests/suite.h"

enum { N = 10007 };

typedef struct marks {
  atomic_int count[N];
  atomic_int calls;
  int64_t least; /* the smallest range that is allowed, except for the last one of each share */
} marks;

static void mark(void *data, int64_t begin, int64_t end) {
  marks *m = data;
  atomic_fetch_add(&m->calls, 1);
  for (int64_t k = begin; k < end; k++) {
    atomic_fetch_add_explicit(&m->count[k], 1, memory_order_relaxed);
  }
}

static void check_cover(rt_thread_pool *p, int64_t n, int64_t grain) {
  marks *m = calloc(1, sizeof *m);
  rt_parallel_for(p, n, grain, mark, m);
  for (int64_t k = 0; k < N; k++) {
    ck_assert_int_eq(atomic_load(&m->count[k]), k < n);
  }
  if (n < 2 * grain && n > 0) {
    ck_assert_int_eq(atomic_load(&m->calls), 1);
  }
  free(m);
}

START_TEST(covers_every_index_once) {
  uint32_t threads[] = {1, 2, 3, 20};
  for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
    rt_thread_pool *p;
    ck_assert_ptr_null(rt_thread_pool_create(threads[t], &p));
    int64_t ns[] = {0, 1, 2, 3, 7, 64, 1000, N}, grains[] = {0, 1, 3, 100, 5000, N};
    for (size_t i = 0; i < sizeof ns / sizeof *ns; i++) {
      for (size_t g = 0; g < sizeof grains / sizeof *grains; g++) {
        check_cover(p, ns[i], grains[g]);
      }
    }
    rt_thread_pool_destroy(p);
  }
  check_cover(NULL, 100, 1);
  rt_thread_pool_destroy(NULL);
}
END_TEST

typedef struct summing {
  const double *in;
  double *out;
} summing;

static void scale(void *data, int64_t begin, int64_t end) {
  summing *s = data;
  for (int64_t k = begin; k < end; k++) {
    s->out[k] = s->in[k] * 2;
  }
}

/* What one loop writes the next one reads, without any other synchronisation. */
START_TEST(loops_follow_each_other) {
  rt_thread_pool *p;
  ck_assert_ptr_null(rt_thread_pool_create(3, &p));
  double *a = calloc(N, sizeof *a), *b = calloc(N, sizeof *b);
  for (int k = 0; k < N; k++) {
    a[k] = k;
  }
  double factor = 1;
  for (int round = 0; round < 500; round++) {
    rt_parallel_for(p, N, 8, scale, &(summing){round % 2 ? b : a, round % 2 ? a : b});
    factor *= 2;
    if (round % 100 == 99) {
      usleep(2000); /* long enough to park */
    }
    if (factor > 1e200) {
      break;
    }
  }
  double *last = factor == 0 ? b : a;
  ck_assert_double_eq(last[3], 3 * factor);
  free(a);
  free(b);
  rt_thread_pool_destroy(p);
}
END_TEST

static void *many_loops(void *data) {
  for (int k = 0; k < 50; k++) {
    check_cover(data, 777, 5);
  }
  return NULL;
}

START_TEST(many_callers_share_a_pool) {
  rt_thread_pool *p;
  ck_assert_ptr_null(rt_thread_pool_create(4, &p));
  pthread_t t[4];
  for (int k = 0; k < 4; k++) {
    pthread_create(&t[k], NULL, many_loops, p);
  }
  for (int k = 0; k < 4; k++) {
    pthread_join(t[k], NULL);
  }
  rt_thread_pool_destroy(p);
}
END_TEST

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

START_TEST(an_idle_pool_sleeps) {
  rt_thread_pool *p;
  ck_assert_ptr_null(rt_thread_pool_create(4, &p));
  check_cover(p, N, 1);
  usleep(20000);
  double before = cpu_seconds();
  usleep(200000);
  ck_assert_double_lt(cpu_seconds() - before, 0.02);
  rt_thread_pool_destroy(p);
}
END_TEST

/* --- within a budget --- */

static status run_within(rt_thread_pool *p, mem_budget *budget, void (*fn)(void *, int64_t, int64_t), void *data) {
  return rt_parallel_run(&(rt_run){.pool = p, .budget = budget}, N, 3, fn, data);
}

START_TEST(a_budget_ends_a_loop) {
  for (uint32_t threads = 1; threads <= 3; threads++) {
    rt_thread_pool *p;
    mem_budget budget = {.deadline = 0};
    marks *m = calloc(1, sizeof *m);
    ck_assert_ptr_null(rt_thread_pool_create(threads, &p));
    ck_assert_ptr_null(run_within(p, &budget, mark, m));
    for (int64_t k = 0; k < N; k++) {
      ck_assert_int_eq(atomic_load(&m->count[k]), 1);
    }
    atomic_store(&m->calls, 0);
    budget.cancel = 1;
    status s = run_within(p, &budget, mark, m);
    ck_assert_ptr_nonnull(s);
    ck_assert_int_eq(atomic_load(&m->calls), 0);
    status_free(s);
    ck_assert_ptr_null(run_within(p, NULL, mark, m));
    rt_thread_pool_destroy(p);
    free(m);
  }
}
END_TEST

static void dawdle(void *data, int64_t begin, int64_t end) {
  (void)data;
  usleep((useconds_t)(end - begin) * 1000);
}

/* A loop with ten seconds of work ends soon after its deadline, although the pool does not know how long an
 * item takes. */
START_TEST(a_deadline_ends_a_loop) {
  struct timespec t;
  rt_thread_pool *p;
  ck_assert_ptr_null(rt_thread_pool_create(1, &p));
  clock_gettime(CLOCK_MONOTONIC, &t);
  double start = (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
  mem_budget budget = {.deadline = (uint64_t)((start + 0.05) * 1e9)};
  status s = run_within(p, &budget, dawdle, NULL);
  ck_assert_ptr_nonnull(s);
  status_free(s);
  clock_gettime(CLOCK_MONOTONIC, &t);
  ck_assert_double_lt((double)t.tv_sec + (double)t.tv_nsec * 1e-9 - start, 2);
  rt_thread_pool_destroy(p);
}
END_TEST

/* A forked child has none of the pool's threads: its loops run on the calling thread, and destroying the pool
 * waits for no thread. */
START_TEST(a_forked_child_works_alone) {
  rt_thread_pool *p;
  ck_assert_ptr_null(rt_thread_pool_create(3, &p));
  check_cover(p, N, 1);
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    alarm(20);
    check_cover(p, N, 1);
    rt_thread_pool_destroy(p);
#ifndef __SANITIZE_THREAD__                           /* its run time refuses to start threads in such a child */
    ck_assert_ptr_null(rt_thread_pool_create(2, &p)); /* a pool of its own */
    check_cover(p, N, 1);
    rt_thread_pool_destroy(p);
#endif
    _exit(7);
  }
  int how;
  ck_assert_int_eq(waitpid(child, &how, 0), child);
  ck_assert(WIFEXITED(how) && WEXITSTATUS(how) == 7);
  check_cover(p, N, 1);
  rt_thread_pool_destroy(p);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("pool");
  tcase_add_test(t, covers_every_index_once);
  tcase_add_test(t, loops_follow_each_other);
  tcase_add_test(t, many_callers_share_a_pool);
  tcase_add_test(t, an_idle_pool_sleeps);
  tcase_add_test(t, a_budget_ends_a_loop);
  tcase_add_test(t, a_deadline_ends_a_loop);
  tcase_add_test(t, a_forked_child_works_alone);
  return run_suite("pool", t);
}
