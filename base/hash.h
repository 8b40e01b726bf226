/* hash.h - hash functions (XXH3), and a map from strings to pointers that is kept on an arena.
 *
 * XXH3 is not a cryptographic hash: whoever knows all of its input can construct bytes that collide.  Therefore there
 * are two kinds of hashes here.
 *
 * hash_bytes, hash_mix and hash_text give the same result everywhere, and collisions can be constructed.  They are for
 * checksums, which detect accidental damage, and for hash tables, which compare the keys that they find, so that a
 * collision costs only time.
 *
 * hash_keyed has 128 bits and takes a secret.  It is for identities, where the bytes themselves are not available for a
 * comparison: the contents of a file, which weights were packed, from what a kernel was made.  An attacker who makes
 * models and other inputs chooses all bytes that are hashed, but sees neither the secret nor any hash.  To have his
 * model mistaken for somebody else's, he would have to guess 128 bits.  A collision among his own arrays would give
 * wrong numbers for his own model only.  The secret is in the memory of the process and in a file of mode 600, so only
 * the user himself, whose programs are stored there too, can read it. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* Returns a hash that may be stored: the same bytes and seed give the same hash on every machine and in every version.
 */
uint64_t hash_bytes(const void *data, size_t size, uint64_t seed);
/* Returns the hash of everything that was hashed before (`hash`) and of one more number. */
uint64_t hash_mix(uint64_t hash, uint64_t value);
/* Returns the hash of the text without its final 0. */
uint64_t hash_text(const char *text);
/* Returns a seed that differs from process to process, for tables whose keys come from a file.  What this library
 * computes must not depend on it.  All copies of this code in a process, as in the two libraries, have the same. */
uint64_t hash_seed(void);

typedef struct hash_secret {
  uint8_t bytes[192];
} hash_secret;

typedef struct hash128 {
  uint64_t words[2];
} hash128;

/* Fills the secret with random bits.  Returns false if the system has no random numbers; the bits then come from a
 * clock and from addresses. */
bool hash_secret_init(hash_secret *s);
/* Returns a keyed hash: the same bytes and secret give the same hash on every machine and in every version. */
hash128 hash_keyed(const hash_secret *s, const void *data, size_t size);
bool hash128_equal(hash128 a, hash128 b);

typedef struct str_map_slot str_map_slot;

/* A map from strings to pointers.  It borrows its keys, which must outlive it, and keeps no order.  The hash function
 * uses a seed of the process, so that names in a hostile file cannot be chosen to collide.  A map has at most 3 * 2^28
 * entries; one more jumps to the guard (base/arena.h). */
typedef struct str_map {
  arena *arena;
  str_map_slot *slots; /* an array whose size is a power of two; at most three quarters of it are in use */
  uint32_t n, cap;
} str_map;

void str_map_init(str_map *m, arena *a);
/* Returns the value of the key, or NULL if there is none. */
void *str_map_get(const str_map *m, const char *key);
void *str_map_get_n(const str_map *m, const char *key, size_t length);
/* Returns the place where the value of the key is kept, which is valid until the next insertion.  The value of a new
 * key is NULL. */
void **str_map_put(str_map *m, const char *key);
void **str_map_put_n(str_map *m, const char *key, size_t length);

/* Iterates over all entries in no particular order.  *at starts at 0.  Returns false after the last entry.  Nothing may
 * be inserted meanwhile. */
bool str_map_next(const str_map *m, uint32_t *at, const char **key, void **value);

#endif
