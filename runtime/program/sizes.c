/* sizes.c - see sizes.h. */
#include "runtime/program/sizes.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/program/told.h"

#define MISMATCH (STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE)

/* --- checking --- */

/* Returns true if s is a number of at most DIM_MAX or one of the first n nodes. */
static bool is_before(uint32_t n, rt_size s) { return s >= -(int64_t)n && s <= DIM_MAX; }

static bool is_symbol(const rt_program *p, const rt_size_node *n) {
  return n->name && n->a >= 0 && n->a < p->n_params && n->b >= 0 && n->b < p->params[n->a].shape.rank;
}

static status check_node(const rt_program *p, uint32_t k) {
  const rt_size_node *n = &p->sizes[k];
  bool right = n->op == DIM_SYMBOL ? is_symbol(p, n)
                                   : n->op >= DIM_ADD && n->op <= DIM_NEG && is_before(k, n->a) && is_before(k, n->b);
  CHECK_THAT(right, STATUS_INVALID_FILE, "size %" PRIu32 " is damaged", k);
  return NULL;
}

static status check_guard(const rt_program *p, uint32_t k) {
  const rt_guard *g = &p->guards[k];
  CHECK_THAT(g->relation < DIM_RELATION_COUNT && is_before(p->n_sizes, g->a) && is_before(p->n_sizes, g->b),
             STATUS_INVALID_FILE, "guard %" PRIu32 " is damaged", k);
  return NULL;
}

static status check_slot(const rt_program *p, uint32_t k) {
  const rt_slot *s = &p->slots[k];
  CHECK_THAT(is_before(p->n_sizes, s->bytes) && s->first <= s->last && s->last < INT32_MAX, STATUS_INVALID_FILE,
             "slot %" PRIu32 " of the arena is damaged", k);
  return NULL;
}

static status check_io(const rt_program *p, const rt_io *io, const char *what) {
  bool right = true;
  for (int k = 0; k < io->shape.rank; k++) {
    right &= is_before(p->n_sizes, io->shape.dims[k]);
  }
  CHECK_THAT(right && !(io->value && !shape_is_static(&io->shape)), STATUS_INVALID_FILE, "%s '%s' is damaged", what,
             io->name);
  return NULL;
}

/* Checks that a carried result has the shape of its parameter, and that no two are carried in the same one. */
static status check_carried(const rt_program *p, uint32_t k) {
  const rt_io *io = &p->results[k];
  bool right = io->carried <= p->n_params && is_before(p->n_sizes, io->length) &&
               (io->carried ? shape_equal(&p->params[io->carried - 1].shape, &io->shape) && !io->is_size
                            : !io->in_place && !io->has_room) &&
               (!io->has_room || io->axis < io->shape.rank);
  for (uint32_t j = 0; j < k && io->carried; j++) {
    right &= p->results[j].carried != io->carried;
  }
  CHECK_THAT(right, STATUS_INVALID_FILE, "output '%s' is damaged", io->name);
  return NULL;
}

status rt_sizes_check(const rt_program *p) {
  for (uint32_t k = 0; k < p->n_sizes; k++) {
    TRY(check_node(p, k));
  }
  for (uint32_t k = 0; k < p->n_guards; k++) {
    TRY(check_guard(p, k));
  }
  for (uint32_t k = 0; k < p->n_slots; k++) {
    TRY(check_slot(p, k));
  }
  for (uint32_t k = 0; k < p->n_params; k++) {
    TRY(check_io(p, &p->params[k], "input"));
  }
  TRY(rt_told_check(p));
  for (uint32_t k = 0; k < p->n_results; k++) {
    TRY(check_io(p, &p->results[k], "output"));
    TRY(check_carried(p, k));
  }
  return NULL;
}

/* --- evaluating --- */

static int64_t evaluate(const rt_size_node *n, const shape *inputs, const int64_t *values) {
  if (n->op == DIM_SYMBOL) {
    int64_t size = inputs[n->a].dims[n->b];
    return size <= DIM_MAX ? size : RT_NO_SIZE;
  }
  int64_t a = rt_size_value(values, n->a), b = rt_size_value(values, n->b), out;
  return a != RT_NO_SIZE && b != RT_NO_SIZE && dim_operate((dim_kind)n->op, a, b, &out) ? out : RT_NO_SIZE;
}

