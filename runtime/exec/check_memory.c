/* check_memory.c - see check_memory.h. */
#include "runtime/exec/check_memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/executable.h"
#include "runtime/exec/trial.h"

/* Why a byte is undefined: it became undefined in output buffer number `buffer` of `thunk`. */
typedef struct origin {
  const rt_thunk *thunk;
  uint32_t buffer;
  bool unwritten; /* true if the thunk did not write the byte; false if it computed the byte from undefined bytes */
} origin;

struct rt_checker {
  checked_run run;
  uint32_t n_origins, cap_origins;
  origin *origins; /* bytes with the mark MARK_FIRST_ORIGIN + k (trial.h) are undefined because of origins[k] */
};

static tracked track(arena *a, void *data, uint64_t bytes) {
  return (tracked){data, ARENA_NEW_N(a, uint32_t, bytes + 1)};
}

rt_checker *rt_checker_create(arena *a, rt_run *run) {
  const rt_program *p = run->program;
  rt_checker *c = ARENA_NEW(a, rt_checker);
  c->run = (checked_run){.arena = a,
                         .program = p,
                         .run = run,
                         .memory = track(a, run->arena, p->arena_bytes),
                         .results = ARENA_NEW_N(a, tracked, p->n_results),
                         .params = ARENA_NEW_N(a, guarded *, p->n_params),
                         .constants = ARENA_NEW_N(a, guarded *, p->n_constants),
                         .forbidden = guarded_forbidden(a, p->arena_bytes),
                         .pool = {.arena = a}};
  for (uint32_t k = 0; k < p->n_results; k++) {
    uint64_t bytes = (uint64_t)shape_bytes(&p->results[k].shape);
    c->run.results[k] = track(a, run->results[k], bytes);
    for (uint64_t at = 0; p->results[k].in_place && at < bytes; at++) { /* the memory holds a parameter's contents */
      c->run.results[k].marks[at] = MARK_DEFINED;
    }
  }
  return c;
}

/* --- marks --- */

/* Returns the first mark (trial.h) other than MARK_DEFINED among the bytes of the buffer, and sets *element to the
 * index of the element with that byte.  Returns MARK_DEFINED if all bytes are defined. */
static uint32_t undefined_mark(const rt_checker *c, const rt_buffer *b, int64_t *element) {
  const tracked *space = tracked_space(&c->run, b);
  slices p = slices_of(b);
  for (int64_t k = 0; space && k < p.n; k++) {
    const uint32_t *marks = space->marks + b->offset + slice_offset(&p, k);
    size_t at = first_undefined(marks, p.bytes);
    if (at < p.bytes) {
      *element = k + (int64_t)(at / dtype_bytes((dtype)b->type));
      return marks[at];
    }
  }
  return MARK_DEFINED;
}

static uint32_t mark_of(rt_checker *c, origin o) {
  for (uint32_t k = c->n_origins; k-- > 0;) {
    const origin *old = &c->origins[k];
    if (old->thunk == o.thunk && old->buffer == o.buffer && old->unwritten == o.unwritten) {
      return MARK_FIRST_ORIGIN + k;
    }
  }
  *ARENA_PUSH(c->run.arena, c->origins, c->n_origins, c->cap_origins) = o;
  return MARK_FIRST_ORIGIN + c->n_origins - 1;
}

static const char *origin_text(const rt_checker *c, arena *a, uint32_t mark) {
  if (mark == MARK_NEVER_WRITTEN) {
    return "nothing wrote it";
  }
  const origin *o = &c->origins[mark - MARK_FIRST_ORIGIN];
  const char *where = buffer_text(a, c->run.program, o->thunk, o->buffer);
  const char *label = rt_thunk_label(a, c->run.program, o->thunk);
  return o->unwritten
             ? arena_printf(a, "%s (%s) left it as it was in %s", label, o->thunk->kind, where)
             : arena_printf(a, "%s (%s) computed %s from what nothing had written", label, o->thunk->kind, where);
}

/* --- a thunk --- */

typedef struct checking {
  rt_checker *checker;
  arena *a;
  const rt_thunk *thunk;
  rt_run *run;
} checking;

