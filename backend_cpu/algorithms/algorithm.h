/* algorithm.h - the algorithms that compute a contraction, and their configs.
 *
 * A contraction here is a dot, a convolution, or an output fusion of one with its epilogue.  An algorithm is one way to
 * compute contractions: a library call, the plain loops of emit/, or a generated kernel with packed weights.  For a
 * problem it lists its configs, each with an estimate of its time.  The autotuner (autotune/autotune.h) times configs;
 * where nothing is timed, the config with the least estimate is taken.  A plan is a config that is ready for code
 * generation.  The result of a config must not depend on the number of threads, but two configs may round differently.
 *
 * To add an algorithm, define a cpu_algorithm in a file of its own and add a row to algorithms.def. */
#ifndef BACKEND_CPU_ALGORITHMS_ALGORITHM_H
#define BACKEND_CPU_ALGORITHMS_ALGORITHM_H

#include "backend_cpu/algorithms/contraction.h"
#include "lower/kernels/kernels.h"

enum { CPU_MAX_CONFIGS_OF_ONE = 24 }; /* the most configs that one algorithm lists for a problem */

/* The options that all problems of a module have in common. */
typedef struct cpu_problem_options {
  const emit_target *target;
  uint32_t threads;     /* the number of threads for which work is divided (lower_shares_of), at least 1 */
  rt_numerics numerics; /* the member `deterministic` is not used here */
  bool own_kernels;     /* as in rt_compile_options: no library is called */
  /* The bytes of all constants of the module: what a run reads, and so what the next run finds in caches or not. */
  uint64_t constant_bytes;
} cpu_problem_options;

/* One contraction that is to be computed. */
typedef struct cpu_problem {
  const hlo_instr *instr;       /* the dot or convolution, or the output fusion around it */
  const hlo_instr *contraction; /* the dot or convolution: `instr` itself, or an instruction in its body */
  /* the numbers of the operands of `instr` that the contraction reads as its first operand and as its second one (the
   * weights); -1 if the fusion computes that operand of the contraction itself, or if it reads the weights elsewhere,
   * too */
  int32_t lhs, weights;
  bool constant_weights;  /* whether the weights are a constant, which can be packed while compiling */
  bool takes_sizes;       /* whether the kernel would take sizes as arguments (emit_takes_sizes) */
  double multiplications; /* the number of multiplications, for likely sizes of the symbols */
  cpu_problem_options options;
} cpu_problem;

typedef struct cpu_algorithm cpu_algorithm;

/* An algorithm with its parameters. */
typedef struct cpu_config {
  /* set by cpu_list_configs and cpu_find_config; NULL for a kernel without alternatives, such as attention */
  const cpu_algorithm *algorithm;
  /* letters, digits, dots and hyphens, unique among the algorithm's configs, such as "p4" or "8x48"; "" if the
   * algorithm has only one config */
  char name[24];
  int64_t v[6];    /* the values of the algorithm's parameters, which only the algorithm interprets */
  double estimate; /* expected nanoseconds; decides what is timed first, and what is taken where nothing is timed */
  /* the bytes of packed weights and scratch memory, for an algorithm that may need much more memory than the plain
   * weights take; otherwise 0 */
  double bytes;
  double compile_nanoseconds; /* for a config whose code is longer than others': in place of the algorithm's; otherwise
                                 0 */
  bool idle; /* whether threads are left without work; the autotuner takes such a config only if it is clearly faster */
} cpu_config;

/* A plan that is a generated kernel.  Its phases run one after the other, each divided over its own grid.  All phases
 * have the same buffers: the operands of the instruction (with packed weights in place of plain ones), its results, and
 * scratch memory if it needs some. */
typedef struct cpu_kernel_plan {
  uint32_t n_phases;
  emit_write_fn *write;
  /* the argument of `write`: plain bytes without padding or pointers, so that equal bytes and equal instructions mean
   * an equal kernel */
  const void *config;
  size_t config_bytes;
  uint64_t packed_bytes; /* 0 if the weights are not packed */
  /* Packs `weights`, the constant that is operand number cpu_problem.weights, into packed_bytes bytes at `packed`.
   * The constant may be in a model file, at an address of any alignment. */
  status (*pack)(const void *packing, const literal *weights, void *packed);
  /* The first argument of `pack`: the bytes that packing depends on besides the weights.  Programs for other shapes
   * with equal bytes share the packed weights. */
  const void *packing;
  size_t packing_bytes;
  dim scratch_bytes;      /* an expression of the module's sizes */
  lower_kernel_call call; /* how each phase is called */
} cpu_kernel_plan;

