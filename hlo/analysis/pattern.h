/* pattern.h - patterns of instructions that read as the formulas they stand for, and the function that matches them.
 *
 * For example, x * logistic(x * number), with the operands of both multiplications in either order, is
 *
 *   hlo_value x;
 *   literal number;
 *   const hlo_pattern *product = P_COMMUTE(HLO_MUL, P_SAME(&x), P_SPLAT(&number));
 *   bool is_swish = hlo_match(v, P_COMMUTE(HLO_MUL, P_ANY(&x), P_OP(HLO_LOGISTIC, product)));
 *
 * The macros make compound literals, so a pattern lives as long as the block in which it is written (the body of a loop
 * is a block).
 *
 * Captured values are stored in ordinary variables.  All combinations of operand orders and alternatives are tried, so
 * that a later part of the pattern can reject what an earlier part chose.  When a choice is given up, its captures are
 * undone: if hlo_match returns false, all captures have the values that they had before the call.  If it returns true,
 * the captures of alternatives that were not taken have the values from before the call.  (What P_IF and P_SPLAT write
 * is not undone.)
 *
 * One attempt looks at no more values than the pattern has nodes, and at the instructions that a P_BEHIND follows.
 * Each P_COMMUTE and each P_EITHER can double the number of attempts, so a pattern with k of them takes at most 2^k
 * attempts, however large the graph is.  The patterns of this compiler have a k of at most 3. */
#ifndef HLO_ANALYSIS_PATTERN_H
#define HLO_ANALYSIS_PATTERN_H

#include "hlo/analysis/queries.h"

typedef enum hlo_pattern_kind {
  HLO_PATTERN_ANY,
  HLO_PATTERN_AS,
  HLO_PATTERN_SAME,
  HLO_PATTERN_OP,
  HLO_PATTERN_COMMUTE,
  HLO_PATTERN_EITHER,
  HLO_PATTERN_BEHIND,
  HLO_PATTERN_ONCE,
  HLO_PATTERN_TYPE,
  HLO_PATTERN_IF
} hlo_pattern_kind;

enum { HLO_PATTERN_OPERANDS = 3 };

typedef struct hlo_pattern hlo_pattern;
struct hlo_pattern {
  hlo_pattern_kind kind;
  int number;                                  /* an hlo_op for OP, COMMUTE and BEHIND; a dtype for TYPE */
  uint32_t most;                               /* for BEHIND: the largest number of instructions to follow */
  const hlo_pattern *of[HLO_PATTERN_OPERANDS]; /* the inner patterns; the rest are NULL */
  hlo_value *value;                            /* for AS and SAME */
  bool (*test)(hlo_value v, void *data);       /* for IF */
  void *data;
};

#define P_NODE(...) (&(const hlo_pattern){__VA_ARGS__})

/* Matches any value, and captures it in *(capture). */
#define P_ANY(capture) P_AS(capture, P_NODE(.kind = HLO_PATTERN_ANY))
/* Matches what `pattern` matches, and captures the value in *(capture). */
#define P_AS(capture, pattern) P_NODE(HLO_PATTERN_AS, .of = {pattern}, .value = capture)
/* Matches only the value of *(captured): one captured further left in the pattern, or set before the match. */
#define P_SAME(captured) P_NODE(HLO_PATTERN_SAME, .value = captured)
/* Matches the results of operation `op` whose operands, as many as the patterns (1 to 3), match these in order. */
#define P_OP(op, ...) P_NODE(HLO_PATTERN_OP, op, .of = {__VA_ARGS__})
/* Matches the results of an operation with two operands, which match the patterns in this order, or else in the other
 * order.  `left` is matched first in both. */
#define P_COMMUTE(op, left, right) P_NODE(HLO_PATTERN_COMMUTE, op, .of = {left, right})
/* Matches what `first` matches, or else what `second` matches. */
#define P_EITHER(first, second) P_NODE(HLO_PATTERN_EITHER, .of = {first, second})
/* Follows a chain of instructions of operation `op`, from each one to its first operand, and matches
 * `pattern` with the value at the end.  The chain may be empty and has at most `most_` instructions.  It is
 * always followed as far as possible: if `pattern` does not match at its end, it is not tried with values on
 * the way. */
#define P_BEHIND(op, most_, pattern) P_NODE(HLO_PATTERN_BEHIND, op, .most = most_, .of = {pattern})
/* Matches what `pattern` matches, if the value is used exactly once and is not a root (hlo_used_once). */
#define P_ONCE(pattern) P_NODE(HLO_PATTERN_ONCE, .of = {pattern})
/* Matches what `pattern` matches, if the element type is `type`. */
#define P_TYPE(type, pattern) P_NODE(HLO_PATTERN_TYPE, type, .of = {pattern})
/* Matches a value v for which test_(v, data_) returns true.  What the function writes to *data_ is not undone. */
#define P_IF(test_, data_) P_NODE(HLO_PATTERN_IF, .test = test_, .data = data_)
/* Matches a value whose elements are all equal and known, and sets the literal *(literal_) to the element
 * (hlo_splat_of). */
#define P_SPLAT(literal_) P_IF(hlo_read_splat, literal_)

static inline bool hlo_read_splat(hlo_value v, void *scalar) { return hlo_splat_of(v, (literal *)scalar); }

/* Returns true if v matches. */
bool hlo_match(hlo_value v, const hlo_pattern *p);

/* The instructions that P_OP, P_COMMUTE and P_BEHIND matched, each before its operands.  An instruction that matched at
 * several places of the pattern is listed once for each place. */
enum { HLO_MATCHED_MOST = 64 };
typedef struct hlo_matched {
  uint32_t n;
  hlo_instr *list[HLO_MATCHED_MOST];
} hlo_matched;

/* Returns true if v matches, and lists the instructions.  Returns false also if they are too many for the list. */
bool hlo_match_listed(hlo_value v, const hlo_pattern *p, hlo_matched *out);

#endif
