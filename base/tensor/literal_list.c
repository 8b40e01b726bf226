/* literal_list.c - see literal_list.h. */
#include "base/tensor/literal_list.h"

#include <string.h>

enum { ALIGN = 64 };

static size_t aligned(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

static literal of_kind(dtype type, shape_kind kind, const void *data) {
  shape s = shape_scalar(type);
  s.kind = (uint8_t)kind;
  return literal_make(s, data);
}

literal literal_sequence(dtype type, const literal_list *list) { return of_kind(type, SHAPE_SEQUENCE, list); }

literal literal_absent(dtype type) { return of_kind(type, SHAPE_OPTIONAL, NULL); }

static size_t header_bytes(uint32_t n) { return aligned(sizeof(literal_list) + n * sizeof(literal)); }

size_t literal_packed_bytes(const literal *l) {
  if (l->shape.kind != SHAPE_SEQUENCE) {
    return l->shape.kind == SHAPE_ARRAY ? (size_t)shape_bytes(&l->shape) : 0;
  }
  const literal_list *list = literal_elements(l);
  size_t bytes = header_bytes(list->n);
  for (uint32_t k = 0; k < list->n; k++) {
    bytes += aligned(literal_packed_bytes(&list->items[k]));
  }
  return bytes;
}

void literal_pack(const literal *l, void *memory) {
  if (l->shape.kind != SHAPE_SEQUENCE) {
    size_t bytes = literal_packed_bytes(l);
    if (bytes) {
      memcpy(memory, l->data, bytes);
    }
    return;
  }
  const literal_list *list = literal_elements(l);
  literal_list *copy = memory;
  literal *items = (literal *)(copy + 1);
  char *at = (char *)memory + header_bytes(list->n);
  *copy = (literal_list){list->n, items};
  for (uint32_t k = 0; k < list->n; k++) { /* the recursion is as deep as sequences are nested */
    items[k] = literal_make(list->items[k].shape, at);
    literal_pack(&list->items[k], at);
    at += aligned(literal_packed_bytes(&list->items[k]));
  }
}
