/* sequence.h - sequences of tensors, while a graph is imported: lists whose length and elements are known.
 *
 * HLO has arrays only.  A value of a graph that is a sequence stands for as many HLO values, each with a shape of its
 * own; the operators of sequences (sequence.c) pick and order them, and no instruction comes of that.  To
 * importers a sequence is an hlo_value like others, so that names, bodies and calls hand it on, but one of kind
 * SHAPE_SEQUENCE that no computation holds: the driver gives it to operators whose types have "seq" only. */
#ifndef FRONTEND_IMPORT_SEQUENCE_H
#define FRONTEND_IMPORT_SEQUENCE_H

#include "hlo/ir/builder.h"

/* Longer ones are refused: each element is at least one instruction. */
enum { ONNX_SEQUENCE_MAX = 4096 };

static inline bool onnx_is_sequence(hlo_value v) { return hlo_shape(v)->kind == SHAPE_SEQUENCE; }
/* The elements are copied; they have that element type. */
hlo_value onnx_sequence_make(arena *a, dtype type, uint32_t n, const hlo_value *elements);
static inline uint32_t onnx_sequence_length(hlo_value v) { return v.def->n_operands; }
static inline const hlo_value *onnx_sequence_elements(hlo_value v) { return v.def->operands; }

/* A position in a sequence of n elements, counted from the front.  Negative ones count from the end; n itself is where
 * an insertion may be (`end`). */
STATUS_MUST_USE status onnx_sequence_position(int64_t position, int64_t n, bool end, int64_t *out);

#endif
