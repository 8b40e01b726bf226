/* shape_rules.c - shape rules of structure, calls and elementwise operations, and the checks that all rules share. */
#include "hlo/ir/shape_rules.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define INVALID STATUS_INVALID_MODEL

status hlo_check_arity(hlo_op op, uint32_t n_operands, uint32_t n_results) {
  const hlo_op_info *info = hlo_op_get_info(op);
  CHECK_THAT(n_operands <= HLO_MAX_VALUES && n_results <= HLO_MAX_VALUES, STATUS_RESOURCE,
             "%s has %u operands and %u results; more than %d are not supported", info->name, n_operands, n_results,
             HLO_MAX_VALUES);
  CHECK_THAT(n_operands >= (uint32_t)info->min_operands, INVALID, "%s has %u operands; at least %d are needed",
             info->name, n_operands, info->min_operands);
  CHECK_THAT(info->max_operands == HLO_ANY || n_operands <= (uint32_t)info->max_operands, INVALID,
             "%s has %u operands; at most %d are allowed", info->name, n_operands, info->max_operands);
  CHECK_THAT(info->n_results == HLO_ANY || n_results == (uint32_t)info->n_results, INVALID,
             "%s has %u results instead of %d", info->name, n_results, info->n_results);
  return NULL;
}

/* --- shared checks --- */

unsigned shape_types(dtype t) {
  switch (dtype_get_info(t)->kind) {
    case DTYPE_CLASS_BOOL: return TYPES_PRED;
    case DTYPE_CLASS_SIGNED:
    case DTYPE_CLASS_UNSIGNED: return TYPES_INT;
    case DTYPE_CLASS_FLOAT: return TYPES_FLOAT;
    case DTYPE_CLASS_COMPLEX: return TYPES_COMPLEX;
    case DTYPE_CLASS_STRING: return TYPES_STRING;
    case DTYPE_CLASS_NONE: break;
  }
  return 0;
}

/* Writes a set of types as text: "pred, integer or float". */
static const char *types_text(char *text, size_t size, unsigned types) {
  static const char *const names[] = {"pred", "integer", "float", "complex", "string"};
  size_t n = 0;
  text[0] = '\0';
  for (int k = 0; k < 5; k++) {
    if (types >> k & 1) {
      const char *comma = n == 0 ? "" : types >> (k + 1) ? ", " : " or ";
      n += (size_t)snprintf(text + n, size - n, "%s%s", comma, names[k]);
    }
  }
  return text;
}

status shape_need_types(const hlo_instr *i, dim_table *dims, uint32_t k, unsigned types) {
  const shape *s = shape_of(i, k);
  char text[64];
  CHECK_THAT(s->kind == SHAPE_ARRAY, INVALID, "operand %u is %s; an array is needed", k, SHAPE_STR(dims, s));
  CHECK_THAT(shape_types((dtype)s->type) & types, INVALID, "operand %u is %s; its type must be %s", k,
             SHAPE_STR(dims, s), types_text(text, sizeof text, types));
  return NULL;
}

status shape_need_scalar(const hlo_instr *i, dim_table *dims, uint32_t k, dtype type) {
  const shape *s = shape_of(i, k);
  CHECK_THAT(s->kind == SHAPE_ARRAY && s->rank == 0 && s->type == type, INVALID, "operand %u is %s instead of %s[]", k,
             SHAPE_STR(dims, s), dtype_name(type));
  return NULL;
}

status shape_need_same_type(const hlo_instr *i, dim_table *dims, uint32_t j, uint32_t k) {
  const shape *x = shape_of(i, j), *y = shape_of(i, k);
  CHECK_THAT(x->type == y->type && x->kind == y->kind, INVALID,
             "operand %u is %s but operand %u is %s; the element types differ", j, SHAPE_STR(dims, x), k,
             SHAPE_STR(dims, y));
  return NULL;
}

/* Returns the text of one dimension.  It is cut out of the text of a shape with that dimension. */
static const char *dim_text(char *buffer, dim_table *dims, dim d) {
  shape s = shape_make(DTYPE_PRED, 1, &d);
  shape_text(buffer, dims, &s);
  size_t from = strlen("pred["), n = strlen(buffer);
  memmove(buffer, buffer + from, n - from);
  buffer[n - from - 1] = '\0';
  return buffer;
}

