/* targets.h - what the byte fuzzers do with the bytes that they make. */
#ifndef TESTS_FUZZ_BYTES_TARGETS_H
#define TESTS_FUZZ_BYTES_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bytes_target {
  const char *name;
  /* Returns true if the bytes were accepted; aborts if something is wrong. */
  bool (*run)(const uint8_t *bytes, size_t size);
  /* Changes bytes[size], in memory of `most` bytes, as `seed` says, so that the change gets past the first checks, and
   * returns the new size.  If NULL, mutate_bytes is used. */
  size_t (*mutate)(uint8_t *bytes, size_t size, size_t most, uint64_t seed);
} bytes_target;

/* Returns the target of that name, or NULL if there is none. */
const bytes_target *bytes_target_find(const char *name);
/* Returns target number k, or NULL after the last one. */
const bytes_target *bytes_target_at(unsigned k);

#endif
