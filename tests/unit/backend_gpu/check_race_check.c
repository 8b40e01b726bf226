/* check_race_check.c - random accesses of the threads of a block: the race check reports a race exactly if
 * comparing all pairs of accesses finds one. */
#include "backend_gpu/runtime/race_check.h"
#include "runtime/block_abi.h"
#include "tests/suite.h"

enum { WARPS = 3, LANES = 3, BYTES = 24, MOST = 400, ROUNDS = 3000 };

typedef struct access {
  uint32_t thread;
  int64_t first, bytes;
  bool writes;
  int barriers, exchanges; /* the number of barriers and of exchanges before this access */
} access;

static uint64_t next_random(void) {
  static uint64_t seed = 88172645463325252u;
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed >> 11;
}

static bool is_race(const access *x, const access *y) {
  bool overlap = x->first < y->first + y->bytes && y->first < x->first + x->bytes;
  bool together = x->thread / RT_BLOCK_WARP == y->thread / RT_BLOCK_WARP;
  bool waited = x->barriers != y->barriers || (together && x->exchanges != y->exchanges);
  return overlap && x->thread != y->thread && (x->writes || y->writes) && !waited;
}

/* Lets one warp after the other make a few accesses and exchanges, then all threads wait at a barrier, and so
 * on until there is a race.  Returns false if there was none. */
static bool run_until_race(gpu_race_check *c, int writes_of_100, gpu_race *race) {
  static char memory[BYTES];
  access all[MOST];
  int n = 0;
  gpu_race_check_barrier(c);
  for (int barriers = 0, exchanges = 0; n + WARPS * LANES * 4 < MOST; barriers++, gpu_race_check_barrier(c)) {
    for (uint32_t warp = 0; warp < WARPS; warp++) {
      for (int part = 0; part < 2; part++, exchanges++) {
        gpu_race_check_exchange(c);
        for (int k = (int)(next_random() % 4); k > 0; k--, n++) {
          all[n] = (access){.thread = warp * RT_BLOCK_WARP + (uint32_t)(next_random() % LANES),
                            .first = (int64_t)(next_random() % (BYTES - 8)),
                            .bytes = 1 << next_random() % 4,
                            .writes = (int)(next_random() % 100) < writes_of_100,
                            .barriers = barriers,
                            .exchanges = exchanges};
          bool want = false, no_memory;
          for (int j = 0; j < n; j++) {
            want |= is_race(&all[j], &all[n]);
          }
          bool got = gpu_race_check_access(c, all[n].thread, memory + all[n].first, all[n].bytes, all[n].writes, race,
                                           &no_memory);
          if (no_memory || got != want) { /* Check writes a message for each assertion, also if it holds */
            ck_abort_msg("access %d is %s race", n, want ? "a" : "no");
          }
          if (got) {
            const char *at = race->at;
            ck_assert(at >= memory + all[n].first && at < memory + all[n].first + all[n].bytes);
            ck_assert(race->writer != race->other);
            ck_assert_uint_eq(all[n].writes ? race->writer : race->other, all[n].thread);
            return true;
          }
        }
      }
    }
  }
  return false;
}

START_TEST(each_race_is_found) {
  static const int writes[] = {1, 5, 50};
  int found = 0;
  for (int k = 0; k < ROUNDS; k++) {
    gpu_race_check *c = gpu_race_check_create();
    gpu_race race;
    ck_assert_ptr_nonnull(c);
    found += run_until_race(c, writes[k % 3], &race);
    gpu_race_check_destroy(c);
  }
  ck_assert_int_gt(found, ROUNDS / 2);
}
END_TEST

/* Accesses more bytes than the table of the race check has room for at first, and accesses them again in
 * further blocks. */
START_TEST(many_bytes) {
  enum { MANY = 1 << 20 };
  static char memory[MANY];
  gpu_race_check *c = gpu_race_check_create();
  gpu_race race;
  bool no_memory;
  for (uint32_t block = 0; block < 3; block++) {
    for (uint32_t k = 0; k < MANY / 4; k++) {
      bool raced = gpu_race_check_access(c, (k + block) % 64, memory + (size_t)k * 4, 4, true, &race, &no_memory);
      if (raced || no_memory) {
        ck_abort_msg("byte %u", 4 * k);
      }
    }
    gpu_race_check_barrier(c);
  }
  ck_assert(!gpu_race_check_access(c, 7, memory + 12, 4, false, &race, &no_memory));
  ck_assert(gpu_race_check_access(c, 9, memory + 15, 1, true, &race, &no_memory));
  ck_assert(race.at == memory + 15 && race.writer == 9 && race.other == 7 && !race.both_write);
  gpu_race_check_destroy(c);
}
END_TEST

int main(void) {
  TCase *t = tcase_create("race-check");
  tcase_add_test(t, each_race_is_found);
  tcase_add_test(t, many_bytes);
  return run_suite("race-check", t);
}
