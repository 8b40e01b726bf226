/* kinds.h - the thunk kinds of the cpu target; backend_cpu/README says how to add one. */
#ifndef BACKEND_CPU_RUNTIME_KINDS_H
#define BACKEND_CPU_RUNTIME_KINDS_H

#include "backend_cpu/runtime/order.h"
#include "runtime/program/target.h"

/* A compiled kernel.  Its config has the number of the code object, the symbol, and the grain: the least number of grid
 * steps that a thread takes at once.  Its sizes are the grid and then the kernel's arguments, and its buffers the
 * kernel's parameters. */
typedef struct cpu_kernel_config {
  int64_t code;
  const char *symbol;
  int64_t grain;
} cpu_kernel_config;
STATUS_MUST_USE status cpu_kernel_config_read(const rt_thunk *t, uint32_t n_code, cpu_kernel_config *out);
status cpu_kernel_load(rt_thunk *t, rt_loader *l);
status cpu_kernel_bind(rt_thunk *t, arena *a);
status cpu_kernel_run(const rt_thunk *t, rt_run *r);

/* A sort.  Its buffers are n operands, n results and scratch memory.  Its config has the sorted dimension, whether the
 * order is descending, and the largest number of parts that the lines along that dimension are divided into.  It also
 * has how many of the first elements are wanted, and which operand is an iota of positions along the dimension, so that
 * it need not be read (-1 if there is none). */
status cpu_sort_load(rt_thunk *t, rt_loader *l);
status cpu_sort_bind(rt_thunk *t, arena *a);
status cpu_sort_run(const rt_thunk *t, rt_run *r);

/* A non-maximum suppression.  Its buffers are its operands, its results and scratch memory.  Its config has the largest
 * number of parts that the lines (batches times classes) are divided into. */
status cpu_nms_load(rt_thunk *t, rt_loader *l);
status cpu_nms_bind(rt_thunk *t, arena *a);
status cpu_nms_run(const rt_thunk *t, rt_run *r);

/* Library calls (contraction.h).  Their config has the cpu_contraction, the library's name and the format of packed
 * weights. */
status cpu_convolution_load(rt_thunk *t, rt_loader *l);
status cpu_dot_load(rt_thunk *t, rt_loader *l);
status cpu_contraction_run(const rt_thunk *t, rt_run *r);

/* The scratch memory of sorts and suppressions.  A sort needs CPU_SORT_PART_BYTES for each part, and CPU_SORT_BYTES for
 * each element of a line in each part.  A non-maximum suppression needs what base/nms.h says for each part,
 * CPU_NMS_LINE_BYTES for each line, and CPU_NMS_BYTES. */
enum {
  CPU_SORT_PART_BYTES = 64,
  CPU_SORT_BYTES = CPU_ORDER_BYTES + sizeof(uint64_t),
  CPU_NMS_LINE_BYTES = sizeof(int64_t),
  CPU_NMS_BYTES = 64
};
/* Returns the number of parts into which lines are divided: at least 1, and at most `most` and the number of lines. */
static inline int64_t cpu_parts(int64_t lines, int64_t most) { return lines < 1 ? 1 : lines < most ? lines : most; }

#endif
