/* outline.h - copies an instruction into a module of its own, from which a kernel is made.
 *
 * Names, sources and configs are left out, and sizes that are not constants are renamed, so that equal texts mean equal
 * kernels.  The dimensions of the copy are sums and products of the symbols s0, s1, ..., which are numbered in the
 * order in which they occur.  Each symbol stands for a size of the program, such as seq or (width+1)/2. */
#ifndef LOWER_KERNELS_OUTLINE_H
#define LOWER_KERNELS_OUTLINE_H

#include "hlo/ir/ir.h"

/* Returns true if the operand is a constant that becomes part of the code, so that it is not a parameter of the kernel.
 */
bool lower_is_embedded(const hlo_instr *i, uint32_t operand);

typedef enum lower_isolation {
  LOWER_OUTLINE_KERNEL, /* operands become parameters, except for HLO_SIZES and for constants that become part of the
                           code */
  LOWER_OUTLINE_PROGRAM /* all constants are copied, and only other operands become parameters */
} lower_isolation;

/* The sizes for which the symbols of an outlined module stand: sizes[k], a dim of the program's module, for s<k>. */
typedef struct lower_outline_symbols {
  uint32_t n, cap;
  dim *sizes;
} lower_outline_symbols;

/* Returns the symbol s<k> of an outlined module's table. */
dim lower_outline_symbol(dim_table *t, uint32_t k);

/* Copies `i` alone into a module of its own.  Operand number `packed` (-1 if there is none) becomes a parameter in any
 * case.  *symbols, which must be empty, gets the sizes of the symbols. */
hlo_instr *lower_outline(arena *a, const hlo_instr *i, lower_isolation how, int32_t packed,
                         lower_outline_symbols *symbols);

/* Copies a dim to another table.  Its symbols keep their names and hints. */
dim lower_outline_copy_dim(dim_table *to, const dim_table *from, dim d);

/* Copies an outlined instruction and its module, with a table of dims of its own, so that several threads may write
 * kernels at the same time. */
hlo_instr *lower_outline_copy(arena *a, const hlo_instr *outlined);

#endif
