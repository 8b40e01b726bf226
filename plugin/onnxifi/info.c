/* info.c - what is known of a backend by its ID. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/onnxifi/internal.h"

/* Gets the processor's name from Linux, or "CPU". */
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

static void device_name(const ifi_id *id, char *text, size_t size) {
  if (id->gpu) {
    snprintf(text, size, "%s", id->gpu->described.name);
  } else {
    cpu_name(text, size);
  }
}

/* Writes the IR versions from 3 on (earlier ones are not in use), or the operator set.  Needs the compiler library. */
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

/* Returns SUCCESS and a text, or FALLBACK if this information is not a text.  Other statuses are failures. */
static onnxStatus text_info(const ifi_id *id, onnxBackendInfo type, char *text, size_t size) {
  switch (type) {
    case ONNXIFI_BACKEND_NAME: snprintf(text, size, "%s", id->name); return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_VENDOR: snprintf(text, size, "onnx-xla"); return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_VERSION: snprintf(text, size, "%s", PACKAGE_VERSION); return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_EXTENSIONS: snprintf(text, size, "%s", ifi_the_abi.extensions); return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_DEVICE: device_name(id, text, size); return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_ONNX_IR_VERSION:
    case ONNXIFI_BACKEND_OPSET_VERSION: return versions(type, text, size);
    default: return ONNXIFI_STATUS_FALLBACK;
  }
}

/* Gets how fast the backend is: of a processor as measured, of a GPU by its clocks.  The reference evaluator has no
 * rates, since it is far slower. */
static onnxStatus get_rates(const ifi_id *id, ifi_rates *out) {
  *out = (ifi_rates){0, 0};
  if (id->gpu) { /* a multiply-add counts as two operations */
    *out = (ifi_rates){id->gpu->described.operations / 2, id->gpu->described.bandwidth};
  }
  return id->gpu || id->is_reference ? ONNXIFI_STATUS_SUCCESS : ifi_measure_rates(out);
}

/* Gets the rate `type`.  A backend on the CPU computes in the CPU's memory, so both bandwidths are one number; how fast
 * a GPU reads the CPU's memory is not known. */
static onnxStatus rate_info(const ifi_id *id, onnxBackendInfo type, uint64_t *out) {
  ifi_rates rates;
  onnxStatus s = get_rates(id, &rates);
  *out = type == ONNXIFI_BACKEND_MACS_FP32                              ? rates.macs
         : type == ONNXIFI_BACKEND_CPU_MEMORY_READ_BANDWIDTH && id->gpu ? 0
                                                                        : rates.bytes;
  return s || *out ? s : ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE;
}

static uint64_t memory_size(const ifi_id *id) {
  return id->gpu ? id->gpu->described.memory_bytes
                 : (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Returns information that is a number.  Rates other than those below, and positions on buses, are optional and not
 * provided. */
static onnxStatus number_info(const ifi_id *id, onnxBackendInfo type, uint64_t *out) {
  switch (type) {
    case ONNXIFI_BACKEND_ONNXIFI_VERSION: *out = (uint64_t)1 << 32; return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_DEVICE_TYPE:
      *out = id->gpu ? ONNXIFI_DEVICE_TYPE_GPU : ONNXIFI_DEVICE_TYPE_CPU;
      return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_CAPABILITIES:
      *out = ONNXIFI_CAPABILITY_THREAD_SAFE | ONNXIFI_CAPABILITY_SYMBOLIC_BATCH_SIZE |
             ONNXIFI_CAPABILITY_SYMBOLIC_SIZE_TENSORS | ONNXIFI_CAPABILITY_VARIABLE_BATCH_SIZE |
             ONNXIFI_CAPABILITY_VARIABLE_SIZE_OUTPUTS;
      return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_MEMORY_TYPES: *out = ONNXIFI_MEMORY_TYPE_CPU; return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_SYNCHRONIZATION_TYPES: *out = ONNXIFI_SYNCHRONIZATION_EVENT; return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_INIT_PROPERTIES: /* there are no properties of this vendor */
    case ONNXIFI_BACKEND_GRAPH_INIT_PROPERTIES: *out = 0; return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_MEMORY_SIZE: *out = memory_size(id); return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_MAX_GRAPH_SIZE:
      *out = INT32_MAX; /* the limit of a protobuf message */
      return ONNXIFI_STATUS_SUCCESS;
    case ONNXIFI_BACKEND_MACS_FP32:
    case ONNXIFI_BACKEND_MEMORY_BANDWIDTH:
    case ONNXIFI_BACKEND_CPU_MEMORY_READ_BANDWIDTH: return rate_info(id, type, out);
    case ONNXIFI_BACKEND_CUDA_INDEX:
      *out = id->gpu ? (uint64_t)id->gpu->number : 0;
      return id->gpu ? ONNXIFI_STATUS_SUCCESS : ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE;
    case ONNXIFI_BACKEND_MAX_GRAPH_COUNT:
      *out = UINT32_MAX; /* limited by the number of handles */
      return ONNXIFI_STATUS_SUCCESS;
    default: return ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE;
  }
}

onnxStatus onnxGetBackendInfo(onnxBackendID backendID, onnxBackendInfo infoType, void *infoValue,
                              size_t *infoValueSize) {
  const ifi_id *id = ifi_id_of(backendID);
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
    s = number_info(id, infoType, &number);
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
