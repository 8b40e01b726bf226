/* kinds.h - the thunk kinds of the cpu target; the README says how to add one. */
#ifndef BACKEND_CPU_RUNTIME_KINDS_H
#define BACKEND_CPU_RUNTIME_KINDS_H

#include "runtime/program/target.h"

/* Compiled code.  config: code number, symbol, grid, grain.  Buffers as the kernel wants them. */
status cpu_kernel_load(rt_thunk *t, rt_loader *l);
status cpu_kernel_run(const rt_thunk *t, rt_run *r);

/* n operands, n results, scratch.  config: dimension, descending, number of parts the lines are divided into, how many
 * of the first are wanted, which operand holds the places where elements stand (-1: none). */
status cpu_sort_load(rt_thunk *t, rt_loader *l);
status cpu_sort_run(const rt_thunk *t, rt_run *r);

/* non-max-suppression: its operands, its results, scratch.  config: number of parts the lines are divided into. */
status cpu_nms_load(rt_thunk *t, rt_loader *l);
status cpu_nms_run(const rt_thunk *t, rt_run *r);

/* Library calls, see contraction.h.  config: the description, the library's name, the format of packed weights. */
status cpu_convolution_load(rt_thunk *t, rt_loader *l);
status cpu_dot_load(rt_thunk *t, rt_loader *l);
status cpu_contraction_run(const rt_thunk *t, rt_run *r);

/* Bytes of scratch memory that a sort of lines of n elements wants for each of its parts. */
uint64_t cpu_sort_scratch(int64_t n);
/* The same of a non-max-suppression, of all its parts. */
uint64_t cpu_nms_scratch(int64_t lines, int64_t boxes, int64_t limit, int64_t parts);

#endif
