/* check_hash.c - the hash function, the string map, and reading and writing whole files. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "tests/suite.h"

static arena *a;

static void setup(void) { a = arena_create(NULL); }

static void teardown(void) { arena_destroy(a); }

/* The values are stored in files: they must never change.  They are XXH3's: Debian's libxxhash gives them. */
START_TEST(known_hashes) {
  ck_assert(hash_text("") == hash_bytes(NULL, 0, 0));
  ck_assert_uint_eq(hash_text(""), UINT64_C(0x2d06800538d394c2)); /* from xxHash's own tests */
  ck_assert(hash_text("onnx") == hash_bytes("onnx", 4, 0));
  ck_assert(hash_bytes("onnx", 4, 0) != hash_bytes("onnx", 4, 1));
  ck_assert(hash_mix(7, 1) == hash_bytes("\1\0\0\0\0\0\0\0", 8, 7));
  ck_assert_uint_eq(hash_text("a name of more than sixteen bytes"), UINT64_C(8993681504502820386));
  ck_assert_uint_eq(hash_text("short"), UINT64_C(12982423571666177290));
}
END_TEST

enum { LONGEST = 300 };

typedef struct pair {
  size_t size;
  uint8_t a[LONGEST], b[LONGEST];
} pair;

/* Returns two inputs that differ in `n` bytes from `at` on.  Both have the 8 bytes `killer` at `where`, which
 * make a factor 0 in a hash that multiplies words after mixing them with publicly known constants. */
static pair colliding(size_t size, const void *killer, size_t where, size_t at, size_t n) {
  pair p = {.size = size};
  for (size_t k = 0; k < size; k++) {
    p.a[k] = p.b[k] = (uint8_t)(k * 7);
  }
  memcpy(p.a + where, killer, 8);
  memcpy(p.b + where, killer, 8);
  for (size_t k = 0; k < n; k++) {
    p.b[at + k] ^= 0x55;
  }
  return p;
}

/* Inputs that somebody who knows the hash function has chosen to collide: by the former hash of this map for
 * all seeds, and by XXH3 for seed 0. */
START_TEST(chosen_collisions) {
  static const uint8_t former[8] = {0x93, 0xfd, 0x59, 0x66, 0xb8, 0xfe, 0xe8, 0xd6};
  static const uint8_t xxh3[8] = {0xb8, 0xfe, 0x6c, 0x39,
                                  0x23, 0xa4, 0x4b, 0xbe}; /* the first 8 bytes of its built-in secret */
  const pair pairs[] = {colliding(32, former, 16, 0, 16), colliding(LONGEST, former, 160, 32, 100),
                        colliding(32, xxh3, 0, 8, 8)};
  hash_secret s, other;
  ck_assert(hash_secret_init(&s) && hash_secret_init(&other));
  ck_assert(memcmp(&s, &other, sizeof s) != 0);
  for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
    const pair *p = &pairs[k];
    hash128 x = hash_keyed(&s, p->a, p->size), y = hash_keyed(&s, p->b, p->size), z = hash_keyed(&other, p->a, p->size);
    ck_assert_msg(!hash128_equal(x, y), "pair %zu collides", k);
    ck_assert_msg(!hash128_equal(x, z), "pair %zu: no secret is in it", k);
    ck_assert(hash128_equal(x, hash_keyed(&s, p->a, p->size)));
    ck_assert_msg(hash_bytes(p->a, p->size, hash_seed()) != hash_bytes(p->b, p->size, hash_seed()),
                  "pair %zu collides in maps", k);
  }
  /* With a known seed they collide, which is why hash_bytes is for checksums only. */
  ck_assert(hash_bytes(pairs[2].a, 32, 0) == hash_bytes(pairs[2].b, 32, 0));
}
END_TEST

