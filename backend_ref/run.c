/* run.c - runs computations, whose values are numbered beforehand in a plan, and frees the memory of values after their
 * last use. */
#include <assert.h>
#include <string.h>

#include "backend_ref/ref.h"

/* The largest depth of nested computations.  No real model is as deep; deeper ones would use up the stack. */
enum { MAX_DEPTH = 200 };

struct ref_slot {
  arena *memory;
  uint32_t refs;
  ref_slot *prev, *next; /* links in the list of live slots; `next` also in the list of free slots */
};

/* A computation with its values numbered.  It is made once per pool, since loops run it often. */
typedef struct plan {
  const hlo_computation *c;
  uint32_t n_values, n_steps, max_operands;
  const hlo_instr **steps;
  uint32_t *results;  /* for each step, the number of its first result */
  uint32_t *operands; /* the value numbers of all steps' operands, one after the other */
  uint32_t *uses;     /* for each value, how often it is used, including as a root */
  uint32_t *roots;
  struct plan *next;
} plan;

struct ref_pool {
  arena *home;
  ref_slot *live, *free;
  plan *plans;
  int depth;
};

/* --- slots --- */

static void destroy_pool(void *data) {
  ref_pool *p = data;
  for (ref_slot *s = p->live; s; s = s->next) {
    arena_destroy(s->memory);
  }
  p->live = NULL;
}

ref_pool *ref_pool_create(arena *home) {
  ref_pool *p = ARENA_NEW(home, ref_pool);
  p->home = home;
  arena_cleanup(home, destroy_pool, p);
  return p;
}

/* Returns a slot with one reference and an empty arena. */
static ref_slot *take_slot(ref_pool *p) {
  ref_slot *s = p->free;
  if (s) {
    p->free = s->next;
  } else {
    s = ARENA_NEW(p->home, ref_slot);
  }
  s->memory = arena_create(arena_budget(p->home));
  s->refs = 1;
  s->prev = NULL;
  s->next = p->live;
  if (p->live) {
    p->live->prev = s;
  }
  p->live = s;
  return s;
}

ref_slot *ref_slot_retain(ref_slot *s) {
  if (s) {
    s->refs++;
  }
  return s;
}

void ref_slot_release(ref_pool *p, ref_slot *s) {
  if (!s || --s->refs) {
    return;
  }
  arena_destroy(s->memory);
  s->memory = NULL;
  *(s->prev ? &s->prev->next : &p->live) = s->next;
  if (s->next) {
    s->next->prev = s->prev;
  }
  s->next = p->free;
  p->free = s;
}

/* --- plans --- */

/* Returns the number of instructions, sets *n_operands to the number of all their operands, and sets the ids of the
 * instructions to 0, 1, 2, ...  If they have these ids already, no id is written, so that several threads may run the
 * same module. */
static uint32_t number(const hlo_computation *c, uint32_t *n_operands) {
  uint32_t n = 0;
  bool dense = true;
  *n_operands = 0;
  for (const hlo_instr *i = c->first; i; i = i->next) {
    dense = dense && i->id == n;
    n++;
    *n_operands += i->n_operands;
  }
  if (!dense) {
    hlo_number((hlo_computation *)c);
  }
  return n;
}

static plan *make_plan(ref_pool *p, const hlo_computation *c) {
  uint32_t n_operands, n = number(c, &n_operands), at = 0;
  plan *r = ARENA_NEW(p->home, plan);
  r->c = c;
  r->n_steps = n;
  r->steps = ARENA_NEW_N(p->home, const hlo_instr *, n);
  r->results = ARENA_NEW_N(p->home, uint32_t, n);
  r->operands = ARENA_NEW_N(p->home, uint32_t, n_operands);
  r->roots = ARENA_NEW_N(p->home, uint32_t, c->n_roots);
  for (const hlo_instr *i = c->first; i; i = i->next) {
    r->steps[i->id] = i;
    r->results[i->id] = r->n_values;
    r->n_values += i->n_results;
    r->max_operands = i->n_operands > r->max_operands ? i->n_operands : r->max_operands;
  }
  r->uses = ARENA_NEW_N(p->home, uint32_t, r->n_values);
  for (uint32_t s = 0; s < n; s++) {
    for (uint32_t k = 0; k < r->steps[s]->n_operands; k++) {
      hlo_value v = r->steps[s]->operands[k];
      r->operands[at] = r->results[v.def->id] + v.index;
      r->uses[r->operands[at++]]++;
    }
  }
  for (uint32_t k = 0; k < c->n_roots; k++) {
    r->roots[k] = r->results[c->roots[k].def->id] + c->roots[k].index;
    r->uses[r->roots[k]]++;
  }
  r->next = p->plans;
  p->plans = r;
  return r;
}

