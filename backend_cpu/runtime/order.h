/* order.h - sorts the elements of a line, all of them or only the first few. */
#ifndef BACKEND_CPU_RUNTIME_ORDER_H
#define BACKEND_CPU_RUNTIME_ORDER_H

#include "base/arena.h"
#include "base/tensor/dtype.h"

typedef struct cpu_line {
  dtype type;
  const void *data; /* contiguous elements */
  int64_t n;
  bool descending;
  const mem_budget *budget;
} cpu_line;

/* An element: its position in the line, and a key, by which elements are ordered from the smallest to the largest. */
typedef struct cpu_item {
  uint64_t key;
  int64_t place;
} cpu_item;

/* cpu_order returns the first `wanted` (at most n) items in order.  Equal elements keep their order; a NaN is greater
 * than all numbers.  `scratch` has CPU_ORDER_BYTES for each element of the line, is aligned to 8 bytes and holds the
 * result.  If the run's budget expires, cpu_order returns early and the items are in any order. */
enum { CPU_ORDER_BYTES = 2 * sizeof(cpu_item) + sizeof(uint64_t) };
const cpu_item *cpu_order(const cpu_line *l, int64_t wanted, void *scratch);

#endif
