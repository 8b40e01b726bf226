/* lockstep.c - goes through the instructions of a computation together with their thunks; see lockstep.h. */
#include "verify/lockstep.h"

#include <string.h>

#include "backend_ref/eval.h"
#include "base/clock.h"
#include "hlo/analysis/in_place_update.h"
#include "hlo/analysis/sorted_front.h"
#include "runtime/exec/memory.h"
#include "verify/evaluate.h"

/* --- the values of a computation, each in memory of its own until its last use --- */

typedef struct frame {
  arena *a;
  const hlo_computation *c;
  /* values[id][r] is result r of the instruction with that id; values[id] is NULL if they are not computed yet or were
   * freed */
  literal **values;
  arena **owners; /* for each instruction id: the arena of the instruction's values; NULL if the values are borrowed */
  uint32_t *last; /* for each instruction id: the id of its last reader; UINT32_MAX for roots */
} frame;

typedef struct walk {
  verify_lockstep *v;
  rt_run *run;
} walk;

static void destroy_values(void *data) {
  frame *f = data;
  for (uint32_t k = 0; k < f->c->n_ids; k++) {
    arena_destroy(f->owners[k]);
  }
}

static void find_last_uses(frame *f) {
  for (const hlo_instr *i = f->c->first; i; i = i->next) {
    f->last[i->id] = i->id;
    for (uint32_t k = 0; k < i->n_operands; k++) {
      f->last[i->operands[k].def->id] = i->id;
    }
  }
  for (uint32_t k = 0; k < f->c->n_roots; k++) {
    f->last[f->c->roots[k].def->id] = UINT32_MAX;
  }
}

/* Makes a frame, which holds the values of a computation while it runs.  The arguments are borrowed. */
static frame *new_frame(walk *w, const hlo_computation *c, const literal *args) {
  arena *a = arena_create(w->v->budget);
  frame *f = ARENA_NEW(a, frame);
  *f = (frame){.a = a, .c = c};
  hlo_number((hlo_computation *)c);
  f->values = ARENA_NEW_N(a, literal *, c->n_ids);
  f->owners = ARENA_NEW_N(a, arena *, c->n_ids);
  f->last = ARENA_NEW_N(a, uint32_t, c->n_ids);
  find_last_uses(f);
  arena_cleanup(a, destroy_values, f);
  for (uint32_t k = 0; k < c->n_params; k++) {
    f->values[c->params[k]->id] = arena_memdup(a, &args[k], sizeof *args);
  }
  return f;
}

static void give_up_frame(frame *f) { arena_destroy(f->a); }

/* Returns a new arena for the results of `i`. */
static arena *own(walk *w, frame *f, const hlo_instr *i) { return f->owners[i->id] = arena_create(w->v->budget); }

static literal copy_of(arena *a, const literal *l) {
  size_t bytes = (size_t)shape_bytes(&l->shape);
  void *data = arena_alloc_aligned(a, bytes, 64);
  return literal_make(l->shape, bytes ? memcpy(data, l->data, bytes) : data);
}

static literal value_of(const frame *f, hlo_value v) { return f->values[v.def->id][v.index]; }

static literal *operands_of(arena *a, const frame *f, const hlo_instr *i) {
  literal *operands = ARENA_NEW_N(a, literal, i->n_operands + 1);
  for (uint32_t k = 0; k < i->n_operands; k++) {
    operands[k] = value_of(f, i->operands[k]);
  }
  return operands;
}

/* Frees the values whose last reader was `i`. */
static void drop_dead(frame *f, const hlo_instr *i) {
  for (uint32_t k = 0; k <= i->n_operands; k++) {
    const hlo_instr *def = k < i->n_operands ? i->operands[k].def : i;
    if (f->last[def->id] == i->id && f->owners[def->id]) {
      arena_destroy(f->owners[def->id]);
      f->owners[def->id] = NULL;
      f->values[def->id] = NULL;
    }
  }
}

/* --- thunks --- */

static const rt_program *program_of(const walk *w) { return w->run->program; }

/* Runs a thunk and waits for a device's work, so that a failure is reported for the thunk that caused it. */
static status run_thunk(walk *w, const rt_thunk *t) {
  rt_run *r = w->run;
  double start = clock_seconds();
  status failed = rt_memory_await(r->device, r->stream, r->budget, rt_run_thunk(t, r));
  w->v->seconds_target += clock_seconds() - start;
  return failed;
}

static const rt_origin *origin_of(const walk *w, const rt_thunk *t) { return &w->v->origins->items[t->origin - 1]; }

/* Returns the rt_origin of an instruction that has a buffer but no thunk. */
static const rt_origin *find_origin(const walk *w, const hlo_instr *i) {
  const rt_origin *o = w->v->origins->items;
  while (o->instr != i) {
    o++;
  }
  return o;
}

static bool comes_from(const walk *w, const rt_sequence *s, uint32_t at, const hlo_instr *i) {
  uint32_t origin = at < s->n ? s->thunks[at].origin : 0;
  return origin && w->v->origins->items[origin - 1].instr == i;
}

