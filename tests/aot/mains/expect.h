/* expect.h - the checks of the programs in this folder: a failure is printed with its place, and does not end the
 * program. */
#ifndef EXPECT_H
#define EXPECT_H

#include <stdint.h>
#include <stdio.h>

static int checks, failures;

#define EXPECT(condition) expect((condition) != 0, #condition, __FILE__, __LINE__)

static void expect(int is_true, const char *condition, const char *file, int line) {
  checks++;
  if (!is_true) {
    failures++;
    printf("FAIL %s:%d: %s\n", file, line, condition);
  }
}

/* Returns the first address in `memory` that is aligned as an arena must be. */
static unsigned char *aligned(unsigned char *memory) { return memory + (64 - (uintptr_t)memory % 64) % 64; }

/* Prints the counts; returns the exit status of the program. */
static int report(void) {
  printf("%d checks, %d failures\n", checks, failures);
  return failures != 0;
}

#endif
