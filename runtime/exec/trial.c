/* trial.c - see trial.h.  Buffers that overlap are in one area, which is a part of guarded memory.  Areas that have no
 * outputs are protected against writes.  In the other areas all bytes outside of outputs are compared with a copy after
 * the run. */
#include "runtime/exec/trial.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/exec/memory.h"

/* The range of bytes of a buffer, as offsets in its space (rt_space). */
typedef struct range {
  uint8_t space;
  uint32_t index;
  uint64_t low, high;
} range;

typedef struct area {
  range range; /* the range that covers all buffers of the area */
  bool written;
  guarded *memory;
  uint64_t base;   /* the offset, in the space of the area's buffers, of the byte that is at memory->data */
  uint8_t *before; /* if `written`, a copy of the pages before the run; otherwise NULL */
} area;

struct trial {
  checked_run *run;
  const rt_thunk *thunk;
  area *areas;
  uint32_t n_areas;
  uint32_t *area_of; /* for each buffer, the index of its area */
};

/* --- buffers --- */

slices slices_of(const rt_buffer *b) {
  size_t size = dtype_bytes((dtype)b->type);
  int64_t n = rt_buffer_elements(b);
  return rt_buffer_is_dense(b) && n ? (slices){b, 1, (size_t)n * size} : (slices){b, n, size};
}

uint64_t slice_offset(const slices *p, int64_t k) {
  const rt_buffer *b = p->buffer;
  int64_t at = 0;
  for (int d = b->rank - 1; d >= 0 && k > 0; d--) {
    at += k % b->extents[d] * b->strides[d];
    k /= b->extents[d];
  }
  return (uint64_t)at * p->bytes;
}

size_t first_undefined(const uint32_t *marks, size_t n) {
  uint32_t others = 0;
  for (size_t k = 0; k < n; k++) {
    others |= marks[k] ^ MARK_DEFINED;
  }
  size_t at = others ? 0 : n;
  while (at < n && marks[at] == MARK_DEFINED) {
    at++;
  }
  return at;
}

static range range_of(const rt_buffer *b) {
  return (range){b->space, b->index, (uint64_t)b->offset, (uint64_t)(b->offset + rt_buffer_bytes(b))};
}

static bool ranges_overlap(const range *x, const range *y) {
  return x->space == y->space && x->index == y->index && x->low < y->high && y->low < x->high;
}

bool buffers_overlap(const rt_buffer *x, const rt_buffer *y) {
  range a = range_of(x), b = range_of(y);
  return ranges_overlap(&a, &b);
}

bool thunk_reads(const rt_thunk *t, uint32_t k) { return k < t->n_inputs || t->buffers[k].kept; }

const tracked *tracked_space(const checked_run *c, const rt_buffer *b) {
  return b->space == RT_ARENA ? &c->memory : b->space == RT_RESULT ? &c->results[b->index] : NULL;
}

static const char *space_text(arena *a, const rt_program *p, const range *r) {
  switch (r->space) {
    case RT_CONSTANT: return arena_printf(a, "constant %u", r->index);
    case RT_PARAM: return arena_printf(a, "the model's input '%s'", p->params[r->index].name);
    case RT_RESULT: return arena_printf(a, "the model's output '%s'", p->results[r->index].name);
    default: return "the arena";
  }
}

const char *buffer_text(arena *a, const rt_program *p, const rt_thunk *t, uint32_t k) {
  const rt_buffer *b = &t->buffers[k];
  shape s = shape_make((dtype)b->type, b->rank, b->extents);
  range r = range_of(b);
  bool is_input = k < t->n_inputs;
  return arena_printf(a, "%s %u, %s in bytes %" PRIu64 " to %" PRIu64 " of %s", is_input ? "input" : "output",
                      is_input ? k : k - t->n_inputs, SHAPE_STR(NULL, &s), r.low, r.high, space_text(a, p, &r));
}

status violation(const rt_thunk *t, const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return status_error(STATUS_INTERNAL, "%s%s%s: %s", t->kind, t->note && *t->note ? ", " : "", t->note ? t->note : "",
                      text);
}

/* --- contents of undefined memory --- */

/* Returns byte `at` of an array of undefined elements.  With WILD_NAN each float is a signalling NaN (of 8 bits: a NaN
 * or a large number), and each integer is large.  With WILD_FINITE each element is a finite number, negative if the
 * type has a sign.  Outputs get other numbers than inputs, so that an element that the thunk copied from an input does
 * not look like one that it did not write.  Types of less than 8 bits have too few values for all this: their elements
 * are 1 with WILD_NAN and 0 with WILD_FINITE. */
