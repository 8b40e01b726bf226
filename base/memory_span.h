/* memory_span.h - spans of memory that a caller passes, and a check that no written span overlaps another one.
 *
 * It includes no other file of this project, so that clients of the C API, which link nothing of this folder, use it
 * too. */
#ifndef BASE_MEMORY_SPAN_H
#define BASE_MEMORY_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct memory_span {
  const void *data;
  size_t bytes; /* a span without bytes overlaps nothing */
  bool is_written;
  uint32_t index; /* chosen by the caller, to identify the span */
  bool is_both; /* set by memory_spans_overlap: whether this written span has exactly the memory of one that is read */
} memory_span;

/* The message for two spans that overlap; its arguments are memory_span_side and the name of each. */
#define MEMORY_SPANS_OVERLAP "the memory of %s '%s' overlaps that of %s '%s'"

static inline const char *memory_span_side(const memory_span *s) { return s->is_written ? "output" : "input"; }

static inline uintptr_t memory_span_start(const memory_span *s) { return (uintptr_t)s->data; }

/* Orders spans by address, then by size, then those that are read before those that are written, then by index. */
static inline int memory_span_compare(const void *x, const void *y) {
  const memory_span *s = x, *t = y;
  uintptr_t a = memory_span_start(s), b = memory_span_start(t);
  int order = (a > b) - (a < b);
  order = order ? order : (s->bytes > t->bytes) - (s->bytes < t->bytes);
  order = order ? order : s->is_written - t->is_written;
  return order ? order : (s->index > t->index) - (s->index < t->index);
}

/* Returns true if `s` begins before the end of `before`, which is NULL or begins no later than `s`.  Differences are
 * compared, so that no sum can overflow. */
static inline bool memory_span_reaches(const memory_span *before, const memory_span *s) {
  return before && memory_span_start(s) - memory_span_start(before) < before->bytes;
}

/* Returns the one of the two that ends later; x may be NULL.  y begins no earlier than x. */
static inline const memory_span *memory_span_longer(const memory_span *x, const memory_span *y) {
  return memory_span_reaches(x, y) && x->bytes - (memory_span_start(y) - memory_span_start(x)) > y->bytes ? x : y;
}

/* Finds, in sorted spans, each written span that has exactly the memory of the span before it, if that one is only
 * read.  Sets is_both of the written span, and makes the read span empty, so that the two do not count as overlapping.
 */
static inline void memory_spans_unite(uint32_t n, memory_span *spans) {
  for (uint32_t k = 1; k < n; k++) {
    memory_span *read = &spans[k - 1], *s = &spans[k];
    s->is_both = s->bytes && s->is_written && !read->is_written && s->data == read->data && s->bytes == read->bytes;
    read->bytes = s->is_both ? 0 : read->bytes;
  }
}

/* Sorts the spans by address.  Returns true if two of them, at least one of which is written, have a byte in common;
 * then pair[] has these two, in no particular order.  A written span may have exactly the memory of one span that is
 * read; then its is_both is set.  It takes n log n time. */
static inline bool memory_spans_overlap(uint32_t n, memory_span *spans, memory_span pair[2]) {
  const memory_span *any = NULL, *written = NULL; /* the spans that end last, of all so far and of the written ones */
  qsort(spans, n, sizeof *spans, memory_span_compare);
  memory_spans_unite(n, spans);
  for (uint32_t k = 0; k < n; k++) {
    const memory_span *s = &spans[k], *met = s->is_written ? any : written;
    if (s->bytes == 0) {
      continue;
    }
    if (memory_span_reaches(met, s)) {
      pair[0] = *met;
      pair[1] = *s;
      return true;
    }
    any = memory_span_longer(any, s);
    written = s->is_written ? memory_span_longer(written, s) : written;
  }
  return false;
}

#endif