/* Returns the index of the input that output k overlaps; n_inputs if it overlaps none. */
static uint32_t input_under(const rt_thunk *t, uint32_t k) {
  uint32_t i = 0;
  while (i < t->n_inputs && !buffers_overlap(&t->buffers[i], &t->buffers[k])) {
    i++;
  }
  return i;
}

static bool lies_over_inputs(const rt_thunk *t) {
  for (uint32_t k = t->n_inputs; k < t->n_buffers; k++) {
    if (input_under(t, k) < t->n_inputs) {
      return true;
    }
  }
  return false;
}

static status written_early(const checking *x, uint32_t k, int64_t element) {
  const rt_thunk *t = x->thunk;
  const rt_program *p = x->checker->run.program;
  uint32_t over = k;
  for (uint32_t o = t->n_inputs; input_under(t, over) == t->n_inputs;
       o++) { /* if output k overlaps no input, finds an output that does */
    over = o;
  }
  return violation(
      t, "element %" PRId64 " of %s depends on whether an output overlaps %s: it is read after it was overwritten",
      element, buffer_text(x->a, p, t, k), buffer_text(x->a, p, t, input_under(t, over)));
}

/* Returns the index of the first byte that differs; n if all are equal. */
static size_t first_difference(const uint8_t *one, const uint8_t *other, size_t n) {
  size_t at = memcmp(one, other, n) == 0 ? n : 0;
  while (at < n && one[at] == other[at]) {
    at++;
  }
  return at;
}

/* Fails if an output has other contents when outputs share memory with inputs (`together`) than when they do not. */
static status compare_outputs(const checking *x, const trial *together, const trial *out_of_place) {
  const rt_thunk *t = x->thunk;
  for (uint32_t k = t->n_inputs; k < t->n_buffers; k++) {
    slices p = slices_of(&t->buffers[k]);
    for (int64_t j = 0; j < p.n; j++) {
      uint64_t at = slice_offset(&p, j);
      size_t differs = first_difference(trial_buffer(together, k) + at, trial_buffer(out_of_place, k) + at, p.bytes);
      if (differs < p.bytes) {
        return written_early(x, k, j + (int64_t)(differs / dtype_bytes((dtype)t->buffers[k].type)));
      }
    }
  }
  return NULL;
}

/* Returns the mark of the first undefined byte that the thunk reads, which its undefined outputs inherit.  Returns
 * MARK_DEFINED if it reads no undefined byte. */
static uint32_t inherited_mark(const checking *x) {
  int64_t element;
  for (uint32_t k = 0; k < x->thunk->n_buffers; k++) {
    uint32_t mark =
        thunk_reads(x->thunk, k) ? undefined_mark(x->checker, &x->thunk->buffers[k], &element) : MARK_DEFINED;
    if (mark != MARK_DEFINED) {
      return mark;
    }
  }
  return MARK_DEFINED;
}

/* Returns the new mark of an output element that differs between two trials which filled undefined memory with
 * different numbers.  `unwritten`: neither trial changed the element.  `inherited`: see inherited_mark.  `old`: the
 * mark that the element had before. */
static uint32_t new_mark(const checking *x, uint32_t buffer, bool unwritten, uint32_t inherited, uint32_t old) {
  bool stays = unwritten && old != MARK_DEFINED &&
               (thunk_reads(x->thunk, buffer) || input_under(x->thunk, buffer) < x->thunk->n_inputs);
  if (stays) {
    return old;
  }
  return !unwritten && inherited != MARK_DEFINED ? inherited
                                                 : mark_of(x->checker, (origin){x->thunk, buffer, unwritten});
}

/* The bytes of an output after and before a trial. */
typedef struct outcome {
  const uint8_t *after, *before;
} outcome;

static outcome outcome_of(const trial *t, uint32_t k) { return (outcome){trial_buffer(t, k), trial_before(t, k)}; }

static bool changed(outcome o, uint64_t at, size_t n) { return memcmp(o.after + at, o.before + at, n) != 0; }

static void set_marks(uint32_t *marks, size_t n, uint32_t mark) {
  for (size_t k = 0; k < n; k++) {
    marks[k] = mark;
  }
}

