/* target.h - what a backend is.  Two interfaces, so that a process that only runs programs needs no compiler:
 *
 *   rt_target    the kinds of thunk that it runs, and the memory of its device                 (StreamExecutor and
 *                TransferManager in XLA's words)
 *   rt_compiler  HLO in, program out                                                            (Compiler)
 *
 * A third party's backend is a shared object that exports  const rt_backend *onnx_xla_backend(uint32_t abi).
 * All functions may be called from many threads unless they say otherwise. */
#ifndef RUNTIME_PROGRAM_TARGET_H
#define RUNTIME_PROGRAM_TARGET_H

#include "base/tensor/literal.h"
#include "runtime/program/program.h"

/* Goes up with every change of what a backend sees of this header and of program.h (tests/abi/test-backend-abi). */
enum { RT_ABI = 9 };

struct hlo_module; /* opaque here */
struct hlo_instr;
typedef struct rt_thread_pool rt_thread_pool;
typedef struct rt_code rt_code; /* loaded machine code */
typedef struct rt_executable rt_executable;

/* What a thunk sees while it runs.  Addresses are of the target's memory (rt_address). */
typedef struct rt_run {
  const rt_executable *executable;
  uint8_t *arena;
  void *const *constants;    /* addresses by index; NULL means the program's own */
  const void *const *params; /* the addresses of the inputs */
  void *const *results;
  rt_thread_pool *pool; /* NULL means one thread */
  /* cancel flag and deadline, which loops must check, and the limit of memory; NULL if there is none */
  mem_budget *budget;
  struct rt_profiler *profiler; /* NULL means off */
  uint64_t seed;                /* the seed of the run's random numbers */
  struct rt_checker *checker;   /* NULL means off */
} rt_run;

/* What a thunk kind sees while thunks are loaded. */
typedef struct rt_loader {
  arena *arena; /* the executable's arena: state is allocated here, and library handles are its cleanups */
  const rt_program *program;
  rt_code **code; /* one for each object of the program */
} rt_loader;

/* Which inputs of a thunk may be where its outputs or its scratch memory are.  It is checked when a program is loaded.
 */
typedef enum rt_access {
  RT_READS_WHILE_WRITING, /* none: inputs are read in any order, or more than once, while outputs are written */
  /* Inputs that begin and end at the same bytes as an output, for which the code was compiled. */
  RT_READS_ELEMENT_FIRST,
  RT_READS_ALL_FIRST /* any: everything is read before anything is written */
} rt_access;

typedef struct rt_thunk_kind {
  const char *name; /* such as "cpu.kernel"; names of the runtime's own kinds have no dot */
  /* Checks buffers and config, which come from a file, and sets t->state.  May be NULL. */
  status (*load)(rt_thunk *t, rt_loader *l);
  /* Does the work, or leaves it to the device. */
  status (*run)(const rt_thunk *t, rt_run *r);
  rt_access access;
} rt_thunk_kind;

/* Memory in which the host does not work.  Thunks may return before their work is done; it is done before a later
 * upload or download begins, and before memory is released. */
typedef struct rt_device {
  /* Returns memory for at least one byte, aligned to 64, or NULL if there is no room. */
  void *(*allocate)(size_t bytes);
  void (*release)(void *memory, size_t bytes);
  /* They are done when they return.  `from` of an upload and `to` of a download are on the host. */
  status (*upload)(void *to, const void *from, size_t bytes);
  status (*download)(void *to, const void *from, size_t bytes);
} rt_device;

typedef struct rt_target {
  uint32_t abi; /* the RT_ABI for which it was built */
  const char *name;
  const rt_thunk_kind *kinds;
  uint32_t n_kinds;
  /* Whether programs may be stored in files and found again by the key of what they were compiled from.  Then programs
   * must depend on nothing else, except on the versions that `libraries` returns. */
  bool keeps_programs;
  /* Returns the versions of the libraries that its programs call, as text.  It may be NULL or return NULL if there are
   * none. */
  const char *(*libraries)(void);
  /* Returns an error if this machine cannot run code compiled for `cpu` (rt_program.cpu).  NULL means that it always
   * can. */
  status (*check_cpu)(const char *cpu);
  /* Loads an object file, which stays loaded until the arena is destroyed. */
  status (*load_code)(arena *a, rt_span object, rt_code **out);
  /* The memory of its programs' arrays.  NULL means the host's memory. */
  const rt_device *device;
} rt_target;

