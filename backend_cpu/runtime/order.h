/* order.h - which elements of a line come first: all in order, or the first few. */
#ifndef BACKEND_CPU_RUNTIME_ORDER_H
#define BACKEND_CPU_RUNTIME_ORDER_H

#include "base/arena.h"
#include "base/tensor/dtype.h"

typedef struct cpu_line {
  dtype type;
  const void *data; /* elements side by side */
  int64_t n;
  bool descending;
  const mem_budget *budget;
} cpu_line;

/* An element: its place in the line, and a number that says where it comes, the smallest first. */
typedef struct cpu_item {
  uint64_t key;
  int64_t place;
} cpu_item;

/* The first `wanted` (at most n) items, in order; equals as they stand in the line; NaN beyond all numbers.  `scratch`
 * has cpu_order_scratch(n) bytes, aligned to 8.  In some order if the budget is used up. */
uint64_t cpu_order_scratch(int64_t n);
const cpu_item *cpu_order(const cpu_line *l, int64_t wanted, void *scratch);

#endif
