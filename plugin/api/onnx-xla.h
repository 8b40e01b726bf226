/* onnx-xla.h - the C API of onnx-xla: load an ONNX model or a compiled .oxla file, run it.
 *
 *   oxla_model *model = NULL;
 *   oxla_error *error = oxla_load("model.onnx", NULL, &model);
 *   oxla_run *run = NULL;
 *   if (!error) error = oxla_run_create(model, &run);
 *   if (!error) error = oxla_set_input(run, "x", OXLA_FLOAT, 2, (int64_t[]){1, 4}, data);
 *   if (!error) error = oxla_execute(run);
 *   oxla_tensor y;
 *   if (!error) error = oxla_get_output(run, "y", &y);
 *   if (error) { fprintf(stderr, "%s\n", oxla_error_message(error)); oxla_error_free(error); }
 *   oxla_run_destroy(run);
 *   oxla_model_destroy(model);
 *
 * Functions of type oxla_error * return NULL if they succeed, otherwise an error that the caller frees with
 * oxla_error_free.  After an error their other results must not be used; a pointer to a new model or run is then NULL.
 * The error is OXLA_INVALID_ARGUMENT if a pointer is NULL where the function needs one, if an index is too large, and
 * if a name is not in the model.  Names and other texts are UTF-8 and end with a zero byte.  Sizes of memory are in
 * bytes.
 *
 * A model may be used from any number of threads at the same time, until oxla_model_destroy.  A run may be used by only
 * one thread at a time, and by none between oxla_start and the end of that execution; the exceptions are oxla_cancel,
 * which any thread may call at any time, and oxla_run_destroy, which waits for the end of the execution.  Any number of
 * runs of a model may execute at the same time.  An event may be used from any thread.  Callbacks are called on any
 * thread.  A forked child may go on using the models and runs of its parent, on one thread.  The library never prints
 * and never ends the process.  It reads no environment variables except ONNX_XLA_CACHE and ONNX_XLA_TUNE, and
 * XDG_CACHE_HOME and HOME to find the user's cache folder, if the options `cache` and `tune` do not say otherwise;
 * ONNX_XLA_CUDA_DRIVER, the path of CUDA's driver, when the first GPU is used; and for tests ONNX_XLA_EMULATOR_ORDER,
 * with the backend "gpu:host".
 *
 * Names, numbers and layouts do not change from version to version of the library.  New versions add functions, and
 * fields at the end of oxla_options. */
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
  OXLA_INVALID_FILE = 2,     /* a file, or bytes in memory, that are damaged or of another format */
  OXLA_INVALID_MODEL = 3,    /* breaks a rule of the ONNX standard */
  OXLA_UNSUPPORTED = 4,      /* valid, but onnx-xla cannot do it yet */
  OXLA_RESOURCE = 5,         /* memory, time or a size limit is used up, or the run was cancelled */
  OXLA_IO = 6,               /* an error of the operating system, such as a file that cannot be read */
  OXLA_INTERNAL = 7          /* a bug in onnx-xla */
} oxla_code;

/* What the error is about, for programs that need to know. */
typedef enum oxla_subject {
  OXLA_ABOUT_NOTHING = 0,
  OXLA_ABOUT_VERSION = 1,  /* the version of the ONNX standard or of an operator set */
  OXLA_ABOUT_OPERATOR = 2, /* an operator as a whole */
  OXLA_ABOUT_TYPE = 3,     /* an element type */
  OXLA_ABOUT_SHAPE = 4,    /* a rank or dimension */
  OXLA_ABOUT_VALUE = 5,    /* contents of an input that decide sizes, an index out of range, or a divisor of 0 */
  OXLA_ABOUT_BACKEND = 6,  /* the backend, or the library that contains the compiler, cannot be found */
  OXLA_ABOUT_NAME = 7      /* the name of an input, output, constant or dimension */
} oxla_subject;

/* Returns OXLA_OK for NULL. */
oxla_code oxla_error_code(const oxla_error *error);
/* Returns OXLA_ABOUT_NOTHING for NULL. */
oxla_subject oxla_error_subject(const oxla_error *error);
/* Returns the node to which the error belongs: "fc1: Gemm", or "Gemm that makes "y"" if it has no name.  If the
 * error belongs to a node in a loop's body or in a function, that inner node is returned.  If several nodes run as one,
 * all are named: "fc1: Gemm + act: Relu".  If time or memory ran out, it is the node that was being compiled or run.
 * Returns "" if the error belongs to no node, and for NULL.  The text is valid until oxla_error_free. */
const char *oxla_error_node(const oxla_error *error);
/* Returns one line of UTF-8 that names the node, the value and the rule that was broken, or "" for NULL.  The text is
 * valid until oxla_error_free. */
