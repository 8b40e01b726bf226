/* internal.h - declarations that the files of the execution provider for ONNX Runtime share.  plugin/README explains
 * the provider. */
#ifndef PLUGIN_ONNXRUNTIME_INTERNAL_H
#define PLUGIN_ONNXRUNTIME_INTERNAL_H

#include "base/protobuf_wire.h"
#include "plugin/api/onnx-xla.h"
#include "plugin/onnxruntime/abi.h"

#define ORT_EP_NAME "OnnxXlaExecutionProvider"

/* Returns from the function with the status if the expression fails. */
#define ORT_TRY(expression)                \
  do {                                     \
    OrtStatus *ort_status_ = (expression); \
    if (ort_status_) {                     \
      return ort_status_;                  \
    }                                      \
  } while (0)

/* The C types of options: ort_<type> for each type in compile_options.def, and for paths. */
typedef bool ort_flag;
typedef int ort_count;
typedef char ort_text[256], ort_choice[16], ort_path[1024]; /* "" means the default */

/* The options that a user of a session may set: provider options, and ONNX Runtime's own options for compiled
 * models. */
typedef struct ort_options {
  /* The public rows of compile_options.def, which are options of the C API. */
#define PUBLIC_OPTION(member, type, name, argument) ort_##type name;
#include "runtime/program/compile_options.def"
  ort_text backend; /* oxla_options.backend; "" means the default */
  /* the backend that is used if the device of `backend` cannot be used (oxla_options.fallback); "" means that opening
   * then fails */
  ort_text fallback;
  /* the folder for compiled programs and the tuning log; "" means that only the tuning log is kept, in the default
   * folder */
  ort_path cache_dir;
  ort_choice claim;  /* "cost" or "": nodes are taken if that saves time; "all": all possible nodes are taken */
  bool check_memory; /* whether accesses to memory are checked during runs (--check-memory) */
  bool verify;       /* whether every result is compared with that of the reference backend */
  bool context_enable, context_embed;
  ort_path context_path;
} ort_options;

/* The execution provider of one session. */
typedef struct ort_provider {
  OrtEp ep; /* ONNX Runtime's part, which must be the first member */
  const OrtApi *api;
  const OrtLogger *logger;
  ort_options options;
  const char *name;
  /* `early` is true before ONNX Runtime 1.25.  These versions give partitions of different graphs (of a body, or of the
   * main graph again after functions were inlined) the same names, and the session then fails, so partitions can be
   * taken from one graph only.  Also, they do not tell whether a graph is a body, and the values that a body reads from
   * outside are not inputs of its partitions.  `has_compiled` is true after the provider has compiled partitions. */
  bool early, has_compiled;
  bool tells_ranks; /* if false, a value of unknown rank looks like a scalar, and is treated as one */
} ort_provider;

