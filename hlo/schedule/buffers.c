/* buffers.c - buffer assignment.
 *
 * Values that must or may share memory are joined into units (union-find).  Each unit has one interval of
 * time in which it is live.  Time is the order in which instructions run, with the bodies of each while and
 * conditional in the place of that instruction.  base/placement.h then chooses the offset of each unit. */
#include "hlo/schedule/buffers.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/placement.h"
#include "hlo/ir/bind.h"

enum { DEPTH_MAX = 100 };

/* A unit is a set of values that share memory. */
typedef struct unit {
  uint32_t parent; /* the unit into which this one was joined; its own number if it is a representative */
  hlo_space space;
  uint32_t index;
  dim bytes;
  uint64_t offset;
  uint32_t first, last; /* the closed interval of time in which the unit is live, if `defined` */
  bool defined;
} unit;

/* The numbers of a computation's values in the table of units, and the times of its instructions. */
typedef struct frame {
  const hlo_computation *c;
  uint32_t *first_unit; /* for each instruction id: the unit of the instruction's result 0 */
  uint32_t *time;       /* for each instruction id: the time at which the instruction runs */
} frame;

struct hlo_buffers {
  arena *a;
  const hlo_buffer_rules *rules;
  frame *frames; /* sorted by computation after all values have been numbered */
  uint32_t n_frames, cap_frames;
  unit *units;
  uint32_t n_units, cap_units;
  uint32_t now;
  dim_table *dims;
  bool symbolic; /* whether the arena consists of slots */
  hlo_slot *slots;
  uint32_t n_slots;
  uint64_t arena_bytes, lower_bound;
  const literal **constants;
  uint32_t n_constants, cap_constants;
};

/* --- units (union-find) --- */

static uint32_t new_unit(hlo_buffers *b, hlo_space space, uint32_t index, dim bytes) {
  unit *u = ARENA_PUSH(b->a, b->units, b->n_units, b->cap_units);
  *u = (unit){.parent = b->n_units - 1, .space = space, .index = index, .bytes = bytes};
  return u->parent;
}

static uint32_t find(const hlo_buffers *b, uint32_t u) {
  while (b->units[u].parent != u) {
    u = b->units[u].parent = b->units[b->units[u].parent].parent;
  }
  return u;
}

static void live_at(hlo_buffers *b, uint32_t u, uint32_t time) {
  unit *r = &b->units[find(b, u)];
  if (!r->defined) {
    r->first = r->last = time;
    r->defined = true;
  }
  r->first = time < r->first ? time : r->first;
  r->last = time > r->last ? time : r->last;
}

static dim larger(const hlo_buffers *b, dim x, dim y) {
  return x == y ? x : dim_is_const(x) && dim_is_const(y) ? (x > y ? x : y) : dim_max(b->dims, x, y);
}

/* Joins the unit `from` to the unit `into`.  The joined unit is in the memory of `into`: the arena, a constant, a
 * parameter or a result. */
static void join(hlo_buffers *b, uint32_t from, uint32_t into) {
  from = find(b, from);
  into = find(b, into);
  if (from == into) {
    return;
  }
  unit *f = &b->units[from], *t = &b->units[into];
  f->parent = into;
  if (f->defined) {
    live_at(b, into, f->first);
    live_at(b, into, f->last);
  }
  t->bytes = larger(b, f->bytes, t->bytes);
}

static bool in_arena(const hlo_buffers *b, uint32_t u) { return b->units[find(b, u)].space == HLO_IN_ARENA; }

static int compare_frames(const void *x, const void *y) {
  uintptr_t a = (uintptr_t)((const frame *)x)->c, b = (uintptr_t)((const frame *)y)->c;
  return (a > b) - (a < b);
}

static const frame *frame_of(const hlo_buffers *b, const hlo_computation *c) {
  frame key = {.c = c};
  return bsearch(&key, b->frames, b->n_frames, sizeof key, compare_frames);
}