const char *oxla_error_message(const oxla_error *error);
/* Frees an error.  NULL is allowed. */
void oxla_error_free(oxla_error *error);

/* --- tensors: types and arrays --- */

/* The type of an element.  The numbers are those of ONNX's TensorProto.DataType. */
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

/* An array, or the declaration of one.  It is row-major and contiguous.  Elements of types with less than 8 bits
 * (OXLA_INT4, OXLA_UINT2, OXLA_FLOAT4E2M1, OXLA_FLOAT6E2M3 and others) take one byte each; for signed integers the byte
 * extends the sign, for others its high bits are 0.  OXLA_BOOL takes one byte, 0 or 1.  OXLA_STRING takes a uint64_t,
 * the number of a string (oxla_string_number). */
typedef struct oxla_tensor {
  oxla_type type;
  int rank; /* -1 in declarations: no tensor, or a rank that is any, or not known before an execution */
  int64_t dims[OXLA_MAX_RANK]; /* the first `rank` are sizes in elements; -1 is a size that is not known yet */
  void *data;                  /* NULL if there is no data: in declarations, and before an execution */
  size_t bytes;                /* the size of the array; 0 in declarations, and if a size is not known yet */
} oxla_tensor;

/* The kinds of values that a model may have as inputs and outputs. */
typedef enum oxla_kind {
  OXLA_TENSOR = 0,
  OXLA_SEQUENCE = 1, /* a list of tensors of one element type, and of any shapes */
  OXLA_OPTIONAL = 2, /* declared: a tensor, a sequence or nothing; as the value of an output: nothing */
  OXLA_MAP = 3,      /* a tensor for each key; in this interface one array of keys and one of as many values */
  OXLA_MAPS = 4      /* a sequence of maps */
} oxla_kind;

/* The types of devices, with DLPack's numbers. */
typedef enum oxla_device_type {
  OXLA_DEVICE_HOST = 1, /* the host's memory */
  OXLA_DEVICE_CUDA = 2, /* a CUDA device, in whose primary context the memory is */
  OXLA_DEVICE_OTHER = 12
} oxla_device_type;

typedef struct oxla_device {
  oxla_device_type type;
  int id; /* the number of a CUDA device; otherwise 0 */
} oxla_device;

/* The direction in which oxla_device_copy copies. */
typedef enum oxla_copy { OXLA_TO_DEVICE = 1, OXLA_FROM_DEVICE = 2, OXLA_WITHIN_DEVICE = 3 } oxla_copy;

/* --- options: how a model is loaded --- */

typedef struct oxla_dim {
  const char *name; /* the name of a symbolic dimension */
  int64_t value;    /* its size in elements, from 0 to 2^56 */
} oxla_dim;

typedef struct oxla_range {
  const char *name; /* the name of a symbolic dimension */
  int64_t least;    /* the smallest size that is allowed, in elements; from 0 */
  int64_t most;     /* the largest size that is allowed, in elements; at least `least`, and at most 2^56 */
} oxla_range;

/* An input that never changes, such as weights that are not in the file.  It is compiled into the program and is not an
 * input of the opened model.  Its name must be that of an input, with the type and the sizes that the model declares.
 * If the input has an initializer, the constant replaces it; before ONNX's IR version 4, that is an error.  HLO text
 * and .oxla files take no constants. */
typedef struct oxla_constant {
  const char *name;
  oxla_type type;
  int rank;
  const int64_t *dims; /* `rank` sizes in elements */
  const void *data;    /* must remain valid until the model is destroyed; everything else is copied */
} oxla_constant;

/* An output that becomes an input of the next execution of the same run, such as the keys and values of past tokens.
 * Both have the same type and rank.  See oxla_options.carried. */
typedef struct oxla_carried {
  const char *output;
  const char *input;
  int axis; /* the dimension along which the output is longer than the input; -1 if both have the same shape */
} oxla_carried;

typedef enum oxla_log_level {
  OXLA_LOG_WARNING = 1, /* something works less well than it could, for example compiled programs cannot be kept */
  OXLA_LOG_INFO = 2,    /* what takes time: a model is opened, a program is compiled or found in the cache */
  OXLA_LOG_DEBUG = 3    /* each execution, and other details */
} oxla_log_level;

/* Receives one line of the log, without the newline; `data` is oxla_options.log_data.  The text is valid only during
 * the call.  The function may be called by several threads at once and must not call functions of the model. */
typedef void oxla_log_fn(void *data, oxla_log_level level, const char *line);

/* Allocates arrays and what models keep in memory: weights, programs, memory of runs, outputs. (Small bookkeeping,
 * threads and the libraries that compile use malloc; memory of a GPU is allocated by CUDA.) allocate returns memory of
 * `bytes` bytes at an address that is a multiple of `align`, which is a power of two.  If it returns NULL, the error is
 * OXLA_RESOURCE.  release receives what allocate returned, with the same numbers.  Both get the member `data` and may
 * be called by several threads at once.  They must work until oxla_model_destroy has returned and all tensors of
 * oxla_take_output_dlpack are freed. */
