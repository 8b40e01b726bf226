/* eval.c - the table of operations, and the functions of eval.h. */
#include "backend_ref/eval.h"

#include "backend_ref/ref.h"
#include "hlo/ir/bind.h"

/* The element types that an operation supports, in operands and results. */
enum { NUMBERS = 1, COMPLEX = 2, STRINGS = 4, ANYTHING = NUMBERS | COMPLEX | STRINGS };

typedef struct row {
  ref_fn *fn;
  int types;
} row;

/* The function of each operation, and the types of arrays that it takes.  An operation without a row is computed by
 * elementwise.c and takes only NUMBERS (row_of). */
static const row table[HLO_OP_COUNT] = {
    [HLO_CONSTANT] = {ref_constant, ANYTHING},
    [HLO_FUSION] = {ref_called, ANYTHING},
    [HLO_COMPOSITE] = {ref_called, ANYTHING},
    [HLO_WHILE] = {ref_while, ANYTHING},
    [HLO_CONDITIONAL] = {ref_conditional, ANYTHING},

    [HLO_CHECK] = {ref_check, NUMBERS},
    [HLO_ABS] = {ref_unary, NUMBERS | COMPLEX},
    [HLO_NEG] = {ref_unary, NUMBERS | COMPLEX},
    [HLO_IS_FINITE] = {ref_is_finite, NUMBERS},
    [HLO_REAL] = {ref_part, NUMBERS | COMPLEX},
    [HLO_IMAG] = {ref_part, NUMBERS | COMPLEX},
    [HLO_CONVERT] = {ref_convert, NUMBERS | COMPLEX},
    [HLO_BITCAST] = {ref_bitcast, ANYTHING},

    [HLO_ADD] = {ref_binary, NUMBERS | COMPLEX},
    [HLO_SUB] = {ref_binary, NUMBERS | COMPLEX},
    [HLO_MUL] = {ref_binary, NUMBERS | COMPLEX},
    [HLO_DIV] = {ref_binary, NUMBERS | COMPLEX},
    [HLO_COMPLEX] = {ref_make_complex, NUMBERS | COMPLEX},
    [HLO_COMPARE] = {ref_compare, ANYTHING},
    [HLO_SELECT] = {ref_select, ANYTHING},
    [HLO_CLAMP] = {ref_clamp_op, NUMBERS},

    [HLO_SIZES] = {ref_sizes, NUMBERS},
    [HLO_EMPTY] = {ref_empty, NUMBERS | COMPLEX},
    [HLO_COPY] = {ref_copy, ANYTHING},
    [HLO_IOTA] = {ref_iota, NUMBERS | COMPLEX},
    [HLO_BROADCAST] = {ref_broadcast, ANYTHING},
    [HLO_RESHAPE] = {ref_copy, ANYTHING},
    [HLO_TRANSPOSE] = {ref_transpose, ANYTHING},
    [HLO_REVERSE] = {ref_reverse, ANYTHING},
    [HLO_SLICE] = {ref_slice, ANYTHING},
    [HLO_PAD] = {ref_pad, ANYTHING},
    [HLO_CONCAT] = {ref_concatenate, ANYTHING},
    [HLO_DYNAMIC_SLICE] = {ref_dynamic_slice, ANYTHING},
    [HLO_GATHER] = {ref_gather, ANYTHING},

    [HLO_RUN_SEED] = {ref_run_seed, NUMBERS},
    [HLO_RNG] = {ref_rng, NUMBERS},

    [HLO_DYNAMIC_UPDATE_SLICE] = {ref_dynamic_update_slice, ANYTHING},
    [HLO_SCATTER] = {ref_scatter, ANYTHING},
    [HLO_REDUCE] = {ref_reduce, NUMBERS | COMPLEX},
    [HLO_ARG_REDUCE] = {ref_arg_reduce, NUMBERS},
    [HLO_REDUCE_WINDOW] = {ref_reduce_window, NUMBERS | COMPLEX},
    [HLO_ARG_REDUCE_WINDOW] = {ref_arg_reduce_window, NUMBERS},
    [HLO_CUMULATIVE] = {ref_cumulative, NUMBERS | COMPLEX},
    [HLO_SORT] = {ref_sort, ANYTHING}, /* ref_sort itself checks that the keys are numbers */
    [HLO_NMS] = {ref_nms, NUMBERS},
    [HLO_DOT] = {ref_dot, NUMBERS | COMPLEX},
    [HLO_CONVOLUTION] = {ref_convolution, NUMBERS | COMPLEX},
};