static uint32_t unit_of(const hlo_buffers *b, hlo_value v) {
  return frame_of(b, v.def->parent)->first_unit[v.def->id] + v.index;
}

static dim value_bytes(const hlo_buffers *b, hlo_value v) { return shape_dim_bytes(b->dims, hlo_shape(v)); }

static bool is_view(const hlo_buffers *b, const hlo_instr *i) { return b->rules->is_view && b->rules->is_view(i); }

static dim scratch_bytes(const hlo_buffers *b, const hlo_instr *i) {
  return b->rules->scratch && i->op != HLO_PARAMETER && i->op != HLO_CONSTANT && !hlo_is_control(i)
             ? b->rules->scratch(b->rules->data, i)
             : 0;
}

/* --- first pass: makes a unit for every value and a time for every instruction --- */

static uint32_t constant_number(hlo_buffers *b, const hlo_instr *i) {
  *ARENA_PUSH(b->a, b->constants, b->n_constants, b->cap_constants) = hlo_attr_of(i, HLO_ATTR_VALUE)->value;
  return b->n_constants - 1;
}

static status number_instr(hlo_buffers *b, const hlo_instr *i, bool entry) {
  for (uint32_t k = 0; k < i->n_results; k++) {
    dim bytes = value_bytes(b, hlo_result((hlo_instr *)i, k));
    CHECK_THAT(bytes != DIM_OVERFLOW, STATUS_UNSUPPORTED, "%s: the size in bytes of %s is too large an expression",
               i->source, SHAPE_STR(b->dims, &i->shapes[k]));
    if (i->op == HLO_CONSTANT) {
      new_unit(b, HLO_IN_CONSTANT, constant_number(b, i), bytes);
    } else if (i->op == HLO_PARAMETER && entry) {
      new_unit(b, HLO_IN_PARAM, (uint32_t)hlo_int(i, HLO_ATTR_INDEX), bytes);
    } else {
      new_unit(b, HLO_IN_ARENA, 0, bytes);
    }
  }
  new_unit(b, HLO_IN_ARENA, 0, scratch_bytes(b, i)); /* the unit of scratch memory follows those of the results */
  return NULL;
}

static status number(hlo_buffers *b, hlo_computation *c, bool entry, int depth) {
  CHECK_THAT(depth < DEPTH_MAX, STATUS_RESOURCE, "control flow nests deeper than %d", DEPTH_MAX);
  hlo_number(c);
  frame f = {
      .c = c, .first_unit = ARENA_NEW_N(b->a, uint32_t, c->n_ids), .time = ARENA_NEW_N(b->a, uint32_t, c->n_ids)};
  *ARENA_PUSH(b->a, b->frames, b->n_frames, b->cap_frames) = f;
  for (const hlo_instr *i = c->first; i; i = i->next) {
    f.first_unit[i->id] = b->n_units;
    TRY(number_instr(b, i, entry));
    for (uint32_t k = 0; hlo_is_control(i) && k < hlo_n_callees(i); k++) {
      TRY(number(b, hlo_callee(i, k), false, depth + 1));
    }
    f.time[i->id] = i->concurrent && !hlo_is_control(i) ? b->now : ++b->now;
  }
  return NULL;
}

/* --- second pass: lifetimes, and values that always share a buffer --- */

/* Returns the time at which a while or conditional starts, before its bodies run.  The buffers of a while's carried
 * values are live from then on. */
static uint32_t start_time(const hlo_buffers *b, const hlo_instr *i) {
  const frame *f = frame_of(b, i->parent);
  return i->prev ? f->time[i->prev->id] : f->time[i->id] - 1;
}

static void join_while(hlo_buffers *b, const hlo_instr *i) {
  for (uint32_t k = 0; k < i->n_results; k++) {
    uint32_t carried = unit_of(b, hlo_result((hlo_instr *)i, k));
    for (uint32_t c = 0; c < 2; c++) {
      join(b, unit_of(b, hlo_result(hlo_callee(i, c)->params[k], 0)), carried);
    }
    hlo_value root = hlo_callee(i, 1)->roots[k];
    /* If the loop never changes a value, the body reads the initial value in place. */
    if (root.def == hlo_callee(i, 1)->params[k]) {
      join(b, carried, unit_of(b, i->operands[k]));
    }
    live_at(b, carried, start_time(b, i));
  }
}