typedef struct oxla_allocator {
  void *(*allocate)(void *data, size_t bytes, size_t align);
  void (*release)(void *data, void *memory, size_t bytes, size_t align);
  void *data;
} oxla_allocator;

/* Set size to sizeof(oxla_options) and everything else to 0 to get the defaults.  Newer versions add fields at the end.
 * A library that is older than the program refuses fields that it does not know, unless they are 0. */
typedef struct oxla_options {
  size_t size;
  /* "cpu" (default), "gpu" or "gpu:N" (an NVIDIA GPU), "gpu:host" (the kernels for GPUs on an emulator), "ref", or the
   * path of a backend's shared object, which must contain a slash.  Options that mean nothing to the backend are
   * errors: `lanes` with a GPU, and `lanes` and `cpu` with "ref". */
  const char *backend;
  const char *cpu; /* the processor or GPU to compile for: "native" (default), "x86-64", "x86-64-v3", "sm_90", ... */
  int threads;     /* the number of threads of a run, at most 256; 0 means all cores */
  int lanes; /* the number of f32 lanes of a vector: 1, 4, 8, 16; 0 means as many as the processor's widest have */
  const oxla_dim *dims; /* values of symbolic dimensions of the inputs; a name that no input has is an error */
  size_t n_dims;
  /* The limit in bytes of host memory for loading, compiling and runs, including their outputs; 0 means no limit. */
  uint64_t max_memory;
  /* The limit in seconds for loading, for each compilation and for each execution; 0 means no limit. */
  double max_seconds;
  /* Says what happens if the size of a symbolic dimension is needed but neither `dims` nor `ranges` nor the inputs of
   * the run tell it.  0: the size is taken to be 1; otherwise this is an error. */
  int closed_dims;
  const oxla_constant *constants;
  size_t n_constants;
  const char *skip_passes; /* passes that the compiler leaves out, such as "fold,cse", to find one that does harm */
  /* How the algorithms of convolutions and matrix products are chosen: "off" (by estimates), "fast" (measured once, for
   * a few seconds at most), "full" (measured, without a limit of time).  NULL means "off" if `deterministic` is set,
   * otherwise the value of ONNX_XLA_TUNE, or "fast". */
  const char *tune;
  /* The folder in which data is kept between processes; NULL means the value of ONNX_XLA_CACHE, or the folder onnx-xla
   * in the user's cache; "" means that nothing is kept. */
  const char *cache;
  int exact; /* if not 0, algorithms that round differently from a plain sum of products (Winograd) are not used */
  /* The number of bytes that compiled programs may take in the folder that `cache` names; 0 means 8 GiB.  When a model
   * is opened again, its program is mapped from there and not compiled.  If `cache` is NULL or "", programs are not
   * kept. */
  uint64_t cache_bytes;
  /* "tf32", "bf16" or "fp16": f32 operands of matrix products and convolutions may be rounded to that type; sums stay
   * f32.  CPUs have no tf32 and round to the others where this is measured to be faster; GPUs do it by tensor cores.
   * "fp32" (default): nothing is rounded.  If `exact` is set, every value but "fp32" is an error.  If nothing is
   * measured (`tune` is "off", or `deterministic` is set), "bf16" and "fp16" are errors. */
  const char *precision;
  oxla_log_fn *log; /* may be NULL */
  void *log_data;
  const oxla_allocator *allocator; /* is copied; NULL means the system's allocator */
  /* If not 0, the result has the same bits for any number of threads that a model is compiled for, each time that it is
   * compiled: nothing is measured (a `tune` other than "off" is an error), and work is divided as for 8 threads
   * whatever `threads` is.  Other processors, versions and options may still round differently. */
  int deterministic;
  /* If not 0, all constants of a .oxla file, and of programs in the cache, are read and compared with their checksums
   * when they are opened.  Damage is OXLA_INVALID_FILE; a damaged program in the cache is compiled again.  By default
   * constants of a .oxla file are not read before they are used, and those in the cache are compared once a boot. */
  int verify;
  /* If not 0, an index out of range (in Gather and similar operators) and an integer division by 0 give an arbitrary
   * number; if 0, the execution fails with OXLA_INVALID_ARGUMENT and a message that names node and value. */
  int unchecked;
  /* If not 0, each step of a run is checked for accesses to memory that is not its own, and each result for bytes that
   * were never written; OXLA_INTERNAL names the step.  Runs take longer, and install a handler for SIGSEGV. */
  int check_memory;
  /* Says when a program for one set of sizes is compiled and tuned (`tune`).  "auto" (default): in the background, with
   * low priority and while no execution is in progress.  The first execution does not wait for it.  If the model leaves
   * sizes open, one program serves all of them, and only sizes that come often get a program of their own.  Later
   * executions use the tuned program, whose results may differ in the last digits.  Nothing is done in the background
   * if `tune` is "off", if a carried output grows (oxla_carried.axis), or for a .oxla file.  "off": never.  "full": a
   * program is compiled for each set of sizes before they first run, and the first of these programs is tuned.  If
   * `tune` is "full", each set of sizes gets a tuned program before they first run, whatever this option says. */
  const char *specialise;
  /* The limit, in megabytes of 2^20 bytes, for the programs that are kept for further executions: their code, steps,
   * memory of runs, and weights in forms that no other program uses.  Above the limit, the programs that were not used
   * for the longest time are freed, but never a program in use.  What a program for all sizes keeps for one set of
   * sizes is made again in microseconds, so it may take only a 128th part of this memory.  0 means 256, or twice the
   * memory of the weights if that is more. */
  int program_memory;
  /* Outputs that are carried from each execution of a run to the next one.  The caller sets the inputs before the first
   * execution (the data of an empty input may be NULL), and later only to begin anew; oxla_rewind makes them shorter.
   * If an output is its input with rows appended, both are in one array of the run, which has room to grow, and only
   * the new rows are written.  If an output is its input with elements updated by TensorScatter, only these elements
   * are written.  Other carried outputs are copied or change places with their inputs.  For a carried output,
   * oxla_get_output returns a copy, and memory of the caller (oxla_set_output) is refused.  A model with carried
   * outputs cannot be saved (oxla_save). */
  const oxla_carried *carried;
  size_t n_carried;
  /* The sizes that symbolic dimensions of the inputs may have; a dimension must not be in `dims`, too.  Programs for
   * all sizes then serve the sizes in these ranges, other sizes are refused with OXLA_INVALID_ARGUMENT
   * (OXLA_ABOUT_SHAPE), and an input whose shape is not set gets the largest sizes. */
  const oxla_range *ranges;
  size_t n_ranges;
  /* The backend that takes the place of `backend` if its device cannot be used, for example because there is no driver;
   * all other options then apply to this backend.  A warning is logged, and oxla_model_backend tells which of the two
   * is in use.  NULL (default): loading the model then fails, unless `cpu` names a GPU: the model can then be compiled
   * and saved for another machine, and its first execution here fails.  A .oxla file is for one backend, so this option
   * does not apply to it. */
  const char *fallback;
} oxla_options;