/* Sets the marks (trial.h) of the elements in bytes [at, end) of output k.  Elements that differ between the two trials
 * are undefined. */
static void mark_elements(const checking *x, uint32_t k, outcome one, outcome other, uint64_t at, uint64_t end,
                          uint32_t inherited) {
  const rt_buffer *b = &x->thunk->buffers[k];
  uint32_t *marks = tracked_space(&x->checker->run, b)->marks + b->offset;
  for (size_t size = dtype_bytes((dtype)b->type); at < end; at += size) {
    bool same = memcmp(one.after + at, other.after + at, size) == 0;
    bool unwritten = !changed(one, at, size) && !changed(other, at, size);
    set_marks(marks + at, size, same ? MARK_DEFINED : new_mark(x, k, unwritten, inherited, marks[at]));
  }
}

/* Copies output k of the first trial to the program's memory and marks its bytes. */
static void take_output(const checking *x, uint32_t k, outcome one, outcome other, uint32_t inherited) {
  const rt_buffer *b = &x->thunk->buffers[k];
  const tracked *space = tracked_space(&x->checker->run, b);
  slices p = slices_of(b);
  for (int64_t j = 0; j < p.n; j++) {
    uint64_t at = slice_offset(&p, j);
    if (memcmp(one.after + at, other.after + at, p.bytes) == 0) {
      set_marks(space->marks + b->offset + at, p.bytes, MARK_DEFINED);
    } else {
      mark_elements(x, k, one, other, at, at + p.bytes, inherited);
    }
    memcpy(space->data + b->offset + at, one.after + at, p.bytes);
  }
}

static status check_thunk(void *data) {
  const checking *x = data;
  const rt_thunk *t = x->thunk;
  checked_run *run = &x->checker->run;
  trial *first, *out_of_place, *other;
  TRY(trial_run(run, x->a, t, x->run, false, WILD_NAN, &first));
  if (lies_over_inputs(t)) {
    TRY(trial_run(run, x->a, t, x->run, true, WILD_NAN, &out_of_place));
    TRY(compare_outputs(x, first, out_of_place));
  }
  TRY(trial_run(run, x->a, t, x->run, false, WILD_FINITE, &other));
  uint32_t inherited = inherited_mark(x);
  for (uint32_t k = t->n_inputs; k < t->n_buffers; k++) {
    take_output(x, k, outcome_of(first, k), outcome_of(other, k), inherited);
  }
  return NULL;
}

status rt_checker_decide(rt_checker *c, const rt_thunk *t) {
  int64_t element;
  for (uint32_t k = 0; k < t->n_inputs; k++) {
    uint32_t mark = undefined_mark(c, &t->buffers[k], &element);
    if (mark != MARK_DEFINED) {
      return violation(t, "its decision depends on undefined memory: %s", origin_text(c, c->run.arena, mark));
    }
  }
  return NULL;
}

/* Runs a thunk with checks.  A thunk without outputs can only let the run fail or continue, so its inputs must be
 * defined. */
status rt_checker_run(rt_checker *c, const rt_thunk *t, rt_run *r) {
  TRY(t->n_inputs == t->n_buffers ? rt_checker_decide(c, t) : NULL);
  arena *a = arena_create(r->budget);
  status s = guard_run(check_thunk, &(checking){c, a, t, r});
  arena_destroy(a);
  return s;
}

/* --- bodies of a concurrent group --- */

/* A buffer that a body of a concurrent group reads or writes. */
typedef struct use {
  uint32_t body;
  const rt_thunk *thunk;
  uint32_t buffer;
} use;

typedef struct uses {
  arena *a;
  use *items;
  uint32_t n, cap;
} uses;

static const rt_buffer *buffer_of(const use *u) { return &u->thunk->buffers[u->buffer]; }

