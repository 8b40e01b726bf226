/* sequence.h - sequences of tensors while a graph is imported: lists whose length and elements are known.
 *
 * HLO has arrays only.  A value of a graph that is a sequence stands for several HLO values, each with its own shape.
 * The operators of sequences (sequence.c) pick and order them and make no instructions.  For importers a sequence is an
 * hlo_value like others, so that names, bodies and calls can pass it on, but it has kind SHAPE_SEQUENCE and is in no
 * computation.  The driver passes it only to operators whose types include "seq". */
#ifndef FRONTEND_IMPORT_SEQUENCE_H
#define FRONTEND_IMPORT_SEQUENCE_H

#include "hlo/ir/builder.h"

/* Longer sequences are refused, since each element is at least one instruction. */
enum { ONNX_SEQUENCE_MAX = 4096 };

static inline bool onnx_is_sequence(hlo_value v) { return hlo_shape(v)->kind == SHAPE_SEQUENCE; }
/* Returns a sequence of the elements, which are copied and must have that element type. */
hlo_value onnx_sequence_make(arena *a, dtype type, uint32_t n, const hlo_value *elements);
static inline uint32_t onnx_sequence_length(hlo_value v) { return v.def->n_operands; }
static inline const hlo_value *onnx_sequence_elements(hlo_value v) { return v.def->operands; }

/* Returns a position in a sequence of n elements, counted from the front.  Negative ones count from the end.  With
 * `end` the position n is allowed, for insertions. */
STATUS_MUST_USE status onnx_sequence_position(int64_t position, int64_t n, bool end, int64_t *out);

#endif
