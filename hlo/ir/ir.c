/* ir.c - creates, changes, copies, reads and hashes modules; see ir.h. */
#include "hlo/ir/ir.h"

#include <assert.h>
#include <string.h>

#include "base/dim/guard.h"

/* --- modules and computations --- */

hlo_module *hlo_module_create(arena *a, const char *name) {
  hlo_module *m = ARENA_NEW(a, hlo_module);
  m->arena = a;
  m->dims = dim_table_create(a);
  m->name = arena_strdup(a, name);
  str_map_init(&m->names, a);
  return m;
}

hlo_computation *hlo_computation_create(hlo_module *m, const char *name) {
  hlo_computation *c = ARENA_NEW(m->arena, hlo_computation);
  c->module = m;
  c->name = arena_strdup(m->arena, name);
  while (*str_map_put(&m->names, c->name)) {
    c->name = arena_printf(m->arena, "%s.%u", name, ++m->next_name);
  }
  *str_map_put(&m->names, c->name) = c;
  *ARENA_PUSH(m->arena, m->computations, m->n_computations, m->cap_computations) = c;
  return c;
}

void hlo_set_roots(hlo_computation *c, uint32_t n, const hlo_value *roots) {
  c->n_roots = n;
  c->roots = arena_memdup(c->module->arena, roots, n * sizeof *roots);
}

/* --- the list of instructions --- */

static void link_before(hlo_computation *c, hlo_instr *i, hlo_instr *before) {
  i->parent = c;
  i->next = before;
  i->prev = before ? before->prev : c->last;
  *(i->prev ? &i->prev->next : &c->first) = i;
  *(before ? &before->prev : &c->last) = i;
}

static void unlink_instr(hlo_instr *i) {
  hlo_computation *c = i->parent;
  *(i->prev ? &i->prev->next : &c->first) = i->next;
  *(i->next ? &i->next->prev : &c->last) = i->prev;
}

void hlo_move_before(hlo_instr *i, hlo_instr *before) {
  if (i != before) {
    unlink_instr(i);
    link_before(i->parent, i, before);
  }
}

/* --- lists of uses --- */

static void add_use(hlo_value v, hlo_instr *user, uint32_t operand) {
  arena *a = v.def->parent->module->arena;
  *ARENA_PUSH(a, v.def->uses, v.def->n_uses, v.def->cap_uses) = (hlo_use){user, operand};
}

static void drop_use(hlo_value v, const hlo_instr *user, uint32_t operand) {
  hlo_instr *def = v.def;
  for (uint32_t k = def->n_uses; k-- > 0;) {
    if (def->uses[k].user == user && def->uses[k].operand == operand) {
      def->uses[k] = def->uses[--def->n_uses];
      return;
    }
  }
  assert(!"use lists are out of step");
}

void hlo_set_operand(hlo_instr *i, uint32_t k, hlo_value v) {
  assert(k < i->n_operands && v.def && v.def->parent == i->parent);
  drop_use(i->operands[k], i, k);
  i->operands[k] = v;
  add_use(v, i, k);
}

void hlo_replace(hlo_value old, hlo_value new_value) {
  hlo_instr *def = old.def;
  assert(new_value.def && !hlo_value_equal(old, new_value));
  for (uint32_t k = def->n_uses; k-- > 0;) {
    hlo_use use = def->uses[k];
    if (use.user->operands[use.operand].index == old.index) {
      def->uses[k] = def->uses[--def->n_uses];
      use.user->operands[use.operand] = new_value;
      add_use(new_value, use.user, use.operand);
    }
  }
  hlo_computation *c = def->parent;
  for (uint32_t r = 0; r < c->n_roots; r++) {
    if (hlo_value_equal(c->roots[r], old)) {
      c->roots[r] = new_value;
    }
  }
}

void hlo_remove(hlo_instr *i) {
  assert(i->n_uses == 0 && i->op != HLO_PARAMETER);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    drop_use(i->operands[k], i, k);
  }
  unlink_instr(i);
  i->parent = NULL;
}