status shape_need_equal(dim_table *dims, const char *what, int dimension, dim x, dim y) {
  char x_text[SHAPE_TEXT_MAX], y_text[SHAPE_TEXT_MAX];
  if (dim_equal(dims, x, y)) {
    return NULL;
  }
  bool known = dim_is_const(x) && dim_is_const(y);
  status s = status_error(known ? INVALID : STATUS_UNSUPPORTED, "%s %s %s", dim_text(x_text, dims, x),
                          known ? "!=" : "is not known to be", dim_text(y_text, dims, y));
  if (dimension >= 0) {
    return status_prefix(s, "%s %d", what, dimension);
  }
  status named = status_error(status_get_code(s), "%s %s", what, status_message(s));
  status_free(s);
  return named;
}

status shape_need_same_dims(dim_table *dims, const char *x_name, const shape *x, const char *y_name, const shape *y) {
  bool equal = x->rank == y->rank;
  for (int k = 0; k < x->rank && equal; k++) {
    equal = dim_equal(dims, x->dims[k], y->dims[k]);
  }
  if (equal) {
    return NULL;
  }
  bool known = x->rank != y->rank;
  for (int k = 0; k < x->rank && !known; k++) {
    known = x->dims[k] != y->dims[k] && dim_is_const(x->dims[k]) && dim_is_const(y->dims[k]);
  }
  return status_error(known ? INVALID : STATUS_UNSUPPORTED, "%s is %s but %s is %s; the dimensions %s", x_name,
                      SHAPE_STR(dims, x), y_name, SHAPE_STR(dims, y),
                      known ? "must be equal" : "are not known to be equal");
}

status shape_need_fits(dim_table *dims, const char *what, int dimension, dim x, dim limit) {
  char x_text[SHAPE_TEXT_MAX], y_text[SHAPE_TEXT_MAX];
  bool whole = x != DIM_OVERFLOW && dim_get_kind(dims, x) != DIM_NEG;
  CHECK_THAT(whole, INVALID, "%s %d is negative or too large", what, dimension);
  dim laid_x = dim_layout(dims, x), laid_limit = dim_layout(dims, limit);
  CHECK_THAT(!dim_is_const(laid_x) || !dim_is_const(laid_limit) || laid_x <= laid_limit, INVALID,
             "%s %d: %s is greater than %s", what, dimension, dim_text(x_text, dims, x), dim_text(y_text, dims, limit));
  return NULL;
}

status shape_need_window(dim_table *dims, const char *what, int dimension, dim x, dim limit) {
  char x_text[SHAPE_TEXT_MAX], y_text[SHAPE_TEXT_MAX];
  int64_t likely;
  TRY(shape_need_fits(dims, what, dimension, x, limit));
  bool larger = !dim_at_most(dims, x, limit) && dim_hint(dims, x, &likely) && dim_hint(dims, limit, &likely);
  CHECK_THAT(!larger, INVALID, "%s %d: %s is greater than %s", what, dimension, dim_text(x_text, dims, x),
             dim_text(y_text, dims, limit));
  return NULL;
}

status shape_need_dimension(const hlo_instr *i, hlo_attr_id id, int rank) {
  int64_t d = hlo_int(i, id);
  CHECK_THAT(d >= 0 && d < rank, INVALID, "%s %" PRId64 " is outside of rank %d", hlo_attr_get_info(id)->name, d, rank);
  return NULL;
}

status shape_need_count(const hlo_instr *i, hlo_attr_id id, uint32_t n) {
  CHECK_THAT(hlo_n_ints(i, id) == n, INVALID, "%s has %u entries instead of %u", hlo_attr_get_info(id)->name,
             hlo_n_ints(i, id), n);
  return NULL;
}

