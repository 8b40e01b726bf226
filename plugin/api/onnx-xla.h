/* onnx-xla.h - the C API of onnx-xla: load an ONNX model or a compiled .oxla file, run it.
 *
 *   oxla_model *model;
 *   oxla_error *error = oxla_load("model.onnx", NULL, &model);
 *   oxla_run *run;
 *   if (!error) error = oxla_run_create(model, &run);
 *   if (!error) error = oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){1, 4}, data);
 *   if (!error) error = oxla_execute(run);
 *   oxla_tensor y;
 *   if (!error) error = oxla_get_output(run, "y", &y);
 *   if (error) { fprintf(stderr, "%s\n", oxla_error_message(error)); oxla_error_free(error); }
 *   oxla_run_destroy(run);
 *   oxla_model_destroy(model);
 *
 * Functions of type oxla_error * return NULL, or an error that the caller frees with oxla_error_free.  What they had
 * to give is then not there.  NULL where something must be is OXLA_INVALID_ARGUMENT.
 *
 * A model is used from as many threads as one likes, at the same time, until oxla_model_destroy.  A run is used by one
 * thread at a time, but for oxla_cancel, and between oxla_start and its end by none; as many runs of a model as one
 * likes go on side by side.  An event is used from any thread.  Callbacks are called on any thread.  A forked child
 * goes on with its parent's models and runs, on one thread.  Nothing here prints, ends the process or reads the
 * environment, but for ONNX_XLA_CACHE and ONNX_XLA_TUNE where the options leave that open.
 *
 * Names, numbers and layouts stay as they are from version to version of the library: what is new are further
 * functions, and fields at the end of oxla_options. */
#ifndef ONNX_XLA_H
#define ONNX_XLA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OXLA_API_VERSION 1

typedef struct oxla_model oxla_model;
typedef struct oxla_run oxla_run;
typedef struct oxla_event oxla_event;
typedef struct oxla_error oxla_error;

/* --- errors: what went wrong --- */

typedef enum oxla_code {
  OXLA_OK = 0,
  OXLA_INVALID_ARGUMENT = 1, /* a wrong call, option, input name, type or shape */
  OXLA_INVALID_FILE = 2,     /* bytes that are not what they claim to be */
  OXLA_INVALID_MODEL = 3,    /* breaks a rule of the ONNX standard */
  OXLA_UNSUPPORTED = 4,      /* valid, but onnx-xla cannot do it yet */
  OXLA_RESOURCE = 5,         /* memory, time or a size limit is used up, or the run was cancelled */
  OXLA_IO = 6,               /* the operating system refused */
  OXLA_INTERNAL = 7          /* a fault of onnx-xla */
} oxla_code;

/* What the error is about, for programs that must tell. */
typedef enum oxla_subject {
  OXLA_ABOUT_NOTHING = 0,
  OXLA_ABOUT_VERSION = 1,  /* of the ONNX standard or an operator set */
  OXLA_ABOUT_OPERATOR = 2, /* as a whole */
  OXLA_ABOUT_TYPE = 3,     /* an element type */
  OXLA_ABOUT_SHAPE = 4,    /* a rank or dimension */
  OXLA_ABOUT_VALUE = 5,    /* the contents of an input, on which a size depends */
  OXLA_ABOUT_BACKEND = 6,  /* it, or the compiler half, is not there */
  OXLA_ABOUT_NAME = 7      /* of an input, output or constant */
} oxla_subject;

/* OXLA_OK of NULL. */
oxla_code oxla_error_code(const oxla_error *error);
/* OXLA_ABOUT_NOTHING of NULL. */
oxla_subject oxla_error_subject(const oxla_error *error);
/* The node at fault, "fc1: Gemm", or "Gemm that makes "y"" where it has no name; in a loop's body or a function the one
 * inside.  Of nodes that run as one, all of them: "fc1: Gemm + act: Relu".  When time or memory ends, what was at work.
 * "" where no node is to blame, and of NULL.  Valid until oxla_error_free. */
