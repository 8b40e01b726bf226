/* support.c - which instructions can be a kernel, and which results may overwrite an operand. */
#include "emit/element/elementwise.h"
#include "emit/kernel/special.h"
#include "emit/element/element.h"
#include "hlo/analysis/in_place_update.h"
#include "hlo/analysis/quantized.h"
#include "hlo/analysis/queries.h"
#include "hlo/analysis/row_space.h"

static bool refuse(const char **why, const char *reason) {
  if (why) {
    *why = reason;
  }
  return false;
}

static bool is_string(hlo_value v) { return hlo_type(v) == DTYPE_STR; }

static bool supports_types(const hlo_instr *i) {
  dtype t = i->n_operands ? hlo_type(i->operands[0]) : (dtype)i->shapes[0].type;
  switch (hlo_info(i)->kind) {
    case HLO_ELEMENTWISE: {
      dtype of = i->op == HLO_SELECT ? hlo_type(i->operands[1]) : t;
      if (i->op == HLO_COMPARE && t == DTYPE_STR) {
        return hlo_int(i, HLO_ATTR_COMPARISON) <= HLO_NE;
      }
      return emit_elementwise_supported(i->op, of, (dtype)i->shapes[0].type);
    }
    case HLO_REDUCTION:
    case HLO_WINDOW:
    case HLO_SCAN:
      if (i->op == HLO_ARG_REDUCE || i->op == HLO_ARG_REDUCE_WINDOW) {
        return !dtype_is_complex(t) && t != DTYPE_STR;
      }
      return emit_reduce_supported((hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER), t);
    case HLO_UPDATE: return i->op != HLO_SCATTER || emit_reduce_supported((hlo_reducer)hlo_int(i, HLO_ATTR_REDUCER), t);
    case HLO_CONTRACTION: return !is_string(i->operands[0]);
    case HLO_RANDOM: return hlo_int(i, HLO_ATTR_ALGORITHM) == HLO_PHILOX;
    default: return true;
  }
}

/* --- sizes that are not constants --- */

static bool lists_are_constant(const hlo_instr *i) {
  for (uint32_t k = 0; k < hlo_info(i)->n_attrs; k++) {
    hlo_attr_kind kind = hlo_attr_get_info(hlo_info(i)->attrs[k])->kind;
    for (uint32_t j = 0; (kind == HLO_KIND_DIMS || kind == HLO_KIND_SIGNED_DIMS) && j < i->attrs[k].n; j++) {
      if (!dim_is_const(i->attrs[k].ints[j])) {
        return false;
      }
    }
  }
  return true;
}

static bool takes_sizes(const hlo_instr *i) {
  bool all = lists_are_constant(i);
  for (uint32_t k = 0; k < i->n_results; k++) {
    all = all && shape_is_static(&i->shapes[k]);
  }
  for (uint32_t k = 0; k < i->n_operands; k++) {
    all = all && shape_is_static(hlo_shape(i->operands[k])) && i->operands[k].def->op != HLO_SIZES;
  }
  return !all;
}

bool emit_takes_sizes(const hlo_instr *i) {
  for (const hlo_instr *j = i->op == HLO_FUSION ? hlo_callee(i, 0)->first : NULL; j; j = j->next) {
    if (takes_sizes(j)) {
      return true;
    }
  }
  return takes_sizes(i);
}

/* Returns true if the emitter of the operation can take sizes as arguments.  Of a convolution, only the batch and the
 * spatial dimensions may be other than constants. */
static bool can_take_sizes(const hlo_instr *i) {
  if (i->op != HLO_CONVOLUTION) {
    return true;
  }
  const shape *x = hlo_shape(i->operands[0]);
  return shape_is_static(hlo_shape(i->operands[1])) &&
         dim_is_const(x->dims[hlo_int(i, HLO_ATTR_LAYOUT) == HLO_CHANNELS_FIRST ? 1 : x->rank - 1]);
}

