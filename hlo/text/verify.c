/* verify.c - checks the invariants of a module; see verify.h. */
#include "hlo/text/verify.h"

#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "hlo/ir/shape_rules.h"
#include "hlo/text/text.h"

#define INVALID STATUS_INVALID_MODEL

/* What is known of a computation that has been checked. */
typedef struct checked {
  uint32_t depth;    /* the depth of its calls; 1 means that it calls nothing */
  uint64_t expanded; /* the number of instructions if all calls are inlined */
} checked;

typedef struct verifier {
  const hlo_module *module;
  arena *arena;   /* memory for the whole check */
  str_map names;  /* the names of the computations so far */
  arena *scratch; /* temporary memory for one computation */
} verifier;

/* --- attributes --- */

static status check_dims(const hlo_module *m, const hlo_attr *v, bool is_signed) {
  CHECK_THAT(v->ints || !v->n, INVALID, "the list is missing");
  for (uint32_t k = 0; k < v->n; k++) {
    bool whole = v->ints[k] != DIM_OVERFLOW && (is_signed || dim_get_kind(m->dims, v->ints[k]) != DIM_NEG);
    CHECK_THAT(whole && v->ints[k] <= DIM_MAX, INVALID, "entry %u is negative or too large", k);
  }
  return NULL;
}

static status check_attr_value(const hlo_module *m, hlo_attr_kind kind, const hlo_attr *v) {
  switch (kind) {
    case HLO_KIND_INT: return NULL;
    case HLO_KIND_BOOL: CHECK_THAT(v->i == 0 || v->i == 1, INVALID, "%" PRId64 " is no bool", v->i); return NULL;
    case HLO_KIND_STRING: CHECK_THAT(v->s != NULL, INVALID, "the string is missing"); return NULL;
    case HLO_KIND_INTS: CHECK_THAT(v->ints || !v->n, INVALID, "the list is missing"); return NULL;
    case HLO_KIND_FLOATS: CHECK_THAT(v->floats || !v->n_floats, INVALID, "the list is missing"); return NULL;
    case HLO_KIND_COMPS: CHECK_THAT(v->comps || !v->n_comps, INVALID, "the list is missing"); return NULL;
    case HLO_KIND_LITERAL: CHECK_THAT(v->value != NULL, INVALID, "the literal is missing"); return NULL;
    case HLO_KIND_DIMS:
    case HLO_KIND_SIGNED_DIMS: return check_dims(m, v, kind == HLO_KIND_SIGNED_DIMS);
    default: CHECK_THAT(hlo_enum_name(kind, v->i), INVALID, "%" PRId64 " has no name", v->i); return NULL;
  }
}

status hlo_verify_attr(const hlo_module *m, hlo_attr_id id, const hlo_attr *v) {
  const hlo_attr_info *info = hlo_attr_get_info(id);
  return status_prefix(check_attr_value(m, info->kind, v), "%s", info->name);
}

/* --- links and uses --- */

/* Checks the links of the list.  Since each back link must match a forward link, the list has no cycle. */
static status check_links(const hlo_computation *c) {
  uint32_t n = 0;
  const hlo_instr *prev = NULL;
  for (hlo_instr *i = c->first; i; prev = i, i = i->next) {
    CHECK_THAT(i->prev == prev && i->parent == c, INVALID, "instruction %u is not linked to the one before", n);
    CHECK_THAT((unsigned)i->op < HLO_OP_COUNT, INVALID, "instruction %u has no operation", n);
    bool is_param = n < c->n_params;
    CHECK_THAT((i->op == HLO_PARAMETER) == is_param, INVALID, "instruction %u: the %u parameters must stand first", n,
               c->n_params);
    CHECK_THAT(!is_param || (c->params[n] == i && i->attrs && i->attrs[0].i == n), INVALID,
               "parameter %u is numbered or listed wrongly", n);
    CHECK_THAT(n < UINT32_MAX - 1, STATUS_RESOURCE, "too many instructions");
    i->id = n++;
  }
  CHECK_THAT(prev == c->last && n >= c->n_params, INVALID, "the list has no proper end");
  ((hlo_computation *)c)->n_ids = n;
  return NULL;
}

/* Checks that v is a result of an instruction of c with an id below `before`. */
static status check_value(const hlo_computation *c, hlo_value v, uint32_t before, const char *what, uint32_t k) {
  CHECK_THAT(v.def != NULL, INVALID, "%s %u is missing", what, k);
  CHECK_THAT(v.def->parent == c, INVALID, "%s %u is of another computation or was removed", what, k);
  CHECK_THAT(v.def->id < before, INVALID, "%s %u is used before it is computed", what, k);
  CHECK_THAT(v.index < v.def->n_results, INVALID, "%s %u is result %u of %u", what, k, v.index, v.def->n_results);
  return NULL;
}

