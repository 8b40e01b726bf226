/* source.h - the bytes a model was read from, and the folder its external data may lie in. */
#ifndef FRONTEND_MODEL_SOURCE_H
#define FRONTEND_MODEL_SOURCE_H

#include "base/arena.h"

struct onnx_folder;

/* Lives as long as the arena it was opened on. */
typedef struct onnx_source {
  const char *name; /* for messages: the path, or "model" */
  const uint8_t *bytes;
  size_t size;
  /* NULL when there is none (a model in memory): external data is then refused. */
  struct onnx_folder *folder;
} onnx_source;

/* Maps a regular file, read-only, until the arena ends.  Refuses what is not a regular file; an empty file
 * gives size 0. */
STATUS_MUST_USE status onnx_source_open(arena *a, const char *path, onnx_source *out);

#endif
