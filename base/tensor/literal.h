/* literal.h - a constant array: a static shape and its elements, row-major, little-endian, one element
 * after the other (sub-byte types one byte each). */
#ifndef BASE_TENSOR_LITERAL_H
#define BASE_TENSOR_LITERAL_H

#include "base/tensor/shape.h"

typedef struct literal {
  shape shape;
  /* shape_bytes(&shape) bytes; borrowed: on the arena of whoever made the literal, or a span of a mapped file that
   * lives as long.  Aligned to the element, but for large weights in a model file, which may begin anywhere:
   * literal_aligned is for who reads them as what they are.  Not NULL unless the array is empty. */
  const void *data;
} literal;

literal literal_make(shape s, const void *data);
/* Zeroed elements on the arena; *data is writable. */
literal literal_new(arena *a, shape s, void **data);
literal literal_scalar_f64(arena *a, dtype type, double value); /* value converted to type */
literal literal_scalar_i64(arena *a, dtype type, int64_t value);
/* A rank-1 s64 array. */
literal literal_s64s(arena *a, const int64_t *values, int64_t n);

bool literal_is_aligned(const literal *l);
/* The elements where they can be read as such: as they are, or a copy on the arena. */
const void *literal_aligned(const literal *l, arena *a);

double literal_f64(const literal *l, int64_t index);
int64_t literal_i64(const literal *l, int64_t index);
/* All elements have the same bits (true for one element, false for none). */
bool literal_is_splat(const literal *l);
/* Shape and bits. */
bool literal_equal(const literal *a, const literal *b);
/* For tables of this process. */
uint64_t literal_hash(const literal *l);

/* Moves the first sizes[d] elements along each dimension d together, in place, and makes *s their shape. */
void literal_compact(shape *s, void *data, const int64_t *sizes);

#endif
