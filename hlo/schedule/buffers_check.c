/* buffers_check.c - follows a scheduled module through its buffers and tracks at each point which values are intact.
 * Of what buffers.c has computed it uses only the buffers, so that it checks them independently. */
#include <inttypes.h>
#include <string.h>

#include "hlo/schedule/buffers.h"

/* A value whose bytes are intact. */
typedef struct holding {
  hlo_value v;
  hlo_buffer where;
} holding;

typedef struct checker {
  arena *a;
  const hlo_buffers *b;
  const hlo_buffer_rules *rules;
  holding *held;
  uint32_t n, cap;
} checker;

static hlo_buffer slice_of(const checker *c, hlo_value v) { return hlo_slice_of(c->b, v); }

static bool is_view(const checker *c, const hlo_instr *i) { return c->rules->is_view && c->rules->is_view(i); }

/* Returns true for all but parameters, constants and views, whose bytes exist without being computed. */
static bool is_computed(const checker *c, const hlo_instr *i) {
  return i->op != HLO_PARAMETER && i->op != HLO_CONSTANT && !is_view(c, i);
}

/* --- intact values --- */

static bool is_held(const checker *c, hlo_value v) {
  for (uint32_t k = 0; k < c->n; k++) {
    if (hlo_value_equal(c->held[k].v, v)) {
      return true;
    }
  }
  return slice_of(c, v).bytes == 0;
}

static void hold(checker *c, hlo_value v) {
  if (!is_held(c, v)) {
    *ARENA_PUSH(c->a, c->held, c->n, c->cap) = (holding){v, slice_of(c, v)};
  }
}

/* Records that `by` writes to the buffer `where`.  Values that overlap it are not intact any more. */
static status overwrite(checker *c, const hlo_instr *by, hlo_buffer where) {
  uint32_t kept = 0;
  CHECK_THAT(!where.bytes || where.space == HLO_IN_ARENA || where.space == HLO_IN_RESULT, STATUS_INTERNAL,
             "%s writes to a constant or a parameter", hlo_info(by)->name);
  for (uint32_t k = 0; k < c->n; k++) {
    if (!hlo_slices_overlap(c->held[k].where, where)) {
      c->held[kept++] = c->held[k];
    }
  }
  c->n = kept;
  return NULL;
}

static status need(const checker *c, const hlo_instr *by, hlo_value v) {
  CHECK_THAT(is_held(c, v), STATUS_INTERNAL,
             "%s %%%" PRIu32 " reads result %" PRIu32 " of %s %%%" PRIu32 ", which is overwritten", hlo_info(by)->name,
             by->id, v.index, hlo_info(v.def)->name, v.def->id);
  return NULL;
}

/* Records a copy of the value `from` to the buffer `to`, as lower/ makes it.  Nothing is copied if the value
 * is in that buffer already. */
static status move(checker *c, const hlo_instr *by, hlo_value from, hlo_buffer to) {
  TRY(need(c, by, from));
  return hlo_same_slice(slice_of(c, from), to) ? NULL : overwrite(c, by, to);
}

/* --- instructions --- */

static status check_disjoint(const hlo_instr *i, hlo_buffer x, hlo_buffer y) {
  CHECK_THAT(!hlo_slices_overlap(x, y), STATUS_INTERNAL, "%s %%%" PRIu32 " (%s): two of its buffers overlap",
             hlo_info(i)->name, i->id, i->source);
  return NULL;
}

/* Checks operand k against result r, which is in `where`: they may only overlap if nothing that is overwritten is read
 * later. */
static status check_operand(const checker *c, const hlo_instr *i, uint32_t k, uint32_t r, hlo_buffer where) {
  hlo_buffer operand = slice_of(c, i->operands[k]);
  hlo_access access = c->rules->access ? c->rules->access(c->rules->data, i) : HLO_READS_WHILE_WRITING;
  if (!hlo_slices_overlap(where, operand)) {
    return NULL;
  }
  CHECK_THAT(hlo_same_slice(where, operand) && where.bytes == operand.bytes && hlo_may_overlap(c->a, i, k, r, access),
             STATUS_INTERNAL,
             "%s %%%" PRIu32 " (%s): result %" PRIu32 " overlaps operand %" PRIu32 ", which is still read",
             hlo_info(i)->name, i->id, i->source, r, k);
  return NULL;
}

/* Checks result r against operands, other results and scratch memory. */
static status check_result(const checker *c, const hlo_instr *i, uint32_t r) {
  hlo_buffer where = slice_of(c, hlo_result((hlo_instr *)i, r));
  for (uint32_t k = 0; k < i->n_operands; k++) {
    TRY(check_operand(c, i, k, r, where));
  }
  for (uint32_t k = 0; k < r; k++) {
    TRY(check_disjoint(i, where, slice_of(c, hlo_result((hlo_instr *)i, k))));
  }
  return check_disjoint(i, where, hlo_scratch_of(c->b, i));
}

