/* gradient.c - the way back through a computation, and which rule each operation has. */
#include "hlo/gradient.h"

#include <string.h>

#include "hlo/gradient_rules.h"

/* A module that grows beyond this is no model's: derivatives of derivatives double with every step. */
enum { INSTRUCTIONS_MAX = 1 << 21 };

/* Operations whose results are no floats need no rule; those without one are refused. */
static hlo_gradient_rule *const rules[HLO_OP_COUNT] = {
    [HLO_CONDITIONAL] = hlo_gradient_conditional,
    [HLO_WHILE] = hlo_gradient_while,
    [HLO_ABS] = hlo_gradient_unary,
    [HLO_NEG] = hlo_gradient_negate,
    [HLO_SIGN] = hlo_gradient_nothing,
    [HLO_CEIL] = hlo_gradient_nothing,
    [HLO_FLOOR] = hlo_gradient_nothing,
    [HLO_ROUND] = hlo_gradient_nothing,
    [HLO_SQRT] = hlo_gradient_unary,
    [HLO_RSQRT] = hlo_gradient_unary,
    [HLO_EXP] = hlo_gradient_unary,
    [HLO_EXPM1] = hlo_gradient_unary,
    [HLO_LOG] = hlo_gradient_unary,
    [HLO_LOG1P] = hlo_gradient_unary,
    [HLO_SIN] = hlo_gradient_unary,
    [HLO_COS] = hlo_gradient_unary,
    [HLO_TAN] = hlo_gradient_unary,
    [HLO_ASIN] = hlo_gradient_unary,
    [HLO_ACOS] = hlo_gradient_unary,
    [HLO_ATAN] = hlo_gradient_unary,
    [HLO_SINH] = hlo_gradient_unary,
    [HLO_COSH] = hlo_gradient_unary,
    [HLO_TANH] = hlo_gradient_unary,
    [HLO_ASINH] = hlo_gradient_unary,
    [HLO_ACOSH] = hlo_gradient_unary,
    [HLO_ATANH] = hlo_gradient_unary,
    [HLO_ERF] = hlo_gradient_unary,
    [HLO_LOGISTIC] = hlo_gradient_unary,
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

bool hlo_has_gradient(hlo_op op) { return rules[op] || op == HLO_COMPOSITE; }

/* --- what rules call --- */

static bool carries(hlo_value v) { return dtype_is_float(hlo_type(v)) || dtype_is_complex(hlo_type(v)); }

bool hlo_tape_wants(const hlo_tape *t, const hlo_instr *i, uint32_t k) {
  return t->active[i->operands[k].def->id] && carries(i->operands[k]);
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
  if (hlo_tape_wants(t, i, k) && !t->b->error) {
    add_to(t, i->operands[k], gradient);
  }
}

hlo_value hlo_tape_get(const hlo_tape *t, const hlo_instr *i, uint32_t k) {
  const hlo_value *list = t->gradients[i->id];
  return list ? list[k] : (hlo_value){0};
}

void hlo_tape_refuse(hlo_tape *t, const hlo_instr *i, const char *why) {
  hlo_fail(t->b, status_error(STATUS_UNSUPPORTED, "\"%.200s\" cannot be differentiated: %s: %s", i->source, hlo_info(i)->name,
                              why));
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

/* --- the way there --- */

/* Marks what depends on an x; nothing flows out of values that are no floats. */
static bool *find_active(const hlo_computation *c, arena *a, uint32_t n_xs, const hlo_value *xs) {
  bool *active = ARENA_NEW_N(a, bool, c->n_ids);
  for (uint32_t k = 0; k < n_xs; k++) {
    active[xs[k].def->id] = true;
  }
  for (const hlo_instr *i = c->first; i; i = i->next) {
    for (uint32_t k = 0; k < i->n_operands && !active[i->id]; k++) {
      active[i->id] = active[i->operands[k].def->id] && carries(i->operands[k]);
    }
  }
  return active;
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

/* Composites become what they stand for: an operation of several steps has no rule. */
static void inline_composites(hlo_builder *b, uint32_t n_xs, const hlo_value *xs, uint32_t n_ys, hlo_value *ys) {
  hlo_computation *c = b->computation;
  arena *a = hlo_arena(b);
  bool *active = find_active(c, a, n_xs, xs);
  for (hlo_instr *i = c->last, *before; i; i = before) { /* from the end: what is inlined stands behind `before` */
    before = i->prev;
    if (i->op != HLO_COMPOSITE || !active[i->id]) {
      continue;
    }
    hlo_value *roots = ARENA_NEW_N(a, hlo_value, i->n_results);
    hlo_inline(i, hlo_callee(i, 0), i->operands, roots);
    for (uint32_t k = 0; k < i->n_results; k++) {
      hlo_replace(hlo_result(i, k), roots[k]);
      for (uint32_t y = 0; y < n_ys; y++) {
        ys[y] = hlo_value_equal(ys[y], hlo_result(i, k)) ? roots[k] : ys[y];
      }
    }
  }
}

/* --- the way back --- */

static void go_back(hlo_tape *t, hlo_instr *i) {
  hlo_gradient_rule *rule = rules[i->op];
  if (has_complex(i)) {
    hlo_tape_refuse(t, i, "complex numbers");
  } else if (!rule) {
    hlo_tape_refuse(t, i, "there is no rule");
  } else {
    rule(t, i, hlo_tape_get(t, i, 0));
  }
}

static void check_size(hlo_builder *b, uint32_t made) {
  hlo_fail(b, budget_check(arena_budget(hlo_arena(b))));
  if (made > INSTRUCTIONS_MAX) {
    hlo_fail(b, status_error(STATUS_RESOURCE, "the gradient has more than %d operations", INSTRUCTIONS_MAX));
  }
}

static void sweep(hlo_tape *t, hlo_instr **order, uint32_t n, const bool *is_x) {
  const char *source = t->b->source, *last = NULL;
  for (uint32_t k = n; k-- > 0 && !t->b->error;) {
    hlo_instr *i = order[k];
    if (!t->gradients[i->id] || is_x[i->id]) {
      continue;
    }
    if (i->source != last) {
      last = i->source;
      t->b->source = *last ? arena_printf(hlo_arena(t->b), "gradient of %.300s", last) : source;
    }
    go_back(t, i);
    check_size(t->b, n);
  }
  t->b->source = source;
}

void hlo_gradients(hlo_builder *b, uint32_t n_ys, const hlo_value *ys, const hlo_value *dys, uint32_t n_xs, const hlo_value *xs,
                   hlo_value *dxs) {
  if (b->error) {
    return;
  }
  arena *a = hlo_arena(b);
  hlo_computation *c = b->computation;
  hlo_value *targets = arena_memdup(a, ys, n_ys * sizeof *ys);
  hlo_number(c);
  inline_composites(b, n_xs, xs, n_ys, targets);
  hlo_number(c);
  hlo_instr **order = ARENA_NEW_N(a, hlo_instr *, c->n_ids);
  bool *is_x = ARENA_NEW_N(a, bool, c->n_ids);
  HLO_FOR_EACH(i, c) { order[i->id] = i; }
  hlo_tape t = {.b = b, .active = find_active(c, a, n_xs, xs), .gradients = ARENA_NEW_N(a, hlo_value *, c->n_ids)};
  for (uint32_t k = 0; k < n_xs; k++) {
    is_x[xs[k].def->id] = true;
  }
  for (uint32_t k = 0; k < n_ys; k++) {
    if (dys[k].def && t.active[targets[k].def->id]) {
      add_to(&t, targets[k], dys[k]);
    }
  }
  sweep(&t, order, c->n_ids, is_x);
  for (uint32_t k = 0; k < n_xs; k++) {
    hlo_value *list = t.gradients[xs[k].def->id];
    dxs[k] = list ? list[xs[k].index] : (hlo_value){0};
  }
}