static void collect_uses(uses *all, uint32_t body, const rt_sequence *s) {
  for (uint32_t k = 0; k < s->n; k++) {
    const rt_thunk *t = &s->thunks[k];
    for (uint32_t b = 0; b < t->n_buffers; b++) {
      bool changes = t->buffers[b].space == RT_ARENA || t->buffers[b].space == RT_RESULT;
      if (changes && rt_buffer_bytes(&t->buffers[b]) > 0) {
        *ARENA_PUSH(all->a, all->items, all->n, all->cap) = (use){body, t, b};
      }
    }
    for (uint32_t b = 0; b < t->n_bodies; b++) {
      collect_uses(all, body, &t->bodies[b]);
    }
  }
}

static int compare_uses(const void *p, const void *q) {
  const rt_buffer *x = buffer_of(p), *y = buffer_of(q);
  int order = (x->space > y->space) - (x->space < y->space);
  order = order ? order : (x->index > y->index) - (x->index < y->index);
  return order ? order : (x->offset > y->offset) - (x->offset < y->offset);
}

static bool writes(const use *u) { return u->buffer >= u->thunk->n_inputs; }

static status clash(const rt_checker *c, arena *a, const rt_thunk *t, const use *x, const use *y) {
  const use *writer = writes(x) ? x : y, *other = writer == x ? y : x;
  const rt_program *p = c->run.program;
  return violation(t, "%s writes %s while %s has %s there", rt_thunk_label(a, p, writer->thunk),
                   buffer_text(a, p, writer->thunk, writer->buffer), rt_thunk_label(a, p, other->thunk),
                   buffer_text(a, p, other->thunk, other->buffer));
}

/* Fails if one body writes bytes that another body uses.  The uses are sorted by where their buffers begin, so the
 * buffers that overlap the buffer of use k, and do not begin before it, come directly after it. */
static status check_uses(const rt_checker *c, const rt_thunk *t, uses *all) {
  qsort(all->items, all->n, sizeof *all->items, compare_uses);
  for (uint32_t k = 0; k < all->n; k++) {
    const use *x = &all->items[k];
    for (uint32_t j = k + 1; j < all->n && buffers_overlap(buffer_of(x), buffer_of(&all->items[j])); j++) {
      const use *y = &all->items[j];
      TRY(x->body != y->body && (writes(x) || writes(y)) ? clash(c, all->a, t, x, y) : NULL);
    }
  }
  return NULL;
}

typedef struct group {
  const rt_checker *checker;
  const rt_thunk *thunk;
  arena *a;
} group;

static status check_group(void *data) {
  const group *g = data;
  uses all = {.a = g->a};
  for (uint32_t k = 0; k < g->thunk->n_bodies; k++) {
    collect_uses(&all, k, &g->thunk->bodies[k]);
  }
  return all.n ? check_uses(g->checker, g->thunk, &all) : NULL;
}

status rt_checker_concurrent(rt_checker *c, const rt_thunk *t) {
  arena *a = arena_create(c->run.run->budget);
  status s = guard_run(check_group, &(group){c, t, a});
  arena_destroy(a);
  return s;
}

/* --- results --- */

static status check_result(const rt_checker *c, uint32_t k) {
  const rt_io *io = &c->run.program->results[k];
  int64_t extents[SHAPE_MAX_RANK], strides[SHAPE_MAX_RANK], element;
  memcpy(extents, io->shape.dims, sizeof extents);
  if (!io->is_size) {
    (void)rt_program_extents(c->run.program, k, c->run.run->results, extents);
  }
  shape_strides(&io->shape, strides);
  rt_buffer b = {.space = RT_RESULT,
                 .type = (uint8_t)io->shape.type,
                 .rank = (uint8_t)io->shape.rank,
                 .index = k,
                 .extents = extents,
                 .strides = strides};
  uint32_t mark = undefined_mark(c, &b, &element);
  CHECK_THAT(mark == MARK_DEFINED, STATUS_INTERNAL, "element %" PRId64 " of output '%s' is not defined: %s", element,
             io->name, origin_text(c, c->run.arena, mark));
  return NULL;
}

/* Checks the results, the last ones first: those are the sizes (rt_io.is_size), which tell what part of the other
 * results is defined. */
status rt_checker_finish(rt_checker *c) {
  for (uint32_t k = c->run.program->n_results; k-- > 0;) {
    TRY(check_result(c, k));
  }
  return NULL;
}
