/* exec_sort.c - the thunk kind cpu.sort: stable, by the first operand, any element types.
 *
 * Keys become unsigned numbers of the same order, so that one merge sort of (key, place) serves all types; then every
 * operand is permuted.  Lines (all but the sorted dimension) are divided into parts, each with scratch memory of its own. */
#include <string.h>

#include "backend_cpu/exec_kinds.h"
#include "runtime/pool.h"

enum {
  RUN = 16,      /* lengths up to this are sorted by insertion */
  LOOK = 1 << 20 /* elements to be merged between two looks at the run's budget */
};

typedef struct item {
  uint64_t key;
  int64_t place;
} item;

typedef struct sort_state {
  int64_t n, inner, lines, parts; /* elements of a line stand `inner` apart */
  int64_t wanted;                 /* so many of the first are to be found; the others' places may hold anything */
  uint32_t n_operands;
  bool descending;
} sort_state;

uint64_t cpu_sort_scratch(int64_t n) { return (2 * (uint64_t)n * sizeof(item) + 63) & ~(uint64_t)63; }

/* --- keys --- */

/* Bits of a float as a number: NaN above all else, -0 equal to 0. */
static uint64_t float_key(uint64_t bits, unsigned width, uint64_t infinity) {
  uint64_t sign = (uint64_t)1 << (width - 1), magnitude = bits & (sign - 1);
  if (magnitude > infinity) {
    return UINT64_MAX;
  }
  return bits & sign ? sign - magnitude : sign + magnitude;
}

static uint64_t load_bits(const void *p, size_t bytes) {
  uint64_t v = 0;
  memcpy(&v, p, bytes);
  return v;
}

static uint64_t key_of(dtype type, const void *p) {
  switch (type) {
    case DTYPE_F64:
      return float_key(load_bits(p, 8), 64, 0x7ff0000000000000u);
    case DTYPE_F32:
      return float_key(load_bits(p, 4), 32, 0x7f800000u);
    case DTYPE_F16:
      return float_key(load_bits(p, 2), 16, 0x7c00u);
    case DTYPE_BF16:
      return float_key(load_bits(p, 2), 16, 0x7f80u);
    default:
      break;
  }
  if (dtype_is_float(type)) { /* 8 bits and less: exact in f32 */
    float f = (float)dtype_load_f64(type, p);
    return float_key(load_bits(&f, 4), 32, 0x7f800000u);
  }
  uint64_t v = (uint64_t)dtype_load_i64(type, p);
  return dtype_is_signed(type) ? v ^ (uint64_t)1 << 63 : v;
}

/* --- sorting --- */

static void insertion_sort(item *x, int64_t n) {
  for (int64_t i = 1; i < n; i++) {
    item v = x[i];
    int64_t k = i;
    for (; k > 0 && x[k - 1].key > v.key; k--) {
      x[k] = x[k - 1];
    }
    x[k] = v;
  }
}

static void merge(const item *a, int64_t na, const item *b, int64_t nb, item *out) {
  while (na > 0 && nb > 0) {
    bool second = b->key < a->key;
    *out++ = second ? *b : *a;
    a += !second;
    na -= !second;
    b += second;
    nb -= second;
  }
  memcpy(out, na ? a : b, (size_t)(na + nb) * sizeof *out);
}

/* Gives whichever of the two holds the result; in some order if the budget is used up. */
static item *merge_sort(const mem_budget *budget, item *x, item *other, int64_t n) {
  for (int64_t k = 0; k < n; k += RUN) {
    insertion_sort(x + k, n - k < RUN ? n - k : RUN);
  }
  int64_t since = 0; /* elements merged since the budget was looked at */
  for (int64_t width = RUN; width < n; width *= 2) {
    for (int64_t k = 0; k < n; k += 2 * width, since += 2 * width) {
      if (since >= LOOK) {
        since = 0;
        if (budget_expired(budget)) {
          return x;
        }
      }
      int64_t left = n - k < width ? n - k : width, right = n - k - left < width ? n - k - left : width;
      merge(x + k, left, x + k + left, right, other + k);
    }
    item *t = x;
    x = other;
    other = t;
  }
  return x;
}

/* --- the first few --- */

static bool before(const item *a, const item *b) { return a->key < b->key || (a->key == b->key && a->place < b->place); }

/* Lets v sink from place `at` of a heap of n, whose top is the last in order. */
static void sink(item *heap, int64_t n, int64_t at, item v) {
  for (int64_t next = 2 * at + 1; next < n; next = 2 * at + 1) {
    next += next + 1 < n && before(&heap[next], &heap[next + 1]);
    if (!before(&v, &heap[next])) {
      break;
    }
    heap[at] = heap[next];
    at = next;
  }
  heap[at] = v;
}