const char *oxla_error_node(const oxla_error *error);
/* One line of UTF-8 that names the node, the value and the rule; "" of NULL.  Valid until oxla_error_free. */
const char *oxla_error_message(const oxla_error *error);
/* NULL is fine. */
void oxla_error_free(oxla_error *error);

/* --- tensors: types and arrays --- */

/* ONNX's TensorProto.DataType numbers. */
typedef enum oxla_type {
  OXLA_FLOAT = 1,
  OXLA_UINT8 = 2,
  OXLA_INT8 = 3,
  OXLA_UINT16 = 4,
  OXLA_INT16 = 5,
  OXLA_INT32 = 6,
  OXLA_INT64 = 7,
  OXLA_STRING = 8,
  OXLA_BOOL = 9,
  OXLA_FLOAT16 = 10,
  OXLA_DOUBLE = 11,
  OXLA_UINT32 = 12,
  OXLA_UINT64 = 13,
  OXLA_COMPLEX64 = 14,
  OXLA_COMPLEX128 = 15,
  OXLA_BFLOAT16 = 16,
  OXLA_FLOAT8E4M3FN = 17,
  OXLA_FLOAT8E4M3FNUZ = 18,
  OXLA_FLOAT8E5M2 = 19,
  OXLA_FLOAT8E5M2FNUZ = 20,
  OXLA_UINT4 = 21,
  OXLA_INT4 = 22,
  OXLA_FLOAT4E2M1 = 23,
  OXLA_FLOAT8E8M0 = 24,
  OXLA_UINT2 = 25,
  OXLA_INT2 = 26,
  OXLA_FLOAT6E2M3 = 27,
  OXLA_FLOAT6E3M2 = 28
} oxla_type;

enum { OXLA_MAX_RANK = 16 };

/* An array: row-major, elements one after the other (4- and 2-bit types take a byte each, that of signed
 * ones extends the sign). */
typedef struct oxla_tensor {
  oxla_type type;
  int rank; /* -1: the model's input takes any, or nothing tells an output's before it is computed */
  int64_t dims[OXLA_MAX_RANK];
  void *data;
  size_t bytes;
} oxla_tensor;

/* --- options: how a model is loaded --- */

typedef struct oxla_dim {
  const char *name; /* of a symbolic dimension */
  int64_t value;
} oxla_dim;

/* An input that never changes (weights that are not in the file): compiled in, no input of the model any more. */
typedef struct oxla_constant {
  const char *name;
  oxla_type type;
  int rank;
  const int64_t *dims;
  const void *data; /* must stay until the model is destroyed; the rest is copied */
} oxla_constant;

typedef enum oxla_log_level {
  OXLA_LOG_WARNING = 1, /* something is less good than it could be: compiled programs cannot be kept, say */
  OXLA_LOG_INFO = 2,    /* what takes time: models opened, programs compiled or found */
  OXLA_LOG_DEBUG = 3    /* each execution */
} oxla_log_level;

/* Is given one line without its end.  Called from several threads at once, and must not call back into the model. */
typedef void oxla_log_fn(void *data, oxla_log_level level, const char *line);

/* Where arrays and what models hold in memory come from: weights, programs, arenas of runs, outputs.  (Small
 * bookkeeping, threads and the libraries that compile go on using malloc.)  allocate gives `bytes` at a multiple of
 * `align`, a power of two, or NULL, which ends in OXLA_RESOURCE; release gets what it gave, with the same
 * numbers.  Called from several threads at once, until oxla_model_destroy has returned. */
typedef struct oxla_allocator {
  void *(*allocate)(void *data, size_t bytes, size_t align);
  void (*release)(void *data, void *memory, size_t bytes, size_t align);
  void *data;
} oxla_allocator;

/* Set size to sizeof(oxla_options) and the rest to 0 for the defaults; newer versions add fields at the end.  A library
 * that is older than the program refuses fields that it does not know, unless they are 0. */