/* Copies the results of an instruction out of their buffers. */
static status read_results(walk *w, frame *f, const rt_origin *o) {
  const hlo_instr *i = o->instr;
  literal *values = ARENA_NEW_N(f->a, literal, i->n_results);
  arena *memory = own(w, f, i);
  for (uint32_t k = 0; k < i->n_results; k++) {
    size_t bytes = (size_t)shape_bytes(&i->shapes[k]);
    void *data = arena_alloc_aligned(memory, bytes, 64);
    TRY(bytes ? rt_memory_read(w->run, data, rt_address(w->run, &o->results[k]), bytes) : NULL);
    values[k] = literal_make(i->shapes[k], data);
  }
  f->values[i->id] = values;
  return NULL;
}

/* --- one instruction --- */

/* Tells which elements of a result are defined. */
typedef struct meaning {
  const hlo_instr *i;
  /* For a sort: how many elements at the beginning of a line are defined, the length of a line, and the distance
   * between its elements.  A line consists of the elements along the sorted dimension.  For others, all elements are
   * defined. */
  int64_t front, line, step;
} meaning;

static bool means_something(const void *data, uint32_t result, int64_t element) {
  const meaning *m = data;
  (void)result;
  return element / m->step % m->line < m->front;
}

static meaning meaning_of(const hlo_instr *i) {
  meaning m = {.i = i, .front = INT64_MAX, .line = 1, .step = 1};
  if (i->op == HLO_SORT) {
    int64_t dimension = hlo_int(i, HLO_ATTR_DIMENSION);
    m.front = hlo_sorted_front(i);
    m.line = i->shapes[0].dims[dimension];
    for (int d = (int)dimension + 1; d < i->shapes[0].rank; d++) {
      m.step *= i->shapes[0].dims[d];
    }
  }
  return m;
}

static status compare(walk *w, const hlo_instr *i, const literal *operands, const literal *got, const rt_thunk *t) {
  arena *scratch = arena_create(w->v->budget);
  literal *want = ARENA_NEW_N(scratch, literal, i->n_results);
  verify_tolerance tolerance = verify_tolerance_of(i, w->v->reduced_precision);
  verify_difference d;
  bool differ = false;
  meaning m = meaning_of(i);
  verify_evaluation evaluation = {i, operands};
  double start = clock_seconds();
  status failed = ref_eval(i, operands, scratch, want);
  failed =
      failed ? failed
             : verify_compare(scratch, &tolerance, i->n_results, want, got, i->op == HLO_SORT ? means_something : NULL,
                              &m, verify_move_instr, &evaluation, &differ, &d);
  w->v->seconds_reference += clock_seconds() - start;
  w->v->n_compared++;
  if (!failed && differ) {
    failed = w->v->differs(w->v->data, i, operands, want, program_of(w), t, &d);
  }
  if (!failed && w->v->compared) {
    failed = w->v->compared(w->v->data, i, operands, want);
  }
  arena_destroy(scratch);
  return failed;
}

/* Computes the values of an instruction that has no thunk: a view, whose result is the memory of its operand, or one
 * whose results nobody reads. */
static status evaluate_unlowered(walk *w, frame *f, const hlo_instr *i) {
  if (i->op == HLO_EMPTY && hlo_result_bytes(i)) { /* the result is whatever the memory contains */
    return read_results(w, f, find_origin(w, i));
  }
  arena *memory = own(w, f, i);
  literal *values = ARENA_NEW_N(f->a, literal, i->n_results);
  TRY(ref_eval(i, operands_of(memory, f, i), memory, values));
  for (uint32_t k = 0; k < i->n_results;
       k++) { /* copied, since the value may share the memory of the operand, which may be freed earlier */
    values[k] = copy_of(memory, &values[k]);
  }
  f->values[i->id] = values;
  return NULL;
}

static bool is_random(const hlo_instr *i) { return i->op == HLO_RUN_SEED; }

static status run_plain(walk *w, frame *f, const hlo_instr *i, const rt_sequence *s, uint32_t *at) {
  const rt_thunk *last = NULL;
  while (comes_from(w, s, *at, i)) {
    last = &s->thunks[(*at)++];
    TRY(run_thunk(w, last));
  }
  if (!last) {
    return evaluate_unlowered(w, f, i);
  }
  TRY(read_results(w, f, origin_of(w, last)));
  return is_random(i) ? NULL : compare(w, i, operands_of(f->a, f, i), f->values[i->id], last);
}

/* --- control flow --- */

static status run_sequence(walk *w, frame *f, const rt_sequence *s);

/* Runs a computation with these arguments; its roots are copied to `a`. */
static status call(walk *w, const hlo_computation *c, const rt_sequence *s, const literal *args, arena *a,
                   literal *roots) {
  frame *f = new_frame(w, c, args);
  status failed = run_sequence(w, f, s);
  for (uint32_t k = 0; k < c->n_roots && !failed; k++) {
    literal root = value_of(f, c->roots[k]);
    roots[k] = copy_of(a, &root);
  }
  give_up_frame(f);
  return failed;
}