/* The parameters of a branch share the buffers of the arguments. */
static void join_conditional(hlo_buffers *b, const hlo_instr *i) {
  for (uint32_t c = 0; c < hlo_n_callees(i); c++) {
    const hlo_computation *branch = hlo_callee(i, c);
    for (uint32_t k = 0; k < branch->n_params; k++) {
      join(b, unit_of(b, hlo_result(branch->params[k], 0)), unit_of(b, i->operands[k + 1]));
    }
  }
  for (uint32_t k = 0; k < i->n_results; k++) {
    live_at(b, unit_of(b, hlo_result((hlo_instr *)i, k)), start_time(b, i));
  }
}

static void set_lifetimes(hlo_buffers *b, const hlo_computation *c, uint32_t end) {
  const frame *f = frame_of(b, c);
  for (const hlo_instr *i = c->first; i; i = i->next) {
    uint32_t time = f->time[i->id];
    if (i->op == HLO_WHILE) {
      join_while(b, i);
    } else if (i->op == HLO_CONDITIONAL) {
      join_conditional(b, i);
    } else if (is_view(b, i)) {
      join(b, unit_of(b, hlo_result((hlo_instr *)i, 0)), unit_of(b, i->operands[0]));
    }
    for (uint32_t k = 0; k < i->n_operands; k++) {
      live_at(b, unit_of(b, i->operands[k]), time);
    }
    for (uint32_t k = 0; k <= i->n_results; k++) { /* the results and the scratch memory */
      live_at(b, f->first_unit[i->id] + k, time);
    }
    for (uint32_t k = 0; hlo_is_control(i) && k < hlo_n_callees(i); k++) {
      set_lifetimes(b, hlo_callee(i, k), time);
    }
  }
  for (uint32_t k = 0; k < c->n_roots; k++) {
    live_at(b, unit_of(b, c->roots[k]), end);
  }
}

/* --- third pass: values that may share a buffer --- */

/* Returns true if another instruction of i's concurrent group reads a value in the memory of unit u. */
static bool is_read_concurrently(const hlo_buffers *b, const hlo_instr *i, uint32_t u) {
  for (const hlo_instr *j = hlo_first_concurrent(i); j; j = hlo_next_concurrent(j)) {
    for (uint32_t k = 0; k < j->n_operands && j != i; k++) {
      if (find(b, unit_of(b, j->operands[k])) == u) {
        return true;
      }
    }
  }
  return false;
}

/* Returns true if result number `result` of i may overwrite every operand of i that belongs to the unit `memory`.
 * Several operands may belong to it, since the values of a unit share memory. */
static bool may_overwrite(const hlo_buffers *b, const hlo_instr *i, uint32_t memory, uint32_t result) {
  for (uint32_t k = 0; k < i->n_operands; k++) {
    if (find(b, unit_of(b, i->operands[k])) == memory && !b->rules->may_share(b->rules->data, i, k, result)) {
      return false;
    }
  }
  return true;
}

/* Returns true if result r of i may be written over the memory of unit `operand`.  For this, `i` must be the
 * last to read that unit, result r must be the first value in its own unit, both units must have the same
 * size, and the rules must allow it (may_share). */
static bool may_take(const hlo_buffers *b, const hlo_instr *i, uint32_t r, uint32_t operand) {
  uint32_t time = frame_of(b, i->parent)->time[i->id], result = find(b, unit_of(b, hlo_result((hlo_instr *)i, r)));
  return b->rules->may_share && !is_view(b, i) && !hlo_is_control(i) && operand != result && in_arena(b, result) &&
         b->units[operand].last == time && b->units[result].first == time &&
         b->units[operand].bytes == b->units[result].bytes && !is_read_concurrently(b, i, operand) &&
         may_overwrite(b, i, operand, r);
}

