/* hash.h - hashes (XXH3), and a map from strings to pointers that lives on an arena.
 *
 * XXH3 is no cryptographic hash: whoever knows all that goes into it can make bytes that collide.  Hence two kinds.
 *
 * hash_bytes, hash_mix and hash_text are the same everywhere, and collisions can be chosen.  They are for checksums,
 * which tell that nothing was damaged by accident, and for tables, which compare what they find and so lose no more
 * than time.
 *
 * hash_keyed has 128 bits and a secret.  It is for identities, where the other bytes are not at hand to be compared:
 * what a file held, which weights were packed, what code was made of.  It stands against who makes models and other
 * inputs: all bytes that are hashed are chosen by him, but he sees neither the secret nor a hash.  To have his model
 * taken for somebody else's he must hit 128 bits; among arrays of his own he may bet on some collision, and wins wrong
 * numbers from his own model.  It does not stand against who reads the secret, which is in the process's memory and in
 * a file of mode 600: that is the user, whose programs lie there, too. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* The same bytes and seed give the same hash on every machine and in every version: it may be stored. */
uint64_t hash_bytes(const void *data, size_t size, uint64_t seed);
/* Mixes one number into a running hash. */
uint64_t hash_mix(uint64_t hash, uint64_t value);
/* Of the text without its end. */
uint64_t hash_text(const char *text);
/* A seed that differs from process to process, for tables whose keys a file chooses; nothing visible may depend on it.
 */
uint64_t hash_seed(void);

typedef struct hash_secret {
  uint8_t bytes[192];
} hash_secret;

typedef struct hash128 {
  uint64_t words[2];
} hash128;

/* Random.  False: the system has no random numbers, and these come from clocks and addresses. */
bool hash_secret_init(hash_secret *s);
/* The same bytes and secret give the same hash on every machine and in every version. */
hash128 hash_keyed(const hash_secret *s, const void *data, size_t size);
bool hash128_equal(hash128 a, hash128 b);

typedef struct str_map_slot str_map_slot;

/* Keys are borrowed and must outlive the map; no order is kept.  Maps hash with the process's seed, so
 * that names in a hostile file cannot be chosen to collide.  At most 2^31 entries. */
typedef struct str_map {
  arena *arena;
  str_map_slot *slots; /* a power of two of them, at most three quarters filled */
  uint32_t n, cap;
} str_map;

void str_map_init(str_map *m, arena *a);
/* The value of the key, or NULL. */
void *str_map_get(const str_map *m, const char *key);
void *str_map_get_n(const str_map *m, const char *key, size_t length);
/* Where the value of the key is kept, valid until the next insertion.  A new key has the value NULL. */
void **str_map_put(str_map *m, const char *key);
void **str_map_put_n(str_map *m, const char *key, size_t length);

/* Goes through all entries in no order: *at starts at 0; false after the last.  No insertions on the way. */
bool str_map_next(const str_map *m, uint32_t *at, const char **key, void **value);

#endif
