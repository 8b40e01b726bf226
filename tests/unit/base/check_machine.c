/* check_machine.c - the clock, what is known of the machine, and arithmetic on sizes. */
#include <check.h>
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arith.h"
#include "base/clock.h"
#include "base/machine/machine.h"
#include "tests/suite.h"

static int64_t nanoseconds_between(struct timespec from, struct timespec to) {
  return (to.tv_sec - from.tv_sec) * (int64_t)CLOCK_SECOND + (to.tv_nsec - from.tv_nsec);
}

START_TEST(clocks_agree) {
  struct timespec before, after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  uint64_t n = clock_nanoseconds();
  double s = clock_seconds();
  clock_gettime(CLOCK_MONOTONIC, &after);
  uint64_t low = (uint64_t)before.tv_sec * CLOCK_SECOND + (uint64_t)before.tv_nsec;
  uint64_t high = (uint64_t)after.tv_sec * CLOCK_SECOND + (uint64_t)after.tv_nsec;
  ck_assert_uint_le(low, n);
  ck_assert_uint_le(n, high);
  /* The 53 bits of an f64 tell the time since a machine was started to less than a microsecond. */
  ck_assert(s > 1e-9 * (double)n - 1e-6 && s < 1e-9 * (double)high + 1e-6);
}
END_TEST

/* The end of a wait is ahead of the clock by the time asked for, and tv_nsec stays below a second. */
START_TEST(waits) {
  static const uint64_t rows[] = {0,          1,          20000000,       999999999,
                                  1000000000, 1999999999, 86400000000000, 1000000000000000000};
  static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME};
  struct timespec before, after;
  clock_gettime(clocks[_i % 2], &before);
  struct timespec end = clock_after(clocks[_i % 2], rows[_i / 2]);
  clock_gettime(clocks[_i % 2], &after);
  ck_assert(end.tv_nsec >= 0 && end.tv_nsec < CLOCK_SECOND);
  ck_assert_int_ge(nanoseconds_between(before, end), (int64_t)rows[_i / 2]);
  ck_assert_int_le(nanoseconds_between(after, end), (int64_t)rows[_i / 2]);
}
END_TEST

START_TEST(cores_follow_affinity) {
  cpu_set_t all, one;
  ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
  ck_assert_uint_eq(machine_cores(), (uint32_t)CPU_COUNT(&all));
  ck_assert_uint_ge(machine_all_cores(), 1);
  CPU_ZERO(&one);
  for (int k = 0; k < CPU_SETSIZE && CPU_COUNT(&one) == 0; k++) {
    if (CPU_ISSET(k, &all)) {
      CPU_SET(k, &one);
    }
  }
  uint32_t everywhere = machine_all_cores();
  ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
  ck_assert_uint_eq(machine_cores(), 1);
  ck_assert_uint_eq(machine_all_cores(), everywhere);
  ck_assert_int_eq(sched_setaffinity(0, sizeof all, &all), 0);
}
END_TEST

/* Returns true if /proc/cpuinfo's line of flags has the word. */
static bool kernel_says(const char *word) {
  char line[16384], spaced[64];
  bool found = false;
  FILE *f = fopen("/proc/cpuinfo", "r");
  snprintf(spaced, sizeof spaced, " %s ", word);
  while (f && fgets(line, sizeof line, f) && !found) {
    line[strcspn(line, "\n")] = ' ';
    found = strncmp(line, "flags", 5) == 0 && strstr(line, spaced);
  }
  if (f) {
    fclose(f);
  }
  return found;
}

START_TEST(features_are_the_kernels) {
  static const char *const rows[] = {"avx", "avx2", "avx512f", "avx512bw", "bmi2", "f16c", "fma", "popcnt", "ssse3"};
  machine_feature f;
  bool is_x86 = strcmp(machine_architecture(), "x86_64") == 0;
  ck_assert_int_eq(machine_find_feature(rows[_i], strlen(rows[_i]), &f), is_x86);
  ck_assert_int_eq(machine_has_feature(rows[_i]), is_x86 && kernel_says(rows[_i]));
}
END_TEST

START_TEST(unknown_features) {
  machine_feature f;
  ck_assert(!machine_find_feature("telepathy", 9, &f));
  ck_assert(!machine_find_feature("", 0, &f));
  ck_assert(!machine_find_feature("avx2", 2, &f));
  ck_assert(!machine_has_feature("telepathy"));
}
END_TEST

START_TEST(facts) {
  machine_identity x = machine_processor_identity(), y = machine_processor_identity();
  machine_name name = machine_processor_name();
  ck_assert_mem_eq(&x, &y, sizeof x);
  ck_assert_uint_lt(strlen(name.text), sizeof name.text);
  ck_assert_uint_ge(machine_page_bytes(), 4096);
  ck_assert_uint_ge(machine_memory_bytes(), 64 << 20);
}
END_TEST

/* The size that sysconf returns for each cache; if it is negative, sysconf returns the true sizes. */
static long told_cache_bytes = -1;

/* Takes the place of the C library's function, and calls it for everything else. */
long sysconf(int name) {
  bool cache = name == _SC_LEVEL1_DCACHE_SIZE || name == _SC_LEVEL2_CACHE_SIZE || name == _SC_LEVEL3_CACHE_SIZE;
  if (cache && told_cache_bytes >= 0) {
    return told_cache_bytes;
  }
  long (*real)(int);
  *(void **)&real = dlsym(RTLD_NEXT, "sysconf");
  return real(name);
}

/* The size of a cache is never 0: if the system does not know it, a common size is returned. */
START_TEST(caches) {
  ck_assert_uint_ge(machine_cache_bytes(1), 4 << 10);
  ck_assert_uint_le(machine_cache_bytes(1), machine_cache_bytes(2));
  told_cache_bytes = 12345;
  for (int level = 1; level <= 3; level++) {
    ck_assert_uint_eq(machine_cache_bytes(level), 12345);
  }
  told_cache_bytes = 0;
  ck_assert_uint_eq(machine_cache_bytes(1), 32 << 10);
  ck_assert_uint_eq(machine_cache_bytes(2), 512 << 10);
  ck_assert_uint_eq(machine_cache_bytes(3), 8 << 20);
  told_cache_bytes = -1;
}
END_TEST

START_TEST(arithmetic) {
  ck_assert_int_eq(ceil_div(0, 8), 0);
  ck_assert_int_eq(ceil_div(1, 8), 1);
  ck_assert_int_eq(ceil_div(8, 8), 1);
  ck_assert_int_eq(ceil_div(9, 8), 2);
  ck_assert_int_eq(round_up(9, 8), 16);
  ck_assert_int_eq(round_up(16, 8), 16);
  ck_assert_uint_eq(round_up_u64((uint64_t)1 << 63, 4096), (uint64_t)1 << 63);
  ck_assert_int_eq(min_i64(-1, INT64_MAX), -1);
  ck_assert_int_eq(max_i64(-1, INT64_MAX), INT64_MAX);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("machine");
  tcase_add_test(c, clocks_agree);
  tcase_add_loop_test(c, waits, 0, 16);
  tcase_add_test(c, cores_follow_affinity);
  tcase_add_loop_test(c, features_are_the_kernels, 0, 9);
  tcase_add_test(c, unknown_features);
  tcase_add_test(c, facts);
  tcase_add_test(c, caches);
  tcase_add_test(c, arithmetic);
  return run_suite("machine", c);
}
