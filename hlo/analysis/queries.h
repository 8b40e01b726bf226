/* queries.h - questions about a module that passes and later stages share: which computations to walk, who uses a
 * value, what a value is known to be. */
#ifndef HLO_ANALYSIS_QUERIES_H
#define HLO_ANALYSIS_QUERIES_H

#include "hlo/ir/builder.h"

/* The computations that run as they stand, callees first: the entry and what while and conditional call from
 * there; with `fusions` also the bodies of fusions.  Never decompositions of composites: they are not to be
 * changed. */
hlo_computation **hlo_walked(const hlo_module *m, arena *scratch, bool fusions, uint32_t *n);

/* Numbers the computation; result[id] counts how often an instruction's results are roots. */
uint32_t *hlo_count_roots(hlo_computation *c, arena *scratch);

/* Must it stay though nobody uses it?  True of operations with effects, and of those that call such. */
bool hlo_has_effect(const hlo_instr *i);

/* Is v used exactly once, and not as a root? */
bool hlo_used_once(hlo_value v);
/* Its only user; NULL if there are none or more, or it is a root. */
hlo_instr *hlo_only_user(hlo_value v);

/* Does the gather pick rows of one dimension, as hlo_take makes it, with the indices' dims in its place? */
bool hlo_is_take(const hlo_instr *i, int64_t *dimension);

/* Does it look up bytes: take(u8[256] or s8[256], convert(q)) with q u8?  They are the operand of its second
 * operand. */
bool hlo_is_lookup(const hlo_instr *gather);

/* Is v an array of equal, known elements?  *scalar is the element as a literal of rank 0. */
bool hlo_splat_of(hlo_value v, literal *scalar);
/* The same, and that element is exactly `number` (-0 is not 0).  Real element types only. */
bool hlo_is_splat(hlo_value v, double number);
/* A splat of literal `scalar` with this shape. */
hlo_value hlo_splat_literal(hlo_builder *b, shape s, literal scalar);

/* One list attribute more: hlo_build's attrs. */
static inline hlo_attr hlo_attr_list(uint32_t n, const int64_t *ints) { return (hlo_attr){.n = n, .ints = ints}; }
static inline hlo_attr hlo_attr_int(int64_t i) { return (hlo_attr){.i = i}; }

/* Costs nothing to compute where it is used: constants of one element, broadcasts, iota.  Fusions get a copy
 * of their own. */
bool hlo_is_free(const hlo_instr *i);
/* Elementwise, in a few cycles: worth doing twice rather than to store and load again. */
bool hlo_is_cheap(const hlo_instr *i);

#endif
