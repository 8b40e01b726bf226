/* binding.c - see binding.h. */
#include "runtime/exec/binding.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/placement.h"
#include "runtime/exec/check_buffers.h"
#include "runtime/program/sizes.h"

/* The most bytes of all slots together, so that sums of offsets and sizes stay far below 2^64. */
#define MOST_BYTES ((uint64_t)1 << 60)

#define ABOUT_SHAPE (STATUS_INVALID_ARGUMENT | STATUS_ABOUT_SHAPE)
#define NOT_COMPUTED "a size cannot be computed for these inputs, or is negative"

/* --- checking a thunk when it is loaded --- */

static bool are_numbers(uint32_t n, const rt_size *sizes) {
  bool numbers = true;
  for (uint32_t k = 0; k < n; k++) {
    numbers &= sizes[k] >= 0;
  }
  return numbers;
}

static bool exist(const rt_program *p, uint32_t n, const rt_size *sizes) {
  bool all = true;
  for (uint32_t k = 0; k < n; k++) {
    all &= rt_size_exists(p, sizes[k]);
  }
  return all;
}

static status check_buffer_sizes(const rt_program *p, const rt_thunk *t, const rt_buffer *b) {
  CHECK_THAT(b->rank <= SHAPE_MAX_RANK && rt_size_exists(p, b->offset) && exist(p, b->rank, b->extents) &&
                 exist(p, b->rank, b->strides) &&
                 (b->space != RT_ARENA || b->index < p->n_slots || rt_program_is_static(p)),
             STATUS_INVALID_FILE, "a buffer is damaged");
  CHECK_THAT(t->ops->bind || (b->offset >= 0 && are_numbers(b->rank, b->extents) && are_numbers(b->rank, b->strides)),
             STATUS_INVALID_FILE, "%s takes buffers of constant sizes only", t->kind);
  return NULL;
}

status rt_check_thunk_sizes(const rt_program *p, const rt_thunk *t) {
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    TRY(check_buffer_sizes(p, t, &t->buffers[k]));
  }
  CHECK_THAT(exist(p, t->n_sizes, t->sizes) && (t->ops->bind || are_numbers(t->n_sizes, t->sizes)), STATUS_INVALID_FILE,
             "%s takes constant sizes only", t->kind);
  return NULL;
}

/* --- binding --- */

typedef struct binder {
  const rt_program *from;
  rt_binding *binding;
  rt_program *program; /* the program of the binding */
  arena *arena;        /* the arena of the binding */
  const int64_t *values;
  const uint64_t *offsets; /* the offset of each slot in the arena */
  const shape *inputs;
} binder;

static status bind_size(const binder *b, rt_size s, rt_size *out) {
  *out = rt_size_value(b->values, s);
  CHECK_THAT(*out >= 0, ABOUT_SHAPE, NOT_COMPUTED);
  return NULL;
}

/* Replaces the list of n sizes by a list of their values, which may be negative only if is_signed.  A list that
 * consists of numbers already is kept. */
static status bind_list(const binder *b, bool is_signed, uint32_t n, const rt_size **sizes) {
  if (are_numbers(n, *sizes)) {
    return NULL;
  }
  rt_size *numbers = ARENA_NEW_N(b->arena, rt_size, n);
  for (uint32_t k = 0; k < n; k++) {
    numbers[k] = rt_size_value(b->values, (*sizes)[k]);
    bool is_good = is_signed ? numbers[k] != RT_NO_SIZE : numbers[k] >= 0;
    CHECK_THAT(is_good, ABOUT_SHAPE, NOT_COMPUTED);
  }
  *sizes = numbers;
  return NULL;
}

static status bind_length(const binder *b, rt_io *io, const char *what) {
  TRY(bind_size(b, io->length, &io->length));
  CHECK_THAT(io->length <= io->shape.dims[io->axis], ABOUT_SHAPE,
             "%s '%s' has room for %" PRId64 " elements and needs %" PRId64, what, io->name, io->shape.dims[io->axis],
             io->length);
  return NULL;
}

static status bind_io(const binder *b, uint32_t n, rt_io **io, const char *what) {
  *io = arena_memdup(b->arena, *io, n * sizeof **io);
  for (uint32_t k = 0; k < n; k++) {
    shape *s = &(*io)[k].shape;
    for (int d = 0; d < s->rank; d++) {
      status failed = bind_size(b, s->dims[d], &s->dims[d]);
      TRY(failed ? status_prefix(failed, "%s '%s'", what, (*io)[k].name) : NULL);
    }
    TRY(shape_check(s, (*io)[k].name));
    TRY((*io)[k].has_room ? bind_length(b, &(*io)[k], what) : NULL);
  }
  return NULL;
}

