/* mutate.h - damage that keeps the structure of what it damages.  All functions change bytes[size], of which `most` may
 * be used, and give the new size; equal seeds do the same everywhere. */
#ifndef TESTS_FUZZ_BYTES_MUTATE_H
#define TESTS_FUZZ_BYTES_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* splitmix64 */
uint64_t mutate_random(uint64_t *state);
/* Bits, bytes, cuts, copies: for anything. */
size_t mutate_bytes(uint8_t *bytes, size_t size, size_t most, uint64_t seed);
/* One field somewhere in a protobuf message: removed, doubled, another number, another text; lengths around it fit. */
size_t mutate_protobuf(uint8_t *bytes, size_t size, size_t most, uint64_t seed);
/* A word, number or line of HLO text. */
size_t mutate_text(uint8_t *bytes, size_t size, size_t most, uint64_t seed);
/* A .oxla file: some bytes, then its checksums. */
size_t mutate_image(uint8_t *bytes, size_t size, size_t most, uint64_t seed);

#endif