/* --- instructions --- */

hlo_instr *hlo_instr_create(hlo_computation *c, hlo_instr *before, hlo_op op, uint32_t n_operands,
                            const hlo_value *operands, uint32_t n_results) {
  arena *a = c->module->arena;
  hlo_instr *i = ARENA_NEW(a, hlo_instr);
  i->op = op;
  i->n_operands = n_operands;
  i->n_results = n_results;
  i->operands = arena_memdup(a, operands, n_operands * sizeof *operands);
  i->shapes = ARENA_NEW_N(a, shape, n_results ? n_results : 1); /* shapes[0] may always be read */
  i->attrs = ARENA_NEW_N(a, hlo_attr, hlo_op_get_info(op)->n_attrs);
  i->source = "";
  i->config = "";
  link_before(c, i, before);
  for (uint32_t k = 0; k < n_operands; k++) {
    assert(operands[k].def && operands[k].def->parent == c);
    add_use(operands[k], i, k);
  }
  return i;
}

hlo_instr *hlo_parameter(hlo_computation *c, shape s) {
  arena *a = c->module->arena;
  hlo_instr *last = c->n_params ? c->params[c->n_params - 1] : NULL;
  hlo_instr *i = hlo_instr_create(c, last ? last->next : c->first, HLO_PARAMETER, 0, NULL, 1);
  i->shapes[0] = s;
  hlo_attr_of(i, HLO_ATTR_INDEX)->i = c->n_params;
  *ARENA_PUSH(a, c->params, c->n_params, c->cap_params) = i;
  return i;
}

void hlo_parameters_like(hlo_computation *c, uint32_t n, const hlo_value *like, hlo_value *out) {
  for (uint32_t k = 0; k < n; k++) {
    out[k] = like[k].def ? hlo_result(hlo_parameter(c, *hlo_shape(like[k])), 0) : (hlo_value){0};
  }
}

void hlo_remove_parameter(hlo_computation *c, uint32_t k) {
  hlo_instr *i = c->params[k];
  assert(i->n_uses == 0 && !hlo_is_root(hlo_result(i, 0)));
  unlink_instr(i);
  i->parent = NULL;
  c->n_params--;
  for (; k < c->n_params; k++) {
    c->params[k] = c->params[k + 1];
    hlo_attr_of(c->params[k], HLO_ATTR_INDEX)->i = k;
  }
}

status hlo_infer(hlo_instr *i) {
  const hlo_op_info *info = hlo_info(i);
  TRY(info->rule(i, i->parent->module->dims, i->shapes));
  for (uint32_t k = 0; k < i->n_results; k++) {
    TRY(shape_check(&i->shapes[k], info->name));
  }
  return NULL;
}

/* --- clones --- */

/* Returns the copy of c in module `to`.  `copies` maps the names of computations to the copies that the same cloning
 * has made already, so that a computation with several callers is copied once. */
static hlo_computation *clone_computation(hlo_module *to, const hlo_computation *c, str_map *copies);

/* Returns a copy of an attribute for module `to`.  Literals are copied without their elements, which both copies share
 * and which must live as long as both.  Computations are shared within a module and cloned for another one. */
static hlo_attr copy_attr(hlo_module *to, const hlo_module *from, hlo_attr_kind kind, hlo_attr v, str_map *copies) {
  arena *a = to->arena;
  switch (kind) {
    case HLO_KIND_STRING: v.s = v.s ? arena_strdup(a, v.s) : NULL; break;
    case HLO_KIND_INTS:
    case HLO_KIND_DIMS:
    case HLO_KIND_SIGNED_DIMS: v.ints = arena_memdup(a, v.ints, v.n * sizeof *v.ints); break;
    case HLO_KIND_FLOATS: v.floats = arena_memdup(a, v.floats, v.n_floats * sizeof *v.floats); break;
    case HLO_KIND_LITERAL:
      v.value = arena_memdup(a, v.value, sizeof *v.value); /* the elements are shared */
      break;
    case HLO_KIND_COMPS: {
      hlo_computation **comps = ARENA_NEW_N(a, hlo_computation *, v.n_comps);
      for (uint32_t k = 0; k < v.n_comps; k++) {
        comps[k] = to == from ? v.comps[k] : clone_computation(to, v.comps[k], copies);
      }
      v.comps = comps;
      break;
    }
    default: break;
  }
  return v;
}