/* --- models: loading, describing, saving --- */

/* Opens the ONNX model, HLO text or .oxla file at `path` and compiles nothing yet.  `options` may be NULL.  The caller
 * frees *out with oxla_model_destroy.  A file of at most a MiB is read and not used afterwards.  A larger file, and
 * large files of external data, stay mapped until the model is destroyed.  They may be replaced by renaming other files
 * over them.  If somebody writes to them, this is noticed: later compilations, and executions that read them, return
 * OXLA_IO.  But if a file is truncated while an execution reads it, SIGBUS ends the process.  Where others may do that,
 * read the file into your own memory and use oxla_load_memory. */
oxla_error *oxla_load(const char *path, const oxla_options *options, oxla_model **out);
/* Like oxla_load, for the `size` bytes of a file in memory, which must remain valid until the model is destroyed.  The
 * bytes of a .oxla file are copied unless their address is a multiple of 64.  External data is not looked for. */
oxla_error *oxla_load_memory(const void *bytes, size_t size, const oxla_options *options, oxla_model **out);
/* Frees a model, all of whose runs must have been destroyed before.  NULL is allowed.  If no tuned program is ready and
 * there is a cache, this may first compile a program for the next process, in some tenths of a second. */
void oxla_model_destroy(oxla_model *model);

/* Returns the name of the backend with which the model computes: oxla_options.backend, or oxla_options.fallback if that
 * took its place.  If the options name no backend, it is "cpu", and for a .oxla file the backend for which the file was
 * made.  The text is valid until oxla_model_destroy.  Returns "" for NULL. */
const char *oxla_model_backend(const oxla_model *model);

/* Return the number of inputs that must be given, and of outputs, in the graph's order; 0 for NULL. */
size_t oxla_input_count(const oxla_model *model);
size_t oxla_output_count(const oxla_model *model);
/* Return the name of an input or output, which is valid until oxla_model_destroy; NULL if there is none. */
const char *oxla_input_name(const oxla_model *model, size_t index);
const char *oxla_output_name(const oxla_model *model, size_t index);
/* Returns the declared type and dims of an input; a dimension without a fixed size is -1.  data and bytes are 0. */
oxla_error *oxla_input_type(const oxla_model *model, size_t index, oxla_tensor *out);
/* Like oxla_input_type, for an output; the type is 0 if the model does not declare it.  The type and dims of the output
 * that a run computes are returned by oxla_get_output. */
