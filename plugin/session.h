/* session.h - a model and the programs it has been compiled to so far, keyed by input shapes.  What the C API, the
 * command line and the plugins stand on.  Thread-safe: one compiles at a time, and runs of what is ready go on meanwhile. */
#ifndef PLUGIN_SESSION_H
#define PLUGIN_SESSION_H

#include <limits.h>
#include <stdio.h>

#include "plugin/compiler.h"
#include "runtime/executable.h"

typedef struct plug_session plug_session;

/* How much a line of a session's log matters; the numbers are the C API's. */
typedef enum plug_log_level { PLUG_LOG_WARNING = 1, PLUG_LOG_INFO = 2, PLUG_LOG_DEBUG = 3 } plug_log_level;

typedef struct plug_session_options {
  const char *backend; /* "cpu", "ref", or the path of a shared object; NULL: cpu (of a .oxla: what it was made for) */
  rt_compile_options compile; /* tune, tune_log and narrow come from the three below */
  const char *tune;    /* "off", "fast", "full"; NULL: $ONNX_XLA_TUNE, or fast */
  const char *precision; /* "fp32" or NULL; "bf16", "fp16": compile.narrow is set to it */
  const char *cache;   /* folder; NULL: as plug_cache_folder finds it; "": none */
  const plug_dim *dims; /* of the names that the model's inputs have; opening fails for others */
  uint32_t n_dims;
  int64_t open_dim;    /* of dimensions that neither dims nor the run's inputs tell; 0: an error */
  uint64_t max_memory; /* bytes for all that the session does, runs included; 0: no limit */
  mem_budget *outer;   /* its memory counts there too; NULL: none */
  double max_seconds;  /* for loading, each compilation and each run; 0: no limit */
  const plug_constant *constants; /* inputs that never change; their data is borrowed for the life of the session */
  uint32_t n_constants;
  bool check_memory;    /* of all runs (runtime/check_memory.h) */
  bool keep_programs;   /* programs are kept in the cache folder and found there (session_store.h) */
  uint64_t cache_bytes; /* at most so much of programs is kept there; 0: CONTENT_STORE_GIGABYTES */
  bool verify;          /* sums of constants are compared when a compiled file, or a program in the cache folder, is opened */
  void (*log)(void *data, plug_log_level level, const char *line); /* called from any thread, by compilations one at a time; NULL: none */
  void *log_data;
  mem_allocator allocator; /* of what its budget counts; zeros: the system's */
} plug_session_options;

/* Programs that a session keeps beside those in use: for more shapes than these, the one that was not used for longest goes. */
enum { PLUG_MAX_PROGRAMS = 64 };

/* One program, ready to run, and what making it took. */
typedef struct plug_compiled {
  struct plug_compiled *next;
  arena *arena;       /* of the program */
  _Atomic uint32_t users; /* who may run it */
  uint64_t last_used; /* by the session's clock */
  const rt_program *program; /* NULL: sizes depend on what the model computes, it runs piece by piece */
  rt_executable *executable; /* NULL: none is needed, or */
  status elsewhere;          /* why this machine cannot run the program, which was compiled for another; NULL: it can */
  bool reads_file; /* that is mapped, and may be written to meanwhile */
  const shape *shapes; /* without a program: of the inputs that it is for */
  rt_report report; /* zeros for a program from a .oxla or the cache */
  bool from_cache;
  double compile_seconds, load_seconds;
} plug_compiled;

/* From a file (model or .oxla), or (path NULL) a model in memory, which is borrowed.  Strings in options are copied. */
STATUS_MUST_USE status plug_session_open(const char *path, const void *bytes, size_t size,
                                         const plug_session_options *options, plug_session **out);
/* NULL is fine. */
void plug_session_close(plug_session *s);

/* What the model declares. */
const plug_source *plug_session_source(const plug_session *s);
double plug_session_load_seconds(const plug_session *s);
/* Whether it came from a .oxla file. */
bool plug_session_is_image(const plug_session *s);
/* "cpu", "ref", .. */
const char *plug_session_backend(const plug_session *s);
/* Threads of a run. */
uint32_t plug_session_threads(const plug_session *s);

