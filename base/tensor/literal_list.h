/* literal_list.h - sequences of arrays, which a model may have as inputs and outputs.  A literal of the kind
 * SHAPE_SEQUENCE has the address of a literal_list as its data.  A literal of the kind SHAPE_OPTIONAL, an optional
 * without an element, has no data.  Only the code at the border of a model knows such literals: the functions of
 * literal.h, and shape_bytes and shape_elements, are for arrays. */
#ifndef BASE_TENSOR_LITERAL_LIST_H
#define BASE_TENSOR_LITERAL_LIST_H

#include "base/tensor/literal.h"

typedef struct literal_list {
  uint32_t n;
  const literal *items;
} literal_list;

/* Returns the literal of a sequence: of `list`, which is borrowed. */
literal literal_sequence(dtype type, const literal_list *list);
/* Returns the literal of an optional without an element, which would have arrays of this type. */
literal literal_absent(dtype type);
/* Returns the elements of a literal of the kind SHAPE_SEQUENCE. */
static inline const literal_list *literal_elements(const literal *l) { return l->data; }

/* Returns the bytes of an array, or of a sequence in one block of memory.  literal_pack writes that block: what `data`
 * of the copy is to point to.  An optional without an element has no bytes. */
size_t literal_packed_bytes(const literal *l);
/* `memory` is aligned to 64 bytes, and so are the arrays in it. */
void literal_pack(const literal *l, void *memory);

#endif
