/* status.c - converts errors of onnx-xla to statuses of ONNXIFI, and writes the log. */
#include <stdarg.h>
#include <stdio.h>

#include "plugin/onnxifi/internal.h"

static onnxStatus unsupported(oxla_subject about) {
  switch (about) {
    case OXLA_ABOUT_VERSION: return ONNXIFI_STATUS_UNSUPPORTED_VERSION;
    case OXLA_ABOUT_OPERATOR: return ONNXIFI_STATUS_UNSUPPORTED_OPERATOR;
    case OXLA_ABOUT_TYPE: return ONNXIFI_STATUS_UNSUPPORTED_DATATYPE;
    case OXLA_ABOUT_SHAPE:
    case OXLA_ABOUT_VALUE: return ONNXIFI_STATUS_UNSUPPORTED_SHAPE;
    case OXLA_ABOUT_BACKEND: return ONNXIFI_STATUS_BACKEND_UNAVAILABLE;
    default: return ONNXIFI_STATUS_UNSUPPORTED_ATTRIBUTE;
  }
}

/* Returns the status for arguments that do not fit together, or `otherwise` if the error is about none of type, shape
 * and name. */
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
    case OXLA_OK: return ONNXIFI_STATUS_SUCCESS;
    case OXLA_INVALID_FILE: return ONNXIFI_STATUS_INVALID_PROTOBUF;
    case OXLA_INVALID_MODEL: return mismatch(about, ONNXIFI_STATUS_INVALID_MODEL);
    case OXLA_UNSUPPORTED: return unsupported(about);
    case OXLA_RESOURCE: return ONNXIFI_STATUS_NO_SYSTEM_MEMORY;
    case OXLA_IO: return ONNXIFI_STATUS_NO_SYSTEM_RESOURCES;
    default: return ONNXIFI_STATUS_INTERNAL_ERROR;
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

void ifi_log(const ifi_backend *b, uint64_t level, const char *format, ...) {
  if (level < b->log_level) {
    return;
  }
  char text[1024];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  /* a single call, so that lines of several threads do not mix */
  fprintf(stderr, "%s: %s: %s\n", ifi_the_abi.library, b->id->backend, text);
}

oxla_error *ifi_log_error(const ifi_backend *b, const char *what, oxla_error *error) {
  if (error) {
    ifi_log(b, ONNXIFI_LOG_LEVEL_ERROR, "%s: %s", what, oxla_error_message(error));
  }
  return error;
}
