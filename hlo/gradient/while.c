/* while.c - the rule of differentiation for counted loops.
 *
 * The body is differentiated once.  The derivative of an iteration reads values of that iteration, which are
 * gone when the loop has ended.  Therefore a second loop, the forward loop, runs all iterations again and
 * stores these values in arrays with a row for each possible iteration.  A third loop, the backward loop,
 * goes through the iterations from the last to the first, reads the rows and computes the gradients.
 * Loop-carried values that no iteration changes need no such array, and neither does the counter. */
#include <string.h>

#include "hlo/gradient/rules.h"

/* The limit in bytes for the arrays that store values of all iterations. */
static const int64_t STORED_MAX = (int64_t)1 << 32;

typedef struct looping {
  hlo_tape *t;
  hlo_builder *b;
  hlo_instr *i;
  uint32_t n;           /* the number of loop-carried values */
  uint32_t counter;     /* which of the loop-carried values counts the iterations */
  int64_t start, steps; /* the counter's initial value, and the largest number of iterations */
  bool exact;           /* whether there are exactly `steps` iterations */
  /* For each loop-carried value: `active` says whether it has a gradient, `fixed` whether no iteration changes it, and
   * `stored` whether the forward loop stores it for each iteration. */
  bool *active, *fixed, *stored;
  /* The derivative of the body: takes the loop-carried values before an iteration and, for the active ones, the
   * gradients of their values after it; returns the gradients of the active values before it. */
  hlo_computation *back;
} looping;

/* --- loops that can be differentiated --- */

static bool is_parameter(hlo_value v, uint32_t k) {
  return v.def->op == HLO_PARAMETER && hlo_int(v.def, HLO_ATTR_INDEX) == k;
}

static bool is_one(hlo_value v) {
  const literal *l = hlo_literal(v);
  return l && shape_elements(&l->shape) == 1 && literal_i64(l, 0) == 1;
}

static bool counts(const hlo_instr *i, uint32_t k) {
  const hlo_instr *next = hlo_callee(i, 1)->roots[k].def;
  if (next->op != HLO_ADD || !hlo_literal(i->operands[k]) || hlo_type(i->operands[k]) != DTYPE_S64 ||
      hlo_rank(i->operands[k])) {
    return false;
  }
  return (is_parameter(next->operands[0], k) && is_one(next->operands[1])) ||
         (is_parameter(next->operands[1], k) && is_one(next->operands[0]));
}

/* Returns the literal if v is a constant, or a loop-carried value that no iteration changes and whose initial value is
 * a constant.  Otherwise returns NULL. */
static const literal *known_bound(const hlo_instr *i, hlo_value v) {
  if (v.def->op != HLO_PARAMETER) {
    return hlo_literal(v);
  }
  uint32_t k = (uint32_t)hlo_int(v.def, HLO_ATTR_INDEX);
  return is_parameter(hlo_callee(i, 1)->roots[k], k) ? hlo_literal(i->operands[k]) : NULL;
}

/* Reads the bound from the loop's condition, counter < bound.  Returns false if the condition has another form, or if
 * the bound or the counter's first value is not a constant. */
static bool read_bound(looping *l, hlo_value condition) {
  const hlo_instr *c = condition.def;
  if (c->op != HLO_COMPARE || hlo_int(c, HLO_ATTR_COMPARISON) != HLO_LT || c->operands[0].def->op != HLO_PARAMETER) {
    return false;
  }
  uint32_t k = (uint32_t)hlo_int(c->operands[0].def, HLO_ATTR_INDEX);
  const literal *bound = known_bound(l->i, c->operands[1]);
  int64_t limit;
  if (!bound || !counts(l->i, k)) {
    return false;
  }
  l->counter = k;
  l->start = literal_i64(hlo_literal(l->i->operands[k]), 0);
  limit = literal_i64(bound, 0);
  return !__builtin_sub_overflow(limit > l->start ? limit : l->start, l->start, &l->steps);
}

static bool find_counter(looping *l) {
  hlo_value go = hlo_callee(l->i, 0)->roots[0];
  l->exact = read_bound(l, go);
  return l->exact ||
         (go.def->op == HLO_AND && (read_bound(l, go.def->operands[0]) || read_bound(l, go.def->operands[1])));
}

/* --- the body's derivative --- */

/* A loop-carried value is active if its initial value depends on an x (an independent variable of hlo_gradients), or if
 * an iteration makes it depend on an active one; integers never are (hlo_may_vary). */