static status run_until(walk *w, const hlo_instr *i, const rt_sequence *s, uint32_t *at, const char *kind,
                        const rt_thunk **out) {
  while (comes_from(w, s, *at, i) && strcmp(s->thunks[*at].kind, kind) != 0) {
    TRY(run_thunk(w, &s->thunks[(*at)++]));
  }
  CHECK_THAT(comes_from(w, s, *at, i), STATUS_INTERNAL, "%s %s has no thunk", hlo_info(i)->name, i->source);
  *out = &s->thunks[(*at)++];
  return NULL;
}

/* Reads the results of a loop or a conditional.  They must be equal to want[], bit for bit: the results of the last
 * body that ran, or the operands of a loop whose body never ran. */
static status take_control_results(walk *w, frame *f, const hlo_instr *i, const rt_thunk *t, const literal *want) {
  TRY(read_results(w, f, origin_of(w, t)));
  for (uint32_t k = 0; k < i->n_results; k++) {
    if (!literal_equal(&want[k], &f->values[i->id][k])) {
      verify_difference d = {.result = k, .n_wrong = 1, .n_elements = shape_elements(&want[k].shape)};
      return w->v->differs(w->v->data, i, NULL, want, program_of(w), t, &d);
    }
  }
  return NULL;
}

static status run_while(walk *w, frame *f, const hlo_instr *i, const rt_sequence *s, uint32_t *at) {
  const rt_thunk *t;
  arena *now = arena_create(w->v->budget), *next;
  literal *carried = operands_of(now, f, i), pred, *roots;
  status failed = run_until(w, i, s, at, "while", &t);
  while (!failed) {
    next = arena_create(w->v->budget);
    roots = ARENA_NEW_N(next, literal, i->n_operands);
    failed = call(w, hlo_callee(i, 0), &t->bodies[0], carried, next, &pred);
    bool again = !failed && literal_i64(&pred, 0);
    failed = again ? call(w, hlo_callee(i, 1), &t->bodies[1], carried, next, roots) : failed;
    if (!again || failed) {
      arena_destroy(next);
      break;
    }
    arena_destroy(now);
    now = next;
    carried = roots;
  }
  failed = failed ? failed : take_control_results(w, f, i, t, carried);
  arena_destroy(now);
  return failed;
}

static status run_conditional(walk *w, frame *f, const hlo_instr *i, const rt_sequence *s, uint32_t *at) {
  const rt_thunk *t;
  TRY(run_until(w, i, s, at, "conditional", &t));
  arena *memory = arena_create(w->v->budget);
  literal *operands = operands_of(memory, f, i), *roots = ARENA_NEW_N(memory, literal, i->n_results + 1);
  int64_t branch = rt_branch_of((dtype)operands[0].shape.type, operands[0].data, t->n_bodies);
  status failed = call(w, hlo_callee(i, (uint32_t)branch), &t->bodies[branch], operands + 1, memory, roots);
  failed = failed ? failed : take_control_results(w, f, i, t, roots);
  arena_destroy(memory);
  return failed;
}

static status run_instr(walk *w, frame *f, const hlo_instr *i, const rt_sequence *s, uint32_t *at) {
  switch (i->op) {
    case HLO_PARAMETER: return NULL;
    case HLO_CONSTANT:
      f->values[i->id] = arena_memdup(f->a, hlo_literal(hlo_result((hlo_instr *)i, 0)), sizeof(literal));
      return NULL;
    case HLO_WHILE: return run_while(w, f, i, s, at);
    case HLO_CONDITIONAL: return run_conditional(w, f, i, s, at);
    default: return run_plain(w, f, i, s, at);
  }
}

/* Runs a concurrent group, whose members here run one after the other.  *i is the first member, and is set to the last
 * one.  Each body of the thunk t computes a member. */
static status run_group(walk *w, frame *f, const hlo_instr **i, const rt_thunk *t) {
  const hlo_instr *member = *i;
  for (uint32_t k = 0; k < t->n_bodies; k++) {
    uint32_t at = 0;
    *i = member;
    TRY(run_instr(w, f, member, &t->bodies[k], &at));
    member = member->next;
  }
  return NULL;
}

static status run_sequence(walk *w, frame *f, const rt_sequence *s) {
  uint32_t at = 0;
  bool entry = f->c == w->v->module->entry;
  for (const hlo_instr *i = f->c->first; i; i = i->next) {
    const hlo_instr *first = i;
    TRY(hlo_next_concurrent(i) ? run_group(w, f, &i, &s->thunks[at++]) : run_instr(w, f, i, s, &at));
    for (; first != i->next; first = first->next) {
      drop_dead(f, first);
    }
    if (entry && w->v->progress) {
      w->v->progress(w->v->data, i->id + 1, f->c->n_ids);
    }
  }
  for (; at < s->n; at++) { /* the remaining thunks copy the roots to other buffers */
    TRY(run_thunk(w, &s->thunks[at]));
  }
  return NULL;
}

status verify_drive(void *lockstep, const rt_sequence *body, rt_run *r) {
  walk w = {lockstep, r};
  frame *f = new_frame(&w, w.v->module->entry, w.v->inputs);
  status failed = run_sequence(&w, f, body);
  give_up_frame(f);
  return failed;
}
