/* block_case.h - runs kernels for blocks of threads, of constant sizes, on emulated threads in every order: they must
 * compute what the reference evaluator does, and the same bits in all orders.  Their PTX must pass ptx_check. */
#ifndef TESTS_UNIT_EMIT_BLOCKS_BLOCK_CASE_H
#define TESTS_UNIT_EMIT_BLOCKS_BLOCK_CASE_H

#include "tests/unit/emit/kernel_case.h"

/* Which random floats arrays have.  An integer is from the range that the case gives (low, high), if it gives one;
 * otherwise it is such a float, rounded. */
typedef enum block_numbers {
  BLOCK_EXACT,  /* integers whose sums are exact in every order */
  BLOCK_ROUGH,  /* numbers whose sums are rounded */
  BLOCK_TIES,   /* few different numbers, and NaN */
  BLOCK_SPECIAL /* NaN, infinities, zeros of both signs, and others */
} block_numbers;

/* How to write a kernel that emit_kernel does not write.  A block_way_fn sets *out for `i`, the only instruction of the
 * case's text. */
enum { BLOCK_MOST_PHASES = 8 };
typedef struct block_way {
  emit_write_fn *write;
  const void *config;
  uint32_t phases;
  int64_t scratch_bytes;
} block_way;
typedef void block_way_fn(const hlo_instr *i, block_way *out);

/* Returns random elements. */
literal block_literal(const kernel_case *c, const shape *s, block_numbers how);
/* Writes the kernels for a target into a module and sets their info; `way` is NULL for those of emit_kernel. */
emit_module *block_write(kernel_cases *c, const emit_target *t, block_way_fn *way);
/* Fails the test unless the kernels are as the head of this file says.  With a tolerance of 0, numbers must be equal,
 * but NaNs may differ. */
void block_check_all(kernel_cases *c, block_numbers how, block_way_fn *way);
/* Fails the test unless the kernels for two targets that emulate threads on this machine compute the same bits. */
void block_check_same(kernel_cases *c, block_numbers how, block_way_fn *way, const emit_target *x,
                      const emit_target *y);

#endif