static hlo_instr *clone_instr(hlo_computation *to, hlo_instr *before, const hlo_instr *i, const hlo_value *operands,
                              str_map *copies) {
  const hlo_op_info *info = hlo_info(i);
  hlo_module *from = i->parent->module;
  hlo_instr *copy = hlo_instr_create(to, before, i->op, i->n_operands, operands, i->n_results);
  memcpy(copy->shapes, i->shapes, i->n_results * sizeof *i->shapes);
  for (uint32_t k = 0; k < info->n_attrs; k++) {
    copy->attrs[k] = copy_attr(to->module, from, hlo_attr_get_info(info->attrs[k])->kind, i->attrs[k], copies);
  }
  copy->source = to->module == from ? i->source : arena_strdup(to->module->arena, i->source);
  copy->config = to->module == from ? i->config : arena_strdup(to->module->arena, i->config);
  return copy;
}

hlo_instr *hlo_instr_clone(hlo_computation *to, hlo_instr *before, const hlo_instr *i, const hlo_value *operands) {
  str_map copies;
  str_map_init(&copies, to->module->arena);
  return clone_instr(to, before, i, operands, &copies);
}

/* Copies the instructions of c, except its parameters, before `before`.  map[id] gets the results of the copy of
 * instruction id; the caller sets those of the parameters. */
static void clone_body(hlo_computation *to, hlo_instr *before, const hlo_computation *c, hlo_value **map,
                       str_map *copies) {
  arena *a = to->module->arena;
  for (const hlo_instr *i = c->first; i; i = i->next) {
    if (i->op == HLO_PARAMETER) {
      continue;
    }
    hlo_value *operands = ARENA_NEW_N(a, hlo_value, i->n_operands);
    for (uint32_t k = 0; k < i->n_operands; k++) {
      operands[k] = map[i->operands[k].def->id][i->operands[k].index];
    }
    hlo_instr *copy = clone_instr(to, before, i, operands, copies);
    map[i->id] = ARENA_NEW_N(a, hlo_value, i->n_results);
    for (uint32_t k = 0; k < i->n_results; k++) {
      map[i->id][k] = hlo_result(copy, k);
    }
  }
}

void hlo_inline(hlo_instr *before, const hlo_computation *callee, const hlo_value *args, hlo_value *roots) {
  hlo_computation *to = before->parent;
  hlo_number((hlo_computation *)callee);
  hlo_value **map = ARENA_NEW_N(to->module->arena, hlo_value *, callee->n_ids);
  for (uint32_t k = 0; k < callee->n_params; k++) {
    map[callee->params[k]->id] = arena_memdup(to->module->arena, &args[k], sizeof args[k]);
  }
  str_map copies;
  str_map_init(&copies, to->module->arena);
  clone_body(to, before, callee, map, &copies);
  for (uint32_t k = 0; k < callee->n_roots; k++) {
    roots[k] = map[callee->roots[k].def->id][callee->roots[k].index];
  }
}

static hlo_computation *clone_computation(hlo_module *to, const hlo_computation *c, str_map *copies) {
  hlo_computation *copy = str_map_get(copies, c->name);
  if (copy) {
    return copy;
  }
  copy = hlo_computation_create(to, c->name);
  *str_map_put(copies, c->name) = copy;
  hlo_number((hlo_computation *)c);
  hlo_value **map = ARENA_NEW_N(to->arena, hlo_value *, c->n_ids);
  for (uint32_t k = 0; k < c->n_params; k++) {
    map[c->params[k]->id] = ARENA_NEW(to->arena, hlo_value);
    map[c->params[k]->id][0] = hlo_result(hlo_parameter(copy, c->params[k]->shapes[0]), 0);
  }
  clone_body(copy, NULL, c, map, copies);
  copy->n_roots = c->n_roots;
  copy->roots = ARENA_NEW_N(to->arena, hlo_value, c->n_roots);
  for (uint32_t k = 0; k < c->n_roots; k++) {
    copy->roots[k] = map[c->roots[k].def->id][c->roots[k].index];
  }
  return copy;
}

