/* table.h - the table of computations that are already written, so that none is written twice. */
#ifndef EMIT_LLVM_TABLE_H
#define EMIT_LLVM_TABLE_H

#include "emit/llvm/ir.h"

/* Remembers the results of instructions that were written, so that the same computation is not written twice.
 * emit_table_release forgets what was added since emit_table_mark; it is called after a block that does not dominate
 * the code after it. */
typedef struct emit_table emit_table;
typedef struct emit_pair {
  LLVMValueRef v, im; /* im is the imaginary part of complex numbers, otherwise NULL */
} emit_pair;
emit_table *emit_table_create(arena *a);
const emit_pair *emit_table_find(const emit_table *t, const uintptr_t key[5]);
void emit_table_put(emit_table *t, const uintptr_t key[5], emit_pair value);
uint32_t emit_table_mark(const emit_table *t);
void emit_table_release(emit_table *t, uint32_t mark);

#endif
