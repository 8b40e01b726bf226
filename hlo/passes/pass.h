/* pass.h - passes over a module, and the runner of pipelines.
 *
 * A pass is a function `status pass_x(hlo_module *m, pass_context *c, bool *changed)` in a file of hlo/passes/ or of a
 * folder below it.  The module that it gets satisfies hlo_verify, and so must the module that it leaves, except that
 * computations may be unused or in another order, since the runner then calls hlo_module_clean.  *changed is false at
 * the start, and the pass sets it if it changed anything.  Temporary memory comes from c->scratch, which is freed after
 * the pass; what is part of the module goes on m->arena.  A pass never prints, opens a file or reads the environment.
 */
#ifndef HLO_PASSES_PASS_H
#define HLO_PASSES_PASS_H

#include "hlo/analysis/activation.h"
#include "hlo/analysis/attention.h"
#include "hlo/ir/builder.h"
#include "hlo/ir/ir.h"

typedef struct pass_context pass_context;
typedef status hlo_pass_fn(hlo_module *m, pass_context *c, bool *changed);

/* One step of a pipeline: a pass, or a group of steps that is repeated until none changes anything. */
typedef struct hlo_pass {
  const char *name;
  hlo_pass_fn *run;             /* the function of the pass; NULL for a group */
  const struct hlo_pass *group; /* the steps of the group */
  uint32_t n_group;
  uint32_t max_rounds; /* the limit of repetitions of a group; 0 means 8. Reaching it is not an error */
  bool needed;         /* whether later steps rely on the pass, so that it cannot be skipped */
} hlo_pass;

