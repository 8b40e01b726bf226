/* check_opened_file.c - model files that are opened once: kinds, keys, and files that change meanwhile. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "plugin/session/opened_file.h"
#include "tests/suite.h"

static char folder[] = "/tmp/check-opened-file-XXXXXX", path[64];
static arena *memory;

static void setup(void) {
  strcpy(folder + sizeof folder - 7, "XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/model", folder);
  memory = arena_create(NULL);
}

static void teardown(void) {
  char command[100];
  arena_destroy(memory);
  snprintf(command, sizeof command, "rm -r %s", folder);
  ck_assert_int_eq(system(command), 0);
}

static opened_file *open_text(const char *text, size_t n) {
  opened_file *f;
  ASSERT_OK(file_write(path, text, n));
  ASSERT_OK(opened_file_open(memory, path, NULL, 0, &f));
  return f;
}

static const struct {
  const char *text;
  opened_kind kind;
} rows[] = {
    {"", OPENED_MODEL},
    {"O", OPENED_MODEL},
    {"\x08\x08", OPENED_MODEL},
    {"OXLA\r\n\x1a\n and more", OPENED_IMAGE},
    {"OXLA\r\n\x1a", OPENED_MODEL},
    {"onnx-xla hlo 1\n", OPENED_HLO},
    {"// a comment\n \n//\nonnx-xla hlo 1\n", OPENED_HLO},
    {"// onnx-xla hlo 1\n", OPENED_MODEL},
    {"onnx-xla hl", OPENED_MODEL},
};

START_TEST(kinds) {
  opened_file *f, *bytes;
  size_t n = strlen(rows[_i].text);
  f = open_text(rows[_i].text, n);
  ck_assert_int_eq(f->kind == OPENED_IMAGE, rows[_i].kind == OPENED_IMAGE);
  ck_assert_ptr_null(f->bytes);
  ASSERT_OK(opened_file_map(f, memory));
  ck_assert(f->size == n && memcmp(f->bytes, rows[_i].text, n) == 0);
  ck_assert_int_eq(f->kind, rows[_i].kind);
  ASSERT_OK(opened_file_open(memory, NULL, rows[_i].text, n, &bytes));
  ck_assert_int_eq(bytes->kind, rows[_i].kind);
  ck_assert(!opened_file_has_changed(bytes));
}
END_TEST

static void expect_error(const char *at, status_code code, const char *words) {
  opened_file *f;
  status s = opened_file_open(memory, at, NULL, 0, &f);
  ck_assert_msg(s, "%s is opened", at);
  ck_assert_int_eq(status_get_code(s), code);
  ck_assert_msg(strstr(status_message(s), words) && strstr(status_message(s), at), "%s", status_message(s));
  status_free(s);
}

START_TEST(refused) {
  char fifo[80];
  snprintf(fifo, sizeof fifo, "%s/pipe", folder);
  ck_assert_int_eq(mkfifo(fifo, 0600), 0);
  expect_error(path, STATUS_IO, "No such file");
  expect_error(folder, STATUS_INVALID_ARGUMENT, "is a folder");
  expect_error(fifo, STATUS_INVALID_ARGUMENT, "is a pipe"); /* fails at once, although nobody writes to the
                                                               pipe */
  expect_error("/dev/null", STATUS_INVALID_ARGUMENT, "not a regular file");
}
END_TEST

/* Even if another file takes the place of the opened one at its path, bytes and key are those of the opened
 * file. */
START_TEST(replaced) {
  fingerprints c = {.folder = open(folder, O_RDONLY | O_DIRECTORY)};
  opened_file *f = open_text("the first", 9), *other;
  ASSERT_OK(opened_file_find_key(f, &c, NULL));
  ck_assert(!opened_file_has_changed(f));
  ASSERT_OK(file_write(path, "another one", 11));
  ck_assert(opened_file_has_changed(f));
  ASSERT_OK(opened_file_map(f, memory));
  ck_assert(f->size == 9 && memcmp(f->bytes, "the first", 9) == 0);
  ASSERT_OK(opened_file_open(memory, NULL, "the first", 9, &other));
  ASSERT_OK(opened_file_find_key(other, &c, NULL));
  ck_assert(hash128_equal(f->key, other->key));
  close(c.folder);
}
END_TEST

START_TEST(written_to) {
  opened_file *f = open_text("the first", 9);
  int fd = open(path, O_WRONLY);
  ck_assert(fd >= 0 && !opened_file_has_changed(f));
  usleep(20000); /* longer than a tick of a file system's clock */
  ck_assert(pwrite(fd, "T", 1, 0) == 1 && close(fd) == 0);
  ck_assert(opened_file_has_changed(f));
  opened_file_close(f);
  ck_assert(!opened_file_has_changed(f) && fcntl(f->fd, F_GETFD) < 0);
}
END_TEST

/* The end of the arena closes what is still open. */
START_TEST(closed) {
  opened_file *f = open_text("the first", 9);
  int fd = f->fd;
  ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
  ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  arena_destroy(memory);
  ck_assert_int_lt(fcntl(fd, F_GETFD), 0);
  memory = arena_create(NULL);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("opened_file");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_loop_test(c, kinds, 0, sizeof rows / sizeof *rows);
  tcase_add_test(c, refused);
  tcase_add_test(c, replaced);
  tcase_add_test(c, written_to);
  tcase_add_test(c, closed);
  return run_suite("opened_file", c);
}
