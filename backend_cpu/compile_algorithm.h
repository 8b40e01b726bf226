/* compile_algorithm.h - the ways in which a contraction can be computed.
 *
 * A contraction is a dot, a convolution, or an output fusion around one (its epilogue).  A candidate is a way of computing
 * contractions: a library's call, emit's plain loops, a kernel of our own with weights packed as it wants them.  It offers
 * variants of itself for a problem, each with a guess of its time; who wins is measured (compile_tune.h) or, where nothing is
 * measured, the least guess.  A result must not depend on threads; variants may round differently from each other.
 *
 * To add one: a cpu_algorithm in a file of its own, a row in cpu_algorithms (compile_algorithm.c).  The README says more. */
#ifndef BACKEND_CPU_COMPILE_ALGORITHM_H
#define BACKEND_CPU_COMPILE_ALGORITHM_H

#include "backend_cpu/compile_contraction.h"
#include "backend_cpu/compile_kernels.h"

enum { CPU_MAX_VARIANTS = 24, CPU_MAX_OFFERS = 64, CPU_MAX_PHASES = 4 };

/* What is to be computed. */
typedef struct cpu_problem {
  const hlo_instr *instr;       /* the dot or convolution, or the output fusion around it */
  const hlo_instr *contraction; /* the dot or convolution: `instr`, or in its body */
  int32_t lhs, weights;         /* the operands of `instr` that are its two; -1: not an operand as it stands */
  bool constant_weights;        /* they are a constant: can be packed */
  double multiplications;
  uint32_t threads; /* that runs will use */
  const emit_target *target;
  bool exact; /* asked for: no way that rounds differently from a sum of products */
  dtype narrow; /* what f32 operands may be rounded to if that is measured to be faster; DTYPE_INVALID: nothing */
} cpu_problem;

typedef struct cpu_variant {
  char name[24]; /* letters, digits and dots, unlike that of any other variant: "p4", "8x48"; "" if there is only one */
  int64_t v[6];  /* as the candidate likes */
  double guess;  /* nanoseconds that it will take: what is timed first, and what is taken where nothing is timed */
  double bytes;  /* of packed weights and scratch memory, where these may be many; 0: no more than the plain weights */
  bool idle;     /* leaves threads without work: such wins only where it is clearly faster */
} cpu_variant;

/* A kernel of our own, as phases that run one after the other, each divided over its own grid.  All have the same buffers:
 * the operands of the instruction (packed weights instead of those that it has), its results, scratch memory if there is. */
typedef struct cpu_own {
  uint32_t n_phases;
  emit_write_fn *write;
  const void *config; /* plain bytes that `write` and `pack` get; equal bytes, equal kernel (no padding, no pointers) */
  size_t config_bytes;
  uint64_t packed_bytes; /* 0: weights as they are */
  /* From the weights' literal, the constant operand number problem.weights. */
  status (*pack)(const void *config, const literal *weights, void *packed);
  /* Bytes that say all that packing depends on beside the weights, so that programs for other shapes share what is packed.
   * NULL: the whole config. */
  const void *packing;
  size_t packing_bytes;
  uint64_t scratch_bytes;
  cpu_call_of call; /* of each phase */
} cpu_own;

typedef struct cpu_algorithm cpu_algorithm;

/* A variant made ready: exactly one of plan and own is not NULL. */
typedef struct cpu_way {
  const cpu_algorithm *algorithm;
  cpu_variant variant;
  uint64_t scratch_bytes;
  cpu_plan *plan; /* a library's call */
  cpu_own *own;
  const char *why; /* it was chosen, in words; the same whenever the choice is found again */
} cpu_way;

struct cpu_algorithm {
  const char *name;
  /* Writes its variants for the problem, at most `room`, and gives their number; 0: it cannot.  Quick: nothing is made. */
  uint32_t (*offer)(arena *a, const cpu_problem *p, uint32_t room, cpu_variant *out);
  /* Fills plan or own, and scratch_bytes.  UNSUPPORTED: after all it cannot, and the next best is taken. */
  status (*build)(arena *a, const cpu_problem *p, const cpu_variant *v, cpu_way *out);
  /* The variant of that name, which another problem was offered; false: there is no such.  NULL: it offers all that it has. */
  bool (*named)(const cpu_problem *p, const char *name, cpu_variant *out);
};

/* In this order where guesses are equal. */
extern const cpu_algorithm *const cpu_algorithms[];
extern const uint32_t cpu_n_algorithms;

extern const cpu_algorithm cpu_library_algorithm, cpu_reduced_precision_algorithm, cpu_gemm_algorithm, cpu_kernel_algorithm, cpu_winograd_algorithm,
    cpu_depthwise_algorithm;

/* False: not a contraction. */
bool cpu_problem_of(const hlo_instr *i, uint32_t threads, const emit_target *target, cpu_problem *out);

/* What so many nanoseconds of work take when as many threads share it as that pays for: for guesses. */
double cpu_shared(double nanoseconds, uint32_t threads);

typedef struct cpu_offer {
  const cpu_algorithm *algorithm;
  cpu_variant variant;
} cpu_offer;

/* All variants of all candidates, on the arena, the least guess first. */
uint32_t cpu_offers(arena *a, const cpu_problem *p, cpu_offer **out);

/* "library:p4": what the log and the report call it. */
const char *cpu_offer_name(arena *a, const cpu_offer *o);

STATUS_MUST_USE status cpu_offer_build(arena *a, const cpu_problem *p, const cpu_offer *o, cpu_way **out);

/* The first offer that can be built, which is the best guess.  *out NULL: there is none. */
STATUS_MUST_USE status cpu_best_guess(arena *a, const cpu_problem *p, cpu_way **out);

/* Who says which way an instruction is computed.  choose may leave *out NULL: nobody can compute it. */
typedef struct cpu_chooser {
  status (*choose)(void *data, arena *a, const cpu_problem *p, cpu_way **out);
  void *data;
} cpu_chooser;

#endif
