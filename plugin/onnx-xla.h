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
 * Functions that can fail return NULL or an error that the caller frees.  A model may be used from many threads at
 * once, a run from one at a time (but for oxla_cancel); a forked child goes on with its parent's, on one thread.  Nothing here
 * prints, exits or reads the environment. */
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
typedef struct oxla_error oxla_error;

/* Numbers are stable. */
typedef enum oxla_code {
  OXLA_OK = 0,
  OXLA_INVALID_ARGUMENT = 1, /* a wrong call, option, input name, type or shape */
  OXLA_INVALID_FILE = 2,     /* bytes that are not what they claim to be */
  OXLA_INVALID_MODEL = 3,    /* breaks a rule of the ONNX standard */
  OXLA_UNSUPPORTED = 4,      /* valid, but onnx-xla cannot do it yet */
  OXLA_RESOURCE = 5,         /* memory, time or a size limit is used up */
  OXLA_IO = 6,               /* the operating system refused */
  OXLA_INTERNAL = 7
} oxla_code;

oxla_code oxla_error_code(const oxla_error *error); /* OXLA_OK for NULL */
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

oxla_subject oxla_error_subject(const oxla_error *error);
/* One line that names the node, the value and the rule; valid until oxla_error_free. */
const char *oxla_error_message(const oxla_error *error);
void oxla_error_free(oxla_error *error);

/* ONNX's TensorProto.DataType numbers. */
typedef enum oxla_type {
  OXLA_FLOAT = 1, OXLA_UINT8 = 2, OXLA_INT8 = 3, OXLA_UINT16 = 4, OXLA_INT16 = 5, OXLA_INT32 = 6, OXLA_INT64 = 7,
  OXLA_STRING = 8, OXLA_BOOL = 9, OXLA_FLOAT16 = 10, OXLA_DOUBLE = 11, OXLA_UINT32 = 12, OXLA_UINT64 = 13,
  OXLA_COMPLEX64 = 14, OXLA_COMPLEX128 = 15, OXLA_BFLOAT16 = 16, OXLA_FLOAT8E4M3FN = 17, OXLA_FLOAT8E4M3FNUZ = 18,
  OXLA_FLOAT8E5M2 = 19, OXLA_FLOAT8E5M2FNUZ = 20, OXLA_UINT4 = 21, OXLA_INT4 = 22, OXLA_FLOAT4E2M1 = 23,
  OXLA_FLOAT8E8M0 = 24, OXLA_UINT2 = 25, OXLA_INT2 = 26, OXLA_FLOAT6E2M3 = 27, OXLA_FLOAT6E3M2 = 28
} oxla_type;

enum { OXLA_MAX_RANK = 16 };

/* An array: row-major, elements one after the other (4- and 2-bit types take a byte each, that of signed
 * ones extends the sign). */
typedef struct oxla_tensor {
  oxla_type type;
  int rank; /* -1: the model's input takes any */
  int64_t dims[OXLA_MAX_RANK];
  void *data;
  size_t bytes;
} oxla_tensor;

/* --- options --- */

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

/* Set size to sizeof(oxla_options) and the rest to 0 for the defaults; newer versions add fields at the end. */
typedef struct oxla_options {
  size_t size;
  const char *backend;    /* "cpu" (default), "ref", or the path of a backend's shared object */
  const char *cpu;        /* to compile for: "native" (default), "x86-64", "x86-64-v3", ... */
  int threads;            /* of a run; 0: all cores */
  int lanes;              /* f32 lanes of a vector; 0: the cpu's widest */
  const oxla_dim *dims;   /* values of symbolic dimensions */
  size_t n_dims;
  uint64_t max_memory;    /* bytes for loading, compiling and runs, their outputs included; 0: no limit */
  double max_seconds;     /* for loading and compiling, and for each run; 0: no limit */
  int closed_dims;        /* not 0: a dimension without a value is an error where a run's inputs do not tell it */
  const oxla_constant *constants;
  size_t n_constants;
  const char *skip_passes; /* "fold,cse": passes that the compiler leaves out, to find the one that does harm */
  const char *tune;  /* how contractions are chosen: "off" (by rules), "fast" (default: timed for a few seconds at most, once), "full" */
  const char *cache; /* folder of what is kept between processes; NULL: ONNX_XLA_CACHE, or onnx-xla in the user's; "": nothing is */
  int exact;         /* not 0: no algorithm that rounds differently from a plain sum of products (Winograd) */
  uint64_t cache_bytes; /* of programs in the folder that `cache` names, so that the second start of a model maps a file; 0: 8 GiB.
                         * With `cache` NULL programs are not kept */
  const char *precision; /* "bf16", "fp16": f32 operands of dots and convolutions may be rounded to it, where that is measured to
                          * be faster (sums stay f32); "fp32" (default): nothing is */
} oxla_options;

/* --- models --- */

/* Opens model.onnx or file.oxla; compiles nothing yet.  options may be NULL. */
oxla_error *oxla_load(const char *path, const oxla_options *options, oxla_model **out);
/* The same for an ONNX model in memory, which must stay until the model is destroyed. */
oxla_error *oxla_load_memory(const void *bytes, size_t size, const oxla_options *options, oxla_model **out);
/* Runs of the model must be destroyed before.  NULL is fine. */
void oxla_model_destroy(oxla_model *model);

