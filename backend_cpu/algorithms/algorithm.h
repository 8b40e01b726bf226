/* algorithm.h - the algorithms that compute a contraction, and their configs.
 *
 * A contraction is a dot, a convolution, or an output fusion around one (its epilogue).  An algorithm is one way to
 * compute contractions: a library's call, emit's plain loops, or a kernel of ours with packed weights.  For a problem
 * it lists its configs, each with an estimate of its time.  The autotuner times configs (tune.h); where nothing is
 * timed, the config with the least estimate is taken.  A config that is made ready for code generation is a plan.  A
 * result must not depend on the number of threads; configs may round differently from each other.
 *
 * To add an algorithm: a cpu_algorithm in a file of its own, and a row in cpu_algorithms (algorithm.c). */
#ifndef BACKEND_CPU_ALGORITHMS_ALGORITHM_H
#define BACKEND_CPU_ALGORITHMS_ALGORITHM_H

#include "backend_cpu/algorithms/contraction.h"
#include "backend_cpu/kernels/kernels.h"

enum { CPU_MAX_CONFIGS_OF_ONE = 24, CPU_MAX_CONFIGS = 64, CPU_MAX_PHASES = 4 };

/* What all problems of a module have in common. */
typedef struct cpu_problem_options {
  const emit_target *target;
  uint32_t threads;     /* that runs will use; at least 1 */
  rt_numerics numerics; /* `deterministic` is without meaning here */
} cpu_problem_options;

/* What is to be computed. */
typedef struct cpu_problem {
  const hlo_instr *instr;       /* the dot or convolution, or the output fusion around it */
  const hlo_instr *contraction; /* the dot or convolution: `instr`, or in its body */
  int32_t lhs, weights;         /* the operands of `instr` that are its two; -1: not an operand as it stands */
  bool constant_weights;        /* they are a constant: can be packed */
  double multiplications;
  cpu_problem_options options;
} cpu_problem;

typedef struct cpu_algorithm cpu_algorithm;

/* An algorithm with its parameters. */
typedef struct cpu_config {
  const cpu_algorithm *algorithm; /* set by cpu_list_configs; NULL: a kernel of ours to which there is no alternative */
  char name[24];   /* letters, digits and dots, unique among the algorithm's configs: "p4", "8x48"; "" if there is only
                      one */
  int64_t v[6];    /* the algorithm's parameters; only the algorithm reads them */
  double estimate; /* expected nanoseconds: decides what is timed first, and what is taken where nothing is timed */
  double bytes; /* of packed weights and scratch memory, where these may be large; 0: not more than the plain weights */
  bool idle;    /* leaves threads without work: wins only where it is clearly faster */
} cpu_config;

/* A kernel of ours: phases that run one after the other, each divided over its own grid.  All phases have the same
 * buffers: the operands of the instruction (with packed weights in place of plain ones), its results, and scratch
 * memory if it needs some. */
typedef struct cpu_kernel_plan {
  uint32_t n_phases;
  emit_write_fn *write;
  const void *config; /* plain bytes that `write` and `pack` get; equal bytes, equal kernel (no padding, no pointers) */
  size_t config_bytes;
  uint64_t packed_bytes; /* 0: weights as they are */
  /* From the weights' literal, the constant operand number problem.weights. */
  status (*pack)(const void *config, const literal *weights, void *packed);
  /* Bytes that say all that packing depends on beside the weights, so that programs for other shapes share what is
   * packed. NULL: the whole config. */
  const void *packing;
  size_t packing_bytes;
  uint64_t scratch_bytes;
  cpu_call_of call; /* of each phase */
} cpu_kernel_plan;

/* A config that is made ready: exactly one of `library` and `kernel` is not NULL. */
typedef struct cpu_plan {
  cpu_config config;
  int32_t weights; /* cpu_problem.weights: the operand that is packed where kernel->packed_bytes is not 0 */
  uint64_t scratch_bytes;
  cpu_library_plan *library;
  cpu_kernel_plan *kernel;
  const char *why; /* the reason for the choice, for people; the same whenever the choice is made again */
} cpu_plan;

struct cpu_algorithm {
  const char *name;
  /* Writes at most `room` configs for the problem and returns their number; 0: it cannot compute it.  Must be quick:
   * nothing is built here. */
  uint32_t (*list_configs)(arena *a, const cpu_problem *p, uint32_t room, cpu_config *out);
  /* Fills `library` or `kernel`, and scratch_bytes.  UNSUPPORTED: it cannot after all, and the next best config is
   * taken. */
  status (*build)(arena *a, const cpu_problem *p, const cpu_config *v, cpu_plan *out);
  /* Finds a config by its name that list_configs may have left out; returns false if there is none.  NULL: list_configs
   * lists all. */
  bool (*find_config)(const cpu_problem *p, const char *name, cpu_config *out);
};

/* In this order where estimates are equal. */
extern const cpu_algorithm *const cpu_algorithms[];
extern const uint32_t cpu_n_algorithms;

extern const cpu_algorithm cpu_library_algorithm, cpu_reduced_precision_algorithm, cpu_gemm_algorithm,
    cpu_kernel_algorithm, cpu_winograd_algorithm, cpu_depthwise_algorithm;

/* Returns false if `i` is not a contraction. */
bool cpu_problem_of(const hlo_instr *i, const cpu_problem_options *options, cpu_problem *out);

/* Estimated wall time of `nanoseconds` of work on up to `threads` threads; fewer where starting them costs more than
 * they save. */
double cpu_shared(double nanoseconds, uint32_t threads);

/* Lists the configs of all algorithms on the arena, the least estimate first. */
uint32_t cpu_list_configs(arena *a, const cpu_problem *p, cpu_config **out);

/* Finds the config of that name, listed or not; returns false if the problem has none. */
bool cpu_find_config(arena *a, const cpu_problem *p, const char *name, cpu_config *out);

/* "library:p4": its name in an instruction's config, in the tuning log and in reports. */
const char *cpu_config_name(arena *a, const cpu_config *c);

STATUS_MUST_USE status cpu_plan_build(arena *a, const cpu_problem *p, const cpu_config *config, cpu_plan **out);

/* Builds the config with the least estimate that can be built.  *out is NULL if there is none. */
STATUS_MUST_USE status cpu_best_estimate(arena *a, const cpu_problem *p, cpu_plan **out);

#endif
