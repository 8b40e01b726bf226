/* softmax.c - the steps of a softmax; see softmax.h. */
#include "hlo/analysis/softmax.h"

#include "hlo/analysis/queries.h"

/* If v repeats one value for each row, returns the instruction that computes these values; otherwise NULL. */
static const hlo_instr *repeated(const hlo_row_space *s, hlo_value v) {
  v = hlo_before_reshapes(v);
  bool repeats = v.def->op == HLO_BROADCAST && hlo_broadcasts_rows(s, v.def);
  return repeats ? hlo_before_reshapes(v.def->operands[0]).def : NULL;
}

/* Returns true if i reduces the rows of `full` with the reducer `how`. */
static bool reduces(const hlo_row_space *s, const hlo_instr *i, hlo_reducer how, hlo_value full) {
  return i->op == HLO_REDUCE && hlo_int(i, HLO_ATTR_REDUCER) == how && hlo_reduces_rows(s, i) &&
         hlo_value_equal(hlo_before_reshapes(i->operands[0]), hlo_before_reshapes(full));
}

const hlo_instr *hlo_maximum_subtracted(const hlo_row_space *s, const hlo_instr *i) {
  const hlo_instr *max = i->op == HLO_SUB ? repeated(s, i->operands[1]) : NULL;
  /* Before max is known, i may be an instruction without operands. */
  return max && reduces(s, max, HLO_REDUCE_MAX, i->operands[0]) ? max : NULL;
}

bool hlo_is_softmax_exponential(const hlo_row_space *s, const hlo_instr *i) {
  return i->op == HLO_EXP && hlo_maximum_subtracted(s, hlo_before_reshapes(i->operands[0]).def);
}

static bool is_sum_of_exponentials(const hlo_row_space *s, const hlo_instr *i) {
  return i && i->op == HLO_REDUCE && reduces(s, i, HLO_REDUCE_ADD, i->operands[0]) &&
         hlo_is_softmax_exponential(s, hlo_before_reshapes(i->operands[0]).def);
}

bool hlo_is_softmax_quotient(const hlo_row_space *s, const hlo_instr *i) {
  const hlo_instr *sum = i->op == HLO_DIV ? repeated(s, i->operands[1]) : NULL;
  return is_sum_of_exponentials(s, sum) && reduces(s, sum, HLO_REDUCE_ADD, i->operands[0]);
}

/* Returns true if i is (x - m) - log s, where `shifted` is x - m. */
static bool is_logarithm(const hlo_row_space *s, const hlo_instr *i, const hlo_instr *shifted) {
  const hlo_instr *log =
      i->op == HLO_SUB && hlo_before_reshapes(i->operands[0]).def == shifted ? repeated(s, i->operands[1]) : NULL;
  const hlo_instr *sum = log && log->op == HLO_LOG ? hlo_before_reshapes(log->operands[0]).def : NULL;
  return is_sum_of_exponentials(s, sum) &&
         hlo_before_reshapes(hlo_before_reshapes(sum->operands[0]).def->operands[0]).def == shifted;
}

typedef struct user_check {
  const hlo_row_space *space;
  const hlo_instr *of; /* the instruction whose users are checked; reshapes of it count as itself */
  /* Returns true if the user may use the instruction. */
  bool (*allows)(const struct user_check *c, const hlo_instr *user);
} user_check;

/* Returns true if c->allows returns true for all users of i, and if i is no root. */
static bool all_users(const user_check *c, const hlo_instr *i) {
  for (uint32_t k = 0; k < i->n_uses; k++) {
    const hlo_instr *user = i->uses[k].user;
    if (user->op == HLO_RESHAPE ? !all_users(c, user) : !c->allows(c, user)) {
      return false;
    }
  }
  return !hlo_is_root(hlo_result((hlo_instr *)i, 0));
}

static bool sums_or_divides(const user_check *c, const hlo_instr *user) {
  return user->op == HLO_REDUCE ? is_sum_of_exponentials(c->space, user) : hlo_is_softmax_quotient(c->space, user);
}

static bool raises_or_takes_logarithm(const user_check *c, const hlo_instr *user) {
  if (is_logarithm(c->space, user, c->of)) {
    return true;
  }
  user_check exponential = {c->space, user, sums_or_divides};
  return user->op == HLO_EXP && all_users(&exponential, user);
}

static bool subtracts(const user_check *c, const hlo_instr *user) {
  user_check shifted = {c->space, user, raises_or_takes_logarithm};
  return hlo_maximum_subtracted(c->space, user) && all_users(&shifted, user);
}

static bool repeats(const user_check *c, const hlo_instr *user) {
  user_check repeated = {c->space, user, subtracts};
  return user->op == HLO_BROADCAST && all_users(&repeated, user);
}

bool hlo_maximum_may_ignore_nan(const hlo_row_space *s, const hlo_instr *max) {
  user_check c = {s, max, repeats};
  return all_users(&c, max);
}