static bool arrays_only(const hlo_instr *i, const char **why) {
  for (uint32_t k = 0; k < i->n_results; k++) {
    const shape *s = &i->shapes[k];
    if (s->kind != SHAPE_ARRAY || s->type == DTYPE_INVALID) {
      return refuse(why, "a value that is no array");
    }
    if (!shape_is_exact(i->parent->module->dims, s)) {
      return refuse(why, "a shape that is not known");
    }
  }
  return true;
}

/* Returns true if x and y, which are shapes of values of `i`, are known to have equally many elements. */
static bool same_elements(const hlo_instr *i, const shape *x, const shape *y) {
  dim_table *t = i->parent->module->dims;
  return shape_dim_product(t, x, 0, x->rank) == shape_dim_product(t, y, 0, y->rank);
}

/* Returns true if there is an emitter for the instruction, alone or in a fusion. */
static bool supports_one(const hlo_instr *i, const char **why) {
  if (!arrays_only(i, why)) {
    return false;
  }
  for (uint32_t k = 0; k < i->n_operands; k++) {
    if (!arrays_only(i->operands[k].def, why)) {
      return false;
    }
  }
  if (takes_sizes(i) && !can_take_sizes(i)) {
    return refuse(why, "no emitter for this operation that takes sizes as arguments");
  }
  bool own_kernel = i->op == HLO_SCATTER || i->op == HLO_CUMULATIVE;
  if (hlo_info(i)->kind != HLO_ELEMENTWISE && !emit_op_emitter(i->op) && !own_kernel) {
    return refuse(why, "no emitter for this operation");
  }
  return supports_types(i) || refuse(why, "no emitter for this element type");
}

static bool supports_fusion(const hlo_instr *i, const char **why) {
  const hlo_computation *c = hlo_callee(i, 0);
  if (!arrays_only(i, why)) {
    return false;
  }
  for (const hlo_instr *j = c->first; j; j = j->next) {
    if (j->op == HLO_PARAMETER) {
      if (!arrays_only(j, why)) {
        return false;
      }
    } else if (j->op == HLO_CONSTANT) {
      const literal *l = hlo_literal(hlo_result((hlo_instr *)j, 0));
      if (!literal_is_splat(l) && shape_bytes(&l->shape) > EMIT_MAX_CONSTANT) {
        return refuse(why, "a large constant inside of a fusion");
      }
    } else if (j->op == HLO_FUSION || !supports_one(j, why)) {
      return j->op == HLO_FUSION ? refuse(why, "a fusion inside of a fusion") : false;
    } else if ((j->op == HLO_SCATTER || j->op == HLO_CUMULATIVE) && (c->n_roots != 1 || c->roots[0].def != j)) {
      return refuse(why, "scatter and cumulative must be the only root of their fusion");
    }
  }
  hlo_row_space rows;
  for (uint32_t k = 1; k < i->n_results && !hlo_is_row_wise(c, &rows); k++) {
    if (!same_elements(i, &i->shapes[k], &i->shapes[0])) {
      return refuse(why, "results of different sizes");
    }
  }
  return true;
}

bool emit_supports(const hlo_instr *i, const char **why) {
  if (i->op == HLO_FUSION) {
    return supports_fusion(i, why);
  }
  if (i->op == HLO_PARAMETER || i->op == HLO_CONSTANT) {
    return refuse(why, "nothing to compute");
  }
  return supports_one(i, why);
}

bool emit_supports_fused(hlo_fusion_kind kind, const hlo_instr *i) {
  switch (hlo_info(i)->kind) {
    case HLO_ELEMENTWISE: break;
    case HLO_MOVEMENT:
    case HLO_RANDOM:
      if (kind == HLO_FUSION_OUTPUT) {
        return false;
      }
      break;
    default:
      if (i->op != HLO_REDUCE || kind != HLO_FUSION_INPUT) {
        return false;
      }
  }
  return emit_supports(i, NULL);
}

bool emit_is_special(const hlo_instr *i) {
  bool twister = i->op == HLO_RNG && hlo_int(i, HLO_ATTR_ALGORITHM) == HLO_MT19937;
  return i->op == HLO_SORT || i->op == HLO_NMS || twister;
}

