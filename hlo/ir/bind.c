/* bind.c - implements bind.h. */
#include "hlo/ir/bind.h"

#include <inttypes.h>

#include "base/dim/guard.h"
#include "hlo/ir/fold_sizes.h"

#define MISMATCH (STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE)

/* --- values of symbols --- */

typedef struct symbol_value {
  dim symbol;
  int64_t value;
} symbol_value;

typedef struct binding {
  dim_table *dims;
  symbol_value *items;
  uint32_t n, cap;
  dim missing; /* the first symbol that was looked up and has no value; 0 if there is none */
} binding;

/* The source of the values of symbols: a function, and the argument to call it with. */
typedef struct sizes {
  arena *arena;
  const dim_table *dims;
  dim_value_fn *value;
  void *data;
} sizes;

static int64_t value_of(void *data, dim symbol) {
  binding *b = data;
  for (uint32_t k = 0; k < b->n; k++) {
    if (b->items[k].symbol == symbol) {
      return b->items[k].value;
    }
  }
  b->missing = b->missing ? b->missing : symbol;
  return 0;
}

static status evaluate(binding *b, arena *a, dim d, int64_t *out) {
  if (dim_is_const(d)) {
    *out = d;
    return NULL;
  }
  bool possible = dim_evaluate(b->dims, d, value_of, b, out);
  CHECK_THAT(!b->missing, STATUS_INVALID_ARGUMENT, "no input tells the size %s", dim_print(a, b->dims, b->missing));
  CHECK_THAT(possible, MISMATCH, "the size %s cannot be computed for these inputs", dim_print(a, b->dims, d));
  return NULL;
}

static status check_rank(const hlo_module *m, uint32_t k, const shape *given) {
  const shape *want = &m->entry->params[k]->shapes[0];
  CHECK_THAT(given->rank == want->rank && given->type == want->type, MISMATCH, "input %" PRIu32 " is %s instead of %s",
             k, SHAPE_STR(NULL, given), SHAPE_STR(m->dims, want));
  return NULL;
}

static void bind_symbols(arena *a, binding *b, const shape *declared, const shape *given) {
  for (int k = 0; k < declared->rank; k++) {
    dim symbol;
    int64_t factor, rest;
    if (dim_linear(b->dims, declared->dims[k], &symbol, &factor, &rest) && given->dims[k] >= rest) {
      b->missing = 0;
      (void)value_of(b, symbol);
      if (b->missing) {
        *ARENA_PUSH(a, b->items, b->n, b->cap) = (symbol_value){symbol, (given->dims[k] - rest) / factor};
      }
    }
  }
  b->missing = 0;
}

static status check_input(arena *a, binding *b, const hlo_module *m, uint32_t k, const shape *given) {
  const shape *want = &m->entry->params[k]->shapes[0];
  for (int i = 0; i < want->rank; i++) {
    int64_t size;
    TRY(evaluate(b, a, want->dims[i], &size));
    CHECK_THAT(size == given->dims[i], MISMATCH,
               "input %" PRIu32 " is %s; dimension %d of %s must be %" PRId64 " with the other inputs", k,
               SHAPE_STR(NULL, given), i, SHAPE_STR(m->dims, want), size);
  }
  return NULL;
}

static status check_guards(arena *a, binding *b) {
  uint32_t n;
  const dim_guard *guards = dim_guards(b->dims, &n);
  for (uint32_t k = 0; k < n; k++) {
    CHECK_THAT(dim_guard_holds(b->dims, &guards[k], value_of, b), MISMATCH, "%s: the program is for sizes with %s",
               guards[k].source, dim_guard_print(a, b->dims, &guards[k]));
  }
  return NULL;
}

/* --- instructions --- */

static status compute(const sizes *z, dim d, int64_t *out) {
  CHECK_THAT(dim_evaluate(z->dims, d, z->value, z->data, out), MISMATCH,
             "the size %s cannot be computed for these inputs", dim_print(z->arena, z->dims, d));
  return NULL;
}

static status bind_list(const sizes *z, hlo_attr *v) {
  int64_t *values = ARENA_NEW_N(z->arena, int64_t, v->n);
  for (uint32_t k = 0; k < v->n; k++) {
    TRY(compute(z, v->ints[k], &values[k]));
  }
  v->ints = values;
  return NULL;
}

/* Turns i, an instruction `sizes` (a list of symbolic sizes), into a constant. */
static status bind_list_of_sizes(const sizes *z, hlo_instr *i) {
  TRY(bind_list(z, &i->attrs[0]));
  literal l = hlo_sizes_literal(z->arena, i->shapes[0], i->attrs[0].ints);
  i->op = HLO_CONSTANT;
  i->attrs[0] = (hlo_attr){.value = arena_memdup(z->arena, &l, sizeof l)};
  return NULL;
}

