/* opsets.c - reads, checks and looks up the operator set versions that a model or function imports (model.h). */
#include <inttypes.h>
#include <string.h>

#include "frontend/model/model_internal.h"

const char *onnx_domain(const char *domain) { return strcmp(domain, "ai.onnx") == 0 ? "" : domain; }

int64_t onnx_opset_version(const onnx_opsets *o, const char *domain) {
  return (int64_t)(intptr_t)str_map_get(&o->versions, onnx_domain(domain));
}

static status check_version(const char *domain, int64_t version) {
  const char *shown = *domain ? domain : "ai.onnx";
  CHECK_THAT(version >= 1 && version <= INT32_MAX, STATUS_INVALID_MODEL, "opset_import: version %" PRId64 " of %s",
             version, shown);
  CHECK_THAT(*domain || version <= ONNX_OPSET_MAX, STATUS_UNSUPPORTED | STATUS_ABOUT_VERSION,
             "opset_import: version %" PRId64 " of %s is newer than %d, the newest that is known", version, shown,
             ONNX_OPSET_MAX);
  return NULL;
}

status onnx_opsets_load(arena *a, Onnx__OperatorSetIdProto *const *imports, size_t n, onnx_opsets *out) {
  str_map_init(&out->versions, a);
  for (size_t i = 0; i < n; i++) {
    const char *domain = onnx_domain(imports[i]->domain);
    int64_t version = imports[i]->version;
    TRY(check_version(domain, version));
    void **slot = str_map_put(&out->versions, domain);
    /* Exporters often import both "" and "ai.onnx", which is allowed if the versions are equal. */
    CHECK_THAT(!*slot || (intptr_t)*slot == version, STATUS_INVALID_MODEL,
               "opset_import has version %" PRId64 " and %" PRId64 " of %s", (int64_t)(intptr_t)*slot, version,
               *domain ? domain : "ai.onnx");
    *slot = (void *)(intptr_t)version;
  }
  /* ONNX Runtime has its own domain in all models, and TensorFlow's exporter does not import it for its operators. */
  void **own = str_map_put(&out->versions, "com.microsoft");
  *own = *own ? *own : (void *)(intptr_t)1;
  return NULL;
}