/* Lets results overwrite operands that are not used later. */
static void share_operands(hlo_buffers *b, const hlo_instr *i) {
  for (uint32_t r = 0; r < i->n_results; r++) {
    for (uint32_t k = 0; k < i->n_operands; k++) {
      uint32_t operand = find(b, unit_of(b, i->operands[k]));
      if (in_arena(b, operand) && may_take(b, i, r, operand)) {
        join(b, find(b, unit_of(b, hlo_result((hlo_instr *)i, r))), operand);
        break;
      }
    }
  }
}

/* Returns the time at which the concurrent group of `i` has finished. */
static uint32_t end_time(const frame *f, const hlo_instr *i) {
  while (hlo_next_concurrent(i)) {
    i = hlo_next_concurrent(i);
  }
  return f->time[i->id];
}

/* Returns true if d, an instruction of a loop's body, may write its result number `result` over the parameter `param`
 * of the body.  The memory of the result is in use from time `first` on.  All users of the parameter must have finished
 * before that time.  Only d itself may read the parameter at that time, if the rules let d overwrite it (may_share). */
static bool param_is_done(const hlo_buffers *b, const hlo_instr *param, const hlo_instr *d, uint32_t result,
                          uint32_t first) {
  const frame *f = frame_of(b, param->parent);
  if (hlo_is_root(hlo_result((hlo_instr *)param, 0))) {
    return false;
  }
  for (uint32_t k = 0; k < param->n_uses; k++) {
    const hlo_instr *user = param->uses[k].user;
    bool in_place = user == d && f->time[d->id] == first && b->rules->may_share &&
                    may_overwrite(b, d, find(b, unit_of(b, hlo_result((hlo_instr *)param, 0))), result);
    if (is_view(b, user) || hlo_is_control(user) || (end_time(f, user) >= first && !in_place)) {
      return false; /* the parameter or a view of it is read later */
    }
  }
  return true;
}

/* Lets the body of a while compute the next value of a carried value directly into the buffer of the old one, if
 * nothing reads the old value once the next one is being written. */
static void share_carried(hlo_buffers *b, const hlo_instr *i) {
  const hlo_computation *body = hlo_callee(i, 1);
  uint32_t body_start = frame_of(b, body)->time[body->first->id];
  for (uint32_t k = 0; k < i->n_results; k++) {
    hlo_value root = body->roots[k];
    uint32_t carried = find(b, unit_of(b, hlo_result((hlo_instr *)i, k))), own = find(b, unit_of(b, root));
    if (own != carried && in_arena(b, own) && in_arena(b, carried) && b->units[own].first >= body_start &&
        !hlo_is_control(root.def) && root.def->op != HLO_PARAMETER &&
        param_is_done(b, body->params[k], root.def, root.index, b->units[own].first)) {
      join(b, own, carried);
    }
  }
}

static void share_inits(hlo_buffers *b, const hlo_instr *i) {
  uint32_t start = start_time(b, i), time = frame_of(b, i->parent)->time[i->id];
  for (uint32_t k = 0; k < i->n_results; k++) {
    uint32_t init = find(b, unit_of(b, i->operands[k])), carried = find(b, unit_of(b, hlo_result((hlo_instr *)i, k)));
    bool once = true;
    for (uint32_t j = 0; j < i->n_operands; j++) {
      once &= j == k || find(b, unit_of(b, i->operands[j])) != init;
    }
    if (once && init != carried && in_arena(b, init) && in_arena(b, carried) && b->units[init].last == time &&
        b->units[init].first <= start && b->units[carried].first == start && !is_read_concurrently(b, i, init)) {
      join(b, carried, init);
    }
  }
}