/* Checks the buffers of one instruction against each other. */
static status check_own_buffers(const checker *c, const hlo_instr *i) {
  hlo_buffer scratch = hlo_scratch_of(c->b, i);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    TRY(check_disjoint(i, scratch, slice_of(c, i->operands[k])));
  }
  for (uint32_t r = 0; r < i->n_results; r++) {
    TRY(check_result(c, i, r));
  }
  return NULL;
}

static status run_plain(checker *c, const hlo_instr *i) {
  hlo_buffer scratch = hlo_scratch_of(c->b, i);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    TRY(need(c, i, i->operands[k]));
  }
  TRY(check_own_buffers(c, i));
  TRY(overwrite(c, i, scratch));
  for (uint32_t r = 0; r < i->n_results; r++) {
    TRY(overwrite(c, i, slice_of(c, hlo_result((hlo_instr *)i, r))));
  }
  for (uint32_t r = 0; r < i->n_results; r++) {
    hold(c, hlo_result((hlo_instr *)i, r));
  }
  return NULL;
}

static status run_view(checker *c, const hlo_instr *i) {
  hlo_value result = hlo_result((hlo_instr *)i, 0);
  TRY(need(c, i, i->operands[0]));
  CHECK_THAT(hlo_same_slice(slice_of(c, result), slice_of(c, i->operands[0])), STATUS_INTERNAL,
             "%s %%%" PRIu32 " is a view of other bytes", hlo_info(i)->name, i->id);
  hold(c, result);
  return NULL;
}

static status run_computation(checker *c, const hlo_computation *body);

/* Simulates a body of `i` and the copies of its roots to the results of `i`, one after the other. */
static status run_body(checker *c, const hlo_instr *i, const hlo_computation *body) {
  TRY(run_computation(c, body));
  for (uint32_t k = 0; k < i->n_results; k++) {
    hlo_value result = hlo_result((hlo_instr *)i, k);
    TRY(move(c, i, body->roots[k], slice_of(c, result)));
    hold(c, result);
  }
  for (uint32_t k = 0; k < i->n_results; k++) { /* no copy may have overwritten the result of another one */
    TRY(need(c, i, hlo_result((hlo_instr *)i, k)));
  }
  return NULL;
}

/* If a carried value is intact, marks the parameter of `body` that stands for it as intact, too. */
static void give_carried(checker *c, const hlo_instr *i, const hlo_computation *body) {
  for (uint32_t k = 0; k < i->n_results; k++) {
    if (is_held(c, hlo_result((hlo_instr *)i, k))) {
      hold(c, hlo_result(body->params[k], 0));
    }
  }
}

/* Simulates a while: the condition three times and the body twice, so that the second run reads what the first one
 * left. */
static status run_while(checker *c, const hlo_instr *i) {
  for (uint32_t k = 0; k < i->n_operands; k++) {
    TRY(move(c, i, i->operands[k], slice_of(c, hlo_result((hlo_instr *)i, k))));
    hold(c, hlo_result((hlo_instr *)i, k));
  }
  for (int round = 0; round < 3; round++) {
    give_carried(c, i, hlo_callee(i, 0));
    TRY(run_computation(c, hlo_callee(i, 0)));
    TRY(need(c, i, hlo_callee(i, 0)->roots[0]));
    if (round < 2) {
      give_carried(c, i, hlo_callee(i, 1));
      TRY(run_body(c, i, hlo_callee(i, 1)));
    }
  }
  return NULL;
}

static status run_branch(checker *c, const hlo_instr *i, const hlo_computation *branch) {
  for (uint32_t k = 0; k < branch->n_params; k++) {
    TRY(need(c, i, i->operands[k + 1]));
    CHECK_THAT(hlo_same_slice(slice_of(c, i->operands[k + 1]), slice_of(c, hlo_result(branch->params[k], 0))),
               STATUS_INTERNAL, "the parameter of a branch and its argument have different buffers");
    hold(c, hlo_result(branch->params[k], 0));
  }
  return run_body(c, i, branch);
}

/* Simulates each branch of a conditional.  Afterwards only those values are intact that every branch leaves intact. */
static status run_conditional(checker *c, const hlo_instr *i) {
  checker after = {0};
  TRY(need(c, i, i->operands[0]));
  for (uint32_t k = 0; k < hlo_n_callees(i); k++) {
    checker one = *c;
    one.held = arena_memdup(c->a, c->held, c->n * sizeof *c->held);
    one.cap = c->n;
    TRY(run_branch(&one, i, hlo_callee(i, k)));
    uint32_t kept = 0;
    for (uint32_t j = 0; j < after.n; j++) {
      if (is_held(&one, after.held[j].v)) {
        after.held[kept++] = after.held[j];
      }
    }
    after.n = kept;
    after = k ? after : one;
  }
  *c = after;
  return NULL;
}