static plan *find_plan(ref_pool *p, const hlo_computation *c) {
  for (plan *r = p->plans; r; r = r->next) {
    if (r->c == c) {
      return r;
    }
  }
  return make_plan(p, c);
}

/* --- running computations --- */

typedef struct frame {
  ref_pool *pool;
  const plan *plan;
  literal *values, *in;
  ref_slot **slots, **in_slots;
  uint32_t *uses; /* for each value, the number of uses that are still to come */
} frame;

static frame make_frame(ref_pool *p, const plan *r, arena *a) {
  frame f = {.pool = p, .plan = r};
  f.values = ARENA_NEW_N(a, literal, r->n_values);
  f.slots = ARENA_NEW_N(a, ref_slot *, r->n_values);
  f.in = ARENA_NEW_N(a, literal, r->max_operands);
  f.in_slots = ARENA_NEW_N(a, ref_slot *, r->max_operands);
  f.uses = arena_memdup(a, r->uses, r->n_values * sizeof *r->uses);
  return f;
}

static void drop_value(frame *f, uint32_t v) {
  ref_slot_release(f->pool, f->slots[v]);
  f->slots[v] = NULL;
}

/* Evaluates one instruction into values[result...].  Results that do not share an operand's memory get memory of their
 * own. */
static status run_step(frame *f, const hlo_instr *i, uint32_t result) {
  ref_slot *own = take_slot(f->pool);
  ref_call call = {.i = i,
                   .in = f->in,
                   .in_slots = f->in_slots,
                   .out = &f->values[result],
                   .out_slots = &f->slots[result],
                   .a = own->memory,
                   .pool = f->pool};
  TRY(budget_check(arena_budget(f->pool->home)));
  TRY(ref_run_op(&call));
  for (uint32_t k = 0; k < i->n_results; k++) {
    if (!call.out_slots[k]) {
      call.out_slots[k] = ref_slot_retain(own);
    }
  }
  ref_slot_release(f->pool, own);
  return NULL;
}

static status run_steps(frame *f) {
  const plan *r = f->plan;
  const uint32_t *operands = r->operands;
  for (uint32_t s = 0; s < r->n_steps; s++) {
    const hlo_instr *i = r->steps[s];
    for (uint32_t k = 0; k < i->n_operands; k++) {
      f->in[k] = f->values[operands[k]];
      f->in_slots[k] = f->slots[operands[k]];
    }
    if (i->op == HLO_CONSTANT && literal_is_aligned(hlo_literal(hlo_result((hlo_instr *)i, 0)))) {
      f->values[r->results[s]] = *hlo_literal(hlo_result((hlo_instr *)i, 0));
    } else if (i->op != HLO_PARAMETER) {
      status failed = run_step(f, i, r->results[s]);
      if (failed) {
        return i->source[0] ? status_prefix(failed, "%s", i->source) : failed;
      }
    }
    for (uint32_t k = 0; k < i->n_operands; k++) {
      if (--f->uses[operands[k]] == 0) {
        drop_value(f, operands[k]);
      }
    }
    for (uint32_t k = 0; k < i->n_results; k++) {
      if (f->uses[r->results[s] + k] == 0) {
        drop_value(f, r->results[s] + k);
      }
    }
    operands += i->n_operands;
  }
  return NULL;
}

status ref_run(ref_pool *p, const hlo_computation *c, const literal *args, ref_slot *const *arg_slots, literal *roots,
               ref_slot **root_slots) {
  CHECK_THAT(p->depth < MAX_DEPTH, STATUS_RESOURCE, "%s: computations are nested too deeply", c->name);
  p->depth++;
  const plan *r = find_plan(p, c);
  ref_slot *memory = take_slot(p);
  frame f = make_frame(p, r, memory->memory);
  for (uint32_t k = 0; k < c->n_params; k++) {
    uint32_t v = r->results[c->params[k]->id];
    f.values[v] = args[k];
    f.slots[v] = arg_slots ? ref_slot_retain(arg_slots[k]) : NULL;
  }
  TRY(run_steps(&f));
  for (uint32_t k = 0; k < c->n_roots; k++) {
    roots[k] = f.values[r->roots[k]];
    root_slots[k] = ref_slot_retain(f.slots[r->roots[k]]);
  }
  for (uint32_t k = 0; k < c->n_roots; k++) {
    if (--f.uses[r->roots[k]] == 0) {
      drop_value(&f, r->roots[k]);
    }
  }
  ref_slot_release(p, memory);
  p->depth--;
  return NULL;
}