hlo_computation *hlo_computation_clone(hlo_module *to, const hlo_computation *c) {
  str_map copies;
  str_map_init(&copies, to->arena);
  return clone_computation(to, c, &copies);
}

static const char **copy_names(arena *a, const char **names, uint32_t n) {
  const char **copy = names ? ARENA_NEW_N(a, const char *, n) : NULL;
  for (uint32_t k = 0; copy && k < n; k++) {
    copy[k] = names[k] ? arena_strdup(a, names[k]) : NULL;
  }
  return copy;
}

hlo_module *hlo_module_clone(arena *a, const hlo_module *m) {
  hlo_module *copy = hlo_module_create(a, m->name);
  copy->dims = m->dims; /* shared, since the table only grows, and dimensions are handles of its entries */
  copy->entry = hlo_computation_clone(copy, m->entry);
  copy->param_names = copy_names(a, m->param_names, m->entry->n_params);
  copy->result_names = copy_names(a, m->result_names, m->entry->n_roots);
  copy->kernels_assigned = m->kernels_assigned;
  copy->size_of = m->size_of ? arena_memdup(a, m->size_of, m->entry->n_roots * sizeof *m->size_of) : NULL;
  copy->carried = m->carried ? arena_memdup(a, m->carried, m->entry->n_roots * sizeof *m->carried) : NULL;
  hlo_module_clean(copy);
  return copy;
}

/* --- reading --- */

const shape *hlo_shape(hlo_value v) {
  static const shape none;
  return v.def ? &v.def->shapes[v.index] : &none;
}

hlo_attr *hlo_attr_of(const hlo_instr *i, hlo_attr_id id) {
  const hlo_op_info *info = hlo_info(i);
  for (uint32_t k = 0; k < info->n_attrs; k++) {
    if (info->attrs[k] == id) {
      return &i->attrs[k];
    }
  }
  assert(!"the operation has no such attribute");
  return NULL;
}

int hlo_find_int(const hlo_instr *i, hlo_attr_id id, int64_t number) {
  const hlo_attr *list = hlo_attr_of(i, id);
  for (uint32_t k = 0; k < list->n; k++) {
    if (list->ints[k] == number) {
      return (int)k;
    }
  }
  return -1;
}

uint32_t hlo_n_callees(const hlo_instr *i) {
  const hlo_op_info *info = hlo_info(i);
  for (uint32_t k = 0; k < info->n_attrs; k++) {
    if (info->attrs[k] == HLO_ATTR_COMPUTATIONS) {
      return i->attrs[k].n_comps;
    }
  }
  return 0;
}

const literal *hlo_literal(hlo_value v) {
  return v.def && v.def->op == HLO_CONSTANT ? hlo_attr_of(v.def, HLO_ATTR_VALUE)->value : NULL;
}

bool hlo_is_root(hlo_value v) {
  const hlo_computation *c = v.def->parent;
  for (uint32_t k = 0; k < c->n_roots; k++) {
    if (hlo_value_equal(c->roots[k], v)) {
      return true;
    }
  }
  return false;
}

uint32_t hlo_value_uses(hlo_value v) {
  const hlo_computation *c = v.def->parent;
  uint32_t n = 0;
  for (uint32_t k = 0; k < v.def->n_uses; k++) {
    hlo_use use = v.def->uses[k];
    n += use.user->operands[use.operand].index == v.index;
  }
  for (uint32_t k = 0; k < c->n_roots; k++) {
    n += hlo_value_equal(c->roots[k], v);
  }
  return n;
}

