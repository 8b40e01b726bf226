/* schedule.c - list scheduling for low peak memory; see schedule.h. */
#include "hlo/schedule/schedule.h"

#include <string.h>

/* With more ready instructions than this, the given order is kept, since choosing takes quadratic time. */
enum { READY_MAX = 512 };

typedef struct order {
  hlo_instr **items;
  uint32_t n;
} order;

typedef struct scheduler {
  const hlo_computation *c;
  uint32_t *pending;   /* for each instruction id: the number of operands that have not run */
  uint32_t *uses_left; /* for each instruction id: the number of uses of its results that have not run */
  hlo_instr **ready;
  uint32_t n_ready;
} scheduler;

/* Returns true if the results of i are in the arena; constants and parameters are elsewhere. */
static bool takes_memory(const hlo_instr *i) { return i->op != HLO_CONSTANT && i->op != HLO_PARAMETER; }

static void count_uses(const hlo_computation *c, uint32_t *uses) {
  for (const hlo_instr *i = c->first; i; i = i->next) {
    uses[i->id] = i->n_uses;
  }
  for (uint32_t k = 0; k < c->n_roots; k++) {
    uses[c->roots[k].def->id]++;
  }
}

/* Returns by how many bytes running `i` increases the live memory: its results minus the operands that are not used
 * any more. */
static int64_t growth(const hlo_instr *i, const uint32_t *uses_left) {
  int64_t bytes = takes_memory(i) ? hlo_expected_bytes(i) : 0;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    const hlo_instr *def = i->operands[k].def;
    uint32_t mine = 0, seen = 0;
    for (uint32_t j = 0; j < i->n_operands; j++) {
      mine += i->operands[j].def == def;
      seen += j < k && i->operands[j].def == def;
    }
    if (!seen && mine == uses_left[def->id] && takes_memory(def)) {
      bytes -= hlo_expected_bytes(def);
    }
  }
  return bytes;
}

static int64_t peak_of(const hlo_computation *c, const order *o, uint32_t *uses_left) {
  int64_t live = 0, peak = 0;
  count_uses(c, uses_left);
  for (uint32_t n = 0; n < o->n; n++) {
    hlo_instr *i = o->items[n];
    int64_t during = live + (takes_memory(i) ? hlo_expected_bytes(i) : 0);
    peak = during > peak ? during : peak;
    live += growth(i, uses_left);
    for (uint32_t k = 0; k < i->n_operands; k++) {
      uses_left[i->operands[k].def->id]--;
    }
  }
  return peak;
}

/* Returns the ready instruction that increases the live memory least; of equal ones, the first in the given order. */
static uint32_t choose(const scheduler *s) {
  uint32_t best = 0;
  int64_t least = INT64_MAX;
  for (uint32_t k = 0; k < s->n_ready; k++) {
    int64_t g = growth(s->ready[k], s->uses_left);
    if (g < least || (g == least && s->ready[k]->id < s->ready[best]->id)) {
      least = g;
      best = k;
    }
  }
  return best;
}

static bool list_schedule(arena *a, const hlo_computation *c, order *out) {
  scheduler s = {.c = c,
                 .pending = ARENA_NEW_N(a, uint32_t, c->n_ids),
                 .uses_left = ARENA_NEW_N(a, uint32_t, c->n_ids),
                 .ready = ARENA_NEW_N(a, hlo_instr *, c->n_ids)};
  count_uses(c, s.uses_left);
  for (hlo_instr *i = c->first; i; i = i->next) {
    s.pending[i->id] = i->n_operands;
    if (!i->n_operands) {
      if (!takes_memory(i)) {
        out->items[out->n++] = i; /* parameters must come first, and constants may */
      } else {
        s.ready[s.n_ready++] = i;
      }
    }
  }
  for (uint32_t done = 0;; done++) {
    if (done >= out->n) {
      if (!s.n_ready) {
        return out->n == c->n_ids;
      }
      uint32_t best = choose(&s);
      out->items[out->n++] = s.ready[best];
      s.ready[best] = s.ready[--s.n_ready];
    }
    hlo_instr *i = out->items[done];
    for (uint32_t k = 0; k < i->n_operands; k++) {
      s.uses_left[i->operands[k].def->id]--;
    }
    for (uint32_t k = 0; k < i->n_uses; k++) {
      if (--s.pending[i->uses[k].user->id] == 0) {
        s.ready[s.n_ready++] = i->uses[k].user;
      }
    }
    if (s.n_ready > READY_MAX) {
      return false;
    }
  }
}

static void relink(hlo_computation *c, const order *o) {
  c->first = c->last = NULL;
  for (uint32_t k = 0; k < o->n; k++) {
    hlo_instr *i = o->items[k];
    i->prev = c->last;
    i->next = NULL;
    *(c->last ? &c->last->next : &c->first) = i;
    c->last = i;
  }
}

static void schedule_computation(arena *scratch, hlo_computation *c) {
  hlo_number(c);
  order given = {ARENA_NEW_N(scratch, hlo_instr *, c->n_ids), 0};
  order listed = {ARENA_NEW_N(scratch, hlo_instr *, c->n_ids), 0};
  uint32_t *uses = ARENA_NEW_N(scratch, uint32_t, c->n_ids);
  for (hlo_instr *i = c->first; i; i = i->next) {
    given.items[given.n++] = i;
  }
  if (list_schedule(scratch, c, &listed) && peak_of(c, &listed, uses) < peak_of(c, &given, uses)) {
    relink(c, &listed);
    hlo_number(c);
  }
}

status hlo_schedule(hlo_module *m) {
  for (uint32_t k = 0; k < m->n_computations; k++) {
    schedule_computation(m->arena, m->computations[k]);
  }
  return NULL;
}