typedef struct oxla_options {
  size_t size;
  const char *backend;  /* "cpu" (default), "ref", or the path of a backend's shared object */
  const char *cpu;      /* to compile for: "native" (default), "x86-64", "x86-64-v3", ... */
  int threads;          /* of a run, at most 256; 0: all cores */
  int lanes;            /* f32 lanes of a vector: 1, 4, 8, 16; 0: the cpu's widest */
  const oxla_dim *dims; /* values of symbolic dimensions of the inputs; another name is an error */
  size_t n_dims;
  uint64_t max_memory; /* bytes for loading, compiling and runs, their outputs included; 0: no limit */
  double max_seconds;  /* for loading, for each compilation and for each execution; 0: no limit */
  int closed_dims;     /* not 0: a dimension without a value is an error where a run's inputs do not tell it */
  const oxla_constant *constants;
  size_t n_constants;
  const char *skip_passes; /* "fold,cse": passes that the compiler leaves out, to find the one that does harm */
  const char *tune;  /* how contractions are chosen: "off" (by rules), "fast" (timed for a few seconds at most, once),
                      * "full"; NULL: ONNX_XLA_TUNE, or "fast" */
  const char *cache; /* folder of what is kept between processes; NULL: ONNX_XLA_CACHE, or onnx-xla in the user's;
                      * "": nothing is */
  int exact;         /* not 0: no algorithm that rounds differently from a plain sum of products (Winograd) */
  uint64_t cache_bytes;  /* of programs in the folder that `cache` names, so that the second start of a model maps a
                          * file; 0: 8 GiB.  With `cache` NULL programs are not kept */
  const char *precision; /* "bf16", "fp16": f32 operands of dots and convolutions may be rounded to it, where that is
                          * measured to be faster (sums stay f32); "fp32" (default): nothing is */
  oxla_log_fn *log;      /* NULL: nobody wants to know */
  void *log_data;
  const oxla_allocator *allocator; /* copied; NULL: the system's */
  int deterministic; /* not 0: the same bits for any number of threads that a model is compiled for, each time that it
                      * is: nothing is timed (no `tune`, no `precision`), and it is divided for 8 threads whatever
                      * `threads` is.  Other processors, versions and options may still round differently */
  int verify;    /* not 0: all constants of a .oxla, and of programs in the cache, are read and compared with their sums
                  * when they are opened: damage is OXLA_INVALID_FILE; in the cache it is compiled again.  By default
                  * constants of a .oxla are not read before they are used, and those in the cache are compared once
                  * after each start of the system */
  int unchecked; /* not 0: an index out of range (Gather and its like) and an integer divided by 0 give some number; 0:
                  * the execution fails with OXLA_INVALID_ARGUMENT, and the message names node and value */
  int check_memory; /* not 0: whether a step of a run touches memory that is not its own, or a result was never written,
                     * is looked for: OXLA_INTERNAL names the step.  Runs take a few times as long, and while a step
                     * runs a handler of SIGSEGV is in place */
} oxla_options;

/* --- models: loading, describing, saving --- */

/* Opens model.onnx or file.oxla; compiles nothing yet.  options may be NULL.  A file of at most a MiB is read here and
 * then left alone.  A larger one, and large files of external data, stay mapped until the model is destroyed.  They may
 * be replaced by renaming others over them.  What is written into them meanwhile is noticed: what the model compiles
 * then, and executions that read them, end with OXLA_IO.  But an execution at the moment when one is cut short ends the
 * process with SIGBUS: where others may do that, read it into memory of your own for oxla_load_memory. */
oxla_error *oxla_load(const char *path, const oxla_options *options, oxla_model **out);
/* The same of bytes in memory, which must stay until the model is destroyed.  Those of a .oxla file are copied unless
 * they begin at a page.  External data is not looked for. */
oxla_error *oxla_load_memory(const void *bytes, size_t size, const oxla_options *options, oxla_model **out);
/* Runs of the model must be destroyed before.  NULL is fine. */
void oxla_model_destroy(oxla_model *model);

