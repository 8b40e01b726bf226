/* special.h - kernels of what a target may also compute by functions of its runtime: sorts, non-maximum suppression,
 * the Mersenne twister.
 *
 * They are for programs that consist of kernels only (own kernels).  Their results are, bit for bit, those of the
 * reference evaluator.  They are never part of a fusion, so emit_supports returns false for them, and emit_kernel does
 * not write them. */
#ifndef EMIT_KERNEL_SPECIAL_H
#define EMIT_KERNEL_SPECIAL_H

#include "emit/kernel/compile.h"

/* Returns true if one of the kernel writers below (emit_write_fn) is for this instruction. */
bool emit_is_special(const hlo_instr *i);
/* Returns true if that writer can write a kernel for the instruction.  Otherwise *why is set as by emit_supports. */
bool emit_supports_special(const hlo_instr *i, const char **why);

/* The config of a sort. */
typedef struct emit_sort {
  int64_t parts; /* the grid: lines are divided into at most this many parts, each with scratch memory of its own */
  int64_t front; /* how many elements at the front of each sorted line are wanted, the others being undefined; INT64_MAX
                    means all */
  int64_t iota;  /* the operand that is an iota of positions along the line, which is not read; -1 if there is none */
} emit_sort;
/* Writes a stable sort by operand 0.  -0 equals 0, and NaN is above all numbers.  The config is an emit_sort. */
emit_write_fn emit_sort_kernel;
/* Returns the bytes of scratch memory that the kernel of a sort needs. */
dim emit_sort_scratch(const hlo_instr *i, const emit_sort *s);

/* The config of a non-maximum suppression, which has EMIT_NMS_PHASES kernels. */
typedef struct emit_nms {
  int64_t parts; /* as in emit_sort */
} emit_nms;
enum { EMIT_NMS_PHASES = 2 };
/* Writes the kernel of a phase: phase 0 chooses boxes for each batch and class, phase 1 joins the lists of chosen boxes
 * into one.  The config is an emit_nms. */
emit_write_fn emit_nms_kernel;
/* Returns the bytes of scratch memory that both kernels share. */
dim emit_nms_scratch(const hlo_instr *i, const emit_nms *s);

/* Writes a kernel that generates the words of the Mersenne twister (base/random.h).  It has no config. */
emit_write_fn emit_twister_kernel;
/* Returns the bytes of scratch memory that it needs. */
int64_t emit_twister_scratch(void);

#endif
