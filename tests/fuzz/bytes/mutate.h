/* mutate.h - damages files but keeps their structure.  All functions change bytes[size], in memory of `most` bytes, and
 * return the new size.  Equal seeds give the same damage on every machine. */
#ifndef TESTS_FUZZ_BYTES_MUTATE_H
#define TESTS_FUZZ_BYTES_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* Returns the next random number, by splitmix64. */
uint64_t mutate_random(uint64_t *state);
/* Changes bits and bytes, cuts, and copies: for files of any kind. */
size_t mutate_bytes(uint8_t *bytes, size_t size, size_t most, uint64_t seed);
/* Removes, doubles or changes one field somewhere in a protobuf message.  The lengths of the messages around it are
 * adjusted. */
size_t mutate_protobuf(uint8_t *bytes, size_t size, size_t most, uint64_t seed);
/* Changes words, numbers or lines of HLO text. */
size_t mutate_text(uint8_t *bytes, size_t size, size_t most, uint64_t seed);
/* Changes some bytes of a .oxla file, and then its checksums so that they are right. */
size_t mutate_image(uint8_t *bytes, size_t size, size_t most, uint64_t seed);

#endif