/* What a run gives; by the source's inputs, entries or whole lists NULL where nothing is known.  Shapes are needed for values. */
typedef struct plug_inputs {
  const shape *const *shapes;
  const void *const *values;
  const _Atomic int *stopped; /* once it is not 0, compiling and running end soon with STATUS_RESOURCE; NULL: never */
  uint64_t deadline;          /* of both, in nanoseconds of CLOCK_MONOTONIC; 0: as the session's max_seconds has it */
} plug_inputs;

/* The shape of an input as a run would have it: given, or declared with what the options and the other inputs tell of its
 * named dimensions; -1 where one stays open. */
shape plug_session_input_shape(const plug_session *s, const plug_inputs *inputs, uint32_t k);
/* Whether dimension d of input k is what the options say of open ones, since nothing else tells its size. */
bool plug_session_guesses(const plug_session *s, const plug_inputs *inputs, uint32_t k, int d);
/* The program for these inputs (what they leave open is as the options say), compiled now if it is not there yet.  It stays
 * until plug_session_release, or the session's end. */
STATUS_MUST_USE status plug_session_compile(plug_session *s, const plug_inputs *inputs, const plug_compiled **out);
/* It may go when others are wanted more.  NULL is fine. */
void plug_session_release(plug_session *s, const plug_compiled *c);
/* What plug_session_compile would find wrong or unsupported, as far as importing tells.  Of a .oxla: nothing. */
STATUS_MUST_USE status plug_session_check(plug_session *s, const plug_inputs *inputs);
/* Whether the program is for certain contents of inputs: then it must be asked for again when they change. */
bool plug_compiled_has_values(const plug_compiled *c);

/* Where an output goes, and what it was in the last run.  Zeros: to memory of its own. */
typedef struct plug_output {
  shape shape;
  void *data;         /* given, or own */
  void *given;        /* the caller's memory, of exactly the output's size, or NULL */
  size_t given_bytes;
  void *own;          /* grows when it must, stays from run to run */
  size_t own_bytes;
} plug_output;
/* Gives it memory of its own, of that many bytes at least; what was there may be lost. */
STATUS_MUST_USE status plug_output_reserve(plug_session *s, plug_output *o, size_t bytes, const char *what, const char *name);
/* Frees what is its own. */
void plug_output_finish(plug_session *s, plug_output *o);

/* Values of all inputs, shapes too unless there is a program; outputs[n_outputs] of the source.  seed: of random operators, NULL: another one for each
 * run. */
STATUS_MUST_USE status plug_session_run(plug_session *s, const plug_compiled *c, const uint64_t *seed,
                                        const plug_inputs *inputs, plug_output *outputs);
/* The shape of output k as far as compiling tells; -1 where only running does.  Of no type, if not even that is known. */
shape plug_compiled_output(const plug_session *s, const plug_compiled *c, uint32_t k);
/* A .oxla file with all programs that are kept. */
STATUS_MUST_USE status plug_session_save(plug_session *s, const char *path);
STATUS_MUST_USE status plug_session_save_stream(plug_session *s, FILE *f);

/* INVALID_ARGUMENT that lists the names, where a dimension has none of them. */
STATUS_MUST_USE status plug_check_dims(arena *a, const plug_dim *dims, uint32_t n_dims, const char *const *names,
                                       uint32_t n);

/* A request as this session would make it, for the compiler's printing functions. */
plug_request plug_session_request(const plug_session *s, const plug_inputs *inputs);

/* Opens the compiler half, which then stays open.  RESOURCE: the process has no room for it now. */
STATUS_MUST_USE status plug_compiler_open(const plug_compiler **out);
/* The file that it would open, without opening it; false: there is none. */
bool plug_compiler_path(char path[PATH_MAX]);
/* "cpu" without the compiler half, others through it. */
STATUS_MUST_USE status plug_target_find(const char *backend, const rt_target **out);

/* Makes a message begin with "PATH: ", once, however much of that it has already (takes `s`, gives it back; NULL stays
 * NULL). */
STATUS_MUST_USE status plug_name_file(status s, const char *path);

/* "oneDNN 2.6.3, OpenBLAS 0.3.21", or "". */
const char *plug_libraries(void);
/* "onnx-xla 0.1.0 (oneDNN 2.6.3)" */
const char *plug_version(void);

/* Seconds of CLOCK_MONOTONIC. */
double plug_now(void);
/* So many seconds from now, in its nanoseconds; 0 of 0: no limit.  Beyond what a clock can tell: never. */
uint64_t plug_deadline_after(double seconds);

#endif
