#include "base/hash.h"

#include <assert.h>
#include <string.h>

/* --- the hash function: multiply two 64-bit words, fold the 128-bit product --- */

static const uint64_t K0 = 0x9e3779b97f4a7c15u, K1 = 0xd6e8feb86659fd93u, K2 = 0xa0761d6478bd642fu;

static uint64_t fold(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 u128;
  u128 product = (u128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t load(const uint8_t *p, size_t n) {
  uint64_t word = 0;
  for (size_t i = 0; i < n; i++) {
    word |= (uint64_t)p[i] << (8 * i);
  }
  return word;
}

/* load(p, 8) spelled out: one instruction where it is a loop of 8. */
static uint64_t load_word(const uint8_t *p) {
  return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 |
         (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
}

uint64_t hash_bytes(const void *data, size_t size, uint64_t seed) {
  const uint8_t *p = data;
  uint64_t h = seed ^ fold(seed ^ K0, size ^ K1);
  size_t left = size;
  for (; left >= 16; left -= 16, p += 16) {
    h = fold(load_word(p) ^ K1, load_word(p + 8) ^ h);
  }
  uint64_t low = load(p, left < 8 ? left : 8), high = left > 8 ? load(p + 8, left - 8) : 0;
  return fold(fold(low ^ K2, high ^ h), K0 ^ size);
}

uint64_t hash_mix(uint64_t hash, uint64_t value) { return fold(hash ^ K2, value ^ K0) + (hash << 1); }

uint64_t hash_text(const char *text) { return hash_bytes(text, strlen(text), 0); }

/* --- the map: open addressing with linear probing; nothing is ever removed --- */

struct str_map_slot {
  const char *key; /* NULL: free */
  size_t length;
  uint64_t hash;
  void *value;
};

void str_map_init(str_map *m, arena *a) {
  *m = (str_map){.arena = a};
  /* Addresses differ from run to run, and nothing that is visible depends on them. */
  m->seed =
      fold((uint64_t)(uintptr_t)m ^ K0, (uint64_t)(uintptr_t)a ^ K1) ^ (uint64_t)(uintptr_t)&str_map_init;
}

/* The slot of the key, or the free one where it belongs; cap must not be 0. */
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
  return find(m, key, length, hash_bytes(key, length, m->seed))->value;
}

void *str_map_get(const str_map *m, const char *key) { return str_map_get_n(m, key, strlen(key)); }

void **str_map_put_n(str_map *m, const char *key, size_t length) {
  assert(key);
  if (m->n >= m->cap / 4 * 3) {
    grow(m);
  }
  uint64_t hash = hash_bytes(key, length, m->seed);
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
