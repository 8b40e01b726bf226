/* shape_rules.h - the rules for result shapes that the rows of ops.def name.
 *
 * A rule infers the result shapes and writes them to `results`.  For an operation whose result shapes are declared,
 * `results` is i->shapes, which the caller has set, and the rule checks them.  HLO text is not trusted: for an
 * instruction that is read from text, hlo_check_arity has checked the numbers of operands and results, and
 * hlo_verify_attr has checked that attributes have values of their kinds.  Everything else about shapes and attributes
 * is checked by the rules.
 *
 * Dimensions may be symbolic expressions.  The functions dim_* compute with them.  dim_equal decides whether two of
 * them are equal by comparing their handles or else their hints; in the second case it adds a guard.  If two dimensions
 * that must be equal are not, the error is STATUS_INVALID_MODEL if both are constants, otherwise STATUS_UNSUPPORTED.
 * If it cannot be decided whether one extent is at most another, the check succeeds, and is made again when all
 * dimensions are constants; shape_need_window, which asks the hints, is an exception.
 *
 * A message names the rule and the shapes; the caller adds the instruction in front of it. */
#ifndef HLO_IR_SHAPE_RULES_H
#define HLO_IR_SHAPE_RULES_H

#include "base/dim/guard.h"
#include "hlo/ir/ir.h"

#define HLO(id, text, min, max, results, rule, ...) hlo_shape_rule hlo_shape_##rule;
#include "hlo/ir/ops.def"
#undef HLO

/* Limits for one instruction, so that checking its callees takes time linear in the size of the text, even if the text
 * is hostile. */
enum { HLO_MAX_VALUES = 1 << 16, HLO_MAX_BRANCHES = 256 };

/* Refuses numbers of operands and results that the operation's row does not allow, or above HLO_MAX_VALUES. */
STATUS_MUST_USE status hlo_check_arity(hlo_op op, uint32_t n_operands, uint32_t n_results);

/* --- shared by the rules; for hlo/ir/shape_*.c only --- */

/* Sets of element types.  Handles (sequences, optionals, maps) belong to none of them. */
enum {
  TYPES_PRED = 1,
  TYPES_INT = 2,
  TYPES_FLOAT = 4,
  TYPES_COMPLEX = 8,
  TYPES_STRING = 16,
  TYPES_REAL = TYPES_INT | TYPES_FLOAT,
  TYPES_NUMBER = TYPES_REAL | TYPES_COMPLEX,
  TYPES_BITS = TYPES_PRED | TYPES_INT,
  TYPES_ORDERED = TYPES_PRED | TYPES_REAL,
  TYPES_ALL = TYPES_PRED | TYPES_NUMBER | TYPES_STRING
};
unsigned shape_types(dtype t);

static inline const shape *shape_of(const hlo_instr *i, uint32_t k) { return hlo_shape(i->operands[k]); }

/* Returns an error unless operand k is an array of one of those types. */
STATUS_MUST_USE status shape_need_types(const hlo_instr *i, dim_table *dims, uint32_t k, unsigned types);
STATUS_MUST_USE status shape_need_scalar(const hlo_instr *i, dim_table *dims, uint32_t k, dtype type);
/* Returns an error unless operands j and k have the same element type. */
STATUS_MUST_USE status shape_need_same_type(const hlo_instr *i, dim_table *dims, uint32_t j, uint32_t k);
/* Returns an error unless the extents x and y are equal.  The message calls them `what`, followed by the number
 * `dimension` unless that is negative. */
STATUS_MUST_USE status shape_need_equal(dim_table *dims, const char *what, int dimension, dim x, dim y);
/* Returns an error unless all dims of the two shapes are equal. */
STATUS_MUST_USE status shape_need_same_dims(dim_table *dims, const char *x_name, const shape *x, const char *y_name,
                                            const shape *y);
/* Returns an error if x is negative, or DIM_OVERFLOW, or known to be greater than `limit`. */
STATUS_MUST_USE status shape_need_fits(dim_table *dims, const char *what, int dimension, dim x, dim limit);
/* Like shape_need_fits, for a window of x elements within `limit` elements, whose position is computed in the run.  If
 * x and `limit` have hints, these are asked as well: the answer becomes a guard, and it is an error if the window does
 * not fit, since it would reach beyond the array. */
STATUS_MUST_USE status shape_need_window(dim_table *dims, const char *what, int dimension, dim x, dim limit);
/* Returns an error unless the attribute is one dimension of an array of that rank. */
STATUS_MUST_USE status shape_need_dimension(const hlo_instr *i, hlo_attr_id id, int rank);
/* Returns an error unless the list has exactly n entries. */
STATUS_MUST_USE status shape_need_count(const hlo_instr *i, hlo_attr_id id, uint32_t n);
/* Returns an error unless the list has n entries, each in [low, high]. */
STATUS_MUST_USE status shape_need_range(const hlo_instr *i, hlo_attr_id id, uint32_t n, int64_t low, int64_t high);
/* Returns an error unless the list has different dimensions below `rank`, none of which is in the bit set *seen.  If
 * `increasing`, they must be in increasing order.  They are added to *seen. */
STATUS_MUST_USE status shape_need_dims(const hlo_instr *i, hlo_attr_id id, int rank, bool increasing, uint32_t *seen);
STATUS_MUST_USE status shape_need_reducer(const hlo_instr *i, dim_table *dims, uint32_t k);
/* Checks a result with shape_check. */
STATUS_MUST_USE status shape_finish(const hlo_instr *i, const shape *result);
/* Returns the extent of d with `low` and `high` elements around it and `interior` elements between each two of its
 * elements.  Returns DIM_OVERFLOW if that extent is negative or too large.  If there are interior elements and d is an
 * expression, the answer whether d is 0 becomes a guard; a d without a hint is assumed not to be 0. */
dim shape_pad_dim(dim_table *dims, dim d, int64_t low, int64_t high, int64_t interior);

#endif
