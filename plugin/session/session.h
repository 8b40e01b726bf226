/* session.h - a model and the programs it has been compiled to so far, keyed by input shapes.  What the C API, the
 * command line and the plugins stand on.  Thread-safe: one compiles at a time, and runs of what is ready go on
 * meanwhile. */
#ifndef PLUGIN_SESSION_SESSION_H
#define PLUGIN_SESSION_SESSION_H

#include <limits.h>
#include <stdio.h>

#include "plugin/compiler/compiler.h"
#include "runtime/exec/executable.h"

typedef struct session session;

/* How much a line of a session's log matters; the numbers are the C API's. */
typedef enum session_log_level {
  SESSION_LOG_WARNING = 1,
  SESSION_LOG_INFO = 2,
  SESSION_LOG_DEBUG = 3
} session_log_level;

typedef struct session_options {
  const char *backend;        /* a name or the path of a shared object; NULL: the default (of a .oxla: its own) */
  rt_compile_options compile; /* threads may be 0: all cores */
/* The texts from which compile.tune and compile.numerics.reduced_precision are set; NULL means the default. */
#define SESSION_OPTION(key, scope, type, name, ...) rt_option_##type name;
#include "runtime/program/compile_options.def"
  const char *cache;        /* folder; NULL: as session_cache_folder finds it; "": none */
  const compiler_dim *dims; /* of the names that the model's inputs have; opening fails for others */
  uint32_t n_dims;
  int64_t open_dim;                   /* of dimensions that neither dims nor the run's inputs tell; 0 means an error */
  uint64_t max_memory;                /* bytes for all that the session does, runs included; 0 means no limit */
  mem_budget *outer;                  /* its memory counts there too; NULL if there is none */
  double max_seconds;                 /* for loading, each compilation and each run; 0 means no limit */
  const compiler_constant *constants; /* inputs that never change; their data is borrowed for the life of the session */
  uint32_t n_constants;
  bool check_memory;    /* of all runs (runtime/exec/check_memory.h) */
  bool keep_programs;   /* programs are kept in the cache folder and found there (store.h) */
  uint64_t cache_bytes; /* at most so much of programs is kept there; 0: CONTENT_STORE_GIGABYTES */
  bool verify; /* sums of constants are compared when a compiled file, or a program in the cache folder, is opened */
  void (*log)(void *data, session_log_level level,
              const char *line); /* called from any thread, by compilations one at a time; NULL if there is none */
  void *log_data;
  mem_allocator allocator; /* of what its budget counts; zeros: the system's */
} session_options;

/* Programs that a session keeps beside those in use: for more shapes than these, the one that was not used for longest
 * goes. */
enum { SESSION_MAX_PROGRAMS = 64 };

/* One program, ready to run, and what making it took. */
typedef struct session_program {
  struct session_program *next;
  arena *arena;              /* of the program */
  _Atomic uint32_t users;    /* who may run it */
  uint64_t last_used;        /* by the session's clock */
  const rt_program *program; /* NULL means sizes depend on what the model computes, it runs piece by piece */
  rt_executable *executable; /* NULL means none is needed, or */
  status elsewhere;    /* why this machine cannot run the program, which was compiled for another; NULL if it can */
  bool reads_file;     /* that is mapped, and may be written to meanwhile */
  const shape *shapes; /* without a program: of the inputs that it is for */
  rt_report report;    /* zeros for a program from a .oxla or the cache */
  bool from_cache;
  double compile_seconds, load_seconds;
} session_program;

/* From a file (model or .oxla), or (path NULL) a model in memory, which is borrowed.  Strings in options are copied. */
STATUS_MUST_USE status session_open(const char *path, const void *bytes, size_t size, const session_options *options,
                                    session **out);
/* NULL is allowed. */
void session_close(session *s);

/* What the model declares. */
const compiler_model *session_source(const session *s);
double session_load_seconds(const session *s);
/* Returns true if it came from a .oxla file. */
bool session_is_image(const session *s);
/* "cpu", "ref", .. */
const char *session_backend(const session *s);
/* Threads of a run. */
uint32_t session_threads(const session *s);

/* What a run gives; by the source's inputs, entries or whole lists NULL where nothing is known.  Shapes are needed for
 * values. */
