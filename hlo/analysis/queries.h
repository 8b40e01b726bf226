/* queries.h - facts about a module that passes and later stages need: which computations to walk, who uses a value,
 * what is known of a value. */
#ifndef HLO_ANALYSIS_QUERIES_H
#define HLO_ANALYSIS_QUERIES_H

#include "hlo/ir/builder.h"

/* Returns the computations that run, callees first: the entry, and what while and conditional call from there; with
 * `fusions` also the bodies of fusions.  Decompositions of composites are never among them, since they must not be
 * changed. */
hlo_computation **hlo_walked(const hlo_module *m, arena *scratch, bool fusions, uint32_t *n);

/* Numbers the instructions of c (hlo_instr.id).  Returns, for each id, how many of c's roots are results of that
 * instruction. */
uint32_t *hlo_count_roots(hlo_computation *c, arena *scratch);

/* Returns true if the instruction must stay even if nobody uses it: it has an effect, or calls a computation with one.
 */
bool hlo_has_effect(const hlo_instr *i);

/* Returns true if no instruction uses a result of i, and none is a root. */
bool hlo_is_unused(const hlo_instr *i);
/* Returns true if v is used exactly once and is not a root. */
bool hlo_used_once(hlo_value v);
/* Returns the user of v if hlo_used_once(v), otherwise NULL.  An instruction that uses v twice, such as v * v, counts
 * as two uses. */
hlo_instr *hlo_only_user(hlo_value v);

/* Returns true if the gather selects slices along one dimension, as hlo_take builds it, and sets *dimension to that
 * dimension.  In the result, the dimensions of the indices replace it. */
bool hlo_is_take(const hlo_instr *i, int64_t *dimension);

/* Returns true if dimension d of the operand of a gather or scatter is one of a window: if it is neither collapsed nor
 * a batch dimension.  Such dimensions belong to those of offset_dims, in order. */
static inline bool hlo_is_window_dim(const hlo_instr *i, int d) {
  return !hlo_has_int(i, HLO_ATTR_COLLAPSED_DIMS, d) && !hlo_has_int(i, HLO_ATTR_OPERAND_BATCH, d);
}

/* Returns true if the gather looks up bytes in a table: take(table, convert(q)), where the table is u8[256] or s8[256]
 * and q is u8. */
bool hlo_is_lookup(const hlo_instr *gather);

/* Returns the value of which v is a reshape, or a reshape of a reshape and so on; v itself if it is none. */
static inline hlo_value hlo_before_reshapes(hlo_value v) {
  while (v.def->op == HLO_RESHAPE) {
    v = v.def->operands[0];
  }
  return v;
}
/* Returns true if all elements of v are equal and known, and sets *scalar to the element as a literal of rank
 * 0.  The elements of constants of more than 2^16 bytes are not compared; it returns false for them. */
bool hlo_splat_of(hlo_value v, literal *scalar);
/* Returns true if all elements of v are exactly `number`, where -0 is not 0.  Returns false for complex numbers and
 * strings. */
bool hlo_is_splat(hlo_value v, double number);
/* Returns an array of this shape whose elements are all `scalar`. */
hlo_value hlo_splat_literal(hlo_builder *b, shape s, literal scalar);

/* These return attributes to pass to hlo_build: a list, and an integer. */
static inline hlo_attr hlo_attr_list(uint32_t n, const int64_t *ints) { return (hlo_attr){.n = n, .ints = ints}; }
static inline hlo_attr hlo_attr_int(int64_t i) { return (hlo_attr){.i = i}; }

/* Returns true for instructions that cost nothing to compute where they are used: constants of rank 0 (not strings),
 * broadcasts, iota.  Each fusion that uses such an instruction gets a copy of it. */
bool hlo_is_free(const hlo_instr *i);
/* Returns true for elementwise operations of a few cycles, which are faster to compute twice than to store and load. */
bool hlo_is_cheap(const hlo_instr *i);

#endif
