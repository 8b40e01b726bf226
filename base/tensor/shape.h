/* shape.h - element type and dimensions of an array.  Arrays are row-major; strides exist only in buffer slices. */
#ifndef BASE_TENSOR_SHAPE_H
#define BASE_TENSOR_SHAPE_H

#include "base/arena.h"
#include "base/dim/dim.h"
#include "base/tensor/dtype.h"

/* ONNX sets no limit; models that need more are refused with a clear message. */
enum { SHAPE_MAX_RANK = 16 };

/* What kind of value a shape describes; the middle ones are handles into the run's table of host values.  UNRANKED is
 * an array of any rank: what a model may declare as its input, and no value has. */
typedef enum shape_kind { SHAPE_ARRAY, SHAPE_SEQUENCE, SHAPE_OPTIONAL, SHAPE_MAP, SHAPE_UNRANKED } shape_kind;

typedef struct shape {
  uint8_t type; /* dtype; of a handle: its element type where known */
  uint8_t kind; /* shape_kind */
  uint8_t rank;
  dim dims[SHAPE_MAX_RANK]; /* those from rank on are 0 */
} shape;

shape shape_make(dtype type, int rank, const dim *dims);
static inline shape shape_scalar(dtype type) { return shape_make(type, 0, NULL); }
static inline shape shape_with_type(shape s, dtype type) {
  s.type = (uint8_t)type;
  return s;
}
bool shape_equal(const shape *a, const shape *b); /* type, kind, rank and dims */
bool shape_same_dims(const shape *a, const shape *b);
bool shape_is_static(const shape *s); /* every dim is a constant */

/* Refuses DIM_OVERFLOW and, for constants, more than 2^56 bytes.  `what` starts the message. */
STATUS_MUST_USE status shape_check(const shape *s, const char *what);

/* Of a static shape that passed shape_check. */
int64_t shape_elements(const shape *s);
int64_t shape_bytes(const shape *s);
/* Product of dims[from, to). */
int64_t shape_product(const shape *s, int from, int to);
/* Row-major strides in elements into strides[rank]. */
void shape_strides(const shape *s, int64_t *strides);

/* f32[2,batch], pred[], seq<f32> (a handle without dimensions).  table may be NULL for a static shape. */
const char *shape_print(arena *a, const dim_table *table, const shape *s);
/* The same into a buffer (for messages); symbolic dims as '?' without a table.  Gives `buffer`. */
enum { SHAPE_TEXT_MAX = 256 };
const char *shape_text(char *buffer, const dim_table *table, const shape *s);
/* For printf: SHAPE_STR(table, &shape).  The text lives until the end of the enclosing block. */
#define SHAPE_STR(table, s) shape_text((char[SHAPE_TEXT_MAX]){0}, (table), (s))
STATUS_MUST_USE status shape_parse(dim_table *table, const char **text, shape *out);

#endif
