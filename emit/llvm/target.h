/* target.h - the machine for which code is written: LLVM's names for it, and what the emitters need to know.
 *
 * This header does not include LLVM's headers; neither do kernel.h and compile.h, so backends do not depend on LLVM. */
#ifndef EMIT_LLVM_TARGET_H
#define EMIT_LLVM_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/machine/function_set.h"

/* How the work of one kernel is divided (emit/kernel/execution.h has the code for each). */
typedef enum emit_execution {
  EMIT_RANGES, /* a call computes a range of the kernel's grid with loops and vectors; several threads call it for
                  different ranges */
  EMIT_BLOCKS  /* a launch starts many threads in blocks; a thread, a warp or a block computes one step of the grid */
} emit_execution;

typedef struct emit_target {
  const char *triple;   /* LLVM's triple, such as x86_64-pc-linux-gnu */
  const char *cpu;      /* LLVM's name of the CPU for which instructions are scheduled; never "native" */
  const char *least;    /* LLVM's name of the architecture's baseline CPU; on a GPU, or if cpus.c does not have the
                           architecture, it is `cpu` */
  const char *features; /* the features beyond `least` that code may use and a CPU must have to run it: "+avx2,+fma,..."
                           or "" */
  int lanes;            /* the f32 lanes of the widest vectors that kernels use: 1, 4, 8 or 16 */
  int vector_bits;      /* the value of LLVM's attribute "prefer-vector-width"; 0 means that there are no vectors */
  int registers;    /* the number of vector registers of that width, or of scalar registers if there are no vectors */
  int pointer_bits; /* 32 or 64 */
  int64_t l2_bytes; /* the size in bytes of the cache that each core has for itself: this machine's for the CPU
                       "native", a constant for every other CPU; 0 on a GPU */
  bool fma;         /* whether a fused multiply-add is an instruction; if not, LLVM would call libm */
  bool f64; /* whether f64 has instructions, both for arithmetic and for what `fma` and `rounding` state; if not,
               functions of the compiler's runtime library are called */
  int maximum_bits; /* the bits of the widest floats for which LLVM can write llvm.maximum and llvm.minimum, or 0 */
  bool compares_maximum; /* whether the instruction for the larger number is x < y ? y : x, other than llvm.maximum */
  bool f16;         /* whether conversions between f16 and f32 are instructions; if not, they are integer arithmetic */
  bool rounding;    /* whether floor, ceil, trunc and roundeven are instructions */
  bool scalef;      /* whether x 2^n is an instruction for vectors of all widths (AVX-512) */
  bool dots;        /* whether there is an instruction that adds four products of bytes to an s32, for vectors up to
                       vector_bits: VNNI's of u8 by s8, or sdot of s8 by s8 */
  bool signed_dots; /* whether the instruction of `dots` is sdot */
  bool dots_s16;    /* whether there are instructions that add two products of s16 to an s32, for vectors up to
                       vector_bits: VNNI's, or pmaddwd and an addition */
  bool unaligned;   /* for EMIT_RANGES: whether a load takes about the same time at any address, so that kernels of
                       emit_kernel (kernel.h) allow any address for operands */
  bool permutes;    /* whether there is an instruction that picks bytes from 128 bytes (AVX-512 VBMI) */
  bool libm;        /* whether functions of the C library may be called */
  bool absolute;    /* whether code has absolute addresses, which the linker fills in; if not, it may lie anywhere */
  int64_t stack;    /* the bytes that a kernel may take on the stack for rows and tiles; 0 means none */
  bool small;       /* whether small code and little memory matter more than time (emit_target_make_small) */
  emit_execution execution;
  bool mma; /* for EMIT_BLOCKS: whether a warp can multiply matrices (emit_mma), and a thread can begin copies to shared
               memory and go on (emit_copy_begin); NVIDIA's GPUs can do both from sm_80 on */
  bool emulated; /* for EMIT_BLOCKS: whether a CPU emulates the threads; each thread is then a call of the kernel */
  /* Functions that are there when the code runs, whose names are those of shared functions (function.h): kernels call
   * them instead of functions of their own module.  NULL if there are none. */
  const function_set *functions;
  bool tells_accesses; /* if `emulated`: whether threads tell which memory they access, so that races can be found
                          (rt_block_thread.access of runtime/block_abi.h) */
} emit_target;

/* Describes a CPU as a target.  If `triple` is NULL, it is that of this machine.  `cpu` is "native" (for this machine's
 * triple only), "generic", or a name of the table in cpus.c, such as x86-64-v3 or znver4; otherwise the error is
 * INVALID_ARGUMENT and lists the names.  Nothing in *out depends on this machine if the CPU is not native and the
 * triple is given.  `lanes` is 1, 4, 8 or 16, or 0 for the CPU's widest vectors; it may be more than the CPU has, since
 * LLVM splits vectors.  Strings live on the arena. */
STATUS_MUST_USE status emit_target_init(arena *a, const char *triple, const char *cpu, int lanes, emit_target *out);

/* Changes the features of a target as `list` says, such as "+avx512vnni,-avx512fp16" (emit_change_features), and the
 * abilities that follow from them.  `lanes` is as above. */
STATUS_MUST_USE status emit_target_change_features(arena *a, const char *list, int lanes, emit_target *t);

/* Changes a target so that code and memory become small: kernels keep no more on the stack than a microcontroller has,
 * loops are hardly unrolled, and no algorithm takes much memory for the sake of time. */
void emit_target_make_small(emit_target *t);

/* Returns `t` with the least CPU that can call code for `t`.  This is the target of code that runs before the CPU is
 * known. */
emit_target emit_target_baseline(const emit_target *t);

/* Describes an NVIDIA GPU (nvptx64-nvidia-cuda) as a target: `cpu` is sm_75, sm_80, sm_86, sm_87, sm_89, sm_90 or
 * sm_90a.  Code for one of these GPUs also runs on later ones, except that code for sm_90a runs on no other GPU. */
STATUS_MUST_USE status emit_target_nvptx(arena *a, const char *cpu, emit_target *out);

/* Describes this machine's CPU as one that emulates blocks of threads.  Kernels compute the same bits as on a GPU,
 * except that NaNs may differ in their signs and payloads, and the sums of emit_mma in their last bits if they are
 * floats.  A CPU without the instructions for that is UNSUPPORTED. */
STATUS_MUST_USE status emit_target_blocks_host(arena *a, emit_target *out);

/* Returns the features of `t` in the form that LLVM needs, such as "+avx2,...,-avx512f": the features of the
 * architecture's least CPU, then t->features, then, on x86-64, all other features of base/machine/x86_features.def,
 * which are disabled, since LLVM would enable those that listed features imply. */
const char *emit_target_llvm_features(arena *a, const emit_target *t);
/* LLVM's name for a function's attribute with these features. */
#define EMIT_TARGET_FEATURES "target-features"

/* Returns a text with the triple, CPU, features and lanes, such as "x86_64-pc-linux-gnu znver4 +avx2,... 16", with the
 * word "blocks" if code is for blocks of threads, and with the word "functions" if it may call emit_target.functions.
 * A program keeps it, since it states what a machine must have to run the code. */
const char *emit_target_text(arena *a, const emit_target *t);

/* Returns true if code for `t` may call functions for the target of which `text` is emit_target_text: the triple and
 * the number of lanes are the same, `t` has all features that the text lists, and t->small is false. */
bool emit_target_includes(const emit_target *t, const char *text);

/* Registers LLVM's code generators.  It may be called often and from several threads; calls after the first one in a
 * process do nothing. */
void emit_start_llvm(void);

#endif