static row row_of(hlo_op op) { return table[op].fn ? table[op] : (row){ref_elementwise(op), NUMBERS}; }

/* --- functions for the operations --- */

void *ref_result(ref_call *c, uint32_t k) {
  void *data;
  c->out[k] = literal_new(c->a, c->out[k].shape, &data);
  return data;
}

void ref_alias(ref_call *c) {
  c->out[0].data = c->in[0].data;
  if (c->out_slots && c->in_slots) {
    c->out_slots[0] = ref_slot_retain(c->in_slots[0]);
  }
}

static void destroy_scratch(void *data) {
  arena **scratch = data;
  arena_destroy(*scratch);
  *scratch = NULL;
}

arena *ref_scratch(ref_call *c) {
  if (!c->scratch) { /* if memory runs out, a call here does not return, so the cleanup is registered before the arena
                        is made */
    arena **scratch = ARENA_NEW(c->a, arena *);
    arena_cleanup(c->a, destroy_scratch, scratch);
    *scratch = arena_create(arena_budget(c->a));
    c->scratch = scratch;
  }
  return *c->scratch;
}

status ref_unsupported(const hlo_instr *i) {
  const shape *s = i->n_operands ? hlo_shape(i->operands[0]) : i->n_results ? &i->shapes[0] : NULL;
  return status_error(STATUS_UNSUPPORTED | STATUS_ABOUT_TYPE, "%s of %s is not in the reference evaluator",
                      hlo_info(i)->name, s ? SHAPE_STR(NULL, s) : "nothing");
}

/* Values that are not arrays are supported only by operations that call computations. */
static bool takes_shape(const row *r, const hlo_instr *i, const shape *s) {
  if (s->kind != SHAPE_ARRAY) {
    return hlo_n_callees(i) > 0;
  }
  if (s->type == DTYPE_INVALID) {
    return false;
  }
  int type = dtype_is_complex(s->type) ? COMPLEX : s->type == DTYPE_STR ? STRINGS : NUMBERS;
  return r->types & type;
}

static bool takes_shapes(const hlo_instr *i) {
  const row r = row_of(i->op);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    if (!takes_shape(&r, i, hlo_shape(i->operands[k]))) {
      return false;
    }
  }
  for (uint32_t k = 0; k < i->n_results; k++) {
    if (!takes_shape(&r, i, &i->shapes[k])) {
      return false;
    }
  }
  return true;
}

/* Returns true if all sizes are constants.  Values can be computed only then. */
static bool has_static_shapes(const hlo_instr *i) {
  bool all = true;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    all &= shape_is_static(hlo_shape(i->operands[k]));
  }
  for (uint32_t k = 0; k < i->n_results; k++) {
    all &= shape_is_static(&i->shapes[k]);
  }
  return all;
}

status ref_run_op(ref_call *c) {
  const row r = row_of(c->i->op);
  if (!r.fn || !takes_shapes(c->i) || !has_static_shapes(c->i)) {
    return ref_unsupported(c->i);
  }
  for (uint32_t k = 0; k < c->i->n_results; k++) {
    c->out[k] = literal_make(c->i->shapes[k], NULL);
  }
  status s = r.fn(c);
  if (c->scratch) {
    destroy_scratch(c->scratch);
  }
  return s;
}

/* --- entries --- */

