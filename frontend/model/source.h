/* source.h - the bytes from which a model was read, and the folder in which its external data may be. */
#ifndef FRONTEND_MODEL_SOURCE_H
#define FRONTEND_MODEL_SOURCE_H

#include "base/arena.h"

struct onnx_folder;

/* The bytes of a model and where they come from.  What the members point to lives as long as the arena on which the
 * source was opened, but the bytes of a model in memory belong to the caller. */
typedef struct onnx_source {
  const char *name; /* for messages: the path of the file, or another name for the bytes, such as "model" */
  const uint8_t *bytes;
  size_t size;
  /* The folder of the model's file.  NULL means that external data is refused, as for a model in memory without a path.
   */
  struct onnx_folder *folder;
  /* The numbers of strings.  That of a model has all of the model's strings.  NULL means that strings are refused. */
  struct string_table *strings;
} onnx_source;

/* Opens a regular file.  Its bytes are mapped read-only or, if the file is small, copied (file_map in base/file.h);
 * they are valid until the arena is destroyed.  Anything that is not a regular file is refused.  The size of an empty
 * file is 0.  The folder stays NULL. */
STATUS_MUST_USE status onnx_source_open(arena *a, const char *path, onnx_source *out);

#endif
