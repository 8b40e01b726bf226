/* string_table.c - see string_table.h. */
#include "base/tensor/string_table.h"

#include <string.h>

#include "base/hash.h"

typedef struct entry {
  char *bytes;
  size_t n;
  uint64_t number;
} entry;

struct string_table {
  arena *arena;
  const string_table *extended;
  uint64_t first; /* the number of the first string that the extended table does not have */
  str_map map;    /* from the bytes to the entry */
  entry **entries;
  uint32_t n, cap;
};

string_table *string_table_create(arena *a, const string_table *extended) {
  string_table *t = ARENA_NEW(a, string_table);
  *t = (string_table){.arena = a, .extended = extended, .first = extended ? string_table_count(extended) : 0};
  str_map_init(&t->map, a);
  if (!extended) {
    (void)string_table_add(t, "", 0);
  }
  return t;
}

static const entry *find(const string_table *t, const char *bytes, size_t n) {
  const entry *e = str_map_get_n(&t->map, bytes, n);
  return e || !t->extended ? e : find(t->extended, bytes, n);
}

uint64_t string_table_add(string_table *t, const void *bytes, size_t n) {
  const char *text = n ? bytes : "";
  const entry *known = find(t, text, n);
  if (known) {
    return known->number;
  }
  entry *e = ARENA_NEW(t->arena, entry);
  *e = (entry){arena_alloc(t->arena, n + 1), n, t->first + t->n};
  memcpy(e->bytes, text, n);
  e->bytes[n] = '\0';
  *str_map_put_n(&t->map, e->bytes, n) = e;
  *ARENA_PUSH(t->arena, t->entries, t->n, t->cap) = e;
  return e->number;
}

void string_table_add_all(string_table *t, const string_table *other) {
  for (uint64_t k = 0; k < string_table_count(other); k++) {
    size_t n;
    const char *bytes = string_table_text(other, k, &n);
    (void)string_table_add(t, bytes, n);
  }
}

const char *string_table_text(const string_table *t, uint64_t k, size_t *n) {
  while (t->extended && k < t->first) {
    t = t->extended;
  }
  if (k - t->first >= t->n) {
    return NULL;
  }
  *n = t->entries[k - t->first]->n;
  return t->entries[k - t->first]->bytes;
}

uint64_t string_table_count(const string_table *t) { return t->first + t->n; }
