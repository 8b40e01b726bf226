/* roofline.c - see roofline.h.  The peak arithmetic rate is that of the fastest among loops with 8 to 28 independent
 * sums.  Machines differ in how many sums are needed to hide the latency of a multiply-add, and in how many fit into
 * the registers. */
#include "runtime/host/roofline.h"

#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "base/clock.h"
#include "base/machine/machine.h"
#include "runtime/host/thread_pool.h"

/* --- multiply-adds --- */

/* A function with a loop of multiply-adds.  Each sum begins with a different vector of `start`, so that the compiler
 * cannot merge the sums.  The returned number depends on all of them, so that the compiler cannot remove the loop. */
typedef float peak_loop(int64_t rounds, const float *start);

#define SUMS_4(X, k) X(k##0) X(k##1) X(k##2) X(k##3)
#define SUMS_8(X) SUMS_4(X, a) SUMS_4(X, b)
#define SUMS_12(X) SUMS_8(X) SUMS_4(X, c)
#define SUMS_16(X) SUMS_12(X) SUMS_4(X, d)
#define SUMS_20(X) SUMS_16(X) SUMS_4(X, e)
#define SUMS_24(X) SUMS_20(X) SUMS_4(X, f)
#define SUMS_28(X) SUMS_24(X) SUMS_4(X, g)

#define DECLARE(s)                  \
  vector s;                         \
  memcpy(&s, start + at, sizeof s); \
  at += (int)(sizeof s / sizeof *start);
#define STEP(s) s = FMA(s, factor, one);
#define JOIN(s) total = FMA(total, factor, s);

/* Defines the loops, one for each number of sums. */
/* clang-format off */
#define LOOP(name, n, type, target)            \
  target static float name##_##n(int64_t rounds, const float *start) { \
    typedef type vector;                       \
    const vector one = FILL(1.0f), factor = FILL(0.5f); \
    vector total = one;                        \
    int at = 0;                                \
    SUMS_##n(DECLARE)                          \
    for (int64_t k = 0; k < rounds; k++) {     \
      SUMS_##n(STEP)                           \
    }                                          \
    SUMS_##n(JOIN)                             \
    float first;                               \
    memcpy(&first, &total, sizeof first);      \
    return first;                              \
  }
