/* sort_items.h - what is sorted in place of the elements of a line.  A line is all elements along the sorted dimension
 * that have the same position along the other dimensions.
 *
 * Elements become unsigned keys of the same order, so that one code serves all types.  An item is a key with the
 * position of its element in one integer: the key is the high half, so that items compare as a stable sort needs, and
 * no two items of a line are equal. */
#ifndef EMIT_ELEMENT_SORT_ITEMS_H
#define EMIT_ELEMENT_SORT_ITEMS_H

#include "emit/element/element.h"

/* Sets dims to [outer, n, inner]: n is the extent of the sorted dimension, `outer` and `inner` are the products of the
 * extents outside and inside of it. */
void emit_sort_dims(const hlo_instr *sort, dim dims[3]);
/* Returns the bytes of an item.  Half of them hold the key, the other half the position.  No item has all bits set. */
int64_t emit_sort_item_bytes(const hlo_instr *sort);
/* Returns the number of low bits in which two keys can differ; the bits above are 0 in all keys. */
int64_t emit_sort_key_bits(dtype t);

/* The line of a sort for which code is written. */
typedef struct emit_sort_line {
  emit_element *e;
  const hlo_instr *i;
  const dim *dims;        /* as emit_sort_dims sets them */
  LLVMTypeRef word, item; /* the types of half an item and of an item */
  const emit_index *at;   /* the index of the line: [outer, inner] */
} emit_sort_line;

/* The first returns the state for a sort, without a line.  The second sets the line, by its number in [0, outer *
 * inner). */
emit_sort_line emit_sort_line_of(emit_element *e, const hlo_instr *sort);
void emit_sort_set_line(emit_sort_line *s, LLVMValueRef line);

/* These are for position `place` of the line.  The first returns its index in an operand or result, the second its
 * element of an operand. */
const emit_index *emit_sort_index(const emit_sort_line *s, emit_pos place, const shape *of);
emit_pair emit_sort_value(const emit_sort_line *s, uint32_t operand, emit_pos place);
/* The first returns the key at a position, the second the item.  Elements with smaller keys come first: -0 equals 0,
 * and NaN is above all numbers; for a descending sort, this order is reversed. */
LLVMValueRef emit_sort_key(const emit_sort_line *s, emit_pos place);
LLVMValueRef emit_sort_item(const emit_sort_line *s, LLVMValueRef place);
/* Return the key of an item, as wide as a word, and its position, as an i64. */
LLVMValueRef emit_sort_key_word(const emit_sort_line *s, LLVMValueRef item);
LLVMValueRef emit_sort_place(const emit_sort_line *s, LLVMValueRef item);

/* The first returns the address of element k of an array of items or words; the others load and store that element. */
LLVMValueRef emit_sort_address(const emit_sort_line *s, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef k);
LLVMValueRef emit_sort_load(const emit_sort_line *s, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef k);
void emit_sort_store(const emit_sort_line *s, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef k, LLVMValueRef v);

#endif