/* One bit of the input changes about half the bits of the hash, whatever the length. */
START_TEST(hashes_spread) {
  uint8_t bytes[40];
  int changed = 0, rounds = 0;
  for (size_t n = 1; n <= sizeof bytes; n++) {
    memset(bytes, 0, sizeof bytes);
    uint64_t before = hash_bytes(bytes, n, 7);
    for (size_t bit = 0; bit < 8 * n; bit++, rounds++) {
      bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
      uint64_t difference = hash_bytes(bytes, n, 7) ^ before;
      ck_assert(difference != 0);
      changed += __builtin_popcountll(difference);
      bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
  }
  double mean = (double)changed / rounds;
  ck_assert_msg(mean > 31 && mean < 33, "%f of 64 bits", mean);
}
END_TEST

START_TEST(map) {
  enum { N = 50000 };
  str_map m;
  str_map_init(&m, a);
  ck_assert_ptr_null(str_map_get(&m, "x"));
  char **keys = ARENA_NEW_N(a, char *, N);
  for (int i = 0; i < N; i++) {
    keys[i] = arena_printf(a, "value_%d", i);
    void **slot = str_map_put(&m, keys[i]);
    ck_assert_ptr_null(*slot);
    *slot = keys[i];
  }
  ck_assert_uint_eq(m.n, N);
  for (int i = 0; i < N; i++) {
    ck_assert_ptr_eq(str_map_get(&m, keys[i]), keys[i]);
    ck_assert_ptr_eq(*str_map_put(&m, keys[i]), keys[i]);
  }
  ck_assert_uint_eq(m.n, N);
  ck_assert_ptr_null(str_map_get(&m, "value_"));
  ck_assert_ptr_null(str_map_get(&m, ""));
  ck_assert_ptr_eq(str_map_get_n(&m, "value_12345", 8), keys[12]);
  *str_map_put_n(&m, "a\0b", 3) = a;
  ck_assert_ptr_null(str_map_get(&m, "a"));
  ck_assert_ptr_eq(str_map_get_n(&m, "a\0b", 3), a);
}
END_TEST

/* --- files --- */

START_TEST(files) {
  char folder[] = "check_hash.XXXXXX", path[64];
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/file", folder);
  const uint8_t *bytes;
  size_t size;
  for (int round = 0; round < 2; round++) { /* the second replaces the first */
    ck_assert_ptr_null(file_write(path, "some text", round ? 4 : 9));
    ck_assert_ptr_null(file_map(a, path, &bytes, &size));
    ck_assert_uint_eq(size, round ? 4 : 9);
    ck_assert_mem_eq(bytes, "some text", size);
  }
  ck_assert_ptr_null(file_write(path, NULL, 0));
  ck_assert_ptr_null(file_map(a, path, &bytes, &size));
  ck_assert_uint_eq(size, 0);
  ck_assert_ptr_nonnull(bytes);
  unlink(path);
  ck_assert_int_eq(rmdir(folder), 0); /* and nothing else is left in it */
}
END_TEST

START_TEST(folders) {
  char folder[] = "check_hash.XXXXXX", parent[32], path[32], text[32], below[32];
  struct stat st;
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(parent, sizeof parent, "%s/a", folder);
  snprintf(path, sizeof path, "%s/a/b", folder);
  snprintf(text, sizeof text, "%s/file", folder);
  snprintf(below, sizeof below, "%s/file/c", folder);
  ck_assert(file_make_folders(path));
  ck_assert(file_make_folders(path)); /* which is there already */
  ck_assert(stat(path, &st) == 0 && S_ISDIR(st.st_mode) && (st.st_mode & 077) == 0);
  ck_assert_ptr_null(file_write(text, "x", 1));
  ck_assert(!file_make_folders(below));
  ck_assert_int_eq(errno, ENOTDIR);
  ck_assert(unlink(text) == 0 && rmdir(path) == 0 && rmdir(parent) == 0 && rmdir(folder) == 0);
}
END_TEST

static void expect(status s, status_code code, const char *part) {
  ck_assert_msg(status_get_code(s) == code && strstr(status_message(s), part), "%s", status_message(s));
  status_free(s);
}

START_TEST(files_that_cannot_be) {
  char folder[] = "check_hash.XXXXXX", path[64];
  const uint8_t *bytes;
  size_t size;
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/no/file", folder);
  expect(file_write(path, "x", 1), STATUS_IO, "cannot be created");
  expect(file_write(folder, "x", 1), STATUS_INVALID_ARGUMENT, "is a folder");
  expect(file_map(a, folder, &bytes, &size), STATUS_INVALID_ARGUMENT, "is a folder");
  expect(file_map(a, path, &bytes, &size), STATUS_IO, "cannot be opened");
  if (access("/dev/full", W_OK) == 0) {
    expect(file_write("/dev/full", "x", 1), STATUS_IO, "cannot be written");
  }
  ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

int main(void) {
  TCase *tests = tcase_create("hash");
  tcase_add_checked_fixture(tests, setup, teardown);
  tcase_add_test(tests, known_hashes);
  tcase_add_test(tests, chosen_collisions);
  tcase_add_test(tests, hashes_spread);
  tcase_add_test(tests, map);
  tcase_add_test(tests, files);
  tcase_add_test(tests, folders);
  tcase_add_test(tests, files_that_cannot_be);
  return run_suite("hash", tests);
}