status shape_need_range(const hlo_instr *i, hlo_attr_id id, uint32_t n, int64_t low, int64_t high) {
  TRY(shape_need_count(i, id, n));
  for (uint32_t k = 0; k < n; k++) {
    int64_t v = hlo_ints(i, id)[k];
    CHECK_THAT(v >= low && v <= high, INVALID, "%s[%u] is %" PRId64 ", outside of %" PRId64 "..%" PRId64,
               hlo_attr_get_info(id)->name, k, v, low, high);
  }
  return NULL;
}

status shape_need_dims(const hlo_instr *i, hlo_attr_id id, int rank, bool increasing, uint32_t *seen) {
  const char *name = hlo_attr_get_info(id)->name;
  const int64_t *list = hlo_ints(i, id);
  for (uint32_t k = 0; k < hlo_n_ints(i, id); k++) {
    CHECK_THAT(list[k] >= 0 && list[k] < rank, INVALID, "%s[%u] is %" PRId64 ", outside of rank %d", name, k, list[k],
               rank);
    CHECK_THAT(!(*seen >> list[k] & 1), INVALID, "%s names dimension %" PRId64 " which is already in use", name,
               list[k]);
    CHECK_THAT(!increasing || k == 0 || list[k] > list[k - 1], INVALID, "%s must be increasing", name);
    *seen |= (uint32_t)1 << list[k];
  }
  return NULL;
}

/* The types that each reducer supports; REPLACE is only for scatter. */
static const unsigned reducer_types[] = {
    [HLO_REDUCE_ADD] = TYPES_NUMBER,  [HLO_REDUCE_MUL] = TYPES_NUMBER,  [HLO_REDUCE_MAX] = TYPES_ORDERED,
    [HLO_REDUCE_MIN] = TYPES_ORDERED, [HLO_REDUCE_AND] = TYPES_BITS,    [HLO_REDUCE_OR] = TYPES_BITS,
    [HLO_REDUCE_XOR] = TYPES_BITS,    [HLO_REDUCE_REPLACE] = TYPES_ALL,
};

status shape_need_reducer(const hlo_instr *i, dim_table *dims, uint32_t k) {
  int64_t r = hlo_int(i, HLO_ATTR_REDUCER);
  const char *name = hlo_enum_name(HLO_KIND_REDUCER, r);
  CHECK_THAT(name && (r != HLO_REDUCE_REPLACE || i->op == HLO_SCATTER), INVALID, "reducer %s is not allowed here",
             name ? name : "?");
  return status_prefix(shape_need_types(i, dims, k, reducer_types[r]), "reducer %s", name);
}

status shape_finish(const hlo_instr *i, const shape *result) { return shape_check(result, hlo_info(i)->name); }

/* There are d - 1 gaps between d elements, or none if d is 0; the answer whether d is 0 becomes a guard.  The
 * expression max(d - 1, 0) would need no guard, but an extent that contains it would not be recognised as equal to an
 * expression such as 2*d. */
static dim pad_expression(dim_table *dims, dim d, int64_t around, int64_t interior) {
  int64_t likely;
  bool empty = interior && !dim_at_most(dims, 1, d) && dim_hint(dims, d, &likely);
  dim holes = interior && !empty ? dim_mul(dims, dim_add_const(dims, d, -1), interior) : 0;
  return dim_add_const(dims, dim_add(dims, d, holes), around);
}

/* The padded extent of a constant dimension is computed here and not by dim_*, since intermediate results may be
 * negative. */
dim shape_pad_dim(dim_table *dims, dim d, int64_t low, int64_t high, int64_t interior) {
  if (d == DIM_OVERFLOW) {
    return DIM_OVERFLOW;
  }
  if (!dim_is_const(d)) {
    return pad_expression(dims, d, low + high, interior);
  }
  int64_t n = 0;
  if (__builtin_mul_overflow(d > 0 ? d - 1 : 0, interior, &n) || __builtin_add_overflow(n, d + low + high, &n) ||
      n < 0 || n > DIM_MAX) {
    return DIM_OVERFLOW;
  }
  return n;
}

/* --- structure and calls --- */

status hlo_shape_declared(const hlo_instr *i, dim_table *dims, shape *results) {
  (void)dims;
  for (uint32_t k = 0; k < i->n_results; k++) {
    CHECK_THAT(results[k].type != DTYPE_INVALID || results[k].kind != SHAPE_ARRAY, INVALID, "result %u has no type", k);
    TRY(shape_finish(i, &results[k]));
  }
  return NULL;
}

