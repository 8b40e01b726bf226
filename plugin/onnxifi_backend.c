/* onnxifi_backend.c - backend IDs and what they tell, compatibility of models, backends. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/onnxifi_parts.h"

/* --- errors --- */

static onnxStatus unsupported(oxla_subject about) {
  switch (about) {
    case OXLA_ABOUT_VERSION:
      return ONNXIFI_STATUS_UNSUPPORTED_VERSION;
    case OXLA_ABOUT_OPERATOR:
      return ONNXIFI_STATUS_UNSUPPORTED_OPERATOR;
    case OXLA_ABOUT_TYPE:
      return ONNXIFI_STATUS_UNSUPPORTED_DATATYPE;
    case OXLA_ABOUT_SHAPE:
    case OXLA_ABOUT_VALUE:
      return ONNXIFI_STATUS_UNSUPPORTED_SHAPE;
    case OXLA_ABOUT_BACKEND:
      return ONNXIFI_STATUS_BACKEND_UNAVAILABLE;
    default:
      return ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE;
  }
}

/* What does not fit together, or `otherwise`. */
static onnxStatus mismatch(oxla_subject about, onnxStatus otherwise) {
  return about == OXLA_ABOUT_TYPE    ? ONNXIFI_STATUS_MISMATCHING_DATATYPE
         : about == OXLA_ABOUT_SHAPE ? ONNXIFI_STATUS_MISMATCHING_SHAPE
         : about == OXLA_ABOUT_NAME  ? ONNXIFI_STATUS_INVALID_NAME
                                     : otherwise;
}

onnxStatus ifi_status(oxla_error *error) {
  oxla_code code = oxla_error_code(error);
  oxla_subject about = oxla_error_subject(error);
  oxla_error_free(error);
  switch (code) {
    case OXLA_OK:
      return ONNXIFI_STATUS_SUCCESS;
    case OXLA_INVALID_FILE:
      return ONNXIFI_STATUS_INVALID_PROTOBUF;
    case OXLA_INVALID_MODEL:
      return mismatch(about, ONNXIFI_STATUS_INVALID_MODEL);
    case OXLA_UNSUPPORTED:
      return unsupported(about);
    case OXLA_RESOURCE:
      return ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
    case OXLA_IO:
      return ONNXIFI_STATUS_NO_SYSTEM_RESOURCES;
    default:
      return ONNXIFI_STATUS_INTERNAL_ERROR;
  }
}

onnxStatus ifi_descriptor_status(oxla_error *error) {
  oxla_code code = oxla_error_code(error);
  if (code != OXLA_INVALID_ARGUMENT && code != OXLA_INVALID_MODEL) {
    return ifi_status(error);
  }
  onnxStatus s = mismatch(oxla_error_subject(error), ONNXIFI_STATUS_MISMATCHING_SHAPE);
  oxla_error_free(error);
  return s;
}

oxla_error *ifi_log(const ifi_backend *b, const char *what, oxla_error *error) {
  if (error) {
    fprintf(stderr, "onnxifi-xla: %s: %s: %s\n", b->name, what, oxla_error_message(error));
  }
  return error;
}

/* --- IDs --- */

/* An ID is the address of one of these: good for the life of the process, so that releasing one changes nothing. */
typedef struct backend_id {
  const char *backend, *name;
} backend_id;

static const backend_id ids[] = {{"cpu", "onnx-xla cpu"}, {"ref", "onnx-xla reference"}};

enum { N_IDS = sizeof ids / sizeof *ids };

static const backend_id *find_id(onnxBackendID id) {
  for (size_t k = 0; k < N_IDS; k++) {
    if (id == (onnxBackendID)&ids[k]) {
      return &ids[k];
    }
  }
  return NULL;
}

onnxStatus onnxGetBackendIDs(onnxBackendID *backendIDs, size_t *numBackends) {
  if (!numBackends) {
    return ONNXIFI_STATUS_INVALID_POINTER;
  }
  size_t room = backendIDs ? *numBackends : 0;
  *numBackends = N_IDS;
  if (room < N_IDS) {
    return ONNXIFI_STATUS_FALLBACK;
  }
  for (size_t k = 0; k < N_IDS; k++) {
    backendIDs[k] = (onnxBackendID)(uintptr_t)&ids[k];
  }
  return ONNXIFI_STATUS_SUCCESS;
}