oxla_error *oxla_output_type(const oxla_model *model, size_t index, oxla_tensor *out);
/* Return the declared kind of an input or output, OXLA_TENSOR if there is none of that index.  Sequences and optionals
 * have the type of their tensors (oxla_input_type). */
oxla_kind oxla_input_kind(const oxla_model *model, size_t index);
oxla_kind oxla_output_kind(const oxla_model *model, size_t index);
/* Returns the name of dimension `dim`, counted from 0, of an input.  Returns NULL if the dimension has a fixed size or
 * no name, or does not exist.  The text is valid until oxla_model_destroy. */
const char *oxla_input_dim_name(const oxla_model *model, size_t index, int dim);
/* Returns the number of initializers of the model's graph, with the constants of the options; 0 for a .oxla file. */
size_t oxla_initializer_count(const oxla_model *model);
/* Returns the value of `key` in the model's metadata_props, which is valid until oxla_model_destroy, or NULL. */
const char *oxla_metadata(const oxla_model *model, const char *key);

/* Waits like oxla_await_tuned, and writes a .oxla file with all programs of this model that are kept in memory.  The
 * error is OXLA_INVALID_ARGUMENT if nothing has been compiled yet.  Programs whose code calls functions of this library
 * are compiled again, so that any onnx-xla can run the file. */
oxla_error *oxla_save(oxla_model *model, const char *path);
/* Returns the bytes of the .oxla file that oxla_save would write.  The caller frees them with oxla_free. */
oxla_error *oxla_save_memory(oxla_model *model, void **bytes, size_t *size);
/* Frees what oxla_save_memory or oxla_profile returned.  NULL is allowed. */
void oxla_free(void *memory);

/* --- checking: whether a model can be compiled --- */

/* Returns an error if the model cannot be compiled, as far as can be told without compiling it.  If operators are
 * unsupported, the message names all of them.  Otherwise it names the first thing that is wrong or unsupported, or an
 * output whose declared type or shape is not its actual one. */
oxla_error *oxla_check(oxla_model *model);

/* Receives a finding: the index of the node in the graph, OXLA_INVALID_MODEL or OXLA_UNSUPPORTED, and the reason, a
 * text that is valid only during the call. */
typedef void oxla_finding_fn(void *data, size_t node, oxla_code code, const char *message);

/* Imports every node of an ONNX model, which is the `size` bytes at `bytes`, and calls found(data, ...) for each node
 * that is invalid or not supported.  Such nodes are no error of this function; it fails if the model cannot be read.
 * Nodes that depend on such a node are not checked.  Symbolic dimensions are taken to be 1, so a node that is reported
 * as invalid may be valid at another size.  Of the options only the backend matters. */
oxla_error *oxla_survey(const void *bytes, size_t size, const oxla_options *options, oxla_finding_fn *found,
                        void *data);

/* --- runs: inputs, compiling, executing --- */

/* Creates a run, which the caller frees with oxla_run_destroy before the model.  A run holds inputs, outputs and the
 * memory that an execution needs.  Use one run for each execution that happens at the same time.  It is worth keeping a
 * run, since the next execution uses its memory again. */
oxla_error *oxla_run_create(oxla_model *model, oxla_run **out);
/* Frees a run.  If an execution that oxla_start began is in progress, it is cancelled as by oxla_cancel, and this
 * function waits for its end.  NULL is allowed. */
void oxla_run_destroy(oxla_run *run);

/* Sets an input by its name or by its index.  `dims` has `rank` sizes in elements, which are copied.  The data is
 * borrowed: it must remain valid until the run's next execution is over, or until oxla_keep_inputs.  The input stays
 * set, so a further execution reads the same address again, and the data must still be there; its contents may be
 * changed between executions.  If `data` is NULL, only type and dims are set, which is enough for oxla_compile unless a
 * size depends on the data (OXLA_ABOUT_VALUE).  The error is OXLA_INVALID_ARGUMENT (OXLA_ABOUT_TYPE or
 * OXLA_ABOUT_SHAPE) if the type or the rank is not the declared one; sizes are checked when the run is compiled.  Data
 * whose elements are aligned is used in place on CPUs, and data of a device that is at a multiple of 64 bytes; other
 * data is copied. */
oxla_error *oxla_set_input(oxla_run *run, const char *name, oxla_type type, int rank, const int64_t *dims,
                           const void *data);
oxla_error *oxla_set_input_at(oxla_run *run, size_t index, oxla_type type, int rank, const int64_t *dims,
                              const void *data);
/* Sets an input that is a sequence, or an optional sequence, to n tensors of that type, in host memory.  Of each tensor
 * type, rank, dims and data are read.  Their data is borrowed as by oxla_set_input; the list is copied. */
