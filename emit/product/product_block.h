/* product_block.h - one register block of product.h's kernel, with its epilogue; for product_kernel.c, which writes the
 * loops around blocks. */
#ifndef EMIT_PRODUCT_PRODUCT_BLOCK_H
#define EMIT_PRODUCT_PRODUCT_BLOCK_H

#include "emit/product/product_internal.h"

/* An array: it begins `start` elements after the beginning of a buffer. */
typedef struct emit_array {
  uint32_t buffer;
  dim start;
} emit_array;

/* The kernel that is being written. */
typedef struct emit_product_kernel {
  emit_writer w;
  const emit_product *p;
  dim_table *dims; /* the sizes in p are expressions of this table */
  const hlo_instr *contraction;
  dtype type;
  emit_array a, b, copy, packed; /* the operands; the copies of A and B in scratch memory, if there are some */
  emit_row_cut rows;
  int64_t n_sums; /* the number of loops over s (the products of a sum); the innermost is last in `sums` */
  emit_level sums[EMIT_PRODUCT_LEVELS];
  dim b_vector; /* the distance in B from one vector of columns to the next, in elements of b_type */
  LLVMTypeRef b_type;
  hlo_quantized_weights small;
  /* Memory for a block's sums (emit_gemm_store); NULL if none is needed, or for a ladder, whose record has it. */
  LLVMValueRef tile;
  bool direct; /* true if the epilogue is written for each vector of a block, with the sums in registers */
} emit_product_kernel;

/* The place of one register block (or of a column of them) in the product, and what it prefetches. */
typedef struct emit_product_place {
  LLVMValueRef a, b;         /* the addresses of A for the batch and group, and of the register block's first column
                                of B */
  LLVMValueRef first_row;    /* the row of C at which the batch begins */
  LLVMValueRef first_column; /* the register block's first column of C */
  LLVMValueRef vector;       /* the number of the block's first column vector, counted within its group */
  int vectors;
  emit_fetch fetch;
} emit_product_place;

/* Sets the members of k that all blocks use, and allocates k->tile if they need it.  k->rows must be set.  Must be
 * called before any loop is written. */
void emit_product_blocks_begin(emit_product_kernel *k);

/* Writes the block of `units` units of rows (emit_row_cut) that begins at unit number `unit` in iteration `outer` of
 * the loops around the blocks. */
void emit_product_write_block(emit_product_kernel *k, const emit_product_place *b, LLVMValueRef outer,
                              LLVMValueRef unit, int64_t units);

/* Writes the code of a product whose rows are divided like a ladder (product_ladder.c). */
void emit_product_write_ladder(emit_product_kernel *k);

/* Returns the number of bytes of a block's sums. */
int64_t emit_product_tile_bytes(const emit_product_kernel *k);

/* The first writes the epilogue of a ladder's blocks, as a function that a macro-kernel calls (macro_kernel.h).  The
 * second returns the micro-kernel for blocks of this size. */
LLVMValueRef emit_product_write_epilogue(emit_product_kernel *k);
LLVMValueRef emit_product_micro_kernel(emit_product_kernel *k, int64_t rows, int64_t vectors);

/* Return the address that is `offset` elements after `base`; the second is for an address in B or in panels of it,
 * whose elements may be small integers. */
LLVMValueRef emit_product_at(const emit_product_kernel *k, LLVMValueRef base, LLVMValueRef offset);
LLVMValueRef emit_product_b_at(const emit_product_kernel *k, LLVMValueRef base, LLVMValueRef offset);

#endif
