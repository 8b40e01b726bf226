/* hash.h - a 64-bit hash function, and a map from strings to pointers that lives on an arena. */
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

typedef struct str_map_slot str_map_slot;

/* Keys are borrowed and must outlive the map; no order is kept.  Every map hashes with a seed of its own, so
 * that names in a hostile file cannot be chosen to collide.  At most 2^31 entries. */
typedef struct str_map {
  arena *arena;
  str_map_slot *slots; /* a power of two of them, at most three quarters filled */
  uint32_t n, cap;
  uint64_t seed;
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
