/* internal.h - what the files of the execution provider for ONNX Runtime share.  See README. */
#ifndef PLUGIN_ONNXRUNTIME_INTERNAL_H
#define PLUGIN_ONNXRUNTIME_INTERNAL_H

#include "base/protobuf_wire.h"
#include "plugin/api/onnx-xla.h"
#include "plugin/onnxruntime/abi.h"

#define ORT_EP_NAME "OnnxXlaExecutionProvider"

/* Returns what fails. */
#define ORT_TRY(expression)                \
  do {                                     \
    OrtStatus *ort_status_ = (expression); \
    if (ort_status_) {                     \
      return ort_status_;                  \
    }                                      \
  } while (0)

/* The types of options. */
typedef bool ort_flag;
typedef int ort_count;
typedef char ort_text[256], ort_choice[16], ort_path[1024]; /* "": the default */

/* What a session's user may set: provider options, and ONNX Runtime's own for compiled models. */
typedef struct ort_options {
  /* The rows of compile_options.def that are public: options of the C API. */
#define PUBLIC_OPTION(member, type, name, argument) ort_##type name;
#include "runtime/program/compile_options.def"
  ort_text backend;   /* "cpu", "ref", a path */
  ort_path cache_dir; /* of compiled programs; "": only tuning is kept, where onnx-xla keeps it */
  ort_choice claim;   /* "all": also what is not worth its while; "cost" */
  bool check_memory;  /* what steps of a run do to memory is looked at */
  bool verify;        /* every result is compared with the reference backend's */
  bool context_enable, context_embed;
  ort_path context_path;
} ort_options;

/* One for each session. */
typedef struct ort_provider {
  OrtEp ep; /* ONNX Runtime's part, which must be the first member */
  const OrtApi *api;
  const OrtLogger *logger;
  ort_options options;
  const char *name;
  /* Before ONNX Runtime 1.25: groups of different graphs (bodies, or what is left after functions were inlined) get
   * the same names and the session fails, so groups of one graph are all that can be taken; bodies do not say that
   * they are some; and what a body reads from around it is no input of a group. */
  bool early, has_compiled;
  bool tells_ranks; /* if false, a value without a shape looks like a scalar, and is taken for one */
} ort_provider;

