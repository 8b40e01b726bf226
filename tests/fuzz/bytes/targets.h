/* targets.h - what the byte fuzzers do with their bytes. */
#ifndef TESTS_FUZZ_BYTES_TARGETS_H
#define TESTS_FUZZ_BYTES_TARGETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bytes_target {
  const char *name;
  /* Returns true if the bytes were accepted; aborts if something is wrong. */
  bool (*run)(const uint8_t *bytes, size_t size);
  /* Changes bytes[*size] within `most` as `seed` says, so that the change gets past the first checks.  NULL: only bytes
   * are changed. */
  size_t (*mutate)(uint8_t *bytes, size_t size, size_t most, uint64_t seed);
} bytes_target;

/* NULL if there is none of that name. */
const bytes_target *bytes_target_find(const char *name);
/* By number, NULL after the last. */
const bytes_target *bytes_target_at(unsigned k);

#endif