static void find_active(looping *l) {
  arena *a = hlo_arena(l->b);
  hlo_computation *body = hlo_callee(l->i, 1);
  hlo_number(body);
  bool *depends = ARENA_NEW_N(a, bool, body->n_ids);
  for (uint32_t k = 0; k < l->n; k++) {
    l->active[k] = hlo_tape_needs(l->t, l->i, k);
  }
  for (bool more = true; more;) {
    more = false;
    for (hlo_instr *i = body->first; i; i = i->next) {
      depends[i->id] = i->op == HLO_PARAMETER && l->active[hlo_int(i, HLO_ATTR_INDEX)];
      for (uint32_t k = 0; k < i->n_operands; k++) {
        depends[i->id] |= depends[i->operands[k].def->id];
      }
    }
    for (uint32_t k = 0; k < l->n; k++) {
      bool now = depends[body->roots[k].def->id] && hlo_may_vary(body->roots[k]);
      more |= now && !l->active[k];
      l->active[k] |= now;
    }
  }
}

static hlo_builder inside(const looping *l, hlo_computation *c) {
  hlo_builder b = hlo_builder_make(c);
  b.source = l->b->source;
  b.eval = l->b->eval;
  b.fold_bytes = l->b->fold_bytes;
  return b;
}

static void build_back(looping *l) {
  arena *a = hlo_arena(l->b);
  hlo_computation *c = hlo_computation_clone(l->b->computation->module, hlo_callee(l->i, 1));
  hlo_builder b = inside(l, c);
  hlo_value *ys = ARENA_NEW_N(a, hlo_value, l->n), *dys = ARENA_NEW_N(a, hlo_value, l->n),
            *xs = ARENA_NEW_N(a, hlo_value, l->n), *dxs = ARENA_NEW_N(a, hlo_value, l->n);
  uint32_t n = 0;
  for (uint32_t k = 0; k < l->n; k++) {
    if (l->active[k]) {
      ys[n] = c->roots[k];
      dys[n] = hlo_result(hlo_parameter(c, l->i->shapes[k]), 0);
      xs[n++] = hlo_result(c->params[k], 0);
    }
  }
  hlo_gradients(&b, n, ys, dys, n, xs, dxs);
  for (uint32_t k = 0; k < n; k++) {
    dxs[k] = dxs[k].def ? dxs[k] : hlo_like(&b, xs[k], 0);
  }
  hlo_fail(l->b, hlo_builder_take_error(&b));
  l->back = c;
  if (!l->b->error) {
    hlo_set_roots(c, n, dxs);
  }
}

/* Marks the loop-carried values that the forward loop must store: those that the derivative of the body reads, except
 * the counter and those that no iteration changes. */
static void find_stored(looping *l) {
  hlo_computation *c = l->back;
  hlo_number(c);
  bool *read = ARENA_NEW_N(hlo_arena(l->b), bool, c->n_ids);
  for (uint32_t k = 0; k < c->n_roots; k++) {
    read[c->roots[k].def->id] = true;
  }
  for (hlo_instr *i = c->last; i; i = i->prev) {
    for (uint32_t k = 0; read[i->id] && k < i->n_operands; k++) {
      read[i->operands[k].def->id] = true;
    }
  }
  int64_t bytes = 0;
  bool fits = true;
  for (uint32_t k = 0; k < l->n; k++) {
    int64_t more = 0;
    l->stored[k] = read[c->params[k]->id] && !l->fixed[k] && k != l->counter;
    fits &= !l->stored[k] || (!__builtin_mul_overflow(shape_bytes(&l->i->shapes[k]), l->steps, &more) &&
                              !__builtin_add_overflow(bytes, more, &bytes) && bytes <= STORED_MAX);
    if (l->stored[k] && l->i->shapes[k].rank == SHAPE_MAX_RANK) {
      hlo_tape_refuse(l->t, l->i, "values of that rank cannot be stored for each iteration");
    }
  }
  if (!fits) {
    hlo_tape_refuse(l->t, l->i, "the values of so many iterations cannot be stored");
  }
}

/* --- rows of stored values --- */

static shape row_of(const looping *l, uint32_t k, dim rows) {
  const shape *s = &l->i->shapes[k];
  shape r = *s;
  memmove(r.dims + 1, s->dims, (size_t)s->rank * sizeof *s->dims);
  r.dims[0] = rows;
  r.rank++;
  return r;
}

/* Returns the index, an s64[rank], of the first element of row number `step` in an array of this rank. */
static hlo_value row_starts(hlo_builder *b, int rank, hlo_value step) {
  hlo_value parts[SHAPE_MAX_RANK];
  for (int k = 0; k < rank; k++) {
    parts[k] = k == 0 ? hlo_reshape(b, step, 1, (dim[]){1}) : hlo_s64s(b, (int64_t[]){0}, 1);
  }
  return hlo_concatenate(b, (uint32_t)rank, parts, 0);
}

