/* archive.c - writes an archive with two members, the index of symbols and the object; see archive.h. */
#include "aot/archive.h"

#include <stdio.h>
#include <string.h>

enum { HEADER = 60, LONGEST = 15, INDEX_WORD = 4 };
static const char magic[] = "!<arch>\n";

static uint64_t even(uint64_t n) { return n + n % 2; }

static char *put_bytes(char *at, const void *bytes, size_t n) {
  memcpy(at, bytes, n);
  return at + n;
}

/* Puts a member: its header, and n bytes, padded to an even number. */
static char *put_member(char *at, const char *name, const void *bytes, uint64_t n) {
  char header[HEADER + 1];
  snprintf(header, sizeof header, "%-16s%-12d%-6d%-6d%-8s%-10llu`\n", name, 0, 0, 0, "100644", (unsigned long long)n);
  at = put_bytes(put_bytes(at, header, HEADER), bytes, n);
  return n % 2 ? put_bytes(at, "\n", 1) : at;
}

static void put_big_endian(uint8_t *at, uint32_t n) {
  for (int k = 0; k < INDEX_WORD; k++) {
    at[k] = (uint8_t)(n >> (8 * (INDEX_WORD - 1 - k)));
  }
}

/* Returns the index: the number of symbols, for each the place of its member, and the names. */
static rt_span index_of(arena *a, uint32_t n, const char *const *symbols) {
  uint64_t size = INDEX_WORD * ((uint64_t)n + 1), at = size;
  for (uint32_t k = 0; k < n; k++) {
    size += strlen(symbols[k]) + 1;
  }
  uint8_t *bytes = arena_alloc(a, size);
  uint32_t member = (uint32_t)(sizeof magic - 1 + HEADER + even(size));
  put_big_endian(bytes, n);
  for (uint32_t k = 0; k < n; k++) {
    put_big_endian(bytes + INDEX_WORD * (k + 1), member);
    memcpy(bytes + at, symbols[k], strlen(symbols[k]) + 1);
    at += strlen(symbols[k]) + 1;
  }
  return (rt_span){bytes, size};
}

rt_span aot_archive(arena *a, const char *name, rt_span object, uint32_t n, const char *const *symbols) {
  rt_span index = index_of(a, n, symbols);
  uint64_t size = sizeof magic - 1 + 2 * HEADER + even(index.size) + even(object.size);
  char *bytes = arena_alloc(a, size), *at = put_bytes(bytes, magic, sizeof magic - 1);
  at = put_member(at, "/", index.data, index.size);
  (void)put_member(at, arena_printf(a, "%.*s/", LONGEST, name), object.data, object.size);
  return (rt_span){bytes, size};
}