static status bind_instr(const sizes *z, hlo_instr *i) {
  for (uint32_t k = 0; k < i->n_results; k++) {
    for (int d = 0; d < i->shapes[k].rank; d++) {
      int64_t size;
      TRY(compute(z, i->shapes[k].dims[d], &size));
      i->shapes[k].dims[d] = size < 0 ? DIM_OVERFLOW : size;
    }
    TRY(shape_check(&i->shapes[k], hlo_info(i)->name));
  }
  if (i->op == HLO_SIZES) {
    return bind_list_of_sizes(z, i);
  }
  for (uint32_t k = 0; k < hlo_info(i)->n_attrs; k++) {
    if (hlo_attr_get_info(hlo_info(i)->attrs[k])->kind == HLO_KIND_DIMS) {
      TRY(bind_list(z, &i->attrs[k]));
    }
  }
  return NULL;
}

status hlo_bind_sizes(hlo_module *m, dim_value_fn *value, void *data) {
  const sizes z = {m->arena, m->dims, value, data};
  for (uint32_t k = 0; k < m->n_computations; k++) {
    HLO_FOR_EACH(i, m->computations[k]) { TRY(bind_instr(&z, i)); }
  }
  for (uint32_t k = 0; m->carried && k < m->entry->n_roots; k++) {
    TRY(compute(&z, m->carried[k].length, &m->carried[k].length));
  }
  return NULL;
}

status hlo_bind(arena *a, const hlo_module *m, const shape *inputs, hlo_module **out) {
  binding b = {.dims = m->dims};
  for (uint32_t k = 0; k < m->entry->n_params; k++) {
    TRY(check_rank(m, k, &inputs[k]));
    bind_symbols(a, &b, &m->entry->params[k]->shapes[0], &inputs[k]);
  }
  for (uint32_t k = 0; k < m->entry->n_params; k++) {
    TRY(check_input(a, &b, m, k, &inputs[k]));
  }
  TRY(check_guards(a, &b));
  *out = hlo_module_clone(a, m);
  status s = hlo_bind_sizes(*out, value_of, &b);
  if (!b.missing) {
    return s;
  }
  status_free(s); /* the cause is the symbol that has no value */
  return status_error(STATUS_INVALID_ARGUMENT, "no input tells the size %s", dim_print(a, b.dims, b.missing));
}

/* --- replacing dimensions by other expressions --- */

static void map_instr(hlo_instr *i, dim (*map)(void *data, dim d), void *data) {
  for (uint32_t k = 0; k < i->n_results; k++) {
    for (int d = 0; d < i->shapes[k].rank; d++) {
      i->shapes[k].dims[d] = map(data, i->shapes[k].dims[d]);
    }
  }
  for (uint32_t k = 0; k < hlo_info(i)->n_attrs; k++) {
    hlo_attr *v = &i->attrs[k];
    hlo_attr_kind kind = hlo_attr_get_info(hlo_info(i)->attrs[k])->kind;
    if (kind == HLO_KIND_DIMS || kind == HLO_KIND_SIGNED_DIMS) {
      v->ints = arena_memdup(i->parent->module->arena, v->ints, v->n * sizeof *v->ints);
      for (uint32_t j = 0; j < v->n; j++) {
        ((dim *)v->ints)[j] = map(data, v->ints[j]);
      }
    }
  }
}

void hlo_map_dims(hlo_module *m, dim (*map)(void *data, dim d), void *data) {
  for (uint32_t k = 0; k < m->n_computations; k++) {
    HLO_FOR_EACH(i, m->computations[k]) { map_instr(i, map, data); }
  }
  for (uint32_t k = 0; m->carried && k < m->entry->n_roots; k++) {
    m->carried[k].length = map(data, m->carried[k].length);
  }
}

/* --- queries --- */

static bool list_is_static(const hlo_attr *v) {
  for (uint32_t k = 0; k < v->n; k++) {
    if (!dim_is_const(v->ints[k])) {
      return false;
    }
  }
  return true;
}

bool hlo_instr_is_static(const hlo_instr *i) {
  for (uint32_t k = 0; k < i->n_results; k++) {
    if (!shape_is_static(&i->shapes[k])) {
      return false;
    }
  }
  for (uint32_t k = 0; k < hlo_info(i)->n_attrs; k++) {
    if (hlo_attr_get_info(hlo_info(i)->attrs[k])->kind == HLO_KIND_DIMS && !list_is_static(&i->attrs[k])) {
      return false;
    }
  }
  return i->op != HLO_SIZES;
}

bool hlo_is_static(const hlo_module *m) {
  for (uint32_t k = 0; k < m->n_computations; k++) {
    HLO_FOR_EACH(i, m->computations[k]) {
      if (!hlo_instr_is_static(i)) {
        return false;
      }
    }
  }
  return true;
}