static hlo_value number(hlo_builder *b, int64_t v) { return hlo_scalar_int(b, DTYPE_S64, v); }

/* Adds a parameter to c for each loop-carried value k that is stored: the array with a row for each iteration.  Sets
 * rows[k] to the parameter. */
static void add_parameters(const looping *l, hlo_computation *c, hlo_value *rows) {
  for (uint32_t k = 0; k < l->n; k++) {
    if (l->stored[k]) {
      rows[k] = hlo_result(hlo_parameter(c, row_of(l, k, l->steps)), 0);
    }
  }
}

/* --- the forward and the backward loop --- */

/* Builds the forward loop.  It runs the iterations of the original loop again and copies each loop-carried value k for
 * which l->stored[k] is true to an array with a row for each iteration.  Sets rows[k] to that array. */
static void run_forward(const looping *l, hlo_value *rows) {
  hlo_builder *b = l->b;
  arena *a = hlo_arena(b);
  hlo_computation *condition = hlo_computation_clone(b->computation->module, hlo_callee(l->i, 0)),
                  *body = hlo_computation_clone(b->computation->module, hlo_callee(l->i, 1));
  hlo_builder step = inside(l, body);
  hlo_value *inner = ARENA_NEW_N(a, hlo_value, l->n), *roots = ARENA_NEW_N(a, hlo_value, 2 * l->n),
            *init = ARENA_NEW_N(a, hlo_value, 2 * l->n), *out = ARENA_NEW_N(a, hlo_value, 2 * l->n);
  uint32_t n = l->n;
  add_parameters(l, condition, inner);
  add_parameters(l, body, inner);
  memcpy(roots, body->roots, n * sizeof *roots);
  memcpy(init, l->i->operands, n * sizeof *init);
  hlo_value at = hlo_binary(&step, HLO_SUB, hlo_result(body->params[l->counter], 0), number(&step, l->start));
  for (uint32_t k = 0; k < l->n; k++) {
    if (l->stored[k]) {
      shape row = row_of(l, k, 1), all = row_of(l, k, l->steps);
      hlo_value v = hlo_reshape(&step, hlo_result(body->params[k], 0), row.rank, row.dims);
      roots[n] = hlo_dynamic_update_slice(&step, inner[k], v, row_starts(&step, row.rank, at));
      init[n++] = hlo_splat(b, all, 0);
    }
  }
  hlo_fail(b, hlo_builder_take_error(&step));
  if (b->error || n == l->n) {
    return;
  }
  hlo_set_roots(body, n, roots);
  hlo_while(b, condition, body, n, init, out);
  for (uint32_t k = 0, at_row = l->n; k < l->n; k++) {
    rows[k] = l->stored[k] ? out[at_row++] : rows[k];
  }
}

/* The values that the backward loop carries: the number of iterations that it has gone back, the number of all
 * iterations, the original loop's values that no iteration changes, the arrays of stored values, and the gradients.  A
 * value that is absent has def NULL. */
typedef struct carried {
  uint32_t n;
  hlo_value *all, *done, *steps, *values, *rows, *gradients;
} carried;

static carried carried_new(const looping *l) {
  hlo_value *all = ARENA_NEW_N(hlo_arena(l->b), hlo_value, 2 + 3 * l->n);
  return (carried){2 + 3 * l->n, all, all, all + 1, all + 2, all + 2 + l->n, all + 2 + 2 * l->n};
}

/* Writes the members of c->all that are present (def is not NULL), in order, to `out`, and returns their number. */
static uint32_t pack(const carried *c, hlo_value *out) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < c->n; k++) {
    if (c->all[k].def) {
      out[n++] = c->all[k];
    }
  }
  return n;
}

static carried parameters(const looping *l, const carried *outside, hlo_computation *c) {
  carried in = carried_new(l);
  for (uint32_t k = 0; k < in.n; k++) {
    if (outside->all[k].def) {
      in.all[k] = hlo_result(hlo_parameter(c, *hlo_shape(outside->all[k])), 0);
    }
  }
  return in;
}

/* Builds the body of the backward loop.  It reads the original loop's values before one of its iterations, and inlines
 * the derivative of the original body. */
