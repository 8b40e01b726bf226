/* session.h - a model with the programs to which it has been compiled so far, each for all sizes or for one set of
 * input shapes.  The C API, the command line and the plugins use it.  It is thread-safe: one compilation runs at a
 * time, and existing programs can run meanwhile.  One compilation that tunes a program in the background (specialise.h)
 * can run at the same time. */
#ifndef PLUGIN_SESSION_SESSION_H
#define PLUGIN_SESSION_SESSION_H

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/clock.h"
#include "plugin/compiler/compiler.h"
#include "runtime/exec/executable.h"

typedef struct session session;

/* The importance of a line of a session's log.  The numbers are those of the C API. */
typedef enum session_log_level {
  SESSION_LOG_WARNING = 1,
  SESSION_LOG_INFO = 2,
  SESSION_LOG_DEBUG = 3
} session_log_level;

/* An output that becomes an input of the next run; see oxla_carried in the public header. */
typedef struct session_carry {
  const char *output, *input;
  int axis; /* the dimension along which it grows; -1 if it does not */
} session_carry;

typedef struct session_options {
  /* The name of a backend or the path of its shared object.  NULL means session_default_backend, or for a .oxla file
   * the backend for which the file was made. */
  const char *backend;
  /* The backend that takes the place of `backend` if its device cannot be used; a warning is then logged.
   * NULL means that opening fails instead.  Only a model can fall back, since a compiled file is for one
   * backend.  All other options are for both backends. */
  const char *fallback;
  rt_compile_options compile; /* threads may be 0, which means all cores */
/* The members `tune` and `precision`, from which compile.tune and compile.numerics.reduced_precision are set,
 * `specialise` and `program_memory`.  NULL or 0 means the default. */
#define SESSION_OPTION(key, scope, type, name, ...) rt_option_##type name;
#include "runtime/program/compile_options.def"
  const char *cache;        /* the cache folder; NULL means the default of session_cache_folder; "" means none */
  const compiler_dim *dims; /* values of the named dimensions of the model's inputs; for other names opening fails */
  uint32_t n_dims;
  /* The ranges of sizes that named dimensions of the model's inputs may have.  A program for all sizes serves
   * only sizes in these ranges, other sizes are an error, and a dimension whose size is not given gets the
   * largest size of its range. */
  const dim_range *ranges;
  uint32_t n_ranges;
  /* The value of dimensions that neither dims, ranges nor a run's inputs give; 0 means that they are an error. */
  int64_t open_dim;
  /* Whether the dimensions that get open_dim stay open: the program is then for all their sizes, with open_dim as the
   * likely one, and compiling fails if that is not possible. */
  bool keep_open;
  uint64_t max_memory; /* the limit in bytes for all memory of the session, including that of runs; 0 means no limit */
  mem_budget *outer;   /* a budget that also counts the session's memory; NULL if there is none */
  double max_seconds;  /* the limit in seconds for loading, for each compilation and for each run; 0 means no limit */
  const compiler_constant *constants; /* inputs that never change; their data is borrowed until the session is closed */
  uint32_t n_constants;
  const session_carry *carried; /* the list is copied, with its names */
  uint32_t n_carried;
  bool check_memory;    /* whether all runs check accesses to memory (runtime/exec/check_memory.h) */
  bool keep_programs;   /* whether programs are kept in the cache folder and found there (store.h) */
  uint64_t cache_bytes; /* the limit in bytes of the programs in the cache folder; 0 means CONTENT_STORE_GIGABYTES */
  /* Whether checksums of constants are compared when a compiled file, or a program in the cache folder, is opened. */
  bool verify;
  /* Receives each line of the log, possibly from several threads at once; may be NULL.  Lines that are less important
   * than `log_level` are not even formatted, which takes as long as a run of a small model; 0 means all lines. */
  void (*log)(void *data, session_log_level level, const char *line);
  session_log_level log_level;
  void *log_data;
  mem_allocator allocator; /* for the memory that the session's budget counts; zeros mean the system's allocator */
} session_options;