int64_t hlo_result_bytes(const hlo_instr *i) {
  int64_t bytes = 0;
  for (uint32_t k = 0; k < i->n_results; k++) {
    bytes += shape_bytes(&i->shapes[k]);
  }
  return bytes;
}

/* Multiplies the hints of the dims, since a symbolic product would take longer to compute. */
static int64_t expected_bytes(const dim_table *t, const shape *s) {
  int64_t bytes = (int64_t)dtype_bytes((dtype)s->type), one;
  for (int k = 0; k < s->rank; k++) {
    if (!dim_hint(t, s->dims[k], &one) || __builtin_mul_overflow(bytes, one, &bytes)) {
      return 0;
    }
  }
  return bytes;
}

int64_t hlo_expected_bytes(const hlo_instr *i) {
  int64_t bytes = 0;
  for (uint32_t k = 0; k < i->n_results; k++) {
    const shape *s = &i->shapes[k];
    bytes += shape_is_static(s) ? shape_bytes(s) : expected_bytes(i->parent->module->dims, s);
  }
  return bytes;
}

void hlo_number(hlo_computation *c) {
  uint32_t id = 0;
  for (hlo_instr *i = c->first; i; i = i->next) {
    i->id = id++;
  }
  c->n_ids = id;
}

static bool same_attr(hlo_attr_kind kind, const hlo_attr *a, const hlo_attr *b) {
  switch (kind) {
    case HLO_KIND_STRING: return strcmp(a->s, b->s) == 0;
    case HLO_KIND_INTS:
    case HLO_KIND_DIMS:
    case HLO_KIND_SIGNED_DIMS: return a->n == b->n && (!a->n || memcmp(a->ints, b->ints, a->n * sizeof *a->ints) == 0);
    case HLO_KIND_FLOATS:
      return a->n_floats == b->n_floats &&
             (!a->n_floats || memcmp(a->floats, b->floats, a->n_floats * sizeof *a->floats) == 0);
    case HLO_KIND_LITERAL: return literal_equal(a->value, b->value);
    case HLO_KIND_COMPS:
      return a->n_comps == b->n_comps &&
             (!a->n_comps || memcmp(a->comps, b->comps, a->n_comps * sizeof *a->comps) == 0);
    default: return a->i == b->i;
  }
}

bool hlo_same_operation(const hlo_instr *a, const hlo_instr *b) {
  if (a->op != b->op || a->n_operands != b->n_operands || a->n_results != b->n_results ||
      strcmp(a->config, b->config) != 0) {
    return false;
  }
  for (uint32_t k = 0; k < a->n_results; k++) {
    if (!shape_equal(&a->shapes[k], &b->shapes[k])) {
      return false;
    }
  }
  const hlo_op_info *info = hlo_info(a);
  for (uint32_t k = 0; k < info->n_attrs; k++) {
    if (!same_attr(hlo_attr_get_info(info->attrs[k])->kind, &a->attrs[k], &b->attrs[k])) {
      return false;
    }
  }
  return true;
}

/* --- hashing --- */

static uint64_t attr_hash(uint64_t h, hlo_attr_kind kind, const hlo_attr *v) {
  switch (kind) {
    case HLO_KIND_STRING: return hash_bytes(v->s, strlen(v->s), h);
    case HLO_KIND_INTS:
    case HLO_KIND_DIMS:
    case HLO_KIND_SIGNED_DIMS: return hash_bytes(v->ints, v->n * sizeof *v->ints, h);
    case HLO_KIND_FLOATS: return hash_bytes(v->floats, v->n_floats * sizeof *v->floats, h);
    case HLO_KIND_LITERAL: return hash_mix(h, literal_hash(v->value));
    case HLO_KIND_COMPS:
      for (uint32_t k = 0; k < v->n_comps; k++) {
        h = hash_bytes(v->comps[k]->name, strlen(v->comps[k]->name), h);
      }
      return hash_mix(h, v->n_comps);
    default: return hash_mix(h, (uint64_t)v->i);
  }
}

