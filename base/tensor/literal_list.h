/* literal_list.h - sequences of arrays, and maps, which a model may have as inputs and outputs.  A literal of the kind
 * SHAPE_SEQUENCE or SHAPE_MAP has the address of a literal_list as its data.  The list of a map has two arrays of rank
 * 1 and equal lengths, the keys and the values.  A literal of the kind SHAPE_OPTIONAL, an optional without an element,
 * has no data.  Only the code at the border of a model knows such literals: the functions of literal.h, and shape_bytes
 * and shape_elements, are for arrays. */
#ifndef BASE_TENSOR_LITERAL_LIST_H
#define BASE_TENSOR_LITERAL_LIST_H

#include "base/tensor/literal.h"

typedef struct literal_list {
  uint32_t n;
  const literal *items;
} literal_list;

/* Returns the literal of a sequence: of `list`, which is borrowed. */
literal literal_sequence(dtype type, const literal_list *list);
/* Returns the literal of a map: of `list`, which has the keys and the values, and is borrowed. */
literal literal_map(const literal_list *list);
/* Returns the literal of an optional without an element, which would have arrays of this type. */
literal literal_absent(dtype type);
static inline bool literal_is_list(const literal *l) {
  return l->shape.kind == SHAPE_SEQUENCE || l->shape.kind == SHAPE_MAP;
}
/* Returns the elements of a sequence, or the keys and the values of a map. */
static inline const literal_list *literal_elements(const literal *l) { return l->data; }

/* Fails unless the elements of a sequence, or of a map, are as they must be: arrays or maps, as `element` says, of the
 * literal's type, and for maps keys of the type `key` and as many values. */
STATUS_MUST_USE status literal_check_elements(const literal *l, shape_kind element, dtype key);

/* Returns the bytes of an array, or of a sequence or map in one block of memory.  literal_pack writes that block: what
 * `data` of the copy is to point to.  An optional without an element has no bytes. */
size_t literal_packed_bytes(const literal *l);
/* `memory` is aligned to 64 bytes, and so are the arrays in it. */
void literal_pack(const literal *l, void *memory);

#endif
