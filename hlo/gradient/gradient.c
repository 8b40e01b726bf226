/* gradient.c - the reverse pass through a computation, and the table of the operations' rules. */
#include "hlo/gradient/gradient.h"

#include <string.h>

#include "hlo/gradient/rules.h"

/* The largest number of instructions that are differentiated.  Each time that a derivative is differentiated again,
 * their number may double; real models stay below the limit. */
enum { INSTRUCTIONS_MAX = 1 << 21 };

/* The rule of each operation, except those elementwise operations of one operand that unary_rows of math.c lists.
 * Operations whose results are not floats need no rule.  To differentiate any other operation without a rule is an
 * error. */
static hlo_gradient_rule *const rules[HLO_OP_COUNT] = {
    [HLO_CONDITIONAL] = hlo_gradient_conditional,
    [HLO_WHILE] = hlo_gradient_while,
    [HLO_NEG] = hlo_gradient_negate,
    [HLO_SIGN] = hlo_gradient_nothing,
    [HLO_CEIL] = hlo_gradient_nothing,
    [HLO_FLOOR] = hlo_gradient_nothing,
    [HLO_ROUND] = hlo_gradient_nothing,
    [HLO_CONVERT] = hlo_gradient_convert,
    [HLO_ADD] = hlo_gradient_add,
    [HLO_SUB] = hlo_gradient_subtract,
    [HLO_MUL] = hlo_gradient_multiply,
    [HLO_DIV] = hlo_gradient_divide,
    [HLO_REM] = hlo_gradient_remainder,
    [HLO_POW] = hlo_gradient_power,
    [HLO_ATAN2] = hlo_gradient_atan2,
    [HLO_MAX] = hlo_gradient_extreme,
    [HLO_MIN] = hlo_gradient_extreme,
    [HLO_SELECT] = hlo_gradient_select,
    [HLO_CLAMP] = hlo_gradient_clamp,
    [HLO_COPY] = hlo_gradient_copy,
    [HLO_BROADCAST] = hlo_gradient_broadcast,
    [HLO_RESHAPE] = hlo_gradient_reshape,
    [HLO_TRANSPOSE] = hlo_gradient_transpose,
    [HLO_REVERSE] = hlo_gradient_reverse,
    [HLO_SLICE] = hlo_gradient_slice,
    [HLO_PAD] = hlo_gradient_pad,
    [HLO_CONCAT] = hlo_gradient_concatenate,
    [HLO_DYNAMIC_SLICE] = hlo_gradient_dynamic_slice,
    [HLO_DYNAMIC_UPDATE_SLICE] = hlo_gradient_dynamic_update_slice,
    [HLO_GATHER] = hlo_gradient_gather,
    [HLO_SCATTER] = hlo_gradient_scatter,
    [HLO_SORT] = hlo_gradient_sort,
    [HLO_REDUCE] = hlo_gradient_reduce,
    [HLO_REDUCE_WINDOW] = hlo_gradient_reduce_window,
    [HLO_CUMULATIVE] = hlo_gradient_cumulative,
    [HLO_DOT] = hlo_gradient_dot,
    [HLO_CONVOLUTION] = hlo_gradient_convolution,
};

static hlo_gradient_rule *rule_of(hlo_op op) { return hlo_has_derivative(op) ? hlo_gradient_unary : rules[op]; }

bool hlo_has_gradient(hlo_op op) { return rule_of(op) || op == HLO_COMPOSITE; }

/* --- functions for rules --- */

bool hlo_may_vary(hlo_value v) { return dtype_is_float(hlo_type(v)) || dtype_is_complex(hlo_type(v)); }

static bool is_active(const hlo_tape *t, const hlo_instr *i) {
  return i->id < t->n && t->order[i->id] == i && t->active[i->id];
}

bool hlo_tape_needs(const hlo_tape *t, const hlo_instr *i, uint32_t k) {
  return is_active(t, i->operands[k].def) && hlo_may_vary(i->operands[k]);
}