/* Lets a branch compute its root directly into the buffer of the conditional's result. */
static void share_branches(hlo_buffers *b, const hlo_instr *i) {
  for (uint32_t c = 0; c < hlo_n_callees(i); c++) {
    const hlo_computation *branch = hlo_callee(i, c);
    for (uint32_t k = 0; k < branch->n_roots; k++) {
      hlo_value root = branch->roots[k];
      uint32_t own = find(b, unit_of(b, root)), result = find(b, unit_of(b, hlo_result((hlo_instr *)i, k)));
      if (own != result && in_arena(b, own) && in_arena(b, result) &&
          b->units[own].first >= frame_of(b, branch)->time[branch->first->id] && root.def->op != HLO_PARAMETER) {
        join(b, own, result);
      }
    }
  }
}

static void share(hlo_buffers *b, const hlo_computation *c) {
  for (const hlo_instr *i = c->first; i; i = i->next) {
    for (uint32_t k = 0; hlo_is_control(i) && k < hlo_n_callees(i); k++) {
      share(b, hlo_callee(i, k));
    }
    if (i->op == HLO_WHILE) {
      share_carried(b, i);
      share_inits(b, i);
    } else if (i->op == HLO_CONDITIONAL) {
      share_branches(b, i);
    } else if (!is_view(b, i) && i->op != HLO_PARAMETER && i->op != HLO_CONSTANT) {
      share_operands(b, i);
    }
  }
}

/* Extends lifetimes: everything that `i` and the bodies that it calls write is live from `from` to `to`, and everything
 * that they read is live until `to`. */
static void widen(hlo_buffers *b, const hlo_instr *i, uint32_t from, uint32_t to) {
  uint32_t first = frame_of(b, i->parent)->first_unit[i->id];
  for (uint32_t r = 0; r <= i->n_results; r++) { /* the results and the scratch memory */
    live_at(b, first + r, from);
    live_at(b, first + r, to);
  }
  for (uint32_t k = 0; k < i->n_operands; k++) {
    live_at(b, unit_of(b, i->operands[k]), to);
  }
  for (uint32_t k = 0; hlo_is_control(i) && k < hlo_n_callees(i); k++) {
    for (const hlo_instr *j = hlo_callee(i, k)->first; j; j = j->next) {
      widen(b, j, from, to);
    }
  }
}

/* Extends the lifetimes of what the members of a concurrent group use, so that they span the time in which the group
 * runs.  A control instruction runs for an interval of time, and the other members of its group run at any time in that
 * interval.  So nothing that one member uses may share memory with what another one writes. */
static void widen_groups(hlo_buffers *b, const hlo_computation *c) {
  const frame *f = frame_of(b, c);
  for (const hlo_instr *i = c->first; i; i = i->next) {
    for (uint32_t k = 0; hlo_is_control(i) && k < hlo_n_callees(i); k++) {
      widen_groups(b, hlo_callee(i, k));
    }
    if (i->concurrent || !hlo_next_concurrent(i)) {
      continue;
    }
    uint32_t from = hlo_is_control(i) ? start_time(b, i) : f->time[i->id], to = end_time(f, i);
    for (const hlo_instr *j = i; from < to && j; j = hlo_next_concurrent(j)) {
      widen(b, j, from, to);
    }
  }
}

/* Puts the entry's roots directly into the caller's results.  A root that is in the memory of a parameter, a constant
 * or another result is copied at the end (by lower/). */
static void place_results(hlo_buffers *b, const hlo_computation *entry) {
  for (uint32_t k = 0; k < entry->n_roots; k++) {
    uint32_t u = find(b, unit_of(b, entry->roots[k]));
    if (b->units[u].space == HLO_IN_ARENA && b->units[u].bytes == value_bytes(b, entry->roots[k])) {
      b->units[u].space = HLO_IN_RESULT;
      b->units[u].index = k;
    }
  }
}

/* --- results that are carried in the memory of parameters --- */

/* Lets each carried root be computed in the memory of its parameter, if the rules and lifetimes allow it.
 * This memory then counts as the memory of the result.  Other carried roots have memory of their own. */