/* Inputs that must be given, and outputs, in the graph's order. */
size_t oxla_input_count(const oxla_model *model);
size_t oxla_output_count(const oxla_model *model);
/* NULL where there is none of that index. */
const char *oxla_input_name(const oxla_model *model, size_t index);
const char *oxla_output_name(const oxla_model *model, size_t index);
/* The declared type and dims of an input; an open dimension is -1.  data and bytes are 0. */
oxla_error *oxla_input_type(const oxla_model *model, size_t index, oxla_tensor *out);
/* The same of an output; its type is 0 where the model does not say.  oxla_get_output tells what it really is. */
oxla_error *oxla_output_type(const oxla_model *model, size_t index, oxla_tensor *out);
/* Name of a symbolic dimension of an input, or NULL. */
const char *oxla_input_dim_name(const oxla_model *model, size_t index, int dim);
/* How many initializers the model's graph has, constants of the options included; 0 for a .oxla. */
size_t oxla_initializer_count(const oxla_model *model);
/* A value of the model's metadata_props, or NULL. */
const char *oxla_metadata(const oxla_model *model, const char *key);

/* Writes a .oxla file with every program of this model that is kept. */
oxla_error *oxla_save(oxla_model *model, const char *path);
/* The bytes of that file, to be freed with oxla_free. */
oxla_error *oxla_save_memory(oxla_model *model, void **bytes, size_t *size);
/* Frees what oxla_save_memory and oxla_profile gave.  NULL is fine. */
void oxla_free(void *memory);

/* --- checking: whether a model can be compiled --- */

/* Whether the model can be compiled, as far as can be told without doing it: names all unsupported operators at once,
 * then what else is wrong or unsupported, then outputs whose declared type or shape is not what they are. */
oxla_error *oxla_check(oxla_model *model);

/* Is told of a node: its number in the graph, OXLA_INVALID_MODEL or OXLA_UNSUPPORTED, and why. */
typedef void oxla_finding_fn(void *data, size_t node, oxla_code code, const char *message);

/* Looks at every node of an ONNX model in memory, as far as importing goes, and calls `found` for each that is wrong or
 * not supported.  What depends on such a node is not looked at.  Open dimensions are taken for 1, so that what is found
 * "invalid" may be right at another size.  Of the options only the backend counts. */
oxla_error *oxla_survey(const void *bytes, size_t size, const oxla_options *options, oxla_finding_fn *found,
                        void *data);

/* --- runs: inputs, compiling, executing --- */

/* A run holds inputs, outputs and what executes them: one for each thing that goes on at the same time.  It is worth
 * keeping, since its memory serves the next execution. */
oxla_error *oxla_run_create(oxla_model *model, oxla_run **out);
/* Ends what oxla_start began, as oxla_cancel would, and waits for it.  NULL is fine. */
void oxla_run_destroy(oxla_run *run);

/* Sets an input by its name or by its index.  The data is borrowed until the run's next execution is over, or
 * oxla_keep_inputs; it may stay for further ones, with new contents too.  NULL: none yet, which is enough for
 * oxla_compile, unless a size depends on it (OXLA_ABOUT_VALUE).  Data at a multiple of 64 bytes is used where it is. */
oxla_error *oxla_set_input(oxla_run *run, const char *name, oxla_type type, int rank, const int64_t *dims,
                           const void *data);
oxla_error *oxla_set_input_at(oxla_run *run, size_t index, oxla_type type, int rank, const int64_t *dims,
                              const void *data);
/* Copies the data of the inputs that are set into memory of the run's own: what was borrowed is the caller's again. */
oxla_error *oxla_keep_inputs(oxla_run *run);
/* Writes an output into memory of the caller's, of exactly the output's size, from the next execution on (which fails
 * if it has another size then).  NULL: back to memory of the run's own. */
oxla_error *oxla_set_output(oxla_run *run, const char *name, void *data, size_t bytes);
oxla_error *oxla_set_output_at(oxla_run *run, size_t index, void *data, size_t bytes);
/* The seed of the run's random numbers, from the next execution on: the same seed gives the same numbers.  Without it
 * every execution draws anew.  Operators with an attribute `seed` have their own: they give the same numbers every
 * time. */
