/* concurrent_groups.c - see concurrent_groups.h.
 *
 * The search is greedy and follows the schedule.  An instruction is grouped with those among the next WINDOW
 * instructions that depend only on instructions before the group, if this is faster according to the estimated times.
 * Kernels are grouped with kernels, loops and conditionals with loops and conditionals.  The result of an instruction
 * that is moved to an earlier place lives longer, so it must be small. */
#include "lower/concurrent_groups.h"

#include "hlo/ir/ir.h"

enum {
  WINDOW = 64,
  MOST = 32,                 /* the largest number of members of a group */
  DEPTH = 4,                 /* how many levels of operands are moved to an earlier place together with a member */
  FAR_BYTES = 1 << 18,       /* the largest result of an instruction that is moved to an earlier place */
  LONG_NANOSECONDS = 200000, /* longer kernels join no group, since they use all threads well by themselves */
  ROUNDS = 8                 /* the number of iterations that is assumed for each loop */
};

/* The state of the search.  Arrays are indexed by instruction id.  times[] is valid where is_known[] is true; done[] is
 * true for instructions before the group that is being made. */
typedef struct search {
  const lower_backend *backend;
  hlo_computation *c;
  lower_time *times;
  bool *is_known, *done, *is_member; /* is_member: whether the instruction is in the group that is being made */
} search;

/* Returns true if the instruction has no thunk: a parameter, a constant or a view. */
static bool is_free(const lower_backend *b, const hlo_instr *i) {
  return i->op == HLO_PARAMETER || i->op == HLO_CONSTANT || (b->is_view && b->is_view(i));
}

static lower_time time_of(const lower_backend *b, const hlo_instr *i);

static lower_time add(lower_time x, lower_time y) {
  return y.serial < 0 ? y : (lower_time){x.serial + y.serial, x.alone + y.alone};
}

static lower_time time_of_body(const lower_backend *b, const hlo_computation *body) {
  lower_time sum = {0, 0};
  for (const hlo_instr *i = body->first; i && sum.serial >= 0; i = i->next) {
    sum = is_free(b, i) ? sum : add(sum, time_of(b, i));
  }
  return sum;
}

/* Returns the estimated time of an instruction.  For a conditional it is the time of the branch that takes longest, for
 * a loop that of ROUNDS iterations. */
static lower_time time_of(const lower_backend *b, const hlo_instr *i) {
  lower_time sum = {0, 0};
  if (!hlo_is_control(i)) {
    return b->time(b->data, i);
  }
  for (uint32_t k = 0; k < hlo_n_callees(i) && sum.serial >= 0; k++) {
    lower_time body = time_of_body(b, hlo_callee(i, k));
    sum = i->op == HLO_WHILE ? add(sum, body) : body.serial < 0 || body.serial > sum.serial ? body : sum;
  }
  return i->op == HLO_WHILE && sum.serial >= 0 ? (lower_time){ROUNDS * sum.serial, ROUNDS * sum.alone} : sum;
}

/* --- groups --- */

static bool is_small(const hlo_instr *i) { return hlo_expected_bytes(i) <= FAR_BYTES; }

/* Returns true if all operands of `i` are computed before the group, or can be moved before it.  Views and constants
 * can be moved.  If `computes`, which means that the group consists of control flow, other instructions that are not
 * control flow can be moved as well if their results are small. */
static bool is_ready(const search *s, const hlo_instr *i, bool computes, int depth) {
  for (uint32_t k = 0; k < i->n_operands; k++) {
    const hlo_instr *def = i->operands[k].def;
    bool comes =
        !s->is_member[def->id] && (is_free(s->backend, def) || (computes && !hlo_is_control(def) && is_small(def)));
    if (!s->done[def->id] && !(comes && depth > 0 && is_ready(s, def, computes, depth - 1))) {
      return false;
    }
  }
  return true;
}

static bool is_candidate(const search *s, const hlo_instr *i, lower_time *e) {
  if (!s->is_known[i->id]) {
    s->is_known[i->id] = true;
    s->times[i->id] = time_of(s->backend, i);
  }
  *e = s->times[i->id];
  return e->serial > 0 && (hlo_is_control(i) || e->serial < LONG_NANOSECONDS);
}