static uint8_t wild_byte(dtype type, wild kind, bool is_output, size_t at) {
  size_t size = dtype_bytes(type) / (dtype_is_complex(type) ? 2 : 1), from_top = size - 1 - at % size;
  bool is_double = (dtype_is_float(type) || dtype_is_complex(type)) && size == sizeof(double);
  uint8_t top = type == DTYPE_F16 ? 0x7d : is_output || size > 1 ? 0x7f : 0x7e, low = is_output ? 0xa5 : 0x95;
  if (dtype_get_info(type)->bits < 8) {
    return kind == WILD_NAN;
  }
  if (kind == WILD_FINITE) {
    return is_output ? 0xc5 : 0xc6;
  }
  return from_top == 0 ? top : from_top == 1 && is_double ? 0xf5 : low;
}

/* Fills a slice of an output with undefined elements: writes one, then doubles the filled part repeatedly. */
static void fill_slice(dtype type, wild kind, uint8_t *to, size_t bytes) {
  size_t done = dtype_bytes(type);
  for (size_t j = 0; j < done; j++) {
    to[j] = wild_byte(type, kind, true, j);
  }
  for (; done < bytes; done *= 2) {
    memcpy(to + done, to, done < bytes - done ? done : bytes - done);
  }
}

static void fill_wild(const rt_buffer *b, wild kind, uint8_t *to) {
  slices p = slices_of(b);
  for (int64_t k = 0; k < p.n; k++) {
    fill_slice((dtype)b->type, kind, to + slice_offset(&p, k), p.bytes);
  }
}

/* Copies the contents of buffer b from the program's memory to `to`.  Undefined bytes are replaced by arbitrary numbers
 * of the kind that `kind` states. */
static void fill_content(const checked_run *c, const rt_buffer *b, wild kind, uint8_t *to) {
  const tracked *space = tracked_space(c, b);
  slices p = slices_of(b);
  for (int64_t k = 0; k < p.n; k++) {
    uint64_t at = slice_offset(&p, k), from = (uint64_t)b->offset + at;
    memcpy(to + at, space->data + from, p.bytes);
    for (size_t j = first_undefined(space->marks + from, p.bytes); j < p.bytes; j++) {
      to[at + j] = space->marks[from + j] == MARK_DEFINED ? to[at + j] : wild_byte((dtype)b->type, kind, false, j);
    }
  }
}

/* --- areas --- */

typedef struct item {
  bool last; /* true for outputs that must not share memory with inputs; they are sorted to the end */
  range range;
  uint32_t buffer;
} item;

static int compare_u64(uint64_t x, uint64_t y) { return (x > y) - (x < y); }

static int compare_items(const void *p, const void *q) {
  const item *x = p, *y = q;
  int order = compare_u64(x->last, y->last);
  order = order ? order : compare_u64(x->range.space, y->range.space);
  order = order ? order : compare_u64(x->range.index, y->range.index);
  order = order ? order : compare_u64(x->range.low, y->range.low);
  return order ? order : compare_u64(x->buffer, y->buffer);
}

static void make_areas(trial *t, arena *a, bool out_of_place) {
  const rt_thunk *thunk = t->thunk;
  item *items = ARENA_NEW_N(a, item, thunk->n_buffers);
  const item *previous = NULL;
  for (uint32_t k = 0; k < thunk->n_buffers; k++) {
    items[k] = (item){out_of_place && k >= thunk->n_inputs, range_of(&thunk->buffers[k]), k};
  }
  if (thunk->n_buffers) {
    qsort(items, thunk->n_buffers, sizeof *items, compare_items);
  }
  t->areas = ARENA_NEW_N(a, area, thunk->n_buffers);
  t->area_of = ARENA_NEW_N(a, uint32_t, thunk->n_buffers);
  for (uint32_t k = 0; k < thunk->n_buffers; k++) {
    const item *i = &items[k];
    area *x = t->n_areas ? &t->areas[t->n_areas - 1] : NULL;
    if (!x || previous->last != i->last || !ranges_overlap(&x->range, &i->range)) {
      x = &t->areas[t->n_areas++];
      x->range = i->range;
    }
    previous = i;
    x->range.high = i->range.high > x->range.high ? i->range.high : x->range.high;
    x->written = x->written || i->buffer >= thunk->n_inputs;
    t->area_of[i->buffer] = t->n_areas - 1;
  }
}

static status copy_to_read(checked_run *c, const void *data, uint64_t bytes, size_t align, guarded **copy) {
  if (!*copy) {
    guarded *g = guarded_create(c->arena, bytes, align);
    if (bytes) {
      memcpy(g->data, data, bytes);
    }
    TRY(guarded_protect(g));
    *copy = g;
  }
  return NULL;
}

/* Returns the least alignment that an array of the caller may have (rt_array_align). */
static size_t align_of(const checked_run *c, const shape *s) { return rt_array_align(c->run->device, (dtype)s->type); }

/* Allocates the memory of an area.  If the area is in an input or a constant of the program, its memory is a copy of
 * the whole input or constant, which is made once in a run. */