onnxStatus onnxReleaseBackendID(onnxBackendID backendID) {
  return find_id(backendID) ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_INVALID_ID;
}

/* --- info --- */

/* The processor's name as Linux tells it. */
static void cpu_name(char *text, size_t size) {
  char line[256];
  snprintf(text, size, "CPU");
  FILE *f = fopen("/proc/cpuinfo", "r");
  while (f && fgets(line, sizeof line, f)) {
    char *colon = strchr(line, ':');
    if (strncmp(line, "model name", strlen("model name")) == 0 && colon && colon[1]) {
      colon[1 + strcspn(colon + 1, "\n")] = 0;
      snprintf(text, size, "%s", colon + 2);
      break;
    }
  }
  if (f) {
    fclose(f);
  }
}

/* The IR versions from 3 (what came before is not in use), or the operator set; needs the compiler half. */
static onnxStatus versions(onnxBackendInfo type, char *text, size_t size) {
  int ir, opset;
  onnxStatus s = ifi_status(oxla_onnx_versions(&ir, &opset));
  size_t n = 0;
  *text = 0;
  if (type == ONNXIFI_BACKEND_OPSET_VERSION) {
    snprintf(text, size, "ai.onnx:%d", opset);
  } else {
    for (int v = 3; v <= ir && n < size; v++) {
      n += (size_t)snprintf(text + n, size - n, v > 3 ? " %d" : "%d", v);
    }
  }
  return s;
}

/* SUCCESS with a text, FALLBACK where the type is no text. */
static onnxStatus text_info(const backend_id *id, onnxBackendInfo type, char *text, size_t size) {
  switch (type) {
    case ONNXIFI_BACKEND_NAME:
      snprintf(text, size, "%s", id->name);
      return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_VENDOR:
      snprintf(text, size, "onnx-xla");
      return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_VERSION:
      snprintf(text, size, "%s", PACKAGE_VERSION);
      return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_EXTENSIONS:
      *text = 0;
      return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_DEVICE:
      cpu_name(text, size);
      return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_ONNX_IR_VERSION:
    case ONNXIFI_BACKEND_OPSET_VERSION:
      return versions(type, text, size);
    default:
      return ONNXIFI_STATUS_FALLBACK;
  }
}

/* Rates and places on buses are optional, and not known here. */
static onnxStatus number_info(onnxBackendInfo type, uint64_t *out) {
  switch (type) {
    case ONNXIFI_BACKEND_ONNXIFI_VERSION:
      *out = (uint64_t)1 << 32;
      return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_DEVICE_TYPE:
      *out = ONNXIFI_DEVICE_TYPE_CPU;
      return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_CAPABILITIES:
      *out = ONNXIFI_CAPABILITY_THREAD_SAFE | ONNXIFI_CAPABILITY_SYMBOLIC_BATCH_SIZE |
             ONNXIFI_CAPABILITY_SYMBOLIC_SIZE_TENSORS;
      return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_MEMORY_TYPES:
      *out = ONNXIFI_MEMORY_TYPE_CPU;
      return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES:
      *out = ONNXIFI_SYNCHRONIZATION_EVENT;
      return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_INIT_PROPERTIES: /* vendors' own: none */
    case ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES:
      *out = 0;
      return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_MEMORY_SIZE:
      *out = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
      return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_MAX_GRAPH_SIZE:
      *out = INT32_MAX; /* what a protobuf message may have */
      return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_MAX_GRAPH_COUNT:
      *out = UINT32_MAX; /* handles */
      return ONNXIFI_STATUS_SUCCESS;
    default:
      return ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE;
  }
}