static void place_carried(hlo_buffers *b, const hlo_module *m) {
  for (uint32_t k = 0; m->carried && k < m->entry->n_roots; k++) {
    if (m->carried[k].parameter < 0) {
      continue;
    }
    hlo_instr *p = m->entry->params[m->carried[k].parameter];
    uint32_t root = find(b, unit_of(b, m->entry->roots[k])), param = find(b, unit_of(b, hlo_result(p, 0)));
    if (b->units[param].space != HLO_IN_PARAM) {
      continue;
    }
    for (hlo_instr *i = m->entry->first; i; i = i->next) {
      for (uint32_t r = 0; r < i->n_results; r++) {
        if (find(b, unit_of(b, hlo_result(i, r))) == root && may_take(b, i, r, param)) {
          join(b, root, param);
        }
      }
    }
    if (find(b, root) == param) {
      b->units[param].space = HLO_IN_RESULT;
      b->units[param].index = k;
    }
  }
}

/* --- offsets in the arena --- */

static bool needs_memory(const hlo_buffers *b, uint32_t k) {
  const unit *u = &b->units[k];
  return u->parent == k && u->space == HLO_IN_ARENA && u->bytes && u->defined;
}

static void number_slots(hlo_buffers *b) {
  b->slots = ARENA_NEW_N(b->a, hlo_slot, b->n_units + 1);
  for (uint32_t k = 0; k < b->n_units; k++) {
    unit *u = &b->units[k];
    if (needs_memory(b, k)) {
      b->slots[b->n_slots] = (hlo_slot){u->bytes, u->first, u->last};
      u->index = b->n_slots++;
    }
  }
  b->n_slots += b->n_slots == 0; /* slot 0 exists even if there are only values without elements, which are in it */
}

static status place_all(hlo_buffers *b) {
  unit **units = ARENA_NEW_N(b->a, unit *, b->n_units);
  live_slice *slices = ARENA_NEW_N(b->a, live_slice, b->n_units);
  uint32_t n = 0;
  for (uint32_t k = 0; k < b->n_units; k++) {
    unit *u = &b->units[k];
    if (needs_memory(b, k)) {
      slices[n] = (live_slice){.bytes = (uint64_t)u->bytes, .first = u->first, .last = u->last};
      units[n++] = u;
    }
  }
  TRY(place_slices(b->a, n, slices, b->now, &b->arena_bytes, &b->lower_bound));
  for (uint32_t k = 0; k < n; k++) {
    units[k]->offset = slices[k].offset;
  }
  return NULL;
}

/* Each body of control flow must have a single caller: see hlo/ir/flatten_calls.h. */
status hlo_assign_buffers(arena *a, const hlo_module *m, const hlo_buffer_rules *rules, hlo_buffers **out) {
  hlo_buffers *b = ARENA_NEW(a, hlo_buffers);
  b->a = a;
  b->rules = rules;
  b->dims = m->dims;
  b->symbolic = !hlo_is_static(m);
  b->now = 1;
  TRY(number(b, m->entry, true, 0));
  qsort(b->frames, b->n_frames, sizeof *b->frames, compare_frames);
  set_lifetimes(b, m->entry, b->now + 1);
  share(b, m->entry);
  place_carried(b, m);
  place_results(b, m->entry);
  widen_groups(b, m->entry);
  *out = b;
  if (b->symbolic) {
    number_slots(b);
    return NULL;
  }
  return place_all(b);
}

/* --- reading the assignment --- */

static hlo_buffer slice_of_unit(const hlo_buffers *b, uint32_t u, dim bytes) {
  const unit *r = &b->units[find(b, u)];
  return (hlo_buffer){.space = r->space, .index = r->index, .offset = r->offset, .bytes = bytes};
}

hlo_buffer hlo_slice_of(const hlo_buffers *b, hlo_value v) {
  return slice_of_unit(b, unit_of(b, v), value_bytes(b, v));
}