bool ref_supports(const hlo_instr *i) {
  if (i->op == HLO_PARAMETER) {
    return true;
  }
  if (!row_of(i->op).fn || !takes_shapes(i)) {
    return false;
  }
  for (uint32_t k = 0; k < hlo_n_callees(i); k++) {
    for (const hlo_instr *j = hlo_callee(i, k)->first; j; j = j->next) {
      if (!ref_supports(j)) {
        return false;
      }
    }
  }
  return true;
}

status ref_eval(const hlo_instr *i, const literal *operands, arena *a, literal *results) {
  ref_call c = {.i = i, .in = operands, .out = results, .a = a};
  if (hlo_n_callees(i)) {
    c.pool = ref_pool_create(a);
    c.in_slots = ARENA_NEW_N(a, ref_slot *, i->n_operands);
    c.out_slots = ARENA_NEW_N(a, ref_slot *, i->n_results);
  }
  return ref_run_op(&c);
}

status ref_eval_computation(const hlo_computation *c, const literal *args, arena *a, literal *roots) {
  for (uint32_t k = 0; k < c->n_params; k++) {
    const shape *want = &c->params[k]->shapes[0];
    CHECK_THAT(shape_equal(want, &args[k].shape), STATUS_INVALID_ARGUMENT, "%s: argument %u is %s, not %s", c->name, k,
               SHAPE_STR(NULL, &args[k].shape), SHAPE_STR(NULL, want));
  }
  ref_slot **slots = ARENA_NEW_N(a, ref_slot *, c->n_roots);
  return ref_run(ref_pool_create(a), c, args, NULL, roots, slots);
}

double ref_contraction_work(const hlo_instr *i) {
  const shape *x = hlo_shape(i->operands[0]), *y = hlo_shape(i->operands[1]);
  double per_result = 1;
  if (i->op == HLO_DOT) {
    for (uint32_t k = 0; k < hlo_n_ints(i, HLO_ATTR_LHS_CONTRACT); k++) {
      per_result *= (double)x->dims[hlo_ints(i, HLO_ATTR_LHS_CONTRACT)[k]];
    }
  } else {
    per_result = (double)shape_product(y, 1, y->rank);
  }
  return per_result * (double)shape_elements(&i->shapes[0]);
}

/* Returns true if the operation only moves elements of its operands, which then need not be aligned (ref_move). */
static bool only_moves(const hlo_instr *i) {
  switch (i->op) {
    case HLO_COPY:
    case HLO_RESHAPE:
    case HLO_TRANSPOSE:
    case HLO_REVERSE:
    case HLO_BROADCAST:
    case HLO_SLICE:
    case HLO_CONCAT: return true;
    default: return false;
  }
}

status ref_fold(const hlo_instr *i, arena *a, literal *results) {
  enum { SMALL = 256 };
  bool refuse = !ref_supports(i) || !has_static_shapes(i) || !hlo_instr_is_static(i) || i->op == HLO_PARAMETER ||
                hlo_n_callees(i) > 0; /* a loop might not terminate */
  if (!refuse && (i->op == HLO_BROADCAST || i->op == HLO_IOTA || i->op == HLO_RNG)) {
    refuse = shape_bytes(&i->shapes[0]) > SMALL;
  } else if (!refuse && hlo_info(i)->kind == HLO_CONTRACTION) {
    refuse = ref_contraction_work(i) > REF_MOST_WORK;
  }
  if (refuse) {
    return status_error(STATUS_UNSUPPORTED, "%s is not folded", hlo_info(i)->name);
  }
  literal *operands = ARENA_NEW_N(a, literal, i->n_operands);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    const literal *l = hlo_literal(i->operands[k]);
    CHECK_THAT(l, STATUS_UNSUPPORTED, "%s: operand %u is not a constant", hlo_info(i)->name, k);
    operands[k] = literal_make(l->shape, only_moves(i) ? l->data : literal_aligned(l, a));
  }
  return ref_eval(i, operands, a, results);
}