static void swap_keys(item *x, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    x[k] = (item){(uint64_t)x[k].place, (int64_t)x[k].key};
  }
}

/* The first `wanted` of x[n], in order.  Places rise, so that an equal key further on never comes before. */
static item *sort_first(const mem_budget *budget, item *x, item *other, int64_t n, int64_t wanted) {
  for (int64_t k = wanted / 2; k-- > 0;) {
    sink(x, wanted, k, x[k]);
  }
  for (int64_t k = wanted; k < n; k++) {
    if (x[k].key < x[0].key) {
      sink(x, wanted, 0, x[k]);
    }
  }
  swap_keys(x, wanted); /* by place first: a heap does not keep the order of equal keys, merging does */
  item *placed = merge_sort(budget, x, other, wanted);
  swap_keys(placed, wanted);
  return merge_sort(budget, placed, placed == x ? other : x, wanted);
}

typedef struct sort_run {
  const sort_state *s;
  const rt_buffer *in;
  uint8_t **from, **to;
  uint8_t *scratch;
  const mem_budget *budget;
} sort_run;

static void sort_line(const sort_run *r, int64_t line, item *items) {
  const sort_state *s = r->s;
  int64_t first = line / s->inner * s->n * s->inner + line % s->inner;
  size_t size = dtype_bytes(r->in[0].type);
  for (int64_t k = 0; k < s->n; k++) {
    uint64_t key = key_of(r->in[0].type, r->from[0] + (size_t)(first + k * s->inner) * size);
    items[k] = (item){s->descending ? ~key : key, k};
  }
  const item *sorted = s->wanted < s->n ? sort_first(r->budget, items, items + s->n, s->n, s->wanted)
                                        : merge_sort(r->budget, items, items + s->n, s->n);
  for (uint32_t o = 0; o < s->n_operands; o++) {
    size = dtype_bytes(r->in[o].type);
    for (int64_t k = 0; k < s->wanted; k++) {
      memcpy(r->to[o] + (size_t)(first + k * s->inner) * size,
             r->from[o] + (size_t)(first + sorted[k].place * s->inner) * size, size);
    }
  }
}

static void sort_parts(void *data, int64_t begin, int64_t end) {
  const sort_run *r = data;
  const sort_state *s = r->s;
  for (int64_t part = begin; part < end; part++) {
    item *items = (item *)(r->scratch + (uint64_t)part * cpu_sort_scratch(s->n));
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
  int64_t dimension = rt_get_in(&r, 0, SHAPE_MAX_RANK - 1);
  sort_state *s = ARENA_NEW(l->arena, sort_state);
  s->descending = rt_get_in(&r, 0, 1);
  s->parts = rt_get_in(&r, 1, INT32_MAX);
  s->wanted = rt_get_in(&r, 0, INT64_MAX);
  TRY(rt_reader_end(&r, t->label));
  s->n_operands = t->n_inputs;
  const rt_buffer *key = t->buffers;
  bool ok = t->n_inputs >= 1 && t->n_inputs < 1000 && t->n_buffers == 2 * t->n_inputs + 1 && dimension < key->rank;
  for (uint32_t k = 0; ok && k < 2 * t->n_inputs; k++) {
    const rt_buffer *b = &t->buffers[k];
    ok = rt_buffer_is_dense(b) && b->rank == key->rank && b->type == t->buffers[k % t->n_inputs].type &&
         memcmp(b->extents, key->extents, key->rank * sizeof *key->extents) == 0;
  }
  CHECK_THAT(ok, STATUS_INVALID_FILE, "%s: damaged", t->label);
  s->n = key->extents[dimension];
  s->wanted = s->wanted < s->n ? s->wanted : s->n;
  s->inner = s->lines = 1;
  for (int k = 0; k < key->rank; k++) {
    s->inner *= k > dimension ? key->extents[k] : 1;
    s->lines *= k != dimension ? key->extents[k] : 1;
  }
  const rt_buffer *scratch = &t->buffers[t->n_buffers - 1];
  CHECK_THAT((uint64_t)rt_buffer_bytes(scratch) / (uint64_t)s->parts >= cpu_sort_scratch(s->n) && scratch->offset % 64 == 0,
             STATUS_INVALID_FILE, "%s: damaged", t->label);
  t->state = s;
  return NULL;
}