typedef struct session_inputs {
  const shape *const *shapes;
  const void *const *values;
  const _Atomic int
      *stopped;      /* once it is not 0, compiling and running end soon with STATUS_RESOURCE; NULL means never */
  uint64_t deadline; /* of both, in nanoseconds of CLOCK_MONOTONIC; 0: as the session's max_seconds has it */
} session_inputs;

/* The shape of an input as a run would have it: given, or declared with what the options and the other inputs tell of
 * its named dimensions; -1 where one stays open. */
shape session_input_shape(const session *s, const session_inputs *inputs, uint32_t k);
/* Returns true if dimension d of input k is what the options say of open ones, since nothing else tells its size. */
bool session_guesses(const session *s, const session_inputs *inputs, uint32_t k, int d);
/* The program for these inputs (what they leave open is as the options say), compiled now if it is not there yet.  It
 * stays until session_release, or the session's end. */
STATUS_MUST_USE status session_compile(session *s, const session_inputs *inputs, const session_program **out);
/* It may go when others are wanted more.  NULL is allowed. */
void session_release(session *s, const session_program *c);
/* What session_compile would find wrong or unsupported, as far as importing tells.  Of a .oxla: nothing. */
STATUS_MUST_USE status session_check(session *s, const session_inputs *inputs);
/* Returns true if the program is for certain contents of inputs: then it must be asked for again when they change. */
bool session_program_has_values(const session_program *c);

/* Where an output goes, and what it was in the last run.  Zeros: to memory of its own. */
typedef struct session_output {
  shape shape;
  void *data;  /* given, or own */
  void *given; /* the caller's memory, of exactly the output's size, or NULL */
  size_t given_bytes;
  void *own; /* grows when it must, stays from run to run */
  size_t own_bytes;
} session_output;
/* Returns it memory of its own, of that many bytes at least; what was there may be lost. */
STATUS_MUST_USE status session_output_reserve(session *s, session_output *o, size_t bytes, const char *what,
                                              const char *name);
/* Frees what is its own. */
void session_output_finish(session *s, session_output *o);

/* Values of all inputs, shapes too unless there is a program; outputs[n_outputs] of the source.  seed: of random
 * operators, NULL: another one for each run. */
STATUS_MUST_USE status session_run(session *s, const session_program *c, const uint64_t *seed,
                                   const session_inputs *inputs, session_output *outputs);
/* The shape of output k as far as compiling tells; -1 where only running does.  Of no type, if not even that is known.
 */
shape session_program_output(const session *s, const session_program *c, uint32_t k);
/* A .oxla file with all programs that are kept. */
STATUS_MUST_USE status session_save(session *s, const char *path);
STATUS_MUST_USE status session_save_stream(session *s, FILE *f);

/* INVALID_ARGUMENT that lists the names, where a dimension has none of them. */
STATUS_MUST_USE status session_check_dims(arena *a, const compiler_dim *dims, uint32_t n_dims, const char *const *names,
                                          uint32_t n);

/* A request as this session would make it, for the compiler's printing functions. */
compile_request session_request(const session *s, const session_inputs *inputs);

/* Opens the compiler half, which then stays open.  RESOURCE: the process has no room for it now. */
STATUS_MUST_USE status session_open_compiler(const compiler_api **out);
/* The file that it would open, without opening it; false: there is none. */
bool session_compiler_path(char path[PATH_MAX]);
/* The name of the backend where none is asked for. */
const char *session_default_backend(void);
/* The default one is found without the compiler half, others through it. */
STATUS_MUST_USE status session_find_target(const char *backend, const rt_target **out);

/* Makes a message begin with "PATH: ", once, however much of that it has already (takes `s`, gives it back; NULL stays
 * NULL). */
STATUS_MUST_USE status status_name_file(status s, const char *path);

/* "oneDNN 2.6.3, OpenBLAS 0.3.21", or "". */
const char *session_libraries(void);
/* "onnx-xla 0.1.0 (oneDNN 2.6.3)" */
const char *session_version(void);

/* So many seconds from now, in nanoseconds of base/clock.h; 0 of 0: no limit.  Beyond what a clock can tell: never. */
uint64_t deadline_after(double seconds);

#endif
