/* cse.c - common subexpression elimination: of equal instructions, the first one is kept.
 *
 * Requires: nothing.  Keeps: results, bit for bit.  Breaks: nothing; an instruction that equals an earlier one is
 * removed at once.  Two instructions of one computation are equal if they have the same operation, attributes, result
 * shapes and operands (in any order if the operation is commutative), the same config, and no effects.  Called
 * computations must be the same computation.  Of equal checks the first one is kept, too: where it fails, the run ends,
 * so that the others never fail. */
#include "hlo/passes/rewrite.h"

#include "base/hash.h"

static uint64_t value_key(hlo_value v) { return (uint64_t)v.def->id << 32 | v.index; }

static bool is_commutative(const hlo_instr *i) { return (hlo_info(i)->flags & HLO_COMM) && i->n_operands == 2; }

static uint64_t key_of(const hlo_instr *i) {
  uint64_t h = hlo_operation_hash(i);
  if (is_commutative(i)) {
    uint64_t x = value_key(i->operands[0]), y = value_key(i->operands[1]);
    return hash_mix(hash_mix(h, x < y ? x : y), x < y ? y : x);
  }
  for (uint32_t k = 0; k < i->n_operands; k++) {
    h = hash_mix(h, value_key(i->operands[k]));
  }
  return h;
}

static bool same_operands(const hlo_instr *a, const hlo_instr *b) {
  bool equal = true;
  for (uint32_t k = 0; k < a->n_operands && equal; k++) {
    equal = hlo_value_equal(a->operands[k], b->operands[k]);
  }
  return equal || (is_commutative(a) && hlo_value_equal(a->operands[0], b->operands[1]) &&
                   hlo_value_equal(a->operands[1], b->operands[0]));
}

/* A hash table with open addressing and linear probing; entries are never removed. */
typedef struct table {
  struct {
    uint64_t key;
    hlo_instr *instr; /* NULL means that the slot is free */
  } * slots;
  uint64_t mask;
} table;

/* Returns the instruction in the table that is equal to i.  If there is none, adds i and returns it. */
static hlo_instr *find_or_put(table *t, hlo_instr *i) {
  uint64_t key = key_of(i);
  for (uint64_t at = key & t->mask;; at = (at + 1) & t->mask) {
    if (!t->slots[at].instr) {
      t->slots[at].key = key;
      t->slots[at].instr = i;
      return i;
    }
    hlo_instr *other = t->slots[at].instr;
    if (t->slots[at].key == key && hlo_same_operation(other, i) && same_operands(other, i)) {
      return other;
    }
  }
}

static status merge_equal(hlo_computation *c, arena *scratch, bool *changed) {
  enum { CHECK_EVERY = 1024 };
  hlo_number(c);
  table t = {.mask = 15};
  while (t.mask < 2 * (uint64_t)c->n_ids) {
    t.mask = t.mask * 2 + 1;
  }
  t.slots = arena_calloc(scratch, t.mask + 1, sizeof *t.slots);
  HLO_FOR_EACH(i, c) {
    if (i->id % CHECK_EVERY == 0) {
      TRY(budget_check(arena_budget(scratch)));
    }
    if (i->op == HLO_PARAMETER || (hlo_has_effect(i) && i->op != HLO_CHECK)) {
      continue;
    }
    hlo_instr *first = find_or_put(&t, i);
    if (first == i) {
      continue;
    }
    for (uint32_t k = 0; k < i->n_results; k++) {
      hlo_replace(hlo_result(i, k), hlo_result(first, k));
    }
    hlo_remove(i);
    *changed = true;
  }
  return NULL;
}

status pass_cse(hlo_module *m, pass_context *c, bool *changed) {
  uint32_t n;
  hlo_computation **walked = hlo_walked(m, c->scratch, true, &n);
  for (uint32_t k = 0; k < n; k++) {
    TRY(merge_equal(walked[k], c->scratch, changed));
  }
  return NULL;
}
