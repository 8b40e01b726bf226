/* fuse.c - makes fusions of given instructions; see fuse.h. */
#include "hlo/passes/fusion/fuse.h"

#include <string.h>

/* Returns the first user of i, or NULL if there is none or a user is free (hlo_is_free). */
static hlo_instr *first_user(const hlo_instr *i) {
  hlo_instr *first = NULL;
  for (uint32_t k = 0; k < i->n_uses; k++) {
    hlo_instr *u = i->uses[k].user;
    if (hlo_is_free(u)) {
      return NULL;
    }
    first = !first || u->id < first->id ? u : first;
  }
  return first;
}

/* Returns true if there are only broadcasts between i and its user. */
static bool precedes(const hlo_instr *i, const hlo_instr *user) {
  do {
    i = i->next;
  } while (i != user && i->op == HLO_BROADCAST);
  return i == user;
}

bool hlo_sink_free(hlo_computation *c) {
  bool moved = false;
  hlo_number(c);
  for (hlo_instr *i = c->last, *prev; i; i = prev) {
    prev = i->prev;
    hlo_instr *user = i->op == HLO_BROADCAST ? first_user(i) : NULL;
    if (user && !precedes(i, user)) {
      hlo_move_before(i, user);
      moved = true;
    }
  }
  return moved;
}

hlo_fuser hlo_fuser_make(hlo_computation *c, arena *scratch) {
  hlo_fuser f = {.c = c, .scratch = scratch, .roots = hlo_count_roots(c, scratch), .n_ids = c->n_ids};
  size_t most = 2 * (size_t)c->n_ids + 1; /* each fusion replaces at least one instruction */
  f.fusion_of = ARENA_NEW_N(scratch, uint32_t, most);
  f.clone = ARENA_NEW_N(scratch, hlo_value, most);
  return f;
}

void hlo_fuser_renumber(hlo_fuser *f) {
  memset(f->roots, 0, f->n_ids * sizeof *f->roots);
  memset(f->fusion_of, 0, f->n_ids * sizeof *f->fusion_of);
  hlo_number(f->c);
  f->n_ids = f->c->n_ids;
  f->n_fusions = 0;
  for (uint32_t k = 0; k < f->c->n_roots; k++) {
    f->roots[f->c->roots[k].def->id]++;
  }
}

/* A fusion that is being made. */
typedef struct making {
  hlo_fuser *f;
  hlo_computation *body;
  uint32_t n, cap;
  hlo_value *outer; /* the operands; parameter k of the body stands for outer[k] */
} making;

static hlo_value as_parameter(making *m, hlo_value v) {
  for (uint32_t k = 0; k < m->n; k++) {
    if (hlo_value_equal(m->outer[k], v)) {
      return hlo_result(m->body->params[k], 0);
    }
  }
  *ARENA_PUSH(m->f->scratch, m->outer, m->n, m->cap) = v;
  return hlo_result(hlo_parameter(m->body, *hlo_shape(v)), 0);
}

enum { MOST_FREE = 8 };

/* Returns what v is inside of the fusion: the copy of one of the fused instructions (its members), a copy of a free
 * instruction (hlo_is_free; at most MOST_FREE of them in a chain), or a parameter. */
static hlo_value inside(making *m, hlo_value v, int depth) {
  hlo_fuser *f = m->f;
  uint32_t id = v.def->id;
  if (v.def->n_results == 1 && f->fusion_of[id] == f->n_fusions) {
    return f->clone[id];
  }
  if (!hlo_is_free(v.def) || depth == MOST_FREE) {
    return as_parameter(m, v);
  }
  hlo_value x = v.def->n_operands ? inside(m, v.def->operands[0], depth + 1) : v;
  f->fusion_of[id] = f->n_fusions;
  f->clone[id] = hlo_result(hlo_instr_clone(m->body, NULL, v.def, &x), 0);
  return f->clone[id];
}

/* Returns true if operand k of i is a short list of constant indices, which is copied into the fusion so that the
 * kernel need not load it. */
static bool is_known_list(const hlo_instr *i, uint32_t k) {
  enum { LONG = 1024 };
  return i->op == HLO_GATHER && k == 1 && hlo_literal(i->operands[k]) &&
         shape_elements(hlo_shape(i->operands[k])) <= LONG;
}

static hlo_value constant_inside(making *m, const hlo_instr *i) {
  hlo_fuser *f = m->f;
  if (f->fusion_of[i->id] != f->n_fusions) {
    f->fusion_of[i->id] = f->n_fusions;
    f->clone[i->id] = hlo_result(hlo_instr_clone(m->body, NULL, i, NULL), 0);
  }
  return f->clone[i->id];
}

/* Copies i, one of the fused instructions, into the body.  The operands of a contraction become parameters, since
 * libraries need arrays. */
static void copy_member(making *m, hlo_instr *i) {
  bool contraction = hlo_info(i)->kind == HLO_CONTRACTION;
  hlo_value *operands = ARENA_NEW_N(m->f->scratch, hlo_value, i->n_operands + 1);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    operands[k] = is_known_list(i, k) ? constant_inside(m, i->operands[k].def)
                                      : inside(m, i->operands[k], contraction ? MOST_FREE : 0);
  }
  hlo_instr *copy = hlo_instr_clone(m->body, NULL, i, operands);
  m->f->fusion_of[i->id] = m->f->n_fusions;
  m->f->clone[i->id] = hlo_result(copy, 0);
}