/* A config that is ready for code generation.  Exactly one of `library` and `kernel` is not NULL. */
typedef struct cpu_plan {
  cpu_config config;
  int32_t weights; /* cpu_problem.weights; this operand is packed if kernel->packed_bytes is not 0 */
  dim scratch_bytes;
  cpu_library_plan *library;
  cpu_kernel_plan *kernel;
  const char *why; /* why this config was chosen, for reports; the same text if the choice is made again */
} cpu_plan;

struct cpu_algorithm {
  const char *name;
  /* True if the algorithm has configs for problems whose kernels take sizes as arguments.  Otherwise the functions
   * below are not called for such problems. */
  bool takes_sizes;
  /* About how long it takes to make the code of a config, measured on one thread of a Zen 4.  A library writes its code
   * while the plan is built; kernels are compiled later, on all threads. */
  double library_nanoseconds, compile_nanoseconds;
  /* About how long it takes to compile a kernel that takes sizes as arguments, and the functions that such kernels
   * share in a module (emit/llvm/function.h). */
  double sized_nanoseconds, shared_nanoseconds;
  /* Writes at most `room` configs for the problem and returns their number, which is 0 if the algorithm cannot compute
   * the problem.  This must be quick, so nothing is built here. */
  uint32_t (*list_configs)(arena *a, const cpu_problem *p, uint32_t room, cpu_config *out);
  /* Sets `library` or `kernel`, and scratch_bytes, for config v.  Fails with UNSUPPORTED if the config turns out not to
   * be possible; then the config with the next best estimate is taken. */
  status (*build)(arena *a, const cpu_problem *p, const cpu_config *v, cpu_plan *out);
  /* Fails with UNSUPPORTED if the plan must not be used with the problem's weights.  A call may take long, so several
   * threads may check different plans at once.  NULL means that it never fails. */
  status (*check)(arena *a, const cpu_problem *p, const cpu_plan *plan);
  /* Finds a config by its name, also one that list_configs leaves out.  Returns false if there is none.  NULL means
   * that list_configs lists all configs. */
  bool (*find_config)(const cpu_problem *p, const char *name, cpu_config *out);
};

/* The algorithms, made from algorithms.def. */
#define ALGORITHM(name) extern const cpu_algorithm cpu_##name##_algorithm;
#include "backend_cpu/algorithms/algorithms.def"

/* Describes the contraction `i`.  Returns false if `i` is not a contraction. */
bool cpu_problem_of(const hlo_instr *i, const cpu_problem_options *options, cpu_problem *out);

/* Returns the estimated nanoseconds of an f32 multiply-add in code with vectors of `lanes` lanes that keeps the
 * target's vector units busy. */
double cpu_multiply_add_nanoseconds(const emit_target *t, int64_t lanes);

/* About how long a call of a kernel takes, besides its work. */
#define CPU_CALL_NANOSECONDS 300.0
/* Returns the estimated wall time of `nanoseconds` of work on up to `threads` threads.  Fewer threads are assumed where
 * starting them costs more than they save. */
double cpu_time_on_threads(double nanoseconds, uint32_t threads);

/* Lists the configs of all algorithms on the arena, the least estimate first.  Returns their number. */
uint32_t cpu_list_configs(arena *a, const cpu_problem *p, cpu_config **out);

/* Returns the algorithm of the config whose full name (cpu_config_name) is `name`; NULL if there is none. */
const cpu_algorithm *cpu_algorithm_of(const char *name);

/* Finds the problem's config whose full name is `name`, even if cpu_list_configs leaves it out.  Returns false if there
 * is none. */
bool cpu_find_config(arena *a, const cpu_problem *p, const char *name, cpu_config *out);

/* Returns the config's full name, such as "library:p4", as it stands in an instruction's config, in the tuning log and
 * in reports. */
const char *cpu_config_name(arena *a, const cpu_config *c);

/* Builds a plan, which may be used only if cpu_plan_check succeeds. */
STATUS_MUST_USE status cpu_plan_build(arena *a, const cpu_problem *p, const cpu_config *config, cpu_plan **out);
STATUS_MUST_USE status cpu_plan_check(arena *a, const cpu_problem *p, const cpu_plan *plan);

/* Builds and checks the config with the least estimate that can be used.  Sets *out to NULL if there is none. */
STATUS_MUST_USE status cpu_best_estimate(arena *a, const cpu_problem *p, cpu_plan **out);

#endif
