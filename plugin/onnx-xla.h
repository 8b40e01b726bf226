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
 * once, a run from one at a time.  Nothing here prints, exits or reads the environment. */
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
/* One line that names the node, the value and the rule; valid until oxla_error_free. */
const char *oxla_error_message(const oxla_error *error);
void oxla_error_free(oxla_error *error);

/* ONNX's TensorProto.DataType numbers. */
typedef enum oxla_type {
  OXLA_FLOAT = 1, OXLA_UINT8 = 2, OXLA_INT8 = 3, OXLA_UINT16 = 4, OXLA_INT16 = 5, OXLA_INT32 = 6, OXLA_INT64 = 7,
  OXLA_STRING = 8, OXLA_BOOL = 9, OXLA_FLOAT16 = 10, OXLA_DOUBLE = 11, OXLA_UINT32 = 12, OXLA_UINT64 = 13,
  OXLA_COMPLEX64 = 14, OXLA_COMPLEX128 = 15, OXLA_BFLOAT16 = 16, OXLA_FLOAT8E4M3FN = 17, OXLA_FLOAT8E4M3FNUZ = 18,
  OXLA_FLOAT8E5M2 = 19, OXLA_FLOAT8E5M2FNUZ = 20, OXLA_UINT4 = 21, OXLA_INT4 = 22, OXLA_FLOAT4E2M1 = 23,
  OXLA_FLOAT8E8M0 = 24, OXLA_UINT2 = 25, OXLA_INT2 = 26
} oxla_type;

enum { OXLA_MAX_RANK = 16 };

/* An array: row-major, elements one after the other (4- and 2-bit types take a byte each). */
typedef struct oxla_tensor {
  oxla_type type;
  int rank;
  int64_t dims[OXLA_MAX_RANK];
  void *data;
  size_t bytes;
} oxla_tensor;

/* --- options --- */

typedef struct oxla_dim {
  const char *name; /* of a symbolic dimension */
  int64_t value;
} oxla_dim;

/* Set size to sizeof(oxla_options) and the rest to 0 for the defaults; newer versions add fields at the end. */
typedef struct oxla_options {
  size_t size;
  const char *backend;    /* "cpu" (default), "ref", or the path of a backend's shared object */
  const char *cpu;        /* to compile for: "native" (default), "x86-64", "x86-64-v3", ... */
  int threads;            /* of a run; 0: all cores */
  int lanes;              /* f32 lanes of a vector; 0: the cpu's widest */
  const oxla_dim *dims;   /* values of symbolic dimensions */
  size_t n_dims;
  uint64_t max_memory;    /* bytes for loading and compiling; 0: no limit */
  double max_seconds;     /* for loading and compiling, and for each run; 0: no limit */
  int closed_dims;        /* not 0: a dimension without a value is an error where a run's inputs do not tell it */
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
/* A value of the model's metadata_props, or NULL. */
const char *oxla_metadata(const oxla_model *model, const char *key);

/* --- runs --- */

oxla_error *oxla_run_create(oxla_model *model, oxla_run **out);
void oxla_run_destroy(oxla_run *run);
/* The data is borrowed until the run's next oxla_execute has returned. */
oxla_error *oxla_set_input(oxla_run *run, const char *name, oxla_type type, int rank, const int64_t *dims,
                           const void *data);
/* Writes an output into memory of the caller's, of exactly the output's size, from the next execution on.  NULL: back
 * to memory of the run's own. */
oxla_error *oxla_set_output(oxla_run *run, const char *name, void *data, size_t bytes);
/* Makes the program for the inputs' shapes if it is not there yet (oxla_execute does it too). */
oxla_error *oxla_compile(oxla_run *run);
oxla_error *oxla_execute(oxla_run *run);
/* After oxla_compile: type and dims; after oxla_execute: the data too, borrowed until the next one. */
oxla_error *oxla_get_output(const oxla_run *run, const char *name, oxla_tensor *out);

/* Writes a .oxla file with every program that this model has been compiled to so far. */
oxla_error *oxla_save(oxla_model *model, const char *path);

/* "onnx-xla 0.1.0 (oneDNN 2.6.3, OpenBLAS 0.3.21)"; static. */
const char *oxla_version(void);

#ifdef __cplusplus
}
#endif

#endif
