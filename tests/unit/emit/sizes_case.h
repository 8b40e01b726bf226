/* sizes_case.h - runs kernels that take sizes as arguments.  Each is written once for a processor and run at many
 * sizes, in ranges of the grid of random size, and compared with the reference evaluator on the module that is bound
 * to these sizes (hlo/ir/bind.h); unless a case has a tolerance, the numbers must be equal.  Arrays lie between
 * protected pages, and what is beside a result must stay as it is. */
#ifndef TESTS_UNIT_EMIT_SIZES_CASE_H
#define TESTS_UNIT_EMIT_SIZES_CASE_H

#include "emit/kernel/compile.h"
#include "tests/unit/emit/kernel_test.h"

/* The memory of one test. */
extern arena *sizes_arena;
void sizes_setup(void);
void sizes_teardown(void);
/* The same for tests that have kernel_cases (kernel_case.h) as well. */
void sizes_setup_with_kernels(void);
void sizes_teardown_with_kernels(void);

/* How to write a kernel that emit_kernel does not write.  It may be several kernels that run one after the other. */
enum { SIZES_PHASES = 4 };
typedef struct sizes_way {
  emit_write_fn *write;
  const void *config;
  uint32_t phases;
  dim scratch_bytes;
  dim counters; /* how many there are behind the scratch memory; they must be 0 again when the kernels are done */
  uint64_t packed_bytes; /* if this is not 0, the second operand is passed as `pack` writes it */
  void (*pack)(const void *packing, const void *weights, void *packed);
  const void *packing;
} sizes_way;

typedef struct sizes_case {
  const hlo_computation *entry; /* the computation; its parameters' dimensions tell the symbols */
  const char *elements;         /* if not NULL, the last operand is the instruction `sizes` with these elements */
  int64_t most;                 /* the largest product of sizes that is tried */
  double tolerance;             /* the largest difference, as a part of the largest number of a result */
  emit_write_fn *write;         /* if not NULL, it writes the kernel, without a config, in place of emit_kernel */
  hlo_fusion_kind kind;         /* of the fusion that the entry becomes */
  /* Sets how the kernel of k->i is written for a target; NULL: by emit_kernel. */
  void (*prepare)(const struct sizes_case *k, arena *a, const emit_target *t, sizes_way *way);
  bool packs;         /* for `prepare`: whether the second operand is to be packed */
  uint32_t infinite;  /* the number of an operand all of whose elements are infinite; 0: there is none */
  int32_t shares;     /* the operand whose buffer has the first result, or -1 */
  const hlo_instr *i; /* the fusion with the entry's body, or the only instruction of the entry */
  sizes_way way;
  emit_kernel_info info[SIZES_PHASES];
  uint32_t runs; /* how often it was compared */
} sizes_case;

typedef struct sizes_cases {
  sizes_case *items;
  uint32_t n, cap;
} sizes_cases;

/* Adds the entry as a fusion.  If it is a single instruction whose operands are the parameters in their
 * order, adds this instruction, too. */
sizes_case *sizes_add(sizes_cases *c, const hlo_computation *entry);
/* Does the same for an entry that is given as text, such as "(%x: f32[n,4]) { ... return %y }". */
sizes_case *sizes_add_text(sizes_cases *c, const char *text);

/* Fails the test unless all kernels compute what the reference does, at each of `rounds` random choices of
 * sizes for each of the first `machines` of emit_machines.  Sizes that a module does not allow are
 * skipped. */
void sizes_check_all(sizes_cases *c, int rounds, size_t machines);
/* Does that for the n entries that are given as text, on all machines and on blocks of threads.  Each entry gets the
 * tolerance, whose reason stands at the test. */
void sizes_check_texts(const char *const *texts, size_t n, double tolerance, int rounds);
#define SIZES_CHECK_TEXTS(texts, tolerance, rounds) \
  sizes_check_texts(texts, sizeof(texts) / sizeof *(texts), tolerance, rounds)
/* Does the same on emulated blocks of threads only. */
void sizes_check_blocks(sizes_cases *c, int rounds);

#endif
