/* literal_list.c - see literal_list.h. */
#include "base/tensor/literal_list.h"

#include <inttypes.h>
#include <string.h>

enum { ALIGN = 64 };

static size_t aligned(size_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

static literal of_kind(dtype type, shape_kind kind, const void *data) {
  shape s = shape_scalar(type);
  s.kind = (uint8_t)kind;
  return literal_make(s, data);
}

literal literal_sequence(dtype type, const literal_list *list) { return of_kind(type, SHAPE_SEQUENCE, list); }

literal literal_map(const literal_list *list) { return of_kind((dtype)list->items[1].shape.type, SHAPE_MAP, list); }

literal literal_absent(dtype type) { return of_kind(type, SHAPE_OPTIONAL, NULL); }

static status check_map(const literal *l, dtype key) {
  const literal_list *list = literal_elements(l);
  CHECK_THAT(list->n == 2, STATUS_INVALID_ARGUMENT, "a map has an array of keys and an array of values");
  const shape *keys = &list->items[0].shape, *values = &list->items[1].shape;
  CHECK_THAT(keys->kind == SHAPE_ARRAY && values->kind == SHAPE_ARRAY, STATUS_INVALID_ARGUMENT,
             "the keys of the map are %s and the values %s", SHAPE_STR(NULL, keys), SHAPE_STR(NULL, values));
  CHECK_THAT(keys->type == key && values->type == l->shape.type, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_TYPE,
             "the keys of the map are %s and the values %s; the model needs %s and %s", SHAPE_STR(NULL, keys),
             SHAPE_STR(NULL, values), dtype_name(key), dtype_name((dtype)l->shape.type));
  CHECK_THAT(keys->rank == 1 && values->rank == 1 && keys->dims[0] == values->dims[0],
             STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE, "the keys of the map are %s and the values %s",
             SHAPE_STR(NULL, keys), SHAPE_STR(NULL, values));
  return NULL;
}

status literal_check_elements(const literal *l, shape_kind element, dtype key) {
  if (l->shape.kind == SHAPE_MAP) {
    return check_map(l, key);
  }
  const literal_list *list = literal_elements(l);
  for (uint32_t k = 0; k < list->n; k++) {
    const shape *s = &list->items[k].shape;
    CHECK_THAT(s->kind == element && s->type == l->shape.type, STATUS_INVALID_ARGUMENT | STATUS_ABOUT_TYPE,
               "element %" PRIu32 " of the sequence is %s, which the model does not need", k, SHAPE_STR(NULL, s));
    TRY(element == SHAPE_MAP ? check_map(&list->items[k], key) : NULL);
  }
  return NULL;
}

static size_t header_bytes(uint32_t n) { return aligned(sizeof(literal_list) + n * sizeof(literal)); }

size_t literal_packed_bytes(const literal *l) {
  if (!literal_is_list(l)) {
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
  if (!literal_is_list(l)) {
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
