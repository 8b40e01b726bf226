/* kernel_case.h - runs kernels that are given as HLO text on random inputs, with ranges of the grid of random size,
 * and compares them with the reference evaluator; they are compiled for all machines and for GPUs. */
#ifndef TESTS_UNIT_EMIT_KERNEL_CASE_H
#define TESTS_UNIT_EMIT_KERNEL_CASE_H

#include "emit/kernel/compile.h"
#include "tests/unit/emit/kernel_test.h"

/* The memory of one test. */
extern arena *kernel_arena;
void kernel_setup(void);
void kernel_teardown(void);
#define TEXT(...) arena_printf(kernel_arena, __VA_ARGS__)

typedef struct kernel_case {
  const char *text;  /* (%x: f32[4]) { ... return %y } */
  double tolerance;  /* a difference may be this part of the expected number plus 1/16; 0: the numbers must be equal, or
                        both NaN */
  int64_t low, high; /* the range of random integers; if both are equal, any integers */
  int32_t alias;     /* the operand in whose buffer result 0 is written, or -1 */
  hlo_instr *fusion;
  emit_kernel_info info;
} kernel_case;

typedef struct kernel_cases {
  kernel_case *items;
  uint32_t n, cap;
} kernel_cases;

/* Adds a kernel and returns it; the caller may still change its fields. */
kernel_case *kernel_add(kernel_cases *c, double tolerance, const char *text);
/* Returns the fusion whose body is the text of the case. */
hlo_instr *kernel_parse(const kernel_case *k);
/* Fails the test unless all kernels compute what the reference does, give the same bits on blocks as on
 * ranges, and pass the checks of ptx_case.h as PTX for one of the GPUs. */
void kernel_check_all(kernel_cases *c);
/* Fails the test unless the PTX of all kernels for `gpu` passes the checks of ptx_case.h. */
void kernel_check_ptx(kernel_cases *c, const char *gpu);

/* --- common kernels --- */

enum { KERNEL_FLOATS = 11, KERNEL_INTS = 12 };
extern const char *const kernel_floats[KERNEL_FLOATS], *const kernel_ints[KERNEL_INTS];
/* Returns the tolerance for functions that are computed in a floating-point type. */
double kernel_tolerance(const char *type);
/* Add op(x) and op(x, y) for 37 elements of type t, with results of type `to`. */
void kernel_unary(kernel_cases *c, double tolerance, const char *op, const char *t, const char *to, const char *attrs);
void kernel_binary(kernel_cases *c, double tolerance, const char *op, const char *t, const char *to, const char *attrs);
/* Adds reductions along rows, along columns, along both, and along no dimension. */
void kernel_reduce(kernel_cases *c, const char *t, const char *reducer, double tolerance);
/* Adds kernels of all emitters in all element types. */
void kernel_add_all(kernel_cases *c);

#endif