OrtStatus *ort_fail(const ort_provider *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
OrtStatus *ort_no_memory(const ort_provider *p);
/* Frees the error; NULL gives NULL. */
OrtStatus *ort_from_error(const ort_provider *p, const char *what, oxla_error *error);
void ort_log(const ort_provider *p, OrtLoggingLevel level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* --- graphs --- */

/* A node as ONNX Runtime shows it. */
typedef struct ort_node {
  const OrtNode *node;
  const char *name, *op, *domain;
  size_t n_in, n_out, n_implicit;
  const OrtValueInfo **in, **out, **implicit; /* in: NULL where an optional one is left out */
} ort_node;

typedef struct ort_graph {
  const OrtGraph *graph;
  size_t n_nodes, n_inputs, n_outputs, n_initializers;
  ort_node *nodes; /* in topological order */
  const OrtValueInfo **inputs, **outputs, **initializers;
} ort_graph;

/* To be freed also when it fails. */
OrtStatus *ort_node_read(const ort_provider *p, const OrtNode *node, ort_node *out);
void ort_node_free(ort_node *n);
OrtStatus *ort_graph_read(const ort_provider *p, const OrtGraph *graph, ort_graph *out);
void ort_graph_free(ort_graph *g);
OrtStatus *ort_value_name(const ort_provider *p, const OrtValueInfo *value, const char **out); /* NULL means "" */
/* An array of ONNX Runtime's, or what is known of one: a size is -1 where only a run tells it. */
typedef struct ort_array {
  int type;    /* TensorProto's number */
  bool ranked; /* rank and dims are known */
  size_t rank;
  int64_t dims[OXLA_MAX_RANK];
  void *data; /* maybe NULL where it is empty */
} ort_array;

/* Element type, TensorProto's number; 0 means not known, or no array. */
OrtStatus *ort_value_type(const ort_provider *p, const OrtValueInfo *value, int *type);

/* Its element type and sizes, without data; not *known: it is no array. */
OrtStatus *ort_value_shape(const ort_provider *p, const OrtValueInfo *value, ort_array *out, bool *known);

/* What the chosen nodes (NULL: all) read that none of them makes, once each.  Set p, the rest to zeros; to be freed
 * also when it fails (support.c). */
typedef struct ort_values {
  const OrtValueInfo **items;
  size_t n, capacity;
} ort_values;

typedef struct ort_partition_values {
  const ort_provider *p;
  ort_values inputs, constants;
  void *made, *seen; /* tsearch's, of names */
} ort_partition_values;
OrtStatus *ort_partition_values_find(ort_partition_values *b, const ort_graph *g, const bool *chosen);
void ort_partition_values_free(ort_partition_values *b);

/* A constant that stands beside the model. */
typedef struct ort_weights {
  size_t n, capacity;
  oxla_constant *items; /* names and data are ONNX Runtime's, dims ours */
  const OrtValueInfo **infos;
} ort_weights;
void ort_weights_free(ort_weights *w);

/* Bytes of somebody else's. */
typedef struct ort_span {
  const uint8_t *bytes;
  size_t n;
} ort_span;

/* Where the data of constants lies once ONNX Runtime has given its own back (weights.c). */
typedef struct ort_mapped {
  char *path;
  ort_span span; /* empty where it cannot be mapped */
} ort_mapped;

typedef struct ort_kept {
  ort_mapped *files; /* the model's, and those of external data */
  void **copies;
  size_t n_files, n_copies;
} ort_kept;
/* The constants point there then.  To be freed also when it fails. */
OrtStatus *ort_weights_keep(const ort_provider *p, const ort_graph *g, ort_weights *w, ort_kept *out);
void ort_kept_drop(const ort_kept *k); /* what was read of the file need not stay in memory */
void ort_kept_free(ort_kept *k);

OrtStatus *ort_array_read(const ort_provider *p, const OrtValue *value, ort_array *out);
/* The attribute's bytes, to be freed; NULL when it fails.  Some versions of ONNX Runtime count a zero
 * behind a string. */
OrtStatus *ort_attribute_read(const ort_provider *p, const OrtOpAttr *a, OrtOpAttrType type, void **out, size_t *n);

/* Writes the ModelProto of the nodes with chosen[k] (NULL: all) of a graph.  Its inputs, outputs and constants are
 * those given (NULL: an output that is left out); a constant of more than a few kilobytes is an input too, and one of
 * `weights` (NULL: only its shape is wanted). */
typedef struct ort_model_parts {
  const bool *chosen;
  size_t n_inputs, n_outputs, n_constants;
  const OrtValueInfo *const *inputs, *const *outputs, *const *constants;
  bool large_constants_are_inputs; /* large constants are inputs */
  bool
      is_body; /* outputs have types, for loops without steps; a model's would only be checked against what comes out */
  ort_weights *weights;
} ort_model_parts;
OrtStatus *ort_node_write(const ort_provider *p, const ort_node *n, pb_writer *out); /* as NodeProto */
OrtStatus *ort_model_write(const ort_provider *p, const ort_graph *g, const ort_model_parts *parts, pb_writer *out);

/* --- what the provider does --- */

/* Whether the values around a node and in its bodies are arrays of types that we share with ONNX Runtime, and it can
 * be written (support.c). */
OrtStatus *ort_node_crosses(const ort_provider *p, const ort_node *n, bool *ok);
/* Looks at the chosen nodes as one model; those that cannot be imported are taken no more: *n_found of them. */
OrtStatus *ort_support(const ort_provider *p, const ort_graph *g, const bool *chosen, bool *taken, size_t *n_found);
OrtStatus *ort_claim(ort_provider *p, const OrtGraph *graph, OrtEpGraphSupportInfo *support); /* claim.c */
OrtStatus *ort_compile(ort_provider *p, const OrtGraph *graph, const OrtNode *node, OrtNodeComputeInfo **out,
                       OrtNode **context_node); /* fused.c */
void ort_fused_destroy(OrtNodeComputeInfo *info);

/* Fails where an output is not what the reference has (verify.c). */
OrtStatus *ort_compare(const ort_provider *p, const char *name, const oxla_tensor *got, const oxla_tensor *want);

/* A whole file, to be freed. */
OrtStatus *ort_file_read(const ort_provider *p, const char *path, void **bytes, size_t *size);
/* Compiled models (context.c): is it a node of ours that holds one; a file that is it, or its `size` bytes at the
 * beginning of what is mapped (each also when it fails, unless -1 or NULL); a node that holds `bytes`. */
bool ort_is_context(const ort_provider *p, const ort_node *node);
OrtStatus *ort_context_open(const ort_provider *p, const ort_graph *g, const ort_node *node, int *file,
                            ort_span *mapped, size_t *size);
OrtStatus *ort_context_write(const ort_provider *p, const ort_graph *g, const OrtNode *fused, const void *bytes,
                             size_t size, OrtNode **out);

#endif