/* Lays out the arena. */
static status place_slots(binder *b) {
  const rt_program *p = b->from;
  live_slice *slices = ARENA_NEW_N(b->arena, live_slice, p->n_slots);
  uint64_t *offsets = ARENA_NEW_N(b->arena, uint64_t, p->n_slots);
  uint64_t sum = 0;
  uint32_t end = 0;
  for (uint32_t k = 0; k < p->n_slots; k++) {
    rt_size bytes;
    TRY(bind_size(b, p->slots[k].bytes, &bytes));
    sum += (uint64_t)bytes;
    CHECK_THAT(sum <= MOST_BYTES, STATUS_RESOURCE, "values of more than 2^60 bytes for these inputs");
    slices[k] = (live_slice){.bytes = (uint64_t)bytes, .first = p->slots[k].first, .last = p->slots[k].last};
    end = slices[k].last > end ? slices[k].last : end;
  }
  TRY(place_slices(b->arena, p->n_slots, slices, end, &b->program->arena_bytes, NULL));
  for (uint32_t k = 0; k < p->n_slots; k++) {
    offsets[k] = slices[k].offset;
  }
  b->offsets = offsets;
  return NULL;
}

/* Turns a buffer in a slot into a buffer in the arena. */
static status leave_slot(const binder *b, rt_buffer *buffer) {
  int64_t bytes, room = rt_size_value(b->values, b->from->slots[buffer->index].bytes);
  CHECK_THAT(rt_buffer_reach(buffer, &bytes) && buffer->offset <= room && bytes <= room - buffer->offset,
             STATUS_INVALID_FILE, "a buffer lies outside of its slot");
  buffer->offset += (int64_t)b->offsets[buffer->index];
  buffer->index = 0;
  return NULL;
}

static status bind_buffer(const binder *b, rt_buffer *buffer) {
  TRY(bind_size(b, buffer->offset, &buffer->offset));
  TRY(bind_list(b, false, buffer->rank, &buffer->extents));
  TRY(bind_list(b, false, buffer->rank, &buffer->strides));
  return buffer->space == RT_ARENA && b->from->n_slots ? leave_slot(b, buffer) : NULL;
}

static status bind_sequence(const binder *b, rt_sequence *s);

static status bind_buffers(const binder *b, rt_thunk *t) {
  t->buffers = arena_memdup(b->arena, t->buffers, t->n_buffers * sizeof *t->buffers);
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    TRY(bind_buffer(b, &t->buffers[k]));
  }
  TRY(bind_list(b, true, t->n_sizes, &t->sizes));
  return rt_check_buffers(b->program, t);
}

static status bind_thunk(const binder *b, rt_thunk *t) {
  TRY(rt_at_thunk(bind_buffers(b, t), b->from, t));
  t->bodies = arena_memdup(b->arena, t->bodies, t->n_bodies * sizeof *t->bodies);
  for (uint32_t k = 0; k < t->n_bodies; k++) {
    TRY(bind_sequence(b, &t->bodies[k]));
  }
  return t->ops->bind ? rt_at_thunk(t->ops->bind(t, b->arena), b->from, t) : NULL;
}

/* Replaces the thunks by copies in which all sizes are numbers. */
static status bind_sequence(const binder *b, rt_sequence *s) {
  s->thunks = arena_memdup(b->arena, s->thunks, s->n * sizeof *s->thunks);
  for (uint32_t k = 0; k < s->n; k++) {
    TRY(bind_thunk(b, &s->thunks[k]));
  }
  return NULL;
}

static status bind(void *data) {
  binder *b = data;
  const rt_program *p = b->from;
  int64_t *values = ARENA_NEW_N(b->arena, int64_t, p->n_sizes);
  b->values = values;
  TRY(rt_sizes_evaluate(p, b->inputs, values));
  b->binding->program = b->program = arena_memdup(b->arena, p, sizeof *p);
  b->program->n_sizes = b->program->n_guards = b->program->n_slots = 0;
  TRY(bind_io(b, p->n_params, &b->program->params, "input"));
  TRY(bind_io(b, p->n_results, &b->program->results, "output"));
  TRY(p->n_slots ? place_slots(b) : NULL);
  TRY(bind_sequence(b, &b->binding->body));
  b->program->body = b->binding->body;
  b->binding->counter_bytes = rt_counter_bytes(&b->binding->body);
  return NULL;
}

status rt_bind(const rt_executable *e, const shape *inputs, rt_binding **out) {
  *out = NULL;
  rt_binding *made = calloc(1, sizeof *made);
  CHECK_THAT(made, STATUS_RESOURCE, "out of memory");
  *made = *rt_executable_loaded(e);
  made->number = rt_binding_next_number();
  made->arena = arena_create(rt_executable_budget(e));
  binder b = {.from = rt_executable_program(e), .binding = made, .arena = made->arena, .inputs = inputs};
  status s = guard_run(bind, &b);
  if (s) {
    rt_binding_destroy(made);
    return s;
  }
  *out = made;
  return NULL;
}

void rt_binding_destroy(rt_binding *b) {
  if (b) {
    arena_destroy(b->arena);
    free(b);
  }
}