oxla_error *oxla_set_seed(oxla_run *run, uint64_t seed);
/* The time that an oxla_compile or oxla_execute of this run may take, compiling included, before it ends with
 * OXLA_RESOURCE, "the time limit has passed".  0: what the model's options say. */
oxla_error *oxla_set_max_seconds(oxla_run *run, double seconds);

/* Makes the program for the inputs' shapes if it is not there yet (oxla_execute does it too).  A model keeps the
 * programs of its runs and up to 64 others, those that were used last. */
oxla_error *oxla_compile(oxla_run *run);
/* Computes the outputs, and returns when they are there. */
oxla_error *oxla_execute(oxla_run *run);
/* From any thread: as long as it is on, what the run compiles or executes ends soon with OXLA_RESOURCE, "cancelled",
 * also if it begins later.  Switching it off is for what begins after that: an execution that it met ends cancelled, or
 * complete.  After "cancelled" outputs are as good as never written. */
void oxla_cancel(oxla_run *run, int on);

/* --- outputs: shapes and results --- */

/* An output by its name or by its index.  After oxla_compile: type and dims, -1 where a size depends on what the model
 * computes; after oxla_execute: what it is, and the data, borrowed until the run's next execution or its end. */
oxla_error *oxla_get_output(const oxla_run *run, const char *name, oxla_tensor *out);
oxla_error *oxla_get_output_at(const oxla_run *run, size_t index, oxla_tensor *out);
/* Makes the data of an output, as oxla_get_output gave it, the caller's own: it stays until oxla_free_output or the
 * model's end.  The run's next execution takes other memory. */
oxla_error *oxla_take_output(oxla_run *run, const oxla_tensor *output);
/* Frees what was taken from a run of this model, from any thread.  NULL is fine. */
void oxla_free_output(oxla_model *model, void *data);

/* --- events: executing in the background --- */

/* Is told that an event has come, on a thread of the run's, before waiters wake up.  It may write to a pipe or wake
 * another thread; of the run it may use nothing. */
typedef void oxla_done_fn(void *data);

/* Begins what oxla_execute does, on a thread of the run's, and returns at once.  Inputs, and outputs of the caller's,
 * stay borrowed until the event has come, and until then every other call on the run but oxla_cancel and
 * oxla_run_destroy is refused.  `done` may be NULL. */
oxla_error *oxla_start(oxla_run *run, oxla_done_fn *done, void *data, oxla_event **event);
/* Waits until the execution is over, that many seconds at most; below 0: as long as it takes; 0: only looks.  *over
 * (NULL is fine) tells whether it is.  Returns an error of its own to everyone who asks when the execution failed, NULL
 * while it goes on. */
oxla_error *oxla_event_wait(oxla_event *event, double seconds, int *over);
/* Before or after it has come; the execution does not end for it.  NULL is fine. */
void oxla_event_destroy(oxla_event *event);

/* --- profiles: where the time goes --- */

typedef enum oxla_profile_format {
  OXLA_PROFILE_JSON = 0, /* one object: times by thunk, kind, ONNX operator and node, and what the machine can reach */
  OXLA_PROFILE_TRACE = 1 /* the fastest run, for Chrome's tracing page or Perfetto */
} oxla_profile_format;

/* Executes the run `warm_up` times, then `runs` times (at least once) with a clock around each step, measures the
 * machine for some tenths of a second, and gives the report, which oxla_free frees.  Other executions cost nothing
 * for it. */
oxla_error *oxla_profile(oxla_run *run, int warm_up, int runs, oxla_profile_format format, char **text);

/* --- versions: what this library is --- */

/* The newest ONNX IR version and ai.onnx operator set that are read. */
oxla_error *oxla_onnx_versions(int *ir_version, int *opset_version);
/* "onnx-xla 0.1.0 (oneDNN 2.6.3, OpenBLAS 0.3.21)"; static. */
const char *oxla_version(void);

#ifdef __cplusplus
}
#endif

#endif