OrtStatus *ort_fail(const ort_provider *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
OrtStatus *ort_no_memory(const ort_provider *p);
/* Converts an error to a status, and frees it.  NULL gives NULL. */
OrtStatus *ort_from_error(const ort_provider *p, const char *what, oxla_error *error);
void ort_log(const ort_provider *p, OrtLoggingLevel level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* --- graphs --- */

/* A node of ONNX Runtime. */
typedef struct ort_node {
  const OrtNode *node;
  const char *name, *op, *domain;
  size_t n_in, n_out, n_implicit;
  const OrtValueInfo **in, **out, **implicit; /* an entry of `in` is NULL if an optional input is left out */
} ort_node;

typedef struct ort_graph {
  const OrtGraph *graph;
  size_t n_nodes, n_inputs, n_outputs, n_initializers;
  ort_node *nodes; /* in topological order */
  const OrtValueInfo **inputs, **outputs, **initializers;
} ort_graph;

/* Read a node or a graph.  The result must be freed also after a failure. */
OrtStatus *ort_node_read(const ort_provider *p, const OrtNode *node, ort_node *out);
void ort_node_free(ort_node *n);
OrtStatus *ort_graph_read(const ort_provider *p, const OrtGraph *graph, ort_graph *out);
void ort_graph_free(ort_graph *g);
OrtStatus *ort_value_name(const ort_provider *p, const OrtValueInfo *value, const char **out); /* NULL gives "" */
/* An array of ONNX Runtime, or what is known about one before a run; a size is -1 if it is not known. */
typedef struct ort_array {
  int type;    /* the number in TensorProto.DataType */
  bool ranked; /* whether rank and dims are known */
  size_t rank;
  int64_t dims[OXLA_MAX_RANK];
  void *data; /* may be NULL if the array is empty */
} ort_array;

/* Gets the element type as a number of TensorProto.DataType; 0 if it is not known or the value is not an array. */
OrtStatus *ort_value_type(const ort_provider *p, const OrtValueInfo *value, int *type);

/* Gets the element type and sizes, without data.  Sets *known to false if the value has no known type or is not an
 * array. */
OrtStatus *ort_value_shape(const ort_provider *p, const OrtValueInfo *value, ort_array *out, bool *known);

typedef struct ort_values {
  const OrtValueInfo **items;
  size_t n, capacity;
} ort_values;

/* The values that some nodes read and none of them computes, each once.  `constants` has those whose data is known
 * before a run, `inputs` has the others. */
typedef struct ort_partition_values {
  const ort_provider *p;
  ort_values inputs, constants;
  /* Trees of names, by tsearch: of the values that the nodes compute, and of those that are listed. */
  void *made, *seen;
} ort_partition_values;
/* Finds the values around the nodes k with chosen[k], or around all nodes if `chosen` is NULL.  The caller sets
 * b->p, and all other members to zeros, and frees *b also after a failure.  In support.c. */
OrtStatus *ort_partition_values_find(ort_partition_values *b, const ort_graph *g, const bool *chosen);
void ort_partition_values_free(ort_partition_values *b);

/* Constants that are not in the model's bytes but are passed as oxla_options.constants. */
typedef struct ort_weights {
  size_t n, capacity;
  /* The names belong to ONNX Runtime, and so do the data until ort_weights_keep replaces them by mapped files or
   * copies; dims are freed by ort_weights_free. */
  oxla_constant *items;
  const OrtValueInfo **infos;
} ort_weights;
void ort_weights_free(ort_weights *w);

/* Bytes that are borrowed. */
typedef struct ort_span {
  const uint8_t *bytes;
  size_t n;
} ort_span;

/* A mapped file that contains data of constants.  It is needed since ONNX Runtime frees its own copies of constants
 * after compiling (weights.c). */
typedef struct ort_mapped {
  char *path;
  ort_span span; /* empty if it cannot be mapped */
} ort_mapped;

/* The data of large constants for the life of a partition: in mapped files, or copied. */
typedef struct ort_kept {
  ort_mapped *files; /* the model's file, and files of external data */
  void **copies;
  size_t n_files, n_copies;
} ort_kept;
/* Makes the data of the constants in `w` independent of ONNX Runtime: w->items[k].data then points into *out, which
 * must be freed also after a failure. */
OrtStatus *ort_weights_keep(const ort_provider *p, const ort_graph *g, ort_weights *w, ort_kept *out);
void ort_kept_drop(const ort_kept *k); /* tells the system that pages of the files need not stay in memory */
void ort_kept_free(ort_kept *k);

OrtStatus *ort_array_read(const ort_provider *p, const OrtValue *value, ort_array *out);
/* Reads the attribute's bytes, which the caller frees; *out is NULL after a failure.  Some versions of ONNX Runtime
 * include a terminating zero in the size of a string. */
OrtStatus *ort_attribute_read(const ort_provider *p, const OrtOpAttr *a, OrtOpAttrType type, void **out, size_t *n);

/* What ort_model_write writes as a ModelProto: the nodes k of a graph with chosen[k], or all nodes if `chosen` is NULL,
 * with these inputs, outputs and constants.  An entry of `outputs` is NULL if an optional output is left out. */
typedef struct ort_model_parts {
  const bool *chosen;
  size_t n_inputs, n_outputs, n_constants;
  const OrtValueInfo *const *inputs, *const *outputs, *const *constants;
  /* whether constants of more than a few kilobytes become inputs, except those whose elements may be packed; they are
   * then added to `weights`, if `weights` is not NULL */
  bool large_constants_are_inputs;
  bool is_body; /* outputs are written with their types, which loops without iterations need */
  ort_weights *weights;
} ort_model_parts;
OrtStatus *ort_node_write(const ort_provider *p, const ort_node *n, pb_writer *out); /* writes a NodeProto */
OrtStatus *ort_model_write(const ort_provider *p, const ort_graph *g, const ort_model_parts *parts, pb_writer *out);

/* --- what the provider does --- */

/* Sets *ok to whether a node can be passed to onnx-xla.  It must be possible to write it as a NodeProto.  Arrays of the
 * types of its inputs and outputs must have the same layout in ONNX Runtime and in onnx-xla; only constants may be of
 * other types, but not strings.  The domain must not be com.microsoft, whose operators are not in ONNX.  It must
 * be possible to import all nodes of its bodies.  If p->early is true, its bodies must not read values from outside of
 * them.  In support.c. */
OrtStatus *ort_node_crosses(const ort_provider *p, const ort_node *n, bool *ok);
/* Imports the nodes k with chosen[k] as one model.  Clears taken[k] of those that cannot be imported, and sets *n_found
 * to the number of entries that were true before and are cleared. */
OrtStatus *ort_support(const ort_provider *p, const ort_graph *g, const bool *chosen, bool *taken, size_t *n_found);
OrtStatus *ort_claim(ort_provider *p, const OrtGraph *graph, OrtEpGraphSupportInfo *support); /* claim.c */
OrtStatus *ort_compile(ort_provider *p, const OrtGraph *graph, const OrtNode *node, OrtNodeComputeInfo **out,
                       OrtNode **context_node); /* fused.c */
void ort_fused_destroy(OrtNodeComputeInfo *info);

/* Fails if an output differs from that of the reference backend (verify.c). */
OrtStatus *ort_compare(const ort_provider *p, const char *name, const oxla_tensor *got, const oxla_tensor *want);

/* Reads a whole file; the caller frees the bytes. */
OrtStatus *ort_file_read(const ort_provider *p, const char *path, void **bytes, size_t *size);
/* Compiled models in nodes of ONNX models (context.c). ort_is_context returns true if the node holds a model that this
 * provider compiled.  ort_context_open opens that model: it sets *file if the model is in a file, or *mapped and *size
 * if the node itself contains it; the model is then the first *size bytes of *mapped.  Before the call, the caller sets
 * *file to -1 and *mapped to an empty span; the one that is not needed stays so.  The caller releases both, also after
 * a failure.
 * ort_context_write makes a node for the model `bytes`: it holds them if the session's options ask for that and they
 * are shorter than 2 GiB; otherwise they are written to a file beside the model, whose name the node holds. */
bool ort_is_context(const ort_provider *p, const ort_node *node);
OrtStatus *ort_context_open(const ort_provider *p, const ort_graph *g, const ort_node *node, int *file,
                            ort_span *mapped, size_t *size);
OrtStatus *ort_context_write(const ort_provider *p, const ort_graph *g, const OrtNode *fused, const void *bytes,
                             size_t size, OrtNode **out);

#endif