status hlo_shape_check(const hlo_instr *i, dim_table *dims, shape *results) {
  (void)results;
  return shape_need_types(i, dims, 0, TYPES_INT);
}

status hlo_shape_constant(const hlo_instr *i, dim_table *dims, shape *results) {
  const literal *l = hlo_attr_of(i, HLO_ATTR_VALUE)->value;
  CHECK_THAT(l != NULL, INVALID, "the value is missing");
  CHECK_THAT(l->shape.kind == SHAPE_ARRAY && l->shape.type != DTYPE_INVALID && shape_is_static(&l->shape), INVALID,
             "the value is %s; only arrays of constant extents are values", SHAPE_STR(dims, &l->shape));
  results[0] = l->shape;
  return shape_finish(i, &results[0]);
}

status hlo_shape_sizes(const hlo_instr *i, dim_table *dims, shape *results) {
  const shape *s = &results[0];
  CHECK_THAT(s->kind == SHAPE_ARRAY && s->rank <= 1 && (dtype_is_int((dtype)s->type) || dtype_is_float((dtype)s->type)),
             INVALID, "the result is %s; a list of numbers is needed", SHAPE_STR(dims, s));
  return shape_need_count(i, HLO_ATTR_ELEMENTS, s->rank && dim_is_const(s->dims[0]) ? (uint32_t)s->dims[0] : 1);
}

/* Sets *out to computation number k of `i`, which must call n computations. */
static status get_callee(const hlo_instr *i, uint32_t k, uint32_t n, const hlo_computation **out) {
  const hlo_attr *a = hlo_attr_of(i, HLO_ATTR_COMPUTATIONS);
  CHECK_THAT(a->n_comps == n, INVALID, "%u computations are named instead of %u", a->n_comps, n);
  CHECK_THAT(a->comps[k] != NULL, INVALID, "computation %u is missing", k);
  *out = a->comps[k];
  return NULL;
}

/* Checks that operands [first, ...) of i have the shapes of the parameters of c. */
static status check_args(const hlo_instr *i, dim_table *dims, const hlo_computation *c, uint32_t first) {
  CHECK_THAT(c->n_params == i->n_operands - first, INVALID, "%s takes %u arguments but gets %u", c->name, c->n_params,
             i->n_operands - first);
  for (uint32_t k = 0; k < c->n_params; k++) {
    const shape *want = &c->params[k]->shapes[0], *have = shape_of(i, first + k);
    CHECK_THAT(shape_equal(want, have), INVALID, "operand %u is %s but parameter %u of %s is %s", first + k,
               SHAPE_STR(dims, have), k, c->name, SHAPE_STR(dims, want));
  }
  return NULL;
}

/* Sets results[], the shapes of i's results, to the shapes of c's roots.  If `compare`, first checks that results[] has
 * these shapes already. */
static status take_roots(const hlo_instr *i, dim_table *dims, const hlo_computation *c, bool compare, shape *results) {
  CHECK_THAT(c->n_roots == i->n_results, INVALID, "%s returns %u values but there are %u results", c->name, c->n_roots,
             i->n_results);
  for (uint32_t k = 0; k < c->n_roots; k++) {
    const shape *s = hlo_shape(c->roots[k]);
    CHECK_THAT(!compare || shape_equal(s, &results[k]), INVALID, "%s returns %s as value %u; %s is needed", c->name,
               SHAPE_STR(dims, s), k, SHAPE_STR(dims, &results[k]));
    results[k] = *s;
  }
  return NULL;
}

status hlo_shape_called(const hlo_instr *i, dim_table *dims, shape *results) {
  const hlo_computation *c = NULL;
  TRY(get_callee(i, 0, 1, &c));
  TRY(check_args(i, dims, c, 0));
  CHECK_THAT(c->n_roots > 0 || i->op != HLO_FUSION, INVALID, "%s returns nothing", c->name);
  return take_roots(i, dims, c, false, results);
}