static hlo_value *slot(hlo_tape *t, hlo_value v) {
  hlo_value **list = &t->gradients[v.def->id];
  if (!*list) {
    *list = ARENA_NEW_N(hlo_arena(t->b), hlo_value, v.def->n_results);
  }
  return &(*list)[v.index];
}

static void add_to(hlo_tape *t, hlo_value v, hlo_value gradient) {
  hlo_value *sum = slot(t, v);
  *sum = sum->def ? hlo_binary(t->b, HLO_ADD, *sum, gradient) : gradient;
}

void hlo_tape_add(hlo_tape *t, const hlo_instr *i, uint32_t k, hlo_value gradient) {
  if (hlo_tape_needs(t, i, k) && !t->b->error) {
    add_to(t, i->operands[k], gradient);
  }
}

hlo_value hlo_tape_take(hlo_tape *t, const hlo_instr *i, uint32_t k) {
  hlo_value none = {0}, taken = none;
  if (hlo_tape_needs(t, i, k)) {
    hlo_value *sum = slot(t, i->operands[k]);
    taken = *sum;
    *sum = none;
  }
  return taken;
}

hlo_value hlo_tape_get(const hlo_tape *t, const hlo_instr *i, uint32_t k) {
  const hlo_value *list = t->gradients[i->id];
  return list ? list[k] : (hlo_value){0};
}

void hlo_tape_refuse(hlo_tape *t, const hlo_instr *i, const char *why) {
  hlo_fail(t->b, status_error(STATUS_UNSUPPORTED, "\"%.200s\" cannot be differentiated: %s: %s", i->source,
                              hlo_info(i)->name, why));
}

hlo_value hlo_sum_all(hlo_builder *b, hlo_value x) {
  int64_t all[SHAPE_MAX_RANK];
  int rank = hlo_rank(x);
  for (int k = 0; k < rank; k++) {
    all[k] = k;
  }
  return hlo_reduce(b, x, HLO_REDUCE_ADD, (uint32_t)rank, all);
}

hlo_value hlo_select_or_zero(hlo_builder *b, hlo_value condition, hlo_value x) {
  return hlo_select(b, condition, x, hlo_like(b, x, 0));
}

/* --- the instructions that depend on an x --- */

/* Returns, of the instructions that compute xs, the one that comes first in the computation.  Changes the ids of that
 * one and of all after it.  It searches from the end, since a computation may be long and often only its last part is
 * differentiated. */
static hlo_instr *find_first(hlo_computation *c, uint32_t n_xs, const hlo_value *xs) {
  uint32_t left = 0;
  hlo_instr *i = c->last;
  for (uint32_t k = 0; k < n_xs; k++) {
    left += xs[k].def->id != UINT32_MAX;
    xs[k].def->id = UINT32_MAX;
  }
  for (; left; i = left ? i->prev : i) {
    left -= i->id == UINT32_MAX;
    i->id = 0;
  }
  return i;
}

/* Numbers the instructions of the computation, from the first one that computes one of xs on, and marks those that
 * depend on one of xs.  Values that are not floats carry no gradients. */
static hlo_tape read_forward(hlo_builder *b, uint32_t n_xs, const hlo_value *xs) {
  arena *a = hlo_arena(b);
  hlo_instr *first = find_first(b->computation, n_xs, xs);
  hlo_tape t = {.b = b};
  for (hlo_instr *i = first; i; i = i->next) {
    t.n++;
  }
  t.order = ARENA_NEW_N(a, hlo_instr *, t.n);
  t.active = ARENA_NEW_N(a, bool, t.n);
  t.gradients = ARENA_NEW_N(a, hlo_value *, t.n);
  uint32_t id = 0;
  for (hlo_instr *i = first; i; i = i->next) {
    i->id = id++;
    t.order[i->id] = i;
  }
  for (uint32_t k = 0; k < n_xs; k++) {
    t.active[xs[k].def->id] = true;
  }
  for (hlo_instr *i = first; i; i = i->next) {
    for (uint32_t k = 0; k < i->n_operands && !t.active[i->id]; k++) {
      t.active[i->id] = hlo_tape_needs(&t, i, k);
    }
  }
  return t;
}

