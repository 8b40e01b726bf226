/* source.c - maps a model's file. */
#include "frontend/model/source.h"

#include "base/file.h"

status onnx_source_open(arena *a, const char *path, onnx_source *out) {
  *out = (onnx_source){.name = arena_strdup(a, path)};
  return file_map(a, path, &out->bytes, &out->size);
}
