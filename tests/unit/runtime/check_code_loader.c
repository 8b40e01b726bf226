/* check_code_loader.c - objects that the C compiler makes are loaded and run; damaged ones are refused. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "runtime/host/code_loader.h"
#include "tests/suite.h"

static const char source[] =
    "double exp(double); void *memcpy(void *, const void *, unsigned long);\n"
    "static const double table[] = {1, 2, 3.5, 4};\n"
    "int counter = 41, zeros[1000];\n"
    "double pick(int k) { return table[k] + zeros[k]; }\n"
    "double grow(double x) { return exp(x) + 1; }\n"
    "int count(void) { return ++counter; }\n"
    "void *(*const functions[])(void *, const void *, unsigned long) = {memcpy};\n"
    "double (*picker)(int) = pick;\n"
    "double call(int k) { return picker(k); }\n"
    "int move(void) { int a = 7, b = 0; functions[0](&b, &a, sizeof a); return b; }\n"
    "void *address(void) { return (void *)memcpy; }\n";

static arena *a;
static rt_span object;

static void setup(void) {
  a = arena_create(NULL);
  char folder[] = "/tmp/check_code_loaderXXXXXX", path[100], command[300];
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/x.c", folder);
  ck_assert_ptr_null(file_write(path, source, sizeof source - 1));
  const char *cc = getenv("CC");
  snprintf(command, sizeof command, "%s -O1 -fPIC -fno-builtin -c -o %s/x.o %s", cc && *cc ? cc : "cc", folder, path);
  ck_assert_int_eq(system(command), 0);
  unlink(path);
  snprintf(path, sizeof path, "%s/x.o", folder);
  const uint8_t *bytes;
  size_t size;
  ck_assert_ptr_null(file_map(a, path, &bytes, &size));
  object = (rt_span){bytes, size};
  unlink(path);
  rmdir(folder);
}

static void teardown(void) { arena_destroy(a); }

static void *resolve(const char *name) {
  return strcmp(name, "exp") == 0 ? (void *)exp : strcmp(name, "memcpy") == 0 ? (void *)memcpy : NULL;
}

static void *resolve_nothing(const char *name) {
  (void)name;
  return NULL;
}

#define FIND(code, type, name) ((type)rt_code_find((code), (name)))

static void load(rt_code **c) {
  status s = rt_code_load(a, object, resolve, c);
  ck_assert_msg(!s, "%s", status_message(s));
}

START_TEST(code_runs) {
  rt_code *c;
  load(&c);
  ck_assert_double_eq(FIND(c, double (*)(int), "pick")(2), 3.5);
  ck_assert_double_eq(FIND(c, double (*)(double), "grow")(1.5), exp(1.5) + 1);
  ck_assert_int_eq(FIND(c, int (*)(void), "count")(), 42);
  ck_assert_int_eq(FIND(c, int (*)(void), "count")(), 43);
  ck_assert_double_eq(FIND(c, double (*)(int), "call")(3), 4);
  ck_assert_int_eq(FIND(c, int (*)(void), "move")(), 7);
  ck_assert_ptr_eq(FIND(c, void *(*)(void), "address")(), (void *)memcpy);
  ck_assert_ptr_null(rt_code_find(c, "nothing"));
  ck_assert_ptr_null(rt_code_find(c, "exp"));
}
END_TEST

START_TEST(two_loads_are_apart) {
  rt_code *c, *d;
  load(&c);
  load(&d);
  ck_assert_int_eq(FIND(c, int (*)(void), "count")(), 42);
  ck_assert_int_eq(FIND(d, int (*)(void), "count")(), 42);
}
END_TEST

static void expect(status s, status_code code, const char *text) {
  ck_assert_int_eq(status_get_code(s), code);
  ck_assert_msg(strstr(status_message(s), text), "%s", status_message(s));
  status_free(s);
}

START_TEST(wrong_objects_are_refused) {
  rt_code *c;
  expect(rt_code_load(a, object, resolve_nothing, &c), STATUS_UNSUPPORTED, "which this onnx-xla does not have");
  expect(rt_code_load(a, (rt_span){"", 0}, resolve, &c), STATUS_INVALID_FILE, "no ELF object of this machine's kind");
  uint8_t *copy = arena_memdup(a, object.data, object.size);
  copy[18] ^= 0x55;
  expect(rt_code_load(a, (rt_span){copy, object.size}, resolve, &c), STATUS_INVALID_FILE, "another processor");
}
END_TEST

/* Whatever a damaged object says, loading it accesses no memory outside of it.  Code that is loaded is not
 * run. */
START_TEST(damage_is_survived) {
  uint32_t state = 12345, refused = 0, truncated = 0;
  for (int seed = 0; seed < 3000; seed++) {
    arena *scratch = arena_create(NULL);
    uint8_t *copy = malloc(object.size);
    memcpy(copy, object.data, object.size);
    for (int flips = 1 + seed % 4; flips > 0; flips--) {
      state = state * 1664525u + 1013904223u;
      copy[(state >> 4) % object.size] ^= (uint8_t)(1u << (state % 8));
    }
    rt_code *c;
    status s = rt_code_load(scratch, (rt_span){copy, object.size}, resolve, &c);
    refused += s != NULL;
    status_free(s);
    free(copy);
    arena_destroy(scratch);
  }
  for (size_t size = 0; size < object.size; size += 13) {
    arena *scratch = arena_create(NULL);
    uint8_t *copy = malloc(size + 1);
    memcpy(copy, object.data, size);
    rt_code *c;
    status s = rt_code_load(scratch, (rt_span){copy, size}, resolve, &c);
    truncated += s == NULL;
    status_free(s);
    free(copy);
    arena_destroy(scratch);
  }
  ck_assert_uint_gt(refused, 100);
  ck_assert_uint_eq(truncated, 0); /* no object is loaded that was cut off, since the section table is at the end */
}
END_TEST

int main(void) {
  TCase *t = tcase_create("code_loader");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, code_runs);
  tcase_add_test(t, two_loads_are_apart);
  tcase_add_test(t, wrong_objects_are_refused);
  tcase_add_test(t, damage_is_survived);
  return run_suite("code_loader", t);
}
