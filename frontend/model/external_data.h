/* external_data.h - tensor data in files beside the model.
 *
 * A model may name any file.  Only regular files below its own folder are read, never through a symbolic link, and
 * never files with a second hard link.  The path is checked by the kernel while it opens the file (openat2), so nobody
 * can exchange a folder between a check and the opening.  On kernels without openat2, each component of the path is
 * opened relative to the one before, which is as safe. */
#ifndef FRONTEND_MODEL_EXTERNAL_DATA_H
#define FRONTEND_MODEL_EXTERNAL_DATA_H

#include "frontend/onnx.pb-c.h"
#include "frontend/model/source.h"

typedef struct onnx_folder onnx_folder;

/* Opens the folder of a model.  When the arena is destroyed, the folder is closed and the files below it that were
 * mapped are unmapped. */
STATUS_MUST_USE status onnx_folder_open(arena *a, const char *path, onnx_folder **out);

/* Returns the `size` bytes to which t->external_data refers (t->data_location must be EXTERNAL).  They are a part of
 * the file, which is mapped or, if it is small, copied (file_map_fd in base/file.h).  The bytes live as long as the
 * folder, and every location is opened once.  A NULL folder means that external data is refused.  Errors: INVALID_MODEL
 * (a key, the location, a number or the size is wrong), INVALID_FILE (the file is too short), IO. */
STATUS_MUST_USE status onnx_external_data(onnx_folder *folder, const Onnx__TensorProto *t, uint64_t size,
                                          const uint8_t **data);

/* Returns the location (the path in the model) of the file to which the address `data` belongs, as onnx_external_data
 * returned it, and sets *offset to its offset in that file.  Returns NULL if it belongs to none. */
const char *onnx_folder_find(const onnx_folder *folder, const void *data, int64_t *offset);

/* For tests: opens folders component by component, as on kernels without openat2. */
void onnx_folder_avoid_openat2(onnx_folder *folder);

#endif
