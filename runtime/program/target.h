/* target.h - the interfaces of a backend.  There are two, so that a process that only runs programs needs no compiler:
 *
 *   rt_target    the kinds of thunk that it runs, and the memory of its device                 (StreamExecutor and
 *                TransferManager in XLA)
 *   rt_compiler  compiles HLO to a program                                                      (Compiler in XLA)
 *
 * A third party's backend is a shared object that exports  const rt_backend *onnx_xla_backend(uint32_t abi).  All
 * functions may be called from many threads unless they say otherwise. */
#ifndef RUNTIME_PROGRAM_TARGET_H
#define RUNTIME_PROGRAM_TARGET_H

#include "base/machine/function_set.h"
#include "base/tensor/literal.h"
#include "runtime/program/program.h"

/* The version of the interface between a backend and this library.  It is incremented with every change of a
 * declaration in this file, in program.h or in compile_options.def that concerns backends (tests/abi/test-backend-abi).
 */
enum { RT_ABI = 30 };

struct hlo_module; /* hlo/ir/ir.h defines these two; here only pointers to them are used */
struct hlo_instr;
typedef struct rt_thread_pool rt_thread_pool;
typedef struct rt_code rt_code; /* loaded machine code */
typedef struct rt_executable rt_executable;
typedef struct rt_device rt_device;
typedef struct rt_stream rt_stream;       /* a queue of a device: what is put into it is done in that order */
typedef struct rt_event rt_event;         /* a point in the work of a queue, whose time is noted */
typedef struct rt_recording rt_recording; /* work of a queue that can be done again (a CUDA graph) */

/* The state of a run, which each thunk gets.  Addresses in it are addresses of the target's memory; rt_address computes
 * that of a buffer. */
typedef struct rt_run {
  const rt_program *program; /* with sizes that are numbers */
  const rt_device *device;   /* NULL if the arrays are in the host's memory */
  rt_stream *stream;         /* the queue for the work of this run; NULL without a device */
  uint8_t *arena;
  uint8_t *counters;         /* NULL if no thunk has any (RT_COUNTERS) */
  void *const *constants;    /* the addresses of the constants; NULL: they are at the addresses that the program has
                                for them */
  const void *const *params; /* the addresses of the inputs */
  void *const *results;
  void *const *staged;  /* while a thunk works in host memory (rt_thunk_kind.on_host): the addresses of its buffers */
  rt_thread_pool *pool; /* NULL means one thread */
  /* cancel flag and deadline, which long loops must check, and the limit of memory; NULL if there is none */
  mem_budget *budget;
  struct rt_profiler *profiler; /* NULL if the run is not profiled */
  uint64_t seed;                /* the seed of the run's random numbers */
  struct rt_checker *checker;   /* NULL if accesses to memory are not checked (check_memory.h) */
  struct rt_recorder *recorder; /* NULL if thunks are not recorded (recorder.h) */
} rt_run;

/* What rt_thunk_kind.load gets. */
typedef struct rt_loader {
  arena *arena; /* the executable's arena, for the state of thunks; library handles are freed by cleanups of it */
  const rt_program *program;
  const rt_device *device; /* NULL if the target has none */
  rt_code **code;          /* one for each object of the program */
} rt_loader;

/* Says which inputs of a thunk may share memory with its outputs or scratch memory.  Loading a program checks this. */
typedef enum rt_access {
  /* The default: no input may share memory with them, since inputs are read in any order, or more than once, while
   * outputs are written. */
  RT_READS_WHILE_WRITING,
  /* An input may share memory with an output if both begin and end at the same bytes: the code was compiled to read
   * each element before it writes it. */
  RT_READS_ELEMENT_FIRST,
  RT_READS_ALL_FIRST /* all inputs may share memory with them, since everything is read before anything is written */
} rt_access;

typedef struct rt_thunk_kind {
  const char *name; /* such as "cpu.kernel"; names of the common kinds (rt_common_kinds) have no dot */
  /* Checks the thunk's buffers and config, which come from a file, and sets t->state.  May be NULL.  If the kind has no
   * `bind`, all sizes of the thunk are numbers.  They are final, except that in a program for many sizes, binding later
   * adds a multiple of 64 to the offsets of buffers in the arena. */
  status (*load)(rt_thunk *t, rt_loader *l);
  /* Does the thunk's work, or lets the device do it later. */
  status (*run)(const rt_thunk *t, rt_run *r);
  rt_access access;
  /* A kind has this function if its thunks may have sizes that are known only when a program is bound; it is NULL for
   * other kinds.  It is called after `load`, with a thunk in which all sizes are numbers (a copy if the program is for
   * many sizes), and checks what depends on the sizes.  It may replace t->state by a new state on the arena, which
   * lives as long as the binding.  Many threads may bind one program at once. */
  status (*bind)(rt_thunk *t, arena *a);
  /* True if the kind works in host memory even if the target has a device.  Then the call waits until all earlier work
   * of the run is done, the thunk's buffers are copied to the host, and what the thunk writes is copied back. */
  bool on_host;
  /* Returns true if all that `run` does is to put work into the queue of a device, and if all runs of the thunk with
   * the same addresses put the same work there.  Such work may be recorded.  NULL means that it never is. */
  bool (*is_recordable)(const rt_thunk *t, const rt_run *r);
} rt_thunk_kind;

