/* literal.h - a constant array: a static shape and its elements, which are row-major, little-endian and contiguous.
 * Elements of types below a byte take one byte each. */
#ifndef BASE_TENSOR_LITERAL_H
#define BASE_TENSOR_LITERAL_H

#include "base/tensor/shape.h"

typedef struct literal {
  shape shape;
  /* The elements, shape_bytes(&shape) bytes.  They are borrowed: they are on the arena on which the literal was made,
   * or in a mapped file that lives as long.  They are aligned to the element, except for large weights in a model file,
   * which may begin anywhere; literal_aligned returns aligned elements.  Not NULL unless the array is empty. */
  const void *data;
} literal;

literal literal_make(shape s, const void *data);
/* Returns a literal with zeroed elements on the arena; *data points to them, for writing. */
literal literal_new(arena *a, shape s, void **data);
literal literal_scalar_f64(arena *a, dtype type, double value); /* `value` is converted to the type. */
literal literal_scalar_i64(arena *a, dtype type, int64_t value);
/* Returns an s64 array of rank 1. */
literal literal_s64s(arena *a, const int64_t *values, int64_t n);

bool literal_is_aligned(const literal *l);
/* Returns the elements at an aligned address: those of the literal if they are aligned, otherwise a copy on the arena.
 */
const void *literal_aligned(const literal *l, arena *a);

double literal_f64(const literal *l, int64_t index);
int64_t literal_i64(const literal *l, int64_t index);
/* Returns true if all elements have the same bits.  That is true for an array of one element and false for an empty
 * one. */
bool literal_is_splat(const literal *l);
/* Returns true if all elements are integers. */
bool literal_is_whole(const literal *l);
/* Returns true if shapes and bits are equal. */
bool literal_equal(const literal *a, const literal *b);
/* Returns a hash for tables, which is valid in this process only. */
uint64_t literal_hash(const literal *l);

/* Shrinks the array in place to its first sizes[d] elements along each dimension d, and sets *s to the new shape. */
void literal_compact(shape *s, void *data, const int64_t *sizes);

#endif
