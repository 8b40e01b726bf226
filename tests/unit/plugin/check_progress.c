/* check_progress.c - the progress line on a terminal, and messages that other threads print meanwhile. */
#include <check.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "plugin/cli/progress.c"
#include "tests/suite.h"

static int terminal, standard_error;

/* Makes standard error a terminal, which the tests read. */
static void setup(void) {
  terminal = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
  ck_assert(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
  int other = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  standard_error = dup(STDERR_FILENO);
  ck_assert(other >= 0 && dup2(other, STDERR_FILENO) >= 0);
  close(other);
}

static void teardown(void) {
  dup2(standard_error, STDERR_FILENO);
  close(standard_error);
  close(terminal);
}

/* Adds what was written to the terminal to `text`, and returns it. */
static const char *shown(char *text, size_t size) {
  size_t n = strlen(text);
  ssize_t got;
  while (n + 1 < size && (got = read(terminal, text + n, size - n - 1)) > 0) {
    n += (size_t)got;
  }
  text[n] = '\0';
  return text;
}

static void *print_one(void *data) {
  cli_progress_message("warning: ", data);
  return NULL;
}

/* The message of another thread has a line of its own, and then the progress line comes again. */
START_TEST(message_of_another_thread) {
  static char text[1 << 16];
  pthread_t other;
  cli_progress_start(false, "working", 0);
  while (!strstr(shown(text, sizeof text), "working")) {
    usleep(10000);
  }
  ck_assert_int_eq(pthread_create(&other, NULL, print_one, "slow"), 0);
  pthread_join(other, NULL);
  const char *message = strstr(shown(text, sizeof text), "\r\033[Konnx-xla: warning: slow\r\n");
  ck_assert_ptr_nonnull(message);
  while (!strstr(message, "working")) {
    usleep(10000);
    shown(text, sizeof text);
  }
  cli_progress_end();
  size_t n = strlen(shown(text, sizeof text));
  ck_assert_str_eq(text + n - 4, "\r\033[K");
}
END_TEST

enum { PRINTERS = 3, MESSAGES = 2000 };

static void *print_many(void *data) {
  for (int k = 0; k < MESSAGES; k++) {
    cli_progress_message("", data);
  }
  return NULL;
}

static atomic_bool ended;

static void *start_and_end(void *data) {
  for (uint64_t k = 0; !ended; k++) {
    cli_progress_start(false, "working", k % 2);
    cli_progress_step(0, "a note");
    cli_progress_end();
  }
  return data;
}

/* Messages come at any time, also while the line starts and ends.  This thread reads the terminal, since whoever prints
 * waits when it is full. */
START_TEST(messages_at_any_time) {
  static char text[1 << 20];
  pthread_t threads[PRINTERS + 1];
  int messages = 0;
  ck_assert_int_eq(pthread_create(&threads[PRINTERS], NULL, start_and_end, NULL), 0);
  for (int k = 0; k < PRINTERS; k++) {
    ck_assert_int_eq(pthread_create(&threads[k], NULL, print_many, "m"), 0);
  }
  while (messages < PRINTERS * MESSAGES) {
    text[0] = '\0';
    for (const char *c = shown(text, sizeof text); *c; c++) {
      messages += *c == '\n';
    }
  }
  ended = true;
  for (int k = 0; k <= PRINTERS; k++) {
    pthread_join(threads[k], NULL);
  }
  ck_assert_int_eq(messages, PRINTERS * MESSAGES);
}
END_TEST

int main(void) {
  TCase *c = tcase_create("progress");
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_set_timeout(c, 60);
  tcase_add_test(c, message_of_another_thread);
  tcase_add_test(c, messages_at_any_time);
  return run_suite("progress", c);
}
