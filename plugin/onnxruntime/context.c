/* context.c - compiled models in ONNX models: the nodes com.microsoft.EPContext, which ONNX Runtime defines. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "plugin/onnxruntime/internal.h"

/* the value of the attribute `source`, which names the provider that compiled the model */
static const char source[] = "onnx-xla";

/* Reads the string attribute of that name, which the caller frees; *out is NULL if there is none.  It may contain any
 * bytes.  Some versions of ONNX Runtime include a terminating zero in the size. */
static OrtStatus *text_attribute(const ort_provider *p, const OrtNode *node, const char *name, char **out,
                                 size_t *size) {
  const OrtOpAttr *a = NULL;
  *out = NULL;
  *size = 0;
  OrtStatus *failed = p->api->Node_GetAttributeByName(node, name, &a);
  if (failed || !a) {
    if (failed) {
      p->api->ReleaseStatus(failed);
    }
    return NULL;
  }
  return ort_attribute_read(p, a, ORT_OP_ATTR_STRING, (void **)out, size);
}

bool ort_is_context(const ort_provider *p, const ort_node *node) {
  char *text = NULL;
  size_t size;
  if (strcmp(node->op, "EPContext") != 0) {
    return false;
  }
  OrtStatus *failed = text_attribute(p, node->node, "source", &text, &size);
  if (failed) {
    p->api->ReleaseStatus(failed);
  }
  bool ours = !failed && text && strcmp(text, source) == 0;
  free(text);
  return ours;
}

/* --- files beside the model --- */

/* Writes the path of the file `name` in the folder of `beside`.  Since the name comes from a file, it must not contain
 * a folder. */
static OrtStatus *path_beside(const ort_provider *p, const char *beside, const char *name, size_t room, char *out) {
  const char *slash = strrchr(beside, '/');
  int folder = slash ? (int)(slash - beside) + 1 : 0;
  if (strchr(name, '/') || strcmp(name, "..") == 0 || *name == '\0') {
    return ort_fail(p, "onnx-xla: '%s' is not the name of a file beside the model", name);
  }
  int n = snprintf(out, room, "%.*s%s", folder, beside, name);
  return n > 0 && (size_t)n < room ? NULL : ort_fail(p, "onnx-xla: the path of '%s' is too long", name);
}

OrtStatus *ort_file_read(const ort_provider *p, const char *path, void **bytes, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    return ort_fail(p, "onnx-xla: cannot open %s", path);
  }
  bool ok = fseek(file, 0, SEEK_END) == 0;
  long end = ok ? ftell(file) : -1;
  ok = end >= 0 && fseek(file, 0, SEEK_SET) == 0;
  *bytes = ok ? malloc((size_t)end + 1) : NULL;
  *size = ok ? (size_t)end : 0;
  ok = *bytes && fread(*bytes, 1, *size, file) == *size;
  fclose(file);
  return ok ? NULL : ort_fail(p, "onnx-xla: cannot read %s", path);
}

static OrtStatus *write_file(const ort_provider *p, const char *path, const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  bool ok = file && fwrite(bytes, 1, size, file) == size;
  ok = file && fclose(file) == 0 && ok;
  return ok ? NULL : ort_fail(p, "onnx-xla: cannot write %s", path);
}

/* --- nodes --- */

static OrtStatus *is_embedded(const ort_provider *p, const OrtNode *node, bool *out) {
  const OrtOpAttr *a = NULL;
  int64_t mode = 1; /* the default of the operator */
  size_t size;
  OrtStatus *failed = p->api->Node_GetAttributeByName(node, "embed_mode", &a);
  if (failed) {
    p->api->ReleaseStatus(failed);
  } else if (a) {
    ORT_TRY(p->api->ReadOpAttr(a, ORT_OP_ATTR_INT, &mode, sizeof mode, &size));
  }
  *out = mode != 0;
  return NULL;
}

static OrtStatus *open_beside(const ort_provider *p, const ort_graph *g, const char *name, int *file) {
  char path[4096];
  const char *model = "";
  ORT_TRY(p->api->Graph_GetModelPath(g->graph, &model));
  ORT_TRY(path_beside(p, model ? model : "", name, sizeof path, path));
  *file = open(path, O_RDONLY | O_CLOEXEC);
  return *file < 0 ? ort_fail(p, "onnx-xla: cannot open %s", path) : NULL;
}

/* Reads the attribute's bytes into mapped memory, at the beginning of a page, so that nothing copies them again.
 * counted_too_much is 1 if the size that ONNX Runtime returns includes a terminating zero, otherwise 0. */
static OrtStatus *map_attribute(const ort_provider *p, const OrtNode *node, const char *name, size_t counted_too_much,
                                ort_span *out, size_t *size) {
  const OrtOpAttr *a = NULL;
  size_t n = 0;
  ORT_TRY(p->api->Node_GetAttributeByName(node, name, &a));
  OrtStatus *failed =
      p->api->ReadOpAttr(a, ORT_OP_ATTR_STRING, &(char){0}, 0, &n); /* the call fails and returns the size */
  if (failed) {
    p->api->ReleaseStatus(failed);
  }
  if (n <= counted_too_much) {
    return ort_fail(p, "onnx-xla: attribute '%s' is empty", name);
  }
  void *bytes = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED) {
    return ort_no_memory(p);
  }
  *out = (ort_span){bytes, n};
  ORT_TRY(p->api->ReadOpAttr(a, ORT_OP_ATTR_STRING, bytes, n, &n));
  *size = n - counted_too_much;
  return NULL;
}