/* A program that is ready to run, and the times and the report of making it. */
typedef struct session_program {
  struct session_program *next, *previous; /* in one of the session's lists */
  struct session_program *chain;           /* the next program in the list of session.table */
  uint64_t hash;                           /* of the shapes of the inputs */
  uint64_t bytes;                          /* the memory that freeing the program would give back */
  atomic_bool replaced;      /* whether another program, which was tuned in the background, has taken its place */
  bool untuned;              /* whether measuring may find better algorithms for it */
  bool provisional;          /* rt_compile_options.provisional */
  arena *arena;              /* the program's arena */
  _Atomic uint32_t users;    /* the number of callers that hold the program (session_compile, session_release) */
  _Atomic uint32_t runs;     /* of a binding: the number of runs so far (specialise_after_run) */
  uint64_t last_used;        /* the value of session.clock at the last use; the clock counts uses */
  const rt_program *program; /* NULL if sizes depend on what the model computes, so that it runs segment by segment */
  rt_executable *executable; /* NULL if none is needed, or if `elsewhere` or `general` is set */
  /* The program for all sizes to which this binding belongs; NULL if this is not a binding.  If only another machine
   * can bind it, `binding` is NULL and `program` is that of `general`. */
  struct session_program *general;
  const rt_binding *binding; /* what a run executes; NULL if there is no executable, or if `program` is for all sizes */
  status elsewhere;    /* why this machine cannot run the program, which was compiled for another one; NULL if it can */
  bool reads_file;     /* whether running the program reads a mapped file, to which somebody may write meanwhile */
  const shape *shapes; /* the shapes of the inputs, if `program` is NULL */
  /* For a program for all sizes: a copy of its first binding, of which only the parameters are valid; NULL if there is
   * none, or if the program is from a .oxla file. */
  const rt_program *first;
  /* Zeros for a binding and for a program from a .oxla file or the cache.  For a program that was tuned in the
   * background only new_code is set. */
  rt_report report;
  bool from_cache;
  double compile_seconds, load_seconds;
} session_program;

/* Opens a model or .oxla file, or, if path is NULL, a model in memory, which is borrowed.  The lists and strings in
 * `options` are copied, but the data of constants is borrowed. */
STATUS_MUST_USE status session_open(const char *path, const void *bytes, size_t size, const session_options *options,
                                    session **out);
/* Closes a session and frees all its programs.  NULL is allowed. */
void session_close(session *s);

/* Returns what the model declares. */
const compiler_model *session_source(const session *s);
double session_load_seconds(const session *s);
/* Returns true if the session was opened from a .oxla file that does not contain the model itself.  (The file of a
 * model that runs segment by segment contains it, and the session is then like one for a model.) */
bool session_is_image(const session *s);
/* Returns the name of the target, such as "cpu" or "ref". */
const char *session_backend(const session *s);
/* Returns the backend in use as the options call it, which may be a path: options.backend, options.fallback if that
 * took its place, or the default. */
const char *session_chosen_backend(const session *s);
/* Returns the number of threads of a run. */
uint32_t session_threads(const session *s);

/* The shapes and values of a run's inputs, in the order of the model's inputs.  An entry or a whole list is NULL if it
 * is not known.  An input with a value must have a shape.  If the shape is a sequence, the value is a literal_list; for
 * an optional without an element there is none. */
typedef struct session_inputs {
  const shape *const *shapes;
  const void *const *values;
  /* The addresses of values in the memory of the target's device.  The entry in `values` is then NULL, since the
   * contents are not known.  NULL: all values are in host memory. */
  const void *const *device_values;
  /* If *stopped becomes nonzero, compiling and running end soon with STATUS_RESOURCE.  May be NULL. */
  const _Atomic int *stopped;
  /* When compiling or running must end, in nanoseconds of CLOCK_MONOTONIC; 0 means after the session's max_seconds. */
  uint64_t deadline;
  /* The room of carried outputs: how many elements the memory of each has along the dimension along which the output
   * grows.  session_compile raises *room if it is too small.  NULL if nothing is carried. */
  int64_t *room;
  /* The table with the strings of the inputs, to which a run adds those that it makes.  It extends the model's.  NULL
   * if there are none; then a model that makes strings cannot run. */
  struct string_table *strings;
} session_inputs;

