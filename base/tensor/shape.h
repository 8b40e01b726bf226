/* shape.h - the element type and the dimensions of an array.  Arrays are row-major; only the buffers of a program
 * (rt_buffer) have strides. */
#ifndef BASE_TENSOR_SHAPE_H
#define BASE_TENSOR_SHAPE_H

#include "base/arena.h"
#include "base/dim/dim.h"
#include "base/tensor/dtype.h"

/* The most dimensions of an array.  ONNX has no limit; a model that needs more dimensions is refused. */
enum { SHAPE_MAX_RANK = 16 };

/* The kind of value that a shape describes.  A value of the kind OPTIONAL is an optional without an element; one that
 * has an element is that element, so a value that is declared as OPTIONAL may be of another kind.  UNRANKED is an array
 * of any rank, which a model may declare as an input or output; no value has this kind. */
typedef enum shape_kind { SHAPE_ARRAY, SHAPE_SEQUENCE, SHAPE_OPTIONAL, SHAPE_MAP, SHAPE_UNRANKED } shape_kind;

typedef struct shape {
  uint8_t type; /* a dtype; that of the arrays in a sequence, in an optional, or of the values of a map */
  uint8_t kind; /* a shape_kind */
  uint8_t rank;
  dim dims[SHAPE_MAX_RANK]; /* dimensions from `rank` on are 0 */
} shape;

shape shape_make(dtype type, int rank, const dim *dims);
static inline shape shape_scalar(dtype type) { return shape_make(type, 0, NULL); }
static inline shape shape_with_type(shape s, dtype type) {
  s.type = (uint8_t)type;
  return s;
}
static inline bool shape_is_array(const shape *s) { return s->kind == SHAPE_ARRAY || s->kind == SHAPE_UNRANKED; }
bool shape_equal(const shape *a, const shape *b); /* Returns true if type, kind, rank and dims are equal. */
bool shape_same_dims(const shape *a, const shape *b);
bool shape_is_static(const shape *s); /* Returns true if every dim is a constant. */
/* Returns true if dim_is_exact is true for every dim. */
bool shape_is_exact(const dim_table *t, const shape *s);

/* Returns true if a dimension is the constant 0, so that there are no elements. */
bool shape_is_empty(const shape *s);

/* Returns STATUS_INVALID_MODEL if a dim is DIM_OVERFLOW, and STATUS_RESOURCE if an array whose dims are the positive
 * constants among the shape's has more than 2^56 bytes.  The message begins with `what`. */
STATUS_MUST_USE status shape_check(const shape *s, const char *what);

/* Return the number of elements, and the number of bytes.  The shape must be static and must have passed shape_check.
 */
int64_t shape_elements(const shape *s);
int64_t shape_bytes(const shape *s);
/* Returns the product of dims[from], ..., dims[to - 1]. */
int64_t shape_product(const shape *s, int from, int to);
/* Returns the product of dims[from], ..., dims[to - 1] as a dim, which may be symbolic. */
dim shape_dim_product(dim_table *t, const shape *s, int from, int to);
/* Return the number of bytes, and row-major strides counted in elements, as dims, which may be symbolic. */
dim shape_dim_bytes(dim_table *t, const shape *s);
void shape_dim_strides(dim_table *t, const shape *s, dim *strides);
/* Writes row-major strides, counted in elements, to strides[rank]. */
void shape_strides(const shape *s, int64_t *strides);

/* Returns text such as f32[2,batch], pred[], or seq<f32>, since sequences have no dimensions.  `table` may be NULL for
 * a static shape. */
const char *shape_print(arena *a, const dim_table *table, const shape *s);
/* Writes the text of shape_print into a buffer, for messages.  Without a table, symbolic dims are written as '?'.
 * Returns `buffer`. */
enum { SHAPE_TEXT_MAX = 256 };
const char *shape_text(char *buffer, const dim_table *table, const shape *s);
/* Returns the text of a shape for printf: SHAPE_STR(table, &shape).  It lives until the end of the enclosing block. */
#define SHAPE_STR(table, s) shape_text((char[SHAPE_TEXT_MAX]){0}, (table), (s))
STATUS_MUST_USE status shape_parse(dim_table *table, const char **text, shape *out);

#endif