#define LOOPS(name, type, target)                                                                             \
  LOOP(name, 8, type, target) LOOP(name, 12, type, target) LOOP(name, 16, type, target) LOOP(name, 20, type, target) \
  LOOP(name, 24, type, target) LOOP(name, 28, type, target)                                                   \
  static const peak_family name = {sizeof(type) / sizeof(float),                                              \
                                   {name##_8, name##_12, name##_16, name##_20, name##_24, name##_28}};
/* clang-format on */

enum { VARIANTS = 6, SUMS_AT_LEAST = 8, MOST_SUMS = 28, WIDEST = 16 };
typedef struct peak_family {
  int lanes;
  peak_loop *loops[VARIANTS]; /* loops with 8, 12, ..., 28 sums */
} peak_family;

#if defined(__x86_64__)
#define FMA(x, y, z) _mm512_fmadd_ps(x, y, z)
#define FILL(x) _mm512_set1_ps(x)
LOOPS(avx512, __m512, __attribute__((target("avx512f"))))
#undef FMA
#undef FILL
#define FMA(x, y, z) _mm256_fmadd_ps(x, y, z)
#define FILL(x) _mm256_set1_ps(x)
LOOPS(avx2, __m256, __attribute__((target("avx2,fma"))))
#undef FMA
#undef FILL
#define FMA(x, y, z) _mm_add_ps(_mm_mul_ps(x, y), z)
#define FILL(x) _mm_set1_ps(x)
LOOPS(plain, __m128, )
#elif defined(__aarch64__)
#define FMA(x, y, z) vfmaq_f32(z, x, y)
#define FILL(x) vdupq_n_f32(x)
LOOPS(plain, float32x4_t, )
#else
#define FMA(x, y, z) ((x) * (y) + (z))
#define FILL(x) (x)
LOOPS(plain, float, )
#endif

static const peak_family *best_family(void) {
#if defined(__x86_64__)
  if (machine_has_feature("avx512f")) {
    return &avx512;
  }
  if (machine_has_feature("avx2") && machine_has_feature("fma")) {
    return &avx2;
  }
#endif
  return &plain;
}

/* --- timing --- */

typedef struct work {
  peak_loop *loop;
  int64_t rounds;
  float start[MOST_SUMS * WIDEST];
  const uint8_t *memory; /* the memory that the reading loop reads */
  size_t bytes;          /* how many bytes each item reads */
  _Atomic uint64_t sink;
} work;

/* Returns the least time of several runs, in seconds.  Each item of the parallel loop is the work of one thread. */
static double best_time(rt_thread_pool *pool, uint32_t items, void (*fn)(void *, int64_t, int64_t), work *w) {
  enum { TIMES = 5 };
  double best = 1e9;
  for (int k = 0; k < TIMES; k++) {
    double start = clock_seconds();
    rt_parallel_for(items == 1 ? NULL : pool, items, 1, fn, w);
    double took = clock_seconds() - start;
    best = took < best ? took : best;
  }
  return best > 1e-9 ? best : 1e-9;
}

static void multiply(void *data, int64_t begin, int64_t end) {
  work *w = data;
  float sum = 0;
  for (int64_t k = begin; k < end; k++) {
    sum += w->loop(w->rounds, w->start);
  }
  w->sink += (uint64_t)sum;
}

static double peak_flops(rt_thread_pool *pool, uint32_t threads) {
  enum { STEP_OF_SUMS = (MOST_SUMS - SUMS_AT_LEAST) / (VARIANTS - 1) };
  /* how many vector multiply-adds each thread executes in one timed run: a millisecond or two */
  const double steps = 4e6;
  const peak_family *f = best_family();
  double best = 0;
  for (int v = 0; v < VARIANTS; v++) {
    int sums = SUMS_AT_LEAST + STEP_OF_SUMS * v;
    work w = {.loop = f->loops[v], .rounds = (int64_t)(steps / sums)};
    double flops = 2.0 * f->lanes * sums * (double)w.rounds * threads / best_time(pool, threads, multiply, &w);
    best = flops > best ? flops : best;
  }
  return best;
}

/* --- reading --- */

/* A vector so wide that the loop that reads memory is bound by loads and not by arithmetic. */
typedef uint64_t words __attribute__((vector_size(64), aligned(64)));

static void read_range(void *data, int64_t begin, int64_t end) {
  work *w = data;
  for (int64_t k = begin; k < end; k++) {
    const words *at = (const words *)(w->memory + (size_t)k * w->bytes);
    words s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    for (size_t n = w->bytes / sizeof *at; n >= 4; n -= 4, at += 4) {
      s0 ^= at[0];
      s1 ^= at[1];
      s2 ^= at[2];
      s3 ^= at[3];
    }
    s0 ^= s1 ^ s2 ^ s3;
    w->sink += s0[0];
  }
}

/* Returns how much memory is read: more than the caches hold, but not too much for a small machine. */
static size_t memory_bytes(void) {
  const size_t least = (size_t)64 << 20, most = (size_t)256 << 20;
  size_t wanted = 4 * (size_t)machine_cache_bytes(3);
  return wanted < least ? least : wanted > most ? most : wanted;
}

status rt_roofline_measure(rt_thread_pool *pool, rt_roofline *out) {
  uint32_t threads = rt_thread_pool_threads(pool);
  size_t bytes = memory_bytes() / threads / 4096 * 4096;
  uint8_t *memory = aligned_alloc(4096, bytes * threads);
  CHECK_THAT(memory, STATUS_RESOURCE, "no %zu bytes of memory to measure its speed", bytes * threads);
  memset(memory, 1, bytes * threads);
  work w = {.memory = memory, .bytes = bytes};
  *out = (rt_roofline){.threads = threads};
  out->read_all = (double)bytes * threads / best_time(pool, threads, read_range, &w);
  w.bytes = bytes * threads;
  out->read_one = (double)w.bytes / best_time(pool, 1, read_range, &w);
  free(memory);
  out->flops_one = peak_flops(pool, 1);
  out->flops_all = threads == 1 ? out->flops_one : peak_flops(pool, threads);
  out->flops_all =
      out->flops_all > out->flops_one ? out->flops_all : out->flops_one; /* lower if other programs were running */
  out->read_all = out->read_all > out->read_one ? out->read_all : out->read_one;
  return NULL;
}