static bool has_complex(const hlo_instr *i) {
  bool found = false;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    found |= dtype_is_complex(hlo_type(i->operands[k]));
  }
  for (uint32_t k = 0; k < i->n_results; k++) {
    found |= dtype_is_complex((dtype)i->shapes[k].type);
  }
  return found;
}

/* Inlines the composites among the instructions of the tape that depend on an x, since composites have no rules, and
 * replaces their results in ys[n_ys].  Returns true if there were any. */
static bool inline_composites(const hlo_tape *t, uint32_t n_ys, hlo_value *ys) {
  bool found = false;
  for (uint32_t at = 0; at < t->n; at++) {
    hlo_instr *i = t->order[at];
    if (i->op != HLO_COMPOSITE || !t->active[at]) {
      continue;
    }
    found = true;
    hlo_value *roots = ARENA_NEW_N(hlo_arena(t->b), hlo_value, i->n_results);
    hlo_inline(i, hlo_callee(i, 0), i->operands, roots);
    for (uint32_t k = 0; k < i->n_results; k++) {
      hlo_replace(hlo_result(i, k), roots[k]);
      for (uint32_t y = 0; y < n_ys; y++) {
        ys[y] = hlo_value_equal(ys[y], hlo_result(i, k)) ? roots[k] : ys[y];
      }
    }
  }
  return found;
}

/* --- the walk back --- */

static void go_back(hlo_tape *t, hlo_instr *i) {
  hlo_gradient_rule *rule = rule_of(i->op);
  if (has_complex(i)) {
    hlo_tape_refuse(t, i, "complex numbers");
  } else if (!rule) {
    hlo_tape_refuse(t, i, "there is no rule");
  } else {
    rule(t, i, hlo_tape_get(t, i, 0));
  }
}

static void check_size(const hlo_tape *t) {
  status late = budget_check(arena_budget(hlo_arena(t->b)));
  if (late) {
    hlo_fail(t->b, late);
  } else if (t->n > INSTRUCTIONS_MAX) {
    hlo_fail(t->b, status_error(STATUS_RESOURCE, "the gradient has more than %d operations", INSTRUCTIONS_MAX));
  }
}

static void sweep(hlo_tape *t, const bool *is_x) {
  const char *source = t->b->source, *last = NULL;
  for (uint32_t k = t->n; k-- > 0 && !t->b->error;) {
    hlo_instr *i = t->order[k];
    if (!t->gradients[k] || is_x[k]) {
      continue;
    }
    if (i->source != last) {
      last = i->source;
      t->b->source = *last ? arena_printf(hlo_arena(t->b), "gradient of %.300s", last) : source;
    }
    go_back(t, i);
    check_size(t);
  }
  t->b->source = source;
}

void hlo_gradients(hlo_builder *b, uint32_t n_ys, const hlo_value *ys, const hlo_value *dys, uint32_t n_xs,
                   const hlo_value *xs, hlo_value *dxs) {
  if (b->error) {
    return;
  }
  arena *a = hlo_arena(b);
  hlo_value *targets = arena_memdup(a, ys, n_ys * sizeof *ys);
  hlo_tape t = read_forward(b, n_xs, xs);
  if (inline_composites(&t, n_ys, targets)) {
    t = read_forward(b, n_xs, xs);
  }
  bool *is_x = ARENA_NEW_N(a, bool, t.n);
  for (uint32_t k = 0; k < n_xs; k++) {
    is_x[xs[k].def->id] = true;
  }
  for (uint32_t k = 0; k < n_ys; k++) {
    if (dys[k].def && is_active(&t, targets[k].def)) {
      add_to(&t, targets[k], dys[k]);
    }
  }
  sweep(&t, is_x);
  for (uint32_t k = 0; k < n_xs; k++) {
    dxs[k] = hlo_tape_get(&t, xs[k].def, xs[k].index);
  }
}