static void build_step(const looping *l, hlo_builder *b, const carried *outside) {
  carried in = parameters(l, outside, b->computation), next = carried_new(l);
  hlo_value *args = ARENA_NEW_N(hlo_arena(b), hlo_value, 2 * l->n), *dxs = ARENA_NEW_N(hlo_arena(b), hlo_value, l->n);
  hlo_value at = hlo_binary(b, HLO_SUB, hlo_binary(b, HLO_SUB, *in.steps, number(b, 1)), *in.done);
  uint32_t n = 0;
  for (uint32_t k = 0; k < l->n; k++) {
    if (k == l->counter) {
      args[n++] = hlo_binary(b, HLO_ADD, at, number(b, l->start));
    } else if (l->stored[k]) {
      shape row = row_of(l, k, 1);
      hlo_value v = hlo_dynamic_slice(b, in.rows[k], row_starts(b, row.rank, at), row.dims);
      args[n++] = hlo_reshape(b, v, l->i->shapes[k].rank, l->i->shapes[k].dims);
    } else {
      args[n++] = in.values[k].def ? in.values[k] : hlo_splat(b, l->i->shapes[k], 0);
    }
  }
  for (uint32_t k = 0; k < l->n; k++) {
    if (l->active[k]) {
      args[n++] = in.gradients[k];
    }
  }
  memcpy(next.all, in.all, in.n * sizeof *in.all);
  *next.done = hlo_binary(b, HLO_ADD, *in.done, number(b, 1));
  if (b->error) {
    return;
  }
  hlo_inline((*next.done).def, l->back, args, dxs);
  n = 0;
  for (uint32_t k = 0; k < l->n; k++) {
    next.gradients[k] = l->active[k] ? dxs[n++] : next.gradients[k];
  }
  hlo_value *roots = ARENA_NEW_N(hlo_arena(b), hlo_value, next.n);
  n = pack(&next, roots);
  hlo_set_roots(b->computation, n, roots);
}

static void build_condition(const looping *l, hlo_builder *b, const carried *outside) {
  carried in = parameters(l, outside, b->computation);
  hlo_value go = hlo_compare(b, HLO_LT, *in.done, *in.steps);
  hlo_set_roots(b->computation, 1, &go);
}

static void run_back(const looping *l, const hlo_value *rows) {
  hlo_builder *b = l->b, condition = hlo_builder_inner(b, "back_condition"), body = hlo_builder_inner(b, "back_body");
  carried c = carried_new(l);
  *c.done = number(b, 0);
  *c.steps = l->exact ? number(b, l->steps) : hlo_binary(b, HLO_SUB, hlo_result(l->i, l->counter), number(b, l->start));
  for (uint32_t k = 0; k < l->n; k++) {
    hlo_value given = hlo_tape_get(l->t, l->i, k), none = {0};
    c.values[k] = l->fixed[k] ? l->i->operands[k] : none;
    c.rows[k] = rows[k];
    if (l->active[k]) {
      c.gradients[k] = given.def ? given : hlo_splat(b, l->i->shapes[k], 0);
    }
  }
  if (b->error) {
    return;
  }
  build_condition(l, &condition, &c);
  build_step(l, &body, &c);
  hlo_fail(b, hlo_builder_take_error(&condition));
  hlo_fail(b, hlo_builder_take_error(&body));
  hlo_value *init = ARENA_NEW_N(hlo_arena(b), hlo_value, c.n), *out = ARENA_NEW_N(hlo_arena(b), hlo_value, c.n);
  uint32_t n = pack(&c, init);
  if (b->error) {
    return;
  }
  hlo_while(b, condition.computation, body.computation, n, init, out);
  for (uint32_t k = l->n; k-- > 0;) { /* the gradients are the last results of the backward loop */
    if (l->active[k]) {
      hlo_tape_add(l->t, l->i, k, out[--n]);
    }
  }
}

void hlo_gradient_while(hlo_tape *t, hlo_instr *i, hlo_value dy) {
  arena *a = hlo_arena(t->b);
  uint32_t n = i->n_operands;
  looping l = {.t = t,
               .b = t->b,
               .i = i,
               .n = n,
               .active = ARENA_NEW_N(a, bool, n),
               .fixed = ARENA_NEW_N(a, bool, n),
               .stored = ARENA_NEW_N(a, bool, n)};
  if (!find_counter(&l)) {
    hlo_tape_refuse(t, i, "a loop is differentiated only if it counts its steps from a constant up to a constant");
    return;
  }
  for (uint32_t k = 0; k < n; k++) {
    l.fixed[k] = is_parameter(hlo_callee(i, 1)->roots[k], k);
  }
  find_active(&l);
  build_back(&l);
  if (!t->b->error) {
    find_stored(&l);
  }
  hlo_value *rows = ARENA_NEW_N(a, hlo_value, n);
  if (!t->b->error) {
    run_forward(&l, rows);
  }
  if (!t->b->error) {
    run_back(&l, rows);
  }
}
