/* check_log.c - the log of measurements: what is written is read back, damage and hostile files are left out with
 * a warning, and processes that write at the same time lose nothing. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "autotune/log.h"
#include "tests/suite.h"

static arena *memory;
static char folder[32], path[64];

static void setup(void) {
  memory = arena_create(NULL);
  strcpy(folder, "/tmp/check-tune-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/tuning.log", folder);
}

static void teardown(void) {
  arena_destroy(memory);
  unlink(path);
  rmdir(folder);
}

static autotune_log *open_log(bool warns) {
  const char *warning;
  autotune_log *l = autotune_log_open(memory, path, &warning);
  ck_assert_msg((warning != NULL) == warns, "warning: %s", warning ? warning : "none");
  return l;
}

static void add(autotune_log *l, uint64_t key, autotune_log_how how, const char *winner) {
  autotune_log_add(
      l, &(autotune_log_entry){key, how, winner, "library:p4=12.50,kernel=99.00", "dot f32[8,64] f32[64,32]"});
}

static void expect(const autotune_log *l, uint64_t key, const char *winner) {
  const autotune_log_entry *e = autotune_log_find(l, key);
  ck_assert_msg((e != NULL) == (winner != NULL), "key %llu", (unsigned long long)key);
  if (winner) {
    ck_assert_str_eq(e->winner, winner);
  }
}

static void write_file(const void *bytes, size_t size) {
  FILE *f = fopen(path, "wb");
  ck_assert_ptr_nonnull(f);
  ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
  ck_assert_int_eq(fclose(f), 0);
}

static size_t read_file(char *bytes, size_t room) {
  FILE *f = fopen(path, "rb");
  ck_assert_ptr_nonnull(f);
  size_t n = fread(bytes, 1, room, f);
  fclose(f);
  return n;
}

START_TEST(kept) {
  autotune_log *l = open_log(false);
  add(l, 1, AUTOTUNE_LOG_FAST, "library:p4");
  add(l, 2, AUTOTUNE_LOG_ESTIMATE, "kernel");
  expect(l, 1, "library:p4");
  l = open_log(false);
  expect(l, 1, "library:p4");
  expect(l, 2, "kernel");
  expect(l, 3, NULL);
  ck_assert_str_eq(autotune_log_find(l, 1)->times, "library:p4=12.50,kernel=99.00");
  ck_assert_str_eq(autotune_log_find(l, 1)->what, "dot f32[8,64] f32[64,32]");
}
END_TEST

/* Of several entries with one key, the one that was measured most thoroughly holds, and of equally thorough
 * ones the first, so that a result does not change once it is known. */
START_TEST(several_of_one_key) {
  autotune_log *l = open_log(false);
  add(l, 1, AUTOTUNE_LOG_ESTIMATE, "a");
  add(l, 1, AUTOTUNE_LOG_FAST, "b");
  add(l, 1, AUTOTUNE_LOG_FAST, "c");
  add(l, 2, AUTOTUNE_LOG_FULL, "d");
  add(l, 2, AUTOTUNE_LOG_FAST, "e");
  for (int round = 0; round < 2; round++) {
    expect(l, 1, "b");
    expect(l, 2, "d");
    l = open_log(false);
  }
}
END_TEST

/* If a byte is changed, or bytes at the end are missing, the line is left out or read as it was written,
 * never as something else. */
START_TEST(damage) {
  char bytes[1024], hurt[1024];
  autotune_log *l = open_log(false);
  add(l, 7, AUTOTUNE_LOG_FAST, "library:p4");
  size_t n = read_file(bytes, sizeof bytes);
  for (size_t k = 0; k < 8 * n; k++) {
    memcpy(hurt, bytes, n);
    hurt[k / 8] ^= (char)(1 << k % 8);
    write_file(hurt, n);
    const char *warning;
    arena *a = arena_create(NULL);
    expect(autotune_log_open(a, path, &warning), 7, NULL);
    ck_assert_ptr_nonnull(warning);
    arena_destroy(a);
  }
  for (size_t k = 1; k < n; k++) {
    write_file(bytes, k);
    expect(open_log(true), 7, NULL);
  }
}
END_TEST

/* If a process was stopped while it wrote an entry, the next entry begins on a new line. */
START_TEST(torn) {
  char bytes[1024];
  add(open_log(false), 1, AUTOTUNE_LOG_FAST, "a");
  size_t n = read_file(bytes, sizeof bytes);
  write_file(bytes, n - 5);
  add(open_log(true), 2, AUTOTUNE_LOG_FAST, "b");
  autotune_log *l = open_log(true);
  expect(l, 1, NULL);
  expect(l, 2, "b");
}
END_TEST