onnxStatus onnxGetBackendInfo(onnxBackendID backendID, onnxBackendInfo infoType, void *infoValue,
                              size_t *infoValueSize) {
  const backend_id *id = find_id(backendID);
  if (!id) {
    return ONNXIFI_STATUS_INVALID_ID;
  }
  if (!infoValueSize) {
    return ONNXIFI_STATUS_INVALID_POINTER;
  }
  char text[256];
  uint64_t number = 0;
  const void *value = text;
  onnxStatus s = text_info(id, infoType, text, sizeof text);
  size_t size = s ? sizeof number : strlen(text) + 1;
  if (s == ONNXIFI_STATUS_FALLBACK) {
    s = number_info(infoType, &number);
    value = &number;
  }
  if (s) {
    return s;
  }
  size_t room = infoValue ? *infoValueSize : 0;
  *infoValueSize = size;
  if (room < size) {
    return ONNXIFI_STATUS_FALLBACK;
  }
  memcpy(infoValue, value, size);
  return ONNXIFI_STATUS_SUCCESS;
}

/* --- compatibility --- */

/* Models come here without their initializers' values, often a single node: a size that such a value decides is known
 * when the graph is made. */
onnxStatus onnxGetBackendCompatibility(onnxBackendID backendID, size_t onnxModelSize, const void *onnxModel) {
  const backend_id *id = find_id(backendID);
  if (!id || !onnxModel || onnxModelSize == 0) {
    return !id ? ONNXIFI_STATUS_INVALID_ID : !onnxModel ? ONNXIFI_STATUS_INVALID_POINTER : ONNXIFI_STATUS_INVALID_SIZE;
  }
  oxla_options options = {.size = sizeof options, .backend = id->backend};
  oxla_model *model = NULL;
  oxla_error *error = oxla_load_memory(onnxModel, onnxModelSize, &options, &model);
  if (!error) {
    error = oxla_check(model);
  }
  if (oxla_error_subject(error) == OXLA_ABOUT_VALUE) {
    oxla_error_free(error);
    error = NULL;
  }
  oxla_model_destroy(model);
  return ifi_status(error);
}

/* --- backends --- */

static void destroy(ifi_object *o) { free(o); }

/* Checked, then forgotten: there is one way to compile, as well as we can, and errors are all that is logged. */
static onnxStatus check_properties(const uint64_t *list) {
  for (; list && *list != ONNXIFI_BACKEND_PROPERTY_NONE; list += 2) {
    switch (list[0]) {
      case ONNXIFI_BACKEND_PROPERTY_OPTIMIZATION:
        if (list[1] > ONNXIFI_OPTIMIZATION_LOW_DELAY) {
          return ONNXIFI_STATUS_INVALID_PROPERTY;
        }
        break;
      case ONNXIFI_BACKEND_PROPERTY_LOG_LEVEL:
        if (list[1] < ONNXIFI_LOG_LEVEL_DEBUG || list[1] > ONNXIFI_LOG_LEVEL_ERROR) {
          return ONNXIFI_STATUS_INVALID_PROPERTY;
        }
        break;
      default:
        return ONNXIFI_STATUS_UNSUPPORTED_PROPERTY;
    }
  }
  return ONNXIFI_STATUS_SUCCESS;
}

static onnxStatus create_backend(const backend_id *id, const uint64_t *properties, onnxBackend *out) {
  int ir, opset;
  ifi_backend *b = calloc(1, sizeof *b);
  if (!b) {
    return ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
  }
  ifi_object_init(&b->object, IFI_BACKEND, destroy);
  b->name = id->backend;
  onnxStatus s = check_properties(properties);
  if (!s) {
    s = ifi_status(ifi_log(b, "backend", oxla_onnx_versions(&ir, &opset)));
  }
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
  const backend_id *id = find_id(backendID);
  return id ? create_backend(id, auxPropertiesList, backend) : ONNXIFI_STATUS_INVALID_ID;
}

onnxStatus onnxReleaseBackend(onnxBackend backend) {
  ifi_backend *b = ifi_handle_take(backend, IFI_BACKEND);
  ifi_release(b ? &b->object : NULL);
  return b ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_INVALID_BACKEND;
}
