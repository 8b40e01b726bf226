/* placement.c - assigns offsets in one arena to slices of memory with lifetimes; see placement.h. */
#include "base/placement.h"

#include <stdlib.h>

enum { ALIGN = 64 };

static int by_size(const void *x, const void *y) {
  const live_slice *a = *(live_slice *const *)x, *b = *(live_slice *const *)y;
  if (a->bytes != b->bytes) {
    return a->bytes < b->bytes ? 1 : -1;
  }
  return (a->first > b->first) - (a->first < b->first);
}

static int by_offset(const void *x, const void *y) {
  const live_slice *a = *(live_slice *const *)x, *b = *(live_slice *const *)y;
  return (a->offset > b->offset) - (a->offset < b->offset);
}

/* Sorts short lists by insertion: most lists are short, and qsort would call a function for each comparison. */
static void sort_by_offset(live_slice **items, uint32_t n) {
  enum { FEW = 24 };
  if (n > FEW) {
    qsort(items, n, sizeof *items, by_offset);
    return;
  }
  for (uint32_t k = 1; k < n; k++) {
    live_slice *x = items[k];
    uint32_t at = k;
    for (; at && items[at - 1]->offset > x->offset; at--) {
      items[at] = items[at - 1];
    }
    items[at] = x;
  }
}

static uint64_t padded(uint64_t bytes) { return (bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1); }

typedef struct slice_list {
  live_slice **items;
  uint32_t n, cap;
} slice_list;

enum { MOST_SLOTS = 4096, SPAN = 8 };

/* The placed slices, by the times at which they are live, so that a slice is compared with few others (a large model
 * has many slices, but most live briefly).  Time is divided into at most MOST_SLOTS slots of equal length; slices that
 * live in more than SPAN + 1 of them are in the separate list `lasting`. clash[] are the placed slices that are live
 * together with the slice that is placed next. */
typedef struct placing {
  arena *arena;
  int64_t slot; /* the length of a slot */
  slice_list *by_time, lasting;
  live_slice **clash;
  uint32_t n_clash;
  uint64_t bytes; /* the size of the arena so far */
} placing;

static void add_clashes(placing *p, const slice_list *list, const live_slice *s, int64_t slot) {
  for (uint32_t k = 0; k < list->n; k++) {
    live_slice *other = list->items[k];
    /* If `other` is in several slots, it is added only for the first slot that it shares with s.  A negative `slot`
     * stands for all times. */
    int64_t begin = other->first > s->first ? other->first : s->first;
    if (other->first <= s->last && s->first <= other->last && (slot < 0 || begin / p->slot == slot)) {
      p->clash[p->n_clash++] = other;
    }
  }
}

static void find_clashes(placing *p, const live_slice *s) {
  p->n_clash = 0;
  add_clashes(p, &p->lasting, s, -1);
  for (int64_t slot = s->first / p->slot; slot <= s->last / p->slot; slot++) {
    add_clashes(p, &p->by_time[slot], s, slot);
  }
}

static void remember(placing *p, live_slice *s) {
  int64_t first = s->first / p->slot, last = s->last / p->slot;
  if (last - first > SPAN) {
    *ARENA_PUSH(p->arena, p->lasting.items, p->lasting.n, p->lasting.cap) = s;
    return;
  }
  for (int64_t slot = first; slot <= last; slot++) {
    slice_list *list = &p->by_time[slot];
    *ARENA_PUSH(p->arena, list->items, list->n, list->cap) = s;
  }
}

static void place(placing *p, live_slice *s) {
  find_clashes(p, s);
  live_slice **clash = p->clash;
  uint32_t n = p->n_clash;
  sort_by_offset(clash, n);
  uint64_t at = 0;
  for (uint32_t k = 0; k < n && clash[k]->offset < at + padded(s->bytes); k++) {
    uint64_t end = clash[k]->offset + padded(clash[k]->bytes);
    at = end > at ? end : at;
  }
  s->offset = at;
  if (at + padded(s->bytes) > p->bytes) {
    p->bytes = at + padded(s->bytes);
  }
  remember(p, s);
}

static uint64_t lower_bound_of(arena *a, live_slice *const *slices, uint32_t n, uint32_t end) {
  int64_t *change = ARENA_NEW_N(a, int64_t, end + 3);
  for (uint32_t k = 0; k < n; k++) {
    change[slices[k]->first] += (int64_t)padded(slices[k]->bytes);
    change[slices[k]->last + 1] -= (int64_t)padded(slices[k]->bytes);
  }
  int64_t live = 0, most = 0;
  for (uint32_t t = 0; t < end + 3; t++) {
    live += change[t];
    most = live > most ? live : most;
  }
  return (uint64_t)most;
}

/* Places the largest slices first, each at the lowest offset that is free during its lifetime, like the heap simulator
 * of XLA. */
status place_slices(arena *a, uint32_t n, live_slice *slices, uint32_t end, uint64_t *bytes, uint64_t *lower_bound) {
  live_slice **sorted = ARENA_NEW_N(a, live_slice *, n);
  placing *p = ARENA_NEW(a, placing);
  *p = (placing){.arena = a, .slot = ((int64_t)end + 3) / MOST_SLOTS + 1, .clash = ARENA_NEW_N(a, live_slice *, n)};
  p->by_time = ARENA_NEW_N(a, slice_list, (size_t)(((int64_t)end + 1) / p->slot + 1));
  for (uint32_t k = 0; k < n; k++) {
    sorted[k] = &slices[k];
  }
  if (n) {
    qsort(sorted, n, sizeof *sorted, by_size);
  }
  for (uint32_t k = 0; k < n; k++) {
    place(p, sorted[k]);
    TRY(budget_check(arena_budget(a)));
  }
  *bytes = p->bytes;
  if (lower_bound) {
    *lower_bound = lower_bound_of(a, sorted, n, end);
  }
  return NULL;
}