status hlo_shape_while(const hlo_instr *i, dim_table *dims, shape *results) {
  const hlo_computation *condition = NULL, *body = NULL;
  TRY(get_callee(i, 0, 2, &condition));
  TRY(get_callee(i, 1, 2, &body));
  CHECK_THAT(i->n_results == i->n_operands, INVALID, "%u results for %u carried values", i->n_results, i->n_operands);
  TRY(check_args(i, dims, condition, 0));
  TRY(check_args(i, dims, body, 0));
  const shape pred = shape_scalar(DTYPE_PRED);
  CHECK_THAT(condition->n_roots == 1 && shape_equal(hlo_shape(condition->roots[0]), &pred), INVALID,
             "the condition %s must return one pred[]", condition->name);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    results[k] = *shape_of(i, k);
  }
  return take_roots(i, dims, body, true, results);
}

status hlo_shape_conditional(const hlo_instr *i, dim_table *dims, shape *results) {
  uint32_t n = hlo_attr_of(i, HLO_ATTR_COMPUTATIONS)->n_comps;
  bool two_way = shape_of(i, 0)->type == DTYPE_PRED;
  TRY(shape_need_scalar(i, dims, 0, two_way ? DTYPE_PRED : DTYPE_S32));
  CHECK_THAT(two_way ? n == 2 : n >= 1 && n <= HLO_MAX_BRANCHES, INVALID, "%u branches for an index of type %s", n,
             dtype_name(hlo_type(i->operands[0])));
  for (uint32_t k = 0; k < n; k++) {
    const hlo_computation *c = NULL;
    TRY(get_callee(i, k, n, &c));
    TRY(check_args(i, dims, c, 1));
    TRY(take_roots(i, dims, c, k > 0, results));
  }
  return NULL;
}

/* --- one operand --- */

static dtype part_type(dtype t) { return t == DTYPE_C64 ? DTYPE_F32 : t == DTYPE_C128 ? DTYPE_F64 : t; }

static status unary_as(const hlo_instr *i, dim_table *dims, unsigned types, shape *results) {
  TRY(shape_need_types(i, dims, 0, types));
  results[0] = *shape_of(i, 0);
  return NULL;
}

status hlo_shape_unary(const hlo_instr *i, dim_table *dims, shape *results) {
  return unary_as(i, dims, TYPES_NUMBER, results);
}

status hlo_shape_unary_abs(const hlo_instr *i, dim_table *dims, shape *results) {
  TRY(unary_as(i, dims, TYPES_NUMBER, results));
  results[0].type = (uint8_t)part_type((dtype)results[0].type);
  return NULL;
}

status hlo_shape_unary_bits(const hlo_instr *i, dim_table *dims, shape *results) {
  return unary_as(i, dims, TYPES_BITS, results);
}

status hlo_shape_unary_float(const hlo_instr *i, dim_table *dims, shape *results) {
  return unary_as(i, dims, TYPES_FLOAT, results);
}

status hlo_shape_unary_pred(const hlo_instr *i, dim_table *dims, shape *results) {
  TRY(unary_as(i, dims, TYPES_FLOAT, results));
  results[0].type = DTYPE_PRED;
  return NULL;
}

status hlo_shape_unary_part(const hlo_instr *i, dim_table *dims, shape *results) {
  TRY(unary_as(i, dims, TYPES_COMPLEX, results));
  results[0].type = (uint8_t)part_type((dtype)results[0].type);
  return NULL;
}

/* Checks a declared result: an array with the dimensions of operand 0. */
static status check_declared_like(const hlo_instr *i, dim_table *dims, const shape *result, unsigned types) {
  TRY(shape_need_types(i, dims, 0, types));
  CHECK_THAT(result->kind == SHAPE_ARRAY && (shape_types((dtype)result->type) & types), INVALID, "cannot convert to %s",
             SHAPE_STR(dims, result));
  TRY(shape_need_same_dims(dims, "operand 0", shape_of(i, 0), "the result", result));
  return shape_finish(i, result);
}

