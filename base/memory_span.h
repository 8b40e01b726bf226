/* memory_span.h - memory that callers hand over, and whether what is written there is also in use elsewhere.
 *
 * It includes nothing of ours, so that clients of the C API, which link nothing of this folder, use it too. */
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
  uint32_t index; /* free for the caller, who finds a span by it */
} memory_span;

static inline uintptr_t memory_span_start(const memory_span *s) { return (uintptr_t)s->data; }

static inline int memory_span_compare(const void *x, const void *y) {
  uintptr_t a = memory_span_start(x), b = memory_span_start(y);
  return (a > b) - (a < b);
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

/* Sorts the spans by address.  Returns true if two of them, at least one of which is written, have a byte in common;
 * then pair[] has these two, in no particular order.  It takes n log n time. */
static inline bool memory_spans_overlap(uint32_t n, memory_span *spans, memory_span pair[2]) {
  const memory_span *any = NULL, *written = NULL; /* of the spans so far, those that end last */
  qsort(spans, n, sizeof *spans, memory_span_compare);
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