/* Checks that every use of `i` names an operand of the user that is a result of `i`, and that no two uses name the same
 * operand.  The caller compares the numbers of uses and operands, so that every operand has a use.  The operands of all
 * instructions are numbered; slot[id] is the number of the first operand of instruction id. */
static status check_uses(const hlo_instr *i, const uint32_t *slot, unsigned char *seen, uint64_t *n_uses) {
  for (uint32_t k = 0; k < i->n_uses; k++) {
    hlo_use use = i->uses[k];
    bool good = use.user && use.user->parent == i->parent && use.operand < use.user->n_operands &&
                use.user->operands[use.operand].def == i;
    CHECK_THAT(good, INVALID, "use %u does not fit an operand", k);
    unsigned char *mark = &seen[slot[use.user->id] + use.operand];
    CHECK_THAT(!*mark, INVALID, "use %u is listed twice", k);
    *mark = 1;
  }
  *n_uses += i->n_uses;
  return NULL;
}

/* --- instructions --- */

static status check_callees(verifier *v, const hlo_instr *i, checked *self) {
  for (uint32_t k = 0; k < hlo_n_callees(i); k++) {
    const hlo_computation *callee = hlo_callee(i, k);
    CHECK_THAT(callee && callee->module == v->module, INVALID, "computation %u is missing or of another module", k);
    const checked *done = str_map_get(&v->names, callee->name);
    CHECK_THAT(done, INVALID, "computation %s is called before its definition", callee->name);
    self->depth = self->depth > done->depth ? self->depth : done->depth + 1;
    self->expanded += done->expanded;
    CHECK_THAT(self->depth <= HLO_MAX_CALL_DEPTH && self->expanded <= HLO_MAX_EXPANDED, STATUS_RESOURCE,
               "the calls of %s nest too deeply or too often", callee->name);
  }
  return NULL;
}

static status check_shapes(verifier *v, const hlo_instr *i) {
  const hlo_op_info *info = hlo_info(i);
  shape some[4], *results = i->n_results <= 4 ? some : ARENA_NEW_N(v->scratch, shape, i->n_results);
  memset(some, 0, sizeof some);
  if (info->flags & HLO_DECL) {
    memcpy(results, i->shapes, i->n_results * sizeof *results);
  }
  TRY(info->rule(i, v->module->dims, results));
  for (uint32_t k = 0; k < i->n_results; k++) {
    CHECK_THAT(shape_equal(&results[k], &i->shapes[k]), INVALID, "result %u is %s but should be %s", k,
               SHAPE_STR(v->module->dims, &i->shapes[k]), SHAPE_STR(v->module->dims, &results[k]));
    TRY(shape_check(&results[k], "result"));
  }
  return NULL;
}

static status check_instr(verifier *v, const hlo_instr *i, checked *self) {
  const hlo_op_info *info = hlo_info(i);
  TRY(hlo_check_arity(i->op, i->n_operands, i->n_results));
  CHECK_THAT(i->source && i->config && (!info->n_attrs || i->attrs) && (!i->n_results || i->shapes), INVALID,
             "a part is missing");
  for (uint32_t k = 0; k < i->n_operands; k++) {
    TRY(check_value(i->parent, i->operands[k], i->id, "operand", k));
  }
  for (uint32_t k = 0; k < info->n_attrs; k++) {
    TRY(hlo_verify_attr(v->module, info->attrs[k], &i->attrs[k]));
  }
  TRY(check_callees(v, i, self));
  return check_shapes(v, i);
}

static status at_instr(const hlo_instr *i, status s) {
  if (i->source && i->source[0]) {
    return status_prefix(s, "%s: %%%u %s", i->source, i->id, hlo_info(i)->name);
  }
  return status_prefix(s, "%%%u %s", i->id, hlo_info(i)->name);
}

/* --- computations --- */

