/* model.c - loads a model: recognises files of other kinds, unpacks the message, and runs all checks. */
#include "frontend/model/model.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "frontend/model/external_data.h"
#include "frontend/model/model_internal.h"
#include "frontend/model/wire_scan.h"

enum { DEFAULT_MAX_NODES = 10000000 };

/* --- files that are not ONNX models --- */

typedef struct magic {
  size_t offset, size;
  const char *bytes, *what;
} magic;

static const magic magics[] = {
    {0, 2, "\x1f\x8b", "is compressed with gzip: unpack it first"},
    {0, 4, "PK\x03\x04", "is a zip archive (or a PyTorch file), not an ONNX model"},
    {0, 4, "\x28\xb5\x2f\xfd", "is compressed with zstd: unpack it first"},
    {0, 6,
     "\xfd"
     "7zXZ\0",
     "is compressed with xz: unpack it first"},
    {0, 8, "\x89HDF\r\n\x1a\n", "is an HDF5 file, not an ONNX model"},
    {4, 4, "ORTM", "is ONNX Runtime's own format (.ort): give the .onnx it was made from"},
    {4, 4, "TFL3", "is a TensorFlow Lite model, not an ONNX model"},
    {0, 6, "\x93NUMPY", "is a NumPy array, not an ONNX model"},
    {0, 40, "version https://git-lfs.github.com/spec/", "is a Git LFS pointer: the model itself was not fetched"},
};

static bool is_text(const uint8_t *bytes, size_t size) {
  size_t n = size < 64 ? size : 64;
  for (size_t i = 0; i < n; i++) {
    if (!isprint(bytes[i]) && !isspace(bytes[i])) {
      return false;
    }
  }
  return n >= 8;
}

static status check_kind(const onnx_source *src) {
  CHECK_THAT(src->size, STATUS_INVALID_FILE, "is empty");
  for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
    const magic *m = &magics[i];
    bool same = src->size >= m->offset + m->size && !memcmp(src->bytes + m->offset, m->bytes, m->size);
    CHECK_THAT(!same, STATUS_INVALID_FILE, "%s", m->what);
  }
  CHECK_THAT(!is_text(src->bytes, src->size), STATUS_INVALID_FILE, "is text, not an ONNX model (binary protobuf)");
  return NULL;
}

/* --- loading --- */

static status check_version(const Onnx__ModelProto *p) {
  CHECK_THAT(p->has_ir_version && p->ir_version >= 1, STATUS_INVALID_MODEL, "ir_version is %s: not an ONNX model",
             p->has_ir_version ? "not positive" : "missing");
  CHECK_THAT(p->ir_version <= ONNX_IR_VERSION_MAX, STATUS_UNSUPPORTED | STATUS_ABOUT_VERSION,
             "IR version %" PRId64 " is newer than %d, the newest that is known", p->ir_version, ONNX_IR_VERSION_MAX);
  return NULL;
}

static status load_opsets(onnx_model *m) {
  Onnx__ModelProto *p = m->proto;
  Onnx__OperatorSetIdProto first = ONNX__OPERATOR_SET_ID_PROTO__INIT, *only = &first;
  first.version = 1;
  if (!p->n_opset_import && m->ir_version < 3) {
    return onnx_opsets_load(m->arena, &only, 1, &m->opsets); /* IR versions before 3 have no opset_import */
  }
  CHECK_THAT(p->n_opset_import, STATUS_INVALID_MODEL, "opset_import is missing");
  return onnx_opsets_load(m->arena, p->opset_import, p->n_opset_import, &m->opsets);
}

static void list_initializers(onnx_model *m) {
  const Onnx__GraphProto *g = m->graph;
  str_map_init(&m->initializers, m->arena);
  for (size_t i = 0; i < g->n_initializer; i++) {
    *str_map_put(&m->initializers, g->initializer[i]->name) = g->initializer[i];
  }
  for (size_t i = 0; i < g->n_sparse_initializer; i++) {
    *str_map_put(&m->initializers, g->sparse_initializer[i]->values->name) = g->sparse_initializer[i];
  }
}

static status check_bodies(onnx_model *m, arena *scratch) {
  for (size_t i = 0; i < m->proto->n_functions; i++) {
    const Onnx__FunctionProto *p = m->proto->functions[i];
    TRY(onnx_function_check(m, onnx_model_function(m, p->domain, p->name, p->overload), scratch));
  }
  return onnx_graph_check(m, scratch);
}

static void destroy_scratch(void *data) {
  arena **scratch = data;
  arena_destroy(*scratch);
  *scratch = NULL;
}

static status check_model(onnx_model *m) {
  arena **scratch = ARENA_NEW(m->arena, arena *);
  arena_cleanup(m->arena, destroy_scratch, scratch);
  *scratch = arena_create(arena_budget(m->arena));
  status failed = check_bodies(m, *scratch);
  failed = failed ? failed : onnx_model_collect_strings(m, *scratch);
  destroy_scratch(scratch);
  return failed;
}

static status load(onnx_model *m, const onnx_load_options *options) {
  ProtobufCMessage *message;
  uint64_t max_nodes = options && options->max_nodes ? options->max_nodes : DEFAULT_MAX_NODES;
  TRY(check_kind(&m->source));
  TRY(onnx_wire_parse(m->arena, &onnx__model_proto__descriptor, m->source.bytes, m->source.size, &message));
  m->proto = (Onnx__ModelProto *)message;
  m->graph = m->proto->graph;
  m->ir_version = m->proto->ir_version;
  TRY(check_version(m->proto));
  CHECK_THAT(m->graph, STATUS_INVALID_MODEL, "has no graph");
  TRY(load_opsets(m));
  TRY(onnx_functions_load(m, max_nodes));
  TRY(check_model(m));
  list_initializers(m);
  return NULL;
}

/* Returns the path up to its last slash, or "." if it has none. */
static const char *folder_of(arena *a, const char *path) {
  const char *slash = strrchr(path, '/');
  return !slash ? "." : slash == path ? "/" : arena_strndup(a, path, (size_t)(slash - path));
}

status onnx_model_open(arena *a, const char *path, const onnx_load_options *options, onnx_model **out) {
  onnx_source source;
  TRY(onnx_source_open(a, path, &source));
  return onnx_model_from_memory(a, source.bytes, source.size, path, options, out);
}

status onnx_model_from_memory(arena *a, const void *bytes, size_t size, const char *path,
                              const onnx_load_options *options, onnx_model **out) {
  onnx_model *m = ARENA_NEW(a, onnx_model);
  m->arena = a;
  m->source = (onnx_source){.name = path ? arena_strdup(a, path) : "model", .bytes = bytes, .size = size};
  if (path) {
    TRY(onnx_folder_open(a, folder_of(a, path), &m->source.folder));
  }
  TRY(status_prefix(load(m, options), "%s", m->source.name));
  *out = m;
  return NULL;
}

/* --- inputs --- */

bool onnx_model_has_initializer(const onnx_model *m, const char *name) { return str_map_get(&m->initializers, name); }

bool onnx_model_input_is_required(const onnx_model *m, const Onnx__ValueInfoProto *input) {
  return !onnx_model_has_initializer(m, input->name);
}

bool onnx_model_input_is_overridable(const onnx_model *m, const Onnx__ValueInfoProto *input) {
  return m->ir_version >= 4 && onnx_model_has_initializer(m, input->name);
}