/* Returns the list of outputs that are carried, and sets *n to its length. */
const compiler_carry *session_carried(const session *s, uint32_t *n);
/* Returns true if the options say that output k is carried, and the program writes the output to the memory of its
 * input that the caller passes.  The program may write other outputs in place, too (rt_io.carried); for these the
 * function returns false. */
bool session_keeps_output(const session *s, const rt_program *p, uint32_t k);

/* Returns the shape that input k has in a run: the given one, or the declared one with sizes in place of its open
 * dimensions.  The size of an open dimension is the one that the options or the other inputs give to its name,
 * otherwise the assumed one (session_guesses), or -1 if nothing is to be assumed. */
shape session_input_shape(const session *s, const session_inputs *inputs, uint32_t k);
/* Returns true if neither the inputs, the model nor options.dims give the size of dimension d of input k.  The largest
 * size of its range is then assumed, or session_options.open_dim, or what session_assume_sizes found. */
bool session_guesses(const session *s, const session_inputs *inputs, uint32_t k, int d);
/* If these inputs, the model and the options leave sizes open, looks for sizes with which the model can be imported
 * (frontend/import/assume.h): they are assumed from now on, in place of options.open_dim.  That there are none is no
 * error: compiling then says why. */
STATUS_MUST_USE status session_assume_sizes(session *s, const session_inputs *inputs);
/* Returns a table of strings that extends the model's, for a caller with one thread; its memory is the session's. */
string_table *session_strings(const session *s);
/* Creates an arena whose memory counts in the session's limit; the caller destroys it before the session is closed. */
arena *session_create_arena(session *s);
/* Returns the program for these inputs, compiling it if necessary; sizes that the inputs do not give come from the
 * options.  The program remains until session_release, or until the session is closed. */
STATUS_MUST_USE status session_compile(session *s, const session_inputs *inputs, const session_program **out);
/* Compiles programs for all sizes until the sizes of the inputs are served, and the combinations of the least and
 * largest sizes of the session's ranges (ranges.c).  *out is the program for the inputs, as session_compile returns
 * it. */
STATUS_MUST_USE status session_compile_ranges(session *s, const session_inputs *inputs, const session_program **out);
/* Allows the program to be freed when room is needed for others.  NULL is allowed. */
void session_release(session *s, const session_program *c);
/* Returns true if session_compile would now return another program for the same inputs, which was tuned while this one
 * ran.  This one can still run, but its memory is freed only when all callers have released it, so they should call
 * session_compile again between two runs. */
bool session_program_is_replaced(const session_program *c);
/* Returns the programs for all sizes, the newest first (session_program.next), or NULL if there are none.  They stay
 * until the session is closed. */
const session_program *session_generals(session *s);
/* Returns why no program is for all sizes although the model leaves sizes open.  Returns NULL if such a
 * program may be possible. */
const char *session_exact_reason(session *s);
/* Waits until no program is being tuned in the background any more.  If no tuning was begun so far, first begins to
 * tune a program for the last sizes, if they may get one of their own. */
void session_await_tuned(session *s);
/* Returns the error that session_compile would return, as far as importing the model shows it.  Always succeeds if
 * session_is_image returns true. */
STATUS_MUST_USE status session_check(session *s, const session_inputs *inputs);
/* Returns true if the program is valid only for certain contents of inputs, for which it was compiled or to
 * which it is bound.  If these change, the caller must call session_compile again. */
bool session_program_needs_contents(const session_program *c);

/* Where an output is written, and its shape and data in the last run: the data of a literal (literal_list.h).  A struct
 * of zeros is valid: the output is then written to memory that the session allocates (`own`), on the host. */