oxla_error *oxla_set_sequence(oxla_run *run, const char *name, oxla_type type, size_t n, const oxla_tensor *elements);
/* Sets an input that is an optional to nothing.  oxla_set_input or oxla_set_sequence gives it an element. */
oxla_error *oxla_set_absent(oxla_run *run, const char *name);
/* Sets an input that is a map to its keys, which are OXLA_INT64 or OXLA_STRING, and to as many values, of rank 1 both.
 */
oxla_error *oxla_set_map(oxla_run *run, const char *name, const oxla_tensor *keys, const oxla_tensor *values);
/* Makes the input of a carried output shorter: the next execution sees only the input's first `length` elements along
 * the dimension in which it grows (oxla_carried.axis).  The input's value must have been computed by an execution, and
 * must be at least that long. */
oxla_error *oxla_rewind(oxla_run *run, const char *input, int64_t length);
/* Sets *out to the number of a string of n bytes, by which arrays of OXLA_STRING name it in the inputs and outputs of
 * this run.  Equal strings have equal numbers, the empty one has 0, and the strings of the model come first, so their
 * numbers are the same in all runs.  The run keeps a copy of a string that it did not know until oxla_forget_strings,
 * also of strings that an execution makes. */
oxla_error *oxla_string_number(oxla_run *run, const char *bytes, size_t n, uint64_t *out);
/* Returns the bytes of the string with that number, followed by a NUL, and sets *n, which may be NULL, to how many they
 * are; returns NULL if there is none.  They are valid until oxla_forget_strings or oxla_run_destroy.  Must
 * not be called while an execution is in progress. */
const char *oxla_string_bytes(const oxla_run *run, uint64_t number, size_t *n);
/* Forgets the strings that are not the model's, and their numbers: for a run that gets new ones for ever. */
void oxla_forget_strings(oxla_run *run);
/* Copies the data of all inputs that are set and in host memory into the run, so that the caller may reuse its own. */
oxla_error *oxla_keep_inputs(oxla_run *run);
/* From the next execution on, an output is written to `data`, memory of the caller, and not to memory of the run.  The
 * memory is borrowed until the output is set anew or the run is destroyed.  `bytes` must be exactly the size of the
 * output; an execution fails if the output has another size, or if a byte of `data` belongs to an input or to another
 * output.  But `data` may be the whole memory of one input, with the same address and size: the execution replaces the
 * input by the output.  If the output is that input with some elements updated (by TensorScatter, ScatterElements,
 * ScatterND), only these elements are written; other outputs are computed in memory of the run and then copied.  After
 * an execution that fails, the contents of such memory are undefined.  If `data` is NULL, the output is written to
 * memory of the run again. */
oxla_error *oxla_set_output(oxla_run *run, const char *name, void *data, size_t bytes);
oxla_error *oxla_set_output_at(oxla_run *run, size_t index, void *data, size_t bytes);
/* Sets the seed of the run's random numbers from the next execution on.  The same seed gives the same numbers in each
 * execution.  Without a seed each execution draws different ones.  Operators with an attribute `seed` use that instead
 * and give the same numbers every time. */
oxla_error *oxla_set_seed(oxla_run *run, uint64_t seed);
/* Limits the time in seconds that an oxla_compile or oxla_execute of this run may take, including compilation.  When
 * the time has passed, the function returns OXLA_RESOURCE, "the time limit has passed". `seconds` 0 means the limit in
 * the model's options (max_seconds); a negative number is an error. */
oxla_error *oxla_set_max_seconds(oxla_run *run, double seconds);

/* Compiles the program for the shapes of the inputs unless it exists already; oxla_execute does this too.  A model
 * keeps the programs that its runs are using, and others as oxla_options.program_memory says. */
oxla_error *oxla_compile(oxla_run *run);
/* Compiles the programs for all sizes of the ranges in the model's options, which oxla_save then writes: one for all
 * sizes, and more where sizes need it, such as a batch of 1.  Types, shapes and data that decide sizes come from the
 * run.  Returns OXLA_UNSUPPORTED if no program can serve the ranges. */
oxla_error *oxla_compile_ranges(oxla_run *run);
/* Computes the outputs and returns when they are complete. */
oxla_error *oxla_execute(oxla_run *run);
/* Switches cancelling on, or off if `on` is 0.  May be called from any thread.  While it is on, every compilation and
 * execution of the run ends soon with OXLA_RESOURCE, "cancelled", also one that begins later.  Switching it off affects
 * what begins afterwards; an execution that was running meanwhile ends either cancelled or complete.  After "cancelled"
 * the contents of outputs are undefined. */
void oxla_cancel(oxla_run *run, int on);

/* --- outputs: shapes and results --- */

