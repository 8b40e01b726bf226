/* pattern.c - see pattern.h.  The matcher keeps a list of goals, which are values still to be matched.  Each step takes
 * the first goal, makes a choice, and calls itself with what is left to do then; if that fails, the step undoes its
 * choice and makes the next one.  So every choice is tried together with everything that comes after it. */
#include "hlo/analysis/pattern.h"

typedef struct goal goal;
struct goal {
  hlo_value v;
  const hlo_pattern *p;
  const goal *next;
};

static bool reach(const goal *g, hlo_matched *m);

/* Matches v with p, and then the goals from `next` on. */
static bool reach_one(hlo_value v, const hlo_pattern *p, const goal *next, hlo_matched *m) {
  return reach(&(goal){v, p, next}, m);
}

static bool reach_captured(const goal *g, hlo_matched *m) {
  hlo_value before = *g->p->value;
  *g->p->value = g->v;
  if (reach_one(g->v, g->p->of[0], g->next, m)) {
    return true;
  }
  *g->p->value = before;
  return false;
}

/* Matches the operands of g->v, or if `swapped` the operands from last to first, with the patterns inside of g->p. */
static bool reach_operands(const goal *g, bool swapped, hlo_matched *m) {
  const hlo_instr *i = g->v.def;
  const goal *first = g->next;
  goal operands[HLO_PATTERN_OPERANDS];
  for (uint32_t k = i->n_operands; k-- > 0;) {
    operands[k] = (goal){i->operands[swapped ? i->n_operands - 1 - k : k], g->p->of[k], first};
    first = &operands[k];
  }
  return reach(first, m);
}

/* Returns true if v is a result of the pattern's operation, with as many operands as the pattern has. */
static bool is_operation(hlo_value v, const hlo_pattern *p) {
  uint32_t n = 0;
  while (n < HLO_PATTERN_OPERANDS && p->of[n]) {
    n++;
  }
  return (int)v.def->op == p->number && v.def->n_operands == n;
}

/* Adds i to the list m of matched instructions, if m is not NULL.  Returns false if the list is full. */
static bool list(hlo_instr *i, hlo_matched *m) {
  if (m && m->n == HLO_MATCHED_MOST) {
    return false;
  }
  if (m) {
    m->list[m->n++] = i;
  }
  return true;
}

static bool reach_operation(const goal *g, hlo_matched *m) {
  bool commutes = g->p->kind == HLO_PATTERN_COMMUTE;
  return is_operation(g->v, g->p) && list(g->v.def, m) &&
         (reach_operands(g, false, m) || (commutes && reach_operands(g, true, m)));
}

static bool reach_behind(const goal *g, hlo_matched *m) {
  hlo_value v = g->v;
  for (uint32_t k = 0; k < g->p->most && (int)v.def->op == g->p->number; k++) {
    if (!list(v.def, m)) {
      return false;
    }
    v = v.def->operands[0];
  }
  return reach_one(v, g->p->of[0], g->next, m);
}

static bool reach_first(const goal *g, hlo_matched *m) {
  hlo_value v = g->v;
  const hlo_pattern *p = g->p;
  switch (p->kind) {
    case HLO_PATTERN_ANY: return reach(g->next, m);
    case HLO_PATTERN_AS: return reach_captured(g, m);
    case HLO_PATTERN_SAME: return hlo_value_equal(v, *p->value) && reach(g->next, m);
    case HLO_PATTERN_OP:
    case HLO_PATTERN_COMMUTE: return reach_operation(g, m);
    case HLO_PATTERN_EITHER: return reach_one(v, p->of[0], g->next, m) || reach_one(v, p->of[1], g->next, m);
    case HLO_PATTERN_BEHIND: return reach_behind(g, m);
    case HLO_PATTERN_ONCE: return hlo_used_once(v) && reach_one(v, p->of[0], g->next, m);
    case HLO_PATTERN_TYPE: return (int)hlo_type(v) == p->number && reach_one(v, p->of[0], g->next, m);
    case HLO_PATTERN_IF: return p->test(v, p->data) && reach(g->next, m);
  }
  return false;
}

/* Matches all goals from g on.  If that fails, the instructions that this has added to the list m are removed again. */
static bool reach(const goal *g, hlo_matched *m) {
  uint32_t n = m ? m->n : 0;
  if (!g || reach_first(g, m)) {
    return true;
  }
  if (m) {
    m->n = n;
  }
  return false;
}

bool hlo_match(hlo_value v, const hlo_pattern *p) { return reach_one(v, p, NULL, NULL); }

bool hlo_match_listed(hlo_value v, const hlo_pattern *p, hlo_matched *out) {
  out->n = 0;
  return reach_one(v, p, NULL, out);
}