static uint64_t shape_hash(uint64_t h, const shape *s) {
  h = hash_mix(h, (uint64_t)s->type << 16 | (uint64_t)s->kind << 8 | s->rank);
  return hash_bytes(s->dims, s->rank * sizeof *s->dims, h);
}

static uint64_t config_hash(uint64_t h, const hlo_instr *i) {
  return *i->config ? hash_bytes(i->config, strlen(i->config), h) : h;
}

uint64_t hlo_attrs_hash(uint64_t h, const hlo_instr *i) {
  const hlo_op_info *info = hlo_info(i);
  for (uint32_t k = 0; k < info->n_attrs; k++) {
    h = attr_hash(h, hlo_attr_get_info(info->attrs[k])->kind, &i->attrs[k]);
  }
  return h;
}

uint64_t hlo_operation_hash(const hlo_instr *i) {
  uint64_t h = hash_mix(hash_seed() ^ i->op, (uint64_t)i->n_operands << 32 | i->n_results);
  for (uint32_t k = 0; k < i->n_results; k++) {
    h = shape_hash(h, &i->shapes[k]);
  }
  return config_hash(hlo_attrs_hash(h, i), i);
}

uint64_t hlo_computation_hash(const hlo_computation *c) {
  hlo_number((hlo_computation *)c);
  uint64_t h = hash_bytes(c->name, strlen(c->name), c->n_params);
  for (const hlo_instr *i = c->first; i; i = i->next) {
    h = hash_mix(h, i->op);
    for (uint32_t k = 0; k < i->n_operands; k++) {
      h = hash_mix(h, (uint64_t)i->operands[k].def->id << 32 | i->operands[k].index);
    }
    for (uint32_t k = 0; k < i->n_results; k++) {
      h = shape_hash(h, &i->shapes[k]);
    }
    h = config_hash(hlo_attrs_hash(h, i), i);
  }
  for (uint32_t k = 0; k < c->n_roots; k++) {
    h = hash_mix(h, (uint64_t)c->roots[k].def->id << 32 | c->roots[k].index);
  }
  return h;
}

uint64_t hlo_module_hash(const hlo_module *m) {
  uint64_t h = hash_mix(m->n_computations, m->kernels_assigned);
  for (uint32_t k = 0; k < m->n_computations; k++) {
    h = hash_mix(h, hlo_computation_hash(m->computations[k]));
  }
  return h;
}

/* --- the order of computations --- */

typedef struct visit {
  hlo_computation *c;
  hlo_instr *at; /* the instruction whose callees are being visited */
  uint32_t callee;
} visit;

/* While this runs, n_ids of a computation is 1 if it was visited and 0 otherwise. */
void hlo_module_clean(hlo_module *m) {
  arena *scratch = m->arena;
  hlo_computation **ordered = ARENA_NEW_N(scratch, hlo_computation *, m->n_computations + 1);
  visit *stack = ARENA_NEW_N(scratch, visit, m->n_computations + 1);
  uint32_t n_ordered = 0, depth = 0;
  for (uint32_t k = 0; k < m->n_computations; k++) {
    m->computations[k]->n_ids = 0;
  }
  m->entry->n_ids = 1;
  stack[depth++] = (visit){m->entry, m->entry->first, 0};
  while (depth) {
    visit *v = &stack[depth - 1];
    while (v->at && v->callee >= hlo_n_callees(v->at)) {
      v->at = v->at->next;
      v->callee = 0;
    }
    if (!v->at) {
      ordered[n_ordered++] = v->c;
      depth--;
      continue;
    }
    hlo_computation *callee = hlo_callee(v->at, v->callee++);
    if (!callee->n_ids) {
      callee->n_ids = 1;
      stack[depth++] = (visit){callee, callee->first, 0};
    }
  }
  m->computations = ordered;
  m->n_computations = n_ordered;
  m->cap_computations = n_ordered;
}