/* Return an output by its name or by its index.  After oxla_compile they return type and dims, with -1 for a size that
 * depends on what the model computes, and no data.  After oxla_execute they return the actual type, dims and data; the
 * data is borrowed until the run's next execution or until oxla_run_destroy.  If the run has not been compiled since
 * the type or the dims of an input were changed, the error is OXLA_INVALID_ARGUMENT. */
oxla_error *oxla_get_output(const oxla_run *run, const char *name, oxla_tensor *out);
oxla_error *oxla_get_output_at(const oxla_run *run, size_t index, oxla_tensor *out);
/* Sets *kind to the kind of the value that the last execution computed for an output, and *n to the number of tensors
 * or maps that it has: 1 for a tensor, which oxla_get_output returns, 0 for an optional without an element. */
oxla_error *oxla_get_elements(const oxla_run *run, const char *name, oxla_kind *kind, size_t *n);
/* Returns tensor `index` of an output that is a sequence.  The data is borrowed as that of oxla_get_output. */
oxla_error *oxla_get_element(const oxla_run *run, const char *name, size_t index, oxla_tensor *out);
/* Returns the keys and the values of an output that is a map, or of map `index` of one that is a sequence of maps. */
oxla_error *oxla_get_map(const oxla_run *run, const char *name, size_t index, oxla_tensor *keys, oxla_tensor *values);
/* Makes the caller the owner of the data of an output that oxla_get_output returned.  The data is valid until
 * oxla_free_output or until the model is destroyed.  The run's next execution uses other memory.  The error is
 * OXLA_INVALID_ARGUMENT if the data is not in memory of the run, but in the caller's (oxla_set_output). */
oxla_error *oxla_take_output(oxla_run *run, const oxla_tensor *output);
/* Frees data that was taken from a run of this model (oxla_take_output), or memory of oxla_device_allocate.  May be
 * called from any thread.  NULL is allowed. */
void oxla_free_output(oxla_model *model, void *data);

/* --- device memory: inputs and outputs that are not copied through the host --- */

/* Returns the device in whose memory the model computes.  For backends on the host it is OXLA_DEVICE_HOST, and the
 * device's memory is the host's: oxla_set_device_input then does exactly what oxla_set_input does, and
 * oxla_set_device_output what oxla_set_output does. */
oxla_error *oxla_model_device(const oxla_model *model, oxla_device *out);

/* Do what oxla_set_input and oxla_set_input_at do, for data in the memory of the model's device.  The data must be
 * complete when an execution begins.  At a multiple of 64 bytes it is used in place.  If the device is not the host:
 * the contents are not read before the execution, so an input that decides sizes (OXLA_ABOUT_VALUE) must be in host
 * memory; oxla_keep_inputs does not copy such data; and an input of a carried output (oxla_options.carried) cannot be
 * set by these functions. */
oxla_error *oxla_set_device_input(oxla_run *run, const char *name, oxla_type type, int rank, const int64_t *dims,
                                  const void *data);
oxla_error *oxla_set_device_input_at(oxla_run *run, size_t index, oxla_type type, int rank, const int64_t *dims,
                                     const void *data);
/* Do what oxla_set_output and oxla_set_output_at do, for `data` in the memory of the model's device.  If `data` is
 * NULL, the output is written to device memory of the run: oxla_get_output returns its address, until oxla_set_output
 * is called. The output is complete when the execution is over.  If the device is not the host, an execution fails with
 * OXLA_UNSUPPORTED if the output's size is not known before it, or if `data` is the memory of an input and the output
 * is not that input with some elements updated. */
oxla_error *oxla_set_device_output(oxla_run *run, const char *name, void *data, size_t bytes);
oxla_error *oxla_set_device_output_at(oxla_run *run, size_t index, void *data, size_t bytes);

/* Allocates `bytes` bytes of memory of the model's device.  It is freed by oxla_free_output, or with the model. */
oxla_error *oxla_device_allocate(oxla_model *model, size_t bytes, void **out);
/* Copies `bytes` bytes to, from or within memory of the model's device, and returns when they are there. */
oxla_error *oxla_device_copy(oxla_model *model, oxla_copy direction, void *to, const void *from, size_t bytes);

struct DLManagedTensor; /* declared by DLPack's dlpack.h */

/* Sets an input to a tensor of DLPack, which must be row-major and contiguous (otherwise OXLA_UNSUPPORTED), in host
 * memory or in the memory of the model's device (otherwise OXLA_INVALID_ARGUMENT).  The tensor is not copied.  If this
 * succeeds, the run owns the tensor and calls its deleter when the input is set anew or the run is destroyed; otherwise
 * the caller keeps the tensor. */