static status find_memory(trial *t, arena *a, area *x) {
  checked_run *c = t->run;
  uint32_t k = x->range.index;
  if (x->range.space == RT_PARAM) {
    const shape *s = &c->program->params[k].shape;
    TRY(copy_to_read(c, c->run->params[k], (uint64_t)shape_bytes(s), align_of(c, s), &c->params[k]));
    x->memory = c->params[k];
  } else if (x->range.space == RT_CONSTANT) {
    TRY(copy_to_read(c, c->program->constants[k].data, c->program->constants[k].size, RT_ARRAY_ALIGN,
                     &c->constants[k]));
    x->memory = c->constants[k];
  } else {
    size_t align = x->range.space == RT_RESULT ? align_of(c, &c->program->results[k].shape) : RT_ARRAY_ALIGN;
    x->base = x->range.low & ~(uint64_t)(RT_ARRAY_ALIGN - 1);
    x->memory = guarded_take(&c->pool, a, x->range.high - x->base, align);
  }
  return NULL;
}

static uint8_t *address_in(const area *x, const rt_buffer *b) {
  return x->memory->data + ((uint64_t)b->offset - x->base);
}

static uint8_t *address_of(const trial *t, uint32_t k) {
  return address_in(&t->areas[t->area_of[k]], &t->thunk->buffers[k]);
}

const uint8_t *trial_buffer(const trial *t, uint32_t k) { return address_of(t, k); }

const uint8_t *trial_before(const trial *t, uint32_t k) {
  const area *x = &t->areas[t->area_of[k]];
  return x->before + (address_of(t, k) - x->memory->pages);
}

/* Fills an area with undefined elements.  Later bring_content overwrites the bytes that the thunk reads. */
static void fill_area(const trial *t, uint32_t number, wild kind) {
  const area *x = &t->areas[number];
  const rt_thunk *thunk = t->thunk;
  memset(x->memory->pages, wild_byte(DTYPE_U8, kind, true, 0), x->memory->page_bytes);
  for (uint32_t k = thunk->n_inputs; k < thunk->n_buffers; k++) {
    if (t->area_of[k] == number) {
      fill_wild(&thunk->buffers[k], kind, address_of(t, k));
    }
  }
}

static status make_memory(trial *t, arena *a, wild kind) {
  for (uint32_t k = 0; k < t->n_areas; k++) {
    area *x = &t->areas[k];
    TRY(find_memory(t, a, x));
    if (tracked_space(t->run, &(rt_buffer){.space = x->range.space, .index = x->range.index})) {
      fill_area(t, k, kind);
    }
  }
  return NULL;
}

/* Copies the contents of buffer k to each area that contains its bytes.  Two areas contain them if buffer k is an input
 * and an output that overlaps it has an area of its own. */
static void bring_content(const trial *t, uint32_t k, wild kind) {
  const rt_buffer *b = &t->thunk->buffers[k];
  range wanted = range_of(b);
  for (uint32_t n = 0; n < t->n_areas; n++) {
    const area *x = &t->areas[n];
    if (ranges_overlap(&wanted, &x->range) && wanted.low >= x->range.low && wanted.high <= x->range.high) {
      fill_content(t->run, b, kind, address_in(x, b));
    }
  }
}

static status finish_memory(trial *t, arena *a) {
  for (uint32_t k = 0; k < t->n_areas; k++) {
    area *x = &t->areas[k];
    if (x->written) {
      x->before = arena_memdup(a, x->memory->pages, x->memory->page_bytes);
    } else {
      TRY(guarded_protect(x->memory));
    }
  }
  return NULL;
}

/* --- running --- */

typedef struct call {
  const rt_thunk *thunk;
  rt_run *run;
} call;

static status run_call(void *data) {
  const call *c = data;
  return c->thunk->ops->run(c->thunk, c->run);
}

/* Runs a copy of the thunk in which each buffer is a parameter of its own (RT_PARAM), so that it can be at any address.
 */
static status run_thunk(trial *t, arena *a, rt_run *r, guarded_fault *fault) {
  rt_thunk thunk = *t->thunk;
  rt_run run = *r;
  uint32_t n = thunk.n_buffers;
  void **addresses = ARENA_NEW_N(a, void *, n + 1);
  guarded **list = ARENA_NEW_N(a, guarded *, t->n_areas + 1);
  thunk.buffers = arena_memdup(a, thunk.buffers, n * sizeof *thunk.buffers);
  for (uint32_t k = 0; k < n; k++) {
    addresses[k] = address_of(t, k);
    thunk.buffers[k].space = RT_PARAM;
    thunk.buffers[k].index = k;
    thunk.buffers[k].offset = 0;
  }
  for (uint32_t k = 0; k < t->n_areas; k++) {
    list[k] = t->areas[k].memory;
  }
  list[t->n_areas] = t->run->forbidden;
  run.arena = t->run->forbidden->data;
  run.params = (const void *const *)addresses;
  run.results = addresses;
  run.profiler = NULL;
  run.checker = NULL;
  return guarded_run(t->n_areas + 1, list, rt_thunk_label(a, t->run->program, &thunk), run_call, &(call){&thunk, &run},
                     fault);
}