/* An element of an array of steps, such as HLO_STEP(fold). */
#define HLO_STEP(pass) \
  { .name = #pass, .run = pass_##pass }
/* An element for a step that cannot be skipped, since the target cannot lower the module without it. */
#define HLO_NEEDED_STEP(pass) \
  { .name = #pass, .run = pass_##pass, .needed = true }
#define HLO_GROUP(text, steps) \
  { .name = (text), .group = (steps), .n_group = sizeof(steps) / sizeof *(steps) }

/* The registry, made from passes.def. */
#define PASS(name, ...) hlo_pass_fn pass_##name;
#include "hlo/passes/passes.def"
typedef struct hlo_pass_info {
  const char *name;
  uint32_t requires, forbids, sets, clears; /* sets of the properties in passes.def, as bits */
  const char *contract;
  hlo_pass_fn *run;
} hlo_pass_info;
/* Returns *n rows, ordered by name. */
const hlo_pass_info *hlo_pass_list(uint32_t *n);
/* Returns the row of that name, in which '-' counts as '_', or NULL if there is none. */
const hlo_pass_info *hlo_pass_find(const char *name, size_t length);
/* Converts a list of names such as "fold,cse" to steps, which are on the arena. */
STATUS_MUST_USE status hlo_pass_parse_list(arena *a, const char *names, const hlo_pass **steps, uint32_t *n);

/* The abilities of a target, for passes that prepare modules for it.  Each function may be NULL, which means that the
 * target lacks the ability. */
typedef struct hlo_target {
  const char *name;
  void *data;
  /* Returns true if the backend has a kernel for this composite, so that it is not inlined. */
  bool (*takes_composite)(void *data, const hlo_instr *composite);
  /* Returns true if `consumer` can run inside the thunk of `contraction` (a dot or convolution).  Operand number
   * `operand` of `consumer` is the value computed so far. */
  bool (*takes_epilogue)(void *data, const hlo_instr *contraction, const hlo_instr *consumer, uint32_t operand);
  /* Returns true if this dot or convolution in f32 or s32 is better computed on small integers with sums in s32.  Its
   * first operand then has the type `lhs`: u8 or s8, where its second one is a constant of s8, or s16 as the second
   * one, which is a constant, too. */
  bool (*takes_narrow_operands)(void *data, const hlo_instr *contraction, dtype lhs);
  /* The weights of this dot are small integers that are scaled (hlo_quantized_weights_of).  Returns true if the kernel
   * of the dot can scale them, so that they remain integers. */
  bool (*takes_quantized_weights)(void *data, const hlo_instr *dot);
  /* Returns true if an activation that is written as several operations can run inside the thunk of `contraction`.  The
   * result of `x` is the value computed so far. */
  bool (*takes_activation)(void *data, const hlo_instr *contraction, const hlo_instr *x, const hlo_activation *a);
  /* Returns true if the operation may be part of a fusion of that kind. */
  bool (*takes_fused)(void *data, hlo_fusion_kind kind, const hlo_instr *i);
  /* Returns true if the target has a kernel for this attention, including the views of its operands and its result that
   * are part of it (hlo_attention_views). */
  bool (*takes_attention)(void *data, const hlo_attention *a);
  /* Returns true if the kernel of `i` can write its only result as a part of another array
   * (hlo/analysis/in_place_update.h). */
  bool (*takes_in_place_update)(void *data, const hlo_instr *i);
  /* Sets the config, which is an algorithm with its parameters, of each instruction that has none and for which the
   * target has algorithms to choose from. */
  status (*assign_kernels)(void *data, hlo_module *m);
  bool channels_last;  /* whether convolutions run faster with channels last */
  bool canonical_dots; /* whether dots run faster if each operand can be passed to a library as a matrix */
  bool merges_dots;    /* whether one wide dot runs faster than several of the same operand, and slices are free */
  bool merges_moves;   /* whether one kernel that moves several parts of an array is faster than several kernels */
  bool sums_in_f32;    /* whether products of f32 run faster than products of s32 */
  bool lookup_tables;  /* whether looking up a byte in a table is no slower than a few arithmetic operations */
} hlo_target;

/* Statistics of one pass, summed over all its calls in this run. */
typedef struct pass_record {
  const char *name;
  uint32_t runs, changes; /* the number of calls, and of those that changed something */
  uint64_t nanoseconds;
  int64_t instructions; /* the number of instructions added; negative if some were removed */
} pass_record;

/* A number that a pass reports, summed over its calls: ("row_fusion", "fusions", 12). */
typedef struct pass_note {
  const char *pass, *what;
  int64_t value;
} pass_note;

struct pass_context {
  /* Set by the caller; zero is a valid value of every member except `arena`. */
  arena *arena;             /* the arena of records and notes, which must outlive the run */
  hlo_eval_fn *eval;        /* the reference evaluator, for constant folding; NULL means that nothing is folded */
  int64_t fold_bytes;       /* the most bytes of a folded result, with an exception in fold.c; 0 means 2^20 */
  const hlo_target *target; /* NULL means a target without special abilities */
  const char *skip;         /* names of passes to leave out, such as "fold,cse"; NULL means none */
  bool any_order;           /* if true, the order of the steps is not checked against passes.def */
  bool verify;              /* whether to verify the module before the first and after the last pass */
  /* If true, it is an error if a pass changes the module, as a hash of the module shows, and does not set *changed; and
   * the module is verified before the first pass and after each pass. */
  bool check_changed;
  /* Called with the module before the first pass ("000-input.hlo"), after each pass that changed it ("007-fold.hlo")
   * and at the end ("042-final.hlo"). */
  status (*dump)(void *data, const char *file, const hlo_module *m);
  void *dump_data;

  /* Set by the runner. */
  /* The temporary memory of the running pass.  It counts against the module's budget; long loops call
   * budget_check(arena_budget(scratch)). */
  arena *scratch;
  const char *pass;
  pass_record *records;
  uint32_t n_records, cap_records;
  pass_note *notes;
  uint32_t n_notes, cap_notes;
  uint32_t n_dumps;
};

/* Adds `value` to the number that the running pass reports as `what`, a constant text. */
void hlo_pass_note(pass_context *c, const char *what, int64_t value);
/* Returns a builder before `at`, or at the end if that is NULL, which folds constants as the context says. */
hlo_builder hlo_pass_builder(pass_context *c, hlo_computation *computation, hlo_instr *at);

/* Runs the steps in order, except those in c->skip (a group is skipped with all its steps).  Returns STATUS_INTERNAL,
 * before anything runs, if the order violates passes.def; for this, a skipped step counts as if it ran.  Returns
 * STATUS_INVALID_ARGUMENT if c->skip names a step that is needed.  Another failure names the pass, and the module must
 * not be used any more: STATUS_INTERNAL if a pass left a broken module, STATUS_RESOURCE if it ran out of memory. */
STATUS_MUST_USE status hlo_run_passes(hlo_module *m, const hlo_pass *steps, uint32_t n, pass_context *c);

#endif