OrtStatus *ort_context_open(const ort_provider *p, const ort_graph *g, const ort_node *node, int *file,
                            ort_span *mapped, size_t *size) {
  char *text;
  size_t counted;
  bool embedded;
  ORT_TRY(is_embedded(p, node->node, &embedded));
  if (embedded) {
    /* The length of `source` is known, so `counted` shows whether ONNX Runtime counts a terminating zero. */
    ORT_TRY(text_attribute(p, node->node, "source", &text, &counted));
    free(text);
    return map_attribute(p, node->node, "ep_cache_context", counted - strlen(source), mapped, size);
  }
  ORT_TRY(text_attribute(p, node->node, "ep_cache_context", &text, &counted));
  if (!text) {
    return ort_fail(p, "onnx-xla: node '%s' holds no compiled model", node->name);
  }
  OrtStatus *failed = open_beside(p, g, text, file);
  free(text);
  return failed;
}

/* Writes the path of the ONNX model in which ONNX Runtime stores the nodes with compiled models: the option
 * context_file_path, or model.onnx_ctx.onnx, as ONNX Runtime names it. */
static OrtStatus *context_path(const ort_provider *p, const ort_graph *g, size_t room, char *out) {
  const char *model = "";
  ORT_TRY(p->api->Graph_GetModelPath(g->graph, &model));
  const char *given = p->options.context_path;
  int n = *given ? snprintf(out, room, "%s", given) : snprintf(out, room, "%s_ctx.onnx", model ? model : "");
  return n > 0 && (size_t)n < room ? NULL : ort_fail(p, "onnx-xla: the path of the compiled model is too long");
}

static OrtStatus *store_beside(const ort_provider *p, const ort_graph *g, const char *part, const void *bytes,
                               size_t size, size_t room, char *name) {
  char path[4096], file[4096];
  ORT_TRY(context_path(p, g, sizeof path, path));
  const char *slash = strrchr(path, '/');
  int n = snprintf(name, room, "%s_%s.oxla", slash ? slash + 1 : path, part);
  if (n < 0 || (size_t)n >= room) {
    return ort_fail(p, "onnx-xla: the name of the compiled model is too long");
  }
  ORT_TRY(path_beside(p, path, name, sizeof file, file));
  return write_file(p, file, bytes, size);
}

typedef struct attributes {
  OrtOpAttr *items[8];
  size_t n;
} attributes;

static OrtStatus *add(const ort_provider *p, attributes *a, const char *name, OrtOpAttrType type, const void *data,
                      size_t size) {
  return p->api->CreateOpAttr(name, data, (int)size, type, &a->items[a->n++]);
}

static OrtStatus *add_all(const ort_provider *p, attributes *a, const char *part, int64_t embed, const void *context,
                          size_t size) {
  int64_t main_context = 1;
  ORT_TRY(add(p, a, "main_context", ORT_OP_ATTR_INT, &main_context, 1));
  ORT_TRY(add(p, a, "embed_mode", ORT_OP_ATTR_INT, &embed, 1));
  ORT_TRY(add(p, a, "ep_cache_context", ORT_OP_ATTR_STRING, context, size));
  ORT_TRY(add(p, a, "partition_name", ORT_OP_ATTR_STRING, part, strlen(part)));
  ORT_TRY(add(p, a, "source", ORT_OP_ATTR_STRING, source, strlen(source)));
  return add(p, a, "ep_sdk_version", ORT_OP_ATTR_STRING, PACKAGE_VERSION, strlen(PACKAGE_VERSION));
}

static OrtStatus *make_node(const ort_provider *p, const ort_node *fused, attributes *a, OrtNode **out) {
  const char **in = calloc(fused->n_in + 1, sizeof *in), **outs = calloc(fused->n_out + 1, sizeof *outs);
  OrtStatus *failed = in && outs ? NULL : ort_no_memory(p);
  for (size_t k = 0; !failed && k < fused->n_in; k++) {
    failed = ort_value_name(p, fused->in[k], &in[k]);
  }
  for (size_t k = 0; !failed && k < fused->n_out; k++) {
    failed = ort_value_name(p, fused->out[k], &outs[k]);
  }
  failed = failed ? failed
                  : p->api->GetModelEditorApi()->CreateNode("EPContext", "com.microsoft", fused->name, in, fused->n_in,
                                                            outs, fused->n_out, a->items, a->n, out);
  free(in);
  free(outs);
  return failed;
}

OrtStatus *ort_context_write(const ort_provider *p, const ort_graph *g, const OrtNode *fused, const void *bytes,
                             size_t size, OrtNode **out) {
  ort_node node = {0};
  attributes a = {.n = 0};
  char name[512];
  bool embed = p->options.context_embed && size < INT32_MAX; /* a protobuf message is limited to 2 GB */
  OrtStatus *failed = ort_node_read(p, fused, &node);
  if (!failed && !embed) {
    failed = store_beside(p, g, node.name, bytes, size, sizeof name, name);
  }
  failed = failed ? failed : add_all(p, &a, node.name, embed, embed ? bytes : name, embed ? size : strlen(name));
  failed = failed ? failed : make_node(p, &node, &a, out); /* after success the node owns the attributes */
  if (failed) {
    for (size_t k = 0; k < a.n; k++) {
      p->api->ReleaseOpAttr(a.items[k]);
    }
  }
  ort_node_free(&node);
  return failed;
}