hlo_buffer hlo_scratch_of(const hlo_buffers *b, const hlo_instr *i) {
  uint32_t u = frame_of(b, i->parent)->first_unit[i->id] + i->n_results;
  return slice_of_unit(b, u, b->units[u].bytes);
}

const hlo_slot *hlo_slots(const hlo_buffers *b, uint32_t *n) {
  *n = b->n_slots;
  return b->slots;
}

uint64_t hlo_arena_bytes(const hlo_buffers *b) { return b->arena_bytes; }
uint64_t hlo_arena_lower_bound(const hlo_buffers *b) { return b->lower_bound; }
uint32_t hlo_n_constants(const hlo_buffers *b) { return b->n_constants; }
const literal *hlo_constant_at(const hlo_buffers *b, uint32_t index) { return b->constants[index]; }

typedef struct lines {
  const char **items;
  uint32_t n, cap;
  size_t size; /* the number of characters of all lines */
} lines;

static void add_line(arena *a, lines *l, const char *line) {
  *ARENA_PUSH(a, l->items, l->n, l->cap) = line;
  l->size += strlen(line);
}

static const char *join_lines(arena *a, const lines *l) {
  char *text = arena_alloc(a, l->size + 1), *at = text;
  for (uint32_t k = 0; k < l->n; k++) {
    size_t n = strlen(l->items[k]);
    memcpy(at, l->items[k], n);
    at += n;
  }
  return text;
}

/* Returns a text that says with which operand a result shares its bytes, such as ", in place over %2.0" or ", a view
 * of %2.0"; "" if it shares none. */
static const char *sharing_text(arena *a, const hlo_buffers *b, hlo_instr *i, uint32_t k) {
  hlo_buffer mine = hlo_slice_of(b, (hlo_value){i, k});
  bool view = b->rules->is_view && b->rules->is_view(i);
  for (uint32_t j = 0; j < i->n_operands && mine.bytes; j++) {
    hlo_value x = i->operands[j];
    if (value_bytes(b, x) && hlo_same_slice(mine, hlo_slice_of(b, x))) {
      return arena_printf(a, ", %s %%%u.%u", view ? "a view of" : "in place over", x.def->id, x.index);
    }
  }
  return "";
}

const char *hlo_buffers_report(arena *a, const hlo_module *m, const hlo_buffers *b) {
  static const char *const spaces[] = {"arena", "constant", "param", "result"};
  lines l = {0};
  for (uint32_t c = 0; c < m->n_computations; c++) {
    const frame *f = frame_of(b, m->computations[c]);
    if (!f) { /* the bodies of fusions have no buffers */
      continue;
    }
    add_line(a, &l, arena_printf(a, "%s\n", f->c->name));
    for (hlo_instr *i = f->c->first; i; i = i->next) {
      const char *source = *i->source ? arena_printf(a, " @\"%s\"", i->source) : "";
      for (uint32_t k = 0; k <= i->n_results; k++) { /* the last one is scratch memory */
        const unit *u = &b->units[find(b, f->first_unit[i->id] + k)];
        bool scratch = k == i->n_results;
        if (!scratch || u->bytes) {
          add_line(a, &l,
                   arena_printf(a, "  %%%u.%u %s%s: %s %u + %" PRIu64 ", %s bytes, live %u to %u%s%s\n", i->id, k,
                                hlo_info(i)->name, scratch ? ", scratch" : "",
                                b->symbolic && u->space == HLO_IN_ARENA ? "slot" : spaces[u->space], u->index,
                                u->offset, dim_print(a, b->dims, u->bytes), u->first, u->last,
                                scratch ? "" : sharing_text(a, b, i, k), source));
        }
      }
    }
  }
  add_line(a, &l,
           b->symbolic
               ? arena_printf(a, "arena %" PRIu32 " slots, which get offsets when the program is bound\n", b->n_slots)
               : arena_printf(a, "arena %" PRIu64 " bytes, lower bound %" PRIu64 " bytes\n", b->arena_bytes,
                              b->lower_bound));
  return join_lines(a, &l);
}