START_TEST(texts_stay_in_their_line) {
  autotune_log *l = open_log(false);
  char *huge = arena_alloc(memory, 100000);
  memset(huge, 'x', 99999);
  autotune_log_add(l, &(autotune_log_entry){1, AUTOTUNE_LOG_FAST, "a\tb\nc", huge, "\x01\x7f"});
  l = open_log(false);
  expect(l, 1, "a?b?c");
}
END_TEST

/* Lines that an older onnx-xla wrote are not treated as damage. */
START_TEST(former_versions) {
  static const char old[] = "1\t00000000000000ff\tfast\ta\tb\tc\t00000000\n";
  write_file(old, strlen(old));
  autotune_log *l = open_log(false);
  expect(l, 255, NULL);
  add(l, 1, AUTOTUNE_LOG_FAST, "a");
  expect(open_log(false), 1, "a");
}
END_TEST

START_TEST(hostile_files) {
  static const char *const texts[] = {"\n\n\n",
                                      "\t\t\t\t\t\t\n",
                                      "2\t\t\t\t\t\t\n",
                                      "\xff\xfe\x00\x01\n",
                                      "2\t00000000000000ff\tfast\ta\tb\tc\t00000000\n",
                                      "2\t00000000000000ff\tfast\ta\tb\tc\td\te\tf\tg\th\n"};
  for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
    const char *warning;
    write_file(texts[k], strlen(texts[k]));
    expect(autotune_log_open(memory, path, &warning), 255, NULL);
  }
  char *long_line = arena_alloc(memory, 1 << 20);
  memset(long_line, 'x', 1 << 20);
  write_file(long_line, 1 << 20);
  expect(open_log(true), 1, NULL);
}
END_TEST

static void refused(void) {
  autotune_log *l = open_log(true);
  add(l, 1, AUTOTUNE_LOG_FAST, "a"); /* kept in memory although the file is refused */
  expect(l, 1, "a");
}

START_TEST(not_our_file) {
  char other[80];
  snprintf(other, sizeof other, "%s/other", folder);
  write_file("", 0);
  ck_assert_int_eq(chmod(path, 0666), 0);
  refused();
  unlink(path);
  ck_assert_int_eq(symlink(other, path), 0);
  refused();
  ck_assert_int_ne(access(other, F_OK), 0);
  unlink(path);
  ck_assert_int_eq(mkfifo(path, 0600), 0);
  refused();
  unlink(path);
  ck_assert_int_eq(mkdir(path, 0700), 0);
  refused();
  rmdir(path);
  write_file("x", 1);
  ck_assert_int_eq(truncate(path, (off_t)65 << 20), 0);
  refused();
}
END_TEST

START_TEST(kept_nowhere) {
  const char *warning;
  autotune_log *l = autotune_log_open(memory, NULL, &warning);
  ck_assert_ptr_null(warning);
  add(l, 1, AUTOTUNE_LOG_FAST, "a");
  expect(l, 1, "a");
}
END_TEST

/* When several processes write at the same time, every line is written whole. */
START_TEST(races) {
  enum { PROCESSES = 8, ENTRIES = 200 };
  for (int p = 0; p < PROCESSES; p++) {
    if (fork() == 0) {
      const char *warning;
      autotune_log *l = autotune_log_open(memory, path, &warning);
      for (int k = 0; k < ENTRIES; k++) {
        add(l, (uint64_t)(p * ENTRIES + k), AUTOTUNE_LOG_FAST, arena_printf(memory, "w%d", k));
      }
      _exit(0);
    }
  }
  for (int p = 0, code; p < PROCESSES; p++) {
    ck_assert_int_gt(wait(&code), 0);
    ck_assert_int_eq(code, 0);
  }
  autotune_log *l = open_log(false);
  for (int k = 0; k < PROCESSES * ENTRIES; k++) {
    expect(l, (uint64_t)k, arena_printf(memory, "w%d", k % ENTRIES));
  }
}
END_TEST

int main(void) {
  TCase *c = tcase_create("autotune_log");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_test(c, kept);
  tcase_add_test(c, several_of_one_key);
  tcase_add_test(c, damage);
  tcase_add_test(c, torn);
  tcase_add_test(c, texts_stay_in_their_line);
  tcase_add_test(c, former_versions);
  tcase_add_test(c, hostile_files);
  tcase_add_test(c, not_our_file);
  tcase_add_test(c, kept_nowhere);
  tcase_add_test(c, races);
  return run_suite("autotune_log", c);
}
