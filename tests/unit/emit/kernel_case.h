/* kernel_case.h - runs kernels that are given as HLO text on random inputs, with ranges of the grid of random size,
 * and compares them with the reference evaluator; they are compiled for all machines and for GPUs. */
#ifndef TESTS_UNIT_EMIT_KERNEL_CASE_H
#define TESTS_UNIT_EMIT_KERNEL_CASE_H

#include "emit/kernel/compile.h"
#include "tests/unit/emit/kernel_test.h"

/* Of one test. */
extern arena *kernel_arena;
void kernel_setup(void);
void kernel_teardown(void);
#define TEXT(...) arena_printf(kernel_arena, __VA_ARGS__)

typedef struct kernel_case {
  const char *text;  /* (%x: f32[4]) { ... return %y } */
  double tolerance;  /* relative, and absolute times 1/16; 0: the same bits (or any NaN) */
  int64_t low, high; /* of random integers; equal: any */
  int32_t alias;     /* result 0 lies in this operand's buffer; -1 */
  hlo_instr *fusion;
  emit_kernel_info info;
} kernel_case;

typedef struct kernel_cases {
  kernel_case *items;
  uint32_t n, cap;
} kernel_cases;

/* Another one, whose fields the caller may still change. */
kernel_case *kernel_add(kernel_cases *c, double tolerance, const char *text);
/* The fusion whose body the text is. */
hlo_instr *kernel_parse(const kernel_case *k);
/* Fails the test unless all of them compute what the reference does, on blocks the same bits as on ranges, and unless
 * their PTX for one of the GPUs passes the checks of ptx_case.h. */
void kernel_check_all(kernel_cases *c);
/* Fails the test unless their PTX for `gpu` passes these checks. */
void kernel_check_ptx(kernel_cases *c, const char *gpu);

/* --- common ones --- */

enum { KERNEL_FLOATS = 11, KERNEL_INTS = 12 };
extern const char *const kernel_floats[KERNEL_FLOATS], *const kernel_ints[KERNEL_INTS];
/* Of functions in a floating type. */
double kernel_tolerance(const char *type);
/* op(x) and op(x, y) of 37 elements of type t, which give elements of type `to`. */
void kernel_unary(kernel_cases *c, double tolerance, const char *op, const char *t, const char *to, const char *attrs);
void kernel_binary(kernel_cases *c, double tolerance, const char *op, const char *t, const char *to, const char *attrs);
/* Sums along rows, columns, all, nothing. */
void kernel_reduce(kernel_cases *c, const char *t, const char *reducer, double tolerance);
/* Kernels of all emitters in all element types. */
void kernel_add_all(kernel_cases *c);

#endif
