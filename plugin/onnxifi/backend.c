/* backend.c - checks whether a model can be run, and initialises backends with their properties. */
#include <stdlib.h>

#include "plugin/onnxifi/internal.h"

ifi_defaults ifi_the_defaults = {.log_level = ONNXIFI_LOG_LEVEL_WARNING};

/* --- compatibility --- */

bool ifi_has_other_values(const oxla_model *m) {
  oxla_tensor t = {0};
  bool found = false;
  for (size_t k = 0; k < oxla_input_count(m); k++) {
    oxla_error_free(oxla_input_type(m, k, &t));
    found |= t.type == OXLA_STRING || oxla_input_kind(m, k) != OXLA_TENSOR;
  }
  for (size_t k = 0; k < oxla_output_count(m); k++) {
    oxla_error_free(oxla_output_type(m, k, &t));
    found |= t.type == OXLA_STRING || oxla_output_kind(m, k) != OXLA_TENSOR;
  }
  return found;
}

/* Clients often ask about a model that is a single node, whose initializers have no values.  A size that depends on
 * such a value is checked only when the graph is initialised. */
onnxStatus onnxGetBackendCompatibility(onnxBackendID backendID, size_t onnxModelSize, const void *onnxModel) {
  const ifi_id *id = ifi_id_of(backendID);
  if (!id || !onnxModel || onnxModelSize == 0) {
    return !id ? ONNXIFI_STATUS_INVALID_ID : !onnxModel ? ONNXIFI_STATUS_INVALID_POINTER : ONNXIFI_STATUS_INVALID_SIZE;
  }
  oxla_options options = ifi_options_for(id);
  options.threads = 1;
  oxla_model *model = NULL;
  oxla_error *error = oxla_load_memory(onnxModel, onnxModelSize, &options, &model);
  bool others = !error && ifi_has_other_values(model);
  if (!error && !others) {
    error = oxla_check(model);
  }
  if (oxla_error_subject(error) == OXLA_ABOUT_VALUE) {
    oxla_error_free(error);
    error = NULL;
  }
  oxla_model_destroy(model);
  return others ? ONNXIFI_STATUS_UNSUPPORTED_DATATYPE : ifi_status(error);
}

/* --- properties --- */

enum { OPTIMIZATION_AOT = 4 }; /* a goal of foxi only: compile ahead of time, however long it takes */

/* High throughput and low latency are treated alike: a run uses all cores, and concurrent runs share them. */
static onnxStatus set_optimization(ifi_backend *b, uint64_t goal) {
  switch (goal <= ifi_the_abi.max_optimization ? goal : UINT64_MAX) {
    case ONNXIFI_OPTIMIZATION_HIGH_THROUGHPUT:
    case ONNXIFI_OPTIMIZATION_LOW_LATENCY: return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_OPTIMIZATION_LOW_POWER: b->threads = 1; return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_OPTIMIZATION_LOW_DELAY: /* nothing is timed before the first result */
      b->tune = "off";
      return ONNXIFI_STATUS_SUCCESS;
    case OPTIMIZATION_AOT: b->tune = "full"; return ONNXIFI_STATUS_SUCCESS;
    default: return ONNXIFI_STATUS_INVALID_PROPERTY;
  }
}

static onnxStatus set_property(ifi_backend *b, uint64_t key, uint64_t value) {
  switch (key) {
    case ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION: return set_optimization(b, value);
    case ONNXIFI_BACKEND_PROPERTY_LOG_LEVEL:
      b->log_level = value;
      return value < ONNXIFI_LOG_LEVEL_DEBUG || value > ONNXIFI_LOG_LEVEL_ERROR ? ONNXIFI_STATUS_INVALID_PROPERTY
                                                                                : ONNXIFI_STATUS_SUCCESS;
    default: return ONNXIFI_STATUS_UNSUPPORTED_PROPERTY;
  }
}

static onnxStatus set_properties(ifi_backend *b, const uint64_t *list) {
  onnxStatus s = ONNXIFI_STATUS_SUCCESS;
  for (; !s && list && list[0] != ONNXIFI_BACKEND_PROPERTY_NONE; list += 2) {
    s = set_property(b, list[0], list[1]);
  }
  return s;
}

/* --- backends --- */

static void destroy(ifi_object *o) { free(o); }

/* Fails if the compiler library cannot be opened, since then no backend works. */
static onnxStatus open_compiler(const ifi_backend *b) {
  int ir, opset;
  onnxStatus s = ifi_status(ifi_log_error(b, "backend", oxla_onnx_versions(&ir, &opset)));
  if (!s) {
    ifi_log(b, ONNXIFI_LOG_LEVEL_INFO, "backend: onnx-xla %s, up to IR version %d and opset %d", PACKAGE_VERSION, ir,
            opset);
  }
  return s;
}

static onnxStatus create_backend(const ifi_id *id, const uint64_t *properties, onnxBackend *out) {
  ifi_backend *b = calloc(1, sizeof *b);
  if (!b) {
    return ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
  }
  ifi_object_init(&b->object, IFI_BACKEND, destroy);
  b->id = id;
  b->threads = ifi_the_defaults.threads;
  b->log_level = ifi_the_defaults.log_level;
  onnxStatus s = set_properties(b, properties);
  s = s ? s : open_compiler(b);
  if (!s) {
    *out = ifi_handle_create(&b->object);
    s = *out ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
  }
  if (s) {
    ifi_release(&b->object);
  }
  return s;
}

onnxStatus onnxInitBackend(onnxBackendID backendID, const uint64_t *auxPropertiesList, onnxBackend *backend) {
  if (!backend) {
    return ONNXIFI_STATUS_INVALID_POINTER;
  }
  *backend = NULL;
  const ifi_id *id = ifi_id_of(backendID);
  return id ? create_backend(id, auxPropertiesList, backend) : ONNXIFI_STATUS_INVALID_ID;
}

onnxStatus onnxReleaseBackend(onnxBackend backend) {
  ifi_backend *b = ifi_handle_take(backend, IFI_BACKEND);
  ifi_release(b ? &b->object : NULL);
  return b ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_INVALID_BACKEND;
}