bool emit_supports_special(const hlo_instr *i, const char **why) {
  for (uint32_t k = 0; k < i->n_operands; k++) {
    if (!arrays_only(i->operands[k].def, why)) {
      return false;
    }
  }
  dtype t = hlo_type(i->operands[0]);
  if (i->op == HLO_SORT && (dtype_is_complex(t) || t == DTYPE_STR)) {
    return refuse(why, "its keys have no order");
  }
  return arrays_only(i, why);
}

/* --- overwriting operands --- */

/* How a value of a computation reads the operand that is to be overwritten: not at all, only at the position of the
 * value's element, or at other positions. */
typedef enum reading { NOT_AT_ALL, SAME_PLACE, ELSEWHERE } reading;

enum { MAX_INSTRUCTIONS = 512 }; /* fusions with more instructions may not overwrite an operand */

typedef struct readings {
  uint32_t n;
  const hlo_instr *of[MAX_INSTRUCTIONS];
  reading how[MAX_INSTRUCTIONS];
} readings;

static reading reading_of(const readings *r, const hlo_instr *i) {
  for (uint32_t k = r->n; k-- > 0;) {
    if (r->of[k] == i) {
      return r->how[k];
    }
  }
  return ELSEWHERE;
}

/* Returns how i reads the operand that is to be overwritten, from how i's own operands read it.  Elementwise operations
 * and reshapes keep the position. */
static reading reading_by(const readings *r, const hlo_instr *i) {
  bool keeps = hlo_info(i)->kind == HLO_ELEMENTWISE || i->op == HLO_RESHAPE || i->op == HLO_COPY;
  reading worst = NOT_AT_ALL;
  for (uint32_t k = 0; k < i->n_operands; k++) {
    reading one = reading_of(r, i->operands[k].def);
    bool scalar = hlo_rank(i->operands[k]) == 0 && i->shapes[0].rank > 0;
    one = one == SAME_PLACE && (!keeps || scalar) ? ELSEWHERE : one;
    worst = one > worst ? one : worst;
  }
  return worst;
}

/* Returns true if the kernel of a row-wise fusion would store rows in the memory of a result before it has read all of
 * its operands: a reduction reads elements that take long to compute, and the length of a row is not a constant, so
 * that there is no room on the stack (emit/kernel/row_fusion.c). */
static bool stores_rows(const hlo_row_space *s, const hlo_computation *c) {
  readings dear = {0}; /* here SAME_PLACE means that computing an element of the instruction takes long, and NOT_AT_ALL
                          that it does not */
  for (const hlo_instr *i = dim_is_const(s->length) ? NULL : c->first; i; i = i->next) {
    bool slow = hlo_info(i)->kind == HLO_ELEMENTWISE && !hlo_is_cheap(i) && hlo_is_full(s, &i->shapes[0]);
    for (uint32_t k = 0; k < i->n_operands; k++) {
      slow |= reading_of(&dear, i->operands[k].def) != NOT_AT_ALL;
    }
    if (slow && i->op == HLO_REDUCE) {
      return true;
    }
    dear.of[dear.n] = i;
    dear.how[dear.n++] = slow ? SAME_PLACE : NOT_AT_ALL;
  }
  return false;
}

/* Returns true if a row-wise fusion may overwrite v, a full array (hlo_is_full): a step reads only that row of v which
 * it writes, and once it has begun to store, reads v only at the position that it stores next. */
static bool reads_own_row(const hlo_row_space *s, const hlo_computation *c, const hlo_instr *v) {
  readings r = {0};
  for (const hlo_instr *i = c->first; i; i = i->next) {
    reading how = i == v ? SAME_PLACE : reading_by(&r, i);
    bool row = i->op == HLO_REDUCE || (i->op == HLO_BROADCAST && hlo_broadcasts_rows(s, i));
    if (how == ELSEWHERE && row && reading_of(&r, i->operands[0].def) == SAME_PLACE) {
      how = SAME_PLACE;
    }
    if (how == ELSEWHERE) {
      return false;
    }
    r.of[r.n] = i;
    r.how[r.n++] = how;
  }
  return hlo_is_full(s, &v->shapes[0]) && !stores_rows(s, c);
}