/* The direction in which bytes are copied. */
typedef enum rt_copy { RT_UPLOAD, RT_DOWNLOAD, RT_ON_DEVICE } rt_copy;

/* A device: memory that the host cannot access, and queues of work on it.  A thunk puts its work into the run's queue
 * and returns, usually before it is done.  A failure of the work is returned by a later call for the same queue, at the
 * latest by `await`.  Streams of one device may work at the same time; each is used by one thread at a time. */
struct rt_device {
  /* The type and id of the device in DLPack, by which callers recognise arrays that lie in its memory.  The type is 0
   * if DLPack has none for this device. */
  int32_t type, id;
  /* Sets *out to `bytes` bytes of memory (at least 1), aligned to 256.  The first call opens the device, so it may fail
   * because there is none. */
  status (*allocate)(const rt_device *d, size_t bytes, void **out);
  /* No work that uses the memory may be left to do. */
  void (*release)(const rt_device *d, void *memory, size_t bytes);
  status (*create_stream)(const rt_device *d, rt_stream **out);
  /* Waits until the work of the stream is done. */
  void (*destroy_stream)(rt_stream *s);
  /* Puts a copy into the queue.  Memory of the host must neither change nor be freed until `await` has returned. */
  status (*copy)(rt_stream *s, rt_copy direction, void *to, const void *from, size_t bytes);
  /* Waits until all work of the stream is done, also if a part of it fails, and returns its first failure.  If the
   * budget expires before that, returns the budget's failure, while work may be left to do.  The budget may be NULL. */
  status (*await)(rt_stream *s, const mem_budget *budget);
  /* The next four functions are for recordings, and NULL if the device has none.  From record_begin to record_end,
   * launches and copies on the device that are put into the stream are recorded instead of done, and nothing else may
   * be asked of the device by this thread.  record_end ends the recording in any case; it fails if something since
   * record_begin could not be recorded. */
  status (*record_begin)(rt_stream *s);
  status (*record_end)(rt_stream *s, rt_recording **out);
  /* Puts the recorded work into the queue of the run, as if the calls that were recorded were made again with this
   * run. */
  status (*replay)(const rt_run *r, rt_recording *recording);
  /* No replay may be left to do. */
  void (*release_recording)(rt_recording *recording);
  /* The next four functions are for events, and NULL if the device has none.  record_event puts into the queue work
   * that notes the time. */
  status (*create_event)(const rt_device *d, rt_event **out);
  /* No work that notes the event's time may be left to do. */
  void (*destroy_event)(rt_event *e);
  status (*record_event)(rt_event *e, rt_stream *s);
  /* Sets *seconds to the time between two events.  Fails if the stream has not reached one of them yet. */
  status (*elapsed)(const rt_event *from, const rt_event *to, double *seconds);
  /* Sets *operations to the most f32 operations that the device can do in a second, where a multiply-add is two
   * operations, and *bytes to the most bytes of memory that it can read or write in a second.  NULL means that these
   * are the numbers of the host. */
  status (*peak)(const rt_device *d, double *operations, double *bytes);
};

/* Keeps code from one process to the next, for targets whose driver compiles the code of programs when it is loaded. */
typedef struct rt_code_cache {
  /* Returns the compiled code that was kept for this source, on the arena; an empty span if there is none.  `compiler`
   * is a text of everything else on which compiled code depends. */
  rt_span (*find)(void *data, arena *a, const char *compiler, rt_span source);
  /* Keeps compiled code, in place of what was kept for this source.  Failures are ignored. */
  void (*keep)(void *data, const char *compiler, rt_span source, rt_span compiled);
  void *data;
} rt_code_cache;

