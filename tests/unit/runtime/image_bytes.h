/* image_bytes.h - the bytes of a .oxla file, for tests that damage its programs. */
#ifndef TESTS_UNIT_RUNTIME_IMAGE_BYTES_H
#define TESTS_UNIT_RUNTIME_IMAGE_BYTES_H

#include <string.h>

#include "base/hash.h"

/* Offsets in a file, which begins with the magic bytes and four numbers: the second is the number of
 * sections, the last one the hash of all bytes before it and of the table of sections.  The table follows, a
 * row of four numbers for each section, the last of which is the section's hash. */
enum { MAGIC = 8, SECTIONS = MAGIC + 8, HEADER = MAGIC + 32, ROW = 32, PROGRAMS = 1 };

static inline uint64_t image_number(const uint8_t *bytes) {
  uint64_t v;
  memcpy(&v, bytes, sizeof v);
  return v;
}

/* Makes the hashes right again after a change in the section of programs. */
static inline void image_mend(uint8_t *bytes) {
  uint8_t *row = bytes + HEADER + PROGRAMS * ROW;
  uint64_t hash = hash_bytes(bytes + image_number(row + 8), image_number(row + 16), 0);
  memcpy(row + 24, &hash, sizeof hash);
  hash = hash_bytes(bytes + HEADER, image_number(bytes + SECTIONS) * ROW,
                    hash_bytes(bytes + MAGIC, HEADER - MAGIC - 8, 0));
  memcpy(bytes + HEADER - 8, &hash, sizeof hash);
}

#endif
