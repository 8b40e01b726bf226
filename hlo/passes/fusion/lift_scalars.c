/* lift_scalars.c - scalar constants in which fusions differ become operands, so that the fusions are equal and one
 * kernel serves them all.  Such constants are the scales of quantised arrays and learned factors and shifts of
 * activations.
 *
 * Requires: fusions that no later pass changes.  Keeps: results, bit for bit.  Breaks: nothing.  Only modules with
 * symbolic dimensions are changed: all their kernels are compiled before the first run, so that fewer kernels let it
 * start sooner.  In a module of constant sizes the constants stay, since a library may be able to compute a fusion only
 * if it knows them. */
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "hlo/ir/bind.h"
#include "hlo/passes/fusion/fuse.h"

/* The limit of the number of candidates, since all are compared with each other. */
enum { MOST_CANDIDATES = 4096 };

/* A fusion and the scalars of its body that may become operands, in the order of the body. */
typedef struct candidate {
  hlo_instr *fusion;
  uint64_t key; /* equal for fusions that differ only in the values of these scalars */
  uint32_t n;
  hlo_instr **scalars;
  bool done;
} candidate;

typedef struct candidates {
  candidate *of;
  uint32_t n, cap;
} candidates;

/* Returns true if `user` adds, subtracts or multiplies by v.  The code for this is the same whether v is a constant or
 * an operand.  An exception, for which the function returns false, is the zero point that is added to a rounded number
 * (emit/element/quantize.c). */
static bool is_arithmetic(const hlo_instr *user, hlo_value v) {
  if (user->op != HLO_ADD && user->op != HLO_SUB && user->op != HLO_MUL) {
    return false;
  }
  return user->operands[hlo_value_equal(user->operands[0], v)].def->op != HLO_ROUND;
}

static bool all_uses_are_arithmetic(hlo_instr *i) {
  hlo_value v = hlo_result(i, 0);
  bool all = !hlo_is_root(v);
  for (uint32_t k = 0; all && k < i->n_uses; k++) {
    hlo_instr *user = i->uses[k].user;
    all = is_arithmetic(user, v) || (user->op == HLO_BROADCAST && hlo_rank(v) == 0 && all_uses_are_arithmetic(user));
  }
  return all;
}

static bool may_lift(hlo_instr *i) {
  return i->op == HLO_CONSTANT && i->shapes[0].rank == 0 && dtype_is_float((dtype)i->shapes[0].type) &&
         all_uses_are_arithmetic(i);
}

/* Returns a hash in which all symbolic dimensions are equal, since kernels take them as arguments. */
static uint64_t shape_key(uint64_t h, const shape *s) {
  h = hash_mix(h, (uint64_t)s->type << 8 | s->rank);
  for (int k = 0; k < s->rank; k++) {
    h = hash_mix(h, dim_is_const(s->dims[k]) ? (uint64_t)s->dims[k] : UINT64_MAX);
  }
  return h;
}

static candidate examine(hlo_instr *fusion, arena *scratch) {
  hlo_computation *body = hlo_callee(fusion, 0);
  candidate c = {.fusion = fusion, .key = hash_mix(hash_seed(), (uint64_t)hlo_int(fusion, HLO_ATTR_FUSION))};
  uint32_t cap = 0;
  hlo_number(body);
  for (hlo_instr *i = body->first; i; i = i->next) {
    bool lifts = may_lift(i);
    c.key = hash_mix(c.key, i->op);
    for (uint32_t k = 0; k < i->n_operands; k++) {
      c.key = hash_mix(c.key, (uint64_t)i->operands[k].def->id << 32 | i->operands[k].index);
    }
    for (uint32_t k = 0; k < i->n_results; k++) {
      c.key = shape_key(c.key, &i->shapes[k]);
    }
    if (lifts) {
      *ARENA_PUSH(scratch, c.scalars, c.n, cap) = i;
    } else {
      c.key = hlo_attrs_hash(c.key, i);
    }
  }
  return c;
}

static void collect(hlo_computation *c, arena *scratch, candidates *out) {
  for (hlo_instr *i = c->first; i; i = i->next) {
    if (i->op != HLO_FUSION || hlo_int(i, HLO_ATTR_FUSION) == HLO_FUSION_ATTENTION) {
      continue; /* the kernels of attention take the operands that pass attention has found */
    }
    bool shared = false; /* whether another fusion has the same body */
    for (uint32_t k = 0; k < out->n; k++) {
      bool same = hlo_callee(out->of[k].fusion, 0) == hlo_callee(i, 0);
      out->of[k].n = same ? 0 : out->of[k].n; /* nothing may be lifted out of a body that both call */
      shared = shared || same;
    }
    if (shared || out->n == MOST_CANDIDATES) {
      continue;
    }
    candidate x = examine(i, scratch);
    if (x.n && i->n_operands + x.n <= FUSE_MAX_OPERANDS) {
      *ARENA_PUSH(scratch, out->of, out->n, out->cap) = x;
    }
  }
}