/* Moves `i`, which is somewhere after `at`, to directly before `at`. */
static void move_before(hlo_computation *c, hlo_instr *at, hlo_instr *i) {
  i->prev->next = i->next;
  *(i->next ? &i->next->prev : &c->last) = i->prev;
  i->prev = at->prev;
  i->next = at;
  *(at->prev ? &at->prev->next : &c->first) = i;
  at->prev = i;
}

/* Moves the operands of `i` that are not computed before the group, and their operands, to before `at`. */
static void bring_operands(const search *s, hlo_instr *at, const hlo_instr *i) {
  for (uint32_t k = 0; k < i->n_operands; k++) {
    hlo_instr *def = i->operands[k].def;
    if (!s->done[def->id]) {
      bring_operands(s, at, def);
      move_before(s->c, at, def);
      s->done[def->id] = true;
    }
  }
}

/* Finds the members of the group that begins with `first`.  Sets members[] and returns their number.  Returns 1 if a
 * group would not be faster. */
static uint32_t find_members(const search *s, hlo_instr *first, hlo_instr **members) {
  lower_time e;
  uint32_t n = 0;
  double sum = 0, longest = 0, one_by_one = 0;
  bool near = true; /* whether all instructions from `first` to `i` are members or have no thunk; then `i` hardly moves,
                       and its result may be large */
  hlo_instr *i = first;
  for (int k = 0; i && k < WINDOW && n < MOST; k++, i = i->next) {
    if (is_free(s->backend, i)) {
      continue;
    }
    bool alike = hlo_is_control(i) == hlo_is_control(first);
    if (!alike || !(near || is_small(i)) || !is_ready(s, i, hlo_is_control(first), DEPTH) || !is_candidate(s, i, &e)) {
      near = false;
      if (!n) {
        return 1;
      }
      continue;
    }
    s->is_member[i->id] = true;
    members[n++] = i;
    sum += e.serial;
    longest = e.serial > longest ? e.serial : longest;
    one_by_one += e.alone;
  }
  double threads = n < s->backend->threads ? n : s->backend->threads, shared = n ? sum / threads : 0;
  const double worth = 0.9; /* the group must need less than this part of the time, since times are estimates */
  bool pays = n > 1 && (shared > longest ? shared : longest) + LOWER_FORK_NANOSECONDS < worth * one_by_one;
  for (uint32_t k = 0; k < n && !pays; k++) {
    s->is_member[members[k]->id] = false;
  }
  return pays ? n : 1;
}

static void group(const lower_backend *b, hlo_computation *c) {
  hlo_number(c);
  arena *a = c->module->arena;
  search s = {.backend = b,
              .c = c,
              .times = ARENA_NEW_N(a, lower_time, c->n_ids),
              .is_known = ARENA_NEW_N(a, bool, c->n_ids),
              .done = ARENA_NEW_N(a, bool, c->n_ids),
              .is_member = ARENA_NEW_N(a, bool, c->n_ids)};
  for (hlo_instr *i = c->first; i; i = i->next) {
    hlo_instr *members[MOST] = {i}, *last = i;
    uint32_t n = is_free(b, i) ? 1 : find_members(&s, i, members);
    for (uint32_t k = 1; k < n; k++, last = last->next) {
      bring_operands(&s, i, members[k]);
      if (last->next != members[k]) {
        move_before(c, last->next, members[k]);
      }
      members[k]->concurrent = true;
    }
    for (uint32_t k = 0; k < n; k++) {
      s.done[members[k]->id] = true;
    }
    i = last;
  }
}

static void group_all(const lower_backend *b, hlo_computation *c) {
  for (hlo_instr *i = c->first; i; i = i->next) {
    for (uint32_t k = 0; hlo_is_control(i) && k < hlo_n_callees(i); k++) {
      group_all(b, hlo_callee(i, k));
    }
  }
  group(b, c);
}

void lower_concurrent_groups(hlo_module *m, const lower_backend *b) {
  if (b->time && b->threads > 1) {
    group_all(b, m->entry);
  }
}
