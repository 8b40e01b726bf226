/* sequence.h - sequences of tensors while a graph is imported: lists of known length whose elements are HLO values.
 *
 * HLO has arrays only.  A sequence in an ONNX graph becomes a list of HLO values, each with its own shape.  The
 * importers of sequence operators rearrange such lists without making instructions.  A sequence has the type hlo_value,
 * so that scopes, bodies and calls pass it on like other values, but its shape has the kind SHAPE_SEQUENCE and it
 * belongs to no computation.  Only operators whose types include "seq" (onnx_types.def) can get one. */
#ifndef FRONTEND_IMPORT_SEQUENCE_H
#define FRONTEND_IMPORT_SEQUENCE_H

#include "hlo/ir/builder.h"

/* The largest number of elements of a sequence that an importer makes.  Longer ones are refused, since each element is
 * at least one instruction. */
enum { ONNX_SEQUENCE_MAX = 4096 };

static inline bool onnx_is_sequence(hlo_value v) { return hlo_shape(v)->kind == SHAPE_SEQUENCE; }
/* Returns a sequence of the elements, which are copied and must have that element type. */
hlo_value onnx_sequence_make(arena *a, dtype type, uint32_t n, const hlo_value *elements);
static inline uint32_t onnx_sequence_length(hlo_value v) { return v.def->n_operands; }
static inline const hlo_value *onnx_sequence_elements(hlo_value v) { return v.def->operands; }

/* Converts a position in a sequence of n elements, which counts from the end if it is negative, to one that counts from
 * the front.  If `end` is true, the position n is valid too, which an insertion needs. */
STATUS_MUST_USE status onnx_sequence_position(int64_t position, int64_t n, bool end, int64_t *out);

#endif