static status check_kind(const rt_io *io, const shape *given) {
  CHECK_THAT(given->kind == SHAPE_ARRAY && given->type == io->shape.type && given->rank == io->shape.rank, MISMATCH,
             "input '%s' is %s instead of %s", io->name, SHAPE_STR(NULL, given), SHAPE_STR(NULL, &io->shape));
  CHECK_THAT(shape_is_static(given), MISMATCH, "input '%s' is %s, which has no size", io->name, SHAPE_STR(NULL, given));
  return shape_check(given, io->name);
}

/* Returns the expression of which dimension `d` of a parameter must be a value, such as 32*width.m for a multiple of
 * 32; NULL if the dimension must have a certain size. */
static const char *expression_of(const rt_program *p, uint32_t param, int d) {
  const char *name = NULL;
  for (uint32_t k = 0; k < p->n_sizes && !name; k++) {
    const rt_size_node *n = &p->sizes[k];
    name = n->op == DIM_SYMBOL && n->a == param && n->b == d ? n->name : NULL;
  }
  return name;
}

static status wrong_size(const rt_program *p, uint32_t param, const shape *given, int d, int64_t size) {
  const rt_io *io = &p->params[param];
  const char *expression = expression_of(p, param, d);
  char number[32];
  snprintf(number, sizeof number, "%" PRId64, size);
  if (io->told) {
    return status_error(MISMATCH, "element %" PRIu32 " of input '%s' is %" PRId64 "; it must be %s", io->element,
                        io->name, given->dims[d], expression ? expression : number);
  }
  return status_error(MISMATCH, "input '%s' is %s; its dimension %d must be %s", io->name, SHAPE_STR(NULL, given), d,
                      expression ? expression : number);
}

static status check_dims(const rt_program *p, uint32_t param, const shape *given, const int64_t *values) {
  const rt_io *io = &p->params[param];
  for (int k = 0; k < given->rank; k++) {
    int64_t size = rt_size_value(values, io->shape.dims[k]);
    CHECK_THAT(size != RT_NO_SIZE, MISMATCH, "dimension %d of input '%s' cannot be computed for these inputs", k,
               io->name);
    TRY(given->dims[k] == size ? NULL : wrong_size(p, param, given, k, size));
  }
  return NULL;
}

static status check_holds(const rt_guard *g, const int64_t *values) {
  int64_t a = rt_size_value(values, g->a), b = rt_size_value(values, g->b);
  bool holds = a != RT_NO_SIZE && b != RT_NO_SIZE && dim_relation_holds((dim_relation)g->relation, a, b);
  CHECK_THAT(holds, MISMATCH, "%s: the program is for sizes with %s", g->source, g->text);
  return NULL;
}

static void evaluate_all(const rt_program *p, const shape *inputs, int64_t *values) {
  for (uint32_t k = 0; k < p->n_sizes; k++) {
    values[k] = evaluate(&p->sizes[k], inputs, values);
  }
}

int64_t rt_sizes_room(const rt_program *p, const shape *inputs, int64_t *values) {
  int64_t most = 0;
  evaluate_all(p, inputs, values);
  for (uint32_t k = 0; k < p->n_results; k++) {
    int64_t length = p->results[k].has_room ? rt_size_value(values, p->results[k].length) : 0;
    most = length > most ? length : most;
  }
  return most;
}

status rt_sizes_evaluate(const rt_program *p, const shape *inputs, int64_t *values) {
  for (uint32_t k = 0; k < p->n_params; k++) {
    TRY(check_kind(&p->params[k], &inputs[k]));
  }
  evaluate_all(p, inputs, values);
  for (uint32_t k = 0; k < p->n_params; k++) {
    TRY(check_dims(p, k, &inputs[k], values));
  }
  for (uint32_t k = 0; k < p->n_guards; k++) {
    TRY(check_holds(&p->guards[k], values));
  }
  return NULL;
}
