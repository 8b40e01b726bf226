/* sizes.c - see sizes.h. */
#include "lower/sizes.h"

#include "base/dim/guard.h"
#include "runtime/program/sizes.h"

size_table size_table_make(arena *a, const hlo_module *m, rt_program *p) {
  return (size_table){.arena = a, .module = m, .program = p};
}

/* Returns the address of d's entry in size_table.numbers. */
static uint32_t *number_of(size_table *t, dim d) {
  uint64_t at = (uint64_t) - (d + 1);
  if (at >= t->n_numbers) {
    uint32_t n = (uint32_t)(2 * at + 64);
    t->numbers = arena_grow(t->arena, t->numbers, t->n_numbers * sizeof *t->numbers, n * sizeof *t->numbers);
    t->n_numbers = n;
  }
  return &t->numbers[at];
}

static rt_size add_node(size_table *t, rt_size_node n) {
  rt_program *p = t->program;
  *ARENA_PUSH(t->arena, p->sizes, p->n_sizes, t->cap) = n;
  return -(rt_size)p->n_sizes;
}

/* Adds nodes that compute (size - rest) / factor, and returns that size. */
static rt_size add_solution(size_table *t, rt_size size, int64_t factor, int64_t rest) {
  if (rest) {
    rt_size negative = rest > 0 ? add_node(t, (rt_size_node){.op = DIM_NEG, .a = rest}) : -rest;
    size = add_node(t, (rt_size_node){.op = DIM_ADD, .a = size, .b = negative});
  }
  return factor > 1 ? add_node(t, (rt_size_node){.op = DIM_FLOORDIV, .a = size, .b = factor}) : size;
}

/* Adds nodes that compute symbol d from a dimension of an input: the first dimension found, of any input, that is d, or
 * a multiple of d plus a constant.  Sets `missing` if there is none. */
static rt_size add_symbol(size_table *t, dim d) {
  const hlo_computation *entry = t->module->entry;
  const dim_table *dims = t->module->dims;
  for (uint32_t k = 0; k < entry->n_params; k++) {
    const shape *s = &entry->params[k]->shapes[0];
    for (int axis = 0; axis < s->rank; axis++) {
      dim symbol;
      int64_t factor, rest;
      if (dim_linear(dims, s->dims[axis], &symbol, &factor, &rest) && symbol == d) {
        const char *name = dim_print(t->arena, dims, s->dims[axis]);
        rt_size size = add_node(t, (rt_size_node){.op = DIM_SYMBOL, .a = k, .b = axis, .name = name});
        size = add_solution(t, size, factor, rest);
        t->program->sizes[-(size + 1)].name = arena_strdup(t->arena, dim_name(dims, d));
        return size;
      }
    }
  }
  t->missing = d;
  return 0;
}

static rt_size add_expression(size_table *t, dim d) {
  const dim_table *dims = t->module->dims;
  dim_kind kind = dim_get_kind(dims, d);
  if (kind == DIM_SYMBOL) {
    return add_symbol(t, d);
  }
  if (kind == DIM_BOUNDED) {
    t->missing = d;
    return 0;
  }
  rt_size a = size_table_get(t, dim_lhs(dims, d)), b = size_table_get(t, dim_rhs(dims, d));
  return add_node(t, (rt_size_node){.op = (uint8_t)kind, .a = a, .b = b});
}

rt_size size_table_get(size_table *t, dim d) {
  if (dim_is_const(d)) {
    return d;
  }
  if (d == DIM_OVERFLOW) {
    t->missing = d;
    return 0;
  }
  uint32_t number = *number_of(t, d);
  if (!number) {
    number = (uint32_t)-add_expression(t, d);
    *number_of(t, d) = number; /* found again, since the table may have grown */
  }
  return -(rt_size)number;
}

static bool has(uint32_t n, const rt_size *list, rt_size s) {
  for (uint32_t k = 0; k < n; k++) {
    if (list[k] == s) {
      return true;
    }
  }
  return false;
}

const rt_size *size_table_symbols(size_table *t, uint32_t *n) {
  const hlo_computation *entry = t->module->entry;
  rt_size *symbols = NULL;
  uint32_t cap = 0;
  *n = 0;
  for (uint32_t k = 0; k < entry->n_params; k++) {
    const shape *s = &entry->params[k]->shapes[0];
    for (int axis = 0; axis < s->rank; axis++) {
      dim symbol = 0;
      int64_t factor, rest;
      bool tells = dim_linear(t->module->dims, s->dims[axis], &symbol, &factor, &rest);
      rt_size size = tells ? size_table_get(t, symbol) : 0;
      if (tells && !has(*n, symbols, size)) {
        *ARENA_PUSH(t->arena, symbols, *n, cap) = size;
      }
    }
  }
  return symbols;
}

void size_table_add_guards(size_table *t) {
  rt_program *p = t->program;
  const dim_guard *guards = dim_guards(t->module->dims, &p->n_guards);
  p->guards = ARENA_NEW_N(t->arena, rt_guard, p->n_guards);
  for (uint32_t k = 0; k < p->n_guards; k++) {
    const dim_guard *g = &guards[k];
    p->guards[k] = (rt_guard){.relation = (uint8_t)g->relation,
                              .a = size_table_get(t, g->a),
                              .b = size_table_get(t, g->b),
                              .text = dim_guard_print(t->arena, t->module->dims, g),
                              .source = arena_strdup(t->arena, g->source)};
  }
}

status size_table_finish(const size_table *t) {
  const char *source = dim_unanswered(t->module->dims);
  CHECK_THAT(t->missing != DIM_OVERFLOW, STATUS_UNSUPPORTED, "a size is too large an expression");
  CHECK_THAT(!source || rt_program_is_static(t->program), STATUS_UNSUPPORTED,
             "%s: what is computed from sizes is too large", source);
  CHECK_THAT(!t->missing, STATUS_UNSUPPORTED, "no input tells the size %s",
             dim_print(t->arena, t->module->dims, t->missing));
  return NULL;
}