status hlo_shape_convert(const hlo_instr *i, dim_table *dims, shape *results) {
  CHECK_THAT(hlo_enum_name(HLO_KIND_ROUNDING, hlo_int(i, HLO_ATTR_ROUNDING)), INVALID, "the rounding is unknown");
  return check_declared_like(i, dims, &results[0], TYPES_ALL & ~(unsigned)TYPES_STRING);
}

status hlo_shape_bitcast(const hlo_instr *i, dim_table *dims, shape *results) {
  TRY(check_declared_like(i, dims, &results[0], TYPES_ALL));
  const dtype_info *from = dtype_get_info(hlo_type(i->operands[0])), *to = dtype_get_info((dtype)results[0].type);
  CHECK_THAT(from->bits == to->bits, INVALID, "%s has %d bits but %s has %d", from->name, from->bits, to->name,
             to->bits);
  return NULL;
}

/* --- two and three operands --- */

static status binary_as(const hlo_instr *i, dim_table *dims, unsigned types, shape *results) {
  TRY(shape_need_types(i, dims, 0, types));
  TRY(shape_need_types(i, dims, 1, types));
  TRY(shape_need_same_type(i, dims, 0, 1));
  TRY(shape_need_same_dims(dims, "A", shape_of(i, 0), "B", shape_of(i, 1)));
  results[0] = *shape_of(i, 0);
  return NULL;
}

status hlo_shape_binary(const hlo_instr *i, dim_table *dims, shape *results) {
  unsigned types = TYPES_NUMBER;
  if (i->op == HLO_MAX || i->op == HLO_MIN || i->op == HLO_REM) {
    types = TYPES_REAL;
  } else if (i->op == HLO_ATAN2) {
    types = TYPES_FLOAT;
  }
  return binary_as(i, dims, types, results);
}

status hlo_shape_binary_bits(const hlo_instr *i, dim_table *dims, shape *results) {
  return binary_as(i, dims, i->op == HLO_SHL || i->op == HLO_SHR ? TYPES_INT : TYPES_BITS, results);
}

status hlo_shape_complex(const hlo_instr *i, dim_table *dims, shape *results) {
  TRY(binary_as(i, dims, TYPES_FLOAT, results));
  CHECK_THAT(results[0].type == DTYPE_F32 || results[0].type == DTYPE_F64, INVALID,
             "the parts are %s; they must be f32 or f64", SHAPE_STR(dims, &results[0]));
  results[0].type = results[0].type == DTYPE_F32 ? DTYPE_C64 : DTYPE_C128;
  return NULL;
}

status hlo_shape_compare(const hlo_instr *i, dim_table *dims, shape *results) {
  int64_t c = hlo_int(i, HLO_ATTR_COMPARISON);
  CHECK_THAT(hlo_enum_name(HLO_KIND_COMPARISON, c), INVALID, "the comparison is unknown");
  TRY(binary_as(i, dims, c == HLO_EQ || c == HLO_NE ? TYPES_ALL : TYPES_ORDERED, results));
  results[0].type = DTYPE_PRED;
  return NULL;
}

status hlo_shape_select(const hlo_instr *i, dim_table *dims, shape *results) {
  TRY(shape_need_types(i, dims, 0, TYPES_PRED));
  TRY(shape_need_types(i, dims, 1, TYPES_ALL));
  TRY(shape_need_same_type(i, dims, 1, 2));
  TRY(shape_need_same_dims(dims, "operand 1", shape_of(i, 1), "operand 2", shape_of(i, 2)));
  TRY(shape_need_same_dims(dims, "operand 0", shape_of(i, 0), "operand 1", shape_of(i, 1)));
  results[0] = *shape_of(i, 1);
  return NULL;
}

status hlo_shape_clamp(const hlo_instr *i, dim_table *dims, shape *results) {
  for (uint32_t k = 0; k < 3; k++) {
    TRY(shape_need_types(i, dims, k, TYPES_REAL));
    TRY(shape_need_same_type(i, dims, 1, k));
    if (shape_of(i, k)->rank != 0) {
      TRY(shape_need_same_dims(dims, k ? "high" : "low", shape_of(i, k), "the operand", shape_of(i, 1)));
    }
  }
  results[0] = *shape_of(i, 1);
  return NULL;
}