/* Determines how each instruction reads v.  Returns false if there are too many instructions. */
static bool read_all(readings *r, const hlo_computation *c, const hlo_instr *v) {
  for (const hlo_instr *i = c->first; i; i = i->next) {
    if (r->n == MAX_INSTRUCTIONS) {
      return false;
    }
    r->how[r->n] = i == v ? SAME_PLACE : reading_by(r, i);
    r->of[r->n++] = i;
  }
  return true;
}

static bool roots_in_place(const readings *r, const hlo_computation *c) {
  for (uint32_t k = 0; k < c->n_roots; k++) {
    if (reading_of(r, c->roots[k].def) == ELSEWHERE) {
      return false;
    }
  }
  return true;
}

static bool fusion_reads_in_place(const hlo_instr *fusion, const hlo_instr *v) {
  const hlo_computation *c = hlo_callee(fusion, 0);
  readings r = {0};
  if (!read_all(&r, c, v)) {
    return false;
  }
  const hlo_instr *root = c->roots[0].def;
  if (c->n_roots == 1 && (root->op == HLO_SCATTER || root->op == HLO_DYNAMIC_UPDATE_SLICE)) {
    return root->operands[0].def == v && reading_of(&r, root->operands[1].def) == NOT_AT_ALL &&
           reading_of(&r, root->operands[2].def) == NOT_AT_ALL;
  }
  hlo_row_space rows;
  return hlo_is_row_wise(c, &rows) ? reads_own_row(&rows, c, v) : roots_in_place(&r, c);
}

static bool roots_read_in_place(const hlo_computation *c, const hlo_instr *v) {
  readings r = {0};
  return read_all(&r, c, v) && roots_in_place(&r, c);
}

/* Returns true if v is a parameter of the fusion's body, or a reshape of one, so that it can be read as it is in
 * memory. */
static bool is_plain(hlo_value v) { return hlo_before_reshapes(v).def->op == HLO_PARAMETER; }

const hlo_instr *emit_contraction_of(const hlo_instr *i) {
  const hlo_instr *found = NULL;
  if (i->op != HLO_FUSION) {
    return hlo_info(i)->kind == HLO_CONTRACTION ? i : NULL;
  }
  for (const hlo_instr *k = hlo_callee(i, 0)->first; k; k = k->next) {
    if (hlo_info(k)->kind == HLO_CONTRACTION) {
      if (found) {
        return NULL;
      }
      found = k;
    }
  }
  hlo_quantized_weights w;
  hlo_in_place_update place;
  bool plain = found && is_plain(found->operands[0]) &&
               (is_plain(found->operands[1]) || (hlo_quantized_weights_of(found, &w) && is_plain(w.q)));
  if (plain && hlo_in_place_update_of(i, &place)) {
    readings r = {0};
    return read_all(&r, hlo_callee(i, 0), found) && reading_of(&r, place.value.def) != ELSEWHERE ? found : NULL;
  }
  return plain && roots_read_in_place(hlo_callee(i, 0), found) ? found : NULL;
}

bool emit_has_quantized_weights(const hlo_instr *i) {
  const hlo_instr *c = i->op == HLO_FUSION ? emit_contraction_of(i) : NULL;
  return c && !is_plain(c->operands[1]);
}

bool emit_can_alias(const hlo_instr *i, uint32_t operand, uint32_t result) {
  const shape *x = hlo_shape(i->operands[operand]), *y = &i->shapes[result];
  if (!same_elements(i, x, y) || dtype_bytes((dtype)x->type) != dtype_bytes((dtype)y->type)) {
    return false;
  }
  /* The operand that is overwritten must not be passed as another operand as well. */
  for (uint32_t k = 0; k < i->n_operands; k++) {
    if (k != operand && hlo_value_equal(i->operands[k], i->operands[operand])) {
      return false;
    }
  }
  if (i->op == HLO_FUSION) {
    return fusion_reads_in_place(i, hlo_callee(i, 0)->params[operand]);
  }
  if (i->op == HLO_SCATTER || i->op == HLO_DYNAMIC_UPDATE_SLICE) {
    return operand == 0;
  }
  return hlo_info(i)->kind == HLO_ELEMENTWISE || i->op == HLO_RESHAPE || i->op == HLO_COPY;
}
