/* target.h - the machine that code is written for: LLVM's names for it, and what the emitters must know.
 *
 * Free of LLVM's headers, as are kernel.h and compile.h: whoever drives the emitter needs nothing else. */
#ifndef EMIT_LLVM_TARGET_H
#define EMIT_LLVM_TARGET_H

#include <stdbool.h>

#include "base/arena.h"

/* How the work of one kernel is shared out (emit/kernel/execution.h has the code for each). */
typedef enum emit_execution {
  EMIT_RANGES, /* a call computes a range of the kernel's grid, in loops and vectors; threads call it with other ranges
                */
  EMIT_BLOCKS  /* a launch starts many threads in blocks, each of which computes single elements of the grid */
} emit_execution;

typedef struct emit_target {
  const char *triple;   /* x86_64-pc-linux-gnu */
  const char *cpu;      /* LLVM's name of the one that code is scheduled for, never "native" */
  const char *least;    /* LLVM's name of the least CPU of the architecture; on a GPU, `cpu` */
  const char *features; /* what code may use beyond `least`, and a CPU must have to run it: "+avx2,+fma,..." or "" */
  int lanes;            /* f32 lanes of the widest vectors that kernels use: 1, 4, 8 or 16 */
  int vector_bits;      /* for "prefer-vector-width"; 0 means none */
  int registers;        /* for vectors of that width, or for scalars where there are none */
  bool fma;             /* a fused multiply-add is an instruction; otherwise a call of libm */
  bool f16;             /* f16 <-> f32 are instructions; otherwise integer arithmetic */
  bool rounding;        /* floor, ceil, trunc, roundeven are instructions */
  bool scalef;          /* x 2^n is an instruction, for vectors of all widths (AVX-512) */
  bool dots;     /* sums of four products of u8 and s8, added to an s32, are an instruction (VNNI), for vectors up to
                    vector_bits */
  bool permutes; /* bytes are picked from 128 by an instruction (AVX-512 VBMI) */
  bool libm;     /* functions of the C library may be called */
  bool stack;    /* a kernel may keep a row of some kilobytes in its own stack frame */
  emit_execution execution;
} emit_target;

/* `triple` NULL is this machine's.  `cpu`: "native" (this machine's triple only), "generic", or a name of the
 * table in target.c (x86-64, x86-64-v3, znver4, ...); an unknown one is INVALID_ARGUMENT and the message
 * lists them.  `lanes` 0 takes the CPU's widest vectors, 1, 4, 8, 16 override that (wider than the CPU has is
 * legal: LLVM splits).  Strings live on the arena. */
STATUS_MUST_USE status emit_target_init(arena *a, const char *triple, const char *cpu, int lanes, emit_target *out);

/* nvptx64-nvidia-cuda; `cpu` as sm_80. */
STATUS_MUST_USE status emit_target_nvptx(arena *a, const char *cpu, emit_target *out);

/* `features` as LLVM wants them: what others imply and `features` does not have is taken away again,
 * "+avx2,...,-avx512f". */
const char *emit_target_llvm_features(arena *a, const emit_target *t);

/* What a loader must know, and what code depends on: "x86_64-pc-linux-gnu znver4 +avx2,... 16", which is triple, CPU,
 * features and lanes. */
const char *emit_target_text(arena *a, const emit_target *t);

/* Registers LLVM's code generators, once in a process; cheap after that. */
void emit_start_llvm(void);

#endif