oxla_error *oxla_set_input_dlpack(oxla_run *run, const char *name, struct DLManagedTensor *tensor);
/* Takes an output, as oxla_take_output does, and returns it as a tensor of DLPack.  The tensor is in host
 * memory or, after oxla_set_device_output(run, name, NULL, 0), in the device's.  The caller frees it by
 * calling its deleter, on any thread.  The model's memory remains until all such tensors are freed, even if
 * oxla_model_destroy is called earlier. */
oxla_error *oxla_take_output_dlpack(oxla_run *run, const char *name, struct DLManagedTensor **out);

/* --- events: executing in the background --- */

/* A function that is called when an execution is over, on a thread of the run, before waiting threads wake up.  It gets
 * the `data` of oxla_start.  It may write to a pipe or wake another thread, but must use neither the run nor the event,
 * which is locked during the call. */
typedef void oxla_done_fn(void *data);

/* Begins what oxla_execute does, on a thread of the run, and returns at once.  The caller frees *event with
 * oxla_event_destroy.  Inputs, and outputs in memory of the caller, stay borrowed until the execution is over.  Until
 * then every other call on the run is refused except oxla_cancel and oxla_run_destroy.  When the execution is over,
 * done(data) is called; `done` may be NULL. */
oxla_error *oxla_start(oxla_run *run, oxla_done_fn *done, void *data, oxla_event **event);
/* Waits at most `seconds` seconds until the execution is over; a negative number means as long as it takes, 0 means not
 * at all.  Sets *over to 1 if the execution is over, otherwise to 0; `over` may be NULL.  If the execution failed,
 * every caller gets an error of its own.  If it is not over yet, the result is NULL.  In a forked child the error is
 * OXLA_RESOURCE, since the execution is in the parent only. */
oxla_error *oxla_event_wait(oxla_event *event, double seconds, int *over);
/* Frees an event, before or after the execution is over; the execution continues.  NULL is allowed. */
void oxla_event_destroy(oxla_event *event);

/* --- GPUs: which there are --- */

typedef struct oxla_gpu {
  char name[128]; /* such as "NVIDIA H100 PCIe" */
  /* The newest processor to compile for (oxla_options.cpu) whose code the GPU runs, such as "sm_90"; "" if the GPU is
   * too old for all of them. */
  char architecture[16];
  uint64_t memory_bytes;
  uint64_t operations; /* additions and multiplications of f32 in a second, at most; 0 if it is not known */
  uint64_t bandwidth;  /* bytes that its memory reads or writes in a second, at most; 0 if it is not known */
} oxla_gpu;

/* Sets *out to the number of NVIDIA's GPUs that CUDA's driver sees.  If there is none, or no driver, *out is 0 and the
 * error, OXLA_UNSUPPORTED, tells why. */
oxla_error *oxla_gpu_count(int *out);
/* Describes a GPU by its number, counted from 0; the backend "gpu:N" is the GPU with number N.  Code is compiled for
 * its architecture unless oxla_options.cpu names another one. */
oxla_error *oxla_describe_gpu(int number, oxla_gpu *out);

/* --- tuning and profiles: where the time goes --- */

/* Waits until no program of the model is being tuned in the background.  If programs may be tuned in the background
 * (oxla_options.specialise) but none has been tuned yet, one is tuned first, for the sizes of the last execution.
 * Executions that begin later use the tuned program, so a caller that measures times calls this after the first
 * execution.  NULL is allowed. */
void oxla_await_tuned(oxla_model *model);

typedef enum oxla_profile_format {
  /* One JSON object: times by thunk, kind, ONNX operator and node, and what the machine can reach. */
  OXLA_PROFILE_JSON = 0,
  OXLA_PROFILE_TRACE = 1 /* the fastest run, for Chrome's tracing page or for Perfetto */
} oxla_profile_format;

/* Waits until the program is tuned (oxla_await_tuned), executes the run `warm_up` times, then `runs` times (at least
 * once, and at most 10000 times) with a clock around each step, measures the machine for some tenths of a second, and
 * sets *text to the report, which the caller frees with oxla_free.  Other executions are not slowed down.  Each
 * execution replaces inputs whose memory is that of outputs (oxla_set_output).  But outputs are not carried to the next
 * execution (oxla_options.carried). */
oxla_error *oxla_profile(oxla_run *run, int warm_up, int runs, oxla_profile_format format, char **text);

/* --- versions: what this library is --- */

/* Sets *ir_version and *opset_version to the newest ONNX IR version and the newest version of the operator set ai.onnx
 * that can be read.  Fails if the library that contains the compiler cannot be opened. */
oxla_error *oxla_onnx_versions(int *ir_version, int *opset_version);
/* Returns a static text such as "onnx-xla 0.1.0, oneDNN 2.6.3 (cpu isa 63)".  Loads the library that it names, which
 * takes a few milliseconds the first time. */
const char *oxla_version(void);

#ifdef __cplusplus
}
#endif

#endif