static status run_instr(checker *c, const hlo_instr *i) {
  switch (i->op) {
    case HLO_PARAMETER: /* the caller provides the value */ return NULL;
    case HLO_CONSTANT: hold(c, hlo_result((hlo_instr *)i, 0)); return NULL;
    case HLO_WHILE: return run_while(c, i);
    case HLO_CONDITIONAL: return run_conditional(c, i);
    default: return is_view(c, i) ? run_view(c, i) : run_plain(c, i);
  }
}

/* --- concurrent groups: no member may write what another one reads or writes --- */

typedef struct touching {
  const checker *c;
  bool writes; /* whether only written buffers are collected */
  hlo_buffer *items;
  uint32_t n, cap;
} touching;

/* Returns false for a result of a while that is a carried value which the loop never changes, since such a value stays
 * where it is. */
static bool is_written(const hlo_instr *i, uint32_t result) {
  return i->op != HLO_WHILE || hlo_callee(i, 1)->roots[result].def != hlo_callee(i, 1)->params[result];
}

static void touch(touching *t, const hlo_instr *i) {
  const checker *c = t->c;
  bool writes = is_computed(c, i);
  for (uint32_t k = 0; k < i->n_operands && !t->writes; k++) {
    *ARENA_PUSH(c->a, t->items, t->n, t->cap) = slice_of(c, i->operands[k]);
  }
  for (uint32_t k = 0; k < i->n_results && writes; k++) {
    if (!t->writes || is_written(i, k)) {
      *ARENA_PUSH(c->a, t->items, t->n, t->cap) = slice_of(c, hlo_result((hlo_instr *)i, k));
    }
  }
  if (writes) {
    *ARENA_PUSH(c->a, t->items, t->n, t->cap) = hlo_scratch_of(c->b, i);
  }
  for (uint32_t k = 0; hlo_is_control(i) && k < hlo_n_callees(i); k++) {
    for (const hlo_instr *j = hlo_callee(i, k)->first; j; j = j->next) {
      touch(t, j);
    }
  }
}

static status check_pair(const checker *c, const hlo_instr *i, const hlo_instr *j) {
  touching written = {.c = c, .writes = true}, touched = {.c = c};
  touch(&written, i);
  touch(&touched, j);
  for (uint32_t k = 0; k < written.n; k++) {
    for (uint32_t l = 0; l < touched.n; l++) {
      CHECK_THAT(!hlo_slices_overlap(written.items[k], touched.items[l]), STATUS_INTERNAL,
                 "%s %%%" PRIu32 " writes where %s %%%" PRIu32 " works at the same time", hlo_info(i)->name, i->id,
                 hlo_info(j)->name, j->id);
    }
  }
  return NULL;
}

static status check_concurrent(const checker *c, const hlo_instr *first) {
  for (const hlo_instr *i = first; i; i = hlo_next_concurrent(i)) {
    for (const hlo_instr *j = first; j; j = hlo_next_concurrent(j)) {
      TRY(i == j ? NULL : check_pair(c, i, j));
    }
  }
  return NULL;
}

static status run_computation(checker *c, const hlo_computation *body) {
  for (const hlo_instr *i = body->first; i; i = i->next) {
    TRY(budget_check(arena_budget(c->a)));
    TRY(run_instr(c, i));
    TRY(i->concurrent && !hlo_next_concurrent(i) ? check_concurrent(c, hlo_first_concurrent(i)) : NULL);
  }
  return NULL;
}

/* --- the two checks --- */

static status check_overlaps_in(const checker *c, const hlo_computation *body) {
  for (const hlo_instr *i = body->first; i; i = i->next) {
    TRY(is_computed(c, i) && !hlo_is_control(i) ? check_own_buffers(c, i) : NULL);
    for (uint32_t k = 0; hlo_is_control(i) && k < hlo_n_callees(i); k++) {
      TRY(check_overlaps_in(c, hlo_callee(i, k)));
    }
  }
  return NULL;
}

status hlo_check_overlaps(arena *a, const hlo_module *m, const hlo_buffer_rules *rules, const hlo_buffers *b) {
  const checker c = {.a = a, .b = b, .rules = rules};
  return check_overlaps_in(&c, m->entry);
}

status hlo_check_buffers(arena *a, const hlo_module *m, const hlo_buffer_rules *rules, const hlo_buffers *b) {
  checker c = {.a = a, .b = b, .rules = rules};
  const hlo_computation *entry = m->entry;
  for (uint32_t k = 0; k < entry->n_params; k++) {
    hold(&c, hlo_result(entry->params[k], 0));
  }
  TRY(run_computation(&c, entry));
  for (uint32_t k = 0; k < entry->n_roots; k++) { /* a root that is in another buffer is copied */
    dim bytes = shape_dim_bytes(m->dims, hlo_shape(entry->roots[k]));
    TRY(move(&c, entry->roots[k].def, entry->roots[k],
             (hlo_buffer){.space = HLO_IN_RESULT, .index = k, .bytes = bytes}));
  }
  return NULL;
}