/* Inputs that must be given, and outputs, in the graph's order. */
size_t oxla_input_count(const oxla_model *model);
size_t oxla_output_count(const oxla_model *model);
const char *oxla_input_name(const oxla_model *model, size_t index);
const char *oxla_output_name(const oxla_model *model, size_t index);
/* The declared type and dims of an input; an open dimension is -1.  data and bytes are 0. */
oxla_error *oxla_input_type(const oxla_model *model, size_t index, oxla_tensor *out);
/* Name of a symbolic dimension of an input, or NULL. */
const char *oxla_input_dim_name(const oxla_model *model, size_t index, int dim);
/* The same of an output; its type is 0 where the model does not say.  oxla_get_output tells what it really is. */
oxla_error *oxla_output_type(const oxla_model *model, size_t index, oxla_tensor *out);
/* How many initializers the model's graph has, constants of the options included; 0 for a .oxla. */
size_t oxla_initializer_count(const oxla_model *model);
/* Whether the model can be compiled, as far as can be told without doing it: names all unsupported operators at once,
 * then what else is wrong or unsupported, then outputs whose declared type or shape is not what they are. */
oxla_error *oxla_check(oxla_model *model);
/* Looks at every node of an ONNX model in memory, as far as importing goes, and calls `found` for each that is wrong or not
 * supported: its number in the graph, OXLA_INVALID_MODEL or OXLA_UNSUPPORTED, and why.  What depends on such a node is not
 * looked at.  Open dimensions are taken for 1, so that what is found "invalid" may be right at another size.  Of the options
 * only the backend counts. */
typedef void oxla_finding_fn(void *data, size_t node, oxla_code code, const char *message);
oxla_error *oxla_survey(const void *bytes, size_t size, const oxla_options *options, oxla_finding_fn *found, void *data);
/* A value of the model's metadata_props, or NULL. */
const char *oxla_metadata(const oxla_model *model, const char *key);

/* --- runs --- */

oxla_error *oxla_run_create(oxla_model *model, oxla_run **out);
void oxla_run_destroy(oxla_run *run);
/* The data is borrowed until the run's next oxla_execute has returned.  NULL: none yet, which is enough for
 * oxla_compile, unless a size depends on it (OXLA_ABOUT_VALUE). */
oxla_error *oxla_set_input(oxla_run *run, const char *name, oxla_type type, int rank, const int64_t *dims,
                           const void *data);
/* Writes an output into memory of the caller's, of exactly the output's size, from the next execution on (which fails if it has
 * another size then).  NULL: back to memory of the run's own. */
oxla_error *oxla_set_output(oxla_run *run, const char *name, void *data, size_t bytes);
/* The seed of the run's random numbers, from the next execution on: the same seed gives the same numbers.  Without it every
 * execution draws anew.  Operators with an attribute `seed` have their own: they give the same numbers every time. */
void oxla_set_seed(oxla_run *run, uint64_t seed);
/* Makes the program for the inputs' shapes if it is not there yet (oxla_execute does it too).  A model keeps the programs of its
 * runs and up to 64 others, those that were used last. */
oxla_error *oxla_compile(oxla_run *run);
oxla_error *oxla_execute(oxla_run *run);
/* From any thread: as long as it is on, what the run compiles or executes ends soon with OXLA_RESOURCE, "cancelled", also if
 * it begins later.  Outputs are then as good as never written. */
void oxla_cancel(oxla_run *run, int on);
/* After oxla_compile: type and dims, -1 where a size depends on what the model computes; after oxla_execute: what it is, and the
 * data, borrowed until the next one. */
oxla_error *oxla_get_output(const oxla_run *run, const char *name, oxla_tensor *out);

/* --- profiles --- */

typedef enum oxla_profile_format {
  OXLA_PROFILE_JSON = 0, /* one object: times by thunk, kind, ONNX operator and node, beside what the machine reaches at most */
  OXLA_PROFILE_TRACE = 1 /* the fastest run, for Chrome's tracing page or Perfetto */
} oxla_profile_format;

/* Executes the run `warm_up` times, then `runs` times (at least once) with a clock around each step, measures the machine for some
 * tenths of a second, and gives the report, which oxla_text_free frees.  Other executions cost nothing for it. */
oxla_error *oxla_profile(oxla_run *run, int warm_up, int runs, oxla_profile_format format, char **text);
void oxla_text_free(char *text); /* NULL is fine */

/* Writes a .oxla file with every program of this model that is kept. */
oxla_error *oxla_save(oxla_model *model, const char *path);

/* The newest ONNX IR version and ai.onnx operator set that are read. */
oxla_error *oxla_onnx_versions(int *ir_version, int *opset_version);
/* "onnx-xla 0.1.0 (oneDNN 2.6.3, OpenBLAS 0.3.21)"; static. */
const char *oxla_version(void);

#ifdef __cplusplus
}
#endif

#endif