static status check_use_lists(verifier *v, const hlo_computation *c) {
  uint64_t n_operands = 0, n_uses = 0;
  uint32_t *slot = ARENA_NEW_N(v->scratch, uint32_t, c->n_ids + 1);
  for (const hlo_instr *i = c->first; i; i = i->next) {
    slot[i->id] = (uint32_t)n_operands;
    n_operands += i->n_operands;
    CHECK_THAT(n_operands < UINT32_MAX, STATUS_RESOURCE, "too many operands");
  }
  unsigned char *seen = ARENA_NEW_N(v->scratch, unsigned char, n_operands);
  for (const hlo_instr *i = c->first; i; i = i->next) {
    TRY(at_instr(i, check_uses(i, slot, seen, &n_uses)));
  }
  CHECK_THAT(n_uses == n_operands, INVALID, "%" PRIu64 " operands but %" PRIu64 " uses of values", n_operands, n_uses);
  return NULL;
}

static status check_body(verifier *v, const hlo_computation *c, checked *self) {
  CHECK_THAT(c->module == v->module, INVALID, "it belongs to another module");
  TRY(check_links(c));
  *self = (checked){1, c->n_ids};
  for (const hlo_instr *i = c->first; i; i = i->next) {
    TRY(at_instr(i, check_instr(v, i, self)));
    TRY(budget_check(arena_budget(v->module->arena)));
  }
  for (uint32_t k = 0; k < c->n_roots; k++) {
    TRY(check_value(c, c->roots[k], c->n_ids, "root", k));
  }
  return check_use_lists(v, c);
}

static status check_computation(verifier *v, const hlo_computation *c) {
  checked *self = ARENA_NEW(v->arena, checked);
  v->scratch = arena_create(arena_budget(v->module->arena));
  TRY(check_body(v, c, self));
  arena_destroy(v->scratch);
  v->scratch = NULL;
  void **known = str_map_put(&v->names, c->name);
  CHECK_THAT(!*known, INVALID, "another computation has the same name");
  *known = self;
  return NULL;
}

/* Checks that each carried root has the shape of its parameter, and that no two roots are carried in the same
 * parameter. */
static status check_carried(verifier *v, const hlo_carried *carried, const hlo_computation *entry) {
  bool *taken = ARENA_NEW_N(v->arena, bool, entry->n_params);
  for (uint32_t k = 0; k < entry->n_roots; k++) {
    const hlo_carried *c = &carried[k];
    if (c->parameter < 0) {
      continue;
    }
    CHECK_THAT(c->parameter < entry->n_params && !taken[c->parameter], INVALID,
               "root %u is carried in parameter %" PRId64 ", which does not exist or carries another root", k,
               c->parameter);
    taken[c->parameter] = true;
    const shape *s = hlo_shape(entry->roots[k]), *room = &entry->params[c->parameter]->shapes[0];
    CHECK_THAT(shape_equal(s, room), INVALID, "root %u is %s, but parameter %" PRId64 ", in which it is carried, is %s",
               k, SHAPE_STR(v->module->dims, s), c->parameter, SHAPE_STR(v->module->dims, room));
    CHECK_THAT(c->axis < s->rank && c->length != DIM_OVERFLOW, INVALID, "root %u is carried along a missing dimension",
               k);
  }
  return NULL;
}

static status check_module(void *data) {
  verifier *v = data;
  const hlo_module *m = v->module;
  CHECK_THAT(m->entry && m->n_computations && m->computations[m->n_computations - 1] == m->entry, INVALID,
             "the entry computation must be the last");
  v->arena = arena_create(arena_budget(m->arena));
  str_map_init(&v->names, v->arena);
  for (uint32_t k = 0; k < m->n_computations; k++) {
    CHECK_THAT(m->computations[k] && m->computations[k]->name, INVALID, "computation %u has no name", k);
    TRY(status_prefix(check_computation(v, m->computations[k]), "%s", m->computations[k]->name));
  }
  return m->carried ? check_carried(v, m->carried, m->entry) : NULL;
}

status hlo_verify(const hlo_module *m) {
  verifier v = {.module = m};
  status s = guard_run(check_module, &v);
  arena_destroy(v.scratch);
  arena_destroy(v.arena);
  return s;
}

status hlo_check_static(const hlo_module *m) {
  for (uint32_t k = 0; k < m->n_computations; k++) {
    for (const hlo_instr *i = m->computations[k]->first; i; i = i->next) {
      for (uint32_t r = 0; r < i->n_results; r++) {
        CHECK_THAT(shape_is_static(&i->shapes[r]), STATUS_UNSUPPORTED | STATUS_ABOUT_SHAPE,
                   "%s: %s is %s; only constant sizes can be compiled", m->computations[k]->name, hlo_info(i)->name,
                   SHAPE_STR(m->dims, &i->shapes[r]));
      }
    }
  }
  return NULL;
}