typedef struct rt_target {
  uint32_t abi; /* the RT_ABI for which the target was built */
  const char *name;
  const rt_thunk_kind *kinds;
  uint32_t n_kinds;
  /* True if programs may be stored in files, where they are found by a key: a hash of what they were compiled from.
   * Such programs must depend on nothing but what is hashed.  A thunk that calls a library fails to load if it needs
   * another version of the library; the model is then compiled again. */
  bool keeps_programs;
  /* Opens the libraries that the target's programs call and returns their versions as text, for people.  It may be NULL
   * or return NULL if there are none. */
  const char *(*libraries)(void);
  /* Returns an error if this machine, or the target's device, cannot run code that was compiled for `cpu`
   * (rt_program.cpu).  A target that can always run it has NULL here. */
  status (*check_cpu)(const rt_device *d, const char *cpu);
  /* Loads code of a program, such as an object file, which stays loaded until the arena is destroyed.  If a driver must
   * compile the code first, the result may be kept in `cache`, which may be NULL. */
  status (*load_code)(const rt_device *d, arena *a, rt_span code, const rt_code_cache *cache, rt_code **out);
  /* The device in whose memory the arrays of programs are.  NULL means the host's memory. */
  const rt_device *device;
  /* Returns functions that code for this machine may call besides those of kernel_externals.def; NULL if there are
   * none. May be NULL. */
  const function_set *(*functions)(void);
} rt_target;

/* An instruction of the scheduled module and where its results are, for comparing values while a program runs
 * (verify/lockstep.h).  rt_origins has the instructions in the order in which they were lowered, without parameters,
 * constants and views (instructions such as reshape whose result is the memory of the operand). */
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
  RT_TUNE_OFF,   /* by estimates only */
  RT_TUNE_KNOWN, /* by the log of earlier measurements, otherwise by estimates; nothing is measured */
  /* by the log, otherwise by measuring, the most expensive contractions first, for a few seconds at most */
  RT_TUNE_FAST,
  RT_TUNE_FULL /* by the log, otherwise by measuring, without a limit of time */
} rt_tune;

/* What a compiler needs in order to measure while programs of its caller may run. */
typedef struct rt_background {
  /* Waits until no program of the caller runs, or until the compilation must end (then budget_check fails).  Returns
   * the number of the caller's runs that have begun so far.  If the number has changed after a measurement, a run has
   * disturbed the measurement. */
  uint64_t (*await_idle)(void *data);
  void *data;
} rt_background;

/* The types of options that a user sets (compile_options.def). */
typedef bool rt_option_flag;
typedef uint32_t rt_option_count;
typedef const char *rt_option_text, *rt_option_choice;

/* How a program's results may differ from those of plain arithmetic.  If all members are 0, the defaults apply. */
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

/* A part of the report: which config (algorithm with its parameters) computes one contraction, and how long other
 * configs took. */
typedef struct rt_tuned {
  const char *what;   /* the nodes from which the contraction comes, and its description */
  const char *winner; /* the chosen config, such as "library:p4" */
  const char *times;  /* microseconds, such as "library:p4=123.40,kernel=400.10"; "" if nothing was measured */
  const char *how;    /* how the config was chosen: "timed", "log", "estimate", ... (autotune_decision.how) */
} rt_tuned;

/* Facts about a compilation.  Numbers that a target does not know remain 0. */
typedef struct rt_report {
  uint32_t hlo_before, hlo_after; /* the number of instructions */
  uint32_t fusions;               /* the number of fusions of all kinds; a contraction with an epilogue is one */
  uint32_t convolutions, fused_convolutions, dots, fused_dots, lone_elementwise;
  uint32_t kernels, kernels_unique, thunks;
  uint32_t kernels_found; /* the number of unique kernels that other programs had compiled */
  uint32_t new_code; /* the first new_code code objects of the program are new; other programs had compiled the rest */
  uint64_t bytes_moved_before, bytes_moved_after;
  uint64_t arena_bytes, arena_lower_bound, constant_bytes, code_bytes;
  double seconds_passes, seconds_lower, seconds_codegen;
  /* On the arena, if keep_text is set: LLVM IR, assembly, and where each value is and how long it lives. */
  const char *llvm, *assembly, *buffers;
  /* About the contractions that were tuned; the list `tuned` is on the arena. */
  uint32_t n_algorithms; /* the largest number of configs of one contraction */
  /* n_tuned: tuned contractions; n_timed: how many different ones were measured in this compilation (equal ones count
   * once) */
  uint32_t n_tuned, n_timed;
  uint32_t n_untimed; /* with RT_TUNE_KNOWN: the number of contractions for which RT_TUNE_FAST may find other configs */
  rt_tuned *tuned;
  double seconds_tuning;
  const char *warning; /* on the arena: what is wrong with the tuning log, or why nothing is measured; NULL if there is
                          nothing to tell */
} rt_report;

typedef struct rt_compiler {
  uint32_t abi;
  const char *name; /* the name of the compiler's target */
  /* Runs the target's passes on the module, which they change, and lowers it to a program.  The program is on `a` and
   * borrows the module's constants.  Like the functions of the target, it is called inside guard_run. */
  status (*compile)(struct hlo_module *m, const rt_compile_options *options, arena *a, rt_program **out,
                    rt_report *report);
} rt_compiler;

typedef struct rt_backend {
  uint32_t abi;
  /* guard_adopt (base/arena.h) of the shared object's own copy of base/.  After it was called, running out of memory in
   * the shared object jumps to the caller's guard_run. */
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
