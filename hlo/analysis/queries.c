/* queries.c - facts about a module that passes and later stages need; see queries.h. */
#include "hlo/analysis/queries.h"

#include <math.h>

hlo_computation **hlo_walked(const hlo_module *m, arena *scratch, bool fusions, uint32_t *n) {
  hlo_computation **list = ARENA_NEW_N(scratch, hlo_computation *, m->n_computations + 1);
  for (uint32_t k = 0; k < m->n_computations; k++) {
    m->computations[k]->n_ids = 0; /* until a computation is numbered, its n_ids says whether it has been reached: 1
                                      or 0 */
  }
  m->entry->n_ids = 1;
  /* The list has callees before their callers, so going backward visits each caller before its callees. */
  for (uint32_t k = m->n_computations; k-- > 0;) {
    hlo_computation *c = m->computations[k];
    for (hlo_instr *i = c->n_ids ? c->first : NULL; i; i = i->next) {
      if (hlo_is_control(i) || (fusions && i->op == HLO_FUSION)) {
        for (uint32_t j = 0; j < hlo_n_callees(i); j++) {
          hlo_callee(i, j)->n_ids = 1;
        }
      }
    }
  }
  *n = 0;
  for (uint32_t k = 0; k < m->n_computations; k++) {
    if (m->computations[k]->n_ids) {
      list[(*n)++] = m->computations[k];
    }
  }
  return list;
}

uint32_t *hlo_count_roots(hlo_computation *c, arena *scratch) {
  hlo_number(c);
  uint32_t *counts = ARENA_NEW_N(scratch, uint32_t, c->n_ids + 1);
  for (uint32_t k = 0; k < c->n_roots; k++) {
    counts[c->roots[k].def->id]++;
  }
  return counts;
}

/* --- properties of instructions and values --- */

/* The recursion is bounded by the nesting of calls (HLO_MAX_CALL_DEPTH). */
bool hlo_has_effect(const hlo_instr *i) {
  if (hlo_info(i)->flags & HLO_EFFECT) {
    return true;
  }
  for (uint32_t k = 0; k < hlo_n_callees(i); k++) {
    for (const hlo_instr *j = hlo_callee(i, k)->first; j; j = j->next) {
      if (hlo_has_effect(j)) {
        return true;
      }
    }
  }
  return false;
}

hlo_instr *hlo_only_user(hlo_value v) {
  if (v.def->n_results == 1) {
    return v.def->n_uses == 1 && !hlo_is_root(v) ? v.def->uses[0].user : NULL;
  }
  hlo_instr *user = NULL;
  for (uint32_t k = 0; k < v.def->n_uses; k++) {
    hlo_use u = v.def->uses[k];
    if (u.user->operands[u.operand].index == v.index) {
      if (user) {
        return NULL;
      }
      user = u.user;
    }
  }
  return hlo_is_root(v) ? NULL : user;
}

bool hlo_is_unused(const hlo_instr *i) {
  if (i->n_uses) {
    return false;
  }
  for (uint32_t k = 0; k < i->n_results; k++) {
    if (hlo_is_root(hlo_result((hlo_instr *)i, k))) {
      return false;
    }
  }
  return true;
}

bool hlo_used_once(hlo_value v) { return hlo_only_user(v) != NULL; }

bool hlo_is_lookup(const hlo_instr *i) {
  const shape *x = hlo_shape(i->operands[0]);
  const hlo_instr *index = i->operands[1].def;
  int64_t dimension;
  return x->rank == 1 && x->dims[0] == 256 && (x->type == DTYPE_U8 || x->type == DTYPE_S8) &&
         hlo_is_take(i, &dimension) && index->op == HLO_CONVERT && hlo_type(index->operands[0]) == DTYPE_U8 &&
         hlo_rank(i->operands[1]) == i->shapes[0].rank;
}

bool hlo_splat_of(hlo_value v, literal *scalar) {
  enum { MAX_BYTES = 1 << 16 }; /* pass fold turns larger splats into broadcasts */
  while (v.def && v.def->op == HLO_BROADCAST) {
    v = v.def->operands[0];
  }
  const literal *l = hlo_literal(v);
  if (!l || (l->shape.rank && (shape_bytes(&l->shape) > MAX_BYTES || !literal_is_splat(l)))) {
    return false;
  }
  *scalar = literal_make(shape_scalar((dtype)l->shape.type), l->data);
  return true;
}

bool hlo_is_splat(hlo_value v, double number) {
  literal l;
  dtype t = hlo_type(v);
  if (dtype_is_complex(t) || t == DTYPE_STR || !hlo_splat_of(v, &l)) {
    return false;
  }
  if (!dtype_is_float(t)) {
    return (double)(int64_t)number == number && literal_i64(&l, 0) == (int64_t)number;
  }
  double x = literal_f64(&l, 0);
  return x == number && signbit(x) == signbit(number);
}

hlo_value hlo_splat_literal(hlo_builder *b, shape s, literal scalar) {
  hlo_value x = hlo_constant(b, scalar);
  return s.rank && x.def ? hlo_broadcast(b, x, s, NULL) : x;
}

bool hlo_is_take(const hlo_instr *i, int64_t *dimension) {
  const shape *x = hlo_shape(i->operands[0]), *s = hlo_shape(i->operands[1]);
  if (hlo_n_ints(i, HLO_ATTR_OPERAND_BATCH) || hlo_n_ints(i, HLO_ATTR_INDEX_MAP) != 1 ||
      hlo_n_ints(i, HLO_ATTR_COLLAPSED_DIMS) != 1 ||
      hlo_int(i, HLO_ATTR_INDEX_VECTOR_DIM) < s->rank - 1 + (s->rank == 0)) {
    return false;
  }
  int64_t d = hlo_ints(i, HLO_ATTR_INDEX_MAP)[0], batch = s->rank - (hlo_int(i, HLO_ATTR_INDEX_VECTOR_DIM) < s->rank);
  *dimension = d;
  if (hlo_ints(i, HLO_ATTR_COLLAPSED_DIMS)[0] != d) {
    return false;
  }
  for (int k = 0, at = 0; k < x->rank; k++) {
    if (k != d) {
      if (hlo_ints(i, HLO_ATTR_SIZES)[k] != x->dims[k] ||
          hlo_ints(i, HLO_ATTR_OFFSET_DIMS)[at] != (k < d ? k : k - 1 + batch)) {
        return false;
      }
      at++;
    }
  }
  return true;
}

bool hlo_is_free(const hlo_instr *i) {
  if (i->op == HLO_CONSTANT) {
    return i->shapes[0].rank == 0 && i->shapes[0].type != DTYPE_STR;
  }
  return i->op == HLO_BROADCAST || i->op == HLO_IOTA;
}

bool hlo_is_cheap(const hlo_instr *i) {
  switch (i->op) {
    case HLO_ABS:
    case HLO_NEG:
    case HLO_NOT:
    case HLO_SIGN:
    case HLO_CEIL:
    case HLO_FLOOR:
    case HLO_ROUND:
    case HLO_IS_FINITE:
    case HLO_REAL:
    case HLO_IMAG:
    case HLO_CONVERT:
    case HLO_BITCAST:
    case HLO_ADD:
    case HLO_SUB:
    case HLO_MUL:
    case HLO_MAX:
    case HLO_MIN:
    case HLO_AND:
    case HLO_OR:
    case HLO_XOR:
    case HLO_SHL:
    case HLO_SHR:
    case HLO_COMPLEX:
    case HLO_COMPARE:
    case HLO_SELECT:
    case HLO_CLAMP: return true;
    default: return false;
  }
}
