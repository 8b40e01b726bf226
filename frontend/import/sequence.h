/* sequence.h - sequences of tensors, and optionals without an element, while a graph is imported.  A sequence is a list
 * of known length whose elements are HLO values.
 *
 * HLO has arrays only.  A sequence in an ONNX graph becomes a list of HLO values, each with its own shape.  The
 * importers of sequence operators rearrange such lists without making instructions.  A sequence has the type hlo_value,
 * so that scopes, bodies and calls pass it on like other values, but its shape has the kind SHAPE_SEQUENCE and it
 * belongs to no computation.  Only operators whose types include "seq" (onnx_types.def) can get one.
 *
 * An optional that has an element is that element, an array or a sequence.  One that has none is a list of no elements
 * whose shape has the kind SHAPE_OPTIONAL, for operators whose types include "opt". */
#ifndef FRONTEND_IMPORT_SEQUENCE_H
#define FRONTEND_IMPORT_SEQUENCE_H

#include "hlo/ir/builder.h"

/* The largest number of elements of a sequence that an importer makes.  Longer ones are refused, since each element is
 * at least one instruction. */
enum { ONNX_SEQUENCE_MAX = 4096 };

static inline bool onnx_is_sequence(hlo_value v) { return hlo_shape(v)->kind == SHAPE_SEQUENCE; }
static inline bool onnx_is_absent(hlo_value v) { return hlo_shape(v)->kind == SHAPE_OPTIONAL; }
/* Returns true if the value is neither a sequence nor an optional without an element. */
static inline bool onnx_is_array(hlo_value v) { return hlo_shape(v)->kind == SHAPE_ARRAY; }
/* Returns a sequence of the elements, which are copied and must have that element type. */
hlo_value onnx_sequence_make(arena *a, dtype type, uint32_t n, const hlo_value *elements);
/* Returns an optional without an element; `type` is that of the arrays that it would have. */
hlo_value onnx_absent_make(arena *a, dtype type);
static inline uint32_t onnx_sequence_length(hlo_value v) { return v.def->n_operands; }
static inline const hlo_value *onnx_sequence_elements(hlo_value v) { return v.def->operands; }

/* Returns true if a value of a loop can have the shape `before` in one iteration and `after` in the next: arrays may
 * change their dimensions, and optionals may gain and lose their element. */
bool onnx_may_become(const shape *before, const shape *after);

/* Converts a position in a sequence of n elements, which counts from the end if it is negative, to one that counts from
 * the front.  If `end` is true, the position n is valid too, which an insertion needs. */
STATUS_MUST_USE status onnx_sequence_position(int64_t position, int64_t n, bool end, int64_t *out);

#endif
