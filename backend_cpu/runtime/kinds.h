/* kinds.h - the thunk kinds of the cpu target; backend_cpu/README says how to add one. */
#ifndef BACKEND_CPU_RUNTIME_KINDS_H
#define BACKEND_CPU_RUNTIME_KINDS_H

#include "runtime/program/target.h"

/* A compiled kernel.  Its config has the number of the code object, the symbol, and the grain: the least number of grid
 * steps that a thread takes at once.  Its sizes are the grid and then the kernel's arguments, and its buffers the
 * kernel's parameters. */
status cpu_kernel_load(rt_thunk *t, rt_loader *l);
status cpu_kernel_bind(rt_thunk *t, arena *a);
status cpu_kernel_run(const rt_thunk *t, rt_run *r);

/* A sort.  Its buffers are n operands, n results and scratch memory.  Its config has the sorted dimension, whether the
 * order is descending, and the number of parts that the lines along that dimension are divided into.  It also has how
 * many of the first elements are wanted, and which operand is an iota of positions along the dimension, so that it need
 * not be read (-1: none). */
status cpu_sort_load(rt_thunk *t, rt_loader *l);
status cpu_sort_run(const rt_thunk *t, rt_run *r);

/* A non-maximum suppression.  Its buffers are its operands, its results and scratch memory.  Its config has the number
 * of parts that the lines (batches times classes) are divided into. */
status cpu_nms_load(rt_thunk *t, rt_loader *l);
status cpu_nms_run(const rt_thunk *t, rt_run *r);

/* Library calls (contraction.h).  Their config has the cpu_contraction, the library's name and the format of packed
 * weights. */
status cpu_convolution_load(rt_thunk *t, rt_loader *l);
status cpu_dot_load(rt_thunk *t, rt_loader *l);
status cpu_contraction_run(const rt_thunk *t, rt_run *r);

/* Returns the bytes of scratch memory for each part of a sort of lines of n elements. */
uint64_t cpu_sort_scratch(int64_t n);
/* Returns the bytes of scratch memory for all parts of a non-maximum suppression. */
uint64_t cpu_nms_scratch(int64_t lines, int64_t boxes, int64_t limit, int64_t parts);

#endif
