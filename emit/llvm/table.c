/* table.c - the table of computations that are already written; see table.h. */
#include "emit/llvm/table.h"

#include <string.h>

#include "base/hash.h"

enum { BUCKETS = 1024 };
typedef struct entry {
  uintptr_t key[5];
  emit_pair value;
  uint32_t bucket, next; /* next is the number of an older entry of the same bucket plus one, or 0 */
} entry;

struct emit_table {
  arena *arena;
  entry *items;
  uint32_t n, cap, heads[BUCKETS];
};

emit_table *emit_table_create(arena *a) {
  emit_table *t = ARENA_NEW(a, emit_table);
  t->arena = a;
  return t;
}

static uint32_t bucket_of(const uintptr_t key[5]) { return (uint32_t)(hash_bytes(key, 5 * sizeof *key, 0) % BUCKETS); }

const emit_pair *emit_table_find(const emit_table *t, const uintptr_t key[5]) {
  for (uint32_t k = t->heads[bucket_of(key)]; k; k = t->items[k - 1].next) {
    if (memcmp(t->items[k - 1].key, key, 5 * sizeof *key) == 0) {
      return &t->items[k - 1].value;
    }
  }
  return NULL;
}

void emit_table_put(emit_table *t, const uintptr_t key[5], emit_pair value) {
  entry *e = ARENA_PUSH(t->arena, t->items, t->n, t->cap);
  memcpy(e->key, key, sizeof e->key);
  e->value = value;
  e->bucket = bucket_of(key);
  e->next = t->heads[e->bucket];
  t->heads[e->bucket] = t->n;
}

uint32_t emit_table_mark(const emit_table *t) { return t->n; }

void emit_table_release(emit_table *t, uint32_t mark) {
  while (t->n > mark) {
    entry *e = &t->items[--t->n];
    t->heads[e->bucket] = e->next;
  }
}