static bool same_number(const hlo_instr *a, const hlo_instr *b) {
  const literal *x = hlo_literal(hlo_result((hlo_instr *)a, 0)), *y = hlo_literal(hlo_result((hlo_instr *)b, 0));
  return x->shape.type == y->shape.type && memcmp(x->data, y->data, dtype_bytes((dtype)x->shape.type)) == 0;
}

/* Returns true if another model probably has another number here: if it has more significant bits than a size, 0.5 or
 * 1.25 has.  Such are the numbers that were learned or measured; some that are not, such as 0.1, do no harm. */
static bool is_particular(const hlo_instr *i) {
  enum { SIGNIFICANT_BITS = 12 };
  int exponent;
  double x = literal_f64(hlo_literal(hlo_result((hlo_instr *)i, 0)), 0);
  double bits = ldexp(frexp(x, &exponent), SIGNIFICANT_BITS);
  return isfinite(x) && bits != floor(bits);
}

static bool same_but_for_numbers(const candidate *a, const candidate *b) { return a->key == b->key && a->n == b->n; }

/* Makes scalar k of the candidate an operand of its fusion if lifts[k] is true, for each k. */
static void lift(const candidate *c, const bool *lifts) {
  hlo_instr *f = c->fusion;
  hlo_computation *body = hlo_callee(f, 0), *outside = f->parent;
  hlo_value operands[2 * FUSE_MAX_OPERANDS];
  uint32_t n = f->n_operands;
  memcpy(operands, f->operands, n * sizeof *operands);
  for (uint32_t k = 0; k < c->n; k++) {
    if (lifts[k]) {
      operands[n++] = hlo_result(hlo_instr_clone(outside, f, c->scalars[k], NULL), 0);
      hlo_replace(hlo_result(c->scalars[k], 0), hlo_result(hlo_parameter(body, c->scalars[k]->shapes[0]), 0));
      hlo_remove(c->scalars[k]);
    }
  }
  hlo_instr *new = hlo_instr_create(outside, f, HLO_FUSION, n, operands, f->n_results);
  memcpy(new->attrs, f->attrs, hlo_info(f)->n_attrs * sizeof *f->attrs);
  memcpy(new->shapes, f->shapes, f->n_results * sizeof *f->shapes);
  new->source = f->source;
  for (uint32_t k = 0; k < f->n_results; k++) {
    hlo_replace(hlo_result(f, k), hlo_result(new, k));
  }
  hlo_remove(f);
}

/* Candidate `first` and the later candidates that differ from it at most in their scalars form a group.  Lifts the
 * scalars that are not equal in the whole group, or probably not equal in another model or in another part of this one,
 * which then finds this kernel.  Returns true if there are any. */
static bool lift_group(candidates *all, uint32_t first, arena *scratch) {
  candidate *x = &all->of[first];
  bool *lifts = ARENA_NEW_N(scratch, bool, x->n), any = false;
  for (uint32_t j = 0; j < x->n; j++) {
    lifts[j] = is_particular(x->scalars[j]);
    any = any || lifts[j];
  }
  for (uint32_t k = first + 1; k < all->n; k++) {
    for (uint32_t j = 0; same_but_for_numbers(&all->of[k], x) && j < x->n; j++) {
      lifts[j] = lifts[j] || !same_number(x->scalars[j], all->of[k].scalars[j]);
      any = any || lifts[j];
    }
  }
  for (uint32_t k = first; k < all->n; k++) {
    if (same_but_for_numbers(&all->of[k], x) && !all->of[k].done) {
      all->of[k].done = true;
      if (any) {
        lift(&all->of[k], lifts);
      }
    }
  }
  return any;
}

status pass_lift_scalars(hlo_module *m, pass_context *c, bool *changed) {
  if (hlo_is_static(m)) {
    return NULL;
  }
  candidates all = {0};
  for (uint32_t k = 0; k < m->n_computations; k++) {
    collect(m->computations[k], c->scratch, &all);
  }
  for (uint32_t k = 0; k < all.n; k++) {
    if (!all.of[k].done && lift_group(&all, k, c->scratch)) {
      *changed = true;
      hlo_pass_note(c, "groups of fusions", 1);
    }
  }
  return NULL;
}