/* Instructions of the scheduled module, in the order in which they were lowered, and where their results are, for
 * comparing values while a program runs.  Parameters, constants and views are not among them. */
typedef struct rt_origin {
  const struct hlo_instr *instr;
  const rt_buffer *results; /* as many as the instruction has results */
} rt_origin;

typedef struct rt_origins {
  uint32_t n, cap;
  rt_origin *items;
} rt_origins;

/* How a compiler chooses among the algorithms for a contraction. */
typedef enum rt_tune {
  RT_TUNE_OFF,   /* by estimates */
  RT_TUNE_KNOWN, /* by the tuning log, and by estimates for what is not in it; nothing is measured */
  /* by the log, and by measuring what is not in it, the most expensive first, for a few seconds at most */
  RT_TUNE_FAST,
  RT_TUNE_FULL /* by the log, and by measuring what is not in it, however long it takes */
} rt_tune;

/* The types of options that a user sets (compile_options.def). */
typedef bool rt_option_flag;
typedef uint32_t rt_option_count;
typedef const char *rt_option_text, *rt_option_choice;

/* How a program's results may differ from those of plain arithmetic.  Zeros are the defaults. */
typedef struct rt_numerics {
#define NUMERICS_OPTION(key, scope, type, name, ...) rt_option_##type name;
#define NUMERICS_FIELD(key, name, ...) __VA_ARGS__;
#include "runtime/program/compile_options.def"
} rt_numerics;

typedef struct rt_compile_options {
  rt_numerics numerics;
#define COMPILE_OPTION(key, scope, type, name, ...) rt_option_##type name;
#define COMPILE_FIELD(key, name, ...) __VA_ARGS__;
#include "runtime/program/compile_options.def"
} rt_compile_options;

/* How one contraction is computed, and what is known of the other configs. */
typedef struct rt_tuned {
  const char *what;   /* the label of its thunk */
  const char *winner; /* its config, such as "library:p4" */
  const char *times;  /* "library:p4 123.4 us, kernel 400.1 us", or "" if nothing was measured */
  const char *how;    /* "timed", "log", "estimate" */
} rt_tuned;

/* What compiling did.  Numbers that a target does not know stay 0. */
typedef struct rt_report {
  uint32_t hlo_before, hlo_after; /* the number of instructions */
  uint32_t clusters;              /* the number of fusions, and of contractions with an epilogue */
  uint32_t convolutions, clustered_convolutions, dots, clustered_dots, lone_elementwise;
  uint32_t kernels, kernels_unique, thunks;
  uint64_t bytes_moved_before, bytes_moved_after;
  uint64_t arena_bytes, arena_lower_bound, constant_bytes, code_bytes;
  double seconds_passes, seconds_lower, seconds_codegen;
  /* On the arena, if keep_text is set: LLVM IR, assembly, and where each value is and how long it lives. */
  const char *llvm, *assembly, *buffers;
  /* Contractions that were tuned; on the arena. */
  uint32_t n_algorithms;     /* the largest number of configs of one contraction */
  uint32_t n_tuned, n_timed; /* how many of them were measured in this compilation */
  rt_tuned *tuned;
  double seconds_tuning;
  const char *warning; /* on the arena: why the tuning log cannot be used; NULL if it can */
} rt_report;

typedef struct rt_compiler {
  uint32_t abi;
  const char *name; /* the name of its target */
  /* Runs the target's pipeline on the module, which it changes, and lowers it.  The program is on `a` and borrows the
   * module's constants.  It is called inside guard_run, as the target's functions are. */
  status (*compile)(struct hlo_module *m, const rt_compile_options *options, arena *a, rt_program **out,
                    rt_report *report);
} rt_compiler;

typedef struct rt_backend {
  uint32_t abi;
  /* guard_adopt of the shared object's own copy of base/, so that guards around its functions work there */
  void (*adopt_guard)(const guard_owner *other);
  const rt_target *target;
  const rt_compiler *compiler; /* NULL if the backend can only run programs */
} rt_backend;

/* The function that a backend's shared object exports under the name "onnx_xla_backend".  It returns NULL if it does
 * not support this ABI. */
typedef const rt_backend *rt_backend_entry(uint32_t abi);

/* Returns the address of the first byte of a buffer in this run. */
void *rt_address(const rt_run *r, const rt_buffer *b);

#endif
