/* hash.c - hashes by libxxhash, and the map from strings with open addressing. */
#include "base/hash.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <time.h>

/* xxHash is compiled into this file, so that short keys are hashed without a call and the library is not needed at run
 * time. */
#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hash_bytes(const void *data, size_t size, uint64_t seed) { return XXH3_64bits_withSeed(data, size, seed); }

uint64_t hash_mix(uint64_t hash, uint64_t value) { return hash_bytes(&value, sizeof value, hash); }

uint64_t hash_text(const char *text) { return hash_bytes(text, strlen(text), 0); }

/* --- hashes with a secret --- */

bool hash_secret_init(hash_secret *s) {
  if (getrandom(s->bytes, sizeof s->bytes, 0) == sizeof s->bytes) {
    return true;
  }
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  uint64_t h = hash_mix(hash_mix((uintptr_t)s, (uintptr_t)&hash_secret_init),
                        (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec);
  for (size_t k = 0; k < sizeof s->bytes; k += sizeof h) {
    h = hash_mix(h, k);
    memcpy(s->bytes + k, &h, sizeof h);
  }
  return false;
}

hash128 hash_keyed(const hash_secret *s, const void *data, size_t size) {
  XXH128_hash_t h = XXH3_128bits_withSecret(data, size, s->bytes, sizeof s->bytes);
  return (hash128){{h.high64, h.low64}};
}

bool hash128_equal(hash128 a, hash128 b) { return a.words[0] == b.words[0] && a.words[1] == b.words[1]; }

static uint64_t process_seed;

static void make_seed(void) {
  enum { BYTES = 16 };
  hash_secret s;
  const void *bytes = (const void *)getauxval(AT_RANDOM); /* bytes that the kernel gives to each process */
  if (bytes) {
    process_seed = hash_bytes(bytes, BYTES, 0);
    return;
  }
  (void)hash_secret_init(&s);
  memcpy(&process_seed, s.bytes, sizeof process_seed);
}

uint64_t hash_seed(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_seed);
  return process_seed;
}

/* --- the map: open addressing with linear probing; nothing is ever removed --- */

struct str_map_slot {
  const char *key; /* NULL if the slot is free */
  size_t length;
  uint64_t hash;
  void *value;
};

void str_map_init(str_map *m, arena *a) { *m = (str_map){.arena = a}; }

/* Returns the slot of the key, or the free slot for it. cap must not be 0. */
static str_map_slot *find(const str_map *m, const char *key, size_t length, uint64_t hash) {
  for (uint32_t at = (uint32_t)hash & (m->cap - 1);; at = (at + 1) & (m->cap - 1)) {
    str_map_slot *slot = &m->slots[at];
    if (!slot->key || (slot->hash == hash && slot->length == length && !memcmp(slot->key, key, length))) {
      return slot;
    }
  }
}

static void grow(str_map *m) {
  const str_map_slot *old = m->slots;
  uint32_t n_old = m->cap;
  if (n_old > UINT32_MAX / 4) {
    guard_fail("a table of names has too many entries");
  }
  m->cap = n_old ? n_old * 2 : 16;
  m->slots = ARENA_NEW_N(m->arena, str_map_slot, m->cap);
  for (uint32_t i = 0; i < n_old; i++) {
    if (old[i].key) {
      *find(m, old[i].key, old[i].length, old[i].hash) = old[i];
    }
  }
}

void *str_map_get_n(const str_map *m, const char *key, size_t length) {
  if (!m->n) {
    return NULL;
  }
  return find(m, key, length, hash_bytes(key, length, hash_seed()))->value;
}

void *str_map_get(const str_map *m, const char *key) { return str_map_get_n(m, key, strlen(key)); }

void **str_map_put_n(str_map *m, const char *key, size_t length) {
  assert(key);
  if (m->n >= m->cap / 4 * 3) {
    grow(m);
  }
  uint64_t hash = hash_bytes(key, length, hash_seed());
  str_map_slot *slot = find(m, key, length, hash);
  if (!slot->key) {
    *slot = (str_map_slot){.key = key, .length = length, .hash = hash};
    m->n++;
  }
  return &slot->value;
}

void **str_map_put(str_map *m, const char *key) { return str_map_put_n(m, key, strlen(key)); }

bool str_map_next(const str_map *m, uint32_t *at, const char **key, void **value) {
  for (; *at < m->cap; (*at)++) {
    if (m->slots[*at].key) {
      *key = m->slots[*at].key;
      *value = m->slots[(*at)++].value;
      return true;
    }
  }
  return false;
}
