/* floor.c - floor THREADS [now]: prints the most that this machine can do, "GFLOPS GBYTES CACHE": fp32 operations per
 * second in loops of multiply-adds that use only registers, with the best number of accumulators from 8 to 28; bytes
 * per second that are read from memory; and the bytes of the last-level cache (0: unknown).  With `now`, it prints only
 * the first number, and measures for a tenth of a second.  run-bench compiles it with -march=native; the compiler makes
 * multiply-adds of a * b + c. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if defined(__AVX512F__)
enum { VECTOR = 64 };
#elif defined(__AVX__)
enum { VECTOR = 32 };
#else
enum { VECTOR = 16 };
#endif
enum { MAX_THREADS = 256, LANES = VECTOR / 4, STEPS = 1 << 21, REPEATS = 5 };
typedef float vector __attribute__((vector_size(VECTOR)));
static const size_t bytes_read = (size_t)512 << 20; /* more than any cache holds */

static volatile float sink;
static char *memory;
static int n_threads, n_repeats = REPEATS;

/* Defines a loop of STEPS multiply-adds on each of N accumulators, which GCC keeps in registers if there are enough. */
#define LOOP(N)                                                                         \
  static void loop_##N(void) {                                                          \
    vector acc[N], a, b;                                                                \
    for (int l = 0; l < LANES; l++) {                                                   \
      a[l] = 0.999f + 1e-9f * (float)l, b[l] = 1e-3f;                                   \
    }                                                                                   \
    for (int i = 0; i < N; i++) {                                                       \
      acc[i] = b * (float)i;                                                            \
    }                                                                                   \
    __asm__ volatile("" : "+m"(a), "+m"(b));                                            \
    for (int s = 0; s < STEPS; s++) {                                                   \
      _Pragma("GCC unroll 32") for (int i = 0; i < N; i++) { acc[i] = acc[i] * a + b; } \
    }                                                                                   \
    float sum = 0;                                                                      \
    for (int i = 0; i < N; i++) {                                                       \
      sum += acc[i][0];                                                                 \
    }                                                                                   \
    sink = sum;                                                                         \
  }
LOOP(8) LOOP(10) LOOP(12) LOOP(14) LOOP(16) LOOP(20) LOOP(24) LOOP(28) static const struct {
  int n;
  void (*run)(void);
} loops[] = {{8, loop_8},   {10, loop_10}, {12, loop_12}, {14, loop_14},
             {16, loop_16}, {20, loop_20}, {24, loop_24}, {28, loop_28}};

static void *add_up(void *arg) {
  for (int r = 0; r < n_repeats; r++) {
    ((void (*)(void))arg)();
  }
  return NULL;
}

static void *read_part(void *arg) {
  size_t part = bytes_read / (size_t)n_threads / VECTOR;
  const vector *v = (const vector *)memory + part * (size_t)(intptr_t)arg;
  vector sum[4] = {0};
  for (size_t i = 0; i + 4 <= part; i += 4) {
    for (size_t k = 0; k < 4; k++) {
      sum[k] += v[i + k];
    }
  }
  sink = sum[0][0] + sum[1][0] + sum[2][0] + sum[3][0];
  return NULL;
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Returns the seconds until all threads have done `work`.  If `arg` is NULL, each thread gets its number as the
 * argument. */
static double on_all(void *(*work)(void *), void *arg) {
  pthread_t threads[MAX_THREADS];
  double start = seconds();
  for (int i = 0; i < n_threads; i++) {
    if (pthread_create(&threads[i], NULL, work, arg ? arg : (void *)(intptr_t)i)) {
      exit(1);
    }
  }
  for (int i = 0; i < n_threads; i++) {
    pthread_join(threads[i], NULL);
  }
  return seconds() - start;
}

static double multiply_adds(void) {
  double best = 0;
  for (size_t k = 0; k < sizeof loops / sizeof loops[0]; k++) {
    double s = on_all(add_up, (void *)loops[k].run);
    double rate = 2.0 * LANES * loops[k].n * STEPS * n_repeats * n_threads / s;
    best = rate > best ? rate : best;
  }
  return best;
}

int main(int argc, char **argv) {
  bool now = argc > 2 && strcmp(argv[2], "now") == 0;
  n_threads = argc > 1 ? atoi(argv[1]) : 1;
  n_repeats = now ? 1 : REPEATS;
  if (n_threads < 1 || n_threads > MAX_THREADS) {
    return 1;
  }
  double flops = multiply_adds(), bytes = 0;
  if (now) {
    printf("%.2f\n", 1e-9 * flops);
    return 0;
  }
  memory = aligned_alloc(4096, bytes_read);
  if (!memory) {
    return 1;
  }
  for (size_t i = 0; i < bytes_read; i += 4096) {
    memory[i] = 1; /* gives each page memory of its own, in place of the shared page of zeros */
  }
  for (int r = 0; r < REPEATS; r++) {
    double rate = (double)bytes_read / on_all(read_part, NULL);
    bytes = rate > bytes ? rate : bytes;
  }
  long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);
  printf("%.2f %.2f %ld\n", 1e-9 * flops, 1e-9 * bytes, cache > 0 ? cache : 0);
  return 0;
}