/* Returns true if i, one of the fused instructions, is used outside of the fusion.  Free instructions (hlo_is_free) are
 * copied into each fusion, so a free user does not count, but its own users do. */
static bool is_output(const hlo_fuser *f, const hlo_instr *i) {
  for (uint32_t k = 0; k < i->n_uses; k++) {
    const hlo_instr *user = i->uses[k].user;
    if (hlo_is_free(user) ? is_output(f, user) : f->fusion_of[user->id] != f->n_fusions) {
      return true;
    }
  }
  return f->roots[i->id] > 0;
}

/* Removes v if it is free (hlo_is_free) and has no users, and then the free instructions that only it used. */
static void remove_free(hlo_fuser *f, hlo_value v) {
  while (hlo_is_free(v.def) && v.def->n_uses == 0 && !f->roots[v.def->id]) {
    hlo_value next = v.def->n_operands ? v.def->operands[0] : v;
    hlo_remove(v.def);
    if (next.def == v.def) {
      return;
    }
    v = next;
  }
}

/* If dce was skipped, i, one of the fused instructions, may have free users (hlo_is_free) that are dead.  They do not
 * count as outputs (is_output), so they must be removed; they would otherwise stay before the fusion although they
 * depend on it. */
static void remove_unused_readers(hlo_fuser *f, hlo_instr *i) {
  for (uint32_t k = 0; k < i->n_uses;) {
    hlo_instr *user = i->uses[k].user;
    bool is_free = hlo_is_free(user);
    if (is_free) {
      remove_unused_readers(f, user);
    }
    if (is_free && user->n_uses == 0 && f->roots[user->id] == 0) {
      hlo_remove(user);
    } else {
      k++;
    }
  }
}

static void remove_members(hlo_fuser *f, uint32_t n, hlo_instr *const *members) {
  for (uint32_t k = n; k-- > 0;) {
    hlo_instr *i = members[k];
    uint32_t n_operands = i->n_operands;
    if (i->parent) {
      remove_unused_readers(f, i);
    }
    /* The instruction stays if a dead instruction still uses it.  If it is free (hlo_is_free), it may have been removed
     * already. */
    if (i->n_uses || !i->parent) {
      continue;
    }
    hlo_remove(i);
    for (uint32_t j = 0; j < n_operands; j++) {
      if (i->operands[j].def->parent) {
        remove_free(f, i->operands[j]);
      }
    }
  }
}

/* Returns the sources (hlo_instr.source) of the members, each once, as "a + b".  If there are more than MOST,
 * the others are written as "...". */
static const char *joined_source(arena *a, uint32_t n, hlo_instr *const *members) {
  enum { MOST = 12 };
  const char *text = "", *joined[MOST];
  uint32_t n_joined = 0;
  for (uint32_t k = 0; k < n; k++) {
    const char *s = members[k]->source;
    bool is_new = s[0];
    for (uint32_t j = 0; j < n_joined && is_new; j++) {
      is_new = strcmp(s, joined[j]) != 0;
    }
    if (is_new && n_joined == MOST) {
      return arena_printf(a, "%s + ...", text);
    }
    if (is_new) {
      text = n_joined ? arena_printf(a, "%s + %s", text, s) : s;
      joined[n_joined++] = s;
    }
  }
  return text;
}

hlo_instr *hlo_fuse(hlo_fuser *f, hlo_fusion_kind kind, uint32_t n, hlo_instr *const *members) {
  static const char *const names[] = {"fused_loop", "fused_input", "fused_output", "fused_attention"};
  hlo_module *module = f->c->module;
  f->n_fusions++;
  making m = {.f = f, .body = hlo_computation_create(module, names[kind])};
  hlo_value *roots = ARENA_NEW_N(f->scratch, hlo_value, n), *outputs = ARENA_NEW_N(f->scratch, hlo_value, n);
  uint32_t n_roots = 0;
  for (uint32_t k = 0; k < n; k++) {
    copy_member(&m, members[k]);
  }
  for (uint32_t k = 0; k < n; k++) {
    if (is_output(f, members[k]) || (k == n - 1 && !n_roots)) { /* a fusion needs a result, even if nothing uses it */
      outputs[n_roots] = hlo_result(members[k], 0);
      roots[n_roots++] = f->clone[members[k]->id];
    }
  }
  hlo_set_roots(m.body, n_roots, roots);
  hlo_instr *i = hlo_instr_create(f->c, members[n - 1], HLO_FUSION, m.n, m.outer, n_roots);
  i->id = f->n_ids++;
  hlo_attr_of(i, HLO_ATTR_FUSION)->i = kind;
  hlo_attr *callee = hlo_attr_of(i, HLO_ATTR_COMPUTATIONS);
  callee->n_comps = 1;
  callee->comps = arena_memdup(module->arena, &m.body, sizeof m.body);
  i->source = joined_source(module->arena, n, members);
  for (uint32_t k = 0; k < n_roots; k++) {
    i->shapes[k] = *hlo_shape(roots[k]);
    hlo_replace(outputs[k], hlo_result(i, k));
  }
  remove_members(f, n, members);
  return i;
}
