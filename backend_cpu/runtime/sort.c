/* sort.c - the thunk kind cpu.sort: a stable sort by the first operand, of any element types.
 *
 * For each line, order.h finds the order; then every operand is permuted.  Lines (all dimensions but the sorted one)
 * are divided into parts, each with scratch memory of its own. */
#include <string.h>

#include "backend_cpu/runtime/kinds.h"
#include "backend_cpu/runtime/order.h"
#include "runtime/host/thread_pool.h"

typedef struct sort_state {
  int64_t dimension;
  /* These are set when the thunk is bound; `inner` is the distance between elements of a line.  Until then, `parts` is
   * the largest number of parts. */
  int64_t n, inner, lines, parts;
  int64_t wanted; /* how many of the first elements are wanted; the others in the results are undefined */
  int64_t places; /* the number of the operand that is an iota of positions in the line, so that it need not be read; -1
                     if there is none */
  uint32_t n_operands;
  bool descending;
} sort_state;

/* Returns the bytes of a part's scratch memory: for the items (order.h), and for a copy of the line, which is needed if
 * the line is not contiguous. */
static uint64_t part_bytes(int64_t n) { return ((uint64_t)n * CPU_SORT_BYTES + 63) & ~(uint64_t)63; }

typedef struct sort_run {
  const sort_state *s;
  const rt_buffer *in;
  uint8_t **from, **to;
  uint8_t *scratch;
  const mem_budget *budget;
} sort_run;

/* Copies n elements, which are `from_step` and `to_step` apart, in the given order; order NULL keeps their order. */
static void copy_elements(size_t size, void *to, int64_t to_step, const void *from, int64_t from_step,
                          const cpu_item *order, int64_t n) {
#define COPY(type)                                                                              \
  for (int64_t k = 0; k < n; k++) {                                                             \
    ((type *)to)[k * to_step] = ((const type *)from)[(order ? order[k].place : k) * from_step]; \
  }
  switch (size) {
    case 1: COPY(uint8_t) break;
    case 2: COPY(uint16_t) break;
    case 4: COPY(uint32_t) break;
    case 8: COPY(uint64_t) break;
    default: /* complex numbers of 16 bytes, copied as two words */
      for (size_t k = 0; k < size; k += sizeof(uint64_t)) {
        int64_t words = (int64_t)(size / sizeof(uint64_t));
        copy_elements(sizeof(uint64_t), (char *)to + k, to_step * words, (const char *)from + k, from_step * words,
                      order, n);
      }
  }
#undef COPY
}

static void sort_line(const sort_run *r, int64_t line, void *scratch) {
  const sort_state *s = r->s;
  int64_t first = line / s->inner * s->n * s->inner + line % s->inner;
  size_t size = dtype_bytes(r->in[0].type);
  cpu_line l = {r->in[0].type, r->from[0] + (size_t)first * size, s->n, s->descending, r->budget};
  if (s->inner > 1) {
    void *copy = (char *)scratch + (uint64_t)s->n * CPU_ORDER_BYTES;
    copy_elements(size, copy, 1, l.data, s->inner, NULL, s->n);
    l.data = copy;
  }
  const cpu_item *sorted = cpu_order(&l, s->wanted, scratch);
  for (uint32_t o = 0; o < s->n_operands; o++) {
    size = dtype_bytes(r->in[o].type);
    size_t at = (size_t)first * size;
    if (o == s->places) {
      copy_elements(size, r->to[o] + at, s->inner, &sorted[0].place, sizeof(cpu_item) / sizeof(int64_t), NULL,
                    s->wanted);
    } else {
      copy_elements(size, r->to[o] + at, s->inner, r->from[o] + at, s->inner, sorted, s->wanted);
    }
  }
}

static void sort_parts(void *data, int64_t begin, int64_t end) {
  const sort_run *r = data;
  const sort_state *s = r->s;
  for (int64_t part = begin; part < end; part++) {
    void *items = r->scratch + (uint64_t)part * part_bytes(s->n);
    for (int64_t line = part * s->lines / s->parts; line < (part + 1) * s->lines / s->parts; line++) {
      if (budget_expired(r->budget)) {
        return;
      }
      sort_line(r, line, items);
    }
  }
}

status cpu_sort_run(const rt_thunk *t, rt_run *r) {
  const sort_state *s = t->state;
  uint8_t *addresses[t->n_buffers];
  for (uint32_t k = 0; k < t->n_buffers; k++) {
    addresses[k] = rt_address(r, &t->buffers[k]);
  }
  sort_run run = {s, t->buffers, addresses, addresses + s->n_operands, addresses[t->n_buffers - 1], r->budget};
  if (s->n > 0 && s->lines > 0) {
    return rt_parallel_run(r, s->parts, 1, sort_parts, &run);
  }
  return NULL;
}

status cpu_sort_load(rt_thunk *t, rt_loader *l) {
  rt_reader r = rt_reader_make(t->config);
  sort_state *s = ARENA_NEW(l->arena, sort_state);
  s->dimension = rt_get_in(&r, 0, SHAPE_MAX_RANK - 1);
  s->descending = rt_get_in(&r, 0, 1);
  s->parts = rt_get_in(&r, 1, INT32_MAX);
  s->wanted = rt_get_in(&r, 0, INT64_MAX);
  s->places = rt_get_in(&r, -1, INT32_MAX);
  TRY(rt_reader_end(&r, t->kind));
  s->n_operands = t->n_inputs;
  const rt_buffer *key = t->buffers;
  bool ok = t->n_inputs >= 1 && t->n_inputs < 1000 && t->n_buffers == 2 * t->n_inputs + 1 && s->dimension < key->rank;
  for (uint32_t k = 0; ok && k < 2 * t->n_inputs; k++) {
    const rt_buffer *b = &t->buffers[k];
    ok = b->rank == key->rank && b->type == t->buffers[k % t->n_inputs].type;
  }
  ok = ok && s->places < t->n_inputs && (s->places < 0 || t->buffers[s->places].type == DTYPE_S64);
  CHECK_THAT(ok, STATUS_INVALID_FILE, "damaged");
  t->state = s;
  return NULL;
}

status cpu_sort_bind(rt_thunk *t, arena *a) {
  sort_state *s = arena_memdup(a, t->state, sizeof *s);
  const rt_buffer *key = t->buffers, *scratch = &t->buffers[t->n_buffers - 1];
  bool ok = true;
  for (uint32_t k = 0; k < 2 * t->n_inputs; k++) {
    const rt_buffer *b = &t->buffers[k];
    ok = ok && rt_buffer_is_dense(b) && memcmp(b->extents, key->extents, key->rank * sizeof *key->extents) == 0;
  }
  CHECK_THAT(ok, STATUS_INVALID_FILE, "damaged");
  s->n = key->extents[s->dimension];
  s->wanted = s->wanted < s->n ? s->wanted : s->n;
  s->inner = 1;
  s->lines = rt_buffer_bytes(key) > 0; /* the product of the extents of an empty array may overflow */
  for (int k = 0; k < key->rank && s->lines; k++) {
    s->inner *= k > s->dimension ? key->extents[k] : 1;
    s->lines *= k != s->dimension ? key->extents[k] : 1;
  }
  s->parts = cpu_parts(s->lines, s->parts);
  CHECK_THAT((uint64_t)rt_buffer_bytes(scratch) / (uint64_t)s->parts >= part_bytes(s->n) && scratch->offset % 64 == 0,
             STATUS_INVALID_FILE, "damaged");
  t->state = s;
  return NULL;
}
