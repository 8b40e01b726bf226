/* sizes.h - dimensions of a module as sizes of its program (rt_size). */
#ifndef LOWER_SIZES_H
#define LOWER_SIZES_H

#include "hlo/ir/ir.h"
#include "runtime/program/program.h"

/* The expressions for the sizes of a program that is being made.  Each expression is in the table once. */
typedef struct size_table {
  arena *arena;
  const hlo_module *module;
  rt_program *program;
  uint32_t cap;
  uint32_t *numbers; /* numbers[-(d + 1)], for a dimension d that is not a constant: the index of d's node in
                        rt_program.sizes plus 1, or 0 if d has no node yet */
  uint32_t n_numbers;
  dim missing; /* a symbol that no input's shape determines, or a dimension that no size can express; 0 if there is none
                */
} size_table;

size_table size_table_make(arena *a, const hlo_module *m, rt_program *p);

/* Returns the size of dimension d, and adds its expression to the program if necessary.  If that is impossible,
 * `missing` is set. */
rt_size size_table_get(size_table *t, dim d);

/* Returns the sizes of the *n symbols that dimensions of inputs determine, each symbol once. */
const rt_size *size_table_symbols(size_table *t, uint32_t *n);

/* Adds the guards of the module to the program. */
void size_table_add_guards(size_table *t);

/* Fails if a size could not be expressed, or if a program for many sizes may be wrong because a question about sizes
 * could not be answered (dim_unanswered).  Must be called when the program has all its sizes. */
STATUS_MUST_USE status size_table_finish(const size_table *t);

#endif