typedef struct session_output {
  shape shape;
  void *data;  /* either `given` or `own`; NULL if session_keeps_output returns true */
  void *given; /* memory of the caller, of exactly the output's size, or NULL */
  size_t given_bytes;
  /* Whether `given` is exactly the memory of one input, which no other input or output overlaps.  The output is then
   * computed in place if the program can do that, otherwise in `own`, and copied when the run has read its inputs. */
  bool is_over_input;
  bool on_device; /* whether `given`, or if that is NULL, `own`, is to be in the memory of the target's device */
  bool own_on_device;
  void *own; /* grows if necessary and remains from run to run */
  size_t own_bytes;
} session_output;
/* Makes o->own at least `bytes` bytes large, in the memory that o->on_device asks for; its contents may be lost.
 * `what` and `name` are for the error message, as in rt_memory_take. */
STATUS_MUST_USE status session_output_reserve(session *s, session_output *o, size_t bytes, const char *what,
                                              const char *name);
/* Frees o->own. */
void session_output_finish(session *s, session_output *o);

/* Runs the model.  An output for which session_keeps_output returns true is written to the memory of its input's value,
 * which has *room elements along the dimension along which the output grows; `given` must then be NULL. `inputs` must
 * have a value or a device value for each input of the model; shapes are only needed if c->program is NULL.  `outputs`
 * has an entry for each output of the model. `seed` is for random operators; NULL means a new one for each run. */
STATUS_MUST_USE status session_run(session *s, const session_program *c, const uint64_t *seed,
                                   const session_inputs *inputs, session_output *outputs);
/* Returns the shape of output k as far as it is known from compiling, with -1 for dimensions that only a run
 * determines.  The shape has no type if not even that is known. */
shape session_program_output(const session *s, const session_program *c, uint32_t k);
/* Write a .oxla file with all programs that the session holds, to a path or to a stream.  Before that, they do what
 * session_await_tuned does. */
STATUS_MUST_USE status session_save(session *s, const char *path);
STATUS_MUST_USE status session_save_stream(session *s, FILE *f);

/* Replaces names of dimensions in the options' dims and ranges that have other characters than `names` may have ("a-b")
 * by those of `names` that the importer makes of them ("a_b").  Returns INVALID_ARGUMENT if the name of a dimension is
 * not among `names`, or may mean several of them; the message lists the names. */
STATUS_MUST_USE status session_check_dims(arena *a, session_options *o, const char *const *names, uint32_t n);

/* Returns the request for these inputs with the session's options, for the printing functions of compiler_api. */
compile_request session_request(const session *s, const session_inputs *inputs);

/* Compiles the model to an object file and a header, on the arena: for all sizes if the options keep sizes open,
 * otherwise for those of the inputs. */
STATUS_MUST_USE status session_write_object(session *s, const session_inputs *inputs, const compiler_object_options *o,
                                            arena *a, compiler_object *out, rt_report *report);

/* Opens the compiler library (plugin/compiler/compiler.h), which then stays open.  Returns RESOURCE if the process has
 * too little memory for it now. */
STATUS_MUST_USE status session_open_compiler(const compiler_api **out);
/* Sets `path` to the file that session_open_compiler would open.  Returns false if there is none. */
bool session_compiler_path(char path[PATH_MAX]);
/* Returns the device of the session's target; NULL means that arrays are in host memory. */
const rt_device *session_device(const session *s);
/* Returns the name of the backend that is used if none is asked for. */
const char *session_default_backend(void);
/* Finds a backend's target.  For backends other than cpu and gpu this opens the compiler library. */
STATUS_MUST_USE status session_find_target(const char *backend, const rt_target **out);

/* Returns text such as "oneDNN 2.6.3 (cpu isa 63)", or "".  Opens the library. */
const char *session_libraries(void);
/* Returns text such as "onnx-xla 0.1.0, oneDNN 2.6.3 (cpu isa 63)".  Opens the library. */
const char *session_version(void);

#endif