/* --- violations --- */

typedef struct nearest {
  uint32_t buffer;
  /* how far the byte is before the buffer, or behind its end; both are 0 if it is in the buffer */
  int64_t before, behind;
} nearest;

/* Returns the buffer in area `number` that is nearest to byte `at` of the area's space.  The byte may be outside of all
 * buffers. */
static nearest find_nearest(const trial *t, uint32_t number, int64_t at) {
  nearest best = {.before = INT64_MAX / 2};
  for (uint32_t k = 0; k < t->thunk->n_buffers; k++) {
    range r = range_of(&t->thunk->buffers[k]);
    int64_t before = at < (int64_t)r.low ? (int64_t)r.low - at : 0,
            behind = at >= (int64_t)r.high ? at - (int64_t)r.high + 1 : 0;
    if (t->area_of[k] == number && before + behind < best.before + best.behind) {
      best = (nearest){k, before, behind};
    }
  }
  return best;
}

static status misplaced(const trial *t, arena *a, const char *did, uint32_t number, int64_t at) {
  nearest x = find_nearest(t, number, at);
  const char *text = buffer_text(a, t->run->program, t->thunk, x.buffer);
  if (x.before) {
    return violation(t->thunk, "%s %" PRId64 " bytes before %s", did, x.before, text);
  }
  if (x.behind) {
    return violation(t->thunk, "%s byte %" PRId64 " behind the end of %s", did, x.behind, text);
  }
  return violation(t->thunk, "%s byte %" PRId64 " of %s", did, at - t->thunk->buffers[x.buffer].offset, text);
}

static status fault_status(const trial *t, arena *a, const guarded_fault *f) {
  static const char *const did[] = {
      [GUARDED_TOUCHED] = "touches", [GUARDED_READ] = "reads", [GUARDED_WRITTEN] = "writes"};
  for (uint32_t k = 0; k < t->n_areas; k++) {
    const area *x = &t->areas[k];
    if (guarded_holds(x->memory, f->address)) {
      return misplaced(t, a, did[f->access], k, (int64_t)(f->address - (uintptr_t)x->memory->data + x->base));
    }
  }
  return violation(t->thunk, "%s the arena where it has no buffer", did[f->access]);
}

/* Returns a flag for each byte of the area's pages, which is true if the byte belongs to an output. */
static bool *outputs_of(const trial *t, arena *a, uint32_t number) {
  const area *x = &t->areas[number];
  bool *mine = ARENA_NEW_N(a, bool, x->memory->page_bytes + 1);
  for (uint32_t k = t->thunk->n_inputs; k < t->thunk->n_buffers; k++) {
    slices p = slices_of(&t->thunk->buffers[k]);
    for (int64_t j = 0; t->area_of[k] == number && j < p.n; j++) {
      memset(mine + (address_of(t, k) - x->memory->pages) + slice_offset(&p, j), true, p.bytes);
    }
  }
  return mine;
}

static status check_untouched(const trial *t, arena *a, uint32_t number) {
  const area *x = &t->areas[number];
  const bool *mine = outputs_of(t, a, number);
  for (size_t k = 0; k < x->memory->page_bytes; k++) {
    if (!mine[k] && x->memory->pages[k] != x->before[k]) {
      int64_t from_data = (int64_t)k - (x->memory->data - x->memory->pages);
      return misplaced(t, a, "writes", number, from_data + (int64_t)x->base);
    }
  }
  return NULL;
}

/* --- a trial --- */

status trial_run(checked_run *c, arena *a, const rt_thunk *thunk, rt_run *r, bool out_of_place, wild kind,
                 trial **out) {
  trial *t = *out = ARENA_NEW(a, trial);
  guarded_fault fault;
  t->run = c;
  t->thunk = thunk;
  make_areas(t, a, out_of_place);
  TRY(make_memory(t, a, kind));
  for (uint32_t k = 0; k < thunk->n_buffers; k++) {
    if (thunk_reads(thunk, k) && tracked_space(c, &thunk->buffers[k])) {
      bring_content(t, k, kind);
    }
  }
  TRY(finish_memory(t, a));
  status failed = run_thunk(t, a, r, &fault);
  if (fault.access) {
    status_free(failed);
    return fault_status(t, a, &fault);
  }
  TRY(failed);
  for (uint32_t k = 0; k < t->n_areas; k++) {
    TRY(t->areas[k].written ? check_untouched(t, a, k) : NULL);
  }
  return NULL;
}
